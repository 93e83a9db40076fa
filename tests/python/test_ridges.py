"""A hull's shallow ridge: what falls across it has contacts on both roofs, and on the ridge.

`pytest -s tests/python/test_ridges.py` prints how deep bodies get.
"""

import numpy as np
import pytest
import stiction

SHAPES = {
    "box": 'type="box" size=".05 .05 .12"',
    "cylinder": 'type="cylinder" size=".05 .12"',
    "capsule": 'type="capsule" size=".05 .12"',
}


def dropped(shape, slope, h, dtype, count=100):
    """The deepest overlap of bodies that fall on the ridge from 0.2 m at 1 m/s, lying across it and turning.   m"""
    low = 3 * np.tan(np.radians(slope))
    top = f"0 -3 0 0 3 0 -3 -3 {-low} -3 3 {-low} 3 -3 {-low} 3 3 {-low}"
    sim = stiction.Simulation(
        stiction.Model.from_mjcf(f"""<mujoco><option timestep="{h}"/>
        <asset><mesh name="roof" vertex="{top} -3 -3 -2 -3 3 -2 3 -3 -2 3 3 -2"/></asset><worldbody>
        <geom type="mesh" mesh="roof" friction=".8"/>
        <body><freejoint/><geom {SHAPES[shape]} mass="1" friction=".8"/></body></worldbody></mujoco>"""),
        count,
        num_threads=1,
        dtype=dtype,
    )
    sim.qpos[:, 0], sim.qpos[:, 2] = np.linspace(-0.1, 0.1, count), 0.25
    sim.qpos[:, 3:7] = [np.sqrt(0.5), 0, np.sqrt(0.5), 0]
    sim.qvel[:, 2], sim.qvel[:, 4] = -1, np.random.default_rng(0).permutation(np.linspace(-15, 15, count))
    deepest = np.zeros(count)
    for _ in range(round(0.4 / h)):
        sim.step()
        deepest = np.maximum(deepest, sim.certificate.penetration)
    return deepest


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("slope", [0.3, 1])
def test_a_capsule_across_a_ridge_touches_both_roofs_and_the_ridge(slope, dtype):
    """It had two contacts with a hull, and went 0.6 and 2.1 mm into what the third should have held, at 5 ms."""
    deepest = dropped("capsule", slope, 0.005, dtype)
    print(f"\ncapsule, {slope} degrees, 5 ms, {dtype}: {1e3 * deepest.max():.3f} mm")
    assert deepest.max() < 2e-4


@pytest.mark.parametrize("h, dtype", [(0.001, "float32"), (0.002, "float64")])
@pytest.mark.parametrize(
    "shape, slope",
    [("box", 1), ("box", 3), ("box", 30), ("cylinder", 1), ("cylinder", 10), ("capsule", 3), ("capsule", 30)],
)
def test_what_falls_across_a_ridge_stays_above_both_roofs(shape, slope, h, dtype):
    """Vertices of the roofs are metres away: a roof that is 0.3 degrees off the plane of contact, or more than can turn
    into it, did not count, and a corner went 4 mm into it."""
    deepest = dropped(shape, slope, h, dtype)
    print(f"\n{shape}, {slope} degrees, {1e3 * h:g} ms, {dtype}: {1e3 * deepest.max():.3f} mm")
    assert deepest.max() < 3e-4
