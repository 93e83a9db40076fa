"""Springs of ball and free joints and limits of ball joints, on and beside the trunk, against MuJoCo and the oracle."""

import golden
import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from stiction import Model, Simulation, Status, _core  # noqa: E402
from stiction.solver_options import SolverOptions  # noqa: E402
from test_against_mujoco import error, put, random_state, steps_of_the_oracle  # noqa: E402

Disable = mujoco.mjtDisableBit

#: A floating trunk with ball joints on two branches, a free body, and a ball joint that hangs from the world.
MOBILE = """
<mujoco><compiler autolimits="true"/><option timestep="0.002" gravity="1 -2 -9" integrator="Euler"/><worldbody>
  <body name="torso" pos="0 0 1" euler="10 20 30"><joint name="base" type="free" stiffness="60" damping=".5"/>
    <geom size=".1" mass="2" pos=".02 .01 0"/>
    <body pos=".3 .1 0" euler="20 30 40">
      <joint name="shoulder" type="ball" pos="-.1 0 .05" stiffness="6" damping=".3" armature=".01" {shoulder}/>
      <geom type="box" size=".1 .05 .2" mass="1.2" euler="10 20 30"/>
      <body pos="0 .2 .3"><joint name="wrist" type="ball" stiffness="3" damping=".2" {wrist}/>
        <joint name="slide" type="slide" axis="0 1 0" stiffness="200" springref=".1" damping="2"/>
        <geom type="capsule" size=".05 .2" mass=".7" pos="0 0 .1"/></body></body>
    <body pos="-.3 0 0"><joint name="elbow" axis="0 1 0" stiffness="5" springref="20" damping=".3"/>
      <geom size=".1" mass=".5" pos="0 0 -.1"/></body></body>
  <body name="cube" pos="1 0 0" euler="0 50 0"><joint name="loose" type="free" stiffness="30" damping=".2"/>
    <geom type="box" size=".1 .05 .2" mass=".8" pos=".03 0 .02"/></body>
  <body pos="2 0 1"><joint name="lamp" type="ball" stiffness="4" damping=".1" {lamp}/>
    <geom type="box" size=".1 .05 .2" mass=".6" pos="0 .05 -.3"/></body>
</worldbody></mujoco>"""
RANGES = {"shoulder": 'range="0 50"', "wrist": 'range="0 20"', "lamp": 'range="0 35"'}


def compiled(disable=0, seed=7, **ranges):
    """Springs that rest anywhere; every contact is off."""
    m = mujoco.MjModel.from_xml_string(MOBILE.format(**{name: ranges.get(name, "") for name in RANGES}))
    m.opt.disableflags |= int(Disable.mjDSBL_CONTACT | disable)
    if seed is not None:
        mujoco.mj_integratePos(m, m.qpos_spring, np.random.default_rng(seed).standard_normal(m.nv), 1.0)
    return m


def simulation(m, integrator="euler", **options):
    return Simulation(Model.from_mjmodel(m), 1, dtype="float64", integrator=integrator, num_threads=1, **options)


@pytest.mark.parametrize("flag", ["", "SPRING"])
def test_spring_forces_and_free_motion_match_mujoco(flag):
    m = compiled(getattr(Disable, f"mjDSBL_{flag}") if flag else 0)
    sim, h = simulation(m), m.opt.timestep
    without = simulation(compiled(Disable.mjDSBL_SPRING))
    assert np.any(Model.from_mjmodel(m).jnt_stiffness[np.asarray(m.jnt_type) < 2])
    for seed in range(20):
        d = random_state(m, seed, spread=1.5)
        for each in (sim, without):
            put(each, d)
            each.step()
        springs = (sim.contact_problem(0).b - without.contact_problem(0).b) / h
        assert error(springs, d.qfrc_spring) <= 1e-10
        assert bool(flag) != bool(np.all(d.qfrc_spring[[0, 3, 6, 9, 14, 17, 20]]))
        v = d.qvel.copy()
        mujoco.mj_step(m, d)
        assert error((sim.qvel[0] - v) / h, (d.qvel - v) / h) <= 1e-8


