"""`Streams`: the messages that feed a document.

`feed`, `delete` and `end` apply the updates of a stream in the order of arrival, and emit the
changes before they return. A rejected message changes nothing and raises an error with its stream,
its number and the position. With `on_error="dead-letter"` the message is kept in `dead_letters`
instead.

The parts: `StreamEngine` applies messages without making nodes where it can, `Collector` drops
rows, streams and nodes that no future row can use and emits `never` changes, `KeyGuard` enforces
keys, `Tuner` computes which messages can still matter. All of them are made from the current
document. They can therefore be made at any time (`Document` makes them when they are first needed),
and again when a batch is rolled back (`restart`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from logging import WARNING, getLogger
from time import perf_counter
from time import time as wall_clock

from axlog.document.clock_bounds import Clock, check_ahead, latest_for
from axlog.document.delta import Delta
from axlog.document.loader import read_forest
from axlog.document.messages import Message
from axlog.document.operations import (
    Delete,
    Insert,
    Operation,
    call_of,
    calls_in,
    check_calls,
    checked_time,
    cost_of,
    delete_siblings,
    end_call,
    insert_at_call,
    message_nodes,
    time_by_policy,
    time_of_message,
)
from axlog.document.parser import Element
from axlog.document.stream_update import retracted
from axlog.document.times import Time, microseconds
from axlog.document.tree import NONE
from axlog.errors import AxlogError, StreamError, ValueProblem
from axlog.evaluate.siblings import SiblingPatterns
from axlog.future.references import Fact
from axlog.future.restoration import can_bring_again
from axlog.live.collection import Collection, Dropped
from axlog.live.collector import Collector
from axlog.live.feed_writer import Feed
from axlog.live.hooks import How, StreamHooks
from axlog.live.key_guard import KeyGuard
from axlog.live.maintained import MaintainedTree
from axlog.live.message_deletes import MessageDeletes
from axlog.live.node_deletes import NodeDeletes
from axlog.live.options import Options, Policy
from axlog.live.source_filter import filter_at_source
from axlog.live.stream_engine import StreamEngine
from axlog.live.stream_needs import only_concerns_views
from axlog.live.stream_status import StreamStatus
from axlog.live.tuner import Tuner
from axlog.live.update_changes import ViewChanges
from axlog.match.batch_parser import MOST, roots_of
from axlog.match.filters import Filter
from axlog.query.compile import Relation
from axlog.reporting import report
from axlog.views.change import CLOCK, Change
from axlog.views.counting.join_prospects import AnyProspects
from axlog.views.member_prospects import MemberProspects
from axlog.views.view import MaintainedView

_log = getLogger("axlog.live")

LETTERS = 1000
"""Dead letters that are kept, the latest. A stream's status counts every rejected message."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A rejected message, with the reason."""

    stream: str
    sequence: int
    message: Message
    error: AxlogError


