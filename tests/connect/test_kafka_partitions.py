"""A topic of several partitions: every message is taken once, on both engines, across restarts.

Spark plans a batch on the driver and reads it in tasks, so a batch is a range of offsets of each
partition. Each partition is one sequence: messages of different partitions are merged by time, and
a message is late only after a later one of its own partition.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from axlog.connect.kinds import Origin
from axlog.connect.protocol import Load, Planned
from axlog.connect.sources.kafka import KafkaOptions, KafkaSource
from axlog.errors import ConnectorError
from axlog.pipeline.loader import load
from axlog.runtime import embedded
from axlog.spark import pipeline as on_spark

PIPELINE = """
engine: {engine}
document: <w xmlns:ax="urn:axlog"><ax:call stream="s"/></w>
streams:
  s: {{source: {{kind: kafka, brokers: "{brokers}", topic: "{topic}", time: "@at", wait: 10s}}}}
views:
  ids: {{query: "match /w/m/k/$x return $x", sinks: [log]}}
  pairs: {{query: "match /w/m#m[k/$x][v/$v] return $x, $v, m.time", sinks: [log]}}
sinks:
  log: {{kind: jsonl, path: "{engine}/log.jsonl"}}
dead_letters: {{kind: jsonl, path: "{engine}/dead.jsonl"}}
settings: {{batch: 70, checkpoint: "{engine}/state", hold: {hold}, state: {state}}}
"""


def message(number: int, at: int) -> bytes:
    return f'<m at="{at}"><k>{number}</k><v>{number % 7}</v></m>'.encode()


def send(brokers: str, topic: str, sent: Sequence[tuple[int, bytes]]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": brokers})
    for partition, content in sent:
        producer.produce(topic, content, partition=partition)
    assert producer.flush(30) == 0


def dealt(random: Random, numbers: range) -> list[tuple[int, bytes]]:
    """Messages in order of time, dealt to partitions of unequal length."""
    return [(random.choice((0, 0, 0, 1, 2, 2, 3)), message(n, n)) for n in numbers]


def lines(path: Path) -> Iterator[Any]:
    return map(json.loads, path.read_text().splitlines()) if path.exists() else iter(())


def left_by(place: Path) -> dict[str, Counter[str]]:
    log = [json.dumps([c["view"], c["op"], c["row"]], sort_keys=True)
           for c in lines(place / "log.jsonl")]  # fmt: skip
    dead = [json.dumps([c["row"][name] for name in ("stream", "origin", "content")])
            for c in lines(place / "dead.jsonl")]  # fmt: skip
    return {"log": Counter(log), "dead": Counter(dead)}


def run(place: Path, engine: str, brokers: str, topic: str, state: str = "auto") -> None:
    """Take what is there; a second time, what came since."""
    (place / engine).mkdir(exist_ok=True)
    path = place / f"{engine}.yaml"
    path.write_text(
        PIPELINE.format(engine=engine, brokers=brokers, topic=topic, state=state, hold=0.1)
    )
    (embedded.run if engine == "embedded" else on_spark.run)(load(str(path)), once=True)


def parts(random: Random) -> list[list[tuple[int, bytes]]]:
    """What comes before a restart, and after it; with some that are late in their partition."""
    first, second = dealt(random, range(1, 160)), dealt(random, range(160, 240))
    late = [(partition, message(10_000 + partition, 5)) for partition in range(4)]
    return [[*first, *late, (1, b"<m>")], second]


def expected(sent: Sequence[Sequence[tuple[int, bytes]]]) -> dict[str, Counter[str]]:
    """Every message once: in the views, or among the dead letters."""
    from lxml import etree

    log: Counter[str] = Counter()
    dead: Counter[str] = Counter()
    offsets: Counter[int] = Counter()
    for partition, content in (one for part in sent for one in part):
        origin = f"t/{partition}@{offsets[partition]}"
        offsets[partition] += 1
        text = content.decode()
        if text == "<m>" or "<k>1000" in text:
            dead[json.dumps(["s", origin, text])] += 1
            continue
        root = etree.fromstring(text)
        x, v, at = root.findtext("k"), root.findtext("v"), int(root.get("at") or 0)
        pair = {"x": x, "v": v, "m.time": at}
        log[json.dumps(["ids", "insert", {"x": x}], sort_keys=True)] += 1
        log[json.dumps(["pairs", "insert", pair], sort_keys=True)] += 1
    return {"log": log, "dead": dead}


def test_embedded_takes_every_message_of_four_partitions_once(tmp_path: Path, brokers: str) -> None:
    sent = parts(Random(1))
    for part in sent:
        send(brokers, "t", part)
        run(tmp_path, "embedded", brokers, "t")
    assert left_by(tmp_path / "embedded") == expected(sent)


@pytest.mark.spark
@pytest.mark.system
def test_spark_takes_every_message_of_four_partitions_once(
    spark: Any, tmp_path: Path, brokers: str
) -> None:
    """With the state on the driver; `tests/lab/test_spark_law.py` has Kafka with executors."""
    sent = parts(Random(1))
    topic = "t-spark"
    for part in sent:
        send(brokers, topic, part)
        run(tmp_path, "spark", brokers, topic, "driver")
    found = left_by(tmp_path / "spark")
    found["dead"] = Counter({one.replace(topic, "t"): n for one, n in found["dead"].items()})
    assert found == expected(sent)


def source(brokers: str, topic: str) -> KafkaSource:
    options = KafkaOptions(brokers=brokers, topic=topic, time="@at", wait=10)
    return KafkaSource(options, Origin(stream="s"))


@pytest.mark.system
def test_a_range_of_offsets_is_read_again_whatever_came_since(brokers: str) -> None:
    send(brokers, "again", dealt(Random(3), range(300)))
    driver, task = source(brokers, "again"), source(brokers, "again")
    assert isinstance(task, Planned)
    position, taken = None, []
    while (plan := driver.plan(position, Load(90, 2))).parts:
        send(brokers, "again", [(0, message(-1, 1000)), (3, message(-1, 1000))] * 2)
        count = 0
        for part in plan.parts:
            again = task.fetch(part.work)
            assert len(again.updates) == part.size
            taken += [update.origin for update in again.updates]
            count += part.size
        position = plan.position
        if count < 90 and len(taken) > 320:
            break
    assert len(taken) == len(set(taken)) > 300
    every = driver.read(position, 1000)
    assert not {update.origin for update in every.updates} & set(taken)
    for each in (driver, task):
        each.close()


def test_a_reading_takes_from_all_partitions_alike(brokers: str) -> None:
    """One that is long does not hide what the others have."""
    send(brokers, "fair", [(0, message(n, n)) for n in range(500)])
    send(brokers, "fair", [(p, message(n, n)) for n in range(10) for p in (1, 3)])
    one = source(brokers, "fair")
    reading = one.read(None, 100)
    assert len(reading.updates) == 100
    assert Counter(reading.partitions) == {0: 80, 1: 10, 3: 10}
    assert reading.waiting == {0: True, 1: False, 2: False, 3: False}
    one.close()


def test_offsets_that_the_topic_does_not_have_are_reported(brokers: str) -> None:
    send(brokers, "short", [(0, message(1, 1))])
    one = source(brokers, "short")
    with pytest.raises(ConnectorError, match="partition 0 ends at 1, and 5 were read before"):
        one.read({"0": 5}, 10)
    one.close()
