"""What is carried stays where it lies, however fast it is turned: docs/theory.md, section 3.3."""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from stiction import Model, Simulation, SolverOptions  # noqa: E402

DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])

TABLE = """<mujoco><option timestep="{h}" integrator="{integrator}"/><default><geom friction="1 0 0"/></default>
  <worldbody>
  <body name="table"><joint name="turn" axis="0 0 1"/><geom type="cylinder" size=".6 .02" mass="20"/></body>
  <body name="below" pos=".3 0 .045"><freejoint/><geom type="box" size=".025 .025 .025" mass=".1" {offset}/></body>
  <body name="above" pos=".3 0 .08"><freejoint/><geom type="box" size=".02 .02 .01" mass=".02"/></body></worldbody>
  <actuator><velocity joint="turn" kv="1000"/></actuator></mujoco>"""

# An arm that swings a box about a vertical axis between two jaws, which press along the tangent.
SWING = """<mujoco><option timestep="{h}"/><default><geom friction="1 0 0"/></default><worldbody>
  <body name="arm"><joint name="turn" axis="0 0 1"/><geom type="capsule" size=".02" fromto="0 0 .2 .4 0 .2" mass="2"
      contype="0" conaffinity="0"/>
    <body name="left" pos=".4 -.03 0"><joint name="left" type="slide" axis="0 1 0"/>
      <geom type="box" size=".02 .005 .02" mass=".1"/></body>
    <body name="right" pos=".4 .03 0"><joint name="right" type="slide" axis="0 -1 0"/>
      <geom type="box" size=".02 .005 .02" mass=".1"/></body></body>
  <body name="box" pos=".4 0 0"><freejoint/><geom type="box" size=".025 .025 .025" mass=".1"/></body></worldbody>
  <equality><joint joint1="left" joint2="right"/></equality>
  <actuator><velocity joint="turn" kv="1000"/>
    <motor joint="left"/><motor joint="right"/></actuator></mujoco>"""


def in_frame(sim, name, of):
    """The position of a body as another sees it, (num_envs, 3) m."""
    body, frame = sim.model.body_id(name), sim.model.body_id(of)
    w, x, y, z = sim.xquat[:, frame].astype(float).T
    R = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                  [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                  [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])  # fmt: skip
    return np.einsum("jie,ej->ei", R, sim.xpos[:, body].astype(float) - sim.xpos[:, frame].astype(float))


def turned(sim, ctrl, speed, names, of, seconds=2.0):
    """How far bodies move in the frame of another that reaches its speed in a second, in the time after."""
    steps = round(1 / sim.timestep)
    for k in range(steps):
        sim.ctrl[:] = [speed * (k + 1) / steps, *ctrl]
        sim.step()
    before = [in_frame(sim, name, of) for name in names]
    for _ in range(round(seconds / sim.timestep)):
        sim.step()
    return max(np.abs(in_frame(sim, name, of) - x).max() for name, x in zip(names, before, strict=True))


def drift_in_mujoco(mjmodel, speed, seconds=2.0):
    """The same of the lower box in MuJoCo, with its firmest friction; m."""
    mjmodel.opt.cone, mjmodel.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 100
    mjmodel.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data, h, places = mujoco.MjData(mjmodel), mjmodel.opt.timestep, []
    table, box = data.body("table"), data.body("below")
    for k in range(round((1 + seconds) / h)):
        data.ctrl[:] = speed * min(1, (k + 1) * h)
        mujoco.mj_step(mjmodel, data)
        places.append(table.xmat.reshape(3, 3).T @ (box.xpos - table.xpos))
    return np.abs(places[-1] - places[round(1 / h) - 1]).max()


@DTYPES
@pytest.mark.parametrize("integrator", ["implicitfast", "Euler"])
@pytest.mark.parametrize(("h", "most"), [(0.002, 5e-5), (0.01, 1e-3)])
def test_a_stack_stays_on_a_turntable(dtype, integrator, h, most):
    """At 4 rad/s the chords of 2 ms took it out by 4.8 mm a second, of 10 ms by 24."""
    model = Model.from_mjcf(TABLE.format(h=h, integrator=integrator, offset=""))
    drift = turned(Simulation(model, 1, dtype=dtype), [], 4.0, ["below", "above"], "table")
    theirs = drift_in_mujoco(model.mjmodel, 4.0)
    print(f"{1e6 * drift:.1f} um, MuJoCo {1e3 * theirs:.0f} mm")
    assert drift <= most


