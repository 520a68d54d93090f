"""Law 7 for pipelines, without a Spark session: the output of buckets equals the reference.

The stateless half (`runtime/extraction.py`) and the stateful half (`runtime/bucket_engines.py`)
are run as Spark runs them, with batches of random size: the messages of each partition in separate
packets, the packets of a batch in any order, buckets that lose their engines, batches that Spark
repeats after a crash, buckets that are all on the driver, final steps on the driver. The embedded
runner is run on the same case, and sometimes started anew after every few batches. Compared with
`pipeline_cases.reference`: rows, net changes, dead letters with their contents.

In some cases views differ in constants (the shapes of law 9). Then buckets keep them as families:
one plan, whose members arrive as rows of a table.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from axlog.connect.kinds import Options, Origin, SourceKind
from axlog.connect.protocol import Load, Plan, Position, Reading, Refusal
from axlog.document.stream_update import StreamUpdate
from axlog.document.times import microseconds
from axlog.pipeline import kinds
from axlog.pipeline.model import PipelineModel
from axlog.query.generalize import generalize
from axlog.runtime import bucket_state
from axlog.runtime.bucket_engines import Buckets
from axlog.runtime.definition import Definition, FamilyDefinition
from axlog.runtime.driver_buckets import DriverBuckets, durable_state
from axlog.runtime.embedded import Runner
from axlog.runtime.extraction import ASIDE, Extractor, Message
from axlog.runtime.family_members import PARAMETERS
from axlog.runtime.final_step import DurableFinalSteps, FinalSteps
from axlog.runtime.order import PARTITIONS_APART
from axlog.runtime.packet_rows import packed
from axlog.runtime.packets import unpack
from axlog.runtime.past import NOTHING
from axlog.runtime.plan import SparkPlan, make_plan
from axlog.spark.batch_result import gather_batch
from axlog.spark.rejections import Rejections
from axlog.spark.sources import Cut
from axlog.views.change import Change
from lab.laws.pipeline_cases import (
    Answer,
    PipelineCase,
    Sequence_,
    check_batch,
    first_rows,
    make_members_case,
    make_pipeline_case,
    reference,
    smaller_pipelines,
)


@dataclass(frozen=True, slots=True)
class BucketsCase:
    """A pipeline, and one way in which Spark may run it."""

    case: PipelineCase
    seed: int
    buckets: int
    on_driver: bool
    shares: bool = False


def make_buckets_case(random: Random, *, computes: bool = True) -> BucketsCase:
    """A random case; `computes` as for pipelines."""
    case = make_pipeline_case(random, computes=computes)
    made = BucketsCase(
        case, random.getrandbits(32), random.choice((1, 2, 3, 4, 6, 8)), random.random() < 0.5
    )
    if computes and random.random() < 0.2:
        return replace(made, case=make_members_case(random), shares=True)
    return made


def check_buckets(made: BucketsCase) -> None:
    """Check the law on one case."""
    wanted = reference(made.case)
    if wanted is None:
        return
    compare("embedded", run_embedded(made.case, (None, None, 1, 2)[made.seed % 4]), wanted)
    compare("buckets", run_buckets(made), wanted)


def smaller_buckets(made: BucketsCase) -> Iterator[BucketsCase]:
    """Reduced cases."""
    return (replace(made, case=case) for case in smaller_pipelines(made.case))


def compare(who: str, found: Answer, wanted: Answer) -> None:
    """Raise an error that describes the difference, if any."""
    said = wanted.difference(found)
    if said is not None:
        raise AssertionError(f"{who}: {said}")


# The embedded runner ------------------------------------------------------------------------------


class PartitionedOptions(Options):
    """Options of the source of a case."""

    source: int


class PartitionedSource:
    """A source of a case: its partitions, up to the given positions."""

    def __init__(self, partitions: Sequence[Sequence_]) -> None:
        self.partitions = partitions

    def read(self, position: Position, limit: int) -> Reading:
        """At most the requested number of messages, from the partitions in turn."""
        at: dict[str, int] = dict(position or {})
        updates: list[StreamUpdate] = []
        partitions: list[int] = []
        share = max(1, limit // max(1, len(self.partitions)))
        for number, sequence in enumerate(self.partitions):
            start = at.get(str(number), 0)
            some = sequence[start : start + min(share, limit - len(updates))]
            updates += some
            partitions += [number] * len(some)
            at[str(number)] = start + len(some)
        waiting = {n: at[str(n)] < len(one) for n, one in enumerate(self.partitions)}
        if len(self.partitions) == 1:
            return Reading(updates, at, (), waiting[0])
        return Reading(updates, at, (), any(waiting.values()), partitions, waiting)

    def close(self) -> None:
        """There is nothing to release."""


def _opened(
    sources: Sequence[Sequence[Sequence_]], options: PartitionedOptions, origin: Origin
) -> PartitionedSource:
    return PartitionedSource(sources[options.source])


class _Collected:
    """A sink that keeps all changes."""

    exactly_once = True

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        check_batch(changes)
        self.changes += changes

    def close(self) -> None:
        """There is nothing to release."""


def run_embedded(case: PipelineCase, batches: int | None = None) -> Answer:
    """The result of the embedded runner for a case, with a restart in between.

    `batches`: it is also restarted whenever it has processed this many.
    """
    changes: list[Change] = []
    refused: list[Refusal] = []
    is_first = True
    with TemporaryDirectory() as place:
        for sources in _so_far(case):
            kind = SourceKind(
                "partitioned",
                PartitionedOptions,
                partial(_opened, sources),
                "A source of a case.",
                names_streams=True,
            )
            written = [{"kind": "partitioned", "source": at} for at in range(len(case.sources))]
            model = PipelineModel.model_validate(
                {
                    "engine": "embedded", "document": case.document, "sources": written,
                    "facts": list(case.facts),
                    "views": {name: {"query": query, "sinks": [{"kind": "memory"}],
                                     "on_value_error": case.policies()[name]}
                              for name, query in case.named().items()},
                    "settings": {"batch": case.batch, "checkpoint": "state"},
                }
            ).located(Path(place))  # fmt: skip
            is_done = False
            while not is_done:
                with kinds.lent(kind):
                    runner = Runner(model, once=True)
                    try:
                        told = _Collected()
                        runner.on_refused = refused.append
                        if is_first:
                            told.changes += runner.all_rows()
                        for sink in runner.sinks:
                            sink.sink = told
                        is_done = _process(runner, batches)
                    finally:
                        runner.close()
                changes += told.changes
                is_first = False
    return Answer.of(changes, refused)


def _process(runner: Runner, batches: int | None) -> bool:
    """Process some batches, or all; return whether nothing is left."""
    if batches is None:
        runner.run()
        return True
    last = runner.batch + batches
    while runner.batch < last:
        if not runner.round() and runner.is_done:
            return True
    return False


def _so_far(case: PipelineCase) -> Iterator[tuple[tuple[Sequence_, ...], ...]]:
    """The input of the sources before the restart, and after it."""
    first, _ = case.parts()
    yield first
    yield case.sources


# The buckets --------------------------------------------------------------------------------------


def messages_of(case: PipelineCase) -> Iterator[list[list[list[Message]]]]:
    """The messages of each part, by source and partition, as tasks receive them."""
    counts: dict[tuple[int, int], int] = {}
    for part in case.parts():
        found: list[list[list[Message]]] = []
        for source, partitions in enumerate(part):
            found.append([])
            for partition, sequence in enumerate(partitions):
                start = counts.get((source, partition), 0)
                counts[source, partition] = start + len(sequence)
                is_one = len(partitions) == 1
                found[-1].append(
                    [
                        _message(source, None if is_one else partition, number, update)
                        for number, update in enumerate(sequence, start)
                    ]
                )
        yield found


def _message(source: int, partition: int | None, number: int, update: StreamUpdate) -> Message:
    content = update.content
    return Message(
        source,
        update.stream,
        update.action,
        content.encode() if isinstance(content, str) else content,
        None if update.at is None else microseconds(update.at),
        number + PARTITIONS_APART * (partition or 0),
        update.origin,
        None,
        None,
        partition,
    )


def batches_of(random: Random, part: list[list[list[Message]]]) -> Iterator[list[list[Message]]]:
    """Batches of packets, followed by the marks that there are no more messages.

    A batch has packets of each partition with messages left, in the order of the partition.
    """
    left = [list(sequence) for source in part for sequence in source]
    while any(left):
        batch: list[list[Message]] = []
        for sequence in left:
            for follows in range(random.choice((1, 1, 2, 3))):
                some = sequence[: random.randrange(1, 6)]
                if some:
                    batch.append([_part(some, bool(follows)), *some])
                    del sequence[: len(some)]
        random.shuffle(batch)
        yield batch
    yield [[Message(source, "*", "rest", b"", None, 0, "")] for source in range(len(part))]


def _part(messages: list[Message], follows: bool) -> Message:
    """The mark before the messages of a part, from which they can be read again."""
    first = messages[0]
    start = first.number % PARTITIONS_APART
    work = Cut([first.partition, start, len(messages)], len(messages), start, follows=follows)
    time = 0 if follows else None
    written = json.dumps(work.plain())
    of = first.partition
    return Message(first.source, "", "part", b"", time, first.number, written, partition=of)


class _Again:
    """A source of a case, for what is read again."""

    def read(self, position: Position, limit: int) -> Reading:
        raise NotImplementedError

    def __init__(self, partitions: Sequence[Sequence_]) -> None:
        self._partitions = partitions

    def plan(self, position: Position, load: Load, until: Position | None = None) -> Plan:
        raise NotImplementedError

    def fetch(self, work: Any) -> Reading:
        partition, start, count = work
        updates = self._partitions[partition or 0][start : start + count]
        return Reading(updates, None, partitions=() if partition is None else [partition] * count)

    def close(self) -> None:
        """There is nothing to release."""


def run_buckets(made: BucketsCase) -> Answer:
    """The result of both halves of the Spark pipeline for a case."""
    case, random = made.case, Random(made.seed)
    definition, tables = case.definition(), list[Message]()
    changes = first_rows(definition.make())
    if made.shares:
        definition, tables = with_families(definition, len(case.sources))
    plan = make_plan(definition, buckets=made.buckets)
    extractor = Extractor(definition, plan)
    extractor.past = NOTHING
    rejections = Rejections([partial(_Again, each) for each in case.sources], plan.late)
    refused: list[Refusal] = []
    number = 0
    stores: dict[str, _Store] = {}
    longest = random.choice((0, 1, bucket_state.LONGEST_LOG))
    with TemporaryDirectory() as place, patch.object(bucket_state, "LONGEST_LOG", longest):
        for part in messages_of(case):
            side = _Side(definition, plan, place, made.on_driver, stores)
            side.catch_up()
            for batch in batches_of(random, part):
                batch += [] if number else [[message] for message in tables]
                rows = [
                    (f"{bucket}/0", body)
                    for messages in batch
                    for bucket, body in packed(extractor.extract(messages), plan)
                ]
                if random.random() < 0.1:
                    side = side.crashed(number, rows)
                told = gather_batch(number, side.say(number, rows), rejections=rejections)
                aside = [unpack(body) for key, body in rows if key.startswith(f"{ASIDE}/")]
                extractor.past = extractor.past.after(number, aside)
                check_batch(told.changes)
                changes += told.changes
                refused += told.refused
                number += 1
                if random.random() < 0.15:
                    side.forget()
            side.close()
    return Answer.of(changes, refused)


def with_families(definition: Definition, source: int) -> tuple[Definition, list[Message]]:
    """The definition with a family for each shape of its views, and the tables of their members."""
    shapes: dict[Any, dict[str, str]] = {}
    for name, query in definition.queries().items():
        general = generalize(query.row_key.pattern)
        if general.parameters:
            shape = (general.pattern, general.parameters, query.row_key.steps)
            shapes.setdefault(shape, {})[name] = query.text
    families = {f"shape {at}": members for at, members in enumerate(shapes.values())}
    shared = {name for members in families.values() for name in members}
    made = replace(
        definition,
        views={name: view for name, view in definition.views.items() if name not in shared},
        families={n: FamilyDefinition(min(m.values())) for n, m in families.items()},
    )
    tables = [
        Message(source, name, PARAMETERS, json.dumps({"add": m, "quiet": True}).encode(), None, at,
                f"table {at}")
        for at, (name, m) in enumerate(families.items())
    ]  # fmt: skip
    return made, tables


class _Store(dict[str, bytes]):
    """The map of a bucket, with the interface of Spark's state store."""

    def put(self, key: str, value: bytes) -> None:
        self[key] = value

    def remove(self, key: str) -> None:
        del self[key]


