"""stiction.Model: import through mujoco field by field, refusals by name, archives, no file left behind."""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from model_sources import HINGE, MENAGERIE, ROOT, body, data_file, scene  # noqa: E402
from model_sources import ROBOTS as NAMED_ROBOTS  # noqa: E402
from stiction.model import Model, UnsupportedModelError  # noqa: E402

ROBOTS = [*NAMED_ROBOTS, MENAGERIE + "shadow_hand/scene_right.xml"]

# Fields that must be MuJoCo's own, bit for bit, when nothing is folded or dropped.
SAME = """
    body_parentid body_weldid body_jntadr body_jntnum body_dofadr body_dofnum body_pos body_quat body_ipos body_iquat
    body_mass body_inertia body_gravcomp body_mocapid jnt_type jnt_bodyid jnt_qposadr jnt_dofadr jnt_limited
    jnt_actfrclimited
    jnt_pos jnt_axis jnt_stiffness jnt_range jnt_actfrcrange dof_bodyid dof_jntid dof_armature dof_damping
    dof_frictionloss qpos0 qpos_spring geom_type geom_bodyid geom_contype geom_conaffinity geom_condim
    geom_priority geom_size geom_pos
    geom_quat geom_friction pair_geom1 pair_geom2 site_bodyid site_pos site_quat tendon_num tendon_stiffness
    tendon_damping tendon_frictionloss tendon_lengthspring tendon_range tendon_limited tendon_actfrclimited
    tendon_actfrcrange actuator_trntype actuator_gear
    actuator_ctrllimited actuator_ctrlrange actuator_forcelimited actuator_forcerange key_qpos key_qvel key_ctrl
""".split()


def support(points, direction):
    return float(np.max(points @ direction))


# ---- what is read


@pytest.mark.parametrize("name", ROBOTS)
def test_robot_equals_its_mjmodel(name):
    model = Model.from_mjcf(data_file(name))
    compiled = model.mjmodel
    for field in SAME:
        expected = np.asarray(getattr(compiled, field))
        np.testing.assert_array_equal(getattr(model, field), expected.astype(float), err_msg=field)
    for size in ("nq", "nv", "nu", "nbody", "njnt", "ngeom", "nsite", "ntendon", "nkey", "npair", "nexclude"):
        assert getattr(model, size) == getattr(compiled, size), size
    for field in ("eq_type", "eq_obj1id", "eq_obj2id", "eq_data"):
        expected = getattr(compiled, field)
        np.testing.assert_array_equal(
            getattr(model, field), expected[:, :11] if field == "eq_data" else expected, err_msg=field
        )
    affine = (compiled.actuator_biastype == mujoco.mjtBias.mjBIAS_AFFINE)[:, None]
    np.testing.assert_array_equal(model.actuator_biasprm, compiled.actuator_biasprm[:, :3] * affine)
    np.testing.assert_array_equal(model.actuator_gainprm, compiled.actuator_gainprm[:, 0])
    np.testing.assert_array_equal(model.actuator_trnid, compiled.actuator_trnid[:, 0])
    assert model.timestep == compiled.opt.timestep
    np.testing.assert_array_equal(model.gravity, compiled.opt.gravity)
    assert model.body_names == [compiled.body(i).name for i in range(compiled.nbody)]
    assert model.actuator_names == [compiled.actuator(i).name for i in range(compiled.nu)]


