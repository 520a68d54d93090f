"""Truth, status and possible rows of views with aggregates (lab/laws/thresholds_law.py)."""

from collections import Counter
from random import Random
from typing import Any

import pytest

import axlog
from axlog import Truth
from axlog.errors import UndecidedError
from axlog.future.group_tracker import GroupTracker
from lab.laws.threshold_never_law import check_threshold_never, make_threshold_never_case
from lab.laws.thresholds_cases import ThresholdCase, make_threshold_case
from lab.laws.thresholds_law import check_thresholds

_ORDERS = "match /document/orders/order#o[@client = $c] return $c, count() as n having count() >= 3"

_ORDER_KEY = "key orders/order by @client trusted"


def _doc(
    query: str, call: str = "", facts: tuple[str, ...] = ()
) -> tuple[axlog.Document, axlog.View]:
    call = f'<ax:call xmlns:ax="urn:axlog" stream="orders"{call}/>'
    text = f"<document><orders>{call}</orders></document>"
    doc = axlog.parse(text, facts=list(facts))
    return doc, doc.watch(query)


def test_thresholds_against_brute_force() -> None:
    seen: Counter[str] = Counter()
    for seed in range(20):
        seen += check_thresholds(make_threshold_case(Random(seed)))
    for verdict in ("true", "possible", "never"):
        assert seen[f"truth {verdict}"], seen
        assert seen[f"row {verdict}"], seen


def test_a_count_that_grows() -> None:
    doc, view = _doc(_ORDERS)
    assert view.truth is Truth.POSSIBLE
    for number in range(3):
        assert view.status({"c": "X"}) is Truth.POSSIBLE
        assert [one.row for one in view.possible()][-1] == {"c": "X", "n": None} or not number
        doc.feed("orders", '<order client="X"/>')
    assert view.status({"c": "X"}) is Truth.TRUE
    assert view.status({"c": "X", "n": 2}) is Truth.NEVER
    assert view.status({"c": "X", "n": 4}) is Truth.POSSIBLE
    doc.end("orders")
    assert view.status({"c": "Y"}) is Truth.NEVER


def test_a_limit_on_trees_makes_a_threshold_never() -> None:
    doc, view = _doc(_ORDERS, ' most="4"')
    doc.feed("orders", '<order client="Y"/>')
    assert view.status({"c": "X"}) is Truth.POSSIBLE
    doc.feed("orders", '<order client="Y"/>')
    assert view.status({"c": "X"}) is Truth.NEVER
    assert view.status({"c": "Y"}) is Truth.POSSIBLE


def test_a_key_makes_a_threshold_never() -> None:
    query = (
        "match /document/orders/order[oid/$x]/line#l return $x, count() as n having count() >= 3"
    )
    doc, view = _doc(query, facts=("key orders/order by oid trusted",))
    doc.feed("orders", "<order><oid>17</oid><line/><line/></order>")
    assert view.status({"x": "17"}) is Truth.NEVER
    assert view.status({"x": "18"}) is Truth.POSSIBLE


def test_the_other_side_of_a_threshold_is_lost_for_good() -> None:
    query = (
        "match /document/orders/order#o[@client = $c] return $c, count() as n having count() < 2"
    )
    doc, view = _doc(query)
    assert view.status({"c": "X"}) is Truth.POSSIBLE
    doc.feed("orders", '<order client="X"/>')
    assert view.status({"c": "X"}) is Truth.TRUE
    doc.feed("orders", '<order client="X"/>')
    assert view.status({"c": "X"}) is Truth.NEVER


def test_a_key_wants_a_new_value_of_all_that_join_on_it() -> None:
    call = '<ax:call xmlns:ax="urn:axlog" stream="{}"{}/>'
    shop = f"<r><p>{call.format('f', '')}</p><q>{call.format('g', '{}')}</q></r>"
    query = "match /r[p/a#o[@i = $x]][q/d[@i = $x]] return count() as n"
    for limit, truth in ((' most="1"', Truth.NEVER), ("", Truth.POSSIBLE)):
        doc = axlog.parse(shop.format(limit), facts=["key p/a by @i trusted"])
        assert doc.watch(query).status({"n": 2}) is truth


def test_equal_arguments_of_a_key_do_not_come_twice() -> None:
    query = "match /document/orders/order#o[@client = $c] return count() as n, count(distinct $c)"
    view = _doc(query + " as m having n = 2 and m = 1", facts=(_ORDER_KEY,))[1]
    with pytest.raises(UndecidedError):
        assert view.truth is Truth.NEVER
    assert _doc(query + " as m having n = 2 and m = 1")[1].truth is Truth.POSSIBLE


def test_a_group_has_one_value_of_its_key() -> None:
    query = "match /document/orders/order#o[@client = $c] return $c, count(distinct $c) as n"
    view = _doc(query + " having count(distinct $c) >= 2")[1]
    assert view.truth is Truth.NEVER
    assert view.status({"c": "X"}) is Truth.NEVER
    view = _doc(query + " having count(distinct $c) >= 1")[1]
    assert view.truth is Truth.POSSIBLE


