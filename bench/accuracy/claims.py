"""``python -m bench.accuracy.claims``: how often SubADMM, or another, in double may claim convergence. See README.md.

r_con <= 1e-8 V, and every other row as close, within 200 iterations; on contact states of random-policy rollouts and on
random robots whose contact rows are independent. Claims by r_con and r_ccp are judged again by the oracle, if built.
``--solver sap --claim 1e-6``: another solver, another claim, by the residual of the solver's law.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import stiction

from bench.accuracy import oracle
from bench.accuracy.__main__ import COMMON, ROBOTS
from bench.step import machine
from bench.step.engines import Stiction
from bench.step.scenes import HOLD, option

CLAIM = 1e-8  # of V
#: SubADMM alone, stopped a little below what it is to claim.
SOLVER = {"iterations": 200, "tolerance": 0.1 * CLAIM, "certify": CLAIM, "fallback": False}
#: By what a solver is judged: its law's residual.
RESIDUALS = {"coulomb": "r_con", "convex": "r_ccp", "dissipation": "r_mdp"}
JUDGED = ("r_con", "r_ccp")  # by the oracle
STARTS = {"cold": {"warm_start": False}, "warm": {}}
#: Shares of claims that are asked for.
NEEDED = {"robots": 0.95, "random": 0.99}


def residual_of(solver: stiction.SolverOptions) -> str:
    return RESIDUALS[solver.law]


def judged(sim: stiction.Simulation, before, model_of_oracle, env: int) -> float:
    """Residual / V of the step just taken, by the oracle on the problem that it assembles from (q, v, ctrl)."""
    c = oracle.reference.certificate(*oracle.assembled(model_of_oracle, sim, before, env))
    return c[residual_of(sim.solver)] / c["scale"]


class Tally:
    """Claims of the environments that ended with an impulse, by the residual of the solver's law."""

    def __init__(self, claim: float = CLAIM):
        self.rows, self.judged, self.false, self.claim = [], 0, 0, claim

    def add(self, sim: stiction.Simulation, before, model_of_oracle, sample: int = 1):
        """``sample``: every so-many-th claim goes to the oracle."""
        c = sim.certificate
        name = residual_of(sim.solver)
        residual, known = getattr(c, name), name in JUDGED and model_of_oracle is not None
        for env in np.flatnonzero(np.asarray(c.num_contacts) > 0):
            claims = bool(c.converged[env])
            self.rows.append((residual[env] / c.scale[env], c.num_contacts[env], c.iterations[env], claims))
            if claims and known and len(self.rows) % sample == 0:
                self.judged += 1
                self.false += judged(sim, before, model_of_oracle, env) > 1.01 * self.claim + 1e-12
        return self

    def figures(self) -> dict:
        r, contacts, iterations, claims = np.array(self.rows, float).reshape(-1, 4).T
        return {
            "states": len(r),
            "contacts": float(contacts.mean()),
            "claims": float(claims.mean()),
            "iterations": {"mean": float(iterations.mean())}
            | {f"p{p}": float(np.percentile(iterations, p)) for p in (50, 95, 100)},
            "residual_over_V": {f"p{p}": float(np.percentile(r, p)) for p in (50, 95, 99)},
            "judged": self.judged,
            "false_claims": self.false,
        }


def on_rollout(
    scene, amplitude: float, seconds: float, num_envs: int, *, every=5, sample=5, claim=CLAIM, couples=False, **options
):
    """Tallies by start: the contact states of every so-many-th step of a rollout are solved anew.

    ``couples``: with the file's torsional and rolling friction, which the oracle lacks.
    """
    scene = replace(scene, amplitude=amplitude)
    model = stiction.Model.from_mjmodel(scene.mjmodel())
    model = model if couples else model.with_friction(torsional=0, rolling=0)
    engine = Stiction(scene, model, num_envs, dtype="float64", solver=stiction.SolverOptions(**COMMON))
    solvers = {
        name: stiction.Simulation(
            model, num_envs, dtype="float64", solver=stiction.SolverOptions(**SOLVER | start | options), num_threads=1
        )
        for name, start in STARTS.items()
    }
    tallies = {name: Tally(claim) for name in solvers}
    model_of_oracle = None if couples else oracle.model(model)
    sim = engine.sim
    for step in range(round(seconds / engine.timestep)):
        if step % HOLD == 0 and sim.ctrl.shape[1]:
            sim.ctrl[:] = engine.controls.next()
        if step % every == every - 1:
            state = sim.get_state()
            for name, solver in solvers.items():
                solver.set_state(state)
                solver.step()
                tallies[name].add(solver, (state.qpos, state.qvel, state.ctrl), model_of_oracle, sample)
        sim.step()
    return tallies


def _numbers(values) -> str:
    return " ".join(f"{float(x):.17g}" for x in np.ravel(values))