@pytest.mark.parametrize(
    "name", [MENAGERIE + "franka_emika_panda/panda.physics.xml", "brax/brax/test_data/convex_convex.xml"]
)
def test_mesh_hull_supports_the_whole_mesh_and_its_neighbours_lead_there(name):
    model = Model.from_mjcf(data_file(name))
    compiled = model.mjmodel
    rng = np.random.default_rng(0)
    colliding = [g for g in range(model.ngeom) if model.geom_dataid[g] >= 0]
    assert colliding
    for geom in colliding:
        mesh = compiled.geom_dataid[geom]
        start = compiled.mesh_vertadr[mesh]
        whole = compiled.mesh_vert[start : start + compiled.mesh_vertnum[mesh]].astype(float)
        hull = model.geom_dataid[geom]
        first, count = model.mesh_vertadr[hull], model.mesh_vertnum[hull]
        points = model.mesh_vert[first : first + count]
        for direction in rng.normal(size=(50, 3)):
            best = support(whole, direction)
            assert support(points, direction) == pytest.approx(best, abs=1e-9)
            vertex = int(rng.integers(count))
            while True:  # walk uphill along the hull's edges
                adr = model.mesh_edgeadr[first + vertex : first + vertex + 2]
                around = model.mesh_edge[adr[0] : adr[1]]
                higher = around[np.argmax(points[around] @ direction)]
                if points[higher] @ direction <= points[vertex] @ direction:
                    break
                vertex = int(higher)
            # Nearly flat patches may stop a walk within MuJoCo's float vertices.
            assert points[vertex] @ direction == pytest.approx(best, abs=1e-6)


def test_hull_is_computed_where_mujoco_compiled_none():
    rng = np.random.default_rng(1)
    vertices = " ".join(f"{x:.6f}" for x in (rng.normal(size=(40, 3)) * (0.1, 0.2, 0.4) + (0.3, 0, 0)).ravel())
    text = (
        f'<mujoco><asset><mesh name="m" vertex="{vertices}"/></asset><worldbody><geom type="plane" size="1 1 1"/>'
        '<body><freejoint/><geom type="mesh" mesh="m" contype="{0}" conaffinity="{0}"/></body></worldbody></mujoco>'
    )
    compiled = mujoco.MjModel.from_xml_string(text.format(0))
    compiled.geom_contype[:] = compiled.geom_conaffinity[:] = 1
    compiled.mesh_graphadr[:] = -1  # as for a mesh that was visual when it was compiled, in some versions
    computed, given = Model.from_mjmodel(compiled), Model.from_mjcf(text.format(1))
    for direction in rng.normal(size=(200, 3)):
        assert support(computed.mesh_vert, direction) == pytest.approx(support(given.mesh_vert, direction), abs=1e-6)


def test_springs_and_limits_of_ball_and_free_joints_are_read():
    joints = '<joint name="{}" type="{}" stiffness="3" {}/>'
    text = scene(
        body(joints.format("free", "free", ""), "a")
        + body(joints.format("ball", "ball", 'limited="true" range="0 60"'), "b")
    )
    compiled = mujoco.MjModel.from_xml_string(text)
    compiled.qpos_spring[:] = [1, 2, 3, 0.6, 0, 0.8, 0, 0, 1, 0, 0]
    model = Model.from_mjmodel(compiled)
    assert model.jnt_stiffness.tolist() == [3, 3] and model.jnt_limited.tolist() == [0, 1]
    np.testing.assert_array_equal(model.qpos_spring, compiled.qpos_spring)
    np.testing.assert_allclose(model.jnt_range[1], [0, np.pi / 3])


def test_colliding_mesh_without_hull_is_refused_by_name():
    text = (
        '<mujoco><asset><mesh name="sheet" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>'
        '<geom type="plane" size="1 1 1"/><body><freejoint/><geom type="mesh" mesh="sheet"/></body>'
        "</worldbody></mujoco>"
    )
    compiled = mujoco.MjModel.from_xml_string(text)
    compiled.mesh_graphadr[:] = -1
    compiled.mesh_vert[:, 2] = 0
    with pytest.raises(UnsupportedModelError, match="mesh 'sheet' of colliding geom #1 has no convex hull"):
        Model.from_mjmodel(compiled)
    with pytest.warns(UserWarning, match="sheet"):
        model = Model.from_mjmodel(compiled, unsupported="warn")
    assert model.nmesh == 0 and model.geom_contype.tolist() == [1, 0]


