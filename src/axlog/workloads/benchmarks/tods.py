"""P5 section 6 whole: all pairs of view and update (`tods_pairs`), and the other experiments
(`tods_parts`)."""

from __future__ import annotations

from collections.abc import Sequence

from axlog.workloads.appendix import UPDATES
from axlog.workloads.appendix_views import VIEWS
from axlog.workloads.benchmarks.measuring import Result
from axlog.workloads.benchmarks.tods_pairs import (
    Pair,
    document,
    pairs,
    plain,
    plots_of_pairs,
    summarise,
)
from axlog.workloads.benchmarks.tods_parts import parts


def tods(
    sizes: Sequence[float] = (0.1, 1.0, 10.0),
    updates: Sequence[str] = tuple(UPDATES),
    views: Sequence[str] = tuple(VIEWS),
    times: int = 3,
) -> Result:
    """All pairs at documents of these many megabytes, and the experiments of 6.3 and 6.6 to 6.8."""
    result = Result("tods", "P5 section 6: maintain against evaluate again (F5, F12)")
    result.sizes = {"megabytes": list(sizes), "updates": len(updates), "views": len(views)}
    found: list[Pair] = []
    for size in sizes:
        text = document(size)
        for name in updates:
            for kind in ("insert", "delete"):
                found += pairs(text, size, UPDATES[name], kind, views)
    summarise(result, found)
    result.plots += plots_of_pairs(found)
    parts(result, sizes, times)
    result.remarks.append("--json has every pair under `pairs`")
    result.pairs = [plain(pair) for pair in found]
    return result
