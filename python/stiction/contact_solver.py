"""stiction.solve: the contact solvers alone, and how well they did."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from time import perf_counter, process_time

import numpy as np

from . import _core
from .contact_problem import ContactProblem, _rows
from .contact_residuals import power_of_two, residuals
from .simulation_arrays import near
from .simulation_checks import checked_dtype, usable_cores
from .solver_options import UNBOUNDED, SolverOptions

_LAWS = ("coulomb", "convex", "dissipation")  # in the order of the core's Law
_ITERATIONS = 1000
_TOLERANCE = {"float64": 1e-8, "float32": 1e-5}


@dataclass(frozen=True, eq=False)
class Solution:
    """What `solve` found. Residuals are computed in double from W, or A and J, as they were given.

    Of a batch every array has the axis of problems first, and what is one number below is an array (problems,).
    """

    #: (nc, 3) impulses t1, t2, n, N s.
    impulse: np.ndarray
    #: (nc, 3) w, the velocities that they make, m/s.
    velocity: np.ndarray
    #: (nr,) impulses of other rows.
    row_impulse: np.ndarray
    #: (nc, 3) couples about t1, t2, n over their arms, N s; None where no contact has any.
    spin_impulse: np.ndarray | None
    #: Worst residual over contacts of Coulomb's law, of its convex relaxation, of maximum dissipation, m/s.
    r_con: float | np.ndarray
    r_ccp: float | np.ndarray
    r_mdp: float | np.ndarray
    #: Worst residual over other rows, each over its own velocity scale (1).
    r_row: float | np.ndarray
    #: V, the velocity scale to judge r_con and the others by, m/s.
    scale: float | np.ndarray
    #: What the solver converges to: "coulomb", "convex" or "dissipation".
    law: str
    #: Sweeps, passes or steps of Newton's method, as the solver counts.
    iterations: int | np.ndarray
    #: Matrices factored; None where none was.
    factorizations: int | np.ndarray | None
    #: The residual of ``law`` is at most tolerance V, r_split (but for the convex law) ten times that, r_row tolerance.
    converged: bool | np.ndarray
    #: The solver and all that was set of it.
    solver: SolverOptions
    #: What the solver took, of all problems together, s; to factor W or A and to compute residuals is not in it.
    seconds: float
    #: The same in processor time, of all threads together.
    cpu_seconds: float


def solve(
    problem: ContactProblem,
    solver: str | SolverOptions = "admm",
    *,
    dtype="float64",
    guess=None,
    max_iterations: int | None = None,
    tolerance: float | None = None,
    options: dict | None = None,
    num_threads: int | None = None,
) -> Solution:
    """Solves a contact problem, or a batch of them, by the solver of that name.

    Parameters
    ----------
    solver: a name; ValueError where it cannot carry the problem: "cond" is about bodies and takes no Delassus
        operator alone (`ContactProblem.to_primal`). Or an object such as ``stiction.Canal(penalty=10)``: its knobs
        hold, and iterations and tolerance where they are not its defaults. What else it says is of steps.
    dtype: what the solver computes in, "float64" or "float32"; float32 solves many problems of a batch at once.
    guess: (3 nc,) or (nc, 3) impulses to start from, those of other rows and couples 0; or a `Solution`, of which
        those count too; None is 0.
    max_iterations: 1000 by default; 0 returns the guess as the solver takes it.
    tolerance: stop when the residual is below this part of V; 1e-8 by default, 1e-5 in float32. 0: so many iterations.
    options: the solver's own knobs by name, where ``solver`` is a name: ``{"penalty": 10}``.
    num_threads: for batches; None is every core that this process may use. Answers do not depend on it.
    """
    if not isinstance(problem, ContactProblem):
        raise TypeError(f"problem is {type(problem).__name__}, expected stiction.ContactProblem; see its from_delassus")
    dtype = checked_dtype(dtype)
    chosen = _chosen(solver, options, dtype, max_iterations, tolerance)
    if chosen.needs_bodies and problem.W is not None:
        raise ValueError(
            f"solver {chosen.name!r} is about bodies, expected (A, J, b, e) of ContactProblem.from_primal, not W alone;"
            " problem.to_primal() makes some that have this W"
        )
    count, nc = problem.num_problems, problem.num_contacts
    of_contacts, of_others, of_spins = problem._parts
    start = np.zeros((count, problem._num_all))
    if isinstance(guess, Solution):
        _expect_as_many(guess, problem)
        start[:, of_others] = _row_guess(guess, problem)
        if problem._has_spin and guess.spin_impulse is not None:
            start[:, of_spins] = _rows("guess.spin_impulse", guess.spin_impulse, problem.batch, count, nc)
        guess = guess.impulse
    if guess is not None:
        start[:, of_contacts] = _rows("guess", guess, problem.batch, count, nc)
    threads = usable_cores() if num_threads is None else operator.index(num_threads)
    if threads < 1:
        raise ValueError(f"num_threads is {threads}, expected at least 1")
    lower, upper = problem._row_bounds
    mu, factor = problem._round
    # Solvers square what they are given: in units, powers of two, that make velocities and W about 1.
    fastest = np.abs(problem._motion[1] + problem._row_bias).max(1, initial=0)
    speed = power_of_two(np.maximum(problem._velocity_floor, fastest))[:, None]
    root = power_of_two(np.abs(problem._factor).max((1, 2), initial=0))[:, None]
    with np.errstate(over="ignore"):
        rows = {
            "Y": problem._factor * factor[:, :, None] / root[:, :, None],
            "free": problem._motion[1] * factor / speed,
            "e": problem._row_bias * factor / speed,
            "R": problem._row_compliance * factor**2 / root / root,
            "mu": mu,
            "lower": np.where(lower > -UNBOUNDED, lower / speed * root * root, lower),
            "upper": np.where(upper < UNBOUNDED, upper / speed * root * root, upper),
            "least_velocity": problem._velocity_floor / speed[:, 0],
            "guess": np.divide(start, factor, out=np.zeros_like(start), where=factor > 0) / speed * root * root,
        }
    begun = perf_counter(), process_time()
    impulse, iterations, factorizations, law = _solved(
        rows,
        solver=chosen.name,
        solver_options=chosen.to_core()[1],
        iterations=chosen.iterations,
        tolerance=chosen.tolerance,
        float64=dtype == "float64",
        num_threads=threads,
    )
    taken = perf_counter() - begun[0], process_time() - begun[1]
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is worse than none
        impulse = impulse * factor / root / root * speed
        velocity = problem._velocity(impulse)
    judged = residuals(problem, impulse, velocity)
    law = _LAWS[law]
    own_name, split_name = {
        "coulomb": ("r_con", "r_split"),
        "convex": ("r_ccp", None),
        "dissipation": ("r_mdp", "r_split_mdp"),
    }[law]
    # A solver sees to it that its answer is no worse than none, as far as what it computes in tells.
    none = np.zeros_like(impulse)
    unpushed = residuals(problem, none, problem._velocity(none))

    def own_of(of):
        """The law's residual, or a tenth of r_split: with large friction the first hardly sees a body that closes."""
        return of[own_name] if split_name is None else np.maximum(of[own_name], of[split_name] * 0.1)

    def merit(of):
        return np.maximum(own_of(of) / unpushed["scale"], of["r_row"])

    if chosen.iterations > 0 and (worse := ~(merit(judged) <= merit(unpushed))).any():
        impulse[worse] = 0
        velocity = problem._velocity(impulse)
        judged = residuals(problem, impulse, velocity)
    scale, own = judged["scale"], own_of(judged)
    converged = (own <= chosen.tolerance * scale) & (judged["r_row"] <= chosen.tolerance)

    def one(values, kind):
        return values.astype(kind) if problem.batch else kind(values[0])

    def triples(rows):
        return problem._squeezed(rows.reshape(count, nc, 3))

    return Solution(
        impulse=triples(impulse[:, of_contacts]),
        velocity=triples(velocity[:, of_contacts]),
        row_impulse=problem._squeezed(impulse[:, of_others]),
        spin_impulse=triples(impulse[:, of_spins]) if problem._has_spin else None,
        scale=one(scale, float),
        law=law,
        iterations=one(iterations, int),
        factorizations=one(factorizations, int) if factorizations.any() else None,
        converged=one(converged, bool),
        solver=chosen,
        seconds=taken[0],
        cpu_seconds=taken[1],
        **{name: one(judged[name], float) for name in ("r_con", "r_ccp", "r_mdp", "r_row")},
    )


