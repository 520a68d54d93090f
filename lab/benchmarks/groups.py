"""Aggregates over order messages (F21): against the view without them, and against Pathway.

    groups   count and sum by client, with 1, 1,000 and as many clients as messages, against the
             same view without aggregates
    flat     the latest price of each key, and the ten largest orders: the last messages against the
             first ones, which both come after a warm-up
    Pathway  count and sum by client: a Python connector, one UDF that parses with lxml, a group-by.
             It runs in its own process; its start-up is not counted. Both sides must find the same
             totals. Pathway nets the changes of a commit; so it runs twice: with a commit of every
             message, which emits the changes that axlog emits, and with automatic commits, which
             emit fewer.

All figures are processor time, of all threads of a process. Not handled: repetition of the Pathway
side.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from time import process_time
from typing import Any

from lxml.etree import fromstring

from axlog.live.document import Document
from axlog.live.options import Options
from lab.benchmarks.measuring import Cost, Result, Side, interleave

PLAIN = "match //order[client/$c]/total/$t return $c, $t"
GROUPED = "match //order[client/$c]/total/$t return $c, count() as orders, sum($t) as total"
LATEST = "match //order[client/$c][at/$a]/total/$t return $c, latest($t by $a) as total"
TOP = "match //order[client/$c][at/$a]/total/$t return $c, $a, $t order by $t descending limit 10"
_KEYS = 1000
_SHARE = 10
"""The first and the last measured messages are one in so many."""


COMMITS = {"each": "the same changes", "auto": "netted by Pathway"}
"""When Pathway commits, and what it emits then."""


def groups(
    count: int = 100_000,
    rounds: int = 3,
    pathway: int = 20_000,
    commits: Sequence[str] = tuple(COMMITS),
) -> Result:
    """Send `count` messages to each view, and `pathway` messages to both engines."""
    result = Result("groups", "count and sum by client; latest per key; top ten (F21)")
    result.sizes = {"messages": count, "messages to Pathway": pathway}
    for clients in (1, 1000, count):
        sent = [order(number, clients) for number in range(count)]
        sides = {"with aggregates": _side(GROUPED), "without": _side(PLAIN)}
        costs = interleave(sides, sent, max(1, count // 20), rounds, process_time)
        result.compare(f"a message, {clients} groups", costs, "with aggregates", "without")
    for what, query in (("latest per key", LATEST), ("top ten", TOP)):
        _measure_flatness(result, what, query, count)
    _measure_pathway(result, pathway, commits)
    return result


def order(number: int, clients: int) -> bytes:
    """One order message; its total has two decimals, and its time grows."""
    total = (number * 7919) % 100_000
    return (
        f"<order><client>c{number % clients}</client><at>{number}</at>"
        f"<total>{total // 100}.{total % 100:02d}</total></order>"
    ).encode()


def _document(query: str) -> Document:
    return Document(streams=["orders"], views={"v": query}, options=Options(keep="needed"))


def _side(query: str) -> Callable[[], Side[bytes]]:
    def make() -> Side[bytes]:
        document = _document(query)

        def work(chunk: Sequence[bytes]) -> None:
            feed = document.feed
            for message in chunk:
                feed("orders", message)

        return work

    return make


def _measure_flatness(result: Result, what: str, query: str, count: int) -> None:
    work = _side(query)()
    part = max(1, count // _SHARE)
    work([order(number, _KEYS) for number in range(part)])  # a warm-up: all keys are there
    first = _timed(work, range(part, 2 * part))
    work([order(number, _KEYS) for number in range(2 * part, count - part)])
    last = _timed(work, range(count - part, count))
    costs = {"last messages": Cost(last, last), "first messages": Cost(first, first)}
    goal = "1.2 or less"
    result.compare(what, costs, "last messages", "first messages", goal)


def _timed(work: Side[bytes], numbers: range) -> float:
    sent = [order(number, _KEYS) for number in numbers]
    start = process_time()
    work(sent)
    return 1e6 * (process_time() - start) / len(sent)


# Pathway ------------------------------------------------------------------------------------------


def _measure_pathway(result: Result, count: int, commits: Sequence[str]) -> None:
    if find_spec("pathway") is None:
        result.remarks.append("pathway is not installed (pip install 'axlog[bench]', on Linux)")
        return
    document = _document(GROUPED)
    sent = [order(number, _KEYS) for number in range(count)]
    start = process_time()
    changes = 0
    for message in sent:
        changes += len(document.feed("orders", message))
    seconds = process_time() - start
    ours = {str(row["c"]): [row["orders"], str(row["total"])] for row in document.view("v")}
    for each in commits:
        what = COMMITS[each]
        command = [sys.executable, "-m", __name__, str(count), each]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=3600)
        said = json.loads(done.stdout.strip().splitlines()[-1])
        costs = {
            "Pathway": Cost(1e6 * said["seconds"] / count, 1e6 * said["seconds"] / count),
            "axlog": Cost(1e6 * seconds / count, 1e6 * seconds / count),
        }
        result.compare(f"a message, {_KEYS} groups, {what}", costs, "Pathway", "axlog")
        theirs = {client: [orders, f"{cents // 100}.{cents % 100:02d}"]
                  for client, (orders, cents) in said["rows"].items()}  # fmt: skip
        same = "the same totals" if ours == theirs else "OTHER TOTALS"
        result.remarks.append(
            f"{what}: {same}; axlog emits {changes:,} changes, Pathway {said['changes']:,}"
        )


def of_pathway(
    sent: Sequence[bytes], commits_each: bool
) -> tuple[float, dict[str, tuple[int, int]], int]:
    """Their side: seconds, the rows at the end, rows added; at most once per process."""
    import pathway as pw

    started: list[float] = []
    rows: dict[str, tuple[int, int]] = {}
    added: list[int] = []

    class Source(pw.io.python.ConnectorSubject):
        def run(self) -> None:
            started.append(process_time())
            for message in sent:
                self.next(message=message)
                if commits_each:
                    self.commit()

    table = pw.io.python.read(
        Source(),
        schema=pw.schema_from_types(message=bytes),
        autocommit_duration_ms=None if commits_each else 1,
    )

    @pw.udf
    def parsed(message: bytes) -> tuple[str, int]:
        root = fromstring(message)
        whole, _, cents = (root.findtext("total") or "").partition(".")
        return root.findtext("client") or "", int(whole) * 100 + int(cents)

    read = table.select(parts=parsed(table.message))
    read = read.select(client=read.parts[0], cents=read.parts[1])
    totals = read.groupby(read.client).reduce(
        read.client,
        orders=pw.reducers.count(),  # type: ignore[no-untyped-call]
        cents=pw.reducers.sum(read.cents),
    )

    def told(key: Any, row: Any, time: Any, is_addition: bool) -> None:
        if is_addition:
            added.append(1)
            rows[row["client"]] = (row["orders"], row["cents"])

    pw.io.subscribe(totals, told)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return process_time() - started[0], rows, len(added)


if __name__ == "__main__":
    given = [order(number, _KEYS) for number in range(int(sys.argv[1]))]
    taken, found, emitted = of_pathway(given, sys.argv[2] == "each")
    print(json.dumps({"seconds": taken, "rows": found, "changes": emitted}))
