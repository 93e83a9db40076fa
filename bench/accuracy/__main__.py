"""``python -m bench.accuracy``: r_con/V under random policies, and what each part of SubADMM gives. See README.md."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import stiction

from bench.accuracy import oracle
from bench.step import machine
from bench.step.engines import Stiction
from bench.step.scenes import HOLD, SCENES, option

#: Robots, amplitude of their controls (whole range of the motors; home +- 0.5 rad of the servos), seconds simulated.
ROBOTS = {
    "ant": (SCENES["ant"], 1.0, 5.0),
    "ant, quiet": (SCENES["ant"], 0.1, 5.0),
    "humanoid": (SCENES["humanoid"], 0.4, 3.0),
    "anymal_c": (SCENES["anymal_c"], 0.5, 2.0),
    "anymal_c, standing": (SCENES["anymal_c"], 0.0, 2.0),
    "go1": (SCENES["go1"], 0.5, 2.0),
}
#: What all have in common: 20 iterations, whatever their residual.
COMMON = {"iterations": 20, "tolerance": 0.0}
#: What each column of the table changes; the last is the default.
VARIANTS = {
    "one beta": {"penalty": "common", "relaxation": 1.0, "anderson": False, "fallback": False},
    "beta per contact": {"penalty": "per_contact", "relaxation": 1.0, "anderson": False, "fallback": False},
    "B_n, B_t, alpha 1.5": {"anderson": False, "fallback": False},
    "+ Anderson": {"fallback": False},
    "+ Newton fallback": {},
}
#: Bounds of the default on the median of r_con/V; p99 is to be at most 1e-2 everywhere.
MEDIAN = {"ant": 1e-6, "go1": 1e-6, "humanoid": 5e-6, "anymal_c": 1e-4}
P99 = 1e-2
#: Which states the oracle judges again: those of every so-many-th step, of so many environments.
ORACLE_STEPS, ORACLE_ENVS = 10, 8


def rollout(scene, amplitude: float, seconds: float, num_envs: int, options: dict, dtype: str) -> dict:
    """Every step of every environment from the keyframe on, falls and landings included."""
    scene = replace(scene, amplitude=amplitude)
    model = stiction.Model.from_mjmodel(scene.mjmodel()).with_friction(torsional=0, rolling=0)  # which problems lack
    engine = Stiction(scene, model, num_envs, dtype=dtype, solver=stiction.SolverOptions(**options))
    sim, c = engine.sim, engine.sim.certificate
    fields = {name: [] for name in ("residual", "contacts", "rows", "dynamics", "fallback", "converged")}
    model_of_oracle, again = oracle.model(model), []
    for step in range(round(seconds / engine.timestep)):
        if step % HOLD == 0 and sim.ctrl.shape[1]:
            sim.ctrl[:] = engine.controls.next()
        sim.clear_status()
        before = sim.qpos.copy(), sim.qvel.copy(), sim.ctrl.copy()
        sim.step(1)
        fields["residual"].append(np.asarray(c.r_con) / np.asarray(c.scale))
        fields["contacts"].append(np.array(c.num_contacts))
        fields["rows"].append(np.array(c.r_row))
        fields["dynamics"].append(np.array(c.r_dyn))
        fields["converged"].append(np.array(c.converged))
        fields["fallback"].append((np.asarray(sim.status) & stiction.Status.FALLBACK) != 0)
        if model_of_oracle is not None and step % ORACLE_STEPS == 0:
            again += recomputed(model_of_oracle, sim, before)
    everything = {name: np.stack(values).ravel() for name, values in fields.items()}
    touching = everything["contacts"] > 0
    return {
        "in_contact": float(touching.mean()),
        "contacts": float(everything["contacts"][touching].mean()) if touching.any() else 0.0,
        "all": figures(everything, touching),
        "four_contacts": figures(everything, everything["contacts"] >= 4),
        "oracle": beside(again),
        "r_dyn_max": float(everything["dynamics"].max()),
        "status": stiction.Status.counts(sim.status),
    }


def recomputed(model_of_oracle, sim, before) -> list[tuple[float, float]]:
    """r_con / V of the certificate and by the oracle, on the problem it assembles from (q, v), of some states."""
    pairs = []
    for env in range(min(ORACLE_ENVS, sim.num_envs)):
        if sim.certificate.num_contacts[env] > 0:
            c = oracle.reference.certificate(*oracle.assembled(model_of_oracle, sim, before, env))
            pairs.append((sim.certificate.r_con[env] / sim.certificate.scale[env], c["r_con"] / c["scale"]))
    return pairs


def beside(pairs: list[tuple[float, float]]) -> dict | None:
    if not pairs:
        return None
    values = np.array(pairs, float)
    found = {"number": len(pairs)}
    for name, column in zip(("certificate", "from_q_v"), values.T, strict=True):
        found[name] = {f"p{p}": float(np.percentile(column, p)) for p in (50, 95, 99)}
    return found


def figures(everything: dict, chosen: np.ndarray) -> dict | None:
    if not chosen.any():
        return None
    r = everything["residual"][chosen]
    result = {f"p{p}": float(np.percentile(r, p)) for p in (50, 95, 99)}
    result |= {"max": float(r.max()), "share_below_1e-4": float(np.mean(r <= 1e-4)), "number": int(r.size)}
    result["rows_p99"] = float(np.percentile(everything["rows"][chosen], 99))
    return result | {name: float(np.mean(everything[name][chosen])) for name in ("fallback", "converged")}


def line(name: str, f: dict | None) -> str:
    if f is None:
        return f"  {name:34s} none"
    return (
        f"  {name:34s} {f['p50']:8.1e} {f['p95']:8.1e} {f['p99']:8.1e} "
        f"{100 * f['share_below_1e-4']:7.1f} {f['rows_p99']:8.1e} "
        f"{100 * f['fallback']:8.2f} {100 * f['converged']:9.2f} {f['number']:8d}"
    )


def oracle_line(f: dict | None) -> str:
    if f is None:
        return "  r_con/V from (q, v): the oracle is not built"
    ours, exact = (" ".join(f"{f[name][p]:.1e}" for p in ("p50", "p95", "p99")) for name in ("certificate", "from_q_v"))
    return f"  r_con/V from (q, v) by the oracle {exact}; the certificate on these {f['number']} states {ours}"


def verdict(name: str, f: dict | None) -> str:
    if f is None or name not in MEDIAN:
        return ""
    against = [f"median {f['p50']:.1e} > {MEDIAN[name]:.0e}"] if f["p50"] > MEDIAN[name] else []
    against += [f"p99 {f['p99']:.1e} > {P99:.0e}"] if f["p99"] > P99 else []
    return "  bounds met" if not against else "  bounds missed: " + "; ".join(against)


def run_robot(name: str, arguments) -> dict:
    scene, amplitude, seconds = ROBOTS[name]
    seconds *= arguments.length
    print(f"\n{name}: controls home +- {amplitude:g} held {HOLD} steps, {seconds:g} s, {arguments.envs} environments")
    columns = "     p50      p95      p99  % 1e-4  row p99 fallb. % converg.%   states"
    print(f"  {'r_con/V':34s} {columns}")
    result = {"robot": name, "amplitude": amplitude, "seconds": seconds, "variants": {}}
    for variant in arguments.variants:
        options = COMMON | dict(arguments.option) | VARIANTS[variant]
        found = rollout(scene, amplitude, seconds, arguments.envs, options, arguments.dtype)
        result["variants"][variant] = found
        print(line(variant, found["all"]))
        print(line("    >= 4 contacts", found["four_contacts"]), flush=True)
    print(f"  in contact {100 * found['in_contact']:.1f} %, then {found['contacts']:.2f} contacts")
    print(oracle_line(found["oracle"]))
    if variant == list(VARIANTS)[-1]:
        print(verdict(name, found["all"]))
    return result


def summary(result: dict) -> str:
    """The table of medians and tails: median / p99 (share at most 1e-4 V)."""
    names = list(result["robots"][0]["variants"])
    lines = ["", "| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for robot in result["robots"]:
        cells = []
        for variant in names:
            f = robot["variants"][variant]["all"]
            cells.append(f"{f['p50']:.0e} / {f['p99']:.0e} ({100 * f['share_below_1e-4']:.0f} %)" if f else "")
        lines.append(f"| {robot['robot']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy", description=__doc__)
    add = parser.add_argument
    add("--robots", nargs="+", default=list(ROBOTS), choices=list(ROBOTS))
    add("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    add("--envs", type=int, default=64)
    add("--length", type=float, default=1.0, help="of the rollouts, as a multiple of each robot's")
    add("--dtype", default="float32", choices=("float32", "float64"))
    add("--option", nargs="+", type=option, default=[], metavar="NAME=VALUE", help="fields of stiction.SolverOptions")
    add("--output", type=Path, help="JSON; default bench/results/<machine>/accuracy.json; '-' writes none")
    arguments = parser.parse_args(argv)

    result = {"machine": machine.description(), "options": COMMON | dict(arguments.option), "envs": arguments.envs}
    result |= {"dtype": arguments.dtype, "robots": [run_robot(name, arguments) for name in arguments.robots]}
    print(summary(result))
    machine.record(arguments.output, "accuracy.json", result)
    return result


if __name__ == "__main__":
    main()
