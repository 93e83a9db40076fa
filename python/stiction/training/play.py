"""`stiction play`: what a trained policy reaches, and a video of it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from stiction.batch_renderer import check_video, choose_gl
from stiction.command_words import check_at_least, check_more_than_zero, check_seed
from stiction.picture import check_renderer


def add_arguments(parser):
    parser.add_argument("run", type=Path, help="folder of a run, or a checkpoint, of `stiction train`")
    parser.add_argument("--episodes", type=int, default=100, help="episodes without noise (default 100)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="threads that simulate (default: all cores)")
    parser.add_argument("--onnx", type=Path, metavar="FILE.onnx",
                        help="also write the policy; FILE.json beside it names what goes in and comes out, and "
                             "model.mjb is a robot of one's own")  # fmt: skip
    parser.add_argument("--video", type=Path, metavar="FILE.mp4", help="also write a video")
    parser.add_argument(
        "--width", type=int, default=480, help="of the video, pixels (default 480); odd ones get one more"
    )
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--camera", help="of the model; by default 'track', or one that follows")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of the video")


def run(arguments):
    choose_gl()
    try:
        import torch
    except ImportError:
        raise OSError("needs torch: pip install 'stiction[train]'") from None
    from .ppo import evaluate
    from .run import Checkpoint, check_onnx, environments, progress, write_onnx, write_policy_video

    check_at_least("--episodes", arguments.episodes, 1)
    check_more_than_zero("--seconds", arguments.seconds, "seconds")
    check_seed(arguments.seed)
    if arguments.video is not None:
        check_video(arguments.video)
        check_renderer()
    if arguments.onnx is not None:
        check_onnx(arguments.onnx)
    shown = {"width": arguments.width, "height": arguments.height, "camera": arguments.camera}
    torch.set_num_threads(1)
    kept = Checkpoint.load(arguments.run)
    policy = kept.policy()
    if arguments.video is not None:  # what is wrong with it is told before the work
        with closing(environments(kept.setup, 1, 1, render_mode="rgb_array", **shown)) as envs:
            envs.reset(seed=0)
            envs.picture(0)
    with closing(environments(kept.setup, arguments.episodes, arguments.threads)) as envs:
        with progress(desc="evaluating", unit=" steps", unit_scale=True) as bar:
            returns, lengths = evaluate(policy, envs, arguments.seed, bar)
        seconds = lengths.double().mean().item() * envs.step_dt
        if arguments.onnx is not None:
            write_onnx(policy, envs, kept.setup, arguments.onnx)
    print(
        f"{kept.env_id}: return {returns.mean():.1f}, from {returns.min():.1f} to {returns.max():.1f}, of "
        f"{len(returns)} episodes of {seconds:.1f} s on average; {kept.ppo['samples']:.3g} samples of training"
    )
    if arguments.video is not None:
        with progress(desc="rendering", unit=" frames") as bar:
            write_policy_video(
                policy,
                kept.setup,
                arguments.video,
                seconds=arguments.seconds,
                seed=arguments.seed,
                progress=bar,
                **shown,
            )
        print(f"video: {arguments.video}")
