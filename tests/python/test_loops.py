"""Equalities of bodies and tendons: their rows against MuJoCo and the oracle, loops that stay closed, mocap bodies."""

import golden
import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from stiction import Model, Simulation, Status, UnsupportedModelError, _core, solver_names  # noqa: E402
from stiction.solver_options import SolverOptions  # noqa: E402
from test_against_mujoco import error, put, quat_error, random_state, steps_of_the_oracle  # noqa: E402

UNTURNED, ITSELF = 4, 7  # equalities of LOOPS: a weld with torquescale 0, and one of a body with itself
ERP, EQUALITY = 0.2, int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)

#: Loops within a floating robot, between it and a free body, with the world and with what is fixed to it.
LOOPS = """
<mujoco><compiler autolimits="true"/>
<option timestep="0.002" gravity="1 -2 -9" jacobian="dense"><flag contact="disable"/></option><worldbody>
  <body name="pelvis" pos="0 0 1" euler="10 20 30"><freejoint/><geom size=".1" mass="2" pos=".02 .01 0"/>
    <site name="s0" pos=".1 .2 .3" euler="30 20 10"/>
    <body name="thigh" pos=".3 .1 0" euler="20 30 40"><joint name="hip" axis="0 1 1" pos=".1 0 0"/>
      <geom type="box" size=".1 .05 .2" mass="1.2" euler="10 20 30"/>
      <body name="shin" pos="0 .2 .3" euler="0 10 0"><joint type="ball" pos="0 .1 0"/>
        <geom type="capsule" size=".05 .2" mass=".7"/>
        <body name="part" pos=".1 .2 0" euler="5 6 70"><geom size=".05" mass=".3"/></body></body></body>
    <body name="rod" pos="-.3 0 0"><joint type="ball"/><joint name="knee" type="slide" axis="1 0 1"/>
      <geom type="box" size=".1 .02 .02" mass=".5"/></body></body>
  <body name="cube" pos="1 0 0" euler="0 50 0"><freejoint/><geom type="box" size=".1 .05 .2" mass=".8" pos=".03 0 .02"/>
    <site name="s1" pos="0 .1 0" euler="0 0 40"/></body>
  <body name="lamp" pos="2 0 1"><joint name="swing" axis="1 0 0"/><geom size=".1" mass=".6" pos="0 .05 -.3"/>
    <body name="bulb" pos="0 0 -.3"><joint name="twist" axis="0 1 1"/>
      <geom size=".1" mass=".4" pos="0 .2 .1"/></body></body>
  <body name="post" pos="1 1 1" euler="40 50 60"/>
</worldbody>
<tendon>
  <fixed name="t0"><joint joint="hip" coef="2"/><joint joint="knee" coef="-1.5"/></fixed>
  <fixed name="t1"><joint joint="hip" coef=".3"/><joint joint="swing" coef="1"/></fixed></tendon>
<equality>
  <connect body1="rod" body2="part" anchor=".1 .2 .3"/>
  <weld body1="cube" body2="part" torquescale=".7" relpose=".1 .2 .3 .9 .1 .2 .3" anchor=".3 .2 .1"/>
  <connect body1="lamp" anchor="0 0 .4"/>
  <weld body1="post" body2="cube" torquescale="2"/>
  <weld body1="bulb" torquescale="0"/>
  <connect site1="s0" site2="s1"/>
  <connect body1="shin" body2="cube" anchor="0 0 0" active="false"/>
  <connect body1="shin" body2="part" anchor="0 0 0"/>
  <tendon tendon1="t0" tendon2="t1" polycoef=".1 .8 .3 .2 .1"/>
  <tendon tendon1="t1" polycoef=".2 0 0 0 0"/>
  <joint joint1="swing" joint2="twist" polycoef=".1 2 .3 0 0"/>
</equality></mujoco>"""


def simulation(m, num_envs=1, integrator="euler", **options):
    return Simulation(Model.from_mjmodel(m), num_envs, dtype="float64", integrator=integrator, num_threads=1, **options)


def of_mujoco(m, d):
    """J and the violation of the equalities, without rows that hold nothing."""
    n = d.nefc
    ids = np.where(np.asarray(d.efc_type) == EQUALITY, d.efc_id, -1)[:n]
    J, gap = np.asarray(d.efc_J).reshape(-1, m.nv)[:n], np.asarray(d.efc_pos)[:n]
    first = np.argmax(ids == UNTURNED)
    holds = (ids >= 0) & (ids != ITSELF) & ~((ids == UNTURNED) & (np.arange(n) >= first + 3))
    return J[holds], gap[holds]


