"""Domain randomisation: what differs from environment to environment, and from episode to episode, by declaration.

    from stiction.randomisation import Bias, Force, Latency, Noise, Parameter, Push

    envs = stiction.make_vec("stiction/Ant-v0", 1024, randomize=[
        Parameter("body_mass", 0.8, 1.2),                                # times the model's, one number per environment
        Parameter("geom_friction", 0.5, 1.25, operation="set", columns=0),
        Parameter("dof_damping", 0.5, 2.0, distribution="log_uniform", each=True),
        Parameter("gravity", -0.2, 0.2, operation="add", names=("x", "y"), each=True, every=(1.0, 3.0)),
        Push(0.5, every=(5.0, 15.0)),
        Force(20.0, every=(1.0, 5.0)),
        Latency(0, 2),
        Bias({"joint_position": 0.02}),
        Noise({"joint_position": 0.01, "joint_velocity": 0.5}),
    ])

Numbers come from the environment's seed, its episode and the step alone (see random_numbers.py): the same whatever the
batch, and whatever else is randomised. Parameters are drawn when an episode begins, or again and again with ``every``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from .mujoco_numbers import FREE
from .parameter_checks import require_sound_draws
from .random_numbers import NOISE, Draws, named_stream
from .signals import Signal, term_columns
from .simulation import Simulation
from .simulation_arrays import near

#: Parameters that may differ between environments -> what numbers each of their entries.
PARAMETERS = {
    "body_mass": "body", "body_inertia": "body", "geom_friction": "geom", "geom_size": "geom", "dof_damping": "joint",
    "dof_armature": "joint", "dof_frictionloss": "joint", "jnt_stiffness": "joint", "jnt_range": "joint",
    "actuator_gainprm": "actuator", "actuator_biasprm": "actuator", "body_pos": "body", "body_ipos": "body",
    "site_pos": "site", "gravity": "axis",
}  # fmt: skip
#: Of these, what moves what observations may have told before an episode's numbers were drawn.
_PLACES = ("body_pos", "body_ipos", "site_pos")
_AXES, _DOFS = ("x", "y", "z"), "dof_"  # _DOFS: parameters that have a number for each dof of a joint
_NOISE_STREAM, _BIAS_STREAM = named_stream("noise", NOISE), named_stream("bias")
_OPERATIONS = {
    "scale": lambda nominal, drawn: nominal * drawn,
    "add": lambda nominal, drawn: nominal + drawn,
    "set": lambda nominal, drawn: drawn + 0 * nominal,
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of the model, drawn from [low, high].

    ``operation``: "scale" the model's value, "add" to it, or "set" it. ``names``: of the bodies, geoms, joints,
    actuators or sites it is for, "x", "y", "z" of gravity; all by default. ``columns``: of the parameter's last axis
    (0 of ``geom_friction`` slides); all by default. ``each``: a number for each of them instead of one for all.
    ``distribution``: "uniform", "log_uniform", or "normal" about the middle, with low and high two deviations away and
    as bounds. ``every``: seconds between two draws, (low, high); by default when an episode begins. ``label``:
    parameters of the same label get the same numbers; by default the name, the names and the columns.

    ``body_mass`` scales the inertia with it. ``body_pos`` is a body's place on its parent, not of free and mocap
    bodies, ``body_ipos`` its centre of mass in its own frame, ``site_pos`` a site's place. What is added to these, or
    set, has a number for each axis.
    """

    name: str
    low: float
    high: float
    operation: str = "scale"
    names: tuple[str, ...] | str | None = None
    columns: int | tuple[int, ...] | None = None
    each: bool = False
    distribution: str = "uniform"
    every: tuple[float, float] | None = None
    label: str | None = None

    def __post_init__(self):
        if self.name not in PARAMETERS:
            raise ValueError(f"no parameter {self.name!r} to randomise{near(self.name, PARAMETERS)}")
        axes = [self.names] if isinstance(self.names, str) else list(self.names or ())
        if self.name == "gravity" and not set(axes) <= set(_AXES):
            raise ValueError(f"gravity has the axes x, y, z, not {axes}")
        if self.operation not in _OPERATIONS:
            raise ValueError(f"operation is {self.operation!r}, expected 'scale', 'add' or 'set'")
        if self.distribution not in ("uniform", "log_uniform", "normal"):
            raise ValueError(f"distribution is {self.distribution!r}, expected 'uniform', 'log_uniform' or 'normal'")
        _check_range(self.name, self.low, self.high)
        if self.distribution == "log_uniform" and self.low <= 0:
            raise ValueError(f"{self.name}: log_uniform from {self.low}, expected more than 0")
        _check_every(self.name, self.every)


