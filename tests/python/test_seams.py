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
