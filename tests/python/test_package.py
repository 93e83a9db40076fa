"""The package: what importing it costs, its names, and the command `stiction`."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import stiction
from stiction import _core, cli


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_imports_without_torch_and_gymnasium():
    hidden = "import sys; sys.modules.update(torch=None, gymnasium=None); import stiction; print(stiction.__version__)"
    result = python(hidden)
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(r"\d+\.\d+\.\d+", result.stdout.strip())


def test_import_loads_no_heavy_package():
    result = python("import sys, stiction; print(sorted({'numpy', 'mujoco', 'torch', 'gymnasium'} & set(sys.modules)))")
    assert result.stdout.strip() == "[]", result.stderr


@pytest.mark.parametrize("name", stiction.__all__)
def test_public_names_resolve(name):
    assert getattr(stiction, name) is not None
    assert name in dir(stiction)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Modle"):
        stiction.Modle  # noqa: B018


def test_info_prints_build_and_machine(capsys):
    assert cli.main(["info"]) == 0
    text = capsys.readouterr().out
    for label in ("stiction:", "CPU:", "CPU libraries:", "CUDA build:", "CUDA driver:", "packages:"):
        assert label in text
    assert stiction.__version__ in text


def test_info_json_is_machine_readable(capsys):
    assert cli.main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["stiction"] == stiction.__version__
    assert facts["cpu"]["threads"] >= 1
    assert set(facts["cpu"]["usable_isas"]) <= set(facts["build"]["isas"])
    assert (facts["cuda"]["toolkit"] is None) == (not facts["cuda"]["architectures"])


def test_unknown_command_names_the_known_ones(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["infos"])
    assert stop.value.code == 2
    assert "info" in capsys.readouterr().err


def test_the_stub_of_the_core_has_its_names():
    """`python/stiction/_core.pyi` is made by pybind11-stubgen; whoever adds a binding makes it anew."""
    package = Path(__file__).resolve().parents[2] / "python/stiction"
    tree = ast.parse((package / "_core.pyi").read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    constants = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)} - {"__all__"}
    assert set(classes) | functions | constants == {name for name in dir(_core) if not name.startswith("_")}
    for name, node in classes.items():
        told = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        bound = {member for member in vars(getattr(_core, name)) if not member.startswith("_")}
        assert {member for member in told if not member.startswith("_")} == bound
    assert (package / "py.typed").exists()