def with_one_sign(J, gap):
    """A weld's rotation is that of either sign of a quaternion."""
    sign = np.where(np.take_along_axis(J, np.abs(J).argmax(axis=1)[:, None], 1) < 0, -1.0, 1.0)[:, 0]
    return J * sign[:, None], gap * sign


def lowered(turn, scale):
    """What a step closes of a turn: its rows see the cosine of half the angle of a velocity about its axis."""
    return turn * np.sqrt(1 - np.sum((turn / scale) ** 2))


def test_rows_match_mujoco():
    m = mujoco.MjModel.from_xml_string(LOOPS)
    h = m.opt.timestep
    sim = simulation(m, solver=SolverOptions(max_recovery=1e9))
    signs = set()
    for seed in range(20):
        d = random_state(m, seed, spread=1.5)
        put(sim, d)
        sim.step()
        problem = sim.contact_problem(0)
        assert problem.J_row.shape == (3 + 6 + 3 + 6 + 3 + 3 + 3, m.nv)
        got = with_one_sign(problem.J_row, problem.e_row * h / ERP)
        J, gap = of_mujoco(m, d)
        gap[6:9], gap[15:18] = lowered(gap[6:9], 0.7), lowered(gap[15:18], 2)
        expected = with_one_sign(J, gap)
        assert error(got[0], expected[0]) <= 1e-12 and error(got[1], expected[1]) <= 1e-12
        assert np.all(problem.lower <= -1e30) and np.all(problem.upper >= 1e30)
        signs.update(np.sign(np.sum(problem.J_row[6:9] * J[6:9], axis=1)))
    assert signs == {-1, 1}


def test_a_weld_of_sites_is_mujocos_in_the_axes_of_the_body():
    text = LOOPS.replace('<connect site1="s0" site2="s1"/>', '<weld site1="s0" site2="s1" torquescale=".5"/>')
    m = mujoco.MjModel.from_xml_string(text)
    sim = simulation(m, solver=SolverOptions(max_recovery=1e9))
    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, m.site_quat[1])
    axes = axes.reshape(3, 3)
    for seed in range(5):
        d = random_state(m, seed)
        put(sim, d)
        sim.step()
        problem = sim.contact_problem(0)
        J, gap = of_mujoco(m, d)
        point, turn = slice(21, 24), slice(24, 27)
        gap[turn] = lowered(gap[turn], 0.5)
        assert error(problem.J_row[point], J[point]) <= 1e-12
        assert min(error(problem.J_row[turn], s * axes @ J[turn]) for s in (-1, 1)) <= 1e-12
        gap_here = problem.e_row * m.opt.timestep / ERP
        assert error(gap_here[point], gap[point]) <= 1e-12
        assert min(error(gap_here[turn], s * axes @ gap[turn]) for s in (-1, 1)) <= 1e-12


def test_rows_and_steps_match_the_oracle():
    reference = pytest.importorskip("stiction_reference")
    m = mujoco.MjModel.from_xml_string(LOOPS)

    def assembled(names, seeds, tolerance):
        for seed in range(seeds):
            d = random_state(m, seed)
            put(sim, d)
            sim.step()
            loads = {"qfrc_applied": d.qfrc_applied, "xfrc_applied": d.xfrc_applied}
            expected = reference.assemble(oracle, d.qpos, d.qvel, d.ctrl, {}, "implicit", m.opt.timestep, **loads)
            for name in names:
                assert error(getattr(sim.contact_problem(0), name), expected[name], floor=0) <= tolerance, (name, seed)

    oracle = reference.Model(Model.from_mjmodel(m).to_arrays())
    sim = simulation(m, integrator="implicit")
    assembled(("J_row", "R_row"), 10, 1e-10)
    # All of them ask for more than the dofs can do, where no bend settles: those that go together.
    m.eq_active0[[2, 3, 4, 5]] = 0
    oracle = reference.Model(Model.from_mjmodel(m).to_arrays())
    sim = simulation(m, integrator="implicit", solver=SolverOptions(tolerance=1e-12, iterations=20000))
    assembled(("b", "J_row", "e_row", "R_row"), 10, 1e-8)
    for seed in range(4):
        for q, v in steps_of_the_oracle(oracle, sim, random_state(m, seed)):
            assert sim.contact_problem(0).J_row.shape[0] == 12
            assert error(sim.qpos[0], q) <= 1e-9 and error(sim.qvel[0], v) <= 1e-7


