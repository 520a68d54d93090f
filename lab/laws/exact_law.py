"""Laws 1, 2 and 8 on one case: exact rows and changes, net batches, idle updates that cost nothing.

    law 1   maintained(view, update) == evaluated(view, apply(document, update)), counts included
    law 2   maintainers agree, and a batch emits exactly the difference that its updates make
    law 8   an update that affects no view does no work beyond its inspection

Every maintainer is tested in turn, as users run it, in a document: generated matchers, messages set
aside, any size of blocks, views that are added and removed. Where axlog chooses (`default`), the
document counts as a large one, and adaptive views switch every few updates. Re-evaluation runs
beside it on a separate document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

from axlog.document.ids import Id
from axlog.errors import AxlogError
from axlog.live.document import Document
from axlog.live.internals import maintained, maintained_view
from axlog.live.options import Options
from axlog.live.view import View
from axlog.query.compile import compile_pattern
from axlog.query.pattern import Kind, Pattern
from axlog.query.query import Query
from axlog.store.keyvalue import KeyValueStore
from axlog.views.change import Change, Row, identity
from axlog.views.choose import Thresholds, maintainer_named
from axlog.views.counting.maintainer import Counting
from axlog.views.net_changes import net
from axlog.views.operators.disk_table import Shelf
from axlog.views.prices import Costs, Prices
from axlog.views.records.maintainer import Records
from lab import reference
from lab.laws.edits import carry_out
from lab.laws.fuzz_cases import DEFAULT, Case, Step

RESTLESS = Prices(
    Costs(0.0, 10.0, 0.1), Costs(15.0, 1.0, 0.1), Costs(15.0, 1.0, 0.1), Costs(15.0, 1.0, 0.1)
)
"""Costs at which adaptive views change over every few updates."""

_BOTH = ("insert", "delete")

ViewChanges: TypeAlias = "Counter[tuple[object, ...]]"


class Broken(AssertionError):
    """A law does not hold; the message says where."""


# A running case -----------------------------------------------------------------------------------


class Bench:
    """A case on two documents side by side: a maintainer as users run it, and re-evaluation."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.tested = Document(
            case.document, options=Options(keep=case.keep, validate=case.validate)
        )
        document = maintained(self.tested)
        shelf = None if case.memory is None else Shelf(KeyValueStore(), case.memory)
        document.make_engines(shelf, case.block)
        document.thresholds = Thresholds(1, RESTLESS)
        self.plain = Document(case.document)
        self.patterns: dict[str, Pattern] = {}
        self.heard: dict[str, list[Change]] = {}

    def watch(self, step: int) -> None:
        """Create the views that start before this step, and remove those that end there."""
        for number, pattern in enumerate(self.case.patterns):
            name = f"view{number + 1}"
            since, until = self.case.since[number:], self.case.until[number:]
            begins = (since[0] if since else 0) == step
            if begins and (kept_by := self._maintainer(pattern)) is not None:
                self.patterns[name] = pattern
                query = Query(pattern=pattern, template=None, language="tree", text=str(pattern))
                wanted = None if kept_by == DEFAULT else kept_by
                view = self.tested.watch(query, name, maintainer=wanted)
                self.plain.watch(query, name, maintainer="reevaluate")
                self.heard[name] = []
                view.subscribe(self.heard[name].append)
            if until and until[0] == step and name in self.patterns:
                del self.patterns[name]
                self.tested.unwatch(name)
                self.plain.unwatch(name)

    def _maintainer(self, pattern: Pattern) -> str | None:
        """The wanted maintainer if it supports the pattern, else counting, else none."""
        wanted = self.case.maintainer
        if wanted == DEFAULT or maintainer_named(wanted).refusal(pattern) is None:
            return wanted
        return Counting.name if Counting.refusal(pattern) is None else None

    def counts_changes(self, name: str) -> bool:
        """Whether the rows of a view's changes have counts: records only know that a row holds."""
        return maintained_view(self.tested.view(name)).chosen.name != Records.name

    def take(self, step: Step) -> tuple[list[Change], list[Change]] | None:
        """Apply a step on both sides: their changes, or None if both refuse it alike."""
        results: list[list[Change] | str] = []
        for doc in (self.tested, self.plain):
            try:
                results.append(carry_out(doc, step))
            except AxlogError as error:
                results.append(error.code)
        tested, plain = results
        if isinstance(tested, str) or isinstance(plain, str):
            _same("what an update is refused for", tested, plain)
            return None
        return tested, plain

    def rows(self, name: str) -> ViewChanges:
        return _rows(self.tested.view(name))

    def check_rows(self) -> None:
        for name in self.patterns:
            _same(f"the rows of {name}", self.rows(name), _rows(self.plain.view(name)))

    def check_documents(self) -> None:
        """At the end, the documents are equal, and so are the rows by definition."""
        if self.case.keep == self.case.validate == "all":
            _same("the document", self.tested.xml(), self.plain.xml())
        tree = maintained(self.plain).tree
        for name, pattern in self.patterns.items():
            answers = reference.rows(tree, pattern).values()
            wanted = Counter((answer.values, answer.count) for answer in answers)
            _same(f"the rows of {name} by definition", self.rows(name), wanted)


