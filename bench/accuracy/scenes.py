"""``python -m bench.accuracy.scenes N --seed S``: random bodies thrown about random scenes; what must not happen.

Two to twelve bodies of all kinds of geoms, a plane, up to four static boxes of 0.1 to 100 m, speeds up to 20 m/s and
100 rad/s, steps of 1 to 10 ms, 3 s. Nothing bounces and nothing drives, so energy never rises; nothing gets through
the floor or a box; everything stays finite. Heights are those of half a step before: where velocities change first and
positions follow with the new ones, that is where gravity has done the work that velocities show. In free flight this
energy is constant; with heights of the step's end it falls by m g h / 2 for each m/s, and where a body rolls over its
edge and up again as much comes back. ``1 --seed S --throw K`` runs one failing throw again and tells when.

What is at rest is counted after 10 s, of the bodies that should be: boxes and meshes with friction of 0.3 or more that
touch nothing that rolls (nothing has rolling friction) or has less, and lie on what is less steep than their friction.

Throws that find no room (a box of 100 m may fill all there is) are left out. Ctrl-C ends it with what there is.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import stiction

from bench.progress import progress, tell
from bench.step import machine

THROWS = 8  # of each scene, side by side
SECONDS = 3.0
#: What energy may rise by, of the kinetic energy at first, and as a lift of all bodies (m).
RISE, LIFT = 1e-3, 1e-3
DEEP = 0.1  # of a body's radius, how deep its centre may not get below a surface
RESTS = 1e-2  # m/s and rad/s
RESTED = 10.0  # s, after which what should be at rest is: 20 m/s and friction of 0.3 are 7 s
ROUGH = 0.3  # friction below which nothing has to come to rest
KINDS = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
STAYS = (mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_MESH)  # what does not roll
#: What fails, at first: "floor" and "box" are a centre below the surface, "lost" one that is there at the end.
FAILURES = ("not finite", "energy", "floor", "box", "lost")
STATUS = ("NOT_CONVERGED", "FALLBACK", "CONTACT_OVERFLOW", "IMMOVABLE")


def numbers(values) -> str:
    return " ".join(f"{float(value):.7g}" for value in np.ravel(values))


def quaternion(rng) -> np.ndarray:
    q = rng.standard_normal(4)
    return q / np.linalg.norm(q)


def geom_of(rng, name: str) -> tuple[str, str]:
    """(geom, asset) of a body of 3 to 30 cm."""
    kind, size = str(rng.choice(KINDS)), float(10 ** rng.uniform(-1.5, -0.5)) / 2
    shape = {"sphere": [1], "capsule": rng.uniform(0.3, 1, 2), "cylinder": rng.uniform(0.2, 1, 2)}
    asset = ""
    if kind == "mesh":
        points = rng.standard_normal((rng.integers(4, 40), 3))
        points *= size * rng.uniform(0.3, 1, 3) / np.linalg.norm(points, axis=1)[:, None]
        asset, dimensions = f'<mesh name="{name}" vertex="{numbers(points)}"/>', f'mesh="{name}"'
    else:
        dimensions = f'size="{numbers(size * np.asarray(shape.get(kind, rng.uniform(0.3, 1, 3))))}"'
    friction, density = rng.uniform(0.0, 1.2), 10 ** rng.uniform(2.5, 3.5)
    return f'<geom type="{kind}" {dimensions} friction="{friction:.3g}" density="{density:.4g}"/>', asset


def scene(seed: int) -> str:
    """MJCF of a scene."""
    rng = np.random.default_rng(seed)
    bodies, assets, boxes = [], [], []
    for i in range(rng.integers(2, 13)):
        geom, asset = geom_of(rng, f"m{i}")
        bodies.append(f'<body name="b{i}"><freejoint/>{geom}</body>'), assets.append(asset)
    for _ in range(rng.integers(0, 5)):
        half = 10 ** rng.uniform(-1, 2, 3) / 2
        place = rng.uniform(-3, 3, 3) + rng.choice([-1, 1], 3) * half * rng.choice([0, 1], 3)
        quat = quaternion(rng) if rng.random() < 0.5 else (1, 0, 0, 0)
        boxes.append(f'<geom type="box" size="{numbers(half)}" pos="{numbers(place)}" quat="{numbers(quat)}"/>')
    timestep = 10 ** rng.uniform(-3, -2)
    return (
        f'<mujoco><option timestep="{timestep:.6g}"/><default><geom friction="{rng.uniform(0, 1):.3g}"/></default>'
        f'<asset>{"".join(assets)}</asset><worldbody><geom type="plane" size="0 0 1"/>{"".join(boxes)}'
        f"{''.join(bodies)}</worldbody></mujoco>"
    )


def throw(sim: stiction.Simulation, seed: int, throws: list[int]) -> np.ndarray:
    """Places bodies clear of all else, and throws them; True where there was room, by throw."""
    n = sim.model.nbody - 1
    qpos, qvel = sim.qpos.reshape(len(throws), n, 7), sim.qvel.reshape(len(throws), n, 6)
    rngs = [np.random.default_rng((seed, k)) for k in throws]
    clear = np.zeros(len(throws), bool)
    for _ in range(60):
        for env in np.flatnonzero(~clear):
            rng = rngs[env]
            qpos[env, :, :3] = rng.uniform((-2, -2, 0.3), (2, 2, 3), (n, 3))
            qpos[env, :, 3:] = [quaternion(rng) for _ in range(n)]
        sim.forward(~clear)
        clear = np.asarray(sim.certificate.penetration) <= 0
        if clear.all():
            break
    if clear.any():  # what has no room repeats one that has, so that nothing begins metres deep
        qpos[~clear] = qpos[np.argmax(clear)]
    for env, rng in enumerate(rngs):
        qvel[env, :, :3] = [rng.uniform(0, 20) * quaternion(rng)[:3] for _ in range(n)]
        qvel[env, :, 3:] = [rng.uniform(0, 100) * quaternion(rng)[:3] for _ in range(n)]
    return clear


@dataclass
class Watch:
    """Looks at every step of some throws."""

    m: mujoco.MjModel

    def __post_init__(self):
        m = self.m
        self.mass, self.inertia = m.body_mass[1:], m.body_inertia[1:]
        self.centre, self.frame = m.body_ipos[1:], rotations(m.body_iquat[1:])
        self.radius = np.array([m.geom_rbound[m.body_geomadr[b]] for b in range(1, m.nbody)])
        boxes = np.flatnonzero((m.geom_bodyid == 0) & (m.geom_type == mujoco.mjtGeom.mjGEOM_BOX))
        self.box_half, self.box_pos = m.geom_size[boxes], m.geom_pos[boxes]
        self.box_axes = rotations(m.geom_quat[boxes])

    def centres(self, sim) -> np.ndarray:
        """Of mass, (throws, bodies, 3)."""
        q = np.asarray(sim.qpos, float).reshape(-1, len(self.mass), 7)
        return q[..., :3] + np.einsum("ebij,bj->ebi", rotations(q[..., 3:]), self.centre)

    def energy(self, sim, centres) -> tuple[np.ndarray, np.ndarray]:
        """Kinetic and potential, (throws,), J."""
        n = len(self.mass)
        q, v = np.asarray(sim.qpos, float).reshape(-1, n, 7), np.asarray(sim.qvel, float).reshape(-1, n, 6)
        spin = np.einsum("ebij,ebj->ebi", rotations(q[..., 3:]), v[..., 3:])
        linear = v[..., :3] + np.cross(spin, centres - q[..., :3])
        principal = np.einsum("bji,ebj->ebi", self.frame, v[..., 3:])
        kinetic = (self.mass * (linear**2).sum(-1) + (self.inertia * principal**2).sum(-1)).sum(-1) / 2
        height = centres[..., 2] - linear[..., 2] * sim.timestep / 2
        return kinetic, 9.81 * (self.mass * height).sum(-1)

    def of_body(self, b: int, spin, timestep: float) -> dict:
        """What a failure of a body is told with: its geom, radius (m), and turn in the step before (rad)."""
        kind = mujoco.mjtGeom(self.m.geom_type[self.m.body_geomadr[b + 1]]).name[7:].lower()
        return {"geom": kind, "radius": float(self.radius[b]), "turn": float(np.linalg.norm(spin[b]) * timestep)}

    def in_boxes(self, before, after) -> np.ndarray:
        """Whether the way of a body's centre in a step goes deep through a box, (throws, bodies)."""
        found = np.zeros(before.shape[:2], bool)
        for half, pos, axes in zip(self.box_half, self.box_pos, self.box_axes, strict=True):
            room = half - np.minimum(DEEP * self.radius[:, None], 0.5 * half)
            a, b = (before - pos) @ axes, (after - pos) @ axes
            way = np.where(np.abs(b - a) < 1e-12, 1e-12, b - a)
            one, two = (-room - a) / way, (room - a) / way
            enters, leaves = np.minimum(one, two).max(-1), np.maximum(one, two).min(-1)
            found |= (enters < leaves) & (enters < 1) & (leaves > 0)
        return found