#: A crank, a coupler and a rocker: a planar loop, held in three directions where it needs two.
FOUR_BAR = """
<mujoco><option timestep="{h}" gravity="0 0 -9.81" integrator="Euler"/>
<default><geom type="capsule" size=".01" contype="0" conaffinity="0"/>
  <equality solref="{solref} 1" solimp=".9999 .9999 .001"/></default>
<worldbody><body name="frame" pos="0 0 1" euler="{tilt}">
  <body name="crank"><joint name="crank" axis="0 1 0"/><geom fromto="0 0 0 0 0 .1" mass=".2"/>
    <body name="coupler" pos="0 0 .1"><joint axis="0 1 0"/><geom fromto="0 0 0 .3 0 .05" mass=".3"/></body></body>
  <body name="rocker" pos=".3 0 0"><joint axis="0 1 0"/><geom fromto="0 0 0 0 0 .15" mass=".25"/></body></body>
</worldbody>
<equality><connect body1="coupler" body2="rocker" anchor=".3 0 .05"/></equality>
<actuator><motor joint="crank" ctrlrange="-1 1"/></actuator></mujoco>"""
#: Two halves of a bar, and the bar on a hinge: welded, they swing as one.
WELDED = """
<mujoco><option timestep="{h}" gravity="0 0 -9.81" integrator="Euler"/>
<default><geom type="box" size=".05 .02 .02" contype="0" conaffinity="0"/>
  <equality solref="{solref} 1" solimp=".9999 .9999 .001"/></default>
<worldbody>
  <body name="first" pos="0 0 1" euler="0 0 {tilt}"><joint axis="0 1 0" pos="-.05 0 0"/><geom mass=".2"/></body>
  <body name="second" pos=".1 0 1" euler="0 0 {tilt}"><freejoint/><geom mass=".3"/></body></worldbody>
<equality><weld body1="first" body2="second"/></equality></mujoco>"""


@pytest.mark.parametrize("text", [FOUR_BAR, WELDED], ids=["four-bar linkage", "welded pair"])
def test_a_second_of_motion_matches_mujoco(text):
    """MuJoCo's equality is a stiff spring: at 0.1 ms, both are near the loop that never opens."""
    h = 1e-4
    m = mujoco.MjModel.from_xml_string(text.format(h=h, solref=2 * h, tilt="0 0 0" if text is FOUR_BAR else "0"))
    sim, d = simulation(m, solver=SolverOptions(tolerance=1e-10, iterations=1000)), mujoco.MjData(m)
    d.qvel[0] = 1.0
    if text is FOUR_BAR:
        d.qvel[:] = [1, -1, 1 / 1.5]
    put(sim, d)
    start = d.qpos.copy()
    for _ in range(10):
        sim.step(1000)
        mujoco.mj_step(m, d, 1000)
        sim.forward()
        mujoco.mj_kinematics(m, d)
        assert np.abs(sim.xpos[0] - d.xpos).max() <= 1e-3 and quat_error(sim.xquat[0], d.xquat) <= 1e-3
        assert np.abs(loop_gap(Model.from_mjmodel(m), sim)).max() <= 1e-6
    assert np.abs(sim.qpos[0] - start).max() > 0.4


def loop_gap(model, sim):
    """Distances of the two points of every connect and weld, (num_envs, neq), m."""
    x, quat = sim.xpos.astype(np.float64), sim.xquat.astype(np.float64)
    turned = np.zeros(3)
    gaps = np.zeros((len(x), model.neq))
    for e in np.flatnonzero((model.eq_type <= 1) & (model.eq_active != 0)):
        points = model.eq_data[e, :6].reshape(2, 3)
        points = points[::-1] if model.eq_type[e] == 1 else points
        for env in range(len(x)):
            at = []
            for body, point in zip((model.eq_obj1id[e], model.eq_obj2id[e]), points, strict=True):
                mujoco.mju_rotVecQuat(turned, point, quat[env, body])
                at.append(x[env, body] + turned)
            gaps[env, e] = np.linalg.norm(at[0] - at[1])
    return gaps


