"""What a `stiction.Task` remembers in its attributes: taken into states, and put back.

Numbers, strings, None, arrays, tensors and NumPy's and Python's generators of random numbers, and lists, tuples, dicts,
sets, deques and dataclasses of these, to any depth. An array with a row for each environment goes with them, and so
does a list with an array or a container for each; all else is all environments' together. What cannot be kept stays as
it is where a state is put: functions, models, sensors and what libraries made, which are constants, and all else, of
which a warning tells.
"""

from __future__ import annotations

import copy
import enum
import functools
import pathlib
import random
import types
import warnings
from collections import deque
from dataclasses import fields, is_dataclass
from numbers import Number, Real

import numpy as np

#: Of a task, but not its memory.
_OWN = ("sim", "sensors", "_middle", "_half", "_episode", "substeps")
_PLAIN = (type(None), Number, str, bytes, np.generic, np.dtype, enum.Enum, range, slice, pathlib.PurePath)
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_CODE = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    np.ufunc,
    functools.partial,
)
_LIBRARIES = ("stiction", "gymnasium", "mujoco", "torch")
_NOTHING, _WITHIN = object(), object()


class NotKept:
    """In a state, in the place of what it cannot have."""

    def __init__(self, kind: str):
        self.kind = kind

    def __repr__(self) -> str:
        return f"<{self.kind}, not kept>"


def taken(task, numbers=None) -> dict:
    """Copies by attribute; numbers and tensors as arrays. ``numbers``: the rows of these environments alone."""
    owner, memory, memo = type(task).__name__, {}, {}

    def whole(value, place, _):
        if _is_plain(value):
            return value
        if is_array(value):
            return value.detach().clone() if _is_tensor(value) else value.copy()
        if isinstance(value, _GENERATORS):
            return copy.deepcopy(value)
        if _pieces(value) is not None:
            return _WITHIN
        if not _is_constant(value):
            warnings.warn(
                f"{owner}.{place} is a {type(value).__name__}, which states and copies of environments do not keep; "
                "they keep numbers, strings, arrays, and lists, tuples, dicts, sets and dataclasses of these",
                stacklevel=2,
            )
        return NotKept(type(value).__name__)

    def rows(value, place, _):
        if is_array(value) and has_rows(value, task.num_envs):
            return whole(value[numbers], place, _)
        if _has_entries(value, task.num_envs):
            return [_mapped(value[number], whole, memo, f"{place}[{number}]") for number in numbers]
        return whole(value, place, _)

    for name, value in vars(task).items():
        if name not in _OWN:
            change = whole if numbers is None else rows
            kept = np.array(value) if isinstance(value, Real) else _mapped(value, change, memo, name)
            if not isinstance(kept, NotKept):
                memory[name] = kept.cpu().numpy() if _is_tensor(kept) else kept
    return memory


def placed(task, given: dict, numbers) -> dict:
    """All that a task remembers now, with the rows ``given`` at ``numbers``."""

    def change(there, place, rows):
        if rows is _NOTHING or _pieces(there) is None and not is_array(there):
            return there
        if is_array(there):
            whose = has_rows(there, task.num_envs) and is_array(rows)
            return placed_rows(f"state['python.{place}']", there, rows, numbers) if whose else there
        if not _has_entries(there, task.num_envs) or type(rows) is not list:
            return _WITHIN
        if len(rows) not in (1, len(numbers)):
            raise ValueError(
                f"state['python.{place}'] has {len(rows)} entries, expected {len(numbers)}, or one for all"
            )
        new = list(there)
        for row, number in enumerate(numbers):
            new[number] = copy.deepcopy(rows[row if len(rows) > 1 else 0])
        return new

    memo: dict = {}
    return {name: _mapped(value, change, memo, name, given.get(name, _NOTHING)) for name, value in taken(task).items()}


def put(task, memory: dict) -> None:
    """What `taken` or `placed` told, into arrays where there are such, which others may see; else anew."""
    writes, lost, memo, new = {}, [], {}, {}

    def change(then, place, now):
        if isinstance(then, NotKept):
            lost.extend([place] if now is _NOTHING else [])
            return now
        if is_array(then):
            values = now.new_tensor(then) if _is_tensor(now) and not _is_tensor(then) else then
            if not is_array(now) or now.shape != values.shape or now.dtype != values.dtype:
                return copy.deepcopy(values)
            array, others = writes.setdefault(id(now), (now, values))
            # It takes one array's values. A tensor's may be there twice: as an array by itself, and in a container.
            same = others is values or (_is_tensor(array) and bool((others == values).all()))
            return now if same else copy.deepcopy(values)
        return _WITHIN if _pieces(then) is not None else copy.deepcopy(then)

    for name, then in memory.items():
        now = vars(task).get(name, _NOTHING)  # not the class's, which others share
        if is_array(then) and then.ndim == 0 and not is_array(now):  # a number
            new[name] = type(now)(then) if isinstance(now, np.generic) else then.item()
        else:
            new[name] = _mapped(then, change, memo, name, now)
    for array, values in writes.values():
        if _is_tensor(array):
            array.detach().copy_(values)
        elif array.flags.writeable:  # else it is the simulation's, which computes it
            array[...] = values
    for place in lost:
        name = place.replace("[", ".").partition(".")[0]
        if new.pop(name, None) is not None:
            told = f"{type(task).__name__}.{name} stays as it is: what its state cannot keep, {place}, is not there"
            warnings.warn(told, stacklevel=2)
    for name, value in new.items():
        if vars(task).get(name, _NOTHING) is not value:
            setattr(task, name, value)


