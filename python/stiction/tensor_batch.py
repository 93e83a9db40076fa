"""A compiled task's batch in torch: its data stay where they are computed, and a step waits for nothing.

The batch owns the memory that actions come into and results go out of. Here tensors view it, on the CPU or on a CUDA
device, and every result is a copy of its own, made on that device in the order of torch's stream. Nothing is brought to
the host: what has ended is told by masks, and `VectorEnv` gives ``final_obs`` and ``final_info`` at every step.
"""

from __future__ import annotations

import torch

from .device_array import DeviceArray
from .simulation_arrays import torch_stream, torch_view


class TensorBatch:
    """``task``: a `_core.BatchEnv` on ``simulation``; ``random``: a `TensorRandomiser` of it, or None;
    ``groups``: `ObservationGroups` or None.

    N environments, D observations, A actions, R reports.
    """

    def __init__(self, task, simulation, same_step: bool, random=None, groups=None):
        self._random, self._groups = random, groups
        self._task, self._world, self._same_step = task, simulation._world, same_step
        self._gpu = None if simulation.device == "cpu" else simulation.device
        view, buffers = torch_view(simulation.device), task.buffers()
        if self._gpu is not None:
            buffers = {name: DeviceArray(array, self._world.device) for name, array in buffers.items()}
        self._at = {name: view(array) for name, array in buffers.items()}
        self.device = self._at["observations"].device
        self._names = task.report_names
        rows = len(self._names) + 1  # and the status
        self._told = torch.ones(rows, simulation.num_envs, dtype=torch.bool, device=self.device)

    def reset(self, seeds, seeded, mask) -> tuple[torch.Tensor, dict]:
        """New episodes where ``mask`` (N,) says; arrays of NumPy's, or None. (observations (N, D), infos)."""
        self._order()
        self._task.begin(seeds, seeded, mask)
        begun, observations = self._at["began"].clone(), self._at["observations"].clone()
        if self._random is not None:
            if seeds is not None:
                self._random.seed(seeds, seeded.astype(bool) if mask is None else seeded.astype(bool) & mask)
            observations = self._random.observe(self._drawn(begun, observations))
        if self._groups:
            observations = self._shown(observations, begun, stepped=False)
        infos, masks = {}, begun.repeat(len(self._names), 1)
        reports = self._at["reports"].clone()
        for name, row, mask in zip(self._names[: self._task.reset_reports], reports, masks, strict=False):
            infos[name], infos[f"_{name}"] = row, mask
        infos["status"], infos["_status"] = self._at["status"] * begun, begun
        return observations, infos

    def step(self, actions: torch.Tensor):
        """(observations, rewards, terminated, truncated, infos); ``actions`` (N, A) on any device."""
        self._order()
        if self._random is not None:
            actions = self._random.act(actions.to(self._at["actions"]))
        self._at["actions"].copy_(actions)
        self._task.advance()
        results = [self._at[name].clone() for name in ("observations", "rewards", "terminated", "truncated")]
        begun, told, infos = self._at["began"].clone(), self._told.clone(), {}
        told[self._task.reset_reports : -1] = ~begun
        for name, row, mask in zip(self._names, self._at["reports"].clone(), told, strict=False):
            infos[name], infos[f"_{name}"] = row, mask
        infos["status"], infos["_status"] = self._at["status"].clone(), told[-1]
        if self._random is not None:
            self._random.advance()
        if self._same_step:
            self._add_final(infos)
        if self._random is not None:
            results[0] = self._random.observe(self._drawn(begun, results[0]))
        if self._groups:
            results[0] = self._shown(results[0], begun, stepped=True)
            results[1] = self._groups.rewarded(results[1])
        return *results, infos

    def _drawn(self, begun, observations):
        """``observations`` that tell of the numbers of episodes that begin, which it draws."""
        self._random.begin(begun)
        if not self._random.moves_places:
            return observations
        self._order()
        self._task.show_begun()
        return self._at["observations"].clone()

    def reports(self):
        """What the last call told, (names, N)."""
        return self._at["reports"].cpu()

    def _shown(self, noisy, begun, stepped: bool) -> dict:
        return self._groups.shown(self._at["observations"], noisy, self._at["reports"], begun, stepped)

    def _add_final(self, infos: dict) -> None:
        ended = self._at["ended"].clone()
        rows = self._at["final_observations"]
        if self._random is not None:  # it still counts the episode that has ended
            rows = self._random.observe(rows)
        if self._groups:
            rows = self._groups.last(self._at["final_observations"], rows, self._at["final_reports"])
        kept = {name: torch.where(ended[:, None], of, 0) for name, of in (rows if self._groups else {"": rows}).items()}
        infos["final_obs"], infos["_final_obs"] = kept if self._groups else kept[""], ended
        told, masks = {}, ended.repeat(len(self._names) + 2, 1)  # what is returned shares no memory
        for name, row, mask in zip(self._names, self._kept("final_reports", ended), masks, strict=False):
            told[name], told[f"_{name}"] = row, mask
        told["status"], told["_status"] = self._kept("final_status", ended), masks[-2]
        infos["final_info"], infos["_final_info"] = told, masks[-1]

    def _kept(self, name: str, ended: torch.Tensor) -> torch.Tensor:
        """The rows of what has ended, zeros elsewhere."""
        return torch.where(ended, self._at[name], 0)

    def _order(self) -> None:
        """The batch's work goes into torch's present stream, between what torch has queued and what it will."""
        if self._gpu is not None:
            self._world.set_stream(torch_stream(self._gpu))
            self._world.release()  # what the host wrote goes along, and torch may write


def tensor_of(name: str, values) -> torch.Tensor:
    """A tensor of what torch can make one of, where it is; else TypeError or ValueError."""
    try:
        tensor = torch.as_tensor(values)
    except ValueError as error:
        raise ValueError(f"{name} is no array of numbers: {error}") from None
    except (TypeError, RuntimeError) as error:
        raise TypeError(f"{name} is no array of numbers: {error}") from None
    if tensor.is_complex() or tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
        raise TypeError(f"{name} is {tensor.dtype}, {tensor.layout}, on {tensor.device}, expected real numbers")
    return tensor.detach()
