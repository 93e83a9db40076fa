"""The two engines behind one face: controls in, CPU and wall time out, contacts and penetration when asked.

Times are of stepping alone: drawing and writing controls is outside. CPU time is that of the whole process, so threads
count with what they use; divide steps by it for steps per second and core.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import mujoco
import mujoco.rollout
import numpy as np
import stiction

from .scenes import HOLD, Controls, Scene, start_qpos


@dataclass
class Times:
    """Seconds; they add up."""

    cpu: float = 0.0
    wall: float = 0.0

    def measure(self, call, *arguments):
        wall, cpu = time.perf_counter(), time.process_time()
        result = call(*arguments)
        self.cpu += time.process_time() - cpu
        self.wall += time.perf_counter() - wall
        return result


class Stiction:
    """A `stiction.Simulation` under random controls."""

    kind = "stiction"

    def __init__(
        self,
        scene: Scene,
        model: stiction.Model,
        num_envs: int,
        *,
        isa="",
        dtype="float32",
        threads=1,
        solver="subadmm",
    ):
        previous = os.environ.get("STICTION_ISA")
        os.environ["STICTION_ISA"] = isa
        try:
            self.sim = stiction.Simulation(model, num_envs, dtype=dtype, solver=solver, num_threads=threads)
        finally:
            if previous is None:
                del os.environ["STICTION_ISA"]
            else:
                os.environ["STICTION_ISA"] = previous
        self.scene, self.num_envs = scene, num_envs
        self.timestep = float(model.mjmodel.opt.timestep)
        self.controls = Controls(model.mjmodel, scene.amplitude, num_envs, normal=scene.explores)
        self.sim.qpos[:] = start_qpos(model.mjmodel)
        self.sim.forward()

    def advance(self, periods: int, times: Times | None = None, watch=None) -> int:
        """``periods`` controls of HOLD steps each, watch() after each. Returns the steps of all environments."""
        times = times or Times()
        for _ in range(periods):
            if self.sim.ctrl.shape[1]:
                self.sim.ctrl[:] = self.controls.next()
            times.measure(self.sim.step, HOLD)
            if watch is not None:
                watch()
        return periods * HOLD * self.num_envs

    def settle(self):
        self.advance(max(1, round(self.scene.settle / (HOLD * self.timestep))))

    def take_state(self, other: Stiction):
        """The state of another engine's environments, repeated where there are more of them here."""
        rows = np.arange(self.num_envs) % other.num_envs
        self.sim.qpos[:], self.sim.qvel[:] = other.sim.qpos[rows], other.sim.qvel[rows]
        self.sim.forward()
        self.advance(4)  # warm starts

    def rest(self, seconds: float):
        """Steps on with the home controls."""
        if self.sim.ctrl.shape[1]:
            self.sim.ctrl[:] = self.controls.home
        self.sim.step(max(1, round(seconds / self.timestep)))

    def body_positions(self) -> np.ndarray:
        return np.array(self.sim.xpos)

    def active_and_penetration(self) -> tuple[np.ndarray, np.ndarray]:
        """Contacts with an impulse and deepest overlap (m) of each environment, of one more step."""
        self.sim.step(1)
        c = self.sim.certificate
        return np.array(c.num_contacts, float), np.array(c.penetration, float)


