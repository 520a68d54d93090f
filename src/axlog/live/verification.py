"""Reading a store without opening it: replay its history, and recompute its views.

Both work without the store's lock and change no byte, so they can run beside a process that has the
store open. They then see the store as it was when they started to read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from axlog.document.parser import Source
from axlog.document.tree import Tree
from axlog.errors import AxlogError, StoreError
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.log_records import decode
from axlog.live.options import Options
from axlog.live.recovery import Restored, repeat, restore
from axlog.store.files import Files
from axlog.store.log_reader import Torn, read_log, segments
from axlog.views.change import Change, Row
from axlog.views.choose import recomputed
from axlog.views.view import MaintainedView


def history(files: Files, until: int | None = None) -> Iterator[tuple[int, list[Change]]]:
    """Yield the changes of every record that is still in the log, up to a record, oldest first."""
    firsts = segments(files)
    if not firsts:
        raise StoreError("AX875", "there is no store here", expected="a directory with a log")
    found = restore(files, Document, {}, until=firsts[0] - 1) if firsts[0] > 1 else None
    if found is None and firsts[0] > 1:
        raise StoreError(
            "AX875",
            f"the log starts with record {firsts[0]}, and there is no snapshot before it",
            advice="open the store with retain=True to keep its history",
        )
    for first, batch in read_log(files, 0 if found is None else found.record):
        for number, data in enumerate(batch, first):
            if until is not None and number > until:
                return
            if found is None:
                found = restore(files, Document, {}, until=1, from_start=True)
                continue
            told = repeat(found, decode(data, number), number)
            changes = [change for _, heard in told for change in heard]
            if changes:
                yield number, changes
    if found is None:
        raise StoreError("AX875", "nothing in the log is whole", expected="a directory with a log")


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of recomputing one view."""

    view: str
    rows: int
    missing: tuple[Row, ...] = ()  # rows that the document gives and the view lacks
    extra: tuple[Row, ...] = ()  # rows that the view has and the document does not give
    reason: str | None = None  # why it could not be recomputed

    @property
    def is_right(self) -> bool:
        return self.reason is None and not self.missing and not self.extra


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of reading a store's files and recomputing its views."""

    record: int  # the last record
    is_closed: bool  # otherwise a process has it open, or has crashed
    torn: Torn | None  # the unfinished end of the log, which is cut off when the store is opened
    views: tuple[Verified, ...]

    @property
    def is_right(self) -> bool:
        return all(view.is_right for view in self.views)


def verify(files: Files) -> Verification:
    """Read every file of a store, recompute every view from the document, and compare."""
    found = restore(files, Document, {})
    if found is None:
        raise StoreError("AX875", "there is no store here", expected="a directory with a log")
    document = maintained(found.document)
    whole = found if not document.forgotten else _kept(files)
    views = tuple([_verify(view, whole) for view in document.views.values()])
    return Verification(found.record, found.is_closed, found.torn, views)


def _kept(files: Files) -> Restored | None:
    """Replay the store from its first record and keep every message.

    None: the log is not complete.
    """
    firsts = segments(files)
    if not firsts or firsts[0] != 1:
        return None
    try:
        return restore(files, _Keeping, {}, from_start=True)
    except StoreError:
        return None


class _Keeping(Document):
    """A document that keeps all messages, whatever its settings say."""

    def __init__(self, source: Source | Tree | None = None, *, options: Options, **given: Any):
        options = replace(options, keep="all", validate="all")
        super().__init__(source, options=options, **given)


def _verify(view: MaintainedView, whole: Restored | None) -> Verified:
    if view.broken is not None:
        return Verified(view.name, 0, reason=f"it was set aside: {view.broken.message}")
    rows = list(view.rows())
    if whole is None:
        reason = "messages were not kept, and the log does not go back to the first"
        return Verified(view.name, len(rows), reason=reason)
    # Recompute by counting, on a fresh engine, if it supports the pattern; else by definition.
    try:
        right = recomputed(maintained(whole.document).nodes(), view.query)
    except AxlogError as error:
        return Verified(view.name, len(rows), reason=error.message)
    missing, extra = _without(right, rows), _without(rows, right)
    return Verified(view.name, len(rows), tuple(missing), tuple(extra))


def _without(rows: list[Row], others: list[Row]) -> list[Row]:
    """Return the rows that `others` lacks. Rows of several nodes may have the same values."""
    left = Counter(row.values_ for row in others)
    found = []
    for row in rows:
        if left[row.values_]:
            left[row.values_] -= 1
        else:
            found.append(row)
    return found
