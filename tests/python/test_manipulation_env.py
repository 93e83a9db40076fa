"""The arm tasks: every term against its formula on MuJoCo's quantities, scripts that do them, and arms of others."""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from arm_script import ArmScript, cube_yaw  # noqa: E402
from model_sources import MENAGERIE, data_file  # noqa: E402
from task_walks import forward, make, random_walk  # noqa: E402

LIFT, STACK = "ArmLift", "ArmStack"
ARM = [f"joint{i}" for i in range(1, 8)]


def finger_forces(sim, env, geoms):
    """Norm of the sum of contact forces on each geom, N."""
    contact, sums = sim.contact, np.zeros((len(geoms), 3))
    for c in range(contact.count[env]):
        force = contact.frame[env, c].T @ contact.impulse[env, c] / sim.timestep
        for geom, sign in zip(contact.geom[env, c], (-1, 1), strict=True):
            if geom in geoms:
                sums[geoms.index(geom)] += sign * force
    return np.linalg.norm(sums, axis=1)


def kernel(distance, scale):
    return 1 - np.tanh(distance / scale)


def expect_terms(env, infos, e, terms, weights, reward):
    """Each term of the reward, and that it is their sum."""
    assert [f"reward_{term}" for term in terms] == list(env.reward_names)
    weighted = np.array(list(terms.values())) * weights * env.step_dt
    for term, value in zip(terms, weighted, strict=True):
        assert infos[f"reward_{term}"][e] == pytest.approx(value, rel=1e-9, abs=1e-12), term
    assert reward[e] == pytest.approx(weighted.sum(), rel=1e-9)


def observed_arm(sim, model, e, last):
    """The arm's part of the observation: seven joints, two fingers, eight actions."""
    joints = sim.qpos[e, :7] - model.key_qpos[0, :7]
    return np.concatenate([joints, sim.qvel[e, :7], sim.qpos[e, 7:9], sim.qvel[e, 7:9], last])


def arm_costs(sim, e, action, last):
    return {"action_rate": -((action - last) ** 2).sum(), "joint_velocity": -(sim.qvel[e, :7] ** 2).sum()}


def expect_controls(sim, model, e, action):
    np.testing.assert_allclose(sim.ctrl[e, :7], model.key_qpos[0, :7] + 0.5 * action[:7], atol=1e-12)
    assert sim.ctrl[e, 7] == (0.04 if action[7] >= 0 else 0)


# ---- lifting


@pytest.mark.parametrize("within", [0.1, 10])
def test_every_term_of_lifting_is_its_formula(within):
    env = make(LIFT, 6, dtype="float64", autoreset_mode="Disabled", task={"lift_reach": within})
    sim, model, random = env.simulation, env.simulation.model, np.random.default_rng(2)
    data, last = mujoco.MjData(model.mjmodel), np.zeros((6, 8))
    fingers = [model.geom_id("left_finger"), model.geom_id("right_finger")]
    assert env.step_dt == pytest.approx(0.02)
    lifted, touched, near = 0, 0, 0
    for t, (action, (obs, reward, terminated, truncated, infos)) in enumerate(random_walk(env, 90, 0.3)):
        for e in range(6):
            forward(model.mjmodel, data, sim, e)
            cube, grasp = data.body("cube").xpos, data.site("grasp").xpos
            goal = np.array([infos[f"goal_{axis}"][e] for axis in "xyz"])
            expected = [
                observed_arm(sim, model, e, action[e]),
                sim.qpos[e, 9:],
                sim.qvel[e, 9:],
                cube - grasp,
                goal - cube,
            ]
            np.testing.assert_allclose(obs[e], np.concatenate(expected), atol=1e-12)
            expect_controls(sim, model, e, action[e])
            away, distance = np.linalg.norm(cube - grasp), np.linalg.norm(goal - cube)
            up = cube[2] > 0.045 and away < within
            terms = {
                "reach": kernel(away, 0.1),
                "lift": up,
                "goal": up * kernel(distance, 0.3),
                "goal_fine": up * kernel(distance, 0.05),
                **arm_costs(sim, e, action[e], last[e]),
            }
            expect_terms(env, infos, e, terms, (1, 15, 16, 5, 1e-4, 1e-4), reward)
            touching = (finger_forces(sim, e, fingers) > 0.1).sum()
            told = {
                "grasp_distance": away,
                "goal_distance": distance,
                "cube_height": cube[2] - 0.025,
                "touching": touching,
                "is_lifted": up,
                "is_success": up and distance < 0.02,
            }
            for name, value in told.items():
                assert infos[name][e] == pytest.approx(float(value), rel=1e-9, abs=1e-12), name
            lifted, touched, near = lifted + up, touched + touching, near + told["is_success"]
        assert not terminated.any()
        assert not truncated.any()
        last = action.copy()
        if t % 15 == 0:  # cubes into the grippers and to the goals
            sim.qpos[:, 9:12] = obs[:, 26:29] - obs[:, 39:42]
            sim.qpos[::2, 9:12] = obs[::2, 26:29] + obs[::2, 42:45] + random.uniform(-0.02, 0.02, (3, 3))
            sim.qpos[:, 12:16], sim.qvel[:, 9:] = (1, 0, 0, 0), random.uniform(-1, 1, (6, 6))
    assert min(lifted, touched) > 50
    assert near >= (5 if within > 1 else 0)


