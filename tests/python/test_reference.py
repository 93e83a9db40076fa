"""The oracle (host/reference): against MuJoCo where it computes the same, against formulas where MuJoCo does not."""

import os
from pathlib import Path

import numpy as np
import pytest
import stiction

ref = pytest.importorskip("stiction_reference")
mujoco = pytest.importorskip("mujoco")
from stiction.mjmodel_arrays import model_arrays  # noqa: E402
from stiction.mjmodel_features import examine  # noqa: E402

DATA = Path(os.environ.get("STICTION_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
FOLDERS = ("mujoco_menagerie", "gymnasium", "brax", "dm_control", "newton", "mujoco")
FILES = sorted(path for folder in FOLDERS for path in (DATA / folder).rglob("*.xml"))

MIXED = """
<mujoco><option timestep="0.003" gravity="1 -2 -9"/><worldbody>
  <geom type="plane" size="0 0 1" friction="0.4"/>
  <body pos="0 0 1" gravcomp="0.3"><freejoint name="base"/><geom size=".1" mass="2" pos=".02 .01 0"/>
    <site name="s" pos="0 .1 .2"/>
    <body pos=".3 .1 0" euler="20 30 40">
      <joint name="slide" type="slide" axis=".6 0 .8" stiffness="30" springref=".1" ref=".05"/>
      <joint name="hinge" axis="0 1 1" pos=".1 .2 -.1" ref="20" stiffness="5" damping=".7" armature=".02"
             limited="true" range="-80 90" actuatorfrclimited="true" actuatorfrcrange="-5 5"/>
      <geom type="box" size=".1 .05 .2" mass="1.2" euler="10 20 30"/>
      <body pos="0 .2 .3"><joint name="ball" type="ball" pos="-.1 0 .05" damping=".3" armature=".01"/>
        <joint name="tip" type="slide" axis="0 1 0" damping="1"/>
        <geom type="capsule" size=".05 .2" mass=".7" pos="0 0 .1" friction="1.5" priority="1"/></body></body></body>
  <body pos="1 0 0"><joint name="arm" axis="1 0 0" pos="0 0 .2" damping="2"/>
    <geom type="ellipsoid" size=".1 .2 .3" mass="1"/>
    <body pos="0 0 -.5"><joint name="elbow" axis="0 1 0" armature=".1"/>
      <geom size=".1" mass=".5" condim="1"/></body></body>
</worldbody>
<tendon>
  <fixed name="t1" stiffness="40" damping="3" springlength="-.1 .1">
    <joint joint="arm" coef="1"/><joint joint="elbow" coef="-2"/></fixed>
  <fixed name="t2"><joint joint="hinge" coef=".5"/><joint joint="tip" coef="1.5"/></fixed></tendon>
<actuator>
  <general joint="base" gear="1 2 3 4 5 6"/><general joint="ball" gear="1 -2 .5" biastype="affine" biasprm=".1 0 -.02"/>
  <position joint="arm" kp="5" kv=".4" gear="3"/><motor joint="elbow" gear="7" ctrllimited="true" ctrlrange="-.2 .3"/>
  <position tendon="t2" kp="20" kv="1" gear="1.5"/>
  <velocity name="servo" joint="hinge" kv="2" forcelimited="true" forcerange="-3 3"/></actuator>
</mujoco>"""


def converted(m):
    """The oracle's model and whether nothing of the dynamics was left out."""
    found = examine(m, mujoco)
    arrays = model_arrays(m, found, mujoco)
    # MuJoCo takes frames within rounding of the body's or its inertia's for the same.
    frames = mujoco.mjtSameFrame
    at_body, at_inertia = int(frames.mjSAMEFRAME_BODY), int(frames.mjSAMEFRAME_INERTIA)
    same = np.asarray(m.body_sameframe) == at_body
    arrays["body_ipos"][same], arrays["body_iquat"][same] = 0, [1, 0, 0, 0]
    same = np.asarray(m.geom_sameframe) == at_body
    arrays["geom_pos"][same], arrays["geom_quat"][same] = 0, [1, 0, 0, 0]
    same = np.asarray(m.geom_sameframe) == at_inertia
    for name in ("pos", "quat"):
        arrays[f"geom_{name}"][same] = arrays[f"body_i{name}"][arrays["geom_bodyid"][same]]
    return ref.Model(arrays), arrays, not found.unsupported


def random_data(m, seed):
    rng = np.random.default_rng(seed)
    d = mujoco.MjData(m)
    d.qpos[:] = m.qpos0
    mujoco.mj_integratePos(m, d.qpos, 0.7 * rng.standard_normal(m.nv), 1.0)
    d.qvel[:], d.ctrl[:] = rng.standard_normal(m.nv), rng.standard_normal(m.nu)
    d.qfrc_applied[:], d.xfrc_applied[:] = rng.standard_normal(m.nv), rng.standard_normal((m.nbody, 6))
    mujoco.mj_forward(m, d)
    return d


def assert_close(name, got, expected, tolerance):
    got, expected = np.asarray(got).ravel(), np.asarray(expected).ravel()
    assert got.shape == expected.shape, name
    if got.size:
        error = np.abs(got - expected).max() / max(1.0, np.abs(expected).max())
        assert error <= tolerance, f"{name}: {error:.2e} > {tolerance:.0e}"


def check_dynamics(m, model, d):
    poses = ref.fk(model, d.qpos)
    for name in ("xpos", "xquat", "xmat", "xipos", "geom_xpos", "geom_xmat", "site_xpos", "site_xmat"):
        assert_close(name, poses[name], getattr(d, name), 1e-12)
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, M)
    assert_close("M", ref.mass_matrix(model, d.qpos), M, 1e-10)
    assert_close("bias", ref.bias(model, d.qpos, d.qvel), d.qfrc_bias, 1e-9)
    assert_close("passive", ref.passive(model, d.qpos, d.qvel), d.qfrc_passive, 1e-9)
    assert_close("actuator", ref.actuation(model, d.qpos, d.qvel, d.ctrl), d.qfrc_actuator, 1e-9)
    forces = d.qfrc_applied, d.xfrc_applied
    assert_close("qacc", ref.smooth_acceleration(model, d.qpos, d.qvel, d.ctrl, *forces), d.qacc_smooth, 1e-8)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(DATA)))
