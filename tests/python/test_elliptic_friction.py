"""Friction that differs along t1 and t2: by every solver, against the ellipse itself and against what blocks do."""

import numpy as np
import pytest
from stiction import ContactProblem, _core, solve

SOLVERS = [name for name in _core.option_defaults() if name]
ANGLE = np.linspace(0, 2 * np.pi, 20_001)
CIRCLE = np.stack([np.cos(ANGLE), np.sin(ANGLE)])
EXACTLY = {"tolerance": 1e-11, "max_iterations": 50_000}


def random_problem(seed, contacts=3, nv=12):
    """Of full rank, with normals that move little along the face, so that each solver has one answer to find."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((nv, nv))
    A, J = B @ B.T / nv + np.eye(nv), np.linalg.qr(rng.standard_normal((nv, 3 * contacts)))[0].T
    mu = rng.uniform(0.05, 0.6, (contacts, 2))
    return ContactProblem.from_primal(A, J, A @ J.T @ rng.uniform(-1, 0.4, 3 * contacts), mu)


def kinds_of(problem, found) -> set[str]:
    """Asserts the law of each contact from its words, by all directions of the ellipse; what the contacts do."""
    W, V, kinds = problem.delassus, found.scale, set()
    for i, (mu, f, w) in enumerate(zip(problem.mu, found.impulse, found.velocity, strict=True)):
        g, at = np.trace(W[3 * i : 3 * i + 3, 3 * i : 3 * i + 3]) / 3, slice(3 * i, 3 * i + 3)
        most = (mu[:, None] * CIRCLE * f[2]).T @ -w[:2]  # what impulses of the border dissipate
        lift = np.hypot(*(mu * w[:2])) if found.law == "convex" else 0.0
        assert f[2] >= 0 and w[2] - lift >= -1e-8 * V and f[2] * (w[2] - lift) <= 1e-8 * V * V / g
        used = np.hypot(*(f[:2] / mu)) / f[2] if f[2] > 1e-8 * V / g else 0.0
        assert used <= 1 + 1e-9
        if f[2] * g <= 1e-7 * V:
            kinds.add("open")
        elif used < 1 - 1e-6:
            kinds.add("stick")
            assert np.abs(w[:2]).max() <= 1e-7 * V
        else:
            kinds.add("slide")
            if found.law == "dissipation":
                assert energy_left(W[at, at], w, f, f) <= least_energy_left(W[at, at], w, f, mu) * (1 + 1e-8) + 1e-12
            else:
                assert f[:2] @ -w[:2] >= most.max() * (1 - 1e-6) - 1e-7 * f[2] * V
    return kinds


def energy_left(W, w, impulse, instead):
    left = w[:, None] + W @ (instead.reshape(3, -1) - impulse[:, None])
    return np.einsum("ij,ij->j", left, np.linalg.solve(W, left)).min()


def least_energy_left(W, w, impulse, mu) -> float:
    """Over the border of the ellipse, the others resting, at the normal impulse that leaves w_n = 0."""
    along, c = mu[:, None] * CIRCLE, w - W @ impulse
    normal = -c[2] / (W[2, 2] + W[2, :2] @ along)
    return energy_left(W, w, impulse, np.vstack([along * normal, normal])[:, normal > 0])


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_obeys_the_law(solver):
    seen = set()
    for seed in range(20):
        problem = random_problem(seed)
        found = solve(problem, solver, **EXACTLY)
        own = {"coulomb": found.r_con, "convex": found.r_ccp, "dissipation": found.r_mdp}[found.law]
        assert own <= 1e-9 * found.scale
        seen |= kinds_of(problem, found)
    assert seen == {"open", "stick", "slide"}


def test_equal_coefficients_are_the_round_cone():
    A, J, b, mu = (getattr(random_problem(3), name) for name in ("A", "J", "b", "mu"))
    for solver in SOLVERS:
        one, two = (
            solve(ContactProblem.from_primal(A, J, b, friction), solver)
            for friction in (mu[:, 0], np.repeat(mu[:, :1], 2, 1))
        )
        assert np.array_equal(one.impulse, two.impulse) and one.r_con == two.r_con


def test_turned_by_a_right_angle_it_turns():
    problem = random_problem(4)
    swap = np.eye(9).reshape(3, 3, 9)[:, [1, 0, 2]].reshape(9, 9)
    turned = ContactProblem.from_primal(problem.A, swap @ problem.J, problem.b, problem.mu[:, ::-1])
    one, other = solve(problem, **EXACTLY), solve(turned, **EXACTLY)
    np.testing.assert_allclose(other.impulse[:, [1, 0, 2]], one.impulse, atol=1e-9)
    assert np.abs(one.impulse).max() > 0.05


def push(v, mu, force, h=0.01, mass=2.0, solver="canal", **more):
    """Velocity of a block on a floor, (3,), after a step under a force."""
    b = mass * np.asarray(v) + h * np.asarray(force)
    problem = ContactProblem.from_primal(mass * np.eye(3), np.eye(3), b, [mu])
    return solve(problem, solver, **EXACTLY, **more).velocity[0]


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "sap"])
def test_block_on_an_incline_holds_within_the_ellipse(solver):
    """Down the slope, at an angle to t1, it holds while |(cos / mu_1, sin / mu_2)| tan(slope) <= 1."""
    mu, g, h = np.array([0.8, 0.2]), 9.81, 0.01
    for angle in np.radians([0, 20, 45, 70, 90]):
        heading = np.array([np.cos(angle), np.sin(angle)])
        limit = 1 / np.hypot(*(heading / mu))
        for part in (0.999, 1.001, 1.5):
            slope = np.arctan(part * limit)
            load = 2 * g * np.array([*(heading * np.sin(slope)), -np.cos(slope)])
            v = push([0, 0, 0], mu, load, h, solver=solver)
            if part < 1:
                assert np.abs(v).max() < 1e-9
                continue
            assert v[:2] @ heading > 0 and abs(v[2]) < 1e-9
            # It gives way along the normal of the ellipse: v ~ (l_1 / mu_1^2, l_2 / mu_2^2), l what the floor takes.
            taken = load[:2] * h - 2 * v[:2]
            normal = taken / mu**2
            assert abs(v[0] * normal[1] - v[1] * normal[0]) < 1e-7 * np.linalg.norm(v) * np.linalg.norm(normal)
            np.testing.assert_allclose(np.hypot(*(taken / mu)), 2 * g * h * np.cos(slope), rtol=1e-9)
        if angle in (0, np.pi / 2):
            along = mu[0] if angle == 0 else mu[1]
            np.testing.assert_allclose(v @ [*heading, 0], h * g * (np.sin(slope) - along * np.cos(slope)), rtol=1e-9)


def test_box_curves_as_the_ellipse_says():
    """From (1, 1) m/s: dv_i / dt = -g mu_i^2 v_i / |(mu v)|, so v_1 = v_2^((mu_1 / mu_2)^2) all along; of [Lee2022]."""
    mu, g = np.array([0.5, 0.35]), 9.81
    errors = []
    for h in (8e-4, 4e-4):
        v, worst = np.array([1.0, 1, 0]), 0.0
        for _ in range(int(0.12 / h)):
            v = push(v, mu, [0, 0, -2 * g], h, solver="cond")
            worst = max(worst, abs(v[0] - v[1] ** ((mu[0] / mu[1]) ** 2)))
        assert 0.2 < v[0] < v[1] < 0.8
        errors.append(worst)
    assert errors[1] < 2e-3 and 1.8 < errors[0] / errors[1] < 2.2, "of first order in h"


def test_no_friction_along_one_axis():
    """A skate: mu (0.5, 0)."""
    for solver in SOLVERS:
        v = push([0, 3, 0], [0.5, 0], [0.4 * 2 * 9.81, 7, -2 * 9.81], solver=solver, guess=[0.01, 0.05, 0.1])
        np.testing.assert_allclose(v[:2], [0, 3 + 0.01 * 7 / 2], atol=1e-9)
    problem = ContactProblem.from_delassus(np.eye(3), [0, 1, -1], [[0.5, 0]])
    assert problem.residuals([0, 0, 1])["r_con"] < 1e-15
    assert problem.residuals([0, -0.2, 1])["r_con"] == pytest.approx(0.2 * 2 / 3), "an impulse that it cannot have"


def test_residual_grows_with_the_distance_from_the_law():
    problem = random_problem(2)
    exact = solve(problem, **EXACTLY).impulse
    near, far = (problem.residuals(exact + size * np.eye(3)[0])["r_con"] for size in (1e-6, 1e-3))
    assert problem.residuals(exact)["r_con"] < 1e-10 and 1e-8 < near < 1e-5 and 300 < far / near < 3000


def test_compliance_goes_with_the_ellipse():
    W, q, mu = np.diag([1.0, 2, 3]), [0.1, 0.3, -1], [[0.4, 0.2]]
    R = np.array([0.1, 0.4, 0.5])
    found = solve(ContactProblem.from_delassus(W, q, mu, R), "pgs", **EXACTLY)
    slip = found.velocity[0] + R * found.impulse[0]
    np.testing.assert_allclose(found.impulse[0, 2], 1 / 3.5, rtol=1e-9)
    normal = np.array(mu[0]) ** 2 * slip[:2]
    np.testing.assert_allclose(found.impulse[0, :2], -normal / np.hypot(*(mu[0] * slip[:2])) / 3.5, rtol=1e-8)
    with pytest.raises(ValueError, match=r"R mu\^2 differs between t1 and t2"):
        ContactProblem.from_delassus(W, q, mu, [0.1, 0.1, 0.5])


def test_batches_have_ellipses_too():
    problems = [random_problem(seed) for seed in range(5)]
    batch = ContactProblem.from_primal(
        *(np.stack([getattr(p, name) for p in problems]) for name in ("A", "J", "b", "mu"))
    )
    together = solve(batch, "admm")
    assert batch.mu.shape == (5, 3, 2) and together.converged.all()
    for i, problem in enumerate(problems):
        assert np.array_equal(solve(problem, "admm").impulse, together.impulse[i])
    with pytest.raises(ValueError, match=r"mu has shape \(3, 3\), expected \(contacts,\) or \(contacts, 2\)"):
        ContactProblem.from_delassus(np.eye(9), np.zeros(9), np.zeros((3, 3)))
