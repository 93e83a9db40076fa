"""Pegs in holes of static boxes, wedged by a torque and pulled down: held or sliding, as Coulomb's law allows.

A torque about a level axis presses a peg to two sides of its hole at its ends, N = T / L each; one about the peg's own
axis presses the corners of a square one to four walls, N = T / (2 a). Friction carries up to mu times the sum of these.
"""

from __future__ import annotations

import mujoco
import numpy as np

from bench.accuracy.one_world import ENGINES
from bench.progress import progress, tell

HALF, DEPTH, REACH = 0.02, 0.1, 0.08  # half a side or the radius, the hole's depth, half the peg's length: m
KINDS = ("square, tilted", "square, twisted", "round, tilted", "hull, tilted")
SETTLE, WATCHED, FALL = 0.5, 10.0, 0.1  # s
CREEP = 1e-6  # m/s, below which a peg is held
#: Loads as a part of what friction carries: a peg that is held, and one that slides.
HELD, SLIDES = 0.7, 1.4
SIDES = 16


def pegs(count: int, seed: int = 0) -> list[dict]:
    """Every second one is to slide, but for twisted ones of much friction, which lock themselves."""
    rng, chosen = np.random.default_rng(seed), []
    for i in range(count):
        kind, mu = KINDS[i // 2 % len(KINDS)], float(rng.uniform(0.1, 1.0))
        slides = i % 2 == 1 and not (kind == "square, twisted" and mu > 0.5)
        clearance, pull = float(10 ** rng.uniform(-4, -3)), float(rng.uniform(0, 10))
        chosen.append({"kind": kind, "mu": mu, "clearance": clearance, "pull": pull, "slides": slides})
    return chosen


def walls(kind: str, clearance: float) -> str:
    """Boxes around the hole, their faces a clearance from the peg."""
    sides = 4 if kind.startswith("square") else SIDES
    inner, thick = HALF + clearance, 0.02
    width = (inner + 2 * thick) * np.tan(np.pi / sides) if sides > 4 else inner + 2 * thick
    boxes = []
    for angle in 2 * np.pi * np.arange(sides) / sides:
        x, y = (inner + thick) * np.cos(angle), (inner + thick) * np.sin(angle)
        boxes.append(
            f'<geom type="box" size="{thick} {width:.9g} {DEPTH / 2}" pos="{x:.9g} {y:.9g} 0" '
            f'euler="0 0 {np.degrees(angle):.9g}"/>'
        )
    return "".join(boxes)


def model_of(peg: dict) -> mujoco.MjModel:
    turn = 2 * np.pi * np.arange(SIDES) / SIDES + np.pi / SIDES
    ring = HALF / np.cos(np.pi / SIDES) * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    corners = " ".join(f"{x:.9g} {y:.9g} {z}" for z in (-REACH, REACH) for x, y in ring)
    shape = {"square": f'type="box" size="{HALF} {HALF} {REACH}"', "round": f'type="cylinder" size="{HALF} {REACH}"'}
    geom = shape.get(peg["kind"].split(",")[0], 'type="mesh" mesh="peg"')
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="0.002"/><default><geom friction="{peg["mu"]:.9g}"/></default>'
        f'<asset><mesh name="peg" vertex="{corners}"/></asset><worldbody>{walls(peg["kind"], peg["clearance"])}'
        f'<body name="peg"><freejoint/><geom {geom} mass=".5"/></body></worldbody></mujoco>'
    )


def torque_of(peg: dict, load: float) -> tuple[int, float]:
    """(about which axis, N m) that a load (N) is so much of what friction carries."""
    twisted, mu = peg["kind"].endswith("twisted"), peg["mu"]
    arm = HALF if twisted else DEPTH / 2  # of half the normal forces' sum
    part = HELD
    if peg["slides"]:  # friction may also act across the hole, and press the peg harder to its walls
        part = SLIDES / (np.sqrt(1 - mu * mu) if twisted else np.cos(np.pi / SIDES))
    return (5 if twisted else 4), load / part * arm / mu


def wedge(peg: dict, engine: str) -> dict:
    """How fast a held peg creeps (m/s) in 10 s; of a sliding one its acceleration over Coulomb's. Overlap, m."""
    m = model_of(peg)
    world, load = ENGINES[engine](m), 0.5 * 9.81 + peg["pull"]
    axis, torque = torque_of(peg, load)
    world.xfrc[1, 2], world.xfrc[1, axis] = -peg["pull"], torque
    if peg["slides"]:
        world.advance(FALL / 2)
        before = float(world.qvel[2])
        world.advance(FALL / 2)
        arm = HALF if axis == 5 else DEPTH / 2
        expected = -(load - peg["mu"] * torque / arm) / 0.5
        fall = float((world.qvel[2] - before) / (FALL / 2) / expected)
        return {"fall": fall, "right": abs(fall - 1) < 0.1, "overlap": world.overlap()}
    world.advance(SETTLE)
    start, overlap = np.array(world.qpos, float), 0.0
    for _ in range(10):
        world.advance(WATCHED / 10)
        overlap = max(overlap, world.overlap())
    creep = float(np.linalg.norm(world.qpos[:3] - start[:3])) / WATCHED
    return {"creep": creep, "right": creep < CREEP, "overlap": overlap}


def run(count: int, seed: int = 0) -> list[dict]:
    rows = []
    with progress(count, "peg") as bar:
        for peg in pegs(count, seed):
            rows.append(peg | {engine: wedge(peg, engine) for engine in ENGINES})
            tell(bar, peg["kind"])
    return rows
