"""What overlaps and cannot part: by the loops that hold it, between walls, by the shapes of a URDF."""

import numpy as np
import pytest
import stiction
from stiction import Model, Simulation, Status


def slider_crank(touch: int, beside: str = "") -> str:
    """A crank drives a slider by a rod, whose pin is modelled as a ball on each of the two, 1 mm apart."""
    pin = f'type="sphere" size=".012" mass=".02" contype="{touch}" conaffinity="{touch}"'
    return f"""
<mujoco><option timestep=".002"/><worldbody>{beside}
  <body><joint name="crank" axis="0 1 0" armature=".001" damping=".01"/>
    <geom type="capsule" size=".008" fromto="0 0 0 0 0 .06" mass=".1" contype="0" conaffinity="0"/>
    <body pos="0 0 .06"><joint axis="0 1 0"/>
      <geom type="capsule" size=".008" fromto="0 0 0 .1264911 0 -.06" mass=".1" contype="0" conaffinity="0"/>
      <site name="a" pos=".1264911 0 -.06"/><geom name="pin" pos=".1264911 0 -.06" {pin}/></body></body>
  <body name="slider" pos=".1264911 0 0"><joint name="slide" type="slide" axis="1 0 0" damping=".1"/>
    <site name="b"/><geom name="seat" pos=".001 0 0" {pin}/>
    <geom name="piston" type="box" size=".02 .02 .02" pos=".05 0 0" mass=".2"/></body>
</worldbody><equality><connect site1="a" site2="b"/></equality>
<actuator><motor joint="crank" ctrlrange="-1 1"/></actuator></mujoco>"""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_balls_of_a_pin_do_not_lock_the_loop(dtype, device):
    """Pushes would grow without bound, and friction with them: it moves as if the two did not touch, and tells so."""
    moved = []
    for touch in (0, 1):
        sim = Simulation(Model.from_mjcf(slider_crank(touch)), 1, dtype=dtype, device=device)
        path = []
        for step in range(400):
            sim.ctrl[:] = 0.05 * np.sin(0.02 * step)
            sim.step()
            path.append(np.array(sim.qpos[0, :3]))
            assert sim.certificate.converged[0]
        assert sim.status[0] == (Status.IMMOVABLE if touch else 0)
        moved.append(np.array(path))
    assert np.ptp(moved[0], axis=0).min() > 0.01
    np.testing.assert_allclose(moved[1], moved[0], atol=1e-9 if dtype == "float64" else 1e-4)


def test_beside_a_loop_overlaps_are_closed_and_what_it_drives_pushes():
    """Of bodies that the loop moves, and of those that it has nothing to do with."""
    beside = """<geom type="box" size=".02 .1 .1" pos=".2154911 0 0"/>
      <geom type="box" size=".1 .1 .02" pos="0 .5 -.02"/>
      <body name="ball" pos="0 .5 .017"><freejoint/><geom type="sphere" size=".02"/></body>"""
    sim = Simulation(Model.from_mjcf(slider_crank(0, beside)), 1)
    model = sim.model.mjmodel
    sim.step(200)
    assert sim.status[0] == 0
    slide, ball = model.joint("slide").qposadr[0], model.body("ball").jntadr[0]
    assert sim.qpos[0, slide] < -0.9e-3, "1 mm of the piston was in the wall"
    assert sim.qpos[0, model.jnt_qposadr[ball] + 2] > 0.0199
    sim.ctrl[:] = -0.3  # towards the wall
    sim.step(200)
    assert sim.contact.impulse[0, : sim.contact.count[0]].max() > 1e-3 and sim.status[0] == 0


