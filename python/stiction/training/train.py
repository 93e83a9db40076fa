"""`stiction train`: PPO on a task, with a progress bar, TensorBoard, checkpoints, an exported policy and a video.

Several processes learn together under ``torchrun --nproc_per_node=2 -m stiction train ...``, each on environments of
its own (``--num-envs`` is per process); the first of them writes.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from contextlib import closing, nullcontext
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from stiction.batch_renderer import choose_gl


def add_arguments(parser):
    parser.add_argument("task", nargs="?", help="as in `stiction list`, or file.py:Class; not needed with --resume")
    parser.add_argument("--num-envs", type=int, help="environments per process; the task's table has a default")
    parser.add_argument("--samples", type=float, help="stop after so many control steps in all (default 3e6)")
    parser.add_argument("--minutes", type=float, help="stop after so many minutes of wall clock")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="threads that simulate (default: all cores); one learns")
    parser.add_argument(
        "--device",
        default="auto",
        help="auto, cpu or cuda: where environments and learner are; with torchrun, a GPU each",
    )
    parser.add_argument("--run-dir", type=Path, help="folder of the run (default runs/<task>/<time>)")
    parser.add_argument("--resume", type=Path, metavar="RUN", help="go on with a run's folder or a checkpoint")
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="options of PPO: gamma=0.98 hidden=128,128"
    )
    parser.add_argument("--evaluate", type=int, default=100, metavar="N", help="episodes without noise at the end")
    parser.add_argument("--no-onnx", action="store_true", help="do not export the policy")
    parser.add_argument("--no-video", action="store_true", help="no video at the end")


def run(arguments):
    _require(arguments)
    choose_gl()
    distributed, on_gpu = int(os.environ.get("WORLD_SIZE", "1")) > 1, arguments.device.startswith("cuda")
    if distributed and on_gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = own_gpu(os.environ)  # before anything asks the driver
    import torch

    from .ppo import process_group

    torch.set_num_threads(1)  # more of them cost more than they bring on networks of this size
    with process_group("nccl" if on_gpu else "gloo") if distributed else nullcontext():
        training = Training(arguments)
        training.learn()
    training.finish()
    return 0


def own_gpu(environment) -> str:
    """CUDA_VISIBLE_DEVICES of a process of torchrun: one of those that this machine's processes share."""
    rank = int(environment["LOCAL_RANK"])
    there = environment.get("CUDA_VISIBLE_DEVICES")
    if there is None:
        return str(rank)
    names = there.split(",")
    if rank >= len(names):
        raise ValueError(f"process {rank} of this machine has no GPU: CUDA_VISIBLE_DEVICES is {there!r}")
    return names[rank]


