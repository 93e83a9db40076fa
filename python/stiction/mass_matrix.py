"""The mass matrix and the bias force of a batch, in double, of positions and velocities as they are.

One way outward through the bodies gives each its velocity and the acceleration that it has at qacc = 0, gravity as an
acceleration upwards; then

    M = sum over bodies of m J_c' J_c + J_w' I J_w, armature on the diagonal,   c = sum of J_c' f + J_w' n,

J_c, J_w the Jacobians of its centre of mass and its turning, f = m a, n = I alpha + omega x I omega; [Featherstone2008]
ch. 5 and 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .mujoco_numbers import BALL, FREE, NO_GRAVITY, SLIDE
from .rotations import cross, product, rotation


@dataclass
class _Frame:
    """Of a body: each (N, ...), world's axes. `acceleration` and `spin_up` are those at qacc = 0."""

    position: np.ndarray
    orientation: np.ndarray
    velocity: np.ndarray
    spin: np.ndarray
    acceleration: np.ndarray
    spin_up: np.ndarray

    def moved(self, arm: np.ndarray) -> _Frame:
        """The same body at a point ``arm`` from its origin."""
        centripetal = cross(self.spin, cross(self.spin, arm))
        return _Frame(
            self.position + arm,
            self.orientation,
            self.velocity + cross(self.spin, arm),
            self.spin,
            self.acceleration + cross(self.spin_up, arm) + centripetal,
            self.spin_up,
        )

    def turned(self, spin: np.ndarray, quat: np.ndarray) -> _Frame:
        """Behind a joint at its origin that turns by ``quat``, in body axes, with the relative velocity ``spin``."""
        return _Frame(
            self.position,
            _unit(product(self.orientation, quat)),
            self.velocity,
            self.spin + spin,
            self.acceleration,
            self.spin_up + cross(self.spin, spin),
        )

    def in_world(self, vector: np.ndarray) -> np.ndarray:
        """Of one vector (3,), or of one each (N or 1, 3)."""
        return (rotation(self.orientation) @ vector[..., None])[..., 0]


@dataclass
class _Body:
    """One that moves, k dofs on its way from the world: Jacobians (N, k, 3), of its turning in its principal axes."""

    chain: list[int]
    moves: np.ndarray
    turns: np.ndarray
    mass: np.ndarray  # (N, 1)
    moments: np.ndarray  # (N, 3)
    force: np.ndarray  # that its centre of mass needs at qacc = 0 (N, 3)
    torque: np.ndarray  # the same, in its principal axes (N, 3)
    number: int
    center: np.ndarray  # of its mass (N, 3)
    momentum: np.ndarray  # (N, 3)
    spin: np.ndarray  # angular momentum about its centre of mass (N, 3)


def mass_matrix(sim) -> np.ndarray:
    """M (N, nv, nv) of a `stiction.Simulation`, MuJoCo's ``qM`` as a full matrix."""
    nv = sim.model.nv
    matrix = np.zeros((sim.num_envs, nv, nv))
    matrix[:, range(nv), range(nv)] = parameter(sim, "dof_armature")
    for body in _bodies(sim, *present(sim)):
        weighed = np.concatenate([body.mass[:, None] * body.moves, body.moments[:, None] * body.turns], axis=2)
        both = np.concatenate([body.moves, body.turns], axis=2)
        matrix[:, np.array(body.chain)[:, None], body.chain] += weighed @ both.transpose(0, 2, 1)
    return matrix


def bias(sim) -> np.ndarray:
    """c (N, nv) of a `stiction.Simulation`, MuJoCo's ``qfrc_bias``."""
    forces = np.zeros((sim.num_envs, sim.model.nv))
    for body in _bodies(sim, *present(sim)):
        forces[:, body.chain] += (body.moves @ body.force[:, :, None] + body.turns @ body.torque[:, :, None])[:, :, 0]
    return forces


