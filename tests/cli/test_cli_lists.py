"""`axlog diff` and `axlog reduce`: lists on standard output that the other verb reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from axlog.cli import diff, reduce
from axlog.cli.application import Verbs
from axlog.document import pending
from axlog.document.list_codec import read_lists
from axlog.document.loader import load
from axlog.document.serializer import serialise
from axlog.document.update_lists import resolved
from axlog.evaluate.patches import read_patch

OLD, NEW = "<r><a k='1'/><b>x</b></r>", "<r><a k='2'/><b>x</b><c/></r>"


def run(*arguments: str, given: str | None = None) -> Result:
    app = typer.Typer(cls=Verbs)
    diff.register(app)
    reduce.register(app)
    return CliRunner().invoke(app, list(arguments), input=given)


def written(path: Path, *edits: Mapping[str, object]) -> str:
    path.write_text(json.dumps({"updates": list(edits)}), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("form", ["json", "xml"])
def test_diff_writes_a_list(form: str) -> None:
    result = run("diff", OLD, NEW, "--form", form)
    assert result.exit_code == 0
    (made,) = read_lists(result.stdout)
    tree = load(OLD)
    pending.apply(tree, resolved(tree, made))
    assert serialise(tree) == serialise(load(NEW))


def test_diff_is_json_without_a_terminal() -> None:
    result = run("diff", OLD, NEW)
    assert [one["op"] for one in json.loads(result.stdout)["updates"]] == [
        "insert-after",
        "replace-value",
    ]


def test_diff_writes_a_patch() -> None:
    result = run("diff", OLD, NEW, "--form", "rfc5261")
    tree = load(OLD)
    for one in read_patch(load(OLD), result.stdout):
        pending.apply(tree, resolved(tree, one))
    assert serialise(tree) == serialise(load(NEW))


def test_reduce_reads_what_diff_writes() -> None:
    made = run("diff", OLD, NEW).stdout
    result = run("reduce", "-", given=made)
    assert result.exit_code == 0
    assert result.stdout == made


def test_reduce(tmp_path: Path) -> None:
    inserted = {"op": "insert-last", "target": "1.2", "content": [{"text": "y"}]}
    path = written(tmp_path / "list.json", inserted, {"op": "delete", "target": "1.2"})
    result = run("reduce", path)
    assert json.loads(result.stdout) == {"updates": [{"op": "delete", "target": "1.2"}]}


def test_reduce_statements_on_a_document(tmp_path: Path) -> None:
    path = tmp_path / "updates.xq"
    path.write_text("insert node <n/> into /r; insert node <m/> into /r/n; delete node /r/b")
    apart = run("reduce", str(path), "--on", OLD).stdout.splitlines()
    assert len(apart) == 3
    (together,) = run("reduce", str(path), "--on", OLD, "--sequential").stdout.splitlines()
    tree = load(OLD)
    pending.apply(tree, resolved(tree, read_lists(together)[0]))
    assert serialise(tree) == '<r><a k="1"/><n><m/></n></r>'


def test_reduce_parallel_lists(tmp_path: Path) -> None:
    one = written(tmp_path / "one.json", {"op": "delete", "target": "1.2"})
    renamed = {"op": "rename", "target": "1.2", "name": "z"}
    two = written(tmp_path / "two.json", renamed)
    merged = json.loads(run("reduce", one, two, "--parallel").stdout)["updates"]
    assert [edit["op"] for edit in merged] == ["delete"]
    kept = run("reduce", one, two, "--parallel", "--policy", "2:inserted").stdout
    assert [edit["op"] for edit in json.loads(kept)["updates"]] == ["rename"]
    both = ("--policy", "1:removed", "--policy", "2:inserted")
    refused = run("reduce", one, two, "--parallel", *both)
    assert refused.exit_code == 2
    assert "AX305" in refused.stderr
    said = run("reduce", one, two, "--conflicts")
    assert said.exit_code == 1
    assert said.stdout == "LO: list 1: delete 1.2; list 2: rename 1.2\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("reduce", "none.json"),
        ("reduce", "-", "--sequential", "--parallel"),
        ("reduce", "-", "--parallel", "--policy", "3:order"),
        ("diff", "<a>", "<b/>"),
        ("diff", "none.xml", "<b/>"),
    ],
)
def test_bad_input_is_said_in_words(arguments: tuple[str, ...]) -> None:
    result = run(*arguments, given='{"updates": []}')
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
