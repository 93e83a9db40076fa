"""PPO, its options, and the commands that train and play."""

import json
import math
import os
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
torch = pytest.importorskip("torch")
import stiction  # noqa: E402
from stiction import cli  # noqa: E402
from stiction.training import bench  # noqa: E402
from stiction.training.options import environment_id, options_of, parsed_changes  # noqa: E402
from stiction.training.policy import Policy, Tanh, divergence, log_probability  # noqa: E402
from stiction.training.ppo import Options, Ppo, evaluate, process_group  # noqa: E402
from stiction.training.run import Checkpoint, checkpoint_of, environments  # noqa: E402
from stiction.training.train import own_gpu  # noqa: E402

ID = "stiction/Ant-v0"
SMALL = Options(num_envs=8, steps=6, epochs=2, minibatch=16, hidden=(16,))


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Line:
    """Points on a line: the action is a velocity, the reward ``reward(x)``; ends by the time limit only."""

    reward_names, env_id, data_device = (), "Line", "cpu"

    def __init__(self, num_envs, reward, limit=10):
        self.num_envs, self.max_episode_steps, self._reward = num_envs, limit, reward
        self.single_observation_space = SimpleNamespace(shape=(1,))
        self.single_action_space = SimpleNamespace(shape=(1,), low=-np.ones(1), high=np.ones(1))
        self.episode_length = np.zeros(num_envs, np.int32)

    def reset(self, seed=None):
        self._random = torch.Generator().manual_seed(seed)
        self._x = torch.rand(self.num_envs, 1, generator=self._random) * 2 - 1
        return self._x.clone(), {}

    def step(self, actions):
        self._x = (self._x + 0.3 * actions).clamp(-1, 1)
        self.episode_length += 1
        rewards, last = self._reward(self._x[:, 0]), self._x.clone()
        over = torch.from_numpy(self.episode_length >= self.max_episode_steps)
        self._x[over] = torch.rand(int(over.sum()), 1, generator=self._random) * 2 - 1
        self.episode_length[over.numpy()] = 0
        return self._x.clone(), rewards, torch.zeros_like(over), over, {"final_obs": last}


def ant(options, seed=0, threads=1, kind=Ppo):
    return kind(environments(ID, options.num_envs, threads), options, seed, threads)


# ---- the algorithm


def test_gaussians_are_torchs():
    g = torch.Generator().manual_seed(0)
    actions, mean, old = (torch.randn(5, 3, generator=g) for _ in range(3))
    log_std, old_log_std = torch.randn(3, generator=g), torch.randn(3, generator=g)
    new, before = (torch.distributions.Normal(m, s.exp()) for m, s in ((mean, log_std), (old, old_log_std)))
    torch.testing.assert_close(log_probability(actions, mean, log_std), new.log_prob(actions).sum(-1))
    expected = torch.distributions.kl_divergence(before, new).sum(-1)
    torch.testing.assert_close(divergence(mean, log_std, old, old_log_std), expected)


def test_advantages_are_those_of_the_definition():
    """Sum over l of (gamma lambda)^l delta up to the episode's end, whose delta takes the last observation's value."""
    options = replace(SMALL, num_envs=3, steps=8, scale_rewards=False, gamma=0.9, gae=0.8)
    ppo = Ppo(Line(3, lambda x: 1 - x.square(), limit=5), options)
    ppo.collect()
    batch = ppo.advantages()
    with torch.no_grad():
        value = ppo.policy.critic(ppo._seen)[..., 0]
        after = value[1:].clone()
        for t, rows, last in ppo._finals:
            after[t, rows] = ppo.policy.critic(ppo.policy.moments(last))[:, 0]
    delta = ppo._rewards + options.gamma * after - value[:-1]
    expected = torch.zeros(8, 3)
    for t in range(8):
        for e in range(3):
            weight = 1.0
            for later in range(t, 8):
                expected[t, e] += weight * delta[later, e]
                if ppo._ended[later, e]:
                    break
                weight *= options.gamma * options.gae
    assert ppo._ended.sum() >= 3
    torch.testing.assert_close(batch["returns"].view(8, 3), expected + value[:-1])
    flat = expected.flatten()
    torch.testing.assert_close(
        batch["advantages"], (flat - flat.mean()) / flat.std(unbiased=False), rtol=1e-4, atol=1e-5
    )


