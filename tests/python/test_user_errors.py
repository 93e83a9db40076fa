"""What new users get wrong and are told: Gymnasium's habits, tasks in Python, typing errors, forks, threads."""

import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from scenes import sliding_box  # noqa: E402
from stiction import Model, Simulation, Task  # noqa: E402


def envs(num_envs=2, **options):
    return stiction.make_vec("stiction/Ant-v0", num_envs, num_threads=1, **options)


# ---- Gymnasium's habits


def test_parameters_of_a_task_are_keywords_too():
    vector = envs(healthy_z_range=(0.3, 0.9), task={"ctrl_cost_weight": 0.25})
    assert vector.task_parameters["healthy_z_range"] == (0.3, 0.9)
    assert vector.task_parameters["ctrl_cost_weight"] == 0.25
    for make, kind in ((gymnasium.make, "single"), (gymnasium.make_vec, "vector")):
        made = make("stiction/Ant-v0", ctrl_cost_weight=0.75)
        assert made.unwrapped.task_parameters["ctrl_cost_weight"] == 0.75, kind
    plain, heavy = envs(), envs(ctrl_cost_weight=0.75)
    for env in (plain, heavy):
        env.reset(seed=0)
    actions = np.ones((2, 8), np.float32)
    costs = [env.step(actions)[-1]["reward_ctrl"] for env in (plain, heavy)]
    np.testing.assert_allclose(costs[1], 1.5 * costs[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"healthy_range": (0, 1)},
            r"'healthy_range' is no parameter of stiction/Ant-v0 and no option.*near: 'healthy_z_range'",
        ),
        ({"widht": 640}, "'widht' is no parameter.*near: 'width'"),
        ({"xml_file": "ant.xml"}, "'xml_file' is no parameter.*Gymnasium's 'xml_file' is 'model' here"),
        ({"frame_skip": 1}, "Gymnasium's 'frame_skip' is the task's own number of time steps per action here"),
        ({"camera_id": 0}, "Gymnasium's 'camera_id' is 'camera' here"),
        ({"exclude_current_positions_from_observation": False}, "observation' is True .infos have positions. here"),
        ({"rendermode": "rgb_array"}, "'rendermode' is no parameter.*near: 'render_mode'"),
        ({"bakend": "torch"}, "'bakend' is no parameter.*near: 'backend'"),
        ({"max_episode_step": 5}, "'max_episode_step' is no parameter.*near: 'max_episode_steps'"),
        ({"num_thread": 2}, r"'num_thread' is no parameter.*near: 'num_threads'"),
        ({"depth": 200}, r"'depth' is no parameter of stiction/Ant-v0 and no option of stiction.Simulation"),
        ({"ctrl_cost_weight": 1, "task": {"ctrl_cost_weight": 2}}, "given twice"),
    ],
)
def test_other_keywords_are_refused_by_name(options, text):
    with pytest.raises(TypeError, match=text):
        stiction.make_vec("stiction/Ant-v0", 2, **options)
    with pytest.raises(TypeError, match=text):
        gymnasium.make("stiction/Ant-v0", **options)


def test_keywords_are_parameters_of_a_task_in_python_too():
    assert stiction.make_vec(Slide, 2, effort=0.5).task_parameters == {"effort": 0.5}
    with pytest.raises(TypeError, match="'efort' is no parameter of Slide.*near: 'effort'"):
        stiction.make_vec(Slide, 2, efort=0.5)


WRAPPERS = gymnasium.wrappers.vector
ALL, NOT_SAME = ("SameStep", "NextStep", "Disabled"), ("NextStep", "Disabled")


