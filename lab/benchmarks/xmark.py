"""XMark's twenty queries, kept under single updates, against Saxon and lxml (F20).

For every query: insertions, deletions and value changes at random places that change one to ten of
its rows. The sides, in processor time, alternating:

    maintain   the view's share of an update: from the delta of nodes to the changes of rows
    statement  the whole update: parsing the statement, finding its target, applying it, maintaining
    Saxon      the query on a prepared document, compiled before
    lxml       the same question as XPath, for the queries that XPath can ask

The factors are XMark's: 1 is 115 MB, 0.1 is 11.7 MB. A query for which Saxon takes longer than
`PATIENCE` is evaluated once. The tests check that the views have Saxon's items.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from time import process_time
from typing import Any

from lxml import etree

import axlog
from axlog.live.internals import maintained_view
from axlog.samples.auction import auction, counts
from lab.benchmarks.measuring import Cost, Parts, Result
from lab.benchmarks.xmark_updates import AuctionUpdates
from lab.laws.xmark_law import FOLDER, for_saxon, queries
from lab.reference.saxon import processor

PATIENCE = 2.0
MOST_ROWS = 10
_PROFILE = "/site/people/person/profile"
XPATHS = {
    "Q1": ("/site/people/person[@id='person0']/name/text()",),
    "Q5": ("count(/site/closed_auctions/closed_auction[price/text() >= 40]/price)",),
    "Q6": ("count(/site/regions//item)",),
    "Q7": ("count(/site//description) + count(/site//annotation) + count(/site//emailaddress)",),
    "Q14": ("/site//item[contains(description, 'gold')]/name/text()",),
    "Q17": ("/site/people/person[not(homepage/text())]/name/text()",),
    "Q18": ("/site/open_auctions/open_auction/reserve",),
    "Q20": (
        f"count({_PROFILE}[@income >= 100000])",
        f"count({_PROFILE}[@income < 100000 and @income >= 30000])",
        f"count({_PROFILE}[@income < 30000])",
        "count(/site/people/person[not(profile/@income)])",
    ),
}
"""The queries that XPath can ask, without what they construct."""


def xmark(
    factors: Sequence[float] = (0.01, 0.1),
    times: int = 8,
    only: Sequence[str] = (),
    done: Parts | None = None,
) -> Result:
    """Measure the queries at each factor, with `times` rounds of updates each."""
    result = Result("xmark", "XMark under single updates, against Saxon and lxml (F20)")
    data = Path(os.environ.get("AXLOG_CONFORMANCE", ""))
    if find_spec("saxonche") is None or not (data / FOLDER).is_dir():
        result.skipped = "it needs saxonche, and XMark's queries in AXLOG_CONFORMANCE"
        return result
    parts = done or Parts()
    found: dict[float, dict[str, Any]] = {}
    for factor in factors:
        part = f"xmark {factor} x {times} {' '.join(only)}"
        found[factor] = parts.part(part, partial(_measure, data, factor, times, only))
    result.sizes = {
        "factors": ", ".join(map(str, factors)),
        "rounds": times,
        "megabytes": ", ".join(f"{found[factor]['megabytes']:.1f}" for factor in factors),
    }
    for factor in factors:
        for name, row in found[factor]["queries"].items():
            result.pairs.append({"factor": factor, "query": name, **row})
            _compare(result, f"{name} at {factor}", row)
    for small, large in pairwise(factors):
        for name, row in found[large]["queries"].items():
            costs = {
                f"at {large}": _cost(row["maintain"]),
                f"at {small}": _cost(found[small]["queries"][name]["maintain"]),
            }
            result.compare(name, costs, f"at {large}", f"at {small}", "2 or less")
    return result


def _cost(times: list[float]) -> Cost:
    return Cost(1e6 * min(times), 1e6 * median(times))


def _compare(result: Result, what: str, row: dict[str, Any]) -> None:
    costs = {name: _cost(row[name]) for name in ("maintain", "statement", "Saxon", "lxml")
             if row[name]}  # fmt: skip
    goal = "100 or more" if costs["Saxon"].least > 10_000 else ""
    result.compare(what, costs, "Saxon", "maintain", goal)
    result.compare(what, costs, "Saxon", "statement")
    if "lxml" in costs:
        result.compare(what, costs, "lxml", "maintain")


def _measure(data: Path, factor: float, times: int, only: Sequence[str]) -> dict[str, Any]:
    """The times of all queries at one factor, in seconds."""
    xml = "".join(auction(factor))
    document = axlog.parse(xml)
    prepared = processor().parse_xml(xml_text=xml)
    element: Any = etree.parse(BytesIO(xml.encode()), etree.XMLParser(huge_tree=True))
    updates = AuctionUpdates(Random(20), counts(factor), xml)
    size = len(xml) / 1e6
    del xml
    rows = {}
    for name, text in queries(data).items():
        if not only or name in only:
            engine = processor().new_xquery_processor()
            engine.set_context(xdm_item=prepared)
            engine.set_query_content(for_saxon(text))
            sides: dict[str, Callable[[], object]] = {"Saxon": engine.run_query_to_value}
            if name in XPATHS:
                compiled = [etree.XPath(each) for each in XPATHS[name]]
                sides["lxml"] = partial(_evaluated, compiled, element)
            rows[name] = _measure_query(document, name, text, updates, sides, times)
    return {"megabytes": size, "queries": rows}


def _measure_query(
    document: axlog.Document,
    name: str,
    text: str,
    updates: AuctionUpdates,
    sides: dict[str, Callable[[], object]],
    times: int,
) -> dict[str, Any]:
    found: dict[str, Any] = {"maintain": [], "statement": [], "Saxon": [], "lxml": []}
    left_out = 0
    view = document.watch(text, name, maintainer="incremental")
    with _timed(view) as shares:
        for number in range(times + 1):
            for side, work in sides.items():
                if not found[side] or found[side][0] < PATIENCE:
                    found[side].append(_seconds(work))
            for _, statement in updates.of(name):
                shares.clear()
                start = process_time()
                changes = document.update(statement)
                taken = process_time() - start
                if not number:  # a warm-up
                    continue
                if 1 <= len(changes) <= MOST_ROWS:
                    found["maintain"].append(sum(shares))
                    found["statement"].append(taken)
                elif changes:
                    left_out += 1
    document.unwatch(name)
    return {**found, "updates": len(found["maintain"]), "with more rows": left_out}


def _evaluated(xpaths: Sequence[etree.XPath], element: Any) -> list[Any]:
    return [each(element) for each in xpaths]


def _seconds(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start


@contextmanager
def _timed(view: axlog.View) -> Iterator[list[float]]:
    """The times of the view's part of an update, before and after the document changes."""
    kept = maintained_view(view)
    shares: list[float] = []

    def timed(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(delta: Any) -> Any:
            start = process_time()
            try:
                return work(delta)
            finally:
                shares.append(process_time() - start)

        return run

    for name in ("before", "after"):
        setattr(kept, name, timed(getattr(kept, name)))
    try:
        yield shares
    finally:
        for name in ("before", "after"):
            delattr(kept, name)