def test_visual_meshes_are_not_imported():
    text = (
        '<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody><body><freejoint/>'
        '<geom size="1"/><geom type="mesh" mesh="m" contype="0" conaffinity="0"/></body></worldbody></mujoco>'
    )
    model = Model.from_mjcf(text)
    assert model.nmesh == 0 and model.geom_dataid.tolist() == [-1, -1] and model.geom_type.tolist() == [2, 7]


def test_small_scene_is_what_the_builders_test_expects():
    """tests/host/model/builder_test.cpp builds the same scene in C++ and compares it with the same arrays."""
    folder = ROOT / "tests" / "host" / "model"
    arrays = Model.from_mjcf(folder / "small_scene.xml").to_arrays()
    lines = [line.split() for line in (folder / "small_scene.arrays").read_text().splitlines()]
    assert {line[0] for line in lines} == set(arrays)
    for name, *entries in lines:
        if name.endswith("_names"):
            assert [entry or "-" for entry in arrays[name]] == entries
        else:
            np.testing.assert_allclose(
                np.ravel(arrays[name]), [float(e) for e in entries], rtol=0, atol=1e-15, err_msg=name
            )


def test_disable_flags_are_ours_and_constraint_means_all_four():
    flags = '<option><flag {}="disable" warmstart="disable"/></option>'
    gravity = Model.from_mjcf(HINGE.format(flags.format("gravity")))
    assert gravity.disableflags == 1 << 7
    constraint = Model.from_mjcf(HINGE.format(flags.format("constraint")))
    assert constraint.disableflags == 0b11110


def test_reflected_armature_and_damping_are_folded_like_mujoco_does():
    text = scene(
        body('<joint name="j" armature="0.5" damping="0.25"/>' + body('<joint name="k" axis="0 1 0"/>', "c"), "b"),
        '<tendon><fixed name="one" armature="0.3"><joint joint="k" coef="2"/></fixed></tendon><actuator>'
        '<motor joint="j" gear="3" armature="0.1" damping="0.2"/><motor joint="j" gear="2" armature="0.1"/>'
        '<motor tendon="one" gear="2" armature="0.7" damping="0.11"/></actuator>',
    )
    model = Model.from_mjcf(text)
    plain = mujoco.MjModel.from_xml_string(text)
    folded = mujoco.MjModel.from_xml_string(text)
    folded.actuator_armature[:] = folded.actuator_damping[:] = folded.tendon_armature[:] = 0
    folded.dof_armature[:], folded.dof_damping[:] = model.dof_armature, model.dof_damping
    folded.tendon_damping[:] = model.tendon_damping
    results = []
    for compiled in (plain, folded):
        data = mujoco.MjData(compiled)
        data.qpos[:], data.qvel[:] = 0.3, (1.0, 2.0)
        mujoco.mj_forward(compiled, data)
        dense = np.zeros((2, 2))
        mujoco.mj_fullM(compiled, data, dense)
        results.append((dense, data.qfrc_passive.copy()))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-14)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-14)
    assert any(line.startswith("folded: armature of actuator") for line in model.import_report)


def test_disabled_actuator_groups_give_no_force():
    text = HINGE.format('<option actuatorgroupdisable="2"/><actuator><position joint="j" kp="5" group="2"/></actuator>')
    model = Model.from_mjcf(text)
    assert model.nu == 1 and model.actuator_gainprm[0] == 0 and not model.actuator_biasprm.any()


