"""What should rest rests, what should fall falls: contacts are chosen by what touches or can close. Default options.

STICTION_FULL_TESTS=1: thirty seconds on slopes, and every mesh of bench/accuracy/rest.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scenes import EXACT  # noqa: E402
from stiction import Model, Simulation  # noqa: E402
from stiction.status import Status  # noqa: E402
from test_against_mujoco import DATA  # noqa: E402

from bench.accuracy import rest  # noqa: E402

FULL = os.environ.get("STICTION_FULL_TESTS") == "1"
FLOORS = {"plane": rest.PLANE, "box": rest.TABLE}
PRECISIONS = pytest.mark.parametrize("dtype", ["float32", "float64"])


def watched(scene, seconds, watch=0.5, push=0.0, qvel=0.0, **simulation) -> dict:
    """Free bodies, the first of which, b, is thrown and pushed, in the last `watch` of `seconds`.   m, m/s, rad/s"""
    model = Model.from_mjcf(scene)
    sim = Simulation(model, 1, num_threads=1, **simulation)
    sim.qvel[0, :6], sim.xfrc_applied[0, model.body_id("b")] = qvel, push
    sim.step(round((seconds - watch) / sim.timestep))
    start, speeds, overlap = sim.qpos.copy(), np.zeros(2), 0.0
    for _ in range(round(watch / sim.timestep)):
        sim.step()
        speeds = np.maximum(speeds, np.abs(sim.qvel.reshape(-1, 2, 3)).max((0, 2)))
        overlap = max(overlap, float(sim.certificate.penetration[0]))
    moved = np.abs(sim.qpos - start).reshape(-1, 7)[:, :3].max()
    found = {"linear": speeds[0], "angular": speeds[1], "moved": moved, "overlap": overlap}
    print(", ".join(f"{name} {value:.1e}" for name, value in found.items()))
    return found | {"qpos": sim.qpos[0, :7].copy(), "status": int(sim.status[0])}


@pytest.mark.parametrize("name", rest.on_slopes())
def test_a_hull_with_fine_edges_stays_on_a_slope(name):
    seconds = 30 if FULL else 6
    found = rest.ours(rest.on_slopes()[name], 1 + seconds, seconds)
    print(f"{name}: {1e3 * found['creep']:.1e} mm, {found['angular']:.1e} rad/s in {seconds} s")
    assert found["creep"] <= 1e-4 * seconds / 30 and found["angular"] <= 1e-3


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("shape", ["prism", "chamfered prism", "rounded foot", "cylinder of 64 sides"])
def test_a_hull_comes_to_rest_on_a_level_floor(shape, floor):
    points = {
        "prism": rest.prism(),
        "chamfered prism": rest.prism(chamfer=2e-4),
        "rounded foot": rest.rounded_foot(1e-3),
        "cylinder of 64 sides": rest.prism(sides=64, chamfer=5e-4),
    }[shape]
    turn = (np.cos(0.05), np.sin(0.05), 0, 0)
    found = rest.ours(
        rest.mesh_body(points, FLOORS[floor], pos=(0, 0, 0.08), quat=turn), 4, 1, dtype="float64", solver=EXACT
    )
    print(f"{shape} on a {floor}: {found['angular']:.1e} rad/s")
    assert found["angular"] <= 1e-5


def disc(radius, thickness, corners, noise=0.0):
    """The vertices of a prism, whose faces are uneven by `noise` metres."""
    rng, turn = np.random.default_rng(0), 2 * np.pi * np.arange(corners) / corners
    rings = [
        np.stack([radius * np.cos(turn), radius * np.sin(turn), z + noise * rng.standard_normal(corners)], axis=1)
        for z in (-thickness / 2, thickness / 2)
    ]
    return " ".join(f"{x:.9f}" for x in np.concatenate(rings).ravel())


@pytest.mark.parametrize("h", [0.002, 0.005, 0.01])
@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("shape", ["coin", "bevelled coin", "uneven disc"])
def test_a_disc_of_many_corners_comes_to_rest(shape, floor, h):
    """Of which four hold it, and others catch it where it falls on when these give way."""
    vertices = {
        "coin": disc(0.012, 0.002, 64),
        "bevelled coin": disc(0.012, 0.0014, 100) + " " + disc(0.0117, 0.002, 100),
        "uneven disc": disc(0.03, 0.01, 96, 1e-6),
    }[shape]
    model = Model.from_mjcf(
        f"""<mujoco><option timestep="{h}"/><asset><mesh name="m" vertex="{vertices}"/></asset><worldbody>
        {FLOORS[floor]}<body pos="0 0 0.02"><freejoint/><geom type="mesh" mesh="m" density="700"/></body>
        </worldbody></mujoco>"""
    )
    sim, tilts = Simulation(model, 32, num_threads=1), np.linspace(0.02, 0.3, 32)
    sim.qpos[:, 3], sim.qpos[:, 4] = np.cos(tilts / 2), np.sin(tilts / 2)
    sim.step(round(10 / h))
    turning, sunk = np.zeros(32), 0.0
    for _ in range(20):
        sim.step()
        turning = np.maximum(turning, np.linalg.norm(sim.qvel[:, 3:], axis=1))
        sunk = max(sunk, float(sim.certificate.penetration.max()))
    print(f"{shape} on a {floor} at {1e3 * h:g} ms: {turning.max():.1e} rad/s, {1e6 * sunk:.1f} um deep")
    assert turning.max() < 0.01 and sunk < (7e-6 if shape == "uneven disc" else 3e-6)


def bevelled(x, y, z, bevel):
    """The corners of a box of these half sizes."""
    corners = []
    for signs in np.stack(np.meshgrid(*[(-1, 1)] * 3), axis=-1).reshape(-1, 3):
        for side in range(3):
            corners.append(signs * (np.array([x, y, z]) - np.where(np.arange(3) == side, 0, bevel)))
    return " ".join(f"{c:.9f}" for c in np.ravel(corners))


@pytest.mark.parametrize("h", [0.002, 0.005, 0.01])
@pytest.mark.parametrize("drop", [0.001, 0.01])
@pytest.mark.parametrize("upper", ["bevelled", "box"])
def test_bevelled_plates_that_fall_on_each_other_rest(upper, drop, h):
    """Corners of two bevels that cross are no contacts of the faces between them, which sank in until they were; and of
    eight corners of what the faces share, no four hold the others."""
    geom = {"bevelled": 'type="mesh" mesh="m"', "box": 'type="box" size=".04 .03 .002"'}[upper]
    model = Model.from_mjcf(
        f"""<mujoco><option timestep="{h}"/><default><geom friction=".5" density="1000"/></default>
        <asset><mesh name="m" vertex="{bevelled(0.04, 0.03, 0.002, 0.0005)}"/></asset>
        <worldbody>{rest.PLANE}
        <body pos="0 0 {0.002 + drop}"><freejoint/><geom type="mesh" mesh="m"/></body>
        <body pos="0 0 {0.006 + 2 * drop}"><freejoint/><geom {geom}/></body></worldbody></mujoco>"""
    )
    sim, rng = Simulation(model, 16, num_threads=1), np.random.default_rng(0)
    for first in (0, 7):
        yaw = rng.uniform(0, 2 * np.pi, 16)
        sim.qpos[:, first : first + 2] = rng.uniform(-0.015, 0.015, (16, 2))
        sim.qpos[:, first + 3], sim.qpos[:, first + 6] = np.cos(yaw / 2), np.sin(yaw / 2)
    sim.step(round(3 / h))
    turning = np.zeros(16)
    for _ in range(20):
        sim.step()
        turning = np.maximum(turning, np.linalg.norm(sim.qvel.reshape(16, 2, 6)[:, :, 3:], axis=2).max(1))
    sunk = 0.006 - sim.qpos[:, 9].min()
    print(f"dropped by {1e3 * drop:g} mm at {1e3 * h:g} ms: {turning.max():.1e} rad/s, {1e6 * sunk:.1f} um too low")
    assert turning.max() < 0.01 and sunk < 1e-5


@pytest.mark.parametrize("floor", FLOORS)
def test_dropped_meshes_come_to_rest(floor):
    meshes = [name for name in (rest.MESHES if FULL else rest.MESHES[::4]) if (DATA / name).exists()]
    if not meshes:
        pytest.skip(f"no meshes in {DATA}")
    rng, turning = np.random.default_rng(7), {}
    for name in meshes:
        model = Model.from_mjmodel(rest.dropped_mesh(DATA / name, FLOORS[floor]))
        turning[name] = rest.ours(model, 6, 0.5, rest.random_quat(rng))["angular"]
    print({Path(name).name: f"{value:.0e}" for name, value in turning.items()})
    assert np.mean(np.array(list(turning.values())) < rest.RESTS) >= 0.85


@pytest.mark.parametrize("name", rest.large_floors())
def test_a_small_body_rests_on_a_large_floor(name):
    found = rest.ours(rest.large_floors()[name], 2, 0.5)
    print(f"{name}: {found['angular']:.1e} rad/s")
    assert found["angular"] <= 1e-3


@PRECISIONS
@pytest.mark.parametrize(("drift", "turns", "creeps"), [(0, 2e-4, 5e-7), (1, 1.5e-2, 3e-5)])
@pytest.mark.parametrize("side", [0.02, 0.05])
def test_a_small_body_rests_on_a_large_platform(side, drift, turns, creeps, dtype):
    """40 m of it, free to move on a plane without friction."""
    cube = f'<geom type="box" size="{rest.numbers([side / 2] * 3)}" density="1000" friction="1"/>'
    model = Model.from_mjcf(
        f"""<mujoco><worldbody><geom type="plane" size="0 0 1" pos="0 0 -1" friction="0"/>
        <body pos="0 0 -.5"><freejoint/><geom type="box" size="20 20 .5" mass="1000" friction="0"/></body>
        <body pos=".3 .2 {side / 2}" euler="0 0 20"><freejoint/>{cube}</body></worldbody></mujoco>"""
    )
    sim = Simulation(model, 1, dtype=dtype, num_threads=1)
    sim.qvel[0, [0, 6]] = drift
    sim.step(500)
    start, turning = sim.qpos[0].copy(), 0.0
    for _ in range(500):
        sim.step()
        turning = max(turning, float(np.abs(sim.qvel[0, 9:]).max()))
    way = sim.qpos[0] - start
    creep = np.abs(way[7:9] - way[:2]).max()
    print(f"{1e3 * side:g} mm at {drift} m/s: {turning:.1e} rad/s, {creep:.1e} m in a second")
    assert turning <= turns and creep <= creeps and abs(way[0] - drift) <= 1e-4 and not sim.status[0]


def test_what_is_dropped_on_a_large_floor_comes_to_rest():
    floor = '<geom type="box" size="20 20 .5" pos="0 0 -.5" friction="1"/>'
    geom = '<geom type="box" size=".05 .03 .02" density="1000" friction="1"/>'
    sim = Simulation(Model.from_mjcf(rest.one_body(geom, floor, pos=(0, 0, 0.3))), 16, num_threads=1)
    rng = np.random.default_rng(3)
    sim.qpos[:, 3:7] = [rest.random_quat(rng) for _ in range(16)]
    sim.step(2000)
    turning = np.zeros(16)
    for _ in range(250):
        sim.step()
        turning = np.maximum(turning, np.abs(sim.qvel[:, 3:]).max(1))
    print(f"{turning.max():.1e} rad/s at most")
    assert turning.max() <= 3e-4


@pytest.mark.parametrize("beyond", [0.002, 0.01])
def test_a_cube_beyond_the_edge_of_a_platform_falls(beyond):
    floor = '<geom type="box" size="50 50 .5" pos="0 0 -.5" friction="1"/>'
    cube = '<geom type="box" size=".05 .05 .05" mass="1"/>'
    found = rest.ours(rest.one_body(cube, floor, pos=(50 + beyond, 0, 0.05)), 1.5, 0.1)
    assert found["qpos"][2] < -1


CAN = {"radius": 0.03, "half": 0.06, "mass": 0.4}


@pytest.mark.parametrize("h", [0.002, 0.005, 0.01])
@pytest.mark.parametrize("thickness", [0.001, 0.004, 0.02])
def test_a_plate_falls_off_an_edge_as_fast_as_it_should(thickness, h):
    """Its middle, 6 cm beyond the edge, is over nothing that could hold it."""
    times = []
    for step, dtype in ((5e-4, "float64"), (h, "float32")):
        model = Model.from_mjcf(f"""<mujoco><option timestep="{step}"/><worldbody>
            <geom type="box" size=".5 .5 .2" pos="-.5 0 -.2" friction=".6"/>
            <body pos=".06 0 {thickness / 2}"><freejoint/>
            <geom type="box" size=".1 .08 {thickness / 2}" density="1000" friction=".6"/></body>
            </worldbody></mujoco>""")
        sim = Simulation(model, 1, dtype=dtype, num_threads=1)
        while sim.qpos[0, 2] > -0.1 and sim.time[0] < 1:
            sim.step()
        times.append(float(sim.time[0]))
    print(f"{1e3 * thickness:g} mm thick at {1e3 * h:g} ms: down after {times[1]:.3f} s, {times[0]:.3f} at 0.5 ms")
    assert abs(times[1] - times[0]) <= 0.01 + h


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize(("part", "falls"), [(0.95, False), (0.99, False), (1.01, True)])
def test_a_can_topples_at_its_tipping_force(floor, part, falls):
    """A level force at the centre of mass that grows for 2 s tips it at m g r / h, whatever its direction."""
    radius, half, mass = CAN.values()
    can = f'<geom type="cylinder" size="{radius} {half}" mass="{mass}" friction="2"/>'
    model = Model.from_mjcf(rest.one_body(can, FLOORS[floor], pos=(0, 0, half)))
    directions = np.linspace(0, 2 * np.pi, 24, endpoint=False) + 0.01
    sim = Simulation(model, len(directions), num_threads=1)
    sim.step(100)
    force = part * mass * 9.81 * radius / half * np.stack([np.cos(directions), np.sin(directions)], axis=1)
    for share in np.linspace(0, 1, 201)[1:]:
        sim.xfrc_applied[:, model.body_id("b"), :2] = share * force
        sim.step(5)
    sim.step(1000)
    tilt = np.degrees(2 * np.arcsin(np.minimum(1, np.hypot(sim.qpos[:, 4], sim.qpos[:, 5]))))
    print(f"{part} of the tipping force, {floor}: {tilt.min():.1e} to {tilt.max():.1e} degrees")
    assert np.all(tilt > 45) if falls else np.all(tilt < 0.01)


def corner(kind: str, mu: float, pull=(-20, -20)) -> str:
    """A 1 kg cube of 100 mm that touches three faces, pressed into their corner by gravity and a pull (N)."""
    walls = {
        "boxes": '<geom type="box" size=".5 .5 .05" pos="0 0 -.05" friction="{0}"/>'
        '<geom type="box" size=".05 .5 .5" pos="-.1 0 .45" friction="{0}"/>'
        '<geom type="box" size=".5 .05 .5" pos="0 -.1 .45" friction="{0}"/>',
        "planes": '<geom type="plane" size="0 0 1" friction="{0}"/>'
        '<geom type="plane" size="0 0 1" pos="-.05 0 0" zaxis="1 0 0" friction="{0}"/>'
        '<geom type="plane" size="0 0 1" pos="0 -.05 0" zaxis="0 1 0" friction="{0}"/>',
    }[kind].format(mu)
    cube = f'<geom type="box" size=".05 .05 .05" mass="1" friction="{mu}"/>'
    return rest.one_body(cube, walls, pos=(0, 0, 0.05), gravity=(*pull, -9.81))


LEVEL, ASKEW = (-20, -20), (-50, -3)


@pytest.mark.parametrize(
    ("pull", "mu"), [(LEVEL, 0), (LEVEL, 0.1), (LEVEL, 0.5), (LEVEL, 1), (ASKEW, 0.2), (ASKEW, 0.5), (ASKEW, 0.95)]
)
@pytest.mark.parametrize("kind", ["boxes", "planes"])
def test_a_cube_pressed_into_a_corner_rests(kind, pull, mu):
    found = watched(corner(kind, mu, pull), 3)
    assert found["linear"] <= 1e-5 and found["angular"] <= 4e-4
    assert not found["status"] & int(Status.CONTACT_OVERFLOW)


def groove(mu: float, pull: float) -> str:
    """A 1 kg cube of 100 mm, edge down, in a V of two boxes at 45 degrees, pulled along it (N)."""
    s = np.sqrt(0.5)
    walls = "".join(
        f'<geom type="box" size="5 .5 .05" pos="0 {rest.numbers((y * 0.05 * s, -0.05 * s))}" euler="{y * 45} 0 0"'
        f' friction="{mu}"/>'
        for y in (-1, 1)
    )
    cube = f'<geom type="box" size=".05 .05 .05" mass="1" friction="{mu}"/>'
    quat = (np.cos(np.pi / 8), np.sin(np.pi / 8), 0, 0)
    return rest.one_body(cube, walls, pos=(0, 0, 0.05 / s + 1e-4), quat=quat, gravity=(pull, 0, -9.81))


@PRECISIONS
@pytest.mark.parametrize(
    ("mu", "part"), [(0.1, 0), (0.3, 0), (1.0, 0), (0.1, 0.9), (0.3, 0.9), (1.0, 0.9), (0.1, 1.1), (0.3, 1.1)]
)
def test_a_cube_in_a_groove_holds_what_friction_takes(mu, part, dtype):
    """sqrt(2) mu m g along it."""
    takes = np.sqrt(2) * mu * 9.81
    found = watched(groove(mu, part * takes), 2, dtype=dtype)
    if part > 1:
        assert found["linear"] == pytest.approx(2 * (part - 1) * takes, rel=0.02)
    else:
        assert found["linear"] <= 1e-5 and found["angular"] <= 2e-4 and found["moved"] <= 1e-7
    assert found["overlap"] <= 5e-6


@PRECISIONS
@pytest.mark.parametrize("mu", [0.1, 0.3, 1.0])
def test_a_cube_turned_between_walls_rests(mu, dtype):
    """On a floor, half a millimetre beside either wall: 0.3 N m turn two of its edges to them, or friction holds."""
    faces = "".join(
        f'<geom type="box" size="{size}" pos="{pos}" friction="{mu}"/>'
        for size, pos in [(".5 .5 .05", "0 0 -.05"), (".05 .5 .5", "-.1005 0 .45"), (".05 .5 .5", ".1005 0 .45")]
    )
    cube = f'<geom type="box" size=".05 .05 .05" mass="1" friction="{mu}"/>'
    found = watched(rest.one_body(cube, faces, pos=(0, 0, 0.05)), 3, push=[0, 0, 0, 0, 0, 0.3], dtype=dtype)
    assert found["linear"] <= 1e-5 and found["angular"] <= 1.5e-4
    assert found["moved"] <= 1e-7 and found["overlap"] <= 5e-6


#: Half sizes (m), height (m), speed down (m/s), timestep (s), what may turn at rest (rad/s).
FALLS = {
    "2 mm cube": ([0.001] * 3, 0.001, 0, 2e-3, 3e-3),
    "10 mm cube at 2 m/s": ([0.005] * 3, 0.1, 2, 5e-3, 1.5e-3),
    "50 mm cube at 5 m/s": ([0.025] * 3, 0.3, 5, 1e-2, 5e-4),
    "50 mm cube at 8 m/s": ([0.025] * 3, 0.3, 8, 1e-2, 5e-4),
    "50 x 100 x 200 mm at 5 m/s": ([0.025, 0.05, 0.1], 0.4, 5, 1e-2, 3e-4),
}


@PRECISIONS
@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("name", FALLS)
def test_a_box_that_falls_flat_stays_flat(name, floor, dtype):
    half, height, speed, timestep, turns = FALLS[name]
    geom = f'<geom type="box" size="{rest.numbers(half)}" density="1000" friction="1"/>'
    scene = rest.one_body(geom, FLOORS[floor], pos=(0, 0, height), timestep=timestep)
    found = watched(scene, 0.7, 0.2, qvel=[0, 0, -speed, 0, 0, 0], dtype=dtype)
    tilt = 2 * np.abs(found["qpos"][4:6]).max()
    print(f"tilt {tilt:.1e}")
    assert found["linear"] <= 1e-5 and found["angular"] <= turns and found["overlap"] <= 5e-6
    assert tilt <= 5e-6 and abs(found["qpos"][2] - half[2]) <= 5e-6


@PRECISIONS
@pytest.mark.parametrize("floor", FLOORS)
def test_a_stack_of_small_plates_rests(floor, dtype):
    """5 x 3 x 1 mm, each turned by 10 degrees against the one below."""
    plates = "".join(
        f'<body name="{name}" pos="0 0 {0.0005 + 0.001 * k}" euler="0 0 {10 * k}"><freejoint/>'
        '<geom type="box" size=".0025 .0015 .0005" density="1000" friction="1"/></body>'
        for k, name in enumerate("bcde")
    )
    found = watched(f"<mujoco><worldbody>{FLOORS[floor]}{plates}</worldbody></mujoco>", 1.4, 0.4, dtype=dtype)
    assert found["linear"] <= 5e-6 and found["angular"] <= 3e-3 and found["moved"] <= 2e-8


PEGS = [(0.3, 0, 1), (1.0, 0, 1), (0.3, 0, 2), (0.5, 0, 2), (1.0, 0, 2), (0.5, 20, 1)]


@pytest.mark.parametrize(("mu", "up", "turn"), PEGS)
def test_a_jammed_peg_holds(mu, up, turn):
    """A square peg in a square hole of four boxes, with 0.2 mm of play, turned (N m) and pulled up (N): it holds."""
    walls = "".join(
        f'<geom type="box" size="{sx} {sy} .05" pos="{x} {y} 0" friction="{mu}"/>'
        for sx, sy, x, y in [
            (0.05, 0.2, 0.0701, 0),
            (0.05, 0.2, -0.0701, 0),
            (0.0201, 0.05, 0, 0.0701),
            (0.0201, 0.05, 0, -0.0701),
        ]
    )
    peg = f'<geom type="box" size=".02 .02 .08" mass=".5" friction="{mu}"/>'
    found = watched(rest.one_body(peg, walls), 2, push=[0, 0, up, 0, 0, turn])
    assert found["linear"] <= 2e-5 and found["angular"] <= 1e-3 and found["moved"] <= 3e-7


def test_contact_overflow_is_silent_where_only_what_stays_apart_is_left_out():
    """Two plates a millimetre apart, each of 36 boxes: more pairs within the margin than slots, and none closes."""
    tiles = "".join(
        f'<geom type="box" size=".004 .004 .004" pos="{0.01 * x} {0.01 * y} 0" mass=".01"/>'
        for x in range(6)
        for y in range(6)
    )
    plates = "".join(f'<body pos="0 0 {z}"><freejoint/>{tiles}</body>' for z in (1.0, 1.009))
    sim = Simulation(Model.from_mjcf(f"<mujoco><worldbody>{plates}</worldbody></mujoco>"), 1, num_threads=1)
    sim.step(10)
    assert not sim.status[0] & int(Status.CONTACT_OVERFLOW)


def test_contact_overflow_tells_of_a_contact_that_closes():
    """A ball of 40 facets inside a cage of 40 walls that all touch: more planes than slots."""
    rng = np.random.default_rng(1)
    axes = rng.standard_normal((40, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    walls = "".join(
        f'<geom type="plane" size="0 0 1" pos="{rest.numbers(-0.1 * a)}" zaxis="{rest.numbers(a)}"/>' for a in axes
    )
    sim = Simulation(
        Model.from_mjcf(rest.one_body('<geom type="sphere" size=".1" mass="1"/>', walls)), 1, num_threads=1
    )
    sim.step()
    assert sim.status[0] & int(Status.CONTACT_OVERFLOW)


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("speed", [1.0, 5.0])
def test_a_finely_tessellated_ball_that_falls_fast_does_not_sink_in(floor, speed):
    """Many vertices come near the floor within the step; the lowest is among those that are kept."""
    around = np.random.default_rng(0).normal(size=(400, 3))
    vertices = 0.05 * around / np.linalg.norm(around, axis=1)[:, None]
    text = " ".join(f"{x:.6g}" for x in vertices.ravel())
    model = Model.from_mjcf(
        f'<mujoco><asset><mesh name="ball" vertex="{text}"/></asset><worldbody>{FLOORS[floor]}'
        '<body pos="0 0 .2"><freejoint/><geom type="mesh" mesh="ball" mass="1"/></body></worldbody></mujoco>'
    )
    sim = Simulation(model, 16, num_threads=1)
    sim.qpos[:, 2] += 1e-4 * np.arange(16)
    sim.qvel[:, 2] = -speed
    sim.step(int(0.15 / speed / model.timestep))  # to just above the floor, whose top may be at any height
    sunk, up = 0.0, 0.0
    for _ in range(100):
        sim.step()
        sunk = max(sunk, float(np.max(sim.certificate.penetration)))
        up = max(up, float(sim.qvel[:, 2].max()))
    assert (sim.contact.count > 0).all() and sunk <= 1e-4 and up <= 0.1


def test_an_upright_cylinder_that_is_pulled_aside_stands_in_single_precision():
    """Its tilt under the pull is far below the root of single precision's rounding."""
    model = Model.from_mjcf(
        '<mujoco><option timestep=".002" gravity="1.95 0 -9.61"/><default><geom friction=".25 0 0"/></default>'
        '<worldbody><geom type="plane" size="0 0 1"/><body pos="0 0 .05001"><freejoint/>'
        '<geom type="cylinder" size=".03 .05" mass="1"/></body></worldbody></mujoco>'
    )
    sim = Simulation(model, 1, num_threads=1)
    sim.step(500)
    start, turning = sim.qpos[0].copy(), 0.0
    for _ in range(200):
        sim.step(10)
        turning = max(turning, float(np.abs(sim.qvel[0, 3:]).max()))
    assert np.abs(sim.qpos[0, :3] - start[:3]).max() <= 1e-5 and turning <= 1e-2
