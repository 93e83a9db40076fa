"""What a batch computes in: NumPy's arrays, or torch's tensors where the simulation's memory is.

Both have one interface, so that what is done with a batch is written once. "Arrays" here are those of the backend.
"""

from __future__ import annotations

import warnings

import numpy as np

from .device_array import DeviceArray


def is_tensor(values) -> bool:
    return hasattr(values, "detach")


def as_numpy(values) -> np.ndarray:
    """Of an array or a tensor: the same memory where that can be."""
    return values.detach().cpu().numpy() if is_tensor(values) else np.asarray(values)


def as_array(name: str, values) -> np.ndarray:
    """An array of what NumPy or torch can make one of; else TypeError or ValueError."""
    try:
        return np.asarray(values.detach().cpu() if is_tensor(values) else values)
    except ValueError as error:
        raise ValueError(f"{name} is no array of numbers: {error}") from None
    except (TypeError, RuntimeError) as error:  # torch's, of sparse, quantised or dataless tensors
        raise TypeError(f"{name} is no array of numbers: {error}") from None


def as_numbers(name: str, values) -> np.ndarray:
    values = as_array(name, values)
    if values.dtype.kind not in "fiub":
        raise TypeError(f"{name} is an array of {values.dtype}, expected real numbers")
    return values


def tensor_of(name: str, values):
    """A tensor of what torch can make one of, where it is; else TypeError or ValueError."""
    import torch

    try:
        tensor = torch.as_tensor(values)
    except ValueError as error:
        raise ValueError(f"{name} is no array of numbers: {error}") from None
    except (TypeError, RuntimeError) as error:
        raise TypeError(f"{name} is no array of numbers: {error}") from None
    if tensor.is_complex() or tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
        raise TypeError(f"{name} is {tensor.dtype}, {tensor.layout}, on {tensor.device}, expected real numbers")
    return tensor.detach()


class NumpyBackend:
    """Arrays on the host. ``dtype``: of a batch's real numbers."""

    #: Whether arrays are tensors, and whether users are told tensors.
    tensors = tells_tensors = False
    #: What a user gives for real numbers, checked; an array of either kind, itself if it is of this one.
    numbers, asarray = staticmethod(as_numbers), staticmethod(as_numpy)
    where, isfinite = staticmethod(np.where), staticmethod(np.isfinite)

    def __init__(self, dtype: str):
        self.dtype = np.dtype(dtype)

    def of(self, memory: np.ndarray) -> np.ndarray:
        """An array of NumPy's, or of a `DeviceArray`: the same memory where that can be."""
        return memory

    def read(self, arrays, name: str) -> np.ndarray:
        """One of a simulation's `ArrayCache`, in ``dtype``; not to be written."""
        return arrays.read(name).astype(self.dtype, copy=False)

    def array(self, values) -> np.ndarray:
        """A copy of NumPy's numbers."""
        return np.array(values)

    def cast(self, values: np.ndarray) -> np.ndarray:
        """In ``dtype``, where the backend computes; itself if it is."""
        return np.ascontiguousarray(values, self.dtype)

    def real(self, values) -> np.ndarray:
        """A copy in ``dtype``, of numbers of any kind."""
        return np.array(as_numpy(values), self.dtype)

    def zeros(self, *shape: int) -> np.ndarray:
        return np.zeros(shape, self.dtype)

    def copy(self, values: np.ndarray) -> np.ndarray:
        return values.copy()

    def concatenate(self, parts: list) -> np.ndarray:
        """Side by side, (N, ...)."""
        return np.concatenate(parts, axis=1)

    def repeated(self, row: np.ndarray, times: int) -> np.ndarray:
        """(times, N)"""
        return row[None].repeat(times, axis=0)

    def total(self, rows: np.ndarray) -> np.ndarray:
        """Sum of rows (k, N), in double."""
        return rows.sum(axis=0, dtype=np.float64).astype(rows.dtype)

    def order(self, world) -> None:
        """What a world does from now on comes behind what the backend has queued."""

    def final(self, rows, ended: np.ndarray):
        """Last observations (N, D), or a dict of such, of who has ``ended`` (N,); of others there are none."""
        final = np.full(len(ended), None, dtype=object)
        for env in np.flatnonzero(ended):
            final[env] = {g: of[env].copy() for g, of in rows.items()} if isinstance(rows, dict) else rows[env].copy()
        return final

    def answer(self, results):
        """Arrays in tuples and dicts, as users are told them."""
        return results


