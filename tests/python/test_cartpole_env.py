"""CartPole against the DeepMind Control Suite: its formulae written out, and its own code where it is installed."""

import math
from pathlib import Path

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
from task_walks import make, random_walk  # noqa: E402

BOTH = pytest.mark.parametrize("name", ["CartPoleBalance", "CartPoleSwingUp"])


def suite_module(name):
    """A module of dm_control; skips without one that can be imported."""
    return pytest.importorskip(f"dm_control.{name}", exc_type=ImportError)


def walk(name, steps=60):
    """Actions, results and states, with carts thrown about so that all of the reward's range is met."""
    env = make(name, 16, dtype="float64")
    for t, (action, results) in enumerate(random_walk(env, steps, amplitude=1.3)):
        sim = env.simulation
        yield action, results, sim.qpos.copy(), sim.qvel.copy()
        if t % 20 == 10:
            random = np.random.default_rng(t)
            sim.qpos[:] = random.uniform((-1.7, -7), (1.7, 7), (16, 2))
            sim.qvel[:] = random.normal(0, (2, 8), (16, 2))
            sim.forward()


@BOTH
def test_observation_and_reward_are_the_formulae(name):
    lowest, highest = 1, 0
    for action, (obs, reward, terminated, _, infos), q, v in walk(name):
        expected = np.stack([q[:, 0], np.cos(q[:, 1]), np.sin(q[:, 1]), v[:, 0], v[:, 1]], axis=1)
        np.testing.assert_allclose(obs, expected, atol=1e-12)
        terms = {
            "upright": (np.cos(q[:, 1]) + 1) / 2,
            "centred": (1 + 10 ** -((q[:, 0] / 2) ** 2)) / 2,
            "small_control": (4 + np.clip(1 - action[:, 0] ** 2, 0, None)) / 5,
            "small_velocity": (1 + 10 ** -((v[:, 1] / 5) ** 2)) / 2,
        }
        for term, value in terms.items():
            np.testing.assert_allclose(infos[term], value, atol=1e-12, err_msg=term)
        np.testing.assert_allclose(reward, math.prod(terms.values()), atol=1e-12)
        assert not terminated.any()
        lowest, highest = min(lowest, reward.min()), max(highest, reward.max())
    assert lowest < 0.05
    assert highest > 0.7


@BOTH
def test_observation_and_reward_are_the_suites(name):
    cartpole = suite_module("suite.cartpole")

    class State:
        """What the suite's task asks of its physics."""

        def __init__(self, q, v, action):
            self.q, self.v, self.action = q, v, action

        def cart_position(self):
            return self.q[0]

        def pole_angle_cosine(self):
            return np.cos(self.q[1:])

        def angular_vel(self):
            return self.v[1:]

        def control(self):
            return self.action

        def bounded_position(self):
            return np.hstack([self.q[0], np.cos(self.q[1]), np.sin(self.q[1])])

        def velocity(self):
            return self.v

    task = cartpole.Balance(swing_up=name == "CartPoleSwingUp", sparse=False, random=0)
    for action, (obs, reward, *_), q, v in walk(name, 30):
        for e in range(16):
            state = State(q[e], v[e], action[e])
            assert reward[e] == pytest.approx(task.get_reward(state), abs=1e-12)
            np.testing.assert_allclose(obs[e], np.hstack(list(task.get_observation(state).values())), atol=1e-12)


def test_model_is_the_suites():
    file = Path(suite_module("suite").__file__).parent / "cartpole.xml"
    a, b = mujoco.MjModel.from_xml_path(str(file)), make("CartPoleBalance").simulation.model.mjmodel
    for field in (
        "body_parentid body_mass body_inertia body_ipos body_iquat body_pos jnt_type jnt_axis jnt_pos jnt_range "
        "jnt_limited jnt_stiffness dof_armature dof_damping dof_frictionloss geom_type geom_size geom_bodyid "
        "actuator_gear actuator_trnid actuator_ctrlrange actuator_gainprm qpos0"
    ).split():
        np.testing.assert_allclose(getattr(b, field), getattr(a, field), atol=1e-12, err_msg=field)
    assert b.opt.timestep == a.opt.timestep == 0.01
    assert b.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CONTACT


def test_it_moves_as_mujoco_does():
    """A second of swinging under force, in double, against MuJoCo's Euler on the same model."""
    env = make("CartPoleSwingUp", 4, dtype="float64", integrator="euler")
    env.reset(seed=0)
    model = env.simulation.model.mjmodel
    copies = [mujoco.MjData(model) for _ in range(4)]
    for e, data in enumerate(copies):
        data.qpos[:], data.qvel[:] = env.simulation.qpos[e], env.simulation.qvel[e]
    random = np.random.default_rng(0)
    for _ in range(100):
        action = random.uniform(-1, 1, (4, 1))
        env.step(action)
        for e, data in enumerate(copies):
            data.ctrl[:] = action[e]
            mujoco.mj_step(model, data)
            np.testing.assert_allclose(env.simulation.qpos[e], data.qpos, atol=1e-9)
            np.testing.assert_allclose(env.simulation.qvel[e], data.qvel, atol=1e-9)
    assert np.abs(env.simulation.qvel[:, 1]).max() > 0.3


def test_starts():
    n = 4000
    for name, deviations in (("CartPoleBalance", (0.1 / 3**0.5, 0.034 / 3**0.5)), ("CartPoleSwingUp", (0.01, 0.01))):
        env = make(name, n)
        env.reset(seed=3)
        q, v = env.simulation.qpos, env.simulation.qvel
        np.testing.assert_allclose(q.mean(axis=0), (0, math.pi * (name == "CartPoleSwingUp")), atol=5e-3)
        np.testing.assert_allclose(q.std(axis=0), deviations, rtol=0.06)
        np.testing.assert_allclose(v.std(axis=0), 0.01, rtol=0.06)
    assert env.max_episode_steps == 1000
    assert env.step_dt == pytest.approx(0.01)
