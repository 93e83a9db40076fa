"""stiction.Model: an immutable multibody model, imported through `mujoco` or loaded from a file of its own."""

from __future__ import annotations

import difflib
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from .mjcf_import import compile_source, require_mujoco
from .mjmodel_arrays import model_arrays
from .mjmodel_features import examine
from .urdf_import import UrdfRobot

_FORMAT = 4  # of the files written by save
_MJMODEL = "mujoco_binary"


class UnsupportedModelError(ValueError):
    """A model with features that stiction does not simulate; ``features`` names each of them."""

    def __init__(self, label: str, features: list[str]):
        self.label, self.features = label, features
        lines = "".join(f"\n  - {feature}" for feature in features)
        super().__init__(
            f"cannot import {label}: {len(features)} unsupported feature{'s' * (len(features) != 1)}:{lines}\n"
            'unsupported="warn" drops them and says so in model.import_report'
        )

    def __reduce__(self):
        return type(self), (self.label, self.features)


class Model:
    """What is simulated: read-only NumPy arrays with MuJoCo's field names (``body_mass``, ``jnt_range``, ...).

    Made by `from_mjcf`, `from_urdf`, `from_file`, `from_mjmodel`, `from_arrays` or `load`. Sizes: ``nq, nv, nu, nbody,
    njnt, ngeom, nsite, ntendon, neq, nkey``. Names: ``body_names, joint_names, ...`` (empty where there is none) and
    ``body_id(name)`` and its like. ``import_report`` lists what was approximated, ignored, folded or dropped.
    """

    def __init__(self, core: _core.Model, *, import_report=(), mjmodel=None):
        if not isinstance(core, _core.Model):
            raise TypeError(f"core is {type(core).__name__}, expected stiction._core.Model; see Model.from_mjcf")
        self._core = core
        self._import_report = tuple(import_report)
        self._mjmodel = mjmodel

    # ---- making one

    @classmethod
    def from_mjcf(cls, source, *, assets=None, unsupported: str = "error") -> Model:
        """A model from an MJCF file or XML string.

        ``assets`` maps file names to their contents, for files that are not on disk. ``unsupported="error"`` raises one
        `UnsupportedModelError` (a ValueError) naming every feature we cannot simulate; ``"warn"`` drops them, warns and
        lists them in ``import_report``. MuJoCo's own errors become ValueError with the file and the message.
        """
        _check_choice(unsupported)
        compiled, label, messages, notes = compile_source(source, assets)
        return cls._converted(compiled, label, unsupported, messages, notes)

    @classmethod
    def from_urdf(
        cls, source, *, assets=None, unsupported: str = "error",
        floating: bool = False, kp=None, kd=0.0, pose=None, self_collision: bool = False,
    ) -> Model:  # fmt: skip
        """A model from a URDF file or XML string, with one actuator per hinge or slide joint, named like the joint.

        MuJoCo compiles the file: its root link is fixed to the world, links of fixed joints stay bodies. ``package://``
        is looked for in the folders above the file, below the package's name wherever there is such a folder. Links
        whose shapes overlap by more than 1 mm at ``pose`` do not touch each other. What a URDF has no words for:

        ``floating``: the root link gets a free joint, above a floor; links touch the floor alone, as collision shapes
        of URDFs overlap often, or with ``self_collision`` each other, too.
        ``kp`` (N m/rad or N/m) and ``kd`` (N m s/rad or N s/m): position servos in place of motors; a number, or
        numbers by joints' names or patterns, ``{"*_knee": 60, "*": 40}``, of which the first that fits counts.
        ``pose``: angles by names or patterns, rad or m, 0 where it says nothing: the keyframe "home", with servos that
        hold it, and what floats set down on the floor: ``sim.reset(keyframe="home")``. A simulation begins with all
        joints at 0, on the floor. Errors: ValueError for names and patterns that are no joint, for joints that would
        stand outside their range, and for meshes that are nowhere.
        """
        _check_choice(unsupported)
        robot = UrdfRobot(floating, kp, kd, pose, self_collision)
        compiled, label, messages, notes = compile_source(source, assets, robot)
        return cls._converted(compiled, label, unsupported, messages, notes)

    @classmethod
    def from_file(cls, path, *, unsupported: str = "error", **urdf) -> Model:
        """`from_urdf` of a file whose name ends in .urdf, with ``urdf`` as its arguments, `from_mjcf` of others."""
        if Path(path).suffix == ".urdf":
            return cls.from_urdf(path, unsupported=unsupported, **urdf)
        if urdf:
            raise ValueError(f"{path} is no URDF: {', '.join(urdf)} are for what a URDF does not say")
        return cls.from_mjcf(path, unsupported=unsupported)

    @classmethod
    def from_mjmodel(cls, mjmodel, *, unsupported: str = "error") -> Model:
        """A model from a compiled ``mujoco.MjModel``, as it is now; it is kept, not copied, for `mjmodel`."""
        _check_choice(unsupported)
        mujoco = require_mujoco()
        if not isinstance(mjmodel, mujoco.MjModel):
            raise TypeError(f"mjmodel is {type(mjmodel).__name__}, expected mujoco.MjModel")
        return cls._converted(mjmodel, "the MjModel", unsupported, [], [])

    @classmethod
    def _converted(cls, compiled, label, unsupported, messages, notes) -> Model:
        mujoco = require_mujoco()
        found = examine(compiled, mujoco)
        arrays = model_arrays(compiled, found, mujoco)
        report = notes + found.report + [f"mujoco: {' '.join(text.split())}" for text in messages]
        if found.unsupported and unsupported == "error":
            raise UnsupportedModelError(label, found.unsupported)
        for feature in found.unsupported:
            warnings.warn(f"{label}: dropped {feature}", stacklevel=3)
            report.append(f"dropped: {feature}")
        try:
            core = _core.Model.from_arrays(arrays)
        except ValueError as error:
            raise ValueError(f"cannot import {label}: {error}") from error
        return cls(core, import_report=report, mjmodel=compiled)

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any], *, import_report=()) -> Model:
        """A model from its arrays by name, as `to_arrays` gives them; checked, ValueError names what is wrong."""
        return cls(_core.Model.from_arrays(arrays), import_report=import_report)

    def to_arrays(self) -> dict[str, Any]:
        """Every field by name: read-only views, counts, lists of names."""
        return self._core.to_arrays()

    def _copied_arrays(self) -> dict[str, Any]:
        return {name: np.array(v) if isinstance(v, np.ndarray) else v for name, v in self.to_arrays().items()}

    def with_material(self, stiffness: float, dissipation: float = 0.0, *, geoms=None) -> Model:
        """The same model with compliant contact on ``geoms`` (a name or number, or several; all by default).

        ``stiffness`` (N/m) is a geom's own, at each point that touches: a box on its four corners sinks in by a fourth
        of what a ball does. Two compliant geoms are springs in series, a rigid one adds nothing. ``dissipation`` (s) is
        the relaxation time: the force is stiffness (depth + dissipation d depth/dt), never below 0. Steps that are not
        far below the time of contact, pi sqrt(mass / stiffness), take energy on their own, also at a dissipation of 0.
        A stiffness of 0 is near-rigid contact. Tangentially nothing yields, unless
        `SolverOptions.tangential_compliance` says so. Errors: ValueError for negative numbers,
        KeyError for names that are not there, IndexError for numbers.
        """
        return self._with_geoms(geoms, geom_stiffness=stiffness, geom_dissipation=dissipation)

    def with_restitution(self, restitution: float, *, geoms=None) -> Model:
        """The same model whose ``geoms`` (a name or number, or several; all by default) bounce.

        What hits leaves with ``restitution`` (0 to 1, of two geoms the larger one) times the normal speed at which it
        came, Newton's law of impact; below what gravity gives in two steps it rests. Of a compliant contact its
        dissipation decides instead. Errors: ValueError outside 0 to 1, KeyError for names that are not there,
        IndexError for numbers.
        """
        return self._with_geoms(geoms, geom_restitution=restitution)

    def with_friction(self, sliding=None, torsional=None, rolling=None, *, geoms=None) -> Model:
        """The same model with other friction on ``geoms`` (a name or number, or several; all by default).

        ``sliding`` is Coulomb's coefficient. ``torsional`` and ``rolling`` (m) are the largest couples about the normal
        and about the tangents, per normal force; of 0 there are none. What is None stays. condim follows, as MuJoCo's:
        6 with rolling friction, 4 with torsional only, 3 with sliding only; of two geoms the larger condim, and of each
        friction the larger, counts. Pairs of ``<contact>`` keep theirs. Errors: ValueError for negative numbers,
        KeyError for names that are not there, IndexError for numbers.
        """
        arrays = self._copied_arrays()
        for number in self._chosen(geoms):
            friction, condim = arrays["geom_friction"][number], int(arrays["geom_condim"][number])
            now = [friction[0] if condim > 1 else 0.0, friction[1] * (condim > 3), friction[2] * (condim > 4)]
            given = (sliding, torsional, rolling)
            asked = [was if value is None else float(value) for was, value in zip(now, given, strict=True)]
            friction[:] = asked
            arrays["geom_condim"][number] = 6 if asked[2] else 4 if asked[1] else 3 if asked[0] else 1
        return Model(_core.Model.from_arrays(arrays), import_report=self._import_report, mjmodel=self._mjmodel)

    def _chosen(self, geoms) -> list[int]:
        chosen = range(self._core.ngeom) if geoms is None else [geoms] if isinstance(geoms, (str, int)) else geoms
        return [self.geom_id(geom) if isinstance(geom, str) else geom for geom in chosen]

    def _with_geoms(self, geoms, **values: float) -> Model:
        arrays = self._copied_arrays()
        for number in self._chosen(geoms):
            for name, value in values.items():
                arrays[name][number] = value
        return Model(_core.Model.from_arrays(arrays), import_report=self._import_report, mjmodel=self._mjmodel)

    def save(self, path) -> None:
        """Writes the model, its import report and its ``mjmodel`` as an npz archive; ``path`` may be an open file."""
        arrays = {name: np.asarray(value) for name, value in self.to_arrays().items()}
        report = np.asarray(self._import_report, dtype=str)
        if self._mjmodel is not None:
            arrays[_MJMODEL] = mjmodel_bytes(self._mjmodel)
        with nullcontext(path) if hasattr(path, "write") else open(path, "wb") as file:
            np.savez_compressed(file, stiction_model=np.asarray(_FORMAT), import_report=report, **arrays)

    @classmethod
    def load(cls, path) -> Model:
        """A model written by `save`. It has an ``mjmodel`` if it had one and this version of MuJoCo can read it."""
        with nullcontext(path) if hasattr(path, "read") else open(path, "rb") as file:
            try:
                with np.load(file, allow_pickle=False) as archive:
                    data = {name: archive[name] for name in archive.files}
            except Exception as error:
                raise ValueError(f"'{path}' is no model written by Model.save: {error}") from error
        version = data.pop("stiction_model", None)
        if version is None or int(version) != _FORMAT:
            raise ValueError(f"'{path}' has model format {version}, expected {_FORMAT}: written by Model.save?")
        report = [str(line) for line in data.pop("import_report")]
        mjmodel = mjmodel_of(data.pop(_MJMODEL)) if _MJMODEL in data else None
        arrays = {name: plain_array(name, value) for name, value in data.items()}
        return cls(_core.Model.from_arrays(arrays), import_report=report, mjmodel=mjmodel)

    # ---- reading it

    @property
    def core(self) -> _core.Model:
        """The compiled object that the simulation holds."""
        return self._core

    @property
    def import_report(self) -> list[str]:
        """What the import approximated, ignored, folded, added or dropped, one line each; empty without an import."""
        return list(self._import_report)

    @property
    def mjmodel(self):
        """The ``mujoco.MjModel`` this came from, for rendering; None for a model of arrays."""
        return self._mjmodel

    def body_id(self, name: str) -> int:
        return _number("body", name, self._core.body_names)

    def joint_id(self, name: str) -> int:
        return _number("joint", name, self._core.joint_names)

    def geom_id(self, name: str) -> int:
        return _number("geom", name, self._core.geom_names)

    def site_id(self, name: str) -> int:
        return _number("site", name, self._core.site_names)

    def actuator_id(self, name: str) -> int:
        return _number("actuator", name, self._core.actuator_names)

    def tendon_id(self, name: str) -> int:
        return _number("tendon", name, self._core.tendon_names)

    def key_id(self, name: str) -> int:
        return _number("keyframe", name, self._core.key_names)

    def __getattr__(self, name: str):
        # Fields of the compiled model; called only for what is not found here.
        if not name.startswith("_") and hasattr(_core.Model, name):
            return getattr(self._core, name)
        raise AttributeError(f"Model has no field '{name}'{_near(name, dir(_core.Model))}")

    def __setattr__(self, name: str, value) -> None:
        if not name.startswith("_"):
            if name not in dir(self):
                raise AttributeError(f"Model has no field '{name}'{_near(name, dir(_core.Model))}")
            raise AttributeError(
                f"{name} cannot be set, for a model is immutable; Simulation(model, per_env=...).params can be written"
            )
        super().__setattr__(name, value)

    def __dir__(self):
        return sorted({*super().__dir__(), *(name for name in dir(_core.Model) if not name.startswith("_"))})

    def __reduce__(self):
        mjmodel = None if self._mjmodel is None else mjmodel_bytes(self._mjmodel)
        return _rebuilt, (self._copied_arrays(), self._import_report, mjmodel)

    def __deepcopy__(self, memo) -> Model:
        return self  # immutable

    def __copy__(self) -> Model:
        return self

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={getattr(self._core, name)}" for name in ("nq", "nv", "nu", "nbody", "ngeom"))
        return f"stiction.Model({sizes})"


