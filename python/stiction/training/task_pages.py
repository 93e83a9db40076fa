"""The documentation's page of each task: `python -m stiction list --markdown docs/tasks` writes them."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path

import stiction
from stiction.goals import GOALS
from stiction.registration import ENVIRONMENTS
from stiction.signals import term_columns

from .options import task_name
from .task_texts import TEXTS, TaskText


def write_pages(folder: Path) -> list[Path]:
    """A file for each task."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for env_id in ENVIRONMENTS:
        paths.append(folder / f"{file_name(env_id)}.md")
        paths[-1].write_text(page(env_id), encoding="utf-8")
    return paths


def file_name(env_id: str) -> str:
    """ "stiction/HalfCheetah-v0" -> "half-cheetah"."""
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in task_name(env_id)).lstrip("-")


def page(env_id: str) -> str:
    text = TEXTS[env_id]
    with closing(stiction.make_vec(env_id, 1, num_threads=1)) as envs:
        parts = [
            f"# {task_name(env_id)}",
            f"{text.summary} {text.source}",
            f'```python\nimport stiction\n\nenvs = stiction.make_vec("{env_id}", 1024)\n```',
            _sizes(envs),
            "## Observation and action",
            terms_table(envs.observation_signals, envs.action_signals),
            "## Reward",
            reward_table(envs, text),
            *([_where(text)] if text.where or text.words else []),
            "## Where an episode ends",
            f"- terminated: {f'`{text.terminated}`, or ' if text.terminated else ''}a state that is not finite\n"
            f"- truncated: after {envs.max_episode_steps} actions",
            "## How it begins",
            text.begins,
            *(["## Meanwhile", text.meanwhile] if text.meanwhile else []),
            "## Parameters",
            _parameters(envs.task_parameters),
        ]
        parts += ["## Its goal", _goal(GOALS[env_id])] if env_id in GOALS else []
        told = [name for name in envs._names if name not in envs.reward_names]
        parts += [
            "## Told in `infos`",
            ", ".join(f"`{name}`" for name in told) + ", every term of the reward, `status`.",
        ]
        if text.curve:
            parts += ["## Learned", f"`stiction train {task_name(env_id)}`, seeds of `python -m bench.learning`:",
                      f"![Learning curves](curves/{text.curve}.png)"]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _sizes(envs) -> str:
    steps = envs.max_episode_steps
    return (
        f"{len(envs.observation_signals)} observations, {_count(len(envs.action_signals), 'action')}, "
        f"{1000 * envs.step_dt:.4g} ms per action "
        f"({_count(round(envs.step_dt / envs.simulation.timestep), 'time step')}), at most {steps} actions or "
        f"{steps * envs.step_dt:g} s an episode. [How to read this page](../tasks.md#how-to-read-their-pages)."
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def reward_table(envs, text: TaskText) -> str:
    """Markdown, a line per term, in the order of `VectorEnv.reward_names`."""
    names = [name.removeprefix("reward_") for name in envs.reward_names]
    rows = [f"| `{name}` | `{text.reward[name]}` |" for name in names]
    return "\n".join(["The sum of", "", "| term | formula |", "|---|---|", *rows])


def _where(text: TaskText) -> str:
    rows = [f"| `{name}` | `{formula}` |" for name, formula in text.where.items()]
    rows += [f"| `{name}` | {words} |" for name, words in text.words.items()]
    return "\n".join(["| where | is |", "|---|---|", *rows])


def _goal(goal) -> str:
    achieved, desired = (", ".join(f"`{term}`" for term in goal.terms(what)) for what in ("achieved", "desired"))
    return (
        f'`observations="goal"` shows `achieved_goal` ({achieved}) and `desired_goal` ({desired}) apart; rewards are '
        f"then 0 within `{goal.within}`, else -1. See [goals](../training.md#goals)."
    )


def _parameters(parameters: dict) -> str:
    rows = [f"| `{name}` | {_number(value)} |" for name, value in parameters.items()]
    return "\n".join(["| name | default |", "|---|---|", *rows])


def _number(value) -> str:
    if isinstance(value, bool):
        return str(value)
    return f"({', '.join(f'{v:g}' for v in value)})" if isinstance(value, tuple) else f"{value:g}"


def terms_table(observation, action) -> str:
    """Markdown, a line per term."""
    lines = ["| | term | numbers | unit | elements | |", "|---|---|---|---|---|---|"]
    for what, signals in (("observation", observation), ("action", action)):
        for term, places in term_columns(signals).items():
            of = [signals[place] for place in places]
            units = ", ".join(dict.fromkeys(signal.unit for signal in of))
            names = [signal.name.partition("/")[2] for signal in of]
            shown = ", ".join(names if len(names) <= 6 else [*names[:3], "...", names[-1]])
            lines.append(f"| {what} | `{term}` | {len(of)} | {units} | {shown} | {_remarks(of)} |")
            what = ""
    return "\n".join(lines)


def _remarks(signals) -> str:
    told = []
    for name in ("scale", "offset"):
        values = {getattr(signal, name) for signal in signals}
        if values != {1.0 if name == "scale" else 0.0}:
            told.append(f"{name} {values.pop():g}" if len(values) == 1 else f"{name} of each")
    low, high = signals[0].low, signals[0].high
    told += [f"within {low:g} to {high:g}"] if math.isfinite(low) else []
    told += [signals[0].note] if signals[0].note else []
    return ", ".join(told)
