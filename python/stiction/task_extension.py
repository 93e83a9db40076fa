"""A built-in task with rewards, observations and ends of one's own: a `stiction.Task` with ``base``.

    class Quiet(stiction.Task):
        base = "stiction/QuadrupedVelocity-v0"
        height_weight = 2.0

        def reward(self, action):
            return {"height": self.height_weight * self.sim.qpos[:, 2]}

The compiled task does what it does; after its step the extension's methods see the state that it made, and what they
return comes beside the base's: terms of the reward, of the observation, numbers of `report`, and `terminate`. `reset`
may change where an episode begins; what is reported of the beginning is the base's. Results without any of these are
the base's, bit for bit.
"""

from __future__ import annotations

import numpy as np

from .backend import chosen_backend
from .custom_task import Task, TaskBatch
from .env_core import EnvCore
from .picture import picture_options
from .random_numbers import named_stream
from .sensors import Sensors
from .signals import Signal, signals_of_terms, term_columns
from .status import Status
from .task_checks import checked_steps, term_sizes
from .task_core import TaskCore
from .task_options import merged_parameters, split_options

_STREAM = named_stream("extension")  # the base draws from others


class ExtendedCore(TaskCore):
    """`TaskCore` of a task with ``base``. ``model``, ``names``: the base's, of the class or as options."""

    def __init__(
        self, kind: type[Task], num_envs, autoreset_mode: str, max_episode_steps: int, device, backend, options: dict
    ):
        if autoreset_mode == "NextStep":
            raise ValueError(f"{kind.__name__} extends {kind.base}: autoreset_mode 'NextStep' is not supported there")
        if kind.array != "native":
            raise ValueError(f"{kind.__name__} extends {kind.base}: array is 'native' there, NumPy")
        if kind.act is not Task.act or kind.action_space is not Task.action_space:
            raise TypeError(f"{kind.__name__} extends {kind.base}, whose actions are its own: no act or action_space")
        if kind.substeps != Task.substeps:
            raise TypeError(f"{kind.__name__} extends {kind.base}, whose substeps are its own: timestep is an option")
        made = self.python_task = kind()
        if max_episode_steps == 0 and kind.max_episode_steps != Task.max_episode_steps:
            max_episode_steps = checked_steps(made)
        options, robot = dict(options), {}
        self._shown = picture_options(options)
        for name, value in (("model", kind.model), ("names", kind.names)):
            value = options.pop(name, value)
            robot |= {} if value is None else {name: value}
        task = options.pop("task", None)
        simulation, keywords = split_options(dict(kind.simulation) | options)
        own = made.parameters()
        probe = EnvCore(kind.base, 1, "Disabled", 0, "cpu", "numpy", dict(robot, num_threads=1))
        known = {**probe.task.parameters(), **own}
        probe.close()
        given = merged_parameters(task, keywords, known, kind.__name__)
        of_base = {name: value for name, value in given.items() if name not in own}
        self._base = EnvCore(
            kind.base, num_envs, "Disabled", max_episode_steps, device, "numpy", simulation | robot | {"task": of_base}
        )
        self.simulation, self.dtype, self.period = self._base.simulation, self._base.dtype, self._base.period
        self.sites = self._base.sites
        super().set_parameters({name: value for name, value in given.items() if name in own})
        made.sim, made.sensors = self.simulation, Sensors(self.simulation)
        made.substeps = self._base.task.substeps
        made.setup()
        self.backend = chosen_backend(backend, self.simulation.device, self.simulation.dtype, in_tensors=False)
        self.task = self.batch = ExtendedBatch(made, self._base.task, autoreset_mode, self.backend)
        size = self.task.observations
        self.observation_space = type(self._base.observation_space)(-np.inf, np.inf, (size,), self.dtype)
        self.action_space = self._base.action_space
        self._picture = None

    @property
    def observation_signals(self) -> tuple[Signal, ...]:
        return (*self._base.observation_signals, *self.task.observation_signals)

    @property
    def action_signals(self) -> tuple[Signal, ...]:
        return self._base.action_signals

    def set_parameters(self, parameters) -> None:
        own = self.python_task.parameters()
        self._base.set_parameters({name: value for name, value in parameters.items() if name not in own})
        super().set_parameters({name: value for name, value in parameters.items() if name in own})


