"""What the vector and the single environment share: simulation, compiled task, spaces, and pictures."""

from __future__ import annotations

import numpy as np
from gymnasium import logger
from gymnasium.spaces import Box

from . import _core
from .backend import chosen_backend
from .picture import Picture, camera_number, picture_options, task_markers
from .registration import environment
from .signals import Signal
from .simulation import Simulation
from .task_options import merged_parameters, split_options, task_model, task_parameters
from .tensor_batch import TensorBatch


class EnvCore:
    """``task`` (a `_core.BatchEnv`) on ``simulation``, and what Gymnasium asks about them.

    ``batch``: whom `VectorEnv` asks, in arrays of ``backend``; the task itself, or a `TensorBatch` of it.
    """

    def __init__(
        self, env_id, num_envs, autoreset_mode: str, max_episode_steps: int, device, backend, simulation: dict
    ):
        known = environment(env_id)
        simulation = dict(simulation)
        self._env_id, self._shown = env_id, picture_options(simulation)
        task = simulation.pop("task", None)
        if "array" in simulation:
            raise TypeError(f"'array' is not an option of {env_id}; see stiction.Simulation for those that are")
        if "names" in simulation and known.names is None:
            raise TypeError(f"'names' is not an option of {env_id}, which knows its model's parts")
        model, names = task_model(known, simulation.pop("model", None), simulation.pop("names", None))
        if known.timestep is not None:
            simulation.setdefault("timestep", known.timestep)
        simulation.setdefault("integrator", known.integrator)
        simulation, keywords = split_options(simulation)
        #: Sites that the task knows by name, and takes from the model.
        self.sites = {name for of in names.values() for name in of if name in model.site_names}
        self.simulation = Simulation(model, num_envs, device=checked_device(device), **simulation)
        self.task = _core.BatchEnv(
            known.task,
            self.simulation._world,
            autoreset_mode=autoreset_mode,
            max_episode_steps=max_episode_steps,
            names=names,
        )
        self.backend = chosen_backend(backend, self.simulation.device, self.simulation.dtype)
        self.batch = TensorBatch(self.task, self.simulation, self.backend) if self.backend.tensors else self.task
        self.set_parameters(merged_parameters(task, keywords, self.task.parameters(), env_id))
        self.dtype = np.dtype(self.simulation.dtype)
        self.period = self.task.substeps * self.simulation.timestep
        limit = self.task.action_limit
        self.observation_space = Box(-np.inf, np.inf, (self.task.observations,), self.dtype)
        self.action_space = Box(-limit, limit, (self.task.actions,), self.dtype)
        self._picture = None

    @property
    def observation_signals(self) -> tuple[Signal, ...]:
        return tuple(Signal(**told) for told in self.task.observation_signals())

    @property
    def action_signals(self) -> tuple[Signal, ...]:
        return tuple(Signal(**told) for told in self.task.action_signals())

    def set_parameters(self, parameters) -> None:
        for name, values in task_parameters(parameters, self.task.parameters(), self._env_id).items():
            self.task.set_parameter(name, values)

    def metadata(self) -> dict:
        return {"render_modes": ["rgb_array"], "render_fps": round(1 / self.period)}

    def require_camera(self) -> None:
        """ValueError where the model has not the camera that was asked for."""
        if self.simulation.model.mjmodel is not None:
            camera_number(self.simulation.model.mjmodel, self._shown.get("camera"))

    def frame(self, env: int, reports: dict) -> np.ndarray:
        """(height, width, 3) bytes of one environment, with the goal or command that it reported."""
        if self._picture is None:
            self._picture = Picture(self.simulation.model, **self._shown)
        markers = [*task_markers(reports, self.simulation, env), *self.markers(env)]
        return self._picture.draw(self.simulation, env, markers)

    def markers(self, env: int) -> list:
        """What a task draws besides."""
        return []

    def close(self) -> None:
        if self._picture is not None:
            self._picture.close()
            self._picture = None
        self.simulation.close()


def checked_device(device) -> str:
    """What `Simulation` takes. "auto" is the CPU, with a GPU too, until its kernels have been measured faster."""
    kind = str(device).partition(":")[0]
    if kind not in ("auto", "cpu", "cuda"):
        raise ValueError(f"device is {device!r}, expected 'auto', 'cpu' or 'cuda'")
    return "cpu" if kind == "auto" else str(device)


def checked_render_mode(render_mode):
    if render_mode not in (None, "rgb_array"):
        raise ValueError(f"render_mode is {render_mode!r}, expected None or 'rgb_array'")
    return render_mode


def can_render(render_mode) -> bool:
    """Without a render mode there is no picture, and Gymnasium's environments warn."""
    if render_mode is None:
        logger.warn('render() gives None without a render mode: make the environment with render_mode="rgb_array"')
    return render_mode is not None
