"""stiction and MuJoCo C on a scene of `worlds`: where things are every `PERIOD`, and the CPU seconds of stepping.

`ours` and `mujocos` are what is swept of each: here tolerance, passes, fallback, precision and step; there cone,
impratio, noslip, solver, tolerance, iterations, stiffness and step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import mujoco
import numpy as np
import stiction

from bench.accuracy import sticking
from bench.solvers.worlds import ENVS, PERIOD
from bench.step.engines import Times

UNSTABLE = (mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC)
TIMESTEPS = (0.001, 0.002, 0.005, 0.01)  # s
LEVELS = {
    "20 passes": {"iterations": 20, "fallback": False},
    "no fallback": {"fallback": False},
    "default": {},
    "double": {"iterations": 300, "tolerance": 1e-8},
}
ELLIPTIC = {"cone": mujoco.mjtCone.mjCONE_ELLIPTIC}
MUJOCO = sticking.MUJOCO | {
    "3 iterations": {"iterations": 3},
    "tolerance 1e-4": {"tolerance": 1e-4},
    "CG": {"solver": mujoco.mjtSolver.mjSOL_CG},
    "PGS": {"solver": mujoco.mjtSolver.mjSOL_PGS},
    "elliptic": ELLIPTIC,
    "elliptic, impratio 100": ELLIPTIC | {"impratio": 100.0},
}
#: Those also tried with the stiffest contacts.
STIFF = ("default", "elliptic, impratio 10", "elliptic, impratio 10, noslip 10")


@dataclass(frozen=True)
class Ours:
    """``options``: of `stiction.SolverOptions`, the solver's name among them."""

    variant: str
    timestep: float
    options: dict
    dtype: str = "float32"

    @property
    def engine(self) -> str:
        return self.options["name"]

    def run(self, world) -> tuple[np.ndarray, float, dict]:
        mjmodel = world.model()
        sim = stiction.Simulation(
            stiction.Model.from_mjmodel(mjmodel),
            ENVS,
            dtype=self.dtype,
            timestep=self.timestep,
            solver=stiction.SolverOptions(**self.options),
            num_threads=1,
        )
        sim.qpos[:], sim.qvel[:] = world.start(mjmodel)
        sim.forward()
        sim.clear_status()
        times, path = Times(), []
        for period in range(round(world.seconds / PERIOD)):
            if mjmodel.nu:
                sim.ctrl[:] = world.controls(mjmodel, period * PERIOD)
            times.measure(sim.step, round(PERIOD / self.timestep))
            path.append(sim.qpos.astype(float))
        status = np.asarray(sim.status)
        told = {"fallback": stiction.Status.FALLBACK, "not_converged": stiction.Status.NOT_CONVERGED}
        told = {name: float(np.mean(status & bit != 0)) for name, bit in told.items()}
        return np.array(path), times.cpu, told


@dataclass(frozen=True)
class Mujocos:
    """``options``: of MjOption; ``stiff``: contacts as stiff as MuJoCo lets them be, a time constant of two steps."""

    variant: str
    timestep: float
    options: dict = field(default_factory=dict)
    stiff: bool = False
    engine: str = "MuJoCo"

    def run(self, world) -> tuple[np.ndarray, float, dict]:
        model = world.model()
        model.opt.timestep = self.timestep
        for name, value in self.options.items():
            setattr(model.opt, name, value)
        if self.stiff:
            model.geom_solref[:] = 2 * self.timestep, 1
        periods, steps = round(world.seconds / PERIOD), round(PERIOD / self.timestep)
        controls = np.array([world.controls(model, period * PERIOD) for period in range(periods)])
        times, path, unstable = Times(), np.empty((periods, ENVS, model.nq)), 0

        def roll(data, env):
            for period in range(periods):
                data.ctrl[:] = controls[period, env]
                mujoco.mj_step(model, data, steps)
                path[period, env] = data.qpos

        for env, (qpos, qvel) in enumerate(zip(*world.start(model), strict=True)):
            data = mujoco.MjData(model)
            data.qpos[:], data.qvel[:] = qpos, qvel
            times.measure(roll, data, env)
            unstable += any(data.warning[kind].number for kind in UNSTABLE)
        return path, times.cpu, {"unstable": unstable / ENVS}


def ours(solvers=None, timesteps=TIMESTEPS) -> list[Ours]:
    """Every solver at every level and step."""
    return [
        Ours(level, timestep, {"name": name} | options, "float64" if level == "double" else "float32")
        for name in solvers or stiction.solver_names()
        for timestep in timesteps
        for level, options in LEVELS.items()
    ]


def mujocos(timesteps=TIMESTEPS) -> list[Mujocos]:
    variants = [Mujocos(name, h, options) for h in timesteps for name, options in MUJOCO.items()]
    return variants + [Mujocos(f"stiff, {name}", h, MUJOCO[name], stiff=True) for h in timesteps for name in STIFF]


def exact(timestep: float, solver: str = "canal") -> Ours:
    """What others are compared with where no formula says what is right: double, to 1e-9 of V."""
    return Ours(
        "reference", timestep, {"name": solver, "iterations": 1000, "tolerance": 1e-9, "certify": 1e-8}, "float64"
    )
