"""What is kept of a training run: checkpoints, the exported policy and the video. Its folder: folder.py."""

from __future__ import annotations

import json
import logging
import math
import sys
import warnings
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from stiction.command_words import require_packages

from .policy import Policy, policy_part
from .ppo import Options, Ppo
from .setup import Setup, setup_of

_FORMAT = 2  # of checkpoints
CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True)
class Checkpoint:
    """A training run at one moment. ``call``: options of the call that made it, for one that resumes it."""

    setup: Setup
    options: Options
    seed: int
    ppo: dict  # of Ppo.state_dict
    call: dict = field(default_factory=dict)

    @property
    def env_id(self) -> str:
        return self.setup.env_id

    def save(self, path) -> None:
        """Writes the file whole or not at all."""
        path = Path(path)
        setup = {n: torch.from_numpy(v) if n == "model" else v for n, v in self.setup.plain().items()}
        data = {"format": _FORMAT, "setup": setup, "options": asdict(self.options), "seed": self.seed}
        torch.save(data | {"ppo": self.ppo, "call": self.call}, path.with_suffix(".part"))
        path.with_suffix(".part").replace(path)

    @classmethod
    def load(cls, path) -> Checkpoint:
        """``path``: a checkpoint or the folder of a run."""
        path = Path(path)
        path = path / CHECKPOINT if path.is_dir() else path
        if not path.is_file():
            raise FileNotFoundError(
                f"no checkpoint {path}: expected a run's folder or a {CHECKPOINT} of `stiction train`"
            )
        try:
            data = torch.load(path, weights_only=True, map_location="cpu")
            written = data["format"]
        except Exception as error:
            raise ValueError(f"{path} is no checkpoint of `stiction train`") from error
        if written == 1:  # an id was all that there was
            data["setup"] = Setup(data["env_id"]).plain()
        elif written != _FORMAT:
            raise ValueError(f"{path} has format {written}, expected {_FORMAT}: written by another version")
        setup, options = Setup.of_plain(data["setup"]), Options(**data["options"])
        return cls(setup, options, data["seed"], data["ppo"], data.get("call", {}))

    def policy(self) -> Policy:
        """The policy, ready to act: ``policy(observations (N, D)) -> actions (N, A)``."""
        with closing(environments(self.setup, 1, 1)) as envs:
            policy = Policy(envs.single_observation_space, envs.single_action_space, self.options, torch.Generator())
        policy.load_state_dict(self.ppo["policy"])
        return policy.eval()


def checkpoint_of(ppo: Ppo, setup: Setup | str, seed: int, call: dict | None = None) -> Checkpoint:
    return Checkpoint(setup_of(setup), ppo.options, seed, ppo.state_dict(), call or {})


def environments(setup: Setup | str, num_envs: int, threads: int | None, **options):
    """A batch for the learner; the caller closes it."""
    return setup_of(setup).make(num_envs, backend="torch", num_threads=threads, **options)


def progress(**options):
    """A bar of tqdm that leaves nothing behind; without tqdm one that shows nothing."""
    try:
        from tqdm import tqdm
    except ImportError:
        return _NoBar()
    return tqdm(dynamic_ncols=True, leave=False, mininterval=bar_interval(), **options)


def bar_interval() -> float:
    """Seconds between two states of a bar: where nobody watches, each is a line of a log."""
    return 0.2 if sys.stderr.isatty() else 10.0


class _NoBar(nullcontext):
    def __enter__(self):
        return self

    def update(self, n=1) -> None:
        pass

    def reset(self, total=None) -> None:
        pass


def export_onnx(policy: Policy, path) -> None:
    """The policy without noise, ``observation (batch, D) -> action (batch, A)``, normalisation and bounds included.

    The policy is on the CPU.
    """
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # or it warns of every package that it could also use
    example = torch.zeros(2, policy.inputs)
    batch = torch.export.Dim("batch", min=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of torch, about torch
        torch.onnx.export(
            policy.eval(),
            (example,),
            str(path),
            input_names=["observation"],
            output_names=["action"],
            dynamic_shapes=({0: batch},),
            dynamo=True,
            external_data=False,
            verbose=False,
        )


def write_onnx(policy: Policy, envs, setup: Setup, path: Path) -> None:
    """All that others need to run a policy: ``path``, beside it what goes in and comes out as .json, and model.mjb.

    model.mjb is one's own robot for `mujoco.MjModel.from_binary_path`: with meshes, and a URDF's servos and floor.
    """
    export_onnx(policy, path)
    path.with_suffix(".json").write_text(json.dumps(envs.interface(), indent=1) + "\n", encoding="utf-8")
    if setup.model is not None and setup.model.mjmodel is not None:
        import mujoco

        mujoco.mj_saveModel(setup.model.mjmodel, str(path.with_name("model.mjb")), None)


def check_onnx(path: Path) -> None:
    """ValueError or OSError where `write_onnx` could not write ``path``."""
    if path.suffix != ".onnx":
        raise ValueError(f"{path} is no name of a policy, expected one that ends in .onnx")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no folder {path.parent} to write {path.name} into")
    require_packages({"onnx": "onnx", "onnxscript": "onnxscript"})


def write_policy_video(
    policy: Policy, setup: Setup | str, path, *, seconds=10.0, seed=0, progress=None, **shown
) -> float:
    """An MP4 of one environment under the policy without noise, begun anew where an episode ends; its reward in sum.

    It plays in real time, with up to 50 frames a second. ``progress``: a tqdm bar that is told of frames;
    ``shown``: width, height, camera.
    """
    from stiction.batch_renderer import check_video, write_video

    check_video(path)
    with closing(environments(setup, 1, 1, render_mode="rgb_array", **shown)) as envs, torch.no_grad():
        observations, _ = envs.reset(seed=seed)
        frames, total = [envs.render()[0]], 0.0
        steps, every = max(1, round(seconds / envs.step_dt)), math.ceil(0.02 / envs.step_dt - 1e-6)
        if progress is not None:
            progress.reset(total=1 + steps // every)
        for step in range(1, steps + 1):
            observations, rewards, *_ = envs.step(policy(policy_part(observations)))
            total += rewards.item()
            if step % every == 0:
                frames.append(envs.render()[0])
                if progress is not None:
                    progress.update()
        write_video(path, frames, fps=1 / (every * envs.step_dt))
    return total
