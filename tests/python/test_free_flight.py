"""What nothing acts on keeps its velocity for ever: steps solve for what changes (docs/theory.md, section 2)."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

from stiction import Model, Simulation  # noqa: E402

WORLD = '<mujoco><option timestep="{}" gravity="0 0 {}"/><worldbody>{}</worldbody></mujoco>'
BODY = '<body pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .05" pos="{} 0 0" mass="1.3"/>{}</body>'
ROD = '<geom type="capsule" size=".03 .2" pos=".2 .1 0" mass=".4"/>'
ARM = f'<body pos=".2 .1 0"><joint type="{{}}" axis="0 1 0"/>{ROD}</body>'
BODIES = {
    "body": BODY.format(0, ""),
    "body off its origin": BODY.format(0.3, ""),
    "body with an arm": BODY.format(0.1, ARM.format("hinge")),
    "body with a ball joint": BODY.format(0.1, ARM.format("ball")),
    "two bodies": BODY.format(0.3, "") + BODY.format(-0.2, ARM.format("hinge")).replace('pos="0 0 1"', 'pos="9 0 1"'),
    "slide": '<body pos="0 0 1"><joint type="slide" axis="1 2 3"/><geom size=".1" mass="1.3"/></body>',
}


def flown(bodies, dtype, integrator, steps=4000, h=0.005, gravity=0.0):
    """How far velocities are from those of the beginning, (nv,), of bodies that drift and do not turn."""
    sim = Simulation(Model.from_mjcf(WORLD.format(h, gravity, bodies)), 8, dtype=dtype, integrator=integrator)
    drifts = min(3, sim.model.nv)
    sim.qvel[:, :drifts] = np.random.default_rng(0).normal(0, 3, (8, drifts))
    start = sim.qvel.copy()
    sim.step(steps)
    assert (sim.status == 0).all()
    return np.abs(sim.qvel - start).max(axis=0)


@pytest.mark.parametrize("integrator", ["implicit", "euler"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BODIES)
def test_what_drifts_keeps_its_velocity_to_the_bit(name, dtype, integrator):
    np.testing.assert_array_equal(flown(BODIES[name], dtype, integrator), 0)


@pytest.mark.parametrize("integrator", ["implicit", "euler"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["body off its origin", "body with an arm", "body with a ball joint"])
def test_what_falls_does_not_begin_to_turn(name, dtype, integrator):
    changed = flown(BODIES[name], dtype, integrator, steps=2000, gravity=-9.81)
    np.testing.assert_array_equal(np.delete(changed, 2), 0)
    assert changed[2] == pytest.approx(98.1, rel=1e-4)


@pytest.mark.parametrize("armature", [0, 2])
@pytest.mark.parametrize("damping", [0, 3])
@pytest.mark.parametrize("integrator", ["implicit", "euler", "implicit_euler"])
def test_a_free_joint_that_resists_falls_as_its_equations_say(integrator, damping, armature):
    joint = f'<joint type="free" damping="{damping}" armature="{armature}"/>'
    body = f'<body pos="0 0 1">{joint}<geom type="box" size=".1 .2 .05" mass="1.3"/></body>'
    for bodies in (body, body + body.replace('pos="0 0 1"', 'pos="9 0 1"')):
        sim = Simulation(Model.from_mjcf(WORLD.format(0.005, -9.81, bodies)), 1, dtype="float64", integrator=integrator)
        v = 0.0
        for _ in range(200):
            sim.step()
            v = ((1.3 + armature) * v - 1.3 * 9.81 * 0.005) / (1.3 + armature + damping * 0.005)
        np.testing.assert_allclose(sim.qvel[0, 2::6], v, rtol=1e-9)
