"""`axlog check`: every error at its line and column, all at once; hostile files refused."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from axlog.cli.application import application
from axlog.connect.kinds import Options, Origin, Secret, SinkKind, SourceKind
from axlog.connect.protocol import Sink
from axlog.connect.sources.memory import MemorySource
from axlog.errors import AxlogError, PipelineError, SetupError
from axlog.pipeline import kinds
from axlog.pipeline.loader import check, check_text, load
from axlog.pipeline.model import PipelineModel
from axlog.pipeline.schema import json_schema
from axlog.pipeline.yaml_reader import locate

GOOD = """\
engine: embedded
document: |
  <orders xmlns:ax="urn:axlog">
    <ax:call stream="orders"/>
  </orders>
streams:
  orders:
    source: {kind: jsonl, path: in.jsonl}
    late: clock
    deletes: no
views:
  ids:
    query: |
      match /orders/order/oid/$x
      return $x
    sinks: [log, {kind: console}]
sinks:
  log: {kind: jsonl, path: out.jsonl}
"""


def problems(text: str) -> list[tuple[int, int, str, str]]:
    """Line, column, code and message of all that is wrong with a text."""
    found = check_text(text).problems
    places = [(problem.error.place, problem.error) for problem in found]
    return [(p.line, p.column, e.code, e.message) for p, e in places if p is not None]


def test_a_file_in_order_has_no_problems_and_is_a_pipeline() -> None:
    checked = check_text(GOOD)
    assert checked.problems == []
    assert checked.model is not None
    assert checked.model.engine == "embedded"
    assert checked.model.documents["document"].streams["orders"].deletes == "no"
    assert [name.full for name in checked.model.view_names()] == ["ids"]


def test_the_long_form_is_the_same_pipeline_with_longer_names() -> None:
    short = check_text(GOOD).model
    assert short is not None
    plain = short.model_dump(by_alias=True, exclude_unset=True)
    again = PipelineModel.model_validate(plain)
    assert again.documents == short.documents
    assert [name.full for name in again.view_names()] == ["document.ids"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("engine: embedded", "engine: flink", (1, 9, "AX852", "engine")),
        ("engine: embedded", "engin: embedded", (1, 1, "AX852", "'engin' is unknown")),
        ("    late: clock", "    lat: clock", (9, 5, "AX852", "'lat' is unknown")),
        ("    late: clock", "    late: maybe", (9, 11, "AX852", "late")),
        ("    late: clock", "    most: -1", (9, 11, "AX852", "most")),
        ("match /orders/order/oid/$x", "match /orders/[", (14, 21, "AX201", "")),
        ("      return $x", "      return $y", (15, 14, "AX203", "")),
        ("kind: console", "kind: consle", (16, 25, "AX853", "consle")),
        ("sinks: [log,", "sinks: [lag,", (16, 13, "AX854", "'lag'")),
        ("{kind: jsonl, path: in.jsonl}", "{kind: jsonl}", (8, 5, "AX852", "needs 'path'")),
        ("path: in.jsonl}", "path: in.jsonl, x: 1}", (8, 43, "AX852", "no option 'x'")),
        ('stream="orders"', 'stream="others"', (7, 3, "AX854", "'orders'")),
        ("  </orders>", "  </order>", (5, 11, "AX101", "")),
        ('stream="orders"', 'stream="orders" late="refuse"', (7, 3, "AX852", "late: clock")),
    ],
)
def test_an_error_is_reported_at_its_place(
    old: str, new: str, expected: tuple[int, int, str, str]
) -> None:
    assert old in GOOD
    found = problems(GOOD.replace(old, new, 1))
    line, column, code, part = expected
    assert any((one[0], one[2]) == (line, code) and part in one[3] for one in found), found
    if code not in ("AX101",):
        assert (line, column) in [one[:2] for one in found], found


def test_all_errors_are_reported_at_once() -> None:
    text = (
        GOOD.replace("engine: embedded", "engine: flink")
        .replace("$x\n      return", "$$\n      return")
        .replace("kind: console", "kind: consle")
        .replace("late: clock", "late: maybe")
    )
    assert {line for line, *_ in problems(text)} >= {1, 9, 14, 16}
    assert check_text(text).model is None


def test_a_close_name_is_suggested() -> None:
    (problem,) = check_text(GOOD.replace("kind: console", "kind: consle")).problems
    assert problem.error.advice == "did you mean 'console'?"
    assert "jsonl" in str(problem.error.expected)


@pytest.mark.parametrize(
    ("text", "message", "help"),
    [
        ("streams: {}\nviews: {a: //b}", "there are neither streams nor a document", "streams:"),
        ("streams: {o: {source: in}}\nviews: {a: //b}", "source must be a mapping", "kind:"),
        ("document: <a/>\nviews: {a: {query: //b, sinks: console}}", "sinks must be a list", "[{"),
        ("document: <a/>\nviews: {}", "views is empty", "views: {NAME: QUERY}"),
        ("document: <a/>\nview: {}", "the file has no 'views'", "views: {NAME: QUERY}"),
        ("engine: flink\ndocument: <a/>\nviews: {a: //b}", "engine must be 'auto'", ""),
        ("streams:\n\to: {}", "the file is not YAML", "spaces"),
    ],
)
def test_shapes_are_explained_without_words_of_python(text: str, message: str, help: str) -> None:
    found = [problem.error for problem in check_text(text).problems]
    assert any(
        error.message.startswith(message) and help in f"{error.expected} {error.advice}"
        for error in found
    ), [error.describe() for error in found]


def test_a_query_on_one_line_is_placed_too() -> None:
    text = GOOD.replace(
        "query: |\n      match /orders/order/oid/$x\n      return $x", "query: match /orders/["
    )
    assert (13, 26, "AX201") in [one[:3] for one in problems(text)]


def test_a_call_that_nothing_feeds_is_a_warning() -> None:
    text = GOOD.replace("streams:\n  orders:\n", "namespaces: {}\nsources:\n- ").replace(
        "-     source: {kind: jsonl, path: in.jsonl}\n    late: clock\n    deletes: no\n",
        "- {kind: jsonl, path: in.jsonl}\n",
    )
    assert check_text(text).problems == []
    text = text.replace("sources:\n- {kind: jsonl, path: in.jsonl}\n", "")
    checked = check_text(text)
    assert [problem.level for problem in checked.problems] == ["warning"]
    assert checked.model is not None


def test_two_views_cannot_share_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "table-of-tests"
    monkeypatch.setattr(kinds, "_registered", {})
    kinds.register(SinkKind(name, Options, _no_sink, "", is_table=True))
    text = GOOD.replace("log: {kind: jsonl, path: out.jsonl}", f"log: {{kind: {name}}}")
    assert problems(text) == []
    text = text.replace(
        "sinks:\n  log", "  more:\n    query: //order\n    sinks: [log]\nsinks:\n  log"
    )
    assert any("table of one view" in message for *_, message in problems(text))


def _no_sink(options: Options, origin: Origin) -> Sink:
    raise AssertionError


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a: &x [1]\nb: *x", "alias"),
        ("a: !!python/object/apply:os.system ['true']", "tag"),
        ("a: !include x", "tag"),
        ("[" * 60 + "]" * 60, "nested"),
        ("a: 1\n---\nb: 2", "second document"),
        ("- " * 0 + "[" + "1," * 250_000 + "]", "parts"),
        ("a: " + "x" * 5_000_000, "characters"),
    ],
)
def test_hostile_yaml_is_refused(text: str, part: str) -> None:
    (problem,) = check_text(text).problems
    assert problem.error.code == "AX857"
    assert part in problem.error.message


@pytest.mark.parametrize(
    "text", ["", "- 1", "a: [", "a: 1\na: 2", "? [1]\n: 2", "\x00", "a: \ud800"]
)
def test_what_is_no_pipeline_is_refused_without_a_trace(text: str) -> None:
    checked = check_text(text)
    assert checked.model is None
    assert all(problem.error.code in ("AX851", "AX852") for problem in checked.problems)


def test_plain_values_are_those_of_yaml_1_2() -> None:
    checked = check_text(GOOD.replace("deletes: no", "deletes: yes"))
    assert checked.model is not None
    assert checked.model.documents["document"].streams["orders"].deletes == "yes"


def test_secrets_are_filled_in_and_never_shown() -> None:
    secret = Secret("postgresql://ann:${AXLOG_TEST_WORD}@host/db")
    assert secret.reveal({"AXLOG_TEST_WORD": "s3"}) == "postgresql://ann:s3@host/db"
    with pytest.raises(SetupError, match="AXLOG_TEST_WORD"):
        secret.reveal({})
    assert "ann" not in repr(secret) + str(secret)


class _WithSecret(Options):
    token: Secret
    count: int


def test_an_inline_secret_is_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "_registered", {})
    kinds.register(SourceKind("secret-of-tests", _WithSecret, lambda o, g: MemorySource(), ""))
    text = GOOD.replace(
        "{kind: jsonl, path: in.jsonl}", "{kind: secret-of-tests, token: hush, count: many}"
    )
    checked = check_text(text)
    assert checked.problems
    assert not any("hush" in problem.error.describe() for problem in checked.problems)
    good = check_text(text.replace("many", "3")).model
    assert good is not None
    source = good.documents["document"].streams["orders"].source
    assert source is not None
    options = _WithSecret.model_validate(source.written)
    assert "hush" not in repr(options) + options.model_dump_json()


@pytest.mark.parametrize(
    ("line", "code", "part"),
    [
        ("facts: [keys a by b]", "AX201", "declared fact"),
        ("facts: [key orders/order by oid trusted]", "AX201", "starts with the root element"),
        ("document_key: a//b", "AX852", "not a valid step"),
        ("document_key: 'p:a'", "AX852", "not declared"),
        ("types: 'orders -> |order| >='", "AX701", ""),
        ("sources: {kind: folder, path: x}", "AX852", "do not name their stream"),
        ("documents: {}", "AX852", ""),
    ],
)
def test_other_parts_are_checked_too(line: str, code: str, part: str) -> None:
    found = problems(GOOD + line + "\n")
    assert any(one[2] == code and part in one[3] for one in found), found


def test_a_variable_that_is_not_set_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    text = GOOD.replace("{kind: console}", '{kind: http, url: "http://h/${AXLOG_TEST_ABSENT}"}')
    checked = check_text(text)
    assert [(each.level, each.error.code) for each in checked.problems] == [("warning", "AX856")]
    assert checked.model is not None
    monkeypatch.setenv("AXLOG_TEST_ABSENT", "x")
    assert check_text(text).problems == []


def test_names_of_channels_and_views_lead_somewhere() -> None:
    call = '<d xmlns:ax="urn:axlog"><ax:call stream="s"/></d>'
    text = f"""\
