"""What the CUDA kernels need: registers, stack, spills, instructions and compile time of each, without a GPU.

    scripts/cuda_resources.py              compiles them (minutes) and prints the table
    scripts/cuda_resources.py BUILD.LOG    reads what ptxas -v printed into the log of a build instead
    ... --record                           keeps it in cuda/kernels/resources.json: what it needs from now on
    ... --gate                             fails where a kernel needs more than is kept there, or is missing
    ... --model FILE.xml                   of one model's own kernels instead, with a build of stiction on PYTHONPATH

"0 spills" alone proves nothing: arrays that are indexed at run time show only in the stack frame, which is a function's
own. Instructions are those of the whole file, whose functions call each other, local the share of them that reads or
writes the stack. Kernels and solvers are compiled apart, as the build does, and linked: how deep the stack of a step
gets then is printed where the files are compiled.
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPEC = importlib.util.spec_from_file_location("machine_code", ROOT / "python/stiction/machine_code.py")
machine_code = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(machine_code)
FOLDER = ROOT / "cuda" / "kernels"
RECORD = FOLDER / "resources.json"
#: What counts, and how much more than recorded passes for the same: a part, and so many.
GATED = {"registers": (0, 4), "stack": (0.03, 64), "spill_stores": (0.1, 64), "instructions": (0.03, 0)}
#: Low 12 bits of an instruction of sm_80 and later that touches the stack: LDL, STL.
LOCAL = (0x983, 0x387)
FLAGS = ["-std=c++20", "-O3", "--expt-relaxed-constexpr", "-prec-div=false", "-prec-sqrt=false", "-Xptxas", "-v"]
FLAGS += ["-rdc=true", "-maxrregcount=128"]
#: Functions besides kernels that files are compiled for.
SOLVERS = re.compile(r"_ZN8stiction\d+(\w+_by_(?:team|warp|tile|pair))E")


def kernels_in_log(text):
    """name -> {stack, spill_stores, spill_loads, registers} of every kernel and SOLVERS in ptxas' output."""
    kernels, entry, name = {}, None, None
    for line in text.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)'", line):
            entry = match[1]
            kernels[entry] = {}
        elif match := re.search(r"Function properties for (\w+)", line):
            solver = SOLVERS.match(match[1])
            name = solver[1] if solver else match[1]
            if solver:
                kernels[name] = {}
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            if name in kernels and "stack" not in kernels[name]:
                stack, stores, loads = map(int, match.groups())
                kernels[name] |= {"stack": stack, "spill_stores": stores, "spill_loads": loads}
        elif (match := re.search(r"Used (\d+) registers", line)) and entry:
            kernels[entry]["registers"] = int(match[1])
    return kernels


def instructions(code):
    """How many there are, of 16 bytes each, and which share of them is local."""
    words = [low & 0xFFF for low, _ in struct.iter_unpack("<QQ", code)]
    return {"instructions": len(words), "local": round(sum(w in LOCAL for w in words) / max(len(words), 1), 4)}


def version(nvcc):
    return re.search(r"V([\d.]+)", subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout)[1]


def compiled(nvcc, source, architecture, folder, shape=""):
    """The kernels of one source, with code size and the seconds of its compilation; leaves its image in the folder."""
    cubin = os.path.join(folder, f"{source.stem}.cubin")
    includes = [f"-I{ROOT / 'cuda'}", f"-I{ROOT}", f"-I{folder}"]
    if shape:
        (Path(folder) / "model_shape.h").write_text(shape)
        includes.append("-DSTICTION_MODEL_SHAPE=<model_shape.h>")
    command = [nvcc, *FLAGS, *includes, f"-arch=sm_{architecture}", "-cubin", str(source), "-o", cubin]
    started = time.monotonic()
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{result.stdout}{result.stderr}")
    seconds, image = time.monotonic() - started, Path(cubin).read_bytes()
    if lost := machine_code.undefined_in(image):
        sys.exit(f"nvcc compiles {', '.join(lost)} to numbers that nothing has stored")
    code = b"".join(machine_code.functions(image).values())
    kernels = kernels_in_log(result.stdout + result.stderr)
    for kernel in kernels.values():
        kernel |= {**instructions(code), "seconds": seconds}
    return kernels


