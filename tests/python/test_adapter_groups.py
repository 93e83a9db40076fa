"""Groups of observations through the adapters: trainers as released, with privileged critics and dictionaries."""

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
torch = pytest.importorskip("torch")
import stiction  # noqa: E402
from stiction import Group  # noqa: E402
from stiction.randomisation import Noise  # noqa: E402

GROUPS = {"policy": Group("gravity", "command", "joint_position", history=2), "critic": Group("*", clean=True)}
POLICY, CRITIC = 2 * 18, 48


def make(num_envs=8, **options):
    options = {"observations": GROUPS, "randomize": [Noise(0.1)], "max_episode_steps": 10} | options
    return stiction.make_vec("stiction/QuadrupedVelocity-v0", num_envs, num_threads=1, **options)


@pytest.fixture(params=["numpy", "torch"])
def backend(request):
    return request.param


def test_isaac_labs_data_have_all_groups(backend):
    env, reference = stiction.adapters.isaaclab.Env(make(backend=backend)), make(backend=backend)
    assert {name: space.shape for name, space in env.single_observation_space.items()} == {
        "policy": (POLICY,),
        "critic": (CRITIC,),
    }
    shown, expected = env.reset(seed=3)[0], reference.reset(seed=3)[0]
    for step in range(10):
        for group in GROUPS:
            np.testing.assert_array_equal(shown[group], expected[group])
        shown, _, _, _, extras = env.step(torch.zeros(8, 12))
        expected, *_, infos = reference.step(np.zeros((8, 12)))
        assert ("final_obs" in extras) == (step == 9)
    for env_id in range(8):
        for group in GROUPS:
            of = infos["final_obs"]
            wanted = of[group][env_id] if backend == "torch" else of[env_id][group]
            np.testing.assert_array_equal(extras["final_obs"][group][env_id], wanted)


