"""What a user tries on the second day: numbers that no model has, tasks of one's own, videos, options."""

import copy
import pickle
import re
import sys

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
import stiction  # noqa: E402
from stiction import Model, Simulation, cli  # noqa: E402
from stiction.randomisation import Parameter  # noqa: E402
from stiction.registration import ENVIRONMENTS  # noqa: E402
from stiction.training import setup  # noqa: E402

# ---- numbers that no model has

ARM = """<mujoco><worldbody><body name="arm"><joint name="hinge" limited="true" range="-60 40"/>
  <joint name="free_turn" axis="1 0 0"/><geom size=".1"/>
  <body name="payload" pos="0 0 .2"><geom size=".05"/></body></body>
  <body name="top" pos="1 0 0"><joint name="ball" type="ball" limited="true" range="0 60"/><geom size=".1"/></body>
  <body name="slider" pos="2 0 0"><joint name="slide" type="slide"/><geom size=".1"/></body></worldbody></mujoco>"""
LOWER, UPPER = ({"operation": "add", "names": "hinge", "columns": column} for column in (0, 1))


class Arm(stiction.Task):
    model = ARM

    def observe(self):
        return self.sim.qpos.copy()

    def reward(self, action):
        return np.zeros(self.num_envs)


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        (
            [Parameter("jnt_range", -2, 2)],
            r"jnt_range \(scale -2 to 2\) at times gives joint 'hinge' the range \(2.094",
        ),
        ([Parameter("jnt_range", -0.1, 1, names="ball")], r"joint 'ball' the range \(-?0, -0.104"),
        ([Parameter("jnt_range", 0, 1.8, **LOWER)], r"joint 'hinge' the range \(0.752.*, 0.698"),
        ([Parameter("jnt_range", 0, 1, **LOWER), Parameter("jnt_range", -1, 0, **UPPER)], "add 0 to 1, add -1 to 0"),
        ([Parameter("body_mass", 0, 0)], r"body_mass \(scale 0 to 0\) at times leaves body 'arm' without mass"),
        ([Parameter("body_mass", 0, 1, names=("arm", "payload"))], "leaves body 'arm' without mass, and it moves"),
        ([Parameter("body_mass", 0, 1, names=n) for n in ("arm", "payload")], "leaves body 'arm' without mass"),
        (
            [Parameter("body_inertia", 0, 1, each=True)],
            "leaves body 'arm' without inertia, and it turns: expected more",
        ),
        ([Parameter("dof_damping", -1, 1, operation="set")], r"has negative entries \(-1\), and is never below 0"),
    ],
)
@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_what_no_environment_can_have_is_not_drawn(terms, text, backend):
    if backend == "torch":
        pytest.importorskip("torch")
    kind = (
        Arm if backend == "numpy" else type("Arm", (Arm,), {"array": "torch", "observe": lambda t: t.sim.qpos.clone()})
    )
    with pytest.raises(ValueError, match=text):
        stiction.make_vec(kind, 2, backend=backend, randomize=terms)


@pytest.mark.parametrize(
    "terms",
    [
        [Parameter("jnt_range", 0, 2)],
        [Parameter("jnt_range", -1, 1, operation="add", names="hinge")],
        [
            Parameter("jnt_range", -0.8, 0.8, label="ends", **LOWER),
            Parameter("jnt_range", -1, 1, label="ends", **UPPER),
        ],
        [Parameter("jnt_range", -1, 1, names="free_turn")],
        [Parameter("body_mass", 0, 2, names="payload")],
        [Parameter("body_inertia", 0, 1, names="slider")],
    ],
)
def test_what_environments_can_have_is_drawn(terms):
    envs = stiction.make_vec(Arm, 8, randomize=terms)
    envs.reset(seed=0)
    params = envs.simulation.params
    assert (params.jnt_range[:, 0, 0] <= params.jnt_range[:, 0, 1]).all()
    envs.step(np.zeros(envs.action_space.shape))


