"""What of a compiled MjModel stiction simulates, approximates, may ignore, or must refuse by name.

``examine(m)`` reads an MjModel (mujoco 3.17 to 4.x; fields a version lacks count as unused) and returns `Findings`: the
unsupported features, the report of approximations, and the masks of what the conversion must leave out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .mujoco_numbers import EQ_JOINT, EQ_TENDON, FREE, HFIELD, SDF, SLIDE, TRN_JOINT, TRN_JOINT_IN_PARENT, TRN_TENDON
from .named_sensors import without_a_reading

DEFAULT_SOLREF = (0.02, 1.0)
DEFAULT_SOLIMP = (0.9, 0.95, 0.001, 0.5, 2.0)
# Those of mjtDisableBit that change what we compute; our numbers are MuJoCo's (host/model/model.h).
HONOURED_FLAGS = (
    "EQUALITY FRICTIONLOSS LIMIT CONTACT SPRING DAMPER GRAVITY CLAMPCTRL FILTERPARENT ACTUATION EULERDAMP".split()
)


@dataclass
class Findings:
    """The verdict on one MjModel. Masks are True where the element is kept."""

    unsupported: list[str] = field(default_factory=list)
    report: list[str] = field(default_factory=list)
    disableflags: int = 0
    keep_mocap: np.ndarray | None = None  # others stand still
    keep_equality: np.ndarray | None = None
    keep_tendon: np.ndarray | None = None
    keep_force_range: np.ndarray | None = None  # of tendons
    keep_actuator: np.ndarray | None = None
    keep_geom_contact: np.ndarray | None = None
    colliding: np.ndarray | None = None  # geoms that can meet another one
    mute_actuator: np.ndarray | None = None  # in a disabled group: no force

    def refuse(self, what: str) -> None:
        self.unsupported.append(what)

    def note(self, kind: str, what: str) -> None:
        self.report.append(f"{kind}: {what}")


def names_of(m, kind: str) -> list[str]:
    """The names of all elements of a kind ("body", "jnt", "geom", ...), empty strings where there is none."""
    blob = m.names
    return [blob[adr : blob.index(b"\0", adr)].decode() for adr in getattr(m, f"name_{kind}adr")]


def listed(m, kind: str, ids, limit: int = 4) -> str:
    """``'a', 'b' and 3 more``, by number where an element has no name."""
    names = names_of(m, kind)
    ids = [int(i) for i in ids]
    shown = ", ".join(f"'{names[i]}'" if names[i] else f"#{i}" for i in ids[:limit])
    return shown + (f" and {len(ids) - limit} more" if len(ids) > limit else "")


def array(m, name: str, like: int | tuple = 0) -> np.ndarray:
    """The field, or zeros of the given shape where this version of mujoco has none."""
    value = getattr(m, name, None)
    return np.zeros(like) if value is None else np.asarray(value)


def rows(values) -> np.ndarray:
    """Numbers of the rows with a non-zero entry."""
    values = np.asarray(values)
    return np.flatnonzero(values.reshape(len(values), -1).any(axis=1)) if len(values) else np.zeros(0, int)


def enum_name(enum, value: int) -> str:
    """``muscle`` for mjDYN_MUSCLE, or the number."""
    for member in dir(enum):
        if member.startswith("mj") and int(getattr(enum, member)) == int(value):
            return member.split("_", 1)[1].lower()
    return str(int(value))


def honoured_disableflags(m, mujoco) -> int:
    """The flags we honour; `constraint` is the four kinds of constraints together."""
    bits = mujoco.mjtDisableBit
    mask = 0
    for name in HONOURED_FLAGS:
        mask |= int(getattr(bits, f"mjDSBL_{name}"))
    flags = int(m.opt.disableflags)
    if flags & int(bits.mjDSBL_CONSTRAINT):
        for name in ("EQUALITY", "FRICTIONLOSS", "LIMIT", "CONTACT"):
            flags |= int(getattr(bits, f"mjDSBL_{name}"))
    return flags & mask


def colliding_geoms(m, disableflags: int, mujoco) -> np.ndarray:
    """Which geoms can meet another one, by MuJoCo's filters: bits, welded bodies, parent and child, excludes, pairs."""
    bits = mujoco.mjtDisableBit
    if disableflags & int(bits.mjDSBL_CONTACT) or m.ngeom == 0:
        return np.zeros(m.ngeom, bool)
    body = np.asarray(m.geom_bodyid)
    weld = np.asarray(m.body_weldid)[body]
    parent = np.asarray(m.body_weldid)[np.asarray(m.body_parentid)[weld]]
    contype, affinity = np.asarray(m.geom_contype), np.asarray(m.geom_conaffinity)
    match = (contype[:, None] & affinity[None]) | (affinity[:, None] & contype[None]) != 0
    match &= weld[:, None] != weld[None]
    if not disableflags & int(bits.mjDSBL_FILTERPARENT):
        family = (parent[:, None] == weld[None]) | (weld[:, None] == parent[None])
        match &= ~(family & (weld[:, None] != 0) & (weld[None] != 0))
    flat = np.asarray(m.geom_type) <= HFIELD
    match &= ~(flat[:, None] & flat[None])
    for signature in np.asarray(m.exclude_signature):
        first, second = body == signature >> 16, body == signature & 0xFFFF
        match &= ~((first[:, None] & second[None]) | (second[:, None] & first[None]))
    colliding = match.any(axis=1)
    colliding[np.asarray(m.pair_geom1, int)] = True
    colliding[np.asarray(m.pair_geom2, int)] = True
    return colliding


