"""What a task in Python remembers in lists, dicts, dataclasses and the like is in states, copies and pickles."""

import copy
import pickle
import random
import types
import warnings
from collections import defaultdict, deque, namedtuple
from dataclasses import dataclass, field

import numpy as np
import pytest

pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from scenes import sliding_box  # noqa: E402

Pair = namedtuple("Pair", "count place")


@dataclass
class Diary:
    days: int = 0
    pages: list = field(default_factory=list)


@dataclass(frozen=True)
class Plan:
    goal: object
    name: str = "north"


def twice(x):
    return 2 * x


class Recalls(stiction.Task):
    """Everything that it sees depends on what it remembers."""

    model = sliding_box()
    max_episode_steps = 5

    def setup(self):
        zeros = np.zeros(self.num_envs)
        self.heights = []  # grows
        self.line = deque([self.array_of(zeros)] * 3, maxlen=3)  # a delay
        self.each = [deque(maxlen=3) for _ in range(self.num_envs)]
        self.notes = [{"falls": 0, "best": None} for _ in range(self.num_envs)]
        self._sums = {"step": 0, "of": {"height": self.array_of(zeros), "how": twice}}
        self.counts = defaultdict(int)
        self.diary = Diary()
        self.plan = Plan(self.array_of(zeros))
        self.pair, self.seen, self.mode, self.least = Pair(0, None), set(), "fresh", None
        self.space = types.SimpleNamespace(steps=0)
        self.draws, self.luck = np.random.default_rng(3), random.Random(4)
        self.total = self.array_of(zeros)
        self.named = {"total": self.total, "qpos": self.sim.qpos}
        self.itself = [self.diary]
        self.itself.append(self.itself)

    def reset(self, envs, random):
        self.sim.qpos[envs, 2] += random.uniform(0, 0.1)
        for env in self.numpy(envs):
            self.each[env].clear()
            self.notes[env]["falls"] += 1

    def act(self, action):
        height = self.numpy(self.sim.qpos[:, 2]).astype(float)
        self.heights.append(height.mean())
        self.line.append(self.sim.qpos[:, 2] + 0)
        for env, mine in enumerate(self.each):
            mine.append(height[env])
            self.notes[env]["best"] = max(mine)
        self._sums["step"] += 1
        self._sums["of"]["height"] += self._sums["of"]["how"](self.line[0])
        self.counts[f"third {len(self.heights) % 3}"] += 1
        self.itself[0].days += 1
        self.itself[1][0].pages.append(self.array_of(height))
        self.plan = Plan(self.plan.goal + self.diary.pages[-1], "south" if self.plan.name == "north" else "north")
        self.pair = Pair(self.pair.count + 1, self.array_of(height))
        self.seen.add(round(float(height[0]), 3))
        self.mode = "late" if self.space.steps > 5 else "early"
        self.least = height[0] if self.least is None else min(self.least, height[0])
        self.space.steps += 1
        self.named["total"] += self.draws.uniform() + self.luck.random()

    def observe(self):
        """Rows that are each environment's own, and numbers of all."""
        own = [sum(mine) + 10 * notes["falls"] for mine, notes in zip(self.each, self.notes, strict=True)]
        rows = [self.array_of(np.array(own)), self.array_of(np.array([notes["best"] or 0.0 for notes in self.notes]))]
        rows += [self._sums["of"]["height"], self.plan.goal, self.line[0], self.pair.place]
        rows += [self.total, self.named["qpos"][:, 2]]
        rows = [self.total * 0 if row is None else row for row in rows]
        told = [sum(self.heights), self._sums["step"], *(self.counts[f"third {k}"] for k in range(3)), self.diary.days]
        told += [len(self.diary.pages), self.plan.name == "south", self.pair.count, sum(self.seen)]
        told += [self.mode == "late", self.least or 0.0, self.space.steps]
        return {f"row {k}": row for k, row in enumerate(rows)} | {
            f"all {k}": self.array_of(np.full(self.num_envs, float(number))) for k, number in enumerate(told)
        }

    def reward(self, action):
        return self.total * 0 + self._sums["step"]


class InTorch(Recalls):
    array = "torch"


class Beside(Recalls):
    """Beside a built-in task."""

    base, model, max_episode_steps = "stiction/Hopper-v0", None, stiction.Task.max_episode_steps
    act = stiction.Task.act

    def reward(self, action):
        Recalls.act(self, action)
        return {"steps": self.total * 0 + self._sums["step"]}


KINDS = {"arrays": Recalls, "tensors": InTorch, "beside": Beside}


