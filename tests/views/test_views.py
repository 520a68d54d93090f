"""Views on documents: rows, changes, listeners, why, explain, tables; updates whole or not."""

import sys
from typing import Any

import pytest

import axlog
from axlog import Change, Document, Id, Row, parse
from axlog.document.loader import read_forest
from axlog.document.operations import Delete, Insert, Rename, ReplaceValue, Where
from axlog.errors import AxlogError, QueryError, SetupError, UpdateError
from axlog.live.internals import maintained, maintained_view
from axlog.views.choose import MAINTAINERS, choice

SHOP = "<shop><item k='1'>pen</item><item k='2'>ink</item></shop>"
ITEMS = "match /shop/item#t/$x return $x, t.id"


def told(changes: list[Change]) -> list[tuple[str, dict[str, Any]]]:
    return [(change.op, change.row.to_dict()) for change in changes]


# Rows and changes ---------------------------------------------------------------------------------


def test_a_row_is_a_mapping_with_a_count() -> None:
    row = Row(("x", "t.id"), ("a", Id.parse("1.2")), 3)
    assert dict(row) == {"x": "a", "t.id": Id.parse("1.2")}
    assert row["x"] == "a"
    assert list(row) == ["x", "t.id"]
    assert len(row) == 2
    assert row.count == 3
    assert row.to_dict() == {"x": "a", "t.id": "1.2"}
    assert repr(row) == "Row(x='a', t.id=Id('1.2'); count=3)"
    with pytest.raises(KeyError):
        row["y"]


def test_rows_are_equal_by_values_whatever_their_counts() -> None:
    assert Row(("x",), ("a",), 1) == Row(("x",), ("a",), 2) == {"x": "a"}
    assert hash(Row(("x",), ("a",), 1)) == hash(Row(("x",), ("a",), 2))
    assert Row(("x",), ("a",)) != Row(("x",), ("b",))
    assert Row(("x",), ("a",)) != 5


def test_a_change_says_view_time_and_number() -> None:
    document = parse(SHOP)
    document.watch(ITEMS, name="items")
    (first,) = maintained(document).insert("match /shop#t return t.id", "<item>nib</item>", at=1.5)
    (second,) = maintained(document).delete("match /shop/item#t[@k = 1] return t.id", at=2)
    assert (first.op, first.view, first.time, first.position) == ("insert", "items", 1.5, 1)
    assert (second.op, second.view, second.time, second.position) == (
        "delete",
        "items",
        2,
        2,
    )
    assert first.to_dict() == {
        "view": "items", "op": "insert", "key": ["nib", "1.3"],
        "row": {"x": "nib", "t.id": "1.3"}, "time": 1.5,
        "cause": {"kind": "statement", "number": 1}, "final": False, "position": 1,
    }  # fmt: skip


def test_rows_sort_by_their_output_tuple() -> None:
    document = parse("<a><b>z</b><b>é</b><b>Z</b><b>a</b></a>")
    assert [row["x"] for row in document.watch("match /a/b/$x return $x")] == ["Z", "a", "z", "é"]
    maintained(document).insert("match /a#t return t.id", "<b>first</b>", where="first")
    ids = [row["t.id"] for row in document.watch("match /a/b#t return t.id")]
    assert ids == sorted(ids)
    assert maintained(document).tree.string_value(maintained(document).tree.find(ids[0])) == "first"


def test_a_view_can_be_read_in_many_ways() -> None:
    view = parse(SHOP).watch("match /shop/item[@k = $x] return $x", name="keys")
    assert len(view) == 2
    assert list(view) == view.rows() == [{"x": "1"}, {"x": "2"}]
    assert view.columns == ("x",)
    assert view.holds()
    assert repr(view) == "View('keys', 2 rows, counting)"


def test_views_have_names() -> None:
    document = parse(SHOP)
    names = [document.watch("match /shop").name for _ in range(2)]
    assert names == ["view1", "view2"]
    with pytest.raises(QueryError) as caught:
        document.watch("match /shop", name="view1")
    assert caught.value.code == "AX202"
    assert list(document.views) == names


