"""Keys of rows, and the envelopes of changes."""

from __future__ import annotations

import json

import pytest

from axlog.document.ids import Id
from axlog.errors import ChannelError, QueryError
from axlog.live.document import Document, parse
from axlog.live.options import Options
from axlog.query.query import parse_query
from axlog.views.change import CLOCK, Cause, Change, Op, Row
from axlog.views.net_changes import net

IDS = "match /document/orders/order/oid/$x return $x"
ON_TIME = (
    "match /document[orders/order/oid#a/$x][shipments/order/oid#b/$x] where b - a <= 10 return $x"
)
KEYS = ["key orders/order by oid trusted", "key shipments/order by oid trusted"]


def order(number: int) -> str:
    return f"<order><oid>{number}</oid></order>"


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("match //a/$x return $x", ("x",)),
        ("match //a#t/$x return $x as name, t.time", ("name", "t.time")),
        ("match //a#t return t.val", ("t.id",)),
        ("match //a#t return t.id as node, t.val, t.cont", ("node",)),
        ("match //a#t/b#u return t.val, u.cont, u.id", ("t.id", "u.id")),
        ('match //a#t/$x return $x as "t.id", t.val', ("t.id", "t.id~")),
        ("match //a", ()),
        ("match //a#t[collect(b#u)] return u.val", ("t.id",)),
        ("match //a[collect(b#u)] return u.val", ("from~1.id",)),
        ("match collect(//b#u) return u.val", ()),
        ("//a", ("id",)),
    ],
)
def test_a_key_has_plain_outputs_and_the_ids_of_nodes(query: str, key: tuple[str, ...]) -> None:
    found = parse_query(query).row_key
    if query.startswith("match"):
        assert found.names == key
    else:
        assert len(found.names) == 1
    assert found.is_all == (found.names == parse_query(query).pattern.columns)


def test_rows_that_show_the_same_have_different_keys() -> None:
    document = parse("<r><a>1</a><a>1</a></r>")
    view = document.watch("match //a#t return t.val")
    assert [(dict(row), row.key, row.key_text) for row in view.rows()] == [
        ({"t.val": "1"}, (Id.parse("1.1"),), '["1.1"]'),
        ({"t.val": "1"}, (Id.parse("1.2"),), '["1.2"]'),
    ]
    (changed,) = document.update("replace value of node /r/a[2] with '5'")
    assert (changed.op, changed.key_text) == ("update", '["1.2"]')
    (gone,) = document.update("delete node /r/a[1]")
    assert (gone.op, gone.key_text, dict(gone.row)) == ("delete", '["1.1"]', {"t.val": "1"})


def test_the_text_of_a_key_is_a_compact_json_array() -> None:
    options = Options(times="dates")
    document = Document(streams=["s"], options=options)
    view = document.watch("match //s/a#t/$x return $x, t.time")
    (change,) = document.feed("s", '<a>"é"</a>', at="2024-05-01T10:00:00Z")
    assert change.key_text == '["\\"é\\"","2024-05-01T10:00:00Z"]'
    assert json.loads(change.key_text) == change.to_dict()["key"]
    assert view.key == ("x", "t.time")
    assert change.key == change.row.key == tuple(change.row.values())


def test_a_cause_names_the_message_the_statement_or_the_clock() -> None:
    document = Document(streams=["orders", "shipments"], facts=KEYS)
    document.watch(ON_TIME, "v")
    document.feed("orders", order(1), at=1)
    document.feed("orders", order(2), at=2)
    (came,) = document.feed("shipments", order(1), at=3)
    assert came.cause == Cause("message", "shipments", 1)
    assert (came.final, came.position, came.time) == (False, 1, 3)
    (late,) = document.advance(50)
    assert (late.op, late.cause, late.final) == ("never", Cause("clock"), True)
    assert late.time == 12.000001  # the first moment after the deadline, not the time of `advance`
    edited = parse("<r><a/></r>")
    edited.watch("match /r/a#t return t.id")
    edited.update("insert node <b/> into /r")
    (gone,) = edited.update("delete node /r/a")
    assert (gone.cause, gone.final) == (Cause("statement", None, 2), False)


