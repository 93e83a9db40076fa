"""The Python face of a batch: arrays, errors, states, contacts, status."""

import gc
import math

import numpy as np
import pytest
import stiction
from stiction import Simulation, SolverOptions, Status

SPHERE = """
<mujoco><option timestep="0.005"/><worldbody>
  <geom name="floor" type="plane" size="5 5 1"/>
  <body name="ball" pos="0 0 0.1"><freejoint/><geom name="ball" type="sphere" size="0.1" mass="2"/></body>
</worldbody></mujoco>"""

# A free base with two hinged legs over a plane, motors, a site and a keyframe.
WALKER = """
<mujoco><option timestep="0.005"/><worldbody>
  <geom type="plane" size="5 5 1"/>
  <body name="base" pos="0 0 0.5"><freejoint/><geom type="box" size="0.2 0.1 0.05" mass="3"/>
    <site name="top" pos="0 0 0.05"/>
    <body name="left" pos="0.15 0 0">
      <joint name="l" type="hinge" axis="0 1 0" range="-60 60" limited="true" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03" mass="0.5"/></body>
    <body name="right" pos="-0.15 0 0"><joint name="r" type="hinge" axis="0 1 0" armature="0.01"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03" mass="0.5"/></body>
  </body></worldbody>
  <actuator><motor joint="l" ctrlrange="-1 1" gear="5"/><motor joint="r" ctrlrange="-1 1" gear="5"/></actuator>
  <keyframe><key name="crouch" qpos="0 0 0.4 1 0 0 0 0.3 -0.3" qvel="0 0 0 0 0 0 0.1 0.2"/></keyframe>
</mujoco>"""
STATE = ("qpos", "qvel", "ctrl", "time", "qfrc_applied", "xfrc_applied")


@pytest.fixture(scope="module")
def walker():
    return stiction.Model.from_mjcf(WALKER)


@pytest.fixture(scope="module")
def sphere():
    return stiction.Model.from_mjcf(SPHERE)


