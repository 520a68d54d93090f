"""Families in the buckets of Spark, without a session: members come and go, buckets are rebuilt."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from pathlib import Path
from random import Random
from typing import Any

import pytest

from axlog.connect.parameter_tables import ForEach
from axlog.pipeline.families import FamilyView
from axlog.pipeline.model import ViewModel
from axlog.runtime.bucket_engines import Buckets
from axlog.runtime.definition import Definition, FamilyDefinition
from axlog.runtime.extraction import Extractor, Message
from axlog.runtime.packet_rows import packed
from axlog.runtime.past import NOTHING
from axlog.runtime.plan import SparkPlan, make_plan
from axlog.runtime.table_source import PolledTables, TableFeed
from axlog.spark.batch_result import BatchReport, gather_batch

DOCUMENT = '<r xmlns:ax="urn:axlog"><p><ax:call stream="p"/></p><q><ax:call stream="q"/></q></r>'
QUERIES = {
    "equal": "match /r/p/a[k/$client]/x/$x return $x",
    "above": "match /r/p/a[k/$client][n > $least]/x/$x return $x",
    "join": "match /r[p/a[k/$client]/x/$x][q/b/x/$x] return $x",
    "count": "match /r/p/a[k/$client]/x/$x return count() as c",
    "nodes": "match /r/p/a#t[k/$client]/x/$x return $x, t.val",
}


class Store(dict[str, bytes]):
    """The map of a bucket."""

    def put(self, key: str, value: bytes) -> None:
        self[key] = value

    def remove(self, key: str) -> None:
        del self[key]


class Run:
    """Both halves of the plan of one family, with a table in a file."""

    def __init__(self, place: Path, query: str, buckets: int) -> None:
        self.table = place / "table.csv"
        self.write({})
        is_typed = "$least" in query and "declare" not in query
        types: dict[str, Any] = {"least": "number"} if is_typed else {}
        for_each = ForEach(kind="csv", path=str(self.table), types=types, poll=1e-9)
        family = FamilyView("late", ViewModel(query=query, for_each=for_each), place)
        columns = tuple(family.typed_columns)
        families = {"late": FamilyDefinition(family.sample_text(), None, columns)}
        self.definition = Definition(DOCUMENT, {}, families=families)
        self.plan = make_plan(self.definition, buckets)
        self.feed = TableFeed(place, PolledTables([family]))
        self.stores: dict[str, Store] = {}
        self.position, self.batches = 0, 0
        self.rows: Counter[tuple[str, ...]] = Counter()
        self.start()

    def start(self) -> None:
        """Begin a process: nothing is live."""
        self.source = self.feed()
        self.extractor = Extractor(self.definition, self.plan)
        self.extractor.past = NOTHING
        self.buckets = Buckets(self.definition, self.plan, 0, "run", live=OrderedDict())

    def write(self, rows: dict[tuple[str, str], None]) -> None:
        lines = ["client,least", *(f"{client},{least}" for client, least in rows)]
        self.table.write_text("\n".join(lines) + "\n")

    def batch(self, messages: list[Message]) -> BatchReport:
        """A batch with what is new in the table."""
        read = self.source.read(self.position, 100)
        again = self.feed.part(None).read(self.position, 100)  # as a task reads it
        assert again.updates == read.updates
        self.position = read.position
        tables = [
            Message(1, u.stream, u.action, str(u.content).encode(), None, n, u.origin)
            for n, u in enumerate(read.updates)
        ]
        inbox: dict[str, list[bytes]] = {}
        for part in (messages, tables):
            for key, body in packed(self.extractor.extract(part), self.plan):
                inbox.setdefault(f"{key}/0", []).append(body)
        said = []
        for key, bodies in sorted(inbox.items()):
            if key != "-/0":
                store = self.stores.setdefault(key, Store())
                said += self.buckets.take(key, store, bodies).rows
        self.batches += 1
        report = gather_batch(self.batches, said)
        for change in report.changes:
            assert change.view == "late"
            if change.op != "insert":
                old = change.row if change.before is None else change.before
                self.rows[tuple(map(str, old.values_))] -= 1
            if change.op != "delete":
                self.rows[tuple(map(str, change.row.values_))] += 1
        return report


@pytest.mark.parametrize("buckets", [1, 4])
@pytest.mark.parametrize("kind", list(QUERIES))
def test_rows_are_those_of_the_members_whatever_comes_and_goes(
    tmp_path: Path, kind: str, buckets: int
) -> None:
    random = Random(f"{kind} {buckets}")
    run = Run(tmp_path, QUERIES[kind], buckets)
    rows: dict[tuple[str, str], None] = {}
    sent: list[tuple[str, int, str]] = []
    shipped: set[str] = set()
    for step in range(1, 16):
        for _ in range(random.randrange(3)):
            rows[random.choice("ABC"), random.choice("1357")] = None
        run.write(rows)
        if rows and random.random() < 0.5:
            run.source.read(run.position, 0)  # two changes of the table in a batch
            del rows[random.choice(list(rows))]
            run.write(rows)
        messages = []
        for number in range(random.randrange(4)):
            key, price, name = random.choice("ABC"), random.randrange(9), f"x{len(sent)}"
            sent.append((key, price, name))
            xml = f"<a><k>{key}</k><n>{price}</n><x>{name}</x></a>"
            messages.append(Message(0, "p", "insert", xml.encode(), step, 9 * step + number, "p"))
        if random.random() < 0.5:
            name = f"x{random.randrange(len(sent) + 2)}"
            shipped.add(name)
            xml = f"<b><x>{name}</x></b>"
            messages.append(Message(0, "q", "insert", xml.encode(), step, 9 * step + 8, "q"))
        if random.random() < 0.3:
            run.start()
        run.batch(messages)
        assert +run.rows == Counter(expected(kind, rows, sent, shipped)), step
    check_plan(kind, run.plan)


def expected(
    kind: str,
    rows: dict[tuple[str, str], None],
    sent: list[tuple[str, int, str]],
    shipped: set[str],
) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for client, least in rows:
        mine = [(price, name) for key, price, name in sent if key == client]
        if kind == "above":
            mine = [each for each in mine if each[0] > int(least)]
        if kind == "join":
            mine = [each for each in mine if each[1] in shipped]
        if kind == "count":
            found.append((client, least, str(len(mine))))
        elif kind == "nodes":
            found += [(client, least, name, f"{client}{price}{name}") for price, name in mine]
        else:
            found += [(client, least, name) for _, name in mine]
    return found


def check_plan(kind: str, plan: SparkPlan) -> None:
    (unit,) = plan.units
    if plan.width == 1 or kind == "nodes":
        assert unit.buckets == 1
    elif kind == "join":
        assert (unit.key, unit.parameter) == ("$x", None)
    else:
        assert (unit.key, unit.parameter) == ("$parameter~1", 0)


def test_a_row_that_is_no_member_is_a_dead_letter_once(tmp_path: Path) -> None:
    query = (
        "declare variable $least as xs:decimal external;"
        " for $a in /r/p/a where $a/price > $least return $a/x/text()"
    )
    run = Run(tmp_path, query, 4)
    run.write({("A", "many"): None, ("A", "5"): None})
    report = run.batch([])
    assert [one.stream for one in report.refused] == ["late"]
    assert "$least" in report.refused[0].error
    line = json.loads((tmp_path / "tables.jsonl").read_text())
    assert line["family"] == "late"
    assert len(line["add"]) == 2


def test_a_torn_line_of_the_journal_is_written_again(tmp_path: Path) -> None:
    run = Run(tmp_path, QUERIES["equal"], 1)
    run.write({("A", "1"): None})
    run.batch([])
    journal = tmp_path / "tables.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"family": "la')
    run.start()
    run.write({})
    run.batch([])
    assert [json.loads(line).get("remove") for line in journal.read_bytes().splitlines()] == [
        [],
        ['late["A", "1"]'],
    ]


TIMED = {
    "within": "match /r[p/a[k/$client]/x/$x#t][q/b/x/$x#u]"
    " where u - t > 0 and u - t <= $least return $x",
    "having": "match /r/p/a[k/$client]/x/$x return $x, count() as c having c >= $least",
    "unequal": "match /r/p/a[k/$client][n != $least]/x/$x return $x",
    "since": "match /r/p/a#t[k/$client]/x/$x where t >= $least return $x",
    "since joined": "match /r[p/a#t[k/$client]/x/$x][q/b/x/$x] where t >= $least return $x",
    "old": "match /r/p/a#t[k/$client]/x/$x where now - t >= $least return $x",
}


@pytest.mark.parametrize("buckets", [1, 4])
@pytest.mark.parametrize("kind", list(TIMED))
def test_rows_of_members_that_differ_in_durations_and_other_constants(
    tmp_path: Path, kind: str, buckets: int
) -> None:
    random = Random(f"{kind} {buckets}")
    run = Run(tmp_path, TIMED[kind], buckets)
    rows: dict[tuple[str, str], None] = {}
    sent: list[tuple[int, str, int, str]] = []
    shipped: list[tuple[int, str]] = []
    for step in range(1, 16):
        for _ in range(random.randrange(3)):
            rows[random.choice("AB"), random.choice(("1", "2", "5", "7"))] = None
        if rows and random.random() < 0.3:
            del rows[random.choice(list(rows))]
        run.write(rows)
        messages = []
        for number in range(random.randrange(4)):
            key, price, name = random.choice("AB"), random.randrange(9), f"x{random.randrange(6)}"
            sent.append((step, key, price, name))
            xml = f"<a><k>{key}</k><n>{price}</n><x>{name}</x></a>".encode()
            at = step * 1_000_000
            messages.append(Message(0, "p", "insert", xml, at, 9 * step + number, "p"))
        name = f"x{random.randrange(6)}"
        shipped.append((step, name))
        xml = f"<b><x>{name}</x></b>".encode()
        messages.append(Message(0, "q", "insert", xml, step * 1_000_000, 9 * step + 8, "q"))
        if random.random() < 0.3:
            run.start()
        run.batch(messages)
        found = {row for row, count in (+run.rows).items() for _ in range(count)}
        assert found == timed(kind, rows, sent, shipped, step), step
    (unit,) = run.plan.units
    assert unit.kind == "bindings"


def timed(
    kind: str,
    rows: dict[tuple[str, str], None],
    sent: list[tuple[int, str, int, str]],
    shipped: list[tuple[int, str]],
    now: int,
) -> set[tuple[str, ...]]:
    """The rows of all members, by definition."""
    found: set[tuple[str, ...]] = set()
    for client, least in rows:
        mine = [(at, price, name) for at, key, price, name in sent if key == client]
        names = Counter(name for _, _, name in mine)
        for at, price, name in mine:
            gaps = [other - at for other, one in shipped if one == name]
            holds = {
                "within": any(0 < gap <= int(least) for gap in gaps),
                "having": names[name] >= int(least),
                "unequal": price != int(least),
                "since": at >= int(least),
                "since joined": at >= int(least) and any(one == name for _, one in shipped),
                "old": now - at >= int(least),
            }
            if holds[kind]:
                count = (str(names[name]),) if kind == "having" else ()
                found.add((client, least, name, *count))
    return found


def test_a_row_whose_query_has_another_plan_is_a_dead_letter(tmp_path: Path) -> None:
    run = Run(tmp_path, TIMED["within"], 4)
    run.write({("A", "0"): None, ("A", "5"): None})
    report = run.batch([])
    assert [one.stream for one in report.refused] == ["late"]
    assert "another plan" in report.refused[0].error
