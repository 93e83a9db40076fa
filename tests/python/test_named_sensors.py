"""A file's sensors by their names, against MuJoCo's sensordata."""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")
import stiction  # noqa: E402
from stiction.touch_zones import meets_zone  # noqa: E402
from test_mass_matrix import at_random  # noqa: E402

OBJECTS = ("body", "base"), ("xbody", "hand"), ("geom", "palm"), ("site", "tip")
FRAMES = "framepos framequat framexaxis frameyaxis framezaxis framelinvel frameangvel".split()


def frame_sensors():
    for k, (kind, name) in enumerate(OBJECTS):
        reference, of = OBJECTS[(k + 1) % len(OBJECTS)]
        for word in FRAMES:
            yield f'<{word} name="{word} of {name}" objtype="{kind}" objname="{name}"/>'
            yield (
                f'<{word} name="{word} of {name} in {of}" objtype="{kind}" objname="{name}" '
                f'reftype="{reference}" refname="{of}"/>'
            )


ROBOT = f"""<mujoco><worldbody>
  <body name="base" pos="0 0 2" euler="10 20 30"><freejoint/><geom size=".1" pos=".05 .02 0"/><site name="imu" euler="40 5 6" pos=".1 0 .1"/>
    <camera name="eye"/>
    <body name="arm" pos=".2 0 0"><joint name="swing" axis="0 1 0"/><geom type="box" size=".1 .02 .03" pos=".1 0 0" euler="5 6 7"/>
      <body name="slider" pos=".2 0 0"><joint name="push" type="slide" axis="1 0 0"/><geom size=".05"/>
        <body name="hand" pos=".1 0 0"><joint name="wrist" type="ball"/>
          <geom name="palm" type="ellipsoid" size=".05 .03 .02" pos=".03 0 .01" euler="20 30 40"/>
          <site name="tip" pos=".1 0 0" euler="0 30 0"/></body></body></body></body>
  </worldbody>
  <tendon><fixed name="both"><joint joint="swing" coef=".5"/><joint joint="push" coef="-2"/></fixed>
    <fixed name="one"><joint joint="push" coef="1"/></fixed>
    <spatial name="string"><site site="imu"/><site site="tip"/></spatial></tendon>
  <actuator><position name="swing" joint="swing" kp="30" kv="2" gear="1.5" forcerange="-20 20"/>
    <motor name="push" joint="push" gear="3"/><motor name="pull" tendon="one"/>
    <motor name="twist" joint="wrist" gear="1 -2 .5"/></actuator>
  <sensor>
    <gyro name="gyro" site="imu" noise=".1"/><velocimeter name="speed" site="imu"/><accelerometer name="acc" site="imu"/>
    <gyro name="gyro, cut" site="imu" cutoff=".3"/>
    {"".join(frame_sensors())}
    <jointpos name="angle" joint="swing"/><jointvel name="rate" joint="push"/><jointactuatorfrc name="torque" joint="swing"/>
    <ballquat name="turn" joint="wrist"/><ballangvel name="turning" joint="wrist"/>
    <actuatorpos name="at" actuator="swing"/><actuatorvel name="how fast" actuator="swing"/>
    <actuatorfrc name="pulled" actuator="swing"/>
    <tendonpos name="length" tendon="both"/><tendonvel name="lengthening" tendon="both"/>
    <subtreecom name="middle" body="arm"/><subtreelinvel name="drift" body="arm"/><clock name="when"/>
    <actuatorfrc name="through a tendon" actuator="pull"/><actuatorpos name="pulled in" actuator="pull"/>
    <actuatorvel name="pulling" actuator="pull"/><jointactuatorfrc name="push torque" joint="push"/>
    <actuatorfrc name="twist" actuator="twist"/><actuatorvel name="twisting" actuator="twist"/>
    <touch name="touch" site="tip"/><magnetometer name="north" site="tip"/><rangefinder name="range" site="tip"/><rangefinder name="range too" site="imu"/>
    <actuatorpos name="twisted" actuator="twist"/><tendonpos name="string" tendon="string"/>
    <framepos name="seen" objtype="camera" objname="eye"/><gyro site="imu"/>
  </sensor></mujoco>"""  # noqa: E501

SILENT = [
    "ignored: sensor 'range', 'range too': rangefinder is not computed",
    "ignored: sensor 'twisted': actuatorpos is not computed on ball joints",
    "ignored: sensor 'string': its tendon is not simulated",
    "ignored: sensor 'seen': framepos of a camera is not computed",
    "ignored: sensor #{}: no name to ask for",
]


