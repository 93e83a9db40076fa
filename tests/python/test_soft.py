"""Compliant contacts push from touch on, whatever the margin looks ahead by and however much they dissipate."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

from stiction import Model, Simulation, SolverOptions  # noqa: E402

H, G, RADIUS = 2e-3, 9.81, 0.05
STIFFNESS = 1e4  # N/m, of the ball and of the floor: in series half of it


def ball(relaxation) -> Model:
    return Model.from_mjcf(f"""<mujoco><option timestep="{H}" gravity="0 0 {-G}"/><worldbody>
        <geom type="plane" size="5 5 1"/><body pos="0 0 .15"><freejoint/><geom size="{RADIUS}" mass="1"/></body>
        </worldbody></mujoco>""").with_material(STIFFNESS, relaxation)


def fall(gap, velocity, k, tau, steps):
    """(gap, impulse) after each step of 1 kg under equations (3.1) and (3.3) of docs/theory.md."""
    found = []
    for _ in range(steps):
        free, R = velocity - G * H, 1 / (H * k * (H + tau))
        push = max(0.0, -(free + gap / (H if gap > 0 else H + tau)) / (1 + R))
        velocity = free + push
        gap += H * velocity
        found.append((gap, push))
    return np.array(found)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("margin", [2e-3, 2e-2])
@pytest.mark.parametrize(("relaxation", "first", "lowest"), [(0.05, -1.0432, -5.9335), (0.5, -0.2634, -1.7617)])
def test_a_compliant_contact_acts_at_touch(relaxation, first, lowest, margin, dtype):
    """first, lowest: the gap after the first step with a push, and the least, mm."""
    sim = Simulation(ball(relaxation), dtype=dtype, solver=SolverOptions(margin=margin), num_threads=1)
    sim.qvel[0, 2] = -1
    found = []
    for _ in range(500):
        sim.step()
        found.append((sim.qpos[0, 2] - RADIUS, sim.contact.impulse[0, 0, 2]))
    gap, push = np.array(found, float).T
    law_gap, law_push = fall(0.1, -1.0, STIFFNESS / 2, relaxation, 500).T
    print(f"{np.abs(gap - law_gap).max():.1e} m and {np.abs(push - law_push).max():.1e} N s from the law")
    assert (gap[push > 0] <= 1e-6).all()
    assert 1e3 * gap[np.argmax(push > 0)] == pytest.approx(first, abs=1e-3)
    assert 1e3 * gap.min() == pytest.approx(lowest, abs=1e-3)
    assert np.abs(gap - law_gap).max() <= (2e-7 if dtype == "float32" else 2e-8)
    assert np.abs(push - law_push).max() <= (1e-4 if dtype == "float32" else 3e-7)
