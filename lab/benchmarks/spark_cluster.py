"""A standalone cluster on this machine with one and two workers of one core, against `local[2]`.

The on-time view of the order monitor, with its state on the executors, in batches of 1,000. The
processor time of the driver (Python and Java) and of the workers with their executors is measured
separately, in the later half of the batches; the first round warms up.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from lab.benchmarks.measuring import Ratio, Result
from lab.benchmarks.spark_streams import EXECUTORS, Input, why_not
from lab.stress.spark_kills import cluster


def spark_cluster(size: tuple[int, int] = (1000, 12), workers: Sequence[int] = (1, 2)) -> Result:
    """Batches on a cluster of one and of two workers, and on two local cores."""
    result = Result("spark-cluster", "a standalone cluster of one and two workers")
    refusal = why_not()
    if refusal is not None:
        result.skipped = refusal
        return result
    result.sizes = {"messages a batch": size[0], "batches": size[1]}
    task = {"view": "on-time", "sides": [EXECUTORS], "rounds": 2, "quick": False, "cores": 2}
    with TemporaryDirectory(prefix="axlog-bench-") as place:
        given = Input(Path(place) / "in", size)
        local = given.apart(task)[EXECUTORS][-1]
        result.figures["local[2]: ms per batch"] = _middle(local)
        found: dict[int, dict[str, Any]] = {}
        for number in workers:
            there = Path(place) / f"cluster{number}"
            there.mkdir()
            with cluster(there, number) as (address, started):
                pids = [process.pid for process in started]
                run = given.apart({**task, "master": address, "workers": pids})[EXECUTORS][-1]
            found[number] = run
            head = f"{number} worker{'s' if number > 1 else ''}"
            driver = run["driver"] + run["java"]
            result.figures[f"{head}: ms per batch"] = _middle(run)
            result.figures[f"{head}: executors, us per message"] = run["executors"]
            result.figures[f"{head}: driver, us per message"] = driver
            share = driver / run["cpu"]
            result.ratios.append(
                Ratio(head, "driver / all, processor time", share, share, "<= 0.05")
            )
            slower = _middle(run) / _middle(local)
            result.ratios.append(Ratio(head, "batch / local[2]", slower, slower, "<= 3"))
    if len(found) == 2:
        one, two = (found[n]["executors"] for n in sorted(found))
        what = "executor time per message, two workers / one"
        result.ratios.append(Ratio("cluster", what, two / one, two / one, "<= 1.15"))
    if len({run["changes"] for run in (local, *found.values())}) != 1:
        result.remarks.append("the numbers of changes differ")
    return result


def _middle(run: dict[str, Any]) -> float:
    taken: list[float] = run["ms"]
    return median(taken[len(taken) // 2 :])
