"""Force ranges of joints and tendons that several actuators share, on joints and on tendons, beside MuJoCo.

``actuatorfrcrange`` of a joint bounds the sum of all that actuators do on it, by tendons too; that of a tendon the sum
of its actuators' forces. Differences are of velocities, as in test_servos.py.
"""

import itertools

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from stiction import Model, Sensors, Simulation, Status, UnsupportedModelError  # noqa: E402
from test_against_mujoco import error, steps_of_the_oracle  # noqa: E402
from test_servos import ACTUATORS, DTYPES, H, check, deviation, each_moves_as_alone  # noqa: E402

SCENE = """
<mujoco><compiler autolimits="true" angle="radian"/><option timestep="{h}" gravity="0 0 0" integrator="{scheme}"/>
<worldbody>
  <body><joint name="a" type="{kind}" axis="0 0 1" damping=".4" {a}/>
    <geom type="box" size=".3 .3 .3" mass="{mass}" contype="0"/>
    <body pos=".2 0 0"><joint name="b" type="{kind}" axis="0 0 1" damping=".3" {b}/>
      <geom type="box" size=".2 .3 .2" pos=".1 0 0" mass="2" contype="0"/></body></body></worldbody>
<tendon>
  <fixed name="t" {t}><joint joint="a" coef="1"/><joint joint="b" coef="-.6"/></fixed>
  <fixed name="u" {u}><joint joint="a" coef=".5"/><joint joint="b" coef="1"/></fixed>
  <fixed name="alone"><joint joint="a" coef="-.8"/></fixed>
</tendon>
<actuator>{actuators}</actuator></mujoco>"""
#: Every kind of joint and every integrator; of ranges that are not shared test_servos.py has each with each.
KINDS = [("hinge", "implicit"), ("slide", "euler")]
EACH_ONCE = pytest.mark.parametrize(("kind", "integrator"), KINDS)


def by_turns(pairs):
    """The pairs of actuators, each with one kind of joint and integrator: of every actuator half with either."""
    order = list(ACTUATORS)
    cases = [((a, b), *KINDS[(order.index(a) + order.index(b)) % 2]) for a, b in pairs]
    ids = [f"{a} and {b}-{kind}" for (a, b), kind, _ in cases]
    return pytest.mark.parametrize(("names", "kind", "integrator"), cases, ids=ids)


A, B = 'actuatorfrcrange="-2 3"', 'actuatorfrcrange="-1.5 1"'


def scene(kind, integrator, actuators, h=H, mass=4, **of):
    scheme = {"implicit": "implicitfast", "euler": "Euler"}.get(integrator, "implicitfast")
    of = {"a": A, "b": "", "t": "", "u": "", **of}
    return SCENE.format(kind=kind, scheme=scheme, actuators=actuators, h=h, mass=mass, **of)


def drive(name, on, gear=1, limit=""):
    tag, attributes, _ = ACTUATORS[name]
    target = f'joint="{on}"' if on in "ab" else f'tendon="{on}"'
    return f'<{tag} {target} gear="{gear}" {attributes} {limit}/>'


@EACH_ONCE
@pytest.mark.parametrize("name", ACTUATORS)
def test_an_actuator_of_a_tendon_is_within_the_ranges_of_its_joints(name, kind, integrator):
    cases = []
    for limit, gear, b, on in itertools.product(("", 'forcerange="-3 2"'), (1, -0.7), ("", B), ("t", "alone")):
        xml = scene(kind, integrator, drive(name, on, gear, limit), b=b)
        cases.append((f"{limit}, gear {gear}, b {b}, {on}", xml, ACTUATORS[name][2]))
    check(cases, integrator)


