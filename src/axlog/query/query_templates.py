"""Templates of queries: texts that differ in literals only are parsed once.

A template is a text with some of its literals taken out. It is learned from one text, by parsing it
again with other literals in their place: those that come out as constants of the general pattern
(`generalize.py`), and change nothing else, are parameters of the template. The other literals
belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from axlog.errors import AxlogError
from axlog.query.general_steps import generalize_query
from axlog.query.generalize import (
    WIDEST,
    AnyParameter,
    Duration,
    General,
    ParameterValue,
    StepParameter,
    weaker,
)
from axlog.query.pattern import Number
from axlog.query.query import Query

_LITERAL = re.compile(
    r"""("[^"'&\\{}\n]+"|'[^"'&\\{}\n]+')(?!["'])|(?<![\w.$#@:"'-])(\d{1,12}(?:\.\d{1,12})?)(?![\w.:"'-])"""
)
_ODD_IN_LITERAL = frozenset("\"'&\\{}\n")
_MOST = 256
"""The most templates that are remembered."""
_TRIED = 4
"""The texts of a skeleton of which a template is made; if all fail, the others are only parsed."""
Parse = Callable[[str], Query]


Read = Callable[[Sequence[str]], "ParameterValue | None"]
"""A constant of a text, from its literals; None: the text has another general pattern."""


@dataclass(frozen=True, slots=True)
class Template:
    """A text without the literals that are constants of its general pattern."""

    reads: tuple[Read, ...]  # one for each constant
    fixed: tuple[tuple[int, str], ...]  # the literals that belong to the template

    def constants(self, literals: Sequence[str]) -> tuple[ParameterValue, ...] | None:
        """The constants of a text; None: it has another literal at a place that is fixed."""
        if any(literals[number] != text for number, text in self.fixed):
            return None
        found: list[ParameterValue] = []
        for read in self.reads:
            constant = read(literals)
            if constant is None:
                return None
            found.append(constant)
        return tuple(found)


class QueryTemplates:
    """The templates of the queries that were learned."""

    def __init__(self) -> None:
        self._known: dict[str, list[tuple[Template, Any]]] = {}
        self._around: dict[tuple[str, str], tuple[Template, Any]] = {}
        """By the text before and after the only literal, which is a string in double quotes."""
        self._failed: dict[str, int] = {}  # how many texts of a skeleton gave no template

    def find(self, text: str) -> tuple[Any, tuple[ParameterValue, ...]] | None:
        """What was learned for the template of a text, and the constants of the text."""
        if not self._known:
            return None
        before, _, rest = text.partition('"')
        literal, _, behind = rest.partition('"')
        around = self._around.get((before, behind))
        if around is not None and literal and _ODD_IN_LITERAL.isdisjoint(literal):
            constants = around[0].constants((f'"{literal}"',))
            return None if constants is None else (around[1], constants)
        skeleton, literals = _split(text)
        for template, meaning in self._known.get(skeleton, ()):
            constants = template.constants(literals)
            if constants is not None:
                if skeleton == f"{before}\0{behind}" and len(self._known[skeleton]) == 1:
                    self._around[before, behind] = template, meaning
                return meaning, constants
        return None

    def learn(self, text: str, general: General, parse: Parse, meaning: Any) -> None:
        """Remember what the template of a text means, if it has one."""
        if len(self._known) >= _MOST or self.find(text) is not None:
            return
        skeleton = skeleton_of(text)
        failed = self._failed.get(skeleton, 0)
        if failed >= _TRIED:
            return
        template = _learned(text, general, parse, marks_zeros=True)
        template = template or _learned(text, general, parse, marks_zeros=False)
        if template is None:
            self._failed[skeleton] = failed + 1
        else:
            self._known.setdefault(skeleton, []).append((template, meaning))
            self._around.clear()

    def forget(self, meaning: Any) -> None:
        """Forget the templates with a meaning."""
        self._around.clear()
        self._failed.clear()
        for skeleton, known in list(self._known.items()):
            left = [each for each in known if each[1] is not meaning]
            if left:
                self._known[skeleton] = left
            else:
                del self._known[skeleton]


def skeleton_of(text: str) -> str:
    """A text with marks in place of its literals."""
    return _split(text)[0]


def _split(text: str) -> tuple[str, list[str]]:
    literals: list[str] = []

    def hole(found: re.Match[str]) -> str:
        literals.append(found[0])
        return "\0" if found[1] else "\1"

    return _LITERAL.sub(hole, text), literals


def _learned(text: str, general: General, parse: Parse, *, marks_zeros: bool) -> Template | None:
    """The template of a text; None: this does not find it.

    `marks_zeros`: whether zeros may be parameters. `u - t > 0` is an order, and belongs to the
    shape, which another number in its place would not show.
    """
    literals = _split(text)[1]
    how = {"durations": general.has_durations, "is_wide": _is_wide(general)}
    marks = [
        _mark(number, literal) if marks_zeros or literal.strip("0.") else literal
        for number, literal in enumerate(literals)
    ]
    try:
        query = parse(_joined(text, marks))
        marked = generalize_query(query.row_key, **how)
        places = {_plain(m): n for n, m in enumerate(marks) if m is not literals[n]}
        if len(marked.constants) != len(general.constants):
            return None
        taken = [
            None if _is_limit(parameter) else places.get(_shown(constant))
            for parameter, constant in zip(marked.parameters, marked.constants, strict=True)
        ]
        others = list(literals)  # what the text has instead, with the same general pattern
        for number, parameter in zip(taken, general.parameters, strict=True):
            if number is not None:
                others[number] = marks[number]
                if isinstance(parameter, Duration):
                    others[number] = _like(4 if how["is_wide"] else parameter.bound)
        again = generalize_query(parse(_joined(text, others)).row_key, **how)
    except AxlogError:
        return None
    used = [number for number in taken if number is not None]
    is_same = replace(again, constants=()) == replace(general, constants=())
    if not used or not is_same or len(set(used)) < len(used):
        return None
    reads: list[Read] = []
    for number, parameter, constant in zip(
        taken, general.parameters, general.constants, strict=True
    ):
        reads.append(
            (lambda _, same=constant: same)  # type: ignore[misc]
            if number is None
            else _span_reader(parameter, number, constant, literals[number])
            if isinstance(parameter, Duration)
            else _clock_reader(number)
            if isinstance(constant, int)
            else _reader(number, type(constant))
        )
    fixed = tuple((n, literal) for n, literal in enumerate(literals) if n not in used)
    made = Template(tuple(reads), fixed)
    is_right = made.constants(literals) == general.constants
    return made if is_right and made.constants(others) == again.constants else None


def _reader(number: int, type_: type) -> Read:
    return lambda literals: _constant(literals[number], type_)


def _span_reader(parameter: Duration, number: int, known: ParameterValue, literal: str) -> Read:
    """Reads a duration. The constant is a microsecond more or less where the operator is strict."""
    assert isinstance(known, int)
    strict = known - _microseconds(literal)
    is_wide = abs(parameter.bound) == WIDEST

    def read(literals: Sequence[str]) -> ParameterValue | None:
        bound = _microseconds(literals[number]) + strict
        found = weaker(parameter.operator, bound, is_wide=is_wide)
        is_like = abs(bound) > 1 and found == parameter.bound
        return bound if is_like else None

    return read


def _clock_reader(number: int) -> Read:
    return lambda literals: _microseconds(literals[number])


def _is_limit(parameter: AnyParameter) -> bool:
    """Whether a constant is a limit, which stays in the template: not every number is one."""
    return isinstance(parameter, StepParameter) and parameter.kind == "limit"


def _microseconds(literal: str) -> int:
    return int(Decimal(literal) * 1_000_000)


def _is_wide(general: General) -> bool:
    return any(abs(each.bound) == WIDEST for each in general.durations)


def _like(bound: int) -> str:
    """A duration that has this weaker bound."""
    return str(Decimal(abs(bound)) / 1_000_000)


def _mark(number: int, literal: str) -> str:
    """Another literal of the same kind, that no query has."""
    if literal[0] in "\"'":
        return f"{literal[0]}mark {number} of a template{literal[-1]}"
    return str(810_000_000_000 + number)


def _plain(literal: str) -> str:
    return literal[1:-1] if literal[0] in "\"'" else literal


def _shown(constant: ParameterValue) -> str:
    if isinstance(constant, int):
        return str((constant + 500_000) // 1_000_000)
    return str(int(constant)) if isinstance(constant, float) else str(constant)


def _joined(text: str, literals: Sequence[str]) -> str:
    each = iter(literals)
    return _LITERAL.sub(lambda _: next(each), text)


def _constant(literal: str, type_: type) -> ParameterValue:
    if type_ is Number:
        return Number(Decimal(literal))
    return float(literal) if type_ is float else _plain(literal)
