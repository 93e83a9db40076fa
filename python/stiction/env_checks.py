"""What users give environments, checked: errors say what was given and what is expected."""

from __future__ import annotations

import operator
from collections.abc import Mapping

import numpy as np
from gymnasium.vector import AutoresetMode

from .backend import as_array, is_tensor


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


def checked_seeds(seed, num_envs: int) -> list[int | None] | range:
    """Of each environment: a range of ints from an int on, or a list with None where a list leaves a seed as it is."""
    if not isinstance(seed, (list, tuple, np.ndarray)):
        first = checked_seed(seed)
        return range(first, first + num_envs)
    if len(seed) != num_envs:
        raise ValueError(
            f"If seeds are passed as a list the length must match num_envs={num_envs} but got length={len(seed)}."
        )
    return [None if s is None else checked_seed(s) for s in seed]


def require_options(options, known: dict[str, str]) -> None:
    """Of `reset`: TypeError for no dict, ValueError for an option that is not ``known``, name -> what it says."""
    if not isinstance(options, (Mapping, type(None))):
        raise TypeError(f"reset's options are a {type(options).__name__}, expected a dict or None")
    there = ", ".join(f"{name!r}, {meant}" for name, meant in known.items()) or "none for one environment"
    for name in options or ():
        if name not in known:
            raise ValueError(f"reset has no option {name!r}; there is {there}")


def checked_mask(options, num_envs: int, tensors: bool) -> np.ndarray | None:
    """``options["reset_mask"]`` (num_envs,), ``tensors``: or such a one; None for all. Options are left as they are."""
    require_options(options, {"reset_mask": "whose episodes begin anew"})
    if not options:
        return None
    mask = options["reset_mask"]
    if tensors and is_tensor(mask):
        mask = as_array("options['reset_mask']", mask)
    if not isinstance(mask, np.ndarray):
        raise TypeError(f"`options['reset_mask']` must be a numpy array, got {type(mask)}")
    if mask.shape != (num_envs,):
        raise ValueError(f"`options['reset_mask']` must have shape `({num_envs},)`, got {mask.shape}")
    if mask.dtype != np.bool_:
        raise TypeError(f"`options['reset_mask']` must have `dtype=np.bool_`, got {mask.dtype}")
    if not mask.any():
        raise ValueError(
            f"`options['reset_mask']` must contain a boolean array with at least one True value, got reset_mask={mask}"
        )
    return np.ascontiguousarray(mask)


def checked_actions(given, expected: tuple):
    """An array or a tensor of actions, of that shape."""
    if given.ndim == 0:
        raise TypeError(f"actions is a single number, expected an array {expected}")
    if tuple(given.shape) != expected:
        raise ValueError(f"actions have shape {tuple(given.shape)}, expected {expected}")
    return given


def checked_backend(backend: str) -> str:
    if backend not in ("numpy", "torch"):
        raise ValueError(f"backend is {backend!r}, expected 'numpy' or 'torch'")
    if backend == "torch":
        try:
            import torch  # noqa: F401
        except ImportError:
            raise ImportError("backend='torch' needs torch: pip install torch") from None
    return backend
