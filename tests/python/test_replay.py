"""A dumped step, solved again."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

from scenes import MIXED  # noqa: E402
from stiction import Model, Simulation  # noqa: E402
from stiction.cli import main  # noqa: E402
from stiction.replay import replay  # noqa: E402


@pytest.fixture(scope="module")
def dumped(tmp_path_factory):
    sim = Simulation(Model.from_mjcf(MIXED), 3, per_env=("body_mass",))
    sim.params.body_mass[:] *= np.array([[1], [1.5], [0.7]])
    sim.ctrl[:] = 0.2
    sim.step(150)
    path = tmp_path_factory.mktemp("dump") / "step.npz"
    sim.dump(1, path)
    return sim, path


def test_replay_in_double_finds_the_same_velocity_as_the_step(dumped):
    sim, path = dumped
    again, arrays, meta = replay(path, dtype="float64", iterations=500, tolerance=1e-10)
    assert meta["dtype"] == "float32" and again.dtype == "float64"
    assert again.params.body_mass[0] == pytest.approx(sim.params.body_mass[1])
    assert again.certificate.r_con[0] <= sim.certificate.r_con[1]
    # Both solve one problem, each to its own certificate; float32's start differs by rounding.
    np.testing.assert_allclose(again.qvel[0], sim.qvel[1], atol=2e-3)
    problem = again.contact_problem(0)
    assert problem.A == pytest.approx(arrays["problem.A"], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("solver", ["pgs", "canal"])
def test_replay_by_another_solver_than_the_dumps(dumped, solver):
    again, _, meta = replay(dumped[1], solver=solver, iterations=500)
    assert meta["solver"]["name"] == "subadmm"
    assert (again.solver.name, again.solver.iterations) == (solver, 500)
    assert again.certificate.converged.all()


def test_command_prints_both_certificates(dumped, capsys):
    assert main(["replay", str(dumped[1]), "--dtype", "float64", "--solver", "pgs", "--solver-option", "check=2"]) == 0
    assert main(["replay", str(dumped[1]), "--dtype", "float64"]) == 0
    out = capsys.readouterr().out
    assert "dump, float32" in out and "replay, float64" in out and "r_con" in out
    assert "dump: worst of its call's steps" in out


def test_what_is_no_dump_is_refused(tmp_path, capsys):
    np.savez(tmp_path / "other.npz", a=1)
    np.save(tmp_path / "array.npy", np.ones(3))
    (tmp_path / "robot.xml").write_text("<mujoco/>")
    (tmp_path / "empty.npz").write_bytes(b"")
    for name in ("other.npz", "array.npy", "robot.xml", "empty.npz"):
        assert main(["replay", str(tmp_path / name)]) == 1
        assert f"{name} is no dump of a simulation" in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "nofile.npz")]) == 1
    assert "nofile.npz: expected a file of Simulation.dump" in capsys.readouterr().err
