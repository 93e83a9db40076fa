"""Forces told from an acceleration make the step do it, whatever touches."""

import numpy as np
import pytest
from model_sources import ROOT
from scenes import GRAVITY, body, box, scene, sliding_box, sphere
from stiction import Model, Simulation, SolverOptions

TIGHT = SolverOptions(name="canal", iterations=500, tolerance=1e-13)
ANT = (ROOT / "envs/ant/ant.xml").read_text()


def simulation(xml, num_envs=1, **options):
    return Simulation(Model.from_mjcf(xml), num_envs, dtype="float64", **({"solver": TIGHT} | options))


def step_with(sim, found):
    sim.qfrc_applied = found.qfrc
    sim.step(1)


def test_without_contact_it_is_that_of_the_smooth_dynamics():
    sim = simulation(ANT, 4)
    rng = np.random.default_rng(0)
    sim.qpos[:, 2] = 5
    sim.qpos[:, 7:] = np.deg2rad([0, 50, 0, -50, 0, -50, 0, 50])  # between the limits
    sim.qvel = rng.normal(0, 2, sim.qvel.shape)
    sim.ctrl = rng.uniform(-1, 1, sim.ctrl.shape)
    qacc = rng.normal(0, 10, sim.qvel.shape)
    found, wanted = sim.inverse_dynamics(qacc), sim.qvel + sim.timestep * qacc
    assert all(len(impulse) == 0 for impulse in found.impulse) and found.residual.max() < 1e-11
    step_with(sim, found)
    np.testing.assert_allclose(sim.qvel, wanted, atol=1e-10)


@pytest.mark.parametrize("per_env", [(), ("body_mass",)])
def test_a_free_body_ends_as_asked_wherever_its_centre_of_mass_is(per_env):
    xml = """<mujoco><option timestep=".01"/><worldbody><body quat=".5 .1 .7 .3"><freejoint/>
      <geom type="box" size=".1 .2 .3" pos=".3 .1 0" mass="2"/>
      <body pos=".1 0 .3"><joint armature=".1"/><geom size=".1" pos="0 .2 0" mass=".5"/></body></body>
      <body pos="3 0 0"><freejoint/><geom size=".1" pos="0 0 .2" mass="1"/></body></worldbody></mujoco>"""
    sim = simulation(xml, 4, per_env=per_env)
    rng = np.random.default_rng(0)
    if per_env:
        sim.params.body_mass[:] *= rng.uniform(0.5, 2, sim.params.body_mass.shape)
    sim.qvel = rng.normal(0, 5, sim.qvel.shape)
    for _ in range(3):
        qacc = rng.normal(0, 10, sim.qvel.shape)
        found, wanted = sim.inverse_dynamics(qacc), sim.qvel + sim.timestep * qacc
        step_with(sim, found)
        np.testing.assert_allclose(sim.qvel, wanted, atol=1e-10)


def test_what_compliance_bears_needs_no_force():
    """A box at rest on its four near-rigid corners: they bear its weight."""
    sim = simulation(sliding_box(mass=2.0))
    sim.step(2000)
    found = sim.inverse_dynamics(np.zeros((1, 6)))
    assert found.impulse[0].shape == (4, 3)
    np.testing.assert_allclose(found.impulse[0][:, 2].sum(), 2 * GRAVITY * sim.timestep, rtol=1e-4)
    np.testing.assert_allclose(found.qfrc, 0, atol=2e-3)


@pytest.mark.parametrize("acceleration", [-4.905, 0.0, 3.0])
def test_sliding_is_given_back_to_the_last_digits(acceleration):
    """A box that slides is decelerated by mu g: what is missing is applied, and the step does as asked."""
    sim = simulation(sliding_box(mu=0.5, mass=2.0))
    sim.qvel[:, 0] = 3
    sim.step(300)
    before = sim.qvel.copy()
    qacc = np.array([[acceleration, 0, 0, 0, 0, 0]])
    qacc[0, 1:] = -before[0, 1:] / sim.timestep  # of what else it does, nothing
    found = sim.inverse_dynamics(qacc)
    assert found.residual[0] < 1e-9
    normal = found.impulse[0][:, 2].sum() / sim.timestep
    np.testing.assert_allclose(np.linalg.norm(found.impulse[0][:, :2].sum(axis=0)), 0.5 * normal * sim.timestep)
    np.testing.assert_allclose(found.qfrc[0, 0], 2 * acceleration + 0.5 * normal, rtol=1e-9, atol=1e-9)
    step_with(sim, found)
    np.testing.assert_allclose(sim.qvel, before + sim.timestep * qacc, atol=1e-10)
    impulse = sim.contact_problem(0).impulse.reshape(-1, 3)
    np.testing.assert_allclose(impulse[:, 2].sum(), found.impulse[0][:, 2].sum(), rtol=1e-7)


def test_a_compliant_contact_says_both_velocity_and_impulse():
    model = Model.from_mjcf(scene(body("ball", (0, 0, 0.05), sphere(0.05), 1.0, mu=0.5), mu=0.5))
    model = model.with_material(1e4, 0.01)
    sim = Simulation(model, 8, dtype="float64", solver=TIGHT)
    sim.qpos[:, 2] = 0.05 - np.linspace(1e-4, 2e-3, 8)
    rng = np.random.default_rng(1)
    sim.qvel = rng.normal(0, 0.2, sim.qvel.shape)
    sim.qvel[:, 2] = -0.05
    qacc = rng.normal(0, 5, sim.qvel.shape)
    found, wanted = sim.inverse_dynamics(qacc), sim.qvel + sim.timestep * qacc
    step_with(sim, found)
    np.testing.assert_allclose(sim.qvel, wanted, atol=1e-10)
    for env in range(8):
        np.testing.assert_allclose(sim.contact_problem(env).impulse.reshape(-1, 3), found.impulse[env], atol=1e-9)
    assert max(impulse[:, 2].max() for impulse in found.impulse) > 1e-3


