"""The cost of a message against the bare parse of the same bytes, with the same options (F2, F3).

The benchmark measures the order monitor, and views of the kind of paper 3 (10 nodes, 2 //, a value
join) whose streams may delete, with messages kept and not kept. With `keep="all"` a message is set
aside and becomes nodes when an operation needs the document. That cost is deferred but belongs to
the message, so it is measured separately. Unwanted messages are those that can be rejected by their
raw bytes (`validate="wanted"`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import process_time

from lxml.etree import fromstring

from axlog.document.parser import make_parser
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.options import Keep, Options, Validate
from axlog.samples import orders
from lab.benchmarks.measuring import Cost, Result, Side, interleave
from lab.generators import active

Message = tuple[str, bytes, float]
WARM = 200  # messages before the measured ones: paths are cached, code is compiled
CHUNK = 25


def messages(count: int = 4000, rounds: int = 5, seeds: int = 4) -> Result:
    """Measure `count` messages of the order monitor, and of this many generated documents."""
    result = Result("message", "parse and maintain (F2: 1.5 x the bare parse or less; F3: 0.3 x)")
    result.sizes = {"messages": count, "rounds": rounds, "chunk": CHUNK, "P3 documents": seeds}
    sent = plain(orders.messages(count + WARM))
    kinds: tuple[Keep, ...] = ("needed", "all")
    for keep in kinds:
        _measure(result, f"order monitor, keep={keep}", monitor(keep), sent, rounds)
    for seed in range(seeds):
        made = active.workload(seed=seed, deletes=True)
        text, sent = made.document, plain(active.updates(made, count // 2 + WARM, seed=seed))
        for keep in kinds:
            make = _kept(text, made.pattern, keep)
            _measure(result, f"P3 view {seed}, keep={keep}", make, sent, rounds)
    _measure_unwanted(result, count, rounds)
    _measure_settling(result, min(count, 1000))
    return result


def plain(updates: Iterable[Mapping[str, object]]) -> list[Message]:
    """Updates in the form that `feed` accepts."""
    return [(str(u["stream"]), str(u["insert"]).encode(), float(str(u["at"]))) for u in updates]


def monitor(keep: Keep = "needed", validate: Validate = "all") -> Callable[[], Document]:
    return lambda: Document(
        orders.DOCUMENT, views={"late": orders.LATE}, options=Options(keep=keep, validate=validate)
    )


def _kept(text: str, pattern: str, keep: Keep) -> Callable[[], Document]:
    return lambda: Document(text, views={"view": pattern}, options=Options(keep=keep))


def feeding(make: Callable[[], Document], warm: Sequence[Message]) -> Callable[[], Side[Message]]:
    """A side that feeds a new document, warmed up."""

    def side() -> Side[Message]:
        feed = make().feed
        for stream, message, at in warm:
            feed(stream, message, at=at)

        def work(chunk: Sequence[Message]) -> None:
            for stream, message, at in chunk:
                feed(stream, message, at=at)

        return work

    return side


def parsing() -> Side[Message]:
    """The other side: the bare parse."""
    parser = make_parser()

    def work(chunk: Sequence[Message]) -> None:
        for _, message, _ in chunk:
            fromstring(message, parser)

    return work


def _costs(make: Callable[[], Document], sent: Sequence[Message], rounds: int) -> dict[str, Cost]:
    sides = {"maintain": feeding(make, sent[:WARM]), "bare parse": parsing}
    return interleave(sides, sent[WARM:], CHUNK, rounds, clock=process_time)


def _measure(
    result: Result, what: str, make: Callable[[], Document], sent: Sequence[Message], rounds: int
) -> None:
    result.compare(what, _costs(make, sent, rounds), "maintain", "bare parse", "1.5 or less")


def _measure_unwanted(result: Result, count: int, rounds: int) -> None:
    """Invoices arrive on the stream of the orders: no view needs them."""
    sent = [
        (stream, message.replace(b"order>", b"invoice>"), at)
        for stream, message, at in plain(orders.messages(count + WARM))
    ]
    costs = _costs(monitor(validate="wanted"), sent, rounds)
    result.compare("unwanted messages", costs, "maintain", "bare parse", "0.3 or less")


def _measure_settling(result: Result, count: int) -> None:
    """The nodes of kept messages, made together when the document is read (F18)."""

    def making() -> Side[Message]:
        doc = monitor("all")()
        doc.feed("orders", sent[0][1])

        def work(chunk: Sequence[Message]) -> None:
            for stream, message, at in chunk:
                doc.feed(stream, message, at=at)
            start = process_time()
            maintained(doc).settle()
            made.append((process_time() - start) / len(chunk))

        return work

    sent = plain(orders.messages(count))
    made: list[float] = []
    size = max(count // 4, 1)
    sides = {"keep and make nodes": making, "bare parse": parsing}
    costs = interleave(sides, sent, size, 3, clock=process_time)
    what = "making a kept message's nodes"
    result.figures[f"{what}, us"] = nodes = 1e6 * min(made)
    result.figures[f"{what} / bare parse"] = nodes / max(costs["bare parse"].least, 1e-9)
    result.remarks.append("keep=all puts that last cost off until the document is needed")


def same_answers(count: int) -> bool:
    """Whether all values of `keep` give the order monitor the same rows."""
    documents = [
        monitor(keep, validate)() for keep in ("needed", "all") for validate in ("all", "wanted")
    ]
    for stream, message, at in plain(orders.messages(count)):
        for doc in documents:
            doc.feed(stream, message, at=at)
    rows = [[(row, row.count) for row in doc.view("late").rows()] for doc in documents]
    return bool(rows[0]) and all(each == rows[0] for each in rows)
