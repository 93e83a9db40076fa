"""stiction/Ant-v0 against Gymnasium's Ant-v5: the model field by field, observations and rewards term by term."""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")
import stiction  # noqa: E402

ACTIONS = 8


@pytest.fixture(scope="module")
def theirs():
    env = gymnasium.make("Ant-v5").unwrapped
    env.reset(seed=0)
    yield env
    env.close()


def make(num_envs=1, **options):
    return stiction.make_vec("stiction/Ant-v0", num_envs, **options)


def random_walk(num_envs, steps, amplitude=1.0, **options):
    """Yields (env, qpos before, action, results) of random actions."""
    env = make(num_envs, **options)
    env.reset(seed=1)
    random = np.random.default_rng(0)
    for _ in range(steps):
        before = env.simulation.qpos.copy()
        action = random.uniform(-amplitude, amplitude, (num_envs, ACTIONS)).astype(env.single_action_space.dtype)
        yield env, before, action, env.step(action)
    env.close()


def test_model_is_gymnasiums_ant(theirs):
    a, b = theirs.model, make().simulation.model.mjmodel
    for name in (
        "body_parentid body_mass body_inertia body_ipos body_iquat body_pos jnt_type jnt_bodyid jnt_axis jnt_pos "
        "jnt_range jnt_limited jnt_stiffness dof_armature dof_damping dof_frictionloss geom_type geom_bodyid geom_size "
        "geom_pos geom_quat geom_friction geom_contype geom_conaffinity geom_condim actuator_gear actuator_trnid "
        "actuator_ctrlrange qpos0"
    ).split():
        np.testing.assert_allclose(getattr(b, name), getattr(a, name), atol=1e-12, err_msg=name)
    assert b.opt.timestep == a.opt.timestep
    np.testing.assert_array_equal(b.opt.gravity, a.opt.gravity)


def test_spaces_and_rates_are_gymnasiums(theirs):
    env = make(3)
    assert env.single_observation_space.shape == theirs.observation_space.shape == (105,)
    np.testing.assert_array_equal(env.single_action_space.low, theirs.action_space.low)
    np.testing.assert_array_equal(env.single_action_space.high, theirs.action_space.high)
    assert env.metadata["render_fps"] == theirs.metadata["render_fps"]
    assert env.step_dt == pytest.approx(theirs.dt)
    assert env.max_episode_steps == gymnasium.spec("Ant-v5").max_episode_steps


def wrenches(simulation, theirs, env):
    """Torque about MuJoCo's centre of mass of the tree, and force, on each body, from the arrays of contacts."""
    data = theirs.data
    data.qpos[:] = simulation.qpos[env]
    mujoco.mj_kinematics(theirs.model, data)
    mujoco.mj_comPos(theirs.model, data)
    centre, model = data.subtree_com[1], simulation.model
    out, contact = np.zeros((model.nbody, 6)), simulation.contact
    for c in range(contact.count[env]):
        force = contact.frame[env, c].T @ contact.impulse[env, c] / simulation.timestep
        for geom, sign in zip(contact.geom[env, c], (-1, 1), strict=True):
            body = model.geom_bodyid[geom]
            if body:
                out[body, :3] += np.cross(contact.pos[env, c] - centre, sign * force)
                out[body, 3:] += sign * force
    return out


def test_every_term_is_gymnasiums_on_the_same_state(theirs):
    """Our states, velocities and wrenches put into Gymnasium's environment give our observation, reward and end."""
    ended = touching = 0
    for t, (env, before, action, (obs, reward, terminated, _, infos)) in enumerate(
        random_walk(16, 60, autoreset_mode="Disabled", dtype="float64")
    ):
        sim = env.simulation
        for e in range(env.num_envs):
            forces = wrenches(sim, theirs, e)
            touching += bool(forces.any())
            theirs.data.qpos[:], theirs.data.qvel[:], theirs.data.cfrc_ext[:] = sim.qpos[e], sim.qvel[e], forces
            np.testing.assert_array_equal(obs[e, :27], theirs._get_obs()[:27])
            np.testing.assert_allclose(obs[e], theirs._get_obs(), atol=1e-9)
            velocity = (sim.xpos[e, 1, :2] - before[e, :2]) / theirs.dt
            expected, terms = theirs._get_rew(velocity[0], action[e])
            for name, value in terms.items():
                assert infos[name][e] == pytest.approx(value, abs=1e-9), (t, e, name)
            assert reward[e] == pytest.approx(expected, abs=1e-9)
            assert terminated[e] == (not theirs.is_healthy)
            assert infos["x_velocity"][e] == pytest.approx(velocity[0], abs=1e-9)
            assert infos["y_velocity"][e] == pytest.approx(velocity[1], abs=1e-9)
            assert infos["x_position"][e] == sim.qpos[e, 0]
            assert infos["distance_from_origin"][e] == pytest.approx(np.linalg.norm(sim.qpos[e, :2]))
        ended += terminated.sum()
        if terminated.any():
            env.reset(options={"reset_mask": terminated})
        if t == 30:  # thrown up: they will be too high
            sim.qpos[:4, 2], sim.qvel[:4, 2] = 0.95, 3
    assert ended >= 4
    assert touching > 100


