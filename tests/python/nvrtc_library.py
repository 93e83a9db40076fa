"""NVRTC by ctypes: just enough to compile one source for one architecture. Needs no GPU and no driver."""

import ctypes
import glob
import importlib.util
import os


def load():
    """The library of the wheel nvidia-cuda-nvrtc, or the system's; None without either."""
    names = []
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations if spec else ():
        names += glob.glob(os.path.join(folder, "*", "lib", "libnvrtc.so.1[3-9]"))
    for name in [*sorted(names, reverse=True), "libnvrtc.so.13", "libnvrtc.so"]:
        try:
            for builtins in glob.glob(os.path.join(os.path.dirname(name), "libnvrtc-builtins.so.*")):
                ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)  # NVRTC opens it by its bare name
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def compile_source(library, source, options):
    """(succeeded, log) of compiling `source` with nvcc-like options."""
    program = ctypes.c_void_p()
    result = library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    if result != 0:
        raise RuntimeError(f"nvrtcCreateProgram: error {result}")
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    result = library.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return result == 0, log.value.decode(errors="replace")
