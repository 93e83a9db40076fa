"""Proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347) on a batch in the same process.

    envs = stiction.make_vec("stiction/Ant-v0", 128, backend="torch")
    ppo = Ppo(envs, Options(num_envs=128), seed=0)
    while ppo.samples < 3e6:
        print(ppo.iterate())

An iteration is `Ppo.collect` (every environment moves ``steps`` times), `Ppo.advantages` (generalised advantage
estimation, Schulman et al. 2015, arXiv:1506.02438) and `Ppo.update` (epochs over minibatches). What matters beside the
papers:

- An episode that the time limit cut off goes on in the value: its last reward gets gamma V(final observation).
- Observations are normalised by their running moments, which change between iterations only, so that the ratio of
  probabilities starts at one. Rewards are divided by the running deviation of their discounted sum.
- The learning rate follows the divergence of each minibatch from the policy that collected (as in rsl_rl).
- Rewards of walking robots are learned from without what is below 0 (as in legged_gym).
- With groups of observations the policy sees "policy" and the value "critic", where there is one; within the learner
  they stand side by side.
- Episodes begin out of step with each other: the first of each environment gets a random share of the time limit.

With `torch.distributed` initialised every process has environments of its own; gradients, moments and divergences are
averaged over processes, so that the processes are one learner on the union of their environments. All randomness comes
from ``seed`` and the rank: the same bits again with the same number of processes, whatever the number of threads that
simulate. Tensors: T steps, N environments, D observations, A actions; float32.
"""

from __future__ import annotations

import math
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from stiction.running_statistics import EpisodeStatistics, RunningMoments
from stiction.task_memory import NotKept

from .policy import Policy, divergence, group_sizes, log_probability, packed, policy_part


