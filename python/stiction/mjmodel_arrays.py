"""The arrays of a stiction model from a compiled MjModel (mujoco 3.17 to 4.x), after `mjmodel_features.examine`."""

from __future__ import annotations

import numpy as np

from .mjmodel_features import Findings, array, listed, names_of
from .mujoco_numbers import EQ_TENDON, EQ_WELD, FREE, HFIELD, MESH, SDF, TRN_JOINT_IN_PARENT, TRN_TENDON

COPIED = """
    body_parentid body_weldid body_jntadr body_jntnum body_dofadr body_dofnum body_pos body_quat body_ipos body_iquat
    body_mass body_inertia body_gravcomp
    jnt_type jnt_bodyid jnt_qposadr jnt_dofadr jnt_limited jnt_actfrclimited jnt_pos jnt_axis jnt_stiffness jnt_range
    jnt_actfrcrange dof_bodyid dof_jntid dof_armature dof_damping dof_frictionloss qpos0 qpos_spring
    geom_type geom_bodyid geom_contype geom_conaffinity geom_condim geom_priority geom_size geom_pos geom_quat
    geom_friction site_bodyid site_pos site_quat key_qpos key_qvel
""".split()


def model_arrays(m, found: Findings, mujoco) -> dict:
    """The dictionary for ``_core.Model.from_arrays``; what ``found`` lists as unsupported is left out."""
    out = {name: np.array(getattr(m, name)) for name in COPIED}
    out.update(nq=m.nq, nv=m.nv, nbody=m.nbody, njnt=m.njnt, ngeom=m.ngeom, nsite=m.nsite, nkey=m.nkey)
    out.update(timestep=float(m.opt.timestep), gravity=np.array(m.opt.gravity), disableflags=found.disableflags)
    names = ("body", "joint", "geom", "site", "key"), ("body", "jnt", "geom", "site", "key")
    out.update({f"{ours}_names": names_of(m, theirs) for ours, theirs in zip(*names, strict=True)})
    # Free joints have no dry friction here: refused unless zero.
    out["dof_frictionloss"][np.isin(out["dof_jntid"], np.flatnonzero(out["jnt_type"] == FREE))] = 0
    # A mocap body is its own weld root in some versions; here it stands still like any other without joints.
    for body in range(1, m.nbody):
        if out["body_jntnum"][body] == 0:
            out["body_weldid"][body] = out["body_weldid"][out["body_parentid"][body]]
    _mocap_bodies(m, found, out)
    _geoms(m, found, out, mujoco)
    _pairs(m, found, out)
    _tendons(m, found, out)
    _equalities(m, found, out, mujoco)
    _actuators(m, found, out)
    return out


def _mocap_bodies(m, found: Findings, out: dict) -> None:
    kept = np.flatnonzero(found.keep_mocap)
    number = np.append(np.where(found.keep_mocap, np.cumsum(found.keep_mocap) - 1, -1), -1)
    out.update(nmocap=len(kept), body_mocapid=number[np.asarray(m.body_mocapid)])
    for name, width in (("mpos", 3), ("mquat", 4)):
        poses = np.asarray(getattr(m, f"key_{name}")).reshape(m.nkey, m.nmocap, width)
        out[f"key_{name}"] = poses[:, kept].reshape(m.nkey, width * len(kept))


def _geoms(m, found: Findings, out: dict, mujoco) -> None:
    hulls, slots = [], {}
    dataid = np.full(m.ngeom, -1, np.int32)
    paired = np.zeros(m.ngeom, bool)
    paired[np.asarray(m.pair_geom1, int)] = paired[np.asarray(m.pair_geom2, int)] = True
    contact = paired | (out["geom_contype"] != 0) | (out["geom_conaffinity"] != 0)
    for geom in np.flatnonzero((out["geom_type"] == MESH) & contact):
        mesh = int(m.geom_dataid[geom])
        if mesh not in slots:
            hull = convex_hull(m, mesh, mujoco)
            if hull is None:
                found.refuse(
                    f"mesh {listed(m, 'mesh', [mesh])} of colliding geom {listed(m, 'geom', [geom])} has no convex hull"
                )
            else:
                hulls.append(hull)
            slots[mesh] = -1 if hull is None else len(hulls) - 1
        dataid[geom] = slots[mesh]
        found.keep_geom_contact[geom] &= dataid[geom] >= 0
    out["geom_dataid"] = dataid
    out["geom_type"][out["geom_type"] == SDF] = MESH
    for name in ("geom_contype", "geom_conaffinity"):
        out[name][~found.keep_geom_contact] = 0
    out["geom_stiffness"] = np.zeros(m.ngeom)
    out["geom_dissipation"] = np.zeros(m.ngeom)
    out["geom_restitution"] = np.zeros(m.ngeom)
    # Sizes of what cannot collide are for pictures only; those of a heightfield or mesh are its bounding box.
    out["geom_size"][out["geom_type"] == HFIELD] = 0
    _meshes(hulls, out)


