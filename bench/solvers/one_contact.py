"""``python -m bench.solvers.one_contact``: one sliding contact alone, three ways to the impulse of most dissipation.

Golden section over the arc that the sticking impulse sees [Preclik 2014], the zeros of a quartic [Preclik, Eibl, Rude
2017; Bonnefon, Daviet 2011], both in NumPy on all contacts at once, and stiction's bisection. The comparison of
[Hwangbo2018], Table I, by what does not depend on a language: evaluations, and how far the energy is above the least.

An impulse on the border of the cone with no normal velocity is l_n = f / q, l_t = mu l_n d, d = (cos a, sin a),
f = -c_n / W_nn, q = 1 + mu k.d, k = W_nt / W_nn. Its energy is |l_t - p_t|^2 / 2 in the metric S = W_tt - W_tn k'.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
import stiction

GOLDEN = (np.sqrt(5) - 1) / 2
FINE = 4096  # angles of the search that tells the least energy


@dataclass
class Slides:
    """Sliding contacts: S (n, 2, 2), mu k (n, 2), mu f (n,), p_t (n, 2), mu p_n (n,)."""

    W: np.ndarray
    c: np.ndarray
    mu: np.ndarray
    S: np.ndarray
    tilt: np.ndarray
    reach: np.ndarray
    held: np.ndarray
    seen: np.ndarray

    def tangent(self, angle: np.ndarray) -> np.ndarray:
        """l_t (n, ..., 2) at angles (n, ...); infinite where the cone's border never stops the normal velocity."""
        more = (slice(None),) + (None,) * (angle.ndim - 1)
        d = np.stack([np.cos(angle), np.sin(angle)], -1)
        q = 1 + (self.tilt[more] * d).sum(-1)
        return np.where(q > 0, self.reach[more] / np.where(q > 0, q, 1), np.inf)[..., None] * d

    def energy(self, angle: np.ndarray) -> np.ndarray:
        more = (slice(None),) + (None,) * (angle.ndim - 1)
        with np.errstate(invalid="ignore", over="ignore"):
            off = self.tangent(angle) - self.held[more]
            value = 0.5 * np.einsum("n...i,nij,n...j->n...", off, self.S, off)
        return np.where(np.isfinite(value), value, np.inf)

    def arc(self) -> tuple[np.ndarray, np.ndarray]:
        """Angles between which the sticking impulse sees the border."""
        centre = np.arctan2(self.held[:, 1], self.held[:, 0])
        half = np.arccos(np.clip(self.seen / np.linalg.norm(self.held, axis=1), -1, 1))
        return centre - half, centre + half


def random_slides(number: int, seed: int = 0, condition: float = 1e3) -> Slides:
    """Those of ``number`` random contacts that slide: W of such a condition at most, mu up to 1.5.

    W_nn is at least 1e-3 of the trace, below which stiction takes it to be that.
    """
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.standard_normal((number, 3, 3)))
    values = condition ** -rng.random((number, 3))
    W = np.einsum("nij,nj,nkj->nik", turn, values, turn)
    c, mu = rng.standard_normal((number, 3)), rng.uniform(0.05, 1.5, number)
    c[:, 2] = -np.abs(c[:, 2])
    p = -np.linalg.solve(W, c[:, :, None])[:, :, 0]
    slides = np.linalg.norm(p[:, :2], axis=1) > mu * p[:, 2]
    slides &= W[:, 2, 2] > 1e-3 * np.trace(W, axis1=1, axis2=2)
    W, c, mu, p = W[slides], c[slides], mu[slides], p[slides]
    k = W[:, :2, 2] / W[:, 2:, 2]
    S = W[:, :2, :2] - W[:, :2, 2:] * k[:, None, :]
    return Slides(W, c, mu, S, mu[:, None] * k, -mu * c[:, 2] / W[:, 2, 2], p[:, :2], mu * p[:, 2])


def golden_section(slides: Slides, steps: int = 60) -> tuple[np.ndarray, int]:
    """Angles of least energy in the arc, if it has one hollow there, and evaluations."""
    a, b = slides.arc()
    left, right = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
    at_left, at_right = slides.energy(left), slides.energy(right)
    for _ in range(steps):
        lower = at_left < at_right
        a, b = np.where(lower, a, left), np.where(lower, right, b)
        left, right = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
        at_left, at_right = slides.energy(left), slides.energy(right)  # one of them is known
    return 0.5 * (a + b), steps + 2


