"""Undamped trees of several joints that tumble and whip: energy stays in bounds, centres of mass go straight."""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from stiction import Model, Simulation, SolverOptions, Status  # noqa: E402
from test_against_mujoco import steps_of_the_oracle  # noqa: E402

FREE = "<freejoint/>"


def energy(m, qpos, qvel):
    """Potential and kinetic."""
    m.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = qpos, qvel
    mujoco.mj_forward(m, d)
    return d.energy.copy()


def chain(joints, h, gravity):
    """Boxes of 0.3 m on ball joints, the first on the world."""
    link = '<geom type="box" size=".15 .03 .05" pos=".15 0 0"/>'
    bodies = "".join(f'<body pos="{0.3 * (i > 0)} 0 0"><joint type="ball"/>{link}' for i in range(joints))
    return f"""<mujoco><option timestep="{h}" gravity="0 0 -{gravity}"><flag contact="disable"/></option>
      <worldbody>{bodies}{"</body>" * joints}</worldbody></mujoco>"""


@pytest.mark.parametrize("h, dtype", [(0.002, "float32"), (0.005, "float64")])
@pytest.mark.parametrize("joints", [2, 3, 5])
def test_a_chain_of_ball_joints_keeps_its_energy(joints, h, dtype):
    """Thrown: explicit Coriolis forces double its energy or throw it at 1e8 J."""
    sim = Simulation(Model.from_mjcf(chain(joints, h, 0)), 1, dtype=dtype, num_threads=1)
    sim.qvel[:] = 5 * np.random.default_rng(1).standard_normal(3 * joints)
    found = []
    for _ in range(1000):
        found.append(energy(sim.model.mjmodel, sim.qpos[0], sim.qvel[0])[1])
        sim.step(round(0.01 / h))
    assert not sim.status.any()
    found = np.array(found) / found[0]
    assert np.abs(found - 1).max() <= 0.25
    assert abs(found[-100:].mean() - 1) <= 0.1


@pytest.mark.parametrize("h, dtype", [(0.002, "float64"), (0.005, "float32")])
def test_chains_that_fall_and_whip_stay_where_their_height_lets_them(h, dtype):
    """From the horizontal, a little apart, for 10 s."""
    xml = chain(5, h, 9.81)
    m = mujoco.MjModel.from_xml_string(xml.replace("<option", '<option integrator="implicit"'))
    sim = Simulation(Model.from_mjcf(xml), 24, dtype=dtype, num_threads=1)
    sim.qvel[:] = start = 0.3 * np.random.default_rng(3).standard_normal(sim.qvel.shape)
    data = [mujoco.MjData(m) for _ in range(4)]
    for d, v in zip(data, start, strict=False):
        d.qvel[:] = v
    ours, theirs = [], []
    for _ in range(200):
        ours.append([energy(m, q, v).sum() for q, v in zip(sim.qpos, sim.qvel, strict=True)])
        theirs.append([energy(m, d.qpos, d.qvel).sum() for d in data])
        sim.step(round(0.05 / h))
        for d in data:
            mujoco.mj_step(m, d, round(0.05 / h))
    off, apart = np.abs(np.array(ours) - ours[0]).max(0), np.abs(np.array(theirs) - theirs[0]).max(0)
    depth = 5 * 0.3 * 5 * 1.8 * 9.81  # all of it as far down as the joints let it
    print(
        f"{dtype}, {h} s: of {depth:.0f} J {np.median(off):.0f} off in the median and {off.max():.0f} at most;", end=" "
    )
    print(f"MuJoCo's {np.median(apart):.0f} and {apart.max():.0f}")
    assert not sim.status.any()
    assert np.median(off) <= 0.25 * depth and np.quantile(off, 0.9) <= 0.6 * depth


def rods(joints, joint, h):
    """A floating chain of capsules of 0.1 m and 12 mm."""
    links = ""
    for i in range(joints):
        axis = "0 1 0" if i % 2 else "1 0 0"
        hung = f'<joint type="{joint}" axis="{axis}"/>' if i else FREE
        links += f"""<body pos="0 0 {-0.1 * (i > 0)}">{hung}
          <geom type="capsule" size=".012" fromto="0 0 0 0 .02 -.1" mass=".3" contype="0" conaffinity="0"/>"""
    return f"""<mujoco><option timestep="{h}" gravity="0 0 0"/>
      <worldbody>{links}{"</body>" * joints}</worldbody></mujoco>"""


