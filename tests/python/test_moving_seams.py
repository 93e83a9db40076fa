"""Flush geoms that can move are one surface, too: what slides over them does not feel the joints between them."""

import numpy as np
import pytest
from stiction import Model, Simulation

DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])
#: What slides, and how high its middle is.
SLIDERS = {
    "box": ('type="box" size=".03 .03 .03"', 0.03),
    "ball": ('size=".03"', 0.03),
    "capsule": ('type="capsule" size=".03 .04" zaxis="0 1 0"', 0.03),
    "cylinder": ('type="cylinder" size=".03 .03"', 0.03),
    "hull": ('type="mesh" mesh="cube"', 0.03),
}
CUBE = " ".join(f"{x} {y} {z}" for x in (-0.03, 0.03) for y in (-0.03, 0.03) for z in (-0.03, 0.03))
PLANKS = (
    '<geom type="box" size=".2 .2 .05" pos="-.2 0 -.05" mass="500"/>{}'
    '<geom type="box" size=".4 .2 .05" pos=".4 0 {}" mass="500"/>'
)
SLIDE = '<body><joint type="slide" axis="1 0 0"/>{}</body>'
#: One body of two planks, and two bodies of one each.
UNDER = {
    "cart": SLIDE.format(PLANKS.format("", "{}")),
    "two carts": SLIDE.format(PLANKS.format('</body><body><joint type="slide" axis="1 0 0"/>', "{}")),
}


def slide(slider, under, timestep, dtype, speed, lower=0.0):
    geom, height = SLIDERS[slider]
    sim = Simulation(
        Model.from_mjcf(
            f'<mujoco><option timestep="{timestep}"/><asset><mesh name="cube" vertex="{CUBE}"/></asset><worldbody>'
            f'{UNDER[under].format(-0.05 - lower)}<body pos="-.1 .02 {height}"><freejoint/>'
            f'<geom {geom} mass=".2" friction="0" priority="2"/></body></worldbody></mujoco>'
        ),
        1,
        dtype=dtype,
    )
    sim.qvel[0, -6] = speed
    lift = 0.0
    for _ in range(round(0.3 / speed / timestep)):
        sim.step()
        lift = max(lift, float(sim.qpos[0, -5]) - height)
    return float(sim.qvel[0, -6]), lift, sim


@DTYPES
@pytest.mark.parametrize("timestep", [0.002, 0.01])
@pytest.mark.parametrize("speed", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("under", UNDER)
@pytest.mark.parametrize("slider", SLIDERS)
def test_nothing_is_caught_on_flush_planks_that_can_move(slider, under, speed, timestep, dtype):
    after, lift, sim = slide(slider, under, timestep, dtype, speed)
    assert after == pytest.approx(speed, rel=1e-3) and lift < 1e-4
    assert not sim.status.any()


@pytest.mark.parametrize("slider", SLIDERS)
def test_a_step_up_stops_it(slider):
    """Of half its height, which no plane hides."""
    after, _, _ = slide(slider, "two carts", 0.002, "float32", 1.0, lower=-0.03)
    assert after < 0.1


#: A block that stands still, and a lift beside it, which sinks by 20 um under what slides.
LIFT = """<geom type="box" size=".4 .2 .05" pos="-.4 0 -.05"/>
  <body gravcomp="1" pos=".4 0 {}"><joint name="lift" type="slide" axis="0 0 1"/>
    <geom type="box" size=".4 .2 .05" mass="20"/></body>"""


def slide_by_lift(slider, timestep, dtype, start, speed, lower=0.0):
    """The slider's velocity after 0.3 m, by how much it rose, and the simulation; the lift is lower than the block."""
    geom, height = SLIDERS[slider]
    stands = height - (lower if start > 0 else 0)
    sim = Simulation(
        Model.from_mjcf(
            f'<mujoco><option timestep="{timestep}"/><asset><mesh name="cube" vertex="{CUBE}"/></asset><worldbody>'
            f'{LIFT.format(-0.05 - lower)}<body pos="{start} .02 {stands}"><freejoint/>'
            f'<geom {geom} mass=".2" friction="0" priority="2"/></body></worldbody>'
            '<actuator><position joint="lift" kp="100000" kv="2000"/></actuator></mujoco>'
        ),
        1,
        dtype=dtype,
    )
    sim.qvel[0, 1] = speed
    rises = 0.0
    for _ in range(round(0.3 / abs(speed) / timestep)):
        sim.step()
        rises = max(rises, float(sim.qpos[0, 3]) - stands)
    return float(sim.qvel[0, 1]), rises, sim


@DTYPES
@pytest.mark.parametrize("timestep", [0.002, 0.01])
@pytest.mark.parametrize("speed", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("start", [-0.15, 0.15])
@pytest.mark.parametrize("slider", SLIDERS)
def test_nothing_is_caught_between_a_block_and_a_lift(slider, start, speed, timestep, dtype):
    """Onto it, or off it."""
    forward = -np.sign(start) * speed
    after, rises, sim = slide_by_lift(slider, timestep, dtype, start, forward)
    assert after == pytest.approx(forward, rel=2e-3) and rises < 1e-4
    assert not sim.status.any()


@pytest.mark.parametrize(("start", "lower"), [(-0.15, -0.03), (0.15, 0.03)])
@pytest.mark.parametrize("slider", SLIDERS)
def test_a_step_up_beside_a_lift_stops_it(slider, start, lower):
    """Of half its height."""
    after, _, _ = slide_by_lift(slider, 0.002, "float32", start, -np.sign(start), lower)
    assert abs(after) < 0.1


@DTYPES
@pytest.mark.parametrize("timestep", [0.002, 0.005, 0.01])
@pytest.mark.parametrize("start", [0.0, 0.02])
def test_a_brick_is_pushed_over_bricks(start, timestep, dtype):
    """Five side by side, and one on them: friction holds 17.7 N, 25 N push until it goes at 0.2 m/s, then 10."""
    brick = '<body pos="{} 0 {}"><freejoint/><geom type="box" size=".105 .05 .03" mass="3" friction=".6"/></body>'
    course = "".join(brick.format(0.21 * i, 0.03) for i in range(5))
    floor = '<geom type="plane" size="9 9 1" friction=".6"/>'
    xml = f"<mujoco><worldbody>{floor}{course}{brick.format(start, 0.09)}</worldbody></mujoco>"
    sim = Simulation(Model.from_mjcf(xml), 1, dtype=dtype, timestep=timestep)
    for _ in range(round(1.5 / timestep)):
        sim.xfrc_applied[0, 6, 0] = 25 if sim.qvel[0, 30] < 0.2 else 10
        sim.step()
    assert 0.25 < sim.qpos[0, 35] - start < 0.32
    assert np.abs(sim.qpos[0, :35:7] - 0.21 * np.arange(5)).max() < 1e-4
