"""The future of joins at the cost of a look-up (F16, F19), with orders in progress.

    status     `status` of distinct rows (true, possible, never, unknown) in joins of two and three
               keyed streams, against feeding one message; and with many orders in progress against
               few. Messages and questions take turns, and so do the documents of all sizes
    overdue    the same for orders without a shipment after two hours (`not`, `now - t >= 2h`)
    page       the first 20 possible rows of the joins of two and three, the next deadlines first
    on time    the keyed on-time view, in which every order ends as a row or a `never`, against the
               bare parse of its messages
    four       a join of four keyed streams against the same join without keys

Times are processor times. The least of all rounds counts, and the median is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from statistics import median
from time import process_time

from lxml.etree import fromstring

from axlog.errors import WorkloadError
from axlog.live.document import Document
from axlog.live.options import Keep, Options
from axlog.query.truth import Truth
from axlog.samples import orders
from lab.benchmarks.measuring import Cost, Result

Message = tuple[str, bytes, float]

_STREAMS = "abcd"
_LATE = 50_000.0
_CHUNK = 200
_PAGE = 20
_FILLING = (
    "<client>INRIA</client><contact><name>Ada Byron</name><phone>00000000</phone></contact>"
    "<address><street>1 High St</street><city>Paris</city><country>France</country></address>"
    "<payment><method>invoice</method><total>100</total></payment>"
)


def status(sizes: Sequence[int] = (1000, 10_000), count: int = 2000, rounds: int = 3) -> Result:
    """Measure with these numbers of orders in progress, and `count` messages."""
    result = Result("status", "status, never and possible rows of joins (F16, F19)")
    result.sizes = {"orders in progress": ", ".join(map(str, sizes)), "messages": count}
    keeps: tuple[Keep, ...] = ("all", "needed")
    for parts, keep in product((2, 3), keeps):
        make = partial(_joined, parts, keep)
        _statuses(result, f"join of {parts}, keep={keep}", make, sizes, count, rounds)
    _statuses(result, "overdue, keep=needed", _overdue, sizes, count, rounds)
    for parts in (2, 3):
        _pages(result, parts, sizes, rounds)
    for size in sizes:
        _on_time(result, size, count, rounds)
        _four(result, size, count, rounds)
    return result


def message(number: int, at: float, stream: str) -> Message:
    """A message of about fifteen elements with an order's number."""
    return stream, f"<o><k>{number}</k>{_FILLING}</o>".encode(), at


def join(parts: int, keys: int = 0, keep: Keep = "needed") -> Document:
    """A document with a join of so many streams, of which some have keys.

    A row needs its first two messages within 50,000 seconds.
    """
    streams = _STREAMS[:parts]
    call = '<ax:call xmlns:ax="urn:axlog" stream="{0}"/>'
    inside = "".join(f"<{s}>{call.format(s)}</{s}>" for s in streams)
    branches = "".join(f"[{s}/o/k/$x#t{n}]" for n, s in enumerate(streams))
    where = f" where t1 - t0 <= {_LATE:.0f}s" if parts < 4 else ""
    return Document(
        f"<r>{inside}</r>",
        views={"v": f"match /r{branches}{where} return $x"},
        facts=[f"key {s}/o by k trusted" for s in streams[:keys]],
        options=Options(keep=keep),
    )


