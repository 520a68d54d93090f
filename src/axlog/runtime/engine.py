"""The engine of one document: apply a batch, return its net changes, pass time, save and restore.

Both engines run documents with it. The embedded runner has one for each document
(`instances.py`), a bucket of Spark has one for its part of the rows, or one for each of its
documents (`bucket.py`). They differ in what they apply: whole updates, or bindings that were
matched elsewhere.

Law: the changes of a batch are net (`views/net_changes.py`). So batches may be cut anywhere, and a
sink that applies the changes of all batches has the rows of the views. The initial rows of a
document belong to its first batch (`begin`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from axlog.document.messages import as_message
from axlog.document.parser import Element
from axlog.document.stream_update import StreamUpdate
from axlog.live.document import Document
from axlog.live.internals import maintained, streams_of
from axlog.live.log_records import Record
from axlog.live.recovery import load_parts, snapshot_parts
from axlog.live.streams import as_bytes
from axlog.views.change import Change
from axlog.views.family import Member
from axlog.views.family_names import is_pilot
from axlog.views.net_changes import net
from axlog.views.view import MaintainedView


class DocumentEngine:
    """A document, and the changes of some of its views."""

    def __init__(
        self, document: Document, views: Iterable[str], members: Iterable[str] = ()
    ) -> None:
        """`views` are emitted; a snapshot may have others, which are dropped.

        `members` are the members of families that the document has: they are emitted, too.
        """
        self.document = document
        self._views = tuple(views)
        self._members = dict.fromkeys(members)
        self._changes: list[Change] = []
        self._begins = False
        streams_of(document).now = None  # dates ahead were checked on reading
        inside = maintained(document)
        inside.families.on_open.append(self._follow)
        emitted = {*self._views, *self._members}
        for name in document.views:
            if name not in emitted and not is_pilot(name):
                document.unwatch(name)
        for name in (*self._views, *self._members):
            self._follow(inside.families.watched(name))

    # Batches --------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Emit the initial rows of the document with this batch."""
        self._begins = True
        self._changes += self.rows()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Collect the net changes of the updates inside; `changes` returns them afterwards."""
        with maintained(self.document).emitting_at_end():
            yield

    def changes(self) -> list[Change]:
        """Return the net changes of the last batch, view by view; they are returned once."""
        found, self._changes[:] = list(self._changes), []
        if self._begins:
            self._begins = False
            return list(net_by_view(found))
        return found

    def take(self, update: StreamUpdate, root: Element | None = None) -> None:
        """Apply an update that is not late, or that its stream's policy accepts.

        `root` is the root of a message that was parsed with others (`roots`).
        """
        if root is None or update.action != "insert":
            self.document.take(update)
            return
        streams, at = streams_of(self.document), update.at
        message = as_message(update.content)
        streams.feed(update.stream, message, at, streams.latest(update.stream, at), root)

    def roots(self, updates: Sequence[StreamUpdate]) -> list[Element | None]:
        """The roots of messages, parsed together; None for other updates and for other messages."""
        messages = [as_bytes(each.content) if each.action == "insert" else b"" for each in updates]
        return streams_of(self.document).roots([each.stream for each in updates], messages)

    def advance(self, time: int) -> None:
        """Advance the clock to a time in microseconds, if it is earlier."""
        if time > self.clock:
            self.document.advance(timedelta(microseconds=time))

    def _follow(self, view: MaintainedView | Member | None) -> None:
        """Collect the changes of a view; those of a member from when it gets its first row."""
        assert view is not None, "a view that is emitted is watched"
        if isinstance(view, Member):
            if view.view is None:
                return  # the document calls this again once there is a view
            view = view.view
        if view.name in self._members or view.name in self._views:
            view.subscribe(self._changes.append)

    # Members of families --------------------------------------------------------------------------

    def add_member(self, name: str, query: str, *, quietly: bool = False, **options: Any) -> None:
        """Watch a member of a family; its rows now are insertions, unless it is added quietly."""
        self._members[name] = None
        try:
            with maintained(self.document).families.restoring(is_shared=True):
                self.document.watch(query, name, **options)
        except BaseException:
            del self._members[name]
            raise
        families = maintained(self.document).families
        watched = families.watched(name)
        if not isinstance(watched, Member):  # else it is followed from when its view is made
            self._follow(watched)
        if not quietly and families.may_have_rows(name):
            self._changes += self._rows_of([name])
            self._begins = True

    def forget_member(self, name: str, *, quietly: bool = False) -> None:
        """Drop a member of a family; its rows are deleted, unless it is dropped quietly."""
        if name in self._members:
            if not quietly and maintained(self.document).families.may_have_rows(name):
                gone = [replace(change, op="delete") for change in self._rows_of([name])]
                self._changes += gone
                self._begins = True
            del self._members[name]
            self.document.unwatch(name)

    @property
    def members(self) -> Iterable[str]:
        """The names of the members of families."""
        return self._members

    def forget(self, view: str) -> None:
        """Drop a view, and tune the streams that feed it."""
        self._views = tuple(name for name in self._views if name != view)
        self.document.unwatch(view)
        self.document.tune()

    # Reading --------------------------------------------------------------------------------------

    @property
    def clock(self) -> int:
        """The document's clock, in microseconds."""
        return maintained(self.document).tree.clock

    @property
    def due(self) -> int | None:
        """The time after which some open match can no longer be completed; None: never."""
        return streams_of(self.document).engine.next_deadline()

    def rows(self) -> list[Change]:
        """Return the present rows of the views as insertions."""
        families = maintained(self.document).families
        full = [name for name in self._members if families.may_have_rows(name)]
        return self._rows_of([*self._views, *full])

    def count(self) -> int:
        """Return the number of rows of the views."""
        families, view = maintained(self.document).families, self.document.view
        full = [name for name in self._members if families.may_have_rows(name)]
        found = [view(name) for name in (*self._views, *full)]
        return sum(len(each) for each in found if each.broken is None)

    def _rows_of(self, names: Iterable[str]) -> list[Change]:
        clock = self.clock
        views = [self.document.view(name) for name in names]
        return [
            Change("insert", row, view=view.name, microseconds=clock)
            for view in views
            if view.broken is None
            for row in view.rows()
        ]

    def set_aside(self) -> dict[str, tuple[str, str]]:
        """Return the views that exceeded a limit, each with the code and message of its error."""
        found = maintained(self.document).families.set_aside()
        return {name: (error.code, error.message) for name, error in found}

    # Saving ---------------------------------------------------------------------------------------

    def parts(self, settings: Record) -> dict[str, bytes]:
        """Return the document and everything that is kept with it; `load` reads it back.

        `settings` are the options that recreate the document (`live/log_records.py`).
        """
        return snapshot_parts(self.document, settings, {})


def load(parts: Mapping[str, bytes], types: Any = None) -> Document:
    """Return the document that `DocumentEngine.parts` wrote."""
    return load_parts(parts, 0, types=types).document


def net_by_view(changes: Iterable[Change]) -> Iterator[Change]:
    """Return the net changes of each view, without those that a later one reverses."""
    by_view: dict[str | None, list[Change]] = {}
    for change in changes:
        by_view.setdefault(change.view, []).append(change)
    for each in by_view.values():
        yield from net(each)