def shaken(model, num_envs=5, steps=60, seed=1, **options):
    """A simulation in the middle of things, differently in each environment."""
    sim = Simulation(model, num_envs, **options)
    random = np.random.default_rng(seed)
    for _ in range(steps // 10):
        sim.ctrl = random.uniform(-1, 1, (num_envs, model.nu))
        sim.step(10)
    return sim


# ---- arrays


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_have_mujocos_shapes(walker, dtype):
    sim = Simulation(walker, 3, dtype=dtype, max_contacts=6)
    shapes = {
        "qpos": (3, 9), "qvel": (3, 8), "ctrl": (3, 2), "qfrc_applied": (3, 8), "xfrc_applied": (3, 4, 6),
        "xpos": (3, 4, 3), "xquat": (3, 4, 4), "body_linvel": (3, 4, 3), "body_angvel": (3, 4, 3),
        "site_xpos": (3, 1, 3), "net_contact_force": (3, 4, 3),
    }  # fmt: skip
    for name, shape in shapes.items():
        array = getattr(sim, name)
        assert (array.shape, array.dtype) == (shape, dtype), name
        assert array.flags.writeable == (name in STATE), name
        assert getattr(sim, name) is array
    assert (sim.time.shape, sim.time.dtype) == ((3,), np.float64)
    assert (sim.status.shape, sim.status.dtype) == ((3,), np.int32)
    contact = {"geom": (2,), "pos": (3,), "frame": (3, 3), "dist": (), "impulse": (3,), "active": ()}
    for name, tail in contact.items():
        assert getattr(sim.contact, name).shape == (3, 6, *tail), name
    residuals = ("r_dyn", "r_con", "r_split", "r_ccp", "r_mdp", "r_row", "r_cone")
    for name in (*residuals, "penetration", "scale", "num_contacts", "iterations"):
        assert getattr(sim.certificate, name).shape == (3,), name
    assert sim.certificate.converged.dtype == bool
    assert sim.certificate.num_contacts.dtype == np.int32
    np.testing.assert_array_equal(sim.params.body_mass, walker.body_mass[None])


def test_assigning_copies_in_and_checks_the_shape(walker):
    sim = Simulation(walker, 2)
    view, values = sim.ctrl, np.array([[0.1, 0.2], [0.3, 0.4]])
    sim.ctrl = values
    values[:] = 9
    np.testing.assert_allclose(view, [[0.1, 0.2], [0.3, 0.4]], rtol=1e-6)
    sim.ctrl += 1
    assert sim.ctrl is view and view[0, 0] == pytest.approx(1.1)
    with pytest.raises(ValueError, match=r"ctrl has shape \(2,\), expected \(2, 2\)"):
        sim.ctrl = [1, 2]
    with pytest.raises(TypeError, match="complex128"):
        sim.ctrl = np.zeros((2, 2), complex)
    with pytest.raises(AttributeError, match="xpos is computed"):
        sim.xpos = np.zeros((2, 4, 3))
    with pytest.raises(AttributeError, match="body_mass"):
        _ = sim.params.body_mas
    with pytest.raises(ValueError, match=r"per_env=\('body_mass',\)"):
        sim.params.body_mass = np.ones((2, 4))
    for fixed in (sim.xpos, sim.status, sim.contact.impulse, sim.certificate.r_con, sim.params.body_mass):
        with pytest.raises(ValueError, match="read-only"):
            fixed[...] = 0


def test_views_outlive_the_simulation(walker):
    sim = Simulation(walker, 200)
    sim.step(3)
    qpos, force = sim.qpos, sim.contact.impulse
    kept = qpos.copy(), force.copy()
    del sim
    gc.collect()
    others = [Simulation(walker, 200) for _ in range(3)]  # would reuse the memory
    np.testing.assert_array_equal(qpos, kept[0])
    np.testing.assert_array_equal(force, kept[1])
    assert len(others) == 3


def test_torch_tensors_share_the_memory(walker):
    torch = pytest.importorskip("torch")
    sim = Simulation(walker, 2, array="torch")
    assert isinstance(sim.qpos, torch.Tensor) and isinstance(sim.contact.active, torch.Tensor)
    sim.ctrl[:] = 0.5
    sim.qpos[0, 2] = 3.0
    sim.step()
    assert sim.qpos[0, 2].item() == pytest.approx(3.0, abs=1e-3)
    sim.ctrl = torch.zeros(2, 2)
    assert sim.ctrl.abs().sum() == 0


# ---- errors


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"num_envs": 0}, ValueError, "num_envs is 0"),
        ({"num_envs": 1.5}, TypeError, "num_envs is 1.5"),
        ({"num_envs": 2**40}, ValueError, "num_envs is 1099511627776, expected less than"),
        ({"dtype": "float16"}, ValueError, "dtype is 'float16', expected 'float32' or 'float64'"),
        ({"timestep": 0}, ValueError, "timestep is 0.0 s"),
        ({"timestep": math.nan}, ValueError, "timestep is nan"),
        ({"timestep": "fast"}, TypeError, "timestep is 'fast'"),
        (
            {"integrator": "rk4"},
            ValueError,
            "integrator is 'rk4', expected one of 'implicit', 'euler', 'explicit_euler'",
        ),
        ({"solver": "newton"}, ValueError, "solver is 'newton'"),
        ({"solver": 3}, TypeError, "solver is int"),
        ({"array": "jax"}, ValueError, "array is 'jax', expected 'native' or 'torch'"),
        ({"device": "tpu"}, ValueError, "device is 'tpu'"),
        ({"max_contacts": 0}, ValueError, "max_contacts is 0"),
        ({"num_threads": 0}, ValueError, "num_threads is 0"),
        ({"num_threads": 100000}, ValueError, "num_threads is 100000, expected 0 to 1024"),
        ({"per_env": "body_mass"}, TypeError, "per_env is the string"),
        ({"per_env": ("body_mas",)}, ValueError, "near: 'body_mass'"),
    ],
)
def test_arguments_are_refused_by_name(walker, arguments, error, says):
    with pytest.raises(error) as caught:
        Simulation(walker, **arguments)
    assert says in str(caught.value)


