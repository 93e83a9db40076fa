"""The benches run, and say what they should, on sizes too small to measure anything."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

pytest.importorskip("mujoco")
bench_step = pytest.importorskip("bench.step.__main__")
bench_accuracy = pytest.importorskip("bench.accuracy.__main__")
bench_grasps = pytest.importorskip("bench.accuracy.grasps")
bench_rest = pytest.importorskip("bench.accuracy.rest")
bench_scenes = pytest.importorskip("bench.accuracy.scenes")
bench_sliding = pytest.importorskip("bench.accuracy.sliding")
bench_sticking = pytest.importorskip("bench.accuracy.sticking")

from bench.step import rounds, scenes  # noqa: E402
from bench.step.engines import MujocoC, Stiction  # noqa: E402

SMALL = "--rounds 2 --seconds 0.001 --batch 3 --worlds 2 --settle 0.02 --rest 0.05 --isa scalar".split()


def scene_or_skip(name):
    try:
        scenes.SCENES[name].mjmodel()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return name


def test_step_bench_reports_both_engines(tmp_path, capsys):
    path = tmp_path / "step.json"
    bench_step.main([*SMALL, "--scenes", "ten_cubes", "--no-latency", "--output", str(path)])
    result = json.loads(path.read_text())
    (scene,) = result["scenes"]
    assert {"processor", "commit", "date", "load_average", "mujoco"} <= set(result["machine"])
    engines = [entry["engine"] for entry in scene["entries"]]
    assert engines[0] == "stiction" and set(engines[1:]) == {"mujoco"}
    assert sum(entry.get("reference", False) for entry in scene["entries"]) == 1
    for entry in scene["entries"]:
        rate = entry["steps_per_core_second"]
        assert 0 < rate["min"] <= rate["median"] <= rate["max"] and rate["rounds"] == 2
    ours = scene["entries"][0]
    assert ours["contacts"] > 20 and ours["r_con_over_V"]["p99"] < 1e-2
    assert {"solver", "anderson", "fallback"} <= set(scene["profile"]["share"])
    text = capsys.readouterr().out
    assert "x MuJoCo (" in text and "of rest, um/s" in text


def test_accuracy_bench_tabulates_variants(tmp_path, capsys):
    scene_or_skip("ant")
    path = tmp_path / "accuracy.json"
    bench_accuracy.main("--robots ant --envs 4 --length 0.2 --output".split() + [str(path)])
    (robot,) = json.loads(path.read_text())["robots"]
    assert list(robot["variants"]) == list(bench_accuracy.VARIANTS)
    default = robot["variants"]["+ Newton fallback"]
    assert default["in_contact"] > 0.1 and default["all"]["p50"] < 1e-4
    assert default["all"]["p50"] < robot["variants"]["one beta"]["all"]["p50"]
    assert "| ant |" in capsys.readouterr().out


def test_sticking_bench_puts_both_engines_into_one_table(tmp_path, capsys):
    path = tmp_path / "sticking.json"
    bench_sticking.main(["--forces", "12", "30", "--seconds", "1", "--output", str(path)])
    engines = json.loads(path.read_text())["engines"]
    assert max(engines["stiction, float32"]["creep"]) <= 1e-6
    assert min(engines["MuJoCo, default"]["creep"]) > 1e-4  # a soft contact: it creeps
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert "12 N | 30 N" in lines[0] and len(lines) == 1 + 1 + len(bench_sticking.MUJOCO)


def test_grasps_bench_counts_what_slips_in_both_engines(tmp_path, capsys):
    path, engines = tmp_path / "grasps.json", ["stiction, float32", "MuJoCo, default"]
    arguments = ["--every", "108", "--seconds", "0.5", "--engines", *engines, "--output", str(path)]
    result = bench_grasps.main(arguments)
    assert json.loads(path.read_text())["engines"] == result["engines"] and list(result["engines"]) == engines
    ours, theirs = result["engines"].values()
    assert ours["grasps"] == theirs["grasps"] and len(ours["slip"]) == len(theirs["slip"]) == 2
    assert max(ours["creep"]) <= bench_grasps.CREEP < min(theirs["creep"])
    assert capsys.readouterr().out.count("| stiction, float32 | 0 | 0 |") == 1


def test_engines_get_the_same_controls_within_range():
    model = scenes.SCENES[scene_or_skip("ant")].mjmodel()
    a, b = (scenes.Controls(model, 5.0, 4, seed=3) for _ in range(2))
    first = a.next()
    np.testing.assert_array_equal(first, b.next())
    assert not np.array_equal(first, a.next())
    assert first.min() == -1 and first.max() == 1


def test_both_engines_see_ten_resting_cubes():
    scene = scenes.SCENES["ten_cubes"]
    mjmodel = scene.mjmodel()
    from stiction import Model

    for engine in (Stiction(scene, Model.from_mjmodel(mjmodel), 2), MujocoC(scene, mjmodel, 2)):
        engine.settle()
        active, depth = engine.active_and_penetration()
        assert np.all(active >= 30) and np.all(depth < 1e-3)


def test_a_missing_file_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("STICTION_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="go1.*scene.physics.xml"):
        scenes.SCENES["go1"].mjmodel()


def test_ratios_are_taken_round_by_round():
    fast, slow = rounds.Entry(None, {}), rounds.Entry(None, {})
    fast.per_core, slow.per_core = [8.0, 2.0, 6.0], [4.0, 1.0, 2.0]
    assert rounds.ratio(fast, slow) == {"median": 2.0, "min": 2.0, "max": 3.0, "rounds": 3}


def test_rest_bench_sums_up_both_engines(tmp_path, capsys):
    path = tmp_path / "rest.json"
    bench_rest.main(["--parts", "grasps", "pegs", "--grasps", "2", "--pegs", "2", "--output", str(path)])
    result = json.loads(path.read_text())
    assert len(result["grasps"]) == len(result["pegs"]) == 2 and {"stiction", "MuJoCo"} <= set(result["pegs"][0])
    assert "| wedged pegs, held or sliding as Coulomb has it | 2 of 2 |" in capsys.readouterr().out


def test_scenes_bench_tells_how_to_run_a_failure_again(tmp_path, capsys):
    path = tmp_path / "scenes.json"
    bench_scenes.main(["1", "--seed", "5", "--output", str(path)])
    result = json.loads(path.read_text())
    assert result["throws"] == bench_scenes.THROWS and result["counts"]["energy"] == 0
    text = capsys.readouterr().out
    assert "| energy | 0 | 0.00% |" in text
    assert text.count("--seed 5 --throw") == len(result["failed"])
    for row in result["failed"]:
        assert f"--seed 5 --throw {row['throw']}:" in text


def test_a_sliding_box_stays_on_the_floor(tmp_path, capsys):
    path = tmp_path / "sliding.json"
    result = bench_sliding.main(["--speeds", "2", "5", "--output", str(path)])
    assert json.loads(path.read_text())["exact"] == result["exact"]
    for run in result["runs"]:
        for speed, exact, slide in zip(result["speeds"], result["exact"], run["slides"], strict=True):
            if run["engine"].startswith("stiction"):
                assert slide["lift"] < 1e-6
                assert (
                    exact - speed * run["timestep"] < slide["distance"] <= exact
                )  # friction acts from the first step on
            else:
                assert slide["lift"] > 1e-3  # the convex model's
    assert "| Coulomb | 0 (0.408) | 0 (2.55) |" in capsys.readouterr().out
