"""F15: the on-time view of the order monitor on Spark, against a plain stream-stream join.

The same messages go through `axlog.spark.maintain` (from a file of JSON lines by axlog's source,
and from the join's own DataFrames), through the join over `from_xml` (`spark_baseline.py`), and
through a job written by hand (`spark_handwritten.py`, F23), and through the embedded engine in this
process. Each stream of the join has its own directory, so that
it parses no message twice. The join uses the same session. axlog is measured with its state on the
driver, which is its own choice here, and on the executors. The sides alternate, each in its own
query. Throughput is that of the median batch of the later half of each run, after Java's
just-in-time compilation.

The start is measured in a fresh process with the options for short runs, up to the first change.
State over a long run is measured separately, with the view that also requires the order to arrive
first: it needs no state once a deadline has passed. Spark counts the rows of the join; axlog's
state is measured in bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

from axlog.errors import SetupError
from axlog.live.document import Document
from axlog.live.options import Options
from axlog.samples import orders
from lab.benchmarks.measuring import Parts, Plot, Ratio, Result
from lab.benchmarks.spark_process import KINDS, apart

SETTLED = 10
"""Seconds after which a start adopts what an earlier one left (`quick_start/classes.py`)."""
RATE = 0.002
"""Orders a second: some hundred orders are under way at a time."""
_LONG_AGO = 1_700_000_000
EXECUTORS = "axlog, state with the executors"
CHANGES = "axlog, changes as a DataFrame"
BY_HAND = "written by hand"
SIDES = ("axlog", EXECUTORS, CHANGES, "axlog over DataFrames", "join", BY_HAND)
Size = tuple[int, int]
"""Messages a batch, and batches."""


def spark_streams(
    sizes: Sequence[Size] = ((1000, 8),),
    cores: Sequence[int] = (1, 2),
    state: Size | None = (1000, 10),
    rounds: int = 2,
    done: Parts | None = None,
    quick: bool = False,
) -> Result:
    """Both queries over the same input, for each number of cores, and the embedded engine.

    The measurements of a separate process are a part that can be `done` already. `quick` uses Java
    options for a fast start; its measurements are not meaningful.
    """
    result = Result("spark", "the on-time view on Spark and as a stream-stream join (F15)")
    refusal = why_not()
    if refusal is not None:
        result.skipped = refusal
        return result
    done = Parts() if done is None else done
    result.sizes = {"batches": ", ".join(f"{n} of {size}" for size, n in sizes), "rounds": rounds}
    with ExitStack() as places:
        for size in sizes:
            place = Path(places.enter_context(TemporaryDirectory(prefix="axlog-bench-")))
            _throughput(result, Input(place, size), cores, rounds, done, quick)
        if state is not None:
            place = Path(places.enter_context(TemporaryDirectory(prefix="axlog-bench-")))
            _start(result, Input(place / "start", (200, 1)), max(cores), done)
            _state(result, Input(place / "state", state), max(cores), done)
    return result


def why_not() -> str | None:
    """The reason why Spark cannot be measured here, if any."""
    try:
        from axlog.spark import prepare_environment

        prepare_environment()
    except SetupError as error:
        return error.message
    return None


class Input:
    """Messages on disk, written on first use."""

    def __init__(self, place: Path, size: Size) -> None:
        self._place, self.size = place, size

    @property
    def place(self) -> Path:
        if not (self._place / "messages.jsonl").exists():
            _write(self._place, self.size)
        return self._place

    def apart(self, task: dict[str, Any]) -> dict[str, Any]:
        """Run a task over them in a separate process."""
        own = {"kind": "streams", "place": str(self.place), "batch": self.size[0]}
        return apart({**own, **task})


def _throughput(
    result: Result, given: Input, cores: Sequence[int], rounds: int, done: Parts, quick: bool
) -> None:
    batch, batches = given.size
    each = f"spark: {batches} batches of {batch}"
    embedded: float = done.part(f"{each}, embedded", lambda: _embedded(given.place))
    result.figures[f"batches of {batch}: embedded, one core, messages/s"] = embedded
    task = {"view": "on-time", "sides": SIDES, "rounds": rounds, "quick": quick}
    for number in cores:
        head = f"batches of {batch}, {number} core{'s' if number > 1 else ''}"
        part = f"{each}, {number} cores, {rounds} rounds"
        runs = done.part(part, partial(given.apart, {**task, "cores": number}))
        rates = {side: max(_rate(run, batch) for run in runs[side]) for side in SIDES}
        for side, rate in rates.items():
            result.figures[f"{head}: {side}, messages/s"] = rate
        result.remarks += _disagreements(head, runs)
        for over, under, goal in (
            ("axlog", "join", ">= 2"),
            (EXECUTORS, "join", ""),
            (CHANGES, "join", ""),
            ("axlog over DataFrames", "join", ""),
        ):
            least = rates[over] / rates[under]
            pairs = zip(runs[over], runs[under], strict=True)
            middle = median(_rate(a, batch) / _rate(b, batch) for a, b in pairs)
            result.ratios.append(Ratio(head, f"{over} / {under}", least, middle, goal))
        _processor_time(result, head, runs)
        share = rates["axlog"] / embedded
        result.ratios.append(Ratio(head, "axlog on Spark / embedded", share, share))


def _processor_time(result: Result, head: str, runs: dict[str, list[dict[str, Any]]]) -> None:
    """F23: processor time of all processes per message in the later half of the last round, against
    the job that is written by hand.
    """
    last = {side: each[-1] for side, each in runs.items()}
    for side, run in last.items():
        what = f"{head}: {side}, us of all processors per message"
        result.figures[what] = run["cpu"]
        for kind in KINDS:
            result.figures[f"{what}: {kind}"] = run[kind]
    for side in ("axlog", EXECUTORS, CHANGES, "axlog over DataFrames"):
        ratio = last[side]["cpu"] / last[BY_HAND]["cpu"]
        result.ratios.append(
            Ratio(head, f"{side} / {BY_HAND}, processor time", ratio, ratio, "<= 1")
        )


def _rate(run: dict[str, Any], batch: int) -> float:
    """Messages per second in the median batch of the later half."""
    taken: list[int] = run["ms"]
    return 1000 * batch / max(1.0, median(taken[len(taken) // 2 :]))


def _disagreements(head: str, runs: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The differences between the sides, which should find the same rows in as many messages."""
    counts = {(run["messages"], run["changes"]) for each in runs.values() for run in each}
    return [] if len(counts) == 1 else [f"{head}: messages and rows differ: {sorted(counts)}"]


