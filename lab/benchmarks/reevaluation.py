"""A maintained view against re-evaluation of the view after each message (F4).

A view of the kind of paper 3 is compared with our own full evaluation. A simple path view is
compared with lxml's XPath on the same document. The document does not change between
re-evaluations: that side gets the least work it could have. Saxon evaluates the path too, where it
is installed.

Messages and evaluations are too different to alternate in chunks. `least` of the messages is the
slowest of the fastest tenth; `least` of the evaluations is the fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Any

from lxml.etree import XPath, fromstring

from axlog.document.loader import load
from axlog.document.parser import make_parser
from axlog.evaluate.answers import answers
from axlog.live.document import Document
from axlog.live.options import Options
from axlog.query.query import parse_query
from lab.benchmarks.measuring import Cost, Result
from lab.benchmarks.messages import WARM, Message, plain
from lab.generators import active


def reevaluation(
    sizes: Sequence[int] = (5000, 500_000), count: int = 500, times: int = 3
) -> Result:
    """Measure at documents of about these numbers of nodes."""
    result = Result("reevaluation", "maintain against evaluate again (F4)")
    result.sizes = {"messages": count, "evaluations": times}
    for size in sizes:
        _measure(result, size, count, times)
    return result


def _measure(result: Result, size: int, count: int, times: int) -> None:
    made = active.workload(document_size=max(300, 2 * size // 3), seed=1)
    text = made.document
    sent = plain(active.updates(made, count + WARM))
    tree, pattern = load(text), parse_query(made.pattern).pattern
    path = f"//{made.calls[0].missing.test}"
    root = fromstring(text.encode(), make_parser())
    xpath = XPath(path)
    result.sizes[f"nodes at {size}"] = len(tree)
    costs = {
        "maintain": _fed(text, made.pattern, sent),
        "evaluate": _timed(lambda: answers(tree, pattern), times),
        "maintain the path": _fed(text, f"match {path}#n return n.time", sent),
        "lxml XPath": _timed(lambda: xpath(root), times),
    }
    saxon = _saxon(text, path)
    if saxon is None:
        result.remarks.append("saxonche is not installed: Saxon was not measured")
    else:
        costs["Saxon XPath"] = _timed(saxon, times)
        what = f"path view, {size} nodes, Saxon"
        result.compare(what, costs, "Saxon XPath", "maintain the path")
    result.compare(f"P3 view, {size} nodes", costs, "evaluate", "maintain", "50 / 5,000 or more")
    what = f"path view, {size} nodes"
    result.compare(what, costs, "lxml XPath", "maintain the path", "10 / 100 or more")


def _fed(text: str, query: str, sent: Sequence[Message]) -> Cost:
    doc = Document(text, views={"view": query}, options=Options(keep="needed"))
    taken = []
    for stream, message, at in sent:
        start = perf_counter()
        doc.feed(stream, message, at=at)
        taken.append(1e6 * (perf_counter() - start))
    return Cost(sorted(taken[WARM:])[len(taken[WARM:]) // 10], median(taken[WARM:]))


def _timed(work: Callable[[], object], times: int) -> Cost:
    taken = []
    for _ in range(times):
        start = perf_counter()
        work()
        taken.append(1e6 * (perf_counter() - start))
    return Cost(min(taken), median(taken))


def _saxon(text: str, path: str) -> Callable[[], object] | None:
    try:
        from saxonche import PySaxonProcessor
    except ImportError:
        return None
    processor: Any = PySaxonProcessor(license=False)
    evaluator = processor.new_xpath_processor()
    evaluator.set_context(xdm_item=processor.parse_xml(xml_text=text))
    return lambda: evaluator.evaluate(path)
