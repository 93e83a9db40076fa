"""`stiction train`: PPO on a task, with a progress bar, TensorBoard, checkpoints, an exported policy and a video.

Several processes learn together under ``torchrun --nproc_per_node=2 -m stiction train ...``, each on environments of
its own (``--num-envs`` is per process); the first of them writes.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from argparse import SUPPRESS, BooleanOptionalAction
from contextlib import ExitStack, closing, contextmanager, nullcontext
from pathlib import Path

from stiction.batch_renderer import check_encoder, choose_gl
from stiction.command_words import WORDS, check_at_least, check_more_than_zero, check_seed, require_packages
from stiction.picture import check_renderer
from stiction.simulation_checks import usable_cores

from . import setup
from .board import Board, require_wandb
from .call import SAMPLES, USUAL, settled

SAVE_SECONDS = 60.0  # between checkpoints
QUICK_EPISODES = 10  # of an evaluation on the way, and of the last one when stopped


def add_arguments(parser):
    parser.add_argument(
        "what",
        nargs="?",
        metavar="TASK",
        help="as in `stiction list`, file.py:Class, package.module:Class or a TOML file; not needed with --resume",
    )
    setup.add_arguments(parser)
    parser.add_argument("--num-envs", type=int, help="environments per process; the task's table has a default")
    parser.add_argument(
        "--samples", type=float, help=f"stop after so many control steps in all (default {SAMPLES:.0e})"
    )
    parser.add_argument("--minutes", type=float, help="stop this call after so many minutes of wall clock")
    parser.add_argument("--seed", type=int, help="of a new run (default 0)")
    parser.add_argument("--threads", type=int, help="threads that simulate (default: all cores); two of them learn")
    parser.add_argument(
        "--device", help="auto (default), cpu or cuda: where environments and learner are; with torchrun, a GPU each"
    )
    parser.add_argument("--run-dir", type=Path, help="folder of the run (default runs/<task>/<time>)")
    parser.add_argument("--resume", type=Path, metavar="RUN",
                        help="go on with a run's folder or a checkpoint, its task, robot, seed, --num-envs and --set; "
                             "--samples, --minutes, --threads, --device, --evaluate, --wandb, --onnx and --video are "
                             "those of the call before unless said anew")  # fmt: skip
    parser.add_argument("--set", **WORDS, metavar="NAME=VALUE", help="options of PPO: gamma=0.98 hidden=128,128")
    parser.add_argument("--evaluate", type=int, metavar="N",
                        help=f"episodes without noise at the end (default {USUAL['evaluate']})")  # fmt: skip
    parser.add_argument("--wandb", nargs="?", const=True, metavar="PROJECT",
                        help="show the run in Weights & Biases too (project stiction)")  # fmt: skip
    parser.add_argument("--no-wandb", dest="wandb", action="store_false", default=SUPPRESS, help="or no more")
    parser.add_argument("--onnx", action=BooleanOptionalAction, help="export the policy at the end, or do not")
    parser.add_argument("--video", action=BooleanOptionalAction, help="make a video at the end, or none")


def run(arguments):
    choose_gl()  # before anything imports mujoco
    require_packages({name: name for name in ("torch", "gymnasium", "tqdm", "tensorboard")})
    _require_sense(arguments)
    resumed = _resumed(arguments)
    arguments = settled(arguments, {} if resumed is None else resumed.call)
    _require_outputs(arguments)
    distributed, on_gpu = int(os.environ.get("WORLD_SIZE", "1")) > 1, arguments.device.startswith("cuda")
    if distributed and on_gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = own_gpu(os.environ)  # before anything asks the driver
    import torch

    from .ppo import process_group

    torch.set_num_threads(1)  # more of them cost more than they bring on networks of this size
    with ExitStack() as kept:
        kept.enter_context(heard(interrupt, signal.SIGTERM))
        with stop_signal() as stop:
            with process_group("nccl" if on_gpu else "gloo") if distributed else nullcontext():
                training = kept.enter_context(Training(arguments, resumed, stop))
                training.learn()
        training.finish()
    return 128 + signal.SIGINT if training.stopped else 0


@contextmanager
def heard(handler, *numbers):
    """Signals ``numbers`` go to ``handler``; but for the main thread's, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def interrupt(number, frame):
    """What Ctrl-C does."""
    raise KeyboardInterrupt