def test_a_row_of_the_initial_document_has_no_cause() -> None:
    document = parse("<r><a/></r>")
    seen: list[Change] = []
    document.watch("match /r/a#t return t.id").subscribe(seen.append, snapshot=True)
    assert [change.to_dict()["cause"] for change in seen] == [None]


def test_a_deletion_is_final_if_no_stream_is_open() -> None:
    """Or if what had to be absent has come, and no stream can delete it."""
    for declared, is_final in (
        ('mode="one-shot"', True), ('mode="stream"', True), ('deletes="yes"', False)
    ):  # fmt: skip
        call = f'<q xmlns:ax="urn:axlog"><ax:call stream="s" {declared}/></q>'
        document = parse(f"<r><p>1</p>{call}</r>")
        document.watch("match /r[not(q/b)]/p/$x return $x")
        (gone,) = document.feed("s", "<b/>")
        assert (gone.op, gone.final) == ("delete", is_final)


def test_deadlines_are_emitted_one_by_one_in_the_order_of_their_times() -> None:
    """Each has its own time, before the message that moved the clock, and none is netted."""

    def changes(is_batch: bool) -> list[tuple[str, str, object, int]]:
        document = Document(streams=["orders", "shipments"], facts=KEYS)
        view = document.watch(ON_TIME, "v")
        heard: list[Change] = []
        view.subscribe(heard.append)

        def run() -> None:
            for number, at in ((3, 1), (1, 2), (2, 3), (4, 40)):
                document.feed("orders", order(number), at=at)
            document.feed("shipments", order(4), at=45)

        if is_batch:
            with document.batch():
                run()
        else:
            run()
        return [(c.op, c.row["x"], c.time, c.position) for c in heard]

    assert changes(False) == [
        ("never", "3", 11.000001, 1),
        ("never", "1", 12.000001, 2),
        ("never", "2", 13.000001, 3),
        ("insert", "4", 45, 4),
    ]
    assert changes(True) == changes(False)


def test_a_deadline_comes_before_the_changes_of_the_message_that_passes_it() -> None:
    document = Document(
        streams=["orders", "shipments", "other"],
        views={"v": f"{ON_TIME}", "w": "match /document/other/a/$y return $y"},
        facts=KEYS,
    )
    document.feed("orders", order(1), at=1)
    document.feed("orders", order(2), at=10)
    changes = document.feed("shipments", order(2), at=15)
    assert [(c.op, c.row["x"], c.position) for c in changes] == [
        ("never", "1", 1),
        ("insert", "2", 2),
    ]


def test_netting_keeps_changes_of_the_clock() -> None:
    def change(op: Op, position: int, is_clock: bool = False) -> Change:
        origin = CLOCK if is_clock else ("s", position)
        return Change(op, Row(("x",), ("1",)), None, "v", position, position, origin)

    kept = [change("insert", 1), change("delete", 2, True), change("insert", 3, True),
            change("delete", 4)]  # fmt: skip
    assert net(kept) == kept
    assert net([change("insert", 1), change("never", 2, True), change("delete", 3)]) == [
        change("never", 2, True)
    ]
    assert net([change("insert", 1), change("delete", 2)]) == []


def test_netting_pairs_changes_of_a_group_before_one_of_the_clock() -> None:
    def change(op: Op, value: str, position: int, is_clock: bool = False) -> Change:
        row = Row(("g", "n"), ("1", value), key=("1",))
        return Change(op, row, None, "v", position, position, CLOCK if is_clock else ("s", 1))

    first, last = change("delete", "2", 1), change("delete", "3", 3, True)
    netted = net([first, change("insert", "3", 2), last])
    assert [(c.op, c.before) for c in netted] == [("update", first.row), ("delete", None)]
    assert netted[1] == last