def finger(side, sign):
    """A driver and a coupler on one side, a spring link and a finger tip on the other, closed by a connect."""
    return f"""
  <body name="{side}_driver" pos="0 {0.03 * sign} .05" euler="0 0 {0 if sign > 0 else 180}">
    <joint name="{side}_driver" axis="1 0 0" range="0 .8" armature=".005" damping=".1"/>
    <inertial mass=".009" pos="0 .018 .001" diaginertia="2e-6 2e-6 3e-7"/>
    <body name="{side}_coupler" pos="0 .031 -.004"><joint axis="1 0 0" range="-1.57 0"/>
      <inertial mass=".014" pos="0 .003 .023" diaginertia="4e-6 3.5e-6 9e-7"/></body></body>
  <body name="{side}_link" pos="0 {0.013 * sign} .06" euler="0 0 {0 if sign > 0 else 180}">
    <joint axis="1 0 0" range="-.3 .8" stiffness=".05" springref="2.6" damping=".00125"/>
    <inertial mass=".022" pos="0 .018 .021" diaginertia="9e-6 7e-6 3e-6"/>
    <body name="{side}_tip" pos="0 .055 .037"><joint axis="1 0 0" pos="0 -.018 .006" range="-.87 .87"/>
      <inertial mass=".0125" pos="0 -.011 .012" diaginertia="3e-6 2.5e-6 6e-7"/>
      <geom type="box" size=".011 .004 .02" pos="0 -.02 .035" mass=".0035" friction=".7"/></body></body>"""


#: The layout of the common two-finger adaptive gripper: two four-bar linkages on one motor, in radians.
GRIPPER = f"""
<mujoco><compiler angle="radian" autolimits="true"/><option timestep=".002"/><worldbody>
  <body name="base" pos="0 0 .1">{finger("right", 1)}{finger("left", -1).replace("180", "3.141592653589793")}</body>
  <body name="ball" pos="0 0 .215"><freejoint/><geom size=".015" mass=".01"/></body>
</worldbody>
<tendon><fixed name="split">
  <joint joint="right_driver" coef=".5"/><joint joint="left_driver" coef=".5"/></fixed></tendon>
<equality>
  <connect body1="right_tip" body2="right_coupler" anchor="0 0 0"/>
  <connect body1="left_tip" body2="left_coupler" anchor="0 0 0"/>
  <joint joint1="right_driver" joint2="left_driver" polycoef="0 1 0 0 0"/></equality>
<actuator><general tendon="split" biastype="affine" forcerange="-5 5" ctrlrange="0 255" gainprm=".3137255"
  biasprm="0 -100 -10"/></actuator></mujoco>"""


#: By a law that carries loops.
SOLVERS = {name: SolverOptions.of(name) for name in solver_names()} | {
    "bisection": SolverOptions(name="bisection", law="coulomb")
}


def held_shut(sim, seconds, seed=1):
    """Random controls, anew every 0.1 s; yields the loop gaps every 20 ms."""
    rng = np.random.default_rng(seed)
    low, high = sim.model.actuator_ctrlrange.T
    for _ in range(int(seconds / 0.1)):
        sim.ctrl[:] = rng.uniform(low, high, sim.ctrl.shape)
        for _ in range(5):
            sim.step(round(0.02 / sim.timestep))
            yield loop_gap(sim.model, sim)


@pytest.mark.parametrize(("dtype", "seconds"), [("float64", 10), ("float32", 60)])
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=list(SOLVERS))
def test_a_gripper_of_four_bar_linkages_stays_shut(solver, dtype, seconds):
    sim = Simulation(Model.from_mjcf(GRIPPER), 2, dtype=dtype, solver=solver, num_threads=1)
    reached, worst = [], 0
    for gap in held_shut(sim, seconds):
        worst = max(worst, gap.max())
        reached.append(sim.qpos[:, 0].copy())
    assert worst <= 1e-5
    assert np.ptp(reached) > 0.5, "it opens and shuts"
    assert not np.any(sim.status & ~Status.FALLBACK)


