"""The state of a `Simulation`, by environment."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from .backend import as_numbers
from .mujoco_numbers import BALL, FREE


@dataclass
class SimulationState:
    """All that a later step depends on, as copies (NumPy). ``records``: warm start and contacts of the last step."""

    qpos: np.ndarray
    qvel: np.ndarray
    ctrl: np.ndarray
    time: np.ndarray
    qfrc_applied: np.ndarray
    xfrc_applied: np.ndarray
    mocap_pos: np.ndarray
    mocap_quat: np.ndarray
    records: np.ndarray

    def __repr__(self) -> str:
        sizes = (f"{f.name} {np.shape(getattr(self, f.name))}" for f in fields(self))
        return f"stiction.SimulationState({', '.join(sizes)})"

    def __getitem__(self, envs) -> SimulationState:
        """The rows of some environments: a number, indices, a mask or a slice."""
        if isinstance(envs, (int, np.integer)):
            envs = [envs]
        return SimulationState(**{f.name: np.atleast_1d(getattr(self, f.name))[envs] for f in fields(self)})

    def replaced(self, envs: np.ndarray, other: SimulationState) -> SimulationState:
        """This state with rows ``envs`` (indices) of ``other``, which has as many, or one."""
        together = {}
        for field in fields(self):
            mine, given = getattr(self, field.name), np.asarray(getattr(other, field.name))
            if given.shape[1:] != mine.shape[1:] or given.ndim != mine.ndim or len(given) not in (1, len(envs)):
                each, one = ((rows, *mine.shape[1:]) for rows in (len(envs), 1))
                raise ValueError(
                    f"state.{field.name} has shape {given.shape}, expected {each}, a row for each of envs, or {one}, "
                    "one for all"
                )
            together[field.name] = mine.copy()
            together[field.name][envs] = given
        return SimulationState(**together)


def require_orientations(model, state: SimulationState) -> None:
    """ValueError, by joint and environment, where a quaternion of a state is zero or not finite."""
    qpos, turns = (as_numbers(f"state.{name}", getattr(state, name)) for name in ("qpos", "mocap_quat"))
    for joint, kind in enumerate(model.jnt_type):
        if kind in (FREE, BALL):
            at = int(model.jnt_qposadr[joint]) + (3 if kind == FREE else 0)
            _require_direction(f"state.qpos of joint {model.joint_names[joint] or joint!r}", qpos[:, at : at + 4])
    for body in np.flatnonzero(np.asarray(model.body_mocapid) >= 0):
        quat = turns[:, model.body_mocapid[body]]
        _require_direction(f"state.mocap_quat of body {model.body_names[body] or body!r}", quat)


def _require_direction(what: str, quat: np.ndarray) -> None:
    size = np.linalg.norm(quat, axis=1)
    wrong = np.flatnonzero(~(np.isfinite(size) & (size > 1e-12)))
    if len(wrong):
        raise ValueError(f"{what} is no orientation in environment {wrong[0]}: its quaternion is {quat[wrong[0]]}")
