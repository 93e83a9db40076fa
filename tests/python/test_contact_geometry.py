"""Contacts of planes, spheres, capsules and boxes against MuJoCo's, in double, on random poses that overlap.

Where MuJoCo answers another question the comparison says so: a capsule whose axis enters a box gets an approximate
depth there, and two boxes sometimes a deeper axis than the least one. That the depth is the least of all directions is
tested by brute force in tests/collision. STICTION_FULL_TESTS=1: 100,000 poses a pair.
"""

import os

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from stiction import Model, Simulation  # noqa: E402
from stiction.solver_options import SolverOptions  # noqa: E402

POSES = 100_000 if os.environ.get("STICTION_FULL_TESTS") == "1" else 3000
FIRST = {"plane": (0, 0, 1), "sphere": (0.07,), "capsule": (0.04, 0.09), "box": (0.05, 0.08, 0.12)}
SECOND = {"sphere": (0.05,), "capsule": (0.06, 0.07), "box": (0.07, 0.06, 0.09)}
EXACT = [("plane", "sphere"), ("plane", "capsule"), ("plane", "box"), ("sphere", "sphere"), ("sphere", "capsule")]
EXACT += [("sphere", "box"), ("capsule", "capsule")]
PAIRS = [(*pair, static) for pair in EXACT for static in (True, False) if static or pair[0] != "plane"]


def scene(first, second, static):
    def geom(kind, size):
        return f'<geom type="{kind}" size="{" ".join(map(str, size))}" mass="1"/>'

    one, other = geom(first, FIRST[first]), geom(second, SECOND[second])
    one = one if static else f"<body><freejoint/>{one}</body>"
    option = '<option gravity="0 0 0" timestep="1e-6"/>'
    return f"<mujoco>{option}<worldbody>{one}<body><freejoint/>{other}</body></worldbody></mujoco>"


def deepest(geom, dist, normal, pos):
    """(dist, normal from the first geom to the second, position) of the deepest contact."""
    if not len(dist):
        return np.inf, np.full(3, np.nan), np.full(3, np.nan)
    i = int(np.argmin(dist))
    return dist[i], normal[i] * (1 if geom[i][0] < geom[i][1] else -1), pos[i]


