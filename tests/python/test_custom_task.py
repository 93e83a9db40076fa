"""Tasks written in Python, the sensors they read, and the random numbers they draw."""

import runpy
from pathlib import Path

import numpy as np
import pytest

try:
    import torch
except ImportError:
    torch = None

mujoco = pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import SyncVectorEnv  # noqa: E402
from stiction.random_numbers import RESET, Draws, philox4x32  # noqa: E402
from stiction.single_env import SingleEnv  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "reach.py"
Reach = runpy.run_path(str(EXAMPLE))["Reach"]


# ---- random numbers


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # known answers of the authors' Random123 1.14
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_is_the_authors(counter, key, expected):
    words = philox4x32([np.array([c], np.uint64) for c in counter], [np.array([k], np.uint64) for k in key])
    assert tuple(int(word[0]) for word in words) == expected


def test_draws_depend_on_the_environment_alone():
    seeds = np.array([7, 2**63 + 5, 9], np.uint64)
    all_of_them, one = Draws(seeds, [0, 3, 1], 4), Draws(seeds[1:2], [3], 4)
    for draws in (lambda d: d.uniform(-1, 2, shape=(2, 3)), lambda d: d.normal(shape=5), lambda d: d.integers(0, 9)):
        np.testing.assert_array_equal(draws(all_of_them)[1:2], draws(one))
    other = Draws(seeds[1:2], [3], 5)
    assert other.uniform() != Draws(seeds[1:2], [3], 4).uniform()


def test_draws_are_those_of_the_compiled_tasks():
    """The Ant's start: qpos0 + U(-0.1, 0.1) on every coordinate."""
    env = stiction.make_vec("stiction/Ant-v0", 2, dtype="float64", num_threads=1)
    env.reset(seed=11)
    noise = Draws(np.array([11, 12], np.uint64), 0, 0, RESET).uniform(-0.1, 0.1, shape=15)
    np.testing.assert_allclose(env.simulation.qpos[:, 7:], env.simulation.model.qpos0[7:] + noise[:, 7:], atol=1e-15)


def test_draws_are_distributed_as_they_say():
    draws = Draws(np.arange(2000, dtype=np.uint64), 0)
    uniform, normal, coarse = draws.uniform(1, 3, shape=10), draws.normal(2.0, shape=10), draws.coarse_normal(10)
    assert uniform.min() >= 1
    assert uniform.max() < 3
    assert abs(uniform.mean() - 2) < 0.02
    assert abs(normal.mean()) < 0.05
    assert abs(normal.std() - 2) < 0.05
    assert coarse.dtype == np.float32
    assert abs(coarse.mean()) < 0.03
    assert abs(coarse.std() - 1) < 0.03
    assert abs((np.abs(coarse) < 1).mean() - 0.6827) < 0.02
    assert set(draws.integers(-1, 2, shape=20).ravel()) == {-1, 0, 1}
    with pytest.raises(ValueError, match="none"):
        draws.integers(1, 1)


# ---- a task


def test_the_example_is_an_environment():
    assert EXAMPLE.read_text().count("\n") <= 50
    check_env(SingleEnv(env_id=Reach), skip_render_check=True)
    envs = stiction.make_vec(Reach, 4)
    assert envs.env_id == "Reach"
    assert envs.reward_names == ("reward_near", "reward_effort")
    assert envs.max_episode_steps == 100
    assert envs.step_dt == pytest.approx(0.02)
    observations, infos = envs.reset(seed=0)
    assert envs.observation_space.contains(observations)
    assert infos["distance"].shape == (4,)
    tip = envs.simulation.site_xpos[:, 0, :2]
    np.testing.assert_allclose(infos["distance"], np.linalg.norm(observations[:, 6:8] - tip, axis=1), rtol=1e-5)
    rewards, infos = envs.step(np.full((4, 2), 0.5))[1::3]
    np.testing.assert_allclose(rewards, infos["reward_near"] + infos["reward_effort"], rtol=1e-6)
    np.testing.assert_allclose(infos["reward_effort"], -0.005)
    np.testing.assert_allclose(envs.simulation.ctrl, 0.25)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_python_tasks_reset_as_compiled_ones(mode):
    """Step by step what SyncVectorEnv over single environments does, through truncations and partial resets."""
    n = 3
    ours = stiction.make_vec(Reach, n, autoreset_mode=mode, max_episode_steps=4)
    single = lambda: gymnasium.wrappers.TimeLimit(SingleEnv(env_id=Reach), 4)  # noqa: E731
    reference = SyncVectorEnv([single] * n, autoreset_mode=mode)

    def compare(results, expected):
        for a, b in zip(results[:-1], expected[:-1], strict=True):
            np.testing.assert_array_equal(a, b)
        for name in ("distance", "_distance", "reward_near", "_reward_near"):
            if name in expected[-1]:
                np.testing.assert_array_equal(results[-1][name], expected[-1][name])
        if "final_obs" in expected[-1]:
            for a, b in zip(results[-1]["final_obs"], expected[-1]["final_obs"], strict=True):
                assert (a is None) == (b is None)
                assert a is None or np.array_equal(a, b)
            final, wanted = results[-1]["final_info"], expected[-1]["final_info"]
            np.testing.assert_array_equal(final["reward_near"], wanted["reward_near"])

    compare(ours.reset(seed=10), reference.reset(seed=10))
    ours.action_space.seed(0)
    ends = 0
    for t in range(14):
        action = ours.action_space.sample()
        results, expected = ours.step(action), reference.step(action)
        compare(results, expected)
        over = results[2] | results[3]
        ends += over.sum()
        mask = np.array([False, True, False]) if t == 1 else over
        if t == 1 or (mode == "Disabled" and over.any()):
            arguments = {"seed": [None, 77, None] if t == 1 else None, "options": {"reset_mask": mask}}
            compare(ours.reset(**arguments), reference.reset(**arguments))
    assert ends >= 6


