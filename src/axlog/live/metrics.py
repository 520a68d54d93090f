"""Metrics and health of documents: samples, and how far each view lags behind.

All values are read on request, under the document's lock, so a document that is not monitored pays
nothing. A document applies every update to its views before the update's call returns. Views
therefore lag only if they are deferred (`view.defer()`), and readers of views lag only if
publishers are slow or a store is broken.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from axlog.errors import QueryError
from axlog.live.document import Document
from axlog.live.durable import DurableDocument
from axlog.live.internals import maintained
from axlog.live.outbox import Outbox
from axlog.reporting import Health, Sample, State, ViewHealth, counter, gauge
from axlog.views.counting.state_codec import size_of_tables
from axlog.views.family import Member
from axlog.views.family_names import GENERATION, is_pilot, shown_with
from axlog.views.view import MaintainedView


def document_samples(name: str, doc: Document) -> Iterator[Sample]:
    """Yield the metrics of one document."""
    with maintained(doc).lock:
        found = [*_streams(name, doc), *_views(name, doc)]
        joins = size_of_tables(maintained(doc).engine)
        nodes = len(maintained(doc).tree)
    yield from found
    yield gauge("axlog_document_nodes", nodes, "Nodes of the document", document=name)
    yield gauge("axlog_state_rows", joins, "Rows kept by joins", document=name)
    yield gauge(
        "axlog_clock_seconds",
        maintained(doc).tree.clock / 1_000_000,
        "The document's clock",
        document=name,
    )
    yield gauge(
        "axlog_dead_letters", len(doc.dead_letters), "Dead letters that are kept", document=name
    )
    if isinstance(doc, DurableDocument):
        yield from store_samples(name, doc)


def _streams(document: str, of: Document) -> Iterator[Sample]:
    for stream, status in of.streams().items():
        at = {"document": document, "stream": stream}
        yield counter("axlog_updates_total", status.messages, "Updates that came", **at)
        yield counter(
            "axlog_updates_dropped_total", status.dropped, "Updates that no view wanted", **at
        )
        yield counter(
            "axlog_updates_refused_total", status.refused, "Updates that could not be taken", **at
        )
        yield gauge("axlog_stream_ended", status.ended, "1 once the stream has ended", **at)


@dataclass(slots=True)
class _Totals:
    """The figures of one view, or the sums of the members of a family."""

    aside: int = 0
    rows: int = 0
    changes: int = 0
    never: int = 0
    deferred: int = 0
    members: int | None = None  # of a family

    def add(self, view: MaintainedView) -> None:
        """Add the figures of a view."""
        is_aside = view.broken is not None
        self.aside += is_aside
        self.rows += 0 if is_aside else _size(view)
        self.changes += view.position % GENERATION
        self.never += view.never
        self.deferred += view.is_deferred


def _views(document: str, of: Document) -> Iterator[Sample]:
    """Yield the metrics of views. Members of a family are summed under its name."""
    totals: dict[str, _Totals] = {}
    for name, view in _needed(of):  # a pilot says that there is a family
        found = totals.setdefault(shown_with(name), _Totals())
        if name != shown_with(name):
            found.members = (found.members or 0) + (not is_pilot(name))
        if view is not None:
            found.add(view)
    for name, (changes, never) in maintained(of).families.left.items():
        if name in totals:  # counters do not fall
            totals[name].changes += changes
            totals[name].never += never
    for name, one in totals.items():
        at = {"document": document, "view": name}
        yield gauge("axlog_view_aside", one.aside, "1 once its rows were too many", **at)
        yield gauge("axlog_view_rows", one.rows, "Rows of the view", **at)
        yield counter("axlog_view_changes_total", one.changes, "Changes emitted", **at)
        yield counter("axlog_view_never_total", one.never, "Rows reported as never", **at)
        yield gauge("axlog_view_deferred", one.deferred, "1 if it follows when read", **at)
        if one.members is not None:
            yield gauge("axlog_family_members", one.members, "Members of a family", **at)


def _needed(of: Document) -> Iterator[tuple[str, MaintainedView | None]]:
    """Yield the views by name. None: a member that nothing has needed yet."""
    for name, view in maintained(of).families.every_view():
        if isinstance(view, Member):
            is_needed = view.view is not None or view.family.broken is not None
            yield name, view.opened() if is_needed else None
        else:
            yield name, view


def _size(view: MaintainedView) -> int:
    """Return the number of rows. A deferred view is not brought up to date for it."""
    return view.maintainer.size() if view.is_deferred else len(view)


def store_samples(name: str, doc: DurableDocument) -> Iterator[Sample]:
    """Yield the metrics of a durable document's store and publishers."""
    log = doc._log
    yield counter("axlog_store_records_total", doc.record, "Records in the log", document=name)
    yield gauge("axlog_store_whole", doc.is_whole, "1 while it takes updates", document=name)
    if log is not None:
        yield counter(
            "axlog_store_written_bytes_total",
            log.written,
            "Bytes written",
            document=name,
        )
        yield gauge(
            "axlog_store_unsynced",
            log.next - 1 - log.synced,
            "Records not synced yet",
            document=name,
        )
        yield from log.syncs.samples("axlog_store_sync_seconds", "Syncs of the log", document=name)
    yield from doc.snapshots.samples(
        "axlog_store_snapshot_seconds", "From the beginning of a snapshot to its end", document=name
    )
    yield from doc.pauses.samples(
        "axlog_store_pause_seconds", "Pauses of maintenance for a snapshot", document=name
    )
    yield counter(
        "axlog_store_snapshot_failures_total", doc.failed_snapshots, "Snapshots that failed",
        document=name,
    )  # fmt: skip
    for box in list(doc.outboxes.values()):
        yield from _publisher(name, box)


