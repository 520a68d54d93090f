"""Bytes per node of an auction document (F10), and bytes per identifier.

Nodes: all columns, partitions and side tables, without the bytes of the texts, as `Tree.__sizeof__`
counts them. Identifiers: the length of the byte form, after loading and after insertions.
"""

from __future__ import annotations

from collections.abc import Callable

from axlog.document.ids import Component, between, encode
from axlog.document.loader import load
from axlog.document.tree import DOCUMENT_NODE
from axlog.samples.auction import auction
from lab.benchmarks.measuring import Result

Gap = tuple[Component | None, Component | None]


def memory(factor: float = 0.1, insertions: int = 100_000) -> Result:
    """Measure a document of this factor, and identifiers after this many insertions at one spot."""
    text = "".join(auction(factor)).encode()
    tree = load(text)
    nodes = len(tree)
    result = Result("memory", "bytes a node (F10: 60 or less) and bytes an identifier")
    result.sizes = {"document, bytes": len(text), "nodes": nodes, "insertions": insertions}
    result.figures["bytes a node"] = tree.__sizeof__() / nodes
    keys = [len(tree.id(n).key) for n in tree.subtree(DOCUMENT_NODE) if n != DOCUMENT_NODE]
    result.figures["bytes an identifier"] = sum(keys) / len(keys)
    result.figures["bytes of the longest identifier"] = max(keys)
    for name, (start, step) in SPOTS.items():
        sizes = component_sizes(start, step, insertions)
        result.figures[f"bytes a component, {name} (mean)"] = sum(sizes) / len(sizes)
        result.figures[f"bytes a component, {name} (longest)"] = max(sizes)
    result.remarks.append("zigzag grows with every insertion, as in any scheme without relabelling")
    return result


def component_sizes(
    gap: Gap, step: Callable[[Gap, Component, int], Gap], insertions: int
) -> list[int]:
    """The bytes of each component that insertions at one spot get."""
    # Zigzag components grow with each insertion: measuring all of them would be quadratic.
    count = insertions if step is not _zigzag else min(insertions, 1000)
    sizes = []
    for number in range(count):
        new = between(*gap)
        sizes.append(len(encode(new)))
        gap = step(gap, new, number)
    return sizes


def _before_the_new(gap: Gap, new: Component, number: int) -> Gap:
    return gap[0], new


def _after_the_new(gap: Gap, new: Component, number: int) -> Gap:
    return new, gap[1]


def _zigzag(gap: Gap, new: Component, number: int) -> Gap:
    return (gap[0], new) if number % 2 else (new, gap[1])


SPOTS: dict[str, tuple[Gap, Callable[[Gap, Component, int], Gap]]] = {
    "front": ((None, (1,)), _before_the_new),
    "back": (((1,), None), _after_the_new),
    "middle": (((1,), (2,)), _after_the_new),
    "before a call": (((1,), (1 << 20,)), _after_the_new),
    "zigzag": (((1,), (2,)), _zigzag),
}
