"""States: into some environments, copies within a batch, snapshots, pickles and deep copies; all go on to the bit."""

import copy
import pickle

import numpy as np
import pytest

pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from stiction import Group, Simulation  # noqa: E402
from stiction.randomisation import Latency, Noise, Parameter, Push  # noqa: E402
from stiction.registration import asset_path  # noqa: E402

RANDOM = [
    Parameter("body_mass", 0.8, 1.2, every=(0.1, 0.3)),
    Push(0.5, every=(0.1, 0.2)),
    Latency(0, 2),
    Noise(0.05),
]
STATE = ("qpos", "qvel", "ctrl", "time", "qfrc_applied", "xfrc_applied")


def walker(n=5, **options):
    """A batch of quadrupeds that lie about, each another way."""
    model = stiction.Model.from_mjcf(asset_path("quadruped.xml"))
    sim = Simulation(model, n, num_threads=1, **options)
    random = np.random.default_rng(0)
    sim.qpos[:, 2] = 0.35
    for _ in range(20):
        sim.ctrl[:] = random.uniform(-1, 1, sim.ctrl.shape)
        sim.step(5)
    return sim


def go_on(sim, row, steps=10):
    """The states of an environment under the same controls as any other's."""
    random, told = np.random.default_rng(1), []
    for _ in range(steps):
        sim.ctrl[:] = random.uniform(-1, 1, sim.ctrl.shape[1])
        sim.step(3)
        told.append(np.concatenate([sim.qpos[row], sim.qvel[row], sim.contact.impulse[row].ravel()]))
    return np.array(told)


def test_a_state_goes_into_some_environments():
    sim, other = walker(), walker(2)
    kept, rows = sim.get_state(), other.get_state()
    sim.set_state(rows, envs=[3, 1])  # row 0 into environment 3
    for name in STATE:
        got = getattr(sim, name)
        np.testing.assert_array_equal(got[[3, 1]], getattr(rows, name))
        np.testing.assert_array_equal(got[[0, 2, 4]], getattr(kept, name)[[0, 2, 4]])
    expected = go_on(other, 1)
    np.testing.assert_array_equal(go_on(sim, 1), expected)
    sim.set_state(rows[0], envs=slice(None))
    assert (sim.qpos == sim.qpos[0]).all()


@pytest.mark.parametrize("envs", [[3, 1], slice(1, 3), np.arange(5) > 2])
def test_some_environments_tell_their_state(envs):
    sim = walker()
    some, whole = sim.get_state(envs), sim.get_state()
    for name in STATE:
        np.testing.assert_array_equal(getattr(some, name), getattr(whole, name)[envs])
    assert len(some.qpos) == 2
    before = sim.qpos[envs].copy()
    sim.step(5)
    sim.set_state(some, envs)
    np.testing.assert_array_equal(sim.qpos[envs], before)
    with pytest.raises(ValueError, match="envs has indices from 7 to 7"):
        sim.get_state([7])


def test_a_state_of_another_shape_is_refused_in_words():
    sim, state = walker(), walker(2).get_state()
    with pytest.raises(ValueError, match=r"shape \(2, 19\), expected \(3, 19\), a row for each.*or \(1, 19\), one"):
        sim.set_state(state, envs=[0, 1, 2])
    with pytest.raises(ValueError, match="envs names environment 4 twice"):
        sim.set_state(state, envs=[4, -1])
    with pytest.raises(ValueError, match=r"shape \(2, 19\), expected \(5, 19\): a state of as many environments"):
        sim.set_state(state)
    state.records = state.records[:, :-1]
    with pytest.raises(ValueError, match=r"state.records has shape \(2, \d+\)"):
        walker(2).set_state(state)


def test_an_environment_is_copied_into_others():
    sim = walker(per_env=("body_mass",))
    sim.params.body_mass[2] *= 1.5
    before = np.array(sim.qpos)
    sim.copy_env(2, np.array([True, False, False, True, False]))
    np.testing.assert_array_equal(sim.qpos[[0, 3]], before[[2, 2]])
    np.testing.assert_array_equal(sim.qpos[[1, 2, 4]], before[[1, 2, 4]])
    np.testing.assert_array_equal(sim.params.body_mass[0], sim.params.body_mass[2])
    state = sim.get_state()
    one = go_on(sim, 2)
    sim.set_state(state)
    np.testing.assert_array_equal(go_on(sim, 0), one)
    sim.copy_env(1, None)  # into all
    assert (sim.qpos == sim.qpos[1]).all()
    for source in (7, -1):
        with pytest.raises(ValueError, match=f"source is {source}, expected 0 to 4"):
            sim.copy_env(source, [0])
    with pytest.raises(TypeError, match="source is str, expected an integer"):
        sim.copy_env("first", [0])


