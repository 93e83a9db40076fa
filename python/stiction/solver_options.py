"""stiction.SolverOptions: the contact solver and what can be set of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from . import _core

_PENALTIES = ("normal_tangential", "per_contact", "common", "adaptive")  # in the order of the core's PenaltyRule
_LAWS = ("coulomb", "convex")
_DEFAULTS = _core.option_defaults()  # "": of a step, then of every solver by its name
_STEP, _SUBADMM = _DEFAULTS.pop(""), _DEFAULTS["subadmm"]


@dataclass(frozen=True, kw_only=True)
class SolverOptions:
    """Which solver, how long it may take, how accurate it must be, and how gaps are closed.

    The defaults suit robots in reinforcement learning: as many iterations as an environment needs, at most 100, started
    from the impulses of the last step.
    """

    #: "subadmm", "pgs", "canal" or "admm".
    name: str = "subadmm"
    #: Iterations per step: at most so many, exactly so many while ``tolerance`` is 0.
    iterations: int = _STEP["iterations"]
    #: Stop an environment when its residual is below this part of its velocity scale V (1).
    tolerance: float = _STEP["tolerance"]
    #: r_con / V beyond which a step sets `Status.NOT_CONVERGED` (1).
    certify: float = _STEP["certify"]
    #: SubADMM's penalty: "normal_tangential" or "per_contact" (of each contact), "common" (one per environment), or
    #: "adaptive" (the first, scaled as primal and dual residual ask).
    penalty: str = _PENALTIES[_SUBADMM["penalty"]]
    #: SubADMM: Anderson acceleration of depth 3.
    anderson: bool = bool(_SUBADMM["anderson"])
    #: SubADMM's over-relaxation, in (0, 2); 1 is none.
    relaxation: float = _SUBADMM["relaxation"]
    #: Regularisation of Anderson's normal equations (1).
    tikhonov: float = _SUBADMM["tikhonov"]
    #: SubADMM: "coulomb", or "convex", the relaxation that convex solvers are built on, to compare with: a contact that
    #: slides with v_t leaves with mu v_t. `certify` then asks r_ccp, and Newton is not called.
    law: str = _LAWS[_SUBADMM["convex"]]
    #: Start from the impulses of the last step.
    warm_start: bool = bool(_STEP["warm_start"])
    #: Newton's method for environments above ``certify``.
    fallback: bool = bool(_STEP["fallback"])
    #: Part of an overlap that one step is to remove, in [0, 1].
    erp: float = _STEP["erp"]
    #: Bound on the velocity that removes it (m/s, rad/s).
    max_recovery: float = _STEP["max_recovery"]
    #: How deep a contact without a material sinks under the weight of the mass it sees, 1 / W_nn (m), from steps of
    #: 2 ms on: the regularisation that shares the forces of a line or a face out, see docs/concepts.md. A load a
    #: thousand times as heavy sinks it ten times as deep. 0: the bare rigid law, where rounding shares them out.
    penetration_allowance: float = _STEP["penetration_allowance"]
    #: Tangential compliance R_t of every contact as a part of W, the inverse of the mass it sees (1). SAP has 1e-3;
    #: what a contact holds by friction then creeps.
    tangential_compliance: float = _STEP["tangential_compliance"]
    #: Contacts with gaps beyond it, and beyond what the free motion covers within the step, are not looked at (m).
    margin: float = _STEP["margin"]
    #: Contacts of two bodies this near to each other, with the same normal and surface, count as one: the deeper (m).
    merge: float = _STEP["merge"]

    def __post_init__(self):
        if not isinstance(self.name, str):
            raise TypeError(f"solver name is {type(self.name).__name__}, expected a string such as 'subadmm'")
        if self.name not in _DEFAULTS:
            raise ValueError(f"solver is {self.name!r}, expected one of {', '.join(map(repr, _DEFAULTS))}")
        for field in fields(self):
            value, kind = getattr(self, field.name), type(field.default)
            if kind is str:
                continue
            if kind is int and (isinstance(value, bool) or not hasattr(value, "__index__")):
                raise TypeError(f"{field.name} is {value!r}, expected an integer")
            if kind is bool and value not in (0, 1):
                raise TypeError(f"{field.name} is {value!r}, expected True or False")
            try:
                object.__setattr__(self, field.name, kind(value))
            except (TypeError, ValueError):
                raise TypeError(f"{field.name} is {value!r}, expected a number") from None
        self._within("iterations", 0, 100_000)
        self._within("tolerance", 0, 1)
        self._within("erp", 0, 1)
        for name in (
            "certify",
            "tikhonov",
            "max_recovery",
            "margin",
            "merge",
            "penetration_allowance",
            "tangential_compliance",
        ):
            self._within(name, 0, math.inf)
        if not 0 < self.relaxation < 2:
            raise ValueError(f"relaxation is {self.relaxation}, expected more than 0 and less than 2")
        if self.law not in _LAWS:
            raise ValueError(f"law is {self.law!r}, expected 'coulomb' or 'convex'")
        if self.law == "convex" and self.name != "subadmm":
            raise ValueError(f"law is 'convex', which solver {self.name!r} does not have: use 'subadmm'")
        if self.penalty not in _PENALTIES:
            raise ValueError(f"penalty is {self.penalty!r}, expected one of {', '.join(map(repr, _PENALTIES))}")

    def _within(self, name: str, low: float, high: float) -> None:
        value = getattr(self, name)
        if not low <= value <= high:
            upper = "" if high == math.inf else f" and at most {high:g}"
            raise ValueError(f"{name} is {value}, expected at least {low:g}{upper}")

    def to_core(self) -> tuple[dict[str, float | int], dict[str, float | int]]:
        """The options of the step and those of the solver, by the core's names, as numbers."""
        step = {name: getattr(self, name) for name in _STEP if hasattr(self, name)}
        own = {}
        if self.name == "subadmm":
            own = {name: getattr(self, name) for name in ("anderson", "relaxation", "tikhonov")}
            own |= {"penalty": _PENALTIES.index(self.penalty), "convex": _LAWS.index(self.law)}
        return tuple({k: int(v) if isinstance(v, bool) else v for k, v in d.items()} for d in (step, own))

    @classmethod
    def of(cls, solver) -> SolverOptions:
        """A `SolverOptions` as it is; a name with every default."""
        if isinstance(solver, cls):
            return solver
        if isinstance(solver, str):
            return cls(name=solver)
        raise TypeError(f"solver is {type(solver).__name__}, expected a name such as 'subadmm' or a SolverOptions")