def test_environment_of_a_batch_is_the_one_alone():
    batch, alone = stiction.make_vec(Reach, 5, max_episode_steps=3), stiction.make_vec(Reach, 1, max_episode_steps=3)
    a, b = batch.reset(seed=3)[0], alone.reset(seed=6)[0]
    np.testing.assert_array_equal(a[3], b[0])
    for _ in range(8):
        action = batch.action_space.sample()
        results, expected = batch.step(action), alone.step(action[3:4])
        for x, y in zip(results[:4], expected[:4], strict=True):
            np.testing.assert_array_equal(x[3], y[0])


class InTorch(Reach):
    array = "torch"

    def setup(self):
        self.target = self.array_of(np.full((self.num_envs, 2), 0.25))
        self.hand = self.sensors.contacts(["lower"])

    def observe(self):
        return torch.cat([self.sim.qpos, self.sim.qvel, self.away(), self.hand.air_time], dim=1)

    def reward(self, action):
        return {"near": -self.away().norm(dim=1), "effort": -action.square().sum(dim=1)}

    def report(self):
        return {"distance": self.away().norm(dim=1)}

    def terminate(self):
        return self.sim.qpos[:, 0] > 3

    def reset(self, envs, random):
        assert isinstance(envs, torch.Tensor) and envs.device == self.sim.qpos.device
        self.sim.qpos[envs] = random.uniform(-1, 1, shape=2)
        self.target[envs, 0] = random.normal(0.1)


def devices():
    from stiction import _build

    there = _build.CUDA == "emulated" or (_build.CUDA and torch is not None and torch.cuda.is_available())
    return ["cpu", "cuda"] if there else ["cpu"]


@pytest.mark.skipif(torch is None, reason="no torch")
@pytest.mark.parametrize("where", devices())
def test_a_task_in_torch(where):
    envs = stiction.make_vec(InTorch, 3, backend="torch", device=where)
    assert envs.device == ("cpu" if where == "cpu" else "cuda:0")
    observations, _ = envs.reset(seed=0)
    assert observations.device == envs.simulation.qpos.device
    kept = observations.clone()
    envs.simulation.qpos[1, 0] = 4.0
    results = envs.step(torch.zeros(3, 2))
    assert results[2].tolist() == [False, True, False]
    assert results[4]["final_obs"][1, 0] > 3
    assert abs(results[0][1, 0]) <= 1
    assert envs.reward_names == ("reward_near", "reward_effort")
    assert torch.equal(observations, kept)


