"""The command `stiction`: one sub-command per module.

A module of COMMANDS has `add_arguments(parser)` and `run(arguments) -> exit status or None`. Only the module of the
command that was asked for is imported.
"""

import argparse
import re
import signal
import sys
import sysconfig
import traceback
from importlib import import_module
from pathlib import Path

from stiction import __version__

#: Command -> (module, one line of help).
COMMANDS = {
    "train": ("stiction.training.train", "trains a policy on a task"),
    "play": ("stiction.training.play", "evaluates a trained policy, and makes a video of it"),
    "view": ("stiction.training.view", "shows a task or a trained policy live"),
    "bench": ("stiction.training.bench", "speed of a task on this machine, or of the learner alone"),
    "list": ("stiction.training.listing", "the tasks there are"),
    "compile": ("stiction.model_kernels", "compiles a model's own CUDA kernels ahead of time"),
    "replay": ("stiction.replay", "one dumped step, solved again in another precision or by another solver"),
    "info": ("stiction.info", "what this build can do and what this machine offers it"),
}


def main(argv=None):
    argv = sys.argv[1:] if argv is None else list(argv)
    asked = next((word for word in argv if not word.startswith("-")), None)
    parser = argparse.ArgumentParser(prog="stiction", description="Batched multibody simulation with accurate contact.")
    parser.add_argument("--version", action="version", version=f"stiction {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    run = None
    try:
        for name, (module, summary) in COMMANDS.items():
            command = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
            if name == asked:
                implementation = import_module(module)  # which may take seconds
                implementation.add_arguments(command)
                run = implementation.run
        return run(parser.parse_args(argv)) or 0
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:  # what the user can mend
        print(f"stiction {asked}: {_place(error)}{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"stiction {asked}: stopped", file=sys.stderr)
        return 128 + signal.SIGINT


def _place(error: Exception) -> str:
    """Where a user's own code, a task in Python, met it: "mine.py, line 7, in reward: "; elsewhere nothing."""
    ours = str(Path(__file__).parent), sysconfig.get_path("stdlib"), "<"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(ours)]
    frames = [frame for frame in frames if not re.search(r"/(site|dist)-packages/", frame.filename)]
    return f"{frames[-1].filename}, line {frames[-1].lineno}, in {frames[-1].name}: " if frames else ""


if __name__ == "__main__":
    sys.exit(main())