def test_tanh_is_tanh():
    x = torch.linspace(-20, 20, 4001, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(torch.tanh(x).sum(), x)
    torch.testing.assert_close(Tanh()(x), torch.tanh(x), rtol=0, atol=1e-15)
    torch.testing.assert_close(torch.autograd.grad(Tanh()(x).sum(), x)[0], expected, rtol=0, atol=1e-14)


def test_only_positive_rewards_are_learned_from():
    options = replace(SMALL, num_envs=3, steps=8)
    every, positive = (Ppo(Line(3, lambda x: 0.1 - x.square(), limit=5), replace(options, only_positive=only))
                       for only in (False, True))  # fmt: skip
    for ppo in (every, positive):
        ppo.collect()
    assert (every._rewards < 0).any() and (every._rewards > 0).any()
    torch.testing.assert_close(positive._rewards, every._rewards.clamp(min=0))
    assert positive.recent == every.recent  # what is told is what was got


def test_a_time_limit_does_not_cut_the_value():
    """Reward 1 for ever is worth 1 / (1 - gamma), however short the episodes."""
    options = Options(num_envs=16, steps=20, gamma=0.9, scale_rewards=False, minibatch=80, hidden=(16,))
    ppo = Ppo(Line(16, torch.ones_like, limit=4), options)
    for _ in range(60):
        ppo.iterate()
    with torch.no_grad():
        values = ppo.policy.critic(ppo._seen.flatten(0, 1))
    assert values.mean().item() == pytest.approx(10, abs=0.2)


def test_learns_to_go_to_the_middle():
    options = Options(num_envs=32, steps=10, minibatch=80, hidden=(16,))
    ppo = Ppo(Line(32, lambda x: -x.square()), options)
    before = evaluate(ppo.policy, Line(200, lambda x: -x.square()), seed=5)[0].mean()
    for _ in range(30):
        told = ppo.iterate()
    returns, lengths = evaluate(ppo.policy, Line(200, lambda x: -x.square()), seed=5)
    assert before < -2.5
    assert returns.mean() > -0.5
    assert lengths.tolist() == [10] * 200
    assert told["episode/length"] == 10


def test_same_seed_same_bits_whatever_the_threads():
    told, weights = [], []
    for seed, threads in ((3, 1), (3, 2), (4, 1)):
        ppo = ant(SMALL, seed, threads)
        told.append([ppo.iterate() for _ in range(3)])
        weights.append(torch.cat([p.detach().flatten() for p in ppo.parameters]))
    assert told[0] == told[1]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_policy_keeps_to_the_range_and_survives_a_checkpoint(tmp_path):
    ppo = ant(SMALL, seed=2)
    for _ in range(2):
        ppo.iterate()
    checkpoint_of(ppo, ID, 2).save(tmp_path / "checkpoint.pt")
    kept = Checkpoint.load(tmp_path)
    assert (kept.env_id, kept.options, kept.seed) == (ID, SMALL, 2)
    observations = torch.randn(7, 105, generator=torch.Generator().manual_seed(0)) * 20
    with torch.no_grad():
        ppo.policy.actor[-1].weight *= 1e4
        wild = ppo.policy(observations)
        assert wild.abs().max() == 1
        ppo.policy.actor[-1].weight /= 1e4
        torch.testing.assert_close(kept.policy()(observations), ppo.policy(observations))
    again = ant(SMALL, seed=2)
    again.load_state_dict(kept.ppo)
    assert (again.samples, again.iterations) == (96, 2)
    again.iterate()


def test_actions_without_bounds_are_as_they_are():
    space = SimpleNamespace(shape=(2,), low=np.array([-np.inf, 0.0]), high=np.array([np.inf, 4.0]))
    policy = Policy(SimpleNamespace(shape=(1,)), space, SMALL, torch.Generator().manual_seed(0))
    assert policy.in_units(torch.tensor([[-7.0, -7.0], [9.0, 0.5]])).tolist() == [[-7, 0], [9, 3]]


@pytest.mark.parametrize("path", ["nothing", "broken.pt"])
def test_refuses_what_is_no_checkpoint(tmp_path, path):
    (tmp_path / "broken.pt").write_bytes(b"nonsense")
    with pytest.raises((OSError, ValueError), match="checkpoint"):
        Checkpoint.load(tmp_path / path)


class TwoInOne(Ppo):
    """The noise of two processes, for the union of their environments."""

    @property
    def generators(self):
        if not hasattr(self, "_two"):
            self._two = [torch.Generator().manual_seed((self.seed << 16) + rank + 1) for rank in range(2)]
        return self._two

    def begun(self, limit):
        half = self.envs.num_envs // 2
        return torch.cat([torch.randint(limit, (half,), generator=g) for g in self.generators])

    def noise(self):
        half = (self.envs.num_envs // 2, self._actions.shape[-1])
        return torch.cat([torch.randn(half, generator=g) for g in self.generators])


RANKS = """
import sys, torch
from pathlib import Path
torch.set_num_threads(1)
sys.path.insert(0, sys.argv[1])
from test_training import DATA_PARALLEL, ant, gathered, process_group
with process_group("gloo"):
    ppo = ant(DATA_PARALLEL, seed=1)
    ppo.iterate()
    torch.save(gathered(ppo), f"{sys.argv[2]}/{torch.distributed.get_rank()}.pt")
threads = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
assert not any("gloo" in name for name in threads), f"the group left threads: {threads}"
"""
DATA_PARALLEL = Options(num_envs=6, steps=16, epochs=1, minibatch=10**6, hidden=(16,))


def gathered(ppo):
    return {
        "gradient": torch.cat([p.grad.flatten() for p in ppo.parameters]),
        "mean": ppo.policy.moments.mean,
        "variance": ppo.policy.moments.variance,
        "weights": torch.cat([p.detach().flatten() for p in ppo.parameters]),
        "samples": ppo.samples,
    }


def test_two_processes_are_one_learner_on_the_union(tmp_path):
    """The gradient of two ranks is that of one with all the environments, to 1e-5 of its norm (single precision)."""
    (tmp_path / "ranks.py").write_text(RANKS)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    command += [str(tmp_path / "ranks.py"), os.path.dirname(__file__), str(tmp_path)]
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}, timeout=240)
    assert done.returncode == 0, done.stderr
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    for name in ("gradient", "weights", "mean"):
        assert torch.equal(first[name], second[name])
    union = ant(replace(DATA_PARALLEL, num_envs=12), seed=1, kind=TwoInOne)
    union.iterate()
    expected = gathered(union)
    assert first["samples"] == expected["samples"] == 192
    assert (first["gradient"] - expected["gradient"]).norm() < 1e-5 * expected["gradient"].norm()
    torch.testing.assert_close(first["mean"], expected["mean"], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(first["variance"], expected["variance"], rtol=1e-9, atol=1e-12)


def test_a_process_that_fails_leaves_its_group(monkeypatch):
    for name, value in {"MASTER_ADDR": "localhost", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(KeyError, match="of its own"), process_group("gloo"):
        assert torch.distributed.is_initialized()
        raise KeyError("of its own")
    assert not torch.distributed.is_initialized()


# ---- options


def test_options_of_a_task():
    assert environment_id("ant") == environment_id("Ant-v0") == environment_id(ID) == ID
    assert options_of(ID, {"gamma": 0.5}).gamma == 0.5
    swing_up = environment_id("CartPoleSwingUp")
    assert options_of(swing_up).gamma == 0.995
    assert options_of(swing_up, {"gamma": 0.5}).gamma == 0.5
    assert parsed_changes(["hidden=128,64", "gamma=1", "scale_rewards=False"]) == {
        "hidden": (128, 64), "gamma": 1.0, "scale_rewards": False,
    }  # fmt: skip
    assert parsed_changes(["hidden=32"]) == {"hidden": (32,)}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["gama=1"], "near: gamma"),
        (["gamma"], "name=value"),
        (["gamma=x"], "no number"),
        (["num_envs=1.5"], "expected int"),
        (["hidden=1.5,2"], "expected tuple"),
        (["scale_rewards=1"], "expected bool"),
    ],
)
def test_refuses_options(words, text):
    with pytest.raises(ValueError, match=text):
        parsed_changes(words)


