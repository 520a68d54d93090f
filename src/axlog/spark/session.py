"""A Spark session: finds Java, uses measured settings, starts fast.

`session()` returns the running session or starts one. The settings are those that measurements
favoured (docs/spark.md): changelog checkpoints for the state store, a checkpoint manager that does
not rename twice, few shuffle partitions, no web UI, and a driver on loopback if it runs alone.

`quick=True` makes the start fast, for tests, demos and short runs; nothing of it is used otherwise.
Java maps the classes that it loaded in the last run and Python processes are forked from a
preloaded one (`quick_start/`). Java uses only the C1 compiler and the serial collector, which start
faster and run a little slower.

Not handled: sessions that other code started keep their settings; `settings_for` returns ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import axlog
from axlog.errors import PipelineError
from axlog.spark.java import PATIENCE, prepare_environment
from axlog.spark.quick_start.classes import archive_options
from axlog.spark.quick_start.worker_preload import Preloaded, preloaded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_STORE = "spark.sql.streaming.stateStore"
SETTINGS: dict[str, str] = {
    f"{_STORE}.providerClass": _ROCKS,
    f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    f"{_STORE}.rocksdb.trackTotalNumberOfRows": "false",
    # States name their lineage: a batch that is run again may write another state.
    f"{_STORE}.checkpointFormatVersion": "2",
    "spark.sql.streaming.checkpointFileManagerClass": _MANAGER,
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.python.authenticate.socketTimeout": f"{PATIENCE}s",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.executor.syncLogLevel.enabled": "true",  # otherwise executors log some lines per task
}
"""Settings of every session."""
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options of a Java for a fast start."""


def session(
    master: str | None = None,
    name: str = "axlog",
    *,
    quick: bool = False,
    settings: Mapping[str, str] | None = None,
    preload: bool | None = None,
) -> SparkSession:
    """Return the running Spark session, or start one: on the named master, on that of
    `spark-submit`, or on `local[*]`. `quick` starts faster, for short runs. Then, on one machine,
    its Python processes are forked from a preloaded one, unless `preload` is False.
    """
    prepare_environment()
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    builder = SparkSession.builder.appName(name)
    submitted = _submitted()
    given = submitted.get("spark.master")
    master = master or os.environ.get("SPARK_MASTER") or given or "local[*]"
    chosen = {**settings_for(master, quick=quick), **(settings or {})}
    if submitted:
        # Files of `--py-files` are not on the path of the processes that read sources for the
        # driver: pass them the location of axlog.
        paths = [submitted.get(_PATH), str(Path(axlog.__file__).parents[1])]
        chosen.setdefault(_PATH, os.pathsep.join(path for path in paths if path))
    for key, value in chosen.items():
        builder = builder.config(key, value)
    forks = quick if preload is None else preload
    alone = forks and not submitted and _local_cores(master) is not None
    with _python(preloaded() if alone else None):
        return _started(builder.master(master))


def _started(builder: SparkSession.Builder) -> SparkSession:
    """Start a session, or say in one line why Spark does not start it."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        return builder.getOrCreate()
    except (Py4JJavaError, PySparkException) as error:
        said = str(getattr(error, "java_exception", error)).splitlines()[0]
        raise PipelineError(
            "AX868",
            f"Spark does not start: {said}",
            advice="check the master and `settings: {spark: ...}`, or run `axlog doctor --spark`",
        ) from error


@contextmanager
def _python(process: Preloaded | None) -> Iterator[None]:
    """Make Spark start Python through a launcher, unless the user has named another Python."""
    before = os.environ["PYSPARK_PYTHON"]
    if process is None or before != sys.executable:
        yield
        return
    os.environ["PYSPARK_PYTHON"] = str(process.python)
    try:
        yield
    finally:
        # other children of this process do not belong to Spark
        os.environ["PYSPARK_PYTHON"] = before


_PATH = "spark.executorEnv.PYTHONPATH"


def _submitted() -> dict[str, str]:
    """Return the configuration of `spark-submit`; empty if it did not start this process."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    from pyspark import SparkConf, SparkContext

    context: Any = SparkContext
    context._ensure_initialized()  # Java has the configuration, and is reached through this
    return dict(SparkConf().getAll())


UNKNOWN_CORES = 8
"""Tasks of a batch if a session of Spark Connect does not know the cores."""


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect, by the package of its class."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def cores_of(spark: SparkSession) -> int:
    """Return the number of tasks that run at a time, as far as a session knows it."""
    if not is_connect(spark):
        return int(spark.sparkContext.defaultParallelism)
    written = spark.conf.get("spark.default.parallelism", None) or spark.conf.get(
        "spark.sql.shuffle.partitions", None
    )
    return int(written or UNKNOWN_CORES)


def check_classic(spark: SparkSession, what: str) -> None:
    """Refuse a session of Spark Connect for what needs the driver's own process."""
    if is_connect(spark):
        raise PipelineError(
            "AX868",
            f"{what} needs Spark's driver in this process, and the session is one of Spark Connect",
            advice="run it with spark-submit or axlog run --master URL; `changes`, `view`,"
            " `evaluate`, `shred` and format('axlog') work with Spark Connect",
        )


def check_state_store(spark: SparkSession) -> None:
    """Refuse a session of the user that lacks what state on the executors needs."""
    provider = f"{_STORE}.providerClass"
    store = str(spark.conf.get(provider))
    if not store.endswith("RocksDBStateStoreProvider"):
        raise PipelineError(
            "AX868",
            f"the session keeps state with {store.rpartition('.')[2]}, and transformWithState"
            " needs RocksDB",
            advice=f"spark.conf.set({provider!r}, {_ROCKS!r}), or axlog.spark.session()",
        )
    form = f"{_STORE}.checkpointFormatVersion"
    if str(spark.conf.get(form, "1")) == "1":
        raise PipelineError(
            "AX868",
            "the session stores states without their lineage: a batch that is run again after a"
            " crash writes another state, and Spark may continue with a part of each",
            advice=f"spark.conf.set({form!r}, '2'), or axlog.spark.session()",
        )


def java_is_gone() -> tuple[type[Exception], ...]:
    """Return the errors of calls to a Java process that has ended."""
    from py4j.protocol import Py4JNetworkError

    return Py4JNetworkError, ConnectionError


def is_running() -> bool:
    """Whether this process has a session."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None


def settings_for(master: str, *, quick: bool = False) -> dict[str, str]:
    """Return the settings for a session on this master."""
    chosen = dict(SETTINGS)
    cores = _local_cores(master)
    if cores is not None:
        chosen["spark.sql.shuffle.partitions"] = str(cores)
        chosen["spark.driver.host"] = "127.0.0.1"
        chosen["spark.driver.bindAddress"] = "127.0.0.1"
    if quick:
        chosen["spark.driver.extraJavaOptions"] = " ".join([*QUICK, *archive_options(writes=True)])
    return chosen


def _local_cores(master: str) -> int | None:
    """Return the cores of a local master; None for a cluster."""
    if not master.startswith("local") or master.startswith("local-cluster"):
        return None
    inside = master.partition("[")[2].partition("]")[0].partition(",")[0]
    return int(inside) if inside.isdigit() else (os.cpu_count() or 1) if inside else 1