def test_a_model_is_needed():
    with pytest.raises(TypeError, match="model is str, expected stiction.Model"):
        Simulation(WALKER)


def test_cuda_says_what_to_do_where_it_cannot_be_had(walker):
    from stiction import _build, info

    if _build.CUDA and info.cuda_facts()["devices"]:
        pytest.skip("there is a GPU")
    with pytest.raises(ValueError, match=r"device is 'cuda', but this .*device='cpu'"):
        Simulation(walker, device="cuda")


def test_stages_are_timed_on_a_gpu_alone(walker):
    with pytest.raises(ValueError, match="on a CUDA device only"):
        Simulation(walker, device="cpu")._world.time_step()


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"iterations": -1}, ValueError, "iterations is -1"),
        ({"iterations": 2.5}, TypeError, "iterations is 2.5, expected an integer"),
        ({"penalty": "none"}, ValueError, "penalty is 'none', expected one of 'normal_tangential'"),
        ({"relaxation": 2}, ValueError, "relaxation is 2.0"),
        ({"erp": "x"}, TypeError, "erp is 'x', expected a number"),
        ({"margin": math.nan}, ValueError, "margin is nan"),
        ({"warm_start": "yes"}, TypeError, "warm_start is 'yes'"),
    ],
)
def test_solver_options_are_refused_by_name(options, error, says):
    with pytest.raises(error) as caught:
        SolverOptions(**options)
    assert says in str(caught.value)


def test_solver_options_reach_the_solver(walker):
    few, many = (shaken(walker, solver=SolverOptions(iterations=n, fallback=False)) for n in (3, 40))
    assert few.certificate.iterations.max() <= 2 * 3  # twice where a contact that was to wait closes after all
    assert 2 * 3 < many.certificate.iterations.max() <= 2 * 40
    assert not np.array_equal(few.qpos, many.qpos)


def test_every_use_after_close_raises(walker):
    sim = Simulation(walker, 2)
    state, qpos, contact = sim.get_state(), sim.qpos, sim.contact
    sim.close()
    sim.close()
    uses = (
        lambda: sim.step(), lambda: sim.forward(), lambda: sim.reset(), lambda: sim.get_state(), lambda: sim.qpos,
        lambda: sim.set_state(state), lambda: sim.clear_status(), lambda: sim.timestep, lambda: sim.xpos,
        lambda: setattr(sim, "ctrl", np.zeros((2, 2))), lambda: contact.geom, lambda: sim.contact_problem(0),
        lambda: sim.params.body_mass, lambda: sim.certificate.converged,
    )  # fmt: skip
    for use in uses:
        with pytest.raises(ValueError, match="closed"):
            use()
    assert qpos.shape == (2, 9) and "closed" in repr(sim)


def test_step_takes_whole_numbers_from_zero(walker):
    sim = Simulation(walker)
    with pytest.raises(TypeError):
        sim.step(1.5)
    with pytest.raises(ValueError, match="-1"):
        sim.step(-1)
    sim.step(0)
    assert sim.time[0] == 0
    sim.step(np.int64(4))
    assert sim.time[0] == pytest.approx(4 * walker.timestep)


# ---- reset, states, forward


def test_reset_touches_the_chosen_environments_alone(walker):
    for chosen in (2, [2], np.array([2]), [-3], slice(2, 3), np.arange(5) == 2):
        sim = shaken(walker)
        before = {name: getattr(sim, name).copy() for name in (*STATE, "xpos")}
        sim.reset(chosen)
        others = np.arange(5) != 2
        for name, values in before.items():
            np.testing.assert_array_equal(getattr(sim, name)[others], values[others])
        np.testing.assert_array_equal(sim.qpos[2], walker.qpos0.astype(np.float32))
        assert sim.time[2] == 0 and not sim.qvel[2].any() and not sim.ctrl[2].any() and sim.contact.count[2] == 0
        np.testing.assert_allclose(sim.xpos[2, 1], walker.qpos0[:3], atol=1e-6)


