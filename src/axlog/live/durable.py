"""Durable documents: an acknowledged update survives, and a restart restores the same views.

`axlog.open(path, source, views)` makes a store in a directory, or opens an existing one:

    log-*.axlog        every accepted update, written before it is applied (`store/log.py`)
    snapshot-*.axlog   the document, the engine's rows and the outboxes, up to a record
    manifest.axlog     how far the log is known to be good, and whether it was closed
    lock               held while a process has the store open

An update is written to the log, applied, then emitted. An update that the document rejects is
removed from the log. A crash in between leaves it there, and replay rejects it for the same reason.
Subscribers and publishers see an update only when it is in the log, synced as the policy says
(`sync="always" | "batch" | "off"`, see `store/log.py`).

Opening a store loads the last good snapshot and applies the records after it. A separate process
makes snapshots (`compaction.py`): it replays the log up to the point of rotation, so maintenance
stops only for the rotation. With `retain=True` old segments are kept, for `axlog replay` and for
views that are added to a document that keeps only the messages its views need.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from logging import ERROR, INFO, WARNING, getLogger
from pathlib import Path
from time import perf_counter
from typing import IO, Any, Literal

from axlog.document.messages import AnyMessage, Message, as_message
from axlog.document.times import Time, microseconds
from axlog.errors import AxlogError, StoreError
from axlog.evaluate.variables import written
from axlog.live import log_records
from axlog.live.collection import Collection
from axlog.live.document import Document
from axlog.live.log_records import Record, encode, stream_record
from axlog.live.outbox import MOST, Outbox, Taking
from axlog.live.recovery import Restored, snapshot_parts
from axlog.live.savepoint import Savepoint
from axlog.live.streams import Streams
from axlog.live.tuner import TuningReport
from axlog.live.update_changes import ViewChanges, emit
from axlog.live.view import View
from axlog.match.filters import Filter
from axlog.query.parameters import Parameters, given_parameters
from axlog.query.query import Language, Query
from axlog.reporting import Durations, report
from axlog.store.files import Files
from axlog.store.log import Log, forked
from axlog.store.log_reader import Torn
from axlog.store.snapshots import remove_snapshots, write_snapshot
from axlog.views.change import Change
from axlog.views.step_chain import OnValueError

_events = getLogger("axlog.store")

COMPACT_AFTER = 50_000
"""Default of `DurableDocument.compact_after`."""


class DurableDocument(Document):
    """A document whose accepted updates are in a log. Made by `axlog.open`."""

    _log: Log | None = None
    torn: Torn | None = None
    """The unfinished end of the log, cut off when the store was opened after a crash."""
    compact_after: int | None = COMPACT_AFTER
    """Records between two automatic snapshots; None: only on `compact`."""

    def _attach(self, files: Files, log: Log, found: Restored, retain: bool) -> None:
        self._files, self._retain = files, retain
        self._settings = found.settings
        self.outboxes = found.outboxes
        self._directory: Path | None = None
        self._held_lock: IO[bytes] | None = None
        self._compactor: tuple[subprocess.Popen[bytes], int, float] | None = None
        self._is_starting = False  # whether a compaction process is being started
        self._batch: list[Record] | None = None
        self._broken: str | None = None
        self.snapshots, self.pauses = Durations(), Durations()
        self.failed_snapshots = 0
        self.record = found.record  # the number of the last record
        self._snapshot_at = found.snapshot
        self._log, self.torn = log, log.torn
        if log.next == 1:
            log.append([encode(found.settings)])
            log.settle()  # a store without this record does not exist
            self.record = 1
        elif log.next != found.record + 1:
            raise StoreError(
                "AX878", f"the log goes on at record {log.next}", expected=str(found.record + 1)
            )

    def _keep_open(self, directory: Path, lock: IO[bytes]) -> None:
        self._directory, self._held_lock = directory, lock

    # Updates --------------------------------------------------------------------------------------

    def feed(self, stream: str, message: AnyMessage, at: Time | None = None) -> list[Change]:
        given = as_message(message)
        changes = self._accept(lambda: self._received(stream, "insert", given, at))
        self._collect_if_due()
        return changes

    def _feed_all(
        self, stream: str, messages: Sequence[Message], times: Sequence[Time | None]
    ) -> list[Change]:
        pairs = zip(messages, times, strict=True)
        return [change for message, at in pairs for change in self.feed(stream, message, at)]

    def delete(self, stream: str, pattern: str, at: Time | None = None) -> list[Change]:
        return self._accept(lambda: self._received(stream, "delete", pattern, at))

    def end(self, stream: str, at: Time | None = None) -> list[Change]:
        changes = self._accept(lambda: self._received(stream, "end", "", at))
        if self._options.collect == "auto" and self._batch is None:
            self.collect()
        return changes

    def _received(self, stream: str, action: str, content: Message, at: Time | None) -> Record:
        """Return the record of an update that arrives now, with its latest allowed time."""
        record = stream_record(stream, action, content, at)
        latest = (self._streams or self._start_streams()).latest(stream, at)
        if latest is not None:
            record["latest"] = latest
        return record

    def advance(self, to: Time) -> list[Change]:
        return self._accept(lambda: {"advance": microseconds(to)})

    def update(
        self,
        statement: str,
        at: Time | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> list[Change]:
        record: Record = {"update": statement}
        if variables:
            record["variables"] = {n: written(n, value) for n, value in variables.items()}
        if at is not None:
            record["us"] = microseconds(at)
        return self._accept(lambda: record)

    def apply(self, updates: str, at: Time | None = None, *, reduce: bool = True) -> list[Change]:
        record: Record = {"lists": updates, "reduce": reduce}
        if at is not None:
            record["us"] = microseconds(at)
        return self._accept(lambda: record)

    def watch(
        self,
        query: str | Query,
        name: str | None = None,
        *,
        parameters: Parameters | None = None,
        language: Language | None = None,
        maintainer: str | None = None,
        work: int | None = None,
        on_value_error: OnValueError = "null",
        since: Literal["start", "now"] = "start",
    ) -> View:
        query = given_parameters(query, parameters, language)
        name = name if name is not None else self._maintained.new_name()
        record: Record = {"watch": name, "query": query if isinstance(query, str) else query.text}
        record |= _view_options(language, maintainer, work, on_value_error)
        if since != "start":
            record["since"] = since
        self._accept(lambda: record)
        return self.view(name)

    def change(
        self,
        name: str,
        query: str | Query,
        *,
        parameters: Parameters | None = None,
        language: Language | None = None,
        maintainer: str | None = None,
        work: int | None = None,
        on_value_error: OnValueError = "null",
    ) -> list[Change]:
        query = given_parameters(query, parameters, language)
        record: Record = {"change": name, "query": query if isinstance(query, str) else query.text}
        record |= _view_options(language, maintainer, work, on_value_error)
        return self._accept(lambda: record)

    def tune(self, exact: bool = False) -> TuningReport:
        self._accept(lambda: {"tune": exact})
        tuned = (self._streams or self._start_streams()).tuner.last
        assert tuned is not None
        return tuned

    def filter(self, stream: str) -> Filter | None:
        """Return None: the log must have every message, so that views can be added later."""
        return None

    def collect(self) -> Collection:
        self._accept(lambda: {"collect": True})
        found = (self._streams or self._start_streams()).last_collection
        assert found is not None
        return found

    def _collect_if_due(self) -> None:
        """Collect with a record of its own, so that a replay collects at the same moment."""
        if self._options.collect == "auto" and self._batch is None:
            with self._maintained.lock:
                is_due = (self._streams or self._start_streams()).collector.is_due()
            if is_due:
                self.collect()

    def _start_streams(self) -> Streams:
        if self._streams is None and self._options.collect == "auto":
            options, self._options = self._options, replace(self._options, collect="state")
            try:
                return super()._start_streams()
            finally:
                self._options = options
        return super()._start_streams()

    def unwatch(self, name: str) -> None:
        self._accept(lambda: {"forget": name})

    def _accept(self, make_record: Callable[[], Record]) -> list[Change]:
        """Log, apply and emit an update. A rejected update is removed from the log."""
        document = self._maintained
        self._refuse_forked()
        self._wait_for_publishers()
        with document.lock:
            log = self._usable()
            record = make_record()
            if self._batch is not None:
                changes, _ = self._carry_out(record)
                self._batch.append(record)
                return changes
            number = log.append([encode(record)])
            try:
                changes, held = self._carry_out(record)
            except AxlogError:
                log.take_back(number)
                raise
            except BaseException as error:
                self._break(f"{type(error).__name__}: {error}")
                raise
            self.record = number
            self._post(number, held)
            emit(held)
        self._compact_if_due()
        return changes

    def _wait_for_publishers(self) -> None:
        """Back-pressure: accept no update while a publisher's outbox is full."""
        if self._batch is None:
            for box in tuple(self.outboxes.values()):
                box.wait_for_room()

    def _carry_out(self, record: Record) -> tuple[list[Change], ViewChanges]:
        """Apply a record without calling subscribers.

        Return all changes, and the changes of each view.
        """
        document = self._maintained
        outer, document.held = document.held, []
        try:
            changes = log_records.carry_out(self, record)
        finally:
            held, document.held = document.held, outer
        if outer is not None:
            outer += held
        return changes, held

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Apply the updates inside as one frame of the log: all of them survive, or none.

        Subscribers get the net changes when the batch ends.
        """
        self._refuse_forked()
        self._wait_for_publishers()
        with self._maintained.lock:
            if self._batch is not None:
                with self._inner_batch(self._batch):
                    yield
                return
            log = self._usable()
            self._batch = []
            savepoint = Savepoint(self)
            try:
                with self._maintained.netted() as netted:
                    yield
            except BaseException:
                self._batch = None
                savepoint.restore()
                raise
            done, self._batch = self._batch, None
            if done:
                self._log_batch(log, done)
                self._post(self.record, netted)
                emit(netted)
        self._compact_if_due()

    @contextmanager
    def _inner_batch(self, batch: list[Record]) -> Iterator[None]:
        """A nested batch: if its body raises, its records are removed from the frame."""
        savepoint, done = Savepoint(self), len(batch)
        try:
            yield
        except BaseException:
            del batch[done:]
            savepoint.restore()
            raise

    def _log_batch(self, log: Log, done: list[Record]) -> None:
        try:
            self.record = log.append([encode({"batch": done})])
        except StoreError as error:
            self._break(str(error))  # the document is ahead of the log
            raise

    def _break(self, why: str) -> None:
        self._broken = why
        report(_events, ERROR, "store broken", document=self.name, seq=self.record, error=why)

    def _refuse_forked(self) -> None:
        """Raise in a forked child, before a lock is acquired.

        Another thread of the parent may have held the lock at the fork.
        """
        if self._log is not None and not self._log.is_ours:
            raise forked()

    def _usable(self) -> Log:
        if self._broken is not None or self._log is None:
            raise StoreError(
                "AX873",
                f"the store takes no more updates: {self._broken or 'it is closed'}",
                advice="open it again: everything that was acknowledged is there",
            )
        return self._log

    # Publishers -----------------------------------------------------------------------------------

    def publish(
        self, view: str, sink: Taking, name: str | None = None, *, most: int = MOST
    ) -> Outbox:
        """Deliver the changes of a view to a sink, from now on and across restarts.

        After a restart call it again with the same name: changes that the sink has not acknowledged
        are delivered first. Updates block while `most` or more changes wait for the sink.
        """
        box = self.outbox(view, name if name is not None else view)
        box.most = most
        box.start(sink, self.note_published)
        return box

    def unpublish(self, name: str) -> None:
        """Remove a publisher, and drop the changes that its sink has not acknowledged."""
        self._refuse_forked()
        with self._maintained.lock:
            box = self.outboxes.get(name)
            if box is None:
                raise StoreError(
                    "AX875", f"there is no publisher {name!r}", expected=", ".join(self.outboxes)
                )
            self.record = self._usable().append([encode({"unpublish": name})])
            del self.outboxes[name]
        box.close(0.0)

    def outbox(self, view: str, name: str) -> Outbox:
        """Return the outbox of a publisher, made on first use."""
        self._refuse_forked()
        with self._maintained.lock:
            log = self._usable()
            box = self.outboxes.get(name)
            if box is None:
                self.view(view)
                self.record = log.append([encode({"publisher": name, "view": view})])
                box = self.outboxes[name] = Outbox(name, view)
            elif box.view != view:
                raise StoreError("AX875", f"the publisher {name!r} takes the view {box.view!r}")
            return box

    def note_published(self, name: str, batch: int) -> None:
        """Record the last batch that a publisher delivered.

        Losing this record only causes the batch to be delivered twice.
        """
        with self._maintained.lock:
            log = self._log
            if log is None or self._broken is not None or name not in self.outboxes:
                return
            if self._batch is None:
                noted = encode({"published": name, "record": batch})
                self.record = log.append([noted], sync=False)

    @property
    def name(self) -> str:
        """The name of the store in events and metrics: the name of its directory."""
        return "store" if self._directory is None else self._directory.name

    @property
    def trouble(self) -> str | None:
        """Why the store accepts no more updates; None while it does."""
        return self._broken or (None if self._log is not None else "the store is closed")

    @property
    def is_whole(self) -> bool:
        """Whether the document still accepts updates: its state is that of its log."""
        return self._broken is None and self._log is not None

    def _post(self, number: int, held: ViewChanges) -> None:
        for box in self.outboxes.values():
            changes = [
                change for view, emitted in held if view.name == box.view for change in emitted
            ]
            if changes:
                box.put(number, changes)

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> None:
        """Write a snapshot in this process, and drop the log before it. Blocks all updates."""
        self._refuse_forked()
        with self._maintained.lock:
            began = perf_counter()
            log = self._usable()
            self._give_up_compaction()  # it would read segments that are deleted now
            log.rotate()
            parts = snapshot_parts(self, self._settings, self.outboxes)
            write_snapshot(self._files, self.record, parts)
            self._drop_old(self.record)
            self.pauses.note(perf_counter() - began)
            self._note_snapshot(began, self.record)

    def _note_snapshot(self, began: float, record: int) -> None:
        taken = perf_counter() - began
        self.snapshots.note(taken)
        report(_events, INFO, "snapshot", document=self.name, seq=record, seconds=round(taken, 3))

    def _compact_if_due(self) -> None:
        due = self.compact_after
        if due is None or self._directory is None:
            return
        if self._compactor is not None:
            self._finish_compaction(wait=False)
        elif self.record - self._snapshot_at >= due:
            self.compact(wait=False)

    def compact(self, wait: bool = True) -> None:
        """Make a snapshot from the log in a separate process, then drop the log before it."""
        self._refuse_forked()
        if self._directory is None:
            return self.snapshot()
        # Sync before the lock is held, so that the rotation has little left to sync.
        self._usable().sync()
        with self._maintained.lock:
            if self._compactor is not None or self._is_starting:
                upto = None
            else:
                self._is_starting = True
                began = perf_counter()
                upto = self._usable().rotate() - 1
                self.pauses.note(perf_counter() - began)
        if upto is not None:
            try:
                command = [sys.executable, "-m", "axlog.live.compaction"]
                started = subprocess.Popen([*command, str(self._directory), str(upto)])
                self._compactor = (started, upto, began)
            finally:
                self._is_starting = False
        return self._finish_compaction(wait)

    def _finish_compaction(self, wait: bool) -> None:
        if self._compactor is None:
            return
        process, upto, began = self._compactor
        code = process.wait() if wait else process.poll()
        if code is None:
            return
        self._compactor = None
        if code != 0 and self._snapshot_at >= upto:
            return  # a later snapshot was made meanwhile, and the segments that it read are gone
        # A failed compaction is retried after `compact_after` more records: the log is complete.
        self._snapshot_at = max(self._snapshot_at, upto)
        if code == 0:
            self._drop_old(upto)
            self._note_snapshot(began, upto)
            return
        self.failed_snapshots += 1
        report(_events, WARNING, "snapshot failed", document=self.name, seq=upto, code=code)
        if wait:
            raise StoreError("AX873", f"no snapshot could be made: the process ended with {code}")

    def _give_up_compaction(self) -> None:
        if self._compactor is not None:
            self._compactor[0].terminate()
            self._compactor[0].wait()
            self._compactor = None

    def _drop_old(self, record: int) -> None:
        self._snapshot_at = record
        remove_snapshots(self._files, record)
        if self._log is not None:
            self._log.drop_before(0 if self._retain else record + 1)

    # Closing --------------------------------------------------------------------------------------

    def close(self, flush: float = 5.0) -> None:
        """Deliver waiting changes (up to `flush` seconds), close the log and release the directory.

        In a forked child only the child's handles are released: the store belongs to its parent.
        """
        if self._log is not None and not self._log.is_ours:
            self._log.close()
            self._log = self._held_lock = None
            return
        for box in self.outboxes.values():
            box.close(flush)
        with self._maintained.lock:
            self._give_up_compaction()
            if self._log is not None:
                self._log.close()
                self._log = None
                report(_events, INFO, "store closed", document=self.name, seq=self.record)
            if self._held_lock is not None:
                self._held_lock.close()
                self._held_lock = None

    def __enter__(self) -> DurableDocument:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _view_options(
    language: str | None, maintainer: str | None, work: int | None, on_value_error: str
) -> Record:
    """Return the options of a view that are not the defaults."""
    options = {"language": language, "maintainer": maintainer, "work": work}
    record: Record = {key: value for key, value in options.items() if value is not None}
    return record if on_value_error == "null" else {**record, "on_value_error": on_value_error}
