"""`never` of any view: joins of many parts, `or`, `not`, ids, values, matches in a subtree."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Literal

import pytest

import axlog
from axlog.views.change import Change
from lab.laws.fallen_law import check_fallen
from tests.amounts import chunks

CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"{}/>'
F, G, H = (CALL.format(stream, "") for stream in "fgh")
THREE = f"<r><p>{F}</p><q>{G}</q><s>{H}</s></r>"
JOIN = "match /r[p/a/k/$x][q/b/k/$x][s/c/k/$x] return $x"


def never(changes: list[Change]) -> list[tuple[object, ...]]:
    return [change.row.values_ for change in changes if change.op == "never"]


@pytest.mark.parametrize("start", chunks(30, 30))
def test_differential_never_is_what_the_definition_says(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + 30):
        try:
            seen += check_fallen(Random(seed))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert seen["never"] > 5
    assert seen["steps"] > 3 * seen["not compared"]


def test_join_of_three_ends_with_the_stream_that_it_waits_for() -> None:
    doc = axlog.parse(THREE, views={"v": JOIN})
    for stream, label in zip("fgh", "abc", strict=True):
        doc.feed(stream, f"<{label}><k>1</k></{label}>")
    doc.feed("f", "<a><k>2</k></a>")
    doc.feed("g", "<b><k>2</k></b>")
    doc.feed("f", "<a><k>3</k></a>")
    assert doc.end("g") == [Change("never", axlog.Row(("x",), ("3",)), None, "v", 0, 2)]
    assert never(doc.end("h")) == [("2",)]  # 1 is there


def test_join_of_three_ends_with_the_trees_of_a_call_that_a_message_opens() -> None:
    place = THREE.replace(F, CALL.format("f", ' calls="yes"'))
    query = "match /r[p/a/b/$x][q/c/$x][s/d/$x] return $x"
    doc = axlog.parse(place, views={"v": query})
    doc.feed("g", "<c>1</c>")
    doc.feed("h", "<d>1</d>")
    assert doc.end("g") == []
    one = CALL.format("x", ' most="1"')
    doc.feed("f", f"<a>{one}</a>")
    assert doc.end("f") == []
    assert never(doc.feed("x", "<b>2</b>")) == [("1",)]
    assert doc.view("v").truth is axlog.Truth.NEVER


def test_join_of_three_ends_by_the_clock() -> None:
    query = JOIN.replace("$x]", "$x#t1]", 1).replace("s/c/k/$x", "s/c/k/$x#t3")
    doc = axlog.parse(THREE, views={"v": query.replace("return", "where t3 - t1 <= 5 return")})
    doc.feed("f", "<a><k>1</k></a>", at=1)
    doc.feed("f", "<a><k>2</k></a>", at=2)
    doc.feed("g", "<b><k>1</k></b>", at=2)
    doc.end("f", at=3)  # else a 1 could come again
    assert never(doc.feed("g", "<b><k>2</k></b>", at=6)) == []
    assert never(doc.feed("g", "<z/>", at=7)) == [("1",)]
    assert never(doc.advance(100)) == [("2",)]


def test_join_of_three_ends_by_a_key() -> None:
    query = JOIN.replace("s/c", "s/c[w]")
    doc = axlog.parse(THREE, views={"v": query}, facts=["key s/c by k trusted"])
    doc.feed("f", "<a><k>1</k></a>")
    doc.feed("g", "<b><k>1</k></b>")
    assert never(doc.feed("h", "<c><k>1</k></c>")) == [("1",)]  # without w


def test_match_inside_a_subtree_ends_with_its_stream() -> None:
    """P1's managers: a project is under way below each."""
    trees = "".join(
        f"<manager><name>{name}</name><projects>{CALL.format(name, '')}</projects></manager>"
        for name in "ab"
    )
    query = 'match /managers/manager[name/$n]/projects/project/"done" return $n'
    doc = axlog.parse(f"<managers>{trees}</managers>", views={"done": query})
    doc.feed("a", "<project>done</project>")
    assert doc.end("a") == []
    assert never(doc.end("b")) == [("b",)]


def test_rows_that_show_nodes_are_told_apart_by_them() -> None:
    document = f"<r><a>1{F}</a><a>1{G}</a></r>"
    doc = axlog.parse(document, views={"v": "match /r/a#t[b] return t.id, t.val"})
    one, other = (possible.row for possible in doc.view("v").possible())
    assert one["t.val"] is None
    assert never(doc.end("g")) == [tuple(other.values())]
    assert never(doc.end("f")) == [tuple(one.values())]


def test_or_ends_when_no_way_is_left() -> None:
    doc = axlog.parse(THREE, views={"v": "match /r[p/a/$x][q/b or s/c] return $x"})
    doc.feed("f", "<a>1</a>")
    assert doc.end("g") == []
    assert never(doc.end("h")) == [(None,), ("1",)]


def test_deletion_ends_what_cannot_come_again() -> None:
    deleting = CALL.format("f", ' deletes="only"')
    document = f"<r><p><a>1</a>{deleting}</p><q>{G}</q></r>"
    doc = axlog.parse(document, views={"v": "match /r[p/a/$x]/q/b return $x"})
    assert never(doc.delete("f", "match /a")) == [("1",)]


def test_calls_inside_messages_are_followed() -> None:
    outer = CALL.format("f", ' calls="yes"')
    doc = axlog.parse(f"<r>{outer}</r>", views={"v": "match /r/a[@k = $x]/b return $x"})
    doc.feed("f", f"<a k='1'>{G}</a>")
    doc.feed("f", f"<a k='2'>{H}</a>")
    doc.feed("h", "<b/>")
    assert doc.end("f") == []
    assert never(doc.end("g")) == [("1",)]


