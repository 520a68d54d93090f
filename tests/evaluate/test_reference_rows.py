"""Rows, counts and keys of the reference: the papers' examples, and DESIGN 3 rule by rule."""

from decimal import Decimal

import pytest

from axlog.document.ids import Id
from axlog.document.loader import load, read_forest
from axlog.document.operations import Delete, Insert, Where
from axlog.document.pending import apply
from axlog.document.tree import Tree
from axlog.evaluate.value_tests import comparison
from axlog.query.native import parse_pattern
from axlog.query.pattern import (
    AnyNode,
    Axis,
    Collect,
    Constant,
    Kind,
    Name,
    Number,
    Output,
    Pattern,
    PatternNode,
)
from axlog.query.values import double_of
from lab.reference import Answer, rows, sorted_rows, valuations
from tests.papers import SECOND, document, end, feed, shown


def holds(tree: Tree, query: str) -> bool:
    return bool(rows(tree, parse_pattern(query)))


def nodes(tree: Tree, query: str) -> list[int]:
    """The nodes that a query names x, in document order."""
    found = (valuation.names["x"] for valuation in valuations(tree, parse_pattern(query)))
    return sorted(set(found), key=tree.id)


def delete(tree: Tree, query: str) -> None:
    apply(tree, [Delete(node) for node in nodes(tree, query)])


def insert(tree: Tree, query: str, xml: str) -> None:
    (target,) = nodes(tree, query)
    apply(tree, [Insert(Where.LAST, target, tuple(read_forest(xml)))])


# The papers' examples -----------------------------------------------------------------------------


@pytest.mark.parametrize(("notation", "expected"), [("a[b, c]", {(): 1}), ("a[b]", {})])
def test_example_1_p1_algorithm_1_rows(notation: str, expected: dict[object, int]) -> None:
    assert shown(document(notation), "match /a[b][c]") == expected


def test_example_7_p2_figure_3_rows() -> None:
    tree = document("a[b[a], a[c, ?f]]")
    assert shown(tree, "match /a[b/$x]/$x/$y return $x, $y") == {("a", "c"): 1}


def test_example_12_p2_negation_gains_and_loses_rows() -> None:
    tree = document("r[a[k, ?f], b[?g]]")
    query = "match /r[a/$x][not(b/$x)] return $x"
    assert shown(tree, query) == {("k",): 1}
    feed(tree, "f", "m")
    assert shown(tree, query) == {("k",): 1, ("m",): 1}
    feed(tree, "g", "k")
    assert shown(tree, query) == {("m",): 1}


ORDERS = (
    'match /management[webstore/orders/order[client/"INRIA"][details/computer]/oid/$x#t1]'
    "[shipping/orders/order/oid/$x#t2] where t2 - t1 >= 50000 return $x"
)


def order(number: int) -> str:
    return f'order[client["INRIA"], details[computer], oid["{number}"]]'


def test_example_13_p3_order_monitor_rows() -> None:
    tree = document("management[webstore[orders[?placed]], shipping[orders[?shipped]]]")
    feed(tree, "placed", order(17), 100)
    feed(tree, "placed", order(18).replace("INRIA", "CNRS"), 100)
    feed(tree, "placed", order(19), 200)
    assert shown(tree, ORDERS) == {}
    for number in (17, 18, 19):
        feed(tree, "shipped", f'order[oid["{number}"]]', 50_150)
    assert shown(tree, ORDERS) == {("17",): 1}


VIEW = "match //a#x//b#y//c#z return x.id, y.id, z.id"


def test_example_20_p5_examples_3_1_to_3_7() -> None:
    tree = document("r[a[b[c], d], e]")
    assert shown(tree, VIEW) == {("1.1", "1.1.1", "1.1.1.1"): 1}
    insert(tree, "match //e#x", "<a><b/><b/></a>")
    assert len(shown(tree, VIEW)) == 1
    insert(tree, "match //d#x", "<b><c/></b>")
    assert shown(tree, VIEW)["1.1", "1.1.2.1", "1.1.2.1.1"] == 1
    assert len(shown(tree, VIEW)) == 2