@pytest.mark.parametrize("angle", [0, 1e-13, 1e-9, 1e-5, 3, np.pi - 1e-9])
def test_spring_forces_match_where_the_logarithm_is_delicate(angle):
    m = compiled(seed=None)
    sim, d = simulation(m), mujoco.MjData(m)
    axis = np.array([2, -3, 6]) / 7
    turn = np.r_[np.cos(angle / 2), np.sin(angle / 2) * axis]
    for joint in np.flatnonzero(m.jnt_type < 2):
        at = m.jnt_qposadr[joint] + 3 * (m.jnt_type[joint] == 0)
        mujoco.mju_mulQuat(d.qpos[at : at + 4], m.qpos_spring[at : at + 4], turn)
    mujoco.mj_forward(m, d)
    put(sim, d)
    sim.step()
    mujoco.mj_step(m, d)
    assert error(sim.qvel[0] / m.opt.timestep, d.qvel / m.opt.timestep) <= 1e-8


def test_a_thousand_steps_match_mujoco():
    m = compiled()
    sim, d = simulation(m), random_state(m, 3, spread=0.3)
    d.qfrc_applied[:], d.xfrc_applied[:] = 0, 0
    put(sim, d)
    for _ in range(10):
        sim.step(100)
        mujoco.mj_step(m, d, 100)
        assert error(sim.qpos[0], d.qpos) <= 1e-8 and error(sim.qvel[0], d.qvel) <= 1e-8


@pytest.mark.parametrize("ranges", [{}, RANGES], ids=["springs", "springs and limits"])
def test_implicit_steps_match_the_oracle(ranges):
    reference = pytest.importorskip("stiction_reference")
    m = compiled(**ranges)
    oracle = reference.Model(Model.from_mjmodel(m).to_arrays())
    sim = simulation(m, "implicit", solver=SolverOptions(tolerance=1e-12, iterations=3000))
    pushed = 0
    for seed in range(6):
        for q, v in steps_of_the_oracle(oracle, sim, random_state(m, seed)):
            pushed += np.count_nonzero(sim.contact_problem(0).row_impulse > 1e-6)
            assert error(sim.qpos[0], q) <= 1e-9 and error(sim.qvel[0], v) <= 1e-7
    assert bool(pushed) == bool(ranges)


def turned(angle, rng):
    """A quaternion of this angle about a random axis, its sign at random."""
    axis = rng.standard_normal(3)
    sign = rng.choice([-1, 1])
    return np.r_[np.cos(angle / 2), np.sin(angle / 2) * axis / np.linalg.norm(axis)] * sign


def test_limit_rows_match_mujoco():
    m = compiled(**RANGES)
    m.jnt_margin[:] = 1  # MuJoCo's rows from 1 rad before the limit
    sim = simulation(m, solver=SolverOptions(margin=1.0))
    rng, d, h = np.random.default_rng(1), mujoco.MjData(m), m.opt.timestep
    signs = set()
    for _ in range(30):
        for name in RANGES:
            at = m.jnt_qposadr[m.joint(name).id]
            limit = m.jnt_range[m.joint(name).id, 1]
            d.qpos[at : at + 4] = turned(limit + rng.uniform(-0.3, 0.3), rng)
        d.qvel[:] = rng.standard_normal(m.nv)
        mujoco.mj_forward(m, d)
        is_limit = np.asarray(d.efc_type) == int(mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT)
        assert is_limit.sum() == 3
        J, gap = np.asarray(d.efc_J).reshape(-1, m.nv)[is_limit], np.asarray(d.efc_pos)[is_limit]
        put(sim, d)
        sim.step()
        problem = sim.contact_problem(0)
        assert error(problem.J_row, J) <= 1e-12
        expected = np.where(gap > 0, gap, np.maximum(0.2 * gap, -h)) / h
        assert error(problem.e_row * h, expected * h) <= 1e-12
        assert np.all(problem.lower == 0) and np.all(problem.upper >= 1e30)
        signs.update(np.sign(gap))
    assert signs == {-1, 1}


def test_limits_disabled_or_beyond_half_a_turn_do_nothing():
    m = compiled(Disable.mjDSBL_LIMIT, **RANGES)
    free = simulation(compiled(lamp='range="0 180"'))
    rng = np.random.default_rng(2)
    for sim in (simulation(m), free):
        at = m.jnt_qposadr[m.joint("lamp").id]
        sim.qpos[0, at : at + 4] = turned(3.1415, rng)
        sim.qvel[:] = 5 * rng.standard_normal(m.nv)
        sim.step()
        assert sim.contact_problem(0).J_row.shape == (0, m.nv)


#: A rod that stands on a ball joint and falls to its limit.
LIMIT, MASS, LENGTH = np.deg2rad(40), 0.7, 0.4
PENDULUM = """
<mujoco><option timestep="0.002"/><worldbody>
  <body><joint name="j" type="ball" limited="true" range="0 40" damping=".2"/>
    <geom type="box" size=".03 .05 .1" pos="0 0 .4" mass=".7"/></body></worldbody></mujoco>"""
