"""Domain randomisation: what is drawn, when, for whom, and that it does not depend on the batch."""

import runpy
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from stiction.randomisation import Bias, Force, Gains, Latency, Noise, Parameter, Push  # noqa: E402

ID = "stiction/Ant-v0"
EVERYTHING = [
    Parameter("body_mass", 0.8, 1.2),
    Parameter("body_inertia", 0.9, 1.1, each=True),
    Parameter("geom_friction", 0.5, 1.25, operation="set", columns=0),
    Parameter("dof_damping", 0.5, 2.0, distribution="log_uniform", each=True),
    Parameter("gravity", -0.5, 0.5, operation="add", names=("x", "y"), each=True, every=(0.1, 0.3)),
    Gains(0.9, 1.1, each=True),
    Push(0.5, every=(0.1, 0.2), spin=0.3),
    Latency(0, 2),
    Noise(0.01),
]


def make(randomize, num_envs=6, env_id=ID, **options):
    return stiction.make_vec(env_id, num_envs, randomize=randomize, num_threads=1, **options)


def zeros(env):
    return np.zeros(env.action_space.shape, np.float32)


def test_parameters_lie_in_their_ranges_and_differ():
    env = make(EVERYTHING, 64)
    env.reset(seed=0)
    params, model = env.simulation.params, env.simulation.model
    factor = params.body_mass[:, 1:] / model.body_mass[1:]
    assert factor.min() >= 0.8
    assert factor.max() <= 1.2
    assert np.ptp(factor[:, 0]) > 0.3
    np.testing.assert_allclose(factor, factor[:, :1].repeat(13, axis=1), rtol=1e-5)  # one number for all bodies
    np.testing.assert_array_equal(params.body_mass[:, 0], 0)
    inertia = params.body_inertia[:, 1:] / model.body_inertia[1:]
    assert np.ptp(inertia[0, :, 0]) > 0.05  # a number for each body
    np.testing.assert_allclose(inertia, inertia[..., :1].repeat(3, axis=2), rtol=1e-5)
    slide = params.geom_friction[..., 0]
    assert 0.5 <= slide.min() < 0.7
    assert 1.1 < slide.max() <= 1.25
    np.testing.assert_array_equal(
        params.geom_friction[..., 1:], np.broadcast_to(model.geom_friction[:, 1:], (64, 14, 2))
    )
    hinges = model.dof_damping > 0
    damping = params.dof_damping[:, hinges] / model.dof_damping[hinges]
    assert 0.5 <= damping.min() < 0.55
    assert 1.8 < damping.max() <= 2.0
    assert abs(np.log(damping).mean()) < 0.05
    gain = params.actuator_gainprm / model.actuator_gainprm
    assert np.ptp(gain[0]) > 0.02
    np.testing.assert_array_equal(params.gravity[:, 2], np.float32(-9.81))
    assert np.ptp(params.gravity[:, 0]) > 0.5


def test_gain_and_bias_of_a_servo_share_their_number():
    servo = """<mujoco><worldbody><body><joint name="j"/><geom size="0.1"/></body>
    <body pos="1 0 0"><joint name="k"/><geom size="0.1"/></body></worldbody>
    <actuator><position name="p" joint="j" kp="10"/><position name="q" joint="k" kp="3"/></actuator></mujoco>"""

    class Servo(stiction.Task):
        model = servo

        def observe(self):
            return np.array(self.sim.qpos)

        def reward(self, action):
            return np.zeros(self.num_envs)

    env = make([Gains(0.5, 1.5, each=True)], 8, Servo)
    env.reset(seed=0)
    params = env.simulation.params
    np.testing.assert_allclose(params.actuator_biasprm[..., 1], -params.actuator_gainprm, rtol=1e-6)
    factor = params.actuator_gainprm / [10, 3]
    assert np.ptp(factor[:, 0]) > 0.3
    assert (abs(factor[:, 0] - factor[:, 1]) > 1e-3).any()
    env = make([Gains(0.5, 0.6, names=("p",))], 2, Servo)
    env.reset(seed=0)
    assert (env.simulation.params.actuator_gainprm[:, 1] == 3).all()
    assert (env.simulation.params.actuator_gainprm[:, 0] <= 6).all()


