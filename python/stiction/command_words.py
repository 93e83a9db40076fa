"""Words of a command, ``name=value``, as Python's values."""

from __future__ import annotations

import ast
import importlib.util
import math

#: For `add_argument`: words of an option that may be said again, ``--task a=1 b=2 --task c=3``.
WORDS = {"nargs": "+", "action": "extend", "default": []}


def values_of(option: str, words: list[str]) -> dict:
    """``["a=0.2", "b=-1,1", "c=pgs", "d=true"]`` as Python's values."""
    return {name: value_of(text) for name, text in pairs_of(option, words)}


def pairs_of(option: str, words: list[str]) -> list[tuple[str, str]]:
    pairs = []
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name or not text:
            raise ValueError(f"{option} {word!r}, expected name=value")
        pairs.append((name, text))
    return pairs


def check_more_than_zero(option: str, value: float, unit: str) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{option} is {value:g}, expected more than 0 {unit}")


def check_at_least(option: str, value: float, least: int) -> None:
    if value < least:
        raise ValueError(f"{option} is {value}, expected at least {least}")


def check_seed(value: int) -> None:
    if not 0 <= value < 2**32:
        raise ValueError(f"--seed is {value}, expected 0 to {2**32 - 1}")


def require_packages(needed: dict[str, str], otherwise: str = "") -> None:
    """OSError where a module is missing. ``needed``: module -> package; ``otherwise``: the option that does without."""
    missing = [package for module, package in needed.items() if importlib.util.find_spec(module) is None]
    if missing:
        without = f"; or {otherwise}" if otherwise else ""
        raise OSError(f"needs {', '.join(missing)}: pip install 'stiction[train]'{without}")


def value_of(text: str):
    """As Python reads it, or the text itself."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
