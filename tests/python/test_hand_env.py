"""The hand task: every term against its formula on MuJoCo's quantities, its goals, and hands of others."""

from itertools import pairwise

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from model_sources import MENAGERIE, data_file  # noqa: E402
from task_walks import forward, make, random_walk  # noqa: E402

NAME = "HandReorient"
TIPS = ("index_tip", "middle_tip", "ring_tip", "thumb_tip")


def turned_by(q, p):
    """The quaternion that takes p to q in world axes, w >= 0, and its angle (rad)."""
    inverse, product, axis = np.zeros(4), np.zeros(4), np.zeros(3)
    mujoco.mju_negQuat(inverse, p)
    mujoco.mju_mulQuat(product, q, inverse)
    mujoco.mju_quat2Vel(axis, product, 1)
    return product * (1 if product[0] >= 0 else -1), np.linalg.norm(axis)


def goals_told(infos):
    return np.stack([infos[f"goal_{axis}"] for axis in "wxyz"], axis=1)


def test_every_term_is_its_formula():
    env = make(NAME, 6, dtype="float64", autoreset_mode="Disabled", task={"fall_weight": 30})
    sim, model = env.simulation, env.simulation.model
    data, home = mujoco.MjData(model.mjmodel), model.key_qpos[0]
    low, high = model.jnt_range[:16].T
    assert env.step_dt == pytest.approx(1 / 30)
    goal, goals, ends, reached_in_all = None, np.zeros(6), 0, 0
    for t, (action, (obs, reward, terminated, _, infos)) in enumerate(random_walk(env, 90)):
        next_goal = goals_told(infos)
        goal = next_goal if goal is None else goal
        for e in range(6):
            forward(model.mjmodel, data, sim, e)
            np.testing.assert_allclose(
                sim.ctrl[e],
                home[:16] + action[e] * np.where(action[e] > 0, high - home[:16], home[:16] - low),
                atol=1e-12,
            )
            cube, quat, speed = sim.qpos[e, 16:19] - home[16:19], sim.qpos[e, 19:], sim.qvel[e, 16:]
            tips = [data.site(tip).xpos - home[16:19] for tip in TIPS]
            angle, distance = turned_by(quat, goal[e])[1], np.linalg.norm(cube)
            expected = [
                2 * (sim.qpos[e, :16] - low) / (high - low) - 1,
                0.2 * sim.qvel[e, :16],
                cube,
                quat,
                speed[:3],
                0.2 * speed[3:],
                next_goal[e],
                turned_by(quat, next_goal[e])[0],
                *tips,
                action[e],
            ]
            np.testing.assert_allclose(obs[e], np.concatenate(expected), atol=1e-12)
            reached, fallen = angle < 0.4, distance >= 0.24
            terms = {
                "rotation": 1 / (angle + 0.1),
                "distance": -distance,
                "action": -2e-4 * (action[e] ** 2).sum(),
                "goal": 250 * reached,
                "fall": -30 * fallen,
            }
            assert [f"reward_{term}" for term in terms] == list(env.reward_names)
            for term, value in terms.items():
                assert infos[f"reward_{term}"][e] == pytest.approx(value, rel=1e-9, abs=1e-12), term
            assert reward[e] == pytest.approx(sum(terms.values()), rel=1e-9)
            assert terminated[e] == fallen
            goals[e] += reached
            told = {"angle": angle, "distance": distance, "is_success": float(reached), "goals": goals[e]}
            for name, value in told.items():
                assert infos[name][e] == pytest.approx(value, rel=1e-9, abs=1e-12), name
            assert (next_goal[e] != goal[e]).any() == reached
            reached_in_all += reached
        goal = next_goal.copy()
        ends += terminated.sum()
        if terminated.any():
            _, infos = env.reset(options={"reset_mask": terminated})
            goals[terminated], goal[terminated] = 0, goals_told(infos)[terminated]
        if t % 7 == 3:  # near the goal; one is thrown away
            sim.qpos[:, 19:] = goal + np.random.default_rng(t).normal(0, 0.08, (6, 4))
            sim.qpos[:, 19:] /= np.linalg.norm(sim.qpos[:, 19:], axis=1, keepdims=True)
            sim.qpos[:3, 16:19], sim.qpos[t % 6, 16] = home[16:19] + (0, 0, 0.03), 0.5
    assert ends >= 5
    assert reached_in_all >= 10


