"""``python -m bench.accuracy.fclib``: the contact solvers on public contact problems. See bench/README.md.

FCLIB files hold W and q with u = W r + q, rows n, t1, t2. Here W is symmetrised (collections hold some that are not),
rows become t1, t2, n, and W = L L' makes the problem A = I, J = L, e = q. V is the largest entry of q. r_con is
computed again from W itself, not from L.
"""

from __future__ import annotations

import argparse
import importlib
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.accuracy import oracle  # noqa: F401  the folder of the modules that are built with the tests
from bench.step import machine
from bench.step.scenes import data_folder

_ADMM = {"solver": "admm", "iterations": 4000, "tolerance": 1e-6}
_PAPER = {"interval": 10, "accelerate": 0, "patience": 0}  # rho by the rule, every ten passes, and nothing else
#: Rows of the table: a solver, what is changed of its defaults, how many iterations it may take.
VARIANTS = {
    "canal": {},
    "canal, no Anderson": {"accelerate": 0},
    "canal, c = 1e4 from the start": {"penalty": 1e4},
    "canal, the paper's penalty": {"penalty": 1e4, "penalty_cap": 1e8, "accelerate": 0, "uniform": 1},
    "canal, float": {"single": True, "tolerance": 1e-5},
    "subadmm": {"solver": "subadmm", "iterations": 2000},
    "pgs": {"solver": "pgs", "iterations": 2000},
    "admm": _ADMM,
    "admm, to 1e-8 V": _ADMM | {"tolerance": 1e-8, "iterations": 10000},
    "admm, no Anderson": _ADMM | {"accelerate": 0},
    "admm, the paper's spectral rule": _ADMM | _PAPER | {"rule": 2},
    "admm, the paper's linear rule": _ADMM | _PAPER | {"rule": 1},
    "admm, float": _ADMM | {"single": True, "tolerance": 1e-5},
}
LEVELS = (1e-8, 1e-6, 1e-5)  # of V


@dataclass(frozen=True)
class Problem:
    name: str
    W: np.ndarray  # (3 nc, 3 nc)  1/kg
    q: np.ndarray  # (3 nc)        m/s
    mu: np.ndarray  # (nc)

    @property
    def scale(self) -> float:
        return float(np.abs(self.q).max())


def read(path: Path) -> Problem:
    """Errors: OSError for what is no HDF5 file, KeyError for one without a problem, ValueError for its storage."""
    import h5py

    with h5py.File(path) as file:
        local = file["fclib_local"]
        matrix = {name: np.asarray(local["W"][name]) for name in ("m", "nz", "p", "i", "x")}
        q, mu = np.asarray(local["vectors/q"], float), np.asarray(local["vectors/mu"], float)
    size, storage = int(matrix["m"][0]), int(matrix["nz"][0])
    if storage != -1:
        raise ValueError(f"{path.name}: W has nz {storage}, expected -1 (compressed columns)")
    columns = np.repeat(np.arange(size), np.diff(matrix["p"]))
    W = np.zeros((size, size))
    np.add.at(W, (matrix["i"][: len(columns)], columns), matrix["x"][: len(columns)])
    order = np.arange(size).reshape(-1, 3)[:, [1, 2, 0]].ravel()
    W = (0.5 * (W + W.T))[np.ix_(order, order)]
    return Problem(path.stem, W, q[order], mu)


def factor(W: np.ndarray) -> np.ndarray:
    """L of W = L L', with a column per positive eigenvalue."""
    values, vectors = np.linalg.eigh(W)
    kept = values > 1e-14 * values[-1]
    return np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))


