"""Five scenes whose answer is hard, with 16 environments each that differ: what starts, what drives it, what is wrong.

Every class has ``model()``, with MuJoCo's contact parameters at their defaults, so that both engines read one file;
``start`` and ``controls``, the same numbers for every engine; ``seconds``; ``errors(path, reference)``, one number for
each environment, of positions (instants, environments, nq) every `PERIOD`, and ``overall``, which makes one of them;
``wanted``, an error that would do; ``per``, how many of ``unit`` an error of 1 is; ``reference``: "" where the answer
is known, "fine" where it is a simulation with tiny steps, "same" where it is one with the same step.
"""

from __future__ import annotations

import mujoco
import numpy as np

from bench.accuracy.sliding import BOX
from bench.accuracy.sticking import PINCH, SETTLE
from bench.step.scenes import SCENES

ENVS = 16
PERIOD = 0.01  # s: controls are held and positions are read so often
GRAVITY = 9.81


def plain(model: mujoco.MjModel) -> mujoco.MjModel:
    """With contacts of three directions and MuJoCo's own defaults of softness, cone and integrator."""
    model.geom_condim[:] = 3
    model.geom_solref[:], model.geom_solimp[:] = (0.02, 1), (0.9, 0.95, 0.001, 0.5, 2)
    model.geom_margin[:] = 0
    fresh = mujoco.MjModel.from_xml_string("<mujoco/>").opt
    for name in ("cone", "impratio", "solver", "iterations", "ls_iterations", "tolerance", "noslip_iterations"):
        setattr(model.opt, name, getattr(fresh, name))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    return model


class Pinched:
    """The capsule of 45 g between two boxes pressed together at 12 to 60 N: creep (m/s) after half a second."""

    title, unit, seconds, reference, overall = "45 g pinched: creep", "µm/s", 2.5, "", staticmethod(np.max)
    forces = np.linspace(12, 60, ENVS)
    wanted, per = 1e-6, 1e6

    def model(self) -> mujoco.MjModel:
        return plain(mujoco.MjModel.from_xml_string(PINCH))

    def start(self, model) -> tuple[np.ndarray, np.ndarray]:
        return np.tile(model.qpos0, (ENVS, 1)), np.zeros((ENVS, model.nv))

    def controls(self, model, instant: float) -> np.ndarray:
        return np.tile(self.forces[:, None], (1, 2))

    def errors(self, model, path, reference) -> np.ndarray:
        held = path[:, :, 2:5]
        return np.linalg.norm(held[-1] - held[round(SETTLE / PERIOD) - 1], axis=-1) / (self.seconds - SETTLE)


class Stacked:
    """A cube of 1 t on a cube of 1 kg, turned and off centre by up to 2 cm: how far it is from its height (m) in the
    last half second."""

    title, unit, seconds, reference, overall = "1 t on 1 kg: overlap", "mm", 2.0, "", staticmethod(np.max)
    wanted, per = 1e-3, 1e3

    def model(self) -> mujoco.MjModel:
        cube = '<body pos="0 0 {}"><freejoint/><geom type="box" size=".05 .05 .05" mass="{}"/></body>'
        bodies = cube.format(0.05, 1) + cube.format(0.15, 1000)
        return plain(
            mujoco.MjModel.from_xml_string(
                f'<mujoco><worldbody><geom type="plane" size="5 5 1"/>{bodies}</worldbody></mujoco>'
            )
        )

    def start(self, model):
        rng, qpos = np.random.default_rng(0), np.tile(model.qpos0, (ENVS, 1))
        qpos[:, 7:9] = rng.uniform(-0.02, 0.02, (ENVS, 2))
        half = rng.uniform(0, np.pi / 4, ENVS)
        qpos[:, 10], qpos[:, 13] = np.cos(half), np.sin(half)
        return qpos, np.zeros((ENVS, model.nv))

    def controls(self, model, instant):
        return np.zeros((ENVS, 0))

    def errors(self, model, path, reference):
        return np.abs(path[-round(0.5 / PERIOD) :, :, 9] - 0.15).max(axis=0)


class Sliding:
    """A box of friction 0.5 slides to rest from 1 to 10 m/s: error of its way v^2 / (2 mu g), and how high it rises,
    added, as a part of the way."""

    title, unit, seconds, reference, overall = "sliding box: way and rise", "%", 2.5, "", staticmethod(np.mean)
    speeds, friction = np.linspace(1, 10, ENVS), 0.5
    wanted, per = 0.01, 100

    def model(self):
        return plain(mujoco.MjModel.from_xml_string(BOX.format(timestep=0.002, mu=self.friction)))

    def start(self, model):
        qvel = np.zeros((ENVS, model.nv))
        qvel[:, 0] = self.speeds
        return np.tile(model.qpos0, (ENVS, 1)), qvel

    def controls(self, model, instant):
        return np.zeros((ENVS, 0))

    def errors(self, model, path, reference):
        way = self.speeds**2 / (2 * self.friction * GRAVITY)
        rise = np.maximum(path[:, :, 2].max(axis=0) - 0.05, 0)
        return (np.abs(path[-1, :, 0] - way) + rise) / way


