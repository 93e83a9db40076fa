"""Simulations on CUDA (a GPU, or tests/cuda_emulator): the CPU's answers, bits that do not depend on the batch.

Then devices, streams and memory.
"""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import golden
import numpy as np
import pytest
import stiction
from conftest import is_emulated
from scenes import hinged_pair_and_stack, scene
from stiction import Simulation, SolverOptions, Status, _core, info

ROOT = Path(__file__).resolve().parents[2]
MODEL, _ = golden.load()
MODELS = ("mixed", "ant", "humanoid", "quadruped")
#: Contact states of each model; all that a GPU is asked for with STICTION_FULL_TESTS=1.
STATES = 10_000 if os.environ.get("STICTION_FULL_TESTS") else 200
CERTIFICATE = ("r_dyn", "r_con", "r_split", "r_ccp", "r_mdp", "r_row", "r_cone", "penetration", "scale", "num_contacts")

pytestmark = pytest.mark.skipif(
    not is_emulated() and not info.cuda_facts()["devices"], reason="no GPU, and STICTION_CUDA is not EMULATED"
)


def load(name):
    if name == "mixed":
        return MODEL
    if name == "stack":
        return stiction.Model.from_mjcf(hinged_pair_and_stack())
    file = {"quadruped": "velocity/quadruped.xml"}.get(name, f"{name}/{name}.xml")
    return stiction.Model.from_mjcf(ROOT / "envs" / file)


