"""Goals apart from the observation, for goal-conditioned learning such as hindsight experience replay.

    envs = stiction.make_vec("stiction/ArmLift-v0", 16, observations="goal")
    observations["achieved_goal"], observations["desired_goal"]     # (N, 3) each; the rest in "observation"
    envs.compute_reward(achieved, desired, infos)                   # 0 where they are near enough, else -1

Rewards are then these. In a step: whether what it achieved is the goal that was desired before it, so that a goal which
changes when it is reached counts. Source: Gymnasium-Robotics' GoalEnv; Andrychowicz et al., "Hindsight experience
replay", NeurIPS 2017.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .backend import as_numpy, is_tensor
from .observation_groups import Group, ObservationGroups
from .signals import term_columns


@dataclass(frozen=True)
class Goal:
    """What a task's goal is made of: terms of its observation, or of what it reports after a reset.

    ``within``: the distance from which on it is reached, in the terms' units, or the name of a parameter of the task.
    ``leaves_out``: other terms that depend on the goal, which "observation" must not have. ``rotation``: both are
    quaternions, and the distance is the angle between them.
    """

    achieved: str | tuple[str, ...]
    desired: str | tuple[str, ...]
    within: float | str
    leaves_out: tuple[str, ...] = ()
    rotation: bool = False

    def __post_init__(self):
        if not isinstance(self.within, str) and not self.within > 0:
            raise ValueError(f"within is {self.within}, expected more than 0, or the name of a parameter of the task")

    def terms(self, what: str) -> tuple[str, ...]:
        """Of "achieved" or "desired"."""
        given = getattr(self, what)
        return (given,) if isinstance(given, str) else tuple(given)

    def groups(self, signals) -> dict[str, Group]:
        """Of observations with these signals."""
        desired = self.terms("desired")
        rest = [term for term in term_columns(signals) if term not in (*desired, *self.leaves_out)]
        return {
            "observation": Group(*(f"observation.{term}" for term in rest)),
            "achieved_goal": Group(*self.terms("achieved"), clean=True),
            "desired_goal": Group(*desired, clean=True),
        }

    def reached(self, achieved, desired, within: float):
        """(...,) bool, of goals (..., k): arrays or tensors."""
        if self.rotation:
            return abs((achieved * desired).sum(-1)) > math.cos(within / 2)
        return ((achieved - desired) ** 2).sum(-1) < within**2


#: Of the built-in tasks that have one, and of what extends these.
GOALS = {
    "stiction/ArmLift-v0": Goal(
        "cube_position", ("goal_x", "goal_y", "goal_z"), "success_distance", leaves_out=("cube_to_goal",)
    ),
    "stiction/HandReorient-v0": Goal(
        "cube_orientation", "goal_orientation", "success_angle", leaves_out=("goal_to_cube",), rotation=True
    ),
}


class GoalGroups(ObservationGroups):
    """Observations with a `Goal`, and rewards by it. ``parameters`` tells those of the task as they are."""

    def __init__(self, goal: Goal, signals, reports, simulation, backend, parameters: Callable[[], dict]):
        super().__init__(goal.groups(signals), signals, reports, simulation, backend)
        self._goal, self._parameters, self._dtype = goal, parameters, simulation.dtype
        self._asked = self._last = self._rewards = None

    def compute_reward(self, achieved, desired):
        """0 where the goal is reached, else -1 (...,); goals (..., k)."""
        if not is_tensor(achieved):
            achieved, desired = np.asarray(achieved), np.asarray(desired)
        within = self._goal.within
        within = self._parameters()[within] if isinstance(within, str) else within
        reached = self._goal.reached(achieved, desired, within)
        return (reached.to(achieved.dtype) if is_tensor(reached) else reached.astype(achieved.dtype)) - 1

    def shown(self, clean, noisy, reports, began, stepped: bool) -> dict:
        told = super().shown(clean, noisy, reports, began, stepped)
        if stepped:
            achieved = told["achieved_goal"]
            if self._last is not None:
                achieved = self._backend.where(began[:, None], self._last, achieved)
            self._rewards, self._last = self.compute_reward(achieved, self._asked), None
        self._asked = self._backend.copy(told["desired_goal"])
        return told

    def last(self, clean, noisy, reports) -> dict:
        told = super().last(clean, noisy, reports)
        self._last = told["achieved_goal"]
        return told

    def rewarded(self, rewards):
        return self._rewards

    def get_state(self, num_envs: int) -> dict[str, np.ndarray]:
        if self._asked is None:
            asked = np.zeros((num_envs, len(self.signals["desired_goal"])), self._dtype)
        else:
            asked = np.array(as_numpy(self._asked))
        return super().get_state(num_envs) | {"desired_goal asked": asked}

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        self._asked = self._backend.array(state.pop("desired_goal asked"))
        super().set_state(state)


def groups_of(given, env_id, signals, reports, simulation, backend, parameters) -> ObservationGroups | None:
    """What `make_vec`'s ``observations`` asks for; None where that is one array of all."""
    if isinstance(given, str):
        of = getattr(env_id, "base", env_id)  # an extension has the goal of what it extends
        if given != "goal" or of not in GOALS:
            there = ", ".join(GOALS)
            raise ValueError(f"observations is {given!r}, expected a dict of groups, or 'goal' for one of {there}")
        given = GOALS[of]
    if isinstance(given, Goal):
        return GoalGroups(given, signals, reports, simulation, backend, parameters)
    return ObservationGroups(given, signals, reports, simulation, backend) if given else None
