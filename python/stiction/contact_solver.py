"""stiction.solve: the contact solvers alone, and how well they did. docs/theory.md, sections 4, 5 and 8."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np

from . import _core
from .contact_problem import ContactProblem, _rows
from .simulation import _checked_dtype, _usable_cores
from .simulation_arrays import near
from .solver_options import SolverOptions

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
    iterations: int | np.ndarray
    #: Matrices factored; None of a solver that does not count.
    factorizations: int | np.ndarray | None
    #: The residual of ``law`` is at most tolerance V, and r_row at most tolerance.
    converged: bool | np.ndarray
    #: The solver and all that was set of it.
    solver: SolverOptions


def solve(
    problem: ContactProblem,
    solver: str | SolverOptions = "canal",
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
    solver: a name, or an object such as ``stiction.Canal(penalty=10)``: its knobs hold, and iterations and tolerance
        where they are not its defaults. What else it says is of steps.
    dtype: what the solver computes in, "float64" or "float32"; float32 solves many problems of a batch at once.
    guess: (3 nc,) or (nc, 3) impulses to start from; None is 0.
    max_iterations: 1000 by default; 0 returns the guess as the solver takes it.
    tolerance: stop when the residual is below this part of V; 1e-8 by default, 1e-5 in float32. 0: so many iterations.
    options: the solver's own knobs by name, where ``solver`` is a name: ``{"penalty": 10}``.
    num_threads: for batches; None is every core that this process may use. Answers do not depend on it.
    """
    if not isinstance(problem, ContactProblem):
        raise TypeError(f"problem is {type(problem).__name__}, expected stiction.ContactProblem; see its from_delassus")
    dtype = _checked_dtype(dtype)
    chosen = _chosen(solver, options, dtype, max_iterations, tolerance)
    count, nc = problem.num_problems, problem.num_contacts
    start = np.zeros((count, 3 * nc + problem._num_rows))
    if guess is not None:
        start[:, : 3 * nc] = _rows("guess", guess, problem.batch, count, nc)
    threads = _usable_cores() if num_threads is None else operator.index(num_threads)
    if threads < 1:
        raise ValueError(f"num_threads is {threads}, expected at least 1")
    floor = problem._velocity_floor
    impulse, iterations, factorizations, law = _core.solve_rows(
        problem._factor,
        problem._motion[1],
        problem._row_bias,
        problem._row_compliance,
        problem._arrays["mu"],
        *problem._row_bounds,
        floor,
        start,
        solver=chosen.name,
        solver_options=chosen.to_core()[1],
        iterations=chosen.iterations,
        tolerance=chosen.tolerance,
        float64=dtype == "float64",
        num_threads=threads,
    )
    velocity = problem._velocity(impulse)
    judged = residuals(problem, impulse, velocity)
    scale = _scale(problem, impulse)
    law = _LAWS[law]
    own = judged[{"coulomb": "r_con", "convex": "r_ccp", "dissipation": "r_mdp"}[law]]
    converged = (own <= chosen.tolerance * scale) & (judged["r_row"] <= chosen.tolerance)

    def one(values, kind):
        return values.astype(kind) if problem.batch else kind(values[0])

    def triples(rows):
        return problem._squeezed(rows[:, : 3 * nc].reshape(count, nc, 3))

    return Solution(
        impulse=triples(impulse),
        velocity=triples(velocity),
        row_impulse=problem._squeezed(impulse[:, 3 * nc :]),
        scale=one(scale, float),
        law=law,
        iterations=one(iterations, int),
        factorizations=one(factorizations, int) if factorizations.any() else None,
        converged=one(converged, bool),
        solver=chosen,
        **{name: one(values, float) for name, values in judged.items()},
    )


def solve_contact_problem(W, q, mu, R=None, *, symmetrize=False, **options) -> Solution:
    """`solve` for `ContactProblem.from_delassus`; ``options`` are the keywords of `solve`."""
    return solve(ContactProblem.from_delassus(W, q, mu, R, symmetrize=symmetrize), **options)


def _chosen(solver, options: dict | None, dtype: str, max_iterations, tolerance) -> SolverOptions:
    """The solver with its knobs and limits."""
    limits = {"iterations": _ITERATIONS, "tolerance": _TOLERANCE[dtype]}
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


# ---- residuals


