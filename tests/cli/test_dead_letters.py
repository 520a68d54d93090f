"""`axlog dead-letters`: rejected messages are listed, corrected and replayed."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from axlog.cli.application import application


def run(*arguments: object, given: str | None = None) -> Result:
    return CliRunner().invoke(application(), [str(each) for each in arguments], input=given)


def shop(place: Path) -> Path:
    (place / "in").mkdir()
    (place / "in" / "1.xml").write_text("<order><id>1</id></order>", encoding="utf-8")
    (place / "in" / "2.xml").write_text("<order><id>2</id>", encoding="utf-8")
    lines = '{"insert": "<payment/>"}\n{"insert": "<payment>"}'
    (place / "payments.jsonl").write_text(lines + "\n", encoding="utf-8")
    content = {
        "engine": "embedded",
        "streams": {
            "orders": {"source": {"kind": "directory", "path": "in"}},
            "payments": {"source": {"kind": "jsonl", "path": "payments.jsonl"}},
        },
        "views": {
            "ids": {"query": "match //order/id/$x return $x", "sinks": [{"kind": "console"}]},
            "paid": {"query": "match //payments/payment#t return t.id",
                     "sinks": [{"kind": "console"}]},
        },
        "dead_letters": {"kind": "jsonl", "path": "dead.jsonl"},
        "settings": {"checkpoint": "state"},
    }  # fmt: skip
    path = place / "p.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def test_list_correct_and_replay(tmp_path: Path) -> None:
    path = shop(tmp_path)
    assert run("dead-letters", path).stdout == ""
    assert run("run", path, "--once").exit_code == 0
    letters = [json.loads(line) for line in run("dead-letters", path).stdout.splitlines()]
    assert {letter["stream"] for letter in letters} == {"orders", "payments"}
    number = {letter["stream"]: letter["number"] for letter in letters}
    shown = run("dead-letters", path, "--show", number["orders"])
    assert shown.stdout == "<order><id>2</id>\n"
    corrected = shown.stdout.strip() + "</order>"
    done = run("dead-letters", path, "--replay", number["orders"], "--with", "-", given=corrected)
    assert done.exit_code == 0, done.output
    (tmp_path / "fixed").write_text("<payment/>", encoding="utf-8")
    fixed = tmp_path / "fixed"
    done = run("dead-letters", path, "--replay", number["payments"], "--with", fixed)
    assert done.exit_code == 0, done.output
    changes = [json.loads(line) for line in run("run", path, "--once").stdout.splitlines()]
    assert [(c["view"], c["op"]) for c in changes] == [("ids", "insert"), ("paid", "insert")]
    assert run("dead-letters", path).stdout == ""
    every = run("dead-letters", path, "--all").stdout.splitlines()
    assert [json.loads(line)["replayed"] for line in every] == [True, True]
    assert run("dead-letters", path, "--show", 17).exit_code == 2


def test_without_a_file_of_dead_letters(tmp_path: Path) -> None:
    path = shop(tmp_path)
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    content["dead_letters"] = {"kind": "console"}
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    refused = run("dead-letters", path)
    assert (refused.exit_code, "AX854" in refused.stderr) == (2, True)


def json_shop(place: Path, **source: str) -> Path:
    (place / "in").mkdir()
    (place / "in" / "order-2.json").write_text(
        '{"id": 2, "lines": ["a"], "at": "soon"}', encoding="utf-8"
    )
    written = {"kind": "directory", "path": "in", "format": "json", "element": "order",
               "time": "at", **source}  # fmt: skip
    content = {
        "engine": "embedded",
        "streams": {"orders": {"source": written}},
        "views": {
            "ids": {"query": "match //order/id/$x return $x", "sinks": [{"kind": "console"}]}
        },
        "dead_letters": {"kind": "jsonl", "path": "dead.jsonl"},
        "settings": {"checkpoint": "state", "times": "dates"},
    }
    (place / "p.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return place / "p.yaml"


@pytest.mark.parametrize("source", [{}, {"pattern": "order-*.json"}, {"order": "name"}])
def test_a_json_message_is_corrected_as_json(tmp_path: Path, source: dict[str, str]) -> None:
    path = json_shop(tmp_path, **source)
    run("run", path, "--once")
    shown = run("dead-letters", path, "--show", 1).stdout
    assert json.loads(shown) == {"id": 2, "lines": ["a"], "at": "soon"}
    for time in ("later", "2026-11-01"):  # wrong again, then right
        corrected = shown.replace("soon", time)
        done = run("dead-letters", path, "--replay", 1, "--with", "-", given=corrected)
        assert done.exit_code == 0, done.output
        changes = run("run", path, "--once").stdout.splitlines()
    assert [json.loads(line)["row"] for line in changes] == [{"x": "2"}]
    shown = run("dead-letters", path, "--show", 2).stdout
    assert json.loads(shown)["at"] == "later"


def test_late_messages_are_reported_with_dates(tmp_path: Path) -> None:
    path = json_shop(tmp_path)
    (tmp_path / "in" / "order-2.json").unlink()
    for number, day in ((1, 5), (2, 3)):
        order = {"id": number, "at": f"2026-11-0{day}T00:00:00Z"}
        (tmp_path / "in" / f"order-{number}.json").write_text(json.dumps(order), encoding="utf-8")
        run("run", path, "--once")
    (letter,) = map(json.loads, run("dead-letters", path).stdout.splitlines())
    assert "has time 2026-11-03T00:00:00Z" in letter["error"]
    assert "before the clock at 2026-11-05T00:00:00Z" in letter["error"]
