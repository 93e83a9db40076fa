"""``python -m bench.accuracy.sliding``: how high does a box rise that slides to rest? See bench/README.md.

Coulomb's friction slows the box by mu g and leaves it on the floor. The convex contact problem, which MuJoCo solves,
asks a sliding contact to separate with mu times its speed (De Saxce's correction is what it leaves out), so that fast
contacts are thrown up, and a policy that drags its feet meets another world.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mujoco
import numpy as np
import stiction

from bench.step import machine

BOX = """
<mujoco><option timestep="{timestep}"/><worldbody>
  <geom type="plane" size="50 50 1" friction="{mu} 0 0"/>
  <body pos="0 0 .05"><freejoint/><geom type="box" size=".1 .1 .05" mass="1" friction="{mu} 0 0"/></body>
</worldbody></mujoco>
"""
SPEEDS = (1.0, 2.0, 5.0, 10.0)  # m/s
STEPS = (0.002, 0.01)  # s
SETTLE, REST = 0.5, 1e-2  # s; m/s: what is slower has come to rest
MUJOCO = {
    "default": {},
    "elliptic": {"cone": mujoco.mjtCone.mjCONE_ELLIPTIC},
    "elliptic, impratio 10": {"cone": mujoco.mjtCone.mjCONE_ELLIPTIC, "impratio": 10.0},
}


class Ours:
    """stiction in single precision with its default options."""

    def __init__(self, xml: str):
        self._sim = stiction.Simulation(stiction.Model.from_mjcf(xml), num_threads=1)
        self.qpos, self.qvel = self._sim.qpos[0], self._sim.qvel[0]

    def step(self) -> None:
        self._sim.step()


class Mujocos:
    def __init__(self, xml: str, options: dict):
        self._model = mujoco.MjModel.from_xml_string(xml)
        for name, value in options.items():
            setattr(self._model.opt, name, value)
        self._data = mujoco.MjData(self._model)
        self.qpos, self.qvel = self._data.qpos, self._data.qvel

    def step(self) -> None:
        mujoco.mj_step(self._model, self._data)


def slide(engine, speed: float, mu: float, timestep: float) -> dict:
    """From ``speed`` (m/s) to rest: how far and how high (m), and the fastest it went up (m/s)."""
    for _ in range(round(SETTLE / timestep)):
        engine.step()
    start = engine.qpos[:3].copy()
    engine.qvel[0] = speed
    height, upwards = 0.0, 0.0
    for _ in range(round(3 * speed / (mu * 9.81) / timestep)):
        engine.step()
        height, upwards = max(height, engine.qpos[2] - start[2]), max(upwards, engine.qvel[2])
        if np.hypot(*engine.qvel[:2]) < REST:
            break
    return {"distance": float(engine.qpos[0] - start[0]), "lift": float(height), "upwards": float(upwards)}


def table(result: dict) -> str:
    speeds = result["speeds"]
    lines = ["| height in mm (and stopping distance in m) from | " + " | ".join(f"{v:g} m/s" for v in speeds) + " |"]
    lines.append("|---" * (len(speeds) + 1) + "|")
    lines.append("| Coulomb | " + " | ".join(f"0 ({d:.3g})" for d in result["exact"]) + " |")
    for run in result["runs"]:
        cells = [f"{1e3 * s['lift']:.3g} ({s['distance']:.3g})" for s in run["slides"]]
        lines.append(f"| {run['engine']}, {1e3 * run['timestep']:g} ms | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy.sliding", description="a box slides to rest")
    add = parser.add_argument
    add("--speeds", type=float, nargs="+", default=list(SPEEDS), help="m/s")
    add("--friction", type=float, default=0.5)
    add("--output", type=Path, help="JSON; default bench/results/<machine>/sliding.json; '-' writes none")
    arguments = parser.parse_args(argv)
    speeds, mu = arguments.speeds, arguments.friction
    print(f"a box of 1 kg, friction {mu:g}, slides to rest")
    runs = []
    for timestep in STEPS:
        xml = BOX.format(timestep=timestep, mu=mu)
        engines = {"stiction, float32": lambda xml=xml: Ours(xml)}
        for name, options in MUJOCO.items():
            engines[f"MuJoCo, {name}"] = lambda xml=xml, options=options: Mujocos(xml, options)
        for name, make in engines.items():
            slides = [slide(make(), speed, mu, timestep) for speed in speeds]
            runs.append({"engine": name, "timestep": timestep, "slides": slides})
    exact = [speed**2 / (2 * mu * 9.81) for speed in speeds]
    result = {"machine": machine.description(), "friction": mu, "speeds": speeds, "exact": exact, "runs": runs}
    print(table(result))
    machine.record(arguments.output, "sliding.json", result)
    return result


if __name__ == "__main__":
    main()