def _meshes(hulls: list, out: dict) -> None:
    out["nmesh"] = len(hulls)
    if not hulls:
        return
    counts = [len(vertices) for vertices, _ in hulls]
    degrees = [len(n) for _, neighbours in hulls for n in neighbours]
    out["mesh_vertnum"] = np.array(counts, np.int32)
    out["mesh_vertadr"] = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int32)
    out["mesh_vert"] = np.concatenate([vertices for vertices, _ in hulls])
    out["mesh_edgeadr"] = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32)
    out["mesh_edge"] = np.array([v for _, neighbours in hulls for n in neighbours for v in n], np.int32)


def convex_hull(m, mesh: int, mujoco):
    """(vertices (n, 3), neighbour lists) of a mesh's hull in its geom's frame; None where it has none (flat meshes)."""
    start = int(m.mesh_graphadr[mesh])
    if start < 0:
        return _computed_hull(m, mesh, mujoco)
    graph = np.asarray(m.mesh_graph)
    count, faces = int(graph[start]), int(graph[start + 1])
    at = start + 2
    edge_start, ids = graph[at : at + count], graph[at + count : at + 2 * count]
    edges = graph[at + 2 * count : at + 3 * count + 3 * faces]
    neighbours = []
    for first in edge_start:
        last = first + int(np.argmax(edges[first:] == -1))
        neighbours.append([int(v) for v in edges[first:last]])
    vertices = np.asarray(m.mesh_vert, np.float64)[int(m.mesh_vertadr[mesh]) + ids]
    return vertices, neighbours


def _computed_hull(m, mesh: int, mujoco):
    """The hull of a mesh that MuJoCo compiled without one: its vertices, compiled again as a colliding mesh."""
    first = int(m.mesh_vertadr[mesh])
    vertices = np.asarray(m.mesh_vert)[first : first + int(m.mesh_vertnum[mesh])]
    spec = mujoco.MjSpec()
    spec.add_mesh(name="hull", uservert=vertices.flatten().tolist())
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="hull")
    try:
        compiled = spec.compile()
    except ValueError:
        return None
    if compiled.mesh_graphadr[0] < 0:
        return None
    # Compilation centres and turns the mesh; mesh_pos and mesh_quat say how.
    points, neighbours = convex_hull(compiled, 0, mujoco)
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, compiled.mesh_quat[0])
    return points @ rotation.reshape(3, 3).T + compiled.mesh_pos[0], neighbours


def _pairs(m, found: Findings, out: dict) -> None:
    first, second = np.asarray(m.pair_geom1, int), np.asarray(m.pair_geom2, int)
    keep = found.keep_geom_contact[first] & found.keep_geom_contact[second]
    out.update(npair=int(keep.sum()), pair_geom1=first[keep], pair_geom2=second[keep])
    out.update(pair_condim=np.asarray(m.pair_dim)[keep], pair_friction=np.asarray(m.pair_friction)[keep][:, [0, 2, 3]])
    signature = np.asarray(m.exclude_signature)
    out.update(nexclude=m.nexclude, exclude_body1=signature >> 16, exclude_body2=signature & 0xFFFF)


def _tendons(m, found: Findings, out: dict) -> None:
    kept = np.flatnonzero(found.keep_tendon)
    wraps = [w for t in kept for w in range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t])]
    num = np.asarray(m.tendon_num)[kept]
    out.update(ntendon=len(kept), nwrap=len(wraps), tendon_num=num, tendon_adr=np.cumsum(num) - num)
    out.update(wrap_jntid=np.asarray(m.wrap_objid)[wraps], wrap_coef=np.asarray(m.wrap_prm)[wraps])
    for name in ("stiffness", "damping", "frictionloss", "lengthspring", "range", "limited"):
        out[f"tendon_{name}"] = np.array(getattr(m, f"tendon_{name}"))[kept]
    out["tendon_actfrclimited"] = found.keep_force_range[kept]
    out["tendon_actfrcrange"] = array(m, "tendon_actfrcrange", (m.ntendon, 2))[kept]
    names = names_of(m, "tendon")
    out["tendon_names"] = [names[t] for t in kept]
    for tendon, armature in enumerate(np.asarray(m.tendon_armature)):
        _fold_armature(m, tendon, armature, out)


def _fold_armature(m, tendon: int, armature: float, out: dict) -> None:
    """A tendon over one joint adds coef^2 armature to that joint's dof."""
    if armature and m.tendon_num[tendon] == 1:
        wrap = m.tendon_adr[tendon]
        if m.wrap_type[wrap] == 1:
            out["dof_armature"][m.jnt_dofadr[m.wrap_objid[wrap]]] += m.wrap_prm[wrap] ** 2 * armature


