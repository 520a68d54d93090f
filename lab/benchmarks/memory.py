"""Bytes per node of an auction document (F10), of it with ten views (F24), and per identifier.

Nodes: all columns, partitions and side tables, without the bytes of the texts, as `Tree.__sizeof__`
counts them. Ten views: the memory that a fresh process has more after loading the document with the
views, and lxml's tree. Identifiers: the length of the byte form, after loading and insertions.
"""

from __future__ import annotations

import subprocess
import sys
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
    ours, theirs = (_grown(factor, side) for side in ("axlog", "lxml"))
    result.figures["MB of the document with ten views"] = ours
    result.figures["MB of lxml's tree"] = theirs
    result.figures["ten views / lxml's tree (F24: 1 or less)"] = ours / theirs
    for name, (start, step) in SPOTS.items():
        sizes = component_sizes(start, step, insertions)
        result.figures[f"bytes a component, {name} (mean)"] = sum(sizes) / len(sizes)
        result.figures[f"bytes a component, {name} (longest)"] = max(sizes)
    result.remarks.append("zigzag grows with every insertion, as in any scheme without relabelling")
    return result


def _grown(factor: float, side: str) -> float:
    """The megabytes that a fresh process has more after loading, by /proc."""
    command = [sys.executable, "-c", _SCRIPT, str(factor), side]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


VIEWS = (
    "match //person[@id/$i]/name/$n return $i, $n",
    "match //open_auction[@id/$i]/initial/$x return $i, $x",
    "match //item#t[location/$l]/name/$n return t.id, $l, $n",
    "match //closed_auction/price/$p return $p",
    "match //person[profile/@income/$i]/name/$n return $n, $i",
    "match //item[mailbox//mail/from/$f]/name/$n return $n, $f",
    "match //open_auction[bidder/personref/@person/$p][@id/$i] return $p, $i",
    "match //person#p[address/city/$c] return p.id, $c",
    "match //category/name/$n return $n",
    "match //closed_auction[buyer/@person/$b][seller/@person/$s]/price/$p return $b, $s, $p",
)
_SCRIPT = f"""
import gc, os, sys
import axlog
from lxml import etree
from axlog.document.free_memory import give_back
from axlog.document.parser import make_parser
from axlog.samples.auction import auction

def resident():
    gc.collect()
    give_back()
    if not os.path.exists("/proc/self/statm"):
        return 0.0
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6

text = "".join(auction(float(sys.argv[1]))).encode()
axlog.parse("<r><a>1</a></r>", views={{"v": "match //a/$x return $x"}})
before = resident()
if sys.argv[2] == "lxml":
    kept = etree.fromstring(text, make_parser())
else:
    kept = axlog.parse(text, views={{f"v{{n}}": q for n, q in enumerate({VIEWS!r})}})
    kept.update("insert node <person id='new'><name>new</name></person> into //people")
print(max(resident() - before, 0.1))
"""


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