def pulled_hand() -> Model:
    """A box that a mocap body holds by a weld, above a floor."""
    return Model.from_mjcf("""
<mujoco><option timestep=".002"/><worldbody><geom type="plane" size="5 5 1"/>
  <body name="guide" mocap="true" pos="0 0 .1"/>
  <body name="hand" pos="0 0 .1"><freejoint/><geom type="box" size=".05 .05 .05" mass=".5"/></body>
</worldbody><equality><weld body1="guide" body2="hand"/></equality></mujoco>""")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_a_mocap_body_pulls_is_not_held_by_a_loop(dtype):
    """The weld has all of its velocities, and gives way: the floor is the stronger."""
    sim = Simulation(pulled_hand(), 1, dtype=dtype)
    for step in range(300):
        sim.mocap_pos[0, 0, 2] = max(0.1 - 0.001 * step, 0.0)  # 0.5 m/s, to 5 cm below where the floor lets it
        sim.step()
        assert sim.qpos[0, 2] > 0.0495
    assert not sim.status[0] & Status.IMMOVABLE


def test_a_compliant_contact_may_be_deep():
    sim = Simulation(pulled_hand().with_material(1e4, 0.05), 1)
    for step in range(300):
        sim.mocap_pos[0, 0, 2] = max(0.1 - 0.001 * step, 0.045)
        sim.step()
    push = np.asarray(sim.contact.impulse[0, : sim.contact.count[0], 2]).sum() / 0.002
    assert push > 50 and sim.certificate.penetration[0] > 1e-3 and sim.status[0] == 0


def test_what_is_light_beside_what_it_is_welded_to_is_not_held():
    """A plate of 10 g under 20 kg: its corners move the heavier by 1e-4 of what they move it alone."""
    sim = Simulation(
        Model.from_mjcf("""
<mujoco><option timestep=".002"/><worldbody><geom type="plane" size="5 5 1"/>
  <body name="heavy" pos="0 0 .0598"><freejoint/><geom type="box" size=".05 .05 .05" mass="20"/></body>
  <body name="plate" pos="0 0 .0048"><freejoint/><geom type="box" size=".05 .05 .005" mass=".01"/></body>
</worldbody><contact><exclude body1="heavy" body2="plate"/></contact>
<equality><weld body1="heavy" body2="plate"/></equality></mujoco>"""),
        1,
        dtype="float64",
    )
    sim.step(200)
    assert sim.status[0] == 0 and sim.contact.count[0] >= 4
    assert abs(sim.qpos[0, 9] - 0.005) < 3e-5


def wedged_leg(slot: float) -> str:
    """A foot, 20 mm high, between the floor and a bar, of a robot with dry friction in its 15 joints."""
    arm = "".join(
        f'<body pos="0 .05 {0.05 * (k == 0)}"><joint axis="{k % 3 == 0:d} {k % 3 == 1:d} {k % 3 == 2:d}"'
        ' frictionloss=".05" armature=".002"/><geom type="capsule" size=".01" fromto="0 0 0 0 .05 0"'
        ' contype="0" conaffinity="0"/>'
        for k in range(9)
    )
    arm += "</body>" * 9
    leg = ""
    for k, axis in enumerate(("0 1 0", "1 0 0", "0 1 0", "0 1 0", "1 0 0", "0 0 1")):
        leg += f'<body pos="0 0 {-0.08 * (k > 0)}"><joint axis="{axis}" frictionloss=".1" armature=".01"'
        leg += ' stiffness="40" damping="2"/>'
        leg += '<geom type="capsule" size=".02" fromto="0 0 0 0 0 -.08" contype="0" conaffinity="0"/>' if k < 5 else ""
    leg += '<geom name="foot" type="box" size=".08 .04 .01" mass=".4"/>' + "</body>" * 6
    return f"""
<mujoco><option timestep=".002"/><worldbody><geom type="plane" size="5 5 1"/>
  <geom type="box" size=".02 .2 .02" pos=".06 0 {slot + 0.02}"/>
  <body pos="0 0 .41"><freejoint/><geom type="box" size=".06 .06 .06" mass="3" contype="0" conaffinity="0"/>
    {leg}{arm}</body></worldbody></mujoco>"""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_foot_in_a_slot_that_is_too_low_stands(dtype):
    """It cannot leave the floor and the bar both; what holds the robot up must not go for that."""
    sim = Simulation(Model.from_mjcf(wedged_leg(0.018)), 1, dtype=dtype)
    told = 0
    for _ in range(100):
        sim.step()
        told |= int(sim.status[0])
        sim.clear_status()
    assert np.abs(sim.contact.impulse).max() < 0.5, "a tenth of a newton second carries it"
    assert told & Status.NOT_CONVERGED and not told & Status.NO_IMPULSES
    foot = sim.model.mjmodel.geom("foot").bodyid[0]
    assert abs(sim.xpos[0, foot, 2] - 0.01) < 2e-3 and np.abs(sim.xpos[0, foot, :2]).max() < 5e-3


