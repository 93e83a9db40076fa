"""Kernels compiled for one model: the bits of the build's, from a cache the second time, words where there are none."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import is_emulated
from model_sources import ROOT
from scenes import body, box, scene, sphere
from stiction import Model, Simulation, Status, _build, _core, cli, model_kernels

ANT = ROOT / "envs/ant/ant.xml"
CHEETAH = ROOT / "envs/half_cheetah/half_cheetah.xml"
#: What the Ant's kernels need not carry: meshes, boxes and cylinders on boxes, pairs, ball joints, ties, connects.
MIXED = """<mujoco><option timestep=".005"/>
  <asset><mesh name="wedge" vertex="0 0 0 .2 0 0 0 .2 0 0 0 .2 .2 .2 .05"/></asset>
  <worldbody><geom type="plane" size="5 5 .1"/><geom type="box" size=".5 .5 .1" pos="1 0 .1"/>
    <body name="trunk" pos="0 0 .6"><freejoint/><geom type="capsule" size=".06 .15"/>
      <body pos=".2 0 0"><joint type="ball" damping=".1"/><geom type="box" size=".15 .03 .03" pos=".15 0 0"/></body>
      <body pos="-.2 0 0"><joint name="a" axis="0 1 0" range="-60 60" frictionloss=".1"/>
        <geom type="capsule" size=".03" fromto="0 0 0 -.3 0 0"/>
        <body pos="-.3 0 0"><joint name="b" axis="0 1 0" armature=".01"/>
          <geom type="cylinder" size=".03 .1" pos="-.1 0 0"/></body></body>
      <body pos="0 .2 0"><joint name="c" axis="1 0 0"/><geom size=".05" pos="0 .1 0"/></body></body>
    <body name="one" pos="1 0 .5"><freejoint/><geom type="mesh" mesh="wedge" friction=".6"/></body>
    <body name="two" pos="1.1 .3 .6"><freejoint/><geom type="ellipsoid" size=".05 .08 .06"/></body></worldbody>
  <equality><joint joint1="b" joint2="c" polycoef="0 .5 0 0 0"/>
    <connect body1="one" body2="two" anchor="0 0 .3"/></equality>
  <actuator><motor joint="a" gear="3"/><position joint="c" kp="5"/></actuator></mujoco>"""


class Compiler:
    """In place of NVRTC and nvJitLink for the emulated device: a shared object by g++; the image is its path."""

    def __init__(self, folder: Path):
        self.folder, self.compiled = folder, 0

    def __call__(self, shape, architecture):
        self.compiled += 1
        header, library = self.folder / "shape.h", self.folder / f"{abs(hash(shape))}.so"
        header.write_text(shape)
        solvers = ["solve.cu.o", "improve.cu.o"]
        build = Path(_core.__file__).resolve().parents[2]  # of the emulated device
        subprocess.run(["ar", "x", build / "libstiction_cuda.a", *solvers], cwd=self.folder, check=True)
        flags = "-std=c++20 -O1 -fPIC -shared -Wl,-Bsymbolic -ffp-contract=off -fno-math-errno -fno-trapping-math -w"
        command = ["g++", *flags.split(), f'-DSTICTION_MODEL_SHAPE="{header}"', "-include", "cuda_runtime.h"]
        command += [f"-I{folder}" for folder in (ROOT / "tests/cuda_emulator", ROOT / "cuda", ROOT)]
        command += ["-xc++", str(ROOT / "cuda/kernels/worlds.cu"), "-xnone", *solvers, "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return str(library).encode() + b"\0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def by_gxx(folder, monkeypatch):
    if not is_emulated():
        pytest.skip("compiles for the emulated device")
    compiler = Compiler(folder)
    monkeypatch.setenv("STICTION_CACHE", str(folder))
    monkeypatch.setattr(model_kernels, "compiler", lambda: compiler)
    return compiler


def run(model, kernels, per_env=()):
    sim = Simulation(model, 33, device="cuda", kernels=kernels, per_env=per_env)
    rng = np.random.default_rng(0)
    sim.qpos[:, 2] += rng.uniform(-0.1, 0.1, 33).astype(np.float32)
    sim.qvel = rng.normal(0, 1, sim.qvel.shape)
    if per_env:
        sim.params.body_mass[:] *= rng.uniform(0.5, 2, sim.params.body_mass.shape)
    sim.ctrl = rng.uniform(-0.5, 0.5, sim.ctrl.shape)
    sim.step(30)
    sim.forward()
    return sim


@pytest.mark.parametrize("name", ["ant", "mixed", "half_cheetah"])
def test_the_bits_are_those_of_the_build(by_gxx, capfd, name):
    """Of half a cheetah no joint of the trunk is driven, but each of the legs'."""
    model = Model.from_mjcf({"ant": ANT, "mixed": MIXED, "half_cheetah": CHEETAH}[name])
    per_env = ("body_mass",) if name == "ant" else ()
    build, own = run(model, "build", per_env), run(model, "auto", per_env)
    assert by_gxx.compiled == 1
    assert re.search(r"compiling CUDA kernels for this model ... [\d.]+ s", capfd.readouterr().err)
    for array in ("qpos", "qvel", "status", "net_contact_force"):
        np.testing.assert_array_equal(getattr(build, array), getattr(own, array), err_msg=array)
    for array in ("r_con", "num_contacts", "penetration"):
        np.testing.assert_array_equal(getattr(build.certificate, array), getattr(own.certificate, array), err_msg=array)
    np.testing.assert_array_equal(build.contact.count, own.contact.count)
    least = 2 if name == "half_cheetah" else 3
    assert own.certificate.num_contacts.max() >= least and not (own.status & Status.NON_FINITE).any()
    part = own.memory["workspaces"] / build.memory["workspaces"]
    print(f"{name}: {own.memory['workspaces'] / 33:.0f} bytes a world, {100 * part:.0f} % of the build's")
    assert part < 0.4
    again = Simulation(model, 2, device="cuda", kernels="model", per_env=per_env)
    assert by_gxx.compiled == 1, "the cache was not used"
    again.step()