def overlapping(first, second, static, seed):
    """Yields (size, qpos, our deepest contact, MuJoCo's) of poses that overlap in one of the two."""
    text = scene(first, second, static)
    model, m = Model.from_mjcf(text), mujoco.MjModel.from_xml_string(text)
    d, rng = mujoco.MjData(m), np.random.default_rng(seed)
    batch = min(POSES, 1000)
    sim = Simulation(model, batch, dtype="float64", num_threads=1, solver=SolverOptions(iterations=0, fallback=False))
    size = min(SECOND[second] + FIRST[first] * (first != "plane"))
    for _ in range(POSES // batch):
        sim.reset()
        for body in range(m.nq // 7):
            quat = rng.standard_normal((batch, 4))
            sim.qpos[:, 7 * body + 3 : 7 * body + 7] = quat / np.linalg.norm(quat, axis=1, keepdims=True)
            sim.qpos[:, 7 * body : 7 * body + 3] = rng.uniform(-0.12, 0.12, (batch, 3))
        qpos, c = sim.qpos.copy(), sim.contact
        sim.forward()
        sim.step()
        for env in range(batch):
            d.qpos[:] = qpos[env]
            mujoco.mj_forward(m, d)
            n, theirs = int(c.count[env]), d.contact
            ours = deepest(c.geom[env, :n], c.dist[env, :n], c.frame[env, :n, 2], c.pos[env, :n])
            theirs = deepest(theirs.geom, theirs.dist, theirs.frame[:, :3], theirs.pos)
            if min(ours[0], theirs[0]) < 0:
                yield size, qpos[env], ours, theirs


@pytest.mark.parametrize(("first", "second", "static"), PAIRS)
def test_deepest_contact_is_mujocos(first, second, static):
    seen, ties, worst = 0, 0, np.zeros(3)
    for size, _, ours, theirs in overlapping(first, second, static, seed=1):
        seen += 1
        # Of more than four corners a body keeps four, and takes those within 1 % of the margin for equally deep.
        if (first, second) == ("plane", "box") and 1e-6 * size < abs(ours[0] - theirs[0]) < 0.01 * SolverOptions.margin:
            ties += 1
            continue
        turned = np.linalg.norm(ours[1] - theirs[1])
        moved = np.linalg.norm(ours[2] - theirs[2]) / size
        worst = np.maximum(worst, [abs(ours[0] - theirs[0]) / size, turned, moved])
    print(
        f"{first}-{second}: {seen} overlaps, depth {worst[0]:.1e} of size, normal {worst[1]:.1e}, place {worst[2]:.1e}"
    )
    assert seen > POSES // 5 and ties < 1e-3 * seen
    assert worst[0] <= 1e-6 and worst[1] <= 1e-6 and worst[2] <= 1e-6


def axis_meets_box(qpos, static):
    """Whether the capsule's axis comes within 1 % of its radius of the box."""
    radius, half = FIRST["capsule"]
    box = np.array(SECOND["box"]) + 0.01 * radius
    poses = [(np.zeros(3), np.array([1.0, 0, 0, 0]))] * static + [(q[:3], q[3:]) for q in qpos.reshape(-1, 7)]
    R, p = [np.zeros(9), np.zeros(9)], [pose[0] for pose in poses]
    for matrix, (_, quat) in zip(R, poses, strict=True):
        mujoco.mju_quat2Mat(matrix, quat)
    capsule, to_box = R[0].reshape(3, 3), R[1].reshape(3, 3).T
    points = p[0] + np.linspace(-half, half, 200)[:, None] * capsule[:, 2]
    return bool(np.any(np.all(np.abs((points - p[1]) @ to_box.T) < box, axis=1)))


@pytest.mark.parametrize("static", [True, False])
def test_capsule_beside_box_is_mujocos_and_inside_it_no_shallower(static):
    outside, inside, worst, shallower = 0, 0, 0.0, 0.0
    for size, qpos, ours, theirs in overlapping("capsule", "box", static, seed=2):
        if axis_meets_box(qpos, static):
            inside += 1
            shallower = max(shallower, (ours[0] - theirs[0]) / size)
        else:
            outside += 1
            worst = max(worst, abs(ours[0] - theirs[0]) / size, 1e-3 * np.linalg.norm(ours[1] - theirs[1]))
    print(f"capsule-box: {outside} beside, depth {worst:.1e} of size; {inside} inside, shallower by {shallower:.1e}")
    assert outside > POSES // 20 and inside > POSES // 20
    assert worst <= 1e-6 and shallower <= 1e-6


@pytest.mark.parametrize("static", [True, False])
def test_boxes_overlap_as_mujocos_or_less(static):
    """MuJoCo prefers faces to edges that are a little less deep: ours is the least overlap of all axes."""
    found = [(ours[0] - theirs[0]) / size for size, _, ours, theirs in overlapping("box", "box", static, seed=3)]
    same = np.abs(found) <= 1e-6
    print(f"box-box: {len(found)} overlaps, {same.mean():.3f} the same, others shallower by at most {max(found):.1e}")
    assert len(found) > POSES // 5 and same.mean() > 0.8
    assert min(found) >= -1e-6 and max(found) <= 0.2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("clear", [1e-4, 1e-3, 3e-3])
def test_a_hull_that_is_pressed_against_walls_is_a_box(clear, dtype):
    """20 cm long, between floor, ceiling and walls, under a torque that would turn it by 0.1 rad in a step."""
    V = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.05, 0.05) for z in (-0.05, 0.05))
    far = 0.05 + clear + 0.02
    walls = "".join(
        f'<geom type="box" size="2 {sy} {sz}" pos="0 {y} {z}" friction=".3"/>'
        for sy, sz, y, z in ((0.2, 0.02, 0, -far), (0.2, 0.02, 0, far), (0.02, 0.2, -far, 0), (0.02, 0.2, far, 0))
    )
    ends = []
    for geom in ('type="mesh" mesh="m"', 'type="box" size=".1 .05 .05"'):
        body = f'<body><freejoint/><geom {geom} mass="1" friction=".3"/></body>'
        xml = f'<mujoco><asset><mesh name="m" vertex="{V}"/></asset><worldbody>{walls}{body}</worldbody></mujoco>'
        sim = Simulation(Model.from_mjcf(xml), 1, dtype=dtype, timestep=0.01)
        deepest = 0.0
        for _ in range(50):
            sim.xfrc_applied[0, 1] = 3.8, -10.5, -8.3, -7.3, 5.4, 3.4
            sim.step()
            deepest = max(deepest, float(sim.certificate.penetration[0]))
        assert deepest < max(5e-5, 0.2 * clear)
        ends.append(np.array(sim.qpos[0, :3]))
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-4)