def _expect_as_many(guess: Solution, problem: ContactProblem) -> None:
    of = len(guess.impulse) if guess.impulse.ndim == 3 else 0  # 0: of one problem, without an axis
    if of != (problem.num_problems if problem.batch else 0):
        has = f"the batch has {problem.num_problems}" if problem.batch else "expected one of one problem"
        raise ValueError(f"guess is a solution of {f'a batch of {of} problems' if of else 'one problem'}, {has}")


def _row_guess(guess: Solution, problem: ContactProblem) -> np.ndarray:
    shape = ((problem.num_problems,) if problem.batch else ()) + (problem._num_rows,)
    if guess.row_impulse.shape != shape:
        raise ValueError(f"guess.row_impulse has shape {guess.row_impulse.shape}, expected {shape}")
    return guess.row_impulse.reshape(problem.num_problems, problem._num_rows)


def _solved(rows: dict[str, np.ndarray], **options):
    """`_core.solve_rows` for those of each rank apart: how wide Y is decides how a solver factors."""
    Y = rows["Y"]
    used = Y.any(1)
    width = np.where(used.any(1), used.shape[1] - used[:, ::-1].argmax(1), min(used.shape[1], 1)) if used.size else []
    ranks = np.unique(width)
    if len(ranks) == 0 or (len(ranks) == 1 and ranks[0] == Y.shape[2]):
        return _core.solve_rows(rows, **options)
    parts = []
    for rank in ranks:
        own = {name: values[width == rank] for name, values in rows.items()}
        own["Y"] = np.ascontiguousarray(own["Y"][:, :, :rank])
        parts.append((width == rank, _core.solve_rows(own, **options)))
    impulse, iterations, factorizations = (np.empty((len(Y), *part.shape[1:]), part.dtype) for part in parts[0][1][:3])
    for which, part in parts:
        impulse[which], iterations[which], factorizations[which] = part[:3]
    return impulse, iterations, factorizations, parts[0][1][3]


