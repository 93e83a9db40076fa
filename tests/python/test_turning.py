"""What turns far in a step touches floors with one point after another, and neither sinks into them nor gains by it."""

import numpy as np
import pytest
from stiction import Model, Simulation

HALF = np.random.default_rng(0).standard_normal((12, 3))
HALF *= np.array([0.01, 0.035, 0.06]) / np.linalg.norm(HALF, axis=1)[:, None]
HULL = " ".join(f"{x:.5g}" for x in np.ravel([HALF, -HALF]))
#: Geom, how far it reaches (m), the least height of its centre on a floor (m).
BODIES = {
    "egg": ('type="ellipsoid" size=".05 .03 .02"', 0.05, 0.02),
    "disc": ('type="ellipsoid" size=".05 .05 .015"', 0.05, 0.015),
    "needle": ('type="ellipsoid" size=".06 .02 .02"', 0.06, 0.02),
    "capsule": ('type="capsule" size=".02 .05"', 0.07, 0.02),
    "block": ('type="box" size=".01 .03 .06"', 0.068, 0.01),
    "can": ('type="cylinder" size=".02 .05"', 0.054, 0.02),
    "coin": ('type="cylinder" size=".05 .0025"', 0.05, 0.0025),
}
TILES = "/><geom ".join(
    f'type="box" size="1.25 1.25 .5" pos="{x} {y} -.5"'
    for x in (-3.75, -1.25, 1.25, 3.75)
    for y in (-3.75, -1.25, 1.25, 3.75)
)
#: All have their upper face at 0; four tiles meet at the origin.
FLOORS = {
    "plane": 'type="plane" size="0 0 1"',
    "box": 'type="box" size="5 5 1" pos="0 0 -1"',
    "tiles": TILES,
    "slab": 'type="mesh" mesh="slab" pos="0 0 -1"',
}
ON_FLOORS = pytest.mark.parametrize("floor", FLOORS)
STEPS = pytest.mark.parametrize("h", [2e-3, 5e-3, 1e-2])


def free(contents, h, friction, floor="plane"):
    return Model.from_mjcf(
        f"""<mujoco><option timestep="{h}"/><default><geom friction="{friction}"/></default>
        <asset><mesh name="hull" vertex="{HULL}"/>
        <mesh name="slab" vertex="-5 -5 -1 5 -5 -1 -5 5 -1 5 5 -1 -5 -5 1 5 -5 1 -5 5 1 5 5 1"/></asset>
        <worldbody><geom {FLOORS.get(floor, floor)}/>
        <body><freejoint/>{contents}</body></worldbody></mujoco>"""
    )


def model(geom, h, friction, *floor):
    return free(f'<geom {geom} mass=".3"/>', h, friction, *floor)


def spun(sim, height, seed=0):
    """Any way up at that height (m), 50 to 100 rad/s about any axis."""
    n, rng = sim.num_envs, np.random.default_rng(seed)
    q, w = rng.standard_normal((n, 4)), rng.standard_normal((n, 3))
    sim.qpos[:, 2] = height
    sim.qpos[:, 3:] = q / np.linalg.norm(q, axis=1, keepdims=True)
    sim.qvel[:, 3:] = w * (rng.uniform(50, 100, n) / np.linalg.norm(w, axis=1))[:, None]


def energy(sim):
    """Of each environment, J."""
    v, m = np.asarray(sim.qvel, float), sim.model.mjmodel
    mass = m.body_mass[1]
    return mass * (v[:, :3] ** 2).sum(1) / 2 + v[:, 3:] ** 2 @ m.body_inertia[1] / 2 + mass * 9.81 * sim.qpos[:, 2]


@STEPS
@pytest.mark.parametrize("friction", [0, 0.5])
@ON_FLOORS
@pytest.mark.parametrize("kind", BODIES)
def test_what_spins_on_a_floor_stays_on_it_and_gains_nothing(kind, floor, friction, h):
    """With contacts at points that are deepest at first, a needle got as deep as its middle and gained a quarter."""
    geom, radius, least = BODIES[kind]
    sim = Simulation(model(geom, h, friction, floor), 16)
    spun(sim, 1.5 * radius)
    first = lowest = energy(sim)
    for _ in range(round(1.5 / h)):
        sim.step()
        now = energy(sim)
        assert (now - lowest <= 2.5e-2 * first).all()
        lowest = np.minimum(lowest, now)
        assert (sim.qpos[:, 2] >= least - 0.07 * radius).all()
    assert now.sum() <= 0.6 * first.sum()  # there were blows


