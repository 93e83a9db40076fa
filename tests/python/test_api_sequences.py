"""Random sequences of calls, right and wrong: what is wrong raises an error of a kind that says so, and harms nothing.

STICTION_FULL_TESTS=1 makes 10,000 sequences instead of 300.
"""

import os
import runpy
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from stiction.randomisation import Latency, Noise, Parameter, Push  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

SEQUENCES = 10_000 if os.environ.get("STICTION_FULL_TESTS") == "1" else 300
CALLS = 8  # of a sequence
N = 3
#: What may be raised: errors that say what the caller did wrong.
TYPED = (ValueError, TypeError, KeyError, IndexError, AttributeError)
TYPED += (gymnasium.error.ResetNeeded, gymnasium.error.ClosedEnvironmentError)
ANT = "stiction/Ant-v0"
REACH = runpy.run_path(str(Path(__file__).resolve().parents[2] / "examples" / "reach.py"))["Reach"]
RANDOMIZE = [Parameter("dof_damping", 0.5, 2.0, every=(0.1, 0.2)), Latency(0, 2), Noise(0.01)]


def arrays(random, shape):
    """Arrays that are meant for ``shape``, of any dtype, layout, order, kind and value, and things that are none."""
    good = random.uniform(-1, 1, shape)
    choices = [
        lambda: good,
        lambda: good.astype(random.choice([np.float32, np.float16, np.int64, np.int8, np.bool_, np.uint32])),
        lambda: good.astype(random.choice(["complex128", "U4", "O", "S3", "M8[s]"])),
        lambda: np.asfortranarray(good),
        lambda: np.repeat(good, 2, axis=0)[::2],
        lambda: good[::-1],
        lambda: np.broadcast_to(good[:1], shape),
        lambda: np.zeros([n + random.integers(-1, 2) for n in shape]),
        lambda: np.zeros((*shape, 1)),
        lambda: good.ravel(),
        lambda: good.T,
        lambda: np.zeros(0),
        lambda: np.full(shape, random.choice([np.nan, np.inf, -1e38, 1e300])),
        lambda: good.tolist(),
        lambda: [[1.0], [2.0, 3.0]],
        lambda: random.choice(["", "abc", "zeros"]),
        lambda: random.choice([None, 3, -1.5, True, 10**400, object()]),
        lambda: {"a": good},
        lambda: np.lib.stride_tricks.as_strided(good, shape, (0,) * len(shape)),
        lambda: np.frombuffer(b"\0" * 8 * good.size).reshape(shape),
    ]
    if torch is not None:
        choices += [
            lambda: torch.from_numpy(good),
            lambda: torch.from_numpy(good).float().requires_grad_(),
            lambda: torch.from_numpy(good).to(random.choice([torch.bfloat16, torch.int32, torch.complex64])),
            lambda: torch.zeros(shape, device="meta"),
            lambda: torch.from_numpy(good).to_sparse(),
            lambda: torch.from_numpy(np.asfortranarray(good)).expand(*shape),
        ]
    return choices[random.integers(len(choices))]()


def whole_numbers(random):
    return random.choice(np.array([0, 1, -1, 3, 2**31, 2**63, 2**64, 10**30, 0.5, np.nan, "a", None, True], object))


def masks(random):
    wrong = arrays(random, (N,))
    return [np.array([True, False, True]), np.ones(N, bool), np.zeros(N, bool), [0, 2], [5], wrong][random.integers(6)]


def calls_on_envs(envs, random):
    """One call on a vector environment, to be made."""
    shape = envs.action_space.shape
    names = ["step_dt", "render", "nothing", "close", "__class__", "simulation", "metadata"]

    def seeds():
        return (
            random.choice(np.array([whole_numbers(random), None], object)) if random.random() < 0.7 else masks(random)
        )

    choices = [
        lambda: envs.step(arrays(random, shape)),
        lambda: envs.step(random.uniform(-1, 1, shape)),
        lambda: envs.reset(),
        lambda: envs.reset(seed=seeds()),
        lambda: envs.reset(options={"reset_mask": masks(random)}),
        lambda: envs.reset(options=random.choice(np.array([None, {}, {"a": 1}, 3, "reset_mask"], object))),
        lambda: envs.render(),
        lambda: envs.get_attr(names[random.integers(len(names) - 4)]),
        lambda: envs.call(random.choice(["nothing", "render"])),
        lambda: envs.set_attr("note", arrays(random, (N,))),
        lambda: envs.episode_length.__setitem__(slice(None), random.integers(-2, 6, N)),
        lambda: envs.set_task_parameters(**{random.choice(["ctrl_cost_weight", "x", "effort"]): arrays(random, ())}),
        lambda: envs.simulation.clear_status(),
        lambda: setattr(envs, "max_episode_steps", 3),
    ]
    return choices[random.integers(len(choices))]


