"""A compiled task's batch in torch: its data stay where they are computed, and a step waits for nothing.

The batch owns the memory that actions come into and results go out of. Here tensors view it, on the CPU or on a CUDA
device, and every result is a copy of its own, made on that device in the order of torch's stream. Nothing is brought to
the host: what has ended is told by masks, and `VectorEnv` gives ``final_obs`` and ``final_info`` at every step.
"""

from __future__ import annotations

from .device_array import DeviceArray


class TensorBatch:
    """``task``, a `_core.BatchEnv` on ``simulation``, with its calls in tensors of ``backend``."""

    def __init__(self, task, simulation, backend):
        self._task, self._world, self._backend = task, simulation._world, backend
        buffers = task.buffers()
        if simulation.device != "cpu":
            buffers = {name: DeviceArray(array, self._world.device) for name, array in buffers.items()}
        self._at = {name: backend.of(array) for name, array in buffers.items()}

    def reset(self, seeds, seeded, mask) -> tuple:
        """Seeds and masks are NumPy's; (observations, reports, status)."""
        self._backend.order(self._world)
        self._task.begin(seeds, seeded, mask)
        return self._copies("observations", "reports", "status")

    def step(self, actions) -> tuple:
        """(observations, rewards, terminated, truncated, reports, status)."""
        self._backend.order(self._world)
        self._at["actions"].copy_(actions)
        self._task.advance()
        return self._copies("observations", "rewards", "terminated", "truncated", "reports", "status")

    def begun_observations(self):
        """Of who has begun an episode in the last call, anew: something has been changed since."""
        self._backend.order(self._world)
        self._task.show_begun()
        return self._at["observations"].clone()

    def began(self):
        return self._at["began"].clone()

    def ended(self):
        return self._at["ended"].clone()

    # The memory itself: it is the next step's.

    def final_observations(self):
        return self._at["final_observations"]

    def final_reports(self):
        return self._at["final_reports"]

    def final_status(self):
        return self._at["final_status"]

    def _copies(self, *names: str) -> tuple:
        return tuple([self._at[name].clone() for name in names])
