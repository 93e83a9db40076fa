"""Actuators within their ranges: every kind on joints and tendons beside MuJoCo, under both integrators.

"euler" is MuJoCo's to rounding. "implicit" is compared with implicitfast, which takes damping alone to the end of the
step: the two differ by a part of the step.
"""

import itertools

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from stiction import Model, Simulation, Status  # noqa: E402
from test_against_mujoco import error, steps_of_the_oracle  # noqa: E402

H = 0.00025
INTEGRATORS = pytest.mark.parametrize("integrator", ["implicit", "euler"])
KINDS = pytest.mark.parametrize("kind", ["hinge", "slide"])

#: Kind -> its attributes and controls: towards something far and something near.
ACTUATORS = {
    "motor": ("motor", "", (2.0, 0.4)),
    "position": ("position", 'kp="40"', (1.0, 0.05)),
    "damped position": ("position", 'kp="40" kv="8"', (1.0, 0.05)),
    "velocity": ("velocity", 'kv="10"', (1.0, -0.2)),
    "affine": ("general", 'gainprm="20" biastype="affine" biasprm=".5 -15 -4"', (1.5, -0.1)),
    "unstable": ("general", 'gainprm="2" biastype="affine" biasprm="0 .5 .2"', (1.0, -0.1)),
}
#: Name -> attributes of the actuator, of the joint.
LIMITS = {
    "free": ("", ""),
    "ctrlrange": ('ctrlrange="-.15 .3"', ""),
    "forcerange": ('forcerange="-3 2"', ""),
    "pulling": ('forcerange="0 3"', ""),
    "joint": ("", 'actuatorfrcrange="-2 3"'),
    "all": ('ctrlrange="-2 .6" forcerange="-2.5 3"', 'actuatorfrcrange="-4 2"'),
}
GEARS = (1, -0.7, 2)

SCENE = """
<mujoco><compiler autolimits="true" angle="radian"/><option timestep="{h}" gravity="0 0 0" integrator="{scheme}"/>
<worldbody>
  <body><joint name="a" type="{kind}" axis="0 0 1" damping=".4" {joint}/>
    <geom type="box" size=".3 .3 .3" mass="{mass}" contype="0"/>
    <body pos=".2 0 0"><joint name="b" type="{kind}" axis="0 0 1" damping=".3"/>
      <geom type="box" size=".2 .3 .2" pos=".1 0 0" mass="2" contype="0"/></body></body></worldbody>
<tendon><fixed name="t"><joint joint="a" coef="1"/><joint joint="b" coef="-.6"/></fixed></tendon>
<actuator>{actuators}</actuator></mujoco>"""


def scene(kind, integrator, actuators, joint="", h=H, mass=4):
    scheme = {"implicit": "implicitfast", "euler": "Euler"}[integrator]
    return SCENE.format(kind=kind, scheme=scheme, actuators=actuators, joint=joint, h=h, mass=mass)


def actuator(name, on, gear, limit):
    tag, attributes, _ = ACTUATORS[name]
    target = 'joint="a"' if on == "joint" else 'tendon="t"'
    return f'<{tag} {target} gear="{gear}" {attributes} {limit}/>'


def deviation(xml, controls, integrator):
    """(largest difference of velocity from MuJoCo over that velocity, whether MuJoCo ever holds a force at a bound)."""
    m = mujoco.MjModel.from_xml_string(xml)
    datas = [mujoco.MjData(m) for _ in controls]
    sim = Simulation(Model.from_mjcf(xml), len(controls), dtype="float64", integrator=integrator, num_threads=1)
    sim.ctrl[:] = np.reshape(controls, sim.ctrl.shape)
    for d, ctrl in zip(datas, sim.ctrl, strict=True):
        d.ctrl[:] = ctrl
    worst, fastest, held = np.zeros(len(controls)), np.full(len(controls), 1e-3), False
    for _ in range(100):
        sim.step(24)
        for w, d in enumerate(datas):
            mujoco.mj_step(m, d, 24)
            worst[w] = max(worst[w], np.abs(sim.qvel[w] - d.qvel).max())
            fastest[w] = max(fastest[w], np.abs(d.qvel).max())
            bounds = [m.actuator_forcerange[i, int(f > 0)] for i, f in enumerate(d.actuator_force)]
            held |= np.any(m.actuator_forcelimited & (d.actuator_force == bounds))
            held |= np.any(m.jnt_actfrclimited & np.isin(d.qfrc_actuator, m.jnt_actfrcrange))
    assert not sim.status.any()
    return (worst / fastest).max(), held


def check(cases, integrator):
    """Of (name, xml, controls): within the integrators' difference; some are held at a bound."""
    bound = {"implicit": 0.08, "euler": 1e-9}[integrator]
    found = {name: deviation(xml, controls, integrator) for name, xml, controls in cases}
    assert not {name: by for name, (by, _) in found.items() if not by <= bound}
    assert any(held for _, held in found.values())


