"""Models of the physics tests, as MJCF strings, and the solver settings they share."""

import math

import numpy as np
from stiction.solver_options import SolverOptions

#: Until the residual says so, and the bare rigid law, which formulas are for: what the equations give.
EXACT = SolverOptions(iterations=2000, tolerance=1e-11, penetration_allowance=0)
GRAVITY = 9.81


def numbers(values) -> str:
    return " ".join(f"{float(value):.17g}" for value in np.ravel(values))


def scene(bodies, *, mu=0.5, timestep=0.001, gravity=(0, 0, -GRAVITY), floor="", rest="") -> str:
    """A floor (z = 0 unless `floor` says otherwise) and bodies. Of two frictions the larger counts: bodies have 0."""
    plane = f'<geom name="floor" type="plane" size="0 0 1" friction="{float(mu):.17g}" {floor}/>'
    option = f'<option timestep="{timestep}" gravity="{numbers(gravity)}"/>'
    return f"<mujoco>{option}<worldbody>{plane}{bodies}</worldbody>{rest}</mujoco>"


def body(name, pos, geom, mass, *, mu=0.0, joint="<freejoint/>", quat=(1, 0, 0, 0)) -> str:
    friction = f'friction="{float(mu):.17g}"'
    place = f'pos="{numbers(pos)}" quat="{numbers(quat)}"'
    return f'<body name="{name}" {place}>{joint}<geom {geom} mass="{float(mass):.17g}" {friction}/></body>'


def found_contacts(sim, env=0) -> dict:
    """The contacts of an environment's last step, as the oracle takes them."""
    names, n = ("geom", "pos", "frame", "dist", "ahead"), sim.contact.count[env]
    return {name: np.array(getattr(sim.contact, name)[env, :n]) for name in names}


def box(half) -> str:
    return f'type="box" size="{numbers(np.broadcast_to(half, 3))}"'


def sphere(radius) -> str:
    return f'type="sphere" size="{radius}"'


def sliding_box(mu=0.5, mass=2.0, timestep=0.001) -> str:
    return scene(body("box", (0, 0, 0.1), box(0.1), mass), mu=mu, timestep=timestep)


def box_on_incline(angle, mu, tilt) -> str:
    """The same incline twice: gravity tilted over a level floor, or the floor and the box turned under gravity."""
    if tilt == "gravity":
        down = (GRAVITY * math.sin(angle), 0, -GRAVITY * math.cos(angle))
        return scene(body("box", (0, 0, 0.1), box(0.1), 2), mu=mu, gravity=down)
    quat = (math.cos(angle / 2), 0, math.sin(angle / 2), 0)
    centre = 0.1 * np.array([math.sin(angle), 0, math.cos(angle)])
    return scene(body("box", centre, box(0.1), 2, quat=quat), mu=mu, floor=f'quat="{numbers(quat)}"')


def sphere_on_incline(angle, mu=1.0, radius=0.05, mass=0.1) -> str:
    down = (GRAVITY * math.sin(angle), 0, -GRAVITY * math.cos(angle))
    return scene(body("ball", (0, 0, radius), sphere(radius), mass), mu=mu, gravity=down)


def sphere_on_floor(mu=0.3, gravity=10.0, radius=0.05, mass=0.1) -> str:
    return scene(body("ball", (0, 0, radius), sphere(radius), mass), mu=mu, gravity=(0, 0, -gravity))


def stack(masses, half=0.1, timestep=0.002) -> str:
    """Cubes on each other, the first at the bottom."""
    cubes = (body(f"cube{i}", (0, 0, half * (2 * i + 1)), box(half), m, mu=0.5) for i, m in enumerate(masses))
    return scene("".join(cubes), timestep=timestep)


def row_of_balls(count, radius=0.05, mass=0.3) -> str:
    balls = (body(f"ball{i}", (2 * radius * i, 0, 0), sphere(radius), mass) for i in range(count))
    return f'<mujoco><option timestep="0.001" gravity="0 0 0"/><worldbody>{"".join(balls)}</worldbody></mujoco>'


