"""One's own robot by one command: what `stiction train` and its neighbours take, keep and need no more."""

import json
import os
import shutil
import subprocess
import sys
import time
from argparse import ArgumentParser
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
torch = pytest.importorskip("torch")
import stiction  # noqa: E402
from stiction import Group, cli  # noqa: E402
from stiction.randomisation import Gains, Latency, Noise, Parameter, Push  # noqa: E402
from stiction.randomisation_tables import terms_of  # noqa: E402
from stiction.registration import asset_path  # noqa: E402
from stiction.training import setup, train  # noqa: E402
from stiction.training.run import Checkpoint  # noqa: E402

SMALL = ["--threads", "1", "--num-envs", "8", "--set", "steps=8", "minibatch=32", "hidden=16", "--evaluate", "2"]
FEET = "feet=LF_foot,RF_foot,LH_foot,RH_foot"


@pytest.fixture(autouse=True)
def alone():
    """One thread, and no folder or module of one test in another's way."""
    before, path, modules = torch.get_num_threads(), list(sys.path), set(sys.modules)
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name in ("mine", "neighbour") or name.startswith(("package", "pk")):
            del sys.modules[name]


@pytest.fixture
def robot(tmp_path):
    """A quadruped that differs from ours."""
    text = asset_path("quadruped.xml").read_text()
    assert "LF_hip" in text
    folder = tmp_path / "robot"
    folder.mkdir()
    path = folder / "mine.xml"
    path.write_text(text.replace("LF_hip", "front_left_hip"))
    return path


FILE = """
task = "QuadrupedVelocity"
model = "mine.xml"
names = { feet = ["LF_foot", "RF_foot", "LH_foot", "RH_foot"] }
parameters = { tracking_sigma = 0.3, command_x = [0, 1] }
simulation = { solver = { name = "pgs", relaxation = 1.3 } }
ppo = { gamma = 0.9 }
[[randomize]]
name = "body_mass"
low = 0.8
high = 1.2
[[randomize]]
kind = "noise"
deviation = 0.01
[observations.policy]
terms = ["gravity", "command", "joint_position"]
history = 2
[observations.critic]
clean = true
"""


def test_a_command_trains_a_robot_and_its_checkpoint_needs_nothing_more(robot, tmp_path, capsys):
    (tmp_path / "random.toml").write_text('[[randomize]]\nkind = "gains"\nlow = 0.9\nhigh = 1.1\n')
    run = tmp_path / "run"
    words = ["train", "QuadrupedVelocity", "--model", str(robot), "--names", FEET, "--task", "tracking_sigma=0.2"]
    words += ["command_x=-1,0", "--randomize", str(tmp_path / "random.toml"), "--simulation", "timestep=0.004"]
    words += ["--solver", "canal", "--solver-option", "penalty=20", "accelerate=false"]
    assert cli.main([*words, "--samples", "200", "--run-dir", str(run), *SMALL, "--no-video"]) == 0
    told = json.loads((run / "run.json").read_text())["setup"]
    assert told["names"] == {"feet": ["LF_foot", "RF_foot", "LH_foot", "RH_foot"]}
    assert told["parameters"] == {"tracking_sigma": 0.2, "command_x": [-1, 0]}
    shutil.rmtree(robot.parent)  # and the file of randomisation
    (tmp_path / "random.toml").unlink()

    kept = Checkpoint.load(run).setup
    with closing(kept.make(2, num_threads=1)) as envs:
        assert envs.task_parameters["tracking_sigma"] == 0.2
        assert envs.task_parameters["command_x"] == (-1, 0)
        assert envs.simulation.timestep == 0.004
        assert envs.simulation.solver == stiction.Canal(penalty=20, accelerate=False)
        assert "joint_position/front_left_hip" in envs.observation_names
        assert "actuator_gainprm" in envs.simulation.per_env
        assert envs.simulation.model.mjmodel.body("trunk").id > 0
    interface = json.loads((run / "policy.json").read_text())
    assert interface["actions"][0]["name"] == "joint_target/front_left_hip"
    assert interface["task_parameters"]["tracking_sigma"] == 0.2

    video = tmp_path / "a.mp4"
    play = ["play", str(run), "--episodes", "2", "--threads", "1", "--video", str(video), "--seconds", "0.3"]
    assert cli.main(play) == 0
    assert video.stat().st_size > 1000
    for told in ("policy.onnx", "policy.json", "model.mjb"):  # what the run wrote, from the checkpoint alone
        (run / told).rename(tmp_path / told)
    alone = shutil.copytree(run, tmp_path / "alone") / "best.pt"
    assert cli.main(["play", str(alone), "--episodes", "1", "--threads", "1", "--onnx", str(run / "policy.onnx")]) == 0
    for told in ("policy.json", "model.mjb"):
        assert (run / told).read_bytes() == (tmp_path / told).read_bytes()
    assert (run / "policy.onnx").is_file()
    assert cli.main(["bench", str(run), "--num-envs", "8", "--rounds", "1"]) == 0
    assert cli.main(["train", "--resume", str(run), "--samples", "300", "--evaluate", "0", "--no-video"]) == 0
    assert json.loads((run / "policy.json").read_text()) == interface
    capsys.readouterr()
    assert cli.main(["train", "--resume", str(run), "--samples", "500", "--task", "tracking_sigma=1"]) == 1
    told = capsys.readouterr().err
    assert "goes on with stiction/QuadrupedVelocity-v0 as it was: parameters is {'tracking_sigma': 0.2, " in told


