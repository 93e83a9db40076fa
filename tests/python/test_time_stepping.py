"""The theta method: what each scheme is by its equations, its order, its energy, and rest in contact under all of them.

[Castro2023] section II, docs/theory.md section 2. The oracle of the equations is written with MuJoCo's functions alone.
"""

import functools
import math

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

import stiction  # noqa: E402
from scenes import GRAVITY, body, box, scene  # noqa: E402
from stiction import Model, Simulation, SolverOptions, Status  # noqa: E402
from test_spinning import BODIES, momentum, thrown  # noqa: E402

#: (theta, theta_vq); "euler" is (0, 1) but for joint damping, "implicit" one Newton step of (1, 1).
THETA = {"explicit_euler": (0, 0), "implicit_euler": (1, 1), "midpoint": (0.5, 0.5)}
NEW = pytest.mark.parametrize("integrator", THETA)
EVERY = pytest.mark.parametrize("integrator", ["implicit", "euler", *THETA])
DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])
EXACT = SolverOptions(tolerance=1e-12, iterations=3000, penetration_allowance=0)


def simulation(xml, integrator, h=None, num_envs=1, dtype="float64", **options):
    options = {"num_threads": 1} | options
    return Simulation(Model.from_mjcf(xml), num_envs, dtype=dtype, timestep=h, integrator=integrator, **options)


# ---- the equations

#: Free bodies as trunk and as limb, centres of mass off their origins; ball joints, springs, dampers, servos.
ZOO = """<mujoco><option gravity="1 -2 -9"><flag contact="disable"/></option><worldbody>
  <body pos="0 0 1"><freejoint/><geom type="box" size=".05 .1 .2" mass="1" pos=".1 .05 0" euler="20 30 40"/>
    <body pos=".1 0 .1"><joint name="a" axis="0 1 .3" stiffness="3" damping=".2" armature=".01"/>
      <geom type="capsule" fromto="0 0 0 .2 0 .1" size=".03" mass=".4"/>
      <body pos=".2 0 .1"><joint name="b" axis="1 0 0" damping=".05"/>
        <geom type="capsule" fromto="0 0 0 0 .2 .1" size=".02" mass=".2"/></body></body>
    <body pos="-.1 0 0"><joint type="ball" stiffness="2" damping=".02"/>
      <geom type="capsule" fromto="0 0 0 -.2 .1 .1" size=".03" mass=".3"/></body></body>
  <body pos="1 0 1"><joint type="free" stiffness="5" damping=".3"/>
    <geom type="box" size=".05 .1 .2" mass="1" pos=".1 .05 0" euler="20 30 40"/></body>
  <body pos="2 0 1"><joint name="s" axis="0 1 0" damping=".1"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.5" size=".03" mass="1"/>
    <body pos="0 0 -.5"><joint name="e" axis="0 1 .2"/>
      <geom type="capsule" fromto="0 0 0 .1 0 -.4" size=".03" mass=".5"/></body></body>
  <body pos="3 0 1"><joint type="ball"/><geom type="capsule" fromto="0 0 0 .1 .2 -.4" size=".03" mass=".5"/></body>
</worldbody><actuator><position joint="s" kp="20" kv="1"/><velocity joint="e" kv=".5"/><motor joint="a" gear="2"/>
  <motor joint="b"/></actuator></mujoco>"""


