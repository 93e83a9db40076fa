"""The solvers of the convex relaxation: its conditions, from the dense problem alone, and what the certificate says."""

from pathlib import Path

import numpy as np
import pytest
import stiction
from scenes import sliding_box
from stiction import Model, Simulation, SolverOptions

SOLVERS = {"subadmm": {"law": "convex"}, "sap": {"name": "sap"}, "cond": {"name": "cond", "law": "convex"}}
TIGHT = {"iterations": 5000, "tolerance": 1e-12}
ANT = Path(stiction.__file__).parent / "assets" / "ant.xml"
every_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


def conditions(problem: dict) -> float:
    """How far impulses l and s = J v + e + R l are from: l in the cone, s in its dual, l.s = 0 (N s, m/s, J)."""
    v = np.linalg.solve(problem.A, problem.b + problem.J.T @ problem.impulse + problem.J_row.T @ problem.row_impulse)
    s = (problem.J @ v + problem.e + problem.R * problem.impulse).reshape(-1, 3)
    impulse, mu, worst = problem.impulse.reshape(-1, 3), problem.mu, 0.0
    for push, s_i, mu_i in zip(impulse, s, mu, strict=True):
        in_cone = np.hypot(push[0], push[1]) - mu_i * push[2]
        in_dual = mu_i * np.hypot(s_i[0], s_i[1]) - s_i[2]
        worst = max(worst, in_cone, in_dual, abs(push @ s_i))
    return worst


@every_solver
def test_impulses_fulfil_the_convex_law(solver):
    options = SolverOptions(**solver, **TIGHT)
    sim = Simulation(Model.from_mjcf(ANT), 8, dtype="float64", solver=options, timestep=0.01)
    random, met = np.random.default_rng(0), 0
    for _ in range(60):
        sim.ctrl[:] = random.uniform(-1, 1, sim.ctrl.shape)
        sim.step(1)
        for env in range(8):
            problem = sim.contact_problem(env)
            met += len(problem.mu) > 0
            assert conditions(problem) < 1e-8
    assert met > 100
    assert (sim.certificate.r_ccp <= 1e-9 * sim.certificate.scale).all()


def test_what_slides_lifts_off_under_the_convex_law_alone():
    speed, mu = 5.0, 0.5
    up = {}
    for name, options in {"coulomb": {}, **SOLVERS}.items():
        sim = Simulation(
            Model.from_mjcf(sliding_box(mu=mu, timestep=0.001)), dtype="float64", solver=SolverOptions(**options)
        )
        sim.step(200)
        sim.qvel[0, :3] = speed, 0, 0
        sim.step(1)
        up[name] = sim.qvel[0, 2]
    assert abs(up["coulomb"]) < 1e-6
    assert up["sap"] > 0.5 * mu * speed  # the convex law asks v_n >= mu |v_t|
    assert up["sap"] == pytest.approx(up["subadmm"], abs=1e-3 * speed)


@every_solver
def test_coulombs_certificate_sees_the_difference_and_the_status_does_not(solver):
    sim = Simulation(
        Model.from_mjcf(sliding_box(mu=0.5, timestep=0.001)), dtype="float64", solver=SolverOptions(**solver)
    )
    sim.step(200)
    sim.qvel[0, :3] = 1, 0, 0
    sim.step(1)
    assert sim.certificate.r_con[0] > 0.1 * sim.certificate.scale[0]
    assert sim.certificate.r_ccp[0] < 1e-3 * sim.certificate.scale[0]
    assert sim.certificate.converged.all()
    assert not sim.status.any()


def test_both_solvers_find_the_one_velocity():
    """On every kind of row: limits, contacts, motors of the ant."""
    after = []
    for solver in SOLVERS.values():
        sim = Simulation(Model.from_mjcf(ANT), 16, dtype="float64", solver=SolverOptions(**solver, **TIGHT))
        sim.qvel[:] = np.random.default_rng(3).normal(0, 1, sim.qvel.shape)
        sim.step(60)
        assert (sim.certificate.num_contacts > 0).sum() > 4
        after.append(np.hstack([sim.qpos, sim.qvel]))
    np.testing.assert_allclose(after[0], after[1], atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sap_carries_an_ant_through_random_controls(dtype):
    """A second of falls and kicks: nothing flagged, few Newton steps."""
    sim = Simulation(Model.from_mjcf(ANT), 16, dtype=dtype, solver="sap")
    random, contacts, steps = np.random.default_rng(1), 0, []
    for _ in range(100):
        sim.ctrl[:] = random.uniform(-1, 1, sim.ctrl.shape)
        sim.step(1)
        assert not sim.status.any()
        assert (sim.certificate.r_ccp <= 1e-3 * sim.certificate.scale).all()
        contacts += int(sim.certificate.num_contacts.sum())
        steps.append(sim.certificate.iterations.mean())
    assert contacts > 500
    assert np.mean(steps) < 12
    assert sim.solver.law == "convex"


def test_laws_are_named():
    with pytest.raises(ValueError, match="law is 'soft', expected 'coulomb' or 'convex'"):
        SolverOptions(law="soft")
    with pytest.raises(TypeError, match="solver 'pgs' has no option 'law'; its own are 'relaxation', 'check'"):
        SolverOptions(name="pgs", law="convex")