def test_reset_refuses_what_is_not_there(walker):
    sim = Simulation(walker, 5)
    with pytest.raises(ValueError, match="expected 0 to 4"):
        sim.reset([5])
    with pytest.raises(ValueError, match=r"mask has shape \(4,\), expected \(5,\)"):
        sim.reset(np.ones(4, bool))
    with pytest.raises(TypeError, match="float64"):
        sim.reset([0.5])
    with pytest.raises(ValueError, match="no keyframe named 'crunch'; near: 'crouch'"):
        sim.reset(keyframe="crunch")
    with pytest.raises(ValueError, match="keyframe is 1, expected 0 to 0"):
        sim.reset(keyframe=1)
    sim.reset([])
    assert sim.time.sum() == 0


def test_keyframes_by_name_and_by_number(walker):
    for key in ("crouch", 0):
        sim = Simulation(walker, 2)
        sim.reset([1], keyframe=key)
        np.testing.assert_allclose(sim.qpos[1], walker.key_qpos[0], rtol=1e-6)
        np.testing.assert_allclose(sim.qvel[1], walker.key_qvel[0], rtol=1e-6)
        np.testing.assert_allclose(sim.qpos[0], walker.qpos0, rtol=1e-6)


def test_after_a_reset_the_steps_repeat_to_the_bit(walker):
    sim = Simulation(walker, 5)
    runs = []
    for _ in range(2):
        sim.reset()
        sim.ctrl[:] = np.linspace(-1, 1, 10).reshape(5, 2)
        sim.step(100)
        runs.append((sim.qpos.copy(), sim.qvel.copy(), sim.contact.impulse.copy(), sim.certificate.r_con.copy()))
    assert runs[0][2].any()
    for one, two in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_from_a_state_the_steps_repeat_to_the_bit(walker, dtype):
    sim = shaken(walker, dtype=dtype)
    state, contact = sim.get_state(), sim.contact.impulse.copy()
    assert contact.any()
    sim.step(50)
    after = sim.qpos.copy()
    assert not np.array_equal(after, state.qpos)
    sim.set_state(state)
    np.testing.assert_array_equal(sim.qpos, state.qpos)
    np.testing.assert_array_equal(sim.contact.impulse, contact)
    sim.step(50)
    np.testing.assert_array_equal(sim.qpos, after)

    other = Simulation(walker, 5, dtype=dtype)
    other.set_state(state)
    other.step(50)
    np.testing.assert_array_equal(other.qpos, after)


def test_impulses_are_numbers_wherever_there_is_no_flag(walker):
    for dtype in ("float32", "float64"):
        sim = shaken(walker, dtype=dtype)
        sim.step(50)
        assert not (sim.status & Status.NON_FINITE).any() and np.isfinite(sim.contact.impulse).all()


def test_a_state_of_another_shape_is_refused_whole(walker):
    sim, state = shaken(walker), Simulation(walker, 4).get_state()
    before = sim.qpos.copy()
    with pytest.raises(ValueError, match=r"state.qpos has shape \(4, 9\), expected \(5, 9\)"):
        sim.set_state(state)
    with pytest.raises(TypeError, match="state is dict"):
        sim.set_state({})
    np.testing.assert_array_equal(sim.qpos, before)


def test_forward_brings_poses_to_written_positions(walker):
    sim = Simulation(walker, 2)
    assert sim.xpos[1, 1, 2] == pytest.approx(0.5)
    sim.qpos[1, :3] = (1, 2, 3)
    sim.qvel[1, :3] = (4, 5, 6)
    sim.forward()
    np.testing.assert_allclose(sim.xpos[1, 1], (1, 2, 3))
    np.testing.assert_allclose(sim.body_linvel[1, 1], (4, 5, 6), rtol=1e-6)
    np.testing.assert_allclose(sim.site_xpos[1, 0], (1, 2, 3.05), rtol=1e-6)
    np.testing.assert_allclose(sim.xpos[0, 1], (0, 0, 0.5))
    assert sim.time.sum() == 0


