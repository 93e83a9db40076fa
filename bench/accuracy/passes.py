"""``python -m bench.accuracy.passes``: how many passes each solver takes on robots, and what comes after them.

Every step of every environment under random controls, from a settled state on: passes, the residual of the solver's law
over V, the share of steps that the fallback answered or that stayed above `certify`, and of environments that ever did.
Worlds of a pack wait for each other: "of a pack of 16" is the mean of what the slowest of 16 neighbours takes.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import stiction

from bench.accuracy.claims import residual_of
from bench.step import machine
from bench.step.engines import Stiction
from bench.step.scenes import HOLD, SCENES, option

PACK = 16
HEAD = "| | solver | contacts | passes p50 / p99 | of a pack of 16 | r/V p50 / p99 | fallback | not there | ever |"


def run(scene, solver: str, arguments) -> dict:
    if arguments.amplitude is not None:
        scene = replace(scene, amplitude=arguments.amplitude)
    options = stiction.SolverOptions(name=solver, **dict(arguments.option))
    model = stiction.Model.from_mjmodel(scene.mjmodel())
    try:
        stiction.Simulation(model, 1, solver=options)
    except ValueError as error:  # Go1's feet have torsional and rolling friction
        if "couples" not in str(error):
            raise
        model = model.with_friction(torsional=0, rolling=0)
    engine = Stiction(scene, model, arguments.envs, dtype=arguments.dtype, solver=options)
    engine.settle()
    sim, c = engine.sim, engine.sim.certificate
    told = {name: [] for name in ("iterations", "contacts", "residual", "fallback", "not_converged")}
    for step in range(arguments.steps):
        if step % HOLD == 0 and sim.ctrl.shape[1]:
            sim.ctrl[:] = engine.controls.next()
        sim.clear_status()
        sim.step()
        told["iterations"].append(np.array(c.iterations))
        told["contacts"].append(np.array(c.num_contacts))
        told["residual"].append(np.asarray(getattr(c, residual_of(sim.solver))) / np.asarray(c.scale))
        for name in ("fallback", "not_converged"):
            told[name].append((np.asarray(sim.status) & stiction.Status[name.upper()]) != 0)
    told = {name: np.stack(values) for name, values in told.items()}
    touching = told["contacts"] > 0
    packs = told["iterations"][:, : arguments.envs // PACK * PACK].reshape(arguments.steps, -1, PACK)

    def points(values):
        return {f"p{p}": float(np.percentile(values, p)) for p in (50, 90, 99)} if values.size else None

    return {
        "scene": scene.name,
        "amplitude": scene.amplitude,
        "solver": solver,
        "contacts": float(told["contacts"].mean()),
        "passes": points(told["iterations"][touching]),
        "passes_of_a_pack": float(packs.max(axis=2).mean()) if packs.size else None,
        "residual_over_V": points(told["residual"][touching]),
        "fallback": float(told["fallback"].mean()),
        "not_converged": float(told["not_converged"].mean()),
        "environments_ever_not_converged": float(told["not_converged"].any(axis=0).mean()),
    }


def cells(found: dict) -> list[str]:
    passes, residual, pack = found["passes"], found["residual_over_V"], found["passes_of_a_pack"]
    return [
        found["scene"],
        found["solver"],
        f"{found['contacts']:.1f}",
        f"{passes['p50']:.0f} / {passes['p99']:.0f}" if passes else "",
        f"{pack:.0f}" if pack else "",
        f"{residual['p50']:.0e} / {residual['p99']:.0e}" if residual else "",
        f"{100 * found['fallback']:.2f} %",
        f"{100 * found['not_converged']:.3f} %",
        f"{100 * found['environments_ever_not_converged']:.1f} %",
    ]


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy.passes", description="passes of solvers on robots")
    add = parser.add_argument
    add("--scenes", nargs="+", default=["ant", "humanoid", "anymal_c", "go1"], choices=list(SCENES))
    add("--solvers", nargs="+", default=["subadmm"], choices=stiction.solver_names())
    add("--amplitude", type=float, help="of the controls, around home; default the scene's")
    add("--envs", type=int, default=512)
    add("--steps", type=int, default=300)
    add("--dtype", default="float32", choices=("float32", "float64"))
    add("--option", nargs="+", type=option, default=[], metavar="NAME=VALUE", help="fields of stiction.SolverOptions")
    add("--output", type=Path, help="JSON; default bench/results/<machine>/passes.json; '-' writes none")
    arguments = parser.parse_args(argv)
    result = {"machine": machine.description(), "options": dict(arguments.option), "dtype": arguments.dtype}
    result |= {"envs": arguments.envs, "steps": arguments.steps, "runs": []}
    print(HEAD + "\n" + "|---" * (HEAD.count("|") - 1) + "|")
    for name in arguments.scenes:
        for solver in arguments.solvers:
            result["runs"].append(run(SCENES[name], solver, arguments))
            print("| " + " | ".join(cells(result["runs"][-1])) + " |", flush=True)
    machine.record(arguments.output, "passes.json", result)
    return result


if __name__ == "__main__":
    main()