def test_netting_distinguishes_rows_by_their_keys() -> None:
    def change(op: Op, key: str, position: int) -> Change:
        return Change(op, Row(("t.val",), ("1",), key=(key,)), position=position)

    both = [change("insert", "1.1", 1), change("delete", "1.2", 2)]
    assert net(both) == both
    assert net([change("insert", "1.1", 1), change("delete", "1.1", 2)]) == []


def test_a_subscriber_may_start_with_a_snapshot() -> None:
    document = Document(streams=["orders"], views={"v": IDS})
    document.feed("orders", order(1))
    document.feed("orders", order(2))
    feed = document.changes("v", snapshot=True)
    document.feed("orders", order(3))
    assert [(c.op, c.row["x"], c.position, c.cause is None) for c in feed] == [
        ("insert", "1", 2, True),
        ("insert", "2", 2, True),
        ("insert", "3", 3, False),
    ]


def test_a_subscriber_may_resume_from_a_retained_position() -> None:
    document = Document(streams=["orders"], views={"v": IDS}, options=Options(retain_changes=3))
    for number in range(1, 6):
        document.feed("orders", order(number))
    feed = document.changes("v", since=2)
    document.feed("orders", order(6))
    assert [(c.row["x"], c.position) for c in feed] == [("3", 3), ("4", 4), ("5", 5), ("6", 6)]
    assert list(document.changes("v", since=6)) == []
    for position in (1, 2, 7):
        with pytest.raises(ChannelError) as caught:
            document.changes("v", since=position)
        assert caught.value.code == "AX803"


def test_without_retention_only_the_last_position_can_be_resumed_from() -> None:
    document = Document(streams=["orders"], views={"v": IDS})
    document.feed("orders", order(1))
    assert list(document.changes("v", since=1)) == []
    with pytest.raises(ChannelError) as caught:
        document.changes("v", since=0)
    assert caught.value.code == "AX803"


def test_a_snapshot_inside_a_batch_is_refused() -> None:
    document = Document(streams=["orders"], views={"v": IDS})
    with document.batch():
        document.feed("orders", order(1))
        for given in ({"snapshot": True}, {"since": 1}, {"since": 1, "snapshot": True}):
            with pytest.raises(QueryError) as caught:
                document.changes("v", **given)
            assert caught.value.code == "AX211"
    assert [c.row["x"] for c in document.changes("v", snapshot=True)] == ["1"]


def test_a_subscriber_made_by_another_gets_no_change_twice() -> None:
    """A subscriber that starts while changes are emitted has those changes in its snapshot."""
    document = Document(streams=["orders"], views={"v": IDS})
    view, heard = document.view("v"), []

    def first(change: Change) -> None:
        if change.row["x"] == "1":
            view.subscribe(lambda c: heard.append((c.op, c.row["x"], c.position)), snapshot=True)

    view.subscribe(first)
    document.feed("orders", order(1) + order(2))
    document.feed("orders", order(3))
    assert heard == [("insert", "1", 2), ("insert", "2", 2), ("insert", "3", 3)]


def test_a_restored_document_resumes_after_what_it_has_emitted(tmp_path) -> None:
    import axlog

    options = Options(retain_changes=10)
    source = '<r xmlns:ax="urn:axlog"><ax:call stream="f"/></r>'
    views = {"v": "match /r/a/$x return $x"}
    with axlog.open(tmp_path, source, views=views, options=options) as document:
        document.feed("f", "<a>1</a>")
        (change,) = document.update("insert node <a>2</a> as first into /r")
        assert (change.position, change.cause) == (2, Cause("statement", None, 1))
        document.snapshot()
    with axlog.open(tmp_path) as document:
        assert document.view("v").position == 2
        with pytest.raises(ChannelError):
            document.changes("v", since=1)
        feed = document.changes("v", since=2)
        (change,) = document.update("insert node <a>3</a> as first into /r")
        assert (change.position, change.cause) == (3, Cause("statement", None, 2))
        assert list(feed) == [change]
