"""Pictures of one environment, with what it is asked to do, and videos that a notebook shows.

    sim.render(3, width=640)                              # of a bare simulation
    envs = stiction.make_vec("stiction/ArmLift-v0", render_mode="rgb_array", width=640, camera="front")
    stiction.record(envs, seconds=5, act=policy)          # plays in a notebook; .save("a.mp4")

Without a camera of the model's named "track", and none asked for, the camera follows the robot. Robots all of whose
geoms are in groups that MuJoCo hides (3 to 5, often for collision) are shown by these.

Goals and commands are drawn by what a task reports: ``goal_x, goal_y, goal_z`` a ball there; with ``goal_w`` the axes
of an orientation above the body that should take it, and that body's; ``command_x, command_y`` a green arrow above the
base, and its velocity as a blue one. A `stiction.Task` may draw by `Task.markers`.
"""

from __future__ import annotations

import base64
import copy
import operator
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .batch_renderer import choose_gl, write_video

#: Of parameters that differ between environments, what is seen.
_SEEN = ("body_pos", "site_pos", "geom_size")
#: Of `Simulation.render` and of environments.
PICTURE_OPTIONS = ("width", "height", "camera")
_GREEN, _BLUE = (0.1, 0.8, 0.2, 0.7), (0.2, 0.4, 1.0, 0.7)
_AXES = ((0.9, 0.1, 0.1, 0.8), (0.1, 0.8, 0.1, 0.8), (0.1, 0.2, 0.9, 0.8))


@dataclass(frozen=True)
class Marker:
    """What is drawn beside the model, world's axes, m: a ball, or with ``to`` an arrow from ``at`` to there."""

    at: tuple[float, float, float]
    to: tuple[float, float, float] | None = None
    size: float = 0.02  # radius of the ball, of the arrow's shaft
    color: tuple[float, float, float, float] = _GREEN


def picture_options(options: dict) -> dict:
    """Takes width, height and camera out of keyword arguments, checked."""
    given = {name: options.pop(name) for name in PICTURE_OPTIONS if name in options}
    for name in ("width", "height"):
        if name in given:
            try:
                given[name] = operator.index(given[name])
            except TypeError:
                raise TypeError(f"{name} is {given[name]!r}, expected a number of pixels") from None
            if given[name] < 2:
                raise ValueError(f"{name} is {given[name]}, expected at least 2 pixels")
    return given


def camera_number(mjmodel, camera: str | int | None) -> int | None:
    """Which of the model's; None follows."""
    names = [mjmodel.camera(number).name for number in range(mjmodel.ncam)]
    if camera is None:
        return names.index("track") if "track" in names else None
    if isinstance(camera, str):
        if camera not in names:
            there = ", ".join(map(repr, names)) or "none"
            raise ValueError(f"the model has no camera {camera!r}; there are: {there}")
        return names.index(camera)
    if not 0 <= operator.index(camera) < mjmodel.ncam:
        raise ValueError(f"camera is {camera}, and the model has {mjmodel.ncam}")
    return camera


class Renderers:
    """Makes MuJoCo's, of which it aborts the process where one could not be made before."""

    _cannot: str | None = None

    @classmethod
    def make(cls, mjmodel, height: int, width: int):
        """Raises RuntimeError where MuJoCo cannot draw."""
        import mujoco

        if cls._cannot is None:
            try:
                return mujoco.Renderer(mjmodel, height, width)
            except mujoco.FatalError as reason:
                cls._cannot = (
                    f"MuJoCo cannot render ({reason}); without a display set MUJOCO_GL=egl or osmesa before mujoco is "
                    "first imported"
                )
        raise RuntimeError(cls._cannot)


def check_renderer() -> None:
    """OSError where MuJoCo cannot draw."""
    choose_gl()
    import mujoco

    try:
        Renderers.make(mujoco.MjModel.from_xml_string("<mujoco/>"), 16, 16).close()
    except RuntimeError as error:
        raise OSError(str(error)) from error


