"""What is hit in a step and then hits something else: nothing goes through a wall behind it."""

import numpy as np
import pytest
from stiction import Model, Simulation, Status

WALL = '<geom type="box" size=".01 1 1" pos=".01 0 0"/>'  # 20 mm thick, its face at x = 0


def scene(*bodies: str, timestep: float, wall: str = WALL) -> Model:
    option = f'<option timestep="{timestep}" gravity="0 0 0"/>'
    return Model.from_mjcf(f"<mujoco>{option}<worldbody>{wall}{''.join(bodies)}</worldbody></mujoco>")


def ball(x: float, radius: float, mass: float) -> str:
    return f'<body pos="{x} 0 0"><freejoint/><geom size="{radius}" mass="{mass}"/></body>'


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("timestep", [1e-3, 2e-3, 1e-2])
@pytest.mark.parametrize("speed", [5, 10, 50, 200])
@pytest.mark.parametrize("gap", [0.002, 0.005, 0.05])
def test_a_ball_driven_into_a_wall_stays_before_it(speed, timestep, gap, dtype):
    """A light ball at rest `gap` before the wall, hit by one that is a hundred times as heavy."""
    model = scene(ball(-gap - 0.02, 0.02, 0.01), ball(-gap - 0.04 - 0.05 - 0.003, 0.05, 1), timestep=timestep)
    sim = Simulation(model, dtype=dtype)
    sim.qvel[0, 6] = speed
    deepest = 0.0
    for _ in range(int(0.1 / timestep) + 5):
        sim.step()
        deepest = max(deepest, float(sim.qpos[0, 0]) + 0.02)
    assert deepest < 1e-3 and float(sim.qpos[0, 7]) + 0.05 < 1e-3
    assert not (sim.status & (Status.NON_FINITE | Status.NOT_CONVERGED)).any()


@pytest.mark.parametrize("timestep", [2e-3, 1e-2])
def test_a_row_of_balls_passes_it_on(timestep):
    """Three at rest, the last before the wall: the blow reaches it in the step in which the first is hit."""
    row = [ball(-0.005 - 0.02 - 0.042 * i, 0.02, 0.01) for i in range(3)]
    model = scene(*row, ball(-0.005 - 0.02 - 0.042 * 2 - 0.02 - 0.05 - 0.002, 0.05, 1), timestep=timestep)
    sim = Simulation(model, dtype="float64")
    sim.qvel[0, 18] = 30
    for _ in range(20):
        sim.step()
        assert np.asarray(sim.qpos[0, :21:7]).max() + 0.02 < 1e-3


def test_what_is_thrown_by_a_hinge_meets_the_wall():
    """A box kicked by a foot: links of a robot pass it on like free bodies."""
    foot = (
        '<body pos="-.2 0 .3"><joint name="hip" type="hinge" axis="0 1 0"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass="2"/></body>'
    )
    box = '<body pos="-.055 0 0"><freejoint/><geom type="box" size=".05 .05 .05" mass=".1"/></body>'
    sim = Simulation(scene(foot, box, timestep=5e-3), dtype="float64")
    sim.qpos[0, 0], sim.qvel[0, 0] = 0.1, -40
    for _ in range(40):
        sim.step()
        assert float(sim.qpos[0, 1]) + 0.05 < 2e-3


def test_what_bounces_is_caught_too():
    model = scene(ball(-0.025, 0.02, 0.01), ball(-0.005 - 0.04 - 0.053, 0.05, 1), timestep=2e-3).with_restitution(1)
    sim = Simulation(model, dtype="float64")
    sim.qvel[0, 6] = 20
    for _ in range(50):
        sim.step()
        assert float(sim.qpos[0, 0]) + 0.02 < 2e-3


def test_slow_scenes_are_searched_once():
    """Nothing changes where nothing is fast: the wall is out of the first ball's own reach, 2 mm, but not of both's."""
    model = scene(ball(-0.0225, 0.02, 0.01), ball(-0.0645, 0.02, 0.01), timestep=2e-3)
    sim = Simulation(model)
    sim.qvel[0, 6] = 0.5
    sim.step()
    assert int(sim.contact.count[0]) == 0 or not (np.asarray(sim.contact.geom[0]) == 0).any()
