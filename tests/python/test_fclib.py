"""FCLIB files: read as they are meant, and the public problems at hand solved; the bench runs them all."""

import sys
from pathlib import Path

import numpy as np
import pytest
from stiction import ContactProblem, read_fclib, solve

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

pytest.importorskip("mujoco")
h5py = pytest.importorskip("h5py")

from model_sources import DATA  # noqa: E402

FILES = [path for path in (DATA / "fclib_problems").rglob("*.hdf5") if path.stat().st_size < 90_000]
FAMILIES = sorted({path.stem.split("-")[0].split("_")[0].rstrip("0123456789") for path in FILES})
#: Rows n, t1, t2.
W = np.array([[15.0, -1, -2], [-1, 14, 1], [-2, 1, 16]])
Q, MU = np.array([-1.0, 2, 3]), np.array([0.1])
OURS = [1, 2, 0]


def smallest(family):
    return min((path for path in FILES if path.stem.startswith(family)), key=lambda path: path.stat().st_size)


def matrix(group, name, dense, kind):
    """Writes a matrix as triplets, compressed columns or compressed rows."""
    rows, columns = np.nonzero(np.ones_like(dense))
    if kind == -1:
        order = np.lexsort((rows, columns))
        rows, columns = rows[order], columns[order]
    x = dense[rows, columns]
    m, n = dense.shape
    if kind == -1:
        p, i = np.arange(n + 1) * m, rows
    elif kind == -2:
        p, i = np.arange(m + 1) * n, columns
    else:
        p, i, kind = columns, rows, len(x)
    g = group.create_group(name)
    for key, value in {"m": [m], "n": [n], "nz": [kind], "nzmax": [len(x)], "p": p, "i": i, "x": x}.items():
        g[key] = np.array(value)


def local(path, kind=-1, dimension=3, **vectors):
    with h5py.File(path, "w") as file:
        group = file.create_group("fclib_local")
        group["spacedim"] = np.array([dimension])
        matrix(group, "W", W, kind)
        for name, values in ({"q": Q, "mu": MU} | vectors).items():
            group[f"vectors/{name}"] = values
    return path


@pytest.mark.parametrize("kind", [-1, -2, 0], ids=["columns", "rows", "triplets"])
def test_local_problems_are_read_in_our_order(tmp_path, kind):
    arrays = read_fclib(local(tmp_path / "local.hdf5", kind))
    assert np.array_equal(arrays["W"], W[np.ix_(OURS, OURS)])
    assert np.array_equal(arrays["q"], Q[OURS]) and np.array_equal(arrays["mu"], MU)
    found = solve(ContactProblem.from_fclib(tmp_path / "local.hdf5"))
    np.testing.assert_allclose(found.impulse, [[-0.003678614907, -0.005443070814, 0.065695682898]], atol=1e-8)


@pytest.mark.parametrize("kind", [-1, -2, 0], ids=["columns", "rows", "triplets"])
def test_global_problems_are_read_as_bodies(tmp_path, kind):
    """M v = H r + f, u = H' v + w: the local problem is W = H' M^-1 H, q = H' M^-1 f + w."""
    rng = np.random.default_rng(0)
    B, H = rng.standard_normal((5, 5)), rng.standard_normal((5, 3))
    M, f, w = B @ B.T + np.eye(5), rng.standard_normal(5), rng.standard_normal(3)
    path = tmp_path / "global.hdf5"
    with h5py.File(path, "w") as file:
        group = file.create_group("fclib_global")
        group["spacedim"] = np.array([3])
        matrix(group, "M", M, kind), matrix(group, "H", H, kind)
        for name, values in {"f": f, "w": w, "mu": MU}.items():
            group[f"vectors/{name}"] = values
    problem = ContactProblem.from_fclib(path)
    np.testing.assert_allclose(problem.delassus, (H.T @ np.linalg.solve(M, H))[np.ix_(OURS, OURS)], rtol=1e-10)
    np.testing.assert_allclose(problem.q, (H.T @ np.linalg.solve(M, f) + w)[OURS], rtol=1e-10)


