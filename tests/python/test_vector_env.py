"""The Gymnasium face: vector environments, single environments, registration, errors."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from gymnasium.utils.env_checker import check_env, data_equivalence  # noqa: E402
from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402

stiction.register_envs()
ID = "stiction/Ant-v0"
MODES = ["NextStep", "SameStep", "Disabled"]


def make(num_envs=3, **options):
    return stiction.make_vec(ID, num_envs, **options)


def zeros(env):
    return np.zeros(env.action_space.shape, np.float32)


def run_python(code, **environment):
    kept = {name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "DISPLAY")}
    kept["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=kept | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- one environment


def test_single_environment_passes_gymnasiums_checker():
    env = gymnasium.make(ID)
    assert env.spec.max_episode_steps == 1000
    check_env(env.unwrapped, skip_render_check=True)


def test_single_environment_draws_its_seed_from_np_random():
    first, second = gymnasium.make(ID), gymnasium.make(ID)
    assert not np.array_equal(first.reset()[0], second.reset()[0])
    assert not np.array_equal(first.reset()[0], first.reset()[0])


def test_pictures():
    """In a process of its own: how mujoco renders is settled when it is first imported."""
    out = run_python(
        "import gymnasium, stiction, numpy as np\n"
        "from gymnasium.utils.env_checker import check_env\n"
        f"env = gymnasium.make('{ID}', render_mode='rgb_array')\n"
        "check_env(env.unwrapped)\n"
        f"envs = gymnasium.make_vec('{ID}', num_envs=3, render_mode='rgb_array')\n"
        "envs.reset(seed=0)\n"
        "frames = envs.render()\n"
        "assert len(frames) == 3 and all(f.shape == (480, 480, 3) and f.dtype == np.uint8 for f in frames)\n"
        "assert all(f.std() > 10 for f in frames) and (frames[0] != frames[1]).any()\n"
        "assert (envs.call('render')[2] == frames[2]).all()\n"
        "envs.close()\n"
        "print('drawn')\n"
    )
    assert "drawn" in out


def test_no_picture_without_render_mode():
    env = make()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None
    with gymnasium.make(ID) as single, pytest.warns(UserWarning, match="render"):
        single.reset(seed=0)
        assert single.unwrapped.render() is None


# ---- against Gymnasium's own vector environment


def same_infos(ours, reference):
    """Whatever the reference tells is told, under the same masks; what it does not tell is masked."""
    for name, value in reference.items():
        if isinstance(value, dict):
            same_infos(ours[name], value)
        elif name == "final_obs":
            for a, b in zip(ours[name], value, strict=True):
                assert (a is None) == (b is None)
                assert a is None or np.array_equal(a, b)
        else:
            np.testing.assert_array_equal(ours[name], value, err_msg=name)
    for name in ours.keys() - reference.keys():
        if name.startswith("_"):
            assert not ours[name].any(), name


@pytest.mark.parametrize("mode", MODES)
def test_does_what_gymnasiums_vector_environment_does(mode):
    """Step by step the same data as SyncVectorEnv over single environments, through truncations and partial resets."""
    n = 3
    ours = make(n, autoreset_mode=mode, max_episode_steps=4)
    reference = SyncVectorEnv([lambda: gymnasium.make(ID, max_episode_steps=4)] * n, autoreset_mode=mode)
    assert ours.metadata["autoreset_mode"] is reference.metadata["autoreset_mode"]
    assert ours.observation_space == reference.observation_space
    assert ours.action_space == reference.action_space

    def reset(**arguments):
        (a, info_a), (b, info_b) = ours.reset(**arguments), reference.reset(**arguments)
        np.testing.assert_array_equal(a, b)
        same_infos(info_a, info_b)

    reset(seed=10)
    ours.action_space.seed(0)
    ends = 0
    for t in range(14):
        action = ours.action_space.sample()
        results, expected = ours.step(action), reference.step(action)
        for a, b in zip(results[:4], expected[:4], strict=True):
            np.testing.assert_array_equal(a, b)
        same_infos(results[4], expected[4])
        over = results[2] | results[3]
        ends += over.sum()
        if t == 1:  # out of step with each other from here on
            mask = np.array([False, True, False])
            reset(seed=[None, 77, None], options={"reset_mask": mask})
        elif mode == "Disabled" and over.any():
            reset(options={"reset_mask": over})
    assert ends >= 6


# ---- automatic resets, as in Gymnasium's tests/vector/test_autoreset_mode.py: ends after 2, 3 and 3 steps


def staggered(mode):
    env = make(3, autoreset_mode=mode, max_episode_steps=3)
    obs, _ = env.reset(seed=0)
    env.episode_length[:] = [1, 0, 0]
    return env, obs


def test_next_step():
    env, _ = staggered("NextStep")
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    ends = []
    for t in range(5):
        obs, reward, terminated, truncated, infos = env.step(zeros(env))
        ends.append(truncated.tolist())
        assert not terminated.any()
        assert "final_obs" not in infos
        begun = np.array([t in (2,), t in (3,), t in (3,)])
        assert (reward[begun] == 0).all()
        assert (reward[~begun] != 0).all()
        assert (infos["_x_velocity"] == ~begun).all()
        assert infos["_x_position"].all()
        assert (obs[begun, 27:] == 0).all()
    assert ends == [[False] * 3, [True, False, False], [False, True, True], [False] * 3, [False] * 3]
    assert env.episode_length.tolist() == [2, 1, 1]


def test_same_step():
    env, _ = staggered("SameStep")
    ends = []
    for _ in range(4):
        states = env.simulation.qpos.copy()
        obs, reward, terminated, truncated, infos = env.step(zeros(env))
        ends.append(truncated.tolist())
        if truncated.any():
            assert (infos["_final_obs"] == truncated).all()
            assert (infos["_final_info"] == truncated).all()
            for e in range(3):
                assert (infos["final_obs"][e] is None) == (not truncated[e])
            e = int(np.flatnonzero(truncated)[0])
            last = infos["final_obs"][e]
            assert last in env.single_observation_space
            assert abs(last[0] - states[e, 2]) < 0.2
            assert not np.array_equal(last, obs[e])
            final = infos["final_info"]
            assert (final["_x_velocity"] == truncated).all()
            terms = [final[name][e] for name in final if name.startswith("reward_")]
            assert reward[e] == pytest.approx(sum(terms), rel=1e-5)
            assert (infos["_x_velocity"] == ~truncated).all()
            assert (infos["x_velocity"][truncated] == 0).all()
        else:
            assert "final_obs" not in infos
            assert infos["_x_velocity"].all()
    assert ends == [[False] * 3, [True, False, False], [False, True, True], [False] * 3]


def test_disabled():
    env, _ = staggered("Disabled")
    env.step(zeros(env))
    obs, _, _, truncated, infos = env.step(zeros(env))
    assert truncated.tolist() == [True, False, False]
    assert "final_obs" not in infos
    with pytest.raises(ValueError, match="environment 0 has ended"):
        env.step(zeros(env))
    fresh, infos = env.reset(options={"reset_mask": truncated})
    np.testing.assert_array_equal(fresh[1:], obs[1:])
    assert not np.array_equal(fresh[0], obs[0])
    assert infos["_x_position"].tolist() == [True, False, False]
    env.step(zeros(env))


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_mode_by_name_or_member(mode):
    for given in (mode, mode.value):
        assert make(2, autoreset_mode=given).metadata["autoreset_mode"] is mode


# ---- resets


def test_partial_reset_leaves_others_and_the_options_alone():
    env = make(4)
    env.reset(seed=0)
    env.step(zeros(env))
    before = env.simulation.qpos.copy()
    options = {"reset_mask": np.array([True, False, True, False])}
    obs, _ = env.reset(seed=[5, 6, None, None], options=options)
    assert list(options) == ["reset_mask"]
    np.testing.assert_array_equal(env.simulation.qpos[[1, 3]], before[[1, 3]])
    np.testing.assert_array_equal(obs[0], make(1).reset(seed=5)[0][0])
    assert env.episode_length.tolist() == [0, 1, 0, 1]
    assert env.np_random_seed == (5, 1, 2, 3)


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([True, False, True], TypeError),
        (np.array([1, 0, 1]), TypeError),
        (np.array([True, False]), ValueError),
        (np.zeros(3, bool), ValueError),
    ],
)
def test_partial_reset_refuses(mask, error):
    env = make(3)
    env.reset(seed=0)
    with pytest.raises(error, match="reset_mask"):
        env.reset(options={"reset_mask": mask})


def test_seeds():
    env = make(3)
    a, _ = env.reset(seed=4)
    b, _ = env.reset()
    c, _ = env.reset(seed=[4, 5, 6])
    d, _ = env.reset()
    e, _ = env.reset(seed=[6, None, 4])
    np.testing.assert_array_equal(a, c)
    np.testing.assert_array_equal(b, d)
    assert not np.isclose(a, b).all(axis=1).any()
    np.testing.assert_array_equal(e[[0, 2]], a[[2, 0]])
    assert env.np_random_seed == (6, 5, 4)
    assert not np.array_equal(make(3).reset()[0], make(3).reset()[0])
    for wrong, error in (([1, 2], ValueError), (-1, ValueError), ("a", TypeError), ([1, 2, 0.5], TypeError)):
        with pytest.raises(error):
            env.reset(seed=wrong)


# ---- what is returned


def test_returns_are_never_overwritten():
    env = make(3, max_episode_steps=2)
    kept, copies = [], []
    for t in range(8):
        if t == 0:
            obs, infos = env.reset(seed=0)
            kept.append([obs])
        else:
            obs, reward, terminated, truncated, infos = env.step(env.action_space.sample())
            kept.append([obs, reward, terminated, truncated])
        kept[-1] += [value for value in infos.values() if isinstance(value, np.ndarray) and value.dtype != object]
        copies.append([np.copy(a) for a in kept[-1]])
    arrays = [a for row in kept for a in row]
    for a, b in zip(arrays, [c for row in copies for c in row], strict=True):
        np.testing.assert_array_equal(a, b)
    for t, row in enumerate(kept):
        for a in row:
            assert not any(np.shares_memory(a, b) for other in kept[t + 1 :] for b in other)


def test_spaces_hold_what_is_returned():
    env = make(3)
    assert env.observation_space.contains(env.reset(seed=0)[0])
    obs, reward, terminated, truncated, infos = env.step(env.action_space.sample())
    assert env.observation_space.contains(obs)
    assert reward.shape == terminated.shape == truncated.shape == (3,)
    assert terminated.dtype == truncated.dtype == np.bool_
    for name, value in infos.items():
        if not name.startswith("_"):
            assert value.shape == (3,)
            assert infos[f"_{name}"].all()
    terms = sum(value for name, value in infos.items() if name.startswith("reward_"))
    np.testing.assert_allclose(terms, reward, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_episode_statistics_wrapper(mode):
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(make(2, autoreset_mode=mode, max_episode_steps=3))
    env.reset(seed=0)
    total, told = np.zeros(2), 0
    for _ in range(3):
        _, reward, _, truncated, infos = env.step(zeros(env))
        total += reward
    assert truncated.all()
    np.testing.assert_allclose(infos["episode"]["r"], total, rtol=1e-5)
    assert infos["episode"]["l"].tolist() == [3, 3]
    for _ in range(4):
        told += "episode" in env.step(zeros(env))[4]
    assert told == 1


def test_normalising_wrappers_with_next_step():
    env = make(4, autoreset_mode="NextStep", max_episode_steps=5)
    env = gymnasium.wrappers.vector.NormalizeReward(gymnasium.wrappers.vector.NormalizeObservation(env))
    env.reset(seed=0)
    for _ in range(12):
        obs, reward, *_ = env.step(env.action_space.sample())
        assert np.isfinite(obs).all()
        assert np.isfinite(reward).all()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_wrappers_of_actions_and_rewards(mode):
    wrappers = gymnasium.wrappers.vector
    env = wrappers.ClipAction(wrappers.RescaleAction(make(autoreset_mode=mode, max_episode_steps=2), -2.0, 2.0))
    env, reference = wrappers.TransformReward(env, lambda r: 10 * r), make(autoreset_mode=mode, max_episode_steps=2)
    env.reset(seed=0), reference.reset(seed=0)
    for _ in range(5):
        results, expected = env.step(np.full((3, 8), 2.6, np.float32)), reference.step(np.ones((3, 8)))
        np.testing.assert_allclose(results[0], expected[0], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(results[1], 10 * expected[1], rtol=1e-4)
        np.testing.assert_array_equal(results[3], expected[3])


def test_observation_wrapper_with_next_step():
    env = gymnasium.wrappers.vector.TransformObservation(make(autoreset_mode="NextStep"), lambda x: 2 * x)
    np.testing.assert_array_equal(env.reset(seed=0)[0], 2 * make().reset(seed=0)[0])
    with pytest.raises(ValueError):
        gymnasium.wrappers.vector.TransformObservation(make(autoreset_mode="SameStep"), lambda x: 2 * x)


# ---- registration


def test_gymnasium_makes_both_kinds():
    vector = gymnasium.make_vec(ID, num_envs=3, solver="pgs", max_episode_steps=9)
    assert isinstance(vector, stiction.VectorEnv)
    assert vector.max_episode_steps == 9
    assert vector.simulation.solver.name == "pgs"
    assert vector.spec.id == ID
    single = gymnasium.make(ID, dtype="float64")
    assert single.observation_space.dtype == np.float64
    sync = gymnasium.make_vec(ID, num_envs=2, vectorization_mode="sync")
    np.testing.assert_array_equal(sync.reset(seed=3)[0], vector.reset(seed=3)[0][:2])


def test_ids_by_module_prefix_and_import_order():
    assert "105" in run_python(f"import gymnasium\nprint(gymnasium.make('stiction:{ID}').observation_space.shape)")
    assert "105" in run_python(f"import gymnasium, stiction\nprint(gymnasium.make('{ID}').observation_space.shape)")
    code = "import stiction, sys\nprint([m for m in ('gymnasium', 'torch', 'mujoco') if m in sys.modules])"
    assert run_python(code).strip() == "[]"


def test_numpy_backend_leaves_torch_alone():
    code = f"import stiction, sys\nstiction.make_vec('{ID}').reset()\nprint('torch' in sys.modules)"
    assert run_python(code).strip() == "False"


def test_torch_backend():
    torch = pytest.importorskip("torch")
    env, other = make(3, backend="torch", max_episode_steps=2), make(3, max_episode_steps=2)
    obs, infos = env.reset(seed=0)
    np.testing.assert_array_equal(obs.numpy(), other.reset(seed=0)[0])
    for t in range(4):
        obs, reward, terminated, truncated, infos = env.step(torch.full((3, 8), 0.2))
        expected = other.step(np.full((3, 8), 0.2, np.float32))
        np.testing.assert_array_equal(obs.numpy(), expected[0])
        np.testing.assert_array_equal(reward.numpy(), expected[1])
        assert truncated.dtype == torch.bool
        assert infos["final_obs"].shape == (3, 105)
        assert infos["_final_obs"].tolist() == [t % 2 == 1] * 3
        assert infos["final_info"]["x_velocity"].shape == (3,)
    np.testing.assert_array_equal(infos["final_obs"][1].numpy(), expected[4]["final_obs"][1])
    env.reset(options={"reset_mask": torch.tensor([True, False, False])})


# ---- errors


@pytest.mark.parametrize(
    ("actions", "error"),
    [
        (np.zeros((2, 8)), ValueError),
        (np.zeros((4, 8)), ValueError),
        (np.zeros((3, 7)), ValueError),
        (np.zeros(24), ValueError),
        (0.5, TypeError),
        (None, TypeError),
        ("abc", TypeError),
        ([[1.0] * 8, [1.0] * 8, [1.0] * 7], ValueError),
        (np.zeros((3, 8), complex), TypeError),
        (np.zeros((3, 8), object), TypeError),
    ],
)
def test_refuses_actions(actions, error):
    env = make(3)
    env.reset(seed=0)
    with pytest.raises(error):
        env.step(actions)


def test_takes_actions_of_any_layout():
    env, other = make(3), make(3)
    env.reset(seed=0), other.reset(seed=0)
    action = env.action_space.sample()
    expected = other.step(action)[0]
    np.testing.assert_array_equal(env.step(np.asfortranarray(action.astype(np.float64)))[0], expected)
    np.testing.assert_array_equal(env.step(action.tolist())[0], other.step(np.repeat(action, 2, axis=0)[::2])[0])


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"autoreset_mode": "Sometimes"}, ValueError, "autoreset_mode"),
        ({"backend": "jax"}, ValueError, "backend"),
        ({"device": "tpu"}, ValueError, "device"),
        ({"render_mode": "human"}, ValueError, "render_mode"),
        ({"max_episode_steps": 0}, ValueError, "max_episode_steps"),
        ({"max_episode_steps": 2.5}, TypeError, "max_episode_steps"),
        ({"num_envs": 0}, ValueError, "num_envs"),
        ({"solver": "newton"}, ValueError, "solver"),
        ({"colour": "red"}, TypeError, "colour"),
    ],
)
def test_refuses_options(options, error, text):
    with pytest.raises(error, match=text):
        make(**({"num_envs": 2} | options))


def test_names_what_there_is():
    with pytest.raises(ValueError, match="did you mean 'stiction/Ant-v0'"):
        stiction.make_vec("stiction/Ant-v1")
    with pytest.raises(TypeError, match="id is int"):
        stiction.make_vec(3)


def test_order_of_calls():
    env = make(2)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(zeros(env))
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.reset(options={"reset_mask": np.array([True, False])})
    env.reset(seed=0)
    env.close()
    env.close()
    for call in (env.reset, env.render, lambda: env.step(zeros(env))):
        with pytest.raises(gymnasium.error.ClosedEnvironmentError):
            call()


def test_attributes_once_per_environment():
    env = make(3)
    assert env.get_attr("step_dt") == (env.step_dt,) * 3
    env.set_attr("note", [4, 4, 4])
    assert env.call("note") == (4, 4, 4)
    with pytest.raises(ValueError, match="share"):
        env.set_attr("note", [1, 2, 3])


def test_infos_are_equal_for_equal_steps():
    a, b = make(2), make(2)
    assert data_equivalence(a.reset(seed=1), b.reset(seed=1), exact=True)
    action = a.action_space.sample()
    assert data_equivalence(a.step(action), b.step(action), exact=True)


def test_attributes_that_are_task_parameters_are_set_as_such():
    envs = stiction.make_vec("stiction/Ant-v0", 2)
    envs.set_attr("ctrl_cost_weight", [5.0, 5.0])
    assert envs.task_parameters["ctrl_cost_weight"] == 5.0 and envs.get_attr("ctrl_cost_weight") == (5.0, 5.0)
    one = gymnasium.make("stiction:stiction/Ant-v0")
    assert one.set_wrapper_attr("ctrl_cost_weight", 5.0)
    assert one.unwrapped.task_parameters["ctrl_cost_weight"] == one.get_wrapper_attr("ctrl_cost_weight") == 5.0
    theirs = gymnasium.make_vec("stiction:stiction/Ant-v0", 2, vectorization_mode="sync")
    theirs.set_attr("ctrl_cost_weight", 5.0)
    for batch in (envs, theirs):
        batch.reset(seed=0)
        assert batch.step(np.full((2, 8), 0.5, np.float32))[4]["reward_ctrl"] == pytest.approx(-10)
    with pytest.raises(AttributeError):
        one.get_wrapper_attr("no_such_thing")
