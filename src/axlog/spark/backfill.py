"""Fill views that are added to a checkpoint with the past input.

A Spark job reads the sources again from their beginning to the end of the last batch (`past.py`),
for the new views only. Its output is the packets that their buckets would have received, stored as
Parquet beside the checkpoint. A new bucket applies them with its first batch after that one, so its
rows are changes of that batch, and a repeated batch finds the same packets. If Spark repeats the
last batch itself, because it had not committed it, new buckets skip it: their past includes it.

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
from axlog.runtime.bucket_engines import Fill
from axlog.runtime.bucket_tuner import forget
from axlog.runtime.past import End, read_past
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
) -> Mapping[str, Fill]:
    """Write the past input of new units; return its location by unit ('' if there is none), and the
    last batch that it includes.

    `extract` is the stateless half of the pipeline, for these units.
    """
    if is_address(place):
        raise PipelineError(
            "AX855", f"views cannot be added to {place}: it is not a local path", advice=ANEW
        )
    past = read_past(place)
    forget(place)  # existing filters were computed without these views
    if past.batch < 0:
        return {unit.name: Fill("", past.batch) for unit in units}
    views = ", ".join(view for unit in units for view in unit.views)
    horizon = settled.definition.horizon()
    frames = [
        _past(spark, views, at, source, past.ends.get(at, End(None, 0)), horizon)
        for at, source in enumerate(sources)
    ]
    target = str(Path(place) / "filling" / settled.mark)
    packets: DataFrame = extract(frames)
    packets.write.mode("overwrite").parquet(target)
    return {unit.name: Fill(target, past.batch) for unit in units}


def _past(
    spark: SparkSession, views: str, index: int, source: Any, end: End, horizon: Horizon
) -> DataFrame:
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


def _cuts(source: Source, views: str, index: int, end: End) -> list[list[Any]]:
    """Return the parts from the beginning to an end."""
    position, number, cuts = None, 0, []
    if isinstance(source, Planned) and end.number:
        return _parts(source, views, index, end.position)
    while number < end.number:
        try:
            reading = source.read(position, min(PART, end.number - number))
        except (AxlogError, OSError) as error:
            raise _lost(views, index, str(error)) from None
        count = len(reading.updates) + len(reading.refused)
        if not count:
            raise _lost(views, index, f"it has {number} of {end.number} messages")
        cuts.append(Cut([position, count], count, number).plain())
        position, number = reading.position, number + count
    if number and json.dumps(position) != json.dumps(end.position):
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
