"""What slides over flush boxes or hulls does not feel the joints; what rises above them stops it. Default options."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from stiction import Model, Simulation  # noqa: E402

from bench.accuracy import rest  # noqa: E402

RUNS = 40 if os.environ.get("STICTION_FULL_TESTS") == "1" else 10


@pytest.mark.parametrize(("timestep", "speed"), [(0.002, 1.0), (0.005, 1.0), (0.005, 2.0), (0.01, 2.0)])
@pytest.mark.parametrize("slider", rest.SLIDERS)
def test_nothing_is_caught_on_flush_tiles(slider, timestep, speed):
    found = np.array([rest.slide(*rest.tiles(slider, timestep, speed, seed), "stiction") for seed in range(RUNS)])
    print(
        f"{slider}, {1e3 * timestep:g} ms, {speed:g} m/s: loses {found[:, 0].max():.2%}, hops {found[:, 1].max():.1e} m"
    )
    assert np.mean(found[:, 0] <= 0.01) >= 0.95 and np.all(np.abs(found[:, 1]) <= 1e-3)


@pytest.mark.parametrize(("timestep", "speed"), [(0.002, 1.0), (0.005, 2.0), (0.01, 2.0)])
@pytest.mark.parametrize("slider", rest.SLIDERS)
def test_nothing_is_caught_on_tiles_that_are_hulls(slider, timestep, speed):
    scenes = [rest.tiles(slider, timestep, speed, seed, mesh=True) for seed in range(RUNS)]
    found = np.array([rest.slide(*scene, "stiction") for scene in scenes])
    print(
        f"{slider}, {1e3 * timestep:g} ms, {speed:g} m/s: loses {found[:, 0].max():.1e}, hops {found[:, 1].max():.1e} m"
    )
    assert np.all(found[:, 0] <= 2e-5) and np.all(found[:, 1] <= 1e-6)


def test_a_fast_rolling_ball_stays_on_the_tiles():
    """5 cm at 10 m/s: 2 cm a step."""
    scene, _ = rest.tiles("ball", 0.002, 10.0, 0)
    sim = Simulation(Model.from_mjcf(scene.replace('friction="0"', 'friction="1"')), 1, num_threads=1)
    height, radius = sim.qpos[0, 2], sim.qpos[0, 2]
    sim.qpos[0, 3:7] = [1, 0, 0, 0]
    sim.qvel[0] = [10, 0, 0, 0, 10 / radius, 0]
    top = 0.0
    for _ in range(75):
        sim.step()
        top = max(top, sim.qpos[0, 2] - height)
    assert sim.qvel[0, 0] >= 9.9 and top <= 1e-3


STEP = '<geom type="box" size=".5 .5 .05" pos="0 0 -.05" friction="0"/>'


@pytest.mark.parametrize(
    ("slider", "obstacle"),
    [
        ("box", '<geom type="box" size=".1 .5 .1" pos=".5 0 .1" friction="0"/>'),  # a wall
        ("capsule", '<geom type="box" size=".1 .5 .1" pos=".5 0 .1" friction="0"/>'),
        ("box", '<geom type="mesh" mesh="hull" pos=".5 0 0" friction="0"/>'),  # a wall that is a hull
        ("box", '<geom type="box" size=".1 .5 .05" pos=".6 0 -.045" friction="0"/>'),  # a tile 5 mm higher
    ],
)
def test_what_rises_above_the_floor_stops_a_slider(slider, obstacle):
    geom, height = rest.SLIDERS[slider][0], 0.09 if slider == "capsule" else 0.03  # the capsule stands
    corners = np.array([(x, y, z) for x in (-0.1, 0.1) for y in (-0.5, 0.5) for z in (0, 0.2)])
    scene = rest.one_body(geom, STEP + obstacle, pos=(0, 0, height), asset=rest.hull_asset(corners))
    sim = Simulation(Model.from_mjcf(scene), 1, num_threads=1)
    sim.qvel[0, 0] = 1.0
    sim.step(600)
    assert sim.qvel[0, 0] < 0.01 and sim.qpos[0, 0] < 0.5 and abs(sim.qpos[0, 2] - height) < 1e-3


def test_a_body_falls_past_the_last_tile():
    scene = rest.one_body(rest.SLIDERS["box"][0], STEP, pos=(0.3, 0, 0.03))
    sim = Simulation(Model.from_mjcf(scene), 1, num_threads=1)
    sim.qvel[0, 0] = 1.0
    sim.step(500)
    assert sim.qpos[0, 2] < -0.5


def test_a_hull_over_two_that_overlap_does_not_sink_into_one_of_them():
    """A tetrahedron turns over an edge of a box, out of which another hull rises.

    The plane of the edge's contact, which is turned, hides the other hull no more where the body is below it.
    """
    model = Model.from_mjcf(
        """<mujoco><option timestep="0.005"/><asset>
        <mesh name="cone" vertex=".079 0 0 .0396 .0685 0 -.0396 .0685 0 -.079 0 0
                                  -.0396 -.0685 0 .0396 -.0685 0 0 0 .2002"/>
        <mesh name="tetrahedron" vertex="-.00634 -.03824 .05349 -.07238 .01829 .04704 -.08344 -.00888 -.04301
                                         .01047 .03655 .0547"/></asset><worldbody>
        <geom type="mesh" mesh="cone" pos="-.0155 .2031 .1395" quat="-.3 .5447 1.0429 -.207" friction=".47"/>
        <geom type="box" size=".0909 .1674 .0995" pos="-.219 .0492 .1792" quat="-1.7677 .347 -.2504 .7815"
              friction=".13"/>
        <body pos="-.0828 .0908 .5" quat="-.5218 1.0862 .6052 -.178"><freejoint/>
        <geom density="969" type="mesh" mesh="tetrahedron" friction=".916"/></body></worldbody></mujoco>"""
    )
    sim, data = Simulation(model, 1, num_threads=1, dtype="float64"), mujoco.MjData(model.mjmodel)
    sim.qpos[0] = [-0.09955, 0.26293, 0.20145, -0.52936, 0.13404, 0.27829, -0.79017]
    sim.qvel[0] = [-0.1481, -0.02106, -0.75301, 20.14353, 4.51989, 3.95255]
    deepest = 0.0
    for _ in range(14):
        sim.step()
        data.qpos[:] = sim.qpos[0]
        mujoco.mj_fwdPosition(model.mjmodel, data)
        deepest = min([deepest, *(contact.dist for contact in data.contact)])
    print(deepest)
    assert deepest > -5e-4
