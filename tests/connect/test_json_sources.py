"""`format: json`: every source whose messages are its own reads JSON as it reads XML."""

import json
from pathlib import Path
from typing import Any

import pytest

from axlog.connect.kinds import Origin
from axlog.connect.protocol import Reading
from axlog.errors import AxlogError
from axlog.pipeline import kinds

FIRST = '<order><oid type="number">1</oid><at>2026-01-01</at></order>'
ORDERS = [{"oid": 1, "at": "2026-01-01"}, {"oid": 2, "at": "2026-01-02"}]


def read(kind: str, place: Path, stream: str | None = "orders", **options: Any) -> Reading:
    found = kinds.source_kind(kind)
    given = found.options.model_validate(options)
    source = found.make(given, Origin(directory=place, stream=stream))
    reading = source.read(None, 10)
    source.close()
    return reading


def contents(reading: Reading) -> list[tuple[str, Any]]:
    assert reading.refused == []
    return [
        (c.decode() if isinstance(c, bytes) else c, u.at)
        for u in reading.updates
        for c in [u.content]
    ]


def test_files_of_objects_and_of_arrays(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(ORDERS[0]), encoding="utf-8")
    (tmp_path / "b.json").write_text(json.dumps(ORDERS), encoding="utf-8")
    (tmp_path / "c.xml").write_text("<not-read/>", encoding="utf-8")
    found = contents(read("directory", tmp_path, path=".", format="json", element="order",
                          time="at"))  # fmt: skip
    assert found[0] == found[1] == (FIRST, "2026-01-01")
    assert [at for _, at in found] == ["2026-01-01", "2026-01-01", "2026-01-02"]
    with pytest.raises(AxlogError) as caught:
        read("directory", tmp_path, path=".", format="json", record="order")
    assert caught.value.code == "AX852"


def test_lines_of_objects(tmp_path: Path) -> None:
    lines = "".join(json.dumps(order) + "\n" for order in ORDERS)
    (tmp_path / "orders.jsonl").write_text(lines + "{oid: 3}\n", encoding="utf-8")
    reading = read("jsonl", tmp_path, path="orders.jsonl", format="json", element="order",
                   time="at")  # fmt: skip
    assert reading.updates[0].content == FIRST
    assert [u.at for u in reading.updates] == ["2026-01-01", "2026-01-02"]
    assert ["AX106" in refusal.error for refusal in reading.refused] == [True]
    with pytest.raises(AxlogError):
        read("jsonl", tmp_path, None, path="orders.jsonl", format="json")


def test_updates_with_objects(tmp_path: Path) -> None:
    lines = json.dumps({"insert": {"order": ORDERS[0]}, "at": 3}) + "\n"
    (tmp_path / "updates.jsonl").write_text(lines, encoding="utf-8")
    assert contents(read("jsonl", tmp_path, path="updates.jsonl")) == [(FIRST, 3)]
    updates = [{"insert": {"order": ORDERS[0]}, "at": 3}]
    assert contents(read("memory", tmp_path, updates=updates)) == [(FIRST, 3)]


def test_polled_files_and_documents(tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "orders.json").write_text(json.dumps(ORDERS), encoding="utf-8")
    ((folder, _),) = contents(read("folder", tmp_path, path="all", format="json", element="order"))
    assert FIRST in folder
    records = contents(read("document", tmp_path, url="all/orders.json", format="json",
                            element="order", by="oid"))  # fmt: skip
    assert [FIRST in xml for xml, _ in records] == [True, False]
    (tmp_path / "page.json").write_text(json.dumps({"next": None, "orders": ORDERS}), "utf-8")
    records = contents(read("document", tmp_path, url="page.json", format="json", record="orders"))
    assert len(records) == 2


def test_topics_of_objects(brokers: str, tmp_path: Path) -> None:
    import confluent_kafka

    producer = confluent_kafka.Producer({"bootstrap.servers": brokers})
    for order in ORDERS:
        producer.produce("json-orders", json.dumps(order))
    producer.produce("json-orders", "<order/>")
    producer.flush(30)
    reading = read("kafka", tmp_path, brokers=brokers, topic="json-orders", format="json",
                   element="order", time="at", wait=30)  # fmt: skip
    assert FIRST.encode() in [u.content for u in reading.updates]
    assert len(reading.updates) == 2
    assert ["AX106" in refusal.error for refusal in reading.refused] == [True]