STARTS = 3
"""Cold starts, of which the least is told."""


def _start(result: Result, given: Input, cores: int, done: Parts) -> None:
    task = {"view": "on-time", "sides": ["axlog"], "rounds": 1, "quick": True, "cores": cores}

    def starts() -> list[float]:
        given.apart(task)  # creates an archive of Java's classes if there is none
        sleep(SETTLED + 2)
        found = [given.apart(task)["axlog"][0]["first"] for _ in range(STARTS)]
        return [seconds for seconds in found if seconds is not None]

    found = done.part("spark: cold starts", starts)
    result.figures["cold start to first change, s (goal < 15)"] = min(found, default=float("nan"))


def _state(result: Result, given: Input, cores: int, done: Parts) -> None:
    task = {"view": "within", "rounds": 1, "quick": False, "cores": cores, "counts": True}
    messages = given.size[0] * given.size[1]
    found: dict[str, list[float]] = {}
    for side in ("axlog", "join"):
        work = partial(given.apart, {**task, "sides": [side]})
        run = done.part(f"spark: state over {messages} messages, {side}", work)[side][0]
        found[side] = [float(n) for n in run["state"]]
    half = len(found["axlog"]) // 2
    for side, unit in (("axlog", "bytes"), ("join", "rows")):
        early, late = max(found[side][:half] or [0.0]), max(found[side][half:] or [0.0])
        result.figures[f"state over {messages} messages: {side}, most {unit}, first half"] = early
        result.figures[f"state over {messages} messages: {side}, most {unit}, second half"] = late
        points = [((at + 1.0) * given.size[0], value) for at, value in enumerate(found[side])]
        title = f"state of the on-time view: {side}"
        result.plots.append(Plot(title, "messages", unit, {side: points}))


def _write(place: Path, size: Size) -> None:
    """Write the messages: one file for axlog's source, a file per stream and batch for Spark's."""
    batch, batches = size
    drawn = iter(orders.messages(batch * batches, seed=1, rate=RATE))
    written = 0
    for stream in ("orders", "shipments"):
        (place / stream).mkdir(parents=True)
    with (place / "messages.jsonl").open("w", encoding="utf-8") as lines:
        for number in range(batches):
            apiece: dict[str, list[str]] = {"orders": [], "shipments": []}
            for message in islice(drawn, batch):
                stream, xml, at = str(message["stream"]), str(message["insert"]), message["at"]
                row = {"xml": xml, "time": at, "number": written}
                apiece[stream].append(json.dumps(row) + "\n")
                lines.write(json.dumps(message) + "\n")
                written += 1
            for stream, rows in apiece.items():
                path = place / stream / f"{number:05}.json"
                path.write_text("".join(rows), encoding="utf-8")
                os.utime(path, (_LONG_AGO + number,) * 2)  # Spark reads the oldest file first


def _embedded(place: Path) -> float:
    with (place / "messages.jsonl").open(encoding="utf-8") as lines:
        messages = [(m["stream"], m["insert"], m["at"]) for m in map(json.loads, lines)]
    doc = Document(
        orders.DOCUMENT,
        views={"on-time": orders.ON_TIME},
        facts=orders.KEYS,
        options=Options(keep="needed"),
    )
    started = perf_counter()
    for stream, xml, at in messages:
        doc.feed(stream, xml, at=at)
    return len(messages) / (perf_counter() - started)
