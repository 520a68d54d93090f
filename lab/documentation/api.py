"""The page of the Python API: what the package lists for its users, from docstrings.

Of a class its own public methods and properties are shown, with what their docstrings say.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from typing import Any

_WIDEST = 90
_HEAD = """# Python

Made by `make docs` from the docstrings of what the package lists. What stands in `axlog.__all__` is
public; modules below it can be imported too, and may change until 1.0.
"""
_MODULES = {
    "axlog": "Documents, views, widgets.",
    "axlog.testing": "Stand-ins for tests; see [how to test](howto-testing.md).",
    "axlog.spark": "Views on Spark; see [Spark](spark.md).",
}


def page() -> str:
    """The whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    for name, says in _MODULES.items():
        module = import_module(name)
        yield from (f"## {name}", "", says, "")
        for member in _listed(module):
            yield from _described(f"{name}.{member}", getattr(module, member))


def _listed(module: Any) -> list[str]:
    """The public names of a module: those it lists, or the functions and classes of its own."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if callable(getattr(module, name))]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
        if inspect.isclass(value) or inspect.isfunction(value)
    ]


def _described(name: str, value: Any) -> Iterator[str]:
    yield from (f"### {name}", "", "```text", *_typed(name, value), "```", "")
    yield from (_says(value), "")
    if inspect.isclass(value):
        members = [each for each in vars(value).items() if not each[0].startswith("_")]
        rows = [_row(member, found) for member, found in members if _is_face(found)]
        if rows:
            yield from ("| | |", "|---|---|", *rows, "")


def _is_face(value: Any) -> bool:
    """Whether a member of a class is a method or property that says what it does."""
    plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    return (inspect.isfunction(plain) or isinstance(plain, property)) and bool(plain.__doc__)


def _row(name: str, value: Any) -> str:
    plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    shown = name if isinstance(plain, property) else f"{name}({', '.join(_names(plain))})"
    return f"| `{shown}` | {_says(plain)} |".replace("||", "| |")


def _parameters(value: Any) -> list[inspect.Parameter]:
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    return [each for each in found if each.name not in ("self", "cls")]


def _names(value: Any) -> list[str]:
    """The parameters without their types; what stands behind `*` is given by name."""
    written = [each.replace(annotation=inspect.Parameter.empty) for each in _parameters(value)]
    shown = [str(each) for each in written]
    by_name = [each.kind is inspect.Parameter.KEYWORD_ONLY for each in written]
    return (
        shown if True not in by_name else [*shown[: (at := by_name.index(True))], "*", *shown[at:]]
    )


def _typed(name: str, value: Any) -> Iterator[str]:
    """How it is called, with types: on one line, or with a line for each parameter."""
    shown = [re.sub(r": '([^']*)'", r": \1", str(each)) for each in _parameters(value)]
    if issubclass(value, Enum) if inspect.isclass(value) else False:
        shown = [member.name for member in value]
    line = f"{name}({', '.join(shown)})"
    if len(line) <= _WIDEST:
        yield line
    else:
        yield from (f"{name}(", *(f"    {each}," for each in shown), ")")


def _says(value: Any) -> str:
    """What a docstring says first."""
    parts = inspect.cleandoc(value.__doc__ or "").split("\n\n")
    return " ".join(parts[0].split())