def fallen(model, num_envs, solver, steps=300):
    """Environments in contact, each in a state of its own."""
    sim = Simulation(model, num_envs, device="cpu", solver=solver)
    random = np.random.default_rng(3)
    sim.qvel = random.normal(0, 0.3, sim.qvel.shape)
    for _ in range(steps // 5):
        sim.ctrl = 0.3 * random.uniform(-1, 1, sim.ctrl.shape)
        sim.step(5)
    return sim


def step_is_the_cpus(model, num_envs, solver, near, digits=1e-5, integrator="implicit"):
    """Same state, same warm start, same number of iterations on the same form of the equations, both against double.

    near: the share of environments whose velocities are the CPU's to ``digits``, or on a GPU, which rounds otherwise,
    as near as single precision is to double. Returns the certificates, by where.
    """
    settled = fallen(model, num_envs, SolverOptions(iterations=20, tolerance=0, fallback=False))
    assert (settled.certificate.num_contacts > 0).mean() > 0.8
    state, ctrl, v, ratio, told = settled.get_state(), np.array(settled.ctrl), {}, {}, {}
    for kind, where in {"cpu": ("cpu", "float32"), "cuda": ("cuda", "float32"), "exact": ("cpu", "float64")}.items():
        sim = Simulation(model, num_envs, device=where[0], dtype=where[1], solver=solver, integrator=integrator)
        sim.set_state(state)
        sim.ctrl = ctrl
        sim.step()
        v[kind] = np.array(sim.qvel, np.float64)
        told[kind] = {name: np.array(getattr(sim.certificate, name), np.float64) for name in CERTIFICATE}
        ratio[kind] = told[kind]["r_con"] / told[kind]["scale"]

    def apart(a, b, share):
        scale = np.maximum(1, np.linalg.norm(v["exact"], axis=1))
        return np.quantile(np.abs(v[a] - v[b]).max(axis=1) / scale, share)

    assert apart("cpu", "cuda", near) <= (digits if is_emulated() else max(digits, 2 * apart("cpu", "exact", near)))
    for share in (0.5, 0.9):
        assert apart("cuda", "exact", share) <= 1.5 * apart("cpu", "exact", share) + 1e-7
        assert np.quantile(ratio["cuda"], share) <= 1.5 * np.quantile(ratio["cpu"], share) + 1e-7
    return told


@pytest.mark.parametrize("anderson", [False, True], ids=["plain", "anderson"])
@pytest.mark.parametrize("name", MODELS)
def test_a_step_from_contact_is_the_cpus(name, anderson):
    # Anderson's least squares magnify what differs in the last digit where its directions nearly coincide.
    solver = SolverOptions(iterations=20, tolerance=0, fallback=False, anderson=anderson)
    step_is_the_cpus(load(name), STATES, solver, 0.9 if anderson else 0.99)


@pytest.mark.parametrize("integrator", ["euler", "midpoint", "implicit_euler", "explicit_euler"])
def test_a_step_by_every_integrator_is_the_cpus(integrator):
    solver = SolverOptions(iterations=20, tolerance=0, fallback=False, anderson=False)
    step_is_the_cpus(MODEL, STATES, solver, 0.99, integrator=integrator)


@pytest.mark.parametrize("solver", stiction.solver_names())
@pytest.mark.parametrize("name", ["mixed", "stack"])
def test_every_solver_is_the_cpus(name, solver):
    """And so is what it is judged by, field by field, while there is something to judge: after few iterations."""
    # Without what magnifies rounding: extrapolation, and in float ADMM's eliminations with a penalty small beside X X'.
    # And SAP in two steps and without sweeps, CANAL in three passes, or nothing is left: of residuals that are all
    # rounding another contact's is the largest, and they are told at its V.
    plain = {"subadmm": {"anderson": False}, "admm": {"accelerate": False, "penalty": 1.0}}
    plain = {"iterations": 6} | (plain | {"sap": {"sweeps": 0, "iterations": 2}, "canal": {"iterations": 3}}).get(
        solver, {}
    )
    digits = 5e-5 if solver == "admm" else 1e-5
    options = SolverOptions(name=solver, tolerance=0, fallback=False, **plain)
    told = step_is_the_cpus(load(name), 40, options, 0.9, digits)
    cpu, cuda, exact = told["cpu"], told["cuda"], told["exact"]
    assert (cuda["num_contacts"] == cpu["num_contacts"]).mean() >= 0.9 and cpu["num_contacts"].max() >= 5
    for field in CERTIFICATE:
        unit = cpu["scale"] if field in ("r_con", "r_split", "r_ccp", "r_mdp", "scale") else 1
        apart, rounded = (np.quantile(np.abs(cpu[field] - x[field]) / unit, 0.9) for x in (cuda, exact))
        # By the V of a slow tree the rounding of a fast one's is a larger part of it: 4.
        most = 3e-4 if field == "r_row" else 4 * digits
        assert apart <= (most if is_emulated() else max(most, 2 * rounded)), field
    judged = {"sap": "r_ccp", "bisection": "r_mdp"}.get(solver, "r_con")
    assert (cpu[judged] / cpu["scale"]).max() > 1e-5 and (cuda["r_mdp"] > 0).any() == (solver == "bisection")


@pytest.mark.parametrize("options", [{}, {"tolerance": 0, "iterations": 20}], ids=["residual stop", "fixed"])
def test_batch_size_and_position_do_not_show(options):
    starts, solver = golden.starts(MODEL), SolverOptions(**options)

    def run(order):
        sim = Simulation(MODEL, len(order), device="cuda", solver=solver)
        sim.qpos, sim.qvel, sim.ctrl = (values[order] for values in starts)
        sim.step(60)
        sim.step(5)
        names = ("qpos", "qvel", "status"), ("r_con", "r_row", "iterations")
        rows = [
            np.asarray(getattr(of, name))
            for of, group in zip((sim, sim.certificate), names, strict=True)
            for name in group
        ]
        return [b"".join(np.ascontiguousarray(row[env]).tobytes() for row in rows) for env in range(len(order))]

    alone = [run(np.array([start]))[0] for start in range(golden.STATES)]
    assert len(set(alone)) == golden.STATES
    random = np.random.default_rng(0)
    for num_envs in (2, 3, 33, 70):  # the emulated device has room for 32 at once
        order = random.integers(0, golden.STATES, num_envs)
        assert run(order) == [alone[start] for start in order], num_envs


PROGRAM = """
import hashlib, sys
sys.path[:0] = {path!r}
import conftest, golden, numpy as np
from stiction import Simulation, info
info.cuda_facts = lambda: {{"driver": "13.0", "devices": [{{"name": "emulated", "architecture": "90"}}]}}
model, _ = golden.load()
sim = Simulation(model, 7, device="cuda", per_env=("body_mass",))
sim.qpos, sim.qvel, sim.ctrl = golden.starts(model)
sim.params.body_mass[:] *= np.linspace(0.5, 2, 7)[:, None]
force = sim.net_contact_force
sim.step(40)
told = [sim.qpos, sim.qvel, sim.xpos, sim.contact.impulse, force, sim.certificate.r_con]
print(hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in told)).hexdigest())
"""


@pytest.mark.skipif(not is_emulated(), reason="a GPU's lanes come in its own order")
def test_the_order_of_lanes_and_blocks_does_not_show():
    found = set()
    for seed in ("1", "2", "77"):
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(path=[str(Path(__file__).parent), *sys.path])],
            capture_output=True,
            text=True,
            env=os.environ | {"STICTION_EMULATOR_SEED": seed},
        )
        assert run.returncode == 0, run.stderr
        found.add(run.stdout)
    assert len(found) == 1


