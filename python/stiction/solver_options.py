"""stiction.SolverOptions, and a class of it for each contact solver: what can be set of a step and of its solver.

Every default is the core's. A solver of the core that has no class here gets one when it is asked for by name, with its
knobs as fields.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import Field, asdict, dataclass, field, fields, make_dataclass
from functools import partial
from typing import Any

from . import _core
from .simulation_arrays import near

_DEFAULTS = _core.option_defaults()  # "": of a step, then of every solver by its name
_FLOAT32 = _core.option_defaults(float64=False)
_STEP = _DEFAULTS.pop("")
UNBOUNDED = 1e30  # for math.inf: with that itself, what is bounded is no number
_CLASSES: dict[str, type[SolverOptions]] = {}  # by solver


def _step(name: str, kind: type = float, **bounds) -> Any:
    return field(default=kind(_STEP[name]), metadata={"kind": kind, **bounds})


def _knob(solver: str, name: str, kind: type | None = None, *, choices: tuple[str, ...] = (), **bounds) -> Any:
    """A solver's own: its name in the core, the names of its values where they are numbered, bounds.

    Bounds: least, most, above, below. The default is None where float32 has another than float64.
    """
    default = _DEFAULTS[solver][name]
    kind = str if choices else kind or type(default)
    if kind is float and ctypes.c_float(default).value != _FLOAT32[solver][name]:
        default = None
    elif choices:
        default = choices[default]
    else:
        default = kind(default)
    return field(default=default, metadata={"core": name, "kind": kind, "choices": choices, **bounds})


@dataclass(frozen=True, kw_only=True, repr=False)
class SolverOptions:
    """Which solver, how long it may take, how accurate it must be, and how gaps are closed.

    The defaults suit robots in reinforcement learning: as many iterations as an environment needs, at most 100, started
    from the impulses of the last step.

    Each solver is a class with these fields and its own: ``stiction.Canal(penalty=10, iterations=50)``.
    ``SolverOptions(name="canal", penalty=10, iterations=50)`` is the same; without a name it is `SubAdmm`.
    """

    #: The solver, one of `stiction.solver_names`.
    name: str = "subadmm"
    #: What it aims at and is judged by: "coulomb", "convex" (its relaxation, in which what slides with v_t takes off
    #: with mu v_t) or "dissipation" (of most energy, by each contact). A setting of solvers that know several.
    law = "coulomb"
    #: Whether it is about bodies: `stiction.solve` refuses a Delassus operator alone. A setting of no instance.
    needs_bodies = False
    #: Iterations per step: at most so many, exactly so many while ``tolerance`` is 0.
    iterations: int = _step("iterations", int, least=0, most=100_000)
    #: Stop an environment when its residual is below this part of its velocity scale V (1).
    tolerance: float = _step("tolerance", least=0, most=1)
    #: r_con / V beyond which a step sets `Status.NOT_CONVERGED` (1).
    certify: float = _step("certify", least=0)
    #: Start from the impulses of the last step.
    warm_start: bool = _step("warm_start", bool)
    #: What solves environments above ``certify`` again, in double: True (under Coulomb's law SubADMM of few contacts,
    #: exact contacts in turn, then Newton's method; SAP under the convex law, not on CUDA; nothing under maximum
    #: dissipation), False (nothing), or the name of a solver, with its defaults.
    fallback: bool | str = _step("fallback", bool, names=True)
    #: Part of an overlap that one step is to remove, in [0, 1].
    erp: float = _step("erp", least=0, most=1)
    #: Bound on the velocity that removes it (m/s, rad/s); math.inf for none.
    max_recovery: float = _step("max_recovery", least=0)
    #: How deep a contact without a material sinks under the weight of the mass it sees, 1 / W_nn in the mean of those
    #: of the same two bodies that touch (m), from steps of 2 ms on: the regularisation that shares the forces of a line
    #: or a face out, see docs/concepts.md. A load a thousand times as heavy sinks it ten times as deep. In float at
    #: least 10 um a metre from the root of its tree. 0: the bare rigid law, where rounding shares them out.
    penetration_allowance: float = _step("penetration_allowance", least=0)
    #: Tangential compliance R_t of every contact as a part of W, the inverse of the mass it sees (1). SAP has 1e-3;
    #: what a contact holds by friction then creeps.
    tangential_compliance: float = _step("tangential_compliance", least=0)
    #: Contacts with gaps beyond it, and beyond what the free motion covers within the step, are not looked at (m).
    margin: float = _step("margin", least=0)
    #: Contacts of two bodies this near to each other, with the same normal and surface, count as one: the deeper (m).
    #: Of thin bodies those nearer than an eighth of the thickness of their thickest geom.
    merge: float = _step("merge", least=0)

    def __init_subclass__(cls):
        _CLASSES[cls.name] = cls

    def __new__(cls, **options):
        if cls is SolverOptions:
            cls = solver_class(options.get("name", cls.name))
        known = [f.name for f in fields(cls)]
        for name in options:
            if name not in known:
                raise TypeError(
                    f"solver {cls.name!r} has no option {name!r}{near(name, known)}; its own are "
                    f"{', '.join(map(repr, cls.own())) or 'none'}"
                )
        return object.__new__(cls)

    def __post_init__(self):
        if self.name != type(self).name:
            raise ValueError(f"name is {self.name!r}, but {type(self).__name__} is {type(self).name!r}")
        for f in fields(self):
            if f.name != "name":
                object.__setattr__(self, f.name, _checked(f, getattr(self, f.name)))

    def __reduce__(self):
        return partial(SolverOptions, **asdict(self)), ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.changed().items())})"

    @classmethod
    def own(cls) -> tuple[str, ...]:
        """The names of the solver's own fields."""
        return tuple(f.name for f in fields(cls) if "core" in f.metadata)

    def changed(self) -> dict[str, object]:
        """What is not as by default, by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}

    def to_core(self) -> tuple[dict[str, float | int], dict[str, float | int]]:
        """The options of the step and those of the solver, by the core's names, as numbers."""
        step, own = {}, {}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "name" or value is None:
                continue
            if f.metadata.get("choices"):
                value = f.metadata["choices"].index(value)
            elif f.metadata.get("names") and isinstance(value, str):
                value = _core.FIRST_CHOSEN_FALLBACK + solver_names().index(value)
            elif value == math.inf:
                value = UNBOUNDED
            group = own if "core" in f.metadata else step
            group[f.metadata.get("core", f.name)] = int(value) if isinstance(value, bool) else value
        return step, own

    @classmethod
    def of(cls, solver) -> SolverOptions:
        """A `SolverOptions` as it is; a name with every default."""
        if isinstance(solver, cls):
            return solver
        if isinstance(solver, str):
            return cls(name=solver)
        if isinstance(solver, type) and issubclass(solver, cls):
            raise TypeError(f"solver is the class {solver.__name__}, expected an object of it: {solver.__name__}()")
        raise TypeError(
            f"solver is {type(solver).__name__}, expected a name such as 'subadmm' or an object as stiction.Canal()"
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class SubAdmm(SolverOptions):
    """Augmented Lagrangian with the penalties of single contacts, over-relaxed and accelerated: the default."""

    name: str = "subadmm"
    #: Its penalty: "normal_tangential" or "per_contact" (of each contact), "common" (one per environment), or
    #: "adaptive" (the first, scaled as primal and dual residual ask).
    penalty: str = _knob("subadmm", "penalty", choices=("normal_tangential", "per_contact", "common", "adaptive"))
    #: Contacts solved in turn before the first pass, at most so often, besides `iterations`: where at most four close,
    #: each alone on its link, without dry friction or loops; 0 is never. 16 makes quadrupeds on point feet up to 1.4
    #: times as fast; where Coulomb's law has several answers it may find another. Not on a GPU, nor with tolerance 0.
    sweeps: int = _knob("subadmm", "sweeps", least=0, most=100_000)
    #: Anderson acceleration of depth 3.
    anderson: bool = _knob("subadmm", "anderson", bool)
    #: Over-relaxation, in (0, 2); 1 is none.
    relaxation: float = _knob("subadmm", "relaxation", above=0, below=2)
    #: Regularisation of Anderson's normal equations (1).
    tikhonov: float = _knob("subadmm", "tikhonov", least=0)
    #: "coulomb", or "convex", the relaxation that convex solvers are built on, to compare with: a contact that slides
    #: with v_t leaves with mu v_t. `certify` then asks r_ccp.
    law: str = _knob("subadmm", "convex", choices=("coulomb", "convex"))


@dataclass(frozen=True, kw_only=True, repr=False)
class Pgs(SolverOptions):
    """Projected Gauss-Seidel: the plain baseline."""

    name: str = "pgs"
    #: Part of a row's own step that a sweep takes, in (0, 2).
    relaxation: float = _knob("pgs", "relaxation", above=0, below=2)
    #: Sweeps between two tests of the residual.
    check: int = _knob("pgs", "check", least=1)


@dataclass(frozen=True, kw_only=True, repr=False)
class Canal(SolverOptions):
    """Cascaded Newton augmented Lagrangian: robust where a first-order method stalls. An iteration is an outer pass."""

    name: str = "canal"
    #: c at first, of beta = c / w, w the mean of a contact's W_ii (1). None: 300 in float64, 10 in float32.
    penalty: float | None = _knob("canal", "penalty", above=0)
    #: What c grows to at most. None: 1e7 in float64, 100 in float32, where rounding costs c times 6e-8 V.
    penalty_cap: float | None = _knob("canal", "penalty_cap", above=0)
    #: What c is multiplied by.
    growth: float = _knob("canal", "growth", least=1)
    #: c grows where a pass leaves more than this part of |J v - z|.
    decrease: float = _knob("canal", "decrease", above=0, most=1)
    #: Newton steps of a pass, at most.
    inner: int = _knob("canal", "inner", least=1)
    #: Evaluations of a line search, at most.
    search: int = _knob("canal", "search", least=1)
    #: Anderson acceleration of De Saxcé's correction, depth 5.
    accelerate: bool = _knob("canal", "accelerate", bool)
    #: Passes without 0.7 of the best residual before the acceleration begins anew.
    patience: int = _knob("canal", "patience", least=1)
    #: The paper's penalty: beta = c kg for all contacts, grown whatever the cascade does.
    uniform: bool = _knob("canal", "uniform", bool)


@dataclass(frozen=True, kw_only=True, repr=False)
class Sap(SolverOptions):
    """The convex relaxation by Newton (SAP)."""

    name: str = "sap"
    law = "convex"
    #: c at first.
    penalty: float = _knob("sap", "penalty", above=0)
    #: c at most. None: 1e7 in float64, 100 in float32.
    penalty_cap: float | None = _knob("sap", "penalty_cap", above=0)
    #: What c is multiplied by; c grows where |D (l - l0)| fell by less than ``decrease``.
    growth: float = _knob("sap", "growth", least=1)
    decrease: float = _knob("sap", "decrease", above=0, most=1)
    #: The proximal centre moves when what Newton has left is below this part of what the term leaves (1).
    recentre: float = _knob("sap", "recentre", least=0)
    #: Sweeps of Gauss-Seidel that it begins with.
    sweeps: int = _knob("sap", "sweeps", least=0)
    #: Evaluations of a line search, at most.
    search: int = _knob("sap", "search", least=1)
    #: Backtracking by 0.8 to Armijo's rule instead of the exact line search.
    armijo: bool = _knob("sap", "armijo", bool)
    #: In float32: velocities in double.
    wide: bool = _knob("sap", "wide", bool)
    #: Above 0 the paper's regularisation (its value 1e-3), and the period of a near-rigid contact over h. The
    #: certificate judges the rigid problem all the same, and a fallback solves it: with ``fallback=False``.
    sigma: float = _knob("sap", "sigma", least=0)
    beta: float = _knob("sap", "beta", above=0)


@dataclass(frozen=True, kw_only=True, repr=False)
class Admm(SolverOptions):
    """Proximal ADMM on the Delassus operator with De Saxcé's correction."""

    name: str = "admm"
    #: rho at first, of rows scaled to a mean W_ii of 1.
    penalty: float = _knob("admm", "penalty", above=0)
    #: eta of the proximal term.
    proximal: float = _knob("admm", "proximal", least=0)
    #: How rho follows the residuals: "ratio", "linear" or "spectral", the paper's two.
    rule: str = _knob("admm", "rule", choices=("ratio", "linear", "spectral"))
    #: Passes between two looks at rho.
    interval: int = _knob("admm", "interval", least=1)
    #: Anderson acceleration.
    accelerate: bool = _knob("admm", "accelerate", bool)
    #: Passes without 0.7 of the best residual that make a stall; 0: there are none.
    patience: int = _knob("admm", "patience", least=0)
    #: Passes between two tests of the residual.
    check: int = _knob("admm", "check", least=1)
    #: In float64: steps of iterative refinement after a factor in float32; 0: the factor is in float64.
    refinements: int = _knob("admm", "refinements", least=0)
    #: Of the linear and spectral rules: what rho changes by, and from which ratio of residuals on.
    factor: float = _knob("admm", "factor", above=1)
    tube: float = _knob("admm", "tube", above=1)


@dataclass(frozen=True, kw_only=True, repr=False)
class Bisection(SolverOptions):
    """Per-contact bisection: the impulse of each contact in turn, exactly, by maximum dissipation or Coulomb's law."""

    name: str = "bisection"
    #: "dissipation", or "coulomb", exactly. `certify` then asks r_mdp or r_con. A model with connect or weld equalities
    #: wants "coulomb".
    law: str = _knob("bisection", "coulomb", choices=("dissipation", "coulomb"))
    #: The paper's search for the angle, instead of a closed bracket and Illinois' false position.
    stepping: bool = _knob("bisection", "stepping", bool)
    #: Anderson acceleration of the sweeps, depth 5.
    accelerate: bool = _knob("bisection", "accelerate", bool)
    #: Evaluations of one search, at most.
    evaluations: int = _knob("bisection", "evaluations", least=1)
    #: Relaxation of the first sweep, of the last, and by how much it nears that in a sweep.
    relaxation: float = _knob("bisection", "relaxation", above=0, below=2)
    least_relaxation: float = _knob("bisection", "least_relaxation", above=0, below=2)
    decay: float = _knob("bisection", "decay", above=0, most=1)


@dataclass(frozen=True, kw_only=True, repr=False)
class Cond(SolverOptions):
    """Contact nodalization and diagonalization (COND): every contact on a node of its own."""

    name: str = "cond"
    needs_bodies = True
    #: "coulomb", or "convex", its relaxation.
    law: str = _knob("cond", "convex", choices=("coulomb", "convex"))
    #: With multipliers, which leave no error; False: the paper's nodes, with an error of V / node_gain.
    multiplier: bool = _knob("cond", "multiplier", bool)
    #: k w of multipliers, and of nodes (1).
    gain: float = _knob("cond", "gain", above=0)
    node_gain: float = _knob("cond", "node_gain", above=0)
    #: The joints by their "inverse", or without a factor: by the diagonal nearest to it ("frobenius"), or, of nodes, by
    #: one number of the last two passes instead of Chebyshev's acceleration ("barzilai").
    joints: str = _knob("cond", "joints", choices=("inverse", "frobenius", "barzilai"))
    #: Chebyshev's acceleration of nodes, its under-relaxation, and the plain passes before it.
    chebyshev: bool = _knob("cond", "chebyshev", bool)
    under_relaxation: float = _knob("cond", "under_relaxation", above=0, most=1)
    start: int = _knob("cond", "start", least=0)
    #: Passes between two tests of the residual.
    check: int = _knob("cond", "check", least=1)

    def __post_init__(self):
        super().__post_init__()
        if self.joints == "barzilai" and self.multiplier:
            raise ValueError("joints 'barzilai' are for nodes: with multiplier=False")


def solver_names() -> tuple[str, ...]:
    """Of every solver there is."""
    return tuple(_DEFAULTS)


def solver_class(name: str) -> type[SolverOptions]:
    """The options of a solver; of one without a class here, a class made of what the core says of it."""
    if not isinstance(name, str):
        raise TypeError(f"solver name is {type(name).__name__}, expected a string such as 'subadmm'")
    if name not in _DEFAULTS:
        raise ValueError(f"solver is {name!r}, expected one of {', '.join(map(repr, _DEFAULTS))}")
    if name not in _CLASSES:
        own = [(knob, object, _knob(name, knob)) for knob in _DEFAULTS[name]]
        make_dataclass(
            name.title(), [("name", str, name), *own], bases=(SolverOptions,), frozen=True, kw_only=True, repr=False
        )
    return _CLASSES[name]


def _checked(f: Field, value):
    """A value of a field in its type. Errors: TypeError, ValueError naming the field."""
    kind, choices = f.metadata["kind"], f.metadata.get("choices")
    if value is None and f.default is None:
        return None
    if choices:
        if value not in choices:
            raise ValueError(f"{f.name} is {value!r}, expected {_alternatives(choices)}")
        return value
    if f.metadata.get("names") and (isinstance(value, str) or value not in (0, 1)):
        if value not in _DEFAULTS:
            error = ValueError if isinstance(value, str) else TypeError
            raise error(f"{f.name} is {value!r}, expected True, False or one of {', '.join(map(repr, _DEFAULTS))}")
        return value
    if kind is int and (isinstance(value, bool) or not hasattr(value, "__index__")):
        raise TypeError(f"{f.name} is {value!r}, expected an integer")
    if kind is bool and value not in (0, 1):
        raise TypeError(f"{f.name} is {value!r}, expected True or False")
    try:
        value = kind(value)
    except (TypeError, ValueError):
        raise TypeError(f"{f.name} is {value!r}, expected a number") from None
    least, most, above, below = (f.metadata.get(bound) for bound in ("least", "most", "above", "below"))
    if (
        math.isnan(value)
        or (least is not None and value < least)
        or (above is not None and value <= above)
        or (most is not None and value > most)
        or (below is not None and value >= below)
    ):
        words = {"at least": least, "more than": above, "at most": most, "less than": below}
        asked = " and ".join(f"{word} {bound:g}" for word, bound in words.items() if bound is not None)
        raise ValueError(f"{f.name} is {value}, expected {asked or 'a number'}")
    return value


def _alternatives(choices) -> str:
    if len(choices) == 2:
        return " or ".join(map(repr, choices))
    return f"one of {', '.join(map(repr, choices))}"
