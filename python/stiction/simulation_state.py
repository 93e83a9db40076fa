"""The state of a `Simulation`, by environment."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np


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
