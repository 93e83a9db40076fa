"""Torsional and rolling friction: closed forms, the law judged from MuJoCo's Jacobians, bits, what is refused."""

import golden
import numpy as np
import pytest
import stiction
from stiction import Model, Simulation, SolverOptions, _core

mujoco = pytest.importorskip("mujoco")

CARRIERS = ("subadmm", "canal", "sap", "admm", "pgs")
H, G = 2e-3, 9.81
FRICTION = (1.0, 0.02, 0.01)  # sliding, torsional, rolling


def scene(*bodies: str, condim=6, friction=FRICTION, timestep=H) -> Model:
    numbers = " ".join(map(str, friction))
    return Model.from_mjcf(
        f"""<mujoco><option timestep="{timestep}"/><default><geom condim="{condim}" friction="{numbers}"/></default>
        <worldbody><geom name="floor" type="plane" size="5 5 1"/>{"".join(bodies)}</worldbody></mujoco>"""
    )


def ball(x=0.0, radius=0.1, mass=1.0, name="ball") -> str:
    geom = f'<geom name="{name}" size="{radius}" mass="{mass}"/>'
    return f'<body name="{name}" pos="{x} 0 {radius}"><freejoint/>{geom}</body>'


@pytest.mark.parametrize("solver", [name for name in CARRIERS if name != "sap"])  # whose law lifts what spins
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_spinning_ball_stops_as_torsional_friction_says(solver, dtype):
    sim = Simulation(scene(ball(), condim=4), dtype=dtype, solver=solver)
    rate = FRICTION[1] * G / (0.4 * 0.1**2)  # m g mu_s / I
    sim.qvel[0, 5] = 10
    for step in range(1, 101):
        sim.step()
        assert sim.qvel[0, 5] == pytest.approx(10 - rate * step * H, abs=2e-2)
        assert sim.contact.couple[0, 0, 2] == pytest.approx(-FRICTION[1] * G * H, rel=1e-2)
    sim.step(20)
    assert abs(sim.qvel).max() < 1e-4 and sim.status[0] == 0
    assert not sim.contact.couple[0, 0, :2].any()  # condim 4 does not resist rolling


@pytest.mark.parametrize("solver", CARRIERS)
def test_a_rolling_ball_stops_as_rolling_friction_says(solver):
    """Energy falls by m g mu_r dtheta, but for what slips: a part (l_t / mu l_n)^2 of it."""
    sim = Simulation(scene(ball()), dtype="float64", solver=solver)
    sim.qvel[0] = [1, 0, 0, 0, 10, 0]
    steps = 0
    while abs(sim.qvel[0, 4]) > 1e-3 and steps < 2000:
        sim.step()
        steps += 1
    expected = 0.5 * 1.4 * 1.0**2 / (FRICTION[2] * G) * 0.1  # m, until 7/10 m v^2 is gone
    assert sim.qpos[0, 0] == pytest.approx(expected, rel=0.01)
    sim.step(50)
    assert abs(sim.qvel).max() < 1e-5


def test_without_condim_four_nothing_stops():
    sim = Simulation(scene(ball(), condim=3), dtype="float64")
    sim.qvel[0] = [1, 0, 0, 0, 10, 7]
    sim.step(500)
    np.testing.assert_allclose(sim.qvel[0], [1, 0, 0, 0, 10, 7], atol=1e-4)
    assert not sim.contact.couple.any()


@pytest.mark.parametrize("part", [0.95, 1.05])
def test_a_couple_turns_what_rests_beyond_its_bound_only(part):
    sim = Simulation(scene(ball(), condim=4), dtype="float64")
    sim.step(10)
    sim.qfrc_applied[0, 5] = part * FRICTION[1] * G
    sim.step(500)
    turned = float(sim.qvel[0, 5])
    if part < 1:
        assert abs(turned) < 1e-6
    else:
        assert turned == pytest.approx((part - 1) * FRICTION[1] * G / 0.004, rel=1e-3)


BODIES = (
    ball(0, name="a"),
    ball(0.3, 0.05, 0.2, "b"),
    '<body pos=".02 0 .35"><freejoint/><geom name="box" type="box" size=".12 .1 .05" mass=".7"/></body>',
    '<body pos="-.5 0 .05" quat="1 1 0 0"><freejoint/>'
    '<geom name="can" type="cylinder" size=".05 .1" mass=".5"/></body>',
    '<body pos="0 .5 .3"><joint name="arm" type="hinge" axis="0 1 0"/><geom name="stick" type="capsule" '
    'fromto="0 0 0 .28 0 -.1" size=".03" mass=".4"/></body>',
    '<body pos=".2 .5 .13"><freejoint/>'
    '<geom name="c" size=".07" mass=".3" friction=".6 .03 .005" priority="1"/></body>',
)


