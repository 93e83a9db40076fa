"""The fallback by any solver: it answers what was left, in the main job's law, and as the same bits in any batch."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")

from stiction import Model, Simulation, SolverOptions, Status, solver_names  # noqa: E402

LAWS = {
    "coulomb": ("subadmm", "pgs", "canal", "admm", "bisection", "cond"),
    "convex": ("subadmm", "sap", "cond"),
    "dissipation": ("bisection",),
}
MAIN = {"coulomb": "subadmm", "convex": "subadmm", "dissipation": "bisection"}
CASES = [
    (law, solver)
    for law, solvers in LAWS.items()
    for solver in (*solvers, True)
    if (law, solver) != ("dissipation", True)
]
CERTIFY = 1e-6
STEPS = 30


def options(law, fallback):
    """A main job that leaves most steps to its fallback."""
    return SolverOptions(name=MAIN[law], law=law, iterations=2, certify=CERTIFY, fallback=fallback)


@pytest.fixture(scope="module")
def ant():
    return Model.from_mjcf(Path(__file__).parents[2] / "envs/ant/ant.xml")


@pytest.fixture(scope="module")
def thrown(ant):
    """Ants on their feet, each with controls of its own; (states, controls)."""
    sim = Simulation(ant, 24, num_threads=1)
    rng = np.random.default_rng(0)
    for _ in range(40):
        sim.ctrl = rng.uniform(-1, 1, sim.ctrl.shape)
        sim.step(5)
    return sim.qpos.copy(), sim.qvel.copy(), rng.uniform(-1, 1, (STEPS, *sim.ctrl.shape))


def walk(model, solver, thrown, which, dtype="float32"):
    """Which steps of environments were left above certify, which the fallback answered; the state in the end."""
    qpos, qvel, controls = thrown
    sim = Simulation(model, len(which), solver=solver, dtype=dtype, num_threads=1)
    sim.qpos, sim.qvel = qpos[which], qvel[which]
    left, answered = [], []
    for control in controls:
        sim.ctrl = control[which]
        sim.clear_status()
        sim.step()
        left.append(sim.status & Status.NOT_CONVERGED != 0)
        answered.append(sim.status & Status.FALLBACK != 0)
    return np.array(left), np.array(answered), sim.qpos.copy(), sim.qvel.copy()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("law", "fallback"), CASES)
def test_it_solves_what_was_left(ant, thrown, law, fallback, dtype):
    everyone = np.arange(24)
    alone = walk(ant, options(law, False), thrown, everyone, dtype)
    left, answered, *_ = walk(ant, options(law, fallback), thrown, everyone, dtype)
    assert alone[0].mean() > 0.3 and not alone[1].any()
    assert answered.mean() > 0.3
    # In float what v is known to leaves some above a residual of 1e-6 V.
    assert left.mean() <= (0.1 if dtype == "float32" else 0.01), left.mean()


@pytest.mark.parametrize(("law", "fallback"), CASES)
def test_bits_do_not_depend_on_the_batch(ant, thrown, law, fallback):
    _, _, *together = walk(ant, options(law, fallback), thrown, np.arange(24))
    for env in (0, 7, 23):
        _, answered, *alone = walk(ant, options(law, fallback), thrown, np.array([env]))
        assert answered.any()
        for ours, theirs in zip(alone, together, strict=True):
            np.testing.assert_array_equal(ours[0], theirs[env])


def test_bits_do_not_depend_on_what_waits_for_the_same_newton():
    """Heaps of one to four bodies: islands of other sizes take the places of those that are done, in whatever order."""
    heaps = "".join(
        f"""<body pos="{2 * x} 0 {0.12 + 0.21 * z}"><freejoint/>
          <geom type="{kind}" size=".1 .1 .1" mass="{10**z}"/></body>"""
        for x, kinds in enumerate((["sphere"], ["box", "box"], ["box", "box", "sphere"], ["box"] * 4))
        for z, kind in enumerate(kinds)
    )
    floor = '<geom type="plane" size="0 0 1"/>'
    model = Model.from_mjcf(f"<mujoco><worldbody>{floor}{heaps}</worldbody></mujoco>")
    rng = np.random.default_rng(0)
    qvel = rng.normal(0, 1, (40, model.nv))
    qpos = np.tile(model.qpos0, (40, 1))
    thrown = qpos, qvel, np.zeros((60, 40, 0))
    _, answered, *together = walk(model, options("coulomb", True), thrown, np.arange(40))
    assert answered.mean() > 0.3
    for env in (0, 19, 39):
        _, _, *alone = walk(model, options("coulomb", True), thrown, np.array([env]))
        for ours, theirs in zip(alone, together, strict=True):
            np.testing.assert_array_equal(ours[0], theirs[env])


def test_another_law_is_refused_by_name(ant):
    for law in LAWS:
        for solver in set(solver_names()) - set(LAWS[law]):
            with pytest.raises(ValueError, match=f"fallback '{solver}' does not solve .*'{MAIN[law]}' aims at"):
                Simulation(ant, solver=options(law, solver))


def test_what_carries_no_couples_is_refused_where_there_are_some():
    ball = """<mujoco><worldbody><geom type="plane" size="0 0 1" condim="6"/>
      <body pos="0 0 .1"><freejoint/><geom size=".1" condim="6"/></body></worldbody></mujoco>"""
    model = Model.from_mjcf(ball)
    for solver in ("bisection", "cond"):
        with pytest.raises(ValueError, match=f"fallback '{solver}' carries no torsional or rolling friction"):
            Simulation(model, solver=SolverOptions(fallback=solver))
    Simulation(model, solver=SolverOptions(fallback="admm")).step()