def test_dynamics_match_mujoco_on_real_models(path):
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        m = mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        pytest.skip("MuJoCo does not load it")
    if not 0 < m.nv <= 120:
        pytest.skip(f"nv = {m.nv}")
    try:
        model, _, complete = converted(m)
    except ValueError as error:
        pytest.skip(f"not importable: {error}")
    if not complete:
        pytest.skip("has features that stiction does not import")
    for seed in range(2):
        check_dynamics(m, model, random_data(m, seed))


def mixed(flags=""):
    return mujoco.MjModel.from_xml_string(MIXED.replace("/><worldbody>", f">{flags}</option><worldbody>", 1))


FLAGS = ("", "gravity", "spring", "damper", "actuation", "clampctrl", "eulerdamp")


@pytest.mark.parametrize("flag", [*FLAGS, "spring damper"])
def test_dynamics_match_mujoco_on_every_joint_actuator_and_tendon(flag):
    disabled = " ".join(f'{name}="disable"' for name in flag.split())
    m = mixed(f"<flag {disabled}/>")
    model, arrays, _ = converted(m)
    assert bool(arrays["disableflags"]) == bool(flag)
    assert arrays["nu"] == m.nu and arrays["ntendon"] == m.ntendon
    for seed in range(10):
        check_dynamics(m, model, random_data(m, seed))


@pytest.mark.parametrize("flag", ["", "eulerdamp", "damper"])
def test_euler_steps_match_mujoco(flag):
    extra = f'{flag}="disable"' if flag else ""
    m = mixed(f'<flag contact="disable" limit="disable" {extra}/>')
    model, _, _ = converted(m)
    d = random_data(m, 3)
    q, v = d.qpos.copy(), d.qvel.copy()
    for _ in range(200):
        step = ref.step(model, q, v, d.ctrl, {}, "euler", m.opt.timestep, 0.2, 1.0, d.qfrc_applied, d.xfrc_applied)
        q, v = step["q"], step["v"]
        mujoco.mj_step(m, d)
    assert_close("qpos", q, d.qpos, 1e-9)
    assert_close("qvel", v, d.qvel, 1e-9)


def contacts_of(d):
    frames = np.array([c.frame.reshape(3, 3)[[1, 2, 0]] for c in d.contact]).reshape(-1, 3, 3)
    return {
        "geom": np.array([c.geom for c in d.contact]).reshape(-1, 2),
        "pos": np.array([c.pos for c in d.contact]).reshape(-1, 3),
        "frame": frames,
        "dist": np.array([c.dist for c in d.contact]),
    }