def r_con(problem: Problem, impulse: np.ndarray) -> float:
    """max w_i |l_i - P_K(l_i - (u_i + (0, 0, mu |u_t|)) / w_i)| with u = W l + q and w_i = tr(W_ii) / 3, m/s."""
    u, mu = (problem.W @ impulse + problem.q).reshape(-1, 3), problem.mu
    w = np.diag(problem.W).reshape(-1, 3).mean(axis=1)
    held = w[:, None] * impulse.reshape(-1, 3)  # the cone does not mind the factor
    trial = held - u
    trial[:, 2] -= mu * np.linalg.norm(u[:, :2], axis=1)
    reach, height = np.linalg.norm(trial[:, :2], axis=1), trial[:, 2]
    normal = (height + mu * reach) / (1 + mu**2)
    border = np.column_stack([trial[:, :2] * (mu * normal / np.maximum(reach, 1e-300))[:, None], normal])
    inside, outside = reach <= mu * height, mu * reach <= -height
    projected = np.where(inside[:, None], trial, np.where(outside[:, None], 0, border))
    return float(np.linalg.norm(held - projected, axis=1).max())


def solve(problem: Problem, solver="canal", iterations=200, tolerance=1e-8, **options) -> dict:
    """One problem from cold: r_con / V by W, the solver's iterations, and its factorizations where it counts them."""
    L, begun = factor(problem.W), time.perf_counter()
    found = importlib.import_module("stiction_solvers").solve(
        solver,
        np.eye(L.shape[1]),
        np.zeros(L.shape[1]),
        L,
        problem.q,
        problem.mu,
        least_velocity=max(problem.scale, 1e-300),
        tolerance=tolerance,
        iterations=iterations,
        **options,
    )
    seconds = time.perf_counter() - begun
    ratio = r_con(problem, found["impulse"]) / problem.scale
    return {"name": problem.name, "contacts": len(problem.mu), "r_con_over_V": ratio} | {
        "iterations": found["iterations"],
        "factorizations": found["factorizations"],
        "seconds": seconds,
    }


def figures(solved: list[dict]) -> dict:
    r, iterations, seconds = (np.array([s[key] for s in solved]) for key in ("r_con_over_V", "iterations", "seconds"))
    return {
        "number": len(solved),
        "below": {f"{level:.0e}": int(np.sum(r <= 1.05 * level)) for level in LEVELS},
        "worst": float(r.max()),
        "iterations": {"p50": float(np.median(iterations)), "p90": float(np.percentile(iterations, 90))},
        "factorizations": float(np.mean([s["factorizations"] for s in solved])),
        "seconds": float(seconds.sum()),
    }


def table(result: dict) -> str:
    levels = [f"{level:.0e}" for level in LEVELS]
    head = ["", *(f"r_con ≤ {level} V" for level in levels), "worst", "iterations: median", "p90"]
    head += ["factorizations: mean", "seconds in all"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, variant in result["variants"].items():
        f = variant["figures"]
        cells = [*(f"{f['below'][level]} of {f['number']}" for level in levels), f"{f['worst']:.1e}"]
        cells += [f"{f['iterations']['p50']:g}", f"{f['iterations']['p90']:.0f}"]
        cells += [f"{f['factorizations']:.1f}" if f["factorizations"] else "-", f"{f['seconds']:.1f}"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy.fclib", description=__doc__)
    add = parser.add_argument
    add("folder", type=Path, nargs="?", default=data_folder() / "fclib_problems", help="searched with its sub-folders")
    add("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    add("--output", type=Path, help="JSON; default bench/results/<machine>/fclib.json; '-' writes none")
    arguments = parser.parse_args(argv)
    problems = [read(path) for path in sorted(arguments.folder.rglob("*.hdf5"))]
    if not problems:
        parser.error(f"no .hdf5 file below '{arguments.folder}'")

    contacts = [len(problem.mu) for problem in problems]
    print(f"{len(problems)} problems of {min(contacts)} to {max(contacts)} contacts, W symmetrised, from cold")
    result = {"machine": machine.description(), "variants": {}}
    for name in arguments.variants:
        solved = [solve(problem, **VARIANTS[name]) for problem in problems]
        result["variants"][name] = {"figures": figures(solved), "problems": solved}
    print(table(result))
    machine.record(arguments.output, "fclib.json", result)
    return result


if __name__ == "__main__":
    main()