# ---- what is accepted and reported


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (HINGE.format('<option integrator="RK4"/>'), "approximated: integrator 'rk4'"),
        (HINGE.format('<option cone="elliptic" impratio="10"/>'), "approximated: cone 'elliptic' with impratio 10"),
        (HINGE.format('<option wind="1 0 0"/>'), "ignored: wind"),
        (
            scene(body('<joint name="leg" type="slide" stiffness="500" damping=".5"/>')),
            "spring of joint 'leg': 'implicit'",
        ),
        (scene(body('<freejoint/><geom size="1" condim="1"/>') + '<geom type="plane" size="1 1 1"/>'), "condim 1 of 1"),
        (
            scene(body('<freejoint/><geom size="1" margin=".1"/>') + '<geom type="plane" size="1 1 1"/>'),
            "margin or gap of geoms (1)",
        ),
        (
            scene(body('<freejoint/><geom size="1" solref="-9 -1"/>') + '<geom type="plane" size="1 1 1"/>'),
            "contact of geoms (1)",
        ),
        (scene(body('<joint range="-1 1" solimplimit="0 0.9 0.01"/>')), "limits of joints (1)"),
        (HINGE.format('<equality><joint joint1="j"/></equality>'), "approximated: soft equality of joint 'j'"),
        (HINGE.format('<equality><weld body1="b" active="false"/></equality>'), "ignored: inactive weld equality"),
        (
            HINGE.format('<equality><connect name="pin" body1="b" anchor="0 0 0"/></equality>'),
            "approximated: soft connect equality 'pin' -> rigid",
        ),
        (
            HINGE.format('<option><flag equality="disable"/></option><equality><weld name="w" body1="b"/></equality>'),
            "ignored: inactive weld equality 'w'",
        ),
        (
            HINGE.format('<tendon><spatial name="w"><site site="s"/><site site="t"/></spatial></tendon>'),
            "ignored: spatial tendon without effect 'w'",
        ),
    ],
)
def test_approximation_is_reported(text, line):
    report = Model.from_mjcf(text).import_report
    assert any(line in entry for entry in report), report


# ---- what is refused

