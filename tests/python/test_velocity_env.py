"""The velocity tasks: every term against its formula on MuJoCo's quantities, its events, and robots of others."""

from dataclasses import dataclass

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from model_sources import MENAGERIE, data_file  # noqa: E402
from stiction.registration import asset_path  # noqa: E402
from task_walks import forward, make, random_walk  # noqa: E402

NAME = "QuadrupedVelocity"
FEET = ("LF_foot", "RF_foot", "LH_foot", "RH_foot")


def group_forces(sim, env, groups):
    """Norm of the sum of contact forces on each list of geoms, N."""
    contact, sums = sim.contact, np.zeros((len(groups), 3))
    for c in range(contact.count[env]):
        force = contact.frame[env, c].T @ contact.impulse[env, c] / sim.timestep
        for geom, sign in zip(contact.geom[env, c], (-1, 1), strict=True):
            for group, geoms in enumerate(groups):
                if geom in geoms:
                    sums[group] += sign * force
    return np.linalg.norm(sums, axis=1)


@dataclass
class Robot:
    """What the test knows of an environment: its feet, trunk, and the weights of the terms."""

    feet: tuple[str, ...]
    trunk: tuple[str, ...]
    weights: tuple[float, ...]
    air_time: float
    pushes: bool


ROBOTS = {
    NAME: Robot(FEET, ("trunk",), (1, 0.5, 2, 0.05, 5, 2.5e-5, 2.5e-7, 0.01, 0.5, 1, 0, 0, 0), 0.5, True),
    "HumanoidVelocity": Robot(
        ("left_foot", "right_foot"),
        ("pelvis", "torso"),
        (1, 0.5, 0, 0.05, 1, 2e-6, 1.25e-7, 0.005, 0, 1, 1, 0.1, 200),
        0.4,
        False,
    ),
}


@pytest.mark.parametrize("name", ROBOTS)
def test_every_term_is_its_formula(name):
    robot = ROBOTS[name]
    env = make(name, 6, dtype="float64", autoreset_mode="Disabled", task={"action_scale": 1.5, "command_period": 0.2})
    sim, model = env.simulation, env.simulation.model
    data, dt, n, legs = mujoco.MjData(model.mjmodel), env.step_dt, model.nu, len(robot.feet)
    assert dt == pytest.approx(0.02)
    feet = [[model.geom_id(name)] for name in robot.feet]
    trunk_bodies = [model.body_id(name) for name in robot.trunk]
    trunk = np.flatnonzero(np.isin(model.geom_bodyid, trunk_bodies))
    limbs = [
        [g for g in np.flatnonzero(model.geom_bodyid == b) if [g] not in feet]
        for b in range(1, model.nbody)
        if b not in trunk_bodies
    ]
    stand, last, phase = model.key_qpos[0, 7:], np.zeros((6, n)), np.zeros((6, legs))
    before = np.zeros((6, n))
    ends = touches = undesired_seen = airborne = stances = 0
    for action, (obs, reward, terminated, _, infos) in random_walk(env, 120):
        for e in range(6):
            forward(model.mjmodel, data, sim, e, sim.ctrl[e])
            turn = data.xmat[1].reshape(3, 3).T
            velocity, rate, gravity = turn @ sim.qvel[e, :3], sim.qvel[e, 3:6], turn @ (0, 0, -1)
            command = np.array([infos[f"command_{axis}"][e] for axis in ("x", "y", "yaw")])
            joints, speeds = sim.qpos[e, 7:] - stand, sim.qvel[e, 6:]
            expected = np.concatenate([velocity, rate, gravity, command, joints, speeds, action[e]])
            np.testing.assert_allclose(obs[e], expected, atol=1e-12)
            np.testing.assert_allclose(sim.ctrl[e], stand + 1.5 * action[e], atol=1e-12)

            moving = (command[:2] != 0).any()
            touch = group_forces(sim, e, feet) > 1
            landed = touch & (phase[e] > 0)  # seconds in the air, or less than 0: on the ground
            air_time = ((phase[e] - robot.air_time) * landed).sum() * moving
            phase[e] = np.where(touch, np.minimum(phase[e], 0) - dt, np.maximum(phase[e], 0) + dt)
            stance = min(robot.air_time, np.abs(phase[e]).min()) if touch.sum() == 1 and moving else 0
            undesired = (group_forces(sim, e, limbs) > 1).sum()
            fallen = group_forces(sim, e, [trunk])[0] > 1
            terms = {
                "linear_tracking": np.exp(-((command[:2] - velocity[:2]) ** 2).sum() / 0.25),
                "yaw_tracking": np.exp(-((command[2] - rate[2]) ** 2) / 0.25),
                "vertical_velocity": -(velocity[2] ** 2),
                "roll_pitch_rate": -(rate[:2] ** 2).sum(),
                "tilt": -(gravity[:2] ** 2).sum(),
                "torque": -(data.qfrc_actuator[6:] ** 2).sum(),
                "acceleration": -(((speeds - before[e]) / dt) ** 2).sum(),
                "action_rate": -((action[e] - last[e]) ** 2).sum(),
                "air_time": air_time,
                "undesired_contact": -1.0 * undesired,
                "single_stance": stance,
                "joint_deviation": -np.abs(joints).sum(),
                "fall": -1.0 * fallen,
            }
            assert [f"reward_{term}" for term in terms] == list(env.reward_names)
            weighted = np.array(list(terms.values())) * robot.weights * dt
            for term, value in zip(terms, weighted, strict=True):
                assert infos[f"reward_{term}"][e] == pytest.approx(value, rel=1e-9, abs=1e-12), term
            assert reward[e] == pytest.approx(weighted.sum(), rel=1e-9)
            assert terminated[e] == fallen
            assert infos["velocity_error"][e] == pytest.approx(np.linalg.norm(command[:2] - velocity[:2]))
            assert infos["feet_in_touch"][e] == touch.sum()
            airborne += landed.any()
            touches += touch.sum()
            undesired_seen += undesired
            stances += stance > 0
        last, before = action.copy(), sim.qvel[:, 6:].copy()
        ends += terminated.sum()
        if terminated.any():
            env.reset(options={"reset_mask": terminated})
            last[terminated] = phase[terminated] = 0
            before[terminated] = sim.qvel[terminated, 6:]
    assert min(ends, airborne, undesired_seen, stances) >= 3
    assert touches > 200


