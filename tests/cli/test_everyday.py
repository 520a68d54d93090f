"""The command line in everyday use: values, hints, patches, completion, and likely mistakes."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from axlog.cli.application import application
from axlog.errors import AxlogError
from axlog.query.query import parse_query
from axlog.views.view_query import parse_view

SHOP = '<o xmlns="urn:x"><order id="1"><c>Ann</c></order><order id="2"><c>Bob</c></order></o>'
X = ("-n", "p=urn:x")


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(application(), list(arguments), input=given)


def printed(*arguments: str, given: str | None = None) -> list[str]:
    done = run(*arguments, given=given)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def test_values_as_other_tools_print_them() -> None:
    assert printed("query", SHOP, "//p:c", *X) == [
        '<c xmlns="urn:x">Ann</c>',
        '<c xmlns="urn:x">Bob</c>',
    ]
    assert printed("query", SHOP, "//p:c", *X, "--show", "val") == ["Ann", "Bob"]
    assert printed("query", SHOP, "//p:order/@id", *X, "--show", "id") == ["1.1.@1", "1.2.@1"]
    assert printed("query", SHOP, "count(//p:order)", *X) == ["2"]
    assert printed("query", SHOP, "//p:order/@id", *X) == ["1", "2"]
    assert printed("query", SHOP, "//p:order", *X, "--show", "json") == [
        '{"@id": "1", "c": "Ann"}',
        '{"@id": "2", "c": "Bob"}',
    ]
    assert printed("query", SHOP, "//p:c", *X, "--json")[0].startswith('{"row"')
    refused = run("query", SHOP, "match //c#t return t.id", "--show", "val")
    assert refused.exit_code == 2


@pytest.mark.parametrize("query", ["sum(//p:c)", "//p:c[. = true()]", "max((1, //p:c))"])
def test_a_query_that_has_no_value_is_an_error(query: str) -> None:
    done = run("query", SHOP, query, *X)
    assert (done.exit_code, done.stdout) == (2, "")
    assert isinstance(done.exception, AxlogError | SystemExit)


def test_a_namespace_is_named_as_the_reason_for_no_rows() -> None:
    for query in ("//c", "match /o/order/c/$x return $x"):
        done = run("query", SHOP, query)
        assert (done.exit_code, done.stdout) == (0, "")
        assert "is in the namespace urn:x" in done.stderr
    assert run("query", SHOP, "//p:absent", *X).stderr == ""
    assert run("query", "<a/>", "//c").stderr == ""


def test_a_name_that_is_nearly_right_is_a_hint() -> None:
    shop = "<shop><order><id>1</id></order></shop>"
    assert "did you mean 'order'?" in run("query", shop, "//ordr/id").stderr
    assert run("query", shop, "//order[id = 2]").stderr == ""
    for language in ("xpath", "pattern"):
        query = (
            "//order[contians(id, '1')]"
            if language == "xpath"
            else ("match //order[contians(id/$x, '1')] return $x")
        )
        assert "did you mean 'contains'?" in run("query", shop, query).stderr
    assert "the document comes first" in run("query", "//order", shop).stderr


def test_a_document_may_be_json(tmp_path: Path) -> None:
    assert printed("query", '{"order": {"id": 17}}', "/order/id", "--show", "val") == ["17"]
    (tmp_path / "orders.json").write_text('[{"id": 17}, {"id": 18}]', encoding="utf-8")
    path = str(tmp_path / "orders.json")
    assert printed("query", path, "/document/item/id", "--show", "val") == ["17", "18"]
    assert "AX106" in run("query", "{", "//a").stderr


@pytest.mark.parametrize("form", ["json", "xml", "rfc5261"])
def test_patch_undoes_diff(form: str, tmp_path: Path) -> None:
    old, new = '<a k="1"><b/>x<c><d/></c></a>', '<a k="2"><c>y</c><b/></a>'
    (tmp_path / "old.xml").write_text(old, encoding="utf-8")
    written = run("diff", str(tmp_path / "old.xml"), new, "--form", form).stdout
    (tmp_path / "patch").write_text(written, encoding="utf-8")
    assert printed("patch", str(tmp_path / "old.xml"), str(tmp_path / "patch")) == [new]
    assert printed("patch", old, "-", given=written) == [new]
    out = tmp_path / "new.xml"
    assert printed("patch", old, written, "--out", str(out)) == []
    assert out.read_text(encoding="utf-8") == new + "\n"


def test_a_patch_that_does_not_apply(tmp_path: Path) -> None:
    refused = run("patch", "<a/>", '{"updates": [{"op": "delete", "target": "1.7"}]}')
    assert refused.exit_code == 2
    assert "Traceback" not in refused.stderr
    (tmp_path / "no").write_text("nothing", encoding="utf-8")
    assert "AX306" in run("patch", "<a/>", str(tmp_path / "no")).stderr
    assert run("patch", "-", "-").exit_code == 2


@pytest.mark.parametrize(
    ("query", "advice"),
    [
        ("select c from orders", "SQL"),
        ("SELECT * FROM orders WHERE x = 1", "SQL"),
        ("$.orders[0]", "JSONPath"),
        (".orders[].id", "jq"),
        ("match /document[orders/order/][not(x)] return ", "single quotes"),
        ("//o[a == 1]", "write `=`"),
        ("//o[a = 1 && b]", "write `and`"),
        ("match //o[a = 1 && b]", "write `and`"),
        ("match //o/t/$t return sum($t) as $total", "without `$`"),
    ],
)
def test_likely_mistakes_have_their_own_advice(query: str, advice: str) -> None:
    for parse in (parse_query, parse_view):
        with pytest.raises(AxlogError) as caught:
            parse(query)
        assert caught.value.code == "AX201"
        assert advice in str(caught.value.advice)


def test_names_that_look_like_mistakes_are_queries() -> None:
    assert parse_query("select").language == "xpath"
    with pytest.raises(AxlogError) as caught:
        parse_query("//a[")
    assert caught.value.advice is None


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("<order/>", "the line is XML"),
        ('{"oid": 17}', "format: json"),
        ("17,Ann,mon", "CSV"),
    ],
)
def test_lines_that_are_no_updates(line: str, advice: str, tmp_path: Path) -> None:
    (tmp_path / "updates.jsonl").write_text(line + "\n", encoding="utf-8")
    done = run("maintain", "<a/>", "//b", str(tmp_path / "updates.jsonl"))
    assert done.exit_code == 2
    assert advice in done.stderr


def test_verify_of_a_checkpoint(tmp_path: Path) -> None:
    content = {
        "engine": "embedded",
        "document": "<a/>",
        "views": {"b": "//b"},
        "settings": {"checkpoint": "state"},
    }
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    done = run("run", str(tmp_path / "p.yaml"), "--once")
    assert done.exit_code == 0, done.output
    assert "the sources have no messages" in done.stderr
    assert "the checkpoint of a pipeline" in run("verify", str(tmp_path / "state")).stderr


def test_completion(tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "axlog"
    asked = {"_AXLOG_COMPLETE": "complete_bash", "COMP_WORDS": "axlog dia", "COMP_CWORD": "1"}
    for words, wanted in (("axlog que", "query"), ("axlog query --sh", "--show")):
        env = {**os.environ, **asked, "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        done = subprocess.run([program], env=env, capture_output=True, text=True, check=False)
        assert done.stdout.split() == [wanted], done.stderr


def test_an_interrupt_is_quiet() -> None:
    program = [sys.executable, "-m", "axlog", "maintain", "<a/>", "//b", "-"]
    process = subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None  # noqa: PT018  # for mypy
    process.stdin.write("insert node <b/> into /a;\n")
    process.stdin.flush()
    process.stdout.readline()  # it runs
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)  # before its input ends, which would end it, too
    _, said = process.communicate()
    assert (process.returncode, said) == (130, "")


def test_check_names_what_this_machine_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        content = {
            "engine": "embedded",
            "streams": {
                "a": {"source": {"kind": "directory", "path": "in"}},
                "b": {"source": {"kind": "kafka", "brokers": f"127.0.0.1:{port}", "topic": "t"}},
            },
            "views": {"v": {"query": "//a/x", "sinks": [{"kind": "parquet", "path": "v.parquet"}]}},
        }
        path = tmp_path / "p.yaml"
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        done = run("check", str(path), "--connect")
        assert done.exit_code == 0
        assert f"{tmp_path / 'in'} does not exist" in done.stdout
        assert f"127.0.0.1:{port} is not reachable" in done.stdout
    monkeypatch.setattr("axlog.pipeline.machine_checks.is_installed", lambda module: False)
    done = run("check", str(path))
    assert "pip install 'axlog[brokers]'" in done.stdout
    assert "pip install 'axlog[arrow]'" in done.stdout
    assert "not reachable" not in done.stdout


def test_why_says_of_a_row_that_is_not_there_whether_it_can_come() -> None:
    call = '<ax:call xmlns:ax="urn:axlog" stream="orders"/>'
    document, query = f"<shop><order>17</order>{call}</shop>", "match /shop/order/$x return $x"
    done = run("why", document, query, "--row", "x=18")
    assert done.exit_code == 1
    assert json.loads(done.stdout) == {
        "row": {"x": "18"},
        "truth": "possible",
        "reasons": [
            {"kind": "needs", "text": "orders can still bring order/$x", "stream": "orders"}
        ],
    }
    done = run("why", document.replace(call, ""), query, "--row", "x=18", "--table")
    assert done.stdout.splitlines() == [
        "x=18",
        "never",
        "  no stream is open, and the row is not there",
    ]
