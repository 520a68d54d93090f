"""Views that differ in constants share a plan, and have what they have alone."""

from dataclasses import asdict
from random import Random

import pytest

import axlog
from axlog.document.parser import DEFAULT_LIMITS
from axlog.errors import QueryError
from axlog.live.internals import maintained
from axlog.live.log_records import settings_of
from axlog.live.recovery import load_parts, snapshot_parts
from lab.laws.shared_law import check_shared, make_shared_case

QUERY = (
    'match /document[orders/order[client/"{}"]/oid/$x#o][shipped/order/oid/$x#s]'
    " where s - o > 0 and s - o <= 5 return $x"
)
ALERT = "match /document/orders/order[price > {}]/oid/$x return $x"


def order(client: str, oid: int, price: int = 1) -> str:
    return f"<order><client>{client}</client><oid>{oid}</oid><price>{price}</price></order>"


def watched(count: int, query: str = QUERY, **options: object) -> axlog.Document:
    doc = axlog.Document(streams=["orders", "shipped"], options=axlog.Options(**options))  # type: ignore[arg-type]
    for number in range(count):
        doc.watch(query.format(number), f"v{number}")
    return doc


def told(changes: list[axlog.Change]) -> list[tuple[str | None, str, tuple[object, ...]]]:
    return [(change.view, change.op, tuple(change.row.values())) for change in changes]


@pytest.mark.parametrize("seed", range(12))
def test_members_have_what_they_have_alone(seed: int) -> None:
    check_shared(make_shared_case(Random(seed)))


def test_views_of_one_shape_are_one_program() -> None:
    doc = watched(40)
    assert len(maintained(doc).views) == 1
    assert list(doc.views) == [f"v{number}" for number in range(40)]
    doc.feed("orders", order("3", 17), at=1)
    assert told(doc.feed("shipped", "<order><oid>17</oid></order>", at=2)) == [
        ("v3", "insert", ("17",))
    ]
    assert [row["x"] for row in doc.view("v3")] == ["17"]
    assert len(doc.view("v4")) == 0


def test_few_views_stay_alone() -> None:
    assert len(maintained(watched(7)).views) == 7


def test_views_stay_alone_where_rows_that_nobody_watches_would_be_kept() -> None:
    assert len(maintained(watched(9, keep="needed")).views) == 9
    assert len(maintained(watched(9, share="off")).views) == 9


def test_explain_names_the_plan_its_parameters_and_its_views() -> None:
    shared = watched(9).view("v3").explain().shared
    assert shared is not None
    assert shared.startswith("one plan for 9 views: match /document[orders/order[client[text() = ")
    assert shared.endswith("parameters: $parameter~1 = a text")


def test_a_threshold_concerns_the_views_below_the_value() -> None:
    doc = watched(40, ALERT)
    changes = doc.feed("orders", order("a", 17, price=3), at=1)
    assert told(changes) == [(f"v{number}", "insert", ("17",)) for number in range(3)]


def test_watching_one_more_evaluates_nothing_and_finds_its_rows() -> None:
    doc = watched(10)
    doc.feed("orders", order("77", 17), at=1)
    doc.feed("shipped", "<order><oid>17</oid></order>", at=2)
    engine = maintained(doc).engine
    before = engine.version, engine.visited
    late = doc.watch(QUERY.format(77), "late")
    assert [row["x"] for row in late] == ["17"]
    assert (engine.version, engine.visited) == before


def test_the_last_member_takes_the_plan_with_it() -> None:
    doc = watched(10)
    for number in range(10):
        doc.unwatch(f"v{number}")
    assert not maintained(doc).views
    assert not doc.views


def test_a_name_is_used_once() -> None:
    doc = watched(10)
    with pytest.raises(QueryError) as caught:
        doc.watch(QUERY.format(50), "v3")
    assert caught.value.code == "AX202"


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_a_snapshot_keeps_members_their_rows_and_positions(keep: str) -> None:
    doc = watched(12, keep=keep, share="always")
    doc.feed("orders", order("3", 17), at=1)
    doc.feed("orders", order("4", 18), at=1)
    doc.feed("shipped", "<order><oid>17</oid></order>", at=2)
    parts = snapshot_parts(
        doc, settings_of("", {"keep": keep, "share": "always"}, asdict(DEFAULT_LIMITS)), {}
    )
    again = load_parts(parts, 1).document
    assert len(maintained(again).views) == 1
    assert [row["x"] for row in again.view("v3")] == ["17"]
    assert again.view("v3").position == 1
    assert told(again.feed("shipped", "<order><oid>18</oid></order>", at=3)) == [
        ("v4", "insert", ("18",))
    ]
