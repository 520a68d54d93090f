"""Steps: computed values, groups, order and limits equal recomputation, after every update.

definition   rows and counts are those of `evaluate/steps_definition.py`, in the order of the
             query; the changes lead from the rows before to the rows after, each key once
maintainers  all that accept the pattern are forced, messages that are not kept included
SQLite       groups, `having`, order and limit over the same bindings give SQLite's rows
sharing      views that share a group or a plan are no exception: the definition is that of each
batches      a batch emits the net difference; a batch that fails changes nothing
text         the canonical text of the query is the query again
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zlib import crc32

from axlog.document.ids import Id
from axlog.document.tree import Tree
from axlog.errors import AxlogError, QueryError
from axlog.evaluate import steps_definition
from axlog.evaluate.definition import Valuation, valuations
from axlog.evaluate.sort_keys import order_key
from axlog.live.internals import maintained
from axlog.live.view import View
from axlog.query.pattern import Kind, Pattern
from axlog.query.query import Query, parse_query
from axlog.query.steps import Compute, Filter, Group, Order, has_groups, order_of
from axlog.query.syntax_tree import Binary, Constant, Reference
from axlog.query.values import ValueKind, key_of
from axlog.views.change import Change
from axlog.views.choose import MAINTAINERS
from lab.laws.aggregates_cases import AggregatesCase
from lab.laws.edits import carry_out
from lab.laws.exact_law import Bench, Broken
from lab.laws.fuzz_cases import DEFAULT, Step


def check_aggregates(given: AggregatesCase) -> None:
    """Check the law for the queries of a case, each with a maintainer that accepts it."""
    _check_text(parse_query(given.texts[0]))  # parsing is slow: one query of each case
    _Run(given).check()


def _maintainer(given: AggregatesCase, text: str) -> str:
    """A maintainer, by the text of the query; without messages only counting works."""
    if given.share_from is not None:
        return DEFAULT
    if given.case.keep != "all" or given.case.validate != "all":
        return "counting"
    names = (given.case.maintainer, "counting", "reevaluate", "algebraic")
    return names[crc32(text.encode()) % len(names)]


def _check_text(query: Query) -> None:
    again = parse_query(str(query))
    _same("the canonical text", str(again), str(query))
    _same("the columns of the canonical text", again.columns.types, query.columns.types)


class _Valuations:
    """The valuations of patterns on one version of a document, found once for all queries."""

    def __init__(self) -> None:
        self._found: dict[object, list[Valuation]] = {}

    def clear(self) -> None:
        """Forget them: the document is another one."""
        self._found.clear()

    def __call__(self, tree: Tree, pattern: Pattern) -> list[Valuation]:
        """The valuations; outputs matter by the nodes that they name, which must differ."""
        key = (pattern.branches, pattern.where, frozenset(each.of for each in pattern.outputs))
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = list(valuations(tree, pattern))
        return found


class _Run:
    """The queries of a case, beside a document that keeps everything."""

    def __init__(self, given: AggregatesCase) -> None:
        self.steps = given.steps
        self.match = _Valuations()
        self.keeps_all = given.case.keep == given.case.validate == "all"
        self.bench = Bench(given.case)
        self.tested: list[_Tested] = []
        if given.share_from is not None:
            maintained(self.bench.tested).families.share_from = given.share_from
        for number, text in enumerate(given.texts):
            maintainer = _maintainer(given, text)
            wanted = None if maintainer == DEFAULT else maintainer
            try:
                view = self.bench.tested.watch(text, f"v{number}", maintainer=wanted)
            except QueryError as error:
                if error.code != "AX212" or wanted in (None, "reevaluate"):
                    raise
                assert wanted in MAINTAINERS
            else:
                self.tested.append(_Tested(view, parse_query(text), self.bench, self.match))

    def check(self) -> None:
        for each in self.tested:
            each.table = each.compare("at first")
        for number, step in enumerate(self.steps):
            for each in self.tested:
                each.heard.clear()
            if number % 3 == 2 and self.keeps_all:
                self._fail_batch(step)
            if number % 2:
                with self.bench.tested.batch():
                    told = self.bench.take(step)
            else:
                told = self.bench.take(step)
            self.match.clear()
            for each in self.tested:
                if told is None:
                    _same("the changes of a refused update", each.heard, [])
                each.follow(number + 1)

    def _fail_batch(self, step: Step) -> None:
        with suppress(_Undone), self.bench.tested.batch():
            with suppress(AxlogError):
                carry_out(self.bench.tested, step)
            raise _Undone
        for each in self.tested:
            _same("what a failed batch emits", each.heard, [])


class _Tested:
    """One query kept by one maintainer, with its rows by key after the last step."""

    def __init__(self, view: View, query: Query, bench: Bench, match: _Valuations) -> None:
        self.view, self.query, self.bench, self.match = view, query, bench, match
        self.table: dict[str, Any] = {}
        self.heard: list[Change] = []
        view.subscribe(self.heard.append)

    def follow(self, number: int) -> None:
        """Check the rows and the changes of a step."""
        after = self.compare(f"after step {number}")
        _same(f"the changes of step {number}", self._replayed(self.table), after)
        self.table = after

    def compare(self, when: str) -> dict[str, Any]:
        """Compare the rows with the definition and with SQLite."""
        view, query = self.view, self.query
        tree = maintained(self.bench.plain).nodes()
        rows = view.rows()
        kept = steps_definition.kept_by_definition(tree, query, self.match)
        wanted = Counter[Any]()
        for values, count in kept:
            wanted[values[: len(query.row_key.columns)]] += count
        found = Counter[Any]()
        for row in rows:
            found[_plain(row.values_)] += row.count
        _same(f"the rows {when}", found, _counter(wanted))
        if order_of(query.steps) is not None:
            shown = [_plain(row.values_) for row in rows]
            ordered = [_plain(values[: len(query.row_key.columns)]) for values, _ in kept]
            _same(f"the order {when}", shown, ordered)
        _check_sqlite(tree, query, wanted, when, self.match)
        table = {row.key_text: _plain(row.values_) for row in rows}
        _same(f"the keys {when}", len(table), len(rows))
        return table

    def _replayed(self, table: dict[str, Any]) -> dict[str, Any]:
        after = dict(table)
        seen: set[str] = set()
        for change in self.heard:
            if change.op == "never":
                continue
            key = change.key_text
            if key in seen:
                raise Broken(f"two changes of the key {key}: {self.heard}")
            seen.add(key)
            before = after.pop(key, None)
            if (before is None) != (change.op == "insert"):
                raise Broken(f"{change} of a table with {before}")
            if change.before is not None and _plain(change.before.values_) != before:
                raise Broken(f"{change}, but the row was {before}")
            if change.op != "delete":
                after[key] = _plain(change.row.values_)
        return after


class _Undone(Exception):
    """The exception in the body of a failing batch."""


def _counter(rows: Counter[Any]) -> Counter[Any]:
    found = Counter[Any]()
    for row, count in rows.items():
        found[_plain(row)] += count
    return found


def _plain(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values that compare by equality: quotients are rounded to fifteen decimals."""
    return tuple(_plain_value(value) for value in values)