def test_what_does_not_compile_is_told(by_gxx, monkeypatch):
    monkeypatch.setattr(_core, "model_shape", lambda model, springs_vary, max_contacts: "nonsense")
    with pytest.raises(RuntimeError, match="nonsense"):
        Simulation(Model.from_mjcf(ANT), device="cuda", kernels="model")
    with pytest.warns(UserWarning, match="uses the build's, for this model's own do not compile:[\\s\\S]*nonsense"):
        Simulation(Model.from_mjcf(ANT), device="cuda").step()
    assert by_gxx.compiled == 1, "what is known not to compile was compiled again"


def test_words(monkeypatch):
    model = Model.from_mjcf(scene(body("box", (0, 0, 1), box(0.1), 1.0)))
    with pytest.raises(ValueError, match="kernels is 'fast', expected one of 'auto', 'model', 'build'"):
        Simulation(model, kernels="fast")
    if is_emulated():
        monkeypatch.setenv("STICTION_CACHE", "/nowhere")
        monkeypatch.setattr(model_kernels, "compiler", lambda: None)
        with pytest.raises(ValueError, match="NVRTC or nvJitLink is not here: pip install nvidia-cuda-nvrtc"):
            Simulation(model, device="cuda", kernels="model")
        Simulation(model, device="cuda").step()


def test_a_shape_tells_what_its_model_comes_to():
    def shape(xml, springs_vary=False):
        return _core.model_shape(Model.from_mjcf(xml).core, springs_vary=springs_vary, max_contacts=0)

    ant = shape(ANT)
    assert "int kLimbs = 4;" in ant and "int kLaneLinks = 2;" in ant and "int kPairs = 0;" in ant
    assert "kAnyJoint = false" in ant and "kAnyJoint = true" in shape(ANT, True)
    assert "has_pair(int a, int b) { return 0x0ull" in ant and "kOnlyProbes = true" in ant
    assert "kOnlyProbes = false" in shape(MIXED)
    balls = shape(scene(body("a", (0, 0, 1), sphere(0.1), 1.0) + body("b", (1, 0, 1), sphere(0.1), 1.0)))
    assert f"return {1 << (8 * 2 + 2):#x}ull" in balls, "spheres meet spheres; planes meet them as probes"
    assert shape(ANT) == ant


@pytest.fixture
def nvrtc(nvrtc, monkeypatch):
    if is_emulated():
        pytest.skip("NVRTC compiles the same whatever the build")
    monkeypatch.setattr(model_kernels, "SOURCES", ROOT / "cuda")
    return nvrtc


def test_the_command_compiles_ahead(nvrtc, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(model_kernels, "compiler", lambda: lambda shape, sm: nvrtc.compile(shape, sm)[0])
    monkeypatch.setattr(_build, "CUDA", "13.0")
    monkeypatch.setenv("STICTION_CACHE", str(tmp_path))
    for _ in range(2):
        assert cli.main(["compile", "CartPoleBalance", "--architecture", "80"]) == 0
    told = capsys.readouterr()
    assert len(re.findall(r"CartPoleBalance: [\d.]+ MB for sm_80", told.out)) == 2
    assert told.err.count("compiling") == 1
    assert len([p for p in tmp_path.rglob("*") if p.is_file()]) == 1


def test_nvrtc_compiles_the_kernels_of_an_ant(nvrtc):
    shape = _core.model_shape(Model.from_mjcf(ANT).core, springs_vary=False, max_contacts=0)
    image, log = nvrtc.compile(shape, 90, ("--ptxas-options=-v",))
    assert image[:4] == b"\x7fELF"
    stacks = [int(n) for n in re.findall(r"(\d+) bytes stack frame", log)]
    print(f"{max(stacks)} bytes of stack, {len(image)} bytes")
    assert max(stacks) <= 10_240, log  # with the workspace, 6 KB


def test_nvrtc_says_what_is_wrong(nvrtc):
    with pytest.raises(RuntimeError, match=r"NVRTC [\d.]+ does not compile this:[\s\S]*nonsense"):
        nvrtc.compile("nonsense", 90)


def test_kernels_are_linked_with_the_solvers_of_the_build(nvrtc, tmp_path):
    """By nvJitLink as by nvlink: a function that worlds.cu leaves open is found in the objects, or missed by name."""
    nvcc, source = shutil.which("nvcc"), 'extern "C" __device__ float half(float);'
    if nvcc is None:
        pytest.skip("no nvcc")
    try:
        linker = model_kernels.NvJitLink()
    except OSError:
        pytest.skip("no nvJitLink here: pip install nvidia-nvjitlink")
    kernel = f'{source}\nextern "C" __global__ void kernel(float* x) {{ x[0] = half(x[0]); }}'
    image, _ = nvrtc.image_of(kernel, ["--gpu-architecture=sm_90", "--relocatable-device-code=true"])
    (tmp_path / "half.cu").write_text('extern "C" __device__ float half(float x) { return x / 2; }')
    subprocess.run([nvcc, "-rdc=true", "-c", "-arch=sm_90", "half.cu", "-o", "half.o"], cwd=tmp_path, check=True)
    assert linker.link(image, [tmp_path / "half.o"], 90)[:4] == b"\x7fELF"
    with pytest.raises(RuntimeError, match="half"):
        linker.link(image, [], 90)
