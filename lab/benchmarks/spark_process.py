"""The part of the Spark benchmarks that runs in a separate process: a cold Java, or other options.

    python -m lab.benchmarks.spark_process '{"kind": "streams", ...}'

prints its measurements as the last line, as JSON. A session's Java keeps its options as long as the
process lives, so every set of options, and every cold start, needs a new process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeAlias

from axlog.live.document import Document
from axlog.samples import orders
from lab.generators.appendix_views import VIEWS

Session: TypeAlias = Any
"""A SparkSession: only `axlog.spark` imports pyspark."""
QUERIES = {"on-time": orders.ON_TIME, "within": orders.WITHIN}
LONGEST = 3600
_COUNTED = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"


def apart(task: dict[str, Any]) -> dict[str, Any]:
    """Run a task in a separate process, and return its measurements."""
    command = [sys.executable, "-m", __name__, json.dumps({**task, "started": time.time()})]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    if done.returncode:
        raise RuntimeError(f"{task['kind']} failed:\n{done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def streams(spark: Session, task: dict[str, Any]) -> dict[str, Any]:
    """Each side over the same messages, alternating: ms of each batch, and the state after it.

    The times of the join are Spark's own. Those of axlog are the intervals between the ends of two
    batches, which include more. `warm`: the messages of a batch in the first round, so that it has
    many batches and Java compiles what each of them runs.
    """
    sides = {"axlog": _axlog, "axlog over DataFrames": _axlog_frames, "join": _join}
    sides["axlog, state with the executors"] = partial(_axlog, state="executors")
    sides["axlog, changes as a DataFrame"] = _axlog_changes
    sides["written by hand"] = _by_hand
    # The same number for all sides; on a cluster Spark's default are 200.
    partitions = 4 if "master" in task else min(4, task["cores"])
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    found: dict[str, Any] = {side: [] for side in task["sides"]}
    for number in range(task["rounds"]):
        batch = task["batch"] if number else task.get("warm", task["batch"])
        for side in task["sides"]:
            checkpoint = tempfile.mkdtemp(prefix="axlog-bench-")
            meter = Meter(task.get("workers", []))
            try:
                run = sides[side](
                    spark, {**task, "batch": batch, "partitions": partitions}, checkpoint
                )
                found[side].append(run | meter.used(run.pop("ends"), run.pop("counts")))
            finally:
                meter.stop()
                shutil.rmtree(checkpoint, ignore_errors=True)
    return found


class Meter(Thread):
    """Samples the processor time of this process, its descendants, and of a cluster's workers.

    Python processes of Spark end when they have been idle: what they used is kept. What sampling
    itself takes is not counted.
    """

    def __init__(self, workers: Sequence[int]) -> None:
        super().__init__(daemon=True)
        self._workers = tuple(workers)
        self._known: dict[int, float] = {}  # by process
        self._kinds: dict[int, str] = {}
        self._compiling: dict[int, dict[int, float]] = {}  # by process of Java, and thread
        self._samples: list[tuple[float, dict[str, float]]] = []
        self._ended = Event()
        self._own = 0.0
        self._look()
        self.start()

    def run(self) -> None:
        while not self._ended.wait(0.25):
            self._look()

    def stop(self) -> None:
        """End the sampling."""
        self._ended.set()
        self.join()

    def used(self, ends: Sequence[float], counts: Sequence[int]) -> dict[str, float]:
        """Microseconds per message in the later half of the batches, by kind of process.

        `ends` are the times at which batches ended, and `counts` their messages.
        """
        self._look()
        half = len(ends) // 2
        messages = max(1, sum(counts[half:]))
        first, last = self._at(ends[half - 1]), self._at(ends[-1])
        found = {kind: 1e6 * (last[kind] - first[kind]) / messages for kind in KINDS}
        return {**found, "cpu": sum(found.values())}

    def _at(self, moment: float) -> dict[str, float]:
        return next((used for at, used in self._samples if at >= moment), self._samples[-1][1])

    def _look(self) -> None:
        began = time.thread_time()
        for pid, is_worker in [(os.getpid(), False), *((pid, True) for pid in self._workers)]:
            for child, seconds in processor_times(pid):
                self._known[child] = seconds
                if child not in self._kinds:
                    self._kinds[child] = _kind_of(child, is_worker)
                if self._kinds[child] in COMPILING:
                    self._compiling.setdefault(child, {}).update(compiler_times(child))
        used = dict.fromkeys(KINDS, 0.0)
        for pid, seconds in self._known.items():
            kind = self._kinds[pid]
            compiling = sum(self._compiling.get(pid, {}).values())
            used[kind] += seconds - compiling
            if compiling:
                used[COMPILING[kind]] += compiling
        used["driver"] -= self._own
        self._samples.append((time.time(), used))
        self._own += time.thread_time() - began


COMPILING = {"java": "compiling", "executors' java": "executors' compiling"}
"""By kind of Java: its threads that compile code or collect garbage. They rest after a while."""
DRIVER = ("driver", "java", "compiling")
"""The driver's Python, and its Java."""
EXECUTORS = ("executors", "executors' java", "executors' compiling")
"""Python processes that run tasks, and Java of a cluster's workers."""
KINDS = (*DRIVER, *EXECUTORS)
_THREADS = ("C1 Compiler", "C2 Compiler", "G1 ", "GC Thread", "VM Thread", "VM Periodic")