documents:
  one:
    document: '{call}'
    streams: {{s: {{view: two.v}}}}
    views: {{v: {{query: //a, channel: c}}}}
  two:
    document: '{call}'
    streams: {{s: {{channel: c}}}}
    views: {{v: //a}}
channels:
  c: {{kind: memory}}
"""
    assert problems(text) == []
    assert problems(text.replace("two.v", "two.w"))[0][:3] == (4, 25, "AX854")
    assert len(problems(text.replace("  c: {", "  d: {"))) == 2
    both = text.replace("{view: two.v}", "{view: two.v, channel: c}")
    assert any("not several" in message for *_, message in problems(both))


def test_load_raises_with_everything(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(GOOD.replace("kind: console", "kind: consle").replace("clock", "x"))
    with pytest.raises(PipelineError) as raised:
        load(path)
    assert "2 errors" in str(raised.value)
    assert f"{path}: line 9" in str(raised.value)
    with pytest.raises(AxlogError):
        load(tmp_path / "absent.yaml")


def test_a_document_is_found_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "d.xml").write_text(
        '<orders><ax:call xmlns:ax="urn:axlog" stream="orders"/></orders>'
    )
    start, end = GOOD.index("document:"), GOOD.index("streams:")
    path = tmp_path / "p.yaml"
    path.write_text(GOOD[:start] + "document: d.xml\n" + GOOD[end:])
    assert check(path).problems == []
    path.write_text(GOOD[:start] + "document: e.xml\n" + GOOD[end:])
    assert [problem.error.code for problem in check(path).problems] == ["AX102"]
    (tmp_path / "e.xml").write_text('<!DOCTYPE a [<!ENTITY b "c">]><orders>&b;</orders>')
    assert [problem.error.code for problem in check(path).problems][:1] == ["AX111"]


def test_the_schema_knows_every_kind() -> None:
    schema = json_schema()
    sources = [kind["title"] for kind in schema["$defs"]["SourceModel"]["oneOf"]]
    sinks = [kind["title"] for kind in schema["$defs"]["SinkModel"]["oneOf"]]
    assert set(kinds.SOURCES) <= set(sources)
    assert set(kinds.SINKS) <= set(sinks)
    assert "validate" in schema["$defs"]["Settings"]["properties"]
    json.dumps(schema)


def errors_by_schema(text: str) -> list[str]:
    """What an editor reports of a file."""
    jsonschema = pytest.importorskip("jsonschema")
    content = locate(text, None).content
    return [
        one.message for one in jsonschema.Draft202012Validator(json_schema()).iter_errors(content)
    ]


def test_the_schema_accepts_what_the_checks_accept() -> None:
    """Every example, and the forms that only YAML readers know: durations, yes, one for a list."""
    root = Path(__file__).parents[2]
    paths = [*root.glob("examples/*/*.yaml"), root / "deploy" / "pipeline.yaml"]
    pipelines = [path for path in paths if "views:" in path.read_text("utf-8")]
    assert len(pipelines) >= 10
    for path in pipelines:
        assert errors_by_schema(path.read_text("utf-8")) == [], path
    forms = """
    sources: {kind: jsonl, path: in.jsonl}
    streams: {f: {deletes: true, calls: 3}}
    views: {v: {query: //a, good: true}}
    settings: {hold: 500ms, trigger: 2, tune: false, collect: true, retain: no}
    """
    assert check_text(forms, root).errors == []
    assert errors_by_schema(forms) == []


@pytest.mark.parametrize(
    "wrong",
    [
        "streams: {f: {source: {kind: jsonl, pth: in.jsonl}}}",
        "streams: {f: {source: {kind: nothing}}}",
        "streams: {f: {deletes: perhaps}}",
        "settings: {hold: 3 weeks}",
        "settings: {snapshot: 0}",
        "sinks: {s: {kind: jsonl, path: out.jsonl, ops: [insrt]}}",
        "channels: {c: {kind: nothing}}",
    ],
)
def test_the_schema_refuses_what_the_checks_refuse(wrong: str) -> None:
    text = f"{wrong}\nsources: [{{kind: jsonl, path: in.jsonl}}]\nviews: {{v: //a}}\n"
    assert check_text(text, Path()).errors != []
    assert errors_by_schema(text) != []


def test_the_command_reports_problems_as_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(GOOD)
    (tmp_path / "in.jsonl").touch()
    runner = CliRunner()
    done = runner.invoke(application(), ["check", str(path)])
    assert (done.exit_code, done.stdout) == (0, "")
    path.write_text(GOOD.replace("kind: console", "kind: consle"))
    done = runner.invoke(application(), ["check", str(path)])
    assert done.exit_code == 2
    told = json.loads(done.stdout)
    assert (told["line"], told["column"], told["code"], told["level"]) == (16, 25, "AX853", "error")
    done = runner.invoke(application(), ["check", "--table", str(path)])
    assert "did you mean 'console'?" in done.stdout
    assert json.loads(runner.invoke(application(), ["check", "--schema"]).stdout)["$defs"]
    listed = runner.invoke(application(), ["check", "--kinds"]).stdout.splitlines()
    assert {json.loads(line)["kind"] for line in listed} >= {"directory", "jsonl", "console"}


def test_sinks_receive_the_named_changes_only() -> None:
    text = GOOD.replace("{kind: console}", "{kind: console, ops: [never]}")
    checked = check_text(text)
    assert checked.problems == []
    assert checked.model is not None
    sink = checked.model.documents["document"].views["ids"].sinks[1]
    assert not isinstance(sink, str)
    assert sink.ops == ["never"]
    assert problems(GOOD.replace("{kind: console}", "{kind: console, ops: [gone]}"))


def test_a_sink_that_holds_rows_needs_all_their_changes() -> None:
    page = "{kind: page, path: out.html, ops: %s}"
    (found,) = problems(GOOD.replace("{kind: console}", page % "[never]"))
    assert found[2] == "AX852"
    assert problems(GOOD.replace("{kind: console}", page % "[insert, delete, update]")) == []


DEADLINE = """\
engine: embedded
document: |
  <r xmlns:ax="urn:axlog"><orders><ax:call stream="orders"/></orders>
  <shipped><ax:call stream="shipped"/></shipped></r>
streams:
  orders: {source: {kind: jsonl, path: in.jsonl}}
  shipped: {source: {kind: jsonl, path: in.jsonl}}
views:
  on_time:
    query: |
      match /r[orders/order/oid/$x#t1][shipped/order/oid/$x#t2]
      where t2 - t1 <= 2h return $x
"""


def test_a_deadline_without_a_key_is_a_warning_that_names_the_fact() -> None:
    checked = check_text(DEADLINE)
    assert checked.model is not None
    (problem,) = checked.problems
    assert (problem.level, problem.error.code) == ("warning", "AX860")
    fact = "key orders/order by oid trusted"
    assert fact in str(problem.error.advice)
    assert check_text(f"{DEADLINE}facts: [{fact}]\n").problems == []


def test_a_view_about_the_clock_that_waits_for_messages_is_a_warning() -> None:
    text = DEADLINE.replace("[shipped/order/oid/$x#t2]", "").replace("t2 - t1 <=", "now - t1 >=")
    (problem,) = check_text(text).problems
    assert (problem.level, problem.error.code) == ("warning", "AX867")
    assert check_text(text + "settings: {clock: wall}\n").problems == []


def test_messages_without_times_beside_the_clock_of_the_machine_are_a_warning() -> None:
    wall = "settings: {clock: wall}\n"
    text = f"{DEADLINE}facts: [key orders/order by oid trusted]\n"

    def codes(option: str, settings: str) -> list[str]:
        source = f"orders: {{source: {{kind: directory, path: in{option}}}}}"
        given = text.replace("orders: {source: {kind: jsonl, path: in.jsonl}}", source)
        assert given != text
        return [each.error.code for each in check_text(given + settings).problems]

    assert codes(", clock: none", wall) == ["AX870"]
    assert codes(", time: '@at'", wall) == codes(", clock: arrival", wall) == codes("", wall) == []
    assert codes(", clock: none", "") == []


@pytest.mark.parametrize(
    ("source", "clock"),
    [
        ({"kind": "directory", "path": "in"}, "arrival"),
        ({"kind": "jsonl", "path": "in", "format": "json"}, "arrival"),
        ({"kind": "directory", "path": "in", "clock": "file"}, "file"),
        ({"kind": "directory", "path": "in", "clock": "none"}, "none"),
        ({"kind": "directory", "path": "in", "time": "@at"}, None),
        ({"kind": "jsonl", "path": "in"}, None),
        ({"kind": "kafka", "topic": "in", "format": "jsonl"}, None),
    ],
)
def test_messages_without_times_beside_the_clock_of_the_machine_have_that_of_their_arrival(
    source: dict[str, str], clock: str | None
) -> None:
    content = {
        "document": '<r xmlns:ax="urn:axlog"><ax:call stream="s"/></r>',
        "streams": {"s": {"source": source}},
        "views": {"v": {"query": "match /r/a"}},
    }
    wall = PipelineModel.model_validate({**content, "settings": {"clock": "wall"}})
    given = PipelineModel.model_validate(content)
    found = [
        document.streams["s"].source
        for model in (wall, given)
        for document in model.documents.values()
    ]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].written.get("clock") == clock
    assert found[1].written.get("clock") == source.get("clock")
    again = PipelineModel.model_validate(wall.model_dump(mode="json", exclude_unset=True))
    assert again.model_dump() == wall.model_dump()
