"""Collection in the document: close finished streams and drop finished subtrees.

`future/finished.py` decides which these are. Views do not see that a subtree is dropped: its rows
stay, and so do the counts in the joins above it. From then on the document is not whole. Operations
that need all of it (a statement, a new view, `why`, the text) are rejected with AX307. Truth and
possible rows stay the same: they follow from the remaining nodes and the existing rows. After nodes
were dropped, key values are looked up only in the joins' memory.

A closed stream may continue to send. Its messages are checked and move the clock, and have no other
effect. Streams of calls inside these messages are closed too.

Not closed: one-shot calls and calls with a maximum number of trees, since their messages are
counted, and streams of joins that emit `never` changes, since these depend on the real end of the
stream. (Paper 1, section 5.)
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
"""Number of latest drops that `collected` remembers."""

EVERY = 256
"""Minimum number of messages between two collections.

For a large document it is a quarter of its nodes.
"""

_NOT_ASKED = "no message of this stream can add a row to a view"
_NOT_USED = "no row to come can use it; the rows that came of it are there and stay"
_IN_VAIN = "they waited for a partner: the stream ended, the key's value came, or time ran out"


@dataclass(frozen=True, slots=True)
class Dropped:
    """A stream, subtree or set of rows that collection dropped, with the reason."""

    kind: str  # stream, nodes or rows
    what: str  # the stream, the path of the subtree, or the pattern of the join
    count: int  # nodes or rows; 1 for a stream
    why: str
    clock: Shown

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values for JSON."""
        return {"kind": self.kind, "what": self.what, "count": self.count, "why": self.why,
                "clock": plain(self.clock)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Collection:
    """The result of one collection. `kept` is the reason if the document was not collected."""

    clock: Shown
    dropped: tuple[Dropped, ...] = ()
    kept: str | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that were closed."""
        return tuple(each.what for each in self.dropped if each.kind == "stream")

    @property
    def nodes(self) -> int:
        """The number of nodes dropped from the document."""
        return sum(each.count for each in self.dropped if each.kind == "nodes")

    @property
    def rows(self) -> int:
        """The number of rows dropped from the engine's state since the last collection."""
        return sum(each.count for each in self.dropped if each.kind == "rows")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values for JSON."""
        return {"clock": plain(self.clock), "streams": list(self.streams), "nodes": self.nodes,
                "rows": self.rows, "kept": self.kept,
                "dropped": [each.to_dict() for each in self.dropped]}  # fmt: skip


class DocumentCollector:
    """Closes finished streams and drops finished subtrees of one document."""

    def __init__(self, document: MaintainedTree, collector: Collector) -> None:
        self._document, self._collector = document, collector
        self.collected: deque[Dropped] = deque(maxlen=REMEMBERED)
        self.closed: dict[str, Call] = {}  # streams that may continue to send
        self._rows: dict[str, int] = {}  # rows dropped by each join, as already reported
        self._messages = 0

    # Schedule -------------------------------------------------------------------------------------

    def is_due(self) -> bool:
        """Count a message and return whether a collection is due.

        This spreads its cost over messages.
        """
        self._messages += 1
        if self._messages < EVERY or self._messages < len(self._document.tree) // 4:
            return False
        self._messages = 0
        return True

    # Collection -----------------------------------------------------------------------------------

    def collect(self) -> Collection:
        """Close finished streams and drop finished subtrees. No view sees a change."""
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
        """Return why the document must not be collected. None: it can be."""
        document = self._document
        if document.forgotten:
            return "messages were not kept: what is there cannot be judged"
        if not document.views:
            return "there are no views"
        for name, view in document.views.items():
            if not isinstance(view.maintainer, Counting):
                return f"{view.maintainer.name} maintains {name!r} from the whole document"
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

    # Closed streams -------------------------------------------------------------------------------

    def check(self, calls: Iterable[Call], by: str) -> None:
        """Reject a message that opens a stream twice.

        Restore dropped rows before a call that may delete.
        """
        for call in calls:
            if call.stream in self.closed or (
                by in self.closed and call.stream in self._document.tree.calls()
            ):
                raise StreamError("AX403", f"the stream {call.stream!r} already has a call")
            if call.deletes != "no" and by not in self.closed:
                self._document.untune()  # raises if rows or nodes are lost for good
