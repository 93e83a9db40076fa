"""Built-in tasks with rewards, observations and ends of one's own."""

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
import gymnasium  # noqa: E402
import stiction  # noqa: E402
from stiction import cli  # noqa: E402
from stiction.registration import asset_path  # noqa: E402

ID = "stiction/QuadrupedVelocity-v0"


class Same(stiction.Task):
    base = ID


class Calm(stiction.Task):
    """Rewards standing high, observes the trunk's place, ends where it is low."""

    base = ID
    height_weight = 2.0
    lowest = 0.25
    units = {"place": "m"}
    elements = {"place": ("x", "y", "z")}

    def reward(self, action):
        return {"height": self.height_weight * self.sim.qpos[:, 2], "push": -np.abs(action).sum(axis=1)}

    def observe(self):
        return {"place": self.sim.qpos[:, :3]}

    def terminate(self):
        return self.sim.qpos[:, 2] < self.lowest

    def report(self):
        return {"height": self.sim.qpos[:, 2]}


class Lifted(Same):
    def reset(self, envs, random):
        self.sim.qpos[envs, 2] += 0.2 + random.uniform(0, 0.1)


def walk(env, steps, scale=2.0):
    env.reset(seed=1)
    random = np.random.default_rng(0)
    for _ in range(steps):
        action = random.uniform(-scale, scale, env.action_space.shape).astype(np.float32)
        yield action, env.step(action)


def same(one, two, names=None):
    if isinstance(one, dict):
        for name in names or one:
            same(one[name], two[name])
    elif isinstance(one, np.ndarray) and one.dtype.kind == "O":
        for a, b in zip(one, two, strict=True):
            same(a, b)
    else:
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_an_extension_of_nothing_is_the_base_to_the_bit(backend):
    if backend == "torch":
        pytest.importorskip("torch")
    options = {"num_threads": 1, "max_episode_steps": 20, "backend": backend}
    ours, theirs = stiction.make_vec(Same, 6, **options), stiction.make_vec(ID, 6, **options)
    assert ours.observation_names == theirs.observation_names
    ended = 0
    for (_, one), (_, two) in zip(walk(ours, 60), walk(theirs, 60), strict=True):
        for a, b in zip(one[:4], two[:4], strict=True):
            same(a, b)
        same(one[4], two[4], set(one[4]) - {"final_obs", "_final_obs", "final_info", "_final_info"})
        if "final_obs" in one[4] and np.asarray(one[4]["_final_obs"]).any():
            same(one[4]["final_obs"], two[4]["final_obs"])
            ended += int(np.asarray(one[4]["_final_obs"]).sum())
    assert ended > 12


def test_terms_come_beside_the_base_s():
    env = stiction.make_vec(Calm, 6, num_threads=1, max_episode_steps=40, height_weight=3, tracking_sigma=0.3)
    assert env.task_parameters["height_weight"] == 3
    assert env.task_parameters["tracking_sigma"] == pytest.approx(0.3)
    assert env.observation_names[-3:] == ("place/x", "place/y", "place/z")
    assert env.observation_signals[-1].unit == "m"
    assert env.reward_names[-2:] == ("reward_height", "reward_push")
    low = ended = 0
    for action, (obs, rewards, terminated, truncated, infos) in walk(env, 80):
        over = terminated | truncated
        z = env.simulation.qpos[:, 2]
        np.testing.assert_array_equal(obs[:, -1], z)
        going = ~over
        np.testing.assert_allclose(infos["reward_height"][going], 3 * z[going], rtol=1e-6)
        np.testing.assert_allclose(infos["reward_push"][going], -np.abs(action[going]).sum(axis=1), rtol=1e-5)
        total = sum(infos[name] for name in env.reward_names)
        np.testing.assert_allclose(rewards[going], total[going], rtol=1e-5, atol=1e-5)
        for row in np.flatnonzero(over):
            final = infos["final_obs"][row]
            assert final.shape == (51,)
            assert infos["final_info"]["height"][row] == final[-1]
            low += terminated[row] and final[-1] < 0.25
            ended += 1
        assert (infos["height"][going] >= 0.25).all()  # or the episode is over
    assert low > 0
    assert ended > low or ended > 6
    env.set_task_parameters(height_weight=1, tracking_sigma=0.4)
    assert env.task_parameters["height_weight"] == 1
    assert env.task_parameters["tracking_sigma"] == pytest.approx(0.4)


def test_an_extension_begins_episodes_elsewhere():
    ours, theirs = stiction.make_vec(Lifted, 4, num_threads=1), stiction.make_vec(ID, 4, num_threads=1)
    first, other = ours.reset(seed=5)[0], theirs.reset(seed=5)[0]
    np.testing.assert_array_equal(first[:, 9:], other[:, 9:])  # commands and joints are the base's
    rise = ours.simulation.qpos[:, 2] - theirs.simulation.qpos[:, 2]
    assert ((rise > 0.19) & (rise < 0.31)).all()
    assert len(set(rise.tolist())) == 4
    again = stiction.make_vec(Lifted, 4, num_threads=1)
    again.reset(seed=5)
    np.testing.assert_array_equal(again.simulation.qpos, ours.simulation.qpos)


