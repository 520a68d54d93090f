"""Parameters of queries: the text of a query with values in place of its external variables.

    match //order[client/$client]/oid/$x return $x                       client="INRIA"
    match //order[client/"INRIA"]/oid/$x return $x

Law: a query with parameters is the query that has the values as literals. So queries of one text
with different parameters have one shape, and share a plan (`generalize.py`).

In tree patterns and XPath, a variable that has a value is a parameter. In XQuery the prolog
declares it: `declare variable $client external;`. A declared type converts a string; a default
value makes the parameter optional.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from math import isfinite
from typing import TypeAlias

from axlog.errors import QueryError
from axlog.query.positions import place_at
from axlog.query.query import Query, checked_language, language_of
from axlog.query.xquery_parser import XQueryParser

Value: TypeAlias = "str | bool | int | float | Decimal | date | datetime | timedelta"
"""A value of a parameter."""
Parameters: TypeAlias = Mapping[str, Value]

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"]|"")*"|'(?:[^']|'')*')|(?P<open>\(:)|(?P<close>:\))"""
    r"""|\$(?P<name>[^\W\d][\w.\-]*)(?P<bound>\s*(?::=|(?:in|as|at)\b))?"""
)
_NUMBERS = {"xs:decimal", "xs:integer", "xs:double", "xs:float", "xs:int", "xs:long"}
_TIMES = {"xs:date": date, "xs:dateTime": datetime}
_SAMPLES: dict[str, Value] = {"xs:date": date(2000, 1, 1), "xs:dateTime": datetime(2000, 1, 1)}


@dataclass(frozen=True, slots=True)
class _Hole:
    """A place in a text where the value of a parameter is written."""

    name: str
    start: int
    stop: int
    type: str | None = None  # that XQuery declares
    is_step: bool = False  # of a tree pattern: the value of a node, which is a string
    is_optional: bool = False  # it has a default value


def with_parameters(text: str, parameters: Parameters, language: str | None = None) -> str:
    """The text of a query with values in place of its parameters.

    >>> with_parameters("match //a[b > $least]/$x return $x", {"least": 5})
    'match //a[b > 5]/$x return $x'
    >>> with_parameters("declare variable $b external; //a[b = $b]", {"b": "it's"})
    'declare variable $b := "it\\'s"; //a[b = $b]'
    """
    asked = checked_language(language) or language_of(text)
    holes = _holes(text, asked)
    known = {hole.name for hole in holes}
    for name in parameters:
        if name not in known:
            every = ", ".join(f"${each}" for each in sorted(known)) or "none"
            is_prolog = asked == "xquery" and f"${name}" in text
            raise QueryError(
                "AX203",
                f"the query has no {'external ' if asked == 'xquery' else ''}variable ${name}",
                expected=f"a parameter of the query: {every}",
                advice=f"declare variable ${name} external;" if is_prolog else None,
            )
    parts: list[str] = []
    at = 0
    for hole in holes:
        if hole.name not in parameters:
            if asked == "xquery" and not hole.is_optional:
                raise QueryError(
                    "AX204",
                    f"the external variable ${hole.name} has no value",
                    place=place_at(text, hole.start),
                    advice=f"pass parameters={{{hole.name!r}: ...}}",
                )
            continue
        value = _converted(hole, parameters[hole.name])
        written = _WRITERS[asked](hole, value)
        head = f"${hole.name} := " if asked == "xquery" else ""
        parts += (text[at : hole.start], head, written)
        at = hole.stop
    return "".join((*parts, text[at:]))


def given_parameters(
    query: str | Query, parameters: Parameters | None, language: str | None = None
) -> str | Query:
    """A query with its parameters, if it has any; a parsed query can have none (AX218)."""
    if not parameters:
        return query
    if isinstance(query, Query):
        raise QueryError(
            "AX218", "a parsed query has no parameters left", expected="the text of a query"
        )
    return with_parameters(query, parameters, language)


def parameters_of(text: str, language: str | None = None) -> dict[str, Value]:
    """The variables of a query that may be parameters, each with a value of its type."""
    asked = checked_language(language) or language_of(text)
    return {hole.name: _sample(hole) for hole in _holes(text, asked)}