OVERLAPPING = """<robot name="dog">
  <link name="base">{inertia}<collision><geometry><box size=".4 .2 .1"/></geometry></collision></link>
  <link name="hip">{inertia}<collision><geometry><sphere radius=".06"/></geometry></collision></link>
  <link name="thigh">{inertia}<collision>{below}<geometry><box size=".04 .04 .25"/></geometry></collision></link>
  <link name="shank">{inertia}<collision>{below}<geometry><box size=".03 .03 .2"/></geometry></collision></link>
  <joint name="roll" type="revolute"><parent link="base"/><child link="hip"/>
    <origin xyz=".2 .1 0"/><axis xyz="1 0 0"/>{limit}</joint>
  <joint name="pitch" type="revolute"><parent link="hip"/><child link="thigh"/><axis xyz="0 1 0"/>{limit}</joint>
  <joint name="knee" type="revolute"><parent link="thigh"/><child link="shank"/>
    <origin xyz="0 0 -.2"/><axis xyz="0 1 0"/><limit lower="-2.9" upper="-.3" effort="30" velocity="10"/></joint>
</robot>""".format(
    below='<origin xyz="0 0 -.1"/>',
    inertia='<inertial><mass value="1"/><inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>',
    limit='<limit lower="-2" upper="2" effort="30" velocity="10"/>',
)


def test_links_of_a_urdf_whose_shapes_overlap_do_not_touch():
    """The base overlaps the hip, its child, which MuJoCo filters of roots that move alone, and the thigh."""
    model = Model.from_urdf(OVERLAPPING)
    (told,) = [line for line in model.import_report if "overlap" in line]
    assert told == "ignored: contact of links whose shapes overlap: 'base' and 'hip', 'base' and 'thigh'"
    sim = Simulation(model, 1)
    sim.step(300)
    assert sim.status[0] == 0 and np.abs(sim.qpos[0, 1:]).max() > 0.1
    floating = Model.from_urdf(OVERLAPPING, floating=True, self_collision=True, pose={"knee": -1})
    assert any("'base' and 'thigh'" in line for line in floating.import_report)
    alone = Model.from_urdf(OVERLAPPING, floating=True, pose={"knee": -1})
    assert not any("overlap" in line for line in alone.import_report)


def test_where_nothing_overlaps_links_of_a_urdf_touch():
    apart = OVERLAPPING.replace('size=".4 .2 .1"', 'size=".1 .1 .1"').replace('radius=".06"', 'radius=".03"')
    model = Model.from_urdf(apart)
    assert not any("overlap" in line for line in model.import_report) and model.mjmodel.nexclude == 0
    assert stiction.Simulation(model, 1).status[0] == 0


def test_what_overlaps_the_root_of_a_urdf_touches_what_else_is_fixed():
    """A table of its own link, joined to the base: the leg that hangs from the base comes to rest on it."""
    table = """<link name="table"><collision><geometry><box size="1 1 .02"/></geometry></collision></link>
      <joint name="bolts" type="fixed"><parent link="base"/><child link="table"/><origin xyz="0 0 -.3"/></joint>"""
    model = Model.from_urdf(OVERLAPPING.replace("</robot>", table + "</robot>"), kp=50, kd=1, pose={"knee": -2.5})
    assert "table" in model.body_names
    sim = Simulation(model, 1)
    sim.qpos[0] = model.key_qpos[0]
    sim.ctrl[0] = [0, 0, -0.4]
    sim.step(1000)
    shank = sim.contact.geom[0, : sim.contact.count[0]]
    touching = {model.body_names[b] for b in model.mjmodel.geom_bodyid[shank].ravel()}
    assert touching == {"shank", "table"} and sim.certificate.penetration[0] < 1e-4
