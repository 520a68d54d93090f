"""A sustained load on one process: maximum update rate, many views, lagging sinks.

A durable document holds a sliding window of orders and shipments: a message is deleted some
thousand messages later, a hundred by one statement, so that rows are inserted and deleted all the
time and nothing has to grow. One thread feeds as fast as updates are accepted (a closed loop, so
the rate is the one that the process sustains). Sinks receive the changes of some views. Once the
window is full, the run has three phases:

    steady      every sink accepts its changes at once
    slow        one of them is slower than its changes arrive
    recovered   as in the first

In the second phase the outbox of the slow sink fills, and feeding has to wait: back-pressure
instead of growth. Reported for each phase: updates per second, the time from a call to its return
(acknowledged: in the log, by the `sync` policy), the time to a sink's acceptance (delivered),
memory in use, the largest outbox. At the end the changes that the sinks received, replayed, must
equal the rows of the views, and the store must verify. `Sizes` has all sizes; no time is asserted.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from axlog.live.durable import DurableDocument
from axlog.live.internals import maintained
from axlog.live.metrics import resident
from axlog.live.store import Sync, open_store
from axlog.live.verification import verify
from axlog.store.files import DiskFiles
from axlog.views.change import Change
from lab.stress.latencies import Latencies

DOCUMENT = (
    '<w xmlns:ax="urn:axlog"><orders><ax:call stream="orders" deletes="yes"/></orders>'
    '<shipping><ax:call stream="shipments" deletes="yes"/></shipping></w>'
)
CLIENTS = 10
PHASES = (("steady", 0.5), ("slow", 0.25), ("recovered", 0.25))
"""Each phase with its share of the time."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a load."""

    views: int = 40
    publishers: int = 8
    window: int = 40  # batches of orders in the document
    batch: int = 100  # orders that are deleted together, with as many shipments
    outbox: int = 500  # changes that may wait for a sink
    pause: float = 0.1  # seconds that the slow sink needs for a batch of changes
    sync: Sync = "batch"
    compact_after: int = 50_000


@dataclass(slots=True)
class Phase:
    """The result of one phase."""

    name: str
    updates: int = 0
    seconds: float = 0.0
    blocked: float = 0.0  # of them waiting for room in an outbox
    largest_outbox: int = 0
    acknowledged: Latencies = field(default_factory=Latencies)
    delivered: Latencies = field(default_factory=Latencies)
    memory: list[int] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """For JSON; times in milliseconds, memory in MB."""
        return {
            "phase": self.name,
            "updates": self.updates,
            "seconds": round(self.seconds, 1),
            "updates a second": round(self.updates / self.seconds) if self.seconds else 0,
            "acknowledged ms": self.acknowledged.plain(),
            "delivered ms": self.delivered.plain(),
            "waited s": round(self.blocked, 1),
            "largest outbox": self.largest_outbox,
            "memory MB": [_megabytes(self.memory[0]), _megabytes(max(self.memory))],
        }


def _megabytes(size: int) -> float:
    return round(size / 1e6, 1)


@dataclass(frozen=True, slots=True)
class Moment:
    """The process at one moment of the run."""

    seconds: float
    phase: str
    updates: int
    memory: int
    waiting: int  # changes in the fullest outbox
    disk: int
    nodes: int

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(slots=True)
class LoadReport:
    """The result of a load."""

    sizes: Sizes
    phases: list[Phase]
    moments: list[Moment]
    snapshots: int
    longest_pause: float  # seconds that a snapshot paused maintenance
    longest_snapshot: float
    most_nodes: int
    faults: list[str]  # detected faults

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "sizes": asdict(self.sizes),
            "phases": [phase.plain() for phase in self.phases],
            "snapshots": self.snapshots,
            "longest pause ms": round(1000 * self.longest_pause, 1),
            "longest snapshot s": round(self.longest_snapshot, 1),
            "most nodes": self.most_nodes,
            "faults": self.faults,
            "moments": [moment.plain() for moment in self.moments],
        }


