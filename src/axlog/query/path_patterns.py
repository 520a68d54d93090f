"""The paths of statements that are patterns, which columns and the value index can find.

A path qualifies if it uses only parts with the same meaning in both: no positions, calculations or
functions. Variables with strings from the caller become holes of the pattern, so that one pattern
serves all their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from axlog.errors import QueryError
from axlog.query.pattern import Kind, Output, Pattern
from axlog.query.syntax_tree import (
    Binary,
    Call,
    Constant,
    Constructor,
    Flwor,
    Path,
    Reference,
    Root,
    Statement,
    Transform,
)
from axlog.query.xpath_compiler import SELECTED, XPathCompiler

HOLE = "\x00"
"""Before the name of a variable: no string of a document contains the character."""

_PATTERNS: dict[tuple[int, frozenset[str]], tuple[Path, Pattern | None]] = {}


def hole(name: str) -> str:
    """A constant that stands for a string to fill in later."""
    return HOLE + name


def prepare(statements: Iterable[Statement]) -> None:
    """Compile the paths of statements that start at the document and mention no variable."""
    for statement in statements:
        for path in _paths(statement.expression):
            if isinstance(path.start, Root) and path.steps and not _mentions(path.steps):
                found = pattern_of(path, statement.text, frozenset())
                statement.patterns[id(path)] = found


def _paths(value: object) -> Iterator[Path]:
    """The outermost paths of an expression."""
    if isinstance(value, Path):
        yield value
        return
    if isinstance(value, tuple):
        for one in value:
            yield from _paths(one)
    for name in getattr(value, "__dataclass_fields__", ()):
        yield from _paths(getattr(value, name))


def _mentions(value: object) -> bool:
    """Whether a part of an expression mentions a variable."""
    if isinstance(value, Reference):
        return True
    if isinstance(value, tuple):
        return any(map(_mentions, value))
    names = getattr(value, "__dataclass_fields__", ())
    return any(_mentions(getattr(value, name)) for name in names)


def pattern_of(path: Path, written: str, holes: frozenset[str]) -> Pattern | None:
    """The pattern of a path from the document; None if patterns cannot express it.

    Variables among the holes are strings to fill in later. Cached by identity, like statements:
    hashing a path costs as much as finding a node.
    """
    known = _PATTERNS.get((id(path), holes))
    if known is not None:
        return known[1]
    if len(_PATTERNS) > 1024:
        _PATTERNS.clear()
    pattern = _make_pattern(path, written, holes)
    _PATTERNS[id(path), holes] = (path, pattern)
    return pattern


def _make_pattern(path: Path, written: str, holes: frozenset[str]) -> Pattern | None:
    if _is_beyond(path.steps):
        return None
    try:
        from_root = Path(Root(path.at), _with_holes(path.steps, holes), path.at)
        compiler = XPathCompiler(written)
        return compiler.pattern(from_root, (Output(Kind.ID, SELECTED),))
    except QueryError:
        return None


def _with_holes(value: Any, holes: frozenset[str]) -> Any:
    """A part of a path with the given variables replaced by holes."""
    if isinstance(value, tuple):
        return tuple(_with_holes(one, holes) for one in value)
    if isinstance(value, Path) and isinstance(value.start, Reference) and not value.steps:
        if value.start.name in holes:
            return Constant(hole(value.start.name), value.at)
        return value
    if not is_dataclass(value) or isinstance(value, type) or not holes:
        return value
    parts = {field.name: _with_holes(getattr(value, field.name), holes) for field in fields(value)}
    return type(value)(**parts)


def _is_beyond(value: object) -> bool:
    """Whether a part of a path has features that patterns lack."""
    if isinstance(value, tuple):
        return any(_is_beyond(one) for one in value)
    if isinstance(value, Constructor | Flwor | Transform):
        return True
    if isinstance(value, Call) and value.name not in _COMPILED:
        return value.name not in _IN_PATTERNS or _is_beyond(value.arguments)
    if isinstance(value, Binary) and value.operator not in _IN_PATTERNS:
        return True
    slots = getattr(value, "__dataclass_fields__", {})
    return any(_is_beyond(getattr(value, name)) for name in slots)


_IN_PATTERNS = frozenset(
    """and or | = != < <= > >= eq ne lt le gt ge not exists empty boolean true false""".split()
)
"""Operators and functions with the same meaning in patterns and statements."""
_COMPILED = frozenset(("position", "last", "doc", "document", "collection", "id"))
"""Functions that the compiler of patterns accepts or refuses by itself."""
