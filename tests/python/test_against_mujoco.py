"""The smooth part of a step against MuJoCo, in double: poses, velocities, masses, bias, free motion, long rollouts.

All of MuJoCo's contacts, limits, dry friction and equalities are off in both: those follow other laws here.
"""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from model_sources import DATA, ROBOTS  # noqa: E402
from stiction import Model, Simulation  # noqa: E402

#: Their explicit servos are unstable or chaotic at the file's time step.
WITHOUT_ACTUATION = ("unitree_a1", "unitree_go1", "kuka_iiwa_14", "universal_robots_ur5e", "franka_emika_panda")
#: Read at collection: every file below these folders, loaded or skipped by name.
FOLDERS = ("mujoco_menagerie", "gymnasium", "brax", "dm_control", "newton", "mujoco")
FILES = sorted(str(p.relative_to(DATA)) for folder in FOLDERS for p in (DATA / folder).rglob("*.xml"))

Disable = mujoco.mjtDisableBit
CONSTRAINTS = int(Disable.mjDSBL_CONTACT | Disable.mjDSBL_LIMIT | Disable.mjDSBL_FRICTIONLOSS | Disable.mjDSBL_EQUALITY)


def model_of(name, *, disable=0):
    """(stiction's model, MuJoCo's, both without constraints), Euler."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"no {path}")
    compiled = Model.from_mjcf(path).mjmodel
    compiled.opt.disableflags |= CONSTRAINTS | int(disable)
    compiled.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    return Model.from_mjmodel(compiled), compiled


def model_or_skip(name, **options):
    try:
        model, m = model_of(name, **options)
        if np.count_nonzero(m.body_dofnum[m.body_weldid]) < 2:
            pytest.skip("fewer than two moving bodies")
        return model, m, Simulation(model, 2, dtype="float64", integrator="euler", num_threads=1)
    except ValueError as error:
        pytest.skip(f"not simulated: {str(error).splitlines()[-1][:120]}")


def random_state(m, seed, spread=0.5):
    rng = np.random.default_rng(seed)
    d = mujoco.MjData(m)
    d.qpos[:] = m.key_qpos[0] if m.nkey else m.qpos0
    mujoco.mj_integratePos(m, d.qpos, spread * rng.standard_normal(m.nv), 1.0)
    d.qvel[:] = rng.standard_normal(m.nv)
    d.ctrl[:] = rng.uniform(-0.3, 0.3, m.nu)
    d.qfrc_applied[:], d.xfrc_applied[1:] = rng.standard_normal(m.nv), rng.standard_normal((m.nbody - 1, 6))
    mujoco.mj_forward(m, d)
    return d


def put(sim, d, env=0):
    for name in ("qpos", "qvel", "ctrl", "qfrc_applied", "xfrc_applied"):
        getattr(sim, name)[env] = getattr(d, name)


def error(got, expected, floor=1.0):
    got, expected = np.asarray(got), np.asarray(expected)
    return 0.0 if expected.size == 0 else np.abs(got - expected).max() / max(floor, np.abs(expected).max())


def quat_error(got, expected):
    sign = np.sign(np.sum(got * expected, -1, keepdims=True))
    return np.abs(sign * got - expected).max()


def body_velocities(m, d):
    """Of body frames' origins, world axes."""
    linear, angular, six = np.zeros((m.nbody, 3)), np.zeros((m.nbody, 3)), np.zeros(6)
    for b in range(m.nbody):
        mujoco.mj_objectVelocity(m, d, mujoco.mjtObj.mjOBJ_XBODY, b, six, 0)
        angular[b], linear[b] = six[:3], six[3:]
    return linear, angular


