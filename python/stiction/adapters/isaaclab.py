"""A batch that looks like an Isaac Lab direct environment: tensors, groups of observations, one `gymnasium.Env`."""

from __future__ import annotations

import gymnasium
import torch
from gymnasium.vector.utils import batch_space

from .batch import Batch, group_spaces


class Env(gymnasium.Env):
    """``envs`` with Isaac Lab's data: observations ``{"policy": (N, D)}``, or the groups of ``envs``, float32 tensors.

    ``step(actions (N, A)) -> (observations, rewards (N,), terminated (N,), truncated (N,), extras)``; an ended
    environment is reset in the same step. ``extras["time_outs"]`` (N,) bool: truncated and not terminated. When
    episodes ended, ``extras["log"]`` has means over them (``Episode_Reward/<term>``) and counts
    (``Episode_Termination/...``), and ``extras["final_obs"]`` their last observations, by group.
    ``clip_actions`` bounds actions to ± itself.
    """

    def __init__(self, envs, *, clip_actions: float | None = None):
        self._batch = Batch(envs, clip_actions)
        self.num_envs = envs.num_envs
        self.device = self._batch.device
        self.step_dt = envs.step_dt
        self.max_episode_length = envs.max_episode_steps
        self.metadata = envs.metadata
        self.render_mode = envs.render_mode
        self.spec = envs.spec
        self.single_observation_space = gymnasium.spaces.Dict(group_spaces(envs))
        self.single_action_space = envs.single_action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.extras: dict = {}

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """Control steps of each episode so far (N,), a copy; assign to set them."""
        return torch.tensor(self._batch.envs.episode_length, dtype=torch.int64, device=self.device)

    @episode_length_buf.setter
    def episode_length_buf(self, steps: torch.Tensor) -> None:
        self._batch.envs.episode_length[:] = steps.cpu().numpy()

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        self.extras = {}
        return self._batch.reset(seed, options), self.extras

    def step(self, actions: torch.Tensor):
        done = self._batch.step(actions)
        self.extras = {"time_outs": done.truncated & ~done.terminated}
        if done.log:
            self.extras |= {"log": done.log, "final_obs": done.final_observations}
        return done.observations, done.rewards, done.terminated, done.truncated, self.extras

    def render(self):
        """The picture of the first environment, as Isaac Lab's; None without a render mode."""
        frames = self._batch.envs.render()
        return None if frames is None else frames[0]

    def close(self) -> None:
        self._batch.envs.close()
