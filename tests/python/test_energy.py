"""No contact solve adds energy, on falls of unactuated models.

With v* the velocity without impulses and v the one with them, the work of the impulses is 1/2 l' J (v + v*). The law
bounds it: contacts and limits by what pushes overlaps apart, equalities and soft rows by their offsets.
STICTION_FULL_TESTS=1 drops 1000 worlds for 10,000 steps.
"""

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")

from scenes import EXACT, MIXED, heap  # noqa: E402
from stiction import Model, Simulation  # noqa: E402
from stiction.status import Status  # noqa: E402

DATA = Path(os.environ.get("STICTION_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
FULL = os.environ.get("STICTION_FULL_TESTS") == "1"
MODELS = {
    "heap": lambda: heap(gravity=(0, 0, -9.81)),
    "mixed": lambda: (
        MIXED.replace('name="loose" pos=".05 .02 .6"', 'name="loose" pos=".05 .02 1"')  # apart, however they are turned
        .replace("<position", "<motor")
        .replace("<velocity", "<motor")
        .replace('kp="8" kv=".3"', "")
        .replace('kv=".4"', "")
    ),
    "ant": lambda: DATA / "gymnasium/assets/ant.xml",
    "humanoid": lambda: DATA / "gymnasium/assets/humanoid.xml",
}


def dropped(name, num_envs, **options):
    source = MODELS[name]()
    if isinstance(source, Path) and not source.exists():
        pytest.skip(f"no {source}")
    sim = Simulation(Model.from_mjcf(source), num_envs, **options)
    rng = np.random.default_rng(3)
    for adr in sim.model.jnt_qposadr[np.asarray(sim.model.jnt_type) == 0]:  # free bodies: turned, thrown
        quat = np.array([1, 0, 0, 0]) + 0.7 * rng.standard_normal((num_envs, 4))
        sim.qpos[:, adr + 3 : adr + 7] = quat / np.linalg.norm(quat, axis=1, keepdims=True)
        sim.qpos[:, adr + 2] += rng.uniform(0, 0.3, num_envs)
    sim.qvel[:] = rng.standard_normal(sim.qvel.shape)
    return sim


def excess(problem, gravity_speed):
    """(work of the impulses - what the law allows) / kinetic scale, of one contact problem."""
    A, b = problem.A, problem.b
    J = np.concatenate([problem.J, problem.J_row])
    impulse = np.concatenate([problem.impulse, problem.row_impulse])
    e = np.concatenate([problem.e, problem.e_row])
    free = np.linalg.solve(A, b)
    after = free + np.linalg.solve(A, J.T @ impulse)
    work = 0.5 * impulse @ (J @ (after + free))
    contacts = 3 * len(problem.mu)
    one_sided = np.concatenate([np.arange(contacts) % 3 == 2, (problem.lower == 0) & (problem.upper > 1e20)])
    two_sided = np.concatenate([np.zeros(contacts, bool), problem.lower < -1e20])
    allowed = np.sum(impulse[one_sided] * np.maximum(0, -e[one_sided])) + np.sum(
        np.maximum(0, -(impulse * e)[two_sided])
    )
    kinetic = 0.5 * free @ A @ free + 0.5 * np.trace(A[:3, :3]) / 3 * gravity_speed**2
    return (work - allowed) / kinetic, bool(impulse.any())


@pytest.mark.parametrize("how", ["converged", "default"])
@pytest.mark.parametrize("name", MODELS)
def test_no_solve_adds_energy(name, how):
    options = {"dtype": "float64", "solver": EXACT} if how == "converged" else {"dtype": "float32"}
    num_envs, steps, every = (1000, 10_000, 97) if FULL else (16, 300, 3)
    sim = dropped(name, num_envs, **options)
    found = []
    for step in range(steps):
        sim.step()
        if step % every == 0:
            for env in range(num_envs):
                value, pushed = excess(sim.contact_problem(env), 9.81 * sim.timestep)
                # What the certificate does not vouch for is flagged, and counted.
                if pushed:
                    found.append((value, bool(sim.certificate.converged[env])))
    assert len(found) > 100 and not np.any(sim.status & 1)
    values = np.array([value for value, _ in found])
    claimed = np.array([converged for _, converged in found])
    others = values[~claimed].max() if not claimed.all() else -np.inf
    print(
        f"{name} {how}: {len(found)} solves, worst {values[claimed].max():.1e}, converged {claimed.mean():.4f}, "
        f"worst of the others {others:.1e}, status {Status.counts(sim.status)}"
    )
    assert values.max() <= 1e-6 if how == "converged" else values[claimed].max() <= 1e-6
