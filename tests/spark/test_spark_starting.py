"""What makes a start of Spark short: classes that are mapped, processes that are forked."""

import gc
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from axlog.runtime.hashing import hashed
from axlog.spark import find_java
from axlog.spark.quick_start import classes
from axlog.spark.quick_start.classes import archive_options
from axlog.spark.quick_start.worker_preload import Preloaded

pytestmark = pytest.mark.system

TEXTS = ["", "a", "ab", "abc", "abcd", "on-time/3/17", "über/0/1", "日本/0/1", "x" * 33]


@pytest.mark.spark
def test_hashes_are_those_of_spark(spark: Any) -> None:
    rows = spark.createDataFrame([(text,) for text in TEXTS], "key string")
    found = rows.selectExpr("key", "hash(key)", "pmod(hash(key), 7)").collect()
    assert [tuple(row) for row in found] == [(t, hashed(t), hashed(t) % 7) for t in TEXTS]


@pytest.mark.spark
def test_workers_are_forked_with_all_imported(spark: Any) -> None:
    def told(_: Any) -> tuple[int, str | None]:
        return gc.get_freeze_count(), os.environ.get("PYTHON_WORKER_FACTORY_SECRET")

    ((frozen, secret),) = spark.sparkContext.parallelize([0], 1).map(told).collect()
    assert frozen > 10_000
    assert secret != os.environ.get("PYTHON_WORKER_FACTORY_SECRET")
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


@pytest.fixture(scope="module")
def process() -> Iterator[Preloaded]:
    started = Preloaded()
    yield started
    started.close()
    assert not started.python.exists()


def daemon(process: Preloaded) -> subprocess.Popen[bytes]:
    """Spark's daemon, as Spark starts it."""
    return subprocess.Popen(
        [process.python, "-m", "pyspark.daemon", "pyspark.worker"],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def children(parent: int) -> list[int]:
    said = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(each) for each in said.read_text().split()] if said.exists() else []


def wait_for_none(parent: int) -> None:
    until = time.monotonic() + 60
    while children(parent):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_daemon_is_forked_and_ends_as_sparks_does(process: Preloaded) -> None:
    with daemon(process) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        (port,) = struct.unpack("!i", started.stdout.read(4))
        assert port > 0
        assert len(children(process.number)) == 1
        started.stdin.close()
        assert started.wait(60) == 1  # so does Spark's own when its input ends
    wait_for_none(process.number)


def test_who_is_killed_takes_its_fork_along(process: Preloaded) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with daemon(process) as started:
            assert started.stdout is not None
            started.stdout.read(4)
            started.send_signal(number)
            started.wait(60)
        wait_for_none(process.number)


def test_what_is_not_sparks_runs_by_itself(process: Preloaded) -> None:
    said = subprocess.run(
        [process.python, "-c", "import gc; print(gc.get_freeze_count())"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(said.stdout) < 10_000


def test_where_nobody_answers_python_is_python() -> None:
    gone = Preloaded()
    python = gone.python.read_text()
    gone.close()
    words = [*python.splitlines()[1].split()[1:-1], "-c", "print('here')"]
    said = subprocess.run(words, capture_output=True, text=True, check=True)
    assert said.stdout == "here\n"


def test_an_archive_of_sparks_classes_can_be_mapped(tmp_path: Path) -> None:
    import pyspark

    home = Path(pyspark.__file__).parent
    (first,) = (home / "jars").glob("slf4j-api-*.jar")
    path = f"{home}/conf:{first}:{home}/jars/*"  # as Spark's launcher says it
    java = find_java() / "bin" / "java"
    base, archive = tmp_path / "base.jsa", tmp_path / "top.jsa"
    program = ["-XX:+UseSerialGC", "-cp", path, "org.apache.hadoop.util.VersionInfo"]
    for options in (
        ["-Xshare:dump", f"-XX:SharedArchiveFile={base}"],
        [f"-XX:SharedArchiveFile={base}", f"-XX:ArchiveClassesAtExit={archive}"],
        ["-Xshare:on", f"-XX:SharedArchiveFile={archive}"],  # refuses to start without it
    ):
        words = [str(java), *options, *(program if "-Xshare:dump" not in options else program[:1])]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, with the Java that sessions have."""
    for name in ("SPARK_HOME", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAVA_HOME", str(find_java()))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def base(place: Path, home: Path) -> Path:
        place.touch()
        return place

    monkeypatch.setattr(classes, "_base", base)
    return tmp_path / "axlog" / "classes"


def value(options: list[str], name: str) -> str | None:
    found = [each.partition("=")[2] for each in options if each.startswith(f"-XX:{name}=")]
    return found[0] if found else None


def test_one_process_leaves_an_archive_and_the_next_adopts_it(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert archive_options(writes=False) == []
    fresh = value(archive_options(writes=True), "ArchiveClassesAtExit")
    assert fresh is not None
    assert archive_options(writes=True) == []  # somebody is at it
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    written = Path(fresh).with_suffix(f".{gone.pid}")
    written.write_bytes(b"classes")
    assert archive_options(writes=True) == []  # it may be written to still
    os.utime(written, (1, 1))
    old = place / f"{find_java().name}-0000.jsa"
    old.write_bytes(b"of jars that are no more")
    used = value(archive_options(writes=False), "SharedArchiveFile")
    assert used == fresh.rpartition(".")[0]
    assert Path(used).read_bytes() == b"classes"
    assert not old.exists()
    monkeypatch.setattr(classes, "_fingerprint", lambda: "others")
    assert value(archive_options(writes=True), "ArchiveClassesAtExit") != fresh


def test_a_claim_of_a_process_that_is_gone_is_none(place: Path) -> None:
    fresh = value(archive_options(writes=True), "ArchiveClassesAtExit")
    assert fresh is not None
    (claim,) = place.glob("*.by")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    claim.write_text(str(gone.pid))
    os.utime(claim, (1, 1))
    assert value(archive_options(writes=True), "ArchiveClassesAtExit") == fresh


def test_no_archive_where_the_class_path_is_not_known(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(place))
    assert archive_options(writes=True) == []


def test_a_session_that_does_not_start_says_why() -> None:
    code = (
        "from axlog.spark import session\n"
        "session('local[1]', quick=True, settings={'spark.serializer': 'none.Such'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    said = [line for line in done.stderr.splitlines() if "AX868" in line]
    assert "Spark does not start: " in said[-1]
    assert "none.Such" in said[-1]
