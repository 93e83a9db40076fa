"""Bodies that start inside others come out, and keep no speed from it: what closes an overlap moves positions only."""

import numpy as np
import pytest
from stiction import Model, Simulation, Status

#: type, size, height of the centre at rest
BODIES = {"sphere": ("0.05", 0.05), "box": ("0.05 0.05 0.05", 0.05), "capsule": ("0.03 0.05", 0.08)}
SCENE = '<mujoco><option timestep="{h}"/><worldbody><geom type="plane" size="5 5 1"/>{bodies}</worldbody></mujoco>'
BODY = '<body pos="{pos}"><freejoint/><geom type="{kind}" size="{size}" mass="{mass}"/></body>'


def simulation(h, *bodies, **options):
    xml = SCENE.format(h=h, bodies="".join(BODY.format(pos=p, kind=k, size=s, mass=m) for p, k, s, m in bodies))
    return Simulation(Model.from_mjcf(xml), **options)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("h", [5e-4, 2e-3, 1e-2])
@pytest.mark.parametrize("kind", BODIES)
def test_what_starts_inside_the_floor_comes_out_and_stays(kind, h, dtype):
    size, height = BODIES[kind]
    for depth in (5e-4, 2e-3, 1e-2):
        sim = simulation(h, (f"0 0 {height - depth}", kind, size, 1), dtype=dtype)
        top, fastest = -1.0, 0.0
        for _ in range(round(1 / h)):
            sim.step()
            top, fastest = max(top, sim.qpos[0, 2] - height), max(fastest, abs(sim.qvel[0, 2]))
        assert top <= 1e-6 and fastest <= 0.0441, depth
        assert -2e-6 <= sim.qpos[0, 2] - height and abs(sim.qvel[0]).max() < 1e-4 and sim.status[0] == 0


@pytest.mark.parametrize("h", [5e-4, 2e-3, 1e-2])
def test_balls_inside_each_other_part_slowly(h):
    """Nothing takes a speed along the floor back: it is a tenth of what the recovery of one step would leave."""
    sim = simulation(h, ("0 0 .05", "sphere", ".05", 1), (".095 0 .05", "sphere", ".05", 1))
    sim.step(round(0.5 / h))
    assert sim.qpos[0, 7] - sim.qpos[0, 0] > 0.1 and abs(sim.qvel[0, [0, 6]]).max() <= 0.0221
    assert sim.status[0] == 0


def test_a_spinning_body_keeps_its_spin():
    """The recovery turns a box that lies in the floor on one edge; what it turns by is no angular velocity.

    What its spin may have sunk it by the box pays for: in a step up to 0.3 % of its momentum."""
    sim = simulation(2e-3, ("0 0 .046", "box", ".05 .05 .05", 1), dtype="float64")
    sim.qpos[0, 3:7] = [np.cos(0.02), 0, np.sin(0.02), 0]
    sim.qvel[0, 5] = 1
    spins = []
    for _ in range(100):
        sim.step()
        problem = sim.contact_problem(0).arrays()
        momentum = problem["A"] @ sim.qvel[0] - problem["b"] - problem["J"].T @ problem["impulse"].ravel()
        assert abs(momentum).max() < 5e-6
        spins.append(abs(sim.qvel[0, 3:5]).max())
    assert max(spins) < 1 and sim.status[0] == 0


@pytest.mark.parametrize(("h", "rise"), [(1e-3, 0.03), (4e-3, 0.03)])
def test_a_capsule_that_spins_on_ice_does_not_climb(h, rise):
    """Its end goes round on an arc, below which a step's chord takes it: what lifts it out again was energy for
    nothing, up to 1.8 times what it began with at 4 ms."""
    xml = f"""<mujoco><option timestep="{h}"/><worldbody><geom type="plane" size="5 5 1" friction="0"/>
      <body><freejoint/><geom type="capsule" size=".02 .05" mass=".3" friction="0"/></body></worldbody></mujoco>"""
    sim = Simulation(Model.from_mjcf(xml), 8, dtype="float64")
    inertia, rng = sim.model.mjmodel.body_inertia[1], np.random.default_rng(0)
    tilt = rng.uniform(0.05, 1.2, 8)
    sim.qpos[:, 3], sim.qpos[:, 4], sim.qpos[:, 2] = np.cos(tilt / 2), np.sin(tilt / 2), 0.02 + 0.05 * np.cos(tilt)
    sim.qvel[:, 3:] = rng.uniform(-100, 100, (8, 3)) * [0.3, 0.3, 1]

    def energy():
        return 0.15 * (sim.qvel[:, :3] ** 2).sum(1) + sim.qvel[:, 3:] ** 2 @ inertia / 2 + 0.3 * 9.81 * sim.qpos[:, 2]

    first = lowest = energy()
    for _ in range(round(3 / h)):
        sim.step()
        now, lowest = energy(), np.minimum(lowest, energy())
        assert (now - lowest <= rise * first).all()
    assert (now <= 0.7 * first).all()


