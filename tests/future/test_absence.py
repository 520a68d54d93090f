"""Queries with `not` whose values also stand outside: ordered and not shipped, with every fact."""

from collections import Counter
from random import Random

import pytest

from axlog.document.loader import load
from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.future.grounding import Given, ground, ties_of
from axlog.future.keys import parse_fact
from axlog.future.truth import Outlook
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.query.native import parse_pattern
from axlog.query.truth import Truth
from lab.laws.absence_cases import AbsenceCase, make_absence_case, smaller_absences
from lab.laws.absence_law import check_absence, future_of

CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"{}/>'
OPEN = "match /r[p/a/k/$x][not(q/d/k/$x)] return $x"
KEYS = ("key p/a by k trusted", "key q/d by k trusted")


def shop(
    orders: str = "", shipped: str = "", f: str = "", g: str = "", facts: tuple[str, ...] = ()
) -> Tree:
    """Orders and shipments by their numbers, with a call each; `-` for no call."""
    inside = [
        "".join(f"<{label}><k>{number}</k></{label}>" for number in numbers)
        + ("" if fact == "-" else CALL.format(stream, fact))
        for label, numbers, stream, fact in (("a", orders, "f", f), ("d", shipped, "g", g))
    ]
    tree = load(f"<r><p>{inside[0]}</p><q>{inside[1]}</q></r>")
    tree.facts = tuple(map(parse_fact, facts))
    return tree


def status(tree: Tree, query: str, **row: object) -> Truth:
    return Outlook(tree, parse_pattern(query)).status(row)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (shop("1"), Truth.TRUE),
        (shop("2"), Truth.POSSIBLE),
        (shop("1", "1"), Truth.NEVER),
        (shop("1", "1", g=' deletes="yes"'), Truth.POSSIBLE),
        (shop("1", "1", f="-", g=' deletes="only"'), Truth.POSSIBLE),
        (shop("2", f="-"), Truth.NEVER),
        (shop("2", f=' most="0"'), Truth.NEVER),
        (shop("", f=' deletes="only"'), Truth.NEVER),
        (shop("2", f=' mode="one-shot"'), Truth.POSSIBLE),
    ],
)
def test_status_of_an_order(tree: Tree, expected: Truth) -> None:
    assert status(tree, OPEN, x="1") is expected


def test_a_key_uses_up_an_order_number() -> None:
    query = "match /r/p/a[k/$x][w][not(v)] return $x"
    assert status(shop("1"), query, x="1") is Truth.POSSIBLE
    assert status(shop("1", facts=KEYS), query, x="1") is Truth.NEVER
    assert status(shop("1", facts=KEYS), query, x="2") is Truth.POSSIBLE


def test_the_key_value_of_a_deleted_node_stays_used() -> None:
    query = "match /r/p/a[k/$x][w][not(v)] return $x"
    assert status(shop("1", f=' deletes="yes"', facts=KEYS), query, x="1") is Truth.NEVER


def test_a_limited_stream_must_fit_everything_into_its_trees() -> None:
    query = "match /r[p/a[k/$x]][p/a/w][not(p/a[k/$x]/w)] return $x"
    assert status(shop(f=' most="1"'), query, x="1") is Truth.NEVER
    assert status(shop(f=' most="2"'), query, x="1") is Truth.POSSIBLE


def test_deadlines_pass_beside_not() -> None:
    query = "match /r[p/a#t/k/$x][q/d#u/k/$x][not(q/e)] where u - t <= 2us return $x"
    tree = shop("1", f="-")
    outlook = Outlook(tree, parse_pattern(query))
    assert [one.deadline for one in outlook.possible()] == [2]
    tree.clock = 3
    assert status(tree, query, x="1") is Truth.NEVER


def test_a_time_inside_a_not_is_compared_with_one_outside() -> None:
    query = "match /r[p/a#t/k/$x][not(q/d#s/k/$x)] where s - t <= 2us return $x"
    tree = shop("1", "1", f="-")
    assert status(tree, query, x="1") is Truth.NEVER
    later = "match /r[p/a#t/k/$x][not(q/d#s/k/$x)] where s - t >= 2us return $x"
    assert status(tree, later, x="1") is Truth.TRUE