@pytest.fixture(params=["native", "torch"])
def robot(request):
    if request.param == "torch":
        pytest.importorskip("torch")
    sim = at_random(stiction.Model.from_mjcf(ROBOT), dtype="float64", array=request.param)
    sim.ctrl = np.random.default_rng(3).normal(size=(3, 4))
    sim.time = [0.5, 1.5, 2.5]
    return sim


def sensordata(sim, env):
    data = mujoco.MjData(sim.model.mjmodel)
    for name in ("qpos", "qvel", "ctrl"):
        getattr(data, name)[:] = np.array(getattr(sim, name))[env]
    data.time = float(sim.time[env])
    mujoco.mj_forward(sim.model.mjmodel, data)
    return data


def test_every_sensor_of_a_file_is_read_by_its_name_or_told_of(robot):
    sensors, m = stiction.Sensors(robot), robot.model.mjmodel
    told = [line for line in robot.model.import_report if "sensor" in line]
    assert told == [line.format(m.nsensor - 1) for line in SILENT]
    assert set(sensors.names) == {m.sensor(i).name for i in range(m.nsensor - 6)}
    for name in sensors.names:
        values = np.array(sensors.named(name))
        assert values.dtype == np.float64
        for env in range(3):
            expected = sensordata(robot, env).sensor(name).data
            if name == "acc":  # of the last control step; here of none
                continue
            if m.sensor(name).type[0] == mujoco.mjtSensor.mjSENS_FRAMEQUAT:
                values[env] *= np.sign(values[env] @ expected)
            np.testing.assert_allclose(values[env], expected, rtol=1e-10, atol=1e-11, err_msg=name)
    assert np.abs(np.array(sensors.named("gyro, cut"))).max() == 0.3


#: Every kind of MuJoCo's that is not offered, but plugins -> what it is of.
NOT_OFFERED = {
    "camprojection": 'site="s" camera="eye"', "rangefinder": 'site="s"', "tendonactuatorfrc": 'tendon="t"',
    "jointlimitpos": 'joint="j"', "jointlimitvel": 'joint="j"', "jointlimitfrc": 'joint="j"',
    "tendonlimitpos": 'tendon="t"', "tendonlimitvel": 'tendon="t"', "tendonlimitfrc": 'tendon="t"',
    "framelinacc": 'objtype="body" objname="b"', "frameangacc": 'objtype="body" objname="b"',
    "subtreeangmom": 'body="b"', "insidesite": 'site="s" objtype="body" objname="b"', "contact": 'geom1="g"',
    "distance": 'geom1="g" geom2="h"', "normal": 'geom1="g" geom2="h"', "fromto": 'geom1="g" geom2="h"',
    "e_potential": "", "e_kinetic": "", "user": 'dim="1"',
}  # fmt: skip
THING = """<mujoco><worldbody><geom name="h" type="plane" size="1 1 1"/>
  <body name="b" pos="0 0 1"><joint name="j" range="-1 1"/><geom name="g" size="1"/>
  <site name="s"/><camera name="eye"/>
  </body></worldbody><tendon><fixed name="t" range="-1 1"><joint joint="j" coef="1"/></fixed></tendon>
  <sensor><{} name="mine" {}/></sensor></mujoco>"""


@pytest.mark.parametrize(("kind", "of"), NOT_OFFERED.items(), ids=list(NOT_OFFERED))
def test_every_kind_that_is_not_offered_is_told_by_name(kind, of):
    try:
        model = stiction.Model.from_mjcf(THING.format(kind, of))
    except ValueError as error:
        assert "unrecognized" in str(error).lower() or "schema" in str(error).lower(), error
        pytest.skip(f"this MuJoCo has no {kind}")
    assert [line for line in model.import_report if "sensor 'mine'" in line and "is not computed" in line]
    assert stiction.Sensors(stiction.Simulation(model)).names == ()


def test_an_accelerometer_by_name_is_the_imu_of_its_site(robot):
    sensors = stiction.Sensors(robot)
    sensors.named("acc")
    imu = sensors.imu("imu")
    for _ in range(3):
        robot.step(5)
        sensors.advance(5 * robot.timestep)
        np.testing.assert_array_equal(np.array(sensors.named("acc")), np.array(imu.accelerometer))
    assert len(sensors._with_memory) == 2


