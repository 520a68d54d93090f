"""A bucket's engine: the embedded engine's upper program, as a plain class that Spark only carries.

An instance is one engine with its order of updates. For bindings the engine is a widget whose
messages are never seen: what the matchers found travels instead and is applied by the same routes.
For whole messages it is the widget itself. A batch goes in as packets and comes out as net changes,
updates that were refused, and counts.

State: `state()` is plain data from which `restore` goes on, or None where the widget has become
nodes that only a replay makes again; a log of batches does for those (`state.py`).

Law: batches may be cut anywhere; the changes, net, are those of a widget that was fed all updates
in order, restricted to the rows whose key belongs to the bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from axlog.channels.updates import StreamUpdate
from axlog.datalog.joins import Bag
from axlog.document.tree import Tree
from axlog.errors import AxlogError, LateError
from axlog.spark.definition import Definition
from axlog.spark.ordering import BODY, KIND, ORIGIN, STREAM, TIME, Hold, Item, Order, Packet
from axlog.spark.plan import Unit
from axlog.views.change import Change
from axlog.views.netting import net
from axlog.widgets.widget import Widget


@dataclass(slots=True)
class Refused:
    """An update that could not be taken, where it came from and why."""

    stream: str
    content: str
    origin: str
    error: str

    def plain(self) -> list[str]:
        return [self.stream, self.content, self.origin, self.error]


@dataclass(slots=True)
class Outcome:
    """What a batch came to in one bucket."""

    changes: list[Change] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    applied: int = 0


class Instance:
    """One engine, its order, and what it makes of batches."""

    def __init__(
        self, definition: Definition, unit: Unit, bucket: int, hold: Hold = 0, document: str = ""
    ) -> None:
        self.unit = unit
        self.bucket = bucket
        self.document = document
        keep = "needed" if unit.kind == "bindings" else "all"
        self.widget = definition.widget(unit.views, keep)
        self.order = Order(*_streams(self.widget), hold)
        self._first_version = self.widget.document.tree.version
        self._ended: list[str] = []
        self.rows = self._count()
        self._heard: list[Change] = []
        for view in self.widget.views.values():
            view.listen(self._heard.append)

    def batch(self, packets: Sequence[Packet]) -> Outcome:
        """Apply what can be applied now; the net changes."""
        outcome = Outcome()
        released, late = self.order.take(packets)
        for item, clock in late:
            outcome.refused.append(_refused(item, _late(item, clock)))
        for item in released:
            try:
                self._apply(item)
                outcome.applied += 1
            except AxlogError as error:
                outcome.refused.append(_refused(item, error))
        tree: Tree = self.widget.document.tree
        if self.order.clock > tree.clock:
            self.widget.advance(timedelta(microseconds=self.order.clock))
        heard, self._heard[:] = list(self._heard), []
        outcome.changes = self._net(heard)
        return outcome

    # Applying -------------------------------------------------------------------------------------

    def _apply(self, item: Item) -> None:
        tree = self.widget.document.tree
        stream, time, kind = item[STREAM], item[TIME], item[KIND]
        if time < tree.clock:  # only where `hold` is bounded
            if self.order.late.get(stream, "refuse") == "refuse":
                raise _late(item, tree.clock)
            time = tree.clock
        at = timedelta(microseconds=time)
        if kind == "bindings":
            self.widget._streaming.apply(stream, self._bags(stream, item[BODY]), time)
            return
        self.widget.take(StreamUpdate(stream, kind, item[BODY] or "", at, item[ORIGIN]))
        if kind == "end":
            self._ended.append(stream)

    def _bags(self, stream: str, found: Iterable[Sequence[Any]]) -> tuple[Bag, ...]:
        plan = self.widget._streaming.plan(stream)
        assert plan is not None
        bags: tuple[Bag, ...] = tuple({} for _ in (*plan.here, *plan.everywhere))
        for number, row, count in found:
            bags[number][tuple(row)] = count
        return bags

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
        return sum(len(view) for view in self.widget.views.values())

    def _is_own(self, change: Change) -> bool:
        """Whether this bucket tells a change: what the document brought, all buckets know."""
        if change.op == "never":
            return False  # not told here: of a row that is not known whole, one bucket cannot know
        output = self.unit.output
        if output is None:
            return self.bucket == 0 or self.unit.kind == "documents"
        value = change.row[output]
        return self.bucket == (0 if value is None else self.unit.bucket_of(value))

    # State ----------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any] | None:
        """Everything needed to go on, for JSON; None where only a replay can."""
        tree = self.widget.document.tree
        if tree.version != self._first_version + len(self._ended):
            return None  # something became nodes
        if any(self.widget._streaming.plan(stream) is None for stream in tree.calls()):
            return None
        return {
            "order": self.order.state(),
            "ended": self._ended,
            "engine": self.widget._streaming.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; this instance is fresh."""
        self.order.restore(state["order"])
        for stream in state["ended"]:
            self.widget.end(stream)
        self._ended = list(state["ended"])
        self._heard.clear()
        self.widget._streaming.restore(_tuples(state["engine"]))
        self.rows = self._count()


def _streams(widget: Widget) -> tuple[tuple[str, ...], dict[str, str]]:
    tree = widget.document.tree
    calls = {stream: tree.call(node) for stream, node in tree.calls().items()}
    return tuple(sorted(calls)), {stream: call.late for stream, call in calls.items()}


def _tuples(plain: Any) -> Any:
    """JSON's lists as the tuples that they were."""
    return tuple(_tuples(one) for one in plain) if isinstance(plain, list) else plain


def _late(item: Item, clock: int) -> LateError:
    return LateError(
        "AX404",
        f"a message of {item[STREAM]!r} has time {item[TIME] / 1e6:.6f} s,"
        f" before the clock at {clock / 1e6:.6f} s",
        advice='send messages in time order, or declare late="clock" on the call',
    )


def _refused(item: Item, error: AxlogError) -> Refused:
    content = item[BODY] if isinstance(item[BODY], str) else ""
    return Refused(item[STREAM], content, item[ORIGIN], error.describe())


# Changes as they travel -------------------------------------------------------------------------


def plain_change(change: Change, document: str = "") -> list[Any]:
    """A change for JSON: ids as their text."""
    row, before = change.row, change.before
    values = list(row.plain().values())
    old = None if before is None else [list(before.plain().values()), before.count]
    return [
        change.view,
        change.op,
        list(row.columns),
        values,
        row.count,
        old,
        change.time,
        document,
    ]


def read_changes(written: Iterable[Sequence[Any]]) -> Iterator[Change]:
    """The changes that `plain_change` wrote; a document's key is the row's first column."""
    from axlog.views.change import Row

    for view, op, columns, values, count, old, time, document in written:
        head = ("document",) if document else ()
        first = (document,) if document else ()
        names = (*head, *columns)
        row = Row(names, (*first, *_tuples(values)), count)
        before = None if old is None else Row(names, (*first, *_tuples(old[0])), old[1])
        yield Change(op, row, before, view, time)


def renumbered(changes: Iterable[Change], start: int) -> list[Change]:
    """Changes in the order of their rows, each with the next number."""
    ordered = sorted(changes, key=lambda c: (c.view or "", c.op, repr(c.row.values_)))
    return [replace(change, sequence=start + at) for at, change in enumerate(ordered)]
