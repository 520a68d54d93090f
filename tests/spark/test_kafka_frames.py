"""A topic of a broker as a DataFrame, by plain options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from axlog.spark import register


def test_a_topic_is_read_by_plain_options(spark: Any, brokers: str, tmp_path: Path) -> None:
    """At first, and by a query that goes on from its checkpoint."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": brokers})

    def send(numbers: range) -> None:
        for number in numbers:
            content = f"<m at='{number}'><k>{number}</k></m>"
            producer.produce("plain", content.encode(), partition=number % 3)
        assert producer.flush(30) == 0

    register(spark)
    options = {"kind": "kafka", "brokers": brokers, "topic": "plain", "stream": "m", "time": "@at",
               "limit": "40"}  # fmt: skip
    place = str(tmp_path / "checkpoint")

    def read_on() -> None:
        rows = spark.readStream.format("axlog").options(**options).load()
        writer = rows.writeStream.format("json").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", place).option("path", str(tmp_path / "out"))
        writer.start().awaitTermination()

    def found() -> list[tuple[str, str, str]]:
        rows = spark.read.json(str(tmp_path / "out")).collect()
        return sorted((row.stream, row.action, row.xml) for row in rows)

    for last in (100, 130):
        send(range(0 if last == 100 else 100, last))
        read_on()
        assert found() == sorted(
            ("m", "insert", f"<m at='{n}'><k>{n}</k></m>") for n in range(last)
        )
    assert spark.read.format("axlog").options(**options).load().count() == 130
