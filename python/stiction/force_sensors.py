"""What forces a task may penalise or watch: of actuators, on joints, of contacts by pairs of bodies; part of `Sensors`.

Each is of the state and controls as they are; contacts are those of the last time step, or those that
`Simulation.forward` found since, whose forces are 0.
"""

from __future__ import annotations

import numpy as np

from .mujoco_numbers import BALL, FREE, NO_ACTUATION, NO_CLAMP, SLIDE, TRN_TENDON


class ForceSensors:
    """Of `Sensors`, whose arrays it reads. N environments."""

    def actuator_force(self, names=None):
        """Of actuators (N, k), N or N m, all by default: MuJoCo's ``actuator_force``."""
        model = self._model
        numbers = range(model.nu) if names is None else [model.actuator_id(name) for name in _listed(names)]
        return self._out(self._forces()[:, list(numbers)])

    def joint_torque(self, names=None):
        """What actuators do on joints (N, k), N or N m, all by default: MuJoCo's ``qfrc_actuator``, by tendons too.

        A hinge or slide has one number, within its ``actuatorfrcrange``, a ball joint three and a free joint six.
        """
        model = self._model
        joints = range(model.njnt) if names is None else [model.joint_id(name) for name in _listed(names)]
        dofs = [dof for joint in joints for dof in _dofs(model, joint)]
        return self._out(self._torques()[:, dofs])

    def _torques(self):
        """(N, nv)"""
        low, high = (self._constant(f"actfrcrange {side}", lambda side=side: self._bounds()[side]) for side in (0, 1))
        return _held(low, _times(self._forces(), self._moments), high)

    def _bounds(self) -> np.ndarray:
        """(2, nv): what the actuators of each dof's joint may do together, N or N m."""
        model, joints = self._model, np.asarray(self._model.dof_jntid)
        limited = np.asarray(model.jnt_actfrclimited).astype(bool)[joints]
        return np.where(limited, np.asarray(model.jnt_actfrcrange)[joints].T, [[-np.inf], [np.inf]])

    def _forces(self):
        """(N, nu), as the dynamics compute them (`cuda/dynamics/actuator.h`), but for what a step takes implicitly."""
        model = self._model
        if model.core.disableflags & NO_ACTUATION:
            return self._zeros(self._sim.num_envs, model.nu)
        length, speed = self._actuator_lengths(), self._actuator_speeds()
        clamps = np.asarray(model.actuator_ctrllimited).astype(bool) & (not model.core.disableflags & NO_CLAMP)
        ctrl = self._within("ctrlrange", clamps, self._array("ctrl"))
        gain, bias = self._parameter("actuator_gainprm"), self._parameter("actuator_biasprm")
        force = gain * ctrl + bias[:, :, 0] + bias[:, :, 1] * length + bias[:, :, 2] * speed
        if np.any(model.tendon_actfrclimited):
            force = self._within_tendons(force)
        return self._within("forcerange", np.asarray(model.actuator_forcelimited).astype(bool), force)

    def _within_tendons(self, force):
        """Those of a tendon (N, nu) scaled so that their sum is within its ``actuatorfrcrange``."""
        model = self._model
        limited = np.flatnonzero(model.tendon_actfrclimited)
        pull = self._constant("pull", lambda: 1.0 * _pulls(model)[:, limited])
        low, high = (
            self._constant(f"pull {side}", lambda side=side: np.asarray(model.tendon_actfrcrange)[limited, side])
            for side in (0, 1)
        )
        total = _times(force, pull)
        lost = 1 - _held(low, total, high) / (total + (total == 0))
        return force * (1 - _times(lost * (total != 0), pull.T))

    @property
    def _moments(self):
        """(nu, nv): what a unit of each actuator's force does on the dofs."""
        return self._constant("moments", lambda: _moments(self._model))

    def _actuator_lengths(self):
        """(N, nu); 0 of those on ball and free joints, whose force asks for none."""
        return _times(self._array("qpos"), self._constant("lengths", self._lengths))

    def _actuator_speeds(self):
        """(N, nu)"""
        return _times(self._array("qvel"), self._moments.T)

    def _lengths(self) -> np.ndarray:
        """(nq, nu): lengths per coordinate."""
        model = self._model
        scalar = np.flatnonzero(np.asarray(model.jnt_type) >= SLIDE)
        lengths = np.zeros((model.nq, model.nu))
        lengths[np.asarray(model.jnt_qposadr)[scalar]] = _moments(model)[:, np.asarray(model.jnt_dofadr)[scalar]].T
        return lengths

    def _parameter(self, name: str):
        """(N, ...) of each environment, or (1, ...) of the model."""
        if name in self._sim.per_env:
            return self._array(f"params.{name}")
        return self._constant(name, lambda: getattr(self._model, name))[None]

    def _within(self, name: str, limited, values):
        """``values`` (N, nu) of actuators, held in their ranges where these are ``limited`` (nu,)."""
        ranges = np.where(limited[:, None], np.asarray(getattr(self._model, f"actuator_{name}")), [-np.inf, np.inf])
        low, high = (self._constant(f"{name} {side}", lambda side=side: ranges[:, side]) for side in (0, 1))
        return _held(low, values, high)

    # ---- contacts by pairs

    def contact_force(self, bodies, other=None):
        """Of the contacts between each of ``bodies`` and any of ``other``: the force on it (N, k, 3), world's axes, N.

        ``other``: names; "world" is all that stands still; None is everything. 0 after `Simulation.forward`.
        """
        contact = self._sim.contact
        impulse = (contact.impulse[..., None] * contact.frame).sum(-2) / self._sim.timestep  # on the second geom
        forces = [(impulse * self._between(body, other)[..., None]).sum(1)[:, None] for body in _listed(bodies)]
        return self._out(_joined(forces) if forces else self._zeros(self._sim.num_envs, 0, 3))

    def contact_count(self, bodies, other=None):
        """How many contacts each of ``bodies`` has with any of ``other`` (N, k), touching or about to."""
        counts = [abs(self._between(body, other)).sum(1)[:, None] for body in _listed(bodies)]
        return self._out(_joined(counts) if counts else self._zeros(self._sim.num_envs, 0))

    def _between(self, body: str | int, other):
        """(N, contacts): 1 where ``body`` has the second geom, -1 the first, 0 where the contact is another's."""
        model, geom = self._model, self._sim.contact.geom
        of_geom = self._constant("geom_bodyid int", lambda: np.asarray(model.geom_bodyid, np.int64))
        number = body if isinstance(body, int) else model.body_id(body)
        first, second = (of_geom[geom[..., side].clip(0)] for side in (0, 1))
        there = self._sim.contact.active
        chosen = self._constant(f"partners {other}", lambda: self._partners(other))
        return there * ((second == number) * chosen[first] * 1 - (first == number) * chosen[second] * 1)

    def _partners(self, other) -> np.ndarray:
        """(nbody,) bool."""
        model = self._model
        if other is None:
            return np.ones(model.nbody, bool)
        chosen = np.zeros(model.nbody, bool)
        for name in _listed(other):
            if name == "world":
                chosen |= np.asarray(model.body_weldid) == 0
            else:
                chosen[model.body_id(name)] = True
        return chosen


