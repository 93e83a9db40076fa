"""The options of solvers: one class each, every default and every name the core's."""

import ctypes
import pickle
from dataclasses import FrozenInstanceError, asdict, fields, replace

import numpy as np
import pytest
import stiction
from stiction import Canal, Cond, Pgs, SolverOptions, SubAdmm, _core
from stiction.solver_options import solver_class, solver_names

CORE = _core.option_defaults()
SOLVERS = [name for name in CORE if name]


@pytest.mark.parametrize("solver", SOLVERS)
def test_fields_are_the_cores(solver):
    kind = solver_class(solver)
    names = [f.metadata["core"] for f in fields(kind) if "core" in f.metadata]
    assert sorted(names) == sorted(CORE[solver]), "the fields of its class in stiction/solver_options.py"
    common = {f.name for f in fields(SolverOptions)}
    assert not common & set(kind.own()), "a knob named as an option of every step"
    assert kind().name == solver


@pytest.mark.parametrize("float64", [True, False])
@pytest.mark.parametrize("solver", SOLVERS)
def test_defaults_are_the_cores(solver, float64):
    """What Python leaves out, where the two types differ, and what it sends."""
    step, own = solver_class(solver)().to_core()
    core = _core.option_defaults(float64=float64)
    assert {name: core[""][name] for name in step} == step
    for name, value in own.items():
        assert value == core[solver][name] or ctypes.c_float(value).value == core[solver][name]
    left = set(core[solver]) - set(own)
    assert all(CORE[solver][name] != _core.option_defaults(float64=False)[solver][name] for name in left)


def test_a_step_has_no_option_that_python_lacks():
    of_simulation = {"h", "explicit_damping", "implicit", "theta", "theta_vq", "newton"}
    assert {f.name for f in fields(SolverOptions)} == set(CORE[""]) - of_simulation | {"name"}


def test_a_name_an_object_and_the_general_class_say_the_same():
    assert SolverOptions.of("canal") == Canal() == SolverOptions(name="canal")
    made = SolverOptions(name="canal", penalty=10, iterations=50)
    assert made == Canal(penalty=10, iterations=50) and type(made) is Canal
    assert type(SolverOptions()) is SubAdmm
    assert SolverOptions(penalty="adaptive") == SubAdmm(penalty="adaptive")
    assert SolverOptions.of(made) is made
    assert SolverOptions(**asdict(made)) == made
    assert replace(made, iterations=7) == Canal(penalty=10, iterations=7)
    assert repr(made) == "Canal(iterations=50, penalty=10.0)"
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(FrozenInstanceError):
        made.penalty = 3


def test_knobs_go_by_the_cores_names_and_numbers():
    _, own = SubAdmm(penalty="common", law="convex", anderson=False).to_core()
    assert (own["penalty"], own["convex"], own["anderson"]) == (2, 1, 0)
    assert "penalty" not in Canal().to_core()[1] and Canal(penalty=5).to_core()[1]["penalty"] == 5


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: Canal(penalti=3), TypeError, "solver 'canal' has no option 'penalti'; near: 'penalty'"),
        (lambda: Pgs(tikhonov=3), TypeError, "'tikhonov'.*its own are 'relaxation', 'check'"),
        (lambda: SolverOptions(name="pgs", law="convex"), TypeError, "solver 'pgs' has no option 'law'"),
        (lambda: Canal(name="pgs"), ValueError, "name is 'pgs', but Canal is 'canal'"),
        (lambda: SolverOptions(name=3), TypeError, "solver name is int"),
        (lambda: SolverOptions(name="newton"), ValueError, "'newton', expected one of 'subadmm'"),
        (lambda: SolverOptions.of(3), TypeError, "solver is int, expected a name"),
        (lambda: Canal(penalty="high"), TypeError, "penalty is 'high', expected a number"),
        (lambda: Canal(penalty=0), ValueError, "penalty is 0.0, expected more than 0"),
        (lambda: Canal(inner=2.5), TypeError, "inner is 2.5, expected an integer"),
        (lambda: Canal(accelerate=3), TypeError, "accelerate is 3, expected True or False"),
        (lambda: Canal(decrease=2), ValueError, "decrease is 2.0, expected more than 0 and at most 1"),
        (lambda: Pgs(check=0), ValueError, "check is 0, expected at least 1"),
        (lambda: Pgs(relaxation=float("nan")), ValueError, "relaxation is nan, expected more than 0 and less than 2"),
        (lambda: SubAdmm(law="soft"), ValueError, "law is 'soft', expected 'coulomb' or 'convex'"),
        (lambda: SubAdmm(penalty=[1]), ValueError, r"penalty is \[1\], expected one of 'normal_tangential'"),
        (
            lambda: SubAdmm(fallback="newton"),
            ValueError,
            "fallback is 'newton', expected True, False or one of 'subadmm'",
        ),
        (lambda: SubAdmm(fallback=2), TypeError, "fallback is 2, expected True, False or one of"),
        (lambda: Cond(joints="barzilai"), ValueError, "joints 'barzilai' are for nodes: with multiplier=False"),
        (lambda: SubAdmm(iterations=None), TypeError, "iterations is None, expected an integer"),
    ],
)
def test_what_is_wrong_is_refused_by_name(make, error, says):
    with pytest.raises(error, match=says):
        make()


