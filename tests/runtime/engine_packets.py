"""What each engine of a plan gets of one partition, for tests that run engines by hand."""

from collections.abc import Iterator

from axlog.runtime.extraction import ASIDE, Extracted
from axlog.runtime.packet_rows import opened, packed
from axlog.runtime.plan import SparkPlan


def engine_packets(extracted: Extracted, plan: SparkPlan) -> Iterator[tuple[str, int, bytes]]:
    """Yield unit, number and packet of each engine, and at the end dead letters and counts."""
    *rows, aside = packed(extracted, plan)
    found = [opened(body) for _, body in rows]
    for unit in plan.units if found else ():
        for number in range(unit.buckets):
            row = found[plan.place(unit, number)]
            yield unit.name, number, row.packet(unit.name, number)
    yield ASIDE, 0, aside[1]
