"""Truth: linear in the document, and its cost per message when it is read after each.

The first part measures the boolean truth of a pattern without joins, over documents of three
decades of size, with ten calls and with a call in every fiftieth section. The verdict is POSSIBLE,
so the whole document is walked.

The second part feeds two documents the same messages, alternating. One maintains its view; the
other also reads the view's truth after every message. Walks over the document are counted. The same
is measured for streams that end one after the other, each of which could still complete a row.
Neither document emits `never`; the cost of `never` is measured separately, against the document
that only maintains its view.

(Paper 1, section 3.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time

from axlog.document.loader import load
from axlog.errors import WorkloadError
from axlog.future.truth import Outlook
from axlog.live.document import Document
from axlog.live.internals import maintained_view
from axlog.live.options import Never, Options
from axlog.query.query import parse_query
from axlog.query.truth import Truth
from axlog.samples import orders
from lab.benchmarks.measuring import Plot, Result, Side, interleave
from lab.benchmarks.messages import CHUNK, WARM, Message, plain
from lab.generators import active

QUERY = "match /shop[//item[name][price]//offer[stock]]//closing"
_SECTION = (
    "<section><title>t{0}</title><item><name>n{0}</name><price>{0}</price>{1}</item></section>"
)
_CALL = '<ax:call xmlns:ax="urn:axlog" stream="s{}"/>'
NODES = 8  # in a section without a call


def truth(
    sizes: Sequence[int] = (1000, 10_000, 100_000, 1_000_000), count: int = 2000, rounds: int = 3
) -> Result:
    """Measure documents of about these numbers of nodes, and `count` messages."""
    result = Result("truth", "Boolean truth (linear), and kept as data arrives (2 x or less)")
    result.sizes = {"messages": count, "rounds": rounds, "pattern": QUERY}
    lines = {
        "ten calls": lambda sections: max(1, sections // 10),
        "a call in every fiftieth section": lambda sections: 50,
    }
    points = {name: [_walk(result, name, s, every, rounds) for s in sizes]
              for name, every in lines.items()}  # fmt: skip
    title = "Boolean truth against the size of the document"
    result.plots.append(Plot(title, "nodes", "s", points, log_x=True, log_y=True))
    for stream in _streams(count):
        _kept(result, stream, rounds)
    _ended(result, min(300, max(20, count // 10)), rounds)
    return result


def document(sections: int, every: int) -> str:
    """A shop with this many sections, some of which have a call."""
    inside = (
        _SECTION.format(n, _CALL.format(n) if n % every == 0 else "") for n in range(sections)
    )
    return f"<shop>{''.join(inside)}</shop>"


def _walk(
    result: Result, name: str, size: int, every: Callable[[int], int], rounds: int
) -> tuple[float, float]:
    sections = max(1, size // NODES)
    tree, pattern = load(document(sections, every(sections))), parse_query(QUERY).pattern
    least = float("inf")
    for _ in range(rounds):
        start = process_time()
        verdict = Outlook(tree, pattern).truth
        least = min(least, process_time() - start)
        if verdict is not Truth.POSSIBLE:
            raise WorkloadError("AX601", f"the pattern is {verdict}", expected="POSSIBLE")
    result.figures[f"{name}, {size} nodes, s"] = least
    result.figures[f"{name}, {size} nodes, us a node"] = 1e6 * least / len(tree)
    return len(tree), least


# As data arrives ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Stream:
    """A view, and its messages."""

    name: str
    document: str
    query: str
    messages: list[Message]


def _streams(count: int) -> list[_Stream]:
    sent = plain(orders.messages(count + WARM))
    nobody = 'match //order[client/"NOBODY"][details/computer]/oid/$x return $x'
    three = (
        'match /management[webstore/orders/order/client/"NOBODY"][webstore/orders/order/oid/$x#t1]'
        "[shipping/orders/order/oid/$x#t2] where t2 - t1 <= 50000s"
    )
    drawn = active.workload(seed=1)
    return [
        _Stream("late orders (rows come)", orders.DOCUMENT, orders.LATE, sent),
        _Stream("orders of nobody (no rows)", orders.DOCUMENT, nobody, sent),
        _Stream("a join of three (no rows)", orders.DOCUMENT, three, sent),
        _Stream("P3 view", drawn.document, drawn.pattern, plain(active.updates(drawn, len(sent)))),
    ]


def _kept(result: Result, stream: _Stream, rounds: int) -> None:
    walks: list[int] = []

    def made(asks: bool, never: Never = "off") -> Side[Message]:
        doc = Document(stream.document, views={"v": stream.query}, options=Options(never=never))
        view, feed = doc.view("v"), doc.feed

        def side(chunk: Sequence[Message]) -> None:
            for name, message, at in chunk:
                feed(name, message, at=at)
                if asks:
                    _ = view.truth
            if asks:
                walks.append(maintained_view(view).truth_cache.searches)

        side(stream.messages[:WARM])
        return side

    sides = {
        "truth": lambda: made(True),
        "maintain": lambda: made(False),
        "never": lambda: made(False, "kept"),
    }
    costs = interleave(sides, stream.messages[WARM:], CHUNK, rounds)
    result.compare(stream.name, costs, "truth", "maintain", "2 or less")
    result.compare(f"{stream.name}, never told", costs, "never", "maintain", "no goal")
    result.figures[f"{stream.name}: walks over the document"] = max(walks)


_MANAGER = "<manager><name>m{0}</name><projects>{1}</projects></manager>"
_DONE = 'match /managers/manager[name/$n]/projects/project/"done" return $n'


def _ended(result: Result, count: int, rounds: int) -> None:
    """Streams end one by one: the managers of paper 1, with no finished project."""
    trees = "".join(_MANAGER.format(n, _CALL.format(n)) for n in range(count))
    streams = [f"s{n}" for n in range(count)]
    walks: list[int] = []

    def made(asks: bool) -> Side[str]:
        doc = Document(f"<managers>{trees}</managers>", views={"v": _DONE})
        view = doc.view("v")

        def side(chunk: Sequence[str]) -> None:
            for stream in chunk:
                doc.end(stream)
                if asks:
                    _ = view.truth
            walks.append(maintained_view(view).truth_cache.searches)

        return side

    sides = {"truth": lambda: made(True), "maintain": lambda: made(False)}
    costs = interleave(sides, streams, max(1, count // 10), rounds)
    result.compare(f"{count} streams end", costs, "truth", "maintain", "2 or less")
    result.figures[f"{count} streams end: walks over the document"] = max(walks)
