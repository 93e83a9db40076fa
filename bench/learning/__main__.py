"""``python -m bench.learning TASK``: how fast PPO learns a task, over seeds; curves as PNG and JSON. See README.md."""

from __future__ import annotations

import argparse
import shlex
import time
from contextlib import closing
from dataclasses import asdict
from statistics import median

import torch
from stiction.training.options import environment_id, options_of, parsed_changes, task_name
from stiction.training.ppo import Ppo, evaluate
from stiction.training.run import checkpoint_of, environments

from bench.step import machine

#: Mean return of 100 episodes without noise that a task is to reach, and in how many minutes on two quiet cores.
TARGETS = {
    "CartPoleSwingUp": (750, 2),
    "Hopper": (2500, 5),
    "HalfCheetah": (5000, 5),
    "Ant": (2500, 10),
    "Humanoid": (2500, 30),
}
EPISODES = 100


def learn(env_id: str, options, seed: int, arguments) -> dict:
    """One training: points of the curve, evaluations without noise (not in the seconds), and the sums."""
    curve, evaluations = [], []
    with (
        closing(environments(env_id, options.num_envs, arguments.threads)) as envs,
        closing(environments(env_id, EPISODES, arguments.threads)) as judges,
    ):
        ppo = Ppo(envs, options, seed)
        wall, next_at = 0.0, 0.0
        while ppo.samples < arguments.samples:
            started = time.perf_counter()
            told = ppo.iterate()
            wall += time.perf_counter() - started
            at = {"samples": ppo.samples, "cpu_seconds": round(ppo.cpu_seconds, 2), "seconds": round(wall, 2)}
            if "episode/return" in told:
                curve.append(at | {"return": round(told["episode/return"], 2)})
            if ppo.samples >= next_at or ppo.samples >= arguments.samples:
                next_at += arguments.samples / arguments.evaluations
                returns, lengths = evaluate(ppo.policy, judges, seed=2**40)
                spread, steps = returns.std().item(), lengths.double().mean().item()
                evaluations.append(at | {"return": returns.mean().item(), "deviation": spread, "length": steps})
                print(
                    f"seed {seed}  {ppo.samples / 1e6:6.2f}M samples  {ppo.cpu_seconds:6.0f} CPU-s  "
                    f"return {returns.mean():8.1f} ± {spread:.0f}  ({steps:.0f} steps)",
                    flush=True,
                )
        if arguments.keep is not None:
            checkpoint_of(ppo, env_id, seed).save(f"{arguments.keep}-{seed}.pt")
        return {
            "seed": seed,
            "samples": ppo.samples,
            "cpu_seconds": ppo.cpu_seconds,
            "simulator_share": ppo.simulator_seconds / ppo.cpu_seconds,
            "curve": curve,
            "evaluations": evaluations,
        }


def reached(run: dict, target: float | None) -> dict | None:
    """The first evaluation at or above the target."""
    return next((at for at in run["evaluations"] if target is not None and at["return"] >= target), None)


def command(arguments) -> str:
    """What repeats these numbers."""
    words = ["python", "-m", "bench.learning", arguments.task]
    words += ["--seeds", arguments.seeds, "--samples", f"{arguments.samples:g}", "--threads", arguments.threads]
    words += ["--evaluations", arguments.evaluations] + (["--set", *arguments.set] if arguments.set else [])
    return shlex.join(map(str, words))


def report(result: dict) -> None:
    target = result["target"]
    print(f"\n{result['env_id']}, {result['threads']} threads simulate, one learns")
    for run in result["runs"]:
        last, first = run["evaluations"][-1], reached(run, target)
        when = f"{first['samples'] / 1e6:.2f}M samples, {first['cpu_seconds']:.0f} CPU-s" if first else "not reached"
        print(
            f"  seed {run['seed']}: {last['return']:.0f} ± {last['deviation']:.0f} at {run['samples'] / 1e6:.2f}M "
            f"samples, {run['cpu_seconds']:.0f} CPU-s, {100 * run['simulator_share']:.0f} % simulating"
            + (f"; {target:g}: {when}" if target is not None else "")
        )
    print(f"  median of the last: {median(run['evaluations'][-1]['return'] for run in result['runs']):.0f}")


def draw(result: dict, path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    for panel, axis, unit, label in zip(
        panels, ("samples", "cpu_seconds"), (1e6, 1), ("million control steps", "CPU seconds"), strict=True
    ):
        for number, run in enumerate(result["runs"]):
            curve, marks = run["curve"], run["evaluations"]
            panel.plot([p[axis] / unit for p in curve], [p["return"] for p in curve], color=f"C{number}", alpha=0.5)
            panel.plot(
                [p[axis] / unit for p in marks], [p["return"] for p in marks], "o-", ms=3, color=f"C{number}",
                label=f"seed {run['seed']}, without noise",
            )  # fmt: skip
        if result["target"] is not None:
            panel.axhline(result["target"], color="0.5", lw=1, ls="--")
        panel.set_xlabel(label)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("return")
    panels[0].legend(fontsize=8)
    figure.suptitle(f"{result['env_id']}: {result['command']}", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main(argv=None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.learning", description=__doc__)
    parser.add_argument("task", help="as in `stiction list`")
    parser.add_argument("--seeds", type=int, default=3, help="trainings, of seeds 0, 1, ... (default 3)")
    parser.add_argument("--samples", type=float, default=3e6, help="of each training (default 3e6)")
    parser.add_argument("--threads", type=int, default=1, help="threads that simulate (default 1)")
    parser.add_argument("--evaluations", type=int, default=12, help="of each training (default 12)")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="options of PPO")
    parser.add_argument("--keep", metavar="PREFIX", help="write each seed's last checkpoint to PREFIX-SEED.pt")
    parser.add_argument("--output", help="folder of the results; - for none (default bench/results/<machine>/learning)")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    env_id = environment_id(arguments.task)
    options = options_of(env_id, parsed_changes(arguments.set))
    result = {
        "command": command(arguments),
        "machine": machine.description() | {"torch": torch.__version__},
        "env_id": env_id,
        "target": TARGETS.get(task_name(env_id), (None, None))[0],
        "threads": arguments.threads,
        "options": asdict(options),
        "runs": [learn(env_id, options, seed, arguments) for seed in range(arguments.seeds)],
    }
    report(result)
    if arguments.output != "-":
        folder = machine.results_folder() / "learning" if arguments.output is None else machine.Path(arguments.output)
        name = task_name(env_id).lower()
        machine.write(folder / f"{name}.json", result)
        draw(result, folder / f"{name}.png")


if __name__ == "__main__":
    main()