@INTEGRATORS
@KINDS
@pytest.mark.parametrize("name", ACTUATORS)
def test_an_actuator_of_a_joint_moves_it_as_in_mujoco(name, kind, integrator):
    cases = []
    for limit, gear in itertools.product(LIMITS, GEARS):
        of_actuator, of_joint = LIMITS[limit]
        xml = scene(kind, integrator, actuator(name, "joint", gear, of_actuator), of_joint)
        cases.append((f"{limit}, gear {gear}", xml, ACTUATORS[name][2]))
    check(cases, integrator)


@INTEGRATORS
@KINDS
@pytest.mark.parametrize("name", ACTUATORS)
def test_an_actuator_of_a_tendon_moves_it_as_in_mujoco(name, kind, integrator):
    cases = []
    for limit, gear in itertools.product(("free", "ctrlrange", "forcerange", "pulling"), GEARS):
        xml = scene(kind, integrator, actuator(name, "tendon", gear, LIMITS[limit][0]))
        cases.append((f"{limit}, gear {gear}", xml, ACTUATORS[name][2]))
    check(cases, integrator)


@INTEGRATORS
@KINDS
@pytest.mark.parametrize("ranged", [False, True], ids=["", "forcerange"])
def test_actuators_of_one_joint_share_its_range(ranged, kind, integrator):
    """A motor against a velocity servo, a position servo against both, under one actuatorfrcrange."""
    limit = 'forcerange="-2.5 1.5"' if ranged else ""
    names = "motor", "velocity", "damped position"
    actuators = "".join(actuator(name, "joint", gear, limit) for name, gear in zip(names, (1, 2, -1), strict=True))
    xml = scene(kind, integrator, actuators, 'actuatorfrcrange="-2 3"')
    controls = [(0, 1, 0), (2, 0.5, 0.1), (-4, 1, 0), (1, -1, -1), (6, 0, 0.5)]
    check([("all", xml, controls)], integrator)


@pytest.mark.parametrize("limit", ["joint", "forcerange"])
def test_a_servo_at_its_target_does_not_push(limit):
    """It is at its bound until it is nearly there, and then comes to its speed."""
    of_actuator, of_joint = LIMITS[limit]
    xml = scene("slide", "implicit", actuator("velocity", "joint", 1, of_actuator), of_joint, h=0.002)
    sim = Simulation(Model.from_mjcf(xml), 1, dtype="float64", num_threads=1)
    sim.ctrl[:] = 1
    sim.step(40_000)
    assert abs(sim.qvel[0, 0] - 1 / 1.04) <= 1e-3  # its damping of 0.4 beside the servo's 10


@pytest.mark.parametrize("limit", ["joint", "forcerange"])
@pytest.mark.parametrize("on", ["joint", "tendon"])
def test_a_strong_servo_on_a_light_joint_does_not_chatter(on, limit):
    """With kv h / m = 1e4, the force that a step begins with is at one bound or the other unless v is the target's."""
    of_actuator, of_joint = LIMITS[limit]
    kv, target = 2e4, 0.7
    xml = scene("slide", "implicit", actuator("velocity", on, 1, of_actuator), of_joint, mass=1e-3, h=0.002)
    xml = xml.replace('kv="10"', f'kv="{kv}"').replace('damping=".3"', 'damping="200"').replace('damping=".4"', "")
    sim = Simulation(Model.from_mjcf(xml), 1, dtype="float64", num_threads=1)
    sim.ctrl[:] = target
    sim.step(3000)
    for _ in range(20):
        sim.step()
        speed = sim.qvel[0, 0] - (0.6 * sim.qvel[0, 1] if on == "tendon" else 0)
        assert abs(speed - target) <= 1e-3


DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])
#: A light hinge whose damping takes all of the servo's 30 N m at 6 rad/s.
DAMPED = """
<mujoco><compiler autolimits="true"/><option timestep=".002"/><worldbody>
  <body><joint name="j" axis="0 0 1" damping="5" {joint}/>
    <geom type="box" size=".1 .1 .1" mass="{mass}" contype="0" conaffinity="0"/></body></worldbody>
<actuator><position joint="j" kp="1000" kv="{kv}" {servo}/></actuator></mujoco>"""
#: A finger that is set 10 N deep into a wall, with 5 N.
FINGER = """
<mujoco><compiler autolimits="true"/><option timestep=".002" gravity="0 0 0"/><worldbody>
  <geom type="box" size=".01 .1 .1" pos=".07 0 0"/>
  <body><joint name="j" type="slide" axis="1 0 0"/><geom type="sphere" size=".02" mass="{mass}"/></body></worldbody>
<actuator><position joint="j" kp="{kp}" kv="{kv}" forcerange="-5 5"/></actuator></mujoco>"""


