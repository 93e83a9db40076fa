"""Rims that roll: a wheel that leans into a circle, a coin and a top keep their energy and their lean at any step.

`pytest -s tests/python/test_rims.py` prints them beside MuJoCo's.
"""

import mujoco
import numpy as np
import pytest
import stiction
from scenes import found_contacts

GRAVITY, UP = 9.81, np.array([0, 0, 1.0])


def disc_xml(radius, half, mass):
    return f"""<mujoco><worldbody><geom type="plane" size="50 50 1" friction="2 0 0"/>
      <body><freejoint/><geom type="cylinder" size="{radius} {half}" mass="{mass}" friction="2 0 0"/></body>
      </worldbody></mujoco>"""


def turned(axis, angle):
    q, R = np.zeros(4), np.zeros(9)
    mujoco.mju_axisAngle2Quat(q, np.array(axis, float), angle)
    mujoco.mju_quat2Mat(R, q)
    return R.reshape(3, 3)


def lowest(R, radius, half):
    """From the middle of a disc to the lowest point of its rim."""
    n = R.T @ UP
    along = n[:2] / np.hypot(*n[:2])
    return R @ np.array([*(-radius * along), -np.sign(n[2]) * half])


def steady_precession(m, R, radius, half, spin):
    """How fast a disc turns about the vertical that rolls in a circle, `spin` about its axis, and keeps its lean."""
    mass, (I1, _, I3) = m.body_mass[1], m.body_inertia[1]
    a, r = R[:, 2], lowest(R, radius, half)
    lateral = np.cross(UP, a)

    def lack(rate):  # of torque about the horizontal axis in the disc's plane
        w = rate * UP + spin * a
        L = I1 * w + (I3 - I1) * (w @ a) * a
        centripetal = rate * np.cross(UP, np.cross(r, w))  # of the middle, whose velocity is -w x r
        return (np.cross(r, mass * (centripetal + GRAVITY * UP)) - rate * np.cross(UP, L)) @ lateral

    rates = np.linspace(-8, 8, 1601)
    lacks = np.array([lack(x) for x in rates])
    at = np.flatnonzero(lacks[:-1] * lacks[1:] < 0)
    roots = rates[at] - lacks[at] * (rates[1] - rates[0]) / (lacks[at + 1] - lacks[at])
    return roots[np.argmin(abs(roots))]


def roll(m, R, spin, radius, half, seconds, h, dtype):
    """Energies, and leans of the axis from upright in degrees, of a rolling disc, 20 each; dtype None: MuJoCo's."""
    r = lowest(R, radius, half)
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, R.ravel())
    q, v = np.r_[0, 0, -r[2], quat], np.r_[np.cross(r, spin), R.T @ spin]
    steps = round(seconds / 20 / h)
    m.opt.timestep = h
    if dtype is None:
        m.opt.cone, m.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 100
        m.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        d = mujoco.MjData(m)
        d.qpos[:], d.qvel[:] = q, v
        state, advance = (d.qpos, d.qvel), lambda: [mujoco.mj_step(m, d) for _ in range(steps)]
    else:
        sim = stiction.Simulation(stiction.Model.from_mjmodel(m), 1, dtype=dtype)
        sim.qpos[0], sim.qvel[0] = q, v
        state, advance = (sim.qpos[0], sim.qvel[0]), lambda: sim.step(steps)
    energy, lean = [], []
    for _ in range(20):
        advance()
        qpos, qvel = (np.array(x, float) for x in state)
        S = np.zeros(9)
        mujoco.mju_quat2Mat(S, qpos[3:])
        w = qvel[3:]
        energy.append(m.body_mass[1] * (qvel[:3] @ qvel[:3] / 2 + GRAVITY * qpos[2]) + w @ (m.body_inertia[1] * w) / 2)
        lean.append(np.degrees(np.arccos(min(1, abs(S[8])))))
    return np.array(energy), np.array(lean)


STEPS = [(h, dtype) for h in (0.002, 0.005, 0.01) for dtype in ("float32", "float64")]