@pytest.mark.parametrize("text", ["GRIPPER", "FOUR_BAR", "MOCAP"])
def test_maximum_dissipation_refuses_loops(text):
    """Such contacts need have no solution by it: a robot on closed loops fell within a minute."""
    model = Model.from_mjcf(globals()[text].format(h=0.002, solref=0.02, tilt="0 0 0"))
    with pytest.raises(
        ValueError, match="'bisection' by maximum dissipation carries no connect or weld.*law='coulomb'"
    ):
        Simulation(model, solver="bisection")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_loop_in_any_plane_closes_again(dtype):
    """Out of its plane a planar loop is held twice; a gap goes, and nothing is pushed along what cannot move."""
    model = Model.from_mjcf(FOUR_BAR.format(h=0.002, solref=0.02, tilt="20 30 40"))
    sim = Simulation(model, 3, dtype=dtype, num_threads=1)
    sim.qpos[:] += np.linspace(-0.1, 0.1, 9).reshape(3, 3)
    sim.forward()
    assert np.all(loop_gap(model, sim)[[0, 2]] > 1e-3)
    for _ in range(100):
        sim.step()
        sim.qvel[:] = 0
    assert loop_gap(model, sim).max() <= 1e-6
    sim.step()
    assert not np.any(sim.status)
    push = np.abs(np.array([sim.contact_problem(env).row_impulse for env in range(3)])) / sim.timestep
    assert push.max() <= 20  # N; its weight is 7 N


MOCAP = """
<mujoco><compiler angle="radian"/><option timestep="0.002"/><worldbody>
  <body name="target" mocap="true" pos="0 .1 1" quat="0 1 0 0"><geom size=".02" contype="0" conaffinity="0"/>
    <body name="ring" pos="0 0 .1" euler="1 0 0"/><site name="mark" pos=".1 .2 .3"/></body>
  <body name="hand" pos="0 0 1"><freejoint/><geom type="box" size=".05 .05 .02" mass=".4"/>
    <body pos=".1 0 0"><joint name="finger" axis="0 1 0" damping=".01"/>
      <geom type="capsule" fromto="0 0 0 .1 0 0" size=".01" mass=".1"/></body></body></worldbody>
<equality><weld body1="target" body2="hand" relpose="0 0 0 1 0 0 0"/></equality>
<keyframe><key mpos="1 2 3" mquat="0 0 1 0"/></keyframe></mujoco>"""
TARGET, RING, HAND = 1, 2, 3


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=list(SOLVERS))
def test_what_is_welded_to_a_mocap_body_follows_it(solver, dtype):
    model = Model.from_mjcf(MOCAP)
    sim = Simulation(model, 2, dtype=dtype, solver=solver, num_threads=1)
    np.testing.assert_allclose(sim.mocap_pos, [[[0, 0.1, 1]]] * 2, atol=1e-7)
    np.testing.assert_array_equal(sim.mocap_quat, [[[0, 1, 0, 0]]] * 2)
    sim.mocap_pos[:], sim.mocap_quat[:] = [0, 0, 1], [1, 0, 0, 0]
    lag = 0
    for step in range(1500):
        t = step * sim.timestep * np.array([1, 1.5])
        sim.mocap_pos[:, 0] = np.stack([0.2 * np.sin(2 * t), 0.1 * np.cos(t) - 0.1, 1 + 0.1 * np.sin(3 * t)], axis=1)
        half = 0.4 * np.sin(t)
        sim.mocap_quat[:, 0] = np.stack([np.cos(half), 0 * t, 0.6 * np.sin(half), 0.8 * np.sin(half)], axis=1)
        sim.step()
        lag = max(lag, np.abs(sim.xpos[:, HAND] - sim.xpos[:, TARGET]).max())
    # A fifth of the way in a step: at 0.7 m/s, five steps behind.
    assert lag <= 5 * sim.timestep * 0.7
    sim.step(200)
    assert np.abs(sim.xpos[:, HAND] - sim.mocap_pos[:, 0]).max() <= 1e-6
    assert quat_error(sim.xquat[:, HAND], sim.mocap_quat[:, 0]) <= 1e-6
    assert not np.any(sim.status)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("degrees", [90, 179, 180])
def test_a_weld_turns_back_at_a_bounded_speed_from_any_angle(degrees, dtype):
    sim = Simulation(Model.from_mjcf(MOCAP), 1, dtype=dtype, num_threads=1)
    half = np.deg2rad(degrees) / 2
    sim.mocap_pos[:], sim.mocap_quat[:] = [0, 0, 1], [np.cos(half), 0.6 * np.sin(half), 0.8 * np.sin(half), 0]
    fastest = 0
    for _ in range(1500):
        sim.step()
        fastest = max(fastest, np.linalg.norm(sim.qvel[0, 3:6]))
    # max_recovery is 1 m/s, at a torquescale of 1 m 2 rad/s; for a moment more where the rows hardly see the turn.
    assert fastest <= 3
    assert not np.any(sim.status & Status.NON_FINITE)
    if degrees < 180:
        assert quat_error(sim.xquat[:, HAND], sim.mocap_quat[:, 0]) <= 1e-5


