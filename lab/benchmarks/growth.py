"""How the cost of each feature grows with a size: the table in docs/performance.md, and its test.

The cost is counted, not timed: the lines of Python that one operation executes, read by a trace
function. The count is the same in every run and on every machine. Work inside numpy, lxml and
dictionaries is not counted; the benchmark also prints the times. Each feature is measured at sizes
over three decades (one in the tests). The growth is the slope of the counts in a doubly logarithmic
plot between the last two sizes: 0 is a constant cost, 1 a linear one.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from math import log10
from time import process_time
from types import FrameType
from typing import Any

from lab.benchmarks.growth_feature import RUNS, Feature, Growth, Operation
from lab.benchmarks.growth_queries import QUERY_FEATURES
from lab.benchmarks.growth_streams import STREAM_FEATURES
from lab.benchmarks.growth_views import VIEW_FEATURES
from lab.benchmarks.measuring import Plot, Result

FEATURES = (*STREAM_FEATURES, *VIEW_FEATURES, *QUERY_FEATURES)
SLOPES: dict[Growth, float] = {"constant": 0.15, "linear": 1.15, "quadratic": 2.15}
"""The greatest slope that each growth allows."""


def lines_of(operation: Operation, runs: int = RUNS) -> int:
    """The lines that an operation executes: the median of some runs, after one to warm up."""
    counts = []
    for number in range(runs + 1):
        count = 0

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal count
            count += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            operation(number)
        finally:
            sys.settrace(before)
        counts.append(count)
    return sorted(counts[1:])[runs // 2]


def slope(counts: list[tuple[int, int]]) -> float:
    """The growth between the last two sizes; 0 if there is one size."""
    if len(counts) < 2:
        return 0.0
    (small, few), (large, many) = counts[-2:]
    return log10(max(many, 1) / max(few, 1)) / log10(large / small)


def growth(number: int = 4, most: int = 10_000) -> Result:
    """Count and time every feature at some sizes, ten times apart, of which the last is `most`."""
    result = Result("growth", "how the cost of an operation grows with a size, in executed lines")
    result.sizes = {"sizes": number}
    for feature in FEATURES:
        counts, times = [], []
        for size in sizes(replace(feature, most=min(feature.most, most)), number):
            operation = feature.make(size)
            counts.append((size, lines_of(operation)))
            start = process_time()
            for number in range(RUNS):
                operation(RUNS + 1 + number)
            times.append((process_time() - start) / RUNS)
        found = slope(counts)
        name = f"{feature.name} by {feature.size}"
        result.figures[f"{name}: slope"] = max(found, 0.0)
        result.pairs.append(
            {
                "feature": feature.name,
                "size": feature.size,
                "growth": feature.growth,
                "slope": round(found, 2),
                "lines": counts,
                "ms": [round(1000 * each, 3) for each in times],
            }
        )
        points = [(float(size), float(count)) for size, count in counts]
        result.plots.append(Plot(name, feature.size, "lines", {"counted": points}, True, True))
    return result


def sizes(feature: Feature, number: int) -> list[int]:
    """The sizes to measure at, a factor of ten apart."""
    return list(dict.fromkeys(max(feature.most // 10**n, 1) for n in reversed(range(number))))