def test_parameters_that_no_model_has_are_not_assigned():
    sim = Simulation(Model.from_mjcf(ARM), 2, per_env=("jnt_range", "body_mass"))
    before = sim.params.jnt_range.copy(), sim.params.body_mass.copy()
    with pytest.raises(ValueError, match=r"params.jnt_range gives joint 'hinge' the range \(0.698.*, -1.047"):
        sim.params.jnt_range = before[0][..., ::-1]
    with pytest.raises(ValueError, match="params.body_mass leaves body 'slider' without mass, and it moves"):
        sim.params.body_mass = before[1] * [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]]
    np.testing.assert_array_equal(sim.params.jnt_range, before[0])
    np.testing.assert_array_equal(sim.params.body_mass, before[1])


DIVISORS = [
    ("QuadrupedVelocity", "tracking_sigma"),
    ("HumanoidVelocity", "tracking_sigma"),
    ("ArmLift", "reach_scale"),
    ("ArmLift", "goal_scale"),
    ("ArmLift", "goal_fine_scale"),
    ("ArmStack", "over_scale"),
    ("ArmStack", "over_fine_scale"),
    ("HandReorient", "rotation_offset"),
    ("CartPoleSwingUp", "centred_margin"),
    ("CartPoleBalance", "control_margin"),
    ("CartPoleBalance", "velocity_margin"),
]


@pytest.mark.parametrize(("task", "name"), DIVISORS)
@pytest.mark.parametrize("value", [0, -0.5])
def test_a_parameter_that_a_reward_divides_by_is_more_than_zero(task, name, value):
    text = f"task parameter '{name}' is {value}, expected more than 0: the reward divides by it"
    with pytest.raises(ValueError, match=text):
        stiction.make_vec(f"stiction/{task}-v0", 1, task={name: value})
    envs = stiction.make_vec(f"stiction/{task}-v0", 1)
    with pytest.raises(ValueError, match=text):
        envs.set_task_parameters(**{name: value})


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_no_other_parameter_of_zero_spoils_numbers(env_id):
    divisors = {name for _, name in DIVISORS}
    for name, value in stiction.make_vec(env_id, 1).task_parameters.items():
        if isinstance(value, bool) or name in divisors:
            continue
        envs = stiction.make_vec(env_id, 2, task={name: (0, 0) if isinstance(value, tuple) else 0})
        told = [envs.reset(seed=0)[0]]
        for _ in range(3):
            told += envs.step(np.zeros(envs.action_space.shape))[:2]
        assert all(np.isfinite(values).all() for values in told), name


# ---- tasks of one's own


@pytest.mark.parametrize(
    ("told", "error", "text"),
    [
        (
            lambda q: {"arm": {"joints": q}},
            TypeError,
            r"Arm.observe\(\)\['arm'\] is a dict, expected an array \(2, k\)",
        ),
        (lambda q: {"arm": {"joints": q}}, TypeError, "terms do not nest, each array has a name of its own"),
        (lambda q: {"q": q, "list": [q, q]}, TypeError, r"Arm.observe\(\)\['list'\] is a list, expected an array"),
        (
            lambda q: {"q": None},
            TypeError,
            r"Arm.observe\(\)\['q'\] is a NoneType, expected an array \(2, k\) or \(2,\)$",
        ),
        (lambda q: {"q": np.array(["a", "b"])}, TypeError, r"observe\(\)\['q'\] is an array of <U1, expected"),
        (lambda q: {"q": q.T}, ValueError, r"observe\(\)\['q'\] has shape \(7, 2\), expected an array \(2, k\)"),
        (lambda q: {3: q}, ValueError, "has the term 3, expected a name without a slash"),
        (lambda q: [q], TypeError, r"observe\(\) returned a list, expected an array \(2, D\), or a dict of such"),
        (lambda q: q.astype(str), TypeError, r"observe\(\) returned an array of <U\d+, expected an array \(2, D\)"),
    ],
)
def test_observations_that_are_no_arrays_are_named(told, error, text):
    with pytest.raises(error, match=text):
        stiction.make_vec(type("Arm", (Arm,), {"observe": lambda task: told(task.sim.qpos)}), 2)
    if not isinstance(told(np.zeros((2, 7))), dict):
        return
    extends = {"base": "stiction/Ant-v0", "model": None, "reward": lambda task, action: {}}
    with pytest.raises(error, match=text):
        stiction.make_vec(type("Arm", (Arm,), extends | {"observe": lambda t: told(t.sim.qpos[:, :7])}), 2)


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({"near": {"x": 1}}, r"reward's 'near' is a dict, expected an array \(2,\)"),
        ({"near": None}, r"reward's 'near' is a NoneType, expected an array \(2,\)"),
        ("far", r"reward's 'total' is a str, expected an array \(2,\)"),
    ],
)
def test_rewards_that_are_no_numbers_are_named(told, text):
    with pytest.raises(TypeError, match=text):
        stiction.make_vec(type("Arm", (Arm,), {"reward": lambda task, action: told}), 2)
    listed = stiction.make_vec(type("Arm", (Arm,), {"reward": lambda task, action: [1.0, 2.0]}), 2)
    listed.reset(seed=0)
    assert listed.step(np.zeros((2, 0)))[1].tolist() == [1, 2]


