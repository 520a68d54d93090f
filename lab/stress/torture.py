"""Torture: durable documents killed at any moment, on failing disks, compared with a quiet run.

A run feeds a fixed list of operations to a durable document and publishes its view. Operation
number n has the time n, so the clock of a store shows where to resume. In every case, the document,
the rows and the published changes at the end must be those of the quiet run, and every start must
find everything that was acknowledged.

`on_faulty_disk` runs in this process, on a simulated disk (`faulty_disk.py`). `by_killing` starts
real processes and kills them with SIGKILL, from time to time inside one of `MOMENTS`. A process
reports when it enters and leaves one, so its last report shows where it died.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import sleep
from typing import cast

from axlog.errors import AxlogError, StoreError
from axlog.live.durable import DurableDocument
from axlog.live.internals import maintained
from axlog.live.options import Options
from axlog.live.store import Sync, open_store, start
from axlog.samples import orders
from axlog.views.change import Change
from lab.stress.faulty_disk import Crashed, FaultyFiles

VIEW = "answers"
MOMENTS = ("snapshot", "compaction", "tuning", "publishing")
"""The operations, besides an update, during which a process can be killed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run: the document, its view, its settings, and the operations."""

    document: str
    query: str
    options: Options
    operations: tuple[dict[str, object], ...]


def make_plan(seed: int, count: int) -> Plan:
    """Return a plan: the order monitor with `keep` all or needed, or a document that is edited and
    fed. Half of the views compute groups, an order or the latest values; of the edited ones a third
    has functions, positions and whole paths in predicates, and another third is in XQuery.
    """
    draw = Random(f"torture:{seed}")
    kind = draw.choice(("kept", "needed", "edited"))
    computes = draw.random() < 0.5
    if kind == "edited":
        kinds = (_EDITED_STEPS, _EDITED_PREDICATES, _EDITED_XQUERY)
        query = draw.choice(draw.choice(kinds)) if computes else _EDITED_QUERY
        return Plan(_EDITED, query, Options(), tuple(_edit(draw, n) for n in range(count)))
    operations = [
        {"stream": update["stream"], "insert": update["insert"]}
        for update in orders.messages(count, seed=seed, rate=0.001)
    ]
    query = orders.LATE.replace(str(orders.LATE_AFTER), str(draw.choice((1, 5, 20))))
    if computes:
        query = draw.choice(_ORDER_STEPS)
    options = Options(keep="needed" if kind == "needed" else "all")
    return Plan(orders.DOCUMENT, query, options, tuple(_refused_now_and_then(draw, operations)))


_EDITED = '<r><log><ax:call xmlns:ax="urn:axlog" stream="f" deletes="yes"/></log><seen/></r>'
_EDITED_QUERY = "match /r[log/e/k/$x][seen/k/$x#n] return $x, n.id"
_EDITED_STEPS = (
    "match /r/log/e[k/$x]/n/$n return $x, count() as number, sum($n) as total, max($n) as most",
    "match /r[log/e[k/$x]/n/$n][seen/k/$x] return $x, latest($n by $n) as last, avg($n) as mean",
    "match /r/log/e[k/$x]/n/$n return $x, $n * 1.5 as more order by $x descending, more limit 3",
    "match /r/log/e[k/$x]/n/$n return $x, count() as number having number > 1 order by number",
)
_EDITED_PREDICATES = (
    "match /r/log/e[contains(n, '1')]/k/$x return $x, count() as number",
    "match /r/log/e[n * 2 > 20][k/$x] return $x, count() as number",
    "match /r/log/e[last()]/k/$x return $x",
    "match /r/log/e[position() > last() - 3]/n/$n return count() as number, sum($n) as total",
    "match /r[count(log/e) > count(seen/k)]/seen/k/$x return $x",
    "match /r/log/e[not(n[2]) and not(k[1] = 3)]/k/$x return $x, count() as number",
    "match /r/log/e[position() = 1 or k[1] = 2]/n/$n return $n",
    "match /r[deep-equal(log/e/k, seen/k)]/log/e/n/$n return max($n) as most",
    "match /r/seen/k#a, /r/log/e/k#b where a << b or deep-equal(a, b) return count() as number",
)
_EDITED_XQUERY = (
    "for $e in /r/log/e group by $k := $e/k order by $k return <g k='{$k}'>{sum($e/n)}</g>",
    "for $k in /r/seen/k return <s>{$k/text()}{count(/r/log/e[k = $k])}</s>",
    "for $k in /r/seen/k return <s>{count(/r/log/e[number(n) > number($k)])}</s>",
    "(for $e in /r/log/e order by number($e/n) descending return $e/n)[position() <= 2]",
    "/r/log/e[last()]/n",
    "for $e in /r/log/e where not($e/k = /r/seen/k) return <e>{$e/n/text()}</e>",
    "string-join(/r/seen/k, ',')",
    "sum(/r/log/e/n) - count(//k)",
)
_ORDER_STEPS = (
    "match //order[oid/$o][.//city/$c]/payment/total/$t return $c, count() as n, sum($t) as total",
    "match //order#o[oid/$o][.//city/$c]/payment/total/$t"
    " return $c, latest($t by o.time) as last, min($t) as least",
    "match //order[oid/$o]/payment/total/$t return $o, $t order by $t descending limit 4",
    "match //order[oid/$o][contains(.//city, 'a')]/payment/total[. * 2 > 100]/$t"
    " return count() as n, sum($t) as total",
    "match //shipping/orders/order[oid/$o]//weight/$w, //webstore/orders/order[oid/$o]//price/$p"
    " where $w * 10 < $p return $o, max($p - $w) as gain order by gain limit 3",
)


def _edit(draw: Random, number: int) -> dict[str, object]:
    value = draw.randrange(6)
    kind = draw.random()
    if kind < 0.4:
        return {"stream": "f", "insert": f"<e><k>{value}</k><n>{number}</n></e>"}
    if kind < 0.5:
        return {"stream": "f", "delete": f'match /e/k/"{value}"'}
    if kind < 0.55:
        return {"stream": "f", "insert": "<e><broken></e>"}
    if kind < 0.75:
        return {"update": f"insert node <k>{value}</k> into /r/seen"}
    if kind < 0.85:
        return {"update": f"delete nodes /r/seen/k[. = '{value}']"}
    return {"batch": [_edit(draw, number) for _ in range(draw.randrange(1, 4))]}


def _refused_now_and_then(
    draw: Random, operations: Sequence[dict[str, object]]
) -> list[dict[str, object]]:
    refused: dict[str, object] = {"stream": "nobody", "insert": "<a/>"}
    return [refused if draw.random() < 0.05 else operation for operation in operations]


def carry_out(doc: DurableDocument, operation: dict[str, object], number: int) -> None:
    """Apply an operation at its time; every plan has rejected ones."""
    try:
        if "batch" in operation:
            with doc.batch():
                for one in operation["batch"]:  # type: ignore[attr-defined]
                    carry_out(doc, one, number)
        elif "update" in operation:
            doc.update(str(operation["update"]), at=number)
        elif "delete" in operation:
            doc.delete(str(operation["stream"]), str(operation["delete"]), at=number)
        else:
            doc.feed(str(operation["stream"]), str(operation["insert"]), at=number)
    except StoreError:
        raise
    except AxlogError:
        return


def position(doc: DurableDocument) -> int:
    """Return how many operations the store has: each advances the clock to its number, except
    rejected ones.
    """
    return int(doc.clock)


# On a disk that fails -----------------------------------------------------------------------------


def envelope(change: Change) -> str:
    """A change as text, without its cause: a restart forgets how many messages were rejected."""
    said = change.to_dict()
    del said["cause"]
    return json.dumps(said, sort_keys=True)


class _Outside:
    """A sink that survives, and accepts a batch once."""

    def __init__(self) -> None:
        self.last = 0
        self.changes: list[str] = []

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        if batch > self.last:
            self.changes += [envelope(change) for change in changes]
            self.last = batch


def on_faulty_disk(seed: int, count: int = 40) -> int:
    """Run once with crashes and failing writes; return the number of starts. Raises on a
    difference.
    """
    plan, draw = make_plan(seed, count), Random(f"faults:{seed}")
    quiet = _quiet(plan)
    files, outside, acknowledged, starts = FaultyFiles(draw), _Outside(), 0, 0
    while True:
        starts += 1
        fault = draw.choice(("crash", "crash", "tear", "full", "fail"))
        if starts < 12:
            files.stop_at(files.operations + draw.randrange(1, 120), fault)
        try:
            doc = start(files, plan.document, {VIEW: plan.query}, "always", False,
                           options=plan.options)  # fmt: skip
            if position(doc) < acknowledged:
                raise AssertionError(f"seed {seed}: acknowledged {acknowledged}, {doc.clock}")
            acknowledged = _work(doc, plan, outside, draw, position(doc))
            _compare(doc, outside, quiet, seed)
            return starts
        except Crashed:
            files = files.crash() if draw.random() < 0.6 else files.killed()
        except _Stopped as stopped:
            acknowledged = stopped.acknowledged
            files = files.killed()
        except (StoreError, OSError):
            files = files.killed()


class _Stopped(Exception):
    """The store accepts no more updates: it has to be reopened."""

    def __init__(self, acknowledged: int) -> None:
        self.acknowledged = acknowledged


def _work(doc: DurableDocument, plan: Plan, outside: _Outside, draw: Random, done: int) -> int:
    """Continue from an operation to the end, with publishing and snapshots."""
    box = doc.outbox(VIEW, VIEW)
    for number in range(done, len(plan.operations)):
        try:
            carry_out(doc, plan.operations[number], number + 1)
            for batch, changes in box.pending():
                if draw.random() < 0.2:
                    break
                outside.write(batch, changes)
                doc.note_published(VIEW, batch)
                box.took(batch)
            if draw.random() < 0.06:
                doc.snapshot()
        except (StoreError, OSError):
            raise _Stopped(position(doc) if doc.is_whole else done) from None
        except Crashed:
            raise
        done = max(done, position(doc))
    for batch, changes in box.pending():
        outside.write(batch, changes)
        box.took(batch)
    return done


def _quiet(plan: Plan) -> tuple[object, list[str]]:
    outside = _Outside()
    files = FaultyFiles(Random(0))
    doc = start(files, plan.document, {VIEW: plan.query}, "off", False, options=plan.options)
    box = doc.outbox(VIEW, VIEW)
    for number, operation in enumerate(plan.operations):
        carry_out(doc, operation, number + 1)
        for batch, changes in box.pending():
            outside.write(batch, changes)
            box.took(batch)
    return _seen(doc), outside.changes


def _seen(doc: DurableDocument) -> object:
    rows = [(row.to_dict(), row.count) for row in doc.view(VIEW).rows()]
    xml = None if maintained(doc).forgotten else doc.xml()
    return xml, rows, doc.view(VIEW).position


def _compare(
    doc: DurableDocument, outside: _Outside, quiet: tuple[object, list[str]], seed: int
) -> None:
    if _seen(doc) != quiet[0]:
        raise AssertionError(f"seed {seed}: {_seen(doc)} is not {quiet[0]}")
    if outside.changes != quiet[1]:
        raise AssertionError(f"seed {seed}: published {outside.changes}, not {quiet[1]}")


# By killing processes -----------------------------------------------------------------------------


class SqliteSink:
    """A table of changes, one transaction per batch, with the number of the last batch."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("pragma journal_mode=wal")
        self._connection.execute("create table if not exists changes (n integer, said text)")
        self._connection.execute("create table if not exists last (batch integer)")

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        run = self._connection.execute
        run("begin immediate")
        (last,) = run("select coalesce(max(batch), 0) from last").fetchone()
        if batch > last:
            for change in changes:
                said = envelope(change)
                run("insert into changes values (?, ?)", (batch, said))
            run("insert into last values (?)", (batch,))
        run("commit")

    def all(self) -> list[str]:
        found = self._connection.execute("select said from changes order by rowid").fetchall()
        return [said for (said,) in found]

    def close(self) -> None:
        self._connection.close()


