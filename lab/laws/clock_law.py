"""Views about the clock: rows and changes are those of the definition at every moment.

    rows          after every step, with counts, are those of the definition at the clock
    moments       the changes of the clock are the differences of the definition's rows from one
                  microsecond to the next, each with its moment, in their order, before the
                  changes of the update that moved the clock
    updates       the other changes are the difference that the update makes at its own time
    batches       net changes, from which no change of the clock is missing; a batch that fails
                  emits nothing, and leaves rows, counts and later changes as they were
    restarts      a document that is loaded from a snapshot continues as if nothing had happened
    text          the canonical text of the query is the query again

The definition evaluates the query as it was written, `now` included, on a document that keeps
everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from axlog.document.ids import Id
from axlog.document.parser import DEFAULT_LIMITS
from axlog.errors import AxlogError, QueryError
from axlog.evaluate.steps_definition import kept_by_definition
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.log_records import settings_of
from axlog.live.options import Options
from axlog.live.recovery import load_parts, snapshot_parts
from axlog.query.query import parse_query
from axlog.views.change import Change, Row
from lab.laws.clock_cases import ClockCase, Step
from lab.laws.exact_law import Broken

Key = tuple[Any, ...]
Table = dict[Key, Key]
Moved = tuple[str, Key, Key | None, Key | None]
"""An operation, the key of a row, its values before and after."""


def check_clock(case: ClockCase) -> Counter[str]:
    """Compare one case after every step; return the number of events by name."""
    query = parse_query(case.text)
    _same("the canonical text", str(parse_query(str(query))), str(query))
    try:
        run = _Run(case)
    except QueryError as error:
        if error.code != "AX212" or case.maintainer in (None, "reevaluate"):
            raise
        return Counter({"declined": 1})
    run.compare("at first")
    for number, step in enumerate(case.steps):
        run.step(step)
        run.compare(f"after step {number + 1}, {step}")
    return run.seen


class _Undone(Exception):
    """The exception in the body of a failing batch."""


class _Run:
    def __init__(self, case: ClockCase) -> None:
        self.options: dict[str, Any] = {**dict(case.options), "keep": case.keep}
        self.query = parse_query(case.text)
        self.tested = Document(case.document, options=Options(**self.options))
        self.plain = Document(case.document, options=Options(collect="off", tune="off"))
        self.tested.watch(case.text, "v", maintainer=case.maintainer)
        self.heard: list[Change] = []
        self.tested.view("v").subscribe(self.heard.append)
        self.counts: Counter[Any] = Counter()
        self.table = self.by_definition()
        self.seen: Counter[str] = Counter()

    # The definition -------------------------------------------------------------------------------

    @property
    def clock(self) -> int:
        return maintained(self.plain).tree.clock

    def by_definition(self, clock: int | None = None) -> Table:
        """The rows by their keys, at a clock; `counts` has their numbers."""
        tree, key = maintained(self.plain).nodes(), self.query.row_key
        with self._at(clock):
            kept = kept_by_definition(tree, self.query)
        self.counts.clear()
        table: Table = {}
        for row, count in kept:
            shown = _plain(row[: len(key.columns)])
            found = _plain(tuple(row[at] for at in key.positions))
            table[found] = shown
            self.counts[found, shown] += count
        return table

    @contextmanager
    def _at(self, clock: int | None) -> Iterator[None]:
        tree = maintained(self.plain).tree
        before = tree.clock
        tree.clock = before if clock is None else clock
        yield
        tree.clock = before

    def expected(self, clock: int) -> list[tuple[int, Moved]]:
        """The changes of the clock up to a moment, which leave the table as it is then."""
        found: list[tuple[int, Moved]] = []
        for moment in range(self.clock + 1, clock + 1):
            table = self.by_definition(moment)
            found += [(moment, moved) for moved in _moved(self.table, table)]
            self.table = table
        return found

    # Steps ----------------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        self.heard.clear()
        if step[0] == "batch":
            self._batch(*step[1:])
            return
        expected, own = self._both(step)
        self._check(step, expected, own)

    def _both(self, step: Step) -> tuple[list[tuple[int, Moved]], list[Moved]]:
        """Carry a step out on both documents; the changes of the clock, and those of the step."""
        doc, before = self.tested, maintained(self.tested).tree.clock
        _same("the clocks", before, self.clock)
        try:
            done = self._carry_out(doc, step)
        except AxlogError as error:
            self.seen[error.code] += 1
            _same(f"the clock after a refused step {step}", maintained(doc).tree.clock, before)
            return [], []
        if not done:
            return [], []
        self.seen[step[0]] += 1
        clock = maintained(self.tested).tree.clock
        expected = self.expected(clock)
        self._carry_out(self.plain, step)
        _same(f"the clocks after {step}", self.clock, clock)
        table = self.by_definition()
        own = _moved(self.table, table)
        self.table = table
        self.seen["moments"] += len(expected)
        self.seen["changes"] += len(own)
        return expected, own

    def _carry_out(self, doc: Document, step: Step) -> bool:
        kind, *given = step
        clock = maintained(doc).tree.clock
        if kind == "feed":
            stream, text, ahead = given
            doc.feed(stream, text, at=timedelta(microseconds=clock + ahead))
        elif kind == "advance":
            doc.advance(timedelta(microseconds=clock + given[0]))
        elif kind == "end":
            if given[0] not in maintained(doc).tree.calls():
                return False
            doc.end(given[0])
        elif kind == "delete":
            doc.delete(given[0], f"match /{given[1]}")
        elif kind == "update":
            doc.update(given[0], at=timedelta(microseconds=clock + given[1]))
        elif doc is self.plain:
            return True
        elif kind == "read":
            doc.xml()
        elif kind == "tune":
            doc.tune()
        elif kind == "collect":
            doc.collect()
        elif kind == "restart":
            self._restart()
        return True

    def _batch(self, is_undone: bool, steps: tuple[Step, ...]) -> None:
        if is_undone:
            with suppress(_Undone), self.tested.batch():
                for step in steps:
                    with suppress(AxlogError):
                        self._carry_out(self.tested, step)
                raise _Undone
            _same("what a failed batch emits", self.heard, [])
            return
        before = dict(self.table)
        expected: list[tuple[int, Moved]] = []
        with self.tested.batch():
            for step in steps:
                expected += self._both(step)[0]
        found = [(each.microseconds, self._change(each)) for each in self.heard if _is_clock(each)]
        _same("the changes of the clock in a batch", _by_moment(found), _by_moment(expected))
        for change in self.heard:
            self._apply(before, change)
        _same("the rows that the changes of a batch give", before, self.table)

    def _restart(self) -> None:
        if maintained(self.tested).collected:
            return
        options = {name: self.options[name] for name in ("keep", "collect", "never")}
        settings = settings_of("", options, asdict(DEFAULT_LIMITS))
        self.tested = load_parts(snapshot_parts(self.tested, settings, {}), 1).document
        self.tested.view("v").subscribe(self.heard.append)

    # Comparisons ----------------------------------------------------------------------------------

    def _check(self, step: Step, expected: list[tuple[int, Moved]], own: list[Moved]) -> None:
        heard = [change for change in self.heard if change.op != "never"]
        timed = [(each.microseconds, self._change(each)) for each in heard if _is_clock(each)]
        _same(f"the changes of the clock, {step}", _by_moment(timed), _by_moment(expected))
        _same(f"the order of changes, {step}", [at for at, _ in timed], sorted(a for a, _ in timed))
        others = [change for change in heard if not _is_clock(change)]
        _same(f"the changes, {step}", sorted(map(self._change, others), key=repr), own)
        _same(f"their place, {step}", heard, [c for c in heard if _is_clock(c)] + others)
        _same(f"their time, {step}", {c.microseconds for c in others} - {self.clock}, set())

    def _key(self, row: Row) -> Key:
        """The key of a row, with times in microseconds."""
        at = self.query.row_key.positions
        return _plain(row.key_ if row.key_ is not None else tuple(row.values_[n] for n in at))

    def _change(self, change: Change) -> Moved:
        key, values = self._key(change.row), _plain(change.row.values_)
        if change.op == "update":
            assert change.before is not None
            return change.op, key, _plain(change.before.values_), values
        is_new = change.op == "insert"
        return change.op, key, None if is_new else values, values if is_new else None

    def _apply(self, table: Table, change: Change) -> None:
        if change.op == "never":
            return
        _, key, before, after = self._change(change)
        _same(f"the row before {change}", table.get(key), before)
        if after is None:
            del table[key]
        else:
            table[key] = after

    def compare(self, when: str) -> None:
        view = self.tested.view("v")
        found: Counter[Any] = Counter()
        for row in view.rows():
            found[self._key(row), _plain(row.values_)] += row.count
        wanted = self.counts
        if self.options["collect"] != "off":  # counts may change
            found, wanted = Counter(dict.fromkeys(found, 1)), Counter(dict.fromkeys(wanted, 1))
        _same(f"the rows {when}", found, wanted)


def _moved(before: Table, after: Table) -> list[Moved]:
    """The changes from one table to another, sorted."""
    found: list[Moved] = []
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if old != new:
            op = "insert" if old is None else "delete" if new is None else "update"
            found.append((op, key, old, new))
    return sorted(found, key=repr)


def _is_clock(change: Change) -> bool:
    return change.cause is not None and change.cause.kind == "clock"


def _by_moment(found: list[tuple[int, Moved]]) -> dict[int, list[Moved]]:
    each: dict[int, list[Moved]] = {}
    for moment, moved in found:
        each.setdefault(moment, []).append(moved)
    return {moment: sorted(moved, key=repr) for moment, moved in each.items()}


def _plain(values: tuple[Any, ...]) -> Key:
    return tuple(_plain_value(value) for value in values)


def _plain_value(value: Any) -> Any:
    if isinstance(value, int | Decimal | Fraction) and not isinstance(value, bool):
        return round(Fraction(value), 15)
    if isinstance(value, tuple):
        return _plain(value)
    return str(value) if isinstance(value, Id) else value


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise Broken(f"{what}: {found} instead of {wanted}")
