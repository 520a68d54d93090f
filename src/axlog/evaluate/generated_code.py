"""Functions made of generated Python.

The constants of a function are variables of a function around it, not globals. So all functions of
one source share their compiled code: streams, sites and documents with the same views have the same
code. The interpreter adapts code to the globals that it runs with, and would do so again for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from textwrap import indent
from typing import Any


def function_of(name: str, source: str, constants: Mapping[str, object]) -> Any:
    """The function of this name that the source defines, with these constants."""
    used = {each: thing for each, thing in constants.items() if each in source}
    return _maker(name, source, tuple(used))(*used.values())


@lru_cache(maxsize=4096)
def _maker(name: str, source: str, constants: tuple[str, ...]) -> Callable[..., Any]:
    """A function from the constants to the function that the source defines."""
    around = f"def make({', '.join(constants)}):\n{indent(source, ' ')}\n return {name}\n"
    scope: dict[str, Any] = {}
    exec(compile(around, f"<{name}>", "exec"), scope)
    made: Callable[..., Any] = scope["make"]
    return made
