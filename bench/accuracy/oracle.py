"""The oracle (host/reference) beside the benches: the contact problem of a step, assembled anew from (q, v, ctrl).

Its module is built with the tests (STICTION_BUILD_TESTS=ON) and looked for in ``STICTION_BUILD``, else ``build``;
`reference` is None without it.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import numpy as np

_BUILD = Path(os.environ.get("STICTION_BUILD", Path(__file__).resolve().parents[2] / "build"))
sys.path.append(str(_BUILD / "python"))  # at the end: an installed stiction comes first
try:
    reference = importlib.import_module("stiction_reference")
except ImportError:
    reference = None


def model(model):
    """The oracle's copy of a `stiction.Model`; None without the oracle."""
    return None if reference is None else reference.Model(model.to_arrays())


def contacts_of(sim, env: int) -> tuple[dict, np.ndarray]:
    """Contacts of the last step as the oracle takes them, and their impulses (3 count,), N s."""
    n = int(sim.contact.count[env])
    names = "pos", "frame", "dist", "ahead"
    arrays = {name: np.asarray(getattr(sim.contact, name)[env, :n], float) for name in names}
    return {"geom": sim.contact.geom[env, :n], **arrays}, np.asarray(sim.contact.impulse[env, :n], float).ravel()


def assembled(model_of_oracle, sim, before, env: int) -> tuple[dict, np.ndarray, np.ndarray]:
    """The oracle's contact problem of the last step, without other rows, and the velocity and impulses that solved it.

    ``before``: (qpos, qvel, ctrl) of all environments when the step began. The contacts are the simulation's.
    """
    q, v, ctrl = (np.asarray(part[env], float) for part in before)
    contacts, impulse = contacts_of(sim, env)
    options = sim.integrator, sim.timestep, sim.solver.erp, sim.solver.max_recovery
    softness = {name: getattr(sim.solver, name) for name in ("penetration_allowance", "tangential_compliance")}
    softness["rounding"] = 1e-5 if sim.dtype == "float32" else 0.0
    *_, owed = (part[env] for part in sim._world.previous_states())
    problem = reference.assemble(model_of_oracle, q, v, ctrl, contacts, *options, **softness, owed=owed)
    for rows in ("J_row", "e_row", "R_row", "lower", "upper"):
        problem.pop(rows)
    return problem, solved_velocity(model_of_oracle, sim, before, env), impulse


def solved_velocity(model_of_oracle, sim, before, env: int) -> np.ndarray:
    """The velocity (nv,) that the last step found in its solve; `sim.qvel` is that of the step's end."""
    q, v = np.asarray(sim.qpos[env], float), np.asarray(sim.qvel[env], float)
    if sim.integrator == "euler":
        return v
    return reference.solved_velocity(model_of_oracle, np.asarray(before[0][env], float), q, v)
