"""A standalone cluster on this machine with one and two workers of one core, against `local[2]`.

The on-time view of the order monitor, with its state on the executors: by `maintain`, where all
changes are reported to the driver, and by `changes`, where none is. Batches have 1,000 messages, or
20,000 for shares of processor time (`--full`). The processor time of the driver (Python, Java) and
of the workers with their executors is measured separately, in the later half of the batches. The
first round warms up, with many batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from lab.benchmarks.measuring import Ratio, Result
from lab.benchmarks.spark_process import COMPILING, DRIVER, KINDS
from lab.benchmarks.spark_process import EXECUTORS as OF_EXECUTORS
from lab.benchmarks.spark_streams import CHANGES, EXECUTORS, Input, why_not
from lab.stress.spark_kills import cluster

SIDES = (EXECUTORS, CHANGES)


def spark_cluster(
    size: tuple[int, int] = (1000, 12), workers: Sequence[int] = (1, 2), local: bool = True
) -> Result:
    """Batches on a cluster of one and of two workers, and (`local`) on two local cores."""
    result = Result("spark-cluster", "a standalone cluster of one and two workers")
    refusal = why_not()
    if refusal is not None:
        result.skipped = refusal
        return result
    result.sizes = {"messages a batch": size[0], "batches": size[1]}
    task = {"view": "on-time", "sides": list(SIDES), "rounds": 2, "quick": False, "cores": 2,
            "warm": min(size[0], max(1000, size[0] // 20))}  # fmt: skip
    found: dict[tuple[str, int], dict[str, Any]] = {}
    with TemporaryDirectory(prefix="axlog-bench-") as place:
        given = Input(Path(place) / "in", size)
        if local:
            for side, runs in given.apart(task).items():
                found[side, 0] = runs[-1]
        for number in workers:
            there = Path(place) / f"cluster{number}"
            there.mkdir()
            with cluster(there, number) as (address, started):
                pids = [process.pid for process in started]
                for side, runs in given.apart({**task, "master": address, "workers": pids}).items():
                    found[side, number] = runs[-1]
    for (side, number), run in found.items():
        where = f"{number} worker{'s' if number > 1 else ''}" if number else "local[2]"
        head = f"{side}, {where}"
        result.figures[f"{head}: ms per batch"] = _middle(run)
        for kind in KINDS:
            result.figures[f"{head}: {kind}, us per message"] = run[kind]
        if not number:
            continue
        share = sum(run[kind] for kind in DRIVER) / run["cpu"]
        result.ratios.append(Ratio(head, "driver / all, processor time", share, share, "<= 0.05"))
        compiled = run["cpu"] - sum(run[kind] for kind in COMPILING.values())
        share = (run["driver"] + run["java"]) / compiled
        what = "driver / all, without Java's compilers and collectors"
        result.ratios.append(Ratio(head, what, share, share, "<= 0.05"))
        if local:
            slower = _middle(run) / _middle(found[side, 0])
            result.ratios.append(Ratio(head, "batch / local[2]", slower, slower, "<= 3"))
    for side in SIDES if len(workers) == 2 else ():
        one, two = (
            sum(found[side, number][kind] for kind in OF_EXECUTORS) for number in sorted(workers)
        )
        what = "executor time per message, two workers / one"
        result.ratios.append(Ratio(side, what, two / one, two / one, "<= 1.15"))
    for side in SIDES:
        if len({run["changes"] for (mine, _), run in found.items() if mine == side}) != 1:
            result.remarks.append(f"{side}: the numbers of changes differ")
    return result


def _middle(run: dict[str, Any]) -> float:
    taken: list[float] = run["ms"]
    return median(taken[len(taken) // 2 :])
