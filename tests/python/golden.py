"""Trajectories whose bits are kept: tests/golden/hashes.json, changed only by `scripts/golden --accept REASON`.

The model comes from an archive beside the hashes, so that they do not depend on MuJoCo's version.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
from stiction import Model, _core

FOLDER = Path(__file__).resolve().parents[1] / "golden"
HASHES = FOLDER / "hashes.json"
MODEL = FOLDER / "mixed.npz"

#: Name -> options of the world. tolerance > 0: iterations stop when the residual says so.
CASES = {
    "float32": {},
    "float32 residual stop": {"tolerance": 1e-4, "iterations": 100},
    "float32 euler": {"implicit": 0},
    "float32 plain": {"anderson": 0, "fallback": 0},
    "float64": {},
}
STATES = 7  # different starts, which batches of any size repeat


def starts(model):
    """(STATES, nq), (STATES, nv), (STATES, nu): falls from different heights, spins, controls."""
    rng = np.random.default_rng(11)
    q = np.repeat(model.qpos0[None], STATES, 0)
    q[:, 2] += rng.uniform(-0.1, 0.1, STATES)
    hinges = model.jnt_qposadr[np.asarray(model.jnt_type) == 3]
    q[:, hinges] += rng.uniform(-0.3, 0.3, (STATES, len(hinges)))
    return q, 0.5 * rng.standard_normal((STATES, model.nv)), rng.uniform(-1, 1, (STATES, model.nu))


def bare_world(model, num_envs, isa, *, float64=False, threads=1, options=None, solver_options=None):
    """Of the core alone, with an instruction set of one's choice; `options`: of a step."""
    return _core.World(
        model.core,
        num_envs=num_envs,
        float64=float64,
        isa=isa,
        solver="subadmm",
        solver_options=solver_options or {},
        num_threads=threads,
        max_contacts=0,
        options=options or {},
    )


def make_world(model, order, *, case="float32", isa="", threads=1):
    """One environment for each entry of `order`: the number of its start."""
    options = dict(CASES[case])
    own = {name: options.pop(name) for name in ("anderson",) if name in options}
    world = bare_world(
        model,
        len(order),
        isa,
        float64=case.startswith("float64"),
        threads=threads,
        options=options,
        solver_options=own,
    )
    for name, values in zip(("qpos", "qvel", "ctrl"), starts(model), strict=True):
        world.array(name)[:] = values[order]
    return world


def state_bits(world):
    """The bytes of each environment's state and certificate."""
    names = "qpos", "qvel", "status", "certificate.r_con", "certificate.r_row", "certificate.iterations"
    rows = [np.ascontiguousarray(world.array(name)).reshape(len(world.array("status")), -1) for name in names]
    return [b"".join(row[env].tobytes() for row in rows) for env in range(len(rows[0]))]


def trajectory_hash(model, case, isa="", threads=1, steps=150):
    world = make_world(model, np.arange(STATES), case=case, isa=isa, threads=threads)
    digest, touched = hashlib.sha256(), 0
    for _ in range(steps // 10):
        world.step(10)
        touched += int(world.array("certificate.num_contacts").sum())
        for bits in state_bits(world):
            digest.update(bits)
    assert touched > steps, "the scene is to be full of contacts"
    return digest.hexdigest()[:32]


def isas_of(case):
    return ["scalar"] if case.startswith("float64") else _core.available_isas()


def load():
    return Model.load(MODEL), json.loads(HASHES.read_text())