@dataclass(frozen=True)
class Options:
    num_envs: int = 128  # per process
    steps: int = 64  # of every environment per iteration
    epochs: int = 5
    minibatch: int = 1024  # samples per process
    learning_rate: float = 1e-3  # the first; constant where target_kl is 0
    target_kl: float = 0.01
    max_learning_rate: float = 3e-3
    gamma: float = 0.99
    gae: float = 0.98  # lambda of the advantage estimation
    clip: float = 0.2
    entropy: float = 0.0  # weight of the entropy bonus
    value_weight: float = 1.0
    max_gradient: float = 1.0  # norm
    hidden: tuple[int, ...] = (64, 64)  # of actor and critic alike, tanh between
    initial_std: float = 1.0  # of actions, in half ranges
    min_std: float = 0.05
    scale_rewards: bool = True
    only_positive: bool = False  # rewards below 0 count as 0: early on costs are all there is, and to fall ends them

    def __post_init__(self):
        for name in ("num_envs", "steps", "epochs", "minibatch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected at least 1")
        if any(width < 1 for width in self.hidden):
            raise ValueError(f"hidden is {self.hidden}, expected widths of at least 1")
        for name in ("learning_rate", "max_learning_rate", "clip", "max_gradient", "initial_std", "min_std"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}, expected more than 0")
        for name in ("gamma", "gae"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected 0 to 1")


class Ranks:
    """The processes that learn together; one without `torch.distributed`."""

    def __init__(self):
        there = torch.distributed.is_available() and torch.distributed.is_initialized()
        self.rank = torch.distributed.get_rank() if there else 0
        self.size = torch.distributed.get_world_size() if there else 1

    def sum(self, tensor: Tensor) -> Tensor:
        """``tensor``, in place the sum over processes."""
        if self.size > 1:
            torch.distributed.all_reduce(tensor)
        return tensor

    def mean(self, tensor: Tensor) -> Tensor:
        return self.sum(tensor).div_(self.size)


@contextmanager
def process_group(backend: str):
    """The processes of torchrun as the group of `Ranks`, which they leave together; one that fails leaves at once.

    A group that outlives its end keeps threads, and one of those that takes the interpreter's lock while that ends
    aborts the process (pytorch/pytorch#190489).
    """
    import torch.distributed.nn  # its functions keep the group that there is when they are imported: none yet

    torch.distributed.init_process_group(backend)
    try:
        yield
        torch.distributed.barrier()
    finally:
        torch.distributed.destroy_process_group()


class Ppo:
    """Learner and environments. ``envs``: a same-step vector environment with ``backend="torch"``; it is reset here.

    ``threads``: with two or more the value function learns beside the policy, to the same bits.
    """

    def __init__(self, envs, options: Options, seed: int = 0, threads: int = 1):
        if envs.num_envs != options.num_envs:
            raise ValueError(f"envs has {envs.num_envs} environments, but options.num_envs is {options.num_envs}")
        self.envs, self.options, self.seed, self.ranks = envs, options, seed, Ranks()
        self.device = torch.device(envs.data_device)
        self.policy = Policy(
            envs.single_observation_space, envs.single_action_space, options, torch.Generator().manual_seed(seed)
        ).to(self.device)
        self.parameters = list(self.policy.parameters())
        self.optimizer = torch.optim.Adam(self.parameters, lr=options.learning_rate, eps=1e-5, fused=True)
        self.learning_rate = options.learning_rate
        self._beside = None
        if threads > 1 and self.device.type == "cpu":
            self._beside = ThreadPoolExecutor(1, "value", torch.set_num_threads, (torch.get_num_threads(),))
        self.return_moments = RunningMoments(1).to(self.device)
        self.generator = torch.Generator(self.device).manual_seed((seed << 16) + self.ranks.rank + 1)
        self.samples = self.iterations = 0  # samples: of all processes
        self.cpu_seconds = self.simulator_seconds = 0.0  # CPU time of this process; the part in envs.step
        self.recent: deque[tuple[float, int]] = deque(maxlen=100)  # return, length of the last episodes
        n, t = envs.num_envs, options.steps
        size, actions = sum(group_sizes(envs.single_observation_space)), envs.single_action_space.shape[0]
        zeros = partial(torch.zeros, device=self.device)
        self._raw, self._seen = zeros(t, n, size), zeros(t + 1, n, size)
        self._actions, self._means = zeros(t, n, actions), zeros(t, n, actions)
        self._rewards, self._ended, self._sums = zeros(t, n), zeros(t, n), zeros(t, n)
        self._discounted = zeros(n)
        self._statistics = EpisodeStatistics(n, envs.reward_names, self.device)
        # Environment i of rank r has a seed of its own, the one it has as environment r N + i of a single process.
        self._observations = packed(envs.reset(seed=(seed << 24) + self.ranks.rank * n)[0])
        self._whole = torch.ones(
            n, dtype=torch.bool, device=self.device
        )  # whether the present episode has its full time
        if envs.max_episode_steps is not None:
            begun = self.begun(envs.max_episode_steps)
            envs.episode_length[:] = begun.cpu().numpy()
            self._whole = begun == 0
        self.policy.moments.update(self._observations, self.ranks.sum)

    # ---- an iteration

    def iterate(self) -> dict[str, float]:
        """Collects and learns once; returns numbers worth a plot."""
        started = time.process_time()
        ended = self.collect()
        batch = self.advantages()
        told = self.update(batch)
        self.policy.moments.update(self._raw, self.ranks.sum)
        self.iterations += 1
        self.samples += self._rewards.numel() * self.ranks.size
        self.cpu_seconds += time.process_time() - started
        return ended | told

    @torch.no_grad()
    def collect(self) -> dict[str, float]:
        """Steps every environment ``options.steps`` times; keeps what they saw, did and got."""
        policy, std = self.policy, torch.exp(self.policy.log_std)
        finals, terms = [], []
        for t in range(self.options.steps):
            self._raw[t] = self._observations
            self._seen[t] = policy.moments(self._observations)
            self._means[t] = policy.mean(self._seen[t])
            self._actions[t] = self._means[t] + std * self.noise()
            before = time.process_time()
            self._observations, rewards, terminated, truncated, infos = self.envs.step(
                policy.in_units(self._actions[t])
            )
            self.simulator_seconds += time.process_time() - before
            self._observations = packed(self._observations)
            ended = terminated | truncated
            self._rewards[t], self._ended[t] = rewards, ended
            if self.options.only_positive:
                self._rewards[t].clamp_(min=0)
            self._discounted = self._rewards[t] + self.options.gamma * self._discounted
            self._sums[t] = self._discounted
            cut = (truncated & ~terminated).nonzero()[:, 0]
            if len(cut):
                finals.append((t, cut, packed(infos["final_obs"])[cut]))
            episodes = self._statistics.update(rewards, ended, infos)
            if episodes is not None:
                self._discounted[ended] = 0
                whole, self._whole[ended] = self._whole[ended], True
                self.recent.extend(zip(episodes.returns[whole].tolist(), episodes.lengths[whole].tolist(), strict=True))
                terms.append({name: sums[whole] for name, sums in episodes.terms.items()})
        self._seen[-1] = policy.moments(self._observations)
        self._finals = finals
        told = {f"reward/{name}": torch.cat([t[name] for t in terms]) for name in (terms[0] if terms else ())}
        return {name: sums.mean().item() for name, sums in told.items() if len(sums)} | self.episodes()

    def begun(self, limit: int) -> Tensor:
        """(N,) steps that the first episodes count already, so that time limits come at different times."""
        return torch.randint(limit, (self.envs.num_envs,), generator=self.generator, device=self.device)

    def noise(self) -> Tensor:
        """(N, A) of variance 1."""
        return torch.randn(self._actions.shape[1:], generator=self.generator, device=self.device)

    @torch.no_grad()
    def advantages(self) -> dict[str, Tensor]:
        """The batch of T N samples that `update` learns from."""
        options, policy, (steps, n) = self.options, self.policy, self._rewards.shape
        rewards = self._rewards
        if options.scale_rewards:
            self.return_moments.update(self._sums[..., None], self.ranks.sum)
            deviation = self.return_moments.variance.add(1e-8).sqrt().float()
            rewards = (rewards / deviation).clamp(-10, 10)
        if self._finals:
            rewards = rewards.clone()
            last = policy.value(policy.moments(torch.cat([rows for _, _, rows in self._finals])))
            times = torch.cat([torch.full_like(cut, t) for t, cut, _ in self._finals])
            rewards[times, torch.cat([cut for _, cut, _ in self._finals])] += options.gamma * last
        values = policy.value(self._seen.flatten(0, 1)).view(steps + 1, n)
        going = options.gamma * (1 - self._ended)
        surprise = rewards + going * values[1:] - values[:-1]
        advantages, ahead = torch.empty_like(rewards), torch.zeros_like(rewards[0])
        for t in reversed(range(steps)):
            ahead = surprise[t] + going[t] * options.gae * ahead
            advantages[t] = ahead
        moments = RunningMoments(1, clip=math.inf).to(self.device)
        moments.update(advantages[..., None], self.ranks.sum)
        log_std = self.policy.log_std
        return {
            "seen": self._seen[:-1].flatten(0, 1),
            "actions": self._actions.flatten(0, 1),
            "means": self._means.flatten(0, 1),
            "log_std": log_std.clone(),
            "log_probability": log_probability(self._actions, self._means, log_std).flatten(),
            "advantages": moments(advantages[..., None]).flatten(),
            "returns": (advantages + values[:-1]).flatten(),
        }

    def update(self, batch: dict[str, Tensor]) -> dict[str, float]:
        """``options.epochs`` passes over the batch in random minibatches."""
        options, samples = self.options, len(batch["returns"])
        floor, told = math.log(options.min_std), []
        for _ in range(options.epochs):
            order = torch.randperm(samples, generator=self.generator, device=self.device)
            for rows in order.split(options.minibatch):
                losses = self.gradient(batch, rows)
                if options.target_kl > 0:
                    self.follow(losses[0].item())
                nn.utils.clip_grad_norm_(self.parameters, options.max_gradient, foreach=True)
                self.optimizer.step()
                with torch.no_grad():
                    self.policy.log_std.clamp_(min=floor)
                told.append(losses)
        kl, policy_loss, value_loss, clipped = torch.stack(told).mean(0).tolist()
        spread = (batch["returns"].var() + 1e-8).item()
        return {
            "loss/policy": policy_loss,
            "loss/value": value_loss,
            "loss/kl": kl,
            "loss/clipped": clipped,
            "loss/explained_variance": 1 - 2 * value_loss / spread,
            "policy/learning_rate": self.learning_rate,
            "policy/std": torch.exp(self.policy.log_std).mean().item(),
        }

    def gradient(self, batch: dict[str, Tensor], rows: Tensor) -> Tensor:
        """Leaves the gradient of the loss over ``rows``, averaged over processes, in the parameters.

        Returns (4,): divergence, loss of the policy, of the value, share of clipped ratios; the first averaged too.
        """
        options, policy = self.options, self.policy
        old_log_std = batch["log_std"]
        part = {name: batch[name].index_select(0, rows) for name in batch if name != "log_std"}
        self.optimizer.zero_grad(set_to_none=True)
        value_loss = self.beside(self.value_gradient, part["seen"], part["returns"])
        advantages, mean = part["advantages"], policy.mean(part["seen"])
        ratio = torch.exp(log_probability(part["actions"], mean, policy.log_std) - part["log_probability"])
        bounded = ratio.clamp(1 - options.clip, 1 + options.clip)
        policy_loss = -torch.minimum(ratio * advantages, bounded * advantages).mean()
        (policy_loss - options.entropy * policy.log_std.sum()).backward()
        with torch.no_grad():
            kl = divergence(mean, policy.log_std, part["means"], old_log_std).mean()
            clipped = ((ratio - 1).abs() > options.clip).float().mean()
            losses = torch.stack([kl, policy_loss, value_loss.result(), clipped])
            if self.ranks.size > 1:
                gradients = [p.grad for p in self.parameters]
                flat = torch.cat([kl.view(1), *(g.flatten() for g in gradients)])
                self.ranks.mean(flat)
                losses[0] = flat[0]
                for gradient, part in zip(gradients, flat[1:].split([g.numel() for g in gradients]), strict=True):
                    gradient.copy_(part.view_as(gradient))
        return losses

    def beside(self, function, *arguments) -> Future:
        """``function(*arguments)``, in the second thread if there is one."""
        if self._beside is not None:
            return self._beside.submit(function, *arguments)
        done = Future()
        done.set_result(function(*arguments))
        return done

    def value_gradient(self, seen: Tensor, returns: Tensor) -> Tensor:
        """Leaves that of the value's loss in its parameters; returns the loss."""
        loss = 0.5 * (self.policy.value(seen) - returns).square().mean()
        (self.options.value_weight * loss).backward()
        return loss.detach()

    def follow(self, kl: float) -> None:
        """Adapts the learning rate to a minibatch's divergence."""
        if kl > 2 * self.options.target_kl:
            self.learning_rate = max(1e-5, self.learning_rate / 1.5)
        elif 0 <= kl < self.options.target_kl / 2:
            self.learning_rate = min(self.options.max_learning_rate, self.learning_rate * 1.5)
        self.optimizer.param_groups[0]["lr"] = self.learning_rate

    # ---- what is kept

    def episodes(self) -> dict[str, float]:
        """Means over the last hundred whole episodes of this process; nothing before the first."""
        if not self.recent:
            return {}
        returns, lengths = zip(*self.recent, strict=True)
        return {"episode/return": sum(returns) / len(returns), "episode/length": sum(lengths) / len(lengths)}

    def state_dict(self) -> dict:
        """Of the learner of the first process, from which `load_state_dict` goes on.

        A process alone goes on to the bit where its environments can tell their state; else episodes begin anew.
        """
        return {
            "episodes": self._episode_state(),
            "policy": self.policy.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "return_moments": self.return_moments.state_dict(),
            "generator": self.generator.get_state(),
            "device": self.device.type,
            "learning_rate": self.learning_rate,
            "samples": self.samples,
            "iterations": self.iterations,
            "cpu_seconds": self.cpu_seconds,
            "simulator_seconds": self.simulator_seconds,
        }

    def _episode_state(self) -> dict | None:
        """What the episodes under way are; None where a checkpoint cannot have it."""
        if self.ranks.size > 1 or not hasattr(self.envs, "get_state"):
            return None
        try:
            tensors = _with_tensors(self.envs.get_state())
        except TypeError:  # a task remembers something in dataclasses, say
            return None
        sums = {name: getattr(self, f"_{name}") for name in _UNDER_WAY}
        return {"environments": tensors, "statistics": self._statistics.state(), "recent": list(self.recent)} | sums

    def _load_episodes(self, state: dict) -> None:
        self.envs.set_state(_with_arrays(state["environments"]))
        self._statistics.load_state(state["statistics"])
        self.recent.extend(tuple(episode) for episode in state["recent"])
        for name in _UNDER_WAY:
            getattr(self, f"_{name}").copy_(state[name])

    def load_state_dict(self, state: dict) -> None:
        self.policy.load_state_dict(state["policy"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.return_moments.load_state_dict(state["return_moments"])
        for name in ("learning_rate", "samples", "iterations", "cpu_seconds", "simulator_seconds"):
            setattr(self, name, state[name])
        if self.ranks.rank == 0 and state.get("device", "cpu") == self.device.type:
            self.generator.set_state(state["generator"])
        else:  # the first process wrote: the others' noise is not its own, nor is that of another kind of device
            self.generator.manual_seed((self.seed << 16) + self.ranks.rank + 1 + (self.iterations << 32))
        if state.get("episodes") is not None and self.ranks.size == 1 and hasattr(self.envs, "get_state"):
            self._load_episodes(state["episodes"])


torch.serialization.add_safe_globals([NotKept])


def _with_tensors(state):
    """A state of environments as checkpoints may have it, which torch reads without running code; else TypeError."""
    if isinstance(state, np.ndarray):
        return torch.from_numpy(state)
    if type(state) in (list, tuple):
        return type(state)(map(_with_tensors, state))
    if type(state) is dict:
        return {name: _with_tensors(values) for name, values in state.items()}
    if type(state) not in (type(None), bool, int, float, str, NotKept):
        raise TypeError(f"a checkpoint has no {type(state).__name__}")
    return state


def _with_arrays(state):
    """What `_with_tensors` was made of."""
    if isinstance(state, torch.Tensor):
        return state.numpy()
    if type(state) in (list, tuple):
        return type(state)(map(_with_arrays, state))
    return {name: _with_arrays(values) for name, values in state.items()} if type(state) is dict else state


#: Of an iteration's end, (N, ...): what the next one begins with.
_UNDER_WAY = ("observations", "discounted", "whole")


@torch.no_grad()
def evaluate(policy: Policy, envs, seed: int, progress=None) -> tuple[Tensor, Tensor]:
    """(returns, lengths), each (N,): the first episode of every environment under the policy without noise.

    ``progress``: a bar of tqdm, told of steps; those that an episode could still have had count when it ends.
    """
    limit = 0 if progress is None else envs.max_episode_steps or 0
    if limit:
        progress.reset(total=envs.num_envs * limit)
    observations = policy_part(envs.reset(seed=seed)[0])
    zeros = partial(torch.zeros, envs.num_envs, device=observations.device)
    returns, lengths = zeros(dtype=torch.float64), zeros(dtype=torch.int64)
    going = ~zeros(dtype=torch.bool)
    while going.any():
        observations, rewards, terminated, truncated, _ = envs.step(policy(policy_part(observations)))
        returns += rewards * going
        lengths += going
        still = going & ~(terminated | truncated)
        if progress is not None:
            spared = (limit - lengths)[going & ~still].sum() if limit else 0
            progress.update(int(going.sum() + spared))
        going = still
    return returns, lengths
