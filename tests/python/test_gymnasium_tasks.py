"""Gymnasium's v5 tasks, ours against theirs: the model field by field, observations and rewards term by term."""

from dataclasses import dataclass

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")
from stiction.mjcf_import import collected_warnings  # noqa: E402
from task_walks import contact_wrenches, forward, make, random_walk  # noqa: E402


@dataclass
class Port:
    """What a task is in Gymnasium, and how its episodes begin."""

    theirs: str
    observations: int
    noise: float
    normal_velocity: bool
    free: bool  # a free joint: the quaternion is normalised
    clip: float = np.inf  # of observed velocities

    @property
    def skipped(self):
        return 2 if self.free else 1


PORTS = {
    "Ant": Port("Ant-v5", 105, 0.1, True, True),
    "HalfCheetah": Port("HalfCheetah-v5", 17, 0.1, True, False),
    "Hopper": Port("Hopper-v5", 11, 0.005, False, False, clip=10),
    "Walker2d": Port("Walker2d-v5", 17, 0.005, False, False, clip=10),
    "Humanoid": Port("Humanoid-v5", 348, 0.01, False, True),
}


@pytest.fixture(scope="module", params=PORTS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def theirs(name):
    with collected_warnings(mujoco):
        env = gymnasium.make(PORTS[name].theirs).unwrapped
    env.reset(seed=0)
    yield env
    env.close()


def test_model_is_gymnasiums(name, theirs):
    a, b = theirs.model, make(name).simulation.model.mjmodel
    for field in (
        "body_parentid body_mass body_inertia body_ipos body_iquat body_pos body_quat jnt_type jnt_bodyid jnt_axis "
        "jnt_pos jnt_range jnt_limited jnt_stiffness dof_armature dof_damping dof_frictionloss geom_type geom_bodyid "
        "geom_size geom_pos geom_quat geom_friction geom_contype geom_conaffinity geom_condim actuator_gear "
        "actuator_trnid actuator_ctrlrange actuator_gainprm actuator_biasprm qpos0 qpos_spring tendon_adr tendon_num "
        "wrap_objid wrap_prm"
    ).split():
        np.testing.assert_allclose(getattr(b, field), getattr(a, field), atol=1e-12, rtol=1e-11, err_msg=field)
    assert b.opt.timestep == a.opt.timestep
    np.testing.assert_array_equal(b.opt.gravity, a.opt.gravity)


def test_spaces_rates_and_names_are_gymnasiums(name, theirs):
    env = make(name, 3)
    assert env.single_observation_space.shape == theirs.observation_space.shape == (PORTS[name].observations,)
    np.testing.assert_allclose(env.single_action_space.low, theirs.action_space.low)
    np.testing.assert_allclose(env.single_action_space.high, theirs.action_space.high)
    assert env.metadata["render_fps"] == theirs.metadata["render_fps"]
    assert env.step_dt == pytest.approx(theirs.dt)
    assert env.max_episode_steps == gymnasium.spec(PORTS[name].theirs).max_episode_steps

    def names(info):
        return {key for key in info if not key.startswith("_") and key != "status" and "tendon" not in key}

    assert names(env.reset(seed=0)[1]) == names(theirs.reset(seed=0)[1])
    results = env.step(np.zeros((3, *env.single_action_space.shape)))
    assert names(results[4]) == names(theirs.step(np.zeros(theirs.action_space.shape))[4])
    private = {f"_{key}" for key in env.task_parameters}
    values = {key: getattr(theirs, key) for key in private}
    assert values == {f"_{key}": value for key, value in env.task_parameters.items()}


def centre_of_mass(theirs):
    """The x, y that Gymnasium's velocity is about."""
    if hasattr(theirs, "contact_cost") and theirs.model.nu == 17:
        return theirs.data.subtree_com[1, :2].copy()
    return theirs.data.qpos[:2].copy()


def test_every_term_is_gymnasiums_on_the_same_state(name, theirs):
    """Our states and wrenches forced into Gymnasium's environment give our observation, reward and end.

    Forced: qpos, qvel, ctrl, and the contact wrenches (ours are impulses over the time step, MuJoCo's are of its soft
    contacts). Derived quantities are those of the forced state, by mj_forward: Gymnasium's own lag it by a time step.
    """
    ended = touching = 0
    env = make(name, 8, autoreset_mode="Disabled", dtype="float64")
    before = np.zeros((env.num_envs, 2))
    sim, steps = env.simulation, 60
    walk = random_walk(env, steps)
    for t in range(steps):
        for e in range(env.num_envs):
            forward(theirs.model, theirs.data, sim, e)
            before[e] = centre_of_mass(theirs)
        action, (obs, reward, terminated, _, infos) = next(walk)
        if t == 0:  # the walk's own reset came in between
            continue
        for e in range(env.num_envs):
            forward(theirs.model, theirs.data, sim, e, action[e])
            forces = contact_wrenches(sim, theirs.data, e)
            theirs.data.cfrc_ext[:] = forces
            touching += bool(forces.any())
            np.testing.assert_allclose(obs[e], theirs._get_obs(), atol=1e-9, rtol=1e-9)
            velocity = (centre_of_mass(theirs) - before[e]) / theirs.dt
            expected, terms = theirs._get_rew(velocity[0], action[e])
            for term, value in terms.items():
                assert infos[term][e] == pytest.approx(value, abs=1e-9, rel=1e-9), (t, e, term)
            assert reward[e] == pytest.approx(expected, abs=1e-9, rel=1e-9)
            assert terminated[e] == (not getattr(theirs, "is_healthy", True))
            assert infos["x_velocity"][e] == pytest.approx(velocity[0], abs=1e-9)
            assert infos["x_position"][e] == sim.qpos[e, 0]
            if "y_velocity" in infos:
                assert infos["y_velocity"][e] == pytest.approx(velocity[1], abs=1e-9)
                assert infos["distance_from_origin"][e] == pytest.approx(np.linalg.norm(sim.qpos[e, :2]))
            if "z_distance_from_origin" in infos:
                assert infos["z_distance_from_origin"][e] == pytest.approx(sim.qpos[e, 1] - theirs.init_qpos[1])
            if "tendon_length_left" in infos:
                for quantity in ("length", "velocity"):
                    told = [infos[f"tendon_{quantity}_{side}"][e] for side in ("left", "right")]
                    np.testing.assert_allclose(told, getattr(theirs.data, f"ten_{quantity}"), atol=1e-12)
        ended += terminated.sum()
        if terminated.any():
            env.reset(options={"reset_mask": terminated})
        if t == 30 and PORTS[name].free:  # thrown up: they will be too high
            sim.qpos[:4, 2], sim.qvel[:4, 2] = theirs._healthy_z_range[1] - 0.05, 5
            sim.forward()
    assert ended >= 4 or not hasattr(theirs, "is_healthy")
    assert touching > 30


def test_a_flight_is_that_of_mujocos_euler(name, theirs):
    high = {"terminate_when_unhealthy": False} if hasattr(theirs, "is_healthy") else {}
    env, model = make(name, dtype="float64", task=high), theirs.model
    env.reset(seed=0)
    data, qpos = mujoco.MjData(model), env.simulation.qpos[0]
    qpos[2 if PORTS[name].free else 1] += 5  # m
    for joint in np.flatnonzero(model.jnt_limited):
        qpos[model.jnt_qposadr[joint]] = model.jnt_range[joint].mean()
    env.simulation.qvel[0] = 0.1 * np.random.default_rng(0).normal(size=model.nv)
    data.qpos[:], data.qvel[:] = qpos, env.simulation.qvel[0]
    action = 0.1 * env.single_action_space.high
    data.ctrl[:] = action
    env.step(action[None])
    before = model.opt.integrator
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    mujoco.mj_step(model, data, theirs.frame_skip)
    model.opt.integrator = before
    np.testing.assert_allclose(env.simulation.qpos[0], data.qpos, atol=1e-10)
    np.testing.assert_allclose(env.simulation.qvel[0], data.qvel, atol=1e-9)


def test_an_end_needs_a_switch(name, theirs):
    if not hasattr(theirs, "is_healthy"):
        pytest.skip("never ends")
    env = make(name, 4, task={"terminate_when_unhealthy": False}, autoreset_mode="Disabled")
    env.reset(seed=0)
    env.simulation.qpos[:, 2 if PORTS[name].free else 1] = 0.1
    env.simulation.forward()
    _, _, terminated, _, infos = env.step(np.zeros((4, *env.single_action_space.shape)))
    assert not terminated.any()
    assert (infos["reward_survive"] == 0).all()


def test_reset_is_gymnasiums_distribution(name, theirs):
    n, port = 4000, PORTS[name]
    env = make(name, n, num_threads=2)
    obs, infos = env.reset(seed=7)
    nq, nv = theirs.model.nq, theirs.model.nv
    noise = env.simulation.qpos - theirs.init_qpos
    if port.free:
        np.testing.assert_allclose(np.linalg.norm(env.simulation.qpos[:, 3:7], axis=1), 1, atol=1e-6)
        noise = np.delete(noise, slice(3, 7), axis=1)
    assert np.abs(noise).max() <= port.noise * (1 + 1e-4)
    np.testing.assert_allclose(noise.std(axis=0), port.noise / np.sqrt(3), rtol=0.05)
    velocity = env.simulation.qvel
    deviation = port.noise if port.normal_velocity else port.noise / np.sqrt(3)
    np.testing.assert_allclose(velocity.mean(axis=0), 0, atol=5 * deviation / np.sqrt(n))
    np.testing.assert_allclose(velocity.std(axis=0), deviation, rtol=0.06)
    assert (np.abs(velocity).max() > 3 * deviation) == port.normal_velocity
    assert np.abs(np.corrcoef(velocity.T) - np.eye(nv)).max() < 0.1
    np.testing.assert_array_equal(obs[:, : nq - port.skipped], env.simulation.qpos[:, port.skipped :])
    np.testing.assert_array_equal(infos["x_position"], env.simulation.qpos[:, 0])


@pytest.mark.parametrize(
    "per_env", [("body_mass",), ("body_mass", "body_inertia"), ("body_inertia",), ("body_pos", "body_ipos")]
)
def test_body_quantities_are_of_each_environments_masses(per_env):
    """Humanoid's centres, inertias, twists and wrenches where masses differ, against MuJoCo with those masses."""
    env = make("Humanoid", 3, per_env=per_env, dtype="float64", task={"terminate_when_unhealthy": False})
    sim, random = env.simulation, np.random.default_rng(2)
    for field in per_env:
        values = getattr(sim.params, field)
        values *= random.uniform(0.7, 1.4, values.shape)
    models = [make("Humanoid").simulation.model.mjmodel for _ in range(env.num_envs)]
    for e, model in enumerate(models):
        if "body_mass" in per_env:
            model.body_mass[:] = sim.params.body_mass[e]
            model.body_inertia[1:] *= sim.params.body_mass[e, 1:, None] / sim.model.body_mass[1:, None]
        if "body_inertia" in per_env:
            model.body_inertia[:] = sim.params.body_inertia[e]
        if "body_pos" in per_env:
            model.body_pos[:], model.body_ipos[:] = sim.params.body_pos[e], sim.params.body_ipos[e]
            for shortcut in (model.body_sameframe, model.body_simple, model.dof_simplenum):
                shortcut[:] = 0  # of frames that were the body's in the file
        mujoco.mj_setConst(model, mujoco.MjData(model))  # masses of subtrees
    touching = 0
    for action, (obs, *_) in random_walk(env, 60):
        for e, model in enumerate(models):
            data = mujoco.MjData(model)
            forward(model, data, sim, e, action[e])
            wrenches = contact_wrenches(sim, data, e)
            touching += bool(wrenches.any())
            expected = (data.cinert[1:], data.cvel[1:], data.qfrc_actuator[6:], wrenches[1:])
            np.testing.assert_allclose(obs[e, 45:], np.concatenate([x.ravel() for x in expected]), rtol=1e-8, atol=1e-8)
    assert touching > 30


def test_motor_forces_are_clamped_as_the_simulator_does():
    env = make("Humanoid", 1, dtype="float64")
    env.reset(seed=0)
    obs = env.step(np.full((1, 17), 5.0))[0]
    gear = np.zeros(23)
    model = env.simulation.model
    gear[model.jnt_dofadr[model.actuator_trnid]] = model.actuator_gear[:, 0]
    np.testing.assert_allclose(obs[0, 45 + 208 : 45 + 225], 0.4 * gear[6:])


def test_contact_forces_carry_the_ants_weight():
    env = make("Ant", 4)
    env.reset(seed=0)
    for _ in range(400):
        env.step(np.zeros((4, 8)))
    sim = env.simulation
    weight = sim.model.body_mass.sum() * 9.81
    np.testing.assert_allclose(sim.net_contact_force[:, 1:, 2].sum(axis=1), weight, rtol=0.02)
    obs = env.step(np.zeros((4, 8)))[0]
    rows = obs[:, 27:].reshape(4, 13, 6)
    assert (rows[:, :, 5].sum(axis=1) > 0.9).all()
    assert np.abs(rows).max() <= 1