@DTYPES
def test_where_the_frame_of_a_body_is_does_not_matter(dtype):
    model = Model.from_mjcf(TABLE.format(h=0.002, integrator="implicitfast", offset='pos=".01 -.01 0"'))
    assert turned(Simulation(model, 1, dtype=dtype), [], 4.0, ["below", "above"], "table") <= 5e-5


@DTYPES
@pytest.mark.parametrize(("h", "most"), [(0.002, 1e-4), (0.005, 1e-3)])
def test_a_box_stays_in_a_grip_that_swings(dtype, h, most):
    """It takes 3.6 N of 10 to hold it on a circle; the chords alone took it out by 14 and 36 mm a second at 6 rad/s."""
    sim = Simulation(Model.from_mjcf(SWING.format(h=h)), 1, dtype=dtype)
    drift = turned(sim, [10.0, 10.0], 6.0, ["box"], "arm")
    print(f"{1e6 * drift:.1f} um")
    assert drift <= most


# An arm that turns about the axis along which its pads pinch something at its end.
PINCH = """<mujoco><option timestep="{h}" gravity="0 0 0"/><default><geom friction="1 0 0"/></default><worldbody>
  <body name="arm"><joint name="turn" axis="0 1 0"/><geom type="box" size=".25 .01 .02" pos=".25 .1 0" mass="1"
      contype="0" conaffinity="0"/><geom type="box" size=".02 .005 .02" pos=".5 .03 0" mass=".1"/>
    <body pos=".5 -.03 0"><joint name="pad" type="slide" axis="0 1 0"/>
      <geom type="box" size=".02 .005 .02" mass=".1"/></body></body>
  <body name="held" pos=".5 0 0"><freejoint/><geom {held} mass=".05"/></body></worldbody>
  <actuator><velocity joint="turn" kv="1000"/><motor joint="pad"/></actuator></mujoco>"""


@DTYPES
@pytest.mark.parametrize(("h", "most"), [(0.002, 5e-5), (0.005, 2e-4), (0.01, 5e-4)])
@pytest.mark.parametrize("held", ['size=".025"', 'type="ellipsoid" size=".03 .025 .03"'], ids=["ball", "ellipsoid"])
def test_a_ball_stays_in_a_grip_that_turns_about_its_axis(held, h, most, dtype):
    """It does not turn with the hand: at 3 rad/s it went 4.5 mm a second at 2 ms, and at 10 ms out of the pads."""
    sim = Simulation(Model.from_mjcf(PINCH.format(h=h, held=held)), 1, dtype=dtype)
    drift = turned(sim, [20.0], 3.0, ["held"], "arm")
    print(f"{1e6 * drift:.1f} um")
    assert drift <= most


def test_what_rolls_has_no_bend():
    """A box on driven rollers travels as fast as they turn, and neither hops nor sinks."""
    rollers = "".join(
        f'<body pos="{0.1 * k} 0 0"><joint name="r{k}" axis="0 1 0"/><geom type="cylinder" size=".03 .2" euler="90 0 0"'
        ' mass="1"/></body>'
        for k in range(12)
    )
    model = Model.from_mjcf(
        '<mujoco><option timestep=".002"/><default><geom friction="1 0 0"/></default><worldbody>'
        f'{rollers}<body name="box" pos=".15 0 .05"><freejoint/><geom type="box" size=".12 .1 .02" mass="1"/></body>'
        + "</worldbody><actuator>" + "".join(f'<velocity joint="r{k}" kv="10"/>' for k in range(12))
        + "</actuator></mujoco>"
    )  # fmt: skip
    sim = Simulation(model, 1, dtype="float64")
    sim.ctrl[:] = 20.0  # rad/s: 0.6 m/s
    heights = []
    for k in range(600):
        sim.step()
        if k >= 300:
            heights.append(sim.xpos[0, model.body_id("box"), 2])
    assert sim.qvel[0, 12] == pytest.approx(0.6, rel=2e-3)
    assert np.ptp(heights) < 2e-5