def test_entries_given_twice_are_added(tmp_path):
    path = local(tmp_path / "twice.hdf5", kind=0)
    with h5py.File(path, "a") as file:
        g = file["fclib_local/W"]
        added = {"p": [0, 9], "i": [0, 9], "x": [5.0, 9.0]}  # the second lies beyond nz, where there is only room
        for name, values in added.items():
            old = g[name][()]
            del g[name]
            g[name] = np.concatenate([old, np.array(values, old.dtype)])
        g["nz"][...] = 10
    assert read_fclib(path)["W"][2, 2] == 20


@pytest.mark.parametrize("law", ["coulomb", "dissipation"])
def test_bisection_solves_one_contact_of_known_impulse_under_either_law(law):
    W = np.array([[14.0, 1, -1], [1, 16, -2], [-1, -2, 15]])
    problem = ContactProblem.from_delassus(W, np.array([2.0, 3, -1]), np.array([0.1]))
    found = solve(problem, solver="bisection", options={"law": law})
    assert found.converged and found.law == law
    dissipative = np.array([-0.0036889144291, -0.0054361247720, 0.0656959224018])
    assert (np.abs(found.impulse - dissipative).max() <= 1e-9) == (law == "dissipation")  # the laws differ


def test_what_is_no_problem_is_refused(tmp_path):
    path = tmp_path / "text.hdf5"
    path.write_text("no HDF5")
    with pytest.raises(OSError):
        read_fclib(path)
    with pytest.raises(ValueError, match="flat.hdf5 has contacts of 2 dimensions, expected 3"):
        read_fclib(local(tmp_path / "flat.hdf5", dimension=2))
    with pytest.raises(ValueError, match="odd.hdf5: .*nz -3"):
        read_fclib(odd(tmp_path / "odd.hdf5"))
    with h5py.File(tmp_path / "other.hdf5", "w") as file:
        file["rolling"] = 1
    with pytest.raises(ValueError, match="other.hdf5 has rolling, expected fclib_local or fclib_global"):
        read_fclib(tmp_path / "other.hdf5")
    with pytest.raises(ValueError, match=r"long.hdf5: q has shape \(6,\), expected \(3,\)"):
        read_fclib(local(tmp_path / "long.hdf5", q=np.zeros(6)))
    with pytest.raises(ValueError, match=r"many.hdf5: W has shape \(3, 3\), expected \(6, 6\)"):
        read_fclib(local(tmp_path / "many.hdf5", q=np.zeros(6), mu=np.zeros(2)))
    for name, key, value, told in [
        ("W", "i", np.array([-1, 1, 2, 0, 1, 2, 0, 1, 2]), r"W \(3, 3\) has an entry in -1"),
        ("W", "i", np.array([0, 1, 3, 0, 1, 2, 0, 1, 2]), r"W \(3, 3\) has an entry in 0 or 3"),
        ("W", "p", np.array([0, 6, 3, 9]), "W has pointers p that do not rise from 0 to at most 9"),
        ("W", "p", np.array([0, 3]), "W has pointers p"),
        ("W", "x", np.zeros(4), "W has 4 numbers for 9 entries"),
        ("W", "m", None, "/fclib_local/W has no 'm'"),
        ("vectors", "mu", None, "has no vector 'mu'"),
    ]:
        path = local(tmp_path / "damaged.hdf5")
        with h5py.File(path, "a") as file:
            del file[f"fclib_local/{name}/{key}"]
            if value is not None:
                file[f"fclib_local/{name}/{key}"] = value
        with pytest.raises(ValueError, match=f"damaged.hdf5.*{told}"):
            read_fclib(path)
        path.unlink()
    path = local(tmp_path / "tied.hdf5")
    with h5py.File(path, "a") as file:
        file["fclib_local/V"] = 1
    with pytest.raises(ValueError, match=r"tied.hdf5 has bilateral constraints \(V\)"):
        read_fclib(path)


