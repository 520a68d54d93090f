"""Metrics and health of a run.

`RunnerReport` reads an embedded run: its documents, sources, sinks and checkpoint. `ProgressReport`
has only the progress that a run reports, and serves runs on Spark as well.

A view is behind if updates wait for a slower source (they are held back for the order of times,
docs/meaning.md), if a source of its document is unreachable, if a sink has not accepted a batch of
its changes, or if a view that feeds one of its streams is behind. Each view also has its truth in
the whole system (`system_truth.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol

from axlog.errors import AxlogError
from axlog.live.internals import maintained
from axlog.live.metrics import document_samples, process_samples, put_aside
from axlog.query.truth import Truth
from axlog.reporting import Health, Sample, State, ViewHealth, counter, gauge
from axlog.runtime.embedded import Runner
from axlog.runtime.instances import Instances
from axlog.runtime.progress import Progress
from axlog.runtime.source_reader import Feed
from axlog.runtime.system_truth import LiveTruth, Verdict
from axlog.runtime.unreachable import Troubles
from axlog.views.family_names import is_pilot

_MOST_DOCUMENTS = 20
"""Up to this many documents of a `document_key`, each has its own samples."""


class Report(Protocol):
    """A running component that reports to operators; any thread may call it."""

    def samples(self) -> Iterator[Sample]: ...

    def health(self) -> Health: ...


class RunnerReport:
    """An embedded run."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._truth = LiveTruth(runner.model, runner.instances, runner.system)

    # Samples --------------------------------------------------------------------------------------

    def samples(self) -> Iterator[Sample]:
        """Yield the samples of the run, of its documents and of the process."""
        runner, now = self._runner, time.monotonic()
        yield from process_samples()
        yield from progress_samples(runner.progress)
        yield gauge("axlog_rows", runner.progress.rows, "Rows of all views")
        yield gauge("axlog_state_nodes", runner.progress.state, "Nodes of all documents")
        yield from runner.taking.samples(
            "axlog_batch_seconds", "From the decision of a batch to its delivery"
        )
        yield from runner.saving.samples(
            "axlog_checkpoint_snapshot_seconds", "Snapshots of the documents in the checkpoint"
        )
        for feed in runner.feeds:
            yield from _source(feed, now)
        troubles = runner.patience.troubles
        for sink in runner.sinks:
            known = troubles.get(sink.name)
            yield gauge("axlog_sink_lag_seconds", _since(known, now),
                        "Seconds since it became unreachable", sink=sink.name)  # fmt: skip
            yield counter("axlog_sink_errors_total", runner.patience.errors[sink.name],
                          "Failed attempts", sink=sink.name)  # fmt: skip
        for name, one in runner.instances.items():
            yield from _documents(name, one)

    # Health ---------------------------------------------------------------------------------------

    def health(self) -> Health:
        """Return how far each view is behind, and why."""
        runner = self._runner
        failures = () if runner.failure is None else (runner.failure,)
        verdicts = self._verdicts()
        views = [
            self._view(name, view, one, verdicts)
            for name, one in runner.instances.items()
            for view in list(one.queries)
        ]
        return Health(tuple(views), failures, tuple(self._added_set_aside()))

    def _added_set_aside(self) -> Iterator[str]:
        """Return added views that were set aside: no failure of the run."""
        for name, one in self._runner.instances.items():
            for document in list(one.documents.values()):
                for view, broken in maintained(document).families.set_aside():
                    if view not in one.queries and not is_pilot(view):
                        yield f"view {name}/{view}: {put_aside(broken)}"

    def _verdicts(self) -> dict[str, Verdict]:
        try:
            return self._truth.get()[1]
        except (AxlogError, RuntimeError):  # a document was made or dropped meanwhile
            return {}

    def _view(
        self, document: str, view: str, one: Instances, verdicts: dict[str, Verdict]
    ) -> ViewHealth:
        runner, now = self._runner, time.monotonic()
        feeds = [feed for feed in runner.feeds if feed.plan.document in self._feeding(document)]
        reasons, late = [], []
        held, oldest = _held(feeds, now)
        if held:
            slow = [feed.plan.name for feed in feeds if feed.is_silent]
            waited = f"for {', '.join(slow)}" if slow else "for their batch"
            reasons.append(f"{held} updates wait {waited}")
        for feed in feeds:
            if feed.troubles is not None:
                late.append(feed.troubles)
                reasons.append(f"source {feed.plan.name} is unreachable: {feed.troubles.error}")
        undelivered = 0
        for sink in runner.sinks:
            troubles = runner.patience.troubles.get(sink.name)
            if troubles is not None and one.full[view] in sink.views:
                undelivered += 1
                late.append(troubles)
                reasons.append(f"sink {sink.name} is unreachable: {troubles.error}")
        oldest = max([oldest, *(now - each.since for each in late)])
        documents = [] if view in one.members.families else list(one.documents.values())
        position = sum(w.views[view].position for w in documents)
        state = State.DEGRADED if late else State.OK
        broken = [error for w in documents if (error := w.views[view].broken)]
        if broken:
            state = State.FAILED
            reasons.append(put_aside(broken[0]))
        verdict = verdicts.get(one.full[view], Verdict(None))
        return ViewHealth(
            document, view, state, position, held, undelivered, oldest, tuple(reasons),
            None if verdict.truth is None else verdict.truth.value,
            verdict.reasons if verdict.truth is Truth.NEVER else (),
        )  # fmt: skip

    def _feeding(self, document: str) -> set[str]:
        """Return the document, and those whose views feed its streams."""
        found, left = {document}, [document]
        while left:
            name = left.pop()
            for wire in self._runner.system.wires:
                if wire.document == name and wire.origin not in found:
                    found.add(wire.origin)
                    left.append(wire.origin)
        return found


