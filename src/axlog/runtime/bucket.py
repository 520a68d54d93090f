"""The engine of a bucket: the relational half of the embedded engine, as a plain class.

An instance is one engine with its order of updates. For bindings the engine is a document that
never sees messages: it receives what the matchers found and applies it by the same routes. For
whole messages it is the document itself. A batch goes in as packets and comes out as net changes,
rejected updates and counts.

State: `state()` is plain data from which `restore` resumes: the rows of joins and views where
messages become no nodes, otherwise also the document (`live/recovery.py`). Messages are kept only
where a view needs nodes, or where a deletion can reach them; with `collect="auto"` until the
collector drops them.

A row without a known key can never come only if no bucket can produce it. Each bucket reports what
it knows (`voided`), and the driver emits `never` when all buckets agree.

Law: batches may be cut anywhere. The net changes are those of a document that was fed all updates
in order, restricted to the rows whose key belongs to the bucket.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import groupby
from time import monotonic
from typing import Any, TypeAlias

from axlog.document.operations import late_error
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError, EndedStreamError, LateError, QueryError
from axlog.evaluate.joins import Bag
from axlog.live.document import Document
from axlog.live.internals import maintained, maintained_view, streams_of
from axlog.live.options import Keep
from axlog.live.short_way import Read
from axlog.match.stream_plan import MessagePlan
from axlog.runtime.bindings import Keyed, bags_of, by_bucket, key_of
from axlog.runtime.bucket_members import BucketMembers
from axlog.runtime.change_packets import plain_change, value_of
from axlog.runtime.definition import Definition
from axlog.runtime.engine import DocumentEngine, load
from axlog.runtime.family_members import PARAMETERS
from axlog.runtime.grid import Grid, coordinate, place_in
from axlog.runtime.order import (
    BINDINGS,
    BODY,
    CONTENT,
    ELSEWHERE,
    FLOOR,
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
from axlog.runtime.plan import Unit
from axlog.runtime.relation_shapes import relation_shapes
from axlog.runtime.row_columns import whole
from axlog.views.change import Change
from axlog.views.counting.join_prospects import Watch
from axlog.views.counting.stepped import SteppedCounting
from axlog.views.family_names import family_of, is_pilot
from axlog.views.operators.join import Share
from axlog.views.step_cut import Handover, LocalSteps, StepCut

Claim: TypeAlias = dict[str, tuple[list[int], list[str]]]
"""By stream, the numbers of the relations that it is still needed for, and their patterns."""
TUNE_EVERY = 16
"""Batches between two tunings."""
_NOTHING: Bag = {}
_ROWS = {"insert": 1, "delete": -1}
_KINDS = {BINDINGS, UNREAD, NOTHING}
"""The kinds of items of units of bindings."""
_ANY = "/*"
"""The pattern of every message."""


@dataclass(slots=True)
class Outcome:
    """The result of a batch in one bucket."""

    changes: list[Change] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    applied: int = 0
    voided: list[Change] = field(default_factory=list)  # reported in this batch; see `Instance`
    handover: Handover | None = None  # for the final step of the unit

    def refuse(self, item: Item, error: AxlogError) -> None:
        """Record that a message is rejected, once for all buckets that have a part of it."""
        if item[CONTENT] != ELSEWHERE:
            content = item[BODY] if isinstance(item[BODY], str) else item[CONTENT] or ""
            said = error.describe()
            self.refused.append(Refused(item[STREAM], content, item[ORIGIN], said, item[MESSAGE]))


class Instance:
    """An engine, its order of updates, and the application of batches."""

    def __init__(
        self, definition: Definition, unit: Unit, bucket: int, hold: Hold = 0, document: str = ""
    ) -> None:
        self.unit, self._outputs = unit, unit.outputs
        self.bucket = bucket
        self.document = document
        self._definition = definition
        self._members = BucketMembers(definition, unit, bucket)
        # the collector judges whole documents, and members may come later
        is_whole = definition.collect == "auto" or bool(self._members.families)
        self._keep: Keep = "all" if unit.kind != "bindings" and is_whole else "needed"
        made = definition.make(unit.views, self._keep, cached=True, shares=_shares(unit, bucket))
        self._local = None if unit.cut is None else _local_steps(made, unit, unit.cut, bucket)
        self._engine = DocumentEngine(made, definition.own_views(unit.views))
        self.order = Order(*_streams(self.doc), hold, start=definition.start)
        self._first_version = maintained(self.doc).tree.version
        self._ended: list[str] = []
        self._shapes = {s: relation_shapes(self.doc, s) for s in self.order.streams}
        self._plans = {s: streams_of(self.doc).engine.plan(s) for s in self.order.streams}
        self._replacing = {s for s, plan in self._plans.items() if plan and plan.replace}
        self.voided: dict[str, None] = {}  # rows without a key that cannot come from here
        self.rows = self._engine.count()
        self._again = 0.0
        self._claimed: Claim | None = None
        # by stream: a plan, and the result of `_numbers` for it
        self._known_numbers: dict[str, tuple[MessagePlan | None, list[int]]] = {}

    @property
    def doc(self) -> Document:
        """The document of the engine."""
        return self._engine.document

    @property
    def families(self) -> Sequence[str]:
        """The families of the unit."""
        return self._members.families

    def begin(self) -> None:
        """Emit the initial rows of the document, with the first batch."""
        self.rows = 0
        self._engine.begin()

    def batch(self, packets: Sequence[Packet]) -> Outcome:
        """Apply what can be applied now; return the net changes."""
        outcome = Outcome()
        tables, packets = _without_tables(packets)
        released, late = self.order.take(packets)
        for item, clock in late:
            outcome.refuse(item, _late(item, clock))
        slept_until = [p.frontier["clock"] for p in packets if p.frontier is not None]
        if slept_until and not self._gets_all:
            # It missed batches in which it had nothing to do, but the clock advanced.
            with self._engine.batch():
                self._engine.advance(max(slept_until))
        for item in tables:
            outcome.refused += self._members.take(item, self._engine)
        with self._engine.batch():
            for are_bindings, items in _by_kind(released):
                if are_bindings:
                    self._apply_bindings(items, outcome)
                    continue
                for item in items:
                    try:
                        self._apply(item)
                        outcome.applied += 1
                    except AxlogError as error:
                        outcome.refuse(item, error)
            self._engine.advance(self._passed_time())
        changes = self._engine.changes()
        headed = self._members.headed
        outcome.changes = headed(change for change in changes if self._is_own(change))
        outcome.handover = None if self._local is None else self._local.hand_over()
        # Counted from the changes: counting the rows of the views would cost their size.
        self.rows += sum(_ROWS.get(change.op, 0) for change in outcome.changes)
        outcome.voided = headed(change for change in changes if self._is_void(change))
        self.voided |= {json.dumps(plain_change(change)[:4]): None for change in outcome.voided}
        if self.unit.kind == "bindings" and not self._members.families:
            # Sinks have them, and nothing reads them here. A later member would.
            streams_of(self.doc).collector.drop_final_rows()
        return outcome

    # Time -----------------------------------------------------------------------------------------

    @property
    def _gets_all(self) -> bool:
        """Whether every message of the document comes here, also one that no view wants."""
        return self.unit.kind != "bindings"

    def _passed_time(self) -> int:
        """Return the time that has passed besides the messages that were applied here.

        A rejected message moves no clock. Only a bucket that gets all messages can reject one for
        another reason than its time.
        """
        return self.order.passed if self._gets_all else self.order.clock

    @property
    def due(self) -> int | None:
        """Return the time after which this instance has work without a message; None: never.

        A deadline has passed when the clock is after it. A held-back message is due at its own
        time.
        """
        limits = [item[TIME] - 1 for item in self.order.pending[:1]]
        deadline = self._engine.due
        return min([*limits, *(() if deadline is None else (deadline,))], default=None)

    @property
    def waiting(self) -> int:
        """The number of messages that are held back."""
        return len(self.order.pending)

    @property
    def is_together(self) -> bool:
        """Whether it has ruled out rows without a key, for which all buckets must agree."""
        return bool(self.voided)

    @property
    def may_void(self) -> bool:
        """Whether time alone can rule out a row without a key, for which all buckets must agree."""
        if self.unit.parameter is not None or self._local is not None:
            return False
        keys = [each.column for each in self.unit.grid]
        return any(join.times_out_without(key) for key in keys for join in self._joins())

    # Tuning ---------------------------------------------------------------------------------------

    def tune(self, version: int) -> Claim | None:
        """Return what streams are needed for from now on, if a tuning is due; None: unchanged.

        `version` is that of the state, not of this engine: if several processes take turns with a
        bucket, one of them tunes.
        """
        is_time = version % TUNE_EVERY == 0 and monotonic() >= self._again
        if self.unit.kind == "documents" or not is_time:
            return None
        report = self.doc.tune()
        self._again = monotonic() + 20 * report.seconds  # beside maintenance, not instead of it
        claim = self._claim() if self.unit.kind == "bindings" else self._claim_of_messages()
        if claim is None or claim == self._claimed:
            return None
        self._claimed = claim
        return claim

    def _claim(self) -> Claim | None:
        """Return what bindings are needed; None: a relation is new."""
        streaming = streams_of(self.doc).engine
        claim: Claim = {}
        for stream, shapes in self._shapes.items():
            wanted = self._numbers(stream) if streaming.plan(stream) else list(range(len(shapes)))
            if -1 in wanted:
                return None
            patterns = list(streaming.patterns(stream))
            if wanted and stream in self._replacing:
                patterns = [_ANY]  # a message that no view wants may replace one that a view has
            claim[stream] = (sorted(set(wanted)), patterns)
        return claim

    def _claim_of_messages(self) -> Claim:
        """Return which messages are needed: all of a stream that the tuner must not filter."""
        statuses = self.doc.streams()
        claim: Claim = {}
        for stream in self.order.streams:
            if not self.unit.takes(stream) or stream in self._ended:
                claim[stream] = ([], [])
                continue
            status = statuses.get(stream)
            needs_all = bool(self.unit.judges) or status is None or not status.is_tuned
            claim[stream] = ([], [_ANY] if needs_all or status is None else list(status.wanted))
        return claim

    # Applying -------------------------------------------------------------------------------------

    def _apply(self, item: Item) -> None:
        """Apply an update that was sent whole, or an end."""
        engine = self._engine
        stream, kind, time = item[STREAM], item[KIND], self._time(item, engine.clock)
        if kind == "end" and not self._gets_all:
            # Messages elsewhere have advanced the clock; the end is not the cause of that.
            engine.advance(min(self.order.latest, time))
        if kind == SET_ASIDE:
            self._set_aside(QueryError(*item[BODY]))
            engine.advance(time)
            return
        at = timedelta(microseconds=time)
        engine.take(StreamUpdate(stream, kind, item[BODY] or "", at, item[ORIGIN]))
        if kind == "end":
            self._ended.append(stream)

    def _set_aside(self, error: QueryError) -> None:
        """Record that a message of this unit exceeded a limit where it was parsed."""
        for view in self.doc.views.values():
            if view.broken is None:
                maintained_view(view).put_aside(error)

    def _time(self, item: Item, clock: int) -> int:
        """Return when an item is applied; it is late only if `hold` is bounded.

        A message without a time gets that of its place, or the document's clock. The clock is known
        where all messages come; the order does not know which of them were rejected, and moved no
        clock.
        """
        time: int = item[TIME]
        if item[FLOOR] is not None:
            if self._gets_all and not self.unit.judges:
                time = max(item[FLOOR], min(time, self.order.passed))
            return max(clock, time)
        if time >= clock:
            return time
        if self.order.late.get(item[STREAM], "refuse") == "refuse":
            raise _late(item, clock)
        return clock

    def _apply_bindings(self, items: Iterable[Item], outcome: Outcome) -> None:
        """Apply bindings to the relations that their streams feed now, in one pass.

        They are numbered by the relations of a fresh document; some may no longer be needed.
        """
        clock, streaming = maintained(self.doc).tree.clock, streams_of(self.doc).engine
        takes = {s for s in self.order.streams if streaming.plan(s) is not None}
        numbers = {stream: self._numbers(stream) for stream in self.order.streams}
        plain = {s: n == list(range(len(self._shapes[s]))) for s, n in numbers.items()}
        simple = {s for s in takes - self._replacing if plain[s]}
        updates: list[Read] = []
        for item in items:
            time, stream, bags = item[TIME], item[STREAM], item[BODY]
            if item[KIND] == BINDINGS and time >= clock and stream in simple:
                updates.append((stream, bags, time))
                clock = time
                continue
            try:
                if time < clock:
                    time = self._time(item, clock)
                if stream not in takes:
                    raise ended_error(stream)
                if item[KIND] == UNREAD:
                    bags = self._read(item, time)
                key: str | None = None
                if stream in self._replacing and item[KIND] != NOTHING:
                    key, bags = bags
            except QueryError as error:
                self._set_aside(error)
                continue
            except AxlogError as error:
                outcome.refuse(item, error)
                continue
            if item[KIND] == NOTHING:
                continue
            if not plain[stream]:
                bags = tuple([bags[n] if n >= 0 else _NOTHING for n in numbers[stream]])
            updates.append((stream, bags, time, key))
            clock = time
        streaming.apply_all((stream, whole(bags), *rest) for stream, bags, *rest in updates)
        outcome.applied += len(updates)

    def _read(self, item: Item, time: int) -> tuple[Bag, ...] | Keyed:
        """Return the bindings of a message with its final time; those of this bucket."""
        plan = self._plans[item[STREAM]]
        assert plan is not None
        content = item[BODY].encode()
        found = bags_of(plan, content, time)
        key = None if plan.replace is None else key_of(plan, content)
        each = by_bucket(self.unit, item[STREAM], found, key, item[MESSAGE])
        mine = [bags for at, _, bags in each if at == self.bucket]
        nothing = (_NOTHING,) * len(found)
        return mine[0] if mine else nothing if key is None else (key, nothing)

    def _numbers(self, stream: str) -> list[int]:
        """Return, for each relation that the stream feeds now, its number in a fresh document."""
        plan = streams_of(self.doc).engine.plan(stream)
        known = self._known_numbers.get(stream)
        if known is None or known[0] is not plan:
            first = self._shapes[stream]
            now = relation_shapes(self.doc, stream)
            numbers = [first.index(shape) if shape in first else -1 for shape in now]
            known = self._known_numbers[stream] = plan, numbers
        return known[1]

    # Telling --------------------------------------------------------------------------------------

    def _is_own(self, change: Change) -> bool:
        """Whether this bucket emits a change: without a key, all have the rows of the document."""
        outputs = self._outputs
        if not outputs:
            is_whole = self.unit.kind == "documents" or self.unit.parameter is not None
            return self.bucket == 0 or is_whole
        if len(self.unit.grid) == 1:
            value = value_of(change, outputs[0])
            return value is not None and self.unit.bucket_of(value) == self.bucket
        values = [value_of(change, output) for output in outputs]
        return None not in values and self.unit.cells(values) == [self.bucket]

    def _is_void(self, change: Change) -> bool:
        return any(value_of(change, output) is None for output in self._outputs)

    def sharers(self, change: Change) -> int:
        """Return how many buckets could produce a row, by the values of its key that are known."""
        return len(self.unit.cells([value_of(change, output) for output in self.unit.outputs]))

    # State ----------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return everything needed to resume, for JSON."""
        said = {
            "order": self.order.state(), "ended": self._ended, "voided": list(self.voided),
            "rows": self.rows,
            **({"members": self._members.state()} if self._members.families else {}),
        }  # fmt: skip
        if self._has_no_nodes():
            return {
                **said,
                "engine": streams_of(self.doc).engine.state(),
                "broken": self.set_aside(),
            }
        return {**said, "parts": self._parts()}

    def set_aside(self) -> dict[str, tuple[str, str]]:
        """Return the views that exceeded a limit, each with the code and message of its error."""
        return self._engine.set_aside()

    def _has_no_nodes(self) -> bool:
        """Whether messages have left nothing but rows: neither nodes nor what becomes nodes."""
        tree, streaming = maintained(self.doc).tree, streams_of(self.doc).engine
        has_grown = tree.version != self._first_version + len(self._ended)
        if streaming.keeps or streaming.aside or has_grown:
            return False
        needed = tree.calls().keys() - self.unit.unused
        return all(streaming.plan(stream) is not None for stream in needed)

    def _parts(self) -> dict[str, bytes]:
        """Return the document and everything that is kept with it."""
        parts = self._engine.parts(self._definition.settings(self._keep))
        return {name: zlib.compress(data, 1) for name, data in parts.items()}

    def _joins(self) -> list[Watch]:
        streams_of(self.doc).collector.refresh()
        return list(streams_of(self.doc).collector.joins)

    def may_restore(self, state: Mapping[str, Any]) -> bool:
        """Whether `restore` replaces everything that an instance has from earlier batches.

        It does for rows of joins and views. It does not for nodes, members, final steps, views that
        were set aside, and streams that ended since.
        """
        return (
            "engine" in state
            and not self._members.families
            and self._local is None
            and list(state["ended"]) == self._ended
            and not state["broken"]
            and not self.set_aside()
            and self._has_no_nodes()
        )

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from a state; this instance is fresh, or `may_restore` it."""
        self.order.restore(state["order"])
        is_fresh, self._ended = not self._ended, list(state["ended"])
        self.voided = dict.fromkeys(state["voided"])
        members = state.get("members", {})
        if "parts" in state:
            self._members.restore(members, None)
            self._load(state["parts"])
        else:
            self._members.restore(members, self._engine)
            for stream in self._ended if is_fresh else ():
                self.doc.end(stream)
            for name, broken in state.get("broken", {}).items():
                maintained_view(self.doc.view(name)).put_aside(QueryError(*broken))
            streams_of(self.doc).engine.restore(_tuples(state["engine"]))
        self._engine.changes()  # emitted before
        # views may have been removed
        self.rows = self._engine.count() if "parts" in state else state["rows"]

    def _load(self, written: Mapping[str, bytes]) -> None:
        """Replace the fresh document by that of a snapshot; views may have been removed since."""
        parts = {name: zlib.decompress(data) for name, data in written.items()}
        document = load(parts, self._definition.types or None)
        own = self._definition.own_views(self.unit.views)
        self._engine = DocumentEngine(document, own, self._members)


def _shares(unit: Unit, bucket: int) -> list[Share]:
    """Return the rows of the document that belong to a bucket.

    Only the bucket of a key gets the messages that decide what becomes of its rows. In a grid,
    messages that go to several buckets meet a row of the document in one of them.
    """
    if unit.buckets == 1 or (not unit.outputs and len(unit.grid) < 2):
        return []
    return [
        Share(each.column, partial(_is_inside, unit.grid, number, bucket))
        for number, each in enumerate(unit.grid)
    ]


def _is_inside(grid: Grid, number: int, bucket: int, value: object) -> bool:
    """Whether a bucket has a value of a dimension."""
    return coordinate(grid, number, value) == place_in(grid, number, bucket)


def _local_steps(doc: Document, unit: Unit, cut: StepCut, bucket: int) -> LocalSteps:
    """Let the view of a document run the steps of one bucket only."""
    (view,) = unit.views
    maintainer = maintained_view(doc.view(view)).maintainer
    assert isinstance(maintainer, SteppedCounting)
    inside = maintained(doc)
    local = maintainer.run_local(cut, lambda row: unit.owner_of(row) == bucket)
    local.stamp = lambda: (inside.tree.clock, inside.current.origin)
    return local


def _streams(doc: Document) -> tuple[tuple[str, ...], dict[str, str]]:
    tree = maintained(doc).tree
    calls = {stream: tree.call(node) for stream, node in tree.calls().items()}
    return tuple(sorted(calls)), {stream: call.late for stream, call in calls.items()}


def _tuples(plain: Any) -> Any:
    """Convert JSON's lists back to tuples."""
    return tuple(_tuples(one) for one in plain) if isinstance(plain, list) else plain