def test_a_cube_that_fell_ends_the_episode():
    env = make(LIFT, 3, autoreset_mode="Disabled", task={"fall_depth": -0.1})  # ends below 0.1 m above its place
    env.reset(seed=0)
    env.simulation.qpos[:, 11] = (0.2, 0.14, 0.126)
    ended = np.zeros(3, bool)
    while not ended.all():
        _, _, terminated, _, infos = env.step(np.zeros((3, 8)))
        np.testing.assert_array_equal(terminated, infos["cube_height"] < 0.1)
        ended |= terminated
        env.reset(options={"reset_mask": terminated}) if terminated.any() else None
        env.simulation.qpos[terminated, 11] = 1
    assert ended.all()


def test_a_gripper_is_open_or_closed_or_between():
    binary, between = make(LIFT, 3), make(LIFT, 3, task={"binary_gripper": False})
    turned = make(LIFT, 3, task={"gripper_open": 0, "gripper_closed": 1})
    action = np.zeros((3, 8))
    action[:, 7] = (-1, -0.5, 0.5)
    for env, expected in ((binary, (0, 0, 0.04)), (between, (0, 0.01, 0.03)), (turned, (0.04, 0.04, 0))):
        env.reset(seed=0)
        env.step(action)
        np.testing.assert_allclose(env.simulation.ctrl[:, 7], expected, atol=1e-8)


def flat_contacts_alone(sim, cubes):
    """Nothing touches but cubes the floor, and nothing overlaps."""
    floor, contact = sim.model.geom_id("floor"), sim.contact
    for e in range(sim.num_envs):
        for c in range(contact.count[e]):
            assert floor in contact.geom[e, c]
            assert set(contact.geom[e, c]) & set(cubes)
            assert contact.dist[e, c] > -1e-6


def test_lifting_begins_apart():
    env = make(LIFT, 1024)
    _, infos = env.reset(seed=0)
    sim = env.simulation
    sim.forward()
    place, goal = sim.qpos[:, 9:12], np.stack([infos[f"goal_{axis}"] for axis in "xyz"], axis=1)
    np.testing.assert_allclose(place.min(axis=0), (0.4, -0.25, 0.025), atol=0.003)
    np.testing.assert_allclose(place.max(axis=0), (0.6, 0.25, 0.025), atol=0.003)
    np.testing.assert_allclose(goal.min(axis=0), (0.4, -0.25, 0.25), atol=0.003)
    np.testing.assert_allclose(goal.max(axis=0), (0.6, 0.25, 0.5), atol=0.003)
    yaw = 2 * np.arctan2(sim.qpos[:, 15], sim.qpos[:, 12])
    np.testing.assert_allclose((yaw.min(), yaw.max()), (-np.pi / 4, np.pi / 4), atol=0.01)
    env.step(np.zeros((1024, 8)))
    flat_contacts_alone(sim, [sim.model.geom_id("cube")])


