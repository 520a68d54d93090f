"""The tuner: compute which messages of streams can still matter, and filter out the others.

Tuning repeats: after a number of messages, after some time, when a stream ends, or on request
(`Document.tune`). The engine's facts are copied under the lock, briefly. The filters are computed
on the copy, beside maintenance. The result is installed if it is still valid. It holds for every
future of the streams, so messages that arrived in between do not matter. Statements and new views
do: they invalidate it (`StreamEngine.epoch`).

Law 5: rows and changes are the same as without tuning; counts may differ. Where a stream may
delete, data that does not matter now may matter after a deletion. So streams whose messages it can
reach are not filtered, and a view that can lose rows by it wants every pattern
(`future/deletions.py`); others are tuned as usual. Joins drop rows
that can no longer find a partner as data arrives, with or without tuning (`collector.py`).

(Paper 3, sections 3.4 to 3.6 and 5.2; deletions: figure 8.)
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock, Thread
from time import monotonic, sleep
from typing import Any

from axlog.document.times import Shown, plain, shown
from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.evaluate.joins import Row
from axlog.future.deletions import loses_by, reaching_stream
from axlog.future.search_budget import bounded
from axlog.live.exact_relevance import MOST_NODES, not_relevant
from axlog.live.maintained import MaintainedTree
from axlog.live.options import Policy
from axlog.live.provenance import wanted_of_streams
from axlog.live.replacements import replacing_streams
from axlog.live.stream_engine import StreamEngine
from axlog.query.compile import Relation
from axlog.query.pattern import Kind, Pattern
from axlog.views.counting.facts import Facts, facts_of
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.routes import Wants
from axlog.views.counting.row_sinks import Known
from axlog.views.maintainer import PutAside
from axlog.views.view import MaintainedView

MOST_FACTS = 50_000
"""Largest number of engine rows for which tuning is worth its cost."""


# Reports ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StreamTuning:
    """The result of tuning for one stream."""

    stream: str
    before: tuple[str, ...]  # the patterns that were looked for in its messages
    wanted: tuple[str, ...]  # the patterns that still are
    reason: str

    @property
    def is_unsubscribed(self) -> bool:
        return not self.wanted

    @property
    def not_looked_for(self) -> tuple[str, ...]:
        """The patterns that are no longer looked for."""
        return tuple(pattern for pattern in self.before if pattern not in self.wanted)


@dataclass(frozen=True, slots=True)
class TuningReport:
    """The filters that one tuning installed, with reasons."""

    clock: Shown
    streams: dict[str, StreamTuning] = field(default_factory=dict)
    undecided: dict[str, str] = field(default_factory=dict)  # views that want everything, and why
    facts: int = 0  # engine rows that the result was computed from
    seconds: float = 0.0
    installed: bool = True

    @property
    def unsubscribed(self) -> tuple[str, ...]:
        """The streams that no view can use any more."""
        return tuple(name for name, each in self.streams.items() if each.is_unsubscribed)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values for JSON."""
        return {
            "clock": plain(self.clock),
            "streams": {
                name: {"wanted": list(each.wanted), "before": list(each.before),
                       "unsubscribed": each.is_unsubscribed, "reason": each.reason}
                for name, each in self.streams.items()
            },
            "undecided": self.undecided,
            "facts": self.facts,
            "installed": self.installed,
        }  # fmt: skip


