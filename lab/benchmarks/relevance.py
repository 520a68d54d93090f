"""The costs of tuning: the relevance of streams, and truth.

The document has about 5,000 nodes with 10 and with 180 calls and a pattern of 10 nodes, as the
generator of paper 3 draws it. The benchmark measures the relevance of all streams (1.5 s and 5 s in
the paper, section 5.4) and truth; exact relevance alone on patterns of up to 12 nodes over a small
document; truth over three decades of document size.

Times are processor times, because other processes may use the machine.
"""

from __future__ import annotations

from time import process_time

from axlog.document.loader import load
from axlog.document.tree import Tree
from axlog.future.relevance import Relevance
from axlog.future.relevance import relevance as relevance_of
from axlog.future.truth import Outlook
from axlog.query.pattern import Pattern
from axlog.query.query import parse_query
from lab.benchmarks.measuring import Plot, Result
from lab.generators import active


def relevance(
    nodes: int = 5000,
    rounds: int = 3,
    sizes: tuple[int, ...] = (1000, 10_000, 100_000),
    patterns: tuple[int, ...] = (8, 10, 12),
    calls: tuple[int, ...] = (10, 180),
) -> Result:
    """Time relevance and truth; the best of several rounds."""
    result = Result("relevance", "which streams can matter, and truth (0.5 s, 5 s, linear)")
    result.sizes = {"nodes": nodes, "pattern nodes": 10, "rounds": rounds}
    for number in calls:
        _measure_document(result, nodes, number, rounds)
    for size in patterns:
        _measure_exact(result, size, rounds)
    _measure_truth(result, sizes, rounds)
    return result


def made(nodes: int, calls: int, pattern: int, seed: int) -> tuple[Tree, Pattern]:
    """A generated document and its pattern."""
    drawn = active.workload(
        document_size=max(300, 2 * nodes // 3), calls=calls, pattern_size=pattern, seed=seed
    )
    return load(drawn.document), parse_query(drawn.pattern).pattern


def _measure_document(result: Result, nodes: int, calls: int, rounds: int) -> None:
    """Three documents; the slowest counts."""
    name = f"relevance of {calls} calls"
    slowest, slowest_truth, relevant, undecided = 0.0, 0.0, 0, 0
    for seed in (1, 2, 3):
        tree, pattern = made(nodes, calls, 10, seed)
        found, taken = _best(tree, pattern, rounds)
        slowest = max(slowest, taken)
        slowest_truth = max(slowest_truth, _truth(tree, pattern, rounds))
        relevant += sum(bool(each.relevant) for each in found.values())
        undecided += sum(each.relevant is None for each in found.values())
    result.figures[f"{name}, slowest of three documents, s"] = slowest
    result.figures[f"{name}: relevant, of three documents"] = relevant
    result.figures[f"{name}: undecided within the limit"] = undecided
    result.figures[f"truth with {calls} calls, slowest, s"] = slowest_truth


def _measure_exact(result: Result, size: int, rounds: int) -> None:
    tree, pattern = made(300, 6, size, 2)
    found, taken = _best(tree, pattern, rounds)
    undecided = sum(each.relevant is None for each in found.values())
    result.figures[f"exact relevance, pattern of {size} nodes, s"] = taken
    result.figures[f"exact relevance, pattern of {size} nodes: not decided"] = undecided


def _measure_truth(result: Result, sizes: tuple[int, ...], rounds: int) -> None:
    points: list[tuple[float, float]] = []
    for size in sizes:
        tree, pattern = made(size, 10, 10, 1)
        taken = _truth(tree, pattern, rounds)
        points.append((len(tree), taken))
        result.figures[f"truth, {size} nodes, us a node"] = taken / len(tree) * 1e6
    result.plots.append(Plot("truth against size", "nodes", "s", {"truth": points}))


def _best(tree: Tree, pattern: Pattern, rounds: int) -> tuple[dict[str, Relevance], float]:
    least = float("inf")
    found: dict[str, Relevance] = {}
    for _ in range(rounds):
        start = process_time()
        found = relevance_of(tree, pattern)
        least = min(least, process_time() - start)
    return found, least


def _truth(tree: Tree, pattern: Pattern, rounds: int) -> float:
    least = float("inf")
    for _ in range(rounds):
        start = process_time()
        Outlook(tree, pattern)
        least = min(least, process_time() - start)
    return least