class MujocoC:
    """MuJoCo C through `mujoco.rollout`, or through `mujoco.batch.Batch` where ``batch`` is set."""

    kind = "mujoco"

    def __init__(self, scene: Scene, model: mujoco.MjModel, num_envs: int, *, threads=1, batch=False):
        self.scene, self.model, self.num_envs = scene, model, num_envs
        self.timestep = float(model.opt.timestep)
        self.controls = Controls(model, scene.amplitude, num_envs, normal=scene.explores)
        self._data = [mujoco.MjData(model) for _ in range(threads)]
        self._spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
        self._data[0].qpos[:] = start_qpos(model)
        self.state = np.empty((num_envs, mujoco.mj_stateSize(model, self._spec)))
        mujoco.mj_getState(model, self._data[0], self.state[0], self._spec)
        self.state[1:] = self.state[0]
        self.diverged = 0  # environments that MuJoCo found unstable, summed over calls
        self._runner = mujoco.rollout.Rollout(nthread=threads if threads > 1 else 0)
        self._batch = None
        if batch:
            from mujoco.batch import Batch

            self._batch = Batch(model, num_envs, threads, persistent=True)

    def advance(self, periods: int, times: Times | None = None, watch=None) -> int:
        """As Stiction.advance; one rollout, whose last states are where the next one starts."""
        times = times or Times()
        if self._batch is not None:
            return self._advance_batch(periods, times)
        control = None
        if self.model.nu:
            control = np.repeat(np.stack([self.controls.next() for _ in range(periods)], axis=1), HOLD, axis=1)
        steps = periods * HOLD
        states = np.empty((self.num_envs, steps, self.state.shape[1]))

        def roll():
            self._runner.rollout(
                self.model, self._data, self.state, control, nstep=steps, state=states, skip_checks=False
            )

        before = self.state[:, 0].copy()
        times.measure(roll)
        self.state = states[:, -1].copy()
        self._notice_divergence(before, steps)
        return steps * self.num_envs

    def _notice_divergence(self, before: np.ndarray, steps: int) -> None:
        """An unstable rollout stops early, an unstable environment of a batch starts anew: its clock tells."""
        late = np.abs(self.state[:, 0] - before - steps * self.timestep) > self.timestep / 2
        self.diverged += int(np.count_nonzero(late | ~np.isfinite(self.state).all(axis=1)))

    def _advance_batch(self, periods: int, times: Times) -> int:
        batch, m = self._batch, self.model
        time, qpos, qvel = (batch.bind(name) for name in ("time", "qpos", "qvel"))
        ctrl = batch.bind("ctrl") if m.nu else None
        clock, nq, nv = time.reshape(-1), slice(1, 1 + m.nq), slice(1 + m.nq, 1 + m.nq + m.nv)
        before = self.state[:, 0].copy()
        clock[:], qpos[:], qvel[:] = before, self.state[:, nq], self.state[:, nv]
        for _ in range(periods):
            if m.nu:
                ctrl[:] = self.controls.next()
            times.measure(lambda: batch.step(nstep=HOLD))
        self.state[:, 0], self.state[:, nq], self.state[:, nv] = clock, qpos, qvel
        self._notice_divergence(before, periods * HOLD)
        return periods * HOLD * self.num_envs

    settle = Stiction.settle

    def take_state(self, other: MujocoC | Stiction):
        rows = np.arange(self.num_envs) % other.num_envs
        if isinstance(other, MujocoC):
            self.state = other.state[rows].copy()
        else:
            self.state[:, 1 : 1 + self.model.nq] = other.sim.qpos[rows]
            self.state[:, 1 + self.model.nq : 1 + self.model.nq + self.model.nv] = other.sim.qvel[rows]
        self.advance(4)

    def rest(self, seconds: float):
        steps = max(1, round(seconds / self.timestep))
        states = np.empty((self.num_envs, steps, self.state.shape[1]))
        control = np.tile(self.controls.home, (self.num_envs, 1, 1)) if self.model.nu else None
        self._runner.rollout(self.model, self._data, self.state, control, nstep=steps, state=states)
        self.state = states[:, -1].copy()

    def _at(self, world: int) -> mujoco.MjData:
        d = self._data[0]
        mujoco.mj_setState(self.model, d, self.state[world], self._spec)
        mujoco.mj_forward(self.model, d)
        return d

    def body_positions(self) -> np.ndarray:
        return np.stack([self._at(w).xpos.copy() for w in range(self.num_envs)])

    def active_and_penetration(self) -> tuple[np.ndarray, np.ndarray]:
        """Contacts with a normal force and margin - dist (m): what MuJoCo takes as the overlap."""
        active, deep, force = np.zeros(self.num_envs), np.zeros(self.num_envs), np.empty(6)
        for w in range(self.num_envs):
            d = self._at(w)
            for i, contact in enumerate(d.contact):
                mujoco.mj_contactForce(self.model, d, i, force)
                active[w] += force[0] > 0
                deep[w] = max(deep[w], contact.includemargin - contact.dist)
        return active, deep


def creep(engine, settle: float, seconds: float) -> np.ndarray:
    """Speed at which the fastest body of each environment moves on with home controls after ``settle`` seconds, m/s."""
    engine.rest(settle)
    before = engine.body_positions()
    engine.rest(seconds)
    return np.linalg.norm(engine.body_positions() - before, axis=2).max(axis=1) / seconds
