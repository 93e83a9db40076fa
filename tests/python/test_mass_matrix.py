"""Mass matrix, bias, poses of geoms and centres of mass of subtrees against MuJoCo's."""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")
import stiction  # noqa: E402
from model_sources import ROBOTS, data_file  # noqa: E402

#: Every joint, several on a body and off its origin, turned inertias, a mocap body, references, a spring with armature.
JOINTS = """<mujoco><worldbody>
  <body name="moved" mocap="true" pos="0 1 0"/>
  <body name="base" pos="1 2 3" euler="10 20 30"><freejoint/>
    <inertial pos=".1 .2 .3" euler="40 50 60" mass="2" diaginertia=".3 .4 .5"/>
    <geom name="hull" size=".1" pos=".1 0 0"/>
    <body name="arm" pos=".2 .1 0" euler="5 6 7">
      <joint type="slide" axis="1 1 0" ref=".1"/><joint pos=".1 .2 0" axis="0 1 1" ref="20" armature=".05"/>
      <joint pos="0 .3 .1" axis="1 0 1"/><geom name="link" type="box" size=".1 .2 .3" pos=".1 .1 0" euler="30 0 10"/>
      <body name="fixed" pos=".1 0 .2" euler="0 30 0"><geom size=".05 .1" type="capsule" pos="0 .1 0"/>
        <body name="hand" pos="0 0 .3" euler="9 8 7"><joint type="ball" pos=".02 .03 .1" armature=".01"/>
          <geom name="palm" type="ellipsoid" size=".1 .05 .02" pos=".05 0 0" euler="0 45 0"/>
          <body pos=".1 0 0"><joint type="slide" axis="0 0 1"/><geom size=".03"/></body></body></body></body></body>
  <body name="post" pos="-2 0 0"><joint type="ball"/><geom type="capsule" fromto="0 0 0 0 0 1" size=".05"/></body>
</worldbody></mujoco>"""


def at_random(model, num_envs=3, **options):
    """A simulation far from rest, 100 m away, with quaternions that are not quite of unit length."""
    sim = stiction.Simulation(model, num_envs, num_threads=1, device="cpu", **options)
    random = np.random.default_rng(0)
    data = mujoco.MjData(model.mjmodel)
    qpos = np.zeros((num_envs, model.nq))
    for row in qpos:
        data.qpos[:] = model.qpos0
        mujoco.mj_integratePos(model.mjmodel, data.qpos, random.normal(size=model.nv), 1.0)
        row[:] = data.qpos
    sim.qpos, sim.qvel = qpos, random.normal(size=(num_envs, model.nv))
    sim.forward()
    return sim


def mujocos(sim, env):
    model = sim.model.mjmodel
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = np.array(sim.qpos)[env], np.array(sim.qvel)[env]
    mujoco.mj_forward(model, data)
    matrix = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, matrix)
    return data, matrix


