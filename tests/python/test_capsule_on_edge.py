"""A capsule along an edge of a box touches it with both ends of what lies there, however it is tilted by rounding."""

import math

import numpy as np
import pytest

pytest.importorskip("mujoco")

from stiction import Model, Simulation  # noqa: E402

RADIUS = 0.004


def tilted(pitch: float) -> str:
    """A capsule's pose, its axis along x."""
    return f'euler="0 {math.degrees(math.pi / 2 + pitch):.12g} 0"'


def axis(qpos):
    """Of the rod behind two fingers' slides, in the world."""
    w, x, y, z = qpos[5:].astype(float)
    return np.array([2 * (x * z + w * y), 2 * (y * z - w * x), w * w - x * x - y * y + z * z])


def at_an_edge(angle: float, pitch: float, offset: float) -> str:
    """A rod that touches the lower edge of a box of 2 cm from the side; the normal points down by `angle`."""
    y, z = (RADIUS - 2e-6) * math.cos(angle), -(RADIUS - 2e-6) * math.sin(angle)
    rod = f'<geom type="capsule" size="{RADIUS} .09" mass=".01"/>'
    return f"""<mujoco><option timestep="0.005"/><compiler eulerseq="XYZ"/><worldbody>
      <geom type="box" size=".01 .01 .05" pos="0 -.01 .05"/>
      <body pos="{offset} {y:.12g} {z:.12g}" {tilted(pitch)}><freejoint/>{rod}</body></worldbody></mujoco>"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pitch", [0, 1e-8, 1e-6, -1e-5, 1e-4, -1e-3])
@pytest.mark.parametrize("degrees", [2, 11.5, 29, 45, 80])
def test_touches_along_the_edge(degrees, pitch, dtype):
    for offset in (0, 0.004):
        sim = Simulation(Model.from_mjcf(at_an_edge(math.radians(degrees), pitch, offset)), 1, dtype=dtype)
        sim.forward()
        active = sim.contact.active[0]
        assert np.sort(sim.contact.pos[0, active, 0]) == pytest.approx([-0.01, 0.01], abs=1e-4)
        assert np.abs(sim.contact.dist[0, active]).max() < 5e-5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pitch", [0, 1e-6, -1e-5])
def test_lies_across_a_box_with_upright_normals(pitch, dtype):
    """What sticks out on both sides touches the face, not its edges, which would push it aside."""
    mjcf = f"""<mujoco><option timestep="0.005"/><compiler eulerseq="XYZ"/><worldbody>
      <geom type="box" size=".02 .02 .02" pos="0 0 -.02"/>
      <body pos=".003 0 {RADIUS}" {tilted(pitch)}><freejoint/>
      <geom type="capsule" size="{RADIUS} .09" mass=".1"/></body></worldbody></mujoco>"""
    sim = Simulation(Model.from_mjcf(mjcf), 1, dtype=dtype)
    sim.forward()
    active = sim.contact.active[0]
    assert np.sort(sim.contact.pos[0, active, 0]) == pytest.approx([-0.02, 0.02], abs=1e-5)
    assert np.abs(sim.contact.frame[0, active, 2, :2]).max() < 2e-5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("timestep", [0.002, 0.005, 0.01])
@pytest.mark.parametrize("off", [0, 0.004])
def test_a_rod_pinched_by_edges_is_held(off, timestep, dtype):
    """Fingers press with 10 N above a rod's axis, its weight off the middle: friction holds far more."""
    finger = """<body pos="0 {y} .05"><joint name="{name}" type="slide" axis="0 1 0"/>
      <geom type="box" size=".01 .01 .01" mass=".05" friction=".5"/></body>"""
    fingers = "".join(finger.format(name=name, y=side * (0.01 + RADIUS)) for name, side in (("a", -1), ("b", 1)))
    height = 0.04 - 0.0008
    rod = f'<geom type="capsule" size="{RADIUS} .045" mass=".01" friction=".5"/>'
    mjcf = f"""<mujoco><option timestep="{timestep}"/><compiler eulerseq="XYZ"/><worldbody>{fingers}
      <body pos="{off} 0 {height}" {tilted(0)}><freejoint/>{rod}</body></worldbody>
      <actuator><motor joint="a"/><motor joint="b"/></actuator></mujoco>"""
    sim = Simulation(Model.from_mjcf(mjcf), 1, dtype=dtype)
    sim.ctrl[0] = 9.81, -9.81
    sim.step(int(0.1 / timestep))
    held = sim.qpos.copy()
    sim.step(int(2 / timestep))
    assert np.abs(sim.qpos[0, 2:5] - held[0, 2:5]).max() < 2e-5
    assert np.abs(axis(sim.qpos[0]) - axis(held[0])).max() < 1e-4
