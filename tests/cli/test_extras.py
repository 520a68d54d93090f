"""Without an extra: every verb and every kind says what to install, with exit code 2.

The absence is played by an import hook in a process of its own (`without_extras.py`). Verbs and
kinds that are new must join the tables.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from axlog.cli.application import VERBS
from axlog.errors import SetupError
from axlog.extras import PARTS, extra_of, import_extra, not_installed
from axlog.pipeline import kinds

# Newer versions of typer, which is always there, bring pydantic themselves.
EVERYTHING = sorted({each for modules in PARTS.values() for each in modules} - {"pydantic"})
XML, QUERY = "<a><b>1</b></a>", "match /a/b/$x return $x"

# A call of every verb, and the extra that it lacks where there is none at all (None: it runs).
CALLS: dict[str, tuple[list[str], str | None]] = {
    "query": (["query", XML, QUERY], None),
    "maintain": (["maintain", XML, QUERY, "{updates}"], None),
    "truth": (["truth", XML, QUERY], None),
    "relevance": (["relevance", XML, QUERY], None),
    "why": (["why", XML, QUERY, "--row", "x=1"], None),
    "explain": (["explain", QUERY], None),
    "diff": (["diff", XML, "<a/>"], None),
    "reduce": (["reduce", "{list}"], None),
    "generate": (["generate", "auction", "--seed", "1"], None),
    "replay": (["replay", "{missing}"], None),
    "verify": (["verify", "{missing}"], None),
    "doctor": (["doctor"], None),
    "init": (["init", "{missing}"], None),
    "patch": (["patch", XML, '{"updates": []}'], None),
    "backup": (["backup", "{missing}", "copy"], None),
    "restore": (["restore", "{missing}", "store"], None),
    "dead-letters": (["dead-letters", "{pipeline}"], "pipeline"),
    "check": (["check", "{pipeline}"], "pipeline"),
    "run": (["run", "{pipeline}", "--once"], "pipeline"),
    "rescale": (["rescale", "{pipeline}", "--partitions", "2"], "pipeline"),
    "serve": (["serve", "--seconds", "0"], "server"),
    "token": (["token", "shop"], "pipeline"),
    "proxy": (["proxy", "--to", "http://127.0.0.1:1"], "server"),
    "demo": (["demo", "--engine", "embedded", "--seconds", "0"], "server"),
}

# What each kind of connector needs beside the extra `pipeline`.
KINDS: dict[tuple[str, str], tuple[str | None, dict[str, Any]]] = {
    ("source", "access-log"): (None, {"path": "x"}),
    ("source", "delta"): ("spark", {"path": "x"}),
    ("source", "directory"): (None, {"path": "x"}),
    ("source", "document"): ("connectors", {"url": "http://127.0.0.1:1/x", "allow": ["127.0.0.1"]}),
    ("source", "feed"): ("connectors", {"url": "http://127.0.0.1:1/x", "allow": ["127.0.0.1"]}),
    ("source", "folder"): (None, {"path": "x"}),
    ("source", "jsonl"): (None, {"path": "x"}),
    ("source", "kafka"): ("brokers", {"brokers": "127.0.0.1:1", "topic": "t"}),
    ("source", "memory"): (None, {}),
    ("source", "parquet"): ("arrow", {"path": "x"}),
    ("source", "table"): ("connectors", {"database": "sqlite:///t.db", "table": "t", "by": "k"}),
    ("sink", "cloudevents"): ("connectors", {"url": "http://127.0.0.1:1/", "allow": ["127.0.0.1"]}),
    ("sink", "console"): (None, {}),
    ("sink", "delta"): ("spark", {"path": "t"}),
    ("sink", "feed"): (None, {"path": "f.xml"}),
    ("sink", "http"): ("connectors", {"url": "http://127.0.0.1:1/"}),
    ("sink", "jsonl"): (None, {"path": "a.jsonl"}),
    ("sink", "mail"): (None, {"server": "127.0.0.1", "sender": "a@b.c", "to": ["d@e.f"]}),
    ("sink", "memory"): (None, {}),
    ("sink", "page"): (None, {"path": "a.html"}),
    ("sink", "parquet"): ("arrow", {"path": "a.parquet"}),
    ("sink", "parquet-log"): ("arrow", {"path": "a"}),
    ("sink", "sql"): ("connectors", {"url": "sqlite:///t.db"}),
    ("sink", "webhook"): ("connectors", {"url": "http://127.0.0.1:1/", "allow": ["127.0.0.1"]}),
    ("sink", "xml"): (None, {"path": "a.xml"}),
    ("channel", "http"): ("connectors", {"url": "http://127.0.0.1:1/c", "allow": ["127.0.0.1"]}),
    ("channel", "kafka"): ("brokers", {"brokers": "127.0.0.1:1", "topic": "t"}),
    ("channel", "memory"): (None, {}),
    ("channel", "redis"): ("brokers", {"url": "redis://127.0.0.1:1/0", "stream": "c"}),
}  # fmt: skip


def test_every_verb_and_kind_is_in_the_tables() -> None:
    assert set(CALLS) == set(VERBS)
    listed = {("source", name) for name in kinds.SOURCES}
    listed |= {("sink", name) for name in kinds.SINKS}
    listed |= {("channel", name) for name in kinds.CHANNELS}
    assert set(KINDS) == listed


def played(blocked: list[str], calls: list[list[str]], directory: Path) -> list[dict[str, Any]]:
    """What calls of the command line come to without some modules."""
    request = json.dumps({"blocked": blocked, "calls": calls})
    program = Path(__file__).parents[1] / "without_extras.py"
    done = subprocess.run(
        [sys.executable, str(program), request],
        capture_output=True, text=True, cwd=directory, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"code"')]


def lacks(said: dict[str, Any], extra: str) -> None:
    """One coded error with the command that helps, and no traceback."""
    assert said["escaped"] == "", said["escaped"]
    assert said["code"] == 2, said
    assert "AX901" in said["output"], said
    assert f"pip install 'axlog[{extra}]'" in said["output"], said


@pytest.mark.system
def test_verbs_without_any_extra(tmp_path: Path) -> None:
    (tmp_path / "u").write_text("delete node /a/b;")
    (tmp_path / "l").write_text("[]")
    (tmp_path / "p.yaml").write_text("{}")
    places = {"{updates}": "u", "{list}": "l", "{pipeline}": "p.yaml", "{missing}": "missing"}
    calls = [[places.get(each, each) for each in call] for call, _ in CALLS.values()]
    results = played(EVERYTHING, [*calls, ["--help"]], tmp_path)
    *verbs, shown = results
    assert shown["code"] == 0
    assert shown["escaped"] == ""
    for verb, (_, extra) in zip(verbs, CALLS.values(), strict=True):
        assert verb["escaped"] == "", verb["escaped"]
        assert verb["code"] in (0, 2), verb
        if extra is not None:
            lacks(verb, extra)
        else:
            assert "AX901" not in verb["output"], verb


@pytest.mark.system
@pytest.mark.parametrize("extra", sorted({need for need, _ in KINDS.values() if need}))
def test_kinds_without_their_extra(extra: str, tmp_path: Path) -> None:
    calls = []
    for number, ((role, kind), (need, options)) in enumerate(KINDS.items()):
        if need != extra:
            continue
        given = {"kind": kind, **options}
        (tmp_path / "in.jsonl").write_text("")
        stream: dict[str, Any] = {"source": {"kind": "jsonl", "path": "in.jsonl"}}
        sink: dict[str, Any] = {"kind": "memory"}
        content: dict[str, Any] = {"engine": "embedded"}
        if role == "source":
            stream = {"source": given}
        elif role == "sink":
            sink = given
        else:
            stream, content["channels"] = {"channel": "c"}, {"c": given}
        content["documents"] = {
            "w": {
                "document": '<r><a>1</a><ax:call xmlns:ax="urn:axlog" stream="s"/></r>',
                "streams": {"s": stream},
                "views": {"v": {"query": "match /r/a/$x return $x", "sinks": [sink]}},
            }
        }
        path = tmp_path / f"p{number}.yaml"
        path.write_text(yaml.safe_dump(content))
        calls += [["check", str(path)], ["run", str(path), "--once"]]
    results = played(list(PARTS[extra]), calls, tmp_path)
    assert len(results) == len(calls)
    for checked, ran in zip(results[::2], results[1::2], strict=True):
        assert (checked["code"], checked["escaped"]) == (0, "")  # it may run elsewhere
        lacks(ran, extra)


@pytest.mark.system
def test_the_engine_and_the_page_without_their_extras(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("")
    path = tmp_path / "p.yaml"
    content = {
        "document": '<r><ax:call xmlns:ax="urn:axlog" stream="s"/></r>',
        "streams": {"s": {"source": {"kind": "jsonl", "path": "in.jsonl"}}},
        "views": {"v": {"query": "match /r/a/$x return $x", "sinks": [{"kind": "memory"}]}},
    }
    path.write_text(yaml.safe_dump(content))
    (spark,) = played(list(PARTS["spark"]), [["run", "p.yaml", "--engine", "spark"]], tmp_path)
    lacks(spark, "spark")
    calls = [
        ["run", "p.yaml", "--engine", "embedded", "--once", "--page"],
        ["run", "p.yaml", "--engine", "embedded", "--once", "--listen", "127.0.0.1:0"],
        ["serve", "p.yaml", "--seconds", "0"],
        ["demo", "--engine", "embedded", "--seconds", "0"],
        ["run", "p.yaml", "--engine", "embedded", "--once"],
    ]
    *lacking, works = played(["starlette", "uvicorn"], calls, tmp_path)
    for said in lacking:
        lacks(said, "server")
    assert works["code"] == 0


def test_what_a_module_belongs_to() -> None:
    assert extra_of("pyarrow.parquet") == "arrow"
    assert extra_of("pydantic_core") == "pipeline"
    assert extra_of("numpy") is None
    error = not_installed("sqlalchemy.orm")
    assert (error.message, error.advice) == (
        "sqlalchemy is not installed", "pip install 'axlog[connectors]'"
    )  # fmt: skip
    with pytest.raises(SetupError, match="AX901"):
        import_extra("no_such_module_at_all")
