"""`Randomiser` in torch, for batches whose data are tensors: the same numbers, drawn where the tensors are.

Nothing is brought to the host to see whom a draw is for: numbers are drawn for all environments, and masks choose.
"""

from __future__ import annotations

import numpy as np
import torch

from .backend import TorchBackend
from .parameter_checks import require_sound_draws
from .random_numbers import Draws, named_stream
from .randomisation import (
    Force,
    ForceEvent,
    Latency,
    Parameter,
    ParameterEvent,
    Push,
    PushEvent,
    Randomiser,
    moves_places,
    observed_amounts,
)

_NEVER = 2**62


class TensorRandomiser(Randomiser):
    """A `Randomiser` whose masks and data are tensors."""

    def __init__(self, terms, sim, step_dt: float, observations, actions: int):
        n, self._dt, self._moves_places = sim.num_envs, step_dt, moves_places(terms)
        self._sim, self._backend = sim, TorchBackend(sim.device, sim.dtype)
        self._device = self._backend.device
        seeds = np.random.SeedSequence().generate_state(1, np.uint64) + np.arange(n, dtype=np.uint64)
        self._seeds = self._tensor(seeds.view(np.int64))
        self._episodes, self._steps = (self._zeros(n, dtype=torch.int64) for _ in range(2))
        events = [_ParameterWrite(t, sim, self._memory(f"params.{t.name}")) for t in terms if isinstance(t, Parameter)]
        require_sound_draws(events, sim.model)
        events += [_PushWrite(t, sim, self._memory("qvel")) for t in terms if isinstance(t, Push)]
        events += [_ForceWrite(t, sim, self._memory("xfrc_applied")) for t in terms if isinstance(t, Force)]
        # What is done, from which stream, and the step at which it is due.
        self._events = [(event, named_stream(event.label), self._zeros(n, dtype=torch.int64)) for event in events]
        self._latency = next((t for t in terms if isinstance(t, Latency)), None)
        self._late = self._zeros(n, dtype=torch.int64)
        kept = self._latency.high + 1 if self._latency else 0
        self._past = self._backend.zeros(n, kept, actions)  # rings, the last at _now
        self._now, self._rows = self._zeros(n, dtype=torch.int64), torch.arange(n, device=self._device)
        amounts = observed_amounts(terms, observations)
        self._deviation, self._bias = (None if given is None else self._tensor(given) for given in amounts)

    def _zeros(self, *shape, dtype):
        return torch.zeros(shape, dtype=dtype, device=self._device)

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return self._backend.of(np.array(array))

    def _memory(self, name: str) -> torch.Tensor:
        """The simulation's array itself."""
        return self._backend.of(self._sim._arrays.memory(name))

    def seed(self, seeds: np.ndarray, which: np.ndarray) -> None:
        """Gives environments of a mask their seeds (arrays of NumPy's), and counts their episodes anew."""
        which, seeds = self._tensor(which), self._tensor(seeds.view(np.int64))
        self._seeds = torch.where(which, seeds, self._seeds)
        self._episodes = torch.where(which, 0, self._episodes)

    def begin(self, mask: torch.Tensor) -> bool:
        if self._device.type == "cpu" and not mask.any():
            return False
        self._episodes = self._episodes + mask
        self._steps = torch.where(mask, 0, self._steps)
        for event, stream, due in self._events:
            draws = Draws(self._seeds, self._episodes, 0, stream)
            wait = self._wait(event.term, draws)
            if isinstance(event.term, (Parameter, Force)):
                event.apply(mask, draws)
            due.copy_(torch.where(mask, wait, due))
        if self._latency is not None:
            draws = Draws(self._seeds, self._episodes, 0, named_stream("latency"))
            late = draws.integers(self._latency.low, self._latency.high + 1)
            self._late = torch.where(mask, late, self._late)
            self._past.masked_fill_(mask[:, None, None], 0)
        return self._moves_places

    def _wait(self, term, draws: Draws):
        """Control steps until a term is due again."""
        if term.every is None:
            return _NEVER
        return torch.round(draws.uniform(*term.every) / self._dt).long().clamp(min=1)

    def _let_happen(self) -> None:
        self._backend.order(self._sim._world)
        for event, stream, due in self._events:
            if event.term.every is None:
                continue
            mask = self._steps >= due
            if self._device.type == "cpu" and not mask.any():
                continue
            draws = Draws(self._seeds, self._episodes, self._steps, stream)
            due.copy_(torch.where(mask, self._steps + self._wait(event.term, draws), due))
            event.apply(mask, draws)


class _ParameterWrite(ParameterEvent):
    def __init__(self, term: Parameter, sim, values: torch.Tensor):
        super().__init__(term, sim)
        self._values = values  # (N, ...)
        index = [torch.from_numpy(np.array(part)).to(values.device) for part in self.index]
        self._where = (slice(None), *index)
        self._nominals = torch.from_numpy(self.nominal).to(values.device)

    def apply(self, mask: torch.Tensor, draws: Draws) -> None:
        new = self.drawn_values(draws, self._nominals)
        old = self._values[self._where]
        chosen = mask.view(-1, *[1] * (old.ndim - 1))
        self._values[self._where] = torch.where(chosen, new.to(old.dtype), old)


class _PushWrite(PushEvent):
    def __init__(self, term: Push, sim, qvel: torch.Tensor):
        super().__init__(term, sim)
        self._velocities = qvel[:, self.dof : self.dof + 6]

    def apply(self, mask: torch.Tensor, draws: Draws) -> None:
        x, y, spin = self.velocities(draws)
        change = torch.cat([x[:, None], y[:, None], torch.zeros_like(x)[:, None], spin], 1)
        self._velocities += torch.where(mask[:, None], change, 0).to(self._velocities.dtype)


class _ForceWrite(ForceEvent):
    def __init__(self, term: Force, sim, wrench: torch.Tensor):
        super().__init__(term, sim)
        self._force = wrench[:, self.body, :2]

    def apply(self, mask: torch.Tensor, draws: Draws) -> None:
        new = torch.stack(self.forces(draws), 1).to(self._force.dtype)
        self._force.copy_(torch.where(mask[:, None], new, self._force))
