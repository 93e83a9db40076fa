"""What a task in Python keeps in lists, dicts, deques and dataclasses goes with states and copies, as arrays do."""

import copy
import itertools
import pickle
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pytest

pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from scenes import sliding_box  # noqa: E402


@dataclass
class Curriculum:
    level: int = 0
    best: list = field(default_factory=list)
    of_each: np.ndarray | None = None


@dataclass(frozen=True)
class Phase:
    name: str
    since: float = 0.0


class Reader:
    """Of a class of the user's, which is taken for constant."""

    def __init__(self):
        self.asked = 0


class Remembers(stiction.Task):
    model = sliding_box()

    def setup(self):
        n = self.num_envs
        self.counts = np.zeros(n)
        self.memory = {"mine": self.counts, "past": deque(maxlen=3), "seen": {1, 2}, 7: (None, True, "a", 4)}
        self.plans = [[] for _ in range(n)]
        self.curriculum = Curriculum(of_each=np.zeros((n, 2)))
        self.phase, self.word, self.last = Phase("begin"), "begin", None
        self.pair = (0.25, np.zeros(n), [0])
        self.readers = [Reader(), self.sensors.imu, Reader()]
        self.random_numbers = np.random.default_rng(0)
        self.places = {"seen": self.sim.xpos[:, 1], "own": self.sim.qpos[:, :3]}  # views, the first read-only
        self.tip = self.sim.xpos[:, 1]

    def observe(self):
        history = sum((frame.sum() for frame in self.memory["past"]), 0.0)
        numbers = [self.curriculum.level, history, len(self.curriculum.best), self.phase.since, len(self.word)]
        numbers += [self.pair[2][0], len(self.memory), self.readers[0].asked, 0 if self.last is None else self.last[0]]
        lengths = np.array([sum(plan) for plan in self.plans])
        places = self.places["seen"] + self.places["own"]
        mine = [self.counts, self.memory["mine"], self.pair[1], lengths, self.curriculum.of_each[:, 1]]
        return {"all": np.tile(numbers, (self.num_envs, 1)), "each": np.stack(mine, 1), "places": places}

    def reward(self, action):
        step = int(self.counts[0])
        self.counts += 1 + action[:, 0]
        self.memory["past"].append(self.counts.copy())
        self.memory[f"step {step}"] = step
        for env, plan in enumerate(self.plans):
            plan.append(float(self.random_numbers.normal()) + env)
        self.curriculum.level += 1
        self.curriculum.best.append(self.counts[0])
        self.curriculum.of_each[:, 1] += self.counts
        self.phase, self.word = Phase("on", self.phase.since + 0.1), self.word + "!"
        self.pair[1][:] += self.counts
        self.pair[2][0] += 1
        self.last = np.full(self.num_envs, float(step))
        return np.zeros(self.num_envs)

    def act(self, action):
        self.sim.qfrc_applied[:, 0] = action[:, 0]

    def action_space(self):
        from gymnasium.spaces import Box

        return Box(-1.0, 1.0, (1,), np.float32)


def envs_of(kind=Remembers, n=4, steps=0, **attributes):
    envs = stiction.make_vec(kind if not attributes else type(kind.__name__, (kind,), attributes), n)
    envs.reset(seed=0)
    walk(envs, steps)
    return envs


def walk(envs, steps):
    return [envs.step(np.linspace(0, 1, envs.num_envs, dtype=np.float32)[:, None])[0] for _ in range(steps)]


def task_of(envs):
    return envs._core.python_task


def test_what_containers_hold_goes_back_in_time():
    envs = envs_of(steps=2)
    task, state = task_of(envs), envs.get_state()
    known = task.memory["mine"], task.plans[1], task.curriculum, task.places["own"]
    expected = walk(envs, 5)
    for given in (state, pickle.loads(pickle.dumps(state)), copy.deepcopy(state)):
        envs.set_state(given)
        np.testing.assert_array_equal(walk(envs, 5), expected)
    assert known[0] is task.counts is task.memory["mine"]  # what is held elsewhere stays the same
    assert (known[1] is task.plans[1]) and (known[2] is task.curriculum) and (known[3] is task.places["own"])
    assert np.shares_memory(task.places["own"], task.sim.qpos) and isinstance(task.readers[0], Reader)
    assert task.memory["past"].maxlen == 3


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda envs: pickle.loads(pickle.dumps(envs))], ids=["copy", "pickle"]
)
def test_copies_have_what_containers_hold(again):
    envs = envs_of(steps=3)
    other = again(envs)
    np.testing.assert_array_equal(walk(other, 4), walk(envs, 4))
    assert task_of(other).plans is not task_of(envs).plans
    assert task_of(other).readers[0] is not task_of(envs).readers[0]