GEOMS = {kind: geom for kind, (geom, _, _) in BODIES.items()} | {
    "hull": 'type="mesh" mesh="hull"',
    "pen": 'type="capsule" size=".004 .07"',
    "stick": 'type="box" size=".004 .004 .07"',
}


@pytest.mark.parametrize("floor", ["plane", 'type="box" size="50 60 1" pos="0 0 -1"'], ids=["plane", "box"])
@pytest.mark.parametrize("kind", GEOMS)
def test_a_blow_that_turns_it_anywhere_does_not_put_its_middle_under_the_floor(kind, floor):
    """It falls at 10 m/s, 10 cm a step, and slides: what the blow makes of its turn, no free motion tells."""
    sim = Simulation(model(GEOMS[kind], 1e-2, 0.8, floor), 64)
    spun(sim, 0.2)
    sim.qvel[:, 0], sim.qvel[:, 2] = 10, -10
    for _ in range(60):
        sim.step()
        assert sim.qpos[:, 2].min() > -1e-3


@pytest.mark.parametrize("kind", ["block", "capsule"])
def test_what_a_blow_leaves_of_a_turn_moves_contacts(kind):
    """Without friction a turn about the normal stays; contacts at its beginning let them in by 7 and 11 mm."""
    sim = Simulation(model(GEOMS[kind], 1e-2, 0), 64)
    n, rng = sim.num_envs, np.random.default_rng(1)
    q, w = rng.standard_normal((n, 4)), rng.standard_normal((n, 3))
    sim.qpos[:, 2], sim.qpos[:, 3:], sim.qvel[:, 2] = 0.08, q / np.linalg.norm(q, axis=1, keepdims=True), -1
    sim.qvel[:, 3:] = 150 * w / np.linalg.norm(w, axis=1)[:, None]
    overlap = 0
    for _ in range(150):
        sim.step()
        overlap = max(overlap, np.max(sim.certificate.penetration))
    assert overlap <= 2e-3


@pytest.mark.parametrize("floor", ["box", "tiles", "slab"])
@pytest.mark.parametrize("kind", GEOMS)
def test_a_face_is_a_plane(kind, floor):
    """Up to what the solver leaves; where contacts were those of boxes and hulls the first blow was another."""
    ways = []
    for ground in ("plane", floor):
        sim = Simulation(model(GEOMS[kind], 1e-2, 0.5, ground), 16, dtype="float64")
        spun(sim, 0.1)
        sim.qpos[:, :2] = 0.3, 0.2
        ways.append([])
        for _ in range(16):
            sim.step()
            ways[-1].append(np.array(sim.qpos))
    off = np.abs(np.subtract(*ways))
    assert np.ptp(ways[0], axis=0)[:, 2].max() > 0.03 and off.max() <= 5e-4


@STEPS
def test_what_spins_beyond_an_edge_falls(h):
    """Pens lie across the edge of a table, their middle 1 cm outside, and spin on it."""
    sim = Simulation(model(GEOMS["pen"], h, 0.3, 'type="box" size=".5 5 .5" pos="0 0 -.5"'), 16)
    sim.qpos[:, 0], sim.qpos[:, 2] = 0.51, 0.0041
    sim.qpos[:, 3], sim.qpos[:, 5], sim.qvel[:, 5] = np.sqrt(0.5), np.sqrt(0.5), np.linspace(50, 150, 16)
    sim.step(round(0.5 / h))
    assert (sim.qpos[:, 2] < -0.3).all()


