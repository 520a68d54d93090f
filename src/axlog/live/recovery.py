"""Recovery: load the last good snapshot of a store, and apply the log records after it.

`snapshot_parts` writes a snapshot and `load_parts` reads it. It holds the settings, the document's
columns, the views with their positions, the message counts of each stream, the dead letters,
the outboxes, and whether streams were tuned (the filters are computed again). Where messages are
not kept, it also holds the engine's rows, with the key values that joins remember. All parts are
JSON or columns of integers: no file contains code that could run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from logging import WARNING, getLogger
from typing import Any

from axlog.document.calls import Call
from axlog.document.times import checked_times
from axlog.document.tree_codec import load_tree, save_tree
from axlog.errors import AxlogError, QueryError, StoreError, StreamError
from axlog.live import log_records
from axlog.live.document import Document
from axlog.live.internals import maintained, maintained_view, streams_of
from axlog.live.log_records import Record, decode
from axlog.live.outbox import Outbox
from axlog.live.streams import DeadLetter
from axlog.live.update_changes import ViewChanges
from axlog.live.view import public
from axlog.query.columns import Columns, ColumnType, typed_columns
from axlog.reporting import report
from axlog.store.files import Files
from axlog.store.log_reader import LogReader, Torn, missing, segments
from axlog.store.snapshots import read_snapshot, snapshots
from axlog.views.change import Change, Row, timed_change
from axlog.views.value_codec import restored_value, saved_value

_events = getLogger("axlog.store")


@dataclass(slots=True)
class Restored:
    """A document as the store has it."""

    document: Document
    settings: Record
    record: int = 0  # the last record applied
    snapshot: int = 0  # the record of the snapshot that recovery started from
    outboxes: dict[str, Outbox] = field(default_factory=dict)
    is_closed: bool = False  # whether the log was closed
    torn: Torn | None = None  # the unfinished end of the log after a crash, which is left out


def restore(
    files: Files,
    kind: type[Document],
    views: Mapping[str, str],
    until: int | None = None,
    from_start: bool = False,
) -> Restored | None:
    """Return the document of a store, up to a record if one is given. None: there is no store.

    `views` are the views that the caller wants. A view that exists with another text is an error. A
    view that needs messages which were not kept is back-filled from the log, if the log goes back
    to the start.
    """
    if not segments(files):
        LogReader(files)  # raises for a store whose log is missing
        if snapshots(files):
            raise missing("the log of the store")
        return None
    found = None if from_start else _from_snapshot(files, kind, until)
    if found is not None and _lacks(found.document, views) and maintained(found.document).forgotten:
        found = None
    last = [state for _, state in deque(replay(files, found, kind, until, views), maxlen=1)]
    found = last[0] if last else found
    if found is None:
        if segments(files)[0] != 1:
            raise missing("the snapshot that the log goes on from")
        return None
    for name, text in views.items():
        kept = maintained(found.document).families.watched(name)
        known = None if kept is None else public(kept)
        if known is not None and known.query.text.strip() != text.strip():
            raise StoreError(
                "AX875",
                f"the store keeps another view {name!r}: {known.query.text}",
                expected=text,
                advice="unwatch it first, or give the new one another name",
            )
    for view in found.document.views.values():
        maintained_view(view).resume(view.position)
    return found


def _lacks(document: Document, views: Mapping[str, str]) -> bool:
    return any(maintained(document).families.watched(name) is None for name in views)


def _from_snapshot(files: Files, kind: type[Document], until: int | None) -> Restored | None:
    usable = [record for record in snapshots(files) if until is None or record <= until]
    for record in reversed(usable):
        try:
            return load_parts(read_snapshot(files, record), record, kind)
        except StoreError as error:
            # An older snapshot and a longer log do as well, if they exist.
            if record == usable[0] and segments(files)[0] != 1:
                raise
            report(_events, WARNING, "snapshot not used", seq=record, error=error.message)
    return None


def replay(
    files: Files,
    found: Restored | None,
    kind: type[Document],
    until: int | None = None,
    views: Mapping[str, str] | None = None,
) -> Iterator[tuple[int, Restored]]:
    """Apply records one after the other, and yield the state after each.

    Subscribers are not called.
    """
    after = 0 if found is None else found.record
    log = LogReader(files)
    for frame in log.frames(after):
        for number, data in enumerate(frame.records, frame.first):
            if until is not None and number > until:
                return
            record = decode(data, number)
            log_records.check_form(record, number)
            if found is None:
                found = _begin(record, number, kind, views or {})
            elif number != found.record + 1:
                raise _gap(found, number)
            else:
                repeat(found, record, number)
            yield number, found
    if found is not None:
        if log.next != found.record + 1:
            raise _gap(found, log.next)
        found.is_closed, found.torn = log.is_closed, log.torn


def _gap(found: Restored, number: int) -> StoreError:
    return StoreError(
        "AX878",
        f"the log goes on with record {number}",
        expected=f"record {found.record + 1}",
        advice="an older snapshot or part of the log is missing: restore it from a copy",
    )


def _begin(record: Record, number: int, kind: type[Document], views: Mapping[str, str]) -> Restored:
    if "open" not in record or number != 1:
        raise StoreError(
            "AX878",
            f"the log starts with record {number}",
            expected="record 1, or a snapshot of the records before",
            advice="restore the directory from a copy",
        )
    source = record["open"]["source"]
    found = Restored(log_records.make_document(record, source, kind), record, 1)
    if record["open"]["options"].get("keep") == "needed":
        # Messages that are not kept cannot be read later: add later views at the start.
        for name, text in views.items():
            Document.watch(found.document, text, name)
    return found


def repeat(found: Restored, record: Record, number: int) -> ViewChanges:
    """Apply a record, and return the changes of each view.

    A record rejected before is rejected again.
    """
    found.record = number
    document = maintained(found.document)
    if "publisher" in record:
        found.outboxes[record["publisher"]] = Outbox(record["publisher"], record["view"])
        return []
    if "unpublish" in record:
        found.outboxes.pop(record["unpublish"], None)
        return []
    if "published" in record:
        box = found.outboxes.get(record["published"])
        if box is not None:  # otherwise the publisher was removed meanwhile
            box.took(record["record"])
        return []
    if record.get("watch") in document.views:
        return []  # the view was added at the start
    with document.netted() as emitted:
        for one in record.get("batch", (record,)):
            try:
                log_records.carry_out(found.document, one)
            except AxlogError:
                continue
    for box in found.outboxes.values():
        changes = [change for view, heard in emitted if view.name == box.view for change in heard]
        if changes and number > box.taken:
            box.put(number, changes)
    return emitted


# Snapshots ----------------------------------------------------------------------------------------


def snapshot_parts(
    document: Document, settings: Record, boxes: Mapping[str, Outbox]
) -> dict[str, bytes]:
    """Return the state of a document as the parts of a snapshot."""
    inside, fed = maintained(document), streams_of(document)
    inside.settle()
    views = {
        name: {"query": v.query.text, "language": v.query.language, "position": v.position,
               **({"maintainer": v.chosen.name} if plan is None else {"shared": plan}),
               **({} if v.work is None else {"work": v.work}),
               **({"on_value_error": "reject"} if v.rejects else {}),
               **({} if v.broken is None else {"broken": [v.broken.code, v.broken.message]})}
        for name, v, plan in inside.families.in_order()
    }  # fmt: skip
    saved = {
        "settings": settings,
        "views": views,
        "forgotten": inside.forgotten,
        "statements": inside.statements,
        "streams": {s.stream: [s.messages, s.refused, s.microseconds, s.unparsed]
                    for s in fed.engine.copied_statuses().values()},
        "letters": [[d.stream, d.sequence, _text(d.message), d.error.code, d.error.message]
                    for d in document.dead_letters],
        "outboxes": {name: [box.view, box.taken, [[n, [_change(c) for c in changes]]
                                                  for n, changes in box.pending()]]
                     for name, box in boxes.items()},
        "keys": fed.guard.values(),
        "ends": fed.collector.tracker.ends(),
        "tuned": bool(fed.engine.wants),
        "collected": inside.collected,
        "closed": {s: list(call.attributes) for s, call in fed.collector.closed.items()},
    }  # fmt: skip
    parts = {"widget": log_records.encode(saved), **save_tree(inside.tree)}
    if inside.forgotten or inside.collected:
        parts["rows"] = log_records.encode({"state": fed.engine.state()})
    return parts


def load_parts(
    parts: Mapping[str, bytes], record: int, kind: type[Document] = Document, types: Any = None
) -> Restored:
    """Return the document that `snapshot_parts` wrote after a record. `types` are its types."""
    try:
        saved = decode(parts["widget"], record)
        settings: Record = saved["settings"]
        log_records.check_form(settings, record)
        document = log_records.make_document(settings, load_tree(parts), kind, types)
        for name, view in saved["views"].items():
            shared = view.get("shared")  # in older stores it is true, not the name of the plan
            plan = shared if isinstance(shared, str) and "rows" in parts else None
            with maintained(document).families.restoring(bool(shared), plan):
                made = Document.watch(
                    document, view["query"], name, language=view["language"],
                    maintainer=view.get("maintainer"), work=view.get("work"),
                    on_value_error=view.get("on_value_error", "null"),
                )  # fmt: skip
            # stores of 0.1 call it the sequence
            position = view["position"] if "position" in view else view["sequence"]
            maintained_view(made).resume(position)
            if "broken" in view and made.broken is None:
                maintained_view(made).put_aside(QueryError(*view["broken"]))
        fed = streams_of(document)
        if "rows" in parts:
            fed.engine.restore(_tuples(decode(parts["rows"], record)["state"]))
        maintained(document).forgotten = saved["forgotten"]
        maintained(document).statements = saved.get("statements", 0)
        maintained(document).collected = saved.get("collected", 0)
        for stream, attributes in saved.get("closed", {}).items():
            fed.collector.closed[stream] = Call.of([(str(n), str(v)) for n, v in attributes])
        for stream, (messages, refused, last, unparsed) in saved["streams"].items():
            status = fed.engine.status(stream)
            status.messages, status.refused = messages, refused
            status.microseconds, status.unparsed = last, unparsed
        fed.guard.restore(saved["keys"])
        document.dead_letters.extend(
            DeadLetter(stream, number, message, StreamError(code, what))
            for stream, number, message, code, what in saved["letters"]
        )
        ends = saved.get("ends")
        if ends is not None:
            fed.collector.restore_ends(ends)
        if saved.get("tuned"):  # filters follow from the document and the views
            fed.tuner.tune()
        boxes = {name: _outbox(name, *box) for name, box in saved["outboxes"].items()}
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        if isinstance(error, AxlogError):
            raise
        raise StoreError(
            "AX871", f"the snapshot of record {record} does not fit: {error}"
        ) from None
    return Restored(document, settings, record, record, boxes)


def _outbox(name: str, view: str, taken: int, pending: list[Any]) -> Outbox:
    box = Outbox(name, view)
    box.restore([(n, [_read_change(c) for c in changes]) for n, changes in pending], taken)
    return box


def _text(message: object) -> str:
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)


_CHANGE = ("op", "row", "before", "view", "time", "position", "times", "origin", "final")
"""The parts of a change in an outbox."""


def _change(change: Change) -> list[Any]:
    return [
        change.op, _row(change.row), None if change.before is None else _row(change.before),
        change.view, change.microseconds, change.position, change.row.times, change.origin,
        change.final,
    ]  # fmt: skip


def _row(row: Row) -> list[Any]:
    columns = typed_columns(row.columns)
    key = None if row.key_ is None else [saved_value(value) for value in row.key_]
    return [list(columns), [saved_value(value) for value in row.values_], row.count, key,
            columns.types, columns.key_types]  # fmt: skip


def _read_change(saved: list[Any]) -> Change:
    """Return a change of an outbox. Those of 0.1 have neither a cause nor a key."""
    given = dict(zip(_CHANGE, saved, strict=False))
    op, row, before, view = given["op"], given["row"], given["before"], given["view"]
    read = Change(
        op, _read_row(row), None if before is None else _read_row(before), view,
        given["time"], given["position"], _tuples(given.get("origin")),
        given.get("final", op == "never"),
    )  # fmt: skip
    return timed_change(read, checked_times(given.get("times", "seconds")))


def _read_row(written: list[Any]) -> Row:
    """Return a row of a change. Those of 0.1 have no types: every integer in them is a time."""
    names, shown, count, *more = written
    values = tuple(restored_value(value) for value in shown)
    key = None
    if more and more[0] is not None:
        key = tuple(restored_value(value) for value in more[0])
    types = more[1] if len(more) > 2 else [_old_type(value) for value in values]
    key_types = more[2] if len(more) > 2 else [_old_type(value) for value in key or values]
    return Row(Columns(names, types, key_types), values, count, key)


def _old_type(value: Any) -> ColumnType:
    is_time = type(value) is int or (type(value) is tuple and any(type(v) is int for v in value))
    return "time" if is_time else "any"


def _tuples(value: Any) -> Any:
    """Convert JSON lists back to tuples."""
    if isinstance(value, list):
        return tuple(_tuples(each) for each in value)
    if isinstance(value, dict):
        return {key: _tuples(each) for key, each in value.items()}
    return value
