"""No pair that may meet is dismissed: contacts of moving solids against MuJoCo's distance of the same two geoms.

Balls, capsules and separating axes decide which pairs are computed at all, and capsules beside cylinders are computed
by a formula of their own, and what will pass by or keep away has no contact; `mj_geomDistance` knows none of these.
Random poses and velocities, long steps, in both precisions.
"""

import os

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from stiction import Model, Simulation  # noqa: E402
from stiction.solver_options import SolverOptions  # noqa: E402

POSES = 50_000 if os.environ.get("STICTION_FULL_TESTS") == "1" else 2000
SIZES = {"capsule": (0.03, 0.1), "cylinder": (0.06, 0.08), "box": (0.05, 0.03, 0.09), "ellipsoid": (0.05, 0.08, 0.04)}
SIZES |= {"sphere": (0.05,), "can": (0.06, 0.06), "puck": (0.08, 0.03)}
PAIRS = [("capsule", "cylinder"), ("cylinder", "cylinder"), ("cylinder", "box"), ("box", "box"), ("capsule", "box")]
PAIRS += [("capsule", "ellipsoid"), ("ellipsoid", "cylinder")]
# Cylinders no longer than they are wide: across their axes no capsule with a segment to the rim is around them.
PAIRS += [("sphere", "can"), ("can", "can"), ("box", "can"), ("puck", "can"), ("capsule", "puck")]
KINDS = {"can": "cylinder", "puck": "cylinder"}
STEP = 0.01


def scene(first, second):
    bodies = "".join(
        f'<body><freejoint/><geom type="{KINDS.get(kind, kind)}" size="{" ".join(map(str, SIZES[kind]))}"/></body>'
        for kind in (first, second)
    )
    return f'<mujoco><option gravity="0 0 0" timestep="{STEP}"/><worldbody>{bodies}</worldbody></mujoco>'


def random_state(rng, sim):
    for body in range(2):
        quat = rng.standard_normal((len(sim.qpos), 4))
        quat[::3] = np.eye(4)[rng.integers(0, 4, len(quat[::3]))]  # a third with parallel axes: many ties
        sim.qpos[:, 7 * body + 3 : 7 * body + 7] = quat / np.linalg.norm(quat, axis=1, keepdims=True)
    sim.qpos[:, 0:3] = 0
    sim.qpos[:, 7:10] = rng.uniform(-0.2, 0.2, (len(sim.qpos), 3))
    sim.qvel[:] = rng.standard_normal(sim.qvel.shape)


def least_distance(m, d, qpos, qvel):
    """On the way that nothing stops, m."""
    least, d.qpos[:] = np.inf, qpos
    for _ in range(21):
        mujoco.mj_kinematics(m, d)
        least = min(least, mujoco.mj_geomDistance(m, d, 0, 1, 1.0, None))
        mujoco.mj_integratePos(m, d.qpos, qvel, STEP / 20)
    return least


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_whatever_will_meet_is_a_contact_at_its_distance(first, second, dtype):
    text, rng = scene(first, second), np.random.default_rng(5)
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    sim = Simulation(Model.from_mjcf(text), POSES, dtype=dtype, num_threads=1, solver=SolverOptions(fallback=False))
    random_state(rng, sim)
    qpos, qvel = np.array(sim.qpos, float), np.array(sim.qvel, float)
    sim.forward()
    sim.step()
    size, meets, nearest, apart = min(min(SIZES[first]), min(SIZES[second])), 0, 0, 0
    for env in range(POSES):
        d.qpos[:], d.qvel[:] = qpos[env], qvel[env]
        mujoco.mj_kinematics(m, d)
        distance = mujoco.mj_geomDistance(m, d, 0, 1, 1.0, None)
        # What either body may move in the step, as far as its geom reaches, and the margin of each.
        reach = sum(
            STEP * np.linalg.norm(qvel[env, 6 * body : 6 * body + 3]) + SolverOptions.margin for body in range(2)
        )
        count = int(sim.contact.count[env])
        found = np.min(sim.contact.dist[env, :count], initial=np.inf)
        ahead = np.abs(sim.contact.ahead[env, :count]).max(initial=0) > 0
        if ahead:  # the gap along the normal that they have when they meet, of a plane that parts them now
            assert -1e-3 * size < found < distance + 1e-3 * size, env
        elif distance > 0:
            assert found > min(distance, reach) - 1e-3 * size, env
            apart += distance >= reach
        else:
            assert count > 0, env
        if 0 < distance < reach and least_distance(m, d, qpos[env], qvel[env]) < 0:
            meets += 1
            assert count > 0, env
            nearest += ahead or found == pytest.approx(distance, abs=1e-3 * size)
    # Of the two ends of a capsule the farther may be the one that meets.
    assert meets > POSES / 100 and nearest >= 0.95 * meets and apart > POSES / 20