def print_linked(nvcc, architecture, folder):
    """How deep the stacks of kernels are with all that they call."""
    linker = Path(nvcc).resolve().parent / "nvlink"
    if not linker.exists():
        return
    images = [str(Path(folder) / f"{name}.cubin") for name in ("worlds", "solve", "improve")]
    command = [str(linker), f"-arch=sm_{architecture}", "-v", *images, "-o", os.path.join(folder, "linked.cubin")]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{result.stdout}{result.stderr}")
    name = None
    for line in (result.stdout + result.stderr).splitlines():
        if match := re.search(r"Function properties for '(\w+)'", line):
            name = match[1]
        elif match := re.search(r"used (\d+) registers.* (\d+) stack", line):
            print(f"linked: {name} has {match[1]} registers and {match[2]} bytes of stack")


def readable(name):
    if shutil.which("c++filt"):
        name = subprocess.run(["c++filt", name], capture_output=True, text=True).stdout.strip()
    return re.sub(r"\((?!anonymous).*|stiction::|\(anonymous namespace\)::|^void ", "", name)


def print_table(rows):
    print(f"{'kernel':<62}{'registers':>10}{'stack B':>9}{'spill st/ld B':>15}{'instr.':>9}{'local':>8}{'nvcc s':>8}")
    for name, k in rows:
        spills = f"{k.get('spill_stores', '?')}/{k.get('spill_loads', '?')}"
        code = f"{k['instructions']:>9}{k['local']:>8.1%}" if "instructions" in k else f"{'':17}"
        seconds = f"{k['seconds']:.1f}" if "seconds" in k else ""
        needs = f"{k.get('registers', '?'):>10}{k.get('stack', '?'):>9}{spills:>15}{code}{seconds:>8}"
        print(f"{readable(name):<62}{needs}".rstrip())


def excess(rows):
    """What is above the record, in words."""
    kept, told = json.loads(RECORD.read_text())["kernels"], []
    sources = "".join(path.read_text() for path in FOLDER.glob("*.cu"))
    for name, kernel in rows:
        if (name := readable(name)) not in kept:
            if "<" in name or not re.search(rf"\b{name}\b", sources):  # a task's, of envs/; gone since an earlier build
                continue
            told.append(f"{name} is not in {RECORD.name}")
            continue
        for what, (part, some) in GATED.items():
            now, before = kernel.get(what), kept[name].get(what)
            if None not in (now, before) and now > before * (1 + part) + some:
                told.append(f"{name} has {now} {what.replace('_', ' ')}, {before} are recorded")
    missing = kept.keys() - {readable(name) for name, _ in rows}
    return told + [f"{name} is recorded, but was not built" for name in sorted(missing)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", nargs="?", help="the output of a build instead of compiling")
    parser.add_argument("--architecture", default="90")
    parser.add_argument("--record", action="store_true", help="compiles, and keeps what is found")
    parser.add_argument("--gate", action="store_true", help="fails above what is kept")
    parser.add_argument("--model", help="MJCF: prints what this model's own kernels need")
    found = os.environ.get("CUDACXX") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    parser.add_argument("--nvcc", default=found)
    arguments = parser.parse_args()
    if arguments.log:
        rows = sorted(kernels_in_log(Path(arguments.log).read_text(errors="replace")).items())
    elif not shutil.which(arguments.nvcc):
        sys.exit(f"no nvcc at {arguments.nvcc}: set CUDACXX, or pass --nvcc")
    else:
        shape, sources = "", sorted(FOLDER.glob("*.cu"))
        if arguments.model:
            from stiction import Model, _core

            core = Model.from_mjcf(arguments.model).core
            shape = _core.model_shape(core, springs_vary=False, max_contacts=0)
            sources = [FOLDER / f"{name}.cu" for name in ("worlds", "solve", "improve")]
        rows, nvcc = [], shutil.which(arguments.nvcc)
        with tempfile.TemporaryDirectory() as folder:
            for source in sources:
                of_model = shape if source.stem == "worlds" else ""
                rows += compiled(nvcc, source, arguments.architecture, folder, of_model).items()
            print_linked(nvcc, arguments.architecture, folder)
    print_table(rows)
    if arguments.record and not arguments.log and not arguments.model:
        kept = {readable(name): {k: v for k, v in kernel.items() if k != "seconds"} for name, kernel in rows}
        report = {"nvcc": version(arguments.nvcc), "architecture": arguments.architecture, "kernels": kept}
        RECORD.write_text(json.dumps(report, indent=1) + "\n")
    more = excess(rows) if arguments.gate else []
    for line in more:
        print(f"above {RECORD.relative_to(ROOT)}: {line}")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
