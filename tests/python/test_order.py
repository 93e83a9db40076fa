"""The whole simulator converges with the time step: error against a run at h/64, in double, and the order fitted to it.

Both integrators are of first order (symplectic and linearly implicit Euler), and contact that stays, slides to rest or
lands without bouncing keeps that. Errors are of positions at a fixed time; orientations count as the angle between.
"""

import math

import numpy as np
import pytest

pytest.importorskip("mujoco")

from scenes import EXACT, GRAVITY, body, box, scene, sphere  # noqa: E402
from stiction import Model, Simulation  # noqa: E402

TUMBLING = scene(body("brick", (0, 0, 5), 'type="box" size=".05 .1 .2"', 1.0))
PENDULUM = """
<mujoco><worldbody><body><joint name="a" axis="0 1 0" damping=".05" stiffness="2"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.5" size=".03" mass="1" contype="0" conaffinity="0"/>
  <body pos="0 0 -.5"><joint name="b" axis="0 1 0" damping=".02" armature=".01"/>
    <geom type="capsule" fromto="0 0 0 .1 0 -.4" size=".03" mass=".5" contype="0" conaffinity="0"/></body></body>
</worldbody></mujoco>"""
#: A cylinder on the floor, held by a spring: it rolls if friction allows, else it slides. Its outline is a sphere's:
#: one contact, so that its impulse is unique.
SPRING_CYLINDER = """
<mujoco><worldbody><geom type="plane" size="0 0 1" friction="{mu}"/>
  <body pos="0 0 .05"><joint type="slide" axis="1 0 0" stiffness="100"/><joint type="slide" axis="0 0 1"/>
    <joint axis="0 1 0"/><inertial pos="0 0 0" mass=".5" diaginertia=".001 .000625 .001"/>
    <geom type="sphere" size=".05" friction="0"/></body>
</worldbody></mujoco>"""
SLOPE = (GRAVITY * math.sin(0.3), 0, -GRAVITY * math.cos(0.3))
ROLLING = scene(body("ball", (0, 0, 0.05), sphere(0.05), 0.1), mu=1.0, gravity=SLOPE)
STOPPING = scene(body("box", (0, 0, 0.1), box(0.1), 2.0), mu=0.5)
LANDING = scene(body("ball", (0, 0, 0.1), sphere(0.05), 0.1), mu=0.3)

#: Model, start (qpos and qvel by index), duration in s, coarsest step in s, window of the order.
SCENES = {
    "tumbling brick": (TUMBLING, {}, {3: 1.0, 4: 5.0, 5: -3.0, 0: 2.0}, 0.4, 0.004, (0.95, 1.05)),
    "damped double pendulum": (PENDULUM, {0: 1.0, 1: -0.5}, {1: 2.0}, 0.5, 0.002, (0.95, 1.05)),
    "spring, cylinder rolling": (SPRING_CYLINDER.format(mu=1), {0: 0.1}, {}, 0.2, 0.0005, (0.95, 1.05)),
    "spring, cylinder sliding": (SPRING_CYLINDER.format(mu=0.2), {0: 0.1}, {}, 0.1, 0.001, (0.95, 1.05)),
    "ball rolling down": (ROLLING, {}, {}, 0.5, 0.004, (0.95, 1.05)),
    "box sliding to rest": (STOPPING, {}, {0: 1.5, 1: 0.7}, 0.5, 0.004, (0.9, 1.1)),
    # When within a step it lands differs from step to step: heights spread over what it falls within one.
    "balls landing, then rolling": (LANDING, {2: 0.1 + 0.004 * np.arange(8) / 8}, {0: 1.0}, 0.2, 0.004, (0.9, 1.1)),
}
HALVINGS, FINER = 4, 64


def positions(model, qpos, qvel, duration, h, integrator):
    num_envs = max(np.size(value) for value in [0, *qpos.values()])
    sim = Simulation(model, num_envs, dtype="float64", timestep=h, integrator=integrator, solver=EXACT, num_threads=1)
    for values, target in ((qpos, sim.qpos), (qvel, sim.qvel)):
        for i, value in values.items():
            target[:, i] = value
    sim.forward()
    sim.step(round(duration / h))
    assert not sim.status.any()
    return sim.xpos.copy(), sim.xquat.copy()


def distance(a, b):
    """Of the worst body, m or rad; root mean square over environments."""
    (x, q), (y, p) = a, b
    apart = np.minimum(np.linalg.norm(q - p, axis=2), np.linalg.norm(q + p, axis=2))  # 2 sin(angle / 4)
    worst = np.maximum(np.linalg.norm(x - y, axis=2), 4 * np.arcsin(apart / 2)).max(axis=1)
    return np.sqrt(np.mean(worst**2))


@pytest.mark.parametrize("integrator", ["implicit", "euler"])
@pytest.mark.parametrize("name", SCENES)
def test_error_falls_with_the_time_step(name, integrator):
    xml, qpos, qvel, duration, coarsest, (least, most) = SCENES[name]
    model = Model.from_mjcf(xml)
    steps = coarsest / 2.0 ** np.arange(HALVINGS)
    errors = [
        distance(*(positions(model, qpos, qvel, duration, step, integrator) for step in (h, h / FINER))) for h in steps
    ]
    order = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    print(f"{name}, {integrator}: order {order:.3f}, errors " + " ".join(f"{e:.1e}" for e in errors))
    assert errors[0] > 1e-7
    assert least <= order <= most
