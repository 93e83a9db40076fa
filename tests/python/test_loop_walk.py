"""A quadruped trots on legs that are closed loops: a crank at each hip bends the knee through a rod."""

import itertools
import os

import numpy as np
import pytest

pytest.importorskip("mujoco")

from stiction import Model, Simulation, SolverOptions, Status, solver_names  # noqa: E402
from test_loops import loop_gap  # noqa: E402

SECONDS = 60 if os.environ.get("STICTION_FULL_TESTS") == "1" else 6
TIMESTEP, CONTROL, PERIOD = 0.002, 5, 0.4  # s; steps that controls hold; s of the gait
THIGH, SHANK, CRANK = 0.2, 0.2, 0.05  # m
SHUT = 1e-5  # m

#: The knee is hung on the thigh, the rod on the crank; the rod's other end is held to the shank, behind the knee.
LEG = f"""
<body name="{{n}}_thigh" pos="{{x}} {{y}} 0" euler="0 35 0">
  <joint name="{{n}}_hip" axis="0 1 0" armature=".01" damping=".2"/>
  <geom type="capsule" size=".015" fromto="0 0 0 0 0 -{THIGH}" mass=".6"/>
  <body name="{{n}}_shank" pos="0 0 -{THIGH}" euler="0 -70 0">
    <joint name="{{n}}_knee" axis="0 1 0" damping=".02"/>
    <geom type="capsule" size=".01" fromto="0 0 0 0 0 -{SHANK}" mass=".2"/>
    <geom name="{{n}}_foot" size=".02" pos="0 0 -{SHANK}" mass=".05" contype="1"/>
  </body>
</body>
<body name="{{n}}_crank" pos="{{x}} {{y}} 0" euler="0 -35 0">
  <joint name="{{n}}_crank" axis="0 1 0" armature=".01" damping=".2"/>
  <geom type="capsule" size=".01" fromto="0 0 0 0 0 {CRANK}" mass=".1"/>
  <body name="{{n}}_rod" pos="0 0 {CRANK}" euler="0 70 0">
    <joint name="{{n}}_rod" axis="0 1 0" damping=".02"/>
    <geom type="capsule" size=".006" fromto="0 0 0 0 0 -{THIGH}" mass=".1"/>
  </body>
</body>"""
LEGS = {"FL": (0.2, 0.12), "FR": (0.2, -0.12), "RL": (-0.2, 0.12), "RR": (-0.2, -0.12)}
TOGETHER = {"FL": 0, "RR": 0, "FR": 0.5, "RL": 0.5}  # of a period
ROBOT = f"""
<mujoco><option timestep="{TIMESTEP}"/><default><geom contype="0" conaffinity="0"/></default>
<worldbody><geom name="floor" type="plane" size="0 0 1" contype="0" conaffinity="1" friction=".9"/>
<body name="trunk" pos="0 0 .352"><freejoint/><geom type="box" size=".25 .1 .05" mass="8"/>
{"".join(LEG.format(n=n, x=x, y=y) for n, (x, y) in LEGS.items())}</body></worldbody>
<equality>{"".join(f'<connect body1="{n}_rod" body2="{n}_shank" anchor="0 0 -{THIGH}"/>' for n in LEGS)}</equality>
<actuator>{
    "".join(
        f'<position joint="{n}_{part}" kp="80" kv="2" forcerange="-25 25"/>' for n in LEGS for part in ("hip", "crank")
    )
}</actuator></mujoco>"""


#: Bisection's own law has no fallback, and is refused; Coulomb's does without one.
SOLVERS = {name: SolverOptions.of(name) for name in solver_names()} | {
    "bisection": SolverOptions(name="bisection", law="coulomb", fallback=False)
}


def gait(t):
    """Angles of hips and cranks: half of a period on the ground, going back, the other half lifted, going forth."""
    targets = []
    for n in LEGS:
        phase = 2 * np.pi * (t / PERIOD + TOGETHER[n])
        swing, lift = -0.25 * np.cos(phase), 0.35 * max(0.0, np.sin(phase))
        targets += [swing - lift, swing + lift]  # thigh and shank swing together; apart they shorten the leg
    return np.array(targets) * min(1, t)


@pytest.mark.parametrize(
    "solver, dtype", zip(SOLVERS.values(), itertools.cycle(["float64", "float32"]), strict=False), ids=list(SOLVERS)
)
def test_a_quadruped_trots_on_closed_loops(solver, dtype):
    sim = Simulation(Model.from_mjcf(ROBOT), 1, dtype=dtype, num_threads=1, solver=solver)
    sim.forward()
    assert loop_gap(sim.model, sim).max() < 1e-6
    worst, lowest, way, flagged, steps = 0, np.inf, 0, 0, round(SECONDS / TIMESTEP / CONTROL)
    for step in range(steps):
        sim.ctrl[0] = gait(step * CONTROL * TIMESTEP)
        before = sim.qpos[0, :2].copy()
        sim.step(CONTROL)
        way += np.linalg.norm(sim.qpos[0, :2] - before)
        sim.forward()
        worst, lowest = max(worst, loop_gap(sim.model, sim).max()), min(lowest, sim.qpos[0, 2])
        assert not np.any(sim.status & ~(Status.FALLBACK | Status.NOT_CONVERGED))
        flagged += bool(sim.status[0] & Status.NOT_CONVERGED)
        sim.clear_status()
    print(f"{solver.name}, {dtype}: {way:.2f} m in {SECONDS} s, trunk {lowest:.3f} m or higher, ", end="")
    print(f"loops open by {worst:.1e} m")
    assert way > 0.5 * SECONDS
    assert lowest > 0.25
    assert worst <= SHUT
    # What float32 rounds of the loops' residual alone comes to `certify` once in some 30,000 steps, now and then in the
    # 3,000 of this test; bisection has no fallback here for what it leaves.
    assert flagged <= ((not solver.fallback) + 1 + SECONDS / 20 if dtype == "float32" else 0)
