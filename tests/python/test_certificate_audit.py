"""The certificate against the oracle's: on the problem that was solved, and on the one it assembles from (q, v).

The second also sees what single precision did to gaps, frames and masses.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

reference = pytest.importorskip("stiction_reference")
pytest.importorskip("mujoco")

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scenes import MIXED  # noqa: E402
from stiction import Model, Simulation  # noqa: E402
from stiction.solver_options import SolverOptions  # noqa: E402

from bench.accuracy.oracle import assembled  # noqa: E402

DATA = Path(os.environ.get("STICTION_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
MODELS = {
    "mixed": MIXED,
    "bouncing": MIXED,
    "ant": DATA / "gymnasium/assets/ant.xml",
    "humanoid": DATA / "gymnasium/assets/humanoid.xml",
}
ENVS = 6


def rollout(name, dtype, steps=60, **options):
    """Yields (state before the step, simulation after it)."""
    source = MODELS[name]
    if isinstance(source, Path) and not source.exists():
        pytest.skip(f"no {source}")
    model = Model.from_mjcf(source)
    sim = Simulation(model.with_restitution(0.8) if name == "bouncing" else model, ENVS, dtype=dtype, **options)
    rng = np.random.default_rng(2)
    sim.qvel[:] = 0.3 * rng.standard_normal(sim.qvel.shape)
    for step in range(2 * steps):
        sim.ctrl[:] = 0.3 * rng.uniform(-1, 1, sim.ctrl.shape)
        if step < steps:
            sim.step()  # the way down
            continue
        before = sim.qpos.astype(float), sim.qvel.astype(float), sim.ctrl.astype(float)
        sim.step()
        yield before, sim


def has_lift(problem, v):
    """Whether `v` has the price of a lift, which is none of the problem's: what rolls got higher by a bend."""
    push = problem.J.T @ problem.impulse.ravel() + problem.J_row.T @ problem.row_impulse
    return np.abs(np.linalg.solve(problem.A, problem.b + push) - v).max() > 1e-4


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODELS)
def test_certificate_is_the_oracles(name, dtype):
    single = dtype == "float32"
    reported, solved, exact, scales, speeds, lifts = [], [], [], [], [], 0
    for before, sim in rollout(name, dtype):
        oracle = reference.Model(sim.model.to_arrays())
        for env in range(ENVS):
            if not np.any(sim.contact.impulse[env]):
                continue
            found = sim.contact_problem(env)
            problem = found.arrays()
            d, v, impulse = assembled(oracle, sim, before, env)
            if has_lift(found, v):
                lifts += 1
                continue
            c = reference.certificate(problem, v, problem["impulse"], problem["row_impulse"])
            reported.append(float(sim.certificate.r_con[env]))
            scales.append(float(sim.certificate.scale[env]))
            speeds.append(np.abs(v).max())
            solved.append(c["r_con"])
            exact.append(reference.certificate(d, v, impulse)["r_con"])
            assert c["r_cone"] <= (1e-6 if single else 1e-12)
    reported, solved, exact, scales, speeds = map(np.array, (reported, solved, exact, scales, speeds))
    assert len(reported) > (20 if name == "bouncing" else 50) and lifts <= 0.02 * len(reported)
    print(
        f"{name} {dtype}: {len(reported)} steps, r_con/V median reported {np.median(reported / scales):.1e}, "
        f"by the oracle on the same {np.median(solved / scales):.1e}, from (q, v) {np.median(exact / scales):.1e}"
    )
    # The same formula on the same numbers, but for the rounding of velocities when they are stored.
    noise = (1e-5 if single else 1e-11) * scales + (5e-7 if single else 1e-14) * speeds
    assert np.all(np.abs(reported - solved) <= 0.05 * solved + noise)
    assert np.all(np.abs(exact - solved) <= 0.05 * solved + noise)


def worst(problem, v, impulse):
    return reference.certificate(problem, v, impulse)["r_con"]


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_mistake_raises_the_residual(name):
    rng = np.random.default_rng(0)
    exact = SolverOptions(iterations=2000, tolerance=1e-12, certify=1e-9)
    seen = 0
    for before, sim in rollout(name, "float64", steps=60, solver=exact):
        oracle = reference.Model(sim.model.to_arrays())
        for env in range(ENVS):
            problem, v, impulse = assembled(oracle, sim, before, env)
            pushing = np.flatnonzero(impulse[2::3] > 1e-3 * max(1e-9, impulse.max(initial=0)))
            if not len(pushing):
                continue
            good = worst(problem, v, impulse)
            scale = float(sim.certificate.scale[env])
            if good > 1e-8 * scale:
                continue
            seen += 1
            i = 3 * pushing[np.argmax(impulse[2::3][pushing])]
            size, tangent = impulse[i + 2], impulse[i : i + 2]
            wrong = 100 * good + 1e-7 * scale
            assert worst(problem, v + 1e-3 * rng.standard_normal(len(v)), impulse) > wrong
            less = impulse.copy()
            less[i + 2] *= 0.9
            follow = np.linalg.solve(problem["A"], problem["J"].T @ (less - impulse))  # v moves along
            assert worst(problem, v + follow, less) > wrong
            dropped = impulse.copy()
            dropped[i : i + 3] = 0
            assert (
                worst(problem, v + np.linalg.solve(problem["A"], problem["J"].T @ (dropped - impulse)), dropped) > wrong
            )
            flipped = impulse.copy()
            flipped[i + 2] = -size
            assert worst(problem, v, flipped) > wrong
            if abs(tangent[0] - tangent[1]) > 1e-2 * size and problem["mu"][i // 3] > 0:
                swapped = impulse.copy()
                swapped[[i, i + 1]] = tangent[::-1]
                moved = v + np.linalg.solve(problem["A"], problem["J"].T @ (swapped - impulse))
                assert worst(problem, moved, swapped) > wrong
    assert seen > 20