def examine(m, mujoco) -> Findings:
    """Everything there is to say about the model, before any of it is converted."""
    found = Findings()
    found.disableflags = honoured_disableflags(m, mujoco)
    found.colliding = colliding_geoms(m, found.disableflags, mujoco)
    _options(m, mujoco, found)
    _bodies_and_joints(m, found)
    _springs(m, mujoco, found)
    _geoms(m, found)
    _tendons(m, found)
    _actuators(m, mujoco, found)
    _equalities(m, mujoco, found)
    _softness(m, found)
    _sensors(m, mujoco, found)
    return found


def _sensors(m, mujoco, found: Findings) -> None:
    """Of a file's sensors, which `Sensors.named` reads, those that it does not."""
    silent: dict[str, list[int]] = {}
    for sensor, why in without_a_reading(m, mujoco, {"actuator": found.keep_actuator, "tendon": found.keep_tendon}):
        silent.setdefault(why, []).append(sensor)
    for why, sensors in silent.items():
        found.note("ignored", f"sensor {listed(m, 'sensor', sensors)}: {why}")


def _options(m, mujoco, found: Findings) -> None:
    opt = m.opt
    integrator = enum_name(mujoco.mjtIntegrator, opt.integrator)
    if integrator == "discrete":
        found.refuse("integrator 'discrete'")
    else:
        ours = "the simulation's own: 'implicit' (in stiffness, damping and gyroscopic torque) unless chosen"
        found.note("approximated", f"integrator '{integrator}' -> {ours}")
    cone = enum_name(mujoco.mjtCone, opt.cone)
    impratio = f" with impratio {opt.impratio:g}" if opt.impratio != 1 else ""
    found.note("approximated", f"cone '{cone}'{impratio} -> the exact Coulomb cone")
    if opt.noslip_iterations:
        found.note("ignored", f"noslip_iterations {opt.noslip_iterations}: contact does not creep")
    if opt.density or opt.viscosity:
        found.refuse(f"fluid (density {opt.density:g}, viscosity {opt.viscosity:g})")
    elif np.any(opt.wind):
        found.note("ignored", "wind without a fluid")
    inert = ("ENERGY", "FWDINV", "INVDISCRETE")
    for member in (x for x in dir(mujoco.mjtEnableBit) if x.startswith("mjENBL_")):
        name = member.removeprefix("mjENBL_")
        if name not in inert and opt.enableflags & int(getattr(mujoco.mjtEnableBit, member)):
            found.refuse(f"enable flag '{name.lower()}'")
    if array(m, "nflex").any():
        found.refuse(f"flex {listed(m, 'flex', range(m.nflex))}")
    _zero(m, found, "body", "body_plugin", "plugin on body", offset=1)


def _zero(m, found: Findings, kind: str, name: str, what: str, offset: float = 0) -> None:
    """Refuses the elements whose field is not zero (or not -1 with offset 1)."""
    values = getattr(m, name, None)
    if values is None or len(values) == 0:
        return
    where = rows(np.asarray(values) + offset)
    if len(where):
        found.refuse(f"{what} ({name}) of {listed(m, kind, where)}")


