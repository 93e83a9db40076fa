"""``python -m bench.solvers.degenerate``: random problems that no solver likes. See bench/README.md.

One to eight contacts on fewer velocities than they have rows, masses from 1 g to 1 t in one problem, contacts that are
there twice, friction from 0 to 2, half of the problems by bodies and half by W alone. Asked is not that they are solved
but that every number is finite, that no answer is worse than no impulse, by what the solver goes by (the residual of
its law, or a tenth of r_split, over V), and that who says converged is right: claims are judged again from velocities
in extended precision.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import stiction
from stiction.contact_residuals import residuals

from bench.progress import progress, tell
from bench.step import machine

BATCH = 500
CONTACTS = (1, 2, 3, 4, 6, 8)
RESIDUAL = {"coulomb": "r_con", "convex": "r_ccp", "dissipation": "r_mdp"}
SLACK = 1.01  # of a tolerance: what rounding may change of a residual


def batch_of(seed: int, count: int = BATCH) -> tuple[stiction.ContactProblem, np.ndarray]:
    """Problems of one size, and the function's velocities of impulses (count, 3 nc) in extended precision."""
    rng = np.random.default_rng(seed)
    nc = CONTACTS[seed % len(CONTACTS)]
    nv = int(rng.integers(1, 3 * nc))
    masses = 10 ** rng.uniform(-3, 3, (count, nv))
    J = rng.standard_normal((count, 3 * nc, nv)) * (rng.random((count, 3 * nc, nv)) < rng.uniform(0.3, 1))
    twin = rng.random((count, nc)) < 0.2  # the same as the contact before it
    for k in range(1, nc):
        J[twin[:, k], 3 * k : 3 * k + 3] = J[twin[:, k], 3 * k - 3 : 3 * k]
    mu = rng.uniform(0, 2, (count, nc)) * (rng.random((count, nc)) < 0.9)
    speed = rng.standard_normal((count, nv)) * 10 ** rng.uniform(-2, 1, (count, 1))
    wide = J.astype(np.longdouble)
    if seed // len(CONTACTS) % 2:
        problem = stiction.ContactProblem.from_primal(
            masses[:, :, None] * np.eye(nv), J, masses * speed, mu, least_velocity=1e-4
        )

        def velocity(impulse):
            pushed = np.einsum("bkv,bk->bv", wide, impulse)
            return np.einsum("bkv,bv->bk", wide, speed + pushed / masses)
    else:
        W = np.einsum("bkv,bv,blv->bkl", J, 1 / masses, J)
        W, q = 0.5 * (W + W.swapaxes(1, 2)), np.einsum("bkv,bv->bk", J, speed)
        problem = stiction.ContactProblem.from_delassus(W, q, mu, least_velocity=1e-4)

        def velocity(impulse):
            return q + np.einsum("bkl,bl->bk", W.astype(np.longdouble), impulse)

    return problem, velocity


def judge(problem, velocity, solution, tolerance: float) -> dict[str, int]:
    """Of a batch's solutions."""
    impulse = solution.impulse.reshape(len(solution.impulse), -1)
    finite = np.isfinite(impulse).all(1) & np.isfinite(solution.velocity).all((1, 2))
    wide = impulse.astype(np.longdouble)

    def own_of(impulses):
        found = residuals(problem, impulses, velocity(impulses))
        own = found[RESIDUAL[solution.law]]
        split = {"coulomb": found["r_split"], "convex": 0 * own, "dissipation": found["r_split_mdp"]}[solution.law]
        return own / found["scale"], np.maximum(own, 0.1 * split) / found["scale"]

    own, merit = own_of(wide)
    root = np.sqrt(np.diagonal(problem.delassus, axis1=1, axis2=2))
    rounding = 4 * np.finfo(float).eps * root.max(1) * (root * np.abs(impulse)).sum(1)  # m/s, of W l in double
    claims = np.asarray(solution.converged)
    return {
        "problems": len(claims),
        "not_finite": int((~finite).sum()),
        "worse_than_none": int((merit > SLACK * np.maximum(own_of(0 * wide)[1], tolerance)).sum()),
        "claims": int(claims.sum()),
        "false_claims": int((claims & ~(own <= SLACK * tolerance + rounding / np.asarray(solution.scale))).sum()),
    }


def run(names, numbers: int, dtype: str, limits: dict, bar) -> dict[str, dict[str, int]]:
    tallies = {name: {} for name in names}
    for seed in range(-(-numbers // BATCH)):
        problem, velocity = batch_of(seed, min(BATCH, numbers - seed * BATCH))
        for name in names:
            tell(bar, f"{name}, {dtype}")
            given = problem.to_primal() if stiction.SolverOptions.of(name).needs_bodies else problem
            solution = stiction.solve(given, name, dtype=dtype, **limits)
            for key, count in judge(problem, velocity, solution, limits["tolerance"]).items():
                tallies[name][key] = tallies[name].get(key, 0) + count
    return tallies


def table(result: dict) -> str:
    head = "| | problems | not finite | worse than no impulse | say converged | of those wrong |"
    lines = [head, "|---" * (head.count("|") - 1) + "|"]
    for dtype, tallies in result["dtypes"].items():
        for name, t in tallies.items():
            share = f"{100 * t['claims'] / t['problems']:.2f} %"
            counts = f"{t['problems']:,} | {t['not_finite']} | {t['worse_than_none']} | {share} | {t['false_claims']}"
            lines.append(f"| {name}, {dtype} | {counts} |")
    return "\n".join(lines)


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.solvers.degenerate", description=__doc__)
    add = parser.add_argument
    add("--problems", type=int, default=100_000)
    add("--solvers", nargs="+", default=list(stiction.solver_names()), choices=list(stiction.solver_names()))
    add("--dtypes", nargs="+", default=["float64", "float32"], choices=("float64", "float32"))
    add("--iterations", type=int, default=200, help="at most")
    add("--output", type=Path, help="JSON; default bench/results/<machine>/degenerate.json; '-': none")
    arguments = parser.parse_args(argv)
    result = {"machine": machine.description(), "iterations": arguments.iterations, "dtypes": {}}
    batches = -(-arguments.problems // BATCH)
    with progress(batches * len(arguments.solvers) * len(arguments.dtypes), "batch") as bar:
        for dtype in arguments.dtypes:
            limits = {
                "tolerance": {"float64": 1e-8, "float32": 1e-5}[dtype],
                "max_iterations": arguments.iterations,
            }
            result["dtypes"][dtype] = run(arguments.solvers, arguments.problems, dtype, limits, bar)
    print(table(result))
    machine.record(arguments.output, "degenerate.json", result)
    return result


if __name__ == "__main__":
    main()
