"""The growth of costs in docs/performance.md holds, by counted lines of code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lab.benchmarks.growth import FEATURES, SLOPES, lines_of, sizes, slope
from lab.benchmarks.growth_feature import Feature

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"


def counted(feature: Feature) -> list[tuple[int, int]]:
    return [(size, lines_of(feature.make(size))) for size in sizes(feature, 2)]


@pytest.mark.parametrize("feature", FEATURES, ids=lambda one: f"{one.name} by {one.size}")
def test_no_cost_grows_faster_than_documented(feature: Feature) -> None:
    counts = counted(replace(feature, most=min(feature.most, 200)))
    assert slope(counts) <= SLOPES[feature.growth], counts


@pytest.mark.parametrize("feature", FEATURES, ids=lambda one: f"{one.name} by {one.size}")
def test_the_page_has_every_feature_with_its_growth(feature: Feature) -> None:
    row = f"| {feature.name} | {feature.size} | {feature.growth} |"
    assert row in PAGE.read_text(encoding="utf-8")


def test_a_cost_that_grows_is_found() -> None:
    """The count sees a loop over the size, and not the size itself."""

    def make(size: int):
        held = list(range(size))

        def operation(number: int) -> int:
            total = 0
            for each in held:
                total += each
            return total

        return operation

    walking = Feature("a walk", "items", "constant", make)
    assert slope(counted(walking)) > SLOPES["constant"]
    assert slope(counted(walking)) <= SLOPES["linear"]
    looking = Feature("a look-up", "items", "constant", lambda size: lambda number: size)
    assert slope(counted(looking)) <= SLOPES["constant"]
