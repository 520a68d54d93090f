"""Truth kept as data arrives: equal to a walk over the document, and seldom in need of one."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

import axlog
from axlog import Truth
from axlog.errors import UndecidedError
from axlog.live.internals import maintained_view
from axlog.query.native import parse_pattern
from lab.laws.edits import Edit
from lab.laws.fuzz_cases import Case
from lab.laws.table import LAWS
from lab.laws.truth_law import check_truth, check_truth_of
from tests.amounts import chunks

CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"{}/>'
THREE = f"<r>{CALL.format('f', '')}{CALL.format('g', '')}{CALL.format('h', '')}</r>"


def truth(doc: axlog.Document) -> Truth:
    return doc.view("v").truth


@pytest.mark.parametrize("start", chunks(100, 100))
def test_differential_truth_as_data_arrives_is_truth(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + 100):
        seen += check_truth(Random(seed))
    verdicts = seen["POSSIBLE"] + seen["NEVER"]
    assert min(seen["TRUE"], seen["POSSIBLE"], seen["NEVER"]) > 50
    assert seen["searches"] < verdicts  # kept, not worked out each time


@pytest.mark.parametrize("seed", range(4))
def test_law_holds_where_a_view_follows_statements_after_collection(seed: int) -> None:
    query = "match /*[$x#t0]/a#t1 where t1 - t0 >= 2us return t0.time"
    limited = CALL.format("f", ' most="1"')
    document = f"<b>a{limited}{CALL.format('g', '')}</b>"
    case = Case(document, (parse_pattern(query),))
    come: list[tuple[Edit, ...]] = [
        ({"stream": stream, "insert": insert, "at": 2e-06},)
        for stream, insert in (
            ("g", "<b>a</b>"), ("f", "<b><c><b/></c></b>"), ("g", "<a/>"), ("g", "<b/>"),
        )
    ]  # fmt: skip
    statements: list[tuple[Edit, ...]] = [
        ({"insert": ["<b/>"], "where": "last", "target": 1},),
        ({"delete": 2},),  # the text
    ]
    seen = check_truth_of(case, [*come, *statements, come[-1]], Random(seed))
    assert (seen["POSSIBLE"], seen["TRUE"]) == (5, 3)


def test_rows_go_whose_partners_were_never_kept() -> None:
    """Rows of a part that nothing to come completes pass by; a statement needs them after all."""
    query = "match /b[$x#t0]/a#t1 where t1 - t0 >= 2us return t0.time"
    doc = axlog.parse(f"<b>a{CALL.format('s', '')}</b>", views={"v": query})
    assert [c.op for c in doc.feed("s", "<a/>", at=2e-6)] == ["insert"]
    assert [c.op for c in doc.update("delete node /b/text()")] == ["delete"]
    assert len(doc.view("v")) == 0


def test_many_messages_need_one_walk() -> None:
    doc = axlog.parse(THREE, views={"v": "match /r[a or d][b][c]"})
    view = doc.view("v")
    for number in range(50):
        assert truth(doc) is Truth.POSSIBLE
        doc.feed("fgh"[number % 3], "<a/>", at=number)
    assert maintained_view(view).truth_cache.searches == 1
    doc.end("h")
    assert truth(doc) is Truth.POSSIBLE
    assert maintained_view(view).truth_cache.searches <= 2
    doc.end("f")
    doc.end("g")
    assert truth(doc) is Truth.NEVER
    walks = maintained_view(view).truth_cache.searches
    doc.advance(1000)
    assert truth(doc) is Truth.NEVER
    assert maintained_view(view).truth_cache.searches == walks


def test_a_witness_falls_at_its_deadline_and_with_its_trees() -> None:
    query = "match /r[a#t1][b#t2][c#t3] where t2 - t1 <= 5s and t3 - t2 <= 5s"
    doc = axlog.parse(f"<r><a/>{CALL.format('f', '')}</r>", views={"v": query})
    assert truth(doc) is Truth.POSSIBLE  # another a may come: no deadline
    few = CALL.format("f", ' most="2"')
    text = f"<r><a/><e>{CALL.format('e', '')}</e>{few}</r>"
    doc = axlog.parse(text, views={"v": query})
    assert truth(doc) is Truth.POSSIBLE
    doc.feed("e", "<z/>", at=5)
    assert truth(doc) is Truth.POSSIBLE
    doc.feed("e", "<z/>", at=6)
    assert truth(doc) is Truth.NEVER  # three trees would have to come


def test_statements_start_anew() -> None:
    doc = axlog.parse("<r/>", views={"v": "match /r/a"})
    assert truth(doc) is Truth.NEVER
    doc.update("insert node <a/> into /r")
    assert truth(doc) is Truth.TRUE
    doc.update("delete node /r/a")
    assert truth(doc) is Truth.NEVER


def test_without_the_messages_a_verdict_found_before_is_kept() -> None:
    doc = axlog.parse(THREE, views={"v": "match /r[a][b][c]"}, options=axlog.Options(keep="needed"))
    assert truth(doc) is Truth.POSSIBLE
    doc.feed("f", "<a/>")
    assert truth(doc) is Truth.POSSIBLE
    doc.feed("g", "<b/>")
    doc.feed("h", "<c/>")
    assert truth(doc) is Truth.TRUE


def test_many_ends_need_no_walk_each() -> None:
    """P1's managers: each stream could still bring the row; the witness falls again and again."""
    calls = [CALL.format(f"s{number}", "") for number in range(30)]
    trees = "".join(f"<m><p>{call}</p></m>" for call in calls)
    doc = axlog.parse(f"<r>{trees}</r>", views={"v": "match /r/m/p/d"})
    view = doc.view("v")
    for number in reversed(range(30)):
        assert truth(doc) is Truth.POSSIBLE
        doc.end(f"s{number}")
    assert truth(doc) is Truth.NEVER
    assert maintained_view(view).truth_cache.searches <= 2
    doc = axlog.parse(
        f"<r>{trees}</r>", views={"v": "match /r/m/p/d"}, options=axlog.Options(never="off")
    )
    for number in range(30):
        assert truth(doc) is Truth.POSSIBLE
        doc.end(f"s{number}")
    assert truth(doc) is Truth.NEVER


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ('match /$x/b//b, /c where $x = "1"', Truth.NEVER),
        ('match /$x/b//b, /c where $x = "c"', Truth.POSSIBLE),
        ('match /$x/b/$y, /c where $x = $y and $y = "1"', Truth.NEVER),
        ("match /$x/b/$y, /c where $x = $y", Truth.POSSIBLE),
    ],
)
def test_a_node_that_is_there_has_a_say_in_what_may_come(query: str, wanted: Truth) -> None:
    """What streams bring must agree with the label of a node above them."""
    doc = axlog.parse(f"<c><b>{CALL.format('f', '')}</b>{CALL.format('g', '')}</c>")
    doc.watch(query, "v")
    assert truth(doc) is wanted