def test_a_forgotten_view_hears_nothing_and_others_go_on() -> None:
    document = parse(SHOP)
    document.watch(ITEMS, name="gone")
    kept = document.watch("match /shop/item/$x return $x", name="kept")
    document.unwatch("gone")
    changes = maintained(document).insert("match /shop#t return t.id", "<item>nib</item>")
    assert [change.view for change in changes] == ["kept"]
    assert [row["x"] for row in kept] == ["ink", "nib", "pen"]
    document.watch(ITEMS, name="gone")


def test_a_view_made_later_has_the_rows_of_now() -> None:
    document = parse(SHOP)
    early = document.watch(ITEMS)
    maintained(document).delete("match /shop/item#t[@k = 1] return t.id")
    late = document.watch(ITEMS)
    assert early.rows() == late.rows()
    assert [row["x"] for row in late.rows()] == ["ink"]


# Listeners ----------------------------------------------------------------------------------------


def test_listeners_hear_every_change_in_order_until_they_stop() -> None:
    document = parse(SHOP)
    view = document.watch("match /shop/item/$x return $x")
    heard: list[Change] = []
    stop = view.subscribe(heard.append)
    maintained(document).insert("match /shop#t return t.id", "<item>nib</item><item>cap</item>")
    maintained(document).delete("match /shop/item#t[. = 'pen'] return t.id")
    assert told(heard) == [
        ("insert", {"x": "cap"}),
        ("insert", {"x": "nib"}),
        ("delete", {"x": "pen"}),
    ]
    assert [change.position for change in heard] == [1, 2, 3]
    stop()
    maintained(document).delete("match /shop/item#t return t.id")
    assert len(heard) == 3


def test_a_listener_that_raises_does_so_when_all_is_done() -> None:
    document = parse(SHOP)
    view = document.watch(ITEMS)
    heard: list[Change] = []

    def broken(change: Change) -> None:
        raise RuntimeError("not today")

    view.subscribe(broken)
    view.subscribe(heard.append)
    with pytest.raises(RuntimeError, match="not today"):
        maintained(document).insert("match /shop#t return t.id", "<item>nib</item>")
    assert told(heard) == [("insert", {"x": "nib", "t.id": "1.3"})]
    assert [row["x"] for row in view.rows()] == ["ink", "nib", "pen"]


def test_a_listener_may_change_the_document() -> None:
    document = parse("<a><in/></a>")
    view = document.watch("match /a/in/b/$x return $x")
    other = document.watch("match /a/out/$x return $x")

    def note(change: Change) -> None:
        maintained(document).insert("match /a#t return t.id", "<out>seen</out>")

    view.subscribe(note)
    maintained(document).insert("match /a/in#t return t.id", "<b>1</b>")
    assert other.rows() == [{"x": "seen"}]


# Updates ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "wanted"),
    [("first", "nbb"), ("last", "bbn"), ("into", "bbn"), ("before", "nbnb"), ("after", "bnbn")],
)
def test_insertions_go_to_their_position(where: str, wanted: str) -> None:
    document = parse("<a><b/><b/></a>")
    beside = where in ("before", "after")
    target = "match /a/b#t return t.id" if beside else "match /a#t return t.id"
    maintained(document).insert(target, "<n/>", where=where)
    tree = maintained(document).tree
    assert "".join(tree.label(node) for node in tree.children(tree.root)) == wanted


@pytest.mark.parametrize(
    ("update", "code"),
    [
        (lambda d: d.insert("match /shop#t return t.id", "<b>"), "AX101"),
        (lambda d: d.insert("match /shop#t return t.id", "<b/>", where="beside"), "AX302"),
        (lambda d: d.insert("match /shop[", "<b/>"), "AX201"),
        (lambda d: d.insert("match /shop", "<b/>"), "AX211"),
        (lambda d: d.insert("match /shop/item/text()#t return t.id", "<b/>"), "AX302"),
        (lambda d: d.insert("match /shop#t return t.id", "<b/>", where="after"), "XUDY0021"),
        (lambda d: d.delete("match /shop/item#t return t.id", at=-1), "AX404"),
        (lambda d: d.apply([Delete(99)]), "AX301"),
        (lambda d: d.apply([Rename(d.tree.root, "a"), Rename(d.tree.root, "b")]), "XUDY0015"),
        (lambda d: d.apply([Rename(d.tree.root, "not a name")]), "AX303"),
        (lambda d: d.apply([ReplaceValue(d.tree.root, "\0")]), "AX303"),
        (lambda d: d.insert("match /shop#t return t.id", CALLS), "AX403"),
    ],
)
def test_a_refused_update_changes_nothing(update: Any, code: str) -> None:
    document = parse(SHOP)
    view = document.watch(ITEMS)
    heard: list[Change] = []
    view.subscribe(heard.append)
    before = (document.xml(), view.rows(), document.clock, len(document))
    with pytest.raises(AxlogError) as caught:
        update(maintained(document))
    assert caught.value.code == code
    assert (document.xml(), view.rows(), document.clock, len(document)) == before
    assert heard == []
    maintained(document).delete("match /shop/item#t return t.id")
    assert len(heard) == 2


