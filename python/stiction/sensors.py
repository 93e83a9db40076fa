"""Sensors of a batch: what people mount on robots, computed from a `stiction.Simulation`.

    sensors = Sensors(sim)
    position, orientation = sensors.body_pose("torso")           # (N, 3), (N, 4)
    feet = sensors.contacts(["left_foot", "right_foot"])         # feet.active, feet.air_time: (N, 2)

Names may be one or a sequence; a sequence adds an axis to the result. Results are new arrays of the simulation's dtype,
or tensors with ``array="torch"``. World axes, SI units, quaternions w, x, y, z.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .force_sensors import ForceSensors
from .mujoco_numbers import BALL, FREE, HINGE, NO_GRAVITY, SLIDE
from .named_sensors import NamedSensors
from .rotations import about_axis, cross, parts, product, rotation
from .simulation import Simulation


class Sensors(ForceSensors, NamedSensors):
    """Of one simulation. `Imu`, `Acceleration` and `Contacts` have a memory: their owner calls `advance` once per
    control step. RuntimeError where one is asked for and the simulation has gone on since, but on a GPU: there tensors
    are computed, and nothing waits for them.
    """

    def __init__(self, sim: Simulation):
        if not isinstance(sim, Simulation):
            raise TypeError(f"sim is {type(sim).__name__}, expected stiction.Simulation")
        self._sim, self._model = sim, sim.model
        self._array = sim._arrays.view
        self._constants: dict = {}
        self._with_memory: list[Imu | Acceleration | Contacts] = []
        self._told = None
        self._tell()

    def __getstate__(self) -> dict:
        """Pickles and copies: with the simulation."""
        return {name: value for name, value in vars(self).items() if name not in ("_array", "_constants")}

    def __setstate__(self, state: dict) -> None:
        vars(self).update(state, _array=state["_sim"]._arrays.view, _constants={})

    def _out(self, values):
        return self._sim._backend.real(values)

    def _rows(self, array: str, ids):
        return self._out(self._array(array)[:, ids])

    def _constant(self, name: str, values):
        """The array values() of the model's numbers where the simulation's are, made once."""
        if name not in self._constants:
            self._constants[name] = self._sim._backend.array(values())
        return self._constants[name]

    def _zeros(self, *shape):
        return self._sim._backend.zeros(*shape)

    def _model_rows(self, array: str, ids):
        """Of one of the model's arrays of numbers."""
        return self._constant(array, lambda: getattr(self._model, array))[ids]

    def _numbers(self, array: str, ids):
        """Of one of the model's arrays of indices: an int for an int."""
        if isinstance(ids, int):
            return int(getattr(self._model, array)[ids])
        return self._constant(array, lambda: np.asarray(getattr(self._model, array), np.int64))[ids]

    def _ids(self, names, kind: str):
        """The number of a body, site or joint, or an array of them."""
        number = getattr(self._model, f"{kind}_id")
        if isinstance(names, str):
            return number(names)
        if not isinstance(names, Iterable):
            raise TypeError(f"{names!r} is no name of a {kind} and no list of them")
        return self._constant(f"{kind} {tuple(names)}", lambda: np.array([number(name) for name in names], np.int64))

    # ---- bodies, sites, joints

    def body_pose(self, names):
        """Of body frames: positions (N, [k,] 3) in m, orientations (N, [k,] 4)."""
        ids = self._ids(names, "body")
        return self._rows("xpos", ids), self._rows("xquat", ids)

    def body_velocity(self, names):
        """Of body frames: velocities of their origins (N, [k,] 3) in m/s, angular velocities (N, [k,] 3) in rad/s."""
        ids = self._ids(names, "body")
        return self._rows("body_linvel", ids), self._rows("body_angvel", ids)

    def site_pose(self, names):
        """Positions (N, [k,] 3) in m, orientations (N, [k,] 4)."""
        ids = self._ids(names, "site")
        bodies = self._numbers("site_bodyid", ids)
        quat = product(self._array("xquat")[:, bodies], self._model_rows("site_quat", ids))
        return self._rows("site_xpos", ids), self._out(quat)

    def site_velocity(self, names):
        """Velocities (N, [k,] 3) in m/s, angular velocities (N, [k,] 3) in rad/s."""
        linear, angular = self._site_velocity(self._ids(names, "site"))
        return self._out(linear), self._out(angular)

    def _site_velocity(self, ids):
        bodies = self._numbers("site_bodyid", ids)
        angular = self._array("body_angvel")[:, bodies]
        arm = self._array("site_xpos")[:, ids] - self._array("xpos")[:, bodies]
        return self._array("body_linvel")[:, bodies] + cross(angular, arm), angular

    def geom_pose(self, names):
        """Positions (N, [k,] 3) in m, orientations (N, [k,] 4)."""
        position, orientation, _, _ = self._moving("geom", self._ids(names, "geom"))
        return self._out(position), self._out(orientation)

    def subtree_com(self, names):
        """Centres of mass of bodies with all they carry (N, [k,] 3), m; the world's is everything's."""
        return self._out(self._of_subtrees(names)[0])

    def subtree_velocity(self, names):
        """Velocities of these centres of mass (N, [k,] 3), m/s."""
        return self._out(self._of_subtrees(names)[1])

    def _of_subtrees(self, names):
        ids = [self._model.body_id(name) for name in ([names] if isinstance(names, str) else names)]
        com, velocity = self._subtrees(ids)
        return (com[:, 0], velocity[:, 0]) if isinstance(names, str) else (com, velocity)

    def _subtrees(self, bodies: list[int]):
        """Centres of mass and their velocities (N, k, 3); of what has no mass the body's own, as in MuJoCo."""
        model = self._model
        position, _, velocity, _ = self._moving("body", slice(None))
        carried = self._constant(f"carried {bodies}", lambda: self._carried(bodies))
        mass = self._parameter("body_mass")[:, None] * carried
        total = mass.sum(-1)[..., None]
        part = mass / (total + (total == 0))
        own = self._constant(f"own {bodies}", lambda: np.eye(model.nbody)[bodies])
        part = part + (total == 0) * own
        return part @ position, part @ velocity

    def _carried(self, bodies: list[int]) -> np.ndarray:
        """(k, nbody): 1 of what a body carries, itself among them."""
        carried = np.eye(self._model.nbody)[bodies]
        for other in range(1, self._model.nbody):
            carried[:, other] = np.maximum(carried[:, other], carried[:, self._model.body_parentid[other]])
        return carried

    def joint_state(self, names):
        """Of hinges and slides: positions (N, [k]) in rad or m, velocities (N, [k]) in rad/s or m/s."""
        for name in [names] if isinstance(names, str) else names:
            if self._model.jnt_type[self._model.joint_id(name)] not in (SLIDE, HINGE):
                raise ValueError(f"joints {names!r} are not all hinges or slides: read qpos and qvel of the others")
        ids = self._ids(names, "joint")
        qpos, qvel = (self._numbers(array, ids) for array in ("jnt_qposadr", "jnt_dofadr"))
        return self._rows("qpos", qpos), self._rows("qvel", qvel)

    def net_contact_force(self, names):
        """Sum of the contact forces on bodies in the last time step (N, [k,] 3), N; 0 after `Simulation.forward`."""
        return self._rows("net_contact_force", self._ids(names, "body"))

    # ---- Jacobians

    def body_jacobian(self, name: str, offset=(0.0, 0.0, 0.0)):
        """Of the point ``offset`` (m, body axes) of a body: (N, 6, nv), velocity then angular velocity over qvel."""
        body = self._model.body_id(name)
        arm = self._constant(f"offset {tuple(offset)}", lambda: np.asarray(offset, np.float64))
        at = self._array("xpos")[:, body] + rotation(self._array("xquat")[:, body]) @ arm
        return self._out(self._jacobian(body, at))

    def site_jacobian(self, name: str):
        """Of a site, such as an end effector: (N, 6, nv), velocity then angular velocity over qvel."""
        site = self._model.site_id(name)
        return self._out(self._jacobian(int(self._model.site_bodyid[site]), self._array("site_xpos")[:, site]))

    def _jacobian(self, body: int, at):
        m = self._model
        jacobian = self._zeros(self._sim.num_envs, 6, m.nv)
        while body > 0:
            origin, quat = self._array("xpos")[:, body], self._array("xquat")[:, body]
            first = int(m.body_jntadr[body])
            for joint in reversed(range(first, first + int(m.body_jntnum[body]))):
                dof, kind = int(m.jnt_dofadr[joint]), int(m.jnt_type[joint])
                frame = rotation(quat)
                anchor, axis = (frame @ self._model_rows(of, joint) for of in ("jnt_pos", "jnt_axis"))
                if kind == FREE:
                    jacobian[:, :3, dof : dof + 3] = self._constant("three axes", lambda: np.eye(3))
                if kind == SLIDE:
                    jacobian[:, :3, dof] = axis
                else:
                    start = dof + 3 * (kind == FREE)
                    for i, turned in enumerate([axis] if kind == HINGE else parts(frame)):
                        jacobian[:, 3:, start + i] = turned
                        jacobian[:, :3, start + i] = cross(turned, at - origin - anchor)
                if joint > first:
                    origin, quat = self._before(joint, origin, quat, anchor, axis)
            body = int(m.body_parentid[body])
        return jacobian

    def _before(self, joint: int, origin, quat, anchor, axis):
        """The pose of a body before one of its joints moved it: those that come first are not turned by it."""
        m, kind = self._model, int(self._model.jnt_type[joint])
        at = int(m.jnt_qposadr[joint])
        if kind == BALL:
            back = self._array("qpos")[:, at : at + 4] * self._constant("back", lambda: np.array([1.0, -1, -1, -1]))
        else:
            moved = self._array("qpos")[:, at] - self._model_rows("qpos0", at)
            if kind == SLIDE:
                return origin - axis * moved[:, None], quat
            back = about_axis(self._model_rows("jnt_axis", joint), -moved)
        quat = product(quat, back)
        return origin + anchor - rotation(quat) @ self._model_rows("jnt_pos", joint), quat

    # ---- with memory

    def imu(self, site: str) -> Imu:
        """An inertial measurement unit at a site."""
        return self._remember(Imu(self, self._model.site_id(site)))

    def _imu_at(self, site: int) -> Imu:
        """The one at a site, made when it is first asked for."""
        for sensor in self._with_memory:
            if isinstance(sensor, Imu) and sensor._site == site:
                return sensor
        return self._remember(Imu(self, site))

    def acceleration(self, joints) -> Acceleration:
        """Accelerations of hinges and slides, means over the last control step."""
        names = [joints] if isinstance(joints, str) else list(joints)
        return self._remember(Acceleration(self, names))

    def contacts(self, bodies, threshold: float = 1.0) -> Contacts:
        """Contact state and air time of bodies; in contact where the net force exceeds ``threshold`` in N."""
        names = [bodies] if isinstance(bodies, str) else list(bodies)
        return self._remember(Contacts(self, self._ids(names, "body"), threshold))

    def _remember(self, sensor):
        self._with_memory.append(sensor)
        return sensor

    def advance(self, seconds: float) -> None:
        """Tells the sensors with memory that a control step of so many seconds has been made."""
        for sensor in self._with_memory:
            sensor._advance(seconds)
        self._tell()

    def restart(self, envs=slice(None)) -> None:
        """Tells them that environments (indices or mask) have begun anew, or were put into another state."""
        for sensor in self._with_memory:
            sensor._restart(envs)
        self._tell(envs)

    def _tell(self, envs=slice(None)) -> None:
        """They know of all time steps so far."""
        if self._sim.device == "cpu":
            time = self._array("time")
            self._told = time * 1 if self._told is None else self._told
            self._told[envs] = time[envs]

    def _remembered(self, values):
        if self._told is not None and bool((self._array("time") > self._told).any()):
            raise RuntimeError(
                "the simulation has made time steps that its Sensors do not know of: accelerometers, accelerations and "
                "times in contact are those of control steps; make the Sensors first, and call advance(seconds) after "
                "each, restart() after a state is set"
            )
        return self._out(values)