def quartic(slides: Slides) -> tuple[np.ndarray, int]:
    """Angles of least energy among the zeros of its derivative, a quartic in t = tan(a / 2)."""
    # x (1, c, s) with c = cos a, s = sin a: S (mu f d - q p_t), then its product with perp(d + mu k).
    zero, one = np.zeros(len(slides.mu)), np.ones(len(slides.mu))
    tx, ty = slides.tilt.T
    q = np.stack([one, tx, ty], -1)
    d = np.stack([np.stack([zero, one, zero], -1), np.stack([zero, zero, one], -1)], 1)
    slip = slides.S @ (slides.reach[:, None, None] * d - slides.held[:, :, None] * q[:, None, :])
    turned = np.stack([-(d[:, 1] + ty[:, None] * [1, 0, 0]), d[:, 0] + tx[:, None] * [1, 0, 0]], 1)
    # (1, c, s) (1 + t^2) as polynomials of t, lowest first.
    basis = np.array([[1, 0, 1], [1, 0, -1], [0, 2, 0]], float)
    polynomial = np.zeros((len(one), 5))
    for axis in range(2):
        left, right = slip[:, axis] @ basis, turned[:, axis] @ basis
        for i in range(3):
            for j in range(3):
                polynomial[:, i + j] += left[:, i] * right[:, j]
    top = np.where(polynomial[:, 4] != 0, polynomial[:, 4], np.finfo(float).tiny)
    companion = np.zeros((len(one), 4, 4))
    companion[:, 1:, :3] = np.eye(3)
    companion[:, :, 3] = -polynomial[:, :4] / top[:, None]
    roots = np.linalg.eigvals(companion)
    real = np.abs(roots.imag) <= 1e-6 * (1 + np.abs(roots))
    angle = 2 * np.arctan(roots.real)
    energy = np.where(real, slides.energy(angle), np.inf)
    return np.take_along_axis(angle, energy.argmin(1)[:, None], 1)[:, 0], 4


def bisection(slides: Slides) -> np.ndarray:
    """Angles of stiction's impulses."""
    problem = stiction.ContactProblem.from_delassus(slides.W, slides.c, slides.mu[:, None])
    impulse = stiction.solve(problem, "bisection", max_iterations=1, tolerance=1e-12).impulse[:, 0]
    return np.arctan2(impulse[:, 1], impulse[:, 0])


def least_energy(slides: Slides) -> np.ndarray:
    """By a fine search, made finer about its best angle."""
    angle = np.tile(np.linspace(-np.pi, np.pi, FINE), (len(slides.mu), 1))
    width = 2 * np.pi / FINE
    for _ in range(4):
        best = np.take_along_axis(angle, slides.energy(angle).argmin(1)[:, None], 1)
        angle, width = best + np.linspace(-width, width, 201), width / 50
    return slides.energy(angle).min(1)


def main(argv=None) -> dict:
    parser = argparse.ArgumentParser(prog="python -m bench.solvers.one_contact", description=__doc__)
    parser.add_argument("--contacts", type=int, default=20_000)
    parser.add_argument("--condition", type=float, default=1e3, help="of W, at most")
    arguments = parser.parse_args(argv)
    slides = random_slides(arguments.contacts, condition=arguments.condition)
    least = np.concatenate(
        [
            least_energy(Slides(*(value[i : i + 500] for value in vars(slides).values())))
            for i in range(0, len(slides.mu), 500)
        ]
    )
    scale = slides.energy(np.arctan2(slides.held[:, 1], slides.held[:, 0]))
    scale = np.maximum(np.where(np.isfinite(scale), scale, least), least)
    result = {"contacts": arguments.contacts, "slide": len(slides.mu), "ways": {}}
    print(f"{len(slides.mu):,} of {arguments.contacts:,} contacts slide; energy above the least, over that along p_t")
    print("| | evaluations | median | p99 | worst | above 1e-6 |\n|---|---|---|---|---|---|")
    for name, (angle, evaluations) in {
        "golden section": golden_section(slides),
        "quartic": quartic(slides),
        "bisection": (bisection(slides), None),
    }.items():
        above = np.maximum(slides.energy(angle) - least, 0) / scale
        figures = {f"p{p}": float(np.percentile(above, p)) for p in (50, 99, 100)}
        figures |= {"evaluations": evaluations, "failures": int((above > 1e-6).sum())}
        result["ways"][name] = figures
        cells = " | ".join(f"{figures[p]:.0e}" for p in ("p50", "p99", "p100"))
        print(f"| {name} | {evaluations or ''} | {cells} | {figures['failures']} |")
    return result


if __name__ == "__main__":
    main()
