"""Pipelines on Spark that are killed: a driver that is killed and restarted, a worker that dies.

Law 7: the changes that all runs together write, applied one after the other, give the rows of the
embedded engine, and the same `never` changes; none is lost and none doubled. Batches of Spark have
about as many messages as those of the embedded engine, so single updates of a group may differ. The
views are of every kind that Spark runs in its own way (`VIEWS`). A driver is killed with its
processes, after a batch and a random delay, so that the kill falls anywhere in the next one. A
worker is one of two of a standalone cluster on this machine; the query goes on with the other, and
once more after its driver is killed too.

`tests/spark/test_spark_kills.py` kills one driver and one worker, each in a short run; `python -m
lab torture --spark N` runs N random cases, with both places of state and up to three kills.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from typer.testing import CliRunner

from axlog.cli.application import application
from axlog.samples import orders
from axlog.spark.cluster import spark_class
from axlog.spark.quick_start.classes import archive_options
from axlog.spark.quick_start.worker_preload import preloaded
from axlog.spark.session import QUICK

MESSAGES = 140
BATCH = 20
PIPELINE = """
document: |
  {document}
sources: [{{kind: jsonl, path: in.jsonl}}]
facts: {facts}
views:
{views}
sinks:
  changes: {{kind: jsonl, path: changes.jsonl}}
