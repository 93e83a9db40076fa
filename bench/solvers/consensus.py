"""``python -m bench.solvers.consensus``: SubADMM in NumPy: what splitting does, and which weights. See bench/README.md.

[Lee2025], section VI, with a slack z for each contact and subsystem, which here may be each ``body`` of a contact (the
paper), each ``tree`` (no split by bodies) or the ``contact`` as a whole (no subsystems): what the paper compares in its
ablation. Counted is what does not depend on a language: multiplications of a pass and of the factor that it solves
with, and how far a hundred passes come.

Penalties: ``paper``, one number, the geometric mean over bodies with contacts of their mass over the contacts;
``ours``, 1.5 / W_ii along the normal and along the face; ``lox``, the same of LOX's weights (`lox`) in the place of
W_ii. All with over-relaxation of 1.5, with and without Anderson's acceleration.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np

from bench.progress import progress, tell
from bench.solvers import lox, steps
from bench.solvers.baselines import project_strict
from bench.step import machine
from bench.step.scenes import HOLD, SCENES, Controls, Scene, data_folder, start_qpos

SPLITS = ("body", "tree", "contact")
LEVELS = (1e-5, 1e-6)  # of V
MOST = 300  # passes
OURS = 1.5  # B W_ii
KINDS = ("paper", "ours", "lox")
DEPTHS = (3, 0)  # of Anderson's acceleration


def slots(step: steps.Step, split: str) -> tuple[np.ndarray, np.ndarray]:
    """J of every slack (n, 3, nv), and its contact (n,)."""
    if split == "contact":
        parts = step.sides.sum(1)[:, None]
    elif split == "body":
        parts = step.sides
    else:
        trees = np.unique(step.tree)
        parts = np.stack([np.where(step.tree == t, step.sides.sum(1), 0) for t in trees], axis=1)
    touched = np.abs(parts).max((2, 3)) > 0
    return parts[touched], np.nonzero(touched)[0]


class Passes:
    """SubADMM on one step's contacts, B (nc, 3) for each slack, from no impulses."""

    def __init__(self, step: steps.Step, B: np.ndarray, split: str = "contact", relaxation: float = 1.0, e=None):
        J, self.owner = slots(step, split)
        self.count = np.bincount(self.owner, minlength=len(B))[:, None]
        self.B, self.mu, self.e, self.relaxation = B, step.mu, step.bias() if e is None else e, relaxation
        flat, wide = J.reshape(-1, J.shape[2]), B[self.owner].ravel()
        H = step.A + flat.T @ (wide[:, None] * flat)
        self.free = (flat @ np.linalg.solve(step.A, step.b)).reshape(-1, 3)
        self.T = flat @ np.linalg.solve(H, flat.T)
        self.problem = step.problem(self.e)
        impulse = np.zeros_like(B)
        self.y = B[self.owner] * self.free - impulse[self.owner]

    def impulse(self, y: np.ndarray) -> np.ndarray:
        total = np.zeros_like(self.B)
        np.add.at(total, self.owner, y)
        return project_strict(-(total + self.B * self.e) / self.count, self.mu)

    def next(self, y: np.ndarray) -> np.ndarray:
        pushed, B = self.impulse(y)[self.owner], self.B[self.owner]
        z = (y + pushed) / B
        w = self.free + (self.T @ (B * (z - self.free) + pushed).ravel()).reshape(-1, 3)
        return B * (self.relaxation * w + (1 - self.relaxation) * z) - pushed

    def residual(self, y: np.ndarray) -> float:
        """r_con / V."""
        found = self.problem.residuals(self.impulse(y))
        return found["r_con"] / found["scale"]

    def run(self, most: int, depth: int = 0, levels=LEVELS) -> tuple[dict[float, int], float]:
        """Passes until r_con is at most each level of V (``most`` + 1: never), and the last r_con / V.

        ``depth``: of Anderson's acceleration, on y, in the norm of B^-1; a plain step where the residual grows.
        """
        weight = 1 / np.sqrt(np.maximum(self.B[self.owner], 1e-300))
        y, taken = self.y, dict.fromkeys(levels, most + 1)
        points, images, last, found = [], [], np.inf, np.inf
        for k in range(1, most + 1):
            image = self.next(y)
            found = self.residual(image)
            for level in levels:
                if found <= level:
                    taken[level] = min(taken[level], k)
            points, images = [*points, y][-depth - 1 :], [*images, image][-depth - 1 :]
            rest = np.linalg.norm(weight * (image - y))
            y = image
            if found <= min(levels, default=0):
                break
            if depth and len(points) > 1 and rest <= last:
                gaps = [(weight * (g - x)).ravel() for g, x in zip(images, points, strict=True)]
                change = np.array([b - a for a, b in zip(gaps, gaps[1:], strict=False)]).T
                normal = change.T @ change
                normal += np.diag(1e-3 * np.diag(normal) + 1e-300)
                for part, a, b in zip(np.linalg.solve(normal, change.T @ gaps[-1]), images, images[1:], strict=False):
                    y = y - part * (b - a)
            last = rest
        self.y = y
        return taken, found


