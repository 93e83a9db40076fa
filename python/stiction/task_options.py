"""What a user says about a task, for compiled code: its parameters, and a robot of their own with its parts' names.

make_vec("stiction/Ant-v0", task={"ctrl_cost_weight": 0.1, "healthy_z_range": (0.3, 1)})
make_vec("stiction/QuadrupedVelocity-v0", model="go1/scene.xml", names={"feet": ("FL", "FR", "RL", "RR")})
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from numbers import Real

from .model import Model
from .picture import PICTURE_OPTIONS
from .registration import EnvironmentId, asset_path
from .simulation import Simulation
from .simulation_arrays import near

#: What `Simulation` takes.
_OPTIONS = tuple(name for name in inspect.signature(Simulation).parameters if name not in ("model", "num_envs"))
#: What environments take besides, for hints.
_OF_ENVIRONMENTS = """
    num_envs autoreset_mode backend max_episode_steps model names observations randomize render_mode task
""".split()

#: Parameters of the built-in tasks that their rewards divide by.
_DIVISORS = """
    tracking_sigma reach_scale goal_scale goal_fine_scale over_scale over_fine_scale rotation_offset centred_margin
    control_margin velocity_margin
""".split()

#: Gymnasium's words for its MuJoCo environments -> ours.
_GYMNASIUMS = {
    "xml_file": "'model'", "camera_id": "'camera'", "camera_name": "'camera'", "default_camera_config": "'camera'",
    "frame_skip": "the task's own number of time steps per action",
    "exclude_current_positions_from_observation": "True (infos have positions)",
}  # fmt: skip


def task_parameters(given: Mapping, known, of: str) -> dict[str, list[float]]:
    """Values by name, as lists of numbers: one for a weight or a switch, two for a range.

    ``known``: the names that the task of ``of`` has. Raises ValueError for another one.
    """
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"task has the key {name!r}, expected the name of a parameter")
        if name not in known:
            hint = near(name, known) or f"; there are: {', '.join(map(repr, known))}"
            raise ValueError(f"{name!r} is no parameter of {of}{hint}")
    return {name: _numbers(name, value) for name, value in given.items()}


def split_options(given: dict) -> tuple[dict, dict]:
    """Keyword arguments of environments as (options of `Simulation`, the others), which are the task's parameters."""
    options = {name: value for name, value in given.items() if name in _OPTIONS}
    return options, {name: value for name, value in given.items() if name not in _OPTIONS}


def merged_parameters(task, keywords: dict, known, of: str) -> dict:
    """``task={...}`` and parameters given as keywords, as Gymnasium's environments take them.

    ``known``: the names that the task of ``of`` has. Raises TypeError for a keyword that is none of them.
    """
    if task is not None and not isinstance(task, Mapping):
        raise TypeError(f"task is {type(task).__name__}, expected a dict of its parameters: {{name: value}}")
    for name in keywords:
        if name not in known:
            hint = near(name, [*known, *_OPTIONS, *PICTURE_OPTIONS, *_OF_ENVIRONMENTS])
            hint = f"; Gymnasium's {name!r} is {_GYMNASIUMS[name]} here" if name in _GYMNASIUMS else hint
            raise TypeError(f"{name!r} is no parameter of {of} and no option of stiction.Simulation{hint}")
        if name in (task or {}):
            raise TypeError(f"{name!r} is given twice: as a keyword and in task={{...}}")
    return dict(task or {}) | keywords


def _numbers(name: str, value) -> list[float]:
    values = value if isinstance(value, (tuple, list)) or getattr(value, "ndim", 0) == 1 else [value]
    if not all(isinstance(number, (Real, bool)) for number in values):
        raise TypeError(f"task parameter {name!r} is {value!r}, expected a number, (low, high) or a bool")
    try:
        numbers = [float(number) for number in values]
    except OverflowError:
        raise ValueError(f"task parameter {name!r} is too large a number") from None
    if name in _DIVISORS and any(number <= 0 for number in numbers):
        raise ValueError(f"task parameter {name!r} is {value!r}, expected more than 0: the reward divides by it")
    return numbers


def task_model(known: EnvironmentId, model, names) -> tuple[Model, dict[str, list[str]]]:
    """The model of an environment and the names that its task asks for: the asset's, or the user's.

    ``model``: None, a `Model`, or the path or text of an MJCF file. ``names``: None or a dict, role -> name or names.
    """
    given = _names(names)
    feet, usual = len(given.get("feet", ())), len(known.names["feet"]) if known.on_legs else 0
    if 0 < feet < usual:
        warnings.warn(
            f"names['feet'] has {feet} feet, and {known.task} {usual}: others earn and cost nothing", stacklevel=2
        )
    if model is None:
        return Model.from_mjcf(asset_path(known.asset)), _names(known.names) | given
    return model if isinstance(model, Model) else Model.from_mjcf(model), given


def _names(names) -> dict[str, list[str]]:
    if names is None:
        return {}
    if not isinstance(names, Mapping):
        raise TypeError(f"names is {type(names).__name__}, expected a dict such as {{'feet': ('LF_foot', 'RF_foot')}}")
    lists = {role: [value] if isinstance(value, str) else value for role, value in names.items()}
    for role, value in lists.items():
        if not isinstance(role, str):
            raise TypeError(f"names has the key {role!r}, expected a string")
        if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
            raise TypeError(f"names[{role!r}] is {value!r}, expected a name or a sequence of names")
        if twice := [name for number, name in enumerate(value) if name in value[:number]]:
            raise ValueError(f"names[{role!r}] has {twice[0]!r} twice")
    return {role: list(value) for role, value in lists.items()}
