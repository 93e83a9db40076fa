"""Lint of what the tree promises: the direction of includes, file sizes, file names.

Includes go one way: core < math < model < linalg < kinematics < dynamics < collision < contact < solvers < step <
kernels < host < envs < python, all but the last three under cuda/. Solvers include neither each other nor collision;
cuda/ never includes host/, and but for the host's side of a launch (cuda/kernels) standard headers only through
core/platform.h; host/reference shares nothing with cuda/ but plain data, and only tests and bench include it.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CUDA_LAYERS = "core math model linalg kinematics dynamics collision contact solvers deformable step kernels".split()
TOP_LAYERS = ["cuda", "host", "envs", "python"]
#: The headers of cuda/ that host/reference may share: plain data.
PLAIN_DATA = {"cuda/contact/dense.h", "cuda/core/status.h"}
MAX_LINES = 500
EMPTY_NAMES = re.compile(r"(^|/|_)(utils?|helpers?|common|managers?|misc)(_[^/]*)?(\.[^/]*)?(/|$)")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(["<])([^">]+)[">]', re.MULTILINE)
CODE = {".h", ".cuh", ".cu", ".cpp", ".py"}


def tracked_files():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(name for name in set(listed.stdout.splitlines()) if (ROOT / name).is_file())


def resolve(name, target):
    """The file that `#include "target"` in `name` means: below cuda/ or the root; in tests also beside it."""
    beside = [name.rpartition("/")[0] + "/"] if name.startswith(("tests/", "bench/")) else []
    for folder in (*beside, "cuda/", ""):
        if (ROOT / folder / target).is_file():
            return folder + target
    return None


def layer(name):
    """(top level, cuda layer or None, solver or None) of a file."""
    parts = name.split("/")
    if parts[0] != "cuda" or len(parts) < 3:
        return parts[0], None, None
    return "cuda", parts[1], parts[2] if parts[1] == "solvers" and len(parts) > 3 else None


def direction(name, target):
    """Why `name` must not include `target`, or None."""
    top, here, solver = layer(name)
    target_top, there, target_solver = layer(target)
    if target.startswith("host/reference/") and not name.startswith(("tests/", "bench/", "host/reference/")):
        return "only tests and bench include host/reference"
    if name.startswith("host/reference/") and target_top == "cuda" and target not in PLAIN_DATA:
        return "host/reference is independent of cuda/ but for plain data"
    if top in ("tests", "bench"):
        return None
    if target_top in ("tests", "bench"):
        return f"{top}/ must not include {target_top}/"
    if TOP_LAYERS.index(target_top) > TOP_LAYERS.index(top):
        return f"{top}/ must not include {target_top}/"
    if top != "cuda" or target_top != "cuda" or here is None or there is None:
        return None
    if here == "solvers" and there == "collision":
        return "solvers do not know collision"
    if here == there == "solvers" and target_solver is not None and solver != target_solver:
        return "solvers do not include each other"
    if CUDA_LAYERS.index(there) > CUDA_LAYERS.index(here):
        return f"{here} lies below {there}"
    return None


def include_complaints(name):
    top, here, _ = layer(name)
    if top not in (*TOP_LAYERS, "tests", "bench"):
        return
    if top == "cuda" and here not in CUDA_LAYERS:
        yield f"{name}: cuda/{here or ''} is no layer, see CUDA_LAYERS in scripts/lint_layers.py"
        return
    text = (ROOT / name).read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        kind, target = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        where = f'{name}:{line}: includes "{target}"'
        if kind == "<":
            free = here == "kernels" or name == "cuda/core/platform.h"
            if top == "cuda" and name.endswith(".h") and not free:
                yield f"{where}: cuda/ reaches standard headers through core/platform.h only"
            continue
        found = resolve(name, target)
        if found is None:
            yield f"{where}: no such file under cuda/ or the root"
        elif found.endswith(".cuh") and name.endswith((".h", ".cpp")):
            yield f"{where}: only .cu and .cuh may include what needs nvcc"
        elif why := direction(name, found):
            yield f"{where}: {why}"


def complaints():
    for name in tracked_files():
        suffix = Path(name).suffix
        if EMPTY_NAMES.search(name):
            yield f"{name}: the name says nothing, name the concept"
        if suffix not in CODE:
            continue
        lines = (ROOT / name).read_text(encoding="utf-8").count("\n")
        if lines > MAX_LINES:
            yield f"{name}: {lines} lines, split by {MAX_LINES}"
        if suffix != ".py":
            yield from include_complaints(name)


def main():
    found = list(complaints())
    print("\n".join(found) or "clean")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
