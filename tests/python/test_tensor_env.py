"""Tensors of a compiled task's own memory: the same numbers as NumPy's, results that stay, and on a GPU no waiting."""

import ctypes

import conftest
import numpy as np
import pytest
import stiction
from stiction import _build, _core, backend
from stiction.goals import GOALS
from stiction.randomisation import Gains, Latency, Noise, Parameter, Push
from stiction.registration import ENVIRONMENTS
from stiction.single_env import SingleEnv

torch = pytest.importorskip("torch")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

MODES = ("SameStep", "NextStep", "Disabled")
IDS = list(ENVIRONMENTS)
EMULATED = _build.CUDA == "emulated"
real_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
gpu = pytest.mark.skipif(not torch.cuda.is_available() and not EMULATED, reason="no GPU")
emulated = pytest.mark.skipif(not EMULATED, reason="STICTION_CUDA is not EMULATED")


def same(tensors, arrays, name=""):
    """Trees of tensors and of arrays with equal entries; where a mask says that nothing is told, anything goes."""
    if isinstance(arrays, dict):
        assert tensors.keys() == arrays.keys(), name
        for key, value in arrays.items():
            if key == "final_obs":
                for env in np.flatnonzero(arrays["_final_obs"]):
                    np.testing.assert_array_equal(tensors[key][env].cpu().numpy(), value[env])
            else:
                same(tensors[key], value, f"{name}.{key}")
    elif isinstance(arrays, tuple):
        for number, (tensor, array) in enumerate(zip(tensors, arrays, strict=True)):
            same(tensor, array, f"{name}.{number}")
    else:
        assert tensors.cpu().numpy().dtype == arrays.dtype, name
        np.testing.assert_array_equal(tensors.cpu().numpy(), arrays, err_msg=name)


@pytest.mark.parametrize("mode", MODES)
def test_tensors_are_the_arrays(mode, device):
    options = {"device": device, "autoreset_mode": mode, "max_episode_steps": 4, "num_threads": 2}
    arrays, tensors = (stiction.make_vec("stiction/Hopper-v0", 5, backend=b, **options) for b in ("numpy", "torch"))
    same(tensors.reset(seed=3), arrays.reset(seed=3))
    given = {"seed": [1, None, 3, 4, 5], "options": {"reset_mask": np.array([True, True, False, False, True])}}
    same(tensors.reset(**given), arrays.reset(**given))
    random = np.random.default_rng(0)
    for _ in range(11):
        actions = random.uniform(-1, 1, (5, 3)).astype(np.float32)
        told, expected = tensors.step(torch.from_numpy(actions)), arrays.step(actions)
        if expected[-1].get("final_obs") is None:  # tensors come with final_obs at every step
            for name in [n for n in told[-1] if "final" in n]:
                assert not told[-1].pop(name).any() if name.startswith("_") else told[-1].pop(name) is not None
        same(told, expected)
        if mode == "Disabled" and (ended := expected[2] | expected[3]).any():
            again = {"seed": [9] * 5, "options": {"reset_mask": ended}}
            same(tensors.reset(**again), arrays.reset(**again))


def test_results_are_not_overwritten():
    envs = stiction.make_vec("stiction/Ant-v0", 3, backend="torch")
    observations, _ = envs.reset(seed=0)
    first = envs.step(torch.ones(3, 8))
    kept = observations.clone(), [value.clone() for value in first[:4]], first[-1]["x_position"].clone()
    for _ in range(5):
        envs.step(-torch.ones(3, 8))
    assert torch.equal(observations, kept[0])
    assert all(torch.equal(a, b) for a, b in zip(first, kept[1], strict=False))
    assert torch.equal(first[-1]["x_position"], kept[2])


def test_actions_of_any_kind_of_tensor():
    def rewards(actions):
        envs = stiction.make_vec("stiction/Ant-v0", 2, backend="torch")
        envs.reset(seed=0)
        return envs.step(actions)[1]

    actions = torch.linspace(-1, 1, 16).reshape(2, 8)
    expected = rewards(actions)
    for other in (
        actions.double(),
        actions.T.contiguous().T,
        actions.clone().requires_grad_(),
        actions.numpy(),
        actions.tolist(),
    ):
        assert torch.equal(rewards(other), expected)
    for wrong, kind in ((actions[:1], ValueError), (torch.tensor(1.0), TypeError), (actions.to_sparse(), TypeError)):
        with pytest.raises(kind, match="actions"):
            rewards(wrong)


def test_devices_are_named():
    with pytest.raises(ValueError, match="device is 'tpu', expected 'auto', 'cpu' or 'cuda'"):
        stiction.make_vec("stiction/Ant-v0", device="tpu")


