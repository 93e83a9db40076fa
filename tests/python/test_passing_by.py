"""Open contacts act where the ways of two bodies meet: what passes an edge feels nothing, what hits it does."""

import mujoco
import numpy as np
import pytest
from stiction import Model, Simulation

CUBE = " ".join(f"{x} {y} {z}" for x in (-0.02, 0.02) for y in (-0.02, 0.02) for z in (-0.02, 0.02))
#: A geom, and how far it reaches to the side.   m
KINDS = {
    "sphere": ('type="sphere" size=".02"', 0.02),
    "capsule": ('type="capsule" size=".01 .01"', 0.01),
    "box": ('type="box" size=".02 .02 .02"', 0.02),
    "cylinder": ('type="cylinder" size=".02 .02"', 0.02),
    "ellipsoid": ('type="ellipsoid" size=".03 .02 .02"', 0.03),
    "mesh": ('type="mesh" mesh="cube"', 0.02),
}
BLOCKS = {
    "fixed": '<geom type="box" size=".5 .5 .5" pos="0 0 -.5"/>',
    "free": '<body pos="0 0 -.5"><freejoint/><geom type="box" size=".5 .5 .5"/></body>',
}


def fall_past(kind, block, h, speed, clear, dtype="float32", spin=0):
    """Velocities at every step of 32 bodies, each a part of a step further, that fall `clear` (m) past an edge."""
    geom, side = KINDS[kind]
    xml = f"""<mujoco><option timestep="{h}" gravity="0 0 0"/><asset><mesh name="cube" vertex="{CUBE}"/></asset>
      <worldbody><body name="thrown"><freejoint/><geom {geom}/></body>{BLOCKS[block]}</worldbody></mujoco>"""
    sim = Simulation(Model.from_mjcf(xml), 32, dtype=dtype)
    sim.qpos[:, 0] = 0.5 + side + clear
    sim.qpos[:, 2] = 0.2 + np.arange(32) / 32 * speed * h
    sim.qvel[:, 2], sim.qvel[:, 3:6] = -speed, spin * np.array([0.48, 0.6, 0.64])
    velocities = []
    for _ in range(int(0.5 / (speed * h)) + 2):
        sim.step()
        velocities.append(np.array(sim.qvel))
    return np.array(velocities), sim


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("speed", "h", "clear"), [(3, 5e-3, 1e-3), (10, 2e-3, 2e-3), (10, 1e-2, 1e-2), (30, 1e-2, 1e-2)]
)
def test_what_passes_an_edge_feels_nothing(kind, block, speed, h, clear):
    velocities, sim = fall_past(kind, block, h, speed, clear)
    thrown = np.zeros(velocities.shape[2])
    thrown[2] = -speed
    assert np.abs(velocities - thrown).max() < 1e-5 * speed
    assert not sim.status.any()


@pytest.mark.parametrize("part", [1 / 100, 1 / 300, 1 / 1000, 1 / 2500])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("speed", "h"), [(5, 2e-3), (10, 1e-2)])
def test_what_passes_an_edge_by_little_feels_nothing(kind, speed, h, part):
    """By parts of the way of a step: 4 um to 1 mm."""
    velocities, _ = fall_past(kind, "fixed", h, speed, part * speed * h)
    assert np.abs(velocities[-1] - velocities[0]).max() < 1e-5 * speed


@pytest.mark.parametrize("spin", [30, 100])
@pytest.mark.parametrize(("speed", "h", "clear"), [(10, 5e-3, 5e-3), (3, 1e-2, 1e-3)])
def test_a_ball_that_spins_passes_an_edge(spin, speed, h, clear):
    """Its turn brings no point of it nearer."""
    velocities, _ = fall_past("sphere", "fixed", h, speed, clear, spin=spin)
    changes = np.abs(velocities[-1] - velocities[0])
    assert changes[:, :3].max() < 1e-5 * speed and changes[:, 3:].max() < 1e-5 * spin


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("speed", "h"), [(3, 5e-3), (10, 2e-3), (10, 1e-2)])
def test_what_hits_an_edge_is_turned_away(kind, speed, h):
    """By 4 mm that are in its way; nothing gets further in than that, or through."""
    velocities, sim = fall_past(kind, "fixed", h, speed, -4e-3)
    assert (np.abs(velocities[-1] - velocities[0]).max(-1) > 0.1).all()
    assert sim.certificate.penetration.max() < 4e-3


