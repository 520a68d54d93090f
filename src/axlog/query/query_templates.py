"""Templates of queries: texts that differ in literals only are parsed once.

A template is a text with some of its literals taken out. It is learned from one text, by parsing it
again with other literals in their place: those that come out as constants of the general pattern
(`generalize.py`), and change nothing else, are parameters of the template. The other literals
belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from axlog.errors import AxlogError
from axlog.query.generalize import General, generalize
from axlog.query.pattern import Constant, Number
from axlog.query.query import Query

_LITERAL = re.compile(
    r"""("[^"'&\\{}\n]+"|'[^"'&\\{}\n]+')(?!["'])|(?<![\w.$#@:"'-])(\d{1,12}(?:\.\d{1,12})?)(?![\w.:"'-])"""
)
_MOST = 256
"""The most templates that are remembered."""
Parse = Callable[[str], Query]


@dataclass(frozen=True, slots=True)
class Template:
    """A text without the literals that are constants of its general pattern."""

    taken: tuple[int, ...]  # the numbers of the literals, in the order of the constants
    types: tuple[type, ...]  # of the constants
    fixed: tuple[tuple[int, str], ...]  # the literals that belong to the template
    general: General  # of the text from which it was learned

    def constants(self, literals: Sequence[str]) -> tuple[Constant, ...] | None:
        """The constants of a text; None: it has another literal at a place that is fixed."""
        if any(literals[number] != text for number, text in self.fixed):
            return None
        each = zip(self.taken, self.types, strict=True)
        return tuple(_constant(literals[number], type_) for number, type_ in each)


class QueryTemplates:
    """The templates of the queries that were learned."""

    def __init__(self) -> None:
        self._known: dict[str, list[tuple[Template, Any]]] = {}

    def find(self, text: str) -> tuple[Any, tuple[Constant, ...]] | None:
        """What was learned for the template of a text, and the constants of the text."""
        if not self._known:
            return None
        skeleton, literals = _split(text)
        for template, meaning in self._known.get(skeleton, ()):
            constants = template.constants(literals)
            if constants is not None:
                return meaning, constants
        return None

    def learn(self, text: str, general: General, parse: Parse, meaning: Any) -> None:
        """Remember what the template of a text means, if it has one."""
        if len(self._known) >= _MOST or self.find(text) is not None:
            return
        template = _learned(text, general, parse)
        if template is not None:
            self._known.setdefault(_split(text)[0], []).append((template, meaning))

    def forget(self, meaning: Any) -> None:
        """Forget the templates with a meaning."""
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


def _learned(text: str, general: General, parse: Parse) -> Template | None:
    literals = _split(text)[1]
    marks = [_mark(number, literal) for number, literal in enumerate(literals)]
    try:
        marked = generalize(parse(_joined(text, marks)).row_key.pattern)
        places = {_plain(mark): number for number, mark in enumerate(marks)}
        found = [places.get(_shown(constant)) for constant in marked.constants]
        taken = tuple(number for number in found if number is not None)
        some = [mark if n in taken else literals[n] for n, mark in enumerate(marks)]
        again = generalize(parse(_joined(text, some)).row_key.pattern)
    except AxlogError:
        return None
    types = tuple(map(type, general.constants))
    is_same = (again.pattern, again.parameters) == (general.pattern, general.parameters)
    shown = [places.get(_shown(constant)) for constant in again.constants]
    if not taken or not is_same or shown != list(taken) or len(set(taken)) < len(taken):
        return None
    if tuple(_constant(literals[n], t) for n, t in zip(taken, types, strict=True)) != (
        general.constants
    ):
        return None
    fixed = tuple((n, literal) for n, literal in enumerate(literals) if n not in taken)
    return Template(taken, types, fixed, general)


def _mark(number: int, literal: str) -> str:
    """Another literal of the same kind, that no query has."""
    if literal[0] in "\"'":
        return f"{literal[0]}mark {number} of a template{literal[-1]}"
    return str(810_000_000_000 + number)


def _plain(literal: str) -> str:
    return literal[1:-1] if literal[0] in "\"'" else literal


def _shown(constant: Constant) -> str:
    return str(int(constant)) if isinstance(constant, float) else str(constant)


def _joined(text: str, literals: Sequence[str]) -> str:
    each = iter(literals)
    return _LITERAL.sub(lambda _: next(each), text)


def _constant(literal: str, type_: type) -> Constant:
    if type_ is Number:
        return Number(Decimal(literal))
    return float(literal) if type_ is float else _plain(literal)
