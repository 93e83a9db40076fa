"""A model's own CUDA kernels: compiled for its shape by NVRTC, once, and kept on disk.

The kernels of the build serve every robot: they carry every geometry and the largest bounds. Of one model they keep
what it comes to: fewer instructions, less memory a world. Solvers know no model: nvJitLink links them as the build
compiled them. Both are libraries of the CUDA toolkit and of the wheels ``nvidia-cuda-nvrtc`` and
``nvidia-nvjitlink``; without them simulations run by the build's kernels.
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
from pathlib import Path

from . import _build, _core
from .command_words import WORDS
from .machine_code import undefined_in

SOURCES = Path(__file__).parent / "kernel_sources"
#: Of kernels/, what is compiled for a model; and what the build compiled for all.
FILE = "worlds"
OBJECTS = Path(__file__).parent / "kernel_objects"
#: Registers of a lane, as the build's.
REGISTERS = 128
CHOICES = ("auto", "model", "build")


def library_names(name: str) -> list[str]:
    """Where a library of the toolkit may be, best first."""
    names = []
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        names += glob.glob(os.path.join(folder, "*", "lib", f"{name}.so.1[23]"))
    return [*sorted(names, reverse=True), f"{name}.so.13", f"{name}.so.12"]


def load_library(name: str, wheel: str):
    for path in library_names(name):
        try:
            for builtins in glob.glob(os.path.join(os.path.dirname(path), "libnvrtc-builtins.so.*")):
                ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)  # NVRTC opens it by its bare name
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise OSError(f"no {name}: pip install {wheel}")


class NvJitLink:
    """nvJitLink by ctypes. Raises OSError without one. Needs neither GPU nor driver."""

    CUBIN, OBJECT = 1, 5

    def __init__(self):
        self._library = load_library("libnvJitLink", "nvidia-nvjitlink")

    def link(self, image: bytes, objects: list[Path], architecture: int) -> bytes:
        """Machine code of an image (cubin, relocatable) and object files of nvcc. Raises RuntimeError with the log."""
        handle, size = ctypes.c_void_p(), ctypes.c_size_t()
        options = (ctypes.c_char_p * 1)(f"-arch=sm_{architecture}".encode())
        if self._library.nvJitLinkCreate(ctypes.byref(handle), 1, options) != 0:
            raise RuntimeError(f"nvJitLink refuses sm_{architecture}")
        try:
            self._call(handle, "AddData", self.CUBIN, image, ctypes.c_size_t(len(image)), b"worlds")
            for path in objects:
                self._call(handle, "AddFile", self.OBJECT, os.fsencode(path))
            self._call(handle, "Complete")
            self._call(handle, "GetLinkedCubinSize", ctypes.byref(size))
            linked = ctypes.create_string_buffer(size.value)
            self._call(handle, "GetLinkedCubin", linked)
            return linked.raw
        finally:
            self._library.nvJitLinkDestroy(ctypes.byref(handle))

    def _call(self, handle, name, *arguments):
        if (result := getattr(self._library, f"nvJitLink{name}")(handle, *arguments)) != 0:
            size = ctypes.c_size_t()
            self._library.nvJitLinkGetErrorLogSize(handle, ctypes.byref(size))
            log = ctypes.create_string_buffer(max(size.value, 1))
            self._library.nvJitLinkGetErrorLog(handle, log)
            raise RuntimeError(f"nvJitLink{name}: {result}, {log.value.decode(errors='replace')}")


class Nvrtc:
    """NVRTC by ctypes. Raises OSError without one. Needs neither GPU nor driver."""

    def __init__(self):
        self._library = load_library("libnvrtc", "nvidia-cuda-nvrtc")
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

    def compile(self, shape: str, architecture: int, extra: tuple[str, ...] = ()) -> tuple[bytes, str]:
        """The relocatable image of kernels/worlds.cu for a shape, and the log."""
        linked = ["--relocatable-device-code=true", f"--maxrregcount={REGISTERS}"]
        own = [*nvrtc_options(SOURCES, architecture), *linked, "-DSTICTION_MODEL_SHAPE=<model_shape.h>", *extra]
        return self.image_of(f'#include "kernels/{FILE}.cu"\n', own, shape)


class Compiler:
    """Makes a model's kernels. Raises OSError without NVRTC or nvJitLink."""

    def __init__(self):
        self.nvrtc, self.linker = Nvrtc(), NvJitLink()

    def __call__(self, shape: str, architecture: int) -> bytes:
        image, _ = self.nvrtc.compile(shape, architecture)
        if lost := undefined_in(image):
            raise RuntimeError(f"{self.nvrtc.version} compiles {', '.join(lost)} to numbers that nothing has stored")
        return self.linker.link(image, sorted(OBJECTS.iterdir()), architecture)