def lifted_by_script(env, arm, creep, grasp="grasp", closing=15, rising=50):
    """The cubes are taken, lifted to their goals and held for two seconds, in which they creep ``creep`` m at most."""
    _, infos = env.reset(seed=0)
    sim, cube = env.simulation, env.simulation.model.jnt_qposadr[-1]
    goal, pose = np.stack([infos[f"goal_{axis}"] for axis in "xyz"], axis=1), sim.qpos[:, cube:].astype(float)
    place, yaw, still = pose[:, :3], cube_yaw(pose), np.zeros(env.num_envs)
    hand = ArmScript(env, arm, grasp)
    residual, overlap = [], []

    def seen(_):
        residual.append(sim.certificate.r_con / sim.certificate.scale)
        overlap.append(sim.certificate.penetration.max())

    hand.move(place + (0, 0, 0.1), yaw, 1, 40)
    hand.move(place, yaw, 1, 50)
    hand.move(place, yaw, -1, closing, seen)
    hand.move(goal, still, -1, rising, seen)
    assert (hand.infos["touching"] == 2).all()
    hand.move(goal, still, -1, 20, seen)
    held = hand.results[0][:, -6:-3].copy()
    for _ in range(100):
        hand.move(goal, still, -1, 1, seen)
        assert (hand.infos["is_lifted"] == 1).all()
    slip = np.abs(hand.results[0][:, -6:-3] - held).max()
    residual = np.array(residual)
    print(
        f"creep {1e6 * slip:.1f} um; r_con/V p50 {np.median(residual):.1e}, p99 {np.quantile(residual, 0.99):.1e}"
        f", max {residual.max():.1e}; overlap {1e3 * max(overlap):.2f} mm"
    )
    assert slip <= creep
    assert (hand.infos["is_success"] == 1).all()
    assert np.quantile(residual, 0.99) < 2e-3
    assert max(overlap) < 1e-3
    return slip


@pytest.mark.parametrize(
    ("dtype", "solver", "creep"),
    [
        ("float32", stiction.SolverOptions(), 1e-4),
        # The normal forces of a grasp are not unique; Anderson's acceleration sometimes jumps between them in double.
        ("float64", stiction.SolverOptions(anderson=False), 4e-5),
    ],
    ids=["float32", "float64"],
)
def test_a_script_lifts_the_cube(dtype, solver, creep):
    lifted_by_script(make(LIFT, 16, dtype=dtype, solver=solver, max_episode_steps=-1), ARM, creep)


# ---- stacking


def test_every_term_of_stacking_is_its_formula():
    env = make(STACK, 6, dtype="float64", autoreset_mode="Disabled", task={"fall_depth": 0.01})
    sim, model, random = env.simulation, env.simulation.model, np.random.default_rng(2)
    data, last = mujoco.MjData(model.mjmodel), np.zeros((6, 8))
    fingers = [model.geom_id("left_finger"), model.geom_id("right_finger")]
    lifted, touched, placed, near, ends = 0, 0, 0, 0, 0
    for t, (action, (obs, reward, terminated, _, infos)) in enumerate(random_walk(env, 90, 0.1)):
        for e in range(6):
            forward(model.mjmodel, data, sim, e)
            cube, base, grasp = data.body("cube").xpos, data.body("base").xpos, data.site("grasp").xpos
            away = base + (0, 0, 0.05) - cube
            poses = [sim.qpos[e, 9:16], sim.qvel[e, 9:15], sim.qpos[e, 16:], sim.qvel[e, 15:]]
            expected = [observed_arm(sim, model, e, action[e]), *poses, cube - grasp, away]
            np.testing.assert_allclose(obs[e], np.concatenate(expected), atol=1e-12)
            expect_controls(sim, model, e, action[e])
            up, distance = cube[2] > 0.065 and np.linalg.norm(cube - grasp) < 0.1, np.linalg.norm(away)
            touching = (finger_forces(sim, e, fingers) > 0.1).sum()
            on_top = np.linalg.norm(away[:2]) < 0.02 and abs(away[2]) < 0.005
            success = on_top and touching == 0 and np.linalg.norm(sim.qvel[e, 9:12]) < 0.05
            terms = {
                "reach": kernel(np.linalg.norm(cube - grasp), 0.1),
                "lift": up,
                "over": up * kernel(distance, 0.3),
                "over_fine": up * kernel(distance, 0.03),
                "let_go": on_top * (1 + action[e, -1] / 3) / 2,
                "placed": success,
                **arm_costs(sim, e, action[e], last[e]),
            }
            expect_terms(env, infos, e, terms, (0.1, 1.5, 4, 4, 12, 16, 1e-4, 1e-4), reward)
            told = {
                "grasp_distance": np.linalg.norm(cube - grasp),
                "place_distance": distance,
                "cube_height": cube[2] - 0.025,
                "touching": touching,
                "is_lifted": up,
                "is_on_top": on_top,
                "is_success": success,
            }
            for name, value in told.items():
                assert infos[name][e] == pytest.approx(float(value), rel=1e-9, abs=1e-12), name
            assert terminated[e] == (min(cube[2], base[2]) < 0.015)
            lifted, touched, placed, near = lifted + up, touched + touching, placed + success, near + on_top
        last = action.copy()
        ends += terminated.sum()
        if terminated.any():
            env.reset(options={"reset_mask": terminated})
            last[terminated] = 0
        if t % 15 == 0:  # cubes into the grippers, onto the others, below the floor
            sim.qpos[:3, 9:12] = (obs[:, 26:29] - obs[:, 52:55])[:3]
            sim.qpos[3:, 9:11] = sim.qpos[3:, 16:18] + random.uniform(-0.012, 0.012, (3, 2))
            sim.qpos[3:, 11], sim.qpos[t % 3, 18] = 0.0751, -0.3
            sim.qpos[:, 12:16], sim.qvel[:, 9:15] = (1, 0, 0, 0), 0
            sim.qvel[3, 9] = 0.5  # and one of them slides
    assert min(lifted, touched, placed) > 50
    assert near > placed
    assert ends >= 5