def _bodies_and_joints(m, found: Findings) -> None:
    carrier = np.asarray(m.body_mocapid)[np.asarray(m.body_rootid)]  # the mocap body below, or -1
    carried = carrier >= 0
    moving = carried & (np.asarray(m.body_jntnum) > 0)
    if moving.any():
        found.refuse(f"motion of a mocap body that carries joints: body {listed(m, 'body', np.flatnonzero(moving))}")
    touching = carried[np.asarray(m.geom_bodyid)] & found.colliding
    if touching.any():
        geoms = listed(m, "geom", np.flatnonzero(touching))
        found.refuse(f"motion of a mocap body that touches: geom {geoms} (contype and conaffinity 0 let it move)")
    found.keep_mocap = np.ones(m.nmocap, bool)
    found.keep_mocap[carrier[moving]] = found.keep_mocap[carrier[np.asarray(m.geom_bodyid)[touching]]] = False
    kind = np.asarray(m.jnt_type)

    def refuse_joints(mask, what):
        if mask.any():
            found.refuse(f"{what} {listed(m, 'jnt', np.flatnonzero(mask))}")

    losses = np.zeros(m.njnt, bool)
    losses[np.asarray(m.dof_jntid, int)[np.asarray(m.dof_frictionloss) != 0]] = True
    refuse_joints((kind == FREE) & losses, "frictionloss of free joint")
    through = (np.asarray(m.jnt_actgravcomp) != 0) & (np.asarray(m.jnt_actfrclimited) != 0)
    if np.any(m.body_gravcomp):
        refuse_joints(through, "gravity compensation within the actuator force range of joint")
    _zero(m, found, "jnt", "jnt_stiffnesspoly", "polynomial stiffness")
    _zero(m, found, "jnt", "jnt_springyield", "plastic spring")
    poly = getattr(m, "dof_dampingpoly", None)
    if poly is not None and np.any(poly):
        found.refuse(f"polynomial damping (dof_dampingpoly) of {listed(m, 'jnt', np.unique(m.dof_jntid[rows(poly)]))}")


def _springs(m, mujoco, found: Findings) -> None:
    """Those that the default integrator damps more than they are damped themselves."""
    added = m.opt.timestep * np.asarray(m.jnt_stiffness)
    damping = np.asarray(m.dof_damping)[np.asarray(m.jnt_dofadr, int)]
    where = np.flatnonzero((added > damping) & (added > 0))
    if len(where) == 0 or found.disableflags & int(mujoco.mjtDisableBit.mjDSBL_SPRING):
        return
    found.note(
        "approximated",
        f"spring of joint {listed(m, 'jnt', where)}: 'implicit' damps it by timestep times stiffness"
        f" ({added[where].max():.3g} at most) besides; 'midpoint' does not",
    )


def _geoms(m, found: Findings) -> None:
    kind = np.asarray(m.geom_type)
    found.keep_geom_contact = np.ones(m.ngeom, bool)
    for value, text in ((HFIELD, "heightfield: declared, not supported yet:"), (SDF, "signed distance field")):
        where = np.flatnonzero((kind == value) & found.colliding)
        if len(where):
            found.refuse(f"{text} geom {listed(m, 'geom', where)}")
        found.keep_geom_contact[kind == value] = False
    _zero(m, found, "geom", "geom_adhesion", "adhesion")
    _zero(m, found, "geom", "geom_surfacevel", "surface velocity")
    _zero(m, found, "pair", "pair_adhesion", "adhesion")
    if m.npair and np.any(m.pair_friction[:, 0] != m.pair_friction[:, 1]):
        where = np.flatnonzero(m.pair_friction[:, 0] != m.pair_friction[:, 1])
        found.refuse(f"anisotropic friction of pair {listed(m, 'pair', where)}")
    rolling = (np.asarray(m.pair_dim) == 6) & (m.pair_friction[:, 3] != m.pair_friction[:, 4])
    if np.any(rolling):
        found.refuse(f"anisotropic rolling friction of pair {listed(m, 'pair', np.flatnonzero(rolling))}")
    condim = np.concatenate([np.asarray(m.geom_condim)[found.colliding], np.asarray(m.pair_dim, int)])
    if np.any(condim == 1):
        found.note("approximated", f"condim 1 of {np.sum(condim == 1)} geoms or pairs -> friction 0 where it decides")


def _pull_unlike(m, tendon: int) -> bool:
    """Whether it has several actuators whose sum, held in a range, is not a range of their sum."""
    on = (np.asarray(m.actuator_trntype) == TRN_TENDON) & (np.asarray(m.actuator_trnid)[:, 0] == tendon)
    outputs = np.asarray(getattr(m, "actuator_outadr", np.arange(len(on))))[on]
    gears = np.asarray(m.actuator_gear)[outputs, 0]
    return len(gears) > 1 and bool(np.any(gears != gears[0]) or np.any(np.asarray(m.actuator_forcelimited)[on]))


