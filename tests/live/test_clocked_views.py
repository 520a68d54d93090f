"""Views about the clock in a document: rows appear and disappear as time passes, once each."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import axlog
from axlog.document.tree import Tree
from axlog.errors import QueryError, UndecidedError
from axlog.future.clock_outlook import ClockOutlook
from axlog.live.internals import maintained
from axlog.query.query import Query
from axlog.views.change import Change

SHOP = """<shop xmlns:ax="urn:axlog"><orders><ax:call stream="orders"/></orders>
<shipped><ax:call stream="shipped"/></shipped></shop>"""
LATE = "match /shop[orders/order/$x#t][not(shipped/order/$x)] where now - t >= 2h return $x"
RECENT = "match /shop/orders/order/$x#t where now - t <= 1h return count() as n"


def _said(changes: list[Change]) -> list[tuple[Any, ...]]:
    return [
        (c.view, c.op, *c.row.values(), c.time, c.cause.kind if c.cause else None) for c in changes
    ]


@pytest.fixture(params=["all", "needed"])
def shop(request: pytest.FixtureRequest) -> axlog.Document:
    return axlog.Document(SHOP, options=axlog.Options(keep=request.param))


def test_a_row_appears_at_its_moment_and_goes_with_the_data(shop: axlog.Document) -> None:
    view = shop.watch(LATE, "late")
    assert shop.feed("orders", "<order>1</order>", at=0) == []
    assert shop.feed("orders", "<order>2</order>", at=60) == []
    in_time = shop.feed("shipped", "<order>1</order>", at=3000)
    assert _said(in_time) == [("late", "never", "1", 3000, "message")]
    assert _said(shop.advance(9000)) == [("late", "insert", "2", 7260, "clock")]
    assert [row["x"] for row in view.rows()] == ["2"]
    gone = shop.feed("shipped", "<order>2</order>", at=9000)
    assert _said(gone) == [("late", "delete", "2", 9000, "message")]
    assert shop.advance(90000) == []


def test_the_changes_of_the_clock_precede_those_of_the_message_that_moved_it(
    shop: axlog.Document,
) -> None:
    shop.watch(LATE, "late")
    shop.feed("orders", "<order>1</order>", at=0)
    changes = shop.feed("shipped", "<order>1</order>", at=8000)
    assert _said(changes) == [
        ("late", "insert", "1", 7200, "clock"),
        ("late", "delete", "1", 8000, "message"),
    ]
    assert [change.position for change in changes] == [1, 2]


@pytest.mark.parametrize("root", ["/shop", "/*"])
def test_the_future_of_an_overdue_view_is_read_from_its_join(
    shop: axlog.Document, root: str
) -> None:
    view = shop.watch(LATE.replace("/shop", root), "late")
    assert view.explain().never == "reported by the join's state as messages arrive"
    for number, at in ((1, 0), (2, 60), (3, 90)):
        shop.feed("orders", f"<order>{number}</order>", at=at)
    shop.advance(7230)
    shop.feed("shipped", "<order>3</order>", at=7230)
    asked = {number: view.status({"x": number}).value for number in "1239"}
    assert asked == {"1": "true", "2": "possible", "3": "never", "9": "possible"}
    waits, starts = view.possible()
    assert (waits.row["x"], waits.needs, waits.since) == ("2", (), 7260)
    assert (starts.row["x"], starts.needs[0].stream) == (None, "orders")
    assert view.possible(limit=1) in ([waits], [starts])
    assert _said(shop.feed("shipped", "<order>2</order>", at=7231)) == [
        ("late", "never", "2", 7231, "message")
    ]
    assert shop.end("orders", at=7232) == []  # a row is there
    assert view.status({}).value == "true"
    shop.feed("shipped", "<order>1</order>", at=7233)
    assert view.truth.value == "never"
    with pytest.raises(QueryError, match="no column y"):
        view.status({"y": "1"})


def test_a_window_counts_what_is_in_it(shop: axlog.Document) -> None:
    view = shop.watch(RECENT, "recent")
    for number, at in enumerate((0, 600, 4000)):
        shop.feed("orders", f"<order>{number}</order>", at=at)
    assert [row["n"] for row in view.rows()] == [2]
    assert _said(shop.advance(10000)) == [
        ("recent", "update", 1, 4200.000001, "clock"),
        ("recent", "update", 0, 7600.000001, "clock"),
    ]


def test_a_not_about_the_clock_ends_by_itself(shop: axlog.Document) -> None:
    shop.watch("match /shop[orders/order/$x][not(shipped/order#h/$x)] where now - h <= 1h "
               "return $x", "quiet")  # fmt: skip
    assert _said(shop.feed("orders", "<order>1</order>", at=0))[0][:3] == ("quiet", "insert", "1")
    assert _said(shop.feed("shipped", "<order>1</order>", at=10))[0][:3] == ("quiet", "delete", "1")
    shop.feed("shipped", "<order>1</order>", at=3000)
    assert _said(shop.advance(9000)) == [("quiet", "insert", "1", 6600.000001, "clock")]


def test_a_batch_nets_nothing_that_the_clock_causes(shop: axlog.Document) -> None:
    heard: list[Change] = []
    shop.watch(LATE, "late").subscribe(heard.append)
    with shop.batch():
        shop.feed("orders", "<order>1</order>", at=0)
        shop.advance(8000)
        shop.feed("shipped", "<order>1</order>", at=8001)
    assert [said[1:5] for said in _said(heard)] == [
        ("insert", "1", 7200, "clock"),
        ("delete", "1", 8001, "message"),
    ]


def test_a_batch_that_fails_returns_to_its_clock(shop: axlog.Document) -> None:
    heard: list[Change] = []
    shop.watch(LATE, "late").subscribe(heard.append)
    shop.feed("orders", "<order>1</order>", at=0)
    with suppress(ZeroDivisionError), shop.batch():
        shop.advance(8000)
        raise ZeroDivisionError
    assert heard == []
    assert shop.clock == 0
    assert _said(shop.advance(8000)) == [("late", "insert", "1", 7200, "clock")]


def test_a_refused_message_passes_no_time() -> None:
    doc = axlog.Document(SHOP)
    doc.watch(LATE, "late")
    doc.watch("match //order/$x return sum($x) as s", "sum", on_value_error="reject")
    doc.feed("orders", "<order>1</order>", at=0)
    with pytest.raises(axlog.AxlogError):
        doc.feed("orders", "<order>x</order>", at=8000)
    assert (doc.clock, len(doc.view("late"))) == (0, 0)
    assert _said(doc.feed("orders", "<order>2</order>", at=8000))[0] == (
        "late", "insert", "1", 7200, "clock",
    )  # fmt: skip


def test_values_that_time_brings_cannot_be_rejected() -> None:
    doc = axlog.Document(SHOP)
    query = "match //order/$x#t where now - t > 5 return sum($x) as s"
    with pytest.raises(QueryError, match="no update can be refused") as caught:
        doc.watch(query, on_value_error="reject")
    assert caught.value.code == "AX211"


def test_a_deferred_view_is_netted_by_what_it_is_when_read() -> None:
    doc = axlog.Document(SHOP)
    heard: list[Change] = []
    view = doc.watch(RECENT.replace("count() as n", "$x"), "recent")
    view.subscribe(heard.append)
    view.defer()
    doc.feed("orders", "<order>1</order>", at=0)
    doc.advance(5000)
    doc.feed("orders", "<order>2</order>", at=5000)
    assert [row["x"] for row in view.rows()] == ["2"]
    assert [(c.op, c.row["x"], c.cause) for c in heard] == [("insert", "2", None)]


def test_rows_that_no_clock_concerns_are_not_kept() -> None:
    doc = axlog.Document(SHOP, options=axlog.Options(keep="needed"))
    doc.watch(LATE, "late")
    doc.watch(RECENT, "recent")
    for number in range(50):
        doc.feed("orders", f"<order>{number}</order>", at=number)
    doc.advance(20000)
    for view in maintained(doc).views.values():
        assert view.maintainer.next_moment() is None
    lines = "\n".join(maintained(doc).views["recent"].maintainer.operators())
    assert "clock filter (t.time): 1 rows" in lines  # the clock itself


def test_a_store_continues_where_it_was(tmp_path: Path) -> None:
    with axlog.open(tmp_path / "shop", SHOP) as doc:
        doc.watch(LATE, "late")
        doc.watch(RECENT, "recent")
        doc.feed("orders", "<order>1</order>", at=0)
        doc.feed("orders", "<order>2</order>", at=4000)
    with axlog.open(tmp_path / "shop") as doc:
        assert [row["n"] for row in doc.view("recent").rows()] == [1]
        assert _said(doc.advance(7300)) == [("late", "insert", "1", 7200, "clock")]
    with axlog.open(tmp_path / "shop") as doc:
        assert [row["x"] for row in doc.view("late").rows()] == ["1"]
        assert _said(doc.advance(9000)) == [("recent", "update", 0, 7600.000001, "clock")]


def test_retained_changes_have_their_moments() -> None:
    doc = axlog.Document(SHOP, options=axlog.Options(retain_changes=10))
    view = doc.watch(LATE, "late")
    doc.feed("orders", "<order>1</order>", at=0)
    position = view.position
    doc.advance(8000)
    found: list[Change] = []
    view.subscribe(found.append, since=position)
    assert [change.to_dict()["cause"] for change in found] == [{"kind": "clock"}]
    assert [change.time for change in found] == [7200]


def test_a_deletion_is_final_only_if_time_brings_nothing_back() -> None:
    doc = axlog.Document(SHOP)
    doc.watch("match /shop/orders/order/$x#t where now - t != 5 return $x", "gap")
    doc.feed("orders", "<order>1</order>", at=0)
    doc.end("orders")
    doc.end("shipped")
    gone, back = doc.advance(100)
    assert (gone.op, gone.time, back.op, back.time) == ("delete", 5, "insert", 5.000001)
    assert not gone.final


def test_the_future_of_a_view_about_the_clock_with_groups_is_refused() -> None:
    doc = axlog.Document(SHOP)
    view = doc.watch(RECENT, "recent")
    with pytest.raises(UndecidedError) as caught:
        view.possible()
    assert caught.value.code == "AX502"


def test_why_says_when_the_clock_ends_a_group_of_a_window() -> None:
    doc = axlog.Document(SHOP)
    view = doc.watch(
        "match /shop/orders/order#t[client/$c] where now - t <= 1h "
        "return $c, count() as n having count() > 1",
        "busy",
    )
    for number, at in enumerate((0, 10, 20)):
        doc.feed("orders", f"<order><client>7</client>{number}</order>", at=at)

    def reasons(row: dict[str, object]) -> list[str]:
        found = view.why_not(row)
        assert found.truth is axlog.Truth.TRUE
        return [str(each) for each in found.reasons]

    assert reasons({"c": "7", "n": 3}) == ["the row is there", "the clock ends it at 3600.000001"]
    assert reasons({"c": "7"}) == ["the row is there", "the clock ends it at 3610.000001"]
    with pytest.raises(UndecidedError) as caught:
        view.why_not({"c": "8"})
    assert caught.value.code == "AX502"


# The future ---------------------------------------------------------------------------------------


def _asked(doc: axlog.Document, view: str, *values: str) -> list[str]:
    return [doc.view(view).status({"x": value}).value for value in values]


def test_the_status_of_rows_about_the_clock() -> None:
    doc = axlog.Document(SHOP)
    view = doc.watch(LATE, "late")
    doc.feed("orders", "<order>1</order>", at=0)
    doc.feed("orders", "<order>2</order>", at=60)
    doc.feed("shipped", "<order>1</order>", at=3000)
    assert _asked(doc, "late", "1", "2", "3") == ["never", "possible", "possible"]
    waiting, coming = view.possible()
    assert waiting.to_dict() == {"row": {"x": "2"}, "needs": [], "since": 7260}
    assert (coming.row, coming.since) == ({"x": None}, None)
    assert str(view.why_not({"x": "2"})) == "possible\n  it holds from 7260 on"
    doc.advance(7260)
    assert _asked(doc, "late", "1", "2") == ["never", "true"]
    (derivation,) = view.why({"x": "2"})
    assert derivation.matched[-1].path == "/shop/orders/order[2]/text()"


def test_why_says_what_ends_a_row_about_the_clock() -> None:
    doc = axlog.Document(SHOP)
    late = doc.watch(LATE, "late")
    path = "match /shop/orders/order#t/$x where now - t"
    recent, old = doc.watch(f"{path} <= 3h return $x"), doc.watch(f"{path} >= 1h return $x")
    silent = doc.watch(
        "match /shop[orders/order/$x][not(shipped/order#h/$x)] where now - h <= 5m return $x"
    )
    doc.feed("orders", "<order>1</order>", at=0)
    doc.feed("shipped", "<order>1</order>", at=1)
    doc.feed("orders", "<order>2</order>", at=60)
    doc.advance(7300)

    def ends(view: axlog.View, x: str) -> list[str]:
        found = view.why_not({"x": x})
        assert (found.truth, found.reasons[0].kind) == (axlog.Truth.TRUE, "holds")
        return [str(each) for each in found.reasons[1:]]

    shipped = "it stays until shipped brings <order>2</order>"
    assert ends(late, "2") == [shipped]
    assert ends(recent, "1") == ["the clock ends it at 10800.000001"]
    assert ends(old, "1") == ["nothing that may still come ends it"]
    assert ends(silent, "1") == ["it stays until shop/shipped/order#h/$x comes"]
    doc.end("shipped")
    assert ends(late, "2") == ["nothing that may still come ends it"]


def test_a_row_that_time_brings_may_be_brought_by_data_later() -> None:
    doc = axlog.Document(SHOP)
    view = doc.watch("match /shop/orders/order#t where now - t = 1h")
    doc.feed("orders", "<order>1</order>", at=0)
    assert [one.to_dict() for one in view.possible()] == [{"row": {}, "needs": [], "since": 3600}]
    doc.end("orders")
    assert [one.deadline for one in view.possible()] == [3600]


def test_rows_with_moments_of_their_own_are_each_judged_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    doc = axlog.Document(SHOP)
    view = doc.watch("match /shop/orders/order#t/$x where now - t = 1h return $x")
    for number in range(6):
        doc.feed("orders", f"<order>{number}</order>", at=number)
    doc.end("orders")
    made = list[object]()
    before = ClockOutlook.__init__

    def count(self: ClockOutlook, tree: Tree, query: Query) -> None:
        made.append(self)
        before(self, tree, query)

    monkeypatch.setattr(ClockOutlook, "__init__", count)
    assert [one.deadline for one in view.possible()] == [3600 + number for number in range(6)]
    assert len(made) <= 7


def test_a_window_that_has_passed_is_never_if_nothing_else_can_bring_it() -> None:
    doc = axlog.Document(SHOP, facts=["key orders/order by oid trusted"])
    query = "match /shop[orders/order#t/oid/$x][shipped/order/oid/$x] where now - t <= 1h return $x"
    view = doc.watch(query, "fast")
    doc.feed("orders", "<order><oid>1</oid></order>", at=0)
    assert _asked(doc, "fast", "1") == ["possible"]
    (one,) = [each for each in view.possible() if each.row == {"x": "1"}]
    assert one.deadline == 3600
    doc.advance(3600)
    assert _asked(doc, "fast", "1") == ["possible"]
    doc.advance(3601)
    assert _asked(doc, "fast", "1", "2") == ["never", "possible"]


def test_a_not_about_the_clock_delays_and_does_not_prevent() -> None:
    doc = axlog.Document(SHOP)
    query = "match /shop[orders/order/$x][not(shipped/order#h/$x)] where now - h <= 1h return $x"
    view = doc.watch(query, "quiet")
    doc.feed("orders", "<order>1</order>", at=0)
    doc.feed("shipped", "<order>1</order>", at=3000)
    assert _asked(doc, "quiet", "1") == ["possible"]
    assert [one.since for one in view.possible() if one.row == {"x": "1"}] == [6600.000001]
    doc.end("orders")
    assert _asked(doc, "quiet", "1", "2") == ["possible", "never"]


def test_never_changes_of_a_view_about_the_clock() -> None:
    doc = axlog.Document(SHOP, options=axlog.Options(never="all"))
    view = doc.watch(LATE.replace(" return", " and now - t <= 3h return"), "late")
    assert "possible rows" in str(view.explain())
    doc.feed("orders", "<order>1</order>", at=0)
    changes = doc.feed("shipped", "<order>1</order>", at=3000)
    assert [(c.op, c.row["x"], c.time) for c in changes] == [("never", "1", 3000)]
    assert doc.advance(9000) == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("match //order#t/$x where 2*now - t <= 5 return $x", "factor"),
        ("match //order/$x where now <= $x return $x", "values"),
        ("match /shop[orders/order#t/$x][not(shipped/order#h/$x)] where now - h >= 5 return $x",
         "may last"),
        ("match /shop[orders/order#t/$x][not(shipped/order#h/$x)]"
         " where now - h <= 5, now - t <= 9 return $x", "outlast"),
        ("match //order/$x#t where now - t > 5 return $x order by $x limit 1", "order"),
    ],
)  # fmt: skip
def test_futures_that_are_not_decided_are_refused_by_name(query: str, said: str) -> None:
    doc = axlog.Document(SHOP)
    view = doc.watch(query, "v")
    with pytest.raises(UndecidedError, match=said) as caught:
        view.status({"x": "1"})
    assert caught.value.code == "AX502"
    doc.end("orders")
    doc.end("shipped")
    if "order by" not in query:
        assert view.status({"x": "1"}).value == "never"


def test_the_future_of_a_view_that_shows_contents() -> None:
    doc = axlog.Document(SHOP, options=axlog.Options(never="all"))
    view = doc.watch("match //order#t where now - t >= 5 return t.val", "v")
    doc.feed("orders", "<order>1</order>", at=0)
    assert [one.since for one in view.possible() if not one.needs] == [5]
    assert [(c.op, c.row["t.val"], c.time) for c in doc.advance(9)] == [("insert", "1", 5)]
    assert view.status({"t.val": "1"}).value == "true"


WINDOW = "match /shop/orders/order/$x#t where now - t <= 1h return $x, count() as n"


def test_the_future_of_groups_in_a_window_is_that_of_their_keys() -> None:
    shop = axlog.Document(SHOP, options=axlog.Options(never="all"))
    view = shop.watch(WINDOW, "recent")
    for at, order in ((0, 1), (60, 1), (120, 2)):
        shop.feed("orders", f"<order>{order}</order>", at=at)
    shop.end("orders", at=130)
    assert [view.status({"x": x}).value for x in "123"] == ["true", "true", "never"]
    assert view.status({"x": "1", "n": 2}).value == "true"
    with pytest.raises(UndecidedError, match="an aggregate over a window"):
        view.status({"x": "1", "n": 1})
    shop.advance(3661)
    assert [row.values_ for row in view.rows()] == [("2", 1)]
    assert view.status({"x": "1"}).value == "never"
    assert view.status({"x": "1", "n": 1}).value == "never"
    shop.advance(9000)
    assert view.truth.value == "never"
    assert view.possible() == []


def test_a_condition_on_groups_in_a_window_is_refused_by_name_unless_the_keys_never_come() -> None:
    shop = axlog.Document(SHOP)
    view = shop.watch(f"{WINDOW} having count() >= 2", "busy")
    shop.feed("orders", "<order>1</order>", at=0)
    with pytest.raises(UndecidedError, match="a condition on the groups"):
        view.status({"x": "1"})
    assert "a condition on the groups" in str(view.explain())
    shop.feed("orders", "<order>1</order>", at=1)
    assert view.status({"x": "1"}).value == "true"
    shop.end("orders", at=2)
    assert view.status({"x": "7"}).value == "never"


def test_rows_that_are_there_need_no_analysis() -> None:
    shop = axlog.Document(SHOP, options=axlog.Options(keep="needed"))
    view = shop.watch("match /shop/orders/order/$x return $x, count() as n", "groups")
    shop.feed("orders", "<order>1</order>", at=0)
    assert view.status({"x": "1"}).value == "true"
    for stream in ("orders", "shipped"):
        shop.end(stream, at=1)
    assert view.status({"x": "2"}).value == "never"


def test_an_overdue_order_that_ships_is_gone_for_good(shop: axlog.Document) -> None:
    view = shop.watch(LATE, "late")
    shop.watch(LATE.replace("now - t >= 2h", "now - t >= 2h and now - t <= 9h"), "window")
    for number in (1, 2, 3):  # 3 still waits for its moment
        shop.feed("orders", f"<order>{number}</order>", at=number * 3600)
    shop.advance(4 * 3600)
    gone = {c.view: c.final for c in shop.feed("shipped", "<order>1</order>", at=4 * 3600)}
    assert gone == {"late": True, "window": False}  # time takes rows of a window away
    assert view.status({"x": "1"}).value == "never"
    (passed,) = (c for c in shop.advance(100 * 3600) if c.op == "delete" and c.row["x"] == "2")
    assert (passed.view, passed.final) == ("window", False)
