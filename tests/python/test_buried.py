"""Faces and edges of static geometry within other static geometry have no normals of their own. Default options."""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from stiction import Model, Simulation  # noqa: E402


def vertices(points) -> str:
    return " ".join(f"{x:.9g}" for x in np.asarray(points, float).ravel())


def corners(x, y, z):
    return [(a, b, c) for a in (-x, x) for b in (-y, y) for c in (-z, z)]


FLOORS = {
    "plane": '<geom type="plane" size="2 2 1"/>',
    "tiles": "".join(f'<geom type="box" size=".3 .3 .05" pos="{x} .1 -.05"/>' for x in (-0.3, 0.3)),
}
WALLS = {  # their face is y = 0
    "box": '<geom type="box" size=".5 .1 .2" pos="0 .1 .2"/>',
    "mesh": '<geom type="mesh" mesh="wall" pos="0 .1 .2"/>',
}
FLAT = {  # geom, half its height, how far it reaches along y   m
    "box": ('<geom type="box" size=".03 .03 .002"/>', 0.002, 0.03),
    "cylinder": ('<geom type="cylinder" size=".03 .002"/>', 0.002, 0.03),
    "mesh": ('<geom type="mesh" mesh="disc"/>', 0.002, 0.03),
    "capsule": ('<geom type="capsule" size=".003 .03" euler="90 0 0"/>', 0.003, 0.033),
    "ellipsoid": ('<geom type="ellipsoid" size=".03 .03 .003"/>', 0.003, 0.03),
}
TURN = np.arange(8) * np.pi / 4
DISC = [(0.03 * np.cos(a), 0.03 * np.sin(a), z) for a in TURN for z in (-0.002, 0.002)]


def simulation(statics, geom, pos, timestep=0.002, dtype="float32", mesh=DISC, worlds=1) -> Simulation:
    meshes = (
        f'<mesh name="wall" vertex="{vertices(corners(0.5, 0.1, 0.2))}"/><mesh name="disc" vertex="{vertices(mesh)}"/>'
    )
    body = f'<body name="b" pos="{vertices(pos)}"><freejoint/>{geom}</body>'
    scene = f"<default><geom friction='.5'/></default><asset>{meshes}</asset><worldbody>{statics}{body}</worldbody>"
    return Simulation(
        Model.from_mjcf(f"<mujoco>{scene}</mujoco>"), worlds, timestep=timestep, dtype=dtype, num_threads=1
    )