def test_after_a_step_the_poses_are_those_of_qpos(walker):
    sim = shaken(walker)
    poses = {name: getattr(sim, name).copy() for name in ("xpos", "xquat", "body_linvel", "site_xpos")}
    sim.forward()
    for name, values in poses.items():
        np.testing.assert_array_equal(getattr(sim, name), values)


# ---- contacts and status


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("solver", ["subadmm", "pgs"])
def test_a_resting_sphere_is_held_by_its_weight(sphere, dtype, solver):
    sim = Simulation(sphere, 3, dtype=dtype, solver=solver)
    sim.step(100)
    weight = 2 * 9.81
    c = sim.contact
    assert c.count.tolist() == [1, 1, 1] and c.active[:, 0].all() and not c.active[:, 1:].any()
    assert c.geom[0, 0].tolist() == [sphere.geom_id("floor"), sphere.geom_id("ball")]
    np.testing.assert_allclose(c.impulse[:, 0], [[0, 0, weight * sim.timestep]] * 3, atol=1e-5 * weight)
    np.testing.assert_allclose(c.frame[0, 0, 2], (0, 0, 1), atol=1e-6)
    np.testing.assert_allclose(c.frame[0, 0] @ c.frame[0, 0].T, np.eye(3), atol=1e-6)
    assert np.linalg.det(c.frame[0, 0].astype(float)) == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(c.pos[0, 0], (0, 0, 0), atol=1e-3)
    assert abs(c.dist[0, 0]) < 1e-4
    np.testing.assert_allclose(sim.net_contact_force[0], [[0, 0, -weight], [0, 0, weight]], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(sim.qpos[0, :3], (0, 0, 0.1), atol=1e-4)
    assert (c.geom[:, 1:] == -1).all() and sim.certificate.converged.all() and not sim.status.any()


def test_a_pushed_sphere_slides_with_coulombs_friction(sphere):
    sim = Simulation(sphere, 1)
    sim.qvel[0, 0] = 3.0
    sim.step()
    frame, impulse = sim.contact.frame[0, 0].astype(float), sim.contact.impulse[0, 0].astype(float)
    force = frame.T @ impulse / sim.timestep
    assert force[0] == pytest.approx(-force[2], rel=1e-3)  # mu = 1, against the motion, on geom[1], the ball
    assert sim.qvel[0, 0] == pytest.approx(3 - 9.81 * sim.timestep, rel=1e-4)


@pytest.mark.parametrize("integrator", ["implicit", "euler", "midpoint"])
def test_the_contact_problem_balances_with_its_impulses(walker, integrator):
    sim = shaken(walker, dtype="float64", integrator=integrator)
    # The base turns in the step, and with it the axes of its angular velocity and, under "implicit", its centre.
    straight = [6, 7] if integrator == "implicit" else [0, 1, 2, 6, 7]
    for env in range(5):
        p = sim.contact_problem(env)
        count, rows = len(p.mu), len(p.lower)
        assert p.J.shape == (3 * count, 8) and p.J_row.shape == (rows, 8) and p.A.shape == (8, 8)
        v = np.linalg.solve(p.A, p.b + p.J.T @ p.impulse + p.J_row.T @ p.row_impulse)
        np.testing.assert_allclose(v[straight], sim.qvel[env, straight], atol=1e-9)
        np.testing.assert_allclose(p.A, p.A.T, atol=1e-12)
    with pytest.raises(ValueError, match="env is 5, expected 0 to 4"):
        sim.contact_problem(5)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_poisoned_environment_freezes_alone(walker, value):
    healthy, sick = (shaken(walker, num_envs=20) for _ in range(2))
    random = np.random.default_rng(7)
    actions = random.uniform(-1, 1, (20, 2))
    healthy.ctrl, sick.ctrl = actions, actions
    sick.ctrl[3, 1] = value
    for sim in (healthy, sick):
        sim.step(20)
    others = np.arange(20) != 3
    assert sick.status[3] & Status.NON_FINITE and not (sick.status[others] & Status.NON_FINITE).any()
    assert Status.counts(sick.status)["NON_FINITE"] == 1
    for name in ("qpos", "qvel", "xpos", "net_contact_force", "time"):
        np.testing.assert_array_equal(getattr(sick, name)[others], getattr(healthy, name)[others])
    frozen = sick.qpos[3].copy()
    assert np.isfinite(frozen).all()
    sick.ctrl[3] = 0
    sick.step(5)
    np.testing.assert_array_equal(sick.qpos[3], frozen)

    fresh = Simulation(walker, 1)
    sick.reset([3])
    assert sick.status[3] == 0
    sick.ctrl[3], fresh.ctrl[0] = (0.2, -0.4), (0.2, -0.4)
    sick.step(50), fresh.step(50)
    np.testing.assert_array_equal(sick.qpos[3], fresh.qpos[0])
    assert not sick.status[3] & Status.NON_FINITE


def test_status_sticks_until_it_is_cleared(walker):
    sim = shaken(walker, solver=SolverOptions(iterations=1, certify=1e-9, fallback=False))
    assert (sim.status & Status.NOT_CONVERGED).all()
    sim.clear_status([0, 1])
    assert not sim.status[:2].any() and sim.status[2:].all()
    sim.clear_status()
    assert not sim.status.any()


def test_the_numbers_of_status_are_those_of_the_core():
    assert [flag.value for flag in Status] == [1, 2, 4, 8, 16, 32]
    assert Status(3) == Status.NON_FINITE | Status.NOT_CONVERGED
    assert [flag for flag in Status if flag not in Status.ALARM] == [Status.FALLBACK]


def test_repr_says_what_it_is(walker, device):
    sim = Simulation(walker, 7, integrator="euler", timestep=0.004)
    text = repr(sim)
    assert sim.device.startswith(device)
    for part in ("num_envs=7", f"device='{sim.device}'", "dtype='float32'", "timestep=0.004", "'euler'", "'subadmm'"):
        assert part in text


def test_threads_do_not_change_the_bits(walker):
    one, two = (shaken(walker, num_envs=100, num_threads=n) for n in (1, 2))
    assert (one.num_threads, two.num_threads) == (1, 2)
    np.testing.assert_array_equal(one.qpos, two.qpos)
    np.testing.assert_array_equal(one.contact.impulse, two.contact.impulse)


def test_a_compliant_floor_yields_by_the_weight_over_its_stiffness():
    """And a near-rigid one by the allowance."""
    rigid = stiction.Model.from_mjcf("""
        <mujoco>
          <option timestep="0.002"/>
          <worldbody>
            <geom name="floor" type="plane" size="1 1 1"/>
            <body pos="0 0 0.1"><freejoint/><geom name="ball" type="sphere" size="0.1" mass="2"/></body>
          </worldbody>
        </mujoco>""")
    weight = 2 * 9.81
    for geoms, depth in (("floor", weight / 1e4), (("floor", 1), 2 * weight / 1e4), ((), 1e-6)):
        model = rigid.with_material(1e4, 0.05, geoms=geoms)
        assert model.mjmodel is rigid.mjmodel
        assert model.import_report == rigid.import_report
        simulation = stiction.Simulation(model, dtype="float64")
        simulation.step(2000)
        assert 0.1 - simulation.qpos[0, 2] == pytest.approx(depth, rel=1e-3)
    with pytest.raises(ValueError, match="geom_stiffness"):
        rigid.with_material(-1.0)
    with pytest.raises(KeyError, match="no geom named 'wall'"):
        rigid.with_material(1e4, geoms="wall")
    with pytest.raises(IndexError):
        rigid.with_material(1e4, geoms=7)
