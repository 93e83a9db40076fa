"""``python -m bench.step``: how fast worlds step, beside MuJoCo C in the same run. See bench/README.md."""

from __future__ import annotations

import argparse
import copy
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import stiction
from stiction import _core

from . import machine, report
from .engines import MujocoC, Stiction, creep
from .latency import latency
from .profile import profile
from .rounds import Entry, race, ratio
from .scenes import HOLD, SCENES, option


def mujoco_variants(model: mujoco.MjModel):
    """(label, model): Euler and implicitfast, with the file's solver and with Newton where the file takes another."""
    for solver in dict.fromkeys((int(model.opt.solver), int(mujoco.mjtSolver.mjSOL_NEWTON))):
        for integrator in ("EULER", "IMPLICITFAST"):
            variant = copy.copy(model)
            variant.opt.solver = solver
            variant.opt.integrator = getattr(mujoco.mjtIntegrator, "mjINT_" + integrator)
            yield f"{integrator.lower()}, {mujoco.mjtSolver(solver).name[6:].lower()}", variant


def stiction_entries(scene, model, arguments, settled: Stiction) -> list[Entry]:
    entries = []
    core = dict(arguments.option)
    for batch in arguments.batch:
        for threads in arguments.threads:
            for isa in arguments.isa:
                for solver in arguments.solver:
                    options = stiction.SolverOptions(**(core | {"name": solver}))
                    engine = Stiction(scene, model, batch, isa=isa, threads=threads, solver=options)
                    engine.take_state(settled)
                    label = {"engine": "stiction", "variant": f"{solver}, {isa}", "isa": isa, "solver": solver}
                    entries.append(Entry(engine, label | {"batch": batch, "threads": threads}))
    return entries


def mujoco_entries(scene, model, arguments, ours: Stiction) -> list[Entry]:
    entries, settled = [], ours
    if not scene.explores:
        settled = MujocoC(scene, model, arguments.worlds)
        settled.settle()
    for threads in arguments.threads:
        for name, variant in mujoco_variants(model):
            for batch in (False, True):
                if batch and not _has_batch():
                    continue
                engine = MujocoC(scene, variant, arguments.worlds, threads=threads, batch=batch)
                engine.take_state(settled)
                label = {"engine": "mujoco", "variant": ("batch, " if batch else "rollout, ") + name}
                entries.append(Entry(engine, label | {"batch": arguments.worlds, "threads": threads}))
    return entries


def _has_batch() -> bool:
    try:
        import mujoco.batch  # noqa: F401
    except ImportError:
        return False
    return True


def run_scene(scene, arguments) -> dict:
    mjmodel = scene.mjmodel()
    model = stiction.Model.from_mjmodel(mjmodel)
    settled = Stiction(scene, model, max(arguments.batch), isa=arguments.isa[0])
    settled.settle()
    ours = stiction_entries(scene, model, arguments, settled)
    theirs = mujoco_entries(scene, mjmodel, arguments, settled) if arguments.mujoco else []
    race(ours + theirs, arguments.rounds, arguments.seconds)

    result = {
        "scene": scene.name,
        "nv": int(mjmodel.nv),
        "timestep": float(mjmodel.opt.timestep),
        "amplitude": scene.amplitude,
        "explores": scene.explores,
        "hold": HOLD,
        "settled_s": scene.settle,
        "import_report": list(model.import_report),
        "entries": [],
    }
    fastest = {}
    for threads in arguments.threads:
        same = [entry for entry in theirs if entry.label["threads"] == threads and not entry.engine.diverged]
        fastest[threads] = max(same, key=lambda entry: np.median(entry.per_core), default=None)
    for entry in ours:
        summary = entry.summary()
        summary["status"] = stiction.Status.counts(entry.engine.sim.status)
        reference = fastest[entry.label["threads"]]
        if reference is not None:
            summary["times_mujoco"] = ratio(entry, reference)
        result["entries"].append(summary)
    for entry in theirs:
        mark = {"reference": entry is fastest[entry.label["threads"]], "diverged": entry.engine.diverged}
        result["entries"].append(entry.summary() | mark)
    if arguments.creep:
        result["creep_um_per_s"] = measure_creep(scene, model, settled, fastest.get(arguments.threads[0]), arguments)
    if arguments.latency:
        result["latency"] = latency(scene, model, mjmodel, arguments.rounds)
    if arguments.profile:
        result["profile"] = profile(scene, model, settled, arguments.isa[0], dict(arguments.option))
    return result


def measure_creep(scene, model, settled, reference, arguments) -> dict:
    """Speed of the fastest body under home controls, after `--rest` seconds, over as many again."""
    quiet = Stiction(scene, model, min(arguments.worlds, settled.num_envs), isa=arguments.isa[0])
    quiet.take_state(settled)
    engines = {"stiction": quiet}
    if reference is not None:
        engines["mujoco"] = MujocoC(scene, reference.engine.model, arguments.worlds)
        engines["mujoco"].take_state(reference.engine)
    result = {"after_s": arguments.rest}
    for name, engine in engines.items():
        speed = creep(engine, arguments.rest, arguments.rest) * 1e6
        result[name] = {f"p{p}": float(np.percentile(speed, p)) for p in (50, 90)} | {"max": float(speed.max())}
    return result


def parse(argv=None):
    parser = argparse.ArgumentParser(prog="python -m bench.step", description=__doc__)
    add = parser.add_argument
    add("--scenes", nargs="+", default=list(SCENES), choices=list(SCENES))
    add("--batch", nargs="+", type=int, default=[1024], help="environments of stiction")
    add("--worlds", type=int, default=64, help="environments of MuJoCo, and of the look at creep")
    add("--threads", nargs="+", type=int, default=[1])
    add("--isa", nargs="+", default=_core.available_isas())
    add("--solver", nargs="+", default=["subadmm"])
    add("--option", nargs="+", type=option, default=[], metavar="NAME=VALUE", help="fields of stiction.SolverOptions")
    add("--amplitude", type=float, help="of the random controls; each scene has its own")
    add("--settle", type=float, help="seconds before anything is measured; each scene has its own")
    add("--rounds", type=int, default=7)
    add("--seconds", type=float, default=0.25, help="CPU time of an engine in a round")
    add("--rest", type=float, default=5.0, help="seconds of rest before creep is measured, and over which")
    for name in ("mujoco", "creep", "latency", "profile"):
        add(f"--{name}", action=argparse.BooleanOptionalAction, default=True)
    add("--output", type=Path, help="JSON; default bench/results/<machine>/step.json; '-' writes none")
    return parser.parse_args(argv)


def main(argv=None) -> dict:
    arguments = parse(argv)
    result = {"machine": machine.description(), "options": dict(arguments.option), "scenes": []}
    print(report.heading(result))
    for name in arguments.scenes:
        changes = {key: getattr(arguments, key) for key in ("amplitude", "settle")}
        changes = {key: value for key, value in changes.items() if value is not None}
        scene = run_scene(replace(SCENES[name], **changes), arguments)
        result["scenes"].append(scene)
        print(report.scene(scene), flush=True)
    result["machine"]["load_average_after"] = machine.description()["load_average"]
    machine.record(arguments.output, "step.json", result)
    return result


if __name__ == "__main__":
    main()