def _without_tables(packets: Sequence[Packet]) -> tuple[list[Item], Sequence[Packet]]:
    """Return the rows of parameter tables, and the packets without them."""
    tables = [item for packet in packets for item in packet.items if item[KIND] == PARAMETERS]
    if not tables:
        return tables, packets
    rest = [[item for item in packet.items if item[KIND] != PARAMETERS] for packet in packets]
    return tables, [p._replace(items=items) for p, items in zip(packets, rest, strict=True)]


def _by_kind(items: Sequence[Item]) -> Iterable[tuple[bool, Iterable[Item]]]:
    """Yield consecutive items, and whether they are bindings."""
    if {item[KIND] for item in items} <= _KINDS:
        return [(True, items)] if items else []
    return groupby(items, lambda item: item[KIND] in _KINDS)


def _late(item: Item, clock: int) -> LateError:
    return late_error(item[STREAM], item[TIME], clock)


def ended_error(stream: str) -> EndedStreamError:
    """The reason why a message after the end of its stream is rejected."""
    return EndedStreamError("AX402", f"the stream {stream!r} has ended")


def instance_report(
    outcome: Outcome, instance: Instance, claim: Claim | None = None
) -> dict[str, Any]:
    """The report of one instance on a batch, as plain data."""
    return {
        "claim": claim,
        "handover": _plain_handover(outcome.handover),
        "changes": [plain_change(change, instance.document) for change in outcome.changes],
        "refused": [one.plain() for one in outcome.refused],
        "void": [(plain_change(change), instance.sharers(change)) for change in outcome.voided],
        "voided": list(instance.voided),
        "clock": instance.order.clock,
        "set_aside": {
            family_of(name) if is_pilot(name) else name: reason
            for name, reason in instance.set_aside().items()
        },
    }


def _plain_handover(handover: Handover | None) -> Handover | None:
    """Return it with the stream of its cause: buckets count their own messages."""
    if handover is None:
        return None
    given, time, origin = handover
    return given, time, origin[0] if isinstance(origin, tuple) else origin