def test_stacking_begins_apart():
    env, narrow = make(STACK, 1024), make(STACK, 64, task={"cube_x": (0, 0), "cube_y": (-0.02, 0.02)})
    for each in (env, narrow):
        each.reset(seed=0)
        sim = each.simulation
        gap = np.linalg.norm(sim.qpos[:, 9:11] - sim.qpos[:, 16:18], axis=1)
        assert gap.min() > 0.1 - 1e-6
        each.step(np.zeros(each.action_space.shape))
        flat_contacts_alone(sim, [sim.model.geom_id("cube"), sim.model.geom_id("base_cube")])
    place = env.simulation.qpos[:, (9, 10, 16, 17)]
    np.testing.assert_allclose(place.min(axis=0), (0.4, -0.25, 0.4, -0.25), atol=0.003)
    np.testing.assert_allclose(place.max(axis=0), (0.6, 0.25, 0.6, 0.25), atol=0.003)


def test_a_script_stacks_the_cubes():
    """The first cubes are put upon the second and let go; the stacks stand for two seconds."""
    env = make(STACK, 16, max_episode_steps=-1)
    env.reset(seed=0)
    sim, at = env.simulation, env.simulation.model.jnt_qposadr[-2]
    cube, base = (sim.qpos[:, i : i + 7].astype(float) for i in (at, at + 7))
    place, yaw, top, turn = cube[:, :3], cube_yaw(cube), base[:, :3] + (0, 0, 0.05), cube_yaw(base)
    hand, residual, overlap = ArmScript(env, ARM), [], []

    def seen(_):
        residual.append(sim.certificate.r_con / sim.certificate.scale)
        overlap.append(sim.certificate.penetration.max())

    hand.move(place + (0, 0, 0.1), yaw, 1, 40)
    hand.move(place, yaw, 1, 50)
    hand.move(place, yaw, -1, 15, seen)
    hand.move(place + (0, 0, 0.12), yaw, -1, 40, seen)
    hand.move(top + (0, 0, 0.07), turn, -1, 50, seen)
    assert (hand.infos["is_on_top"] == 0).all()
    hand.move(top + (0, 0, 0.002), turn, -1, 60, seen)
    assert (hand.infos["is_on_top"] == 1).all()
    assert (hand.infos["is_success"] == 0).all()  # it is still held
    hand.move(top + (0, 0, 0.002), turn, 1, 15, seen)
    hand.move(top + (0, 0, 0.12), turn, 1, 40, seen)
    assert (hand.infos["is_success"] == 1).all()
    stack = sim.qpos[:, at:].copy()
    for _ in range(100):
        hand.move(top + (0, 0, 0.12), turn, 1, 1, seen)
        assert (hand.infos["is_success"] == 1).all()
    creep = np.abs(sim.qpos[:, at:] - stack).max()
    print(
        f"creep {1e6 * creep:.1f} um, {1e3 * hand.infos['place_distance'].max():.1f} mm from the middle; r_con/V"
        f" p50 {np.median(residual):.1e}, p99 {np.quantile(residual, 0.99):.1e}, max {np.max(residual):.1e};"
        f" overlap {1e3 * max(overlap):.2f} mm"
    )
    assert creep < 1e-5
    assert max(overlap) < 1e-3