def Gains(low: float, high: float, **options) -> list[Parameter]:  # noqa: N802  (reads like its neighbours)
    """Strength of servos and motors: gain and bias of an actuator times the same number. Options are `Parameter`'s."""
    options = {"label": f"gains {options.get('names')}"} | options
    if options.get("operation", "scale") == "scale" and low < 0:
        raise ValueError(f"Gains: low is {low}, expected at least 0: with less a servo drives away from its target")
    return [Parameter(name, low, high, **options) for name in ("actuator_gainprm", "actuator_biasprm")]


@dataclass(frozen=True)
class Push:
    """Adds to a free base a horizontal velocity of up to ``speed`` m/s and a spin of up to ``spin`` rad/s per axis.

    ``joint``: its name; the model's first free joint by default. ``every``: seconds between pushes, (low, high).
    """

    speed: float
    every: tuple[float, float] = (5.0, 15.0)
    spin: float = 0.0
    joint: str | None = None

    def __post_init__(self):
        _check_size("Push: speed", self.speed, "m/s")
        _check_size("Push: spin", self.spin, "rad/s")
        if self.every is None:
            raise ValueError("Push: every is None, expected (low, high) seconds")
        _check_every("Push", self.every)


@dataclass(frozen=True)
class Force:
    """A sustained horizontal force of up to ``newtons`` on a body, in the world's axes, as wind or a rope.

    It is drawn when an episode begins and again ``every`` (low, high) seconds, and acts until then. ``body``: its name;
    the one with the model's first free joint by default. It sets the first two numbers of the body's `xfrc_applied`.
    """

    newtons: float
    every: tuple[float, float] = (1.0, 5.0)
    body: str | None = None

    def __post_init__(self):
        _check_size("Force: newtons", self.newtons, "N")
        if self.every is None:
            raise ValueError("Force: every is None, expected (low, high) seconds")
        _check_every("Force", self.every)


@dataclass(frozen=True)
class Latency:
    """Actions arrive ``low`` to ``high`` control steps late; drawn per episode, zeros until the first arrives.

    The task, and so its costs, knows the action that arrives.
    """

    low: int
    high: int

    def __post_init__(self):
        if not (isinstance(self.low, int) and isinstance(self.high, int) and 0 <= self.low <= self.high):
            raise ValueError(f"Latency({self.low!r}, {self.high!r}), expected control steps, 0 <= low <= high")


@dataclass(frozen=True)
class Noise:
    """Adds normal noise of a standard deviation to observations: one number, one for each, or by the terms' names,
    ``{"joint_position": 0.01, "angular_velocity": 0.2}``.
    """

    deviation: float | tuple[float, ...] | Mapping[str, float]

    def __post_init__(self):
        _check_amounts("Noise", self.deviation, "a standard deviation")


@dataclass(frozen=True)
class Bias:
    """Adds to observations what stays the same for an episode, such as encoders that are off: uniform in ± ``amount``.

    One number, one for each, or by the terms' names, ``{"joint_position": 0.02}``.
    """

    amount: float | tuple[float, ...] | Mapping[str, float]

    def __post_init__(self):
        _check_amounts("Bias", self.amount, "an amount")


