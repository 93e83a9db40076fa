"""A model's own CUDA kernels: compiled for its shape by NVRTC, once, and kept on disk.

The kernels of the build serve every robot: they carry every geometry and the largest bounds. Of one model they keep
what it comes to: fewer instructions, less memory a world. Solvers know no model and stay the build's. NVRTC is a
library of the CUDA toolkit and of the wheel ``nvidia-cuda-nvrtc``; without it simulations run by the build's kernels.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import hashlib
import importlib.util
import os
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import _build, _core
from .command_words import WORDS

SOURCES = Path(__file__).parent / "kernel_sources"
#: Of kernels/, compiled side by side; the slowest first.
FILES = ("find", "settle", "assemble")
CHOICES = ("auto", "model", "build")


def library_names() -> list[str]:
    """Where NVRTC may be, best first."""
    names = []
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        names += glob.glob(os.path.join(folder, "*", "lib", "libnvrtc.so.1[23]"))
    return [*sorted(names, reverse=True), "libnvrtc.so.13", "libnvrtc.so.12"]


class Nvrtc:
    """NVRTC by ctypes. Raises OSError without one. Needs neither GPU nor driver."""

    def __init__(self):
        for name in library_names():
            try:
                for builtins in glob.glob(os.path.join(os.path.dirname(name), "libnvrtc-builtins.so.*")):
                    ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)  # NVRTC opens it by its bare name
                self._library = ctypes.CDLL(name)
                break
            except OSError:
                continue
        else:
            raise OSError("no NVRTC: pip install nvidia-cuda-nvrtc")
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = f"NVRTC {major.value}.{minor.value}"

    def _call(self, name, *arguments):
        if (result := getattr(self._library, name)(*arguments)) != 0:
            self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise RuntimeError(f"{name}: {self._library.nvrtcGetErrorString(result).decode()}")

    def image_of(self, source: str, options: list[str], header: str = "") -> tuple[bytes, str]:
        """Machine code of a source, and the log; ``header`` is what it may include as <model_shape.h>.

        Raises RuntimeError with the log.
        """
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        headers, names = (ctypes.c_char_p * 1)(header.encode()), (ctypes.c_char_p * 1)(b"model_shape.h")
        self._call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), b"kernel.cu", 1, headers, names)
        try:
            array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            result = self._library.nvrtcCompileProgram(program, len(options), array)
            self._call("nvrtcGetProgramLogSize", program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            self._call("nvrtcGetProgramLog", program, log)
            text = log.value.decode(errors="replace")
            if result != 0:
                raise RuntimeError(f"{self.version} does not compile this:\n{text}")
            self._call("nvrtcGetCUBINSize", program, ctypes.byref(size))
            image = ctypes.create_string_buffer(size.value)
            self._call("nvrtcGetCUBIN", program, image)
            return image.raw, text
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def compile(self, file: str, shape: str, architecture: int, extra: tuple[str, ...] = ()) -> tuple[bytes, str]:
        """The image of kernels/``file``.cu for a shape, and the log."""
        options = [*nvrtc_options(SOURCES, architecture), "-DSTICTION_MODEL_SHAPE=<model_shape.h>", *extra]
        return self.image_of(f'#include "kernels/{file}.cu"\n', options, shape)


def nvrtc_options(folder: Path, architecture: int) -> list[str]:
    """For sources that include those of ``folder``."""
    as_device = "--device-as-default-execution-space"  # lambdas in headers that know host and device
    return ["--std=c++20", f"--gpu-architecture=sm_{architecture}", f"-I{folder}", as_device]


@functools.cache
def compiler():
    """What compiles; None where nothing does. The emulated device takes no machine code."""
    if not _build.CUDA or _build.CUDA == "emulated":
        return None
    try:
        return Nvrtc()
    except OSError:
        return None


@functools.cache
def sources_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(p for p in SOURCES.rglob("*") if p.suffix in (".h", ".cuh", ".cu")):
        digest.update(str(path.relative_to(SOURCES)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def cache_folder() -> Path:
    """$STICTION_CACHE, or stiction/ in $XDG_CACHE_HOME or ~/.cache."""
    if own := os.environ.get("STICTION_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stiction"


def _keep(path: Path, image: bytes):
    """All of it or nothing; a cache that cannot be written to is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(image)
        os.replace(file.name, path)
    except OSError:
        pass