def step_by_the_equations(m, q0, v0, loads, h, theta, theta_vq):
    """Newton with differences on M(q_t) (v - v0) = h k(q_t, v_t), every term MuJoCo's."""
    d = mujoco.MjData(m)

    def moved(v, time):
        q = q0.copy()
        mujoco.mj_integratePos(m, q, theta_vq * v + (1 - theta_vq) * v0, time)
        return q

    def lacking(v):
        d.qpos[:], d.qvel[:] = moved(v, theta * h), theta * v + (1 - theta) * v0
        d.ctrl[:], d.qfrc_applied[:], d.xfrc_applied[1:] = loads
        mujoco.mj_forward(m, d)
        M = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, d, M)
        return M @ (v - v0) - h * d.qfrc_smooth

    v = v0.copy()
    for _ in range(20):
        slope = np.stack([(lacking(v + 1e-6 * e) - lacking(v - 1e-6 * e)) / 2e-6 for e in np.eye(m.nv)], 1)
        change = np.linalg.solve(slope, -lacking(v))
        v += change
        if abs(change).max() < 1e-13:
            break
    return moved(v, h), v


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 2e-10), ("float32", 1e-2)])
@pytest.mark.parametrize("h", [0.002, 0.01])
@NEW
def test_steps_solve_the_equations_of_the_theta_method(integrator, h, dtype, bound):
    m = mujoco.MjModel.from_xml_string(ZOO)
    rng = np.random.default_rng(0)
    q, v = m.qpos0.copy(), 1.5 * rng.standard_normal(m.nv)
    loads = [part * rng.standard_normal(shape) for part, shape in ((0.5, m.nu), (0.01, m.nv), (0.01, (m.nbody - 1, 6)))]
    mujoco.mj_integratePos(m, q, rng.standard_normal(m.nv), 0.5)
    sim = simulation(ZOO, integrator, h, dtype=dtype)
    sim.qpos[:], sim.qvel[:] = q, v
    sim.ctrl[:], sim.qfrc_applied[:], sim.xfrc_applied[:, 1:] = loads
    found = []
    for _ in range(20):
        q, v = step_by_the_equations(m, q, v, loads, h, *THETA[integrator])
        sim.step()
        found.append(max(abs(sim.qpos[0] - q).max(), abs(sim.qvel[0] - v).max()))
    print(f"{integrator}, {h}, {dtype}: {max(found):.1e} from the equations")
    assert max(found) < bound and not sim.status.any()


def test_a_step_that_newton_cannot_solve_is_flagged():
    """Two links that turn by five radians within a step."""
    rods = """<mujoco><option gravity="0 0 0"><flag contact="disable"/></option><worldbody>
      <body><joint axis="0 0 1"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
        <body pos=".3 0 0"><joint axis="0 0 1"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/></body></body>
    </worldbody></mujoco>"""
    sim = simulation(rods, "midpoint", 0.05, 2)
    sim.qvel[:] = [(10, -20), (100, -200)]
    sim.step()
    assert sim.status[0] == 0 and sim.status[1] & Status.NOT_CONVERGED and np.isfinite(sim.qvel).all()


# ---- energy and order

