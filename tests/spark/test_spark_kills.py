"""Law 7, killed: a driver that is shot and started again, a worker of a cluster that dies.

Nothing is lost and nothing doubled: the change log that the runs leave is the embedded engine's.
The moments are drawn with fixed seeds; the numbers of runs are fixed.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from axlog.samples import orders
from axlog.spark.classes import archive_options
from axlog.spark.session import QUICK

pytestmark = pytest.mark.spark

MESSAGES = 240
PIPELINE = """
document: |
  {document}
sources: [{{kind: jsonl, path: in.jsonl}}]
facts: {facts}
views:
{views}
sinks:
  changes: {{kind: jsonl, path: changes.jsonl}}
settings: {{batch: 20, checkpoint: checkpoint, hold: 0, trigger: 0, {more}}}
"""
VIEWS = {
    "late": orders.LATE,
    "on-time": orders.ON_TIME,
    "unshipped": "match /management[webstore/orders/order/oid/$x]"
    "[not(shipping/orders/order/oid/$x)] return $x",
    "some": "match /management[webstore/orders/order/client/$c][shipping/orders/order] return $c",
    "any": "match /management[webstore/orders/order/oid/$x][shipping/orders/order/oid/$x]",
    "content": "match /management/shipping/orders/order#o[oid] return o.cont",
}
"""Views of every kind: spread by a key, with rows that are never answered, with a `not`, with a
branch that goes to all buckets, in one bucket, and over nodes."""
LONGEST = 240.0


def write_pipeline(place: Path, more: str) -> None:
    messages = orders.messages(MESSAGES, seed=5, rate=0.0005)
    lines = [json.dumps(message) for message in messages]
    (place / "in.jsonl").write_text("\n".join(lines) + "\n")
    views = [
        f"  {name}:\n    query: |\n      {query}\n    sinks: [changes]"
        for name, query in VIEWS.items()
    ]
    text = PIPELINE.format(
        document=orders.DOCUMENT, views="\n".join(views), facts=list(orders.KEYS), more=more
    )
    (place / "pipeline.yaml").write_text(text)


def run(place: Path, engine: str = "spark", **environment: str) -> subprocess.Popen[bytes]:
    log = (place / f"{engine}.log").open("ab")
    command = [sys.executable, "-c", "from axlog.cli import main; main()", "run", "pipeline.yaml"]
    with log:
        return subprocess.Popen(
            [*command, "--engine", engine, "--once"],
            cwd=place,
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )


def last_batch(place: Path) -> int:
    state = place / "changes.jsonl.state"
    return int(json.loads(state.read_text())["batch"]) if state.exists() else -1


def wait_for_batch(place: Path, batch: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + LONGEST
    while last_batch(place) < batch and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    assert last_batch(place) >= batch, (place / "spark.log").read_text()[-3000:]


def finish(process: subprocess.Popen[bytes], place: Path) -> None:
    logs = [path.read_text()[-3000:] for path in place.glob("*.log")]
    assert process.wait(timeout=LONGEST) == 0, logs


def logged(place: Path) -> Counter[str]:
    lines = (place / "changes.jsonl").read_text().splitlines()
    return Counter(json.dumps([c["view"], c["op"], c["row"]]) for c in map(json.loads, lines))


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    place = tmp_path_factory.mktemp("embedded")
    write_pipeline(place, "")
    finish(run(place, "embedded"), place)
    found = logged(place)
    assert {json.loads(each)[0] for each in found} == set(VIEWS)
    assert {json.loads(each)[1] for each in found} >= {"insert", "delete", "never"}
    return found


@pytest.mark.parametrize(("state", "shots"), [("driver", (3, 8)), ("executors", (5,))])
def test_a_driver_that_is_shot_goes_on(
    tmp_path: Path, expected: Counter[str], state: str, shots: tuple[int, ...]
) -> None:
    write_pipeline(tmp_path, f"cores: 1, state: {state}")
    random = Random(11)
    for least in shots:
        process = run(tmp_path)
        wait_for_batch(tmp_path, least, process)
        time.sleep(random.random() * 0.3)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    finish(run(tmp_path), tmp_path)
    assert logged(tmp_path) == expected


@contextmanager
def cluster(place: Path) -> Iterator[tuple[str, list[subprocess.Popen[Any]]]]:
    """A standalone master with two workers, from the pip package."""
    from axlog.spark.cluster import spark_class

    started: list[subprocess.Popen[Any]] = []
    try:
        master = spark_class("Master", ["--host", "127.0.0.1", "--port", "0"], place / "master.log")
        started.append(master)
        address = _address(place / "master.log")
        for number in (1, 2):
            options = ["--cores", "1", "--memory", "1g", "--work-dir", str(place / f"work{number}")]
            log = place / f"worker{number}.log"
            started.append(spark_class("Worker", [*options, "--host", "127.0.0.1", address], log))
        yield address, started[1:]
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _address(log: Path) -> str:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for word in log.read_text().split() if log.exists() else ():
            if word.startswith("spark://"):
                return word.rstrip(".,")
        time.sleep(0.1)
    raise AssertionError(log.read_text()[-2000:])


def test_a_worker_that_dies_costs_nothing(tmp_path: Path, expected: Counter[str]) -> None:
    with cluster(tmp_path) as (address, workers):
        java = " ".join([*QUICK, *archive_options(writes=False)])
        more = (
            f'master: "{address}", spark: {{spark.driver.host: 127.0.0.1,'
            " spark.sql.shuffle.partitions: '2', spark.executor.memory: 512m,"
            f' spark.executor.extraJavaOptions: "{java}"}}'
        )
        write_pipeline(tmp_path, more)
        process = run(tmp_path)
        wait_for_batch(tmp_path, 3, process)
        os.killpg(workers[0].pid, signal.SIGKILL)
        finish(process, tmp_path)
    assert logged(tmp_path) == expected