def judged(sim, before):
    """Of the last step, from MuJoCo's Jacobians at the state before it: r_con and V, the worst error of v."""
    m = sim.model.mjmodel
    data = mujoco.MjData(m)
    data.qpos[:], data.qvel[:] = before
    mujoco.mj_forward(m, data)
    mass = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, data, mass)
    after, push = np.asarray(sim.qvel[0], float), np.zeros(m.nv)
    parts = []
    for k in range(int(sim.contact.count[0])):
        geoms, frame = sim.contact.geom[0, k], np.asarray(sim.contact.frame[0, k], float)
        J = np.zeros((6, m.nv))
        pos, gap = np.asarray(sim.contact.pos[0, k], float), max(float(sim.contact.dist[0, k]), 0.0)
        for sign, geom in ((-1, geoms[0]), (1, geoms[1])):
            linear, angular = np.zeros((3, m.nv)), np.zeros((3, m.nv))
            x = pos + sign * frame[2] * gap / 2  # where the body will be touched
            if sign > 0:
                x = x + sim.contact.ahead[0, k]
            if gap > 0 and (m.geom_type[geoms] == mujoco.mjtGeom.mjGEOM_SPHERE).all():
                x = data.geom_xpos[geom] - sign * frame[2] * m.geom_size[geom, 0]
            mujoco.mj_jac(m, data, linear, angular, x, m.geom_bodyid[geom])
            J += sign * np.vstack([frame @ linear, frame @ angular])
        first, second = (m.geom_friction[g] for g in geoms)
        p1, p2 = (m.geom_priority[g] for g in geoms)
        friction = first if p1 > p2 else second if p2 > p1 else np.maximum(first, second)
        arms = np.array([1, 1, 1, friction[2], friction[2], friction[1]]) / np.array([1, 1, 1, *[friction[0]] * 3])
        J = arms[:, None] * J
        impulse = np.concatenate([sim.contact.impulse[0, k], sim.contact.couple[0, k] / arms[3:]])
        push += J.T @ impulse
        parts.append((J, impulse, friction[0], float(sim.contact.dist[0, k])))
    free = after - np.linalg.solve(mass, push)  # J v* by the impulses themselves
    worst, scale = 0.0, G * sim.timestep
    for J, impulse, mu, dist in parts:
        g = np.trace(J[:3] @ np.linalg.solve(mass, J[:3].T)) / 3
        s = J @ after
        s[2] += dist / sim.timestep if dist > 0 else 0  # the bare law
        tangents = [0, 1, 3, 4, 5]
        lifted = impulse - s / g
        lifted[2] -= mu * np.linalg.norm(s[tangents]) / g
        r, n = np.linalg.norm(lifted[tangents]), lifted[2]
        onto = lifted.copy()
        if mu * r <= -n:
            onto[:] = 0
        elif r > mu * n:
            onto[2] = (n + mu * r) / (1 + mu * mu)
            onto[tangents] *= mu * onto[2] / r
        worst = max(worst, g * np.linalg.norm(impulse - onto))
        if dist <= 0 or impulse.any():
            scale = max(scale, np.abs(J[:3] @ free).max())
    return worst, scale, len(parts), sum(abs(part[1][3:]).max() > 1e-9 for part in parts)


@pytest.mark.parametrize("solver", ["subadmm", "canal", "admm"])
def test_the_law_holds_by_mujocos_jacobians(solver):
    model = scene(*BODIES)
    options = SolverOptions(name=solver, tolerance=1e-8, iterations=1000, penetration_allowance=0, erp=0)
    sim = Simulation(model, dtype="float64", solver=options, integrator="euler")
    rng = np.random.default_rng(0)
    sim.qvel[:] = 2 * rng.standard_normal(model.nv)
    seen = pushed = 0
    for step in range(150):
        before = np.array(sim.qpos[0], float), np.array(sim.qvel[0], float)
        sim.step()
        if step % 5:
            continue
        worst, scale, contacts, couples = judged(sim, before)
        ours = float(sim.certificate.r_con[0])
        assert worst <= 1e-6 * scale + 1.01 * ours, (step, worst, scale, ours)
        assert ours <= 1e-6 * float(sim.certificate.scale[0])
        seen, pushed = seen + contacts, pushed + couples
    assert seen > 60 and pushed > 40


