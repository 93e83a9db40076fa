"""Goals apart from the observation: what they are, what is rewarded, and Stable-Baselines3's hindsight replay."""

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from stiction import Goal, Group  # noqa: E402
from stiction.randomisation import Noise  # noqa: E402


@pytest.fixture(params=["numpy", "torch"])
def backend(request):
    if request.param == "torch":
        pytest.importorskip("torch")
    return request.param


def arrays(values):
    if isinstance(values, dict):
        return {name: np.array(of) for name, of in values.items()}
    return np.array(values)


def last_of(infos, name, env):
    """Of an ended episode: tensors have a row each, NumPy's an object."""
    last = infos["final_obs"]
    return np.array(last[name][env] if isinstance(last, dict) else last[env][name])


def test_a_cube_that_is_where_it_should_be_is_rewarded(backend):
    n = 6
    envs = stiction.make_vec(
        "stiction/ArmLift-v0", n, observations="goal", backend=backend, max_episode_steps=7, num_threads=1,
        randomize=[Noise(0.01)],
    )  # fmt: skip
    sizes = {name: space.shape for name, space in envs.single_observation_space.items()}
    assert sizes == {"observation": (42,), "achieved_goal": (3,), "desired_goal": (3,)}
    assert not [name for name in envs.observation_names["observation"] if "goal" in name]
    sim, rng = envs.simulation, np.random.default_rng(0)
    cube = int(sim.model.jnt_qposadr[np.flatnonzero(np.asarray(sim.model.jnt_type) == 0)[0]])
    before, infos = envs.reset(seed=0)
    before = arrays(before)
    assert set(np.unique(arrays(infos["goal_z"]))) == set(np.unique(before["desired_goal"][:, 2]))
    rewarded = 0
    for step in range(20):
        sim.qpos[step % n, cube : cube + 3] = before["desired_goal"][step % n]
        sim.qvel[step % n] = 0
        actions = rng.uniform(-1, 1, envs.action_space.shape).astype(np.float32)
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        after, rewards = arrays(observations), arrays(rewards)
        achieved = after["achieved_goal"].copy()
        ended = arrays(terminated) | arrays(truncated)
        for env in np.flatnonzero(ended):
            achieved[env] = last_of(infos, "achieved_goal", env)
        assert ended.all() == ((step + 1) % 7 == 0)
        expected = -(np.linalg.norm(achieved - before["desired_goal"], axis=1) >= 0.02).astype(np.float32)
        np.testing.assert_array_equal(rewards, expected)
        told = arrays(envs.compute_reward(achieved, before["desired_goal"], infos))
        assert told.dtype == np.float32
        np.testing.assert_array_equal(told, expected)
        if not ended.any():
            np.testing.assert_array_equal(after["achieved_goal"], sim.qpos[:, cube : cube + 3])  # without noise
            np.testing.assert_array_equal(after["desired_goal"], before["desired_goal"])
        rewarded += (rewards == 0).sum()
        before = after
    assert 15 <= rewarded <= 40
    envs.set_task_parameters(success_distance=0.5)
    assert envs.compute_reward(before["desired_goal"] + 0.1, before["desired_goal"]).tolist() == [0] * n


def test_a_goal_that_changes_when_it_is_reached_counts(backend):
    n = 4
    envs = stiction.make_vec("stiction/HandReorient-v0", n, observations="goal", backend=backend, num_threads=1)
    sim, reached = envs.simulation, 0
    cube = int(sim.model.jnt_qposadr[np.flatnonzero(np.asarray(sim.model.jnt_type) == 0)[0]])
    before = arrays(envs.reset(seed=0)[0])
    for step in range(12):
        sim.qpos[step % n, cube + 3 : cube + 7] = -before["desired_goal"][step % n]  # the same rotation
        observations, rewards, *_, infos = envs.step(np.zeros((n, 16), np.float32))
        after = arrays(observations)
        np.testing.assert_array_equal(arrays(rewards), arrays(infos["is_success"]) - 1)
        changed = (after["desired_goal"] != before["desired_goal"]).any(1)
        np.testing.assert_array_equal(changed, arrays(infos["is_success"]) == 1)
        reached, before = reached + changed.sum(), after
    assert reached >= 8


