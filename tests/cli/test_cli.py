"""The command line: formats, exit codes, errors in words, and `maintain` as a Unix filter."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from axlog import __version__
from axlog.cli import doctor
from axlog.cli.application import VERBS, application
from axlog.cli.statements import statements
from axlog.extras import PARTS
from axlog.samples import orders
from axlog.views.change import Change
from axlog.views.counting.maintainer import Counting

AXLOG = Path(sys.executable).parent / "axlog"
CALL = '<r><ax:call xmlns:ax="urn:axlog" stream="s" deletes="yes"/></r>'
VALUES = "match /r/a/$x return $x"


def run(*arguments: object, given: str | bytes | None = None) -> Result:
    return CliRunner().invoke(application(), [str(each) for each in arguments], input=given)


def objects(result: Result) -> list[Any]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def short(change: dict[str, Any]) -> dict[str, Any]:
    """A change without its view, time, cause, finality and position."""
    return {name: change[name] for name in ("op", "key", "row", "before") if name in change}


def lines(*updates: dict[str, Any]) -> str:
    return "".join(json.dumps(update) + "\n" for update in updates)


def refused(result: Result, code: str) -> str:
    """What an input that cannot be taken gives: its code on standard error, and exit code 2."""
    assert result.exit_code == 2, result.output
    assert code in result.stderr
    assert "Traceback" not in result.stderr
    return result.stderr


# Query --------------------------------------------------------------------------------------------


def test_query_writes_rows_with_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text("<a><b>1</b><b>1</b><b>2</b></a>", encoding="utf-8")
    assert objects(run("query", path, "match /a/b/$x return $x")) == [
        {"row": {"x": "1"}, "count": 2},
        {"row": {"x": "2"}, "count": 1},
    ]


def test_query_takes_text_and_standard_input() -> None:
    wanted = [{"row": {"t.id": "1.1", "t.val": "ü", "t.time": 0}, "count": 1}]
    query = "match /a/b#t return t.id, t.val, t.time"
    xml = "<a><b>ü</b></a>"
    assert objects(run("query", xml, query)) == wanted
    assert objects(run("query", "-", query, given=xml.encode("utf-16"))) == wanted
    assert "ü" in run("query", xml, query).stdout


def test_query_of_a_boolean_and_of_nothing() -> None:
    assert objects(run("query", "<a><b/></a>", "match /a/b")) == [{"row": {}, "count": 1}]
    assert objects(run("query", "<a/>", "match /a/b")) == []


def test_query_options() -> None:
    xml = '<a xmlns="urn:one"><b> </b> <b/></a>'
    query = "match /p:a/text()#t return t.id"
    assert objects(run("query", xml, query, "-n", "p=urn:one")) == []
    kept = run("query", xml, query, "-n", "p=urn:one", "--keep-whitespace")
    assert len(objects(kept)) == 1
    assert len(objects(run("query", xml, "//p:b", "--namespace", "p=urn:one", "--json"))) == 2
    refused(run("query", xml, query), "AX206")
    refused(run("query", "<a><b/></a>", "match /a", "--limit-depth", 1), "AX121")
    refused(run("query", "<a>long</a>", "match /a", "--limit-text", 3), "AX123")
    refused(run("query", "<a>long</a>", "match /a", "--limit-size", 3), "AX122")


@pytest.mark.parametrize("maintainer", ["counting", "reevaluate"])
def test_query_by_either_maintainer(maintainer: str) -> None:
    found = run("query", "<a><b/></a>", "match /a/b", "--maintainer", maintainer)
    assert objects(found) == [{"row": {}, "count": 1}]


def test_tables_for_people() -> None:
    result = run("query", "<a><b>[red]1</b></a>", "match /a/b/$x return $x", "--table")
    assert result.exit_code == 0
    assert "[red]1" in result.stdout  # what looks like markup is shown as it is
    assert "1 row" in result.stdout
    assert "count" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("<a>", "match /a"), "AX101"),
        (("missing.xml", "match /a"), "AX102"),
        (('<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>', "match /a"), "AX111"),
        (("<a/>", "match /a["), "AX201"),
        (("<a/>", "match /a return $x"), "AX20"),
        (("<a/>", "match /a", "--maintainer", "magic"), "AX212"),
        (("<a/>", "/a", "--language", "sql"), "AX201"),
    ],
)
def test_bad_input_is_reported_in_words(arguments: tuple[str, ...], code: str) -> None:
    assert run("query", *arguments).stdout == ""
    refused(run("query", *arguments), code)


def test_a_syntax_error_points_at_its_place() -> None:
    said = refused(run("query", "<a/>", "match /a["), "AX201")
    assert "line 1, column 10" in said
    assert said.splitlines()[2].index("^") == said.splitlines()[1].index("[") + 1
    assert "expected:" in said


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nothing",),
        ("query",),
        ("query", "<a/>"),
        ("query", "<a/>", "match /a", "--unknown"),
        ("query", "<a/>", "match /a", "--namespace", "p"),
        ("query", "<a/>", "match /a", "--limit-depth", "0"),
        ("maintain", "-", "match /a", "-"),
        ("maintain", "<a/>", "match /a", "-", "--on-error", "ignore"),
        ("explain", "match /a", "--code"),
    ],
)
def test_bad_usage_exits_with_2(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


# Maintain -----------------------------------------------------------------------------------------


def test_maintain_writes_changes() -> None:
    updates = lines(
        {"stream": "s", "insert": "<a>1</a>", "at": 1},
        {"stream": "s", "insert": "<a>2</a><z/>", "at": "1970-01-01T00:00:02Z"},
        {"stream": "s", "delete": 'match /a/"1"'},
        {"stream": "s", "end": True},
    )
    cause = {"kind": "message", "stream": "s"}
    assert objects(run("maintain", CALL, VALUES, "-", given=updates)) == [
        {"view": "view", "op": op, "key": [x], "row": {"x": x}, "time": time,
         "cause": {**cause, "number": number}, "final": False, "position": number}
        for number, (op, x, time) in enumerate(
            (("insert", "1", 1), ("insert", "2", 2), ("delete", "1", 2)), 1
        )
    ]  # fmt: skip


def test_maintain_advances_the_clock() -> None:
    updates = lines(
        {"stream": "s", "insert": "<a>1</a>", "at": 1},
        {"advance": "1m"},
        {"stream": "s", "insert": "<a>2</a>", "at": 100},
        {"advance": 200},
    )
    query = "match //a/$x#t where now - t >= 30, now - t < 90 return $x"
    found = objects(run("maintain", CALL, query, "-", "--check", given=updates))
    assert [(each["op"], each["row"]["x"], each["time"], each["cause"]) for each in found] == [
        (op, x, time, {"kind": "clock"})
        for op, x, time in (
            ("insert", "1", 31), ("delete", "1", 91), ("insert", "2", 130), ("delete", "2", 190),
        )
    ]  # fmt: skip


def test_maintain_writes_updates_with_before() -> None:
    result = run(
        "maintain",
        "<r><b><ax:call xmlns:ax='urn:axlog' stream='s'/></b></r>",
        "match /r/b#t return t.val",
        "-",
        given=lines({"stream": "s", "insert": "<c>1</c>"}),
    )
    (change,) = objects(result)
    assert short(change) == {
        "op": "update", "key": ["1.1"], "row": {"t.val": "1"}, "before": {"t.val": ""}
    }  # fmt: skip


def late_orders(messages: list[dict[str, Any]]) -> list[str]:
    """The late orders among messages, in the order of their shipment, worked out by hand."""
    placed: dict[str, float] = {}
    late: list[str] = []
    for message in messages:
        oid = message["insert"].partition("<oid>")[2].partition("<")[0]
        if message["stream"] == "orders":
            if "<client>INRIA" in message["insert"] and "<computer>" in message["insert"]:
                placed[oid] = message["at"]
        elif oid in placed and message["at"] - placed[oid] >= orders.LATE_AFTER:
            late.append(oid)
    assert late
    return late


def test_maintain_reads_a_file_and_checks_every_step(tmp_path: Path) -> None:
    path = tmp_path / "updates.jsonl"
    messages = list(orders.messages(60, seed=1, rate=0.0005, late_share=0.8))
    path.write_text("\n" + lines(*messages), encoding="utf-8")
    result = run("maintain", orders.DOCUMENT, orders.LATE, path, "--check")
    assert [change["row"]["x"] for change in objects(result)] == late_orders(messages)
    assert result.stderr == "checked 60 updates: no difference\n"


def test_maintain_check_fails_with_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Counting.take

    def forgetful(self: Counting, moved: dict[Any, int]) -> list[Change]:
        return take(self, {row: count for row, count in moved.items() if row != ("2",)})

    monkeypatch.setattr(Counting, "take", forgetful)
    updates = [{"stream": "s", "insert": f"<a>{number}</a>"} for number in (1, 2, 3)]
    result = run("maintain", CALL, VALUES, "-", "--check", given=lines(*updates))
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 1
    assert "line 2 of standard input" in result.stderr
    assert 're-evaluation has {"x": "2"} with count 1' in result.stderr


def test_maintain_check_sees_changes_that_do_not_lead_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take = Counting.take

    def silent(self: Counting, moved: dict[Any, int]) -> list[Change]:
        take(self, moved)
        return []

    monkeypatch.setattr(Counting, "take", silent)
    updates = lines({"stream": "s", "insert": "<a>1</a>"})
    result = run("maintain", CALL, VALUES, "-", "--check", given=updates)
    assert result.exit_code == 1
    assert 'the view has {"x": "1"}' in result.stderr


def test_maintain_takes_statements() -> None:
    updates = """
    insert node <a>1; 2</a> into /r;
    for $x in //a return
      insert node <b>{string($x)}</b> after $x;  delete nodes //a;
    """
    result = run("maintain", "<r><a>0</a></r>", VALUES, "-", "--check", given=updates)
    assert [(change["op"], change["row"]["x"]) for change in objects(result)] == [
        ("insert", "1; 2"),
        ("delete", "0"),
        ("delete", "1; 2"),
    ]
    assert "checked 3 updates" in result.stderr


def test_a_bad_statement_stops_with_its_number() -> None:
    result = run(
        "maintain", "<r/>", VALUES, "-", given="insert node <a>1</a> into /r;\ndelete nodes //a[;\n"
    )
    assert "statement 2 of standard input" in refused(result, "AX201")
    assert len(result.stdout.splitlines()) == 1


def test_maintain_in_colour() -> None:
    updates = lines({"stream": "s", "insert": "<a>1</a>"}, {"stream": "s", "delete": "match /a"})
    result = run("maintain", CALL, VALUES, "-", "--table", given=updates)
    assert result.stdout == "+ x=1\n- x=1\n"


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("{", "AX410", "line 2, column 2"),
        ("[]", "AX410", "not a JSON object"),
        ('{"stream": "s"}', "AX410", "a key is missing"),
        ('{"stream": "s", "insert": "<a/>", "end": true}', "AX410", "two actions"),
        ('{"stream": "s", "insert": "<a/>", "when": 1}', "AX410", "'when'"),
        ('{"stream": "s", "insert": 1}', "AX410", "not a string"),
        ('{"stream": "s", "end": false}', "AX410", "not true"),
        ('{"stream": "s", "insert": "<a/>", "at": [1]}', "AX410", "not a time"),
        ('{"stream": "s", "insert": "<a/>", "at": "soon"}', "AX409", "message 2 of stream 's'"),
        ('{"stream": "s", "insert": "<a/>", "at": NaN}', "AX409", "line 2 of standard input"),
        ('{"stream": "s", "insert": "<a/>", "at": 1e40}', "AX409", ""),
        ('{"stream": "s", "insert": "<a/>", "at": 0}', "AX404", "line 2 of standard input"),
        ('{"stream": "s", "insert": "<a>"}', "AX101", "line 1, column"),
        ('{"stream": "s", "insert": "\\ud800"}', "AX410", "lone surrogate"),
        ('{"stream": "t", "insert": "<a/>"}', "AX401", "expected: one of the open streams: s"),
        ('{"stream": "s", "delete": "match /a["}', "AX201", "message 2 of stream 's'"),
        ('{"stream": "s", "insert": "text"}', "AX10", ""),
    ],
)
def test_a_bad_line_stops_with_its_place(line: str, code: str, said: str) -> None:
    first = lines({"stream": "s", "insert": "<a>1</a>", "at": 1})
    result = run("maintain", CALL, VALUES, "-", given=f"{first}{line}\n")
    assert said in refused(result, code)
    assert short(json.loads(result.stdout)) == {"op": "insert", "key": ["1"], "row": {"x": "1"}}


def test_bad_lines_can_be_reported_and_passed_over() -> None:
    updates = lines({"stream": "s", "insert": "<a>"}, {"stream": "s", "insert": "<a>1</a>"})
    result = run(
        "maintain", CALL, VALUES, "-", "--on-error", "dead-letter", given=f"{updates}not json\n"
    )
    assert result.exit_code == 2
    assert short(json.loads(result.stdout)) == {"op": "insert", "key": ["1"], "row": {"x": "1"}}
    assert "line 1 of standard input" in result.stderr
    assert "AX410" in result.stderr


def test_updates_that_are_not_utf_8_are_refused() -> None:
    result = run("maintain", CALL, VALUES, "-", given=b'{"stream": "s", "insert": "<a>\xff</a>"}\n')
    refused(result, "AX113")


def test_missing_updates_are_reported_in_words() -> None:
    assert "nothing.jsonl" in refused(
        run("maintain", CALL, VALUES, "nothing.jsonl"), "No such file"
    )


def test_maintain_answers_before_the_next_line_comes() -> None:
    """A filter in a pipe: each line is answered at once, not when the input ends."""
    command = [str(AXLOG), "maintain", CALL, VALUES, "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(lines({"stream": "s", "insert": f"<a>{number}</a>"}))
            process.stdin.flush()
            answered = json.loads(process.stdout.readline())
            x = str(number)
            assert short(answered) == {"op": "insert", "key": [x], "row": {"x": x}}
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    updates = "".join(lines({"stream": "s", "insert": f"<a>{n}</a>"}) for n in range(20_000))
    with subprocess.Popen(
        [str(AXLOG), "maintain", CALL, VALUES, "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(lines({"stream": "s", "insert": "<a>first</a>"}))
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        try:
            process.stdin.write(updates)
            process.stdin.close()
        except BrokenPipeError:
            pass
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 0


# Explain, generate --------------------------------------------------------------------------------


def test_explain_shows_program_maintainer_and_code() -> None:
    result = run("explain", VALUES, CALL, "--code", "--table")
    assert result.exit_code == 0
    for part in ("q(x) <- ", "label(a, n)", "counting", "nodes", "streams     s", "def match"):
        assert part in result.stdout


def test_explain_takes_no_pipeline_for_a_query(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("document: <a/>")
    result = run("explain", str(path))
    assert result.exit_code == 2
    assert "axlog check" in result.stderr


def test_explain_as_json() -> None:
    (explained,) = objects(run("explain", VALUES, CALL, "--code"))
    assert explained["maintainer"] == "counting"
    assert explained["columns"] == ["x"]
    assert explained["streams"]["s"]["filter"] == "one by one"
    assert "the stream 's' may delete" in explained["spark"]
    assert explained["code"]["s"].startswith("def match")
    (other,) = objects(run("explain", "//a/ancestor::b[following-sibling::c]"))
    assert other["maintainer"] == "records"
    assert "code" not in other


def test_generated_files_can_be_maintained(tmp_path: Path) -> None:
    said = run("generate", "orders", "--into", tmp_path, "--count", 200)
    assert said.exit_code == 0, said.output
    query = (tmp_path / "on-time.axlog").read_text(encoding="utf-8")
    found = objects(run("maintain", tmp_path / "document.xml", query, tmp_path / "updates.jsonl"))
    assert found
    assert {change["op"] for change in found} == {"insert"}


def test_generate_says_what_is_wrong(tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "a.xml"
    assert "a.xml" in refused(run("generate", "auction", 0.001, "--out", missing), "No such file")
    refused(run("generate", "orders", "--into", tmp_path, "--rate", -1), "AX601")


# What is the same for all -------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_help_teaches_with_an_example(verb: str) -> None:
    said = run(verb, "--help").stdout
    assert "Usage" in said
    assert f"Example: axlog {verb}" in said or f"| axlog {verb}" in said


def test_version_needs_no_parser_of_arguments() -> None:
    program = (
        "import sys; sys.argv = ['axlog', '--version']; from axlog.cli import main; main();"
        "print({'typer', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"axlog {__version__}\nset()\n"
    assert run("--version").stdout == f"axlog {__version__}\n"


def test_a_verb_is_imported_alone() -> None:
    program = (
        "import sys; sys.argv = ['axlog', 'query', '<a/>', 'match /a'];"
        "from axlog.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, 'lab' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == '{"row": {}, "count": 1}\n0 False\n'


@pytest.mark.parametrize(
    "wanted",
    [
        [],
        ["delete node /a", "delete node /b"],
        ["insert node <b>x; y</b> into /c", "delete node /a"],
        ["insert node <b k=';'>it's; &lt;</b> into /c", "insert node <b/> into /c"],
        ["rename node /c as 'x;y'", 'replace value of node /a with "; "'],
        ["(: one; two :) delete node /a", "delete node /a[b < 5]"],
        ["insert node <a><b>;</b><!-- ; --><![CDATA[;]]></a> into /c"],
    ],
)
@pytest.mark.parametrize("between", [";", " ;\n\n", ";;"])
def test_statements_are_split_between_and_not_inside(wanted: list[str], between: str) -> None:
    assert list(statements(between.join(wanted))) == wanted
    assert list(statements(between.join(wanted) + between)) == wanted


def test_query_writes_rows_as_the_constructor_builds_them() -> None:
    asked = 'for $b in doc("d")//b return <r>{string($b)}</r>'
    done = run("query", "<a><b>x &amp; y</b><b/></a>", asked, "--xml")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == ["<r/>", "<r>x &amp; y</r>"]


def test_query_without_a_constructor_cannot_be_written_as_xml() -> None:
    done = run("query", "<a><b/></a>", "//b", "--xml")
    assert done.exit_code == 2
    assert "AX211" in done.stderr


def test_doctor_names_what_is_missing_and_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PARTS, "imaginary", ("no_such_module.inside",))
    found = {finding.what: finding for finding in doctor.examine()}
    assert found["python"].state == found["disk"].state == "ok"
    assert found["imaginary"].state == "missing"
    assert found["imaginary"].advice == "pip install 'axlog[imaginary]'"


def test_doctor_says_what_can_run_and_what_stands_in_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(PARTS, "spark", ("no_such_spark",))
    monkeypatch.setenv("SPARK_HOME", "/elsewhere")
    monkeypatch.setenv("PYSPARK_PYTHON", "no-such-python")
    found = {finding.what: finding for finding in doctor.examine()}
    assert found["axlog run"].state == "ok"
    assert found["axlog demo"].state == "missing"
    assert found["axlog demo"].advice == "pip install 'axlog[spark]'"
    assert "unset SPARK_HOME" in found["SPARK_HOME"].advice
    assert "no-such-python" in found["PYSPARK_PYTHON"].found
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(doctor, "PORT", taken.getsockname()[1])
        assert "in use" in doctor._port().found