def test_it_goes_as_in_mujoco():
    """Its elliptic cone has the same law, softened and convex, which hardly shows where nothing slides."""
    model = scene(ball())
    m = model.mjmodel
    m.opt.cone, m.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 100
    data, sim = mujoco.MjData(m), Simulation(model, dtype="float64")
    data.qvel[:] = sim.qvel[0] = [1, 0, 0, 0, 10, 5]
    for _ in range(300):
        mujoco.mj_step(m, data)
        sim.step()
    np.testing.assert_allclose(sim.qvel[0, :3], data.qvel[:3], atol=0.03)
    np.testing.assert_allclose(sim.qvel[0, 3:], data.qvel[3:], atol=0.2)
    np.testing.assert_allclose(sim.qpos[0, :2], data.qpos[:2], atol=0.01)


@pytest.mark.parametrize("condim", [3, 4])
def test_two_fingertips_hold_a_torque(condim):
    """A bar pinched 3 cm beside its centre of mass: its weight turns it unless the fingertips do not let it."""
    finger = (
        '<body pos="{0} 0 .5"><joint name="f{1}" type="slide" axis="{2} 0 0" damping="1"/>'
        '<geom size=".01" mass=".1"/></body>'
    )
    bar = '<body pos="0 .03 .5"><freejoint/><geom type="box" size=".01 .08 .01" mass=".05"/></body>'
    model = scene(
        finger.format(-0.02, 0, 1), finger.format(0.02, 1, -1), bar, condim=condim, friction=(1, 0.01, 0.0001)
    )
    sim = Simulation(model, dtype="float64")
    sim.qfrc_applied[0, :2] = 5  # N; 2 mu_s F = 0.1 N m against 0.05 g 0.03 = 0.015 N m
    sim.step(500)
    tilt = 2 * np.arcsin(np.linalg.norm(np.asarray(sim.qpos[0, 6:9], float)))
    assert abs(float(sim.qpos[0, 4]) - 0.5) < 0.05
    if condim == 4:
        assert abs(tilt) < 1e-4
    else:
        assert abs(tilt) > 0.3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_do_not_depend_on_place_or_instruction_set(dtype):
    model = scene(*BODIES)
    rng = np.random.default_rng(1)
    qvel = rng.standard_normal((19, model.nv))
    found = []
    for isa in _core.available_isas():
        for envs in (slice(None), slice(7, 8)):
            world = golden.bare_world(model, len(qvel[envs]), isa, float64=dtype == "float64")
            world.array("qvel")[:] = qvel[envs]
            world.step(100)
            row = 7 if envs == slice(None) else 0
            found.append(world.array("qpos")[row].tobytes() + world.array("contact.couple")[row].tobytes())
    assert len(set(found)) == 1


def test_bits_of_what_couples_do_not_touch_do_not_depend_on_them():
    """Two links whose weld takes more passes go to the fallback, beside others or beside bodies with couples."""
    link = '<joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>'
    pulled = f"""<body pos="3 0 1">{link}<body name="lower" pos=".3 0 0">{link}</body></body>
      <body name="stand" mocap="true" pos="3.6 0 1"/>"""
    worlds = "".join([ball(), *BODIES, pulled])
    model = Model.from_mjcf(
        f"""<mujoco><option timestep="{H}"/><default><geom condim="6" friction="1 .02 .01"/></default>
        <worldbody><geom name="floor" type="plane" size="5 5 1"/>{worlds}</worldbody>
        <equality><weld body1="lower" body2="stand"/></equality></mujoco>"""
    )
    few = stiction.SubAdmm(iterations=2)
    qvel = 0.3 * np.random.default_rng(2).standard_normal((12, model.nv))
    together = Simulation(model, len(qvel), solver=few)
    together.qvel[:] = qvel
    alone = [Simulation(model, 1, solver=few) for _ in range(4)]
    for sim, own in zip(alone, qvel, strict=False):
        sim.qvel[:] = own
    for sim in (together, *alone):
        sim.mocap_pos[:, 0] += (0, 0.1, 0.05)  # where they cannot follow
    for _ in range(12):
        for sim in (together, *alone):
            sim.step()
    assert (together.status & stiction.Status.FALLBACK).all()
    for env, sim in enumerate(alone):
        np.testing.assert_array_equal(together.qpos[env], sim.qpos[0])


def test_friction_of_an_environment_has_all_three():
    sim = Simulation(scene(ball(), condim=4), 2, dtype="float64", per_env=("geom_friction",))
    sim.params.geom_friction[1, :, 1] = 0.04
    sim.qvel[:, 5] = 10
    sim.step(50)
    slowed = 10 - np.asarray(sim.qvel[:, 5])
    assert slowed[1] == pytest.approx(2 * slowed[0], rel=1e-3)