def test_float32_observes_what_float64_does():
    one, two = make(8, dtype="float32"), make(8, dtype="float64")
    a, _ = one.reset(seed=3)
    b, _ = two.reset(seed=3)
    assert a.dtype == np.float32
    assert b.dtype == np.float64
    np.testing.assert_allclose(a, b, atol=1e-6)
    action = np.full((8, ACTIONS), 0.3)
    a, reward_a, *_ = one.step(action)
    b, reward_b, *_ = two.step(action)
    np.testing.assert_allclose(a[:, :27], b[:, :27], atol=2e-3)
    np.testing.assert_allclose(reward_a, reward_b, atol=2e-3)
    assert reward_a.dtype == np.float32


def test_contact_forces_carry_the_weight():
    env = make(4)
    env.reset(seed=0)
    for _ in range(400):
        env.step(np.zeros((4, ACTIONS)))
    sim = env.simulation
    weight = sim.model.body_mass.sum() * 9.81
    np.testing.assert_allclose(sim.net_contact_force[:, 1:, 2].sum(axis=1), weight, rtol=0.02)
    obs = env.step(np.zeros((4, ACTIONS)))[0]
    rows = obs[:, 27:].reshape(4, 13, 6)
    assert (rows[:, :, 5].sum(axis=1) > 0.9).all()
    assert np.abs(rows).max() <= 1


def test_reset_is_gymnasiums_distribution():
    n = 4000
    obs, infos = make(n, num_threads=2).reset(seed=7)
    noise = np.concatenate([obs[:, :1] - 0.75, obs[:, 5:13]], axis=1)
    assert np.abs(noise).max() <= 0.1 + 1e-6
    np.testing.assert_allclose(noise.std(axis=0), 0.2 / np.sqrt(12), rtol=0.05)
    np.testing.assert_allclose(np.linalg.norm(obs[:, 1:5], axis=1), 1, atol=1e-6)
    velocity = obs[:, 13:27]
    np.testing.assert_allclose(velocity.mean(axis=0), 0, atol=5 * 0.1 / np.sqrt(n))
    np.testing.assert_allclose(velocity.std(axis=0), 0.1, rtol=0.06)
    assert np.abs(np.corrcoef(velocity.T) - np.eye(14)).max() < 0.1
    assert (obs[:, 27:] == 0).all()
    assert np.abs(infos["x_position"]).max() <= 0.1
    assert infos["x_position"].std() > 0.05


@pytest.mark.parametrize("num_threads", [1, 2])
def test_an_environment_depends_on_its_seed_alone(num_threads):
    """Bitwise: whatever the batch, the place in it and the threads; through ends and resets."""
    steps, seed = 40, 100
    random = np.random.default_rng(5)
    actions = random.uniform(-1, 1, (steps, 35, ACTIONS)).astype(np.float32)
    batch = make(35, num_threads=num_threads, max_episode_steps=17)
    singles = {i: make(1, num_threads=1, max_episode_steps=17) for i in (0, 15, 16, 34)}
    obs, _ = batch.reset(seed=seed)
    for i, one in singles.items():
        np.testing.assert_array_equal(one.reset(seed=seed + i)[0][0], obs[i])
    ends = 0
    for t in range(steps):
        obs, reward, terminated, truncated, infos = batch.step(actions[t])
        ends += (terminated | truncated).sum()
        for i, one in singles.items():
            o, r, te, tr, info = one.step(actions[t, i : i + 1])
            np.testing.assert_array_equal(o[0], obs[i])
            assert (r[0], te[0], tr[0]) == (reward[i], terminated[i], truncated[i])
            for name in ("x_velocity", "reward_contact", "status"):
                assert info[name][0] == infos[name][i]
    assert ends >= 2 * 35


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e38])
def test_a_bad_action_ends_its_environment_alone(bad):
    env, calm = make(5), make(5)
    env.reset(seed=0), calm.reset(seed=0)
    for t in range(6):
        action = np.full((5, ACTIONS), 0.2, np.float32)
        expected = calm.step(action)
        if t == 2:
            action[3, 4] = bad
        obs, reward, terminated, _, infos = env.step(action)
        assert np.isfinite(obs).all()
        assert np.isfinite(reward).all()
        assert (terminated == ([False] * 3 + [t == 2, False])).all()
        assert not infos["status"][3] & stiction.Status.NON_FINITE
        others = [0, 1, 2, 4]
        np.testing.assert_array_equal(obs[others], expected[0][others])
        np.testing.assert_array_equal(reward[others], expected[1][others])
        if t == 2:
            assert np.isfinite(infos["final_obs"][3]).all()
            assert infos["final_info"]["status"][3] & stiction.Status.NON_FINITE
            assert reward[3] == 0


def test_random_actions_stay_finite():
    for _, _, _, (obs, reward, _, _, infos) in random_walk(256, 150):
        assert np.isfinite(obs).all()
        assert np.isfinite(reward).all()
        status = infos["status"] | infos.get("final_info", {}).get("status", 0)
        assert not (status & (stiction.Status.NON_FINITE | stiction.Status.CONTACT_OVERFLOW)).any()