class Streams(StreamHooks):
    """The streams of one document."""

    def __init__(
        self, maintained: MaintainedTree, options: Options, dead_letters: list[DeadLetter]
    ) -> None:
        self.maintained = maintained
        self.dead_letters = dead_letters
        self.now: Clock | None = wall_clock
        """The receiver's clock. Messages from its future are rejected; None: they are accepted."""
        self._options = options
        self._policy = Policy.of(options.tune)
        self._collects = options.collect == "auto"
        self.last_collection: Collection | None = None
        self._counts = self._policy is not None
        self._deletes = SiblingPatterns(maintained.parse)
        self.restart()
        maintained.hooks = self

    def restart(self) -> None:
        """Make the stream machinery anew, from the current document."""
        maintained, options = self.maintained, self._options
        keeps_all = options.keep == options.validate == "all"
        drops = options.collect != "off"
        self.collector = Collector(maintained, drops, options.never, keeps_all)
        self.engine = StreamEngine(maintained, options.keep, options.validate, self.collector)
        self.engine.ends_a_message = not (self._counts or self._collects)
        self.guard = KeyGuard(maintained.tree, maintained.tree.facts, maintained.tree.references)
        self.tuner = Tuner(maintained, self.engine, self._policy)
        self._message_deletes = MessageDeletes(
            maintained, self.engine, self.collector, self._deletes
        )
        self._node_deletes = NodeDeletes(
            maintained, self.engine, self.collector, self._deletes, self._message_deletes
        )

    # Hooks of the maintained tree -----------------------------------------------------------------

    def settle(self) -> None:
        self.engine.settle()

    def untune(self) -> None:
        self.engine.untune()

    def before_view(self) -> None:
        self.engine.before_view()

    def restore_rows(self, relations: Iterable[Relation] | None) -> None:
        self.engine.restore_rows(relations)

    def brought(self, delta: Delta, stream: str | None, was_aside: bool) -> None:
        self.collector.tracker.note(delta, stream, was_aside)

    def may_come(self, view: MaintainedView) -> bool | None:
        return self.collector.tracker.may_come(view)

    def how_never(self, view: MaintainedView) -> str:
        with self.maintained.lock:
            self.collector.refresh()
            return self.collector.tracker.explain(view)

    def refresh(self) -> None:
        self.collector.refresh()

    def how_shared(self, general: MaintainedView, sample: MaintainedView) -> How | None:
        return self.collector.tracker.how_shared(general, sample)

    def pass_time(self, emitted: ViewChanges, clock: int) -> ViewChanges:
        return self.collector.pass_time(clock, emitted)

    def prospects(self, view: MaintainedView) -> AnyProspects | MemberProspects | None:
        with self.maintained.lock:
            return self.collector.prospects(view)

    # Updates --------------------------------------------------------------------------------------

    def latest(self, stream: str, at: Time | None) -> int | None:
        """Return the latest time allowed for a message now (`document/clock_bounds.py`)."""
        if at is None or self.now is None:
            return None
        tree = self.maintained.tree
        call = tree.calls_by_node.get(
            tree.calls_by_stream.get(stream, -1)
        ) or self.collector.closed.get(stream)
        declared = None if call is None else call.ahead
        is_dated = self.maintained.times == "dates"
        if declared is None and not is_dated and (type(at) is float or type(at) is int):
            return None  # the usual case, without a call
        return latest_for(at, declared, is_dated, self.now)

    def feed(
        self,
        stream: str,
        message: Message,
        at: Time | None,
        latest: int | None,
        root: Element | None = None,
    ) -> list[Change]:
        """Apply a message; `root` is its root, if it was parsed with others."""
        generated = self.engine.feeds.get(stream)
        changes: list[Change] | None = None
        try:
            if generated is not None:
                changes = _by_function(generated, message, at, latest, root)
            if changes is None:
                profile, then = self.engine.profile, perf_counter()
                changes = self.engine.feed(stream, message, at, latest)
                if changes is None:
                    changes = self._feed_nodes(stream, message, at, latest)
                if profile is not None:
                    profile.seconds["nodes"] += perf_counter() - then
                    profile.messages += 1
                    profile.nodes += 1
                    profile.changes += len(changes)
        except ValueProblem as error:
            return self._refuse(stream, self.engine.status(stream).messages, message, error)
        if self._counts:  # after the message: a tuning that it requests must see it
            self.tuner.count()
        if self._collects and self.collector.is_due():
            self.collect()
        return changes

    def feed_many(
        self, stream: str, messages: Sequence[Message], times: Sequence[Time | None]
    ) -> list[Change]:
        """Apply messages one after the other; small ones are parsed together."""
        changes: list[Change] = []
        for start in range(0, len(messages), MOST):
            chunk = [as_bytes(each) for each in messages[start : start + MOST]]
            roots = self.roots([stream] * len(chunk), chunk)
            for number, (written, root) in enumerate(zip(chunk, roots, strict=True), start):
                at = times[number]
                generated = self.engine.direct.get(stream)
                found = None if generated is None else generated(written, at, root)
                if found is None:
                    message = messages[number]
                    found = self.feed(stream, message, at, self.latest(stream, at), root)
                changes += found
        return changes

    def roots(self, streams: Sequence[str], messages: Sequence[bytes]) -> list[Element | None]:
        """The roots of messages, parsed together; None for those to be parsed alone, or not."""
        parsed = {stream: self.engine.parses(stream) for stream in set(streams)}
        if not any(parsed.values()):
            return [None] * len(messages)
        pairs = zip(streams, messages, strict=True)
        return roots_of([message if parsed[stream] else b"" for stream, message in pairs])

    def _feed_nodes(
        self, stream: str, message: Message, at: Time | None, latest: int | None
    ) -> list[Change]:
        """The long path: the message becomes nodes."""
        if stream in self.collector.closed:
            return self._pass_by(stream, message, at, latest)
        brought: list[tuple[Fact, str]] = []

        def operations() -> list[Operation]:
            forest = read_forest(message, self.maintained.limits)
            made = insert_at_call(self.maintained.tree, stream, forest)
            self.collector.check(calls_in(forest), stream)
            brought.extend(self.guard.check(stream, forest, _replaced_by(made)))
            self.collector.note_message(stream, forest)
            return made

        return self._take(
            stream, message, at, latest, operations, lambda: self.guard.note(brought),
            is_insertion=True,
        )  # fmt: skip

    def delete(
        self, stream: str, pattern: str, at: Time | None, latest: int | None
    ) -> list[Change]:
        def operations() -> list[Operation]:
            self.maintained.settle()
            tree = self.maintained.tree  # whole where it can delete (`StreamEngine.is_plain`)
            number = retracted(pattern)
            if number is not None:
                return delete_siblings(tree, stream, lambda _: message_nodes(tree, stream, number))
            index = self.maintained.value_index
            return delete_siblings(
                tree, stream, lambda call: self._deletes.matching(tree, pattern, index, call)
            )

        current = self.maintained.current
        with self.maintained.lock:
            current.is_deletion = True
            try:
                changes = self._message_deletes.apply(stream, pattern, at, latest)
                if changes is None:
                    changes = self._node_deletes.apply(stream, pattern, at, latest)
                if changes is not None:
                    return changes
                return self._take(stream, pattern, at, latest, operations, is_deletion=True)
            finally:
                current.is_deletion = False

    def end(self, stream: str, at: Time | None, latest: int | None) -> list[Change]:
        if stream in self.collector.closed:
            changes = self._pass_by(stream, None, at, latest)
        else:
            tree = self.maintained.tree
            changes = self._take(stream, "", at, latest, lambda: end_call(tree, stream))
        self.tuner.ended()
        if self._collects:
            self.collect()
        return changes

    def _pass_by(
        self, stream: str, message: Message | None, at: Time | None, latest: int | None
    ) -> list[Change]:
        """Apply a message or the end (None) of a stream that collection closed: move the clock."""
        document, tree = self.maintained, self.maintained.tree
        with document.lock:
            status = self.engine.status(stream)
            status.messages += 1
            closed = self.collector.closed
            try:
                given = None if at is None else microseconds(at)
                check_ahead(given, latest, stream)
                time = time_by_policy(tree, closed[stream], given)
                forest = [] if message is None else read_forest(message, document.limits)
                calls = calls_in(forest)
                before = tree.called.get(stream, 0)
                check_calls(closed[stream], calls, before, tree.any_calls)
                self.collector.check(calls, stream)
            except AxlogError as error:
                status.refused += 1
                return self._refuse(stream, status.messages, message or "", error)
            status.microseconds = time
            if message is None:
                del closed[stream]
            else:
                status.unmatched += 1
                closed.update({call.stream: call for call in calls})
                if calls:
                    tree.called[stream] = before + cost_of(calls)
            self.collector.refresh()
            passed = document.pass_time(time)
            tree.clock = time
            document.current.origin = stream, status.messages
            return document.announce(self.collector.after(passed, time))

    def collect(self) -> Collection:
        """Close the streams and drop the nodes of the document that no view can need any more.

        Rows and changes stay the same. The document is not whole afterwards: a statement, a new
        view, `why` and the text are rejected (AX307).
        """
        with self.maintained.lock:
            self.last_collection = self.collector.collect()
            return self.last_collection

    @property
    def collected(self) -> list[Dropped]:
        """Return the latest streams, nodes and rows that collection dropped, with reasons."""
        with self.maintained.lock:
            return list(self.collector.collected)

    def filter(self, stream: str) -> Filter | None:
        """Return a filter for the source of a stream; None: the source must send every message.

        The time of a message that is filtered out still counts: report it with `advance`. Only with
        `keep="needed"`, since the document lacks the messages that are not sent. It is therefore
        not whole from now on, whether or not a message was dropped. No message is counted, and the
        next call returns an equal filter.
        """
        with self.maintained.lock:
            route = self.engine.route(stream)
            if (
                route is None
                or self.engine.is_kept(stream)
                or not only_concerns_views(self.maintained, stream)
            ):
                return None
            if self.maintained.tree.call(self.maintained.tree.calls()[stream]).replace is not None:
                return None  # a message that no view wants may replace one that a view wanted
            tree = self.maintained.tree
            if tree.facts or tree.references or self.tuner.must_pass(stream) is not None:
                return None  # key values count although no view wants the nodes that hold them
            made = filter_at_source(route, self.engine.wants.get(stream))
            if made is not None:
                self.maintained.filtered.add(stream)
            return made

    def advance(self, to: Time) -> list[Change]:
        """Move the document's clock. Messages with an earlier time can no longer arrive.

        Rows that hold from or until a moment that passes appear or disappear. Rows that become
        impossible are reported as `never` changes.
        """
        with self.maintained.lock:
            tree = self.maintained.tree
            self.collector.refresh()
            clock = checked_time(tree, microseconds(to))
            passed = self.maintained.pass_time(clock)
            tree.clock = clock
            self.maintained.current.origin = CLOCK
            return self.maintained.announce(self.collector.after(passed, clock))

    def _take(
        self,
        stream: str,
        message: Message,
        at: Time | None,
        latest: int | None,
        operations: Callable[[], list[Operation]],
        done: Callable[[], None] | None = None,
        *,
        is_insertion: bool = False,
        is_deletion: bool = False,
    ) -> list[Change]:
        document = self.maintained
        with document.lock:
            status = self.engine.status(stream)
            status.messages += 1
            document.settle()
            self.collector.refresh()
            try:
                call_of(document.tree, stream)
                given = None if at is None else microseconds(at)
                check_ahead(given, latest, stream)
                time = time_of_message(document.tree, stream, given)
                made = operations() if is_deletion else None
                self.collector.before(stream, is_insertion, self._is_restorable(stream, made))
                made = operations() if made is None else made
                emitted = self._carry_out(made, time, (stream, status.messages))
            except AxlogError as error:
                status = self.engine.status(stream)  # another one, if the document was restored
                status.refused += 1
                self.collector.abandon()
                return self._refuse(stream, status.messages, message, error)
            status.microseconds = time
            if done is not None:
                done()
            emitted = self.collector.after_nodes(emitted, document.tree.clock)
            # Outside of the try: an exception of a subscriber is no fault of the message.
            return document.announce(emitted)

    def _is_restorable(self, stream: str, made: list[Operation] | None) -> bool:
        """Return whether a stream deletes only what it can bring again, and no value above it."""
        document, tree = self.maintained, self.maintained.tree
        if made is None or document.engine.is_value_sensitive(
            tree.parent(tree.calls_by_stream[stream])
        ):
            return False
        return can_bring_again(tree, stream, [o.target for o in made if isinstance(o, Delete)])

    def _carry_out(self, made: list[Operation], time: int, origin: tuple[str, int]) -> ViewChanges:
        """Apply the operations of a message: to the document, or as rows that leave no nodes."""
        first = made[0] if made else None
        key = first.key if isinstance(first, Insert) else None
        if key is not None and self.engine.holds_rows_of(origin[0], key):
            return self.engine.carry_rows(made, time, origin)
        return self.maintained.carry_out(made, time, origin)

    def _refuse(
        self, stream: str, sequence: int, message: Message, error: AxlogError
    ) -> list[Change]:
        error.within(f"message {sequence} of stream {stream!r}")
        if self._options.on_error == "raise":
            raise error
        report(_log, WARNING, "refused", stream=stream, seq=sequence, code=error.code,
               error=error.message)  # fmt: skip
        self.dead_letters.append(DeadLetter(stream, sequence, message, error))
        del self.dead_letters[:-LETTERS]
        return []

    # Reading --------------------------------------------------------------------------------------

    def statuses(self) -> dict[str, StreamStatus]:
        """Return the status of each stream that has, or had, a call."""
        with self.maintained.lock:
            tree = self.maintained.tree
            closed = self.collector.closed
            known = sorted({*tree.calls(), *tree.ended, *closed})
            return {
                stream: replace(
                    self.engine.status(stream),
                    ended=stream in tree.ended and stream not in closed,
                    wanted=self.engine.patterns(stream),
                    is_tuned=stream in self.engine.wants or stream in closed,
                    nodes=self.engine.automaton_nodes(stream),
                    times=self.maintained.times,
                )
                for stream in known
            }


def _by_function(
    generated: Feed, message: Message, at: Time | None, latest: int | None, root: Element | None
) -> list[Change] | None:
    """Apply a message by the generated function of its stream. None: it must take another path."""
    if latest is None and (at is None or type(at) is float or type(at) is int):
        return generated(message, at, root)
    try:
        time = None if at is None else microseconds(at)
    except StreamError:
        return None  # the other paths raise it
    if time is None or (latest is not None and time > latest):
        return None
    return generated(message, None, root, time)


def as_bytes(message: Message) -> bytes:
    """A message as bytes, to be parsed with others; empty if it must be parsed alone."""
    if type(message) is bytes:
        return message
    try:
        return message.encode() if type(message) is str else b""
    except UnicodeEncodeError:
        return b""


def _replaced_by(operations: list[Operation]) -> int:
    """Return the root of the message that another replaces; NONE if it replaces none."""
    found = [each.replaced for each in operations if isinstance(each, Insert)]
    return found[0] if found else NONE