def solve_contact_problem(W, q, mu, R=None, *, solver="admm", symmetrize=False, **options) -> Solution:
    """`solve` for `ContactProblem.from_delassus`; ``options`` are the other keywords of `solve`."""
    return solve(ContactProblem.from_delassus(W, q, mu, R, symmetrize=symmetrize), solver, **options)


def _chosen(solver, options: dict | None, dtype: str, max_iterations, tolerance) -> SolverOptions:
    """The solver with its knobs and limits."""
    limits = {"iterations": _ITERATIONS, "tolerance": _TOLERANCE[dtype]}
    if options is not None and not isinstance(options, dict):
        raise TypeError(f"options is {type(options).__name__}, expected a dict of knobs; an object goes in as solver")
    if isinstance(solver, SolverOptions):
        if options is not None:
            raise TypeError(f"options are for a solver given by name; set them of {type(solver).__name__} itself")
        knobs = {name: value for name, value in solver.changed().items() if name in solver.own() or name in limits}
    else:
        knobs, own = dict(options or {}), SolverOptions.of(solver).own()
        for name in knobs:
            if name not in own:
                raise TypeError(
                    f"options has {name!r}, which is no knob of solver {solver!r}{near(name, own)}; its own are "
                    f"{', '.join(map(repr, own)) or 'none'}"
                )
    given = {"iterations": max_iterations, "tolerance": tolerance}
    name = solver if isinstance(solver, str) else solver.name
    return SolverOptions(name=name, **limits | knobs | {k: v for k, v in given.items() if v is not None})
