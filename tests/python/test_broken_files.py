"""Broken model files end in a typed error that says what is wrong, or in a model that steps: never in anything else."""

import random
import re
import struct

import numpy as np
import pytest

pytest.importorskip("mujoco")

from model_sources import ROOT  # noqa: E402
from scenes import MIXED  # noqa: E402
from stiction import Model, Simulation  # noqa: E402
from stiction.status import Status  # noqa: E402
from test_model_files import URDF  # noqa: E402

SMALL = (ROOT / "tests" / "host" / "model" / "small_scene.xml").read_text()
SOURCES = [(MIXED, Model.from_mjcf), (SMALL, Model.from_mjcf), (URDF, Model.from_urdf)]
NUMBERS = "nan inf -inf 1e308 -1e308 1e38 0 -1 1e-320 99999999999 abc 0x10 -0 1e400".split() + ["", "1 2"]


def damaged(text: str, chance: random.Random) -> str:
    """The text with up to three numbers, attributes, elements, characters or stretches changed or gone."""
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        numbers = list(re.finditer(r'(?<=["\s])-?\.?\d[\d.e-]*(?=["\s])', text))
        attributes = list(re.finditer(r'\s[a-z]\w*="[^"]*"', text))
        elements = list(re.finditer(r"<[a-z][^>]*/>", text))
        kind = chance.randrange(8)
        if kind <= 2 and numbers:
            at = chance.choice(numbers)
            text = text[: at.start()] + chance.choice(NUMBERS) + text[at.end() :]
        elif kind == 3 and attributes:
            at = chance.choice(attributes)
            text = text[: at.start()] + text[at.end() :]
        elif kind == 4 and elements:
            at = chance.choice(elements)
            text = text[: at.start()] + at.group() * chance.choice([0, 2]) + text[at.end() :]
        elif kind == 5 and attributes:
            text = text.replace(chance.choice(attributes).group(), chance.choice(attributes).group(), 1)
        elif kind == 6:
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice(["", "<", ">", '"', "&", "\0", "é"]) + text[at + chance.randrange(3) :]
        else:
            begin, end = sorted(chance.randrange(len(text)) for _ in range(2))
            text = text[:begin] + (text[end:] if end - begin < 200 else "")
    return text


def test_damaged_text_is_refused_or_steps():
    refused = stepped = 0
    for seed in range(600):
        chance = random.Random(seed)
        source, read = chance.choice(SOURCES)
        text = damaged(source, chance)
        if not text.lstrip().startswith("<"):
            continue  # a path then
        try:
            sim = Simulation(read(text), 2, num_threads=1)
        except ValueError as error:
            assert str(error), seed
            refused += 1
            continue
        sim.step(3)
        stepped += 1
        finite = np.isfinite(sim.qpos).all(axis=1) & np.isfinite(sim.qvel).all(axis=1)
        flagged = (np.asarray(sim.status) & Status.NON_FINITE) != 0
        assert np.all(finite | flagged), seed
    assert refused > 200 and stepped > 50


def stl(triangles, count=None) -> bytes:
    """A binary STL file; count: what its header claims."""
    facets = b"".join(struct.pack("<12fH", 0, 0, 0, *np.ravel(t), 0) for t in triangles)
    return bytes(80) + struct.pack("<I", len(triangles) if count is None else count) + facets


CORNERS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
TETRAHEDRON = [CORNERS[[0, 2, 1]], CORNERS[[0, 1, 3]], CORNERS[[1, 2, 3]], CORNERS[[0, 3, 2]]]
MESHES = {
    "empty.stl": b"",
    "short.stl": stl(TETRAHEDRON)[:100],
    "none.stl": stl([]),
    "claims_more.stl": stl(TETRAHEDRON, 2**32 - 1),
    "nan.stl": stl([np.full((3, 3), np.nan)] * 4),
    "inf.stl": stl([np.full((3, 3), np.inf)] * 4),
    "point.stl": stl([t * 0 for t in TETRAHEDRON]),
    "flat.stl": stl([t * [1, 1, 0] for t in TETRAHEDRON]),
    "tiny.stl": stl([t * 1e-30 for t in TETRAHEDRON]),
    "noise.stl": np.random.default_rng(0).bytes(5000),
    "empty.obj": b"",
    "no_face.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\n",
    "no_such_vertex.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n",
    "nan.obj": b"v nan 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n",
    "flat.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n",
    "text.obj": b"hello\nf a b c\n",
    "noise.msh": np.random.default_rng(1).bytes(400),
    "other.dae": b"<x/>",
}


@pytest.mark.parametrize("name", MESHES)
def test_broken_mesh_is_refused(name):
    text = (
        f'<mujoco><asset><mesh name="m" file="{name}"/></asset><worldbody><body><freejoint/>'
        '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    with pytest.raises(ValueError, match="cannot import the XML string"):
        Model.from_mjcf(text, assets={name: MESHES[name]})


def test_damaged_archive_is_refused_or_loads(tmp_path):
    path = tmp_path / "model.npz"
    Model.from_mjcf(SMALL).save(path)
    whole, refused = path.read_bytes(), 0
    for seed in range(200):
        chance = random.Random(seed)
        data = bytearray(whole[: chance.randrange(len(whole))] if seed % 4 == 0 else whole)
        for _ in range(seed % 4):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        try:
            Model.load(path)
        except ValueError:
            refused += 1
    assert refused > 100