def residuals(problem: ContactProblem, impulse: np.ndarray, velocity: np.ndarray) -> dict[str, np.ndarray]:
    """The worst of each problem (B,), of impulses and their velocities (B, n), by docs/theory.md, section 8.

    What nothing can move, W_ii = 0, is left out: its impulse says nothing.
    """
    count, nc = problem.num_problems, problem.num_contacts
    n = 3 * nc
    s = velocity + problem._row_bias + problem._row_compliance * impulse

    def triples(rows):
        return rows[:, :n].reshape(count, nc, 3)

    l, s_c, mu, blocks = triples(impulse), triples(s), problem._arrays["mu"], problem._blocks
    g = np.trace(blocks, axis1=2, axis2=3) / 3
    moves = g > 1e-14 * g.max(1, initial=0)[:, None]
    held = g[:, :, None] * l
    blind = np.abs(held).max(2, initial=0) * np.finfo(float).eps

    def worst(lifted):
        distance = np.linalg.norm(held - _projected(held - lifted, mu), axis=2)
        return _largest(np.where(moves, np.maximum(distance, blind), 0))

    slip = np.linalg.norm(s_c[:, :, :2], axis=2)
    turned = s_c + _dissipative(l, s_c, mu, blocks, triples(problem._row_compliance))
    return {
        "r_con": worst(_lifted(s_c, mu * slip)),
        "r_ccp": worst(s_c),
        "r_mdp": worst(_lifted(turned, mu * np.linalg.norm(turned[:, :, :2], axis=2))),
        "r_row": _row_residual(problem, impulse[:, n:], s[:, n:]),
    }


def _largest(values: np.ndarray) -> np.ndarray:
    return values.max(1) if values.shape[1] else np.zeros(len(values))


def _lifted(s: np.ndarray, lift: np.ndarray) -> np.ndarray:
    return np.concatenate([s[:, :, :2], (s[:, :, 2] + lift)[:, :, None]], 2)


def _projected(trial: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Nearest points of the cones |l_t| <= mu l_n, (5.2)."""
    reach, height = np.linalg.norm(trial[:, :, :2], axis=2), trial[:, :, 2]
    normal = (height + mu * reach) / (1 + mu**2)
    border = np.empty_like(trial)
    border[:, :, :2] = trial[:, :, :2] * (mu * normal / np.where(reach > 0, reach, 1))[:, :, None]
    border[:, :, 2] = normal
    inside, outside = reach <= mu * height, mu * reach <= -height
    return np.where(inside[:, :, None], trial, np.where(outside[:, :, None], 0, border))


def _dissipative(l, s, mu, blocks, R) -> np.ndarray:
    """What, added to s, turns friction of maximum dissipation into Coulomb's.

    One contact with the others frozen takes the impulse of least kinetic energy that keeps s_n = 0: where it slides,
    s_t = -c (l_t + mu^2 l_n W_nt / W_nn) with c >= 0 instead of -c l_t.
    """
    normal = blocks[:, :, 2, 2] + R[:, :, 2]
    coupling = blocks[:, :, :2, 2] / np.where(normal > 0, normal, 1)[:, :, None]
    bend = (mu**2 * l[:, :, 2])[:, :, None] * coupling
    along = np.linalg.norm(l[:, :, :2] + bend, axis=2)
    slip = np.linalg.norm(s[:, :, :2], axis=2)
    change = np.zeros_like(s)
    change[:, :, :2] = (slip / np.where(along > 0, along, 1))[:, :, None] * bend
    return change


def _row_residual(problem: ContactProblem, l: np.ndarray, s: np.ndarray) -> np.ndarray:
    if not problem._num_rows:
        return np.zeros(len(l))
    n = 3 * problem.num_contacts
    moved, free = problem._motion
    g = np.einsum("bkv,bvk->bk", problem._arrays["J_row"], moved[:, :, n:])
    lower, upper = problem._row_bounds
    g = np.where(g > 0, g, 1)
    distance = np.abs(l - np.clip(l - s / g, lower, upper)) * g
    return _largest(distance / np.maximum(np.abs(free[:, n:]), problem._velocity_floor[:, None]))


def _scale(problem: ContactProblem, impulse: np.ndarray) -> np.ndarray:
    """V (B,): the largest |J v*| over contacts that push or that e does not hold open, at least the floor; (8.11)."""
    n, count = 3 * problem.num_contacts, problem.num_problems
    free = np.abs(problem._motion[1][:, :n]).reshape(count, -1, 3).max(2, initial=0)
    counts = (impulse[:, 2:n:3] > 0) | (problem._row_bias[:, 2:n:3] <= 0)
    return np.maximum(problem._velocity_floor, _largest(np.where(counts, free, 0)))
