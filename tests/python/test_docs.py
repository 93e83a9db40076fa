"""The site: it has what the package has, and what is broken fails its build."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def build(folder: Path, site: Path, *options: str) -> subprocess.CompletedProcess:
    """As scripts/check does."""
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site), *options]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    for name in ("python", "scripts", "examples"):
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.fixture(scope="module")
def reference(copied):
    done = build(copied, copied / "built")
    assert done.returncode == 0, done.stderr
    page = (copied / "built" / "reference" / "index.html").read_text(encoding="utf-8")
    return " ".join(re.sub(r"<[^>]+>", "", page).split())


@pytest.mark.parametrize(
    ("broken", "told", "options"),
    [
        ("[x](nowhere.md)", "nowhere.md", ["--quiet"]),
        ("[x](tasks.md#nowhere)", "does not contain an anchor", []),
        ("![x](nowhere.png)", "nowhere.png", []),
        ("::: stiction.nowhere", "stiction.nowhere", []),
    ],
)
def test_what_is_broken_fails_the_build(copied, broken, told, options):
    page = copied / "docs" / "migration.md"
    text = page.read_text(encoding="utf-8")
    try:
        page.write_text(f"{text}\n{broken}\n", encoding="utf-8")
        done = build(copied, copied / "broken", *options)
    finally:
        page.write_text(text, encoding="utf-8")
    assert done.returncode != 0
    assert told in done.stderr


def test_every_public_name_has_a_reference():
    import stiction

    told = set(re.findall(r"^::: (\S+)", (ROOT / "docs" / "reference.md").read_text(encoding="utf-8"), re.MULTILINE))
    for name, module in stiction._NAMES.items():
        assert f"stiction.{module}.{name}" in told or f"stiction.{module}" in told, name


def test_every_array_option_and_bit_is_described(reference):
    from stiction.simulation import Simulation
    from stiction.simulation_arrays import Array, CertificateArrays, ContactArrays
    from stiction.solver_options import SolverOptions
    from stiction.status import Status

    arrays = [value for value in vars(Simulation).values() if isinstance(value, Array)]
    assert len(arrays) > 10
    arrays += [v for kind in (ContactArrays, CertificateArrays) for v in vars(kind).values() if isinstance(v, property)]
    for array in arrays:
        assert re.sub(r"[`<>]", "", array.__doc__)[:40] in reference, array.__doc__
    for kind in (SolverOptions, Status):
        source = Path(import_module(kind.__module__).__file__).read_text(encoding="utf-8")
        for comment in re.findall(r"^    #: (.{20,60})", source, re.MULTILINE):
            assert re.sub(r"[`<>]", "", comment)[:20] in reference, comment


def test_parameters_keep_the_first_line_of_what_is_said(reference):
    assert "where there is a GPU and a CUDA build" in reference
    assert "control steps until truncation; None is the id" in reference


def test_settings_of_solvers_tell_their_defaults(reference):
    from stiction.solver_options import SolverOptions

    assert "exactly so many while tolerance is 0. Default: 100." in reference
    settings = len(fields(SolverOptions)) - 1 + sum(len(kind.own()) for kind in SolverOptions.__subclasses__())
    assert reference.count(" Default: ") == settings  # all but the name


def test_a_notebook_has_a_page(copied, reference):
    page = (copied / "built" / "tutorials" / "first-steps" / "index.html").read_text(encoding="utf-8")
    assert "Sixteen quadrupeds" in page and "certificate" in page and 'href="../first-steps.ipynb"' in page
    assert (copied / "built" / "tutorials" / "first-steps.ipynb").exists()


def test_the_reference_has_no_helpers(reference):
    for helper in ("shown_groups", "require_shared_sites", "PushEvent", "__getstate__"):
        assert helper not in reference


def test_stars_and_subscripts_of_formulas_are_no_emphasis(copied, reference):
    for page in (copied / "built").rglob("index.html"):
        for text in re.findall(r"<em>(.*?)</em>", page.read_text(encoding="utf-8"), re.DOTALL):
            assert text[0].isalnum() and len(text) < 100, (page.parent.name, text)