@pytest.mark.parametrize("h, dtype", STEPS)
def test_a_leaning_wheel_stays_in_its_circle(h, dtype):
    """10 rad/s about an axis that leans by 65 degrees from the vertical, for ten seconds."""
    radius, half = 0.3, 0.01
    m = mujoco.MjModel.from_xml_string(disc_xml(radius, half, 2))
    R = turned([1, 0, 0], np.radians(65))
    spin = steady_precession(m, R, radius, half, 10) * UP + 10 * R[:, 2]
    energy, lean = roll(m, R, spin, radius, half, 10, h, dtype)
    theirs, their_lean = roll(m, R, spin, radius, half, 10, h, None)
    print(
        f"\nwheel, {1e3 * h:.0f} ms, {dtype}: energy {energy[-1] / energy[0]:.4f}, lean {lean[-1]:.2f} degrees of 65; "
        f"MuJoCo {theirs[-1] / theirs[0]:.4f}, {their_lean[-1]:.2f}"
    )
    assert abs(lean - 65).max() < (0.5 if h < 0.01 else 1.5)
    assert abs(energy / energy[0] - 1).max() < (0.001 if h < 0.01 else 0.005)


@pytest.mark.parametrize("h, dtype", STEPS)
def test_a_coin_keeps_its_energy(h, dtype):
    """It rolls and wobbles between 38 and 66 degrees for four seconds."""
    radius, half = 0.1, 0.001
    m = mujoco.MjModel.from_xml_string(disc_xml(radius, half, 0.5))
    R = turned([0, 0, 1], 0.3) @ turned([1, 0, 0], np.pi / 2 - 0.4)
    spin = R @ np.array([0, 0, 12.0]) + 1.5 * UP
    energy, lean = roll(m, R, spin, radius, half, 4, h, dtype)
    theirs, their_lean = roll(m, R, spin, radius, half, 4, h, None)
    print(
        f"\ncoin, {1e3 * h:.0f} ms, {dtype}: energy {energy[-1] / energy[0]:.4f}, lean {lean[-1]:.2f} degrees; "
        f"MuJoCo {theirs[-1] / theirs[0]:.4f}, {their_lean[-1]:.2f}"
    )
    assert abs(energy / energy[0] - 1).max() < (0.003 if h < 0.005 else 0.02)


def bolt_xml(head, shank):
    """Two cylinders (radius, half length), one behind the other."""
    geoms = f'<geom type="cylinder" size="{head[0]} {head[1]}"/><geom type="cylinder" size="{shank[0]} {shank[1]}" '
    return f"""<mujoco><default><geom friction="1 0 0"/></default><worldbody><geom type="plane" size="50 50 1"/>
      <body><freejoint/>{geoms} pos="0 0 {head[1] + shank[1]}"/></body></worldbody></mujoco>"""


BOLTS = {"screw": ((0.005, 0.002), (0.0025, 0.015), 44), "bolt": ((0.011, 0.004), (0.006, 0.03), 9)}


@pytest.mark.parametrize("h", [0.001, 0.005, 0.01])
@pytest.mark.parametrize("kind", BOLTS)
def test_what_rolls_on_two_rims_is_not_driven(kind, h):
    """Around the tip of the cone that it lies like: a bend for one of the rims drives it."""
    (R, L), (r, half), speed = BOLTS[kind]
    lean = np.arctan((R - r) / (2 * half))  # on the head's rim at z = L and the shank's at L + 2 half
    R0 = turned([0, 1, 0], np.pi / 2 - lean)
    down = -UP + R0[:, 2] * R0[2, 2]
    down /= np.linalg.norm(down)
    rims = [R0 @ [0, 0, z] + radius * down for z, radius in ((L, R), (L + 2 * half, r))]
    along = (rims[0] - rims[1]) / np.linalg.norm(rims[0] - rims[1])
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, R0.ravel())
    m = mujoco.MjModel.from_xml_string(bolt_xml((R, L), (r, half)))
    m.opt.timestep = h
    sim = stiction.Simulation(stiction.Model.from_mjmodel(m), 1)
    sim.qpos[0] = [0, 0, -rims[0][2], *quat]
    sim.qvel[0] = [*-np.cross(speed * along, rims[0]), *(R0.T @ (speed * along))]
    fastest = 0
    for _ in range(40):
        sim.step(round(0.1 / h))
        fastest = max(fastest, np.linalg.norm(sim.qvel[0, 3:]))
    print(f"\n{kind}, {1e3 * h:.0f} ms: {fastest / speed:.3f} of its speed at most")
    assert fastest <= 1.025 * speed


