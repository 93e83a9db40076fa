"""`stiction view`: a task, a trained policy or a robot's file, live, in a web browser or in MuJoCo's own window."""

from __future__ import annotations

import copy
import importlib.util
import os
import time
from contextlib import closing
from pathlib import Path

import gymnasium
import numpy as np

from stiction.model import Model
from stiction.picture import add_markers, put_environment, shown_groups
from stiction.simulation import Simulation

from . import setup


def add_arguments(parser):
    parser.add_argument(
        "what", help="a task as of `stiction train`, a robot's MJCF or URDF, or the folder of a run or a checkpoint"
    )
    setup.add_arguments(parser)
    parser.add_argument("--viewer", choices=["auto", "web", "window"], default="auto",
                        help="auto: the window where there is a display, else the web")  # fmt: skip
    parser.add_argument("--actions", choices=["policy", "random", "zero"], help="default: policy of a run, else random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--port", type=int, default=8080, help="of the web viewer")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many")


def run(arguments):
    path, policy, kind = Path(arguments.what), None, arguments.actions
    if path.suffix in (".xml", ".urdf", ".mjb", ".toml") and not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    if path.suffix in (".xml", ".urdf", ".mjb"):
        envs = _robot(path, arguments)
        kind = kind or "zero"
    elif path.exists() and path.suffix != ".toml":
        kept = setup.checkpoint(path, arguments)
        envs, policy, kind = kept.setup.make(1, num_threads=1), kept.policy(), kind or "policy"
    else:
        envs, kind = setup.of_arguments(arguments.what, arguments)[0].make(1, num_threads=1), kind or "random"
    with closing(envs):
        show = _chosen(arguments.viewer)
        if kind == "policy" and policy is None:
            raise ValueError(f"--actions policy needs a run, and {arguments.what!r} is none")
        act = {"policy": _policy_actions, "random": _random_actions, "zero": _zero_actions}[kind](envs, policy)
        show(envs, act, arguments)


def _robot(path: Path, arguments) -> Robot:
    for name in ("model", "names", "parameters", "randomize"):
        if getattr(arguments, name):
            raise ValueError(f"{path} is shown alone: --model, --names, --task and --randomize are of tasks")
    urdf = setup.urdf_table({}, arguments)
    model = Model.from_file(path, unsupported="warn", **urdf)
    return Robot(model, setup.simulation_options(setup.simulation_table({}, arguments)))


class Robot:
    """A model alone, with as much of an environment as a viewer needs.

    It begins in its keyframe "home" or "stand"; an action, in parts of the motors' ranges, is added to its controls.
    """

    def __init__(self, model: Model, options: dict):
        self.simulation = Simulation(model, 1, **options)
        self.step_dt = max(1, round(1 / 60 / self.simulation.timestep)) * self.simulation.timestep
        self._key = next((name for name in ("home", "stand") if name in model.key_names), None)
        self._home = np.zeros(model.nu)
        if self._key is not None:
            self._home[:] = model.mjmodel.key_ctrl[model.key_id(self._key)]
        low, high = np.asarray(model.actuator_ctrlrange).T
        self._half = np.where(np.asarray(model.actuator_ctrllimited).astype(bool), (high - low) / 2, 1.0)
        self.action_space = gymnasium.spaces.Box(-1, 1, (1, model.nu), np.float64)

    def reset(self, seed=None):
        self.action_space.seed(seed)
        self.simulation.reset(keyframe=self._key)
        return None, {}

    def step(self, actions):
        self.simulation.ctrl[:] = self._home + self._half * actions
        self.simulation.step(round(self.step_dt / self.simulation.timestep))
        return None, None, None, None, {}

    def close(self):
        self.simulation.close()


def _chosen(viewer: str):
    """The function that shows; OSError saying what is missing."""
    display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    web = importlib.util.find_spec("mjviser") is not None
    if viewer == "window" and not display:
        raise OSError("no display for a window: use --viewer web, or `stiction play RUN --video FILE.mp4`")
    if viewer == "window" or (viewer == "auto" and display):
        return _window
    if not web:
        raise OSError(
            f"{'' if display else 'no display for a window, and '}the web viewer is not installed: "
            "pip install mjviser; or write a video by `stiction play RUN --video FILE.mp4`"
        )
    return _web


# ---- actions


def _policy_actions(envs, policy):
    import torch

    def act(observations):
        seen = observations["policy"] if isinstance(observations, dict) else observations
        with torch.no_grad():
            return policy(torch.as_tensor(seen, dtype=torch.float32)).numpy()

    return act


def _random_actions(envs, policy):
    return lambda observations: envs.action_space.sample()


def _zero_actions(envs, policy):
    return lambda observations: np.zeros(envs.action_space.shape, envs.action_space.dtype)


# ---- viewers


def _steps(envs, act, seconds: float, seed: int):
    """Steps in real time, until ``seconds`` have passed; yields the markers after each."""
    observations, _ = envs.reset(seed=seed)
    started = due = time.monotonic()
    while time.monotonic() - started < seconds:
        observations = envs.step(act(observations))[0]
        yield envs.markers(0) if hasattr(envs, "markers") else []
        due = max(due + envs.step_dt, time.monotonic() - 0.5)
        time.sleep(max(0.0, due - time.monotonic()))


def _window(envs, act, arguments) -> None:
    import mujoco
    import mujoco.viewer

    model = copy.copy(envs.simulation.model.mjmodel)
    data = mujoco.MjData(model)
    with mujoco.viewer.launch_passive(model, data) as viewer:
        viewer.opt.geomgroup[:] = shown_groups(mujoco, model).geomgroup
        for markers in _steps(envs, act, arguments.seconds, arguments.seed):
            if not viewer.is_running():
                return
            put_environment(mujoco, model, data, envs.simulation, 0)
            viewer.user_scn.ngeom = 0
            add_markers(mujoco, viewer.user_scn, markers)
            viewer.sync()


def _web_markers(server, scene, markers) -> None:
    """Below the frame of what stands still, which moves where the camera follows the robot."""
    for number, marker in enumerate(markers):
        name = f"{scene.fixed_bodies_frame.name}/markers/{number}"
        color = tuple(marker.color[:3])
        if marker.to is None:
            server.scene.add_icosphere(name, radius=marker.size, color=color, position=marker.at)
        else:
            line = np.array([[marker.at, marker.to]], np.float32)
            server.scene.add_line_segments(name, line, colors=np.array(color), line_width=4)


def _web(envs, act, arguments) -> None:
    import mujoco
    import viser
    from mjviser import ViserMujocoScene

    model = copy.copy(envs.simulation.model.mjmodel)
    data = mujoco.MjData(model)
    server = viser.ViserServer(port=arguments.port)
    try:
        scene = ViserMujocoScene(server, model, num_envs=1)
        scene.geom_groups_visible = [bool(shown) for shown in shown_groups(mujoco, model).geomgroup]
        scene.rebuild_visual_handles()
        scene.create_visualization_gui()
        for markers in _steps(envs, act, arguments.seconds, arguments.seed):
            put_environment(mujoco, model, data, envs.simulation, 0)
            _web_markers(server, scene, markers)
            scene.update_from_mjdata(data)
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()
