"""Running statistics of a batch, in torch: moments that normalise observations, and the sums of an episode."""

from __future__ import annotations

from dataclasses import dataclass

import torch


class RunningMoments(torch.nn.Module):
    """Mean and variance of every row seen so far, per column; calling it normalises.

    A batch is merged as in Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
    variances" (1979), in double. Before the first `update` it leaves values as they are.
    """

    def __init__(self, size: int, clip: float = 10.0):
        super().__init__()
        self.clip = clip
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(size, dtype=torch.float64))

    @torch.no_grad()
    def update(self, rows: torch.Tensor, sum_over_ranks=None) -> None:
        """Takes in ``rows`` (..., size). ``sum_over_ranks(tensor)`` adds a tensor up in place over processes."""
        away = rows.reshape(-1, self.mean.numel()).to(torch.float64) - self.mean
        sums = torch.cat([away.sum(0), away.square().sum(0), away.new_full((1,), len(away))])
        if sum_over_ranks is not None:
            sum_over_ranks(sums)
        n, size = sums[-1], self.mean.numel()
        if n == 0:
            return
        shift, total = sums[:size] / n, self.count + n
        spread = (sums[size:-1] - n * shift.square()).clamp_(min=0) + shift.square() * self.count * n / total
        before = self.variance * self.count
        self.mean += shift * n / total
        self.variance.copy_((before + spread) / total)
        self.count.copy_(total)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """(values - mean) / deviation, within ±``clip``, in the precision of ``values`` (..., size).

        ``values`` may have the first columns only.
        """
        size = values.shape[-1]
        mean, scale = self.mean[:size].to(values.dtype), self.variance[:size].add(1e-8).rsqrt().to(values.dtype)
        return ((values - mean) * scale).clamp(-self.clip, self.clip)


@dataclass(frozen=True)
class Episodes:
    """Episodes that have just ended, in the order of their environments."""

    returns: torch.Tensor  # (ended,) undiscounted sums of rewards
    lengths: torch.Tensor  # (ended,) control steps
    terms: dict[str, torch.Tensor]  # per term of the reward, sums (ended,)


class EpisodeStatistics:
    """Adds up rewards, their terms and steps of the episodes under way; environments are reset in the same step.

    ``terms``: names of the reward's terms, as a `stiction.VectorEnv` tells them in its infos.
    """

    def __init__(self, num_envs: int, terms=(), device="cpu"):
        self._terms = tuple(terms)
        self._sums = torch.zeros(1 + len(self._terms), num_envs, dtype=torch.float64, device=device)
        self._steps = torch.zeros(num_envs, dtype=torch.int64, device=device)

    def restart(self) -> None:
        self._sums.zero_()
        self._steps.zero_()

    def state(self) -> dict[str, torch.Tensor]:
        """Copies of what the episodes under way have so far."""
        return {"sums": self._sums.clone(), "steps": self._steps.clone()}

    def load_state(self, state: dict[str, torch.Tensor]) -> None:
        self._sums.copy_(state["sums"])
        self._steps.copy_(state["steps"])

    def update(self, rewards: torch.Tensor, ended: torch.Tensor, infos: dict | None = None) -> Episodes | None:
        """One step: ``rewards`` and ``ended`` (num_envs,), ``infos`` of the step where there are terms.

        Returns the episodes that it ended, or None.
        """
        self._sums[0] += rewards
        if self._terms:  # an ended environment tells its terms in final_info alone
            last = infos.get("final_info", {})
            for told in (infos, last) if self._terms[0] in last else (infos,):
                self._sums[1:] += torch.stack([torch.as_tensor(told[name]) for name in self._terms])
        self._steps += 1
        if not ended.any():
            return None
        sums, steps = self._sums[:, ended], self._steps[ended]
        self._sums[:, ended] = 0
        self._steps[ended] = 0
        return Episodes(sums[0], steps, dict(zip(self._terms, sums[1:], strict=True)))
