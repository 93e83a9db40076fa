"""Where and with what a bench ran; results are kept per machine."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import mujoco
import numpy as np
import stiction

from .scenes import ROOT


def processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
        name = re.search(r"model name\s*:\s*(.+)", text)
        family, model = (re.search(rf"{word}\s*:\s*(\d+)", text) for word in ("cpu family", r"model\s"))
        return name[1].strip() + (f" (family {family[1]}, model {model[1]})" if family and model else "")
    except (OSError, TypeError):
        return platform.processor() or platform.machine()


def _git(*words) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def commit() -> str:
    """The commit that was measured (``STICTION_COMMIT`` where the build is of another tree), marked if files differ."""
    if "STICTION_COMMIT" in os.environ:
        return os.environ["STICTION_COMMIT"]
    try:
        changed = _git("status", "--porcelain", "--untracked-files=no")
        return _git("rev-parse", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def description() -> dict:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": processor(),
        "cores": cores,
        "load_average": [round(x, 2) for x in os.getloadavg()],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "stiction": stiction.__version__,
        "mujoco": mujoco.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def results_folder() -> Path:
    """bench/results/<processor>_<cores>."""
    here = description()
    name = re.sub(r"[^a-z0-9]+", "-", f"{here['processor']} {here['cores']} cores".lower()).strip("-")
    return ROOT / "bench" / "results" / name


def write(path: Path, result: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1, default=float) + "\n")
    print(f"wrote {path}")


def record(output: Path | None, name: str, result: dict) -> None:
    """Writes what ``--output`` says: nothing for "-", ``name`` in the results folder where it says nothing."""
    if str(output) != "-":
        write(output or results_folder() / name, result)
