"""A large document on Spark, against lxml in memory: shredded once, then P5's appendix views.

The document is XMark's kind (`workloads/auction.py`); the node table is written as Parquet, as one
would keep it. lxml parses the document into memory and evaluates each view's XPath there. Where the
document fits, memory wins: Spark is for those that do not.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from axlog.document.reading import make_parser
from axlog.workloads.appendix_views import VIEWS
from axlog.workloads.auction import auction
from axlog.workloads.benchmarks.measuring import Ratio, Result
from axlog.workloads.benchmarks.spark_process import apart
from axlog.workloads.benchmarks.spark_streams import why_not


def spark_documents(factor: float = 0.1, cores: int = 2, record: str = "item") -> Result:
    """Shred a document of this factor, and evaluate the views on it, by both sides."""
    from lxml import etree

    result = Result("spark-documents", "shredding and evaluating XMark on Spark and by lxml")
    refusal = why_not()
    if refusal is not None:
        result.skipped = refusal
        return result
    with TemporaryDirectory(prefix="axlog-bench-") as directory:
        place = Path(directory)
        path = place / "auction.xml"
        with path.open("w", encoding="utf-8") as file:
            file.writelines(auction(factor))
        size = path.stat().st_size / 1e6
        task = {"kind": "documents", "place": directory, "path": str(path), "record": record,
                "cores": cores, "quick": False}  # fmt: skip
        found = apart(task)
        started = perf_counter()
        tree = etree.parse(str(path), make_parser())
        parsed = perf_counter() - started
        result.sizes = {"MB": round(size, 1), "nodes": found["nodes"], "cores": cores}
        result.figures["shred to Parquet, MB/s"] = size / found["shred"]
        result.figures["lxml parse, MB/s"] = size / parsed
        result.ratios.append(
            Ratio("read the document", "Spark shred / lxml parse", *2 * (found["shred"] / parsed,))
        )
        for name, view in VIEWS.items():
            seconds, rows = found[name]
            started = perf_counter()
            selected = tree.xpath(view.xpath)
            by_lxml = perf_counter() - started
            nodes = len(selected) if isinstance(selected, list) else 0
            result.figures[f"{name}: Spark, s ({rows} rows)"] = seconds
            result.figures[f"{name}: lxml, s ({nodes} nodes)"] = by_lxml
    return result
