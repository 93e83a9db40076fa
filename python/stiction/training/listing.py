"""`stiction list`: the environments there are, what their observations and actions mean, what they reward."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import stiction
from stiction.registration import ENVIRONMENTS
from stiction.signals import table

from .task_texts import TEXTS


def add_arguments(parser):
    parser.add_argument("task", nargs="?", help="print every number of its observations and actions, and its reward")
    parser.add_argument("--json", action="store_true", help="print the facts as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FOLDER", help="write a page for each task there")


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


def run(arguments):
    if arguments.markdown is not None:
        from .task_pages import write_pages

        print("\n".join(map(str, write_pages(arguments.markdown))))
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

    try:
        made = stiction.make_vec(environment(environment_id(arguments.task)), 1, num_threads=1)
    except KeyError as error:  # of a task for another robot, which `list` cannot be given
        raise ValueError(f"{arguments.task} cannot be made on its own robot: {error.args[0]}") from None
    with closing(made) as envs:
        if arguments.json:
            print(json.dumps(envs.interface(), indent=2))
            return
        signals = envs.observation_signals
        groups = signals if isinstance(signals, dict) else {"observation": signals}
        for name, of in [*groups.items(), ("action", envs.action_signals)]:
            print(f"{name}\n{table(of)}\n")
        if (text := TEXTS.get(envs.env_id)) is not None:
            print("\n".join(["reward", *(f"{term} = {formula}" for term, formula in text.reward.items())]))
