"""Rims that roll: a wheel that leans into a circle and a coin keep their energy and their lean at any step.

`pytest -s tests/python/test_rims.py` prints them beside MuJoCo's.
"""

import mujoco
import numpy as np
import pytest
import stiction

GRAVITY, UP = 9.81, np.array([0, 0, 1.0])


def disc_xml(radius, half, mass):
    return f"""<mujoco><worldbody><geom type="plane" size="50 50 1" friction="2 0 0"/>
      <body><freejoint/><geom type="cylinder" size="{radius} {half}" mass="{mass}" friction="2 0 0"/></body>
      </worldbody></mujoco>"""


def turned(axis, angle):
    q, R = np.zeros(4), np.zeros(9)
    mujoco.mju_axisAngle2Quat(q, np.array(axis, float), angle)
    mujoco.mju_quat2Mat(R, q)
    return R.reshape(3, 3)


def lowest(R, radius, half):
    """From the middle of a disc to the lowest point of its rim."""
    n = R.T @ UP
    along = n[:2] / np.hypot(*n[:2])
    return R @ np.array([*(-radius * along), -np.sign(n[2]) * half])


def steady_precession(m, R, radius, half, spin):
    """How fast a disc turns about the vertical that rolls in a circle, `spin` about its axis, and keeps its lean."""
    mass, (I1, _, I3) = m.body_mass[1], m.body_inertia[1]
    a, r = R[:, 2], lowest(R, radius, half)
    lateral = np.cross(UP, a)

    def lack(rate):  # of torque about the horizontal axis in the disc's plane
        w = rate * UP + spin * a
        L = I1 * w + (I3 - I1) * (w @ a) * a
        centripetal = rate * np.cross(UP, np.cross(r, w))  # of the middle, whose velocity is -w x r
        return (np.cross(r, mass * (centripetal + GRAVITY * UP)) - rate * np.cross(UP, L)) @ lateral

    rates = np.linspace(-8, 8, 1601)
    lacks = np.array([lack(x) for x in rates])
    at = np.flatnonzero(lacks[:-1] * lacks[1:] < 0)
    roots = rates[at] - lacks[at] * (rates[1] - rates[0]) / (lacks[at + 1] - lacks[at])
    return roots[np.argmin(abs(roots))]


def roll(m, R, spin, radius, half, seconds, h, dtype):
    """Energies, and leans of the axis from upright in degrees, of a rolling disc, 20 each; dtype None: MuJoCo's."""
    r = lowest(R, radius, half)
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, R.ravel())
    q, v = np.r_[0, 0, -r[2], quat], np.r_[np.cross(r, spin), R.T @ spin]
    steps = round(seconds / 20 / h)
    m.opt.timestep = h
    if dtype is None:
        m.opt.cone, m.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 100
        m.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        d = mujoco.MjData(m)
        d.qpos[:], d.qvel[:] = q, v
        state, advance = (d.qpos, d.qvel), lambda: [mujoco.mj_step(m, d) for _ in range(steps)]
    else:
        sim = stiction.Simulation(stiction.Model.from_mjmodel(m), 1, dtype=dtype)
        sim.qpos[0], sim.qvel[0] = q, v
        state, advance = (sim.qpos[0], sim.qvel[0]), lambda: sim.step(steps)
    energy, lean = [], []
    for _ in range(20):
        advance()
        qpos, qvel = (np.array(x, float) for x in state)
        S = np.zeros(9)
        mujoco.mju_quat2Mat(S, qpos[3:])
        w = qvel[3:]
        energy.append(m.body_mass[1] * (qvel[:3] @ qvel[:3] / 2 + GRAVITY * qpos[2]) + w @ (m.body_inertia[1] * w) / 2)
        lean.append(np.degrees(np.arccos(min(1, abs(S[8])))))
    return np.array(energy), np.array(lean)


STEPS = [(h, dtype) for h in (0.002, 0.005, 0.01) for dtype in ("float32", "float64")]


@pytest.mark.parametrize("h, dtype", STEPS)
def test_a_leaning_wheel_stays_in_its_circle(h, dtype):
    """10 rad/s about an axis that leans by 65 degrees from the vertical, for ten seconds."""
    radius, half = 0.3, 0.01
    m = mujoco.MjModel.from_xml_string(disc_xml(radius, half, 2))
    R = turned([1, 0, 0], np.radians(65))
    spin = steady_precession(m, R, radius, half, 10) * UP + 10 * R[:, 2]
    energy, lean = roll(m, R, spin, radius, half, 10, h, dtype)
    theirs, their_lean = roll(m, R, spin, radius, half, 10, h, None)
    print(
        f"\nwheel, {1e3 * h:.0f} ms, {dtype}: energy {energy[-1] / energy[0]:.4f}, lean {lean[-1]:.2f} degrees of 65; "
        f"MuJoCo {theirs[-1] / theirs[0]:.4f}, {their_lean[-1]:.2f}"
    )
    assert abs(lean - 65).max() < (0.5 if h < 0.01 else 1.5)
    assert abs(energy / energy[0] - 1).max() < (0.001 if h < 0.01 else 0.005)


@pytest.mark.parametrize("h, dtype", STEPS)
def test_a_coin_keeps_its_energy(h, dtype):
    """It rolls and wobbles between 38 and 66 degrees for four seconds."""
    radius, half = 0.1, 0.001
    m = mujoco.MjModel.from_xml_string(disc_xml(radius, half, 0.5))
    R = turned([0, 0, 1], 0.3) @ turned([1, 0, 0], np.pi / 2 - 0.4)
    spin = R @ np.array([0, 0, 12.0]) + 1.5 * UP
    energy, lean = roll(m, R, spin, radius, half, 4, h, dtype)
    theirs, their_lean = roll(m, R, spin, radius, half, 4, h, None)
    print(
        f"\ncoin, {1e3 * h:.0f} ms, {dtype}: energy {energy[-1] / energy[0]:.4f}, lean {lean[-1]:.2f} degrees; "
        f"MuJoCo {theirs[-1] / theirs[0]:.4f}, {their_lean[-1]:.2f}"
    )
    assert abs(energy / energy[0] - 1).max() < (0.003 if h < 0.005 else 0.02)
