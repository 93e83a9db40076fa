"""The architectures that CUDA kernels may be compiled for: the lists that a build takes, and the headers under each."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from stiction.model_kernels import Nvrtc, nvrtc_options

ROOT = Path(__file__).resolve().parents[2]
NAMED = ("80", "86", "89", "90", "100", "120")

pytestmark = pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake")


def cmake(line, tmp_path):
    """What cmake/CudaArchitectures.cmake says to one line of CMake."""
    script = tmp_path / "asks.cmake"
    script.write_text(f'include("{ROOT}/cmake/CudaArchitectures.cmake")\n{line}\n')
    return subprocess.run(["cmake", "-P", str(script)], capture_output=True, text=True)


@pytest.mark.parametrize("good", [";".join(NAMED), "90", "native", "87;103", "90-virtual"])
def test_a_build_takes(good, tmp_path):
    assert cmake(f'stiction_check_cuda_architectures("{good}")', tmp_path).returncode == 0


@pytest.mark.parametrize(("bad", "named"), [("75;90", "75"), ("sm_90", "sm_90"), ("90,100", "90,100"), ("", "empty")])
def test_a_build_refuses_by_name(bad, named, tmp_path):
    done = cmake(f'stiction_check_cuda_architectures("{bad}")', tmp_path)
    assert done.returncode != 0
    assert re.search(f"{re.escape(named)}.*expected native or numbers from 80 on", " ".join(done.stderr.split()))


@pytest.mark.parametrize(
    ("asked", "targets"),
    [("80;86;120", "80-real;86-real;120"), ("90", "90"), ("native", "native"), ("86-real;90", "86-real;90")],
)
def test_only_the_last_comes_as_ptx_too(asked, targets, tmp_path):
    done = cmake(f'stiction_cuda_targets("{asked}" result)\nmessage("${{result}}")', tmp_path)
    assert done.stderr.strip() == targets


@pytest.mark.parametrize("architecture", NAMED)
def test_the_headers_compile_for_it(architecture):
    try:
        nvrtc = Nvrtc()
    except OSError:
        pytest.skip("no NVRTC here: pip install nvidia-cuda-nvrtc")
    source = '#include "step/solve_rows.h"\n#include "step/step_world.h"'
    nvrtc.image_of(source, nvrtc_options(ROOT / "cuda", int(architecture)))


def test_the_documentation_names_them_all():
    text = (ROOT / "docs/concepts.md").read_text()
    assert all(f"`{name}`" in text for name in NAMED)
    assert ";".join(NAMED) in (ROOT / "CMakeLists.txt").read_text()
