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
