"""The headers of cuda/ compile under NVRTC, which has no standard library, without a GPU."""

from pathlib import Path

import pytest
from stiction import Model, _core
from stiction.model_kernels import nvrtc_options

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = [*nvrtc_options(ROOT / "cuda", 90), "--ptxas-options=-v", f"-I{ROOT}"]


@pytest.mark.parametrize("model", ["ant/ant.xml", "velocity/quadruped.xml"])
def test_the_dynamics_of_a_robot_with_limbs_alike_fit_into_registers_alone(nvrtc, model):
    source = """#include <model_shape.h>
    #include "tests/dynamics/free_velocity.h"
    using namespace stiction;
    using L = Lane<float, ModelShape, LockstepTile<4>>;
    extern "C" __global__ void __launch_bounds__(128, 1) free_velocity_kernel(
        const ModelView<ModelShape, float>* __restrict__ m, Options<float> options, const float* q, const float* v,
        float* out, int nv) {
      const int world = (blockIdx.x * 128 + threadIdx.x) / 4;
      testing::FreeMotionSpace<L> w;
      testing::free_velocity(LockstepTile<4>(), *m, options, q + world * nv, v + world * nv, w, out + world * nv);
    }"""
    shape = _core.model_shape(Model.from_mjcf(ROOT / "envs" / model).core, springs_vary=False, max_contacts=0)
    _, log = nvrtc.image_of(source, OPTIONS, shape)
    assert "free_velocity_kernel" in log
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in log, log


def test_an_error_in_a_header_is_reported(nvrtc):
    with pytest.raises(RuntimeError, match="nothing"):
        nvrtc.image_of('#include "core/group.h"\nint x = stiction::nothing;', OPTIONS)
