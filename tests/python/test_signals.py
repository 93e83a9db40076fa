"""Names of observations and actions: every number of every task is what its name says, by MuJoCo's quantities."""

import json

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from stiction.registration import ENVIRONMENTS  # noqa: E402
from stiction.signals import Signal, table  # noqa: E402
from task_walks import contact_wrenches, forward, make, random_walk  # noqa: E402

NAMES = [env_id.removeprefix("stiction/").removesuffix("-v0") for env_id in ENVIRONMENTS]
AXES, QUATERNION = "xyz", "wxyz"
WRENCH = ["torque_x", "torque_y", "torque_z", "force_x", "force_y", "force_z"]
TWIST = ["angular_x", "angular_y", "angular_z", "linear_x", "linear_y", "linear_z"]
INERTIA = ["xx", "yy", "zz", "xy", "xz", "yz", "mx", "my", "mz", "mass"]


class Named:
    """Quantities of environment 0 by the names of `Signal`s, from MuJoCo and from infos: another way to them."""

    def __init__(self, env, infos, actions):
        self.env, self.infos, self.sim = env, infos, env.simulation
        self.model = self.sim.model.mjmodel
        self.data = mujoco.MjData(self.model)
        ctrl = np.clip(self.sim.ctrl[0], *_control_ranges(self.model))
        forward(self.model, self.data, self.sim, 0, ctrl)
        self.actions = dict(zip((name.partition("/")[2] or name for name in env.action_names), actions[0], strict=True))
        self.free = [j for j in range(self.model.njnt) if self.model.jnt_type[j] == 0]

    def __call__(self, name: str) -> float:
        term, _, element = name.partition("/")
        if term.startswith("cube") and term.rpartition("_")[2] in ("position", "orientation", "velocity"):
            return self.of_body(self.free[1 if term.startswith("cube_2") else 0], term, element)
        if term.startswith("base_"):
            return self.of_body(0, term, element)
        return getattr(self, term)(element)

    def of_body(self, joint, term, element):
        q, v = self.model.jnt_qposadr[joint], self.model.jnt_dofadr[joint]
        if term.endswith("orientation"):
            return self.data.qpos[q + 3 + QUATERNION.index(element)]
        if term.endswith("angular_velocity"):
            return self.data.qvel[v + 3 + AXES.index(element)]
        return (self.data.qvel[v:] if term.endswith("velocity") else self.data.qpos[q:])[AXES.index(element)]

    def joint_position(self, joint):
        return self.data.joint(joint).qpos[0]

    def joint_velocity(self, joint):
        return self.data.joint(joint).qvel[0]

    finger_position, finger_velocity = joint_position, joint_velocity

    def cos(self, joint):
        return np.cos(self.joint_position(joint))

    def sin(self, joint):
        return np.sin(self.joint_position(joint))

    def in_trunk(self, vector, element):
        return (self.data.xmat[1].reshape(3, 3).T @ vector)[AXES.index(element)]

    def linear_velocity(self, element):
        return self.in_trunk(self.data.qvel[:3], element)

    def angular_velocity(self, element):
        return self.data.qvel[3 + AXES.index(element)]

    def gravity(self, element):
        return self.in_trunk(np.array([0.0, 0.0, -1.0]), element)

    def command(self, element):
        return self.infos[f"command_{element}"][0]

    def last_action(self, of):
        return self.actions[of]

    def cube(self, number=0):
        return self.data.qpos[self.model.jnt_qposadr[self.free[number]] :][:3]

    def grasp_to_cube(self, element):
        return (self.cube() - self.data.site("grasp").xpos)[AXES.index(element)]

    def cube_to_goal(self, element):
        return self.infos[f"goal_{element}"][0] - self.cube()[AXES.index(element)]

    def cube_to_place(self, element):
        bodies = [self.model.jnt_bodyid[joint] for joint in self.free]
        halves = [self.model.geom_size[self.model.body_geomadr[body]][2] for body in bodies]
        return (self.cube(1) + [0, 0, sum(halves)] - self.cube())[AXES.index(element)]

    def goal_orientation(self, element):
        return self.infos[f"goal_{element}"][0]

    def goal_to_cube(self, element):
        goal = np.array([self.goal_orientation(e) for e in QUATERNION]) * [1, -1, -1, -1]
        turn = np.empty(4)
        mujoco.mju_mulQuat(turn, self.data.qpos[self.model.jnt_qposadr[self.free[0]] + 3 :][:4].copy(), goal)
        return (turn * np.sign(turn[0]))[QUATERNION.index(element)]

    def fingertip_position(self, element):
        site, _, axis = element.rpartition(".")
        return self.data.site(site).xpos[AXES.index(axis)]

    def contact_wrench(self, element):
        body, _, part = element.rpartition(".")
        return contact_wrenches(self.sim, self.data, 0)[self.model.body(body).id, WRENCH.index(part)]

    def inertia(self, element):
        body, _, part = element.rpartition(".")
        return self.data.cinert[self.model.body(body).id, INERTIA.index(part)]

    def twist(self, element):
        body, _, part = element.rpartition(".")
        return self.data.cvel[self.model.body(body).id, TWIST.index(part)]

    def actuator_force(self, joint):
        return self.data.joint(joint).qfrc_actuator[0]


