"""Contacts that the free motion leaves open wait until what is pushed closes them (docs/theory.md, section 7)."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

from stiction import Model, Simulation, Status  # noqa: E402

CUBE = '<body pos="{} {} {}"><freejoint/><geom type="box" size=".05 .05 .05" mass="1"/></body>'
WORLD = '<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="5 5 1"/>{}</worldbody></mujoco>'
ROW = '<body pos="{} 0 1"><freejoint/><geom type="box" size=".05 .05 .05" mass="1"/></body>'
SPACE = '<mujoco><option timestep="{}" gravity="0 0 0"/><worldbody>{}</worldbody></mujoco>'


def tossed(envs, seeds, **options):
    """27 cubes 1 cm from each other, thrown about: nearly all may touch, and few do."""
    places = [(0.11 * (i % 3), 0.11 * (i // 3 % 3), 0.1 + 0.11 * (i // 9)) for i in range(27)]
    cubes = "".join(CUBE.format(*at) for at in places)
    sim = Simulation(Model.from_mjcf(WORLD.format(cubes)), envs, **options)
    for env, seed in enumerate(seeds):
        sim.qvel[env] = np.random.default_rng(seed).normal(0, 1, sim.model.nv)
    return sim


def energy(sim):
    v = sim.qvel.reshape(sim.num_envs, 27, 6).astype(float)
    height = sim.qpos.reshape(sim.num_envs, 27, 7)[:, :, 2].astype(float)
    return (0.5 * (v[..., :3] ** 2).sum(-1) + 0.5 * (0.01 / 6) * (v[..., 3:] ** 2).sum(-1) + 9.81 * height).sum(-1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cubes_that_are_tossed_settle_and_gain_nothing(dtype):
    sim = tossed(8, range(8), dtype=dtype)
    last, deepest, unsolved = energy(sim), 0.0, 0
    for _ in range(300):
        sim.step()
        now = energy(sim)
        assert (now < last + 1e-3 * last).all()
        last, deepest = now, max(deepest, float(sim.certificate.penetration.max()))
        unsolved += ((sim.status & ~Status.FALLBACK) != 0).sum()
        sim.clear_status()
    print(f"{dtype}: deepest overlap {1e3 * deepest:.2f} mm, {unsolved} of 2,400 steps unsolved")
    assert deepest < 4e-3
    assert unsolved <= 5


def test_bits_do_not_depend_on_who_else_lets_contacts_in():
    all_of_them = tossed(20, range(20))
    all_of_them.step(80)
    for seed in (0, 7, 19):
        alone = tossed(1, [seed])
        alone.step(80)
        np.testing.assert_array_equal(alone.qpos[0], all_of_them.qpos[seed])


@pytest.mark.parametrize("timestep", [0.002, 0.01])
@pytest.mark.parametrize("gap", [1e-4, 5e-3])
@pytest.mark.parametrize("solver", ["subadmm", "canal", "pgs"])
def test_a_row_that_is_hit_goes_on_together(solver, gap, timestep):
    """The first closes one gap by itself; every other is closed by what that does."""
    row = "".join(ROW.format(i * (0.1 + gap)) for i in range(8))
    sim = Simulation(Model.from_mjcf(SPACE.format(timestep, row)), 3, solver=solver, dtype="float64")
    sim.qvel[:, 0] = 0.5, 1, 2
    deepest = 0.0
    for _ in range(round(1 / timestep)):
        sim.step()
        deepest = max(deepest, float(sim.certificate.penetration.max()))
    speed = sim.qvel[:, 0::6]
    np.testing.assert_allclose(speed.sum(1), (0.5, 1, 2), rtol=1e-6)
    np.testing.assert_allclose(speed / np.array([[0.5], [1], [2]]), np.full((3, 8), 1 / 8), rtol=0.05)
    assert deepest < 1e-4