def test_example_20_p5_value_test() -> None:
    tree = document('r[a["5", b], e]')
    query = "match //a#x[. = 5]//b#y return x.id, y.id"
    assert shown(tree, query) == {("1.1", "1.1.2"): 1}
    insert(tree, "match //e#x", "<a>3<b/></a>")
    assert shown(tree, query) == {("1.1", "1.1.2"): 1}
    insert(tree, "match /r/a#x", "<a>3<b/></a>")
    assert shown(tree, query) == {}


def test_example_23_p5_examples_4_1_and_4_8() -> None:
    tree = document("a[c[b], f[b]]")
    pairs, counted = "match //a#x//b#y return x.id, y.id", "match //a#x[//b] return x.id"
    assert shown(tree, pairs) == {("1", "1.1.1"): 1, ("1", "1.2.1"): 1}
    assert shown(tree, counted) == {("1",): 2}
    delete(tree, "match //c//b#x")
    assert shown(tree, pairs) == {("1", "1.2.1"): 1}
    assert shown(tree, counted) == {("1",): 1}
    delete(tree, "match //f//b#x")
    assert shown(tree, counted) == {}


def test_example_24_p5_example_4_5() -> None:
    tree = document("a[c[b, b], f[c[b], b]]")
    query = parse_pattern("match //a#x[//c#z]//b#y return x.id, z.id, y.id")
    before = [key for key, _ in sorted_rows(rows(tree, query))]
    assert len(before) == 8
    delete(tree, "match //a/f/c#x")
    after = [key for key, _ in sorted_rows(rows(tree, query))]
    assert [before.index(key) + 1 for key in after] == [1, 2, 4]


def test_example_24_p5_counts_under_deletion() -> None:
    tree = document("a[c[b], c, b]")
    query = "match //a#x[//c][//b] return x.id"
    assert shown(tree, query) == {("1",): 4}
    apply(tree, [Delete(nodes(tree, "match /a/c#x")[0])])
    assert shown(tree, query) == {("1",): 1}


# Trees (DESIGN 3) ---------------------------------------------------------------------------------

SHELF = load(
    '<r id="7"><!-- a --><a k="1">x<b/>y</a><?a b?><a>a</a>'
    '<ax:call xmlns:ax="urn:axlog" stream="f"/><b k="1"><c/></b></r>'
)


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("match /r#x", ["/r"]),
        ("match //r#x", ["/r"]),
        ("match /a#x", []),
        ("match //*#x", ["/r", "/r/a[1]", "/r/a[1]/b", "/r/a[2]", "/r/b", "/r/b/c"]),
        ("match /r/*#x", ["/r/a[1]", "/r/a[2]", "/r/b"]),
        (
            "match /r/node()#x",
            ["/r/comment()", "/r/a[1]", "/r/instruction()", "/r/a[2]", "/r/b"],
        ),
        ("match /r/$v#x", ["/r/a[1]", "/r/a[2]", "/r/b"]),
        (
            "match /r/a/$v#x",
            ["/r/a[1]/text()[1]", "/r/a[1]/b", "/r/a[1]/text()[2]", "/r/a[2]/text()"],
        ),
        ('match //"a"#x', ["/r/a[2]/text()"]),
        ("match /r/a/text()#x", ["/r/a[1]/text()[1]", "/r/a[1]/text()[2]", "/r/a[2]/text()"]),
        ('match //"1"#x', []),
        ("match //@k#x", ["/r/a[1]/@k", "/r/b/@k"]),
        ("match //@*#x", ["/r/@id", "/r/a[1]/@k", "/r/b/@k"]),
        ('match //@k/"1"#x', ["/r/a[1]/@k/text()", "/r/b/@k/text()"]),
        ('match /r[@id = "7"]/b#x', ["/r/b"]),
        ("match //a/self::a#x", ["/r/a[1]", "/r/a[2]"]),
        ("match //a/self::b#x", []),
        ("match //a/descendant-or-self::*#x", ["/r/a[1]", "/r/a[1]/b", "/r/a[2]"]),
        ("match //a/next-sibling::*#x", ["/r/a[2]", "/r/b"]),
        ("match //a/next-sibling::b#x", ["/r/b"]),
        ("match //a/next-sibling::text()#x", []),
        ("match //a/following-sibling::b#x", ["/r/b"]),
        ("match //a/b/following-sibling::text()#x", ["/r/a[1]/text()[2]"]),
        ("match //a/b/preceding-sibling::node()#x", ["/r/a[1]/text()[1]"]),
        ("match //b/previous-sibling::a#x", ["/r/a[2]"]),
        ("match //@k/following-sibling::node()#x", []),
        ("match //@k/preceding-sibling::node()#x", []),
        ("match //c/parent::*#x", ["/r/b"]),
        ("match /r/parent::node()#x", []),
        ("match /r/ancestor-or-self::node()#x", ["/r"]),
        ("match //c/ancestor::*#x", ["/r", "/r/b"]),
        ("match //@k/parent::a#x", ["/r/a[1]"]),
        ('match //@k/"1"/ancestor::*#x', ["/r", "/r/a[1]", "/r/b"]),
    ],
)
def test_axes_and_tests(query: str, paths: list[str]) -> None:
    assert [SHELF.path(node) for node in nodes(SHELF, query)] == paths