def test_an_ellipsoid_that_rolls_half_a_turn_a_step_is_held_at_its_height():
    """What is deepest now says nothing of what is deepest then: about its short axis it turns by pi a step, leaning."""
    h = 0.01
    sim = Simulation(model(BODIES["egg"][0], h, 0), 8, dtype="float64")
    tilt = np.linspace(0.1, 1.4, 8)  # about y, of which z is the short and x the long axis
    sim.qpos[:, 3], sim.qpos[:, 5] = np.cos(tilt / 2), np.sin(tilt / 2)
    height = np.sqrt((0.05 * np.sin(tilt)) ** 2 + (0.02 * np.cos(tilt)) ** 2)
    sim.qpos[:, 2], sim.qvel[:, 4] = height, np.pi / h
    for _ in range(20):
        sim.step()
    assert np.abs(sim.qpos[:, 2] - height).max() <= 2e-5
    assert np.abs(sim.qvel[:, 4] * h / np.pi - 1).max() <= 1e-3


@pytest.mark.parametrize("kind", ["capsule", "can"])
def test_what_lies_and_spins_does_not_live_on_its_recovery(kind):
    """On both ends, about its axis and the normal: one end goes under by a part of h^2, and was lifted for 4 %."""
    sim = Simulation(model(BODIES[kind][0], 2e-3, 0), 32)
    sim.qpos[:, 2:7] = [0.02, np.sqrt(0.5), np.sqrt(0.5), 0, 0]
    sim.qvel[:, 4], sim.qvel[:, 5] = np.linspace(10, 30, 32), np.linspace(40, 10, 32)
    first = lowest = energy(sim)
    for _ in range(1500):
        sim.step()
        assert (energy(sim) - lowest <= 3e-3 * first).all()
        lowest = np.minimum(lowest, energy(sim))
        assert np.abs(sim.qpos[:, 2] - 0.02).max() <= 2e-5


def test_slow_ones_are_where_they_were():
    """Up to 0.025 rad a step a contact of a fixed point is at it."""
    sim = Simulation(model(BODIES["capsule"][0], 2e-3, 0.5), dtype="float64")
    sim.qpos[0, 2:7] = [0.02, np.sqrt(0.5), np.sqrt(0.5), 0, 0]
    sim.qvel[0, 5], sim.qvel[0, 4] = 3, 4
    sim.forward()
    ends = np.asarray(sim.contact.pos)[0][np.asarray(sim.contact.active)[0]]
    np.testing.assert_allclose(np.sort(ends[:, 1]), [-0.05, 0.05], atol=1e-12)


@STEPS
@ON_FLOORS
def test_what_rocks_on_a_floor_keeps_rocking(h, floor):
    """An egg with a low centre of mass, at 3 rad/s: contacts at the middle of each turn took a third of it in 4 s."""
    inertia = '<inertial pos="0 0 -.02" mass="1" diaginertia=".002 .002 .002"/>'
    sim = Simulation(free(inertia + '<geom type="ellipsoid" size=".05 .05 .07"/>', h, 0.8, floor))
    tilt = 0.6
    sim.qpos[0, 2] = np.hypot(0.07 * np.cos(tilt), 0.05 * np.sin(tilt))
    sim.qpos[0, 3], sim.qpos[0, 5] = np.cos(tilt / 2), np.sin(tilt / 2)
    fastest = []
    for _ in range(4):
        fastest.append(0)
        for _ in range(round(1 / h)):
            sim.step()
            fastest[-1] = max(fastest[-1], abs(sim.qvel[0, 4]))
    np.testing.assert_allclose(fastest, 3.22, rtol=0.01)  # MuJoCo's at steps of 0.1 ms


@pytest.mark.parametrize("h", [1e-3, 2e-3, 5e-3])
@pytest.mark.parametrize("floor", ["plane", "box", "slab"])
def test_a_rattleback_turns_back(h, floor):
    """Its inertia lies askew in it: one way round it starts to rock, stops, and turns the other way."""
    inertia = '<inertial pos="0 0 .006" mass=".3" fullinertia="1e-4 4e-4 4.5e-4 3e-5 0 0"/>'
    sim = Simulation(free(inertia + '<geom type="ellipsoid" size=".1 .03 .02"/>', h, 0.8, floor), 2, dtype="float64")
    sim.qpos[:, 2], sim.qvel[:, 3:] = 0.02, [[0.1, 0.1, 8], [0.1, 0.1, -8]]
    sim.step(round(3 / h))
    assert sim.qvel[0, 5] < -1 and sim.qvel[1, 5] < -7