def test_contact_rows_match_mujoco():
    m = mixed()
    model, _, _ = converted(m)
    seen = 0
    for seed in range(40):
        d = random_data(m, seed)
        d.qpos[2] = 0.1
        mujoco.mj_forward(m, d)
        if not d.ncon:
            continue
        contacts = contacts_of(d)
        problem = ref.assemble(model, d.qpos, d.qvel, d.ctrl, contacts, "euler", m.opt.timestep)
        for i, c in enumerate(d.contact):
            J1, J2 = np.zeros((3, m.nv)), np.zeros((3, m.nv))
            mujoco.mj_jac(m, d, J1, None, c.pos, m.geom_bodyid[c.geom[0]])
            mujoco.mj_jac(m, d, J2, None, c.pos, m.geom_bodyid[c.geom[1]])
            assert_close("J", problem["J"][3 * i : 3 * i + 3], contacts["frame"][i] @ (J2 - J1), 1e-12)
            # MuJoCo keeps friction above 1e-5 and leaves it to condim 1 to ignore it.
            assert problem["mu"][i] == (0 if c.dim == 1 else pytest.approx(c.friction[0]))
            h, dist = m.opt.timestep, c.dist
            assert problem["e"][3 * i + 2] == pytest.approx(dist / h if dist > 0 else max(0.2 * dist / h, -9.81 * h))
            seen += 1
    assert seen > 20


def test_implicit_step_is_the_linearised_end_of_step_force():
    """Joint springs, servos and tendons together: the soft rows, solved, fold into A as stiffness and damping do."""
    m = mixed('<flag contact="disable" limit="disable"/>')
    m.jnt_actfrclimited[:] = 0  # no joint has its tendon's servo: tests/python/test_shared_ranges.py
    model, arrays, _ = converted(m)
    h = m.opt.timestep
    arm, elbow, tip, hinge = (m.jnt_dofadr[m.joint(n).id] for n in ("arm", "elbow", "tip", "hinge"))
    clamped = open_servos = 0
    for seed in range(20):
        d = random_data(m, seed)
        mujoco.mj_forward(m, d)
        free = ref.free_motion(model, d.qpos, d.qvel, d.ctrl, "implicit", h)
        assert free["damping"][arm] == pytest.approx(2 + 9 * 0.4) and free["stiffness"][arm] == pytest.approx(9 * 5)
        problem = ref.assemble(model, d.qpos, d.qvel, d.ctrl, {}, "implicit", h)
        assert set(problem["kind"]) == {3} or not problem["kind"]
        A, b = problem["A"].copy(), problem["b"].copy()
        # The joint's servo, where the end of the step decides whether its range binds.
        bounded = problem["upper"] < 1e20
        held = np.full(len(bounded), np.nan)
        for _ in range(3):  # rows at a bound push with that
            A, b = problem["A"].copy(), problem["b"].copy()
            for J, e, R, push in zip(problem["J_row"], problem["e_row"], problem["R_row"], held, strict=True):
                A += np.outer(J, J) / R * np.isnan(push)
                b += J * (-e / R if np.isnan(push) else push)
            impulse = -(problem["J_row"] @ np.linalg.solve(A, b) + problem["e_row"]) / problem["R_row"]
            low, high = problem["lower"], problem["upper"]
            held = np.where(impulse > high, high, np.where(impulse < low, low, np.nan))
        step = ref.step(model, d.qpos, d.qvel, d.ctrl, {}, "implicit", h)
        solved = ref.solved_velocity(model, d.qpos, step["q"], step["v"])
        assert_close("v", solved, np.linalg.solve(A, b), 1e-9)
        if bounded.any():
            open_servos += 1
            continue
        # By hand: f at (q, v), minus h K v+ and D (v+ - v) of springs, dampers, servos and tendons.
        M = free["M"]
        D, K = np.diag(free["damping"]), np.diag(free["stiffness"])
        length = m.wrap_prm[:2] @ [d.qpos[m.jnt_qposadr[m.wrap_objid[i]]] for i in range(2)]
        t1, t2 = np.zeros(m.nv), np.zeros(m.nv)
        t1[[arm, elbow]], t2[[hinge, tip]] = (1, -2), (0.5, 1.5)
        D += 3 * np.outer(t1, t1)
        K += 40 * (abs(length) > 0.1) * np.outer(t1, t1)
        clamped += abs(d.actuator("servo").force[0]) == 3
        D += 1.5**2 * 1 * np.outer(t2, t2)
        K += 1.5**2 * 20 * np.outer(t2, t2)
        # Coriolis forces at the mean of v and the free motion; the centre of mass of all goes straight.
        smooth, held = d.qfrc_passive + d.qfrc_actuator, d.qvel.copy()
        d.qvel[:] = (held + free["v_free"]) / 2
        mujoco.mj_forward(m, d)
        push = d.qfrc_bias[:3] / m.body_subtreemass[m.jnt_bodyid[0]] + m.opt.gravity
        f, d.qvel[:] = smooth - d.qfrc_bias + M[:, :3] @ push, held
        v = np.linalg.solve(M + h * D + h * h * K, M @ d.qvel + h * (f + D @ d.qvel))
        assert_close("v by hand", solved, v, 1e-9)
    assert 0 < clamped and 0 < open_servos < 10


