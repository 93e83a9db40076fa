"""Parameters per environment: what the model disables stays off, what depends follows, neighbours do not show."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

from scenes import MIXED  # noqa: E402
from stiction import Model, Simulation, SolverOptions, Status  # noqa: E402

#: A floating trunk with a hinge, and a ball and a slide joint that hang from the world.
SCENE = """
<mujoco><option timestep="0.002"><flag contact="disable" {flag}/></option><worldbody>
  <body pos="0 0 1"><joint type="free" stiffness="20"/><geom size=".1" mass="1"/>
    <body pos=".2 0 0"><joint axis="0 1 0" stiffness="5" springref="20" damping=".2" frictionloss=".1"/>
      <geom size=".05" pos=".1 0 0" mass=".3"/></body></body>
  <body pos="1 0 1"><joint type="ball" stiffness="3" damping=".1"/>
    <geom type="box" size=".1 .05 .2" pos="0 .1 0" mass="1"/></body>
  <body pos="2 0 1"><joint type="slide" axis="1 0 0" stiffness="40" springref=".1" damping="1" frictionloss=".3"/>
    <geom size=".1" mass="1"/></body>
</worldbody></mujoco>"""
CASES = {
    "spring": ("jnt_stiffness", 50.0),
    "damper": ("dof_damping", 1.5),
    "frictionloss": ("dof_frictionloss", 0.5),
    "gravity": ("gravity", (1.0, 2.0, -3.0)),
}


def steps(num_envs, flag, per_env, value, **options):
    """(num_envs, nq + nv) after a while; the last environment has ``value``."""
    sim = Simulation(Model.from_mjcf(SCENE.format(flag=flag)), num_envs, per_env=per_env, num_threads=1, **options)
    for field in per_env:
        getattr(sim.params, field)[-1] = value
    sim.qvel[:] = np.random.default_rng(2).standard_normal(sim.model.nv)
    sim.step(20)
    assert not sim.status.any()
    return np.hstack([sim.qpos, sim.qvel])


@pytest.mark.parametrize(
    "options",
    [{"dtype": d, "integrator": i} for d in ("float32", "float64") for i in ("implicit", "euler")],
    ids=lambda o: " ".join(o.values()),
)
@pytest.mark.parametrize("flag", CASES)
def test_what_the_model_disables_stays_off(flag, options):
    field, value = CASES[flag]
    for disabled in (False, True):
        switch = f'{flag}="disable"' if disabled else ""
        alone = steps(1, switch, (), None, **options)
        both = steps(2, switch, (field,), value, **options)
        np.testing.assert_array_equal(both[0], alone[0])
        assert np.array_equal(both[1], alone[0]) == disabled


GRIPPER = """
<mujoco><option timestep="0.002"><flag contact="disable"/></option><worldbody>
  <body pos="0 0 1"><joint name="a" type="slide" axis="1 0 0"/><geom size=".05" mass=".2"/></body>
  <body pos="1 0 1"><joint name="b" type="hinge" axis="0 1 0" damping=".1"/><geom size=".05" pos=".2 0 0" mass=".3"/></body>
</worldbody>
<tendon><fixed name="both"><joint joint="a" coef="1"/><joint joint="b" coef="-.5"/></fixed></tendon>
<actuator>
  <general joint="b" gainprm="1.5" biastype="affine" biasprm="0 -.2 0"/>
  <general tendon="both" gainprm="{gain}" biastype="affine" biasprm="{bias}" gear="2"/>
</actuator></mujoco>"""  # noqa: E501


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("integrator", ["implicit", "euler"])
def test_actuators_on_tendons_have_their_own_gains(dtype, integrator):
    options = {"dtype": dtype, "integrator": integrator, "num_threads": 1}

    def run(sim):
        sim.ctrl[:] = [0.3, 0.7]
        sim.step(40)
        return np.array(sim.qvel)

    gains, biases = [1.0, 6.0, 2.0], [(0, 0, 0), (0.1, -3, -0.4), (0, -8, 0)]
    ours = Model.from_mjcf(GRIPPER.format(gain=1, bias="0 0 0"))
    sim = Simulation(ours, 3, per_env=("actuator_gainprm", "actuator_biasprm"), **options)
    sim.params.actuator_gainprm[:, 1] = gains
    sim.params.actuator_biasprm[:, 1] = biases
    found = run(sim)
    for env, (gain, bias) in enumerate(zip(gains, biases, strict=True)):
        file = Model.from_mjcf(GRIPPER.format(gain=gain, bias=" ".join(map(str, bias))))
        np.testing.assert_allclose(found[env], run(Simulation(file, **options))[0], rtol=1e-5, atol=1e-6)
    assert np.abs(found[0] - found[1]).max() > 0.1


#: A floating body with a part welded on, and an arm whose links are compensated in part; a counterweight is not.
LIFTED = """
<mujoco><option timestep="0.002" integrator="Euler"><flag contact="disable"/></option><worldbody>
  <body name="drone" pos="0 0 1" gravcomp="1"><freejoint/><geom type="box" size=".2 .1 .05" mass="1"/>
    <body name="payload" pos=".1 0 -.1" gravcomp=".5"><geom size=".05" mass=".4"/></body></body>
  <body name="upper" pos="2 0 1" gravcomp="1"><joint name="s" axis="0 1 0" damping=".1"/>
    <geom type="capsule" fromto="0 0 0 .4 0 0" size=".04" mass="2"/>
    <body name="counterweight" pos="-.2 0 0"><geom size=".06" mass="1"/></body>
    <body name="lower" pos=".4 0 0" gravcomp=".7"><joint name="e" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 .3 0 .1" size=".03" mass="1"/></body></body>