class Picture:
    """Draws states of one model. ``camera``: name or number of the model's; None follows. Close it in the end."""

    def __init__(self, model, *, width: int = 480, height: int = 480, camera: str | int | None = None):
        choose_gl()
        import mujoco

        if model.mjmodel is None:
            raise ValueError("this model has no mjmodel and cannot be drawn: it was made of arrays")
        self._mujoco, self._model = mujoco, copy.copy(model.mjmodel)  # whose numbers are those of who is drawn
        camera = camera_number(self._model, camera)
        offscreen = self._model.vis.global_
        offscreen.offwidth, offscreen.offheight = max(offscreen.offwidth, width), max(offscreen.offheight, height)
        self._renderer = Renderers.make(self._model, height, width)
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self._renderer.scene.flags[flag] = 0
        self._data, self._thread = mujoco.MjData(self._model), threading.get_ident()
        self._options = shown_groups(mujoco, self._model)
        self._camera = follow(mujoco, self._model, self._data) if camera is None else camera

    def draw(self, simulation, env: int, markers=()) -> np.ndarray:
        """(height, width, 3) bytes of one environment."""
        put_environment(self._mujoco, self._model, self._data, simulation, env)
        self._renderer.update_scene(self._data, self._camera, self._options)
        add_markers(self._mujoco, self._renderer.scene, markers)
        try:
            return self._renderer.render()
        except Exception as reason:
            if threading.get_ident() == self._thread:
                raise
            raise RuntimeError(
                "another thread has drawn pictures of this before, and an OpenGL context belongs to one: draw there, "
                "or a copy here (copy.deepcopy)"
            ) from reason

    def close(self) -> None:
        self._renderer.close()


def put_environment(mujoco, model, data, simulation, env: int) -> None:
    """Where its bodies are, into MuJoCo's model and data, with what its parameters have in place of the file's."""
    for name in _SEEN:
        if name in simulation.per_env:
            getattr(model, name)[:] = simulation._arrays.read(f"params.{name}")[env]
    for name in ("qpos", "qvel", "mocap_pos", "mocap_quat"):
        getattr(data, name)[:] = simulation._arrays.read(name)[env]
    mujoco.mj_forward(model, data)


def shown_groups(mujoco, model):
    """What is visible: MuJoCo's groups 0 to 2, or all where no geom that moves is in these."""
    options = mujoco.MjvOption()
    moves = model.body_weldid[model.geom_bodyid] != 0
    if moves.any() and not (moves & (model.geom_group < 3) & (model.geom_rgba[:, 3] > 0)).any():
        options.geomgroup[:] = 1
    return options


def follow(mujoco, model, data):
    """A camera that keeps the tree of the first free joint in the middle, or looks at all that moves."""
    mujoco.mj_resetDataKeyframe(model, data, 0) if model.nkey else mujoco.mj_resetData(model, data)
    mujoco.mj_forward(model, data)
    free = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
    roots = model.body_rootid[model.geom_bodyid]
    # A free body by itself among others is what is handled, not who handles it.
    base = model.jnt_bodyid[free[0]] if len(free) and (model.body_rootid == model.jnt_bodyid[free[0]]).sum() > 1 else -1
    seen = roots == model.body_rootid[base] if base >= 0 else model.body_weldid[model.geom_bodyid] != 0
    seen &= model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE
    camera = mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(model, camera)
    if not seen.any():
        return camera
    at, radius = data.geom_xpos[seen], model.geom_rbound[seen]
    middle = (at.min(axis=0) + at.max(axis=0)) / 2
    extent = (np.linalg.norm(at - middle, axis=1) + radius).max()
    camera.lookat[:], camera.distance = middle, 3.2 * extent
    camera.azimuth, camera.elevation = 130, -20
    if base >= 0:
        camera.type, camera.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, base
    return camera


# ---- goals and commands


def task_markers(reports: dict, simulation, env: int) -> list[Marker]:
    """By what a task reports of one environment, name -> number."""
    goal = [reports.get(f"goal_{axis}") for axis in "xyz"]
    if "goal_w" in reports and None not in goal:
        return _orientation_markers([reports["goal_w"], *goal], simulation, env)
    markers = [] if None in goal else [Marker(tuple(goal))]
    if "command_x" in reports and "command_y" in reports and simulation.model.nv >= 6:
        qpos, qvel = (simulation._arrays.read(name)[env] for name in ("qpos", "qvel"))
        above = np.array([qpos[0], qpos[1], _top(simulation, env) + 0.1])
        heading = _rotated(qpos[3:7], np.array([1.0, 0, 0]))
        forward = np.array([heading[0], heading[1], 0]) / max(np.hypot(heading[0], heading[1]), 1e-6)
        left = np.array([-forward[1], forward[0], 0])
        wanted = reports["command_x"] * forward + reports["command_y"] * left
        for shift, velocity, color in ((0.0, wanted, _GREEN), (0.06, qvel[:3] * [1, 1, 0], _BLUE)):
            at = above + [0, 0, shift]
            if np.linalg.norm(velocity) > 0.05:
                markers.append(Marker(tuple(at), tuple(at + 0.5 * velocity), 0.015, color))
    return markers