class Weighted(Arm):
    effort, limits, ends = 0.5, (1.0, 2.0), True

    def terminate(self):
        return self.sim.qpos[:, 0] if self.effort == 2 else np.zeros(self.num_envs, bool)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("effort", "big", "parameter 'effort' of Weighted is 'big', expected a number, as 0.5"),
        ("effort", (1, 2), r"'effort' of Weighted is \(1, 2\), expected a number"),
        ("limits", 3, r"'limits' of Weighted is 3, expected 2 numbers, as \(1.0, 2.0\)"),
        ("limits", (1, 2, 3), "expected 2 numbers"),
        ("ends", 0.5, "'ends' of Weighted is 0.5, expected True or False"),
    ],
)
def test_a_parameter_of_a_task_in_python_stays_of_its_kind(name, value, text):
    with pytest.raises(TypeError, match=text):
        stiction.make_vec(Weighted, 2, task={name: value})
    envs = stiction.make_vec(Weighted, 2)
    with pytest.raises(TypeError, match=text):
        envs.set_task_parameters(**{"effort": 7, name: value})
    assert envs.task_parameters == {"effort": 0.5, "ends": True, "limits": (1.0, 2.0)}
    envs.set_task_parameters(limits=[3, 4], ends=0)
    assert envs.task_parameters == {"effort": 0.5, "ends": False, "limits": (3, 4)}


def test_an_end_is_no_distance():
    envs = stiction.make_vec(Weighted, 2, effort=2)
    with pytest.raises(
        TypeError, match=r"terminate\(\) returned an array of float32, expected an array \(2,\) of bool"
    ):
        envs.reset(seed=0)
        envs.step(envs.action_space.sample())
    with pytest.raises(TypeError, match="id is Weighted, expected a string .* or a class made of stiction.Task"):
        stiction.make_vec(Weighted(), 2)


# ---- videos


@pytest.fixture(params=["missing", "raises", "ends"])
def broken_ffmpeg(request, monkeypatch):
    """What is said of it."""
    module = pytest.importorskip("imageio_ffmpeg")

    def none():
        raise RuntimeError("No ffmpeg exe could be found.")

    if request.param == "raises":
        monkeypatch.setattr(module, "get_ffmpeg_exe", none)
        return r"ffmpeg does not run \(No ffmpeg exe could be found.\): pip install --force-reinstall imageio-ffmpeg"
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", sys.executable if request.param == "ends" else "/nowhere/ffmpeg")
    return "could not encode a frame: .*" if request.param == "ends" else r"ffmpeg does not run \(.*/nowhere/ffmpeg"