CALLS = (
    "<b><ax:call xmlns:ax='urn:axlog' stream='s'/><ax:call xmlns:ax='urn:axlog' stream='s'/></b>"
)


def test_a_target_that_is_gone_is_reported_by_its_id() -> None:
    document = parse(SHOP)
    (row, _) = document.watch("match /shop/item#t return t.id").rows()
    assert maintained(document).tree.find(row["t.id"])
    maintained(document).delete("match /shop/item#t return t.id")
    with pytest.raises(UpdateError) as caught:
        maintained(document).tree.find(row["t.id"])
    assert caught.value.code == "AX301"
    assert "1.1" in str(caught.value)


def test_one_update_with_many_operations_emits_one_difference() -> None:
    document = parse("<a><b>1</b><b>2</b></a>")
    view = document.watch("match /a/b/$x return $x")
    first, second = list(maintained(document).tree.children(maintained(document).tree.root))
    changes = maintained(document).apply(
        [
            ReplaceValue(next(maintained(document).tree.children(first)), "2"),
            Delete(second),
            Insert(Where.LAST, maintained(document).tree.root, tuple(read_forest("<b>3</b>"))),
        ]
    )
    assert told(changes) == [("delete", {"x": "1"}), ("insert", {"x": "3"})]
    assert view.rows() == [{"x": "2"}, {"x": "3"}]


# Which maintainer ---------------------------------------------------------------------------------


def test_counting_is_chosen_where_it_can_be_used() -> None:
    document = parse(SHOP)
    assert maintained_view(document.watch(ITEMS)).chosen.name == "counting"
    sideways = document.watch("//item[following-sibling::item]")
    assert maintained_view(sideways).chosen.name == "records"
    assert "tree automaton" in maintained_view(sideways).chosen.reason
    first, second = (
        maintained(document).tree.id(node) for node in maintained(document).tree.partition("item")
    )
    assert [row["node.id"] for row in sideways.rows()] == [first]
    maintained(document).insert("match /shop#t return t.id", "<item/>")
    assert [row["node.id"] for row in sideways.rows()] == [first, second]


def test_a_maintainer_can_be_named_and_may_decline() -> None:
    document = parse(SHOP)
    for name in MAINTAINERS:
        query = "//item" if name == "records" else ITEMS  # which binds a variable
        assert maintained_view(document.watch(query, maintainer=name)).chosen.name == name
    for query, name in (("//item[following-sibling::item]", "counting"), (ITEMS, "magic")):
        with pytest.raises(QueryError) as caught:
            document.watch(query, maintainer=name)
        assert caught.value.code == "AX212"
    assert choice(document.views["view1"].query.pattern).reason


# Why, explain, tables -----------------------------------------------------------------------------


def test_why_gives_every_derivation() -> None:
    document = parse("<r><p>x</p><q><p>x</p></q></r>")
    view = document.watch("match /r//p/$v return $v")
    (row,) = view.rows()
    derivations = view.why(row)
    assert len(derivations) == row.count == 2
    assert [d.matched[-1].path for d in derivations] == ["/r/p/text()", "/r/q/p/text()"]
    first = derivations[0].matched
    assert [m.pattern for m in first] == ["r", "//p", "$v"]
    assert [str(m.id) for m in first] == ["1", "1.1", "1.1.1"]
    assert {m.time for m in first} == {0}
    assert "/r/p/text()" in str(derivations[0])
    assert view.why({"v": "y"}) == []


