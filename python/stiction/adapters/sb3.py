"""A batch as Stable-Baselines3's `VecEnv`: ``PPO("MlpPolicy", VecEnv(envs))``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.vec_env import VecEnv as Base

from stiction.running_statistics import EpisodeStatistics

from .batch import same_step


class VecEnv(Base):
    """``envs`` for Stable-Baselines3: NumPy arrays, and a list of dicts as infos. With groups of observations these are
    dictionaries: "MultiInputPolicy".

    With ``observations="goal"`` those of `HerReplayBuffer`.

    An ended environment's info has ``terminal_observation`` (D,), ``TimeLimit.truncated`` (truncated and not
    terminated) and ``episode`` ``{"r": return, "l": length, "t": simulated seconds}``; the others' infos are empty.
    """

    def __init__(self, envs):
        self._envs = same_step(envs)
        if envs.data_device != "cpu":
            raise ValueError("Stable-Baselines3 works on NumPy's arrays: make envs with backend='numpy'")
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self._statistics = EpisodeStatistics(envs.num_envs)
        self._actions: np.ndarray | None = None

    def reset(self) -> np.ndarray:
        options = next((given for given in self._options if given), None)
        unseeded = all(seed is None for seed in self._seeds)
        observations, _ = self._envs.reset(seed=None if unseeded else list(self._seeds), options=options)
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [{} for _ in range(self.num_envs)]
        self._statistics.restart()
        return _arrays(observations)

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self):
        observations, rewards, terminated, truncated, infos = self._envs.step(self._actions)
        rewards = np.asarray(rewards, np.float32)
        terminated, truncated = np.asarray(terminated), np.asarray(truncated)
        ended = terminated | truncated
        told: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        episodes = self._statistics.update(torch.from_numpy(rewards), torch.from_numpy(ended))
        if episodes is not None:
            for env, total, steps in zip(
                np.flatnonzero(ended), episodes.returns.tolist(), episodes.lengths.tolist(), strict=True
            ):
                told[env] = {
                    "terminal_observation": _row(infos["final_obs"], env),
                    "TimeLimit.truncated": bool(truncated[env] and not terminated[env]),
                    "episode": {"r": total, "l": steps, "t": round(steps * self._envs.step_dt, 6)},
                }
        return _arrays(observations), rewards, ended, told

    def close(self) -> None:
        self._envs.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        return self._envs.render() or [None] * self.num_envs

    def get_attr(self, attr_name: str, indices=None) -> list[Any]:
        values = self._envs.get_attr(attr_name)
        return [values[i] for i in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices=None) -> None:
        """Environments share their attributes: ``indices`` must be all of them."""
        self._all(indices, "set_attr")
        self._envs.set_attr(attr_name, value)

    def env_method(self, method_name: str, *method_args, indices=None, **method_kwargs) -> list[Any]:
        """Calls the method of the batch once; ``indices`` must be all environments, but for ``compute_reward``."""
        if method_name == "compute_reward":  # of goals, not of environments: as HerReplayBuffer asks for it
            return [self._envs.compute_reward(*method_args, **method_kwargs)] * len(self._get_indices(indices))
        self._all(indices, "env_method")
        return list(self._envs.call(method_name, *method_args, **method_kwargs))

    def env_is_wrapped(self, wrapper_class, indices=None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]

    def _all(self, indices, what: str) -> None:
        if len(set(self._get_indices(indices))) != self.num_envs:
            raise ValueError(f"{what} acts on all environments of a batch at once, not on {indices}")


def _arrays(values):
    return {group: np.asarray(of) for group, of in values.items()} if isinstance(values, dict) else np.asarray(values)


def _row(finals, env: int):
    """One environment's last observation: tensors have a row each, NumPy's an object."""
    if isinstance(finals, dict):
        return {group: np.asarray(of[env]) for group, of in finals.items()}
    return _arrays(finals[env])
