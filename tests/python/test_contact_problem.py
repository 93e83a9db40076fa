"""stiction.ContactProblem and stiction.solve: the contact solvers without a simulation."""

import importlib
import math
import re
from pathlib import Path

import numpy as np
import pytest
import stiction
from stiction import ContactProblem, SolverOptions, _core, solve, solve_contact_problem

SOLVERS = [name for name in _core.option_defaults() if name]
EXACT = ["subadmm", "pgs", "canal"]  # of Coulomb's law, as near as they are told; of others less may be asked
LAWS = {"coulomb": "r_con", "convex": "r_ccp", "dissipation": "r_mdp"}
#: FCLIB's FrictionContact3D_1c and FrictionContact3D_RR_1c with their Coulomb solutions, rows t1, t2, n.
ONE_CONTACT = {
    "1c": (
        [[14.0, 1, -1], [1, 16, -2], [-1, -2, 15]],
        [2.0, 3, -1],
        0.1,
        [-0.003678614907, -0.005443070814, 0.065695682898],
    ),
    "RR_1c": (
        [[0.1061, 1.733e-4, -9.421e-7], [1.733e-4, 0.001442, 0.001486], [-9.421e-7, 0.001486, 0.01344]],
        [-0.2484, -0.1515, -0.1458],
        0.6,
        [1.931888367688, 5.810798010421, 10.205876055695],
    ),
}


def random_primal(seed, contacts=3, nv=12):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((nv, nv))
    A = B @ B.T / nv + 0.1 * np.eye(nv)
    J, v = rng.standard_normal((3 * contacts, nv)), rng.standard_normal(nv)
    return (
        A,
        J,
        A @ v,
        rng.uniform(0.1, 1, contacts),
        rng.standard_normal(3 * contacts) * np.tile([0, 0, 0.2], contacts),
    )


def delassus_of(A, J, b, mu, e):
    return J @ np.linalg.solve(A, J.T), J @ np.linalg.solve(A, b) + e, mu


def for_solver(solver, problem):
    """As bodies, for who is about those."""
    return problem.to_primal() if SolverOptions.of(solver).needs_bodies else problem


def own_residual(solution):
    return getattr(solution, LAWS[solution.law])