def check_exact(case: Case) -> None:
    """Law 1: after every step rows, counts and changes equal those of re-evaluation."""
    bench = Bench(case)
    for number, step in enumerate(case.steps):
        bench.watch(number)
        old = {name: bench.rows(name) for name in bench.patterns}
        told = bench.take(step)
        bench.check_rows()
        for name, before in old.items():
            heard, bench.heard[name][:] = list(bench.heard[name]), []
            if told is None:
                _same(f"the changes of {name} by a refused update", heard, [])
                continue
            tested, plain = ([c for c in changes if c.view == name] for changes in told)
            sides = (_changes(side, bench.counts_changes(name)) for side in (tested, plain))
            _same(f"the changes of {name}", *sides)
            _same(f"what listeners to {name} heard", heard, tested)
            numbers = [_numbers(side) for side in (tested, plain)]
            _same(f"the numbers of the changes of {name}", *numbers)
            after = replayed(_values(before), tested)
            _same(f"the changes of {name}, replayed", after, _values(bench.rows(name)))
    bench.watch(len(case.steps))
    bench.check_rows()
    bench.check_documents()


def check_batches(case: Case) -> None:
    """Law 2: a batch emits the net difference that it makes, for every batch size.

    A batch whose body raises makes no difference and emits nothing.
    """
    for size in (1, 2, len(case.steps) or 1):
        bench = Bench(replace(case, since=(), until=()))
        bench.watch(0)
        if size > 1:
            _check_failed_batch(bench, case.steps)
        for start in range(0, len(case.steps), size):
            _check_batch(bench, case.steps[start : start + size])
        bench.check_documents()


def _check_batch(bench: Bench, steps: tuple[Step, ...]) -> None:
    old = {name: _values(bench.rows(name)) for name in bench.patterns}
    every: list[Change] = []
    with bench.tested.batch():
        for step in steps:
            every += (bench.take(step) or ((), ()))[0]
        _same("what is heard inside a batch", [c for h in bench.heard.values() for c in h], [])
    bench.check_rows()
    for name, before in old.items():
        heard, bench.heard[name][:] = list(bench.heard[name]), []
        after = _values(bench.rows(name))
        _same(f"the batch of {name}", heard, net(c for c in every if c.view == name))
        _same(f"the batch of {name}, replayed", replayed(before, heard), after)
        known = [Counter(identity(c.row) for c in heard if c.op == op) for op in _BOTH]
        _same(f"what {name} both gains and loses in a batch", known[0] & known[1], Counter())
        gained = Counter(c.row.values_ for c in heard if c.op == "insert")
        lost = Counter(c.row.values_ for c in heard if c.op == "delete")
        if not _has_updates(bench.patterns[name]):
            _same(f"what {name} gains in a batch", gained, after - before)
            _same(f"what {name} loses in a batch", lost, before - after)


class _Undone(Exception):
    """The exception in the body of a failing batch."""


def _check_failed_batch(bench: Bench, steps: tuple[Step, ...]) -> None:
    tested = bench.tested
    clock, streams = tested.clock, tested.streams()
    with suppress(_Undone), tested.batch():
        for step in steps:
            with suppress(AxlogError):
                carry_out(tested, step)
        raise _Undone
    _same("what is heard of a failed batch", [c for h in bench.heard.values() for c in h], [])
    _same("the clock after a failed batch", tested.clock, clock)
    _same("the streams after a failed batch", tested.streams(), streams)
    bench.check_rows()