@pytest.mark.parametrize("copied", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy])
def test_a_simulation_is_copied_and_pickled(copied):
    options = {"dtype": "float64", "per_env": ("body_mass",), "timestep": 0.003, "integrator": "euler", "solver": "pgs"}
    sim = walker(**options)
    sim.params.body_mass[:] *= 1.1
    other = copied(sim)
    assert (other.dtype, other.timestep, other.integrator, other.solver.name) == ("float64", 0.003, "euler", "pgs")
    assert not np.shares_memory(other.qpos, sim.qpos)
    np.testing.assert_array_equal(other.params.body_mass, sim.params.body_mass)
    np.testing.assert_array_equal(go_on(other, 2), go_on(sim, 2))
    assert other.model.mjmodel.nbody == sim.model.nbody
    assert copy.deepcopy(sim.model) is sim.model


@pytest.mark.parametrize("copied", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy])
def test_sensors_are_copied_with_their_simulation(copied):
    sim = walker()
    sensors = stiction.Sensors(sim)
    contacts, speedup = sensors.contacts(["LF_shank", "RH_shank"]), sensors.acceleration(sim.model.joint_names[1:])
    told = []
    for all_, touch, change in ((sensors, contacts, speedup), copied((sensors, contacts, speedup))):
        for _ in range(3):
            all_._sim.step(4)
            all_.advance(4 * sim.timestep)
        told.append((all_.body_pose("trunk")[0], touch.contact_time, touch.force, change.value))
    for one, other in zip(*told, strict=True):
        np.testing.assert_array_equal(one, other)


# ---- environments


class Reach(stiction.Task):
    """With memory of its own, sensors that remember, and an end."""

    model = """<mujoco><worldbody><geom type="plane" size="9 9 1"/>
      <body name="ball" pos="0 0 .3"><freejoint name="ball"/><geom size=".1"/><site name="s"/></body>
      <body><joint name="x" type="slide" axis="1 0 0"/><geom size=".1" contype="0" conaffinity="0"/></body></worldbody>
      <actuator><motor joint="x"/></actuator></mujoco>"""
    max_episode_steps = 7

    def setup(self):
        self.goal = self.array_of(np.zeros(self.num_envs))
        self.steps, self.best = 0, self.array_of(np.zeros((self.num_envs, 2)))
        self.touch = self.sensors.contacts(["ball"])
        self.imu = self.sensors.imu("s")

    def reset(self, envs, random):
        self.goal[envs] = random.uniform(-1, 1)
        self.sim.qpos[envs, 2] = random.uniform(0.1, 0.3)

    def observe(self):
        air = self.touch.air_time if hasattr(self.touch, "air_time") else self.touch.current_air_time
        return {
            "place": self.sim.qpos[:, 7:],
            "goal": self.goal,
            "air": air,
            "best": self.best,
            "g": self.imu.accelerometer,
        }

    def reward(self, action):
        self.steps += 1
        self.best[:, 0] += self.sim.qpos[:, 7]
        return -((self.sim.qpos[:, 7] - self.goal) ** 2) + self.steps

    def terminate(self):
        return self.sim.qpos[:, 7] > 0.02


class TorchReach(Reach):
    array = "torch"


class Calm(stiction.Task):
    base = "stiction/Ant-v0"

    def setup(self):
        self.count = np.zeros(self.num_envs)

    def observe(self):
        self.count += 1
        return {"count": self.count}

    def terminate(self):
        return self.sim.qpos[:, 2] < 0.45


KINDS = {
    "compiled": ("stiction/QuadrupedVelocity-v0", {}),
    "random": ("stiction/QuadrupedVelocity-v0", {"randomize": RANDOM}),
    "groups": (
        "stiction/Ant-v0",
        {
            "randomize": RANDOM,
            "observations": {"policy": Group("joint_position", history=3), "critic": Group(clean=True)},
        },
    ),
    "python": (Reach, {"randomize": [Noise(0.1)]}),
    "tensors": (TorchReach, {"observations": {"policy": Group(history=2)}}),
    "extended": (Calm, {"healthy_z_range": (0.3, 1.0)}),
}