# Updates ------------------------------------------------------------------------------------------


def views_of(count: int) -> dict[str, str]:
    """Return views over the window: joins, paths, values and missing shipments."""
    found: dict[str, str] = {}
    for number in range(count):
        client = f"c{number // 4 % CLIENTS}"
        query = (
            f'match /w[orders/order[client/"{client}"]/oid/$x][shipping/order/oid/$x] return $x',
            f'match /w/orders/order[client/"{client}"]/oid/$x return $x',
            f'match /w/orders/order[client/"{client}"][details/$g] return $g',
            f'match /w[orders/order[client/"{client}"]/oid/$x][not(shipping/order/oid/$x)]'
            " return $x",
        )[number % 4]
        found[f"v{number}"] = query
    return found


def updates(sizes: Sizes) -> Iterator[tuple[str, str]]:
    """Yield messages without end, each with its stream, and statements (no stream) that delete
    them.
    """
    number = batch = 0
    while True:
        if number % sizes.batch == 0 and number:
            batch += 1
            gone = batch - sizes.window
            if gone >= 0:
                for place in ("orders", "shipping"):
                    yield "", f'delete nodes /w/{place}/order[@b = "{gone}"]'
        client, goods = number * 7 % CLIENTS, ("computer", "printer", "screen")[number % 3]
        yield "orders", (
            f'<order b="{batch}"><oid>{number}</oid><client>c{client}</client>'
            f"<details><{goods}/></details><price>{number % 991}</price></order>"
        )  # fmt: skip
        if number % 4:
            earlier = max(0, number - number % 97)
            yield "shipments", f'<order b="{batch}"><oid>{earlier}</oid></order>'
        number += 1


# Publishers ---------------------------------------------------------------------------------------


class Taker:
    """A sink: stores the rows that the changes produce, and records the delay."""

    def __init__(self, fed: Callable[[int], float | None]) -> None:
        self.pause = 0.0
        self.rows: Counter[tuple[Any, ...]] = Counter()
        self.taken = 0
        self.delays = Latencies()
        self._fed = fed

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        if self.pause:
            sleep(self.pause)
        for change in changes:
            if change.op in ("insert", "delete"):
                row = change.row.values_
                self.rows[row] += 1 if change.op == "insert" else -1
                if not self.rows[row]:
                    del self.rows[row]  # it keeps the current rows, as a table would
        self.taken += len(changes)
        fed = self._fed(batch)
        if fed is not None:
            self.delays.note(perf_counter() - fed)


class _Fed:
    """The times of the last updates, in a ring buffer."""

    def __init__(self, size: int = 1 << 16) -> None:
        self._numbers, self._times = [0] * size, [0.0] * size
        self._mask = size - 1

    def note(self, record: int, at: float) -> None:
        self._times[record & self._mask] = at
        self._numbers[record & self._mask] = record

    def when(self, record: int) -> float | None:
        at = record & self._mask
        return self._times[at] if self._numbers[at] == record else None


# The run ------------------------------------------------------------------------------------------


def run_load(
    seconds: float,
    sizes: Sizes | None = None,
    directory: Path | None = None,
    show: Callable[[Moment], None] | None = None,
    most_updates: int | None = None,
) -> LoadReport:
    """Load a process for a time; with `most_updates`, each phase for at most that many."""
    sizes = sizes or Sizes()
    with tempfile.TemporaryDirectory(prefix="axlog-load-", dir=directory) as made:
        path = Path(made) / "store"
        run = _Load(path, sizes, show)
        try:
            run.fill()
            for name, share in PHASES:
                run.phase(name, seconds * share, most_updates)
            return run.report()
        finally:
            run.doc.close(flush=0.0)