@pytest.mark.parametrize("kind", ["cylinder", "ellipsoid"])
def test_a_slow_wheel_does_not_see_a_fast_one_beside_it(kind):
    """Below 10^-4 rad a step nothing rolls, whatever worlds of the same pack do."""
    size = ".3 .01" if kind == "cylinder" else ".3 .3 .02"
    xml = disc_xml(0.3, 0.01, 2).replace('type="cylinder" size="0.3 0.01"', f'type="{kind}" size="{size}"')
    m = mujoco.MjModel.from_xml_string(xml)
    m.opt.timestep = 0.005
    R = turned([1, 0, 0], np.radians(65))
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, R.ravel())

    def after(spins):
        sim = stiction.Simulation(stiction.Model.from_mjmodel(m), len(spins))
        sim.qpos[:] = [0, 0, -lowest(R, 0.3, 0.01)[2], *quat]
        for i, spin in enumerate(spins):
            sim.qvel[i] = [*np.cross(lowest(R, 0.3, 0.01), spin * R[:, 2]), 0, 0, spin]
        sim.step()
        return np.array(sim.qpos[0]), np.array(sim.qvel[0])

    for alone, beside in zip(after([0.01]), after([0.01, 5.0]), strict=True):
        assert (alone == beside).all()


CANS = {"slender": (0.015, 0.1), "can": (0.03, 0.06)}


@pytest.mark.parametrize("floor", ['type="plane" size="1 1 1"', 'type="box" size="1 1 .1" pos="0 0 -.1"'])
@pytest.mark.parametrize("h, dtype", [(0.002, "float32"), (0.01, "float32"), (0.01, "float64")])
@pytest.mark.parametrize("kind", CANS)
def test_a_pushed_can_tips_over_its_rim(kind, h, dtype, floor):
    """At m g r / height, to 1 %: by a force at its middle or at two thirds of it, all at once or slowly."""
    radius, half = CANS[kind]
    xml = f"""<mujoco><option timestep="{h}"/><default><geom friction="4 0 0"/></default><worldbody><geom {floor}/>
      <body pos="0 0 {half}"><freejoint/><geom type="cylinder" size="{radius} {half}" mass="0.3"/></body>
      </worldbody></mujoco>"""
    cases = [(part, way, above) for part in (0.99, 1.01) for way in (0, 2.5) for above in (0, half / 3)]
    sim = stiction.Simulation(stiction.Model.from_mjcf(xml), 2 * len(cases), dtype=dtype)
    wrench = np.zeros((2, len(cases), 6))
    for i, (part, way, above) in enumerate(cases):
        force = part * 0.3 * GRAVITY * radius / (half + above) * np.array([np.cos(way), np.sin(way), 0])
        wrench[:, i] = [*force, *np.cross([0, 0, above], force)]
    sim.step(10)
    for k in range(1, 101):
        sim.xfrc_applied[:, 1] = (wrench * [[[1]], [[k / 100]]]).reshape(-1, 6)
        sim.step(round(0.02 / h))
    sim.step(round(3 / h))
    tips = (2 * (sim.qpos[:, 4:6] ** 2).sum(1) > 0.1).reshape(2, -1)
    pushed = np.array([part for part, _, _ in cases])
    print(f"\n{kind}, {1e3 * h:.0f} ms, {dtype}: tips {tips.astype(int).tolist()} at {pushed.tolist()}")
    assert (tips == (pushed > 1)).all()


