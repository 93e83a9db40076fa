"""Newton's law of impact: what hits leaves with a part of its speed, and what rests stays at rest."""

import numpy as np
import pytest
from stiction import Model, Simulation, Status, solver_names

SCENE = (
    '<mujoco><option timestep="{h}"/><worldbody><geom name="floor" type="plane" size="5 5 1"/>'
    "{bodies}</worldbody></mujoco>"
)
BALL = (
    '<body pos="{x} 0 {z}"><freejoint/>'
    '<geom name="{name}" type="sphere" size=".05" mass="{mass}" friction="{mu}"/></body>'
)


def model(*balls, h=1e-3):
    """Of balls (x, z, mass, friction), named a, b, ..."""
    bodies = "".join(BALL.format(x=x, z=z, mass=m, mu=mu, name="abc"[i]) for i, (x, z, m, mu) in enumerate(balls))
    return Model.from_mjcf(SCENE.format(h=h, bodies=bodies))


def peaks(sim, steps):
    """Heights above the floor at which ball a turns; what its overlap settles by is slower than 1e-3 m/s."""
    heights, speed = [], 0.0
    for _ in range(steps):
        sim.step()
        if speed > 1e-3 >= sim.qvel[0, 2]:
            heights.append(sim.qpos[0, 2] - 0.05)
        speed = float(sim.qvel[0, 2])
    return heights


@pytest.mark.parametrize("solver", solver_names())
def test_a_dropped_ball_comes_back_to_the_square_of_it(solver):
    sim = Simulation(model((0, 1.05, 1, 0)).with_restitution(0.5, geoms="a"), dtype="float64", solver=solver)
    found = peaks(sim, 1100)
    assert found[:2] == pytest.approx([0.25, 0.0625], rel=0.03) and not sim.status[0] & Status.NON_FINITE


