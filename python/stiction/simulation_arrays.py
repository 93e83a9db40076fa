"""The arrays of a `Simulation` as attributes: views of its memory, copied into when assigned.

`ArrayCache` makes each view once; `Array` is the attribute `sim.qpos`; `ContactArrays`, `CertificateArrays` and
`Parameters` are the groups `sim.contact`, `sim.certificate` and `sim.params`.
"""

from __future__ import annotations

import difflib
from contextlib import contextmanager

import numpy as np

from .backend import as_numbers, is_tensor
from .device_array import DeviceArray
from .parameter_checks import wrong_with


class ClosedWorld:
    """What is left of a closed simulation: any use raises."""

    def __getattr__(self, name: str):
        raise ValueError("this simulation is closed")


class ArrayCache:
    """A world's arrays by name: NumPy arrays that the host sees, or torch tensors where they are computed.

    On the CPU both are views of the simulation's memory, made once. On a GPU NumPy's are the host's mirrors, which are
    the simulation's after every call that waits, and whose values the next call takes along; with tensors there are
    none, and NumPy's arrays are read and written by copies.
    """

    def __init__(self, world, backend, device: str = "cpu"):
        self.world, self.backend = world, backend
        self.on_gpu = device != "cpu"
        self._numpy: dict[str, np.ndarray] = {}
        self.views: dict[str, object] = {}

    def numpy(self, name: str) -> np.ndarray:
        """The host's view, as things are now; not on a GPU with tensors."""
        view = self._numpy.get(name)
        if view is None:
            view = self._numpy[name] = self.world.array(name)
        elif self.on_gpu:
            self.world.wait()
        return view

    def memory(self, name: str):
        """What a tensor can be made of."""
        return DeviceArray(self.world.device_array(name), self.world.device) if self.on_gpu else self.numpy(name)

    def view(self, name: str):
        if not self.backend.tensors:
            view = self.views[name] = self.numpy(name)
            return view
        view = self.views.get(name)
        if view is None:
            view = self.views[name] = self.backend.of(self.memory(name))
        return view

    @property
    def _apart(self) -> bool:
        return self.on_gpu and self.backend.tensors

    def read(self, name: str) -> np.ndarray:
        """A copy."""
        return self.world.read_array(name) if self._apart else self.numpy(name).copy()

    def write(self, name: str, values: np.ndarray) -> None:
        """Numbers of the array's shape into it."""
        if self._apart:
            like = self.world.device_array(name)
            self.world.write_array(name, np.ascontiguousarray(values, like.dtype))
        else:
            np.copyto(self.numpy(name), values, casting="unsafe")

    @contextmanager
    def changed(self, name: str):
        """NumPy's array for the host to change within the block."""
        if self._apart:
            values = self.read(name)
            yield values
            self.write(name, values)
        else:
            yield self.numpy(name)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.world.device_array(name).shape

    def copied(self, name: str, convert) -> object:
        """convert(array) as what the user asked for: not a view."""
        return self.backend.of(convert(self.read(name)))

    def assign(self, name: str, values) -> None:
        if values is not None and values is self.views.get(name):  # sim.ctrl += x
            return
        if self._apart and is_tensor(values) and not values.is_complex():
            view = self.view(name)
            if values.shape != view.shape:
                raise ValueError(f"{name} has shape {tuple(values.shape)}, expected {tuple(view.shape)}")
            view.copy_(values.detach())  # where it is, behind what is queued
            return
        values = as_numbers(name, values)
        if values.shape != (expected := self.shape(name)):
            raise ValueError(f"{name} has shape {values.shape}, expected {expected}")
        self.write(name, values)

    def close(self) -> None:
        self.world = ClosedWorld()
        self._numpy.clear()
        self.views.clear()


class Array:
    """Attribute of a simulation: a view, made once; assigning copies in where ``writable``."""

    def __init__(self, doc: str, *, writable: bool = False):
        self.__doc__ = doc
        self.writable = writable

    def __set_name__(self, owner, name: str):
        self.name = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        cache = instance._arrays
        view = cache.views.get(self.name)
        return cache.view(self.name) if view is None or cache.on_gpu else view

    def __set__(self, instance, values) -> None:
        if not self.writable:
            raise AttributeError(f"{self.name} is computed by the simulation and cannot be set")
        instance._arrays.assign(self.name, values)


class _Group:
    """Arrays with a common prefix, as attributes."""

    def __init__(self, arrays: ArrayCache):
        self._arrays = arrays

    def __setattr__(self, name: str, values) -> None:
        if hasattr(type(self), name):
            raise AttributeError(f"{name} is computed by the simulation and cannot be set")
        if not name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no {name!r}{near(name, dir(type(self)))}")
        super().__setattr__(name, values)

    def __repr__(self) -> str:
        names = [name for name, value in vars(type(self)).items() if isinstance(value, property)]
        return f"{type(self).__name__}({', '.join(names)})"


def _field(name: str, doc: str) -> property:
    return property(lambda self: self._arrays.view(name), doc=doc)


def _converted(name: str, dtype, doc: str) -> property:
    return property(lambda self: self._arrays.copied(name, lambda values: values.astype(dtype)), doc=doc)


