"""The learner's networks: a Gaussian policy and its value function."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from stiction.running_statistics import RunningMoments

if TYPE_CHECKING:
    from .ppo import Options


class Policy(nn.Module):
    """A Gaussian policy and its value function. Calling it gives the action without noise, in the environment's units.

    Networks see normalised observations and act in half ranges of the action space, clipped to ±1, where that is
    bounded. The first ``inputs`` columns of what `packed` makes are the policy's, the others the value's; without
    others it sees those too.
    """

    def __init__(self, observation_space, action_space, options: Options, generator: torch.Generator):
        super().__init__()
        self.inputs, privileged = group_sizes(observation_space)
        actions = action_space.shape[0]
        low, high = torch.as_tensor(action_space.low).float(), torch.as_tensor(action_space.high).float()
        bounded = torch.isfinite(low) & torch.isfinite(high)
        self.register_buffer("centre", torch.where(bounded, (low + high) / 2, torch.zeros_like(low)))
        self.register_buffer("half_range", torch.where(bounded, (high - low) / 2, torch.ones_like(low)))
        self.register_buffer("bound", torch.where(bounded, 1.0, torch.inf))
        self.moments = RunningMoments(self.inputs + privileged)
        self.actor = mlp((self.inputs, *options.hidden, actions), 0.01, generator)
        self.critic = mlp((privileged or self.inputs, *options.hidden, 1), 1.0, generator)
        self.log_std = nn.Parameter(torch.full((actions,), math.log(options.initial_std)))

    def forward(self, observations: Tensor) -> Tensor:
        return self.in_units(self.actor(self.moments(observations)))

    def mean(self, seen: Tensor) -> Tensor:
        """The networks' action (..., A) of normalised columns."""
        return self.actor(seen[..., : self.inputs])

    def value(self, seen: Tensor) -> Tensor:
        """(...,), in the learner's units of reward."""
        alone = seen.shape[-1] == self.inputs
        return self.critic(seen if alone else seen[..., self.inputs :])[..., 0]

    def in_units(self, actions: Tensor) -> Tensor:
        """Actions of the networks, in the environment's units."""
        return self.centre + self.half_range * torch.clamp(actions, -self.bound, self.bound)


def group_sizes(space) -> tuple[int, int]:
    """Columns of the groups "policy" and "critic", 0 without; a space without groups is the policy's."""
    groups = getattr(space, "spaces", {"policy": space})
    if "policy" not in groups:
        raise ValueError(
            f"the environments have the groups {', '.join(groups)}, and the learner's policy sees 'policy'"
        )
    return groups["policy"].shape[0], groups["critic"].shape[0] if "critic" in groups else 0


def policy_part(observations) -> Tensor:
    """What the policy sees, float32."""
    return (observations["policy"] if isinstance(observations, dict) else observations).float()


def packed(observations) -> Tensor:
    """(N, columns): what the policy sees and, if there is such a group, what the critic sees."""
    if not isinstance(observations, dict) or "critic" not in observations:
        return policy_part(observations)
    return torch.cat([observations["policy"], observations["critic"]], dim=-1).float()


class _Tanh(torch.autograd.Function):
    """By way of torch's sigmoid: twice as fast as torch.tanh on CPUs, five times without gradients."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        y = torch.sigmoid(x + x).mul_(2).sub_(1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        return torch.ops.aten.tanh_backward(gradient, *ctx.saved_tensors)


class Tanh(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x) if torch.onnx.is_in_onnx_export() else _Tanh.apply(x)


def mlp(sizes: tuple[int, ...], last_gain: float, generator: torch.Generator) -> nn.Sequential:
    """Linear layers with tanh between them, orthogonal weights and no bias at first."""
    layers: list[nn.Module] = []
    for number, (inputs, outputs) in enumerate(zip(sizes, sizes[1:], strict=False), 2):
        layer = nn.Linear(inputs, outputs)
        last = number == len(sizes)
        nn.init.orthogonal_(layer.weight, last_gain if last else math.sqrt(2), generator=generator)
        nn.init.zeros_(layer.bias)
        layers += [layer] if last else [layer, Tanh()]
    return nn.Sequential(*layers)


def log_probability(actions: Tensor, mean: Tensor, log_std: Tensor) -> Tensor:
    """Of the Gaussian, (..., A) -> (...,)."""
    return (-0.5 * ((actions - mean) * torch.exp(-log_std)).square() - log_std - 0.5 * math.log(2 * math.pi)).sum(-1)


def divergence(mean: Tensor, log_std: Tensor, old_mean: Tensor, old_log_std: Tensor) -> Tensor:
    """KL(old || new) of Gaussians, (..., A) -> (...,)."""
    spread = torch.exp(2 * old_log_std) + (old_mean - mean).square()
    return (log_std - old_log_std + 0.5 * spread * torch.exp(-2 * log_std) - 0.5).sum(-1)
