"""The processor time of each stage of a Spark batch, in one process and without Spark.

The on-time view of the order monitor: JSON lines of `partitions` tasks are read (`read`) and become
rows (`rows`), which are matched (`extract`), written as rows for buckets (`pack`), applied by the
engines of the buckets (`engines`), and their reports are merged (`report`). What Spark adds (the
shuffle, the state store) is not in it. The bare parse of the same messages is measured beside it.
Spark gives a bucket to any idle Python process of an executor: `engines of two processes` are those
of two caches of engines, where the process of a bucket is drawn for every batch.
The fixed cost of an engine per batch is found from two sizes of batches. docs/scaling.md builds its
model on these.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, TypeVar

from lxml.etree import fromstring

from axlog.connect.kinds import Origin
from axlog.connect.protocol import Load, Part, Reading
from axlog.connect.sources.jsonl import JsonLinesOptions, JsonLinesSource
from axlog.runtime.bucket_engines import Buckets
from axlog.runtime.definition import Definition
from axlog.runtime.extraction import ASIDE, Extracted, Extractor
from axlog.runtime.gc_pause import collector_paused
from axlog.runtime.message_rows import Values, rows_of
from axlog.runtime.packet_rows import Row, packed
from axlog.runtime.past import NOTHING
from axlog.runtime.plan import SparkPlan, make_plan
from axlog.samples import orders
from lab.benchmarks.measuring import Result

MOVED = "engines of two processes"
STAGES = ("read", "rows", "extract", "pack", "engines", MOVED, "report", "bare parse")
_BATCHES = 4
_T = TypeVar("_T")


def spark_stages(
    size: int = 20_000, buckets: Sequence[int] = (16, 64), partitions: int = 4
) -> Result:
    """Microseconds per message of each stage, bytes and rows that are shuffled, fixed costs."""
    result = Result("spark-stages", "the stages of a batch on Spark, in one process")
    result.sizes = {"messages a batch": size, "partitions": partitions}
    for count in buckets:
        large, small = _Run(size, count, partitions), _Run(size // 20, count, partitions)
        head = f"{count} buckets"
        for stage in STAGES:
            result.figures[f"{head}: {stage}, us per message"] = large.cost(stage)
        result.figures[f"{head}: bytes shuffled per message"] = large.bytes / large.messages
        result.figures[f"{head}: rows shuffled per batch"] = large.rows / (_BATCHES - 1)
        result.figures[f"{head}: bytes stored per message"] = large.stored / large.messages
        fixed = small.seconds["engines"] - large.cost("engines") * small.messages / 1e6
        engines = count * (_BATCHES - 1)
        each = max(0.0, 1e6 * fixed / engines)
        result.figures[f"{head}: fixed cost of an engine per batch, us"] = each
    return result


def _rows(found: Extracted, plan: SparkPlan) -> list[Row]:
    return list(packed(found, plan))


def _messages(reading: Reading, number: int) -> list[Values]:
    return list(rows_of(reading, 0, number))


def _parsed(rows: Sequence[Values]) -> None:
    for row in rows:
        fromstring(row[3])


class _Store(dict[str, bytes]):
    """The map of a bucket."""

    written = 0

    def put(self, key: str, value: bytes) -> None:
        self.written += len(value)
        self[key] = value

    def remove(self, key: str) -> None:
        del self[key]


class _Run:
    """Four batches, of which the first warms up."""

    def __init__(self, size: int, count: int, partitions: int) -> None:
        definition = Definition(orders.DOCUMENT, {"v": (orders.ON_TIME, None)}, orders.KEYS)
        plan = make_plan(definition, count)
        extractor = Extractor(definition, plan)
        extractor.past = NOTHING
        engines, *self._others = (
            Buckets(definition, plan, 0, "run", live=OrderedDict()) for _ in range(3)
        )
        self._drawn = Random(1)
        self._moved: dict[str, _Store] = {}
        stores: dict[str, _Store] = {}
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self.bytes = self.rows = self.messages = 0
        with TemporaryDirectory(prefix="axlog-bench-") as place:
            path = Path(place) / "in.jsonl"
            with path.open("w", encoding="utf-8") as lines:
                for message in orders.messages(size * _BATCHES, seed=1, rate=0.002):
                    lines.write(json.dumps(message) + "\n")
            source = JsonLinesSource(JsonLinesOptions(path=str(path)), Origin())
            position: Any = None
            for batch in range(_BATCHES):
                if batch == 1:
                    self.seconds = dict.fromkeys(STAGES, 0.0)
                    self.bytes = self.rows = self.messages = 0
                    before = sum(store.written for store in stores.values())
                found = source.plan(position, Load(size, partitions, 1))
                position = found.position
                with collector_paused():
                    self._batch(batch, source, found.parts, extractor, engines, stores)
        self.stored = sum(store.written for store in stores.values()) - before

    def _batch(
        self,
        batch: int,
        source: JsonLinesSource,
        parts: Sequence[Part],
        extractor: Extractor,
        engines: Buckets,
        stores: dict[str, _Store],
    ) -> None:
        from axlog.spark.batch_result import gather_batch

        inbox: dict[str, list[bytes]] = {}
        number = 0
        for part in parts:
            reading = self._timed("read", partial(source.fetch, part.work))
            rows = self._timed("rows", partial(_messages, reading, number))
            number += part.size
            self.messages += len(rows)
            self._timed("bare parse", partial(_parsed, rows))
            found = self._timed("extract", partial(extractor.extract, rows))
            for bucket, body in self._timed("pack", partial(_rows, found, extractor.plan)):
                self.bytes, self.rows = self.bytes + len(body), self.rows + 1
                if bucket != ASIDE:
                    inbox.setdefault(f"{bucket}/0", []).append(body)
        said: list[Row] = []
        for key, bodies in inbox.items():
            store = stores.setdefault(key, _Store())
            said += self._timed("engines", partial(engines.take, key, store, bodies)).rows
        for key, bodies in inbox.items():
            process = self._drawn.choice(self._others)
            store = self._moved.setdefault(key, _Store())
            self._timed(MOVED, partial(process.take, key, store, bodies))
        self._timed("report", partial(gather_batch, batch, said))

    def _timed(self, stage: str, work: Callable[[], _T]) -> _T:
        before = process_time()
        found = work()
        self.seconds[stage] += process_time() - before
        return found

    def cost(self, stage: str) -> float:
        """Microseconds per message."""
        return 1e6 * self.seconds[stage] / self.messages
