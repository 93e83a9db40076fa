"""Forces of actuators, on joints and of contacts by pairs, against MuJoCo's quantities and known answers."""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from model_sources import MENAGERIE, data_file  # noqa: E402
from stiction import Sensors, Simulation  # noqa: E402
from stiction.registration import asset_path  # noqa: E402

SERVOS = """<mujoco><option><flag {flag}="disable"/></option><worldbody>
  <body><joint name="hinge"/><geom size=".1" mass="1"/></body></worldbody>
  <actuator><motor joint="hinge" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>"""

TOWER = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/>
  <body name="wall" pos="3 0 .5"><geom type="box" size=".1 .1 .5"/></body>
  <body name="low" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" mass="2"/></body>
  <body name="high" pos="0 0 .25"><freejoint/><geom type="box" size=".05 .05 .05" mass="1"/></body>
  <body name="far" pos="3 0 1.05"><freejoint/><geom type="box" size=".05 .05 .05" mass="0.5"/></body>
</worldbody></mujoco>"""


@pytest.fixture(params=["native", "torch"])
def array(request):
    if request.param == "torch":
        pytest.importorskip("torch")
    return request.param


@pytest.mark.parametrize(("flag", "force"), [("gravity", 1), ("clampctrl", 3), ("actuation", 0)])
def test_flags_of_a_model_do_what_they_say(flag, force):
    model = stiction.Model.from_mjcf(SERVOS.format(flag=flag))
    sim = Simulation(model, 1)
    sim.ctrl[:] = 3
    data = mujoco.MjData(model.mjmodel)
    data.ctrl[:] = 3
    mujoco.mj_forward(model.mjmodel, data)
    assert Sensors(sim).actuator_force()[0, 0] == force == data.actuator_force[0]


def test_numbers_are_mujocos():
    from stiction import mujoco_numbers as numbers

    enums = {
        "mjtJoint.mjJNT_": {name: name for name in ("FREE", "BALL", "SLIDE", "HINGE")},
        "mjtGeom.mjGEOM_": {
            name: name
            for name in ("PLANE", "HFIELD", "SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX", "MESH", "SDF")
        },
        "mjtTrn.mjTRN_": {"TRN_JOINT": "JOINT", "TRN_JOINT_IN_PARENT": "JOINTINPARENT", "TRN_TENDON": "TENDON"},
        "mjtEq.mjEQ_": {f"EQ_{name}": name for name in ("CONNECT", "WELD", "JOINT", "TENDON")},
        "mjtDisableBit.mjDSBL_": {"NO_GRAVITY": "GRAVITY", "NO_CLAMP": "CLAMPCTRL", "NO_ACTUATION": "ACTUATION"},
    }
    seen = 0
    for prefix, names in enums.items():
        enum, word = prefix.split(".")
        for ours, theirs in names.items():
            assert getattr(numbers, ours) == getattr(getattr(mujoco, enum), word + theirs), ours
            seen += 1
    assert seen == sum(name.isupper() for name in vars(numbers))


@pytest.mark.parametrize("asset", ["quadruped.xml", "humanoid.xml", "hopper.xml", "arm_lift.xml"])
def test_actuators_push_as_mujoco_says(asset, array):
    model = stiction.Model.from_mjcf(asset_path(asset))
    per_env = ("actuator_gainprm",)
    sim = Simulation(model, 3, dtype="float64", array=array, num_threads=1, per_env=per_env)
    sensors, random = Sensors(sim), np.random.default_rng(0)
    mjmodel = model.mjmodel
    data = mujoco.MjData(mjmodel)
    scalar = [mjmodel.joint(j).name for j in range(mjmodel.njnt) if mjmodel.jnt_type[j] in (2, 3)]
    gain = random.uniform(0.5, 2, (3, 1)) * np.asarray(model.actuator_gainprm)
    sim.params.actuator_gainprm = gain
    clipped = 0
    for _ in range(4):
        sim.ctrl = random.uniform(-3, 3, (3, model.nu))
        sim.step(7)
        forces, torques = np.array(sensors.actuator_force()), np.array(sensors.joint_torque(scalar))
        for env in range(3):
            mjmodel.actuator_gainprm[:, 0] = gain[env]
            data.qpos[:], data.qvel[:] = np.array(sim.qpos)[env], np.array(sim.qvel)[env]
            data.ctrl[:] = np.array(sim.ctrl)[env]
            mujoco.mj_forward(mjmodel, data)
            np.testing.assert_allclose(forces[env], data.actuator_force, rtol=1e-9, atol=1e-9)
            expected = [data.joint(name).qfrc_actuator[0] for name in scalar]
            np.testing.assert_allclose(torques[env], expected, rtol=1e-9, atol=1e-9)
            clipped += (np.abs(data.ctrl) > 1).sum()
    assert clipped > 0
    with pytest.raises(KeyError, match="no actuator named 'nothing'"):
        sensors.actuator_force("nothing")


def test_contacts_by_pairs_carry_the_weights(array):
    sim = Simulation(stiction.Model.from_mjcf(TOWER), 2, dtype="float64", array=array, num_threads=1)
    for _ in range(300):
        sim.step()
    sensors, g = Sensors(sim), 9.81

    def force(of, other=None):
        return np.array(sensors.contact_force(of, other))[1]

    np.testing.assert_allclose(force("high", "low"), [[0, 0, g]], atol=1e-3)
    np.testing.assert_allclose(force("low", "high"), [[0, 0, -g]], atol=1e-3)
    np.testing.assert_allclose(force("low", "world"), [[0, 0, 3 * g]], atol=1e-3)
    np.testing.assert_allclose(force("far", "world"), [[0, 0, 0.5 * g]], atol=1e-3)  # the wall stands still
    np.testing.assert_allclose(force("high", ["world", "far"]), [[0, 0, 0]], atol=1e-12)
    every = force(["low", "high", "far"])
    np.testing.assert_allclose(every, np.array(sensors.net_contact_force(["low", "high", "far"]))[1], atol=1e-9)
    counts = np.array(sensors.contact_count(["low", "high", "far"], "world"))[0]
    assert counts.tolist() == [4, 0, 4]
    assert np.array(sensors.contact_count("low")).tolist() == [[8], [8]]
    sim.forward()
    bodies = ["low", "high", "far"]
    assert not force(bodies).any() and not np.array(sensors.net_contact_force(bodies)).any()
    assert not np.array(sensors.contacts(bodies).force).any()
    assert np.array(sensors.contact_count(bodies, "world"))[0].tolist() == counts.tolist()
    sim.step()
    np.testing.assert_allclose(force(bodies), every, atol=1e-3)
    with pytest.raises(KeyError, match="no body named 'middle'"):
        sensors.contact_force("low", "middle")


def test_accelerations_are_differences_of_velocities(array):
    sim = Simulation(stiction.Model.from_mjcf(asset_path("hopper.xml")), 2, dtype="float64", array=array)
    sensors = Sensors(sim)
    thigh = sensors.acceleration(["thigh", "leg"])
    before = np.array(sensors.joint_state(["thigh", "leg"])[1])
    sim.ctrl[:] = -0.5  # away from the limits
    sim.step(4)
    sensors.advance(4 * sim.timestep)
    after = np.array(sensors.joint_state(["thigh", "leg"])[1])
    np.testing.assert_allclose(np.array(thigh.value), (after - before) / (4 * sim.timestep))
    assert np.abs(np.array(thigh.value)).min() > 1
    sensors.restart([1])
    assert (np.array(thigh.value)[1] == 0).all()
    assert (np.array(thigh.value)[0] != 0).all()


#: A ball joint with a motor and a free one without, a hinge and a slide on a tendon with a servo of limited force.
TENDONS = """<mujoco><worldbody>
  <body><joint name="a" axis="0 1 0" actuatorfrcrange="-2 2"/><geom size=".1"/>
    <body pos="1 0 0"><joint name="b" axis="0 1 0"/><geom size=".1"/>
      <body pos="1 0 0"><joint name="ball" type="ball"/><geom size=".1"/></body></body></body>
  <body pos="0 0 5"><freejoint name="free"/><geom size=".1"/></body>
  <body pos="0 0 9"><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/><geom size=".1"/></body>
  </worldbody><tendon><fixed name="t"><joint joint="b" coef="2"/><joint joint="x" coef="-1"/></fixed></tendon>
  <actuator><motor joint="a" gear="3"/><position tendon="t" kp="4" kv=".5" gear="1.5" forcerange="-3 3"/>
  <motor joint="ball" gear="1 2 -3" forcerange="-1 1"/><motor joint="y"/>
  </actuator></mujoco>"""  # noqa: E501
ROBOTS = {
    "own": lambda: TENDONS,
    "panda": lambda: str(data_file(MENAGERIE + "franka_emika_panda/scene.physics.xml")),
    "shadow": lambda: str(data_file(MENAGERIE + "shadow_hand/right_hand.xml")),
}


@pytest.mark.parametrize("name", ROBOTS)
def test_tendons_balls_and_free_joints_are_driven_as_mujoco_says(name, array):
    model = stiction.Model.from_mjcf(ROBOTS[name](), unsupported="warn")
    sim = Simulation(model, 2, dtype="float64", array=array, num_threads=1)
    sensors, random, data = Sensors(sim), np.random.default_rng(0), mujoco.MjData(model.mjmodel)
    sim.qpos = np.array(sim.qpos) + 0.1 * random.normal(size=(2, model.nq))
    sim.qvel, sim.ctrl = random.normal(size=(2, model.nv)), random.uniform(-3, 3, (2, model.nu))
    forces, torques = np.array(sensors.actuator_force()), np.array(sensors.joint_torque())
    for env in range(2):
        for field in ("qpos", "qvel", "ctrl"):
            getattr(data, field)[:] = np.array(getattr(sim, field))[env]
        mujoco.mj_forward(model.mjmodel, data)
        np.testing.assert_allclose(forces[env], data.actuator_force, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(torques[env], data.qfrc_actuator, rtol=1e-9, atol=1e-9)
        for joint in filter(None, model.joint_names):
            np.testing.assert_allclose(
                np.array(sensors.joint_torque(joint))[env], data.joint(joint).qfrc_actuator, rtol=1e-9, atol=1e-9
            )
    assert np.count_nonzero(torques) > model.nu
    assert np.array(sensors.joint_torque([])).shape == (2, 0)


def test_forces_of_an_environment_do_not_depend_on_the_batch():
    model, random = stiction.Model.from_mjcf(asset_path("humanoid.xml")), np.random.default_rng(0)
    states = [random.normal(size=(100, size)) for size in (model.nq, model.nv, model.nu)]
    told = []
    for rows in (slice(0, 100), slice(7, 8), slice(7, 20)):
        sim = Simulation(model, len(states[0][rows]), num_threads=1)
        sim.qpos, sim.qvel, sim.ctrl = (values[rows] for values in states)
        told.append(Sensors(sim).joint_torque()[7 if rows.start == 0 else 0])
    np.testing.assert_array_equal(told[0], told[1])
    np.testing.assert_array_equal(told[0], told[2])
