"""The on-time view written by hand for Spark, for comparison (F23). Frozen: do not tune it.

This is what an engineer without axlog writes: parse with lxml in `mapInArrow`, spread by a hash of
the order's number, and join in `applyInPandasWithState`, with the open orders and shipments of a
bucket as one pickled state. It has the guarantees of a Spark query (state and offsets in the
checkpoint) and the same output. It keeps orders and shipments that found no partner forever, knows
no deadlines, no late messages and no dead letters.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pandas as pd
import pyarrow as pa
from lxml import etree

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BUCKETS = 4
_SCHEMA = pa.schema(
    [("bucket", pa.int32()), ("x", pa.string()), ("is_order", pa.bool_()), ("time", pa.float64())]
)


def parse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The wanted orders, and all shipments."""
    for batch in batches:
        found: list[tuple[int, str, bool, float]] = []
        columns = (batch.column(name).to_pylist() for name in ("stream", "xml", "time"))
        for stream, xml, time in zip(*columns, strict=True):
            root = etree.fromstring(xml)
            is_order = stream == "orders"
            if is_order and (
                root.findtext("client") != "INRIA" or root.find("details/computer") is None
            ):
                continue
            x = root.findtext("oid") or ""
            found.append((crc32(x.encode()) % BUCKETS, x, is_order, time))
        lists = list(zip(*found, strict=True)) if found else [()] * 4
        arrays = [pa.array(c, f.type) for c, f in zip(lists, _SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def on_time(frame: DataFrame, within: int) -> DataFrame:
    """The on-time orders of a streaming DataFrame with `stream`, `xml` and `time`."""

    def join(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        orders, shipments = pickle.loads(state.get[0]) if state.exists else ({}, {})
        rows = []
        for one in frames:
            for x, is_order, time in zip(one["x"], one["is_order"], one["time"], strict=True):
                (orders if is_order else shipments)[x] = time
                is_pair = x in orders and x in shipments
                if is_pair and shipments.pop(x) - orders.pop(x) <= within:
                    rows.append(x)
        state.update((pickle.dumps((orders, shipments)),))
        yield pd.DataFrame({"x": rows})

    parsed = frame.mapInArrow(parse, "bucket int, x string, is_order boolean, time double")
    return parsed.groupBy("bucket").applyInPandasWithState(
        join, "x string", "state binary", "append", "NoTimeout"
    )
