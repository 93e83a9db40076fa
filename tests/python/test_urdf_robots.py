"""Robots from URDF that walk: what the format has no words for is said beside it, and then any command takes them."""

import json
from contextlib import closing

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from model_sources import ROOT, data_file  # noqa: E402
from stiction import Model, cli  # noqa: E402
from stiction.training.run import Checkpoint  # noqa: E402
from test_docs_code import walker_of  # noqa: E402

LEGS = {"LF": (0.2, 0.1), "RF": (0.2, -0.1), "LH": (-0.2, 0.1), "RH": (-0.2, -0.1)}
SERVOS = {"kp": 40.0, "kd": 1.0}
POSE = {"*_hip": 0.6, "*_knee": -1.2}


def link(name, mass, shape):
    inertia = f'<inertia ixx="{0.01 * mass}" iyy="{0.01 * mass}" izz="{0.01 * mass}" ixy="0" ixz="0" iyz="0"/>'
    collision = f"<collision>{shape}</collision>" if shape else ""
    visual = '<visual><geometry><mesh filename="package://nowhere/looks.dae"/></geometry></visual>'
    return f'<link name="{name}"><inertial><mass value="{mass}"/>{inertia}</inertial>{visual}{collision}</link>'


def joint(name, parent, child, at, kind='type="revolute"'):
    limit = '<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="30" velocity="10"/>' if "fixed" not in kind else ""
    ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{at}"/>'
    return f'<joint name="{name}" {kind}>{ends}{limit}</joint>'


def rod(length):
    return f'<origin xyz="0 0 {-length / 2}"/><geometry><cylinder radius="0.02" length="{length}"/></geometry>'


def leg(name, x, y):
    return "".join([
        link(f"{name}_thigh", 1, rod(0.2)), link(f"{name}_shank", 0.3, rod(0.2)),
        link(f"{name}_foot", 0.05, '<geometry><sphere radius="0.03"/></geometry>'),
        joint(f"{name}_hip", "base", f"{name}_thigh", f"{x} {y} 0"),
        joint(f"{name}_knee", f"{name}_thigh", f"{name}_shank", "0 0 -0.2"),
        joint(f"{name}_ankle", f"{name}_shank", f"{name}_foot", "0 0 -0.2", 'type="fixed"'),
    ])  # fmt: skip


BASE = link("base", 8, '<geometry><box size="0.5 0.15 0.1"/></geometry>')
DOG = f'<robot name="dog">{BASE}{"".join(leg(name, *at) for name, at in LEGS.items())}</robot>'


def test_a_floating_robot_stands_on_its_feet():
    model = Model.from_urdf(DOG, floating=True, **SERVOS, pose=POSE)
    assert (model.nq, model.nu, model.neq) == (15, 8, 0)
    assert {"base", "LF_foot", "RH_foot"} <= set(model.body_names)  # links of fixed joints, too
    np.testing.assert_allclose(model.actuator_gainprm, 40)
    np.testing.assert_allclose(model.actuator_biasprm, [[0, -40, -1]] * 8)
    np.testing.assert_array_equal(model.jnt_actfrcrange[1:], [[-30, 30]] * 8)
    legs = 0.2 * np.cos(0.6) + 0.2 * np.cos(0.6) + 0.03
    np.testing.assert_allclose(model.key_qpos[0], [0, 0, legs, 1, 0, 0, 0, *[0.6, -1.2] * 4], atol=1e-9)

    sim = stiction.Simulation(model, 1, dtype="float64")
    sim.reset(keyframe="home")
    sim.forward()
    assert sim.certificate.penetration[0] < 1e-9
    sim.ctrl[:] = model.mjmodel.key_ctrl[0]
    sim.step(500)
    assert sim.contact.count[0] == 4 and abs(sim.qpos[0, 2] - legs) < 0.05
    told = [line for line in model.import_report if line.startswith(("added", "ignored: contact"))]
    assert len(told) == 4, model.import_report


def test_a_floating_robot_begins_on_the_floor():
    """With its joints at 0 it began as deep in the floor that the import had added as its legs are long."""
    sim = stiction.Simulation(Model.from_urdf(DOG, floating=True, **SERVOS, pose=POSE), 1, dtype="float64")
    sim.forward()
    np.testing.assert_allclose(sim.qpos[0, :3], [0, 0, 0.43], atol=1e-9)
    assert sim.certificate.penetration[0] < 1e-9


def test_what_nothing_reads_of_a_file_is_told():
    contact = "<contact><lateral_friction value='0.1'/></contact>"
    text = DOG.replace("<inertial>", contact + "<inertial>", 4)
    text = text.replace("<limit", "<safety_controller k_velocity='1'/><limit", 1)
    told = [line for line in Model.from_urdf(text, floating=True).import_report if line.startswith("ignored")]
    assert told[:3] == [
        "ignored: <contact> (friction, restitution) of link 'base', 'LF_thigh', 'LF_shank' and 1 more",
        "ignored: the velocity limit of joint 'LF_hip', 'LF_knee', 'RF_hip' and 5 more",
        "ignored: <safety_controller> of joint 'LF_hip'",
    ]
    with pytest.raises(ValueError, match="no <link>; a xacro file"):
        Model.from_urdf("<robot name='later'/>")