def test_the_clock_ends_a_threshold() -> None:
    query = "match /document/orders/order#t where t <= 10s return count() as n having count() >= 2"
    doc, view = _doc(query)
    doc.feed("orders", "<order/>", at=1)
    assert view.status({}) is Truth.POSSIBLE
    assert [one.deadline for one in view.possible()] == [10.0]
    doc.advance(11)
    assert view.truth is Truth.NEVER


def test_a_sum_of_numbers_that_are_not_negative_only_grows() -> None:
    query = (
        "match /document/orders/order[@client = $c]/total/$v where $v >= 0"
        " return $c, sum($v) as s having sum($v) < 100"
    )
    doc, view = _doc(query)
    doc.feed("orders", '<order client="X"><total>60</total></order>')
    assert view.status({"c": "X"}) is Truth.TRUE
    doc.feed("orders", '<order client="X"><total>60</total></order>')
    assert view.status({"c": "X"}) is Truth.NEVER
    doc, view = _doc(query.replace(" where $v >= 0", ""))
    doc.feed("orders", '<order client="X"><total>160</total></order>')
    assert view.status({"c": "X"}) is Truth.POSSIBLE  # by a negative total


@pytest.mark.parametrize(
    "query",
    [
        "match /document/orders/order[@client = $c]/total/$v return $c, avg($v) having avg($v) > 2",
        "match /document/orders/order[@client = $c] return $c order by $c limit 2",
        "match /document/orders/order[@client = $c][not(paid)] return count() having count() >= 2",
    ],
)
def test_what_is_not_decided_is_refused_by_name(query: str) -> None:
    _, view = _doc(query)
    with pytest.raises(UndecidedError) as refused:
        _ = view.truth
    assert refused.value.code == "AX503"


def test_a_case_from_the_fuzzer() -> None:
    case = ThresholdCase(
        '<r><p><ax:call xmlns:ax="urn:axlog" stream="f" most="3"/></p><q/></r>',
        "match /r/p/a#o[@i = $x] return $x as x, count() as n having count() >= 2",
        (("f", '<a i="1"/>', 0), ("f", '<a i="2"/>', 0)),
    )
    assert check_thresholds(case)["row possible"]


def test_an_or_brings_a_value_once() -> None:
    """A second `1` below the order makes no second tuple, so the sum stays 1."""
    call = '<ax:call xmlns:ax="urn:axlog" stream="more"/>'
    doc = axlog.parse(f"<r><a i='1'>{call}</a></r>")
    view = doc.watch(
        "match /r/a#o[@i = $x or k/$x] return $x as x, sum($x) as n having sum($x) >= 2"
    )
    assert view.status({"x": "1"}) is Truth.NEVER
    assert view.status({"x": "2"}) is Truth.POSSIBLE


def test_a_message_that_brings_two_tuples_skips_a_count() -> None:
    """An order joins both shipments of its client: the count goes from 0 to 2."""
    orders, shipped = (
        f'<ax:call xmlns:ax="urn:axlog" stream="{name}"/>' for name in ("orders", "shipped")
    )
    doc = axlog.parse(f"<r><p>{orders}</p><q>{shipped}</q></r>")
    view = doc.watch("match /r[p/a#o[@i = $x]][q/d#u[@i = $x]] return $x, count() as n")
    assert view.status({"x": "1", "n": 1}) is Truth.POSSIBLE
    doc.feed("shipped", '<d i="1"/><d i="1"/>')
    with pytest.raises(UndecidedError):
        view.status({"x": "1", "n": 1})
    doc.end("shipped")
    with pytest.raises(UndecidedError) as refused:
        view.status({"x": "1", "n": 1})
    assert refused.value.code == "AX503"
    doc.feed("orders", '<a i="1"/>')
    assert [row["n"] for row in view] == [2]
    assert view.status({"x": "1", "n": 1}) is Truth.NEVER


def test_a_key_limits_no_count_of_nodes_with_different_values() -> None:
    """The query does not return the value of the key, so every order may have another one."""
    query = "match /document/orders/order#o[@i = $x] return count() as n"
    doc, view = _doc(query, facts=("key orders/order by @i trusted",))
    with pytest.raises(UndecidedError) as refused:  # and not NEVER
        view.status({"n": 2})
    assert refused.value.code == "AX503"
    doc.feed("orders", '<order i="1"/>')
    doc.feed("orders", '<order i="2"/>')
    assert view.status({"n": 2}) is Truth.TRUE


@pytest.mark.parametrize(
    ("condition", "fed", "row", "wanted"),
    [
        ("count() >= 3", 2, "A", "rejects can still bring reject#r[@client = $c]"),
        ("count() >= 3", 3, "A", "the row is there"),
        ("count() < 2", 2, "A", "the condition of `having` can no longer hold"),
        ("count() >= 3", 3, "B", "rejects may bring at most 4 trees, and has brought 3"),
    ],
)
def test_a_row_of_a_group_has_its_reasons(condition: str, fed: int, row: str, wanted: str) -> None:
    doc = axlog.Document(streams={"rejects": {"most": "4"}})
    query = "match /document/rejects/reject#r[@client = $c] return $c, count() as n having "
    view = doc.watch(query + condition)
    for _ in range(fed):
        doc.feed("rejects", '<reject client="A"/>')
    why = view.why_not({"c": row})
    assert [str(reason) for reason in why.reasons] == [wanted]
    assert why.truth is view.status({"c": row})
    doc.end("rejects")
    if why.truth is not Truth.TRUE:
        ended = "rejects has ended, and no stream is open"
        assert [str(reason) for reason in view.why_not({"c": row}).reasons] == [ended]


