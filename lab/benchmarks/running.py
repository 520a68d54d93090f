"""The table of benchmarks, their sizes, and the output of a run."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from axlog.errors import WorkloadError
from lab.benchmarks.against_pathway import against_pathway
from lab.benchmarks.channels import channels
from lab.benchmarks.families import families
from lab.benchmarks.filters import filters
from lab.benchmarks.flatness import flatness
from lab.benchmarks.garbage import garbage
from lab.benchmarks.groups import groups
from lab.benchmarks.growth import growth
from lab.benchmarks.hard_questions import hard_questions
from lab.benchmarks.loading import loading
from lab.benchmarks.magic_sets import magic_sets
from lab.benchmarks.measuring import Parts, Result
from lab.benchmarks.members import members
from lab.benchmarks.memory import memory
from lab.benchmarks.messages import messages
from lab.benchmarks.million import million
from lab.benchmarks.pipelines import pipelines
from lab.benchmarks.records import records
from lab.benchmarks.reevaluation import reevaluation
from lab.benchmarks.relevance import relevance
from lab.benchmarks.shapes import shapes
from lab.benchmarks.spark_cluster import spark_cluster
from lab.benchmarks.spark_documents import spark_documents
from lab.benchmarks.spark_stages import spark_stages
from lab.benchmarks.spark_streams import spark_streams
from lab.benchmarks.statements import statements
from lab.benchmarks.status import status
from lab.benchmarks.strategies import strategies
from lab.benchmarks.tods import tods
from lab.benchmarks.tods_parts import by_size
from lab.benchmarks.truth import truth
from lab.benchmarks.upsert import upsert
from lab.benchmarks.xmark import xmark

Run = Callable[[], Result]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark, in three sizes.

    The sizes are: for tests (every part runs, the measurements are not meaningful), for about a
    minute, and for the goals.
    """

    tiny: Run
    quick: Run
    full: Run
    in_parts: Mapping[str, Callable[[Parts], Result]] = field(default_factory=dict)
    """The same, by size, for what can be left and gone on with."""