def random_robot(rng: np.random.Generator) -> tuple[mujoco.MjModel, np.ndarray, np.ndarray]:
    """(model, qpos, qvel) of a floating body with one to four limbs of three hinges, each with its foot on a plane.

    Axes, offsets, masses (over three decades), friction, and the directions of the planes are random; three hinges and
    the base make the contact rows independent.
    """
    limbs, parts = rng.integers(1, 5), []
    silent = 'contype="0" conaffinity="0"'
    for limb in range(limbs):
        mass, place, friction = 10 ** rng.uniform(-2, 0), _numbers(rng.uniform(-0.3, 0.3, 3)), rng.uniform(0, 1.5)
        inside = (
            f'<geom type="sphere" size="0.03" mass="{mass}" pos="{place}" friction="{friction}"'
            f' contype="{1 << limb}" conaffinity="0"/>'
        )
        for link in range(3):
            size, mass = _numbers(10 ** rng.uniform(-2, -0.7, 3)), 10 ** rng.uniform(-1, 1)
            armature = 10 ** rng.uniform(-4, -1) if rng.random() < 0.5 else 0
            inside += f'<geom type="box" size="{size}" mass="{mass}" {silent}/>' if link else ""
            place, axis = _numbers(rng.uniform(-0.3, 0.3, 3)), _numbers(rng.standard_normal(3))
            inside = f'<body pos="{place}"><joint axis="{axis}" armature="{armature}"/>{inside}</body>'
        parts.append(inside)
    planes = "".join(
        f'<geom type="plane" size="0 0 1" friction="0" contype="0" conaffinity="{1 << limb}"/>' for limb in range(limbs)
    )
    base = f'<freejoint/><geom type="box" size=".2 .1 .1" mass="{10 ** rng.uniform(0, 1.5)}" {silent}/>'
    m = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="0.005"/><worldbody>{planes}<body>{base}{"".join(parts)}</body></worldbody></mujoco>'
    )
    d = mujoco.MjData(m)
    mujoco.mj_integratePos(m, d.qpos, rng.standard_normal(m.nv), 1.0)
    mujoco.mj_kinematics(m, d)
    for foot in np.flatnonzero(m.geom_type == mujoco.mjtGeom.mjGEOM_SPHERE):
        plane = int(m.geom_contype[foot]).bit_length() - 1
        normal = rng.standard_normal(3)
        normal /= np.linalg.norm(normal)
        quat = np.array([1 + normal[2], -normal[1], normal[0], 0])
        m.geom_quat[plane] = quat / np.linalg.norm(quat)
        m.geom_pos[plane] = d.geom_xpos[foot] - (0.03 + rng.uniform(-0.004, 0.001)) * normal
    return m, d.qpos.copy(), 10 ** rng.uniform(-1, 1) * rng.standard_normal(m.nv)


def on_random_robots(number: int, *, first=0, claim=CLAIM, **options) -> Tally:
    """The tally of so many random robots, one step of each from cold."""
    tally = Tally(claim)
    for seed in range(first, first + number):
        mjmodel, qpos, qvel = random_robot(np.random.default_rng(seed))
        model = stiction.Model.from_mjmodel(mjmodel)
        solver = stiction.SolverOptions(**SOLVER | STARTS["cold"] | options)
        sim = stiction.Simulation(model, dtype="float64", solver=solver, num_threads=1)
        sim.qpos[:], sim.qvel[:] = qpos, qvel
        before = sim.qpos.copy(), sim.qvel.copy(), sim.ctrl.copy()
        sim.step()
        tally.add(sim, before, oracle.model(model))
    return tally


def line(name: str, f: dict, needed: float) -> str:
    r, it = f["residual_over_V"], f["iterations"]
    truth = f"{f['false_claims']} of {f['judged']} claims false" if f["judged"] else "not judged by the oracle"
    truth += "" if f["claims"] >= needed else "; too few claims"
    return (
        f"  {name:26s} {100 * f['claims']:7.2f} {f['states']:7d} {f['contacts']:6.2f} {it['mean']:5.1f} "
        f"{it['p50']:5.0f} {it['p95']:5.0f} {it['p100']:5.0f} {r['p50']:8.1e} {r['p95']:8.1e} {r['p99']:8.1e}  {truth}"
    )


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy.claims", description=__doc__)
    add = parser.add_argument
    add("--robots", nargs="*", default=list(ROBOTS), choices=list(ROBOTS))
    add("--envs", type=int, default=64)
    add("--length", type=float, default=1.0, help="of the rollouts, as a multiple of each robot's")
    add("--solver", default="subadmm")
    add("--claim", type=float, default=CLAIM, help="times V")
    add("--couples", action="store_true", help="keep torsional and rolling friction; then the oracle does not judge")
    add("--random", type=int, default=2000, help="number of random robots")
    add("--option", nargs="+", type=option, default=[], metavar="NAME=VALUE", help="fields of stiction.SolverOptions")
    add("--output", type=Path, help="JSON; default bench/results/<machine>/claims.json; '-' writes none")
    arguments = parser.parse_args(argv)

    claim = {"name": arguments.solver, "claim": arguments.claim, "certify": arguments.claim}
    claim["tolerance"] = arguments.claim * (0.1 if arguments.solver == "subadmm" else 1)
    claim |= dict(arguments.option)
    law = stiction.SolverOptions(**SOLVER | {k: v for k, v in claim.items() if k != "claim"}).law
    title = f"{RESIDUALS[law]} <= {arguments.claim:g} V"
    print(
        f"{title:28s} {'%':>7s} {'states':>7s} {'cont.':>6s} {'iter.':>5s} {'p50':>5s} {'p95':>5s} {'most':>5s} "
        f"{'r/V':>8s} {'p95':>8s} {'p99':>8s}"
    )
    result = {"machine": machine.description(), "solver": SOLVER | claim, "robots": {}}
    for name in arguments.robots:
        scene, amplitude, seconds = ROBOTS[name]
        tallies = on_rollout(
            scene, amplitude, seconds * arguments.length, arguments.envs, couples=arguments.couples, **claim
        )
        result["robots"][name] = {start: tally.figures() for start, tally in tallies.items()}
        for start, figures in result["robots"][name].items():
            print(line(f"{name}, {start}", figures, NEEDED["robots"]), flush=True)
    if arguments.random:
        result["random"] = on_random_robots(arguments.random, **claim).figures()
        print(line("random robots, cold", result["random"], NEEDED["random"]), flush=True)
    machine.record(arguments.output, "claims.json", result)
    return result


if __name__ == "__main__":
    main()
