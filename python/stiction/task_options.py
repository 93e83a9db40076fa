"""What a user says about a task, ``task={"ctrl_cost_weight": 0.1, "healthy_z_range": (0.3, 1)}``, for compiled code."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real


def task_parameters(given) -> dict[str, list[float]]:
    """Values by name, as lists of numbers: one for a weight or a switch, two for a range. Names are checked later."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"task is {type(given).__name__}, expected a dict of its parameters: {{name: value}}")
    return {_checked_name(name): _numbers(name, value) for name, value in given.items()}


def _checked_name(name) -> str:
    if not isinstance(name, str):
        raise TypeError(f"task has the key {name!r}, expected the name of a parameter")
    return name


def _numbers(name: str, value) -> list[float]:
    values = value if isinstance(value, (tuple, list)) or getattr(value, "ndim", 0) == 1 else [value]
    if not all(isinstance(number, (Real, bool)) for number in values):
        raise TypeError(f"task parameter {name!r} is {value!r}, expected a number, (low, high) or a bool")
    return [float(number) for number in values]
