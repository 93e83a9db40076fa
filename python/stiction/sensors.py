"""Sensors of a batch: what people mount on robots, computed from a `stiction.Simulation`.

    sensors = Sensors(sim)
    position, orientation = sensors.body_pose("torso")           # (N, 3), (N, 4)
    feet = sensors.contacts(["left_foot", "right_foot"])         # feet.active, feet.air_time: (N, 2)

Names may be one or a sequence; a sequence adds an axis to the result. Results are new arrays of the simulation's dtype,
or tensors with ``array="torch"``. World axes, SI units, quaternions w, x, y, z.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .simulation import Simulation

_FREE, _BALL, _SLIDE, _HINGE = range(4)  # of jnt_type


def rotation(quat: np.ndarray) -> np.ndarray:
    """Matrices (..., 3, 3) of unit quaternions (..., 4)."""
    w, x, y, z = np.moveaxis(quat, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Quaternions (..., 4): first b, then a."""
    (aw, ax, ay, az), (bw, bx, by, bz) = np.moveaxis(a, -1, 0), np.moveaxis(b, -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


class Sensors:
    """Of one simulation. `Imu` and `Contacts` have a memory: their owner calls `advance` once per control step."""

    def __init__(self, sim: Simulation):
        if not isinstance(sim, Simulation):
            raise TypeError(f"sim is {type(sim).__name__}, expected stiction.Simulation")
        self._sim, self._model = sim, sim.model
        self._numpy = sim._arrays.numpy
        self._with_memory: list[Imu | Contacts] = []

    def _out(self, values: np.ndarray):
        values = np.ascontiguousarray(values, self._sim.dtype)
        return values if self._sim._arrays._tensor is None else self._sim._arrays._tensor(values)

    def _rows(self, array: str, ids):
        return self._out(self._numpy(array)[:, ids])

    # ---- bodies, sites, joints

    def body_pose(self, names):
        """Of body frames: positions (N, [k,] 3) in m, orientations (N, [k,] 4)."""
        ids = _ids(names, self._model.body_id)
        return self._rows("xpos", ids), self._rows("xquat", ids)

    def body_velocity(self, names):
        """Of body frames: velocities of their origins (N, [k,] 3) in m/s, angular velocities (N, [k,] 3) in rad/s."""
        ids = _ids(names, self._model.body_id)
        return self._rows("body_linvel", ids), self._rows("body_angvel", ids)

    def site_pose(self, names):
        """Positions (N, [k,] 3) in m, orientations (N, [k,] 4)."""
        ids = _ids(names, self._model.site_id)
        quat = product(self._numpy("xquat")[:, self._model.site_bodyid[ids]], self._model.site_quat[ids])
        return self._rows("site_xpos", ids), self._out(quat)

    def site_velocity(self, names):
        """Velocities (N, [k,] 3) in m/s, angular velocities (N, [k,] 3) in rad/s."""
        linear, angular = self._site_velocity(_ids(names, self._model.site_id))
        return self._out(linear), self._out(angular)

    def _site_velocity(self, ids):
        bodies = self._model.site_bodyid[ids]
        angular = self._numpy("body_angvel")[:, bodies]
        arm = self._numpy("site_xpos")[:, ids] - self._numpy("xpos")[:, bodies]
        return self._numpy("body_linvel")[:, bodies] + np.cross(angular, arm), angular

    def joint_state(self, names):
        """Of hinges and slides: positions (N, [k]) in rad or m, velocities (N, [k]) in rad/s or m/s."""
        ids = _ids(names, self._model.joint_id)
        if not np.isin(self._model.jnt_type[ids], (_SLIDE, _HINGE)).all():
            raise ValueError(f"joints {names!r} are not all hinges or slides: read qpos and qvel of the others")
        qpos, qvel = self._model.jnt_qposadr[ids], self._model.jnt_dofadr[ids]
        return self._rows("qpos", qpos), self._rows("qvel", qvel)

    def net_contact_force(self, names):
        """Sum of the contact forces on bodies in the last time step (N, [k,] 3), N."""
        return self._rows("net_contact_force", _ids(names, self._model.body_id))

    # ---- Jacobians

    def body_jacobian(self, name: str, offset=(0.0, 0.0, 0.0)):
        """Of the point ``offset`` (m, body axes) of a body: (N, 6, nv), velocity then angular velocity over qvel."""
        body = self._model.body_id(name)
        at = self._numpy("xpos")[:, body] + rotation(self._numpy("xquat")[:, body]) @ np.asarray(offset, np.float64)
        return self._out(self._jacobian(body, at))

    def site_jacobian(self, name: str):
        """Of a site, such as an end effector: (N, 6, nv), velocity then angular velocity over qvel."""
        site = self._model.site_id(name)
        return self._out(self._jacobian(int(self._model.site_bodyid[site]), self._numpy("site_xpos")[:, site]))

    def _jacobian(self, body: int, at: np.ndarray) -> np.ndarray:
        m, jacobian = self._model, np.zeros((self._sim.num_envs, 6, self._model.nv))
        while body > 0:
            frame = rotation(self._numpy("xquat")[:, body])
            origin = self._numpy("xpos")[:, body]
            for joint in range(m.body_jntadr[body], m.body_jntadr[body] + m.body_jntnum[body]):
                dof, kind = int(m.jnt_dofadr[joint]), int(m.jnt_type[joint])
                arm = at - (origin + frame @ m.jnt_pos[joint])
                if kind == _FREE:
                    jacobian[:, :3, dof : dof + 3] = np.eye(3)
                    dof += 3
                if kind == _SLIDE:
                    jacobian[:, :3, dof] = frame @ m.jnt_axis[joint]
                    continue
                axes = (frame @ m.jnt_axis[joint])[:, :, None] if kind == _HINGE else frame
                columns = slice(dof, dof + axes.shape[-1])
                jacobian[:, 3:, columns] = axes
                jacobian[:, :3, columns] = np.cross(axes, arm[:, :, None], axis=1)
            body = int(m.body_parentid[body])
        return jacobian

    # ---- with memory

    def imu(self, site: str) -> Imu:
        """An inertial measurement unit at a site."""
        return self._remember(Imu(self, self._model.site_id(site)))

    def contacts(self, bodies, threshold: float = 1.0) -> Contacts:
        """Contact state and air time of bodies; in contact where the net force exceeds ``threshold`` in N."""
        names = [bodies] if isinstance(bodies, str) else list(bodies)
        return self._remember(Contacts(self, np.array([self._model.body_id(n) for n in names]), threshold))

    def _remember(self, sensor):
        self._with_memory.append(sensor)
        return sensor

    def advance(self, seconds: float) -> None:
        """Tells the sensors with memory that a control step of so many seconds has been made."""
        for sensor in self._with_memory:
            sensor._advance(seconds)

    def restart(self, envs=slice(None)) -> None:
        """Tells them that environments (indices or mask) have begun anew."""
        for sensor in self._with_memory:
            sensor._restart(envs)


class Imu:
    """Gyroscope and accelerometer, in the site's axes. The acceleration is the mean over the last control step."""

    def __init__(self, sensors: Sensors, site: int):
        self._sensors, self._site = sensors, site
        self._velocity = self._now()[0].copy()
        self._force = np.zeros_like(self._velocity)
        self._restart(slice(None))

    def _now(self):
        return self._sensors._site_velocity(self._site)

    @cached_property
    def _quat(self) -> np.ndarray:
        return self._sensors._model.site_quat[self._site]

    def _in_site(self, vectors: np.ndarray) -> np.ndarray:
        s = self._sensors
        axes = rotation(product(s._numpy("xquat")[:, s._model.site_bodyid[self._site]], self._quat))
        return np.einsum("nij,ni->nj", axes, vectors)

    def _advance(self, seconds: float) -> None:
        velocity = self._now()[0]
        self._force = (velocity - self._velocity) / seconds - np.asarray(self._sensors._sim.params.gravity)
        self._velocity = velocity

    def _restart(self, envs) -> None:
        """At rest in its frame: the support alone."""
        gravity = np.broadcast_to(np.asarray(self._sensors._sim.params.gravity), self._velocity.shape)
        self._velocity[envs], self._force[envs] = self._now()[0][envs], -gravity[envs]

    @property
    def gyro(self):
        """Angular velocity (N, 3), rad/s."""
        return self._sensors._out(self._in_site(self._now()[1]))

    @property
    def accelerometer(self):
        """Acceleration minus gravity (N, 3), m/s^2; at rest it points up with 9.81."""
        return self._sensors._out(self._in_site(self._force))


class Contacts:
    """Whether k bodies touch something, for how long, and for how long not; of control steps."""

    def __init__(self, sensors: Sensors, bodies: np.ndarray, threshold: float):
        self._sensors, self._bodies, self._threshold = sensors, bodies, threshold
        shape = sensors._sim.num_envs, len(bodies)
        self._air, self._touch, self._landed = np.zeros(shape), np.zeros(shape), np.zeros(shape)

    def _active(self) -> np.ndarray:
        return np.linalg.norm(self._sensors._numpy("net_contact_force")[:, self._bodies], axis=-1) > self._threshold

    def _advance(self, seconds: float) -> None:
        active = self._active()
        self._landed = np.where(active, self._air, 0.0)
        self._air = np.where(active, 0.0, self._air + seconds)
        self._touch = np.where(active, self._touch + seconds, 0.0)

    def _restart(self, envs) -> None:
        self._air[envs] = self._touch[envs] = self._landed[envs] = 0

    @property
    def active(self):
        """In contact in the last time step (N, k), bool."""
        active = self._active()
        tensor = self._sensors._sim._arrays._tensor
        return active if tensor is None else tensor(active)

    @property
    def force(self):
        """Net contact force (N, k, 3), N."""
        return self._sensors._rows("net_contact_force", self._bodies)

    @property
    def air_time(self):
        """Seconds since the last contact (N, k); 0 in contact."""
        return self._sensors._out(self._air)

    @property
    def contact_time(self):
        """Seconds in contact (N, k); 0 in the air."""
        return self._sensors._out(self._touch)

    @property
    def air_time_before_landing(self):
        """Where a body has landed in this control step, how long it had been in the air (N, k), s; 0 elsewhere."""
        return self._sensors._out(self._landed)


def _ids(names, number):
    return number(names) if isinstance(names, str) else np.array([number(name) for name in names])
