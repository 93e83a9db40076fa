"""What `VectorEnv` and `SingleEnv` ask of a task in Python: simulation, batch, spaces, signals and pictures."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from gymnasium.spaces import Box

from .backend import chosen_backend
from .custom_task import Task, TaskBatch, markers_of
from .env_core import EnvCore, checked_device
from .picture import picture_options
from .signals import Signal
from .simulation_arrays import near
from .task_checks import checked_parameter, require_well_spelt
from .task_options import merged_parameters, split_options


class TaskCore(EnvCore):
    """`EnvCore` of a `Task`: simulation, batch, spaces and pictures."""

    sites = frozenset()

    def __init__(
        self, kind: type[Task], num_envs, autoreset_mode: str, max_episode_steps: int, device, backend, options: dict
    ):
        for name in ("model", "array"):
            if name in options:
                raise TypeError(f"'{name}' is not an option here, but an attribute of {kind.__name__}")
        options = dict(options)
        self._shown = picture_options(options)
        made = self.python_task = kind()
        task = options.pop("task", None)
        options, keywords = split_options(options)
        self.set_parameters(merged_parameters(task, keywords, made.parameters(), kind.__name__))
        made._make(num_envs, options | {"device": checked_device(device)})
        self.simulation = made.sim
        self.backend = chosen_backend(backend, made.sim.device, made.sim.dtype, made.sim._backend.tensors)
        self.task = self.batch = TaskBatch(made, autoreset_mode, max_episode_steps, self.backend)
        self.dtype = np.dtype(made.sim.dtype)
        self.period = made.step_dt
        self.observation_space = Box(-np.inf, np.inf, (self.task.observations,), self.dtype)
        self.action_space = self.task.action_space
        self._picture = None

    def markers(self, env: int) -> list:
        return markers_of(self.python_task, env)

    @property
    def groups(self) -> Mapping:
        """The task's own groups of observations; empty without."""
        return self.python_task.observations

    @property
    def observation_signals(self) -> tuple[Signal, ...]:
        return self.task.observation_signals

    @property
    def action_signals(self) -> tuple[Signal, ...]:
        signals = tuple(self.python_task.action_signals())
        if len(signals) != self.task.actions:
            raise ValueError(
                f"{type(self.python_task).__name__}.action_signals() tells of {len(signals)} numbers, and there are "
                f"{self.task.actions}"
            )
        return signals

    def set_parameters(self, parameters) -> None:
        known, of = self.python_task.parameters(), type(self.python_task).__name__
        checked = {}
        for name, value in parameters.items():
            if name not in known:
                raise ValueError(f"{name!r} is no parameter of {of}{near(name, known)}")
            checked[name] = checked_parameter(name, value, known[name], of)
        for name, value in checked.items():
            setattr(self.python_task, name, value)


def task_core(kind: type[Task], *arguments) -> TaskCore:
    """The core of a task by itself, or of one that extends a built-in one."""
    require_well_spelt(kind, Task)
    if kind.base is None:
        return TaskCore(kind, *arguments)
    from .task_extension import ExtendedCore

    return ExtendedCore(kind, *arguments)
