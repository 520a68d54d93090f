"""Law 7 on Spark: random pipelines, from every kind of source, with both places of state.

A case is a random pipeline (`pipeline_cases.py`), a kind of source, a place of state and a number
of state partitions. It runs as streaming queries of one session, the first with the input before
the restart, the second from the same checkpoint with the rest; or, `live`, as one query during
which the rest arrives, between two batches. Compared with the reference: rows, net changes, each
change of the clock, dead letters with their contents. For sources of one sequence each partition is
a separate source; a topic and a DataFrame have them as their partitions. Tables, and files that are
divided at their records, have a source for each stream, and messages that they can hold.

The first case starts the session, which all others share; so is the broker, librdkafka's mock
cluster in this process.

The long form: `python -m lab.laws.spark_law SEED CASES SECONDS`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from random import Random
from re import findall, match, sub
from sqlite3 import connect
from tempfile import TemporaryDirectory
from time import monotonic, sleep, time
from typing import Any
from uuid import uuid4

from lxml.etree import XMLSyntaxError, fromstring

from axlog.connect.kinds import Origin
from axlog.connect.protocol import Refusal, Source
from axlog.connect.sources.memory import MemorySource
from axlog.connect.sources.poller import Thing, element
from axlog.document.parser import parse
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError
from axlog.pipeline import kinds
from axlog.spark.batch_result import BatchReport
from axlog.spark.session import session
from axlog.spark.sources import LEAST
from axlog.spark.streaming_query import Maintained, maintain
from axlog.views.change import Change
from lab.laws.buckets_law import compare
from lab.laws.pipeline_cases import (
    Answer,
    PipelineCase,
    Places,
    Sequence_,
    first_rows,
    make_pipeline_case,
    merged,
    reference,
    smaller_pipelines,
)

KINDS = (
    "memory", "jsonl", "directory", "records", "table", "kafka", "frame", "parquet", "delta",
)  # fmt: skip
STATES = ("driver", "executors")
LONGEST = 120.0
"""Seconds to wait for messages that arrive while a query runs."""
EVERY = 0.5
"""Seconds between the batches of a query during which messages arrive."""
_ROOTS = ("item", "order")
"""The names of messages that can be rows of a table."""
_FILES = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
_COLUMNS = "stream string, xml string, time double, action string, number bigint"
Part = Sequence[Sequence[Sequence_]]


@dataclass(frozen=True, slots=True)
class SparkCase:
    """A pipeline, the kind of its sources, and the place of its state."""

    case: PipelineCase
    kind: str
    state: str
    partitions: int = 2
    live: bool = False


def make_spark_case(random: Random) -> SparkCase:
    """A random case."""
    kind = random.choice(KINDS)
    case = make_pipeline_case(random)
    while kind == "table" and _root(case) not in _ROOTS:
        case = make_pipeline_case(random)
    made = spark_case(case, kind, random.choice(STATES))
    live = kind != "memory" and random.random() < 0.3
    return replace(made, partitions=random.choice((1, 2, 4)), live=live)


def spark_case(case: PipelineCase, kind: str, state: str) -> SparkCase:
    """A pipeline whose messages can come from such a source."""
    if kind not in ("kafka", "frame"):
        case = replace(
            case,
            sources=tuple((one,) for source in case.sources for one in source),
            first=tuple((one,) for source in case.first for one in source),
        )
    if kind == "directory":
        case = _held(case, _timed)
    elif kind == "records":
        case = _by_stream(_held(_held(case, _timed), partial(_record, _root(case))))
    elif kind == "table":
        case = _for_tables(case)
    return SparkCase(case, kind, state)


def smaller_sparks(made: SparkCase) -> Iterator[SparkCase]:
    """Reduced cases."""
    for case in smaller_pipelines(made.case):
        yield replace(made, case=case)


def check_spark(made: SparkCase, spark: Any = None) -> None:
    """Check the law on one case."""
    wanted = reference(made.case)
    if wanted is not None and made.case.sources:  # a source may hold none of its messages
        found = run_on_spark(spark or _session(), made)
        compare(f"{made.kind}, state with the {made.state}", found, wanted)


@cache
def _session() -> Any:
    settings = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
        LEAST: "2",  # several parts of a source in a batch
    }
    return session("local[2]", "axlog law", quick=True, settings=settings)


class _Collected:
    """A sink that keeps all changes."""

    exactly_once = True

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.refused: list[Refusal] = []
        self.messages = 0
        self.waiting = 0

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        self.changes += changes

    def refuse(self, batch: int, refused: Sequence[Refusal]) -> None:
        self.refused += refused

    def count(self, report: BatchReport) -> None:
        """Count what a batch brought, and what it holds back."""
        self.messages += report.messages
        self.waiting = report.waiting

    def wait(self, query: Maintained, messages: int) -> None:
        """Wait until a query has processed so many messages, and holds none back."""
        until = monotonic() + LONGEST
        while (self.messages < messages or self.waiting) and monotonic() < until:
            if not query.is_active:
                query.wait()  # raises its failure
                break
            sleep(0.05)
        if self.messages < messages or self.waiting:
            raise AssertionError(f"{self.messages} of {messages} messages, {self.waiting} wait")

    def close(self) -> None:
        """There is nothing to release."""


def _wait_for_pause(query: Maintained) -> None:
    """Wait until a query has just looked at its sources: what arrives now, arrives together."""
    until = monotonic() + LONGEST
    while query.query.status["isTriggerActive"] or not 0.2 < time() % EVERY / EVERY < 0.6:
        if monotonic() > until or not query.is_active:
            raise AssertionError("the query has no pause")
        sleep(0.01)


def run_on_spark(spark: Any, made: SparkCase) -> Answer:
    """The result of streaming queries for a case, with a restart in between."""
    case = made.case
    definition = case.definition()
    told = _Collected()
    told.changes += first_rows(definition.make())
    count = sum(len(one) for source in case.sources for one in source)
    with TemporaryDirectory() as place:
        sources = _SOURCES[made.kind](spark, Path(place) / "in", case)
        query: Any = None
        brought = 0
        for part in case.parts():
            brought += sum(len(one) for source in part for one in source)
            if query is not None and made.live:
                _wait_for_pause(query)
            for source in sources:
                source.bring(part)
            if query is None or not made.live:
                opened = [source.open() for source in sources]
                query = maintain(
                    spark, definition, opened, [told], once=not made.live,
                    checkpoint=f"{place}/checkpoint", limit=max(case.batch, count // 4),
                    state=made.state, dead_letters=told.refuse, report=told.count,
                    hold=None if made.kind == "frame" else 0.05, buckets=4,
                    partitions=made.partitions, every=EVERY,
                )  # fmt: skip
            if made.live:
                told.wait(query, brought)
            else:
                query.wait()
        if made.live:
            query.stop()
    return Answer.of(told.changes, told.refused)


# Sources ------------------------------------------------------------------------------------------


class _Given:
    """One source of a case; `bring` delivers a part of its messages."""

    def __init__(self, spark: Any, place: Path, number: int) -> None:
        self.spark, self.place, self.number = spark, place / str(number), number
        self.place.mkdir(parents=True)
        self.brought = 0

    def bring(self, part: Part) -> None:
        self.brought += 1
        self.add(part[self.number])

    def add(self, partitions: Sequence[Sequence_]) -> None:
        """Deliver more messages."""
        raise NotImplementedError

    def open(self) -> Any:
        """The source in the form that `maintain` accepts."""
        raise NotImplementedError


class _Memory(_Given):
    updates: tuple[StreamUpdate, ...] = ()

    def add(self, partitions: Sequence[Sequence_]) -> None:
        self.updates += partitions[0]

    def open(self) -> Callable[[], Source]:
        return partial(MemorySource, self.updates)


class _Lines(_Given):
    def add(self, partitions: Sequence[Sequence_]) -> None:
        with (self.place / "in.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(update.plain())}\n" for update in partitions[0])

    def open(self) -> Callable[[], Source]:
        return partial(_made, "jsonl", str(self.place), path="in.jsonl")


class _Directory(_Given):
    count = 0

    def add(self, partitions: Sequence[Sequence_]) -> None:
        for update in partitions[0]:
            self.count += 1
            path = self.place / update.stream / f"{self.count:05}.xml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(str(update.content), encoding="utf-8")

    def open(self) -> Callable[[], Source]:
        return partial(_made, "directory", str(self.place), path=".", time="@at")


class _Records(_Given):
    """Files of records, which tasks read by byte ranges."""

    root = ""

    def add(self, partitions: Sequence[Sequence_]) -> None:
        if partitions[0]:
            self.root = str(parse(str(partitions[0][0].content)).root.tag)
            stream = self.place / partitions[0][0].stream
            stream.mkdir(exist_ok=True)
            inside = "\n".join(str(update.content) for update in partitions[0])
            aside = stream / f".{self.brought}.xml"
            aside.write_text(f"<records>{inside}</records>", encoding="utf-8")
            aside.rename(stream / f"{self.brought}.xml")

    def open(self) -> Callable[[], Source]:
        return partial(
            _made, "directory", str(self.place), path=".", time="@at", record=self.root, divide=True
        )


class _Table(_Given):
    """Rows of a table, with a column for each element that they may have."""

    def __init__(self, spark: Any, place: Path, number: int) -> None:
        super().__init__(spark, place, number)
        self._file, self._stream = self.place / "in.db", ""
        with closing(connect(self._file)) as database:
            columns = ", ".join(f"{name} text" for name in _COLUMN_NAMES)
            database.execute(f"create table r (row integer primary key, at real, {columns})")

    def add(self, partitions: Sequence[Sequence_]) -> None:
        marks = ", ".join("?" * (1 + len(_COLUMN_NAMES)))
        names = ", ".join(_COLUMN_NAMES)
        with closing(connect(self._file)) as database, database:
            for update in partitions[0]:
                self._stream = update.stream
                fields = _fields(update) or {}
                values = [update.at, *map(fields.get, _COLUMN_NAMES)]
                database.execute(f"insert into r (at, {names}) values ({marks})", values)

    def open(self) -> Callable[[], Source]:
        return partial(
            _made, "table", str(self.place), self._stream, database=f"sqlite:///{self._file}",
            table="r", by="row", time="at", columns=list(_COLUMN_NAMES),
        )  # fmt: skip


class _Rows(_Given):
    """Rows of Parquet files, in groups of three."""

    def add(self, partitions: Sequence[Sequence_]) -> None:
        import pyarrow.parquet as parquet

        if partitions[0]:
            aside = self.place / f".{self.brought}.parquet"
            parquet.write_table(_table(partitions[0]), aside, row_group_size=3)
            aside.rename(self.place / f"{self.brought}.parquet")

    def open(self) -> Callable[[], Source]:
        return partial(_made, "parquet", str(self.place), path=".", order="name")


class _Delta(_Given):
    """Rows that are appended to a Delta table, which has none at first."""

    def __init__(self, spark: Any, place: Path, number: int) -> None:
        super().__init__(spark, place, number)
        self._append(())

    def add(self, partitions: Sequence[Sequence_]) -> None:
        if partitions[0]:
            self._append(partitions[0])

    def _append(self, updates: Sequence_) -> None:
        from deltalake import write_deltalake

        write_deltalake(str(self.place / "table"), _table(updates), mode="append")

    def open(self) -> Callable[[], Source]:
        return partial(_made, "delta", str(self.place), path="table")


def _table(updates: Sequence_) -> Any:
    import pyarrow as pa

    names = ("stream", "xml", "time", "action")
    rows = [(u.stream, _text(u.content), u.at, u.action) for u in updates]
    types = (pa.string(), pa.string(), pa.float64(), pa.string())
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table({n: pa.array(c, t) for n, c, t in zip(names, columns, types, strict=True)})


def _text(content: str | bytes) -> str:
    return content if isinstance(content, str) else content.decode()


class _Topic(_Given):
    def __init__(self, spark: Any, place: Path, number: int) -> None:
        super().__init__(spark, place, number)
        self._brokers, self._cluster = _broker()
        self._topic = uuid4().hex

    def add(self, partitions: Sequence[Sequence_]) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._brokers})
        producer.list_topics(self._topic, timeout=30)  # creates it
        for number, sequence in enumerate(partitions):
            for update in sequence:
                producer.produce(self._topic, json.dumps(update.plain()), partition=number)
        if producer.flush(30):
            raise RuntimeError("the mock cluster did not take all messages")

    def open(self) -> Callable[[], Source]:
        return partial(
            _made, "kafka", str(self.place), brokers=self._brokers, topic=self._topic,
            format="jsonl", wait=10,
        )  # fmt: skip


class _Frame(_Given):
    """A DataFrame of files, each of them a partition."""

    def add(self, partitions: Sequence[Sequence_]) -> None:
        for name in _FILES:
            self.spark.conf.set(name, "1000000")
        for number, sequence in enumerate(partitions):
            lines = [
                json.dumps(
                    {
                        "stream": update.stream, "xml": update.content, "time": update.at,
                        "action": update.action, "number": 10_000 * number + row,
                    }
                )
                for row, update in enumerate(sequence, 1000 * self.brought)
            ]  # fmt: skip
            if lines:
                aside = self.place / f".{self.brought}-{number}.json"
                aside.write_text("\n".join(lines), encoding="utf-8")
                aside.rename(self.place / aside.name[1:])

    def open(self) -> Any:
        return self.spark.readStream.schema(_COLUMNS).json(str(self.place))


def _each(kind: type[_Given], spark: Any, place: Path, case: PipelineCase) -> list[_Given]:
    return [kind(spark, place, number) for number in range(len(case.sources))]


_SOURCES: dict[str, Callable[[Any, Path, PipelineCase], list[_Given]]] = {
    "memory": partial(_each, _Memory),
    "jsonl": partial(_each, _Lines),
    "directory": partial(_each, _Directory),
    "records": partial(_each, _Records),
    "table": partial(_each, _Table),
    "parquet": partial(_each, _Rows),
    "delta": partial(_each, _Delta),
    "kafka": partial(_each, _Topic),
    "frame": partial(_each, _Frame),
}


def _made(kind: str, place: str, stream: str | None = None, **options: Any) -> Source:
    """A source of a pipeline file, for any process that reads it."""
    found = kinds.source_kind(kind)
    origin = Origin(directory=Path(place), stream=stream)
    made: Source = found.make(found.options.model_validate(options), origin)
    return made


@cache
def _broker() -> tuple[str, Any]:
    """The address of a mock cluster, and the client that owns it."""
    from confluent_kafka import Producer

    cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "unused"})
    (broker,) = cluster.list_topics(timeout=60).brokers.values()
    return f"{broker.host}:{broker.port}", cluster


def _held(case: PipelineCase, held: Callable[[StreamUpdate], StreamUpdate | None]) -> PipelineCase:
    """The case with the messages that a source can hold, in the form in which it holds them."""
    sources, first = [], []
    for (sequence,), (count,) in zip(case.sources, case.first, strict=True):
        kept = [(number, made) for number, one in enumerate(sequence) if (made := held(one))]
        sources.append((tuple(update for _, update in kept),))
        first.append((sum(number < count for number, _ in kept),))
    return replace(case, sources=tuple(sources), first=tuple(first))


def _by_stream(case: PipelineCase) -> PipelineCase:
    """The case with a source for each stream, which has some messages from the beginning."""
    places: Places = {}
    before, after = ([one for _, one in merged(part, places)] for part in case.parts())
    sources, first = [], []
    for stream in dict.fromkeys(update.stream for update in before + after):
        mine = [[one for one in part if one.stream == stream] for part in (before, after)]
        sources.append((tuple(mine[0] + mine[1]),))
        first.append((max(1, len(mine[0])),))
    return replace(case, sources=tuple(sources), first=tuple(first))


def _root(case: PipelineCase) -> str:
    """The most common name of a message."""
    sent = [one.content for source in case.sources for each in source for one in each]
    names = Counter(found[1] for one in sent if (found := match(r"<(\w+)", str(one))))
    return max(names, key=lambda name: (names[name], name), default="")


def _record(root: str, update: StreamUpdate) -> StreamUpdate | None:
    """A message that can be a record of a divided file: no other begins in it."""
    text = str(update.content)
    return (
        update if findall(r"<(\w+)", text).count(root) == 1 and match(f"<{root}\\b", text) else None
    )


_COLUMN_NAMES = ("k", "s", "t", "v", "other")


def _for_tables(case: PipelineCase) -> PipelineCase:
    """The case with rows: a message is an insertion of one tree of texts, each with its name."""
    root = _root(case)
    renamed = partial(sub, rf"\b{root}\b(?! by\b)", "row")
    case = replace(
        case,
        document=renamed(case.document),
        views=tuple(map(renamed, case.views)),
        facts=tuple(map(renamed, case.facts)),
    )
    case = _by_stream(_held(case, lambda update: update if _fields(update) else None))
    sources = tuple(
        (tuple(_row(update, number) for number, update in enumerate(sequence, 1)),)
        for (sequence,) in case.sources
    )
    return replace(case, sources=sources)


def _row(update: StreamUpdate, number: int) -> StreamUpdate:
    """A message as a table gives it."""
    fields = _fields(update) or {}
    tree = element("row", {name: fields.get(name) for name in _COLUMN_NAMES})
    return replace(update, content=Thing(str(number), tree).xml())


def _fields(update: StreamUpdate) -> dict[str, str] | None:
    """The texts of a message, by the names of their elements; None if it has anything else."""
    if update.action != "insert" or update.at is None or update.stream == "unknown":
        return None
    try:
        root = fromstring(str(update.content))
    except (XMLSyntaxError, ValueError):
        return None
    names = [child.tag for child in root]
    is_flat = all(child.text and not len(child) and not child.attrib for child in root)
    is_plain = is_flat and not (root.text or "").strip() and len(set(names)) == len(names)
    if not is_plain or not names or not set(names) <= set(_COLUMN_NAMES):
        return None
    return {str(child.tag): str(child.text) for child in root}


def _timed(update: StreamUpdate) -> StreamUpdate | None:
    if update.action != "insert" or update.at is None or update.stream == "unknown":
        return None
    try:
        root = parse(str(update.content)).root
    except AxlogError:
        return None
    if root.get("at") is not None:
        return None
    at = f"{float(str(update.at)):.6f}"
    name = str(root.tag)
    content = str(update.content).replace(f"<{name}", f'<{name} at="{at}"', 1)
    return replace(update, content=content, at=at)


# The long form ------------------------------------------------------------------------------------


def main(seed: int = 0, cases: int = 1000, seconds: float = 900.0) -> int:
    """Check the cases of a range of seeds within a time limit; return the number of failures."""
    began, failed, done = monotonic(), 0, Counter[tuple[str, str]]()
    for number in range(seed, seed + cases):
        if monotonic() - began > seconds:
            break
        made = make_spark_case(Random(f"spark:{number}"))
        done[made.kind, made.state] += 1
        try:
            check_spark(made)
        except Exception as error:
            failed += 1
            print(f"seed {number}: {type(error).__name__}: {error}", flush=True)
    said = ", ".join(f"{kind}/{state} {count}" for (kind, state), count in sorted(done.items()))
    print(f"{sum(done.values())} cases, {failed} failures, {monotonic() - began:.0f} s: {said}")
    return failed


if __name__ == "__main__":
    sys.exit(min(1, main(*map(int, sys.argv[1:]))))
