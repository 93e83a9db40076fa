"""Hyper-parameters per task: what differs from `ppo.Options`' defaults, in one table."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import sys
import traceback
from dataclasses import fields, replace
from pathlib import Path

from stiction.custom_task import is_task
from stiction.registration import ENVIRONMENTS

from .ppo import Options

_WALKS = {
    "num_envs": 1024,
    "steps": 24,
    "epochs": 2,
    "minibatch": 3072,
    "gae": 0.95,
    "hidden": (128, 64),
    "initial_std": 0.5,
}
_ARMS = {
    "num_envs": 512,
    "minibatch": 4096,
    "gamma": 0.97,
    "gae": 0.95,
    "entropy": 0.003,
    "hidden": (128, 64),
    "initial_std": 0.33,
}
#: Environment without namespace and version -> what differs from the defaults.
TASKS: dict[str, dict] = {
    "Ant": {"num_envs": 256, "steps": 32, "minibatch": 2048, "gae": 0.95, "hidden": (128, 64)},
    "ArmLift": _ARMS,
    "ArmStack": _ARMS,
    # The swing takes seconds of 100 steps each; once learned, larger steps or less noise forget it at times.
    "CartPoleSwingUp": {"gamma": 0.995, "max_learning_rate": 1e-3, "min_std": 0.1},
    "HalfCheetah": {"minibatch": 512},
    "HandReorient": {
        "num_envs": 1024,
        "steps": 16,
        "epochs": 4,
        "minibatch": 4096,
        "target_kl": 0.016,
        "gae": 0.95,
        "hidden": (256, 128),
    },
    "Hopper": {"gamma": 0.995},
    "Humanoid": {"hidden": (256, 128)},
    "HumanoidVelocity": _WALKS,
    # Long rollouts of few robots, and much noise: what a step is worth shows when it has been taken.
    "QuadrupedVelocity": _WALKS
    | {
        "num_envs": 192,
        "steps": 64,
        "initial_std": 0.7,
        "entropy": 0.003,
        "target_kl": 0.02,
        "only_positive": True,
    },
}


def environment_id(task: str) -> str:
    """What a command's TASK means, in full: "Ant" is "stiction/Ant-v0", "a.py:Reach" has the whole path.

    "package.module:Reach" stays as it is.
    """
    path, colon, name = task.rpartition(":")
    if colon and path.endswith(".py"):
        return f"{Path(path).resolve()}:{name}"
    if colon:
        _class_of(task)
        return task
    if task in ENVIRONMENTS:
        return task
    short = {task_name(env_id).lower(): env_id for env_id in ENVIRONMENTS}
    asked = task.removeprefix("stiction/").lower()
    found = short.get(asked) or next((i for i in ENVIRONMENTS if i.partition("/")[2].lower() == asked), None)
    if found is None and Path(task).suffix in (".xml", ".urdf"):
        raise ValueError(
            f"{task} is a robot, and no task: QuadrupedVelocity --model {task}, or another of `stiction list`"
        )
    if found is None and Path(task).suffix == ".py":
        raise ValueError(f"{task} is a file: name the class in it, {task}:MyTask")
    if found is None:
        near = [task_name(short[name]) for name in difflib.get_close_matches(asked, short, n=3, cutoff=0.4)]
        hint = f"did you mean {' or '.join(near)}?" if near else "`stiction list` shows what there is"
        raise ValueError(f"no task {task!r}; {hint}")
    return found


def environment(env_id: str):
    """What `stiction.make_vec` takes: an id, or the class that "file.py:Class" or "package.module:Class" names."""
    return _class_of(env_id) if ":" in env_id else env_id


def _class_of(env_id: str):
    path, _, name = env_id.rpartition(":")
    module = _file_module(Path(path)) if path.endswith(".py") else _named_module(path)
    kind = getattr(module, name, None)
    if not is_task(kind):
        raise ValueError(f"{path} has no class {name} that is a stiction.Task")
    return kind


def _file_module(path: Path):
    """A file as a module, which can import its neighbours, now and later."""
    if not path.is_file():
        raise FileNotFoundError(f"no file {path} to take a task from")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # its neighbours may import it
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        if sys.modules[path.stem] is module:
            del sys.modules[path.stem]
        whole = path.resolve()
        package = f"; as a part of its package it is {whole.parent.name}.{whole.stem}:CLASS, from {whole.parent.parent}"
        raise ImportError(f"{_where(error, path)}{package if 'relative import' in str(error) else ''}") from error
    return module


def _where(error: ImportError, path) -> str:
    """What could not be imported, and the line that asked for it: the last one outside of Python's own machinery."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    frames = [frame for frame in frames if frame.filename != __file__ and importlib.__file__ != frame.filename]
    return f"{frames[-1].filename}, line {frames[-1].lineno}: {error}" if frames else f"{path}: {error}"


def _named_module(name: str):
    """A module of the working folder or of what is installed."""
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if not isinstance(error, ModuleNotFoundError) or not f"{name}.".startswith(f"{error.name}."):
            raise ImportError(_where(error, name)) from error
        raise ValueError(f"no module {error.name!r} here or installed; or name a file, path/to/file.py:Class") from None


def task_name(env_id: str) -> str:
    """ "stiction/Ant-v0" -> "Ant", "reach.py:Reach" -> "Reach"."""
    return env_id.rpartition(":")[2].rpartition("/")[2].partition("-v")[0]


def near_names(name: str, names) -> str:
    """For messages: those that are meant perhaps, or all."""
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
    return f"{'near: ' if near else 'there are: '}{', '.join(near or names)}"


def options_of(env_id: str, changes: dict | None = None) -> Options:
    """The table's options for a task, then ``changes``."""
    return replace(Options(), **(TASKS.get(task_name(env_id), {}) | _checked(changes or {})))


def parsed_changes(words: list[str]) -> dict:
    """``["gamma=0.98", "hidden=256,256"]`` as a dict of Python values."""
    changes = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise ValueError(f"--set {word!r}, expected name=value")
        try:
            changes[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            raise ValueError(f"--set {word!r}: {text!r} is no number, tuple or True or False") from None
    return _checked(changes)


def _checked(changes: dict) -> dict:
    defaults = {field.name: field.default for field in fields(Options)}
    checked = {}
    for name, value in changes.items():
        if name not in defaults:
            raise ValueError(f"no option {name!r}; {near_names(name, defaults)}")
        kind = type(defaults[name])
        if kind is tuple:
            value = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        elif kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not kind or (kind is tuple and not all(type(width) is int for width in value)):
            raise ValueError(f"option {name} is {value!r}, expected {kind.__name__}, as {defaults[name]!r}")
        checked[name] = value
    return checked