def _kind_of(pid: int, is_worker: bool) -> str:
    if pid == os.getpid():
        return "driver"
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode().replace("\0", " ")
    except OSError:
        command = ""
    if "java" in command.partition(" ")[0]:
        return "executors' java" if is_worker else "java"
    if is_worker or "daemon" in command:
        return "executors"
    return "driver"  # it reads sources for the driver


def _axlog(
    spark: Session, task: dict[str, Any], checkpoint: str, state: str = "driver"
) -> dict[str, Any]:
    """With axlog's own source of JSON lines."""
    from axlog.connect.kinds import Origin
    from axlog.connect.sources.jsonl import JsonLinesOptions, JsonLinesSource

    place = Path(task["place"])

    def source() -> JsonLinesSource:
        return JsonLinesSource(JsonLinesOptions(path="messages.jsonl"), Origin(directory=place))

    return _kept(spark, task, checkpoint, [source], state)


def _axlog_changes(spark: Session, task: dict[str, Any], checkpoint: str) -> dict[str, Any]:
    """The changes as a streaming DataFrame, which is written as that of the job by hand is: the
    driver sees neither messages nor changes. Spark counts packets, so messages are counted by the
    bytes of the file.
    """
    from axlog.connect.kinds import Origin
    from axlog.connect.sources.jsonl import JsonLinesOptions, JsonLinesSource
    from axlog.spark import changes
    from lab.benchmarks.spark_baseline import ends_of, milliseconds

    place = Path(task["place"])

    def source() -> JsonLinesSource:
        return JsonLinesSource(JsonLinesOptions(path="messages.jsonl"), Origin(directory=place))

    doc = Document(orders.DOCUMENT, views={"v": QUERIES[task["view"]]}, facts=orders.KEYS)
    told = changes(spark, doc, [source], hold=0.0, limit=task["batch"]).where("op = 'insert'")
    writer = told.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
    query = writer.option("checkpointLocation", checkpoint).start()
    query.awaitTermination()
    progress = [p for p in query.recentProgress if p["numInputRows"]]
    content = (place / "messages.jsonl").read_bytes()
    ends = [_read_up_to(p) for p in progress]
    counts = [content.count(b"\n", begin, end) for begin, end in pairwise([0, *ends])]
    return {
        "ms": milliseconds(progress),
        "state": [],
        "messages": sum(counts),
        "ends": ends_of(progress)["ends"],
        "counts": counts,
        "changes": sum(max(0, p["sink"]["numOutputRows"]) for p in progress),
    }


def _read_up_to(progress: Any) -> int:
    """The bytes of JSON lines that were read after a batch."""
    end = progress["sources"][0]["endOffset"]
    offset = json.loads(end) if isinstance(end, str) else end
    position: int = json.loads(offset["position"])[0]
    return position


def _axlog_frames(spark: Session, task: dict[str, Any], checkpoint: str) -> dict[str, Any]:
    """With the input of the join: two DataFrames that Spark reads."""
    frames = [
        _frame(spark, task, stream).selectExpr("*", f"'{stream}' as stream")
        for stream in ("orders", "shipments")
    ]
    return _kept(spark, task, checkpoint, frames)


def _kept(
    spark: Session, task: dict[str, Any], checkpoint: str, sources: list[Any], state: str = "driver"
) -> dict[str, Any]:
    from axlog.spark import maintain
    from axlog.spark.batch_result import BatchReport

    reports: list[BatchReport] = []
    ends: list[float] = []
    walls: list[float] = []
    first: list[float] = []

    def report(told: BatchReport) -> None:
        reports.append(told)
        if told.messages:
            ends.append(time.perf_counter())
            walls.append(time.time())
        if told.changes and not first:
            first.append(time.time() - task["started"])

    doc = Document(orders.DOCUMENT, views={"v": QUERIES[task["view"]]}, facts=orders.KEYS)
    kept = maintain(
        spark, doc, sources, once=True, hold=0.0, checkpoint=checkpoint,
        limit=task["batch"], report=report, state=state, partitions=task["partitions"],
    )  # fmt: skip
    kept.wait()
    with_input = [told for told in reports if told.messages]
    return {
        # From end to end: on the driver a batch continues when Spark has finished with it.
        "ms": [1000 * (end - begin) for begin, end in pairwise(ends)],
        "state": [told.state for told in with_input],
        "messages": sum(told.messages for told in with_input),
        "ends": walls,
        "counts": [told.messages for told in with_input],
        "changes": sum(change.op == "insert" for told in reports for change in told.changes),
        "first": first[0] if first else None,
    }


