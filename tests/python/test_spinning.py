"""What spins keeps its energy and the size of its angular momentum under "implicit", however large the step."""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from stiction import Model, Simulation, SolverOptions  # noqa: E402

FREE = "<freejoint/>"
PLATE = '<geom type="cylinder" size=".12 .01" mass="1"/>'
PEN = '<geom type="cylinder" size=".005 .07" mass=".02"/>'
HANDLE = """<geom type="cylinder" size=".01 .1" mass=".5" euler="90 0 0"/>
  <geom type="cylinder" size=".01 .03" mass=".15" pos=".03 0 0" euler="0 90 0"/>"""
ROD = '<geom type="capsule" size=".01 .15" mass="1"/>'
#: Nothing is symmetric, the centre of mass is not where the joint is, and a part is welded on.
LUMP = """<geom type="box" size=".05 .1 .2" mass="1" pos=".1 .05 0" euler="20 30 40"/>
  <body pos="-.1 0 .1" euler="10 0 50"><geom type="ellipsoid" size=".03 .05 .1" mass=".4"/></body>"""
#: A body with a wheel that carries far more angular momentum than the body.
WHEEL = """<geom type="box" size=".1 .08 .05" mass="1"/>
  <body><joint name="wheel" axis=".6 0 .8"/><geom type="cylinder" size=".05 .01" mass=".3" zaxis=".6 0 .8"/></body>"""

#: Name -> geoms, angular velocity about the body's axes (rad/s).
BODIES = {
    "plate": (PLATE, (3, 2, 20)),
    "fast plate": (PLATE, (20, 10, 60)),
    "pen": (PEN, (20, 5, 60)),
    "T-handle": (HANDLE, (30, 0.3, 0.1)),
    "rod": (ROD, (2, 3, 200)),
    "lump": (LUMP, (30, -20, 10)),
}
STEPS = pytest.mark.parametrize("h", [0.002, 0.005, 0.01])


def thrown(geoms, h, joint=FREE, gravity="0 0 0", beside=""):
    return f"""<mujoco><option timestep="{h}" gravity="{gravity}"><flag contact="disable"/></option>
      <worldbody><body name="it">{joint}{geoms}</body>{beside}</worldbody></mujoco>"""


def momentum(m, q, v, body="it"):
    """Kinetic energy of everything, and the angular momentum of `body` with all it carries about its centre of mass."""
    d = mujoco.MjData(m)
    m.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    d.qpos[:], d.qvel[:] = q, v
    mujoco.mj_forward(m, d)
    mujoco.mj_subtreeVel(m, d)
    return d.energy[1], d.subtree_angmom[m.body(body).id].copy()


def spun(xml, w, seconds, dtype="float64", at=3, **velocities):
    """(energy over the first, |L| over the first, angle of L from the first) every 10 ms of the free flight."""
    sim = Simulation(Model.from_mjcf(xml), 1, dtype=dtype, num_threads=1)
    m = sim.model.mjmodel
    sim.qvel[:, at : at + 3] = w
    for name, speed in velocities.items():
        sim.qvel[:, m.joint(name).dofadr[0]] = speed
    energy, L = momentum(m, sim.qpos[0], sim.qvel[0])
    found = []
    for _ in range(round(seconds / 0.01)):
        sim.step(round(0.01 / sim.timestep))
        E, now = momentum(m, sim.qpos[0], sim.qvel[0])
        cosine = now @ L / np.linalg.norm(now) / np.linalg.norm(L)
        found.append((E / energy, np.linalg.norm(now) / np.linalg.norm(L), np.arccos(np.clip(cosine, -1, 1))))
    assert not sim.status.any()
    return np.array(found).T


@STEPS
@pytest.mark.parametrize("name", BODIES)
def test_a_thrown_body_keeps_its_energy_and_angular_momentum(name, h):
    geoms, w = BODIES[name]
    energy, size, _ = spun(thrown(geoms, h), w, 5)
    assert np.abs(energy - 1).max() <= 1e-9
    assert np.abs(size - 1).max() <= 2e-3


@pytest.mark.parametrize("name", ["plate", "T-handle", "lump"])
def test_the_axis_of_angular_momentum_wobbles_but_does_not_wander(name):
    """By about h |w| / 2, since a velocity is that of the middle of its step."""
    geoms, w = BODIES[name]
    *_, angle = spun(thrown(geoms, 0.002), w, 10)
    assert angle.max() <= 0.002 * np.linalg.norm(w)
    assert abs(np.mean(angle[-200:]) - np.mean(angle[:200])) <= 0.1 * 0.002 * np.linalg.norm(w)


