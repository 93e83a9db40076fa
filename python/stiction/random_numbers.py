"""Random numbers from counters, for many environments at once: the NumPy counterpart of cuda/core/philox.h.

A number is a function of (seed, episode, step, stream, place) and of nothing else: neither the batch nor an
environment's place in it can change it. Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
SC 2011).
"""

from __future__ import annotations

import zlib

import numpy as np

#: What numbers are drawn for, as in cuda/core/philox.h.
RESET, TASK, RANDOMISATION, NOISE = range(4)

_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


def philox4x32(counter, key) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The bijection of counters (4 arrays of words) under keys (2 arrays), ten rounds; words are uint64 below 2^32."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (b >> _SHIFT) ^ c1 ^ k0, b & _LOW, (a >> _SHIFT) ^ c3 ^ k1, a & _LOW
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & _LOW, (k1 + np.uint64(0xBB67AE85)) & _LOW
    return c0, c1, c2, c3


def named_stream(name: str, use: int = RANDOMISATION) -> int:
    """A stream of its own for something named, so that adding one does not disturb another."""
    return (zlib.crc32(name.encode()) & 0xFFFFFFFC) | use


class Draws:
    """The numbers of one stream for k environments: every call goes on where the last one ended.

    ``seeds, episodes, steps`` are (k,) or single numbers. Results are float64 (k, *shape).
    """

    def __init__(self, seeds, episodes, steps=0, stream: int = RESET):
        seeds = np.asarray(seeds, np.uint64)
        count = len(seeds)
        self._key = seeds[:, None] & _LOW, seeds[:, None] >> _SHIFT
        words = (steps, episodes, stream)
        self._counter = [np.broadcast_to(np.asarray(w).astype(np.uint64), (count,))[:, None] & _LOW for w in words]
        self._place = 0
        self.count = count

    def _blocks(self, count: int):
        place = np.arange(self._place, self._place + count, dtype=np.uint64)[None, :]
        self._place += count
        return philox4x32((place, *self._counter), self._key)

    def _unit(self, count: int) -> np.ndarray:
        """(k, count) in [0, 1), multiples of 2^-53: two of each block; an odd last one is dropped."""
        w0, w1, w2, w3 = self._blocks((count + 1) // 2)
        bits = np.stack([(w1 << _SHIFT) | w0, (w3 << _SHIFT) | w2], axis=-1).reshape(self.count, 2 * w0.shape[1])[
            :, :count
        ]
        return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def uniform(self, low=0.0, high=1.0, shape=()) -> np.ndarray:
        """In [low, high); bounds broadcast against (k, *shape)."""
        size, shape = _sizes(shape)
        low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
        return low + (high - low) * self._unit(size).reshape(self.count, *shape)

    def normal(self, deviation=1.0, shape=()) -> np.ndarray:
        """Of mean 0 (Box and Muller)."""
        size, shape = _sizes(shape)
        unit = self._unit(2 * size).reshape(self.count, size, 2)
        drawn = np.sqrt(-2 * np.log1p(-unit[..., 0])) * np.cos(2 * np.pi * unit[..., 1])
        return np.asarray(deviation) * drawn.reshape(self.count, *shape)

    def integers(self, low: int, high: int, shape=()) -> np.ndarray:
        """From low to high - 1, int64."""
        if high <= low:
            raise ValueError(f"integers from {low} to {high - 1}: there are none")
        return low + np.floor(self.uniform(0.0, high - low, shape)).astype(np.int64)

    def coarse_normal(self, size: int) -> np.ndarray:
        """(k, size) float32 of mean 0 and variance 1, four of each block: for noise in bulk."""
        blocks = (size + 3) // 4
        w0, w1, w2, w3 = (word.astype(np.float32) for word in self._blocks(blocks))
        radius = [np.sqrt(-2 * np.log((w + np.float32(1)) * np.float32(2.0**-32))) for w in (w0, w2)]
        angle = [w * np.float32(2 * np.pi * 2.0**-32) for w in (w1, w3)]
        drawn = [radius[0] * np.cos(angle[0]), radius[0] * np.sin(angle[0])]
        drawn += [radius[1] * np.cos(angle[1]), radius[1] * np.sin(angle[1])]
        return np.stack(drawn, axis=-1).reshape(self.count, 4 * blocks)[:, :size]


def _sizes(shape) -> tuple[int, tuple[int, ...]]:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return int(np.prod(shape, dtype=np.int64)), shape
