"""Makes the oracle's module, which is built for tests only, importable beside the package; chooses the device.

STICTION_TEST_DEVICE=cuda: simulations and batches in NumPy whose test does not say are on the GPU; what CUDA refuses is
skipped. In a build with STICTION_CUDA=EMULATED the GPU is tests/cuda_emulator, and tensors there are the CPU's.
"""

import ctypes
import importlib.util
import os
import sys
import types
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("STICTION_BUILD", Path(__file__).resolve().parents[2] / "build"))
DEVICE = os.environ.get("STICTION_TEST_DEVICE", "cpu")

sys.path.append(str(BUILD / "python"))  # at the end: an installed stiction comes first


def is_emulated() -> bool:
    from stiction import _build

    return _build.CUDA == "emulated"


@pytest.fixture(autouse=True)
def device(monkeypatch, request):
    """The device that simulations are on by default."""
    if DEVICE != "cpu" and request.node.get_closest_marker("on_cpu"):
        pytest.skip("asks for what is computed on the CPU only")
    if is_emulated():
        emulate(monkeypatch)
    if DEVICE != "cpu":
        on_device(monkeypatch, DEVICE)
    return DEVICE


@pytest.fixture(scope="session")
def nvrtc():
    """NVRTC, which compiles without a GPU."""
    from stiction.model_kernels import Nvrtc

    try:
        return Nvrtc()
    except OSError:
        pytest.skip("no NVRTC here: pip install nvidia-cuda-nvrtc")


def on_device(monkeypatch, device: str) -> None:
    from stiction import Simulation, env_core, task_core
    from stiction.vector_env import VectorEnv

    refused = ("simulations on CUDA are in float32", "runs on the CPU only")
    make, make_envs, checked = Simulation.__init__, VectorEnv.__init__, env_core.checked_device

    def made(self, model, num_envs=1, **options):
        if options.get("array", "native") == "native" or is_emulated():
            options = {"device": device, **options}
        try:
            make(self, model, num_envs, **options)
        except ValueError as error:
            if any(text in str(error) for text in refused):
                pytest.skip(str(error))
            raise

    def envs_made(self, *arguments, **options):
        if options.get("backend", "numpy") != "numpy" and options.get("device", "auto") == "auto" and not is_emulated():
            options["device"] = "cpu"
        make_envs(self, *arguments, **options)

    def on_the_cpu_only(self, *arguments, **options):
        pytest.skip("contact_problem and inverse_dynamics are computed on the CPU only")

    monkeypatch.setattr(Simulation, "__init__", made)
    for name in ("contact_problem", "inverse_dynamics"):
        monkeypatch.setattr(Simulation, name, on_the_cpu_only)
    monkeypatch.setattr(VectorEnv, "__init__", envs_made)
    for module in (env_core, task_core):
        monkeypatch.setattr(module, "checked_device", lambda name: device if name == "auto" else checked(name))


def emulate(monkeypatch) -> None:
    """The emulated devices as a driver would tell of them; torch has their memory as the CPU's.

    All of the package runs as on a GPU but for where a capsule or a copy ends up. Torch does not queue, so with tensors
    kernels run at once.
    """
    from stiction import _core, backend, info
    from stiction.vector_env import VectorEnv

    facts = {"driver": "13.0", "devices": [{"name": "emulated", "architecture": "90"}] * 2}
    monkeypatch.setattr(info, "cuda_facts", lambda: facts)
    monkeypatch.setenv("STICTION_EMULATOR", "lazy")
    monkeypatch.setattr(VectorEnv, "data_device", property(lambda self: "cpu"))
    if importlib.util.find_spec("torch"):
        import torch

        def cpu_tensor(capsule):
            os.environ["STICTION_EMULATOR"] = "eager"
            ctypes.CDLL(_core.__file__).cuda_emulator_be_eager()
            return torch.utils.dlpack.from_dlpack(on_the_cpu(capsule))

        monkeypatch.setattr(backend, "capsule_tensor", cpu_tensor)
        monkeypatch.setattr(backend, "torch_device", lambda device: torch.device("cpu"))
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: types.SimpleNamespace(cuda_stream=0))


class Tensor(ctypes.Structure):
    """DLPack's DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]  # fmt: skip


def tensor_of(capsule) -> Tensor:
    """What an unversioned capsule tells."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Tensor.from_address(get(capsule, b"dltensor"))


def on_the_cpu(capsule):
    """The capsule, relabelled as memory of the CPU."""
    told = tensor_of(capsule)
    assert told.device_type == 2, "expected the memory of a CUDA device"
    told.device_type, told.device_id = 1, 0
    return capsule