def test_commands_are_drawn_anew_and_small_ones_are_to_stand():
    env = make(NAME, 512, task={"command_period": 0.1, "curriculum_start": 1, "command_x": (-0.5, 2)})
    env.reset(seed=0)
    still, seen, before = np.zeros((512, 12)), [], None
    for t in range(1, 16):
        infos = env.step(still)[4]
        commands = np.stack([infos[f"command_{axis}"] for axis in ("x", "y", "yaw")], axis=1)
        if before is not None:
            changed = (commands != before).any(axis=1) & (env.episode_length == t)
            assert changed.sum() == (0 if t % 5 != 1 else (env.episode_length == t).sum()), t
        before = commands
        seen.append(commands)
    seen = np.concatenate(seen)
    speed = np.linalg.norm(seen[:, :2], axis=1)
    assert not ((speed > 0) & (speed < 0.2)).any()
    assert (speed == 0).sum() > 100
    moving = seen[speed > 0]
    np.testing.assert_allclose(moving.min(axis=0), (-0.5, -1, -1), atol=0.02)
    np.testing.assert_allclose(moving.max(axis=0), (2, 1, 1), atol=0.02)


def test_pushes_come_when_they_are_due():
    pushed, calm = (make(NAME, 4, task={"push_interval": (0.1, 0.2), "push_velocity": v}) for v in (0.8, 0))
    pushed.reset(seed=3), calm.reset(seed=3)
    for t in range(1, 12):
        a, b = pushed.step(np.zeros((4, 12)))[0], calm.step(np.zeros((4, 12)))[0]
        if t <= 5:
            np.testing.assert_array_equal(a, b)
    assert (np.abs(a - b).max(axis=1) > 0.05).all()
    assert np.abs(pushed.simulation.qvel[:, :2] - calm.simulation.qvel[:, :2]).max() < 2.5


