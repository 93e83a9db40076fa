"""Batches of contact problems: what they are made of, and what is a guess of one."""

import numpy as np
import pytest
from stiction import ContactProblem, solve
from test_contact_problem import delassus_of, random_primal


def batch_of(count):
    W, q, mu = (np.stack(each) for each in zip(*(delassus_of(*random_primal(k)) for k in range(count)), strict=True))
    return ContactProblem.from_delassus(W, q, mu, symmetrize=True)


def test_a_guess_is_of_as_many_problems():
    three, two = batch_of(3), batch_of(2)
    alone = ContactProblem.from_delassus(two.W[0], two.q[0], two.mu[0])
    assert (solve(three, guess=solve(three)).iterations == 0).all()
    with pytest.raises(ValueError, match="guess is a solution of one problem, the batch has 3"):
        solve(three, guess=solve(alone))
    with pytest.raises(ValueError, match="guess is a solution of a batch of 2 problems, the batch has 3"):
        solve(three, guess=solve(two))
    with pytest.raises(ValueError, match="guess is a solution of a batch of 2 problems, expected one of one problem"):
        solve(alone, guess=solve(two))


def test_a_batch_may_be_a_list_of_sparse_matrices():
    sparse = pytest.importorskip("scipy.sparse")
    dense = batch_of(3)
    thin = ContactProblem.from_delassus([sparse.csr_matrix(W) for W in dense.W], dense.q, dense.mu)
    assert np.array_equal(thin.W, dense.W)
    A, J, b, mu, _ = zip(*map(random_primal, range(3)), strict=True)
    given = [sparse.csc_matrix(each) for each in A], tuple(sparse.coo_array(each) for each in J)
    assert np.array_equal(ContactProblem.from_primal(*given, b, mu).J, J)
    with pytest.raises((TypeError, ValueError), match="^W "):
        ContactProblem.from_delassus([sparse.eye(9), sparse.eye(6)], dense.q[:2], dense.mu[:2])
