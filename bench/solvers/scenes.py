"""``python -m bench.solvers.scenes``: accuracy against time, every solver and MuJoCo C. See bench/README.md.

Five scenes of `worlds`, one error each: creep of a capsule of 45 g that is pinched, overlap of 1 t on 1 kg, way and
rise of a box that slides to rest, pose of Go1 after a second of a trot that looks at nothing, poses of ten cubes that
fall onto each other. What is swept of each engine is in `contenders`. CPU seconds are those of stepping alone, one
thread, for one environment and one simulated second; the sixteen environments of a scene are one batch here and one
after the other in MuJoCo. Medians of rounds in which all take turns; what needs more than two seconds runs once.

Where no formula says what is right, the reference is CANAL in double to 1e-9 V: with steps of 0.1 ms for the trot, with
the same step for the cubes. Its own error is what changes with steps of 0.2 ms, and with ADMM in its place.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import stiction

from bench.accuracy.sticking import LOST, SETTLE
from bench.solvers import pareto
from bench.solvers.contenders import ELLIPTIC, TIMESTEPS, Mujocos, exact, mujocos, ours
from bench.solvers.worlds import ENVS, WORLDS, Pinched
from bench.step import machine
from bench.step.rounds import spread

FINE = 1e-4  # s
USUAL = 2e-3  # s, of the first table
SLOW = 2.0  # s of CPU time beyond which one round is enough


class References:
    """Of one scene; made when they are asked for."""

    def __init__(self, world):
        self.world, self.paths = world, {}

    def path(self, timestep: float):
        if not self.world.reference:
            return None
        timestep = FINE if self.world.reference == "fine" else timestep
        if timestep not in self.paths:
            self.paths[timestep] = exact(timestep).run(self.world)[0]
        return self.paths[timestep]

    def error(self, contender) -> tuple[float, np.ndarray, dict, float]:
        """(error, path, what the engine told, CPU seconds)"""
        path, cpu, told = contender.run(self.world)
        errors = self.world.errors(self.world.model(), path, self.path(contender.timestep))
        unstable = told.get("unstable", 0) > 0 or not np.isfinite(errors).all()
        return (float("inf") if unstable else float(self.world.overall(errors))), path, told, cpu

    def doubts(self, timesteps) -> dict:
        """Errors of others that should hardly have any, by name."""
        if self.world.reference == "fine":
            others = {"0.2 ms": exact(2 * FINE), "ADMM": exact(FINE, "admm")}
            others["MuJoCo, 0.1 ms, stiff"] = Mujocos("", FINE, ELLIPTIC | {"impratio": 10.0}, stiff=True)
            return {name: self.error(other)[0] for name, other in others.items()}
        if self.world.reference == "same":
            return {f"ADMM, {1e3 * h:g} ms": self.error(exact(h, "admm"))[0] for h in timesteps}
        return {}


def sweep(world, contenders, rounds: int, timesteps) -> dict:
    references, seconds, entries = References(world), [[] for _ in contenders], []
    model = world.model()
    for contender, spent in zip(contenders, seconds, strict=True):
        error, path, told, cpu = references.error(contender)
        spent.append(cpu)
        entry = {"engine": contender.engine, "variant": contender.variant, "timestep": contender.timestep}
        entry |= {"error": error} | told
        if hasattr(world, "tracking"):
            entry |= {"tracking": float(np.median(world.tracking(model, path)))}
            entry |= {"way": float(np.median(world.ways(path)))}
        entries.append(entry)
    for again in range(1, rounds):
        start = again * len(contenders) // rounds
        order = list(zip(contenders, seconds, strict=True))
        for contender, spent in order[start:] + order[:start]:
            if spent[0] < SLOW:
                spent.append(contender.run(world)[1])
    for entry, spent in zip(entries, seconds, strict=True):
        entry["cpu"] = spread(np.array(spent) / (ENVS * world.seconds))
    result = {name: getattr(world, name) for name in ("title", "unit", "per", "wanted", "seconds")} | {"envs": ENVS}
    return result | {"entries": entries, "doubts": references.doubts(timesteps)}


def found(scene: dict, **wanted) -> dict | None:
    """The entry with these values."""
    return next((e for e in scene["entries"] if all(e[key] == value for key, value in wanted.items())), None)


def number(value: float) -> str:
    return "unstable" if not np.isfinite(value) else f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"


def rows_of(result: dict) -> list[tuple[str, str, str]]:
    """(name, engine, variant) of the tables' rows: every solver as it comes, some of MuJoCo's settings."""
    solvers = dict.fromkeys(e["engine"] for scene in result["scenes"].values() for e in scene["entries"])
    rows = [(name, name, "default") for name in solvers if name != "MuJoCo"]
    if "MuJoCo" in solvers:
        variants = ("default", "elliptic, impratio 10", "elliptic, impratio 10, noslip 10")
        variants += ("stiff, elliptic, impratio 10", "stiff, elliptic, impratio 10, noslip 10")
        rows += [(f"MuJoCo, {variant}", "MuJoCo", variant) for variant in variants]
    return rows


def as_it_comes(result: dict, timestep: float) -> str:
    """Errors, and in brackets milliseconds of a core for a simulated second, at one step."""
    scenes = result["scenes"]
    lines = [f"| {1e3 * timestep:g} ms | " + " | ".join(s["title"] + f", {s['unit']}" for s in scenes.values()) + " |"]
    lines.append("|---" * (len(scenes) + 1) + "|")
    for name, engine, variant in rows_of(result):
        entries = [(s, found(s, engine=engine, variant=variant, timestep=timestep)) for s in scenes.values()]
        cells = [
            f"{number(s['per'] * e['error'])} ({number(1e3 * e['cpu']['median'])})" if e else "" for s, e in entries
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cheapest(result: dict) -> str:
    """Of each engine the fastest setting whose error is small enough: milliseconds of a core for a simulated second."""
    scenes = result["scenes"]
    head = [f"{s['title']}: {s['per'] * s['wanted']:g} {s['unit']}" for s in scenes.values()]
    lines = ["| ms a second for | " + " | ".join(head) + " |", "|---" * (len(scenes) + 1) + "|"]
    for engine in dict.fromkeys(engine for _, engine, _ in rows_of(result)):
        cells = []
        for scene in scenes.values():
            good = [e for e in scene["entries"] if e["engine"] == engine and e["error"] <= scene["wanted"]]
            best = min(good, key=lambda e: e["cpu"]["median"], default=None)
            if best is None:
                least = min((e for e in scene["entries"] if e["engine"] == engine), key=lambda e: e["error"])
                cells.append(f"— (least: {number(scene['per'] * least['error'])})")
            else:
                step = f"{1e3 * best['timestep']:g} ms"
                cells.append(f"{number(1e3 * best['cpu']['median'])} ({best['variant']}, {step})")
        lines.append(f"| {engine} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def creeps(result: dict) -> str:
    """The pinch under every solver at every step, um/s; what came loose fell."""
    scene = result["scenes"]["pinch"]
    steps = sorted({e["timestep"] for e in scene["entries"]})
    lines = ["| creep, µm/s, at | " + " | ".join(f"{1e3 * h:g} ms" for h in steps) + " |"]
    lines.append("|---" * (len(steps) + 1) + "|")
    for name, engine, variant in rows_of(result):
        entries = [found(scene, engine=engine, variant=variant, timestep=h) for h in steps]
        cells = [
            "lost" if e["error"] * (Pinched.seconds - SETTLE) > LOST else number(1e6 * e["error"]) for e in entries
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def controller(result: dict) -> str:
    """The trot under every solver: how well joints follow, how far it comes, how far that is from the reference."""
    scene = result["scenes"]["trot"]
    steps = sorted({e["timestep"] for e in scene["entries"]})
    head = [f"{1e3 * h:g} ms" for h in steps]
    lines = [
        "| joints' error in mrad, way in m, pose in mm, at | " + " | ".join(head) + " |",
        "|---" * (len(steps) + 1) + "|",
    ]
    for name, engine, variant in rows_of(result):
        entries = [found(scene, engine=engine, variant=variant, timestep=h) for h in steps]
        cells = [f"{1e3 * e['tracking']:.3g}, {e['way']:.3f}, {number(1e3 * e['error'])}" for e in entries]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def tables(result: dict) -> str:
    scenes = result["scenes"]
    usual = any(e["timestep"] == USUAL for scene in scenes.values() for e in scene["entries"])
    found = [as_it_comes(result, USUAL)] if usual else []
    found += [cheapest(result)]
    found += [table(result) for name, table in (("pinch", creeps), ("trot", controller)) if name in scenes]
    return "\n\n".join(found)


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.solvers.scenes", description=__doc__)
    add = parser.add_argument
    add("--scenes", nargs="+", default=list(WORLDS), choices=list(WORLDS))
    add("--solvers", nargs="+", default=list(stiction.solver_names()), choices=list(stiction.solver_names()))
    add("--timesteps", nargs="+", type=float, default=list(TIMESTEPS), help="s; they divide 10 ms")
    add("--rounds", type=int, default=3)
    add("--read", type=Path, help="JSON: tables and plot of what was measured before")
    add("--output", type=Path, help="JSON, a plot beside it; default bench/results/<machine>/scenes.json; '-': none")
    arguments = parser.parse_args(argv)
    if arguments.read:
        result = json.loads(arguments.read.read_text())
        print(tables(result))
        pareto.draw(result, arguments.read.with_suffix(".png"))
        return result
    contenders = ours(arguments.solvers, arguments.timesteps) + mujocos(arguments.timesteps)
    result = {"machine": machine.description(), "rounds": arguments.rounds, "scenes": {}}
    for name in arguments.scenes:
        scene = result["scenes"][name] = sweep(WORLDS[name], contenders, arguments.rounds, arguments.timesteps)
        doubts = ", ".join(f"{other} {number(scene['per'] * error)}" for other, error in scene["doubts"].items())
        print(f"{scene['title']}, {scene['unit']}" + f"; beside the reference: {doubts}" * bool(doubts), flush=True)
    print("\n" + tables(result))
    machine.record(arguments.output, "scenes.json", result)
    if str(arguments.output) != "-":
        pareto.draw(result, (arguments.output or machine.results_folder() / "scenes.json").with_suffix(".png"))
    return result


if __name__ == "__main__":
    main()
