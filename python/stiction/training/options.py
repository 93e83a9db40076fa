"""Hyper-parameters per task: what differs from `ppo.Options`' defaults, in one table."""

from __future__ import annotations

import ast
import difflib
from dataclasses import fields, replace

from stiction.registration import ENVIRONMENTS

from .ppo import Options

#: Environment without namespace and version -> what differs from the defaults.
TASKS: dict[str, dict] = {
    "Ant": {},
}


def environment_id(task: str) -> str:
    """The id that a command's TASK means: "stiction/Ant-v0", "Ant-v0", "Ant" or "ant"."""
    if task in ENVIRONMENTS:
        return task
    short = {task_name(env_id).lower(): env_id for env_id in ENVIRONMENTS}
    asked = task.removeprefix("stiction/").lower()
    found = short.get(asked) or next((i for i in ENVIRONMENTS if i.partition("/")[2].lower() == asked), None)
    if found is None:
        near = [task_name(short[name]) for name in difflib.get_close_matches(asked, short, n=3, cutoff=0.4)]
        hint = f"did you mean {' or '.join(near)}?" if near else "`stiction list` shows what there is"
        raise ValueError(f"no task {task!r}; {hint}")
    return found


def task_name(env_id: str) -> str:
    """ "stiction/Ant-v0" -> "Ant"."""
    return env_id.partition("/")[2].partition("-v")[0]


def options_of(env_id: str, changes: dict | None = None) -> Options:
    """The table's options for a task, then ``changes``."""
    return replace(Options(), **TASKS.get(task_name(env_id), {}), **_checked(changes or {}))


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
            near = difflib.get_close_matches(name, defaults, n=3, cutoff=0.4)
            raise ValueError(f"no option {name!r}; {'near: ' if near else 'there are: '}{', '.join(near or defaults)}")
        kind = type(defaults[name])
        if kind is tuple:
            value = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        elif kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not kind or (kind is tuple and not all(type(width) is int for width in value)):
            raise ValueError(f"option {name} is {value!r}, expected {kind.__name__}, as {defaults[name]!r}")
        checked[name] = value
    return checked
