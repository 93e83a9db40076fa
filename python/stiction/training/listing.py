"""`stiction list`: the environments there are, and what their observations and actions mean."""

from __future__ import annotations

import json
import math
from contextlib import closing

import stiction
from stiction.registration import ENVIRONMENTS
from stiction.signals import table, term_columns


def add_arguments(parser):
    parser.add_argument("task", nargs="?", help="print every number of its observations and actions")
    parser.add_argument("--json", action="store_true", help="print the facts as JSON")
    parser.add_argument("--markdown", action="store_true", help="print the terms of all tasks as a page")


def facts() -> list[dict]:
    told = []
    for env_id in ENVIRONMENTS:
        with closing(stiction.make_vec(env_id, 1, num_threads=1)) as envs:
            told.append(
                {
                    "id": env_id,
                    "observations": envs.single_observation_space.shape[0],
                    "actions": envs.single_action_space.shape[0],
                    "step_dt": envs.step_dt,
                    "max_episode_steps": envs.max_episode_steps,
                    "reward_terms": list(envs.reward_names),
                }
            )
    return told


def page() -> str:
    """docs/observations.md: a table of terms for every task."""
    parts = [_HEAD]
    for env_id in ENVIRONMENTS:
        with closing(stiction.make_vec(env_id, 1, num_threads=1)) as envs:
            parts.append(f"## {env_id}\n\n{terms_table(envs.observation_signals, envs.action_signals)}")
    return "\n\n".join(parts) + "\n"


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


_HEAD = """# Observations and actions

What each number of an observation or an action is. `envs.observation_signals` and `envs.action_signals` have name,
unit, scale, offset and bounds of every one, with the task's present parameters; `envs.observation_names` the names
alone, such as `joint_velocity/knee`; `stiction list TASK` prints them. `stiction train` writes the same as
`policy.json` beside `policy.onnx`.

- observation: number = scale (quantity - offset), held within its bounds
- action: quantity = offset + scale number, the number held within its bounds

Axes are the world's where nothing else is said, orientations are quaternions w x y z. `last_action` is what the policy
gave last."""


def run(arguments):
    if arguments.markdown:
        print(page(), end="")
        return
    if arguments.task is not None:
        show_signals(arguments)
        return
    told = facts()
    if arguments.json:
        print(json.dumps(told, indent=2))
        return
    width = max(len(entry["id"]) for entry in told)
    print(f"{'id':<{width}}  observations  actions  step       limit  reward")
    for e in told:
        terms = " + ".join(name.removeprefix("reward_") for name in e["reward_terms"])
        print(
            f"{e['id']:<{width}}  {e['observations']:>12}  {e['actions']:>7}  {1000 * e['step_dt']:>4.0f} ms  "
            f"{e['max_episode_steps'] * e['step_dt']:>6.0f} s  {terms}"
        )


def show_signals(arguments) -> None:
    from .options import environment, environment_id

    with closing(stiction.make_vec(environment(environment_id(arguments.task)), 1, num_threads=1)) as envs:
        if arguments.json:
            print(json.dumps(envs.interface(), indent=2))
            return
        signals = envs.observation_signals
        groups = signals if isinstance(signals, dict) else {"observation": signals}
        for name, of in [*groups.items(), ("action", envs.action_signals)]:
            print(f"{name}\n{table(of)}\n")