def calls_on_simulation(sim, random):
    """One call on a simulation, to be made."""
    model = sim.model

    def assign(name):
        setattr(sim, name, arrays(random, (N, getattr(model, {"qpos": "nq", "ctrl": "nu"}.get(name, "nv")))))

    def parameter():
        name = random.choice(["body_mass", "geom_friction", "qpos0", "mass", "gravity"])
        setattr(sim.params, name, arrays(random, (N, *np.shape(getattr(model, name)))))

    def state():
        kept = sim.get_state()
        name = random.choice(["qpos", "qvel", "ctrl", "time", "records", "xfrc_applied"])
        setattr(kept, name, arrays(random, np.shape(getattr(kept, name))))
        sim.set_state(kept)

    choices = [
        lambda: assign(random.choice(["qpos", "qvel", "ctrl", "qfrc_applied", "xpos", "time"])),
        lambda: sim.step(whole_numbers(random) if random.random() < 0.5 else 2) if small(random) else None,
        lambda: sim.step(),
        lambda: sim.forward(),
        lambda: sim.reset(masks(random), keyframe=random.choice(np.array([None, 0, 7, "x", 0.5], object))),
        lambda: sim.reset(slice(0, 2)),
        lambda: sim.clear_status(masks(random)),
        parameter,
        state,
        lambda: sim.set_state(arrays(random, (N,))),
        lambda: sim.contact_problem(whole_numbers(random)),
        lambda: sim.contact.pos[0],
        lambda: getattr(sim, random.choice(["nothing", "qpos", "certificate"])),
        lambda: sim.dump(whole_numbers(random), "/nowhere/dump.npz"),
    ]
    return choices[random.integers(len(choices))]


def small(random):
    return random.random() < 0.9


def attempt(call):
    """Whether a call was refused; anything but a typed error is a failure."""
    try:
        call()
    except TYPED:
        return True
    except OSError as error:  # a path that is not there
        assert "/nowhere" in str(error)
        return True
    return False


def make_envs(random, number):
    mode = ["SameStep", "NextStep", "Disabled"][number % 3]
    kind = [ANT, REACH][(number // 3) % 2]
    randomize = [None, RANDOMIZE][(number // 6) % 2]
    backend = "torch" if torch is not None and (number // 12) % 2 else "numpy"
    return stiction.make_vec(
        kind, N, autoreset_mode=mode, backend=backend, randomize=randomize, num_threads=1, max_episode_steps=4
    )


def works(envs):
    """A batch that is open is sound after a reset, whatever was done to it."""
    envs.episode_length[:] = 0
    observations, _ = envs.reset(seed=0)
    assert np.isfinite(np.asarray(observations)).all()
    results = envs.step(np.zeros(envs.action_space.shape))
    assert np.isfinite(np.asarray(results[0])).all()
    assert np.isfinite(np.asarray(results[1])).all()


def test_sequences_on_environments():
    refused = 0
    for number in range(SEQUENCES // 2):
        random = np.random.default_rng(number)
        envs = make_envs(random, number)
        for _ in range(CALLS):
            refused += attempt(calls_on_envs(envs, random))
        envs.close() if number % 2 else works(envs)
        if number % 2:
            for call in (envs.reset, lambda envs=envs: envs.step(np.zeros(envs.action_space.shape)), envs.render):
                with pytest.raises(gymnasium.error.ClosedEnvironmentError):
                    call()
            attempt(calls_on_envs(envs, random))
        envs.close()
    assert 0.2 < refused / (SEQUENCES // 2 * CALLS) < 0.9


def test_sequences_on_simulations():
    ant = stiction.Model.from_mjcf(str(Path(stiction.__file__).parent / "assets" / "ant.xml"))
    refused = 0
    for number in range(SEQUENCES // 2):
        random = np.random.default_rng(number)
        options = {"per_env": ("body_mass", "geom_friction")} if number % 2 else {}
        array = "torch" if torch is not None and number % 3 == 0 else "native"
        sim = stiction.Simulation(ant, N, num_threads=1, array=array, **options)
        for _ in range(CALLS):
            refused += attempt(calls_on_simulation(sim, random))
        view = sim.qpos
        sim.close()
        for _ in range(3):
            attempt(calls_on_simulation(sim, random))
        with pytest.raises(ValueError, match="closed"):
            sim.step()
        np.asarray(view).sum()  # the memory is still there
    assert 0.1 < refused / (SEQUENCES // 2 * CALLS) < 0.9


def test_constructors():
    random = np.random.default_rng(0)
    refused = 0
    for _ in range(100):
        options = {
            "num_envs": [2, whole_numbers(random)][random.integers(2)],
            "backend": random.choice(np.array(["numpy", "torch", "jax", None, 3], object)),
            "autoreset_mode": random.choice(np.array(["SameStep", "x", None, 0], object)),
            "max_episode_steps": whole_numbers(random),
            "randomize": [None, RANDOMIZE, 3, [Push(1.0)], ["mass"]][random.integers(5)],
            "dtype": random.choice(np.array(["float32", "int8", None, 5], object)),
            "solver": random.choice(np.array(["subadmm", "pgs", "x", None], object)),
        }
        few = dict(list(options.items())[: random.integers(1, 4)])
        large = few.get("num_envs")
        if isinstance(large, int) and large > 10**6:  # asking for more memory than there is is no error of the API
            few["num_envs"] = 2
        refused += attempt(lambda few=few: stiction.make_vec(ANT, num_threads=1, **few).close())
    assert 20 < refused < 100