@pytest.mark.parametrize(
    "h, speed, dtype", [(0.002, 20, "float32"), (0.005, 10, "float32"), (0.005, 20, "float64"), (0.01, 10, "float64")]
)
@pytest.mark.parametrize("joints, joint", [(3, "ball"), (4, "ball"), (5, "hinge")])
def test_a_floating_chain_that_tumbles_neither_runs_away_nor_stops(joints, joint, h, speed, dtype):
    """Undamped, up to ``speed`` rad/s about each axis; with u = (v- + v*) / 2 in all steps some run away.
    All stay where their momentum takes them."""
    xml = rods(joints, joint, h)
    sim = Simulation(Model.from_mjcf(xml), 16, dtype=dtype, num_threads=1)
    m = mujoco.MjModel.from_xml_string(xml.replace("<option", '<option integrator="implicit"'))
    data = [mujoco.MjData(m) for _ in range(4)]
    speeds = np.random.default_rng(2).uniform(-speed, speed, sim.qvel.shape)
    speeds[:, :3] = 0
    sim.qvel[:] = speeds

    start = np.array([energy(m, *state)[1] for state in zip(sim.qpos, sim.qvel, strict=True)])
    for d, v in zip(data, speeds, strict=False):
        d.qvel[:] = v
    highest, theirs = 1.0, 1.0
    for _ in range(25):
        sim.step(round(0.2 / h))
        now = np.array([energy(m, *state)[1] for state in zip(sim.qpos, sim.qvel, strict=True)]) / start
        for d in data:
            mujoco.mj_step(m, d, round(0.2 / h))
        also = np.array([energy(m, d.qpos, d.qvel)[1] for d in data]) / start[:4]
        highest, theirs = max(highest, now.max()), max(theirs, also.max())
    print(
        f"{joints} rods on {joint}s, {speed} rad/s, {h} s, {dtype}: at most {highest:.2f} of the energy, "
        f"{np.median(now):.2f} at the end; MuJoCo {theirs:.2f} and {np.median(also):.2f}"
    )
    assert not sim.status.any()
    assert highest <= 2.5 and np.median(now) >= 0.6
    d = mujoco.MjData(m)
    for q, v, first in zip(sim.qpos, sim.qvel, speeds, strict=True):
        places = []
        for state in ((m.qpos0, first), (q, v)):
            d.qpos[:], d.qvel[:] = state
            mujoco.mj_forward(m, d)
            mujoco.mj_subtreeVel(m, d)
            places.append((d.subtree_com[0].copy(), d.subtree_linvel[0].copy()))
        (x0, v0), (x, v) = places
        close = 1e-9 if dtype == "float64" else 2e-3
        assert np.abs(x - x0 - 5 * v0).max() <= 5 * close and np.abs(v - v0).max() <= close


def capsules(joints, joint, root, h, seed):
    """A chain of capsules of other weights and directions, on joints with limits; they pass through each other."""
    rng = np.random.default_rng(seed)

    def numbers(values):
        return " ".join(f"{x:.6g}" for x in values)

    reach = {"ball": "0 50", "hinge": "-50 50"}[joint]
    links = ""
    for i in range(joints + 1):
        axis, turn, density = numbers(rng.normal(size=3)), numbers(rng.normal(size=4)), rng.uniform(300, 3000)
        hung = f'<joint type="{joint}" axis="{axis}" limited="true" range="{reach}"/>' if i else root
        links += f"""<body pos="{0.25 * (i > 0)} 0 0" quat="{turn}">{hung}
          <geom type="capsule" fromto="0 0 0 .25 0 0" size=".04" density="{density:.6g}"/>"""
    return f"""<mujoco><option timestep="{h}" gravity="0 0 0" integrator="implicit"/>
      <default><geom contype="0" conaffinity="0"/></default>
      <worldbody>{links}{"</body>" * (joints + 1)}</worldbody></mujoco>"""