def _tendons(m, found: Findings) -> None:
    ids = np.arange(m.ntendon)
    spatial = np.array([m.wrap_type[m.tendon_adr[t]] != 1 for t in ids], bool)
    effect = np.zeros(m.ntendon, bool)
    for name in ("stiffness", "damping", "frictionloss", "armature", "limited"):
        effect |= np.asarray(getattr(m, f"tendon_{name}")) != 0
    driven = np.asarray(m.actuator_trnid)[np.asarray(m.actuator_trntype) == TRN_TENDON, 0]
    effect[driven] = True
    if np.any(spatial & effect):
        found.refuse(f"spatial tendon {listed(m, 'tendon', np.flatnonzero(spatial & effect))}")
    if np.any(spatial & ~effect):
        found.note("ignored", f"spatial tendon without effect {listed(m, 'tendon', np.flatnonzero(spatial & ~effect))}")
    found.keep_tendon = ~spatial
    joint = np.array([m.tendon_num[t] == 1 for t in ids], bool)
    several = ~spatial & ~joint & (np.asarray(m.tendon_armature) != 0)
    if several.any():
        found.refuse(f"armature of a tendon over several joints {listed(m, 'tendon', np.flatnonzero(several))}")
    found.keep_force_range = ~spatial & (array(m, "tendon_actfrclimited", m.ntendon) != 0)
    unlike = [t for t in np.flatnonzero(found.keep_force_range) if _pull_unlike(m, t)]
    if unlike:
        found.refuse(
            "force range over several actuators with different gears, or force ranges of their own, of tendon "
            + listed(m, "tendon", unlike)
        )
    found.keep_force_range[unlike] = False
    for name, what in (
        ("tendon_stiffnesspoly", "polynomial stiffness"),
        ("tendon_dampingpoly", "polynomial damping"),
        ("tendon_springyield", "plastic spring"),
    ):
        _zero(m, found, "tendon", name, f"{what} of tendon")


def _actuators(m, mujoco, found: Findings) -> None:
    count = int(getattr(m, "nactuator", m.nu))
    found.keep_actuator = np.ones(count, bool)
    found.mute_actuator = np.zeros(count, bool)
    groups = int(m.opt.disableactuator)
    for a in range(count):
        reason = _actuator_reason(m, mujoco, a, found)
        if reason:
            found.refuse(f"actuator {listed(m, 'actuator', [a])}: {reason}")
            found.keep_actuator[a] = False
        group = int(m.actuator_group[a])
        found.mute_actuator[a] = 0 <= group <= 30 and bool(groups >> group & 1)
    if found.mute_actuator.any():
        found.note(
            "ignored", f"actuators of disabled groups {listed(m, 'actuator', np.flatnonzero(found.mute_actuator))}"
        )
    for name, what in (("actuator_armature", "armature"), ("actuator_damping", "damping")):
        where = rows(array(m, name, count))
        if len(where):
            found.note("folded", f"{what} of actuator {listed(m, 'actuator', where)} -> its joint or tendon")


def _actuator_reason(m, mujoco, a: int, found: Findings) -> str:
    """Why actuator a is beyond an affine force on a joint or fixed tendon; empty if it is not."""
    reasons = []
    transmission, target = int(m.actuator_trntype[a]), int(m.actuator_trnid[a][0])
    on_joint = transmission in (TRN_JOINT, TRN_JOINT_IN_PARENT)
    scalar = on_joint and m.jnt_type[target] >= SLIDE
    if not (transmission in (TRN_JOINT, TRN_TENDON) or scalar):
        reasons.append(f"transmission '{enum_name(mujoco.mjtTrn, transmission)}'")
    if transmission == TRN_TENDON and not found.keep_tendon[target]:
        reasons.append("transmission through a spatial tendon")
    if enum_name(mujoco.mjtDyn, m.actuator_dyntype[a]) != "none":
        reasons.append(f"dynamics '{enum_name(mujoco.mjtDyn, m.actuator_dyntype[a])}'")
    gain, bias = (
        enum_name(e, v[a]) for e, v in ((mujoco.mjtGain, m.actuator_gaintype), (mujoco.mjtBias, m.actuator_biastype))
    )
    if gain not in ("fixed", "affine"):
        reasons.append(f"gain '{gain}'")
    elif gain == "affine" and np.any(m.actuator_gainprm[a, 1:3]):
        reasons.append("gain that depends on length or velocity")
    if bias not in ("none", "affine"):
        reasons.append(f"bias '{bias}'")
    elif bias == "affine" and on_joint and not scalar and m.actuator_biasprm[a, 1]:
        reasons.append("bias that depends on the length of a ball or free joint")
    if hasattr(m, "actuator_ctrlnum") and m.actuator_ctrlnum[a] != 1:
        reasons.append(f"{m.actuator_ctrlnum[a]} controls (actuator_ctrlnum)")
    if m.actuator_plugin[a] >= 0:
        reasons.append("plugin")
    for name in ("actuator_delay", "actuator_history", "actuator_dampingpoly"):
        if np.any(array(m, name, len(m.actuator_trntype))[a]):
            reasons.append(name)
    armature = array(m, "actuator_armature", len(m.actuator_trntype))[a]
    damping = array(m, "actuator_damping", len(m.actuator_trntype))[a]
    if on_joint and not scalar and (armature or damping):
        reasons.append("armature or damping on a ball or free joint")
    if transmission == TRN_TENDON and armature and m.tendon_num[target] != 1:
        reasons.append("armature on a tendon over several joints")
    return ", ".join(reasons)