@EACH_ONCE
@pytest.mark.parametrize("of_joint", ACTUATORS)
@pytest.mark.parametrize("of_tendon", ["motor", "damped position", "velocity"])
def test_actuators_of_a_joint_and_of_its_tendon_share_its_range(of_tendon, of_joint, kind, integrator):
    cases = []
    for limit, b in itertools.product(("", 'forcerange="-2.5 4"'), ("", B)):
        xml = scene(kind, integrator, drive(of_joint, "a", 1, limit) + drive(of_tendon, "t", 1, limit), b=b)
        near, far = ACTUATORS[of_joint][2], ACTUATORS[of_tendon][2]
        cases.append((f"{limit}, b {b}", xml, list(itertools.product(near, (*far, -2 * far[0])))))
    check(cases, integrator)


@by_turns(itertools.combinations(ACTUATORS, 2))
def test_several_tendons_share_the_range_of_a_joint(names, kind, integrator):
    first, second = names
    controls = [(x, y, z) for x in ACTUATORS[first][2] for y in ACTUATORS[second][2] for z in (0.5, -1)]
    cases = []
    for b, limit in itertools.product(("", B), ("", 'forcerange="-2.5 1.5"')):
        actuators = drive(first, "t", 1, limit) + drive(second, "u", 1, limit) + drive("motor", "alone")
        cases.append((f"{limit}, b {b}", scene(kind, integrator, actuators, b=b), controls))
    check(cases, integrator)


@EACH_ONCE
@pytest.mark.parametrize("name", ACTUATORS)
def test_the_range_of_a_tendon_bounds_its_actuators(name, kind, integrator):
    """One, or several of one gear, with a joint's range beside it and without."""
    cases = []
    for gear, limit, a in itertools.product((1, -0.7), ("", 'forcerange="-3 1.5"', "several"), ("", A)):
        more = drive("motor", "t", gear) + drive("damped position", "t", gear) if limit == "several" else ""
        one = drive(name, "t", gear, limit.replace("several", ""))
        xml = scene(kind, integrator, one + more, a=a, t='actuatorfrcrange="-2.5 2"')
        controls = [(x, *rest) for x in ACTUATORS[name][2] for rest in ([(1, 0.1), (-2, 0.5)] if more else [()])]
        cases.append((f"gear {gear}, {limit}, a {a}", xml, controls))
    check(cases, integrator)


def test_the_difference_to_mujoco_vanishes_with_the_step():
    actuators = drive("velocity", "t") + drive("damped position", "a") + drive("motor", "u")
    found = []
    for h in (1e-3, 2.5e-4):
        xml = scene("slide", "implicit", actuators, h, b=B, u='actuatorfrcrange="-1 1"')
        found.append(deviation(xml, [(1, 1, 0), (1, -1, 2), (-0.3, 0.1, 0.5)], "implicit")[0])
    print("difference of velocities at 1 ms and 1/4 ms:", found)
    assert found[1] <= 0.3 * found[0]


DAMPER = """
<mujoco><compiler autolimits="true"/><option timestep=".002"/><worldbody>
  <body><joint name="a" type="slide" axis="1 0 0" damping="5" {a}/><geom size=".1" mass="{mass}" contype="0"/></body>
  <body><joint name="b" type="slide" axis="1 0 0" damping="5"/><geom size=".1" mass="{mass}" contype="0"/></body>
</worldbody><tendon><fixed name="t" {t}><joint joint="a" coef="1"/><joint joint="b" coef=".5"/></fixed></tendon>
<actuator>{actuators}</actuator></mujoco>"""
INTEGRATORS_HERE = ("implicit", "euler", "midpoint", "implicit_euler")