</worldbody></mujoco>"""


def test_gravity_compensation_follows_each_environments_masses():
    """As in MuJoCo with those masses; an inertia goes with its mass."""
    import mujoco

    factors = {"twice": 2.0, "as it is": 1.0, "half": 0.5, "by body": [1, 2, 0.3, 1.5, 0.7, 3.0]}
    model = Model.from_mjcf(LIFTED)
    options = {"dtype": "float64", "integrator": "euler", "num_threads": 1}
    sim = Simulation(model, len(factors), per_env=("body_mass",), **options)
    for env, factor in enumerate(factors.values()):
        sim.params.body_mass[env] *= factor
    sim.step(200)
    for env, (name, factor) in enumerate(factors.items()):
        m = mujoco.MjModel.from_xml_string(LIFTED)
        m.body_mass *= factor
        m.body_inertia *= np.broadcast_to(factor, m.nbody)[:, None]
        d = mujoco.MjData(m)
        mujoco.mj_setConst(m, d)
        mujoco.mj_resetData(m, d)
        mujoco.mj_step(m, d, 200)
        np.testing.assert_allclose(sim.qvel[env], d.qvel, rtol=1e-7, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(sim.qvel[0, :6], sim.qvel[1, :6], atol=1e-9)  # all twice as heavy: as before
    assert np.abs(sim.qvel[3] - sim.qvel[1]).max() > 0.1


#: Of the environments beside the one that is looked at: what differs, and by how much.
MATES = {
    "body_mass": 30.0,
    "body_inertia": 30.0,
    "geom_friction": 5.0,
    "geom_size": 0.7,
    "dof_damping": 50.0,
    "dof_armature": 50.0,
    "dof_frictionloss": 50.0,
    "jnt_stiffness": 20.0,
    "jnt_range": 0.1,
    "actuator_gainprm": 20.0,
    "actuator_biasprm": 20.0,
    "body_pos": 1.2,
    "body_ipos": 1.5,
    "site_pos": 2.0,
    "gravity": 100.0,
}
SOLVERS = {
    "default": SolverOptions(),
    "fallback": SolverOptions(iterations=3, certify=1e-6),
    "adaptive": SolverOptions(penalty="adaptive"),
    "convex": SolverOptions(law="convex"),
    "canal": "canal",
    "sap": "sap",
    "pgs": SolverOptions(name="pgs", iterations=40),
    "cond": SolverOptions(name="cond", iterations=40),
    "cond, convex": SolverOptions(name="cond", law="convex", iterations=40),
    "bisection": SolverOptions(name="bisection", iterations=20),
    "bisection with fallback": SolverOptions(name="bisection", law="coulomb", iterations=2, certify=1e-6),
    "pgs with fallback": SolverOptions(name="pgs", iterations=2, certify=1e-6),
}


def crowd():
    """Every kind of row, with something to set in each parameter."""
    xml = MIXED.replace('name="a1"', 'name="a1" stiffness="2"').replace('name="c1"', 'name="c1" frictionloss=".02"')
    return Model.from_mjcf(xml)


def bits_of(model, solver, place, num_envs, field=None, **options):
    """The state of environment ``place`` after some steps, the others with other parameters, and its FALLBACK bit."""
    sim = Simulation(model, num_envs, per_env=tuple(MATES), solver=solver, num_threads=1, **options)
    rng = np.random.default_rng(8)
    u, v = rng.uniform(-1, 1, model.nu), rng.standard_normal(model.nv)
    others = np.arange(num_envs) != place
    sim.ctrl[:], sim.qvel[:] = u, v
    if field is not None:
        getattr(sim.params, field)[others] *= MATES[field]
        sim.qvel[others] *= 1.5
    sim.step(120)
    return np.hstack([sim.qpos[place], sim.qvel[place], sim.status[place]]), bool(sim.status[place] & Status.FALLBACK)


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_parameter_of_a_neighbour_shows(solver, device):
    """An environment alone, first and last among others, in a pack of its own: the same bits."""
    if device != "cpu":
        pytest.skip("packs are the CPU's")
    model = crowd()
    with pytest.raises(ValueError, match="these can: ") as refused:
        Simulation(model, per_env=("qpos0",))
    assert set(MATES) == set(str(refused.value).split("these can: ")[1].split(", "))
    alone, helped = bits_of(model, SOLVERS[solver], 0, 1)
    if "fallback" in solver:
        assert helped
    for field in MATES:
        for place, num_envs in ((0, 16), (11, 16), (16, 17), (5, 6)):
            np.testing.assert_array_equal(bits_of(model, SOLVERS[solver], place, num_envs, field)[0], alone, field)


#: Bodies that a joint places, and some that are merged into a link, into each other, into a mocap body or into the
#: world; every kind of joint, geom and bond that a place may move.
PLACED = """
<mujoco><option timestep="0.002" integrator="Euler">{flag}</option><worldbody>
  <body name="shelf" pos="0 0 .1" euler="0 0 30"><body name="floor" pos=".1 0 -.1" euler="0 0 20">
    <geom type="plane" size="0 0 1"/><geom type="box" size=".2 .2 .05" pos="0 0 .02"/></body></body>
  <body name="hand" mocap="true" pos="0 1 1"><body name="finger" pos=".1 0 0" euler="0 40 0"><site name="finger" pos="0 0 .1"/></body></body>
  <body name="base" pos="0 0 .4" euler="10 20 30"><freejoint/><geom type="box" size=".15 .1 .05" mass="2"/>
    <body name="pack" pos="0 .05 .08" euler="30 0 50"><geom type="capsule" size=".04 .06" mass=".5"/><site name="pack" pos=".1 0 0"/>
      <body name="lid" pos="0 0 .1" euler="0 30 0" gravcomp=".5"><inertial pos=".01 .02 .03" mass=".4" diaginertia="1e-3 2e-3 1.5e-3"/>
        <geom size=".03"/></body></body>
    <body name="upper" pos=".2 0 0" euler="0 0 20"><joint name="hip" axis="0 1 0" pos="0 .01 .02" damping=".1"/><joint name="hip 2" axis="1 0 0" pos="0 0 .03" damping=".1"/>
      <geom type="capsule" size=".03 .08" pos=".1 0 0" euler="0 90 0" mass=".5"/>
      <body name="lower" pos=".25 0 0" euler="0 50 0"><joint name="knee" axis="0 1 0" damping=".1"/>
        <geom type="capsule" size=".03 .08" pos=".1 0 0" euler="0 90 0" mass=".3"/><site name="foot" pos=".2 0 0" euler="10 0 0"/></body></body>
    <body name="tail" pos="-.2 0 0"><joint name="tail" type="ball" damping=".1"/><geom size=".06" pos="-.1 0 0" mass=".3"/></body></body>
  <body name="rail" pos="1 0 .5" euler="0 10 0"><joint name="rail" type="slide" axis="1 0 0" damping="1"/><geom type="cylinder" size=".05 .1" mass="1"/>
    <body name="arm" pos="0 0 .1"><joint name="arm" axis="0 1 0" damping=".1"/><geom type="ellipsoid" size=".05 .06 .2" pos="0 0 .2" mass=".5"/></body></body>
  <body name="ball" pos="1.05 0 1"><freejoint/><geom size=".08" mass=".5"/><body name="horn" pos="0 .1 0"><geom size=".02" mass=".1"/></body></body>
