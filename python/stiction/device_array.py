"""Memory of a simulation on a GPU for other libraries: DLPack and ``__cuda_array_interface__``, without a copy.

``array="torch"`` makes tensors of it. Work that a library queues on it must be in the simulation's stream, or done.
"""

from __future__ import annotations

import numpy as np

from . import _core

_CUDA = 2  # kDLCUDA


class DeviceArray:
    """``array``: NumPy's description of the memory: address, shape, dtype, owner. The host cannot touch what is there.

    ``device_id``: the ordinal of the GPU.
    """

    def __init__(self, array: np.ndarray, device_id: int):
        self._array, self.device_id = array, device_id

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def dtype(self) -> np.dtype:
        return self._array.dtype

    @property
    def address(self) -> int:
        return self._array.__array_interface__["data"][0]

    @property
    def __cuda_array_interface__(self) -> dict:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, not self._array.flags.writeable),
            "strides": None,
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, self.device_id

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """A capsule of the memory. ``stream`` is not waited for."""
        if stream == 0:
            raise ValueError(
                "stream is 0, which DLPack leaves undefined: expected None, -1, 1, 2 or a stream's address"
            )
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"the array is on CUDA device {self.device_id}, not on {dl_device}")
        if copy:
            raise BufferError("copy=True is not offered: copy the tensor")
        versioned = max_version is not None and max_version[0] >= 1
        if not versioned and not self._array.flags.writeable:
            raise BufferError("a read-only array needs DLPack 1.0: pass max_version")
        return self.capsule(versioned)

    def capsule(self, versioned: bool):
        """The memory as a DLPack capsule; without ``versioned`` nothing says that it is read-only."""
        return _core.dlpack_capsule(self._array, _CUDA, self.device_id, versioned)

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device='cuda:{self.device_id}')"