@contextmanager
def stop_signal():
    """A function that says whether Ctrl-C, or SIGTERM, has come; the second one ends at once."""
    came: list[int] = []

    def note(number, frame):
        if came:
            interrupt(number, frame)
        came.append(number)
        print("\nstopping after this iteration; again: at once", file=sys.stderr)

    with heard(note, signal.SIGINT, signal.SIGTERM):
        yield lambda: bool(came)


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


def _resumed(arguments):
    """The `Checkpoint` to go on with, or None."""
    if arguments.resume is None:
        return None
    from .run import Checkpoint

    return Checkpoint.load(arguments.resume)


def _require_sense(arguments) -> None:
    """ValueError where words say what cannot be."""
    if arguments.what is None and arguments.resume is None:
        raise ValueError("which task? `stiction list` shows those there are")
    for name, unit in (("samples", "control steps"), ("minutes", "minutes")):
        value = getattr(arguments, name)
        if value is not None:
            check_more_than_zero(f"--{name}", value, unit)
    if arguments.seed is not None:
        check_seed(arguments.seed)
    for name, least in (("num_envs", 1), ("threads", 1), ("evaluate", 0)):
        value = getattr(arguments, name)
        if value is not None:
            check_at_least(f"--{name.replace('_', '-')}", value, least)


def _require_outputs(arguments) -> None:
    """OSError where something is missing for what comes of a run."""
    if arguments.onnx:
        require_packages({"onnx": "onnx", "onnxscript": "onnxscript"}, "--no-onnx")
    if arguments.video:
        require_packages({"imageio_ffmpeg": "imageio[ffmpeg]"}, "--no-video")
    if arguments.wandb is not None:
        require_wandb()
    if arguments.video:
        try:
            check_encoder()
            check_renderer()
        except (ImportError, OSError) as error:
            raise OSError(f"{error}; or --no-video") from error


