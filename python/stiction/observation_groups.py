"""Groups of observations: what the policy sees, what a critic may see besides, and what was seen before.

    from stiction import Group

    envs = stiction.make_vec(
        "stiction/QuadrupedVelocity-v0", 1024,
        randomize=[Parameter("geom_friction", 0.5, 1.25, operation="set", columns=0), Noise(0.05)],
        observations={
            "policy": Group("angular_velocity", "gravity", "command", "joint_position", "joint_velocity", "last_action",
                            history=3),
            "critic": Group("*", "geom_friction", clean=True),
        },
    )

Observations are then dictionaries, {"policy": (N, 126), "critic": (N, ...)}, and the adapters hand the groups on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from gymnasium.spaces import Box, Dict

from .backend import as_numpy
from .randomisation import PARAMETERS, parameter_elements
from .signals import Signal, term_columns
from .simulation_arrays import near


class Group:
    """``terms``: of the observation ("*", or none named: all of them, in their order), of what the task reports after a
    reset, and parameters that ``per_env`` or ``randomize`` names, such as "geom_friction". Where two of these have the
    same name, "observation.gravity", "report.gravity" or "params.gravity" says which is meant.

    ``history``: the last so many observations, the oldest first; as an episode begins all are its first. ``clean``:
    without `stiction.randomisation.Noise`.
    """

    def __init__(self, *terms: str, history: int = 1, clean: bool = False):
        if not all(isinstance(term, str) for term in terms):
            raise TypeError(f"a Group has the terms {terms}, expected names")
        if not isinstance(history, int) or isinstance(history, bool) or history < 1:
            raise ValueError(f"a Group's history is {history!r}, expected how many observations, at least 1")
        self.terms, self.history, self.clean = terms or ("*",), history, bool(clean)

    def __repr__(self) -> str:
        words = [repr(term) for term in self.terms]
        words += [f"history={self.history}"] if self.history > 1 else []
        return f"Group({', '.join(words + (['clean=True'] if self.clean else []))})"

    def __eq__(self, other) -> bool:
        return isinstance(other, Group) and vars(self) == vars(other)

    __hash__ = None


def checked_groups(given) -> dict[str, Group]:
    """Name -> `Group`, of a dict of groups, sequences of terms or single terms."""
    if not isinstance(given, Mapping) or not given:
        raise TypeError(f"observations is {given!r}, expected a dict of groups such as {{'policy': ('*',)}}")
    groups = {}
    for name, value in given.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"observations has the key {name!r}, expected a group's name")
        if isinstance(value, str):
            value = (value,)
        if not isinstance(value, (Group, Sequence)):
            raise TypeError(f"observations[{name!r}] is {value!r}, expected a stiction.Group or names of terms")
        if not isinstance(value, Group) and not value:
            raise ValueError(f"observations[{name!r}] names no term; '*' is all of them")
        groups[name] = value if isinstance(value, Group) else Group(*value)
    return groups


class ObservationGroups:
    """Makes the groups' arrays out of a batch's observations, reports and parameters, arrays of ``backend``.

    ``signals``: of the observation (D,). ``reports``: names of the rows that are told after a reset. N environments.
    """

    def __init__(self, given, signals: Sequence[Signal], reports: Sequence[str], simulation, backend):
        self._backend, batch = backend, (signals, reports, simulation, backend)
        self._parts = {name: _Part(name, group, *batch) for name, group in checked_groups(given).items()}

    @property
    def signals(self) -> dict[str, tuple[Signal, ...]]:
        return {name: part.signals for name, part in self._parts.items()}

    def space(self, dtype) -> Dict:
        return Dict({name: Box(-np.inf, np.inf, (len(p.signals),), dtype) for name, p in self._parts.items()})

    def shown(self, clean, noisy, reports, began, stepped: bool) -> dict:
        """What is seen now. ``clean``, ``noisy`` (N, D), ``reports`` (names, N); ``began`` (N,): whose episodes begin
        here; ``stepped``: whether the others' have gone on since the last call.
        """
        return {name: part.shown(clean, noisy, reports, began, stepped) for name, part in self._parts.items()}

    def last(self, clean, noisy, reports) -> dict:
        """The last observations of episodes that ended in a step; those of others mean nothing. Before `shown`."""
        return {name: part.last(clean, noisy, reports) for name, part in self._parts.items()}

    def rewarded(self, rewards):
        """Of the last step: the task's own."""
        return rewards

    def get_state(self, num_envs: int) -> dict[str, np.ndarray]:
        """Copies of what was seen before, by group; only of those with a history."""
        return {name: part.seen(num_envs) for name, part in self._parts.items() if part.history > 1}

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        for name, frames in state.items():
            self._parts[name].put(frames)


