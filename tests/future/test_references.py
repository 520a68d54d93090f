"""Declared references (`every ... refers ...`): verdicts, rejection, collection."""

from random import Random

import pytest

import axlog
from axlog import Truth
from axlog.errors import StreamError, UndecidedError
from axlog.future.references import ForeignKey, parse_declared
from axlog.live.internals import maintained, streams_of
from axlog.views.counting.waiting_rows import WaitingRows
from lab.laws.absence_cases import AbsenceCase, make_reference_case
from lab.laws.absence_law import check_absence

_CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
_ORDERS, _SHIPPED = (_CALL.format(stream) for stream in ("orders", "shipped"))
_SHOP = f"<shop><orders>{_ORDERS}</orders><shipped>{_SHIPPED}</shipped></shop>"
_FACT = "every shipped/order by oid refers orders/order by oid trusted"
_KEYS = ("key orders/order by oid trusted", "key shipped/order by oid trusted")


def _order(number: int) -> str:
    return f"<order><oid>{number}</oid></order>"


def test_references_against_brute_force() -> None:
    decided = 0
    for seed in range(12):
        seen = check_absence(make_reference_case(Random(seed)))
        decided += seen["row possible"] + seen["row never"]
    assert decided


def test_the_text_of_a_reference() -> None:
    fact = parse_declared(_FACT)
    assert isinstance(fact, ForeignKey)
    assert str(fact) == _FACT
    with pytest.raises(axlog.errors.QueryError) as refused:
        parse_declared("every shipped/order refers orders/order")
    assert refused.value.code == "AX201"


def test_a_row_that_refers_to_nothing_is_never() -> None:
    doc = axlog.parse(_SHOP, facts=[_FACT])
    view = doc.watch("match /shop/shipped/order/oid/$x return $x")
    doc.feed("orders", _order(17))
    assert view.status({"x": "18"}) is Truth.POSSIBLE
    assert {w.stream for w in view.possible()[0].needs} == {"orders", "shipped"}
    doc.end("orders")
    assert view.status({"x": "17"}) is Truth.POSSIBLE
    assert view.status({"x": "18"}) is Truth.NEVER
    assert [one.row for one in view.possible()] == [{"x": "17"}]


def test_a_node_does_not_come_before_what_it_refers_to() -> None:
    doc = axlog.parse(_SHOP, facts=[_FACT, *_KEYS])
    early = "match /shop[orders/order/oid#t1/$x][shipped/order/oid#t2/$x] where t2 < t1 return $x"
    assert doc.watch(early).truth is Truth.NEVER


def test_messages_with_one_time_arrive_in_any_order() -> None:
    """What a shipment refers to may come on a stream with a later name, at the same time."""
    fact = _FACT.replace("trusted", "enforced")
    text = f"<shop><orders><order>{_CALL.format('z')}</order></orders><shipped>{_SHIPPED}</shipped>"
    doc = axlog.parse(f"{text}</shop>", facts=[fact])
    query = "match /shop[orders/order/oid#t/$x][shipped/order#u[oid/$x][not(late)]] where t = u"
    view = doc.watch(f"{query} return $x")
    assert view.status({"x": "17"}) is Truth.POSSIBLE
    doc.feed("z", "<oid>17</oid>", at=2)
    doc.feed("shipped", _order(17), at=2)
    assert [row["x"] for row in view] == ["17"]


def test_a_case_from_the_fuzzer_with_messages_of_one_time() -> None:
    inside, f, g = (_CALL.format(stream) for stream in "ifg")
    case = AbsenceCase(
        f"<r><p><a><k>2</k><w/>{inside}</a>{f}</p><q>{g}</q></r>",
        "match /r[p[a/k/$x or e/$x]][q/d#u[k/$x][not(v)]] return $x",
        (("f", "<a><k>1</k></a>", 2),),
        ("every q/d by k refers p/a by k trusted",),
    )
    assert check_absence(case)["row possible"]


def test_a_reference_beside_not() -> None:
    doc = axlog.parse(_SHOP, facts=[_FACT])
    lost = doc.watch("match /shop[shipped/order/oid/$x][not(orders/order/oid/$x)] return $x")
    unshipped = doc.watch("match /shop[orders/order/oid/$x][not(shipped/order/oid/$x)] return $x")
    assert lost.truth is Truth.NEVER
    assert unshipped.truth is Truth.POSSIBLE


def test_an_enforced_reference_rejects_a_value_that_refers_to_nothing() -> None:
    doc = axlog.parse(_SHOP, facts=[_FACT.replace("trusted", "enforced")])
    view = doc.watch("match /shop/shipped/order/oid/$x return $x")
    with pytest.raises(StreamError) as refused:
        doc.feed("shipped", _order(17))
    assert refused.value.code == "AX421"
    doc.feed("orders", _order(17))
    doc.feed("shipped", _order(17))
    assert [row["x"] for row in view] == ["17"]


@pytest.mark.parametrize(
    "query",
    [
        "match /shop[orders/order or shipped/order/oid/$x] return orders.id",
        "match /shop/*/order/oid/$x return $x",
    ],
)
def test_what_is_not_covered_is_refused_by_name(query: str) -> None:
    doc = axlog.parse(_SHOP, facts=[_FACT])
    query = query.replace(" return orders.id", "").replace("/oid/$x]", "/oid]")
    with pytest.raises(UndecidedError) as refused:
        _ = doc.watch(query).truth
    assert refused.value.code == "AX503"


def test_a_reference_lets_key_values_go() -> None:
    """Orders that never ship leave nothing behind: a late shipment refers to one that has come."""
    query = "match /shop[orders/order#t1/oid/$x][shipped/order#t2/oid/$x]"
    query += " where t2 - t1 <= 10 return $x"
    random, changes, stored = Random(1), [], []
    events = []
    for number in range(200):
        events.append((number, "orders", number))
        if random.random() < 0.3:
            events.append((number + random.choice((1, 5, 30)), "shipped", number))
    for facts in (_KEYS, (*_KEYS, _FACT)):
        doc = axlog.parse(_SHOP, facts=list(facts), views={"v": query})
        told = []
        for at, stream, number in sorted(events):
            told += [(c.op, c.row["x"]) for c in doc.feed(stream, _order(number), at=at)]
        changes.append(told)
        engine = maintained(doc).engine
        joins = [state.join.waiting for node in engine.sites() for state in engine.states_at(node)]
        waiting = [join for join in joins if isinstance(join, WaitingRows)]
        stored.append(sum(len(seen or ()) for join in waiting for seen in join.seen))
    assert streams_of(doc) is not None
    assert changes[0] == changes[1]
    assert stored[0] > 100
    assert stored[1] == 0


def test_a_reference_is_a_reason() -> None:
    doc = axlog.parse(
        _SHOP, facts=[_FACT], views={"v": "match /shop/shipped/order/oid/$x return $x"}
    )
    view = doc.view("v")
    assert view.why_not({"x": "17"}).truth is Truth.POSSIBLE
    doc.end("orders")
    (reason,) = view.why_not({"x": "17"}).reasons
    assert (reason.kind, _FACT in reason.text) == ("reference", True)
