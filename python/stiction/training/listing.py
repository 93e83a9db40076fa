"""`stiction list`: the environments there are."""

from __future__ import annotations

import json
from contextlib import closing

import stiction
from stiction.registration import ENVIRONMENTS


def add_arguments(parser):
    parser.add_argument("--json", action="store_true", help="print the facts as JSON")


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