@pytest.mark.parametrize("h", [5e-4, 2e-3, 1e-2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_elastic_ball_keeps_its_energy(h, dtype):
    sim = Simulation(model((0, 1.05, 1, 0), h=h).with_restitution(1), dtype=dtype)
    found = peaks(sim, round(5 / h))
    assert len(found) >= 4 and np.abs(np.array(found) - 1).max() < max(0.01, 12 * h)


@pytest.mark.parametrize("restitution, most", [(0.3, 0.04), (0.5, 0.02), (0.7, 0.01), (0.9, 0.01)])
@pytest.mark.parametrize("h", [2e-3, 5e-3, 8e-3])
def test_it_rises_as_high_in_all_phases_of_a_step(h, restitution, most):
    """From 41 heights. Of 0.3 at 8 ms all rose 1.33 times as high in the mean, to 1.66 times."""
    sim = Simulation(model((0, 1, 0.3, 0), h=h).with_restitution(restitution), 41, dtype="float64")
    start = np.linspace(0.3, 0.5, 41)
    sim.qpos[:, 2] = 0.05 + start
    highest, hit = np.zeros(41), np.zeros(41, bool)
    falling = np.zeros(41, bool)
    for _ in range(round(1.2 / h)):
        sim.step()
        falling |= hit & (sim.qvel[:, 2] < 0)
        hit |= sim.qvel[:, 2] > 0
        highest = np.where(hit & ~falling, np.maximum(highest, sim.qpos[:, 2] - 0.05), highest)
    part = highest / start / restitution**2
    print(f"{restitution} at {h} s: {part.mean():.3f} ({part.min():.3f} to {part.max():.3f})")
    assert abs(part.mean() - 1) <= most and np.abs(part - 1).max() <= 4 * most


def test_it_comes_to_rest():
    sim = Simulation(model((0, 0.25, 1, 0.5), h=2e-3).with_restitution(0.7))
    sim.step(2000)
    start = np.array(sim.qpos)
    sim.step(500)
    assert np.abs(sim.qvel).max() < 1e-5 and np.abs(sim.qpos - start)[0, :3].max() < 1e-7
    assert sim.status[0] == 0


def test_equal_balls_swap_their_speeds():
    """And only the normal one: what passes tangentially stays without friction."""
    sim = Simulation(
        model((0, 1, 1, 0), (0.3, 1, 1, 0)).with_restitution(1, geoms=["a", "b"]), dtype="float64", integrator="euler"
    )
    sim.qvel[0, [0, 1]] = 2, 0.1
    while sim.qpos[0, 0] + 0.1 < sim.qpos[0, 7] - 0.002:
        sim.step()
    before = np.array(sim.qvel[0])
    sim.step(3)
    assert sim.qvel[0, 0] == pytest.approx(0, abs=0.04) and sim.qvel[0, 6] == pytest.approx(2, abs=0.04)
    momentum = sim.qvel[0, 0] + sim.qvel[0, 6], sim.qvel[0, 1] + sim.qvel[0, 7]
    assert momentum == pytest.approx((before[0] + before[6], before[1] + before[7]), abs=1e-10)


def test_the_larger_counts_and_springs_do_without():
    """A floor that bounces takes every ball with it; a compliant contact has its dissipation."""
    one = model((0, 0.55, 1, 0))
    assert peaks(Simulation(one.with_restitution(0.5, geoms="floor")), 700)[0] == pytest.approx(0.125, rel=0.05)
    assert not peaks(Simulation(one), 700)
    soft = one.with_restitution(1).with_material(1e5, 0.1, geoms="a")
    assert max(peaks(Simulation(soft), 700), default=0) < 0.01
    with pytest.raises(ValueError, match="geom_restitution"):
        one.with_restitution(1.5)


def test_a_saved_model_bounces_as_before(tmp_path):
    bouncy = model((0, 0.55, 1, 0)).with_restitution(0.5)
    bouncy.save(tmp_path / "model.npz")
    again = Model.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.to_arrays()["geom_restitution"], [0.5, 0.5])


@pytest.mark.parametrize("restitution", [0.0, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("h", [1e-3, 5e-3, 1e-2])
@pytest.mark.parametrize("radius", [0.005, 0.05])
def test_what_bounces_rolls_by_its_own_radius(radius, h, restitution):
    """A ball at 2 m/s along a floor and 5 m/s down, wherever in a step it lands: 2 (1 - 2/7) then, without slip."""
    floor = '<geom type="plane" size="5 5 1" friction=".5"/>'
    ball = f'<body pos="0 0 {radius}"><freejoint/><geom size="{radius}" mass="1" friction=".5"/></body>'
    xml = f'<mujoco><option timestep="{h}"/><worldbody>{floor}{ball}</worldbody></mujoco>'
    sim = Simulation(Model.from_mjcf(xml).with_restitution(restitution), 8)
    sim.qpos[:, 2] += 5 * h * np.arange(8) / 8
    sim.qvel[:, [0, 2]] = 2, -5
    sim.step(2)
    np.testing.assert_allclose(sim.qvel[:, 0], 10 / 7, rtol=5e-4)
    np.testing.assert_allclose(sim.qvel[:, 4] * radius, 10 / 7, rtol=5e-4)


@pytest.mark.parametrize("part", [0.3, 0.7, 0.95])
@pytest.mark.parametrize(("speed", "h"), [(1, 1e-2), (3, 5e-3), (8, 2e-3), (8, 5e-3)])
@pytest.mark.parametrize("other", ["free", "fixed"])
def test_what_glances_leaves_along_the_line_of_centres_of_the_hit(other, speed, h, part):
    """Balls of 28 mm, one coming by `part` of a diameter beside the middle of the other, at 20 phases of the step."""
    r = 0.028
    joint = "<freejoint/>" if other == "free" else ""
    ball = f'<geom size="{r}" mass=".17" friction="0"/></body>'
    thrown = f'<body pos="-.3 {part * 2 * r} 0"><freejoint/>{ball}'
    xml = f'<mujoco><option gravity="0 0 0"/><worldbody>{thrown}<body>{joint}{ball}</worldbody></mujoco>'
    sim = Simulation(Model.from_mjcf(xml).with_restitution(1), 20, timestep=h)
    sim.qpos[:, 0] -= np.arange(20) / 20 * speed * h
    sim.qvel[:, 0] = speed
    sim.step(round(0.5 / speed / h))
    along = np.sqrt(1 - part**2)  # of the speed, on the line of centres (along, -part)
    leaves = speed * along * np.array([along, -part])  # half of what the hit changes, where what is hit is fixed
    if other == "free":
        found = np.array(sim.qvel[:, 6:8])
    else:
        found = (np.array([speed, 0]) - sim.qvel[:, :2]) / 2
    np.testing.assert_allclose(found, np.tile(leaves, (20, 1)), atol=0.01 * speed)
    assert np.abs(sim.qvel[:, 3:6]).max() < 1e-3 * speed / r
