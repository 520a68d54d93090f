"""The future of joins of three parts and more, read off their tables; pages of possible rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from random import Random

import pytest

import axlog
from axlog.errors import UpdateError
from axlog.evaluate.joins import Row
from axlog.future.truth import Outlook
from axlog.live.internals import maintained, maintained_view, streams_of
from axlog.query.truth import Truth
from axlog.views.counting.prospects import Prospects
from axlog.views.member_prospects import MemberProspects
from lab.laws.fuzzing import run_case
from lab.laws.never_law import take
from lab.laws.prospects_law import make_prospects_case
from lab.laws.replay_law import check_replay, make_replay_case

CALL = '<ax:call xmlns:ax="urn:axlog" stream="{0}"/>'
DOCUMENT = "<r>" + "".join(f"<{s}>{CALL.format(s)}</{s}>" for s in "abc") + "</r>"
THREE = "match /r[a/o/k/$x#t1][b/o[w]/k/$x#t2][c/o/k/$x] where t2 - t1 <= 5 return $x"
TWO = "match /r[a/o/k/$x#t1][b/o/k/$x#t2] where t2 - t1 <= 5 return $x"
ABSENT = "match /r[not(c/o/k/$x)][a/o/k/$x] return $x"
KEYS = tuple(f"key {stream}/o by k trusted" for stream in "abc")


def document(query: str, keep: str = "all", facts: tuple[str, ...] = KEYS) -> axlog.Document:
    options = axlog.Options(keep=keep)  # type: ignore[arg-type]
    return axlog.Document(DOCUMENT, views={"v": query}, facts=facts, options=options)


def message(number: int, inside: str = "<w/>") -> str:
    return f"<o>{inside}<k>{number}</k></o>"


@pytest.mark.parametrize("keep", ["all", "needed"])
@pytest.mark.parametrize("late", [1, 2])
def test_never_has_the_time_of_its_deadline_whichever_message_passes_it(
    keep: str, late: int
) -> None:
    doc = document(TWO, keep)
    doc.feed("a", message(1), at=1)
    (never,) = doc.feed("b", message(late), at=20)  # also if it uses up the key of the row
    assert (never.op, never.row["x"], never.microseconds) == ("never", "1", 6_000_001)
    assert never.cause is not None
    assert never.cause.kind == "clock"


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_rows_of_a_join_of_three_end_as_rows_or_never(keep: str) -> None:
    doc = document(THREE, keep)
    view = doc.view("v")
    for number in (1, 2, 3):
        assert doc.feed("a", message(number), at=number) == []
    assert [view.status({"x": x}) for x in "129"] == [Truth.POSSIBLE] * 3
    doc.feed("c", message(1), at=4)
    (row,) = doc.feed("b", message(1), at=4)
    assert (row.op, row.row["x"]) == ("insert", "1")
    (never,) = doc.feed("b", message(2, ""), at=5)  # the key is used, and there is no `w`
    assert (never.op, never.row["x"], never.time) == ("never", "2", 5)
    (late,) = doc.advance(20)
    assert (late.op, late.row["x"]) == ("never", "3")
    assert late.cause is not None
    assert late.cause.kind == "clock"
    assert late.time == pytest.approx(8.000001)
    verdicts = [Truth.TRUE, Truth.NEVER, Truth.NEVER, Truth.POSSIBLE]
    assert [view.status({"x": x}) for x in "1239"] == verdicts
    assert maintained_view(view).truth_cache.searches == 0
    assert doc.end("c") == []  # nothing waits, and there is a row
    assert view.status({"x": "9"}) is Truth.NEVER


@pytest.mark.parametrize("query", [TWO, THREE])
def test_pages_start_with_the_next_deadlines(query: str) -> None:
    doc = document(query)
    view = doc.view("v")
    for at, number in enumerate((5, 3, 4, 1, 2)):
        doc.feed("a", message(number), at=at)
    first = view.possible(limit=2)
    assert [(one.row["x"], one.deadline) for one in first] == [("5", 5), ("3", 6)]
    doc.feed("b", message(3), at=4)
    if query is THREE:
        doc.feed("c", message(3), at=4)
    rest = view.possible(limit=10, after=first[-1])
    assert [one.row["x"] for one in rest if one.row["x"]] == ["4", "1", "2"]
    assert rest[-1].row["x"] is None
    assert view.possible(limit=1, after=rest[-1]) == []


def test_a_page_has_a_row_of_which_a_later_one_is_ruled_out_by_its_key() -> None:
    where = "where t2 - t1 >= 0 and t2 - t1 <= 10 return $n"
    doc = document(f"match /r[a/o[k/$x#t1]/n/$n][b/o/k/$x#t2] {where}")
    doc.feed("a", message(5, "<n>1</n>"), at=1)
    doc.feed("b", message(6), at=1)
    doc.feed("a", message(6, "<n>1</n>"), at=3)
    page = doc.view("v").possible(limit=5)
    assert [(one.row["n"], one.deadline) for one in page] == [("1", 11), (None, None)]


def test_pages_of_a_view_without_columns_have_no_row_that_needs_more() -> None:
    doc = document("match /r[a/o/k/$x#t1][b/o/k/$x#t2] where t2 - t1 <= 2")
    doc.feed("b", message(1), at=0)
    view = doc.view("v")
    (row,) = view.possible(limit=2)
    assert [each.stream for each in row.needs] == ["a"]
    assert view.possible(limit=2, after=row) == []


@pytest.mark.parametrize("facts", [(), KEYS])
def test_a_page_of_rows_without_deadlines_judges_no_others(
    facts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    doc = document("match /r[a/o/k/$x][b/o/k/$x] return $x", facts=facts)
    view, judged = doc.view("v"), list[object]()
    ways_of = Prospects._ways_of

    def count(prospects: Prospects, part: int, row: Row) -> object:
        judged.append(row)
        return ways_of(prospects, part, row)

    for number in range(10, 50):
        doc.feed("a", message(number))
    assert len(view.possible(limit=3)) == 3
    monkeypatch.setattr(Prospects, "_ways_of", count)
    for stream, number in (("a", 9), ("a", 7), ("b", 11)):
        doc.feed(stream, message(number))
    page = view.possible(limit=3)
    assert [one.row["x"] for one in page] == [None, "10", "12"][: len(page)]
    assert [one.row["x"] for one in view.possible(limit=2, after=page[-1])] == ["13", "14"]
    assert len(judged) < 10
    assert [one.row["x"] for one in view.possible()][-2:] == ["7", "9"]
    doc.end("b")
    assert view.possible(limit=3) == []


def test_forgotten_key_values_are_not_guessed_at() -> None:
    doc = document(TWO, "needed")
    doc.feed("a", message(1), at=0)
    doc.feed("b", message(1), at=9)  # too late: both had it, and there is no row
    with pytest.raises(UpdateError) as caught:
        doc.view("v").status({"x": "1"})
    assert caught.value.code == "AX307"
    doc.feed("a", message(2), at=9)
    assert doc.view("v").status({"x": "2"}) is Truth.POSSIBLE


def test_never_comes_at_the_same_moment_after_a_restart() -> None:
    """A key value is used at the instant of a row, or before a row that has a deadline."""
    assert run_case(5034, "7") is None
    check_replay(make_replay_case(Random(279)))


ENDED = [(ABSENT, "a"), (ABSENT, "ac"), (TWO, "ab"), (TWO, "abc"), (THREE, "abc")]


@pytest.mark.parametrize(("query", "ends"), ENDED)
def test_a_store_opens_after_the_streams_of_a_join_have_ended(
    tmp_path: Path, query: str, ends: str
) -> None:
    options = axlog.Options(keep="needed")
    with axlog.open(tmp_path, DOCUMENT, views={"v": query}, facts=KEYS, options=options) as doc:
        doc.feed("a", message(1), at=0)
        for stream in ends:
            doc.end(stream)
        wanted = [doc.view("v").truth, doc.view("v").status({"x": "9"})]
        doc.snapshot()
    with axlog.open(tmp_path) as again:
        assert [again.view("v").truth, again.view("v").status({"x": "9"})] == wanted
        assert wanted[1] is Truth.NEVER
        if query is ABSENT and "c" not in ends:
            assert [change.op for change in again.feed("c", message(1), at=1)] == ["delete"]


def test_a_batch_is_undone_after_a_join_was_collected() -> None:
    doc = document(TWO)
    other = doc.watch("match /r/c/o/k/$x return $x", "other")
    doc.feed("a", message(1), at=0)
    doc.end("a")
    doc.end("b")
    assert doc.collect().nodes
    assert doc.view("v").truth is Truth.NEVER

    def undone() -> None:
        with doc.batch():
            doc.feed("c", message(1), at=1)
            raise RuntimeError("undo it")

    with pytest.raises(RuntimeError, match="undo it"):
        undone()
    assert list(other) == []
    assert doc.view("v").truth is Truth.NEVER
    doc.feed("c", message(1), at=1)
    assert [row["x"] for row in other] == ["1"]


def test_the_deadline_of_a_way_beside_a_not_is_that_of_its_data() -> None:
    """Another way shows row 1 without a limit: it needs no `c` of the same time as the `a`."""
    inside = "".join(f"<{s}>{CALL.format(s)}</{s}>" for s in "abcn")
    query = (
        "match /r[not(n/o/k/$x)][a/o/k/$x#t1][b/o[k/$x]/y/$y][c/o/k/$y#t3] where t3 = t1"
        " return $x, $y"
    )
    doc = axlog.Document(f"<r>{inside}</r>", views={"v": query})
    doc.feed("a", message(1), at=1)
    doc.feed("c", message(2), at=1)
    walked = Outlook(maintained(doc).nodes(), doc.view("v").query.pattern).possible()
    limits = {
        (*one.row.values(), *(need.stream for need in one.needs)): one.deadline for one in walked
    }
    assert limits["1", "2", "b"] is None
    assert limits["1", None, "b", "c"] == 1_000_000
    read = {
        (*one.row.values(), *(need.stream for need in one.needs)): one.deadline
        for one in doc.view("v").possible()
    }
    assert read == {way: limit and limit / 1e6 for way, limit in limits.items()}


def _known(question: Callable[[], object]) -> bool | str:
    try:
        return bool(question())
    except UpdateError as error:  # key values were forgotten
        return error.code


@pytest.mark.parametrize("seed", range(16))
def test_the_generated_questions_are_the_walk(seed: int) -> None:
    case = make_prospects_case(Random(f"questions:{seed}"))
    for options in (axlog.Options(), axlog.Options(keep="needed")):
        views = {"v": case.query}
        doc = axlog.Document(case.document, facts=case.facts, views=views, options=options)
        for step in case.steps:
            take(doc, step)
            found = streams_of(doc).prospects(maintained(doc).views["v"])
            if found is None or isinstance(found, MemberProspects):
                continue
            outlook = found.waiting.outlook
            if outlook is None:
                continue
            columns = sorted({c for part in outlook.inputs.parts for c in part.columns})
            clock = maintained(doc).tree.clock
            values: list[list[str | int | None]] = [
                [None, clock - 1, clock] if column.endswith(".time") else [None, "1", "2", ""]
                for column in columns
            ]
            for row in product(*values):
                known = {c: v for c, v in zip(columns, row, strict=True) if v is not None}
                asked, walked = partial(outlook.may_come, known), partial(outlook.witness, known)
                assert _known(asked) == _known(walked), (known, step)
                there = next(outlook.rows(known), None) is not None
                assert outlook.holds(known) == there, (known, step)


@pytest.mark.parametrize("is_waiting", [False, True])
def test_a_bound_on_a_sum_of_times_ends_after_its_last_moment(is_waiting: bool) -> None:
    call = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
    query = "match /r[p/a/k/$x#t1][q/d/k/$x#t2] where t2 + t1 <= 6us return t2.time"
    doc = axlog.parse("<r>" + "".join(f"<{s}>{call.format(s)}</{s}>" for s in "pqe") + "</r>")
    view = doc.watch(query)
    if is_waiting:  # until 5us: two new rows are not the last that may come
        doc.feed("q", "<d><k>1</k></d>", at=1e-6)
    doc.end("e", at=3e-6)  # the joins are found anew at the last moment for two new rows
    found = doc.advance(6e-6)
    assert [(c.op, c.row["t2.time"]) for c in found] == [("never", 1e-6 if is_waiting else None)]
    assert view.truth is axlog.Truth.NEVER


@pytest.mark.parametrize("keep", ["all", "needed"])
@pytest.mark.parametrize(
    ("query", "keyed", "never"),
    [
        ("[a/o/k/$x#t1][b/o/k/$x#t2]", "b", []),  # another row of a could come until the key did
        ("[a/o/k/$x#t1][b/o/k/$x#t2]", "a", ["1"]),
        ("[a/o/k/$x#t1][b/o/k/$x#t2][c/o/k/$x]", "b", []),
        ("[not(c/o/k/$x)][a/o/k/$x#t1][b/o/k/$x#t2]", "b", []),
    ],
)
def test_deadlines_pass_before_the_message_that_moves_the_clock(
    query: str, keyed: str, never: list[str], keep: str
) -> None:
    text = f"match /r{query} where t2 - t1 >= 1 and t2 - t1 <= 3 return $x"
    for others in ((), (7,), (5, 6, 7)):
        doc = document(text, keep, (f"key {keyed}/o by k trusted",))
        found = doc.feed("a", message(1), at=1)
        for moment in others:
            found += doc.advance(moment)
        found += doc.feed("b", message(1), at=20)
        assert [(c.op, c.row["x"]) for c in found] == [("never", x) for x in never]


def test_a_rejected_message_passes_no_deadline() -> None:
    doc = document(THREE)
    doc.feed("a", message(1), at=1)
    with pytest.raises(axlog.AxlogError):
        doc.feed("b", "<o", at=20)
    doc.feed("c", message(1), at=2)
    assert [c.op for c in doc.feed("b", message(1), at=3)] == ["insert"]
