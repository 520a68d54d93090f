"""The user's own DataFrames with several partitions: order, lateness, and dead letters.

Each partition of a DataFrame is a sequence of its own. The reference is an embedded document
fed with the partitions merged by time; what is earlier than a message before it in its partition is
late.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from axlog.runtime.definition import Definition
from axlog.spark import maintain
from tests.spark.test_spark_streaming import Collecting, state_after

pytestmark = [pytest.mark.spark, pytest.mark.system]
SCHEMA = "stream string, xml string, time double"
DOCUMENT = (
    '<shop xmlns:ax="urn:axlog"><a><ax:call stream="a"/></a><b><ax:call stream="b"/></b></shop>'
)
SPREAD = {
    "join": ("match /shop[a/item/k/$x][b/item/k/$x] return $x", None),
    "time": ("match /shop[a/item/k/$x#s][b/item/k/$x#t] where t - s <= 5 return $x", None),
}
WHOLE = {"content": ("match /shop/a/item#i[k] return i.cont", None)}
VIEWS = {"bindings": SPREAD, "both": SPREAD | WHOLE, "messages": WHOLE}


class Sent(NamedTuple):
    stream: str
    xml: str
    time: float


@contextmanager
def one_file_a_partition(spark: Any) -> Iterator[None]:
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    before = {name: spark.conf.get(name) for name in names}
    for name in names:
        spark.conf.set(name, "1000000")
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def partitions(random: Random, count: int) -> list[list[Sent]]:
    """Four sequences, each in order of time but for some that are late; some nobody wants."""
    found: list[list[Sent]] = [[] for _ in range(4)]
    for number in range(count):
        time = float(number)
        if random.random() < 0.1:
            time = max(0.0, time - random.randrange(1, 40))
        key = f"<k>{random.randrange(count // 3)}</k>" if random.random() < 0.8 else "<other/>"
        xml = f"<item>{key}</item>"
        found[random.randrange(4)].append(Sent(random.choice("ab"), xml, time))
    return found


def reference(definition: Definition, given: Sequence[Sequence[Sent]]) -> tuple[Any, Counter[Sent]]:
    """The rows, and what was late."""
    taken, late = [], []
    for number, partition in enumerate(given):
        latest = 0.0
        for row, one in enumerate(partition):
            if one.time < latest:
                late.append(one)
            else:
                taken.append((one.time, one.stream, number, row, one))
            latest = max(latest, one.time)
    doc, sink = definition.make(), Collecting()
    for at, (*_, one) in enumerate(sorted(taken)):
        sink.write(at, doc.feed(one.stream, one.xml, at=one.time))
    return state_after(sink.changes), Counter(late)


@pytest.mark.parametrize(
    ("views", "state"),
    [("bindings", "driver"), ("bindings", "executors"), ("both", "driver"), ("messages", "driver")],
)
def test_partitions_are_sequences_and_dead_letters_are_kept_once(
    spark: Any, tmp_path: Path, views: str, state: str
) -> None:
    given = partitions(Random(4), 300)
    for number, partition in enumerate(given):
        lines = [json.dumps(one._asdict()) for one in partition]
        (tmp_path / f"{number}.json").write_text("\n".join(lines))
    definition = Definition(DOCUMENT, VIEWS[views])
    sink = Collecting()
    with one_file_a_partition(spark):
        frame = spark.readStream.schema(SCHEMA).json(str(tmp_path))
        assert spark.read.schema(SCHEMA).json(str(tmp_path)).rdd.getNumPartitions() == 4
        maintain(
            spark, definition, [frame], [sink], once=True, dead_letters=sink.refuse, state=state,
            report=sink.reports.append, buckets=2,
        ).wait()  # fmt: skip
    rows, late = reference(definition, given)
    assert state_after(sink.changes) == rows != Counter()
    refused = [one for each in sink.refused.values() for one in each]
    found = Counter((one.stream, one.content) for one in refused)
    assert found == Counter({(s.stream, s.xml): 0 for s in late} | Counter(
        (one.stream, one.xml) for one in late.elements()))  # fmt: skip
    assert len(refused) == sum(late.values()) == sum(len(r.refused) for r in sink.reports) > 20
    origins = {one.origin for one in refused}
    assert len(origins) == len(refused)
    assert all(origin.startswith("source 0, batch 0, partition ") for origin in origins)
