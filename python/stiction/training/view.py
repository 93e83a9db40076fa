"""`stiction view`: a task or a trained policy, live, in a web browser or in MuJoCo's own window."""

from __future__ import annotations

import importlib.util
import os
import time
from contextlib import closing
from pathlib import Path

import numpy as np


def add_arguments(parser):
    parser.add_argument("what", help="a task as in `stiction list`, or the folder of a run or a checkpoint")
    parser.add_argument("--viewer", choices=["auto", "web", "window"], default="auto",
                        help="auto: the window where there is a display, else the web")  # fmt: skip
    parser.add_argument("--actions", choices=["policy", "random", "zero"], help="default: policy of a run, else random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--port", type=int, default=8080, help="of the web viewer")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many")


def run(arguments):
    show = _chosen(arguments.viewer)
    import stiction

    path = Path(arguments.what)
    policy = None
    if path.exists():
        from .run import Checkpoint

        kept = Checkpoint.load(path)
        env_id, policy = kept.env_id, kept.policy()
    else:
        from .options import environment_id

        env_id = environment_id(arguments.what)
    from .options import environment

    kind = arguments.actions or ("random" if policy is None else "policy")
    if kind == "policy" and policy is None:
        raise ValueError(f"--actions policy needs a run, and {arguments.what!r} is a task")
    with closing(stiction.make_vec(environment(env_id), 1, num_threads=1)) as envs:
        act = {"policy": _policy_actions, "random": _random_actions, "zero": _zero_actions}[kind](envs, policy)
        show(envs, act, arguments)


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
    """Steps in real time, until ``seconds`` have passed; yields qpos and qvel after each."""
    observations, _ = envs.reset(seed=seed)
    started = due = time.monotonic()
    while time.monotonic() - started < seconds:
        observations = envs.step(act(observations))[0]
        yield envs.simulation.qpos[0], envs.simulation.qvel[0]
        due = max(due + envs.step_dt, time.monotonic() - 0.5)
        time.sleep(max(0.0, due - time.monotonic()))


def _show(mujoco, model, data, qpos, qvel) -> None:
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(model, data)


def _window(envs, act, arguments) -> None:
    import mujoco
    import mujoco.viewer

    model = envs.simulation.model.mjmodel
    data = mujoco.MjData(model)
    with mujoco.viewer.launch_passive(model, data) as viewer:
        for qpos, qvel in _steps(envs, act, arguments.seconds, arguments.seed):
            if not viewer.is_running():
                return
            _show(mujoco, model, data, qpos, qvel)
            viewer.sync()


def _web(envs, act, arguments) -> None:
    import mujoco
    import viser
    from mjviser import ViserMujocoScene

    model = envs.simulation.model.mjmodel
    data = mujoco.MjData(model)
    server = viser.ViserServer(port=arguments.port)
    try:
        scene = ViserMujocoScene(server, model, num_envs=1)
        scene.create_visualization_gui()
        for qpos, qvel in _steps(envs, act, arguments.seconds, arguments.seed):
            _show(mujoco, model, data, qpos, qvel)
            scene.update_from_mjdata(data)
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()
