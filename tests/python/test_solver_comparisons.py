"""What solvers are compared with in terms of bodies: steps in NumPy, rules without an exact solve, SubADMM split."""

import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.solvers import consensus, lox, rules, steps  # noqa: E402
from bench.solvers.worlds import WORLDS  # noqa: E402
from bench.step.scenes import SCENES, data_folder  # noqa: E402

MASS, MU, G, H = 2.0, 0.5, 9.81, 0.002
POINT = f"""
<mujoco><option timestep="{H}" cone="elliptic" impratio="10"/><worldbody>
  <geom type="plane" size="9 9 1" friction="{MU} 0 0"/>
  <body pos="0 0 .1">
    <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/>
    <geom type="sphere" size=".1" mass="{MASS}" friction="{MU} 0 0"/></body></worldbody></mujoco>
"""
#: Two fingers of one tree that touch each other and a free cube beside them.
FINGERS = """
<mujoco><option timestep="0.002" cone="elliptic"/><worldbody>
  <geom type="plane" size="9 9 1"/>
  <body pos="0 0 .4"><freejoint/><geom size=".05" mass="1" contype="0" conaffinity="0"/>
    <body pos="-.06 0 0"><joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .031 0 -.25" size=".03" mass=".3"/></body>
    <body pos=".06 0 0"><joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 -.0305 0 -.25" size=".03" mass=".2"/></body>
  </body>
  <body pos="0 .0555 .15"><freejoint/><geom type="box" size=".026 .026 .026" mass=".1"/></body></worldbody></mujoco>
"""


def pushed(rule, force: float, seconds: float = 1.0):
    """A point on a plane under a force along x: where it is in the end, and the impulse (3,) there."""
    model = mujoco.MjModel.from_xml_string(POINT)
    data = mujoco.MjData(model)
    data.qpos[2], data.qfrc_applied[0] = -1e-6, force
    for _ in range(round(seconds / H)):
        step = steps.assembled(model, data)
        impulse = rule(step) if len(step.mu) else np.zeros((0, 3))
        steps.advance(model, data, step.velocity(impulse))
    return data, step.J.T @ impulse.ravel()


@pytest.mark.parametrize("world", ["pinch", "slide"])
@pytest.mark.parametrize("sweeps", [0, 10])
def test_the_soft_rules_are_mujocos(world, sweeps):
    world = WORLDS[world]
    model = world.model()
    model.opt.cone, model.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 10
    model.opt.tolerance, model.opt.iterations, model.opt.noslip_iterations = 1e-14, 300, sweeps
    model.opt.noslip_tolerance = 0
    data, theirs = mujoco.MjData(model), mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = (x[4] for x in world.start(model))
    data.ctrl[:] = world.controls(model, 0)[4]
    moved = 0
    for _ in range(100):
        theirs.qpos[:], theirs.qvel[:], theirs.ctrl[:] = data.qpos, data.qvel, data.ctrl
        mujoco.mj_step(model, theirs)
        step = steps.assembled(model, data)
        v = step.velocity((rules.noslip if sweeps else rules.soft)(step) if len(step.mu) else ())
        np.testing.assert_allclose(v, theirs.qvel, atol=2e-8)
        moved = max(moved, len(step.mu))
        steps.advance(model, data, v)
    assert moved >= 4


def test_springs_creep_by_what_their_drag_lets_through():
    force = 0.5 * MU * MASS * G
    data, impulse = pushed(rules.springs, force)
    np.testing.assert_allclose(data.qvel[0], force * H / (0.2 * MASS), rtol=1e-6)
    np.testing.assert_allclose(impulse[2], MASS * G * H, rtol=1e-6)
    np.testing.assert_allclose(data.qpos[2], -MASS * G * H**2 / (0.1 * MASS), rtol=1e-6)


def test_what_is_soft_creeps_by_its_compliance_and_remedies_end_that():
    force = 0.5 * MU * MASS * G
    model = mujoco.MjModel.from_xml_string(POINT)
    data, _ = pushed(rules.soft, force)
    compliance = steps.assembled(model, data).soft_compliance[0, 0]
    damping = 2 / (0.95 * 0.02)  # 1/s, of solref 0.02 and solimp 0.95
    np.testing.assert_allclose(data.qvel[0], compliance * force / damping, rtol=1e-4)
    anchors = rules.Anchors()
    for rule in (rules.noslip, anchors, steps.exact):
        data, _ = pushed(rule, force)
        assert abs(data.qvel[0]) < 1e-9
    crept = np.linalg.norm(anchors.crept)  # the pull that carries the force
    np.testing.assert_allclose(rules.PULL * crept / H, compliance * force * H, rtol=1e-3)


