"""stiction.Status: the bits of `Simulation.status`, and how to count them."""

from __future__ import annotations

import enum

import numpy as np


class Status(enum.IntFlag):
    """Why an environment needs attention. Bits stick until `Simulation.reset`, `clear_status` or `set_state`."""

    #: A position, velocity or input was NaN, infinite or absurdly large (speeds: beyond 1e6 m/s or rad/s in all), or a
    #: quaternion was zero. The environment keeps its last finite state and stands still until it is reset. Look at the
    #: action, the applied forces and the parameters; take a smaller time step.
    NON_FINITE = 1
    #: The certificate of a step exceeded `SolverOptions.certify`. More iterations, or another solver; where
    #: ``certificate.r_dyn`` is above 1e-4, ``dtype="float64"``.
    NOT_CONVERGED = 2
    #: A contact that touches, or could close in the step, was left out for want of slots, and no other in its plane was
    #: kept. Those that close first were kept. Use fewer or simpler geoms where many touch one body; between moving
    #: bodies ``max_contacts`` makes room.
    CONTACT_OVERFLOW = 4
    #: The fallback solved a step; on CUDA, a step without an answer asked for no recovery. Information.
    FALLBACK = 8
    #: A touch or an overlap of bodies that cannot move was ignored, or one that a closed loop holds.
    IMMOVABLE = 16
    #: No solver found an answer to a step for some bodies that touch each other, and nothing pushed them: no contact,
    #: limit, dry friction, equality or implicit servo of a tendon. NOT_CONVERGED is set, too. Take
    #: ``dtype="float64"``, smaller ratios of mass, a smaller time step, or a start without overlaps.
    NO_IMPULSES = 32
    #: All that asks for a look, which FALLBACK does not: ``(sim.status & Status.ALARM) != 0``.
    ALARM = NON_FINITE | NOT_CONVERGED | CONTACT_OVERFLOW | IMMOVABLE | NO_IMPULSES

    @classmethod
    def _missing_(cls, value):
        """Of a number of `Simulation.status`, which is NumPy's or torch's."""
        return cls(value.item()) if hasattr(value, "item") else super()._missing_(value)

    @classmethod
    def counts(cls, status) -> dict[str, int]:
        """How many environments have each bit: ``{"NON_FINITE": 0, ...}``."""
        bits = np.asarray(status)
        return {flag.name: int(np.count_nonzero(bits & flag.value)) for flag in cls}
