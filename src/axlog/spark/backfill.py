"""Fill views that are added to a checkpoint with the past input.

A Spark job reads the sources again from their beginning up to the end of the last finished batch,
for the new views only. Its output is the packets that their buckets would have received, stored as
Parquet beside the checkpoint. A new bucket applies them with its first batch, so its rows are
changes of that batch, and a repeated batch finds the same packets.

A source still has its beginning if, after the same number of messages, it is at the same position
as before. Otherwise (a queue that dropped messages, a file that was rewritten), for a DataFrame of
the user, or for a checkpoint in another file system, the start is refused with advice.

The past is processed in the order of time, as one batch: messages that were late then are in their
place now.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axlog.connect.locations import is_address
from axlog.connect.protocol import PART, Load, Planned, Source
from axlog.document.clock_bounds import Horizon
from axlog.errors import AxlogError, PipelineError
from axlog.runtime.bucket_tuner import forget
from axlog.runtime.plan import Unit
from axlog.spark.checkpoint import ANEW, Settled
from axlog.spark.sources import Cut, made_of, span_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def fill(
    spark: SparkSession,
    place: str,
    sources: Sequence[Any],
    settled: Settled,
    units: Sequence[Unit],
    extract: Any,
) -> Mapping[str, str]:
    """Write the past input of new units; return its location by unit ('' if there is none).

    `extract` is the stateless half of the pipeline, for these units.
    """
    ends = committed(place)
    forget(place)  # existing filters were computed without these views
    if ends is None:
        return {unit.name: "" for unit in units}
    views = ", ".join(view for unit in units for view in unit.views)
    horizon = settled.definition.horizon()
    frames = [
        _past(spark, views, at, source, ends[at], horizon) for at, source in enumerate(sources)
    ]
    target = str(Path(place) / "filling" / settled.mark)
    packets: DataFrame = extract(frames)
    packets.write.mode("overwrite").parquet(target)
    return {unit.name: target for unit in units}


def committed(place: str) -> list[dict[str, Any]] | None:
    """Return the offset of every source after the last finished batch; None before the first."""
    if is_address(place):
        raise PipelineError(
            "AX855", f"views cannot be added to {place}: it is not a local path", advice=ANEW
        )
    done = last_done(place)
    if done is None:
        return None
    lines = (Path(place) / "offsets" / str(done)).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[2:]]


def last_done(place: str) -> int | None:
    """Return the last batch that Spark has committed."""
    return max((int(p.name) for p in (Path(place) / "commits").glob("[0-9]*")), default=None)


def _past(
    spark: SparkSession, views: str, index: int, source: Any, end: Mapping[str, Any],
    horizon: Horizon,
) -> DataFrame:  # fmt: skip
    """Return the past messages of a source as a DataFrame; dates are checked again."""
    from pyspark.sql import DataFrame

    if isinstance(source, DataFrame):
        raise _lost(views, index, "it is a DataFrame, which cannot be read twice")
    make = made_of(source)
    opened = make()
    try:
        return span_of(spark, make, index, _cuts(opened, views, index, end), horizon)
    finally:
        opened.close()


def _parts(source: Planned, views: str, index: int, end: Any) -> list[list[Any]]:
    """Return the parts up to a position of a planned source."""
    try:
        plan = source.plan(None, Load(PART), end)
    except (AxlogError, OSError) as error:
        raise _lost(views, index, str(error)) from None
    cuts, number = [], 0
    for part in plan.parts:
        cuts.append(Cut(part.work, part.size, number).plain())
        number += part.size
    return cuts


def _cuts(source: Source, views: str, index: int, end: Mapping[str, Any]) -> list[list[Any]]:
    """Return the parts from the beginning to an offset."""
    position, number, cuts = None, 0, []
    if isinstance(source, Planned) and end["number"]:
        return _parts(source, views, index, json.loads(end["position"]))
    while number < end["number"]:
        try:
            reading = source.read(position, min(PART, end["number"] - number))
        except (AxlogError, OSError) as error:
            raise _lost(views, index, str(error)) from None
        count = len(reading.updates) + len(reading.refused)
        if not count:
            raise _lost(views, index, f"it has {number} of {end['number']} messages")
        cuts.append(Cut([position, count], count, number).plain())
        position, number = reading.position, number + count
    if number and json.dumps(position) != end["position"]:
        raise _lost(views, index, f"it is not where it was after {number} messages")
    return cuts


def _lost(views: str, index: int, why: str) -> PipelineError:
    return PipelineError(
        "AX855",
        f"the views {views} are new, and source {index} has not kept what they need: {why}",
        advice=ANEW,
    )


def past_packets(place: str, key: str) -> list[bytes]:
    """Return the packets that a bucket would have received."""
    import pyarrow.dataset as ds

    if not place:
        return []
    found = ds.dataset(place, format="parquet").to_table(filter=ds.field("bucket") == key)
    return [bytes(body) for body in found["body"].to_pylist()]
