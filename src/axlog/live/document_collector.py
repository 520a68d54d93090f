"""Collection in the document: finished streams are closed, finished subtrees dropped (P1 5).

The verdicts are `future/finished.py`'s. A dropped subtree goes past the views: its rows stay, and
so do the counts that the joins above it hold. From then on the document is not whole: what would
have to look at it (a statement, a new view, `why`, the text) is refused by code, AX307; truth and
possible rows are the same, from what is left and the rows that are there. After nodes went, a key
is asked only of what the joins remember.

A closed stream may go on sending: its messages are checked and move the clock, no more. Streams of
calls inside them are closed too.

Not closed: one-shot calls and calls of at most m trees (their messages are counted), and streams of
joins that tell `never` (those end as the stream says).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from axlog.document.calls import Call
from axlog.document.operations import end_call
from axlog.document.times import Shown, plain
from axlog.errors import StreamError, UndecidedError, UnsupportedError
from axlog.future.finished import finished_subtrees, refusal, size, streams_asked
from axlog.live.collector import Collector
from axlog.live.maintained import MaintainedTree
from axlog.query.pattern import Pattern
from axlog.views.counting.maintainer import Counting

REMEMBERED = 1000
"""How many of the things that were dropped can be asked for, the latest."""

EVERY = 256
"""Messages between two collections, at least; of a large document, a quarter of its nodes."""

_NOT_ASKED = "whatever it brings, no row of a view can come of it that does not come without"
_NOT_USED = "no row to come can use it; the rows that came of it are there and stay"
_IN_VAIN = "they waited for a partner: the stream ended, the key's value came, or time ran out"


@dataclass(frozen=True, slots=True)
class Dropped:
    """One thing that collection let go, and why."""

    kind: str  # stream, nodes or rows
    what: str  # the stream, the path of the subtree, or the pattern of the join
    count: int  # of nodes or rows; of a stream 1
    why: str
    clock: Shown

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"kind": self.kind, "what": self.what, "count": self.count, "why": self.why,
                "clock": plain(self.clock)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Collection:
    """What one collection let go; `kept` says why it left the document alone, where it did."""

    clock: Shown
    dropped: tuple[Dropped, ...] = ()
    kept: str | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that were closed."""
        return tuple(each.what for each in self.dropped if each.kind == "stream")

    @property
    def nodes(self) -> int:
        """How many nodes of the document were dropped."""
        return sum(each.count for each in self.dropped if each.kind == "nodes")

    @property
    def rows(self) -> int:
        """How many rows of the engine's state were let go since the last collection."""
        return sum(each.count for each in self.dropped if each.kind == "rows")

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"clock": plain(self.clock), "streams": list(self.streams), "nodes": self.nodes,
                "rows": self.rows, "kept": self.kept,
                "dropped": [each.to_dict() for each in self.dropped]}  # fmt: skip


class DocumentCollector:
    """Drops what is finished from one widget's document."""

    def __init__(self, document: MaintainedTree, collector: Collector) -> None:
        self._document, self._collector = document, collector
        self.collected: deque[Dropped] = deque(maxlen=REMEMBERED)
        self.closed: dict[str, Call] = {}  # streams that may go on sending
        self._rows: dict[str, int] = {}  # that were let go, by join, as reported
        self._messages = 0

    # When -----------------------------------------------------------------------------------------

    def is_due(self) -> bool:
        """Whether it is time after one more message: what a look costs is spread over them."""
        self._messages += 1
        if self._messages < EVERY or self._messages < len(self._document.tree) // 4:
            return False
        self._messages = 0
        return True

    # Collecting -----------------------------------------------------------------------------------

    def collect(self) -> Collection:
        """Drop what is finished; no view sees a change of it."""
        document = self._document
        document.settle()
        self._collector.refresh()
        self._collector.tracker.catch_up()
        dropped = self._rows_let_go()
        kept = self._reason()
        if kept is None:
            try:
                dropped += self._close()
                dropped += self._drop()
            except (UndecidedError, UnsupportedError) as error:
                kept = error.message
        self.collected.extend(dropped)
        return Collection(document.clock, tuple(dropped), kept)

    def _reason(self) -> str | None:
        """Why the document is left alone; None if it need not be."""
        document = self._document
        if document.forgotten:
            return "messages were not kept: what is there cannot be judged"
        if not document.views:
            return "there are no views"
        for name, view in document.views.items():
            if not isinstance(view.maintainer, Counting):
                return f"the view {name!r} is kept by {view.maintainer.name}, from all there is"
            if view.is_deferred:
                return f"the view {name!r} is deferred: it has yet to look"
        return refusal(document.tree, self._patterns())

    def _patterns(self) -> list[Pattern]:
        return [view.query.pattern for view in self._document.views.values()]

    def _rows_let_go(self) -> list[Dropped]:
        found: list[Dropped] = []
        for join, count in self._collector.let_go().items():
            new = count - self._rows.get(join, 0)
            self._rows[join] = count
            if new > 0:
                found.append(Dropped("rows", join, new, _IN_VAIN, self._document.clock))
        return found

    def _close(self) -> list[Dropped]:
        document, tree = self._document, self._document.tree
        asked = self._collector.telling_streams()
        for pattern in self._patterns():
            asked |= streams_asked(tree, pattern)
        found: list[Dropped] = []
        for stream, node in sorted(tree.calls().items()):
            call = tree.call(node)
            if stream in asked or call.mode != "stream" or call.most is not None:
                continue
            told = document.carry_out(end_call(tree, stream), None, (stream, 0))
            told = self._collector.after_nodes(told, tree.clock)
            if any(changes for _, changes in told):
                raise AssertionError(f"closing {stream!r} has changed rows")  # law 5
            self.closed[stream] = call
            document.collected += 1
            found.append(Dropped("stream", stream, 1, _NOT_ASKED, self._document.clock))
        return found

    def _drop(self) -> list[Dropped]:
        document, tree = self._document, self._document.tree
        tops = [
            node
            for node in finished_subtrees(tree, self._patterns())
            if not document.engine.is_value_sensitive(tree.parent(node))
        ]
        found = [
            Dropped("nodes", tree.path(top), size(tree, top), _NOT_USED, document.clock)
            for top in tops
        ]
        if tops:
            document.drop(tops)
        return found

    # Streams that were closed ---------------------------------------------------------------------

    def check(self, calls: Iterable[Call], by: str) -> None:
        """Refuse a message whose calls a stream has already; let what may delete find all rows."""
        for call in calls:
            if call.stream in self.closed or (
                by in self.closed and call.stream in self._document.tree.calls()
            ):
                raise StreamError("AX403", f"the stream {call.stream!r} already has a call")
            if call.deletes != "no" and by not in self.closed:
                self._document.untune()  # raises if something is gone for good
