"""MagicSet against the strategy that axlog has: what each derives, and when.

The example of paper 3, section 3.6: rows are the `c` below `b`, once there is a `y` below `d`. The
`c` arrive first, then one `y`. MagicSet orders the branches. Where it asks for `y` first, it
derives nothing for the `c`, and everything when the `y` arrives. Where it asks for `c` first, and
without MagicSet, the `c` are derived as they arrive. The counting engine keeps the rows of a branch
when they arrive, whatever the order (optimistic), and tuning stops it where no `y` can come.

Two figures: the facts that each strategy has derived before the `y`, and those that the `y` adds.
For the engine these are the rows in its tables, and the processor time of the update with the `y`.
The second part compares the facts on the random documents of section 5.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time

from axlog.document.loader import load
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.options import Options
from axlog.query.compile import compile_pattern
from axlog.query.native import parse_pattern
from axlog.query.query import parse_query
from axlog.query.rules import rules_of
from lab.benchmarks.measuring import Plot, Result
from lab.benchmarks.messages import plain
from lab.datalog.annotations import BOOLEANS
from lab.datalog.evaluate import Evaluation
from lab.datalog.magic import magic
from lab.generators import active

_QUERY = "match /a[d/y][b/c/$x] return $x"
_CALLS = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
STRATEGIES = ("MagicSet, y first", "MagicSet, c first", "no MagicSet", "axlog")


def magic_sets(counts: Sequence[int], documents: int, size: int, updates: int) -> Result:
    """The example with these numbers of `c`, and random documents after these updates."""
    result = Result("magic", "P3 3.6: what MagicSet derives, and what axlog keeps")
    result.sizes = {"c": list(counts), "documents": documents, "nodes": size, "updates": updates}
    before: dict[str, list[tuple[float, float]]] = {name: [] for name in STRATEGIES}
    added: dict[str, list[tuple[float, float]]] = {name: [] for name in STRATEGIES}
    for count in counts:
        for name, (first, later) in _example(result, count).items():
            before[name].append((count, first))
            added[name].append((count, later))
            result.figures[f"{count} c: {name}, before the y"] = first
            result.figures[f"{count} c: {name}, added by the y"] = later
    for title, lines in (("before the y", before), ("added when the y arrives", added)):
        shown = {name: [(x, max(y, 0.5)) for x, y in each] for name, each in lines.items()}
        result.plots.append(
            Plot(f"Facts {title}", "c that arrived", "facts", shown, log_x=True, log_y=True)
        )
    for name, facts in _random(documents, size, updates).items():
        result.figures[f"random documents: {name}, facts"] = facts
    return result


def _example(result: Result, count: int) -> dict[str, tuple[float, float]]:
    rules = rules_of(compile_pattern(parse_pattern(_QUERY)))
    heads = [rule.head.relation for rule in rules]
    asks = {
        "MagicSet, y first": magic(rules),
        "MagicSet, c first": magic(rules, tuple(reversed(heads))),
        "no MagicSet": rules,
    }
    inner = "".join(f"<c>{number}</c>" for number in range(count))
    texts = [f"<a><d>{y}</d><b>{inner}</b></a>" for y in ("", "<y/>")]
    trees = [load(text) for text in texts]
    found: dict[str, tuple[float, float]] = {}
    for name, program in asks.items():
        first, second = (
            sum(map(len, Evaluation(program, tree, BOOLEANS).facts.values())) for tree in trees
        )
        found[name] = (first, second - first)
    doc = Document(
        f"<a><d>{_CALLS.format('f')}</d><b>{_CALLS.format('g')}</b></a>",
        views={"v": _QUERY},
        options=Options(keep="needed"),
    )
    for number in range(count):
        doc.feed("g", f"<c>{number}</c>")
    kept = doc.tune().facts
    start = process_time()
    rows = len(doc.feed("f", "<y/>"))
    taken = process_time() - start
    result.figures[f"{count} c: axlog, the update with the y, ms"] = 1e3 * taken
    result.figures[f"{count} c: axlog, rows emitted with the y"] = rows
    found["axlog"] = (kept, doc.tune().facts - kept)
    return found


def _random(documents: int, size: int, updates: int) -> dict[str, float]:
    """The average number of facts over random documents, after their updates."""
    totals: dict[str, float] = {"no MagicSet": 0.0, "MagicSet": 0.0, "axlog": 0.0}
    for seed in range(documents):
        made = active.workload(document_size=size, calls=10, seed=seed)
        doc = Document(made.document)
        doc.watch(made.pattern, "v", maintainer="counting")
        for stream, text, at in plain(active.updates(made, updates, 0.7, seed=seed)):
            doc.feed(stream, text, at=at)
        inside = maintained(doc)
        tree = inside.nodes()
        rules = rules_of(compile_pattern(parse_query(made.pattern).pattern))
        for name, program in (("no MagicSet", rules), ("MagicSet", magic(rules))):
            facts = Evaluation(program, tree, BOOLEANS).facts
            totals[name] += sum(map(len, facts.values())) / documents
        totals["axlog"] += doc.tune().facts / documents
    return totals
