"""Cases for the law of thresholds: counts, sums and extremes of orders, with declared facts.

A document has orders (`p/a`) and shipments (`q/d`), each with a call. Messages have arrived, and
streams may have ended. Queries group the orders by a value or count all of them, and most have a
condition on an aggregate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from axlog.document.schema import is_valid
from axlog.document.schema_parser import parse_schema
from axlog.document.tree import Tree
from axlog.errors import AxlogError
from axlog.future.keys import is_broken, parse_fact
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.query.query import Query, parse_query

KEYS = ("key p/a by @i trusted", "key p/a by k trusted", "key q/d by @i trusted")
VALUES = ("1", "2")
TYPES = (
    "root: r  r -> |p| = 1 & |q| = 1  p -> |a| <= 2 & |f| >= 0  q -> |d| <= 2 & |g| >= 0"
    "  a -> |k| <= 1 & |v| <= 1 & |w| <= 1  d -> |k| <= 1"
    "  k -> |text()| <= 1  v -> |text()| <= 1  w ->  call f root: a  call g root: d"
)
_CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"{}/>'
_FACTS = ("",) * 5 + (' mode="one-shot"', ' most="1"', ' most="2"', ' most="3"', ' deletes="yes"')
Step = tuple[str, str, int]
"""A stream, what it brings (empty: it ends), and the time in microseconds."""

_PATTERNS = (
    "/r/p/a#o[@i = $x]", "/r/p/a#o[@i/$x]", "/r/p/a#o[k/$x]", "/r/p/a[k = $x]", "/r/p/a#o",
    "/r/p/a#o[@i = $x][w]", "/r[p/a#o[@i = $x]][q/d]", "/r[p/a#o[@i = $x]][q/d[@i = $x]]",
    "/r[p/a#o[@i = $x]][q/d#u[@i = $x]]", "/r/p/a#o[@i = $x]/v/$v", "/r/p/a#o[k/$x]/v/$v",
    "/r/p/a[@i = $x]/v/$v", "/r//a#o[@i = $x]", "/r/p/a#o[@i = $x or k/$x]",
    "/r/p/a#o[@i = $x][not(w)]", "/r[p/a#o[@i = $x]][not(q/d[@i = $x])]",
)  # fmt: skip
_TIMES = ("o.time <= 3us", "o.time >= 2us", "o.time <= 5us")
_TIME_CONSTRAINTS = ("o <= 3us", "o >= 2us", "o <= 5us")
_VALUES = ("$v >= 0", "$v >= 0", "$v >= 0 and $v <= 2", "$v > 1", "$v * 1 >= 0", "$v * 1 > 2")


@dataclass(frozen=True, slots=True)
class ThresholdCase:
    """One case; its `str` is enough to run it again."""

    document: str
    text: str
    steps: tuple[Step, ...] = ()
    facts: tuple[str, ...] = ()
    is_typed: bool = False
    clock: int = 0

    @property
    def query(self) -> Query:
        return parse_query(self.text)

    def tree(self) -> Tree:
        """The document after its messages."""
        doc = Document(self.document)
        for stream, content, time in self.steps:
            try:
                if content:
                    doc.feed(stream, content, at=time / 1_000_000)
                else:
                    doc.end(stream, at=time / 1_000_000)
            except AxlogError:  # a limit, or a reduced case that has lost the stream
                continue
        doc.advance(max(self.clock, maintained(doc).tree.clock) / 1_000_000)
        tree = maintained(doc).nodes()
        tree.facts = tuple(parse_fact(fact) for fact in self.facts)
        tree.types = parse_schema(TYPES) if self.is_typed else None
        return tree


def make_threshold_case(random: Random) -> ThresholdCase:
    """A random case with a valid query whose facts hold."""
    while True:
        is_typed = random.random() < 0.1
        case = ThresholdCase(
            _document(random, is_typed), _query(random), _steps(random),
            () if is_typed else _keys(random), is_typed, random.choice((0, 0, 1, 3, 5)),
        )  # fmt: skip
        try:
            tree = case.tree()
            _ = case.query
        except AxlogError:
            continue
        if not any(is_broken(tree, key) for key in tree.facts) and (
            tree.types is None or is_valid(tree, tree.types)
        ):
            return case


def _keys(random: Random) -> tuple[str, ...]:
    if random.random() < 0.5:
        return ()
    return tuple(key for key in KEYS if random.random() < 0.5)


def _document(random: Random, is_typed: bool) -> str:
    facts = {stream: random.choice(_FACTS) for stream in "fg"}
    if is_typed:
        facts = dict.fromkeys("fg", "")
    f, g = (_CALL.format(stream, facts[stream]) for stream in "fg")
    inside = "" if is_typed or random.random() < 0.9 else f"<a i='1'>{_CALL.format('h', '')}</a>"
    return f"<r><p>{inside}{f}</p><q>{g}</q></r>"


def _tree(random: Random, label: str) -> str:
    attribute = f' i="{random.choice(VALUES)}"' if random.random() < 0.8 else ""
    inside = f"<k>{random.choice(VALUES)}</k>" if random.random() < 0.5 else ""
    if label == "a":
        inside += f"<v>{random.choice('013')}</v>" if random.random() < 0.6 else ""
        inside += "<w/>" if random.random() < 0.3 else ""
    return f"<{label}{attribute}>{inside}</{label}>"


def _steps(random: Random) -> tuple[Step, ...]:
    time, steps = 0, []
    for _ in range(random.choice((0, 1, 1, 2, 2, 3))):
        time += random.choice((0, 1, 1, 2))
        stream = random.choice("fffg")
        steps.append((stream, _tree(random, {"f": "a", "g": "d"}[stream]), time))
    steps += [(stream, "", time) for stream in "fg" if random.random() < 0.2]
    return tuple(steps)


def _query(random: Random) -> str:
    pattern = random.choice(_PATTERNS)
    values = [each for each in ("$x", "$v") if each in pattern]
    where = []
    if "#o" in pattern and random.random() < 0.25:
        where.append(random.choice((*_TIMES, *_TIME_CONSTRAINTS)))
    if "$v" in pattern and random.random() < 0.7:
        where.append(random.choice(_VALUES))
    text = f"match {pattern}" + (f" where {' and '.join(where)}" if where else "")
    shown = ["$x as x"] if "$x" in pattern and random.random() < 0.75 else []
    if shown and random.random() < 0.1:
        shown = ["concat($x, '') as x"]
    if random.random() < 0.1 and shown:
        return text + f" return {shown[0]} order by x"
    made = _aggregate(random, values)
    shown.append(f"{made} as n")
    text += f" return {', '.join(shown)}"
    if random.random() < 0.85:
        text += f" having {_condition(random, made, values)}"
    return text


def _aggregate(random: Random, values: list[str]) -> str:
    if not values or random.random() < 0.5:
        return "count()"
    value = values[-1]
    return random.choice(
        (f"count({value})", f"count(distinct {value})", f"sum({value})", f"sum({value})",
         f"max({value})", f"min({value})", f"sum({value} * 2)", f"avg({value})"),
    )  # fmt: skip


def _condition(random: Random, made: str, values: list[str]) -> str:
    operator = random.choice((">=", ">=", ">=", ">", "<", "<=", "=", "!="))
    found = f"{made} {operator} {random.choice((0, 1, 2, 2, 3))}"
    if random.random() < 0.2:
        other = f"{_aggregate(random, values)} {random.choice(('>=', '<'))} {random.choice((1, 2))}"
        found = f"{found} {random.choice(('and', 'or'))} {other}"
    return found


# Reduction ----------------------------------------------------------------------------------------


def smaller_thresholds(case: ThresholdCase) -> Iterator[ThresholdCase]:
    """Cases with less of everything."""
    for number in range(len(case.steps)):
        yield replace(case, steps=_without(case.steps, number))
    for number in range(len(case.facts)):
        yield replace(case, facts=_without(case.facts, number))
    for text in _smaller_texts(case.text):
        try:
            parse_query(text)
        except AxlogError:
            continue
        yield replace(case, text=text)
    if case.clock:
        yield replace(case, clock=case.clock - 1)


def _without(items: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    return items[:number] + items[number + 1 :]


def _smaller_texts(text: str) -> Iterator[str]:
    body, _, having = text.partition(" having ")
    parts = having.split(" and ") if " and " in having else having.split(" or ")
    if having:
        yield body
    if len(parts) > 1:
        yield from (f"{body} having {part}" for part in parts)
    head, _, outputs = body.partition(" return ")
    ending = f" return {outputs}" + (f" having {having}" if having else "")
    before, _, where = head.partition(" where ")
    if where:
        yield before + ending
    for extra in ("[w]", "[q/d]", "[not(w)]"):
        if extra in before:
            yield head.replace(extra, "") + ending
