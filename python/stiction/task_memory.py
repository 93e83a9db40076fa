"""What a task in Python keeps in lists, dicts and the like: copies of it, for states, and what puts them back.

Kept are lists, tuples, dicts (of names or numbers), sets of such, deques and dataclasses, in each other too, of arrays,
tensors, numbers, strings, None and random generators. What else is in them is taken for constant: `CONSTANT` stands
for it in a state, and what is there now stays. An array has a row for each environment where it has num_envs of them;
a list where it has num_envs entries, unless these are such arrays: then it is a history.
"""

from __future__ import annotations

import copy
import io
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from numbers import Number

import numpy as np

_PLAIN = (Number, str, bytes, type(None), Enum, np.generic)
_RANDOM = (np.random.Generator, np.random.RandomState, random.Random)


class CONSTANT:
    """In a state: what is not kept; the class itself, so that pickles and copies know it."""


def is_array(value) -> bool:
    return isinstance(value, np.ndarray) or hasattr(value, "detach")


def is_fixed_array(value) -> bool:
    """Whether nobody can write into it: no memory."""
    return isinstance(value, np.ndarray) and not value.flags.writeable


def copied(value, count: int, envs=None, what: str = ""):
    """A copy; of what has rows or entries for each of ``count`` environments, those of ``envs`` (None: all)."""
    if is_array(value):
        if is_fixed_array(value):
            return CONSTANT
        value = value.detach() if hasattr(value, "detach") else value
        return _copy(value[envs] if envs is not None and has_rows(value, count) else value)
    if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
        raise TypeError(
            f"{what} is a {type(value).__name__}, whose place no state or copy can keep: expected numbers, arrays and "
            "containers of them, such as a list and the number of its next entry"
        )
    if (parts := _parts(value)) is None:
        kept = isinstance(value, (*_PLAIN, *_RANDOM)) or _is_set(value)
        return copy.deepcopy(value) if kept else CONSTANT
    whole = envs is None
    if not whole and has_entries(value, count):
        parts, whole = {env: value[env] for env in envs}, True
    new = {name: copied(part, count, None if whole else envs, f"{what}[{name!r}]") for name, part in parts.items()}
    return _made(value, new)


def placed(there, given, count: int, envs, what: str):
    """``there``, a copy of its own, with what ``given`` has for ``envs``: a row or entry each, or one for all."""
    if has_rows(there, count) or has_entries(there, count):
        if type(given) is not type(there) or len(given) not in (1, len(envs)):
            raise ValueError(f"{what} has no row for each of envs, nor one for all: get_state(envs) has such rows")
        for place, env in enumerate(envs):
            entry = given[place if len(given) > 1 else 0]
            there[env] = entry if is_array(there) else copied(entry, count)
        return there
    parts, others = _parts(there), _parts(given)
    if parts is None or others is None:
        return there
    if isinstance(there, (list, tuple, deque)) and len(parts) != len(others):
        if not _goes(there, count):
            return there
        raise ValueError(f"{what} has {len(others)} entries, and {len(parts)} are there: they do not go with envs")
    return _made(
        there,
        {
            name: placed(part, others[name], count, envs, f"{what}[{name!r}]") if name in others else part
            for name, part in parts.items()
        },
    )


def require_places(given, now, what: str) -> None:
    """ValueError where something that is not kept has nothing there that could stay."""
    if given is CONSTANT and now is CONSTANT:
        raise ValueError(f"{what} is of a class that no state keeps, and nothing is there to stay in its place")
    there = _alike(given, now) or {}
    for name, part in (_parts(given) or {}).items():
        require_places(part, there.get(name, CONSTANT), f"{what}[{name!r}]")


def put_back(given, now):
    """What is to be there in place of ``now`` (CONSTANT: of nothing): that itself, changed, where it can be."""
    if given is CONSTANT:
        return now
    if is_array(given):
        if type(now) is type(given) and now.shape == given.shape and now.dtype == given.dtype:
            (now.detach() if hasattr(now, "detach") else now)[...] = given
            return now
        return _copy(given)
    if (parts := _parts(given)) is None:
        return copy.deepcopy(given)
    there = _alike(given, now)
    new = {name: put_back(part, (there or {}).get(name, CONSTANT)) for name, part in parts.items()}
    return _made(given, new) if there is None or _is_fixed(now) else _filled(now, new)


def _alike(given, now) -> dict | None:
    """The parts of ``now``, if it is a container of the kind of ``given``."""
    return _parts(now) if type(now) is type(given) else None


def has_rows(value, count: int) -> bool:
    return is_array(value) and tuple(value.shape[:1]) == (count,)


def has_entries(value, count: int) -> bool:
    return isinstance(value, list) and len(value) == count and not all(has_rows(entry, count) for entry in value)


def _goes(value, count: int) -> bool:
    """Whether anything in it goes with its environment."""
    parts = _parts(value) or {}
    return has_rows(value, count) or has_entries(value, count) or any(_goes(part, count) for part in parts.values())


def _copy(array):
    return array.clone() if hasattr(array, "detach") else array.copy()


def _is_set(value) -> bool:
    return isinstance(value, (set, frozenset)) and all(_is_key(entry) for entry in value)


def _is_key(value) -> bool:
    return isinstance(value, _PLAIN) or (isinstance(value, (tuple, frozenset)) and all(map(_is_key, value)))


def _parts(value) -> dict | None:
    """The entries of a container by place or name; None for what is none."""
    if isinstance(value, dict):
        return dict(value) if all(map(_is_key, value)) else None
    if isinstance(value, (list, tuple, deque)):
        return dict(enumerate(value))
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value) if hasattr(value, field.name)}
    return None


def _is_fixed(value) -> bool:
    """Whether a container cannot be changed."""
    return isinstance(value, tuple) or (is_dataclass(value) and value.__dataclass_params__.frozen)


def _made(like, parts: dict):
    """A container as ``like`` is, with other entries."""
    if isinstance(like, tuple):
        return like._make(parts.values()) if hasattr(like, "_make") else type(like)(parts.values())
    return _filled(copy.copy(like), parts)


def _filled(container, parts: dict):
    if is_dataclass(container):
        for name, part in parts.items():
            object.__setattr__(container, name, part)
    else:
        container.clear()
        container.update(parts) if isinstance(container, dict) else container.extend(parts.values())
    return container
