"""Failures are coded: what cannot be reached, opened, named or listened on, for every kind.

Each kind of source, sink and channel is in a table here with what makes it fail; a kind that is new
must join (`test_every_kind_is_in_the_tables`). A failure is an error with a code on standard error
and exit code 2, never a traceback and never silence. Nothing but loopback is connected to.
"""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from axlog.cli.application import application
from axlog.errors import CODES, PipelineError
from axlog.pipeline import kinds
from axlog.pipeline.loader import load
from axlog.retry import Backoff
from axlog.runtime import unreachable
from axlog.runtime.embedded import Runner
from axlog.runtime.health import RunnerReport

CALL = '<ax:call xmlns:ax="urn:axlog" stream="s"/>'
REFUSED = "http://127.0.0.1:{port}/x"
HERE: dict[str, Any] = {"allow": ["127.0.0.1"]}
KAFKA: dict[str, Any] = {"brokers": "127.0.0.1:{port}", "topic": "t", "timeout": 0.3}
MAIL: dict[str, Any] = {"port": "{port}", "sender": "a@example.org", "to": ["b@example.org"]}

# What cannot be reached: options of a source, and the code that it comes to.
SOURCES: dict[str, list[dict[str, Any]]] = {
    "access-log": [{"path": "missing.log"}, {"path": "missing/a.log"}],
    "delta": [{"path": "missing"}],
    "directory": [{"path": "missing"}],
    "document": [{"url": REFUSED, **HERE}, {"url": "missing.xml"}],
    "feed": [{"url": REFUSED, **HERE}, {"url": "missing.xml"}],
    "folder": [{"path": "missing"}],
    "jsonl": [{"path": "missing.jsonl"}],
    "kafka": [KAFKA],
    "memory": [],  # it is in this process
    "parquet": [{"path": "missing"}],
    "table": [
        {"database": "sqlite:////missing/t.db", "table": "t", "by": "k"},
        {"database": "sqlite:////missing/t.db", "table": "t", "by": "k", "mode": "all"},
        {"database": "sqlite:///t.db", "table": "missing", "by": "k"},
        {"database": "postgresql+psycopg://u@127.0.0.1:{port}/d", "table": "t", "by": "k"},
    ],
}
CHANNELS: dict[str, list[dict[str, Any]]] = {
    "http": [{"url": "http://127.0.0.1:{port}/channels/c", **HERE}],
    "kafka": [KAFKA],
    "memory": [],  # it is in this process
    "redis": [{"url": "redis://127.0.0.1:{port}/0", "stream": "c"}],
}
# What cannot be opened, with the code; `file` is a file where a directory would have to be.
BAD_SOURCES: list[tuple[str, dict[str, Any], str]] = [
    ("table", {"database": "nonsense", "table": "t", "by": "k"}, "AX826"),
    ("table", {"database": "postgresql://h:port/d", "table": "t", "by": "k"}, "AX826"),
    ("table", {"database": "nosuch://h/d", "table": "t", "by": "k"}, "AX826"),
    ("table", {"database": "mysql://h/d", "table": "t", "by": "k"}, "AX901"),
    ("kafka", {**KAFKA, "settings": {"no.such.setting": "1"}}, "AX825"),
]
BAD_CHANNELS: list[tuple[str, dict[str, Any], str]] = [
    ("redis", {"url": "nonsense", "stream": "c"}, "AX825"),
    ("kafka", {**KAFKA, "settings": {"no.such.setting": "1"}}, "AX825"),
    ("memory", {"journal": "file/c.channel"}, "AX808"),
]
SINKS: dict[str, list[tuple[dict[str, Any], str]]] = {
    "cloudevents": [({"url": REFUSED, **HERE}, "AX859")],
    "console": [],  # standard output
    "delta": [({"path": "file/t"}, "AX859")],
    "feed": [({"path": "file/f.xml"}, "AX859")],
    "http": [({"url": REFUSED, "retries": 0}, "AX859")],
    "jsonl": [({"path": "file/a.jsonl"}, "AX859")],
    "mail": [({**MAIL, "server": "127.0.0.1", "security": "none"}, "AX859")],
    "memory": [],  # it is in this process
    "page": [({"path": "file/a.html"}, "AX859")],
    "parquet": [({"path": "file/a.parquet"}, "AX859")],
    "parquet-log": [({"path": "file/a"}, "AX859")],
    "sql": [
        ({"url": "nonsense"}, "AX826"),
        ({"url": "postgresql://u:pass@h:port/d"}, "AX826"),
        ({"url": "nosuch://u:pass@h/d"}, "AX826"),
        ({"url": "mysql://u:pass@h/d"}, "AX901"),
        ({"url": "sqlite:////missing/t.db"}, "AX859"),
        ({"url": "postgresql+psycopg://u:pass@127.0.0.1:{port}/d"}, "AX859"),
        ({"url": "sqlite:///t.db", "table": "axlog_batches"}, "AX827"),
    ],
    "webhook": [({"url": REFUSED, **HERE}, "AX859")],
    "xml": [({"path": "file/a.xml"}, "AX859")],
}


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unreachable, "BACKOFF", Backoff(0.0, 0.001))


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of loopback that is taken, and on which nobody answers."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield int(bound.getsockname()[1])