def nvrtc_options(folder: Path, architecture: int) -> list[str]:
    """For sources that include those of ``folder``."""
    as_device = "--device-as-default-execution-space"  # lambdas in headers that know host and device
    # As the build's: quotients and square roots to 1 or 2 units of the last place, without branches for the rest.
    numbers = ["--prec-div=false", "--prec-sqrt=false"]
    return ["--std=c++20", f"--gpu-architecture=sm_{architecture}", f"-I{folder}", as_device, *numbers]


@functools.cache
def compiler():
    """What compiles; None where nothing does. The emulated device takes no machine code."""
    if not _build.CUDA or _build.CUDA == "emulated":
        return None
    try:
        return Compiler()
    except OSError:
        return None


@functools.cache
def sources_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(p for p in SOURCES.rglob("*") if p.suffix in (".h", ".cuh", ".cu")):
        digest.update(str(path.relative_to(SOURCES)).encode() + b"\0" + path.read_bytes() + b"\0")
    for path in sorted(OBJECTS.glob("*")):
        digest.update(path.read_bytes())
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


#: What did not compile in this process, by key: why.
_refused: dict[str, str] = {}


def image_for(shape: str, architecture: int, by) -> bytes:
    """The image of a shape: from the cache, or made by ``by``, told on stderr; empty where that is None."""
    key = hashlib.sha256("\0".join([sources_digest(), shape, str(architecture)]).encode()).hexdigest()
    path = cache_folder() / "kernels" / f"{key[:32]}.cubin"
    try:
        if found := path.read_bytes():
            return found
    except OSError:
        pass
    if by is None:
        return b""
    if key in _refused:
        raise RuntimeError(_refused[key])
    began = time.monotonic()
    print("stiction: compiling CUDA kernels for this model", end=" ... ", file=sys.stderr, flush=True)
    try:
        image = by(shape, architecture)
    except RuntimeError as error:
        _refused[key] = str(error)
        raise
    _keep(path, image)
    print(f"{time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
    return image


def checked_kernels(choice: str) -> str:
    if choice not in CHOICES:
        raise ValueError(f"kernels is {choice!r}, expected one of {', '.join(map(repr, CHOICES))}")
    return choice


def chosen_kernels(choice: str, model, per_env, max_contacts: int, device: int) -> bytes:
    """What a world on a CUDA device is given: empty for the build's kernels.

    Raises ValueError for "model" where nothing compiles.
    """
    if choice == "build" or not _build.CUDA:
        return b""
    architecture = _core.cuda_architecture(device)  # refuses what is no device before anything is compiled
    shape = _core.model_shape(model.core, "jnt_stiffness" in per_env, max_contacts)
    try:
        found = image_for(shape, architecture, compiler())
    except RuntimeError as error:
        if choice == "model":
            raise
        text = f"kernels='auto' uses the build's, for this model's own do not compile: {error}"
        warnings.warn(text, stacklevel=3)
        return b""
    if choice == "model" and not found:
        missing = "NVRTC or nvJitLink is not here: pip install nvidia-cuda-nvrtc nvidia-nvjitlink, or kernels='build'"
        raise ValueError(f"kernels is 'model', but {missing}")
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
        raise ValueError("NVRTC or nvJitLink is not here: pip install nvidia-cuda-nvrtc nvidia-nvjitlink")
    for name in arguments.models:
        core = _model_of(name).core
        shape = _core.model_shape(core, "jnt_stiffness" in arguments.per_env, arguments.max_contacts)
        image = image_for(shape, arguments.architecture, by)
        print(f"{name}: {len(image) / 1e6:.1f} MB for sm_{arguments.architecture} in {cache_folder()}")


def _model_of(name: str):
    from .model import Model

    if not Path(name).exists():
        from . import make_vec
        from .training.options import environment, environment_id

        return make_vec(environment(environment_id(name)), 1, device="cpu").simulation.model
    return Model.from_urdf(name) if name.endswith(".urdf") else Model.from_mjcf(name)
