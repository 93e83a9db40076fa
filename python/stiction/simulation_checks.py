"""The arguments of a `Simulation`, checked in words."""

from __future__ import annotations

import math
import operator
import os

import numpy as np

from . import _build, _core
from .model import Model
from .mujoco_numbers import EQ_CONNECT, EQ_WELD
from .simulation_arrays import near, parameter_names

#: Of `Simulation`, the default first, and what each is to the core: theta and theta_vq of the SAP paper, the iterations
#: that find the free motion where it is no linear problem.
INTEGRATORS: dict[str, dict[str, float | int]] = {
    "implicit": {},
    "euler": {"implicit": 0},
    "explicit_euler": {"implicit": 0, "explicit_damping": 1, "theta_vq": 0.0},
    "implicit_euler": {"newton": 30},
    "midpoint": {"theta": 0.5, "theta_vq": 0.5, "newton": 30},
}


def count(name: str, value, low: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, expected an integer") from None
    if number < low:
        raise ValueError(f"{name} is {number}, expected at least {low}")
    if number >= 2**31:
        raise ValueError(f"{name} is {number}, expected less than {2**31}")
    return number


#: Rows of `contact`, and contacts that there is room for, at most.
MOST_CONTACTS = 1_000_000


def checked_room(max_contacts: int | None) -> int:
    """0 for what seems enough."""
    if max_contacts is None:
        return 0
    if (room := count("max_contacts", max_contacts, 1)) > MOST_CONTACTS:
        raise ValueError(f"max_contacts is {room}, expected at most {MOST_CONTACTS}")
    return room


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def checked_timestep(timestep) -> float:
    try:
        seconds = float(timestep + 0.0)  # a string is no number here
    except (TypeError, ValueError):
        raise TypeError(f"timestep is {timestep!r}, expected seconds") from None
    if not 0 < seconds <= 1 or not math.isfinite(seconds):
        raise ValueError(f"timestep is {seconds} s, expected more than 0 and at most 1")
    return seconds


def checked_integrator(integrator) -> str:
    if integrator is None:
        return next(iter(INTEGRATORS))
    if integrator not in INTEGRATORS:
        raise ValueError(f"integrator is {integrator!r}, expected one of {', '.join(map(repr, INTEGRATORS))}")
    return integrator


def checked_dtype(dtype) -> str:
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype).removeprefix("torch.")
    if name not in ("float32", "float64"):
        raise ValueError(f"dtype is {dtype!r}, expected 'float32' or 'float64'")
    return name


def checked_device(device) -> tuple[str, int]:
    """(kind, ordinal); -1 where CUDA shall choose."""
    kind, _, number = str(device).partition(":")
    if kind not in ("cpu", "cuda") or (kind == "cpu" and number) or (number and not number.isdigit()):
        raise ValueError(f"device is {device!r}, expected 'cpu', 'cuda' or 'cuda:<number>'")
    if kind == "cpu":
        return kind, -1
    if not _build.CUDA:
        raise ValueError(
            f"device is {device!r}, but this build of stiction is for the CPU only: install it again with nvcc on PATH "
            "and STICTION_CUDA=ON, or use device='cpu'; `stiction info` shows what there is"
        )
    from .info import cuda_facts

    devices = cuda_facts()["devices"]
    if len(devices) <= int(number or 0):
        found = f"{len(devices)} GPUs" if devices else "no GPU with a driver (libcuda.so.1)"
        raise ValueError(f"device is {device!r}, but this machine has {found}: use device='cpu'")
    return kind, int(number or -1)


def _held_sites(model: Model) -> str:
    """The first connect or weld between sites, whose places are constants of it; "" where we know of none."""
    m = model.mjmodel
    if m is None:
        return ""
    import mujoco

    of_sites = (np.asarray(m.eq_objtype) == int(mujoco.mjtObj.mjOBJ_SITE)) & np.isin(m.eq_type, (EQ_CONNECT, EQ_WELD))
    found = np.flatnonzero(of_sites & np.asarray(m.eq_active0, bool))
    return repr(m.equality(int(found[0])).name or int(found[0])) if len(found) else ""


def checked_per_env(per_env, model: Model) -> tuple[str, ...]:
    if isinstance(per_env, str):
        raise TypeError(f"per_env is the string {per_env!r}, expected a sequence of names: ({per_env!r},)")
    names, known = tuple(per_env), parameter_names(model)
    for name in names:
        if name not in known:
            raise ValueError(f"per_env names {name!r}, which is no array of a model{near(name, known)}")
    if "site_pos" in names and (held := _held_sites(model)):
        raise ValueError(f"per_env names 'site_pos', but equality {held} holds sites together where the model has them")
    if names and "per_env" not in (_core.World.__init__.__doc__ or ""):
        raise ValueError(f"per_env is {names}, but this build shares every parameter between environments")
    return names
