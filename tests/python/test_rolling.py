"""A cylinder on its side: rolling friction (condim 6) stops it as its formula says, nothing else does."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

from stiction import Model, Simulation  # noqa: E402

H, G, RADIUS, ROLLING = 2e-3, 9.81, 0.03, 2e-3
#: Energy 3/4 m v^2 falls by m g mu_r a radian.   m/s^2
SLOWS = G * ROLLING / (1.5 * RADIUS)
FLOORS = {"plane": 'type="plane" size="0 0 1"', "box": 'type="box" size="20 1 .05" pos="0 0 -.05"'}


def rolling(condim, floor, dtype) -> Simulation:
    """At 1 m/s."""
    model = Model.from_mjcf(f"""<mujoco><option timestep="{H}" gravity="0 0 {-G}"/>
        <default><geom condim="{condim}" friction="1 .005 {ROLLING}"/></default><worldbody>
        <geom {FLOORS[floor]}/><body pos="0 0 {RADIUS}" euler="90 0 0"><freejoint/>
        <geom type="cylinder" size="{RADIUS} .06" mass=".4"/></body></worldbody></mujoco>""")
    sim = Simulation(model, dtype=dtype, num_threads=1)
    sim.qvel[0] = [1, 0, 0, 0, 0, -1 / RADIUS]
    return sim


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("floor", FLOORS)
def test_rolling_friction_stops_a_rolling_cylinder(floor, dtype):
    sim, speed = rolling(6, floor, dtype), []
    for _ in range(round(1.2 / SLOWS / H)):
        sim.step()
        speed.append(sim.qvel[0, 0])
    expected = np.maximum(0, 1 - SLOWS * H * (1 + np.arange(len(speed))))
    stops = H * np.argmax(np.abs(speed) < 1e-4)
    print(f"{floor}, {dtype}: stops after {stops:.3f} s, {np.abs(speed - expected).max():.1e} m/s from the formula")
    assert stops == pytest.approx(1 / SLOWS, rel=5e-3) and np.abs(sim.qvel).max() <= 1e-4
    assert np.abs(speed - expected).max() <= 1e-2
    assert sim.qpos[0, 0] == pytest.approx(1 / (2 * SLOWS), rel=5e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("condim", [3, 4])
def test_without_it_a_cylinder_rolls_on(condim, floor, dtype):
    sim = rolling(condim, floor, dtype)
    sim.step(3000)
    print(f"condim {condim}, {floor}, {dtype}: loses {1 - sim.qvel[0, 0]:.1e} in 6 s")
    assert abs(1 - sim.qvel[0, 0]) <= 5e-5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("size", "speed", "h"), [((0.02, 0.06), 2, 0.002), ((0.02, 0.06), 2, 0.005), ((0.02, 0.12), 4, 0.002)]
)
def test_a_long_ellipsoid_rolls_on_and_does_not_rear_up(size, speed, h, dtype):
    """About its long axis, tilted by 0.01 rad at first; that grew to 0.015, 0.97 and 0.083 rad in three seconds."""
    r, long = size
    model = Model.from_mjcf(f"""<mujoco><option timestep="{h}"/><default><geom friction=".8"/></default><worldbody>
        <geom type="plane" size="0 0 1"/><body><freejoint/><geom type="ellipsoid" size="{r} {long} {r}" mass="1"/>
        </body></worldbody></mujoco>""")
    sim, tilt, most = Simulation(model, dtype=dtype, num_threads=1), 0.01, 0.0
    height = np.hypot(r * np.cos(tilt), long * np.sin(tilt))
    sim.qpos[0] = [0, 0, height, np.cos(tilt / 2), np.sin(tilt / 2), 0, 0]
    sim.qvel[0] = [speed, 0, 0, 0, speed / r, 0]
    for _ in range(round(3 / h)):
        sim.step()
        w, x, y, z = np.asarray(sim.qpos[0, 3:], float)
        most = max(most, abs(np.arcsin(2 * (y * z + w * x))))
    print(f"{size}, {1e3 * h:g} ms, {dtype}: {most:.4f} rad")
    assert most < 0.0105
    assert np.linalg.norm(sim.qvel[0, :2]) == pytest.approx(speed, rel=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["capsule", "cylinder"])
@pytest.mark.parametrize(
    ("r", "speed", "h"), [(0.05, 15, 0.01), (0.02, 12, 0.005), (0.02, 30, 0.002), (0.05, 30, 0.005)]
)
def test_what_rolls_round_within_a_step_goes_straight_on(r, speed, h, kind, dtype):
    """By 3 rad a step, in eight directions; capsules jumped by up to 4.6 m, and cylinders left their way by metres."""
    model = Model.from_mjcf(f"""<mujoco><option timestep="{h}"/><default><geom friction=".8"/></default><worldbody>
        <geom type="plane" size="0 0 1"/><body><freejoint/><geom type="{kind}" size="{r} .1" mass="1" euler="90 0 0"/>
        </body></worldbody></mujoco>""")
    sim, yaw = Simulation(model, 8, dtype=dtype, num_threads=1), np.linspace(0, 3, 8)
    ahead = np.stack([np.cos(yaw), np.sin(yaw)], 1)
    sim.qpos[:, 2], sim.qpos[:, 3], sim.qpos[:, 6] = r, np.cos(yaw / 2), np.sin(yaw / 2)
    sim.qvel[:, :2], sim.qvel[:, 4] = speed * ahead, speed / r
    hop = 0.0
    for _ in range(round(4 / h)):
        sim.step()
        hop = max(hop, float(np.abs(sim.qpos[:, 2] - r).max()))
    aside = np.asarray(sim.qpos[:, 0]) * ahead[:, 1] - np.asarray(sim.qpos[:, 1]) * ahead[:, 0]
    print(f"{kind}, {r} m, {speed} m/s, {1e3 * h:g} ms, {dtype}: hop {hop:.1e} m, aside {np.abs(aside).max():.1e} m")
    assert hop < 1e-4 and np.abs(aside).max() < 0.1
    assert np.linalg.norm(sim.qvel[:, :2], axis=1) == pytest.approx(speed, rel=1e-3)


@pytest.mark.parametrize("turn", [0.35, 0.5])
def test_an_ellipsoid_of_three_axes_gains_nothing_as_it_rolls(turn):
    h, size = 0.005, np.array([0.03, 0.06, 0.02])
    model = Model.from_mjcf(f"""<mujoco><option timestep="{h}"/><default><geom friction=".8"/></default><worldbody>
        <geom type="plane" size="0 0 1"/><body><freejoint/><geom type="ellipsoid" size="{size[0]} {size[1]} {size[2]}"
        mass="1"/></body></worldbody></mujoco>""")
    sim, spin = Simulation(model, dtype="float64", num_threads=1), turn / h
    inertia = (np.square(size).sum() - np.square(size)) / 5
    sim.qpos[0, 2], sim.qvel[0, 0], sim.qvel[0, 4] = size[2], spin * size[2], spin
    energy = []
    for _ in range(round(2 / h)):
        sim.step()
        v = np.asarray(sim.qvel[0], float)
        height = float(sim.qpos[0, 2]) - h / 2 * v[2]
        energy.append((v[:3] @ v[:3] + inertia @ v[3:] ** 2) / 2 + G * (height - size[2]))
    most = max(energy) / energy[0] - 1
    print(f"{turn} rad: {100 * most:.2f} %, {100 * (energy[-1] / energy[0] - 1):.1f} % in the end")
    assert most < 0.01
