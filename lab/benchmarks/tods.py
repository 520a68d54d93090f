"""Section 6 of paper 5: all pairs of view and update, and the other experiments.

The pairs are in `tods_pairs`, the other experiments in `tods_parts`. The full sizes take long. With
a file of parts (`bench tods --full --resume FILE`), every update at every size is recorded when it
is done, and a later run continues from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lab.benchmarks.measuring import Parts, Result
from lab.benchmarks.tods_pairs import (
    Pair,
    Size,
    from_plain,
    plain,
    plots_of_pairs,
    summarise,
)
from lab.benchmarks.tods_parts import parts
from lab.generators.appendix import UPDATES
from lab.generators.appendix_views import VIEWS


def tods(
    sizes: Sequence[float] = (0.1, 1.0, 10.0),
    updates: Sequence[str] = tuple(UPDATES),
    views: Sequence[str] = tuple(VIEWS),
    times: int = 3,
    done: Parts | None = None,
) -> Result:
    """All pairs at documents of these megabytes, and the experiments of 6.3 and 6.6 to 6.8."""
    done = Parts() if done is None else done
    result = Result("tods", "P5 section 6: maintain against evaluate again (F5, F12)")
    result.sizes = {"megabytes": list(sizes), "updates": len(updates), "views": len(views)}
    others = Result("tods", "")  # first: they are small
    parts(others, sizes, times, done)
    found: list[Pair] = []
    for megabytes in sizes:
        found += pairs_of(megabytes, updates, views, done)
    summarise(result, found)
    result.figures.update(others.figures)
    result.plots += [*plots_of_pairs(found), *others.plots]
    result.remarks.append("--json has every pair under `pairs`")
    result.pairs = [plain(pair) for pair in found]
    return result


def pairs_of(
    megabytes: float, updates: Sequence[str], views: Sequence[str], done: Parts
) -> list[Pair]:
    """All updates on all views at one size; the document is created for the first update to run."""
    made: list[Size] = []

    def run(name: str, kind: str) -> list[dict[str, object]]:
        if not made:
            made.append(Size(megabytes, views))
            made[0].pairs(UPDATES[name], kind)  # one-time work belongs to no pair
        return [plain(pair) for pair in made[0].pairs(UPDATES[name], kind)]

    found: list[Pair] = []
    for name in updates:
        for kind in ("insert", "delete"):
            part = f"{megabytes} MB, {name}, {kind}, {' '.join(views)}"
            found += map(from_plain, done.part(part, partial(run, name, kind)))
    return found