def turns_between(before, goals):
    """(angles, axes) from rotations (n, 4) to others."""
    axes, angles = np.empty((len(goals), 3)), np.empty(len(goals))
    for e in range(len(goals)):
        turn, angles[e] = turned_by(goals[e], before[e])
        axes[e] = turn[1:] / np.linalg.norm(turn[1:])
    return angles, axes


@pytest.mark.parametrize("tilt", [0.0, 0.6, np.pi / 2])
def test_a_goal_is_a_turn_from_the_one_before(tilt):
    n, still = 1024, np.zeros((1024, 16))
    env = make(NAME, n, task={"success_angle": 4, "goal_turn": (0.7, 1.3), "goal_tilt": tilt})  # every step reaches it
    goals = [goals_told(env.reset(seed=0)[1])]
    goals = [env.simulation.qpos[:, -4:].astype(float), *goals, *(goals_told(env.step(still)[4]) for _ in range(2))]
    for before, goal in pairwise(goals):
        np.testing.assert_allclose(np.linalg.norm(goal, axis=1), 1, atol=1e-6)
        angles, axes = turns_between(before, goal)
        np.testing.assert_allclose([angles.min(), angles.mean(), angles.max()], [0.7, 1, 1.3], atol=0.02)
        up = np.abs(axes[:, 2])  # uniform from the cosine of the tilt on, on the sphere
        np.testing.assert_allclose([up.min(), up.mean()], [np.cos(tilt), (1 + np.cos(tilt)) / 2], atol=0.03)
        np.testing.assert_allclose(axes.mean(axis=0), 0, atol=0.1)  # either way
        np.testing.assert_allclose((axes[:, :2] ** 2).mean(axis=0), (1 - (axes[:, 2] ** 2).mean()) / 2, atol=0.05)
    np.testing.assert_array_equal(env.step(still)[4]["goals"], 3)


def test_cubes_begin_on_every_face_apart_from_the_hand():
    env = make(NAME, 2048)
    env.reset(seed=0)
    sim, place = env.simulation, env.simulation.model.key_qpos[0, 16:19]
    moved = sim.qpos[:, 16:19] - place
    np.testing.assert_allclose(moved.min(axis=0), (-0.005, -0.005, 0.01), atol=1e-4)
    np.testing.assert_allclose(moved.max(axis=0), (0.005, 0.005, 0.01), atol=1e-4)
    up = np.empty((2048, 3))  # the vertical in the cube's axes
    for e in range(2048):
        mujoco.mju_rotVecQuat(up[e], (0, 0, 1.0), sim.qpos[e, 19:].astype(float) * (1, -1, -1, -1))
    np.testing.assert_allclose(np.abs(up).max(axis=1), 1, atol=1e-5)
    faces, count = np.unique(up.round(), axis=0, return_counts=True)
    assert len(faces) == 6
    assert count.min() > 2048 / 6 * 0.8
    sim.forward()
    env.step(np.zeros((2048, 16)))
    touching = np.arange(sim.max_contacts) < sim.contact.count[:, None]
    assert sim.contact.dist[touching].min() > 1e-4


def rests(env, seconds, drift):
    """Under actions of 0 the cubes come to rest within a second, and stay where they are."""
    env.reset(seed=0)
    still, sim, cube = np.zeros(env.action_space.shape), env.simulation, env.simulation.model.jnt_qposadr[-1]
    residual, start = [], None
    for t in range(round((1 + seconds) / env.step_dt)):
        _, _, terminated, _, infos = env.step(still)
        assert not terminated.any()
        if t == round(1 / env.step_dt):
            start = sim.qpos[:, cube : cube + 7].copy()
        residual.append(sim.certificate.r_con / sim.certificate.scale)
    creep = np.abs(sim.qpos[:, cube : cube + 7] - start).max()
    residual, overlap = np.array(residual), sim.certificate.penetration.max()
    print(
        f"creep {1e6 * creep:.1f} um in {seconds} s, {1e3 * infos['distance'].max():.1f} mm from the place; r_con/V"
        f" p50 {np.median(residual):.1e}, p99 {np.quantile(residual, 0.99):.1e}; overlap {1e3 * overlap:.3f} mm"
    )
    assert creep < drift
    assert infos["distance"].max() < 0.02
    assert overlap < 1e-4


def test_the_hand_holds_the_cube():
    rests(make(NAME, 64, max_episode_steps=-1), 5, 1e-5)


