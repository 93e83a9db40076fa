"""What the solvers are measured against and on: baselines, one contact alone, problems that no solver likes."""

import sys
from pathlib import Path

import numpy as np
import pytest
import stiction

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.solvers import baselines, degenerate, newton_forms, one_contact  # noqa: E402


def random_problem(seed, contacts=4, width=18):
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((3 * contacts, width))
    return stiction.ContactProblem.from_delassus(
        Y @ Y.T, rng.standard_normal(3 * contacts), rng.uniform(0, 1, contacts)
    )


@pytest.mark.parametrize("name", list(baselines.BASELINES))
def test_baselines_solve_what_is_easy(name):
    law, residual, _ = baselines.BASELINES[name]
    for seed in range(10):
        problem = random_problem(seed)
        found = baselines.solve(name, problem, 1e-8, 2000)
        assert found.law == law and getattr(found, residual) <= 1e-8 * found.scale, seed
        assert 0 < found.iterations < 2000


def test_a_baseline_finds_the_convex_velocity():
    problem = random_problem(3)
    watch = baselines.Watch(problem, "r_ccp", 1e-10)
    baselines.apgd(problem, watch, 5000)
    ours = stiction.solve(problem, "sap", tolerance=1e-10)
    np.testing.assert_allclose(problem.delassus @ watch.impulse.ravel() + problem.q, ours.velocity.ravel(), atol=1e-7)


def test_the_strict_projections_derivative_is_its_slope():
    rng = np.random.default_rng(0)
    trial, mu, small = rng.standard_normal((200, 3)), rng.uniform(0.1, 1, 200), 1e-7
    d = baselines.strict_derivative(trial, mu)
    for axis in range(3):
        by = np.eye(3)[axis] * small
        slope = (baselines.project_strict(trial + by, mu) - baselines.project_strict(trial - by, mu)) / (2 * small)
        np.testing.assert_allclose(slope, d[:, :, axis], atol=1e-5)


def test_three_ways_find_the_same_slide():
    slides = one_contact.random_slides(2000, condition=1e4)
    assert len(slides.mu) > 500
    golden = slides.energy(one_contact.golden_section(slides)[0])
    for angle in (one_contact.quartic(slides)[0], one_contact.bisection(slides)):
        np.testing.assert_allclose(slides.energy(angle), golden, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_number_is_lost_and_no_claim_false_where_no_solver_is_at_ease(dtype):
    limits = {"tolerance": {"float64": 1e-8, "float32": 1e-5}[dtype], "max_iterations": 100}
    tallies = degenerate.run(stiction.solver_names(), 3000, dtype, limits, None)
    for name, tally in tallies.items():
        assert tally["problems"] == 3000
        assert tally["not_finite"] == 0 and tally["false_claims"] == 0, (name, tally)
        assert tally["worse_than_none"] == 0, (name, tally)
    assert tallies["canal"]["claims"] > 0.6 * 3000


def test_multiply_adds_of_a_newton_step_are_those_of_a_factor_by_hand():
    """Two chains of two dofs on a base of one: a row at each tip couples them through the base alone."""
    left, right = np.array([1, 1, 1, 0, 0], bool), np.array([1, 0, 0, 1, 1], bool)
    rows = 2 * (3 + 6 + 6)  # G y, the upper triangle of y y', Y' l and Y u
    factor = 2 * ((2 + 3) + (1 + 1)) + 5  # of each chain's pivots, tip first: scaled, subtracted; roots
    solution = 2 * 2 * (2 + 1)
    found = newton_forms.step_cost([(left, 1), (right, 1)], np.zeros((5, 5), bool))
    assert found == rows + factor + solution
    across = newton_forms.step_cost([(left | right, 1)], np.zeros((5, 5), bool))
    assert across == (5 + 15 + 10) + sum(n + n * (n + 1) / 2 + 2 * n + 1 for n in range(5))