def test_random_numbers_are_numpys():
    terms = [
        Parameter("body_mass", 0.5, 2.0, each=True, distribution="log_uniform"),
        Parameter("geom_friction", 0.2, 1.0, operation="set", columns=0),
        Parameter("gravity", -1.0, 1.0, operation="add", names=("x", "y"), each=True, every=(0.1, 0.4)),
        *Gains(0.5, 1.5, names=("hip_1", "ankle_1")),
        Push(1.0, every=(0.1, 0.3), spin=0.5),
        Latency(0, 2),
        Noise(0.1),
    ]
    options = {"max_episode_steps": 7, "randomize": terms}
    arrays, tensors = (stiction.make_vec("stiction/Ant-v0", 6, backend=b, **options) for b in ("numpy", "torch"))
    names = "body_mass", "geom_friction", "gravity", "actuator_gainprm"

    def alike(told, expected):
        np.testing.assert_allclose(told.numpy(), expected, rtol=1e-3, atol=1e-3)  # a step magnifies roundings

    alike(tensors.reset(seed=3)[0], arrays.reset(seed=3)[0])
    given = {"seed": [1, 2, 3, 4, 5, 6], "options": {"reset_mask": np.array([True, False, True, False, False, True])}}
    alike(tensors.reset(**given)[0], arrays.reset(**given)[0])
    random = np.random.default_rng(0)
    for _ in range(16):
        actions = random.uniform(-1, 1, (6, 8)).astype(np.float32)
        told, expected = tensors.step(torch.from_numpy(actions)), arrays.step(actions)
        for name in names:
            alike(
                torch.as_tensor(np.asarray(getattr(tensors.simulation.params, name))),
                getattr(arrays.simulation.params, name),
            )
        for name in ("qpos", "qvel", "ctrl"):
            alike(torch.as_tensor(np.asarray(getattr(tensors.simulation, name))), getattr(arrays.simulation, name))
            setattr(tensors.simulation, name, getattr(arrays.simulation, name))
        alike(told[0], expected[0])
        for env in np.flatnonzero(expected[2] | expected[3]):
            alike(told[-1]["final_obs"][env], expected[-1]["final_obs"][env])


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_final_info_of_others_is_zero(backend):
    """Of an end that was not finite, too, once others end."""
    envs = stiction.make_vec("stiction/Hopper-v0", 2, backend=backend)
    envs.reset(seed=0)
    last = []
    for ended in range(2):
        envs.simulation.qpos[ended] = np.nan
        last.append(envs.step(np.zeros((2, 3), np.float32))[4]["final_info"])
    assert np.isnan(float(last[0]["x_velocity"][0]))
    for name, values in last[1].items():
        assert values[0] == 0, name


class Slide(stiction.Task):
    """Computes in NumPy's arrays."""

    model = """<mujoco><worldbody><body><joint name="x" type="slide"/><geom size="0.1"/></body></worldbody>
        <actuator><motor joint="x"/></actuator></mujoco>"""

    def observe(self):
        return {"state": self.sim.qpos, "speed": self.sim.qvel}

    def reward(self, action):
        return action[:, 0]


class TensorSlide(Slide):
    array = "torch"


def test_one_environment_of_a_task_in_torch_tells_arrays():
    env, batch = SingleEnv(env_id=TensorSlide), stiction.make_vec(Slide, 1)
    told, expected = env.reset(seed=3)[0], batch.reset(seed=3)[0]
    for action in np.linspace(-1, 1, 3, dtype=np.float32):
        assert isinstance(told, np.ndarray)
        np.testing.assert_array_equal(told, expected[0])
        told, expected = env.step(np.array([action]))[0], batch.step(np.array([[action]]))[0]


# ---- on a GPU


@gpu
def test_tensors_of_a_task_in_numpy_are_on_the_gpu(monkeypatch):
    kind = "meta" if EMULATED else "cuda"  # there a place of its own for what is brought to the GPU
    if EMULATED:
        monkeypatch.setattr(backend, "torch_device", lambda device: torch.device(kind))
    envs = stiction.make_vec(Slide, 3, backend="torch", device="cuda")
    for tensor in tree_leaves((envs.reset(seed=0), envs.step(torch.zeros(3, 1)))):
        assert tensor.device.type == kind


@gpu
@pytest.mark.parametrize("env_id", IDS)
def test_the_gpu_does_as_the_cpu(env_id):
    """From the same state and memory one control step gives the same but for rounding; ends begin new episodes."""
    cpu, cuda = (stiction.make_vec(env_id, 33, backend="torch", device=d, max_episode_steps=3) for d in ("cpu", "cuda"))
    (a, _), (b, _) = cpu.reset(seed=0), cuda.reset(seed=0)
    assert EMULATED or b.device.type == "cuda"
    torch.testing.assert_close(b.cpu(), a, rtol=1e-5, atol=1e-5)
    random = torch.Generator().manual_seed(0)
    for step in range(4):
        cuda.simulation.set_state(cpu.simulation.get_state())
        actions = 0.1 * torch.randn(33, *cpu.single_action_space.shape, generator=random)
        x, y = cpu.step(actions), cuda.step(actions.to(b.device))
        torch.testing.assert_close(y[1].cpu(), x[1], rtol=1e-3, atol=1e-3)
        assert torch.equal(y[3].cpu(), x[3])
        if step == 2:  # a new episode, from the same random numbers
            torch.testing.assert_close(y[0].cpu(), x[0], rtol=1e-5, atol=1e-5)