def test_an_element_and_a_text_can_have_the_same_label() -> None:
    assert shown(SHELF, "match /r/$x/$x return $x") == {("a",): 1}


def test_namespaces_are_part_of_labels() -> None:
    tree = load('<r xmlns:p="urn:p" p:k="1"><p:a/><a/></r>')
    query = parse_pattern("match //p:a#x return x.label", {"p": "urn:p"})
    assert [answer.values for answer in rows(tree, query).values()] == [("{urn:p}a",)]
    assert rows(tree, parse_pattern("match /r/@p:k", {"p": "urn:p"}))
    assert not rows(tree, parse_pattern("match /r/@k"))


# Values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "operator", "constant", "expected"),
    [
        ("10", "<", "9", False),
        ("10", "<", 9.0, False),
        (" 10\n", "=", 10.0, True),
        ("1e1", "=", 10.0, True),
        ("+1", "=", 1.0, True),
        ("INF", ">", 1.0, True),
        ("INF", ">", Number(Decimal(1)), False),
        ("0.1", "=", Number(Decimal("0.10")), True),
        ("0.10000000000000000001", ">", Number(Decimal("0.1")), True),
        ("0.10000000000000000001", ">", 0.1, False),
        ("5 kg", ">", "5", False),
        ("2024-05-01T01:30+02:00", "<", "2024-05-01", True),
        (".5", "=", 0.5, True),
        ("-5.", "=", -5.0, True),
        ("١", "=", 1.0, False),
        ("ten", "!=", 9.0, True),
        ("ten", ">=", 9.0, False),
        ("", "=", 0.0, False),
        ("é", ">", "z", True),
        ("5.0", "=", "5", False),
    ],
)
def test_comparisons_with_constants(
    value: str, operator: str, constant: Constant, expected: bool
) -> None:
    assert comparison(operator, constant)(value) is expected


def test_not_a_number_is_equal_to_nothing() -> None:
    assert double_of("NaN") != double_of("NaN")


def test_comparisons_with_moments() -> None:
    tree = document('r[d["2024-05-01"], d["2024-05-02T00:00:00+02:00"], d["soon"]]')
    assert len(nodes(tree, 'match /r/d#x[. > date "2024-05-01"]')) == 1
    assert len(nodes(tree, 'match /r/d#x[. >= date "2024-05-01"]')) == 2
    assert len(nodes(tree, 'match /r/d#x[. != date "2024-05-01"]')) == 1


