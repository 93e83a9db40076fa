"""Seconds that every file took to compile, from the log that ninja keeps of a build: the slowest first, and their sum.

    scripts/compile_seconds.py [build folder, default build]

Files that were compiled side by side count with their own time each, so the sum is that of one core.
"""

import argparse
import sys
from pathlib import Path

SHOWN = 15


def seconds_by_object(log):
    """object -> seconds of its last compilation, from a .ninja_log (start ms, end ms, time stamp, output, hash)."""
    seconds = {}
    for line in log.read_text().splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        if output.endswith((".o", ".gch")):  # precompiled headers, too
            seconds[output] = (int(end) - int(start)) / 1000
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", type=Path, default=Path("build"))
    parser.add_argument("--all", action="store_true", help="all files, not the slowest alone")
    arguments = parser.parse_args()
    log = arguments.build / ".ninja_log"
    if not log.is_file():
        sys.exit(f"no {log}: build with ninja first")
    seconds = {o: s for o, s in seconds_by_object(log).items() if (arguments.build / o).exists()}
    slowest = sorted(seconds.items(), key=lambda item: -item[1])
    for output, spent in slowest[: None if arguments.all else SHOWN]:
        target, _, source = output.partition(".dir/")
        print(f"{spent:7.1f} s  {target.rpartition('/')[2]:<22}{source.removesuffix('.o')}")
    print(f"{sum(seconds.values()):7.1f} s  in all, {len(seconds)} files")


if __name__ == "__main__":
    main()