def _equalities(m, found: Findings, out: dict, mujoco) -> None:
    kept = np.flatnonzero(found.keep_equality)
    kind, ends = np.array(m.eq_type)[kept], np.stack([m.eq_obj1id, m.eq_obj2id], axis=1)[kept]
    data = np.array(m.eq_data)[kept, :11]
    tendon_number = np.cumsum(found.keep_tendon) - 1
    on_tendon = (kind == EQ_TENDON)[:, None] & (ends >= 0)
    ends[on_tendon] = tendon_number[ends[on_tendon]]
    of_sites = (kind <= EQ_WELD) & (np.asarray(m.eq_objtype)[kept] == int(mujoco.mjtObj.mjOBJ_SITE))
    for i in np.flatnonzero(of_sites):
        data[i] = _between_bodies(m, kind[i], *ends[i], data[i], mujoco)
        ends[i] = np.asarray(m.site_bodyid)[ends[i]]
    out.update(neq=len(kept), eq_type=kind, eq_obj1id=ends[:, 0], eq_obj2id=ends[:, 1], eq_data=data)
    out["eq_active"] = np.asarray(m.eq_active0)[kept]


def _between_bodies(m, kind: int, site1: int, site2: int, data: np.ndarray, mujoco) -> np.ndarray:
    """The data of a connect or weld of two sites as of their bodies; a weld's rotation has the axes of body 2."""
    if kind != EQ_WELD:
        return np.concatenate([m.site_pos[site1], m.site_pos[site2], data[6:]])
    back, relative = np.zeros(4), np.zeros(4)
    mujoco.mju_negQuat(back, m.site_quat[site2])
    mujoco.mju_mulQuat(relative, m.site_quat[site1], back)
    return np.concatenate([m.site_pos[site2], m.site_pos[site1], relative, data[10:]])


def _actuators(m, found: Findings, out: dict) -> None:
    kept = np.flatnonzero(found.keep_actuator)
    count = len(found.keep_actuator)
    controls = (np.asarray(m.actuator_ctrladr) if hasattr(m, "actuator_ctrladr") else np.arange(count))[kept]
    outputs = (np.asarray(m.actuator_outadr) if hasattr(m, "actuator_outadr") else np.arange(count))[kept]
    kind, target = np.array(m.actuator_trntype)[kept], np.array(m.actuator_trnid)[kept, 0]
    gear = np.array(m.actuator_gear)[outputs]
    _fold_actuator_inertia(m, kept, kind, target, gear, out)
    kind[kind == TRN_JOINT_IN_PARENT] = 0  # the same thing on the hinges and slides that may have it
    tendon_number = np.cumsum(found.keep_tendon) - 1
    on_tendon = kind == TRN_TENDON
    target[on_tendon] = tendon_number[target[on_tendon]]
    affine = np.asarray(m.actuator_biastype)[kept] != 0
    bias = np.where(affine[:, None], np.asarray(m.actuator_biasprm)[kept, :3], 0.0)
    gain = np.array(m.actuator_gainprm)[kept, 0]
    muted = found.mute_actuator[kept]
    bias[muted], gain[muted] = 0, 0
    names = names_of(m, "actuator")
    out.update(nu=len(kept), actuator_trntype=kind, actuator_trnid=target, actuator_gear=gear)
    out.update(actuator_gainprm=gain, actuator_biasprm=bias, actuator_names=[names[a] for a in kept])
    for name in ("ctrllimited", "ctrlrange"):
        out[f"actuator_{name}"] = np.array(getattr(m, f"actuator_{name}"))[controls]
    for name in ("forcelimited", "forcerange"):
        out[f"actuator_{name}"] = np.array(getattr(m, f"actuator_{name}"))[kept]
    out["key_ctrl"] = np.array(m.key_ctrl).reshape(m.nkey, m.nu)[:, controls]


def _fold_actuator_inertia(m, kept, kind, target, gear, out: dict) -> None:
    """Reflected armature and damping of an actuator: gear^2 times, on its joint's dof or its tendon."""
    count = len(m.actuator_trntype)
    armature, damping = array(m, "actuator_armature", count), array(m, "actuator_damping", count)
    tendon_slot = {name: i for i, name in enumerate(np.flatnonzero([m.wrap_type[a] == 1 for a in m.tendon_adr]))}
    for i, a in enumerate(kept):
        square = gear[i, 0] ** 2
        if kind[i] == TRN_TENDON:
            _fold_armature(m, target[i], square * armature[a], out)
            out["tendon_damping"][tendon_slot[target[i]]] += square * damping[a]
        elif armature[a] or damping[a]:
            dof = m.jnt_dofadr[target[i]]
            out["dof_armature"][dof] += square * armature[a]
            out["dof_damping"][dof] += square * damping[a]
