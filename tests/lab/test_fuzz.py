"""The fuzzer: every law on some seeds; runs dealt out to laws, stopped and gone on with."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from axlog.errors import InputError
from lab.laws import fuzz_runs
from lab.laws.containment_law import check_pair, make_pair
from lab.laws.fuzz_runs import CHUNK, LawRun, State, new_run, run
from lab.laws.fuzzing import LAWS, Failure, run_case
from tests.amounts import cases

CASES = {"3": 75, "6": 50, "7": 12, "11": 150, "rows": 75, "lists": 75, "filters": 30,
         "feeds": 40, "containment": 60, "truth": 8, "never": 2, "prospects": 2,
         "collect": 2, "scalars": 40, "native-scalars": 150}  # fmt: skip
"""Laws 1, 2, 4, 5, 8 and records have tests of their own."""


@pytest.mark.parametrize("law", CASES)
def test_differential_law_holds_for_seeds(law: str) -> None:
    failures = [f for seed in range(cases(CASES[law])) if (f := run_case(seed, law)) is not None]
    assert not failures, "\n".join([*map(str, failures), failures[0].text()])


def test_verdicts_of_both_kinds_are_compared() -> None:
    seen = {v for seed in range(60) for v in check_pair(make_pair(Random(seed)))}
    assert len(seen) >= 2


def test_the_shares_add_up() -> None:
    assert sum(law.share for law in LAWS.values()) == 10_000
    assert all(law.share > 0 for law in LAWS.values())


@pytest.mark.parametrize("cases", [len(LAWS), 1000, 123_457, 1_000_000])
def test_a_total_is_dealt_out_to_all_laws(cases: int) -> None:
    state = new_run("all", cases, 7)
    assert state.total == cases
    assert set(state.laws) == set(LAWS)
    if cases == 1000:  # the laws in turn: halfway, each is about half done
        chunks = list(state.chunks())
        half = chunks[: len(chunks) // 2]
        assert {name for name, _, _ in half} >= {"3", "6", "rows", "lists"}


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    state = new_run("lists", 4 * CHUNK, 1000)
    running = run(state, file=file)
    next(running)
    running.close()  # type: ignore[attr-defined]
    again = State.load(file)
    assert again.laws["lists"].done == [[1000, 1000 + CHUNK]]
    assert next(chunk[1:] for chunk in again.chunks()) == (1000 + CHUNK, 1000 + 2 * CHUNK)
    assert sum(1 for _ in run(again, file=file)) == 3
    said = json.loads(file.read_text())
    assert said["laws"]["lists"]["seeds"] == [[1000, 1000 + 4 * CHUNK]]
    assert (said["cases"], said["of"], said["failures"]) == (4 * CHUNK, 4 * CHUNK, 0)
    assert list(State.load(file).chunks()) == []


def test_chunks_may_end_in_any_order() -> None:
    law = LawRun(200)
    for start in (100, 0, 150, 50):
        law.note(start, start + 50)
    assert law.done == [[0, 200]]
    assert law.count == 200


def test_failures_are_kept_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(seed: int, law: str, seen: Counter[str]) -> Failure | None:
        seen["cases"] += 1
        return Failure(law, seed, "it is wrong", None) if seed == 3 else None

    monkeypatch.setattr(fuzz_runs, "run_case", broken)
    file = tmp_path / "state.json"
    found = [f for failures in run(new_run("6", 2 * CHUNK, 0), file=file) for f in failures]
    assert [failure.seed for failure in found] == [3]
    kept = State.load(file).laws["6"]
    assert kept.failures == ["law 6, seed 3: it is wrong"]
    assert kept.seen == {"cases": 2 * CHUNK}


def test_a_file_that_is_no_run_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    for text in ("", "[]", '{"axlog-fuzz": 99}', '{"axlog-fuzz": 1, "laws": {"1": {}}}'):
        file.write_text(text)
        with pytest.raises(InputError):
            State.load(file)