class ContactArrays(_Group):
    """The contacts of the last step or of `Simulation.forward`: the first ``count`` of each row, zeros behind them."""

    geom = _field("contact.geom", "Geoms (num_envs, max_contacts, 2), -1 where there is none.")
    pos = _field("contact.pos", "Position (num_envs, max_contacts, 3), m; of what turns fast its mean over the step.")
    frame = _field("contact.frame", "Rows t1, t2, n (num_envs, max_contacts, 3, 3); n from geom[0] to geom[1].")
    dist = _field("contact.dist", "Gap (num_envs, max_contacts), m; negative where they overlap.")
    impulse = _field("contact.impulse", "Along t1, t2, n on geom[1], (num_envs, max_contacts, 3), N s.")
    couple = _field(
        "contact.couple",
        "Of torsional and rolling friction, about t1, t2, n on geom[1], (num_envs, max_contacts, 3), N m s.",
    )
    ahead = _field(
        "contact.ahead",
        "By how much geom[1] is touched farther on than geom[0], which is half a gap from pos: across n, in world axes "
        "(num_envs, max_contacts, 3), m. 0 but of round things that meet edges ahead of what may move.",
    )
    active = _field("contact.active", "Whether there is a contact, (num_envs, max_contacts).")
    count = _field("contact.count", "Contacts, (num_envs,).")


class CertificateArrays(_Group):
    """How accurate the last `step` call was, per environment. With n > 1 of its steps: the worst of them."""

    r_dyn = _field("certificate.r_dyn", "Residual of the equation of motion over its terms, (num_envs,), 1.")
    r_con = _field("certificate.r_con", "Residual of the contact with the largest r_con / V, (num_envs,), m/s.")
    r_split = _field(
        "certificate.r_split",
        "Of Signorini's and Coulomb's law apart, (num_envs,), m/s: large friction hides no error.",
    )
    r_ccp = _field("certificate.r_ccp", "Residual of the convex relaxation, (num_envs,), m/s.")
    r_mdp = _field(
        "certificate.r_mdp", "Residual of maximum dissipation, (num_envs,), m/s; 0 where the solver has another law."
    )
    r_row = _field("certificate.r_row", "Residual of limits, dry friction and equalities over V, (num_envs,).")
    r_cone = _field("certificate.r_cone", "How far impulses are outside their cones, (num_envs,).")
    penetration = _field("certificate.penetration", "Deepest overlap, or that of `Simulation.forward`, (num_envs,), m.")
    scale = _field("certificate.scale", "Velocity scale V of the trees that contact acts on, (num_envs,), m/s.")
    num_contacts = _converted("certificate.num_contacts", np.int32, "Contacts, (num_envs,); a copy.")
    iterations = _converted("certificate.iterations", np.int32, "Iterations, (num_envs,); a copy.")
    converged = _converted(
        "certificate.converged",
        bool,
        "Every step within `SolverOptions.certify`, r_dyn 1e-4; a copy. Not what is NON_FINITE.",
    )


class Parameters:
    """The model's arrays by MuJoCo's names, read-only (1, ...); writable (num_envs, ...) where named in ``per_env``.

    What is assigned is checked: all is finite, masses, frictions, sizes and the like are not negative, what moves has
    mass, and ranges of joints are in order. What is written into a view is not: a step on numbers that are not finite
    makes its environment `Status.NON_FINITE`.
    """

    def __init__(self, arrays: ArrayCache, model, per_env: tuple[str, ...]):
        self.__dict__.update(_arrays=arrays, _per_env=per_env, _names=parameter_names(model), _model=model, _shared={})

    def __getattr__(self, name: str):
        if name in self._per_env:
            return self._arrays.view(f"params.{name}")
        if name not in self._names:
            raise AttributeError(f"no parameter '{name}'{near(name, self._names)}")
        self._arrays.world.num_threads  # noqa: B018  (raises when closed)
        view = self._shared.get(name)
        if view is None:
            view = self._shared[name] = getattr(self._model, name)[None]
        return view

    def __setattr__(self, name: str, values) -> None:
        if name not in self._names:
            raise AttributeError(f"no parameter '{name}'{near(name, self._names)}")
        if name not in self._per_env:
            raise ValueError(f"params.{name} is shared by all environments; name it in per_env=('{name}',) to write it")
        numbers = as_numbers(f"params.{name}", values)
        if numbers.shape == self._arrays.shape(f"params.{name}") and (fault := wrong_with(self._model, name, numbers)):
            raise ValueError(f"params.{name} {fault}")
        self._arrays.assign(f"params.{name}", values)

    def __dir__(self):
        return sorted({*super().__dir__(), *self._names})

    def __repr__(self) -> str:
        return f"Parameters(per_env={self._per_env})"


def parameter_names(model) -> tuple[str, ...]:
    return tuple(name for name, value in model.to_arrays().items() if isinstance(value, np.ndarray))


def near(name: str, names) -> str:
    found = difflib.get_close_matches(str(name), list(names), n=4, cutoff=0.5)
    return f"; near: {', '.join(repr(other) for other in found)}" if found else ""