def _rebuilt(arrays, report, mjmodel=None) -> Model:
    made = None if mjmodel is None else mjmodel_of(mjmodel)
    return Model(_core.Model.from_arrays(arrays), import_report=report, mjmodel=made)


def mjmodel_bytes(mjmodel) -> np.ndarray:
    """MuJoCo's binary form of a model, uint8."""
    mujoco = require_mujoco()
    size = mujoco.mj_sizeModel(mjmodel)
    data = np.empty(size, np.uint8)
    mujoco.mj_saveModel(mjmodel, None, data)
    return data


def mjmodel_of(data: np.ndarray):
    """The ``mujoco.MjModel`` of `mjmodel_bytes`; None where another version of MuJoCo wrote it."""
    try:
        return require_mujoco().MjModel.from_binary_path("model.mjb", assets={"model.mjb": data.tobytes()})
    except (ImportError, ValueError):
        return None


def plain_array(name: str, value: np.ndarray):
    """Archive entries are arrays: names become lists, single numbers numbers."""
    if name.endswith("_names"):
        return [str(entry) for entry in value]
    return value.item() if value.ndim == 0 else value


def _check_choice(unsupported: str) -> None:
    if unsupported not in ("error", "warn"):
        raise ValueError(f"unsupported is {unsupported!r}, expected 'error' or 'warn'")


def _near(name: str, names) -> str:
    near = difflib.get_close_matches(str(name), [other for other in names if other], n=4, cutoff=0.5)
    return f"; near: {', '.join(repr(other) for other in near)}" if near else ""


def _number(kind: str, name: str, names: list[str]) -> int:
    if name and name in names:
        return names.index(name)
    named = [other for other in names if other]
    hint = _near(name, named) or (
        f"; there are: {', '.join(repr(n) for n in named[:8])}" if named else "; none has a name"
    )
    raise KeyError(f"no {kind} named {name!r}{hint}")
