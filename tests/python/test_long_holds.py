"""Single precision keeps what moves by less than the last digit of where it is."""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from model_sources import MENAGERIE, data_file  # noqa: E402
from stiction import Model, Simulation, Status  # noqa: E402

HINGE = '<mujoco><option timestep="0.002" gravity="0 0 0"/><worldbody>{}</worldbody></mujoco>'
ARM = '<body pos="{} 0 0"><joint axis="0 1 0" type="{}"/><geom size=".1" mass="1" contype="0"/></body>'
FREE = '<body pos="4 5 6"><freejoint/><geom size=".1" mass="1" contype="0"/></body>'
BALL = '<body pos="2 0 0"><joint type="ball"/><geom size=".1" mass="1" contype="0"/></body>'


def slow_model():
    """A hinge, a slide, a free ball and one on a ball joint, none of which anything acts on."""
    return Model.from_mjcf(HINGE.format(ARM.format(0, "hinge") + ARM.format(1, "slide") + FREE + BALL))


def slow(envs=1, **options):
    sim = Simulation(slow_model(), envs, **options)
    sim.qpos[:, :2] = 1.5, -2.5
    sim.qvel[:, :5] = 1e-6, -2e-6, 1e-6, 2e-6, -3e-6
    sim.qvel[:, 5:8] = 2e-6, -1e-6, 3e-6
    sim.qvel[:, 8:11] = -1e-6, 3e-6, 2e-6
    return sim


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_moves_slowly_arrives(dtype):
    sim = slow(dtype=dtype)
    start, speed = sim.qpos[0, :5].astype(float), sim.qvel[0, :5].astype(float)
    for _ in range(100):
        sim.step(50)
    moved = sim.qpos[0, :5] - start
    lag = np.abs(start).max() * np.finfo(np.float32).eps  # what a number may be off by until it moves
    np.testing.assert_allclose(moved, speed * 5000 * 0.002, atol=1.1 * lag)


