"""Closed loops of real robots: Cassie balances on its ankles, the Robotiq 2F-85 holds a block; none opens.

Skips without Menagerie's agility_cassie and robotiq_2f85 in the data folder. Seconds, or a minute with
STICTION_FULL_TESTS=1. Menagerie's 2f85/scene.xml is refused, by name, for its fluid and its spatial tendon.
"""

import os

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from model_sources import MENAGERIE, data_file  # noqa: E402
from stiction import Model, Simulation, Status, UnsupportedModelError  # noqa: E402
from test_loops import loop_gap  # noqa: E402

SECONDS = 60 if os.environ.get("STICTION_FULL_TESTS") == "1" else 5
TIMESTEP, PERIOD = 0.002, 0.01  # of steps and of the controller, s
SHUT = 1e-5  # m
DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])
STIFFNESS, DAMPING = 800, 20  # of Cassie's servos, N m/rad and N m s/rad


def cassie():
    """On a floor under gravity, which Menagerie's scene has not, with servos for its motors."""
    spec = mujoco.MjSpec.from_file(str(data_file(MENAGERIE + "agility_cassie/scene.xml")))
    spec.option.gravity, spec.option.timestep = [0, 0, -9.81], TIMESTEP
    for motor in spec.actuators:
        gear = motor.gear[0]
        motor.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        motor.gainprm[0], motor.biasprm[1:3] = STIFFNESS / gear, [-STIFFNESS / gear**2, -DAMPING / gear**2]
        motor.forcelimited, motor.forcerange = mujoco.mjtLimited.mjLIMITED_TRUE, motor.ctrlrange
        motor.ctrlrange = [-4, 4]
    return spec.compile()


def balance(m, qpos, qvel):
    """Servo targets about home that keep the pelvis over the feet: MuJoCo's falls in 1.4 s without."""
    names = [m.actuator(i).name for i in range(m.nu)]
    foot, roll = (np.array([part in name for name in names], float) for part in ("foot", "roll"))
    home = m.key_qpos[0][m.jnt_qposadr[m.actuator_trnid[:, 0]]]
    return home - foot * (2 * qpos[0] + 0.5 * qvel[0]) + roll * (2 * qpos[1] + 0.5 * qvel[1])


@DTYPES
def test_cassie_balances_on_closed_ankles(dtype):
    m = cassie()
    sim, d = Simulation(Model.from_mjmodel(m), 1, dtype=dtype, num_threads=1), mujoco.MjData(m)
    sim.reset(keyframe=0)
    mujoco.mj_resetDataKeyframe(m, d, 0)
    worst, lowest = 0, np.inf
    for period in range(round(SECONDS / PERIOD)):
        sim.ctrl[0], d.ctrl[:] = balance(m, sim.qpos[0], sim.qvel[0]), balance(m, d.qpos, d.qvel)
        sim.step(round(PERIOD / TIMESTEP))
        mujoco.mj_step(m, d, round(PERIOD / TIMESTEP))
        sim.forward()
        gap = loop_gap(sim.model, sim).max()
        if period >= 20:  # in the file's keyframe they are 0.6 mm open
            worst = max(worst, gap)
        lowest = min(lowest, sim.qpos[0, 2])
        assert not np.any(sim.status & ~Status.FALLBACK)
    print(
        f"{dtype}: loops open by {worst:.1e} m at most, pelvis {lowest:.3f} m or higher, off MuJoCo's by "
        f"{np.abs(sim.qpos[0, :3] - d.qpos[:3]).max():.1e} m"
    )
    assert worst <= SHUT
    assert lowest > 0.93  # m; home is 1.006, and its springs give
    assert np.abs(sim.qpos[0, :3] - d.qpos[:3]).max() <= 0.01


def gripper():
    """With a block of 0.1 kg, 30 mm wide, between its pads."""
    spec = mujoco.MjSpec.from_file(str(data_file(MENAGERIE + "robotiq_2f85/2f85.xml")))
    spec.option.timestep = TIMESTEP
    block = spec.worldbody.add_body(name="block", pos=[0, 0, 0.148])
    block.add_freejoint()
    block.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.015] * 3, mass=0.1)
    return spec.compile()


@DTYPES
def test_the_2f85_closes_on_a_block_and_holds_it(dtype):
    m = gripper()
    sim = Simulation(Model.from_mjmodel(m), 1, dtype=dtype, num_threads=1)
    block = m.body("block").jntadr[0]
    place, speed = (slice(a[block], a[block] + n) for a, n in ((m.jnt_qposadr, 7), (m.jnt_dofadr, 6)))
    start = sim.qpos[0, place].copy()
    sim.ctrl[:] = 255
    worst = 0
    for period in range(round((SECONDS + 0.3) / PERIOD)):
        for _ in range(round(PERIOD / TIMESTEP)):
            if period < 30:  # a hand holds the block until the pads do
                sim.qpos[0, place], sim.qvel[0, speed] = start, 0
            sim.step()
        sim.forward()
        worst = max(worst, loop_gap(sim.model, sim).max())
        assert not np.any(sim.status & ~Status.FALLBACK)
    slipped = np.linalg.norm(sim.qpos[0, place][:3] - start[:3])
    print(f"{dtype}: loops open by {worst:.1e} m at most, the block slips by {slipped:.1e} m")
    assert worst <= SHUT
    assert slipped <= 1e-4  # m; fallen in a second without the pads: 5


def test_what_no_simulation_has_is_refused_by_name():
    with pytest.raises(UnsupportedModelError, match=r"fluid \(density 0, viscosity 0.1\)\n.*spatial tendon"):
        Model.from_mjcf(data_file(MENAGERIE + "robotiq_2f85/scene.xml"))