SPRING = """<mujoco><option gravity="0 0 0"/><worldbody><body><joint type="slide" stiffness="100"/>
  <geom type="sphere" size=".05" mass=".5" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
LENGTH = 0.5
#: All its mass at the end.
PENDULUM = f"""<mujoco><worldbody><body><joint axis="0 1 0"/>
  <inertial pos="0 0 {-LENGTH}" mass="1" diaginertia="1e-9 1e-9 1e-9"/></body></worldbody></mujoco>"""


def track(sim, steps):
    """(steps + 1, num_envs, nq), (steps + 1, num_envs, nv)."""
    q, v = [sim.qpos.copy()], [sim.qvel.copy()]
    for _ in range(steps):
        sim.step()
        q.append(sim.qpos.copy()), v.append(sim.qvel.copy())
    return np.array(q), np.array(v)


@EVERY
def test_the_energy_of_a_spring_is_that_of_its_scheme(integrator):
    """x0 = 0.1 m, 100 N/m, 0.5 kg: factors (1 + w^2 h^2)^n, its inverse, the band of symplectic Euler, and 1."""
    h, n = 0.02, 100
    sim = simulation(SPRING, integrator, h)
    sim.qpos[:] = 0.1
    q, v = track(sim, n)
    energy, factor = (100 * q**2 + 0.5 * v**2).ravel(), (1 + 200 * h**2) ** n
    print(f"{integrator}: end {energy[-1]:.6g}, band {np.ptp(energy):.6f}")
    if integrator == "euler":
        assert np.ptp(energy) == pytest.approx(0.2886, abs=2e-4)
    else:
        expected = {"explicit_euler": factor, "midpoint": 1}.get(integrator, 1 / factor)
        assert energy[-1] == pytest.approx(expected, rel=1e-10)
    if integrator == "midpoint":
        assert np.ptp(energy) < 1e-13


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_midpoint_keeps_the_energy_of_a_spring_for_an_hour(dtype):
    sim = simulation(SPRING, "midpoint", 0.02, dtype=dtype)
    sim.qpos[:] = 0.1
    sim.step(180_000)
    energy = 100 * float(sim.qpos[0, 0]) ** 2 + 0.5 * float(sim.qvel[0, 0]) ** 2
    print(f"{dtype}: {energy - 1:.1e}")
    assert energy == pytest.approx(1, abs={"float64": 1e-10, "float32": 1e-2}[dtype])


def test_midpoint_keeps_the_energy_of_a_pendulum():
    """From 2 rad: the error swings with the pendulum, as h^2, and does not grow in 20,000 steps."""
    swing = {}
    for h in (0.01, 0.005):
        sim = simulation(PENDULUM, "midpoint", h)
        sim.qpos[:] = 2.0
        q, v = track(sim, 20_000)
        energy = (LENGTH**2 * v[..., 0] ** 2 / 2 - GRAVITY * LENGTH * np.cos(q[..., 0])) / (GRAVITY * LENGTH)
        error = abs(energy - energy[0])
        first, last = error[:2000].max(), error[-2000:].max()
        print(f"h {h}: error {first:.2e} in the first tenth, {last:.2e} in the last")
        assert last < 1.05 * first
        swing[h] = last
    assert swing[0.01] / swing[0.005] == pytest.approx(4, rel=0.05)


GRID = 0.02 * np.arange(1, 51)  # s


@functools.cache
def pendulum_truth(angle):
    """At GRID, by Runge and Kutta's method of fourth order."""
    x, h, found = np.array([angle, 0.0]), 1e-4, []

    def slope(x):
        return np.array([x[1], -GRAVITY / LENGTH * math.sin(x[0])])

    for k in range(round(GRID[-1] / h)):
        a = slope(x)
        b = slope(x + h / 2 * a)
        c = slope(x + h / 2 * b)
        x = x + h / 6 * (a + 2 * b + 2 * c + slope(x + h * c))
        if (k + 1) % 200 == 0:
            found.append(x[0])
    return np.array(found)


def order(steps, errors):
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


@EVERY
@pytest.mark.parametrize("name", ["spring", "pendulum"])
def test_midpoint_is_of_second_order_and_the_rest_of_first(name, integrator):
    steps = np.array([0.02, 0.01, 0.005, 0.0025]) / (1 if integrator == "midpoint" else 20)
    xml, start = {"spring": (SPRING, 0.1), "pendulum": (PENDULUM, 1.5)}[name]
    truth = 0.1 * np.cos(math.sqrt(200) * GRID) if name == "spring" else pendulum_truth(start)
    errors = []
    for h in steps:
        sim = simulation(xml, integrator, float(h))
        sim.qpos[:] = start
        found = []
        for _ in GRID:
            sim.step(round(0.02 / h))
            found.append(sim.qpos[0, 0])
        errors.append(abs(np.array(found) - truth).max())
    print(f"{name}, {integrator}: order {order(steps, errors):.3f}, errors " + " ".join(f"{e:.1e}" for e in errors))
    low, high = (1.95, 2.05) if integrator == "midpoint" else (0.95, 1.05)
    assert low < order(steps, errors) < high


#: Six hinges without damping, as a robot has them.
ARM = "<mujoco><option><flag contact='disable'/></option><worldbody>{}</worldbody></mujoco>".format(
    "".join(
        f"<body pos='0 0 {0.25 if i else 0}'><joint axis='{axis}' armature='.1'/>"
        f"<geom type='capsule' fromto='0 0 0 {x} 0 .25' size='{0.05 - 0.005 * i}' mass='{4 - 0.5 * i}'/>"
        for i, (axis, x) in enumerate(
            [("0 0 1", 0), ("0 1 0", 0.1), ("0 1 0", 0), ("1 0 0", 0.05), ("0 1 0", 0), ("0 0 1", 0.1)]
        )
    )
    + "</body>" * 6
)


