"""What a URDF does not say and a simulation needs: where meshes are, motors or servos, a base that floats, a pose.

Model.from_urdf("laikago.urdf", floating=True, kp=60, kd=2, pose={"*_thigh_joint": 0.7, "*_calf_joint": -1.4})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from numbers import Real
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

#: Name of the floor and of the keyframe that are added.
FLOOR, HOME = "floor", "home"
_PACKAGE, _FILE = "package://", "file://"
#: Links that overlap by more than it where the robot stands do so by their shapes, m.
_OVERLAP = 1e-3
#: Above the floor, where distances are what they are, m.
_HIGH = 100.0


@dataclass(frozen=True)
class UrdfRobot:
    """The arguments of `Model.from_urdf` about the robot, see there."""

    floating: bool = False
    kp: float | Mapping[str, float] | None = None
    kd: float | Mapping[str, float] = 0.0
    pose: Mapping[str, float] | None = None
    self_collision: bool = False

    def __post_init__(self):
        if self.kp is None and np.any(self.kd != 0.0):
            raise ValueError(f"kd is {self.kd!r} without kp: servos have both, motors none")
        if self.pose is not None and not isinstance(self.pose, Mapping):
            raise TypeError(f"pose is {self.pose!r}, expected a dict of joints: {{'*_knee': -1.4}}")

    def prepare(self, spec, text: str, path: str | None, assets, mujoco) -> list[str]:
        """Changes a specification read from ``text``, of the file ``path`` or of none; notes, one line each."""
        notes = _unread(text)
        if path is not None:
            notes += _find_packages(spec, Path(path), assets)
        # Links that hang by fixed joints stay bodies, for their names and for excludes.
        spec.compiler.fusestatic = False
        notes += _limits_without_order(spec, mujoco) + _add_actuators(spec, self, mujoco)
        if self.floating:
            notes += _float(spec, self, mujoco)
        if self.floating or self.pose is not None:
            notes.append(_add_home(spec, self, mujoco))
        if not self.floating or self.self_collision:
            notes += _ignore_overlaps(spec, mujoco)
        return notes


def _unread(text: str) -> list[str]:
    """What of the file nothing reads, one line each."""
    try:
        robot = ElementTree.fromstring(text)
    except ElementTree.ParseError:  # of prefixes without a namespace, which MuJoCo does not mind
        return []
    if robot.find("link") is None:
        raise ValueError("it has no <link>; a xacro file is to be expanded first: xacro robot.urdf.xacro > robot.urdf")
    found = {
        "<contact> (friction, restitution) of link": robot.findall("link[contact]"),
        "the velocity limit of joint": [j for j in robot.findall("joint[limit]") if j.find("limit").get("velocity")],
        "<safety_controller> of joint": robot.findall("joint[safety_controller]"),
    }
    notes = []
    for what, elements in found.items():
        names = [repr(element.get("name", "")) for element in elements]
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            notes.append(f"ignored: {what} {', '.join(names[:3])}{more}")
    return notes


def _find_packages(spec, path: Path, assets) -> list[str]:
    """``package://name/a.stl``: below folders that the file is in, and a folder of that name if there is one; notes."""
    notes, folders = {}, path.resolve().parents
    for mesh in spec.meshes:
        mesh.file = mesh.file.removeprefix(_FILE)
        if not mesh.file.startswith(_PACKAGE):
            continue
        inner = mesh.file.removeprefix(_PACKAGE)
        package, _, rest = inner.partition("/")
        found = next((folder / inner for folder in folders if (folder / inner).is_file()), None)
        if found is None and not any((folder / package).is_dir() for folder in folders):
            found = next((folder / rest for folder in folders if (folder / rest).is_file()), None)
            if found is not None:
                home = str(found)[: -len(rest)].rstrip("/")
                notes[f"taken from {home!r}: package {package!r}, of which there is no folder"] = None
        if found is not None:
            mesh.file = str(found)
        elif not {inner, rest, Path(inner).name}.intersection(assets):
            raise ValueError(f"no file for the mesh {mesh.file!r} below the folders that the URDF is in")
    return list(notes)


