"""Inverse dynamics with contact: what `Simulation.inverse_dynamics` returns, and its arguments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .simulation_arrays import as_numbers


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


def inverse_dynamics(world, num_envs: int, nv: int, qacc, guess: str | None) -> InverseDynamics:
    if not (guess is None or (isinstance(guess, str) and guess == "last")):
        raise ValueError(f"guess is {guess!r}, expected None or 'last'")
    values = as_numbers("qacc", qacc)
    if values.shape != (expected := (num_envs, nv)):
        raise ValueError(f"qacc has shape {values.shape}, expected {expected}")
    if not np.isfinite(values).all():
        raise ValueError("qacc has entries that are not finite")
    values = np.ascontiguousarray(values, float)
    found = [world.inverse_dynamics(env, values[env], guess == "last") for env in range(num_envs)]
    qfrc, impulse, row_impulse, spin_impulse, residual = zip(*found, strict=True)
    return InverseDynamics(np.array(qfrc), list(impulse), list(row_impulse), list(spin_impulse), np.array(residual))