class Imu:
    """Gyroscope and accelerometer, in the site's axes. The acceleration is the mean over the last control step."""

    def __init__(self, sensors: Sensors, site: int):
        self._sensors, self._site = sensors, site
        self._velocity = self._now()[0]
        self._force = sensors._zeros(*self._velocity.shape) - self._gravity

    def _now(self):
        return self._sensors._site_velocity(self._site)

    @property
    def _gravity(self):
        """(1, 3) or (N, 3)."""
        sim = self._sensors._sim
        disabled = bool(sim.model.core.disableflags & NO_GRAVITY)
        if "gravity" in sim.per_env and not disabled:
            return sim.params.gravity
        return self._sensors._constant("gravity", lambda: np.asarray(sim.model.gravity)[None] * (not disabled))

    def _in_site(self, vectors):
        s = self._sensors
        body, quat = int(s._model.site_bodyid[self._site]), s._model_rows("site_quat", self._site)
        axes = rotation(product(s._array("xquat")[:, body], quat))
        return (axes * vectors[:, :, None]).sum(1)

    def _advance(self, seconds: float) -> None:
        velocity = self._now()[0]
        self._force = (velocity - self._velocity) / seconds - self._gravity
        self._velocity = velocity

    def _restart(self, envs) -> None:
        """At rest in its frame: the support alone."""
        at_rest = self._sensors._zeros(*self._velocity.shape) - self._gravity
        self._velocity[envs], self._force[envs] = self._now()[0][envs], at_rest[envs]

    @property
    def gyro(self):
        """Angular velocity (N, 3), rad/s."""
        return self._sensors._out(self._in_site(self._now()[1]))

    @property
    def accelerometer(self):
        """Acceleration minus gravity (N, 3), m/s^2; at rest it points up with 9.81."""
        return self._sensors._remembered(self._in_site(self._force))


