"""Makes the oracle's module, which is built for tests only, importable beside the package; chooses the device.

STICTION_TEST_DEVICE=cuda: simulations and batches in NumPy whose test does not say are on the GPU; what CUDA refuses is
skipped. In a build with STICTION_CUDA=EMULATED the GPU is tests/cuda_emulator, and tensors there are the CPU's.
"""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("STICTION_BUILD", Path(__file__).resolve().parents[2] / "build"))
DEVICE = os.environ.get("STICTION_TEST_DEVICE", "cpu")

sys.path.append(str(BUILD / "python"))  # at the end: an installed stiction comes first


def is_emulated() -> bool:
    from stiction import _build

    return _build.CUDA == "emulated"


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """The device that simulations are on by default."""
    if is_emulated():
        emulate(monkeypatch)
    if DEVICE != "cpu":
        on_device(monkeypatch, DEVICE)
    return DEVICE


def on_device(monkeypatch, device: str) -> None:
    from stiction import Simulation, custom_task, env_core
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

    def contact_problem(self, env):
        pytest.skip("contact_problem is computed on the CPU only")

    monkeypatch.setattr(Simulation, "__init__", made)
    monkeypatch.setattr(Simulation, "contact_problem", contact_problem)
    monkeypatch.setattr(VectorEnv, "__init__", envs_made)
    for module in (env_core, custom_task):
        monkeypatch.setattr(module, "checked_device", lambda name: device if name == "auto" else checked(name))


def emulate(monkeypatch) -> None:
    """The emulated device as a driver would tell of it; torch has the memory as the CPU's, and runs at once."""
    import numpy as np
    from stiction import info, simulation, simulation_arrays
    from stiction.vector_env import VectorEnv

    facts = {"driver": "13.0", "devices": [{"name": "emulated", "architecture": "90"}]}
    monkeypatch.setattr(info, "cuda_facts", lambda: facts)
    view = simulation_arrays.torch_view

    def torch_view(managed: bool):
        tensor = view(False)
        if not managed:
            return tensor
        os.environ["STICTION_EMULATOR"] = "eager"
        return lambda array: tensor(np.asarray(array).view(np.ndarray))

    monkeypatch.setenv("STICTION_EMULATOR", "lazy")
    monkeypatch.setattr(simulation_arrays, "torch_view", torch_view)
    monkeypatch.setattr(VectorEnv, "data_device", property(lambda self: "cpu"))
    monkeypatch.setattr(simulation, "_torch_stream", lambda: 0)
    if importlib.util.find_spec("torch"):
        for name in ("tensor_batch", "tensor_randomiser"):
            monkeypatch.setattr(importlib.import_module(f"stiction.{name}"), "torch_view", torch_view)
