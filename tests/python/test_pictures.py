"""Pictures: sizes, cameras, goals and commands, videos for notebooks."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from stiction import Marker, Simulation  # noqa: E402
from stiction.picture import Picture, task_markers  # noqa: E402
from stiction.registration import asset_path  # noqa: E402


def model(change=lambda text: text):
    return stiction.Model.from_mjcf(change(asset_path("quadruped.xml").read_text()))


@pytest.fixture(scope="module", autouse=True)
def can_render():
    try:
        Simulation(model(), 1).render(width=16, height=16)
    except RuntimeError as reason:
        pytest.skip(str(reason))


def make(name, num_envs=2, **options):
    options = {"render_mode": "rgb_array", "num_threads": 1, "width": 160, "height": 120} | options
    return stiction.make_vec(f"stiction/{name}-v0", num_envs, **options)


def orange(picture):
    """Pixels of the quadruped's trunk."""
    red, green, blue = (picture[..., channel].astype(int) for channel in range(3))
    return (red > 1.5 * green) & (green > 1.2 * blue) & (red > 60)


def greens(picture):
    """Pixels of goals and commands."""
    red, green, blue = (picture[..., channel].astype(int) for channel in range(3))
    return (green > 1.7 * red) & (green > 1.7 * blue) & (green > 60)


def test_a_simulation_is_drawn():
    sim = Simulation(model(), 3)
    sim.qpos[1, 2] = 5.0
    sim.forward()
    low, high = sim.render(0, width=120, height=80), sim.render(1, width=120, height=80)
    assert low.shape == high.shape == (80, 120, 3)
    assert low.dtype == np.uint8
    assert orange(low).sum() > 20
    assert not np.array_equal(low, high)
    assert sim.render().shape == (480, 480, 3)
    with pytest.raises(ValueError, match="env is 3, expected 0 to 2"):
        sim.render(3)
    with pytest.raises(ValueError, match="width is 0, expected at least 2 pixels"):
        sim.render(width=0)


def test_an_environment_is_drawn_with_its_own_numbers():
    sim = Simulation(model(), 2, per_env=("body_pos", "geom_size"))
    before, same = sim.render(0), sim.render(1)
    np.testing.assert_array_equal(before, same)
    for name in ("body_pos", "geom_size"):
        getattr(sim.params, name)[1] *= 1.3
        assert (sim.render(1) != before).sum() > 1000
        np.testing.assert_array_equal(sim.render(0), before)
        getattr(sim.params, name)[1] /= 1.3
    assert (sim.model.mjmodel.body_pos == sim.model.body_pos).all()


def test_the_camera_follows():
    sim = Simulation(model(lambda text: text.replace('name="track"', 'name="side"')), 2)
    sim.qpos[1, :2] = 30, -20
    here, there = sim.render(0, width=160, height=120), sim.render(1, width=160, height=120)
    assert orange(here).sum() > 100
    np.testing.assert_allclose(orange(there).sum(), orange(here).sum(), rtol=0.1)
    rows, columns = np.nonzero(orange(there))
    assert 30 < rows.mean() < 90
    assert 40 < columns.mean() < 120


def test_a_camera_is_chosen_by_name():
    two = model(lambda t: t.replace("<worldbody>", '<worldbody><camera name="above" pos="0 0 3"/>', 1))
    sim = Simulation(two, 1)
    above = sim.render(camera="above", width=160, height=120)
    assert not np.array_equal(above, sim.render(width=160, height=120))
    np.testing.assert_array_equal(above, sim.render(camera=two.mjmodel.camera("above").id, width=160, height=120))
    with pytest.raises(ValueError, match="no camera 'belw'; there are: .*'above'"):
        sim.render(camera="belw")
    with pytest.raises(ValueError, match="camera is 9, and the model has"):
        Picture(two, camera=9)


def test_robots_of_hidden_groups_are_shown():
    """As of files that have collision geoms alone, in group 3."""
    hidden = model(
        lambda text: text.replace("<geom ", '<geom group="3" ').replace('group="3" name="floor"', 'name="floor"')
    )
    geoms = hidden.mjmodel.geom_group[hidden.mjmodel.geom_bodyid > 0]
    assert (geoms == 3).all()
    assert orange(Simulation(hidden, 1).render(width=160, height=120)).sum() > 100


def test_a_model_of_arrays_cannot_be_drawn():
    bare = stiction.Model.from_arrays(model().to_arrays())
    with pytest.raises(ValueError, match="has no mjmodel and cannot be drawn"):
        Simulation(bare, 1).render()


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_the_goal_of_a_lift_is_in_the_picture(backend):
    if backend == "torch":
        pytest.importorskip("torch")
    envs = make("ArmLift", backend=backend)
    _, infos = envs.reset(seed=0)
    for env in range(2):
        (marker,) = envs.markers(env)
        assert marker.to is None
        np.testing.assert_allclose(marker.at, [infos[f"goal_{axis}"][env] for axis in "xyz"], rtol=1e-6)
    with_goal = envs.render()[0]
    without = envs._core.frame(0, {})
    assert with_goal.shape == (120, 160, 3)
    changed = (with_goal != without).any(axis=2)
    assert 3 < changed.sum() < 200
    assert greens(with_goal)[changed].mean() > 0.5
    assert greens(without).sum() < 3