def _plain_value(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return ("truth", value)
    if isinstance(value, int | Decimal | Fraction):
        return round(Fraction(value), 15)
    if isinstance(value, tuple):
        return _plain(value)
    return str(value) if isinstance(value, Id) else value


# SQLite -------------------------------------------------------------------------------------------


def _check_sqlite(
    tree: Tree, query: Query, wanted: Counter[Any], when: str, match: _Valuations
) -> None:
    """Compare groups with SQLite, where its values are those of the language."""
    key = query.row_key
    if not has_groups(key.steps):
        return
    group = next(step for step in key.steps if isinstance(step, Group))
    at = key.steps.index(group)
    before, after = key.steps[:at], key.steps[at + 1 :]
    if any(output.kind is not Kind.VARIABLE for output in key.pattern.outputs):
        return
    statement = _statement(group, after)
    if statement is None:
        return
    rows = steps_definition.apply_steps(
        steps_definition.base_rows(tree, key.pattern, key.steps, match), key.pattern, before
    )
    cells = next(step for step in reversed(before) if isinstance(step, Compute)).cells
    if not all(_is_plain(value) for row, _ in rows for value in row):
        return
    connection = sqlite3.connect(":memory:")
    names = ", ".join(f'"{cell.name}", "{cell.name}#"' for cell in cells)
    connection.execute(f"create table b ({names or 'empty'})")
    marks = ", ".join("?" * (2 * len(cells))) or "null"
    for row, count in rows:
        stored = [stored for value in row for stored in (value, _stored(value))]
        connection.executemany(f"insert into b values ({marks})", [stored] * count)
    found = Counter(_plain(row) for row in connection.execute(statement).fetchall())
    rounded = Counter[Any]()
    for row, count in wanted.items():
        rounded[_plain(row)] += count
    _same(f"the rows of SQLite {when}", found, rounded)


def _is_plain(value: Any) -> bool:
    """Whether SQLite compares a value as the language does."""
    if isinstance(value, str):
        kind, key = key_of(value)
        return kind is ValueKind.TEXT or (kind is ValueKind.NUMBER and _is_small(key))
    return value is None


def _is_small(number: Decimal) -> bool:
    return abs(number) < 10**6 and number == number.quantize(Decimal(1))


def _stored(value: Any) -> Any:
    """A string that is a number as an integer, to be calculated and compared with."""
    if isinstance(value, str):
        key = order_key(value)[1]
        return int(key) if isinstance(key, Decimal) else value
    return value


_FUNCTIONS = {
    "count": "count({0})", "sum": "coalesce(sum(case typeof({1}) when 'integer' then {1} end), 0)",
    "min": "min({1})", "max": "max({1})",
}  # fmt: skip


def _statement(group: Group, after: tuple[Any, ...]) -> str | None:
    """The steps from the group on as SQL; None: SQLite has no such function."""
    written: dict[str, str] = {name: f'"{name}"' for name in group.keys}
    for each in group.aggregates:
        if each.function not in _FUNCTIONS:
            return None
        if each.argument is None:
            written[each.name] = "count(*)"
        elif each.is_distinct:
            written[each.name] = f'count(distinct "{each.argument}")'
        else:
            form = _FUNCTIONS[each.function]
            written[each.name] = form.format(f'"{each.argument}"', f'"{each.argument}#"')
    having = shown = ""
    cells: dict[str, str] = {}
    for step in after:
        match step:
            case Filter(condition=condition):
                found = _compared(condition, written, group)
                if found is None:
                    return None
                having = f" having {found}"
            case Compute():
                for cell in step.cells:
                    if not isinstance(cell.expression, Reference):
                        return None
                    cells[cell.name] = written[cell.expression.name]
                shown = ", ".join(sql for name, sql in cells.items() if "~" not in name)
            case Order():
                if step.limit is not None:
                    return None  # ties are broken by texts, which SQLite compares as numbers
    by = f" group by {', '.join(written[key] for key in group.keys)}" if group.keys else ""
    return f"select {shown} from b{by}{having}"


def _compared(condition: Any, written: dict[str, str], group: Group) -> str | None:
    """A comparison of an aggregate that is a number with a number."""
    match condition:
        case Binary(operator=operator, left=left, right=Constant(exact=Decimal() as number)):
            numeric = {a.name for a in group.aggregates if a.function in ("count", "sum")}
            name = getattr(left, "name", None)
            return f"{written[name]} {operator} {number}" if name in numeric else None
    return None


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise Broken(f"{what}: {found} instead of {wanted}")
