"""The active rows of worlds as solvers read them: few beside many, every solver and penalty rule, merged contacts."""

from pathlib import Path

import numpy as np
import pytest
import stiction
from scenes import body, box, hinged_pair_and_stack, scene, sphere
from stiction import Model, Simulation
from stiction.solver_options import SolverOptions

ASSETS = Path(stiction.__file__).parent / "assets"
TIGHT = {"iterations": 3000, "tolerance": 1e-11, "fallback": False}


def crawler(segments: int) -> str:
    """Boxes in a row, hinged to each other: each lies on the floor with four corners."""
    inner = ""
    for _ in range(segments - 1):
        inner = (
            f'<body pos="0.22 0 0"><joint type="hinge" axis="0 1 0" pos="-0.11 0 0" damping="0.1"/>'
            f'<geom {box((0.1, 0.05, 0.05))} mass="1" friction="0"/>{inner}</body>'
        )
    first = f'<geom {box((0.1, 0.05, 0.05))} mass="1" friction="0"/>'
    return scene(f'<body pos="0 0 0.05"><freejoint/>{first}{inner}</body>', mu=0.6, timestep=0.002)


#: MJCF, and how near both come: four contacts on a face have impulses that are not unique, and slow.
SCENES = {"ant": ((ASSETS / "ant.xml").read_text(), 1e-8), "stack": (hinged_pair_and_stack(), 1e-5)}


