"""Interleaved rounds: every engine takes its turn in each round, so that what disturbs the machine disturbs all."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .engines import Stiction, Times


@dataclass
class Entry:
    """An engine in the race, and what its rounds gave."""

    engine: object
    label: dict
    periods: int = 1
    per_core: list = field(default_factory=list)  # steps per second of CPU time
    per_wall: list = field(default_factory=list)
    active: list = field(default_factory=list)
    depth: list = field(default_factory=list)
    residual: list = field(default_factory=list)  # r_con / V, worst of each call, environments with an impulse
    converged: list = field(default_factory=list)

    def calibrate(self, seconds: float) -> None:
        """Periods of a round of about ``seconds`` of CPU time."""
        times, steps = Times(), 0
        while times.cpu < min(0.1, seconds):
            steps += self.engine.advance(2, times)
        per_period = times.cpu * self.engine.num_envs * 5 / steps
        self.periods = int(np.clip(round(seconds / per_period), 1, 2000))

    def run(self) -> None:
        times = Times()
        watch = self._watch if isinstance(self.engine, Stiction) else None
        steps = self.engine.advance(self.periods, times, watch)
        self.per_core.append(steps / times.cpu)
        self.per_wall.append(steps / times.wall)

    def look(self) -> None:
        """Contacts and overlap, outside of the timing."""
        active, depth = self.engine.active_and_penetration()
        self.active.append(active), self.depth.append(depth)

    def _watch(self) -> None:
        c = self.engine.sim.certificate
        touched = np.asarray(c.num_contacts) > 0
        self.residual.append((np.asarray(c.r_con) / np.asarray(c.scale))[touched])
        self.converged.append(np.asarray(c.converged)[touched])

    def summary(self) -> dict:
        result = dict(self.label)
        result["steps_per_core_second"] = spread(self.per_core)
        result["steps_per_wall_second"] = spread(self.per_wall)
        active, depth = np.concatenate(self.active), np.concatenate(self.depth) * 1e3
        result["contacts"] = float(active.mean())
        result["penetration_mm"] = {"mean": float(depth.mean()), "p99": float(np.percentile(depth, 99))}
        if self.residual:
            residual = np.concatenate(self.residual)
            result["r_con_over_V"] = percentiles(residual)
            if residual.size:
                result["converged"] = float(np.mean(np.concatenate(self.converged)))
        return result


def spread(values) -> dict:
    values = np.asarray(values)
    return {
        "median": float(np.median(values)),
        "min": float(values.min()),
        "max": float(values.max()),
        "rounds": len(values),
    }


def percentiles(values: np.ndarray) -> dict | None:
    if values.size == 0:
        return None
    return {f"p{p}": float(np.percentile(values, p)) for p in (50, 95, 99)} | {
        "max": float(values.max()),
        "number": values.size,
    }


def race(entries: list[Entry], rounds: int, seconds: float) -> None:
    for entry in entries:
        entry.calibrate(seconds)
    for i in range(rounds):
        start = i % len(entries)
        for entry in entries[start:] + entries[:start]:
            entry.run()
        for entry in entries:
            entry.look()


def ratio(entry: Entry, reference: Entry) -> dict:
    """How many times faster per core, round by round."""
    return spread(np.asarray(entry.per_core) / np.asarray(reference.per_core))
