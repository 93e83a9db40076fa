"""``python -m bench.cuda``: steps per second of the generic CUDA kernel, its repeatability, its agreement with the CPU.

Not measured on any GPU yet: the figures of this bench are to be made by scripts/gpu. Worlds differ (random controls,
held five steps), contacts settle before anything is timed, the median of seven rounds is given with its range.
"""

import argparse
import importlib.util
import json
import time
from pathlib import Path

import numpy as np
import stiction
from stiction import info

ANT = Path(__file__).resolve().parents[2] / "envs" / "ant" / "ant.xml"
HOLD = 5


def simulation(model, num_envs, device, iterations):
    options = stiction.SolverOptions(iterations=iterations, tolerance=0, fallback=False)
    return stiction.Simulation(model, num_envs, device=device, solver=options)


def drive(sim, random, steps, amplitude=0.1):
    """Random controls; returns the seconds spent stepping."""
    seconds = 0.0
    for _ in range(steps // HOLD):
        sim.ctrl[...] = random.uniform(-amplitude, amplitude, sim.ctrl.shape)
        started = time.perf_counter()
        sim.step(HOLD)
        seconds += time.perf_counter() - started
    return seconds


def throughput(model, num_envs, iterations, steps, rounds):
    sim, random = simulation(model, num_envs, "cuda", iterations), np.random.default_rng(1)
    drive(sim, random, 200)
    rates = sorted(num_envs * steps / drive(sim, random, steps) for _ in range(rounds))
    certificate = sim.certificate
    ratio = np.asarray(certificate.r_con) / np.asarray(certificate.scale)
    result = {
        "num_envs": num_envs,
        "steps_per_second": {"median": rates[len(rates) // 2], "least": rates[0], "most": rates[-1]},
        "contacts": float(np.mean(certificate.num_contacts)),
        "r_con_over_V": {"median": float(np.median(ratio)), "p99": float(np.quantile(ratio, 0.99))},
        "status_bits": int(np.bitwise_or.reduce(np.asarray(sim.status))),
    }
    sim.close()
    return result


def environments(env_id, num_envs, steps, rounds):
    """Control steps per second through `make_vec` with tensors on the GPU, random actions made there too."""
    import torch

    envs = stiction.make_vec(env_id, num_envs, device="cuda", backend="torch")
    envs.reset(seed=0)
    generator = torch.Generator("cuda").manual_seed(0)
    rates = []
    for number in range(rounds + 1):  # the first is not counted
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(steps):
            shape = (num_envs, *envs.single_action_space.shape)
            envs.step(torch.rand(shape, generator=generator, device="cuda") * 2 - 1)
        torch.cuda.synchronize()
        if number:
            rates.append(num_envs * steps / (time.perf_counter() - started))
    envs.close()
    rates.sort()
    return {
        "env_id": env_id,
        "num_envs": num_envs,
        "control_steps_per_second": {"median": rates[len(rates) // 2], "least": rates[0], "most": rates[-1]},
    }


def agreement(model, num_envs, iterations):
    """The largest difference of qvel after one step from settled states, relative to max(1, |v|); and repeatability."""
    cpu, random = simulation(model, num_envs, "cpu", iterations), np.random.default_rng(2)
    drive(cpu, random, 200)
    state, control, after = cpu.get_state(), np.array(cpu.ctrl), []
    for device in ("cpu", "cuda", "cuda"):
        sim = simulation(model, num_envs, device, iterations)
        sim.set_state(state)
        sim.ctrl = control
        sim.step(1)
        after.append(np.array(sim.qvel))
        sim.close()
    difference = np.abs(after[0] - after[1]) / np.maximum(1, np.abs(after[0]))
    return {"largest": float(difference.max()), "repeats_bit_for_bit": bool(np.array_equal(after[1], after[2]))}


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.cuda", description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=str(ANT), help="MJCF file (default: our Ant)")
    parser.add_argument("--batch", type=int, nargs="+", default=[1024, 4096, 16384, 65536])
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--tasks", nargs="*", default=["stiction/Ant-v0"], help="through make_vec, where torch is (default Ant)"
    )
    parser.add_argument("--output", default="-", help="JSON file, - for none")
    arguments = parser.parse_args()
    model = stiction.Model.from_mjcf(arguments.model)
    report = {"model": Path(arguments.model).name, "iterations": arguments.iterations, "facts": info.facts()}
    report["agreement"] = agreement(model, 4096, arguments.iterations)
    print("CPU against CUDA after one step:", report["agreement"])
    report["throughput"] = []
    for num_envs in arguments.batch:
        result = throughput(model, num_envs, arguments.iterations, arguments.steps, arguments.rounds)
        report["throughput"].append(result)
        print(json.dumps(result))
    report["environments"] = []
    if importlib.util.find_spec("torch") is not None:
        for env_id in arguments.tasks:
            for num_envs in arguments.batch:
                report["environments"].append(environments(env_id, num_envs, arguments.steps // HOLD, arguments.rounds))
                print(json.dumps(report["environments"][-1]))
    if arguments.output != "-":
        Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
        Path(arguments.output).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