@DTYPES
def test_the_bend_is_part_of_the_problem(dtype):
    """Of contacts that turn together: what their points' accelerations take them apart by, in all three directions."""
    sim = Simulation(Model.from_mjcf(TABLE.format(h=0.002, integrator="implicitfast", offset="")), 1, dtype=dtype,
                     solver=SolverOptions(penetration_allowance=0))  # fmt: skip
    turned(sim, [], 4.0, ["below"], "table", seconds=0.1)
    table, below = sim.model.body_id("table"), sim.model.body_id("below")
    place = sim.xpos[0, below].astype(float) * (1, 1, 0)
    sim.step()
    problem, contact = sim.contact_problem(), sim.contact
    e = problem.e.reshape(-1, 3)
    checked = 0
    for c in range(contact.count[0]):
        bodies = sim.model.mjmodel.geom_bodyid[contact.geom[0, c]]
        if set(bodies) != {table, below}:
            continue
        frame = contact.frame[0, c].astype(float)
        sign = 1 if bodies[1] == below else -1
        # The centre of the box goes straight: its points are carried by w x (w x place) less than those of the table.
        expected = frame @ (sign * 0.001 * 16 * place)
        np.testing.assert_allclose(e[c, :2], expected[:2], atol=2e-3 * np.abs(expected).max())
        checked += 1
    assert checked >= 3


# A tray on an arm that turns, kept level and from turning by a second hinge; a box on it.
TRAY = """<mujoco><option timestep="{h}"/><default><geom friction="1 0 0"/></default><worldbody>
  <body name="arm" pos="0 0 1"><joint name="arm" axis="0 0 1"/>
    <geom type="capsule" size=".02" fromto="0 0 0 .4 0 0" mass="2" contype="0" conaffinity="0"/>
    <body name="tray" pos=".4 0 0"><joint name="tray" axis="0 0 1"/>
      <geom type="box" size=".1 .1 .01" mass="1"/></body></body>
  <body name="box" pos=".4 0 1.035"><freejoint/><geom type="box" size=".025 .025 .025" mass=".1"/></body></worldbody>
  <actuator><velocity joint="arm" kv="1000"/><velocity joint="tray" kv="1000"/></actuator></mujoco>"""


@DTYPES
@pytest.mark.parametrize(("h", "most"), [(0.002, 5e-5), (0.01, 1e-3)])
def test_a_box_stays_on_a_tray_that_goes_on_a_circle_without_turning(dtype, h, most):
    """At 4 rad/s and 2 ms it went 3 mm in two seconds: that nothing turns did not tell that it is carried."""
    sim = Simulation(Model.from_mjcf(TRAY.format(h=h)), 1, dtype=dtype)
    before = None
    for k in range(round(3 / h)):
        speed = 4 * min(1, (k + 1) * h)
        sim.ctrl[:] = [speed, -speed]
        sim.step()
        if (k + 1) * h <= 1 + h / 2:
            before = in_frame(sim, "box", "tray")
    drift = np.abs(in_frame(sim, "box", "tray") - before).max()
    print(f"{1e6 * drift:.1f} um")
    assert drift <= most