@pytest.mark.parametrize("name", ONE_CONTACT)
@pytest.mark.parametrize("solver", SOLVERS)
def test_one_contact_of_known_impulse(solver, name):
    W, q, mu, impulse = ONE_CONTACT[name]
    problem = for_solver(solver, ContactProblem.from_delassus(W, q, [mu]))
    found = solve(problem, solver, tolerance=1e-9, max_iterations=20_000)
    assert found.solver.name == solver and found.scale == max(map(abs, q))
    assert found.velocity.shape == found.impulse.shape == (1, 3)
    moved = found.velocity[0] if problem.W is not None else found.velocity[0] + q
    np.testing.assert_allclose(moved, W @ found.impulse[0] + q, rtol=1e-14, atol=1e-14)
    assert own_residual(found) <= (1e-8 if solver in EXACT else 1e-2) * found.scale
    assert found.converged is bool(own_residual(found) <= 1e-9 * found.scale)
    if solver in EXACT:
        assert found.law == "coulomb"
        np.testing.assert_allclose(found.impulse[0], impulse, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("solver", EXACT)
def test_primal_and_delassus_are_one_problem(solver):
    """Full rank and little friction, where the answer is unique."""
    A, J, b, mu, e = random_primal(5)
    mu = 0.3 * mu
    one = solve(ContactProblem.from_primal(A, J, b, mu, e), solver, max_iterations=20_000, tolerance=1e-10)
    other = solve(
        ContactProblem.from_delassus(*delassus_of(A, J, b, mu, e)), solver, max_iterations=20_000, tolerance=1e-10
    )
    for found in (one, other):
        assert own_residual(found) <= 1e-8 * found.scale
    np.testing.assert_allclose(one.impulse, other.impulse, atol=1e-6)
    assert np.abs(one.impulse).max() > 0.01
    np.testing.assert_allclose(one.velocity.ravel() + e, other.velocity.ravel(), atol=1e-6)


def test_problems_tell_what_they_are():
    A, J, b, mu, e = random_primal(1)
    p = ContactProblem.from_primal(A, J, b, mu, e)
    W, q, _ = delassus_of(A, J, b, mu, e)
    np.testing.assert_allclose(p.delassus, W, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(p.q, q, rtol=1e-10, atol=1e-12)
    assert (p.num_contacts, p.num_problems, p.W, p.impulse) == (3, 1, None, None)
    assert repr(p) == "stiction.ContactProblem(3 contacts, A of 12 dofs)"
    assert set(p.arrays()) == {"A", "J", "b", "mu", "e", "R"}
    assert p.A.shape == (12, 12) and p.R.shape == (9,) and not p.R.any()
    given = ContactProblem.from_delassus(W, q.reshape(-1, 3), mu, np.ones((3, 3)))
    assert np.array_equal(given.q, q) and given.R.shape == (9,) and given.A is None


def test_residuals_are_the_oracles():
    reference = pytest.importorskip("stiction_reference")
    for seed in range(5):
        A, J, b, mu, e = random_primal(seed)
        W, q, _ = delassus_of(A, J, b, mu, e)
        rng = np.random.default_rng(seed)
        p = ContactProblem.from_delassus(W, q, mu)
        for impulse in (np.zeros(9), rng.standard_normal(9), np.abs(rng.standard_normal(9))):
            c, found = reference.certificate_delassus(W, q, mu, impulse), p.residuals(impulse)
            for name in ("r_con", "r_ccp"):
                assert found[name] == pytest.approx(c[name], rel=1e-12), name
            assert found["scale"] == pytest.approx(c["scale"])
    R = np.repeat(rng.uniform(0, 1, (3, 2)), [2, 1], 1).ravel()
    dense = {"A": A, "b": b, "J": J, "e": e, "R": R, "mu": mu, "impulse": np.zeros(9)}
    p = ContactProblem.from_primal(A, J, b, mu, e, R, least_velocity=1e-4)
    c = reference.certificate(dense, np.linalg.solve(A, b + J.T @ impulse), impulse)
    found = p.residuals(impulse)
    for name in ("r_con", "r_ccp", "scale"):
        assert found[name] == pytest.approx(c[name], rel=1e-9), name


@pytest.mark.parametrize("seed", range(10))
def test_least_kinetic_energy_has_no_residual_of_dissipation(seed):
    """One sliding contact: the impulse on the cone with w_n = 0 of least energy, by a fine search."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((3, 3))
    W, mu = B @ B.T + 0.5 * np.eye(3), 0.2
    q = np.array([*rng.standard_normal(2) * 3, -1.0])

    def impulse_at(angle):
        along = np.array([np.cos(angle), np.sin(angle)])
        normal = -q[2] / (W[2, 2] + mu * W[2, :2] @ along)
        return np.array([*(mu * normal * along), normal])

    def energy(angle):
        w = W @ impulse_at(angle) + q
        return w @ np.linalg.solve(W, w)

    angles = np.linspace(-np.pi, np.pi, 2001)
    best = angles[np.argmin([energy(a) for a in angles])]
    for width in 2e-3 * 0.1 ** np.arange(4):
        angles = best + np.linspace(-2, 2, 201) * width
        best = angles[np.argmin([energy(a) for a in angles])]
    impulse = impulse_at(best)
    w = W @ impulse + q
    assert np.linalg.norm(w[:2]) > 0.05, "it slides"
    found = ContactProblem.from_delassus(W, q, [mu]).residuals(impulse)
    assert found["r_mdp"] <= 2e-5 * found["scale"] and found["r_con"] > 1e-4 * found["scale"]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_batch_is_each_problem_alone(solver, dtype):
    """To the bit, whatever the number of threads; twenty do not fill two packs."""
    problems = [delassus_of(*random_primal(seed, nv=9)) for seed in range(20)]
    W, q, mu = (np.stack(arrays) for arrays in zip(*problems, strict=True))
    batch = for_solver(solver, ContactProblem.from_delassus(W, q, mu, symmetrize=True))
    found = solve(batch, solver, dtype=dtype, num_threads=2)
    assert found.impulse.shape == (20, 3, 3) and found.converged.shape == found.r_con.shape == (20,)
    again = solve(batch, solver, dtype=dtype, num_threads=1)
    assert np.array_equal(found.impulse, again.impulse) and np.array_equal(found.iterations, again.iterations)
    for k in (0, 7, 19):
        one = for_solver(solver, ContactProblem.from_delassus(W[k], q[k], mu[k], symmetrize=True))
        alone = solve(one, solver, dtype=dtype)
        assert np.array_equal(alone.impulse, found.impulse[k])
        assert (alone.iterations, alone.converged) == (found.iterations[k], found.converged[k])
        assert alone.r_con == pytest.approx(found.r_con[k], rel=1e-6)
    assert np.abs(found.impulse).max() > 0.01


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_problem_has_its_bits_beside_one_of_another_rank(solver, dtype):
    rng = np.random.default_rng(4)
    roots = [rng.standard_normal((9, rank)) for rank in (9, 3, 5, 9, 3, 1)]
    W, q = np.stack([B @ B.T for B in roots]), np.stack([B @ rng.standard_normal(B.shape[1]) for B in roots])
    mu = np.full((len(roots), 3), 0.7)
    found = solve(for_solver(solver, ContactProblem.from_delassus(W, q, mu)), solver, dtype=dtype, max_iterations=100)
    for k in range(len(roots)):
        one = for_solver(solver, ContactProblem.from_delassus(W[k], q[k], mu[k]))
        alone = solve(one, solver, dtype=dtype, max_iterations=100)
        assert np.array_equal(alone.impulse, found.impulse[k]), k
        assert (alone.iterations, alone.converged) == (found.iterations[k], found.converged[k])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_huge_problem_is_finite(solver, dtype):
    problem = for_solver(solver, ContactProblem.from_delassus(np.eye(3), [0, 0, -1e30], [0.5]))
    found = solve(problem, solver, dtype=dtype)
    assert np.isfinite(found.impulse).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_frictionless_contact_may_open_without_sliding(solver):
    found = solve(for_solver(solver, ContactProblem.from_delassus(np.eye(6), [0, 0, -1, 0, 0, 2], [0.5, 0])), solver)
    assert found.converged and found.r_con <= 1e-8 * found.scale
    np.testing.assert_allclose(found.impulse, [[0, 0, 1], [0, 0, 0]], atol=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_iterations_the_guess_is_the_answer(solver):
    problem = for_solver(solver, ContactProblem.from_delassus(np.eye(3), [0, 0, -1], [0.5]))
    found = solve(problem, solver, guess=[0.1, 0.2, 0.7], max_iterations=0)
    np.testing.assert_allclose(found.impulse, [[0.1, 0.2, 0.7]], rtol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_many_dofs_under_more_contacts(solver):
    """150 dofs under 330 rows: answers stay finite, and no worse than none."""
    problem = ContactProblem.from_primal(*random_primal(6, contacts=110, nv=150)[:4])
    found = solve(problem, solver, max_iterations=50)
    assert problem._factor.shape[2] == 150 and np.isfinite(found.impulse).all()
    assert own_residual(found) < problem.residuals(np.zeros(330))[LAWS[found.law]]


@pytest.mark.parametrize("solver", SOLVERS)
def test_in_single_precision_no_answer_is_worse_than_none_where_masses_span_decades(solver):
    """By the judge in double: in float a solver may see an answer where there is none."""
    random = np.random.default_rng(5)
    J = random.normal(size=(2000, 12, 6))
    J[: len(J) // 2, 3:6] = J[: len(J) // 2, :3]
    W = np.einsum("bik,bk,bjk->bij", J, 10 ** random.uniform(-6, 6, (2000, 6)), J)
    q = np.einsum("bik,bk->bi", J, random.normal(size=(2000, 6)))
    mu = random.choice([0, 0.1, 1, 2], (2000, 4))
    problem = for_solver(solver, ContactProblem.from_delassus((W + W.swapaxes(1, 2)) / 2, q, mu))
    found = solve(problem, solver, dtype="float32", max_iterations=200)
    none = problem.residuals(np.zeros((2000, 12)))
    name = LAWS[found.law]
    assert np.isfinite(found.impulse).all()
    assert (getattr(found, name) <= none[name] * (1 + 1e-9)).all()


def test_masses_may_span_decades():
    A = np.diag([1e-9, 1e9])
    found = solve(primal(A=A, J=[[0, 0], [0, 0], [1, 1]], b=A @ [-1, 0]))
    assert found.converged and found.velocity[0, 2] == pytest.approx(0, abs=1e-8)


def test_q_need_not_be_in_the_range_of_W():
    """A point on a line under two contacts across it: neither can stop the sideways motion."""
    J = np.zeros((6, 1))
    J[2] = J[5] = 1
    W, q = J @ J.T, np.array([0.3, 0, -1, 0, 0.2, -1])
    found = solve_contact_problem(W, q, [0.5, 0.5])
    assert found.converged and found.impulse[:, 2].sum() == pytest.approx(1)
    np.testing.assert_allclose(found.velocity, [[0.3, 0, 0], [0, 0.2, 0]], atol=1e-7)


def test_what_nothing_can_move_gets_no_impulse():
    W = np.zeros((6, 6))
    W[:3, :3] = np.eye(3)
    found = solve_contact_problem(W, [0, 0, -1, 0, 0, -1], [1, 1])
    np.testing.assert_allclose(found.impulse, [[0, 0, 1], [0, 0, 0]], atol=1e-7)
    assert not found.converged and found.r_con == pytest.approx(1)  # it goes on closing


def test_compliance_bears_a_load():
    found = solve_contact_problem(np.eye(3), [0, 0, -1], [1], R=[0, 0, 3])
    assert found.impulse[0, 2] == pytest.approx(0.25) and found.velocity[0, 2] == pytest.approx(-0.75)
    assert found.converged


@pytest.mark.parametrize("seed", [2, 3, 6])
def test_an_invertible_contact_is_compliance(seed):
    """As [Lee2022] has it, G + Omega for G in the projection: where friction holds, a velocity tells its impulse."""
    A, J, b, mu, e = random_primal(seed)
    b, mu = 5 * b, mu + 1
    Y = np.linalg.solve(np.linalg.cholesky(A), J.T).T
    mobility = np.repeat((Y**2).sum(1).reshape(-1, 3).sum(1) / 3, 3)
    G, omega, free = mobility / 2, 0.05 * mobility, J @ np.linalg.solve(A, b)
    u, impulse = np.zeros(Y.shape[1]), np.zeros(len(e))
    joints = np.linalg.solve(np.eye(len(u)) + (Y.T / G) @ Y, Y.T / G)
    for _ in range(5000):
        at = free + Y @ u
        trial = ((G * impulse - at - e) / (G + omega)).reshape(-1, 3)
        normal = np.maximum(trial[:, 2], 0)
        reach = np.linalg.norm(trial[:, :2], axis=1)
        impulse = np.column_stack([trial[:, :2] * np.minimum(1, mu * normal / reach)[:, None], normal]).ravel()
        u = joints @ (at + G * impulse - free)
    found = solve(ContactProblem.from_primal(A, J, b, mu, e, R=omega), "cond", tolerance=1e-12, max_iterations=20_000)
    np.testing.assert_allclose(found.velocity.ravel(), free + Y @ u, atol=1e-9)
    told = -(found.velocity + e.reshape(-1, 3)) / omega.reshape(-1, 3)
    holds = np.linalg.norm(found.impulse[:, :2], axis=1) < (1 - 1e-6) * mu * found.impulse[:, 2]
    assert holds.any()
    np.testing.assert_allclose(told[holds], found.impulse[holds], atol=1e-9 * np.abs(found.impulse).max())


def test_no_contacts_and_none_that_closes():
    empty = solve_contact_problem(np.zeros((0, 0)), [], [])
    assert empty.impulse.shape == (0, 3) and empty.converged and empty.r_con == 0
    apart = solve_contact_problem(np.eye(3), [1.0, 0, 2], [1])
    assert not apart.impulse.any() and apart.converged


@pytest.mark.parametrize("solver", EXACT)
def test_an_exact_guess_is_taken(solver):
    problem = ContactProblem.from_delassus(*delassus_of(*random_primal(2)), symmetrize=True)
    first = solve(problem, solver, tolerance=1e-9, max_iterations=20_000)
    again = solve(problem, solver, tolerance=1e-6, guess=first.impulse)
    assert again.iterations <= min(10, first.iterations) and again.converged
    capped = solve(problem, solver, max_iterations=2, tolerance=0)
    assert capped.iterations <= 2


def test_a_solution_is_a_guess_of_all_rows():
    pytest.importorskip("mujoco")
    pole = """<body pos="0 0 .1"><joint axis="0 1 0" range="-10 10"/>
      <geom type="capsule" fromto="0 0 0 0 0 .3" size=".02" mass="1"/></body>"""
    xml = f"""<mujoco><worldbody><geom type="plane" size="5 5 1"/><body pos="0 0 .1"><freejoint/>
      <geom type="box" size=".1 .1 .1" mass="1" friction=".5"/>{pole}</body></worldbody></mujoco>"""
    sim = stiction.Simulation(stiction.Model.from_mjcf(xml), 1, dtype="float64")
    sim.qpos[0, -1], sim.qvel[0, -1] = 0.17, 2
    sim.step(3)
    problem = sim.contact_problem(0)
    first = solve(problem, tolerance=1e-10)
    assert first.converged and np.abs(first.row_impulse).max() > 1e-6
    assert solve(problem, guess=first).iterations == 0
    assert solve(problem, guess=first.impulse).iterations > 0
    with pytest.raises(ValueError, match=r"guess.row_impulse has shape \(\d,\), expected \(0,\)"):
        solve(one(), guess=first)


def test_settings_reach_the_solver():
    problem = ContactProblem.from_delassus(*delassus_of(*random_primal(3)), symmetrize=True)
    by_name = solve(problem, "canal", options={"penalty": 3.0, "accelerate": False}, max_iterations=7)
    by_class = solve(problem, stiction.Canal(penalty=3, accelerate=False, iterations=7))
    assert (
        by_name.solver == by_class.solver == stiction.Canal(penalty=3, accelerate=False, iterations=7, tolerance=1e-8)
    )
    assert np.array_equal(by_name.impulse, by_class.impulse)
    assert not np.array_equal(solve(problem, "canal", max_iterations=7).impulse, by_name.impulse)
    assert solve(problem, "canal").factorizations > 0 and solve(problem, "pgs").factorizations is None
    assert solve(problem, "subadmm", options={"law": "convex"}).law == "convex"


def test_sparse_matrices_are_taken():
    sparse = pytest.importorskip("scipy.sparse")
    A, J, b, mu, e = random_primal(4)
    W, q, _ = delassus_of(A, J, b, mu, e)
    dense, thin = (solve(ContactProblem.from_delassus(M, q, mu, symmetrize=True)) for M in (W, sparse.csr_matrix(W)))
    assert np.array_equal(dense.impulse, thin.impulse)
    primal = ContactProblem.from_primal(sparse.csc_matrix(A), sparse.coo_array(J), b, mu, e)
    assert solve(primal).converged


def test_a_steps_problem_is_solved_again():
    """A simulation's problem with its limits; the step's own answer is as good as its certificate says."""
    pytest.importorskip("mujoco")
    from scenes import MIXED

    sim = stiction.Simulation(stiction.Model.from_mjcf(MIXED), 3, dtype="float64", num_threads=1)
    sim.ctrl[:] = 0.2
    rows = contacts = 0
    for _ in range(20):
        sim.step(10)
        problem = sim.contact_problem(1)
        if not problem.num_contacts:
            continue
        rows, contacts = rows + problem.J_row.shape[0], contacts + problem.num_contacts
        sim.step()
        problem = sim.contact_problem(1)
        step, c = problem.residuals(problem.impulse, problem.row_impulse), sim.certificate
        assert step["scale"] == pytest.approx(c.scale[1], rel=1e-6)
        assert step["r_con"] == pytest.approx(c.r_con[1], rel=1e-3, abs=1e-11 * step["scale"])
        assert step["r_row"] == pytest.approx(c.r_row[1], rel=1e-3, abs=1e-9)
        for solver, near in (("canal", 1e-7), ("subadmm", 1e-4)):  # the latter stops by what a pass changes
            found = solve(problem, solver, tolerance=1e-7, max_iterations=5000)
            assert max(found.r_con / found.scale, found.r_row) <= near
    assert rows > 0 and contacts > 20


def one(**changed):
    arrays = {"W": np.eye(3), "q": np.array([0, 0, -1.0]), "mu": np.array([0.5]), "R": None} | changed
    return ContactProblem.from_delassus(**arrays)


def primal(**changed):
    arrays = {"A": np.eye(2), "J": np.ones((3, 2)), "b": np.ones(2), "mu": np.array([0.5])} | changed
    return ContactProblem.from_primal(**arrays)


NAN = np.array([0, math.nan, math.inf])


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: one(W=np.full((3, 3), math.nan)), ValueError, "W has 9 entries that are not finite"),
        (lambda: one(q=NAN), ValueError, "q has 2 entries that are not finite"),
        (lambda: one(W=np.ones(3)), ValueError, r"W has shape \(3,\), expected a matrix"),
        (lambda: one(W=np.eye(4)), ValueError, r"W has shape \(4, 4\), expected \(3, 3\), since mu has 1 contacts"),
        (lambda: one(q=np.ones(4)), ValueError, r"q has shape \(4,\), expected \(3,\) or \(1, 3\)"),
        (lambda: one(mu=0.5), ValueError, r"mu has shape \(\), expected \(contacts,\)"),
        (lambda: one(mu=[-0.1]), ValueError, "mu has -0.1, expected friction"),
        (lambda: one(mu=[math.inf]), ValueError, "mu has 1 entries that are not finite"),
        (lambda: one(R=[0, 0, -1]), ValueError, "R has -1, expected compliances of at least 0"),
        (lambda: one(R=[1, 2, 1]), ValueError, "R differs between t1 and t2"),
        (lambda: one(R=np.ones(2)), ValueError, r"R has shape \(2,\)"),
        (
            lambda: one(W=[[1, 0, 0.1], [0, 1, 0], [0, 0, 1]]),
            ValueError,
            "W is not symmetric.*1.0e-01.*symmetrize=True",
        ),
        (lambda: one(W=-np.eye(3)), ValueError, "W is not positive semidefinite: its diagonal has -1"),
        (lambda: one(W=[[1, 2, 0], [2, 1, 0], [0, 0, 1]]), ValueError, "W is not positive semidefinite.*eigenvalue"),
        (lambda: one(W="eye"), TypeError, "W"),
        (lambda: one(W=np.ones((0, 3, 3))), ValueError, r"W has shape \(0, 3, 3\), expected at least one problem"),
        (lambda: one(least_velocity=0), ValueError, "least_velocity is 0, expected more than 0"),
        (
            lambda: one(W=np.ones((2, 3, 3)), q=np.ones((2, 3))),
            ValueError,
            r"mu has shape \(1,\), expected \(2, contacts",
        ),
        (lambda: primal(A=-np.eye(2)), ValueError, "A is not positive definite"),
        (lambda: primal(A=[[1, 1], [1, 1 + 1e-15]]), ValueError, "A is singular but for rounding"),
        (lambda: primal(A=[[1, 1], [0, 1]]), ValueError, "A is not symmetric"),
        (lambda: primal(A=np.ones((2, 3))), ValueError, r"A has shape \(2, 3\), expected \(2, 2\)"),
        (
            lambda: primal(J=np.ones((3, 3))),
            ValueError,
            r"J has shape \(1, 3, 3\), expected \(1, 3, 2\)|J has shape \(3, 3\)",
        ),
        (lambda: primal(b=np.ones(3)), ValueError, r"b has shape \(3,\), expected \(2,\)"),
        (lambda: primal(b=[0, math.nan]), ValueError, "b has 1 entries that are not finite"),
        (lambda: primal(e=np.ones(2)), ValueError, r"e has shape \(2,\), expected \(3,\) or \(1, 3\)"),
        (lambda: solve(3), TypeError, "problem is int, expected stiction.ContactProblem"),
        (lambda: solve(one(), "newton"), ValueError, "solver is 'newton', expected one of 'subadmm'"),
        (lambda: solve(one(), dtype="float16"), ValueError, "dtype is 'float16'"),
        (lambda: solve(one(), guess=[1, 2]), ValueError, r"guess has shape \(2,\)"),
        (lambda: solve(one(), guess=NAN), ValueError, "guess has 2 entries"),
        (lambda: solve(one(), max_iterations=-1), ValueError, "iterations is -1"),
        (lambda: solve(one(), tolerance=-1), ValueError, "tolerance is -1"),
        (lambda: solve(one(), num_threads=0), ValueError, "num_threads is 0"),
        (
            lambda: solve(one(), "pgs", options={"chek": 3}),
            TypeError,
            "'chek', which is no knob of solver 'pgs'; near: 'check'",
        ),
        (lambda: solve(one(), "pgs", options={"erp": 3}), TypeError, "'erp', which is no knob of solver 'pgs'"),
        (lambda: solve(one(), "pgs", options=stiction.Pgs()), TypeError, "options is Pgs, expected a dict of knobs"),
        (lambda: solve(one(), stiction.Pgs(), options={}), TypeError, "options are for a solver given by name"),
    ],
)
def test_what_is_wrong_is_refused_by_name(make, error, says):
    with pytest.raises(error, match=says):
        make()


def test_the_general_options_hold_their_limits():
    found = solve(one(), SolverOptions(name="pgs", iterations=8, tolerance=0))
    assert (found.solver.iterations, found.solver.tolerance, found.iterations) == (8, 0, 8)
    assert importlib.import_module("stiction").Solution is type(found)


def test_the_docs_say_what_works():
    """Every block of the page, one after the other."""
    page = Path(__file__).resolve().parents[2] / "docs" / "contact-solvers.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)
    assert len(blocks) == 5 and names["solution"].converged


def test_a_contact_that_nothing_can_move_is_not_solved():
    found = solve(ContactProblem.from_delassus(np.zeros((3, 3)), [2, 3, -1.0], [0.1]))
    assert not found.converged and found.r_con > 0.99
    held = solve(ContactProblem.from_delassus(np.zeros((3, 3)), [0, 0, 1.0], [0.1]))
    assert held.converged


def test_what_a_problem_is_made_of_cannot_be_changed():
    problem = primal()
    with pytest.raises(ValueError, match="read-only"):
        problem.A[:] = 2
    A = np.eye(2)
    ContactProblem.from_primal(A, np.ones((3, 2)), np.ones(2), [0.5])
    A[:] = 3  # the caller's own stays as it was


@pytest.mark.parametrize("speed, mu", [(1.0, 1e4), (0.01, 1e6)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("solver", [name for name in stiction.solver_names() if name != "sap"])
def test_a_body_that_closes_is_no_answer_however_large_friction(solver, dtype, speed, mu):
    """r_con of no impulse is v_n / mu: it was claimed, in the place of what the solver had found."""
    problem = ContactProblem.from_primal(2 * np.eye(3), np.eye(3), 2 * np.array([speed, 0, -0.1]), [mu])
    solution = stiction.solve(problem, solver, dtype=dtype)
    right = np.allclose(solution.impulse, [[-2 * speed, 0, 0.2]], atol=1e-3)
    assert right or not solution.converged
    assert right or solver == "admm"  # which comes near too slowly, and says so
