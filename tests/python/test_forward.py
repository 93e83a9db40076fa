"""`Simulation.forward`: contacts of the present state without a step, and no state changes."""

from dataclasses import fields

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from conftest import is_emulated  # noqa: E402
from model_sources import DATA, MENAGERIE  # noqa: E402
from scenes import MIXED  # noqa: E402
from stiction import Model, Simulation, Status  # noqa: E402
from stiction.registration import asset_path  # noqa: E402
from stiction.simulation_state import SimulationState  # noqa: E402

#: Balls above a plane.
BALLS = """
<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="0 0 1"/>
  <body name="a" pos="0 0 .5"><freejoint/><geom name="a" type="sphere" size=".1" mass="1"/></body>
  <body name="b" pos="1 0 .5"><freejoint/><geom name="b" type="sphere" size=".1" mass="1"/></body>
</worldbody></mujoco>"""
#: One of them on the floor, and a box that a mocap body leads.
LED = BALLS.replace('pos="0 0 .5"', 'pos="0 0 .1"').replace(
    "</worldbody>",
    """<body name="lead" mocap="true" pos=".5 0 .2"/>
    <body name="c" pos=".5 0 .2"><freejoint/><geom type="box" size=".05 .05 .05" mass="1"/></body>
    </worldbody><equality><weld body1="lead" body2="c"/></equality>""",
)
CONTACT = ("geom", "pos", "frame", "dist", "active", "count")


@pytest.fixture(scope="module")
def balls():
    return Model.from_mjcf(BALLS)


def contacts(sim):
    return {name: np.array(getattr(sim.contact, name)) for name in CONTACT}


def everything(sim):
    state = sim.get_state()
    found = {f.name: getattr(state, f.name) for f in fields(SimulationState)} | contacts(sim)
    found |= {name: np.array(getattr(sim, name)) for name in ("status", "net_contact_force", "xpos", "body_linvel")}
    found |= {
        name: np.array(getattr(sim.certificate, name)) for name in ("r_con", "scale", "penetration", "iterations")
    }
    return found | {"impulse": np.array(sim.contact.impulse)}


def started(model, dtype="float32", per_env=(), num_envs=20, seed=3):
    sim = Simulation(model, num_envs, dtype=dtype, per_env=per_env, num_threads=2)
    rng = np.random.default_rng(seed)
    sim.qvel[:] = 0.3 * rng.standard_normal(sim.qvel.shape)
    for name in per_env:
        getattr(sim.params, name)[:] *= rng.uniform(0.9, 1.1, getattr(sim.params, name).shape)
    return sim


@pytest.mark.parametrize("per_env", [(), ("geom_size", "body_mass", "gravity")], ids=["shared", "per env"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("model", ["mixed", "quadruped", "led"])
def test_the_next_step_gives_the_same_bits_and_meets_those_contacts(model, dtype, per_env):
    model = Model.from_mjcf({"mixed": MIXED, "led": LED, "quadruped": asset_path("quadruped.xml")}[model])
    asked, other = (started(model, dtype, per_env, 10 if is_emulated() else 20) for _ in range(2))
    for _ in range(4):
        for sim in (asked, other):
            sim.step(25)
            sim.mocap_pos[:, :, 0] += 0.1
        before = everything(other)
        asked.forward()
        after = everything(asked)
        for name in ("qpos", "qvel", "time", "records", "status", "r_con", "scale", "iterations"):
            np.testing.assert_array_equal(after[name], before[name], name)
        assert not after["impulse"].any() and not after["net_contact_force"].any()
        asked.step(), other.step()
        met, same = everything(asked), everything(other)
        for name, values in same.items():
            np.testing.assert_array_equal(met[name], values, name)
        for name in (*CONTACT, "penetration"):
            np.testing.assert_array_equal(after[name], met[name], name)
    assert met["count"].max() > 0


def test_written_positions_collide_or_not(balls):
    sim = Simulation(balls, 3)
    sim.qpos[0, 2] = 0.08  # into the floor
    sim.qpos[1, 7] = 0.15  # into the other
    sim.forward()
    np.testing.assert_allclose(sim.certificate.penetration, (0.02, 0.05, 0), atol=1e-6)
    c = sim.contact
    assert c.count.tolist() == [1, 1, 0] and not c.impulse.any() and c.geom[1, 0].tolist() == [1, 2]
    np.testing.assert_allclose(c.dist[:2, 0], (-0.02, -0.05), atol=1e-6)
    np.testing.assert_allclose(c.frame[1, 0, 2], (1, 0, 0), atol=1e-6)
    sim.qpos[:2] = sim.qpos[2]
    sim.forward()
    assert not c.count.any() and not sim.certificate.penetration.any() and (c.geom == -1).all()
    assert not sim.time.any() and not sim.status.any()


def test_parameters_per_environment_collide_by_their_own(balls):
    sim = Simulation(balls, 3, per_env=("geom_size",))
    sim.params.geom_size[1, 1, 0] = 0.6
    sim.forward()
    np.testing.assert_allclose(sim.certificate.penetration, (0, 0.1, 0), atol=1e-6)


@pytest.mark.parametrize("envs", [[1, 3], slice(1, 4, 2), np.array([0, 1, 0, 1], bool)])
def test_others_keep_the_contacts_of_their_step(balls, envs):
    sim = Simulation(balls, 4)
    sim.qpos[:, 2] = 0.1
    sim.step(20)
    kept = everything(sim)
    sim.qpos[:, 2] = 0.07
    sim.forward(envs)
    now = everything(sim)
    assert (sim.contact.impulse[0, 0, 2] > 0) and not sim.contact.impulse[[1, 3]].any()
    for name in (*CONTACT, "impulse", "net_contact_force", "penetration"):
        np.testing.assert_array_equal(now[name][[0, 2]], kept[name][[0, 2]])
    assert now["net_contact_force"][0, 1, 2] > 0 and not now["net_contact_force"][[1, 3]].any()
    np.testing.assert_allclose(sim.certificate.penetration[[1, 3]], 0.03, atol=1e-6)
    np.testing.assert_allclose(sim.xpos[:, 1, 2], 0.07, atol=1e-6)
    with pytest.raises(ValueError, match="envs has indices"):
        sim.forward([7])


def test_contacts_first_read_after_forward_are_those_it_found(balls):
    sim = Simulation(balls, 4)
    sim.qpos[:, 2] = 0.1
    sim.step(20)
    sim.qpos[1, 2] = 1.0
    sim.forward([1])
    sim.reset([2])
    assert sim.contact.count.tolist() == [1, 0, 0, 1] and sim.contact.impulse[0, 0, 2] > 0
    sim.forward()
    sim.step()
    assert sim.contact.count.tolist() == [1, 0, 0, 1] and sim.contact.impulse[0, 0, 2] > 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "where", "value"), [
    ("qpos", np.s_[1, 3:7], 0), ("qpos", np.s_[1, 2], np.nan), ("qvel", np.s_[1, 8], np.inf),
    ("xfrc_applied", np.s_[1, 1, 0], np.nan),
])  # fmt: skip
def test_what_no_step_begins_with_is_flagged(balls, dtype, name, where, value):
    sim = Simulation(balls, 3, dtype=dtype)
    good = sim.get_state()
    getattr(sim, name)[where] = value
    sim.forward([0, 2])
    assert not sim.status.any()
    sim.forward()
    assert sim.status.tolist() == [0, Status.NON_FINITE, 0]
    sim.set_state(good)
    sim.clear_status()
    sim.forward()
    assert not sim.status.any()


