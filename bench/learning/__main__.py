"""``python -m bench.learning TASK``: how fast PPO learns a task, over seeds; curves as PNG and JSON. See README.md.

Under ``torchrun --nproc_per_node=2 -m bench.learning TASK`` two processes share the environments and the minibatches.
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
import time
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, field, replace
from statistics import median

import torch
from stiction.training.options import environment_id, options_of, parsed_changes, task_name
from stiction.training.ppo import Ppo, Ranks, evaluate, process_group
from stiction.training.run import checkpoint_of, environments

from bench.step import machine
from bench.transfer.variants import here

EPISODES = 100
CURVE_POINTS = 200  # that are kept of a training


@dataclass(frozen=True)
class Target:
    """What a task is to reach in 100 episodes without noise, and in how many minutes on two quiet cores.

    ``report`` names a report whose mean over all steps is to fall to ``value``, or, ``at_end``, whose mean over the
    last steps of episodes is to rise to it; None is the mean return, which is to rise to it. ``judged``: options of the
    environments that judge.
    """

    value: float
    minutes: float
    report: str | None = None
    judged: dict = field(default_factory=dict)
    at_end: bool = False

    @property
    def falls(self) -> bool:
        return self.report is not None and not self.at_end

    def reached(self, evaluation: dict) -> bool:
        found = evaluation[self.report or "return"]
        return found <= self.value if self.falls else found >= self.value


TARGETS = {
    "CartPoleSwingUp": Target(750, 2),
    "Hopper": Target(2500, 5),
    "HalfCheetah": Target(5000, 5),
    "Ant": Target(2500, 10),
    "Humanoid": Target(2500, 30),
    "QuadrupedVelocity": Target(0.15, 1, "velocity_error", {"task": {"curriculum_start": 1.0}}),
    "HumanoidVelocity": Target(0.25, 10, "velocity_error", {"task": {"curriculum_start": 1.0}}),
    "ArmLift": Target(0.8, 30, "is_success", at_end=True),
    "ArmStack": Target(0.8, 60, "is_success", at_end=True),
    "HandReorient": Target(5, 30, "goals", at_end=True),
}


class Watched:
    """Environments that keep the mean of a report since a reset: over all steps, or over first episodes' last ones."""

    def __init__(self, envs, target: Target):
        self._envs, self._target = envs, target

    def __getattr__(self, name: str):
        return getattr(self._envs, name)

    def reset(self, **options):
        self._means, self._last = [], torch.zeros(self._envs.num_envs, dtype=torch.float64)
        self._going = torch.ones(self._envs.num_envs, dtype=torch.bool)
        return self._envs.reset(**options)

    def step(self, actions):
        results = self._envs.step(actions)
        _, _, terminated, truncated, infos = results
        values, ended = infos[self._target.report].double(), terminated | truncated
        if ended.any():  # whose step is told apart: they have begun anew
            values = torch.where(ended, infos["final_info"][self._target.report].double(), values)
        self._means.append(values.mean().item())
        self._last = torch.where(self._going, values, self._last)
        self._going &= ~ended
        return results

    @property
    def mean(self) -> float:
        return self._last.mean().item() if self._target.at_end else sum(self._means) / len(self._means)


def judge(policy, judges, target: Target) -> dict:
    """Returns, lengths and the mean report of a policy without noise."""
    watched = Watched(judges, target) if target.report else judges
    returns, lengths = evaluate(policy, watched, seed=2**40)
    found = {"return": returns.mean().item(), "deviation": returns.std().item()}
    return found | {"length": lengths.double().mean().item()} | ({target.report: watched.mean} if target.report else {})


