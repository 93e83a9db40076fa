"""All that later steps of a `VectorEnv` depend on, by name, as arrays where it can be: `get_state`, pickles and copies.

    simulation     qpos, qvel, ..., records; params.<name> of parameters that differ between environments
    task.<name>    of a compiled task: seeds, episodes, memory
    batch.<name>   of a task in Python: seeds, episodes, counts
    python.<name>  what the attributes of a `stiction.Task` keep: numbers and arrays, and lists, dicts and the like of
                   them as copies of themselves (task_memory.py); sensors.<i>.<name> of its sensors
    random.<name>  of ``randomize``; groups.<name> of observations with a history

Other attributes of a task in Python are taken for constants.
"""

from __future__ import annotations

from dataclasses import fields
from numbers import Real

import numpy as np

from . import _core
from .custom_task import Task
from .simulation import SimulationState
from .task_extension import ExtendedBatch
from .task_memory import CONSTANT, copied, has_rows, is_array, is_fixed_array, placed, put_back, require_places

_BATCH = ("_seeds", "_episodes", "_step_at", "elapsed", "_ended", "_began", "_pending")
_CONSTANT = ("sim", "sensors", "_middle", "_half", "_episode", "substeps")


def get_state(envs, numbers=None) -> dict:
    """Copies; the rows of the environments ``numbers``, None: of all."""
    state = _arrays(envs)
    if numbers is not None:
        state = {name: v[numbers] if has_rows(v, envs.num_envs) else v for name, v in state.items()}
    return state | _containers(envs, numbers)


def _arrays(envs) -> dict[str, np.ndarray]:
    simulation = envs.simulation
    state = {field.name: getattr(given, field.name) for given in (simulation.get_state(),) for field in fields(given)}
    state |= {f"params.{name}": simulation._arrays.read(f"params.{name}") for name in simulation.per_env}
    if (compiled := _compiled(envs)) is not None:
        state |= {f"task.{name}": values for name, values in compiled.get_state().items()}
    state |= {name: _numpy(getattr(owner, attribute)) for name, owner, attribute in _places(envs)}
    if envs._groups:
        state |= {f"groups.{name}": frames for name, frames in envs._groups.get_state(envs.num_envs).items()}
    return state


def _containers(envs, numbers=None) -> dict:
    """What a task keeps in other attributes than numbers and arrays."""
    task = _python_task(envs)
    others = {name: value for name, value in _own(task) if not _is_number(value)}
    try:
        kept = {name: copied(value, envs.num_envs, numbers, _called(task, name)) for name, value in others.items()}
    except RecursionError:
        raise TypeError(f"{type(task).__name__} has a container that contains itself: no state can keep it") from None
    return {f"python.{name}": value for name, value in kept.items() if value is not CONSTANT}


def set_state(envs, state: dict, numbers=None) -> None:
    """``numbers``: the environments that take the rows of ``state``, one each or all the same; None: all.

    ValueError for what is no state of such environments, before anything is changed.
    """
    simulation, there, count = envs.simulation, _arrays(envs), envs.num_envs
    expected = sorted(name for name in there if not name.startswith("python."))
    names = sorted(name for name in state if not name.startswith("python.")) if isinstance(state, dict) else None
    if names != expected:
        raise ValueError(f"this is no state of these environments: expected what get_state returns, {expected}")
    task, kept = _python_task(envs), {n: v for n, v in state.items() if n.startswith("python.") and not is_array(v)}
    state = given = {name: np.asarray(values) for name, values in state.items() if name not in kept}
    if numbers is not None:
        mine = _containers(envs)
        kept = {n: placed(mine[n], v, count, numbers, _called(task, n[7:])) for n, v in kept.items() if n in mine}
        state = {name: _placed(envs, name, values, given.get(name), numbers) for name, values in there.items()}
    for name, values in there.items():
        new = state.get(name, values)
        if new.shape != values.shape or new.dtype != values.dtype:
            raise ValueError(f"state[{name!r}] is {new.dtype} {new.shape}, expected {values.dtype} {values.shape}")
    for name, value in kept.items():
        require_places(value, getattr(task, name[7:], CONSTANT), _called(task, name[7:]))
    _put_parameters(simulation, state)
    try:
        simulation.set_state(SimulationState(**{f.name: given[f.name] for f in fields(SimulationState)}), numbers)
    except ValueError:
        _put_parameters(simulation, there)
        raise
    if (compiled := _compiled(envs)) is not None:
        compiled.set_state({name[5:]: values for name, values in state.items() if name.startswith("task.")})
    for name, owner, attribute in _places(envs, [name[7:] for name in state if name.startswith("python.")]):
        if name in state:
            _put(owner, attribute, state[name])
    for name, value in kept.items():
        setattr(task, name[7:], put_back(value, getattr(task, name[7:], CONSTANT)))
    if envs._groups:
        envs._groups.set_state({name[7:]: values for name, values in state.items() if name.startswith("groups.")})


