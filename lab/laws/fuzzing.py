"""Fuzzing: the laws of docs/design.md on random small cases, by thousands or by millions.

A case depends only on its law and its seed, so a run can be split into ranges of seeds and repeated
anywhere (`fuzz_runs.py`). A failing case is reduced while it still fails, if the law supports it,
and reported as text: a fixture file if the case can be one, otherwise its repr.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from lab.laws.fixtures import fixture_of, write_fixture
from lab.laws.fuzz_cases import Case
from lab.laws.table import LAWS, Law

T = TypeVar("T")

__all__ = ["LAWS", "Failure", "run_case", "run_range", "shrink"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that breaks a law, reduced, with the error."""

    law: str
    seed: int
    what: str
    case: Any

    def __str__(self) -> str:
        return f"law {self.law}, seed {self.seed}: {self.what}"

    def text(self) -> str:
        """A fixture file where the case can be one; else the error and the case."""
        if isinstance(self.case, Case):
            try:
                return write_fixture(fixture_of(self.case, str(self)))
            except Exception as error:  # the bug itself may prevent it
                return f"{self}\n\n{self.case!r}\n\nno fixture: {error}\n"
        return f"{self}\n\n{self.case!r}\n"


def run_case(seed: int, law: str = "1", seen: Counter[str] | None = None) -> Failure | None:
    """Run the case of one seed; None if the law holds. `seen` counts what was compared."""
    checked = LAWS[law]
    case = checked.make(Random(f"{law}:{seed}"))
    what = _trouble(checked, case, seen)
    if what is None:
        return None
    smallest = case
    if checked.cuts is not None:
        smallest = shrink(case, lambda cut: _trouble(checked, cut) is not None, checked.cuts)
    return Failure(law, seed, _trouble(checked, smallest) or what, smallest)


def run_range(seeds: Iterable[int], law: str = "1") -> Iterator[Failure | None]:
    """The cases of many seeds, one result each."""
    return (run_case(seed, law) for seed in seeds)


def _trouble(law: Law, case: Any, seen: Counter[str] | None = None) -> str | None:
    try:
        found = law.check(case)
        if seen is not None and isinstance(found, Counter):
            seen.update(found)
    except AssertionError as broken:
        return str(broken)
    except Exception as error:  # no case may raise any other error
        return f"{type(error).__name__}: {error}"
    return None


def shrink(case: T, fails: Callable[[T], bool], cuts: Callable[[T], Iterator[T]]) -> T:
    """Reduce a case as long as it still fails."""
    shrunk = True
    while shrunk:
        shrunk = False
        for smaller in cuts(case):
            if fails(smaller):
                case, shrunk = smaller, True
                break
    return case
