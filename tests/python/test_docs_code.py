"""Every block of code of the docs, the tutorials and the READMEs runs; every command in them is one."""

import argparse
import contextlib
import importlib.util
import io
import json
import re
import shlex
import shutil
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
torch = pytest.importorskip("torch")
import stiction  # noqa: E402
from model_sources import data_file  # noqa: E402
from stiction import cli  # noqa: E402
from stiction.randomisation_tables import KINDS  # noqa: E402
from stiction.registration import asset_path  # noqa: E402
from stiction.training import setup  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "python", "bench", "envs", "cuda", "tests/user")
PAGES = sorted([*(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md")), ROOT / "README.md"])
FEET = {"LF_FOOT": "LF_foot", "RF_FOOT": "RF_foot", "LH_FOOT": "LH_foot", "RH_FOOT": "RH_foot"}
#: What the docs call things of the reader -> the robot that stands for it, and its names.
ROBOTS = {
    "robot.xml": ("quadruped.xml", {}),
    "my_robot.xml": ("quadruped.xml", {theirs: ours for ours, theirs in FEET.items()}),
    "my_arm_and_cube.xml": ("arm_lift.xml", {}),
    "arm.xml": ("arm.xml", {"grasp": "tip", "gripper": "grip"}),
}
#: What a page's prose gives before its code.
GIVEN = {
    "concepts.md": "places = np.zeros((128, 3)) + [0, 0, 0.5]",
    "props/README.md": "import pathlib\npathlib.Path('table.xml').write_text('<mujoco><worldbody><geom type=\"plane\" "
    'size="0 0 1"/></worldbody></mujoco>\')',
}
#: Of the longest calls, how long they take here.
SHORTER = (
    ("1_000_000", "1"),
    ("runner.learn(200", "runner.learn(1"),
    ("n_steps=32", "n_steps=4"),
    ('"num_steps_per_env": 32', '"num_steps_per_env": 4'),
)
#: Libraries that the tests do without.
ABSENT = {"ray"}


def blocks(page: Path, *languages: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```(?:{'|'.join(languages)})\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the reader works: with the robots and scripts that the docs speak of."""
    for name, (asset, names) in ROBOTS.items():
        text = asset_path(asset).read_text()
        for ours, theirs in names.items():
            text = text.replace(f'"{ours}"', f'"{theirs}"')
        (tmp_path / name).write_text(text)
    (tmp_path / "envs" / "ant").mkdir(parents=True)
    shutil.copy(asset_path("ant.xml"), tmp_path / "envs" / "ant")
    for script in (ROOT / "examples").glob("*.py"):
        shutil.copy(script, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before, modules, threads = list(sys.path), set(sys.modules), torch.get_num_threads()
    torch.set_num_threads(1)
    yield tmp_path
    torch.set_num_threads(threads)
    sys.path[:] = before
    for name in set(sys.modules) - modules:
        if name in ("push", "reach"):
            del sys.modules[name]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_python_runs(page, folder):
    """Of a page, one block after the other, with nothing imported that the page does not import."""
    given = {"stiction": stiction, "np": np}
    exec(next((code for end, code in GIVEN.items() if str(page).endswith(end)), ""), given)
    names = {name: value for name, value in given.items() if not isinstance(value, ModuleType)}
    for number, block in enumerate(blocks(page, "python")):
        by_id = re.search(r"\bgym(nasium)?\.make(_vec)?\(.stiction/", block)
        assert by_id is None or "import stiction" in block, "which makes the ids known, in any order"
        if any(re.search(rf"^(from|import) {library}\b", block, re.MULTILINE) for library in ABSENT):
            continue
        for long, short in SHORTER:
            block = block.replace(long, short)
        exec(compile(block, f"{name_of(page)}, block {number}", "exec"), names)
    for envs in names.values():
        if isinstance(envs, stiction.VectorEnv):
            envs.close()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "toml")], ids=name_of)
def test_toml_is_read(page, folder):
    for block in blocks(page, "toml"):
        whole = block if "task = " in block else f'task = "QuadrupedVelocity"\n{block}'
        (folder / "a.toml").write_text(whole)
        said = setup.read_toml(folder / "a.toml")
        setup.groups_of_tables(said.get("observations", {}))
        terms = setup.terms_of(said.get("randomize", []))
        stiction.make_vec("stiction/QuadrupedVelocity-v0", 1, randomize=terms).close()
        assert said == tomllib.loads(whole)


def test_every_kind_of_randomisation_has_a_table():
    (tables,) = (block for block in blocks(ROOT / "docs/training.md", "toml") if "amount" in block)
    assert {entry["kind"] for entry in tomllib.loads(tables)["randomize"]} == set(KINDS)


def lines_of(page: Path) -> list[str]:
    """Of blocks, and whole commands of the text."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    said = re.findall(r"`((?:stiction|torchrun|python) [a-z-]+ [^`\n]+)`", text)
    return [line for block in blocks(page, "sh") for line in block.splitlines()] + said


COMMANDS = {
    line: name_of(page)
    for page in PAGES
    for text in lines_of(page)
    if (line := shlex.join(shlex.split(re.sub(r" \[.*", "", text), comments=True)))
}


@pytest.mark.parametrize(("line", "page"), COMMANDS.items(), ids=list(COMMANDS))
def test_a_command_is_one(line, page):
    """Its program is there, and takes these words."""
    words = shlex.split(line)
    words = [word for word in words if not re.fullmatch(r"[A-Z_]+=\S*", word)]
    if "stiction" in words[:4] and words[0] != "git":
        asked = words[words.index("stiction") + 1 :]
        parser = argparse.ArgumentParser(exit_on_error=False)
        import_module(cli.COMMANDS[asked[0]][0]).add_arguments(parser)
        with contextlib.redirect_stderr(io.StringIO()) as told:
            try:
                parser.parse_args(asked[1:])
            except (SystemExit, argparse.ArgumentError) as error:
                pytest.fail(f"{page}: {error} {told.getvalue()}")
    elif words[0] == "python":
        of_module = words[1] == "-m"
        there = importlib.util.find_spec(words[2]) is not None if of_module else False
        assert there or (ROOT / "examples" / words[1]).is_file() or (ROOT / words[1]).is_file(), words
    elif "scripts/" in words[0]:
        assert (ROOT / words[0]).is_file()
    else:
        assert words[0] in ("git", "pip"), f"{page}: {words}"


def test_the_notebook_runs(folder):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    notebook = json.loads((ROOT / "docs/tutorials/first-steps.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names = {}
    for number, cell in enumerate(cells):
        assert cell["outputs"] == [] and cell["execution_count"] is None
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    assert names["ppo"].samples >= 20_000
    assert "<video" in names["video"]._repr_html_()
    pyplot.close("all")


def walking_robot(which: str, folder: Path) -> tuple[Path, tuple[str, ...]]:
    """A robot's scene and its feet."""
    if which == "go1":
        return data_file("mujoco_menagerie/unitree_go1/scene.physics.xml"), ("FL", "FR", "RL", "RR")
    return folder / "robot.xml", tuple(FEET.values())


@pytest.mark.parametrize(("which", "groups"), [("ours", False), ("ours", True), ("go1", False)])
def test_a_quadruped_walks_by_three_commands(which, groups, folder):
    """The tutorial's, for a moment; the third one asks no stiction, and sees what the policy saw here."""
    page, theirs = ROOT / "docs/tutorials/own-quadruped.md", "mujoco_menagerie/unitree_go1/scene.xml"
    scene, feet = walking_robot(which, folder)
    tables = "\n".join(blocks(page, "toml")[: 1 + groups])
    text = tables.replace(theirs, str(scene))
    for ours, named in zip(feet, ("FL", "FR", "RL", "RR"), strict=True):
        text = text.replace(f'"{named}"', f'"{ours}"')
    (folder / "go1.toml").write_text(text)
    train, play, walk = (line.replace(theirs, str(scene)) for line in blocks(page, "sh")[1].splitlines())
    small = " --num-envs 16 --set steps=8 minibatch=128 --evaluate 0 --threads 1 --no-video"
    train = train.removeprefix("stiction ").replace("--minutes 20", "--minutes 1e-9") + small
    assert cli.main(shlex.split(train)) == 0
    assert cli.main(shlex.split(play.removeprefix("stiction ") + " --episodes 1 --seconds 0.2 --threads 1")) == 0
    assert (folder / "go1.mp4").stat().st_size > 1000

    program, _, run = shlex.split(walk)[1:4]
    walker = walker_of(folder / program)(scene, folder / run)
    options = {"names": {"feet": feet}, "dtype": "float64", "task": {"start_velocity": (0, 0)}}
    seen = setup.groups_of_tables(tomllib.loads(tables).get("observations", {"policy": {}, "critic": {}}))
    envs = stiction.make_vec("stiction/QuadrupedVelocity-v0", 1, model=str(scene), observations=seen, **options)
    (observed, _), action = envs.reset(seed=0), np.zeros((1, 12))
    for _ in range(5):
        walker.data.qpos[:], walker.data.qvel[:] = envs.simulation.qpos[0], envs.simulation.qvel[0]
        walker.last = dict(zip(walker.last, action[0], strict=True))
        told = walker.observation(observed["critic"][0, 9:12])
        np.testing.assert_allclose(told, observed["policy"], atol=1e-6)
        action = envs.action_space.sample()
        observed = envs.step(action)[0]
    now = walker.step((0.5, 0, 0))
    assert now["gravity/z"] < -0.5 and now["last_action/" + walker.actions[0]["name"].split("/")[1]] != action[0, 0]


def walker_of(program: Path):
    spec = importlib.util.spec_from_file_location("walk_in_mujoco", program)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Walker