def test_a_command_and_the_velocity_are_arrows():
    envs = make("QuadrupedVelocity", smallest_command=0.0, command_x=(1, 1), command_y=(0, 0), curriculum_start=1.0)
    envs.reset(seed=0)
    sim = envs.simulation
    sim.qpos[0, 3:7] = np.sqrt(0.5), 0, 0, np.sqrt(0.5)  # forward is y
    sim.qvel[0, :3] = 0.5, 0, 0
    sim.forward()
    wanted, moved = task_markers({"command_x": 1.0, "command_y": 0.0}, sim, 0)
    np.testing.assert_allclose(np.subtract(wanted.to, wanted.at), [0, 0.5, 0], atol=1e-6)
    np.testing.assert_allclose(np.subtract(moved.to, moved.at), [0.25, 0, 0], atol=1e-6)
    assert wanted.at[2] > sim.qpos[0, 2]
    assert greens(envs.picture(0)).sum() > 10


def test_a_goal_orientation_is_axes():
    envs = make("HandReorient")
    envs.reset(seed=0)
    markers = envs.markers(1)
    assert len(markers) == 6
    goal = [envs._reported(1)[f"goal_{e}"] for e in "wxyz"]
    import mujoco

    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, np.array(goal))
    for axis, marker in enumerate(markers[:3]):
        along = np.subtract(marker.to, marker.at)
        np.testing.assert_allclose(along / np.linalg.norm(along), matrix.reshape(3, 3)[:, axis], atol=1e-5)


def test_a_task_in_python_draws_its_own():
    class Marked(stiction.Task):
        model = asset_path("quadruped.xml")

        def observe(self):
            return self.sim.qpos

        def reward(self, action):
            return self.sim.qpos[:, 0]

        def markers(self, env):
            return [Marker((0, 0, 1.0), size=0.1)]

    for marks in (1, 0):
        if marks == 0:
            Marked.markers = stiction.Task.markers
        envs = stiction.make_vec(Marked, 1, render_mode="rgb_array", width=160, height=120, num_threads=1)
        envs.reset(seed=0)
        assert (greens(envs.picture(0)).sum() > 20) == bool(marks)


def test_a_single_environment_has_its_size_and_goal():
    env = gymnasium.make("stiction/ArmLift-v0", render_mode="rgb_array", width=160, height=120)
    env.reset(seed=0)
    assert env.render().shape == (120, 160, 3)
    assert greens(env.render()).sum() > 3


def test_a_video_plays_in_a_notebook(tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    envs = make("Hopper", 1)
    video = stiction.record(envs, lambda observations: envs.action_space.sample(), seconds=0.5)
    assert len(video.frames) / video.fps == pytest.approx(0.5, abs=0.05)
    assert len({frame.tobytes() for frame in video.frames}) > 5
    html = video._repr_html_()
    assert html.startswith("<video")
    assert len(html) > 1000
    video.save(tmp_path / "a.mp4")
    assert (tmp_path / "a.mp4").stat().st_size > 500
    assert repr(video).startswith("stiction.Video(")
    with pytest.raises(ValueError, match="no render_mode"):
        stiction.record(stiction.make_vec("stiction/Hopper-v0", 1))
    with pytest.raises(ValueError, match="env is 7, expected 0 to 0"):
        stiction.record(envs, env=7)
    with pytest.raises(ValueError, match="env is 7, expected 0 to 0"):
        envs.markers(7)
    single = gymnasium.make("stiction/Hopper-v0", render_mode="rgb_array")
    for other in (single, single.unwrapped, envs.simulation):
        with pytest.raises(TypeError, match=r"envs is \w+, expected those of stiction.make_vec"):
            stiction.record(other)


@pytest.mark.parametrize(("height", "width"), [(120, 168), (33, 51)])
def test_a_video_has_the_size_that_was_asked_for(tmp_path, capfd, height, width):
    """Pixel by pixel: nothing is stretched to a multiple of 16. What is odd has its last row or column twice."""
    import imageio.v3
    from stiction.batch_renderer import write_video

    dark = np.zeros((height, width, 3), np.uint8)
    dark[: height // 2, : width // 2] = 255
    write_video(tmp_path / "a.mp4", [dark] * 3, 10)
    frame = imageio.v3.imread(tmp_path / "a.mp4")[1]
    assert frame.shape == (height + height % 2, width + width % 2, 3)
    assert np.abs(frame[:height, :width].astype(int) - dark).mean() < 5
    assert frame[-1].max() < 50 and frame[0, : width // 2].min() > 200
    told = capfd.readouterr()
    assert "divisible" not in told.out + told.err


def test_no_display_needs_no_word():
    """MuJoCo settles how it renders while it is imported, which compiling a model does."""
    program = """import stiction
model = stiction.make_vec("stiction/Hopper-v0").simulation.model
print(stiction.Simulation(model, 2).render(1, width=64, height=48).shape)"""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "DISPLAY")}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment | {"PYTHONPATH": path}
    )
    assert done.stdout.strip() == "(48, 64, 3)", done.stderr


def test_mocap_bodies_are_drawn_where_they_are():
    model = stiction.Model.from_mjcf("""<mujoco><worldbody><camera name="fix" pos="0 -4 .2" xyaxes="1 0 0 0 0 1"/>
      <body name="goal" mocap="true" pos="0 0 .2">
        <geom type="sphere" size=".1" rgba="1 0 0 1" contype="0" conaffinity="0"/></body>
      <body pos="0 0 5"><freejoint/><geom size=".01"/></body></worldbody></mujoco>""")
    sim = Simulation(model, 2)
    sim.mocap_pos[1, 0] = 1, 0, 0.2
    sim.forward()

    def column(env):
        picture = sim.render(env, camera="fix").astype(int)
        red = (picture[..., 0] > 100) & (picture[..., 1] < 80)
        assert red.any()
        return np.nonzero(red)[1].mean() / picture.shape[1]

    assert column(0) == pytest.approx(0.5, abs=0.02) and column(1) > 0.7
