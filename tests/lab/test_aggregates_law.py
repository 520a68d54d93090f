"""Steps on random cases; `python -m lab fuzz --law aggregates` runs more."""

from __future__ import annotations

import pytest

from lab.laws.fuzzing import run_case
from tests.amounts import chunks

CHUNK = 25


@pytest.mark.parametrize("start", chunks(25, CHUNK))
def test_computed_rows_are_those_of_the_definition(start: int) -> None:
    seeds = range(start, start + CHUNK)
    failures = [f for seed in seeds if (f := run_case(seed, "aggregates")) is not None]
    assert not failures, "\n".join([*map(str, failures), failures[0].text()])
