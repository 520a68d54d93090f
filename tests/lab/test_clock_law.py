"""Views about the clock on random cases; `python -m lab fuzz --law clock` runs more."""

from __future__ import annotations

import pytest

from lab.laws.fuzzing import run_case
from tests.amounts import cases, chunks

CHUNK = 25


@pytest.mark.parametrize("start", chunks(25, CHUNK))
def test_rows_about_the_clock_are_those_of_the_definition(start: int) -> None:
    seeds = range(start, start + CHUNK)
    failures = [f for seed in seeds if (f := run_case(seed, "clock")) is not None]
    assert not failures, "\n".join([*map(str, failures), failures[0].text()])


def test_the_clock_filter_is_its_definition_at_every_moment() -> None:
    failures = [f for seed in range(cases(75)) if (f := run_case(seed, "clock-filter")) is not None]
    assert not failures, "\n".join([*map(str, failures), failures[0].text()])


def test_truth_about_the_clock_is_that_of_brute_force() -> None:
    failures = [f for seed in range(cases(6)) if (f := run_case(seed, "clock-truth")) is not None]
    assert not failures, "\n".join([*map(str, failures), failures[0].text()])
