"""``python -m bench.gpu WHAT``: the CUDA backend on a GPU: agreement with the CPU, stages, rates, environments.

WHAT is one of ``agreement`` (after one step from settled states, and bit for bit repeatability), ``stages`` (the
milliseconds of each kernel of a step, on the device's clock), ``rates`` (physics steps per second, with the
certificate of those steps) and ``environments`` (control steps per second through ``make_vec`` with tensors).
Worlds differ (random controls, held five steps) and settle before anything is timed; medians with their range.
``scripts/gpu`` runs it; ``predictions.md`` tells what came of it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from pathlib import Path

import numpy as np
import stiction
from stiction import info
from stiction.model_kernels import CHOICES

from bench.progress import progress, tell

ENVS = Path(__file__).resolve().parents[2] / "envs"
#: Robots and the amplitude of their controls around home.
MODELS = {
    "ant": ("ant/ant.xml", 0.1),
    "quadruped": ("velocity/quadruped.xml", 0.1),
    "humanoid": ("humanoid/humanoid.xml", 0.1),
}
TASKS = ("stiction/Ant-v0", "stiction/QuadrupedVelocity-v0", "stiction/Humanoid-v0")
HOLD = 5


def load(name: str) -> stiction.Model:
    path = Path(MODELS[name][0] if name in MODELS else name)
    return stiction.Model.from_mjcf(ENVS / path if name in MODELS else path)


def spread(values) -> dict:
    values = sorted(values)
    return {"median": values[len(values) // 2], "least": values[0], "most": values[-1]}


class Driven:
    """A batch under random controls around the first keyframe's, settled."""

    def __init__(self, name: str, num_envs: int, device: str, settle: int, solver="subadmm", kernels="auto"):
        model = load(name)
        self.sim = stiction.Simulation(model, num_envs, device=device, solver=solver, kernels=kernels)
        self.amplitude = MODELS.get(name, ("", 0.1))[1]
        self.random = np.random.default_rng(1)
        if model.nkey:  # stands there
            self.sim.reset(keyframe=0)
        self.home = np.array(self.sim.ctrl)
        self.run(settle)

    def run(self, steps: int) -> float:
        """Seconds from the first call of step to the end of the last; controls are made before."""
        shape = (max(steps // HOLD, 1), *self.home.shape)
        controls = self.home + self.amplitude * self.random.uniform(-1, 1, shape).astype(self.home.dtype)
        self.sim.qpos  # noqa: B018  waits
        started = time.perf_counter()
        for control in controls:
            self.sim.ctrl = control
            self.sim.step(HOLD)
        np.asarray(self.sim.time)
        return time.perf_counter() - started

    def contact(self) -> dict:
        """The certificate of the last steps, and what was flagged."""
        c, pushed = self.sim.certificate, np.asarray(self.sim.certificate.num_contacts) > 0
        ratio = (np.asarray(c.r_con) / np.asarray(c.scale))[pushed]
        return {
            "contacts": float(np.mean(c.num_contacts)),
            "r_con_over_V": {f"p{q}": float(np.percentile(ratio, q)) for q in (50, 99)} if pushed.any() else None,
            "iterations": {f"p{q}": float(np.percentile(c.iterations, q)) for q in (50, 99)},
            "status_bits": int(np.bitwise_or.reduce(np.asarray(self.sim.status))),
            "bytes_per_environment": sum(self.sim.memory.values()) / self.sim.num_envs,
        }


def agreement(options) -> list:
    """How far qvel after one step is from the CPU's, and both from double's, relative to max(1, |v|)."""
    told = []
    for name in options.models:
        fixed = stiction.SolverOptions(iterations=20, tolerance=0, fallback=False)
        settled = Driven(name, options.agree, "cpu", options.settle, solver=fixed).sim
        state, control, after = settled.get_state(), np.array(settled.ctrl), []
        for device, dtype in (("cpu", "float64"), ("cpu", "float32"), *2 * [(options.device, "float32")]):
            kernels = options.kernels if device == options.device else "auto"
            of = {"device": device, "dtype": dtype, "solver": fixed, "kernels": kernels}
            sim = stiction.Simulation(settled.model, options.agree, **of)
            sim.set_state(state)
            sim.ctrl = control
            sim.step(1)
            after.append(np.array(sim.qvel))
            sim.close()
        double, cpu, device, again = after

        def apart(a, b, double=double):
            off = (np.abs(a - b) / np.maximum(1, np.abs(double))).max(1)
            return {"p50": float(np.median(off)), "p99": float(np.percentile(off, 99)), "largest": float(off.max())}

        told.append(
            {
                "model": name,
                "environments": options.agree,
                "from_the_cpu": apart(device, cpu),
                "from_double": apart(device, double),
                "cpu_from_double": apart(cpu, double),
                "repeats_bit_for_bit": bool(np.array_equal(device, again)),
            }
        )
    return told


def stages(options) -> list:
    """Milliseconds of every launch of a step, medians over rounds."""
    told = []
    for name, num_envs in pairs(options):
        driven = Driven(name, num_envs, options.device, options.settle, kernels=options.kernels)
        rounds = [driven.sim._world.time_step() for _ in range(options.rounds)]
        ms = {stage: float(np.median([r[stage] for r in rounds])) for stage in rounds[0]}
        rate = num_envs / (1e-3 * sum(ms.values()))
        told.append({"model": name, "num_envs": num_envs, "ms": ms, "steps_per_second": rate, **driven.contact()})
        driven.sim.close()
    return told


def rates(options) -> list:
    told = []
    for name, num_envs in pairs(options):
        driven = Driven(name, num_envs, options.device, options.settle, kernels=options.kernels)
        seconds = [driven.run(options.steps) for _ in range(options.rounds)]
        rate = spread([num_envs * options.steps / s for s in seconds])
        told.append({"model": name, "num_envs": num_envs, "steps_per_second": rate, **driven.contact()})
        driven.sim.close()
    return told


def environments(options) -> list:
    if importlib.util.find_spec("torch") is None:
        raise SystemExit("environments are measured with torch's tensors: install torch")
    import torch

    told, bar = [], progress(len(TASKS) * len(options.batch), "batch")
    for env_id in TASKS:
        for num_envs in options.batch:
            tell(bar, f"{env_id} {num_envs}")
            envs = stiction.make_vec(env_id, num_envs, device=options.device, backend="torch")
            observations, _ = envs.reset(seed=0)
            on = observations.device
            actions = torch.rand((options.steps // HOLD, num_envs, *envs.single_action_space.shape), device=on) * 2 - 1
            seconds = []
            for _ in range(options.rounds + 1):  # the first is not counted
                started = time.perf_counter()
                for action in actions:
                    _, rewards, *_ = envs.step(action)
                float(rewards.sum())  # waits
                seconds.append(time.perf_counter() - started)
            envs.close()
            rate = spread([num_envs * len(actions) / s for s in seconds[1:]])
            told.append({"env_id": env_id, "num_envs": num_envs, "control_steps_per_second": rate})
    return told


def pairs(options):
    bar = progress(len(options.models) * len(options.batch), "batch")
    for name in options.models:
        for num_envs in options.batch:
            tell(bar, f"{name} {num_envs}")
            yield name, num_envs


MEASURES = {"agreement": agreement, "stages": stages, "rates": rates, "environments": environments}


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=MEASURES)
    parser.add_argument("--models", nargs="+", default=list(MODELS), help="by name, or MJCF files")
    parser.add_argument("--batch", type=int, nargs="+", default=[4096, 16384, 65536])
    parser.add_argument("--agree", type=int, default=4096, help="environments that agreement is asked of")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--kernels", choices=CHOICES, default="auto", help="a model's own, or the build's")
    parser.add_argument("--settle", type=int, default=200, help="physics steps before anything is measured")
    parser.add_argument("--steps", type=int, default=200, help="physics steps of a round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", default="-", help="JSON file, - for none")
    options = parser.parse_args()
    told = MEASURES[options.what](options)
    for line in told:
        print(json.dumps(line))
    if options.output != "-":
        report = {"what": options.what, "kernels": options.kernels, "facts": info.facts(), "results": told}
        Path(options.output).parent.mkdir(parents=True, exist_ok=True)
        Path(options.output).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
