"""`stiction bench`: control steps per second through `make_vec` beside the bare simulation's, or the learner alone."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from stiction.command_words import check_at_least

from . import setup


def add_arguments(parser):
    parser.add_argument("what", nargs="?", default="Ant", metavar="TASK",
                        help="as of `stiction train`, or a run's folder or checkpoint (default Ant)")  # fmt: skip
    setup.add_arguments(parser)
    parser.add_argument("--num-envs", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=1, help="threads that simulate (default 1)")
    parser.add_argument("--rounds", type=int, default=5, help="the median of so many is told (default 5)")
    parser.add_argument("--amplitude", type=float, default=0.3, help="of the random actions, of their range")
    parser.add_argument("--learner", action="store_true", help="PPO on data that cost nothing, one thread")
    parser.add_argument("--observations", type=int, default=17, help="of the learner's data")
    parser.add_argument("--actions", type=int, default=6, help="of the learner's data")


def run(arguments):
    for name in ("num_envs", "threads", "rounds", "observations", "actions"):
        check_at_least(f"--{name.replace('_', '-')}", getattr(arguments, name), 1)
    if arguments.learner:
        rates = learner_rates(arguments.observations, arguments.actions, arguments.rounds)
        print(
            f"PPO alone, {arguments.observations} observations, {arguments.actions} actions, default options: "
            f"{np.median(rates):,.0f} samples per CPU second (from {min(rates):,.0f} to {max(rates):,.0f})"
        )
        return
    from .options import task_name

    check_at_least("--amplitude", arguments.amplitude, 0)
    path = Path(arguments.what)
    if path.suffix == ".pt" or (path / "checkpoint.pt").is_file():
        asked = setup.checkpoint(path, arguments).setup
    else:
        asked, _ = setup.of_arguments(arguments.what, arguments)
    through, bare = environment_rates(
        asked, arguments.num_envs, arguments.threads, arguments.rounds, arguments.amplitude
    )
    share = min(1.0, np.median(np.divide(through, bare)))  # the clock's jitter aside
    print(
        f"{task_name(asked.env_id)}, {arguments.num_envs} environments, {arguments.threads} threads, actions of "
        f"±{arguments.amplitude:g} of the range\n"
        f"through make_vec     {np.median(through):>10,.0f} control steps per CPU second\n"
        f"bare simulation      {np.median(bare):>10,.0f}\n"
        f"share                {100 * share:>10.1f} %"
    )


def environment_rates(asked, num_envs: int, threads: int, rounds: int, amplitude: float):
    """Control steps per CPU second through `make_vec`, and of the `Simulation.step` within, done again; per round."""
    through, bare = [], []
    with closing(setup.setup_of(asked).make(num_envs, num_threads=threads)) as envs:
        sim, random = envs.simulation, np.random.default_rng(0)
        substeps = round(envs.step_dt / sim.timestep)
        low, high = envs.single_action_space.low, envs.single_action_space.high
        envs.reset(seed=0)
        steps = max(2, 16384 // num_envs)

        def actions():
            drawn = random.uniform(-amplitude, amplitude, (steps, *envs.action_space.shape))
            return (drawn * (high - low) / 2 + (high + low) / 2).astype(envs.action_space.dtype)

        for given in actions():  # into the middle of episodes
            envs.step(given)
        for _ in range(rounds):
            seconds = np.zeros(2)
            for given in actions():
                before = sim.get_state()
                started = time.process_time()
                envs.step(given)
                seconds[0] += time.process_time() - started
                after = sim.get_state()
                sim.set_state(before)  # of the same robots, under the controls that the task gave
                started = time.process_time()
                sim.ctrl = after.ctrl
                sim.step(substeps)
                seconds[1] += time.process_time() - started
                sim.set_state(after)
            for rates, spent in zip((through, bare), seconds, strict=True):
                rates.append(num_envs * steps / spent)
    return through, bare


def learner_rates(observations: int, actions: int, rounds: int) -> list[float]:
    """Samples per CPU second of PPO's iterations on made-up data, one thread."""
    import torch

    from .ppo import Options, Ppo

    torch.set_num_threads(1)
    ppo = Ppo(_MadeUp(Options().num_envs, observations, actions), Options(), seed=0)
    ppo.iterate()
    rates = []
    for _ in range(rounds):
        samples, seconds = ppo.samples, ppo.cpu_seconds
        for _ in range(3):
            ppo.iterate()
        rates.append((ppo.samples - samples) / (ppo.cpu_seconds - seconds))
    return rates


class _MadeUp:
    """Environments of random numbers: what the learner asks of a batch, at no cost."""

    data_device = "cpu"

    def __init__(self, num_envs: int, observations: int, actions: int):
        import torch

        self.num_envs, self.reward_names, self.max_episode_steps = num_envs, (), 1000
        self.single_observation_space = SimpleNamespace(shape=(observations,))
        bound = np.ones(actions, np.float32)
        self.single_action_space = SimpleNamespace(shape=(actions,), low=-bound, high=bound)
        self.episode_length = np.zeros(num_envs, np.int32)
        generator = torch.Generator().manual_seed(0)
        self._observations = torch.randn(num_envs, observations, generator=generator)
        self._rewards = torch.randn(num_envs, generator=generator)
        self._never = torch.zeros(num_envs, dtype=torch.bool)

    def reset(self, seed=None):
        return self._observations, {}

    def step(self, actions):
        return self._observations.roll(1, 0), self._rewards, self._never, self._never, {}
