"""Tasks in Python: subclass `Task`, then ``stiction.make_vec(MyTask, 1024)``. examples/reach.py is one.

A task sees the whole batch: its methods read arrays (N, ...) and return arrays (N, ...), NumPy or torch. Seeds, time
limits, resets and last observations are taken care of, as for the compiled tasks, and every adapter and trainer takes
such a batch. Order of a control step: `act`, ``substeps`` time steps, `reward`, `terminate`, `report`, `observe`; where
an episode ends, `reset`, then `observe` again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Real

import numpy as np
from gymnasium.spaces import Box

from .env_core import EnvCore, checked_device
from .model import Model
from .random_numbers import RESET, TASK, Draws
from .sensors import Sensors
from .simulation import Simulation
from .simulation_arrays import near
from .status import Status


class Task:
    """A task of one's own. Class attributes say what it is; methods are called on the batch.

    ``self.sim`` is the `stiction.Simulation` of all N environments, ``self.sensors`` a `stiction.Sensors` on it.
    Arrays of either are NumPy's, or tensors with ``array = "torch"``. Numbers, tuples of numbers and switches that the
    class adds are its parameters: ``make_vec(MyTask, task={"effort": 0.1})`` sets them on the instance.
    """

    #: `stiction.Model`, or path or XML of an MJCF.
    model: Model | str | os.PathLike | None = None
    #: Time steps per action, and control steps per episode (None: no limit).
    substeps: int = 1
    max_episode_steps: int | None = 1000
    #: "native" for NumPy, or "torch".
    array: str = "native"
    #: Keyframe (name or number) that an episode begins with before `reset`; None: qpos0.
    keyframe: int | str | None = None
    #: Options of `stiction.Simulation`: timestep, solver, per_env, ...
    simulation: Mapping = {}

    sim: Simulation
    sensors: Sensors
    _episode: tuple[np.ndarray, np.ndarray, np.ndarray]  # seed, episode, step, each (N,)

    # ---- to be defined

    def observe(self):
        """Observations (N, D)."""
        raise NotImplementedError(f"{type(self).__name__} has no observe()")

    def reward(self, action):
        """Rewards (N,), or a dict of terms (N,) that add up to it. ``action`` (N, A) is what was given to `act`."""
        raise NotImplementedError(f"{type(self).__name__} has no reward(action)")

    # ---- may be defined

    def setup(self) -> None:
        """Called once, when ``self.sim`` is there: sensors, indices, memory of N rows."""

    def terminate(self):
        """Whether an episode is over (N,), bool; not for time limits."""
        return np.zeros(self.num_envs, bool)

    def reset(self, envs, random: Draws) -> None:
        """Sets what an episode begins with, of environments ``envs`` (k,): ``self.sim.qpos[envs] = ...``.

        They are at the keyframe, without velocity. ``random``: numbers of these environments, ``random.uniform(-1, 1,
        shape=3)`` is (k, 3) float64.
        """

    def act(self, action) -> None:
        """Turns actions (N, A) into controls. Here: ±1 is the range of each motor, else the control itself."""
        self.sim.ctrl = self._middle + self._half * self.numpy(action)

    def report(self) -> dict:
        """Numbers (N,) by name for ``infos``."""
        return {}

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

    def random(self, envs) -> Draws:
        """Numbers of environments ``envs`` (indices) for use within an episode, such as new commands.

        They depend on the seed, the episode and the control step; ask once in a step.
        """
        seeds, episodes, steps = self._episode
        return Draws(seeds[envs], episodes[envs], steps[envs], TASK)

    @staticmethod
    def numpy(values) -> np.ndarray:
        return values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)

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
        self._middle, self._half = np.where(limited, (low + high) / 2, 0), np.where(limited, (high - low) / 2, 1)
        self.setup()


def _is_parameter(value) -> bool:
    return isinstance(value, Real) or (isinstance(value, tuple) and all(isinstance(v, Real) for v in value))


class TaskBatch:
    """What `VectorEnv` asks of a batch, in Python: the counterpart of the compiled `_core.BatchEnv`."""

    def __init__(self, task: Task, autoreset_mode: str, max_episode_steps: int):
        n = task.num_envs
        self._task, self._sim, self._mode = task, task.sim, autoreset_mode
        self.substeps = task.substeps
        limit = task.max_episode_steps if max_episode_steps == 0 else max_episode_steps
        self.max_episode_steps = -1 if limit is None else limit
        self.elapsed = np.zeros(n, np.int32)
        self._seeds = np.random.SeedSequence().generate_state(1, np.uint64) + np.arange(n, dtype=np.uint64)
        self._episodes = np.zeros(n, np.uint64)
        self._ended, self._began, self._pending = (np.zeros(n, bool) for _ in range(3))
        self.any_ended = False
        self._step_at = np.zeros(n, np.int64)
        task._episode = self._seeds, self._episodes, self._step_at
        self._try()

    def _try(self) -> None:
        """One reset and reward, to learn the names and shapes of what the task returns."""
        self._begin(np.ones(self._task.num_envs, bool))
        n, task = self._task.num_envs, self._task
        observations = task.numpy(task.observe())
        if observations.ndim != 2 or len(observations) != n:
            raise ValueError(f"{type(task).__name__}.observe() has shape {observations.shape}, expected ({n}, ...)")
        self.observations = observations.shape[1]
        self.action_space = task.action_space()
        self.actions = self.action_space.shape[0]
        told, terms = self._told(), self._terms(np.zeros((n, self.actions), np.dtype(self._sim.dtype)))
        self.report_names = [*told, *terms]
        self.reset_reports = len(told)
        self._episodes[:] = 0

    # ---- what the task says, checked

    def _observed(self) -> np.ndarray:
        values = np.array(self._task.numpy(self._task.observe()), self._sim.dtype)
        return self._of_shape("observe()", values, (self._task.num_envs, self.observations))

    def _terms(self, action: np.ndarray) -> dict[str, np.ndarray]:
        given = self._task.reward(self._as_task(action))
        if not isinstance(given, Mapping):
            given = {"total": given}
        return {f"reward_{name}": self._row(f"reward's {name!r}", values) for name, values in given.items()}

    def _told(self) -> dict[str, np.ndarray]:
        return {name: self._row(f"report's {name!r}", values) for name, values in self._task.report().items()}

    def _row(self, what: str, values) -> np.ndarray:
        values = np.asarray(self._task.numpy(values), self._sim.dtype)
        return self._of_shape(what, values, (self._task.num_envs,))

    def _of_shape(self, what: str, values: np.ndarray, expected: tuple) -> np.ndarray:
        if values.shape != expected:
            raise ValueError(f"{type(self._task).__name__}: {what} has shape {values.shape}, expected {expected}")
        return values

    def _as_task(self, action: np.ndarray):
        tensor = self._sim._arrays._tensor
        return action if tensor is None else tensor(action)

    def _named(self, *parts: dict) -> np.ndarray:
        """(names, N), in the order that was found first."""
        together = {name: row for part in parts for name, row in part.items()}
        missing = [name for name in self.report_names if name not in together]
        if missing or len(together) > len(self.report_names):
            raise ValueError(
                f"{type(self._task).__name__}: rewards and reports are {list(together)}, at first {self.report_names}"
            )
        rows = [together[name] for name in self.report_names]
        return np.stack(rows) if rows else np.zeros((0, self._task.num_envs), self._sim.dtype)

    # ---- the calls of VectorEnv

    def reset(self, seeds, seeded, mask):
        begin = np.ones(self._task.num_envs, bool) if mask is None else mask.astype(bool)
        if seeds is not None:
            new = begin if seeded is None else begin & seeded.astype(bool)
            self._seeds[new], self._episodes[new] = seeds[new], 0
        self._ended[:] = self.any_ended = False
        self._begin(begin)
        return self._observed(), self._beginning() * begin, self._sim._arrays.numpy("status").copy()

    def step(self, actions: np.ndarray):
        if self._mode == "Disabled" and self._pending.any():
            raise ValueError(
                f"environment {np.flatnonzero(self._pending)[0]} has ended: reset it, with "
                "options={'reset_mask': ...}, before the next step"
            )
        idle = self._pending.copy()
        self._task.act(self._as_task(actions))
        if idle.any():
            self._sim._arrays.numpy("ctrl")[idle] = 0
        self._sim.step(self.substeps)
        self.elapsed += ~idle
        self._step_at[:] = self.elapsed
        self._task.sensors.advance(self._task.step_dt)
        status = self._sim._arrays.numpy("status").copy()
        broken = (status & int(Status.NON_FINITE)) != 0
        terms = self._terms(actions)
        reports = self._named(self._told(), terms)
        silent = broken | idle
        reports[self.reset_reports :, silent] = 0
        reports[:, idle] = 0
        rewards = reports[self.reset_reports :].sum(axis=0, dtype=np.float64).astype(self._sim.dtype)
        terminated = np.array(self._task.numpy(self._task.terminate()), bool)
        terminated = (self._of_shape("terminate()", terminated, rewards.shape) | broken) & ~idle
        truncated = (self.elapsed >= self.max_episode_steps) & ~idle if self.max_episode_steps > 0 else idle & False
        observations = self._observed()
        over = terminated | truncated
        same = self._mode == "SameStep"
        self._ended, self._began = over, over if same else idle if self._mode == "NextStep" else idle & False
        self._pending = over & (not same)
        self.any_ended = bool(over.any())
        if self._began.any():
            if same:
                self._final = observations.copy(), reports.copy(), status.copy()
            self._begin(self._began)
            observations[self._began] = self._observed()[self._began]
            reports[:, self._began] = self._beginning()[:, self._began]
            status[self._began] = self._sim._arrays.numpy("status")[self._began]
        return observations, rewards, terminated, truncated, reports, status

    def _begin(self, mask: np.ndarray) -> None:
        """New episodes of the environments of a mask."""
        envs = np.flatnonzero(mask)
        self._sim.reset(mask, keyframe=self._task.keyframe)
        self.elapsed[envs] = self._step_at[envs] = 0
        self._pending[envs] = False
        self._task.reset(self._as_task(envs), Draws(self._seeds[envs], self._episodes[envs], 0, RESET))
        self._sim.forward()
        self._episodes[envs] += np.uint64(1)
        self._task.sensors.restart(envs)

    def _beginning(self) -> np.ndarray:
        reports = np.zeros((len(self.report_names), self._task.num_envs), self._sim.dtype)
        for row, values in enumerate(self._told().values()):
            reports[row] = values
        return reports

    def parameters(self) -> dict:
        return self._task.parameters()

    def ended(self) -> np.ndarray:
        return self._ended.copy()

    def began(self) -> np.ndarray:
        return self._began.copy()

    def final_observations(self) -> np.ndarray:
        return self._kept(0, (self._task.num_envs, self.observations), self._sim.dtype)

    def final_reports(self) -> np.ndarray:
        return self._kept(1, (len(self.report_names), self._task.num_envs), self._sim.dtype)

    def final_status(self) -> np.ndarray:
        return self._kept(2, (self._task.num_envs,), np.int32)

    def _kept(self, which: int, shape: tuple, dtype) -> np.ndarray:
        return self._final[which].copy() if hasattr(self, "_final") else np.zeros(shape, dtype)


class TaskCore(EnvCore):
    """`EnvCore` of a `Task`: simulation, batch, spaces and pictures."""

    def __init__(self, kind: type[Task], num_envs, autoreset_mode: str, max_episode_steps: int, device, options: dict):
        if checked_device(device) != "cpu":
            raise ValueError(f"device is {device!r}, but a task written in Python is on the CPU: use device='cpu'")
        for name in ("model", "array"):
            if name in options:
                raise TypeError(f"'{name}' is not an option here, but an attribute of {kind.__name__}")
        options = dict(options)
        made = self.python_task = kind()
        self.set_parameters(options.pop("task", None) or {})
        made._make(num_envs, options)
        self.simulation = made.sim
        self.task = TaskBatch(made, autoreset_mode, max_episode_steps)
        self.dtype = np.dtype(made.sim.dtype)
        self.period = made.step_dt
        self.observation_space = Box(-np.inf, np.inf, (self.task.observations,), self.dtype)
        self.action_space = self.task.action_space
        self._renderer = None

    def set_parameters(self, parameters) -> None:
        known = self.python_task.parameters()
        for name, value in parameters.items():
            if name not in known:
                raise ValueError(f"{type(self.python_task).__name__} has no parameter {name!r}{near(name, known)}")
            setattr(self.python_task, name, value)


def is_task(kind) -> bool:
    """Whether something is a subclass of `Task`."""
    return isinstance(kind, type) and issubclass(kind, Task)