def _equalities(m, mujoco, found: Findings) -> None:
    kind, active = np.asarray(m.eq_type), np.asarray(m.eq_active0) != 0
    active &= not found.disableflags & int(mujoco.mjtDisableBit.mjDSBL_EQUALITY)
    ends = np.stack([m.eq_obj1id, m.eq_obj2id], axis=1)
    spatial = np.append(~found.keep_tendon, False)  # -1: no second tendon
    through_space = (kind == EQ_TENDON) & spatial[np.where(kind == EQ_TENDON, ends.T, -1)].any(axis=0)
    found.keep_equality = (kind <= EQ_TENDON) & ~through_space
    for value in np.unique(kind):
        text = f"{enum_name(mujoco.mjtEq, value)} equality"
        for mask, told in ((through_space, " of spatial tendons"), (kind > EQ_TENDON, "")):
            if (refused := np.flatnonzero((kind == value) & active & mask)).size:
                found.refuse(f"{text}{told} {listed(m, 'eq', refused)}")
        off, on = ((kind == value) & ~active), (kind == value) & active & found.keep_equality
        if value == EQ_JOINT and (on | off).any():
            joints = np.asarray(m.eq_obj1id)[on | off]
            found.note("approximated", f"soft equality of joint {listed(m, 'jnt', joints)} -> rigid")
            continue
        if on.any():
            found.note("approximated", f"soft {text} {listed(m, 'eq', np.flatnonzero(on))} -> rigid")
        if off.any():
            found.note("ignored", f"inactive {text} {listed(m, 'eq', np.flatnonzero(off))}")


def _softness(m, found: Findings) -> None:
    """Impedances and margins that are not MuJoCo's defaults."""

    def soft(name_ref, name_imp, mask):
        ref, imp = np.asarray(getattr(m, name_ref)), np.asarray(getattr(m, name_imp))
        if not len(ref):
            return 0
        other = np.any(ref != DEFAULT_SOLREF, axis=1) | np.any(imp != DEFAULT_SOLIMP, axis=1)
        return int(np.sum(other & mask))

    tendon_limited = (np.asarray(m.tendon_limited) != 0) & found.keep_tendon
    for text, count in (
        ("contact of geoms", soft("geom_solref", "geom_solimp", found.colliding)),
        ("contact of pairs", soft("pair_solref", "pair_solimp", np.ones(m.npair, bool))),
        ("limits of joints", soft("jnt_solref", "jnt_solimp", np.asarray(m.jnt_limited) != 0)),
        ("limits of tendons", soft("tendon_solref_lim", "tendon_solimp_lim", tendon_limited)),
        ("dry friction of dofs", soft("dof_solref", "dof_solimp", np.asarray(m.dof_frictionloss) != 0)),
    ):
        if count:
            found.note("approximated", f"solref/solimp of {text} ({count}) -> rigid")
    for text, values in (
        ("geoms", (np.asarray(m.geom_margin) + np.abs(m.geom_gap))[found.colliding]),
        ("pairs", np.asarray(m.pair_margin) + np.abs(m.pair_gap)),
        ("joint limits", np.asarray(m.jnt_margin)[np.asarray(m.jnt_limited) != 0]),
        ("tendon limits", np.asarray(m.tendon_margin)[tendon_limited]),
    ):
        if np.any(values):
            found.note("approximated", f"margin or gap of {text} ({np.count_nonzero(values)}) -> detection only")