def run(*arguments: object) -> Result:
    return CliRunner().invoke(application(), [str(each) for each in arguments])


def refused(result: Result, code: str) -> str:
    """One coded error on standard error, and exit code 2."""
    assert result.exit_code == 2, (result.exit_code, result.output, result.exception)
    assert isinstance(result.exception, SystemExit)
    said = result.stderr.split("axlog: ", 1)[1]
    assert said.startswith(f"{code}: "), said
    assert "Traceback" not in result.output
    assert "pass" not in result.output  # of no address that has one
    return said


def filled(options: Any, port: int) -> Any:
    """Options with the port in them."""
    text = json.dumps(options).replace('"{port}"', str(port)).replace("{port}", str(port))
    return json.loads(text)


def pipeline(directory: Path, **parts: Any) -> Path:
    """A pipeline file with one row to deliver at once."""
    (directory / "file").write_text("a file")
    doc: dict[str, Any] = {
        "document": f"<r><a>1</a>{CALL}</r>",
        "views": {"v": {"query": "match /r/a/$x return $x", "sinks": [{"kind": "memory"}]}},
    }
    for name in ("streams", "views", "document_key", "sources"):
        if name in parts:
            doc[name] = parts.pop(name)
    path = directory / "p.yaml"
    path.write_text(yaml.safe_dump({"engine": "embedded", "documents": {"w": doc}, **parts}))
    return path


def test_every_kind_is_in_the_tables() -> None:
    assert sorted(SOURCES) == sorted(kinds.SOURCES)
    assert sorted(CHANNELS) == sorted(kinds.CHANNELS)
    assert sorted(SINKS) == sorted(kinds.SINKS)


# Sources ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options"), [(kind, one) for kind, cases in SOURCES.items() for one in cases]
)
def test_a_source_that_cannot_be_reached_ends_a_run_with_once(
    kind: str, options: dict[str, Any], tmp_path: Path, closed_port: int
) -> None:
    source = {"kind": kind, **filled(options, closed_port)}
    path = pipeline(tmp_path, streams={"s": {"source": source}})
    said = refused(run("run", path, "--once"), "AX858")
    assert "w/streams/s" in said
    assert "try: " in said


@pytest.mark.parametrize(
    ("kind", "options"), [(kind, one) for kind, cases in CHANNELS.items() for one in cases]
)
def test_a_channel_that_cannot_be_reached_ends_a_run_with_once(
    kind: str, options: dict[str, Any], tmp_path: Path, closed_port: int
) -> None:
    channels = {"c": {"kind": kind, **filled(options, closed_port)}}
    path = pipeline(tmp_path, streams={"s": {"channel": "c"}}, channels=channels)
    assert "w/streams/s" in refused(run("run", path, "--once"), "AX858")


