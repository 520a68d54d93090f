"""Truth under constraints: the law on random cases, and what it found."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from axlog.live.document import Document
from axlog.live.internals import maintained_view
from axlog.live.options import Keep, Options
from axlog.query.truth import Truth
from lab.laws.constraints_cases import (
    CALLS,
    ConstraintsCase,
    Linear,
    Part,
    Pin,
    Step,
    make_constraints_case,
    smaller_constraints,
)
from lab.laws.constraints_law import check_constraints
from lab.laws.table import LAWS

CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
TWO = f"<r><p>{CALL.format('p')}</p><q>{CALL.format('q')}</q></r>"
A, B = Part("a", "t1", place="p"), Part("b", "t2", place="q")


def test_differential_views_say_what_all_futures_say() -> None:
    seen: Counter[str] = Counter()
    for seed in range(60):
        case = make_constraints_case(Random(f"suite:{seed}"))
        try:
            seen += check_constraints(case)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}; {case}") from error
    assert min(seen["truth NEVER"], seen["truth POSSIBLE"], seen["truth TRUE"]) > 5
    assert seen["never"] > 3
    assert seen["deadlines"] > 3
    assert not seen["refused AX503"]


FOUND = [
    # a coefficient of two, in a join of two: it was called possible
    ConstraintsCase((A, B), (Linear(((2, "t2"), (1, "t1")), "<=", -1),), (), ()),
    # three times that span two parts
    ConstraintsCase(
        (A, Part("b", "t2", inner="t4", place="q")),
        (Linear(((-1, "t2"), (-1, "t4"), (-1, "t1")), ">", 8),), (), (),
    ),
    # a mean of two times of one part is not later than the later one: only if both count alike
    ConstraintsCase(
        (A, Part("b", "t2", inner="t4", place="q")),
        (Linear(((1, "t1"), (-2, "t4"), (1, "t2")), "<=", -1),), (), (Step(1, 1, "1"),),
    ),
    # a pinned value that is there already
    ConstraintsCase(
        (Part("a", "t1", variable="x"),), (Pin("x", "=", "1"),), ("$x",), (Step(2, 0, "1"),)
    ),
    # a pinned time that is there already
    ConstraintsCase(
        (A, Part("b", "t2", inner="t4", place="q")),
        (Linear(((-2, "t1"), (-1, "t4")), "=", -4),), ("t2.time",),
        (Step(1, 0, "2"), Step(2, 1, "2")),
    ),
    # the times of one message are one, unless it may hold calls: then there is no deadline
    ConstraintsCase(
        (A, Part("b", "t2", inner="t4", place="q")),
        (Linear(((1, "t1"), (-1, "t4"), (1, "t2")), "=", 2),), (), (),
    ),
    # only a call can bring it
    ConstraintsCase(
        (Part("a", "t1", inner="t4", place="p"),), (Linear(((1, "t4"), (-1, "t1")), ">", 2),),
        (), (),
    ),
]  # fmt: skip


@pytest.mark.parametrize("cache", ["memory", "disk"])
@pytest.mark.parametrize("calls", [0, 9])
@pytest.mark.parametrize("case", FOUND, ids=str)
def test_what_the_law_found(case: ConstraintsCase, calls: int, cache: str) -> None:
    calling = tuple((case.stream(n), calls) for n in range(len(case.parts)) if calls)
    for keep in ("all", "needed"):
        options = (("cache", cache), ("keep", keep))
        check_constraints(replace(case, options=options, calling=calling))


@pytest.mark.parametrize("keep", ["all", "needed"])
@pytest.mark.parametrize("never", ["kept", "all"])
@pytest.mark.parametrize("part", [0, 1])
def test_rows_fall_with_the_last_call_of_a_stream(part: int, never: str, keep: Keep) -> None:
    parts = (Part("a", "t1", inner="t4", place="p"), B)
    case = ConstraintsCase(
        parts[: part + 1], (Linear(((1, "t4"), (-1, "t1")), ">=", 1),), (),
        (Step(1, 0, CALLS),), (("keep", keep), ("never", never)), (("p", 1),),
    )  # fmt: skip
    seen = check_constraints(case)
    assert (seen["truth POSSIBLE"], seen["truth NEVER"]) == (1, 1)
    assert seen["never"] == (keep == "all")
    assert check_constraints(replace(case, calling=(("p", 2),)))["truth POSSIBLE"] == 2


def test_the_law_finds_a_wrong_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axlog.views.counting.prospects.Prospects._may_start", lambda self: True)
    with pytest.raises(AssertionError, match="the truth"):
        check_constraints(FOUND[0])
    assert list(smaller_constraints(FOUND[0]))
    assert LAWS["constraints"].check is check_constraints


# Item by item -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("calls", "deadline"), [("no", 2), ("yes", None)])
def test_calls_let_the_times_of_a_message_differ(calls: str, deadline: int | None) -> None:
    call = f'<ax:call xmlns:ax="urn:axlog" stream="q" calls="{calls}"/>'
    document = f"<r><p>{CALL.format('p')}</p><q>{call}</q></r>"
    query = "match /r[p/a#t1][q/b#t2[c#t4]] where t1 - t4 + t2 = 2us"
    (one,) = maintained_view(Document(document, views={"v": query}).view("v"))._possible()
    assert one.deadline == deadline


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_never_is_emitted_from_disk_as_from_memory(keep: Keep) -> None:
    told = []
    for cache in ("memory", "disk"):
        query = "match /r[p/a/$x#t1][q/b/$x#t2] where t2 - t1 <= 5us return $x, t1.time"
        doc = Document(TWO, views={"late": query}, options=Options(cache=cache, keep=keep))
        doc.feed("p", "<a>17</a>", at=1e-6)
        told.append([(c.op, c.row.values_) for c in doc.advance(7e-6)])
    assert told == [[("never", ("17", 1))]] * 2


def test_a_pinned_variable_is_shown_and_dominates() -> None:
    query = 'match /r[p/a/$x][q/b/$y] where $x = "1" and $x = $y return $x, $y'
    view = (doc := Document(TWO, views={"v": query})).view("v")
    assert [dict(one.row) for one in view.possible()] == [{"x": "1", "y": "1"}]
    doc.feed("p", "<a>1</a>")
    doc.feed("q", "<b>1</b>")
    assert view.truth is Truth.TRUE
    assert view.possible() == []
