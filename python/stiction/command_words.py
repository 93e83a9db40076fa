"""Words of a command, ``name=value``, as Python's values."""

from __future__ import annotations

import ast


def values_of(option: str, words: list[str]) -> dict:
    """``["a=0.2", "b=-1,1", "c=pgs", "d=true"]`` as Python's values."""
    return {name: _value(text) for name, text in pairs_of(option, words)}


def pairs_of(option: str, words: list[str]) -> list[tuple[str, str]]:
    pairs = []
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name or not text:
            raise ValueError(f"{option} {word!r}, expected name=value")
        pairs.append((name, text))
    return pairs


def _value(text: str):
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