def _require(arguments) -> None:
    needed = {"torch": "torch", "gymnasium": "gymnasium", "tqdm": "tqdm", "tensorboard": "tensorboard"}
    needed |= {} if arguments.no_onnx else {"onnx": "onnx", "onnxscript": "onnxscript"}
    needed |= {} if arguments.no_video else {"imageio_ffmpeg": "imageio[ffmpeg]"}
    missing = [package for module, package in needed.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise OSError(f"needs {', '.join(missing)}: pip install 'stiction[train]' (--no-onnx, --no-video need less)")
    if arguments.task is None and arguments.resume is None:
        raise ValueError("which task? `stiction list` shows those there are")


class Training:
    """One call of the command in one process."""

    def __init__(self, arguments):
        from .options import environment_id, options_of, parsed_changes
        from .ppo import Ppo
        from .run import Checkpoint, environments

        changes = parsed_changes(arguments.set)
        if arguments.num_envs is not None:
            changes["num_envs"] = arguments.num_envs
        resumed = None if arguments.resume is None else Checkpoint.load(arguments.resume)
        if resumed is None:
            self.env_id, self.seed = environment_id(arguments.task), arguments.seed
            options = options_of(self.env_id, changes)
        else:
            if changes or (arguments.task is not None and environment_id(arguments.task) != resumed.env_id):
                raise ValueError(
                    f"--resume goes on with {resumed.env_id} as it was: no other task, --num-envs or --set"
                )
            self.env_id, self.seed, options = resumed.env_id, resumed.seed, resumed.options
        self.until_samples = arguments.samples or (None if arguments.minutes else 3e6)
        self.until_seconds = None if arguments.minutes is None else 60 * arguments.minutes
        self.arguments = arguments
        self.ppo = Ppo(
            environments(self.env_id, options.num_envs, arguments.threads, device=arguments.device), options, self.seed
        )
        if resumed is not None:
            self.ppo.load_state_dict(resumed.ppo)
        self.first = self.ppo.ranks.rank == 0
        self.curve: list[dict] = []

    # ---- learning

    def learn(self) -> None:
        """Iterates until the end that the arguments name, all processes together."""
        from torch.utils.tensorboard import SummaryWriter
        from tqdm import tqdm

        from .options import task_name

        if self.first:
            self.folder = self._made_folder()
        ppo, started, saved = self.ppo, time.monotonic(), time.monotonic()
        writer = SummaryWriter(str(self.folder)) if self.first else None
        total = self.until_samples if self.until_samples is not None else self.until_seconds
        unit = {"unit": "", "unit_scale": True} if self.until_samples else {"unit": "s"}
        bar = tqdm(total=round(total), disable=not self.first, dynamic_ncols=True, mininterval=0.5, **unit)
        bar.set_description(task_name(self.env_id))
        while not self._finished(time.monotonic() - started):
            told = ppo.iterate()
            seconds = time.monotonic() - started
            if not self.first:
                continue
            told["perf/samples_per_cpu_second"] = ppo.samples / ppo.ranks.size / ppo.cpu_seconds
            told["perf/simulator_share"] = ppo.simulator_seconds / ppo.cpu_seconds
            for name, value in told.items():
                writer.add_scalar(name, value, ppo.samples)
            shown = {name: told[key] for name, key in _SHOWN.items() if key in told}
            bar.set_postfix({name: f"{value:.4g}" for name, value in shown.items()}, refresh=False)
            bar.update(min(bar.total, round(ppo.samples if self.until_samples else seconds)) - bar.n)
            self.curve.append(
                {"samples": ppo.samples, "seconds": round(seconds, 2), "cpu_seconds": round(ppo.cpu_seconds, 2)}
                | {name: told[f"episode/{name}"] for name in ("return", "length") if f"episode/{name}" in told}
            )
            if time.monotonic() - saved > 60:
                self._save()
                saved = time.monotonic()
        bar.close()
        if writer is not None:
            writer.close()

    def _finished(self, seconds: float) -> bool:
        """The same answer in every process: the first one's."""
        import torch

        ppo = self.ppo
        over = self.until_samples is not None and ppo.samples >= self.until_samples
        over = over or (self.until_seconds is not None and seconds >= self.until_seconds)
        return bool(ppo.ranks.sum(torch.tensor(float(over and self.first), device=ppo.device)))

    # ---- what is written

    def finish(self) -> None:
        """Tells and writes what was learnt; the first process alone."""
        from .ppo import evaluate
        from .run import environments

        arguments, ppo = self.arguments, self.ppo
        if not self.first:
            return
        self._save()
        found = {"samples": ppo.samples, "cpu_seconds": round(ppo.cpu_seconds, 1)}
        found["simulator_share"] = round(ppo.simulator_seconds / ppo.cpu_seconds, 3)
        if arguments.evaluate > 0:
            with closing(
                environments(self.env_id, arguments.evaluate, arguments.threads, device=arguments.device)
            ) as envs:
                returns, lengths = evaluate(ppo.policy, envs, seed=2**40)
            spread = returns.std().item() if len(returns) > 1 else 0.0
            found |= {"return": round(returns.mean().item(), 2), "deviation": round(spread, 2)}
            found |= {"length": lengths.double().mean().item(), "episodes": len(returns)}
        self._write("result.json", found)
        self._tell(found)
        self._export()

    def _made_folder(self) -> Path:
        from .options import task_name

        folder = self.arguments.run_dir
        if folder is None and self.arguments.resume is not None:
            folder = self.arguments.resume if self.arguments.resume.is_dir() else self.arguments.resume.parent
        elif folder is None:
            folder = Path("runs") / task_name(self.env_id) / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        folder.mkdir(parents=True, exist_ok=True)
        if self.arguments.resume is not None and (folder / "curve.json").is_file():
            self.curve = json.loads((folder / "curve.json").read_text(encoding="utf-8"))
        self.folder = folder
        self._write(
            "run.json",
            {
                "command": " ".join(["stiction", *sys.argv[1:]]),
                "env_id": self.env_id,
                "seed": self.seed,
                "processes": self.ppo.ranks.size,
                "threads": self.ppo.envs.simulation.num_threads,
                "options": asdict(self.ppo.options),
            },
        )
        return folder

    def _write(self, name: str, data) -> None:
        from .run import write_json

        write_json(self.folder / name, data)

    def _save(self) -> None:
        from .run import CHECKPOINT, checkpoint_of

        checkpoint_of(self.ppo, self.env_id, self.seed).save(self.folder / CHECKPOINT)
        self._write("curve.json", self.curve)

    def _tell(self, found: dict) -> None:
        if "return" in found:
            print(
                f"return {found['return']:.1f} ± {found['deviation']:.1f} (mean and deviation of {found['episodes']} "
                f"episodes without noise, {found['length']:.0f} steps)"
            )
        print(
            f"{found['samples']:.3g} samples, {found['cpu_seconds']:.0f} CPU seconds per process, "
            f"{100 * found['simulator_share']:.0f} % of them simulating; kept in {self.folder}"
        )

    def _export(self) -> None:
        from .run import export_onnx, write_policy_video

        self.ppo.policy.cpu()
        if not self.arguments.no_onnx:
            export_onnx(self.ppo.policy, self.folder / "policy.onnx")
        if not self.arguments.no_video:
            write_policy_video(self.ppo.policy, self.env_id, self.folder / "video.mp4")
            print(f"video: {self.folder / 'video.mp4'}")


_SHOWN = {"return": "episode/return", "length": "episode/length", "simulator": "perf/simulator_share"}
