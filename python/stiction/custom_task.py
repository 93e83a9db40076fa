"""Tasks in Python: subclass `Task`, then ``stiction.make_vec(MyTask, 1024)``. examples/reach.py is one.

A task sees the whole batch: its methods read arrays (N, ...) and return arrays (N, ...), NumPy or torch. Seeds, time
limits, resets and last observations are taken care of, as for the compiled tasks, and every adapter and trainer takes
such a batch. Order of a control step: `act`, ``substeps`` time steps, `reward`, `terminate`, `report`, `observe`; where
an episode ends, `reset`, then `observe` again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from numbers import Real

import numpy as np
from gymnasium.spaces import Box

from .backend import as_array, as_numpy
from .model import Model
from .picture import Marker
from .random_numbers import RESET, TASK, Draws
from .sensors import Sensors
from .signals import Signal, names_of, signals_of_terms
from .simulation import Simulation
from .status import Status
from .task_checks import checked_steps, checked_substeps, require_array, term_sizes, told


class Task:
    """A task of one's own. Class attributes say what it is; methods are called on the batch.

    ``self.sim`` is the `stiction.Simulation` of all N environments, ``self.sensors`` a `stiction.Sensors` on it.
    Arrays of either are NumPy's, or tensors with ``array = "torch"``. Numbers, tuples of numbers and switches that the
    class adds are its parameters: ``make_vec(MyTask, task={"effort": 0.1})`` sets them on the instance.
    """

    #: `stiction.Model`, or path or XML of an MJCF.
    model: Model | str | os.PathLike | None = None
    #: Id of a built-in task that this one extends (task_extension.py), and for its robot `make_vec`'s names.
    base: str | None = None
    names: Mapping | None = None
    #: Time steps per action, and control steps per episode (None: no limit).
    substeps: int = 1
    max_episode_steps: int | None = 1000
    #: "native" for NumPy, or "torch".
    array: str = "native"
    #: Keyframe (name or number) that an episode begins with before `reset`; None: qpos0.
    keyframe: int | str | None = None
    #: Options of `stiction.Simulation`: timestep, solver, per_env, ...
    simulation: Mapping = {}
    #: Units of the observation's terms, and the names of their numbers; of actions too. `setup` may set them.
    units: Mapping[str, str] = {}
    elements: Mapping[str, Sequence[str]] = {}
    #: Groups of observations, as `make_vec` takes them; empty: one array of all.
    observations: Mapping = {}

    sim: Simulation
    sensors: Sensors
    _episode: tuple[np.ndarray, np.ndarray, np.ndarray]  # seed, episode, step, each (N,)

    # ---- to be defined

    def observe(self):
        """Observations (N, D), or a dict of terms (N, k) or (N,) by name, which are put side by side.

        Asked for again, of all environments, where some begin a new episode in a step: it must remember nothing. What
        counts steps belongs into `reward`, the last k observations are ``history=k`` of a `stiction.Group`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no observe()")

    def reward(self, action):
        """Rewards (N,), or a dict of terms (N,) that add up to it. ``action`` (N, A) is what was given to `act`.

        Asked for once a step, and once, with actions of 0, when the environments are made: its terms are learned then.
        """
        raise NotImplementedError(f"{type(self).__name__} has no reward(action)")

    # ---- may be defined

    def setup(self) -> None:
        """Called once, when ``self.sim`` is there: sensors, indices, memory of N rows."""

    def terminate(self):
        """Whether an episode is over (N,), bool; not for time limits."""
        return self.array_of(np.zeros(self.num_envs, bool))

    def reset(self, envs, random: Draws) -> None:
        """Sets what an episode begins with, of environments ``envs`` (k,): ``self.sim.qpos[envs] = ...``.

        They are at the keyframe, without velocity. ``random``: numbers of these environments, ``random.uniform(-1, 1,
        shape=3)`` is (k, 3): float64, or a tensor of the simulation's dtype.
        """

    def act(self, action) -> None:
        """Turns actions (N, A) into controls. Here: ±1 is the range of each motor, else the control itself."""
        self.sim.ctrl[:] = self._middle + self._half * self.sim._backend.asarray(action)

    def report(self) -> dict:
        """Numbers (N,) by name for ``infos``."""
        return {}

    def markers(self, env: int) -> list:
        """`stiction.Marker`s to draw in pictures of an environment: goals, commands."""
        return []

    def action_space(self) -> Box:
        """Of one environment. Here: ±1 for each control."""
        return Box(-1.0, 1.0, (self.sim.model.nu,), np.dtype(self.sim.dtype))

    # ---- at hand

    @property
    def num_envs(self) -> int:
        return self.sim.num_envs

    @property
    def step_dt(self) -> float:
        """Seconds between two actions."""
        return self.substeps * self.sim.timestep

    def action_signals(self) -> tuple[Signal, ...]:
        """What each number of an action is. Here: the controls, where `act` is this class's."""
        model, count = self.sim.model, self.action_space().shape[0]
        if type(self).act is not Task.act or count != model.nu:
            return tuple(Signal(f"action/{number}") for number in range(count))
        names = [name or str(number) for number, name in enumerate(model.actuator_names)]
        middle, half = self.numpy(self._middle).tolist(), self.numpy(self._half).tolist()
        return tuple(Signal(f"control/{n}", scale=h, offset=m) for n, m, h in zip(names, middle, half, strict=True))

    def random(self, envs) -> Draws:
        """Numbers of environments ``envs`` (indices) for use within an episode, such as new commands.

        They depend on the seed, the episode and the control step; ask once in a step.
        """
        return self._draws(self.numpy(envs), TASK)

    @staticmethod
    def numpy(values) -> np.ndarray:
        return as_numpy(values)

    def parameters(self) -> dict:
        """The class's numbers, tuples of numbers and switches by name, as they are now."""
        names = {name for kind in type(self).__mro__ for name in vars(kind) if issubclass(kind, Task)} - set(vars(Task))
        found = {name: getattr(self, name) for name in sorted(names) if not name.startswith("_")}
        return {name: value for name, value in found.items() if _is_parameter(value)}

    def _make(self, num_envs: int, options: dict) -> None:
        model = self.model
        if model is None:
            raise TypeError(f"{type(self).__name__} has no model: give the class one, a stiction.Model or an MJCF")
        if not isinstance(model, Model):
            model = Model.from_mjcf(model)
        merged = dict(self.simulation) | options
        per_env = {"per_env": (*self.simulation.get("per_env", ()), *options.get("per_env", ()))}
        self.sim = Simulation(model, num_envs, array=self.array, **(merged | per_env))
        self.sensors = Sensors(self.sim)
        limited = np.asarray(model.actuator_ctrllimited).astype(bool)
        low, high = np.asarray(model.actuator_ctrlrange).T
        self._middle = self.array_of(np.where(limited, (low + high) / 2, 0))
        self._half = self.array_of(np.where(limited, (high - low) / 2, 1))
        self.setup()

    def array_of(self, values):
        """A copy of NumPy's numbers as what the task computes with: an array, or a tensor where the simulation is."""
        return self.sim._backend.array(values)

    def _draws(self, envs: np.ndarray, stream: int) -> Draws:
        words = (self.array_of(numbers[envs].view(np.int64)) for numbers in self._episode)
        return Draws(*words, stream, dtype=self.sim.dtype if self.sim._backend.tensors else "float64")


