"""Runs of `stiction train` are not lost: stopped, resumed, refused; what is kept of them, and what the user is told."""

import importlib.machinery
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import types
from argparse import Namespace
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
torch = pytest.importorskip("torch")
import stiction  # noqa: E402
from stiction import _build, cli  # noqa: E402
from stiction.training import train  # noqa: E402
from stiction.training.call import SAMPLES, USUAL, kept, settled  # noqa: E402
from stiction.training.folder import RunFolder  # noqa: E402
from stiction.training.ppo import Ppo  # noqa: E402
from stiction.training.run import Checkpoint  # noqa: E402

SMALL = ["--threads", "1", "--num-envs", "16", "--set", "steps=32", "minibatch=128", "hidden=16,16"]
QUIET = ["--no-onnx", "--no-video"]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def read(run, name):
    return json.loads((run / name).read_text())


def curve(run):
    return [
        {name: value for name, value in point.items() if "seconds" not in name} for point in read(run, "curve.json")
    ]


def weights(run):
    return torch.cat([values.flatten().double() for values in Checkpoint.load(run).ppo["policy"].values()])


def stop_in_iteration(monkeypatch, number, signals=(signal.SIGINT,)):
    iterate = Ppo.iterate

    def iterate_and_stop(self):
        if self.iterations == number:
            for each in signals:
                signal.raise_signal(each)
        return iterate(self)

    monkeypatch.setattr(Ppo, "iterate", iterate_and_stop)


REACH = str(Path(__file__).parents[2] / "examples" / "reach.py") + ":Reach"