def odd(path):
    with h5py.File(local(path), "a") as file:
        file["fclib_local/W/nz"][...] = -3
    return path


@pytest.mark.parametrize("family", FAMILIES or [pytest.param("", marks=pytest.mark.skip("no FCLIB files"))])
def test_smallest_of_the_family_is_solved_and_the_claim_true(family):
    reference = pytest.importorskip("stiction_reference")
    problem = ContactProblem.from_fclib(smallest(family), symmetrize=True)
    found = solve(problem, "canal", max_iterations=200)
    c = reference.certificate_delassus(problem.W, problem.q, problem.mu, found.impulse.ravel())
    assert found.converged and c["r_con"] <= 1.001e-8 * c["scale"]
    assert c["r_con"] == pytest.approx(found.r_con, rel=1e-3, abs=1e-11 * c["scale"])


@pytest.mark.parametrize("solver", ["subadmm", "canal", "sap", "admm", "bisection"])
def test_two_cubes_are_solved_in_double_and_flagged_in_single(solver):
    """ContactBench's stack of two cubes: rounding W to single precision alone leaves 0.02 V and more."""
    path = DATA / "contactbench/tests/python/data/2cubes_t0.npz"
    if not path.exists():
        pytest.skip("no ContactBench data")
    data = np.load(path)
    problem = ContactProblem.from_delassus(data["G"], data["g"].ravel(), data["mus"], symmetrize=True)
    assert solve(problem, solver, tolerance=1e-6).converged
    single = solve(problem, solver, tolerance=1e-6, dtype="float32")
    assert np.isfinite(single.impulse).all() and not single.converged


def test_a_factor_in_float_is_refined():
    """Nine problems of ten to 1e-5 V with one step of refinement, and what single precision cannot hold."""
    problems = [ContactProblem.from_fclib(smallest(family), symmetrize=True) for family in FAMILIES]
    path = DATA / "contactbench/tests/python/data/2cubes_t0.npz"
    if not problems or not path.exists():
        pytest.skip("no FCLIB files, or no ContactBench data")
    residuals = []
    for problem in problems:
        found = solve(problem, "admm", tolerance=1e-5, options={"refinements": 1})
        residuals.append(found.r_con / found.scale)
    assert np.mean(np.array(residuals) <= 1e-5) >= 0.9
    data = np.load(path)
    problem = ContactProblem.from_delassus(data["G"], data["g"].ravel(), data["mus"], symmetrize=True)
    found = solve(problem, "admm", tolerance=1e-6, options={"refinements": 1})
    plain = solve(problem, "admm", tolerance=1e-12, max_iterations=50)
    assert found.converged and 1e-12 < found.r_con / found.scale and plain.r_con < found.r_con / 10, "it is rounded"


def test_the_bench_tabulates_and_draws(tmp_path, capsys):
    bench = pytest.importorskip("bench.solvers.__main__")
    pytest.importorskip("matplotlib")
    (tmp_path / "b").mkdir()
    local(tmp_path / "a.hdf5"), local(tmp_path / "b/a.hdf5", q=2 * Q)
    odd(tmp_path / "odd.hdf5")
    out = tmp_path / "out.json"
    result = bench.main([str(tmp_path), "--solvers", "canal", "pgs:iterations=1", "--output", str(out)])
    canal, pgs = (entry["figures"] for entry in result["solvers"].values())
    assert (canal["solved"], canal["problems"], canal["unsolved"]) == (2, 2, []) and canal["factorizations"] > 0
    assert pgs["solved"] == 0 and pgs["unsolved"] == ["a", "b/a"] and pgs["iterations"]["p90"] == 1
    assert out.exists() and out.with_suffix(".png").stat().st_size > 10_000
    told = capsys.readouterr().out
    assert "| canal | coulomb | 2 of 2 |" in told and "left out: odd: ValueError: odd.hdf5: " in told
