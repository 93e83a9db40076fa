"""Which rays meet the zone of a <touch> sensor, a solid sphere, capsule, ellipsoid, cylinder or box.

Rays are points and unit directions (..., 3) in the zone's frame, NumPy or torch; each answer is bool (...). A ray that
begins inside meets the zone.
"""

from __future__ import annotations

import sys

import numpy as np

_TINY = 1e-20  # in place of a zero that is divided by


def meets_zone(shape: str, size, point, direction):
    """``shape``: MuJoCo's word; ``size``: of the site, m."""
    radius, half = float(size[0]), float(size[1])
    if shape == "sphere":
        return _meets_ball(point, direction, radius)
    if shape == "ellipsoid":
        scale = 1 / _like(point, size)
        return _meets_ball(point * scale, direction * scale, 1.0)
    if shape == "box":
        return _meets_all(_slab(point[..., i], direction[..., i], float(size[i])) for i in range(3))
    if shape == "cylinder":
        return _meets_cylinder(point, direction, radius, half)
    up = _like(point, [0.0, 0.0, half])
    ends = _meets_ball(point - up, direction, radius) | _meets_ball(point + up, direction, radius)
    return ends | _meets_cylinder(point, direction, radius, half)


def _meets_ball(point, direction, radius: float):
    return _meets_all([_quadric(point, direction, radius)])


def _meets_cylinder(point, direction, radius: float, half: float):
    around = _quadric(point[..., :2], direction[..., :2], radius)
    return _meets_all([around, _slab(point[..., 2], direction[..., 2], half)])


def _slab(point, direction, half: float):
    """Where along a ray a coordinate is within ±half: from, to."""
    xp = _module(point)
    slope = xp.where(abs(direction) < _TINY, _TINY + 0 * direction, direction)
    first, second = (-half - point) / slope, (half - point) / slope
    return xp.minimum(first, second), xp.maximum(first, second)


def _quadric(point, direction, radius: float):
    """Where along a ray |point| <= radius: from, to; nowhere where from is beyond to."""
    xp = _module(point)
    a, b = (direction**2).sum(-1) + _TINY, (point * direction).sum(-1)
    inside = b * b - a * ((point**2).sum(-1) - radius**2)
    reach = xp.sqrt(xp.maximum(inside, 0 * inside)) / a
    middle = -b / a
    return middle - reach, xp.where(inside < 0, -np.inf + 0 * middle, middle + reach)


def _meets_all(intervals):
    begin, end = None, None
    for low, high in intervals:
        xp = _module(low)
        begin = xp.maximum(low, 0 * low) if begin is None else xp.maximum(begin, low)
        end = high if end is None else xp.minimum(end, high)
    return begin <= end


def _module(values):
    return sys.modules["torch"] if hasattr(values, "detach") else np


def _like(values, numbers):
    return values.new_tensor(list(numbers)) if hasattr(values, "detach") else np.asarray(numbers, values.dtype)
