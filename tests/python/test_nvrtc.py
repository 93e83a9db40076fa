"""The headers of cuda/ compile under NVRTC, which has no standard library, without a GPU."""

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
def test_the_dynamics_of_a_fixed_shape_fit_into_registers_alone(nvrtc, shape):
    source = f"""#include "tests/dynamics/free_velocity.h"
    using namespace stiction;
    using L = Lane<float, {shape}, LockstepTile<4>>;
    extern "C" __global__ void __launch_bounds__(128, 1) free_velocity_kernel(
        const ModelView<{shape}, float>* __restrict__ m, Options<float> options, const float* q, const float* v,
        float* out, int nv) {{
      const int world = (blockIdx.x * 128 + threadIdx.x) / 4;
      testing::FreeMotionSpace<L> w;
      testing::free_velocity(LockstepTile<4>(), *m, options, q + world * nv, v + world * nv, w, out + world * nv);
    }}"""
    compiled, log = nvrtc_library.compile_source(nvrtc, source, OPTIONS)
    assert compiled, log
    assert "free_velocity_kernel" in log
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in log, log


def test_the_whole_step_compiles_for_a_tile(nvrtc):
    source = """#include "step/solve_rows.h"
    #include "step/step_world.h"
    using namespace stiction;
    using L = Lane<float, Capacity, Tile<4>>;
    extern "C" __global__ void step_kernel(const ModelView<Capacity, float>* m, StepOptions<float> options,
                                           BatchArrays<float> arrays, Workspace<L>* w) {
      const Tile<4> g;
      const Rows<float> rows{0, 1};
      const SteppedWorlds<L> worlds{options, arrays, rows, {arrays.records}};
      StepState<L> s;
      begin_steps<L>(g, *m, worlds, *w, s);
      if (take_steps<L>(g, *m, worlds, 1, *w, s)) settle<L>(g, *m, worlds, *w, s);
      end_steps<L>(g, *m, worlds, 1, s);
    }"""
    ptx = [option.replace("sm_90", "compute_90") for option in OPTIONS if not option.startswith("--ptxas")]
    compiled, log = nvrtc_library.compile_source(nvrtc, source, ptx)
    assert compiled, log


def test_an_error_in_a_header_is_reported(nvrtc):
    compiled, log = nvrtc_library.compile_source(nvrtc, '#include "core/group.h"\nint x = stiction::nothing;', OPTIONS)
    assert not compiled
    assert "nothing" in log