def test_a_state_brings_the_contacts_of_its_step_back(balls):
    sim = Simulation(balls, 2)
    sim.qpos[:, 2] = 0.1
    sim.step(20)
    state, kept = sim.get_state(), everything(sim)
    sim.qpos[:, 2] = 1.0
    sim.forward()
    assert not sim.contact.count.any()
    sim.set_state(state)
    for name in (*CONTACT, "impulse"):
        np.testing.assert_array_equal(everything(sim)[name], kept[name])


# ---- against MuJoCo


def random_poses(m, number, rng):
    """From well apart to deep inside each other: the home pose with joints turned and roots lowered."""
    home, poses = (m.key_qpos[0] if m.nkey else m.qpos0), []
    for _ in range(number):
        q, move = home.copy(), rng.uniform(0, 1.5) * rng.standard_normal(m.nv)
        for j in np.flatnonzero(m.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
            dof = m.jnt_dofadr[j]
            move[dof : dof + 3] = 0
            q[m.jnt_qposadr[j] + 2] *= rng.uniform(0.1, 1.2)
        mujoco.mj_integratePos(m, q, move, 1.0)
        poses.append(q)
    return np.array(poses)


#: Round geoms on planes and each other, whose overlap is the same in both; and those with boxes and hulls.
ROUND = [asset_path(f"{name}.xml") for name in ("ant", "half_cheetah", "hopper", "humanoid", "walker2d", "quadruped")]
OTHERS = [asset_path("hand.xml"), asset_path("arm_lift.xml"), DATA / MENAGERIE / "unitree_go1/scene.physics.xml"]
OTHERS += [
    DATA / MENAGERIE / "wonik_allegro/scene_right.xml",
    DATA / MENAGERIE / "anybotics_anymal_c/scene.physics.xml",
]


def deepest_by_pair(geom, dist):
    found = {}
    for pair, gap in zip(np.sort(geom, axis=1).tolist(), dist, strict=True):
        found[tuple(pair)] = min(float(gap), found.get(tuple(pair), np.inf))
    return found


@pytest.mark.parametrize("path", ROUND + OTHERS, ids=lambda p: p.parent.name + "/" + p.name)
def test_what_collides_is_what_collides_in_mujoco(path):
    if not path.exists():
        pytest.skip(f"no {path}")
    model, number = Model.from_mjcf(path), 200
    m = model.mjmodel
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_GRAVITY
    d, sim = mujoco.MjData(m), Simulation(Model.from_mjmodel(m), number, dtype="float64")
    sim.qpos[:] = random_poses(m, number, np.random.default_rng(5))
    sim.forward()
    c, disagree, collides, errors = sim.contact, 0, 0, []
    for env in range(number):
        d.qpos[:] = sim.qpos[env]
        mujoco.mj_kinematics(m, d), mujoco.mj_comPos(m, d), mujoco.mj_collision(m, d)
        theirs, n = deepest_by_pair(d.contact.geom, d.contact.dist), int(c.count[env])
        ours = deepest_by_pair(c.geom[env, :n], c.dist[env, :n])
        depth = -min([0.0, *theirs.values()])
        disagree += (depth > 1e-6) != (sim.certificate.penetration[env] > 1e-6)
        collides += depth > 1e-6
        assert sim.certificate.penetration[env] == pytest.approx(-min([0.0, *ours.values()]), abs=1e-12)
        errors += [abs(gap - theirs[pair]) for pair, gap in ours.items() if gap < 0 and pair in theirs]
    errors = np.array(errors)
    print(f"{path.name}: {collides} collide, {disagree} disagree; gap differs by {np.median(errors):.1e}, at most "
          f"{errors.max():.1e} m; of {len(errors)} pairs {np.mean(errors < 1e-6):.3f} by less than 1e-6")  # fmt: skip
    assert number / 4 < collides
    assert disagree <= (0 if path in ROUND else 2)
    assert np.mean(errors < 1e-6) > (0.99 if path in ROUND else 0.5)
