"""Order monitoring on the same XML messages against Pathway: throughput and latency (F7).

Pathway runs in a separate process, because it has one graph per process: a Python connector, one
UDF that parses a message with lxml, a join, a filter. Its clock starts when its source starts, so
its start-up is not counted. Latency is the time from sending a shipment to receiving the late
order. The messages of this measurement are a fixed time apart, after as many that are not, because
no order is late at first. Both sides must find the same late orders.

The sides take turns for some rounds. The cost of a message is the processor time of the process,
with all threads of Pathway, from the first message to the last row; the time of the clock on the
wall is reported too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from statistics import median
from time import perf_counter, process_time, sleep
from typing import Any

from lxml.etree import fromstring

from axlog.samples import orders
from lab.benchmarks.measuring import Cost, Result
from lab.benchmarks.messages import Message, monitor, plain

_PAUSE = 0.001  # seconds between messages where latency is measured


@dataclass
class Outcome:
    """What one side did."""

    seconds: float  # for all messages
    processor: float  # seconds of all threads
    latencies: list[float]  # seconds from each completing message to its row
    rows: set[str]


def against_pathway(count: int = 20_000, paced: int = 2000, rounds: int = 3) -> Result:
    """Send `count` messages at full speed; then again, with the last `paced` ones spaced out."""
    result = Result("pathway", "the order monitor against Pathway (F7: 3 x the throughput or more)")
    if find_spec("pathway") is None:
        result.skipped = "pathway is not installed (pip install 'axlog[bench]', on Linux)"
        return result
    result.sizes = {"messages": count, "paced messages": paced, "rounds": rounds}
    sent = plain(orders.messages(count))
    sides: dict[str, list[Outcome]] = {"axlog": [], "Pathway": []}
    for _ in range(rounds):
        sides["axlog"].append(of_axlog(sent, 0.0))
        sides["Pathway"].append(_in_a_process(count, 0.0))
    used = {name: [each.processor for each in found] for name, found in sides.items()}
    waited = {name: [each.seconds for each in found] for name, found in sides.items()}
    for what, taken in (("a message, processor time", used), ("a message, wall time", waited)):
        costs = {
            name: Cost(1e6 * min(seconds) / count, 1e6 * median(seconds) / count)
            for name, seconds in taken.items()
        }
        result.compare(what, costs, "Pathway", "axlog", "3 or more")
    ours, theirs = sides["axlog"][0], sides["Pathway"][0]
    if not paced:
        return _judged(result, ours, theirs)
    slow_ours = of_axlog(plain(orders.messages(count)), _PAUSE, paced)
    slow_theirs = _in_a_process(count, _PAUSE, paced)
    for name, slow in (("axlog", slow_ours), ("Pathway", slow_theirs)):
        latencies = slow.latencies
        if latencies:
            result.figures[f"median latency, {name}, us"] = 1e6 * median(latencies)
            result.sizes[f"latencies of {name}"] = len(latencies)
        else:
            result.remarks.append(f"no late order among the paced messages of {name}: no latency")
    return _judged(result, ours, theirs)


def _judged(result: Result, ours: Outcome, theirs: Outcome) -> Result:
    result.figures["late orders"] = len(ours.rows)
    same = ours.rows == theirs.rows
    result.remarks.append("both name the same late orders" if same else "THE ANSWERS DIFFER")
    return result


def of_axlog(sent: Sequence[Message], pause: float, paced: int = 0) -> Outcome:
    """Our side."""
    doc = monitor()()
    latencies, rows = [], set()
    start, used = perf_counter(), process_time()
    for number, (stream, message, at) in enumerate(sent):
        is_paced = number >= len(sent) - paced
        if is_paced:
            sleep(pause)
        handed = perf_counter()
        for change in doc.feed(stream, message, at=at):
            if is_paced:
                latencies.append(perf_counter() - handed)
            rows.add(str(change.row["x"]))
    return Outcome(perf_counter() - start, process_time() - used, latencies, rows)


def _in_a_process(count: int, pause: float, paced: int = 0) -> Outcome:
    command = [sys.executable, "-m", __name__, str(count), str(pause), str(paced)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    said = json.loads(done.stdout.strip().splitlines()[-1])
    return Outcome(said["seconds"], said["processor"], said["latencies"], set(said["rows"]))


def parts(message: bytes) -> tuple[str, bool]:
    """The parts of a message for the join: its oid, and whether it is a computer for INRIA."""
    root = fromstring(message)
    oid = root.findtext("oid") or ""
    is_client = any(client.text == "INRIA" for client in root.iterchildren("client"))
    return oid, is_client and root.find("details/computer") is not None


def of_pathway(sent: Sequence[Message], pause: float, paced: int = 0) -> Outcome:
    """Their side; at most once per process."""
    import pathway as pw

    handed: dict[str, float] = {}
    started: list[float] = []
    latencies: list[float] = []
    rows: set[str] = set()

    class Source(pw.io.python.ConnectorSubject):
        def run(self) -> None:
            started.extend((perf_counter(), process_time()))
            for number, (stream, message, at) in enumerate(sent):
                if number >= len(sent) - paced:
                    sleep(pause)
                    handed[parts(message)[0]] = perf_counter()
                self.next(stream=stream, message=message, at=at)

    schema = pw.schema_from_types(stream=str, message=bytes, at=float)
    table = pw.io.python.read(Source(), schema=schema, autocommit_duration_ms=1)

    @pw.udf
    def parsed(message: bytes) -> tuple[str, bool]:
        return parts(message)

    read = table.select(table.stream, table.at, parts=parsed(table.message))
    read = read.select(read.stream, read.at, oid=read.parts[0], is_wanted=read.parts[1])
    ordered = read.filter((read.stream == "orders") & read.is_wanted)
    shipped = read.filter(read.stream == "shipments")
    joined = ordered.join(shipped, ordered.oid == shipped.oid)
    both = joined.select(ordered.oid, late=shipped.at - ordered.at)

    def told(key: Any, row: Any, time: Any, is_addition: bool) -> None:
        rows.add(row["oid"])
        if row["oid"] in handed:
            latencies.append(perf_counter() - handed[row["oid"]])

    pw.io.subscribe(both.filter(both.late >= orders.LATE_AFTER), told)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return Outcome(perf_counter() - started[0], process_time() - started[1], latencies, rows)


if __name__ == "__main__":
    given = plain(orders.messages(int(sys.argv[1])))
    taken = of_pathway(given, float(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps({**asdict(taken), "rows": sorted(taken.rows)}))