def test_a_pendulum_swings_past_a_corner():
    """A turning body keeps the room that its turning takes: no blow where its arc clears the corner, else one."""
    for height, hits in ((0.95, False), (1.06, True)):
        xml = f"""<mujoco><option timestep="5e-3" gravity="0 0 0"/><worldbody>
          <geom type="box" size=".3 .3 {height / 2}" pos="0 0 {-2 + height / 2}"/>
          <body><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.94" size=".02"/></body>
          </worldbody></mujoco>"""
        sim = Simulation(Model.from_mjcf(xml), 16)
        sim.qpos[:, 0], sim.qvel[:, 0] = 1.2 + 0.1 * np.arange(16) / 16, -20
        sim.step(100)
        assert (np.abs(sim.qvel[:, 0] + 20) > 1e-3).all() == hits


@pytest.mark.parametrize("gap", [0.0098, 0.0102, 0.012, 0.0138])
def test_the_corner_of_a_cube_that_turns_over_a_floor_is_not_missed(gap):
    """It comes down by a tenth of a face's diagonal, 14 mm; half an edge, 10 mm, says nothing of it."""
    box = '<geom type="box" size="1 1 .1" pos="0 0 -.1"/>'
    cube = f'<body pos="0 0 {0.1 + gap}"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    option = '<option timestep=".005" gravity="0 0 0"/>'
    sim = Simulation(
        Model.from_mjcf(f"<mujoco>{option}<worldbody>{box}{cube}</worldbody></mujoco>"), 1, dtype="float64"
    )
    sim.qvel[0, 3:] = 20 * np.array([1, 1, 0]) / np.sqrt(2)
    sim.step()
    turned = np.empty(9)
    mujoco.mju_quat2Mat(turned, np.asarray(sim.qpos[0, 3:], float))
    assert sim.qpos[0, 2] - 0.1 * np.abs(turned[6:]).sum() > 0


POSTS = {
    "round": ('type="cylinder" size=".06 .3"', 0.06),
    "ball": ('type="sphere" size=".06"', 0.06),
    "edge": ('type="box" size=".06 .06 .3" euler="0 0 45"', 0.06 * np.sqrt(2)),
}


@pytest.mark.parametrize("stands", ["fixed", "free"])
@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("kind", ["box", "cylinder", "ellipsoid"])
@pytest.mark.parametrize(("speed", "h", "clear"), [(10, 1e-2, 1e-2), (5, 1e-2, 1e-3), (10, 5e-3, 3e-3)])
def test_what_passes_a_post_feels_nothing(kind, post, stands, speed, h, clear):
    """Nor does the middle of what flies by more than its own size in a step, with the post's surface beside it."""
    size, side = {"box": (".04 .04 .05", 0.04), "cylinder": (".04 .05", 0.04), "ellipsoid": (".04 .04 .07", 0.04)}[kind]
    geom, reach = POSTS[post]
    xml = f"""<mujoco><option timestep="{h}" gravity="0 0 0"/><worldbody>
      <body><freejoint/><geom type="{kind}" size="{size}"/></body>
      <body>{"<freejoint/>" if stands == "free" else ""}<geom {geom}/></body></worldbody></mujoco>"""
    sim = Simulation(Model.from_mjcf(xml), 32)
    sim.qpos[:, 0], sim.qpos[:, 1] = -0.4 - np.arange(32) / 32 * speed * h, reach + side + clear
    sim.qvel[:, 0] = speed
    before = np.array(sim.qvel)
    sim.step(int(0.9 / (speed * h)))
    assert np.abs(np.array(sim.qvel) - before).max() < 1e-5 * speed and not sim.status.any()


@pytest.mark.parametrize(("speed", "h"), [(300, 1e-2), (1000, 2e-3), (1000, 1e-2)])
@pytest.mark.parametrize("beside", ["post", "blade"])
def test_a_blade_turns_past_what_it_cannot_reach(beside, speed, h):
    """By radians a step: its tip, straight on, would be in what stands 5 mm beyond its circle."""
    blade = '<geom type="box" size=".05 .006 .002" mass=".005"/>'
    other = {
        "post": '<geom type="box" size=".03 .05 .05" pos=".0855 0 0"/>',
        "blade": f'<body pos=".106 0 0"><joint axis="0 0 1"/>{blade}</body>',
    }[beside]
    xml = f"""<mujoco><option timestep="{h}" gravity="0 0 0"/><worldbody>
      <body><joint axis="0 0 1"/>{blade}</body>{other}</worldbody></mujoco>"""
    sim = Simulation(Model.from_mjcf(xml), 16)
    sim.qpos[:, 0], sim.qvel[:] = np.arange(16) * 0.2, speed
    sim.step(500)
    np.testing.assert_allclose(sim.qvel, speed, rtol=1e-4)
    assert not sim.status.any()