def test_poses_of_mocap_bodies_and_what_is_fixed_to_them_match_mujoco():
    model = Model.from_mjcf(MOCAP)
    m, d = model.mjmodel, mujoco.MjData(model.mjmodel)
    sim = simulation(m, num_envs=2, solver=SolverOptions(max_recovery=1e9))
    rng = np.random.default_rng(0)
    for _ in range(5):
        d.mocap_pos[:], d.mocap_quat[:] = rng.standard_normal((1, 3)), rng.standard_normal((1, 4))
        mujoco.mj_forward(m, d)
        sim.mocap_pos[1], sim.mocap_quat[1] = d.mocap_pos, d.mocap_quat
        put(sim, d, env=1)
        sim.forward()
        assert error(sim.xpos[1], d.xpos) <= 1e-12 and error(sim.site_xpos[1], d.site_xpos) <= 1e-12
        assert quat_error(sim.xquat[1], d.xquat) <= 1e-12
        sim.step()
        problem = sim.contact_problem(1)
        J, gap = np.asarray(d.efc_J).reshape(-1, m.nv)[:6], np.asarray(d.efc_pos)[:6]
        gap[3:] = lowered(gap[3:], 1)
        got = with_one_sign(problem.J_row, problem.e_row)
        J, gap = with_one_sign(J, gap)
        assert error(got[0], J) <= 1e-12
        assert error(got[1], ERP * gap / m.opt.timestep) <= 1e-10


def test_mocap_poses_are_part_of_the_state():
    model = Model.from_mjcf(MOCAP)
    sim = Simulation(model, 3, num_threads=1)
    sim.mocap_pos[:] = np.arange(9).reshape(3, 1, 3) / 10
    sim.step(20)
    state = sim.get_state()
    sim.step(30)
    after = sim.qpos.copy()
    sim.reset()
    np.testing.assert_allclose(sim.mocap_pos[1], [[0, 0.1, 1]], atol=1e-7)
    sim.set_state(state)
    sim.step(30)
    np.testing.assert_array_equal(sim.qpos, after)
    sim.reset([0], keyframe=0)
    np.testing.assert_array_equal(sim.mocap_pos[:, 0, 0], np.float32([1, 0.3, 0.6]))
    np.testing.assert_array_equal(sim.mocap_quat[0, 0], [0, 0, 1, 0])
    sim.mocap_pos[2] = np.nan
    sim.step()
    assert list((sim.status & Status.NON_FINITE) != 0) == [False, False, True]


def test_inactive_equalities_hold_nothing():
    m = mujoco.MjModel.from_xml_string(GRIPPER.replace("<connect", '<connect active="false"'))
    sim = simulation(m)
    sim.step()
    assert np.count_nonzero(sim.contact_problem(0).upper >= 1e30) == 1 + 4  # of joints; limits push one way
    m = mujoco.MjModel.from_xml_string(LOOPS)
    m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_EQUALITY)
    sim = simulation(m)
    sim.step()
    assert sim.contact_problem(0).J_row.shape == (0, m.nv)


def test_every_instruction_set_and_pack_gives_the_same_bits():
    model = Model.from_mjcf(GRIPPER)
    ctrl = np.random.default_rng(6).uniform(0, 255, (19, 1)).astype(np.float32)
    found = []
    for isa in _core.available_isas():
        for envs in (slice(None), slice(3, 4)):
            world = golden.bare_world(model, len(ctrl[envs]), isa)
            world.array("ctrl")[:] = ctrl[envs]
            world.step(200)
            found.append(world.array("qpos")[3 if envs == slice(None) else 0].tobytes())
    assert len(set(found)) == 1


