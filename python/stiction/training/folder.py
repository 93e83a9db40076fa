"""The folder of a training run: who made it and how, the learning curve, the last and the best checkpoint.

run.json          task, seed, options; of every call its command, arguments (those kept of the call before, too),
                  versions, commit and machine
curve.json        a point per iteration: samples, seconds (of all calls), CPU seconds, return and length of episodes
evaluations.json  episodes without noise: every minute and at the end
checkpoint.pt     the last; best.pt: of those evaluated the one with the highest return
result.json       what the last call reached; policy.onnx, policy.json, video.mp4, TensorBoard's events
policy.json       what goes into the policy and what comes out: names, units and scales of every number
model.mjb         a robot of one's own as it was trained, for MuJoCo alone
lock              the file that the process which trains here has locked; without one it means nothing
"""

from __future__ import annotations

import fcntl
import functools
import json
import math
import platform
import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from stiction import info

from .call import kept
from .options import task_name
from .run import CHECKPOINT, checkpoint_of

BEST = "best.pt"


class RunFolder:
    """``path``: where, None for a new one; ``resumed``: the checkpoint, or its folder, that the run goes on with."""

    def __init__(self, path: Path | None, resumed: Path | None):
        before = None if resumed is None else (resumed if resumed.is_dir() else resumed.parent)
        path = before if path is None else path
        if path is not None and path.exists() and not path.is_dir():
            raise NotADirectoryError(f"--run-dir {path} is a file, expected a folder")
        there = [] if path is None else [name for name in ("run.json", CHECKPOINT) if (path / name).exists()]
        if there and (before is None or path.resolve() != before.resolve()):
            go_on = f"`--resume {path}` goes on with it, and " if CHECKPOINT in there else ""
            raise FileExistsError(
                f"{path} has a run already ({', '.join(there)}): {go_on}another --run-dir begins anew"
            )
        self.path, self._from = path, before
        self.curve: list[dict] = []
        self.evaluations: list[dict] = []
        self.saved: int | None = None  # samples of the checkpoint
        self._lock = None
        if there:
            self._claim()

    def _claim(self) -> None:
        """Makes the folder, where nobody else trains until `close` or this process's end."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = open(self.path / "lock", "a")
        except OSError as error:
            raise type(error)(f"{self.path} cannot be made or written to: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(
                f"another process trains in {self.path}: stop it or wait for its end, or go on elsewhere by --run-dir"
            ) from None
        except OSError:  # a file system without locks
            pass

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def begin(self, ppo, setup, seed: int, arguments) -> dict:
        """Makes the folder, with a checkpoint from which the run can go on, and takes over the curves up to
        ``ppo.samples``.

        Notes this call in run.json and returns what is there.
        """
        self._setup, self._seed, self._arguments = setup, seed, arguments
        if self.path is None:
            self.path = _new(Path("runs") / task_name(setup.env_id))
        if self._lock is None:
            self._claim()
        calls = _calls((self._from or self.path) / "run.json")
        if self._from is not None:
            self.curve, self.evaluations = (
                _points(self._from / name, ppo.samples) for name in ("curve.json", "evaluations.json")
            )
        self._before = self.seconds
        call = {
            "command": " ".join(["stiction", *sys.argv[1:]]),
            "began": datetime.now().astimezone().isoformat(timespec="seconds"),
            "samples": ppo.samples,
            "arguments": {name: _plain(value) for name, value in vars(arguments).items()},
            "processes": ppo.ranks.size,
            "threads": ppo.envs.simulation.num_threads,
            "device": ppo.envs.device,
            "isa": ppo.envs.simulation.isa,
            "host": platform.node(),
            **info.facts(),
        }
        told = {"env_id": setup.env_id, "setup": setup.told(), "seed": seed, "options": asdict(ppo.options)}
        told["calls"] = [*calls, call]
        self.save(ppo)
        self.write("run.json", told)
        return told

    @property
    def seconds(self) -> float:
        """Of all calls, as far as the curve goes."""
        return self.curve[-1]["seconds"] if self.curve else 0.0

    @property
    def best(self) -> dict:
        """The evaluation that best.pt is of."""
        return functools.reduce(lambda best, found: found if _outdoes(found, best) else best, self.evaluations)

    def save(self, ppo) -> None:
        """The checkpoint and the curve that led to it."""
        self._checkpoint(ppo).save(self.path / CHECKPOINT)
        self.saved = ppo.samples
        self.write("curve.json", self.curve)

    def _checkpoint(self, ppo):
        call = kept(self._arguments, self.seconds - self._before)
        return checkpoint_of(ppo, self._setup, self._seed, call)

    def note_evaluation(self, ppo, found: dict) -> bool:
        """Keeps what an evaluation found and, if it is the best, the checkpoint; returns whether it is."""
        self.evaluations.append({"samples": ppo.samples} | found)
        self.write("evaluations.json", self.evaluations)
        best = self.best is self.evaluations[-1]
        if best:
            self._checkpoint(ppo).save(self.path / BEST)
        return best

    def write(self, name: str, data) -> None:
        """JSON, whole or not at all."""
        part = self.path / f"{name}.part"
        part.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        part.replace(self.path / name)


def _outdoes(found: dict, other: dict) -> bool:
    """Of fewer episodes by two deviations of their mean: some are lucky, and one has no deviation of its own."""
    few = found["episodes"] < other["episodes"]
    doubt = 2 * max(found["deviation"], other["deviation"]) / math.sqrt(found["episodes"]) if few else 0.0
    return found["return"] - doubt > other["return"]


def _new(parent: Path) -> Path:
    """A folder named by the time that nobody has yet."""
    name = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    number, path = 1, parent / name
    while True:
        try:
            path.mkdir(parents=True)
            return path
        except FileExistsError:
            number += 1
            path = parent / f"{name}-{number}"


def _read(path: Path, otherwise):
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else otherwise


def _calls(path: Path) -> list[dict]:
    try:
        return list(_read(path, {}).get("calls", []))
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is broken ({error}): mend or remove it; the checkpoint has all that the run goes on with"
        ) from None


def _points(path: Path, samples: int) -> list[dict]:
    """Of a curve, up to ``samples``; of a broken file none, which is told."""
    try:
        return [point for point in _read(path, []) if point["samples"] <= samples]
    except (ValueError, TypeError, KeyError) as error:
        print(f"{path} is broken ({error}): the run goes on without it", file=sys.stderr)
        return []


def _plain(value):
    return str(value) if isinstance(value, Path) else value
