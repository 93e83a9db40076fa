"""What a task in Python is and returns, checked: errors name the class, what it told and what is expected."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

import numpy as np

#: What `VectorEnv` itself writes into infos.
_OF_BATCHES = ("status", "final_obs", "final_info")


def checked_substeps(task) -> int:
    number = task.substeps
    if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or number < 1:
        raise ValueError(f"{type(task).__name__}.substeps is {number!r}, expected how many time steps, at least 1")
    return int(number)


def checked_steps(task) -> int:
    """``max_episode_steps`` of a task's class, -1 for none."""
    number = task.max_episode_steps
    if number is None:
        return -1
    if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or (number < 1 and number != -1):
        raise ValueError(
            f"{type(task).__name__}.max_episode_steps is {number!r}, expected control steps, at least 1, or None"
        )
    return int(number)


def require_well_spelt(kind: type, of_tasks: type) -> None:
    """TypeError where a class has ``max_episode_step`` or ``terminated`` for what a task has, which it leaves alone."""
    own: dict = {}
    for base in reversed(kind.__mro__[: kind.__mro__.index(of_tasks)]):
        own |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    for name, value in own.items():
        if hasattr(of_tasks, name) or isinstance(value, property):
            continue
        known = [
            n for n, v in vars(of_tasks).items() if n[0] != "_" and n not in own and callable(v) == callable(value)
        ]
        if near := difflib.get_close_matches(name, known, n=1, cutoff=0.9):
            raise TypeError(
                f"{kind.__name__} has {name!r}, which is nothing of a task; {near[0]!r} is, or another name"
            )


def told(task) -> Mapping:
    """What `report` returned."""
    given, kind = task.report(), type(task).__name__
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{kind}.report() returned a {type(given).__name__}, expected a dict of arrays ({task.num_envs},)"
        )
    for name in given:
        if not isinstance(name, str) or name in _OF_BATCHES or name.startswith(("_", "reward_")):
            raise ValueError(f"{kind}.report() tells {name!r}, which is for what infos have besides: another name")
    return given