class _Telling:
    """A sink that reports when it is writing."""

    def __init__(self, sink: SqliteSink) -> None:
        self._sink = sink

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        with _told("publishing"):
            self._sink.write(batch, changes)


@contextmanager
def _told(moment: str) -> Iterator[None]:
    os.write(1, f"at {moment}\n".encode())
    yield
    os.write(1, f"past {moment}\n".encode())


def child(directory: Path, seed: int, count: int, sync: Sync) -> None:
    """A process that feeds its store until it is killed, or the plan is done."""
    plan = make_plan(seed, count)
    doc = open_store(directory / "store", plan.document, views={VIEW: plan.query}, sync=sync,
                     options=plan.options)  # fmt: skip
    doc.compact_after = 60
    draw = Random(f"child:{seed}:{doc.record}")
    sink = SqliteSink(directory / "published.sqlite")
    box = doc.publish(VIEW, _Telling(sink), VIEW)
    for number in range(position(doc), len(plan.operations)):
        carry_out(doc, plan.operations[number], number + 1)
        os.write(1, f"{position(doc)}\n".encode())
        _something_else(doc, draw)
    if not box.flush(30):
        raise StoreError("AX873", f"the sink did not take everything: {box.last_error}")
    doc.close()
    os.write(1, b"done\n")


