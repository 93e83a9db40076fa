"""What a task in Python is and returns, checked: errors name the class, what it told and what is expected."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from numbers import Real

import numpy as np

#: What `VectorEnv` itself writes into infos.
_OF_BATCHES = ("status", "final_obs", "final_info")


def checked_substeps(task) -> int:
    number = task.substeps
    if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or number < 1:
        raise ValueError(f"{type(task).__name__}.substeps is {number!r}, expected how many time steps, at least 1")
    return int(number)


def checked_steps(task) -> int:
    """``max_episode_steps`` of a task's class, -1 for none."""
    number = task.max_episode_steps
    if number is None:
        return -1
    if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or (number < 1 and number != -1):
        raise ValueError(
            f"{type(task).__name__}.max_episode_steps is {number!r}, expected control steps, at least 1, or None"
        )
    return int(number)


def checked_parameter(name: str, value, now, of: str):
    """A value for a parameter of the task ``of`` that is ``now``: a switch, a number, or as many numbers."""
    if isinstance(now, bool):
        fits, expected = isinstance(value, (Real, np.bool_)) and value in (0, 1), "True or False"
    elif isinstance(now, tuple):
        value = tuple(value) if isinstance(value, (list, np.ndarray)) else value
        fits = isinstance(value, tuple) and len(value) == len(now) and all(isinstance(v, Real) for v in value)
        expected = f"{len(now)} numbers"
    else:
        fits, expected = isinstance(value, Real), "a number"
    if not fits:
        raise TypeError(f"parameter {name!r} of {of} is {value!r}, expected {expected}, as {now!r}")
    return bool(value) if isinstance(now, bool) else value


def require_well_spelt(kind: type, of_tasks: type) -> None:
    """TypeError where a class has ``max_episode_step`` or ``truncate`` for what a task has, which it leaves alone."""
    own: dict = {}
    for base in reversed(kind.__mro__[: kind.__mro__.index(of_tasks)]):
        own |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    for name, value in own.items():
        if hasattr(of_tasks, name) or isinstance(value, property):
            continue
        if name in ("truncate", "truncated") and callable(value):
            raise TypeError(
                f"{kind.__name__} has {name!r}, which no task is asked for: max_episode_steps says when one is cut"
            )
        known = [
            n for n, v in vars(of_tasks).items() if n[0] != "_" and n not in own and callable(v) == callable(value)
        ]
        if near := difflib.get_close_matches(name, known, n=1, cutoff=0.9):
            raise TypeError(
                f"{kind.__name__} has {name!r}, which is nothing of a task; {near[0]!r} is, or another name"
            )


def told(task) -> Mapping:
    """What `report` returned."""
    given, kind = task.report(), type(task).__name__
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{kind}.report() returned a {type(given).__name__}, expected a dict of arrays ({task.num_envs},)"
        )
    for name in given:
        if not isinstance(name, str) or name in _OF_BATCHES or name.startswith(("_", "reward_")):
            raise ValueError(f"{kind}.report() tells {name!r}, which is for what infos have besides: another name")
    return given


def require_array(what: str, values, expected: str) -> None:
    """TypeError for what is no array or tensor of real numbers. ``what``: with its verb, "Reach.observe() returned"."""
    kind = getattr(getattr(values, "dtype", None), "kind", "f")  # which torch's have not
    if not hasattr(values, "ndim") or kind not in "fiub":
        given = f"an array of {values.dtype}" if hasattr(values, "ndim") else f"a {type(values).__name__}"
        raise TypeError(f"{what} {given}, expected {expected}")


def term_sizes(task, given: Mapping) -> dict[str, int]:
    """How many numbers each term has that `observe` returned, in order."""
    n, sizes = task.num_envs, {}
    for name, values in given.items():
        if not isinstance(name, str) or "/" in name:
            raise ValueError(f"{type(task).__name__}.observe() has the term {name!r}, expected a name without a slash")
        what, expected = f"{type(task).__name__}.observe()[{name!r}]", f"an array ({n}, k) or ({n},)"
        nested = isinstance(values, (Mapping, list, tuple))
        hint = ": terms do not nest, each array has a name of its own" if nested else ""
        require_array(f"{what} is", values, expected + hint)
        shape = tuple(values.shape)
        if len(shape) not in (1, 2) or shape[0] != n:
            raise ValueError(f"{what} has shape {shape}, expected {expected}")
        sizes[name] = 1 if len(shape) == 1 else shape[1]
    if not sizes:
        raise ValueError(f"{type(task).__name__}.observe() returned no terms")
    return sizes