def make(kind, backend, n=4):
    env_id, options = KINDS[kind]
    if backend == "torch" or kind == "tensors":
        pytest.importorskip("torch")
    return stiction.make_vec(env_id, n, num_threads=1, backend=backend, **({"max_episode_steps": 9} | options))


def told(results):
    """Every number of a step."""
    if isinstance(results, dict):
        return [number for name in sorted(results) for number in told(results[name])]
    if isinstance(results, tuple):
        return [number for part in results for number in told(part)]
    if isinstance(results, np.ndarray) and results.dtype.kind == "O":
        return [number for part in results if part is not None for number in told(part)]
    return [np.asarray(results)]


def walk(envs, first, steps):
    shape, space = envs.action_space.shape, envs.single_action_space
    actions = np.random.default_rng(4).uniform(-1, 1, (first + steps, *shape)) * space.high
    return [told(envs.step(action.astype(np.float32))) for action in actions[first:]]


def same(one, two):
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("kind", KINDS)
def test_environments_go_on_from_a_snapshot(kind, backend):
    first, second = make(kind, backend), make(kind, backend)
    first.reset(seed=3)
    second.reset(seed=8)
    walk(first, 0, 5)
    walk(second, 0, 2)
    state = first.get_state()
    assert all(isinstance(values, np.ndarray) for values in state.values())
    second.set_state(pickle.loads(pickle.dumps(state)))
    expected = walk(first, 5, 14)
    same(walk(second, 5, 14), expected)
    first.set_state(state)  # back in time
    same(walk(first, 5, 14), expected)
    fresh = make(kind, backend)
    fresh.set_state(state)
    same(walk(fresh, 5, 14), expected)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("kind", KINDS)
def test_environments_are_pickled_and_copied(kind, backend):
    envs = make(kind, backend)
    envs.reset(seed=3)
    walk(envs, 0, 5)
    bytes_, other = pickle.dumps(envs), copy.deepcopy(envs)
    expected = walk(envs, 5, 14)
    same(walk(other, 5, 14), expected)
    again = pickle.loads(bytes_)
    assert again.observation_names == envs.observation_names
    assert again.np_random_seed == envs.np_random_seed
    same(walk(again, 5, 14), expected)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_environment_goes_on_as_the_one_that_it_is_a_copy_of(kind, backend):
    """Of the same batch or of another, wherever their rings and counts are, with memory, seeds and draws to come."""
    envs, other = make(kind, backend), make(kind, backend, 3)
    envs.reset(seed=3)
    other.reset(seed=8)
    walk(envs, 0, 5)
    walk(other, 0, 4)
    before = envs.get_state()
    envs.copy_env(1, [0, 3])
    untouched = envs.get_state([2])
    for name, values in before.items():
        rows = values[[2]] if values.shape[:1] == (4,) else values
        np.testing.assert_array_equal(untouched[name], rows, err_msg=name)
    other.set_state(envs.get_state([2, 1]), envs=[0, 2])
    space = envs.single_action_space
    for action in np.random.default_rng(0).uniform(-1, 1, (14, *space.shape)).astype(np.float32) * space.high:
        moved, moved_other = (told(e.step(np.tile(action, (e.num_envs, 1)))[:4]) for e in (envs, other))
        if kind in ("python", "tensors"):  # whose reward counts what all environments do together
            del moved[-3], moved_other[-3]
        for mine, others in zip(moved, moved_other, strict=True):
            np.testing.assert_array_equal(mine[[0, 3]], mine[[1, 1]])
            if kind != "extended":  # which counts its own calls, more of them where more episodes end
                np.testing.assert_array_equal(others[[2, 0]], mine[[1, 2]])


def test_what_cannot_be_put_into_environments_is_refused():
    envs = make("random", "numpy")
    with pytest.raises(gymnasium.error.ResetNeeded, match="putting states"):
        envs.set_state(envs.get_state([0]), envs=[1])
    envs.reset(seed=0)
    before = envs.get_state()
    with pytest.raises(ValueError, match=r"expected float32 \(2, 19\), a row for each of envs, or \(1, 19\), one for"):
        envs.set_state(before, envs=[0, 1])
    with pytest.raises(ValueError, match="source is 4, expected 0 to 3"):
        envs.copy_env(4, [0])
    for name, values in envs.get_state().items():
        np.testing.assert_array_equal(values, before[name])