def normals(sim, world=0) -> np.ndarray:
    return sim.contact.frame[world, : int(sim.contact.count[world])].reshape(-1, 3, 3)[:, 2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", FLAT)
@pytest.mark.parametrize("wall", WALLS)
@pytest.mark.parametrize("floor", FLOORS)
def test_what_is_flat_comes_out_of_the_foot_of_a_wall(floor, wall, shape, dtype):
    """It overlaps the wall by more than it is high: the least overlap is with what the wall stands on."""
    geom, height, reach = FLAT[shape]
    sim = simulation(FLOORS[floor] + WALLS[wall], geom, (0.01, -reach + 2 * height + 0.001, height), dtype=dtype)
    start, top = sim.qpos[0, 2], 0.0
    for _ in range(500):
        sim.step()
        assert normals(sim)[:, 2].min(initial=0.0) >= -0.05
        top = max(top, sim.qpos[0, 2] - start)
    print(f"{floor}, {wall}, {shape}: {1e3 * (sim.qpos[0, 1] + reach):.2f} mm left, rises by {1e3 * top:.2f} mm")
    assert sim.qpos[0, 1] + reach <= 5e-4 and top <= 1e-3


def held_by(sim) -> np.ndarray:
    """Normals of the deepest contacts with each of the static geoms."""
    count = int(sim.contact.count[0])
    geom, gap = sim.contact.geom[0, :count, 0], sim.contact.dist[0, :count]
    return np.array([normals(sim)[np.where(geom == g, gap, np.inf).argmin()] for g in np.unique(geom)])


HULL = '<geom type="mesh" mesh="disc"/>'
# Its edge, at y = z = 0, points at the wall, from which its upper face leans back.
WEDGE = [(x, y, z) for x in (-0.03, 0.03) for y, z in ((0, 0), (-0.06, 0), (-0.04, 0.02))]


@pytest.mark.parametrize("depth", [0.0, 1e-5, 2e-4])
@pytest.mark.parametrize("wall", WALLS)
@pytest.mark.parametrize("floor", FLOORS)
def test_an_edge_at_the_foot_of_a_wall_is_pushed_by_its_face(floor, wall, depth):
    """The wall's lower edge is on the edge that points at it, whose upper face is pushed down least."""
    sim = simulation(FLOORS[floor] + WALLS[wall], HULL, (0.01, depth, -depth), mesh=WEDGE)
    for _ in range(250):
        sim.step()
        assert normals(sim)[:, 2].min(initial=0.0) >= -0.05
    assert np.abs(sim.qvel).max() <= 1e-3 and abs(sim.qpos[0, 2]) <= 1e-4 and abs(sim.qpos[0, 1]) <= 5e-4


def test_what_is_in_the_crack_between_two_walls_comes_out():
    """They touch along a line, and a rod is two centimetres through it."""
    walls = '<geom type="box" size=".1 .5 .5" pos=".1 -.5 0"/><geom type="box" size=".5 .1 .5" pos="-.5 .1 0"/>'
    sim = simulation(
        walls, '<geom type="cylinder" size=".006 .1" zaxis="1 1 .2"/>', (-0.055, -0.055, 0.02), timestep=0.005
    )
    sim.step()
    np.testing.assert_allclose(held_by(sim), [[-1, 0, 0], [0, -1, 0]], atol=1e-3)
    fastest = 0.0
    for _ in range(40):
        sim.step()
        fastest = max(fastest, np.linalg.norm(sim.qvel[0, :2]))
    assert fastest <= 0.1 and sim.qpos[0, :2].max() < -0.055


def test_what_hangs_over_pushes_down():
    """A slab leans over the floor; what is under it, where it meets the floor, is pushed as it leans."""
    lean = np.deg2rad(45)
    slab = f'<geom type="box" size=".5 .05 .4" pos="0 {0.05 / np.cos(lean)} 0" euler="45 0 0"/>'
    wedge = [(x, y, z) for x in (-0.03, 0.03) for y, z in ((0, 0), (-0.06, 0), (-0.06, 0.06))]
    sim = simulation(FLOORS["plane"] + slab, HULL, (0, 1e-4, 0), mesh=wedge)
    sim.step()
    expected = [[0, 0, 1], [0, -np.sin(lean), -np.cos(lean)]]
    np.testing.assert_allclose(held_by(sim), expected, atol=1e-3)


def test_what_slides_into_a_groove_is_not_in_what_a_sweep_fills():
    """A tetrahedron slides down a wall, onto the upper edge of a block that stands askew with its end in the wall."""
    tetra = [(0, 0, 0), (0.2, 0, 0), (0, 0.2, 0), (0, 0, 0.2)]
    statics = f"""{FLOORS["plane"]}<geom type="box" pos="-.6967691631 0 .2" size=".2 .9 .2" friction="1"/>
      <geom type="box" pos="-.44255915 .19365607 .07910126" size=".01301594 .09024074 .07910126" friction="1"
        euler="0 0 58.036805"/>"""
    sim = simulation(statics, HULL.replace("/>", ' mass="1"/>'), (0, 0, 1), timestep=0.001, mesh=tetra)
    sim.qpos[:] = [-0.38099322, 0.087223142, 0.20400997, -0.44119555, -0.13285628, 0.78190207, -0.41991073]
    sim.qvel[:] = [0.00343071, 0.556935, -1.4544, -0.915679, -0.899656, -0.93756]
    deepest = hits = 0.0
    for _ in range(20):
        sim.step()
        deepest, hits = max(deepest, sim.certificate.penetration[0]), hits + sim.contact.impulse.any()
    assert hits and deepest <= 1e-4


def test_thrown_bodies_are_the_same_in_any_batch():
    rng, worlds = np.random.default_rng(0), 24
    tetra = [(0.02, 0, -0.01), (-0.02, 0.02, -0.01), (-0.02, -0.02, -0.01), (0, 0, 0.03)]
    qpos, qvel = np.zeros((worlds, 7)), np.zeros((worlds, 6))
    qpos[:, :3] = rng.uniform((-0.2, -0.12, 0.02), (0.2, -0.03, 0.1), (worlds, 3))
    turn = rng.normal(size=(worlds, 4))
    qpos[:, 3:] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    qvel[:, 1], qvel[:, 2], qvel[:, 3:] = rng.uniform(1, 8, worlds), -2, rng.normal(0, 30, (worlds, 3))
    statics, least = FLOORS["tiles"] + WALLS["box"], 0.0
    sim = simulation(statics, HULL, (0, 0, 1), mesh=tetra, worlds=worlds)
    sim.qpos[:], sim.qvel[:] = qpos, qvel
    for _ in range(150):
        sim.step()
        least = min(least, *(normals(sim, w)[:, 2].min(initial=0.0) for w in range(worlds)))
    for w in range(0, worlds, 5):
        alone = simulation(statics, HULL, (0, 0, 1), mesh=tetra)
        alone.qpos[:], alone.qvel[:] = qpos[w], qvel[w]
        alone.step(150)
        assert np.array_equal(alone.qpos[0], sim.qpos[w]) and np.array_equal(alone.qvel[0], sim.qvel[w])
    print(f"{least:.3f} is the z of the normal that points down most")