def test_a_rigid_contact_bears_what_the_guess_says():
    """The bare rigid law: a velocity does not say a normal force, the last step's impulses do."""
    rigid = SolverOptions(name="canal", iterations=500, tolerance=1e-13, penetration_allowance=0)
    sim = simulation(scene(body("ball", (0, 0, 0.05), sphere(0.05), 1.0), mu=0.5), solver=rigid)
    sim.step(5)
    rest = np.zeros((1, 6))
    none, last = sim.inverse_dynamics(rest), sim.inverse_dynamics(rest, guess="last")
    np.testing.assert_allclose(none.qfrc[0, 2], GRAVITY, rtol=1e-9)
    np.testing.assert_allclose(last.qfrc[0, 2], 0, atol=1e-6)
    np.testing.assert_allclose(last.impulse[0][0, 2], GRAVITY * sim.timestep, rtol=1e-6)


def test_a_guess_of_ones_own_says_who_bears_how_much():
    """A box on four corners: one diagonal bears it, or all bear half of its weight and hold against a push."""
    rigid = SolverOptions(name="canal", iterations=500, tolerance=1e-13, penetration_allowance=0)
    sim = simulation(scene(body("box", (0, 0, 0.05), box(0.05), 2.0), mu=0.5), 2, solver=rigid)
    sim.step(5)
    guess = sim.inverse_dynamics(rest := np.zeros((2, 6)))
    weight = 2 * GRAVITY * sim.timestep
    a, b = (np.flatnonzero(np.isclose(np.abs(sim.contact.pos[0, :4].sum(1)), size, atol=1e-3)) for size in (0.1, 0.0))
    assert len(a) == len(b) == 2
    guess.impulse[0][a, 2] = weight / 2
    guess.impulse[1][:, 2], guess.impulse[1][:, 0] = weight / 8, 0.1 * weight / 8
    found = sim.inverse_dynamics(rest, guess)
    np.testing.assert_allclose(found.impulse, guess.impulse, atol=1e-12)
    np.testing.assert_allclose(found.qfrc[0], 0, atol=1e-6)
    np.testing.assert_allclose(found.qfrc[1, 2], GRAVITY, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found.qfrc[1, :2]), 0.1 * GRAVITY, rtol=1e-6)
    assert found.residual.max() <= 1e-9
    guess.impulse[0] = guess.impulse[0][:3]
    with pytest.raises(ValueError, match="guess has 9 impulses of environment 0, expected 12"):
        sim.inverse_dynamics(rest, guess)
    guess.impulse[0] = np.full((4, 3), np.nan)
    with pytest.raises(ValueError, match=r"guess.impulse\[0\] has entries that are not finite"):
        sim.inverse_dynamics(rest, guess)
    guess.impulse.pop()
    with pytest.raises(ValueError, match="guess.impulse is of 1 environments, expected 2"):
        sim.inverse_dynamics(rest, guess)


def test_what_passes_through_a_rigid_contact_is_told():
    rigid = SolverOptions(name="canal", penetration_allowance=0)
    sim = simulation(scene(body("ball", (0, 0, 0.05), sphere(0.05), 1.0), mu=0.5), solver=rigid)
    assert sim.inverse_dynamics(np.array([[0.0, 0, -1000, 0, 0, 0]])).residual[0] > 0.1


def test_an_impact_that_it_does_not_find_stays_bounded():
    """How stiff a contact is depends on how fast the free motion closes it, which depends on the forces sought."""
    solver = SolverOptions(name="canal", iterations=1000, tolerance=1e-11)
    sim = simulation(scene(body("box", (0, 0, 0.3), box(0.05), 2.0), mu=0.6, timestep=0.002), solver=solver)
    sim.qvel[0, :2] = 0.5, 0.2
    sim.step(105)
    for _ in range(20):
        state, before = sim.get_state(), sim.qvel.copy()
        sim.step(1)
        qacc, speed = (sim.qvel - before) / sim.timestep, np.abs(before).max()
        sim.set_state(state)
        found = sim.inverse_dynamics(qacc)
        assert np.abs(found.qfrc).max() <= 2.0 * speed / sim.timestep
        assert found.residual[0] < 0.5
        sim.step(1)


def test_it_changes_nothing():
    sim, other = simulation(ANT, 2), simulation(ANT, 2)
    for s in (sim, other):
        s.qpos[:, 2] = 0.3
        s.step(50)
        s.qfrc_applied[:] = 0.1
    sim.inverse_dynamics(np.ones((2, sim.model.nv)))
    sim.step(20), other.step(20)
    np.testing.assert_array_equal(sim.qpos, other.qpos)
    np.testing.assert_array_equal(sim.qfrc_applied, other.qfrc_applied)


def test_what_is_asked_wrongly_is_refused():
    sim = simulation(ANT, 2)
    nv = sim.model.nv
    for qacc, error in (
        (np.zeros(nv), "shape"),
        (np.full((2, nv), np.nan), "finite"),
    ):
        with pytest.raises(ValueError, match=error):
            sim.inverse_dynamics(qacc)
    for solver in ("sap", "bisection"):
        other = Simulation(sim.model, 2, dtype="float64", solver=solver)
        with pytest.raises(ValueError, match=f"Coulomb's law, at which solver '{solver}' does not aim"):
            other.inverse_dynamics(np.zeros((2, nv)))
    with pytest.raises(ValueError, match="guess"):
        sim.inverse_dynamics(np.zeros((2, nv)), guess="first")