@pytest.mark.parametrize(("speed", "h"), [(300, 2e-3), (300, 1e-2)])
def test_a_blade_is_stopped_by_what_it_reaches(speed, h):
    blade = '<geom type="box" size=".05 .006 .002" mass=".005"/>'
    xml = f"""<mujoco><option timestep="{h}" gravity="0 0 0"/><worldbody>
      <body><joint axis="0 0 1"/>{blade}</body>
      <geom type="box" size=".03 .05 .05" pos=".07 0 0"/></worldbody></mujoco>"""
    sim = Simulation(Model.from_mjcf(xml), 16)
    sim.qpos[:, 0], sim.qvel[:] = np.pi / 2 + np.linspace(-0.3, 0.3, 16), speed
    sim.step(100)
    assert np.abs(sim.qvel).max() < 1e-2 * speed
    assert np.abs(np.cos(sim.qpos)).max() * 0.05 < 0.042


SLAB = " ".join(f"{x} {y} {z}" for x in (-2, 2) for y in (-2, 2) for z in (-1, 0))
FLOORS = {"plane": 'type="plane" size="5 5 1"', "box": 'type="box" size="2 2 .5" pos="0 0 -.5"'}
FLOORS |= {"mesh": 'type="mesh" mesh="slab"'}
WHIRLED = {
    "box": ('type="box" size=".05 .03 .02"', np.sqrt(38) / 100),
    "capsule": ('type="capsule" size=".004 .07"', 0.074),
    "cylinder": ('type="cylinder" size=".03 .05"', np.hypot(0.03, 0.05)),
    "mesh": ('type="mesh" mesh="cube"', 0.02 * np.sqrt(3)),
}


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("kind", WHIRLED)
@pytest.mark.parametrize("spin", [30, 60, 120, 250])
def test_what_whirls_above_a_floor_feels_nothing(kind, floor, spin):
    """Until a point of it may touch, at steps of 10 ms: straight on, its ends would be deep in the floor."""
    geom, radius = WHIRLED[kind]
    h, n, rng = 1e-2, 64, np.random.default_rng(0)
    xml = f"""<mujoco><option timestep="{h}" gravity="0 0 0"/><asset><mesh name="cube" vertex="{CUBE}"/>
      <mesh name="slab" vertex="{SLAB}"/></asset>
      <worldbody><geom {FLOORS[floor]}/><body><freejoint/><geom {geom} mass="1"/></body></worldbody></mujoco>"""
    sim = Simulation(Model.from_mjcf(xml), n)
    q, w = rng.standard_normal((n, 4)), rng.standard_normal((n, 3))
    sim.qpos[:, 2], sim.qvel[:, 2] = radius + 0.1 + rng.uniform(0, h, n), -1
    sim.qpos[:, 3:] = q / np.linalg.norm(q, axis=1, keepdims=True)
    sim.qvel[:, 3:] = spin * w / np.linalg.norm(w, axis=1, keepdims=True)
    for _ in range(8):
        sim.step()
        np.testing.assert_allclose(sim.qvel[:, 2], -1, rtol=1e-5)
    sim.step(12)
    assert (sim.qvel[:, 2] > -1 + 1e-3).all()  # then all of them hit it


