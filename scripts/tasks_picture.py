"""docs/tasks.png: every task at the beginning of an episode, or a while into one under a policy.

    scripts/tasks_picture.py [--runs FOLDER] [--seconds S] [--output FILE]

FOLDER has checkpoints of `stiction train` or `bench.learning --keep`, named by task: Ant.pt, rec-Hopper-0.pt.
"""

import argparse
from contextlib import closing
from pathlib import Path

import numpy as np
from stiction.batch_renderer import choose_gl

choose_gl()

import stiction  # noqa: E402
import torch  # noqa: E402
from PIL import Image, ImageDraw, ImageFont  # noqa: E402
from stiction.registration import ENVIRONMENTS  # noqa: E402
from stiction.training.options import task_name  # noqa: E402
from stiction.training.run import Checkpoint  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
SIZE, COLUMNS = 240, 3


def policy_of(task: str, runs: Path | None):
    """The first checkpoint that has the task's name in its own, or None."""
    found = sorted(runs.glob("*.pt")) if runs else []
    path = next((p for p in found if task in p.stem.split("-")), None)
    return None if path is None else Checkpoint.load(path).policy()


def panel(env_id: str, runs: Path | None, seconds: float) -> Image.Image:
    with closing(stiction.make_vec(env_id, backend="torch", render_mode="rgb_array")) as envs, torch.no_grad():
        observations, _ = envs.reset(seed=0)
        policy = policy_of(task_name(env_id), runs)
        for _ in range(round(seconds / envs.step_dt) if policy else 0):
            observations, *_ = envs.step(policy(observations.float()))
        picture = Image.fromarray(np.asarray(envs.render()[0])).resize((SIZE, SIZE), Image.Resampling.LANCZOS)
    label(picture, (7, 5), task_name(env_id))
    return picture


def label(picture: Image.Image, place: tuple[int, int], text: str) -> None:
    """Dark, with a light edge: on the sky and on the floor."""
    look = {"fill": (15, 20, 30), "stroke_fill": (235, 240, 245), "stroke_width": 2}
    ImageDraw.Draw(picture).text(place, text, font=ImageFont.load_default(12), **look)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, metavar="FOLDER", help="of checkpoints")
    parser.add_argument("--seconds", type=float, default=2.0, help="into the episode, where there is a policy")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "tasks.png")
    arguments = parser.parse_args()
    rows = -(-len(ENVIRONMENTS) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * SIZE, rows * SIZE))
    for number, env_id in enumerate(ENVIRONMENTS):
        place = (number % COLUMNS * SIZE, number // COLUMNS * SIZE)
        sheet.paste(panel(env_id, arguments.runs, arguments.seconds), place)
    sheet.quantize(256, method=Image.Quantize.MAXCOVERAGE).save(arguments.output, optimize=True)
    print(f"{arguments.output}: {len(ENVIRONMENTS)} tasks")


if __name__ == "__main__":
    main()
