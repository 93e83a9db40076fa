"""What each number of an observation or an action is: names, units, scales, for those who deploy a policy.

envs = stiction.make_vec("stiction/QuadrupedVelocity-v0", 1024)
envs.observation_names          # ("linear_velocity/x", ..., "last_action/RH_KFE")
envs.observation_signals[12]    # Signal(name='joint_position/LF_HAA', unit='rad', scale=1.0, offset=..., ...)
envs.interface()                # all of it as a dictionary: what `stiction train` writes beside policy.onnx
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields


@dataclass(frozen=True)
class Signal:
    """One number. ``name``: its term and, behind a slash, the element: "joint_velocity/knee"; or the term alone.

    Of an observation: number = ``scale`` (quantity - ``offset``), held within [``low``, ``high``]. Of an action:
    quantity = ``offset`` + ``scale`` number, the number held within [``low``, ``high``]; where ``scale_below`` is
    another it stands for ``scale`` below 0. ``unit``: the quantity's; empty where a task in Python does not say.
    ``note``: what these do not tell, such as axes.
    """

    name: str
    unit: str = ""
    scale: float = 1.0
    offset: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    scale_below: float | None = None
    note: str = ""

    def __post_init__(self):
        if self.scale_below is None:
            object.__setattr__(self, "scale_below", self.scale)

    @property
    def term(self) -> str:
        return self.name.partition("/")[0]

    def facts(self) -> dict:
        """For JSON: name and unit, and what is not the default."""
        plain = {field.name: field.default for field in fields(self)} | {"scale_below": self.scale}
        told = {name: value for name, value in asdict(self).items() if value != plain[name]}
        return {"name": self.name, "unit": self.unit} | told


def names_of(signals) -> tuple[str, ...]:
    return tuple(signal.name for signal in signals)


def term_columns(signals) -> dict[str, list[int]]:
    """Term -> the places of its numbers."""
    columns: dict[str, list[int]] = {}
    for place, signal in enumerate(signals):
        columns.setdefault(signal.term, []).append(place)
    return columns


def signals_of_terms(shapes: dict[str, int], units, elements, owner: str) -> tuple[Signal, ...]:
    """Of a task in Python: ``shapes`` has the numbers of each term, in order; ``units``, ``elements``: what it says."""
    for what, told in (("units", units), ("elements", elements)):
        if unknown := [term for term in told if term not in shapes]:
            raise ValueError(f"{owner}.{what} has {unknown[0]!r}, but the terms are {', '.join(shapes)}")
    signals = []
    for term, size in shapes.items():
        names = [str(name) for name in elements.get(term, ("xyz"[:size] if size in (2, 3) else range(size)))]
        if len(names) != size or len(set(names)) != size:
            raise ValueError(f"{owner}.elements has {names} for {term!r}, expected {size} names, no two alike")
        alone = size == 1 and term not in elements
        signals += [Signal(term if alone else f"{term}/{name}", units.get(term, "")) for name in names]
    return tuple(signals)


def table(signals) -> str:
    """A line for each number, for people: place, name, unit, and what else there is to know."""
    rows = []
    for place, signal in enumerate(signals):
        facts = signal.facts()
        rest = [
            f"{name} {facts[name]:g}" for name in ("scale", "scale_below", "offset", "low", "high") if name in facts
        ]
        rows.append((str(place), signal.name, signal.unit, ", ".join([*rest, *([signal.note] if signal.note else [])])))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    return "\n".join(
        f"{place:>{widths[0]}}  {name:<{widths[1]}}  {unit:<{widths[2]}}  {rest}".rstrip()
        for place, name, unit, rest in rows
    )


def interface(envs) -> dict:
    """Of a `VectorEnv`: what goes into its policy and what comes out, for JSON."""
    signals = envs.observation_signals
    groups = signals if isinstance(signals, dict) else {"observation": signals}
    simulation = envs.simulation
    return {
        "env_id": envs.env_id,
        "step_dt": envs.step_dt,
        "timestep": simulation.timestep,
        "observations": {group: [signal.facts() for signal in of] for group, of in groups.items()},
        "actions": [signal.facts() for signal in envs.action_signals],
        "task_parameters": envs.task_parameters,
    }
