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


@pytest.mark.parametrize("beyond", [0.002, 0.01])
def test_a_cube_beyond_the_edge_of_a_platform_falls(beyond):
    floor = '<geom type="box" size="50 50 .5" pos="0 0 -.5" friction="1"/>'
    cube = '<geom type="box" size=".05 .05 .05" mass="1"/>'
    found = rest.ours(rest.one_body(cube, floor, pos=(50 + beyond, 0, 0.05)), 1.5, 0.1)
    assert found["qpos"][2] < -1


CAN = {"radius": 0.03, "half": 0.06, "mass": 0.4}


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize(("part", "falls"), [(0.5, False), (0.8, False), (0.95, False), (1.01, True)])
def test_a_can_topples_at_its_tipping_force(floor, part, falls):
    """A level force at the centre of mass tips it at m g r / h, whatever its direction."""
    radius, half, mass = CAN.values()
    can = f'<geom type="cylinder" size="{radius} {half}" mass="{mass}" friction="2"/>'
    model = Model.from_mjcf(rest.one_body(can, FLOORS[floor], pos=(0, 0, half)))
    directions = np.linspace(0, 2 * np.pi, 24, endpoint=False) + 0.01
    sim = Simulation(model, len(directions), num_threads=1)
    sim.step(100)
    force = part * mass * 9.81 * radius / half
    for _ in range(10 if falls else 1):
        sim.xfrc_applied[:, model.body_id("b"), :2] = force * np.stack([np.cos(directions), np.sin(directions)], axis=1)
        sim.step(200)
    sim.step(800)
    tilt = np.arccos(np.clip(1 - 2 * (sim.qpos[:, 4] ** 2 + sim.qpos[:, 5] ** 2), -1, 1))
    print(f"{part} of the tipping force, {floor}: {np.degrees(tilt.min()):.1e} to {np.degrees(tilt.max()):.1e} degrees")
    assert np.all(tilt > np.radians(5)) if falls else np.all(tilt < np.radians(0.3))


def corner(kind: str, mu: float) -> str:
    """A 1 kg cube of 100 mm that touches three faces, pressed into their corner by gravity."""
    walls = {
        "boxes": '<geom type="box" size=".5 .5 .05" pos="0 0 -.05" friction="{0}"/>'
        '<geom type="box" size=".05 .5 .5" pos="-.1 0 .45" friction="{0}"/>'
        '<geom type="box" size=".5 .05 .5" pos="0 -.1 .45" friction="{0}"/>',
        "planes": '<geom type="plane" size="0 0 1" friction="{0}"/>'
        '<geom type="plane" size="0 0 1" pos="-.05 0 0" zaxis="1 0 0" friction="{0}"/>'
        '<geom type="plane" size="0 0 1" pos="0 -.05 0" zaxis="0 1 0" friction="{0}"/>',
    }[kind].format(mu)
    cube = f'<geom type="box" size=".05 .05 .05" mass="1" friction="{mu}"/>'
    return rest.one_body(cube, walls, pos=(0, 0, 0.05), gravity=(-20, -20, -9.81))


@pytest.mark.parametrize("mu", [0, 0.1, 0.5])
@pytest.mark.parametrize("kind", ["boxes", "planes"])
def test_a_cube_pressed_into_a_corner_rests(kind, mu):
    found = rest.ours(corner(kind, mu), 3, 0.5)
    print(f"corner of {kind}, friction {mu}: {found['linear']:.1e} m/s, {found['angular']:.1e} rad/s")
    assert found["linear"] <= 1e-4 and found["angular"] <= 1e-3
    assert not found["status"] & int(Status.CONTACT_OVERFLOW)


@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_a_jammed_peg_holds(mu):
    """A square peg in a square hole of four boxes, with 0.2 mm of play, turned by 1 N m: friction holds it."""
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
    model = Model.from_mjcf(rest.one_body(peg, walls))
    sim = Simulation(model, 1, num_threads=1)
    sim.xfrc_applied[0, model.body_id("b"), 5] = 1.0
    sim.step(750)
    start = sim.qpos[0, :3].copy()
    sim.step(250)
    speed = np.abs(sim.qvel[0]).max()
    print(f"peg at friction {mu}: {speed:.1e}, moved {np.linalg.norm(sim.qpos[0, :3] - start):.1e} m")
    assert speed <= 1e-3 and np.linalg.norm(sim.qpos[0, :3] - start) <= 1e-5


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
