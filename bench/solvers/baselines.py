"""Other ways to a contact problem's impulses, small and plain, in NumPy: what the core's solvers are measured against.

``apgd``     accelerated projected gradient descent on the dual of the convex relaxation, W applied as a matrix;
             Mazhar, Heyn, Negrut, Tasora, "Using Nesterov's Method to Accelerate Multibody Dynamics with Friction and
             Contact", ACM Transactions on Graphics 34(3), 2015, Algorithm 1.
``damped``   semismooth Newton on all of Coulomb's law at once, within the augmented Lagrangian that CANAL splits: the
``dogleg``   strict projection instead of a convex problem with De Saxce's correction frozen. Backtracking on |r|, or
             Powell's dogleg in a trust region. The comparison of [Lee2025], Table II.

An iteration is a product with W, or a Newton step. They stop on stiction's residual of their own law.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import stiction

LOOK = 10  # products between two looks of apgd at the residual, which costs as much as some


def project_cone(impulse: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Nearest points (nc, 3) of the cones |l_t| <= mu l_n."""
    reach, height = np.linalg.norm(impulse[:, :2], axis=1), impulse[:, 2]
    normal = np.maximum((height + mu * reach) / (1 + mu**2), 0)
    border = np.column_stack([impulse[:, :2] * (mu * normal / np.where(reach > 0, reach, 1))[:, None], normal])
    return np.where((reach <= mu * height)[:, None], impulse, border)


