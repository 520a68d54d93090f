"""What a task of Spark knows of itself."""

from __future__ import annotations


def batch_of_task() -> int | None:
    """Return the batch number of this task; None outside of a stream."""
    from pyspark import TaskContext

    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    return None if found is None else int(found)


def partition_of_task() -> int:
    """Return the partition number of this task; 0 outside of Spark."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