@DTYPES
@pytest.mark.parametrize("integrator", INTEGRATORS_HERE)
@pytest.mark.parametrize("ranged", ["joint", "tendon"])
@pytest.mark.parametrize(("mass", "kv"), [(0.5, 10), (0.5, 100), (5, 100)])
def test_servos_give_no_more_than_a_shared_range_to_what_damps(mass, kv, ranged, integrator, dtype):
    """A velocity servo of a tendon asks for far more; a motor beside it pushes."""
    if integrator == "euler" and kv / mass > 100:
        pytest.skip("explicit damping: chatters, as MuJoCo does")
    on_joint = '<motor joint="a"/>' if ranged == "joint" else '<motor tendon="t"/>'
    limits = (
        {"a": 'actuatorfrcrange="-3 3"', "t": ""} if ranged == "joint" else {"a": "", "t": 'actuatorfrcrange="-3 3"'}
    )
    xml = DAMPER.format(mass=mass, actuators=f'<velocity tendon="t" kv="{kv}"/>{on_joint}', **limits)
    sim = Simulation(Model.from_mjcf(xml), 1, dtype=dtype, integrator=integrator, num_threads=1)
    sim.ctrl[:] = 8, 1
    sim.step(6000)
    m = mujoco.MjModel.from_xml_string(xml)
    m.opt.integrator, d = mujoco.mjtIntegrator.mjINT_IMPLICITFAST, mujoco.MjData(m)
    d.ctrl[:] = 8, 1
    mujoco.mj_step(m, d, 6000)
    assert sim.qvel[0, 0] == pytest.approx(3 / 5, rel=1e-3)
    np.testing.assert_allclose(sim.qvel[0], d.qvel, rtol=1e-3)
    assert not np.any(sim.status)


FINGER = """
<mujoco><compiler autolimits="true"/><option timestep=".002"/><worldbody>
  <geom type="box" size=".01 .1 .1" pos=".07 0 0"/>
  <body><joint name="j" type="slide" axis="1 0 0" {joint}/><geom type="sphere" size=".02" mass="{mass}"/></body>
  <body pos="0 1 0"><joint name="k" type="slide" axis="1 0 0" damping="1"/><geom size=".02" mass=".02"/></body>
</worldbody><tendon><fixed name="t" {tendon}><joint joint="j" coef="1"/>{more}</fixed></tendon>
<actuator><position tendon="t" kp="{kp}" kv="{kv}"/><motor {motor}/></actuator></mujoco>"""


@DTYPES
@pytest.mark.parametrize("more", ["", '<joint joint="k" coef="0.001"/>'], ids=["", "two joints"])
@pytest.mark.parametrize("ranged", ["joint", "tendon"])
@pytest.mark.parametrize(("mass", "kp", "kv"), [(0.02, 500, 5), (0.02, 500, 20), (0.005, 1000, 20)])
def test_a_finger_presses_a_wall_with_no_more_than_the_shared_range(mass, kp, kv, ranged, more, dtype):
    of = {"joint": "", "tendon": "", "motor": 'joint="j"' if ranged == "joint" else 'tendon="t"'}
    of[ranged] = 'actuatorfrcrange="-5 5"'
    sim = Simulation(
        Model.from_mjcf(FINGER.format(mass=mass, kp=kp, kv=kv, more=more, **of)), 1, dtype=dtype, num_threads=1
    )
    sim.ctrl[:] = 0.04 + 10 / kp, 1  # 10 N and 1 N more
    sim.step(500)
    for _ in range(20):
        sim.step()
        assert abs(sim.net_contact_force[0, 1, 0]) == pytest.approx(5, rel=1e-3)
    sim.ctrl[:] = 0.04 + 3 / kp, 1  # within the range they are what they say
    sim.step(500)
    assert abs(sim.net_contact_force[0, 1, 0]) == pytest.approx(4, rel=1e-2)
    assert not np.any(sim.status & ~Status.FALLBACK)


@DTYPES
@pytest.mark.parametrize("integrator", ["implicit", "midpoint"])
def test_shared_ranges_do_not_hang_on_neighbours(integrator, dtype):
    """Of a pack some are at a bound, some are not, and some change over."""
    actuators = drive("velocity", "t") + drive("damped position", "a") + drive("motor", "u") * 2
    model = Model.from_mjcf(scene("hinge", "implicit", actuators, 0.005, b=B, u='actuatorfrcrange="-1 1"'))
    targets = np.random.default_rng(2).uniform(-1.5, 1.5, (6, 24, 4))
    each_moves_as_alone(model, targets, 20, dtype=dtype, integrator=integrator)


