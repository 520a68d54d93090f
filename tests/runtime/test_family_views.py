"""Views for each row of a table (`for_each`): rows that come and go, kills, what sinks get."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from axlog.errors import AxlogError
from axlog.live.internals import maintained
from axlog.pipeline.loader import check_text, load
from axlog.runtime.embedded import Runner

EQUAL = "match /document/orders/order[client/$client]/oid/$x return $x"
ABOVE = "match /document/orders/order[price > $least]/oid/$x return $x"
COUNT = "match /document/orders/order[client/$client]/oid/$x return count() as n"
XPATH = "/document/orders/order[client = $client]/oid/text()"
JOIN = "match /document[orders/order[client/$client]/oid/$x][sent/order/oid/$x] return $x"


def pipeline(place: Path, query: str, for_each: str, keep: str = "all", more: str = "") -> Path:
    """Write a pipeline with one family."""
    file = place / "p.yaml"
    file.write_text(
        f"""engine: embedded
streams:
  orders: {{source: {{kind: jsonl, path: orders.jsonl}}}}
  sent: {{source: {{kind: jsonl, path: sent.jsonl}}}}
views:
  late:
    query: '{query}'
    for_each: {for_each}
    sinks: [{{kind: jsonl, path: out.jsonl}}]
{more}
settings: {{checkpoint: state, snapshot: 3, keep: {keep}, hold: 0}}
""",
        encoding="utf-8",
    )
    for name in ("orders", "sent"):
        (place / f"{name}.jsonl").touch()
    return file


def send(place: Path, stream: str, xml: str, at: int) -> None:
    with (place / f"{stream}.jsonl").open("a") as file:
        file.write(json.dumps({"stream": stream, "insert": xml, "at": at}) + "\n")


def table(place: Path, rows: list[tuple[str, ...]], columns: str = "client,mail") -> None:
    """Replace the table as editors do: write a new file, and rename it."""
    aside = place / "table.part"
    aside.write_text("\n".join([columns, *map(",".join, rows)]) + "\n", encoding="utf-8")
    aside.rename(place / "table.csv")


def written(place: Path) -> Counter[tuple[Any, ...]]:
    """The rows that a reader of the sink has."""
    held: Counter[tuple[Any, ...]] = Counter()
    lines = (place / "out.jsonl").read_text() if (place / "out.jsonl").exists() else ""
    for line in map(json.loads, lines.splitlines()):
        values = tuple(line["row"].values())
        if line["op"] == "insert":
            held[values] += 1
        elif line["op"] == "delete":
            held[values] -= 1
        elif line["op"] == "update":
            held[values] += 1
            held[tuple(line["before"].values())] -= 1
    return +held


def settled(runner: Runner) -> None:
    for table_ in runner._tables:
        table_._again = 0.0
    while runner.round():
        pass


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("keep", ["all", "needed"])
def test_a_family_has_the_rows_of_all_members(tmp_path: Path, seed: int, keep: str) -> None:
    random = Random(f"{seed} {keep}")
    query = random.choice((EQUAL, JOIN, COUNT if keep == "all" else EQUAL))
    file = pipeline(tmp_path, query, "{kind: csv, path: table.csv}", keep)
    clients = ["A", "B", "it's"]
    rows: set[tuple[str, str]] = set()
    table(tmp_path, [])
    orders: list[tuple[str, str]] = []
    sent: set[str] = set()
    runner = Runner(load(str(file)))
    for step in range(16):
        match random.randrange(6):
            case 0 | 1:
                orders.append((str(len(orders)), random.choice(clients)))
                oid, client = orders[-1]
                send(
                    tmp_path,
                    "orders",
                    f"<order><oid>{oid}</oid><client>{client}</client></order>",
                    step,
                )
            case 2:
                oid = str(random.randrange(len(orders) + 1))
                sent.add(oid)
                send(tmp_path, "sent", f"<order><oid>{oid}</oid></order>", step)
            case 3:
                rows.add((random.choice(clients), random.choice("mn")))
                table(tmp_path, sorted(rows))
            case 4 if rows:
                rows.discard(random.choice(sorted(rows)))
                table(tmp_path, sorted(rows))
            case 5:
                runner.close()
                runner = Runner(load(str(file)))
        settled(runner)
    settled(runner)
    expected: Counter[tuple[Any, ...]] = Counter()
    for client, mail in rows:
        mine = [oid for oid, by in orders if by == client]
        if query == JOIN:
            mine = [oid for oid in mine if oid in sent]
        if query == COUNT:
            expected[client, mail, len(mine)] += 1
        else:
            expected.update((client, mail, oid) for oid in mine)
    assert written(tmp_path) == expected
    assert Counter(tuple(c.row.to_dict().values()) for c in runner.all_rows()) == expected
    runner.close()


@pytest.mark.parametrize("query", [EQUAL, JOIN])
def test_members_share_one_plan_and_stay_small(tmp_path: Path, query: str) -> None:
    file = pipeline(tmp_path, query, "{kind: csv, path: table.csv}")
    table(tmp_path, [(f"c{number}", "m") for number in range(200)])
    runner = Runner(load(str(file)), once=True)
    runner.run()
    families = maintained(runner.instances["document"].documents[""]).families
    assert len(families.by_shape) == 1
    assert len(families.members) == 200
    assert all(member.view is None for member in families.members.values())
    runner.close()


def test_numbers_from_a_database(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "shop.db")
    with database:
        database.execute("create table alerts (least real, mail text)")
        database.executemany("insert into alerts values (?, ?)", [(5, "a@b"), (20, "c@d")])
    file = pipeline(
        tmp_path, ABOVE,
        "{kind: sql, database: 'sqlite:///shop.db', table: alerts, types: {least: number}}",
    )  # fmt: skip
    for oid, price in enumerate((3, 9, 21)):
        send(tmp_path, "orders", f"<order><oid>{oid}</oid><price>{price}</price></order>", oid)
    runner = Runner(load(str(file)), once=True)
    runner.run()
    assert written(tmp_path) == {(5, "a@b", "1"): 1, (5, "a@b", "2"): 1, (20, "c@d", "2"): 1}
    with database:
        database.execute("delete from alerts where least = 5")
        database.execute("insert into alerts values (2, 'e@f')")
    settled(runner)
    settled(runner)
    assert written(tmp_path) == {
        (20, "c@d", "2"): 1, (2, "e@f", "0"): 1, (2, "e@f", "1"): 1, (2, "e@f", "2"): 1
    }  # fmt: skip
    runner.close()
    database.close()


def test_lines_of_json_and_xpath(tmp_path: Path) -> None:
    (tmp_path / "table.jsonl").write_text('{"client": "A"}\n{"client": "B"}\n')
    file = pipeline(tmp_path, XPATH, "{kind: jsonl, path: table.jsonl}")
    send(tmp_path, "orders", "<order><oid>1</oid><client>B</client></order>", 1)
    runner = Runner(load(str(file)), once=True)
    runner.run()
    assert [row[0] for row in written(tmp_path)] == ["B"]
    runner.close()


def test_an_unreadable_table_keeps_its_members(tmp_path: Path) -> None:
    table(tmp_path, [("A", "m")])
    file = pipeline(tmp_path, EQUAL, "{kind: csv, path: table.csv}")
    send(tmp_path, "orders", "<order><oid>1</oid><client>A</client></order>", 1)
    runner = Runner(load(str(file)))
    settled(runner)
    (tmp_path / "table.csv").unlink()
    settled(runner)
    assert written(tmp_path) == {("A", "m", "1"): 1}
    assert "cannot be read" in (runner._tables[0].troubles or pytest.fail("none")).error
    runner.close()


def test_documents_by_key_have_all_members(tmp_path: Path) -> None:
    table(tmp_path, [("A", "m"), ("B", "n")])
    file = pipeline(tmp_path, EQUAL, "{kind: csv, path: table.csv}", more="document_key: shop")
    for shop, client in (("x", "A"), ("y", "B"), ("y", "A")):
        xml = f"<order><oid>1</oid><shop>{shop}</shop><client>{client}</client></order>"
        send(tmp_path, "orders", xml, 1)
    runner = Runner(load(str(file)))
    settled(runner)
    assert runner.progress.refused == 0
    rows = {("x", "A", "m", "1"): 1, ("y", "B", "n", "1"): 1, ("y", "A", "m", "1"): 1}
    assert written(tmp_path) == rows
    runner.close()
    table(tmp_path, [("A", "m")])
    runner = Runner(load(str(file)))
    settled(runner)
    del rows["y", "B", "n", "1"]
    assert written(tmp_path) == rows
    runner.close()


@pytest.mark.parametrize(
    ("query", "for_each", "code", "words"),
    [
        (EQUAL, "{kind: csv}", "AX852", "needs `path`"),
        (EQUAL, "{kind: csv, path: none.csv}", "AX858", "cannot be read"),
        (ABOVE, "{kind: csv, path: table.csv}", "AX852", "uses no column of its table"),
        ("match //order[client/$client]/oid/$mail return $mail",
         "{kind: csv, path: table.csv, columns: [client, mail]}", "", ""),
        ("match //order[client/$client]/oid#mail return mail.id as mail",
         "{kind: csv, path: table.csv}", "AX214", "both have the column 'mail'"),
        ("match //order[client/$client", "{kind: csv, path: table.csv}", "AX201", ""),
    ],
)  # fmt: skip
def test_check_names_what_is_wrong(
    tmp_path: Path, query: str, for_each: str, code: str, words: str
) -> None:
    table(tmp_path, [("A", "m")])
    file = pipeline(tmp_path, query, for_each)
    checked = check_text(file.read_text(), tmp_path, "p.yaml")
    found = [problem.error for problem in checked.problems if problem.level == "error"]
    if not code:
        return
    assert [error.code for error in found] == [code]
    assert words in found[0].message
    assert found[0].place is not None


def test_a_bad_value_is_a_dead_letter(tmp_path: Path) -> None:
    query = (
        "declare variable $least as xs:decimal external;"
        " for $o in /document/orders/order where $o/price > $least return $o/oid/text()"
    )
    table(tmp_path, [("5",), ("many",)], "least")
    file = pipeline(tmp_path, query, "{kind: csv, path: table.csv}")
    send(tmp_path, "orders", "<order><oid>1</oid><price>7</price></order>", 1)
    runner = Runner(load(str(file)), once=True)
    refused: list[str] = []
    runner.on_refused = lambda one: refused.append(one.error)
    try:
        runner.run()
    except AxlogError as error:
        pytest.fail(str(error))
    assert [row[0] for row in written(tmp_path)] == ["5"]
    assert len(refused) == 1
    assert "$least" in refused[0]
    runner.close()
