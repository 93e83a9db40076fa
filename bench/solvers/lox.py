"""The weights of Newton's LOX (newton 1.8, solvers/kamino/lox/system_kernels.py) on a tree of hinges.

Of every body LOX takes the geometric mean of two inertias (6, 6): with its neighbours along joints free and all else
left out, and with the neighbours' own neighbours held. Here joints are rigid, where LOX has stiff springs.
Twists are (angular, linear) at the world's origin.
"""

from __future__ import annotations

import mujoco
import numpy as np

CAP = 4.0  # times the free one, LOX's weight_beta


def cross(r: np.ndarray) -> np.ndarray:
    return np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])


def root(S: np.ndarray) -> np.ndarray:
    values, axes = np.linalg.eigh(S)
    return axes * np.sqrt(np.maximum(values, 0)) @ axes.T


class Weights:
    """Of the state that ``data`` is in."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, A: np.ndarray):
        self.model, self.data, self.A = model, data, A
        self.part = model.body_weldid  # bodies without joints belong to their parent's part
        self.parts = [int(b) for b in np.unique(self.part) if b]
        self.above = {b: int(self.part[model.body_parentid[b]]) for b in self.parts}
        self.twists = {b: self._twist(b) for b in self.parts}

    def _twist(self, body: int) -> np.ndarray:
        linear, angular = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        mujoco.mj_jac(self.model, self.data, linear, angular, np.zeros(3), body)
        return np.concatenate([angular, linear])

    def inertia(self, part: int) -> np.ndarray:
        total = np.zeros((6, 6))
        for body in np.flatnonzero(self.part == part):
            mass, axes = self.model.body_mass[body], self.data.ximat[body].reshape(3, 3)
            c = cross(self.data.xipos[body])
            turn = axes * self.model.body_inertia[body] @ axes.T
            total += np.block([[turn - mass * c @ c, mass * c], [-mass * c, mass * np.eye(3)]])
        return total

    def neighbours(self, part: int) -> list[tuple[int, int]]:
        """(neighbour, the lower of the two)"""
        found = [(self.above[part], part)] if self.above[part] else []
        return found + [(b, b) for b in self.parts if self.above[b] == part]

    def free(self, part: int) -> np.ndarray:
        """Its inertia with those of its neighbours that it cannot move without."""
        total = self.inertia(part)
        for other, lower in self.neighbours(part):
            first = self.model.body_dofadr[lower]
            axes = self.twists[lower][:, first : first + self.model.body_dofnum[lower]]
            held = np.linalg.svd(axes)[0][:, axes.shape[1] :]
            total += held @ np.linalg.solve(held.T @ np.linalg.solve(self.inertia(other), held), held.T)
        return total

    def mobility_of_pinned(self, part: int) -> np.ndarray:
        near = {part, *(other for other, _ in self.neighbours(part))}
        fixed = [self.twists[b] for b in self.parts if b not in near]
        moves = np.eye(len(self.A))
        if fixed:
            _, values, rows = np.linalg.svd(np.concatenate(fixed))
            moves = rows[np.sum(values > 1e-9 * values.max()) :].T
        if not moves.shape[1]:
            return np.zeros((6, 6))
        T = self.twists[part] @ moves
        return T @ np.linalg.solve(moves.T @ self.A @ moves, T.T)

    def mobility(self, body: int) -> np.ndarray:
        """The inverse (6, 6) of the body's weight."""
        part = int(self.part[body])
        half = np.linalg.inv(root(self.free(part)))  # F^-1/2
        full = np.linalg.inv(half)
        values, axes = np.linalg.eigh(full @ self.mobility_of_pinned(part) @ full)  # at most 1
        spread = np.clip(np.sqrt(np.maximum(values, 0)), 1 / CAP, 1)
        return half @ (axes * spread) @ axes.T @ half

    def of_contact(self, point: np.ndarray, frame: np.ndarray, bodies) -> np.ndarray:
        """(3,) velocity per impulse along each axis of a contact's frame, of both bodies."""
        rows = frame @ np.hstack([-cross(point), np.eye(3)])
        moving = [b for b in bodies if self.part[b]]
        return sum(np.einsum("ij,jk,ik->i", rows, self.mobility(b), rows) for b in moving)