def test_reset_poses_and_contacts_of_some_environments_are_the_cpus():
    model = load("ant")
    solver = SolverOptions(iterations=20, tolerance=0, fallback=False, anderson=False)
    settled = fallen(model, 9, solver)
    state, sims = settled.get_state(), []
    for device in ("cpu", "cuda"):
        sim = Simulation(model, 9, device=device, solver=solver, max_contacts=5)
        sims.append(sim)
        watched = sim.xpos, sim.contact.pos, sim.net_contact_force, sim.body_linvel
        sim.set_state(state)
        sim.step(2)
        sim.reset([1, 4, 8])
        sim.forward()
        assert all(np.isfinite(array).all() for array in watched)
    cpu, cuda = sims
    digits = 1e-3 if is_emulated() else 1e-2  # after 20 passes contacts still magnify what a GPU rounds otherwise
    for name in ("qpos", "qvel", "xpos", "xquat", "body_linvel", "body_angvel", "net_contact_force", "time"):
        np.testing.assert_allclose(getattr(cuda, name), getattr(cpu, name), rtol=digits, atol=digits, err_msg=name)
    for name in ("geom", "active", "count"):
        np.testing.assert_array_equal(getattr(cuda.contact, name), getattr(cpu.contact, name), err_msg=name)
    for name in ("pos", "frame", "dist", "impulse"):
        np.testing.assert_allclose(getattr(cuda.contact, name), getattr(cpu.contact, name), atol=1e-3, err_msg=name)
    assert not cuda.contact.active[[1, 4, 8]].any() and cuda.contact.active.any()
    np.testing.assert_array_equal(cuda.qpos[[1, 4, 8]], np.tile(model.qpos0.astype(np.float32), (3, 1)))


def test_pairs_that_lanes_share_are_found_in_the_cpus_order():
    """Between moving bodies each lane looks at pairs of its own."""
    shapes = ("sphere", ".05"), ("box", ".05 .04 .03"), ("capsule", ".03 .05"), ("cylinder", ".04 .03")
    bodies = "".join(
        f'<body pos="{0.08 * (i % 3)} {0.09 * (i // 3 % 2)} {1 + 0.09 * (i // 6)}"><freejoint/>'
        f'<geom type="{shapes[i % 4][0]}" size="{shapes[i % 4][1]}"/></body>'
        for i in range(12)
    )
    model, told = stiction.Model.from_mjcf(scene(bodies, timestep=0.005, gravity=(0, 0, 0))), []
    for device in ("cpu", "cuda"):
        sim = Simulation(model, 8, device=device, max_contacts=120)
        sim.qvel = np.random.default_rng(4).normal(0, 0.5, sim.qvel.shape)
        sim.forward()
        told.append(sim)
    cpu, cuda = told
    assert (cpu.contact.active & (cpu.contact.geom.min(-1) > 0)).sum() >= 8 * 25
    for name in ("geom", "active", "count"):
        np.testing.assert_array_equal(getattr(cuda.contact, name), getattr(cpu.contact, name), err_msg=name)
    np.testing.assert_allclose(cuda.contact.dist, cpu.contact.dist, atol=2e-6)


