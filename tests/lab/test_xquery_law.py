"""Law 10 for seeds: XQuery views equal Saxon's answer after every update."""

import pytest

from axlog.views.dataflow.collection import KeptCollection
from lab.laws.fuzzing import run_case
from tests.amounts import chunks

pytest.importorskip("saxonche")


@pytest.mark.parametrize("start", chunks(10, 5))
def test_oracle_law_xquery_holds_for_seeds(start: int) -> None:
    failures = [f for seed in range(start, start + 5) if (f := run_case(seed, "xquery"))]
    assert not failures, "\n".join([*map(str, failures), failures[0].text()])


def test_oracle_queries_made_for_saxon_hold_for_seeds() -> None:
    failures = [f for seed in range(5) if (f := run_case(seed, "accepted"))]
    assert not failures, "\n".join([*map(str, failures), failures[0].text()])


def test_oracle_a_plan_that_notifies_nobody_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeptCollection, "notify", lambda self: None)
    assert any(run_case(seed, "xquery") for seed in range(20))