@pytest.mark.parametrize("name", FILES)
def test_poses_velocities_and_free_motion_match(name):
    model, m, sim = model_or_skip(name)
    for seed in range(2):
        d = random_state(m, seed)
        put(sim, d, env=1)
        sim.forward()
        assert error(sim.xpos[1], d.xpos) <= 1e-12
        assert quat_error(sim.xquat[1], d.xquat) <= 1e-12
        assert error(sim.site_xpos[1], d.site_xpos) <= 1e-12
        linear, angular = body_velocities(m, d)
        assert error(sim.body_linvel[1], linear) <= 1e-12 and error(sim.body_angvel[1], angular) <= 1e-12
        v = d.qvel.copy()
        sim.step()
        mujoco.mj_step(m, d)
        h = m.opt.timestep
        assert error((sim.qvel[1] - v) / h, (d.qvel - v) / h) <= 1e-8
        assert error(sim.qpos[1], d.qpos) <= 1e-12 * max(1, np.abs(d.qvel).max())
    assert not np.any(sim.status & 1)


@pytest.mark.parametrize("name", ROBOTS)
def test_mass_matrix_and_bias_match(name):
    """Of the problem that the step solves: A = M, b = M v - h bias without actuation, passive forces and damping."""
    flags = Disable.mjDSBL_ACTUATION | Disable.mjDSBL_SPRING | Disable.mjDSBL_DAMPER | Disable.mjDSBL_EULERDAMP
    model, m = model_of(name, disable=flags)
    sim = Simulation(model, 1, dtype="float64", integrator="euler", num_threads=1)
    for seed in range(3):
        d = random_state(m, seed)
        d.qfrc_applied[:], d.xfrc_applied[:] = 0, 0
        put(sim, d)
        sim.step()
        problem = sim.contact_problem(0)
        M = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, d, M)
        assert error(problem.A, M, floor=0) <= 1e-10
        assert error((M @ d.qvel - problem.b) / m.opt.timestep, d.qfrc_bias) <= 1e-9


@pytest.mark.parametrize("name", ROBOTS)
def test_a_thousand_steps_match(name):
    off = Disable.mjDSBL_ACTUATION if any(robot in name for robot in WITHOUT_ACTUATION) else 0
    model, m = model_of(name, disable=off)
    sim = Simulation(model, 2, dtype="float64", integrator="euler", num_threads=1)
    d = mujoco.MjData(m)
    rng = np.random.default_rng(5)
    d.qpos[:] = m.key_qpos[0] if m.nkey else m.qpos0
    mujoco.mj_integratePos(m, d.qpos, 0.02 * rng.standard_normal(m.nv), 1.0)
    d.ctrl[:] = m.key_ctrl[0] if m.nkey else 0.02 * rng.standard_normal(m.nu)
    put(sim, d)
    put(sim, d, env=1)
    for _ in range(10):
        sim.step(100)
        mujoco.mj_step(m, d, 100)
        assert error(sim.qpos, np.stack([d.qpos] * 2)) <= 1e-8
        assert error(sim.qvel, np.stack([d.qvel] * 2)) <= 1e-8
    np.testing.assert_array_equal(sim.qpos[0], sim.qpos[1])


def steps_of_the_oracle(oracle, sim, d, count=5):
    """Steps host/reference and ``sim`` from MuJoCo's data ``d``; yields the former's q and v after each step."""
    reference = pytest.importorskip("stiction_reference")
    put(sim, d)
    forces = d.qfrc_applied.copy(), d.xfrc_applied.copy()
    q, v, owed = d.qpos.copy(), d.qvel.copy(), 0 * d.qvel
    for _ in range(count):
        step = reference.step(oracle, q, v, d.ctrl, {}, sim.integrator, sim.timestep, 0.2, 1.0, *forces, owed=owed)
        q, v, owed = step["q"], step["v"], step["owed"]
        sim.step()
        yield q, v


@pytest.mark.parametrize("name", ROBOTS)
def test_implicit_steps_match_the_oracle(name):
    """With their actuators, springs and dampers; free, since the contact laws have tests of their own."""
    reference = pytest.importorskip("stiction_reference")
    model, m = model_of(name)
    oracle = reference.Model(model.to_arrays())
    sim = Simulation(model, 1, dtype="float64", num_threads=1)
    assert sim.integrator == "implicit"
    for seed in range(3):
        *_, (q, v) = steps_of_the_oracle(oracle, sim, random_state(m, seed))
        assert error(sim.qpos[0], q) <= 1e-9 and error(sim.qvel[0], v) <= 2e-8