class _Part:
    """One group of a batch."""

    def __init__(self, name: str, group: Group, signals, reports, simulation, backend):
        self.clean, self.history = group.clean, group.history
        self._simulation, self._backend = simulation, backend
        self.frames = None  # (N, history, numbers)
        columns = term_columns(signals)
        there = {"observation": tuple(columns), "report": tuple(reports), "params": tuple(simulation.per_env)}
        self._columns: list[int] = []
        self._rows: list[int] = []
        self._parameters: list[str] = []
        chosen, told, drawn = [], [], []
        for term in group.terms:
            source, of = ("observation", "*") if term == "*" else _found(name, term, there)
            if source == "observation":
                places = range(len(signals)) if of == "*" else columns[of]
                self._columns += places
                chosen += [signals[place] for place in places]
            elif source == "report":
                self._rows.append(there[source].index(of))
                told.append(Signal(term))
            else:
                self._parameters.append(of)
                shape = simulation._arrays.shape(f"params.{of}")[1:]
                drawn += [Signal(f"{term}/{of_what}") for of_what in parameter_elements(simulation.model, of, shape)]
        frame = (*chosen, *told, *drawn)
        if len({signal.name for signal in frame}) < len(frame):
            raise ValueError(f"observations[{name!r}] has a term twice: {', '.join(group.terms)}")
        self._whole = self._columns == list(range(len(signals)))
        past = [replace(s, name=f"{s.name}[{back}]") for back in range(1 - self.history, 0) for s in frame]
        self.signals = (*past, *frame)

    def _frame(self, clean, noisy, reports):
        """(N, numbers), new memory."""
        given = clean if self.clean else noisy
        parts = [given if self._whole else given[:, self._columns]]
        parts += [reports[self._rows].T] if self._rows else []
        for name in self._parameters:
            values = self._backend.read(self._simulation._arrays, f"params.{name}")
            parts.append(values.reshape(len(given), -1))
        return self._backend.concatenate(parts)

    def shown(self, clean, noisy, reports, began, stepped: bool):
        frame = self._frame(clean, noisy, reports)
        if self.history == 1:
            return frame
        first = self._backend.concatenate([frame[:, None]] * self.history)
        if self.frames is None:
            self.frames = first
        else:
            kept = self._pushed(frame) if stepped else self.frames
            self.frames = self._backend.where(began[:, None, None], first, kept)
        return self._flat(self.frames)

    def last(self, clean, noisy, reports):
        frame = self._frame(clean, noisy, reports)
        return frame if self.history == 1 else self._flat(self._pushed(frame))

    def _pushed(self, frame):
        return self._backend.concatenate([self.frames[:, 1:], frame[:, None]])

    def _flat(self, frames):
        return self._backend.copy(frames.reshape(len(frames), -1))

    def seen(self, num_envs: int) -> np.ndarray:
        if self.frames is None:
            size = len(self.signals) // self.history
            return np.zeros((num_envs, self.history, size), self._simulation.dtype)
        return np.array(as_numpy(self.frames))

    def put(self, frames: np.ndarray) -> None:
        self.frames = self._backend.array(frames)


def _found(group: str, term: str, there: dict[str, tuple[str, ...]]) -> tuple[str, str]:
    """(source, name) of a term; ``there``: the names of each source."""
    found = [(source, term) for source, names in there.items() if term in names]
    source, _, name = term.partition(".")
    if not found and name in there.get(source, ()):
        return source, name
    if len(found) > 1:
        meant = " or ".join(f"'{source}.{term}'" for source, _ in found)
        raise ValueError(f"observations[{group!r}] has {term!r}, and there is more than one of that name: say {meant}")
    if not found and term.removeprefix("params.") in PARAMETERS:
        raise ValueError(
            f"observations[{group!r}] has {term!r}, a parameter that all environments share: randomize it, or name it "
            "in per_env"
        )
    if not found:
        known = [name for names in there.values() for name in names]
        hint = near(term, known) or f"; there are: {', '.join(known)}"
        raise ValueError(f"observations[{group!r}] has {term!r}, which is no term of this task{hint}")
    return found[0]
