"""For the documentation's reference: docstrings of attributes, and of parameters in this house's style.

What stands beside an attribute is its docstring: a comment `#: ...` on the lines above it, or above the attributes that
it stands directly below, or the text of a view of the simulation's arrays, `Array("...")`. Parameters are told by
"name: text", which NumPy's style has on two lines. Defaults of the solvers' settings are the core's, of the installed
package.
"""

import ast
import re
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec

import griffe

_VIEWS = {"Array", "_field", "_converted"}
_OF_THE_CORE = {"_step", "_knob"}  # solver_options.py: what makes a field with the core's default


def comment_above(lines: list[str], number: int) -> str:
    """Of line `number`, counted from 1."""
    found = []
    for line in reversed(lines[: number - 1]):
        text = line.strip()
        if not text.startswith("#:"):
            break
        found.insert(0, text.removeprefix("#:").strip())
    return " ".join(found)


def comment_shared(lines: list[str], number: int) -> str:
    """Above the attributes on the lines before."""
    while number > 1 and re.match(r"\s+\w+(: | = )", lines[number - 2]):
        number -= 1
    return comment_above(lines, number)


def text_of_view(value: ast.AST | None) -> str:
    if not isinstance(value, ast.Call) or getattr(value.func, "id", None) not in _VIEWS:
        return ""
    texts = [a.value for a in value.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    writable = any(k.arg == "writable" and getattr(k.value, "value", False) for k in value.keywords)
    return texts[-1] + " May be written." * writable


def on_two_lines(text: str) -> str:
    """The sections of parameters with each text below its name."""
    head, *sections = re.split(r"(?m)^((?:Other )?Parameters\n-+\n)", text)
    for place in range(1, len(sections), 2):
        sections[place] = re.sub(r"(?m)^(\w+): (.*)$", r"\1\n    \2", sections[place])
    return "".join([head, *sections])


def told_default(attr: griffe.Attribute) -> str:
    """Of a solver's setting; none without the package, whose core has it."""
    made_by = getattr(getattr(attr.value, "function", None), "name", None)
    if made_by not in _OF_THE_CORE or find_spec("stiction") is None:
        return ""
    kind = getattr(import_module(attr.module.path), attr.parent.name)
    return f" Default: `{next(f.default for f in fields(kind) if f.name == attr.name)!r}`."


class ReferenceDocs(griffe.Extension):
    """Named in mkdocs.yml."""

    def on_function_instance(self, *, func, **kwargs) -> None:
        if func.docstring is not None:
            func.docstring.value = on_two_lines(func.docstring.value)

    def on_class_instance(self, *, cls, **kwargs) -> None:
        if cls.docstring is not None:
            cls.docstring.value = on_two_lines(cls.docstring.value)

    def on_attribute_instance(self, *, node, attr, agent, **kwargs) -> None:
        if attr.docstring is not None or not isinstance(node, ast.AST):
            return
        lines = attr.filepath.read_text(encoding="utf-8").splitlines()
        text = comment_above(lines, node.lineno) or text_of_view(getattr(node, "value", None))
        text = text or comment_shared(lines, node.lineno)
        if text:
            text += told_default(attr)
            attr.docstring = griffe.Docstring(text, parent=attr, lineno=node.lineno)
