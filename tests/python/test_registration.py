"""Gymnasium knows the environments once both packages are imported, in any order and form; each in a new process."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("gymnasium")

IMPORTS = {
    "stiction first": "import stiction, gymnasium",
    "gymnasium first": "import gymnasium, stiction",
    "a part of stiction first": "from stiction import Simulation\nimport gymnasium as gymnasium",
    "a part of gymnasium": "import stiction\nfrom gymnasium.vector import AutoresetMode\nimport gymnasium",
    "make_vec first": "import stiction\nstiction.make_vec('stiction/Hopper-v0').close()\nimport gymnasium",
    "twice": "import stiction, gymnasium\nstiction.register_envs()",
}


def run(program):
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    assert "WARN" not in done.stderr, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("imports", IMPORTS.values(), ids=IMPORTS)
def test_both_packages_imported_is_enough(imports):
    program = f"""{imports}
for prefix in ("", "stiction:"):
    envs = gymnasium.make(prefix + "stiction/Hopper-v0"), gymnasium.make_vec(prefix + "stiction/Hopper-v0", num_envs=2)
    for env in envs:
        print(env.reset(seed=0)[0].shape)
        env.close()
"""
    assert run(program) == ["(11,)", "(2,", "11)"] * 2


def test_the_prefix_imports_stiction():
    assert run("import gymnasium\nprint(gymnasium.make('stiction:stiction/Ant-v0').spec.id)") == ["stiction/Ant-v0"]


def test_stiction_alone_imports_neither_gymnasium_nor_torch():
    program = "import stiction, sys\nstiction.Simulation\nprint('gymnasium' in sys.modules, 'torch' in sys.modules)"
    assert run(program) == ["False", "False"]


def test_gymnasium_stays_as_it_is():
    """Its loader, its resources and its reload are those of the interpreter, and nothing waits for it any more."""
    program = """import stiction, sys
import gymnasium, importlib, importlib.resources
print(type(gymnasium.__spec__.loader).__name__, gymnasium.__loader__ is gymnasium.__spec__.loader)
print(importlib.resources.files("gymnasium").joinpath("py.typed").is_file())
print([finder for finder in sys.meta_path if type(finder).__module__.startswith("stiction")])"""
    assert run(program) == ["SourceFileLoader", "True", "True", "[]"]


def test_without_gymnasium_stiction_works():
    program = """import sys, stiction
class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "gymnasium":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(1, Nowhere())
try:
    import gymnasium
except ModuleNotFoundError as error:
    print(error.name, stiction.Model is not None)"""
    assert run(program) == ["gymnasium", "True"]