def learn(env_id: str, options, seed: int, arguments, tell) -> dict:
    """One training: points of the curve, evaluations without noise (not in the seconds), and the sums.

    ``options`` are of all processes together; the first one judges, and tells what there is by then.
    """
    ranks = Ranks()
    options = replace(
        options, num_envs=options.num_envs // ranks.size, minibatch=max(1, options.minibatch // ranks.size)
    )
    target = TARGETS.get(task_name(env_id), Target(math.inf, math.inf))
    variant = {} if arguments.variant is None else here(env_id)[arguments.variant]()
    curve, evaluations = [], []
    with (
        closing(environments(env_id, options.num_envs, arguments.threads, device=arguments.device, **variant)) as envs,
        closing(
            environments(env_id, EPISODES, arguments.threads, device=arguments.device, **target.judged, **variant)
        ) as judges,
    ):
        ppo = Ppo(envs, options, seed, arguments.threads)
        wall, cpu, next_at = 0.0, 0.0, 0.0

        def found_so_far() -> dict:
            return {
                "seed": seed,
                "samples": ppo.samples,
                "cpu_seconds": cpu,
                "seconds": wall,
                "simulator_share": ppo.simulator_seconds / ppo.cpu_seconds,
                "curve": curve[:: max(1, len(curve) // CURVE_POINTS)],
                "evaluations": evaluations,
            }

        while ppo.samples < arguments.samples:
            started = time.perf_counter()
            told = ppo.iterate()
            wall += time.perf_counter() - started
            cpu = ranks.sum(torch.tensor(ppo.cpu_seconds, dtype=torch.float64)).item()
            at = {"samples": ppo.samples, "cpu_seconds": round(cpu, 2), "seconds": round(wall, 2)}
            if "episode/return" in told:
                curve.append(at | {"return": round(told["episode/return"], 2)})
            due = ppo.samples >= next_at or ppo.samples >= arguments.samples
            next_at += arguments.samples / arguments.evaluations * due
            if due and ranks.rank == 0:
                found = judge(ppo.policy, judges, target)
                evaluations.append(at | found)
                error = f"  {target.report} {found[target.report]:.3f}" if target.report else ""
                print(
                    f"seed {seed}  {ppo.samples / 1e6:6.2f}M samples  {cpu:6.0f} CPU-s  {wall:6.0f} s  "
                    f"return {found['return']:8.1f} ± {found['deviation']:.0f}  ({found['length']:.0f} steps){error}",
                    flush=True,
                )
                if arguments.keep is not None:
                    checkpoint_of(ppo, env_id, seed).save(f"{arguments.keep}-{seed}.pt")
                tell(found_so_far())
            if due:
                ranks.sum(torch.zeros(1))  # nobody collects ahead while the first judges
        return found_so_far()


def reached(run: dict, target: Target | None) -> dict | None:
    """The first evaluation that reaches the target."""
    return next((at for at in run["evaluations"] if target is not None and target.reached(at)), None)


def command(arguments) -> str:
    """What repeats these numbers."""
    processes = Ranks().size
    words = ["torchrun", f"--nproc_per_node={processes}"] if processes > 1 else ["python"]
    words += ["-m", "bench.learning", arguments.task]
    words += ["--seeds", arguments.seeds, "--samples", f"{arguments.samples:g}", "--threads", arguments.threads]
    words += ["--variant", arguments.variant] if arguments.variant is not None else []
    words += ["--device", arguments.device] if arguments.device != "cpu" else []
    words += ["--evaluations", arguments.evaluations] + (["--set", *arguments.set] if arguments.set else [])
    return shlex.join(map(str, words))


def report(result: dict) -> None:
    target = TARGETS.get(task_name(result["env_id"]))
    measure = (target and target.report) or "return"
    print(f"\n{result['env_id']}, {result['processes']} processes, {result['threads']} threads simulate in each")
    for run in result["runs"]:
        last, first = run["evaluations"][-1], reached(run, target)
        when = f"{first['samples'] / 1e6:.2f}M samples, {first['seconds']:.0f} s" if first else "not reached"
        print(
            f"  seed {run['seed']}: {measure} {last[measure]:.4g} at {run['samples'] / 1e6:.2f}M samples, "
            f"{run['seconds']:.0f} s, {run['cpu_seconds']:.0f} CPU-s, {100 * run['simulator_share']:.0f} % simulating"
            + (f"; {target.value:g} (in {target.minutes:g} min): {when}" if target is not None else "")
        )
    print(f"  median of the last: {median(run['evaluations'][-1][measure] for run in result['runs']):.4g}")


def draw(result: dict, path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    target = TARGETS.get(task_name(result["env_id"]), Target(math.inf, math.inf))
    measures = ["return", target.report] if target.report else ["return"]
    axes = {"samples": (1e6, "million control steps"), "cpu_seconds": (1, "CPU seconds")}
    size = (10, 1 + 3 * len(measures))
    figure, panels = pyplot.subplots(len(measures), 2, figsize=size, sharex="col", sharey="row", squeeze=False)
    for row, measure in zip(panels, measures, strict=True):
        for panel, (axis, (unit, label)) in zip(row, axes.items(), strict=True):
            for number, run in enumerate(result["runs"]):
                color, name = f"C{number}", f"seed {run['seed']}, without noise"
                for points, style in (
                    (run["curve"], {"alpha": 0.5}),
                    (run["evaluations"], {"marker": "o", "ms": 3, "label": name}),
                ):
                    told = [point for point in points if measure in point]
                    at, values = [point[axis] / unit for point in told], [point[measure] for point in told]
                    panel.plot(at, values, color=color, **style)
            panel.set_xlabel(label if measure == measures[-1] else "")
            panel.grid(alpha=0.3)
            if measure == measures[-1] and math.isfinite(target.value):
                panel.axhline(target.value, color="0.5", lw=1, ls="--", label=f"asked: {target.value:g}")
        row[0].set_ylabel(measure.replace("_", " "))
    panels[0][0].plot([], [], color="0.5", alpha=0.5, label="pale: while it learns, with noise")
    for row in panels:
        row[0].legend(fontsize=8)
    figure.suptitle(f"{result['env_id']}: {result['command']}", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


def main(argv=None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.learning", description=__doc__)
    parser.add_argument("task", help="as in `stiction list`")
    parser.add_argument("--seeds", type=int, default=3, help="trainings, of seeds 0, 1, ... (default 3)")
    parser.add_argument("--samples", type=float, default=3e6, help="of each training (default 3e6)")
    parser.add_argument("--threads", type=int, default=1, help="threads that simulate; two of them learn (default 1)")
    parser.add_argument(
        "--variant", help="of the environment, by a name of bench.transfer: 'convex law, compliant contact'"
    )
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default cpu)")
    parser.add_argument("--evaluations", type=int, default=12, help="of each training (default 12)")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="options of PPO")
    parser.add_argument("--keep", metavar="PREFIX", help="write each seed's last checkpoint to PREFIX-SEED.pt")
    parser.add_argument("--output", help="folder of the results; - for none (default bench/results/<machine>/learning)")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    with process_group("gloo") if "WORLD_SIZE" in os.environ else nullcontext():
        run(parser, arguments)


def run(parser, arguments) -> None:
    env_id = environment_id(arguments.task)
    if arguments.variant is not None and arguments.variant not in here(env_id):
        parser.error(f"no variant {arguments.variant!r}; there are: {', '.join(here(env_id))}")
    options = options_of(env_id, parsed_changes(arguments.set))
    result = {
        "command": command(arguments),
        "machine": machine.description() | {"torch": torch.__version__},
        "env_id": env_id,
        "target": asdict(TARGETS[task_name(env_id)]) if task_name(env_id) in TARGETS else None,
        "processes": Ranks().size,
        "threads": arguments.threads,
        "options": asdict(options),
    }
    runs = []

    def write(going: dict) -> None:
        """What there is, with the training that is going on: one that is stopped leaves its curve."""
        if arguments.output == "-":
            return
        result["runs"] = [*runs, going]
        folder = machine.results_folder() / "learning" if arguments.output is None else machine.Path(arguments.output)
        variant = "" if arguments.variant is None else "-" + arguments.variant.replace(", ", "-").replace(" ", "-")
        name = task_name(env_id).lower() + variant
        machine.write(folder / f"{name}.json", result)
        draw(result, folder / f"{name}.png")

    for seed in range(arguments.seeds):
        runs.append(learn(env_id, options, seed, arguments, write))
    if Ranks().rank == 0:
        report(result | {"runs": runs})


if __name__ == "__main__":
    main()