def test_disabled_resets_wait_for_the_user():
    env = stiction.make_vec(Calm, 3, num_threads=1, autoreset_mode="Disabled", lowest=10.0)
    env.reset(seed=0)
    assert env.step(np.zeros((3, 12)))[2].all()
    with pytest.raises(ValueError, match="environment 0 has ended: reset it"):
        env.step(np.zeros((3, 12)))
    env.reset(options={"reset_mask": np.ones(3, bool)})
    env.step(np.zeros((3, 12)))


def test_a_robot_of_one_s_own_and_a_single_environment(tmp_path):
    path = tmp_path / "mine.xml"
    path.write_text(asset_path("quadruped.xml").read_text().replace("LF_hip", "front_left_hip"))
    feet = {"feet": ("LF_foot", "RF_foot", "LH_foot", "RH_foot")}
    env = stiction.make_vec(Calm, 2, model=str(path), names=feet, num_threads=1)
    assert "joint_position/front_left_hip" in env.observation_names
    kind = type("Mine", (Calm,), {"model": str(path), "names": feet})
    assert "joint_position/front_left_hip" in stiction.make_vec(kind, 2, num_threads=1).observation_names


def test_what_an_extension_cannot_is_named():
    with pytest.raises(ValueError, match="'NextStep' is not supported there"):
        stiction.make_vec(Same, 2, autoreset_mode="NextStep")
    with pytest.raises(TypeError, match="whose actions are its own: no act"):
        stiction.make_vec(type("Acts", (Same,), {"act": lambda self, action: None}))
    with pytest.raises(TypeError, match=r"'hight_weight' is no parameter of Calm.*near: 'height_weight'"):
        stiction.make_vec(Calm, 2, hight_weight=1)
    with pytest.raises(ValueError, match="tells 'velocity_x', as stiction/QuadrupedVelocity-v0 does"):
        stiction.make_vec(type("Twice", (Same,), {"report": lambda self: {"velocity_x": self.sim.qpos[:, 0]}}))
    with pytest.raises(TypeError, match=r"Total.reward\(\) returned a ndarray, expected a dict of terms"):
        stiction.make_vec(type("Total", (Same,), {"reward": lambda self, action: np.zeros(2)}), 2)
    with pytest.raises(TypeError, match=r"Flat.observe\(\) returned a ndarray, expected a dict of terms"):
        stiction.make_vec(type("Flat", (Same,), {"observe": lambda self: self.sim.qpos}))
    nan = type("Broken", (Same,), {"reward": lambda self, a: {"bad": np.full(2, np.nan)}})
    env = stiction.make_vec(nan, 2, num_threads=1)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="told nan for 'reward_bad' of environment 0"):
        env.step(np.zeros((2, 12)))


def test_an_environment_that_is_not_finite_ends_alone():
    env, base = (stiction.make_vec(kind, 3, num_threads=1) for kind in (Calm, ID))
    for envs in (env, base):
        envs.reset(seed=0)
        envs.simulation.qpos[1] = np.nan
    results, expected = (envs.step(np.zeros((3, 12), np.float32)) for envs in (env, base))
    np.testing.assert_array_equal(results[2], [False, True, False])
    assert np.isnan(expected[-1]["final_info"]["velocity_x"][1])
    same(results[-1]["final_info"], expected[-1]["final_info"], base._names)
    assert results[-1]["final_info"]["reward_height"][1] == 0
    assert np.isfinite(results[0]).all()


def test_adapters_take_it():
    pytest.importorskip("torch")
    env = stiction.adapters.isaaclab.Env(stiction.make_vec(Calm, 2, backend="torch", num_threads=1))
    assert env.reset(seed=0)[0]["policy"].shape == (2, 51)
    assert isinstance(env, gymnasium.Env)


def test_steps_of_an_extension_are_its_own_where_they_can_be():
    class Short(stiction.Task):
        base = "stiction/QuadrupedVelocity-v0"
        max_episode_steps = 7

    class Slow(stiction.Task):
        base = "stiction/QuadrupedVelocity-v0"
        substeps = 2

    class Twice(stiction.Task):
        base = "stiction/QuadrupedVelocity-v0"

        def observe(self):
            return {"gravity": self.sim.qpos[:, :3]}

    envs = stiction.make_vec(Short, 2)
    assert envs.max_episode_steps == 7
    assert stiction.make_vec(Short, 2, max_episode_steps=9).max_episode_steps == 9
    envs.reset(seed=0)
    ends = [envs.step(np.zeros((2, 12)))[3] for _ in range(7)]
    assert not np.any(ends[:6]) and np.all(ends[6])
    with pytest.raises(TypeError, match="Slow extends .* substeps"):
        stiction.make_vec(Slow, 2)
    with pytest.raises(ValueError, match="Twice observes 'gravity', as .* does"):
        stiction.make_vec(Twice, 2)


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("np.zeros(3) + np.zeros(self.num_envs)", "mine.py, line 5, in reward: operands could not be broadcast"),
        ("self.sensors.contact_force(3)[:, 0, 2]", "mine.py, line 5, in reward: "),
        ("[[1.0]]", "stiction bench: Mine: reward's 'x' has shape (1, 1), expected (8,)"),
    ],
)
def test_an_error_of_a_users_line_is_told_with_it(term, text, tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(
        f"""import numpy as np, stiction
class Mine(stiction.Task):
    base = "stiction/Ant-v0"
    def reward(self, action):
        return {{"x": {term}}}
"""
    )
    assert cli.main(["bench", f"{file}:Mine", "--num-envs", "8"]) == 1
    assert text in capsys.readouterr().err