def turned(before, after):
    """By which vector a quaternion turned, about the body's axes, where that is little."""
    w, v = before[0], before[1:]
    return 2 * (w * after[1:] - after[0] * v - np.cross(v, after[1:]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_turns_slowly_arrives(dtype):
    sim = slow(dtype=dtype)
    rng = np.random.default_rng(0)
    for at in (5, 9):
        q = rng.normal(size=4)
        sim.qpos[:, at : at + 4] = q / np.linalg.norm(q)
    start = sim.qpos[0].astype(float)
    for _ in range(100):
        sim.step(50)
    end, spin = sim.qpos[0].astype(float), sim.qvel[0].astype(float)
    for at, dof in ((5, 5), (9, 8)):
        before, after = start[at : at + 4], end[at : at + 4]
        np.testing.assert_allclose(turned(before, after), spin[dof : dof + 3] * 5000 * 0.002, atol=3e-7)
        np.testing.assert_allclose(np.linalg.norm(after), 1, atol=3e-7)


SPIN = """<mujoco><option timestep="0.002" gravity="0 0 0"/><worldbody>
  <body pos="0 0 1"><freejoint/><geom size=".1" mass="1" contype="0" conaffinity="0"/></body>
  <body pos="1 0 1"><freejoint/><geom size=".1" mass="1" contype="0" conaffinity="0"/></body>
  <body pos="2 0 1"><joint type="ball"/><geom size=".1" mass="1" contype="0" conaffinity="0"/></body>
</worldbody></mujoco>"""
QUATERNIONS = (3, 10, 14)  # their places in qpos
SPINS = (3, 9, 12)


@pytest.mark.parametrize("angle", [0.3, 1, 2, 3, 3.2, 3.5, 4, 5, 6.2, 6.4, 20])
def test_what_turns_by_radians_a_step_is_turned_right(angle):
    """By more than half a turn the cosine of half of it is below 0, and single precision is as good as double."""
    ends = []
    for dtype in ("float32", "float64"):
        sim = Simulation(Model.from_mjcf(SPIN), 1, dtype=dtype)
        for dof in SPINS:
            sim.qvel[0, dof : dof + 3] = np.array([2, -1, 2]) / 3 * angle / sim.timestep
        sim.step(200)
        ends.append(sim.qpos[0].astype(float))
        assert not sim.status.any()
    for at in QUATERNIONS:
        single, double = (q[at : at + 4] for q in ends)
        np.testing.assert_allclose(np.linalg.norm(single), 1, atol=1e-6)
        assert np.linalg.norm(turned(double, single)) < 2e-3 * angle  # speeds round, too: 1e-5 in 200 steps


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [1e-3, 0.5, 1.1, 1.7, 2, 2.3, 10])
def test_a_quaternion_of_any_length_is_its_turn(length, dtype):
    q, spin = np.array([0.8, 0.2, -0.4, 0.4]), np.array([3, -2, 1])
    ends = []
    for scale in (1, length):
        sim = Simulation(Model.from_mjcf(SPIN), 1, dtype=dtype)
        for at, dof in zip(QUATERNIONS, SPINS, strict=True):
            sim.qpos[0, at : at + 4], sim.qvel[0, dof : dof + 3] = scale * q, spin
        sim.step()
        first = sim.qpos[0].astype(float)
        sim.step(200)
        ends.append((first, sim.qpos[0].astype(float)))
    for unit, scaled in zip(*ends, strict=True):
        for at in QUATERNIONS:
            np.testing.assert_allclose(scaled[at : at + 4], unit[at : at + 4], atol=2e-6)


def test_a_state_that_is_written_does_not_depend_on_what_was_there():
    sim, fresh = slow(2), slow(2)
    sim.step(1234)
    assert (sim.qpos != fresh.qpos).any()
    sim.qpos[0], sim.qvel[0] = fresh.qpos[0], fresh.qvel[0]
    sim.reset([1])
    sim.qpos[1], sim.qvel[1] = fresh.qpos[1], fresh.qvel[1]
    sim.step(200), fresh.step(200)
    np.testing.assert_array_equal(sim.qpos, fresh.qpos)


def test_a_snapshot_goes_on_to_the_bit():
    sim = slow(3)
    sim.step(777)
    state = sim.get_state()
    sim.step(500)
    ahead = sim.qpos.copy()
    sim.step(100)
    sim.set_state(state)
    for _ in range(50):
        sim.step(10)
    np.testing.assert_array_equal(sim.qpos, ahead)
    other = slow(3)
    other.set_state(state)
    other.step(500)
    np.testing.assert_array_equal(other.qpos, ahead)


# ---- a cube in an arm's grip

HELD = (0, 0.0418, 0, -2.0, 0, 2.2925, 0.7854)  # the arm's angles


def panda_with_cube():
    """Menagerie's Panda with a cube of 100 g between its fingertips, and the state of both."""
    spec = mujoco.MjSpec.from_file(str(data_file(MENAGERIE + "franka_emika_panda/mjx_panda.physics.xml")))
    cube = spec.worldbody.add_body(name="cube")
    cube.add_freejoint()
    cube.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=(0.025, 0.025, 0.025), mass=0.1)
    for key in list(spec.keys):
        spec.delete(key)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:9] = *HELD, 0.026, 0.026
    mujoco.mj_forward(model, data)
    grip = model.site("gripper").id
    data.qpos[9:12] = data.site_xpos[grip]
    mujoco.mju_mat2Quat(data.qpos[12:16], data.site_xmat[grip])
    return model, data.qpos.copy()


def cube_in_hand(sim, hand, cube):
    """Position in the hand's frame (m)."""
    sim.forward()
    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, sim.xquat[0, hand].astype(float))
    position = sim.xpos[0].astype(float)
    return axes.reshape(3, 3).T @ (position[cube] - position[hand])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_cube_in_an_arms_grip_does_not_creep(dtype):
    """Within a micrometre a second for a minute: arm angles move by less than half a last digit in a step."""
    mjmodel, qpos = panda_with_cube()
    hand, cube = mjmodel.body("hand").id, mjmodel.body("cube").id
    sim = Simulation(Model.from_mjmodel(mjmodel), dtype=dtype)
    sim.qpos[0], sim.ctrl[0] = qpos, [*HELD, 0]
    sim.step(1000)  # until it hangs still
    start = cube_in_hand(sim, hand, cube)
    for _ in range(60):
        sim.step(500)
    assert not (sim.status & ~int(Status.FALLBACK)).any()  # which improves what rests
    assert np.linalg.norm(cube_in_hand(sim, hand, cube) - start) <= 60e-6
