"""A large document on Spark, against lxml in memory: shredded once, then views evaluated.

The document is of XMark's kind (`samples/auction.py`), and the views are those of paper 5's
appendix. The node table is written as Parquet, the usual way to store it. lxml parses the document
into memory and evaluates each view's XPath there. Where the document fits, memory wins; Spark is
for documents that do not fit.

A few views at a time are a part that can be done already. Each part runs in a separate process,
which shreds the document again; the least of these times is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from axlog.document.parser import make_parser
from axlog.samples.auction import auction
from lab.benchmarks.measuring import Parts, Ratio, Result
from lab.benchmarks.spark_process import apart
from lab.benchmarks.spark_streams import why_not
from lab.generators.appendix_views import VIEWS

RECORDS = ("item", "category", "person", "open_auction", "closed_auction")
"""Elements at which the document is cut: most of it is in one of them."""
AT_A_TIME = 2
"""Views that one process evaluates."""


def spark_documents(
    factor: float = 0.1,
    cores: int = 2,
    records: Sequence[str] = RECORDS,
    done: Parts | None = None,
    at_a_time: int = AT_A_TIME,
    quick: bool = False,
    views: Sequence[str] = tuple(VIEWS),
) -> Result:
    """Shred a document of this factor, and evaluate the views on it, with both systems.

    `quick` uses Java options for a fast start; its measurements are not meaningful.
    """
    result = Result("spark-documents", "shredding and evaluating XMark on Spark and by lxml")
    refusal = why_not()
    if refusal is not None:
        result.skipped = refusal
        return result
    done = Parts() if done is None else done
    each = f"spark-documents: {factor}"
    with TemporaryDirectory(prefix="axlog-bench-") as directory:
        path = Path(directory) / "auction.xml"
        by_lxml = done.part(f"{each}, lxml", lambda: _by_lxml(_document(path, factor)))
        names = list(views)
        runs = []
        for at in range(0, len(names), at_a_time):
            some = names[at : at + at_a_time]
            work = partial(_by_spark, path, factor, cores, records, some, quick)
            runs.append(done.part(f"{each}, {cores} cores, {some[0]} to {some[-1]}", work))
    by_spark = {name: found for run in runs for name, found in run.items()}
    size, parsed = by_lxml["MB"], by_lxml["parse"]
    shredded = min(run["shred"] for run in runs)
    result.sizes = {"MB": round(size, 1), "nodes": by_spark["nodes"], "cores": cores}
    result.figures["shred to Parquet, MB/s"] = size / shredded
    result.figures["lxml parse, MB/s"] = size / parsed
    result.ratios.append(
        Ratio("read the document", "Spark shred / lxml parse", *2 * (shredded / parsed,))
    )
    for name in names:
        for side, (seconds, count), what in (
            ("Spark", by_spark[name], "rows"),
            ("lxml", by_lxml[name], "nodes"),
        ):
            result.figures[f"{name}: {side}, s ({count} {what})"] = seconds
    return result


def _document(path: Path, factor: float) -> Path:
    """The document, written on first use."""
    if not path.exists():
        with path.open("w", encoding="utf-8") as file:
            file.writelines(auction(factor))
    return path


def _by_spark(
    path: Path, factor: float, cores: int, records: Sequence[str], views: Sequence[str], quick: bool
) -> dict[str, Any]:
    task = {"kind": "documents", "place": str(path.parent), "path": str(_document(path, factor)),
            "record": records, "cores": cores, "quick": quick, "views": views}  # fmt: skip
    return apart(task)


def _by_lxml(path: Path) -> dict[str, Any]:
    """Seconds and nodes of each view, and the seconds to parse."""
    from lxml import etree

    started = perf_counter()
    tree = etree.parse(str(path), make_parser())
    found: dict[str, Any] = {"parse": perf_counter() - started, "MB": path.stat().st_size / 1e6}
    for name, view in VIEWS.items():
        started = perf_counter()
        selected = tree.xpath(view.xpath)
        seconds = perf_counter() - started
        found[name] = [seconds, len(selected) if isinstance(selected, list) else 0]
    return found