@pytest.mark.parametrize(
    ("wrapper", "options", "modes"),
    [
        (WRAPPERS.RecordEpisodeStatistics, {}, ALL),
        (WRAPPERS.NormalizeReward, {}, ALL),
        (WRAPPERS.DictInfoToList, {}, ALL),
        (WRAPPERS.ClipAction, {}, ALL),
        (WRAPPERS.TransformReward, {"func": lambda rewards: 2 * rewards}, ALL),
        (WRAPPERS.TransformObservation, {"func": lambda observations: observations}, NOT_SAME),
        (WRAPPERS.FlattenObservation, {}, NOT_SAME),
        (WRAPPERS.DtypeObservation, {"dtype": np.float64}, NOT_SAME),
        (WRAPPERS.NormalizeObservation, {}, ("NextStep",)),
    ],
)
def test_gymnasiums_wrappers_take_the_modes_that_the_docs_say(wrapper, options, modes):
    for mode in ALL:
        batch = gymnasium.make_vec("stiction/CartPoleBalance-v0", num_envs=2, autoreset_mode=mode, max_episode_steps=8)
        try:
            wrapped = wrapper(batch, **options)
            wrapped.reset(seed=0)
            for _ in range(6 if mode == "Disabled" else 20):
                wrapped.step(wrapped.action_space.sample())
        except ValueError as error:
            assert mode not in modes and "autoreset_mode" in str(error), error
        else:
            assert mode in modes, mode


@pytest.mark.parametrize("mode", NOT_SAME)
def test_gymnasiums_tensors(mode):
    pytest.importorskip("array_api_compat")
    batch = WRAPPERS.NumpyToTorch(gymnasium.make_vec("stiction/CartPoleBalance-v0", num_envs=2, autoreset_mode=mode))
    assert batch.step(0 * batch.reset(seed=0)[0][:, :1])[0].shape == (2, 5)


def test_dt_is_that_of_gymnasiums_environments():
    dt = pytest.approx(gymnasium.make("Hopper-v5").unwrapped.dt)
    for made in (gymnasium.make("stiction/Hopper-v0").unwrapped, stiction.make_vec("stiction/Hopper-v0", 3)):
        assert made.dt == made.step_dt == dt
    assert made.get_attr("dt") == (made.dt,) * 3


def test_one_environment_tells_its_names_and_what_only_batches_have():
    single, batch = gymnasium.make("stiction/Hopper-v0").unwrapped, stiction.make_vec("stiction/Hopper-v0")
    assert single.observation_names == batch.observation_names
    assert single.action_names == batch.action_names
    for option in ({"observations": "goal"}, {"randomize": []}, {"backend": "torch"}):
        (name,) = option
        with pytest.raises(TypeError, match=rf"'{name}' is for batches: stiction.make_vec\('stiction/ArmLift-v0', 1, "):
            gymnasium.make("stiction/ArmLift-v0", **option)


def test_adapters_say_what_to_do_with_wrapped_environments():
    batch = pytest.importorskip("stiction.adapters.batch")
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(envs())
    with pytest.raises(TypeError, match="RecordEpisodeStatistics, expected.*hand over envs.unwrapped"):
        batch.same_step(wrapped)
    assert batch.same_step(wrapped.unwrapped) is wrapped.unwrapped
    with pytest.raises(TypeError, match="a batch is stiction.make_vec..stiction/Ant-v0., num_envs"):
        batch.same_step(gymnasium.make("stiction/Ant-v0"))
    with pytest.raises(TypeError, match="envs is list, expected what stiction.make_vec returns, without wrappers$"):
        batch.same_step([])


# ---- tasks in Python

RAIL = """
<mujoco>
  <worldbody><body><joint name="x" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body></worldbody>
  <actuator><motor joint="x" ctrlrange="-1 1" ctrllimited="true"/></actuator>
</mujoco>"""


class Slide(Task):
    model = RAIL
    effort = 0.1

    def observe(self):
        return np.concatenate([self.sim.qpos, self.sim.qvel], axis=1)

    def reward(self, action):
        return {"near": -np.abs(self.sim.qpos[:, 0]), "effort": -self.effort * np.abs(action[:, 0])}


class Listed(Slide):
    def observe(self):
        return [self.sim.qpos, self.sim.qvel]


class Discrete(Slide):
    def action_space(self):
        return gymnasium.spaces.Discrete(3)


class Restless(Slide):
    substeps = 0


class Endless(Slide):
    def terminate(self):
        return False


class EndlessAnt(Task):
    base = "stiction/Ant-v0"

    def terminate(self):
        return False


class Pointed(Slide):
    def markers(self, env):
        return [(0, 0, 1)]