def project_strict(impulse: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """(nc, 3): the normal first, then the tangents onto their disk."""
    normal = np.maximum(impulse[:, 2], 0)
    reach = np.linalg.norm(impulse[:, :2], axis=1)
    part = np.minimum(1, mu * normal / np.where(reach > 0, reach, 1))
    return np.column_stack([impulse[:, :2] * part[:, None], normal])


def strict_derivative(impulse: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """(nc, 3, 3) of `project_strict`, not symmetric where a contact slides."""
    reach, height = np.linalg.norm(impulse[:, :2], axis=1), impulse[:, 2]
    closed, slides = height > 0, reach > mu * np.maximum(height, 0)
    d = np.zeros((len(impulse), 3, 3))
    d[closed & ~slides] = np.eye(3)
    on = closed & slides
    t = impulse[on, :2] / reach[on, None]
    turn = np.eye(2) - t[:, :, None] * t[:, None, :]
    d[on, :2, :2] = (mu[on] * height[on] / reach[on])[:, None, None] * turn
    d[on, :2, 2] = mu[on, None] * t
    d[on, 2, 2] = 1
    return d


class Watch:
    """The best impulses of a run by the residual of its law, and whether they are good enough."""

    def __init__(self, problem: stiction.ContactProblem, residual: str, tolerance: float):
        self.problem, self.residual, self.tolerance = problem, residual, tolerance
        self.best, self.impulse = np.inf, np.zeros((problem.num_contacts, 3))

    def done(self, impulse: np.ndarray) -> bool:
        found = self.problem.residuals(impulse)
        score = found[self.residual] / found["scale"]
        if score < self.best:
            self.best, self.impulse = score, impulse.copy()
        return self.best <= self.tolerance


def apgd(problem: stiction.ContactProblem, watch: Watch, most: int) -> int:
    W, q, mu = problem.delassus + np.diag(problem.R.ravel()), problem.q, problem.mu

    def value(impulse):
        return impulse @ (0.5 * (W @ impulse) + q)

    def projected(impulse):
        return project_cone(impulse.reshape(-1, 3), mu).ravel()

    impulse = y = np.zeros(len(q))
    ones = np.ones(len(q))
    lipschitz, theta = np.linalg.norm(W @ ones) / np.linalg.norm(ones), 1.0
    if watch.done(impulse.reshape(-1, 3)) or not lipschitz > 0:
        return 0
    for k in range(1, most + 1):
        slope, start = W @ y + q, value(y)
        while True:
            step = (ahead := projected(y - slope / lipschitz)) - y
            if value(ahead) <= start + slope @ step + 0.5 * lipschitz * (step @ step) + 1e-15 * abs(start):
                break
            lipschitz *= 2
        following = 0.5 * theta * (np.sqrt(theta**2 + 4) - theta)
        beta = theta * (1 - theta) / (theta**2 + following)
        if slope @ (ahead - impulse) > 0:  # uphill: begin anew
            y, following = ahead, 1.0
        else:
            y = ahead + beta * (ahead - impulse)
        impulse, theta, lipschitz = ahead, following, 0.9 * lipschitz
        if k % LOOK == 0 and watch.done(impulse.reshape(-1, 3)):
            return k
    watch.done(impulse.reshape(-1, 3))
    return most


class Surrogate:
    """r(x) = x - Y'l(x), l = Proj_strict(held - beta (Y x + q)), x = D^1/2 L (v - v*): one step of the augmented
    Lagrangian with multiplier ``held``, rigid contacts. beta = c / w of each contact, w = tr(W_ii) / 3."""

    def __init__(self, problem: stiction.ContactProblem):
        if problem.R.any():
            raise ValueError("R is not 0, expected rigid contacts")
        self.Y, self.q, self.mu = np.atleast_3d(problem._factor)[0], problem.q, problem.mu
        square = (self.Y**2).sum(1).reshape(-1, 3).sum(1) / 3
        self.mobility = np.repeat(np.where(square > 0, square, np.inf), 3)
        self.held, self.penalty = np.zeros(len(self.q)), 300.0

    def trial(self, x: np.ndarray) -> np.ndarray:
        return (self.held - self.penalty / self.mobility * (self.Y @ x + self.q)).reshape(-1, 3)

    def impulse(self, x: np.ndarray) -> np.ndarray:
        return project_strict(self.trial(x), self.mu).ravel()

    def rest(self, x: np.ndarray) -> np.ndarray:
        return x - self.Y.T @ self.impulse(x)

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        d = strict_derivative(self.trial(x), self.mu)
        pushed = (d @ (self.penalty / self.mobility[:, None] * self.Y).reshape(-1, 3, len(x))).reshape(self.Y.shape)
        return np.eye(len(x)) + self.Y.T @ pushed


def newton_step(J: np.ndarray, r: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(J, -r)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(J, -r, rcond=None)[0]


def damped(problem: Surrogate, x: np.ndarray, accuracy: float, most: int) -> tuple[np.ndarray, int]:
    r = problem.rest(x)
    for k in range(most):
        if np.linalg.norm(r) <= accuracy:
            return x, k
        step, part, norm = newton_step(problem.jacobian(x), r), 1.0, np.linalg.norm(r)
        while part > 1e-6 and not np.linalg.norm(problem.rest(x + part * step)) <= (1 - 1e-4 * part) * norm:
            part *= 0.5
        x = x + part * step
        r = problem.rest(x)
    return x, most


def dogleg(problem: Surrogate, x: np.ndarray, accuracy: float, most: int) -> tuple[np.ndarray, int]:
    r, radius = problem.rest(x), np.inf
    for k in range(most):
        norm = np.linalg.norm(r)
        if norm <= accuracy:
            return x, k
        J = problem.jacobian(x)
        newton, gradient = newton_step(J, r), J.T @ r
        steepest = -(gradient @ gradient) / max(np.sum((J @ gradient) ** 2), 1e-300) * gradient
        radius = min(radius, np.linalg.norm(newton))
        while True:
            step = within(newton, steepest, radius)
            reached = np.linalg.norm(problem.rest(x + step))
            promised = norm**2 - np.sum((r + J @ step) ** 2)
            gain = (norm**2 - reached**2) / max(promised, 1e-300)
            if gain > 1e-4 or radius <= 1e-12 * max(np.linalg.norm(x), 1e-12):
                break
            radius = 0.25 * np.linalg.norm(step)
        x = x + step
        r = problem.rest(x)
        radius = 2 * radius if gain > 0.75 else 0.5 * radius if gain < 0.25 else radius
    return x, most


def within(newton: np.ndarray, steepest: np.ndarray, radius: float) -> np.ndarray:
    """Powell's step of at most that length."""
    if np.linalg.norm(newton) <= radius:
        return newton
    far = np.linalg.norm(steepest)
    if far >= radius:
        return steepest * (radius / far)
    leg = newton - steepest
    a, b, c = leg @ leg, steepest @ leg, far**2 - radius**2
    return steepest + (np.sqrt(max(b * b - a * c, 0)) - b) / a * leg


def lagrangian(inner, problem: stiction.ContactProblem, watch: Watch, most: int) -> int:
    """Newton steps of the augmented Lagrangian with that inner solver, 50 a pass at most; c as CANAL's without the
    cascade's exception: ten times where |Y x - z| fell by less than 4."""
    surrogate = Surrogate(problem)
    x, steps, last = np.zeros(surrogate.Y.shape[1]), 0, np.inf
    if watch.done(surrogate.held.reshape(-1, 3)):
        return 0
    while steps < most:
        size = max(np.linalg.norm(surrogate.Y.T @ surrogate.held), np.linalg.norm(surrogate.Y.T @ surrogate.q) * 1e-3)
        accuracy = max(1e-12, min(1e-3, 1e-2 * watch.best)) * size
        x, taken = inner(surrogate, x, accuracy, min(50, most - steps))
        steps += max(taken, 1)
        impulse = surrogate.impulse(x)
        used = surrogate.mobility < np.inf
        gap = np.max((surrogate.mobility * np.abs(impulse - surrogate.held))[used]) / surrogate.penalty
        surrogate.held = impulse
        if watch.done(impulse.reshape(-1, 3)):
            return steps
        if gap > 0.25 * last:
            surrogate.penalty = min(10 * surrogate.penalty, 1e7)
        last = gap
    return steps


#: The law, the residual it is judged by, and what counts iterations.
BASELINES = {
    "apgd": ("convex", "r_ccp", apgd),
    "damped": ("coulomb", "r_con", lambda *a: lagrangian(damped, *a)),
    "dogleg": ("coulomb", "r_con", lambda *a: lagrangian(dogleg, *a)),
}


def solve(name: str, problem: stiction.ContactProblem, tolerance: float, iterations: int) -> SimpleNamespace:
    """By a baseline, with those fields of `stiction.Solution` that the bench reads."""
    law, residual, run = BASELINES[name]
    problem.delassus, problem._factor  # noqa: B018  not part of what is timed, for any solver
    begun, watch = time.process_time(), Watch(problem, residual, tolerance)
    taken = run(problem, watch, iterations)
    seconds = time.process_time() - begun
    found = SimpleNamespace(**problem.residuals(watch.impulse))
    found.law, found.iterations, found.cpu_seconds = law, taken, seconds
    found.factorizations = None if name == "apgd" else taken
    return found
