"""One world of an `mjModel` in either engine, driven by the same calls."""

from __future__ import annotations

import mujoco
import numpy as np
import stiction


class Ours:
    """stiction, with options of `Simulation`."""

    def __init__(self, m: mujoco.MjModel, **options):
        self.sim = stiction.Simulation(stiction.Model.from_mjmodel(m), 1, num_threads=1, **options)
        self.qpos, self.qvel, self.ctrl = self.sim.qpos[0], self.sim.qvel[0], self.sim.ctrl[0]
        self.xfrc, self.timestep = self.sim.xfrc_applied[0], m.opt.timestep

    def advance(self, seconds: float) -> None:
        self.sim.step(max(1, round(seconds / self.timestep)))

    def overlap(self) -> float:
        """The deepest of the last `advance`, m."""
        return float(self.sim.certificate.penetration[0])

    def points(self) -> int:
        """Contacts that carry more than a thousandth of the most, in the last step."""
        return carrying(self.sim.contact.impulse[0, :, 2])

    def finite(self) -> bool:
        return not self.sim.status[0] & int(stiction.Status.NON_FINITE)


class MuJoCos:
    """MuJoCo C, with fields of its options."""

    def __init__(self, m: mujoco.MjModel, **options):
        self.m, self.d = m, mujoco.MjData(m)
        for name, value in options.items():
            setattr(m.opt, name, value)
        self.qpos, self.qvel, self.ctrl, self.xfrc = self.d.qpos, self.d.qvel, self.d.ctrl, self.d.xfrc_applied
        self.timestep = m.opt.timestep

    def advance(self, seconds: float) -> None:
        mujoco.mj_step(self.m, self.d, max(1, round(seconds / self.timestep)))

    def overlap(self) -> float:
        """Of the last step, m."""
        return float(-min(0.0, self.d.contact.dist.min(initial=0.0)))

    def points(self) -> int:
        """Contacts that carry more than a thousandth of the most, in the last step."""
        force, found = np.zeros(6), []
        for i in range(self.d.ncon):
            mujoco.mj_contactForce(self.m, self.d, i, force)
            found.append(force[0])
        return carrying(np.array(found))

    def finite(self) -> bool:
        return bool(np.isfinite(self.d.qpos).all()) and not self.d.warning.number.any()


ENGINES = {"stiction": Ours, "MuJoCo": MuJoCos}


def carrying(normal: np.ndarray) -> int:
    return int(np.count_nonzero(normal > 1e-3 * normal.max(initial=0.0)))


def turned(q, by) -> float:
    """The angle between two orientations, rad; by their difference, which rounds less than their product."""
    q, by = (np.array(x, float) / np.linalg.norm(x) for x in (q, by))
    return float(4 * np.arcsin(min(np.linalg.norm(q - by), np.linalg.norm(q + by)) / 2))