@gpu
@pytest.mark.parametrize("terms", [None, [Parameter("body_mass", 0.5, 2.0), Push(1.0, every=(0.1, 0.3))]])
def test_tensors_on_a_gpu_are_the_batchs_own_memory(terms):
    envs = stiction.make_vec("stiction/Ant-v0", 3, backend="torch", device="cuda", randomize=terms)
    buffers = envs._task.buffers()
    for name, tensor in envs._batch._at.items():
        assert tensor.data_ptr() == buffers[name].__array_interface__["data"][0], name
    if terms:
        masses, push = (event for event, *_ in envs._random._events)
        array = envs.simulation._world.device_array
        assert masses._values.data_ptr() == array("params.body_mass").__array_interface__["data"][0]
        assert push._velocities.data_ptr() == array("qvel").__array_interface__["data"][0]


@real_gpu
def test_a_step_does_not_wait():
    """With torch complaining of every synchronisation of its own, and work still queued when `step` returns."""
    envs = stiction.make_vec("stiction/Ant-v0", 1024, backend="torch", device="cuda")
    envs.reset(seed=0)
    actions = torch.zeros(1024, 8, device="cuda")
    envs.step(actions)  # what is made at the first call
    torch.cuda.synchronize()
    before = torch.cuda.Event()
    torch.cuda._sleep(2_000_000_000)  # clock cycles: about a second
    before.record()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            envs.step(actions)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert not before.query()
    torch.cuda.synchronize()


TERMS = [
    Parameter("body_mass", 0.5, 2.0, each=True, every=(0.1, 0.2)),
    Push(1.0, every=(0.1, 0.3)),
    Latency(0, 2),
    Noise(0.1),
]


class NothingFromTheHost(TorchDispatchMode):
    """Every tensor of every operation holds nothing."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)]
        assert all(tensor.is_meta for tensor in tensors), function
        return result


@emulated
@pytest.mark.parametrize("env_id", ["stiction/Ant-v0", "stiction/QuadrupedVelocity-v0", "stiction/ArmLift-v0"])
@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize("terms", [None, TERMS, "goal"], ids=["plain", "randomised", "goal"])
def test_no_call_of_a_step_waits(env_id, mode, terms, monkeypatch):
    """Torch's part with tensors of shapes alone: what would ask for one of their numbers raises, and nothing may come
    from the host. The simulation's part: its kernels are still queued when `step` returns, and nobody has waited."""
    goal, terms = terms == "goal", None if terms == "goal" else terms
    if goal and (env_id not in GOALS or mode == "NextStep"):
        pytest.skip("no goals")
    monkeypatch.setattr(
        backend,
        "capsule_tensor",
        lambda capsule: torch.utils.dlpack.from_dlpack(conftest.on_the_cpu(capsule)).to("meta"),
    )
    monkeypatch.setattr(backend, "torch_device", lambda device: torch.device("meta"))
    counters = ctypes.CDLL(_core.__file__)
    envs = stiction.make_vec(
        env_id,
        5,
        backend="torch",
        device="cuda",
        autoreset_mode=mode,
        max_episode_steps=2,
        randomize=terms[:1] + terms[2:] if terms and "Arm" in env_id else terms,  # a Push needs a free base
        observations="goal" if goal else None,
    )
    envs.reset(seed=0)
    actions = torch.zeros(5, *envs.single_action_space.shape, device="meta")
    monkeypatch.setattr(envs, "_checked_actions", lambda given: given)  # refuses tensors that hold nothing
    envs.simulation._world.wait()
    waits = counters.cuda_emulator_waits()
    with NothingFromTheHost():
        for step in range(5):
            results = envs.step(actions)
            assert counters.cuda_emulator_pending() >= 4 * (step + 1)
            observed = results[0].values() if goal else results[:1]
            assert all(tensor.is_meta for tensor in (*observed, *results[1:4]))
    assert counters.cuda_emulator_waits() == waits
    envs.simulation._world.wait()
    assert counters.cuda_emulator_pending() == 0


@gpu
def test_arrays_come_from_the_gpu_too():
    tensors, arrays = (stiction.make_vec("stiction/Ant-v0", 7, backend=b, device="cuda") for b in ("torch", "numpy"))
    tensors.reset(seed=1)
    arrays.reset(seed=1)
    actions = np.full((7, 8), 0.3, np.float32)
    np.testing.assert_array_equal(tensors.step(torch.from_numpy(actions))[0].cpu().numpy(), arrays.step(actions)[0])


def test_every_task_has_rows_for_the_gpu():
    """The instantiations in envs/cuda are of all tasks that the registry knows."""
    source = (stiction_source() / "envs/cuda/task_kernels.cu").read_text()
    assert source.count("\nSTICTION_ROWS_OF(") == len(_core.task_names()) + 1  # and the template


def stiction_source():
    from pathlib import Path

    return Path(__file__).resolve().parents[2]