ACTUATOR = "<actuator>{}</actuator>"
SPATIAL = '<tendon><spatial name="w" {}><site site="s"/><site site="t"/></spatial></tendon>'
SDF = (
    '<mujoco><extension><plugin plugin="mujoco.sdf.torus"><instance name="i"/></plugin></extension>'
    '<asset><mesh name="m"><plugin instance="i"/></mesh></asset><worldbody><geom type="plane" size="1 1 1"/>'
    '<body><freejoint/><geom name="doughnut" type="sdf" mesh="m"><plugin instance="i"/></geom>'
    "</body></worldbody></mujoco>"
)
REFUSED = {
    "tendon equality": (
        HINGE.format(
            '<tendon><fixed name="f"><joint joint="j" coef="1"/></fixed>'
            '<spatial name="w"><site site="s"/><site site="t"/></spatial></tendon>'
            '<equality><tendon name="pull" tendon1="f" tendon2="w"/></equality>'
        ),
        "tendon equality of spatial tendons 'pull'",
    ),
    "spatial tendon": (HINGE.format(SPATIAL.format('stiffness="1"')), "spatial tendon 'w'"),
    "spatial limit": (HINGE.format(SPATIAL.format('range="0 1"')), "spatial tendon 'w'"),
    "spatial actuator": (
        HINGE.format(SPATIAL.format("") + ACTUATOR.format('<motor name="m" tendon="w"/>')),
        "actuator 'm': transmission through a spatial tendon",
    ),
    "integrator dynamics": (
        HINGE.format(ACTUATOR.format('<intvelocity name="m" joint="j" kp="1" actrange="-1 1"/>')),
        "dynamics 'integrator'",
    ),
    "filter": (
        HINGE.format(ACTUATOR.format('<general name="m" joint="j" dyntype="filter"/>')),
        "'m': dynamics 'filter'",
    ),
    "muscle": (HINGE.format(ACTUATOR.format('<muscle name="m" joint="j" lengthrange="0 1"/>')), "gain 'muscle'"),
    "damper": (
        HINGE.format(ACTUATOR.format('<damper name="m" joint="j" kv="1" ctrlrange="0 1"/>')),
        "gain that depends on length or velocity",
    ),
    "site": (HINGE.format(ACTUATOR.format('<motor name="m" site="s"/>')), "'m': transmission 'site'"),
    "adhesion": (HINGE.format(ACTUATOR.format('<adhesion name="m" body="b" ctrlrange="0 1"/>')), "transmission 'body'"),
    "slidercrank": (
        HINGE.format(ACTUATOR.format('<motor name="m" cranksite="s" slidersite="t" cranklength="2"/>')),
        "transmission 'slidercrank'",
    ),
    "fluid": (HINGE.format('<option density="1.2"/>'), "fluid (density 1.2"),
    "override": (HINGE.format('<option><flag override="enable"/></option>'), "enable flag 'override'"),
    "mocap contact": (
        scene('<body mocap="true"><geom name="palm" size="1"/></body>' + body('<freejoint/><geom size="1"/>')),
        "motion of a mocap body that touches: geom 'palm' (contype and conaffinity 0 let it move)",
    ),
    "mocap joint": (
        scene('<body name="hand" mocap="true"><body name="finger"><joint/><geom size="1"/></body></body>'),
        "motion of a mocap body that carries joints: body 'finger'",
    ),
    "free friction": (scene(body('<joint name="r" type="free" frictionloss="1"/>')), "frictionloss of free joint 'r'"),
    "heightfield": (
        scene(
            '<geom name="hills" type="hfield" hfield="h"/>' + body('<freejoint/><geom size="1"/>'),
            '<asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/></asset>',
        ),
        "heightfield: declared, not supported yet: geom 'hills'",
    ),
    "sdf": (SDF, "signed distance field geom 'doughnut'"),
    "pair friction": (
        scene(
            body('<freejoint/><geom name="a" size="1"/>') + '<geom name="p" type="plane" size="1 1 1"/>',
            '<contact><pair name="ap" geom1="a" geom2="p" friction="1 0.5 0 0 0"/></contact>',
        ),
        "anisotropic friction of pair 'ap'",
    ),
    "tendon armature": (
        scene(
            body('<joint name="j"/>' + body('<joint name="k"/>', "c")),
            '<tendon><fixed name="f" armature="1"><joint joint="j" coef="1"/><joint joint="k" coef="1"/></fixed>'
            "</tendon>",
        ),
        "armature of a tendon over several joints 'f'",
    ),
    "tendon force range": (
        HINGE.format(
            '<tendon><fixed name="f" actuatorfrcrange="-1 1"><joint joint="j" coef="1"/></fixed></tendon>'
            '<actuator><motor tendon="f"/><motor tendon="f" gear="2"/></actuator>'
        ),
        "force range over several actuators with different gears, or force ranges of their own, of tendon 'f'",
    ),
    "flex": (
        scene('<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" mass="1" dim="2"/>'),
        "flex 'cloth'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusal_names_the_feature(case):
    text, name = REFUSED[case]
    with pytest.raises(UnsupportedModelError) as raised:
        Model.from_mjcf(text)
    assert name in str(raised.value)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize("case", REFUSED)
def test_warn_drops_the_feature_and_says_so(case):
    text, name = REFUSED[case]
    with pytest.warns(UserWarning, match="dropped"):
        model = Model.from_mjcf(text, unsupported="warn")
    assert any(line.startswith("dropped: ") and name in line for line in model.import_report), model.import_report
    assert model.nu == 0 or case not in ("site", "muscle", "damper", "filter", "adhesion", "slidercrank")


# Fields some version of mujoco lacks, made non-zero on the compiled model.
POKED = {
    "geom_adhesion": "adhesion (geom_adhesion) of 'p'",
    "geom_surfacevel": "surface velocity (geom_surfacevel) of 'p'",
    "jnt_stiffnesspoly": "polynomial stiffness (jnt_stiffnesspoly) of 'j'",
    "jnt_springyield": "plastic spring (jnt_springyield) of 'j'",
    "dof_dampingpoly": "polynomial damping (dof_dampingpoly) of 'j'",
    "tendon_stiffnesspoly": "polynomial stiffness of tendon (tendon_stiffnesspoly) of 'f'",
    "tendon_dampingpoly": "polynomial damping of tendon (tendon_dampingpoly) of 'f'",
    "tendon_springyield": "plastic spring of tendon (tendon_springyield) of 'f'",
    "pair_adhesion": "adhesion (pair_adhesion) of 'bp'",
    "actuator_dampingpoly": "actuator 'm': actuator_dampingpoly",
    "actuator_delay": "actuator 'm': actuator_delay",
    "actuator_history": "actuator 'm': actuator_history",
    "actuator_ctrlnum": "actuator 'm': 2 controls",
}


def poke_scene():
    return mujoco.MjModel.from_xml_string(
        scene(
            body('<joint name="j"/><geom name="ball" size="1"/>') + '<geom name="p" type="plane" size="1 1 1"/>',
            '<contact><pair name="bp" geom1="ball" geom2="p"/></contact>'
            '<tendon><fixed name="f"><joint joint="j" coef="1"/></fixed></tendon>'
            '<actuator><motor name="m" joint="j"/></actuator>',
        )
    )


@pytest.mark.parametrize("field", POKED)
def test_new_field_is_refused_when_it_is_not_zero(field):
    compiled = poke_scene()
    if not hasattr(compiled, field):
        pytest.skip(f"this mujoco has no {field}")
    Model.from_mjmodel(compiled)
    getattr(compiled, field)[:1] = 2
    with pytest.raises(UnsupportedModelError) as raised:
        Model.from_mjmodel(compiled)
    assert raised.value.features == [POKED[field]] or POKED[field] in str(raised.value)


@pytest.mark.parametrize("flag", ["SLEEP", "IPC", "SPECULATIVE", "DIAGEXACT"])
def test_enable_flag_is_refused(flag):
    bit = getattr(mujoco.mjtEnableBit, f"mjENBL_{flag}", None)
    if bit is None:
        pytest.skip(f"this mujoco has no flag {flag}")
    compiled = poke_scene()
    compiled.opt.enableflags = int(bit)
    with pytest.raises(UnsupportedModelError, match=f"enable flag '{flag.lower()}'"):
        Model.from_mjmodel(compiled)


def test_one_error_names_every_feature():
    text = scene(
        '<body mocap="true"><body name="hand"><joint/><geom size="1"/></body></body>'
        + body('<joint name="j"/><site name="s"/>')
        + body('<joint name="k" type="free" frictionloss="1"/>', "c"),
        '<option density="1"/><actuator><motor name="m" site="s"/></actuator>',
    )
    with pytest.raises(UnsupportedModelError) as raised:
        Model.from_mjcf(text)
    assert len(raised.value.features) == 4
    for part in ("motion of a mocap body that carries joints: body 'hand'", "fluid", "free joint 'k'", "actuator 'm'"):
        assert part in str(raised.value)


def test_a_mocap_body_whose_motion_is_dropped_stands_still_and_touches():
    text = scene('<body mocap="true"><geom name="palm" size="1"/></body>' + body('<freejoint/><geom size=".1"/>'))
    with pytest.warns(UserWarning, match="dropped motion of a mocap body that touches: geom 'palm'"):
        model = Model.from_mjcf(text, unsupported="warn")
    assert model.nmocap == 0 and model.geom_contype.tolist() == [1, 1]


def test_dropped_actuator_takes_its_controls_with_it():
    text = HINGE.format(
        '<actuator><motor name="a" site="s" ctrlrange="-9 9"/><motor name="b" joint="j" ctrlrange="-2 2"/></actuator>'
        '<keyframe><key ctrl="3 4"/></keyframe>'
    )
    with pytest.warns(UserWarning):
        model = Model.from_mjcf(text, unsupported="warn")
    assert (
        model.actuator_names == ["b"]
        and model.actuator_ctrlrange.tolist() == [[-2, 2]]
        and model.key_ctrl.tolist() == [[4]]
    )
