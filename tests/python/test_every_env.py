"""What holds of every environment that there is.

STICTION_FULL_TESTS=1 takes ten million random steps instead of a hundred thousand.
"""

import os
import resource
import warnings

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402
from stiction.registration import ENVIRONMENTS  # noqa: E402
from task_walks import make, random_walk  # noqa: E402

stiction.register_envs()
FULL = os.environ.get("STICTION_FULL_TESTS") == "1"
NAMES = [env_id.removeprefix("stiction/").removesuffix("-v0") for env_id in ENVIRONMENTS]


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


def test_gymnasium_accepts_it(name):
    env = gymnasium.make(f"stiction/{name}-v0")
    assert env.spec.max_episode_steps == ENVIRONMENTS[env.spec.id].max_episode_steps
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Box observation space.*")
        check_env(env.unwrapped, skip_render_check=True)
    env.close()
    batch = gymnasium.make_vec(f"stiction/{name}-v0", num_envs=2)
    assert batch.reset(seed=0)[0].shape == batch.observation_space.shape
    assert batch.max_episode_steps == env.spec.max_episode_steps
    batch.close()


def test_random_actions_stay_finite(name):
    """10,240 steps; in full, this task's share of 10,000,000, and memory that does not grow."""
    steps = -(-10_000_000 // (256 * len(NAMES))) if FULL else 40
    env, compared, memory = make(name, 256), 0, []
    for number, (_, (obs, reward, terminated, truncated, infos)) in enumerate(random_walk(env, steps)):
        assert np.isfinite(obs).all()
        assert np.isfinite(reward).all()
        status = infos["status"] | infos.get("final_info", {}).get("status", 0)
        assert not (status & (stiction.Status.NON_FINITE | stiction.Status.CONTACT_OVERFLOW)).any()
        total = sum(infos[key] for key in infos if key.startswith("reward_"))
        told = ~(terminated | truncated)  # of those that ended, final_info tells
        np.testing.assert_allclose(total[told], reward[told], rtol=1e-4, atol=1e-4)
        compared += told.sum()
        if number in (steps // 2, steps - 1):
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # KiB
    assert compared > 5000
    assert memory[1] - memory[0] < 1024


def test_float32_observes_what_float64_does(name):
    one, two = make(name, 8, dtype="float32"), make(name, 8, dtype="float64")
    a, _ = one.reset(seed=3)
    b, _ = two.reset(seed=3)
    assert a.dtype == np.float32
    assert b.dtype == np.float64
    np.testing.assert_allclose(a, b, atol=3e-6, rtol=1e-5)
    action = np.full((8, *one.single_action_space.shape), 0.3) * one.single_action_space.high
    a, reward_a, *_, infos_a = one.step(action)
    b, reward_b, *_, infos_b = two.step(action)
    np.testing.assert_allclose(one.simulation.qpos, two.simulation.qpos, atol=2e-3)
    np.testing.assert_allclose(reward_a, reward_b, atol=5e-3, rtol=5e-3)
    assert reward_a.dtype == np.float32


@pytest.mark.parametrize("num_threads", [1, 2])
def test_an_environment_depends_on_its_seed_alone(name, num_threads):
    """Bitwise: whatever the batch, the place in it and the threads; through ends and resets."""
    steps, seed = 40, 100
    random = np.random.default_rng(5)
    batch = make(name, 35, num_threads=num_threads, max_episode_steps=17)
    space = batch.single_action_space
    actions = (random.uniform(-1, 1, (steps, 35, *space.shape)) * space.high).astype(np.float32)
    singles = {i: make(name, 1, num_threads=1, max_episode_steps=17) for i in (0, 15, 34)}
    obs, _ = batch.reset(seed=seed)
    for i, one in singles.items():
        np.testing.assert_array_equal(one.reset(seed=seed + i)[0][0], obs[i])
    ends = 0
    for t in range(steps):
        obs, reward, terminated, truncated, infos = batch.step(actions[t])
        ends += (terminated | truncated).sum()
        for i, one in singles.items():
            o, r, te, tr, info = one.step(actions[t, i : i + 1])
            np.testing.assert_array_equal(o[0], obs[i])
            assert (r[0], te[0], tr[0]) == (reward[i], terminated[i], truncated[i])
            for key in (*(k for k in infos if k.startswith("reward_")), "status"):
                assert info[key][0] == infos[key][i], key
    assert ends >= 2 * 35


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e38])
def test_a_bad_action_ends_its_environment_alone(name, bad):
    env, calm = make(name, 5), make(name, 5)
    env.reset(seed=0), calm.reset(seed=0)
    for t in range(6):
        action = np.full((5, *env.single_action_space.shape), 0.2, np.float32) * env.single_action_space.high
        expected = calm.step(action)
        if t == 2:
            action[3, -1] = bad
        obs, reward, terminated, _, infos = env.step(action)
        assert np.isfinite(obs).all()
        assert np.isfinite(reward).all()
        assert (terminated == ([False] * 3 + [t == 2, False])).all()
        assert not infos["status"][3] & stiction.Status.NON_FINITE
        others = [0, 1, 2, 4]
        np.testing.assert_array_equal(obs[others], expected[0][others])
        np.testing.assert_array_equal(reward[others], expected[1][others])
        if t == 2:
            assert np.isfinite(infos["final_obs"][3]).all()
            assert infos["final_info"]["status"][3] & stiction.Status.NON_FINITE
            assert reward[3] == 0