_KINDS = (Parameter, Push, Force, Latency, Noise, Bias)


def flattened(terms) -> list:
    """A list of terms, `Gains` taken apart; TypeError for what is none."""
    if isinstance(terms, _KINDS):
        terms = [terms]
    flat = []
    for term in terms:
        flat += term if isinstance(term, list) else [term]
    for term in flat:
        if not isinstance(term, _KINDS):
            raise TypeError(f"randomize has {term!r}, expected Parameter, Gains, Push, Force, Latency, Noise or Bias")
    for kind in (Latency, Noise, Bias):
        if sum(isinstance(term, kind) for term in flat) > 1:
            raise ValueError(f"randomize has more than one {kind.__name__}")
    return flat


def moves_places(terms) -> bool:
    """Whether beginnings have to be observed again once their numbers are drawn."""
    return any(isinstance(term, Parameter) and term.name in _PLACES for term in terms)


def require_shared_sites(terms, sites) -> None:
    """ValueError where a term moves one of ``sites``, whose places a compiled task takes from the model."""
    for term in terms:
        if isinstance(term, Parameter) and term.name == "site_pos":
            named = {term.names} if isinstance(term.names, str) else set(sites if term.names is None else term.names)
            if moved := sorted(named & sites):
                raise ValueError(
                    f"site_pos of {moved[0]!r}: the task has its place from the model, the same for all environments; "
                    "names=(...) says which sites a Parameter is for"
                )


class Randomiser:
    """Keeps a batch random: its owner calls `begin`, `act`, `advance`, `observe`. ``observations``: the D signals."""

    def __init__(self, terms, sim: Simulation, step_dt: float, observations: Sequence[Signal], actions: int):
        n = sim.num_envs
        self._sim, self._dt, self._moves_places = sim, step_dt, moves_places(terms)
        self._seeds = np.random.SeedSequence().generate_state(1, np.uint64) + np.arange(n, dtype=np.uint64)
        self._episodes = np.zeros(n, np.uint64)
        self._steps = np.zeros(n, np.int64)
        events = [(t, ParameterEvent(t, sim)) for t in terms if isinstance(t, Parameter)]
        require_sound_draws([event for _, event in events], sim.model)
        events += [(t, PushEvent(t, sim)) for t in terms if isinstance(t, Push)]
        events += [(t, ForceEvent(t, sim)) for t in terms if isinstance(t, Force)]
        # What is done, by whom, from which stream, and the step at which it is due.
        self._events = [(term, event, named_stream(event.label), np.zeros(n, np.int64)) for term, event in events]
        latency = next((t for t in terms if isinstance(t, Latency)), None)
        self._latency = latency
        self._late = np.zeros(n, np.int64)
        self._past = np.zeros((n, latency.high + 1 if latency else 0, actions), sim.dtype)  # rings, the last at _now
        self._now, self._rows = np.zeros(n, np.int64), np.arange(n)
        self._deviation, self._bias = observed_amounts(terms, observations)

    def seed(self, seeds: np.ndarray, which: np.ndarray) -> None:
        """Gives environments of a mask their seeds, and counts their episodes anew."""
        self._seeds[which], self._episodes[which] = seeds[which], 0

    def begin(self, mask: np.ndarray) -> bool:
        """Episodes of a mask's environments have begun; whether their observations are to be made anew."""
        envs = np.flatnonzero(mask)
        if len(envs) == 0:
            return False
        self._episodes[envs] += np.uint64(1)
        self._steps[envs] = 0
        for term, event, stream, due in self._events:
            draws = Draws(self._seeds[envs], self._episodes[envs], 0, stream)
            wait = self._wait(term, draws)
            if isinstance(term, (Parameter, Force)):
                event.apply(envs, draws)
            due[envs] = wait
        if self._latency is not None:
            draws = Draws(self._seeds[envs], self._episodes[envs], 0, named_stream("latency"))
            self._late[envs] = draws.integers(self._latency.low, self._latency.high + 1)
            self._past[envs] = 0
        return self._moves_places

    def _wait(self, term, draws: Draws) -> np.ndarray:
        """Control steps until a term is due again."""
        if term.every is None:
            return np.full(draws.count, np.iinfo(np.int64).max)
        return np.maximum(1, np.rint(draws.uniform(*term.every) / self._dt).astype(np.int64))

    def act(self, actions: np.ndarray) -> np.ndarray:
        """Before a control step: what is due happens; returns the actions that arrive now."""
        self._let_happen()
        if self._latency is None:
            return actions
        self._now = (self._now + 1) % self._past.shape[1]
        self._past[self._rows, self._now] = actions
        return self._past[self._rows, self._now - self._late]

    def _let_happen(self) -> None:
        for term, event, stream, due in self._events:
            envs = np.flatnonzero(self._steps >= due)
            if len(envs):
                draws = Draws(self._seeds[envs], self._episodes[envs], self._steps[envs], stream)
                due[envs] = self._steps[envs] + self._wait(term, draws)
                event.apply(envs, draws)

    def advance(self) -> None:
        """A control step has been made."""
        self._steps += 1

    def observe(self, observations: np.ndarray) -> np.ndarray:
        """Observations (N, D) with bias and noise, of the present episode and step."""
        if self._bias is not None:
            draws = Draws(self._seeds, self._episodes, 0, _BIAS_STREAM)
            drawn = draws.uniform(-1, 1, observations.shape[1]) * self._bias
            observations = observations + (drawn.to(observations) if hasattr(drawn, "to") else drawn)
            observations = observations if hasattr(drawn, "to") else observations.astype(self._sim.dtype)
        if self._deviation is None:
            return observations
        draws = Draws(self._seeds, self._episodes, self._steps, _NOISE_STREAM)
        noise = draws.coarse_normal(observations.shape[1]) * self._deviation
        return observations + noise