def tetrahedron(size):
    """An STL file."""
    corners = size * np.array([[-1.0, -1, -1], [1, 1, -1], [1, -1, 1], [-1, 1, 1]])
    faces = np.zeros(4, [("normal", "<3f4"), ("corners", "<f4", (3, 3)), ("more", "<u2")])
    faces["corners"] = corners[[[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]]]
    return bytes(80) + np.uint32(4).tobytes() + faces.tobytes()


@pytest.mark.parametrize(("package", "size"), [("arm", 0.1), ("hand", 0.3), ("elsewhere", 0.3), ("empty", None)])
def test_a_mesh_is_that_of_its_package(tmp_path, package, size):
    """It was that of the file's own package, if there was one of that name, and nothing said so."""
    for name, extent in (("arm", 0.1), ("hand", 0.3)):
        (tmp_path / name / "meshes").mkdir(parents=True)
        (tmp_path / name / "meshes" / "base.stl").write_bytes(tetrahedron(extent))
    (tmp_path / "empty").mkdir()
    mesh = f'<geometry><mesh filename="package://{package}/meshes/base.stl"/></geometry>'
    file = tmp_path / "hand" / "urdf" / "hand.urdf"
    file.parent.mkdir()
    file.write_text(f'<robot name="hand">{link("base", 1, mesh)}</robot>')
    if size is None:
        with pytest.raises(ValueError, match="no file for the mesh 'package://empty/meshes/base.stl' below"):
            Model.from_urdf(file, floating=True)
        return
    model = Model.from_urdf(file, floating=True)
    np.testing.assert_allclose(abs(model.mjmodel.mesh_vert).max(), size, atol=1e-6)
    told = [line for line in model.import_report if "package" in line]
    folder = str(tmp_path / "hand")
    expected = f"taken from {folder!r}: package 'elsewhere', of which there is no folder"
    assert told == ([expected] if package == "elsewhere" else [])


def test_links_touch_each_other_if_they_shall():
    def contacts(**options):
        sim = stiction.Simulation(Model.from_urdf(DOG, floating=True, **SERVOS, **options), 1)
        sim.reset(keyframe="home")
        sim.qpos[0, 2] = 2
        sim.forward()
        return sim.contact.count[0]

    crossed = {"LF_hip": 1.6, "LH_hip": -1.6}
    assert contacts(pose=crossed) == 0
    assert contacts(pose=crossed, self_collision=True) > 0


def test_gains_and_angles_go_by_names():
    model = Model.from_urdf(DOG, kp={"LF_knee": 1, "*_knee": 2, "*": 3}, pose={"LF_*": 0.5, "*_hip": 0.1})
    assert model.nq == model.nu == 8
    assert model.actuator_gainprm.ravel().tolist() == [3, 1, 3, 2, 3, 2, 3, 2]
    assert model.key_qpos[0].tolist() == [0.5, 0.5, 0.1, 0, 0.1, 0, 0.1, 0]
    assert model.mjmodel.key_ctrl[0].tolist() == model.key_qpos[0].tolist()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"kd": 1.0}, "kd is 1.0 without kp"),
        ({"kp": {"*_knee": 1}}, "kp says nothing of joint 'LF_hip'"),
        ({"kp": {"*": 1, "*_kne": 2}}, "kp has '\\*_kne', which is no joint; there are: 'LF_hip'"),
        ({"kp": -1.0}, "kp is -1.0, expected 0 or more"),
        ({"kp": "stiff"}, "kp is 'stiff', expected a number, or a dict"),
        ({"pose": {"tail": 1}}, "pose has 'tail', which is no joint"),
        ({"pose": {"*_hip": 3.0}}, "joint 'LF_hip' would stand at 3, and moves from -2 to 2"),
        ({"pose": 1.0}, "pose is 1.0, expected a dict"),
    ],
)
def test_what_is_wrong_is_named(given, text):
    with pytest.raises((ValueError, TypeError), match=text):
        Model.from_urdf(DOG, **given)


def test_what_cannot_float_is_named():
    with pytest.raises(ValueError, match="no link has a <collision> to stand on"):
        Model.from_urdf(f'<robot name="ghost">{link("base", 1, "")}</robot>', floating=True)


def test_meshes_are_found_by_their_addresses(tmp_path):
    shapes = tmp_path / "dog_description" / "meshes"
    shapes.mkdir(parents=True)
    corners = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    (shapes / "cube.obj").write_text(
        "".join(f"v {x} {y} {z}\n" for x, y, z in corners)
        + "f 1 2 4 3\nf 5 7 8 6\nf 1 5 6 2\nf 3 4 8 7\nf 1 3 7 5\nf 2 6 8 4\n"
    )
    file = tmp_path / "dog_description" / "urdf" / "dog.urdf"
    file.parent.mkdir()
    for place in ("package://dog_description", "package://another_name", f"file://{shapes.parent}", ".."):
        mesh = f'<geometry><mesh filename="{place}/meshes/cube.obj"/></geometry>'
        file.write_text(f'<robot name="dog">{link("base", 1, mesh)}</robot>')
        assert Model.from_file(file, floating=True).ngeom == 2


