"""The same bits: any batch size and position, any number of threads, another process, every instruction set, beside a
poisoned neighbour, after a reset."""

import subprocess
import sys
from pathlib import Path

import golden
import numpy as np
import pytest
from stiction import Model, Simulation, _core
from stiction.registration import asset_path
from stiction.status import Status

MODEL, HASHES = golden.load()
FLOATS = [case for case in golden.CASES if case.startswith("float32")]
STEPS = 60


@pytest.fixture(scope="module")
def alone():
    """case -> what each start comes to in a batch of one, on one thread."""
    known = {}

    def of(case):
        if case not in known:
            known[case] = []
            for start in range(golden.STATES):
                world = golden.make_world(MODEL, np.array([start]), case=case)
                world.step(STEPS)
                known[case] += golden.state_bits(world)
            assert len(set(known[case])) == golden.STATES
        return known[case]

    return of


@pytest.mark.parametrize("num_envs", [1, 2, 3, 31, 32, 33, 1000])
@pytest.mark.parametrize("case", ["float32", "float32 residual stop", "float64"])
def test_batch_size_position_and_threads_do_not_show(alone, case, num_envs):
    if num_envs == 1000 and case == "float64":
        pytest.skip("one world at a time in double: 33 show the same")
    rng = np.random.default_rng(num_envs)
    for threads in (1, 2):
        order = rng.integers(0, golden.STATES, num_envs)
        world = golden.make_world(MODEL, order, case=case, threads=threads)
        world.step(STEPS)
        assert golden.state_bits(world) == [alone(case)[start] for start in order]


def test_what_is_improved_together_is_improved_alone():
    """Worlds of many packs that the solver leaves go to Newton side by side: an arm that drives into its table."""
    model = Model.from_file(asset_path("arm_lift.xml"))
    low, high = np.reshape(model.actuator_ctrlrange, (-1, 2)).T
    controls = np.random.default_rng(0).uniform(low, high, (30, 150, model.nu))

    def driven(envs):
        sim = Simulation(model, len(envs), num_threads=1)
        for control in controls:
            sim.ctrl[:] = control[envs]
            sim.step(5)
        return np.concatenate([sim.qpos, sim.qvel], axis=1), (sim.status & Status.FALLBACK) != 0

    together, improved = driven(np.arange(150))
    assert improved.sum() > 10
    for env in (*np.flatnonzero(improved)[:4], np.flatnonzero(~improved)[0]):
        np.testing.assert_array_equal(driven([env])[0][0], together[env])


@pytest.mark.parametrize("isa", _core.available_isas())
def test_what_is_looked_at_again_beside_others_is_found_as_alone(isa, monkeypatch):
    """Hands: where hits pass on contacts are found again, in the other worlds of a pack they are kept."""
    monkeypatch.setenv("STICTION_ISA", isa)
    model = Model.from_file(asset_path("hand.xml"))
    low, high = np.reshape(model.actuator_ctrlrange, (-1, 2)).T
    controls = np.clip(np.random.default_rng(0).normal(0, 0.5, (20, 48, model.nu)) + model.key_ctrl[0], low, high)

    def driven(envs):
        sim = Simulation(model, len(envs), num_threads=1)
        for control in controls:
            sim.ctrl[:] = control[envs]
            sim.step(5)
        return np.concatenate([sim.qpos, sim.qvel], axis=1)

    together = driven(np.arange(48))
    for envs in (np.arange(48)[::-1], [3], [20], [47]):
        np.testing.assert_array_equal(driven(envs), together[envs])


@pytest.mark.parametrize("kind", ["box", "cylinder", "capsule"])
@pytest.mark.parametrize("isa", _core.available_isas())
def test_what_overlaps_deeply_beside_what_is_fast_moves_as_alone(isa, kind, monkeypatch):
    """Slow worlds had contacts of bodies' middles, which only fast ones need, where another of their pack was fast."""
    monkeypatch.setenv("STICTION_ISA", isa)
    geom = f'<geom type="{kind}" size=".05 .045 .055" mass=".5"/>'
    body = f'<body pos="0 0 {{}}"><freejoint/>{geom}</body>'
    model = Model.from_mjcf(
        '<mujoco><option timestep="0.005" gravity="0 0 0"/><worldbody>'
        f"{body.format(0)}{body.format(0.09)}</worldbody></mujoco>"
    )
    random, envs = np.random.default_rng(0), 240
    qpos = random.normal(size=(envs, 14))
    away = random.normal(size=(envs, 3))
    qpos[:, :3] = 0
    qpos[:, 7:10] = away / np.linalg.norm(away, axis=1, keepdims=True) * random.uniform(0.05, 0.13, (envs, 1))
    for at in (3, 10):
        qpos[:, at : at + 4] /= np.linalg.norm(qpos[:, at : at + 4], axis=1, keepdims=True)
    qvel = random.normal(size=(envs, 12)) * np.where(np.arange(envs) % 2, 0.1, 2)[:, None]

    def stepped(these):
        sim = Simulation(model, len(these), num_threads=1)
        sim.qpos[:], sim.qvel[:] = qpos[these], qvel[these]
        sim.step()
        return sim.qvel.copy()

    slow = np.arange(1, envs, 2)
    np.testing.assert_array_equal(stepped(np.arange(envs))[slow], stepped(slow))