def test_an_ffmpeg_that_does_not_work_is_told_before_the_work(broken_ffmpeg, tmp_path, capsys, monkeypatch):
    pytest.importorskip("mujoco")
    torch = pytest.importorskip("torch")
    from stiction import cli
    from stiction.training import ppo, run
    from stiction.training.train import Training

    threads = torch.get_num_threads()
    words = ["--samples", "100", "--threads", "1", "--num-envs", "16", "--set", "steps=8", "minibatch=128", "--no-onnx"]
    words = ["train", "Hopper", *words, "--run-dir", str(tmp_path / "run"), "--evaluate", "0"]
    try:
        assert cli.main([*words, "--no-video"]) == 0
        capsys.readouterr()

        def worked(*args, **kwargs):
            raise AssertionError("work before the error")

        for kind, name in ((Training, "__init__"), (ppo, "evaluate"), (run, "environments")):
            monkeypatch.setattr(kind, name, worked)
        assert cli.main([*words[:-4], "--run-dir", str(tmp_path / "again")]) == 1
        told = capsys.readouterr().err
        assert re.search(broken_ffmpeg, told) and told.rstrip().endswith("or --no-video")
        assert cli.main(["play", str(tmp_path / "run"), "--video", str(tmp_path / "a.mp4")]) == 1
        assert re.search(broken_ffmpeg, capsys.readouterr().err)
        with pytest.raises(OSError, match=broken_ffmpeg):
            run.write_policy_video(worked, "stiction/Hopper-v0", tmp_path / "a.mp4")
    finally:
        torch.set_num_threads(threads)
    assert not (tmp_path / "a.mp4").exists() and not (tmp_path / "again").exists()


# ---- options


def test_an_option_of_reset_that_is_none_is_refused_of_one_environment_too():
    env, envs = gymnasium.make("stiction/Ant-v0"), stiction.make_vec("stiction/Ant-v0", 2)
    env.reset(seed=0, options={})
    for one in (env, envs):
        with pytest.raises(ValueError, match="reset has no option 'foo'; there is "):
            one.reset(options={"foo": 1})
        with pytest.raises(TypeError, match="reset's options are a list, expected a dict or None"):
            one.reset(options=["foo"])
    with pytest.raises(ValueError, match="reset has no option 'reset_mask'; there is none for one environment"):
        env.reset(options={"reset_mask": np.array([True])})
    batch = gymnasium.make_vec("stiction/Ant-v0", 2, vectorization_mode="sync")
    batch.reset(seed=0)
    batch.reset(options={"reset_mask": np.array([True, False])})


# ---- names


def test_parameters_in_groups_are_named_after_what_the_model_has():
    model = """<mujoco><worldbody><body name="base"><freejoint name="root"/><geom name="shell" size=".1"/>
      <body name="hand" pos="0 0 .2"><joint name="wrist"/><geom size=".1"/><site name="tip"/></body></body>
      <body pos="1 0 0"><joint type="slide"/><geom size=".1"/></body></worldbody>
      <actuator><motor name="turn" joint="wrist"/><motor joint="wrist"/></actuator></mujoco>"""
    own = "body_mass geom_friction dof_damping jnt_range actuator_gainprm body_pos site_pos gravity".split()
    kind = type("Named", (Arm,), {"model": model, "simulation": {"per_env": own}})
    names = stiction.make_vec(kind, 2, observations={name: (name,) for name in own}).observation_names
    found = {group: [name.partition("/")[2] for name in of] for group, of in names.items()}
    assert found["body_mass"] == ["world", "base", "hand", "3"]
    assert found["geom_friction"][:4] == ["shell.0", "shell.1", "shell.2", "1.0"]
    assert found["dof_damping"] == ["root.0", "root.1", "root.2", "root.3", "root.4", "root.5", "wrist", "2"]
    assert found["jnt_range"] == ["root.0", "root.1", "wrist.0", "wrist.1", "2.0", "2.1"]
    assert found["actuator_gainprm"][0].startswith("turn") and found["actuator_gainprm"][-1].startswith("1")
    assert found["body_pos"][6:9] == ["hand.x", "hand.y", "hand.z"]
    assert (found["site_pos"], found["gravity"]) == (["tip.x", "tip.y", "tip.z"], ["x", "y", "z"])


# ---- status


