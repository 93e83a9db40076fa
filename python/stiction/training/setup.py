"""What a run's environments are, by words of a command or of a TOML file: task, robot, weights, randomisation.

    stiction train QuadrupedVelocity --model go1/scene.xml --names feet=FL,FR,RL,RR --task tracking_sigma=0.2
    stiction train go1.toml

go1.toml says the same, and has what a command has no words for:

    task = "QuadrupedVelocity"
    model = "go1/scene.xml"             # beside this file
    names = { feet = ["FL", "FR", "RL", "RR"] }
    parameters = { tracking_sigma = 0.2 }
    simulation = { timestep = 0.004, solver = { name = "canal", penalty = 10 } }   # options of stiction.Simulation
    ppo = { gamma = 0.98 }

    [[randomize]]                       # kinds: parameter, gains, push, force, latency, noise, bias
    kind = "parameter"
    name = "body_mass"
    low = 0.8
    high = 1.2

    [observations.policy]               # groups, see stiction.Group
    terms = ["gravity", "command", "joint_position", "joint_velocity", "last_action"]
    history = 3

A URDF has neither servos nor a base that floats, nor a pose; its model is made by what is said beside it:

    stiction train QuadrupedVelocity --model laikago.urdf --urdf kp=60 kd=2 --pose "*_thigh=0.7" "*_calf=-1.4"

    urdf = { kp = 60, kd = 2, pose = { "*_thigh" = 0.7, "*_calf" = -1.4 } }   # arguments of Model.from_urdf

A checkpoint keeps all of it, the model's contents too, so that later commands need none of these files; but for the
source of a task in Python.
"""

from __future__ import annotations

import io
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

import stiction
from stiction.command_words import WORDS, pairs_of, values_of
from stiction.model import Model
from stiction.observation_groups import Group
from stiction.randomisation_tables import table_of, terms_of
from stiction.registration import ENVIRONMENTS
from stiction.solver_options import SolverOptions
from stiction.urdf_import import UrdfRobot

from .options import environment, environment_id, near_names, task_name

_TABLES = {
    "task": str, "model": str, "names": dict, "parameters": dict, "simulation": dict, "ppo": dict, "randomize": list,
    "observations": dict, "urdf": dict,
}  # fmt: skip


