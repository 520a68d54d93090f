"""Durable documents that publish to real sinks, killed at random times: each change exactly once.

The process kills itself while its publishers' threads are at work; what the sinks have at the end
is what an undisturbed run tells. SQL takes a batch and its number in one transaction, a log of
lines knows its last batch.
"""

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

import axlog

pytestmark = pytest.mark.system

DOCUMENT = '<a><ax:call xmlns:ax="urn:axlog" stream="s" deletes="yes"/></a>'
VIEW = "match /a/b/$x return $x"
COUNT = 60
SCRIPT = """
import os, random, signal, sys
from pathlib import Path
import axlog
from axlog.connect.kinds import Origin, Secret, ViewShape
from axlog.connect.sinks.jsonl import JsonLinesSink, JsonLinesOptions
from axlog.connect.sinks.sql import SqlOptions, SqlSink
from tests.connect.test_publishing_kills import COUNT, DOCUMENT, VIEW, step

place, seed = Path(sys.argv[1]), int(sys.argv[2])
chance = random.Random(seed)
document = axlog.open(place / "store", DOCUMENT, views={"v": VIEW}, sync="batch")
document.compact_after = 30
shape = ViewShape.of("v", document.view("v").query, False)
origin = Origin(place, run="run", views=(shape,))
document.publish("v", SqlSink(SqlOptions(url=Secret("sqlite:///t.db")), origin), name="sql")
document.publish("v", JsonLinesSink(JsonLinesOptions(path="t.jsonl"), origin), name="lines")
for number in range(document.streams()["s"].messages, COUNT):
    step(document, number)
    if chance.random() < 0.035:
        os.kill(os.getpid(), signal.SIGKILL)
document.close(flush=60)
"""


def step(doc: axlog.Document, number: int) -> None:
    """One update: values come, and some go."""
    if number % 5 == 4:
        doc.delete("s", f'match /b["{number - 3}"]', at=number)
    else:
        doc.feed("s", f"<b>{number}</b>", at=number)


def test_oracle_sinks_of_killed_documents(tmp_path: Path) -> None:
    killed = 0
    for seed in range(60):
        command = [sys.executable, "-c", SCRIPT, str(tmp_path), str(seed)]
        ended = subprocess.run(command, timeout=300, cwd=Path(__file__).parents[2])
        if ended.returncode == 0:
            break
        assert ended.returncode == -9
        killed += 1
    assert killed >= 2
    quiet = axlog.parse(DOCUMENT, views={"v": VIEW})
    told: list[str] = []
    quiet.view("v").subscribe(lambda change: told.append(f"{change.op} {change.row['x']}"))
    for number in range(COUNT):
        step(quiet, number)
    with closing(sqlite3.connect(tmp_path / "t.db")) as base:
        rows = Counter(x for (x,) in base.execute("select x from v"))
    assert rows == Counter(row["x"] for row in quiet.view("v").rows())
    lines = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert [f"{line['op']} {line['row']['x']}" for line in lines] == told
    assert [line["position"] for line in lines] == list(range(1, len(told) + 1))