def _pulls(model) -> np.ndarray:
    """(nu, ntendon): whether an actuator pulls a tendon."""
    on_tendon = np.asarray(model.actuator_trntype) == TRN_TENDON
    return on_tendon[:, None] & (np.asarray(model.actuator_trnid)[:, None] == np.arange(model.ntendon))


def _moments(model) -> np.ndarray:
    """(nu, nv), constant, as all tendons are that drive."""
    moments, gear = np.zeros((model.nu, model.nv)), np.asarray(model.actuator_gear)
    for a, (kind, target) in enumerate(zip(model.actuator_trntype, model.actuator_trnid, strict=True)):
        if kind == TRN_TENDON:
            begin = int(model.tendon_adr[target])
            for term in range(begin, begin + int(model.tendon_num[target])):
                moments[a, model.jnt_dofadr[model.wrap_jntid[term]]] += gear[a, 0] * model.wrap_coef[term]
        else:
            dofs = _dofs(model, target)
            moments[a, dofs] = gear[a, : len(dofs)]
    return moments


def _dofs(model, joint: int) -> list[int]:
    """The places in qvel of a joint."""
    first = int(model.jnt_dofadr[joint])
    return list(range(first, first + {FREE: 6, BALL: 3}.get(int(model.jnt_type[joint]), 1)))


def _times(rows, matrix):
    """(N, m) times (m, n) with the same bits whatever N is, as no product of matrices promises."""
    return (rows[:, :, None] * matrix).sum(1)


def _held(low, values, high):
    """Arrays or tensors, held in bounds."""
    if hasattr(values, "detach"):
        return values.maximum(low).minimum(high)
    return np.minimum(np.maximum(values, low), high)


def _listed(names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _joined(columns):
    """Arrays or tensors (N, 1, ...) beside each other."""
    if hasattr(columns[0], "detach"):
        import torch

        return torch.cat(columns, 1)
    return np.concatenate(columns, 1)
