"""Bodies that rest against each other in rows, arches and piles: what they press by stays, and so do they."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scenes import GRAVITY, numbers  # noqa: E402
from stiction import Model, Simulation  # noqa: E402
from stiction.status import Status  # noqa: E402

DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])
SCENE = """<mujoco><default><geom friction="{mu} 0 0" condim="3"/></default>{asset}<worldbody>{bodies}</worldbody>
<actuator>{motors}</actuator></mujoco>"""
BOOK, MU, HALF = 0.5, 0.6, (0.02, 0.1, 0.15)  # kg; m


def books(count: int) -> Model:
    """In the air between a wall and what a motor presses on them."""
    bodies = '<geom type="box" size=".1 .3 .3" pos="-.1 0 1"/>'
    bodies += f'<body name="pusher" pos="{2 * HALF[0] * count + 0.05} 0 1"><joint name="p" type="slide" axis="-1 0 0"/>'
    bodies += f'<geom type="box" size=".05 {HALF[1]} {HALF[2]}" mass="1"/></body>'
    for i in range(count):
        bodies += f'<body pos="{(2 * i + 1) * HALF[0]} 0 1"><freejoint/>'
        bodies += f'<geom type="box" size="{numbers(HALF)}" mass="{BOOK}"/></body>'
    return Model.from_mjcf(SCENE.format(mu=MU, asset="", bodies=bodies, motors='<motor joint="p"/>'))


def arch(stones: int, radius: float, thickness: float, width: float) -> Model:
    """A half circle of hulls that fit each other, on the floor."""
    meshes, bodies = "", '<geom type="plane" size="5 5 1"/>'
    for i in range(stones):
        ends = np.pi / stones * np.array([i, i + 1])
        radii = radius + thickness / 2 * np.array([-1, 1])
        corners = [(r * np.cos(a), y, r * np.sin(a)) for y in (-width / 2, width / 2) for r in radii for a in ends]
        meshes += f'<mesh name="stone{i}" vertex="{numbers(corners)}"/>'
        bodies += f'<body><freejoint/><geom type="mesh" mesh="stone{i}" density="2000"/></body>'
    return Model.from_mjcf(SCENE.format(mu=1, asset=f"<asset>{meshes}</asset>", bodies=bodies, motors=""))


def pile_of_logs(mu: float, radius: float = 0.05) -> Model:
    bodies = '<geom type="plane" size="5 5 1"/>'
    for x, z in (-radius, radius), (radius, radius), (0, (1 + np.sqrt(3)) * radius):
        bodies += f'<body pos="{x} 0 {z}" euler="90 0 0"><freejoint/>'
        bodies += f'<geom type="cylinder" size="{radius} .15" mass=".5"/></body>'
    return Model.from_mjcf(SCENE.format(mu=mu, asset="", bodies=bodies, motors=""))


@DTYPES
@pytest.mark.parametrize("timestep", [0.002, 0.005, 0.01])
@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_what_holds_a_row_of_books_stays(count, timestep, dtype):
    """The free motion of an inner book neither closes nor opens its contacts: R that asked which followed rounding."""
    weight = count * BOOK * GRAVITY
    sim = Simulation(books(count), timestep=timestep, dtype=dtype, num_threads=1)
    sim.ctrl[0] = 1.5 * weight / 2 / MU
    sim.step(round(2 / timestep))
    sim.clear_status()
    forces, speed, counts = [], 0.0, set()
    for _ in range(300):
        sim.step()
        forces.append(sim.net_contact_force[0, sim.model.body_id("pusher")].astype(float))
        speed = max(speed, np.abs(sim.qvel).max())
        counts.add(int(sim.contact.count[0]))
    change = np.abs(np.diff(forces, axis=0)).max()
    print(f"{count} books, {dtype}, {timestep} s: {1e3 * change:.3g} mN a step, at most {1e6 * speed:.3g} um/s")
    assert change <= 2e-3 * weight and speed <= 5e-5
    assert counts == {4 * (count + 1)}
    assert not sim.status[0] & int(Status.FALLBACK)


@DTYPES
@pytest.mark.parametrize("timestep", [0.002, 0.01])
@pytest.mark.parametrize("radius", [0.1, 1.0])
def test_an_arch_stands_still(radius, timestep, dtype):
    sim = Simulation(arch(15, radius, 0.2 * radius, 0.3 * radius), timestep=timestep, dtype=dtype, num_threads=1)
    sim.step(round(1 / timestep))
    sim.clear_status()
    speeds = []
    for _ in range(200):
        sim.step()
        speeds.append(np.abs(sim.qvel[0].reshape(-1, 6)[:, :3]).max())
    print(f"{radius} m, {dtype}, {timestep} s: {1e6 * np.median(speeds):.3g} um/s, at most {1e6 * max(speeds):.3g}")
    assert np.median(speeds) <= 1e-4 and max(speeds) <= 1e-3
    assert not sim.status[0] & int(Status.FALLBACK)


@DTYPES
@pytest.mark.parametrize("timestep", [0.002, 0.01])
def test_a_pile_of_logs_does_not_roll_apart(timestep, dtype):
    """Friction is a tenth more than what holds them."""
    sim = Simulation(pile_of_logs(1.1 * np.tan(np.radians(15))), timestep=timestep, dtype=dtype, num_threads=1)
    sim.step(round(1 / timestep))
    start = sim.qpos.copy()
    sim.step(round(4 / timestep))
    moved = np.abs(sim.qpos - start).max()
    print(f"{dtype}, {timestep} s: {1e6 * moved:.3g} um in 4 s")
    assert moved <= 2e-5
