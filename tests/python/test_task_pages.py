"""The tasks' pages: what they say is what the code has, and their formulas are what the tasks reward."""

import re
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402
from stiction.registration import ENVIRONMENTS  # noqa: E402
from stiction.signals import term_columns  # noqa: E402
from stiction.training import task_pages  # noqa: E402
from stiction.training.task_texts import TEXTS  # noqa: E402

FOLDER = Path(__file__).parents[2] / "docs" / "tasks"
#: What words alone say; test_velocity_env.py has them.
UNCHECKED = {"landed", "air_time", "standing", "stance_time", "undesired", "trunk_force"}


def test_pages_are_what_the_code_says():
    written = {path.name for path in FOLDER.glob("*.md")}
    assert written == {f"{task_pages.file_name(env_id)}.md" for env_id in ENVIRONMENTS}
    for env_id in ENVIRONMENTS:
        text = (FOLDER / f"{task_pages.file_name(env_id)}.md").read_text(encoding="utf-8")
        assert text == task_pages.page(env_id), "stiction list --markdown docs/tasks"


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_every_parameter_is_explained(env_id):
    prose, parameters = task_pages.page(env_id).split("## Parameters")
    named = set(re.findall(r"[a-z]\w*", " ".join(re.findall(r"`([^`]*)`", prose))))
    assert not set(re.findall(r"^\| `(\w+)` \|", parameters, re.MULTILINE)) - named


def test_list_prints_the_formulas(capsys):
    from stiction import cli

    assert cli.main(["list", "Hopper"]) == 0
    assert "ctrl = -ctrl_cost_weight * sum(a**2)" in capsys.readouterr().out


class Term(np.ndarray):
    """Numbers of a term, with their elements as attributes."""

    def __getattr__(self, name):
        if name in self.elements:
            return float(self[self.elements.index(name)])
        raise AttributeError(name)

    def __array_finalize__(self, of):
        self.elements = getattr(of, "elements", ())


def terms_of(signals, numbers):
    told = {}
    for term, columns in term_columns(signals).items():
        told[term] = numbers[columns].view(Term)
        told[term].elements = tuple(signals[c].name.partition("/")[2] for c in columns)
    return told


MATH = {"exp": np.exp, "tanh": np.tanh, "clip": np.clip, "norm": np.linalg.norm}
MATH |= {"sum": sum, "min": min, "max": max, "abs": abs, "all": all}


def unknown(formula: str) -> set[str]:
    """What it says and a test cannot know."""
    return set(re.findall(r"[a-z_]\w*", formula)) & UNCHECKED


def evaluated(formula: str, names: dict):
    """None where there is something unknown."""
    if unknown(formula):
        return None
    return eval(formula, {"__builtins__": {}, **MATH, **names})


def place_things(envs, names, rng):
    """Brings random walks to what they would hardly reach: a robot or a cube that falls, a cube in the gripper, on the
    other one, turned to its goal.
    """
    sim = envs.simulation
    free = [int(sim.model.jnt_qposadr[j]) for j in np.flatnonzero(np.asarray(sim.model.jnt_type) == 0)]
    for env, of in enumerate(names):
        choice = rng.integers(4)
        if "grasp_to_cube" in of and choice == 0:
            sim.qpos[env, free[0] : free[0] + 3] -= of["grasp_to_cube"]
        elif "cube_to_place" in of and choice == 1:
            sim.qpos[env, free[0] : free[0] + 3] += of["cube_to_place"]
            sim.qpos[env, free[0] + 3 : free[0] + 7] = sim.qpos[env, free[1] + 3 : free[1] + 7]
            sim.qvel[env] = 0
        elif "goal_orientation" in of and choice == 0:
            sim.qpos[env, free[0] + 3 : free[0] + 7] = of["goal_orientation"]
        elif free and rng.random() < 0.05:
            sim.qpos[env, free[-1] + 2] += rng.choice([-0.3, 1])
    sim.forward()


SELDOM = {"healthy_reward": 1.3, "fall_weight": 2.0, "joint_deviation_weight": 0.1, "vertical_velocity_weight": 2.0}


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_formulas_are_what_is_rewarded(env_id):
    text, n, rng = TEXTS[env_id], 6, np.random.default_rng(0)
    options = {"autoreset_mode": AutoresetMode.DISABLED, "dtype": "float64", "num_threads": 1, "device": "cpu"}
    with closing(stiction.make_vec(env_id, n, **options)) as envs:
        envs.set_task_parameters(**{k: v for k, v in SELDOM.items() if k in envs.task_parameters})
        assert [name.removeprefix("reward_") for name in envs.reward_names] == list(text.reward)
        signals, parameters = envs.observation_signals, envs.task_parameters
        joints = [s.name.partition("/")[2] for s in signals if s.term == "joint_position"]
        sensors, seen, ended = stiction.Sensors(envs.simulation), set(), 0
        home = envs.simulation.model.key_qpos[0] if envs.simulation.model.nkey else None
        free = np.flatnonzero(np.asarray(envs.simulation.model.jnt_type) == 0)
        heights = np.asarray(envs.simulation.model.jnt_qposadr)[free] + 2
        observations, _ = envs.reset(seed=1)
        for _ in range(120):
            names = [terms_of(signals, observations[env].copy()) for env in range(n)]
            place_things(envs, names, rng)
            actions = rng.uniform(-1, 1, envs.action_space.shape) * envs.single_action_space.high
            observations, rewards, terminated, _, infos = envs.step(actions)
            torque = sensors.joint_torque(joints) if "torque" in text.words else None
            for env in range(n):
                known = parameters | {name: infos[name][env] for name in envs._names}
                known |= terms_of(signals, observations[env])
                known |= {"before": SimpleNamespace(**names[env]), "a": actions[env], "dt": envs.step_dt}
                known |= {"terminated": bool(terminated[env])}
                if torque is not None:
                    known["torque"] = torque[env]
                if "lowest_cube" in text.words:
                    known["lowest_cube"] = (envs.simulation.qpos[env, heights] - home[heights]).min()
                for name, formula in text.where.items():
                    value = evaluated(formula, known)
                    if name in known:
                        np.testing.assert_allclose(known[name], value, atol=1e-9, err_msg=name)
                    known[name] = value
                for name, formula in text.reward.items():
                    value = evaluated(formula, known)
                    if value is not None:
                        told = infos[f"reward_{name}"][env]
                        np.testing.assert_allclose(told, value, rtol=1e-9, atol=1e-9, err_msg=name)
                        seen |= {name} if value else set()
                if text.terminated is None:
                    assert not terminated[env]
                elif (over := evaluated(text.terminated, known)) is not None:
                    assert bool(over) == terminated[env]
            np.testing.assert_allclose(sum(infos[name] for name in envs.reward_names), rewards, rtol=1e-9, atol=1e-12)
            if terminated.any():
                ended += terminated.sum()
                observations, _ = envs.reset(options={"reset_mask": terminated})
        checked = {name for name, formula in text.reward.items() if not unknown(formula)}
        assert seen >= checked, f"never other than 0: {checked - seen}"
        assert (ended > 0) == (text.terminated is not None)
