"""Change the number of state partitions of a stopped query.

State partitions are the tasks of the stateful stage: more of them use more cores, fewer cost less
per batch. Buckets move between them as they are, so there are at most as many partitions as buckets
(`settings: {buckets: N}` of a new checkpoint). Spark moves the state itself, as one batch without
input, with its `StreamingCheckpointManager` (experimental in PySpark 4.3).

A rescale that is interrupted leaves a checkpoint that continues as before, or with the new number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axlog.connect.locations import is_address
from axlog.errors import PipelineError
from axlog.runtime.driver_buckets import durable_state, has_durable_state
from axlog.runtime.state_placement import DRIVER
from axlog.spark.checkpoint import repartitioned, shape_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    if partitions == shape.partitions:
        return shape.partitions
    if not is_address(checkpoint):
        _skip_a_batch(checkpoint)
    _repartition(spark, checkpoint, partitions)
    repartitioned(spark, checkpoint, partitions)
    return shape.partitions


def _repartition(spark: SparkSession, checkpoint: str, partitions: int) -> None:
    from pyspark.errors import PySparkException

    found: Any = spark
    try:
        found._streamingCheckpointManager.repartition(checkpoint, partitions)
    except PySparkException as error:
        raise PipelineError(
            "AX855",
            f"Spark cannot repartition {checkpoint}: {str(error).splitlines()[0]}",
            advice="finish the last batch (axlog run PIPELINE --once), stop the query, try again",
        ) from error


def _skip_a_batch(checkpoint: str) -> None:
    """Let the final steps on the driver expect the batch after the one that moves the state.

    If Spark does not move it, the next start goes back to the state before.
    """
    if not has_durable_state(checkpoint):
        return
    state = durable_state(checkpoint)
    try:
        if state.unfinished() is not None:
            raise PipelineError(
                "AX855",
                f"the last batch of {checkpoint} was interrupted",
                advice="finish it (axlog run PIPELINE --once), then try again",
            )
        state.begin(state.version + 1, [])
        state.commit()
    finally:
        state.close()