@dataclass(frozen=True)
class Setup:
    """Environments, by plain values; `make` makes them. ``model``: None is the task's own."""

    env_id: str
    model: Model | None = None
    names: dict = field(default_factory=dict)
    parameters: dict = field(default_factory=dict)  # of the task
    simulation: dict = field(default_factory=dict)  # options of Simulation; a solver by its name or a table
    randomize: list = field(default_factory=list)  # tables of terms
    observations: dict = field(default_factory=dict)  # group -> terms, history, clean
    urdf: dict = field(default_factory=dict)  # what the model's URDF did not say; the model has it

    def make(self, num_envs: int, **options):
        """`stiction.make_vec` of it; ``options`` win."""
        given = simulation_options(self.simulation)
        given |= {} if self.model is None else {"model": self.model}
        for name, value in (("names", self.names), ("task", self.parameters), ("randomize", terms_of(self.randomize))):
            given |= {name: value} if value else {}
        if self.observations:
            given["observations"] = groups_of_tables(self.observations)
        return stiction.make_vec(environment(self.env_id), num_envs, **(given | options))

    def plain(self) -> dict:
        """For a checkpoint."""
        said = {name: getattr(self, name) for name in ("env_id", *_PLAIN)}
        if self.model is not None:
            file = io.BytesIO()
            self.model.save(file)
            said["model"] = np.frombuffer(file.getvalue(), np.uint8).copy()
        return said

    @classmethod
    def of_plain(cls, said: dict) -> Setup:
        model = said.get("model")
        if model is not None:
            model = Model.load(io.BytesIO(np.asarray(model).tobytes()))
        return cls(said["env_id"], model, **{name: said[name] for name in _PLAIN if name in said})

    def differences(self, other: Setup) -> list[tuple]:
        """(name, here, there) of what is said here and is not so there; nothing is said by what is empty."""
        said = [(f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        names = {"env_id": "task"}
        return [
            (names.get(name, name), here, there)
            for name, here, there in said
            if here and not (_same_models(here, there) if name == "model" else here == there)
        ]

    def told(self) -> dict:
        """For run.json: what is not the default, the model by its sizes."""
        said = {name: getattr(self, name) for name in _PLAIN if getattr(self, name)}
        return said | ({} if self.model is None else {"model": repr(self.model)})


_PLAIN = ("names", "parameters", "simulation", "randomize", "observations", "urdf")


def _same_models(model: Model, other: Model | None) -> bool:
    """By their contents."""
    if other is None:
        return False
    first, second = model.to_arrays(), other.to_arrays()
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def setup_of(given: Setup | str) -> Setup:
    """An id alone means its own robot and defaults."""
    return given if isinstance(given, Setup) else Setup(given)


def simulation_options(table: dict) -> dict:
    """Keyword arguments of `stiction.Simulation`."""
    if "num_envs" in table:
        raise ValueError("num_envs is no option of the simulation here: commands have --num-envs")
    solver = table.get("solver")
    return table | ({"solver": SolverOptions(**solver)} if isinstance(solver, dict) else {})


def groups_of_tables(tables: dict) -> dict[str, Group]:
    groups = {}
    for name, entry in tables.items():
        if not isinstance(entry, dict) or not set(entry) <= {"terms", "history", "clean"}:
            raise ValueError(f"observations.{name} is {entry!r}, expected a table with terms, history and clean")
        if isinstance(entry.get("terms", ()), str):
            raise ValueError(f"observations.{name}.terms is {entry['terms']!r}, expected a list of names")
        given = dict(entry)
        groups[name] = Group(*given.pop("terms", ()), **given)
    return groups


# ---- words of a command


def add_arguments(parser) -> None:
    """What every command about environments takes beside the task."""
    parser.add_argument(
        "--model", type=Path, metavar="FILE.xml", help="MJCF of one's own robot, with a floor, or its URDF"
    )
    parser.add_argument("--urdf", **WORDS, metavar="NAME=VALUE",
                        help="what a URDF does not say: kp=60 kd=2 of servos, self_collision=true")  # fmt: skip
    parser.add_argument("--pose", **WORDS, metavar="JOINT=ANGLE",
                        help="how a URDF's robot stands: '*_thigh=0.7' '*_calf=-1.4'; else 0")  # fmt: skip
    parser.add_argument("--names", **WORDS, metavar="ROLE=NAME,...",
                        help="what the model calls its parts: feet=FL,FR,RL,RR")  # fmt: skip
    parser.add_argument("--task", **WORDS, metavar="NAME=VALUE", dest="parameters",
                        help="parameters of the task: tracking_sigma=0.2 command_x=-1,1")  # fmt: skip
    parser.add_argument("--randomize", **WORDS, metavar="NAME=LOW,HIGH",
                        help="parameters, scaled, and other kinds: body_mass=0.8,1.2 push=0.5 latency=0,2 noise=0.05; "
                             "or a FILE.toml of [[randomize]] tables, which say all there is")  # fmt: skip
    parser.add_argument("--simulation", **WORDS, metavar="NAME=VALUE",
                        help="options of stiction.Simulation: timestep=0.004 integrator=euler")  # fmt: skip
    parser.add_argument("--solver", metavar="NAME", help="the contact solver, one of stiction.solver_names()")
    parser.add_argument("--solver-option", **WORDS, metavar="NAME=VALUE", dest="solver_options",
                        help="knobs of the solver: penalty=10 iterations=50")  # fmt: skip


def checkpoint(path: Path, arguments):
    """The `Checkpoint` of a run or file; ValueError where a command says anything of its environments besides."""
    from .run import Checkpoint

    if any(getattr(arguments, name) for name in _ASKED):
        raise ValueError(f"{path} is a run and knows its robot and task: no --model, --names, --task or others")
    return Checkpoint.load(path)


_ASKED = ("model", "urdf", "pose", "names", "parameters", "randomize", "simulation", "solver", "solver_options")


def of_arguments(task: str, arguments) -> tuple[Setup, dict]:
    """(the setup of a command or of the TOML file that it names, what that file says of PPO)."""
    said = read_toml(Path(task)) if task.endswith(".toml") else {"task": task}
    folder = Path(task).parent if task.endswith(".toml") else Path()
    model = arguments.model if arguments.model is not None else said.get("model") and folder / said["model"]
    if model is not None and not Path(model).is_file():
        raise FileNotFoundError(f"no model {model}")
    randomize = list(said.get("randomize", []))
    for word in arguments.randomize:
        is_file = word.endswith(".toml")
        randomize += read_toml(Path(word), only=("randomize",)).get("randomize", []) if is_file else [table_of(word)]
    env_id = environment_id(str(folder / said["task"]) if _is_file_class(said["task"]) else said["task"])
    urdf = urdf_table(said, arguments)
    setup = Setup(
        env_id,
        robot_model(env_id, model, urdf),
        said.get("names", {}) | {role: text.split(",") for role, text in pairs_of("--names", arguments.names)},
        _tuples(said.get("parameters", {})) | values_of("--task", arguments.parameters),
        simulation_table(said, arguments),
        randomize,
        said.get("observations", {}),
        urdf,
    )
    terms_of(setup.randomize), groups_of_tables(setup.observations)  # or say what is wrong before anything is made
    return setup, said.get("ppo", {})


def urdf_table(said: dict, arguments) -> dict:
    """Arguments of `Model.from_urdf` about the robot; a command's words win over a file's."""
    table = said.get("urdf", {}) | values_of("--urdf", arguments.urdf)
    pose = table.get("pose", {}) | values_of("--pose", arguments.pose)
    for name in table:
        if name not in _URDF:
            raise ValueError(f"urdf has {name!r}; {near_names(name, _URDF)}")
    return table | ({"pose": pose} if pose else {})


def robot_model(env_id: str, path, urdf: dict) -> Model | None:
    """The model of a file, of None none; a URDF's for a task on legs floats, by servos."""
    if path is None:
        if urdf:
            raise ValueError(f"{', '.join(urdf)}: for a robot's URDF, and there is no --model FILE.urdf")
        return None
    if Path(path).suffix == ".urdf" and _on_legs(env_id):
        if "kp" not in urdf:
            raise ValueError(
                f"{path} has no servos, as no URDF has, and {task_name(env_id)} moves joints by them: say --urdf kp=60 "
                "kd=2 (N m/rad, N m s/rad), and by --pose JOINT=ANGLE how the robot stands; a base that floats and a "
                "floor are added. A TOML file says urdf = { kp = 60, kd = 2, pose = { JOINT = ANGLE } }"
            )
        urdf = {"floating": True} | urdf
    return Model.from_file(path, **urdf)


_URDF = tuple(field.name for field in fields(UrdfRobot))


def _on_legs(env_id: str) -> bool:
    task = environment(env_id)
    known = ENVIRONMENTS.get(task if isinstance(task, str) else getattr(task, "base", None))
    return known is not None and known.on_legs


def simulation_table(said: dict, arguments) -> dict:
    """Options of `Simulation` by plain values, the solver as a table; a command's words win over a file's."""
    options = _tuples(said.get("simulation", {})) | values_of("--simulation", arguments.simulation)
    solver = options.pop("solver", {})
    solver = dict(solver) if isinstance(solver, dict) else {"name": solver}
    if arguments.solver not in (None, solver.get("name")):
        solver = {"name": arguments.solver}  # which has knobs of its own
    solver |= values_of("--solver-option", arguments.solver_options)
    SolverOptions(**solver)  # or say what is wrong before anything is made
    return options | ({"solver": solver} if solver else {})


def read_toml(path: Path, only=tuple(_TABLES)) -> dict:
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML: {error}") from None
    for name, value in said.items():
        if name not in only:
            raise ValueError(f"{path} has {name!r}; {near_names(name, only)}")
        if not isinstance(value, _TABLES[name]):
            raise ValueError(f"{path}: {name} is {value!r}, expected {_WORDS[_TABLES[name]]}")
    if "task" in only and "task" not in said:
        raise ValueError(f'{path} names no task: task = "QuadrupedVelocity"')
    return said


_WORDS = {str: "a string", dict: "a table", list: "a list of tables"}


def _tuples(table: dict) -> dict:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}


def _is_file_class(task: str) -> bool:
    return task.rpartition(":")[0].endswith(".py")