def test_commands_grow_with_what_is_tracked():
    """Whole episodes that track raise the level by a tenth; short ones and bad ones do not; a new seed begins again."""
    easy = make(NAME, 2, task={"tracking_sigma": 1e3, "push_velocity": 0})
    hard = make(NAME, 2, task={"tracking_sigma": 1e-3, "push_velocity": 0})
    for env, levels in ((easy, [0.1, 0.2]), (hard, [0])):
        _, infos = env.reset(seed=0)
        assert (infos["curriculum"] == 0).all()
        for level in levels:
            for _ in range(1000):
                _, _, terminated, truncated, infos = env.step(np.zeros((2, 12)))
                assert not terminated.any()
            assert truncated.all()
            np.testing.assert_allclose(infos["curriculum"], level, atol=1e-6)
    easy.episode_length[:] = 999  # an episode of one step
    infos = easy.step(np.zeros((2, 12)))[4]
    np.testing.assert_allclose(infos["curriculum"], 0.2, atol=1e-6)
    assert (easy.reset(seed=0)[1]["curriculum"] == 0).all()


def stands(env, height):
    """Standing targets hold the robot on its feet for three seconds."""
    n = env.single_action_space.shape[0]
    env.reset(seed=0)
    for _ in range(150):
        obs, _, terminated, _, infos = env.step(np.zeros((env.num_envs, n)))
        assert not terminated.any()
    assert (infos["feet_in_touch"] == 4).all()
    assert (infos["reward_undesired_contact"] == 0).all()
    np.testing.assert_allclose(infos["trunk_height"], height, atol=0.02)
    assert np.abs(obs[:, :6]).max() < 0.15
    np.testing.assert_allclose(obs[:, 6:9], np.broadcast_to((0, 0, -1), (env.num_envs, 3)), atol=0.05)


QUIET = {"push_velocity": 0, "start_velocity": (0, 0)}


def test_our_robot_stands():
    stands(make(NAME, 8, task=QUIET), 0.562)


@pytest.mark.parametrize(
    ("file", "feet", "height"),
    [
        ("anybotics_anymal_c/scene.physics.xml", ("LF_SHANK", "RF_SHANK", "LH_SHANK", "RH_SHANK"), 0.629),
        ("unitree_go1/scene.physics.xml", ("FL", "FR", "RL", "RR"), 0.279),
    ],
)
def test_robots_of_others_stand(file, feet, height):
    path = data_file(MENAGERIE + file)
    env = make(NAME, 8, model=path, names={"feet": feet}, task=QUIET)
    assert env.single_observation_space.shape == (48,)
    assert env.step_dt == pytest.approx(0.02)
    stands(env, height)
    model = stiction.Model.from_mjcf(path)
    for _, (obs, reward, *_) in random_walk(make(NAME, 32, model=model, names={"feet": feet}), 30):
        assert np.isfinite(obs).all()
        assert np.isfinite(reward).all()


def test_joints_are_in_the_order_that_is_asked_for():
    model = make(NAME).simulation.model
    order = list(reversed([model.joint_names[j] for j in model.actuator_trnid]))
    usual, turned = make(NAME, 3, dtype="float64"), make(NAME, 3, dtype="float64", names={"joints": order[:5]})
    assert turned.single_action_space.shape == (5,)
    usual.reset(seed=0), turned.reset(seed=0)
    noisy = usual.simulation.get_state()
    turned.simulation.qpos[:], turned.simulation.qvel[:] = noisy.qpos, noisy.qvel
    action = np.random.default_rng(0).uniform(-1, 1, (3, 12))
    action[:, :7] = 0
    a, b = usual.step(action)[0], turned.step(action[:, :6:-1])[0]
    np.testing.assert_allclose(b[:, :9], a[:, :9], atol=1e-12)
    for block in range(3):
        ours, theirs = b[:, 12 + 5 * block : 17 + 5 * block], a[:, 12 + 12 * block : 24 + 12 * block]
        np.testing.assert_allclose(ours, theirs[:, :6:-1], atol=1e-12)


ROBOT = """<mujoco><worldbody>{floor}<body name="base" pos="0 0 0.5">{joint}<geom name="box" size="0.1"/>
<body name="leg"><joint name="hip" type="{type}" axis="0 1 0"/><geom name="shank" size="0.05" pos="0 0 -0.3"/></body>
{more}</body></worldbody><actuator>{servo}</actuator></mujoco>"""
PARTS = {
    "floor": '<geom name="floor" type="plane" size="1 1 1"/>',
    "joint": "<freejoint/>",
    "type": "hinge",
    "servo": '<position name="servo" joint="hip" kp="10"/>',
    "more": "",
}


