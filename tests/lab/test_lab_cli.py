"""The command line of the laboratory: every verb teaches, and `fuzz` runs, resumes and reports."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from axlog.views.counting.maintainer import Counting
from lab.__main__ import VERBS, application
from lab.laws.fuzzing import LAWS


def run(*arguments: object) -> Result:
    return CliRunner().invoke(application(), [str(each) for each in arguments])


def objects(result: Result) -> list[Any]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("verb", VERBS)
def test_help_teaches_with_an_example(verb: str) -> None:
    said = run(verb, "--help").stdout
    assert "Usage" in said
    assert f"Example: python -m lab {verb}" in said


@pytest.mark.parametrize("arguments", [("fuzz", "--law", "9"), ("fuzz", "--cases", "0")])
def test_bad_usage_ends_with_2(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


def test_fuzz_runs_a_range_of_seeds() -> None:
    *laws, total = objects(run("fuzz", "--cases", 60, "--law", "all", "--seed", 7))
    assert [each["law"] for each in laws] == list(LAWS)
    assert all(each["seeds"] == [[7, 7 + each["cases"]]] for each in laws)
    assert {each["failures"] for each in laws} == {0}
    assert total["cases"] == total["of"] == sum(each["cases"] for each in laws) == 60
    assert total["seed"] == 7
    said = run("fuzz", "--cases", 5, "--seed", 3, "--table").stdout
    assert "law 1: 5 cases, seeds 3 to 7, 0 failures" in said


def test_fuzz_goes_on_with_a_run(tmp_path: Path) -> None:
    file = tmp_path / "fuzz.json"
    first = run("fuzz", "--cases", 60, "--law", "6", "--resume", file)
    assert objects(first)[-1]["cases"] == 60
    said = json.loads(file.read_text())
    said["laws"]["6"]["seeds"] = [[0, 50]]  # as if it had been stopped there
    file.write_text(json.dumps(said))
    again = objects(run("fuzz", "--resume", file))
    assert again[0]["seeds"] == [[0, 60]]


def test_fuzz_shares_the_work() -> None:
    found, total = objects(run("fuzz", "--cases", 24, "--jobs", 2))
    assert (found["law"], found["seeds"], found["failures"]) == ("1", [[0, 24]], 0)
    assert total["cases"] == 24


def test_fuzz_writes_what_fails_as_fixtures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Counting, "take", lambda self, moved: [])
    result = run("fuzz", "--cases", 50, "--stop-after", 1)
    assert result.exit_code == 1
    assert "== document" in result.stderr
    assert "== changes" in result.stderr
    assert run("fuzz", "--cases", 50, "--stop-after", 1, "--into", tmp_path).exit_code == 1
    monkeypatch.undo()
    from lab.laws.fixtures import play, read_fixture

    for path in tmp_path.glob("law-1-seed-*.txt"):
        fixture = read_fixture(path.read_text(encoding="utf-8"))
        assert play(fixture, "counting") == fixture
    assert list(tmp_path.iterdir())