def precession(mass, arm, I1, I3, w, tilt):
    """How fast a top that stands on a point turns about the vertical, at the slow root."""
    return np.roots([I1 * np.cos(tilt), -I3 * w, mass * GRAVITY * arm]).min()


PLANE = 'type="plane" size="1 1 1"'


@pytest.mark.parametrize(
    "tip, floor", [("sphere", PLANE), ("sphere", 'type="box" size="1 1 .1" pos="0 0 -.1"'), ("capsule", PLANE)]
)
@pytest.mark.parametrize("radius", [0.0005, 0.003])
@pytest.mark.parametrize("h, w", [(0.001, 100), (0.002, 100), (0.001, 200), (0.002, 200)])
def test_a_top_keeps_its_spin(h, w, radius, tip, floor):
    """It stands on a sphere, or a capsule's end, and turns by 0.1 to 0.4 rad a step. J knows the arm of a step's
    beginning alone: the spin fell to 0.6 to 0.97 of it in 1.5 s, and tops lay down."""
    tilt, arm, mass, rotor = 0.2, 0.03, 0.05, 0.03
    m = mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep="{h}"/><worldbody><geom {floor} friction="1"/>
        <body pos="0 0 {radius}"><freejoint/><geom type="{tip}" size="{radius} .03" mass="1e-4"
        pos="0 0 {arm if tip == "capsule" else 0}"/>
        <geom type="cylinder" size="{rotor} .004" pos="0 0 {arm}" mass="{mass}" contype="0" conaffinity="0"/></body>
        </worldbody></mujoco>""")
    I3 = 0.5 * mass * rotor**2
    I1 = mass * (rotor**2 / 4 + 0.008**2 / 12 + arm**2)
    R, turn = turned([1, 0, 0], tilt), precession(mass, arm, I1, I3, w, tilt)
    spin = (w - turn * np.cos(tilt)) * R[:, 2] + turn * UP
    sim = stiction.Simulation(stiction.Model.from_mjmodel(m), 1, num_threads=1)
    sim.qpos[0, 3:] = [np.cos(tilt / 2), np.sin(tilt / 2), 0, 0]
    sim.qvel[0] = [*np.cross(spin, radius * UP), *(R.T @ spin)]
    tilts, energy = [], []
    d = mujoco.MjData(m)
    m.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    for _ in range(round(1.5 / h)):
        sim.step()
        qw, x, y, z = sim.qpos[0, 3:]
        tilts.append(np.degrees(np.arccos(1 - 2 * (x * x + y * y))))
        d.qpos[:], d.qvel[:] = sim.qpos[0], sim.qvel[0]
        mujoco.mj_forward(m, d)
        energy.append(d.energy.sum())
    print(
        f"\ntop on a {tip} of {1e3 * radius} mm, {w} rad/s, {1e3 * h:g} ms: "
        f"tilts by {min(tilts):.1f} to {max(tilts):.1f} degrees "
        f"of {np.degrees(tilt):.1f}, {sim.qvel[0, 5] / w:.4f} of its spin, {energy[-1] / energy[0]:.4f} of its energy"
    )
    assert abs(sim.qvel[0, 5] / w - 1) < 0.003 and abs(energy[-1] / energy[0] - 1) < 0.003
    assert np.degrees(tilt) - 2 < min(tilts) and max(tilts) < np.degrees(tilt) + 3.5
    assert not sim.status.any()


@pytest.mark.parametrize("h", [0.001, 0.002, 0.005])
@pytest.mark.parametrize("off", [0.03, 0.05])
@pytest.mark.parametrize("spin", [(2.0, 4, 3), (0, 8, 0), (5, 20, 3)])
def test_a_ball_with_its_weight_off_the_middle_keeps_its_energy(spin, off, h):
    """It rolls along, and the point that touches goes round the weight. In ten seconds it gained 8 % or lost 44."""
    radius = 0.1
    m = mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep="{h}"/><worldbody>
        <geom type="plane" size="1 1 1" friction="1"/><body pos="0 0 {radius}"><freejoint/>
        <geom type="sphere" size="{radius}" mass="1"/><geom size=".02" pos="{off} 0 0" mass="1" contype="0"
        conaffinity="0"/></body></worldbody></mujoco>""")
    m.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    sim = stiction.Simulation(stiction.Model.from_mjmodel(m), 1, num_threads=1)
    sim.qvel[0] = [*np.cross(spin, radius * UP), *spin]
    d, energy = mujoco.MjData(m), []
    for _ in range(round(10 / h)):
        sim.step()
        d.qpos[:], d.qvel[:] = sim.qpos[0], sim.qvel[0]
        mujoco.mj_forward(m, d)
        energy.append(d.energy.sum() - 2 * GRAVITY * radius)
    means = np.reshape(energy, (5, -1)).mean(1)  # within a turn it swings by a part of h, as heights are a step's ends
    print(f"\nball, {1e3 * h:g} ms, off by {off} m, {spin} rad/s: {np.round(means / energy[0], 4)} of its energy")
    assert np.abs(means / means[0] - 1).max() < 0.006 and np.abs(means / energy[0] - 1).max() < 0.025


