"""Random cases with steps: a case of law 1, and a text that computes and groups its rows.

Some cases have queries that differ only behind their groups, which share the groups or a plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random

from axlog.errors import QueryError
from axlog.query.formula import Formula
from axlog.query.pattern import (
    POSITION,
    AnyNode,
    Axis,
    Branch,
    Collect,
    Comparison,
    Kind,
    Pattern,
    PatternNode,
    nodes_of,
)
from axlog.query.query import parse_query
from lab.laws import small_cases
from lab.laws.fuzz_cases import DELETES, WITHOUT_NODES, Case, less_of, make_case
from lab.laws.fuzz_cases import Step as Edits
from lab.laws.small_cases import DOWNWARD

_NUMBERS = ("0", "1", "2", "1.5", "10")
_COMPARED = ("<", "<=", ">", ">=", "=", "!=")
_READ = (Kind.VARIABLE, Kind.LABEL, Kind.VAL)


PATTERNS = 3
"""Patterns in a case; what they match is found once for all queries over them."""
QUERIES = 4
"""Queries over each pattern."""


@dataclass(frozen=True, slots=True)
class AggregatesCase:
    """A document, the texts of some queries, and updates; `case` says how the engine works."""

    case: Case
    texts: tuple[str, ...]
    share_from: int | None = None
    """From how many views of one shape on they share a plan; None: as usual."""

    @property
    def steps(self) -> tuple[Edits, ...]:
        return self.case.steps


def make_aggregates_case(random: Random) -> AggregatesCase:
    """Any case; each pattern has at least one output that can be computed with.

    Where messages are dropped, the streams often declare that they delete nothing: rows that can no
    longer be shown are dropped then.
    """
    case = make_case(random)
    if case.keep == "needed" and random.random() < 0.7:
        case = replace(case, document=case.document.replace(DELETES, ""))
    is_shared = random.random() < 0.35
    made = _alike if is_shared else _queries
    texts = tuple(text for _ in range(PATTERNS) for text in made(random, case, QUERIES))
    share_from = random.choice((None, 2, 2)) if is_shared else None
    return AggregatesCase(replace(case, patterns=(), since=(), until=()), texts, share_from)


def make_query(random: Random, case: Case) -> str:
    """A query with steps for the document of a case."""
    (text,) = _queries(random, case, 1)
    return text


def _queries(random: Random, case: Case, count: int) -> Iterator[str]:
    """Queries with different steps over one pattern."""
    has_streams = "stream=" in case.document
    values: list[str] = []
    while not values:
        features = WITHOUT_NODES if has_streams and random.random() < 0.6 else DOWNWARD
        pattern = small_cases.pattern(random, features)
        columns, values = _readable(pattern)
    with_predicate = _with_predicate(random, pattern) if random.random() < 0.3 else None
    for _ in range(count):
        if with_predicate is not None:
            found = _text(random, with_predicate, columns, values)
            with suppress(QueryError):  # a position inside `not`, for example
                parse_query(found)
                yield found
                continue
        yield _text(random, pattern, columns, values)


def _alike(random: Random, case: Case, count: int) -> Iterator[str]:
    """Queries with equal groups that differ behind them: in constants, or in more."""
    features = WITHOUT_NODES if "stream=" in case.document else DOWNWARD
    values: list[str] = []
    while not values:
        pattern = small_cases.pattern(random, features)
        columns, values = _readable(pattern)
    text = str(replace(pattern, outputs=()))
    if random.random() < 0.3:
        text += (" and " if " where " in text else " where ") + _condition(random, values)
    grouping, names = _grouping(random, columns, values)
    differs = random.random() < 0.3
    behind = _behind(random, names)
    for _ in range(count):
        behind = _behind(random, names) if differs else behind
        yield text + grouping + _NUMBER.sub(lambda _: random.choice(_NUMBERS), behind)


_NUMBER = re.compile("#")


def _behind(random: Random, names: list[str]) -> str:
    """What follows a group, with holes for numbers."""
    conditions = [
        f"{random.choice((*names, 'count()'))} {random.choice(_COMPARED)} #"
        for _ in range(random.choice((0, 1, 1, 1, 2)))
    ]
    text = f" having {random.choice((' and ', ' or ')).join(conditions)}" if conditions else ""
    return text + _order(random, [*names, "count()"])


def _with_predicate(random: Random, pattern: Pattern) -> Pattern:
    """The pattern with one more predicate: a position, or a condition on all nodes of a path."""
    nodes = [node for node in pattern.nodes() if node.axis in (Axis.CHILD, Axis.DESCENDANT)]
    chosen = random.choice(nodes)
    text = _predicate(random)

    def put(branch: Branch) -> Branch:
        if not isinstance(branch, PatternNode):
            return branch
        if branch is not chosen:
            return replace(branch, branches=tuple(map(put, branch.branches)))
        written = Comparison(POSITION, Formula(text, None))
        made = PatternNode(Axis.SELF, AnyNode(), comparisons=(written,))
        at = random.choice((0, 0, 0, len(branch.branches)))
        branches = (*branch.branches[:at], made, *branch.branches[at:])
        return replace(branch, branches=branches)

    return replace(pattern, branches=tuple(map(put, pattern.branches)))


def _path(random: Random) -> str:
    names = small_cases.LABELS
    one, other = random.choice(names), random.choice(names)
    return random.choice(
        (one, one, f"//{one}", "*", f"{one}/{other}", f"{one}[{other}]", "//text()", "*[. = '1']")
    )


def _predicate(random: Random) -> str:
    """A position, or a condition that reads all nodes of a path, or compares nodes."""
    number, compared = random.randint(0, 3), random.choice(_COMPARED)
    if random.random() < 0.45:
        return random.choice(
            (
                "1",
                "1",
                "2",
                "last()",
                "last()",
                f"last() - {number}",
                f"position() < {number + 1}",
                f"position() >= {number}",
                f"position() = {number}",
                f"position() > last() - {number}",
                "position() < last()",
            )
        )
    path, other = _path(random), _path(random)
    if random.random() < 0.25:
        place = random.choice(("1", "2", "last()"))
        one, two = random.choice(small_cases.LABELS), random.choice(small_cases.LABELS)
        return random.choice(
            (
                f"not({one}[{place}])",
                f"not({one}[{place}] and {two})",
                f"{one}[{place}] or {two}",
                f"{one}[{place}]/{two} or not({two}[1])",
                f"not(position() = {number}) or {one}",
                f"position() = last() and {one}",
            )
        )
    counted = f"count({path}) {compared} {number}"
    return random.choice(
        (
            counted,
            counted,
            f"count({path}) {compared} count({other})",
            f"sum({path}) {compared} {number}",
            f"max({path}) {compared} {random.choice(('min', 'avg'))}({other})",
            f"{counted} or {other}",
            f"not({counted})",
            f"not({path}) or {counted}",
            f"exactly-one({path}) {compared} {number}",
            f"zero-or-one({path}) = '1'",
            f"string-join({path}, '-') = '1-2'",
            f"count(distinct-values({path})) {compared} {number}",
            f"deep-equal({path}, {other})",
            f"{path} << {other}",
            f"{path} is {other}",
            f". << {other}",
        )
    )


def _readable(pattern: Pattern) -> tuple[list[str], list[str]]:
    """The outputs, and those that are strings."""
    inside = {node.name for branch in _collects(pattern) for node in nodes_of(branch)}
    outputs = [replace(o, alias=None) for o in pattern.outputs if o.of not in inside]
    values = [str(output) for output in outputs if output.kind in _READ]
    return list(dict.fromkeys(map(str, outputs))), list(dict.fromkeys(values))


def _collects(pattern: Pattern) -> Iterator[Collect]:
    waiting = list(pattern.branches)
    while waiting:
        branch = waiting.pop()
        if isinstance(branch, Collect):
            yield branch
        waiting += getattr(branch, "branches", ())


def _text(random: Random, pattern: Pattern, columns: list[str], values: list[str]) -> str:
    text = str(replace(pattern, outputs=()))
    if random.random() < 0.4:
        text += " and " if " where " in text else " where "
        text += _condition(random, values)
    grouped = _groups if random.random() < 0.65 else _rows
    return text + grouped(random, columns, values)


def _condition(random: Random, values: list[str]) -> str:
    value, number = random.choice(values), random.choice(_NUMBERS)
    compared = random.choice(_COMPARED)
    return random.choice(
        (
            f"{value} * 2 {compared} {number}",
            f"({value} {compared} {number} or {value} = 'a')",
            f"contains({value}, '1')",
            f"not(starts-with({value}, 'a'))",
            f"string-length({value}) {compared} 1",
            f"{value} + 1 {compared} {random.choice(values)}",
            f"(if ({value} = '1') then 1 else 2) {compared} {number}",
        )
    )


def _computed(random: Random, values: list[str]) -> str:
    value = random.choice(values)
    return random.choice(
        (
            f"{value} * 1.5",
            f"{value} + {random.choice(values)}",
            f"1 div {value}",
            f"concat({value}, '!')",
            f"upper-case({value})",
            f"if ({value} > 1) then 'more' else {value}",
            f"number({value}) - 1",
            f"{value} > 1",
        )
    )


def _aggregate(random: Random, columns: list[str], values: list[str]) -> str:
    value = random.choice(values) if random.random() < 0.8 else f"({_computed(random, values)})"
    column = random.choice(columns)
    return random.choice(
        (
            "count()",
            "count()",
            f"count({value})",
            f"count(distinct {column})",
            f"sum({value})",
            f"sum({value})",
            f"avg({value})",
            f"min({value})",
            f"max({value})",
            f"min({column})",
            f"max({column})",
            f"string-join({value}, ',')",
            f"collect({value})",
            f"latest({value} by {random.choice(columns)})",
            f"earliest({value} by {random.choice(values)})",
        )
    )


def _groups(random: Random, columns: list[str], values: list[str]) -> str:
    text, names = _grouping(random, columns, values)
    if random.random() < 0.35:
        having = random.choice((names[-1], "count()", f"max({random.choice(values)})"))
        text += f" having {having} {random.choice(_COMPARED)} {random.choice(_NUMBERS)}"
    return text + _order(random, [*names, "count()"])


def _grouping(random: Random, columns: list[str], values: list[str]) -> tuple[str, list[str]]:
    """The outputs of a query with groups, and their names."""
    outputs: list[str] = []
    names: list[str] = []
    for number in range(random.choice((0, 1, 1, 1, 2))):
        key = random.choice(columns) if random.random() < 0.7 else _computed(random, values)
        names.append(f"k{number}")
        outputs.append(f"{key} as k{number}")
    for number in range(random.choice((1, 1, 2, 3))):
        found = _aggregate(random, columns, values)
        if random.random() < 0.15:
            found = f"{found} * 2"
        names.append(f"g{number}")
        outputs.append(f"{found} as g{number}")
    random.shuffle(outputs)
    return f" return {', '.join(outputs)}", names


def _rows(random: Random, columns: list[str], values: list[str]) -> str:
    names: list[str] = []
    outputs: list[str] = []
    for number in range(random.choice((0, 1, 1, 2))):
        outputs.append(f"{random.choice(columns)} as k{number}")
        names.append(f"k{number}")
    for number in range(random.choice((0, 1, 1, 2)) if outputs else 1):
        outputs.append(f"{_computed(random, values)} as c{number}")
        names.append(f"c{number}")
    return f" return {', '.join(outputs)}" + _order(random, names)


def _order(random: Random, names: list[str]) -> str:
    text = ""
    if random.random() < 0.4:
        keys = random.sample(names, random.randint(1, min(2, len(names))))
        written = [key + random.choice(("", " descending", " ascending")) for key in keys]
        text = f" order by {', '.join(written)}"
    if random.random() < (0.7 if text else 0.1):
        text += f" limit {random.choice((0, 1, 1, 2, 3))}"
    return text


def smaller_aggregates(given: AggregatesCase) -> Iterator[AggregatesCase]:
    """Reduced cases: one query alone, then fewer queries, updates and nodes."""
    if len(given.texts) > 1:
        for text in given.texts:
            yield replace(given, texts=(text,))
        for at in range(len(given.texts)):
            yield replace(given, texts=given.texts[:at] + given.texts[at + 1 :])
    for case in less_of(given.case):
        yield replace(given, case=case)
