"""Garbage in documents: finished streams are closed, finished subtrees dropped, nothing changes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import axlog
from axlog.errors import AxlogError, StreamError, UpdateError
from axlog.live import collector
from axlog.live.document import Document
from axlog.live.durable import DurableDocument
from axlog.live.internals import maintained, streams_of
from axlog.live.options import Keep, Options
from axlog.query.truth import Truth
from lab.laws.finished_law import (
    FinishedCase,
    check_finished,
    make_finished_case,
    make_keyed_case,
)
from lab.laws.swept_law import SweptCase, check_swept, make_swept_case, swept_every
from tests.amounts import cases

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


def names(doc: Document) -> list[str]:
    return [row["n"] for row in doc.view("done").rows()]


def test_example_6_managers_who_are_finished_are_collected() -> None:
    doc = managers()
    nothing = doc.collect()
    assert (nothing.streams, nothing.nodes, nothing.kept) == ((), 0, None)
    before = len(doc)
    doc.feed("a", "<project>done</project>")  # satisfied
    doc.end("b")  # cannot be any more
    report = doc.collect()
    assert report.streams == ("a",)
    assert [each.what for each in report.dropped if each.kind == "nodes"] == [
        "/managers/manager[1]",
        "/managers/manager[2]",
    ]
    assert report.nodes >= 8
    assert len(doc) < before
    assert names(doc) == ["a"]
    told = doc.feed("c", "<project>done</project>")
    assert [(change.op, change.row["n"]) for change in told] == [("insert", "c")]
    assert names(doc) == ["a", "c"]
    assert [each.kind for each in doc.collected if each.kind != "rows"] == [
        "stream",
        "nodes",
        "nodes",
    ]
    assert all(each.why for each in doc.collected)


def test_a_closed_stream_may_go_on_sending() -> None:
    doc = managers()
    doc.feed("a", "<project>done</project>", at=1)
    doc.collect()
    assert doc.feed("a", "<project>done</project>", at=5) == []
    assert doc.clock == 5
    assert doc.streams()["a"].is_unsubscribed
    assert not doc.streams()["a"].ended
    with pytest.raises(AxlogError, match="AX404"):
        doc.feed("a", "<project/>", at=2)
    with pytest.raises(AxlogError):
        doc.feed("a", "<project", at=6)
    inner = CALL.format("x")
    assert doc.feed("a", f"<project>{inner}</project>", at=6) == []
    assert doc.feed("x", "<done/>", at=7) == []
    with pytest.raises(StreamError, match="AX403"):
        doc.feed("b", f"<project>{inner}</project>", at=8)
    assert doc.end("a", at=9) == []
    assert doc.streams()["a"].ended
    with pytest.raises(AxlogError, match="AX402"):
        doc.feed("a", "<project/>", at=10)
    assert names(doc) == ["a"]


def test_what_would_need_the_whole_document_is_refused() -> None:
    doc = managers()
    doc.feed("a", "<project>done</project>")
    doc.collect()
    for needs_it in (
        lambda: doc.watch("match //manager"),
        lambda: doc.update("delete nodes //manager"),
        lambda: maintained(doc).apply([]),
        lambda: doc.view("done").why({"n": "a"}),
        doc.xml,
    ):
        with pytest.raises(UpdateError, match="AX307"):
            needs_it()
    assert doc.tune(exact=True).installed
    assert names(doc) == ["a"]


def test_nothing_goes_where_it_can_be_seen() -> None:
    kept: dict[str, str | None] = {}
    source = f"<r><a>1</a><b/>{CALL.format('f')}</r>"
    deleting = source.replace('stream="f"', 'stream="f" deletes="yes"')
    nested = "match /r[a][not(c[not(d)])]"
    kept[nested] = Document(source, views={"v": nested}).collect().kept
    for query in ("match /r/a#a return a.id", "match /r/a#a return a.val"):
        assert Document(source, views={"v": query}).collect().nodes == 0  # b decides later ids
    assert Document(source, views={"v": "match /r[a or c]"}).collect().nodes == 3
    assert Document(deleting, views={"v": "match /r/a"}).collect().nodes == 0
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


def test_what_a_not_blocks_goes_with_what_blocks_it() -> None:
    """A shipped order is over, and one that waits for its shipment stays. Without keys, a shipment
    stays too: it blocks another order with its id."""
    source = f"<r><o>{CALL.format('o')}</o><s>{CALL.format('s')}</s></r>"
    keys = ["key o/order by id trusted", "key s/ship by id trusted"]
    open_orders = "match /r[o/order/id/$x][not(s/ship/id/$x)] return $x"
    for facts, left in ((keys, 1), ((), 5)):
        doc = Document(source, views={"v": open_orders}, facts=facts)
        for number in range(5):
            doc.feed("o", f"<order><id>{number}</id></order>")
        for number in range(4):
            doc.feed("s", f"<ship><id>{number}</id></ship>")
        before = len(doc)
        report = doc.collect()
        assert report.kept is None
        assert (before - len(doc), report.nodes) == (report.nodes, 3 * (9 - left))
        assert [row["x"] for row in doc.view("v").rows()] == ["4"]
        (gone,) = doc.feed("s", "<ship><id>4</id></ship>")
        assert (gone.op, gone.row["x"]) == ("delete", "4")
        assert [c.op for c in doc.feed("o", "<order><id>9</id></order>")] == ["insert"]


SHOP = f"<m><w>{CALL.format('orders')}</w><s>{CALL.format('shipping')}</s></m>"
CALLING_SHOP = SHOP.replace("/></s>", ' calls="yes"/></s>')
ON_TIME = (
    'match /m[w/order[client/"INRIA"]/oid/$x#t1][s/order/oid/$x#t2] where t2 - t1 <= 5 return $x'
)
KEYS = ("key w/order by oid trusted", "key s/order by oid trusted")


def _order(oid: int, client: str = "<client>INRIA</client>") -> str:
    return f"<order>{client}<oid>{oid}</oid></order>"


def test_delivered_orders_leave_the_document_under_the_key() -> None:
    doc = Document(SHOP, views={"v": ON_TIME}, facts=KEYS)
    empty = len(doc)
    plain = Document(SHOP, views={"v": ON_TIME}, facts=KEYS, options=axlog.Options(collect="off"))
    for each in (doc, plain):
        each.feed("orders", _order(1), at=1)
        each.feed("orders", _order(2), at=2)
        each.feed("shipping", _order(1, ""), at=3)
    report = doc.collect()
    assert report.nodes == 8
    assert doc.feed("shipping", _order(2, ""), at=4) == plain.feed("shipping", _order(2, ""), at=4)
    doc.collect()
    assert len(doc) == empty
    assert [row["x"] for row in doc.view("v").rows()] == ["1", "2"]


def test_without_the_key_what_was_shipped_too_late_stays() -> None:
    dropped = {}
    for facts in ((), KEYS):
        doc = Document(SHOP, views={"v": ON_TIME}, facts=facts)
        doc.feed("orders", _order(1), at=1)
        doc.feed("shipping", _order(1, ""), at=10)
        dropped[facts] = doc.collect().nodes
    assert dropped == {(): 5, KEYS: 8}  # an order 1 that comes now would be on time


def test_a_query_of_a_not_alone_is_collected() -> None:
    doc = axlog.parse(
        '<a><c xmlns:ax="urn:axlog"><ax:call stream="s"/></c></a>',
        views={"v": "match not(/a/c/@m)"},
    )
    assert [each.what for each in doc.collect().dropped] == ["s", "/a/c"]
    assert len(doc.view("v")) == 1


def test_automatic_collection_keeps_the_document_small() -> None:
    doc = Document(SHOP, views={"v": ON_TIME}, facts=KEYS, options=axlog.Options(collect="auto"))
    for oid in range(300):
        doc.feed("orders", _order(oid), at=oid)
        doc.feed("shipping", _order(oid, ""), at=oid)
    assert len(doc.view("v")) == 300
    assert len(doc) < 300 * 4
    assert {each.kind for each in doc.collected} >= {"nodes"}
    assert len(doc.collected) <= 1000


def test_a_new_call_that_may_delete_finds_the_rows_that_were_let_go() -> None:
    deleting = '<ax:call xmlns:ax="urn:axlog" stream="d" deletes="yes"/>'
    changes = []
    for collect in ("off", "state"):
        doc = Document(
            CALLING_SHOP, views={"v": ON_TIME}, facts=KEYS, options=axlog.Options(collect=collect)
        )
        doc.feed("orders", _order(1), at=1)
        doc.feed("shipping", _order(1, ""), at=2)
        assert streams_of(doc).collector.has_dropped == (collect == "state")
        made = doc.feed("shipping", f"<order>{deleting}</order>", at=3)
        made += doc.feed("d", "<oid>1</oid>", at=4)
        made += doc.delete("d", 'match /oid/"1"', at=5)
        changes.append((made, [(row["x"], row.count) for row in doc.view("v").rows()]))
    assert changes[0] == changes[1]


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_a_new_call_that_may_delete_is_refused_where_rows_are_gone(keep: Keep) -> None:
    deleting = '<ax:call xmlns:ax="urn:axlog" stream="d" deletes="yes"/>'
    doc = Document(CALLING_SHOP, views={"v": ON_TIME}, facts=KEYS, options=axlog.Options(keep=keep))
    doc.feed("orders", _order(1), at=1)
    doc.feed("shipping", _order(1, ""), at=2)
    if keep == "all":
        assert doc.collect().nodes
    with pytest.raises(UpdateError, match="AX307"):
        doc.feed("shipping", f"<order>{deleting}</order>", at=3)
    assert "d" not in doc.streams()
    assert len(doc.view("v")) == 1


@pytest.mark.parametrize("compacts", [False, True])
def test_a_store_collects_and_resumes(tmp_path: Path, compacts: bool) -> None:
    """A collection is a record of the log, and part of a snapshot."""
    place, query = tmp_path / "store", "match /r/m[p/d][n/$n] return $n"
    source = f"<r><m><n>1</n><p>{CALL.format('f')}</p></m><q>{CALL.format('g')}</q></r>"
    with axlog.open(place, source, views={"v": query}) as doc:
        doc.feed("f", "<d/>")
        doc.feed("g", "<z/>")
        found = doc.collect()
        assert found.streams == ("g",)
        assert found.nodes > 0
        if compacts:
            doc.compact()
        doc.feed("g", "<z/>")
        size = len(doc)
    with axlog.open(place) as doc:
        assert (len(doc), names_of(doc)) == (size, ["1"])
        assert doc.feed("f", "<d/>") == []
        with pytest.raises(UpdateError, match="AX307"):
            doc.watch("match /r/q")


def test_a_store_collects_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "EVERY", 3)
    source = f"<r><m><p>{CALL.format('f')}</p></m><q>{CALL.format('g')}</q></r>"
    options = axlog.Options(collect="auto")
    with axlog.open(tmp_path, source, views={"v": "match /r/m/p/d"}, options=options) as doc:
        for _ in range(12):
            doc.feed("g", "<z><y/></z>")
        assert len(doc) < 12
        assert doc.view("v").truth is axlog.Truth.POSSIBLE
        size = len(doc)
    with axlog.open(tmp_path) as doc:
        assert len(doc) == size
        assert [change.op for change in doc.feed("f", "<d/>")] == ["insert"]


def test_stores_collect_as_other_documents(tmp_path: Path) -> None:
    opened: list[DurableDocument] = []

    def store(source: str, **given: Any) -> Document:
        opened.append(axlog.open(tmp_path / str(len(opened)), source, **given))
        return opened[-1]

    for seed in range(300, 303):
        check_finished(make_finished_case(Random(seed)), store)
    for doc in opened:
        doc.close()


def names_of(doc: Document) -> list[str]:
    return [row["n"] for row in doc.view("v").rows()]


def test_an_alternative_beside_a_not_may_still_come() -> None:
    """A match that one alternative's `not` blocks is a row once another alternative matches."""
    calling = CALL.replace("/>", ' calls="yes"/>')
    source = f"<r><m><n>0</n><p><e>1</e>{calling.format('s')}</p></m><q>{CALL.format('f')}</q></r>"
    steps = (("f", "<a>1</a>", 1), ("s", "<z>1</z>", 2), ("s", "<d>2</d>", 3))
    query = "match /r/m[p/d or not(p/e)][n/$n] return $n"
    assert check_finished(FinishedCase(source, (query,), steps))["changes"] == 1


