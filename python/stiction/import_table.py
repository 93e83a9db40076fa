"""``python -m stiction.import_table DIR``: what becomes of every .xml and .urdf file of a folder.

One row per file: loaded, approximated (and how), refused (and why), or failed (MuJoCo could not compile it). What loads
also fits a simulation.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from .mjcf_import import require_mujoco
from .model import Model, UnsupportedModelError
from .simulation import Simulation

PAGE = """\
# What becomes of public model files

`python -m stiction.import_table --markdown DIR`, with mujoco {version}; paths are relative to `DIR`. A file is *loaded*
as it is, *approximated* as said, *refused* for what is named, or *failed*: MuJoCo itself does not compile it, for a
missing mesh or texture, a body without mass, or a format it has left behind. [What is imported](import.md) tells
what each approximation means. That the exact Coulomb cone and the simulation's own integrator replace the file's is
true of every file and not repeated.
"""


def classify(path: Path) -> tuple[str, str, str]:
    """(status, sizes, notes) of one file."""
    try:
        model = Model.from_file(path)
    except UnsupportedModelError as error:
        return "refused", "", "; ".join(error.features)
    except (ValueError, OSError) as error:
        text = " ".join(str(error).split())
        return "failed", "", text.removeprefix(f"cannot import '{path}': ").replace(f"{path.parent}/", "")
    try:
        Simulation(model, num_threads=1)
    except ValueError as error:
        return "refused", "", str(error)
    sizes = f"nq {model.nq} nv {model.nv} nu {model.nu} nbody {model.nbody} ngeom {model.ngeom}"
    # Every import says which integrator and cone the file had; only the rest changes what is simulated.
    notes = [
        note for note in model.import_report if not note.startswith(("approximated: integrator", "approximated: cone"))
    ]
    status = "approximated" if any(note.startswith("approximated") for note in notes) else "loaded"
    return status, sizes, "; ".join(notes)


def table(folder: Path):
    """Yields (relative path, status, sizes, notes), sorted by path."""
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".xml", ".urdf")):
        yield (str(path.relative_to(folder)), *classify(path))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m stiction.import_table", description=__doc__)
    parser.add_argument("folder", type=Path, help="searched with its sub-folders")
    parser.add_argument("--width", type=int, default=0, help="cut the notes to this many characters (0: whole)")
    parser.add_argument("--markdown", action="store_true", help="a page with a heading, as docs/models.md")
    options = parser.parse_args(argv)
    if not options.folder.is_dir():
        parser.error(f"no folder '{options.folder}'")
    counts: Counter[str] = Counter()
    if options.markdown:
        print(PAGE.format(version=require_mujoco().__version__))
    print("| file | status | sizes | notes |\n|---|---|---|---|")
    for name, status, sizes, notes in table(options.folder):
        counts[status] += 1
        notes = notes.replace("|", "/")
        if options.width and len(notes) > options.width:
            notes = notes[: options.width - 1] + "…"
        print(f"| {name} | {status} | {sizes} | {notes} |", flush=True)
    summary = ", ".join(f"{counts[s]} {s}" for s in ("loaded", "approximated", "refused", "failed"))
    print(f"\n{sum(counts.values())} files: {summary}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