def energies_of(m, q, v):
    d = mujoco.MjData(m)
    m.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    found = []
    for qi, vi in zip(q, v, strict=True):
        d.qpos[:], d.qvel[:] = qi, vi
        mujoco.mj_forward(m, d)
        found.append(d.energy.sum())
    return np.array(found)


def test_midpoint_keeps_the_energy_of_an_arm_beside_mujoco():
    """20 s of tumbling at 2 ms. Drift: of the mean of the last 2 s from the start, over the mean kinetic energy."""
    h, seconds, start = 0.002, 20, np.array([0.3, 0.4, -0.3, 0.2, 0.5, 0.1])
    m = mujoco.MjModel.from_xml_string(ARM)
    n, last, drift = round(seconds / h), round(2 / h), {}

    def judge(name, q, v):
        energy = energies_of(m, q[::10], v[::10])
        kinetic = energy - energies_of(m, q[::10], 0 * v[::10])
        drift[name] = (energy[-last // 10 :].mean() - energy[0]) / kinetic.mean()
        print(f"{name}: drift {drift[name]:+.1e}, worst {abs(energy - energy[0]).max() / kinetic.mean():.1e}")

    for integrator in ("implicit", "implicit_euler", "midpoint"):
        sim = simulation(ARM, integrator, h)
        sim.qpos[:] = start
        q, v = track(sim, n)
        judge(integrator, q[:, 0], v[:, 0])
    assert not sim.status.any()
    for name in ("IMPLICITFAST", "RK4"):
        m.opt.integrator, m.opt.timestep = getattr(mujoco.mjtIntegrator, "mjINT_" + name), h
        d = mujoco.MjData(m)
        d.qpos[:] = start
        q, v = np.zeros((n, m.nq)), np.zeros((n, m.nv))
        for k in range(n):
            mujoco.mj_step(m, d)
            q[k], v[k] = d.qpos, d.qvel
        judge("mujoco " + name, q, v)
    assert abs(drift["midpoint"]) < 1e-3 and abs(drift["implicit"]) < 5e-3
    assert min(abs(drift[name]) for name in ("implicit_euler", "mujoco IMPLICITFAST")) > 0.1


@pytest.mark.parametrize(
    "beside", ["", "<body pos='9 0 0'><freejoint/><geom type='box' size='.2 .2 .2' mass='20'/></body>"]
)
@pytest.mark.parametrize("name", ["plate", "pen", "brick", "T-handle", "lump"])
def test_what_spins_freely_keeps_its_energy_under_midpoint(name, beside):
    """Exactly where its origin is its centre, else swinging by the square of the step; as the trunk of a model and as a
    limb beside one."""
    swing, turn = {}, {}
    geoms, w = {**BODIES, "brick": ('<geom type="box" size=".05 .1 .2" mass="1"/>', (10, -3, 5))}[name]
    for h in (0.004, 0.002):
        sim = simulation(thrown(geoms, h, beside=beside), "midpoint")
        m = sim.model.mjmodel
        sim.qvel[:, 3:6] = w
        energy0, L0 = momentum(m, sim.qpos[0], sim.qvel[0])
        found = []
        for _ in range(round(4 / h / 10)):
            sim.step(10)
            energy, L = momentum(m, sim.qpos[0], sim.qvel[0])
            found.append((energy / energy0 - 1, np.linalg.norm(L - L0) / np.linalg.norm(L0)))
        swing[h], turn[h] = abs(np.array(found)).max(axis=0)
        assert not sim.status.any()
    print(f"{name}: energy {swing}, turn of L {turn}")
    if name in ("plate", "pen", "brick"):
        assert swing[0.004] < 1e-11
    else:
        assert 3 < swing[0.004] / swing[0.002] < 5 and swing[0.004] < 1e-2
    assert 3 < turn[0.004] / turn[0.002] < 5


# ---- tendons: rows of the contact problem

TENDON = """<mujoco><option gravity="0 0 0"/><worldbody>
  <body><joint name="a" type="slide"/><geom type="sphere" size=".05" mass=".5" contype="0" conaffinity="0"/></body>
  <body><joint name="b" type="slide"/><geom type="sphere" size=".05" mass="1" contype="0" conaffinity="0"/></body>
</worldbody><tendon><fixed {spring}><joint joint="a" coef="1"/><joint joint="b" coef="-1"/></fixed></tendon></mujoco>"""


def test_tendons_follow_the_scheme():
    """Of two masses, 1/3 kg reduced: springs keep their energy, dampers take (2 m - h d) / (2 m + h d) in a step."""
    sim = simulation(TENDON.format(spring='stiffness="100" springlength="0"'), "midpoint", 0.02, solver=EXACT)
    sim.qpos[:] = (0.1, -0.05)
    q, v = track(sim, 200)
    energy = 50 * (q[:, 0, 0] - q[:, 0, 1]) ** 2 + 0.25 * v[:, 0, 0] ** 2 + 0.5 * v[:, 0, 1] ** 2
    assert np.ptp(energy) < 1e-9 * energy[0]
    for integrator, (theta, _) in THETA.items():
        sim = simulation(TENDON.format(spring='damping="4"'), integrator, 0.02, solver=EXACT)
        sim.qvel[:, 0] = 1
        sim.step()
        expected = (1 - (1 - theta) * 0.24) / (1 + theta * 0.24)
        assert sim.qvel[0, 0] - sim.qvel[0, 1] == pytest.approx(expected, rel=1e-9)


# ---- contact

#: A cylinder on the floor, held by a spring: it rolls. Its outline is a sphere's: one contact.
ROLLING = """<mujoco><worldbody><geom type="plane" size="0 0 1" friction="1"/>
  <body pos="0 0 .05"><joint type="slide" axis="1 0 0" stiffness="100"/><joint type="slide" axis="0 0 1"/>
    <joint axis="0 1 0"/><inertial pos="0 0 0" mass=".5" diaginertia=".001 .000625 .001"/>
    <geom type="sphere" size=".05" friction="0"/></body></worldbody></mujoco>"""


def rolled(integrator, h, seconds, **options):
    """Time, position of the centre, energy over the first."""
    sim = simulation(ROLLING, integrator, h, solver=SolverOptions(tolerance=1e-12, iterations=3000, **options))
    sim.qpos[:, 0] = 0.1
    q, v = track(sim, round(seconds / h))
    assert not sim.status.any()
    energy = 100 * q[:, 0, 0] ** 2 + 0.5 * v[:, 0, 0] ** 2 + 0.000625 * v[:, 0, 2] ** 2
    return h * np.arange(len(q)), q[:, 0, 0], energy, sim


def test_what_rolls_keeps_its_energy_under_midpoint():
    _, _, energy, _ = rolled("midpoint", 0.02, 4, penetration_allowance=0)
    assert np.ptp(energy) < 1e-13
    _, _, energy, _ = rolled("midpoint", 0.02, 4)
    assert np.ptp(energy) < 1e-6


def test_regularised_friction_takes_what_it_should_of_what_rolls():
    """R_t F^2 h in a second, F a third of what the spring pulls with: R_t h k_s / 9 of the energy, but for (w h)^2."""
    h = 0.01
    _, _, energy, sim = rolled("midpoint", h, 4, tangential_compliance=1e-3, penetration_allowance=0)
    expected = sim.contact_problem(0).R[0] * h * 100 / 9
    rate = -np.polyfit(h * np.arange(len(energy)), np.log(energy), 1)[0]
    print(f"loses {rate:.3e} of its energy in a second, {expected:.3e} by the formula")
    assert rate == pytest.approx(expected, rel=0.01)
    assert np.diff(energy).max() < 1e-7


@pytest.mark.parametrize(
    ("integrator", "coarsest"), [("midpoint", 0.02), ("euler", 0.0025), ("implicit_euler", 0.0006)]
)
def test_what_rolls_is_of_the_order_of_its_scheme(integrator, coarsest):
    steps = coarsest / 2.0 ** np.arange(4)
    w = math.sqrt(100 / (0.5 + 0.000625 / 0.05**2))
    errors = []
    for h in steps:
        t, x, _, _ = rolled(integrator, h, 1, penetration_allowance=0)
        errors.append(abs(x - 0.1 * np.cos(w * t)).max())
    print(f"rolling, {integrator}: order {order(steps, errors):.3f}, errors " + " ".join(f"{e:.1e}" for e in errors))
    low, high = (1.95, 2.05) if integrator == "midpoint" else (0.95, 1.1)
    assert low < order(steps, errors) < high


@DTYPES
@pytest.mark.parametrize("h", [0.002, 0.01])
@EVERY
def test_a_box_that_falls_comes_to_rest_and_stays(integrator, h, dtype):
    xml = scene(body("box", (0, 0, 0.3), box(0.1), 2.0, quat=(0.96, 0.1, 0.2, 0.05)), timestep=h)
    sim = simulation(xml, integrator, dtype=dtype)
    sim.qvel[:, 0] = 1
    overlap = []
    for _ in range(round(4 / h)):
        sim.step()
        overlap.append(sim.certificate.penetration[0])
    at = sim.qpos.copy()
    sim.step(round(2 / h))
    moved = abs(sim.qpos - at)[0, :3].max()
    print(f"{integrator}, {h}, {dtype}: overlaps by {max(overlap) * 1e3:.3f} mm at most, moves {moved:.1e} m in 2 s")
    assert max(overlap) < 2e-5 + GRAVITY * h**2  # it comes with 2 m/s
    assert moved < 1e-6 and abs(sim.qvel).max() < 1e-4 and sim.qpos[0, 2] == pytest.approx(0.1, abs=2e-6)
    assert not (sim.status & ~np.int32(Status.FALLBACK)).any()


@EVERY
def test_what_lands_flat_and_slides_to_rest_neither_bounces_nor_turns_back(integrator):
    """v0 is not to return with the other sign, as it would if the law of contact were on the mean of velocities."""
    h = 0.005
    sim = simulation(scene(body("box", (0, 0, 0.15), box(0.1), 2.0), timestep=h), integrator, solver=EXACT)
    sim.qvel[:, 0] = 1
    _, v = track(sim, round(2 / h))
    assert v[:, 0, 2].min() < -0.9
    assert v[:, 0, 2].max() < 1e-9 and v[:, 0, 0].min() > -1e-9
    assert abs(v[-1]).max() < 1e-9


@EVERY
def test_what_is_thrown_down_bounces_by_its_restitution(integrator):
    xml = scene(body("ball", (0, 0, 0.55), 'type="sphere" size=".05"', 1.0), timestep=0.001)
    model = Model.from_mjcf(xml).with_restitution(0.5)
    sim = Simulation(model, 1, dtype="float64", integrator=integrator, num_threads=1)
    q, v = track(sim, 700)
    hit = np.argmax(v[:, 0, 2] > 0)
    within = 0.05 if integrator == "explicit_euler" else 0.02  # which gains energy while it flies
    assert q[hit:, 0, 2].max() - 0.05 == pytest.approx(0.25 * 0.5, rel=within)


@pytest.mark.parametrize("integrator", ["midpoint", "implicit_euler"])
@pytest.mark.parametrize(("task", "part"), [("stiction/Ant-v0", 1.0), ("stiction/QuadrupedVelocity-v0", 0.3)])
def test_robots_that_flail_stay_finite_and_converged(task, part, integrator):
    env = stiction.make_vec(task, 32, device="cpu", integrator=integrator, num_threads=1)
    env.reset(seed=3)
    rng = np.random.default_rng(0)
    bits, overlap = 0, []
    for _ in range(100):
        env.step((part * rng.uniform(-1, 1, env.action_space.shape)).astype(np.float32))
        bits |= int(np.bitwise_or.reduce(env.simulation.status))
        overlap.append(float(env.simulation.certificate.penetration.max()))
    print(f"{task}, {integrator}: status {bits}, deepest overlap {np.median(overlap) * 1e3:.2f} mm in the median step")
    assert bits & ~Status.FALLBACK == 0
    assert np.median(overlap) < 0.01


@EVERY
def test_a_quadruped_stands(integrator):
    """6 s on servos that hold its home position."""
    env = stiction.make_vec("stiction/QuadrupedVelocity-v0", 8, device="cpu", integrator=integrator, num_threads=1)
    env.reset(seed=0)
    sim, ended = env.simulation, 0
    for _ in range(300):
        _, _, terminated, _, _ = env.step(np.zeros(env.action_space.shape, np.float32))
        ended += terminated.sum()
        assert not sim.status.any()
    height, speed = sim.qpos[:, 2].mean(), abs(sim.qvel).max()
    print(f"{integrator}: stands at {height:.4f} m, moves at {speed:.2f} rad/s")
    assert ended == 0 and height == pytest.approx(0.563, abs=0.002) and speed < 0.2


# ---- of a simulation

DROPPED = scene(body("box", (0, 0, 0.25), box(0.1), 2.0) + body("ball", (0, 0, 0.5), 'type="sphere" size=".05"', 1.0))


@DTYPES
@NEW
@pytest.mark.parametrize("xml", [ZOO, DROPPED], ids=["zoo", "dropped"])
def test_each_world_of_a_batch_steps_as_it_would_alone(xml, integrator, dtype):
    """Newton takes more iterations in some than in others, and some hit the floor."""
    rng, count, steps = np.random.default_rng(5), 19, 30
    together = simulation(xml, integrator, 0.01, count, dtype)
    together.qvel[:] = np.geomspace(0.1, 20, count)[:, None] * rng.standard_normal(together.qvel.shape)
    start = together.qvel.copy()
    together.step(steps)
    assert xml is ZOO or 0 < (together.certificate.num_contacts > 0).sum() < count
    for i in range(count):
        alone = simulation(xml, integrator, 0.01, 1, dtype)
        alone.qvel[:] = start[i]
        alone.step(steps)
        np.testing.assert_array_equal(alone.qpos[0], together.qpos[i])
        np.testing.assert_array_equal(alone.qvel[0], together.qvel[i])


@NEW
def test_inverse_dynamics_makes_the_step_accelerate_so(integrator):
    sim = simulation(ZOO, integrator, 0.005)
    rng = np.random.default_rng(1)
    sim.qvel[:] = 3 * rng.standard_normal(sim.qvel.shape)
    before, qacc = sim.qvel.copy(), 5 * rng.standard_normal(sim.qvel.shape)
    sim.qfrc_applied[:] = sim.inverse_dynamics(qacc).qfrc
    sim.step()
    assert abs((sim.qvel - before) / 0.005 - qacc).max() < 1e-8


def test_a_position_actuator_at_its_limit_is_a_constant_force():
    xml = """<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="x" type="slide"/>
      <geom type="sphere" size=".05" mass="2" contype="0" conaffinity="0"/></body></worldbody>
      <actuator><position joint="x" kp="1000" kv="10" forcerange="-3 3"/></actuator></mujoco>"""
    for integrator, (_, theta_vq) in THETA.items():
        sim = simulation(xml, integrator, 0.01)
        sim.ctrl[:] = 1
        sim.step(10)
        v = 0.01 * 1.5 * np.arange(11)
        assert sim.qvel[0, 0] == pytest.approx(v[-1], rel=1e-12)
        assert sim.qpos[0, 0] == pytest.approx(0.01 * (theta_vq * v[1:] + (1 - theta_vq) * v[:-1]).sum(), rel=1e-12)
