"""Changes as they travel from buckets to the driver: plain data, their merging and their order.

A row without a known key can never come only if no bucket can produce it: `agreed` finds the rows
that all buckets of a unit rule out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from axlog.connect.kinds import DOCUMENT_COLUMN
from axlog.document.ids import Id
from axlog.query.columns import Columns, typed_columns
from axlog.views.change import CLOCK, Change, From, Row, Values, headed_row, timed_change
from axlog.views.value_codec import restored_value, saved_value

_OPS = ("delete", "update", "insert", "never")


def value_of(change: Change, column: str) -> Any:
    """Return a value as in bindings: times in microseconds."""
    return change.row.values_[change.row.columns.index(column)]


def plain_change(change: Change, document: str = "") -> list[Any]:
    """Return a change for JSON: ids as text, times as microseconds.

    Of a cause, only the stream is kept: buckets count their own messages. The rows before and after
    an update have the same key.
    """
    row, before = change.row, change.before
    values = [_json(value) for value in row.values_]
    old = None if before is None else [[_json(value) for value in before.values_], before.count]
    return [
        change.view,
        change.op,
        [list(row.columns), *_types(row)],
        values,
        row.count,
        old,
        change.microseconds,
        row.times,
        document,
        None if row.key_ is None else [_json(value) for value in row.key_],
        change.origin[0] if isinstance(change.origin, tuple) else change.origin,
        change.final,
    ]


def _types(row: Row) -> tuple[Sequence[str], Sequence[str]]:
    columns = typed_columns(row.columns)
    return columns.types, columns.key_types


def _values(saved: Iterable[Any]) -> Values:
    return tuple(restored_value(value) for value in saved)


def agreed(each: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    """Return the rows without a key that all buckets rule out that could produce them, one of them
    only now.

    Engines that have ruled out such rows report with every batch; a bucket that has not ruled out a
    row may be silent. Where time alone can rule them out, it passes for all buckets together
    (`Instance.may_void`).
    """
    fresh: dict[str, tuple[list[Any], int]] = {}
    for change, sharers in (void for one in each for void in one["void"]):
        key = json.dumps(change[:4])
        if key not in fresh or change[6] > fresh[key][0][6]:  # the last bucket decides the time
            fresh[key] = change, sharers
    for key, (change, sharers) in fresh.items():
        if sum(key in one["voided"] for one in each) == sharers:
            yield change


def read_changes(written: Iterable[Sequence[Any]]) -> Iterator[Change]:
    """Return the changes that `plain_change` wrote; a document's key is the row's first column."""
    last: Sequence[Any] = ()
    named = Columns(())
    for view, op, columns, values, count, old, time, times, document, key, by, final in written:
        known = None if key is None else _values(key)
        if columns != last:  # most changes have the columns of the one before
            last, named = columns, Columns(*columns)
        row = Row(named, _values(values), count, known)
        before = None if old is None else Row(named, _values(old[0]), old[1], known)
        if document:
            row = headed_row(row, DOCUMENT_COLUMN.name, document)
            before = None if before is None else headed_row(before, DOCUMENT_COLUMN.name, document)
        origin: From = CLOCK if by == CLOCK else (by, None) if isinstance(by, str) else None
        made = Change(op, row, before, view, time, origin=origin, final=final)
        yield timed_change(made, times)


def renumbered(changes: Iterable[Change], start: int) -> list[Change]:
    """Return changes in the order of view, time, operation and row, each with the next position
    after `start`. Changes of the clock come before those that updates cause at the same time.
    """
    ordered = sorted(changes, key=_in_order)
    for position, change in enumerate(ordered, start + 1):
        change.position = position
    return ordered


def _in_order(change: Change) -> tuple[str, int, bool, int, str, str]:
    row = change.row
    rank, is_caused = _OPS.index(change.op), change.origin != CLOCK
    time = change.microseconds
    return change.view or "", time, is_caused, rank, repr(row.values_), repr(row.key_)


def _json(value: Any) -> Any:
    """Return a value for JSON: an id as text, a time as microseconds, the rest with its type."""
    return saved_value(_with_texts(value))


def _with_texts(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_with_texts(one) for one in value)
    return str(value) if isinstance(value, Id) else value
