"""Machine code of models' own kernels: what nvcc believes nobody has stored is found in it."""

from pathlib import Path

import pytest
from stiction import Model, _core
from stiction.machine_code import functions, undefined_in
from stiction.model_kernels import Compiler, nvrtc_options

ROOT = Path(__file__).resolve().parents[2]
#: The function in which it lost a component of a Humanoid's forces, on its own: seconds instead of a minute and a half.
AT_MEAN = """#include <model_shape.h>
#include "dynamics/coriolis.h"
using namespace stiction;
using L = Lane<float, ModelShape, Tile<4>>;
struct Own {
  Kinematics<L> kin;
  PerLink<L, RigidInertia<float>> I;
  TreeVector<L> v0, from, v, base, b, free;
  TreeMatrix<L> A, factor;
};
extern "C" __global__ void kernel(const L::Model* m, Own* all, float part) {
  Own own = all[threadIdx.x];
  const CoriolisInputs<L> in{0.003f, own.kin, own.I, own.v0, own.from, own.A, own.factor};
  move_at_mean<L>(Tile<4>(), *m, in, own.v, part, own.base, part > 0, own.b, own.free);
  all[threadIdx.x].b = own.b, all[threadIdx.x].free = own.free;
}"""


@pytest.mark.parametrize(
    "robot",
    [
        "humanoid/humanoid",
        "velocity/walking_humanoid",
        "arm/arm_lift",
        "hand/hand",
        "half_cheetah/half_cheetah",
        "walker2d/walker2d",
    ],
)
def test_nothing_is_lost_in_loops_over_links(nvrtc, robot):
    path = ROOT / f"envs/{robot}.xml"
    shape = _core.model_shape(Model.from_mjcf(path).core, springs_vary=False, max_contacts=0)
    image, _ = nvrtc.image_of(AT_MEAN, [*nvrtc_options(ROOT / "cuda", 90), "--relocatable-device-code=true"], shape)
    assert any("move_at_mean" in name for name in functions(image)) and undefined_in(image) == []


NAN = """extern "C" __global__ void kernel(unsigned* x) { x[threadIdx.x] = %s; }"""


@pytest.mark.parametrize(("number", "lost"), [("0x7fc00000u", ["kernel"]), ("0x7f800000u", [])])
def test_it_is_found_and_refused(nvrtc, monkeypatch, number, lost):
    image, _ = nvrtc.image_of(NAN % number, ["--gpu-architecture=sm_90"])
    assert undefined_in(image) == lost

    class Linker:
        def link(self, image, objects, architecture):
            return b"linked"

    compiler = object.__new__(Compiler)
    compiler.nvrtc, compiler.linker = nvrtc, Linker()
    monkeypatch.setattr(nvrtc, "compile", lambda shape, architecture: (image, ""), raising=False)
    monkeypatch.setattr("stiction.model_kernels.OBJECTS", ROOT / "cuda/kernels")
    if lost:
        with pytest.raises(RuntimeError, match=r"NVRTC [\d.]+ compiles kernel to numbers that nothing has stored"):
            compiler("", 90)
    else:
        assert compiler("", 90) == b"linked"