def test_collection_changes_nothing() -> None:
    """Law 5; more cases by `check_finished` of other seeds."""
    seen: Counter[str] = Counter()
    for seed in range(cases(4)):
        seen += check_finished(make_finished_case(Random(seed)))
        seen += check_finished(make_keyed_case(Random(seed)))
    assert min(seen[what] for what in ("streams", "nodes", "changes", "truths")) > 0, seen


def test_rows_that_joins_with_not_drop_have_no_effect() -> None:
    """Law 5; more cases by `python -m lab fuzz --law collect`."""
    seen: Counter[str] = Counter()
    for seed in range(cases(16)):
        seen += check_swept(make_swept_case(Random(seed)))
    ended = ("f", "<a><k>1</k></a>", 0), ("end", "f", 0), ("n", "<a><k>1</k></a>", 1)
    query = "match /r[f/a/k/$x][g/a/k/$x][not(n/a/k/$x)]"
    check_swept(SweptCase(query, ("key f/a by k trusted",), ended))  # the truth was remembered
    asked = ("dropped", "dropped beside groups", "never", "restored", "answers")
    assert min(seen[what] for what in asked) > 5, seen


@pytest.mark.parametrize("is_keyed", [True, False])
def test_finished_orders_leave_no_rows_behind(is_keyed: bool) -> None:
    """With a key, its values are left; without, what must be absent is."""
    with swept_every(20):
        doc = Document(
            f"<shop><orders>{CALL.format('o')}</orders><shipped>{CALL.format('s')}</shipped></shop>",
            facts=["key orders/order by oid trusted"] if is_keyed else [],
            views={"v": "match /shop[orders/order/oid/$x][not(shipped/order/oid/$x)] return $x"},
            options=Options(keep="needed"),
        )
        for number in range(500):
            doc.feed("o", f"<order><oid>{number}</oid></order>")
            if number % 100:
                doc.feed("s", f"<order><oid>{number}</oid></order>")
    (join,) = streams_of(doc).collector.joins
    orders, (shipped,) = join.live[0], join.state.guards[0].tables()
    assert len(orders) <= (5 + 2 * 20 if is_keyed else 495 // 2)
    assert len(shipped) <= 2 * 20 if is_keyed else len(shipped) == 495
    view = doc.view("v")
    assert [row["x"] for row in view.rows()] == ["0", "100", "200", "300", "400"]
    asked = {x: view.status({"x": x}) for x in ("100", "7", "1000")}
    assert asked == {"100": Truth.TRUE, "7": Truth.NEVER, "1000": Truth.POSSIBLE}
    (change,) = doc.feed("s", "<order><oid>100</oid></order>")
    assert (change.op, change.row["x"], change.final) == ("delete", "100", True)
    assert doc.feed("s", "<order><oid>7</oid></order>") == []


def test_finished_orders_of_groups_leave_no_rows_behind() -> None:
    """Open orders by client: a row that a `not` blocks is in no group."""
    pattern = "match /shop[orders/order[oid/$x]/client/$c][not(shipped/order/oid/$x)]"
    with swept_every(20):
        doc = Document(
            f"<shop><orders>{CALL.format('o')}</orders><shipped>{CALL.format('s')}</shipped></shop>",
            facts=["key orders/order by oid trusted"],
            views={"v": f"{pattern} return $c, count() as n, sum($x) as s"},
            options=Options(keep="needed"),
        )
        for number in range(500):
            client = f"<client>{number % 2}</client>"
            doc.feed("o", f"<order><oid>{number}</oid>{client}</order>")
            if number % 125:
                doc.feed("s", f"<order><oid>{number}</oid></order>")
    (join,) = streams_of(doc).collector.joins
    (shipped,) = join.state.guards[0].tables()
    assert len(join.live[0]) <= 4 + 2 * 20
    assert len(shipped) <= 2 * 20
    found = sorted(tuple(row.values()) for row in doc.view("v").rows())
    assert found == [("0", 2, 250), ("1", 2, 500)]
    assert doc.feed("s", "<order><oid>7</oid></order>") == []
    (change,) = doc.feed("s", "<order><oid>125</oid></order>")
    assert (change.op, tuple(change.row.values())) == ("update", ("1", 1, 375))
