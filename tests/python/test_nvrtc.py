"""The headers of cuda/ and the step compile under NVRTC, which has no standard library, without a GPU."""

from pathlib import Path

import nvrtc_library
import pytest

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ["--std=c++20", "--gpu-architecture=sm_90", "--ptxas-options=-v", f"-I{ROOT}", f"-I{ROOT / 'cuda'}"]
OPTIONS += ["--device-as-default-execution-space"]  # lambdas in headers that know host and device


@pytest.fixture(scope="module")
def nvrtc():
    library = nvrtc_library.load()
    if library is None:
        pytest.skip("no NVRTC here: pip install nvidia-cuda-nvrtc")
    return library


@pytest.mark.parametrize("shape", ["AntShape", "QuadrupedShape"])
def test_fused_kernels_compile_into_registers_alone(nvrtc, shape):
    source = f"""#include "kernels/fused.cuh"
    template __global__ void stiction::fused_step_kernel<stiction::{shape}, 4>(
        const stiction::ModelView<stiction::{shape}, float>*, stiction::Options<float>, stiction::BatchArrays<float>,
        int);"""
    compiled, log = nvrtc_library.compile_source(nvrtc, source, OPTIONS)
    assert compiled, log
    assert "fused_step_kernel" in log
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in log, log


def test_an_error_in_a_header_is_reported(nvrtc):
    compiled, log = nvrtc_library.compile_source(nvrtc, '#include "core/group.h"\nint x = stiction::nothing;', OPTIONS)
    assert not compiled
    assert "nothing" in log