def test_string_values_leave_attributes_out_and_join() -> None:
    tree = document('r[p[@k="9", a["1"], "2"], q[@k="12"]]')
    assert holds(tree, "match /r[p = $x][q/@k = $x]")
    assert not holds(tree, "match /r[p = $x][q = $x]")
    assert shown(tree, "match /r/p#t return t.val, t.label, t.cont") == {
        ("12", "p", '<p k="9"><a>1</a>2</p>'): 1
    }


def test_variables_compare_by_kind_wherever_they_are_written() -> None:
    tree = document('r[a["10"], b["9"]]')
    assert holds(tree, "match /r[a > $y][b = $y]")
    assert holds(tree, "match /r[a = $x][b = $y] where $x > $y")
    assert not holds(tree, "match /r[a = $x][b = $y] where $x < $y")
    assert holds(tree, "match /r[b/$y][not(a < $y)]")


def test_constraints_on_times() -> None:
    tree = document("r[a[?f], b[?g]]")
    feed(tree, "f", "c", 2)
    feed(tree, "g", "c", 5)
    query = "match /r[a/c#t1][b/c#t2] where t2 - t1 {} return t1.time, t2.time"
    assert shown(tree, query.format("<= 3")) == {(2 * SECOND, 5 * SECOND): 1}
    assert shown(tree, query.format("< 3")) == {}
    assert holds(tree, "match /r[a/c#t1][b/c#t2] where 5*t1 = 2*t2")


# Rows and counts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("match /r", 1),
        ("match /r[a]", 2),
        ("match /r[a][b]", 6),
        ("match /r[a = 1]", 1),
        ("match //*", 7),
        ("match /r[a or b]", 1),
        ("match /r[a/$x or b/$x]", 3),
        ("match /r[a or b][b]", 3),
        ("match /r[(a and b) or c or (b and not(c))]", 1),
        ("match /r[not(a)]", 0),
        ("match /r[not(c)]", 1),
        ("match /r/b[not(a)]", 3),
        ("match /r[collect(b#t)]", 1),
        ("match /r[collect(c#t)]", 1),
        ("match //a, //b", 6),
        ("match /r[a#t or b#t] where t >= 0", 5),
        ("match /r[a#t or b#t]", 1),
    ],
)
def test_counts(query: str, count: int) -> None:
    tree = document('r[a["1"], a["2"], b["2"], b["3"], b, @k="1", d]')
    assert sum(shown(tree, query).values()) == count


def test_an_or_at_the_root_is_a_union_that_counts_each_node_once() -> None:
    tree = document("r[a[b], b]")
    query = "match //a#t or //*#t return t.id"
    assert shown(tree, query) == {("1",): 1, ("1.1",): 1, ("1.1.1",): 1, ("1.2",): 1}


def test_a_variable_of_one_alternative_is_its_own() -> None:
    tree = document('r[a["1"], b["1"], c["2"]]')
    assert holds(tree, "match /r[(a/$x and b/$x) or (a/$x and c/$x)]")
    assert not holds(tree, "match /r[(a/$x and c/$x) or (b/$x and c/$x)]")


def test_a_not_sees_bindings_that_are_written_after_it() -> None:
    tree = document('r[a["1"], a["2"], b["1"]]')
    assert shown(tree, "match /r[not(b = $x)][a = $x] return $x") == {("2",): 1}


def test_a_variable_inside_a_not_alone_is_local_to_it() -> None:
    assert not holds(document('r[a["1"], b["1"]]'), "match /r[not(a/$x and b/$x)]")
    assert holds(document('r[a["1"], b["2"]]'), "match /r[not(a/$x and b/$x)]")


def test_a_constraint_that_names_a_node_in_a_not_belongs_to_it() -> None:
    tree = document("r[?f]")
    feed(tree, "f", "a", 1)
    feed(tree, "f", "b", 2)
    query = "match /r/a#t[not(following-sibling::b#u)] where u - t < {}"
    assert holds(tree, query.format(1))
    assert not holds(tree, query.format(2))