def thrown_capsules(radius, half, h, dtype, count=64, seconds=3):
    """Of capsules that are thrown on a floor and spun: energies, at first and 60 times, and the deepest overlap."""
    m = mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep="{h}"/><worldbody>
        <geom type="plane" size="1 1 1" friction=".8"/><body><freejoint/>
        <geom type="capsule" size="{radius} {half}" friction=".8"/></body></worldbody></mujoco>""")
    sim = stiction.Simulation(stiction.Model.from_mjmodel(m), count, num_threads=1, dtype=dtype)
    rng = np.random.default_rng(7)
    quat = rng.normal(size=(count, 4))
    sim.qpos[:, 2], sim.qpos[:, 3:] = radius + half, quat / np.linalg.norm(quat, axis=1)[:, None]
    sim.qvel[:, :3] = rng.normal(size=(count, 3))
    sim.qvel[:, 3:] = rng.normal(size=(count, 3)) * rng.uniform(0, 60, (count, 1))
    mass, inertia, R = m.body_mass[1], m.body_inertia[1], np.zeros(9)
    mujoco.mju_quat2Mat(R, m.body_iquat[1])

    def energy():
        v, w = sim.qvel[:, :3].astype(float), sim.qvel[:, 3:] @ R.reshape(3, 3)
        return mass * ((v**2).sum(1) / 2 + GRAVITY * (sim.qpos[:, 2] - radius)) + (w**2 @ inertia) / 2

    energies, deepest = [energy()], 0
    for _ in range(60):
        for _ in range(5):
            sim.step(round(seconds / 300 / h))
            deepest = max(deepest, sim.certificate.penetration.max())
        energies.append(energy())
    return np.array(energies), deepest


@pytest.mark.parametrize("h, dtype", [(0.0005, "float64"), (0.001, "float32"), (0.002, "float64"), (0.005, "float32")])
@pytest.mark.parametrize("size", [(0.05, 0.08), (0.1, 0.02), (0.01, 0.03)])
def test_capsules_that_whirl_on_an_end_gain_nothing(size, h, dtype):
    """They had no bend and gained up to 5.6 % of their energy, steadily. An end with a bend, where the other that comes
    down has none, sinks in by what neither its bend nor its turn moves it by."""
    energy, deepest = thrown_capsules(*size, h, dtype)
    rise = ((energy - np.minimum.accumulate(energy, 0)) / energy[0]).max(0)
    print(f"\ncapsules {size}, {1e3 * h:g} ms, {dtype}: rise {rise.max():.4f}, {1e3 * deepest:.3f} mm deep")
    assert rise.max() < (0.003 if h < 0.005 else 0.006)
    assert deepest < (1e-4 if h < 0.005 else 8e-4)


LOADED = {  # geoms that roll off the centre of mass, and how high they stand
    "sphere": ('type="sphere" size=".1"', 0.1),
    "ellipsoid": ('type="ellipsoid" size=".1 .1 .1"', 0.1),
    "slim ellipsoid": ('type="ellipsoid" size=".1 .1 .08"', 0.08),
    "long cylinder": ('type="cylinder" size=".04 .1"', 0.1),
    "capsule": ('type="capsule" size=".06 .04"', 0.1),
}


@pytest.mark.parametrize("kind", LOADED)
@pytest.mark.parametrize("h", [0.002, 0.005])
def test_the_bends_of_what_rolls_are_the_oracles(h, kind):
    reference = pytest.importorskip("stiction_reference")
    geom, radius = LOADED[kind]
    model = stiction.Model.from_mjcf(f"""<mujoco><option timestep="{h}"/><worldbody>
        <geom type="plane" size="1 1 1" friction="1"/><body pos="0 0 {radius}"><freejoint/>
        <geom {geom} mass="1"/><geom size=".02" pos=".05 .01 -.02" mass="1" contype="0"
        conaffinity="0"/></body></worldbody></mujoco>""")
    sim, oracle = stiction.Simulation(model, 1, dtype="float64"), reference.Model(model.to_arrays())
    spin = np.array([5.0, 20, 3])
    sim.qvel[0] = [*np.cross(spin, radius * UP), *spin]
    bends = []
    for _ in range(100):
        q, v = sim.qpos[0].copy(), sim.qvel[0].copy()
        sim.step()
        if sim.contact.count[0] == 0:
            continue
        owed, contacts = sim._world.previous_states()[2][0], found_contacts(sim)
        expected = reference.assemble(oracle, q, v, np.zeros(0), contacts, "implicit", h, 0.2, 1.0, owed=owed)
        found = sim.contact_problem(0).arrays()
        np.testing.assert_allclose(found["e"], np.ravel(expected["e"]).reshape(found["e"].shape), atol=1e-9)
        bends.append(np.abs(found["e"].ravel()[:2]).max())
    assert len(bends) > 20 and max(bends) > 1e-3


@pytest.mark.parametrize("h", [0.0005, 0.001, 0.002])
def test_a_tippe_top_turns_over_and_stays(h):
    """A ball with its ballast below the middle, spun at 200 rad/s and pushed: its friction lifts the ballast. At 2 ms
    it had fallen back after nine seconds, and four fifths of its energy were gone."""
    m = mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep="{h}"/><worldbody>
        <geom type="plane" size="1 1 1"/><body pos="0 0 .02"><freejoint/><geom type="sphere" size=".02"/>
        <geom type="cylinder" size=".004 .008" pos="0 0 .02" contype="0" conaffinity="0"/>
        <geom type="box" size=".023 .023 .005" pos="0 0 -.015" contype="0" conaffinity="0"/></body>
        </worldbody></mujoco>""")
    m.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    sim, d = stiction.Simulation(stiction.Model.from_mjmodel(m), 1, num_threads=1), mujoco.MjData(m)
    sim.qvel[0] = [0.01, 0.02, 0, 0, 40, 200]
    ups, energy = [], []
    for _ in range(18):
        sim.step(round(0.5 / h))
        _, x, y, _ = sim.qpos[0, 3:]
        ups.append(1 - 2 * (x * x + y * y))
        d.qpos[:], d.qvel[:] = sim.qpos[0], sim.qvel[0]
        mujoco.mj_forward(m, d)
        energy.append(d.energy.sum())
    print(f"\ntippe top, {1e3 * h:g} ms: up {np.round(ups, 2)}, {energy[1]:.3f} J after 1 s, {energy[-1]:.3f} after 9")
    assert ups[0] > 0 and max(ups[1:]) < -0.7
    assert energy[-1] > 0.8 * energy[1]
