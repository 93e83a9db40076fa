"""What the numbers of an observation are; groups of them for a privileged critic; three trainers as released."""

import gymnasium
import numpy as np
import stiction
import torch
from stable_baselines3 import PPO
from stiction import Group
from stiction.randomisation import Noise

for name in (known for known in gymnasium.registry if known.startswith("stiction/")):
    envs = stiction.make_vec(name, 1)
    assert len(envs.observation_names) == envs.single_observation_space.shape[0] == len(set(envs.observation_names))
    assert all(signal.unit for signal in (*envs.observation_signals, *envs.action_signals)), name


def make(**options):
    groups = {"policy": Group("gravity", "command", "joint_position", history=3), "critic": Group("*", clean=True)}
    options = {"observations": groups, "randomize": [Noise(0.1)], "num_threads": 1} | options
    return stiction.make_vec("stiction/QuadrupedVelocity-v0", 8, **options)


envs = make()
shown, _ = envs.reset(seed=0)
assert {group: values.shape for group, values in shown.items()} == {"policy": (8, 54), "critic": (8, 48)}
assert envs.observation_names["critic"][9] == "command/x"

# Stable-Baselines3, a network for dictionaries
PPO("MultiInputPolicy", stiction.adapters.sb3.VecEnv(make()), n_steps=8, batch_size=32, device="cpu").learn(128)

# rsl_rl, whose critic sees more than its actor
from rsl_rl.runners import OnPolicyRunner  # noqa: E402

network = {"class_name": "MLPModel", "hidden_dims": [32], "activation": "elu", "obs_normalization": True}
config = {
    "num_steps_per_env": 8,
    "save_interval": 100,
    "obs_groups": {"actor": ["policy"], "critic": ["critic"]},
    "actor": network | {"distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 0.5}},
    "critic": dict(network),
    "algorithm": {"class_name": "PPO", "num_learning_epochs": 2, "num_mini_batches": 2, "schedule": "adaptive"},
}
runner = OnPolicyRunner(stiction.adapters.rsl_rl.VecEnv(make(backend="torch")), config, log_dir="rsl_rl", device="cpu")
runner.learn(3)

# skrl, whose value reads states
from skrl.agents.torch.ppo import PPO as SkrlPpo  # noqa: E402
from skrl.agents.torch.ppo import PPO_CFG  # noqa: E402
from skrl.memories.torch import RandomMemory  # noqa: E402
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model  # noqa: E402
from skrl.trainers.torch import SequentialTrainer, SequentialTrainerCfg  # noqa: E402


class Policy(GaussianMixin, Model):
    def __init__(self, **spaces):
        Model.__init__(self, **spaces)
        GaussianMixin.__init__(self)
        self.net = torch.nn.Linear(self.num_observations, self.num_actions)
        self.log_std = torch.nn.Parameter(torch.zeros(self.num_actions))

    def compute(self, inputs, role):
        return self.net(inputs["observations"]), {"log_std": self.log_std}


class Value(DeterministicMixin, Model):
    def __init__(self, **spaces):
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = torch.nn.Linear(self.num_states, 1)

    def compute(self, inputs, role):
        return self.net(inputs["states"]), {}


env = stiction.adapters.skrl.Env(make(backend="torch"), clip_actions=1)
names = ("observation_space", "state_space", "action_space", "device")
spaces = {name: getattr(env, name) for name in names}
models = {"policy": Policy(**spaces), "value": Value(**spaces)}
settings = PPO_CFG(rollouts=8, learning_epochs=1, mini_batches=2)
settings.experiment.write_interval = settings.experiment.checkpoint_interval = 0
memory = RandomMemory(memory_size=8, num_envs=8, device=env.device)
agent = SkrlPpo(models=models, memory=memory, cfg=settings, **spaces)
trainer = SequentialTrainerCfg(timesteps=24, headless=True)
before = models["value"].net.weight.detach().clone()
SequentialTrainer(cfg=trainer, env=env, agents=agent).train()
assert not torch.equal(before, models["value"].net.weight)

# goals, as hindsight experience replay reads them
envs = stiction.make_vec("stiction/ArmLift-v0", 4, observations="goal")
shown, infos = envs.reset(seed=0)
reward = envs.compute_reward(shown["achieved_goal"], shown["desired_goal"], infos)
assert set(np.unique(reward)) <= {-1, 0}