settings: {{batch: {batch}, checkpoint: checkpoint, hold: 0, trigger: 0, {more}}}
"""
VIEWS = {
    "late": orders.LATE,
    "on-time": orders.ON_TIME,
    "unshipped": "match /management[webstore/orders/order/oid/$x]"
    "[not(shipping/orders/order/oid/$x)] return $x",
    "some": "match /management[webstore/orders/order/client/$c][shipping/orders/order] return $c",
    "any": "match /management[webstore/orders/order/oid/$x][shipping/orders/order/oid/$x]",
    "content": "match /management/shipping/orders/order#o[oid] return o.cont",
    "shipped": "match /management[webstore/orders/order[oid/$x]/client/$c]"
    "[shipping/orders/order/oid/$x] return $c, count() as shipped, max($x) as last",
    "busiest": "match /management/webstore/orders/order/client/$c"
    " return $c, count() as orders order by orders descending limit 2",
}
"""Views of every kind: split by a key, with rows that never come, with a `not`, with a branch that
goes to all buckets, in one bucket, over nodes, and with final steps on the driver (partial
aggregates and candidates)."""
LONGEST = 240.0
"""Seconds to wait for a batch, or for the end of a run."""


class Cluster(NamedTuple):
    """A standalone cluster that runs on this machine."""

    address: str
    workers: list[subprocess.Popen[Any]]


def by_embedded(place: Path, messages: int = MESSAGES) -> Counter[str]:
    """Return the outcome of the embedded engine, which nothing disturbs."""
    write_pipeline(place, "", messages)
    path = str(place / "pipeline.yaml")
    done = CliRunner().invoke(application(), ["run", path, "--engine", "embedded", "--once"])
    if done.exit_code != 0:
        raise AssertionError(done.output)
    return logged(place)


def kill_drivers(
    place: Path, state: str, batches: Sequence[int], draw: Random, messages: int = MESSAGES
) -> Counter[str]:
    """Kill a run after each of these batches and restart it; return the outcome."""
    write_pipeline(place, f"cores: 1, state: {state}", messages)
    for least in batches:
        process = _run(place)
        _wait_for_batch(place, least, process)
        time.sleep(draw.random() * 0.3)  # the kill falls anywhere in the next batch
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    _finish(_run(place), place)
    return logged(place)


def kill_rescaling(
    place: Path, batch: int, partitions: Sequence[int], draw: Random, messages: int = MESSAGES
) -> Counter[str]:
    """Kill a run after a batch, then rescaling to each of these numbers, at any moment, with more
    messages after each. Return the outcome.
    """
    write_pipeline(place, "cores: 1, state: executors, buckets: 4", messages // 2)
    process = _run(place)
    _wait_for_batch(place, batch, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for left, number in zip(reversed(range(len(partitions))), partitions, strict=True):
        _finish(_run(place), place)
        write_messages(place, messages - left * BATCH)
        scaling = _start(place, "rescale", "pipeline.yaml", "--partitions", str(number))
        with suppress(subprocess.TimeoutExpired):
            scaling.wait(timeout=4 + draw.random() * 12)
        if scaling.poll() is None:
            os.killpg(scaling.pid, signal.SIGKILL)
            scaling.wait()
    _finish(_run(place), place)
    return logged(place)


def kill_worker(place: Path, on: Cluster, batch: int, messages: int = MESSAGES) -> Counter[str]:
    """Kill one of the two workers of a cluster after a batch, and the driver after the next one.
    Restart it with the worker that is left; return the outcome.
    """
    more, forked = quick_settings()
    write_pipeline(place, f"partitions: 2, {more}", messages)
    process = _run(place, "--master", on.address, **forked)
    _wait_for_batch(place, batch, process)
    os.killpg(on.workers[0].pid, signal.SIGKILL)
    _wait_for_batch(place, batch + 1, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    _finish(_run(place, "--master", on.address, **forked), place)
    return logged(place)


def quick_settings(cores: int = 2) -> tuple[str, dict[str, str]]:
    """The settings of a pipeline, and the environment, for short runs on a cluster that is on this
    machine: its Java starts fast, and its Python can be forked, as that of a local session.
    """
    java = " ".join([*QUICK, *archive_options(writes=False)])
    more = (
        f"spark: {{spark.driver.host: 127.0.0.1, spark.cores.max: '{cores}',"
        f' spark.executor.memory: 512m, spark.executor.extraJavaOptions: "{java}"}}'
    )
    launcher = preloaded()
    return more, {"PYSPARK_PYTHON": str(launcher.python)} if launcher else {}


def on_spark(seed: int) -> str:
    """Run one random case and compare it with the embedded engine; return what was killed."""
    draw = Random(f"spark:{seed}")
    with tempfile.TemporaryDirectory(prefix="axlog-torture-") as made:
        undisturbed, place = Path(made) / "embedded", Path(made) / "spark"
        undisturbed.mkdir()
        place.mkdir()
        expected = by_embedded(undisturbed)
        if draw.random() < 0.25:
            what = "worker"
            with cluster(place) as started:
                found = kill_worker(place, started, draw.randrange(MESSAGES // BATCH - 1))
        elif draw.random() < 0.25:
            what = "rescaling"
            found = kill_rescaling(place, draw.randrange(3), draw.sample((1, 2, 3), 2), draw)
        else:
            state = draw.choice(("driver", "executors"))
            batches = sorted(draw.sample(range(MESSAGES // BATCH - 1), draw.randint(1, 3)))
            what = f"driver, state: {state}"
            found = kill_drivers(place, state, batches, draw)
    if found != expected:
        raise AssertionError(f"seed {seed}: lost {expected - found}, too many {found - expected}")
    return what


def write_pipeline(place: Path, more: str, messages: int) -> None:
    """Write the pipeline file, with more settings, and its messages."""
    write_messages(place, messages)
    views = [
        f"  {name}:\n    query: |\n      {query}\n    sinks: [changes]"
        for name, query in VIEWS.items()
    ]
    text = PIPELINE.format(
        document=orders.DOCUMENT,
        views="\n".join(views),
        facts=list(orders.KEYS),
        batch=BATCH,
        more=more,
    )
    (place / "pipeline.yaml").write_text(text, encoding="utf-8")


def write_messages(place: Path, messages: int) -> None:
    """Write the messages of the pipeline, which only become more."""
    sent = orders.messages(messages, seed=5, rate=0.0005)
    lines = [json.dumps(message) for message in sent]
    (place / "in.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def logged(place: Path) -> Counter[str]:
    """Apply the changes in the log; return the rows and `never` changes, as JSON: view and row.

    Raises if a change does not follow from those before it: one was lost, or came twice.
    """
    found: Counter[str] = Counter()
    for line in (place / "changes.jsonl").read_text(encoding="utf-8").splitlines():
        change = json.loads(line)
        view, op, row = change["view"], change["op"], change["row"]
        if op == "never":
            found[json.dumps([view, "never", row])] += 1
            continue
        gone = row if op == "delete" else change.get("before")
        for of, by in ((gone, -1), (None if op == "delete" else row, 1)):
            key = json.dumps([view, "row", of])
            found[key] += 0 if of is None else by
            if found[key] not in (0, 1):
                raise AssertionError(f"a change does not follow from those before it: {line}")
    return +found


def _run(place: Path, *options: str, **environment: str) -> subprocess.Popen[bytes]:
    return _start(place, "run", "pipeline.yaml", "--engine", "spark", "--once", *options,
                  **environment)  # fmt: skip


def _start(place: Path, *words: str, **environment: str) -> subprocess.Popen[bytes]:
    """Start a command of axlog, with a process group of its own."""
    with (place / "spark.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", "from axlog.cli import main; main()", *words],
            cwd=place,
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )


def _last_batch(place: Path) -> int:
    state = place / "changes.jsonl.state"
    return int(json.loads(state.read_text(encoding="utf-8"))["batch"]) if state.exists() else -1


def _wait_for_batch(place: Path, batch: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + LONGEST
    while _last_batch(place) < batch and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    if _last_batch(place) < batch:
        raise AssertionError(_logs(place))


def _finish(process: subprocess.Popen[bytes], place: Path) -> None:
    if process.wait(timeout=LONGEST) != 0:
        raise AssertionError(_logs(place))


def _logs(place: Path) -> list[str]:
    return [path.read_text(encoding="utf-8")[-3000:] for path in place.glob("*.log")]


@contextmanager
def cluster(place: Path, workers: int = 2) -> Iterator[Cluster]:
    """A standalone master with workers of one core, from the pip package."""
    started: list[subprocess.Popen[Any]] = []
    try:
        options = ["--host", "127.0.0.1", "--port", "0"]
        master = spark_class("Master", options, place / "master.log", quick=True)
        started.append(master)
        address = _address(place / "master.log")
        for number in range(1, workers + 1):
            options = ["--cores", "1", "--memory", "1g", "--work-dir", str(place / f"work{number}")]
            log = place / f"worker{number}.log"
            options = [*options, "--host", "127.0.0.1", address]
            started.append(spark_class("Worker", options, log, quick=True))
        yield Cluster(address, started[1:])
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _address(log: Path) -> str:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for word in log.read_text(encoding="utf-8").split() if log.exists() else ():
            if word.startswith("spark://"):
                return word.rstrip(".,")
        time.sleep(0.05)
    raise AssertionError(log.read_text(encoding="utf-8")[-2000:])