def multiplications(step: steps.Step, split: str) -> tuple[int, int]:
    """Of a pass (both triangles of the factor of A + J'BJ, each slack's J twice) and of the factor, eliminated by least
    degree."""
    J, _ = slots(step, split)
    used = np.abs(J).max(1) > 0
    pattern = (np.abs(step.A) > 0) | (used.T.astype(int) @ used.astype(int) > 0)
    left = np.ones(len(pattern), bool)
    entries = factor = 0
    while left.any():
        degree = np.where(left, (pattern & left).sum(1), len(pattern) + 1)
        k = int(degree.argmin())
        column = pattern[k] & left
        size = int(column.sum())
        entries, factor = entries + size, factor + size * (size + 1) // 2
        pattern[np.ix_(column, column)] = True
        left[k] = False
    return 2 * entries + 2 * int((np.abs(J) > 0).sum()), factor


def paper_penalty(model: mujoco.MjModel, step: steps.Step) -> np.ndarray:
    bodies, count = np.unique(step.bodies[model.body_weldid[step.bodies] > 0], return_counts=True)
    mass = np.array([model.body_mass[model.body_weldid == model.body_weldid[b]].sum() for b in bodies])
    return np.full((len(step.mu), 3), np.exp(np.mean(np.log(mass / count))))


def of_mobility(W: np.ndarray) -> np.ndarray:
    """B (nc, 3), one along the face."""
    face = W[:, :2].mean(1)
    return OURS / np.column_stack([face, face, W[:, 2]])


@dataclass
class State:
    """A step of a rollout and its penalties by name."""

    step: steps.Step
    penalties: dict[str, np.ndarray]


def state(model: mujoco.MjModel, data: mujoco.MjData, step: steps.Step) -> State:
    weights = lox.Weights(model, data, step.A)
    mean = [weights.of_contact(*c) for c in zip(data.contact.pos, step.frame, step.bodies, strict=True)]
    ours, theirs = of_mobility(step.mobility), of_mobility(np.array(mean))
    return State(step, {"paper": paper_penalty(model, step), "ours": ours, "lox": theirs})


#: Of the data folder; armature is set to 0 where the file has any.
ROBOTS = {
    "anymal_c": (SCENES["anymal_c"], 0.5, 1.0),
    "anymal_b": (Scene("anymal_b", ("mujoco_menagerie/anybotics_anymal_b/scene.physics.xml",), 0.5, 1.0), 0.5, 1.0),
    "go1": (SCENES["go1"], 0.5, 1.0),
    "a1": (Scene("a1", ("mujoco_menagerie/unitree_a1/scene.physics.xml",), 0.5, 1.0), 0.5, 1.0),
    "humanoid": (SCENES["humanoid"], 0.4, 1.5),
}


def rollout(scene: Scene, amplitude: float, seconds: float, seeds: int, every: int):
    """Contact states under random controls, without armature, from the keyframe on; steps are exact."""
    model = replace(scene, amplitude=amplitude).mjmodel()
    model.dof_armature[:] = 0
    model.geom_condim[:] = 3
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    for seed in range(seeds):
        data, controls = mujoco.MjData(model), Controls(model, amplitude, 1, seed)
        data.qpos[:] = start_qpos(model)
        for k in range(round(seconds / model.opt.timestep)):
            if k % HOLD == 0:
                data.ctrl[:] = controls.next()[0]
            step = steps.assembled(model, data)
            impulse = steps.exact(step)
            if k % every == 0 and np.any(impulse):
                yield state(model, data, step)
            steps.advance(model, data, step.velocity(impulse))


def weights(arguments, bar) -> dict:
    """Passes to each level, by robot, depth of Anderson's acceleration and penalty."""
    result = {}
    for name in arguments.robots:
        passes = {(depth, kind): [] for depth in DEPTHS for kind in KINDS}
        contacts = []
        for found in rollout(*ROBOTS[name], arguments.seeds, arguments.every):
            tell(bar, name)
            contacts.append(len(found.step.mu))
            for (depth, kind), counts in passes.items():
                taken, _ = Passes(found.step, found.penalties[kind], relaxation=1.5).run(MOST, depth)
                counts.append([taken[level] for level in LEVELS])
        result[name] = {"states": len(contacts), "contacts": float(np.mean(contacts))}
        for depth in DEPTHS:
            result[name][f"anderson {depth}"] = {kind: figures(np.array(passes[depth, kind])) for kind in KINDS}
    return result


def figures(counts: np.ndarray) -> dict:
    """Of passes (states, levels)."""
    return {
        f"{level:g}": {
            "mean": float(taken.mean()),
            "p95": float(np.percentile(taken, 95)),
            "never": float(np.mean(taken > MOST)),
        }
        for level, taken in zip(LEVELS, counts.T, strict=True)
    }