class ParameterEvent:
    """Writes a parameter's entries: ``index`` is behind the environment's, ``nominal`` what the model has there."""

    def __init__(self, term: Parameter, sim: Simulation):
        model, self.term = sim.model, term
        self.moves = term.name in _PLACES and term.operation != "scale"
        nominal = np.asarray(getattr(model, term.name), np.float64)
        self._arrays = sim._arrays
        rows = _rows(term, model, len(nominal))
        if not len(rows):
            raise ValueError(f"{term.name}: the model has no {PARAMETERS[term.name]} that it could be of")
        index: tuple = (rows,)
        if term.columns is not None and nominal.ndim < 2:
            raise ValueError(f"{term.name} has one axis: no columns")
        if term.columns is not None:
            columns = np.atleast_1d(term.columns)
            if (columns < 0).any() or (columns >= nominal.shape[-1]).any():
                raise ValueError(f"{term.name} has columns 0 to {nominal.shape[-1] - 1}, not {term.columns}")
            index = np.ix_(rows, columns)
        self.index, self.nominal = index, nominal[index]
        axes = self.nominal.shape[1:]  # places move in any direction, other numbers of an entry together
        self._drawn = (len(rows) if term.each else 1, *(axes if self.moves else (1,) * len(axes)))
        self.label = f"{term.name} {term.names} {term.columns}" if term.label is None else term.label

    def at(self, end: int) -> np.ndarray:
        """What is written where the lowest number is drawn (0), or the highest (1)."""
        return _OPERATIONS[self.term.operation](self.nominal, (self.term.low, self.term.high)[end])

    def drawn_values(self, draws: Draws, nominal):
        """(k, *nominal's shape), arrays or tensors as the draws are."""
        term = self.term
        if term.distribution == "uniform":
            drawn = draws.uniform(term.low, term.high, self._drawn)
        elif term.distribution == "normal":
            middle, deviation = (term.low + term.high) / 2, (term.high - term.low) / 4
            drawn = (middle + draws.normal(deviation, self._drawn)).clip(term.low, term.high)
        else:
            drawn = draws.exponential(draws.uniform(math.log(term.low), math.log(term.high), self._drawn))
        return _OPERATIONS[term.operation](nominal, drawn)

    def apply(self, envs: np.ndarray, draws: Draws) -> None:
        where = np.ix_(envs, *self.index) if len(self.index) == 1 else (envs[:, None, None], *self.index)
        with self._arrays.changed(f"params.{self.term.name}") as values:  # (N, ...)
            values[where] = self.drawn_values(draws, self.nominal)