def _control_ranges(model):
    limited = model.actuator_ctrllimited.astype(bool)
    low, high = model.actuator_ctrlrange.T
    return np.where(limited, low, -np.inf), np.where(limited, high, np.inf)


@pytest.mark.parametrize("name", NAMES)
def test_every_observed_number_is_what_its_name_says(name):
    env = make(name, 2, dtype="float64", max_episode_steps=-1)
    signals = env.observation_signals
    assert len(signals) == env.single_observation_space.shape[0]
    assert len({signal.name for signal in signals}) == len(signals)
    compared = moved = 0
    before = None
    for action, (obs, _, terminated, _, infos) in random_walk(env, 12, amplitude=0.7):
        if terminated[0]:
            break
        quantity = Named(env, infos, action)
        expected = [np.clip(s.scale * (quantity(s.name) - s.offset), s.low, s.high) for s in signals]
        np.testing.assert_allclose(obs[0], expected, rtol=1e-6, atol=1e-6)
        compared, moved = compared + 1, moved + (0 if before is None else (obs[0] != before).mean())
        before = obs[0].copy()
    assert compared >= 5
    assert moved / compared > 0.2  # or nothing was compared


@pytest.mark.parametrize("name", NAMES)
def test_every_action_does_what_its_name_says(name):
    env = make(name, 1, dtype="float64")
    signals, model = env.action_signals, env.simulation.model.mjmodel
    assert len(signals) == env.single_action_space.shape[0]
    for action, _ in random_walk(env, 4, amplitude=2.0):
        env.reset(seed=3)
        env.step(action)
        ctrl = env.simulation.ctrl[0]
        forces = np.clip(ctrl, *_control_ranges(model)) * model.actuator_gainprm[:, 0] * model.actuator_gear[:, 0]
        for number, signal in zip(action[0], signals, strict=True):
            held = np.clip(number, signal.low, signal.high)
            quantity = signal.offset + (signal.scale if held > 0 else signal.scale_below) * held
            term, _, joint = signal.name.partition("/")
            driven = [a for a in range(model.nu) if joint and model.actuator_trnid[a, 0] == model.joint(joint).id]
            if term == "gripper":
                held = 1.0 if number >= 0 else -1.0
                quantity = signal.offset + signal.scale * held
                low, high = model.actuator_ctrlrange[-1]
                np.testing.assert_allclose(ctrl[-1], low + quantity * (high - low), atol=1e-12)
            else:
                got = ctrl[driven] if term == "joint_target" else forces[driven]
                np.testing.assert_allclose(got, [quantity], rtol=1e-12, atol=1e-12)


def test_signals_follow_the_task_s_parameters():
    env = make("QuadrupedVelocity", action_scale=0.25)
    assert {signal.scale for signal in env.action_signals} == {0.25}
    env.set_task_parameters(action_scale=0.3)
    assert {signal.scale for signal in env.action_signals} == {0.3}
    ant = make("Ant", contact_force_range=(-2, 3))
    assert ant.observation_signals[-1].high == 3
    assert ant.observation_signals[-1].low == -2


