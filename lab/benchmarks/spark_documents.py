"""Documents in batch on Spark, against lxml in one process, in processor time.

One large document of XMark's kind (`samples/auction.py`), cut at its records, and many files of the
same kind. The views are those of paper 5's appendix. Spark's side is the processor time of all its
processes (driver, Java, tasks) for one view, after a warm-up on small documents: reading, cutting,
parsing, evaluating, and handing over all rows. lxml parses the same files one after the other,
evaluates the view's XPath and makes the same strings.

The node table is measured too: shredding the large document to Parquet.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from lxml import etree

from axlog.document.parser import make_parser
from axlog.samples.auction import auction
from lab.benchmarks.measuring import Parts, Ratio, Result
from lab.benchmarks.spark_process import apart
from lab.benchmarks.spark_streams import why_not
from lab.generators.appendix_views import VIEWS

RECORDS = ("item", "category", "person", "open_auction", "closed_auction")
"""Elements at which the document is cut: most of it is in one of them."""
MEGABYTE = 0.0084
"""The factor of a document of about 1 MB."""
DIFFERENT = 8
"""Different documents among the many files; the others are links to them."""


def spark_documents(
    factor: float = 0.1,
    files: int = 100,
    cores: int = 2,
    done: Parts | None = None,
    quick: bool = False,
    views: Sequence[str] = tuple(VIEWS),
    shreds: bool = True,
) -> Result:
    """Evaluate the views on one document of this factor and on many files, with both systems.

    `quick` uses Java options for a fast start; its measurements are not meaningful.
    """
    result = Result("spark-documents", "evaluating XMark on Spark and by lxml")
    refusal = why_not()
    if refusal is not None:
        result.skipped = refusal
        return result
    done = Parts() if done is None else done
    with TemporaryDirectory(prefix="axlog-bench-") as directory:
        place = Path(directory)
        of_each = {
            f"one document, factor {factor}": partial(_large, place, factor),
            f"{files} files of 1 MB": partial(_many, place, files, min(factor, MEGABYTE)),
        }
        for what, write in of_each.items():
            each = f"spark-documents: {what}"
            by_lxml = done.part(f"{each}, lxml", partial(_by_lxml, write, views))
            task = {"kind": "documents", "records": RECORDS, "views": views, "place": str(place),
                    "cores": cores, "quick": quick, "shreds": shreds}  # fmt: skip
            by_spark = done.part(f"{each}, {cores} cores", partial(_by_spark, write, task))
            _add(result, what, by_lxml, by_spark, views)
    return result


def _add(
    result: Result, what: str, by_lxml: dict[str, Any], by_spark: dict[str, Any], views: Any
) -> None:
    result.sizes[f"{what}, MB"] = round(by_lxml["MB"], 1)
    result.figures[f"{what}: lxml parse, s"] = by_lxml["parse"]
    if "shred" in by_spark:
        result.figures[f"{what}: Spark shred to Parquet, s"] = by_spark["shred"]
    for name in views:
        seconds, count = by_lxml[name]
        used, wall, rows = by_spark[name]
        result.figures[f"{name}, {what}: lxml, s ({count} rows)"] = seconds
        result.figures[f"{name}, {what}: Spark, s ({rows} rows)"] = used
        result.figures[f"{name}, {what}: Spark, s of wall-clock time"] = wall
        ratio = used / seconds
        result.ratios.append(Ratio(f"{name}, {what}", "Spark / lxml", ratio, ratio, "<= 3"))
        if rows != count:
            result.remarks.append(f"{name}, {what}: {rows} rows on Spark and {count} by lxml")


def _large(place: Path, factor: float) -> list[Path]:
    """One document, written on first use."""
    path = place / "large" / "auction.xml"
    if not path.exists():
        path.parent.mkdir()
        with path.open("w", encoding="utf-8") as file:
            file.writelines(auction(factor))
    return [path]


def _many(place: Path, count: int, factor: float) -> list[Path]:
    """Files of a directory, written on first use."""
    directory = place / "many"
    paths = [directory / f"{number:05}.xml" for number in range(count)]
    if not directory.exists():
        directory.mkdir()
        for number, path in enumerate(paths):
            if number < DIFFERENT:
                path.write_text("".join(auction(factor, seed=number)), encoding="utf-8")
            else:
                path.hardlink_to(paths[number % DIFFERENT])
    return paths


def _by_spark(write: Any, task: dict[str, Any]) -> dict[str, Any]:
    small = Path(task["place"]) / "small"
    if not small.exists():
        small.mkdir()
        for number in range(4 * task["cores"]):  # each process of Spark gets some
            (small / f"{number}.xml").write_text("".join(auction(0.01)), encoding="utf-8")
    paths = write()
    path = paths[0].parent if len(paths) > 1 else paths[0]
    shreds = task["shreds"] and len(paths) == 1
    return apart({**task, "path": str(path), "small": str(small), "shreds": shreds})


def _by_lxml(write: Any, views: Sequence[str]) -> dict[str, Any]:
    """Processor seconds and rows of each view, each with the parse, and the seconds to parse."""
    paths = write()
    found: dict[str, Any] = {"MB": sum(path.stat().st_size for path in paths) / 1e6, "parse": 0.0}
    costs = {name: [0.0, 0] for name in views}
    for path in paths:
        started = process_time()
        tree: Any = etree.parse(str(path), make_parser())
        parse = process_time() - started
        found["parse"] += parse
        for name in views:
            started = process_time()
            rows = [_shown(node) for node in tree.xpath(VIEWS[name].xpath)]
            costs[name][0] += parse + process_time() - started
            costs[name][1] += len(rows)
    return {**found, **costs}


def _shown(node: Any) -> str:
    """The string that a row has: a text, or the content of an element."""
    if isinstance(node, str):
        return str(node)
    return str(etree.tostring(node, encoding="unicode", with_tail=False))