def is_array(value) -> bool:
    """NumPy's, of numbers and the like, or a tensor."""
    if isinstance(value, np.ndarray):
        return value.dtype != object or all(map(_is_plain, value.flat))
    return _is_tensor(value)


def _is_tensor(value) -> bool:
    return hasattr(value, "detach") and hasattr(value, "new_tensor")  # files can be detached, too


def has_rows(values, num_envs: int) -> bool:
    """Whether there is a row for each environment; what else a task keeps is all environments' own."""
    return tuple(values.shape[:1]) == (num_envs,)


def placed_rows(what: str, there, given, numbers):
    """``there`` with the rows ``given`` at ``numbers``."""
    if given.shape[1:] != there.shape[1:] or len(given) not in (1, len(numbers)) or given.dtype != there.dtype:
        each, one = ((rows, *there.shape[1:]) for rows in (len(numbers), 1))
        raise ValueError(
            f"{what} is {given.dtype} {tuple(given.shape)}, expected {there.dtype} {each}, a row for each of envs, "
            f"or {one}, one for all: get_state(envs) has the rows of some environments"
        )
    new = there.clone() if _is_tensor(there) else there.copy()
    new[numbers] = given
    return new


# ---- containers


def _mapped(value, change, memo: dict, place: str, other=_NOTHING):
    """A value as ``change(value, place, other)`` makes it, or a container of what it makes of the pieces within.

    ``other``: what goes beside it, piece by piece. What is in two places becomes one thing in two places.
    """
    if id(value) in memo:
        return memo[id(value)]
    new = change(value, place, other)
    if new is not _WITHIN:
        memo[id(value)] = new
        return new
    beside = _pieces(other) or {} if type(other) is type(value) else {}
    within = "[{!r}]" if isinstance(value, (list, tuple, deque, dict)) else ".{}"
    pieces = (
        (key, _mapped(piece, change, memo, place + within.format(key), beside.get(key, _NOTHING)))
        for key, piece in _pieces(value).items()
    )
    if isinstance(value, tuple):
        made = [piece for _, piece in pieces]
        return value._make(made) if hasattr(value, "_make") else type(value)(made)
    new = memo[id(value)] = copy.copy(value)
    for key, piece in pieces:
        if isinstance(new, (list, deque, dict)):
            new[key] = piece
        else:
            object.__setattr__(new, key, piece)  # of a frozen one, too
    return new


def _pieces(value) -> dict | None:
    """What is in a container by key, index or attribute; None of what is none, or may not be looked into."""
    if isinstance(value, (list, tuple, deque)):
        return dict(enumerate(value))
    if isinstance(value, dict):
        return dict(value) if all(map(_is_plain, value)) else None
    if isinstance(value, (set, frozenset)):
        return {} if all(map(_is_plain, value)) else None
    if isinstance(value, types.SimpleNamespace):
        return dict(vars(value))
    if is_dataclass(value) and not isinstance(value, type):
        names = vars(value) if hasattr(value, "__dict__") else [field.name for field in fields(value)]
        return {name: getattr(value, name) for name in names if hasattr(value, name)}
    return None


def _has_entries(value, num_envs: int) -> bool:
    """Whether a list has something for each environment that can change; numbers and names may as well be constants."""
    if type(value) is not list or len(value) != num_envs:
        return False
    return any(is_array(entry) or not _is_plain(entry) and _pieces(entry) is not None for entry in value)


def _is_plain(value) -> bool:
    return isinstance(value, _PLAIN) or isinstance(value, (tuple, frozenset)) and all(map(_is_plain, value))


def _is_constant(value) -> bool:
    """Code, and what libraries have made but for generators of random numbers."""
    modules = {kind.__module__.partition(".")[0] for kind in type(value).__mro__}
    return isinstance(value, _CODE) or not modules.isdisjoint(_LIBRARIES) and type(value).__name__ != "Generator"