@pytest.mark.parametrize("iterations", [3, 5])
def test_few_iterations_are_no_reason_to_give_up(iterations):
    """What they leave is flagged; robots stand on it."""
    for name, lowest in (("ant", 0.3), ("quadruped", 0.05)):
        sim = Simulation(load(name), 4, device="cuda", solver=SolverOptions(iterations=iterations, tolerance=0))
        random = np.random.default_rng(0)
        for _ in range(30):
            sim.ctrl = 0.3 * random.uniform(-1, 1, sim.ctrl.shape)
            sim.step(5)
        assert np.asarray(sim.qpos)[:, 2].min() > lowest
        assert not sim.status.any() or not (np.asarray(sim.status) & Status.NON_FINITE).any()


def test_it_refuses_by_name():
    with pytest.raises(ValueError, match="float64.*device='cpu'"):
        Simulation(MODEL, device="cuda", dtype="float64")
    with pytest.raises(ValueError, match="contact_problem is computed on the CPU only"):
        stiction.Simulation(MODEL, device="cuda").contact_problem(0)
    with pytest.raises(ValueError, match="inverse_dynamics is computed on the CPU only"):
        stiction.Simulation(MODEL, device="cuda").inverse_dynamics(np.zeros((1, MODEL.nv)))


# ---- devices, streams, memory

emulated = pytest.mark.skipif(not is_emulated(), reason="STICTION_CUDA is not EMULATED")


def emulator():
    """The emulator's counters and streams."""
    library = ctypes.CDLL(_core.__file__)
    library.cuda_emulator_stream.restype = ctypes.c_void_p
    return library


def states(sim, steps=20):
    """From the same beginning, whatever was before."""
    sim.reset()
    sim.qpos, sim.qvel, sim.ctrl = (values[: sim.num_envs] for values in golden.starts(MODEL))
    sim.step(steps)
    return np.array(sim.qpos)


@emulated
def test_a_simulation_stays_on_its_device():
    """On the emulator memory of the other device is a fault, and so is a stream of the other."""
    first, second = (Simulation(MODEL, 3, device=f"cuda:{number}", per_env=("body_mass",)) for number in (0, 1))
    assert (first.device, second.device) == ("cuda:0", "cuda:1")
    assert Simulation(MODEL, device="cuda").device == "cuda:0"
    expected = states(first)
    np.testing.assert_array_equal(states(second), expected)
    for sim, ordinal in ((first, 0), (second, 1)):
        assert sim._arrays.memory("qpos").__dlpack_device__() == (2, ordinal)
        sim.reset([1])
        sim.forward()
        assert np.isfinite(sim.xpos).all()
        sim._world.set_stream(emulator().cuda_emulator_stream(ordinal))
        np.testing.assert_array_equal(states(sim), expected)
    second._world.set_stream(emulator().cuda_emulator_stream(0))
    with pytest.raises(RuntimeError, match="cudaErrorInvalidResourceHandle"):
        second.step()


@emulated
@pytest.mark.parametrize("task", ["stiction/Ant-v0", "stiction/QuadrupedVelocity-v0"])
@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_environments_stay_on_their_device(task, backend):
    if backend == "torch":
        pytest.importorskip("torch")
    told = []
    for number in (0, 1):
        envs = stiction.make_vec(task, 3, device=f"cuda:{number}", backend=backend)
        assert envs.device == f"cuda:{number}"
        envs.reset(seed=1)
        told.append(np.asarray(envs.step(np.full((3, *envs.single_action_space.shape), 0.3, np.float32))[0]))
    np.testing.assert_array_equal(*told)


def test_a_device_that_is_not_there_is_refused():
    number = len(info.cuda_facts()["devices"])
    with pytest.raises(ValueError, match=f"device is 'cuda:{number}', but this machine has {number} GPUs"):
        Simulation(MODEL, device=f"cuda:{number}")