@dataclass
class Rest:
    """Of throws as they are now: which bodies should be at rest, and which are, (throws, bodies)."""

    m: mujoco.MjModel

    def __post_init__(self):
        geoms = self.m.body_geomadr[1:]
        self.friction = self.m.geom_friction[geoms, 0]
        self.may = np.isin(self.m.geom_type[geoms], STAYS) & (self.friction >= ROUGH)

    def should(self, sim) -> np.ndarray:
        return np.stack([self._in(sim.contact, env) for env in range(sim.num_envs)])

    def _in(self, contact, env: int) -> np.ndarray:
        """What touches moves or rests as one."""
        one, held = np.arange(len(self.may)), np.zeros(len(self.may), bool)
        for c in range(contact.count[env]):
            if contact.impulse[env, c, 2] <= 0:
                continue
            geoms = contact.geom[env, c]
            a, b = sorted(self.m.geom_bodyid[geoms] - 1)
            if a >= 0:
                one[one == one[a]] = one[b]
            elif steepness(contact.frame[env, c, 2]) < self.m.geom_friction[geoms, 0].max():
                held[b] = True
        return np.array([self.may[one == which].all() and held[one == which].any() for which in one])

    def still(self, sim) -> np.ndarray:
        speed = np.asarray(sim.qvel, float).reshape(-1, len(self.may), 6)
        return (np.linalg.norm(speed[..., :3], axis=-1) < RESTS) & (np.linalg.norm(speed[..., 3:], axis=-1) < RESTS)