class TorchBackend:
    """Tensors on a simulation's ``device``, with the methods of `NumpyBackend`."""

    tensors = tells_tensors = True
    numbers = staticmethod(tensor_of)

    def __init__(self, device: str, dtype: str):
        try:
            import torch
        except ImportError as error:
            raise ImportError("array='torch' needs PyTorch: pip install torch") from error
        self._torch, self._gpu = torch, None if device == "cpu" else device
        self.device, self.dtype = torch_device(device), getattr(torch, dtype)
        self.where, self.isfinite = torch.where, torch.isfinite

    def of(self, memory):
        if isinstance(memory, DeviceArray):
            return capsule_tensor(memory.capsule(versioned=False))
        if self._gpu is not None:
            return self._torch.from_numpy(np.array(memory)).to(self.device)
        if memory.flags.writeable:
            return self._torch.from_numpy(memory)
        with warnings.catch_warnings():  # tensors cannot be read-only; torch says so for those that should be
            warnings.filterwarnings("ignore", message=".*not writable.*")
            return self._torch.from_numpy(memory)

    def read(self, arrays, name: str):
        return self.of(arrays.memory(name)).to(self.dtype)

    def array(self, values):
        """A copy of NumPy's numbers; floats in ``dtype``."""
        values = self.of(np.array(values))
        return values.to(self.dtype) if values.is_floating_point() else values

    def asarray(self, values):
        return values if is_tensor(values) else self.array(values)

    def cast(self, values):
        return values.to(self.device, self.dtype)

    def real(self, values):
        if is_tensor(values):
            return values.detach().to(self.device, self.dtype, copy=True)
        return self._torch.tensor(values, dtype=self.dtype, device=self.device)

    def zeros(self, *shape: int):
        return self._torch.zeros(shape, dtype=self.dtype, device=self.device)

    def copy(self, values):
        return values.clone()

    def concatenate(self, parts: list):
        return self._torch.cat(parts, dim=1)

    def repeated(self, row, times: int):
        return row.repeat(times, 1)

    def total(self, rows):
        return rows.double().sum(dim=0).to(rows.dtype)

    def order(self, world) -> None:
        """The world's work goes into torch's present stream, between what torch has queued and what it will."""
        if self._gpu is not None:
            world.set_stream(self._torch.cuda.current_stream(self._gpu).cuda_stream)
            world.release()  # what the host wrote goes along, and torch may write

    def final(self, rows, ended):
        """Of others zeros, so that nothing waits to learn who has ended."""
        if isinstance(rows, dict):
            return {name: self.final(of, ended) for name, of in rows.items()}
        return self.where(ended[:, None], rows, 0)

    answer = NumpyBackend.answer


class TorchFromNumpy(NumpyBackend):
    """Computes in NumPy's arrays, and tells tensors on ``device``."""

    tells_tensors, final = True, TorchBackend.final

    def __init__(self, device: str, dtype: str):
        super().__init__(dtype)
        self._torch = TorchBackend(device, dtype)

    def answer(self, results):
        if isinstance(results, np.ndarray):
            return self._torch.of(results)
        if isinstance(results, dict):
            return {name: self.answer(values) for name, values in results.items()}
        return tuple(self.answer(values) for values in results)


def chosen_backend(name: str, device: str, dtype: str, in_tensors: bool = True):
    """Of users' "numpy" or "torch"; ``in_tensors``: whether what is computed may be in those, too."""
    if name == "numpy":
        return NumpyBackend(dtype)
    return (TorchBackend if in_tensors else TorchFromNumpy)(device, dtype)


def capsule_tensor(capsule):
    """The tensor of a DLPack capsule."""
    import torch

    return torch.utils.dlpack.from_dlpack(capsule)


def torch_device(device: str):
    """Where torch has the memory of a simulation on ``device``."""
    import torch

    return torch.device(device)