class _Load:
    """A running load."""

    def __init__(self, path: Path, sizes: Sizes, show: Callable[[Moment], None] | None) -> None:
        self.sizes, self._path, self._show = sizes, path, show
        self.doc: DurableDocument = open_store(
            path, DOCUMENT, views=views_of(sizes.views), sync=sizes.sync
        )  # fmt: skip
        self.doc.compact_after = sizes.compact_after
        self._fed = _Fed()
        self.takers: dict[str, Taker] = {}
        for view in list(self.doc.views)[: sizes.publishers]:
            self.takers[view] = Taker(self._fed.when)
            self.doc.publish(view, self.takers[view], most=sizes.outbox)
        self.slow = self.takers[list(self.takers)[1 % len(self.takers)]]
        self._updates = updates(sizes)
        self._began = perf_counter()
        self.phases: list[Phase] = []
        self.moments: list[Moment] = []
        self.most_nodes = 0

    def fill(self) -> None:
        """Feed until the window is full and the first batch has been deleted."""
        phase, statements = Phase("filling"), 0
        while statements < 4:
            statements += self._feed(phase)
        self._began = perf_counter()

    def phase(self, name: str, seconds: float, most: int | None) -> None:
        """Feed for a time."""
        phase = Phase(name)
        self.phases.append(phase)
        self.slow.pause = self.sizes.pause if name == "slow" else 0.0
        boxes = list(self.doc.outboxes.values())
        for box in boxes:
            box.largest = box.waiting
        for taker in self.takers.values():
            taker.delays = Latencies()
        blocked = sum(box.blocked for box in boxes)
        began = told = perf_counter()
        self._look(phase)
        while (now := perf_counter()) - began < seconds and phase.updates != most:
            self._feed(phase)
            if now - told >= 1.0:
                told = now
                self._look(phase)
        phase.seconds = perf_counter() - began
        phase.blocked = sum(box.blocked for box in boxes) - blocked
        phase.largest_outbox = max(box.largest for box in boxes)
        self._look(phase)
        for taker in self.takers.values():
            phase.delivered.add(taker.delays)

    def _feed(self, phase: Phase) -> bool:
        """Apply the next update; return whether it is a statement."""
        stream, content = next(self._updates)
        began = perf_counter()
        # The expected number of the record. If a sink's note comes between, it is not found, and
        # not counted.
        self._fed.note(self.doc.record + 1, began)
        if stream:
            self.doc.feed(stream, content)
        else:
            self.doc.update(content)
        phase.acknowledged.note(perf_counter() - began)
        phase.updates += 1
        return not stream

    def _look(self, phase: Phase) -> None:
        memory, nodes = resident(), len(maintained(self.doc).tree)
        phase.memory.append(memory)
        self.most_nodes = max(self.most_nodes, nodes)
        waiting = max(box.waiting for box in self.doc.outboxes.values())
        done = sum(each.updates for each in self.phases)
        at = perf_counter() - self._began
        moment = Moment(round(at, 2), phase.name, done, memory, waiting, self._disk(), nodes)
        self.moments.append(moment)
        if self._show is not None:
            self._show(moment)

    def _disk(self) -> int:
        total = 0
        for entry in os.scandir(self._path):
            try:
                total += entry.stat().st_size
            except OSError:  # it was deleted just now
                continue
        return total

    def report(self) -> LoadReport:
        """Wait for the sinks, compare, and summarize."""
        doc, faults = self.doc, []
        for name, box in doc.outboxes.items():
            if not box.flush(60):
                faults.append(f"the publisher {name} did not take everything")
        for view, taker in self.takers.items():
            rows = Counter(row.values_ for row in doc.view(view).rows())
            if +taker.rows != rows:
                faults.append(f"what {view} was told does not come to its rows")
        largest = max(phase.largest_outbox for phase in self.phases)
        bound = self.sizes.outbox + 2 * self.sizes.batch
        if largest > bound:
            faults.append(f"{largest} changes waited in an outbox, {bound} may")
        faults += [
            f"verify: {found.view} is wrong"
            for found in verify(DiskFiles(self._path)).views
            if not found.is_right
        ]
        return LoadReport(
            self.sizes, self.phases, self.moments, doc.snapshots.count,
            doc.pauses.longest, doc.snapshots.longest, self.most_nodes, faults,
        )  # fmt: skip