def test_what_a_state_is_put_into_begins_without_status_and_moves():
    envs = stiction.make_vec("stiction/Ant-v0", 3, autoreset_mode="Disabled")
    envs.reset(seed=0)
    good, action = envs.get_state(), np.zeros((3, 8), np.float32)
    expected = envs.step(action)
    envs.set_state(good)
    bad = np.where(np.arange(3)[:, None] == 1, np.nan, action)
    assert envs.step(bad)[4]["status"].tolist() == [0, stiction.Status.NON_FINITE, 0]
    broken = envs.simulation.get_state()
    for again in (copy.deepcopy(envs), pickle.loads(pickle.dumps(envs))):
        assert not again.simulation.status.any()
    envs.set_state(good)
    told = envs.step(action)
    for one, other in zip(told[:4], expected[:4], strict=True):
        np.testing.assert_array_equal(one, other)
    assert not told[4]["status"].any()
    sim = envs.simulation
    sim.set_state(broken[[1]], envs=[2])  # its controls are not finite
    assert not sim.status.any()
    sim.step()
    assert sim.status.tolist() == [0, 0, stiction.Status.NON_FINITE]
    sim.copy_env(0, [2])
    sim.step()
    assert not sim.status.any()
    np.testing.assert_array_equal(sim.qpos[2], sim.qpos[0])


# ---- extensions of built-in tasks


class Watching(stiction.Task):
    base = "stiction/Hopper-v0"
    told = 0.0

    def observe(self):
        scan = np.zeros((self.num_envs, 3))
        scan[:, 1] = self.told
        return {"scan": scan}


def test_a_number_of_an_extension_that_is_not_finite_is_named():
    class Broken(Watching):
        told = np.nan

    with pytest.raises(ValueError, match=r"Broken.observe\(\) told nan for 'scan/y' of environment 0"):
        stiction.make_vec(Broken, 2).reset(seed=0)


def test_observations_of_who_did_not_begin_are_not_judged_where_places_are_drawn_anew():
    """They have no meaning: what is in memory that nobody wrote may be NaN."""
    envs = stiction.make_vec(Watching, 16, randomize=[Parameter("body_ipos", 0.9, 1.1)])
    envs.reset(seed=0)
    base = envs._task._base
    begun = base.begun_observations

    def unwritten():
        observations = begun()
        observations[~envs._task._began] = np.nan
        return observations

    class Base:
        def __getattr__(self, name):
            return unwritten if name == "begun_observations" else getattr(base, name)

    envs._task._base = Base()
    ended = 0
    for _ in range(60):
        observations, _, terminated, truncated, _ = envs.step(envs.action_space.sample())
        assert np.isfinite(observations).all()
        ended += (terminated | truncated).any()
    assert ended > 3


def test_words_that_mean_nothing_are_told(tmp_path, capsys):
    with pytest.raises(ValueError, match="within is -1"):
        stiction.Goal(achieved="a", desired="b", within=-1)
    (tmp_path / "robot.mjb").write_bytes(b"\x00\x01binary")
    with pytest.raises(ValueError, match="an .mjb is a compiled model"):
        stiction.Model.from_file(tmp_path / "robot.mjb")
    with pytest.raises(ValueError, match="expected a list of names"):
        setup.groups_of_tables({"policy": {"terms": "velocity"}})
    with pytest.raises(ValueError, match="num_envs is no option of the simulation"):
        setup.simulation_options({"num_envs": 3})
    assert cli.main(["bench", "Ant", "--amplitude", "-1"]) == 1
    assert "--amplitude is -1" in capsys.readouterr().err


def test_a_task_for_another_robot_is_told_under_list(tmp_path, capsys):
    (tmp_path / "up.py").write_text(
        'import stiction\nclass Up(stiction.Task):\n    base = "stiction/Hopper-v0"\n'
        '    def setup(self): self.sim.model.body_id("LF_SHANK")\n'
    )
    assert cli.main(["list", f"{tmp_path / 'up.py'}:Up"]) == 1
    told = capsys.readouterr().err
    assert "cannot be made on its own robot" in told and "LF_SHANK" in told and "Traceback" not in told
