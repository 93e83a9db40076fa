"""Rotations and vectors of a batch: NumPy arrays or tensors, with any axes before the last."""

from __future__ import annotations

import numpy as np


def _stack(arrays, axis: int):
    """Of arrays or of tensors, as they are."""
    if isinstance(arrays[0], np.ndarray):
        return np.stack(arrays, axis)
    import torch

    return torch.stack(arrays, axis)


def parts(values) -> list:
    """Arrays (...), one for each number of the last axis."""
    return [values[..., i] for i in range(values.shape[-1])]


def rotation(quat):
    """Matrices (..., 3, 3) of unit quaternions (..., 4)."""
    w, x, y, z = parts(quat)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return _stack([_stack(row, -1) for row in rows], -2)


def about_axis(axis, angle):
    """Unit quaternions (..., 4) of turns by ``angle`` (...), rad, about a unit vector (3,)."""
    half = angle / 2
    cosine, sine = (half.cos(), half.sin()) if hasattr(half, "cos") else (np.cos(half), np.sin(half))
    return _stack([cosine, *(sine * part for part in parts(axis))], -1)


def product(a, b):
    """Quaternions (..., 4): first b, then a."""
    (aw, ax, ay, az), (bw, bx, by, bz) = parts(a), parts(b)
    return _stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        -1,
    )


def cross(a, b):
    """Vectors (..., 3)."""
    (ax, ay, az), (bx, by, bz) = parts(a), parts(b)
    return _stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], -1)