def momenta(sim, qpos: np.ndarray, qvel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of all bodies (N, nbody, 3) at these positions and velocities: linear, and angular about the world's origin."""
    linear, angular = (np.zeros((sim.num_envs, sim.model.nbody, 3)) for _ in range(2))
    for body in _bodies(sim, qpos, qvel):
        linear[:, body.number] = body.momentum
        angular[:, body.number] = body.spin + cross(body.center, body.momentum)
    return linear, angular


def present(sim) -> tuple[np.ndarray, np.ndarray]:
    """qpos and qvel, in double."""
    return tuple(sim._arrays.read(name).astype(np.float64) for name in ("qpos", "qvel"))


def _bodies(sim, qpos: np.ndarray, qvel: np.ndarray) -> Iterator[_Body]:
    model, n = sim.model, sim.num_envs
    mass, inertia, gravity = (parameter(sim, name) for name in ("body_mass", "body_inertia", "gravity"))
    places, centres = parameter(sim, "body_pos"), parameter(sim, "body_ipos")
    up = -gravity * (not model.disableflags & NO_GRAVITY)
    zero, none = np.zeros((n, 3)), np.broadcast_to([1.0, 0.0, 0.0, 0.0], (n, 4))
    frames, chains = [_Frame(zero, none, zero, zero, zero + up, zero)], [[]]
    axes = np.zeros((n, model.nv, 3))  # of turning dofs; else the direction of the slide
    anchors, turning = np.zeros((n, model.nv, 3)), np.zeros(model.nv, bool)

    for body in range(1, model.nbody):
        frame, dofs = _mounted(frames[model.body_parentid[body]], places[:, body], model.body_quat[body]), []
        for joint in range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body]):
            frame, own = _beyond(frame, model, joint, qpos, qvel, up, axes, anchors, turning)
            dofs += own
        frames.append(frame)
        chains.append(chain := chains[model.body_parentid[body]] + dofs)
        if not chain:
            continue

        heavy = frame.moved(frame.in_world(centres[:, body]))
        principal = rotation(product(frame.orientation, model.body_iquat[body]))
        m, moments = mass[:, body, None], inertia[:, body]
        spin, spin_up = ((vector[:, None] @ principal)[:, 0] for vector in (heavy.spin, heavy.spin_up))
        torque = moments * spin_up + cross(spin, moments * spin)
        turns = np.where(turning[chain, None], axes[:, chain], 0)
        arms = heavy.position[:, None] - anchors[:, chain]
        moves = np.where(turning[chain, None], cross(turns, arms), axes[:, chain])
        angular = (principal @ (moments * spin)[:, :, None])[:, :, 0]
        forces = m * heavy.acceleration, torque
        of_mass = heavy.position, m * heavy.velocity, angular
        yield _Body(chain, moves, turns @ principal, m, moments, *forces, body, *of_mass)


def _mounted(parent: _Frame, place: np.ndarray, quat: np.ndarray) -> _Frame:
    """The body's frame on its parent, before its joints."""
    frame = parent.moved(parent.in_world(place))
    return frame.turned(np.zeros_like(frame.spin), quat[None])


def _beyond(frame: _Frame, model, joint: int, qpos, qvel, up, axes, anchors, turning) -> tuple[_Frame, list[int]]:
    """The frame behind a joint, and the joint's dofs, whose axes and anchors it notes."""
    kind, at, dof = (int(getattr(model, name)[joint]) for name in ("jnt_type", "jnt_qposadr", "jnt_dofadr"))
    zero = np.zeros_like(frame.spin)
    if kind == FREE:
        orientation = _unit(qpos[:, at + 3 : at + 7])
        axes[:, dof : dof + 3] = np.eye(3)
        axes[:, dof + 3 : dof + 6] = rotation(orientation).transpose(0, 2, 1)
        anchors[:, dof : dof + 6] = qpos[:, None, at : at + 3]
        turning[dof + 3 : dof + 6] = True
        spin = np.einsum("nkx,nk->nx", axes[:, dof + 3 : dof + 6], qvel[:, dof + 3 : dof + 6])
        velocity = qvel[:, dof : dof + 3]
        return _Frame(qpos[:, at : at + 3], orientation, velocity, spin, zero + up, zero), [*range(dof, dof + 6)]
    if kind == SLIDE:
        axis = axes[:, dof] = frame.in_world(model.jnt_axis[joint])
        frame = frame.moved(axis * (qpos[:, at, None] - model.qpos0[at]))
        speed = axis * qvel[:, dof, None]
        frame.velocity = frame.velocity + speed
        frame.acceleration = frame.acceleration + 2 * cross(frame.spin, speed)
        return frame, [dof]
    frame = frame.moved(frame.in_world(model.jnt_pos[joint]))
    if kind == BALL:
        dofs, quat = [*range(dof, dof + 3)], _unit(qpos[:, at : at + 4])
        axes[:, dofs] = rotation(product(frame.orientation, quat)).transpose(0, 2, 1)
    else:
        dofs, half = [dof], (qpos[:, at, None] - model.qpos0[at]) / 2
        quat = np.concatenate([np.cos(half), np.sin(half) * model.jnt_axis[joint]], axis=1)
        axes[:, dof] = frame.in_world(model.jnt_axis[joint])
    anchors[:, dofs], turning[dofs] = frame.position[:, None], True
    frame = frame.turned(np.einsum("nkx,nk->nx", axes[:, dofs], qvel[:, dofs]), quat)
    return frame.moved(-frame.in_world(model.jnt_pos[joint])), dofs


def parameter(sim, name: str) -> np.ndarray:
    """(N, ...) of each environment, or (1, ...) of the model. Masses of its own scale its inertias, as in a step."""
    if name in sim.per_env:
        return sim._arrays.read(f"params.{name}").astype(np.float64)
    of_model = np.asarray(getattr(sim.model, name), np.float64)[None]
    if name != "body_inertia" or "body_mass" not in sim.per_env:
        return of_model
    masses = np.asarray(sim.model.body_mass, np.float64)
    some = masses > 0
    return of_model * np.where(some, parameter(sim, "body_mass") / np.where(some, masses, 1), 1)[:, :, None]


def _unit(quat: np.ndarray) -> np.ndarray:
    """Unit quaternions; of zeros the identity, as in MuJoCo."""
    size = np.linalg.norm(quat, axis=1, keepdims=True)
    return np.where(size > 0, quat / np.where(size > 0, size, 1), [1.0, 0.0, 0.0, 0.0])