@emulated
def test_work_keeps_its_order_when_the_stream_changes():
    """On the emulator a stream runs when it is waited for, before all others that no event orders."""
    told = []
    for streams in ([0], [emulator().cuda_emulator_stream(0) for _ in range(2)]):
        sim = Simulation(MODEL, 3, device="cuda")
        sim.qpos, sim.qvel, sim.ctrl = (values[:3] for values in golden.starts(MODEL))
        for step in range(6):
            sim._world.set_stream(streams[step % len(streams)])
            sim._world.step(2, False)
        told.append(np.array(sim.qpos))
    np.testing.assert_array_equal(*told)


@emulated
def test_waiting_for_one_simulation_leaves_others_alone():
    sims = [Simulation(MODEL, 3, device="cuda") for _ in range(2)]
    for sim in sims:
        sim._world.set_stream(emulator().cuda_emulator_stream(0))
    sims[0]._world.step(2, False)
    queued = emulator().cuda_emulator_pending()
    sims[1].step(2)
    assert emulator().cuda_emulator_pending() == queued > 0
    sims[0]._world.wait()
    assert emulator().cuda_emulator_pending() == 0


def test_too_many_environments_are_refused_before_anything_is_allocated():
    """A simulation that is there goes on, and one that fits can be made."""
    sim = Simulation(MODEL, 3, device="cuda")
    expected = states(Simulation(MODEL, 3, device="cuda"))
    with pytest.raises(
        MemoryError, match=r"200000000 environments need .* GB \(arrays .* bytes per environment.* free"
    ):
        Simulation(MODEL, 200_000_000, device="cuda")
    np.testing.assert_array_equal(states(sim), expected)
    np.testing.assert_array_equal(states(Simulation(MODEL, 3, device="cuda")), expected)


@emulated
def test_what_a_simulation_says_it_takes_is_what_it_takes():
    library = emulator()
    library.cuda_emulator_used.restype = ctypes.c_long
    for options in ({}, {"per_env": ("body_mass", "geom_friction")}):
        for num_envs in (3, 300):
            before = library.cuda_emulator_used()
            sim = Simulation(MODEL, num_envs, device="cuda", **options)
            told = sim.memory
            assert set(told) == {"arrays", "records", "workspaces", "local"}
            taken = library.cuda_emulator_used() - before
            # Every allocation is whole pages, and the model's tables come on top.
            assert 0 <= taken - sum(told.values()) + told["local"] < 300_000, (told, taken)
            sim.close()


def test_local_memory_is_counted_once():
    """Kernels share it: a second simulation takes none."""
    first = Simulation(MODEL, 3, device="cuda")
    assert Simulation(MODEL, 3, device="cuda").memory["local"] == 0
    assert first.memory["local"] >= 0


# ---- the host's mirrors


def test_what_is_written_into_a_view_that_is_held_is_what_the_next_step_sees():
    """And what the step computes is in the view afterwards: as on the CPU."""
    sims = [Simulation(MODEL, 5, device=device) for device in ("cpu", "cuda")]
    views = [(sim.qpos, sim.qvel, sim.ctrl, sim.time, sim.xpos, sim.certificate.r_con) for sim in sims]
    for sim, (qpos, qvel, ctrl, time, xpos, _) in zip(sims, views, strict=True):
        for view, values in zip((qpos, qvel, ctrl), golden.starts(MODEL), strict=True):
            view[:] = values[:5]
        for _ in range(3):
            qvel[:, 0] += 0.25
            ctrl[:] = 0.1
            sim.step(2)
        assert (time > 0).all() and not (xpos == 0).all()
    for cpu, cuda in zip(*views, strict=True):
        np.testing.assert_allclose(cuda, cpu, rtol=1e-3, atol=1e-3)
    assert sims[1].qpos is views[1][0]