def test_a_file_says_the_same(robot, tmp_path, capsys):
    file = robot.parent / "mine.toml"
    file.write_text(FILE)
    run = tmp_path / "run"
    assert cli.main(["train", str(file), "--samples", "100", "--run-dir", str(run), *SMALL, "--no-video"]) == 0
    kept = Checkpoint.load(run)
    assert kept.options.gamma == 0.9
    assert kept.policy().inputs == 2 * 18
    with closing(kept.setup.make(1, num_threads=1)) as envs:
        assert envs.simulation.solver == stiction.Pgs(relaxation=1.3)
        assert {name: space.shape for name, space in envs.single_observation_space.items()} == {
            "policy": (36,),
            "critic": (48,),
        }
        assert envs.task_parameters["command_x"] == (0, 1)
    session = pytest.importorskip("onnxruntime").InferenceSession(run / "policy.onnx")
    assert session.get_inputs()[0].shape[1] == 36
    assert len(json.loads((run / "policy.json").read_text())["observations"]["policy"]) == 36
    assert cli.main(["train", str(file), "--resume", str(run), "--samples", "300"]) == 0  # said again, the same
    robot.write_text(robot.read_text().replace("0.1", "0.11"))
    assert cli.main(["train", str(file), "--resume", str(run), "--samples", "500"]) == 1
    assert "as it was: model is stiction.Model(" in capsys.readouterr().err


def test_bench_takes_a_robot_too(robot, capsys):
    words = ["bench", "QuadrupedVelocity", "--model", str(robot), "--names", FEET, "--num-envs", "8", "--rounds", "1"]
    assert cli.main(words) == 0
    told = capsys.readouterr().out
    assert "QuadrupedVelocity, 8 environments" in told
    assert 0 < float(told.split("share")[1].split()[0]) <= 100