def test_why_follows_updates() -> None:
    document = parse(SHOP)
    view = document.watch("match /shop/item/$x return $x")
    maintained(document).insert("match /shop#t return t.id", "<item>pen</item>", at=3)
    times = [d.matched[-1].time for d in view.why({"x": "pen"})]
    assert times == [0, 3]


def test_explain_is_data_that_prints() -> None:
    explained = parse(SHOP).watch("match //item[not(sold)]/$x return $x").explain()
    assert explained.maintainer == "counting"
    assert explained.columns == ("x",)
    assert any("label(item, n)" in rule for rule in explained.program)
    assert any("not R_not1" in rule for rule in explained.program)
    assert str(explained).startswith("query       match //item")


def test_a_view_without_a_constructor_has_no_xml() -> None:
    document = parse(SHOP)
    view = document.watch("for $i in //item return <thing>{string($i)}</thing>")
    assert [view.xml(row) for row in view] == ["<thing>ink</thing>", "<thing>pen</thing>"]
    plain = document.watch(ITEMS)
    with pytest.raises(QueryError) as caught:
        plain.xml(plain.rows()[0])
    assert caught.value.code == "AX211"


def test_rows_as_an_arrow_table() -> None:
    pytest.importorskip("pyarrow")
    document = parse("<r><p><n>A</n><n>B</n></p><p/></r>")
    view = document.watch("match /r/p#t[collect(n#n)] return t.id, t.time, n.val, n.id")
    table = view.to_arrow()
    assert table.column_names == ["t.id", "t.time", "n.val", "n.id", "count"]
    assert table.to_pylist() == [
        {"t.id": "1.1", "t.time": 0, "n.val": ["A", "B"], "n.id": ["1.1.1", "1.1.2"], "count": 1},
        {"t.id": "1.2", "t.time": 0, "n.val": [], "n.id": [], "count": 1},
    ]


def test_without_the_extra_arrow_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SetupError) as caught:
        parse(SHOP).watch(ITEMS).to_arrow()
    assert caught.value.code == "AX901"
    assert "axlog[arrow]" in str(caught.value)


def test_a_notebook_shows_a_table_and_runs_nothing() -> None:
    view = parse("<a><b>&lt;script&gt;</b></a>").watch("match /a/b/$x return $x")
    shown = view._repr_html_()
    assert "<td>&lt;script&gt;</td>" in shown
    assert "<script>" not in shown
    assert shown.count("<tr>") == 2


# The rest of the face -----------------------------------------------------------------------------


def test_a_document_is_read_from_anything(tmp_path: Any) -> None:
    path = tmp_path / "shop.xml"
    path.write_text(SHOP, encoding="utf-8")
    with path.open("rb") as file:
        for source in (SHOP, SHOP.encode(), path, str(path), file):
            rows = parse(source).watch(ITEMS).rows()
            assert [row["x"] for row in rows] == ["ink", "pen"]


def test_a_document_prints() -> None:
    document = parse("<a><b/></a>")
    assert str(document) == document.xml() == "<a><b/></a>"
    assert repr(document) == "Document(2 nodes, 0 views)"
    assert isinstance(document, Document)
    assert len(document) == 2


def test_namespaces_are_declared_for_queries() -> None:
    document = parse("<a xmlns='urn:x'><b/></a>", options=axlog.Options(namespaces={"x": "urn:x"}))
    view = document.watch("match /x:a/x:b#t return t.id")
    assert [str(row["t.id"]) for row in view.rows()] == ["1.1"]
    maintained(document).insert("match /x:a#t return t.id", "<b xmlns='urn:x'/>")
    assert [str(row["t.id"]) for row in view.rows()] == ["1.1", "1.2"]
    with pytest.raises(QueryError) as caught:
        document.watch("match /y:a")
    assert caught.value.code == "AX206"


def test_errors_cross_process_borders_whole() -> None:
    import pickle

    with pytest.raises(AxlogError) as caught:
        axlog.parse("<a><b></a>")
    error = caught.value.within("message 3")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert "in: message 3" in str(again)