def test_a_solver_without_a_class_here_has_its_knobs_by_name(monkeypatch):
    """As one that was added to the core's list alone: a class is made of what the core says."""
    from stiction import solver_options

    monkeypatch.setitem(solver_options._DEFAULTS, "fresh", {"depth": 3, "pace": 0.5, "cap": 1e7})
    monkeypatch.setitem(solver_options._FLOAT32, "fresh", {"depth": 3, "pace": 0.5, "cap": 100.0})
    monkeypatch.setattr(solver_options, "_CLASSES", dict(solver_options._CLASSES))
    assert "fresh" in solver_names()
    made = SolverOptions(name="fresh", depth=4, iterations=7)
    assert (made.depth, made.pace, made.cap, made.iterations) == (4, 0.5, None, 7)
    assert made.to_core()[1] == {"depth": 4, "pace": 0.5}
    assert SolverOptions.of("fresh").own() == ("depth", "pace", "cap")
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(TypeError, match="depth is 1.5, expected an integer"):
        SolverOptions(name="fresh", depth=1.5)
    with pytest.raises(TypeError, match="solver 'fresh' has no option 'dept'; near: 'depth'"):
        SolverOptions(name="fresh", dept=1)


@pytest.mark.parametrize("solver", SOLVERS)
def test_knobs_reach_the_solver(solver):
    """Any knob of any solver can be set to what it is; a name that is none is refused by the core too."""
    rows = {name: np.zeros((1, 3)) for name in ("free", "e", "R", "guess")}
    rows |= {"Y": np.eye(3)[None], "mu": np.ones((1, 1)), "least_velocity": np.ones(1)}
    rows |= {"lower": np.zeros((1, 0)), "upper": np.zeros((1, 0))}
    limits = {"iterations": 5, "tolerance": 1e-5, "float64": True, "num_threads": 1}
    for name, value in CORE[solver].items():
        _core.solve_rows(rows, solver=solver, solver_options={name: value}, **limits)
    with pytest.raises(ValueError, match=f"{solver} has no option 'no_knob'"):
        _core.solve_rows(rows, solver=solver, solver_options={"no_knob": 1}, **limits)


def test_a_float_simulation_has_floats_defaults():
    """CANAL's penalty is 300 in double and 10 in float."""
    pytest.importorskip("mujoco")
    from scenes import MIXED

    def moved(**options):
        sim = stiction.Simulation(stiction.Model.from_mjcf(MIXED), 2, solver=Canal(fallback=False, **options))
        sim.ctrl[:] = 0.2
        sim.step(100)
        return np.array(sim.qpos)

    plain = moved()
    assert np.array_equal(plain, moved(penalty=10, penalty_cap=100))
    assert not np.array_equal(plain, moved(penalty=300, penalty_cap=1e7))
