"""axlog on PySpark: the only package that imports pyspark.

Importing this package imports neither pyspark nor starts Java, so that `axlog doctor` can ask about
both. What it runs on is found by `prepare_environment`, which every session start calls first.

    shred, evaluate, explain    documents as node tables, views on them by joins
    differences, propagate      what two node tables differ in, and a view table kept by it
    maintain                    a widget kept by a streaming query
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from axlog.spark.java import find_java, prepare_environment
from axlog.spark.session import session

if TYPE_CHECKING:
    from axlog.spark.batch import evaluate, explain, shred
    from axlog.spark.propagation import differences, propagate
    from axlog.spark.streaming_query import maintain

_LATER = {
    "differences": "axlog.spark.propagation",
    "evaluate": "axlog.spark.batch",
    "explain": "axlog.spark.batch",
    "shred": "axlog.spark.batch",
    "maintain": "axlog.spark.streaming_query",
    "propagate": "axlog.spark.propagation",
}

__all__ = [
    "differences",
    "evaluate",
    "explain",
    "find_java",
    "maintain",
    "prepare_environment",
    "propagate",
    "session",
    "shred",
]


def __getattr__(name: str) -> Any:
    """What needs pyspark or pyarrow is imported when it is first asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
