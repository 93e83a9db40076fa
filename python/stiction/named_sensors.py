"""The sensors of a model's file, by their names; part of `Sensors`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .cut_loads import cut_load
from .mujoco_numbers import BALL, EQ_CONNECT, EQ_WELD, TRN_JOINT
from .rotations import cross, product, rotation
from .touch_zones import meets_zone

#: Kinds of MuJoCo's <sensor> that are computed, by what they are of.
_FRAME = "framepos framequat framexaxis frameyaxis framezaxis framelinvel frameangvel".split()
_SITE = "gyro accelerometer velocimeter touch magnetometer force torque".split()
_JOINT = "jointpos jointvel ballquat ballangvel jointactfrc".split()
_ACTUATOR = "actuatorpos actuatorvel actuatorfrc".split()
_TENDON = "tendonpos tendonvel".split()
_OTHER = "subtreecom subtreelinvel clock".split()
_OFFERED = {*_FRAME, *_SITE, *_JOINT, *_ACTUATOR, *_TENDON, *_OTHER}
_NEVER_CUT = {"framequat", "framexaxis", "frameyaxis", "framezaxis", "ballquat"}
_AXES = {"framexaxis": 0, "frameyaxis": 1, "framezaxis": 2}
#: Of objects that have a pose: the model's arrays of their body, position and orientation in it.
_PLACES = {
    "body": (None, "body_ipos", "body_iquat"),  # MuJoCo's word for the inertial frame
    "xbody": (None, None, None),
    "geom": ("geom_bodyid", "geom_pos", "geom_quat"),
    "site": ("site_bodyid", "site_pos", "site_quat"),
}


def sensor_kinds(m, mujoco) -> list[str]:
    """ "gyro" and its like, of every sensor of an MjModel."""
    names = {
        int(getattr(mujoco.mjtSensor, word)): word.removeprefix("mjSENS_").lower()
        for word in dir(mujoco.mjtSensor)
        if word.startswith("mjSENS_")
    }
    return [names[int(kind)] for kind in m.sensor_type]


def without_a_reading(m, mujoco, kept: dict[str, np.ndarray]) -> Iterator[tuple[int, str]]:
    """(number, why) of every sensor of an MjModel that `Sensors.named` does not offer; ``kept``: masks by kind."""
    for number, kind in enumerate(sensor_kinds(m, mujoco)):
        target = int(m.sensor_objid[number])
        of = "actuator" if kind in _ACTUATOR else "tendon" if kind in _TENDON else ""
        if kind not in _OFFERED:
            yield number, f"{kind} is not computed"
        elif kind in _FRAME and not all(of in _PLACES for of in _frames_of(m, mujoco, number)):
            yield number, f"{kind} of a camera is not computed"
        elif kind in ("force", "torque") and m.site_bodyid[target] == 0:
            yield number, f"{kind} on the world is not computed"
        elif kind in ("force", "torque") and np.isin(m.eq_type, (EQ_CONNECT, EQ_WELD)).any():
            yield number, f"{kind} is not computed beside connects and welds"
        elif any(np.any(getattr(m, f"sensor_{name}", np.zeros(m.nsensor))[number]) for name in ("delay", "interval")):
            yield number, "a delay or an interval is not simulated"
        elif of and not kept[of][target]:
            yield number, f"its {of} is not simulated"
        elif kind == "actuatorpos" and _on_a_ball(m, target):
            yield number, f"{kind} is not computed on ball joints"
        elif m.names[m.name_sensoradr[number]] == 0:
            yield number, "no name to ask for"


def _frames_of(m, mujoco, number: int) -> list[str]:
    """The kinds of object that a frame sensor is of, and relative to."""
    related = int(m.sensor_refid[number]) >= 0
    types = [m.sensor_objtype[number], *([m.sensor_reftype[number]] if related else [])]
    return [mujoco.mju_type2Str(int(kind)) for kind in types]


def _on_a_ball(m, actuator: int) -> bool:
    return m.actuator_trntype[actuator] == TRN_JOINT and m.jnt_type[m.actuator_trnid[actuator][0]] == BALL


class NamedSensors:
    """Of `Sensors`, whose arrays it reads. N environments."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the sensors in the model's file that `named` reads; the others are in `Model.import_report`."""
        return tuple(self._file_sensors)

    def named(self, name: str):
        """What a sensor of the model's file measures (N, dim): MuJoCo's ``sensordata``, within its cutoff, no noise.

        gyro, accelerometer, velocimeter, magnetometer, touch, force, torque; frame poses, axes, velocities, in a
        reference frame too; positions and velocities of joints, balls, fixed tendons and actuators, forces of
        actuators; centres of mass and velocities of subtrees; the clock. An accelerometer has a memory, from when it is
        first asked for, and wants `advance` after each control step: see `imu`. Force and torque are means over the
        last time step (MuJoCo's are of its beginning); before the first one, at rest.
        """
        if name not in self._file_sensors:
            there = ", ".join(map(repr, self.names)) or "none"
            raise KeyError(f"no sensor named {name!r} that is computed; there are: {there}")
        number, kind = self._file_sensors[name]
        m = self._model.mjmodel
        values = self._measured(m, number, kind)
        cutoff = float(m.sensor_cutoff[number])
        if cutoff > 0 and kind not in _NEVER_CUT:
            values = values.clip(-cutoff, cutoff)
        return self._out(values)

    @property
    def _file_sensors(self) -> dict[str, tuple[int, str]]:
        """Name -> number and kind."""
        if "file sensors" not in self._constants:
            self._constants["file sensors"] = self._found_in(self._model.mjmodel)
        return self._constants["file sensors"]

    def _found_in(self, m) -> dict[str, tuple[int, str]]:
        if m is None:
            return {}
        import mujoco

        kept = {
            kind: [getattr(m, kind)(i).name in getattr(self._model, f"{kind}_names") for i in range(count)]
            for kind, count in (("actuator", len(m.actuator_trntype)), ("tendon", m.ntendon))
        }
        left_out = {number for number, _ in without_a_reading(m, mujoco, kept)}
        kinds = sensor_kinds(m, mujoco)
        return {m.sensor(i).name: (i, kinds[i]) for i in range(m.nsensor) if i not in left_out}

    def _measured(self, m, number: int, kind: str):
        """(N, dim)"""
        target = int(m.sensor_objid[number])
        if kind == "clock":
            return self._array("time")[:, None]
        if kind in _FRAME:
            return self._of_frame(m, number, kind)
        if kind == "accelerometer":
            return self._imu_at(target).accelerometer
        if kind == "touch":
            return self._touch(m, target)
        if kind in _SITE:
            _, orientation, linear, angular = self._moving("site", target)
            if kind in ("force", "torque"):
                load = cut_load(self._sim, int(m.site_bodyid[target]), target)
                return _into(orientation, self._sim._computed(load[kind == "torque"], None))
            if kind == "magnetometer":
                return _into(orientation, self._constant("magnetic", lambda: np.asarray(m.opt.magnetic)[None]))
            return _into(orientation, angular if kind == "gyro" else linear)
        if kind in _JOINT:
            return self._of_joint(target, kind)
        if kind in _ACTUATOR:
            return self._of_actuator(m.actuator(target).name, kind)
        if kind in _TENDON:
            return self._of_tendon(self._model.tendon_id(m.tendon(target).name), kind)
        com, velocity = self._subtrees([target])
        return (com if kind == "subtreecom" else velocity)[:, 0]

    def _moving(self, kind: str, ids):
        """Positions, orientations, velocities and angular velocities (N, [k,] ...) of frames."""
        of_body, offset, turn = _PLACES[kind]
        bodies = ids if of_body is None else self._numbers(of_body, ids)
        position, orientation, linear, angular = (
            self._array(name)[:, bodies] for name in ("xpos", "xquat", "body_linvel", "body_angvel")
        )
        if offset is None:
            return position, orientation, linear, angular
        arm = (rotation(orientation) * self._parameter(offset)[:, ids][..., None, :]).sum(-1)
        turned = product(orientation, self._model_rows(turn, ids))
        return position + arm, turned, linear + cross(angular, arm), angular

    def _of_frame(self, m, number: int, kind: str):
        import mujoco

        of, *relative_to = _frames_of(m, mujoco, number)
        position, orientation, linear, angular = self._moving(of, int(m.sensor_objid[number]))
        for base in relative_to:
            origin, axes, carried, turning = self._moving(base, int(m.sensor_refid[number]))
            away = position - origin
            linear = _into(axes, linear - carried - cross(turning, away))
            position, angular = _into(axes, away), _into(axes, angular - turning)
            orientation = product(_conjugate(axes), orientation)
        if kind in _AXES:
            return rotation(orientation)[..., _AXES[kind]]
        return {"framepos": position, "framequat": orientation, "framelinvel": linear, "frameangvel": angular}[kind]

    def _touch(self, m, site: int):
        """What presses on the site's body (N, 1), N, where the way out of the body meets the site's volume."""
        import mujoco

        contact = self._sim.contact
        side = self._between(
            self._numbers("site_bodyid", site), None
        )  # 1: the normal goes into the body, -1: out of it
        place, axes, _, _ = self._moving("site", site)
        point = _into(axes[:, None], contact.pos - place[:, None])
        out = _into(axes[:, None], -contact.frame[..., 2, :] * side[..., None])
        shape = mujoco.mjtGeom(int(m.site_type[site])).name.removeprefix("mjGEOM_").lower()
        counted = abs(side) * meets_zone(shape, m.site_size[site], point, out)
        return (contact.impulse[..., 2] * counted).sum(1)[:, None] / self._sim.timestep

    def _of_joint(self, joint: int, kind: str):
        model = self._model
        at, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        if kind == "jointactfrc":
            return self._torques()[:, dof : dof + 1]
        if kind.startswith("joint"):
            return self._array("qpos")[:, at : at + 1] if kind == "jointpos" else self._array("qvel")[:, dof : dof + 1]
        return self._array("qpos")[:, at : at + 4] if kind == "ballquat" else self._array("qvel")[:, dof : dof + 3]

    def _of_actuator(self, name: str, kind: str):
        if kind == "actuatorfrc":
            return self.actuator_force(name)
        number = self._model.actuator_id(name)
        moved = self._actuator_lengths() if kind == "actuatorpos" else self._actuator_speeds()
        return moved[:, number : number + 1]

    def _of_tendon(self, tendon: int, kind: str):
        model = self._model
        begin = int(model.tendon_adr[tendon])
        total = self._zeros(self._sim.num_envs, 1)
        for term in range(begin, begin + int(model.tendon_num[tendon])):
            joint = int(model.wrap_jntid[term])
            moved = self._of_joint(joint, "jointpos" if kind == "tendonpos" else "jointvel")
            total = total + float(model.wrap_coef[term]) * moved
        return total


def _conjugate(quat):
    return quat * quat.new_tensor([1, -1, -1, -1]) if hasattr(quat, "detach") else quat * [1, -1, -1, -1]


def _into(orientation, vectors):
    """Vectors of the world (..., 3) in the axes of a frame."""
    return (rotation(orientation) * vectors[..., :, None]).sum(-2)