@pytest.mark.parametrize(
    ("change", "names", "text"),
    [
        ({}, {}, r"name the robot's feet: names=\{'feet'.*bodies: .*'leg'; geoms: .*'shank'"),
        ({}, {"feet": "foot"}, "'feet'.* has 'foot', but the model has no such geom or body; geoms: .*'shank'.*'leg'"),
        ({}, {"feet": "leg", "hands": "leg"}, "no 'hands' to be named; names are for 'trunk', 'feet'"),
        ({}, {"feet": "leg", "trunk": "body"}, "'trunk'.* has 'body', but the model has no such body; .*'base'"),
        ({}, {"feet": "leg", "trunk": "leg"}, "'trunk'.* has 'leg', which has no geom that can touch anything"),
        ({}, {"feet": "leg", "keyframe": ("a", "b")}, "'keyframe'.* has 2 entries, expected one"),
        ({}, {"feet": "leg", "undesired": ["arm"]}, "'undesired'.* has 'arm', but the model has no such body"),
        ({}, {"feet": "leg", "undesired": ["base"]}, "'undesired'.* has 'base', expected a body of the limbs"),
        ({}, {"feet": "leg", "joints": ["knee"]}, "'joints'.* has 'knee', but the model has no such joint; .*'hip'"),
        ({}, {"feet": "leg", "joints": ["hip", "hip"]}, "'joints'.* has 'hip' twice"),
        ({}, {"feet": "leg", "keyframe": "home"}, "'keyframe'.* has 'home', but .*; there are: none with a name"),
        ({"floor": ""}, {"feet": "leg"}, "nothing to stand on: add a floor"),
        ({"joint": ""}, {"feet": "leg"}, "no free joint: give the robot's trunk a <freejoint/>"),
        ({"type": "slide"}, {"feet": "leg"}, "'servo'.* does not drive a hinge"),
        ({"servo": '<motor name="m" joint="hip"/>'}, {"feet": "leg"}, "'m'.* is no position servo"),
        ({"servo": ""}, {"feet": "leg"}, "no joints to move"),
        ({"more": '<body name="ghost"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>'},
         {"feet": "ghost"}, "the foot 'ghost' has no geom that can touch"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(change, names, text):
    with pytest.raises(ValueError, match=text):
        make(NAME, model=ROBOT.format(**PARTS | change), names=names)


def test_a_smaller_robot_is_bound():
    env = make(NAME, 2, model=ROBOT.format(**PARTS), names={"feet": "shank"})
    assert env.single_observation_space.shape == (15,)
    assert env.single_action_space.shape == (1,)
    env.reset(seed=0)
    for _ in range(20):
        obs, reward, *_ = env.step(np.ones((2, 1)))
        assert np.isfinite(obs).all()
        assert np.isfinite(reward).all()
    np.testing.assert_allclose(env.simulation.ctrl, 0.5)


@pytest.mark.parametrize(
    ("names", "text"), [("feet", "names is str"), ({"feet": 3}, "'feet'.* is 3"), ({1: "a"}, "the key 1")]
)
def test_names_are_names(names, text):
    with pytest.raises(TypeError, match=text):
        make(NAME, names=names)


def test_a_task_about_one_robot_takes_its_variants_only():
    with pytest.raises(TypeError, match="'names' is not an option of stiction/Ant-v0"):
        make("Ant", names={"feet": "leg"})
    with pytest.raises(ValueError, match="the model has 6 positions .nq., but task 'ant' expects 15"):
        make("Ant", model=asset_path("hopper.xml"))
    heavier = asset_path("ant.xml").read_text().replace('density="5"', 'density="10"')
    envs, usual = make("Ant", model=heavier), make("Ant")
    np.testing.assert_allclose(envs.simulation.model.body_mass, 2 * usual.simulation.model.body_mass, rtol=1e-12)
    assert np.isfinite(envs.reset(seed=0)[0]).all()