def heap(couples: bool) -> Model:
    """Bodies of many kinds in a box, beside a door and a drawer with limits: columns in blocks of six and of one."""
    kinds = ["box", "sphere", "capsule", "cylinder", "ellipsoid", "box", "box"]
    bodies = "".join(
        f'<body pos="{0.3 * (k % 3) - 0.3} {0.3 * (k // 3) - 0.3} {0.3 + 0.1 * k}"><freejoint/><geom type="{kind}" '
        f'size=".08 {0.04 + 0.01 * k:g} .06" density="{200 * 2**k}" condim="{4 if couples and k == 3 else 3}"/></body>'
        for k, kind in enumerate(kinds)
    )
    walls = "".join(
        f'<geom type="box" size=".05 .6 .3" pos="{x} {y} .3" euler="0 0 {turn}"/>'
        for x, y, turn in ((-0.6, 0, 0), (0.6, 0, 0), (0, 0.6, 90), (0, -0.6, 90))
    )
    return Model.from_mjcf(f"""<mujoco><option timestep="0.004"/><worldbody><geom type="plane" size="0 0 1"/>{walls}
      {bodies}
      <body pos="0 0 .3"><joint axis="0 0 1" limited="true" range="-40 40" frictionloss=".01"/>
        <geom type="box" size=".2 .02 .1" pos=".2 0 0"/></body>
      <body pos="-.2 .3 .5"><joint type="slide" axis="0 0 1" limited="true" range="-.4 .1"/>
        <geom type="box" size=".05 .05 .05"/>
      </body></worldbody></mujoco>""")


@pytest.mark.parametrize("isa", _core.available_isas())
@pytest.mark.parametrize("solver", ["subadmm", "sap", "admm", "pgs", "canal", "bisection", "cond"])
def test_what_lies_beside_others_in_a_heap_moves_as_alone(isa, solver, monkeypatch):
    """Bodies that touch are solved beside those of other worlds, whichever are of their size."""
    monkeypatch.setenv("STICTION_ISA", isa)
    model = heap(couples=solver == "subadmm")

    def thrown(envs):
        sim = Simulation(model, len(envs), num_threads=1, solver=solver)
        for row, env in enumerate(envs):
            sim.qvel[row] = np.random.default_rng(env).normal(0, 1, model.nv)
        sim.step(150)
        return np.concatenate([sim.qpos, sim.qvel], axis=1)

    together = thrown(range(20))
    assert len(np.unique(together, axis=0)) == 20
    for envs in (range(19, -1, -1), [3], [17, 4]):
        np.testing.assert_array_equal(thrown(envs), together[envs])


