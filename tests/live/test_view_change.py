"""Another query for a running view: one net difference, and everything else goes on."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import axlog
from axlog.errors import AxlogError, QueryError
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.options import Options
from axlog.views.change import Change

QUERIES = (
    'match //a[k/"{}"]/x/$x return $x',
    "match //a[n > {}]/x/$x return $x",
    "match //a[n <= {}]/x/$x return $x, count() as c",
    "match //a#t[n > {}] return t.id",
    'match //a[k/"{}"]/x/$x return count() as c',
    'match /document[p/a[k/"{}"]/x/$x][q/b/x/$x] return $x',
    "//a[n > {}]/x",
)


def message(random: Random) -> str:
    k, n, x = (random.randrange(4) for _ in range(3))
    name = random.choice("ab")
    return f"<{name}><k>{k}</k><n>{n}</n><x>{x}</x></{name}>"


@pytest.mark.parametrize("seed", range(20))
def test_rows_with_the_changes_are_the_new_rows(seed: int) -> None:
    random = Random(seed)
    doc = Document(streams=["p", "q"], options=Options(share="always"))
    alone = Document(streams=["p", "q"])
    others = random.choice((0, 9))
    for number in range(others):
        doc.watch(QUERIES[0].format(number), f"other{number}")
    doc.watch(random.choice(QUERIES).format(1), "v")
    emitted: list[Change] = []
    doc.view("v").subscribe(emitted.append)
    held = {row.key_text: row.to_dict() for row in doc.view("v").rows()}
    for _ in range(12):
        if random.random() < 0.4:
            query = random.choice(QUERIES).format(random.randrange(4))
            doc.change("v", query)
            if "v" in alone.views:
                alone.unwatch("v")
            alone.watch(query, "v")
        else:
            stream, said = random.choice("pq"), message(random)
            doc.feed(stream, said)
            alone.feed(stream, said)
        for change in emitted:
            if change.op == "delete":
                del held[change.row.key_text]
            elif change.op in ("insert", "update"):
                held[change.row.key_text] = change.row.to_dict()
        assert held == {row.key_text: row.to_dict() for row in doc.view("v").rows()}
        positions = [change.position for change in emitted]
        assert positions == sorted(set(positions))
        emitted.clear()
        if "v" in alone.views:
            assert doc.view("v").rows() == alone.view("v").rows()


def test_only_the_difference_is_emitted() -> None:
    doc = axlog.parse("<r><a>1</a><a>5</a><a>9</a></r>")
    view = doc.watch("match //a/$x where $x > 3 return $x", "v")
    emitted: list[Change] = []
    view.subscribe(emitted.append)
    changes = doc.change("v", "match //a/$x where $x < $most return $x", parameters={"most": 6})
    assert [(change.op, change.row["x"], change.position) for change in changes] == [
        ("delete", "9", 1), ("insert", "1", 2)
    ]  # fmt: skip
    assert emitted == changes


def test_a_member_moves_to_other_constants() -> None:
    doc = Document(streams=["s"], options=Options(share="always"))
    for number in range(10):
        doc.watch(QUERIES[0].format(number), f"v{number}")
    doc.feed("s", "<a><k>3</k><x>17</x></a>")
    assert doc.change("v3", QUERIES[0].format(4)) != []
    assert [(c.op, c.row["x"]) for c in doc.change("v4", QUERIES[0].format(3))] == [
        ("insert", "17")
    ]
    families = maintained(doc).families
    assert (len(families.members), len(families.by_shape)) == (10, 1)
    assert [change.view for change in doc.feed("s", "<a><k>3</k><x>18</x></a>")] == ["v4"]


def test_a_refused_query_changes_nothing(tmp_path: Path) -> None:
    with axlog.open(tmp_path / "store", "<r><a>1</a></r>") as doc:
        doc.watch("match //a/$x return $x", "v")
        for name, query in (("v", "match ("), ("w", "match //a")):
            with pytest.raises(QueryError):
                doc.change(name, query)
        doc.update("insert node <a>2</a> into /r")
        assert [row["x"] for row in doc.view("v")] == ["1", "2"]


def test_a_store_has_the_new_query(tmp_path: Path) -> None:
    with axlog.open(tmp_path / "store", "<r><a>1</a><b>2</b></r>") as doc:
        doc.watch("match //a/$x return $x", "v")
        changes = doc.change("v", "match //b/$x return $x")
        assert [(change.op, change.row["x"]) for change in changes] == [
            ("delete", "1"), ("insert", "2")
        ]  # fmt: skip
    with axlog.open(tmp_path / "store") as doc:
        assert [row["x"] for row in doc.view("v")] == ["2"]
        assert doc.view("v").position == 2


def test_messages_that_were_not_kept() -> None:
    doc = Document(streams=["s"], options=Options(keep="needed"))
    doc.watch("match //s/a/x/$x return $x", "v")
    doc.feed("s", "<a><x>1</x></a>")
    with pytest.raises(AxlogError, match="AX307"):
        doc.change("v", "match //s/a/y/$x return $x")
    assert [row["x"] for row in doc.view("v")] == ["1"]


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_a_view_that_starts_now(keep: axlog.live.options.Keep) -> None:
    doc = Document(streams=["p", "q"], options=Options(keep=keep))
    doc.watch("match //p/a/x/$x return $x", "first")
    doc.feed("p", "<a><x>1</x><y>1</y></a>")
    doc.feed("q", "<b><x>1</x></b>")
    query = "match /document[p/a/y/$x][q/b/x/$x] return $x"
    if keep == "needed":
        with pytest.raises(AxlogError, match="AX307"):
            doc.watch(query, "late")
    late = doc.watch(query, "late", since="now")
    assert [row["x"] for row in late] == (["1"] if keep == "all" else [])
    doc.feed("p", "<a><x>2</x><y>2</y></a>")
    assert [change.view for change in doc.feed("q", "<b><x>2</x></b>")] == ["late"]
    assert [row["x"] for row in doc.view("first")] == ["1", "2"]
    with pytest.raises(QueryError, match="AX211"):
        doc.watch(query, since="yesterday")  # type: ignore[arg-type]