@pytest.mark.parametrize("name", list(rules.RULES))
def test_what_slides_is_slowed_by_mu_n_and_what_leaves_is_let_go(name):
    early, late = (pushed(rules.RULES[name](), 1.5 * MU * MASS * G, seconds) for seconds in (0.25, 0.5))
    np.testing.assert_allclose(late[0].qvel[0] - early[0].qvel[0], 0.5 * MU * G * 0.25, rtol=0.04)  # convex ones rise
    np.testing.assert_allclose(late[1][:2], [-MU * late[1][2], 0], atol=1e-8)
    if name in ("springs", "exact"):  # the others hop
        np.testing.assert_allclose(late[1][2], MASS * G * H, rtol=1e-3)
    model = mujoco.MjModel.from_xml_string(POINT)
    data = mujoco.MjData(model)
    data.qpos[2], data.qvel[2] = -1e-4, 1
    step = steps.assembled(model, data)
    assert len(step.mu) == 1 and not rules.RULES[name]()(step).any()


def test_friction_on_a_disk_is_the_least_of_its_energy():
    rng = np.random.default_rng(0)
    angle = np.linspace(0, 2 * np.pi, 20_001)
    rim = np.stack([np.cos(angle), np.sin(angle)])
    for _ in range(50):
        half = rng.standard_normal((2, 2))
        W, slip, radius = half @ half.T + 0.1 * np.eye(2), rng.standard_normal(2), rng.uniform(0, 3)
        found = rules.within_disk(W, slip, radius)
        inside = -np.linalg.solve(W, slip)
        if np.linalg.norm(inside) <= radius:
            np.testing.assert_allclose(found, inside, atol=1e-12)
        else:
            energy = 0.5 * np.einsum("ik,ij,jk->k", radius * rim, W, radius * rim) + slip @ (radius * rim)
            assert np.linalg.norm(found) <= radius * (1 + 1e-9)
            assert 0.5 * found @ W @ found + slip @ found <= energy.min() + 1e-12


def touching() -> tuple[mujoco.MjModel, mujoco.MjData, steps.Step]:
    model = mujoco.MjModel.from_xml_string(FINGERS)
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(1).uniform(-0.1, 0.1, model.nv)
    data.qvel[6], data.qvel[7] = -1, 1  # fingers close
    return model, data, steps.assembled(model, data)


def test_splits_have_a_slack_for_each_part_and_the_same_answer():
    model, _, step = touching()
    trees = model.body_treeid[step.bodies]
    assert (trees[:, 0] == trees[:, 1]).any() and (trees[:, 0] != trees[:, 1]).any()  # within a tree and between two
    counts = {split: len(consensus.slots(step, split)[1]) for split in consensus.SPLITS}
    assert counts["body"] > counts["tree"] > counts["contact"] == len(step.mu)
    exact = steps.exact(step)
    assert exact[:, 2].max() > 0
    for split in consensus.SPLITS:
        passes = consensus.Passes(step, consensus.of_mobility(step.mobility), split, relaxation=1.5)
        taken, rest = passes.run(5000, depth=3, levels=(1e-9,))
        assert rest <= 1e-9 and taken[1e-9] <= 5000
        impulse = passes.impulse(passes.y)
        found = step.problem().residuals(impulse)
        assert found["r_con"] <= 1e-9 * found["scale"], split
        np.testing.assert_allclose(step.velocity(impulse), step.velocity(exact), atol=1e-6)
    parts = [consensus.slots(step, split)[0].sum((0, 1)) for split in consensus.SPLITS]
    np.testing.assert_allclose(parts[0], parts[2], atol=1e-12)
    np.testing.assert_allclose(parts[1], parts[2], atol=1e-12)
    cost = {split: consensus.multiplications(step, split) for split in consensus.SPLITS}
    assert cost["contact"][1] > cost["tree"][1] >= cost["body"][1]