@pytest.mark.parametrize(
    ("words", "solver"),
    [
        ([], stiction.Pgs(relaxation=1.3)),
        (["--solver-option", "check=3"], stiction.Pgs(relaxation=1.3, check=3)),
        (["--solver", "pgs"], stiction.Pgs(relaxation=1.3)),
        (["--solver", "canal"], stiction.Canal()),
        (["--solver", "canal", "--solver-option", "iterations=7"], stiction.Canal(iterations=7)),
        (["--simulation", "solver=admm"], stiction.Admm()),
    ],
)
def test_words_of_a_command_win_over_a_files_solver(robot, words, solver):
    import argparse

    file = robot.parent / "mine.toml"
    file.write_text(FILE)
    parser = argparse.ArgumentParser()
    setup.add_arguments(parser)
    asked, _ = setup.of_arguments(str(file), parser.parse_args(words))
    assert setup.simulation_options(asked.simulation)["solver"] == solver


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--model", "nowhere.xml"], "no model nowhere.xml"),
        (["--names", "feet"], "--names 'feet', expected name=value"),
        (["--names", "paws=LF_foot"], "'paws'"),
        (["--names", "feet=LF_foot,RF_foot,LF_foot"], "names['feet'] has 'LF_foot' twice"),
        (["--task", "tracking_sgma=1"], "tracking_sgma"),
        (["--randomize", "nowhere.toml"], "no file nowhere.toml"),
        (["--randomize", "body_mas=0.8,1.2"], "no parameter 'body_mas'; near: 'body_mass'"),
        (["--randomize", "wind=3"], "no parameter 'wind'; there are: body_mass, "),
        (["--randomize", "body_mass=0.8"], "--randomize 'body_mass=0.8', expected numbers: body_mass=LOW,HIGH"),
        (["--randomize", "latency=2"], "--randomize 'latency=2', expected numbers: latency=LOW,HIGH"),
        (["--randomize", "latency=2,1"], "--randomize 'latency=2,1': Latency(2, 1), expected control steps, 0 <= low"),
        (["--randomize", "push=-1"], "--randomize 'push=-1': Push: speed is -1, expected at least 0 m/s"),
        (["--randomize", "push=1,2"], "expected numbers: push=SPEED; a FILE.toml says more"),
        (["--randomize", "force=-3"], "--randomize 'force=-3': Force: newtons is -3, expected at least 0 N"),
        (["--randomize", "body_mass=a,b"], "--randomize 'body_mass=a,b', expected numbers: body_mass=LOW,HIGH"),
        (["--randomize", "mine.tml"], "--randomize 'mine.tml', expected NAME=LOW,HIGH or a FILE.toml"),
        (["--simulation", "timstep=1"], "timstep"),
        (["--solver", "cannal"], "solver is 'cannal', expected one of 'subadmm'"),
        (
            ["--solver", "canal", "--solver-option", "penalti=1"],
            "solver 'canal' has no option 'penalti'; near: 'penalty'",
        ),
    ],
)
def test_wrong_words_are_named(words, text, capsys):
    assert cli.main(["bench", "QuadrupedVelocity", *words]) == 1
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", ["--urdf", "--pose", "--names", "--task", "--randomize", "--simulation", "--solver-option", "--set"]
)
def test_an_option_may_be_said_again(option):
    parser = ArgumentParser()
    train.add_arguments(parser)
    name = {"--task": "parameters", "--solver-option": "solver_options"}.get(option, option[2:])
    said = parser.parse_args([option, "a=1", "b=2", option, "c=3"])
    assert getattr(said, name) == ["a=1", "b=2", "c=3"]
    assert getattr(parser.parse_args([]), name) == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["play", "{run}", "--onnx", "a.pb"], "a.pb is no name of a policy, expected one that ends in .onnx"),
        (["play", "{run}", "--onnx", "nowhere/a.onnx"], "no folder nowhere to write a.onnx into"),
        (["bench", "{run}", "--task", "tracking_sigma=1"], "is a run and knows its robot and task: no --model"),
        (["bench", "nowhere.pt"], "no checkpoint nowhere.pt"),
    ],
)
def test_what_a_run_cannot_is_told_before_the_work(words, text, tmp_path, capsys):
    (tmp_path / "checkpoint.pt").touch()
    assert cli.main([word.format(run=tmp_path) for word in words]) == 1
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("command", ["train", "bench"])
@pytest.mark.parametrize("robot", ["robot.xml", "dog.urdf"])
def test_a_robot_is_no_task(command, robot, capsys):
    assert cli.main([command, robot]) == 1
    assert f"{robot} is a robot, and no task: QuadrupedVelocity --model {robot}" in capsys.readouterr().err


