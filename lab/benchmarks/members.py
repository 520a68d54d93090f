"""One family with very many members: set-up, memory, a message, a restart, and against Pathway.

The order monitor, one view for each client, as in `families.py`. The other side of the message is
one view on messages of one client. A process with a store of ten thousand views is killed, and the
store is opened again. Pathway joins a parameter table with the orders, in a process of its
own (`against_pathway.py`); both sides must emit the same number of late orders.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from signal import SIGKILL
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from lxml.etree import fromstring

from axlog.live.document import Document
from axlog.live.options import Options
from axlog.live.store import open_store
from axlog.samples import orders
from axlog.views.change import Change
from lab.benchmarks.families import client_messages, monitor_of
from lab.benchmarks.measuring import Cost, Result
from lab.benchmarks.messages import Message


def members(
    count: int = 4000, views: int = 100_000, stored: int = 10_000, pathway: int = 20_000
) -> Result:
    """Measure `views` members; a store with `stored` of them; `pathway` messages (0: none)."""
    result = Result("members", "one family with very many members")
    result.sizes = {"messages": count, "members": views, "stored views": stored}
    _measure_members(result, count, views)
    _measure_restart(result, count, stored)
    if pathway and find_spec("pathway") is not None:
        _measure_pathway(result, pathway, stored)
    elif pathway:
        result.remarks.append("pathway is not installed (pip install 'axlog[bench]', on Linux)")
    return result


def _watched(views: int) -> Document:
    doc = Document(orders.DOCUMENT, options=Options(keep="needed", share="always"))
    for number in range(views):
        doc.watch(monitor_of(number), f"v{number}")
    return doc


def _fed(doc: Any, sent: Sequence[Message]) -> tuple[float, int]:
    """The seconds of processor time for the messages, and the number of changes."""
    start, changes = process_time(), 0
    for stream, message, at in sent:
        changes += len(doc.feed(stream, message, at=at))
    return process_time() - start, changes


def _measure_members(result: Result, count: int, views: int) -> None:
    start = process_time()
    doc = _watched(views)
    result.figures["set-up, s"] = process_time() - start
    sent = client_messages(count, views)
    half = count // 4
    _fed(doc, sent[:half])
    many = 1e6 * _fed(doc, sent[half:])[0] / (count - half)
    one, alone = _watched(1), client_messages(count, 1)
    _fed(one, alone[:half])
    single = 1e6 * _fed(one, alone[half:])[0] / (count - half)
    costs = {"many": Cost(many, many), "one": Cost(single, single)}
    result.compare(f"a message, {views} members", costs, "many", "one", "2 or less")
    del doc, one
    gc.collect()
    tracemalloc.start()
    few = min(views, 10_000)
    before = tracemalloc.get_traced_memory()[0]
    kept = _watched(few)
    gc.collect()
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    result.figures["memory of an idle member, bytes"] = used / few
    del kept


def _measure_restart(result: Result, count: int, views: int) -> None:
    """Kill a process with a store of many views, and open the store again.

    Rows, positions and the changes of later messages are those of a document that was not killed.
    """
    sent = client_messages(count + 200, views)
    before, after = sent[:count], sent[count:]
    undisturbed = _watched(views)
    _fed(undisturbed, before)
    with TemporaryDirectory() as directory:
        place = Path(directory) / "store"
        command = [sys.executable, "-m", __name__, "store", str(place), str(count), str(views)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == -SIGKILL, done.stderr
        start = process_time()
        killed = open_store(place)
        result.figures["restart from the log, s"] = process_time() - start
        same = _answers(killed) == _answers(undisturbed)
        killed.compact()
        killed.close()
        start = process_time()
        again = open_store(place)
        result.figures["restart from a snapshot, s"] = process_time() - start
        same = same and _answers(again) == _answers(undisturbed)
        for stream, message, at in after:
            one = [_plain(change) for change in again.feed(stream, message, at=at)]
            same = same and one == [
                _plain(change) for change in undisturbed.feed(stream, message, at=at)
            ]
        again.close()
    result.figures["rows of the store"] = sum(len(rows) for rows, _ in _answers(undisturbed))
    result.remarks.append("the killed store is as the other" if same else "THE ROWS DIFFER")


def _answers(doc: Any) -> list[tuple[list[Any], int]]:
    """The rows and the position of every view that has rows."""
    return [
        ([row.to_dict() for row in view.rows()], view.position)
        for view in doc.views.values()
        if len(view)
    ]


def _plain(change: Change) -> tuple[Any, ...]:
    return change.op, change.view, change.row.to_dict(), change.position


def _be_killed(place: str, count: int, views: int) -> None:
    """The process that is killed after its last message."""
    doc = open_store(place, orders.DOCUMENT, options=Options(share="always"), sync="batch")
    for number in range(views):
        doc.watch(monitor_of(number), f"v{number}")
    _fed(doc, client_messages(count + 200, views)[:count])
    os.kill(os.getpid(), SIGKILL)


# Pathway ------------------------------------------------------------------------------------------


def _measure_pathway(result: Result, count: int, views: int) -> None:
    doc, sent = _watched(views), client_messages(count, views)
    start = perf_counter()
    changes = sum(len(doc.feed(stream, message, at=at)) for stream, message, at in sent)
    ours = perf_counter() - start
    command = [sys.executable, "-m", __name__, str(count), str(views)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    said = json.loads(done.stdout.strip().splitlines()[-1])
    each = {"axlog": 1e6 * ours / count, "Pathway": 1e6 * said["seconds"] / count}
    costs = {name: Cost(cost, cost) for name, cost in each.items()}
    result.compare(f"a message, {views} views, wall time", costs, "Pathway", "axlog", "2 or more")
    same = changes == said["rows"]
    result.remarks.append(
        "Pathway finds as many late orders" if same else f"Pathway: {said['rows']}, not {changes}"
    )


def _parts(message: bytes) -> tuple[str, str, bool]:
    root = fromstring(message)
    is_computer = root.find("details/computer") is not None
    return root.findtext("oid") or "", root.findtext("client") or "", is_computer


def of_pathway(sent: Sequence[Message], views: int) -> tuple[float, int]:
    """Their side: the parameters are a table that the orders are joined with."""
    import pathway as pw

    started: list[float] = []
    rows = 0

    class Source(pw.io.python.ConnectorSubject):
        def run(self) -> None:
            started.append(perf_counter())
            for stream, message, at in sent:
                self.next(stream=stream, message=message, at=at)

    schema = pw.schema_from_types(stream=str, message=bytes, at=float)
    table = pw.io.python.read(Source(), schema=schema, autocommit_duration_ms=1)
    names = pw.schema_from_types(client=str)
    wanted = pw.debug.table_from_rows(names, [(f"c{number}",) for number in range(views)])

    @pw.udf
    def parsed(message: bytes) -> tuple[str, str, bool]:
        return _parts(message)

    read = table.select(table.stream, table.at, parts=parsed(table.message))
    read = read.select(
        read.stream, read.at, oid=read.parts[0], client=read.parts[1], is_wanted=read.parts[2]
    )
    ordered = read.filter((read.stream == "orders") & read.is_wanted)
    mine = ordered.join(wanted, ordered.client == wanted.client).select(
        ordered.oid, ordered.at, wanted.client
    )
    shipped = read.filter(read.stream == "shipments")
    joined = mine.join(shipped, mine.oid == shipped.oid)
    both = joined.select(mine.client, mine.oid, late=shipped.at - mine.at)

    def count(key: Any, row: Any, time: Any, is_addition: bool) -> None:
        nonlocal rows
        rows += 1

    pw.io.subscribe(both.filter(both.late >= orders.LATE_AFTER), count)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return perf_counter() - started[0], rows


if __name__ == "__main__":
    if sys.argv[1] == "store":
        _be_killed(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    taken = of_pathway(client_messages(int(sys.argv[1]), int(sys.argv[2])), int(sys.argv[2]))
    print(json.dumps({"seconds": taken[0], "rows": taken[1]}))