class SpaceAsAttribute(Slide):
    action_space = gymnasium.spaces.Discrete(3)


@pytest.mark.parametrize(
    ("task", "text"),
    [
        (SpaceAsAttribute, r"action_space\(\) is Discrete\(3\), expected a method that returns a gymnasium.spaces.Box"),
        (Listed, r"Listed.observe\(\) returned a list, expected an array \(2, D\)"),
        (Discrete, r"Discrete.action_space\(\) is Discrete\(3\), expected a method that returns a gymnasium.*Box"),
    ],
)
def test_a_tasks_mistakes_are_named(task, text):
    with pytest.raises(TypeError, match=text):
        stiction.make_vec(task, 2)


def test_steps_of_no_time_are_refused():
    with pytest.raises(ValueError, match="Restless.substeps is 0, expected how many time steps, at least 1"):
        stiction.make_vec(Restless, 2)


@pytest.mark.parametrize("task", [Endless, EndlessAnt])
def test_an_end_for_all_at_once_is_named(task):
    env = stiction.make_vec(task, 2)
    env.reset()
    with pytest.raises(TypeError, match=r"\.terminate\(\) returned a bool, expected an array \(2,\) of bool"):
        env.step(np.zeros(env.action_space.shape, np.float32))


def test_a_marker_that_is_none_is_named():
    env = stiction.make_vec(Pointed, 2)
    env.reset()
    with pytest.raises(TypeError, match=r"Pointed.markers\(\) has a tuple, expected stiction.Marker"):
        env.markers(1)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_reward_that_is_no_number_is_named(value):
    class Broken(Slide):
        def reward(self, action):
            terms = super().reward(action)
            if self.sim.time[0] > 0.005:
                terms["near"][1] = value
            return terms

    made = stiction.make_vec(Broken, 3)
    made.reset(seed=0)
    made.step(np.zeros((3, 1), np.float32))
    made.step(np.zeros((3, 1), np.float32))
    with pytest.raises(
        ValueError, match=rf"Broken.reward\(\) told {value} for 'reward_near' of environment 1 in its step 3"
    ):
        made.step(np.zeros((3, 1), np.float32))


@pytest.mark.parametrize("array", ["native", "torch"])
def test_an_observation_that_is_no_number_is_named(array):
    if array == "torch":
        pytest.importorskip("torch")

    told = np.zeros(3)

    class Broken(Task):
        model = RAIL

        def observe(self):
            return {"place": self.sim.qpos, "sick": self.array_of(told.copy())}

        def reward(self, action):
            return -abs(self.sim.qpos[:, 0])

    Broken.array = array
    made = stiction.make_vec(Broken, 3)
    made.reset(seed=0)
    made.step(np.zeros((3, 1), np.float32))
    told[2] = np.nan
    with pytest.raises(ValueError, match=r"Broken.observe\(\) told nan for 'sick' of environment 2, whose state is"):
        made.step(np.zeros((3, 1), np.float32))


def test_a_simulation_that_breaks_down_ends_its_episode_alone():
    """Its reward is 0, whatever the task makes of a state that is not finite."""
    made = stiction.make_vec(Slide, 2)
    made.reset(seed=0)
    made.simulation.qvel[1, 0] = np.nan
    _, rewards, terminated, *_ = made.step(np.zeros((2, 1), np.float32))
    assert terminated.tolist() == [False, True] and np.isfinite(rewards).all()


# ---- typing errors


def test_a_typing_error_makes_no_attribute():
    sim = Simulation(Model.from_mjcf(sliding_box()))
    with pytest.raises(AttributeError, match="a simulation has no 'crtl'; near: 'ctrl'"):
        sim.crtl = np.zeros(sim.ctrl.shape)
    with pytest.raises(AttributeError, match="no 'qpso'; near: 'qpos'"):
        sim.qpso = 0
    sim.qpos = sim.qpos + 0
    with pytest.raises(AttributeError, match="ContactArrays has no 'impulses'; near: 'impulse'"):
        sim.contact.impulses = 0
    with pytest.raises(AttributeError, match="count is computed by the simulation and cannot be set"):
        sim.contact.count = 0
    with pytest.raises(AttributeError, match="CertificateArrays has no 'foo'"):
        sim.certificate.foo = 0
    with pytest.raises(AttributeError, match="Model has no field 'body_mas'; near: 'body_mass'"):
        sim.model.body_mas = 0
    with pytest.raises(AttributeError, match="body_mass cannot be set, for a model is immutable"):
        sim.model.body_mass = 0


