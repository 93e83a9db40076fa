"""Limits of joints and of fixed tendons: what runs into one stops there within the step, however fast it is."""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from scenes import EXACT  # noqa: E402
from stiction import Model, Simulation  # noqa: E402
from stiction.solver_options import SolverOptions  # noqa: E402
from test_against_mujoco import error, random_state, steps_of_the_oracle  # noqa: E402

H = 0.01
WAYS = pytest.mark.parametrize("integrator", ["implicit", "euler"])
KINDS = pytest.mark.parametrize("kind", ["hinge", "slide"])
DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])

#: Two joints in a row.
PAIR = """
<mujoco><compiler autolimits="true" angle="radian"/><option timestep="{h}" gravity="0 0 0"/><worldbody>
  <body><joint name="a" type="{kind}" axis="0 0 1" damping=".02" {a}/><geom size=".1" mass="1" contype="0"/>
    <body pos=".2 0 0"><joint name="b" type="{kind}" axis="0 .6 .8"/>
      <geom type="box" size=".1 .05 .2" pos=".1 0 0" mass=".5" contype="0"/></body></body>
</worldbody>{rest}</mujoco>"""


def tendon(low, high, a=1, b=-2, name="t"):
    terms = f'<joint joint="a" coef="{a}"/><joint joint="b" coef="{b}"/>'
    return f'<tendon><fixed name="{name}" range="{low} {high}">{terms}</fixed></tendon>'


def simulation(xml, num_envs, dtype, integrator, solver=EXACT):
    options = {"solver": solver} if dtype == "float64" else {}
    return Simulation(Model.from_mjcf(xml), num_envs, dtype=dtype, integrator=integrator, num_threads=1, **options)


def tolerance(dtype, speed):
    """Single precision: the solver stops at 1e-5 of the speed that a step has to do with."""
    return 1e-9 if dtype == "float64" else 1e-6 + 1e-5 * H * np.abs(speed)


@WAYS
@KINDS
@DTYPES
def test_a_fast_tendon_stops_at_its_limit(dtype, kind, integrator):
    """Pushed towards either end, at up to a third of the range in a step."""
    low, high, coef = -1.0, 0.5, np.array([1.0, -2.0])
    speed = np.array([0.3, 3.0, 10.0, 50.0, -0.3, -3.0, -10.0, -50.0])
    sim = simulation(PAIR.format(kind=kind, h=H, a="", rest=tendon(low, high)), len(speed), dtype, integrator)
    sim.qpos[:, 0] = (low + high) / 2
    sim.qvel[:] = speed[:, None] * coef / coef.dot(coef)
    sim.qfrc_applied[:] = 0.3 * np.sign(speed)[:, None] * coef
    for _ in range(400):
        sim.step()
        length = sim.qpos.astype(np.float64) @ coef
        assert np.all(np.maximum(low - length, length - high) <= tolerance(dtype, speed))
    assert np.all(np.abs(length - np.where(speed > 0, high, low)) <= tolerance(dtype, speed))
    assert not sim.status.any()


@WAYS
@DTYPES
@pytest.mark.parametrize("of", ["joint", "tendon"])
def test_the_far_end_of_a_narrow_range_is_a_limit_too(dtype, of, integrator):
    """A step of the free motion leads from near one end across the range and out at the other."""
    low, high, speed = 0.1, 0.12, np.array([5.0, -5.0])
    ranged, rest = (f'range="{low} {high}"', "") if of == "joint" else ("", tendon(low, high, 1, 0.5))
    sim = simulation(PAIR.format(kind="slide", h=H, a=ranged, rest=rest), 2, dtype, integrator)
    sim.qpos[:, 0] = [low + 0.005, high - 0.005]
    sim.qvel[:, 0] = speed
    sim.step()
    reached = sim.qpos[:, 0] + (0 if of == "joint" else 0.5 * sim.qpos[:, 1])
    assert np.all(np.abs(reached - [high, low]) <= tolerance(dtype, speed))


@WAYS
@KINDS
def test_fast_steps_against_limits_match_the_oracle(kind, integrator):
    reference = pytest.importorskip("stiction_reference")
    rest = tendon(-0.4, 0.3) + tendon(-0.5, 0.6, 3, 1, "u")
    xml = PAIR.format(kind=kind, h=H, a='range="-.3 .25"', rest=rest)
    sim = simulation(xml, 1, "float64", integrator, SolverOptions(tolerance=1e-12, iterations=3000))
    oracle, m = reference.Model(sim.model.to_arrays()), sim.model.mjmodel
    held = 0
    for seed in range(10):
        d = random_state(m, seed, spread=0.1)
        d.qvel *= 10
        for q, v in steps_of_the_oracle(oracle, sim, d):
            held += np.count_nonzero(sim.contact_problem(0).row_impulse > 1e-6)
            assert error(sim.qpos[0], q) <= 1e-9 and error(sim.qvel[0], v) <= 1e-7
    assert held > 20
