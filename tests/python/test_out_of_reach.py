"""A mocap body out of reach, or a limit that forbids what it asks of a weld: the arm stretches, or stays, and rests."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

from stiction import Model, Simulation, SolverOptions, Status  # noqa: E402

pytestmark = pytest.mark.on_cpu


def arm_on_a_mocap_body(limit=""):
    """Six hinges, a metre of reach above a shoulder at 0.3 m; the hand is welded to a mocap body."""
    axes = ("0 0 1", "0 1 0", "0 1 0", "1 0 0", "0 1 0", "1 0 0")
    lengths = (0.05, 0.4, 0.35, 0.05, 0.1, 0.1)
    links, ends, x = "", "", 0.0
    for i, (axis, length) in enumerate(zip(axes, lengths, strict=True)):
        links += (
            f'<body pos="{x} 0 0"><joint axis="{axis}" damping=".5" {limit if i == 2 else ""}/>'
            f'<geom type="capsule" fromto="0 0 0 {length} 0 0" size=".03" mass="{4 * length + 0.3}" '
            'contype="0" conaffinity="0"/>'
        )
        ends, x = ends + "</body>", length
    return Model.from_mjcf(
        '<mujoco><option timestep="0.002"/><compiler angle="radian"/><worldbody><body name="target" mocap="true"/>'
        f'<body name="shoulder" pos="0 0 .3">{links}<body name="hand" pos=".1 0 0"><geom size=".02" mass=".1"/>'
        f"</body>{ends}"
        '</body></worldbody><equality><weld body1="target" body2="hand" relpose="0 0 0 1 0 0 0"/></equality>'
        "</mujoco>"
    )


BENT = (0.2, -0.9, 1.6, 0.1, -0.6, 0.2)


@pytest.mark.parametrize("integrator", ["implicit", "euler"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("to", [(1.8, 0, 0.3), (0.2, 1.2, -0.6), (-0.9, 0.3, 1.4)])
def test_an_arm_whose_mocap_body_goes_out_of_reach_stretches_and_rests(to, dtype, integrator):
    """Stretched it hardly moves towards it, and whirled at hundreds of rad/s for ever."""
    model = arm_on_a_mocap_body()
    hand = model.mjmodel.body("hand").id
    sim = Simulation(model, 1, dtype=dtype, integrator=integrator, num_threads=1)
    sim.qpos[0] = BENT
    sim.forward()
    start, turn = np.array(sim.xpos[0, hand], float), np.array(sim.xquat[0, hand])
    fastest = late = 0.0
    for k in range(3000):
        sim.mocap_pos[0, 0], sim.mocap_quat[0, 0] = start + min(1, k / 500) * (np.array(to) - start), turn
        sim.step()
        speed = np.abs(sim.qvel).max()
        fastest, late = max(fastest, speed), max(late, speed if k > 2500 else 0.0)
    print(f"{to} {dtype} {integrator}: at most {fastest:.1f} rad/s, last {late:.4f}, status {sim.status[0]}")
    assert late <= 0.05 and fastest <= 100
    assert not np.any(sim.status & Status.NON_FINITE)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_limit_that_forbids_what_a_weld_holds_wins_and_the_arm_rests(dtype):
    """The elbow begins half a radian beyond its limit; nothing else of the arm can then be where it was."""
    model = arm_on_a_mocap_body(limit='range="-1.1 1.1" limited="true"')
    hand = model.mjmodel.body("hand").id
    sim = Simulation(model, 1, dtype=dtype, num_threads=1)
    sim.qpos[0] = BENT
    sim.forward()
    sim.mocap_pos[0, 0], sim.mocap_quat[0, 0] = sim.xpos[0, hand], sim.xquat[0, hand]
    fastest = 0.0
    for _ in range(4000):
        sim.step()
        fastest = max(fastest, np.abs(sim.qvel).max())
    print(f"{dtype}: at most {fastest:.1f} rad/s, then {np.abs(sim.qvel).max():.4f}, elbow {sim.qpos[0, 2]:.4f}")
    assert fastest <= 100 and np.abs(sim.qvel).max() <= 0.05
    assert sim.qpos[0, 2] <= 1.1 + 1e-3


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_max_recovery_may_be_infinite(dtype):
    weld = '<weld body1="target" body2="hand" relpose="0 0 0 1 0 0 0"/>'
    hand = '<body name="hand" pos="0 0 1"><freejoint/><geom size=".05" mass="1"/></body>'
    worldbody = f'<worldbody><body name="target" mocap="true" pos="0 0 1"/>{hand}</worldbody>'
    model = Model.from_mjcf(f"<mujoco>{worldbody}<equality>{weld}</equality></mujoco>")
    sim = Simulation(model, 1, dtype=dtype, solver=SolverOptions(max_recovery=np.inf))
    sim.mocap_pos[0, 0] = 0.5, 0, 1
    sim.step(60)
    assert np.abs(sim.qpos[0, :3] - [0.5, 0, 1]).max() <= 1e-5
