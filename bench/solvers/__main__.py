"""``python -m bench.solvers FOLDER``: every contact solver on a folder of FCLIB problems. See bench/README.md.

W is symmetrised (collections hold some that are not), solvers start from no impulses, on one thread; what they take is
CPU time without factoring W, which is the same for all. Residuals are stiction's, in double from W itself. A problem is
solved where the residual of the solver's own law is at most tolerance V, V the largest entry of q. ``--baselines`` adds
other ways (`baselines`), whose times are NumPy's. ``--copies`` adds to each problem some that differ from it in order,
frames and unit alone: what hangs on rounding shows in them.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import stiction

from bench.progress import progress, tell
from bench.solvers import baselines
from bench.step import machine
from bench.step.scenes import data_folder, option

LEVELS = (1e-8, 1e-6, 1e-5)  # of V
RESIDUAL = {"coulomb": "r_con", "convex": "r_ccp", "dissipation": "r_mdp"}


def variant(text: str, limits: dict) -> stiction.SolverOptions:
    """``canal`` or ``canal:penalty=1e4,accelerate=0``: a solver and what is changed of it, its limits too."""
    name, _, changed = text.partition(":")
    return stiction.SolverOptions(name=name, **limits | dict(option(word) for word in changed.split(",") if word))


def ways(arguments) -> dict:
    """By what a table calls it, a function of a problem that solves it from cold."""
    limits = {"tolerance": arguments.tolerance, "iterations": arguments.iterations}
    chosen = {text: variant(text, limits) for text in arguments.solvers}

    def solved(solver, problem):
        given = problem.to_primal() if solver.needs_bodies else problem
        return stiction.solve(given, solver, dtype=arguments.dtype, num_threads=1)

    found = {text: partial(solved, solver) for text, solver in chosen.items()}
    return found | {f"{name} (NumPy)": partial(baselines.solve, name, **limits) for name in arguments.baselines}


def solve(name: str, problem: stiction.ContactProblem, way, arguments) -> dict:
    """One problem: the fastest of some rounds, which all find the same."""
    runs = [way(problem=problem) for _ in range(arguments.rounds)]
    found = runs[0]
    own = getattr(found, RESIDUAL[found.law]) / found.scale
    return {
        "name": name,
        "contacts": problem.num_contacts,
        "law": found.law,
        "own_over_V": own,
        "r_con_over_V": found.r_con / found.scale,
        "iterations": found.iterations,
        "factorizations": found.factorizations,
        "solved": bool(own <= arguments.tolerance),
        "seconds": min(run.cpu_seconds for run in runs),
    }


def read(folder: Path, largest: int) -> tuple[dict[str, stiction.ContactProblem], dict[str, str]]:
    """The problems of a folder by their paths in it, and why others could not be read."""
    problems, refused = {}, {}
    paths = sorted(folder.rglob("*.hdf5"))
    with progress(len(paths), "problem") as bar:
        for path in paths:
            tell(bar, "factors W")
            name = str(path.relative_to(folder).with_suffix(""))
            try:
                arrays = stiction.read_fclib(path)
                if len(arrays["mu"]) > largest:
                    continue
                local = "W" in arrays
                make = stiction.ContactProblem.from_delassus if local else stiction.ContactProblem.from_primal
                problems[name] = make(**arrays, symmetrize=True) if local else make(**arrays)
                problems[name]._factor  # noqa: B018
            except (OSError, ValueError, KeyError, IndexError, MemoryError) as error:
                problems.pop(name, None)
                refused[name] = f"{type(error).__name__}: {error}"
    return problems, refused


def copy(problem: stiction.ContactProblem, seed: int) -> stiction.ContactProblem:
    """The same problem with its contacts in another order, their tangents turned and velocities in another unit."""
    rng = np.random.default_rng(seed)
    nc = problem.num_contacts
    order, angle = rng.permutation(nc), rng.uniform(0, 2 * np.pi, nc)
    turn = np.zeros((nc, 3, 3))
    turn[:, 0, 0] = turn[:, 1, 1] = np.cos(angle)
    turn[:, 0, 1], turn[:, 1, 0], turn[:, 2, 2] = np.sin(angle), -np.sin(angle), 1
    blocks = problem.delassus.reshape(nc, 3, nc, 3)[order][:, :, order]
    W = np.einsum("iab,ibjc,jdc->iajd", turn, blocks, turn, optimize=True).reshape(3 * nc, 3 * nc)
    q = np.einsum("iab,ib->ia", turn, problem.q.reshape(nc, 3)[order]) * 10 ** rng.uniform(-2, 2)
    R = problem.R.reshape(nc, 3)[order]
    return stiction.ContactProblem.from_delassus(W, q, problem.mu[order], R, symmetrize=True)


def figures(solved: list[dict]) -> dict:
    own, iterations, seconds = (np.array([s[key] for s in solved]) for key in ("own_over_V", "iterations", "seconds"))
    counted = [s["factorizations"] for s in solved if s["factorizations"] is not None]
    return {
        "law": solved[0]["law"],
        "problems": len(solved),
        "solved": sum(s["solved"] for s in solved),
        "own_below": {f"{level:.0e}": int(np.sum(own <= level)) for level in LEVELS},
        "worst_own_over_V": float(own.max()),
        "median_r_con_over_V": float(np.median([s["r_con_over_V"] for s in solved])),
        "iterations": {
            "p50": float(np.median(iterations)),
            "p90": float(np.percentile(iterations, 90)),
            "most": int(iterations.max()),
        },
        "factorizations": float(np.median(counted)) if counted else None,
        "mean_factorizations": float(np.mean(counted)) if counted else None,
        "seconds": {"p50": float(np.median(seconds)), "all": float(seconds.sum())},
        "unsolved": [s["name"] for s in solved if not s["solved"]],
    }


def table(result: dict) -> str:
    head = ["", "law", "solved", *(f"≤ {level:.0e} V" for level in LEVELS), "worst", "r_con/V: median"]
    head += ["iterations: median", "p90", "most", "factorizations: median", "mean", "ms: median", "seconds in all"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, entry in result["solvers"].items():
        f = entry["figures"]
        cells = [f["law"], f"{f['solved']} of {f['problems']}", *map(str, f["own_below"].values())]
        cells += [f"{f['worst_own_over_V']:.1e}", f"{f['median_r_con_over_V']:.1e}", f"{f['iterations']['p50']:g}"]
        cells += [f"{f['iterations']['p90']:.0f}", str(f["iterations"]["most"])]
        factored = f["factorizations"], f["mean_factorizations"]
        cells += ["", ""] if factored[0] is None else [f"{factored[0]:g}", f"{factored[1]:.2g}"]
        cells += [f"{1e3 * f['seconds']['p50']:.2g}", f"{f['seconds']['all']:.1f}"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(result: dict, path: Path) -> None:
    """Performance profile (share solved within a factor of the fastest), and share below a residual."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    entries = {name: entry["problems"] for name, entry in result["solvers"].items()}
    seconds = np.array([[s["seconds"] if s["solved"] else np.inf for s in solved] for solved in entries.values()])
    fastest = seconds.min(axis=0)
    known = np.isfinite(fastest)
    ratios = np.where(known, seconds / np.where(known, fastest, 1), np.inf)
    end = 2 * max(10.0, ratios[np.isfinite(ratios)].max(initial=1))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), sharey=True)
    for number, (row, (name, solved)) in enumerate(zip(ratios, entries.items(), strict=True)):
        style = {"where": "post", "ls": "--" if number >= 10 else "-"}  # there are ten colours
        share = np.arange(len(row) + 1) / len(row)
        reached = np.sort(row[np.isfinite(row)])
        left.step([1, *reached, end], [0, *share[1 : len(reached) + 1], share[len(reached)]], label=name, **style)
        own = np.sort([max(s["own_over_V"], 1e-16) for s in solved])
        right.step([*own, 10], [*share[1:], 1], label=f"{name} ({solved[0]['law']})", **style)
    left.set(xscale="log", xlim=(1, end), xlabel="CPU time over that of the fastest", ylabel="share of problems solved")
    right.set(xscale="log", xlim=(1e-12, 1), xlabel="residual of the solver's own law, of V")
    right.axvline(result["limits"]["tolerance"], color="0.5", lw=1, ls="--")
    for panel in (left, right):
        panel.set_ylim(0, 1.03)
        panel.grid(alpha=0.3)
        panel.legend(fontsize=8, loc="lower right", framealpha=0.6)
    limits = result["limits"]
    figure.suptitle(
        f"{result['problems']} problems, {result['dtype']}, tolerance {limits['tolerance']:g} V, at most "
        f"{limits['iterations']} iterations",
        fontsize=10,
    )
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    pyplot.close(figure)
    print(f"wrote {path}")


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.solvers", description=__doc__)
    add = parser.add_argument
    add("folder", type=Path, nargs="?", default=data_folder() / "fclib_problems", help="searched with its sub-folders")
    add("--solvers", nargs="+", default=list(stiction.solver_names()), metavar="NAME[:KNOB=VALUE,...]")
    add(
        "--baselines",
        nargs="*",
        default=[],
        metavar="NAME",
        choices=list(baselines.BASELINES),
        help=f"of {', '.join(baselines.BASELINES)}",
    )
    add("--dtype", default="float64", choices=("float64", "float32"))
    add("--tolerance", type=float, help="of V; default 1e-8, float32 1e-5")
    add("--iterations", type=int, default=1000, help="at most")
    add("--rounds", type=int, default=1, help="of each problem; the fastest counts")
    add("--copies", type=int, default=0, help="of each problem besides, contacts permuted, tangents turned, q scaled")
    add("--largest", type=int, default=10**9, help="problems of at most so many contacts")
    add("--output", type=Path, help="JSON, a plot beside it; default bench/results/<machine>/solvers.json; '-': none")
    arguments = parser.parse_args(argv)
    if arguments.tolerance is None:
        arguments.tolerance = {"float64": 1e-8, "float32": 1e-5}[arguments.dtype]
    chosen = ways(arguments)
    problems, refused = read(arguments.folder, arguments.largest)
    for name, reason in refused.items():
        print(f"left out: {name}: {reason}")
    if not problems:
        parser.error(f"no problem below '{arguments.folder}'")
    copies = range(1, arguments.copies + 1)
    problems |= {f"{name} copy {seed}": copy(problem, seed) for name, problem in problems.items() for seed in copies}
    contacts = [problem.num_contacts for problem in problems.values()]
    print(f"{len(problems)} problems of {min(contacts)} to {max(contacts)} contacts, W symmetrised, from cold")
    limits = {"tolerance": arguments.tolerance, "iterations": arguments.iterations}
    result = {"machine": machine.description(), "dtype": arguments.dtype, "limits": limits, "problems": len(problems)}
    result["left_out"] = refused
    result["solvers"] = {}
    with progress(len(chosen) * len(problems), "problem") as bar:
        for text, way in chosen.items():
            solved = []
            for name, problem in problems.items():
                tell(bar, text)
                solved.append(solve(name, problem, way, arguments))
            result["solvers"][text] = {"figures": figures(solved), "problems": solved}
    print(table(result))
    machine.record(arguments.output, "solvers.json", result)
    if str(arguments.output) != "-":
        draw(result, (arguments.output or machine.results_folder() / "solvers.json").with_suffix(".png"))
    return result


if __name__ == "__main__":
    main()