def test_nested_nots() -> None:
    query = "match /r[not(a[not(b)])]"
    assert holds(document("r[a[b], a[b]]"), query)
    assert not holds(document("r[a[b], a]"), query)


def test_collect_gathers_in_document_order_and_counts_once() -> None:
    tree = document('r[a[b["2"], c[b["1"]]], a]')
    query = parse_pattern("match /r/a#x[collect(//b#y)] return x.id, y.val, y.label")
    found = sorted_rows(rows(tree, query))
    assert [answer for _, answer in found] == [
        Answer((Id.parse("1.1"), ("2", "1"), ("b", "b")), 1),
        Answer((Id.parse("1.2"), (), ()), 1),
    ]
    anchor = Id.parse("1.1")
    assert found[0][0] == (anchor, anchor, anchor)


def test_collect_joins_with_what_is_around_it() -> None:
    tree = document('r[a["1"], b["1"], b["2"], b["1"]]')
    query = "match /r[a/$x][collect(b#y/$x)] return y.id"
    assert shown(tree, query) == {("(Id('1.2'), Id('1.4'))",): 1}


def test_rows_that_gather_different_nodes_at_one_place_stay_apart() -> None:
    tree = document('r[a["1"], a["2"], b["1"], b["2"]]')
    found = rows(tree, parse_pattern("match /r[a/$x][collect(b#y/$x)] return y.val"))
    root = Id.parse("1")
    assert found == {((root, "1"),): Answer((("1",),), 1), ((root, "2"),): Answer((("2",),), 1)}


def test_keys_have_ids_in_the_place_of_values() -> None:
    tree = document('r[a["1"], a["1"]]')
    found = rows(tree, parse_pattern("match /r/a#x return x.val, x.cont, x.time"))
    assert set(found) == {
        (Id.parse("1.1"), Id.parse("1.1"), 0),
        (Id.parse("1.2"), Id.parse("1.2"), 0),
    }
    assert {answer.values for answer in found.values()} == {("1", "<a>1</a>", 0)}


def test_rows_sort_by_what_they_show() -> None:
    tree = document('r[a["é"], a["z"], a["B"], a["z"]]')
    by_value = sorted_rows(rows(tree, parse_pattern("match /r/a#x return x.val")))
    assert [answer.values[0] for _, answer in by_value] == ["B", "z", "z", "é"]
    assert [str(key[0]) for key, _ in by_value] == ["1.3", "1.2", "1.4", "1.1"]


def test_valuations_number_pattern_nodes_in_preorder() -> None:
    tree = document("r[a, b[c]]")
    (valuation,) = valuations(tree, parse_pattern("match /r[not(d/e)][a or f]/b#t/c"))
    paths = {number: tree.path(node) for number, node in valuation.nodes.items()}
    assert paths == {0: "/r", 3: "/r/a", 5: "/r/b", 6: "/r/b/c"}
    assert tree.path(valuation.names["t"]) == "/r/b"
    (valuation,) = valuations(tree, parse_pattern("match /r[f/g or (h and i) or a]/b"))
    assert sorted(valuation.nodes) == [0, 5, 6]


def test_calls_bring_no_rows_themselves() -> None:
    tree = document("r[?f, a]")
    assert shown(tree, "match //node()") == {(): 2}
    end(tree, "f")
    assert shown(tree, "match //node()") == {(): 2}


def test_self_node_asks_nothing() -> None:
    everything = PatternNode(Axis.SELF, AnyNode(), name="x")
    assert rows(SHELF, Pattern((everything,)))
    inside = PatternNode(Axis.CHILD, Name("r"), branches=(Collect(everything),))
    found = rows(SHELF, Pattern((inside,), (), (Output(Kind.LABEL, "x"),)))
    assert [answer.values for answer in found.values()] == [(("r",),)]