def test_a_threshold_that_cannot_be_reached_is_a_never_change() -> None:
    doc = axlog.Document(streams={"orders": {"most": "4"}})
    view = doc.watch(_ORDERS, "often")
    said = "reported by the groups that can still come; messages are read as they arrive"
    assert view.explain().never == said
    emitted = [
        (client, change.op, change.row["c"])
        for number, client in enumerate("ABBA")
        for change in doc.feed("orders", f'<order client="{client}"/>', at=number)
    ]
    # After A, B, B one order is left: A cannot have three any more. Then B cannot either.
    assert emitted == [("B", "never", "A"), ("A", "never", "B")]
    plain = axlog.Document(streams=["orders"], views={"often": _ORDERS})
    assert "when a stream ends" in str(plain.view("often").explain().never)
    for client in "ABBB":
        plain.feed("orders", f'<order client="{client}"/>')
    assert never(plain.end("orders")) == [("A", None)]


def test_a_deadline_and_a_key_make_a_threshold_never() -> None:
    query = (
        "match /document[orders/order#t[@id = $x]][parts/part#u[@order = $x]]"
        " where u - t <= 2h return $x, count() as n having count() >= 2"
    )
    doc = axlog.Document(
        streams=["orders", "parts"], views={"v": query},
        facts=["key orders/order by @id trusted"],
    )  # fmt: skip
    for number in (1, 2):
        doc.feed("orders", f'<order id="{number}"/>', at=0)
    doc.feed("parts", '<part order="1"/>', at=1)
    assert [c.op for c in doc.feed("parts", '<part order="2"/><part order="2"/>', at=2)] == [
        "insert"
    ]
    assert doc.advance(2 * 3600) == []
    assert never(doc.advance(2 * 3600 + 1)) == [("1", None)]
    assert never(doc.feed("parts", '<part order="1"/>')) == []
    assert doc.end("orders") == []  # order 2 is there


def test_never_of_groups_by_its_definition() -> None:
    seen: Counter[str] = Counter()
    for seed in range(60):
        seen += check_threshold_never(make_threshold_never_case(Random(seed)))
    assert seen["never"] > 10, seen


def test_a_message_examines_the_groups_that_it_concerns(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[object] = []
    judge = GroupTracker._judge

    def noted(self: GroupTracker, key: tuple[object, ...]) -> Any:
        judged.append(key[0])
        return judge(self, key)

    monkeypatch.setattr(GroupTracker, "_judge", noted)
    query = (
        "match /document[orders/order#t[@id = $x]][parts/part#u[@order = $x]]"
        " where u - t <= 2h return $x, count() as n having count() >= 2"
    )
    facts = ["key orders/order by @id trusted"]
    doc = axlog.Document(streams=["orders", "parts"], views={"v": query}, facts=facts)
    for number in range(40):
        doc.feed("orders", f'<order id="{number}"/>', at=number)
    judged.clear()
    doc.feed("parts", '<part order="7"/>', at=40)
    doc.feed("orders", '<order id="40"/>', at=41)
    assert set(judged) == {"7", "40"}
    judged.clear()
    assert never(doc.advance(7202)) == [("0", None), ("1", None)]
    assert set(judged) == {"0", "1"}


def never(changes: list[axlog.Change]) -> list[tuple[Any, ...]]:
    return [change.row.values_ for change in changes if change.op == "never"]


@pytest.mark.parametrize(
    ("limits", "query", "steps"),
    [
        (
            ('most="3"', 'most="2"'),
            "match /r[p/a#o[@i = $x]][q/d#u[@i = $x]] return $x as x, min($x) as n",
            (("g", '<d i="2"><k>1</k></d>', 1), ("f", '<a i="2"><v>0</v><w/></a>', 1)),
        ),
        (("", 'mode="one-shot"'), "match /r/p/a#o[@i = $x] return $x as x, sum($x) as n", ()),
    ],
)
def test_groups_of_values_that_the_sum_needs_are_possible(
    limits: tuple[str, str], query: str, steps: tuple[tuple[str, str, int], ...]
) -> None:
    """Two values of 0.5 have the sum 1: the oracle tried none."""
    first, second = limits
    document = (
        f'<r><p><ax:call xmlns:ax="urn:axlog" stream="f" {first}/></p>'
        f'<q><ax:call xmlns:ax="urn:axlog" stream="g" {second}/></q></r>'
    )
    text = f"{query} having count() >= 2"
    check_thresholds(ThresholdCase(document, text, steps, (), is_typed=False, clock=0))