@pytest.mark.parametrize("kind", ["sphere", "capsule", "cylinder"])
@pytest.mark.parametrize("spin", [2, 10, 20, 50, 100])
@pytest.mark.parametrize("h", [2e-3, 5e-3, 1e-2])
def test_what_spins_about_its_axis_passes_a_small_ball(kind, spin, h):
    """2 mm below, at 15 m/s: the surface is where it was without the spin."""
    geom = {"sphere": 'size=".05"'}.get(kind, f'type="{kind}" size=".05 .05" euler="0 90 0"')
    xml = f"""<mujoco><option timestep="{h}" gravity="0 0 0"/><worldbody><geom pos="0 0 -.062" size=".01"/>
      <body pos="-1.03 0 0"><freejoint/><geom {geom} mass="1"/></body></worldbody></mujoco>"""
    sim = Simulation(Model.from_mjcf(xml), 1)
    thrown = np.array([15.0, 0, 0, spin, 0, 0])
    sim.qvel[0] = thrown
    sim.step(round(2.2 / 15 / h))
    np.testing.assert_allclose(sim.qvel[0], thrown, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("h", [2e-3, 5e-3, 1e-2])
def test_balls_that_spin_pass_each_other(h):
    """64 pairs with 2 mm between them at up to 8 m/s."""
    balls = '<body><freejoint/><geom size=".03" mass=".2"/></body><body><freejoint/><geom size=".02" mass=".1"/></body>'
    xml = f'<mujoco><option timestep="{h}" gravity="0 0 0"/><worldbody>{balls}</worldbody></mujoco>'
    sim, rng = Simulation(Model.from_mjcf(xml), 64), np.random.default_rng(0)
    sim.qpos[:, 0], sim.qpos[:, 8] = -rng.uniform(0.2, 0.4, 64), 0.052
    sim.qvel[:, 0] = rng.uniform(2, 8, 64)
    sim.qvel[:, 3:6], sim.qvel[:, 9:12] = rng.normal(size=(2, 64, 3)) * 15
    thrown = np.array(sim.qvel)
    sim.step(round(0.3 / h))
    np.testing.assert_allclose(sim.qvel, thrown, rtol=1e-4, atol=1e-4)


def swing_past(beside, stands, speed, h, clear):
    """Speeds of 32 blades, each a part of a step further, whose tip swings `clear` (m) past what stands there."""
    geom, side = KINDS[beside]
    place = 0.01 * np.hypot(15, 1) + clear + side
    other = {
        "fixed": f'<geom {geom} pos="{place} 0 0"/>',
        "free": f'<body pos="{place} 0 0"><freejoint/><geom {geom} mass="1"/></body>',
    }[stands]
    xml = f"""<mujoco><option timestep="{h}" gravity="0 0 0"/><asset><mesh name="cube" vertex="{CUBE}"/></asset>
      <worldbody>{other}<body><joint axis="0 0 1"/><geom type="box" size=".15 .01 .005" mass=".1"/></body>
      </worldbody></mujoco>"""
    sim = Simulation(Model.from_mjcf(xml), 32)
    sim.qpos[:, -1], sim.qvel[:, -1] = 0.5 + np.arange(32) / 32 * speed * h, -speed
    deepest = 0.0
    for _ in range(int(1 / (speed * h))):
        sim.step()
        deepest = max(deepest, sim.certificate.penetration.max())
    return np.array(sim.qvel[:, -1]), deepest


@pytest.mark.parametrize("stands", ["fixed", "free"])
@pytest.mark.parametrize("beside", KINDS)
@pytest.mark.parametrize(("speed", "h"), [(30, 5e-3), (30, 2e-3), (10, 1e-2), (10, 5e-3), (5, 1e-2), (50, 1e-2)])
@pytest.mark.parametrize("clear", [4e-4, 1e-3, 3e-3])
def test_a_tip_swings_past_what_it_does_not_touch(beside, stands, speed, h, clear):
    """By 0.05 to 0.5 rad a step: straight on it would go 0.2 to 20 mm further out."""
    speeds, _ = swing_past(beside, stands, speed, h, clear)
    np.testing.assert_allclose(speeds, -speed, rtol=1e-5)


@pytest.mark.parametrize("beside", KINDS)
@pytest.mark.parametrize(("speed", "h"), [(30, 5e-3), (30, 2e-3), (10, 1e-2), (10, 5e-3), (5, 1e-2)])
def test_a_tip_hits_what_it_touches(beside, speed, h):
    """By 1 mm."""
    speeds, deepest = swing_past(beside, "fixed", speed, h, -1e-3)
    assert (np.abs(speeds + speed) > 0.1 * speed).all()
    assert deepest < 1e-3


@pytest.mark.parametrize("clear", [1e-3, 2e-3])
@pytest.mark.parametrize("stands", ["fixed", "free"])
@pytest.mark.parametrize(("spin", "speed", "h"), [(20, 1, 5e-3), (10, 5, 5e-3), (20, 2, 1e-2), (40, 1, 2e-3)])
def test_a_box_that_spins_flies_past_another(spin, speed, h, stands, clear):
    """Its ball of corners is that far above the other's face."""
    other = {
        "fixed": '<geom type="box" size=".1 .1 .1"/>',
        "free": '<body><freejoint/><geom type="box" size=".1 .1 .1"/></body>',
    }[stands]
    xml = f"""<mujoco><option timestep="{h}" gravity="0 0 0"/><worldbody>
      <body><freejoint/><geom type="box" size=".05 .03 .02"/></body>{other}</worldbody></mujoco>"""
    n, rng = 64, np.random.default_rng(1)
    sim = Simulation(Model.from_mjcf(xml), n)
    q, w = rng.standard_normal((n, 4)), rng.standard_normal((n, 3))
    sim.qpos[:, 0], sim.qpos[:, 2] = -0.3 + rng.uniform(0, speed * h, n), 0.1 + 0.01 * np.sqrt(38) + clear
    sim.qpos[:, 3:7] = q / np.linalg.norm(q, axis=1, keepdims=True)
    sim.qvel[:, 0], sim.qvel[:, 3:6] = speed, spin * w / np.linalg.norm(w, axis=1, keepdims=True)
    sim.step(int(0.6 / (speed * h)))
    assert np.abs(sim.qvel[:, 1:3]).max() < 1e-4 * speed


BALL = '<body><freejoint/><geom size=".02" mass="1000" contype="1" conaffinity="1"/></body>'


def swinging_arm(h, ball):
    """A planar arm of three links, of which the last one touches, in 64 states, and a ball to be placed."""
    xml = f"""<mujoco><option timestep="{h}" gravity="0 0 0"/>
      <default><geom contype="0" conaffinity="0" mass="1"/><joint axis="0 0 1"/></default><worldbody>
      <body><joint/><geom type="capsule" size=".02" fromto="0 0 0 .25 0 0"/>
        <body pos=".25 0 0"><joint/><geom type="capsule" size=".02" fromto="0 0 0 .2 0 0"/>
          <body pos=".2 0 0"><joint/><geom type="capsule" size=".02" fromto=".05 0 0 .15 0 0" contype="1"/></body>
      </body></body>{ball}</worldbody></mujoco>"""
    model = Model.from_mjcf(xml)
    sim, rng = Simulation(model, 64), np.random.default_rng(3)
    sim.qpos[:, :3], sim.qvel[:, :3] = rng.uniform(-2, 2, (64, 3)), rng.uniform(-8, 8, (64, 3))
    return sim, model.mjmodel


@pytest.mark.parametrize(("clear", "hits"), [(1e-3, False), (-2e-3, True)])
@pytest.mark.parametrize("h", [2e-3, 5e-3, 1e-2])
def test_an_arm_of_several_joints_swings_past_a_ball(h, clear, hits):
    """Which is that far outside of the way of its tip in the middle of the sixth of eight steps."""
    alone, m = swinging_arm(h, "")
    path = [np.array(alone.qpos)]
    for _ in range(8):
        alone.step()
        path.append(np.array(alone.qpos))
    sim, with_ball = swinging_arm(h, BALL)
    data, nearest = mujoco.MjData(with_ball), np.full(64, np.inf)

    def at(env, step, part):
        data.qpos[:3] = path[step][env] + part * (path[step + 1][env] - path[step][env])
        mujoco.mj_kinematics(with_ball, data)
        return data.geom_xpos[2] + 0.05 * data.geom_xmat[2].reshape(3, 3)[:, 2]

    for env in range(64):
        one, two, three = (at(env, 5, part) for part in (0.49, 0.51, 0.5))
        way, link = two - one, three - data.geom_xpos[2]
        outside = link - way * (link @ way) / (way @ way)
        sim.qpos[env, 3:6] = data.qpos[3:6] = three + outside / np.linalg.norm(outside) * (0.04 + clear)
        for step in range(8):
            for part in np.arange(0, 1, 0.05):
                at(env, step, part)
                nearest[env] = min(nearest[env], mujoco.mj_geomDistance(with_ball, data, 2, 3, 1, None))
    there = nearest < -1e-3 if hits else nearest > 5e-4  # of some the link itself comes by
    assert there.sum() > 16
    sim.step(8)
    changed = np.abs(np.array(sim.qvel[:, :3]) - alone.qvel).max(1)[there]
    assert (changed > 0.1).all() if hits else changed.max() < 1e-4