def test_a_sensor_that_is_not_there_is_refused_by_name():
    sensors = stiction.Sensors(stiction.Simulation(stiction.Model.from_mjcf(ROBOT)))
    with pytest.raises(KeyError, match="no sensor named 'range' that is computed; there are: 'gyro', 'speed'"):
        sensors.named("range")
    bare = stiction.Model.from_arrays(sensors._model.to_arrays())
    assert stiction.Sensors(stiction.Simulation(bare)).names == ()


def test_a_task_reads_the_sensors_of_its_model():
    pytest.importorskip("gymnasium")

    class Balance(stiction.Task):
        model = ROBOT

        def observe(self):
            return {name: self.sensors.named(name) for name in ("gyro", "acc", "angle")}

        def reward(self, action):
            return -(self.sensors.named("angle")[:, 0] ** 2)

    envs = stiction.make_vec(Balance, 2)
    envs.reset(seed=0)
    for _ in range(3):
        observations = envs.step(np.zeros((2, 4), np.float32))[0]
    assert envs.observation_names[:3] == ("gyro/x", "gyro/y", "gyro/z")
    assert observations.shape == (2, 7)
    np.testing.assert_allclose(observations[:, 3:6], 0, atol=1e-3)  # it falls


@pytest.mark.parametrize("array", ["native", "torch"])
@pytest.mark.parametrize("shape", ["sphere", "capsule", "ellipsoid", "cylinder", "box"])
def test_a_ray_meets_a_zone_as_in_mujoco(shape, array):
    random, size = np.random.default_rng(0), np.array([0.3, 0.5, 0.4])
    points, rays = random.normal(size=(500, 3)) * 0.5, random.normal(size=(500, 3))
    rays[::5, :2], rays[1::5, 2] = 0, 0  # along an axis, across it
    rays /= np.linalg.norm(rays, axis=1)[:, None]
    kind = int(getattr(mujoco.mjtGeom, f"mjGEOM_{shape.upper()}"))
    expected = [
        mujoco.mju_rayGeom(np.zeros(3), np.eye(3).ravel(), size, point, ray, kind, np.zeros(3)) >= 0
        for point, ray in zip(points, rays, strict=True)
    ]
    assert 50 < sum(expected) < 450
    if array == "torch":
        torch = pytest.importorskip("torch")
        points, rays = torch.as_tensor(points), torch.as_tensor(rays)
    np.testing.assert_array_equal(np.asarray(meets_zone(shape, size, points, rays)), expected)


FOOT = """<mujoco><worldbody><geom type="plane" size="0 0 1"/>
<body name="foot" pos="0 0 0.1"><freejoint/><geom type="box" size="0.2 0.1 0.1" mass="3"/>
  <site name="front" type="box" pos="0.2 0 -0.1" size="0.05 0.2 0.01"/><site name="back" type="sphere" pos="-0.2 0.1 -0.1" size="0.03"/>
  <site name="sole" type="box" pos="0 0 -0.1" size="0.3 0.2 0.01"/><site name="top" pos="0 0 0.2" size="0.05"/></body>
</worldbody><sensor><touch name="front" site="front"/><touch name="back" site="back"/><touch name="sole" site="sole"/>
<touch name="top" site="top"/><touch name="cut" site="sole" cutoff="10"/></sensor></mujoco>"""  # noqa: E501


@pytest.mark.parametrize("array", ["native", "torch"])
def test_a_touch_sensor_has_what_presses_within_its_site(array):
    """A foot on the floor: half its weight on the two corners in front, a quarter on one behind."""
    if array == "torch":
        pytest.importorskip("torch")
    model = stiction.Model.from_mjcf(FOOT)
    assert not [line for line in model.import_report if "sensor" in line]
    sim = stiction.Simulation(model, 2, array=array, dtype="float64")
    sim.qpos[1, 2] = 1.0
    sensors = stiction.Sensors(sim)
    sim.step(100)
    weight = 3 * 9.81
    for name, part in (("front", 0.5), ("back", 0.25), ("sole", 1.0), ("top", 0.0), ("cut", 10 / weight)):
        values = np.array(sensors.named(name))
        assert values.shape == (2, 1) and values[1, 0] == 0
        assert values[0, 0] == pytest.approx(part * weight, rel=1e-3, abs=1e-9), name


