"""Pipelines on Spark that are killed: a driver that is killed and restarted, a worker that dies.

Law 7: the changes that all runs together write, applied one after the other, give the rows of the
embedded engine, and the same `never` changes; none is lost and none doubled. Batches of Spark have
about as many messages as those of the embedded engine, so single updates of a group may differ. The
views are of every kind that Spark runs in its own way (`VIEWS`). A driver is killed with its
processes, after a batch and a random delay, so that the kill falls anywhere in the next one. A
worker is one of two of a standalone cluster on this machine; the query goes on with the other, and
once more after its driver is killed too.

`tests/spark/test_spark_kills.py` kills one driver and one worker, each in a short run; `python -m
lab torture --spark N` runs random cases, with both places of state, until N processes were killed.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from types import MappingProxyType
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
LONGEST = 600.0
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


class Kill(NamedTuple):
    """A process to kill after a batch."""

    victim: str
    """`driver` (with all its processes), `java`, `task`, `executor` or `worker`."""
    after: int
    """The batch that the sink must have before."""
    moment: str = "batch"
    """`batch`: after a random delay; `commit`: when the sink has begun to write the next one."""


Made = list[Kill]
"""The kills that were made: a process that was to be killed may not be there any more."""


def kill_drivers(
    place: Path,
    state: str,
    kills: Sequence[Kill],
    draw: Random,
    messages: int = MESSAGES,
    made: Made | None = None,
) -> Counter[str]:
    """Run on one machine, killing as told; return the outcome."""
    more, forked = quick_settings()
    write_pipeline(place, f"cores: 1, state: {state}, {more}", messages)
    _killed_run(place, kills, draw, partial(_run, place, **forked), made)
    return logged(place)


def kill_on_cluster(
    place: Path,
    on: Cluster,
    kills: Sequence[Kill],
    draw: Random,
    messages: int = MESSAGES,
    made: Made | None = None,
) -> Counter[str]:
    """Run on a cluster of two workers, killing as told; return the outcome."""
    more, forked = quick_settings()
    write_pipeline(place, f"partitions: 2, {more}", messages)
    start = partial(_run, place, "--master", on.address, **forked)
    _killed_run(place, kills, draw, start, made, on)
    return logged(place)


def _killed_run(
    place: Path,
    kills: Sequence[Kill],
    draw: Random,
    start: Callable[[], subprocess.Popen[bytes]],
    made: Made | None,
    on: Cluster | None = None,
) -> None:
    """Run to the end; each kill ends at most one process of `start`."""
    process, starts = start(), 1
    for kill in kills:
        while not _reached(place, kill.after, process):
            process, starts = start(), starts + 1
            if starts > 1 + kills.index(kill):
                raise AssertionError(_logs(place))
        if kill.moment == "commit":
            _wait_for_writing(place, process)
        else:
            time.sleep(draw.random() * 0.3)
        if _kill(kill.victim, process, draw, on) and made is not None:
            made.append(kill)
    while process.wait(timeout=LONGEST) != 0:
        process, starts = start(), starts + 1
        if starts > 1 + len(kills):
            raise AssertionError(_logs(place))


def _kill(victim: str, process: subprocess.Popen[bytes], draw: Random, on: Cluster | None) -> bool:
    """Kill the victim, and wait for the driver if it is that; whether it was there."""
    if victim == "worker":
        assert on is not None
        os.killpg(on.workers[0].pid, signal.SIGKILL)
        return True
    if victim == "driver":
        is_there = process.poll() is None
        if is_there:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return is_there
    leaders = [process.pid] if on is None or victim == "java" else [w.pid for w in on.workers]
    java = victim in ("java", "executor")
    found = [
        pid
        for pid, name in _processes_of(leaders)
        if (name == "java") == java and pid not in leaders
    ]
    if not found:
        return False
    with suppress(ProcessLookupError):
        os.kill(draw.choice(found), signal.SIGKILL)
        return True
    return False


def _processes_of(leaders: Sequence[int]) -> list[tuple[int, str]]:
    """Return the processes of sessions, with their names, in order."""
    found = []
    for each in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            before, _, after = (each / "stat").read_text().rpartition(")")
            if int(after.split()[3]) in leaders:
                found.append((int(each.name), before.partition("(")[2]))
    return sorted(found)


COMES_AND_GOES = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.timeout": "2s",
    "spark.dynamicAllocation.executorIdleTimeout": "2s",
    "spark.executor.cores": "1",
    "spark.axlog.messagesPerTask": "2",
}
"""Settings of a session whose executors come with messages and go soon after."""


def allocate_dynamically(place: Path, on: Cluster, messages: int = MESSAGES) -> Counter[str]:
    """Run until stopped with executors that come and go: half of the messages arrive when those
    that processed the others are gone. Return the outcome.
    """
    more, forked = quick_settings(settings=COMES_AND_GOES)
    write_pipeline(place, f"partitions: 2, {more}", messages // 2)
    process = _start(place, "run", "pipeline.yaml", "--no-page", "--master", on.address, **forked)
    seen: set[int] = set()
    for part in (messages // 2, messages):
        write_messages(place, part)
        if not _reached(place, part // BATCH, process):
            raise AssertionError(_logs(place))
        before, seen = seen, seen | set(_executors(on))
        if seen == before:
            raise AssertionError("no executor came")
        _until(lambda: not _executors(on))
    os.kill(process.pid, signal.SIGTERM)
    _finish(process, place)
    return logged(place)


def _executors(on: Cluster) -> list[int]:
    workers = [worker.pid for worker in on.workers]
    return [pid for pid, name in _processes_of(workers) if name == "java" and pid not in workers]


def _until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + LONGEST
    while not is_so():
        if time.monotonic() > until:
            raise AssertionError(f"not so after {LONGEST} s")
        time.sleep(0.1)


def kill_rescaling(
    place: Path,
    batch: int,
    partitions: Sequence[int],
    draw: Random,
    messages: int = MESSAGES,
    made: Made | None = None,
) -> Counter[str]:
    """Kill a run after a batch, then rescaling to each of these numbers, at any moment, with more
    messages after each. Return the outcome.
    """
    more, forked = quick_settings()
    start = partial(_run, place, **forked)
    write_pipeline(place, f"cores: 1, state: executors, buckets: 4, {more}", messages // 2)
    process = start()
    if not _reached(place, batch, process):
        raise AssertionError(_logs(place))
    _kill("driver", process, draw, None)
    for left, number in zip(reversed(range(len(partitions))), partitions, strict=True):
        _finish(start(), place)
        write_messages(place, messages - left * BATCH)
        scaling = _start(place, "rescale", "pipeline.yaml", "--partitions", str(number), **forked)
        with suppress(subprocess.TimeoutExpired):
            scaling.wait(timeout=4 + draw.random() * 12)
        if _kill("driver", scaling, draw, None) and made is not None:
            made.append(Kill("rescaling", batch))
    _finish(start(), place)
    return logged(place)


def quick_settings(
    cores: int = 2, settings: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, dict[str, str]]:
    """The settings of a pipeline, and the environment, for short runs on this machine.

    Java starts fast, and Python is forked, as in `session(quick=True)`; also on a cluster.
    """
    given = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join([*QUICK, *archive_options(writes=True)]),
        "spark.cores.max": str(cores),
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": " ".join([*QUICK, *archive_options(writes=False)]),
    }
    more = f"spark: {json.dumps({**given, **settings})}"
    launcher = preloaded()
    return more, {"PYSPARK_PYTHON": str(launcher.python)} if launcher else {}


def on_spark(seed: int) -> Counter[str]:
    """Run one random case and compare it with the embedded engine; return what was killed."""
    draw = Random(f"spark:{seed}")
    killed: Counter[str] = Counter()
    made: Made = []
    with tempfile.TemporaryDirectory(prefix="axlog-torture-") as directory:
        undisturbed, place = Path(directory) / "embedded", Path(directory) / "spark"
        undisturbed.mkdir()
        place.mkdir()
        messages = MESSAGES
        case = draw.choice(("cluster", "cluster", "rescaling", "driver", "executors"))
        if case == "rescaling":
            partitions = draw.sample((1, 2, 3), 2)
            found = kill_rescaling(place, draw.randrange(3), partitions, draw, made=made)
            killed += Counter(["driver, state: executors, batch", *(kill.victim for kill in made)])
        elif case == "cluster":
            messages *= 4
            # A task is repeated without a new start of anything, so these kills are cheap.
            victims = draw.choices(("task", "executor"), (3, 1), k=9)
            victims += ["worker", draw.choice(("driver", "java"))]
            draw.shuffle(victims)
            kills = _drawn(draw, victims, messages)
            with cluster(place) as started:
                found = kill_on_cluster(place, started, kills, draw, messages, made)
            killed += Counter(f"{each.victim} on a cluster, {each.moment}" for each in made)
        else:
            kills = _drawn(draw, draw.choices(("driver", "java", "task"), k=3), messages)
            found = kill_drivers(place, case, kills, draw, made=made)
            killed += Counter(f"{e.victim}, state: {case}, {e.moment}" for e in made)
        expected = by_embedded(undisturbed, messages)
    if found != expected:
        raise AssertionError(f"seed {seed}: lost {expected - found}, too many {found - expected}")
    return killed


def _drawn(draw: Random, victims: Sequence[str], messages: int) -> list[Kill]:
    """Kills after different batches, at either moment."""
    batches = sorted(draw.sample(range(messages // BATCH - 1), len(victims)))
    return [
        Kill(victim, batch, draw.choice(("batch", "commit")))
        for victim, batch in zip(victims, batches, strict=True)
    ]


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
    """Start a command of axlog, with a process group of its own, and with the sources in use here,
    wherever it runs.
    """
    given = os.environ.get("PYTHONPATH", "")
    paths = [str(Path(each).absolute()) for each in given.split(os.pathsep) if each]
    environment = {"PYTHONPATH": os.pathsep.join(paths), **environment}
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


def _reached(place: Path, batch: int, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the sink has a batch; false if the process ends before."""
    until = time.monotonic() + LONGEST
    while _last_batch(place) < batch:
        if process.poll() is not None:
            return _last_batch(place) >= batch
        if time.monotonic() > until:
            raise AssertionError(f"batch {batch} took over {LONGEST} s", _logs(place))
        time.sleep(0.02)
    return True


def _wait_for_writing(place: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until the sink's file grows, for some seconds: a batch may have no changes."""
    changes = place / "changes.jsonl"
    size, until = changes.stat().st_size, time.monotonic() + 5
    while changes.stat().st_size == size and process.poll() is None and time.monotonic() < until:
        time.sleep(0.001)


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
