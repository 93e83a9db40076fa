"""``python -m bench.solvers.rules``: what friction holds without an exact solve. See bench/README.md.

Scenes of `worlds`, stepped in NumPy (`steps`) with the rules that simulators have for contact:

``springs``    spring and damper in each contact, friction along the slip, capped by the cone: explicit, no solve, as
               stiff as the step lets it be.
``soft``       MuJoCo's model with elliptic cones and impratio 10: a convex problem with its compliance, by SAP.
``noslip``     the same, then Gauss-Seidel on friction alone, without compliance and with normal impulses held: what
               MuJoCo's ``noslip_iterations`` do.
``anchors``    the same as soft, and each contact that sticks remembers how far it has crept and is pulled back by a
               fifth of that: Newton Steel's friction anchors (without its patches: every contact has one).
``exact``      Coulomb's law, by CANAL.

A rule takes a `steps.Step` and gives impulses (nc, 3), N s.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mujoco
import numpy as np
import stiction

from bench.progress import progress, tell
from bench.solvers import steps
from bench.solvers.baselines import project_strict
from bench.solvers.worlds import ENVS, PERIOD, WORLDS
from bench.step import machine

IMPRATIO = 10.0  # of the soft ones
PULL = 0.2  # of what an anchor remembers, a step


def springs(step: steps.Step, stiffness=0.1, damping=0.3, drag=0.2) -> np.ndarray:
    """Explicit, from the velocities at the step's start; the numbers are k m/h^2, c m/h and c_t m/h of each contact
    alone, m = 1 / W_ii, such that four of them on one body are stable."""
    h, W = step.timestep, step.mobility
    mass = 1 / np.column_stack([W.max(1), W.max(1), W[:, 2]])
    w = (step.J @ step.before).reshape(-1, 3)
    pushed = stiffness * mass[:, 2] * -step.gap / h - damping * mass[:, 2] * w[:, 2]
    trial = np.column_stack([-drag * mass[:, :2] * w[:, :2], np.where(step.gap < 0, pushed, 0)])
    return project_strict(trial, step.mu)


def soft(step: steps.Step) -> np.ndarray:
    return convex(step, step.soft_bias, step.soft_compliance)


def convex(step: steps.Step, e: np.ndarray, R: np.ndarray) -> np.ndarray:
    return stiction.solve(step.problem(e, R), "sap", tolerance=1e-9, max_iterations=200).impulse


def noslip(step: steps.Step, sweeps: int = 10) -> np.ndarray:
    impulse, W, q = soft(step), step.delassus, step.free + step.soft_bias.ravel()
    for _ in range(sweeps):
        for i in range(len(impulse)):
            t = slice(3 * i, 3 * i + 2)
            slip = W[t] @ impulse.ravel() + q[t] - W[t, t] @ impulse[i, :2]
            impulse[i, :2] = within_disk(W[t, t], slip, step.mu[i] * impulse[i, 2])
    return impulse


def within_disk(W: np.ndarray, slip: np.ndarray, radius: float) -> np.ndarray:
    """The l (2,) of least l'W l / 2 + l'slip with |l| <= radius; what cannot move at all is left at 0."""
    values, axes = np.linalg.eigh(W)
    if not values[0] > 1e-12 * max(values[1], 1e-300):
        return np.zeros(2)
    pull = -(axes.T @ slip)
    if np.linalg.norm(pull / values) <= radius:
        return axes @ (pull / values)
    if not radius > 0:
        return np.zeros(2)
    more = 0.0  # (W + more) l = -slip; 1 / |l| is concave in it and nearly straight: Newton rises to |l| = radius
    for _ in range(20):
        point = pull / (values + more)
        size = np.linalg.norm(point)
        gain = (size - radius) / radius * size**2 / (point @ (point / (values + more)))
        more += gain
        if gain <= 1e-14 * more:
            break
    point = pull / (values + more)
    return axes @ (point * (radius / np.linalg.norm(point)))


class Anchors:
    """Of one environment: what each contact has crept since it stuck (nc, 3), m; forgotten where it slides or where a
    pair of geoms has another number of contacts than before."""

    def __init__(self):
        self.crept, self.geoms = np.zeros((0, 3)), np.zeros((0, 2), int)

    def __call__(self, step: steps.Step) -> np.ndarray:
        if not np.array_equal(self.geoms, step.geoms):
            self.crept, self.geoms = np.zeros((len(step.mu), 3)), step.geoms
        e, tangents = step.soft_bias.copy(), step.frame[:, :2]
        e[:, :2] += PULL / step.timestep * np.einsum("ijk,ik->ij", tangents, self.crept)
        impulse = convex(step, e, step.soft_compliance)
        w = (step.J @ step.velocity(impulse)).reshape(-1, 3)
        sticks = np.linalg.norm(impulse[:, :2], axis=1) < (1 - 1e-6) * step.mu * impulse[:, 2]
        moved = step.timestep * np.einsum("ijk,ij->ik", tangents, w[:, :2])
        self.crept = np.where(sticks[:, None], self.crept + moved, 0)
        return impulse


#: A fresh rule for each environment.
RULES = {
    "springs": lambda: springs,
    "soft": lambda: soft,
    "noslip": lambda: noslip,
    "anchors": Anchors,
    "exact": lambda: steps.exact,
}


def run(world, name: str, timestep: float, envs: int, bar=None) -> list[float]:
    """The world's errors, of so many of its environments."""
    model = world.model()
    model.opt.timestep, model.opt.cone, model.opt.impratio = timestep, mujoco.mjtCone.mjCONE_ELLIPTIC, IMPRATIO
    periods, count = round(world.seconds / PERIOD), round(PERIOD / timestep)
    controls = np.array([world.controls(model, period * PERIOD) for period in range(periods)])
    path, starts = np.full((periods, ENVS, model.nq), np.nan), world.start(model)
    chosen = np.linspace(0, ENVS - 1, envs).round().astype(int)
    for env in chosen:
        qpos, qvel = (start[env] for start in starts)
        tell(bar, f"{world.title}, {name}")
        data, rule = mujoco.MjData(model), RULES[name]()
        data.qpos[:], data.qvel[:] = qpos, qvel
        for period in range(periods):
            data.ctrl[:] = controls[period, env]
            for _ in range(count):
                step = steps.assembled(model, data)
                impulse = rule(step) if len(step.mu) else np.zeros((0, 3))
                steps.advance(model, data, step.velocity(impulse))
            path[period, env] = data.qpos
    errors = world.errors(model, path, None)[chosen]
    return np.where(np.isfinite(errors), errors, np.inf).tolist()