# ---- parameters of the task


def test_parameters_are_read_and_set_by_name(name):
    env = make(name)
    for key, value in env.task_parameters.items():
        changed = not value if isinstance(value, bool) else (0.25, 0.5) if isinstance(value, tuple) else value + 1
        other = make(name, task={key: changed})
        assert other.task_parameters == env.task_parameters | {key: changed}
        other.set_task_parameters(**{key: value})
        assert other.task_parameters == env.task_parameters


def test_parameters_decide():
    given = gymnasium.make("stiction/Ant-v0", task={"ctrl_cost_weight": 2, "healthy_z_range": [0.2, 0.3]}).unwrapped
    assert given.task_parameters["healthy_z_range"] == (0.2, 0.3)
    given.reset(seed=0)
    _, _, terminated, _, info = given.step(np.full(8, 0.5))
    assert terminated
    assert info["reward_ctrl"] == pytest.approx(-2 * 8 * 0.25)
    given.set_task_parameters(ctrl_cost_weight=0.5)
    given.reset(seed=0)
    assert given.step(np.full(8, 0.5))[4]["reward_ctrl"] == pytest.approx(-0.5 * 8 * 0.25)


@pytest.mark.parametrize(
    ("task", "error", "text"),
    [
        ({"ctrl_weight": 1}, ValueError, "'ctrl_weight' is no parameter of stiction/Ant-v0; near: 'ctrl_cost_weight'"),
        ({"a": "b"}, ValueError, "'a' is no parameter of .*; there are: 'forward_reward_weight'.*'reset_noise"),
        ({"ctrl_cost_weight": (1, 2)}, ValueError, "'ctrl_cost_weight' of task 'ant' has 2 values, expected one"),
        ({"ctrl_cost_weight": np.nan}, ValueError, "'ctrl_cost_weight' of task 'ant' is not a number"),
        ({"ctrl_cost_weight": "big"}, TypeError, "'ctrl_cost_weight' is 'big', expected a number"),
        ({"healthy_z_range": 0.2}, ValueError, r"'healthy_z_range' of task 'ant' has 1 values, expected \(low, high\)"),
        ({"healthy_z_range": (1, 0.2)}, ValueError, "expected low <= high"),
        ({"terminate_when_unhealthy": 0.5}, ValueError, "is a switch"),
        ({1: 1}, TypeError, "task has the key 1, expected the name"),
        ([("ctrl_cost_weight", 1)], TypeError, "task is list, expected a dict"),
    ],
)
def test_wrong_parameters_are_refused(task, error, text):
    with pytest.raises(error, match=text):
        make("Ant", task=task)
    env = make("Ant")
    if isinstance(task, dict) and all(isinstance(key, str) for key in task):
        with pytest.raises(error, match=text):
            env.set_task_parameters(**task)