ROWS = """
<mujoco><compiler autolimits="true" angle="radian"/><option timestep=".01" gravity="0 0 0"/><worldbody>
  <body><joint name="a" axis="0 0 1" range="-1 1"/><geom size=".1" mass="1"/></body>
  <body><joint name="b" axis="0 0 1" frictionloss=".5"/><geom type="box" size=".1 .1 .1" mass="3"/></body>
  <body><joint name="c" type="slide" axis="0 0 1"/><geom size=".1" mass="2" contype="0"/></body>
  <body><joint name="d" type="slide" axis="0 0 1"/><geom size=".1" mass="2" contype="0"/></body></worldbody>
  <tendon><fixed name="t" range="-2 3" frictionloss=".1">
    <joint joint="a" coef="1"/><joint joint="c" coef="2"/></fixed></tendon>
  <equality><joint joint1="c" joint2="d" polycoef=".1 2 .3 0 0"/></equality></mujoco>"""


def test_limit_friction_and_equality_rows():
    m = mujoco.MjModel.from_xml_string(ROWS)
    model, _, _ = converted(m)
    h, zero, inf = 0.01, np.zeros(0), np.inf
    q, v = np.array([0.99, 0, 0.3, 0.2]), np.array([5.0, 0, 0, 0])
    p = ref.assemble(model, q, v, zero, {}, "euler", h)
    assert p["kind"] == [0, 1, 1, 2, 2, 2, 2]
    assert_close("equality", p["J_row"][0], [0, 0, 1, -(2 + 0.6 * 0.2)], 1e-14)
    assert p["e_row"][0] == pytest.approx(-1.0)  # 0.2 (0.3 - 0.512) / h, cut at the recovery speed
    assert list(p["lower"]) == [-inf, -0.005, -0.001, 0, 0, 0, 0]
    assert list(p["upper"]) == [inf, 0.005, 0.001, inf, inf, inf, inf]
    assert_close("limits", p["e_row"][3:], np.array([1.99, 0.01, 0.99 + 0.6 + 2, 3 - 1.59]) / h, 1e-12)
    s = ref.step(model, q, v, zero, {}, "euler", h)
    assert s["converged"] and s["q"][0] == pytest.approx(1.0, abs=1e-9)  # the joint comes to stand at its limit
    for torque, moves in ((0.499, False), (0.7, True)):
        s = ref.step(model, q, 0 * v, zero, {}, "euler", h, qfrc_applied=np.array([0, torque, 0, 0]))
        inertia = ref.mass_matrix(model, q)[1, 1]
        assert s["v"][1] == pytest.approx(h * (torque - 0.5) / inertia if moves else 0, abs=1e-10)
    m.opt.disableflags = sum(int(f) for f in (mujoco.mjtDisableBit.mjDSBL_LIMIT, mujoco.mjtDisableBit.mjDSBL_EQUALITY))
    assert ref.assemble(converted(m)[0], q, v, zero, {}, "euler", h)["kind"] == [1, 1]


def natural_map(A, b, J, e, mu, v, impulse):
    """r_con by its definition, contact by contact."""
    worst = 0
    for i, m in enumerate(mu):
        rows = slice(3 * i, 3 * i + 3)
        w = np.trace(J[rows] @ np.linalg.solve(A, J[rows].T)) / 3
        sigma = J[rows] @ v + e[rows]
        x = impulse[rows] - (sigma + [0, 0, m * np.hypot(*sigma[:2])]) / w
        r = np.hypot(*x[:2])
        if m * r <= -x[2]:
            p = np.zeros(3)
        elif r <= m * x[2]:
            p = x
        else:
            n = (x[2] + m * r) / (1 + m * m)
            p = np.array([*(m * n * x[:2] / r), n])
        worst = max(worst, w * np.linalg.norm(impulse[rows] - p))
    return worst