class ExtendedBatch(TaskBatch):
    """`TaskBatch` on a compiled batch with autoreset_mode "Disabled": resets are decided here, and asked of it."""

    def __init__(self, task: Task, base, autoreset_mode: str, answers):
        self._prepare(task, autoreset_mode, answers)
        n, kind, self._base = task.num_envs, type(task), base
        self.substeps, self.max_episode_steps, self.actions = base.substeps, base.max_episode_steps, base.actions
        self._observes, self._rewards = kind.observe is not Task.observe, kind.reward is not Task.reward
        base.reset(None, None, None)
        self.reset_reports = base.reset_reports
        self._sizes, self.observation_signals = None, ()
        if self._observes:
            given = task.observe()
            if not isinstance(given, dict):
                raise TypeError(
                    f"{kind.__name__}.observe() returned a {type(given).__name__}, expected a dict of terms"
                )
            self._sizes = term_sizes(task, given)
            self.observation_signals = signals_of_terms(self._sizes, task.units, task.elements, kind.__name__)
            theirs = term_columns(Signal(**told) for told in base.observation_signals())
            if clash := [name for name in given if name in theirs]:
                raise ValueError(f"{kind.__name__} observes {clash[0]!r}, as {task.base} does: another name")
        self.observations = base.observations + len(self.observation_signals)
        self._own_names = [*self._told(), *self._own_terms(self._backend.zeros(n, self.actions))]
        if clash := [name for name in self._own_names if name in base.report_names]:
            raise ValueError(f"{kind.__name__} tells {clash[0]!r}, as {task.base} does: another name")
        self.report_names = [*base.report_names, *self._own_names]
        self._final = (
            self._backend.zeros(n, self.observations),
            self._backend.zeros(len(self.report_names), n),
            self._status(),
        )

    @property
    def elapsed(self) -> np.ndarray:
        return self._base.elapsed

    def parameters(self) -> dict:
        return self._base.parameters() | self._task.parameters()

    def _own_terms(self, action) -> dict:
        if not self._rewards:
            return {}
        given = self._task.reward(action)
        if not isinstance(given, dict):
            kind, told = type(self._task).__name__, type(given).__name__
            raise TypeError(f"{kind}.reward() returned a {told}, expected a dict of terms")
        return {f"reward_{name}": self._row(f"reward's {name!r}", values) for name, values in given.items()}

    def _beside(self, observations, envs=None):
        """The base's observations (N, D) and the extension's. ``envs``: of which they mean something; None: of all."""
        if not self._observes:
            return observations
        given = self._task.observe()
        if (sizes := term_sizes(self._task, given)) != self._sizes:
            raise ValueError(f"{type(self._task).__name__}.observe() returned {sizes}, at first {self._sizes}")
        together = np.concatenate([observations, self._joined(given)], axis=1)
        self._require_observed(together, envs)
        return together

    def _observed_names(self) -> tuple[str, ...]:
        return (*(told["name"] for told in self._base.observation_signals()), *super()._observed_names())

    def reset(self, seeds, seeded, mask):
        n = self._task.num_envs
        begin = np.ones(n, bool) if mask is None else mask.astype(bool)
        if seeds is not None:
            new = begin if seeded is None else begin & seeded.astype(bool)
            self._seeds[new], self._episodes[new] = seeds[new], 0
        self._ended[:] = self.any_ended = False
        self._began = begin
        results = self._base.reset(seeds, seeded, mask)
        observations, reports, status = self._started(begin, results)
        return self._beside(observations), self._with_room(reports), status

    def _started(self, begin: np.ndarray, results):
        """What the base's reset of a mask told, once the extension has had its say."""
        task, envs = self._task, np.flatnonzero(begin)
        observations, reports, status = results
        self._pending[envs] = False
        self._step_at[envs] = 0
        if type(task).reset is not Task.reset:
            task.reset(envs, task._draws(envs, _STREAM))
            observations[envs] = self._base.begun_observations()[envs]
        self._episodes[envs] += np.uint64(1)
        task.sensors.restart(envs)
        return observations, reports, status

    def begun_observations(self):
        shown = self._base.begun_observations()
        self._task.sensors.restart(np.flatnonzero(self._began))
        return self._beside(shown, np.flatnonzero(self._began))

    def _with_room(self, reports):
        own = self._backend.zeros(len(self._own_names), self._task.num_envs)
        return np.concatenate([reports, own], axis=0)

    def step(self, actions):
        task = self._task
        if self._pending.any():
            raise ValueError(
                f"environment {np.flatnonzero(self._pending)[0]} has ended: reset it, with "
                "options={'reset_mask': ...}, before the next step"
            )
        observations, rewards, terminated, truncated, reports, status = self._base.step(actions)
        self._step_at[:] = self._base.elapsed
        task.sensors.advance(task.step_dt)
        broken = (status & int(Status.NON_FINITE)) != 0
        reports = self._with_room(reports)
        base = len(self._base.report_names)
        own = {**self._told(), **self._own_terms(actions)}
        if list(own) != self._own_names:
            raise ValueError(f"{type(task).__name__}: rewards and reports are {list(own)}, at first {self._own_names}")
        for row, (name, values) in enumerate(own.items(), base):
            reports[row] = np.where(broken & name.startswith("reward_"), 0, values)
        self._require_finite(reports, broken)
        if self._rewards:
            rows = [row for row, name in enumerate(self.report_names) if row >= base and name.startswith("reward_")]
            rewards = rewards + self._backend.total(reports[rows])
        if type(task).terminate is not Task.terminate:
            terminated = terminated | self._over()
        observations = self._beside(observations)
        over = terminated | truncated
        same = self._mode == "SameStep"
        self._ended, self._began, self._pending = over, over if same else over & False, over & (not same)
        self.any_ended = bool(over.any())
        if self._began.any():
            self._final = tuple(self._backend.copy(values) for values in (observations, reports, status))
            began = np.flatnonzero(over)
            shown, told, fresh = self._started(over, self._base.reset(None, None, over.view(np.uint8)))
            observations[began] = self._beside(shown, began)[began]
            reports[:, began] = self._with_room(told)[:, began]
            status[began] = fresh[began]
        return observations, rewards, terminated, truncated, reports, status