def test_few_feet_are_warned_of():
    with pytest.warns(UserWarning, match=r"names\['feet'\] has 3 feet, and quadruped_velocity 4"):
        stiction.make_vec("stiction/QuadrupedVelocity-v0", names={"feet": ("LF_foot", "RF_foot", "LH_foot")})


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("task = 3", "task is 3, expected a string"),
        ("model = 'a.xml'", "names no task"),
        ("task = 'Ant'\ntsk = 1", "has 'tsk'; near: task"),
        ("task = ", "is no TOML"),
        ("task = 'Ant'\n[[randomize]]\nkind = 'wind'", r"randomize\[0\] has the kind 'wind'"),
        ("task = 'Ant'\n[[randomize]]\nkind = 'push'\nvelocity = 0.5", "push: has no 'velocity'; .*speed, every, spin"),
        ("task = 'Ant'\n[[randomize]]\nkind = 'gains'\nlow=0.5\nhigh=1\neach=true\nto=1", "'to'; .*low.*each"),
        ("task = 'CartPoleBalance'\n[[randomize]]\nkind = 'push'\nspeed=1\njoint='slider'", "'slider' is none"),
        ("task = 'Ant'\n[[randomize]]\nname = 'body_mas'\nlow=1\nhigh=2", "no parameter 'body_mas'"),
        ("task = 'Ant'\n[[randomize]]\nname = 'body_mass'\nlow=1", r"randomize\[0\], parameter: .*high"),
        ("task = 'Ant'\n[[randomize]]\nname='body_mass'\nlow=1\nhigh=2\nnames='a'", "body_mass: no body named 'a'"),
        (
            "task = 'Ant'\n[[randomize]]\nkind='force'\nnewtons=1\nbody='tors'",
            "Force: no body named 'tors'; near: 'torso'",
        ),
        ("task = 'Ant'\n[[randomize]]\nname='body_mass'\nlow='a'\nhigh=2", "body_mass: from 'a' to 2, expected finite"),
        ("task = 'Ant'\n[[randomize]]\nkind='push'\nspeed='a'", "Push: speed is 'a', expected at least 0 m/s"),
        ("task = 'Ant'\n[[randomize]]\nkind='noise'\ndeviation={a='b'}", "expected a standard deviation, or one"),
        ("task = 'Ant'\n[observations.policy]\nterm = 1", "expected a table with terms, history and clean"),
    ],
)
def test_wrong_files_are_named(said, text, tmp_path, capsys):
    file = tmp_path / "a.toml"
    file.write_text(said)
    assert cli.main(["bench", str(file)]) == 1
    error = capsys.readouterr().err
    import re

    assert re.search(text, error), error


def test_tables_are_the_terms_of_randomisation():
    tables = [
        {"name": "geom_friction", "low": 0.5, "high": 1.25, "operation": "set", "columns": 0, "every": [1, 2]},
        {"kind": "gains", "low": 0.9, "high": 1.1},
        {"kind": "noise", "deviation": 0.1},
    ]
    friction = Parameter("geom_friction", 0.5, 1.25, operation="set", columns=0, every=(1, 2))
    assert terms_of(tables) == [friction, *Gains(0.9, 1.1), Noise(0.1)]
    assert setup.groups_of_tables({"a": {"terms": ["x"], "history": 2}}) == {"a": Group("x", history=2)}


def test_words_of_a_command_are_terms_of_randomisation(tmp_path):
    import argparse

    (tmp_path / "more.toml").write_text('[[randomize]]\nkind = "gains"\nlow = 0.9\nhigh = 1.1\n')
    parser = argparse.ArgumentParser()
    setup.add_arguments(parser)
    words = ["body_mass=0.8,1.2", "push=0.5", "latency=0,2", str(tmp_path / "more.toml"), "noise=0.05"]
    asked, _ = setup.of_arguments("QuadrupedVelocity", parser.parse_args(["--randomize", *words]))
    assert terms_of(asked.randomize) == [
        Parameter("body_mass", 0.8, 1.2), Push(0.5), Latency(0, 2), *Gains(0.9, 1.1), Noise(0.05)
    ]  # fmt: skip


# ---- a task in a file or a package

NEIGHBOUR = """
MODEL = '''<mujoco><worldbody><body><joint name="x" type="slide" axis="1 0 0"/><geom size=".1"/></body></worldbody>
<actuator><motor joint="x"/></actuator></mujoco>'''
"""
MINE = """
import numpy as np
import stiction
{line}

class Slide(stiction.Task):
    model = MODEL
    max_episode_steps = 20
    def observe(self):
        return np.concatenate([self.sim.qpos, self.sim.qvel], axis=1)
    def reward(self, action):
        import {late}  # imports may come late
        return -self.sim.qpos[:, 0] ** 2
"""


