"""A bucket's engine: the embedded engine's upper program, as a plain class that Spark only carries.

An instance is one engine with its order of updates. For bindings the engine is a widget whose
messages are never seen: what the matchers found travels instead and is applied by the same routes.
For whole messages it is the widget itself. A batch goes in as packets and comes out as net changes,
updates that were refused, and counts.

State: `state()` is plain data from which `restore` goes on: the rows of joins and views where
messages become no nodes, and else the document with them (`live/recovery.py`). None where
neither says all; a log of batches does for those (`bucket_state.py`).

A row whose key is not known can never come only if no bucket can bring it: each says what it knows
(`voided`), now and since the start, and who puts the batch together tells it when all agree.

Law: batches may be cut anywhere; the changes, net, are those of a widget that was fed all updates
in order, restricted to the rows whose key belongs to the bucket.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import groupby
from time import monotonic
from typing import Any, TypeAlias

from axlog.document.ids import Id
from axlog.document.stream_update import StreamUpdate
from axlog.document.tree import Tree
from axlog.errors import AxlogError, EndedStreamError, LateError, QueryError
from axlog.evaluate.joins import Bag
from axlog.live.document import Document
from axlog.live.internals import maintained, streams_of
from axlog.live.recovery import load_parts, snapshot_parts
from axlog.query.compile import Relation
from axlog.runtime.bucket_order import (
    BINDINGS,
    BODY,
    CONTENT,
    KIND,
    MESSAGE,
    NOTHING,
    ORIGIN,
    SET_ASIDE,
    STREAM,
    TIME,
    UNREAD,
    Hold,
    Item,
    Order,
    Packet,
    Refused,
)
from axlog.runtime.definition import Definition
from axlog.runtime.extraction import bags_of, by_bucket
from axlog.runtime.plan import Unit, may_delete
from axlog.views.change import Change, timed_change
from axlog.views.counting.waiting_rows import Waiting
from axlog.views.net_changes import net

Shape: TypeAlias = tuple[Any, ...]
Claim: TypeAlias = dict[str, tuple[list[int], list[str]]]
"""By stream, the numbers of the relations that it is still wanted for, and their patterns."""
TUNE_EVERY = 16
"""Batches between two looks at what streams are still wanted for."""
_NOTHING: Bag = {}


@dataclass(slots=True)
class Outcome:
    """What a batch came to in one bucket."""

    changes: list[Change] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    applied: int = 0
    voided: list[Change] = field(default_factory=list)  # said here in this batch; see `Instance`


class Instance:
    """One engine, its order, and what it makes of batches."""

    def __init__(
        self, definition: Definition, unit: Unit, bucket: int, hold: Hold = 0, document: str = ""
    ) -> None:
        self.unit = unit
        self.bucket = bucket
        self.document = document
        self._definition = definition
        self.widget = _widget(definition, unit)
        self.order = Order(*_streams(self.widget), hold, start=definition.start)
        self._first_version = maintained(self.widget).tree.version
        self._ended: list[str] = []
        self._shapes = {s: _shapes(self.widget, s) for s in self.order.streams}
        self._plans = {s: streams_of(self.widget).engine.plan(s) for s in self.order.streams}
        self.voided: dict[str, None] = {}  # rows without a key that cannot come from here
        self.rows = self._count()
        self._again = 0.0
        self._claimed: Claim | None = None
        self._heard: list[Change] = []
        self._listen()

    def _listen(self) -> None:
        for view in self.widget.views.values():
            view.subscribe(self._heard.append)

    def begin(self) -> None:
        """Tell the rows that the document has at once, with the first batch."""
        self.rows = 0
        for name, view in self.widget.views.items():
            if view.broken is None:
                self._heard += [Change("insert", row, view=name) for row in view.rows()]

    def batch(self, packets: Sequence[Packet]) -> Outcome:
        """Apply what can be applied now; the net changes."""
        outcome = Outcome()
        released, late = self.order.take(packets)
        for item, clock in late:
            outcome.refused.append(_refused(item, _late(item, clock)))
        for are_bindings, items in groupby(released, _are_bindings):
            if are_bindings:
                self._apply_bindings(items, outcome)
                continue
            for item in items:
                try:
                    self._apply(item)
                    outcome.applied += 1
                except AxlogError as error:
                    outcome.refused.append(_refused(item, error))
        tree: Tree = maintained(self.widget).tree
        if self.order.clock > tree.clock:
            self.widget.advance(timedelta(microseconds=self.order.clock))
        heard, self._heard[:] = list(self._heard), []
        outcome.changes = self._net(heard)
        outcome.voided = [change for change in heard if self._is_void(change)]
        self.voided |= {json.dumps(plain_change(change)[:4]): None for change in outcome.voided}
        if self.unit.kind == "bindings":
            streams_of(
                self.widget
            ).collector.let_go_of_rows()  # sinks have them; nobody reads them here
        return outcome

    # Time -----------------------------------------------------------------------------------------

    @property
    def due(self) -> int | None:
        """The time after which something is to be done here though nothing comes; None: never.

        A deadline has passed when the clock is behind it; a message that is held back goes at its
        own time.
        """
        limits = [item[TIME] - 1 for item in self.order.pending[:1]]
        deadline = streams_of(self.widget).engine.next_deadline()
        return min([*limits, *(() if deadline is None else (deadline,))], default=None)

    @property
    def may_void(self) -> bool:
        """Whether time alone can rule out a row without a key, of which all buckets must speak."""
        key = self.unit.key
        return key is not None and any(
            waiting.pair.both_until is not None
            or any(key not in side.columns for side in waiting.pair.sides)
            for waiting in self._waitings()
        )

    # Tuning ---------------------------------------------------------------------------------------

    def tune(self, version: int) -> Claim | None:
        """What streams are wanted for from now on, if it is time to look; None: as before.

        `version` is the state's, not this engine's: of several processes that take turns with a
        bucket one looks.
        """
        is_time = version % TUNE_EVERY == 0 and monotonic() >= self._again
        if self.unit.kind != "bindings" or not is_time:
            return None
        report = self.widget.tune()
        self._again = monotonic() + 20 * report.seconds  # beside maintenance, not instead of it
        streaming = streams_of(self.widget).engine
        claim: Claim = {}
        for stream, shapes in self._shapes.items():
            wanted = self._numbers(stream) if streaming.plan(stream) else list(range(len(shapes)))
            if -1 in wanted:
                return None
            claim[stream] = (sorted(set(wanted)), list(streaming.patterns(stream)))
        if claim == self._claimed:
            return None
        self._claimed = claim
        return claim

    # Applying -------------------------------------------------------------------------------------

    def _apply(self, item: Item) -> None:
        """Take an update that travelled whole, or an end."""
        tree = maintained(self.widget).tree
        stream, kind, time = item[STREAM], item[KIND], self._time(item, tree.clock)
        if kind == "end" and min(self.order.heard, time) > tree.clock:
            # Elsewhere messages have moved the clock: what that rules out is not the end's doing.
            self.widget.advance(timedelta(microseconds=min(self.order.heard, time)))
        at = timedelta(microseconds=time)
        if kind == SET_ASIDE:
            self._set_aside(QueryError(*item[BODY]))
            self.widget.advance(at)
            return
        self.widget.take(StreamUpdate(stream, kind, item[BODY] or "", at, item[ORIGIN]))
        if kind == "end":
            self._ended.append(stream)

    def _set_aside(self, error: QueryError) -> None:
        """A message of this unit exceeded a limit where it was read."""
        for view in self.widget.views.values():
            if view.broken is None:
                view.put_aside(error)

    def _time(self, item: Item, clock: int) -> int:
        """When an item is applied; it is late only where `hold` is bounded."""
        time: int = item[TIME]
        if time >= clock:
            return time
        if self.order.late.get(item[STREAM], "refuse") == "refuse":
            raise _late(item, clock)
        return clock

    def _apply_bindings(self, items: Iterable[Item], outcome: Outcome) -> None:
        """Give bindings to the relations that their streams feed now, in one go.

        They were numbered as a fresh widget has the relations; some may not be asked for any more.
        """
        clock, streaming = maintained(self.widget).tree.clock, streams_of(self.widget).engine
        takes = {s for s in self.order.streams if streaming.plan(s) is not None}
        numbers = {stream: self._numbers(stream) for stream in self.order.streams}
        plain = {s: n == list(range(len(self._shapes[s]))) for s, n in numbers.items()}
        updates: list[tuple[str, tuple[Bag, ...], int]] = []
        for item in items:
            time, stream, bags = item[TIME], item[STREAM], item[BODY]
            try:
                if time < clock:
                    time = self._time(item, clock)
                if stream not in takes:
                    raise EndedStreamError("AX402", f"the stream {stream!r} has ended")
                if item[KIND] == UNREAD:
                    bags = self._read(item, time)
            except QueryError as error:
                self._set_aside(error)
                continue
            except AxlogError as error:
                outcome.refused.append(_refused(item, error))
                continue
            if item[KIND] == NOTHING:
                continue
            if not plain[stream]:
                bags = tuple([bags[n] if n >= 0 else _NOTHING for n in numbers[stream]])
            updates.append((stream, bags, time))
            clock = time
        streaming.apply_all(updates)
        outcome.applied += len(updates)

    def _read(self, item: Item, time: int) -> tuple[Bag, ...]:
        """The bindings of a message at the time that it has come to have; those of this bucket."""
        plan = self._plans[item[STREAM]]
        assert plan is not None
        found = bags_of(plan, item[BODY].encode(), time)
        each = by_bucket(self.unit, item[STREAM], found)
        mine = [bags for at, _, bags in each if at == self.bucket]
        return mine[0] if mine else (_NOTHING,) * len(found)

    def _numbers(self, stream: str) -> list[int]:
        """For each relation that the stream feeds now, its number in a fresh widget."""
        first = self._shapes[stream]
        now = _shapes(self.widget, stream)
        return [first.index(shape) if shape in first else -1 for shape in now]

    # Telling --------------------------------------------------------------------------------------

    def _net(self, changes: list[Change]) -> list[Change]:
        by_view: dict[str | None, list[Change]] = {}
        for change in changes:
            if self._is_own(change):
                by_view.setdefault(change.view, []).append(change)
        told = [change for each in by_view.values() for change in net(each)]
        # Counted by what is told: to ask the views would cost their size.
        self.rows += sum({"insert": 1, "delete": -1}.get(change.op, 0) for change in told)
        return told

    def _count(self) -> int:
        return sum(len(view) for view in self.widget.views.values() if view.broken is None)

    def _is_own(self, change: Change) -> bool:
        """Whether this bucket tells a change: what the document brought, all buckets know."""
        output = self.unit.output
        if output is None:
            return self.bucket == 0 or self.unit.kind == "documents"
        value = _value(change, output)
        return value is not None and self.bucket == self.unit.bucket_of(value)

    def _is_void(self, change: Change) -> bool:
        output = self.unit.output
        return output is not None and _value(change, output) is None

    # State ----------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any] | None:
        """Everything needed to go on, for JSON; None where only a replay can."""
        said = {
            "order": self.order.state(), "ended": self._ended, "voided": list(self.voided),
            "rows": self.rows,
        }  # fmt: skip
        if self._has_no_nodes():
            return {
                **said,
                "engine": streams_of(self.widget).engine.state(),
                "broken": self.set_aside(),
            }
        parts = self._parts()
        return None if parts is None else {**said, "parts": parts}

    def set_aside(self) -> dict[str, tuple[str, str]]:
        """The views that exceeded a limit, each with the code and the message of its error."""
        found = {name: view.broken for name, view in self.widget.views.items()}
        return {name: (error.code, error.message) for name, error in found.items() if error}

    def _has_no_nodes(self) -> bool:
        """Whether messages have left nothing but rows behind."""
        tree, streaming = maintained(self.widget).tree, streams_of(self.widget).engine
        if streaming.keeps or tree.version != self._first_version + len(self._ended):
            return False
        return all(streaming.plan(stream) is not None for stream in tree.calls())

    def _parts(self) -> dict[str, bytes] | None:
        """The document and all that is kept with it."""
        if maintained(self.widget).forgotten and self._waitings():
            return None  # what joins know of messages not kept is in no snapshot
        parts = snapshot_parts(self.widget, self._definition.settings(), {})
        return {name: zlib.compress(data, 1) for name, data in parts.items()}

    def _waitings(self) -> list[Waiting]:
        streams_of(self.widget).collector.refresh()
        return streams_of(self.widget).collector.waitings

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; this instance is fresh."""
        self.order.restore(state["order"])
        self._ended = list(state["ended"])
        self.voided = dict.fromkeys(state["voided"])
        if "parts" in state:
            self._load(state["parts"])
        else:
            for stream in self._ended:
                self.widget.end(stream)
            for name, broken in state.get("broken", {}).items():
                self.widget.view(name).put_aside(QueryError(*broken))
            streams_of(self.widget).engine.restore(_tuples(state["engine"]))
        self._heard.clear()
        self.rows = self._count() if "parts" in state else state["rows"]  # views may have gone

    def _load(self, written: Mapping[str, bytes]) -> None:
        """Take the document of a snapshot in place of the fresh one; views may have gone since."""
        parts = {name: zlib.decompress(data) for name, data in written.items()}
        self.widget = load_parts(parts, 0, types=self._definition.types or None).document
        streams_of(self.widget).now = None  # how far ahead a message is was judged when it was read
        for name in set(self.widget.views) - set(self.unit.views):
            self.widget.unwatch(name)
        self._listen()


