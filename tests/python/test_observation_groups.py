"""Groups of observations: terms, clean critics, histories; NumPy and torch, compiled tasks and Python's."""

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from stiction import Group  # noqa: E402
from stiction.randomisation import Noise, Parameter  # noqa: E402

ID = "stiction/QuadrupedVelocity-v0"
POLICY = ("angular_velocity", "gravity", "command", "joint_position", "joint_velocity", "last_action")
ASYMMETRIC = {"policy": Group(*POLICY, history=3), "critic": Group("*", "geom_friction", clean=True)}
RANDOM = [Parameter("geom_friction", 0.5, 1.25, operation="set", columns=0), Noise(0.05)]


def arrays(values):
    if isinstance(values, dict):
        return {name: arrays(value) for name, value in values.items()}
    return values.numpy() if hasattr(values, "numpy") else values


def walk(env, steps, seed=0):
    """(observations, rewards, over, infos) of random actions, as NumPy's."""
    yield arrays(env.reset(seed=1)[0]), None, np.ones(env.num_envs, bool), {}
    random = np.random.default_rng(seed)
    for _ in range(steps):
        action = random.uniform(-2, 2, env.action_space.shape).astype(np.float32)
        obs, rewards, terminated, truncated, infos = env.step(action)
        yield arrays(obs), arrays(rewards), arrays(terminated | truncated), infos


@pytest.fixture(params=["numpy", "torch"])
def backend(request):
    if request.param == "torch":
        pytest.importorskip("torch")
    return request.param


def make(backend="numpy", n=6, **options):
    options = {"num_threads": 1, "max_episode_steps": 5, "backend": backend} | options
    return stiction.make_vec(ID, n, **options)


def test_groups_are_the_terms_of_the_flat_observation(backend):
    """The critic's are without noise, the policy's with it; parameters are this episode's."""
    env, noisy, clean = (
        make(backend, observations=ASYMMETRIC, randomize=RANDOM),
        make(backend, randomize=RANDOM),
        make(backend, randomize=RANDOM[:1]),
    )
    assert env.single_observation_space["policy"].shape == (3 * 45,)
    names = list(noisy.observation_names)
    kept = [names.index(name) for name in env.observation_names["policy"][-45:]]
    ended, frictions = 0, set()
    for (obs, reward, over, infos), other, plain in zip(walk(env, 12), walk(noisy, 12), walk(clean, 12), strict=True):
        assert env.observation_space.contains({g: np.asarray(o) for g, o in obs.items()})
        np.testing.assert_array_equal(obs["policy"][:, -45:], other[0][:, kept])
        np.testing.assert_array_equal(obs["critic"][:, :48], plain[0])
        friction = env.simulation.params.geom_friction.reshape(6, -1)
        np.testing.assert_array_equal(obs["critic"][:, 48:], np.asarray(friction))
        frictions.add(float(obs["critic"][0, 48]))
        if reward is None or not over.any():
            continue
        final, expected = infos["final_obs"], other[3]["final_obs"]
        for row in np.flatnonzero(over):
            if backend == "numpy":
                got = {g: final[row][g] for g in ("policy", "critic")}
            else:
                got = {g: final[g][row].numpy() for g in ("policy", "critic")}
            np.testing.assert_array_equal(got["policy"][-45:], expected[row][kept])
            np.testing.assert_array_equal(got["critic"][:48], plain[3]["final_obs"][row])
            ended += 1
    assert ended >= 12
    assert len(frictions) > 1
    names = env.observation_names
    assert names["policy"][0] == "angular_velocity/x[-2]"
    assert names["policy"][-45] == "angular_velocity/x"
    assert names["critic"][48:51] == ("geom_friction/floor.0", "geom_friction/floor.1", "geom_friction/floor.2")
    assert set(env.interface()["observations"]) == {"policy", "critic"}


def test_a_history_is_the_last_observations_of_this_episode(backend):
    env = make(backend, observations={"policy": Group("joint_position", "last_action", history=3)})
    past = None
    for obs, reward, over, infos in walk(env, 14):
        frames = obs["policy"].reshape(6, 3, 24)
        if reward is None:
            past = np.repeat(frames[:, -1:], 3, axis=1)
        else:
            final = infos.get("final_obs")
            for row in np.flatnonzero(over):  # its last three, the last of which is not among what is shown now
                last = final[row]["policy"] if backend == "numpy" else final["policy"][row].numpy()
                np.testing.assert_array_equal(last.reshape(3, 24)[:2], past[row, 1:])
                assert not np.array_equal(last.reshape(3, 24)[2], frames[row, -1])
            past = np.concatenate([past[:, 1:], frames[:, -1:]], axis=1)
            past[over] = frames[over, -1:]
        np.testing.assert_array_equal(frames, past)