def test_a_task_in_a_file_sees_its_neighbours(tmp_path, monkeypatch):
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "neighbour.py").write_text(NEIGHBOUR)
    (folder / "mine.py").write_text(MINE.format(line="from neighbour import MODEL", late="neighbour"))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["bench", "tasks/mine.py:Slide", "--num-envs", "4", "--rounds", "1"]) == 0


def test_a_task_in_a_package_is_found_by_its_name(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "neighbour.py").write_text(NEIGHBOUR)
    (folder / "mine.py").write_text(MINE.format(line="from .neighbour import MODEL", late="package.neighbour"))
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run"
    words = ["train", "package.mine:Slide", "--samples", "100", "--run-dir", str(run), *SMALL, "--no-video"]
    assert cli.main(words) == 0
    assert Checkpoint.load(run).env_id == "package.mine:Slide"
    assert cli.main(["play", str(run), "--episodes", "1", "--threads", "1"]) == 0
    capsys.readouterr()
    assert cli.main(["bench", "package.yours:Slide"]) == 1
    assert "no module 'package.yours' here or installed" in capsys.readouterr().err
    assert cli.main(["bench", "package.mine:Slid"]) == 1
    assert "package.mine has no class Slid that is a stiction.Task" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["pk/t.py:Tall", "pk.t:Tall"])
