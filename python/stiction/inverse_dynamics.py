"""Inverse dynamics with contact: what `Simulation.inverse_dynamics` returns, and its arguments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .backend import as_numbers


@dataclass
class InverseDynamics:
    """What `stiction.Simulation.inverse_dynamics` found, in double (NumPy)."""

    #: (num_envs, nv), to be written into ``qfrc_applied``, N or N m.
    qfrc: np.ndarray
    #: Per environment (nc, 3), tangents and normal in the order of `Simulation.contact_problem`, N s.
    impulse: list[np.ndarray]
    #: Per environment (nr,), of the other rows, N s.
    row_impulse: list[np.ndarray]
    #: Per environment (nc, 3), of couples over their arms, N s; (0, 3) where the model has none.
    spin_impulse: list[np.ndarray]
    #: (num_envs,): how far these impulses and the velocity asked for are from the law, as a part of V (1). What is
    #: far above rounding cannot be: a rigid contact is asked to be passed through.
    residual: np.ndarray


def inverse_dynamics(world, num_envs: int, nv: int, qacc, guess: str | InverseDynamics | None) -> InverseDynamics:
    if not (guess is None or isinstance(guess, InverseDynamics) or (isinstance(guess, str) and guess == "last")):
        raise ValueError(f"guess is {guess!r}, expected None, 'last' or an InverseDynamics")
    values = as_numbers("qacc", qacc)
    if values.shape != (expected := (num_envs, nv)):
        raise ValueError(f"qacc has shape {values.shape}, expected {expected}")
    if not np.isfinite(values).all():
        raise ValueError("qacc has entries that are not finite")
    values = np.ascontiguousarray(values, float)
    given = [None] * num_envs if guess is None or isinstance(guess, str) else _impulses(guess, num_envs)
    found = [world.inverse_dynamics(env, values[env], guess == "last", given[env]) for env in range(num_envs)]
    qfrc, impulse, row_impulse, spin_impulse, residual = zip(*found, strict=True)
    return InverseDynamics(np.array(qfrc), list(impulse), list(row_impulse), list(spin_impulse), np.array(residual))


def _impulses(guess: InverseDynamics, num_envs: int) -> list[np.ndarray]:
    """Of each environment, one after the other."""
    parts = {name: getattr(guess, name) for name in ("impulse", "row_impulse", "spin_impulse")}
    for name, each in parts.items():
        if len(each) != num_envs:
            raise ValueError(f"guess.{name} is of {len(each)} environments, expected {num_envs}")
        for env, values in enumerate(each):
            if not np.isfinite(as_numbers(f"guess.{name}[{env}]", values)).all():
                raise ValueError(f"guess.{name}[{env}] has entries that are not finite")
    return [np.concatenate([np.ravel(each[env]) for each in parts.values()]) for env in range(num_envs)]