def test_resetting_some_leaves_the_others_history_alone(backend):
    env = make(backend, n=2, autoreset_mode="Disabled", observations={"policy": Group(history=2)}, max_episode_steps=-1)
    env.reset(seed=0)
    for _ in range(3):
        before = arrays(env.step(np.full((2, 12), 0.3, np.float32))[0])["policy"]
    after = arrays(env.reset(options={"reset_mask": np.array([False, True])})[0])["policy"]
    np.testing.assert_array_equal(after[0], before[0])
    np.testing.assert_array_equal(after[1, :48], after[1, 48:])


def test_next_step_resets_begin_a_history():
    env = make(autoreset_mode="NextStep", observations={"policy": Group("gravity", history=2)})
    shown = list(walk(env, 12))
    for (_, _, over, _), (obs, *_) in zip(shown[1:], shown[2:], strict=False):
        np.testing.assert_array_equal(obs["policy"][over, :3], obs["policy"][over, 3:])


def test_what_a_group_cannot_have_is_named():
    with pytest.raises(ValueError, match=r"observations\['policy'\] has 'gravty', which is no term.*near: 'gravity'"):
        make(observations={"policy": ("gravty",)})
    with pytest.raises(ValueError, match="has a term twice: gravity, gravity"):
        make(observations={"policy": ("gravity", "gravity")})
    with pytest.raises(TypeError, match="expected a dict of groups"):
        make(observations=["gravity"])
    with pytest.raises(ValueError, match="history is 0, expected how many observations"):
        Group("gravity", history=0)
    with pytest.raises(TypeError, match=r"expected a stiction.Group or names"):
        make(observations={"policy": 3})


def test_a_name_of_two_things_is_asked_about_where_a_group_has_it():
    options = {"randomize": [Parameter("gravity", -1, 1, operation="add")]}
    make(observations={"policy": Group("command"), "critic": Group()}, **options)
    with pytest.raises(ValueError, match="has 'gravity', .*say 'observation.gravity' or 'params.gravity'"):
        make(observations={"policy": Group("gravity")}, **options)
    envs = make(observations={"one": Group("observation.gravity"), "other": Group("params.gravity")}, **options)
    observations, _ = envs.reset(seed=0)
    np.testing.assert_allclose(np.linalg.norm(observations["one"], axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(observations["other"], envs.simulation.params.gravity)
    assert envs.observation_names["other"] == ("params.gravity/x", "params.gravity/y", "params.gravity/z")


def test_a_parameter_that_is_shared_is_no_observation():
    for name in ("body_mass", "params.body_mass"):
        with pytest.raises(ValueError, match=f"has '{name}', a parameter that all environments share: randomize it"):
            make(observations={"policy": Group("gravity"), "critic": Group(name)})


# ---- tasks in Python


class Cart(stiction.Task):
    model = """<mujoco><worldbody><body><joint name="x" type="slide" axis="1 0 0"/><geom size=".1"/></body></worldbody>
      <actuator><motor joint="x"/></actuator></mujoco>"""
    observations = {"policy": Group("place", history=2), "critic": Group(clean=True)}
    max_episode_steps = 4

    def observe(self):
        return {"place": self.sim.qpos, "speed": self.sim.qvel}

    def reward(self, action):
        return -(self.sim.qpos[:, 0] ** 2)

    def reset(self, envs, random):
        self.sim.qpos[envs] = random.uniform(-1, 1, shape=1)


@pytest.mark.parametrize("array", ["native", "torch"])
def test_a_task_in_python_has_groups_of_its_own(array, backend):
    pytest.importorskip("torch")
    kind = type("Cart", (Cart,), {"array": array})
    env = stiction.make_vec(kind, 3, backend=backend, num_threads=1, randomize=[Noise(0.1)])
    for obs, _, over, infos in walk(env, 9):
        np.testing.assert_array_equal(obs["critic"][:, 0], np.asarray(env.simulation.qpos)[:, 0])
        assert (obs["policy"][:, 1] != obs["critic"][:, 0]).all()
        if over.any() and infos:
            assert set(infos["final_obs"][0] if backend == "numpy" else infos["final_obs"]) == {"policy", "critic"}
    one = stiction.make_vec(kind, 3, observations={"all": "*"}, num_threads=1)
    assert one.observation_names == {"all": ("place", "speed")}