def trajectory(env, seed, steps=12):
    """What every step gives, with the environments' parameters."""
    obs, _ = env.reset(seed=seed)
    told = [obs]
    for t in range(steps):
        action = np.sin(np.arange(8) + t)[None].repeat(env.num_envs, 0).astype(np.float32) * 0.3
        obs, reward, _, _, infos = env.step(action)
        told += [obs, reward, env.simulation.params.gravity.copy(), env.simulation.params.body_mass.copy()]
        told.append(
            np.stack([np.zeros(105) if f is None else f for f in infos.get("final_obs", [None] * env.num_envs)])
        )
    return told


def test_environment_of_a_batch_is_the_one_alone():
    batch, alone = make(EVERYTHING, 5, max_episode_steps=7), make(EVERYTHING, 1, max_episode_steps=7)
    for a, b in zip(trajectory(batch, 3), trajectory(alone, 6), strict=True):
        np.testing.assert_array_equal(a[3], b[0])


def test_same_seed_same_numbers_and_another_another():
    env = make(EVERYTHING)
    first, again, other = (trajectory(env, seed) for seed in (1, 1, 2))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[3], other[3])


def test_every_episode_has_its_own_numbers():
    env = make([Parameter("body_mass", 0.5, 1.5)], 3, max_episode_steps=4)
    env.reset(seed=0)
    masses = []
    for _ in range(12):
        masses.append(env.simulation.params.body_mass[:, 1].copy())
        env.step(zeros(env))
    masses = np.array(masses)
    for start in (0, 4, 8):
        assert (masses[start : start + 4] == masses[start]).all()
    assert (masses[0] != masses[4]).all()
    assert (masses[4] != masses[8]).all()


def test_one_term_does_not_disturb_another():
    alone, together = make([EVERYTHING[0]]), make(EVERYTHING)
    alone.reset(seed=0), together.reset(seed=0)
    np.testing.assert_array_equal(alone.simulation.params.body_mass, together.simulation.params.body_mass)


def test_partial_reset_randomises_its_environments_alone():
    env = make([Parameter("body_mass", 0.5, 1.5), Noise(0.1)], 3)
    obs, _ = env.reset(seed=0)
    before = env.simulation.params.body_mass.copy()
    after, _ = env.reset(options={"reset_mask": np.array([False, True, False])})
    np.testing.assert_array_equal(after[[0, 2]], obs[[0, 2]])
    changed = (env.simulation.params.body_mass != before).any(axis=1)
    assert changed.tolist() == [False, True, False]


def test_heavier_robots_fall_no_faster_but_hit_harder():
    env = make([Parameter("body_mass", 2.0, 2.0)], 2)
    plain = make(None, 2)
    for e in (env, plain):
        e.reset(seed=0)
        for _ in range(60):
            e.step(zeros(e))
    force, expected = (e.simulation.net_contact_force[:, 1:, 2].sum(axis=1) for e in (env, plain))
    np.testing.assert_allclose(force, 2 * expected, rtol=0.02)


def test_intervals():
    """From 4 to 8 steps, in episodes that last."""
    term = Parameter("gravity", -9.0, -5.0, operation="set", names="z", every=(0.04, 0.08))
    env = make([term], 100, "stiction/CartPoleBalance-v0")
    env.reset(seed=0)
    seen = []
    for _ in range(40):
        env.step(zeros(env))
        seen.append(env.simulation.params.gravity[:, 2].copy())
    assert (env.episode_length == 40).all()
    changes = np.diff(np.array(seen), axis=0) != 0
    assert (changes.sum(axis=0) >= 4).all()
    apart = np.concatenate([np.diff(np.flatnonzero(column)) for column in changes.T])
    assert set(apart) == {4, 5, 6, 7, 8}


def test_pushes():
    env, calm = make([Push(1.0, every=(0.25, 0.25), spin=0.5)], 100), make(None, 100)
    env.reset(seed=0), calm.reset(seed=0)
    for t in range(6):
        env.step(zeros(env)), calm.step(zeros(calm))
        same = np.array_equal(env.simulation.qvel, calm.simulation.qvel)
        assert same == (t < 5)
    change = (env.simulation.qvel - calm.simulation.qvel)[:, :2]
    assert 0.1 < np.linalg.norm(change, axis=1).mean() < 1.0
    assert abs(change.mean(axis=0)).max() < 0.2


