"""How well impulses of any origin solve a `ContactProblem`, in double. docs/theory.md, sections 4, 5 and 8."""

from __future__ import annotations

import numpy as np


def residuals(problem, impulse: np.ndarray, velocity: np.ndarray) -> dict[str, np.ndarray]:
    """The worst of each problem (B,), of impulses and their velocities (B, n).

    r_con, r_ccp, r_mdp, r_split under Coulomb's law and under maximum dissipation, and the velocity scale in m/s, r_row
    over its own scale. Contacts with an ellipse of friction
    are judged where it is round, (4.6): there what slides along its narrow axis is that much slower. Couples are
    tangents three to five, which maximum dissipation does not turn. They scale with impulse and velocity, whatever
    their size: what is squared is near 1, and what overflows all the same gives inf or NaN, which is no small residual.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _residuals(problem, impulse, velocity)


def _residuals(problem, impulse: np.ndarray, velocity: np.ndarray) -> dict[str, np.ndarray]:
    count, nc = problem.num_problems, problem.num_contacts
    of_contacts, of_others, of_spins = problem._parts
    s = velocity + problem._row_bias + problem._row_compliance * impulse
    mu, factor = problem._round

    def grouped(rows):
        """(B, nc, 3), or 6: tangents, the couple's, the normal."""
        own = rows[:, of_contacts].reshape(count, nc, 3)
        if not problem._has_spin:
            return own
        return np.concatenate([own[:, :, :2], rows[:, of_spins].reshape(count, nc, 3), own[:, :, 2:]], 2)

    factor = grouped(factor)
    carries = factor > 0  # no friction at all along the narrow axis of mu (0.5, 0)
    s_c = grouped(s) * factor
    blocks = problem._blocks * factor[:, :, [0, 1, -1], None] * factor[:, :, None, [0, 1, -1]]
    g = np.trace(blocks, axis1=2, axis2=3) / 3
    held = g[:, :, None] * (grouped(impulse) / np.where(carries, factor, 1))
    unit = power_of_two(np.maximum(_most(held), _most(s_c)))
    held, s_c = held / unit[:, None, None], s_c / unit[:, None, None]
    blind = np.abs(held).max(2, initial=0) * np.finfo(float).eps

    def worst(lifted):
        distance = np.linalg.norm(held - _projected(np.where(carries, held - lifted, 0), mu), axis=2)
        return _largest(np.maximum(distance, blind)) * unit

    def split(s):
        normal = held[:, :, -1] - np.maximum(held[:, :, -1] - s[:, :, -1], 0)
        trial = np.where(carries, held - s, 0)[:, :, :-1]
        reach, most = np.linalg.norm(trial, axis=2), mu * np.maximum(held[:, :, -1], 0)
        tangents = held[:, :, :-1] - trial * np.minimum(1, most / np.where(reach > 0, reach, 1))[:, :, None]
        return _largest(np.maximum(abs(normal), np.linalg.norm(tangents, axis=2))) * unit

    slip = np.linalg.norm(s_c[:, :, :-1], axis=2)
    turned = s_c + _dissipative(held, s_c, mu, blocks, grouped(problem._row_compliance))
    return {
        "r_con": worst(_lifted(s_c, mu * slip)),
        "r_ccp": worst(s_c),
        "r_mdp": worst(_lifted(turned, mu * np.linalg.norm(turned[:, :, :-1], axis=2))),
        "r_split": split(s_c),
        "r_split_mdp": split(turned),
        "r_row": _row_residual(problem, impulse[:, of_others], s[:, of_others]),
        "scale": velocity_scale(problem, impulse),
    }


def _largest(values: np.ndarray) -> np.ndarray:
    return values.max(1) if values.shape[1] else np.zeros(len(values))


def _most(values: np.ndarray) -> np.ndarray:
    """(B,) the largest |value| of each problem."""
    return np.abs(values).max((1, 2), initial=0)


def power_of_two(values: np.ndarray) -> np.ndarray:
    """The one at or below each of the values (B,), by which they divide exactly; 1 of 0 and of what is not finite."""
    usual = (values > 0) & np.isfinite(values)
    return np.ldexp(1.0, np.where(usual, np.frexp(np.where(usual, values, 1))[1] - 1, 0))


def _lifted(s: np.ndarray, lift: np.ndarray) -> np.ndarray:
    return np.concatenate([s[:, :, :-1], (s[:, :, -1] + lift)[:, :, None]], 2)


def _projected(trial: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Nearest points of the cones |l_t| <= mu l_n, (5.2)."""
    reach, height = np.linalg.norm(trial[:, :, :-1], axis=2), trial[:, :, -1]
    normal = (height + mu * reach) / (1 + mu**2)
    border = np.empty_like(trial)
    border[:, :, :-1] = trial[:, :, :-1] * (mu * normal / np.where(reach > 0, reach, 1))[:, :, None]
    border[:, :, -1] = normal
    inside, outside = reach <= mu * height, mu * reach <= -height
    return np.where(outside[:, :, None], 0, np.where(inside[:, :, None], trial, border))  # mu = 0: below is in both


def _dissipative(impulse, s, mu, blocks, R) -> np.ndarray:
    """What, added to s, turns friction of maximum dissipation into Coulomb's; of impulses of each contact in any unit.

    One contact with the others frozen takes the impulse of least kinetic energy that keeps s_n = 0: where it slides,
    s_t = -c (l_t + mu^2 l_n W_nt / W_nn) with c >= 0 instead of -c l_t; W_nn is at least a thousandth of the trace.
    """
    normal = np.maximum(blocks[:, :, 2, 2], 1e-3 * np.trace(blocks, axis1=2, axis2=3)) + R[:, :, -1]
    coupling = blocks[:, :, :2, 2] / np.where(normal > 0, normal, 1)[:, :, None]
    bend = (mu**2 * impulse[:, :, -1])[:, :, None] * coupling
    along = np.linalg.norm(impulse[:, :, :2] + bend, axis=2)
    slip = np.linalg.norm(s[:, :, :2], axis=2)
    change = np.zeros_like(s)
    change[:, :, :2] = (slip / np.where(along > 0, along, 1))[:, :, None] * bend
    return change


def _row_residual(problem, impulse: np.ndarray, s: np.ndarray) -> np.ndarray:
    if not problem._num_rows:
        return np.zeros(len(impulse))
    others = problem._parts[1]
    moved, free = problem._motion
    g = np.einsum("bkv,bvk->bk", problem._arrays["J_row"], moved[:, :, others])
    lower, upper = problem._row_bounds
    g = np.where(g > 0, g, 1)
    distance = np.abs(impulse - np.clip(impulse - s / g, lower, upper)) * g
    return _largest(distance / np.maximum(np.abs(free[:, others]), problem._velocity_floor[:, None]))


def velocity_scale(problem, impulse: np.ndarray) -> np.ndarray:
    """V (B,): the largest |J v*| over contacts that push or that e does not hold open, at least the floor; (8.11)."""
    n, count = 3 * problem.num_contacts, problem.num_problems
    free = np.abs(problem._motion[1][:, :n]).reshape(count, -1, 3).max(2, initial=0)
    counts = (impulse[:, 2:n:3] > 0) | (problem._row_bias[:, 2:n:3] <= 0)
    return np.maximum(problem._velocity_floor, _largest(np.where(counts, free, 0)))