def made(kind, n=3, steps=0, seed=1):
    if kind == "tensors":
        pytest.importorskip("torch")
    envs = stiction.make_vec(KINDS[kind], n, num_threads=1, **({"max_episode_steps": 5} if kind == "beside" else {}))
    envs.reset(seed=seed)
    walk(envs, steps)
    return envs


def walk(envs, steps):
    return [envs.step(np.zeros(envs.action_space.shape, np.float32))[:2] for _ in range(steps)]


def same(one, two):
    for (observations, rewards), (others, their_rewards) in zip(one, two, strict=True):
        np.testing.assert_array_equal(observations, others)
        np.testing.assert_array_equal(rewards, their_rewards)


def seen(task):
    return {name: np.array(values) for name, values in task.observe().items()}


def task_of(envs):
    return envs._core.python_task


@pytest.mark.parametrize("kind", KINDS)
def test_snapshots_copies_and_pickles_go_on_to_the_bit(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        envs, other, fresh = made(kind, steps=7), made(kind, steps=2, seed=5), made(kind)
        state = envs.get_state()
        bytes_, copied = pickle.dumps((envs, state)), copy.deepcopy(envs)
        expected = walk(envs, 9)
        again, unpickled = pickle.loads(bytes_)
        for goes_on in (copied, again):
            same(walk(goes_on, 9), expected)
        for goes_on in (other, fresh, envs):  # the last: back in time
            goes_on.set_state(unpickled)
            same(walk(goes_on, 9), expected)
            goes_on.set_state(state)
            same(walk(goes_on, 9), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_one_thing_in_two_places_stays_so(kind):
    for envs in (copy.deepcopy(made(kind, steps=4)), made(kind, steps=2)):
        envs.set_state(made(kind, steps=6).get_state())
        task = task_of(envs)
        assert task.named["total"] is task.total
        assert task.itself[0] is task.diary and task.itself[1] is task.itself
        task.named["qpos"][0, 0] = 3.0
        assert task.sim.qpos[0, 0] == 3.0
        assert (type(task.counts), task.line.maxlen, task._sums["of"]["how"]) == (defaultdict, 3, twice)


@pytest.mark.parametrize("kind", KINDS)
def test_entries_and_rows_go_with_their_environments(kind):
    envs = made(kind, steps=8)
    envs.step(np.zeros(envs.action_space.shape, np.float32))
    task = task_of(envs)
    task.each[1].extend([7.0, 8.0])
    task.notes[1]["falls"] = 40
    before, kept = seen(task), copy.deepcopy(task.each)
    envs.copy_env(1, [0])
    assert task.each[0] == task.each[1] == kept[1] and task.each[2] == kept[2]
    assert task.each[0] is not task.each[1] and task.notes[0] is not task.notes[1]
    assert task.notes[0] == task.notes[1] and task.notes[0]["falls"] == 40 != task.notes[2]["falls"]
    for name, after in seen(task).items():
        np.testing.assert_array_equal(after[0], before[name][1], err_msg=name)
        np.testing.assert_array_equal(after[1:], before[name][1:], err_msg=name)


def test_rows_go_into_another_batch_by_their_order():
    one, other = made("arrays", 4, steps=6), made("arrays", 3, steps=6, seed=9)
    shared = task_of(other).heights.copy()
    other.set_state(one.get_state([2, 0]), envs=[0, 2])
    for mine, theirs in ((0, 2), (2, 0)):
        assert task_of(other).each[mine] == task_of(one).each[theirs]
        assert task_of(other).line[1][mine] == task_of(one).line[1][theirs]
    assert task_of(other).heights == shared
    with pytest.raises(ValueError, match=r"expected float32 \(2, 7\), a row for each of envs"):
        other.set_state(one.get_state([2, 0, 1]), envs=[0, 2])


class Lists(stiction.Task):
    model = sliding_box()

    def setup(self):
        self.places, self.names, self.now = [3, 4], ["left", "right"], {"on": [True, False]}

    def observe(self):
        return self.sim.qpos.copy()

    def reward(self, action):
        return np.zeros(self.num_envs)


def test_lists_of_numbers_and_names_are_all_environments_together():
    """As many as there are environments by chance."""
    envs = stiction.make_vec(Lists, 2)
    envs.reset(seed=0)
    envs.copy_env(0, [1])
    task = task_of(envs)
    assert (task.places, task.names, task.now) == ([3, 4], ["left", "right"], {"on": [True, False]})


class Tracker:
    def __init__(self):
        self.count = 0


class Careless(Lists):
    def setup(self):
        self.log, self.at = {"file": open(__file__), "lines": 0}, [Tracker()]  # noqa: SIM115
        self.steps = (n for n in range(9))
        self.sensor, self.how = self.sensors.contacts(["box"]), [twice, np.sin, self.observe, Tracker]


def test_what_cannot_be_kept_is_named_and_stays():
    envs = stiction.make_vec(Careless, 2)
    envs.reset(seed=0)
    task = task_of(envs)
    task.log["lines"], task.at[0].count = 5, 3
    with pytest.warns(UserWarning) as told:
        state = envs.get_state()
    named = [str(warning.message).partition(", which")[0] for warning in told]
    assert sorted(named) == [
        "Careless.at[0] is a Tracker",
        "Careless.log['file'] is a TextIOWrapper",
        "Careless.steps is a generator",
    ]
    task.log["lines"], task.at[0].count = 6, 4
    file, tracker = task.log["file"], task.at[0]
    envs.set_state(pickle.loads(pickle.dumps(state)))
    assert task.log == {"file": file, "lines": 5}
    assert task.at[0] is tracker and tracker.count == 4
    assert task.how[0] is twice and task.how[3] is Tracker
    with pytest.warns(UserWarning, match="Careless.at"):
        other = task_of(copy.deepcopy(envs))
    assert other.log["lines"] == 5 and other.log["file"] is not file
    assert other.at[0].count == 0
    task.at.clear()
    with pytest.warns(UserWarning, match=r"Careless.at stays as it is: what its state cannot keep, at\[0\], is not"):
        envs.set_state(state)
    assert task.at == []
    file.close(), other.log["file"].close()


def test_a_tasks_numbers_may_change_their_kind_and_arrays_their_shape():
    envs = stiction.make_vec(Lists, 2)
    envs.reset(seed=0)
    task, fresh = task_of(envs), stiction.make_vec(Lists, 2)
    task.best, task.trail, task.places = 0, np.zeros(3), None
    state = envs.get_state()
    task.best, task.trail, task.places = 0.5, np.append(task.trail, 1.0), np.float32(2)
    later = envs.get_state()
    envs.set_state(state)
    assert (task.best, type(task.best), len(task.trail), task.places) == (0, int, 3, None)
    for put in (envs, fresh):
        put.set_state(later)
        assert (task_of(put).best, task_of(put).trail.tolist(), task_of(put).places) == (0.5, [0, 0, 0, 1], 2)


def test_an_array_of_the_class_stays_the_class_s():
    class Shares(Lists):
        trail = np.zeros(2)

    envs = stiction.make_vec(Shares, 2)
    envs.reset(seed=0)
    task_of(envs).trail = np.ones(2)
    state = envs.get_state()
    del task_of(envs).trail
    envs.set_state(state)
    assert (task_of(envs).trail == 1).all() and (Shares.trail == 0).all()


# ---- training


class Counts(stiction.Task):
    """The observation tells what lists remember."""

    model = sliding_box()
    max_episode_steps = 40

    def setup(self):
        self.steps, self.by = [0], {"env": [np.zeros(self.num_envs)], "name": "a", "how": [twice, self.sensors]}

    def action_space(self):
        from gymnasium.spaces import Box

        return Box(-1, 1, (1,), np.float32)

    def act(self, action):
        self.steps[0] += 1
        self.by["env"][0] += action[:, 0]

    def observe(self):
        return {"steps": np.full(self.num_envs, self.steps[0] / 100), "sum": self.by["env"][0]}

    def reward(self, action):
        return action[:, 0] * self.by["env"][0]


class Keeps(Counts):
    def setup(self):
        super().setup()
        self.diary = Diary()


@pytest.mark.parametrize(("kind", "kept"), [(Counts, True), (Keeps, False)])
def test_checkpoints_have_what_torch_reads_without_running_code(kind, kept, tmp_path):
    """Of dataclasses they have none: episodes begin anew then."""
    torch = pytest.importorskip("torch")
    from stiction.training.ppo import Options, Ppo

    def made():
        envs = stiction.make_vec(kind, 4, backend="torch", num_threads=1)
        return Ppo(envs, Options(num_envs=4, steps=8, minibatch=16, hidden=(8,)), 0, 1)

    first, second = made(), made()
    first.iterate()
    torch.save(first.state_dict(), tmp_path / "a.pt")
    second.load_state_dict(torch.load(tmp_path / "a.pt", weights_only=True))
    assert (first.state_dict()["episodes"] is not None) == kept
    assert (task_of(second.envs).steps == task_of(first.envs).steps) == kept
    for learner in (first, second):
        learner.iterate()
    assert (task_of(first.envs).by["env"][0] == task_of(second.envs).by["env"][0]).all() == kept