class _Side:
    """The stateful half: on the driver, or in stores as on the executors."""

    def __init__(
        self,
        definition: Definition,
        plan: SparkPlan,
        place: str,
        on_driver: bool,
        stores: dict[str, _Store],
    ) -> None:
        hold = None
        self._made = (definition, plan, place, on_driver)
        self._drawn = Random(repr(sorted(plan.late)))
        self._driver: DriverBuckets | None = None
        self._finals: DurableFinalSteps | None = None
        if on_driver:
            made = Buckets(definition, plan, hold, "run", live=OrderedDict())
            self._driver = DriverBuckets(made, place)
        else:
            steps = FinalSteps(definition, plan, "run", OrderedDict())
            self._finals = DurableFinalSteps(steps, durable_state(place)) if steps.units else None
        # processes of an executor: a bucket may be in another one with the next batch
        self._processes = [
            Buckets(definition, plan, hold, "run", live=OrderedDict()) for _ in range(2)
        ]
        self._stores = stores

    def catch_up(self) -> None:
        """Resume, as a start does."""
        found = None if self._driver is None else self._driver.unfinished()
        if self._driver is not None and found is not None:
            self._driver.apply(found[1])
            self._driver.end()
        elif self._finals is not None:
            self._finals.catch_up()

    def crashed(self, number: int, rows: list[tuple[str, bytes]]) -> _Side:
        """The side of the next start, after this one fell while it processed a batch."""
        before = {key: _Store(store) for key, store in self._stores.items()}
        self._say(number, rows)
        self.close()
        self._stores.clear()
        self._stores.update(before)
        side = _Side(*self._made, self._stores)
        side.catch_up()
        return side

    def say(self, number: int, rows: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
        """The reports on a batch, which is delivered."""
        said = self._say(number, rows)
        if self._driver is not None:
            self._driver.end()
        elif self._finals is not None:
            self._finals.end()
        return said

    def _say(self, number: int, rows: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
        if self._driver is not None:
            self._driver.begin(number, rows)
            return self._driver.apply(rows)
        inbox: dict[str, list[bytes]] = {}
        for key, body in rows:
            inbox.setdefault(key, []).append(body)
        said = []
        for key, bodies in inbox.items():
            if key.startswith(f"{ASIDE}/"):
                said += [(ASIDE, body) for body in bodies]
            else:
                store = self._stores.setdefault(key, _Store())
                process = self._drawn.choice(self._processes)
                said += process.take(key, store, bodies).rows
        return said if self._finals is None else said + self._finals.take(number, said)

    def close(self) -> None:
        if self._driver is not None:
            self._driver.close()
        if self._finals is not None:
            self._finals.close()
        self.forget()

    def forget(self) -> None:
        """Lose the live engines."""
        for each in self._processes:
            each.live.clear()
