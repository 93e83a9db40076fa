"""What the adapters share: a same-step `stiction.VectorEnv` with data as float32 tensors, and a log of episodes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from gymnasium.spaces import Dict

from stiction.running_statistics import EpisodeStatistics
from stiction.vector_env import AutoresetMode, VectorEnv


def same_step(envs) -> VectorEnv:
    """``envs``, if adapters can use it."""
    if not isinstance(envs, VectorEnv):
        raise TypeError(
            f"envs is {type(envs).__name__}, expected what stiction.make_vec returns, without wrappers{_way_out(envs)}"
        )
    mode = envs.metadata["autoreset_mode"]
    if mode is not AutoresetMode.SAME_STEP:
        raise ValueError(f"envs has autoreset_mode {mode.value!r}, expected 'SameStep'")
    return envs


def _way_out(envs) -> str:
    inside, name = getattr(envs, "unwrapped", None), type(envs).__name__
    if isinstance(inside, VectorEnv):
        return f": hand over envs.unwrapped, and leave what {name} does to the trainer or to a stiction.Task"
    env_id = getattr(getattr(inside, "spec", None), "id", "")
    return f"; a batch is stiction.make_vec({env_id!r}, num_envs)" if env_id.startswith("stiction/") else ""


@dataclass(frozen=True)
class Step:
    """One step of all environments; N of them. Observations by group, {"policy": (N, D)} where there are none."""

    observations: dict[str, torch.Tensor]  # of the next episode where one has ended
    rewards: torch.Tensor  # (N,)
    terminated: torch.Tensor  # (N,) bool
    truncated: torch.Tensor  # (N,) bool
    final_observations: (
        dict[str, torch.Tensor] | None
    )  # the last ones of ended episodes, zeros elsewhere; None if none ended
    log: dict[str, torch.Tensor]  # means over the episodes that ended; empty if none did


class Batch:
    """Resets ``envs``, then steps it. Of groups of observations "policy" has to be one."""

    def __init__(self, envs, clip_actions: float | None = None):
        if clip_actions is not None and not clip_actions > 0:
            raise ValueError(f"clip_actions is {clip_actions}, expected more than 0 or None")
        self.envs = same_step(envs)
        groups = group_spaces(envs)
        if "policy" not in groups:
            hint = "; goals are for adapters.sb3" if "desired_goal" in groups else ""
            raise ValueError(f"envs has the groups {', '.join(groups)}, and who acts sees 'policy': name one so{hint}")
        self.clip_actions = clip_actions
        self.device = torch.device(envs.data_device)
        self._statistics = EpisodeStatistics(envs.num_envs, envs.reward_names, self.device)

    def reset(self, seed=None, options=None) -> dict[str, torch.Tensor]:
        observations, _ = self.envs.reset(seed=seed, options=options)
        self._statistics.restart()
        return groups_of(observations)

    def step(self, actions: torch.Tensor) -> Step:
        if self.clip_actions is not None:
            actions = actions.clamp(-self.clip_actions, self.clip_actions)
        given = actions.detach() if self.device.type != "cpu" else actions.detach().cpu().numpy()
        observations, rewards, terminated, truncated, infos = self.envs.step(given)
        rewards = floats(rewards)
        terminated, truncated = torch.as_tensor(terminated), torch.as_tensor(truncated)
        ended = terminated | truncated
        episodes = self._statistics.update(rewards, ended, infos)
        log, last = {}, None
        if episodes is not None:
            log = {f"Episode_Reward/{name}": sums.mean().float() for name, sums in episodes.terms.items()}
            log["Episode_Termination/terminated"] = (terminated & ended).sum().float()
            log["Episode_Termination/time_out"] = (truncated & ~terminated).sum().float()
            last = dense_final(infos, ended, observations)
        return Step(groups_of(observations), rewards, terminated, truncated, last, log)


def dense_final(infos: dict, ended: torch.Tensor, observations) -> dict[str, torch.Tensor]:
    """``infos["final_obs"]`` by group, zeros where nothing ended."""
    given = infos["final_obs"]
    if isinstance(given, (torch.Tensor, dict)):
        return groups_of(given)
    groups = {name: torch.zeros(tuple(rows.shape)) for name, rows in groups_of(observations).items()}
    for env in ended.nonzero()[:, 0].tolist():
        for name, row in groups_of(given[env]).items():
            groups[name][env] = row
    return groups


def group_spaces(envs) -> dict:
    """Group -> the space of one environment's observation."""
    space = envs.single_observation_space
    return dict(space.spaces) if isinstance(space, Dict) else {"policy": space}


def groups_of(observations) -> dict[str, torch.Tensor]:
    given = observations if isinstance(observations, dict) else {"policy": observations}
    return {name: floats(values) for name, values in given.items()}


def floats(values) -> torch.Tensor:
    return torch.as_tensor(values, dtype=torch.float32)