@pytest.mark.parametrize(("kind", "options", "code"), BAD_SOURCES)
def test_a_source_that_cannot_be_opened(
    kind: str, options: dict[str, Any], code: str, tmp_path: Path, closed_port: int
) -> None:
    source = {"kind": kind, **filled(options, closed_port)}
    path = pipeline(tmp_path, streams={"s": {"source": source}})
    refused(run("run", path, "--once"), code)


@pytest.mark.parametrize(("kind", "options", "code"), BAD_CHANNELS)
def test_a_channel_that_cannot_be_opened(
    kind: str, options: dict[str, Any], code: str, tmp_path: Path, closed_port: int
) -> None:
    channels = {"c": {"kind": kind, **filled(options, closed_port)}}
    path = pipeline(tmp_path, streams={"s": {"channel": "c"}}, channels=channels)
    refused(run("run", path, "--once"), code)


@pytest.mark.parametrize("kind", [kind for kind, cases in SOURCES.items() if cases])
def test_a_source_that_cannot_be_reached_is_waited_for_and_named(
    kind: str, tmp_path: Path, closed_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Without `once`: a line in the log for every try, and the health says which source it is."""
    source = {"kind": kind, **filled(SOURCES[kind][0], closed_port)}
    runner = Runner(load(str(pipeline(tmp_path, streams={"s": {"source": source}}))))
    try:
        while runner.feeds[0].errors < 3:
            runner.round()
            health = RunnerReport(runner).health()
            assert health.state.value == "degraded"
            assert "source w/streams/s is unreachable" in str(health.plain()["views"])
        said = [record.axlog_fields for record in caplog.records]  # type: ignore[attr-defined]
        tries = [each for each in said if each.get("connector") == "w/streams/s"]
        assert [each["tries"] for each in tries] == [1, 2, 3]
        assert {each["code"] for each in tries} <= set(CODES)
    finally:
        runner.close()


def test_a_run_says_on_standard_error_that_it_waits(tmp_path: Path) -> None:
    path = pipeline(tmp_path, streams={"s": {"source": {"kind": "jsonl", "path": "missing"}}})
    result = run("run", path, "--seconds", "0.2", "--no-page")
    assert result.exit_code == 0
    assert "warning cannot be reached connector=w/streams/s tries=1 code=AX858" in result.stderr


def test_a_source_that_comes_later_is_read(tmp_path: Path) -> None:
    """All alerters look again after a failed look, whatever their interval says."""
    source = {"kind": "folder", "path": "in", "interval": 3600}
    views = {"v": {"query": "match /r/file/a/$x return $x", "sinks": [{"kind": "memory"}]}}
    document = "<r><ax:call xmlns:ax='urn:axlog' stream='s' deletes='yes'/></r>"
    path = pipeline(tmp_path, streams={"s": {"source": source}}, views=views)
    written = yaml.safe_load(path.read_text())
    written["documents"]["w"]["document"] = document
    path.write_text(yaml.safe_dump(written))
    runner = Runner(load(str(path)))

    def waits() -> bool:
        return runner.feeds[0].troubles is not None

    try:
        runner.round()
        assert waits()
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "a.xml").write_text("<a>1</a>")
        while waits():
            runner.round()
        while not runner.is_done:
            runner.round()
        assert runner.progress.rows == 1
    finally:
        runner.close()


# Sinks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "code"),
    [(kind, options, code) for kind, cases in SINKS.items() for options, code in cases],
)
def test_a_sink_that_cannot_be_opened_or_written(
    kind: str, options: dict[str, Any], code: str, tmp_path: Path, closed_port: int
) -> None:
    sink = {"kind": kind, **filled(options, closed_port)}
    views = {"v": {"query": "match /r/a/$x return $x", "sinks": [sink]}}
    source = {"kind": "jsonl", "path": "in.jsonl"}
    (tmp_path / "in.jsonl").write_text("")
    path = pipeline(tmp_path, streams={"s": {"source": source}}, views=views)
    refused(run("run", path, "--once"), code)


@pytest.mark.parametrize(
    ("query", "sink"),
    [
        ("match /r/a/$axlog_key return $axlog_key", {"kind": "sql", "url": "sqlite:///t.db"}),
        ("match /r/a/$AXLOG_COPIES return $AXLOG_COPIES", {"kind": "sql", "url": "sqlite://"}),
        ("match /r/a/$axlog_key return $axlog_key", {"kind": "delta", "path": "t"}),
        ("match /r[a/$x][a/$X] return $x, $X", {"kind": "sql", "url": "sqlite:///t.db"}),
        ("match /r[a/$x][a/$X] return $x, $X", {"kind": "parquet", "path": "t.parquet"}),
    ],
)
def test_a_column_that_a_table_cannot_have(
    query: str, sink: dict[str, Any], tmp_path: Path
) -> None:
    """`axlog check` and `axlog run` say it, with the place in the file."""
    views = {"v": {"query": query, "sinks": [sink]}}
    source = {"kind": "jsonl", "path": "in.jsonl"}
    path = pipeline(tmp_path, streams={"s": {"source": source}}, views=views)
    for verb in (("check", path, "--json"), ("run", path, "--once")):
        result = run(*verb)
        assert result.exit_code == 2
        assert "AX827" in result.output
        assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("name", "query", "key"),
    [
        ("dead_letters", "match /r/a/$x return $x", None),
        ("v", "match /r/a/$document return $document", "m/@k"),
    ],
)
def test_names_that_the_runner_uses_itself(
    name: str, query: str, key: str | None, tmp_path: Path
) -> None:
    parts = {} if key is None else {"document_key": key}
    path = pipeline(
        tmp_path,
        streams={"s": {"source": {"kind": "jsonl", "path": "in.jsonl"}}},
        views={name: {"query": query, "sinks": [{"kind": "memory"}]}},
        **parts,
    )
    result = run("check", path, "--json")
    assert result.exit_code == 2
    assert [json.loads(line)["code"] for line in result.stdout.splitlines()] == ["AX827"]


def test_the_tries_are_few() -> None:
    """What `once` waits for adds up to seconds, not to a deadline of somebody's."""
    assert unreachable.TRIES <= 5


# Spark --------------------------------------------------------------------------------------------


def test_what_spark_wraps_is_found_again() -> None:
    """The last coded error of the traceback that Spark gives as a text; else Spark failed."""
    from axlog.runtime.failures import failure_of

    wrapped = """[STREAM_FAILED] Query [id = 1] terminated with exception: Traceback:
      raise ConnectorError("AX858", "x")
    axlog.errors.ConnectorError: AX858: a: No such file or directory
    The above exception was the direct cause of the following exception:
    axlog.errors.PipelineError: AX858: source 0: a: No such file or directory
     SQLSTATE: 38000"""
    found = failure_of(RuntimeError(wrapped))
    assert isinstance(found, PipelineError)
    assert (found.code, found.message) == ("AX858", "source 0: a: No such file or directory")
    other = failure_of(RuntimeError("[STREAM_FAILED] no memory\nat java.lang"))
    assert (other.code, other.message) == ("AX868", "Spark failed: [STREAM_FAILED] no memory")


# Ports --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--port", "{port}"),
        ("serve", "--port", "70000"),
        ("run", "{pipeline}", "--once", "--page", "--port", "{port}"),
        ("run", "{pipeline}", "--once", "--listen", "127.0.0.1:{port}"),
        ("demo", "--engine", "embedded", "--seconds", "1", "--port", "{port}"),
    ],
)
def test_a_port_that_cannot_be_listened_on(
    arguments: tuple[str, ...], tmp_path: Path, closed_port: int
) -> None:
    (tmp_path / "in.jsonl").write_text("")
    path = pipeline(tmp_path, streams={"s": {"source": {"kind": "jsonl", "path": "in.jsonl"}}})
    given = [each.replace("{port}", str(closed_port)).replace("{pipeline}", str(path))
             for each in arguments]  # fmt: skip
    said = refused(run(*given), "AX807")
    assert "try: choose another port" in said