def test_latency_delays_actions():
    env = make([Latency(2, 2)], 2)
    plain = make(None, 2)
    env.reset(seed=0), plain.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-0.3, 0.3, (6, 2, 8)).astype(np.float32)
    for t in range(6):
        given = actions[t - 2] if t >= 2 else zeros(plain)
        np.testing.assert_array_equal(env.step(actions[t])[0], plain.step(given)[0])
    env = make([Latency(0, 3)], 50)
    env.reset(seed=0)
    assert set(env._random._late) == {0, 1, 2, 3}


def test_noise_is_on_observations_alone():
    env, plain = make([Noise(0.5)], 50, max_episode_steps=3), make(None, 50, max_episode_steps=3)
    first, clean = env.reset(seed=0)[0], plain.reset(seed=0)[0]
    assert (first - clean).std() == pytest.approx(0.5, rel=0.05)
    for _ in range(4):
        results, expected = env.step(zeros(env)), plain.step(zeros(plain))
        np.testing.assert_array_equal(results[1], expected[1])
        noise = results[0] - expected[0]
        assert noise.std() == pytest.approx(0.5, rel=0.05)
        if "final_obs" in results[4]:
            last = np.stack(list(results[4]["final_obs"])) - np.stack(list(expected[4]["final_obs"]))
            assert last.std() == pytest.approx(0.5, rel=0.05)
            assert abs(np.corrcoef(last.ravel(), noise.ravel())[0, 1]) < 0.05
    assert results[0].dtype == np.float32


def test_custom_tasks_are_randomised_too():
    reach = runpy.run_path(str(Path(__file__).resolve().parents[2] / "examples" / "reach.py"))["Reach"]
    env = make([Parameter("dof_damping", 0.5, 2.0), Noise(tuple([0.0] * 9 + [1.0])), Latency(1, 1)], 4, reach)
    plain = make(None, 4, reach)
    noisy, clean = env.reset(seed=0)[0], plain.reset(seed=0)[0]
    np.testing.assert_array_equal(noisy[:, :9], clean[:, :9])
    assert (noisy[:, 9] != clean[:, 9]).all()
    assert np.ptp(env.simulation.params.dof_damping[:, 0]) > 0
    env.step(np.ones((4, 2)))
    assert (env.simulation.ctrl == 0).all()


@pytest.mark.parametrize(
    ("make_term", "error", "text"),
    [
        (lambda: Parameter("body_mas", 1, 2), ValueError, "body_mass"),
        (lambda: Parameter("qpos0", 1, 2), ValueError, "no parameter"),
        (lambda: Parameter("body_mass", 2, 1), ValueError, "from 2 to 1"),
        (lambda: Parameter("body_mass", 0, np.inf), ValueError, "finite"),
        (lambda: Parameter("body_mass", 0, 1, operation="times"), ValueError, "operation"),
        (lambda: Parameter("body_mass", 0, 1, distribution="log_uniform"), ValueError, "more than 0"),
        (lambda: Parameter("body_mass", 0, 1, distribution="gaussian"), ValueError, "distribution"),
        (lambda: Parameter("body_mass", 0, 1, every=(0, 1)), ValueError, "every"),
        (lambda: Parameter("gravity", 0, 1, names="down"), ValueError, "axes"),
        (lambda: Push(1.0, every=None), ValueError, "every"),
        (lambda: Latency(2, 1), ValueError, "Latency"),
        (lambda: Latency(0.5, 1), ValueError, "Latency"),
        (lambda: Noise(-1.0), ValueError, "Noise"),
        (lambda: make([Noise((1.0, 2.0))]), ValueError, "2 deviations for 105"),
        (lambda: make([Noise(1.0), Noise(2.0)]), ValueError, "more than one"),
        (lambda: make([3]), TypeError, "randomize has 3"),
        (lambda: make([Parameter("body_mass", 1, 2, names="torsp")]), ValueError, "body_mass: no body named 'torsp'"),
        (lambda: make([Parameter("body_mass", 1, 2, columns=0)]), ValueError, "no columns"),
        (lambda: make([Parameter("geom_friction", 1, 2, columns=3)]), ValueError, "columns 0 to 2"),
        (lambda: make([Push(1.0, joint="hip_1")]), ValueError, "joint|no free"),
        (lambda: make([Parameter("site_pos", 1, 2)]), ValueError, "site_pos: the model has no site"),
        (
            lambda: make([Parameter("site_pos", 1, 2)], 1, "stiction/ArmLift-v0"),
            ValueError,
            "site_pos of 'grasp': the task",
        ),
        (lambda: make([Parameter("body_pos", 1, 2, names="torso")]), ValueError, "'torso' has a free joint: qpos says"),
    ],
)
def test_refuses(make_term, error, text):
    with pytest.raises(error, match=text):
        make_term()