def table(result: dict) -> str:
    """Medians and worst."""
    worlds = {name: WORLDS[name] for name in result["worlds"]}
    lines = ["| | " + " | ".join(f"{world.title}, {world.unit}" for world in worlds.values()) + " |"]
    lines.append("|---" * (len(worlds) + 1) + "|")
    for rule, errors in result["errors"].items():
        found = [world.per * np.array(errors[name]) for name, world in worlds.items()]
        lines.append(f"| {rule} | " + " | ".join(f"{np.median(f):.2g} / {f.max():.2g}" for f in found) + " |")
    return "\n".join(lines)


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.solvers.rules", description=__doc__)
    known = [name for name, world in WORLDS.items() if not world.reference]
    add = parser.add_argument
    add("--worlds", nargs="+", default=known, choices=known)
    add("--rules", nargs="+", default=list(RULES), choices=list(RULES))
    add("--envs", type=int, default=4, help=f"of each world's {ENVS}, spread over them")
    add("--timestep", type=float, default=0.002, help="s; divides 10 ms")
    add("--output", type=Path, help="JSON; default bench/results/<machine>/rules.json; '-': none")
    arguments = parser.parse_args(argv)
    result = {"machine": machine.description(), "timestep": arguments.timestep, "worlds": arguments.worlds}
    result |= {"envs": arguments.envs, "rules": arguments.rules, "errors": {}}
    with progress(len(arguments.rules) * len(arguments.worlds) * arguments.envs, "environment") as bar:
        for rule in arguments.rules:
            errors = {
                name: run(WORLDS[name], rule, arguments.timestep, arguments.envs, bar) for name in arguments.worlds
            }
            result["errors"][rule] = errors
    print(table(result))
    machine.record(arguments.output, "rules.json", result)
    return result


if __name__ == "__main__":
    main()
