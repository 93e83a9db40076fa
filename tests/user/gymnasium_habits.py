"""Gymnasium's habits: parameters as keywords, dt, wrappers of environments and batches."""

import gymnasium as gym
import numpy as np
import stiction
from gymnasium.utils.env_checker import check_env

env = gym.make("stiction/Hopper-v0", healthy_z_range=(0.8, 2.0))
assert env.unwrapped.dt == 0.008
check_env(env.unwrapped, skip_render_check=True)
try:
    stiction.make_vec("stiction/Hopper-v0", healthy_zrange=(0.8, 2))
except TypeError as error:
    assert "healthy_z_range" in str(error), error
else:
    raise AssertionError("a keyword of nothing was taken")

envs = gym.make_vec("stiction/Hopper-v0", num_envs=4, autoreset_mode="NextStep")
envs = gym.wrappers.vector.NormalizeObservation(gym.wrappers.vector.RecordEpisodeStatistics(envs))
envs.reset(seed=0)
for _ in range(50):
    observations, *_ = envs.step(envs.action_space.sample())
assert np.isfinite(observations).all()
try:
    stiction.adapters.sb3.VecEnv(envs)
except (TypeError, ValueError) as error:
    assert "wrap" in str(error), error
else:
    raise AssertionError("a wrapped batch was taken")
