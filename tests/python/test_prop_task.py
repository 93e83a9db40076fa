"""A built-in task with a prop of the package: `examples/lift_mug.py`, ArmLift with a mug instead of the cube."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from arm_script import ArmScript  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/lift_mug.py"
ARM = [f"joint{i}" for i in range(1, 8)]
MUG = slice(9, 16)


@pytest.fixture(scope="module")
def lift_mug():
    spec = importlib.util.spec_from_file_location("lift_mug", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.LiftMug


def made(task, num_envs, **options):
    return stiction.make_vec(task, num_envs, num_threads=1, **options)


def heading(pose):
    return 2 * np.arctan2(pose[:, 6], pose[:, 3])


def test_it_steps_under_random_actions(lift_mug):
    env, random = made(lift_mug, 16), np.random.default_rng(0)
    observations, _ = env.reset(seed=0)
    assert observations.shape == (16, 45)
    assert env.reward_names[-1] == "reward_upright"
    for _ in range(300):  # beyond the end of an episode
        action = random.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        observations, rewards, terminated, _, infos = env.step(action)
        assert np.isfinite(observations).all() and np.isfinite(rewards).all() and not terminated.any()
        assert infos["cube_height"].shape == infos["tilt"].shape == (16,)
    status = np.bitwise_or.reduce(env.simulation.status)
    assert not status & (stiction.Status.NON_FINITE | stiction.Status.CONTACT_OVERFLOW)


def test_the_mug_settles_on_the_table(lift_mug):
    """As it stands, and let fall from 3 cm: on its foot, at the height that the home pose has it."""
    env = made(lift_mug, 8, autoreset_mode="Disabled")
    env.reset(seed=1)
    sim, still = env.simulation, np.zeros(env.action_space.shape, np.float32)
    sim.qpos[4:, MUG.start + 2] += 0.03
    highest = np.zeros(8)
    for _ in range(200):
        infos = env.step(still)[-1]
        highest = np.maximum(highest, infos["cube_height"])
    assert (highest[:4] < 1e-5).all() and (highest[4:] > 0.02).all()
    np.testing.assert_allclose(infos["cube_height"], 0, atol=1e-5)
    np.testing.assert_allclose(infos["tilt"], 0, atol=1e-3)
    assert np.abs(sim.qvel[:, -6:]).max() < 1e-3
    assert not infos["is_lifted"].any()


def test_a_script_lifts_the_mug_across_its_walls(lift_mug):
    """80 mm of fingers about 76 mm between two opposite walls of ten, which are 18 degrees from the handle's normal."""
    env = made(lift_mug, 8, autoreset_mode="Disabled", cube_x=(0, 0), cube_y=(-0.1, 0.1), cube_yaw=(-0.3, 0.3))
    env.reset(seed=0)
    script, pose = ArmScript(env, ARM), env.simulation.qpos[:, MUG].copy()
    place, yaw = pose[:, :3] + (0, 0, 0.015), heading(pose) - np.pi / 10
    script.move(place + (0, 0, 0.085), yaw, 1, 40)
    script.move(place, yaw, 1, 40)
    script.move(place, yaw, -1, 20)
    assert (script.infos["touching"] == 2).all()
    script.move(place + (0, 0, 0.15), yaw, -1, 60)
    script.move(place + (0, 0, 0.15), yaw, -1, 40)
    assert (script.infos["is_lifted"] == 1).all()
    assert (script.infos["cube_height"] > 0.13).all() and (script.infos["tilt"] < 0.1).all()