@pytest.mark.parametrize("change", [{"num_envs": 0}, {"gamma": 1.5}, {"clip": 0.0}, {"min_std": -1.0}, {"hidden": 0}])
def test_refuses_values(change):
    with pytest.raises(ValueError, match="expected"):
        options_of(ID, change)


# ---- the commands


def test_train_play_and_export(tmp_path, capsys):
    """A short training from the command line leaves all that it promises; ONNX acts as the policy does."""
    run = tmp_path / "run"
    small = ["--threads", "1", "--run-dir", str(run), "--evaluate", "3", "--no-video"]
    changes = ["--set", "steps=8", "hidden=16,16", "--num-envs", "16"]
    assert cli.main(["train", "Ant", "--samples", "500", *changes, *small]) == 0
    assert "3 episodes without noise" in capsys.readouterr().out
    told = json.loads((run / "run.json").read_text())
    assert told["env_id"] == ID
    assert told["options"]["num_envs"] == 16
    result = json.loads((run / "result.json").read_text())
    assert result["samples"] == 512
    assert 0 < result["simulator_share"] < 1
    assert [point["samples"] for point in json.loads((run / "curve.json").read_text())] == [128, 256, 384, 512]
    assert list(run.glob("events.out.tfevents.*"))

    with closing(environments(ID, 1, 1)) as envs:
        assert json.loads((run / "policy.json").read_text()) == json.loads(json.dumps(envs.interface()))
    policy = Checkpoint.load(run).policy()
    session = pytest.importorskip("onnxruntime").InferenceSession(run / "policy.onnx")
    for rows in (1, 5):
        observations = torch.randn(rows, 105, generator=torch.Generator().manual_seed(rows))
        (actions,) = session.run(None, {"observation": observations.numpy()})
        with torch.no_grad():
            np.testing.assert_allclose(actions, policy(observations), rtol=1e-4, atol=1e-5)

    assert cli.main(["play", str(run), "--episodes", "2", "--threads", "1"]) == 0
    assert "of 2 episodes" in capsys.readouterr().out
    assert (
        cli.main(
            [
                "train",
                "--resume",
                str(run),
                "--samples",
                "700",
                *small[:2],
                "--evaluate",
                "0",
                "--no-video",
                "--no-onnx",
            ]
        )
        == 0
    )  # noqa: E501
    assert [point["samples"] for point in json.loads((run / "curve.json").read_text())][-2:] == [640, 768]
    assert Checkpoint.load(run).ppo["samples"] == 768