ARM = """<mujoco><option timestep="{h}" integrator="Euler"><flag contact="disable"/></option><worldbody>
  <body name="pillar" pos="0 0 1" euler="0 0 20"><geom size=".1" mass="2"/><site name="bolt" pos=".1 0 0" euler="10 20 30"/>
    <body name="upper" euler="10 0 0"><joint name="a" axis="0 1 0" damping=".2" armature=".1"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
      <site name="shoulder" pos=".02 0 .01" euler="30 40 50"/>
      <body name="lower" pos=".3 0 0"><joint name="b" axis="0 0 1" damping=".1"/><geom type="box" size=".1 .02 .04" pos=".1 0 .02" mass=".6"/>
        <site name="elbow" euler="0 50 20"/><body name="tool" pos=".2 0 0"><joint type="ball" damping=".01"/><geom size=".03" pos=".02 0 .05" mass=".2"/><site name="wrist"/></body></body></body></body>
  <body name="cart" pos="0 2 1"><freejoint/><geom type="box" size=".2 .1 .05" mass="3"/><body name="mast" pos="0 0 .2"><geom size=".05" pos=".05 0 .1" mass=".5"/>
    <site name="mast" pos="0 0 .1" euler="5 5 5"/></body></body>
</worldbody><actuator><motor joint="a" gear="3"/></actuator>
<sensor>{sensors}</sensor></mujoco>"""  # noqa: E501
CUT = [f'<{kind} name="{kind} {of}" site="{of}"/>' for kind in ("force", "torque") for of in
       ("bolt", "shoulder", "elbow", "wrist", "mast")]  # fmt: skip


@pytest.mark.parametrize("array", ["native", "torch"])
def test_force_and_torque_of_a_cut_are_mujocos_in_the_limit_of_small_steps(array):
    """Of an arm and a floating body that spin, are driven and pulled: ten times as near with a tenth of the step."""
    if array == "torch":
        pytest.importorskip("torch")
    worst = {}
    for h in (1e-4, 1e-5):
        model = stiction.Model.from_mjcf(ARM.format(h=h, sensors="".join(CUT)))
        assert not [line for line in model.import_report if "sensor" in line]
        sim = at_random(model, dtype="float64", integrator="euler", array=array)
        sensors, data = stiction.Sensors(sim), mujoco.MjData(model.mjmodel)
        sim.ctrl[:] = 0.7
        sim.xfrc_applied[:, -1] = sim.xfrc_applied[:, 3] = 1.0
        before = np.array(sim.qpos), np.array(sim.qvel)
        sim.step()
        apart = size = 0
        for env in range(sim.num_envs):
            data.qpos, data.qvel = before[0][env], before[1][env]
            data.ctrl[:], data.xfrc_applied[:] = 0.7, np.array(sim.xfrc_applied)[env]
            mujoco.mj_forward(model.mjmodel, data)
            for name in sensors.names:
                expected = data.sensor(name).data
                apart = max(apart, np.abs(np.array(sensors.named(name))[env] - expected).max())
                size = max(size, np.abs(expected).max())
        worst[h] = apart / size
    assert worst[1e-4] < 5e-3
    assert worst[1e-5] == pytest.approx(worst[1e-4] / 10, rel=0.1)


SCALE = """<mujoco><worldbody><geom type="plane" size="0 0 1"/>
  <body name="plate" pos="0 0 .5"><joint type="slide" axis="0 0 1" range="-1 1" stiffness="3000" damping="60"/>
    <geom type="box" size=".3 .3 .02" mass="1"/><site name="scale"/></body>
  <body name="load" pos=".1 .05 .58"><freejoint/><geom type="box" size=".05 .05 .06" mass="2"/></body>
</worldbody><sensor><force name="force" site="scale"/><torque name="torque" site="scale"/></sensor></mujoco>"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_plate_weighs_what_lies_on_it(dtype):
    """Its own weight before anything has moved and after a reset; then the load's too, with its lever arm."""
    sim = stiction.Simulation(stiction.Model.from_mjcf(SCALE), 2, dtype=dtype, num_threads=1)
    sensors, g = stiction.Sensors(sim), 9.81
    np.testing.assert_allclose(sensors.named("force"), [[0, 0, g]] * 2, atol=1e-5)
    sim.qpos[1, 1] = 5.0  # beside the plate
    sim.step(1500)
    arm = np.array(sim.xpos[0, 2] - sim.xpos[0, 1])
    expected = np.array([[0, 0, 3 * g], [0, 0, g]])
    np.testing.assert_allclose(sensors.named("force"), expected, atol=2e-2)
    np.testing.assert_allclose(sensors.named("torque")[0], [2 * g * arm[1], -2 * g * arm[0], 0], atol=2e-2)
    sim.reset()
    np.testing.assert_allclose(sensors.named("force"), [[0, 0, g]] * 2, atol=1e-5)


