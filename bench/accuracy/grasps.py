"""``python -m bench.accuracy.grasps``: objects held by friction on lines and faces, beside MuJoCo. See bench/README.md.

More points than balance needs share the force of a pinch. Where nothing but rounding shares it out, one end may get it
all, and the object turns about that end and drops.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import mujoco
import numpy as np
import stiction

from bench.step import machine

#: An object between two plates of 200 g on slides that are pressed together along x.
GRASP = """
<mujoco><option timestep="{timestep}"/><worldbody>
  <body name="left" pos="-.03 0 .5"><joint name="left" type="slide" axis="1 0 0"/>
    <geom type="box" size=".02 .03 .03" mass=".2" friction=".8"/></body>
  <body name="right" pos=".03 0 .5"><joint name="right" type="slide" axis="-1 0 0"/>
    <geom type="box" size=".02 .03 .03" mass=".2" friction=".8"/></body>
  <body name="held" pos="0 0 .5"><freejoint name="held"/><geom {geom} mass="{mass}" friction=".8"/></body></worldbody>
  <actuator><motor joint="left"/><motor joint="right"/></actuator></mujoco>
"""
BODIES = (1, 2, 3)  # left, right, held
OBJECTS = {
    "capsule, upright": 'type="capsule" size=".01 .02"',
    "capsule, level": 'type="capsule" size=".01 .02" euler="90 0 0"',
    "box": 'type="box" size=".01 .01 .02"',
    "box, wide": 'type="box" size=".01 .025 .012"',
    "cylinder, upright": 'type="cylinder" size=".01 .02"',
    "cylinder, by its ends": 'type="cylinder" size=".02 .01" euler="0 90 0"',
}
MASSES = (0.045, 0.2)  # kg
FORCES = (6.0, 12.0, 20.0, 30.0, 45.0, 60.0)  # N; friction 0.8 holds the heavier 4.9 times over at the least
STEPS = (0.001, 0.002, 0.004)  # s
SETTLE = 0.5  # s, in which the gaps close
WATCHED = 100  # steps at the end, one by one, whose contact forces are compared
SLIP, CREEP = 1e-3, 1e-6  # m, m/s: bounds
#: Simulations of ours, and MuJoCo's options, by what they are called.
OURS = {
    "stiction, float32": {},
    "stiction, float64": {"dtype": "float64"},
    "stiction, float32, rigid": {"solver": stiction.SolverOptions(penetration_allowance=0)},
    "stiction, float64, rigid": {"dtype": "float64", "solver": stiction.SolverOptions(penetration_allowance=0)},
}
MUJOCO = {"MuJoCo, default": {}, "MuJoCo, noslip 10": {"noslip_iterations": 10}}


def in_hand(xpos) -> np.ndarray:
    """The object from the middle between the plates (m), which nothing holds along x; xpos: (..., nbody, 3)."""
    left, right, held = (np.array(xpos[..., body, :], float) for body in BODIES)
    return held - (left + right) / 2


def ours(geom: str, timestep: float, loads, seconds: float, **simulation) -> dict:
    """The grasps of one object at one step, an environment for each of ``loads``, (kg, N)."""
    masses, forces = np.array(loads).T
    model = stiction.Model.from_mjcf(GRASP.format(geom=geom, timestep=timestep, mass=1))
    held = BODIES[2]
    sim = stiction.Simulation(model, len(loads), num_threads=1, per_env=("body_mass", "body_inertia"), **simulation)
    sim.params.body_mass[:, held] = masses
    sim.params.body_inertia[:, held] *= masses[:, None]
    sim.ctrl[:] = forces[:, None]
    sim.step(round(SETTLE / timestep))
    start, slip = in_hand(sim.xpos), np.zeros(len(loads))
    steps = round(seconds / timestep)
    left = max(steps - WATCHED, 0)
    while left:
        some = min(left, WATCHED)
        sim.step(some)
        left -= some
        slip = np.maximum(slip, np.linalg.norm(in_hand(sim.xpos) - start, axis=1))
    passes, flicker, before = [], np.zeros(len(loads)), None
    for _ in range(min(WATCHED, steps)):
        sim.step()
        passes.append(sim.certificate.iterations)
        normal = sim.contact.impulse[:, :, 2].astype(float)
        if before is not None:
            flicker = np.maximum(flicker, np.abs(normal - before).max(1) / (timestep * forces))
        before = normal
    moved = np.linalg.norm(in_hand(sim.xpos) - start, axis=1)
    return {
        "slip": np.maximum(slip, moved).tolist(),
        "creep": (moved / seconds).tolist(),
        "flicker": flicker.tolist(),
        "overlap": np.asarray(sim.certificate.penetration, float).tolist(),
        "passes": np.array(passes).T.tolist(),
    }


def mujocos(geom: str, timestep: float, loads, seconds: float, options: dict) -> dict:
    found = {"slip": [], "creep": []}
    for mass, force in loads:
        model = mujoco.MjModel.from_xml_string(GRASP.format(geom=geom, timestep=timestep, mass=mass))
        for name, value in options.items():
            setattr(model.opt, name, value)
        data = mujoco.MjData(model)
        data.ctrl[:] = force
        mujoco.mj_step(model, data, round(SETTLE / timestep))
        start, slip = in_hand(data.xpos), 0.0
        for _ in range(10):
            mujoco.mj_step(model, data, round(seconds / timestep / 10))
            moved = float(np.linalg.norm(in_hand(data.xpos) - start))
            slip = max(slip, moved)
        found["slip"].append(slip)
        found["creep"].append(moved / seconds)
    return found


def run(engine: str, seconds: float, every: int = 1) -> dict:
    """All grasps, or every so-many-th, in one engine: what `ours` or `mujocos` finds, one entry a grasp."""
    grasps = list(product(OBJECTS, STEPS, MASSES, FORCES))[::every]
    found = {"grasps": [list(grasp) for grasp in grasps]}
    for name, timestep in product(OBJECTS, STEPS):
        loads = [(mass, force) for object_, step, mass, force in grasps if (object_, step) == (name, timestep)]
        if not loads:
            continue
        if engine in OURS:
            part = ours(OBJECTS[name], timestep, loads, seconds, **OURS[engine])
        else:
            part = mujocos(OBJECTS[name], timestep, loads, seconds, MUJOCO[engine])
        for key, values in part.items():
            found.setdefault(key, []).extend(values)
    return found


def row(engine: str, found: dict) -> str:
    slip, creep = np.array(found["slip"]), 1e6 * np.array(found["creep"])
    cells = [np.count_nonzero(slip > SLIP), np.count_nonzero(creep > 1e6 * CREEP)]
    cells += [f"{np.median(creep):.2g} / {creep.max():.2g}"]
    if "passes" in found:
        passes = np.concatenate([np.ravel(p) for p in found["passes"]])
        cells += [f"{np.percentile(passes, 50):.0f} / {np.percentile(passes, 99):.0f}"]
        cells += [f"{100 * max(found['flicker']):.2g} %", f"{1e6 * max(found['overlap']):.2g}"]
    else:
        cells += ["", "", ""]
    return f"| {engine} | " + " | ".join(map(str, cells)) + " |"


HEADER = (
    "| engine | slip > 1 mm | creep > 1 µm/s | creep µm/s, median / most | passes p50 / p99 | flicker | overlap, µm |\n"
    "|---|---|---|---|---|---|---|"
)


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy.grasps", description="objects held by friction")
    add = parser.add_argument
    add("--seconds", type=float, default=10.0)
    add("--every", type=int, default=1, help="take every so-many-th grasp only")
    add("--engines", nargs="+", default=[*OURS, *MUJOCO], choices=[*OURS, *MUJOCO], metavar="NAME")
    add("--output", type=Path, help="JSON; default bench/results/<machine>/grasps.json; '-' writes none")
    arguments = parser.parse_args(argv)
    result = {"machine": machine.description(), "seconds": arguments.seconds, "engines": {}}
    count = len(OBJECTS) * len(STEPS) * len(MASSES) * len(FORCES)
    print(f"{len(range(0, count, arguments.every))} grasps, {arguments.seconds:g} s after {SETTLE:g} s of settling")
    print(HEADER)
    for engine in arguments.engines:
        found = run(engine, arguments.seconds, arguments.every)
        print(row(engine, found), flush=True)
        most = {"passes": [max(passes) for passes in found["passes"]]} if "passes" in found else {}
        result["engines"][engine] = found | most
    machine.record(arguments.output, "grasps.json", result)
    return result


if __name__ == "__main__":
    main()
