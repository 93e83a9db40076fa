"""What forces a task may penalise or watch: of actuators, on joints, of contacts by pairs of bodies; part of `Sensors`.

Each is of the state and controls as they are; contacts are those of the last time step, or those that
`Simulation.forward` found since, whose forces are 0.
"""

from __future__ import annotations

import numpy as np

from .mujoco_numbers import HINGE, NO_ACTUATION, NO_CLAMP, SLIDE, TRN_JOINT, TRN_TENDON


class ForceSensors:
    """Of `Sensors`, whose arrays it reads. N environments."""

    def actuator_force(self, names=None):
        """Of actuators (N, k), N or N m: MuJoCo's ``actuator_force``, of motors and servos on hinges and slides."""
        numbers = range(self._model.nu) if names is None else [self._model.actuator_id(name) for name in _listed(names)]
        return self._out(self._forces(tuple(numbers)))

    def joint_torque(self, names):
        """What actuators do on joints (N, k), N or N m: MuJoCo's ``qfrc_actuator``, within ``actuatorfrcrange``."""
        torques = [self._torque(self._model.joint_id(name))[:, None] for name in _listed(names)]
        return self._out(_joined(torques) if torques else self._zeros(self._sim.num_envs, 0))

    def _torque(self, joint: int):
        """(N,)"""
        model, torque = self._model, self._zeros(self._sim.num_envs)
        for a in np.flatnonzero(np.asarray(model.actuator_trntype) == TRN_TENDON).tolist():
            tendon = model.actuator_trnid[a]
            begin = model.tendon_adr[tendon]
            if joint in list(model.wrap_jntid[begin : begin + model.tendon_num[tendon]]):
                driven, by = model.joint_names[joint] or joint, model.actuator_names[a] or a
                raise ValueError(f"joint {driven!r} is driven by actuator {by!r} through a tendon: not computed")
        of_joints = np.asarray(model.actuator_trntype) == TRN_JOINT
        driving = np.flatnonzero(of_joints & (np.asarray(model.actuator_trnid) == joint)).tolist()
        if driving:
            gears = self._constant(f"gears {driving}", lambda: np.asarray(model.actuator_gear)[driving, 0])
            torque = (self._forces(tuple(driving)) * gears).sum(1)
        if model.jnt_actfrclimited[joint]:
            torque = torque.clip(*np.asarray(model.jnt_actfrcrange)[joint].tolist())
        return torque

    def _forces(self, numbers: tuple[int, ...]):
        """(N, k), as the dynamics compute them (`cuda/dynamics/actuator.h`), but for what a step takes implicitly."""
        model, chosen = self._model, list(numbers)
        for a in chosen:
            joint = model.actuator_trnid[a]
            if model.actuator_trntype[a] != TRN_JOINT or model.jnt_type[joint] not in (SLIDE, HINGE):
                raise ValueError(f"actuator {model.actuator_names[a] or a!r} does not drive a hinge or slide")
        key, joints = f"actuators {numbers}", [model.actuator_trnid[a] for a in chosen]
        if model.core.disableflags & NO_ACTUATION:
            return self._zeros(self._sim.num_envs, len(chosen))
        qpos, qvel = (
            self._constant(f"{key} {at}", lambda at=at: np.asarray(getattr(model, at), np.int64)[joints])
            for at in ("jnt_qposadr", "jnt_dofadr")
        )
        gear = self._constant(f"{key} gear", lambda: np.asarray(model.actuator_gear)[chosen, 0])
        length, speed = self._array("qpos")[:, qpos] * gear, self._array("qvel")[:, qvel] * gear
        clamps = np.asarray(model.actuator_ctrllimited).astype(bool) & (not model.core.disableflags & NO_CLAMP)
        ctrl = self._within("ctrlrange", chosen, clamps, self._array("ctrl")[:, chosen])
        gain, bias = (self._parameter(name)[:, chosen] for name in ("actuator_gainprm", "actuator_biasprm"))
        force = gain * ctrl + bias[:, :, 0] + bias[:, :, 1] * length + bias[:, :, 2] * speed
        return self._within("forcerange", chosen, np.asarray(model.actuator_forcelimited).astype(bool), force)

    def _parameter(self, name: str):
        """(N, ...) of each environment, or (1, ...) of the model."""
        if name in self._sim.per_env:
            return self._array(f"params.{name}")
        return self._constant(name, lambda: getattr(self._model, name))[None]

    def _within(self, name: str, numbers: list[int], limited, values):
        """``values`` (N, k) of actuators, held in their ranges where these are ``limited`` (nu,)."""
        if not limited[numbers].any():
            return values
        ranges = np.where(limited[:, None], np.asarray(getattr(self._model, f"actuator_{name}")), [-np.inf, np.inf])
        low, high = (
            self._constant(f"{name} {side} {numbers}", lambda side=side: ranges[numbers, side]) for side in (0, 1)
        )
        if hasattr(values, "detach"):
            return values.maximum(low).minimum(high)
        return np.minimum(np.maximum(values, low), high)

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


def _listed(names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _joined(columns):
    """Arrays or tensors (N, 1, ...) beside each other."""
    if hasattr(columns[0], "detach"):
        import torch

        return torch.cat(columns, 1)
    return np.concatenate(columns, 1)
