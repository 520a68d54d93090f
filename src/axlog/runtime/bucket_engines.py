"""The engines of one bucket: which of them wake with a batch, and what they report.

A bucket has an engine of each unit of the plan that is in it, and one store. All engines of a
document get the same census, so the bucket stores once how far the lanes have advanced.
An engine wakes if it gets items, if its deadline has passed, if it holds messages back, or if it
has ruled out rows on which all buckets must agree. An engine that slept gets the frontier before
the batch with its next packets; both are in its log, so that a rebuilt engine sees the same.

All engines wake with the first batch of a process: reports and totals of the bucket are complete
from then on.

Law: the reports are those of a bucket whose engines all wake with every batch, without the reports
that say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

from axlog.runtime.bucket import Instance, instance_report
from axlog.runtime.bucket_state import LIVE, Head, Keeper, Live
from axlog.runtime.definition import Definition
from axlog.runtime.order import Hold, Order
from axlog.runtime.outlooks import watcher_of
from axlog.runtime.packet_rows import Opened, Row, opened, written
from axlog.runtime.packets import pack, unpack
from axlog.runtime.plan import SparkPlan, Unit
from axlog.runtime.timers import Store, tick


class BucketStore(Store, Protocol):
    """The map of a bucket, which can be listed."""

    def keys(self) -> Iterable[str]: ...


Stage = Callable[[int, int, Sequence[Sequence[Any]]], tuple[list[Sequence[Any]], Any]]
"""Writes the changes of an engine in a batch; returns those that the driver has to write, and what
it commits (`sink_parts.py`).
"""
CLOCK = "clock"
"""Instead of an engine: the report is the document's clock, of one bucket for all."""


class Reply(NamedTuple):
    """The reports of a bucket on a batch; with a wall clock, the time after which it has work, and
    whether all buckets must be sent the time.
    """

    rows: list[Row]  # by engine: `unit/number/0`
    due: int | None
    ticks: bool


class Fill(NamedTuple):
    """The input of the past for a unit that was added."""

    place: str  # '' if there is none
    batch: int  # the last batch that it includes


@dataclass
class _Common:
    """What the engines of a bucket share."""

    process: str = ""  # the one that had the last batch
    number: int = 0  # of the last batch
    units: tuple[str, ...] = ()  # those with a state here
    frontier: Mapping[str, Any] | None = None


