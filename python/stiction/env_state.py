"""All that later steps of a `VectorEnv` depend on, as arrays by name: `get_state`, `set_state`, pickles and copies.

simulation     qpos, qvel, ..., records; params.<name> of parameters that differ between environments
task.<name>    of a compiled task: seeds, episodes, memory
batch.<name>   of a task in Python: seeds, episodes, counts
python.<name>  of a `stiction.Task`: what its attributes remember (task_memory.py);
               sensors.<i>.<name> of its sensors
random.<name>  of ``randomize``; groups.<name> of observations with a history
"""

from __future__ import annotations

from dataclasses import fields
from numbers import Real

import numpy as np

from . import _core, task_memory
from .backend import as_numpy, is_tensor
from .simulation import SimulationState
from .task_extension import ExtendedBatch
from .task_memory import has_rows, placed_rows

_BATCH = ("_seeds", "_episodes", "_step_at", "elapsed", "_ended", "_began", "_pending")


def get_state(envs, numbers=None) -> dict:
    """Copies; the rows of the environments ``numbers``, None: of all. Arrays, but for what a task has in containers."""
    state = _arrays(envs)
    if numbers is not None:
        state = {n: values[numbers] if has_rows(values, envs.num_envs) else values for n, values in state.items()}
    if (task := _python_task(envs)) is not None:
        state |= {f"python.{name}": values for name, values in task_memory.taken(task, numbers).items()}
    return state


def _arrays(envs) -> dict[str, np.ndarray]:
    """All but what a task in Python remembers."""
    simulation = envs.simulation
    state = {field.name: getattr(given, field.name) for given in (simulation.get_state(),) for field in fields(given)}
    state |= {f"params.{name}": simulation._arrays.read(f"params.{name}") for name in simulation.per_env}
    if (compiled := _compiled(envs)) is not None:
        state |= {f"task.{name}": values for name, values in compiled.get_state().items()}
    state |= {name: np.array(as_numpy(getattr(owner, attribute))) for name, owner, attribute in _places(envs)}
    if envs._groups:
        state |= {f"groups.{name}": frames for name, frames in envs._groups.get_state(envs.num_envs).items()}
    return state


def set_state(envs, state: dict, numbers=None) -> None:
    """``numbers``: the environments that take the rows of ``state``, one each or all the same; None: all.

    ValueError for what is no state of such environments, before anything is changed.
    """
    simulation, task, there = envs.simulation, _python_task(envs), _arrays(envs)
    memory, state = _split(state) if isinstance(state, dict) else ({}, {})
    if sorted(state) != sorted(there):
        raise ValueError(f"this is no state of these environments: expected what get_state returns, {sorted(there)}")
    state = given = {name: np.asarray(values) for name, values in state.items()}
    if numbers is not None:
        rows = [name for name, values in there.items() if has_rows(values, envs.num_envs)]
        state = there | {name: placed_rows(f"state[{name!r}]", there[name], given[name], numbers) for name in rows}
        memory = {} if task is None else task_memory.placed(task, memory, numbers)
    for name, values in there.items():
        new = state[name]
        if new.shape != values.shape or new.dtype != values.dtype:
            raise ValueError(f"state[{name!r}] is {new.dtype} {new.shape}, expected {values.dtype} {values.shape}")
    _put_parameters(simulation, state)
    try:
        simulation.set_state(SimulationState(**{f.name: given[f.name] for f in fields(SimulationState)}), numbers)
    except ValueError:
        _put_parameters(simulation, there)
        raise
    if (compiled := _compiled(envs)) is not None:
        compiled.set_state({name[5:]: values for name, values in state.items() if name.startswith("task.")})
    for name, owner, attribute in _places(envs):
        _put(owner, attribute, state[name])
    if task is not None:
        task_memory.put(task, memory)
        task.sensors._tell()
    if envs._groups:
        envs._groups.set_state({name[7:]: values for name, values in state.items() if name.startswith("groups.")})


def _put_parameters(simulation, state: dict[str, np.ndarray]) -> None:
    for name in simulation.per_env:
        simulation._arrays.write(f"params.{name}", state[f"params.{name}"])


def _split(state: dict) -> tuple[dict, dict]:
    """What a task in Python remembers, by attribute, and the rest by name."""
    memory = {name[7:]: values for name, values in state.items() if name.startswith("python.")}
    return memory, {name: values for name, values in state.items() if not name.startswith("python.")}


def _python_task(envs):
    return getattr(envs._core, "python_task", None)


def _compiled(envs):
    """The compiled batch, if there is one."""
    task = envs._task
    if isinstance(task, ExtendedBatch):
        task = task._base
    return task if isinstance(task, _core.BatchEnv) else None


def _places(envs) -> list[tuple[str, object, str]]:
    """(name, whose attribute, which) of all that is kept in Python but for a task's own memory."""
    places: list[tuple[str, object, str]] = []
    task = _python_task(envs)
    if task is not None:
        for number, sensor in enumerate(task.sensors._with_memory):
            names = [name for name, value in vars(sensor).items() if _is_number(value)]
            places += [(f"sensors.{number}.{name}", sensor, name) for name in names]
        batch = [name for name in _BATCH if not (name == "elapsed" and isinstance(envs._task, ExtendedBatch))]
        places += [(f"batch.{name.lstrip('_')}", envs._task, name) for name in batch]
    if random := envs._random:
        names = ("_seeds", "_episodes", "_steps", "_late", "_past", "_now")
        places += [(f"random.{name.lstrip('_')}", random, name) for name in names]
        places += [(f"random.due_{i}", _Last(event), "value") for i, event in enumerate(random._events)]
    return places


class _Last:
    """The last entry of a tuple, an array that is changed in place, as an attribute."""

    def __init__(self, entries: tuple):
        self.value = entries[-1]


def _is_number(value) -> bool:
    return isinstance(value, (Real, np.ndarray)) or is_tensor(value)


def _put(owner, attribute: str, values: np.ndarray) -> None:
    """Into the array where there is one of that shape; else a new one."""
    now = getattr(owner, attribute, None)
    if is_tensor(now):
        new = now.new_tensor(values)
        now.copy_(new) if now.shape == new.shape else setattr(owner, attribute, new)
    elif isinstance(now, np.ndarray) and now.shape == values.shape:
        now[...] = values
    elif now is None or isinstance(now, np.ndarray):
        setattr(owner, attribute, values.copy())
    else:
        setattr(owner, attribute, type(now)(values.item()))


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