def _scalar_joints(spec, mujoco) -> list:
    joints = [j for j in spec.joints if j.type in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)]
    for number, joint in enumerate(joints):
        joint.name = joint.name or f"joint_{number}"
    return joints


def _limits_without_order(spec, mujoco) -> list[str]:
    return [
        f"limits of joint '{joint.name}': {joint.range[0]:g} to {joint.range[1]:g} are in no order and bound nothing"
        for joint in _scalar_joints(spec, mujoco)
        if joint.range[0] > joint.range[1]
    ]


def _add_actuators(spec, robot: UrdfRobot, mujoco) -> list[str]:
    """One per hinge or slide that has none, of gear 1, named like it: a motor, or a position servo."""
    driven = {actuator.target for actuator in spec.actuators}
    names = [joint.name for joint in _scalar_joints(spec, mujoco) if joint.name not in driven]
    if not names:
        return []
    if robot.kp is None:
        for name in names:
            _add_motor(spec, spec.joint(name), mujoco)
        return [f"added: one motor per joint ({len(names)}), control = force or torque, range = the file's effort"]
    gains = zip(names, _of_joints("kp", robot.kp, names), _of_joints("kd", robot.kd, names), strict=True)
    for name, kp, kd in gains:
        servo = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        servo.set_to_position(kp=kp, kv=kd)  # the file's effort bounds the force of the joint
    return [f"added: one position servo per joint ({len(names)}), control = angle, force up to the file's effort"]


def _add_motor(spec, joint, mujoco) -> None:
    motor = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    motor.set_to_motor()
    low, high = joint.actfrcrange
    if low < high:
        motor.ctrlrange, motor.ctrllimited = joint.actfrcrange, 1


def _of_joints(what: str, given, names: list[str]) -> list[float]:
    """A number for each joint, of one number for all or of a table by patterns, whose first that fits counts."""
    if isinstance(given, Real):
        given = {"*": given}
    if not isinstance(given, Mapping) or not all(isinstance(value, Real) for value in given.values()):
        raise TypeError(f"{what} is {given!r}, expected a number, or a dict of joints: {{'*_knee': 40}}")
    if wrong := [value for value in given.values() if not 0 <= value < float("inf")]:
        raise ValueError(f"{what} is {wrong[0]}, expected 0 or more")
    _check_patterns(what, given, names)
    missing = [name for name in names if _first(given, name) is None]
    if missing:
        raise ValueError(f"{what} says nothing of joint {missing[0]!r}; '*' is all of them")
    return [float(_first(given, name)) for name in names]


def _first(table: Mapping[str, float], name: str) -> float | None:
    return next((value for pattern, value in table.items() if fnmatchcase(name, pattern)), None)


def _check_patterns(what: str, table: Mapping[str, float], names: list[str]) -> None:
    for pattern in table:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ValueError(f"{what} has {pattern!r}, which is no joint; there are: {', '.join(map(repr, names))}")


def _float(spec, robot: UrdfRobot, mujoco) -> list[str]:
    """A free joint for the root link, above a floor."""
    roots = spec.worldbody.bodies
    if len(roots) != 1:
        raise ValueError(f"floating: the file has {len(roots)} links without a parent, expected one")
    if roots[0].joints:
        raise ValueError(f"floating: the file's root {roots[0].name!r} is the world, from which a joint leads on")
    spec.compiler.discardvisual = False  # or the floor has no squares
    roots[0].add_freejoint(name="base")
    spec.add_texture(name=FLOOR, type=mujoco.mjtTexture.mjTEXTURE_2D, builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
                     rgb1=[0.32, 0.35, 0.38], rgb2=[0.4, 0.43, 0.46], width=128, height=128)  # fmt: skip
    material = spec.add_material(name=FLOOR, texrepeat=[1, 1], texuniform=True)
    textures = ["" for _ in material.textures]
    textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = FLOOR
    material.textures = textures
    spec.worldbody.add_geom(name=FLOOR, type=mujoco.mjtGeom.mjGEOM_PLANE, size=[40, 40, 40], material=FLOOR)
    roots[0].pos[2] -= _height(spec, mujoco)
    spec.worldbody.add_light(pos=[0, 0, 4], dir=[0.3, 0.2, -1], type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL)
    notes = [f"added: a free joint for {roots[0].name!r}, and a floor"]
    if not robot.self_collision:
        for geom in spec.geoms:
            geom.conaffinity = int(geom.name == FLOOR)
        notes.append("ignored: contact of the robot's links with each other, unless self_collision=True")
    return notes


