"""How much one world holds: many bodies, several robots, bodies of many geoms; and what is said beyond."""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from conftest import is_emulated  # noqa: E402
from model_sources import data_file  # noqa: E402
from stiction import Model, Simulation, Status  # noqa: E402

BOX = '<body pos="{x} {y} {z}"><freejoint/><geom type="box" size=".1 .1 .1" density="300"/></body>'
FLOOR = '<geom type="plane" size="0 0 1"/>'


def boxes(count, levels=2):
    """Stacks of boxes on a floor."""
    stacks = [(0.25 * (i // levels % 4), 0.25 * (i // levels // 4), 0.1 + 0.2 * (i % levels)) for i in range(count)]
    bodies = "".join(BOX.format(x=x, y=y, z=z) for x, y, z in stacks)
    return Model.from_mjcf(f'<mujoco><option timestep="0.004"/><worldbody>{FLOOR}{bodies}</worldbody></mujoco>')


@pytest.mark.parametrize("count", [16, 32, 40])
def test_boxes_in_stacks_rest(count, device):
    """Every one on four contacts, its weight and that of what stands on it below."""
    if device != "cpu":
        count = 16
    model = boxes(count)
    sim = Simulation(model, 3)
    before = sim.qpos.reshape(3, count, 7).copy()
    sim.step(250)
    moved = np.abs(sim.qpos.reshape(3, count, 7)[..., :3] - before[..., :3])
    assert moved.max() <= 2e-5 and not sim.status.any()
    assert (sim.contact.count == 4 * count).all()
    weight = 9.81 * 300 * 0.008 * count
    held = sim.net_contact_force[:, 1:, 2].sum(axis=1)  # what boxes give each other cancels
    assert held == pytest.approx(weight, rel=3e-4)


@pytest.mark.on_cpu
@pytest.mark.parametrize("count", [16, 40])
def test_the_bits_of_stacks_that_shake_do_not_depend_on_the_batch(count):
    """Neither where limbs share a block of columns (40), nor where a neighbour's hits have contacts searched again."""
    model = boxes(count, levels=4)
    speeds = 0.3 * np.random.default_rng(0).standard_normal((7, model.nv))
    together, alone = Simulation(model, 7), Simulation(model, 1)
    together.qvel[:], alone.qvel[:] = speeds, speeds[5]
    for _ in range(18):
        together.step(), alone.step()
        np.testing.assert_array_equal(together.contact.count[5], alone.contact.count[0])
        np.testing.assert_array_equal(together.qpos[5], alone.qpos[0])


@pytest.mark.on_cpu
def test_a_heap_of_many_bodies_is_solved():
    """Dropped at random: nothing is lost, nothing overlaps by more than a blow closes in a step."""
    model = boxes(32)
    sim = Simulation(model, 2)
    rng = np.random.default_rng(0)
    qpos = sim.qpos.reshape(2, 32, 7)
    qpos[..., :2] = rng.uniform(-0.3, 0.3, (2, 32, 2))
    qpos[..., 2] = 0.2 + 0.36 * np.arange(32)
    quat = rng.standard_normal((2, 32, 4))
    qpos[..., 3:] = quat / np.linalg.norm(quat, axis=-1, keepdims=True)
    worst = 0
    for _ in range(20):
        sim.step(12)
        worst = max(worst, sim.certificate.penetration.max())
    assert worst <= 5e-3
    assert not (sim.status & (Status.NON_FINITE | Status.CONTACT_OVERFLOW)).any()
    assert sim.qpos.reshape(2, 32, 7)[..., 2].min() >= 0.09


@pytest.mark.on_cpu
def test_four_humanoids_stand_in_a_world():
    """Robots of 27 dofs beside each other move as each alone."""
    path = data_file("gymnasium/assets/humanoid.xml")
    world = mujoco.MjSpec.from_string(f'<mujoco><option timestep="0.003"/><worldbody>{FLOOR}</worldbody></mujoco>')
    for i in range(4):
        robot = mujoco.MjSpec.from_file(str(path))
        for geom in list(robot.worldbody.geoms):
            robot.delete(geom)
        world.attach(robot, prefix=f"r{i}_", frame=world.worldbody.add_frame(pos=[3 * i, 0, 0]))
    sim = Simulation(Model.from_mjmodel(world.compile()), 2)
    sim.step(200)
    assert not (sim.status & (Status.NON_FINITE | Status.CONTACT_OVERFLOW | Status.NOT_CONVERGED)).any()
    heights = sim.qpos.reshape(2, 4, -1)[..., 2]
    assert np.ptp(heights) <= 1e-3


def padded_grip():
    """A cube of 100 g between two fingers, each of five pads, as hands' fingertips are modelled."""
    places = [(0, 0), (-0.008, 0), (0.008, 0), (0, -0.008), (0, 0.008)]
    pads = "".join(f'<geom type="box" size=".002 .003 .003" pos="0 {y} {z}" mass=".01"/>' for y, z in places)
    fingers = "".join(
        f'<body pos="{0.0221 * side} 0 .5"><joint name="{name}" type="slide" axis="{-side} 0 0"/>{pads}</body>'
        for name, side in (("a", -1), ("b", 1))
    )
    cube = '<body pos="0 0 .5"><freejoint/><geom type="box" size=".02 .02 .02" mass=".1"/></body>'
    motors = '<motor joint="a"/><motor joint="b"/>'
    text = f"<mujoco><worldbody>{fingers}{cube}</worldbody><actuator>{motors}</actuator></mujoco>"
    return Model.from_mjcf(text)


def test_a_grip_of_many_pads_has_room_for_its_contacts(device):
    sim = Simulation(padded_grip(), 3)
    sim.ctrl[:] = 5
    sim.step(100)
    held = np.array(sim.qpos)
    sim.step(100 if is_emulated() else 400)
    assert not (sim.status & int(Status.CONTACT_OVERFLOW)).any()
    assert (sim.contact.count == 40).all()
    np.testing.assert_allclose(sim.qpos, held, atol=2e-6)


def brush(rows):
    """A square of so many by so many bristles on a plate on the floor."""
    at = [(0.03 * i, 0.03 * j) for i in range(rows) for j in range(rows)]
    bristles = "".join(f'<geom type="sphere" size=".01" pos="{x} {y} 0" mass=".01"/>' for x, y in at)
    plate = '<body pos="0 0 .05"><freejoint/><geom type="box" size=".3 .3 .05"/></body>'
    return Model.from_mjcf(
        f'<mujoco><worldbody>{FLOOR}{plate}<body pos="-.1 -.1 .11"><freejoint/>{bristles}</body></worldbody></mujoco>'
    )


@pytest.mark.on_cpu
@pytest.mark.parametrize("rows", [(5, 4, 3, 2, 1), (3, 3, 3, 3, 3), (2,) * 7], ids=["pyramid", "wall", "column"])
def test_bricks_side_by_side_have_room(rows):
    """They touch their neighbours, too."""
    brick = '<body pos="{} 0 {}"><freejoint/><geom type="box" size=".1 .05 .04" mass="1"/></body>'
    bodies = "".join(
        brick.format(0.2 * (i - 0.5 * (count - 1)), 0.04 + 0.08 * level)
        for level, count in enumerate(rows)
        for i in range(count)
    )
    sim = Simulation(Model.from_mjcf(f"<mujoco><worldbody>{FLOOR}{bodies}</worldbody></mujoco>"))
    before = sim.qpos.copy()
    sim.step(300)
    assert not sim.status[0] & int(Status.CONTACT_OVERFLOW)
    assert np.abs(sim.qpos - before).max() <= 1e-4


@pytest.mark.on_cpu
def test_max_contacts_is_room_for_as_many():
    """By default what seems enough, and a status bit where it is not."""
    model = brush(11)
    usual, large = Simulation(model), Simulation(model, max_contacts=125)
    usual.step(5), large.step(5)
    assert usual.status[0] & int(Status.CONTACT_OVERFLOW) and usual.contact.count[0] < 125
    assert large.status[0] == 0 and large.contact.count[0] == 125 == large.max_contacts


def test_a_body_of_many_geoms_rests_on_its_static_contacts():
    """40 boxes in a ring: 320 candidates against a floor, of which few are near at a time."""
    angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    geoms = "".join(
        f'<geom type="box" size=".02 .05 .05" pos="{0.5 * np.cos(a):.6f} {0.5 * np.sin(a):.6f} 0" mass=".05"'
        f' euler="0 0 {np.degrees(a):.6f}"/>'
        for a in angles
    )
    model = Model.from_mjcf(
        f'<mujoco><option timestep="0.004"/><worldbody><geom type="box" size="2 2 .1" pos="0 0 -.1"/>'
        f'<body pos="0 0 .06"><freejoint/>{geoms}</body></worldbody></mujoco>'
    )
    sim = Simulation(model, 2)
    sim.step(200)
    assert not sim.status.any()
    assert np.abs(sim.qvel).max() <= 1e-5 and sim.qpos[:, 2] == pytest.approx(0.05, abs=1e-5)
    before = sim.qpos.copy()
    sim.step(200)
    assert np.abs(sim.qpos - before).max() <= 1e-6


def test_what_is_beyond_is_refused_by_name(device):
    count, hint = (41, "list worlds") if device == "cpu" else (17, "device='cpu' holds more")
    with pytest.raises(ValueError, match="at most") as refused:
        Simulation(boxes(count), 1)
    assert hint in str(refused.value)


def chain(joints):
    """Hinges that hang one from another, of 20 g links with damping."""
    inside = ""
    for i in reversed(range(joints)):
        inside = (
            f'<body pos="0 0 -.03"><joint name="hinge{i}" axis="{i % 2} {(i + 1) % 2} 0" damping="1e-4"/>'
            f'<geom type="capsule" size=".005" fromto="0 0 0 0 0 -.03" mass=".02" contype="0" conaffinity="0"/>'
            f"{inside}</body>"
        )
    return f'<mujoco><option timestep="0.001"/><worldbody>{inside}</worldbody></mujoco>'


@pytest.mark.on_cpu
def test_a_chain_of_forty_hinges_swings_as_in_mujoco():
    sim = Simulation(Model.from_mjcf(chain(40)), 2, dtype="float64", integrator="euler")
    m = mujoco.MjModel.from_xml_string(chain(40))
    d = mujoco.MjData(m)
    bent = 0.3 * np.sin(np.arange(40))
    sim.qpos[:], d.qpos[:] = bent, bent
    sim.step()
    mujoco.mj_step(m, d)
    np.testing.assert_allclose(sim.qvel, np.tile(d.qvel, (2, 1)), rtol=1e-8, atol=1e-10)
    sim.step(400)
    assert not sim.status.any() and np.abs(sim.qpos).max() < 3


def test_a_limb_beyond_is_refused_by_its_first_joint(device):
    with pytest.raises(ValueError, match=r"has 41 degrees of freedom in the limb from joint hinge0 on.*at most"):
        Simulation(Model.from_mjcf(chain(41)), device=device)


def peg_in_hole(sides: int, play: float) -> Model:
    """A prism of 20 mm inner radius among as many walls, all static, `play` wider."""
    outer, inner = 0.02 / np.cos(np.pi / sides), 0.02 + play / 2
    turns = 2 * np.pi * np.arange(sides) / sides
    edges = [
        f"{outer * np.cos(a):.6f} {outer * np.sin(a):.6f} {z}" for a in turns + np.pi / sides for z in (-0.08, 0.08)
    ]
    walls = "".join(
        f'<geom type="box" size=".02 {inner * np.tan(np.pi / sides)} .05" euler="0 0 {np.degrees(a)}"'
        f' pos="{(inner + 0.02) * np.cos(a)} {(inner + 0.02) * np.sin(a)} 0" friction=".8"/>'
        for a in turns
    )
    return Model.from_mjcf(f"""<mujoco><option timestep=".002" gravity="0 0 0"/>
      <asset><mesh name="peg" vertex="{" ".join(edges)}"/></asset><worldbody>{walls}
      <body><freejoint/><geom type="mesh" mesh="peg" mass=".5" friction=".8"/></body></worldbody></mujoco>""")


@pytest.mark.on_cpu
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sides", [5, 6, 8])
def test_a_peg_that_is_turned_in_a_hole_of_many_walls_stands(sides, dtype):
    """Its edges bear on as many walls above and below: more contacts than a body has with one static geom."""
    sim = Simulation(peg_in_hole(sides, 2e-4), 2, dtype=dtype)
    sim.xfrc_applied[:, 1, 5] = 1, 3  # N m
    sim.step(500)
    sim.clear_status()
    sim.step(100)
    assert (sim.contact.count > 8).all() and not (sim.status & ~int(Status.FALLBACK)).any()
    assert np.abs(sim.qvel).max() < 1e-3 and sim.certificate.penetration.max() < 2e-5


@pytest.mark.on_cpu
@pytest.mark.parametrize("force", [50, 200])
@pytest.mark.parametrize("timestep", [5e-3, 1e-2])
@pytest.mark.parametrize("last", [True, False])
def test_a_peg_that_is_pushed_into_its_hole_stands_on_the_floor(last, timestep, force):
    """From rest, by 125 and 500 m/s^2: four contacts with each wall left no room for the floor, 2 to 41 mm went in."""
    walls = "".join(
        f'<geom type="box" size="{size} .04" pos="{x} {y} .04"/>'
        for x, y, size in [(0.051, 0, ".03 .1"), (-0.051, 0, ".03 .1"), (0, 0.051, ".021 .03"), (0, -0.051, ".021 .03")]
    )
    floor = '<geom type="box" size=".2 .2 .005" pos="0 0 -.005"/>'
    xml = f"""<mujoco><option timestep="{timestep}"/><default><geom friction=".5"/></default><worldbody>
      {walls + floor if last else floor + walls}
      <body><freejoint/><geom type="box" size=".02 .02 .06" mass=".4"/></body></worldbody></mujoco>"""
    sim, rng = Simulation(Model.from_mjcf(xml), 40), np.random.default_rng(0)
    sim.qpos[:, 2], sim.qpos[:, :2] = 0.06 + rng.uniform(0.01, 0.05, 40), rng.uniform(-5e-4, 5e-4, (40, 2))
    sim.xfrc_applied[:, 1, 2] = -force
    lowest = 1.0
    for _ in range(40):
        sim.step()
        lowest = min(lowest, sim.qpos[:, 2].min())
    assert lowest > 0.06 - 1e-4 and not (sim.status & Status.CONTACT_OVERFLOW).any()


@pytest.mark.on_cpu
def test_max_contacts_makes_room_with_the_static_world():
    """Twelve walls: one contact each does not hold what is turned about an axis across."""
    model = peg_in_hole(12, 2e-4)
    counts = []
    for room in (None, 64):
        sim = Simulation(model, 1, max_contacts=room)
        sim.xfrc_applied[0, 1, 3:] = 1, 0.5, 0
        sim.step(200)
        counts.append(sim.contact.count[0])
    assert counts[0] <= 16 < counts[1] <= 32
