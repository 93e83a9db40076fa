"""Prisms that stand keep their contacts: where not all corners are kept, the same from step to step, so forces stay.

Contacts give way by what they carry, unevenly where four of five corners bear the weight: which four must not follow.
STICTION_FULL_TESTS=1: prisms of up to 17 corners, and every stack.
"""

import os

import numpy as np
import pytest

pytest.importorskip("mujoco")

from stiction import Model, Simulation  # noqa: E402
from stiction.status import Status  # noqa: E402

FULL = os.environ.get("STICTION_FULL_TESTS") == "1"
GRAVITY = 9.81
FLOORS = {
    "plane": '<geom type="plane" size="0 0 1"/>',
    "box": '<geom type="box" size=".5 .5 .1" pos="0 0 -.1"/>',
    "free box": '<geom type="plane" size="0 0 1" pos="0 0 -.2"/><body pos="0 0 -.1"><freejoint/>'
    '<geom type="box" size=".5 .5 .1" density="1000"/></body>',
    "mesh": '<geom type="mesh" mesh="prism" pos="0 0 {down}"/>',
}
#: Where the floor's normal points, as Euler angles: up, and level, where the sign of its z is rounding.
WAYS = {"up": (0, 0, 0), "level": (0, 90, 0)}
STEPS = pytest.mark.parametrize("h", [0.001, 0.002, 0.01])
PRECISIONS = pytest.mark.parametrize("dtype", ["float32", "float64"])


def prisms(corners, floor, radius=0.05, half=0.02, number=1, way="up", lump=""):
    """So many, one on another, of one density, with a lump in them; gravity points into the floor."""
    turn = 2 * np.pi * np.arange(corners) / corners
    ends = [np.stack([radius * np.cos(turn), radius * np.sin(turn), 0 * turn + z], axis=1) for z in (-half, half)]
    vertices = " ".join(f"{x:.9f}" for x in np.concatenate(ends).ravel())
    angle = np.radians(WAYS[way][1])
    down = -GRAVITY * np.array([np.sin(angle), 0, np.cos(angle)])
    prism = '<geom type="mesh" mesh="prism" density="1000"/>'
    places = [half * (2 * k + 1) * -down / GRAVITY for k in range(number)]
    euler = " ".join(map(str, WAYS[way]))
    bodies = "".join(
        f'<body pos="{p[0]} {p[1]} {p[2]}" euler="{euler}"><freejoint/>{lump}{prism}</body>' for p in places
    )
    return Model.from_mjcf(
        f"""<mujoco><option gravity="{down[0]} {down[1]} {down[2]}"/><default><geom friction=".6"/></default>
        <asset><mesh name="prism" vertex="{vertices}"/></asset>
        <worldbody><frame euler="{euler}">{FLOORS[floor].format(down=-half)}</frame>{bodies}</worldbody></mujoco>"""
    )


def watched(model, number=1, radius=0.05, seconds=1.0, steps=50, **simulation):
    """Once prisms stand: by how much the force at a place changes in a step, as a part of their weight; passes."""
    sim = Simulation(model, 1, num_threads=1, **simulation)
    sim.step(round(seconds / sim.timestep))
    start, weight = sim.qpos.copy(), GRAVITY * np.asarray(model.body_mass).ravel()[-number:].sum()
    change, passes, status, before = 0.0, [], 0, None
    for _ in range(steps):
        sim.clear_status()
        sim.step()
        own = np.flatnonzero(sim.contact.geom[0, : sim.contact.count[0]].max(1) > sim.model.ngeom - 1 - number)
        place, force = sim.contact.pos[0, own].copy(), sim.contact.impulse[0, own, 2] / sim.timestep
        if before is not None:
            same = np.linalg.norm(place[:, None] - before[0], axis=2) < 0.05 * radius
            gone, come = before[1] - same.T @ force, force - same @ before[1]
            change = max(change, np.abs(gone).max() / weight, np.abs(come).max() / weight)
        before = place, force
        passes.append(int(sim.certificate.iterations[0]))
        status |= int(sim.status[0])
    moved = np.abs(sim.qpos - start)[0].reshape(-1, 7)[:, :3].max()
    print(f"{100 * change:.3f} % of the weight, {np.mean(passes):.0f} passes, {len(own)} contacts, {moved:.0e} m")
    return {"change": change, "passes": np.mean(passes), "status": status, "moved": moved}


