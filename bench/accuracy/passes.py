"""``python -m bench.accuracy.passes``: how many passes each solver takes on robots, and what comes after them.

Every step of every environment under random controls, from a settled state on: passes, the residual of the solver's law
over V, the share of steps that the fallback answered, that stayed above `certify` (NOT_CONVERGED) or that left contacts
out (CONTACT_OVERFLOW), and of environments that ever stayed above. Worlds of a pack wait for each other: "of a pack of
16" is the mean of what the slowest of 16 neighbours takes. ``--full-range`` asks for more than a policy would: controls
uniform in their ranges (-1 to 1 where they have none), from the start on.
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
from bench.step.scenes import HOLD, SCENES, Controls, Scene, option

PACK = 16
HEAD = (
    "| | solver | contacts | passes p50 / p99 | of a pack of 16 | r/V p50 / p99 "
    "| fallback | not there | ever | overflow |"
)
STATUS = ("FALLBACK", "NOT_CONVERGED", "CONTACT_OVERFLOW")


class FullRange(Controls):
    """Uniform in the ranges of controls."""

    def next(self) -> np.ndarray:
        bounded = np.isfinite(self.high)
        low, high = np.where(bounded, self.low, -1), np.where(bounded, self.high, 1)
        return self._random.uniform(low, high, self.shape)


def scene_of(name: str) -> Scene:
    """A scene by its name, or a file."""
    path = Path(name)
    if name in SCENES:
        return SCENES[name]
    if not path.suffix:
        raise argparse.ArgumentTypeError(f"no scene {name!r}; there are {', '.join(SCENES)}, and files")
    return Scene(f"{path.parent.name}/{path.name.split('.')[0]}", (name,), 0.1, 1.0)


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
    if arguments.full_range:
        engine.controls = FullRange(model.mjmodel, 0, arguments.envs)
    else:
        engine.settle()
    sim, c = engine.sim, engine.sim.certificate
    told = {name: [] for name in ("iterations", "contacts", "residual", *STATUS)}
    for step in range(arguments.steps):
        if step % HOLD == 0 and sim.ctrl.shape[1]:
            sim.ctrl[:] = engine.controls.next()
        sim.clear_status()
        sim.step()
        told["iterations"].append(np.array(c.iterations))
        told["contacts"].append(np.array(c.num_contacts))
        told["residual"].append(np.asarray(getattr(c, residual_of(sim.solver))) / np.asarray(c.scale))
        for name in STATUS:
            told[name].append((np.asarray(sim.status) & stiction.Status[name]) != 0)
    told = {name: np.stack(values) for name, values in told.items()}
    touching = told["contacts"] > 0
    packs = told["iterations"][:, : arguments.envs // PACK * PACK].reshape(arguments.steps, -1, PACK)

    def points(values):
        return {f"p{p}": float(np.percentile(values, p)) for p in (50, 90, 99)} if values.size else None

    return {
        "scene": scene.name,
        "amplitude": None if arguments.full_range else scene.amplitude,
        "solver": solver,
        "contacts": float(told["contacts"].mean()),
        "passes": points(told["iterations"][touching]),
        "passes_of_a_pack": float(packs.max(axis=2).mean()) if packs.size else None,
        "residual_over_V": points(told["residual"][touching]),
        **{name.lower(): float(told[name].mean()) for name in STATUS},
        "environments_ever_not_converged": float(told["NOT_CONVERGED"].any(axis=0).mean()),
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
        f"{100 * found['contact_overflow']:.3f} %",
    ]


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy.passes", description="passes of solvers on robots")
    add = parser.add_argument
    robots = [SCENES[name] for name in ("ant", "humanoid", "anymal_c", "go1")]
    add("--scenes", nargs="+", default=robots, type=scene_of, help="by name, or files of the data folder")
    add("--solvers", nargs="+", default=["subadmm"], choices=stiction.solver_names())
    add("--amplitude", type=float, help="of the controls, around home; default the scene's")
    add("--full-range", action="store_true", help="controls uniform in their ranges, not settled before")
    add("--envs", type=int, default=512)
    add("--steps", type=int, default=300)
    add("--dtype", default="float32", choices=("float32", "float64"))
    add("--option", nargs="+", type=option, default=[], metavar="NAME=VALUE", help="fields of stiction.SolverOptions")
    add("--output", type=Path, help="JSON; default bench/results/<machine>/passes.json; '-' writes none")
    arguments = parser.parse_args(argv)
    result = {"machine": machine.description(), "options": dict(arguments.option), "dtype": arguments.dtype}
    result |= {"envs": arguments.envs, "steps": arguments.steps, "full_range": arguments.full_range, "runs": []}
    print(HEAD + "\n" + "|---" * (HEAD.count("|") - 1) + "|")
    for scene in arguments.scenes:
        for solver in arguments.solvers:
            result["runs"].append(run(scene, solver, arguments))
            print("| " + " | ".join(cells(result["runs"][-1])) + " |", flush=True)
    machine.record(arguments.output, "passes.json", result)
    return result


if __name__ == "__main__":
    main()
