"""What users give environments, checked: errors say what was given and what is expected."""

from __future__ import annotations

import operator

from gymnasium.vector import AutoresetMode


def checked_mode(mode) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        modes = ", ".join(repr(m.value) for m in AutoresetMode)
        raise ValueError(f"autoreset_mode is {mode!r}, expected one of {modes}") from None


def checked_limit(steps) -> int:
    try:
        number = operator.index(steps)
    except TypeError:
        raise TypeError(f"max_episode_steps is {steps!r}, expected an integer") from None
    if number < 1 and number != -1:
        raise ValueError(f"max_episode_steps is {number}, expected at least 1, or -1 for no limit")
    return number


def checked_seed(seed) -> int:
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeError(f"a seed is {seed!r}, expected an integer") from None
    if number < 0:
        raise ValueError(f"a seed is {number}, expected at least 0")
    return number


def imported_torch():
    try:
        import torch
    except ImportError:
        raise ImportError("backend='torch' needs torch: pip install torch") from None
    return torch
