"""stiction.Simulation: a batch of environments of one model, stepped together."""

from __future__ import annotations

import operator
import os
from dataclasses import fields

import numpy as np

from . import _core
from .backend import as_array, as_numbers, chosen_backend
from .contact_problem import ContactProblem
from .inverse_dynamics import InverseDynamics, inverse_dynamics
from .mass_matrix import bias, mass_matrix
from .model import Model
from .model_kernels import checked_kernels, chosen_kernels
from .mujoco_numbers import NO_GRAVITY
from .simulation_arrays import (
    Array,
    ArrayCache,
    CertificateArrays,
    ClosedWorld,
    ContactArrays,
    Parameters,
    near,
)
from .simulation_checks import (
    INTEGRATORS,
    checked_device,
    checked_dtype,
    checked_integrator,
    checked_per_env,
    checked_room,
    checked_timestep,
    count,
    usable_cores,
)
from .simulation_state import SimulationState, require_orientations
from .solver_options import SolverOptions


class Simulation:
    """``num_envs`` copies of a model.

    Arrays are row-major (num_envs, ...) with MuJoCo's layout and meaning. They are views of the simulation's own
    memory: what is written into `qpos`, `qvel`, `ctrl`, `time`, `qfrc_applied`, `xfrc_applied`, `mocap_pos` or
    `mocap_quat` is what the next step sees, and a view stays valid, and keeps the memory, after the simulation is gone.
    ``sim.ctrl = x`` copies ``x`` in.

    After `step`, `reset` and `set_state` the poses are those of the current ``qpos`` and the contacts those of the
    step. After writing ``qpos`` or ``qvel`` call `forward`, which also tells what collides.

    The environment variable STICTION_ISA ("avx512", "avx2", "scalar") overrides the choice of the instruction set.

    Parameters
    ----------
    model: stiction.Model.
    num_envs: environments, at least 1.
    device: "cpu", or "cuda:0" where there is a GPU and a CUDA build; "cuda" is the thread's present one
        (torch.cuda.set_device).
    dtype: "float32", or "float64": slower where there are many environments, which float32 steps 8 or 16 at a time on a
        CPU, and as fast or faster where there are few, of which it steps one at a time.
    timestep: seconds; None is the model's. Environments step so many of them per action (`VectorEnv.step_dt`).
    integrator: "implicit" (default: stiffness and damping of joints, tendons and actuators are implicit, and the
        gyroscopic and Coriolis torques) or "euler" (MuJoCo's: symplectic, joint damping implicit, the rest
        explicit); "midpoint" (second order, keeps the energy of undamped motion), "implicit_euler" and
        "explicit_euler": docs/theory.md, section 2.1.
    solver: a name of `stiction.solver_names`, such as "canal", or an object with settings:
        ``stiction.Canal(iterations=50)``; see `SolverOptions`.
    per_env: names of model fields that differ between environments, e.g. ``("body_mass",)``; see `params`. Masses
        scale their bodies' inertias, unless ``"body_inertia"`` is named too. What the model's flags disable (springs,
        gravity ...) stays off, whatever its numbers. ``body_pos`` of free and mocap bodies does nothing: `qpos` does.
    max_contacts: length of the arrays in `contact`, and room for them; None is what seems enough.
    array: "native" (NumPy on the CPU) or "torch" (tensors of the same memory).
    num_threads: None is every core that this process may use. Results do not depend on it.
    kernels: on CUDA, "model" (compiled for this model by NVRTC, seconds once, then kept on disk), "build" (those of the
        build, for any) or "auto" (the first where there is NVRTC).
    """

    qpos = Array("Positions (num_envs, nq); quaternions w, x, y, z.", writable=True)
    qvel = Array("Velocities (num_envs, nv).", writable=True)
    ctrl = Array("Controls (num_envs, nu).", writable=True)
    time = Array("Seconds since the reset (num_envs,).", writable=True)
    qfrc_applied = Array("Applied joint forces (num_envs, nv), N or N m.", writable=True)
    xfrc_applied = Array("Applied force and torque at bodies' centres of mass (num_envs, nbody, 6).", writable=True)
    mocap_pos = Array("Positions of mocap bodies, where the user moves them (num_envs, nmocap, 3), m.", writable=True)
    mocap_quat = Array("Orientations of mocap bodies (num_envs, nmocap, 4).", writable=True)
    xpos = Array("Positions of body frames (num_envs, nbody, 3), m.")
    xquat = Array("Orientations of body frames (num_envs, nbody, 4).")
    body_linvel = Array("Velocities of body frames' origins, world axes (num_envs, nbody, 3), m/s.")
    body_angvel = Array("Angular velocities, world axes (num_envs, nbody, 3), rad/s.")
    site_xpos = Array("Positions of sites (num_envs, nsite, 3), m.")
    net_contact_force = Array("Sum of contact forces on bodies, world axes (num_envs, nbody, 3), N; 0 after `forward`.")
    status = Array("Bits of `Status` (num_envs,), sticky until `reset`, `clear_status` or `set_state`.")

    def __init__(
        self,
        model: Model,
        num_envs: int = 1,
        *,
        device: str = "cpu",
        dtype="float32",
        timestep: float | None = None,
        integrator: str | None = None,
        solver: str | SolverOptions = "subadmm",
        per_env=(),
        max_contacts: int | None = None,
        array: str = "native",
        num_threads: int | None = None,
        kernels: str = "auto",
    ):
        self._made = {k: v for k, v in locals().items() if k not in ("self", "model", "num_envs")}
        self._world, self._picture = ClosedWorld(), ({}, None)  # until there is one
        if not isinstance(model, Model):
            raise TypeError(f"model is {type(model).__name__}, expected stiction.Model; see Model.from_mjcf")
        if array not in ("native", "torch"):
            raise ValueError(f"array is {array!r}, expected 'native' or 'torch'")
        self._model = model
        self._num_envs = count("num_envs", num_envs, 1)
        kind, ordinal = checked_device(device)
        self._dtype = checked_dtype(dtype)
        self._integrator = checked_integrator(integrator)
        self._solver = SolverOptions.of(solver)
        self._per_env = checked_per_env(per_env, model)
        options, solver_options = self._solver.to_core()
        options |= INTEGRATORS[self._integrator] | {"h": 0.0 if timestep is None else checked_timestep(timestep)}
        extra = {"per_env": list(self._per_env)} if self._per_env else {}
        kernels, max_contacts = checked_kernels(kernels), checked_room(max_contacts)
        if kind == "cuda":
            extra["cuda"] = ordinal
            extra["kernels"] = chosen_kernels(kernels, model, self._per_env, max_contacts, ordinal)
        self._world = _core.World(
            model.core,
            num_envs=self._num_envs,
            float64=self._dtype == "float64",
            isa=os.environ.get("STICTION_ISA", ""),
            solver=self._solver.name,
            solver_options=solver_options,
            num_threads=usable_cores() if num_threads is None else count("num_threads", num_threads, 1),
            max_contacts=max_contacts,
            options=options,
            **extra,
        )
        self._device = "cpu" if kind == "cpu" else f"cuda:{self._world.device}"
        self._queues = kind == "cuda" and array == "torch"  # rather than waits
        self._backend = chosen_backend("numpy" if array == "native" else array, self._device, self._dtype)
        self._arrays = ArrayCache(self._world, self._backend, self._device)
        self._contact = ContactArrays(self._arrays)
        self._certificate = CertificateArrays(self._arrays)
        self._params = Parameters(self._arrays, model, self._per_env)

    # ---- what it is

    @property
    def model(self) -> Model:
        return self._model

    @property
    def num_envs(self) -> int:
        return self._num_envs

    @property
    def device(self) -> str:
        """Where it is: "cpu", or "cuda:0" with the number of the GPU."""
        return self._device

    @property
    def memory(self) -> dict[str, int]:
        """Bytes by what they are for: ``arrays``, ``records`` (warm start and contacts), ``workspaces``, and on a GPU
        ``local``, which the driver has set aside for the kernels (once for all simulations).

        What a GPU has no room for raises MemoryError before anything is allocated.
        """
        return self._world.memory

    @property
    def dtype(self) -> str:
        return self._dtype

    @property
    def integrator(self) -> str:
        return self._integrator

    @property
    def solver(self) -> SolverOptions:
        return self._solver

    @property
    def per_env(self) -> tuple[str, ...]:
        return self._per_env

    @property
    def timestep(self) -> float:
        """Seconds."""
        return self._world.timestep

    @property
    def max_contacts(self) -> int:
        return self._world.max_contacts

    @property
    def num_threads(self) -> int:
        return self._world.num_threads

    @property
    def isa(self) -> str:
        """Instruction set in use: "avx512", "avx2" or "scalar"."""
        return self._world.isa

    @property
    def contact(self) -> ContactArrays:
        """The contacts of the last step, or those that `forward` found since."""
        return self._contact

    @property
    def certificate(self) -> CertificateArrays:
        """How accurately the last `step` call was solved."""
        return self._certificate

    @property
    def params(self) -> Parameters:
        """The model's arrays; those named in ``per_env`` are writable."""
        return self._params

    # ---- stepping

    def step(self, n: int = 1) -> None:
        """Advances every environment by ``n`` time steps under the controls and applied forces as they are.

        With tensors on CUDA the work goes into torch's present stream, and this returns before it is done; else after.
        """
        self._order()
        self._world.step(operator.index(n), not self._queues)

    def _order(self) -> None:
        """Tensors on CUDA: later work goes into torch's present stream, behind what torch has queued there."""
        self._backend.order(self._world)

    def forward(self, envs=None) -> None:
        """Brings poses, body velocities and contacts up to date with the present state, without stepping.

        `contact` has what the next step would find: what overlaps (``dist`` <= 0) and what could close within the
        step; its impulses, `net_contact_force` and the contact forces of `Sensors` are 0 until that step.
        ``certificate.penetration`` is the deepest overlap now, or 0. So ``sim.certificate.penetration > 0`` says which
        environments collide. What no step begins with, a quaternion of zeros or what is not finite, becomes
        `Status.NON_FINITE`. All else stays: the next step gives the same bits, and tells by
        `Status.CONTACT_OVERFLOW` of contacts that are left out for want of slots.

        ``envs``: None (all), a mask, indices or a slice: whose contacts to find; others keep theirs; poses are of all.
        """
        mask = self._mask(envs)
        self._order()
        self._world.forward(mask)

    def _update_poses(self) -> None:
        """Poses and body velocities alone."""
        self._order()
        self._world.update_poses()

    def reset(self, envs=None, *, keyframe: int | str | None = None) -> None:
        """Puts environments back to ``qpos0`` or a keyframe, at time 0, without forces, warm start, contacts or status.

        ``envs``: None (all), a boolean mask (num_envs,), indices, or a slice. ``keyframe``: number or name.
        """
        key = -1 if keyframe is None else self._keyframe(keyframe)
        self._order()
        self._world.reset(self._mask(envs), key)

    def clear_status(self, envs=None) -> None:
        """Clears `status`; an environment that was `Status.NON_FINITE` moves again, so mend its state first."""
        self._world.clear_status(self._mask(envs))

    def get_state(self, envs=None) -> SimulationState:
        """Copies of all that a later step depends on; with `set_state` the same steps give the same bits.

        ``envs``: the rows of these alone, in their order: indices, a mask or a slice.
        """
        copies = {f.name: self._arrays.read(f.name) for f in fields(SimulationState) if f.name != "records"}
        state = SimulationState(**copies, records=self._world.get_records())
        return state if envs is None else state[self._numbers(envs)]

    def set_state(self, state: SimulationState, envs=None) -> None:
        """Puts a state of `get_state` back. `status`, which is no part of it, is cleared, as by `reset`.

        ``envs``: into these environments alone, rows in their order: indices, a mask or a slice; the state has as many
        rows, or one for all of them. A quaternion of zeros is refused by joint and row; one that is written into
        `qpos` itself makes its environment NON_FINITE.
        """
        if not isinstance(state, SimulationState):
            raise TypeError(f"state is {type(state).__name__}, expected what get_state returned")
        whole = state if envs is None else self.get_state().replaced(self._numbers(envs), state)
        checked = self._checked_state(whole)
        require_orientations(self._model, state)
        self._put_state(checked)
        self.clear_status(envs)

    def _checked_state(self, state: SimulationState) -> dict[str, np.ndarray]:
        checked = {}
        for field in fields(SimulationState):
            values = checked[field.name] = as_numbers(f"state.{field.name}", getattr(state, field.name))
            if field.name != "records" and values.shape != (expected := self._arrays.shape(field.name)):
                raise ValueError(
                    f"state.{field.name} has shape {values.shape}, expected {expected}: a state of as many "
                    "environments of the same model, or envs=[...] to put rows into some of them"
                )
        return checked

    def _put_state(self, checked: dict[str, np.ndarray]) -> None:
        records = checked.pop("records")
        try:
            self._world.set_records(records)
        except ValueError:
            raise ValueError(f"state.records has shape {records.shape}, those of another model or options") from None
        for name, values in checked.items():
            self._arrays.write(name, values)
        self._update_poses()

    def copy_env(self, source: int, envs) -> None:
        """Makes environments (mask, indices, slice) copies of another; with a task's memory: `VectorEnv.copy_env`."""
        source, chosen = self._environment(source, "source"), self._numbers(envs)
        for name in self._per_env:
            with self._arrays.changed(f"params.{name}") as values:
                values[chosen] = values[source].copy()
        self.set_state(self.get_state([source]), chosen)

    def __reduce__(self):
        """Pickles and copies: the model, the options, and the state; `contact` and `certificate` are told by a step."""
        params = {name: self._arrays.read(f"params.{name}") for name in self._per_env}
        return _rebuilt, (type(self), self._model, self._num_envs, self._made, self.get_state(), params)

    def __setattr__(self, name: str, value) -> None:
        if not name.startswith("_") and not hasattr(type(self), name):
            raise AttributeError(f"a simulation has no {name!r}{near(name, dir(type(self)))}")
        super().__setattr__(name, value)

    def close(self) -> None:
        """Lets the memory go, but for views still held; any later use raises ValueError."""
        if not isinstance(self._world, ClosedWorld):
            self._world = ClosedWorld()
            self._arrays.close()

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    # ---- looking inside

    def render(self, env: int = 0, **options) -> np.ndarray:
        """A picture (height, width, 3) of one environment. Options: width, height (480) and the model's camera, by
        default "track" or one that follows; `stiction.picture` says more.
        """
        from .picture import PICTURE_OPTIONS, Picture, picture_options

        for name in options:
            if name not in PICTURE_OPTIONS:
                raise TypeError(f"render has no option {name!r}{near(name, PICTURE_OPTIONS)}")
        if self._picture[1] is None or self._picture[0] != options:
            self._picture = dict(options), Picture(self._model, **picture_options(dict(options)))
        return self._picture[1].draw(self, self._environment(env))

    def contact_problem(self, env: int = 0) -> ContactProblem:
        """The contact problem of the last substep of one environment, dense and in double: `stiction.ContactProblem`.

        With ``A, b``; of contacts ``J, e, R, mu`` and the ``impulse`` found; of other rows ``J_row, e_row, R_row,
        lower, upper, row_impulse``; of torsional and rolling friction ``J_spin, spin_impulse``. Controls and applied
        forces must still be the step's. ``A v = b + J.T impulse + J_row.T row_impulse + J_spin.T spin_impulse`` gives
        v; `qvel` is v, spins in the axes of bodies however these turn, but by design not where a free joint's centre of
        mass turns about it (docs/theory.md, 2.4), nor of a lone body that rolls on a rim (2.5a), or that spins and is
        lifted out of an overlap, which takes energy (3).
        """
        number = self._environment(env)
        arrays = self._world.contact_problem(number)
        gravity = np.asarray(self.params.gravity[number] if "gravity" in self._per_env else self._model.gravity)
        speed = 0.0 if self._model.disableflags & NO_GRAVITY else float(np.linalg.norm(gravity)) * self.timestep
        return ContactProblem._of_step(arrays, max(speed, 1e-4))

    def inverse_dynamics(self, qacc, guess: str | InverseDynamics | None = None) -> InverseDynamics:
        """The applied joint forces under which the next step ends with ``qvel + timestep * qacc``, contacts included.

        ``qacc`` (num_envs, nv), rad/s^2 or m/s^2; controls and ``xfrc_applied`` as they are, ``qfrc_applied`` replaced.
        A velocity says what compliant contacts do (those of `Model.with_material`, and normal forces under the default
        ``penetration_allowance``). It does not say the normal forces of rigid contacts, nor what friction holds where
        nothing slides: ``guess`` None takes 0 there, "last" the last step's impulses, an earlier answer its own, as you
        changed them. Coulomb's law may allow several velocities under the same forces (one foot slides or holds): a
        step may then find another. A body's price of a lift (`contact_problem`) is not made up for. CPU only.
        """
        return inverse_dynamics(self._world, self._num_envs, self._model.nv, qacc, guess)

    def mass_matrix(self, dtype=None):
        """The joint-space inertia M (num_envs, nv, nv) at the present ``qpos``, with armature; MuJoCo's ``mj_fullM``.

        Computed in double on the host, without `forward`; ``dtype`` None: in the simulation's. N s^2/m, N m s^2/rad.
        """
        return self._computed(mass_matrix(self), dtype)

    def bias(self, dtype=None):
        """Coriolis, centrifugal and gravitational forces c (num_envs, nv) at present ``qpos`` and ``qvel``, N or N m.

        MuJoCo's ``qfrc_bias``: M qacc + c is what all other forces add up to. ``dtype`` as in `mass_matrix`.
        """
        return self._computed(bias(self), dtype)

    def _computed(self, values: np.ndarray, dtype):
        """As an array, or as a tensor where those are asked for."""
        values = values.astype(self._dtype if dtype is None else checked_dtype(dtype), copy=False)
        return self._backend.of(values)

    def dump(self, env: int, path) -> None:
        """Writes one environment's last substep to an ``.npz`` file: the model, options, the state before it, what was
        applied, the contact problem, the certificate (of `step(n)` the worst). ``stiction replay PATH`` solves it.
        """
        from .replay import write_dump

        write_dump(self, self._environment(env), path)

    def __repr__(self) -> str:
        if isinstance(self._world, ClosedWorld):
            return "stiction.Simulation(closed)"
        m = self._model
        return (
            f"stiction.Simulation(nq={m.nq}, nv={m.nv}, nu={m.nu}, num_envs={self._num_envs}, device={self._device!r}, "
            f"dtype={self._dtype!r}, timestep={self.timestep:g}, integrator={self._integrator!r}, "
            f"solver={self._solver.name!r}, isa={self.isa!r}, num_threads={self.num_threads})"
        )

    # ---- what users give

    def _environment(self, env, name: str = "env") -> int:
        try:
            number = operator.index(env)
        except TypeError:
            raise TypeError(f"{name} is {type(env).__name__}, expected an integer") from None
        if not 0 <= number < self._num_envs:
            raise ValueError(f"{name} is {number}, expected 0 to {self._num_envs - 1}")
        return number

    def _numbers(self, envs) -> np.ndarray:
        """Each environment once, in the order in which they are named."""
        if envs is None:
            return np.arange(self._num_envs)
        chosen = np.flatnonzero(self._mask(envs))
        if isinstance(envs, slice) or (given := as_array("envs", envs)).dtype == bool or not given.size:
            return chosen
        given = given.reshape(-1) % self._num_envs
        if len(given) != len(chosen):
            twice = given[np.bincount(given)[given] > 1][0]
            raise ValueError(f"envs names environment {twice} twice")
        return given

    def _keyframe(self, keyframe) -> int:
        nkey = self._model.nkey
        if isinstance(keyframe, str):
            names = list(self._model.key_names)
            if not keyframe or keyframe not in names:
                there = f"there are: {', '.join(map(repr, filter(None, names)))}" if any(names) else "none has a name"
                raise ValueError(f"no keyframe named {keyframe!r}{near(keyframe, names)}; {there}")
            return names.index(keyframe)
        try:
            number = operator.index(keyframe)
        except TypeError:
            raise TypeError(f"keyframe is {type(keyframe).__name__}, expected a number or a name") from None
        if not 0 <= number < nkey:
            there = f"expected 0 to {nkey - 1}" if nkey else "but the model has none"
            raise ValueError(f"keyframe is {number}, {there}")
        return number

    def _mask(self, envs) -> np.ndarray | None:
        """Bytes (num_envs,), or None for all."""
        if envs is None:
            return None
        mask = np.zeros(self._num_envs, np.uint8)
        if isinstance(envs, slice):
            mask[envs] = 1
            return mask
        chosen = as_array("envs", envs)
        if chosen.dtype == bool:
            if chosen.shape != mask.shape:
                raise ValueError(f"the mask has shape {chosen.shape}, expected {mask.shape}")
            return chosen.astype(np.uint8)
        if chosen.size == 0:
            return mask
        if chosen.dtype.kind not in "iu":
            raise TypeError(f"envs is an array of {chosen.dtype}, expected a boolean mask, indices or a slice")
        if chosen.min() < -self._num_envs or chosen.max() >= self._num_envs:
            raise ValueError(
                f"envs has indices from {chosen.min()} to {chosen.max()}, expected 0 to {self._num_envs - 1}"
            )
        mask[chosen] = 1
        return mask


def _rebuilt(kind, model: Model, num_envs: int, made: dict, state: SimulationState, params: dict) -> Simulation:
    simulation = kind(model, num_envs, **made)
    for name, values in params.items():
        simulation._arrays.write(f"params.{name}", values)
    simulation._put_state(simulation._checked_state(state))  # whatever it was
    return simulation