# ---- by the command

SMALL = ["--threads", "1", "--num-envs", "8", "--set", "steps=8", "minibatch=32", "hidden=16", "--evaluate", "0"]
FEET = [f"{name}_foot" for name in LEGS]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "dog.urdf"
    path.write_text(DOG)
    return path


def test_a_command_trains_a_urdf_that_walks_in_mujoco_alone(file, tmp_path):
    run = tmp_path / "run"
    words = ["train", "QuadrupedVelocity", "--model", str(file), "--names", f"feet={','.join(FEET)}"]
    words += [
        "--urdf",
        "kp=40",
        "kd=1",
        "--pose",
        "*_hip=0.6",
        "*_knee=-1.2",
        "--samples",
        "100",
        "--run-dir",
        str(run),
    ]
    assert cli.main([*words, *SMALL, "--no-video"]) == 0
    told = json.loads((run / "run.json").read_text())["setup"]
    assert told["urdf"] == {"kp": 40, "kd": 1, "pose": {"*_hip": 0.6, "*_knee": -1.2}}
    file.unlink()
    with closing(Checkpoint.load(run).setup.make(1, num_threads=1)) as envs:
        np.testing.assert_allclose(envs.simulation.model.actuator_biasprm[0], [0, -40, -1])
        assert "joint_position/LF_hip" in envs.observation_names
    knee = next(fact for fact in json.loads((run / "policy.json").read_text())["actions"] if "RH_knee" in fact["name"])
    assert knee["offset"] == pytest.approx(-1.2)
    pytest.importorskip("onnxruntime")
    walker = walker_of(ROOT / "examples/walk_in_mujoco.py")(run / "model.mjb", run)  # servos, floor and pose in it
    assert (walker.model.nu, walker.model.nkey, walker.data.qpos[8]) == (8, 1, -1.2)
    for _ in range(25):
        now = walker.step((0, 0, 0))
    assert now["gravity/z"] < -0.5
    assert walker.data.ncon > 0


def test_a_file_says_the_same_of_a_urdf(file, capsys):
    pose = '{ "*_hip" = 0.6, "*_knee" = -1.2 }'
    toml = file.with_suffix(".toml")
    toml.write_text(
        f'task = "QuadrupedVelocity"\nmodel = "dog.urdf"\nnames = {{ feet = {json.dumps(FEET)} }}\n'
        f"urdf = {{ kp = 40, kd = 1, pose = {pose} }}\n"
    )
    assert cli.main(["bench", str(toml), "--num-envs", "4", "--rounds", "1"]) == 0
    assert cli.main(["bench", str(toml), "--num-envs", "4", "--rounds", "1", "--pose", "*_hip=5"]) == 1
    assert "would stand at 5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "has no servos, as no URDF has, and QuadrupedVelocity moves joints by them: say --urdf kp=60 kd=2"),
        (["--urdf", "kp=40"], "name the robot's feet"),
        (["--urdf", "kq=40"], "urdf has 'kq'; near: kp"),
        (["--urdf", "kp=40", "floating=false"], "the model has no free joint"),
    ],
)
def test_a_command_says_what_a_urdf_lacks(words, text, file, capsys):
    assert cli.main(["bench", "QuadrupedVelocity", "--model", str(file), *words]) == 1
    assert text in capsys.readouterr().err


def test_mjcf_says_it_itself(capsys, tmp_path):
    scene = tmp_path / "scene.xml"
    scene.write_text("<mujoco/>")
    assert cli.main(["bench", "QuadrupedVelocity", "--model", str(scene), "--urdf", "kp=4"]) == 1
    assert "scene.xml is no URDF: kp are for what a URDF does not say" in capsys.readouterr().err
    assert cli.main(["bench", "QuadrupedVelocity", "--urdf", "kp=4"]) == 1
    assert "there is no --model FILE.urdf" in capsys.readouterr().err


def test_solo12_walks_by_its_files_names():
    file = data_file("example-robot-data/robots/solo_description/robots/solo12.urdf")
    model = Model.from_urdf(file, floating=True, kp=5, kd=0.1, pose={"*_HFE": 0.7, "*_KFE": -1.4})
    feet = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
    with closing(stiction.make_vec("stiction/QuadrupedVelocity-v0", 2, model=model, names={"feet": feet})) as envs:
        envs.reset(seed=0)
        for _ in range(5):
            observations, *_ = envs.step(np.zeros(envs.action_space.shape, np.float32))
        assert np.isfinite(observations).all()
        assert envs.simulation.qpos[:, 2].min() > 0.2
