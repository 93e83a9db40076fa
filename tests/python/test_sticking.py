"""What should rest rests: a capsule held by friction, robots under PD control on a floor. float32, default options.

STICTION_FULL_TESTS=1: ten seconds to come to rest and sixty of standing still for every robot; else six and three.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from stiction import Model, Simulation  # noqa: E402
from stiction.status import Status  # noqa: E402
from test_against_mujoco import DATA, ROBOTS  # noqa: E402

from bench.accuracy.sticking import PINCH  # noqa: E402

FULL = os.environ.get("STICTION_FULL_TESTS") == "1"


def test_a_pinched_capsule_does_not_creep():
    model = Model.from_mjcf(PINCH)
    forces = np.array([12.0, 20, 30, 45, 60])
    sim = Simulation(model, len(forces), num_threads=1)
    sim.ctrl[:] = forces[:, None]
    held = model.body_id("held")
    sim.step(250)  # the gaps close
    start = sim.xpos[:, held].astype(float)
    quat = sim.xquat[:, held].copy()
    seconds = 10
    sim.step(round(seconds / sim.timestep))
    creep = np.linalg.norm(sim.xpos[:, held] - start, axis=1) / seconds
    print("creep in um/s at", dict(zip(forces, (1e6 * creep).round(4), strict=True)))
    assert creep.max() <= 1e-6
    assert np.abs(sim.xquat[:, held] - quat).max() <= 1e-4
    weight = sim.net_contact_force[:, held]
    np.testing.assert_allclose(weight, np.tile([0, 0, 0.045 * 9.81], (len(forces), 1)), atol=1e-3)
    assert not np.any(sim.status & int(Status.NON_FINITE))


def test_a_capsule_pinched_too_weakly_falls():
    sim = Simulation(Model.from_mjcf(PINCH), 1)
    sim.ctrl[:] = 0.9 * 0.045 * 9.81 / (2 * 0.8)
    sim.step(250)
    assert sim.xpos[0, sim.model.body_id("held"), 2] < 0.5 - 1e-3


def on_a_floor_with_servos(path):
    """The robot with a position servo per joint in place of its actuators, on a floor; targets: its keyframe."""
    spec = mujoco.MjSpec.from_file(str(path))
    m = spec.compile()
    d = mujoco.MjData(m)
    d.qpos[:] = m.key_qpos[0] if m.nkey and np.any(m.key_qpos[0]) else m.qpos0
    mujoco.mj_forward(m, d)
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, M)
    start = d.qpos.copy()
    for old in [*spec.actuators, *spec.keys, *spec.sensors]:
        spec.delete(old)
    targets = []
    for j in range(m.njnt):
        if m.jnt_type[j] < 2:
            continue
        dof, rate = m.jnt_dofadr[j], 20.0
        inertia, damping = M[dof, dof], m.dof_damping[dof]
        servo = spec.add_actuator(name=f"servo{j}", target=m.joint(j).name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        servo.set_to_position(kp=rate**2 * inertia + rate * damping, kv=2 * rate * inertia)
        targets.append(start[m.jnt_qposadr[j]])
    if not np.any(np.asarray(m.geom_type) == mujoco.mjtGeom.mjGEOM_PLANE):
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    return Model.from_mjmodel(spec.compile()), start, np.array(targets)


@pytest.mark.parametrize("name", ROBOTS)
def test_a_robot_comes_to_rest_and_stays(name):
    if not (DATA / name).exists():
        pytest.skip(f"no {DATA / name}")
    model, start, targets = on_a_floor_with_servos(Path(DATA / name))
    sim = Simulation(model, 1, num_threads=1)
    sim.qpos[:], sim.ctrl[:] = start, targets
    settle, hold = (10, 60) if FULL else (6, 3)
    sim.step(round(settle / sim.timestep))
    before = sim.xpos.astype(float)
    moved = 0.0
    for _ in range(10):
        sim.step(round(hold / sim.timestep / 10))
        moved = max(moved, np.linalg.norm(sim.xpos - before, axis=-1).max())
    print(f"{name}: moved {moved:.1e} m, contacts {sim.certificate.num_contacts[0]}, status {sim.status[0]}")
    assert np.isfinite(sim.qpos).all() and not sim.status[0] & int(Status.NON_FINITE)
    assert moved <= 1e-4
