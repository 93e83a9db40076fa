"""The props of the package: whole, massive, and at rest after a fall.

STICTION_FULL_TESTS=1: from more orientations.
"""

import os
from itertools import combinations

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

import stiction  # noqa: E402
from stiction import Model, Simulation, prop_names, prop_path  # noqa: E402

FALLS = 64 if os.environ.get("STICTION_FULL_TESTS") == "1" else 8
FLOORS = {
    "plane": '<geom type="plane" size="0 0 1" friction=".6"/>',
    "table": '<geom type="box" size=".6 .6 .05" pos="0 0 -.05" friction=".6"/>',
}


def scene(name: str, floor: str) -> str:
    return f'<mujoco><include file="{prop_path(name)}"/><worldbody>{FLOORS[floor]}</worldbody></mujoco>'


def corners(m) -> np.ndarray:
    """Of all parts, in the frame of the prop, (n, 3)."""
    data, found = mujoco.MjData(m), []
    mujoco.mj_forward(m, data)
    for geom in np.flatnonzero(m.geom_type == mujoco.mjtGeom.mjGEOM_MESH):
        mesh = m.geom_dataid[geom]
        own = m.mesh_vert[m.mesh_vertadr[mesh] :][: m.mesh_vertnum[mesh]]
        found.append(own @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom])
    return np.vstack(found)


def test_there_are_a_dozen_and_others_are_refused():
    assert len(prop_names()) >= 12 and {"mug", "hammer", "bolt", "nut"} <= set(prop_names())
    assert stiction.prop_path("mug").read_text().startswith('<mujoco model="mug">')
    with pytest.raises(ValueError, match="no prop 'mgu'; did you mean 'mug'"):
        prop_path("mgu")


@pytest.mark.parametrize("name", prop_names())
def test_a_prop_is_whole(name):
    model = Model.from_mjcf(prop_path(name))
    m = model.mjmodel
    assert m.nq == 7
    assert mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_BODY, 1) == name
    assert abs(corners(m)[:, 2].min()) < 2e-6, "stands on z = 0"
    data, line = mujoco.MjData(m), np.zeros(6)
    mujoco.mj_forward(m, data)
    meshes = np.flatnonzero(m.geom_type == mujoco.mjtGeom.mjGEOM_MESH)
    for one, other in combinations(map(int, meshes), 2):
        assert mujoco.mj_geomDistance(m, data, one, other, 1, line) > -5e-6, f"parts {one} and {other} overlap"
    sim = Simulation(model, 1, dtype="float64")
    sim.qpos[0] = data.qpos[:] = [0.1, 0.2, 0.3, *(np.array([4, 1, -2, 3]) / 30**0.5)]
    mujoco.mj_forward(m, data)
    expected = np.zeros((6, 6))
    mujoco.mj_fullM(m, data, expected)
    np.testing.assert_allclose(sim.mass_matrix()[0], expected, rtol=0, atol=1e-12 * m.body_mass[1])


@pytest.mark.parametrize("h", [0.002, 0.01])
@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("name", prop_names())
def test_a_prop_falls_and_comes_to_rest(name, floor, h):
    """From 0.2 m and any orientation, within 6 s; the first as it stands, which it keeps on the floor."""
    model = Model.from_mjcf(scene(name, floor))
    sim, rng = Simulation(model, FALLS + 1, num_threads=1, timestep=h), np.random.default_rng(2)
    quats = rng.standard_normal((FALLS, 4))
    sim.qpos[1:, 3:7] = quats / np.linalg.norm(quats, axis=1, keepdims=True)
    sim.qpos[1:, 2] = 0.2 + np.linalg.norm(corners(model.mjmodel), axis=1).max()
    sim.step(round(5.75 / h))
    turning, sunk = np.zeros(FALLS + 1), 0.0
    for _ in range(round(0.25 / h)):
        sim.step()
        turning = np.maximum(turning, np.linalg.norm(sim.qvel[:, 3:], axis=1))
        sunk = max(sunk, float(sim.certificate.penetration.max()))
    moved = np.abs(sim.qpos[0] - model.mjmodel.qpos0).max()
    print(
        f"{name} on a {floor}: {turning.max():.1e} rad/s, {1e6 * sunk:.1f} um deep, stood within {1e6 * moved:.0f} um"
    )
    assert turning.max() < 0.01 and sunk < 1e-4 and moved < 1e-3
    assert not (sim.status & stiction.Status.NON_FINITE).any()


def test_many_of_a_kind_are_attached():
    spec = mujoco.MjSpec.from_string(f"<mujoco><worldbody>{FLOORS['plane']}</worldbody></mujoco>")
    for i, name in enumerate(["mug", "die", "die"]):
        frame = spec.worldbody.add_frame(pos=[0.2 * i, 0, 0])
        frame.attach_body(mujoco.MjSpec.from_file(str(prop_path(name))).body(name), f"{i}_", "")
    sim = Simulation(Model.from_mjmodel(spec.compile()), 1)
    sim.step(100)
    assert sim.qpos.shape == (1, 21) and not sim.status.any() and sim.contact.count[0] >= 9