def _has_updates(pattern: Pattern) -> bool:
    """Whether rows can be updated: they show a value, a content, or collected paths."""
    is_read = any(output.kind in _READ for output in pattern.outputs)
    return is_read or bool(compile_pattern(pattern).gathers)


def check_idle(case: Case) -> None:
    """Law 8: a message that affects no view is inspected once, and moves nothing."""
    bench = Bench(replace(case, since=(), until=()))
    bench.watch(0)
    bench.check_rows()
    for step in ((), *case.steps):
        if step:
            bench.take(step)
        for stream in sorted(maintained(bench.tested).tree.calls()):
            _check_idle_message(bench.tested, stream)


def _check_idle_message(doc: Document, stream: str) -> None:
    document = maintained(doc)
    call = document.tree.call(document.tree.calls_by_stream[stream])
    if call.mode == "one-shot" or call.most is not None:
        return
    engine = document.engine
    for message, nodes in _UNNOTICED:
        before = (engine.visited, engine.climbed)
        changes = doc.feed(stream, message)
        work = (engine.visited - before[0], engine.climbed - before[1])
        _same(f"the changes by {message}", changes, [])
        if work[0] > nodes:
            raise Broken(f"{work[0]} nodes were visited for {message}, which has {nodes}")
        _same(f"the sites that {message} moved", work[1], 0)


_UNNOTICED = (
    ('<z k1="1"><y/><z><x/></z></z>', 6),
    ("<z/><y><z/></y>", 3),
)
_READ = (Kind.VAL, Kind.CONT)


# Comparing ----------------------------------------------------------------------------------------


def _same(what: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        if isinstance(found, Counter) and isinstance(wanted, Counter):
            found, wanted = found - wanted, wanted - found
            raise Broken(f"{what}: {list(found)} too many, {list(wanted)} missing")
        raise Broken(f"{what}: found {found!r}, wanted {wanted!r}")


def _rows(view: View) -> ViewChanges:
    check_labels(view)
    return Counter((row.values_, row.count) for row in view.rows())


def check_labels(view: View) -> None:
    """The ids of rows have the current labels of their paths; equality of ids does not check it."""
    tree = maintained_view(view).maintainer.tree
    if not any(output.kind is Kind.ID for output in view.query.pattern.outputs):
        return
    for row in view.rows():
        for shown in row.values_:
            if isinstance(shown, Id) and shown.key:
                found, wanted = shown.labels, tree.id(tree.find(shown)).labels
                _same(f"the labels of {shown} in {view.name}", found, wanted)


def _values(rows: ViewChanges) -> ViewChanges:
    """Rows without their counts; rows of several nodes may show the same values."""
    values: ViewChanges = Counter()
    for (shown, _), number in rows.items():
        values[shown] += number  # type: ignore[index]  # the first of a pair is a tuple
    return values


def _changes(changes: list[Change], is_counted: bool) -> ViewChanges:
    """Changes to compare, without `never`, which only some maintainers emit (law 5 compares it)."""
    told = [change for change in changes if change.op != "never"]
    if not is_counted:
        return Counter((c.op, c.row.values_, c.before and c.before.values_, c.time) for c in told)
    return Counter((c.op, _counted(c.row), _counted(c.before), c.time) for c in told)


def _numbers(changes: list[Change]) -> list[int]:
    """The positions of changes, from the first on; `never` changes are numbered too."""
    told = [change for change in changes if change.op != "never"]
    return [change.position - told[0].position for change in told]


def _counted(row: Row | None) -> object:
    return None if row is None else (row.values_, row.count)


def replayed(rows: ViewChanges, changes: Iterable[Change]) -> ViewChanges:
    """The rows of a reader that started with some rows and received these changes."""
    after = Counter(rows)
    for change in changes:
        if change.op != "insert":
            gone = change.row if change.before is None else change.before
            after[gone.values_] -= 1
        if change.op != "delete":
            after[change.row.values_] += 1
    return Counter({values: number for values, number in after.items() if number})