class Acceleration:
    """Of k hinges and slides, over the last control step; 0 as an episode begins."""

    def __init__(self, sensors: Sensors, names: list[str]):
        self._sensors, self._names = sensors, names
        self._velocity = self._now()
        self._change = sensors._zeros(*self._velocity.shape)

    def _now(self):
        return self._sensors.joint_state(self._names)[1]

    def _advance(self, seconds: float) -> None:
        velocity = self._now()
        self._change, self._velocity = (velocity - self._velocity) / seconds, velocity

    def _restart(self, envs) -> None:
        self._velocity[envs], self._change[envs] = self._now()[envs], 0

    @property
    def value(self):
        """(N, k), rad/s^2 or m/s^2."""
        return self._sensors._remembered(self._change)


class Contacts:
    """Whether k bodies touch something, for how long, and for how long not; of control steps."""

    def __init__(self, sensors: Sensors, bodies, threshold: float):
        self._sensors, self._bodies, self._threshold = sensors, bodies, threshold
        shape = sensors._sim.num_envs, len(bodies)
        self._air, self._touch, self._landed = (sensors._zeros(*shape) for _ in range(3))

    def _active(self):
        force = self._sensors._array("net_contact_force")[:, self._bodies]
        return (force * force).sum(-1) > self._threshold**2

    def _advance(self, seconds: float) -> None:
        active = self._active()
        self._landed = self._air * active
        self._air, self._touch = (self._air + seconds) * ~active, (self._touch + seconds) * active

    def _restart(self, envs) -> None:
        self._air[envs] = self._touch[envs] = self._landed[envs] = 0

    @property
    def active(self):
        """In contact in the last time step (N, k), bool."""
        return self._active()

    @property
    def force(self):
        """Net contact force (N, k, 3), N."""
        return self._sensors._rows("net_contact_force", self._bodies)

    @property
    def air_time(self):
        """Seconds since the last contact (N, k); 0 in contact."""
        return self._sensors._remembered(self._air)

    @property
    def contact_time(self):
        """Seconds in contact (N, k); 0 in the air."""
        return self._sensors._remembered(self._touch)

    @property
    def air_time_before_landing(self):
        """Where a body has landed in this control step, how long it had been in the air (N, k), s; 0 elsewhere."""
        return self._sensors._remembered(self._landed)
