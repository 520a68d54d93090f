"""What a checkpoint was made for: the definition, the plan and the keys of its buckets.

It is stored as `axlog.json` beside Spark's own files. A query that does not fit its checkpoint is
refused before it starts, with the differences: engines are created from the definition, and the
state of another one would be meaningless. Views may be added and removed: an added view gets its
own engines, which are filled with the past input (`backfill.py`); the state of a removed view is
dropped in the next batch.

The numbers of buckets and of state partitions are chosen once, from the plan. They do not depend on
cores or machines, so a checkpoint continues on any number of them.

Paths with a scheme (`hdfs:`, `s3a:`, `file:`) use Hadoop's file systems, like Spark's own files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from axlog.connect.locations import is_address
from axlog.errors import PipelineError
from axlog.runtime.bucket_engines import Fill
from axlog.runtime.definition import Definition
from axlog.runtime.extraction import ASIDE
from axlog.runtime.hashing import hashed
from axlog.runtime.plan import BUCKETS, SparkPlan, Unit, make_plan
from axlog.runtime.state_placement import DRIVER, EXECUTORS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = "axlog.json"
_FORM = 8
_FREE = ("collect", "cache", "memory", "on_violation")
"""Settings of a definition that may change between runs."""
_RESCALING = "rescaling"
PARTITIONS = 4
"""State partitions of a new checkpoint, at most one per bucket: tasks of the stateful stage."""
_EVEN = 64
"""Keys spread buckets evenly over this number of state partitions, and over its divisors."""
_SALTS = 2048
_EARLIER = "an earlier version of axlog wrote it, with other buckets or parts of sources"
ANEW = (
    "use a new checkpoint: the sources are read again from their beginning, so new views"
    " are filled; or undo the change"
)


@dataclass(frozen=True)
class Settled:
    """The parameters of a query from its start."""

    run: str
    definition: Definition
    plan: SparkPlan
    keys: Mapping[str, str]  # of buckets, by their names: `number/salt`
    buckets: int  # of a view that can be partitioned
    partitions: int  # of the state
    mark: str = ""  # of the start that last added or removed views
    # by unit: the location of its past input
    fills: Mapping[str, Fill] = field(default_factory=dict)


Filling = Callable[[Settled, tuple[Unit, ...]], Mapping[str, Fill]]
"""Fills new units with the past input."""


def settle(
    spark: SparkSession,
    place: str,
    definition: Definition,
    rest: Mapping[str, Any],
    fill: Filling,
) -> Settled:
    """Return the content of a checkpoint: as found, if it fits, or new.

    `rest` is what else must not change between runs, such as documents and the place of state; its
    buckets and partitions are wishes, None if there are none.
    """
    found = _read(spark, place)
    if found is not None:
        return _taken_up(spark, place, definition, rest, json.loads(found), fill)
    on_driver = rest["state"] == DRIVER  # one process has all buckets
    count = rest["buckets"] or (1 if on_driver else BUCKETS)
    plan = make_plan(definition, count, rest["documents"] is not None, 1 if on_driver else None)
    partitions = min(plan.width, rest["partitions"] or PARTITIONS)
    made = Settled(uuid4().hex, definition, plan, bucket_keys(plan.width), count, partitions)
    _write(spark, place, _written(made, rest))
    return made


def _taken_up(
    spark: SparkSession,
    place: str,
    definition: Definition,
    rest: Mapping[str, Any],
    known: Mapping[str, Any],
    fill: Filling,
) -> Settled:
    """Return the content of an existing checkpoint, with the added views and without the removed
    ones.
    """
    if known.get("form") != _FORM:
        raise _refused(place, [_EARLIER])
    chosen = {name: known[name] for name in ("buckets", "partitions") if rest[name] is None}
    rest = {**rest, **chosen}
    rest = {**rest, "partitions": min(rest["partitions"], known["width"])}
    free = {name: getattr(definition, name) for name in _FREE}
    defaults = {"rejecting": [], "final_steps": True, "families": {}}
    stored = {**defaults, **known["definition"], **free}
    known = {**known, "definition": stored}
    wanted = {"form": _FORM, "definition": definition.plain(), **rest}
    changed = list(differences(known, json.loads(json.dumps(wanted))))
    has, wants = known["partitions"], rest["partitions"]
    if has != wants and len(changed) == 1:
        raise PipelineError(
            "AX855",
            f"the checkpoint {place} has {has} partitions of state, and {wants} are asked for",
            expected=f"partitions: {has}; axlog rescale --partitions {wants} changes them",
        )
    if changed:
        raise _refused(place, changed)
    before = Definition.read(known["definition"])
    groups = before.groups or (before.names,)
    added = tuple(view for view in definition.names if view not in before.names)
    if added and definition.rejecting:
        reason = f"the view {definition.rejecting[0]!r} rejects messages, and views were added"
        raise _refused(place, [reason])
    left = tuple(tuple(view for view in group if view in definition.names) for group in groups)
    definition = replace(definition, groups=(*left, added) if added else left)
    many = rest["documents"] is not None
    plan = make_plan(definition, known["buckets"], many, known["width"])
    units = {unit.name: unit for unit in plan.units}
    fresh = tuple(unit for name, unit in units.items() if set(unit.views) <= set(added))
    if any(
        known["units"].get(name) != _shape(unit)
        for name, unit in units.items()
        if unit not in fresh
    ):
        raise _refused(place, ["its partitioning differs (another version of axlog)"])
    settled = Settled(
        known["run"], definition, plan, known["keys"], known["buckets"], known["partitions"],
        known["mark"], {unit: Fill(*each) for unit, each in known["fills"].items()},
    )  # fmt: skip
    if not added and left == groups:
        return settled
    settled = replace(settled, mark=uuid4().hex)
    if fresh:
        settled = replace(settled, fills={**settled.fills, **fill(settled, fresh)})
    _write(spark, place, _written(settled, rest))
    return settled


def _refused(place: str, changed: Iterable[str]) -> PipelineError:
    return PipelineError(
        "AX855",
        f"the checkpoint {place} was made for another pipeline: {'; '.join(changed)}",
        advice=ANEW,
    )


def _written(settled: Settled, rest: Mapping[str, Any]) -> str:
    saved = {
        "form": _FORM,
        "definition": settled.definition.plain(),
        "units": {unit.name: _shape(unit) for unit in settled.plan.units},
        **rest,
        "buckets": settled.buckets,
        "width": settled.plan.width,
        "partitions": settled.partitions,
        "run": settled.run,
        "keys": settled.keys,
        "mark": settled.mark,
        "fills": settled.fills,
    }
    return json.dumps(saved, indent=1)


def _shape(unit: Unit) -> list[Any]:
    """Return what state depends on; views that a unit no longer has are skipped."""
    shape = [unit.kind, unit.buckets, unit.key]
    return shape if unit.cut is None else [*shape, unit.by_message, unit.cut.what]


def differences(known: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Describe the differences, except added and removed views."""
    found: list[str] = []
    before, after = known.get("definition", {}), wanted["definition"]
    old = {**before.get("views", {}), **before.get("families", {})}
    new = {**after["views"], **after["families"]}
    found += [
        f"the view {name!r} has changed" for name in new if name in old and old[name] != new[name]
    ]
    for part in after:
        if part not in ("views", "groups", "families") and before.get(part) != after[part]:
            found.append(f"its {part} has changed" if part in before else f"it has {part} now")
    for part in wanted:
        if part != "definition" and known.get(part) != wanted[part]:
            found.append(f"{part} was {known.get(part)!r} and is {wanted[part]!r}")
    return found