def test_a_single_environment_is_copied():
    env = gymnasium.make("stiction/Hopper-v0")
    env.reset(seed=3)
    env.step(np.zeros(3, np.float32))
    other = copy.deepcopy(env.unwrapped)
    for _ in range(5):
        one, two = env.unwrapped.step(np.full(3, 0.3, np.float32)), other.step(np.full(3, 0.3, np.float32))
        same([told(one[:4])], [told(two[:4])])


def test_states_of_other_environments_change_nothing():
    envs = make("random", "numpy")
    envs.reset(seed=0)
    before = envs.get_state()
    with pytest.raises(ValueError, match="no state of these environments"):
        envs.set_state(make("compiled", "numpy").get_state())
    with pytest.raises(ValueError, match=r"state\['.*'\] is .* expected"):
        envs.set_state(make("random", "numpy", n=3).get_state())
    for name, values in envs.get_state().items():
        np.testing.assert_array_equal(values, before[name])


def test_a_refused_state_changes_no_parameters():
    ants = stiction.make_vec("stiction/Ant-v0", 2, randomize=[Parameter("body_mass", 0.5, 2.0)])
    ants.reset(seed=0)
    before = ants.get_state()
    bad = {name: values.copy() for name, values in before.items()}
    bad["params.body_mass"] *= 1.5
    bad["qpos"][1, 3:7] = 0
    with pytest.raises(ValueError, match="qpos of joint"):
        ants.set_state(bad)
    for name, values in ants.get_state().items():
        np.testing.assert_array_equal(values, before[name])


TURNING = """<mujoco><worldbody><body name="hand" mocap="true"><geom size=".1" contype="0" conaffinity="0"/></body>
  <body pos="0 0 2"><freejoint name="base"/><geom size=".1"/><body pos="0 0 .2"><joint type="ball"/><geom size=".1"/></body></body>
  <body name="kite" pos="1 0 2"><freejoint name="kite"/><geom size=".1"/></body></worldbody></mujoco>"""  # noqa: E501


@pytest.mark.parametrize(
    ("name", "columns", "of"),
    [
        ("qpos", slice(3, 7), "qpos of joint 'base'"),
        ("qpos", slice(7, 11), "qpos of joint 1"),
        ("qpos", slice(14, 18), "qpos of joint 'kite'"),
        ("mocap_quat", 0, "mocap_quat of body 'hand'"),
    ],
)
@pytest.mark.parametrize("bad", [0.0, np.nan, 1e-20])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_has_no_orientation_is_no_state(name, columns, of, bad, dtype):
    """Refused by joint and environment; written into the array, the environment is flagged and its mates are not."""
    sim = Simulation(stiction.Model.from_mjcf(TURNING), 4, dtype=dtype, num_threads=1)
    sim.step(5)
    state, alone = sim.get_state(), sim.get_state()
    getattr(state, name)[2, columns] = bad
    with pytest.raises(ValueError, match=f"state.{of} is no orientation in environment 2: its quaternion is"):
        sim.set_state(state)
    for field in STATE:
        np.testing.assert_array_equal(getattr(sim, field), getattr(alone, field))  # nothing was written
    with pytest.raises(ValueError, match=f"{of} is no orientation in environment 0"):
        sim.set_state(state[[2]], envs=[1])
    sim.set_state(alone)
    getattr(sim, name)[2, columns] = bad
    sim.step()
    assert (sim.status == [0, 0, stiction.Status.NON_FINITE, 0]).all()
    copied = copy.deepcopy(sim)
    np.testing.assert_array_equal(getattr(copied, name), getattr(sim, name))
    sim.reset([2])
    sim.step()
    assert not sim.status.any()


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda envs: pickle.loads(pickle.dumps(envs))], ids=["copy", "pickle"]
)
@pytest.mark.parametrize("alone", [False, True])
def test_copies_have_the_parameters_of_now(again, alone):
    if alone:
        envs = gymnasium.make("stiction:stiction/Ant-v0", healthy_reward=3.0).unwrapped
    else:
        envs = stiction.make_vec("stiction/Ant-v0", 2, task={"healthy_reward": 3.0})
    envs.reset(seed=0)
    envs.set_task_parameters(ctrl_cost_weight=5.0)
    other = again(envs)
    assert other.task_parameters == envs.task_parameters and other.task_parameters["healthy_reward"] == 3.0
    action = np.full(envs.action_space.shape, 0.5)
    np.testing.assert_array_equal(envs.step(action)[1], other.step(action)[1])
