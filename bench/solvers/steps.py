"""Steps of time in NumPy over MuJoCo's kinematics and collisions, for what is compared in terms of bodies.

Of MuJoCo come M, Jacobians, contacts and the forces of actuators and gravity; the step is A v = b + J'l with
A = M + h D, joint limits and equalities left out. What makes l of that is the caller's.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import stiction

RECOVERY, FASTEST = 0.2, 1.0  # part of an overlap that a step takes back, and m/s
GRAVITY = 9.81  # m/s^2, for scales
NONE = 1e10  # 1/kg: compliance of what MuJoCo does not take for a contact, which just touches


@dataclass
class Step:
    """One step's contact problem. Rows t1, t2, n of the velocity of a contact's second body against its first.

    A (nv, nv); b, before (nv,), A v* and the velocity the step starts with; sides (nc, 2, 3, nv), the rows of the first
    body, negative, and of the second; bodies (nc, 2); geoms (nc, 2); frame (nc, 3, 3), rows t1, t2, n; gap, mu (nc,);
    timestep, s.
    """

    A: np.ndarray
    b: np.ndarray
    before: np.ndarray
    sides: np.ndarray
    bodies: np.ndarray
    geoms: np.ndarray
    tree: np.ndarray
    frame: np.ndarray
    gap: np.ndarray
    mu: np.ndarray
    timestep: float
    soft_bias: np.ndarray
    soft_compliance: np.ndarray

    @property
    def J(self) -> np.ndarray:
        return self.sides.sum(1).reshape(-1, len(self.b))

    @property
    def delassus(self) -> np.ndarray:
        """W = J A^-1 J' (3 nc, 3 nc)."""
        return self.J @ np.linalg.solve(self.A, self.J.T)

    @property
    def mobility(self) -> np.ndarray:
        """(nc, 3), the diagonal of W."""
        J = self.J
        return np.einsum("ij,ji->i", J, np.linalg.solve(self.A, J.T)).reshape(-1, 3)

    @property
    def free(self) -> np.ndarray:
        """J v* (3 nc,)."""
        return self.J @ np.linalg.solve(self.A, self.b)

    def bias(self) -> np.ndarray:
        """e (nc, 3) of rigid contacts: an open one may close, an overlap is taken back in part. m/s"""
        back = np.maximum(RECOVERY * self.gap / self.timestep, -FASTEST)
        e = np.zeros((len(self.gap), 3))
        e[:, 2] = np.where(self.gap > 0, self.gap / self.timestep, back)
        return e

    def problem(self, e: np.ndarray | None = None, R: np.ndarray | None = None) -> stiction.ContactProblem:
        """Rigid unless said otherwise."""
        e = self.bias() if e is None else e
        least = max(GRAVITY * self.timestep, 1e-4)
        return stiction.ContactProblem.from_primal(self.A, self.J, self.b, self.mu, e, R, least_velocity=least)

    def velocity(self, impulse: np.ndarray) -> np.ndarray:
        """(nv,) after impulses (nc, 3)."""
        return np.linalg.solve(self.A, self.b + self.J.T @ np.ravel(impulse))


def assembled(model: mujoco.MjModel, data: mujoco.MjData) -> Step:
    """Of ``data``'s qpos, qvel, ctrl and applied forces; contacts have three directions, ``model`` elliptic cones."""
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    mujoco.mj_fwdActuation(model, data)
    h, nv, nc = model.opt.timestep, model.nv, data.ncon
    mass = np.zeros((nv, nv))
    mujoco.mj_fullM(model, data, mass)
    forces = data.qfrc_actuator + data.qfrc_applied + data.qfrc_passive + model.dof_damping * data.qvel
    sides, jacobian = np.zeros((nc, 2, 3, nv)), np.zeros((3, nv))
    contact = data.contact
    frame = np.roll(contact.frame.reshape(nc, 3, 3), -1, axis=1)  # MuJoCo has the normal first
    bodies = model.geom_bodyid[contact.geom]
    for i in range(nc):
        for side, sign in ((0, -1), (1, 1)):
            mujoco.mj_jac(model, data, jacobian, None, contact.pos[i], bodies[i, side])
            sides[i, side] = sign * frame[i] @ jacobian
    J = sides.sum(1).reshape(3 * nc, nv)
    soft_bias, soft_compliance = np.zeros((nc, 3)), np.full((nc, 3), NONE)
    closed = contact.efc_address >= 0
    rows = contact.efc_address[closed, None] + [1, 2, 0]
    soft_bias[closed] = -(J @ data.qvel).reshape(nc, 3)[closed] - h * data.efc_aref[rows]
    soft_compliance[closed] = data.efc_R[rows[:, [0, 0, 2]]]  # tangents differ by rounding
    return Step(
        A=mass + h * np.diag(model.dof_damping),
        b=mass @ data.qvel + h * (forces - data.qfrc_bias),
        before=data.qvel.copy(),
        sides=sides,
        bodies=bodies,
        geoms=contact.geom.copy(),
        tree=model.dof_treeid,
        frame=frame,
        gap=contact.dist.copy(),
        mu=contact.friction[:, 0].copy(),
        timestep=h,
        soft_bias=soft_bias,
        soft_compliance=soft_compliance,
    )


def advance(model: mujoco.MjModel, data: mujoco.MjData, velocity: np.ndarray) -> None:
    data.qvel[:] = velocity
    mujoco.mj_integratePos(model, data.qpos, data.qvel, model.opt.timestep)
    data.time += model.opt.timestep


def exact(step: Step) -> np.ndarray:
    """Impulses (nc, 3) by CANAL."""
    if not len(step.mu):
        return np.zeros((0, 3))
    return stiction.solve(step.problem(), "canal", tolerance=1e-8, max_iterations=200).impulse
