"""`axlog init`: pipelines that run, from samples and from answers."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from axlog.cli.application import application
from axlog.pipeline import loader


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(application(), list(arguments), input=given)


def rows(directory: str = ".") -> list[tuple[str, str, dict[str, str]]]:
    checked = loader.check(Path(directory) / "pipeline.yaml")
    assert checked.model is not None, [p.error.describe() for p in checked.problems]
    done = run("run", f"{directory}/pipeline.yaml", "--once", "--engine", "embedded")
    assert done.exit_code == 0, done.output
    changes = [json.loads(line) for line in done.stdout.splitlines()]
    return [(c["view"], c["op"], c["row"]) for c in changes]


def write(**files: str) -> list[str]:
    for name, text in files.items():
        Path(name.replace("_", ".")).write_text(text, encoding="utf-8")
    return [name.replace("_", ".") for name in files]


def test_json_lines_and_one_stream() -> None:
    lines = '{"number": 1, "client": "a b"}\n{"number": 2, "client": "c"}\n'
    done = run("init", *write(orders_jsonl=lines))
    assert done.exit_code == 0, done.output
    assert "orders: 2 messages, key number" in done.output
    assert rows() == [
        ("all_orders", "insert", {"number": "1", "client": "a b"}),
        ("all_orders", "insert", {"number": "2", "client": "c"}),
    ]


def test_namespaces_attributes_and_records() -> None:
    feed = (
        '<f xmlns="urn:feed" xmlns:x="urn:x"><e x:id="1"><t>a</t></e><e x:id="2"><t>b</t></e></f>'
    )
    paid = '{"payment": {"for": {"e": "2"}, "when": "2026-01-02T10:00:00Z"}}'
    done = run("init", *write(feed_xml=feed, paid_json=paid), "--into", "made")
    assert done.exit_code == 0, done.output
    written = yaml.safe_load(Path("made/pipeline.yaml").read_text(encoding="utf-8"))
    assert written["namespaces"] == {"ns1": "urn:feed", "x": "urn:x"}
    assert written["streams"]["es"]["source"]["record"] == "ns1:e"
    assert rows("made") == [
        ("es_without_payments", "insert", {"id": "1"}),
        ("es_without_payments", "insert", {"id": "2"}),
        ("es_without_payments", "delete", {"id": "2"}),
    ]


def test_named_streams_and_what_is_refused() -> None:
    write(a_xml="<a><id>1</id></a>", b_xml="<a><id>1</id></a>", c_txt="plain")
    assert run("init", "sent=a.xml", "got=b.xml").exit_code == 0
    assert (
        rows()
        == [
            ("sent_without_got", "insert", {"id": "1"}),
            ("sent_without_got", "delete", {"id": "1"}),
        ]
        or rows() == []
    )
    again = run("init", "sent=a.xml")
    assert (again.exit_code, "AX851" in again.stderr) == (2, True)
    assert run("init", "sent=a.xml", "--force").exit_code == 0
    for wrong in ("c.txt", "absent.xml"):
        refused = run("init", wrong, "--into", "x")
        assert (refused.exit_code, "AX102" in refused.stderr) == (2, True)
        assert not Path("x").exists()


def test_questions() -> None:
    answers = "orders,payments\njson\norder\noid\n-\nxml\npayment\noid\n@at\n"
    done = run("init", "--into", "asked", given=answers)
    assert done.exit_code == 0, done.output
    Path("asked/in/orders/1.json").write_text('{"oid": 17}', encoding="utf-8")
    assert rows("asked") == [("orders_without_payments", "insert", {"oid": "17"})]


def test_times_in_seconds_since_1970_and_a_directory() -> None:
    Path("samples").mkdir()
    reading = '{"device": "d7", "seen": 1, "ts": 1762000000}'
    Path("samples/reading.json").write_text(reading, encoding="utf-8")
    Path("samples/notes.txt").write_text("not a sample", encoding="utf-8")
    done = run("init", "samples")
    assert done.exit_code == 0, done.output
    assert "readings: 1 message, time ts" in done.output
    assert rows() == [("all_readings", "insert", {"device": "d7", "seen": "1"})]
    again = run("run", "pipeline.yaml", "--once", "--engine", "embedded")
    assert "no new messages since the last run; its state is in out/state" in again.stderr
    Path("nothing").mkdir()
    assert "contains no samples" in run("init", "nothing", "--force").stderr
    Path("empty.xml").touch()
    assert "is empty" in run("init", "empty.xml", "--force").stderr


def test_the_table_of_a_check_shows_extras_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("axlog.pipeline.engines.is_installed", lambda module: False)
    Path("order.xml").write_text("<order><id>17</id></order>")
    assert run("init", "order.xml").exit_code == 0
    checked = run("check", "pipeline.yaml", "--table")
    assert "pip install 'axlog[spark]' adds it" in checked.stdout, checked.stdout