class _Side:
    """A document with orders in progress, new messages, and questions about distinct rows.

    A kind of question is the first number of its orders, how many there are, and the answer.
    """

    def __init__(self, doc: Document, time: float, kinds: Sequence[tuple[int, int, Truth]]) -> None:
        self._doc, self._time, self._kinds = doc, time, kinds
        self._new, self._turn = iter(range(10**9, 2 * 10**9)), 0
        doc.view("v").status({"x": "0"})

    def fed(self) -> float:
        """The time of a chunk of messages."""
        chunk = [message(next(self._new), self._time, "a") for _ in range(_CHUNK)]
        feed, start = self._doc.feed, process_time()
        for stream, content, at in chunk:
            feed(stream, content, at=at)
        return process_time() - start

    def asked(self) -> float:
        """The time of a chunk of questions."""
        turns = range(self._turn, self._turn + _CHUNK)
        self._turn += _CHUNK
        kinds = [self._kinds[turn % len(self._kinds)] for turn in turns]
        rows = [
            {"x": str(first + turn // len(self._kinds) % among)}
            for turn, (first, among, _) in zip(turns, kinds, strict=True)
        ]
        ask, start = self._doc.view("v").status, process_time()
        found = [ask(row) for row in rows]
        spent = process_time() - start
        if found != [wanted for _, _, wanted in kinds]:
            raise WorkloadError("AX601", "a status is wrong", expected="that of its kind")
        return spent


def _statuses(
    result: Result,
    name: str,
    make: Callable[[int], _Side],
    sizes: Sequence[int],
    count: int,
    rounds: int,
) -> None:
    """Measure questions and messages, and documents of all sizes, in turns."""
    asked: dict[int, list[list[float]]] = {size: [] for size in sizes}
    fed: dict[int, list[list[float]]] = {size: [] for size in sizes}
    for _ in range(rounds):
        sides = {size: make(size) for size in sizes}
        for times in (asked, fed):
            for spent in times.values():
                spent.append([])
        for _ in range(0, count, _CHUNK):
            for size, side in sides.items():
                fed[size][-1].append(side.fed())
                asked[size][-1].append(side.asked())
    for size in sizes:
        costs = {"status": _cost(asked[size]), "a message": _cost(fed[size])}
        what = f"{name}, {size} orders in progress"
        result.compare(what, costs, "status", "a message", "3 or less")
    _compare_sizes(result, f"status, {name}", {size: _cost(asked[size]) for size in sizes})
    _compare_sizes(result, f"a message, {name}", {size: _cost(fed[size]) for size in sizes})


def _compare_sizes(result: Result, name: str, costs: dict[int, Cost]) -> None:
    """Compare every size with the first one."""
    few, *others = (f"at {size}" for size in costs)
    named = dict(zip((few, *others), costs.values(), strict=True))
    for many in others:
        result.compare(
            f"{name}, {many[3:]} orders", {many: named[many], few: named[few]}, many, few,
            "1.5 or less",
        )  # fmt: skip


def _joined(parts: int, keep: Keep, size: int) -> _Side:
    """A join of keyed streams with rows that are true, possible, never and unknown."""
    doc = join(parts, parts if keep == "all" else 0, keep)
    time, late = _fill(doc, parts, size), _late(size)
    kinds = [
        (late, late, Truth.TRUE),
        (2 * late, size, Truth.POSSIBLE),
        (10**8, 10**7, Truth.POSSIBLE),
    ]
    if keep == "all":  # keys rule them out
        kinds.append((0, late, Truth.NEVER))
    return _Side(doc, time, kinds)


_OVERDUE = "match /r[a/o/k/$x#t][not(b/o/k/$x)] where now - t >= 50000s return $x"


def _overdue(size: int) -> _Side:
    """Orders that are overdue, shipped in time, in progress, and unknown."""
    call = '<ax:call xmlns:ax="urn:axlog" stream="{0}"/>'
    doc = Document(
        "<r>" + "".join(f"<{s}>{call.format(s)}</{s}>" for s in "ab") + "</r>",
        views={"v": _OVERDUE},
        facts=["key a/o by k trusted"],
        options=Options(keep="needed"),
    )
    late = _late(size)
    for number in range(2 * late):
        _feed(doc, message(number, 0.0, "a"))
    for number in range(late, 2 * late):  # in time: these are never overdue
        _feed(doc, message(number, 1.0, "b"))
    time = 1.0 + _LATE
    for number in range(2 * late, 2 * late + size):
        _feed(doc, message(number, time, "a"))
    kinds = [
        (0, late, Truth.TRUE),
        (late, late, Truth.NEVER),
        (2 * late, size, Truth.POSSIBLE),
        (10**8, 10**7, Truth.POSSIBLE),
    ]
    return _Side(doc, time, kinds)


def _late(size: int) -> int:
    """The number of orders that are complete, and of those that are too late."""
    return max(4, size // 10)


def _fill(doc: Document, parts: int, size: int) -> float:
    """Bring orders: some complete, some too late, the others in progress. Return the clock."""
    late = _late(size)
    for number in range(late):
        _feed(doc, message(number, 0.0, "a"))
    time = 2 * _LATE
    for number in range(late):  # too late for all of them
        _feed(doc, message(number, time, "b"))
    for number in range(late, 2 * late):
        for stream in _STREAMS[:parts]:
            _feed(doc, message(number, time, stream))
    for number in range(2 * late, 2 * late + size):
        _feed(doc, message(number, time, "a"))
    return time


def _feed(doc: Document, one: Message) -> None:
    stream, content, at = one
    doc.feed(stream, content, at=at)


def _pages(result: Result, parts: int, sizes: Sequence[int], rounds: int) -> None:
    """Measure the first page of possible rows, with a message between two pages, sizes in turns."""
    documents = {size: join(parts, parts) for size in sizes}
    clocks = {size: _fill(doc, parts, size) for size, doc in documents.items()}
    times: dict[int, list[float]] = {size: [] for size in sizes}
    for doc in documents.values():
        doc.view("v").possible(limit=_PAGE)
    for number in range(20 * rounds):
        for size, doc in documents.items():
            _feed(doc, message(10**9 + number, clocks[size], "a"))
            start = process_time()
            if len(doc.view("v").possible(limit=_PAGE)) != _PAGE:
                raise WorkloadError("AX601", "there are fewer possible rows", expected=f"{_PAGE}")
            times[size].append(process_time() - start)
    name = f"join of {parts}, a page of {_PAGE}"
    for size, spent in times.items():
        result.figures[f"{name} of {size} possible rows, us (least)"] = 1e6 * min(spent)
        result.figures[f"{name} of {size} possible rows, us (median)"] = 1e6 * median(spent)
    costs = {size: Cost(1e6 * min(each), 1e6 * median(each)) for size, each in times.items()}
    _compare_sizes(result, name, costs)


def _on_time(result: Result, size: int, count: int, rounds: int) -> None:
    """Measure the keyed on-time view: about `size` orders wait for their deadline."""
    every = orders.messages(2 * size + count, rate=size / orders.LATE_AFTER)
    sent = [(str(m["stream"]), str(m["insert"]).encode(), float(str(m["at"]))) for m in every]
    before, measured = sent[: 2 * size], sent[2 * size :]
    for name, query in (("within", orders.WITHIN), ("on time", orders.ON_TIME)):
        kept: list[list[float]] = []
        parsed: list[list[float]] = []
        for _ in range(rounds):
            options = Options(keep="needed")
            doc = Document(orders.DOCUMENT, views={"v": query}, facts=orders.KEYS, options=options)
            feed = doc.feed
            for stream, content, at in before:
                feed(stream, content, at=at)
            each: tuple[list[float], list[float]] = ([], [])
            for first in range(0, count, _CHUNK):
                chunk = measured[first : first + _CHUNK]
                start = process_time()
                for stream, content, at in chunk:
                    feed(stream, content, at=at)
                each[0].append(process_time() - start)
                start = process_time()
                for _, content, _ in chunk:
                    fromstring(content)
                each[1].append(process_time() - start)
            kept.append(each[0])
            parsed.append(each[1])
        costs = {"keyed view": _cost(kept), "bare parse": _cost(parsed)}
        what = f"{name}, {size} orders in progress"
        result.compare(what, costs, "keyed view", "bare parse", "2 or less")


def _four(result: Result, size: int, count: int, rounds: int) -> None:
    """Measure a join of four with and without keys; rows complete as new orders begin."""
    times: dict[str, list[list[float]]] = {"keyed": [], "not keyed": []}
    for _ in range(rounds):
        documents = {"keyed": join(4, 4), "not keyed": join(4)}
        for doc in documents.values():
            for number in range(size):
                _feed(doc, message(number, 0.0, "a"))
        each: dict[str, list[float]] = {name: [] for name in documents}
        for first in range(0, count, _CHUNK):
            numbers = range(size + first // 4, size + (first + _CHUNK) // 4)
            chunk = [message(number, 1.0, stream) for number in numbers for stream in _STREAMS]
            for name, doc in documents.items():
                feed, start = doc.feed, process_time()
                for stream, content, at in chunk:
                    feed(stream, content, at=at)
                each[name].append(process_time() - start)
        for name, spent in each.items():
            times[name].append(spent)
    costs = {name: _cost(spent) for name, spent in times.items()}
    what = f"join of four, {size} orders in progress"
    result.compare(what, costs, "keyed", "not keyed", "1.3 or less")


def _cost(rounds: Sequence[Sequence[float]]) -> Cost:
    """The cost of one item, from the times of chunks in each round."""
    chunks = list(zip(*rounds, strict=True))
    scale = 1e6 / (_CHUNK * len(chunks))
    return Cost(scale * sum(map(min, chunks)), scale * sum(map(median, chunks)))