def test_writes_between_two_reads_are_kept():
    """What computes a derived array, or clears a mask, takes along what was written before and leaves it."""
    sim = Simulation(MODEL, 4, device="cuda")
    qpos, status = sim.qpos, sim.status
    qpos[:, 2] = 1.25
    assert (sim.qpos[:, 2] == 1.25).all()
    height = sim.xpos[:, 1, 2].copy()
    sim.clear_status([1])
    sim.forward()
    qpos[:, 2] += 1
    sim.forward()
    np.testing.assert_allclose(sim.xpos[:, 1, 2], height + 1, rtol=1e-6)
    sim.reset([2])
    assert qpos[2, 2] == np.float32(MODEL.qpos0[2]) and qpos[1, 2] == 2.25
    assert not status.any()


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_a_simulation_in_environments_may_be_read_and_written_between_calls(backend):
    """Positions, parameters and steps of the episode, through NumPy's views, whatever the batch computes with."""
    told, torch = [], pytest.importorskip("torch")

    def numbers(x):
        return x.cpu().numpy() if backend == "torch" else x

    for device in ("cpu", "cuda"):
        envs = stiction.make_vec("stiction/Ant-v0", 4, device=device, backend=backend, per_env=("body_mass",))
        envs.reset(seed=0)
        actions = np.full((4, 8), 0.2, np.float32)
        actions = torch.from_numpy(actions) if backend == "torch" else actions
        sim = envs.simulation
        for _ in range(3):
            sim.qpos[1, 2] += 0.1
            sim.params.body_mass[2] *= 1.2
            envs.episode_length[3] = 998
            results = envs.step(actions)
            assert numbers(results[3]).tolist() == [False, False, False, False]
            told.append((device, numbers(results[0]), np.array(sim.qpos), np.array(sim.params.body_mass)))
        envs.episode_length[3] = 999
        assert numbers(envs.step(actions)[3]).tolist() == [False, False, False, True]
        assert np.asarray(envs.episode_length)[3] == 0
    for (_, *cpu), (_, *cuda) in zip(told[:3], told[3:], strict=True):
        for a, b in zip(cpu, cuda, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-3, atol=2e-3)


def test_a_state_of_environments_goes_between_devices():
    cpu, cuda = (stiction.make_vec("stiction/Hopper-v0", 3, device=device) for device in ("cpu", "cuda"))
    for env in (cpu, cuda):
        env.reset(seed=1)
    for _ in range(5):
        cpu.step(np.zeros((3, 3), np.float32))
    cuda.set_state(cpu.get_state())
    state = cuda.get_state()
    for name, values in cpu.get_state().items():
        np.testing.assert_array_equal(state[name], values, err_msg=name)
    assert cuda.episode_length.tolist() == [5, 5, 5]


@emulated
def test_only_what_was_asked_for_is_copied():
    """A step of NumPy's arrays moves what the user holds, and one of tensors nothing."""
    library = emulator()
    library.cuda_emulator_copied.restype = ctypes.c_long
    sim = Simulation(MODEL, 8, device="cuda")
    sim.step()
    before = library.cuda_emulator_copied()
    sim.step()
    assert library.cuda_emulator_copied() == before
    ctrl, qpos, count = sim.ctrl, sim.qpos, sim.contact.count
    before = library.cuda_emulator_copied()
    sim.step()
    assert library.cuda_emulator_copied() - before == 2 * (ctrl.nbytes + qpos.nbytes) + count.nbytes


@emulated
def test_a_step_that_is_timed_is_a_step():
    """What is watched follows, also where contacts had been found without one."""
    told = []
    for timed in (False, True):
        sim = fallen(MODEL, 3, "subadmm").get_state(), Simulation(MODEL, 3, device="cuda")
        sim[1].set_state(sim[0])
        sim[1].forward()
        if timed:
            assert all(ms >= 0 for ms in sim[1]._world.time_step().values())
        else:
            sim[1].step()
        told.append([np.array(values) for values in (sim[1].qpos, sim[1].contact.impulse, sim[1].xpos)])
    for once, again in zip(*told, strict=True):
        np.testing.assert_array_equal(once, again)
