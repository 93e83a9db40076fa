"""A cylinder's rim on a box's edge: how far they overlap by normals has a kink along the edge and a smooth minimum
across it. What lies so pushes along another normal in each step where that is not found well."""

import numpy as np
import pytest
from stiction import Model, Simulation

RADIUS, HALF = 0.046, 0.02
SCENE = f"""
<mujoco><option gravity="0 0 0"/><worldbody><geom type="box" size="0.5 0.5 0.1" pos="0.5 0 -0.1"/>
  <body><freejoint/><geom type="cylinder" size="{RADIUS} {HALF}"/></body></worldbody></mujoco>"""


def rotation_onto(axis, angle):
    """Quaternion that takes z to `axis`, after a turn about z."""
    q = np.array([1 + axis[2], -axis[1], axis[0], 0])
    q /= np.linalg.norm(q)
    c, s = np.cos(angle / 2), np.sin(angle / 2)
    return np.array([q[0] * c - q[3] * s, q[1] * c + q[2] * s, q[2] * c - q[1] * s, q[3] * c + q[0] * s])


@pytest.mark.parametrize("gap", [-1e-5, -1e-6, 1e-6, 1e-5, 1e-4])
def test_the_normal_is_that_of_the_least_overlap(gap):
    envs = 200
    rng = np.random.default_rng(5)
    sim = Simulation(Model.from_mjcf(SCENE), envs, dtype="float64")
    normals = np.zeros((envs, 3))
    for env in range(envs):
        while True:
            tilt, axis = rng.uniform(0.2, 1.2), rng.standard_normal(3)
            n, axis = np.array([-np.sin(tilt), 0, np.cos(tilt)]), axis / np.linalg.norm(axis)
            across = n - axis * (axis @ n)
            if 0.3 < abs(axis @ n) < 0.9 and 0.2 < abs(axis[1]) < 0.9:
                break
        deepest = -axis * np.sign(axis @ n) * HALF - across / np.linalg.norm(across) * RADIUS
        edge = np.array([0, rng.uniform(-0.2, 0.2), 0])
        sim.qpos[env, :3], sim.qpos[env, 3:] = edge + gap * n - deepest, rotation_onto(axis, rng.uniform(0, 6))
        normals[env] = n
    sim.forward()
    assert (sim.contact.count >= 1).all()
    nearest = np.where(np.arange(sim.contact.dist.shape[1]) < sim.contact.count[:, None], sim.contact.dist, np.inf)
    first = nearest.argmin(1)
    found = sim.contact.frame[np.arange(envs), first, 2]
    off = np.linalg.norm(found - normals, axis=1)
    print(f"gap {gap:g} m: off by {np.median(off):.1e}, at most {off.max():.1e} rad")
    assert off.max() < 2e-5
    assert np.abs(nearest.min(1) - gap).max() < 1e-7