def test_a_key_uses_up_what_a_row_does_not_show() -> None:
    """What is waited for comes, but otherwise, and no second one does."""
    doc = axlog.parse(
        f"<r><p>{CALL.format('f', '')}</p><q>{CALL.format('g', '')}</q></r>",
        views={"v": "match /r[p/a[w]/k/$x][q/d[k/$x]/v/$y] return $y"},
        facts=["key p/a by k trusted"],
    )
    doc.feed("g", "<d><k>1</k><v>6</v></d>")
    doc.end("g")
    assert truth(doc) is Truth.POSSIBLE
    doc.feed("f", "<a><k>1</k></a>")
    assert truth(doc) is Truth.NEVER
    assert doc.view("v").possible() == []


@pytest.mark.parametrize("seed", [2006520, 2007893])
def test_truth_of_joins_after_a_restart_when_their_streams_ended(seed: int) -> None:
    law = LAWS["7"]
    law.check(law.make(Random(f"7:{seed}")))


@pytest.mark.parametrize("streams", ["fg", "gf"])
def test_a_value_that_a_stream_changes_is_not_settled(streams: str) -> None:
    """The stream brings no row of the part that compares the value, yet makes it hold."""
    document = f"<r><p>{CALL.format('f', '')}</p><q>{CALL.format('g', '')}</q></r>"
    doc = axlog.parse(document, views={"v": 'match /r[p = "1"]/q/b'})
    with pytest.raises(UndecidedError):
        truth(doc)
    for stream in streams:
        doc.feed(stream, {"f": "<a>1</a>", "g": "<b/>"}[stream])
    assert truth(doc) is Truth.TRUE


@pytest.mark.parametrize("most", [1, 2, 5])
def test_the_last_tree_of_a_limited_stream_makes_the_rows_in_progress_never(most: int) -> None:
    limited = CALL.format("g", f' most="{most}"')
    doc = axlog.parse(
        f"<r><p>{CALL.format('f', '')}</p><q>{limited}</q></r>",
        views={"v": "match /r[p/a/k/$x][q/d/k/$x] return $x"},
    )
    for number in (1, 2):
        doc.feed("f", f"<a><k>{number}</k></a>")
    told = [doc.feed("g", f"<d><k>{number}</k></d>") for number in range(10, 10 + most)]
    rows = [[(each.op, each.row.values_) for each in changes] for changes in told]
    assert rows == [*([[]] * (most - 1)), [("never", ("1",)), ("never", ("2",))]]
