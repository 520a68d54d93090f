"""The number of tasks that read a batch of a source of axlog.

It follows the cores, which may not be there when a query starts, come and go: after each batch the
driver writes the number beside the checkpoint, where the process that plans batches finds it. The
parts of a batch are in its offsets, so a repeated batch has the same ones.

With dynamic allocation Spark requests executors for tasks that wait. One task per core would
never wait, so there are two.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from axlog.connect.sinks.files import replace_file
from axlog.spark.session import cores_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILE = "tasks"
_DYNAMIC = "spark.dynamicAllocation.enabled"


def reading_tasks(spark: SparkSession) -> int:
    """Return the number of tasks that read a batch, with the cores of now."""
    cores = cores_of(spark)
    is_dynamic = str(spark.conf.get(_DYNAMIC, "false")).lower() == "true"
    return 2 * cores if is_dynamic else cores


def following(
    spark: SparkSession, place: str, take: Callable[[DataFrame, int], None]
) -> Callable[[DataFrame, int], None]:
    """Return a function that takes a batch, and writes how many tasks shall read the next one."""
    if not place:
        return take
    written = 0

    def take_and_write(frame: DataFrame, number: int) -> None:
        nonlocal written
        take(frame, number)
        tasks = reading_tasks(spark)
        if tasks != written:
            replace_file(Path(place) / _FILE, str(tasks).encode())
            written = tasks

    return take_and_write


def tasks_now(place: str, at_start: int) -> int:
    """Return the number that was written last; `at_start` if there is none.

    A file of an earlier start may have the number of another cluster; the first batch corrects it.
    """
    if not place:
        return at_start
    try:
        return max(1, int((Path(place) / _FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return at_start