SOLVERS = {
    "rows": {"iterations": 2000},
    "canal": {"name": "canal"},
    "sap": {"name": "sap"},
    "pgs": {"name": "pgs", "iterations": 2000},
    "bisection": {"name": "bisection", "iterations": 2000},
    "cond": {"name": "cond", "iterations": 2000},
    "newton": {"iterations": 0, "certify": 1e-6},
}


def angle_of(quat):
    return 2 * np.arctan2(np.linalg.norm(quat[..., 1:], axis=-1), np.abs(quat[..., 0]))


@pytest.mark.on_cpu
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_pendulum_comes_to_rest_at_its_limit(solver, dtype, device):
    options = SolverOptions(**SOLVERS[solver], tolerance=1e-11 if dtype == "float64" else 1e-6)
    model = Model.from_mjcf(PENDULUM)
    sim = Simulation(model, 5, dtype=dtype, solver=options, num_threads=1)
    for env in range(5):  # it falls in different directions, twisting
        sim.qvel[env] = [np.cos(env), np.sin(env), 0.3 * env]
    worst, hits = 0.0, np.zeros(5)
    for _ in range(2500):
        sim.step()
        angle = angle_of(sim.qpos.astype(np.float64))
        worst, hits = max(worst, angle.max()), np.maximum(hits, angle)
    assert np.all(hits > LIMIT - 1e-3), "all of them reach the limit"
    assert worst <= LIMIT + 2e-3
    assert np.all(sim.status == (Status.FALLBACK if solver == "newton" else 0))
    assert np.abs(sim.qvel).max() <= 2e-3
    np.testing.assert_allclose(angle, LIMIT, atol=1e-4)
    h = model.timestep
    for env in range(5):
        problem = sim.contact_problem(env)
        assert problem.J_row.shape == (1, 3)
        axis = -problem.J_row[0]
        up = np.zeros(9)
        mujoco.mju_quat2Mat(up, sim.qpos[env].astype(np.float64))
        across = np.hypot(up[2], up[5])  # of the rod's direction
        # Gravity's torque has the rod's leaning direction as its lever; the limit's is about the axis of the turn.
        torque = problem.row_impulse[0] / h * axis
        gravity = np.cross([0, 0, LENGTH], MASS * -9.81 * up[6:9])
        np.testing.assert_allclose(torque, gravity, atol=2e-3)
        assert abs(np.linalg.norm(torque) - MASS * 9.81 * LENGTH * across) <= 2e-3


def test_parameters_of_environments_reach_ball_and_free_joints():
    """The same bits as models with these numbers; the environment beside it keeps its own."""
    changed = compiled(**RANGES)
    plain = compiled(**RANGES)
    changed.jnt_stiffness[:] = 1.5 * changed.jnt_stiffness + 1
    changed.jnt_range[:, 1] *= 0.5
    for dtype in ("float64", "float32"):
        model = Model.from_mjmodel(plain)
        both = Simulation(model, 2, dtype=dtype, per_env=("jnt_stiffness", "jnt_range"), num_threads=1)
        both.params.jnt_stiffness[1], both.params.jnt_range[1] = changed.jnt_stiffness, changed.jnt_range
        alone = [Simulation(Model.from_mjmodel(m), 1, dtype=dtype, num_threads=1) for m in (plain, changed)]
        d = random_state(plain, 4, spread=0.8)
        for env, sim in enumerate(alone):
            put(sim, d)
            put(both, d, env=env)
            sim.step(50)
        both.step(50)
        for env, sim in enumerate(alone):
            np.testing.assert_array_equal(both.qpos[env], sim.qpos[0])
            np.testing.assert_array_equal(both.qvel[env], sim.qvel[0])
        assert np.abs(both.qvel[0] - both.qvel[1]).max() > 1e-2


def test_every_instruction_set_gives_the_same_bits():
    model = Model.from_mjmodel(compiled(**RANGES))
    rng = np.random.default_rng(6)
    qvel = 2 * rng.standard_normal((19, model.nv)).astype(np.float32)
    found = []
    for isa in _core.available_isas():
        world = golden.bare_world(model, 19, isa)
        world.array("qvel")[:] = qvel
        world.step(200)
        found.append(world.array("qpos").tobytes() + world.array("qvel").tobytes())
        assert not (world.array("status") & 1).any()
    assert len(set(found)) == 1