def _something_else(doc: DurableDocument, draw: Random) -> None:
    """From time to time, an invalid update, which changes nothing."""
    pick = draw.random()
    if pick < 0.06:
        with _told("snapshot"):
            doc.snapshot()
    elif pick < 0.08:
        with _told("compaction"):
            doc.compact(wait=True)
    elif pick < 0.14:
        with _told("tuning"):
            doc.tune()


def by_killing(seed: int, count: int = 150, sync: str = "always", kills: int = 6) -> Counter[str]:
    """Run processes and kill them; return the counts by moment. Raises if the end differs."""
    draw = Random(f"kills:{seed}")
    plan = make_plan(seed, count)
    quiet = _quiet(plan)
    killed: Counter[str] = Counter()
    targets = [*MOMENTS, "update"]
    draw.shuffle(targets)
    with tempfile.TemporaryDirectory(prefix="axlog-torture-") as made:
        directory = Path(made)
        command = [sys.executable, "-m", "lab.stress.torture",
                   str(directory), str(seed), str(count), sync]  # fmt: skip
        acknowledged = 0
        while True:
            round_ = _Round(command, acknowledged, seed)
            kill = killed.total()
            target = targets[kill % len(targets)] if kill < kills else None
            is_done = round_.follow(target, draw, draw.randrange(1, max(2, count // 3)))
            acknowledged = round_.acknowledged
            if is_done:
                break
            killed[round_.inside] += 1
        doc = open_store(directory / "store")
        doc.compact_after = None
        sink = SqliteSink(directory / "published.sqlite")
        try:
            outside = _Outside()
            outside.changes = sink.all()
            _compare(doc, outside, quiet, seed)
        finally:
            sink.close()
            doc.close()
    return killed


class _Round:
    """Run one process; return its output until it was killed or done."""

    def __init__(self, command: Sequence[str], acknowledged: int, seed: int) -> None:
        self.acknowledged, self._seed = acknowledged, seed
        self._entered: Counter[str] = Counter()
        self._is_done = False
        # A separate session, so that its compaction process can be killed with it.
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)

    @property
    def inside(self) -> str:
        """The moment that it was in."""
        open_ones = [moment for moment in MOMENTS if self._entered[moment] > 0]
        return open_ones[0] if open_ones else "update"

    def follow(self, target: str | None, draw: Random, most: int) -> bool:
        """Read until it is inside the target, or has applied a number of updates; then kill it.

        Without a target let it run. Return whether it finished.
        """
        output = self._process.stdout
        assert output is not None
        taken = 0
        for line in output:
            self._hear(line)
            taken += line[:1].isdigit()
            is_there = line == f"at {target}\n".encode()
            if self._is_done or is_there or (target is not None and taken == most):
                break
        if not self._is_done and target is not None:
            sleep(draw.random() * 0.004)
            self._kill(together=draw.random() < 0.5)
        for line in output:  # its output before it died
            self._hear(line)
        output.close()
        code = self._process.wait()
        if not self._is_done and (target is None or code != -signal.SIGKILL):
            raise AssertionError(f"seed {self._seed}: the process ended by itself with {code}")
        return self._is_done

    def _kill(self, together: bool) -> None:
        """Kill the process, or all of them, including its snapshot process."""
        if together:
            os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()

    def _hear(self, line: bytes) -> None:
        word, _, moment = line.decode().strip().partition(" ")
        if word == "done":
            self._is_done = True
        elif word in ("at", "past"):
            self._entered[moment] += 1 if word == "at" else -1
        elif int(word) < self.acknowledged:
            raise AssertionError(
                f"seed {self._seed}: {self.acknowledged} acknowledged, {word} there"
            )
        else:
            self.acknowledged = int(word)


if __name__ == "__main__":
    child(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), cast("Sync", sys.argv[4]))