class PushEvent:
    """Adds to a free base's velocity, the six dofs from ``dof`` on."""

    def __init__(self, term: Push, sim: Simulation):
        model, self.term, self._arrays = sim.model, term, sim._arrays
        free = np.flatnonzero(np.asarray(model.jnt_type) == 0)
        joint = (
            _number_of("Push", model, "joint", term.joint)
            if term.joint is not None
            else (free[0] if len(free) else None)
        )
        if joint is None or joint not in free:
            which = "the model has none" if joint is None else f"{term.joint!r} is none"
            raise ValueError(f"Push needs a free joint, and {which}")
        self.dof = int(model.jnt_dofadr[joint])
        self.label = f"push {joint}"

    def velocities(self, draws: Draws):
        """What is added: x and y (k,) m/s, spin (k, 3) rad/s."""
        speed, angle = self.term.speed * draws.uniform(), draws.uniform(0, 2 * np.pi)
        spin = draws.uniform(-self.term.spin, self.term.spin, 3)
        cos, sin = draws.cos_sin(angle)
        return speed * cos, speed * sin, spin

    def apply(self, envs: np.ndarray, draws: Draws) -> None:
        x, y, spin = self.velocities(draws)
        with self._arrays.changed("qvel") as qvel:
            qvel[envs, self.dof] += x
            qvel[envs, self.dof + 1] += y
            qvel[envs, self.dof + 3 : self.dof + 6] += spin


class ForceEvent:
    """Sets the horizontal force on a body."""

    def __init__(self, term: Force, sim: Simulation):
        model, self.term, self._arrays = sim.model, term, sim._arrays
        free = np.flatnonzero(np.asarray(model.jnt_type) == 0)
        if term.body is None and len(free) == 0:
            raise ValueError("Force needs a body: the model has no free joint")
        own = term.body is None
        self.body = int(model.jnt_bodyid[free[0]]) if own else _number_of("Force", model, "body", term.body)
        self.label = f"force {self.body}"

    def forces(self, draws: Draws):
        """x and y (k,), N."""
        size, angle = self.term.newtons * draws.uniform(), draws.uniform(0, 2 * np.pi)
        cos, sin = draws.cos_sin(angle)
        return size * cos, size * sin

    def apply(self, envs: np.ndarray, draws: Draws) -> None:
        with self._arrays.changed("xfrc_applied") as wrench:
            wrench[envs, self.body, 0], wrench[envs, self.body, 1] = self.forces(draws)


def observed_amounts(terms, signals: Sequence[Signal]):
    """(deviations of `Noise`, amounts of `Bias`), each () or (D,) float32, or None without."""
    noise = next((t.deviation for t in terms if isinstance(t, Noise)), None)
    bias = next((t.amount for t in terms if isinstance(t, Bias)), None)
    return _amounts("Noise", noise, signals), _amounts("Bias", bias, signals)


def _amounts(what: str, given, signals: Sequence[Signal]):
    if given is None:
        return None
    if isinstance(given, Mapping):
        columns, amounts = term_columns(signals), np.zeros(len(signals), np.float32)
        for name, amount in given.items():
            if name not in columns:
                raise ValueError(f"{what} has {name!r}, which is no term of the observation{near(name, columns)}")
            amounts[columns[name]] = amount
        return amounts
    amounts = np.asarray(given, np.float32)
    if amounts.shape not in ((), (len(signals),)):
        raise ValueError(f"{what} has {amounts.size} deviations for {len(signals)} observations")
    return amounts