@pytest.mark.parametrize("name", [LIFT, STACK])
def test_random_flailing_is_survived(name):
    """10^5 steps of the arm: nothing that is not finite, no contacts without a slot."""
    env = make(name, 500)
    for _, (obs, reward, _, _, infos) in random_walk(env, 200):
        assert np.isfinite(obs).all()
        assert np.isfinite(reward).all()
        status = infos["status"] | infos.get("final_info", {}).get("status", 0)
        assert not (status & (stiction.Status.NON_FINITE | stiction.Status.CONTACT_OVERFLOW)).any()


# ---- arms of others


def panda(cubes):
    """Menagerie's Panda, the file with a box at each fingertip, on a floor with so many cubes."""
    spec = mujoco.MjSpec.from_file(str(data_file(MENAGERIE + "franka_emika_panda/mjx_panda.physics.xml")))
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(5, 5, 5))
    for i in range(cubes):
        cube = spec.worldbody.add_body(name=f"cube{i}", pos=(0.5, 0, 0.025))
        cube.add_freejoint()
        cube.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=(0.025, 0.025, 0.025), mass=0.1)
    for key in list(spec.keys):
        spec.delete(key)
    arm = (0, -0.0418, 0, -2.3343, 0, 2.2925, -0.7854)
    spec.add_key(name="home", qpos=np.concatenate([arm, (0.04, 0.04), *cubes * [(0.5, 0, 0.025, 1, 0, 0, 0)]]))
    return spec.compile()


PANDA = {"arm": ARM, "gripper": "actuator8", "fingers": ("finger_joint1", "finger_joint2"), "grasp": "gripper"}


def test_menageries_panda_lifts_the_cube():
    model = stiction.Model.from_mjmodel(panda(1))
    names, loose = PANDA | {"cubes": "cube0"}, {"success_distance": 0.04}  # its servos give way to its weight
    env = make(LIFT, 8, model=model, names=names, max_episode_steps=-1, task=loose)
    assert env.single_observation_space.shape == (45,)
    lifted_by_script(env, ARM, 1e-4, "gripper", closing=40)
    found = make(LIFT, 8, model=model, names={"grasp": "gripper"})  # the rest has no need of names
    np.testing.assert_array_equal(found.reset(seed=0)[0], env.reset(seed=0)[0])
    pair = make(STACK, 8, model=stiction.Model.from_mjmodel(panda(2)), names=PANDA | {"cubes": ("cube1", "cube0")})
    for _, (obs, reward, *_) in random_walk(pair, 30):
        assert obs.shape == (8, 58)
        assert np.isfinite(reward).all()
    cubes = pair.simulation.qpos[:, 9:].reshape(8, 2, 7)[:, ::-1].reshape(8, 14)  # the order of names
    np.testing.assert_array_equal(obs[:, 26:33], cubes[:, :7])
    np.testing.assert_array_equal(obs[:, 39:46], cubes[:, 7:])


SMALL = """<mujoco><worldbody>{floor}
<body name="upper" pos="0 0 0.5"><joint name="shoulder" axis="0 1 0"/>
  <geom name="upper" size="0.05" contype="0" conaffinity="0"/><site name="tip" pos="0.1 0 0"/>
  <body name="finger" pos="0.1 0 0"><joint name="slide" type="slide" axis="0 1 0" range="0 0.1" limited="true"/>
    <geom name="finger" size="0.01" {touch}/></body></body>
<body name="cube" pos="0 0 0.02">{free}<geom name="cube" type="box" size="{size}"/></body>{more}
</worldbody><actuator>{servo}{gripper}</actuator></mujoco>"""
PARTS = {
    "floor": '<geom name="floor" type="plane" size="1 1 1"/>',
    "servo": '<position name="servo" joint="shoulder" kp="10"/>',
    "gripper": '<position name="grip" joint="slide" kp="10" ctrllimited="true" ctrlrange="0 0.1"/>',
    "free": "<freejoint/>",
    "size": "0.02 0.02 0.02",
    "touch": "",
    "more": "",
}


