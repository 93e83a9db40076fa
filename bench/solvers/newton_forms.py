"""``python -m bench.solvers.newton_forms``: a Newton step of SAP in half-solved rows, and in those of the bodies.

    half-solved    (I + Y' G Y) du = Y' (l - l0)        Y = J L^-1 D^-1/2,   A = L' D L
    bodies         (A + J' G J) dv = J' l - A (v - v*)

Multiply-adds, counted from which numbers are not 0: of contacts and rows with G > 0, on states of random rollouts, as
the step's own solver leaves them. Both eliminate from the tips to the base. ``limbs``, blocks of a limb or the trunk,
is what `linalg/gram.h` does for a world alone; ``dense`` is its bound where worlds of a pack share places of rows,
which would fill the other form as well; ``dofs`` is the least. Making Y is not in it: W_ii, for which it is made, sets
SAP's penalties either way.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import stiction

from bench.accuracy.__main__ import COMMON, ROBOTS
from bench.step import machine
from bench.step.engines import Stiction
from bench.step.scenes import HOLD, SCENES

STATES = {
    **{name: ROBOTS[name][:2] for name in ("ant", "humanoid", "anymal_c", "go1")},
    "panda": (SCENES["panda"], 1.0),
}
FORMS = ("dense", "limbs", "dofs", "bodies")
SECONDS, EVERY, ENVS = 1.0, 5, 8


class Tree:
    """Of a model's dofs: ancestors (nv, nv), its own among them, and the limb or trunk that each is in (nv,)."""

    def __init__(self, m: mujoco.MjModel):
        self.ancestors = np.eye(m.nv, dtype=bool)
        for dof in range(m.nv):
            if m.dof_parentid[dof] >= 0:
                self.ancestors[dof] |= self.ancestors[m.dof_parentid[dof]]
        self.limb = self._limbs(m)

    def _limbs(self, m: mujoco.MjModel) -> np.ndarray:
        """The trunk: the root of the largest tree that branches, and one branching child after the other; -1."""
        children = {dof: np.flatnonzero(m.dof_parentid == dof) for dof in range(-1, m.nv)}
        size = self.ancestors.sum(0)

        def branches(dof):
            return any(len(children[below]) > 1 for below in np.flatnonzero(self.ancestors[:, dof]))

        trunk, at = [], -1
        while rest := [dof for dof in children[at] if branches(dof)]:
            at = max(rest, key=lambda dof: size[dof])
            trunk.append(at)
        limb = np.full(m.nv, -1)
        for dof in np.setdiff1d(np.arange(m.nv), trunk):
            parent = m.dof_parentid[dof]
            limb[dof] = dof if parent < 0 or parent in trunk else limb[parent]
        return limb

    def with_ancestors(self, used: np.ndarray) -> np.ndarray:
        return self.ancestors[used].any(0)

    def with_limbs(self, used: np.ndarray) -> np.ndarray:
        return np.isin(self.limb, self.limb[used])


def step_cost(cliques: list[tuple[np.ndarray, int]], filled: np.ndarray) -> float:
    """Multiply-adds of a step: assembly of ``cliques`` (dofs (nv,), rows) in a matrix that has ``filled`` (nv, nv), its
    factor, the solution, and both products with the rows."""
    pattern, cost = filled | filled.T, 0
    for dofs, rows in cliques:
        n = dofs.sum()
        cost += rows * rows * n + rows * n * (n + 1) / 2 + 2 * rows * n
        pattern |= np.outer(dofs, dofs)
    for pivot in range(len(pattern) - 1, -1, -1):
        above = pattern[pivot].copy()
        above[pivot:] = False
        n = above.sum()
        pattern |= np.outer(above, above)
        if pattern[pivot, pivot]:
            cost += n + n * (n + 1) / 2 + 2 * n + 1
    return cost


def costs(problem: stiction.ContactProblem, tree: Tree) -> tuple[int, dict[str, float]] | None:
    """Rows that act, and multiply-adds by form; none where nothing acts."""
    J, normal = problem.J.reshape(-1, 3, problem.J.shape[1]), problem.impulse.reshape(-1, 3)[:, 2]
    rows = np.abs(problem.row_impulse) > 0
    rows &= (problem.row_impulse > problem.lower) & (problem.row_impulse < problem.upper)
    used = [(np.abs(j).max(0) > 0, 3) for j in J[normal > 0]] + [(np.abs(j) > 0, 1) for j in problem.J_row[rows]]
    if not used:
        return None
    nv = len(tree.limb)
    whole, nothing = np.ones(nv, bool), np.zeros((nv, nv), bool)
    solved = [(tree.with_ancestors(dofs), count) for dofs, count in used]
    found = {
        "dense": step_cost([(whole, count) for _, count in used], nothing),
        "limbs": step_cost([(tree.with_limbs(dofs), count) for dofs, count in solved], nothing),
        "dofs": step_cost(solved, nothing),
        # A is added, and times v - v* once.
        "bodies": step_cost(used, tree.ancestors) + tree.ancestors.sum() + 2 * tree.ancestors.sum() - nv,
    }
    return sum(count for _, count in used), found


def recorded(scene, amplitude: float) -> list:
    """`costs` of the states of a rollout in which something acts."""
    m = scene.mjmodel()
    model = stiction.Model.from_mjmodel(m).with_friction(torsional=0, rolling=0)
    solver = stiction.SolverOptions(**COMMON)
    engine = Stiction(replace(scene, amplitude=amplitude), model, ENVS, dtype="float64", solver=solver)
    tree, found = Tree(m), []
    for step in range(round(SECONDS / engine.timestep)):
        if step % HOLD == 0:
            engine.sim.ctrl[:] = engine.controls.next()
        engine.sim.step()
        if step % EVERY == EVERY - 1:
            found += [costs(engine.sim.contact_problem(env), tree) for env in range(ENVS)]
    return [entry for entry in found if entry]


def table(result: dict) -> str:
    lines = ["| | nv | states | rows that act | " + " | ".join(FORMS) + " |", "|---" * (4 + len(FORMS)) + "|"]
    for name, f in result["robots"].items():
        cells = [f"{f['nv']}", f"{f['states']}", f"{f['rows']:.1f}", *(f"{f[form]:.0f}" for form in FORMS)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.solvers.newton_forms", description=__doc__)
    parser.add_argument("--robots", nargs="+", default=list(STATES), choices=list(STATES))
    parser.add_argument(
        "--output", type=Path, help="JSON; default bench/results/<machine>/newton_forms.json; '-': none"
    )
    arguments = parser.parse_args(argv)
    result = {"machine": machine.description(), "robots": {}}
    for name in arguments.robots:
        scene, amplitude = STATES[name]
        found = recorded(scene, amplitude)
        result["robots"][name] = {"nv": int(scene.mjmodel().nv), "states": len(found)}
        if found:
            counts = {form: float(np.mean([cost[form] for _, cost in found])) for form in FORMS}
            result["robots"][name] |= {"rows": float(np.mean([rows for rows, _ in found]))} | counts
    print(table(result))
    machine.record(arguments.output, "newton_forms.json", result)
    return result


if __name__ == "__main__":
    main()
