"""Costs that must not grow: a message's with the document (F1), a deletion's with the view (F9).

The same messages go to documents of two sizes. The same number of rows is deleted from views of two
sizes. The work is counted too, because the numbers of nodes evaluated and sites moved do not depend
on the load of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from axlog.document.operations import Delete
from axlog.live.document import Document, parse
from axlog.live.internals import maintained
from axlog.live.options import Options
from lab.benchmarks.measuring import Result, Side, interleave
from lab.benchmarks.messages import CHUNK, WARM, feeding, plain
from lab.generators import active

_ROWS = "match /orders/order/oid/$x return $x"


def flatness(
    small: int = 5000, large: int = 500_000, count: int = 1000, rows: int = 1000, rounds: int = 3
) -> Result:
    """Compare documents of two sizes in nodes, and views of `rows` and ten times as many rows."""
    result = Result("flat", "cost against size (F1, F9: 1.2 x or less)")
    result.sizes = {"small": small, "large": large, "messages": count, "rows": rows}
    _measure_documents(result, small, large, count, rounds)
    for maintainer in ("counting", "algebraic"):
        _measure_deletions(result, rows, rounds, maintainer)
    return result


def _measure_documents(result: Result, small: int, large: int, count: int, rounds: int) -> None:
    made = {
        size: active.workload(document_size=max(300, 2 * size // 3), seed=1)
        for size in (small, large)
    }
    texts = {size: each.document for size, each in made.items()}
    sent = plain(active.updates(made[small], count + WARM))

    def making(size: int) -> Callable[[], Document]:
        return lambda: Document(
            texts[size], views={"view": made[size].pattern}, options=Options(keep="needed")
        )

    sides = {f"{size} nodes": feeding(making(size), sent[:WARM]) for size in (large, small)}
    costs = interleave(sides, sent[WARM:], CHUNK, rounds)
    for size in (small, large):
        result.sizes[f"nodes of the document called {size}"] = len(maintained(making(size)()).tree)
    result.compare("a message", costs, f"{large} nodes", f"{small} nodes", "1.2 or less")


def orders_of(rows: int, maintainer: str = "counting") -> Document:
    """A document with this many orders and a view."""
    inside = "".join(f"<order><oid>o{number}</oid></order>" for number in range(rows))
    document = parse(f"<orders>{inside}</orders>")
    document.watch(_ROWS, "ids", maintainer=maintainer)
    return document


def _measure_deletions(result: Result, rows: int, rounds: int, maintainer: str) -> None:
    taken = list(range(0, rows, max(1, rows // 200)))

    def deleting(size: int) -> Callable[[], Side[int]]:
        def side() -> Side[int]:
            document = orders_of(size, maintainer)
            nodes = list(maintained(document).tree.children(maintained(document).tree.root))
            maintained(document).apply([Delete(nodes.pop())])  # lazy work happens here

            def work(chunk: Sequence[int]) -> None:
                for number in chunk:
                    maintained(document).apply([Delete(nodes[number])])

            return work

        return side

    sides = {f"{size} rows": deleting(size) for size in (10 * rows, rows)}
    costs = interleave(sides, taken[:-1], 10, rounds)
    what = f"a deletion, {maintainer}"
    result.compare(what, costs, f"{10 * rows} rows", f"{rows} rows", "1.2 or less")