def stored_definition(spark: SparkSession, place: str) -> Definition | None:
    """Return the definition of a checkpoint; None if there is none, or if it is refused later."""
    found = json.loads(_read(spark, place) or "{}")
    return Definition.read(found["definition"]) if found.get("form") == _FORM else None


def state_of(spark: SparkSession, place: str) -> str | None:
    """Return where the state of a checkpoint lives; None if there is no checkpoint yet."""
    found = _read(spark, place)
    return None if found is None else str(json.loads(found).get("state", EXECUTORS))


@dataclass(frozen=True)
class Shape:
    """How the state of a checkpoint is spread."""

    state: str
    width: int  # its buckets
    partitions: int
    rescaling: Rescaling | None = None  # one that has begun


class Rescaling(NamedTuple):
    """A change of the number of partitions that has begun."""

    partitions: int
    version: int | None  # of the driver's state before; None if it has none


def shape_of(spark: SparkSession, place: str) -> Shape | None:
    """Return how the state of a checkpoint is spread; None if there is no checkpoint yet."""
    found = _read(spark, place)
    if found is None:
        return None
    known = json.loads(found)
    if known.get("form") != _FORM:
        raise _refused(place, [_EARLIER])
    begun = known.get(_RESCALING)
    shape = Shape(known["state"], known["width"], known["partitions"])
    return shape if begun is None else replace(shape, rescaling=Rescaling(*begun))


def record_rescaling(spark: SparkSession, place: str, begun: Rescaling) -> None:
    """Record that the number of partitions is being changed."""
    known = json.loads(_read(spark, place) or "{}")
    _write(spark, place, json.dumps({**known, _RESCALING: begun}, indent=1))


def record_partitions(spark: SparkSession, place: str, partitions: int) -> None:
    """Record the number of state partitions, and that nothing is changing it."""
    known = json.loads(_read(spark, place) or "{}")
    known.pop(_RESCALING, None)
    _write(spark, place, json.dumps({**known, "partitions": partitions}, indent=1))


def bucket_keys(width: int) -> dict[str, str]:
    """Return a key for every bucket, such that Spark's hash distributes them evenly."""
    return {name: _key(name, at) for at, name in enumerate([*map(str, range(width)), ASIDE])}


def _key(name: str, at: int) -> str:
    salted = (f"{name}/{salt}" for salt in range(_SALTS))
    return next((key for key in salted if hashed(key) % _EVEN == at % _EVEN), f"{name}/0")


def _read(spark: SparkSession, place: str) -> str | None:
    if not is_address(place):
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
    if not is_address(place):
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
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    context: Any = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(place, FILE)
    try:
        return path.getFileSystem(context._jsc.hadoopConfiguration()), path
    except Py4JJavaError as error:
        raise PipelineError(
            "AX866",
            f"{place}: {error.java_exception.getMessage()}",
            expected="a path, or an address of a file system that this Spark has",
            advice="name its class and jar: settings: {spark: {spark.jars.packages: ...}}",
        ) from None