def _put_parameters(simulation, state: dict[str, np.ndarray]) -> None:
    for name in simulation.per_env:
        simulation._arrays.write(f"params.{name}", state[f"params.{name}"])


def _placed(envs, name: str, there: np.ndarray, given: np.ndarray | None, numbers) -> np.ndarray:
    """``there`` with the rows ``given``, if any, at ``numbers``."""
    if given is None or not has_rows(there, envs.num_envs):
        return there
    if given.shape[1:] != there.shape[1:] or len(given) not in (1, len(numbers)) or given.dtype != there.dtype:
        each, one = ((rows, *there.shape[1:]) for rows in (len(numbers), 1))
        raise ValueError(
            f"state[{name!r}] is {given.dtype} {given.shape}, expected {there.dtype} {each}, a row for each of envs, "
            f"or {one}, one for all: get_state(envs) has the rows of some environments"
        )
    together = there.copy()
    together[numbers] = given
    return together


def _compiled(envs):
    """The compiled batch, if there is one."""
    task = envs._task
    if isinstance(task, ExtendedBatch):
        task = task._base
    return task if isinstance(task, _core.BatchEnv) else None


def _python_task(envs):
    return getattr(envs._core, "python_task", None)


def _own(task) -> list[tuple[str, object]]:
    """The attributes of a task in Python, if there is one, that may be its memory."""
    return [] if task is None else [(name, value) for name, value in vars(task).items() if name not in _CONSTANT]


def _called(task, name: str) -> str:
    return f"{type(task).__name__}.{name}"


def _places(envs, told=()) -> list[tuple[str, object, str]]:
    """(name, whose attribute, which) of all that is kept in Python; ``told``: attributes of a task besides its own."""
    places: list[tuple[str, object, str]] = []
    if (task := _python_task(envs)) is not None:
        mine = [name for name, value in _own(task) if _is_number(value)]
        places += [(f"python.{name}", task, name) for name in dict.fromkeys([*mine, *told])]
        for number, sensor in enumerate(task.sensors._with_memory):
            names = [name for name, value in vars(sensor).items() if _is_number(value)]
            places += [(f"sensors.{number}.{name}", sensor, name) for name in names]
        batch = [name for name in _BATCH if not (name == "elapsed" and isinstance(envs._task, ExtendedBatch))]
        places += [(f"batch.{name.lstrip('_')}", envs._task, name) for name in batch]
    random = envs._random or (envs._tensor_batch and envs._tensor_batch._random)
    if random:
        names = ("_seeds", "_episodes", "_steps", "_late", "_past", "_now")
        places += [(f"random.{name.lstrip('_')}", random, name) for name in names]
        places += [(f"random.due_{i}", _Last(event), "value") for i, event in enumerate(random._events)]
    return places


class _Last:
    """The last entry of a tuple, an array that is changed in place, as an attribute."""

    def __init__(self, entries: tuple):
        self.value = entries[-1]


def _is_number(value) -> bool:
    return isinstance(value, Real) or (is_array(value) and not is_fixed_array(value))


def _numpy(value) -> np.ndarray:
    return np.array(value.detach().cpu().numpy() if hasattr(value, "detach") else value)


def _put(owner, attribute: str, values: np.ndarray) -> None:
    """Into the array where there is one of that shape; else a new one."""
    now = getattr(owner, attribute, None)
    if hasattr(now, "detach"):
        new = now.new_tensor(values)
        now.copy_(new) if now.shape == new.shape else setattr(owner, attribute, new)
    elif isinstance(now, np.ndarray) and now.shape == values.shape:
        now[...] = values
    elif values.ndim:
        setattr(owner, attribute, owner.array_of(values) if isinstance(owner, Task) else values.copy())
    else:
        setattr(owner, attribute, type(now)(values.item()) if isinstance(now, Real) else values.item())


def pickled(envs) -> tuple:
    """What `__reduce__` returns: the arguments that made them, and their state."""
    rest = ("_started", "_seeded", "_seeds", "_np_random", "_np_random_seed")
    rest = {name: getattr(envs, name) for name in rest if name in vars(envs)}
    return rebuilt, (type(envs), envs._made, envs.task_parameters, get_state(envs), rest)


def rebuilt(kind, made: dict, parameters: dict, state: dict, rest: dict):
    envs = kind(**made)
    envs.set_task_parameters(**parameters)
    set_state(envs, state)
    for name, value in rest.items():
        setattr(envs, name, value)
    return envs
