"""What a checkpoint was made for: the definition, the plan and the keys of its buckets.

It stands as `axlog.json` beside Spark's own files. A query that does not fit its checkpoint is
refused before it starts, saying what changed: engines are made from the definition, and state of
another one would be nonsense. Views that are added would lack what came before them; a new
checkpoint replays the sources from their beginning.

Paths with a scheme (`hdfs:`, `s3a:`, `file:`) go through Hadoop's file systems, as Spark's own do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from axlog.errors import PipelineError
from axlog.spark.definition import Definition
from axlog.spark.extracting import ASIDE
from axlog.spark.plan import SparkPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = "axlog.json"
_FORM = 2
_SALTS = 64


def settle(
    spark: SparkSession,
    place: str,
    definition: Definition,
    plan: SparkPlan,
    rest: Mapping[str, Any],
) -> dict[str, Any]:
    """What is written at a checkpoint: as it was found, if it fits, or newly made.

    `rest` is what else must stay the same from run to run.
    """
    wanted = {
        "form": _FORM,
        "definition": definition.plain(),
        "units": {u.name: [u.kind, u.buckets, u.key, list(u.views)] for u in plan.units},
        **rest,
    }
    found = _read(spark, place)
    if found is not None:
        known = json.loads(found)
        changed = list(differences(known, json.loads(json.dumps(wanted))))
        if changed:
            raise PipelineError(
                "AX855",
                f"the checkpoint {place} was made for another pipeline: {'; '.join(changed)}",
                advice="name a new checkpoint: the sources are read again from their beginning, "
                "so views that are new are filled; or put back what it was made for",
            )
        return dict(known)
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 2)
    wanted |= {"run": uuid4().hex, "keys": _keys(spark, plan, partitions)}
    _write(spark, place, json.dumps(wanted, indent=1))
    return wanted


def differences(known: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """What is not as it was, in words."""
    said: list[str] = []
    before, after = known.get("definition", {}), wanted["definition"]
    old, new = before.get("views", {}), after["views"]
    said += [f"the view {name!r} is new" for name in new if name not in old]
    said += [f"the view {name!r} is gone" for name in old if name not in new]
    said += [
        f"the view {name!r} has changed" for name in new if name in old and old[name] != new[name]
    ]
    for part in after:
        if part != "views" and before.get(part) != after[part]:
            said.append(f"its {part} has changed" if part in before else f"it has {part} now")
    for part in wanted:
        if part not in ("definition", "units") and known.get(part) != wanted[part]:
            said.append(f"{part} was {known.get(part)!r} and is {wanted[part]!r}")
    if not said and known.get("units") != wanted["units"]:
        said.append("the plan spreads it otherwise (buckets, cores, or another version)")
    return said


def _keys(spark: SparkSession, plan: SparkPlan, partitions: int) -> dict[str, str]:
    """A key for every bucket, such that Spark's hash deals them evenly to its partitions."""
    buckets = [(u.name, number) for u in plan.units for number in range(u.buckets)] + [(ASIDE, 0)]
    candidates = [(f"{u}/{n}/{salt}",) for u, n in buckets for salt in range(_SALTS)]
    table = spark.createDataFrame(candidates, "key string")
    hashed: dict[str, int] = dict(
        table.selectExpr("key", f"pmod(hash(key), {partitions})").collect()
    )
    return {
        f"{unit}/{number}": next(
            (
                key
                for salt in range(_SALTS)
                if hashed[key := f"{unit}/{number}/{salt}"] == at % partitions
            ),
            f"{unit}/{number}/0",
        )
        for at, (unit, number) in enumerate(buckets)
    }


def _read(spark: SparkSession, place: str) -> str | None:
    if "://" not in place and not place.startswith("file:"):
        path = Path(place) / FILE
        return path.read_text(encoding="utf-8") if path.exists() else None
    system, path = _hadoop(spark, place)
    if not system.exists(path):
        return None
    stream = system.open(path)
    try:
        return bytes(stream.readAllBytes()).decode()
    finally:
        stream.close()


def _write(spark: SparkSession, place: str, text: str) -> None:
    if "://" not in place and not place.startswith("file:"):
        Path(place).mkdir(parents=True, exist_ok=True)
        aside = Path(place) / f"{FILE}.part"
        aside.write_text(text, encoding="utf-8")
        aside.replace(Path(place) / FILE)
        return
    system, path = _hadoop(spark, place)
    stream = system.create(path, True)
    try:
        stream.write(bytearray(text.encode()))
    finally:
        stream.close()


def _hadoop(spark: SparkSession, place: str) -> tuple[Any, Any]:
    context: Any = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(place, FILE)
    return path.getFileSystem(context._jsc.hadoopConfiguration()), path