def origins(model: mujoco.MjModel, qpos: np.ndarray) -> np.ndarray:
    """Where the bodies are (environments, bodies, 3)."""
    data, found = mujoco.MjData(model), []
    for row in qpos:
        data.qpos[:] = row
        mujoco.mj_kinematics(model, data)
        found.append(data.xpos[1:].copy())
    return np.array(found)


def apart(model, path, reference) -> np.ndarray:
    """Mean distance (m) of the bodies from where the reference has them in the end."""
    distance = np.linalg.norm(origins(model, path[-1]) - origins(model, reference[-1]), axis=-1)
    return distance.mean(axis=-1)


class Trotting:
    """Go1 trots for a second by a gait that looks at nothing, 1.5 to 3 Hz, 0.1 to 0.25 rad: mean distance of its
    bodies (m) from the reference in the end."""

    title, unit, seconds, reference = "Go1 trots: pose after 1 s", "mm", 1.0, "fine"
    overall = staticmethod(np.median)
    frequency, swing = np.tile([1.5, 2, 2.5, 3], 4), np.repeat([0.1, 0.15, 0.2, 0.25], 4)
    phase = np.array([0, np.pi, np.pi, 0])  # of FR, FL, RR, RL
    wanted, per = 0.01, 1e3

    def model(self):
        return plain(SCENES["go1"].mjmodel())

    def start(self, model):
        """The keyframe, lowered until a foot touches the floor."""
        data, qpos = mujoco.MjData(model), model.key_qpos[0].copy()
        data.qpos[:] = qpos
        mujoco.mj_kinematics(model, data)
        spheres = (model.geom_type == mujoco.mjtGeom.mjGEOM_SPHERE) & (model.geom_contype > 0)
        qpos[2] -= np.min(data.geom_xpos[spheres, 2] - model.geom_size[spheres, 0])
        return np.tile(qpos, (ENVS, 1)), np.zeros((ENVS, model.nv))

    def controls(self, model, instant):
        angle = 2 * np.pi * self.frequency[:, None] * instant + self.phase
        ramp, swing = min(1.0, instant / 0.2), self.swing[:, None]
        target = np.tile(model.key_ctrl[0], (ENVS, 1)).reshape(ENVS, 4, 3)
        target[:, :, 1] -= ramp * swing * np.sin(angle)
        target[:, :, 2] -= ramp * 2 * swing * np.maximum(np.cos(angle), 0)
        return target.reshape(ENVS, 12)

    def errors(self, model, path, reference):
        return apart(model, path, reference)

    def tracking(self, model, path) -> np.ndarray:
        """Root mean square of the joints' distance from what the gait asks of them (rad)."""
        asked = np.array([self.controls(model, i * PERIOD) for i in range(len(path))])
        return np.sqrt(np.mean((path[:, :, 7:] - asked) ** 2, axis=(0, 2)))

    def ways(self, path) -> np.ndarray:
        """How far the trunk came forward (m)."""
        return path[-1, :, 0] - path[0, :, 0]


class Heap:
    """Ten cubes, turned at random, fall onto each other for 0.2 s: mean distance (m) from the reference in the end,
    which takes the same steps, so that what a heap makes of small differences does not decide."""

    title, unit, seconds, reference = "ten cubes fall: pose after 0.2 s", "mm", 0.2, "same"
    overall = staticmethod(np.median)
    wanted, per = 1e-3, 1e3

    def model(self):
        return plain(SCENES["ten_cubes"].mjmodel())

    def start(self, model):
        rng, qpos = np.random.default_rng(1), np.tile(model.qpos0, (ENVS, 1)).reshape(ENVS, 10, 7)
        quat = rng.normal(size=(ENVS, 10, 4))
        qpos[:, :, 3:] = quat / np.linalg.norm(quat, axis=-1, keepdims=True)
        place = np.array([(x, y, 0.1 + layer * 0.13) for layer in range(2) for x in (-0.1, 0.1) for y in (-0.1, 0.1)])
        place = np.concatenate([place, [(0, 0, 0.36), (0.05, 0.05, 0.52)]])
        qpos[:, :, :3] = place + rng.uniform(-0.01, 0.01, (ENVS, 10, 3))
        qvel = np.zeros((ENVS, 10, 6))
        qvel[:, :, 2] = -1
        return qpos.reshape(ENVS, 70), qvel.reshape(ENVS, 60)

    def controls(self, model, instant):
        return np.zeros((ENVS, 0))

    def errors(self, model, path, reference):
        return apart(model, path, reference)


WORLDS = {"pinch": Pinched(), "stack": Stacked(), "slide": Sliding(), "trot": Trotting(), "heap": Heap()}
