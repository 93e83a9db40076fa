"""`SubAdmm(sweeps=8)` begins with sweeps over single contacts where few close: `pytest -s` prints what they save.

The residuals, bits and refusals of the sweeps themselves are tested in tests/solvers/sweeps_test.cpp.
"""

import mujoco
import numpy as np
import pytest
import stiction

FILES = {
    "quadruped": "envs/velocity/quadruped.xml",
    "ant": "envs/ant/ant.xml",
    "half_cheetah": "envs/half_cheetah/half_cheetah.xml",
}


def rollout(name, steps=60, **options):
    """(iterations, r_con / V of those with an impulse) of every step under random controls."""
    model = stiction.Model.from_mjcf(FILES[name])
    sim = stiction.Simulation(model, 128, solver=stiction.SolverOptions(**options))
    rng = np.random.default_rng(3)
    sim.ctrl[:] = model.mjmodel.key_ctrl[0] if model.mjmodel.nkey else 0
    home = sim.ctrl.copy()
    sim.step(100)
    iterations, residuals = [], []
    for step in range(steps):
        if step % 5 == 0:
            sim.ctrl[:] = home + rng.uniform(-0.3, 0.3, sim.ctrl.shape)
        sim.step()
        c = sim.certificate
        touches = c.num_contacts > 0
        iterations.append(np.array(c.iterations[touches]))
        residuals.append((c.r_con / c.scale)[touches])
    return np.concatenate(iterations), np.concatenate(residuals)


@pytest.mark.parametrize("name", FILES)
def test_they_take_fewer_and_come_as_near(name):
    sweeps, near = rollout(name, sweeps=8)
    passes, as_near = rollout(name)
    print(
        f"\n{name}: {np.median(sweeps):.0f} sweeps and passes for {np.median(passes):.0f} passes in the median, r_con/V"
        f" {np.median(near):.1e} for {np.median(as_near):.1e}, 99th percentile {np.percentile(near, 99):.1e} for"
        f" {np.percentile(as_near, 99):.1e}"
    )
    assert np.mean(sweeps) <= 0.85 * np.mean(passes)
    assert np.median(near) <= 1.2 * np.median(as_near)
    assert np.percentile(near, 99) <= 2e-5


@pytest.mark.parametrize("name", FILES)
def test_a_step_is_the_same_with_and_without(name):
    """Where Coulomb's law has one answer; from the same states, in double, to 1e-9 V."""
    model = stiction.Model.from_mjcf(FILES[name])
    one, other = (
        stiction.Simulation(model, 64, dtype="float64", solver=stiction.SolverOptions(tolerance=1e-10, sweeps=n))
        for n in (8, 0)
    )
    rng = np.random.default_rng(5)
    one.step(100)
    apart = []
    for _ in range(20):
        one.ctrl[:] = rng.uniform(-0.2, 0.2, one.ctrl.shape)
        one.step(3)
        other.set_state(one.get_state())
        one.step(), other.step()
        scale = np.maximum(one.certificate.scale, 1e-3)[:, None]
        apart.append(np.abs(one.qvel - other.qvel).max(1, keepdims=True) / scale)
    apart = np.concatenate(apart)
    print(f"\n{name}: velocities differ by {np.median(apart):.1e} V in the median, {apart.max():.1e} at most")
    assert np.median(apart) <= 1e-7 and np.percentile(apart, 99) <= 3e-4


def table():
    """On four balls, each on a stiff slide of its own, set down flat."""
    legs = "".join(
        f'<body pos="{x} {y} -0.2"><joint type="slide" axis="0 0 1" stiffness="1e6" damping="1e3"/>'
        '<geom type="sphere" size="0.02" mass="0.1"/></body>'
        for x in (-0.4, 0.4)
        for y in (-0.3, 0.3)
    )
    return (
        '<mujoco><option timestep="0.002" integrator="implicitfast"/><worldbody>'
        '<geom type="plane" size="9 9 1" friction="0.8"/><body pos="0 0 0.2201"><freejoint/>'
        f'<geom type="box" size="0.5 0.4 0.02" mass="10" contype="0" conaffinity="0"/>{legs}'
        "</body></worldbody></mujoco>"
    )


def test_feet_do_not_press_against_each_other():
    """Of twelve rows and ten dofs the law does not share friction out: passes do, evenly."""
    model = stiction.Model.from_mjcf(table())
    sim = stiction.Simulation(model, 1, solver=stiction.SolverOptions(sweeps=8))
    sim.step(500)
    f = np.asarray(sim.contact_problem().impulse).reshape(-1, 3)
    assert len(f) == 4 and np.hypot(f[:, 0], f[:, 1]).max() <= 1e-4 * f[:, 2].sum()


def stands(model, sweeps):
    """A quadruped's positions after half a second, in which all its feet come to the ground."""
    sim = stiction.Simulation(model, 4, solver=stiction.SolverOptions(sweeps=sweeps))
    sim.step(50)
    assert sim.certificate.num_contacts.max() > 0
    return sim.qpos.copy()


def test_joints_that_rub_and_contacts_with_couples_have_none():
    """They move by the bits they have without sweeps; the quadruped as it is does not."""
    spec = mujoco.MjSpec.from_file(FILES["quadruped"])
    for joint in spec.joints:
        if joint.type == mujoco.mjtJoint.mjJNT_HINGE:
            joint.frictionloss = 0.1
    plain = stiction.Model.from_mjcf(FILES["quadruped"])
    rubs, turns = stiction.Model.from_mjmodel(spec.compile()), plain.with_friction(torsional=0.01)
    for model, same in ((plain, False), (rubs, True), (turns, True)):
        assert (stands(model, 8) == stands(model, 0)).all() == same