def _widget(definition: Definition, unit: Unit) -> Document:
    """The engine of a unit: without what it was fed, where no view can need that."""
    if unit.kind == "bindings":
        return definition.widget(unit.views, "needed")
    made = definition.widget(unit.views, "needed")
    streams = maintained(made).tree.calls()
    if any(streams_of(made).engine.plan(s) is None or may_delete(made, s) for s in streams):
        return definition.widget(unit.views, "all")
    return made


def _shapes(widget: Document, stream: str) -> list[Shape]:
    """What tells the relations apart that a stream's messages are matched with, in order."""
    plan = streams_of(widget).engine.plan(stream)
    if plan is None:
        return []
    relations = [(r, "here") for r in plan.here] + [(r, "below") for r in plan.everywhere]
    return [(where, _shape(relation)) for relation, where in relations]


def _shape(relation: Relation) -> Shape:
    """A relation's form: two of one form have the same rows in any message."""
    node = relation.node
    return (
        None if node is None else (node.axis, node.test, node.comparisons),
        relation.own,
        relation.columns,
        relation.tests,
        tuple((edge.axis, _shape(edge.relation)) for edge in relation.edges),
        tuple((c.columns, *map(_shape, c.alternatives)) for c in relation.choices),
        tuple((a.tests, _shape(a.body)) for a in relation.absences),
    )


