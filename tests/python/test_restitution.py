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
    assert sim.qvel[0, 0] == pytest.approx(0, abs=0.03) and sim.qvel[0, 6] == pytest.approx(2, abs=0.03)
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
