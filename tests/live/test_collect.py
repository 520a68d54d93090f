"""Garbage in documents: finished streams are closed, finished subtrees dropped, nothing changes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

import axlog
from axlog.errors import AxlogError, StoreError, StreamError, UpdateError
from axlog.live.document import Document
from axlog.live.internals import maintained, streams_of
from axlog.live.options import Keep
from lab.laws.finished_law import check_finished, make_finished_case, make_keyed_case

CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
DONE = 'match /managers/manager[name/$n]/projects/project/"done" return $n'


def managers() -> Document:
    """Example 6: manager trees, each with a call for projects."""
    calling = CALL.replace("/>", ' calls="yes"/>')
    trees = [
        f"<manager><name>{name}</name><projects>{calling.format(name)}</projects></manager>"
        for name in "abc"
    ]
    return Document(f"<managers>{''.join(trees)}</managers>", views={"done": DONE})


def names(widget: Document) -> list[str]:
    return [row["n"] for row in widget.view("done").rows()]


def test_example_6_managers_who_are_finished_are_collected() -> None:
    widget = managers()
    nothing = widget.collect()
    assert (nothing.streams, nothing.nodes, nothing.kept) == ((), 0, None)
    before = len(widget)
    widget.feed("a", "<project>done</project>")  # satisfied
    widget.end("b")  # cannot be any more
    report = widget.collect()
    assert report.streams == ("a",)
    assert [each.what for each in report.dropped if each.kind == "nodes"] == [
        "/managers/manager[1]",
        "/managers/manager[2]",
    ]
    assert report.nodes >= 8
    assert len(widget) < before
    assert names(widget) == ["a"]
    told = widget.feed("c", "<project>done</project>")
    assert [(change.op, change.row["n"]) for change in told] == [("insert", "c")]
    assert names(widget) == ["a", "c"]
    assert [each.kind for each in widget.collected if each.kind != "rows"] == [
        "stream",
        "nodes",
        "nodes",
    ]
    assert all(each.why for each in widget.collected)


def test_a_closed_stream_may_go_on_sending() -> None:
    widget = managers()
    widget.feed("a", "<project>done</project>", at=1)
    widget.collect()
    assert widget.feed("a", "<project>done</project>", at=5) == []
    assert widget.clock == 5
    assert widget.streams()["a"].is_unsubscribed
    assert not widget.streams()["a"].ended
    with pytest.raises(AxlogError, match="AX404"):
        widget.feed("a", "<project/>", at=2)
    with pytest.raises(AxlogError):
        widget.feed("a", "<project", at=6)
    inner = CALL.format("x")
    assert widget.feed("a", f"<project>{inner}</project>", at=6) == []
    assert widget.feed("x", "<done/>", at=7) == []
    with pytest.raises(StreamError, match="AX403"):
        widget.feed("b", f"<project>{inner}</project>", at=8)
    assert widget.end("a", at=9) == []
    assert widget.streams()["a"].ended
    with pytest.raises(AxlogError, match="AX402"):
        widget.feed("a", "<project/>", at=10)
    assert names(widget) == ["a"]


def test_what_would_need_the_whole_document_is_refused() -> None:
    widget = managers()
    widget.feed("a", "<project>done</project>")
    widget.collect()
    for needs_it in (
        lambda: widget.watch("match //manager"),
        lambda: widget.update("delete nodes //manager"),
        lambda: maintained(widget).apply([]),
        lambda: widget.view("done").why({"n": "a"}),
        widget.xml,
    ):
        with pytest.raises(UpdateError, match="AX307"):
            needs_it()
    assert widget.tune(exact=True).installed
    assert names(widget) == ["a"]


def test_nothing_goes_where_it_can_be_seen() -> None:
    kept: dict[str, str | None] = {}
    source = f"<r><a>1</a><b/>{CALL.format('f')}</r>"
    deleting = source.replace('stream="f"', 'stream="f" deletes="yes"')
    for query in (
        "match /r/a#a return a.id", "match /r/a#a return a.val", "match /r[a][not(c)]",
        "match /r[a or c]",
    ):  # fmt: skip
        kept[query] = Document(source, views={"v": query}).collect().kept
    kept["deletes"] = Document(deleting, views={"v": "match /r/a"}).collect().kept
    kept["views"] = Document(source).collect().kept
    forgetting = Document(
        source, views={"v": "match /r/c/$x return $x"}, options=axlog.Options(keep="needed")
    )
    forgetting.feed("f", "<c>1</c>")
    kept["forgotten"] = forgetting.collect().kept
    enforced = Document(
        source, views={"v": "match /r/c/$x return $x"}, facts=["key c by k enforced"]
    )
    kept["enforced"] = enforced.collect().kept
    assert all(kept.values()), kept


SHOP = f"<m><w>{CALL.format('orders')}</w><s>{CALL.format('shipping')}</s></m>"
CALLING_SHOP = SHOP.replace("/></s>", ' calls="yes"/></s>')
ON_TIME = (
    'match /m[w/order[client/"INRIA"]/oid/$x#t1][s/order/oid/$x#t2] where t2 - t1 <= 5 return $x'
)
KEYS = ("key w/order by oid trusted", "key s/order by oid trusted")


def _order(oid: int, client: str = "<client>INRIA</client>") -> str:
    return f"<order>{client}<oid>{oid}</oid></order>"


def test_delivered_orders_leave_the_document_under_the_key() -> None:
    widget = Document(SHOP, views={"v": ON_TIME}, facts=KEYS)
    empty = len(widget)
    plain = Document(SHOP, views={"v": ON_TIME}, facts=KEYS, options=axlog.Options(collect="off"))
    for each in (widget, plain):
        each.feed("orders", _order(1), at=1)
        each.feed("orders", _order(2), at=2)
        each.feed("shipping", _order(1, ""), at=3)
    report = widget.collect()
    assert report.nodes == 8
    assert widget.feed("shipping", _order(2, ""), at=4) == plain.feed(
        "shipping", _order(2, ""), at=4
    )
    widget.collect()
    assert len(widget) == empty
    assert [row["x"] for row in widget.view("v").rows()] == ["1", "2"]


def test_without_the_key_what_was_shipped_too_late_stays() -> None:
    dropped = {}
    for facts in ((), KEYS):
        widget = Document(SHOP, views={"v": ON_TIME}, facts=facts)
        widget.feed("orders", _order(1), at=1)
        widget.feed("shipping", _order(1, ""), at=10)
        dropped[facts] = widget.collect().nodes
    assert dropped == {(): 5, KEYS: 8}  # an order 1 that comes now would be on time


def test_automatic_collection_keeps_the_document_small() -> None:
    widget = Document(SHOP, views={"v": ON_TIME}, facts=KEYS, options=axlog.Options(collect="auto"))
    for oid in range(300):
        widget.feed("orders", _order(oid), at=oid)
        widget.feed("shipping", _order(oid, ""), at=oid)
    assert len(widget.view("v")) == 300
    assert len(widget) < 300 * 4
    assert {each.kind for each in widget.collected} >= {"nodes"}
    assert len(widget.collected) <= 1000


def test_a_new_call_that_may_delete_finds_the_rows_that_were_let_go() -> None:
    deleting = '<ax:call xmlns:ax="urn:axlog" stream="d" deletes="yes"/>'
    changes = []
    for collect in ("off", "state"):
        widget = Document(
            CALLING_SHOP, views={"v": ON_TIME}, facts=KEYS, options=axlog.Options(collect=collect)
        )
        widget.feed("orders", _order(1), at=1)
        widget.feed("shipping", _order(1, ""), at=2)
        assert streams_of(widget).collector.has_dropped == (collect == "state")
        made = widget.feed("shipping", f"<order>{deleting}</order>", at=3)
        made += widget.feed("d", "<oid>1</oid>", at=4)
        made += widget.delete("d", 'match /oid/"1"', at=5)
        changes.append((made, [(row["x"], row.count) for row in widget.view("v").rows()]))
    assert changes[0] == changes[1]


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_a_new_call_that_may_delete_is_refused_where_rows_are_gone(keep: Keep) -> None:
    deleting = '<ax:call xmlns:ax="urn:axlog" stream="d" deletes="yes"/>'
    widget = Document(
        CALLING_SHOP, views={"v": ON_TIME}, facts=KEYS, options=axlog.Options(keep=keep)
    )
    widget.feed("orders", _order(1), at=1)
    widget.feed("shipping", _order(1, ""), at=2)
    if keep == "all":
        assert widget.collect().nodes
    with pytest.raises(UpdateError, match="AX307"):
        widget.feed("shipping", f"<order>{deleting}</order>", at=3)
    assert "d" not in widget.streams()
    assert len(widget.view("v")) == 1


def test_a_store_keeps_the_whole_document(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="AX875"):
        axlog.open(
            tmp_path / "one", SHOP, views={"v": ON_TIME}, options=axlog.Options(collect="auto")
        )
    with (
        axlog.open(tmp_path / "two", SHOP, views={"v": ON_TIME}) as widget,
        pytest.raises(UpdateError, match="AX876"),
    ):
        widget.collect()


def test_collection_changes_nothing() -> None:
    """Law 5; more cases by `check_finished` of other seeds."""
    seen: Counter[str] = Counter()
    for seed in range(12):
        seen += check_finished(make_finished_case(Random(seed)))
        seen += check_finished(make_keyed_case(Random(seed)))
    assert min(seen[what] for what in ("streams", "nodes", "changes", "truths")) > 0, seen