def test_an_import_that_fails_is_told_by_file_and_line(name, tmp_path, monkeypatch, capsys):
    (tmp_path / "pk").mkdir()
    (tmp_path / "pk" / "t.py").write_text("import stiction\nimport nonexisting\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["bench", name]) == 1
    assert f"{tmp_path / 'pk' / 't.py'}, line 2: No module named 'nonexisting'" in capsys.readouterr().err


def test_a_file_of_a_package_is_asked_for_by_its_module(tmp_path, monkeypatch, capsys):
    (tmp_path / "pk").mkdir()
    (tmp_path / "pk" / "t.py").write_text("from .help import K\n")
    (tmp_path / "pk" / "help.py").write_text("K = 1\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["bench", "pk/t.py:Tall"]) == 1
    told = capsys.readouterr().err
    assert "t.py, line 1: attempted relative import" in told and f"it is pk.t:CLASS, from {tmp_path}" in told


def test_a_checkpoint_of_an_older_version_is_read(tmp_path):
    run = tmp_path / "run"
    assert cli.main(["train", "Hopper", "--samples", "100", "--run-dir", str(run), *SMALL, "--no-video"]) == 0
    data = torch.load(run / "checkpoint.pt", weights_only=True)
    data |= {"format": 1, "env_id": data.pop("setup")["env_id"]}
    torch.save(data, run / "checkpoint.pt")
    assert Checkpoint.load(run).env_id == "stiction/Hopper-v0"
    assert cli.main(["play", str(run), "--episodes", "1", "--threads", "1"]) == 0


# ---- models keep MuJoCo's


def test_a_saved_model_can_be_rendered(robot, tmp_path):
    model = stiction.Model.from_mjcf(robot)
    model.save(tmp_path / "model.npz")
    again = stiction.Model.load(tmp_path / "model.npz")
    assert again.mjmodel.nbody == model.nbody
    assert again.import_report == model.import_report
    np.testing.assert_array_equal(again.mjmodel.qpos0, model.mjmodel.qpos0)
    for name, value in model.to_arrays().items():
        np.testing.assert_array_equal(again.to_arrays()[name], value)


# ---- the viewer


def test_a_robots_file_is_viewed(robot):
    from stiction.training.view import Robot, _steps

    envs = Robot(stiction.Model.from_mjcf(robot), {})
    started = time.monotonic()
    shown = list(_steps(envs, lambda _: np.zeros((1, 12)), 0.3, 0))
    assert time.monotonic() - started >= 0.25
    assert 5 < len(shown) <= 20
    assert 0.2 < envs.simulation.qpos[0, 2] < 0.6  # it stands
    envs.close()


def test_without_a_display_the_viewer_says_what_to_do(robot, capsys, monkeypatch, tmp_path):
    from stiction import cli
    from stiction.training import view

    shown = []
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(view, "_web", lambda envs, act, arguments: shown.append(envs.simulation.model.nu))
    there = {"mjviser": None}
    monkeypatch.setattr(view.importlib.util, "find_spec", lambda name: there[name])
    assert cli.main(["view", str(robot)]) == 1
    assert "no display for a window, and the web viewer is not installed: pip" in capsys.readouterr().err
    assert cli.main(["view", str(robot), "--viewer", "window"]) == 1
    assert "no display for a window: use --viewer web" in capsys.readouterr().err
    there["mjviser"] = "is there"
    pendulum = tmp_path / "pendulum.urdf"
    pendulum.write_text(PENDULUM)
    for words in ([robot], [pendulum], [pendulum, "--urdf", "kp=3", "--pose", "swing=1"]):
        assert cli.main(["view", *map(str, words)]) == 0
    assert shown == [12, 1, 1]
    (tmp_path / "notes.txt").write_text("no robot")
    assert cli.main(["view", str(tmp_path / "notes.txt")]) == 1
    assert "notes.txt is no checkpoint of `stiction train`\n" in capsys.readouterr().err
    there["mjviser"] = None
    for words, text in (
        (["nowhere.urdf"], "no file nowhere.urdf\n"),
        ([str(robot), "--names", "feet=a"], "mine.xml is shown alone"),
        ([str(pendulum), "--pose", "swang=1"], "pose has 'swang', which is no joint"),
    ):
        assert cli.main(["view", *words]) == 1
        assert text in capsys.readouterr().err  # before it says that it cannot show


@pytest.mark.parametrize(("group", "shown"), [(0, [1, 1, 1, 0, 0, 0]), (3, [1, 1, 1, 1, 1, 1])])
def test_the_web_viewer_shows_what_pictures_show(group, shown, tmp_path, monkeypatch):
    """A robot all of whose geoms are in hidden groups, too; the viewer's libraries are stood in for."""
    from unittest.mock import MagicMock

    drawn = []
    viser, mjviser = MagicMock(), MagicMock()
    scene = mjviser.ViserMujocoScene.return_value
    scene.rebuild_visual_handles.side_effect = lambda: drawn.append(list(scene.geom_groups_visible))
    monkeypatch.setitem(sys.modules, "viser", viser)
    monkeypatch.setitem(sys.modules, "mjviser", mjviser)
    mjviser.__spec__ = object()
    path = tmp_path / "ball.xml"
    path.write_text(
        f'<mujoco><worldbody><body><freejoint/><geom size="0.1" group="{group}"/></body></worldbody></mujoco>'
    )
    assert cli.main(["view", str(path), "--viewer", "web", "--seconds", "0.05"]) == 0
    assert drawn == [[bool(value) for value in shown]]
    assert scene.update_from_mjdata.called


def test_the_web_viewers_markers_go_along_with_its_camera():
    from unittest.mock import MagicMock

    from stiction.picture import Marker
    from stiction.training.view import _web_markers

    server, scene = MagicMock(), MagicMock()
    scene.fixed_bodies_frame.name = "/still"
    _web_markers(server, scene, [Marker((0, 0, 1)), Marker((0, 0, 1), to=(1, 0, 1))])
    assert server.scene.add_icosphere.call_args.args[0] == "/still/markers/0"
    assert server.scene.add_line_segments.call_args.args[0] == "/still/markers/1"


PENDULUM = """<robot name="pendulum"><link name="base"/>
  <link name="arm"><inertial><mass value="1"/><origin xyz="0 0 -.5"/>
  <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="swing" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>"""
GO1 = Path(os.environ.get("STICTION_DATA", "/nowhere")) / "mujoco_menagerie/unitree_go1/scene.physics.xml"


@pytest.mark.skipif(not GO1.is_file(), reason="STICTION_DATA has no Go1")
def test_menageries_go1_by_one_command(tmp_path):
    run = tmp_path / "run"
    words = [sys.executable, "-m", "stiction", "train", "QuadrupedVelocity", "--model", str(GO1)]
    words += ["--names", "feet=FL,FR,RL,RR", "--task", "tracking_sigma=0.2", "--samples", "200", "--run-dir", str(run)]
    done = subprocess.run([*words, *SMALL, "--no-video"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = [fact["name"] for fact in json.loads((run / "policy.json").read_text())["actions"]]
    assert names[:3] == ["joint_target/FR_hip_joint", "joint_target/FR_thigh_joint", "joint_target/FR_calf_joint"]