# ---- forces, biases, terms by name


@pytest.fixture(params=["numpy", "torch"])
def backend(request):
    if request.param == "torch":
        pytest.importorskip("torch")
    return request.param


def test_a_normal_draw_is_about_the_middle_and_within_its_bounds():
    env = make([Parameter("body_mass", 0.8, 1.6, distribution="normal", operation="set")], 500)
    env.reset(seed=0)
    masses = env.simulation.params.body_mass[:, 1]
    assert masses.min() >= np.float32(0.8)
    assert masses.max() <= np.float32(1.6)
    assert abs(masses.mean() - 1.2) < 4 * 0.2 / 500**0.5
    assert 0.17 < masses.std() < 0.21
    assert 0.62 < (np.abs(masses - 1.2) < 0.2).mean() < 0.74


def test_geoms_without_size_and_gains_below_zero_are_refused():
    sim = stiction.Simulation(stiction.Model.from_mjcf("envs/ant/ant.xml"), 2, per_env=("geom_size",))
    flat = np.array(sim.params.geom_size)
    flat[1, -1, 1] = 0
    with pytest.raises(ValueError, match=r"params.geom_size leaves geom \S+ without size, expected more than 0"):
        sim.params.geom_size = flat
    sim.params.geom_size = 2 * np.array(sim.params.geom_size)
    with pytest.raises(ValueError, match=r"geom_size \(scale 0 to 0\) at times leaves geom \S+ without size"):
        make([Parameter("geom_size", 0, 0)], 2)
    with pytest.raises(ValueError, match=r"Gains: low is -1, expected at least 0"):
        Gains(-1, -0.5)


def test_a_bias_stays_for_an_episode(backend):
    """Its numbers are the same whatever noise there is, and differ from environment to environment."""
    env = make([Bias({"joint_position": 0.1})], 4, max_episode_steps=5, backend=backend)
    clean = make(None, 4, max_episode_steps=5, backend=backend)
    columns = [place for place, name in enumerate(env.observation_names) if name.startswith("joint_position/")]
    obs, plain = np.asarray(env.reset(seed=0)[0]), np.asarray(clean.reset(seed=0)[0])
    biases = []
    for _ in range(12):
        biases.append((obs - plain)[:, columns])
        others = np.delete(obs - plain, columns, axis=1)
        assert (others == 0).all()
        obs, plain = (np.asarray(e.step(np.zeros((4, 8), np.float32))[0]) for e in (env, clean))
    biases = np.array(biases)
    assert np.abs(biases).max() <= 0.1 + 1e-6
    assert np.abs(biases).mean() == pytest.approx(0.05, abs=0.015)
    np.testing.assert_allclose(biases[:5], np.broadcast_to(biases[:1], biases[:5].shape), atol=1e-6)
    assert np.abs(biases[4] - biases[5]).max() > 0.01
    assert len({row.tobytes() for row in biases[0].round(4)}) == 4


def test_noise_by_the_names_of_terms(backend):
    env = make([Noise({"joint_velocity": 0.5})], 64, backend=backend)
    clean = make(None, 64, backend=backend)
    added = np.asarray(env.reset(seed=0)[0]) - np.asarray(clean.reset(seed=0)[0])
    of = np.array([name.startswith("joint_velocity/") for name in env.observation_names])
    assert (added[:, ~of] == 0).all()
    assert added[:, of].std() == pytest.approx(0.5, rel=0.1)
    with pytest.raises(ValueError, match="Noise has 'joint_velocty', which is no term.*near: 'joint_velocity'"):
        make([Noise({"joint_velocty": 0.5})])