def test_rows_and_entries_go_with_their_environment():
    envs = envs_of(steps=3)
    task = task_of(envs)
    alike = task.curriculum.level, task.word, task.pair[2][0]
    envs.copy_env(3, [0, 1])
    for rows in (task.counts, task.memory["mine"], task.curriculum.of_each, task.pair[1], *task.memory["past"]):
        np.testing.assert_array_equal(rows[[0, 1]], rows[[3, 3]])
        assert (rows[2] != rows[3]).any()
    assert task.plans[0] == task.plans[1] == task.plans[3] != task.plans[2]
    assert task.plans[0] is not task.plans[3]
    assert (task.curriculum.level, task.word, task.pair[2][0]) == alike
    other = envs_of(n=5, steps=3)
    other.set_state(envs.get_state([2]), envs=[0])
    assert task_of(other).plans[0] == task.plans[2]
    np.testing.assert_array_equal(task_of(other).memory["past"][1][0], task.memory["past"][1][2])


def test_histories_of_other_lengths_do_not_go_with_envs():
    envs, late = envs_of(steps=1), envs_of(steps=2)
    before = late.get_state()
    with pytest.raises(ValueError, match=r"Remembers.memory\['past'\] has 2 entries, and 3 are there"):
        late.set_state(envs.get_state([0]), envs=[1])
    np.testing.assert_array_equal(late.get_state()["qpos"], before["qpos"])


def test_a_list_of_arrays_of_all_environments_is_a_history():
    def setup(task):
        Remembers.setup(task)
        task.frames = [np.arange(2.0), np.arange(2.0) + 10]

    envs = envs_of(n=2, setup=setup)
    envs.copy_env(1, [0])
    np.testing.assert_array_equal(task_of(envs).frames, [[1, 1], [11, 11]])


def test_what_has_a_place_that_none_can_keep_is_refused():
    def setup(task):
        Remembers.setup(task)
        task.memory["clips"] = itertools.cycle([1, 2])

    envs = envs_of(setup=setup)
    for ask in (envs.get_state, lambda: copy.deepcopy(envs), lambda: envs.copy_env(0, [1])):
        with pytest.raises(TypeError, match=r"Remembers.memory\['clips'\] is a cycle, whose place no state"):
            ask()


def test_what_contains_itself_is_refused():
    envs = envs_of()
    task_of(envs).plans[0].append(task_of(envs).plans)
    with pytest.raises(TypeError, match="Remembers has a container that contains itself"):
        envs.get_state()


def test_a_constant_that_is_not_there_is_named():
    def setup(task):
        Remembers.setup(task)
        task.things = []

    envs = envs_of(setup=setup)
    task_of(envs).things.append(Reader())
    state = envs.get_state()
    envs.set_state(state)
    task_of(envs).things.clear()
    with pytest.raises(ValueError, match=r"Remembers.things\[0\] is of a class that no state keeps"):
        envs.set_state(state)


def test_tensors_in_containers_are_kept():
    torch = pytest.importorskip("torch")

    class Tensors(stiction.Task):
        model, array = sliding_box(), "torch"

        def setup(self):
            self.memory = {"counts": torch.zeros(self.num_envs), "past": []}

        def observe(self):
            return (self.memory["counts"] + sum(self.memory["past"]))[:, None]

        def reward(self, action):
            self.memory["counts"] += torch.arange(self.num_envs)
            self.memory["past"].append(self.memory["counts"].clone())
            return torch.zeros(self.num_envs)

    envs = stiction.make_vec(Tensors, 3, backend="torch")
    envs.reset(seed=0)
    action = torch.zeros(envs.action_space.shape)
    envs.step(action)
    state = envs.get_state()
    expected = [envs.step(action)[0] for _ in range(3)]
    envs.set_state(state)
    for rows in expected:
        assert torch.equal(envs.step(action)[0], rows)
    envs.copy_env(2, [0])
    counts, past = task_of(envs).memory["counts"], task_of(envs).memory["past"]
    for rows in (counts, *past):
        assert rows[0] == rows[2] != rows[1]