def test_certificate_matches_its_definition():
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = rng.standard_normal((9, 9))
        A, b, J = X @ X.T + np.eye(9), rng.standard_normal(9), rng.standard_normal((6, 9))
        e, mu = 0.1 * rng.standard_normal(6), np.array([0.3, 0.8])
        problem = {"A": A, "b": b, "J": J, "e": e, "R": np.zeros(6), "mu": mu}
        v, impulse = rng.standard_normal(9), rng.standard_normal(6)
        c = ref.certificate(problem, v, impulse)
        assert c["r_con"] == pytest.approx(natural_map(A, b, J, e, mu, v, impulse), rel=1e-12)
        D = 1 / np.sqrt(np.diag(A))
        size = max(np.linalg.norm(D * b), np.linalg.norm(D * (J.T @ impulse)))
        assert c["r_dyn"] == pytest.approx(np.linalg.norm(D * (A @ v - b - J.T @ impulse)) / size, rel=1e-12)
        assert c["scale"] == pytest.approx(np.abs(J @ np.linalg.solve(A, b)).max(), rel=1e-12)
        s = ref.solve(problem)
        assert s["converged"]
        assert natural_map(A, b, J, e, mu, s["v"], s["impulse"]) <= 1e-10 * c["scale"]


ONE_CONTACT = [  # W, q, mu, Coulomb, convex; rows n, t1, t2
    ([[15, -1, -2], [-1, 14, 1], [-2, 1, 16]], [-1, 2, 3], 0.1,
     [0.065695682898, -0.003678614907, -0.005443070814], [0.087179279122, -0.004897451945, -0.007212297244]),
    ([[0.01344, -9.421e-7, 0.001486], [-9.421e-7, 0.1061, 1.733e-4], [0.001486, 1.733e-4, 0.001442]],
     [-0.1458, -0.2484, -0.1515], 0.6,
     [10.205876055695, 1.931888367688, 5.810798010421], [15.176884257173, 2.071826962683, 8.867307748619]),
]  # fmt: skip


@pytest.mark.parametrize("solver", ["nsgs", "admm"])
@pytest.mark.parametrize("case", range(2))
def test_one_contact_matches_published_solutions(case, solver):
    W, q, mu, coulomb, convex = ONE_CONTACT[case]
    order = [1, 2, 0]
    W, q = np.array(W, float)[np.ix_(order, order)], np.array(q, float)[order]
    for law, expected in (("coulomb", coulomb), ("convex", convex)):
        s = ref.solve_delassus(W, q, np.array([mu]), law, solver, 1e-13)
        assert np.abs(s["impulse"] - np.array(expected)[order]).max() <= 1e-10


PROBLEMS = sorted((DATA / "fclib_problems").rglob("*.hdf5"))


@pytest.mark.skipif(not PROBLEMS, reason="no contact problems")
def test_recorded_contact_problems_are_solved():
    pytest.importorskip("h5py")
    figures = []
    for path in PROBLEMS:
        W, q, mu = stiction.read_fclib(path).values()
        if len(mu) > 80:
            continue
        s = ref.solve_delassus(W, q, mu, "coulomb", "best", 1e-9, sweeps=500)
        c = ref.solve_delassus(W, q, mu, "convex", "admm", 1e-9)
        exact, convex = s["certificate"], c["certificate"]
        figures.append([exact["r_con"] / exact["scale"], convex["r_ccp"] / convex["scale"]])
    worst = np.array(figures).max(axis=0)
    assert len(figures) >= 40
    assert (worst <= 1e-8).all(), worst


def test_two_cubes_need_admm():
    path = DATA / "contactbench/tests/python/data/2cubes_t0.npz"
    if not path.exists():
        pytest.skip("no data")
    data = np.load(path)
    problem = data["G"], data["g"].ravel(), data["mus"]
    for solver, bound in (("admm", 1e-8), ("best", 1e-8)):
        s = ref.solve_delassus(*problem, "coulomb", solver, 1e-9)
        assert s["certificate"]["r_con"] <= bound * s["certificate"]["scale"]


def test_rejects_what_it_cannot_use():
    m = mixed()
    model, arrays, _ = converted(m)
    with pytest.raises(ValueError, match="q: got 3 entries, expected"):
        ref.fk(model, np.zeros(3))
    with pytest.raises(ValueError, match="integrator: got 'rk4'"):
        ref.free_motion(model, m.qpos0, np.zeros(m.nv), np.zeros(m.nu), "rk4", 0.01)
    with pytest.raises(ValueError, match="body_mass"):
        ref.Model({**arrays, "body_mass": np.ones(2)})
