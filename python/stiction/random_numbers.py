"""Random numbers from counters, for many environments at once: cuda/core/philox.h in NumPy and torch.

A number is a function of (seed, episode, step, stream, place) and of nothing else: neither the batch nor an
environment's place in it can change it. Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
SC 2011). Written in what NumPy's arrays and torch's tensors have in common; words are int64 below 2^32, whose products
wrap as unsigned ones do.
"""

from __future__ import annotations

import sys
import zlib

import numpy as np

#: What numbers are drawn for, as in cuda/core/philox.h.
RESET, TASK, RANDOMISATION, NOISE = range(4)

_LOW = 0xFFFFFFFF


def philox4x32(counter, key) -> tuple:
    """The bijection of counters (4 arrays of words) under keys (2 arrays), ten rounds."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = ((b >> 32) & _LOW) ^ c1 ^ k0, b & _LOW, ((a >> 32) & _LOW) ^ c3 ^ k1, a & _LOW
        k0, k1 = (k0 + 0x9E3779B9) & _LOW, (k1 + 0xBB67AE85) & _LOW
    return c0, c1, c2, c3


def named_stream(name: str, use: int = RANDOMISATION) -> int:
    """A stream of its own for something named, so that adding one does not disturb another."""
    return (zlib.crc32(name.encode()) & 0xFFFFFFFC) | use


class Draws:
    """The numbers of one stream for k environments: every call goes on where the last one ended.

    ``seeds, episodes, steps`` are (k,) or single numbers; ``seeds`` decides whether results are arrays or tensors, and
    where. They are (k, *shape) of ``dtype``.
    """

    def __init__(self, seeds, episodes, steps=0, stream: int = RESET, dtype: str = "float64"):
        self._dtype = dtype
        if not hasattr(seeds, "device") or isinstance(seeds, np.ndarray):
            self._xp, seeds = np, np.asarray(seeds, np.uint64).view(np.int64)
        else:
            self._xp = sys.modules["torch"]
        self._like = seeds
        self.count = len(seeds)
        self._key = seeds[:, None] & _LOW, (seeds[:, None] >> 32) & _LOW
        self._counter = [self._words(w) for w in (steps, episodes, stream)]
        self._place = 0

    def _words(self, numbers):
        """(k, 1) or (1, 1)"""
        if isinstance(numbers, int):
            return self._full(numbers & _LOW)
        return self._cast(numbers, "int64")[:, None] & _LOW

    def _full(self, number):
        return self._cast(self._like[:1, None] * 0, "int64") + number

    def _cast(self, numbers, dtype: str):
        if self._xp is np:
            return np.asarray(numbers).astype(dtype)
        return self._xp.as_tensor(numbers, dtype=getattr(self._xp, dtype), device=self._like.device)

    def _real(self, numbers):
        """float64; a single number as it is, for bringing it to a GPU would wait for that."""
        return float(numbers) if isinstance(numbers, (int, float)) else self._cast(numbers, "float64")

    def _blocks(self, count: int):
        where = {} if self._xp is np else {"device": self._like.device}
        places = self._xp.arange(self._place, self._place + count, dtype=self._xp.int64, **where)
        self._place += count
        return philox4x32((places[None, :], *self._counter), self._key)

    def _unit(self, count: int):
        """(k, count) in [0, 1), multiples of 2^-53: two of each block; an odd last one is dropped."""
        w0, w1, w2, w3 = self._blocks((count + 1) // 2)
        bits = self._xp.stack([(w1 << 21) | (w0 >> 11), (w3 << 21) | (w2 >> 11)], -1)
        return self._cast(bits.reshape(self.count, 2 * w0.shape[1])[:, :count], "float64") * 2.0**-53

    def uniform(self, low=0.0, high=1.0, shape=()):
        """In [low, high), which float32 may round up to high; bounds broadcast against (k, *shape)."""
        size, shape = _sizes(shape)
        low, high = self._real(low), self._real(high)
        return self._cast(low + (high - low) * self._unit(size).reshape(self.count, *shape), self._dtype)

    def normal(self, deviation=1.0, shape=()):
        """Of mean 0 (Box and Muller)."""
        xp, (size, shape) = self._xp, _sizes(shape)
        unit = self._unit(2 * size).reshape(self.count, size, 2)
        drawn = xp.sqrt(-2 * xp.log1p(-unit[..., 0])) * xp.cos(2 * np.pi * unit[..., 1])
        return self._cast(self._real(deviation) * drawn.reshape(self.count, *shape), self._dtype)

    def integers(self, low: int, high: int, shape=()):
        """From low to high - 1, int64."""
        if high <= low:
            raise ValueError(f"integers from {low} to {high - 1}: there are none")
        size, shape = _sizes(shape)
        return low + self._cast((high - low) * self._unit(size), "int64").reshape(self.count, *shape)

    def exponential(self, numbers):
        """e to the power of what was drawn."""
        return self._xp.exp(numbers)

    def cos_sin(self, angles) -> tuple:
        return self._xp.cos(angles), self._xp.sin(angles)

    def coarse_normal(self, size: int):
        """(k, size) float32 of mean 0 and variance 1, four of each block: for noise in bulk."""
        xp, blocks = self._xp, (size + 3) // 4
        w0, w1, w2, w3 = (self._cast(word, "float32") for word in self._blocks(blocks))
        radius = [xp.sqrt(-2 * xp.log((w + 1) * 2.0**-32)) for w in (w0, w2)]
        angle = [w * (2 * np.pi * 2.0**-32) for w in (w1, w3)]
        drawn = [radius[0] * xp.cos(angle[0]), radius[0] * xp.sin(angle[0])]
        drawn += [radius[1] * xp.cos(angle[1]), radius[1] * xp.sin(angle[1])]
        return xp.stack(drawn, -1).reshape(self.count, 4 * blocks)[:, :size]


def _sizes(shape) -> tuple[int, tuple[int, ...]]:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return int(np.prod(shape, dtype=np.int64)), shape