def steepness(normal) -> float:
    """The tangent of a surface's angle with the horizontal."""
    return float(np.hypot(normal[0], normal[1]) / max(abs(normal[2]), 1e-9))


def rotations(quats) -> np.ndarray:
    q = np.asarray(quats, float)
    w, x, y, z = np.moveaxis(q / np.linalg.norm(q, axis=-1, keepdims=True), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def run(seed: int, throws: list[int], told=None, **options) -> list[dict]:
    """What happened in each throw of a scene; `told(text)` hears of each failure when it happens."""
    model = stiction.Model.from_mjcf(scene(seed))
    sim, m = stiction.Simulation(model, len(throws), num_threads=1, **options), model.mjmodel
    watch, clear = Watch(m), throw(sim, seed, throws)
    if not clear.any():
        return []
    failed = [{} for _ in throws]

    def fail(name: str, step: int, where: np.ndarray) -> None:
        """where: (throws, bodies), or (throws,)."""
        for env in np.flatnonzero(where.reshape(len(throws), -1).any(1) & clear):
            if name in failed[env]:
                continue
            found = failed[env][name] = {"s": step * sim.timestep}
            if where.ndim == 2:
                found |= watch.of_body(int(np.flatnonzero(where[env])[0]), spin[env], sim.timestep)
            if told is not None:
                told(f"throw {throws[env]}, step {step}: {name}, {found}")

    centres = watch.centres(sim)
    kinetic, potential = watch.energy(sim, centres)
    lowest, first, rise = kinetic + potential, kinetic, np.zeros(len(throws))
    allowed = RISE * first + LIFT * 9.81 * watch.mass.sum()
    steps = round(SECONDS / sim.timestep)
    for step in range(steps):
        spin = np.array(sim.qvel, float).reshape(len(throws), -1, 6)[..., 3:]
        sim.step()
        before, centres = centres, watch.centres(sim)
        kinetic, potential = watch.energy(sim, centres)
        rise = np.maximum(rise, kinetic + potential - lowest)
        lowest = np.minimum(lowest, kinetic + potential)
        below = centres[..., 2] < -DEEP * watch.radius
        fail("not finite", step, (np.asarray(sim.status) & int(stiction.Status.NON_FINITE)) != 0)
        fail("energy", step, kinetic + potential - lowest > allowed)
        fail("floor", step, below)
        fail("box", step, watch.in_boxes(before, centres))
    fail("lost", steps, below | watch.in_boxes(centres, centres))
    overlap, status, rest = np.array(sim.certificate.penetration, float), np.array(sim.status), Rest(m)
    if rest.may.any():
        sim.step(round(RESTED / sim.timestep) - steps)
    should, still = rest.should(sim), rest.still(sim)
    return [
        {
            "seed": seed,
            "throw": k,
            "bodies": len(watch.mass),
            "timestep": sim.timestep,
            "failed": failed[e],
            "rise": float(rise[e] / max(first[e], 1e-9)),
            "overlap": float(overlap[e]),
            "should_rest": int(should[e].sum()),
            "moving": [int(b) for b in np.flatnonzero(should[e] & ~still[e])],
            "status": int(status[e]),
        }
        for e, k in enumerate(throws)
        if clear[e]
    ]


def summary(rows: list[dict]) -> dict:
    """Counts over throws, and what was told of those that failed."""
    overlap = 1e3 * np.array([row["overlap"] for row in rows] or [0.0])
    should, moving = sum(row["should_rest"] for row in rows), [row for row in rows if row["moving"]]
    bits = {name: int(getattr(stiction.Status, name)) for name in STATUS}
    return {
        "scenes": len({row["seed"] for row in rows}),
        "throws": len(rows),
        "counts": {name: sum(name in row["failed"] for row in rows) for name in FAILURES}
        | {f"`{name}`": sum(row["status"] & bit != 0 for row in rows) for name, bit in bits.items()},
        "floor or box by step, ms": {
            f"{low} to {high}": [sum(bool({"floor", "box"} & set(row["failed"])) for row in some), len(some)]
            for low, high in ((1, 2), (2, 4), (4, 7), (7, 10))
            if (some := [row for row in rows if low <= 1e3 * row["timestep"] < high])
        },
        "bodies": sum(row["bodies"] for row in rows),
        "should_rest": should,
        "at_rest": should - sum(len(row["moving"]) for row in moving),
        "moving": {f"--seed {row['seed']} --throw {row['throw']}": row["moving"] for row in moving},
        "overlap_mm": {"p50": np.median(overlap), "p99": np.percentile(overlap, 99), "max": overlap.max()},
        "failed": [row for row in rows if row["failed"]],
    }


def table(found: dict) -> str:
    lines = [f"{found['throws']} throws of {found['scenes']} scenes", "", "| | throws | share |", "|---|---|---|"]
    for name, count in found["counts"].items():
        lines.append(f"| {name} | {count} | {count / max(1, found['throws']):.2%} |")
    steps = ", ".join(f"{name}: {part} of {of}" for name, (part, of) in found["floor or box by step, ms"].items())
    deep = ", ".join(f"{name} {value:.2g}" for name, value in found["overlap_mm"].items())
    lines += ["", f"floor or box, by step in ms: {steps}"]
    lines += [f"overlap after {SECONDS:g} s, mm: {deep}"]
    rest, of = found["at_rest"], found["should_rest"]
    share = f"{rest} of {of} ({rest / max(1, of):.1%}; {found['bodies']} bodies in all)"
    lines += [f"at rest after {RESTED:g} s of those that should: {share}"]
    lines += [f"{which}: bodies {', '.join(map(str, bodies))} move" for which, bodies in found["moving"].items()]
    return "\n".join(lines)


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy.scenes", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("scenes", type=int, help="how many")
    add("--seed", type=int, default=0, help="of the first scene; the others follow")
    add("--throws", type=int, default=THROWS, help="of each scene, side by side")
    add("--throw", type=int, help="this throw alone, telling when what fails")
    add("--dtype", default="float32", choices=("float32", "float64"))
    add("--timestep", type=float, help="instead of each scene's own, s")
    add("--output", type=Path, help="JSON; default bench/results/<machine>/random_scenes.json; '-' writes none")
    arguments = parser.parse_args(argv)
    throws = list(range(arguments.throws)) if arguments.throw is None else [arguments.throw]
    told, rows, scenes = print if arguments.throw is not None else None, [], 0
    with progress(arguments.scenes, "scene") as bar, suppress(KeyboardInterrupt):
        for seed in range(arguments.seed, arguments.seed + arguments.scenes):
            rows += run(seed, throws, told, dtype=arguments.dtype, timestep=arguments.timestep)
            scenes += 1
            tell(bar, f"{sum(bool(row['failed']) for row in rows)} failed")
    for row in rows:
        if row["failed"]:
            what = ", ".join(f"{name} at {found['s']:.3f} s" for name, found in row["failed"].items())
            print(f"--seed {row['seed']} --throw {row['throw']}: {what} (step {1e3 * row['timestep']:.2g} ms)")
    found = summary(rows)
    print(table(found))
    command = f"python -m bench.accuracy.scenes {scenes} --throws {arguments.throws} --seed {arguments.seed}"
    result = {"machine": machine.description(), "dtype": arguments.dtype, "command": command} | found
    if arguments.throw is None:
        machine.record(arguments.output, "random_scenes.json", result)
    return result


if __name__ == "__main__":
    main()