@PRECISIONS
@STEPS
@pytest.mark.parametrize("radius", [0.005, 0.05])
@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("corners", range(3, 18) if FULL else [5, 6, 7, 9, 10])
def test_forces_under_a_prism_stay(corners, floor, radius, h, dtype):
    found = watched(prisms(corners, floor, radius, 0.4 * radius), radius=radius, timestep=h, dtype=dtype)
    assert found["change"] < 0.01 and found["passes"] <= 20 and found["moved"] < 1e-7
    assert not found["status"]


@PRECISIONS
@STEPS
@pytest.mark.parametrize("corners", [9, 13, 17])
def test_forces_under_a_prism_of_a_millimetre_stay(corners, h, dtype):
    """Its corners sink by more than a part of it that would count as nothing."""
    found = watched(prisms(corners, "plane", 0.0005, 0.0002), radius=0.0005, timestep=h, dtype=dtype)
    assert found["change"] < 0.01 and found["passes"] <= 20 and found["moved"] < 1e-7
    assert not found["status"]


@PRECISIONS
@pytest.mark.parametrize("off", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("floor", ["plane", "box"])
@pytest.mark.parametrize("corners", range(4, 9) if FULL else [5, 6, 7])
def test_forces_under_a_prism_loaded_off_its_middle_stay(corners, floor, off, dtype):
    """Ten times as heavy as itself, at a part of its radius in 12 directions."""
    changes = []
    for angle in np.linspace(0, 2 * np.pi, 12, endpoint=False) + 0.02:
        pos = f"{0.05 * off * np.cos(angle)} {0.05 * off * np.sin(angle)} 0"
        lump = f'<geom size=".001" mass="2.5" contype="0" conaffinity="0" pos="{pos}"/>'
        if off < np.cos(np.pi / corners):
            model = prisms(corners, floor, lump=lump)
            changes.append(watched(model, seconds=0.5, steps=20, timestep=0.002, dtype=dtype)["change"])
    assert max(changes) < 0.01


def test_forces_under_a_prism_over_the_rim_of_a_pedestal_stay():
    """A cap is known by eight points of its rim, which turn with a tilt that is rounding: not by all that may touch."""
    R, half, radius = 0.020885867, 0.020445416, 0.020060116801613428
    ends = [(R * x, R * y, z) for z in (-half, half) for x, y in ((1, 0), (0, 1), (-1, 0), (0, -1))]
    vertices = " ".join(f"{x:.9f}" for x in np.ravel(ends))
    xml = f"""<mujoco><default><geom friction=".95" density="1000"/></default>
      <asset><mesh name="prism" vertex="{vertices}"/></asset><worldbody>
      <frame euler="3.2896334944638412 0.9868900483391523 11">
        <geom type="cylinder" size="{radius} {radius / 2}" pos="0 0 {-radius / 2}"/>
        <body pos="0.010278003079528645 0.0030834009238585934 0.02044541612304016"><freejoint/>
          <geom size=".001" mass="0.018221642166579573" contype="0" conaffinity="0"
                pos="-0.0018040232874158852 0.004323052698360547 0"/>
          <geom type="mesh" mesh="prism"/></body></frame></worldbody></mujoco>"""
    found = watched(Model.from_mjcf(xml), radius=R, seconds=0.8, steps=100, timestep=0.002, dtype="float64")
    assert found["change"] < 0.01 and found["passes"] <= 5 and not found["status"]


@PRECISIONS
@pytest.mark.parametrize("floor", ["plane", "box"])
@pytest.mark.parametrize("corners", [5, 6, 7, 10])
def test_forces_of_a_prism_on_a_wall_stay(corners, floor, dtype):
    """Gravity is level, and so is the normal."""
    found = watched(prisms(corners, floor, way="level"), timestep=0.002, dtype=dtype)
    assert found["change"] < 0.01 and found["passes"] <= 20 and not found["status"]


@PRECISIONS
@STEPS
@pytest.mark.parametrize("number", [2, 4, 8] if FULL else [2, 8])
@pytest.mark.parametrize("floor", FLOORS if FULL else ["plane", "box"])
@pytest.mark.parametrize("corners", [5, 6, 7, 9, 10] if FULL else [5, 6, 7])
def test_forces_in_a_stack_of_prisms_stay(corners, floor, number, h, dtype):
    found = watched(prisms(corners, floor, number=number), number, timestep=h, dtype=dtype)
    assert found["change"] < 0.01 and found["passes"] <= 50
    assert not found["status"] & int(Status.FALLBACK | Status.NOT_CONVERGED)