def test_a_cut_that_is_not_computed_is_told():
    tied = ARM.replace("</worldbody>", '</worldbody><equality><connect body1="tool" anchor="0 0 0"/></equality>')
    model = stiction.Model.from_mjcf(tied.format(h=1e-3, sensors=CUT[0]))
    assert "ignored: sensor 'force bolt': force is not computed beside connects and welds" in model.import_report
    fixed = ARM.replace("<worldbody>", '<worldbody><site name="floor"/>')
    model = stiction.Model.from_mjcf(fixed.format(h=1e-3, sensors='<force name="f" site="floor"/>'))
    assert "ignored: sensor 'f': force on the world is not computed" in model.import_report


def test_what_an_accelerometer_does_not_know_of_is_an_error():
    """It told 9.81 in free fall."""
    sim = stiction.Simulation(stiction.Model.from_mjcf(ROBOT), 2, dtype="float64")
    sensors, dt = stiction.Sensors(sim), sim.timestep
    touch, swing = sensors.contacts("base"), sensors.acceleration("swing")
    sim.step(10)
    for ask in (lambda: sensors.named("acc"), lambda: touch.air_time, lambda: swing.value):
        with pytest.raises(RuntimeError, match="time steps that its Sensors do not know of"):
            ask()
    sensors.restart()
    state = sim.get_state()
    for _ in range(10):
        sim.step()
        sensors.advance(dt)
    assert abs(sensors.named("acc")).max() < 9 and (touch.air_time > 0).all()
    sim.step()
    later = sim.get_state()
    sim.set_state(state)
    sensors.named("acc")  # of a time before
    sim.set_state(later)
    with pytest.raises(RuntimeError):
        sensors.named("acc")
    sim.reset()
    sensors.restart([0])
    sensors.named("acc")


@pytest.mark.parametrize("array", ["native", "torch"])
def test_jacobians_of_bodies_with_several_joints_are_mujocos(array):
    """An axis is turned by the joints before it on its body, and was by those after it, too."""
    if array == "torch":
        pytest.importorskip("torch")
    sim = at_random(
        stiction.Model.from_mjcf("""<mujoco><worldbody><body name="planar"><joint type="slide" axis="1 0 0" ref=".2"/>
        <joint type="slide" axis="0 .6 .8"/><joint axis="0 1 0" pos=".1 0 .2" ref=".3"/><joint axis="1 0 1"/>
        <geom size=".1"/><body name="hip" pos="0 0 -.3" euler="10 20 30"><joint axis="1 0 0" pos="0 .1 0"/>
        <joint axis="0 0 1"/><joint axis="0 1 0" pos=".1 0 0"/><geom size=".1"/>
        <body name="eye" pos=".2 0 0"><joint axis="0 0 1"/><joint type="ball" pos="0 .1 0"/><geom size=".1"/>
        <site name="tip" pos="0 .1 .3"/></body></body></body></worldbody></mujoco>"""),
        dtype="float64",
        array=array,
    )
    sensors, m = stiction.Sensors(sim), sim.model.mjmodel
    data, linear, angular = mujoco.MjData(m), np.zeros((3, m.nv)), np.zeros((3, m.nv))
    for env in range(sim.num_envs):
        data.qpos[:], data.qvel[:] = np.asarray(sim.qpos[env]), np.asarray(sim.qvel[env])
        mujoco.mj_forward(m, data)
        for name in ("planar", "hip", "eye"):
            mujoco.mj_jacBody(m, data, linear, angular, m.body(name).id)
            np.testing.assert_allclose(sensors.body_jacobian(name)[env], [*linear, *angular], atol=1e-12)
        mujoco.mj_jacSite(m, data, linear, angular, m.site("tip").id)
        np.testing.assert_allclose(sensors.site_jacobian("tip")[env], [*linear, *angular], atol=1e-12)
        rates = np.asarray(sensors.site_jacobian("tip")[env]) @ data.qvel
        np.testing.assert_allclose(rates[:3], sensors.site_velocity("tip")[0][env], atol=1e-11)