def compare(sim):
    matrix, bias = np.array(sim.mass_matrix("float64")), np.array(sim.bias("float64"))
    assert matrix.shape == (sim.num_envs, sim.model.nv, sim.model.nv)
    assert bias.shape == (sim.num_envs, sim.model.nv)
    for env in range(sim.num_envs):
        data, expected = mujocos(sim, env)
        np.testing.assert_allclose(matrix[env], expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())
        np.testing.assert_allclose(bias[env], data.qfrc_bias, rtol=1e-9, atol=1e-11 * np.abs(data.qfrc_bias).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mass_matrix_and_bias_are_mujocos_in_double(dtype):
    compare(at_random(stiction.Model.from_mjcf(JOINTS), dtype=dtype))


@pytest.mark.parametrize("robot", ROBOTS)
def test_they_are_of_public_robots(robot):
    compare(at_random(stiction.Model.from_mjcf(data_file(robot)), dtype="float64"))


def test_they_follow_parameters_and_flags():
    model = stiction.Model.from_mjcf(
        JOINTS.replace("<worldbody>", '<option><flag gravity="disable"/></option><worldbody>')
    )
    compare(at_random(model, dtype="float64"))
    model = stiction.Model.from_mjcf(JOINTS)
    names = "body_mass", "body_inertia", "dof_armature", "gravity"
    sim, mjmodel, random = at_random(model, dtype="float64", per_env=names), model.mjmodel, np.random.default_rng(1)
    for name in names:
        shape = getattr(sim.params, name).shape
        setattr(sim.params, name, getattr(model, name) * random.uniform(0.5, 2, shape))
    for env in range(3):
        for name in names[:3]:
            getattr(mjmodel, name)[:] = getattr(sim.params, name)[env]
        mjmodel.opt.gravity[:] = sim.params.gravity[env]
        data, expected = mujocos(sim, env)
        np.testing.assert_allclose(sim.mass_matrix()[env], expected, atol=1e-11 * np.abs(expected).max())
        np.testing.assert_allclose(sim.bias()[env], data.qfrc_bias, atol=1e-11 * np.abs(data.qfrc_bias).max())


def test_masses_scale_inertias_as_in_a_step():
    """Unless these are parameters, too: what a step gives to M dv = h f is the force."""
    xml = """<mujoco><option gravity="0 0 0" timestep="1e-4"/><worldbody><body><joint axis="0 1 0"/>
      <geom type="box" size=".1 .2 .3" pos=".4 0 0" mass="2"/></body></worldbody></mujoco>"""
    model = stiction.Model.from_mjcf(xml)
    point, own = 2 * 0.4**2, 2 * (0.1**2 + 0.3**2) / 3  # of the mass about the joint, of the box about its middle
    for per_env, turned in ((("body_mass",), 2 * own), (("body_mass", "body_inertia"), own)):
        sim = stiction.Simulation(model, 2, dtype="float64", per_env=per_env)
        sim.params.body_mass[1] *= 2
        np.testing.assert_allclose(sim.mass_matrix()[:, 0, 0], [point + own, 2 * point + turned], rtol=1e-12)
        sim.qfrc_applied[:] = 3.0
        sim.step()
        np.testing.assert_allclose(sim.mass_matrix()[:, 0, 0] * sim.qvel[:, 0], 3e-4, rtol=1e-9)


def test_they_are_of_the_present_state_and_of_the_kind_that_is_asked_for():
    torch = pytest.importorskip("torch")
    sim = at_random(stiction.Model.from_mjcf(JOINTS), array="torch")
    matrix = sim.mass_matrix()
    assert isinstance(matrix, torch.Tensor) and matrix.dtype == torch.float32
    assert sim.bias("float64").dtype == torch.float64
    moving = sim.bias()
    sim.qvel = 0 * sim.qvel  # without forward
    assert not torch.equal(sim.bias(), moving)
    with pytest.raises(ValueError, match="dtype is 'int8', expected 'float32' or 'float64'"):
        sim.bias("int8")


@pytest.mark.parametrize("array", ["native", "torch"])
def test_poses_of_geoms_and_centres_of_mass_of_subtrees_are_mujocos(array):
    if array == "torch":
        pytest.importorskip("torch")
    sim = at_random(stiction.Model.from_mjcf(JOINTS), dtype="float64", array=array, per_env=("body_mass",))
    sensors = stiction.Sensors(sim)
    geoms, bodies = ["hull", "link", "palm"], ["world", "base", "hand", "moved"]
    position, orientation = map(np.array, sensors.geom_pose(geoms))
    com, velocity = np.array(sensors.subtree_com(bodies)), np.array(sensors.subtree_velocity(bodies))
    np.testing.assert_allclose(np.array(sensors.subtree_com("hand")), com[:, 2], rtol=1e-14)
    for env in range(3):
        data, _ = mujocos(sim, env)
        mujoco.mj_subtreeVel(sim.model.mjmodel, data)
        for k, name in enumerate(geoms):
            np.testing.assert_allclose(position[env, k], data.geom(name).xpos, atol=1e-12)
            matrix = np.zeros(9)
            mujoco.mju_quat2Mat(matrix, orientation[env, k])
            np.testing.assert_allclose(matrix, data.geom(name).xmat, atol=1e-12)
        for k, name in enumerate(bodies):
            body = sim.model.body_id(name)
            np.testing.assert_allclose(com[env, k], data.subtree_com[body], atol=1e-11)
            np.testing.assert_allclose(velocity[env, k], data.subtree_linvel[body], atol=1e-11)
    sim.params.body_mass[1, sim.model.body_id("hand")] *= 10
    heavier = np.array(sensors.subtree_com("base"))
    assert np.abs(heavier[1] - com[1, 1]).max() > 0.01
    np.testing.assert_allclose(heavier[0], com[0, 1], rtol=1e-14)
