"""The embedded runner: a pipeline in this process, from its sources to its sinks (`axlog run`).

A round reads new updates, orders them (`order.py`), and forms batches. A batch is written to the
checkpoint and applied to the documents, and its net changes are delivered to all sinks; then the
next batch is decided. Batch 0 is the initial rows of the documents. An interrupted run resumes
where it was: inputs are replayed from the checkpoint, the batch that may not have been delivered is
delivered again, and sinks skip what they have (law 7 of docs/design.md).

An unreachable source or sink is retried with growing pauses, and shown as lagging; `once` gives up
after a few attempts. Views feed other documents' streams within the batch (`systems.py`); channels
are sources and sinks like others (`connections.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from logging import DEBUG, ERROR, INFO, WARNING, getLogger
from typing import Any

from axlog import telemetry
from axlog.connect.channels.protocol import Channel
from axlog.connect.channels.streams import ChannelSource
from axlog.connect.locations import needed_path
from axlog.connect.protocol import Refusal
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError, PipelineError
from axlog.pipeline.model import PipelineModel
from axlog.reporting import Durations, report
from axlog.runtime.checkpoint import Checkpoint, Input
from axlog.runtime.compatibility import Fit, fingerprint, fit
from axlog.runtime.connections import (
    OpenSink,
    as_changes,
    open_channels,
    open_sinks,
    source_plans,
)
from axlog.runtime.family_members import PARAMETERS
from axlog.runtime.family_tables import FamilyTable
from axlog.runtime.instances import TIME, Instances
from axlog.runtime.order import BODY, EARLIEST, PLACE, Item, Order, Place
from axlog.runtime.order import TIME as AT
from axlog.runtime.progress import Outlooks, Progress, kept, state
from axlog.runtime.source_reader import Feed, source_of
from axlog.runtime.systems import System
from axlog.runtime.unreachable import TRIES, Interrupted, Patience, lagging_of
from axlog.runtime.upstream_filters import narrow_subscription
from axlog.views.change import Change

_events = getLogger("axlog.pipeline")

_COMMIT_EVERY = 20
_COUNTED = ("messages", "refused", "rows", "never", "changes")
"""The parts of the progress that survive a restart."""
_DEADLINES = 0.25
"""Seconds between two checks of deadlines, with a wall clock."""
_BETWEEN = 0.01
"""The shortest pause between rounds that find nothing."""


class Runner:
    """A running pipeline in this process."""

    def __init__(
        self,
        model: PipelineModel,
        *,
        once: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
        wall: Callable[[], float] = time.time,
        channels: Mapping[str, Channel] | None = None,
    ) -> None:
        """`wall`: the wall clock, for `settings: {clock: wall}`; tests give a fake one. `channels`:
        open channels to use in place of those that the model describes.
        """
        self.model = model
        self._given_channels = channels
        self._wall = wall
        self.system = System(model)
        self.once = once
        self.progress = Progress()
        self._on_progress = on_progress
        self.on_refused: Callable[[Refusal], None] | None = None  # called with rejected messages
        self._outlooks = Outlooks()
        self._stopping = threading.Event()
        self._started = time.monotonic()
        self.patience = Patience(once, self._stopping, self._report)
        self.failure: str | None = None  # why it no longer runs
        self.saving = Durations()  # snapshots
        self.taking = Durations()  # batches, from the decision to their delivery
        now = fingerprint(model)
        directory = model.settings.checkpoint
        place = None if directory is None else model.directory / needed_path(directory)
        self.checkpoint = Checkpoint(place)
        try:
            self._open(now)
        except BaseException:
            self.checkpoint.close()
            raise

    # Starting -------------------------------------------------------------------------------------

    def _open(self, now: dict[str, object]) -> None:
        model = self.model
        then = self.checkpoint.about("pipeline")
        fitted = None if then is None else fit(then, now)
        self._saved = self._usable_snapshot(fitted)
        found = self.checkpoint.saved()
        parts = {} if self._saved is None else found
        system = (self._saved or {}).get("system", {"gone": ()})
        self.instances = {
            name: Instances(model, name, parts.get(name), model.own_names(name, system["gone"]))
            for name in model.documents
        }
        shapes = [shape for one in self.instances.values() for shape in one.shapes()]
        channels = open_channels(model) if self._given_channels is None else self._given_channels
        self.channels = channels
        self.sinks: list[OpenSink] = open_sinks(model, self.checkpoint.run, shapes, channels)
        self._needed = {view for sink in self.sinks for view in sink.views}
        plans = list(source_plans(model, channels))
        self._document_of = {plan.name: plan.document for plan in plans}
        self._document_of |= {f"{name}/clock": name for name in model.documents}
        self._looked = 0.0
        self._orders = {name: Order(hold=None) for name in model.documents}
        self._places: dict[str, Place] = {}  # of the last applied update, by source and partition
        positions = self.checkpoint.positions()
        horizons = {name: one.horizon for name, one in self.instances.items()}
        self.feeds = [
            Feed(plan, self._orders[plan.document], rank, positions.get(plan.name),
                 horizons[plan.document])
            for rank, plan in enumerate(plans)
        ]  # fmt: skip
        self._tables = [
            FamilyTable(name, view, one)
            for name, one in self.instances.items()
            for view in one.members.families
        ]
        self._document_of |= {table.source: table.document for table in self._tables}
        self._refused: list[Refusal] = []
        self._reads: dict[str, Any] = {}  # the last span of each source, for traces
        self.batch = 0
        if self._saved is None:
            self.system.begin(self.instances)
        else:  # the initial rows of the documents have been emitted
            self.system.restore(system)
        self._since = 0  # messages since the last snapshot
        initial = self.all_rows()
        if self._saved is None:
            self.progress.count(initial)
        else:
            self.batch = self._saved["batch"]
            for name, number in self._saved["counted"].items():
                setattr(self.progress, name, number)
        if fitted is None:
            self.checkpoint.begin(now)
            self._deliver(0, initial)
            return
        feeds = {feed.plan.name: feed for feed in self.feeds}
        self._places = self.checkpoint.places()
        for source, last in self._places.items():
            if source_of(source) in feeds:
                feeds[source_of(source)].resume(source, last)
        for one, place in self.checkpoint.waiting():
            feeds[source_of(one.source)].restore(one, place)
        self._restore(initial)
        if fitted.added:
            self._fill([model.full_name(*view) for view in fitted.added], now)
        elif not fitted.is_exact:
            self.checkpoint.renew(now)

    def _usable_snapshot(self, fitted: Fit | None) -> dict[str, Any] | None:
        """Return the state of the snapshot to start from; None to replay the whole input."""
        saved: dict[str, Any] | None = self.checkpoint.about("saved")
        if fitted is None or saved is None:
            return None
        keeps = {name: self.model.settings_of(name).keep for name in self.model.documents}
        changed = [f"keep of {name}" for name in keeps if keeps[name] != saved["keep"][name]]
        changed += [
            f"the view {document}.{view} is new, and messages before it were not kept"
            for document, view in fitted.added
            if saved["keep"][document] == "needed"
        ]
        let_go = set(saved.get("system", {}).get("gone", ()))
        wanted = self.model.delivered_views() - set(saved.get("told", ()))
        changed += [f"the view {full} was dropped" for full in sorted(let_go & wanted)]
        fresh = {self.model.full_name(*view) for view in fitted.added}
        changed += [
            f"the view {wire.view} is new, and feeds {wire.document}/{wire.stream}"
            for wire in self.system.wires
            if wire.view in fresh
        ]
        if not changed:
            return saved
        if self.checkpoint.about("dropped") is None:
            return None
        raise PipelineError(
            "AX855",
            "the checkpoint cannot be resumed: " + "; ".join(changed),
            advice="use another checkpoint; settings: {retain: all} would have kept the needed "
            "input",
        )

    def _save_if_due(self, messages: int) -> None:
        """Take a snapshot of the documents from time to time, to shorten restarts."""
        self._since += messages
        settings = self.model.settings
        if self._since < settings.snapshot or settings.checkpoint is None:
            return
        self._since = 0
        progress = self.progress
        known = {
            "counted": {name: getattr(progress, name) for name in _COUNTED},
            "keep": {name: self.model.settings_of(name).keep for name in self.model.documents},
            "system": self.system.state(self.instances),
            "told": sorted(self.model.delivered_views()),
        }
        began = time.monotonic()
        parts = {name: one.saved() for name, one in self.instances.items()}
        self.checkpoint.save(self.batch, parts, known, retains=settings.retain == "all")
        self.saving.note(time.monotonic() - began)
        report(_events, INFO, "snapshot", seq=self.batch,
               seconds=round(time.monotonic() - began, 3))  # fmt: skip

    def all_rows(self) -> list[Change]:
        """The present rows of all instances, each as an insert."""
        return [change for one in self.instances.values() for change in one.rows()]

    def _restore(self, initial: Sequence[Change]) -> None:
        """Bring documents and sinks to the point of the interruption."""
        last, delivered = self.checkpoint.last or 0, self.checkpoint.delivered
        if delivered is None:
            self._deliver(0, initial)
        filling = self.checkpoint.about("filling") or {"batch": -1, "views": []}
        for number, inputs, odd in self.checkpoint.batches(after=self.batch):
            changes, refused = self._feed(inputs)
            refused = [*odd, *refused]
            self._count(inputs, changes, refused)
            if number == last and (delivered is None or delivered < last):
                if number == filling["batch"]:
                    wanted = set(filling["views"])
                    changes = [row for row in self.all_rows() if row.view in wanted]
                self._deliver(number, [*changes, *as_changes(refused, number)])
            self.batch = number

    def _fill(self, views: Iterable[str], now: dict[str, object]) -> None:
        """Write the current rows of added views to their sinks."""
        wanted = set(views)
        self.checkpoint.fill(self.batch + 1, sorted(wanted), now)
        self.batch += 1
        self._deliver(self.batch, [row for row in self.all_rows() if row.view in wanted])

    # Running --------------------------------------------------------------------------------------

    def run(self, seconds: float | None = None) -> Progress:
        """Run until stopped, for a time, or (`once`) until the sources are at their ends."""
        report(_events, INFO, "running", seq=self.batch, documents=", ".join(self.instances))
        try:
            self._run(None if seconds is None else time.monotonic() + seconds)
        except Interrupted as error:  # the batch stays in the checkpoint
            report(_events, WARNING, "stopped", seq=self.batch, error=error.message)
            if self.model.settings.checkpoint is None:
                raise  # nothing would deliver it
        except BaseException as error:
            self.failure = error.message if isinstance(error, AxlogError) else repr(error)
            report(_events, ERROR, "failed", seq=self.batch, error=self.failure)
            raise
        return self.progress

    def _run(self, until: float | None) -> None:
        while not self._stopping.is_set():
            began = time.monotonic()
            if until is not None and began >= until:
                break
            worked = self.round()
            if self.once and not worked and self.is_done:
                break
            self._report()
            if not worked:
                pause = self.model.settings.trigger - (time.monotonic() - began)
                self._stopping.wait(_BETWEEN if self.once else max(_BETWEEN, pause))
        self._report()

    def stop(self) -> None:
        """Finish the current batch and stop. May be called from a signal handler or another thread.

        Nothing more is read. Input that was read and not decided is read again by the next run. A
        batch that a sink did not accept in time is in the checkpoint, and the next run delivers it.
        """
        self._stopping.set()

    def close(self) -> None:
        """Close everything; delivered batches are recorded."""
        self.checkpoint.deliver(self.batch)  # a batch decided after it is repeated
        self._commit()
        report(_events, INFO, "closed", seq=self.batch)
        for feed in self.feeds:
            feed.close()
        for table in self._tables:
            table.close()
        for sink in self.sinks:
            sink.sink.close()
        for channel in self.channels.values():
            channel.close()
        self.checkpoint.close()

    def round(self) -> bool:
        """Read new updates and form one batch; return whether there was anything."""
        self._let_go()
        now = time.monotonic()
        most = self.model.settings.batch
        came = 0
        for feed in self.feeds:
            if feed.has_room(most):
                began = telemetry.now()
                number, refused = feed.read(self.model, most, now)
                if number:
                    self._reads[feed.plan.name] = telemetry.finished(
                        "axlog.read", began, source=feed.plan.name, updates=number
                    )
                came += number
                self._refused += refused
                if self.once and feed.troubles is not None and feed.troubles.tries >= TRIES:
                    raise PipelineError(
                        "AX858", f"{feed.plan.name}: {feed.troubles.error}",
                        advice="check that it is available; without --once it is retried",
                    )  # fmt: skip
            feed.rest(ends=self.once)
        inputs: list[Input] = list(self._table_inputs(now))
        for order in self._orders.values():
            released = order.release(most - len(inputs), self._is_overdue(now))
            inputs += map(_placed, released)
            self._places |= {item[BODY].source: (item[AT], item[PLACE]) for item in released}
        if self.model.settings.clock == "wall" and now - self._looked >= _DEADLINES:
            self._looked = now
            inputs += self._passed(self._wall() - self.model.settings.hold)
        if not inputs and not self._refused:
            return came > 0
        self._take(inputs)
        return True

    def _is_overdue(self, now: float) -> Callable[[Item], bool]:
        """Return whether an update has waited for the time of `hold`.

        With `once` a source at its end is done, and the others wait for all sources without a
        bound. Otherwise it may continue, and delays the others for the bounded time.
        """
        until = float("-inf") if self.once else now - self.model.settings.hold
        return lambda item: item[BODY].read <= until

    def _table_inputs(self, now: float) -> Iterator[Input]:
        """Return inputs that add and remove members of families, where their tables changed."""
        for table in self._tables:
            update = table.look(now)
            if self.once and table.troubles is not None and table.troubles.tries >= TRIES:
                raise PipelineError("AX858", f"{table.source}: {table.troubles.error}")
            if update is not None:
                yield Input(table.source, update, None)

    def _passed(self, wall: float) -> Iterator[Input]:
        """Return inputs that advance the time, for documents in which time alone changes something:
        a deadline has passed, or a row appears or disappears (`now`).

        Updates held back for a slower stream come first: time advances after them.
        """
        for name, one in self.instances.items():
            waiting = [item[AT] for item in self._orders[name].pending]
            passed = min([round(wall * 1e6), *waiting])
            due = one.due
            if due is not None and due < passed:
                origin = f"{name}/clock"
                yield Input(origin, StreamUpdate("", TIME, "", None, origin), passed)

    def _take(self, inputs: list[Input]) -> None:
        """Decide, apply and deliver one batch."""
        number, began = self.batch + 1, time.monotonic()
        with telemetry.span("axlog.batch", self._links(inputs), batch=number, updates=len(inputs)):
            changes = self._process(number, inputs)
        self.batch = number
        self.taking.note(time.monotonic() - began)
        report(_events, DEBUG, "batch", seq=number, updates=len(inputs), changes=len(changes))
        self._save_if_due(len(inputs))
        if number % _COMMIT_EVERY == 0:
            self._commit()

    def _links(self, inputs: Sequence[Input]) -> list[Any]:
        """Return the spans of the reads that brought the updates of a batch."""
        if not telemetry.is_enabled():
            return []
        sources = {source_of(one.source) for one in inputs}
        return [read for name in sorted(sources) if (read := self._reads.get(name)) is not None]

    def _process(self, number: int, inputs: list[Input]) -> list[Change]:
        pending = [item for order in self._orders.values() for item in order.pending]
        waiting = [(item[BODY], item[AT]) for item in pending]
        positions = {feed.plan.name: feed.position for feed in self.feeds}
        refused_now, self._refused = self._refused, []
        with telemetry.span("axlog.checkpoint"):
            self.checkpoint.decide(number, inputs, waiting, self._places, positions, refused_now)
        with telemetry.span("axlog.apply"):
            changes, refused = self._feed(inputs)
        refused_now += refused
        self._count(inputs, changes, refused_now)
        if refused and self.model.settings.on_error == "stop":
            raise PipelineError(
                "AX407", f"{refused[0].origin}: {refused[0].error}",
                advice="settings: {on_error: dead-letter} skips such messages",
            )  # fmt: skip
        for one in refused_now:
            report(_events, WARNING, "refused", stream=one.stream, seq=number, origin=one.origin,
                   error=one.error)  # fmt: skip
        self._deliver(number, [*changes, *as_changes(refused_now, number)])
        return changes

    def _let_go(self) -> None:
        """Drop unneeded views and streams, and unsubscribe upstream."""
        needed = {
            view
            for sink in self.sinks
            if getattr(sink.sink, "is_needed", True)
            for view in sink.views
        }
        wired = {wire.view for wire in self.system.wires if wire not in self.system.closed}
        for view in self._needed - needed - wired:
            for one in self.instances.values():
                one.forget(view)
        self._needed = needed
        self.system.let_go(self.instances, needed)
        for feed in self.feeds:
            source, stream = feed.source, feed.plan.stream
            is_reached = feed.troubles is None  # otherwise it is retried when it is read
            if is_reached and isinstance(source, ChannelSource) and stream is not None:
                narrow_subscription(self.instances[feed.plan.document], stream, source)

    def _commit(self) -> None:
        """Acknowledge to sources what the checkpoint has, so that they need not keep it."""
        for feed in self.feeds:
            committed = getattr(feed.source, "committed", None)
            if committed is not None and self.model.settings.checkpoint is not None:
                with suppress(AxlogError):  # only housekeeping: errors are ignored
                    committed(self.checkpoint.positions().get(feed.plan.name))

    def _feed(self, inputs: Sequence[Input]) -> tuple[list[Change], list[Refusal]]:
        mine: dict[str, list[Input]] = {}
        for each in inputs:
            mine.setdefault(self._document_of[source_of(each.source)], []).append(each)
        changes, refused = self.system.feed(self.instances, mine)
        for feed in self.feeds:
            stream = feed.plan.stream
            if stream is not None:
                feed.is_open = self.instances[feed.plan.document].is_open(stream)
        return changes, refused

    @property
    def is_done(self) -> bool:
        """Whether the sources are at their ends, and nothing waits."""
        waits = any(order.pending for order in self._orders.values())
        return not waits and all(feed.is_at_end for feed in self.feeds)

    # Delivering -----------------------------------------------------------------------------------

    def _deliver(self, batch: int, changes: Sequence[Change]) -> None:
        """Write a batch to every sink, however long it takes; a stop leaves the rest for the next
        run.
        """
        for sink in self.sinks:
            with telemetry.span("axlog.deliver", sink=sink.name, batch=batch):
                self.patience.write(sink.name, partial(sink.write, batch, changes))

    # Progress -------------------------------------------------------------------------------------

    def _count(
        self, inputs: Sequence[Input], changes: Sequence[Change], refused: Sequence[Refusal]
    ) -> None:
        self.progress.messages += sum(one.update.action not in (TIME, PARAMETERS) for one in inputs)
        self.progress.refused += len(refused)
        self.progress.count(changes)
        if self.on_refused is not None:
            for one in refused:
                self.on_refused(one)

    def _report(self) -> None:
        progress, now = self.progress, time.monotonic()
        instances = list(self.instances.values())
        progress.batch = self.batch
        progress.kept = kept(instances)
        progress.state = state(instances)
        progress.documents = sum(len(one.documents) for one in instances)
        progress.held = sum(len(order.pending) for order in self._orders.values())
        progress.seconds = now - self._started
        troubles = {feed.plan.name: feed.troubles for feed in self.feeds if feed.troubles}
        troubles |= {table.source: table.troubles for table in self._tables if table.troubles}
        progress.lagging = lagging_of({**troubles, **self.patience.troubles})
        if self._on_progress is not None:
            progress.possible = self._outlooks.count(instances)
            self._on_progress(progress)


def _placed(item: Item) -> Input:
    """Return an update whose turn has come, with the time of its place if that is not its own."""
    one: Input = item[BODY]
    return one if item[AT] in (one.at, EARLIEST) else replace(one, placed=item[AT])


def run(
    model: PipelineModel,
    *,
    once: bool = False,
    seconds: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Progress:
    """Run a pipeline in this process and close it."""
    runner = Runner(model, once=once, on_progress=on_progress)
    try:
        return runner.run(seconds)
    finally:
        runner.close()
