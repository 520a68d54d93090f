"""Change the number of state partitions of a stopped query.

State partitions are the tasks of the stateful stage: more of them use more cores, fewer cost less
per batch. Buckets move between them as they are, so there are at most as many partitions as buckets
(`settings: {buckets: N}` of a new checkpoint). Spark moves the state itself, as one batch without
input, with its `StreamingCheckpointManager` (experimental in PySpark 4.3).

A rescale records first what it does. If it is interrupted, the next start of the query, or the next
rescale, finishes it: Spark starts no query from a checkpoint whose state it has begun to move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axlog.connect.locations import is_address
from axlog.errors import PipelineError
from axlog.runtime.driver_buckets import durable_state, has_durable_state
from axlog.runtime.state_placement import DRIVER
from axlog.spark.checkpoint import (
    Rescaling,
    record_partitions,
    record_rescaling,
    shape_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DONE = "SHUFFLE_PARTITIONS_ALREADY_MATCH"
"""Spark's word for a repartitioning that has nothing to do."""


def rescale(spark: SparkSession, checkpoint: str, partitions: int) -> int:
    """Give the state of a stopped query another number of partitions; return the number before.

    - `checkpoint` is that of `maintain`; nothing may be running with it.
    - `partitions` is at most the number of buckets that the checkpoint was made with.
    """
    shape = shape_of(spark, checkpoint)
    if shape is None:
        raise PipelineError(
            "AX855", f"there is no checkpoint at {checkpoint}", advice="run the pipeline first"
        )
    if shape.state == DRIVER:
        raise PipelineError(
            "AX855",
            f"the state of {checkpoint} is on the driver, which has no partitions",
            advice="use a new checkpoint with settings: {state: executors}",
        )
    if not 1 <= partitions <= shape.width:
        raise PipelineError(
            "AX855",
            f"{partitions} partitions for {shape.width} buckets",
            expected=f"1 to {shape.width} partitions",
            advice="a new checkpoint with settings: {buckets: N} has more buckets",
        )
    if shape.rescaling is not None:
        finish_rescaling(spark, checkpoint)
        return rescale(spark, checkpoint, partitions)
    if partitions == shape.partitions:
        return shape.partitions
    has_steps = not is_address(checkpoint) and has_durable_state(checkpoint)
    begun = Rescaling(partitions, _version(checkpoint) if has_steps else None)
    record_rescaling(spark, checkpoint, begun)
    try:
        _move(spark, checkpoint, begun)
    except PipelineError:
        record_partitions(spark, checkpoint, shape.partitions)
        raise
    return shape.partitions


def finish_rescaling(spark: SparkSession, checkpoint: str) -> None:
    """Finish a rescale of a checkpoint that was interrupted, if there is one."""
    shape = shape_of(spark, checkpoint)
    if shape is not None and shape.rescaling is not None:
        _move(spark, checkpoint, shape.rescaling)


def _move(spark: SparkSession, checkpoint: str, begun: Rescaling) -> None:
    if begun.version is not None:
        _skip_a_batch(checkpoint, begun.version)
    _repartition(spark, checkpoint, begun.partitions)
    record_partitions(spark, checkpoint, begun.partitions)


def _repartition(spark: SparkSession, checkpoint: str, partitions: int) -> None:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    found: Any = spark
    try:
        found._streamingCheckpointManager.repartition(checkpoint, partitions)
    except (PySparkException, Py4JJavaError) as error:  # not all of these errors are converted
        said = str(getattr(error, "java_exception", error))
        if _DONE in said:
            return
        raise PipelineError(
            "AX855",
            f"Spark cannot repartition {checkpoint}: {said.splitlines()[0]}",
            advice="finish the last batch (axlog run PIPELINE --once), stop the query, try again",
        ) from error


def _version(checkpoint: str) -> int:
    """The last batch of the final steps on the driver, which must be finished."""
    state = durable_state(checkpoint)
    try:
        if state.unfinished() is not None:
            raise PipelineError(
                "AX855",
                f"the last batch of {checkpoint} was interrupted",
                advice="finish it (axlog run PIPELINE --once), then try again",
            )
        return state.version
    finally:
        state.close()


def _skip_a_batch(checkpoint: str, version: int) -> None:
    """Let the final steps on the driver expect the batch after the one that moves the state.

    If Spark does not move it, the next start goes back to the state before.
    """
    state = durable_state(checkpoint)
    try:
        state.unfinished()  # restores it; a batch that was skipped only by half is skipped again
        if state.version == version:
            state.begin(version + 1, [])
            state.commit()
    finally:
        state.close()