def test_not_with_a_stream_of_the_parts_is_answered_on_demand() -> None:
    query = "match /r[p/a][not(p/b)]"
    doc = axlog.parse(THREE, views={"v": query})
    assert "`not`" in str(doc.view("v").explain().never)
    doc = axlog.parse(THREE, views={"v": query}, options=axlog.Options(never="all"))
    assert never(doc.feed("g", "<z/>")) == []
    assert never(doc.feed("f", "<b/>")) == [()]


def test_not_is_answered_by_the_state() -> None:
    doc = axlog.parse(THREE, views={"v": "match /r[p/a][not(q/b)]"})
    assert doc.view("v").explain().never == "reported by the join's state as messages arrive"
    assert never(doc.feed("g", "<b/>")) == [()]
    assert never(doc.feed("g", "<b/>")) == []


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_what_must_be_absent_ends_what_waits(keep: Literal["all", "needed"]) -> None:
    query = "match /r[p/a/k/$x][q/b/k/$x][not(s/c/k/$x)] return $x"
    doc = axlog.parse(THREE, views={"v": query}, options=axlog.Options(keep=keep))
    for value in "123":
        doc.feed("f", f"<a><k>{value}</k></a>")
    assert [c.op for c in doc.feed("g", "<b><k>3</k></b>")] == ["insert"]
    assert never(doc.feed("h", "<c><k>1</k></c>")) == [("1",)]
    assert doc.view("v").status({"x": "1"}) is axlog.Truth.NEVER
    assert doc.view("v").status({"x": "2"}) is axlog.Truth.POSSIBLE
    (gone,) = doc.feed("h", "<c><k>3</k></c>")  # it was a row: not `never`
    assert (gone.op, gone.final) == ("delete", True)
    assert doc.feed("g", "<b><k>1</k></b>") == []
    assert never(doc.end("g")) == [(None,), ("2",)]


def test_a_key_that_brings_what_is_blocked_ends_the_row() -> None:
    query = "match /r[p/a/k/$x][q/b[k/$x]/y/$y][not(s/c/k/$y)] return $x"
    keys = ["key q/b by k trusted"]
    doc = axlog.parse(THREE, views={"v": query}, facts=keys)
    doc.feed("f", "<a><k>1</k></a>")
    doc.feed("h", "<c><k>7</k></c>")
    assert doc.view("v").status({"x": "1"}) is axlog.Truth.POSSIBLE
    assert never(doc.feed("g", "<b><k>1</k><y>7</y></b>")) == [("1",)]


def test_what_must_be_absent_ends_only_rows_that_wait_with_its_value() -> None:
    query = "match /r[p/a[k/$x]/y/$y][q/b/k/$x][not(s/c/k/$y)] return $y"
    doc = axlog.parse(THREE, views={"v": query})
    doc.feed("g", "<b><k>1</k></b>")
    assert doc.feed("h", "<c><k>7</k></c>") == []  # nothing waits with it
    doc.feed("f", "<a><k>2</k><y>8</y></a>")
    assert never(doc.feed("h", "<c><k>8</k></c>")) == [("8",)]


def test_limited_calls_run_out() -> None:
    two = CALL.format("f", ' most="2"')
    doc = axlog.parse(f"<r>{two}</r>", views={"v": "match /r[a][b]"})
    assert never(doc.feed("f", "<z/>")) == [()]


def test_a_part_that_is_not_decided_does_not_matter_where_no_row_can_come() -> None:
    query = 'match /$x//b or //* != "10", /b#t return t.time'
    doc = axlog.parse(f"<c><b>1{F}</b>a</c>", views={"v": query})
    assert str(doc.view("v").explain().never).startswith("reported")
    assert doc.view("v").possible() == []
    assert doc.feed("f", "<b>10</b>") == []
    assert doc.end("f") == []


def test_values_above_a_stream_are_settled_with_its_last_tree() -> None:
    one = CALL.format("f", ' most="1"')
    query = 'match /r[p = "1"][q/b][s/c]'
    doc = axlog.parse(f"<r><p>{one}</p><q>{G}</q><s>{H}</s></r>", views={"v": query})
    assert "may still change" in str(doc.view("v").explain().never)
    doc.feed("f", "<a>1</a>")
    assert str(doc.view("v").explain().never).startswith("reported")
    assert never(doc.end("g")) == [()]


def test_explain_says_how_and_why_not() -> None:
    def said(query: str, **options: str) -> str:
        doc = axlog.parse(THREE, views={"v": query}, options=axlog.Options(**options))  # type: ignore[arg-type]
        return str(doc.view("v").explain().never)

    assert "tables" in said("match /r[p/a/$x][q/b/$x]")
    assert "as messages arrive" in said(JOIN)
    assert "as messages arrive" in said(
        "match /r[p/a#t1][q/b#t2][s/c#t3] where t2 - t1 <= 5 and t3 - t2 <= 5"
    )
    assert "as messages arrive" in said(JOIN, keep="needed")
    assert "off" in said(JOIN, never="off")
    assert "reported" in said("match /r[p/a#t1][q/b#t2]/s/c where 2*t2 - t1 <= 5")
    assert "not reported: an order between" in said("match /r[p/a/$x][q/b/$y][s/c] where $x < $y")


def test_statements_start_anew_and_never_off_says_nothing() -> None:
    doc = axlog.parse(THREE, views={"v": JOIN})
    doc.feed("f", "<a><k>1</k></a>")
    assert doc.update("delete nodes //a") == []
    assert never(doc.end("g")) == [(None,)]
    quiet = axlog.parse(
        THREE, views={"v": "match /r[p/a/$x][q/b/$x] return $x"}, options=axlog.Options(never="off")
    )
    quiet.feed("f", "<a>1</a>")
    assert quiet.end("g") == []