@pytest.mark.skipif(torch is None, reason="no torch")
@pytest.mark.parametrize("where", devices())
@pytest.mark.parametrize("mode", ["SameStep", "NextStep", "Disabled"])
def test_a_task_in_torch_tells_arrays_the_same(where, mode):
    """Its tensors and its arrays: a trajectory with ends, partial resets and randomisation, and all that is told."""
    from stiction.randomisation import Latency, Noise, Parameter

    terms = [Parameter("body_mass", 0.5, 2.0, each=True), Latency(0, 2), Noise(0.1)]
    options = {"autoreset_mode": mode, "max_episode_steps": 4, "randomize": terms, "device": where}
    tensors, arrays = (stiction.make_vec(InTorch, 5, backend=b, **options) for b in ("torch", "numpy"))

    def alike(told, expected, name=""):
        if isinstance(expected, dict):
            for key in expected:
                if key == "final_obs":
                    for env in np.flatnonzero(expected["_final_obs"]):
                        alike(told[key][env], expected[key][env], key)
                else:
                    alike(told[key], expected[key], f"{name}.{key}")
        else:
            assert isinstance(told, torch.Tensor) and isinstance(expected, np.ndarray), name
            assert told.cpu().numpy().dtype == expected.dtype, name
            np.testing.assert_allclose(told.cpu(), expected, rtol=2e-5, atol=2e-5, err_msg=name)

    def both(results, expected):
        for told, array in zip(results, expected, strict=True):
            alike(told, array)

    both(tensors.reset(seed=3), arrays.reset(seed=3))
    mask = np.array([True, False, True, False, False])
    both(*(envs.reset(seed=[1, None, 3, 4, 5], options={"reset_mask": mask}) for envs in (tensors, arrays)))
    random = np.random.default_rng(0)
    for _ in range(10):
        actions = random.uniform(-1, 1, (5, 2)).astype(np.float32)
        expected = arrays.step(actions)
        both(tensors.step(torch.from_numpy(actions)), expected)
        ended = expected[2] | expected[3]
        if mode == "Disabled" and ended.any():
            both(*(envs.reset(options={"reset_mask": ended}) for envs in (tensors, arrays)))


def test_bad_actions_end_their_environment_alone():
    envs, calm = stiction.make_vec(Reach, 3), stiction.make_vec(Reach, 3)
    envs.reset(seed=0), calm.reset(seed=0)
    action = np.zeros((3, 2), np.float32)
    action[1] = np.nan
    results, expected = envs.step(action), calm.step(np.zeros((3, 2)))
    assert results[2].tolist() == [False, True, False]
    assert np.isfinite(results[0]).all()
    assert results[1][1] == 0
    np.testing.assert_array_equal(results[0][[0, 2]], expected[0][[0, 2]])


class Weighted(Reach):
    effort, limits, name = 0.5, (1.0, 2.0), "weighted"

    def reward(self, action):
        return {"effort": -self.effort * np.abs(action).sum(axis=1)}


def test_parameters_of_a_task():
    envs = stiction.make_vec(Weighted, 2, task={"effort": 0.25})
    envs.reset(seed=0)
    assert envs.task_parameters == {"effort": 0.25, "limits": (1.0, 2.0)}
    np.testing.assert_allclose(envs.step(np.ones((2, 2)))[1], -0.5)
    envs.set_task_parameters(effort=1.0)
    np.testing.assert_allclose(envs.step(np.ones((2, 2)))[1], -2)
    assert Weighted.effort == 0.5
    with pytest.raises(ValueError, match="near|no parameter 'efort'"):
        stiction.make_vec(Weighted, 2, task={"efort": 1})


def task(**attributes):
    return type("Broken", (Reach,), attributes)


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        (task(model=None), TypeError, "has no model"),
        (task(observe=stiction.Task.observe), NotImplementedError, "no observe"),
        (task(observe=lambda self: np.zeros(3)), ValueError, "observe"),
        (task(reward=lambda self, action: np.zeros((3, 1))), ValueError, "'total' has shape"),
        (task(report=lambda self: {"x": 1.0}), ValueError, "'x' has shape"),
        (task(simulation={"solver": "newton"}), ValueError, "solver"),
        (task(keyframe="home"), ValueError, "keyframe"),
    ],
)
def test_says_what_is_wrong_with_a_task(kind, error, text):
    with pytest.raises(error, match=text):
        stiction.make_vec(kind, 3)


def test_terms_must_stay_the_same():
    calls = []

    def reward(self, action):
        calls.append(0)
        return {"a": np.zeros(3)} if len(calls) < 2 else {"b": np.zeros(3)}

    envs = stiction.make_vec(task(reward=reward), 3)
    envs.reset()
    with pytest.raises(ValueError, match="at first"):
        envs.step(np.zeros((3, 2)))


