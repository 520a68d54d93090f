"""`axlog maintain` with lists of updates, and with types."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from axlog.cli import maintain
from axlog.cli.application import application

DOC = "<r><a>1</a><b/></r>"
QUERY = "match //a/$x return $x"
STATEMENTS = """
insert node <a>5</a> into /r; insert node <c/> into /r/a[. = '5']; delete node /r/a[1]
"""
TYPES = "root: r  r -> |a| >= 0 & |b| = 1  a -> |text()| >= 0 & |c| <= 1  b ->  c ->"


def run(*arguments: object, given: str | None = None) -> Result:
    return CliRunner().invoke(application(), [str(each) for each in arguments], input=given)


def told(result: Result) -> list[tuple[str, str]]:
    assert result.exit_code == 0, result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return [(line["op"], line["row"]["x"]) for line in lines]


@pytest.mark.parametrize("form", ["json", "xml"])
@pytest.mark.parametrize("option", ["--reduce", "--no-reduce"])
def test_maintain_reads_what_reduce_writes(tmp_path: Path, form: str, option: str) -> None:
    path = tmp_path / "statements.xq"
    path.write_text(STATEMENTS)
    wanted = told(run("maintain", DOC, QUERY, path, "--check"))
    lists = run("reduce", "--on", DOC, path, "--form", form).stdout
    if form == "xml":
        lists = f'<ax:lists xmlns:ax="urn:axlog">{lists}</ax:lists>'
    found = told(run("maintain", DOC, QUERY, "-", "--check", option, given=lists))
    assert found == wanted == [("insert", "5"), ("insert", "c"), ("delete", "1")]


def test_a_list_that_does_not_fit_is_refused() -> None:
    gone = json.dumps({"updates": [{"op": "delete", "target": "1.9"}]})
    fits = json.dumps({"updates": [{"op": "delete", "target": "1.1"}]})
    result = run("maintain", DOC, QUERY, "-", given=gone)
    assert (result.exit_code, "AX301" in result.stderr) == (2, True)
    result = run(
        "maintain", DOC, QUERY, "-", "--on-error", "dead-letter", given=f"{gone}\n{fits}\n"
    )
    assert result.exit_code == 2
    assert json.loads(result.stdout)["op"] == "delete"


def test_violations_are_refused_reported_or_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    types = tmp_path / "types.txt"
    types.write_text(TYPES)
    given = "insert nodes (<d/>, <a>2</a>) into /r"
    arguments = ("maintain", DOC, QUERY, "-", "--types", types, "--on-violation")
    refused = run(*arguments, "refuse", given=given)
    assert (refused.exit_code, "AX705" in refused.stderr) == (2, True)
    reported = run(*arguments, "report", given=given)
    assert told(reported) == [("insert", "2")]
    assert "AX705" in reported.stderr
    terminal = tmp_path / "terminal"
    monkeypatch.setattr(maintain, "TERMINAL", terminal)
    assert run(*arguments, "ask", given=given).exit_code == 2  # there is no terminal
    answers = _Terminal("no\n", "y\n")
    monkeypatch.setattr(maintain, "TERMINAL", answers)
    assert run(*arguments, "ask", given=given).exit_code == 2
    assert told(run(*arguments, "ask", given=given)) == [("insert", "2")]
    assert all("Apply it all the same?" in said for said in answers.said)
    assert run(*arguments, "maybe", given=given).exit_code == 2


class _Terminal:
    """A terminal on which somebody answers."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.said: list[str] = []

    def open(self, *_: object, **__: object) -> _Terminal:
        return self

    def __enter__(self) -> _Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def write(self, text: str) -> None:
        self.said.append(text)

    def readline(self) -> str:
        return self._answers.pop(0)