@lru_cache(maxsize=256)
def _holes(text: str, language: str) -> tuple[_Hole, ...]:
    return tuple(_declared(text) if language == "xquery" else _used(text, language))


def _declared(text: str) -> Iterator[_Hole]:
    """The external variables of the prolog of an XQuery text."""
    parser = XQueryParser(text, {})
    parser.prolog()
    for external in parser.externals:
        yield _Hole(
            external.variable,
            external.start,
            external.stop,
            external.type,
            is_optional=external.has_default,
        )


def _used(text: str, language: str) -> Iterator[_Hole]:
    """The variables of a tree pattern or an XPath expression that it does not bind itself.

    A pattern binds a variable by using it, so all of its variables may be parameters.
    """
    is_pattern = language == "pattern"
    depth = 0
    bound: set[str] = set()
    found: list[_Hole] = []
    for token in _TOKEN.finditer(text):
        if token["open"] and not is_pattern:
            depth += 1
        elif token["close"]:
            depth -= min(depth, 1)
        name = token["name"]
        if depth or name is None:
            continue
        if is_pattern:
            name = re.match(r"\w+", name)[0]  # type: ignore[index]  # `$x.time` is not a name
        elif token["bound"]:
            bound.add(name)
        before = text[: token.start()].rstrip()
        stop = token.start() + 1 + len(name)
        found.append(_Hole(name, token.start(), stop, is_step=is_pattern and before[-1:] == "/"))
    for hole in found:
        if hole.name not in bound:
            yield hole


def _sample(hole: _Hole) -> Value:
    name = (hole.type or "").rstrip("?")
    return 0 if name in _NUMBERS else _SAMPLES.get(name, "text")


# Literals -----------------------------------------------------------------------------------------


def _converted(hole: _Hole, value: Value) -> Value:
    """A value of a declared type, from a string."""
    if hole.type is None or not isinstance(value, str):
        return value
    name = hole.type.rstrip("?")
    try:
        if name in _NUMBERS:
            return Decimal(value.strip())
        if name in _TIMES:
            return _TIMES[name].fromisoformat(value.strip())
    except (ValueError, InvalidOperation):
        raise QueryError(
            "AX218", f"the value {value[:50]!r} of ${hole.name} is no {name}", expected=name
        ) from None
    return value


def _native(hole: _Hole, value: Value) -> str:
    if hole.is_step and not isinstance(value, str | bool | date | timedelta):
        _number(hole, value)  # refuses what is no value
    if hole.is_step or isinstance(value, str | bool):
        return _quoted(_plain(value))
    if isinstance(value, datetime):
        return f'date "{value.isoformat()}"'
    if isinstance(value, date):
        return f'date "{value.isoformat()}"'
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1)}us"
    return _number(hole, value)


def _xpath(hole: _Hole, value: Value) -> str:
    if isinstance(value, bool):
        return f"{_plain(value)}()"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, datetime):
        return f'xs:dateTime("{value.isoformat()}")'
    if isinstance(value, date):
        return f'xs:date("{value.isoformat()}")'
    if isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
        sign, size = ("-" if microseconds < 0 else ""), abs(microseconds)
        written = f"{sign}PT{size // 1_000_000}.{size % 1_000_000:06}S"
        return f'xs:dayTimeDuration("{written}")'
    return _number(hole, value)


def _xquery(hole: _Hole, value: Value) -> str:
    return _xpath(hole, value.replace("&", "&amp;") if isinstance(value, str) else value)


_WRITERS: dict[str, Callable[[_Hole, Value], str]] = {
    "pattern": _native,
    "xpath": _xpath,
    "xquery": _xquery,
}


def _plain(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(text: str) -> str:
    return '"{}"'.format(text.replace('"', '""'))


def _number(hole: _Hole, value: object) -> str:
    if isinstance(value, int | float | Decimal) and isfinite(value):
        return format(value, "f") if isinstance(value, Decimal) else repr(value)
    shown = repr(value) if isinstance(value, float | Decimal) else type(value).__name__
    raise QueryError(
        "AX218",
        f"the value of ${hole.name} is {'a ' if shown.isidentifier() else ''}{shown}",
        expected="a string, finite number, Boolean, date, datetime or timedelta",
    )