def test_friction_can_be_changed_and_taken_out():
    model = scene(ball(), condim=3)
    assert stiction.Model.with_friction(model, torsional=0.02).geom_condim.tolist() == [4, 4]
    rolling = model.with_friction(sliding=0.5, rolling=0.01, geoms="ball")
    assert rolling.geom_condim.tolist() == [3, 6]
    np.testing.assert_allclose(rolling.geom_friction[1], [0.5, 0, 0.01])
    plain = scene(ball(), condim=6).with_friction(torsional=0, rolling=0)
    assert plain.geom_condim.tolist() == [3, 3]
    assert model.with_friction(sliding=0).geom_condim.tolist() == [1, 1]
    with pytest.raises(ValueError, match="geom_friction"):
        model.with_friction(torsional=-1)


def test_what_cannot_carry_it_says_so():
    model = scene(ball())
    for solver in ("cond", "bisection"):
        with pytest.raises(ValueError, match=f"'{solver}' carries no torsional or rolling friction"):
            Simulation(model, solver=solver)
        Simulation(model.with_friction(torsional=0, rolling=0), solver=solver).step()
    with pytest.raises(ValueError, match="tangential_compliance"):
        Simulation(model, solver=SolverOptions(tangential_compliance=0.1))
    sim = Simulation(model)
    sim.step(2)
    for solver in ("cond", "bisection"):
        with pytest.raises(ValueError, match=f"'{solver}' carries no torsional or rolling friction"):
            stiction.solve(sim.contact_problem(0), solver)


def test_the_problem_of_a_step_has_them():
    """Its velocity is the step's, its couples are those that contacts report, its residuals are the certificate's."""
    options = SolverOptions(name="canal", tolerance=1e-10, iterations=1000)
    sim = Simulation(scene(*BODIES), dtype="float64", solver=options, integrator="euler")
    sim.qvel[:] = 2 * np.random.default_rng(0).standard_normal(sim.model.nv)
    turned = 0
    for step in range(100):
        sim.step()
        if step % 10 or not sim.contact.count[0]:
            continue
        p, nc = sim.contact_problem(0), int(sim.contact.count[0])
        v = np.linalg.solve(p.A, p.b + p.J.T @ p.impulse + p.J_row.T @ p.row_impulse + p.J_spin.T @ p.spin_impulse)
        np.testing.assert_allclose(v, sim.qvel[0], atol=1e-10)
        couple, over_arm = sim.contact.couple[0, :nc], p.spin_impulse.reshape(-1, 3)
        pushed = sim.contact.impulse[0, :nc, 2] > 1e-9
        arms = np.array([sim.model.geom_friction[sim.contact.geom[0, k]] for k in range(nc)])
        own = pushed & (arms == arms[:, :1]).all((1, 2))  # friction of both geoms alike
        arm = arms[own, 0][:, [2, 2, 1]] / arms[own, 0][:, :1]
        np.testing.assert_allclose(over_arm[own] * arm, couple[own], rtol=1e-9, atol=1e-12)
        turned += np.count_nonzero(np.abs(couple[own]) > 1e-7)
        judged, c = p.residuals(p.impulse, p.row_impulse, p.spin_impulse), sim.certificate
        assert judged["r_con"] <= 1.01e-9 * judged["scale"] + 1.01 * c.r_con[0]
        assert p.residuals(p.impulse, p.row_impulse)["r_con"] > 1e-6 or not np.abs(couple).max() > 1e-6
    assert turned > 20


@pytest.mark.parametrize("solver", CARRIERS)
def test_solvers_solve_it_without_a_simulation(solver):
    sim = Simulation(scene(*BODIES), dtype="float64")
    sim.qvel[:] = 2 * np.random.default_rng(1).standard_normal(sim.model.nv)
    sim.step(60)
    problem = sim.contact_problem(0)
    assert np.abs(problem.spin_impulse).max() > 1e-6
    found = stiction.solve(problem, solver, tolerance=1e-7, max_iterations=5000)
    assert found.converged
    if solver != "sap":  # the convex law is another
        push = problem.J.T @ found.impulse.ravel() + problem.J_spin.T @ found.spin_impulse.ravel()
        step = problem.J.T @ problem.impulse + problem.J_spin.T @ problem.spin_impulse
        np.testing.assert_allclose(push, step, atol=1e-4)
    again = stiction.solve(problem, solver, tolerance=1e-7, guess=found)
    own = again.r_ccp if solver == "sap" else again.r_con
    assert again.iterations <= found.iterations and own <= 2e-7 * again.scale
    assert not len(problem.e_row)
    arrays = {name: getattr(problem, name) for name in ("A", "J", "b", "mu", "e", "R", "J_spin")}
    same = stiction.solve(stiction.ContactProblem.from_primal(**arrays), solver, tolerance=1e-7, max_iterations=5000)
    assert same.converged and same.spin_impulse.shape == found.spin_impulse.shape


