"""What the CUDA kernels need: registers, stack, spills, code size and compile time of each, without a GPU.

    scripts/cuda_resources.py              compiles them (minutes) and prints the table
    scripts/cuda_resources.py BUILD.LOG    reads what ptxas -v printed into the log of a build instead (no code size)

"0 spills" alone proves nothing: arrays that are indexed at run time show only in the stack frame.
"""

import argparse
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
FOLDER = ROOT / "cuda" / "kernels"
FLAGS = ["-std=c++20", "-O3", "--expt-relaxed-constexpr", "-Xptxas", "-v"]


def kernels_in_log(text):
    """name -> {stack, spill_stores, spill_loads, registers} of every entry function in ptxas' output."""
    kernels, name = {}, None
    for line in text.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)'", line):
            name = match[1]
            kernels[name] = {}
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            if name and "stack" not in kernels[name]:
                stack, stores, loads = map(int, match.groups())
                kernels[name] |= {"stack": stack, "spill_stores": stores, "spill_loads": loads}
        elif (match := re.search(r"Used (\d+) registers", line)) and name:
            kernels[name]["registers"] = int(match[1])
    return kernels


def code_sizes(cubin):
    """name -> bytes of its machine code, from the sections .text.<name> of a 64-bit ELF file."""
    data = Path(cubin).read_bytes()
    table = struct.unpack_from("<Q", data, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
    strings = sections[names][4]
    sizes = {}
    for section in sections:
        start = strings + section[0]
        name = data[start : data.index(b"\0", start)].decode()
        if name.startswith(".text."):
            sizes[name.removeprefix(".text.")] = section[5]
    return sizes


def compiled(nvcc, source, architecture):
    """The kernels of one source, with code size and the seconds of its compilation."""
    with tempfile.TemporaryDirectory() as folder:
        cubin = os.path.join(folder, "kernels.cubin")
        includes = [f"-I{ROOT / 'cuda'}", f"-I{ROOT}"]
        command = [nvcc, *FLAGS, *includes, f"-arch=sm_{architecture}", "-cubin", str(source), "-o", cubin]
        started = time.monotonic()
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{result.stdout}{result.stderr}")
        seconds, sizes = time.monotonic() - started, code_sizes(cubin)
    kernels = kernels_in_log(result.stdout + result.stderr)
    for name, kernel in kernels.items():
        kernel |= {"code": sizes.get(name), "seconds": seconds}
    return kernels


def readable(name):
    if shutil.which("c++filt"):
        name = subprocess.run(["c++filt", name], capture_output=True, text=True).stdout.strip()
    return re.sub(r"\(.*|stiction::|^void ", "", name)


def print_table(rows):
    print(f"{'kernel':<62}{'registers':>10}{'stack B':>9}{'spill st/ld B':>15}{'code KB':>9}{'nvcc s':>8}")
    for name, k in rows:
        spills = f"{k.get('spill_stores', '?')}/{k.get('spill_loads', '?')}"
        code = f"{k['code'] / 1024:.0f}" if k.get("code") else ""
        seconds = f"{k['seconds']:.1f}" if "seconds" in k else ""
        needs = f"{k.get('registers', '?'):>10}{k.get('stack', '?'):>9}{spills:>15}{code:>9}{seconds:>8}"
        print(f"{readable(name):<62}{needs}".rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", nargs="?", help="the output of a build instead of compiling")
    parser.add_argument("--architecture", default="90")
    found = os.environ.get("CUDACXX") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    parser.add_argument("--nvcc", default=found)
    arguments = parser.parse_args()
    if arguments.log:
        print_table(sorted(kernels_in_log(Path(arguments.log).read_text(errors="replace")).items()))
        return 0
    if not shutil.which(arguments.nvcc):
        sys.exit(f"no nvcc at {arguments.nvcc}: set CUDACXX, or pass --nvcc")
    rows = []
    for source in sorted(FOLDER.glob("*.cu")):
        rows += compiled(arguments.nvcc, source, arguments.architecture).items()
    print_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
