"""Terms of randomisation as files and commands have them: tables, and words.

{"kind": "push", "speed": 0.5, "every": [5, 15]}      # [[randomize]] of a TOML file
body_mass=0.8,1.2  push=0.5                           # --randomize
"""

from __future__ import annotations

import inspect
from dataclasses import fields
from numbers import Real

from .command_words import value_of
from .randomisation import PARAMETERS, Bias, Force, Gains, Latency, Noise, Parameter, Push, flattened
from .simulation_arrays import near

KINDS = {"parameter": Parameter, "gains": Gains, "push": Push, "force": Force, "latency": Latency, "noise": Noise}
KINDS["bias"] = Bias


def terms_of(tables) -> list:
    """Terms of plain dictionaries, as files have them: ``{"kind": "push", "speed": 0.5}``; lists stand for tuples."""
    if not isinstance(tables, (list, tuple)) or not all(isinstance(entry, dict) for entry in tables):
        raise ValueError("randomize is no list of tables, [[randomize]] with a kind each")
    terms = []
    for number, entry in enumerate(tables):
        kind = entry.get("kind", "parameter")
        if not isinstance(kind, str) or kind not in KINDS:
            raise ValueError(f"randomize[{number}] has the kind {kind!r}, expected one of {', '.join(KINDS)}")
        try:
            terms.append(_term(kind, entry))
        except (TypeError, ValueError) as error:
            raise ValueError(f"randomize[{number}], {kind}: {error}") from None
    return flattened(terms)


def _term(kind: str, entry: dict):
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    given.pop("kind", None)
    known = arguments_of(kind)
    if wrong := [name for name in given if name not in known]:
        raise ValueError(f"has no {wrong[0]!r}{near(wrong[0], known) or _all(known)}")
    if missing := [name for name in _required(kind) if name not in given]:
        raise ValueError(f"does not say {missing[0]!r}")
    return KINDS[kind](**given)


def _all(names) -> str:
    return f"; there are: {', '.join(names)}"


def arguments_of(kind: str) -> list[str]:
    """What a table of this kind may say, in order."""
    names = [name for name in inspect.signature(KINDS[kind]).parameters if name != "options"]
    if kind == "gains":  # whose options are a parameter's
        names += [field.name for field in fields(Parameter) if field.name not in ("name", *names)]
    return names


def _required(kind: str) -> list[str]:
    """Of these, the ones without a default."""
    given = inspect.signature(KINDS[kind]).parameters.values()
    return [argument.name for argument in given if argument.default is argument.empty and argument.name != "options"]


def table_of(word: str) -> dict:
    """Of a word of a command, ``body_mass=0.8,1.2`` or ``push=0.5``: a parameter, scaled, or another kind, by the
    arguments that have no default."""
    name, _, text = word.partition("=")
    if not text:
        raise ValueError(f"--randomize {word!r}, expected NAME=LOW,HIGH or a FILE.toml")
    known = [*PARAMETERS, *(kind for kind in KINDS if kind != "parameter")]
    if name not in known:
        raise ValueError(f"--randomize {word!r}: no parameter {name!r}{near(name, known) or _all(known)}")
    kind = name if name in KINDS else "parameter"
    names = [argument for argument in _required(kind) if argument != "name"]
    given = value_of(text)
    numbers = list(given) if isinstance(given, tuple) else [given]
    if len(numbers) != len(names) or not all(isinstance(number, Real) for number in numbers):
        more = "; a FILE.toml says more" if len(numbers) > len(names) else ""
        raise ValueError(f"--randomize {word!r}, expected numbers: {name}={','.join(names).upper()}{more}")
    table = ({"kind": kind} if name in KINDS else {"name": name}) | dict(zip(names, numbers, strict=True))
    try:
        _term(kind, table)
    except (TypeError, ValueError) as error:
        raise ValueError(f"--randomize {word!r}: {error}") from None
    return table