def _publisher(document: str, box: Outbox) -> Iterator[Sample]:
    at = {"document": document, "publisher": box.name}
    yield gauge("axlog_publisher_waiting", box.waiting, "Changes that it has not taken", **at)
    yield gauge("axlog_publisher_lag_seconds", box.lag, "Age of the oldest of them", **at)
    yield counter("axlog_publisher_failures_total", box.failures, "Batches that failed", **at)
    yield counter(
        "axlog_publisher_blocked_seconds_total", box.blocked, "Feeding waited for room", **at
    )


def documents_samples(documents: Mapping[str, Document]) -> Iterator[Sample]:
    """Yield the metrics of several documents."""
    for name, doc in documents.items():
        yield from document_samples(name, doc)


# Health -------------------------------------------------------------------------------------------


def document_health(name: str, doc: Document) -> Health:
    """Return how far each view of a document lags behind, and why."""
    failures: list[str] = []
    if isinstance(doc, DurableDocument) and not doc.is_whole:
        failures.append(f"{name}: {doc.trouble or 'the store is closed'}")
    with maintained(doc).lock:
        boxes = list(doc.outboxes.values()) if isinstance(doc, DurableDocument) else []
        views = [
            _view_health(name, view, [box for box in boxes if box.view == view.name])
            for view_name, view in _needed(doc)
            if view is not None and not is_pilot(view_name)
        ]
    return Health(tuple(views), tuple(failures))


def _view_health(document: str, view: MaintainedView, boxes: list[Outbox]) -> ViewHealth:
    broken = view.broken
    reasons = [] if broken is None else [put_aside(broken)]
    updates = view.owed
    if updates:
        reasons.append(f"the view is deferred: {updates} updates since it was read")
    late = [box for box in boxes if box.waiting]
    for box in late:
        error = f": {box.last_error}" if box.last_error else ""
        reasons.append(f"publisher {box.name} has yet to take {box.waiting} changes{error}")
    is_failing = any(box.last_error for box in late)
    state = State.DEGRADED if is_failing or updates else State.OK
    return ViewHealth(
        document,
        view.name,
        state if broken is None else State.FAILED,
        view.position,
        updates,
        sum(box.waiting for box in late),
        max((box.lag for box in late), default=0.0),
        tuple(reasons),
    )


def put_aside(broken: QueryError) -> str:
    """Return why a view is set aside, and the remedy."""
    return f"the view was set aside: {broken.message}; unwatch it and watch it again"


# Process ------------------------------------------------------------------------------------------

_STARTED = time.time()


def process_samples() -> Iterator[Sample]:
    """Yield memory, processor and start time of this process, under the usual metric names."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield counter("process_cpu_seconds_total", used.ru_utime + used.ru_stime, "Processor time used")
    yield gauge("process_resident_memory_bytes", resident(), "Memory that is in use")
    yield gauge("process_start_time_seconds", _STARTED, "When the process began")


def resident() -> int:
    """Return the resident memory in bytes.

    Where the system does not report it, return the peak instead.
    """
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
