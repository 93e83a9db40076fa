"""stiction.solve whatever the size of its numbers: in other units an answer is the same, and no claim is false."""

import numpy as np
import pytest
import stiction
from stiction import ContactProblem, solve
from test_contact_problem import LAWS, ONE_CONTACT, for_solver

RESIDUALS = (*LAWS.values(), "scale")
pytestmark = pytest.mark.filterwarnings("error")  # NumPy's, of what overflows


def scaled(speed, mobility=1.0):
    W, q, mu, _ = ONE_CONTACT["1c"]
    return ContactProblem.from_delassus(np.array(W) * mobility, np.array(q) * speed, [mu])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("solver", stiction.solver_names())
@pytest.mark.parametrize("speed, mobility", [(-563, 0), (-66, 80), (40, -400), (995, 0), (0, -560), (0, 560)])
def test_an_answer_is_the_same_in_other_units(solver, dtype, speed, mobility):
    """In powers of two, by which nothing is rounded."""
    usual = solve(for_solver(solver, scaled(1)), solver, dtype=dtype)
    found = solve(for_solver(solver, scaled(2.0**speed, 2.0**mobility)), solver, dtype=dtype)
    assert usual.converged and found.converged
    np.testing.assert_allclose(found.impulse * 2.0 ** (mobility - speed), usual.impulse, rtol=1e-12)
    for name in RESIDUALS:
        np.testing.assert_allclose(getattr(found, name) / 2.0**speed, getattr(usual, name), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("speed", [1e-300, 1e-170, 1e-20, 1.0, 1e20, 1e170, 1e300])
def test_residuals_of_any_impulse_scale_with_it(speed):
    impulse, usual = np.array([6.2, 1, 1]), scaled(1).residuals([6.2, 1, 1])
    found = scaled(speed).residuals(impulse * speed)
    for name, value in usual.items():
        assert found[name] == pytest.approx(value * (1 if name == "r_row" else speed), rel=1e-12), name
    assert found["r_con"] > found["scale"]


@pytest.mark.parametrize("solver", stiction.solver_names())
@pytest.mark.parametrize("speed, mobility", [(1e300, 1e-170), (1e-170, 1e170)])
def test_what_has_no_impulse_in_double_is_flagged(solver, speed, mobility):
    """1e470 N s, and 1e-340."""
    found = solve(for_solver(solver, scaled(speed, mobility)), solver)
    assert not found.converged and not found.impulse.any() and np.isfinite(found.velocity).all()