@STEPS
def test_single_precision_keeps_them_too(h):
    for geoms, w in BODIES.values():
        energy, size, _ = spun(thrown(geoms, h), w, 5, "float32")
        assert np.abs(energy - 1).max() <= 5e-4 and np.abs(size - 1).max() <= 3e-3


@STEPS
@pytest.mark.parametrize("place", ["beside the trunk", "ball"])
def test_other_roots_keep_them_too(place, h):
    """A free body that is not the trunk, and a body on a ball joint through its centre of mass."""
    if place == "ball":
        xml, at = thrown(PLATE, h, '<joint type="ball"/>'), 0
    else:
        arms = "".join(f'<body pos="{x} 0 0"><joint/><geom size=".1" pos="{x} 0 0"/></body>' for x in (0.3, -0.3))
        xml, at = thrown(LUMP, h, beside=f'<body pos="3 0 0">{FREE}<geom size=".1"/>{arms}</body>'), 3
    energy, size, _ = spun(xml, (30, -20, 50), 5, at=at)
    assert np.abs(energy - 1).max() <= 1e-9
    assert np.abs(size - 1).max() <= 2e-3


@STEPS
def test_a_body_with_a_fast_wheel_keeps_them(h):
    energy, size, _ = spun(thrown(WHEEL, h), (0.5, 1, 0.3), 5, wheel=1000)
    assert np.abs(energy - 1).max() <= 0.02
    assert np.abs(size - 1).max() <= 0.02


def flail(xml, speeds, dtype, seconds=10):
    """All energy every 10 ms from the start on."""
    sim = Simulation(Model.from_mjcf(xml), 1, dtype=dtype, num_threads=1)
    m, d = sim.model.mjmodel, mujoco.MjData(sim.model.mjmodel)
    m.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    sim.qvel[:] = speeds
    energy = []
    for _ in range(round(seconds / 0.01)):
        d.qpos[:], d.qvel[:] = sim.qpos[0], sim.qvel[0]
        mujoco.mj_forward(m, d)
        energy.append(d.energy.sum())
        sim.step(round(0.01 / sim.timestep))
    assert not sim.status.any()
    return np.array(energy)


def test_props_a_thousand_times_as_fast_excuse_nothing():
    """Two-blade props of a drone that tumbles at 5.4 rad/s: its own is not judged by theirs."""
    props = "".join(
        f'<body pos="{x} {y} .05"><joint axis="0 0 1"/><geom type="box" size=".08 .01 .002" mass=".01"/></body>'
        for x in (-0.2, 0.2)
        for y in (-0.2, 0.2)
    )
    xml = thrown(f'<geom type="box" size=".1 .1 .03" mass="1"/>{props}', 0.005)
    found = []
    for dtype in ("float32", "float64"):
        sim = Simulation(Model.from_mjcf(xml), 1, dtype=dtype, num_threads=1)
        sim.qvel[:] = [0, 0, 0, 3, 2, 4, 2000, -2000, -2000, 2000]
        speed = []
        for _ in range(400):
            sim.step()
            speed.append(np.linalg.norm(sim.qvel[0, 3:6]))
        assert not sim.status.any()
        found.append(max(speed))
    assert max(found) <= 2 * np.linalg.norm([3, 2, 4]), found


def test_a_closed_loop_gains_no_energy():
    """A crank-rocker at 20 rad/s: its impulses undo most of the free motion, so Coriolis forces stay explicit."""
    bar = '<geom type="box" size="{0} .02 .02" pos="{0} 0 0" mass="{1}"/>'
    crank, rod, rocker = bar.format(0.1, 0.4), bar.format(0.25, 1), bar.format(0.15, 0.6)
    xml = f"""<mujoco><option timestep="0.005" gravity="0 0 0"><flag contact="disable"/></option><worldbody>
      <body name="crank"><joint axis="0 0 1"/>{crank}
        <body name="rod" pos=".2 0 0"><joint axis="0 0 1"/>{rod}</body></body>
      <body name="rocker" pos=".7 0 0"><joint axis="0 0 1"/>{rocker}</body></worldbody>
      <equality><connect body1="rod" body2="rocker" anchor=".5 0 0"/></equality></mujoco>"""
    model = Model.from_mjcf(xml)
    d = mujoco.MjData(model.mjmodel)
    model.mjmodel.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    sim = Simulation(model, 1, dtype="float64", num_threads=1)
    sim.qvel[:] = [0, 10, -10]
    energy = []
    for _ in range(600):
        sim.step()
        d.qpos[:], d.qvel[:] = sim.qpos[0], sim.qvel[0]
        mujoco.mj_forward(model.mjmodel, d)
        energy.append(d.energy[1])
    assert max(energy) <= 1.1 * energy[0], (energy[0], max(energy))


