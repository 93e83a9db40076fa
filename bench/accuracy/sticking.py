"""``python -m bench.accuracy.sticking``: creep of a capsule held by friction, beside MuJoCo. See bench/README.md."""

from __future__ import annotations

import argparse
from pathlib import Path

import mujoco
import numpy as np
import stiction

from bench.step import machine

#: A capsule of 45 g held by friction between two boxes on slides that are pressed together; geom names tell who is who.
PINCH = """
<mujoco><option timestep="0.002"/><worldbody>
  <body name="left" pos="-.03 0 .5"><joint name="left" type="slide" axis="1 0 0"/>
    <geom type="box" size=".02 .03 .03" mass=".2" friction=".8"/></body>
  <body name="right" pos=".03 0 .5"><joint name="right" type="slide" axis="-1 0 0"/>
    <geom type="box" size=".02 .03 .03" mass=".2" friction=".8"/></body>
  <body name="held" pos="0 0 .5"><freejoint name="held"/>
    <geom type="capsule" size=".01 .02" mass=".045" friction=".8"/></body></worldbody>
  <actuator><motor joint="left"/><motor joint="right"/></actuator></mujoco>
"""
FORCES = (12.0, 20.0, 30.0, 45.0, 60.0)  # N
SETTLE = 0.5  # s, in which the gaps close
#: Options of MuJoCo, by what they are called.
MUJOCO = {
    "default": {},
    "elliptic, impratio 10": {"cone": mujoco.mjtCone.mjCONE_ELLIPTIC, "impratio": 10.0},
    "noslip 10": {"noslip_iterations": 10},
    "elliptic, impratio 10, noslip 10": {
        "cone": mujoco.mjtCone.mjCONE_ELLIPTIC,
        "impratio": 10.0,
        "noslip_iterations": 10,
    },
}
BOUND = 1e-6  # m/s
LOST = 0.05  # m; what has moved so far is no longer held


def drift(positions: np.ndarray, quats: np.ndarray, seconds: float) -> dict:
    """Creep (m/s) and turning (rad/s) between two instants; positions (2, n, 3), quats (2, n, 4)."""
    cosine = np.clip(np.abs(np.sum(quats[0] * quats[1], axis=-1)), 0, 1)
    return {
        "creep": (np.linalg.norm(positions[1] - positions[0], axis=-1) / seconds).tolist(),
        "turning": (2 * np.arccos(cosine) / seconds).tolist(),
    }


def ours(forces, seconds: float, **simulation) -> dict:
    """stiction in single precision with its default options."""
    model = stiction.Model.from_mjcf(PINCH)
    sim = stiction.Simulation(model, len(forces), num_threads=1, **simulation)
    sim.ctrl[:] = np.asarray(forces)[:, None]
    held, positions, quats = model.body_id("held"), [], []
    for duration in (SETTLE, seconds):
        sim.step(round(duration / sim.timestep))
        positions.append(sim.xpos[:, held].astype(float))
        quats.append(sim.xquat[:, held].astype(float))
    ratio = np.asarray(sim.certificate.r_con) / np.asarray(sim.certificate.scale)
    return drift(np.array(positions), np.array(quats), seconds) | {"r_con_over_V": ratio.tolist()}


def mujocos(forces, seconds: float, options: dict) -> dict:
    model = mujoco.MjModel.from_xml_string(PINCH)
    for name, value in options.items():
        setattr(model.opt, name, value)
    held, positions, quats = model.body("held").id, [], []
    states = [mujoco.MjData(model) for _ in forces]
    for duration in (SETTLE, seconds):
        for data, force in zip(states, forces, strict=True):
            data.ctrl[:] = force
            mujoco.mj_step(model, data, round(duration / model.opt.timestep))
        positions.append([data.xpos[held].copy() for data in states])
        quats.append([data.xquat[held].copy() for data in states])
    return drift(np.array(positions), np.array(quats), seconds)


def table(result: dict) -> str:
    """Creep in um/s, one column per force."""
    forces, seconds = result["forces"], result["seconds"]
    lines = ["| creep, µm/s, at | " + " | ".join(f"{force:g} N" for force in forces) + " |"]
    lines.append("|---" * (len(forces) + 1) + "|")
    for name, engine in result["engines"].items():
        cells = [f"{1e6 * creep:.3g}" if creep * seconds <= LOST else "lost" for creep in engine["creep"]]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy.sticking", description=__doc__)
    add = parser.add_argument
    add("--forces", type=float, nargs="+", default=list(FORCES), help="of the pinch, N")
    add("--seconds", type=float, default=10.0)
    add("--output", type=Path, help="JSON; default bench/results/<machine>/sticking.json; '-' writes none")
    arguments = parser.parse_args(argv)
    forces, seconds = arguments.forces, arguments.seconds

    print(f"45 g capsule between two boxes, friction 0.8, dt 2 ms, {seconds:g} s after {SETTLE:g} s of settling")
    engines = {"stiction, float32": ours(forces, seconds)}
    engines |= {f"MuJoCo, {name}": mujocos(forces, seconds, options) for name, options in MUJOCO.items()}
    result = {"machine": machine.description(), "forces": forces, "seconds": seconds, "engines": engines}
    print(table(result))
    worst = max(engines["stiction, float32"]["creep"])
    print(f"stiction: at most {1e6 * worst:.3g} um/s, bound {1e6 * BOUND:g}: {'met' if worst <= BOUND else 'missed'}")
    machine.record(arguments.output, "sticking.json", result)
    return result


if __name__ == "__main__":
    main()