def _documents(name: str, one: Instances) -> Iterator[Sample]:
    count = len(one.documents)
    yield gauge("axlog_documents", count, "Documents, one per key", document=name)
    if one.is_single:
        yield from document_samples(name, one.documents[""])
    elif count <= _MOST_DOCUMENTS:
        for key, document in list(one.documents.items()):
            yield from document_samples(f"{name}/{key}", document)


def _source(feed: Feed, now: float) -> Iterator[Sample]:
    at = {"source": feed.plan.name}
    yield counter("axlog_source_updates_total", feed.came, "Updates read", **at)
    yield counter("axlog_source_errors_total", feed.errors, "Failed attempts", **at)
    yield gauge("axlog_source_waiting", len(feed.waiting()), "Updates held back", **at)
    yield gauge(
        "axlog_source_lag_seconds",
        _since(feed.troubles, now),
        "Seconds since it became unreachable",
        **at,
    )


def _held(feeds: list[Feed], now: float) -> tuple[int, float]:
    """Return how many updates wait, and the age of the oldest."""
    waiting = [one for feed in feeds for one in feed.waiting()]
    oldest = max((now - one.read for one in waiting if one.read), default=0.0)
    return len(waiting), oldest


def _since(troubles: Troubles | None, now: float) -> float:
    return 0.0 if troubles is None else now - troubles.since


def progress_samples(progress: Progress) -> Iterator[Sample]:
    """Yield the numbers of a run from its progress."""
    yield counter("axlog_batches_total", progress.batch, "Batches")
    yield counter("axlog_messages_total", progress.messages, "Updates processed in batches")
    yield counter("axlog_kept_total", progress.kept, "Updates that some view may need")
    yield counter("axlog_refused_total", progress.refused, "Rejected updates")
    yield counter("axlog_changes_total", progress.changes, "Changes of all views")
    yield counter("axlog_never_total", progress.never, "Never changes")
    if progress.possible is not None:
        yield gauge("axlog_possible", progress.possible, "Rows that may still come")
    yield gauge("axlog_held", progress.held, "Updates held back for a slower source")
    for one in progress.lagging:
        yield gauge(
            "axlog_lagging_seconds",
            one.seconds,
            "Seconds since it became unreachable",
            connector=one.name,
        )


class ProgressReport:
    """A run that is known by its progress only."""

    def __init__(self, show: Callable[[Progress], None] | None = None) -> None:
        self._last = Progress()
        self._show = show
        self.failure: str | None = None

    def __call__(self, progress: Progress) -> None:
        """Store the latest progress, and pass it on."""
        self._last = progress
        if self._show is not None:
            self._show(progress)

    def samples(self) -> Iterator[Sample]:
        """Yield the samples of the progress and of the process."""
        yield from process_samples()
        yield from progress_samples(self._last)
        words = "Rows of all views: inserted less deleted since the start of the run"
        yield gauge("axlog_rows", self._last.rows, words)
        yield gauge("axlog_state_bytes", self._last.state, "Bytes of the state of all engines")

    def health(self) -> Health:
        """Return `degraded` while something is unreachable."""
        late = tuple(
            f"{one.name} is unreachable for {one.seconds} s: {one.error}"
            for one in self._last.lagging
        )
        failures = [f"view {view}: {why}" for view, why in self._last.set_aside.items()]
        if self.failure is not None:
            failures.append(self.failure)
        return Health((), tuple(failures), late)
