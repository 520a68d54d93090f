"""The widget: a document with calls, its views, and the streams that feed it (P3 2.1).

`feed`, `delete` and `end` are what a stream may bring; each is applied at once, in the order of
arrival, and its changes are told before the call returns. A message that cannot be taken changes
nothing and raises with its stream, its number and the place; with `on_error="dead-letter"` it is
kept in `dead_letters` instead. Inside `with widget.batch():` views are told the net changes at the
end.

`keep="all"` stores what arrives; `keep="needed"` forgets a message once the views have what they
need of it. `validate="wanted"` does not even parse a message that its raw bytes show no view can
want. `cache="disk"` keeps the rows that joins look up in a store on disk and `memory` bytes of them
at hand (P3 5.3). With `types`, what would break the document's or a service's type is refused.
`never` says which views are told what can no longer come (`never_tracker.py`).

Times are given and returned as `document/times.py` says: `times="dates"` returns dates. `at` is the
time at which the document starts, which its nodes have; nothing can come before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from logging import WARNING, getLogger
from pathlib import Path
from time import time as wall_clock
from typing import Any

from axlog.document.clock_bounds import Clock, check_ahead, latest_for
from axlog.document.loader import load, read_forest
from axlog.document.operations import (
    Operation,
    call_of,
    calls_in,
    check_calls,
    checked_time,
    cost_of,
    delete_at_call,
    end_call,
    insert_at_call,
    time_by_policy,
    time_of_message,
)
from axlog.document.parser import DEFAULT_LIMITS, Element, Limits, Source
from axlog.document.schema_sources import Types
from axlog.document.stream_update import StreamUpdate
from axlog.document.times import (
    Shown,
    Time,
    Times,
    checked_times,
    microseconds,
    start_of,
)
from axlog.document.tree import Tree
from axlog.errors import AxlogError, QueryError
from axlog.evaluate.answers import holds
from axlog.future.keys import Key, parse_fact
from axlog.live.change_feed import ChangeFeed
from axlog.live.collector import Collector
from axlog.live.document import Document
from axlog.live.document_collector import Collection, Dropped, Finisher
from axlog.live.key_guard import KeyGuard
from axlog.live.never_tracker import WAYS
from axlog.live.savepoint import Savepoint
from axlog.live.source_filter import filter_at_source
from axlog.live.stream_engine import Streaming, StreamStatus
from axlog.live.tuner import Policy, Tuner, TuningReport
from axlog.match.filters import Filter
from axlog.query.query import Query
from axlog.reporting import report
from axlog.store.keyvalue import KeyValueStore
from axlog.views.change import Change
from axlog.views.counting.disk_tables import Shelf
from axlog.views.counting.state_codec import size_of_tables
from axlog.views.view import View

Message = str | bytes | Element

_log = getLogger("axlog.widget")

LETTERS = 1000
"""Dead letters that are kept, the latest; a stream's status counts all that were refused."""

CACHE = 64 << 20
"""Bytes of engine rows that `cache="disk"` holds in memory, unless told otherwise."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that could not be taken, with the reason."""

    stream: str
    sequence: int
    message: Message
    error: AxlogError