@pytest.mark.parametrize(
    ("change", "names", "text"),
    [
        ({}, {}, r"name the point between the fingertips: names=\{'grasp'.*sites: 'tip'; bodies: .*'cube'"),
        ({}, {"grasp": "hand"}, "'grasp'.* has 'hand', but the model has no such site or body; sites: 'tip'"),
        ({}, {"grasp": ("tip", "cube")}, "'grasp'.* has 2 entries, expected one"),
        ({}, {"grasp": "tip", "legs": "a"}, "an arm .* has no 'legs' to be named; names are for 'arm', 'gripper'"),
        ({}, {"grasp": "tip", "arm": "elbow"}, "'arm'.* has 'elbow', but the model has no such joint; .*'shoulder'"),
        ({}, {"grasp": "tip", "gripper": "g"}, "'gripper'.* has 'g', but the model has no such actuator; .*'grip'"),
        ({}, {"grasp": "tip", "gripper": "servo"}, "'gripper'.* has 'servo', which drives the arm"),
        ({}, {"grasp": "tip", "fingers": "shoulder"}, "'fingers'.* has 'shoulder', expected a slide or hinge that"),
        ({}, {"grasp": "tip", "cubes": "finger"}, "the cube 'finger' has no free joint"),
        ({}, {"grasp": "tip", "cubes": ("cube", "finger")}, "handles 1 cube, got 2: name bodies"),
        ({}, {"grasp": "tip", "keyframe": "home"}, "'keyframe'.* has 'home', but .*; there are: none with a name"),
        ({"floor": ""}, {"grasp": "tip"}, "nothing to put a cube on: add a floor"),
        ({"servo": ""}, {"grasp": "tip"}, "no joints to move: no actuators"),
        ({"servo": '<motor name="m" joint="shoulder"/>'}, {"grasp": "tip"}, "'m'.* is no position servo"),
        ({"gripper": ""}, {"grasp": "tip"}, "no gripper: no actuator is left for it; name the arm's joints"),
        ({"gripper": '<position name="grip" joint="slide" kp="1"/>'}, {"grasp": "tip"}, "'grip'.* no control range"),
        ({"free": ""}, {"grasp": "tip"}, "handles 1 cube, got 0"),
        ({"size": '1 1 1" contype="0" conaffinity="0'}, {"grasp": "tip"}, "'cube' has no geom that can be touched"),
        ({"touch": 'contype="0" conaffinity="0"'}, {"grasp": "tip"}, "the finger 'slide' .*has no geom that can touch"),
    ],
)  # fmt: skip
def test_what_an_arm_lacks_is_named(change, names, text):
    with pytest.raises(ValueError, match=text):
        make(LIFT, model=SMALL.format(**PARTS | change), names=names)


def test_cubes_of_a_stack_have_equal_sides():
    base = '<body name="base"><freejoint/><geom type="box" size="0.02 0.02 0.02"/></body>'
    model = SMALL.format(**PARTS | {"size": "0.02 0.02 0.03", "more": base})
    with pytest.raises(ValueError, match="'cube' must have one geom that can be touched, a box with equal sides"):
        make(STACK, model=model, names={"grasp": "tip", "cubes": ("base", "cube")})


@pytest.mark.parametrize("size", ["0.02 0.02 0.02", "0.02 0.02 0.03"])  # what is lifted need not be a cube
def test_a_smaller_arm_is_bound(size):
    env = make(LIFT, 2, model=SMALL.format(**PARTS | {"size": size}), names={"grasp": "tip"})
    assert env.single_observation_space.shape == (2 + 2 + 2 + 19,)
    assert env.single_action_space.shape == (2,)
    for _, (obs, reward, *_) in random_walk(env, 20):
        assert np.isfinite(obs).all()
        assert np.isfinite(reward).all()