def test_more_than_a_world_holds_is_refused_by_name():
    bodies = "".join(f'<body name="b{i}" pos="{i} 0 0"><joint/><geom size=".1"/></body>' for i in range(17))
    welds = "".join(f'<weld body1="b{i}"/>' for i in range(17))
    model = Model.from_mjcf(f"<mujoco><worldbody>{bodies}</worldbody><equality>{welds}</equality></mujoco>")
    with pytest.raises(ValueError, match="33 threes of rows between bodies"):
        Simulation(model)
    joints = "".join(f'<joint joint="j{i}" coef="1"/>' for i in range(9))
    bodies = "".join(f'<body><joint name="j{i}"/><geom size=".1"/></body>' for i in range(9))
    text = (
        f'<mujoco><worldbody>{bodies}</worldbody><tendon><fixed name="t">{joints}</fixed></tendon>'
        '<equality><tendon tendon1="t"/></equality></mujoco>'
    )
    with pytest.raises(ValueError, match="9 joints on one tendon or equality"):
        Simulation(Model.from_mjcf(text))
    with pytest.raises(UnsupportedModelError, match="motion of a mocap body that touches"):
        Model.from_mjcf(MOCAP.replace('contype="0" conaffinity="0"', ""))


@pytest.mark.parametrize("tie", ['<weld body1="a" body2="b"/>', '<connect body1="a" body2="b" anchor=".15 0 0"/>'])
def test_what_flies_tied_together_without_gravity_is_not_flagged_for_rounding(tie):
    """At 3 m/s the ends of a bond are rounded by more than a thousandth of the 0.1 mm/s that all is judged by there."""
    box = '<geom type="box" size=".1 .05 .02"/>'
    xml = f"""<mujoco><option timestep="0.002" gravity="0 0 0"><flag contact="disable"/></option><worldbody>
      <body name="a"><freejoint/>{box}</body><body name="b" pos=".3 0 0"><freejoint/>{box}</body></worldbody>
      <equality>{tie}</equality></mujoco>"""
    sim, rng, flagged = Simulation(Model.from_mjcf(xml), 64, num_threads=1), np.random.default_rng(0), []
    v, w = 3 * rng.standard_normal((64, 3)), 2 * rng.standard_normal((64, 3))
    sim.qvel[:] = np.hstack([v, w, v + np.cross(w, [0.3, 0, 0]), w])
    for _ in range(250):
        sim.clear_status()
        sim.step()
        flagged.append((sim.status & Status.NOT_CONVERGED != 0).mean())
    assert np.mean(flagged) <= 0.02
    assert np.abs(np.linalg.norm(sim.qpos[:, 7:10] - sim.qpos[:, :3], axis=1) - 0.3).max() <= 3e-4


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("coupling", ["joint", "tendon"])
def test_light_fingers_that_an_equality_couples_hold_what_they_press(coupling, dtype):
    """40 N on fingers of 5 g, of which one is driven: equalities between links carry whatever they must."""
    fingers = "".join(
        f'<body pos="{0.03 * side} 0 0"><joint name="{name}" axis="0 {side} 0" range="-1.5 1.5"/>'
        '<geom type="box" size=".004 .01 .02" pos="0 0 -.03" mass=".005" friction="1"/></body>'
        for side, name in ((1, "a"), (-1, "b"))
    )
    tendon = '<tendon><fixed name="t"><joint joint="a" coef="1"/><joint joint="b" coef="-1"/></fixed></tendon>'
    equality = '<joint joint1="b" joint2="a"/>' if coupling == "joint" else '<tendon tendon1="t"/>'
    model = Model.from_mjcf(
        f"""<mujoco><option timestep="0.005"/><compiler angle="radian"/><worldbody>
        <body pos="0 0 .5"><joint name="palm" type="slide" axis="0 1 0"/><geom size=".01" mass="1"
          contype="0" conaffinity="0"/>{fingers}</body>
        <body name="box" pos="0 0 .465"><freejoint/><geom type="box" size=".02 .02 .02" mass=".1" friction="1"/></body>
        </worldbody>{tendon}<equality>{equality}</equality>
        <actuator><motor joint="a"/><position joint="palm" kp="2000" kv="200"/></actuator></mujoco>"""
    )
    sim = Simulation(model, 1, dtype=dtype, num_threads=1)
    box = model.mjmodel.body("box").id
    sim.ctrl[0, 0] = 40 * 0.04
    for k in range(400):
        sim.ctrl[0, 1] = 0.1 * np.sin(12 * max(0.005 * k - 0.5, 0))
        sim.step()
    assert abs(sim.xpos[0, box, 2] - 0.465) <= 2e-3
    assert abs(sim.qpos[0, 1] - sim.qpos[0, 2]) <= 1e-3