def test_a_picture_with_a_typing_error_is_refused():
    sim = Simulation(Model.from_mjcf(sliding_box()))
    with pytest.raises(TypeError, match="render has no option 'widht'; near: 'width'"):
        sim.render(widht=640)
    for make in (stiction.make_vec, gymnasium.make):
        with pytest.raises(ValueError, match="the model has no camera 'trak'; there are: 'track'"):
            make("stiction/Hopper-v0", render_mode="rgb_array", camera="trak")


def test_a_solver_given_as_a_class_is_refused():
    with pytest.raises(TypeError, match=r"solver is the class Canal, expected an object of it: Canal\(\)"):
        Simulation(Model.from_mjcf(sliding_box()), solver=stiction.Canal)


def test_parameters_that_cannot_be_negative_are_refused():
    sim = Simulation(Model.from_mjcf(sliding_box()), 2, per_env=("geom_friction", "body_mass", "gravity"))
    friction = np.array(sim.params.geom_friction)
    friction[1, 0, 0] = -0.1
    with pytest.raises(ValueError, match="params.geom_friction has negative entries"):
        sim.params.geom_friction = friction
    assert (np.array(sim.params.geom_friction) >= 0).all()
    sim.params.gravity = -np.abs(np.array(sim.params.gravity))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["body_mass", "geom_friction", "gravity", "body_ipos"])
def test_parameters_that_are_not_finite_are_refused_or_flagged(name, value):
    """Assigned they are refused; written into a view they stop their environment, and no other."""
    sim = Simulation(Model.from_mjcf(sliding_box()), 3, per_env=(name,))
    sound = np.array(getattr(sim.params, name))
    broken = sound.copy()
    broken[1][(-1, 0) if broken[1].ndim == 2 else -1] = value
    with pytest.raises(ValueError, match=f"params.{name} has entries that are not finite"):
        setattr(sim.params, name, broken)
    np.testing.assert_array_equal(getattr(sim.params, name), sound)
    getattr(sim.params, name)[...] = broken
    sim.step(5)
    assert ((np.array(sim.status) & stiction.Status.NON_FINITE) != 0).tolist() == [False, True, False]
    setattr(sim.params, name, sound)
    sim.reset()
    sim.step(5)
    assert not np.array(sim.status).any()


@pytest.mark.parametrize(("operation", "low"), [("scale", -0.5), ("add", -2.0), ("set", -0.1)])
def test_randomisation_below_zero_is_refused(operation, low):
    term = stiction.randomisation.Parameter("geom_friction", low, 1.0, operation=operation)
    with pytest.raises(
        ValueError, match=r"geom_friction \(\S+ .* to 1\) at times has negative entries \(-\S+\), and is"
    ):
        envs(randomize=[term])


def test_groups_name_their_terms():
    assert stiction.Group() == stiction.Group("*")
    with pytest.raises(ValueError, match=r"observations\['policy'\] names no term; '\*' is all of them"):
        envs(observations={"policy": ()})


def test_sensors_of_nothing_are_empty():
    sensors = stiction.Sensors(Simulation(Model.from_mjcf(sliding_box()), 2))
    assert sensors.contact_force([], "world").shape == (2, 0, 3)
    assert sensors.contact_count([]).shape == sensors.joint_torque([]).shape == (2, 0)
    assert sensors.body_pose([])[1].shape == (2, 0, 4)
    assert sensors.joint_state([])[0].shape == (2, 0)


