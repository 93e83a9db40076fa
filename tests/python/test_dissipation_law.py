"""Bisection under maximum dissipation: the law from the dense problem alone, its certificate, Coulomb's beside it."""

from pathlib import Path

import numpy as np
import stiction
from scenes import sliding_box
from stiction import Model, Simulation, SolverOptions

TIGHT = {"name": "bisection", "iterations": 5000, "tolerance": 1e-11}
ANT = Path(stiction.__file__).parent / "assets" / "ant.xml"


def blocks(problem: dict):
    """(W_ii + diag(R), impulse, s = J v + e + R l, mu) of every contact."""
    v = np.linalg.solve(problem.A, problem.b + problem.J.T @ problem.impulse + problem.J_row.T @ problem.row_impulse)
    s = problem.J @ v + problem.e + problem.R * problem.impulse
    W = problem.J @ np.linalg.solve(problem.A, problem.J.T) + np.diag(problem.R)
    for i, mu in enumerate(problem.mu):
        at = slice(3 * i, 3 * i + 3)
        yield W[at, at], problem.impulse[at], s[at], mu


def energy_left(W, push, s, mu) -> tuple[float, float]:
    """s' W^-1 s as it is, and the least of the impulses of the cone that leave s_n = 0, others resting (J)."""
    c = s - W @ push
    angle = np.linspace(0, 2 * np.pi, 20000)
    d = np.stack([np.cos(angle), np.sin(angle)])
    depth = W[2, 2] + mu * W[2, :2] @ d
    n = -c[2] / np.where(depth > 1e-9, depth, np.nan)
    left = c[:, None] + W @ np.vstack([mu * n * d, n])
    return s @ np.linalg.solve(W, s), np.nanmin(np.einsum("ij,ij->j", left, np.linalg.solve(W, left)))


def r_mdp(W, push, s, mu, mobility) -> float:
    h = mu**2 * push[2] * W[2, :2] / W[2, 2]
    along = np.linalg.norm(push[:2] + h)
    s = s + np.append(np.linalg.norm(s[:2]) / along * h, 0) if along > 0 else s
    held = mobility * push
    x = held - s - [0, 0, mu * np.linalg.norm(s[:2])]
    r = np.linalg.norm(x[:2])
    if r > mu * x[2]:
        n = max(0.0, (x[2] + mu * r) / (1 + mu**2))
        x = np.append(x[:2] * mu * n / r, n)
    return float(np.linalg.norm(held - x))


def test_sliding_contacts_dissipate_most():
    sim = Simulation(Model.from_mjcf(ANT), 8, dtype="float64", solver=SolverOptions(**TIGHT), timestep=0.01)
    random, slid, share = np.random.default_rng(0), 0, []
    for step in range(60):
        sim.ctrl[:] = random.uniform(-1, 1, sim.ctrl.shape)
        sim.step(1)
        solved = sim.certificate.r_mdp <= 1e-9 * sim.certificate.scale  # Gauss-Seidel may take longer
        share.append(solved.mean())
        for env in np.flatnonzero(solved) if step % 3 == 0 else ():
            for W, push, s, mu in blocks(sim.contact_problem(env)):
                if push[2] > 1e-6 and np.linalg.norm(push[:2]) > 0.999 * mu * push[2]:
                    now, least = energy_left(W, push, s, mu)
                    assert now <= least * (1 + 1e-9) + 1e-12
                    slid += 1
    assert slid > 30 and np.mean(share) > 0.97


def test_certificate_of_a_wrong_answer_is_that_of_the_dense_problem():
    """No sweep: far from solved, where a residual that is 0 by mistake would show."""
    sim = Simulation(Model.from_mjcf(ANT), 32, dtype="float64", solver=SolverOptions(**TIGHT | {"iterations": 0}))
    random, seen = np.random.default_rng(1), 0
    sim.qvel[:] = random.normal(0, 1, sim.qvel.shape)
    for _ in range(200):
        sim.step(1)
        for env in range(32):
            problem = sim.contact_problem(env) if sim.certificate.r_mdp[env] > 0.01 else None
            if problem and len(problem.mu) == 1:
                (W, push, s, mu), seen = next(blocks(problem)), seen + 1
                mobility = np.trace(W - np.diag(problem.R)) / 3
                np.testing.assert_allclose(sim.certificate.r_mdp[env], r_mdp(W, push, s, mu, mobility), rtol=1e-6)
        if seen > 50:
            return
    raise AssertionError(seen)


def test_both_laws_are_there_and_others_report_no_dissipation():
    turned = {}
    for options in ({"name": "bisection"}, {"name": "bisection", "law": "coulomb"}, {}):
        solver = SolverOptions(**options, iterations=2000, tolerance=1e-9)
        sim = Simulation(Model.from_mjcf(sliding_box(mu=0.5)), dtype="float64", solver=solver)
        sim.step(200)
        sim.qvel[0, :2] = 2, 1
        sim.step(1)
        c = sim.certificate
        assert c.converged.all() and not sim.status.any()
        own, other = (c.r_mdp, c.r_con) if solver.law == "dissipation" else (c.r_con, c.r_mdp)
        assert own[0] <= 1e-7 * c.scale[0]
        assert (other[0] > 1e-4 * c.scale[0]) == (solver.law == "dissipation")
        turned[solver.name, solver.law] = sim.qvel[0, :3].copy()
    exact = turned["subadmm", "coulomb"]
    np.testing.assert_allclose(turned["bisection", "coulomb"], exact, atol=1e-7)
    assert np.abs(turned["bisection", "dissipation"] - exact).max() > 5e-5