ROBOTS = """<mujoco><option timestep="0.004" integrator="{}"/><worldbody><geom type="plane" size="0 0 1"/>
  <body pos="0 0 .5"><freejoint/><geom type="box" size=".2 .1 .05"/><body pos=".2 0 0"><joint axis="0 1 0"/>
    <geom type="capsule" size=".03" fromto="0 0 0 .1 0 -.3"/></body></body>
  <body pos="1 0 .5"><freejoint/><geom type="ellipsoid" size=".1 .2 .05"/></body>
  <body pos="-1 0 .5"><joint type="ball"/><geom type="capsule" size=".03" fromto="0 0 0 .1 0 -.3"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("integrator", ["implicitfast", "Euler"])
def test_one_call_of_many_steps_is_many_calls(integrator, dtype):
    """A free base's spin is about its own axes in qvel and about the world's in a step."""
    model = Model.from_mjcf(ROBOTS.format(integrator))
    many, one = (Simulation(model, 17, dtype=dtype) for _ in range(2))
    spin = np.random.default_rng(0).uniform(-5, 5, many.qvel.shape)
    many.qvel[:] = one.qvel[:] = spin
    for _ in range(20):
        one.step(7)
        for _ in range(7):
            many.step()
        for name in ("qpos", "qvel", "time"):
            np.testing.assert_array_equal(getattr(one, name), getattr(many, name))


@pytest.mark.parametrize("case", golden.CASES)
def test_every_instruction_set_gives_the_golden_hash(case):
    found = {isa: golden.trajectory_hash(MODEL, case, isa) for isa in golden.isas_of(case)}
    assert set(found.values()) == {HASHES["hashes"][case]}, (
        f"{found}, expected {HASHES['hashes'][case]}; scripts/golden --accept REASON if the bits are meant to change"
    )


def test_another_process_gives_the_same_bits():
    program = "import golden; print(golden.trajectory_hash(golden.load()[0], 'float32', threads=2))"
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}; {program}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
    )
    assert run.stdout.strip() == golden.trajectory_hash(MODEL, "float32")


# ---- poisoned worlds

POISONED = [3, 17, 32]
CLEAN = [env for env in range(40) if env not in POISONED]


def batch(**options):
    sim = Simulation(MODEL, 40, num_threads=2, **options)
    q, v, u = golden.starts(MODEL)
    order = np.arange(40) % golden.STATES
    sim.qpos, sim.qvel, sim.ctrl = q[order], v[order], u[order]
    return sim


def poison_parameter(name):
    def do(sim, value):
        getattr(sim.params, name)[POISONED, 1] = value

    return do


def poison_array(name):
    def do(sim, value):
        flat = getattr(sim, name).reshape(40, -1)
        flat[POISONED, 7 if name == "xfrc_applied" else 1] = value

    return do


WAYS = {name: (poison_array(name), ()) for name in ("ctrl", "qpos", "qvel", "qfrc_applied", "xfrc_applied")}
WAYS |= {name: (poison_parameter(name), (name,)) for name in ("body_mass", "geom_friction")}


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e38], ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_a_poisoned_world_is_flagged_and_harms_no_other(way, value):
    poison, per_env = WAYS[way]
    try:
        clean, sick = batch(per_env=per_env), batch(per_env=per_env)
    except ValueError as error:
        pytest.skip(f"this build has no per_env: {error}")
    clean.step(10), sick.step(10)
    poison(sick, value)
    at_poison = sick.qpos.copy()
    clean.step(20), sick.step(20)
    flagged = (sick.status & int(Status.NON_FINITE)) != 0
    np.testing.assert_array_equal(np.flatnonzero(flagged), POISONED)
    np.testing.assert_array_equal(sick.qpos[POISONED], at_poison[POISONED])  # it stands still
    for name in ("qpos", "qvel", "status"):
        np.testing.assert_array_equal(getattr(sick, name)[CLEAN], getattr(clean, name)[CLEAN])

    # After a reset it is itself again: the bits of a world that was never poisoned.
    for sim in (clean, sick):
        for name in per_env:
            getattr(sim.params, name)[:] = getattr(MODEL, name)
        sim.reset(POISONED)
        sim.ctrl[POISONED] = 0.1
        sim.step(30)
    assert not (sick.status[POISONED] & int(Status.NON_FINITE)).any()
    for name in ("qpos", "qvel", "status", "time"):
        np.testing.assert_array_equal(getattr(sick, name), getattr(clean, name))


@pytest.mark.parametrize("value", [np.nan, np.inf], ids=str)
@pytest.mark.parametrize("place", [0, 2])
def test_what_a_broken_world_tells_does_not_follow_those_beside_it(value, place):
    model, told = Model.from_file(asset_path("humanoid.xml")), []
    for envs in (1, 4, 17):
        sim = Simulation(model, envs)
        rng = np.random.default_rng(7)
        sim.qvel[1:] = 2 * rng.standard_normal((envs - 1, model.nv))
        sim.qpos[1:, 2] -= 0.3 * rng.random(envs - 1)
        sim.qpos[0, place] = value
        sim.step(4)
        assert envs == 1 or (sim.status[1:] == 0).mean() > 0.5
        told.append(int(sim.status[0]))
    assert told == [int(Status.NON_FINITE)] * 3


def test_instruction_sets_can_be_chosen(monkeypatch):
    for isa in _core.available_isas():
        monkeypatch.setenv("STICTION_ISA", isa)
        assert Simulation(MODEL, 1).isa == isa


def test_the_golden_model_is_the_scene_it_claims_to_be():
    pytest.importorskip("mujoco")
    from scenes import MIXED

    fresh = Model.from_mjcf(MIXED)
    for name in ("nq", "nv", "nu", "nbody", "ngeom", "ntendon", "neq"):
        assert getattr(fresh, name) == getattr(MODEL, name)
    np.testing.assert_allclose(fresh.body_mass, MODEL.body_mass, rtol=1e-12)


@pytest.mark.parametrize("isa", _core.available_isas())
def test_every_instruction_set_agrees_where_some_contacts_turn(isa, monkeypatch):
    """Which product a world takes follows from its contacts, not from rows of couples that some have and some not."""
    xml = """<mujoco><worldbody><geom type="plane" size="5 5 1"/>
      <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" mass="1" condim="3"/></body>
      <body pos=".5 0 .1"><freejoint/><geom type="sphere" size=".1" mass="1" condim="6"/></body>
      </worldbody></mujoco>"""

    def thrown():
        sim = Simulation(Model.from_mjcf(xml), 20, num_threads=1)
        sim.qvel[:] = np.random.default_rng(0).normal(size=sim.qvel.shape)
        sim.step(40)
        return np.array(sim.qpos), np.array(sim.qvel)

    usual = thrown()
    monkeypatch.setenv("STICTION_ISA", isa)
    for a, b in zip(usual, thrown(), strict=True):
        assert (a == b).all()


def on_four_legs(links, walls):
    """A robot whose legs are chains of joints; they touch each other, a plane, and a step if there are walls."""

    def leg(x, y, k):
        if k == links:
            return '<geom type="sphere" size=".03"/>'
        kind, axis = ("slide", "0 0 1") if k == 1 else ("hinge", "1 0 0" if k == 0 else "0 1 0")
        at = f"{x} {y} 0" if k == 0 else "0 0 -.12"
        return f"""<body pos="{at}"><joint name="j{x}{y}{k}" type="{kind}" axis="{axis}" range="-40 40" damping=".1"
            armature=".01" frictionloss=".05"/><geom type="capsule" fromto="0 0 0 0 0 -.12" size=".02"/>
            {leg(x, y, k + 1) if k + 1 < links else '<geom type="box" size=".03 .02 .01" pos="0 0 -.14"/>'}</body>"""

    legs = [(x, y) for x in (-0.2, 0.2) for y in (-0.1, 0.1)]
    wall = '<geom type="box" size=".2 1 .05" pos=".4 0 0"/>' if walls else ""
    servos = "".join(
        f'<position joint="j{x}{y}{k}" kp="20" kv="1" forcerange="-5 5"/>' for x, y in legs for k in range(links)
    )
    return Model.from_mjcf(f"""<mujoco><compiler autolimits="true"/><worldbody><geom type="plane" size="5 5 1"/>{wall}
        <body pos="0 0 .5"><freejoint/><geom type="box" size=".2 .1 .05"/>{"".join(leg(x, y, 0) for x, y in legs)}
        </body></worldbody><actuator>{servos}</actuator></mujoco>""")


@pytest.mark.parametrize("walls", [False, True])
@pytest.mark.parametrize("links", [2, 3])
def test_a_shape_that_is_known_changes_no_bit(links, walls, monkeypatch):
    """Packs of robots on four legs of 2 or 3 links take steps of their own (FourLimbs), a single float does not."""
    isas, model = _core.available_isas(), on_four_legs(links, walls)

    def moved(isa):
        monkeypatch.setenv("STICTION_ISA", isa)
        sim, rng = Simulation(model, 20, num_threads=2), np.random.default_rng(1)
        sim.qvel[:] = rng.normal(size=sim.qvel.shape)
        for _ in range(6):
            sim.ctrl[:] = rng.uniform(-1, 1, sim.ctrl.shape)
            sim.step(15)
            sim.forward([1, 7])
        assert sim.isa == isa and sim.contact.count.max() > 3
        names = "qpos", "qvel", "xpos", "body_linvel", "status", "net_contact_force"
        told = {name: np.array(getattr(sim, name)) for name in names}
        told |= {name: np.array(getattr(sim.contact, name)) for name in ("count", "dist", "pos", "impulse")}
        return told | sim.contact_problem(3).arrays()

    assert "scalar" in isas and len(isas) > 1
    usual = moved("scalar")
    for isa in isas:
        for name, values in moved(isa).items():
            np.testing.assert_array_equal(values, usual[name], err_msg=f"{isa} {name}")