def _orientation_markers(goal, simulation, env: int) -> list[Marker]:
    free = np.flatnonzero(np.asarray(simulation.model.jnt_type) == 0)
    if len(free) == 0:
        return []
    at = int(simulation.model.jnt_qposadr[free[0]])
    body = simulation._arrays.read("qpos")[env, at : at + 7]
    mjmodel = simulation.model.mjmodel
    own = mjmodel.geom_bodyid == mjmodel.jnt_bodyid[free[0]]
    length = 1.0 * mjmodel.geom_rbound[own].max(initial=0.05)
    markers = []
    for place, quat in ((body[:3] + [0, 0, 1.9 * length], np.asarray(goal)), (body[:3], body[3:])):
        for axis, color in zip(np.eye(3), _AXES, strict=True):
            markers.append(Marker(tuple(place), tuple(place + length * _rotated(quat, axis)), 0.05 * length, color))
    return markers


def _top(simulation, env: int) -> float:
    """About how high the model reaches, m."""
    model = simulation.model.mjmodel
    moves = model.body_weldid[model.geom_bodyid] != 0
    xpos = np.asarray(simulation._arrays.read("xpos")[env])
    heights = xpos[model.geom_bodyid, 2] + np.maximum(model.geom_pos[:, 2], 0) + model.geom_size[:, 0]
    return float(heights[moves].max(initial=0.0))


def _rotated(quat, vector):
    u, w = np.asarray(quat[1:], float), float(quat[0])
    return vector + 2 * np.cross(u, np.cross(u, vector) + w * vector)


def add_markers(mujoco, scene, markers) -> None:
    """As many as there is room for in a `mujoco.MjvScene`. Arrows have a ball as head: MuJoCo's own end half-way."""
    for marker in markers:
        if scene.ngeom + 2 > scene.maxgeom:
            return
        color, at = np.asarray(marker.color, np.float32), np.asarray(marker.at, np.float64)
        ball, shaft = mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_CAPSULE
        end = at if marker.to is None else np.asarray(marker.to, np.float64)
        radius = marker.size * (1 if marker.to is None else 2)
        mujoco.mjv_initGeom(scene.geoms[scene.ngeom], ball, np.full(3, radius), end, np.eye(3).ravel(), color)
        scene.ngeom += 1
        if marker.to is not None:
            geom = scene.geoms[scene.ngeom]
            mujoco.mjv_initGeom(geom, shaft, np.full(3, marker.size), at, np.eye(3).ravel(), color)
            mujoco.mjv_connector(geom, shaft, marker.size, at, end)
            scene.ngeom += 1


# ---- videos


class Video:
    """Frames (height, width, 3) that play at ``fps``; the last expression of a notebook's cell plays it."""

    def __init__(self, frames, fps: float):
        if not len(frames):
            raise ValueError("a video has no frames")
        self.frames, self.fps = frames, fps

    def save(self, path) -> None:
        """An MP4, by a name that ends in .mp4; needs imageio-ffmpeg."""
        write_video(path, self.frames, self.fps)

    def _repr_html_(self) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "video.mp4"
            self.save(path)
            data = base64.b64encode(path.read_bytes()).decode("ascii")
        height, width = self.frames[0].shape[:2]
        source = f"data:video/mp4;base64,{data}"
        return f'<video controls autoplay loop width="{width}" height="{height}" src="{source}"></video>'

    def __repr__(self) -> str:
        return f"stiction.Video({len(self.frames)} frames, {len(self.frames) / self.fps:.1f} s)"


def record(envs, act=None, *, seconds: float = 5.0, seed: int | None = 0, env: int = 0) -> Video:
    """A `Video`, in real time, of environment ``env`` under ``act(observations) -> actions``; None is zeros.

    ``envs`` of `make_vec` with ``render_mode="rgb_array"``. They are reset first, unless ``seed`` is None.
    """
    if not hasattr(envs, "picture"):
        raise TypeError(
            f"envs is {type(envs).__name__}, expected those of stiction.make_vec(..., render_mode='rgb_array'), of "
            "wrapped ones .unwrapped; a simulation or a single environment draws pictures by render()"
        )
    if envs.render_mode is None:
        raise ValueError("envs has no render_mode: make_vec(..., render_mode='rgb_array')")
    if not seconds > 0:
        raise ValueError(f"seconds is {seconds}, expected more than 0")
    every = max(1, round(0.02 / envs.step_dt))  # up to 50 frames a second
    observations, frames = (None if seed is None else envs.reset(seed=seed)[0]), []
    for step in range(max(1, round(seconds / envs.step_dt))):
        if step % every == 0:
            frames.append(envs.picture(env))
        if act is None or observations is None:
            actions = np.zeros(envs.action_space.shape, envs.action_space.dtype)
        else:
            actions = act(observations)
        observations = envs.step(actions)[0]
    return Video(frames, 1 / (every * envs.step_dt))