def test_a_force_is_sustained_and_pushes(backend):
    env = make([Force(50.0, every=(0.2, 0.4))], 6, backend=backend, max_episode_steps=12)
    env.reset(seed=0)
    sim, told = env.simulation, []
    for _ in range(24):
        told.append(np.array(sim.xfrc_applied[:, 1]))
        env.step(np.zeros((6, 8), np.float32))
    told = np.array(told)
    assert (told[:, :, 2:] == 0).all()
    size = np.linalg.norm(told[:, :, :2], axis=2)
    assert (size > 0).all()
    assert size.max() <= 50
    changes = (np.diff(told, axis=0) != 0).any(axis=2).mean()
    assert 1 / 9 < changes < 1 / 3  # every 4 to 8 steps of 0.05 s, and where episodes begin
    other = make(None, 6, max_episode_steps=12)
    other.reset(seed=0)
    for _ in range(3):
        other.step(np.zeros((6, 8), np.float32))
    pushed = make([Force(50.0, every=(9.0, 9.0))], 6)
    pushed.reset(seed=0)
    force = np.array(pushed.simulation.xfrc_applied[:, 1, :2])
    for _ in range(3):
        pushed.step(np.zeros((6, 8), np.float32))
    moved = pushed.simulation.qpos[:, :2] - other.simulation.qpos[:, :2]
    assert ((moved * force).sum(axis=1) > 0).all()


# ---- places


def test_places_differ_and_free_bodies_are_left_alone():
    env = make([Parameter("body_pos", 0.9, 1.1, each=True), Parameter("body_ipos", -0.01, 0.01, operation="add")], 8)
    env.reset(seed=0)
    params, model = env.simulation.params, env.simulation.model
    np.testing.assert_array_equal(params.body_pos[:, :2], np.broadcast_to(model.body_pos[:2], (8, 2, 3)))
    legs = params.body_pos[:, 2:] - model.body_pos[2:]
    assert np.ptp(legs, axis=0)[model.body_pos[2:] != 0].min() > 0.01
    shift = params.body_ipos[:, 1:] - model.body_ipos[1:]
    np.testing.assert_allclose(shift, np.broadcast_to(shift[:, :1], shift.shape), atol=1e-6)
    assert np.ptp(shift, axis=(0, 1)).min() > 0.01


REACH = """<mujoco><worldbody><body pos="0 0 1"><joint name="a" axis="0 1 0"/><geom size=".05" pos=".1 0 0"/>
  <body name="wrist" pos=".2 0 0"><joint name="b" axis="0 1 0"/><geom size=".05" pos=".1 0 0"/><site name="tip" pos=".2 0 0"/></body>
  </body></worldbody><actuator><motor joint="a"/></actuator></mujoco>"""  # noqa: E501


class Reach(stiction.Task):
    model = REACH

    def observe(self):
        return {"tip": self.sensors.site_pose("tip")[0]}

    def reward(self, action):
        return self.sensors.site_pose("tip")[0][:, 2]


class Extended(stiction.Task):
    base = "stiction/ArmLift-v0"

    def observe(self):
        return {"hand": self.sensors.body_pose(self.sim.model.body_names[-2])[0]}


@pytest.mark.parametrize("task", ["stiction/ArmLift-v0", Reach, Extended])
def test_the_first_observation_tells_of_the_places_of_its_episode(task, backend):
    """Before anything has moved: the numbers drawn with this beginning, not those of the episode before."""
    if task is Extended and backend == "torch":
        pytest.skip("extensions are NumPy's")
    terms = [Parameter("body_pos", -0.03, 0.03, operation="add", each=True, names=None)]
    if task is Reach:
        terms.append(Parameter("site_pos", -0.03, 0.03, operation="add", names=("tip",)))
    env, plain = (make(t, 3, task, max_episode_steps=4, backend=backend) for t in (terms, None))
    first, without, again = (np.array(e.reset(seed=0)[0]) for e in (env, plain, env))
    assert np.abs(first - without).max() > 1e-3
    np.testing.assert_array_equal(again, first)
    if task is not Reach:
        return
    seen = []
    for _ in range(8):  # and where episodes begin in a step
        action = np.zeros(env.action_space.shape, np.float32)
        seen.append((np.array(env.step(action)[0]), np.array(env.simulation.site_xpos[:, 0])))
    for told, there in seen:
        np.testing.assert_allclose(told, there, atol=1e-6)
    assert np.abs(seen[3][0] - first).max() > 1e-3


@pytest.mark.parametrize("each", [False, True])
def test_places_move_in_any_direction(each):
    env = make([Parameter("body_ipos", -0.02, 0.02, operation="add", each=each)], 64)
    env.reset(seed=0)
    moved = np.array(env.simulation.params.body_ipos)[:, 1:] - env.simulation.model.body_ipos[1:]
    assert np.abs(moved).max() <= 0.02 + 1e-6
    for body in range(2):
        assert np.all(np.abs(np.corrcoef(moved[:, body].T) - np.eye(3)) < 0.4)
    assert each == (np.ptp(moved, axis=1).max() > 1e-6)