@STEPS
def test_a_floating_body_with_arms_keeps_its_energy(h):
    arms = """<body pos=".2 .1 0"><joint type="ball"/><geom type="box" size=".15 .03 .05" pos=".15 0 0"/></body>
      <body pos="-.2 -.1 0"><joint axis="0 1 1"/><geom type="box" size=".15 .03 .05" pos="-.15 0 0"/></body>"""
    xml = thrown(f'<geom type="box" size=".2 .1 .05"/>{arms}', h)
    beside = thrown(f'<geom type="box" size=".2 .1 .05"/>{arms}', h, beside=f'<body pos="9 0 0">{FREE}{PLATE}</body>')
    speeds = 5 * np.random.default_rng(1).standard_normal(10)
    energy = flail(xml, speeds, "float64")
    assert np.abs(energy / energy[0] - 1).max() <= 0.01
    other = flail(beside, np.concatenate([speeds, np.zeros(6)]), "float64", 1)
    assert np.allclose(other, energy[:100], rtol=1e-6)


@pytest.mark.parametrize("name", ["plate", "lump"])
def test_the_motion_converges_to_the_true_one(name):
    """Over 0.4 s, half the step halves the error; MuJoCo's Runge-Kutta at 10 us is the truth."""
    geoms, w = BODIES[name]
    m = mujoco.MjModel.from_xml_string(thrown(geoms, 1e-5).replace("<option", '<option integrator="RK4"'))
    d = mujoco.MjData(m)
    d.qvel[3:] = w
    mujoco.mj_step(m, d, 40_000)
    errors = []
    for h in (2e-3, 1e-3, 5e-4):
        sim = Simulation(Model.from_mjcf(thrown(geoms, h)), 1, dtype="float64", num_threads=1)
        sim.qvel[:, 3:] = w
        sim.step(round(0.4 / h))
        errors.append(np.abs(sim.qpos[0] - d.qpos).max())
    assert errors[0] <= 0.1
    assert all(1.7 <= coarse / fine <= 2.4 for coarse, fine in zip(errors, errors[1:], strict=False))


@pytest.mark.parametrize("h", [0.0002, 0.0005])
def test_a_fast_top_precesses_and_does_not_rise(h):
    """On a ball joint, about the vertical at the slow root p of I1 p^2 cos(tilt) - I3 w p + m g r = 0."""
    m, g, r, radius, w = 0.5, 9.81, 0.1, 0.05, 300.0
    geom = f'<geom type="cylinder" size="{radius} .01" pos="0 0 {r}" mass="{m}"/>'
    sim = Simulation(
        Model.from_mjcf(thrown(geom, h, '<joint type="ball"/>', f"0 0 -{g}")), 1, dtype="float64", num_threads=1
    )
    tilt = 0.5
    sim.qpos[:] = [np.cos(tilt / 2), np.sin(tilt / 2), 0, 0]
    sim.qvel[:] = [0, 0, w]
    axis, turned, last = [], 0.0, None
    for _ in range(round(2 / h)):
        sim.step()
        qw, x, y, z = sim.qpos[0]
        axis.append([2 * (x * z + qw * y), 2 * (y * z - qw * x), 1 - 2 * (x * x + y * y)])
        heading = np.arctan2(axis[-1][1], axis[-1][0])
        if last is not None:
            turned += (heading - last + np.pi) % (2 * np.pi) - np.pi
        last = heading
    assert not sim.status.any()
    across = m * (r**2 + radius**2 / 4 + 0.01**2 / 3)
    slow = np.roots([across * np.cos(tilt), -0.5 * m * radius**2 * w, m * g * r]).min()
    assert abs(turned / 2 / slow - 1) <= 0.03
    assert np.abs(np.array(axis)[:, 2] - np.cos(tilt)).max() <= 0.05
    assert abs(np.linalg.norm(sim.qvel) / w - 1) <= 0.02


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("speed", "h"), [(5.0, 2e-3), (50.0, 2e-3), (20.0, 5e-3), (10.0, 1e-2), (50.0, 1e-2)])
def test_a_rolling_cylinder_goes_on(speed, h, dtype):
    """It turns by up to ten radians a step."""
    radius = 0.05
    sim = Simulation(
        Model.from_mjcf(f"""<mujoco><option timestep="{h}"/><worldbody>
          <geom type="plane" size="0 0 1" friction="1"/>
          <body pos="0 0 {radius}" euler="90 0 0"><freejoint/><geom type="cylinder" size="{radius} .1" mass="1"/></body>
        </worldbody></mujoco>"""),
        1,
        dtype=dtype,
        num_threads=1,
    )
    sim.qvel[:] = [speed, 0, 0, 0, 0, -speed / radius]
    for _ in range(500):
        sim.step(2)
        assert np.linalg.norm(sim.qvel[0, :3]) <= speed * 1.001
        assert np.linalg.norm(sim.qvel[0, 3:]) <= speed / radius * 1.001
        assert abs(sim.qpos[0, 2] - radius) <= 1e-4
    assert not (sim.status & 1).any() and abs(sim.qvel[0, 0] / speed - 1) <= 1e-3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("half", [50, 400])