@DTYPES
@pytest.mark.parametrize(
    "limit", [{"servo": 'forcerange="-30 30"', "joint": ""}, {"servo": "", "joint": 'actuatorfrcrange="-30 30"'}]
)
@pytest.mark.parametrize("kv", [10, 100])
@pytest.mark.parametrize("mass", [0.5, 5])
def test_a_servo_gives_no_more_than_its_range_to_what_damps_it(mass, kv, limit, dtype):
    sim = Simulation(Model.from_mjcf(DAMPED.format(mass=mass, kv=kv, **limit)), 1, dtype=dtype, num_threads=1)
    inertia, most = mass * 0.08 / 12, 0
    for step in range(400):
        before = sim.qvel[0, 0].copy()
        sim.ctrl[:] = 15 * 0.02 * (step // 10)  # ahead at 15 rad/s
        sim.step()
        most = max(most, abs(inertia * (sim.qvel[0, 0] - before) / 0.002 + 5 * sim.qvel[0, 0]))
    assert most == pytest.approx(30, rel=1e-3)
    assert sim.qvel[0, 0] == pytest.approx(6, rel=1e-3)
    assert not np.any(sim.status)


@DTYPES
@pytest.mark.parametrize(("mass", "kp", "kv"), [(0.02, 500, 5), (0.02, 500, 20), (0.02, 2000, 40), (0.005, 1000, 20)])
def test_a_finger_presses_a_wall_with_no_more_than_its_servo_has(mass, kp, kv, dtype):
    sim = Simulation(Model.from_mjcf(FINGER.format(mass=mass, kp=kp, kv=kv)), 1, dtype=dtype, num_threads=1)
    sim.ctrl[:] = 0.04 + 10 / kp
    m = mujoco.MjModel.from_xml_string(FINGER.format(mass=mass, kp=kp, kv=kv))
    m.opt.integrator, d = mujoco.mjtIntegrator.mjINT_IMPLICITFAST, mujoco.MjData(m)
    d.ctrl[:] = sim.ctrl[0]
    mujoco.mj_step(m, d, 1000)
    for _ in range(500):
        sim.step()
    felt = abs(sim.net_contact_force[0, 1, 0])
    print(
        f"{mass} kg, kp {kp}, kv {kv}, {dtype}: the wall feels {felt:.2f} N, MuJoCo's {abs(d.qfrc_constraint[0]):.2f} N"
    )
    for _ in range(20):
        sim.step()
        assert abs(sim.net_contact_force[0, 1, 0]) == pytest.approx(5, rel=1e-3)
    sim.ctrl[:] = 0.04 + 3 / kp  # within its range it is the servo that it says
    for _ in range(500):
        sim.step()
    assert abs(sim.net_contact_force[0, 1, 0]) == pytest.approx(3, rel=1e-2)
    assert not np.any(sim.status & ~(Status.FALLBACK if dtype == "float32" else Status(0)))


def each_moves_as_alone(model, targets, steps, **options):
    """Environments under the controls ``targets`` (times, envs, nu), ``steps`` long each, to the bit."""

    def run(envs):
        sim = Simulation(model, len(envs), num_threads=1, **options)
        for target in targets:
            sim.ctrl[:] = target[envs]
            sim.step(steps)
        assert not np.any(sim.status & ~Status.FALLBACK)
        return np.concatenate([sim.qpos, sim.qvel], 1)

    together = run(np.arange(targets.shape[1]))
    for env in range(0, targets.shape[1], 5):
        assert np.array_equal(run([env])[0], together[env])


@DTYPES
def test_servos_at_their_bounds_do_not_hang_on_neighbours(dtype):
    """Of a pack some are at a bound, some are not, and some change over."""
    model = Model.from_mjcf(FINGER.format(mass=0.02, kp=500, kv=20))
    targets = np.random.default_rng(2).uniform(-0.05, 0.08, (4, 24, 1))
    each_moves_as_alone(model, targets, 40, dtype=dtype)


@KINDS
@pytest.mark.parametrize("on", ["joint", "tendon"])
@pytest.mark.parametrize("name", ACTUATORS)
def test_steps_of_servos_match_the_oracle(name, on, kind):
    """From states in which they are within their ranges, at a bound, and nearly there."""
    reference = pytest.importorskip("stiction_reference")
    rng = np.random.default_rng(4)
    for limit, gear, count in itertools.product(LIMITS, GEARS, (1, 2)):
        of_actuator, of_joint = LIMITS[limit]
        xml = scene(kind, "implicit", actuator(name, on, gear, of_actuator) * count, of_joint, h=0.01)
        sim = Simulation(Model.from_mjcf(xml), 1, dtype="float64", num_threads=1)
        oracle, d = reference.Model(sim.model.to_arrays()), mujoco.MjData(sim.model.mjmodel)
        for _ in range(10):
            d.qpos[:], d.qvel[:] = 0.2 * rng.standard_normal((2, 2))
            d.ctrl[:] = 0.2 * rng.standard_normal(count)
            for q, v in steps_of_the_oracle(oracle, sim, d, 3):
                assert error(sim.qpos[0], q) <= 1e-7 and error(sim.qvel[0], v) <= 1e-5