def _streams(widget: Document) -> tuple[tuple[str, ...], dict[str, str]]:
    tree = maintained(widget).tree
    calls = {stream: tree.call(node) for stream, node in tree.calls().items()}
    return tuple(sorted(calls)), {stream: call.late for stream, call in calls.items()}


def _json(value: Any) -> Any:
    """A value for JSON: an id as its text, a tuple as a list, a time as microseconds."""
    if isinstance(value, tuple):
        return [_json(one) for one in value]
    return str(value) if isinstance(value, Id) else value


def _tuples(plain: Any) -> Any:
    """JSON's lists as the tuples that they were."""
    return tuple(_tuples(one) for one in plain) if isinstance(plain, list) else plain


def _are_bindings(item: Item) -> bool:
    return item[KIND] in (BINDINGS, UNREAD, NOTHING)


def _late(item: Item, clock: int) -> LateError:
    return LateError(
        "AX404",
        f"a message of {item[STREAM]!r} has time {item[TIME] / 1e6:.6f} s,"
        f" before the clock at {clock / 1e6:.6f} s",
        advice='send messages in time order, or declare late="clock" on the call',
    )


def _refused(item: Item, error: AxlogError) -> Refused:
    content = item[BODY] if isinstance(item[BODY], str) else item[CONTENT] or ""
    return Refused(item[STREAM], content, item[ORIGIN], error.describe(), item[MESSAGE])