@pytest.mark.parametrize(
    ("path", "text"), [("nowhere/a.mp4", "no folder .*nowhere to write a.mp4 into"), (".", "cannot be written")]
)
def test_a_video_that_cannot_be_written_says_why(tmp_path, path, text):
    pytest.importorskip("imageio_ffmpeg")
    from stiction.batch_renderer import write_video

    with pytest.raises(OSError, match=text):
        write_video(tmp_path / path, [np.zeros((16, 16, 3), np.uint8)], 10)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_reason_of_ffmpegs_is_told(tmp_path, capfd):
    pytest.importorskip("imageio_ffmpeg")
    from stiction.batch_renderer import write_video

    (tmp_path / "a.mp4").symlink_to("/dev/full")
    noise = np.random.default_rng(0).integers(0, 255, (300, 64, 64, 3), np.uint8)
    with pytest.raises(OSError, match=r"ffmpeg could not write .*a.mp4: (.|\n)*No space left on device"):
        write_video(tmp_path / "a.mp4", list(noise), 10)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("path", ["a.gif", "a", "a.mp4.txt"])
def test_a_video_of_another_kind_is_refused(tmp_path, path):
    frame = np.zeros((16, 16, 3), np.uint8)
    with pytest.raises(ValueError, match="no name of a video, expected one that ends in .mp4, .mov, .mkv"):
        stiction.Video([frame], 10).save(tmp_path / path)


# ---- processes and threads


def step_in_child(sim, told):
    try:
        sim.step()
        told.put("stepped")
    except RuntimeError as error:
        told.put(str(error))


@pytest.mark.parametrize(("num_threads", "expected"), [(1, "stepped"), (2, "forked")])
def test_a_forked_child_steps_or_says_why_not(num_threads, expected):
    """It has none of the parent's threads, and ends by itself."""
    context = multiprocessing.get_context("fork")
    sim = Simulation(Model.from_mjcf(sliding_box()), 64, num_threads=num_threads, device="cpu")
    sim.step()
    told = context.Queue()
    child = context.Process(target=step_in_child, args=(sim, told))
    child.start()
    assert expected in told.get(timeout=20)
    child.join(20)
    assert child.exitcode == 0
    sim.step()


ENDS = {
    "exit": "sys.exit(0)",
    "close": "sim.close(); os._exit(0)",
    "collect": "envs.close(); del sim, envs; gc.collect(); os._exit(0)",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_forked_child_ends(end):
    """By the interpreter's exit, and by letting go of what has the parent's threads."""
    script = f"""
import gc, os, sys, time, numpy, stiction
sim = stiction.Simulation(stiction.Model.from_mjcf({sliding_box()!r}), 64, num_threads=2)
envs = stiction.make_vec("stiction/Ant-v0", 64, num_threads=2)
sim.step(2), envs.reset(seed=0), envs.step(numpy.zeros(envs.action_space.shape, numpy.float32))
child = os.fork()
if child == 0:
    {ENDS[end]}
ended, deadline = 0, time.monotonic() + 20
while not ended and time.monotonic() < deadline:
    ended, status = os.waitpid(child, os.WNOHANG)
    time.sleep(0.05)
if not ended:
    os.kill(child, 9), os.waitpid(child, 0)
    sys.exit("the child hangs")
sim.step(2)
sys.exit(status)
"""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_simulation_made_in_a_forked_child_works():
    def make(told):
        step_in_child(Simulation(Model.from_mjcf(sliding_box()), 64, num_threads=2, device="cpu"), told)

    context = multiprocessing.get_context("fork")
    before = Simulation(Model.from_mjcf(sliding_box()), 64, num_threads=2, device="cpu")
    before.step()
    told = context.Queue()
    child = context.Process(target=make, args=(told,))
    child.start()
    assert told.get(timeout=20) == "stepped"
    child.join(20)
    assert child.exitcode == 0


def test_two_threads_in_one_simulation_are_told():
    sim = Simulation(Model.from_mjcf(sliding_box()), 512, num_threads=1, device="cpu")
    begin, errors, done = threading.Barrier(2), [], []

    def step():
        begin.wait()
        for _ in range(20):
            try:
                sim.step(20)
                done.append(20)
            except RuntimeError as error:
                errors.append(str(error))

    threads = [threading.Thread(target=step) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors and all("another thread is in a call of this simulation" in error for error in errors)
    assert sim.time[0] == pytest.approx(sum(done) * sim.timestep)
    sim.step()