def _check_amounts(what: str, given, meant: str) -> None:
    try:
        values = np.asarray(list(given.values()) if isinstance(given, Mapping) else given, np.float64)
    except (TypeError, ValueError):
        values = np.array(math.nan)
    if values.ndim > 1 or not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"{what}({given!r}), expected {meant}, or one for each observation, none below 0")


def _rows(term: Parameter, model, count: int) -> np.ndarray:
    """The entries that a term is for."""
    kind = PARAMETERS[term.name]
    placed = {} if term.name != "body_pos" else _placed_by_state(model)
    if term.names is None:
        rows = np.arange(1 if kind == "body" else 0, count)  # the world is no body that moves
        return np.setdiff1d(rows, list(placed))
    if kind == "axis":
        return np.array([_AXES.index(axis) for axis in ([term.names] if isinstance(term.names, str) else term.names)])
    names = [term.names] if isinstance(term.names, str) else term.names
    ids = [_number_of(term.name, model, kind, name) for name in names]
    if wrong := [body for body in ids if body in placed]:
        raise ValueError(f"{term.name}: body {model.body_names[wrong[0]]!r} {placed[wrong[0]]}")
    if not term.name.startswith(_DOFS):
        return np.array(ids)
    return np.flatnonzero(np.isin(model.dof_jntid, ids))


def _number_of(what: str, model, kind: str, name) -> int:
    try:
        return getattr(model, f"{kind}_id")(name)
    except KeyError as error:
        raise ValueError(f"{what}: {error.args[0]}") from None


def parameter_elements(model, name: str, shape: tuple[int, ...]) -> list[str]:
    """What each number, ``shape`` of them, of a parameter is of: "trunk", "floor.0", "hand.x"; without a name "3"."""
    kind = PARAMETERS[name]
    owners = list(_AXES) if kind == "axis" else [n or str(i) for i, n in enumerate(getattr(model, f"{kind}_names"))]
    if name.startswith(_DOFS):
        joints = np.asarray(model.dof_jntid).tolist()
        places = [f".{dof - joints.index(joint)}" * (joints.count(joint) > 1) for dof, joint in enumerate(joints)]
        owners = [owners[joint] + place for joint, place in zip(joints, places, strict=True)]
    columns = _AXES if name in _PLACES else range(max(shape[1:], default=0))
    return [".".join([owners[place[0]], *(str(columns[c]) for c in place[1:])]) for place in np.ndindex(*shape)]


def _placed_by_state(model) -> dict[int, str]:
    """Bodies whose ``body_pos`` does nothing -> why."""
    free = np.asarray(model.jnt_bodyid)[np.asarray(model.jnt_type) == FREE].tolist()
    mocap = np.flatnonzero(np.asarray(model.body_mocapid) >= 0).tolist()
    why = dict.fromkeys(free, "has a free joint: qpos says where it is")
    return why | dict.fromkeys(mocap, "is a mocap body: mocap_pos says where it is")


def _check_range(name: str, low: float, high: float) -> None:
    numbers = isinstance(low, Real) and isinstance(high, Real) and math.isfinite(low) and math.isfinite(high)
    if not (numbers and low <= high):
        raise ValueError(f"{name}: from {low!r} to {high!r}, expected finite numbers, the first not above the second")


def _check_size(what: str, value: float, unit: str) -> None:
    if not (isinstance(value, Real) and 0 <= value < math.inf):
        raise ValueError(f"{what} is {value!r}, expected at least 0 {unit}")


def _check_every(name: str, every) -> None:
    if isinstance(every, (int, float)):
        raise TypeError(f"{name}: every is {every}, expected (low, high) seconds")
    if every is not None and not (len(every) == 2 and 0 < every[0] <= every[1] and math.isfinite(every[1])):
        raise ValueError(f"{name}: every is {every}, expected (low, high) seconds, 0 < low <= high")