def images_for(shape: str, architecture: int, by) -> dict[str, bytes]:
    """The images of a shape by file: from the cache, or compiled by ``by``, told on stderr; {} where that is None."""
    key = hashlib.sha256("\0".join([sources_digest(), shape, str(architecture)]).encode()).hexdigest()
    folder = cache_folder() / "kernels" / key[:32]
    found = {}
    for file in FILES:
        try:
            found[file] = (folder / file).read_bytes()
        except OSError:
            pass
    if missing := [file for file in FILES if not found.get(file)]:
        if by is None:
            return {}
        began = time.monotonic()
        print("stiction: compiling CUDA kernels for this model", end=" ... ", file=sys.stderr, flush=True)
        with ThreadPoolExecutor(len(missing)) as pool:
            made = pool.map(lambda file: by.compile(file, shape, architecture)[0], missing)
            for file, image in zip(missing, made, strict=True):
                found[file] = image
                _keep(folder / file, image)
        print(f"{time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
    return found


def checked_kernels(choice: str) -> str:
    if choice not in CHOICES:
        raise ValueError(f"kernels is {choice!r}, expected one of {', '.join(map(repr, CHOICES))}")
    return choice


def chosen_kernels(choice: str, model, per_env, max_contacts: int, device: int) -> dict[str, bytes]:
    """What a world on a CUDA device is given: {} for the build's kernels.

    Raises ValueError for "model" where nothing compiles.
    """
    if choice == "build" or not _build.CUDA:
        return {}
    architecture = _core.cuda_architecture(device)  # refuses what is no device before anything is compiled
    shape = _core.model_shape(model.core, "jnt_stiffness" in per_env, max_contacts)
    try:
        found = images_for(shape, architecture, compiler())
    except RuntimeError as error:
        if choice == "model":
            raise
        text = f"kernels='auto' uses the build's, for this model's own do not compile: {error}"
        warnings.warn(text, stacklevel=3)
        return {}
    if choice == "model" and not found:
        raise ValueError("kernels is 'model', but there is no NVRTC: pip install nvidia-cuda-nvrtc, or kernels='build'")
    return found


# ---- stiction compile ------------------------------------------------------------------------------------------------


def add_arguments(parser):
    parser.add_argument("models", nargs="+", metavar="MODEL", help="tasks, or files: MJCF or URDF")
    parser.add_argument("--architecture", type=int, default=90, help="compute capability of the GPU (default: 90)")
    parser.add_argument("--per-env", **WORDS, metavar="NAME", help="as simulations' per_env will be")
    parser.add_argument("--max-contacts", type=int, default=0, metavar="N", help="as simulations' max_contacts will be")


def run(arguments):
    if not _build.CUDA:
        raise ValueError("this is no CUDA build, which compiles nothing")
    if (by := compiler()) is None:
        raise ValueError("there is no NVRTC: pip install nvidia-cuda-nvrtc")
    for name in arguments.models:
        core = _model_of(name).core
        shape = _core.model_shape(core, "jnt_stiffness" in arguments.per_env, arguments.max_contacts)
        images = images_for(shape, arguments.architecture, by)
        print(
            f"{name}: {sum(map(len, images.values())) / 1e6:.1f} MB for sm_{arguments.architecture} in {cache_folder()}"
        )


def _model_of(name: str):
    from . import make_vec
    from .model import Model
    from .training.options import environment, environment_id

    if not Path(name).exists():
        return make_vec(environment(environment_id(name)), 1, device="cpu").simulation.model
    return Model.from_urdf(name) if name.endswith(".urdf") else Model.from_mjcf(name)
