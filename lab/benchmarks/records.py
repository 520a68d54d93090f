"""The bounds of the records maintainer, measured (F14): the cost of an update by size and shape.

A document is a spine of some depth, a row of siblings at its end and padding beside it. An update
turns one sibling, at a random place in the first half of the row, into an `a` and back. The answer
changes, and with it every summary up to the document node.

The benchmark counts the records and summaries computed, over the document's size, depth and width
and over the size of the pattern |Q|. It fits a constant over size, a line over depth and a line
over the logarithm of the width, and reports the worst distance of a point from its line. The time
is compared with lxml, which makes the same change in its own tree and evaluates the same XPath
again.

(The bounds: paper 4.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log2
from random import Random
from statistics import median
from time import perf_counter

from lxml import etree

from axlog.document.operations import Rename
from axlog.live.document import Document, parse
from axlog.live.internals import maintained, maintained_view
from axlog.views.records.maintainer import Records
from lab.benchmarks.measuring import Cost, Plot, Ratio, Result

QUERIES = {
    "downward": "boolean(//a)",
    "forward": "boolean(//a[following-sibling::b])",
    "selected": "//a/following-sibling::*[1]",
}
_MODELS: dict[str, Callable[[float], float]] = {
    "size": lambda _: 0.0,
    "depth": lambda depth: depth,
    "width": log2,
}


@dataclass(frozen=True, slots=True)
class Point:
    """The cost of an update for one document and pattern."""

    at: int
    operations: float
    ours: Cost
    lxml: Cost
    bytes_a_node: float


def records(
    sizes: Sequence[int],
    depths: Sequence[int],
    widths: Sequence[int],
    steps: Sequence[int],
    updates: int,
) -> Result:
    """Measure every sweep; `steps` are numbers of pattern nodes."""
    result = Result("records", "incremental XPath with siblings (F14: within 10 % of the fit)")
    result.sizes = {
        "nodes": list(sizes), "depth": list(depths), "width": list(widths), "|Q|": list(steps),
        "updates a point": updates,
    }  # fmt: skip
    for name, query in QUERIES.items():
        sweeps = {
            "size": [(n, (10, 10, n), query) for n in sizes],
            "depth": [(d, (d, 10, sizes[-2]), query) for d in depths],
            "width": [(w, (2, w, 0), query) for w in widths],
        }
        for sweep, points in sweeps.items():
            # a place in a wide row is anywhere in its tree: measure more of them
            count = 5 * updates if sweep == "width" else updates
            _report(result, name, sweep, [_measure(*point, count) for point in points])
    patterns = [(q, (3, 40, sizes[0]), pattern_of(q)) for q in steps]
    _report(result, "forward", "|Q|", [_measure(*point, updates) for point in patterns])
    return result


def pattern_of(nodes: int) -> str:
    """A sibling pattern with this many nodes: every second one the next sibling, the rest later."""
    text = "//a"
    for number in range(nodes - 2):
        text += "[following-sibling::*[1][self::x" if number % 2 else "[following-sibling::x"
    close = "".join("]]" if number % 2 else "]" for number in reversed(range(nodes - 2)))
    return f"boolean({text}{'[following-sibling::b]' if nodes > 1 else ''}{close})"


def document_of(depth: int, width: int, size: int) -> str:
    """A spine with a row at its end, and padding up to the given size."""
    row = "<x/>" * (width - 1) + "<b/>"
    block = "<p>" + "<p>" + "<q/>" * 8 + "</p>" + "</p>"
    padding = block * max(0, (size - depth - width) // 10)
    return f"<r>{'<s>' * depth}<t>{row}</t>{'</s>' * depth}<u>{padding}</u></r>"


def _measure(at: int, shape: tuple[int, int, int], query: str, updates: int) -> Point:
    text = document_of(*shape)
    document = parse(text)
    view = document.watch(query, maintainer="records")
    kept = maintained_view(view).maintainer
    assert isinstance(kept, Records)
    nodes = list(maintained(document).tree.partition("x"))
    random = Random(at)
    chosen = [random.choice(nodes[: 1 + len(nodes) // 2]) for _ in range(updates)]
    before = kept.steps
    times = []
    for node in chosen:
        start = perf_counter()
        maintained(document).apply([Rename(node, "a")])
        maintained(document).apply([Rename(node, "x")])
        times.append((perf_counter() - start) / 2)
    operations = (kept.steps - before) / (2 * updates)
    theirs = _lxml(text, query, random, min(updates, 20))
    return Point(at, operations, _cost(times), theirs, _bytes(kept, document))


def _lxml(text: str, query: str, random: Random, updates: int) -> Cost:
    root = etree.fromstring(text.encode(), etree.XMLParser(huge_tree=True, resolve_entities=False))
    nodes = list(root.iter("x"))
    ask = etree.XPath(query)
    times = []
    for _ in range(updates):
        node = random.choice(nodes)
        start = perf_counter()
        node.tag = "a"
        ask(root)
        node.tag = "x"
        ask(root)
        times.append((perf_counter() - start) / 2)
    return _cost(times)


def _cost(times: list[float]) -> Cost:
    return Cost(1e6 * min(times), 1e6 * median(times))


def _bytes(kept: Records, document: Document) -> float:
    """Bytes of the records per node of the document."""
    if kept.downward is not None:
        return kept.downward.__sizeof__() / len(maintained(document).tree)
    assert kept.forest is not None, "the plan builds one of them"
    return kept.forest.sequences.__sizeof__() / len(maintained(document).tree)


def _report(result: Result, name: str, sweep: str, points: list[Point]) -> None:
    what = f"{name} over {sweep}"
    for point in points:
        said = f"{what} {point.at}"
        result.figures[f"{said}: operations"] = point.operations
        for side, cost in (("axlog", point.ours), ("lxml", point.lxml)):
            result.figures[f"{said}: {side}, us (least)"] = cost.least
            result.figures[f"{said}: {side}, us (median)"] = cost.median
    last = points[-1]
    result.figures[f"{what}: bytes a node"] = last.bytes_a_node
    least, middle = last.lxml.least / last.ours.least, last.lxml.median / last.ours.median
    result.ratios.append(Ratio(f"{what} {last.at}", "lxml / axlog", least, middle))
    note = _crossover(points)
    if sweep in _MODELS:
        model = _MODELS[sweep]
        base, slope = fit([(model(p.at), p.operations) for p in points])
        fitted = [base + slope * model(p.at) for p in points]
        worst = max(abs(f / p.operations - 1) for f, p in zip(fitted, points, strict=True))
        result.figures[f"{what}: operations, constant of the fit"] = base
        result.figures[f"{what}: operations, slope of the fit"] = slope
        result.figures[f"{what}: worst distance from the fit, %"] = 100 * worst
        note += f"; operations within {100 * worst:.1f} % of the fit"
        lines = {
            "counted": [(float(p.at), p.operations) for p in points],
            "fitted": [(float(p.at), f) for p, f in zip(points, fitted, strict=True)],
        }
        result.plots.append(
            Plot(f"{what}: operations", sweep, "an update", lines, log_x=sweep != "depth")
        )
    result.remarks.append(f"{what}: {note}")
    times = {
        "axlog": [(float(p.at), p.ours.median) for p in points],
        "lxml, asked again": [(float(p.at), p.lxml.median) for p in points],
    }
    result.plots.append(Plot(f"{what}: time", sweep, "us an update", times, log_x=True, log_y=True))


def _crossover(points: list[Point]) -> str:
    """The points at which maintenance beats re-evaluation."""
    ahead = [point.at for point in points if point.ours.median < point.lxml.median]
    if not ahead:
        return f"lxml is faster at every point up to {points[-1].at}"
    if len(ahead) == len(points):
        return f"axlog is faster at every point from {points[0].at} on"
    return f"axlog is faster at {', '.join(map(str, ahead))}"


def fit(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The constant and the slope of the least-squares line.

    >>> fit([(1.0, 5.0), (2.0, 7.0), (3.0, 9.0)])
    (3.0, 2.0)
    """
    count = len(points)
    mean_x = sum(x for x, _ in points) / count
    mean_y = sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if not spread:
        return mean_y, 0.0
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return mean_y - slope * mean_x, slope