def test_rsl_rl_trains_with_a_privileged_critic(tmp_path):
    runners = pytest.importorskip("rsl_rl.runners")
    network = {"class_name": "MLPModel", "hidden_dims": [32], "activation": "elu", "obs_normalization": True}
    config = {
        "num_steps_per_env": 8,
        "save_interval": 100,
        "obs_groups": {"actor": ["policy"], "critic": ["critic"]},
        "actor": network | {"distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 0.5}},
        "critic": dict(network),
        "algorithm": {"class_name": "PPO", "num_learning_epochs": 2, "num_mini_batches": 2, "schedule": "adaptive"},
    }
    env = stiction.adapters.rsl_rl.VecEnv(make(backend="torch"), seed=0)
    runner = runners.OnPolicyRunner(env, config, log_dir=str(tmp_path), device="cpu")
    assert {first_layer(runner.alg.actor).in_features, first_layer(runner.alg.critic).in_features} == {POLICY, CRITIC}
    runner.learn(3)
    assert (tmp_path / "model_2.pt").exists()


def first_layer(module):
    return next(part for part in module.modules() if isinstance(part, torch.nn.Linear))


def test_sb3_trains_on_dictionaries(backend):
    sb3 = pytest.importorskip("stable_baselines3")
    env, reference = stiction.adapters.sb3.VecEnv(make(backend=backend)), make()
    env.seed(3)
    shown, expected = env.reset(), reference.reset(seed=3)[0]
    assert isinstance(shown["policy"], np.ndarray)
    np.testing.assert_allclose(shown["critic"], expected["critic"], atol=1e-6)
    for _ in range(10):
        _, _, dones, infos = env.step(np.zeros((8, 12), np.float32))
    assert dones.all()
    assert {group: row.shape for group, row in infos[0]["terminal_observation"].items()} == {
        "policy": (POLICY,),
        "critic": (CRITIC,),
    }
    model = sb3.PPO("MultiInputPolicy", env, n_steps=16, batch_size=64, n_epochs=1, device="cpu", seed=0)
    before = [p.clone() for p in model.policy.parameters()]
    model.learn(3 * 16 * 8)
    assert any(not torch.equal(a, b) for a, b in zip(before, model.policy.parameters(), strict=True))


def test_skrl_trains_with_states(tmp_path, backend):
    pytest.importorskip("skrl")
    from skrl.agents.torch.ppo import PPO, PPO_CFG
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
    from skrl.trainers.torch import SequentialTrainer, SequentialTrainerCfg

    seen = {"observations": set(), "states": set()}

    class Policy(GaussianMixin, Model):
        def __init__(self, **spaces):
            Model.__init__(self, **spaces)
            GaussianMixin.__init__(self)
            self.net = torch.nn.Linear(POLICY, self.num_actions)
            self.log_std = torch.nn.Parameter(torch.zeros(self.num_actions))

        def compute(self, inputs, role):
            seen["observations"].add(inputs["observations"].shape[-1])
            return self.net(inputs["observations"]), {"log_std": self.log_std}

    class Value(DeterministicMixin, Model):
        def __init__(self, **spaces):
            Model.__init__(self, **spaces)
            DeterministicMixin.__init__(self)
            self.net = torch.nn.Linear(CRITIC, 1)

        def compute(self, inputs, role):
            seen["states"].add(inputs["states"].shape[-1])
            return self.net(inputs["states"]), {}

    env = stiction.adapters.skrl.Env(make(backend=backend), clip_actions=1)
    spaces = {
        "observation_space": env.observation_space,
        "state_space": env.state_space,
        "action_space": env.action_space,
        "device": env.device,
    }
    assert (env.observation_space.shape, env.state_space.shape) == ((POLICY,), (CRITIC,))
    models = {"policy": Policy(**spaces), "value": Value(**spaces)}
    before = models["value"].net.weight.detach().clone()
    cfg = PPO_CFG(rollouts=8, learning_epochs=1, mini_batches=2)
    cfg.experiment.directory, cfg.experiment.write_interval, cfg.experiment.checkpoint_interval = str(tmp_path), 8, 0
    memory = RandomMemory(memory_size=8, num_envs=8, device=env.device)
    agent = PPO(models=models, memory=memory, cfg=cfg, **spaces)
    trainer = SequentialTrainerCfg(timesteps=24, headless=True, close_environment_at_exit=False)
    SequentialTrainer(cfg=trainer, env=env, agents=agent).train()
    assert seen == {"observations": {POLICY}, "states": {CRITIC}}
    assert not torch.equal(before, models["value"].net.weight)


@pytest.mark.parametrize(("library", "adapter"), [("rsl_rl", "VecEnv"), ("skrl", "Env"), ("torch", "isaaclab.Env")])
def test_what_no_policy_could_see_is_refused(library, adapter):
    pytest.importorskip(library)
    module, _, name = adapter.rpartition(".")
    face = getattr(getattr(stiction.adapters, module or library), name)
    with pytest.raises(ValueError, match="envs has the groups all, and who acts sees 'policy': name one so"):
        face(make(observations={"all": "*"}))
    with pytest.raises(ValueError, match="desired_goal.*, and who acts sees 'policy'.*goals are for adapters.sb3"):
        face(stiction.make_vec("stiction/ArmLift-v0", 2, observations="goal"))


def test_our_learner_values_by_the_critics_group():
    from stiction.training.ppo import Options, Ppo, evaluate

    options = Options(num_envs=8, steps=12, epochs=1, minibatch=32, hidden=(16,))
    ppo = Ppo(make(backend="torch"), options, seed=0)
    assert first_layer(ppo.policy.actor).in_features == POLICY
    assert first_layer(ppo.policy.critic).in_features == CRITIC
    before = [p.clone() for p in ppo.parameters]
    assert np.isfinite(list(ppo.iterate().values())).all()
    assert all(not torch.equal(a, b) for a, b in zip(before, ppo.parameters, strict=True))
    columns = ppo._seen[0].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(ppo.policy.value(columns).sum(), columns)
    assert (gradient[:, :POLICY] == 0).all()
    assert (gradient[:, POLICY:] != 0).any()
    returns, lengths = evaluate(ppo.policy, make(2, backend="torch"), seed=1)
    assert (lengths > 0).all()
    assert torch.isfinite(returns).all()
    with pytest.raises(ValueError, match="the learner's policy sees 'policy'"):
        Ppo(make(backend="torch", observations={"all": "*"}), options)
