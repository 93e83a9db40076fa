"""The force and the torque through which a body hangs on its parent, as of MuJoCo's <force> and <torque> sensors.

Cut there, the body and all it carries have what changes their momentum from four sides: their weight, contacts, what is
applied, and the cut. The first three are known of the last time step,

    F = dp/h - sum of m g - contacts - applied,     M alike with angular momentum.
"""

from __future__ import annotations

import numpy as np

from .mass_matrix import momenta, parameter, present
from .mujoco_numbers import NO_GRAVITY
from .rotations import cross, rotation


def cut_load(sim, body: int, site: int) -> tuple[np.ndarray, np.ndarray]:
    """Force and torque about a site (N, 3) of its parent on a body in the last time step: world's axes, in double.

    Of an environment at time 0, before any step: at rest.
    """
    carried = _carried(sim.model, body)
    forces, torques = _contacts(sim, carried)
    weight, applied = _weights(sim), sim._arrays.read("xfrc_applied").astype(np.float64)
    acting = (weight + applied[..., :3]) * carried[:, None]
    forces = forces + acting.sum(1)
    torques = torques + (cross(_centers(sim), acting) + applied[..., 3:] * carried[:, None]).sum(1)

    now, before = momenta(sim, *present(sim)), momenta(sim, *sim._world.previous_states()[:2])
    moved = (sim._arrays.read("time") > 0)[:, None] / sim.timestep
    linear, angular = ((new - old)[:, carried].sum(1) * moved for new, old in zip(now, before, strict=True))
    force, torque = linear - forces, angular - torques
    return force, torque - cross(sim._arrays.read("site_xpos")[:, site].astype(np.float64), force)


def _carried(model, body: int) -> np.ndarray:
    """(nbody,): itself and what hangs from it."""
    carried = np.arange(model.nbody) == body
    for other in range(body + 1, model.nbody):
        carried[other] = carried[model.body_parentid[other]]
    return carried


def _weights(sim) -> np.ndarray:
    """(N or 1, nbody, 3)"""
    gravity = parameter(sim, "gravity") * (not sim.model.disableflags & NO_GRAVITY)
    return parameter(sim, "body_mass")[:, :, None] * gravity[:, None]


def _centers(sim) -> np.ndarray:
    """Of mass (N, nbody, 3)."""
    position, orientation = (sim._arrays.read(name).astype(np.float64) for name in ("xpos", "xquat"))
    return position + (rotation(orientation) @ parameter(sim, "body_ipos")[..., None])[..., 0]


def _contacts(sim, carried: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of what touches what is carried, from outside: force and torque about the world's origin (N, 3)."""
    geom, *arrays = (sim._arrays.read(f"contact.{name}") for name in ("geom", "pos", "frame", "impulse", "couple"))
    place, frame, impulse, couple = (array.astype(np.float64) for array in arrays)
    of_geom = carried[np.asarray(sim.model.geom_bodyid, np.int64)[geom.clip(0)]] * (geom >= 0)
    side = (of_geom[..., 1] * 1.0 - of_geom[..., 0])[..., None] / sim.timestep
    force, torque = (side * (along[..., None] * frame).sum(-2) for along in (impulse, couple))
    return force.sum(1), (torque + cross(place, force)).sum(1)
