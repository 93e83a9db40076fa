"""Newton and ADMM on public contact problems: the smallest of each family of small ones; the bench runs them all."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

pytest.importorskip("mujoco")
pytest.importorskip("h5py")
fclib = pytest.importorskip("bench.accuracy.fclib")
pytest.importorskip("stiction_solvers")
reference = pytest.importorskip("stiction_reference")

from model_sources import DATA  # noqa: E402

FILES = [path for path in (DATA / "fclib_problems").rglob("*.hdf5") if path.stat().st_size < 90_000]
FAMILIES = sorted({path.stem.split("-")[0].split("_")[0].rstrip("0123456789") for path in FILES})


def smallest(family):
    return min((path for path in FILES if path.stem.startswith(family)), key=lambda path: path.stat().st_size)


@pytest.mark.parametrize("family", FAMILIES or [pytest.param("", marks=pytest.mark.skip("no FCLIB files"))])
def test_smallest_of_the_family_is_solved_and_the_claim_true(family):
    problem = fclib.read(smallest(family))
    found = fclib.solve(problem)
    print(found)
    assert found["r_con_over_V"] <= 1.05e-8
    for variant in ("admm", "admm, the paper's spectral rule"):
        by_admm = fclib.solve(problem, **fclib.VARIANTS[variant])
        assert by_admm["r_con_over_V"] <= 1.05e-6 and by_admm["factorizations"] <= by_admm["iterations"]


def test_residual_is_the_oracles():
    rng = np.random.default_rng(0)
    for contacts in (1, 2, 5):
        X = rng.standard_normal((3 * contacts, 3 * contacts))
        problem = fclib.Problem("random", X @ X.T, rng.standard_normal(3 * contacts), rng.uniform(0, 1, contacts))
        for impulse in (np.zeros(3 * contacts), rng.standard_normal(3 * contacts)):
            c = reference.certificate_delassus(problem.W, problem.q, problem.mu, impulse)
            assert fclib.r_con(problem, impulse) == pytest.approx(c["r_con"], rel=1e-12)
            assert problem.scale == pytest.approx(c["scale"])


def test_one_contact_of_known_impulse():
    W = np.array([[14.0, 1, -1], [1, 16, -2], [-1, -2, 15]])  # FCLIB's FrictionContact3D_1c, rows t1, t2, n
    problem = fclib.Problem("1c", W, np.array([2.0, 3, -1]), np.array([0.1]))
    impulse = np.array([-0.003678614907, -0.005443070814, 0.065695682898])
    assert fclib.r_con(problem, impulse) <= 1e-10
    assert fclib.solve(problem)["r_con_over_V"] <= 1e-8


def test_what_is_no_problem_is_refused(tmp_path):
    path = tmp_path / "text.hdf5"
    path.write_text("no HDF5")
    with pytest.raises(OSError):
        fclib.read(path)