def test_balls_in_the_corners_of_a_box_that_turns_stay_there():
    """Where the fallback had no answer to their overlaps it let them go: 25 to 34 mm into walls, and out."""
    sides = [(".02 .2 .2", "{} 0 0"), (".2 .02 .2", "0 {} 0"), (".2 .2 .02", "0 0 {}")]
    wall = '<geom type="box" size="{}" pos="{}" mass="1"/>'
    walls = "".join(wall.format(size, at.format(place)) for size, at in sides for place in (0.22, -0.22))
    ball = '<body name="{}" pos="{}"><freejoint/><geom type="{}" mass=".5"/></body>'
    rng = np.random.default_rng(0)
    for _ in range(2):
        at = np.array([(0.15, 0.02, 0.03), (-0.15, 0, 0.01), (-0.03, 0.1, 0.01)]) + rng.uniform(-0.02, 0.02, (3, 3))
        at[:2, 0] = 0.15, -0.15
        loads = "".join(
            ball.format(name, " ".join(map(str, p)), shape)
            for name, p, shape in zip("abc", at, ['sphere" size=".05'] * 2 + ['capsule" size=".03 .05'], strict=True)
        )
        model = Model.from_mjcf(
            '<mujoco><option timestep=".002" gravity="0 0 0"/><default><geom friction="1 0 0"/></default><worldbody>'
            f'<body name="cup"><joint axis="0 .0125 1" armature="100"/>{walls}</body>{loads}</worldbody></mujoco>'
        )
        sim = Simulation(model, 1, dtype="float64", num_threads=2)
        sim.qvel[0, 0] = 8
        for i, p in enumerate(at):
            sim.qvel[0, 1 + 6 * i : 7 + 6 * i] = [*np.cross([0, 0.1, 8], p), 0, 0.1, 8]
        worst = 0.0
        for _ in range(2000):
            sim.step()
            worst = max(worst, float(sim.certificate.penetration[0]))
        out = max(np.abs(in_frame(sim, name, "cup")).max() - (0.17 if name == "c" else 0.15) for name in "abc")
        print(f"overlap {1e3 * worst:.2f} mm, in the walls by {1e3 * out:.2f} mm in the end")
        assert worst <= 4e-3 and out <= 4e-3


@pytest.mark.parametrize("h", [0.002, 0.005, 0.01, 0.02])
@pytest.mark.parametrize("spin", [0, 20, 50, 100, 200])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_balls_that_spin_alike_do_not_go_into_each_other(dtype, spin, h):
    """They slide on each other as fast as they spin: nothing carries one the other."""
    ball = '<body pos="{} 0 0"><freejoint/><geom size=".025" mass=".05" friction="{}"/></body>'
    for friction in (0, 1):
        balls = ball.format(0, friction) + ball.format(0.06, friction)
        sim = Simulation(
            Model.from_mjcf(f'<mujoco><option gravity="0 0 0"/><worldbody>{balls}</worldbody></mujoco>'),
            1,
            dtype=dtype,
            timestep=h,
        )
        sim.qvel[0, [0, 5, 11]] = 0.5, spin, spin
        nearest = 1.0
        for _ in range(round(0.6 / h)):
            sim.step()
            nearest = min(nearest, np.linalg.norm(sim.qpos[0, 7:10] - sim.qpos[0, :3]))
        assert nearest > 0.05 - 5e-6


@pytest.mark.parametrize("h", [0.002, 0.005, 0.01])
@pytest.mark.parametrize(("radius", "speed"), [(0.01, 1), (0.01, 2), (0.025, 2), (0.025, 4)])
def test_a_ball_that_catches_one_up_rolls_on_behind_it(radius, speed, h):
    """1.2 v behind v; both end at 1.07 v, where friction between them has turned as much as the floor's gives back."""
    ball = f'<body pos="{{}} 0 {radius}"><freejoint/><geom size="{radius}" mass=".05" friction=".3"/></body>'
    floor = '<geom type="plane" size="99 99 1" friction=".3"/>'
    xml = f"<mujoco><worldbody>{floor}{ball.format(0)}{ball.format(3 * radius)}</worldbody></mujoco>"
    sim = Simulation(Model.from_mjcf(xml), 1, timestep=h)
    sim.qvel[0, [0, 6]] = 1.2 * speed, speed
    sim.qvel[0, [4, 10]] = 1.2 * speed / radius, speed / radius
    nearest = 1.0
    for _ in range(round(1 / h)):
        sim.step()
        nearest = min(nearest, np.linalg.norm(sim.qpos[0, 7:10].astype(float) - sim.qpos[0, :3]))
    assert nearest > 2 * radius - 1e-5
    np.testing.assert_allclose(sim.qvel[0, [0, 6]], 1.07 * speed, rtol=3e-3)
