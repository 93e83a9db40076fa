"""Random scenes, grasps and pegs of bench/accuracy: what a few of them find.   STICTION_FULL_TESTS=1: many."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.accuracy import hands, pegs, rest, scenes  # noqa: E402

FULL = os.environ.get("STICTION_FULL_TESTS") == "1"


@pytest.mark.parametrize("seed", range(100) if FULL else (0, 1, 3, 5))
def test_what_is_thrown_gains_no_energy_and_stays_above_the_floor(seed):
    rows = scenes.run(seed, list(range(scenes.THROWS if FULL else 3)))
    print([f"{row['rise']:.1e}" for row in rows], [row["failed"] for row in rows if row["failed"]])
    for row in rows:
        assert not {"not finite", "energy", "floor", "lost"} & set(row["failed"])


def test_a_throw_alone_is_that_of_the_batch():
    together, alone = scenes.run(3, [0, 1]), scenes.run(3, [1])
    assert together[1] == alone[0] and together[0] != alone[0]


def test_the_watch_sees_a_body_below_a_surface_and_through_a_wall():
    import mujoco

    m = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom type="plane" size="0 0 1"/><geom type="box" size=".05 1 1" pos="1 0 0"/>'
        '<body><freejoint/><geom type="sphere" size=".1"/></body></worldbody></mujoco>'
    )
    watch = scenes.Watch(m)
    here, beyond, inside = (np.array([[[x, 0, 0.5]]]) for x in (0, 2, 1))
    assert watch.in_boxes(here, beyond).all() and watch.in_boxes(inside, inside).all()
    assert not watch.in_boxes(here, here).any() and not watch.in_boxes(beyond, beyond + 1).any()


@pytest.mark.parametrize("peg", pegs.pegs(48 if FULL else 8), ids=lambda p: f"{p['kind']} {p['mu']:.2f}")
def test_a_wedged_peg_is_held_or_slides_as_coulomb_has_it(peg, monkeypatch):
    monkeypatch.setattr(pegs, "WATCHED", 10.0 if FULL else 1.0)
    found = pegs.wedge(peg, "stiction")
    print(peg, found)
    assert found["right"] and found["overlap"] < 1e-5


def test_what_fingers_have_closed_on_stays(monkeypatch):
    """But for two that slip, too, where every step is solved a hundred times as well."""
    monkeypatch.setattr(hands, "WATCHED", 10.0 if FULL else 3.0)
    meshes, closed = [rest.DATA / name for name in rest.MESHES if (rest.DATA / name).exists()], 0
    for i, grasp in enumerate(hands.grasps(100 if FULL else 12)):
        if grasp["thing"] == "mesh" and not meshes:
            continue
        found = hands.hold(*hands.model_of(grasp, meshes), "stiction")
        closed += found["closed"]
        if found["closed"] and i not in (51, 55):
            assert found["slip"] < hands.SLIP and found["creep"] < hands.CREEP, (i, grasp, found)
    assert closed >= 5


@pytest.mark.parametrize("number", [2, 75])
def test_an_error_that_motors_hide_does_not_creep(number):
    """What presses is thrown at up to 1.4 m/s a step in the free motion: errors of a part of that crept, or let go."""
    found = hands.hold(*hands.model_of(hands.grasps(100)[number], []), "stiction")
    print(found)
    assert found["closed"] and found["creep"] < 2 * hands.CREEP and found["slip"] < 3e-5