class Training:
    """One call of the command in one process.

    ``resumed``: the checkpoint that it goes on with, or None; ``stop()`` says whether the user wants it to end.
    """

    def __init__(self, arguments, resumed=None, stop=lambda: False):
        from .folder import RunFolder
        from .options import options_of
        from .ppo import Ppo, Ranks
        from .run import environments

        self.arguments = arguments
        if resumed is None:
            self.setup, changes = setup.of_arguments(arguments.what, arguments)
            self.seed, options = arguments.seed or 0, options_of(self.setup.env_id, changes | self._changes())
        else:
            self._require_same(resumed)
            self.setup, self.seed, options = resumed.setup, resumed.seed, resumed.options
        self.until_samples = arguments.samples
        self.until_seconds = None if arguments.minutes is None else 60 * arguments.minutes
        if resumed is not None and self.until_samples is not None and resumed.ppo["samples"] >= self.until_samples:
            raise ValueError(
                f"{arguments.resume} has {resumed.ppo['samples']:,} samples already: --samples, of all calls together, "
                f"is {self.until_samples:,.0f}, expected more"
            )
        if self.until_seconds == 0:
            raise ValueError(f"{arguments.resume} has had its minutes: --minutes or --samples says how far it goes on")
        self.stop, self.stopped = stop, False
        self.first = Ranks().rank == 0
        self.folder = RunFolder(arguments.run_dir, arguments.resume) if self.first else None
        threads = usable_cores() if arguments.threads is None else arguments.threads
        envs = environments(self.setup, options.num_envs, threads, device=arguments.device)
        self.ppo = Ppo(envs, options, self.seed, threads)
        if resumed is not None:
            self.ppo.load_state_dict(resumed.ppo)

    def __enter__(self) -> Training:
        return self

    def __exit__(self, kind, *exception) -> None:
        if self.first:
            self.folder.close()
            if kind is not None and issubclass(kind, KeyboardInterrupt) and self.folder.saved is not None:
                print(f"kept in {self.folder.path}: the checkpoint of {self.folder.saved:,} samples")
                self._tell_resume()

    def _changes(self) -> dict:
        """Of PPO's options, by words."""
        from .options import parsed_changes

        number = self.arguments.num_envs
        return parsed_changes(self.arguments.set) | ({} if number is None else {"num_envs": number})

    def _require_same(self, resumed) -> None:
        """ValueError where the words of a call say of a run what it is not."""
        from .options import options_of

        arguments = self.arguments
        said, changes = setup.of_arguments(arguments.what or resumed.env_id, arguments)
        changes |= self._changes()
        options = options_of(resumed.env_id, changes)
        words = [(name, getattr(options, name), getattr(resumed.options, name)) for name in changes]
        words += [] if arguments.seed is None else [("seed", arguments.seed, resumed.seed)]
        differences = [*said.differences(resumed.setup), *(word for word in words if word[1] != word[2])]
        if differences:
            name, asked, there = differences[0]
            raise ValueError(
                f"--resume goes on with {resumed.env_id} as it was: {name} is {there!r} there, not {asked!r}"
            )

    # ---- learning

    def learn(self) -> None:
        """Iterates until the end that the arguments name, or the user's stop, all processes together."""
        from tqdm import tqdm

        from .options import task_name
        from .run import bar_interval

        ppo, folder = self.ppo, self.folder
        board = None
        if self.first:
            told = folder.begin(ppo, self.setup, self.seed, self.arguments)
            board = Board(folder.path, told, self.arguments.wandb)
        before = folder.seconds if self.first else 0.0
        total = self.until_samples if self.until_samples is not None else self.until_seconds
        unit = {"unit": "", "unit_scale": True} if self.until_samples else {"unit": "s"}
        started = saved = time.monotonic()
        over = False
        unit |= {"total": round(total), "desc": task_name(self.setup.env_id), "disable": not self.first}
        with tqdm(dynamic_ncols=True, mininterval=bar_interval(), **unit) as bar:
            while not over:
                told = ppo.iterate()
                seconds = time.monotonic() - started
                over = self._finished(seconds)
                if not self.first:
                    continue
                told["perf/samples_per_cpu_second"] = ppo.samples / ppo.ranks.size / ppo.cpu_seconds
                told["perf/simulator_share"] = ppo.simulator_seconds / ppo.cpu_seconds
                self._show(bar, told, seconds)
                folder.curve.append(self._point(told, before + seconds))
                if time.monotonic() - saved > SAVE_SECONDS and not over:
                    folder.save(ppo)
                    if self.arguments.evaluate > 0:
                        found = self._evaluate(min(QUICK_EPISODES, self.arguments.evaluate))
                        folder.note_evaluation(ppo, found)
                        told["evaluation/return"] = found["return"]
                    saved = time.monotonic()
                board.add(told, ppo.samples)
        if self.first:
            board.close()
            folder.save(ppo)

    def _show(self, bar, told: dict, seconds: float) -> None:
        shown = {name: told[key] for name, key in _SHOWN.items() if key in told}
        shown |= {} if self.until_samples else {"samples": self.ppo.samples}
        bar.set_postfix({name: f"{value:.4g}" for name, value in shown.items()}, refresh=False)
        bar.update(min(bar.total, round(self.ppo.samples if self.until_samples else seconds)) - bar.n)

    def _point(self, told: dict, seconds: float) -> dict:
        """Of the learning curve; ``seconds`` of all calls."""
        episodes = {name: told[f"episode/{name}"] for name in ("return", "length") if f"episode/{name}" in told}
        spent = {"seconds": round(seconds, 2), "cpu_seconds": round(self.ppo.cpu_seconds, 2)}
        return {"samples": self.ppo.samples} | spent | episodes

    def _finished(self, seconds: float) -> bool:
        """The same answer in every process: by the first one's clock, by anyone's stop."""
        import torch

        ppo, stopped = self.ppo, self.stop()
        over = self.until_samples is not None and ppo.samples >= self.until_samples
        over = over or (self.until_seconds is not None and seconds >= self.until_seconds)
        told = ppo.ranks.sum(torch.tensor([float(over and self.first), float(stopped)], device=ppo.device)).tolist()
        self.stopped = told[1] > 0
        return any(told)

    def _evaluate(self, episodes: int, progress=None) -> dict:
        from .ppo import evaluate
        from .run import environments

        arguments = self.arguments
        with closing(environments(self.setup, episodes, arguments.threads, device=arguments.device)) as envs:
            returns, lengths = evaluate(self.ppo.policy, envs, seed=2**40, progress=progress)
        spread = returns.std().item() if len(returns) > 1 else 0.0
        return {
            "return": round(returns.mean().item(), 2),
            "deviation": round(spread, 2),
            "length": lengths.double().mean().item(),
            "episodes": len(returns),
        }

    # ---- what is written in the end

    def finish(self) -> None:
        """Tells and writes what was learnt; the first process alone. A stopped run is evaluated shortly, not filmed."""
        from .run import progress

        arguments, ppo, folder = self.arguments, self.ppo, self.folder
        if not self.first:
            return
        self.stopped = self.stopped or self.stop()  # since the last iteration
        if self.stopped:
            self._tell_stop()
        found = {"samples": ppo.samples, "cpu_seconds": round(ppo.cpu_seconds, 1)}
        found["simulator_share"] = round(ppo.simulator_seconds / ppo.cpu_seconds, 3)
        episodes = min(QUICK_EPISODES, arguments.evaluate) if self.stopped else arguments.evaluate
        if episodes > 0:
            try:
                with progress(desc="evaluating", unit=" steps", unit_scale=True) as bar:
                    evaluated = self._evaluate(episodes, bar)
                found |= evaluated
                folder.note_evaluation(ppo, evaluated)
            except KeyboardInterrupt:
                if self.stopped:  # again
                    raise
                self.stopped = True
                self._tell_stop()
        folder.write("result.json", found)
        self._tell(found)
        self._export()
        if self.stopped:
            self._tell_resume()

    def _tell_stop(self) -> None:
        print(f"stopped at {self.ppo.samples:,} samples, kept in {self.folder.path}; Ctrl-C again ends at once")

    def _tell_resume(self) -> None:
        path = self.folder.path
        print(f"`stiction train --resume {path}` goes on, `stiction play {path} --video a.mp4` shows it")

    def _tell(self, found: dict) -> None:
        if "return" in found:
            print(
                f"return {found['return']:.1f} ± {found['deviation']:.1f} (mean and deviation of {found['episodes']} "
                f"episodes without noise, {found['length']:.0f} steps)"
            )
            best = self.folder.best
            if best["samples"] < found["samples"]:
                print(f"best so far: {best['return']:.1f} after {best['samples']:,} samples, kept as best.pt")
        print(
            f"{found['samples']:.3g} samples, {found['cpu_seconds']:.0f} CPU seconds per process, "
            f"{100 * found['simulator_share']:.0f} % of them simulating; kept in {self.folder.path}"
        )

    def _export(self) -> None:
        from .run import progress, write_onnx, write_policy_video

        self.ppo.policy.cpu()
        if self.arguments.onnx:
            print("writing policy.onnx ...", flush=True)
            write_onnx(self.ppo.policy, self.ppo.envs, self.setup, self.folder.path / "policy.onnx")
        if self.arguments.video and not self.stopped:
            path = self.folder.path / "video.mp4"
            with progress(desc="rendering", unit=" frames") as bar:
                write_policy_video(self.ppo.policy, self.setup, path, progress=bar)
            print(f"video: {path}")


_SHOWN = {"return": "episode/return", "length": "episode/length", "simulator": "perf/simulator_share"}
