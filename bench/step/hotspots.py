"""``python -m bench.step.hotspots SCENE``: shares of a step by stage, sampled by `perf`.

The step is one function after inlining; the debug information (build with ``-DCMAKE_CXX_FLAGS=-g``) tells which stage
each sampled instruction was inlined from. SOLVE are the functions of the solver.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import stiction
from stiction import _core

from .engines import Stiction, Times
from .scenes import SCENES, option

_WRAPPERS = {"step", "step_batch", "step_world", "find_step", "pose_step", "assemble_world", "parallel_for", "operator"}
_SOLVERS = ("subadmm_detail", "Passes", "pgs_detail")


def simulate(scene: str, isa: str, seconds: float, options: dict) -> str:
    """Runs the scene, prints the speed."""
    chosen = SCENES[scene]
    engine = Stiction(
        chosen, stiction.Model.from_mjmodel(chosen.mjmodel()), 256, isa=isa, solver=stiction.SolverOptions(**options)
    )
    engine.settle()
    times, steps, until = Times(), 0, time.monotonic() + seconds
    while time.monotonic() < until:
        steps += engine.advance(4, times)
    return f"{scene}, {isa}: {steps / times.cpu / 1e3:.1f} k steps/s/core"


def plain_name(demangled: str) -> str:
    """stiction::f<...>(...)::{lambda...} -> f."""
    text, depth, kept = demangled.replace("->", "").replace("operator<", "op").replace("operator>", "op"), 0, ""
    for letter in text:
        depth -= letter in ">)]"
        kept += letter if depth == 0 and letter not in ">)]" and letter not in "<([" else ""
        depth += letter in "<(["
    kept = re.sub(r"\{lambda.*", "", kept.replace("stiction::", "")).rstrip(":")
    return (kept.split() or [demangled[:40]])[-1]


def samples(recording: Path, library: Path) -> tuple[Counter, Counter]:
    """(addresses within the library, samples elsewhere by file)."""
    fields = ["perf", "script", "-i", str(recording), "-F", "ip,dso", "--no-inline"]
    text = subprocess.run([*fields, "--show-mmap-events"], capture_output=True, text=True, check=True).stdout
    places = [
        (int(start, 16), int(size, 16), int(offset, 16))
        for start, size, offset, path in re.findall(
            r"\[0x(\w+)\(0x(\w+)\) @ (?:0x)?(\w+) .* (\S+)$", text, re.MULTILINE
        )
        if path == str(library)
    ]
    header = subprocess.run(["readelf", "-lW", str(library)], capture_output=True, text=True, check=True).stdout
    segments = [
        tuple(int(number, 16) for number in found)
        for found in re.findall(r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", header)
    ]
    inside, elsewhere = Counter(), Counter()
    for ip, dso in re.findall(r"^ *(\w+) .*\((\S+)\)$", text, re.MULTILINE):
        address = int(ip, 16)
        mapped = next((address - start + offset for start, size, offset in places if 0 <= address - start < size), None)
        if mapped is None:
            elsewhere[Path(dso).name] += 1
            continue
        at, virtual = next((offset, virtual) for offset, virtual, size in segments if 0 <= mapped - offset < size)
        inside[mapped - at + virtual] += 1
    if not inside:
        raise RuntimeError(f"no sample in {library}: does perf record here?")
    return inside, elsewhere


def stages(addresses: Counter, library: Path) -> tuple[Counter, Counter]:
    """Samples by stage, and by stage and what it calls."""
    command = ["addr2line", "-f", "-i", "-C", "-a", "-e", str(library), *map(hex, addresses)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    stacks, at = {}, 0
    for i, line in enumerate(lines):
        if line.startswith("0x"):
            at = i
            stack = stacks.setdefault(int(line, 16), [])
        elif (i - at) % 2 == 1:
            stack.insert(0, plain_name(line))
    by_stage, by_call = Counter(), Counter()
    for address, number in addresses.items():
        names = [name for name in stacks[address] if name not in _WRAPPERS]
        names = [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name] or ["step itself"]
        if names[0].startswith(_SOLVERS):
            names = ["SOLVE " + (names[1] if len(names) > 1 else "itself"), *names[2:]]
        by_stage[names[0]] += number
        by_call[f"{names[0]} > {names[1] if len(names) > 1 else 'itself'}"] += number
    return by_stage, by_call


def main(argv=None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.step.hotspots", description=__doc__)
    parser.add_argument("scene", choices=list(SCENES))
    parser.add_argument("--isa", default=_core.available_isas()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--least", type=float, default=0.7, help="percent below which nothing is listed")
    parser.add_argument("--option", nargs="+", type=option, default=[], metavar="NAME=VALUE")
    parser.add_argument("--simulate-only", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.simulate_only:
        print(simulate(arguments.scene, arguments.isa, arguments.seconds, dict(arguments.option)))
        return

    library = Path(_core.__file__).with_name(f"libstiction_cpu_{arguments.isa}.so").resolve()
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / "perf.data"
        own = [sys.executable, "-m", "bench.step.hotspots", *(argv or sys.argv[1:]), "--simulate-only"]
        subprocess.run(
            ["perf", "record", "-q", "-o", str(recording), "-e", "cpu-clock", "-F", "2999", *own], check=True
        )
        addresses, elsewhere = samples(recording, library)
    total = addresses.total()
    print(f"{total} samples in {library.name}, elsewhere {dict(elsewhere.most_common(4))}")
    for title, counts in zip(("stage", "stage > call"), stages(addresses, library), strict=True):
        print(f"{title}:")
        for name, number in counts.most_common():
            if 100 * number / total >= arguments.least:
                print(f"  {100 * number / total:6.2f} % {name}")


if __name__ == "__main__":
    main()