def _add_home(spec, robot: UrdfRobot, mujoco) -> str:
    """The keyframe: joints at ``pose``, 0 where it says nothing, and what floats with its lowest geom on the floor."""
    pose = robot.pose or {}
    names = [joint.name for joint in _scalar_joints(spec, mujoco)]
    _check_patterns("pose", pose, names)
    model = spec.compile()
    data = mujoco.MjData(model)
    for name in names:
        joint = model.joint(name)
        angle = _first(pose, name) or 0.0
        low, high = joint.range
        if joint.limited[0] and not low <= angle <= high:
            raise ValueError(
                f"joint {name!r} would stand at {angle:g}, and moves from {low:.4g} to {high:.4g}: "
                f"say where, pose={{{name!r}: ...}}"
            )
        data.qpos[joint.qposadr[0]] = angle
    if robot.floating:
        data.qpos[2] -= _clearance(model, data, mujoco)
    targets = [_first(pose, actuator.target) or 0.0 for actuator in spec.actuators]
    controls = targets if robot.kp is not None else np.zeros(model.nu)
    spec.add_key(name=HOME, qpos=data.qpos, ctrl=controls)
    return f"added: the keyframe {HOME!r}, for reset(keyframe={HOME!r}); at first all joints are at 0"


def _ignore_overlaps(spec, mujoco) -> list[str]:
    """No contact between links that overlap at "home", or where all joints are at 0 or what is nearest in their range.

    Shapes of a URDF are hulls and boxes about links, which overlap at joints: no motion parts them. Of a root that is
    fixed MuJoCo, too, finds contacts with the links that hang from it, for they have no parent that moves.
    """
    model = spec.compile()
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    else:
        limited = np.flatnonzero(model.jnt_limited & (model.jnt_type >= int(mujoco.mjtJoint.mjJNT_SLIDE)))
        at = model.jnt_qposadr[limited]
        data.qpos[at] = np.clip(data.qpos[at], *model.jnt_range[limited].T)
    mujoco.mj_fwdPosition(model, data)
    names = [model.geom(g).name for g in range(model.ngeom)]
    pairs = {
        tuple(sorted(int(model.geom_bodyid[g]) for g in geoms))
        for geoms, dist in zip(data.contact.geom, data.contact.dist, strict=True)
        if dist < -_OVERLAP and FLOOR not in (names[geoms[0]], names[geoms[1]])
    }
    if not pairs:
        return []
    told = []
    for one, other in sorted(pairs):
        bodies = [model.body(one).name, model.body(other).name]
        spec.add_exclude(bodyname1=bodies[0], bodyname2=bodies[1])
        told.append(" and ".join(map(repr, bodies)))
    more = f" and {len(told) - 4} pairs more" if len(told) > 5 else ""
    return [f"ignored: contact of links whose shapes overlap: {', '.join(told[: 4 if more else 5])}{more}"]


def _clearance(model, data, mujoco) -> float:
    """Of the lowest geom that can touch the floor, m."""
    floor = model.geom(FLOOR).id
    moving = [g for g in range(model.ngeom) if g != floor and model.geom_contype[g]]
    if not moving:
        raise ValueError("floating: no link has a <collision> to stand on")
    data.qpos[2] += _HIGH
    mujoco.mj_forward(model, data)
    data.qpos[2] -= _HIGH
    return min(mujoco.mj_geomDistance(model, data, floor, g, 10 * _HIGH, None) for g in moving) - _HIGH


def _height(spec, mujoco) -> float:
    """The same with all joints at 0, where a simulation begins."""
    model = spec.compile()
    return _clearance(model, mujoco.MjData(model), mujoco)