class Widget:
    """A document that streams change, and the views kept over it.

    >>> widget = Widget(
    ...     '<orders><ax:call xmlns:ax="urn:axlog" stream="orders"/></orders>',
    ...     views={"ids": "match /orders/order/oid/$x return $x"},
    ... )
    >>> widget.feed("orders", "<order><oid>17</oid></order>", at=12.5)
    [Change('insert', Row(x='17'))]
    """

    def __init__(
        self,
        source: Source | Tree,
        views: Mapping[str, str | Query] | None = None,
        *,
        limits: Limits = DEFAULT_LIMITS,
        keep_whitespace: bool = False,
        namespaces: Mapping[str, str] | None = None,
        on_error: str = "raise",
        keep: str = "all",
        validate: str = "all",
        facts: Iterable[str] = (),
        collect: str = "state",
        cache: str = "memory",
        memory: int = CACHE,
        cache_path: str | Path | None = None,
        types: Types | Iterable[Types] | None = None,
        tune: str | Mapping[str, float] = "off",
        never: str = "kept",
        times: Times = "seconds",
        at: Time | None = None,
    ) -> None:
        _check_option("on_error", on_error, "raise", "dead-letter")
        _check_option("keep", keep, "all", "needed")
        _check_option("validate", validate, "all", "wanted")
        _check_option("cache", cache, "memory", "disk")
        _check_option("collect", collect, "state", "auto", "off")
        _check_option("never", never, *WAYS)
        tree = source
        if not isinstance(tree, Tree):
            start = start_of(at, checked_times(times))
            tree = load(tree, limits=limits, keep_whitespace=keep_whitespace, time=start)
        self.document = Document(
            tree,
            limits=limits,
            keep_whitespace=keep_whitespace,
            namespaces=namespaces,
            shelf=Shelf(KeyValueStore(cache_path), memory) if cache == "disk" else None,
            types=types,
            times=times,
        )
        tree.facts = tuple(parse_fact(fact, namespaces) for fact in facts)
        self.now: Clock | None = wall_clock  # the receiver's clock; None: messages are not judged
        self.on_error = on_error
        self.dead_letters: list[DeadLetter] = []
        policy = Policy.of(tune)
        self._options = (collect != "off", never, keep, validate, policy)
        self._collects = collect == "auto"
        self._counts = policy is not None
        self._begin_again()
        for name, query in (views or {}).items():
            self.document.watch(query, name)

    def _begin_again(self) -> None:
        """Make all that follows the streams of the document, as it is now."""
        document, tree = self.document, self.document.tree
        drops, never, keep, validate, policy = self._options
        self._collector = Collector(document, drops, never, keep == validate == "all")
        self._streaming = Streaming(document, keep, validate, self._collector)
        self._finisher = Finisher(document, self._collector)
        self._guard = KeyGuard(tree, tree.facts)
        self.tuner = Tuner(document, self._streaming, policy)

    # What streams bring ---------------------------------------------------------------------------

    def feed(self, stream: str, message: Message, at: Time | None = None) -> list[Change]:
        """Take one message: its trees arrive just before the stream's call."""
        return self._feed(stream, message, at, self._latest(stream, at))

    def _latest(self, stream: str, at: Time | None) -> int | None:
        """The latest time that a message which comes now may have (`document/clock_bounds.py`)."""
        if at is None or self.now is None:
            return None
        tree = self.document.tree
        call = tree.calls_by_node.get(
            tree.calls_by_stream.get(stream, -1)
        ) or self._finisher.closed.get(stream)
        declared = None if call is None else call.ahead
        return latest_for(at, declared, self.document.times == "dates", self.now)

    def _feed(
        self, stream: str, message: Message, at: Time | None, latest: int | None
    ) -> list[Change]:
        if self._counts:
            self.tuner.count()
        changes = self._streaming.feed(stream, message, at, latest)
        if changes is None:
            changes = self._feed_nodes(stream, message, at, latest)
        if self._collects and self._finisher.is_due():
            self.collect()
        return changes

    def _feed_nodes(
        self, stream: str, message: Message, at: Time | None, latest: int | None
    ) -> list[Change]:
        """The long way: the message becomes nodes."""
        if stream in self._finisher.closed:
            return self._pass_by(stream, message, at, latest)
        brought: list[tuple[Key, str]] = []

        def operations() -> list[Operation]:
            forest = read_forest(message, self.document.limits)
            made = insert_at_call(self.document.tree, stream, forest)
            self._finisher.check(calls_in(forest), stream)
            brought.extend(self._guard.check(stream, forest))
            self._collector.note_forest(stream, forest)
            return made

        return self._take(
            stream, message, at, latest, operations, lambda: self._guard.note(brought),
            is_insertion=True,
        )  # fmt: skip

    def delete(self, stream: str, pattern: str, at: Time | None = None) -> list[Change]:
        """Take a deletion: the siblings of the stream's call that match, each as a document."""
        return self._delete(stream, pattern, at, self._latest(stream, at))

    def _delete(
        self, stream: str, pattern: str, at: Time | None, latest: int | None
    ) -> list[Change]:
        def operations() -> list[Operation]:
            tree = self.document.nodes()
            wanted = self.document._parse(pattern).pattern
            return delete_at_call(tree, stream, lambda node: holds(tree, wanted, node))

        return self._take(stream, pattern, at, latest, operations)

    def end(self, stream: str, at: Time | None = None) -> list[Change]:
        """Take the end of a stream: its call goes, nothing more can come."""
        return self._end(stream, at, self._latest(stream, at))

    def _end(self, stream: str, at: Time | None, latest: int | None) -> list[Change]:
        if stream in self._finisher.closed:
            changes = self._pass_by(stream, None, at, latest)
        else:
            tree = self.document.tree
            changes = self._take(stream, "", at, latest, lambda: end_call(tree, stream))
        self.tuner.ended()
        if self._collects:
            self.collect()
        return changes

    def _pass_by(
        self, stream: str, message: Message | None, at: Time | None, latest: int | None
    ) -> list[Change]:
        """A stream that collection closed sends on, or ends (None): only the clock moves."""
        document, tree = self.document, self.document.tree
        with document._lock:
            status = self._streaming.status(stream)
            status.messages += 1
            closed = self._finisher.closed
            try:
                given = None if at is None else microseconds(at)
                check_ahead(given, latest, stream)
                time = time_by_policy(tree, closed[stream], given)
                forest = [] if message is None else read_forest(message, document.limits)
                calls = calls_in(forest)
                before = tree.called.get(stream, 0)
                check_calls(closed[stream], calls, before, tree.any_calls)
                self._finisher.check(calls, stream)
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
            self._collector.refresh()
            tree.clock = time
            return document._announce(self._collector.after([], time))

    def collect(self) -> Collection:
        """Close the streams and drop the nodes of the document that no view can need any more.

        Rows and changes stay what they would be without. The document is not whole afterwards: a
        statement, a new view, `why` and the text are refused (AX307).
        """
        with self.document._lock:
            self.document._refuse_if_sealed()
            return self._finisher.collect()

    @property
    def collected(self) -> list[Dropped]:
        """What collection has let go so far and why, the latest last; the first are forgotten."""
        with self.document._lock:
            return list(self._finisher.collected)

    def tune(self, exact: bool = False) -> TuningReport:
        """Work out what each stream is still wanted for, and let nothing else pass from now on.

        Rows and changes stay what they would be without; counts may differ. `exact` takes a closer
        look (P2's definition 7) where the document is whole and small, and costs more.
        """
        return self.tuner.tune(exact)

    def filter(self, stream: str) -> Filter | None:
        """What the source of a stream need send, from now on; None: everything.

        The time of what it does not send still counts: `advance` tells it. Only with
        `keep="needed"`: the document will not have what does not come.
        """
        with self.document._lock:
            route = self._streaming.route(stream)
            if route is None or self._streaming.keeps or not self._streaming.is_plain(stream):
                return None
            if self.document.tree.facts or self.tuner.must_pass(stream) is not None:
                return None  # values of keys count though no view wants what holds them
            made = filter_at_source(route, self._streaming.wants.get(stream))
            if made is not None:
                self.document.forgotten += 1
            return made

    def update(
        self,
        statement: str,
        at: Time | None = None,
        variables: Mapping[str, str | float | bool] | None = None,
    ) -> list[Change]:
        """Carry out a statement of XQuery Update, as a person would; see `Document.update`."""
        return self.document.update(statement, at, variables)

    def take(self, update: StreamUpdate) -> list[Change]:
        """Take one update of a stream, whatever it is."""
        if update.action == "insert":
            return self.feed(update.stream, update.content, at=update.at)
        if update.action == "delete":
            return self.delete(update.stream, str(update.content), at=update.at)
        return self.end(update.stream, at=update.at)

    def advance(self, to: Time) -> list[Change]:
        """Move the document's clock: nothing with an earlier time can come any more.

        What can no longer come because of it is a change, `never`.
        """
        with self.document._lock:
            tree = self.document.tree
            self._collector.refresh()
            tree.clock = checked_time(tree, microseconds(to))
            return self.document._announce(self._collector.after([], tree.clock))

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
    ) -> list[Change]:
        document = self.document
        with document._lock:
            status = self._streaming.status(stream)
            status.messages += 1
            document.settle()
            self._collector.refresh()
            try:
                call_of(document.tree, stream)
                self._collector.teller.before(stream, is_insertion)
                given = None if at is None else microseconds(at)
                check_ahead(given, latest, stream)
                time = time_of_message(document.tree, stream, given)
                told = document._carry_out(operations(), time, (stream, status.messages))
            except AxlogError as error:
                status.refused += 1
                self._collector.forget_message()
                return self._refuse(stream, status.messages, message, error)
            status.microseconds = time
            if done is not None:
                done()
            told = self._collector.after_nodes(told, document.tree.clock)
            # Outside of the try: what a listener raises is no fault of the message.
            return document._announce(told)

    def _refuse(
        self, stream: str, sequence: int, message: Message, error: AxlogError
    ) -> list[Change]:
        error.within(f"message {sequence} of stream {stream!r}")
        if self.on_error == "raise":
            raise error
        report(_log, WARNING, "refused", stream=stream, seq=sequence, code=error.code,
               error=error.message)  # fmt: skip
        self.dead_letters.append(DeadLetter(stream, sequence, message, error))
        del self.dead_letters[:-LETTERS]
        return []

    # Views ----------------------------------------------------------------------------------------

    def view(self, name: str) -> View:
        """The view of this name."""
        try:
            return self.document.views[name]
        except KeyError:
            known = ", ".join(sorted(self.document.views)) or "none"
            raise QueryError("AX203", f"there is no view {name!r}", expected=known) from None

    @property
    def views(self) -> dict[str, View]:
        with self.document._lock:
            return dict(self.document.views)

    def watch(self, query: str | Query, name: str | None = None, **options: Any) -> View:
        """Add a view; it has the rows of what is there now. See `Document.watch` for options."""
        with self.document._lock:
            view = self.document.watch(query, name, **options)
            self._streaming.prepare()
        return view

    def changes(self, name: str) -> ChangeFeed:
        """The changes of a view from now on, to iterate over, `async for` included."""
        return ChangeFeed(self.view(name).listen)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Take the updates inside as one: all of them, or none if the body raises.

        Listeners and feeds are told what they come to, when the batch ends. What went wrong with a
        message and was handled inside, by the body or as a dead letter, does not end the batch.
        """
        document = self.document
        with document._lock, document.as_one(Savepoint(document, self)):
            yield

    def streams(self) -> dict[str, StreamStatus]:
        """Each stream that has, or had, a call, with what has come over it."""
        with self.document._lock:
            tree = self.document.tree
            closed = self._finisher.closed
            known = sorted({*tree.calls(), *tree.ended, *closed})
            return {
                stream: replace(
                    self._streaming.status(stream),
                    ended=stream in tree.ended and stream not in closed,
                    wanted=self._streaming.patterns(stream),
                    is_tuned=stream in self._streaming.wants or stream in closed,
                    nodes=self._streaming.automaton_nodes(stream),
                    times=self.document.times,
                )
                for stream in known
            }

    def state_sizes(self) -> dict[str, int]:
        """What is kept: keys that joins look up, and the rows of each view."""
        with self.document._lock:
            kept = {"joins": size_of_tables(self.document.engine)}
            return kept | {name: len(view) for name, view in self.views.items()}

    def code(self, stream: str) -> str | None:
        """The code generated for a stream's messages; None if they go through the document."""
        with self.document._lock:
            return self._streaming.code(stream)

    @property
    def clock(self) -> Shown:
        """The latest time seen."""
        return self.document.clock

    def xml(self) -> str:
        return self.document.xml()

    def __repr__(self) -> str:
        with self.document._lock:
            nodes, streams = len(self.document), len(self.document.tree.calls())
            return f"Widget({nodes} nodes, {streams} open streams, {len(self.views)} views)"


def _check_option(name: str, value: str, *allowed: str) -> None:
    if value not in allowed:
        raise QueryError("AX211", f"{name}={value!r}", expected=" or ".join(allowed))