@pytest.mark.parametrize("h, dtype", [(0.002, "float32"), (0.005, "float64")])
@pytest.mark.parametrize("joints, joint", [(3, "ball"), (5, "hinge")])
@pytest.mark.parametrize(
    "root, most", [(FREE, 1.5), ('<joint type="ball"/>', 40)], ids=["floating", "on a ball joint in the world"]
)
def test_a_chain_that_runs_into_its_limits_does_not_run_away(joints, joint, root, most, h, dtype):
    """Undamped, up to 10 rad/s about each axis. With all debts of (2.3d) paid some had 10^3 to 10^6 times their energy;
    what a chain on the world has too much for a moment it does not keep."""
    highest, end, theirs, last = 1.0, [], 1.0, []
    for seed in (0, 2, 4):
        m = mujoco.MjModel.from_xml_string(capsules(joints, joint, root, h, seed))
        sim = Simulation(Model.from_mjmodel(m), 4, timestep=h, dtype=dtype, num_threads=1)
        sim.qvel[:] = speeds = np.random.default_rng(seed).uniform(-10, 10, sim.qvel.shape)
        data = [mujoco.MjData(m) for _ in speeds]
        for d, v in zip(data, speeds, strict=True):
            d.qvel[:] = v
        start = np.array([energy(m, d.qpos, d.qvel)[1] for d in data])
        for _ in range(round(2 / h) // 16):
            sim.step(16)
            now = np.array([energy(m, *state)[1] for state in zip(sim.qpos, sim.qvel, strict=True)]) / start
            highest = max(highest, now.max())
            for d in data:
                mujoco.mj_step(m, d, 16)
            also = np.array([energy(m, d.qpos, d.qvel)[1] for d in data]) / start
            theirs = max(theirs, also.max())
        assert not (sim.status & Status.NON_FINITE).any()
        end += list(now)
        last += list(also)
    print(
        f"{joints} {joint}s, {h} s, {dtype}: at most {highest:.2f} of the energy, at the end {np.median(end):.2f} and "
        f"at most {max(end):.2f}; MuJoCo {theirs:.2f}, {np.median(last):.2f} and {max(last):.2f}"
    )
    assert highest <= most and max(end) <= 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("joints, h", [(5, 0.002), (3, 0.005)])
def test_a_chain_that_falls_on_a_floor_does_not_run_away(joints, h, dtype):
    """Rods that hit each other, too, thrown at up to 10 rad/s. With all debts of (2.3d) paid many did."""
    xml = rods(joints, "ball", h).replace(' contype="0" conaffinity="0"', "").replace(' gravity="0 0 0"', "")
    xml = xml.replace("<worldbody>", '<worldbody><geom type="plane" size="5 5 1" pos="0 0 -.8"/>')
    sim = Simulation(Model.from_mjcf(xml), 32, dtype=dtype, num_threads=1)
    sim.qvel[:] = np.random.default_rng(2).uniform(-10, 10, sim.qvel.shape)
    sim.qvel[:, :3] = 0
    m, found = sim.model.mjmodel, []
    for _ in range(round(2 / h) // 8):
        found.append([energy(m, q, v) for q, v in zip(sim.qpos, sim.qvel, strict=True)])
        sim.step(8)
    found = np.array(found)
    whole = found[0, :, 1] + 0.8 * 9.81 * m.body_mass.sum()  # about what it has above the floor
    more = (found.sum(2) - found[0].sum(1)) / whole
    print(
        f"{joints} rods, {h} s, {dtype}: at most {more.max():.3f} of the energy more, {more[-1].max():.2f} at the end"
    )
    assert more.max() <= 2 and more[-1].max() <= -0.3


@pytest.mark.parametrize("tilt", [45, 88])
@pytest.mark.parametrize("h, dtype", [(0.001, "float64"), (0.002, "float32")])
def test_a_rope_that_falls_on_a_floor_does_not_run_away(h, tilt, dtype):
    """Twelve links of 10 cm and 0.1 kg on damped ball joints, from 2 m. With all debts of blows paid 28 of 128 did."""
    link = '<geom type="capsule" fromto="0 0 0 .1 0 0" size=".015" mass=".1"/>'
    rope = "".join(f'<body pos=".1 0 0"><joint type="ball" damping="1e-3"/>{link}' for _ in range(11))
    xml = f"""<mujoco><option timestep="{h}"/><worldbody><geom type="plane" size="5 5 1"/>
      <body pos="0 0 2" euler="0 {tilt} 0"><freejoint/>{link}{rope}{"</body>" * 12}</worldbody></mujoco>"""
    sim = Simulation(Model.from_mjcf(xml), 16, dtype=dtype, num_threads=1)
    m = sim.model.mjmodel
    sim.qvel[:, :6] = 0.5 * np.random.default_rng(0).normal(size=(16, 6))
    found = []
    for _ in range(round(1.5 / h) // 12):
        found.append([energy(m, q, v).sum() for q, v in zip(sim.qpos, sim.qvel, strict=True)])
        sim.step(12)
    found = np.array(found) / found[0]
    rise, wild = (found - np.minimum.accumulate(found)).max(0), (found.max(0) > 1.05).sum()
    print(f"{tilt} degrees, {h} s, {dtype}: {wild} of 16 run away, energy rises by {np.median(rise):.4f} in the median")
    assert wild <= 1 and np.median(rise) <= 0.01


def test_of_what_is_owed_the_oracle_pays_as_much():
    """All, a part or nothing."""
    reference = pytest.importorskip("stiction_reference")
    m = mujoco.MjModel.from_xml_string(capsules(3, "ball", FREE, 0.002, 0))
    sim = Simulation(
        Model.from_mjmodel(m),
        1,
        timestep=0.002,
        dtype="float64",
        solver=SolverOptions(tolerance=1e-12, iterations=3000),
    )
    oracle, d = reference.Model(sim.model.to_arrays()), mujoco.MjData(m)
    d.qvel[:] = np.random.default_rng(0).uniform(-10, 10, m.nv)
    pushed, paid = 0, 0
    for q, v in steps_of_the_oracle(oracle, sim, d, 150):
        pushed += bool(np.any(sim.contact_problem(0).row_impulse > 1e-6))
        paid += bool(np.any(sim._world.previous_states()[2]))
        assert np.abs(sim.qpos[0] - q).max() <= 1e-6 and np.abs(sim.qvel[0] - v).max() <= 1e-4
    print(f"impulses in {pushed} steps, debts in {paid}")
    assert 0 < paid < pushed - 1


HUMANOID = """<mujoco><option timestep="{h}"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
  <body pos="0 0 2"><freejoint/><geom type="capsule" size=".08" fromto="0 0 0 0 0 .5" mass="30"/>
    <body pos="0 0 .6"><joint type="ball" stiffness="200" damping="4"/><geom size=".1" mass="4"/></body>
    {limbs}</body></worldbody></mujoco>"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("h", [0.002, 0.01])
def test_a_backflip_flies_along_its_parabola(h, dtype):
    """Springs hold the pose. Of MuJoCo's "implicit" the centre of mass drifts by millimetres."""
    limbs = "".join(
        f"""<body pos="0 {y} {z}"><joint axis="0 1 0" stiffness="200" damping="4"/>
          <geom type="capsule" size=".05" fromto="0 0 0 .2 0 -.3" mass="6"/>
          <body pos=".2 0 -.3"><joint axis="0 1 0" stiffness="200" damping="4"/>
            <geom type="capsule" size=".04" fromto="0 0 0 -.1 0 -.35" mass="3"/></body></body>"""
        for y, z in ((0.12, 0), (-0.12, 0), (0.2, 0.5), (-0.2, 0.5))
    )
    xml = HUMANOID.format(h=h, limbs=limbs)
    sim = Simulation(Model.from_mjcf(xml), 1, dtype=dtype, num_threads=1)
    m = mujoco.MjModel.from_xml_string(xml.replace("<option", '<option integrator="implicit"'))
    theirs = mujoco.MjData(m)
    sim.qvel[0, :6] = theirs.qvel[:6] = (1, 0, 3, 0, 8, 0)

    def centre(qpos, qvel):
        d = mujoco.MjData(m)
        d.qpos[:], d.qvel[:] = qpos, qvel
        mujoco.mj_forward(m, d)
        mujoco.mj_subtreeVel(m, d)
        return d.subtree_com[0].copy(), d.subtree_linvel[0].copy()

    x, v = centre(sim.qpos[0], sim.qvel[0])
    sim.step(round(0.6 / h))
    mujoco.mj_step(m, theirs, round(0.6 / h))
    parabola = x + 0.6 * v + [0, 0, -9.81 * 0.6 * (0.6 + h) / 2]  # of steps that fall first
    off, also = (
        np.linalg.norm(centre(*s)[0] - parabola) for s in ((sim.qpos[0], sim.qvel[0]), (theirs.qpos, theirs.qvel))
    )
    print(f"{dtype}, {h} s: {1e3 * off:.4f} mm off after 0.6 s, MuJoCo {1e3 * also:.1f}")
    assert off <= (1e-9 if dtype == "float64" else 1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("links, mass, load", [(3, 0.005, 2.5), (10, 0.02, 5.0), (3, 0.01, 1.0)])
def test_a_hanging_load_keeps_its_energy_in_steps_that_follow_its_links(links, mass, load, dtype):
    length, tension = 0.05, 9.81 * load
    h = 0.7 * np.sqrt(mass * length / tension)  # links swing across the pull with 2 sqrt(T / (m l)) at most
    link = f'<joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 {-length}" size="0.005" mass="{mass}"/>'
    rope = "".join(f'<body pos="0 0 {-length if i else 0}">{link}' for i in range(links))
    m = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{h}"><flag contact="disable"/></option><worldbody>{rope}'
        f'<geom size="0.04" pos="0 0 {-length}" mass="{load}"/>{"</body>" * links}</worldbody></mujoco>'
    )
    sim = Simulation(Model.from_mjmodel(m), 1, dtype=dtype)
    sim.qpos[0, 0] = 0.1
    rises, first = [], energy(m, sim.qpos[0], sim.qvel[0]).sum()
    for _ in range(round(3 / h / 4)):
        sim.step(4)
        rises.append(energy(m, sim.qpos[0], sim.qvel[0]).sum() - first)
    swings = tension * length * links * 0.1**2 / 2
    print(f"{links} links, {1e3 * h:.2g} ms: energy rises by {max(rises):.2g} J, swings with {swings:.2g} J")
    assert max(rises) < 0.03 * swings
