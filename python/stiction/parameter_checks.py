"""What parameters of a model that differ between environments must be: assigned to `Parameters`, or drawn."""

from __future__ import annotations

from itertools import product

import numpy as np

from .mujoco_numbers import BALL, BOX, CAPSULE, CYLINDER, ELLIPSOID, SLIDE, SPHERE

#: What is never below 0, as in a model.
_NOT_NEGATIVE = """
    body_mass body_inertia geom_friction geom_size dof_damping dof_armature dof_frictionloss jnt_stiffness
""".split()

#: How many numbers of geom_size a geom of that type has.
_SIZES = {SPHERE: 1, CAPSULE: 2, ELLIPSOID: 3, CYLINDER: 2, BOX: 3}


def wrong_with(model, name: str, values: np.ndarray) -> str | None:
    """What is wrong with ``values`` (k, ...) of a parameter, as in a model's own; None if nothing is."""
    if not np.isfinite(values).all():
        return "has entries that are not finite"
    if name in _NOT_NEGATIVE and (values < 0).any():
        return f"has negative entries ({values.min():g}), and is never below 0"
    if name in ("body_mass", "body_inertia"):
        return _lacking(model, name, values)
    if name == "geom_size":
        return _flat(model, values)
    return _crossed(model, values) if name == "jnt_range" else None


def _lacking(model, name: str, values: np.ndarray) -> str | None:
    """Of masses or inertias: which body that moves, or turns, has none, with those fixed to it."""
    of_each = values if name == "body_mass" else values.min(axis=2)
    kinds, owners = np.asarray(model.jnt_type), np.asarray(model.jnt_bodyid)
    heavy = np.zeros_like(of_each)
    np.add.at(heavy, (slice(None), np.asarray(model.body_weldid)), of_each)
    for body in np.unique(owners if name == "body_mass" else owners[kinds != SLIDE]):
        if not (heavy[:, body] > 0).all():
            what = "mass, and it moves" if name == "body_mass" else "inertia, and it turns"
            return f"leaves body {model.body_names[body] or int(body)!r} without {what}: expected more than 0"
    return None


def _flat(model, sizes: np.ndarray) -> str | None:
    """Of sizes: which geom has none in a direction."""
    for geom, kind in enumerate(np.asarray(model.geom_type)):
        if not (sizes[:, geom, : _SIZES.get(int(kind), 0)] > 0).all():
            return f"leaves geom {model.geom_names[geom] or geom!r} without size, expected more than 0"
    return None


def _crossed(model, ranges: np.ndarray) -> str | None:
    """Of ranges of joints: which one has its ends in the wrong order."""
    ball = np.asarray(model.jnt_type) == BALL
    wrong = (np.where(ball, 0, ranges[..., 0]) > ranges[..., 1]) & np.asarray(model.jnt_limited).astype(bool)
    for env, joint in np.argwhere(wrong)[:1]:
        low, high = ranges[env, joint]
        name = model.joint_names[joint] or int(joint)
        return f"gives joint {name!r} the range ({low:g}, {high:g}), expected the low end not above the high one"
    return None


def require_sound_draws(events, model) -> None:
    """ValueError where what `ParameterEvent`s draw is at times what no environment can have.

    All operations grow or fall with the number that is drawn, so the ends of what is drawn tell. A range's ends may
    have numbers of their own, so of each joint every pair of these is looked at.
    """
    for name in dict.fromkeys(event.term.name for event in events):
        mine = [event for event in events if event.term.name == name]
        nominal = np.asarray(getattr(model, name), np.float64)
        if name == "jnt_range":
            for joint in range(len(nominal)):
                _require(name, [event for event in mine if joint in event.index[0]], nominal, model, joint)
        else:
            _require(name, mine, nominal, model)


def _require(name: str, events, nominal: np.ndarray, model, joint: int | None = None) -> None:
    draws = list(dict.fromkeys((event.label, event.term.every) for event in events))
    for ends in [(0,) * len(draws), (1,) * len(draws)] if joint is None else product((0, 1), repeat=len(draws)):
        values = nominal.copy()
        for event in events:
            values[event.index] = event.at(ends[draws.index((event.label, event.term.every))])
        if joint is not None:
            values[np.arange(len(values)) != joint] = nominal[np.arange(len(values)) != joint]
        if fault := wrong_with(model, name, values[None]):
            told = ", ".join(f"{e.term.operation} {e.term.low:g} to {e.term.high:g}" for e in events)
            raise ValueError(f"randomize: {name} ({told}) at times {fault}")
