"""Random things between two or three fingers, one fixed and the others pressed on, held by friction for 10 s.

Boxes, random hulls, props and public meshes in any orientation. Until the fingers have closed the weight is carried; a
grasp counts as *closed* where the thing then stays on three points or more: not every one finds balance between fingers
that go straight, and what two points hold is free to turn about them.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import stiction

from bench.accuracy.one_world import ENGINES, turned
from bench.progress import progress, tell

THINGS = ("box", "hull", "prop", "mesh")
#: Props that fit between fingers as wide as a pad.
PROPS = ("bolt", "box", "bracket", "cup", "die", "gear", "mug", "nut", "wedge", "wrench")
#: Type and size; the first half size is towards the thing.
FINGERS = {
    "pad": (mujoco.mjtGeom.mjGEOM_BOX, (0.006, 0.012, 0.015)),
    "capsule": (mujoco.mjtGeom.mjGEOM_CAPSULE, (0.008, 0.015)),
    "ball": (mujoco.mjtGeom.mjGEOM_SPHERE, (0.01,)),
}
CARRIED, SETTLE, WATCHED = 0.5, 1.0, 10.0  # s
SLIP, CREEP = 1e-3, 1e-6  # m, m/s: bounds
RESTS = 1e-2  # m/s, below which a grasp has closed


def grasps(count: int, seed: int = 0) -> list[dict]:
    rng, chosen = np.random.default_rng(seed), []
    for i in range(count):
        fingers = 2 + i // len(THINGS) % 2
        kinds = ("pad", "capsule") if fingers == 2 else tuple(FINGERS)  # two balls hold nothing from turning
        chosen.append(
            {
                "thing": THINGS[i % len(THINGS)],
                "fingers": fingers,
                "finger": kinds[rng.integers(len(kinds))],
                "mu": float(rng.uniform(0.4, 1.0)),
                "grip": float(rng.uniform(3, 10)),  # of what carries the weight
                "timestep": float(rng.choice([0.001, 0.002, 0.004])),
                "seed": int(rng.integers(2**31)),
            }
        )
    return chosen


def thing_of(grasp: dict, meshes: list[Path], rng) -> mujoco.MjSpec:
    """A free body "held" in a world of its own."""
    name = PROPS[rng.integers(len(PROPS))]
    if grasp["thing"] == "prop":
        spec = mujoco.MjSpec.from_file(str(stiction.prop_path(name)))
        spec.body(name).name = "held"
        return spec
    spec = mujoco.MjSpec.from_string('<mujoco><worldbody><body name="held"><freejoint/></body></worldbody></mujoco>')
    geom = spec.body("held").add_geom(density=float(rng.uniform(300, 2000)))
    if grasp["thing"] == "box":
        geom.type, geom.size = mujoco.mjtGeom.mjGEOM_BOX, rng.uniform(0.008, 0.03, 3)
        return spec
    geom.type, geom.meshname = mujoco.mjtGeom.mjGEOM_MESH, "held"
    mesh = spec.add_mesh(name="held", inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX)
    if grasp["thing"] == "mesh" and meshes:
        mesh.file = str(meshes[rng.integers(len(meshes))])
        vertices = spec.compile().mesh_vert
        mesh.scale = np.full(3, rng.uniform(0.03, 0.06) / np.ptp(vertices, axis=0).max())
        return spec
    points = rng.standard_normal((rng.integers(8, 30), 3))
    points *= rng.uniform(0.012, 0.03, 3) / np.linalg.norm(points, axis=1)[:, None]
    mesh.uservert = points.ravel()
    return spec


def reach(m: mujoco.MjModel, direction: np.ndarray, quat: np.ndarray) -> float:
    """How far the thing goes in a direction from its centre of mass, in an orientation, m."""
    data, farthest = mujoco.MjData(m), 0.0
    data.qpos[:7] = [0, 0, 0, *quat]
    mujoco.mj_kinematics(m, data), mujoco.mj_comPos(m, data)
    for geom in range(m.ngeom):
        if m.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX:
            points = m.geom_size[geom] * np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, -1).T
        elif m.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH:
            mesh = m.geom_dataid[geom]
            points = m.mesh_vert[m.mesh_vertadr[mesh] :][: m.mesh_vertnum[mesh]]
        else:
            continue  # the pips of a die
        places = points @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom] - data.xipos[1]
        farthest = max(farthest, float((places @ direction).max()))
    return farthest


def model_of(grasp: dict, meshes: list[Path]) -> tuple[mujoco.MjModel, float]:
    """The world of a grasp, and the force of its fingers (N)."""
    rng = np.random.default_rng(grasp["seed"])
    spec = thing_of(grasp, meshes, rng)
    alone = spec.compile()
    quat = rng.standard_normal(4)
    quat /= np.linalg.norm(quat)
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, quat)
    centre = turn.reshape(3, 3) @ alone.body_ipos[1]
    held = spec.body("held")
    held.pos, held.quat = np.array([0, 0, 0.5]) - centre, quat
    for geom in held.geoms:
        geom.friction[0] = grasp["mu"]
    kind, size = FINGERS[grasp["finger"]]
    for i, angle in enumerate(2 * np.pi * np.arange(grasp["fingers"]) / grasp["fingers"]):
        out = np.array([np.cos(angle), np.sin(angle), 0.0])
        gap = 1e-4 if i == 0 else 1e-3
        place = out * (reach(alone, out, quat) + size[0] + gap) + (0, 0, 0.5)
        finger = spec.worldbody.add_body(
            name=f"finger{i}", pos=place, quat=[np.cos(angle / 2), 0, 0, np.sin(angle / 2)]
        )
        tip = finger.add_geom(type=kind, mass=0.05)
        tip.size[: len(size)], tip.friction[0] = size, grasp["mu"]
        if i:
            finger.add_joint(name=f"slide{i}", type=mujoco.mjtJoint.mjJNT_SLIDE, axis=[-1, 0, 0])
            motor = spec.add_actuator(name=f"motor{i}", target=f"slide{i}")
            motor.trntype = mujoco.mjtTrn.mjTRN_JOINT
    spec.option.timestep = grasp["timestep"]
    force = grasp["grip"] * alone.body_mass[1] * 9.81 / (grasp["mu"] * grasp["fingers"])
    return spec.compile(), float(force)


def hold(m: mujoco.MjModel, force: float, engine: str, **options) -> dict:
    """Whether the grasp closed; then slip of the thing (m, its turning taken at 2 cm), creep of the second half (m/s),
    overlap (m)."""
    world, body = ENGINES[engine](m, **options), m.body("held").id
    world.ctrl[:] = force
    world.xfrc[body, 2] = 9.81 * m.body_mass[body]
    world.advance(CARRIED)
    world.xfrc[body, 2] = 0
    world.advance(SETTLE)
    start, overlap = np.array(world.qpos[:7], float), 0.0
    fast = float(np.linalg.norm(world.qvel[:3]) + 0.02 * np.linalg.norm(world.qvel[3:6]))
    fell = abs(world.qpos[2] - m.qpos0[2])
    if not world.finite() or fell > 0.03 or fast > RESTS or world.points() < 3:
        return {"closed": False}
    path = []
    for _ in range(20):
        world.advance(WATCHED / 20)
        path.append(float(np.linalg.norm(world.qpos[:3] - start[:3])) + 0.02 * turned(world.qpos[3:7], start[3:]))
        overlap = max(overlap, world.overlap())
    return {"closed": True, "slip": max(path), "creep": abs(path[-1] - path[9]) / (WATCHED / 2), "overlap": overlap}


def run(count: int, meshes: list[Path], seed: int = 0) -> list[dict]:
    rows = []
    with progress(count, "grasp") as bar:
        for grasp in grasps(count, seed):
            m, force = model_of(grasp, meshes)
            rows.append(grasp | {"force": force} | {engine: hold(m, force, engine) for engine in ENGINES})
            tell(bar, grasp["thing"])
    return rows