@by_turns(itertools.product(ACTUATORS, repeat=2))
def test_steps_of_shared_ranges_match_the_oracle(names, integrator, kind):
    """From states in which all is within the ranges, at a bound, and nearly there."""
    reference = pytest.importorskip("stiction_reference")
    rng = np.random.default_rng(4)
    first, second = names
    of_t = {"t": 'actuatorfrcrange="-2 1"'}
    for limit, gear, of in itertools.product(
        ("", 'forcerange="-3 2"'), (1, -0.7), ({}, {"b": B}, {"a": "", **of_t}, {"u": of_t["t"]}, of_t)
    ):
        on_t = "" if "t" in of else limit
        actuators = drive(first, "t", gear, on_t) + drive("motor", "t", gear, on_t) + drive(second, "a", gear, limit)
        actuators += drive(second, "u", gear, limit)
        xml = scene(kind, "implicit", actuators, 0.01, **of)
        sim = Simulation(Model.from_mjcf(xml), 1, dtype="float64", integrator=integrator, num_threads=1)
        oracle, d = reference.Model(sim.model.to_arrays()), mujoco.MjData(sim.model.mjmodel)
        for _ in range(10):
            d.qpos[:], d.qvel[:] = 0.3 * rng.standard_normal((2, 2))
            d.ctrl[:] = 0.3 * rng.standard_normal(4)
            for q, v in steps_of_the_oracle(oracle, sim, d, 3):
                assert error(sim.qpos[0], q) <= 1e-7 and error(sim.qvel[0], v) <= 1e-5


def test_sensors_tell_forces_within_shared_ranges():
    actuators = drive("velocity", "t") + drive("motor", "t") + drive("damped position", "a")
    actuators += drive("motor", "u", -2, 'forcerange="-1 2"')
    of = {"t": 'actuatorfrcrange="-2 1"', "u": 'actuatorfrcrange="-1.5 1"'}
    xml = scene("hinge", "implicit", actuators, b=B, **of)
    sim, rng = Simulation(Model.from_mjcf(xml), 20, dtype="float64"), np.random.default_rng(1)
    sim.qpos[:], sim.qvel[:] = rng.standard_normal((2, 20, 2))
    sim.ctrl[:] = 2 * rng.standard_normal((20, 4))
    sim.ctrl[0] = sim.qvel[0] = 0
    m = sim.model.mjmodel
    for env in range(20):
        d = mujoco.MjData(m)
        d.qpos[:], d.qvel[:], d.ctrl[:] = sim.qpos[env], sim.qvel[env], sim.ctrl[env]
        mujoco.mj_forward(m, d)
        np.testing.assert_allclose(Sensors(sim).actuator_force()[env], d.actuator_force, atol=1e-12)
        np.testing.assert_allclose(Sensors(sim).joint_torque()[env], d.qfrc_actuator, atol=1e-12)


def test_actuators_whose_sum_is_not_what_a_range_bounds_are_refused():
    """MuJoCo scales the forces before the gears: their sum has no law of its own."""
    actuators = drive("motor", "t") + drive("motor", "t", 2)
    xml = scene("hinge", "implicit", actuators, t='actuatorfrcrange="-2 1"')
    with pytest.raises(UnsupportedModelError, match="force range over several actuators .* of tendon 't'"):
        Model.from_mjcf(xml)
    with pytest.warns(UserWarning):
        model = Model.from_mjcf(xml, unsupported="warn")
    assert not model.tendon_actfrclimited.any()
    xml = scene("hinge", "implicit", drive("motor", "t", 2) + drive("motor", "u"), t='actuatorfrcrange="-2 1"')
    assert Model.from_mjcf(xml).tendon_actfrcrange[0].tolist() == [-2, 1]