</worldbody>{rest}</mujoco>"""  # noqa: E501
NO_CONTACT = '<flag contact="disable"/>'
BONDS = """<equality><connect body1="arm" body2="lower" anchor="0 0 .4"/><weld body1="ball" body2="finger"/>
  <connect body1="horn" anchor="0 0 0"/></equality>"""
PLACES = ("body_pos", "body_ipos", "site_pos")


def shifted(model, env):
    """By name: a random number of cm on every coordinate of what has a place, but the world's."""
    rng = np.random.default_rng(env)
    values = {name: np.array(getattr(model, name)) for name in PLACES}
    for name, of in values.items():
        of[0 if name == "site_pos" else 1 :] += rng.uniform(-0.02, 0.02, (len(of) - (name != "site_pos"), 3))
    return values


def beginning(model):
    """Away from where the file has it, and in motion: qpos, qvel."""
    rng = np.random.default_rng(1)
    return model.qpos0 + rng.uniform(-0.03, 0.03, model.nq), rng.standard_normal(model.nv)


def placed(model, **options):
    """Three environments with places of their own, in that motion."""
    sim = Simulation(model, 3, per_env=PLACES, num_threads=1, **options)
    for env in range(3):
        for name, values in shifted(model, env).items():
            getattr(sim.params, name)[env] = values
    sim.qpos[:], sim.qvel[:] = beginning(model)
    sim.forward()
    return sim