def test_one_contact_by_hand():
    """A ball of 1 kg that spins about the normal of the floor, and slides: all friction is against both."""
    radius, mu, arm, free = 0.1, 0.5, 0.04, np.array([0.3, 0, -0.1, 0, 0, 20.0])
    A = np.diag([1, 1, 1, *[0.4 * radius**2] * 3])
    J = np.hstack([np.eye(3), [[0, -radius, 0], [radius, 0, 0], [0, 0, 0]]])
    J_spin = np.vstack([np.zeros((2, 6)), [0, 0, 0, 0, 0, arm]])
    make = stiction.ContactProblem.from_primal
    problem = make(A, J, A @ free, [mu], J_spin=J_spin)
    found = stiction.solve(problem, "canal", tolerance=1e-12)
    assert found.converged and found.spin_impulse.shape == (1, 3)
    push = np.array([*found.impulse[0, :2], found.spin_impulse[0, 2]])
    v = free + np.linalg.solve(A, J.T @ found.impulse[0] + J_spin.T @ found.spin_impulse[0])
    slip = np.array([*(J @ v)[:2], arm * v[5]])
    assert found.impulse[0, 2] == pytest.approx(0.1)  # stops 1 kg at 0.1 m/s
    np.testing.assert_allclose(push, -mu * 0.1 * slip / np.linalg.norm(slip), atol=1e-9)
    assert problem.residuals(found.impulse, None, found.spin_impulse)["r_con"] < 1e-10
    with pytest.raises(ValueError, match="R has tangential compliance"):
        make(A, J, A @ free, [mu], R=[0.1, 0.1, 0.1], J_spin=J_spin)
    with pytest.raises(ValueError, match=r"mu has shape \(1, 2\)"):
        make(A, J, A @ free, [[mu, mu]], J_spin=J_spin)
    with pytest.raises(ValueError, match="J_spin has shape"):
        make(A, J, A @ free, [mu], J_spin=J_spin[:2])
    with pytest.raises(ValueError, match="no contact has couples"):
        make(A, J, A @ free, [mu]).residuals(found.impulse, None, found.spin_impulse)


@pytest.mark.parametrize("spin", [0.0, 3.0])
def test_forces_for_an_acceleration_know_them(spin):
    sim = Simulation(scene(ball()), dtype="float64", solver=SolverOptions(name="canal", tolerance=1e-12))
    sim.qvel[0] = [1, 0, 0, 0, 10, spin]
    sim.step(20)
    before = np.array(sim.qvel)
    qacc = np.array([[0.5, 0, 0, 0, 5.0, -1]]) - np.array([[0, 0, before[0, 2] / H, 0, 0, 0]])
    found, wanted = sim.inverse_dynamics(qacc, "last"), before + H * qacc
    assert found.residual[0] < 1e-8 and np.abs(found.spin_impulse[0]).max() > 1e-5
    sim.qfrc_applied = found.qfrc
    sim.step()
    np.testing.assert_allclose(sim.qvel, wanted, atol=1e-9)
    couple = found.spin_impulse[0][0] * np.array([FRICTION[2], FRICTION[2], FRICTION[1]]) / FRICTION[0]
    np.testing.assert_allclose(sim.contact.couple[0, 0], couple, atol=1e-9)


def test_a_dump_with_them_is_solved_again(tmp_path):
    sim = Simulation(scene(ball()), dtype="float64")
    sim.qvel[0] = [1, 0, 0, 0, 10, 3]
    sim.step(20)
    sim.dump(0, tmp_path / "step.npz")
    again, arrays, _ = stiction.replay.replay(tmp_path / "step.npz")
    assert arrays["problem.spin_impulse"].shape == (3,)
    np.testing.assert_allclose(again.qvel[0], sim.qvel[0], atol=1e-9)


@pytest.mark.parametrize("friction", [(0.0, 0.02, 0.01), (1e-7, 0.02, 0.01), (1.0, 0.0, 0.01), (1.0, 50.0, 50.0)])
def test_odd_numbers_are_survived(friction):
    sim = Simulation(scene(*BODIES, friction=friction), 3)
    sim.qvel[:] = np.random.default_rng(2).standard_normal(sim.qvel.shape) * 3
    sim.step(300)
    assert np.isfinite(sim.qvel).all() and not (sim.status & stiction.Status.NON_FINITE).any()