BENCHMARKS: dict[str, Benchmark] = {
    "memory": Benchmark(
        tiny=lambda: memory(0.002, 200),
        quick=lambda: memory(0.1, 100_000),
        full=lambda: memory(0.1, 100_000),
    ),
    "load": Benchmark(
        tiny=lambda: loading(0.002, 1),
        quick=lambda: loading(0.1, 3),
        full=lambda: loading(0.1, 7),
    ),
    "message": Benchmark(
        tiny=lambda: messages(60, 1, 1),
        quick=lambda: messages(2000, 4, 3),
        full=lambda: messages(6000, 8, 6),
    ),
    "filters": Benchmark(
        tiny=lambda: filters(40, 3, 1, (2,)),
        quick=lambda: filters(2000, 40, 2, (1, 5, 20, 100)),
        full=lambda: filters(10_000, 60, 3),
    ),
    "flat": Benchmark(
        tiny=lambda: flatness(600, 1200, 60, 40, 1),
        quick=lambda: flatness(5000, 100_000, 600, 500, 2),
        full=lambda: flatness(5000, 500_000, 2000, 2000, 4),
    ),
    "statements": Benchmark(
        tiny=lambda: statements(400, 800, 30, 1),
        quick=lambda: statements(5000, 100_000, 300, 2),
        full=lambda: statements(5000, 500_000, 900, 4),
    ),
    "upsert": Benchmark(
        tiny=lambda: upsert(60, 40, 10, 1),
        quick=upsert,
        full=lambda: upsert(1_000_000, 5000, 1000, 3),
    ),
    "reevaluation": Benchmark(
        tiny=lambda: reevaluation((600,), 40, 1),
        quick=lambda: reevaluation((5000, 50_000), 400, 3),
        full=lambda: reevaluation((5000, 500_000), 1000, 3),
    ),
    "pathway": Benchmark(
        tiny=lambda: against_pathway(3000, 0, 1),
        quick=lambda: against_pathway(10_000, 1000),
        full=lambda: against_pathway(50_000, 5000),
    ),
    "families": Benchmark(
        tiny=lambda: families(50, 1, 40),
        quick=lambda: families(2000, 2, 10_000),
        full=lambda: families(8000, 5, 10_000),
    ),
    "shapes": Benchmark(
        tiny=lambda: shapes(4, 1, 30, (100,)),
        quick=lambda: shapes(40, 1, 300),
        full=lambda: shapes(100, 2, 1000),
    ),
    "members": Benchmark(
        tiny=lambda: members(60, 40, 20, 0),
        quick=lambda: members(2000, 20_000, 2000, 5000),
        full=lambda: members(4000, 100_000, 10_000, 20_000),
    ),
    "groups": Benchmark(
        tiny=lambda: groups(200, 1, 300, ("each",)),
        quick=lambda: groups(50_000, 2, 20_000),
        full=lambda: groups(1_000_000, 2, 1_000_000),
    ),
    "xmark": Benchmark(
        tiny=lambda: xmark((0.001, 0.002), 1, ("Q1", "Q8", "Q11")),
        quick=lambda: xmark((0.01, 0.1), 6),
        full=lambda: xmark((0.01, 0.1, 1.0), 5),
        in_parts={
            "quick": lambda done: xmark((0.01, 0.1), 6, done=done),
            "full": lambda done: xmark((0.01, 0.1, 1.0), 5, done=done),
        },
    ),
    "records": Benchmark(
        tiny=lambda: records((100, 200), (3, 6), (10, 40), (2, 4), 3),
        quick=lambda: records(
            (1000, 10_000, 100_000), (5, 20, 60, 200), (10, 100, 1000, 10_000), (2, 5, 10), 60
        ),
        full=lambda: records(
            (1000, 10_000, 100_000, 1_000_000),
            (5, 10, 20, 50, 100, 200),
            (10, 100, 1000, 10_000, 100_000, 1_000_000),
            (2, 4, 6, 8, 12, 16, 20),
            200,
        ),
    ),
    "million": Benchmark(
        tiny=lambda: million(400, 4),
        quick=lambda: million(50_000),
        full=lambda: million(1_000_000),
    ),
    "garbage": Benchmark(
        tiny=lambda: garbage(100, 4),
        quick=lambda: garbage(20_000),
        full=lambda: garbage(1_000_000, 50),
    ),
    "channels": Benchmark(
        tiny=lambda: channels(4, 50, 0.4, 1),
        quick=lambda: channels(200, 500, 5.0, 5),
        full=lambda: channels(200, 500, 20.0, 10),
    ),
    "pipeline": Benchmark(
        tiny=lambda: pipelines(50, 1),
        quick=lambda: pipelines(10_000, 3),
        full=lambda: pipelines(100_000, 3),
    ),
    "spark": Benchmark(
        tiny=lambda: spark_streams(((40, 2),), (2,), None, 1, quick=True),
        quick=spark_streams,
        full=lambda: spark_streams(((1000, 16), (50_000, 8)), state=(50_000, 40)),
        in_parts={
            "quick": lambda done: spark_streams(done=done),
            "full": lambda done: spark_streams(
                ((1000, 16), (50_000, 8)), state=(50_000, 40), done=done
            ),
        },
    ),
    "spark-stages": Benchmark(
        tiny=lambda: spark_stages(200, (2,), 2),
        quick=spark_stages,
        full=lambda: spark_stages(50_000, (16, 64, 256)),
    ),
    "spark-cluster": Benchmark(
        tiny=lambda: spark_cluster((40, 3)),
        quick=spark_cluster,
        full=lambda: spark_cluster((20_000, 8)),
    ),
    "spark-documents": Benchmark(
        tiny=lambda: spark_documents(0.001, 3, quick=True, views=("Q1",)),
        quick=spark_documents,
        full=lambda: spark_documents(0.87, 1000, shreds=False),
        in_parts={
            "quick": lambda done: spark_documents(done=done),
            "full": lambda done: spark_documents(0.87, 1000, done=done, shreds=False),
        },
    ),
    "search": Benchmark(
        tiny=lambda: hard_questions(((2, 4),), ((2, 4),), (6,), (6,), 1),
        quick=lambda: hard_questions(
            ((4, 17), (6, 26), (8, 34)), ((3, 8), (4, 12)), (30, 100), (22, 50), 2
        ),
        full=lambda: hard_questions(
            ((4, 17), (8, 34), (12, 51), (16, 69)),
            ((3, 8), (4, 12), (6, 25), (8, 34)),
            (30, 100, 200),
            (22, 50, 100),
            5,
        ),
    ),
    "magic": Benchmark(
        tiny=lambda: magic_sets((5, 10), 1, 200, 5),
        quick=lambda: magic_sets((10, 100, 1000), 2, 1000, 50),
        full=lambda: magic_sets((10, 100, 1000, 10_000), 10, 5000, 100),
    ),
    "axlog": Benchmark(
        tiny=lambda: strategies(1, 200, (5, 10), (0.5,), (3,), 10),
        quick=lambda: strategies(3, 5000, (10, 50, 100), (0.1, 0.5, 0.9), (10,), 50),
        full=strategies,
    ),
    "tods": Benchmark(
        tiny=lambda: tods((0.02,), ("X1_L", "A6_A", "B5_L"), times=1),
        quick=lambda: tods((0.1, 1.0, 10.0)),
        full=lambda: tods((0.1, 1.0, 10.0, 50.0, 100.0)),
        in_parts={
            "quick": lambda done: tods((0.1, 1.0, 10.0), done=done),
            "full": lambda done: tods((0.1, 1.0, 10.0, 50.0, 100.0), done=done),
        },
    ),
    "choice": Benchmark(
        tiny=lambda: by_size(0.02, (1, 3), 1),
        quick=lambda: by_size(10.0, (1, 3, 10, 30, 100), 3),
        full=lambda: by_size(10.0, (1, 3, 10, 30, 100, 300, 1000), 5),
    ),
    "relevance": Benchmark(
        tiny=lambda: relevance(450, 1, (300,), (8,), (5, 10)),
        quick=lambda: relevance(5000, 3, (1000, 10_000)),
        full=lambda: relevance(5000, 5, (1000, 10_000, 100_000)),
    ),
    "growth": Benchmark(
        tiny=lambda: growth(1, most=50),
        quick=lambda: growth(2),
        full=growth,
    ),
    "status": Benchmark(
        tiny=lambda: status((40, 80), 200, 1),
        quick=lambda: status((1000, 10_000), 1000, 2),
        full=lambda: status((1000, 10_000, 100_000), 2000, 3),
    ),
    "truth": Benchmark(
        tiny=lambda: truth((80, 800), 40, 1),
        quick=lambda: truth((300, 3000, 30_000, 300_000), 1000, 3),
        full=lambda: truth((1000, 10_000, 100_000, 1_000_000), 6000, 5),
    ),
}
SIZES = ("tiny", "quick", "full")

_MEASURED = ("axlog", "lxml", "numpy", "pathway", "saxonche")


def chosen(names: Iterable[str]) -> list[str]:
    """The benchmarks with these names, or all without names; an unknown name is an error."""
    wanted = list(names) or list(BENCHMARKS)
    for name in wanted:
        if name not in BENCHMARKS:
            raise WorkloadError("AX601", f"no benchmark {name!r}", expected=", ".join(BENCHMARKS))
    return wanted


def run(
    names: Iterable[str],
    size: str,
    resume: Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> Iterator[Result]:
    """Run benchmarks one after the other, in one of the `SIZES`.

    With `resume`, benchmarks that can be interrupted record their parts in that file and continue
    from it. `tell` is called with the names of their parts.
    """
    done = Parts(resume, tell)
    for name in chosen(names):
        benchmark = BENCHMARKS[name]
        if size in benchmark.in_parts:
            yield benchmark.in_parts[size](done)
        else:
            yield getattr(benchmark, size)()


def versions() -> dict[str, str]:
    """The versions of the software and the machine."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in _MEASURED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def written(results: Iterable[Result]) -> dict[str, Any]:
    """Results for JSON."""
    return {"versions": versions(), "results": [asdict(result) for result in results]}