def test_a_possible_row_comes_with_a_future_that_brings_it() -> None:
    tree = shop("1", "1", g=' deletes="yes"')
    events = Outlook(tree, parse_pattern(OPEN)).future({"x": "1"})
    assert events is not None
    later = future_of(tree, events).applied_to(tree)
    assert status(later, OPEN, x="1") is Truth.TRUE


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("match /r[p/a][not(q/d[k/$y]/v/$y)]", "AX501"),
        ("match /r[p/a][not(q/d#s/k#u)] where s < u", "AX501"),
        ("match /r[p/a][not(q/d#s[not(k#u)])] where s < u", "AX503"),
        ('match /r[p/a/k/$x][not(q/d/k < "b")] return $x', "AX503"),
    ],
)
def test_joins_inside_a_not_are_refused(query: str, code: str) -> None:
    with pytest.raises(UndecidedError) as raised:
        status(shop("1", "1"), query.replace("p/a", "p/b"))
    assert raised.value.code == code


@pytest.mark.parametrize("query", ["match /r[p/a][not(q/d[k/$y]/v/$y)]"])
def test_where_the_theorem_does_not_reach(query: str) -> None:
    assert status(shop("1"), query) is Truth.TRUE
    assert status(shop("", f="-", g="-"), query) is Truth.NEVER
    assert status(shop("", f="-"), query) is Truth.NEVER  # without its `not` it is NEVER too
    with pytest.raises(UndecidedError):
        status(shop(""), query)


def test_values_of_elements_are_read_as_a_whole() -> None:
    query = 'match /r/p/a[k = "17"][not(k/"17")]'
    assert status(shop(), query) is Truth.POSSIBLE
    assert status(shop(), query + "[not(k//text())]") is Truth.NEVER
    assert status(shop(), 'match /r/p/a[k = "1"][not(k//"1")]') is Truth.NEVER


def test_a_view_answers_with_its_rows() -> None:
    doc = Document(
        streams=["orders", "shipped"],
        views={"open": "match /document[orders/order/$x][not(shipped/order/$x)] return $x"},
    )
    view = doc.view("open")
    truths = [view.truth]
    doc.feed("orders", "<order>17</order>")
    truths.append(view.truth)
    assert truths == [Truth.POSSIBLE, Truth.TRUE]
    doc.feed("shipped", "<order>17</order>")
    assert view.status({"x": "17"}) is Truth.NEVER
    assert [one.row for one in view.possible()] == [{"x": None}]
    doc.end("orders")
    truths.append(view.truth)
    assert truths[-1] is Truth.NEVER
    assert maintained(doc).views["open"].possible() == []


def test_ties_are_values_that_two_places_use() -> None:
    ties = ties_of(parse_pattern("match /r[a/$x#t][b/$y][not(c/$x#s)] where s - t <= 1us"))
    assert ties.variables == ("x",)
    assert ties.open_times(()) == ["t"]
    assert ties.open_times(("t",)) == []
    assert ties_of(parse_pattern("match /r[a/$x or b/$x][not(c)] return $x")).variables == ()


def test_given_values_may_contradict_the_constraints() -> None:
    pattern = parse_pattern("match /r[a/$x#t][not(b)] where t >= 5us and $x > 3 return $x, t.time")
    assert ground(pattern, Given.of({"$x": "4", "t.time": 5})) is not None
    assert ground(pattern, Given.of({"$x": "3", "t.time": 5})) is None
    assert ground(pattern, Given.of({"$x": "4", "t.time": 4})) is None


@pytest.mark.parametrize("start", range(0, 80, 40))
def test_random_absences_equal_brute_force(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + 40):
        seen.update(check_absence(make_absence_case(Random(f"absence:{seed}"))))
    assert min(seen["row never"], seen["row possible"], seen["row true"]) > 5
    assert seen["possible"] > 5


def test_a_wrong_verdict_is_found_and_cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    document = f"<r><p>{CALL.format('f', '')}</p><q>{CALL.format('g', '')}</q></r>"
    case = AbsenceCase(document, OPEN, steps=(("f", "<a><k>1</k></a>", 1),))
    assert check_absence(case)["row possible"] > 0
    assert "match /r[p/a/k/$x] return $x" in [each.query for each in smaller_absences(case)]
    monkeypatch.setattr(Outlook, "status", lambda *_: Truth.NEVER)
    with pytest.raises(AssertionError, match="the status of"):
        check_absence(case)