def test_commands_take_the_file(tmp_path, capsys):
    pytest.importorskip("torch")
    from stiction import cli

    run = ["--samples", "300", "--set", "num_envs=8", "steps=8", "--evaluate", "2"]
    kept = ["--run-dir", str(tmp_path / "run"), "--no-video", "--no-onnx", "--threads", "1"]
    assert cli.main(["train", f"{EXAMPLE}:Reach", *run, *kept]) == 0
    assert cli.main(["play", str(tmp_path / "run"), "--episodes", "2"]) == 0
    assert "2 episodes of 2.0 s" in capsys.readouterr().out
    assert cli.main(["train", f"{EXAMPLE}:Rich", *run]) == 1
    assert cli.main(["train", "nothing.py:Reach", *run]) == 1
    shown = capsys.readouterr().err
    assert "no class Rich" in shown
    assert "no file" in shown


# ---- sensors

ROBOT = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="base" pos="0 0 0.6"><freejoint/><geom type="box" size="0.2 0.1 0.05" mass="2"/>
      <site name="imu" pos="0.1 0.02 0.05" euler="20 30 40"/>
      <body name="arm" pos="0.2 0 0"><joint name="swing" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.02"/>
        <body name="slider" pos="0.2 0 0"><joint name="slide" type="slide" axis="1 0 1"/><geom size="0.02"/>
          <body name="wrist" pos="0.1 0 0"><joint name="ball" type="ball" pos="0 0.01 0"/><geom size="0.03" pos="0.05 0 0"/>
            <site name="tip" pos="0.1 0 0"/></body></body></body>
    </body>
    <body name="ball" pos="2 0 0.3"><freejoint/><geom size="0.1" mass="1"/></body>
  </worldbody>
