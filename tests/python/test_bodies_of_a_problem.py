"""A contact problem by its Delassus operator and by bodies that have it."""

import numpy as np
import pytest
import stiction
from stiction import ContactProblem, solve, solve_contact_problem
from test_contact_problem import delassus_of, random_primal


def test_cond_is_about_bodies():
    """It refuses a Delassus operator alone, and bodies with that operator have its answer."""
    A, J, b, mu, e = random_primal(1, nv=6)  # nine rows of rank six, and a bias that is not in their range
    alone = ContactProblem.from_delassus(*delassus_of(A, J, b, mu, e), symmetrize=True)
    for solver in ("cond", stiction.Cond(gain=3)):
        with pytest.raises(ValueError, match=r"'cond' is about bodies, expected \(A, J, b, e\)"):
            solve(alone, solver)
    with pytest.raises(ValueError, match="about bodies"):
        solve_contact_problem(alone.W, alone.q, mu, solver="cond")
    bodies = alone.to_primal()
    assert bodies.A.shape == (6, 6) and bodies.to_primal() is bodies
    np.testing.assert_allclose(bodies.delassus, alone.W, atol=1e-12)
    assert np.array_equal(bodies.q, alone.q) and np.array_equal(bodies.R, alone.R)
    found, same = (
        solve(p, "cond", tolerance=1e-10, max_iterations=20_000)
        for p in (bodies, ContactProblem.from_primal(A, J, b, mu, e))
    )
    assert found.converged and same.converged
    np.testing.assert_allclose(found.velocity.ravel() + alone.q, same.velocity.ravel() + e, atol=1e-8)
    assert np.array_equal(solve(bodies, "admm").impulse, solve(alone).impulse)  # to the bit, and by default