def test_an_evaluation_shows_how_far_it_is():
    """Steps of all that episodes could have; what one that ends spares counts at once."""

    class Bar:
        told, total = [], None

        def reset(self, total):
            self.total = total

        def update(self, n):
            self.told.append(n)

    bar = Bar()
    with closing(stiction.make_vec("stiction/Hopper-v0", 5, backend="torch", max_episode_steps=200)) as envs:
        lengths = evaluate(lambda observations: torch.zeros(5, 3), envs, 0, bar)[1]
    assert lengths.max() < 200
    assert sum(bar.told) == bar.total == 1000
    assert min(bar.told) > 0
    assert len(bar.told) == lengths.max()
    assert len(lengths.unique()) > 1


def test_video_of_a_policy(tmp_path):
    """In a process of its own: how mujoco renders is settled when it is first imported."""
    ppo = ant(SMALL)
    checkpoint_of(ppo, ID, 0).save(tmp_path / "checkpoint.pt")
    command = [sys.executable, "-m", "stiction", "play", str(tmp_path), "--episodes", "1", "--threads", "1"]
    command += ["--video", str(tmp_path / "a.mp4"), "--seconds", "0.5"]
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    import imageio.v3

    frames = imageio.v3.imread(tmp_path / "a.mp4")
    assert frames.shape == (11, 480, 480, 3)
    assert frames.std() > 10
    assert (frames[0] != frames[-1]).any()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["train"], "which task"),
        (["train", "Antt"], "did you mean Ant"),
        (["train", "Ant", "--set", "gama=1"], "near: gamma"),
        (["train", "--resume", "/nowhere"], "no checkpoint"),
        (["play", "/nowhere"], "no checkpoint"),
        (["bench", "Antt"], "no task"),
        (["bench", "Ant", "--rounds", "0"], "--rounds is 0, expected at least 1"),
        (["view", "Ant", "--viewer", "window"], "no display"),
        (["view", "Ant", "--actions", "policy", "--viewer", "web"], "needs a run|mjviser"),
    ],
)
def test_commands_say_what_is_wrong(capsys, monkeypatch, words, text):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert cli.main(words) == 1
    import re

    assert re.search(text, capsys.readouterr().err)


def test_list_names_every_environment(capsys):
    assert cli.main(["list"]) == 0
    shown = capsys.readouterr().out
    assert cli.main(["list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    from stiction.registration import ENVIRONMENTS

    assert [entry["id"] for entry in told] == list(ENVIRONMENTS)
    assert all(env_id in shown for env_id in ENVIRONMENTS)
    assert told[0]["observations"] == 105


def test_bench_prints_rates(capsys):
    assert cli.main(["bench", "Ant", "--num-envs", "64", "--rounds", "1"]) == 0
    assert "through make_vec" in capsys.readouterr().out
    rates = bench.learner_rates(5, 2, rounds=1)
    assert math.isfinite(rates[0])
    assert rates[0] > 1000


def test_viewer_steps_in_real_time():
    from stiction.training.view import _steps, _zero_actions

    with closing(stiction.make_vec(ID, 1, num_threads=1)) as envs:
        states = [envs.simulation.qpos[0].copy() for _ in _steps(envs, _zero_actions(envs, None), 0.3, seed=0)]
    assert 3 <= len(states) <= 7
    assert (states[0] != states[-1]).any()


def test_each_process_has_a_gpu_of_its_own():
    assert own_gpu({"LOCAL_RANK": "2"}) == "2"
    assert own_gpu({"LOCAL_RANK": "1", "CUDA_VISIBLE_DEVICES": "4,6"}) == "6"
    with pytest.raises(ValueError, match="process 2 of this machine has no GPU: CUDA_VISIBLE_DEVICES is '4,6'"):
        own_gpu({"LOCAL_RANK": "2", "CUDA_VISIBLE_DEVICES": "4,6"})