@pytest.mark.parametrize("split", consensus.SPLITS)
@pytest.mark.parametrize("force, speed", [(0.5, 0.0), (2.0, 0.0), (0.0, 3.0)])
def test_a_split_pass_finds_stick_slide_and_lift_off(split, force, speed):
    model = mujoco.MjModel.from_xml_string(POINT)
    data = mujoco.MjData(model)
    data.qpos[2], data.qvel[2], data.qfrc_applied[0] = -1e-9, speed, force * MU * MASS * G
    step = steps.assembled(model, data)
    passes = consensus.Passes(step, np.full((1, 3), 0.7 * MASS), split)
    _, rest = passes.run(500, levels=(1e-10,))
    assert rest <= 1e-10
    normal = (MASS * G * H + 2e-10 * MASS / H) * (speed == 0)  # a fifth of the overlap is taken back
    tangent = min(force * MU * MASS * G * H, MU * normal)
    world = step.J.T @ passes.impulse(passes.y).ravel()
    np.testing.assert_allclose(world, [-tangent, 0, normal], atol=1e-8)


def test_the_weights_of_lox_lie_between_those_of_free_and_of_pinned_neighbours():
    model, data, step = touching()
    weights = lox.Weights(model, data, step.A)
    cube = model.nbody - 1
    np.testing.assert_allclose(weights.mobility(cube), np.linalg.inv(weights.inertia(cube)), atol=1e-6)
    for part in weights.parts:
        free, pinned, found = (
            np.linalg.inv(weights.free(part)),
            weights.mobility_of_pinned(part),
            weights.mobility(part),
        )
        exact = weights.twists[part] @ np.linalg.solve(step.A, weights.twists[part].T)
        scale = np.linalg.norm(free)
        for more, less in ((free, exact), (exact, pinned), (free, found), (found, pinned), (found, free / lox.CAP)):
            assert np.linalg.eigvalsh(more - less).min() > -1e-8 * scale
    alone = mujoco.MjModel.from_xml_string(
        '<mujoco><option cone="elliptic"/><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .1"><freejoint/>'
        '<geom type="box" size=".1 .2 .1001" mass="3"/></body></worldbody></mujoco>'
    )
    data = mujoco.MjData(alone)
    step = steps.assembled(alone, data)
    weights, J = lox.Weights(alone, data, step.A), step.J
    W = np.einsum("ij,ji->i", J, np.linalg.solve(step.A, J.T)).reshape(-1, 3)
    found = [weights.of_contact(*c) for c in zip(data.contact.pos, step.frame, step.bodies, strict=True)]
    assert len(found) == 4
    np.testing.assert_allclose(found, W, rtol=1e-6)  # a body without neighbours weighs what it weighs


def test_exact_steps_obey_coulomb():
    _, _, step = touching()
    found = step.problem().residuals(steps.exact(step))
    assert found["r_con"] <= 1e-8 * found["scale"]


def test_the_benches_tabulate(tmp_path, capsys):
    out = tmp_path / "rules.json"
    found = rules.main(
        ["--worlds", "slide", "--rules", "springs", "exact", "--timestep", "0.01", "--envs", "2", "--output", str(out)]
    )
    worst = {rule: max(found["errors"][rule]["slide"]) for rule in ("springs", "exact")}
    assert 0 < worst["exact"] < 0.06 and worst["exact"] < worst["springs"] < 0.2
    assert len(found["errors"]["exact"]["slide"]) == 2
    assert out.exists()
    assert "| exact | " in capsys.readouterr().out
    if not (data_folder() / SCENES["go1"].files[0]).exists():
        pytest.skip("no Go1")
    few = ["--robots", "go1", "--seeds", "1", "--every", "50", "--herds", "8", "--output", str(tmp_path / "out.json")]
    found = consensus.main(few)
    assert found["weights"]["go1"]["states"] > 0
    for depth in consensus.DEPTHS:
        for kind in consensus.KINDS:
            assert found["weights"]["go1"][f"anderson {depth}"][kind]["1e-06"]["never"] == 0
    assert found["splits"]["8"]["contact"]["factor"] > found["splits"]["8"]["body"]["factor"]
    assert "| 8 Go1 | 144 |" in capsys.readouterr().out
