"""stiction.Model: URDF, files and archives, errors, arrays and names."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from model_sources import HINGE, ROOT, body, data_file, scene  # noqa: E402
from stiction.import_table import classify  # noqa: E402
from stiction.import_table import main as import_table  # noqa: E402
from stiction.model import Model  # noqa: E402

# ---- URDF

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
URDF = f"""<?xml version="1.0"?><!-- <mujoco> --><robot name="arm"><link name="base"/>
<link name="upper">{INERTIAL}</link><link name="lower">{INERTIAL}</link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="12" velocity="3"/></joint>
<joint name="slider" type="prismatic"><parent link="upper"/><child link="lower"/><axis xyz="1 0 0"/>
<limit lower="0" upper="2" effort="0" velocity="3"/></joint></robot>"""


def test_urdf_gets_one_motor_per_joint():
    model = Model.from_urdf(URDF)
    assert model.nu == 2 and model.actuator_names == ["shoulder", "slider"]
    assert model.actuator_trnid.tolist() == [model.joint_id("shoulder"), model.joint_id("slider")]
    assert model.actuator_gear[:, 0].tolist() == [1, 1] and model.actuator_gainprm.tolist() == [1, 1]
    assert model.jnt_range.tolist() == [[-1, 1], [0, 2]]
    assert model.actuator_ctrlrange[0].tolist() == [-12, 12] and model.jnt_actfrcrange[0].tolist() == [-12, 12]
    assert model.mjmodel.nu == 2
    assert any(line.startswith("added: one motor per joint (2)") for line in model.import_report)


def test_urdf_robot_from_file():
    model = Model.from_urdf(data_file("newton/newton/examples/assets/quadruped.urdf"))
    assert model.nu == model.nv == 12 and model.actuator_names == model.joint_names


def test_the_name_of_a_file_says_what_it_is(tmp_path):
    for name, text in (("arm.urdf", URDF), ("arm.xml", HINGE.format("")), ("arm.mjcf", HINGE.format(""))):
        (tmp_path / name).write_text(text)
    assert Model.from_file(tmp_path / "arm.urdf").actuator_names == ["shoulder", "slider"]
    for name in ("arm.xml", "arm.mjcf"):
        assert Model.from_file(str(tmp_path / name)).njnt == 1


def test_wrong_kind_of_file_says_which_function():
    with pytest.raises(ValueError, match="use Model.from_urdf"):
        Model.from_mjcf(URDF)
    with pytest.raises(ValueError, match="use Model.from_mjcf"):
        Model.from_urdf(HINGE.format(""))


# ---- errors and files


def test_broken_xml_is_a_value_error_with_file_and_message(tmp_path):
    path = tmp_path / "broken.xml"
    path.write_text("<mujoco><worldbody></mujoco>")
    with pytest.raises(ValueError, match=r"broken\.xml.*XML"):
        Model.from_mjcf(path)
    path.write_text(scene("<body><joint/></body>"))
    with pytest.raises(ValueError, match=r"broken\.xml.*mass and inertia"):
        Model.from_mjcf(path)


def test_missing_mesh_is_named():
    text = '<mujoco><asset><mesh name="m" file="nowhere.stl"/></asset></mujoco>'
    with pytest.raises(ValueError, match=r"nowhere\.stl"):
        Model.from_mjcf(text)


def test_missing_file_and_wrong_arguments():
    with pytest.raises(FileNotFoundError, match="absent.xml"):
        Model.from_mjcf("absent.xml")
    with pytest.raises(TypeError, match="int"):
        Model.from_mjcf(3)
    with pytest.raises(ValueError, match="'error' or 'warn'"):
        Model.from_mjcf(HINGE.format(""), unsupported="ignore")
    with pytest.raises(TypeError, match="MjModel"):
        Model.from_mjmodel(HINGE)


def test_assets_may_come_from_memory():
    obj = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
    text = (
        '<mujoco><asset><mesh name="m" file="tetra.obj"/></asset><worldbody><body><freejoint/>'
        '<geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    model = Model.from_mjcf(text, assets={"tetra.obj": obj})
    assert model.mesh_vertnum.tolist() == [4] and np.all(np.diff(model.mesh_edgeadr) == 3)


def test_import_leaves_no_file_behind_and_keeps_the_users_handler(tmp_path):
    """MuJoCo alone writes MUJOCO_LOG.TXT for this model; both are run in fresh processes."""
    text = (
        '<mujoco><compiler settotalmass="3"/><worldbody><body><freejoint/><geom size="1"/></body></worldbody></mujoco>'
    )
    package = str(Path(sys.modules["stiction"].__file__).parents[1])
    bare = f"import mujoco; mujoco.MjModel.from_xml_string({text!r})"
    ours = (
        f"import sys; sys.path.insert(0, {package!r}); import mujoco; from stiction.model import Model\n"
        f"handler = lambda text: None\nmujoco.set_mju_user_warning(handler)\n"
        f"report = Model.from_mjcf({text!r}).import_report\n"
        "assert any('settotalmass' in line for line in report), report\n"
        "assert mujoco.get_mju_user_warning() is handler\nmujoco.set_mju_user_warning(None)\n"
        f"Model.from_mjcf({text!r})"
    )
    left = {}
    for name, code in (("bare", bare), ("ours", ours)):
        folder = tmp_path / name
        folder.mkdir()
        subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True)
        left[name] = os.listdir(folder)
    assert left["ours"] == []
    if not left["bare"]:
        pytest.skip("this mujoco writes no log for the model")


# ---- the object


def test_archive_and_pickle_return_the_same_model(tmp_path):
    model = Model.from_mjcf(ROOT / "tests" / "host" / "model" / "small_scene.xml")
    path = tmp_path / "model.npz"
    model.save(path)
    assert os.listdir(tmp_path) == ["model.npz"]
    for copy in (Model.load(path), pickle.loads(pickle.dumps(model))):
        assert copy.import_report == model.import_report and copy.mjmodel.nq == model.nq
        for name, value in model.to_arrays().items():
            np.testing.assert_array_equal(copy.to_arrays()[name], value, err_msg=name)


def test_what_is_no_archive_is_refused(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, a=np.zeros(3))
    with pytest.raises(ValueError, match="format None"):
        Model.load(path)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="no model written by"):
        Model.load(path)
    with pytest.raises(FileNotFoundError):
        Model.load(tmp_path / "absent.npz")


def test_arrays_are_read_only_views_that_outlive_the_model():
    mass = Model.from_mjcf(HINGE.format("")).body_mass
    with pytest.raises(ValueError, match="read-only"):
        mass[0] = 1
    assert mass.tolist() == [0, 1]


def test_from_arrays_names_what_is_wrong():
    arrays = Model.from_mjcf(HINGE.format("")).to_arrays()
    assert Model.from_arrays(arrays).nv == 1
    for change, message in (
        ({"body_mass": np.zeros(3)}, r"body_mass has shape \(3,\), expected \(2,\)"),
        ({"body_mass": [0, -1]}, r"body_mass\[1\] is -1"),
        ({"body_mas": 0}, "'body_mas' is no field"),
        ({"body_pos": [[0, 0, 0], [np.nan, 0, 0]]}, "body_pos has a non-finite entry at 3"),
        ({"jnt_axis": [[0, 0, 2]]}, r"jnt_axis\[0\] has norm 2"),
    ):
        with pytest.raises(ValueError, match=message):
            Model.from_arrays(arrays | change)
    with pytest.raises(ValueError, match="body_quat is missing"):
        Model.from_arrays({name: value for name, value in arrays.items() if name != "body_quat"})
    with pytest.raises(TypeError, match="jnt_type is no array of integers"):
        Model.from_arrays(arrays | {"jnt_type": [3.5]})


def test_numbers_by_name():
    model = Model.from_mjcf(ROOT / "tests" / "host" / "model" / "small_scene.xml")
    assert model.body_id("pole") == 3 and model.joint_id("pivot") == 2 and model.geom_id("crate_box") == 1
    assert model.site_id("tip") == 1 and model.actuator_id("winch") == 2 and model.tendon_id("belt") == 0
    assert model.key_id("still") == 1
    with pytest.raises(KeyError, match="near: 'pole'"):
        model.body_id("pol")
    with pytest.raises(KeyError, match="no geom named ''"):
        model.geom_id("")
    with pytest.raises(AttributeError, match="near: 'body_mass'"):
        _ = model.body_masses


def test_import_table_lists_every_file(tmp_path, capsys):
    (tmp_path / "good.xml").write_text(scene(body('<joint name="j"/>')))
    (tmp_path / "robot.urdf").write_text(URDF)
    (tmp_path / "wet.xml").write_text(HINGE.format('<option density="1"/>'))
    (tmp_path / "broken.xml").write_text("<mujoco>")
    (tmp_path / "still.xml").write_text(scene('<geom size="1"/>'))
    (tmp_path / "bare.xml").write_text('<mujoco><asset><mesh name="m" file="nowhere.stl"/></asset></mujoco>')
    assert import_table([str(tmp_path), "--markdown"]) == 0
    page = capsys.readouterr().out
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")][1:]
    rows = {cells[0]: cells[1] for cells in lines}
    assert rows == {
        "good.xml": "loaded",
        "robot.urdf": "loaded",
        "wet.xml": "refused",
        "still.xml": "refused",
        "broken.xml": "failed",
        "bare.xml": "failed",
    }
    assert page.startswith("# ") and "nothing moves" in page and "nowhere.stl" in page and str(tmp_path) not in page


def test_the_page_of_public_models_is_true():
    """Every twelfth row of docs/models.md, made with the same MuJoCo."""
    page = (ROOT / "docs" / "models.md").read_text()
    if f"with mujoco {mujoco.__version__};" not in page:
        pytest.skip("the page was made with another mujoco")
    lines = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in page.splitlines() if line[:2] == "| "]
    seen = 0
    for name, *expected in lines[1::12]:
        found = classify(data_file(name))
        assert [part.replace("|", "/") for part in found] == [part.strip() for part in expected], name
        seen += 1
    assert seen > 10
