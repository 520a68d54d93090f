"""Envelopes: changes in the formats of other systems.

    native       {"id": ..., "batch": 3, "view": "late", "op": "insert", "key": [...], ...}
    debezium     {"before": null, "after": {...}, "op": "c", "ts_ms": ..., "source": {...}}
    feldera      {"insert": {...}} or {"delete": {...}}; an updated row is both
    subscribe    {"mz_timestamp": 3, "mz_progressed": false, "mz_diff": 1, ...row}, and after each
                 batch {"mz_timestamp": 4, "mz_progressed": true}: nothing before 4 will follow
    cloudevents  {"specversion": "1.0", "id": ..., "type": "axlog.change.insert", "data": native}

Every change has an id of the run, the batch and its position in the batch. A repeated batch has the
same ids, by which receivers drop duplicates. `never` changes no table, so only `native` and
`cloudevents` include it. Timestamps of `subscribe` are batch numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from axlog.views.change import Change, Row

Written = dict[str, Any]


class Envelope(Protocol):
    """Writes changes; `first` is the number in the batch of the first one."""

    def __call__(
        self, run: str, batch: int, changes: Sequence[Change], first: int = 0
    ) -> Iterator[Written]: ...


_OPS = {"insert": "c", "update": "u", "delete": "d"}


def change_id(run: str, batch: int, at: int) -> str:
    """Return the id of a change: its position in a run."""
    return f"{run or 'run'}-{batch}-{at}"


def logged(batch: int, change: Change) -> Written:
    """Return a change in axlog's own format: the batch and the envelope (`Change.to_dict`)."""
    return {"batch": batch, **change.to_dict()}


def native(run: str, batch: int, changes: Sequence[Change], first: int = 0) -> Iterator[Written]:
    for at, change in enumerate(changes, first):
        yield {"id": change_id(run, batch, at), **logged(batch, change)}


def debezium(run: str, batch: int, changes: Sequence[Change], first: int = 0) -> Iterator[Written]:
    for at, change in enumerate(changes, first):
        if change.op == "never":
            continue
        lost, gained = lost_and_gained(change)
        milliseconds = change.microseconds // 1000
        yield {
            "before": None if lost is None else lost.to_dict(),
            "after": None if gained is None else gained.to_dict(),
            "op": _OPS[change.op],
            "ts_ms": milliseconds,
            "source": {
                "connector": "axlog",
                "name": run,
                "table": change.view,
                "ts_ms": milliseconds,
                "sequence": change_id(run, batch, at),
            },
        }


def feldera(run: str, batch: int, changes: Sequence[Change], first: int = 0) -> Iterator[Written]:
    for change in changes:
        lost, gained = lost_and_gained(change)
        if lost is not None:
            yield {"delete": lost.to_dict()}
        if gained is not None:
            yield {"insert": gained.to_dict()}


def subscribe(run: str, batch: int, changes: Sequence[Change], first: int = 0) -> Iterator[Written]:
    for change in changes:
        for row, diff in zip(lost_and_gained(change), (-1, 1), strict=True):
            if row is not None:
                marks = {"mz_timestamp": batch, "mz_progressed": False, "mz_diff": diff}
                yield {**marks, **row.to_dict()}
    yield {"mz_timestamp": batch + 1, "mz_progressed": True}


def cloudevents(
    run: str, batch: int, changes: Sequence[Change], first: int = 0
) -> Iterator[Written]:
    for at, written in enumerate(native(run, batch, changes, first), first):
        yield {
            "specversion": "1.0",
            "id": change_id(run, batch, at),
            "source": f"urn:axlog:{run or 'run'}",
            "type": f"axlog.change.{written['op']}",
            "subject": written["view"],
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "datacontenttype": "application/json",
            "data": written,
        }


ENVELOPES: dict[str, Envelope] = {
    "native": native,
    "debezium": debezium,
    "feldera": feldera,
    "subscribe": subscribe,
    "cloudevents": cloudevents,
}


def lost_and_gained(change: Change) -> tuple[Row | None, Row | None]:
    """Return the row that a change removes and the row that it adds."""
    if change.op == "update":
        return change.before, change.row
    if change.op == "delete":
        return change.row, None
    return None, change.row if change.op == "insert" else None