def herd(count: int) -> mujoco.MjModel:
    """So many limp Go1 that fall onto each other, four to a layer, every other layer between those below."""
    floor = '<worldbody><geom type="plane" size="9 9 1"/></worldbody>'
    floor = f'<mujoco><option timestep="0.004" cone="elliptic"/>{floor}</mujoco>'
    world = mujoco.MjSpec.from_string(floor)
    for i in range(count):
        robot = mujoco.MjSpec.from_file(str(data_folder() / SCENES["go1"].files[0].replace("scene", "go1")))
        robot.option.cone, robot.option.impratio = world.option.cone, world.option.impratio
        layer, off = i // 4, 0.2 * (i // 4 % 2)
        place = [0.6 * (i % 2) + off, 0.4 * (i // 2 % 2) + off, 0.35 + 0.4 * layer]
        world.attach(robot, prefix=f"{i}/", frame=world.worldbody.add_frame(pos=place))
    model = world.compile()
    model.geom_condim[:] = 3
    model.actuator_gainprm[:], model.actuator_biasprm[:] = 0, 0
    return model


def fallen(model: mujoco.MjModel, seconds: float) -> steps.Step:
    """Where MuJoCo has it by then, with Go1's legs at first as its keyframe has them."""
    data, legs = mujoco.MjData(model), SCENES["go1"].mjmodel().key_qpos[0][7:]
    data.qpos.reshape(-1, 7 + len(legs))[:, 7:] = legs
    mujoco.mj_step(model, data, round(seconds / model.opt.timestep))
    return steps.assembled(model, data)


INSTANTS = {8: (0.5, 0.75, 1.0, 1.25), 27: (0.5, 1.0)}  # s, of so many robots


def splits(arguments, bar) -> dict:
    """By number of robots and split, means over instants; overlaps, which MuJoCo lets be centimetres, stay."""
    result = {}
    for count in arguments.herds:
        model, rows = herd(count), {split: [] for split in SPLITS}
        contacts = []
        for seconds in INSTANTS[count]:
            step = fallen(model, seconds)
            e = np.maximum(step.bias(), 0)
            contacts.append(len(step.mu))
            for split in SPLITS:
                tell(bar, f"{count} Go1, {split}")
                passes = Passes(step, paper_penalty(model, step), split, e=e)
                _, after = passes.run(100, levels=())
                pass_, factor = multiplications(step, split)
                rows[split].append((len(passes.owner), pass_, factor, after))
        names = ("slacks", "pass", "factor", "after_100")
        result[str(count)] = {"nv": model.nv, "contacts": float(np.mean(contacts))} | {
            split: dict(zip(names, np.mean(found, axis=0).tolist(), strict=True)) for split, found in rows.items()
        }
    return result


def table_of_weights(result: dict) -> str:
    head = [f"{kind}: {level:g} V" for level in LEVELS for kind in KINDS]
    lines = ["| passes, mean / p95 (never, %) | states | contacts | " + " | ".join(head) + " |"]
    lines.append("|---" * (len(head) + 3) + "|")
    for name, entry in result.items():
        for depth in DEPTHS:
            found = entry[f"anderson {depth}"]
            cells = [name if depth else f"{name}, no Anderson", f"{entry['states']}", f"{entry['contacts']:.1f}"]
            for level in LEVELS:
                for kind in KINDS:
                    f = found[kind][f"{level:g}"]
                    cells.append(f"{f['mean']:.1f} / {f['p95']:.0f} ({100 * f['never']:.1f})")
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table_of_splits(result: dict) -> str:
    lines = [
        "| | nv | contacts | a slack for each | slacks | products a pass | of the factor | r_con/V after 100 passes |"
    ]
    lines.append("|---" * 8 + "|")
    for count, entry in result.items():
        for split in SPLITS:
            f = entry[split]
            lines.append(
                f"| {count} Go1 | {entry['nv']} | {entry['contacts']:.0f} | {split} | {f['slacks']:.0f} "
                f"| {f['pass']:,.0f} | {f['factor']:,.0f} | {f['after_100']:.2g} |"
            )
    return "\n".join(lines)


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.solvers.consensus", description=__doc__)
    add = parser.add_argument
    add("--robots", nargs="*", default=list(ROBOTS), choices=list(ROBOTS), help="on which weights are tried")
    add("--seeds", type=int, default=4, help="rollouts of each robot")
    add("--every", type=int, default=5, help="so-many-th step is a state")
    add("--herds", nargs="*", type=int, default=list(INSTANTS), choices=list(INSTANTS), help="robots that are split")
    add("--output", type=Path, help="JSON; default bench/results/<machine>/consensus.json; '-': none")
    arguments = parser.parse_args(argv)
    result = {"machine": machine.description(), "most": MOST}
    with progress(0, "problem") as bar:
        result["weights"] = weights(arguments, bar)
        result["splits"] = splits(arguments, bar)
    print(table_of_weights(result["weights"]) + "\n\n" + table_of_splits(result["splits"]))
    machine.record(arguments.output, "consensus.json", result)
    return result


if __name__ == "__main__":
    main()
