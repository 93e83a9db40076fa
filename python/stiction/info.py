"""`stiction info`: the build, the CPU backend, the CUDA backend and the packages in use."""

import ctypes
import importlib.metadata
import json
import os
import platform

from stiction import _build

#: /proc/cpuinfo's flags of the x86-64 levels that the libraries are compiled for.
_X86_64_V3 = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
_X86_64_V4 = _X86_64_V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_REQUIRED = {"avx512": _X86_64_V4, "avx2": _X86_64_V3, "scalar": _X86_64_V3}


def cpu_facts():
    """Name, threads this process may use, and the built instruction sets that this CPU can run, widest first."""
    name, flags = platform.processor() or platform.machine(), set()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    name = value.strip()
                elif key.strip() == "flags":
                    flags = set(value.split())
                    break
    except OSError:
        pass
    x86 = platform.machine() in ("x86_64", "AMD64")
    usable = [isa for isa, needed in _REQUIRED.items() if isa in _build.ISAS and (not x86 or needed <= flags)]
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"name": name, "threads": threads, "usable_isas": usable}


def cuda_facts():
    """Driver version and devices, by the driver library alone: {"driver": None, "devices": []} without one."""
    facts = {"driver": None, "devices": []}
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return facts
    version, count = ctypes.c_int(), ctypes.c_int()
    if driver.cuDriverGetVersion(ctypes.byref(version)) == 0:
        facts["driver"] = f"{version.value // 1000}.{version.value % 1000 // 10}"
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return facts
    for number in range(count.value):
        device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        name = ctypes.create_string_buffer(128)
        driver.cuDeviceGet(ctypes.byref(device), number)
        driver.cuDeviceGetName(name, len(name), device)
        driver.cuDeviceGetAttribute(ctypes.byref(major), 75, device)  # compute capability
        driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
        facts["devices"].append({"name": name.value.decode(), "architecture": f"{major.value}{minor.value}"})
    return facts


def package_versions():
    versions = {}
    for name in ("numpy", "mujoco", "gymnasium", "torch"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def facts():
    return {
        "stiction": _build.VERSION,
        "build": {
            "type": _build.BUILD_TYPE,
            "compiler": _build.COMPILER,
            "isas": list(_build.ISAS),
            "commit": _build.COMMIT,
        },
        "cpu": cpu_facts(),
        "cuda": {"toolkit": _build.CUDA, "architectures": list(_build.CUDA_ARCHITECTURES), **cuda_facts()},
        "python": {"python": platform.python_version(), **package_versions()},
    }


def lines(known):
    """`facts()` for people, one (label, text) per line."""
    build, cpu, cuda, packages = known["build"], known["cpu"], known["cuda"], known["python"]
    yield (
        "stiction",
        f"{known['stiction']} ({build['type']}, {build['compiler']}, commit {build['commit'] or 'unknown'})",
    )
    yield "CPU", f"{cpu['name']}, {cpu['threads']} thread{'s' if cpu['threads'] != 1 else ''}"
    yield "CPU libraries", ", ".join(build["isas"]) or "none in this build"
    if build["isas"]:
        yield "CPU runs", ", ".join(cpu["usable_isas"]) or "none of them: this CPU lacks AVX2 and FMA (x86-64-v3)"
    if cuda["toolkit"]:
        yield "CUDA build", f"{cuda['toolkit']}, architectures {', '.join(cuda['architectures'])}"
    else:
        yield "CUDA build", "no; to get one, have nvcc on PATH and install with STICTION_CUDA=ON"
    yield "CUDA driver", cuda["driver"] or "none (libcuda.so.1 not found)"
    devices = [f"{device['name']} (sm_{device['architecture']})" for device in cuda["devices"]]
    yield "CUDA devices", ", ".join(devices) or "none"
    yield "packages", ", ".join(f"{name} {version}" if version else f"no {name}" for name, version in packages.items())


def add_arguments(parser):
    parser.add_argument("--json", action="store_true", help="print the facts as JSON")


def run(arguments):
    known = facts()
    if arguments.json:
        print(json.dumps(known, indent=2))
    else:
        for label, text in lines(known):
            print(f"{label + ':':<15}{text}")