def kicked(model: Model, num_envs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """States with contact: settled for a while under random velocities."""
    sim = Simulation(model, num_envs, dtype="float64")
    rng = np.random.default_rng(seed)
    sim.qvel[:] = rng.normal(0, 0.3, sim.qvel.shape)
    sim.step(100)
    return sim.qpos.copy(), sim.qvel.copy()


@pytest.mark.parametrize("solver", ["pgs", "canal", "admm", "bisection", "cond"])
def test_every_solver_gives_the_same_motion(solver):
    """Where the velocity is unique: contacts on a face may have several. Gauss-Seidel comes less near."""
    shares = {"pgs": 0.6, "canal": 0.9, "admm": 0.9, "bisection": 0.6, "cond": 0.6}
    (xml, near), share = SCENES["ant"], shares[solver]
    model = Model.from_mjcf(xml)
    qpos, qvel = kicked(model, 16, seed=3)
    after, contacts, solved = [], [], []
    law = {"bisection": {"law": "coulomb"}}
    for kind in ("subadmm", solver):
        options = SolverOptions(name=kind, **law.get(kind, {}), **TIGHT)
        sim = Simulation(model, 16, dtype="float64", solver=options)
        sim.qpos, sim.qvel = qpos, qvel
        sim.step(1)
        solved.append(sim.certificate.r_con <= near * sim.certificate.scale)
        after.append(sim.qvel.copy()), contacts.append(sim.certificate.num_contacts.copy())
    both = solved[0] & solved[1]
    assert both.mean() >= share and contacts[0][both].mean() >= 3
    np.testing.assert_allclose(after[0][both], after[1][both], atol=max(near, 1e-7))


def test_a_world_does_not_feel_how_many_contacts_its_neighbours_have():
    """Ten boxes have forty corners on the floor. Their neighbours stand on end."""
    model = Model.from_mjcf(crawler(10))
    few = Simulation(model, 1)
    few.qpos[:, :7] = [0, 0, 2.5, np.sqrt(0.5), 0, np.sqrt(0.5), 0]  # along z, off the floor
    few.step(1)
    start = few.qpos[0].copy()

    def run(rows: list[bool]) -> np.ndarray:
        sim = Simulation(model, len(rows))
        sim.qpos[np.array(rows)] = start
        sim.step(50)
        assert not sim.status.any()
        return np.concatenate([sim.qpos, sim.qvel], axis=1)

    lying, standing = run([False]), run([True])
    together = run([False, True, True, False, True])
    for row, alone in zip(together, (lying, standing, standing, lying, standing), strict=True):
        assert np.array_equal(row, alone[0])


@pytest.mark.parametrize("penalty", ["per_contact", "common", "adaptive"])
def test_every_penalty_rule_gives_the_same_motion(penalty):
    model = Model.from_mjcf(SCENES["ant"][0])
    qpos, qvel = kicked(model, 8, seed=4)
    after = []
    for rule in ("normal_tangential", penalty):
        sim = Simulation(model, 8, dtype="float64", solver=SolverOptions(penalty=rule, **TIGHT))
        sim.qpos, sim.qvel = qpos, qvel
        sim.step(1)
        assert (sim.certificate.r_con <= 1e-8 * sim.certificate.scale).all()
        after.append(sim.qvel.copy())
    np.testing.assert_allclose(after[0], after[1], atol=1e-7)


def test_the_adaptive_penalty_rescues_a_bad_one():
    """A heavy box on a light one: W_ii of their contacts tells too little of what carries whom."""
    bodies = body("low", (0, 0, 0.05), box(0.05), 0.02) + body("high", (0, 0, 0.2), box(0.1), 20)
    model = Model.from_mjcf(scene(bodies, mu=0.5, timestep=0.002))
    needed = {}
    for penalty in ("common", "adaptive"):
        options = SolverOptions(penalty=penalty, anderson=False, iterations=4000, tolerance=1e-9, fallback=False)
        sim = Simulation(model, 1, dtype="float64", solver=options)
        sim.step(1)
        needed[penalty] = sim.certificate.iterations[0]
    assert needed["adaptive"] < 0.7 * needed["common"]


def two_feet(gap: float, height: float, rest: str = "") -> str:
    foot = f'<geom {sphere(0.05)} mass="0.5" pos="{{}} 0 0"/>'
    return scene(f'<body pos="0 0 {height}"><freejoint/>{foot.format(0)}{foot.format(gap)}</body>{rest}')


@pytest.mark.parametrize("carried", [False, True])
def test_contacts_that_hardly_differ_count_once(carried):
    """Two feet 0.1 mm apart make one contact, 1 mm apart two: on the floor, and on a table that moves."""
    table = body("table", (0, 0, 0.1), 'type="box" size="1 1 0.1"', 5) if carried else ""
    for gap, merge, expected in ((1e-4, 5e-4, 1), (1e-4, 0.0, 2), (1e-3, 5e-4, 2)):
        xml = two_feet(gap, 0.25 if carried else 0.05, table)
        sim = Simulation(Model.from_mjcf(xml), 3, solver=SolverOptions(merge=merge))
        sim.step(50)  # near-rigid contact sinks first
        assert (sim.contact.count == expected + (4 if carried else 0)).all(), (gap, merge)
        supported = sim.net_contact_force[:, 1, 2]
        np.testing.assert_allclose(supported, 1.0 * 9.81, rtol=1e-3)


def test_switches_must_be_switches_and_solvers_known():
    with pytest.raises(TypeError, match="anderson"):
        SolverOptions(anderson=2)
    with pytest.raises(ValueError, match="'newton', expected one of 'subadmm', 'pgs', 'canal', "):
        SolverOptions(name="newton")


def swinging_legs() -> str:
    """A trunk with four legs of two links whose joints rub."""
    leg = (
        '<body pos="{x} 0 1"><joint axis="0 1 0" frictionloss=".2"/><geom {shin}/>'
        '<body pos="0 0 -.3"><joint axis="0 1 0" frictionloss=".2"/><geom {shin}/></body></body>'
    )
    shin = 'type="capsule" fromto="0 0 0 0 0 -.3" size=".02" contype="0"'
    legs = "".join(leg.format(x=i, shin=shin) for i in range(4))
    return scene(f'<body pos="0 0 3"><freejoint/><geom {box((0.3, 0.1, 0.1))} mass="5"/>{legs}</body>', timestep=0.002)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_legs_that_swing_in_the_air_take_few_passes(dtype):
    """Single precision knows their speed to a part of itself, not to one of what gravity gives in a step."""
    sim = Simulation(Model.from_mjcf(swinging_legs()), 64, dtype=dtype, num_threads=1)
    sim.qvel[:, 6:] = np.random.default_rng(0).uniform(-30, 30, (64, 8))
    passes = []
    for _ in range(20):
        sim.step()
        passes.append(sim.certificate.iterations.copy())
        assert sim.certificate.num_contacts.max() == 0
        assert sim.certificate.r_row.max() < (5e-3 if dtype == "float32" else 1e-5)
    assert np.mean(passes) <= 15 and np.mean(np.array(passes) > 40) <= 0.01
