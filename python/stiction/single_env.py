"""One environment as a `gymnasium.Env`: what ``gymnasium.make("stiction/Ant-v0")`` makes. To train, use `make_vec`."""

from __future__ import annotations

import gymnasium
import numpy as np

from .custom_task import Task, is_task
from .env_checks import require_options
from .env_core import EnvCore, can_render, checked_render_mode
from .env_state import pickled
from .registration import plain_id
from .signals import names_of
from .task_core import task_core

#: Options of `make_vec` that one environment has not.
_OF_BATCHES = ("autoreset_mode", "backend", "observations", "randomize")


class SingleEnv(gymnasium.Env):
    """Moves exactly as environment 0 of a vector environment of the same seed. A wrapper limits its time."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}

    def __init__(
        self,
        *,
        env_id: str | type[Task] = "stiction/Ant-v0",
        device="auto",
        render_mode: str | None = None,
        **simulation,
    ):
        if asked := [name for name in _OF_BATCHES if name in simulation]:
            raise TypeError(f"{asked[0]!r} is for batches: stiction.make_vec({env_id!r}, 1, {asked[0]}=...)")
        env_id, self.render_mode = plain_id(env_id), checked_render_mode(render_mode)
        simulation.setdefault("num_threads", 1)
        core = task_core if is_task(env_id) else EnvCore
        self._made = {"env_id": env_id, "device": device, "render_mode": render_mode, **simulation}
        self._core = core(env_id, 1, "Disabled", -1, device, "numpy", simulation)
        self._core.require_camera()
        self._task, self._groups, self._random, self.num_envs = self._core.task, None, None, 1
        self._names = self._core.task.report_names
        self.metadata = self._core.metadata()
        self.observation_space, self.action_space = self._core.observation_space, self._core.action_space
        self._seeded = False
        self._reported: dict = {}

    @property
    def simulation(self):
        """The `stiction.Simulation` underneath, of one environment."""
        return self._core.simulation

    @property
    def step_dt(self) -> float:
        """Seconds between two actions."""
        return self._core.period

    @property
    def dt(self) -> float:
        """`step_dt`, by the name that Gymnasium's MuJoCo environments have for it."""
        return self.step_dt

    @property
    def observation_signals(self):
        """What each number of an observation is: `stiction.signals.Signal`s in order."""
        return self._core.observation_signals

    @property
    def action_signals(self):
        """What each number of an action is, with the present parameters of the task."""
        return self._core.action_signals

    @property
    def observation_names(self) -> tuple[str, ...]:
        """Their names, such as "joint_velocity/knee"."""
        return names_of(self.observation_signals)

    @property
    def action_names(self) -> tuple[str, ...]:
        return names_of(self.action_signals)

    @property
    def task_parameters(self) -> dict:
        """The task's weights (numbers), ranges (low, high) and switches (bool) by name: a copy."""
        return self._core.task.parameters()

    def set_task_parameters(self, **parameters) -> None:
        """Changes some of them, from the next call on."""
        self._core.set_parameters(parameters)

    # Gymnasium's way to parameters through wrappers and batches: `set_attr` of its own vector environments.

    def has_wrapper_attr(self, name: str) -> bool:
        return name in self.task_parameters or super().has_wrapper_attr(name)

    def get_wrapper_attr(self, name: str):
        parameters = self.task_parameters
        return parameters[name] if name in parameters else super().get_wrapper_attr(name)

    def set_wrapper_attr(self, name: str, value, *, force: bool = True) -> bool:
        if name not in self.task_parameters:
            return super().set_wrapper_attr(name, value, force=force)
        self.set_task_parameters(**{name: value})
        return True

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        require_options(options, {})
        super().reset(seed=seed)
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**63))
        self._seeded = True
        seeds = None if seed is None else np.array([seed], np.uint64)
        observations, reports, status = self._core.task.reset(seeds, None, None)
        return observations[0], self._info(reports[: self._core.task.reset_reports], status)

    def step(self, action):
        given = np.asarray(action)
        if given.shape != self.action_space.shape:
            raise ValueError(f"action has shape {given.shape}, expected {self.action_space.shape}")
        batch = np.ascontiguousarray(given[None], self._core.dtype)
        observations, rewards, terminated, truncated, reports, status = self._core.task.step(batch)
        info = self._info(reports, status)
        return observations[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info

    def _info(self, reports: np.ndarray, status: np.ndarray) -> dict:
        info = {name: float(row[0]) for name, row in zip(self._names, reports, strict=False)}
        self._reported = dict(info)
        info["status"] = int(status[0])
        return info

    def __reduce__(self):
        return pickled(self)

    def render(self) -> np.ndarray | None:
        return self._core.frame(0, self._reported) if can_render(self.render_mode) else None

    def close(self) -> None:
        self._core.close()