def test_random_actions_are_survived():
    """10^5 steps: nothing that is not finite, no contacts without a slot."""
    env, residual = make(NAME, 500), []
    for _, (obs, reward, _, _, infos) in random_walk(env, 200):
        assert np.isfinite(obs).all()
        assert np.isfinite(reward).all()
        status = infos["status"] | infos.get("final_info", {}).get("status", 0)
        assert not (status & (stiction.Status.NON_FINITE | stiction.Status.CONTACT_OVERFLOW)).any()
        residual.append(env.simulation.certificate.r_con / env.simulation.certificate.scale)
    print(f"r_con/V p50 {np.median(residual):.1e}, p99 {np.quantile(residual, 0.99):.1e}")
    assert np.quantile(residual, 0.99) < 1e-2


# ---- hands of others


def allegro():
    """Menagerie's Allegro hand, palm up, and a cube in it."""
    spec = mujoco.MjSpec.from_file(str(data_file(MENAGERIE + "wonik_allegro/right_hand.xml")))
    cube = spec.worldbody.add_body(name="cube", pos=(-0.024, 0.012, 0.0436))
    cube.add_freejoint()
    cube.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=(0.0325, 0.0325, 0.0325), mass=0.1)
    model = spec.compile()
    hand = (*3 * (0, 0.55, 0.8, 0.8), 0.83, 0.4, 0.6, 0.9)
    spec.add_key(name="home", qpos=np.concatenate([hand, model.body("cube").pos, (1, 0, 0, 0)]))
    return spec.compile()


def test_menageries_allegro_holds_the_cube():
    names = {"fingertips": ("ff_tip", "mf_tip", "rf_tip", "th_tip")}
    options = {"model": stiction.Model.from_mjmodel(allegro()), "names": names, "task": {"joint_noise": (0, 0)}}
    env = make(NAME, 8, max_episode_steps=-1, **options)
    assert env.single_observation_space.shape == (81,)
    assert env.single_action_space.shape == (16,)
    rests(env, 2, 1e-4)
    for _, (obs, reward, *_) in random_walk(env, 30):
        assert np.isfinite(obs).all()
        assert np.isfinite(reward).all()


SMALL = """<mujoco><worldbody><geom name="palm" type="box" size="0.1 0.1 0.01"/>
<body name="finger" pos="0.1 0 0"><joint name="knuckle" axis="0 1 0" {range}/><geom name="finger" size="0.01"/></body>
<body name="cube" pos="0 0 0.03">{free}<geom name="cube" {cube}/></body></worldbody>
<actuator>{servo}</actuator></mujoco>"""
PARTS = {
    "range": 'range="-1 1" limited="true"',
    "free": "<freejoint/>",
    "cube": 'type="box" size="0.02 0.02 0.02"',
    "servo": '<position name="servo" joint="knuckle" kp="1"/>',
}


@pytest.mark.parametrize(
    ("change", "names", "text"),
    [
        ({}, {}, r"name the hand's fingertips: names=\{'fingertips'.*sites: none with a name; bodies: .*'finger'"),
        ({}, {"fingertips": "thumb"}, "'fingertips'.* has 'thumb', but the model has no such site or body"),
        ({}, {"fingertips": "finger", "palm": "a"}, "a hand has no 'palm' to be named; names are for 'joints'"),
        ({}, {"fingertips": "finger", "joints": "wrist"}, "'joints'.* has 'wrist', but the model has no such joint"),
        ({}, {"fingertips": "finger", "cube": "finger"}, "the cube 'finger' has no free joint"),
        ({}, {"fingertips": "finger", "cube": "ball"}, "'cube'.* has 'ball', but the model has no such body"),
        ({"range": ""}, {"fingertips": "finger"}, "joint 'knuckle' of the hand has no limits"),
        ({"range": 'range="0.1 1" limited="true"'}, {"fingertips": "finger"}, "'knuckle' is at 0.0.* beyond its"),
        ({"free": ""}, {"fingertips": "finger"}, "handles 1 cube, got 0"),
        ({"cube": 'size="0.02"'}, {"fingertips": "finger"}, "'cube' must have one geom that can be touched, a box"),
        ({"servo": '<motor name="m" joint="knuckle"/>'}, {"fingertips": "finger"}, "'m'.* is no position servo"),
    ],
)  # fmt: skip
def test_what_a_hand_lacks_is_named(change, names, text):
    with pytest.raises(ValueError, match=text):
        make(NAME, model=SMALL.format(**PARTS | change), names=names)
