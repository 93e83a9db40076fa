"""Arrays of a simulation on a GPU: NumPy arrays in managed memory, at the same address for device code.

They are views like those on the CPU, and speak DLPack and ``__cuda_array_interface__`` besides:
``torch.from_dlpack(sim.qpos)`` and ``cupy.asarray(sim.qpos)`` share the memory. A call of the simulation returns when
its kernels have finished, so no consumer has to wait; work that one has queued must be done before the next call.
"""

from __future__ import annotations

import numpy as np

from . import _core

_CUDA = 2  # kDLCUDA


class ManagedArray(np.ndarray):
    """See the module. ``device_id`` is the ordinal of the GPU. What is computed from one is a plain array."""

    device_id: int

    @classmethod
    def of(cls, array: np.ndarray, device_id: int) -> ManagedArray:
        view = array.view(cls)
        view.device_id = device_id
        return view

    def __array_finalize__(self, source):
        self.device_id = getattr(source, "device_id", 0)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return array[()] if return_scalar else np.asarray(array)

    def is_shared(self) -> bool:
        """Whether this is memory of the simulation: not of copies, which NumPy makes of this type too."""
        base = self
        while isinstance(base.base, np.ndarray):
            base = base.base
        return base.base is not None

    @property
    def __cuda_array_interface__(self) -> dict:
        if not self.is_shared():
            raise AttributeError("a copy of a simulation's array is in host memory")
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.__array_interface__["data"][0], not self.flags.writeable),
            "strides": self.strides,
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CUDA, self.device_id) if self.is_shared() else super().__dlpack_device__()

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """A capsule of the array's memory on its GPU. ``stream`` needs no order: nothing is in flight between calls."""
        if not self.is_shared():
            return super().__dlpack__()
        if stream == 0:
            raise ValueError(
                "stream is 0, which DLPack leaves undefined: expected None, -1, 1, 2 or a stream's address"
            )
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"the array is on CUDA device {self.device_id}, not on {dl_device}")
        if copy:
            raise BufferError("copy=True is not offered: copy the tensor")
        versioned = max_version is not None and max_version[0] >= 1
        if not versioned and not self.flags.writeable:
            raise BufferError("a read-only array needs DLPack 1.0: pass max_version")
        return self.capsule(versioned)

    def capsule(self, versioned: bool):
        """The memory as a DLPack capsule; without ``versioned`` nothing says that it is read-only."""
        return _core.dlpack_capsule(self.view(np.ndarray), _CUDA, self.device_id, versioned)
