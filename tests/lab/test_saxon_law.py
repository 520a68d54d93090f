"""The law of views that Saxon evaluates, and mutants of the proof that an update is outside."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from axlog.views.saxon.relevance import PathAutomaton
from lab.laws.fuzzing import run_case
from tests.amounts import chunks

pytest.importorskip("saxonche")


@pytest.mark.parametrize("start", chunks(8, 8))
def test_oracle_law_saxon_holds_for_seeds(start: int) -> None:
    failures = [f for seed in range(start, start + 8) if (f := run_case(seed, "saxon"))]
    assert not failures, "\n".join([*map(str, failures), failures[0].text()])


def _without_deep(patch: pytest.MonkeyPatch) -> None:
    made = PathAutomaton._made

    def mutant(self: Any, here: Any, above: Any, is_below_deep: bool) -> Any:
        return replace(made(self, here, above, False), is_deep=False)

    patch.setattr(PathAutomaton, "_made", mutant)


def _without_touched(patch: pytest.MonkeyPatch) -> None:
    made = PathAutomaton._made

    def mutant(self: Any, here: Any, above: Any, is_below_deep: bool) -> Any:
        return replace(made(self, here, above, is_below_deep), is_touched=False)

    patch.setattr(PathAutomaton, "_made", mutant)


def _with_roots_only(patch: pytest.MonkeyPatch) -> None:
    def mutant(self: Any, top: int, states: Any) -> bool:
        state = self._state(top, states)
        return bool(state.is_touched or state.is_deep)

    patch.setattr(PathAutomaton, "_is_read", mutant)


@pytest.mark.parametrize("mutant", [_without_deep, _without_touched, _with_roots_only])
def test_oracle_an_unsound_proof_is_found(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    assert any(run_case(seed, "saxon") for seed in range(40))