@dataclass
class Buckets:
    """Creates the engines of a plan and sends them their input."""

    definition: Definition
    plan: SparkPlan
    hold: Hold
    run: str  # of this process: live engines of another are not used
    outlook: int = 0
    fills: Mapping[str, Fill] = field(default_factory=dict)  # by unit: the input that it missed
    tunes: bool = False
    past: Callable[[str, str], Sequence[bytes]] | None = None
    """Returns the rows that a bucket missed, from their location and the bucket's key."""
    begins: bool = False  # engines emit the initial rows of the document
    live: Live = field(default_factory=lambda: LIVE)
    stage: Stage | None = None  # writes changes where they are made; None: all are reported

    def take(
        self,
        key: str,
        store: BucketStore,
        bodies: Iterable[bytes],
        passed: int = 0,
        batch: int | None = None,
    ) -> Reply:
        """Process the input of a bucket and the time that has passed; return its reports.

        `batch` is the number of a batch: a unit that was added skips those that it was filled with.
        """
        rows = [opened(body) for body in bodies]
        common = _read(store)
        before = b"" if common.frontier is None else pack(common.frontier)
        is_start = common.process != self.run
        common.number += 1
        clock = self._advance(common, rows, passed)
        said: list[Row] = []
        dues: list[int] = []
        ticks = False
        engines = list(self.plan.inside(bucket_of(key)))
        for unit, number in engines:
            fill = self.fills.get(unit.name)
            if fill is not None and batch is not None and batch <= fill.batch:
                continue
            keeper = self._keeper(unit, number, key, store)
            if unit.kind == "documents":
                reports = _of_documents(keeper, unit, number, rows, passed)
            else:
                head = keeper.head()
                packets: list[bytes] = []
                if is_start or _wakes(head, rows, unit, number, clock):
                    packets = [row.packet(unit.name, number) for row in rows]
                    if passed:
                        packets.append(tick(passed))
                    if head.version and head.heard < common.number - 1:
                        packets.insert(0, written(b"", b"", 0, before))
                    if not head.version and unit.name in self.fills:
                        packets[:0] = self._missed(unit, number, key)
                reports, waits = self._of_engine(keeper, unit, packets, common.number, head)
                ticks = ticks or waits
            if reports and self.stage is not None and batch is not None:
                engine = self._firsts[unit.name] + number
                told = [change for one in reports for change in one["changes"]]
                for one in reports:
                    one["changes"] = []
                reports[0]["changes"], reports[0]["parts"] = self.stage(batch, engine, told)
            if reports:
                report = pack({"told": reports, **vars(keeper.total())})
                said.append((f"{unit.name}/{number}/0", report))
            due = keeper.next if passed else None  # only a wall clock needs timers
            dues += [] if due is None else [due]
        if is_start:
            names = {unit.name for unit, _ in engines}
            for gone in set(common.units) - names:
                _drop(store, gone)
            common.process, common.units = self.run, tuple(sorted(names))
        store.put("common", pack(vars(common)))
        if bucket_of(key) == 0:
            said.append((CLOCK, pack(clock)))
        return Reply(said, min(dues, default=None), ticks)

    @cached_property
    def _firsts(self) -> Mapping[str, int]:
        """By unit: the number of its first engine in the plan."""
        starts = accumulate((unit.buckets for unit in self.plan.units), initial=0)
        return {unit.name: start for unit, start in zip(self.plan.units, starts, strict=False)}

    def _advance(self, common: _Common, rows: Sequence[Opened], passed: int) -> int:
        """Advance the lanes of the document; return its clock."""
        plan = self.plan
        order = Order(tuple(sorted(plan.late)), plan.late, self.hold, start=self.definition.start)
        if common.frontier is not None:
            order.restore({**common.frontier, "pending": []})
        order.take([row.without_items(passed) for row in rows or [_TIME]])
        common.frontier = order.frontier()
        return order.clock

    def _keeper(self, unit: Unit, number: int, key: str, store: Store) -> Keeper[Instance]:
        def make(document: str) -> Instance:
            return Instance(self.definition, unit, number, self.hold, document)

        many = unit.kind == "documents"
        begins = self.begins or unit.name in self.fills or many
        run = f"{self.run} {key} {unit.name} {number}"
        return Keeper(_Part(store, _prefix(unit.name, number)), run, make, many, begins, self.live)

    def _missed(self, unit: Unit, number: int, key: str) -> list[bytes]:
        """Return the packets of an engine of a view that was added."""
        assert self.past is not None
        bodies = self.past(self.fills[unit.name].place, key)
        return [opened(body).packet(unit.name, number) for body in bodies]

    def _of_engine(
        self,
        keeper: Keeper[Instance],
        unit: Unit,
        packets: Sequence[bytes],
        number: int,
        head: Head,
    ) -> tuple[list[dict[str, Any]], bool]:
        """Return the report of an engine, and whether all buckets must be sent the time.

        The report includes, from time to time, what streams are needed for (`tunes`); with an
        `outlook`, that many possible rows.
        """
        if not packets:
            return [], False
        outcome, instance = keeper.batch("", packets, number, head)
        report = instance_report(
            outcome, instance, instance.tune(keeper.version) if self.tunes else None
        )
        if self.outlook:
            report["outlook"] = watcher_of(instance, self.outlook).summary()
        return [report], unit.buckets > 1 and instance.may_void


_TIME = Opened(b"", {}, 0)
"""The input of a bucket that only time reaches."""


def _wakes(head: Head, rows: Iterable[Opened], unit: Unit, number: int, clock: int) -> bool:
    """Whether an engine has work in a batch after which the clock is this."""
    if not head.version or head.waiting or head.together:
        return True
    if head.due is not None and head.due < clock:
        return True
    return any((unit.name, number) in row.engines for row in rows)


def _of_documents(
    keeper: Keeper[Instance], unit: Unit, number: int, rows: Sequence[Opened], passed: int
) -> list[dict[str, Any]]:
    """Return the reports of the documents of an engine that get messages or are due."""
    packets: dict[str, list[bytes]] = {}
    for row in rows:
        sent = row.engines.get((unit.name, number))
        for document, packet in unpack(sent).items() if sent else ():
            packets.setdefault(document, []).append(packet)
    passed = max([passed, *(row.latest for row in rows)])
    said = [instance_report(*keeper.batch(name, mine)) for name, mine in packets.items()]
    return said + [
        instance_report(*keeper.batch(name, [tick(passed)])) for name in keeper.due(passed)
    ]


def bucket_of(key: str) -> int:
    """Return the number of a bucket from its key: `number/salt`."""
    return int(key.partition("/")[0])


# The store of a bucket ----------------------------------------------------------------------------


class _Part:
    """The part of a bucket's map that one engine has."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store, self._prefix = store, prefix

    def get(self, key: str) -> bytes | None:
        return self._store.get(self._prefix + key)

    def put(self, key: str, value: bytes) -> None:
        self._store.put(self._prefix + key, value)

    def remove(self, key: str) -> None:
        self._store.remove(self._prefix + key)


def _prefix(unit: str, number: int) -> str:
    return f"{unit}/{number}\0"


def _drop(store: BucketStore, unit: str) -> None:
    """Drop the state of a unit whose views were removed."""
    for key in list(store.keys()):
        engine, end, _ = key.partition("\0")
        if end and engine.rpartition("/")[0] == unit:
            store.remove(key)


def _read(store: Store) -> _Common:
    found = store.get("common")
    return _Common() if found is None else _Common(**unpack(found))
