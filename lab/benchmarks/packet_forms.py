"""Packets of bindings in three forms: bytes and processor time of a message, both ways.

    python -m lab.benchmarks.packet_forms

The packets are those of the order monitor in 16 buckets, cut into sizes. Each form must give back
the same tuples and dictionaries, because joins read them. Arrow has a column for each value, and a
list of rows with a column for each of their values for each relation.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable
from itertools import pairwise
from time import process_time
from typing import Any

import pyarrow as pa

import axlog
from axlog.document.stream_update import StreamUpdate
from axlog.document.times import microseconds
from axlog.runtime import packet_format
from axlog.runtime.definition import Definition
from axlog.runtime.extraction import Extractor, Message
from axlog.runtime.past import NOTHING
from axlog.runtime.plan import make_plan
from axlog.samples import orders

MESSAGES = 10_000
_FIRST = ("time", "place", "number", "origin")
Packet = dict[tuple[Any, ...], list[tuple[Any, ...]]]
"""The rows of one stream, by what they share."""


def packets(size: int) -> list[Packet]:
    """The packets of the order monitor, with at most so many messages each."""
    document = axlog.parse(orders.DOCUMENT, views={"late": orders.LATE}, facts=orders.KEYS)
    definition = Definition.of(document)
    extractor = Extractor(definition, make_plan(definition, 16))
    extractor.past = NOTHING
    sent = [StreamUpdate.of(each) for each in orders.messages(MESSAGES, seed=1, rate=0.002)]
    made = [
        Message(
            0, u.stream, u.action, str(u.content).encode(), microseconds(u.at or 0), at, f"{at}"
        )
        for at, u in enumerate(sent)
    ]
    by_stream: Packet = {}
    for routes in extractor.extract(made).plain.values():
        for shared, rows in routes.items():
            by_stream.setdefault(tuple(shared), []).extend(rows)
    return [
        {shared: rows[at : at + size]}
        for shared, rows in by_stream.items()
        for at in range(0, len(rows), size)
    ]


def to_arrow(packet: Packet) -> bytes:
    ((shared, rows),) = packet.items()
    times, places, numbers, bags, origins = zip(*rows, strict=True)
    columns: list[Any] = [pa.array(each) for each in (times, places, numbers, origins)]
    for relation in range(len(bags[0])):
        each = [one[relation] for one in bags]
        offsets = [0]
        for bag in each:
            offsets.append(offsets[-1] + len(bag))
        found = [(*row, count) for bag in each for row, count in bag.items()]
        values = [pa.array(column) for column in zip(*found, strict=True)] or [pa.nulls(0)]
        inside = pa.StructArray.from_arrays(values, [str(at) for at in range(len(values))])
        columns.append(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inside))
    names = [*_FIRST, *(f"bag {at}" for at in range(len(bags[0])))]
    batch = pa.RecordBatch.from_arrays(columns, names)
    batch = batch.replace_schema_metadata({"shared": json.dumps(shared)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    made: bytes = sink.getvalue().to_pybytes()
    return made


def from_arrow(written: bytes) -> Packet:
    batch = pa.ipc.open_stream(written).read_next_batch()
    shared = tuple(json.loads(batch.schema.metadata[b"shared"]))
    times, places, numbers, origins = (batch.column(at).to_pylist() for at in range(len(_FIRST)))
    relations: list[list[dict[Any, Any]]] = []
    for at in range(len(_FIRST), batch.num_columns):
        lists = batch.column(at)
        fields = [
            lists.values.field(n).to_pylist() for n in range(lists.type.value_type.num_fields)
        ]
        rows, counts = list(zip(*fields[:-1], strict=True)), fields[-1]
        ends = lists.offsets.to_pylist()
        relations.append(
            [dict(zip(rows[a:z], counts[a:z], strict=True)) for a, z in pairwise(ends)]
        )
    bags = zip(*relations, strict=True)
    return {shared: list(zip(times, places, numbers, bags, origins, strict=True))}


FORMS: dict[str, tuple[Callable[[Packet], bytes], Callable[[bytes], Packet]]] = {
    "marshal": (lambda packet: marshal.dumps(packet, 4), marshal.loads),
    "packet_format": (packet_format.write, packet_format.read),
    "arrow": (to_arrow, from_arrow),
}


def main() -> None:
    """Print bytes and microseconds of a message, by size and form; the best of three runs."""
    for size in (1, 10, 100, 1000):
        made = packets(size)[:2000]
        count = sum(len(rows) for each in made for rows in each.values())
        for name, (write, read) in FORMS.items():
            writing, reading, written = [], [], list[bytes]()
            for _ in range(3):
                began = process_time()
                written = [write(each) for each in made]
                middle = process_time()
                again = [read(each) for each in written]
                writing.append(middle - began)
                reading.append(process_time() - middle)
                if again != made:
                    raise AssertionError(f"{name} gives back other values")
            weight = sum(map(len, written)) / count
            figures = [min(each) / count * 1e6 for each in (writing, reading)]
            print(
                f"{size:5} {name:14} {weight:6.0f} bytes, {figures[0]:6.2f} + {figures[1]:6.2f} us"
            )


if __name__ == "__main__":
    main()
