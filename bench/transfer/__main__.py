"""``python -m bench.transfer CHECKPOINT``: a policy trained here, in Gymnasium's MuJoCo and under other options here.

The policy acts without noise on each side's own observations. The variants change one thing each, so that the cause of
a difference shows: the integrator, the time constants of contacts and limits, the friction cone, the solver.
"""

from __future__ import annotations

import argparse
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import torch
from stiction.training.options import task_name
from stiction.training.ppo import evaluate
from stiction.training.run import Checkpoint, environments

from bench.step import machine

from .variants import here

HARD = (0.99, 0.999, 0.001, 0.5, 2)  # MuJoCo's solimp of hard contacts and limits


@dataclass(frozen=True)
class There:
    """A variant of Gymnasium's environment. Time constants are MuJoCo's solref (s); None leaves what the file says."""

    name: str
    contact: float | None = None  # with no margin and impedance 0.99 to 0.999
    limits: float | None = None  # likewise; episodes then start with all joints within their limits
    damping: float = (
        1  # MuJoCo's damping ratio: with 1 what it holds back bounces with 0.135 of its speed, with 5 it stays
    )
    elliptic: bool = False  # cone, impratio 10
    euler: bool = False

    def apply(self, env) -> None:
        model, wanted = env.model, [c for c in (self.contact, self.limits) if c is not None]
        if self.contact is not None:
            model.geom_margin[:] = 0
            model.geom_solref[:], model.geom_solimp[:] = (self.contact, self.damping), HARD
        if self.limits is not None:
            model.jnt_solref[:], model.jnt_solimp[:] = (self.limits, self.damping), HARD
        if self.elliptic:
            model.opt.cone, model.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 10
        if self.euler or wanted:
            model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        if wanted:  # ten steps to the shortest time constant
            finer = max(1, round(10 * model.opt.timestep / min(wanted)))
            model.opt.timestep /= finer
            env.frame_skip *= finer

    def start(self, env) -> None:
        """Puts the joints within their limits, which hard limits would else do with violence."""
        model, data = env.model, env.data
        if self.limits is None:
            return
        qpos = data.qpos.copy()
        for joint in np.flatnonzero(model.jnt_limited):
            at = model.jnt_qposadr[joint]
            qpos[at] = np.clip(qpos[at], *model.jnt_range[joint])
        env.set_state(qpos, data.qvel.copy())


THERE = (
    There("Gymnasium"),
    There("Euler", euler=True),
    There("limits of 5 ms", limits=0.005),
    There("contacts of 20 ms, impedance 0.99", contact=0.02),
    There("contacts of 5 ms", contact=0.005),
    There("contacts of 2 ms", contact=0.002),
    There("contacts of 2 ms, elliptic", contact=0.002, elliptic=True),
    There("contacts and limits of 2 ms", contact=0.002, limits=0.002),
    There("contacts and limits of 1 ms", contact=0.001, limits=0.001),
    There("contacts of 1 ms, damping 5", contact=0.001, damping=5),
    There("contacts and limits of 1 ms, damping 5", contact=0.001, limits=0.001, damping=5),
)


@torch.no_grad()
def in_gymnasium(policy, env_id: str, variant: There, episodes: int) -> tuple[np.ndarray, np.ndarray]:
    """(returns, lengths) of whole episodes in a variant of the environment of the same name, v5."""
    returns, lengths = np.zeros(episodes), np.zeros(episodes)
    with closing(gymnasium.make(f"{task_name(env_id)}-v5")) as env:
        variant.apply(env.unwrapped)
        for episode in range(episodes):
            env.reset(seed=episode)
            variant.start(env.unwrapped)
            observation = env.unwrapped._get_obs()
            over = False
            while not over:
                action = policy(torch.as_tensor(observation, dtype=torch.float32)[None])[0].numpy()
                observation, reward, terminated, truncated, _ = env.step(action)
                returns[episode] += reward
                lengths[episode] += 1
                over = terminated or truncated
    return returns, lengths


def measured(path, episodes: int) -> dict:
    checkpoint = Checkpoint.load(path)
    policy, env_id = checkpoint.policy(), checkpoint.env_id
    result = {"env_id": env_id, "samples": checkpoint.ppo["samples"], "seed": checkpoint.seed, "variants": []}
    result["checkpoint"] = Path(path).stem

    def keep(side: str, name: str, returns, lengths) -> None:
        own = result["variants"][0]["return"] if result["variants"] else returns.mean().item()
        row = {"side": side, "name": name, "return": returns.mean().item(), "deviation": returns.std().item()}
        row |= {"length": float(lengths.mean()), "ratio": returns.mean().item() / own}
        result["variants"].append(row)
        print(
            f"  {side:9s} {name:46s} {row['return']:8.0f} ± {row['deviation']:<6.0f} {row['length']:6.0f} steps  "
            f"{100 * row['ratio']:4.0f} %",
            flush=True,
        )

    print(f"{env_id}, seed {checkpoint.seed}, {checkpoint.ppo['samples'] / 1e6:.2f}M samples, {episodes} episodes each")
    for name, options in here(env_id).items():
        with closing(environments(env_id, episodes, 1, **options())) as envs:
            returns, lengths = evaluate(policy, envs, seed=2**40)
        keep("here", name, returns.numpy(), lengths.double().numpy())
    for variant in THERE:
        keep("Gymnasium", variant.name, *in_gymnasium(policy, env_id, variant, episodes))
    return result


def main(argv=None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.transfer", description=__doc__)
    parser.add_argument("checkpoints", nargs="+", help="of tasks with Gymnasium's definitions, by `stiction train`")
    parser.add_argument("--episodes", type=int, default=10, help="of each variant (default 10)")
    parser.add_argument("--output", type=Path, help="JSON; - for none (default bench/results/<machine>)")
    arguments = parser.parse_args(argv)
    mujoco.set_mju_user_warning(lambda message: None)  # of what is deprecated in Gymnasium's files
    torch.set_num_threads(1)
    results = [measured(path, arguments.episodes) for path in arguments.checkpoints]
    machine.record(arguments.output, "transfer.json", {"machine": machine.description(), "policies": results})


if __name__ == "__main__":
    main()
