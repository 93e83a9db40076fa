"""A batch as `rsl_rl.env.VecEnv` (rsl-rl-lib 5): ``OnPolicyRunner(VecEnv(envs), config, log_dir)``."""

from __future__ import annotations

import torch
from rsl_rl.env import VecEnv as Base
from tensordict import TensorDict

from .batch import Batch


class VecEnv(Base):
    """``envs`` for rsl_rl's runners, which never reset: the constructor does, with ``seed``.

    Observations are a `TensorDict` of one group, ``"policy"`` (N, D), or of those of ``envs``. Extras: ``"time_outs"``
    (N,) and, when episodes ended, ``"log"``. Assigning `episode_length_buf` moves the time limits with it.
    ``clip_actions`` bounds actions to ± itself.
    """

    def __init__(self, envs, *, seed: int | None = None, clip_actions: float | None = None):
        self._batch = Batch(envs, clip_actions)
        if envs.max_episode_steps is None:
            raise ValueError("envs has no time limit, and rsl_rl wants one: give make_vec max_episode_steps")
        self.num_envs = envs.num_envs
        self.num_actions = envs.single_action_space.shape[0]
        self.max_episode_length = envs.max_episode_steps
        self.device = self._batch.device
        self.step_dt = envs.step_dt
        self.cfg = {"env_id": envs.env_id, "num_envs": envs.num_envs, "step_dt": envs.step_dt, "seed": seed}
        self._observations = self._grouped(self._batch.reset(seed))

    @property
    def unwrapped(self) -> VecEnv:
        return self

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """Control steps of each episode so far (N,), a copy; assign to set them."""
        return torch.tensor(self._batch.envs.episode_length, dtype=torch.int64, device=self.device)

    @episode_length_buf.setter
    def episode_length_buf(self, steps: torch.Tensor) -> None:
        self._batch.envs.episode_length[:] = steps.cpu().numpy()

    def get_observations(self) -> TensorDict:
        return self._observations

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict]:
        done = self._batch.step(actions)
        self._observations = self._grouped(done.observations)
        extras = {"time_outs": done.truncated & ~done.terminated}
        if done.log:
            extras["log"] = done.log
        return self._observations, done.rewards, (done.terminated | done.truncated).long(), extras

    def close(self) -> None:
        self._batch.envs.close()

    def _grouped(self, observations: dict[str, torch.Tensor]) -> TensorDict:
        return TensorDict(observations, batch_size=[self.num_envs])