def test_a_cylinder_that_rolls_on_a_large_box_goes_on(half, dtype):
    """Hundreds of metres of floor are no lever for what a normal is off by in rounding."""
    speed = 15
    model = Model.from_mjcf(f"""<mujoco><worldbody>
        <geom type="box" size="{half} {half} 1" pos="0 0 -1"/>
        <body pos="0 0 .03" euler="90 0 0"><freejoint/><geom type="cylinder" size=".03 .06" mass="1"/></body>
        </worldbody></mujoco>""")
    sim = Simulation(model, 1, dtype=dtype, num_threads=1)
    sim.qvel[:] = [speed, 0, 0, 0, 0, -speed / 0.03]
    for _ in range(300):
        sim.step(5)
        assert abs(sim.qpos[0, 2] - 0.03) <= 1e-5 and abs(sim.qvel[0, 0] / speed - 1) <= 1e-3


def cart(ground, h, wheel='type="cylinder" size=".1 .03"', assets=""):
    """On four wheels of radius 0.1, 0.2 m above the ground."""
    wheels = "".join(
        f"""<body pos="{x} {y} -.1" euler="90 0 0"><joint type="hinge" axis="0 0 1"/>
        <geom {wheel} mass=".25" friction="1"/></body>"""
        for x in (-0.2, 0.2)
        for y in (-0.15, 0.15)
    )
    return Model.from_mjcf(f"""<mujoco><option timestep="{h}"/><asset>{assets}</asset><worldbody>{ground}
        <body pos="0 0 .2"><freejoint/><geom type="box" size=".3 .15 .05" mass="4" contype="0" conaffinity="0"/>
        {wheels}</body></worldbody></mujoco>""")


def rolled(model, speeds, seconds, dtype="float32"):
    """The cart's speed in the end, as a part of `speeds`, and how far it rose and sank on the way (m)."""
    sim = Simulation(model, len(speeds), dtype=dtype, num_threads=1)
    sim.step(round(0.2 / sim.timestep))
    stands = sim.qpos[:, 2].copy()
    sim.qvel[:, 0], sim.qvel[:, 6:] = speeds, -np.array(speeds)[:, None] / 0.1
    rose = sank = 0.0
    for _ in range(round(seconds / sim.timestep)):
        sim.step()
        rose, sank = max(rose, (sim.qpos[:, 2] - stands).max()), max(sank, (stands - sim.qpos[:, 2]).max())
    assert not (sim.status & 1).any()
    return sim.qvel[:, 0] / speeds, rose, sank


