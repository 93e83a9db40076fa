"""Parts of a millimetre and less rest as large ones do, and blades stand on their edges."""

import numpy as np
import pytest
from stiction import Model, Simulation

_CORNERS = [(0.5 * np.cos(k * np.pi / 3), 0.5 * np.sin(k * np.pi / 3), z) for k in range(6) for z in (-0.3, 0.3)]
#: Of a size of 1 m.
_SIZES = {"box": (0.5, 0.4, 0.3), "cylinder": (0.4, 0.3)}


def part(kind: str, size: float, slope: float) -> str:
    """On a plane, gravity as on a slope; friction is 0.5."""
    nut = " ".join(f"{size * x:.9g}" for corner in _CORNERS for x in corner)
    geom = 'type="mesh" mesh="nut"'
    if kind in _SIZES:
        geom = f'type="{kind}" size="{" ".join(f"{size * x:.9g}" for x in _SIZES[kind])}"'
    gravity = 9.81 * np.array([np.sin(slope), 0, -np.cos(slope)])
    return f"""<mujoco><option gravity="{gravity[0]} 0 {gravity[2]}"/>
      <asset><mesh name="nut" vertex="{nut}"/></asset>
      <default><geom friction=".5 0 0" condim="3" density="8000"/></default>
      <worldbody><geom type="plane" size="0 0 1"/>
        <body pos="0 0 {0.3 * size}"><freejoint/><geom {geom}/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1e-3, 0.7e-3, 0.5e-3])
@pytest.mark.parametrize("kind", ["box", "cylinder", "nut"])
def test_small_parts_rest(kind, size, dtype):
    for slope in (0, np.arctan(0.45)):
        for h in (0.002, 0.005, 0.01):
            sim = Simulation(Model.from_mjcf(part(kind, size, slope)), 1, dtype=dtype, timestep=h)
            sim.step(round(0.2 / h))
            before, fastest = np.array(sim.qpos[0]), 0.0
            for _ in range(round(1 / h)):
                sim.step()
                fastest = max(fastest, np.abs(sim.qvel[0, 3:]).max())
            moved = np.abs(sim.qpos[0, :3] - before[:3]).max()
            print(f"{kind} of {1e3 * size} mm, {dtype}, {1e3 * h} ms: {1e6 * moved:.2g} um, {fastest:.2g} rad/s")
            assert moved < 5e-6 and fastest < 0.5, (slope, h, moved, fastest)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("thickness", [0.2e-3, 0.4e-3])
@pytest.mark.parametrize("floor", ["plane", "box", "free box"])
def test_blades_stand_on_their_edges(floor, thickness, dtype):
    ground = {
        "plane": '<geom type="plane" size="0 0 1"/>',
        "box": '<geom type="box" size=".2 .2 .01" pos="0 0 -.01"/>',
        "free box": '<geom type="plane" size="0 0 1" pos="0 0 -.02"/>'
        '<body pos="0 0 -.01"><freejoint/><geom type="box" size=".05 .05 .01"/></body>',
    }[floor]
    model = Model.from_mjcf(
        f"""<mujoco><worldbody>{ground}<body pos="0 0 .005"><freejoint/>
          <geom type="box" size="{thickness / 2} .03 .005" density="8000"/></body></worldbody></mujoco>"""
    )
    sim = Simulation(model, 1, dtype=dtype)
    sim.step(1000)
    assert sim.qpos[0, -5] == pytest.approx(0.005, abs=5e-6)
    assert np.abs(sim.qvel).max() < 1e-3
