"""The future of joins at the cost of a look-up (F16, F19), with orders in progress.

    status     `status` of distinct rows (true, possible, never, unknown) in joins of two and three
               keyed streams, against feeding one message; and with many orders in progress against
               few. Messages and questions take turns
    overdue    the same for orders without a shipment after two hours (`not`, `now - t >= 2h`)
    page       the first 20 possible rows of the joins of two and three, the next deadlines first
    on time    the keyed on-time view, in which every order ends as a row or a `never`, against the
               bare parse of its messages
    four       a join of four keyed streams against the same join without keys

Times are processor times. The least of all rounds counts, and the median is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
Work = Callable[[], None]

_STREAMS = "abcd"
_LATE = 50_000.0
_CHUNK = 200
_FILLING = (
    "<client>INRIA</client><contact><name>Ada Byron</name><phone>00000000</phone></contact>"
    "<address><street>1 High St</street><city>Paris</city><country>France</country></address>"
    "<payment><method>invoice</method><total>100</total></payment>"
)


def status(sizes: Sequence[int] = (1000, 10_000), count: int = 2000, rounds: int = 3) -> Result:
    """Measure with these numbers of orders in progress, and `count` messages."""
    result = Result("status", "status, never and possible rows of joins (F16, F19)")
    result.sizes = {"orders in progress": ", ".join(map(str, sizes)), "messages": count}
    for parts in (2, 3):
        for keep in ("all", "needed"):
            costs = [_statuses(result, parts, keep, size, count, rounds) for size in sizes]
            name = f"status, join of {parts}, keep={keep}"
            many, few = f"at {sizes[-1]}", f"at {sizes[0]}"
            result.compare(name, {many: costs[-1], few: costs[0]}, many, few, "1.5 or less")
    costs = [_overdue(result, size, count, rounds) for size in sizes]
    many, few = f"at {sizes[-1]}", f"at {sizes[0]}"
    result.compare("status, overdue", {many: costs[-1], few: costs[0]}, many, few, "1.5 or less")
    for size in sizes:
        _page(result, 2, size, rounds)
        _page(result, 3, size, rounds)
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


def _statuses(result: Result, parts: int, keep: Keep, size: int, count: int, rounds: int) -> Cost:
    """Measure questions and messages in turns."""
    name = f"join of {parts}, keep={keep}, {size} orders in progress"
    asked: list[list[float]] = []
    fed: list[list[float]] = []
    for _ in range(rounds):
        doc = join(parts, parts if keep == "all" else 0, keep)
        time = _fill(doc, parts, size)
        questions, feed = _questions(doc, keep, size), doc.feed
        new = iter(range(10**9, 10**9 + count))
        doc.view("v").status({"x": "0"})
        each: tuple[list[float], list[float]] = ([], [])
        for _ in range(0, count, _CHUNK):
            chunk = [message(next(new), time, "a") for _ in range(_CHUNK)]
            start = process_time()
            for stream, content, at in chunk:
                feed(stream, content, at=at)
            each[0].append(process_time() - start)
            some = [next(questions) for _ in range(_CHUNK)]
            start = process_time()
            for question in some:
                question()
            each[1].append(process_time() - start)
        fed.append(each[0])
        asked.append(each[1])
    costs = {"status": _cost(asked), "a message": _cost(fed)}
    result.compare(name, costs, "status", "a message", "3 or less")
    return costs["status"]


_OVERDUE = "match /r[a/o/k/$x#t][not(b/o/k/$x)] where now - t >= 50000s return $x"


def _overdue(result: Result, size: int, count: int, rounds: int) -> Cost:
    """Measure questions about overdue orders, and messages, in turns."""
    asked: list[list[float]] = []
    fed: list[list[float]] = []
    call = '<ax:call xmlns:ax="urn:axlog" stream="{0}"/>'
    for _ in range(rounds):
        doc = Document(
            "<r>" + "".join(f"<{s}>{call.format(s)}</{s}>" for s in "ab") + "</r>",
            views={"v": _OVERDUE},
            facts=["key a/o by k trusted"],
            options=Options(keep="needed"),
        )
        late = max(4, size // 10)
        for number in range(2 * late):
            _feed(doc, message(number, 0.0, "a"))
        for number in range(late, 2 * late):  # in time: these are never overdue
            _feed(doc, message(number, 1.0, "b"))
        time = 1.0 + _LATE
        for number in range(2 * late, 2 * late + size):
            _feed(doc, message(number, time, "a"))
        ask, feed, new = doc.view("v").status, doc.feed, iter(range(10**9, 10**9 + count))
        kinds = (
            (0, late, Truth.TRUE),
            (late, late, Truth.NEVER),
            (2 * late, size, Truth.POSSIBLE),
            (10**8, 10**7, Truth.POSSIBLE),
        )
        each: tuple[list[float], list[float]] = ([], [])
        for turn in range(0, count, _CHUNK):
            chunk = [message(next(new), time, "a") for _ in range(_CHUNK)]
            start = process_time()
            for stream, content, at in chunk:
                feed(stream, content, at=at)
            each[0].append(process_time() - start)
            rows = [
                ({"x": str(first + (turn + n) % among)}, wanted)
                for n in range(_CHUNK // len(kinds))
                for first, among, wanted in kinds
            ]
            start = process_time()
            found = [ask(row) for row, _ in rows]
            each[1].append(process_time() - start)
            if found != [wanted for _, wanted in rows]:
                raise WorkloadError("AX601", "a status is wrong", expected="that of its kind")
        fed.append(each[0])
        asked.append(each[1])
    costs = {"status": _cost(asked), "a message": _cost(fed)}
    name = f"overdue, keep=needed, {size} orders in progress"
    result.compare(name, costs, "status", "a message", "3 or less")
    return costs["status"]


def _fill(doc: Document, parts: int, size: int) -> float:
    """Bring orders: some complete, some too late, the others in progress. Return the clock."""
    late = max(4, size // 10)
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


def _questions(doc: Document, keep: Keep, size: int) -> Iterator[Work]:
    """Questions about distinct rows: true, possible, never and unknown."""
    late, ask = max(4, size // 10), doc.view("v").status
    kinds = [
        (late, late, Truth.TRUE),
        (2 * late, size, Truth.POSSIBLE),
        (10**8, 10**7, Truth.POSSIBLE),
    ]
    if keep == "all":  # keys rule them out
        kinds.append((0, late, Truth.NEVER))

    def question(row: dict[str, str], wanted: Truth) -> Work:
        def work() -> None:
            if ask(row) is not wanted:
                raise WorkloadError("AX601", f"{row} is {ask(row)}", expected=str(wanted))

        return work

    for number in range(10**9):
        for first, among, wanted in kinds:
            yield question({"x": str(first + number % among)}, wanted)


def _page(result: Result, parts: int, size: int, rounds: int) -> None:
    """Measure the first page of possible rows, with a message between two pages."""
    doc = join(parts, parts)
    time, view = _fill(doc, parts, size), doc.view("v")
    view.possible(limit=20)
    times: list[float] = []
    for number in range(20 * rounds):
        _feed(doc, message(10**9 + number, time, "a"))
        start = process_time()
        if len(view.possible(limit=20)) != 20:
            raise WorkloadError("AX601", "there are fewer possible rows", expected="20")
        times.append(process_time() - start)
    name = f"join of {parts}, a page of 20 of {size} possible rows"
    result.figures[f"{name}, us (least)"] = 1e6 * min(times)
    result.figures[f"{name}, us (median)"] = 1e6 * median(times)


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
