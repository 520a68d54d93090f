"""axlog on PySpark: the only package that imports pyspark.

Importing this package does not import pyspark and does not start Java, so that `axlog doctor` can
check both. `prepare_environment` finds Java and Python; every session start calls it first.

The public functions:

    files, evaluate, explain    views on documents, where they are read
    shred                       documents as node tables, for views by joins
    differences, propagate      the differences of node tables, and a view table kept by them
    maintain                    a document maintained by a streaming query
    register                    sources by `format("axlog")` with plain options
    changes, view               the changes and the rows of a view as DataFrames
    rescale                     another number of state partitions for a stopped query

Modules in reading order:

    session.py          a Spark session with measured settings
    java.py             find a Java runtime
    quick_start/        class archives and forked workers, for tests, demos and short runs
    cluster.py          a standalone cluster from the pip package
    streaming_query.py  maintain: the streaming query of a document
    sources.py          sources of axlog in Spark's Data Source API
    frames.py           DataFrames of the user as messages
    change_frames.py    changes and rows as DataFrames
    task.py             what a task knows of itself
    processor.py        Spark's stateful processor around the buckets
    batch_result.py     the end of a batch: merge reports, write sinks
    checkpoint.py       what a checkpoint was made for
    backfill.py         fill views that are added to a checkpoint
    state_partitions.py another number of state partitions
    pipeline.py         axlog run with engine: spark
    batch/              documents in batch: files, evaluate, shred
    propagation.py      maintain a view table by delta terms
    restatement.py      nodes whose `or` and `not` an update changes
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from axlog.spark.java import find_java, prepare_environment
from axlog.spark.session import session

if TYPE_CHECKING:
    from axlog.spark.batch import evaluate, explain, files, shred
    from axlog.spark.change_frames import changes, view
    from axlog.spark.propagation import differences, propagate
    from axlog.spark.sources import register
    from axlog.spark.state_partitions import rescale
    from axlog.spark.streaming_query import maintain

_LATER = {
    "changes": "axlog.spark.change_frames",
    "differences": "axlog.spark.propagation",
    "evaluate": "axlog.spark.batch",
    "explain": "axlog.spark.batch",
    "files": "axlog.spark.batch",
    "shred": "axlog.spark.batch",
    "view": "axlog.spark.change_frames",
    "maintain": "axlog.spark.streaming_query",
    "propagate": "axlog.spark.propagation",
    "register": "axlog.spark.sources",
    "rescale": "axlog.spark.state_partitions",
}

__all__ = [
    "changes",
    "differences",
    "evaluate",
    "explain",
    "files",
    "find_java",
    "maintain",
    "prepare_environment",
    "propagate",
    "register",
    "rescale",
    "session",
    "shred",
    "view",
]


def __getattr__(name: str) -> Any:
    """Import lazily what needs pyspark or pyarrow."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    """Name what is imported lazily, too, for the completion of notebooks."""
    return __all__