# Computation --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asked:
    """A view to tune for: its root relation and its rows."""

    name: str
    root: Relation
    rows: tuple[Row, ...]
    reason: str | None  # why everything is wanted for it


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The input of the computation."""

    epoch: int
    facts: Facts
    views: tuple[_Asked, ...]
    before: dict[str, tuple[str, ...]]
    whole: dict[str, str]  # streams that must not be filtered, and why
    tree: Tree | None = None  # a copy, for exact tuning
    patterns: tuple[Pattern, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    wants: dict[str, Wants]
    undecided: dict[str, str]


class Tuner:
    """Tunes the streams of one document."""

    def __init__(
        self,
        document: MaintainedTree,
        streaming: StreamEngine,
        policy: Policy | None = None,
    ) -> None:
        self._document, self._streaming = document, streaming
        self._policy = policy
        self.last: TuningReport | None = None
        self._since, self._then = 0, monotonic()
        self._pause = 0.0
        self._running: Thread | None = None
        self._is_due = False
        self._deciding = Lock()  # for the decision to start or stop the thread
        self._one = Lock()

    # Schedule -------------------------------------------------------------------------------------

    def count(self) -> None:
        """Count a message that was applied, and start tuning in the background if it is due."""
        self._since += 1
        policy = self._policy
        if policy is None:
            return
        is_due = policy.messages is not None and self._since >= policy.messages
        # Reading the clock costs more than this test.
        if policy.seconds is not None and not self._since % 64:
            is_due = is_due or monotonic() - self._then >= policy.seconds
        if is_due:
            self.begin()

    def ended(self) -> None:
        """Tune after the end of a stream: messages of other streams may have become useless."""
        if self._policy is not None and self._policy.on_end:
            self.begin()

    def begin(self) -> None:
        """Tune in a background thread: at once, or after the current tuning.

        A tuning that is due is never dropped: there may be no later message to request it again.
        """
        with self._deciding:
            self._since = 0
            self._is_due = True
            if self._running is None:
                self._start()

    def _start(self) -> None:
        """Start the thread, with `_deciding` held."""
        thread = Thread(target=self._work, name="axlog-tuner", daemon=True)
        thread.start()  # it waits for `_deciding`
        self._running = thread

    def _work(self) -> None:
        """Tune while a tuning is due, with pauses in proportion to the last tuning.

        `_is_due` and `_running` change only with `_deciding` held. A request counts as met only by
        a tuning that starts after it.
        """
        try:
            while self._is_still_due():
                sleep(max(0.0, self._then + self._pause - monotonic()))
                with self._deciding:
                    self._is_due = False  # later data may be missed, and requests another tuning
                self.tune(self._policy is not None and self._policy.exact)
        except BaseException:
            with self._deciding:
                self._running = None
                if self._is_due:  # requested while the tuning failed
                    self._start()
            raise

    def _is_still_due(self) -> bool:
        """Return whether to continue. If not, the next `begin` starts a new thread."""
        with self._deciding:
            if not self._is_due:
                self._running = None
            return self._is_due

    def wait(self) -> None:
        """Wait until every tuning that is due is computed and installed."""
        while (running := self._running) is not None:
            running.join()

    # Tuning ---------------------------------------------------------------------------------------

    def tune(self, exact: bool = False) -> TuningReport:
        """Compute which messages of every stream can still matter, and filter out the others."""
        with self._one:
            started = monotonic()
            with self._document.lock:
                snapshot = self._snapshot(exact)
            found = _work_out(snapshot)
            with self._document.lock:
                is_valid = snapshot.epoch == self._streaming.epoch
                if is_valid:
                    self._streaming.install(found.wants)
                report = self._report(snapshot, found, is_valid, monotonic() - started)
            self._then = monotonic()
            # Beside maintenance, not instead of it: at most a twentieth of the time.
            self._pause = 20 * report.seconds
            self.last = report
            return report

    def _snapshot(self, exact: bool) -> _Snapshot:
        document, streaming = self._document, self._streaming
        views = tuple(self._asked(name, view) for name, view in document.views.items())
        relations = {relation for view in views for relation in view.root.walk()}
        facts = facts_of(document.engine, relations)
        open_streams = sorted(stream for streams in facts.calls.values() for stream in streams)
        whole = {}
        for stream in open_streams:
            reason = self.must_pass(stream)
            if reason is not None:
                whole[stream] = reason
        before = {stream: streaming.patterns(stream) for stream in open_streams}
        tree: Tree | None = None
        is_whole = not (document.lacks_messages or document.collected)
        if exact and is_whole and len(document) <= MOST_NODES:
            tree = copy.deepcopy(document.nodes())
        patterns = tuple(view.query.pattern for view in document.views.values())
        return _Snapshot(streaming.epoch, facts, views, before, whole, tree, patterns)

    def _asked(self, name: str, view: MaintainedView) -> _Asked:
        maintainer, nothing = view.maintainer, Relation("q", None)
        if isinstance(maintainer, PutAside):
            return _Asked(name, nothing, (), None)  # it no longer wants anything
        if not isinstance(maintainer, Counting):
            return _Asked(name, nothing, (), f"the maintainer {maintainer.name} is not tuned")
        deleting = loses_by(self._document.tree, view.query.pattern)
        if deleting is not None:
            reason = (
                f"the stream {deleting!r} may delete: data that adds no row now may matter later"
            )
            return _Asked(name, maintainer.root, (), reason)
        return _Asked(name, maintainer.root, tuple(maintainer.bindings()), None)

    def must_pass(self, stream: str) -> str | None:
        """Return why all messages of a stream must pass. None: they can be filtered."""
        document = self._document
        tree = document.tree
        deleting = reaching_stream(tree, stream)
        if deleting is not None:
            return f"the stream {deleting!r} may delete its messages, and tests them for that"
        replacing = replacing_streams(document)
        if replacing:
            return (
                f"the stream {replacing[0]!r} replaces its messages: data that adds no row now may"
                " matter after a replacement"
            )
        document.engine.build()
        if document.engine.is_value_sensitive(tree.parent(tree.calls_by_stream[stream])):
            return "a view compares the value of an element that contains the call"
        for name, view in document.views.items():
            if not isinstance(view.maintainer, Counting):
                return f"{view.maintainer.name} maintains the view {name!r} from the whole document"
            if view.query.steps:
                return f"the view {name!r} computes values from every match, and from their number"
            if view.maintainer.gathers:
                return f"the view {name!r} collects a path from the whole document"
            if not self._streaming.keeps and _shows_ids(view.query.pattern):
                return f"the view {name!r} shows ids, and ids count dropped nodes too"
            if _reads_above(view, document.engine.states_at, tree, stream):
                return f"the view {name!r} shows the content of an element that contains the call"
        return None

    def _report(
        self, snapshot: _Snapshot, found: _Found, is_valid: bool, seconds: float
    ) -> TuningReport:
        tree = self._document.tree
        streams: dict[str, StreamTuning] = {}
        for stream, before in snapshot.before.items():
            if stream not in tree.calls_by_stream:
                continue
            wanted = self._streaming.patterns(stream) if is_valid else before
            reason = snapshot.whole.get(stream) or _reason(before, wanted)
            streams[stream] = StreamTuning(stream, before, wanted, reason)
        facts = snapshot.facts
        clock = shown(facts.clock, self._document.times)
        return TuningReport(clock, streams, found.undecided, facts.size, seconds, is_valid)


def _reason(before: tuple[str, ...], wanted: tuple[str, ...]) -> str:
    if not wanted:
        return "no message of this stream can add a row to a view"
    if wanted != before:
        return "the other patterns can no longer add a row: it exists already or is impossible"
    return "every pattern can still add rows"


def _shows_ids(pattern: Pattern) -> bool:
    return any(output.kind is Kind.ID for output in pattern.outputs)


def _reads_above(
    view: MaintainedView, states_at: Callable[[int], Iterable[Any]], tree: Tree, stream: str
) -> bool:
    """Return whether a view shows the value or content of an ancestor of a stream's call."""
    shown = {
        f"{output.of}.node"
        for output in view.query.pattern.outputs
        if output.kind in (Kind.VAL, Kind.CONT)
    }
    if not shown:
        return False
    parent = tree.parent(tree.calls_by_stream[stream])
    relations = [s.relation for n in (parent, *tree.ancestors(parent)) for s in states_at(n)]
    return any(column in shown for relation in relations for column, _ in relation.own)


