"""The adapters: each library's contract, and its trainer as released for a few iterations."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")
torch = pytest.importorskip("torch")
import stiction  # noqa: E402
from stiction.running_statistics import EpisodeStatistics, RunningMoments  # noqa: E402

ID = "stiction/Ant-v0"


def make(num_envs=4, **options):
    return stiction.make_vec(ID, num_envs, num_threads=1, **options)


@pytest.fixture(params=["numpy", "torch"])
def backend(request):
    return request.param


# ---- statistics


def test_moments_of_batches_are_those_of_all_rows():
    rows = torch.randn(1000, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 3 + 1e4
    moments = RunningMoments(5)
    assert torch.equal(moments(rows[:2].float() / 1e4), rows[:2].float() / 1e4)
    for batch in rows.split([1, 7, 400, 592]):
        moments.update(batch)
    torch.testing.assert_close(moments.mean, rows.mean(0), rtol=1e-13, atol=0)
    torch.testing.assert_close(moments.variance, rows.var(0, unbiased=False), rtol=1e-8, atol=0)
    shown = moments(rows)
    torch.testing.assert_close(shown.mean(0), torch.zeros(5, dtype=torch.float64), rtol=0, atol=1e-6)
    assert moments(torch.full((1, 5), 1e9)).max() == moments.clip


def test_moments_survive_saving():
    moments, other = RunningMoments(3), RunningMoments(3)
    moments.update(torch.rand(10, 3))
    other.load_state_dict(moments.state_dict())
    assert torch.equal(other(torch.ones(2, 3)), moments(torch.ones(2, 3)))


def test_episode_statistics_are_those_of_gymnasiums_wrapper(backend):
    ours, theirs = make(backend=backend, max_episode_steps=7), make(max_episode_steps=7)
    theirs = gymnasium.wrappers.vector.RecordEpisodeStatistics(theirs)
    ours.reset(seed=0), theirs.reset(seed=0)
    ours.episode_length[:2] = theirs.unwrapped.episode_length[:2] = 3
    statistics = EpisodeStatistics(4, ours.reward_names)
    ours.action_space.seed(0)
    ended = 0
    for _ in range(20):
        action = ours.action_space.sample()
        _, rewards, terminated, truncated, infos = ours.step(action)
        over = torch.as_tensor(terminated) | torch.as_tensor(truncated)
        episodes = statistics.update(torch.as_tensor(rewards), over, infos)
        expected = theirs.step(action)[4]
        assert (episodes is not None) == ("episode" in expected)
        if episodes is not None:
            mask = expected["_episode"]
            np.testing.assert_allclose(episodes.returns, expected["episode"]["r"][mask], rtol=1e-5)
            np.testing.assert_array_equal(episodes.lengths, expected["episode"]["l"][mask])
            np.testing.assert_allclose(sum(episodes.terms.values()), episodes.returns, rtol=1e-5)
            ended += len(episodes.returns)
    assert ended >= 10


# ---- which environments they take


@pytest.mark.parametrize("name", ["rsl_rl.VecEnv", "sb3.VecEnv", "skrl.Env", "isaaclab.Env"])
def test_refuses_other_environments(name):
    module, face = name.split(".")
    pytest.importorskip({"sb3": "stable_baselines3", "isaaclab": "torch"}.get(module, module))
    adapter = getattr(getattr(stiction.adapters, module), face)
    with pytest.raises(ValueError, match="autoreset_mode 'NextStep', expected 'SameStep'"):
        adapter(make(autoreset_mode="NextStep"))
    with pytest.raises(TypeError, match="without wrappers"):
        adapter(gymnasium.wrappers.vector.ClipAction(make()))


def test_adapters_are_imported_when_asked_for():
    code = (
        "import stiction, sys; stiction.adapters\n"
        "print([m for m in ('torch', 'rsl_rl', 'skrl', 'stable_baselines3') if m in sys.modules])\n"
        "sys.modules['skrl'] = None\n"
        "try: stiction.adapters.skrl\n"
        "except ImportError as error: print(error)\n"
        "try: stiction.adapters.tianshou\n"
        "except AttributeError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert lines[0] == "[]", done.stderr
    assert "stiction.adapters.skrl needs skrl: pip install skrl" in lines[1]
    assert "rsl_rl" in lines[2]


# ---- Isaac Lab's data


def test_isaac_lab_data(backend):
    env, reference = stiction.adapters.isaaclab.Env(make(backend=backend)), make()
    assert env.single_observation_space["policy"].shape == (105,)
    assert env.max_episode_length == 1000
    observations, extras = env.reset(seed=3)
    np.testing.assert_array_equal(observations["policy"], reference.reset(seed=3)[0])
    assert extras == {}
    assert env.observation_space.contains({"policy": observations["policy"].numpy()})
    env.episode_length_buf = torch.tensor([998, 0, 997, 0])
    reference.episode_length[:] = env.episode_length_buf
    log_seen = 0
    for t in range(4):
        action = torch.full((4, 8), 0.1 * t)
        observations, rewards, terminated, truncated, extras = env.step(action)
        expected = reference.step(action.numpy())
        np.testing.assert_array_equal(observations["policy"], expected[0])
        np.testing.assert_array_equal(rewards, expected[1])
        assert terminated.dtype == truncated.dtype == torch.bool
        assert torch.equal(extras["time_outs"], truncated & ~terminated)
        if truncated.any():
            log_seen += 1
            e = int(truncated.nonzero()[0])
            np.testing.assert_array_equal(extras["final_obs"]["policy"][e], expected[4]["final_obs"][e])
            assert extras["log"]["Episode_Termination/time_out"] == 1
            assert set(extras["log"]) >= {f"Episode_Reward/{name}" for name in reference.reward_names}
        else:
            assert "log" not in extras
            assert "final_obs" not in extras
    assert log_seen == 2
    env.close()


def test_clipped_actions():
    envs, reference = make(), make()
    env = stiction.adapters.isaaclab.Env(envs, clip_actions=1)
    env.reset(seed=0), reference.reset(seed=0)
    np.testing.assert_array_equal(env.step(torch.full((4, 8), 3.0))[1], reference.step(np.ones((4, 8)))[1])
    with pytest.raises(ValueError, match="clip_actions"):
        stiction.adapters.isaaclab.Env(envs, clip_actions=0)


# ---- rsl_rl


def rsl_rl_config():
    network = {"class_name": "MLPModel", "hidden_dims": [32, 32], "activation": "elu", "obs_normalization": True}
    return {
        "num_steps_per_env": 8,
        "save_interval": 100,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": network | {"distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 0.5}},
        "critic": dict(network),
        "algorithm": {"class_name": "PPO", "num_learning_epochs": 2, "num_mini_batches": 2, "schedule": "adaptive"},
    }


def test_rsl_rl_contract(backend):
    rsl_rl = pytest.importorskip("rsl_rl.env")
    from tensordict import TensorDict

    env, reference = stiction.adapters.rsl_rl.VecEnv(make(backend=backend), seed=5), make()
    assert isinstance(env, rsl_rl.VecEnv)
    first = env.get_observations()
    assert isinstance(first, TensorDict)
    assert first.batch_size == (4,)
    np.testing.assert_array_equal(first["policy"], reference.reset(seed=5)[0])
    assert torch.equal(env.get_observations()["policy"], first["policy"])
    assert (env.num_envs, env.num_actions, env.max_episode_length) == (4, 8, 1000)
    kept = first["policy"].clone()
    env.episode_length_buf = torch.tensor([999, 5, 5, 999])
    observations, rewards, dones, extras = env.step(torch.zeros(4, 8))
    expected = reference.step(np.zeros((4, 8)))
    np.testing.assert_array_equal(rewards, expected[1])
    assert dones.tolist() == [1, 0, 0, 1]
    assert dones.dtype == torch.long
    assert extras["time_outs"].tolist() == [True, False, False, True]
    assert extras["log"]["Episode_Termination/time_out"] == 2
    assert torch.equal(env.get_observations()["policy"], observations["policy"])
    assert torch.equal(first["policy"], kept)
    assert env.episode_length_buf.tolist() == [0, 6, 6, 0]
    with pytest.raises(ValueError, match="no time limit"):
        stiction.adapters.rsl_rl.VecEnv(make(max_episode_steps=-1))


def test_rsl_rl_trains(tmp_path, capsys):
    runners = pytest.importorskip("rsl_rl.runners")
    env = stiction.adapters.rsl_rl.VecEnv(make(16, backend="torch"), seed=0)
    runner = runners.OnPolicyRunner(env, rsl_rl_config(), log_dir=str(tmp_path), device="cpu")
    runner.learn(3, init_at_random_ep_len=True)
    assert env.episode_length_buf.max() > 24
    assert (tmp_path / "model_2.pt").exists()
    assert "Mean value loss" in capsys.readouterr().out


# ---- Stable-Baselines3


def test_sb3_contract(backend):
    pytest.importorskip("stable_baselines3")
    env, reference = stiction.adapters.sb3.VecEnv(make(backend=backend, max_episode_steps=3)), make(max_episode_steps=3)
    env.seed(7)
    np.testing.assert_array_equal(env.reset(), reference.reset(seed=7)[0])
    total = np.zeros(4)
    for t in range(4):
        observations, rewards, dones, infos = env.step(np.full((4, 8), 0.1, np.float32))
        expected = reference.step(np.full((4, 8), 0.1, np.float32))
        np.testing.assert_array_equal(observations, expected[0])
        assert rewards.dtype == np.float32
        assert dones.tolist() == [t == 2] * 4
        total += rewards
        if t == 2:
            for e, info in enumerate(infos):
                np.testing.assert_array_equal(info["terminal_observation"], expected[4]["final_obs"][e])
                assert info["TimeLimit.truncated"] is True
                assert info["episode"]["r"] == pytest.approx(total[e], rel=1e-6)
                assert (info["episode"]["l"], info["episode"]["t"]) == (3, 0.15)
        else:
            assert infos == [{}] * 4
    assert env.get_attr("step_dt", indices=[0, 2]) == [0.05, 0.05]
    env.set_attr("note", 3)
    assert env.get_attr("note") == [3] * 4
    assert env.env_is_wrapped(gymnasium.Wrapper) == [False] * 4
    with pytest.raises(ValueError, match="all environments"):
        env.env_method("render", indices=[1])


def test_sb3_trains():
    sb3 = pytest.importorskip("stable_baselines3")
    env = stiction.adapters.sb3.VecEnv(make(8, max_episode_steps=20))
    model = sb3.PPO("MlpPolicy", env, n_steps=16, batch_size=64, n_epochs=2, device="cpu", seed=0)
    before = [p.clone() for p in model.policy.parameters()]
    model.learn(3 * 16 * 8)
    assert any(not torch.equal(a, b) for a, b in zip(before, model.policy.parameters(), strict=True))
    assert len(model.ep_info_buffer) > 0
    monitored = sb3.common.vec_env.VecNormalize(sb3.common.vec_env.VecMonitor(env))
    sb3.PPO("MlpPolicy", monitored, n_steps=8, batch_size=64, n_epochs=1, device="cpu").learn(64)


# ---- skrl


def test_skrl_trains(tmp_path, backend):
    pytest.importorskip("skrl")
    from skrl.agents.torch.ppo import PPO, PPO_CFG
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
    from skrl.trainers.torch import SequentialTrainer, SequentialTrainerCfg
    from skrl.utils import set_seed

    class Policy(GaussianMixin, Model):
        def __init__(self, observation_space, action_space, device):
            Model.__init__(self, observation_space=observation_space, action_space=action_space, device=device)
            GaussianMixin.__init__(self)
            self.net = torch.nn.Linear(self.num_observations, self.num_actions)
            self.log_std = torch.nn.Parameter(torch.zeros(self.num_actions))

        def compute(self, inputs, role):
            return self.net(inputs["observations"]), {"log_std": self.log_std}

    class Value(DeterministicMixin, Model):
        def __init__(self, observation_space, action_space, device):
            Model.__init__(self, observation_space=observation_space, action_space=action_space, device=device)
            DeterministicMixin.__init__(self)
            self.net = torch.nn.Linear(self.num_observations, 1)

        def compute(self, inputs, role):
            return self.net(inputs["observations"]), {}

    set_seed(0)
    env = stiction.adapters.skrl.Env(make(8, backend=backend, max_episode_steps=10), clip_actions=1)
    assert (env.num_envs, env.observation_space.shape, env.action_space.shape) == (8, (105,), (8,))
    spaces = (env.observation_space, env.action_space, env.device)
    models = {"policy": Policy(*spaces), "value": Value(*spaces)}
    before = models["policy"].net.weight.detach().clone()
    cfg = PPO_CFG(rollouts=8, learning_epochs=1, mini_batches=2)
    cfg.experiment.directory, cfg.experiment.write_interval, cfg.experiment.checkpoint_interval = str(tmp_path), 8, 0
    agent = PPO(
        models=models,
        memory=RandomMemory(memory_size=8, num_envs=8, device=env.device),
        cfg=cfg,
        observation_space=env.observation_space,
        action_space=env.action_space,
        device=env.device,
    )
    trainer = SequentialTrainerCfg(timesteps=24, headless=True, close_environment_at_exit=False)
    SequentialTrainer(cfg=trainer, env=env, agents=agent).train()
    assert not torch.equal(before, models["policy"].net.weight)


# ---- RLlib


def test_infos_as_a_list_as_rllib_reads_them():
    env = gymnasium.make_vec(f"stiction:{ID}", num_envs=3, autoreset_mode="NextStep", max_episode_steps=2)
    env = gymnasium.wrappers.vector.DictInfoToList(env)
    env.reset(seed=0)
    for _ in range(4):
        infos = env.step(env.action_space.sample())[4]
        assert len(infos) == 3
        assert all(np.isfinite(info["x_position"]) for info in infos)


def test_rllib_trains():
    pytest.importorskip("ray")
    from ray.rllib.algorithms.ppo import PPOConfig

    config = PPOConfig().environment(f"stiction:{ID}", env_config={"autoreset_mode": "NextStep"})
    mode = gymnasium.VectorizeMode.VECTOR_ENTRY_POINT
    config.env_runners(num_env_runners=0, num_envs_per_env_runner=4, gym_env_vectorize_mode=mode)
    config.training(train_batch_size_per_learner=64, minibatch_size=32, num_epochs=1)
    result = config.build_algo().train()
    assert result["env_runners"]["num_env_steps_sampled_lifetime"] >= 64