FLAT = {
    "plane": '<geom type="plane" size="0 0 1" friction="1"/>',
    "box": '<geom type="box" size="400 400 1" pos="0 0 -1" friction="1"/>',
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("floor", FLAT)
@pytest.mark.parametrize("h", [2e-3, 1e-2])
def test_wheels_on_axles_roll_on(h, floor, dtype):
    """By up to eight radians a step; points of their rims that come down by turning alone pushed them off."""
    left, rose, sank = rolled(cart(FLAT[floor], h), [5.0, 12, 20, 30, 50, 80], 2, dtype)
    assert max(rose, sank) <= 1e-5 and np.abs(left - 1).max() <= 1e-3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("h", [1e-3, 5e-3, 1e-2])
def test_wheels_on_axles_do_not_feel_the_seams_of_a_road(h, dtype):
    """Of the overlap with a box of metres the depth was off by micrometres, the normal at its edge by 4e-3."""
    tiles = "".join(f'<geom type="box" size="1 3 .5" pos="{2 * i - 1} 0 -.5" friction="1"/>' for i in range(22))
    left, rose, sank = rolled(cart(tiles, h), [4.0, 8, 10, 14, 20], 2, dtype)
    assert max(rose, sank) <= 3e-5 and np.abs(left - 1).max() <= 1e-3


@pytest.mark.parametrize("floor", FLAT)
@pytest.mark.parametrize("h", [2e-3, 5e-3, 1e-2])
def test_wheels_of_hulls_roll_on(h, floor):
    """Pushed where they stand: ahead of it by what they roll in a step, they lost g h / r of their speed."""
    angle = np.arange(300) * 2 * np.pi / 300
    rim = np.stack([0.1 * np.cos(angle), 0.1 * np.sin(angle)], axis=1)
    corners = np.concatenate([np.column_stack([rim, np.full(300, z)]) for z in (-0.03, 0.03)])
    mesh = f'<mesh name="wheel" vertex="{" ".join(f"{x:.9f}" for x in corners.ravel())}"/>'
    left, rose, _ = rolled(cart(FLAT[floor], h, 'type="mesh" mesh="wheel"', mesh), [1.0, 2, 3], 2)
    print(f"at {1e3 * h:g} ms on a {floor}: {left} of the speed left after 2 s")
    assert left.min() > 0.9 and left.max() < 1.002 and rose < 1e-5


def rotations(q):
    """(n, 4) quaternions as (n, 3, 3)."""
    R = np.empty((len(q), 9))
    for of, into in zip(q.astype(float), R, strict=True):
        mujoco.mju_quat2Mat(into, of / np.linalg.norm(of))
    return R.reshape(-1, 3, 3)


def blows(offset, h, dtype="float64", beside=False, height=0.5, steps=None, n=32, **options):
    """Boxes thrown on a floor, their joint `offset` from the centre of mass: energy (steps, n), J, and its place.

    Wherever the joint is, the same box is thrown the same way.
    """
    half, mass, gravity, offset = np.array([0.1, 0.04, 0.03]), 1.0, 9.81, np.asarray(offset, float)
    arms = "".join(f'<body pos="{x} 0 0"><joint/><geom size=".1" pos="{x} 0 0"/></body>' for x in (0.3, -0.3))
    trunk = f'<body pos="9 0 9">{FREE}<geom size=".1"/>{arms}</body>' if beside else ""
    place = " ".join(map(str, offset))
    xml = f"""<mujoco><option timestep="{h}"/><worldbody><geom type="plane" size="0 0 1" friction=".5"/>
      <body>{FREE}<geom type="box" size=".1 .04 .03" mass="{mass}" friction=".5" pos="{place}"/></body>
      {trunk}</worldbody></mujoco>"""
    sim = Simulation(Model.from_mjcf(xml), n, dtype=dtype, num_threads=1, **options)
    inertia = mass / 3 * (half @ half - half**2)
    rng = np.random.default_rng(0)
    q, w = rng.standard_normal((n, 4)), rng.uniform(-60, 60, (n, 3))
    velocity = rng.uniform(-10, 10, (n, 3)) * [1, 1, 0] - [0, 0, 5]
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    R = rotations(q)
    arm = R @ offset
    sim.qpos[:, :3], sim.qpos[:, 3:7] = [0, 0, height] - arm, q
    sim.qvel[:, :3], sim.qvel[:, 3:6] = velocity - np.cross((R @ w[..., None])[..., 0], arm), w

    def look():
        R, w = rotations(sim.qpos[:, 3:7]), sim.qvel[:, 3:6].astype(float)
        arm = R @ offset
        centre, velocity = sim.qpos[:, :3] + arm, sim.qvel[:, :3] + np.cross((R @ w[..., None])[..., 0], arm)
        kinetic = mass * (velocity**2).sum(1) + (inertia * w**2).sum(1)
        return kinetic / 2 + mass * gravity * centre[:, 2], centre

    seen = [look()]
    for _ in range(round(1 / h) if steps is None else steps):
        sim.step()
        seen.append(look())
    assert not (sim.status & 1).any()
    energy, centre = zip(*seen, strict=True)
    return np.array(energy), np.array(centre)


@STEPS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("offset", [0.01, 0.05, 0.3])
def test_a_blow_adds_no_energy_wherever_the_joint_is(offset, dtype, h):
    """A joint 5 cm from the centre of mass made it 9 % in a step of 10 ms."""
    energy, _ = blows((offset, 0, 0), h, dtype)
    assert (energy[-1] <= 0.9 * energy[0]).all()  # there were blows
    assert (np.diff(energy, axis=0) / energy[0]).max() <= 1e-5


@STEPS
@pytest.mark.parametrize("height", [0.5, 0.02])
@pytest.mark.parametrize("beside", [False, True])
def test_bodies_move_alike_wherever_their_joint_is(h, beside, height):
    """The trunk, and a free body beside one; thrown from above, and out of the floor; until rounding has grown."""
    exact = SolverOptions(tolerance=1e-12, iterations=1000)  # which contacts stay open does depend on it
    where = {"beside": beside, "height": height, "steps": round(0.3 / h), "solver": exact}
    _, centre = blows((0, 0, 0), h, **where)
    for offset in ((0.01, 0, 0), (0.03, 0.03, 0.03), (0, 0.3, 0)):
        _, other = blows(offset, h, **where)
        assert np.median(np.abs(other - centre).max((0, 2))) <= 1e-6


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("h", [0.0005, 0.002, 0.005, 0.01])
def test_a_top_on_the_floor_gains_no_energy(h, dtype):
    """400 rad/s: up to four radians a step."""
    energy = flail(
        f"""<mujoco><option timestep="{h}"/><worldbody><geom type="plane" size="0 0 1" friction=".3"/>
          <body name="it" pos="0 0 .0495" euler="10 0 0"><freejoint/>
            <geom type="cylinder" size=".04 .01" mass=".1"/><geom size=".005" pos="0 0 -.045" mass=".005"/></body>
        </worldbody></mujoco>""",
        [0, 0, 0, 0, 0, 400],
        dtype,
        2,
    )
    most = np.diff(energy).max() / energy[0]
    print(f"{1e3 * h:g} ms, {dtype}: gains {most:.1e}, has {energy[-1] / energy[0]:.3f} at the end")
    assert most <= 1e-5 and energy[-1] >= 0.8 * energy[0]


@STEPS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_fast_top_on_a_ball_joint_keeps_its_energy(h, dtype):
    """300 rad/s, tilted by 0.5 rad, which gravity is here."""
    gravity = f"0 {9.81 * np.sin(0.5)} {-9.81 * np.cos(0.5)}"
    geom = '<geom type="cylinder" size=".05 .01" pos="0 0 .1" mass=".5"/>'
    energy = flail(thrown(geom, h, '<joint type="ball"/>', gravity), [0, 0, 300], dtype, 2)
    print(f"{1e3 * h:g} ms, {dtype}: {np.abs(energy / energy[0] - 1).max():.1e}")
    assert np.abs(energy / energy[0] - 1).max() <= 1e-4


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("angle", [0.8, 2.0])
def test_jointed_bodies_fly_as_their_equations_say(angle, beside):
    """Two hinged capsules against MuJoCo's Runge-Kutta: half the step, half the error, for the trunk and for a limb."""
    other = f'<body pos="9 0 0">{FREE}<geom size=".1"/></body>' if beside else ""
    xml = f"""<mujoco><option gravity="0 0 0" integrator="RK4" timestep="2e-5"/><worldbody>{other}
      <body>{FREE}<geom type="capsule" fromto="0 0 0 .2 0 0" size=".02" mass="1"/>
        <body pos=".2 0 0"><joint axis="0 0 1"/>
          <geom type="capsule" fromto=".06 0 0 .25 0 0" size=".02" mass=".5"/></body>
      </body></worldbody></mujoco>"""
    m, first, at = mujoco.MjModel.from_xml_string(xml), 6 if beside else 0, 14 if beside else 7
    d, start = mujoco.MjData(m), np.array([0, 0, 0, 3.0, 5, 8, -4])
    d.qpos[at], d.qvel[first:] = angle, start
    for _ in range(2500):
        mujoco.mj_step(m, d)
    errors = []
    for h in (2e-3, 1e-3, 5e-4):
        sim = Simulation(Model.from_mjcf(xml), 1, dtype="float64", timestep=h, integrator="implicit")
        sim.qpos[0, at], sim.qvel[0, first:] = angle, start
        sim.step(round(0.05 / h))
        errors.append(np.abs(sim.qvel[0] - d.qvel).max())
    assert errors[2] < 0.2 and errors[1] < 0.6 * errors[0] and errors[2] < 0.6 * errors[1]