@pytest.mark.parametrize("task", ["CartPoleSwingUp", "Hopper", "QuadrupedVelocity", REACH])
def test_a_run_stopped_and_resumed_is_the_uninterrupted_one(task, tmp_path, monkeypatch, capsys):
    """To the bit: the curve, the weights, and what the learner had of episodes under way."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    ends = ["--samples", "5000", "--evaluate", "2", *QUIET]
    assert cli.main(["train", task, *SMALL, *ends, "--run-dir", str(whole)]) == 0
    with monkeypatch.context() as patch:
        stop_in_iteration(patch, 4)
        assert cli.main(["train", task, *SMALL, *ends, "--run-dir", str(parts)]) == 130
    told = capsys.readouterr()
    assert "stopping after this iteration" in told.err
    assert "stopped at 2,560 samples" in told.out and f"--resume {parts}" in told.out
    assert curve(parts) == curve(whole)[:5]
    assert read(parts, "result.json")["episodes"] == 2
    assert cli.main(["train", "--resume", str(parts), "--threads", "1", *ends]) == 0
    assert curve(parts) == curve(whole)
    assert torch.equal(weights(parts), weights(whole))
    assert {key: read(parts, "result.json")[key] for key in ("return", "length")} == {
        key: read(whole, "result.json")[key] for key in ("return", "length")
    }
    seconds = [point["seconds"] for point in read(parts, "curve.json")]
    assert seconds == sorted(seconds)
    calls = read(parts, "run.json")["calls"]
    assert [call["samples"] for call in calls] == [0, 2560]
    assert calls[1]["arguments"]["resume"] == str(parts)
    for call in calls:
        assert call["stiction"] == stiction.__version__
        assert call["build"]["commit"] == _build.COMMIT
        assert call["cpu"]["name"] and call["host"] and call["python"]["torch"]


def test_the_state_of_environments_goes_on_to_the_bit(tmp_path):
    """Of every task, with episodes that end by themselves and by the time limit."""
    from stiction.registration import ENVIRONMENTS

    for env_id in ENVIRONMENTS:
        first, second = (stiction.make_vec(env_id, 5, num_threads=1, max_episode_steps=9) for _ in range(2))
        with closing(first), closing(second):
            first.reset(seed=3)
            second.reset(seed=8)
            random = np.random.default_rng(0)
            actions = random.uniform(-1, 1, (12, 5, *first.single_action_space.shape)).astype(np.float32)
            for step in range(4):
                first.step(actions[step])
            second.set_state(first.get_state())
            for step in range(4, 12):
                a, b = first.step(actions[step]), second.step(actions[step])
                for x, y in zip(a[:4], b[:4], strict=True):
                    np.testing.assert_array_equal(x, y, err_msg=env_id)


def test_states_of_other_environments_are_refused():
    ant, hopper = (stiction.make_vec(f"stiction/{name}-v0", 2, num_threads=1) for name in ("Ant", "Hopper"))
    ant.reset(seed=0)
    hopper.reset(seed=0)
    state = ant.get_state()
    with pytest.raises(ValueError, match="state.* has shape|expected"):
        hopper.set_state(state)
    with pytest.raises(ValueError, match="no state of these environments"):
        ant.set_state({"qpos": state["qpos"]})


def test_the_second_stop_ends_at_once(tmp_path, monkeypatch, capsys):
    before = signal.getsignal(signal.SIGINT)
    stop_in_iteration(monkeypatch, 1, (signal.SIGINT, signal.SIGINT))
    assert cli.main(["train", "Ant", *SMALL, "--run-dir", str(tmp_path / "run")]) == 130
    assert capsys.readouterr().err.endswith("stiction train: stopped\n")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_evaluation_leaves_what_is_cheap(stop, tmp_path, monkeypatch, capsys, request):
    """The last one, after the bar: the policy is written, and how to go on is told; a second Ctrl-C ends at once."""
    pytest.importorskip("onnxscript")
    from stiction.training import run as training_run

    heard = signal.signal(signal.SIGINT, signal.default_int_handler)  # which who started this may have ignored
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, heard))
    monkeypatch.setattr(train.Training, "_evaluate", lambda *_: signal.raise_signal(stop))
    run, again = tmp_path / "run", tmp_path / "again"
    ends = ["--samples", "1000", "--no-video"]
    assert cli.main(["train", "CartPoleBalance", *SMALL, *ends, "--run-dir", str(run)]) == 130
    told = capsys.readouterr()
    assert f"stopped at 1,024 samples, kept in {run}; Ctrl-C again ends at once" in told.out
    assert f"`stiction train --resume {run}` goes on" in told.out.splitlines()[-1]
    for name in ("checkpoint.pt", "policy.onnx", "policy.json", "result.json"):
        assert (run / name).is_file(), name
    monkeypatch.setattr(training_run, "export_onnx", lambda *_: signal.raise_signal(stop))
    assert cli.main(["train", "CartPoleBalance", *SMALL, *ends, "--run-dir", str(again)]) == 130
    told = capsys.readouterr()
    assert f"kept in {again}: the checkpoint of 1,024 samples" in told.out
    assert f"`stiction train --resume {again}` goes on" in told.out.splitlines()[-1]
    assert told.err.endswith("stiction train: stopped\n")


def started(run, *words):
    """The command in a process of its own, once it trains in ``run``."""
    command = [sys.executable, "-m", "stiction", "train", "CartPoleBalance", *SMALL, "--samples", "1e9", *words, *QUIET]
    path = os.pathsep.join(entry for entry in sys.path if entry)
    process = subprocess.Popen(
        [*command, "--run-dir", str(run)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    deadline = time.monotonic() + 60
    while not (run / "run.json").is_file() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.1)
    return process


def test_one_process_at_a_time_trains_in_a_folder(tmp_path, capsys):
    """Another is refused until the first has ended, however it ended; and a run killed at its beginning goes on."""
    run = tmp_path / "run"
    process, ends = started(run), ["--threads", "1", "--samples", "600", "--evaluate", "0", *QUIET]
    try:
        assert cli.main(["train", "--resume", str(run), *ends]) == 1
        assert f"another process trains in {run}: stop it or wait" in capsys.readouterr().err
    finally:
        process.kill()
        process.communicate(timeout=60)
    assert Checkpoint.load(run).ppo["samples"] == 0
    assert cli.main(["train", "--resume", str(run), *ends]) == 0
    fresh = tmp_path / "fresh"
    assert cli.main(["train", "CartPoleBalance", *SMALL, *ends, "--run-dir", str(fresh)]) == 0
    assert torch.equal(weights(run), weights(fresh)) and curve(run) == curve(fresh)


@pytest.mark.parametrize("broken", ["{", '{"a": 1}', "[1]"])
def test_a_broken_curve_is_told_and_a_broken_run_is_named(finished, tmp_path, capsys, broken):
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (run / "curve.json").write_text(broken)
    ends = ["--threads", "1", "--samples", "1500", "--evaluate", "0", *QUIET]
    assert cli.main(["train", "--resume", str(run), *ends]) == 0
    assert f"{run / 'curve.json'} is broken (" in capsys.readouterr().err
    assert [point["samples"] for point in curve(run)] == [1536]
    (run / "run.json").write_text(broken if broken != '{"a": 1}' else "7")
    before = (run / "checkpoint.pt").read_bytes()
    assert cli.main(["train", "--resume", str(run), *ends[:2], "--samples", "2000", *ends[4:]]) == 1
    assert f"stiction train: {run / 'run.json'} is broken (" in capsys.readouterr().err
    assert (run / "checkpoint.pt").read_bytes() == before


def test_a_ctrl_c_during_imports_is_quiet(tmp_path):
    """By a torch that takes long to import."""
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    (tmp_path / "torch.py").write_text(
        f"import os, signal, time\n{heard}\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(30)\n"
    )
    path = os.pathsep.join([str(tmp_path), *(entry for entry in sys.path if entry)])
    command = [sys.executable, "-m", "stiction", "train", "Hopper"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}, timeout=60)
    assert (done.returncode, done.stderr) == (130, "stiction train: stopped\n")


def test_a_real_ctrl_c(tmp_path):
    """The command itself, in a process of its own: no traceback, and all is there."""
    run = tmp_path / "run"
    process = started(run, "--evaluate", "2")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "2 episodes without noise" in out
    for name in ("checkpoint.pt", "best.pt", "curve.json", "evaluations.json", "result.json"):
        assert (run / name).is_file(), name


def test_checkpoints_come_as_it_goes_and_the_best_is_kept(tmp_path, monkeypatch):
    """Also when a later policy is worse. What evaluates does not show in what is learned."""
    plain, run = tmp_path / "plain", tmp_path / "run"
    ends = ["--samples", "2000", *QUIET, "--evaluate", "3"]
    assert cli.main(["train", "CartPoleBalance", *SMALL, *ends, "--run-dir", str(plain)]) == 0
    assert len(read(plain, "evaluations.json")) == 1
    monkeypatch.setattr(train, "SAVE_SECONDS", 0.0)
    returns, found = iter([3.0, 7.0, 5.0, 6.0]), []
    evaluate = train.Training._evaluate

    def as_told(self, *arguments):
        assert self.first and evaluate(self, *arguments)["episodes"] == 3
        found.append(self.ppo.samples)
        return {"return": next(returns), "deviation": 0.0, "length": 1.0, "episodes": 3}

    monkeypatch.setattr(train.Training, "_evaluate", as_told)
    assert cli.main(["train", "CartPoleBalance", *SMALL, *ends, "--run-dir", str(run)]) == 0
    assert found == [512, 1024, 1536, 2048]
    assert [point["return"] for point in read(run, "evaluations.json")] == [3.0, 7.0, 5.0, 6.0]
    assert Checkpoint.load(run / "best.pt").ppo["samples"] == 1024
    assert Checkpoint.load(run).ppo["samples"] == 2048
    assert torch.equal(weights(run), weights(plain))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "run"
    assert cli.main(["train", "Ant", *SMALL, "--samples", "600", "--evaluate", "0", *QUIET, "--run-dir", str(run)]) == 0
    return run


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["Ant", "--run-dir", "{run}"], "has a run already .run.json, checkpoint.pt.: `--resume .*` goes on"),
        (["--resume", "{run}", "--samples", "1000"], "has 1,024 samples already: --samples.* is 1,000, expected more"),
        (["--resume", "{run}"], "has 1,024 samples already: --samples.* is 600, expected more"),
        (["--resume", "{run}", "--samples", "2000", "--seed", "3"], "as it was: seed is 0 there, not 3"),
        (["--resume", "{run}", "--samples", "2000", "--num-envs", "8"], "as it was: num_envs is 16 there, not 8"),
        (["--resume", "{run}", "--samples", "2000", "--set", "gamma=0.9"], "as it was: gamma is 0.99 there, not 0.9"),
        (
            ["--resume", "{run}", "--samples", "2000", "Hopper"],
            "task is 'stiction/Ant-v0' there, not 'stiction/Hopper-v0'",
        ),
        (["--resume", "{run}", "--samples", "2000", "--simulation", "dtype=float64"], "simulation is {} there, not"),
        (["Ant", "--samples", "0"], "--samples is 0, expected more than 0"),
        (["Ant", "--samples", "-5"], "--samples is -5, expected more than 0"),
        (["Ant", "--minutes", "-5"], "--minutes is -5, expected more than 0"),
        (["Ant", "--minutes", "nan"], "--minutes is nan, expected more than 0"),
        (["Ant", "--seed", "-1"], "--seed is -1, expected 0 to 4294967295"),
        (["Ant", "--seed", "99999999999999999999"], "--seed is 99999999999999999999, expected 0 to"),
        (["Ant", "--threads", "0"], "--threads is 0, expected at least 1"),
        (["Ant", "--evaluate", "-1"], "--evaluate is -1, expected at least 0"),
        (["Ant", "--run-dir", "/proc/run"], "/proc/run cannot be made or written to: "),
        (["Ant", "--num-envs", "0"], "--num-envs is 0, expected at least 1"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_touched(finished, capsys, words, text):
    import re

    before = {path.name: path.read_bytes() for path in finished.iterdir()}
    assert cli.main(["train", *(word.format(run=finished) for word in words), *QUIET]) == 1
    assert re.search(text, capsys.readouterr().err)
    assert before == {path.name: path.read_bytes() for path in finished.iterdir()}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--episodes", "0"], "--episodes is 0, expected at least 1"),
        (["--seconds", "-1"], "--seconds is -1, expected more than 0 seconds"),
        (["--height", "0"], "height is 0, expected at least 2 pixels"),
        (["--camera", "nowhere"], "the model has no camera 'nowhere'; there are: 'track'"),
        (["--seed", "-1"], "--seed is -1, expected 0 to 4294967295"),
        (["--video", "a.gif"], "a.gif is no name of a video, expected one that ends in .mp4"),
        (["--video", "/nowhere/a.mp4"], "no folder /nowhere to write a.mp4 into"),
    ],
)
def test_a_video_that_cannot_be_is_refused_before_the_work(finished, capsys, monkeypatch, tmp_path, words, text):
    from stiction.training import ppo

    monkeypatch.setattr(ppo, "evaluate", lambda *_: pytest.fail("it has begun to work"))
    assert cli.main(["play", str(finished), "--threads", "1", "--video", str(tmp_path / "a.mp4"), *words]) == 1
    assert text in capsys.readouterr().err


def test_where_nothing_can_be_drawn_a_video_is_refused_before_the_work(finished, capsys, monkeypatch, tmp_path):
    """As in a bare container, where a run ended in a traceback."""
    from stiction.picture import Renderers

    monkeypatch.setattr(Renderers, "_cannot", "MuJoCo cannot render")
    run = tmp_path / "run"
    assert cli.main(["train", "CartPoleBalance", *SMALL, "--run-dir", str(run), "--no-onnx"]) == 1
    assert "MuJoCo cannot render; or --no-video" in capsys.readouterr().err and not run.exists()
    assert cli.main(["play", str(finished), "--video", str(tmp_path / "a.mp4")]) == 1
    assert "MuJoCo cannot render" in capsys.readouterr().err


def test_a_resumed_run_keeps_what_the_call_before_was_asked(tmp_path, monkeypatch, capsys):
    """Unless it is said anew; what the run is may be said again."""
    run, words = tmp_path / "run", ["CartPoleBalance", *SMALL, "--seed", "2", "--run-dir", str(tmp_path / "run")]
    with monkeypatch.context() as patch:
        stop_in_iteration(patch, 0)
        assert cli.main(["train", *words, "--samples", "1500", "--evaluate", "3", *QUIET]) == 130
    shutil.copy(run / "checkpoint.pt", tmp_path / "alone.pt")
    assert cli.main(["train", "--resume", str(run)]) == 0
    assert [point["samples"] for point in read(run, "curve.json")] == [512, 1024, 1536]
    assert read(run, "result.json")["episodes"] == 3 and not (run / "policy.onnx").exists()
    arguments = [call["arguments"] for call in read(run, "run.json")["calls"]]
    assert arguments[0] | {"resume": str(run)} == arguments[1] | {
        name: arguments[0][name] for name in ("what", "num_envs", "seed", "set", "run_dir")
    }
    assert arguments[1]["samples"] == 1500 and arguments[1]["threads"] == 1
    elsewhere = tmp_path / "elsewhere"
    assert cli.main(["train", "--resume", str(tmp_path / "alone.pt"), "--run-dir", str(elsewhere)]) == 0
    assert torch.equal(weights(elsewhere), weights(run))
    assert cli.main(["train", "--resume", str(run), *words, "--minutes", "1e-9", "--evaluate", "0"]) == 0
    assert read(run, "curve.json")[-1]["samples"] == 2048 and "episodes" not in read(run, "result.json")
    assert read(run, "run.json")["calls"][2]["arguments"]["samples"] is None
    capsys.readouterr()
    assert cli.main(["train", "--resume", str(run)]) == 1
    assert f"{run} has had its minutes: --minutes or --samples says how far" in capsys.readouterr().err


def test_of_minutes_a_resumed_run_has_those_that_were_left():
    usual = dict.fromkeys(USUAL)
    first = settled(Namespace(**usual | {"minutes": 5.0, "wandb": "mine", "video": False}), {})
    assert (first.samples, first.minutes, first.evaluate) == (None, 5, 100)
    second = settled(Namespace(**usual | {"wandb": True, "threads": 3}), kept(first, 120))
    assert (second.minutes, second.wandb, second.video, second.onnx, second.threads) == (3, "mine", False, True, 3)
    assert kept(second, 200)["minutes"] == 0
    third = settled(Namespace(**usual | {"samples": 7.0}), kept(second, 60))
    assert (third.samples, third.minutes, third.threads) == (7, None, 3)
    assert settled(Namespace(**usual), {}).samples == SAMPLES
    assert settled(Namespace(**usual | {"wandb": True}), {}).wandb == "stiction"
    assert settled(Namespace(**usual | {"wandb": False}), kept(first, 120)).wandb is None


def test_a_moment_is_an_iteration(tmp_path):
    run = tmp_path / "run"
    tiny = ["--minutes", "1e-9", "--evaluate", "0", *QUIET]
    assert cli.main(["train", "Ant", *SMALL, *tiny, "--run-dir", str(run)]) == 0
    assert [point["samples"] for point in read(run, "curve.json")] == [512]


def test_runs_of_one_second_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert cli.main(["train", "Ant", *SMALL, "--minutes", "1e-9", "--evaluate", "0", *QUIET]) == 0
    assert len(list((tmp_path / "runs" / "Ant").iterdir())) == 2


@pytest.mark.parametrize(("task", "step_dt"), [("Hopper", 0.008), ("Ant", 0.05), ("Humanoid", 0.015)])
def test_videos_play_in_real_time(task, step_dt, tmp_path, monkeypatch):
    """What is written, whatever renders it: as many seconds as were simulated, up to 50 frames in each."""
    from stiction import batch_renderer
    from stiction.env_core import EnvCore
    from stiction.training.run import write_policy_video

    written, rendered = {}, []
    picture = np.zeros((16, 16, 3), np.uint8)
    monkeypatch.setattr(EnvCore, "frame", lambda self, env, *_: rendered.append(env) or picture)
    monkeypatch.setattr(batch_renderer, "check_video", lambda path: None)
    monkeypatch.setattr(batch_renderer, "write_video", lambda path, frames, fps: written.update(n=len(frames), fps=fps))
    actions = stiction.make_vec(f"stiction/{task}-v0", 1).single_action_space.shape
    write_policy_video(
        lambda observations: torch.zeros(1, *actions), f"stiction/{task}-v0", tmp_path / "a.mp4", seconds=3
    )
    assert written["fps"] <= 50.001
    assert (written["n"] - 1) / written["fps"] == pytest.approx(3, abs=0.05)
    assert len(rendered) == written["n"]
    assert written["fps"] * step_dt <= 1.001


def test_a_written_video_lasts_as_long_as_its_frames(tmp_path):
    reader = pytest.importorskip("imageio_ffmpeg")
    from stiction.batch_renderer import write_video

    write_video(tmp_path / "a.mp4", [np.full((32, 32, 3), 5 * k, np.uint8) for k in range(42)], 1 / 0.024)
    count, seconds = reader.count_frames_and_secs(str(tmp_path / "a.mp4"))
    assert count == 42
    assert seconds == pytest.approx(42 * 0.024, abs=0.03)


def test_weights_and_biases_sees_what_tensorboard_sees(tmp_path, monkeypatch, capsys):
    """Through its released interface: one chart for a run and its resumption."""
    begun, logged, finished = [], [], []

    class Chart:
        def log(self, told, step):
            logged.append((step, told))

        def finish(self):
            finished.append(True)

    module = types.ModuleType("wandb")
    module.__spec__ = importlib.machinery.ModuleSpec("wandb", None)
    module.init = lambda **options: begun.append(options) or Chart()
    module.setup = lambda: types.SimpleNamespace(settings=types.SimpleNamespace(mode=mode))
    module.Error = type("Error", (Exception,), {})
    monkeypatch.setitem(sys.modules, "wandb", module)
    run, ends, mode = tmp_path / "run", ["--evaluate", "0", *QUIET], "offline"
    named = [*SMALL, "--samples", "1000", "--wandb", "mine", *ends, "--run-dir", str(run)]
    assert cli.main(["train", "Ant", *named]) == 0
    assert cli.main(["train", "--resume", str(run), "--threads", "1", "--samples", "1500", "--wandb", *ends]) == 0
    assert [options["project"] for options in begun] == ["mine", "mine"]
    assert begun[0]["id"] == begun[1]["id"] and begun[1]["resume"] == "allow"
    assert begun[0]["config"]["options"]["num_envs"] == 16 and begun[1]["config"]["samples"] == 1024
    assert [step for step, _ in logged] == [512, 1024, 1536] and len(finished) == 2
    assert all("perf/samples_per_cpu_second" in told for _, told in logged)

    def login():
        raise module.Error("No API key configured.")

    module.login, mode = login, "online"
    assert cli.main(["train", "Ant", "--wandb", "--run-dir", str(tmp_path / "other")]) == 1
    assert "--wandb: No API key configured. WANDB_MODE=offline keeps" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert cli.main(["train", "Ant", "--wandb"]) == 1
    assert "--wandb needs Weights & Biases: pip install wandb\n" in capsys.readouterr().err


def test_few_episodes_have_to_be_much_better(tmp_path, monkeypatch):
    monkeypatch.setattr(train, "SAVE_SECONDS", 0.0)
    told = iter([(13.0, 5.0, 100), (14.4, 2.5, 2), (15.0, 0.0, 1), (12.0, 1.0, 100), (30.0, 0.0, 1), (31.0, 9.0, 100)])
    kept = []
    note = RunFolder.note_evaluation

    def as_told(self, *arguments):
        mean, deviation, episodes = next(told)
        return {"return": mean, "deviation": deviation, "length": 1.0, "episodes": episodes}

    monkeypatch.setattr(train.Training, "_evaluate", as_told)
    monkeypatch.setattr(RunFolder, "note_evaluation", lambda *of: kept.append(note(*of)) or kept[-1])
    ends = ["--samples", "3000", *QUIET]
    assert cli.main(["train", "CartPoleBalance", *SMALL, *ends, "--run-dir", str(tmp_path / "run")]) == 0
    assert kept == [True, False, False, False, True, True]