def test_hindsight_replay_of_stable_baselines_learns_from_it(backend):
    sb3 = pytest.importorskip("stable_baselines3")
    envs = stiction.make_vec(
        "stiction/ArmLift-v0", 4, observations="goal", backend=backend, max_episode_steps=10, num_threads=1
    )
    model = sb3.SAC(
        "MultiInputPolicy", stiction.adapters.sb3.VecEnv(envs), replay_buffer_class=sb3.HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4, "goal_selection_strategy": "future"}, learning_starts=80,
        batch_size=64, policy_kwargs={"net_arch": [16]}, device="cpu", seed=0,
    )  # fmt: skip
    model.learn(240)
    sample = model.replay_buffer.sample(500)
    rewards = sample.rewards.numpy()[:, 0]
    assert set(np.unique(rewards)) == {-1, 0}  # of goals that were reached afterwards
    again = envs.compute_reward(sample.next_observations["achieved_goal"], sample.observations["desired_goal"])
    np.testing.assert_array_equal(rewards, np.array(again))


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("fresh", [False, True])
def test_states_keep_what_was_asked(fresh, backend):
    if backend == "torch":
        pytest.importorskip("torch")
    options = {"observations": "goal", "num_threads": 1, "backend": backend}
    envs = stiction.make_vec("stiction/HandReorient-v0", 3, **options)
    envs.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1, 1, (5, 3, 16)).astype(np.float32)
    envs.step(actions[0])
    state = envs.get_state()
    first = [envs.step(given) for given in actions[1:]]
    other = stiction.make_vec("stiction/HandReorient-v0", 3, **options)
    if not fresh:
        other.reset(seed=5)
    other.set_state(state)
    for given, (observations, rewards, *_) in zip(actions[1:], first, strict=True):
        told, again, *_ = other.step(given)
        np.testing.assert_array_equal(again, rewards)
        for name in observations:
            np.testing.assert_array_equal(told[name], observations[name])


RAIL = """<mujoco>
<worldbody><body><joint name="x" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body></worldbody>
<actuator><motor joint="x" ctrlrange="-10 10" ctrllimited="true"/></actuator></mujoco>"""


class Slide(stiction.Task):
    model, substeps, max_episode_steps, near = RAIL, 5, 20, 0.05
    observations = Goal("place", "target", within="near")

    def setup(self):
        self.target = np.zeros((self.num_envs, 1))

    def reset(self, envs, random):
        self.target[envs] = random.uniform(-0.2, 0.2, shape=1)

    def observe(self):
        return {"place": self.sim.qpos, "speed": self.sim.qvel, "target": self.target}

    def reward(self, action):
        return -abs(self.sim.qpos[:, 0] - self.target[:, 0])


def test_a_task_of_ones_own_has_goals():
    envs = stiction.make_vec(Slide, 5, near=0.1)
    assert envs.observation_names == {
        "observation": ("place", "speed"), "achieved_goal": ("place",), "desired_goal": ("target",)
    }  # fmt: skip
    before, _ = envs.reset(seed=0)
    seen = set()
    for _ in range(60):
        observations, rewards, _, truncated, infos = envs.step(np.sign(before["desired_goal"]).astype(np.float32))
        achieved = observations["achieved_goal"].copy()
        for env in np.flatnonzero(truncated):
            achieved[env] = infos["final_obs"][env]["achieved_goal"]
        expected = -(abs(achieved - before["desired_goal"])[:, 0] >= 0.1).astype(np.float32)
        np.testing.assert_array_equal(rewards, expected)
        before, seen = observations, seen | set(rewards.tolist())
    assert seen == {-1, 0}


class Careful(stiction.Task):
    base = "stiction/ArmLift-v0"

    def observe(self):
        return {"effort": self.sensors.actuator_force()}


def test_an_extension_has_the_goal_of_what_it_extends():
    base, envs = (
        stiction.make_vec(of, 3, observations="goal", num_threads=1) for of in ("stiction/ArmLift-v0", Careful)
    )
    assert "effort/0" in envs.observation_names["observation"]
    told, expected = envs.reset(seed=0)[0], base.reset(seed=0)[0]
    for _ in range(3):
        for name in ("achieved_goal", "desired_goal"):
            np.testing.assert_array_equal(told[name], expected[name])
        told, rewards, *_ = envs.step(np.zeros((3, 8), np.float32))
        expected, wanted, *_ = base.step(np.zeros((3, 8), np.float32))
        np.testing.assert_array_equal(rewards, wanted)
    np.testing.assert_array_equal(envs.compute_reward(told["achieved_goal"], told["achieved_goal"]), 0)


def test_what_has_no_goal_says_so():
    with pytest.raises(ValueError, match="observations is 'goal', expected a dict of groups, or 'goal' for one of"):
        stiction.make_vec("stiction/Ant-v0", 2, observations="goal")
    with pytest.raises(ValueError, match="need autoreset_mode 'SameStep' or 'Disabled'"):
        stiction.make_vec("stiction/ArmLift-v0", 2, observations="goal", autoreset_mode="NextStep")
    with pytest.raises(ValueError, match="made with observations='goal' or a stiction.Goal"):
        stiction.make_vec("stiction/ArmLift-v0", 2, observations={"policy": Group()}).compute_reward([0], [0])
    with pytest.raises(ValueError, match="'cube_positoin', which is no term of this task; near: 'cube_position'"):
        stiction.make_vec("stiction/ArmLift-v0", 2, observations=Goal("cube_positoin", "goal_x", 1))