def heap(order=(0, 1, 2, 3), rotation=None, gravity=(0.3, 0.2, -GRAVITY), joints="<freejoint/>") -> str:
    """Four balls that fall onto the floor and each other, in some order of bodies, everything turned by `rotation`."""
    turn = np.eye(3) if rotation is None else rotation
    places = [(0, 0, 0.11), (0.19, 0.02, 0.12), (0.08, 0.03, 0.28), (-0.12, 0.14, 0.13)]
    masses = [1.0, 2.0, 0.5, 4.0]
    balls = (body(f"ball{i}", turn @ places[i], sphere(0.1), masses[i], mu=0.2, joint=joints) for i in order)
    quat = quaternion(turn)
    return scene("".join(balls), mu=0.7, timestep=0.002, gravity=turn @ gravity, floor=f'quat="{numbers(quat)}"')


def quaternion(turn) -> np.ndarray:
    """w, x, y, z of a rotation matrix with a positive trace."""
    w = math.sqrt(1 + np.trace(turn)) / 2
    off = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    return np.array([w, *(off / (4 * w))])


def rotation(axis, degrees) -> np.ndarray:
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    a = math.radians(degrees)
    return np.eye(3) + math.sin(a) * K + (1 - math.cos(a)) * K @ K


#: Every kind of row at once: contacts of all primitives, limits, dry friction, an equality, servos, a tendon.
MIXED = """
<mujoco><compiler autolimits="true" angle="radian"/><option timestep=".004"/><worldbody>
  <geom type="plane" size="0 0 1" friction=".8"/>
  <body name="base" pos="0 0 .35"><freejoint/><geom type="box" size=".15 .1 .05" mass="3"/>
    <body pos=".15 .1 0"><joint name="a1" axis="0 1 0" range="-1.2 1.2" damping=".2" armature=".01"/>
      <geom type="capsule" fromto="0 0 0 .1 .05 -.2" size=".03" mass=".5"/>
      <body pos=".1 .05 -.2"><joint name="a2" axis="0 1 0" range="-1 .5" frictionloss=".05" armature=".01"/>
        <geom type="sphere" size=".04" mass=".2" friction="1"/></body></body>
    <body pos="-.15 .1 0"><joint name="b1" axis="0 1 0" damping=".2" armature=".01"/>
      <geom type="capsule" fromto="0 0 0 -.1 .05 -.2" size=".03" mass=".5"/>
      <body pos="-.1 .05 -.2"><joint name="b2" axis="0 1 0" armature=".01"/>
        <geom type="box" size=".04 .04 .02" mass=".2"/></body></body>
    <body pos="0 -.1 0"><joint name="c1" axis="1 0 0" range="-1 1" damping=".2" armature=".01"/>
      <geom type="cylinder" fromto="0 0 0 0 -.1 -.25" size=".03" mass=".6"/></body></body>
  <body name="loose" pos=".05 .02 .6"><freejoint/><geom type="ellipsoid" size=".08 .06 .05" mass=".7"/></body>
</worldbody>
<tendon><fixed name="t" stiffness="3" damping=".1">
  <joint joint="a1" coef="1"/><joint joint="b1" coef="-1"/></fixed></tendon>
<equality><joint joint1="b2" joint2="b1" polycoef="0 .5 0 0 0"/></equality>
<actuator><position joint="a1" kp="8" kv=".3"/><motor joint="b1" gear="2"/>
  <velocity joint="c1" kv=".4"/></actuator></mujoco>
"""


def hinged_pair_and_stack() -> str:
    """Contacts between trees and within one, limits, dry friction and a joint equality in one world."""
    arm = (
        '<body name="arm" pos="0 0 0.3"><joint name="a" type="hinge" axis="0 1 0" limited="true" range="-20 20"/>'
        f'<geom {box((0.2, 0.03, 0.03))} pos="0.2 0 0" mass="1" friction="0.4"/>'
        '<body name="hand" pos="0.42 0 0"><joint name="b" type="hinge" axis="0 1 0" frictionloss="0.3"/>'
        f'<geom {box((0.1, 0.03, 0.03))} pos="0.1 0 0" mass="0.5" friction="0.4"/></body></body>'
        '<body name="twin" pos="0 1 0.5"><joint name="c" type="hinge" axis="0 1 0"/>'
        f'<geom {box((0.1, 0.03, 0.03))} pos="0.1 0 0" mass="0.5"/></body>'
    )
    boxes = body("low", (0.45, 0, 0.1), box(0.1), 1, mu=0.5) + body("high", (0.45, 0.02, 0.36), box(0.06), 3, mu=0.5)
    equality = '<equality><joint joint1="b" joint2="c" polycoef="0 0.5 0 0 0"/></equality>'
    return scene(arm + boxes, mu=0.7, timestep=0.002, rest=equality)