def _work_out(snapshot: _Snapshot) -> _Found:
    """Compute what each stream that can be filtered is wanted for, over all views."""
    streams = [stream for stream in snapshot.before if stream not in snapshot.whole]
    wants = {stream: Wants() for stream in streams}
    undecided: dict[str, str] = {}
    for view in snapshot.views:
        found: Mapping[str, Wants] | None = None
        reason = view.reason
        if reason is None and snapshot.facts.size > MOST_FACTS:
            reason = f"the engine keeps more than {MOST_FACTS} rows"
        if reason is None:
            try:
                with bounded(snapshot.facts.size):
                    found = wanted_of_streams(snapshot.facts, view.root, view.rows)
            except UndecidedError as error:
                reason = error.message
        if found is None:
            undecided[view.name] = reason or ""
            everything: dict[Relation, Known] = {relation: {} for relation in view.root.walk()}
            found = dict.fromkeys(streams, Wants(everything, everything))
        for stream in streams:
            _add(wants[stream], found.get(stream) or Wants())
    if snapshot.tree is not None:
        open_streams = [stream for stream in streams if wants[stream]]
        for stream in not_relevant(snapshot.tree, snapshot.patterns, open_streams):
            wants[stream] = Wants()
    return _Found(wants, undecided)


def _add(wants: Wants, more: Wants) -> None:
    """Merge what two views want of a stream. A value matters if it does to one of them."""
    for into, other in ((wants.here, more.here), (wants.everywhere, more.everywhere)):
        for relation, known in other.items():
            mine = into.get(relation)
            if mine is None:
                into[relation] = known
            else:
                into[relation] = {c: mine[c] | known[c] for c in mine.keys() & known.keys()}