def test_the_interface_is_json_and_leaves_out_what_is_plain():
    env = make("HandReorient")
    told = json.loads(json.dumps(env.interface(), allow_nan=False))
    assert [fact["name"] for fact in told["observations"]["observation"]] == list(env.observation_names)
    assert told["actions"][1] == {
        "name": "joint_target/index_1",
        "unit": "rad",
        "scale": pytest.approx(1.06),
        "scale_below": pytest.approx(0.746),
        "offset": pytest.approx(0.55),
    }
    assert told["step_dt"] == pytest.approx(env.step_dt)
    assert "joint_target/index_1" in table(env.action_signals)
    assert [Signal(**fact) for fact in told["actions"]] == list(env.action_signals)


def test_a_robot_of_one_s_own_has_its_own_names(tmp_path):
    arm = "".join(
        f'<body name="{b}" pos="0 0 {z}"><joint name="{j}" type="hinge" axis="0 1 0"/><geom size=".05"/></body>'
        for b, j, z in (("a", "left", 0.1), ("b", "right", -0.1))
    )
    xml = f"""<mujoco><worldbody><geom type="plane" size="1 1 1"/>
      <body name="trunk" pos="0 0 1"><freejoint/><geom size=".1"/>{arm}</body></worldbody>
      <actuator><position joint="right" kp="10"/><position joint="left" kp="10"/></actuator></mujoco>"""
    env = stiction.make_vec("stiction/QuadrupedVelocity-v0", model=xml, names={"feet": ["a", "b"]}, num_threads=1)
    assert env.action_names == ("joint_target/right", "joint_target/left")
    assert env.observation_names[12:14] == ("joint_position/right", "joint_position/left")


# ---- tasks in Python

BALL = """<mujoco><worldbody><body><joint name="slide" type="slide" axis="1 0 0"/><geom size=".1"/></body></worldbody>
<actuator><motor name="push" joint="slide" ctrllimited="true" ctrlrange="-1 3"/></actuator></mujoco>"""


class Slider(stiction.Task):
    model = BALL
    units = {"place": "m"}
    elements = {"both": ("position", "velocity")}

    def observe(self):
        return {
            "place": self.sim.qpos[:, 0],
            "both": np.concatenate([self.sim.qpos, self.sim.qvel], axis=1),
            "vector": np.zeros((self.num_envs, 3)),
        }

    def reward(self, action):
        return -(self.sim.qpos[:, 0] ** 2)


def test_a_task_in_python_names_terms():
    env = stiction.make_vec(Slider, 3, num_threads=1)
    names = ("place", "both/position", "both/velocity", "vector/x", "vector/y", "vector/z")
    assert env.observation_names == names
    assert env.observation_signals[0].unit == "m"
    assert env.action_signals == (Signal("control/push", scale=2.0, offset=1.0),)
    obs, _ = env.reset(seed=0)
    assert obs.shape == (3, 6)
    obs = env.step(np.ones((3, 1)))[0]
    np.testing.assert_array_equal(obs[:, 0], env.simulation.qpos[:, 0])
    np.testing.assert_array_equal(obs[:, 2], env.simulation.qvel[:, 0])


def test_a_task_in_python_says_what_is_wrong_with_its_terms():
    with pytest.raises(ValueError, match=r"Slider.*units has 'pace', but the terms are place, both"):
        stiction.make_vec(type("Slider", (Slider,), {"units": {"pace": "m"}}))
    with pytest.raises(ValueError, match=r"elements has \['a'\] for 'both', expected 2 names"):
        stiction.make_vec(type("Slider", (Slider,), {"elements": {"both": ("a",)}}))
    with pytest.raises(ValueError, match="has the term 'a/b', expected a name without a slash"):
        stiction.make_vec(type("Slider", (Slider,), {"observe": lambda self: {"a/b": self.sim.qpos[:, 0]}}))
    env = stiction.make_vec(type("Slider", (Slider,), {"units": {}, "elements": {}}))
    env.reset(seed=0)
    env._core.python_task.observe = lambda: {"place": env.simulation.qpos}
    with pytest.raises(ValueError, match=r"returned \{'place': 1\}, at first \{'place': 1, 'both': 2"):
        env.step(np.zeros((1, 1)))