def test_bodies_centres_of_mass_and_sites_have_their_places_as_in_mujoco():
    """Motion without contact, poses, mass matrix, bias and sensors, against a model with these numbers."""
    import mujoco
    from stiction import Sensors

    xml = PLACED.format(flag=NO_CONTACT, rest='<sensor><velocimeter name="v" site="foot"/></sensor>')
    model = Model.from_mjcf(xml)
    sim = placed(model, dtype="float64", integrator="euler")
    sensors, trees = Sensors(sim), ["base", "rail", "ball"]
    for steps in (0, 100):
        sim.step(steps)
        seen = {name: np.array(getattr(sim, name)) for name in ("xpos", "site_xpos", "qvel")}
        seen |= {"qfrc_bias": sim.bias(), "M": sim.mass_matrix()}
        seen |= {"v": sensors.named("v"), "com": sensors.subtree_com(trees)}
        for env in range(3):
            m = mujoco.MjModel.from_xml_string(xml)
            for name, values in shifted(model, env).items():
                getattr(m, name)[:] = values
            for shortcut in (m.body_sameframe, m.site_sameframe, m.body_simple, m.dof_simplenum):
                shortcut[:] = 0  # of frames that were the body's in the file
            d, full = mujoco.MjData(m), np.zeros((m.nv, m.nv))
            d.qpos, d.qvel = beginning(model)
            d.mocap_pos = sim.mocap_pos[env]
            mujoco.mj_step(m, d, steps)
            mujoco.mj_forward(m, d)
            mujoco.mj_fullM(m, d, full)
            expected = {name: getattr(d, name) for name in ("xpos", "site_xpos", "qvel", "qfrc_bias")}
            expected |= {"v": d.sensor("v").data, "M": full}
            expected |= {"com": d.subtree_com[[m.body(name).id for name in trees]]}
            for name, value in expected.items():
                np.testing.assert_allclose(seen[name][env], value, rtol=1e-7, atol=1e-8, err_msg=f"{name} {env}")
    assert np.ptp(seen["site_xpos"], axis=0).min() > 1e-4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_contacts_and_bonds_go_along_with_places(dtype):
    """Planes, boxes and all that moves, welds and connects: as of a model with these numbers."""
    model, solver = Model.from_mjcf(PLACED.format(flag="", rest=BONDS)), SolverOptions(name="canal", certify=1e-9)
    sim = placed(model, dtype=dtype, solver=solver)
    alone = []
    for env in range(3):
        own = Model.from_arrays(model.to_arrays() | shifted(model, env))
        alone.append(Simulation(own, dtype=dtype, solver=solver, num_threads=1))
        alone[-1].qpos[:], alone[-1].qvel[:] = beginning(model)
        alone[-1].mocap_pos[:] = sim.mocap_pos[env]
        alone[-1].forward()
    close = {"rtol": 0, "atol": 2e-6 if dtype == "float32" else 1e-6}
    touched = set()
    for _ in range(20 if dtype == "float64" else 1):
        for env, other in enumerate(alone):
            for name in ("qpos", "qvel", "xpos", "xquat", "body_linvel", "site_xpos"):
                found, expected = getattr(sim, name)[env], getattr(other, name)[0]
                np.testing.assert_allclose(found, expected, **close, err_msg=f"{name} {env}")
            touched |= set(sim.contact.geom[env].ravel().tolist())
            for name in ("geom", "dist", "pos", "impulse"):
                found, expected = getattr(sim.contact, name)[env], getattr(other.contact, name)[0]
                room = close | {"atol": 5e-6} if name == "impulse" and dtype == "float64" else close
                np.testing.assert_allclose(found, expected, **room, err_msg=f"{name} {env}")
        for each in (sim, *alone):
            each.step(10)
    assert len(touched) > (6 if dtype == "float64" else 2)


@pytest.mark.parametrize("kind", ["connect", "weld"])
def test_places_of_sites_that_an_equality_holds_are_shared(kind):
    """Their places are constants of it: sites would move, and what holds them would not."""
    model = Model.from_mjcf(
        f"""<mujoco><worldbody><site name="b" pos="0 0 1.1"/><body pos="0 0 1"><freejoint/><geom size=".05"/>
        <site name="a" pos="0 0 .1"/></body></worldbody>
        <equality><{kind} name="held" site1="a" site2="b"/></equality></mujoco>"""
    )
    with pytest.raises(ValueError, match="site_pos.*'held' holds sites together"):
        Simulation(model, 2, per_env=("site_pos",))
    assert Simulation(model, 2, per_env=("body_pos",)).num_envs == 2
