"""What a user tries on the first day: ids as Gymnasium has them, names almost right, what objects say of themselves."""

import copy
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from scenes import sliding_box  # noqa: E402
from stiction import Model, Sensors, Simulation, Task  # noqa: E402


def test_ids_may_begin_with_the_module():
    envs = stiction.make_vec("stiction:stiction/Hopper-v0", 2)
    assert envs.env_id == "stiction/Hopper-v0"
    assert envs.reset(seed=0)[0].shape == (2, 11)


def test_batches_and_states_tell_what_they_are():
    envs = stiction.make_vec("stiction/Hopper-v0", 2)
    assert repr(envs) == "stiction.VectorEnv('stiction/Hopper-v0', num_envs=2, backend='numpy', device='cpu')"
    state = repr(envs.simulation.get_state())
    assert state.startswith("stiction.SimulationState(qpos (2, 6), qvel (2, 6)")
    assert len(state) < 250
    envs.close()
    assert repr(envs) == "stiction.VectorEnv('stiction/Hopper-v0', closed)"


def test_an_option_of_reset_that_is_none_is_refused():
    envs = stiction.make_vec("stiction/Hopper-v0", 2)
    envs.reset(seed=0, options={})
    with pytest.raises(ValueError, match="no option 'reset_masks'; there is 'reset_mask'"):
        envs.reset(options={"reset_masks": np.array([True, False])})


class Still(Task):
    model = sliding_box()

    def observe(self):
        return self.sim.qpos.copy()

    def reward(self, action):
        return np.zeros(self.num_envs)


def still(**attributes):
    return type("Still", (Still,), attributes)


@pytest.mark.parametrize(
    ("attributes", "error", "text"),
    [
        ({"max_episode_step": 5}, TypeError, "'max_episode_step', which is nothing.*'max_episode_steps' is"),
        ({"terminated": lambda task: None}, TypeError, "'terminated', which is nothing of a task; 'terminate' is"),
        ({"truncate": lambda task: None}, TypeError, "'truncate', which no task is asked for: max_episode_steps says"),
        ({"max_episode_steps": 0}, ValueError, "Still.max_episode_steps is 0, expected control steps"),
        ({"max_episode_steps": 2.5}, ValueError, "Still.max_episode_steps is 2.5"),
        ({"observe": lambda task: {}}, ValueError, r"Still.observe\(\) returned no terms"),
        ({"observe": lambda task: np.zeros(2)}, ValueError, r"observe\(\) has shape \(2,\), expected \(2, D\)"),
        ({"report": lambda task: None}, TypeError, r"Still.report\(\) returned a NoneType, expected a dict"),
        ({"report": lambda task: {"status": np.zeros(2)}}, ValueError, r"Still.report\(\) tells 'status'"),
        ({"report": lambda task: {"reward_total": np.zeros(2)}}, ValueError, r"Still.report\(\) tells 'reward_total'"),
    ],
)
def test_a_tasks_slips_are_named(attributes, error, text):
    with pytest.raises(error, match=text):
        stiction.make_vec(still(**attributes), 2)


def test_helpers_beside_what_a_task_defines_may_have_names_like_it():
    kind = still(terminate=lambda task: np.zeros(2, bool), terminated=lambda task: None, rewards=3.0)
    assert stiction.make_vec(kind, 2).task_parameters == {"rewards": 3.0}


def test_a_beginning_that_is_no_number_is_said_to_be_the_tasks():
    def reset(task, envs, random):
        task.sim.qpos[envs, 2] = np.nan

    with pytest.raises(ValueError, match="environment 0, whose qpos is not finite since the task wrote it"):
        stiction.make_vec(still(reset=reset), 2).reset(seed=0)


def test_a_name_that_is_a_number_is_refused_in_words():
    sensors = Sensors(Simulation(Model.from_mjcf(sliding_box())))
    with pytest.raises(TypeError, match="1 is no name of a body and no list of them"):
        sensors.body_pose(1)


def test_a_time_step_is_no_string():
    with pytest.raises(TypeError, match="timestep is '0.01', expected seconds"):
        Simulation(Model.from_mjcf(sliding_box()), timestep="0.01")


def test_one_number_for_every_is_refused_in_words():
    with pytest.raises(TypeError, match=r"Push: every is 5, expected \(low, high\) seconds"):
        stiction.randomisation.Push(1, every=5)


def test_adapters_complete():
    assert {"rsl_rl", "sb3", "skrl", "isaaclab"} <= set(dir(stiction.adapters))


def test_a_file_without_its_class_is_named():
    from stiction.training.options import environment_id

    with pytest.raises(ValueError, match="reach.py is a file: name the class in it, reach.py:MyTask"):
        environment_id("reach.py")


def test_pictures_of_another_threads_are_refused_in_words():
    pytest.importorskip("mujoco")
    sim = Simulation(Model.from_mjcf(sliding_box()))
    try:
        sim.render(width=16, height=16)
    except RuntimeError as reason:
        pytest.skip(str(reason))
    told = []

    def draw():
        told.append(copy.deepcopy(sim).render(width=16, height=16).shape)
        try:
            told.append(sim.render(width=16, height=16).shape)
        except RuntimeError as reason:
            told.append(str(reason))

    thread = threading.Thread(target=draw)
    thread.start()
    thread.join()
    assert told[0] == (16, 16, 3)
    assert told[1] == (16, 16, 3) or "another thread has drawn pictures of this before" in told[1]


def test_where_mujoco_cannot_render_asking_twice_ends_nothing():
    program = """import mujoco, stiction
ball = "<mujoco><worldbody><body><freejoint/><geom size='1'/></body></worldbody></mujoco>"
sim = stiction.Simulation(stiction.Model.from_mjcf(ball))
for _ in range(2):
    try:
        print(sim.render(width=16, height=16).shape)
    except RuntimeError as reason:
        print(reason)"""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    kept = {name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "DISPLAY")}
    kept |= {"PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=kept)
    first, second = done.stdout.splitlines()
    assert first == second == "(16, 16, 3)" or (first == second and "MUJOCO_GL=egl" in first), done.stderr
    assert done.returncode == 0, done.stderr
