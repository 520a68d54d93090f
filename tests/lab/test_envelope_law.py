"""Keys and envelopes on random cases; `python -m lab fuzz --law envelope` runs more."""

from __future__ import annotations

import pytest

from lab.laws.fuzzing import run_case
from tests.amounts import chunks

CHUNK = 100


@pytest.mark.parametrize("start", chunks(100, CHUNK))
def test_changes_merged_by_key_are_the_rows(start: int) -> None:
    seeds = range(start, start + CHUNK)
    failures = [f for seed in seeds if (f := run_case(seed, "envelope")) is not None]
    assert not failures, "\n".join([*map(str, failures), failures[0].text()])