# Changes as they travel -------------------------------------------------------------------------


def _value(change: Change, column: str) -> Any:
    """A value as bindings have it: times in microseconds."""
    return change.row.values_[change.row.columns.index(column)]


def plain_change(change: Change, document: str = "") -> list[Any]:
    """A change for JSON: ids as their text, times as microseconds."""
    row, before = change.row, change.before
    values = [_json(value) for value in row.values_]
    old = None if before is None else [[_json(value) for value in before.values_], before.count]
    return [
        change.view,
        change.op,
        list(row.columns),
        values,
        row.count,
        old,
        change.microseconds,
        row.times,
        document,
    ]


def told(outcome: Outcome, instance: Instance, claim: Claim | None = None) -> dict[str, Any]:
    """What one instance says of a batch, as plain data."""
    return {
        "claim": claim,
        "changes": [plain_change(change, instance.document) for change in outcome.changes],
        "refused": [one.plain() for one in outcome.refused],
        "void": [plain_change(change) for change in outcome.voided],
        "voided": list(instance.voided),
        "buckets": instance.unit.buckets,
        "clock": instance.order.clock,
        "set_aside": instance.set_aside(),
    }


def agreed(each: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    """The rows without a key that all buckets of a unit rule out, and one of them only now.

    Where some have not spoken nothing is agreed on: time passes for all of them together wherever
    such rows are (`Instance.may_void`).
    """
    fresh = {json.dumps(change[:4]): change for one in each for change in one["void"]}
    for key, change in fresh.items():
        if len(each) == each[0]["buckets"] and all(key in one["voided"] for one in each):
            yield change


def read_changes(written: Iterable[Sequence[Any]]) -> Iterator[Change]:
    """The changes that `plain_change` wrote; a document's key is the row's first column."""
    from axlog.views.change import Row

    for view, op, columns, values, count, old, time, times, document in written:
        head = ("document",) if document else ()
        first = (document,) if document else ()
        names = (*head, *columns)
        row = Row(names, (*first, *_tuples(values)), count)
        before = None if old is None else Row(names, (*first, *_tuples(old[0])), old[1])
        yield timed_change(Change(op, row, before, view, time), times)


def renumbered(changes: Iterable[Change], start: int) -> list[Change]:
    """Changes in the order of their rows, each with the next number."""
    ordered = sorted(changes, key=lambda c: (c.view or "", c.op, repr(c.row.values_)))
    return [replace(change, sequence=start + at) for at, change in enumerate(ordered)]