@pytest.mark.parametrize("h", [2e-3, 5e-3])
@pytest.mark.parametrize("geom", ['cylinder" size=".03 .01', 'capsule" size=".02 .05'])
@pytest.mark.parametrize("beside", ["", '<body pos="0 9 1"><freejoint/><geom type="sphere" size=".1"/></body>'])
def test_who_slides_past_sees_the_same(geom, h, beside):
    """What spins on ice pays for its lifts with its spin: it slides at 10 m/s for ever (it lost 1 mm/s a second)."""
    xml = f"""<mujoco><option timestep="{h}"/><worldbody><geom type="plane" size="5 5 1" friction="0"/>
      <body><freejoint/><geom type="{geom}" mass=".3" friction="0"/></body>{beside}</worldbody></mujoco>"""
    sim = Simulation(Model.from_mjcf(xml), 16, dtype="float64")
    rng = np.random.default_rng(0)
    quat, spin = rng.standard_normal((2, 16, 4))
    sim.qpos[:, 2], sim.qpos[:, 3:7] = 0.06, quat / np.linalg.norm(quat, axis=1)[:, None]
    sim.qvel[:, 0], sim.qvel[:, 3:6] = 10, 10 * spin[:, :3]
    sim.step(round(1 / h))
    assert abs(sim.qvel[:, 0] - 10).max() <= 1e-9 and abs(sim.qvel[:, 1]).max() <= 1e-9


def test_recovery_is_fast_all_the_same():
    sim = simulation(2e-3, ("0 0 .04", "sphere", ".05", 1))
    sim.step(30)
    assert -1e-4 < sim.qpos[0, 2] - 0.05 < 1e-6 and abs(sim.qvel[0, 2]) < 0.03
    assert not sim.status[0] & Status.NOT_CONVERGED


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_packs_of_resting_and_hovering_worlds(dtype):
    """Contacts that stay open come behind all that close, whichever world has them: together more than one can have."""
    ring = [(0.1 * np.cos(a), 0.1 * np.sin(a)) for a in 2 * np.pi * np.arange(8) / 8]
    feet = "".join(f'<geom type="sphere" size=".02" pos="{x} {y} 0"/>' for x, y in ring)
    model = Model.from_mjcf(SCENE.format(h=2e-3, bodies=f'<body pos="0 0 .02"><freejoint/>{feet}</body>'))
    sim = Simulation(model, 2, dtype=dtype)
    sim.qpos[1, 2] += 1e-3  # hovers within the margin, and rises
    sim.qvel[1, 2] = 0.03
    alone = [Simulation(model, dtype=dtype) for _ in range(2)]
    for env, one in enumerate(alone):
        one.qpos[0], one.qvel[0] = sim.qpos[env], sim.qvel[env]
    for _ in range(20):
        sim.step()
        for env, one in enumerate(alone):
            one.step()
            np.testing.assert_array_equal(sim.qpos[env], one.qpos[0])
            np.testing.assert_array_equal(sim.qvel[env], one.qvel[0])
    assert not sim.status.any()


def test_what_runs_away_is_told():
    """A state that no robot reaches: the environment stands still and says so, long before numbers overflow."""
    sim = simulation(2e-3, ("0 0 1", "sphere", ".05", 1), num_envs=2)
    sim.qvel[1, 0] = 2e6
    sim.step()
    assert sim.status[0] == 0 and sim.status[1] == Status.NON_FINITE


SLAB = " ".join(f"{x} {y} {z}" for x in (-2, 2) for y in (-2, 2) for z in (-0.05, 0.05))
SMALL = {
    "box": 'type="box" size=".01 .008 .006"',
    "cylinder": 'type="cylinder" size=".008 .01"',
    "tetrahedron": 'type="mesh" mesh="tetrahedron"',
    "cuboid": 'type="mesh" mesh="cuboid"',
}
TETRAHEDRON = "0.01 0 0  -0.006 0.008 0.001  -0.006 -0.008 0.0005  0 0 0.006"
CUBOID = " ".join(f"{x} {y} {z}" for x in (-0.01, 0.01) for y in (-0.008, 0.008) for z in (-0.006, 0.006))


@pytest.mark.parametrize("h", [2e-3, 5e-3, 1e-2])
@pytest.mark.parametrize("floor", ['type="box" size="2 2 .05"', 'type="mesh" mesh="slab"'], ids=["box", "hull"])
@pytest.mark.parametrize("kind", SMALL)
def test_small_things_come_out_of_large_ones(kind, floor, h):
    """Whatever way they lie in it: how fast a hull's corners two metres away come nearer is of no account, and all
    corners that are in the other touch it, however much deeper one of them is."""
    xml = f"""<mujoco><option timestep="{h}"/><default><geom friction=".3" density="1000"/></default>
      <asset><mesh name="slab" vertex="{SLAB}"/><mesh name="tetrahedron" vertex="{TETRAHEDRON}"/>
      <mesh name="cuboid" vertex="{CUBOID}"/></asset>
      <worldbody><geom {floor} pos="0 0 -.05"/><body><freejoint/><geom {SMALL[kind]}/></body></worldbody></mujoco>"""
    sim = Simulation(Model.from_mjcf(xml), 32)
    sim.qpos[:, 3:7] = np.random.default_rng(0).standard_normal((32, 4))
    sim.qpos[:, 3:7] /= np.linalg.norm(sim.qpos[:, 3:7], axis=1, keepdims=True)
    low, high = np.full(32, -0.03), np.full(32, 0.05)
    for _ in range(20):  # until each is 2 mm deep
        sim.qpos[:, 2] = (low + high) / 2
        sim.forward()
        deep = sim.certificate.penetration > 2e-3
        low, high = np.where(deep, sim.qpos[:, 2], low), np.where(deep, high, sim.qpos[:, 2])
    sim.step(round(2 / h))
    sim.forward()
    assert sim.certificate.penetration.max() < 1e-4 and not (sim.status & Status.NON_FINITE).any()