def _is_parameter(value) -> bool:
    return isinstance(value, Real) or (isinstance(value, tuple) and all(isinstance(v, Real) for v in value))


def markers_of(task: Task, env: int) -> list:
    """What a task draws, checked."""
    markers = list(task.markers(env))
    for marker in markers:
        if not isinstance(marker, Marker):
            raise TypeError(
                f"{type(task).__name__}.markers() has a {type(marker).__name__}, expected stiction.Marker((x, y, z))"
            )
    return markers


class TaskBatch:
    """What `VectorEnv` asks of a batch, in Python: the counterpart of the compiled `_core.BatchEnv`.

    Numbers are the task's arrays or tensors, results those of the backend ``answers``. Who has ended is known on the
    host, so a step waits for a GPU.
    """

    def __init__(self, task: Task, autoreset_mode: str, max_episode_steps: int, answers):
        self._prepare(task, autoreset_mode, answers)
        self.substeps = checked_substeps(task)
        self.max_episode_steps = checked_steps(task) if max_episode_steps == 0 else max_episode_steps
        self.elapsed = np.zeros(task.num_envs, np.int32)
        self._try()

    def _prepare(self, task: Task, autoreset_mode: str, answers) -> None:
        n = task.num_envs
        self._task, self._sim, self._mode = task, task.sim, autoreset_mode
        self._backend, self._answers = task.sim._backend, answers
        self._seeds = np.random.SeedSequence().generate_state(1, np.uint64) + np.arange(n, dtype=np.uint64)
        self._episodes, self._step_at = np.zeros(n, np.uint64), np.zeros(n, np.int64)
        task._episode = self._seeds, self._episodes, self._step_at
        self._ended, self._began, self._pending = (np.zeros(n, bool) for _ in range(3))
        self.any_ended = False

    def _try(self) -> None:
        """One reset and reward, to learn the names and shapes of what the task returns."""
        self._begin(np.ones(self._task.num_envs, bool))
        n, task = self._task.num_envs, self._task
        given = task.observe()
        sizes = term_sizes(task, given) if isinstance(given, Mapping) else None
        observations = self._joined(given) if sizes is not None else given
        require_array(
            f"{type(task).__name__}.observe() returned", observations, f"an array ({n}, D), or a dict of such arrays"
        )
        if observations.ndim != 2 or len(observations) != n:
            raise ValueError(
                f"{type(task).__name__}.observe() has shape {tuple(observations.shape)}, expected ({n}, D)"
            )
        self.observations = observations.shape[1]
        self._sizes = sizes
        self.observation_signals = signals_of_terms(
            {"observation": self.observations} if sizes is None else sizes,
            task.units,
            task.elements,
            type(task).__name__,
        )
        self.action_space = task.action_space() if callable(task.action_space) else None
        if not isinstance(self.action_space, Box) or len(self.action_space.shape) != 1:
            raise TypeError(
                f"{type(task).__name__}.action_space() is {self.action_space or task.action_space}, expected a method "
                "that returns a gymnasium.spaces.Box (A,); choose among discrete actions in act(action), by thresholds"
            )
        self.actions = self.action_space.shape[0]
        told, terms = self._told(), self._terms(self._backend.zeros(n, self.actions))
        self.report_names = [*told, *terms]
        self.reset_reports = len(told)
        self._final = (
            self._backend.zeros(n, self.observations),
            self._backend.zeros(len(self.report_names), n),
            self._status(),
        )
        self._episodes[:] = 0

    def _status(self):
        return self._backend.copy(self._sim._arrays.view("status"))

    def _results(self, *values) -> tuple:
        return tuple(map(self._answers.asarray, values))

    # ---- what the task says, checked

    def _observed(self):
        given = self._task.observe()
        if isinstance(given, Mapping) != (self._sizes is not None) or (
            self._sizes is not None and term_sizes(self._task, given) != self._sizes
        ):
            told = term_sizes(self._task, given) if isinstance(given, Mapping) else "an array"
            raise ValueError(
                f"{type(self._task).__name__}.observe() returned {told}, at first {self._sizes or 'an array'}"
            )
        observations = given if self._sizes is None else self._joined(given)
        observations = self._of_shape(
            "observe()", self._backend.real(observations), (self._task.num_envs, self.observations)
        )
        self._require_observed(observations)
        return observations

    def _require_observed(self, observations, envs=None) -> None:
        """That they are finite, of environments that are themselves; of those alone whose numbers ``envs`` has."""
        found = ~self._backend.isfinite(observations)
        if not found.any():
            return
        found = self._task.numpy(found)
        found[(self._task.numpy(self._status()) & int(Status.NON_FINITE)) != 0] = False
        if envs is not None:
            found[np.setdiff1d(np.arange(len(found)), envs)] = False
        for env, place in np.argwhere(found)[:1]:
            written = [
                a for a in ("qpos", "qvel") if not np.isfinite(self._task.numpy(getattr(self._sim, a)[env])).all()
            ]
            raise ValueError(
                f"{type(self._task).__name__}.observe() told {float(observations[env, place])} for "
                f"{self._observed_names()[place]!r} of environment {env}, whose "
                + (f"{written[0]} is not finite since the task wrote it" if written else "state is finite")
            )

    def _observed_names(self) -> tuple[str, ...]:
        return names_of(self.observation_signals)

    def _joined(self, terms: Mapping):
        """(N, D) of terms side by side."""
        parts = [self._backend.real(values) for values in terms.values()]
        parts = [part[:, None] if part.ndim == 1 else part for part in parts]
        return self._backend.concatenate(parts)

    def _terms(self, action) -> dict:
        given = self._task.reward(action)
        if not isinstance(given, Mapping):
            given = {"total": given}
        return {f"reward_{name}": self._row(f"reward's {name!r}", values) for name, values in given.items()}

    def _told(self) -> dict:
        return {name: self._row(f"report's {name!r}", values) for name, values in told(self._task).items()}

    def _over(self):
        """(N,) bool: whose episode the task ends."""
        given, task = self._task.terminate(), self._task
        if not hasattr(given, "shape") or "float" in str(given.dtype):
            kind = f"an array of {given.dtype}" if hasattr(given, "shape") else f"a {type(given).__name__}"
            expected = f"an array ({task.num_envs},) of bool"
            raise TypeError(f"{type(task).__name__}.terminate() returned {kind}, expected {expected}")
        over = self._of_shape("terminate()", given, (task.num_envs,))
        return self._backend.asarray(over) != 0

    def _row(self, what: str, values):
        if isinstance(values, (list, tuple)):
            values = as_array(f"{type(self._task).__name__}: {what}", values)
        if not isinstance(values, Real):
            require_array(f"{type(self._task).__name__}: {what} is", values, f"an array ({self._task.num_envs},)")
        return self._of_shape(what, self._backend.real(values), (self._task.num_envs,))

    def _of_shape(self, what: str, values, expected: tuple):
        if tuple(values.shape) != expected:
            raise ValueError(
                f"{type(self._task).__name__}: {what} has shape {tuple(values.shape)}, expected {expected}"
            )
        return values

    def _named(self, *parts: dict):
        """(names, N), in the order that was found first."""
        together = {name: row for part in parts for name, row in part.items()}
        missing = [name for name in self.report_names if name not in together]
        if missing or len(together) > len(self.report_names):
            raise ValueError(
                f"{type(self._task).__name__}: rewards and reports are {list(together)}, at first {self.report_names}"
            )
        reports = self._backend.zeros(len(self.report_names), self._task.num_envs)
        for row, name in enumerate(self.report_names):
            reports[row] = together[name]
        return reports

    # ---- the calls of VectorEnv

    def reset(self, seeds, seeded, mask):
        """Seeds and masks are NumPy's; (observations, reports, status)."""
        begin = np.ones(self._task.num_envs, bool) if mask is None else mask.astype(bool)
        if seeds is not None:
            new = begin if seeded is None else begin & seeded.astype(bool)
            self._seeds[new], self._episodes[new] = seeds[new], 0
        self._ended[:] = self.any_ended = False
        self._began = begin
        self._begin(begin)
        return self._results(self._observed(), self._beginning() * self._task.array_of(begin), self._status())

    def step(self, actions):
        """(observations, rewards, terminated, truncated, reports, status)."""
        if self._mode == "Disabled" and self._pending.any():
            raise ValueError(
                f"environment {np.flatnonzero(self._pending)[0]} has ended: reset it, with "
                "options={'reset_mask': ...}, before the next step"
            )
        task, idle = self._task, self._pending.copy()
        actions = self._backend.real(actions)
        task.act(actions)
        if idle.any():
            self._sim.ctrl[task.array_of(idle)] = 0
        self._sim.step(self.substeps)
        self.elapsed += ~idle
        self._step_at[:] = self.elapsed
        task.sensors.advance(task.step_dt)
        status = self._status()
        broken = (status & int(Status.NON_FINITE)) != 0
        reports = self._named(self._told(), self._terms(actions))
        reports[self.reset_reports :, broken] = 0
        if idle.any():
            reports[:, task.array_of(idle)] = 0
        self._require_finite(reports, broken)
        rewards = self._backend.total(reports[self.reset_reports :])
        terminated = task.numpy(self._over() | broken) & ~idle
        truncated = (self.elapsed >= self.max_episode_steps) & ~idle if self.max_episode_steps > 0 else idle & False
        observations = self._observed()
        over = terminated | truncated
        same = self._mode == "SameStep"
        self._ended, self._began = over, over if same else idle if self._mode == "NextStep" else idle & False
        self._pending = over & (not same)
        self.any_ended = bool(over.any())
        if self._began.any():
            if same:
                self._final = tuple(self._backend.copy(values) for values in (observations, reports, status))
            self._begin(self._began)
            began = task.array_of(np.flatnonzero(self._began))
            observations[began] = self._observed()[began]
            reports[:, began] = self._beginning()[:, began]
            status[began] = self._status()[began]
        return self._results(observations, rewards, terminated, truncated, reports, status)

    def _require_finite(self, reports, broken) -> None:
        """Of environments that are themselves finite."""
        rows = self._task.numpy(reports[self.reset_reports :])
        if np.isfinite(rows).all():
            return
        found = np.argwhere(~np.isfinite(rows) & ~self._task.numpy(broken))
        if not len(found):
            return
        row, env = found[0]
        name = self.report_names[self.reset_reports + row]
        raise ValueError(
            f"{type(self._task).__name__}.reward() told {rows[row, env]} for {name!r} of environment {env} in its step "
            f"{self.elapsed[env]}, whose state is finite"
        )

    def _begin(self, mask: np.ndarray) -> None:
        """New episodes of the environments of a mask."""
        envs = np.flatnonzero(mask)
        self._sim.reset(mask, keyframe=self._task.keyframe)
        self.elapsed[envs] = self._step_at[envs] = 0
        self._pending[envs] = False
        chosen = self._task.array_of(envs)
        self._task.reset(chosen, self._task._draws(envs, RESET))
        self._sim._update_poses()
        self._episodes[envs] += np.uint64(1)
        self._task.sensors.restart(chosen)

    def _beginning(self):
        reports = self._backend.zeros(len(self.report_names), self._task.num_envs)
        for row, values in enumerate(self._told().values()):
            reports[row] = values
        return reports

    def parameters(self) -> dict:
        return self._task.parameters()

    def ended(self):
        return self._answers.array(self._ended)

    def began(self):
        return self._answers.array(self._began)

    def begun_observations(self):
        """Of who has begun an episode in the last call, anew: something has been changed since."""
        if not self._began.any():
            return self._answers.zeros(self._task.num_envs, self.observations)
        self._sim._update_poses()
        self._task.sensors.restart(self._task.array_of(np.flatnonzero(self._began)))
        return self._answers.asarray(self._observed())

    def final_observations(self):
        return self._answers.asarray(self._final[0])

    def final_reports(self):
        return self._answers.asarray(self._final[1])

    def final_status(self):
        return self._answers.asarray(self._final[2])


def is_task(kind) -> bool:
    """Whether something is a subclass of `Task`."""
    return isinstance(kind, type) and issubclass(kind, Task)
