"""``python -m bench.accuracy.rest``: do things come to rest, and stay? Beside MuJoCo. See bench/README.md.

Public meshes and the package's props dropped on a plane and a table; prisms with chamfers and rounded feet on a slope;
bodies on floors far larger than they are; what slides over flush tiles; random things between fingers; pegs wedged in
holes. Needs $STICTION_DATA for the meshes; without it there are the others.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import mujoco
import numpy as np
import stiction

from bench.accuracy import hands, pegs
from bench.progress import progress, tell
from bench.step import machine

#: 25 meshes: links of robots, dishes, solids, scans. Below $STICTION_DATA.
MESHES = """
brax/brax/test_data/meshes/dodecahedron.stl
brax/brax/test_data/meshes/tetrahedron.stl
bullet3/pybullet_data/laikago/chassis.obj
bullet3/pybullet_data/laikago/hip_motor_mirror.obj
bullet3/pybullet_data/laikago/lower_leg3.obj
bullet3/pybullet_data/laikago/upper_leg_left.obj
drake_models/dishes/assets/plate_8in_col.obj
example-robot-data/robots/laikago_description/meshes/hip.obj
example-robot-data/robots/laikago_description/meshes/thigh.obj
example-robot-data/robots/solo_description/meshes/cylinder.obj
example-robot-data/robots/solo_description/meshes/stl/solo12/solo_12_base.stl
mujoco/model/flex/asset/bunny.obj
mujoco/model/plugin/sdf/asset/spot.obj
mujoco_menagerie/anybotics_anymal_c/assets/battery.obj
mujoco_menagerie/anybotics_anymal_c/assets/foot.obj
mujoco_menagerie/anybotics_anymal_c/assets/lidar.obj
mujoco_menagerie/anybotics_anymal_c/assets/wide_angle_camera.obj
mujoco_menagerie/franka_emika_panda/assets/hand.stl
mujoco_menagerie/franka_emika_panda/assets/link0.stl
mujoco_menagerie/kuka_iiwa_14/assets/band.obj
mujoco_menagerie/kuka_iiwa_14/assets/link_4_orange.obj
mujoco_menagerie/shadow_hand/assets/f_proximal.obj
mujoco_menagerie/shadow_hand/assets/forearm_collision.obj
mujoco_menagerie/wonik_allegro/assets/link_0.0.stl
mujoco_menagerie/wonik_allegro/assets/link_15.0_tip.stl
""".split()
DATA = Path(os.environ.get("STICTION_DATA", "data"))
SIZE = 0.1  # m, the longest side that meshes are scaled to
RESTS = 0.01  # rad/s, below which what was dropped counts as at rest
PLANE = '<geom type="plane" size="0 0 1" friction="1"/>'
TABLE = '<geom type="box" size=".6 .6 .05" pos="0 0 -.05" friction="1"/>'


def numbers(values) -> str:
    return " ".join(f"{float(value):.9g}" for value in np.ravel(values))


def one_body(
    geom: str, floor: str, *, pos=(0, 0, 0), quat=(1, 0, 0, 0), asset="", timestep=0.002, gravity=(0, 0, -9.81)
):
    """A free body of one geom over static geometry."""
    option = f'<option timestep="{timestep}" gravity="{numbers(gravity)}"/>'
    body = f'<body name="b" pos="{numbers(pos)}" quat="{numbers(quat)}"><freejoint/>{geom}</body>'
    return f"<mujoco>{option}<asset>{asset}</asset><worldbody>{floor}{body}</worldbody></mujoco>"


def hull_asset(points, name="hull") -> str:
    return f'<mesh name="{name}" vertex="{numbers(points)}"/>'


def prism(sides=6, radius=0.05, height=0.1, chamfer=0.0) -> np.ndarray:
    """Corners of a prism about its centre; `chamfer`: of the edges of its ends, 45 degrees.   m"""
    angle = 2 * np.pi * np.arange(sides) / sides
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    levels = [(radius, height / 2 - chamfer), (radius - chamfer, height / 2)] if chamfer else [(radius, height / 2)]
    return np.array([(*(r * p), s * z) for r, z in levels for s in (-1, 1) for p in ring])


def rounded_foot(radius: float, half=(0.05, 0.04, 0.03), steps=8) -> np.ndarray:
    """Corners of a box whose lower edges are rounded: a quarter circle of `steps` chords.   m"""
    points = [(sx * half[0], sy * half[1], half[2]) for sx in (-1, 1) for sy in (-1, 1)]
    for turn in np.linspace(0, np.pi / 2, steps + 1):
        inset, z = radius * (1 - np.sin(turn)), -half[2] + radius * (1 - np.cos(turn))
        points += [(sx * (half[0] - inset), sy * (half[1] - inset), z) for sx in (-1, 1) for sy in (-1, 1)]
    return np.array(points)


def mesh_body(points, floor, **scene) -> str:
    """A hull of 1000 kg/m^3 over static geometry."""
    return one_body('<geom type="mesh" mesh="hull" friction="1"/>', floor, asset=hull_asset(points), **scene)


def dropped_mesh(path: Path, floor: str) -> mujoco.MjModel:
    """The mesh of a file, 100 mm long, above a floor."""

    def compiled(scale):
        spec = mujoco.MjSpec.from_string(one_body('<geom type="sphere" size=".01"/>', floor))
        spec.add_mesh(name="m", file=str(path), scale=[scale] * 3, inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX)
        geom = spec.body("b").first_geom()
        geom.type, geom.meshname, geom.friction[0] = mujoco.mjtGeom.mjGEOM_MESH, "m", 1
        spec.body("b").pos = [0, 0, 1.2 * SIZE]
        return spec.compile()

    vertices = compiled(1.0).mesh_vert
    return compiled(SIZE / np.ptp(vertices, axis=0).max())


def random_quat(rng) -> np.ndarray:
    q = rng.standard_normal(4)
    return q / np.linalg.norm(q)


def ours(model, seconds: float, watch: float, quat=None, dtype="float32", **simulation) -> dict:
    """The largest speeds of body b (m/s, rad/s) in the last `watch` of `seconds`, how far it went (m), its pose."""
    if isinstance(model, str):
        model = stiction.Model.from_mjcf(model)
    sim = stiction.Simulation(model, 1, num_threads=1, dtype=dtype, **simulation)
    if quat is not None:
        sim.qpos[0, 3:7] = quat
    sim.step(round((seconds - watch) / sim.timestep))
    start, linear, angular, overlap = sim.qpos[0, :3].astype(float), 0.0, 0.0, 0.0
    for _ in range(round(watch / sim.timestep)):
        sim.step()
        overlap = max(overlap, float(sim.certificate.penetration[0]))
        linear = max(linear, float(np.linalg.norm(sim.qvel[0, :3])))
        angular = max(angular, float(np.linalg.norm(sim.qvel[0, 3:6])))
    creep = float(np.linalg.norm(sim.qpos[0, :3] - start))
    return {
        "linear": linear,
        "angular": angular,
        "creep": creep,
        "overlap": overlap,
        "qpos": sim.qpos[0].tolist(),
        "status": int(sim.status[0]),
    }


def mujocos(model, seconds: float, watch: float, quat=None) -> dict:
    if isinstance(model, str):
        model = mujoco.MjModel.from_xml_string(model)
    data = mujoco.MjData(model)
    if quat is not None:
        data.qpos[3:7] = quat
    mujoco.mj_step(model, data, round((seconds - watch) / model.opt.timestep))
    start, linear, angular, overlap = data.qpos[:3].copy(), 0.0, 0.0, 0.0
    for _ in range(round(watch / model.opt.timestep)):
        mujoco.mj_step(model, data)
        overlap = max(overlap, float(-data.contact.dist.min(initial=0.0)))
        linear = max(linear, float(np.linalg.norm(data.qvel[:3])))
        angular = max(angular, float(np.linalg.norm(data.qvel[3:6])))
    creep = float(np.linalg.norm(data.qpos[:3] - start))
    found = {"linear": linear, "angular": angular, "creep": creep, "overlap": overlap}
    return found | {"qpos": data.qpos.tolist()}


# ---- what is measured -----------------------------------------------------------------------------------------------


def dropped_prop(name: str, floor: str) -> mujoco.MjModel:
    """A prop of the package above a floor."""
    text = f'<mujoco><include file="{stiction.prop_path(name)}"/><worldbody>{floor}</worldbody></mujoco>'
    m = mujoco.MjModel.from_xml_string(text)
    m.qpos0[2] = m.body_pos[1, 2] = 0.4
    return m


def drops(data: Path, seed=0) -> list[dict]:
    """Every mesh and prop on a plane and on a table, from a random pose; speeds in the last second of six."""
    rng, rows = np.random.default_rng(seed), []
    things = {name: lambda floor, name=name: dropped_mesh(data / name, floor) for name in MESHES}
    things |= {name: lambda floor, name=name: dropped_prop(name, floor) for name in stiction.prop_names()}
    with progress(2 * len(things), "drop") as bar:
        for name, make in things.items():
            for floor_name, floor in (("plane", PLANE), ("table", TABLE)):
                quat = random_quat(rng)
                tell(bar, Path(name).name)
                if name in MESHES and not (data / name).exists():
                    continue
                m = make(floor)
                row = {"mesh": name, "floor": floor_name, "stiction": ours(stiction.Model.from_mjmodel(m), 6, 1, quat)}
                rows.append(row | {"MuJoCo": mujocos(m, 6, 1, quat)})
    return rows


def on_slopes() -> dict[str, str]:
    """What stands on 10 degrees at friction 1: name -> MJCF, gravity turned."""
    turn = np.radians(10)
    gravity = (9.81 * np.sin(turn), 0, -9.81 * np.cos(turn))
    scenes = {}
    for floor_name, floor in (("plane", PLANE), ("table", TABLE)):
        for chamfer in (0.0, 2e-4, 1e-3):
            points = prism(chamfer=chamfer)
            scene = mesh_body(points, floor, pos=(0, 0, 0.05), gravity=gravity)
            scenes[f"prism, chamfer {1e3 * chamfer:g} mm, {floor_name}"] = scene
        for radius in (1e-3, 5e-3, 15e-3):
            scene = mesh_body(rounded_foot(radius), floor, pos=(0, 0, 0.03), gravity=gravity)
            scenes[f"foot rounded by {1e3 * radius:g} mm, {floor_name}"] = scene
    return scenes


def large_floors() -> dict[str, str]:
    """Bodies on floors far larger than they are: name -> MJCF."""
    scenes = {}
    for side, floor in ((0.02, 20), (0.05, 40), (0.05, 100), (0.1, 100), (0.2, 200)):
        geom = f'<geom type="box" size="{numbers([side / 2] * 3)}" density="1000"/>'
        half = [floor / 2, floor / 2, 0.5]
        corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
        box = f'<geom type="box" size="{numbers(half)}" pos="0 0 -.5" friction="1"/>'
        mesh = '<geom type="mesh" mesh="floor" pos="0 0 -.5" friction="1"/>'
        pose = {"pos": (0.3, 0.2, side / 2), "quat": (np.cos(0.2), 0, 0, np.sin(0.2))}
        scenes[f"{1e3 * side:g} mm cube on a box of {floor} m"] = one_body(geom, box, **pose)
        scenes[f"{1e3 * side:g} mm cube on a mesh of {floor} m"] = one_body(
            geom, mesh, asset=hull_asset(corners, "floor"), **pose
        )
    return scenes


#: What slides: geom, height of its origin (m), turn about x (rad).
SLIDERS = {
    "box": ('<geom type="box" size=".05 .04 .03" mass="1" friction="0"/>', 0.03, 0.0),
    "capsule": ('<geom type="capsule" size=".03 .06" mass="1" friction="0"/>', 0.03, np.pi / 2),
    "mesh": ('<geom type="mesh" mesh="hull" mass="1" friction="0"/>', 0.03, 0.0),
    "ball": ('<geom type="sphere" size=".05" mass="1" friction="0"/>', 0.05, 0.0),
}


def tiles(slider: str, timestep: float, speed: float, seed: int, mesh=False) -> tuple[str, np.ndarray]:
    """A body that slides 1.5 m over frictionless flush tiles of 0.5 m, turned and scaled at random: MJCF and qvel.

    The tiles are boxes, or hulls that are as large.
    """
    rng = np.random.default_rng(seed)
    geom, height, roll = SLIDERS[slider]
    scale, yaw, heading = rng.uniform(0.7, 1.4), rng.uniform(-np.pi, np.pi), rng.uniform(-0.3, 0.3)
    first, *rest = geom.split('size="')
    if rest:
        size, tail = rest[0].split('"', 1)
        geom = f'{first}size="{numbers(np.array(size.split(), float) * scale)}"{tail}'
    corners = np.array([(x, y, z) for x in (-0.25, 0.25) for y in (-0.25, 0.25) for z in (-0.05, 0.05)])
    tile = 'type="mesh" mesh="tile"' if mesh else 'type="box" size=".25 .25 .05"'
    floor = "".join(
        f'<geom {tile} pos="{x / 2:g} {y / 2:g} -.05" friction="0"/>' for x in range(-1, 5) for y in range(-1, 2)
    )
    quat = np.zeros(4)
    about_z, about_x = (
        np.array([np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)]),
        np.array([np.cos(roll / 2), np.sin(roll / 2), 0, 0]),
    )
    mujoco.mju_mulQuat(quat, about_z, about_x)
    start = (rng.uniform(-0.1, 0.1), rng.uniform(-0.1, 0.1), height * scale)
    asset = hull_asset(prism(6, 0.05 * scale, 2 * height * scale)) + hull_asset(corners, "tile")
    qvel = np.array([speed * np.cos(heading), speed * np.sin(heading), 0, 0, 0, 0])
    return one_body(geom, floor, pos=start, quat=quat, asset=asset, timestep=timestep), qvel


def slide(scene: str, qvel: np.ndarray, engine: str) -> tuple[float, float]:
    """(share of the speed lost after 1.5 m, highest rise (m)); a slider that stops is watched for twice the time."""
    speed = np.linalg.norm(qvel[:3])
    if engine == "MuJoCo":
        m = mujoco.MjModel.from_xml_string(scene)
        d = mujoco.MjData(m)
        d.qvel[:] = qvel
        steps, start, top = round(1.5 / speed / m.opt.timestep), d.qpos[2], 0.0
        for _ in range(steps):
            mujoco.mj_step(m, d)
            top = max(top, d.qpos[2] - start)
        return 1 - np.linalg.norm(d.qvel[:2]) / speed, top
    sim = stiction.Simulation(stiction.Model.from_mjcf(scene), 1, num_threads=1)
    sim.qvel[0] = qvel
    steps, start, top = round(1.5 / speed / sim.timestep), float(sim.qpos[0, 2]), 0.0
    for _ in range(steps):
        sim.step()
        top = max(top, float(sim.qpos[0, 2]) - start)
    return 1 - float(np.linalg.norm(sim.qvel[0, :2])) / speed, top


def seams(runs: int) -> list[dict]:
    rows = []
    for slider in SLIDERS:
        for timestep, speed in ((0.002, 1.0), (0.005, 1.0), (0.005, 2.0), (0.01, 2.0)):
            row = {"slider": slider, "timestep": timestep, "speed": speed}
            for engine in ("stiction", "MuJoCo"):
                found = np.array([slide(*tiles(slider, timestep, speed, seed), engine) for seed in range(runs)])
                row[engine] = {"caught": float(np.mean(found[:, 0] > 0.01)), "loss": float(found[:, 0].max())}
                row[engine]["hop"] = float(found[:, 1].max())
            rows.append(row)
    return rows


# ---- what is told ---------------------------------------------------------------------------------------------------

ENGINES = ("stiction", "MuJoCo")


def most(rows, key: str, scale: float) -> str:
    values = [scale * row[key] for row in rows if key in row] or [0.0]
    return f"{np.median(values):.2g} / {max(values):.2g}"


def tell_drops(arguments) -> tuple[list, dict]:
    rows, cells = drops(arguments.data), {}
    for engine in ENGINES:
        found = [row[engine] for row in rows]
        still = sum(one["angular"] < RESTS for one in found)
        cells[engine] = [f"{still} of {len(rows)}", most(found, "creep", 1e6), most(found, "overlap", 1e6)]
    for row in rows:
        turning = " ".join(f"{row[engine]['angular']:.1e}" for engine in ENGINES)
        if row["stiction"]["angular"] >= RESTS:
            print(f"  {row['mesh']} on the {row['floor']}: {turning} rad/s")
    return rows, {f"dropped, below {RESTS} rad/s in the sixth second": cells}


def tell_slopes(arguments) -> tuple[dict, dict]:
    rows, cells = {}, {}
    print(
        "| on 10 degrees for 30 s | creep, mm: stiction | MuJoCo | turning, rad/s: stiction | MuJoCo |"
        + "\n"
        + "|---" * 5
        + "|"
    )
    for name, scene in on_slopes().items():
        rows[name] = {"stiction": ours(scene, 31, 30), "MuJoCo": mujocos(scene, 31, 30)}
        line = [f"{1e3 * rows[name][e]['creep']:.2g}" for e in ENGINES]
        line += [f"{rows[name][e]['angular']:.1e}" for e in ENGINES]
        print(f"| {name} | " + " | ".join(line) + " |")
    for engine in ENGINES:
        found = [row[engine] | {"creep": row[engine]["creep"] / 30} for row in rows.values()]
        still = sum(one["creep"] < 1e-6 for one in found)
        cells[engine] = [f"{still} of {len(rows)}", most(found, "creep", 1e6), most(found, "overlap", 1e6)]
    return rows, {"on a slope for 30 s, creep below 1 um/s": cells}


def tell_floors(arguments) -> tuple[dict, dict]:
    rows, cells = {}, {}
    print("| on large floors | turning, rad/s: stiction | MuJoCo |\n|---|---|---|")
    for name, scene in large_floors().items():
        rows[name] = {"stiction": ours(scene, 3, 1), "MuJoCo": mujocos(scene, 3, 1)}
        print(f"| {name} | " + " | ".join(f"{rows[name][e]['angular']:.1e}" for e in ENGINES) + " |")
    for engine in ENGINES:
        found = [row[engine] for row in rows.values()]
        still = sum(one["angular"] < 1e-3 for one in found)
        cells[engine] = [f"{still} of {len(rows)}", most(found, "creep", 1e6), most(found, "overlap", 1e6)]
    return rows, {"on floors of 20 to 200 m, below 1e-3 rad/s": cells}


def tell_seams(arguments) -> tuple[list, dict]:
    rows, cells = seams(arguments.runs), {}
    print("| over flush tiles | h, ms | m/s | caught, worst loss, hop: stiction | MuJoCo |\n|---|---|---|---|---|")
    for row in rows:
        line = [f"{row[e]['caught']:.0%}, {row[e]['loss']:.1%}, {1e3 * row[e]['hop']:.2g} mm" for e in ENGINES]
        print(f"| {row['slider']} | {1e3 * row['timestep']:g} | {row['speed']:g} | " + " | ".join(line) + " |")
    for engine in ENGINES:
        free = sum(round((1 - row[engine]["caught"]) * arguments.runs) for row in rows)
        worst = max(row[engine]["loss"] for row in rows)
        cells[engine] = [f"{free} of {len(rows) * arguments.runs}", f"loses {worst:.1%} at worst", ""]
    return rows, {"slid over tiles, lost at most 1 % of its speed": cells}


def tell_grasps(arguments) -> tuple[list, dict]:
    meshes = [arguments.data / name for name in MESHES if (arguments.data / name).exists()]
    rows, cells = hands.run(arguments.grasps, meshes), {}
    for engine in ENGINES:
        found = [row[engine] for row in rows if row[engine]["closed"]]
        held = sum(one["slip"] < hands.SLIP for one in found)
        cells[engine] = [f"{held} of {len(found)} closed", most(found, "creep", 1e6), most(found, "overlap", 1e6)]
    for i, row in enumerate(rows):
        own = row["stiction"]
        if own["closed"] and (own["slip"] > hands.SLIP or own["creep"] > hands.CREEP):
            print(
                f"  grasp {i}, {row['thing']} in {row['fingers']} ({row['finger']}), friction {row['mu']:.2f}: "
                f"slips {1e3 * own['slip']:.2g} mm, creeps {1e6 * own['creep']:.2g} um/s"
            )
    return rows, {f"grasps, slip below 1 mm in 10 s, of {len(rows)}": cells}


def tell_pegs(arguments) -> tuple[list, dict]:
    rows, cells = pegs.run(arguments.pegs), {}
    for row in rows:
        if not row["stiction"]["right"]:
            print(f"  peg, {row['kind']}, friction {row['mu']:.2f}: {row['stiction']}")
    for engine in ENGINES:
        found = [row[engine] for row in rows]
        right = sum(one["right"] for one in found)
        cells[engine] = [f"{right} of {len(rows)}", most(found, "creep", 1e6), most(found, "overlap", 1e6)]
    return rows, {"wedged pegs, held or sliding as Coulomb has it": cells}


PARTS = {
    "drops": tell_drops,
    "slopes": tell_slopes,
    "floors": tell_floors,
    "seams": tell_seams,
    "grasps": tell_grasps,
    "pegs": tell_pegs,
}


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy.rest", description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, default=DATA, help="where the meshes are")
    add("--runs", type=int, default=24, help="over the tiles, of each kind")
    add("--grasps", type=int, default=100, help="of random things")
    add("--pegs", type=int, default=24)
    add("--parts", nargs="+", default=list(PARTS), choices=list(PARTS), metavar="PART", help=", ".join(PARTS))
    add("--output", type=Path, help="JSON; default bench/results/<machine>/rest.json; '-' writes none")
    arguments = parser.parse_args(argv)
    result, summary = {"machine": machine.description()}, {}
    for part in arguments.parts:
        result[part], cells = PARTS[part](arguments)
        summary |= cells
    print(
        "\n|  | stiction | creep, um/s, median / most | overlap, um | MuJoCo | creep, um/s | overlap, um |\n"
        + "|---" * 7
        + "|"
    )
    for name, cells in summary.items():
        print(f"| {name} | " + " | ".join(cells["stiction"] + cells["MuJoCo"]) + " |")
    machine.record(arguments.output, "rest.json", result)
    return result


if __name__ == "__main__":
    main()