def _join(spark: Session, task: dict[str, Any], checkpoint: str) -> dict[str, Any]:
    from lab.benchmarks.spark_baseline import ends_of, milliseconds, on_time_join, state_rows

    joined = on_time_join(
        _frame(spark, task, "orders"),
        _frame(spark, task, "shipments"),
        orders.LATE_AFTER,
        is_after=task["view"] == "within",
    )
    writer = joined.writeStream.format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", checkpoint).start()
    query.awaitTermination()
    progress = query.recentProgress
    return {
        "ms": milliseconds(progress),
        "state": state_rows(progress),
        "messages": sum(p["numInputRows"] for p in progress),
        **ends_of(progress),
        "changes": sum(max(0, p["sink"]["numOutputRows"]) for p in progress),
    }


def _by_hand(spark: Session, task: dict[str, Any], checkpoint: str) -> dict[str, Any]:
    """The job without axlog, over both streams."""
    from lab.benchmarks.spark_baseline import ends_of, milliseconds
    from lab.benchmarks.spark_handwritten import on_time

    both = [
        _frame(spark, task, stream).selectExpr("*", f"'{stream}' as stream")
        for stream in ("orders", "shipments")
    ]
    kept = on_time(both[0].union(both[1]), orders.LATE_AFTER)
    writer = kept.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
    query = writer.option("checkpointLocation", checkpoint).start()
    query.awaitTermination()
    progress = query.recentProgress
    return {
        "ms": milliseconds(progress),
        "state": [],
        "messages": sum(p["numInputRows"] for p in progress),
        **ends_of(progress),
        "changes": sum(max(0, p["sink"]["numOutputRows"]) for p in progress),
    }


def processor_times(root: int, fields_added: int = 2) -> list[tuple[int, float]]:
    """The processor seconds of a process and of each of its descendants.

    With four fields added, each has those of its ended children, too.
    """
    stats: dict[int, tuple[int, float]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        ticks = sum(map(int, fields[11 : 11 + fields_added]))
        stats[int(path.parent.name)] = int(fields[1]), ticks / os.sysconf("SC_CLK_TCK")
    found, left = [], [root]
    while left:
        pid = left.pop()
        if pid in stats:
            found.append((pid, stats[pid][1]))
        left += [child for child, (parent, _) in stats.items() if parent == pid]
    return found


def compiler_times(pid: int) -> dict[int, float]:
    """The processor seconds of the threads of a Java that compile code or collect garbage."""
    found: dict[int, float] = {}
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            head, _, rest = path.read_text().rpartition(")")
        except OSError:  # it has just ended
            continue
        if head.partition("(")[2].startswith(_THREADS):
            ticks = sum(map(int, rest.split()[11:13]))
            found[int(path.parent.name)] = ticks / os.sysconf("SC_CLK_TCK")
    return found


def _frame(spark: Session, task: dict[str, Any], stream: str) -> Any:
    from lab.benchmarks.spark_baseline import INPUT

    reader = spark.readStream.schema(INPUT).option("maxFilesPerTrigger", 1)
    return reader.json(str(Path(task["place"]) / stream))


def documents(spark: Session, task: dict[str, Any]) -> dict[str, Any]:
    """The views of paper 5's appendix on documents: processor and other seconds, and rows, of each.

    The first evaluations, of small documents, start processes and compile code.
    """
    from axlog.spark import evaluate, files, shred

    found: dict[str, Any] = {}
    for at, path in enumerate((task["small"], task["path"])):
        for name in task["views"] if at else task["views"][:1] * 2:
            used, started = processor_total(), time.perf_counter()
            read = files(spark, path, task["records"])
            rows = evaluate(read, VIEWS[name].xquery, language="xquery")
            (counted,) = rows.selectExpr("count(struct(*))").collect()
            found[name] = [processor_total() - used, time.perf_counter() - started, counted[0]]
    if task["shreds"]:
        used = processor_total()
        nodes = shred(spark, task["path"], record=task["records"])
        nodes.write.mode("overwrite").parquet(str(Path(task["place"]) / "nodes"))
        found["shred"] = processor_total() - used
    return found


def processor_total() -> float:
    """The processor seconds of this process and all its descendants, also of ended ones."""
    return sum(seconds for _, seconds in processor_times(os.getpid(), 4))


def perform(spark: Session, task: dict[str, Any]) -> dict[str, Any]:
    """Run a task in a session, and return its measurements."""
    return {"streams": streams, "documents": documents}[task["kind"]](spark, task)


def main(written: str) -> None:
    """Run the task in the argument."""
    from axlog.spark import session

    task = json.loads(written)
    settings = {_COUNTED: "true" if task.get("counts") else "false"}
    master = task.get("master") or f"local[{task['cores']}]"
    if "master" in task:
        settings |= {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m"}
    settings |= task.get("settings", {})
    spark = session(master, "python -m lab bench", quick=task["quick"], settings=settings)
    try:
        found = perform(spark, task)
    finally:
        spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