</mujoco>"""  # noqa: E501


@pytest.fixture(params=["native", "torch"])
def robot(request, device):
    if request.param == "torch" and torch is None:
        pytest.skip("no torch")
    model, dtype = stiction.Model.from_mjcf(ROBOT), "float64" if device == "cpu" else "float32"
    sim = stiction.Simulation(model, 4, dtype=dtype, num_threads=1, array=request.param, device=device)
    random, qpos = np.random.default_rng(0), np.tile(model.qpos0, (4, 1))
    qpos[:, 2] += random.uniform(0, 1, 4) + 1
    quats = random.normal(size=(4, 4))
    qpos[:, 3:7] = quats / np.linalg.norm(quats, axis=1, keepdims=True)
    qpos[:, 7:9] = random.uniform(-0.5, 0.5, (4, 2))
    quats = random.normal(size=(4, 4))
    qpos[:, 9:13] = quats / np.linalg.norm(quats, axis=1, keepdims=True)
    sim.qpos, sim.qvel = qpos, random.normal(size=(4, model.nv))
    sim.forward()
    return sim


def arrays(told):
    """What a sensor told, which is of the simulation's kind, as NumPy's."""
    if isinstance(told, tuple):
        return tuple(arrays(part) for part in told)
    return np.asarray(told.cpu() if hasattr(told, "cpu") else told)


def close(robot, told, expected, double=1e-11):
    np.testing.assert_allclose(arrays(told), expected, atol=double if robot.dtype == "float64" else 2e-5)


def reference(sim, env):
    model = sim.model.mjmodel
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = arrays((sim.qpos[env], sim.qvel[env]))
    mujoco.mj_forward(model, data)
    return model, data


def velocity(model, data, kind, number, local):
    result = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, kind, number, result, local)
    return result[3:], result[:3]  # linear, angular


def test_poses_velocities_and_joints_are_mujocos(robot):
    sensors = stiction.Sensors(robot)
    names = ["base", "wrist", "ball"]
    position, orientation = arrays(sensors.body_pose(names))
    linear, angular = arrays(sensors.body_velocity(names))
    site_position, site_orientation = arrays(sensors.site_pose(["imu", "tip"]))
    site_linear, site_angular = arrays(sensors.site_velocity(["imu", "tip"]))
    angles, rates = arrays(sensors.joint_state(["swing", "slide"]))
    assert position.shape == (4, 3, 3)
    assert sensors.body_pose("wrist")[1].shape == (4, 4)
    for env in range(4):
        model, data = reference(robot, env)
        for k, name in enumerate(names):
            body = model.body(name).id
            close(robot, position[env, k], data.xpos[body], 1e-12)
            close(robot, abs(orientation[env, k] @ data.xquat[body]), 1, 1e-12)
            v, w = velocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, 0)
            close(robot, linear[env, k], v, 1e-11)
            close(robot, angular[env, k], w, 1e-11)
        for k, name in enumerate(["imu", "tip"]):
            site = model.site(name).id
            close(robot, site_position[env, k], data.site_xpos[site], 1e-12)
            matrix = np.zeros(9)
            mujoco.mju_quat2Mat(matrix, site_orientation[env, k].astype(np.float64))
            close(robot, matrix, data.site_xmat[site], 1e-12)
            v, w = velocity(model, data, mujoco.mjtObj.mjOBJ_SITE, site, 0)
            close(robot, site_linear[env, k], v, 1e-11)
            close(robot, site_angular[env, k], w, 1e-11)
        close(robot, angles[env], data.qpos[7:9], 0)
        close(robot, rates[env], data.qvel[6:8], 0)
    with pytest.raises(ValueError, match="not all hinges"):
        sensors.joint_state(["swing", "ball"])
    with pytest.raises(KeyError, match="no body"):
        sensors.body_pose("bass")


def test_jacobians_are_mujocos(robot):
    sensors = stiction.Sensors(robot)
    of_site, of_body = arrays((sensors.site_jacobian("tip"), sensors.body_jacobian("slider", offset=(0.1, 0.2, 0.3))))
    assert of_site.shape == (4, 6, robot.model.nv)
    for env in range(4):
        model, data = reference(robot, env)
        linear, angular = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        mujoco.mj_jacSite(model, data, linear, angular, model.site("tip").id)
        close(robot, of_site[env], np.concatenate([linear, angular]), 1e-12)
        body = model.body("slider").id
        at = data.xpos[body] + data.xmat[body].reshape(3, 3) @ [0.1, 0.2, 0.3]
        mujoco.mj_jac(model, data, linear, angular, at, body)
        close(robot, of_body[env], np.concatenate([linear, angular]), 1e-12)


def test_imu_at_rest_falling_and_turning(robot):
    sensors = stiction.Sensors(robot)
    imu = sensors.imu("imu")
    for env in range(4):
        model, data = reference(robot, env)
        site = model.site("imu").id
        _, angular = velocity(model, data, mujoco.mjtObj.mjOBJ_SITE, site, 1)
        close(robot, imu.gyro[env], angular, 1e-11)
        close(robot, imu.accelerometer[env], data.site_xmat[site].reshape(3, 3).T @ [0, 0, 9.81], 1e-9)
    robot.reset()
    robot.qpos[:, 2] = 5
    robot.forward()
    sensors.restart()
    robot.step(5)
    sensors.advance(0.01)
    np.testing.assert_allclose(arrays(imu.accelerometer), 0, atol=1e-6 if robot.dtype == "float64" else 2e-3)


def test_an_imu_without_gravity_feels_none():
    xml = ROBOT.replace("<worldbody>", '<option><flag gravity="disable"/></option><worldbody>', 1)
    sim = stiction.Simulation(stiction.Model.from_mjcf(xml), 2)
    sensors = stiction.Sensors(sim)
    imu = sensors.imu("imu")
    np.testing.assert_array_equal(imu.accelerometer, 0)
    sim.step(5)
    sensors.advance(0.01)
    np.testing.assert_allclose(imu.accelerometer, 0, atol=1e-4)


def test_contacts_of_a_ball_that_falls():
    model = stiction.Model.from_mjcf(ROBOT)
    sim = stiction.Simulation(model, 2, dtype="float64", num_threads=1)
    sim.qpos[:, 0] = 50
    sim.qpos[1, 13 + 2] = 0.1  # lies on the floor
    sim.forward()
    sensors = stiction.Sensors(sim)
    contact = sensors.contacts(["ball", "base"])
    landed = 0.0
    for step in range(50):
        sim.step(5)
        sensors.advance(0.01)
        landed = max(landed, float(contact.air_time_before_landing[0, 0]))
        if step == 9:
            np.testing.assert_allclose(contact.air_time[:, 0], [0.1, 0])
            np.testing.assert_allclose(contact.contact_time[:, 0], [0, 0.1])
            assert contact.active[:, 0].tolist() == [False, True]
    assert landed == pytest.approx(np.sqrt(2 * 0.2 / 9.81), abs=0.02)  # from 0.2 m above its rest
    assert contact.active[:, 0].all()
    np.testing.assert_allclose(contact.force[:, 0, 2], 9.81, rtol=1e-3)
    np.testing.assert_allclose(sensors.net_contact_force("ball")[:, 2], 9.81, rtol=1e-3)
    sensors.restart([0])
    np.testing.assert_array_equal(contact.contact_time[0], 0)
    assert contact.contact_time[1, 0] > 0.4
