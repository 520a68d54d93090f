"""Truth, satisfiable rows and relevance by brute force: the papers' examples, declared facts, and
laws: one saturated future answers for all, fragments and futures are what they are counted to be.
"""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axlog.document.serializer import serialise
from axlog.document.tree import Tree
from axlog.errors import UndecidedError, UnknownStreamError
from axlog.query.native import parse_pattern
from axlog.query.pattern import Kind, Pattern
from axlog.query.truth import Truth
from lab.reference import (
    Alphabet,
    Bound,
    bound_of,
    fragments,
    futures,
    reachable,
    relevant,
    rows,
    satisfiable_rows,
    saturated,
    truth,
)
from lab.reference.bounds import is_monotone
from lab.reference.fragments import as_element, attribute, element, text
from tests.amounts import cases
from tests.papers import SECOND, delete_siblings, document, end, feed
from tests.strategies.patterns import patterns


def truth_of(tree: Tree, query: str, trees: int = 1, nodes: int = 2) -> Truth:
    pattern = parse_pattern(query)
    return truth(tree, pattern, bound_of(tree, pattern, trees, nodes))


def relevant_streams(tree: Tree, query: str, trees: int = 1, nodes: int = 2) -> set[str]:
    pattern = parse_pattern(query)
    bound = bound_of(tree, pattern, trees, nodes)
    return {stream for stream in tree.calls() if relevant(tree, pattern, stream, bound)}


def test_oracle_texts_that_stand_apart_need_a_node_between_them() -> None:
    tree, pattern = document("r[?f]"), parse_pattern('match //b["1"]/"2"')
    bound = bound_of(tree, pattern, trees_per_call=1)
    assert bound.nodes_per_tree == 4
    assert truth(tree, pattern, bound) is Truth.POSSIBLE


# The papers' examples -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("notation", "expected"),
    [("a[b, c]", Truth.TRUE), ("a[b]", Truth.NEVER), ("a[b, ?f1]", Truth.POSSIBLE)],
)
def test_example_1_p1_three_values(notation: str, expected: Truth) -> None:
    assert truth_of(document(notation), "match /a[b][c]") is expected


@pytest.mark.parametrize(
    ("notation", "expected", "row"),
    [
        ("r[p[b], q[c], w[s]]", Truth.TRUE, ("b", "c")),
        ("r[p[b], q[?f], w[s]]", Truth.POSSIBLE, ("b", "other")),
        ("r[p[b], q[c], w[?f]]", Truth.POSSIBLE, ("b", "c")),
    ],
)
def test_example_2_p1_figure_4(notation: str, expected: Truth, row: tuple[str, str]) -> None:
    tree = document(notation)
    pattern = parse_pattern("match /r[p/$x][q/$y]/w/s return $x, $y")
    bound = bound_of(tree, pattern, 1, 1)
    assert truth(tree, pattern, bound) is expected
    found = satisfiable_rows(tree, pattern, bound)
    assert row in found
    assert {x for x, _ in found} == {"b"}


def test_example_3_p1_figure_6_joins() -> None:
    query = "match /r[u/$x][v/$x][w/$x]/z/$x"
    tree = document("r[u[a], v[?f], w[?g], z[b]]")
    assert truth_of(tree, query) is Truth.NEVER
    assert truth_of(document("r[u[a], v[?f], w[?g], z[a]]"), query) is Truth.POSSIBLE


def test_example_4_p1_figure_7_useless_streams() -> None:
    tree = document("r[b[e, ?g], b[?f], d[?h2], ?h]")
    assert relevant_streams(tree, "match /r[b/e][c]", nodes=1) == {"h"}


def test_example_7_p2_figure_3() -> None:
    tree = document("a[b[a], a[c, ?f]]")
    pattern = parse_pattern("match /a[b/$x]/$x/$y return $x, $y")
    bound = bound_of(tree, pattern, 1, 1)
    assert truth(tree, pattern, bound) is Truth.TRUE
    labels = set(bound.alphabet.elements)
    assert satisfiable_rows(tree, pattern, bound) == {("a", label) for label in labels}


def test_example_8_p2_figure_5_relevance() -> None:
    tree = document("a[b[c, ?f], ?g, e[?h]]")
    query = "match /a[b/c][d]"
    assert truth_of(tree, query) is Truth.POSSIBLE
    assert relevant_streams(tree, query) == {"g"}


def test_example_9_p2_figure_5_the_subtle_one() -> None:
    tree = document("r[b[?f], d[?g]]")
    assert relevant_streams(tree, "match /r[//c][d/c]") == {"g"}


def test_example_9_p2_dominance_compares_join_variables() -> None:
    tree = document('r[a["1", ?f], a["2", k], z[?g]]')
    pattern = parse_pattern("match /r[a[$y][k]][z/b/$y]")
    bound = bound_of(tree, pattern, 1, 2, Alphabet(("k", "b"), ("1", "2")))
    assert relevant(tree, pattern, "f", bound)
    assert relevant(tree, pattern, "g", bound)


def test_example_11_p2_figure_4_time() -> None:
    query = "match /r[p/a#t1][q/d#t2] where t2 - t1 <= 3"
    tree = document("r[p[?then], q[?f], e[?g]]")
    feed(tree, "then", "a", 2)
    end(tree, "then")
    assert truth_of(tree, query) is Truth.POSSIBLE
    feed(tree, "g", "x", 5)
    assert truth_of(tree, query) is Truth.POSSIBLE
    feed(tree, "g", "x", 10)
    assert truth_of(tree, query) is Truth.NEVER


def test_example_11_p3_time_passes() -> None:
    query = "match /r/a#t where t <= 100"
    tree = document("r[?f]")
    assert truth_of(tree, query) is Truth.POSSIBLE
    feed(tree, "f", "b", 123)
    assert truth_of(tree, query) is Truth.NEVER


def test_example_12_p2_negation() -> None:
    tree = document("r[?f]")
    assert truth_of(tree, "match /r[not(b)]") is Truth.TRUE
    assert truth_of(tree, "match /r[a][not(a)]") is Truth.NEVER
    assert truth_of(tree, "match /r[a][not(b)]") is Truth.POSSIBLE
    feed(tree, "f", "b")
    assert truth_of(tree, "match /r[a][not(b)]") is Truth.NEVER
    assert truth_of(tree, "match /r[a/$x][not(b/$x)]") is Truth.POSSIBLE


# What the order monitor's streams can bring for one order.
PLACED = element(
    "order",
    element("client", text("INRIA")),
    element("details", element("computer")),
    element("oid", text("17")),
)
SHIPPED = element("order", element("oid", text("17")))
MONITOR = (
    'match /management[webstore/orders/order[client/"INRIA"][details/computer]/oid/$x#t1]'
    "[shipping/orders/order/oid/$x#t2] where t2 - t1 {} 50000 return $x"
)


def monitor(seconds_to_ship: float | None, clock: float = 0) -> Tree:
    tree = document("management[webstore[orders[?placed]], shipping[orders[?shipped]], ?tick]")
    feed(tree, "placed", str(PLACED), 100)
    if seconds_to_ship is not None:
        feed(tree, "shipped", str(SHIPPED), 100 + seconds_to_ship)
    if clock:
        feed(tree, "tick", "tick", clock)
    return tree


def keyed(tree: Tree) -> bool:
    """`key webstore/orders/order by oid`, and the same for shipping."""
    orders = (f"match /management/{part}/orders/order/oid/$x return $x" for part in SITES)
    return all(
        answer.count == 1
        for query in orders
        for answer in rows(tree, parse_pattern(query)).values()
    )


SITES = ("webstore", "shipping")


def monitored(tree: Tree, operator: str, with_keys: bool) -> Truth:
    pattern = parse_pattern(MONITOR.format(operator))
    pools = {"placed": (PLACED,), "shipped": (SHIPPED,), "tick": ()}
    bound = replace(bound_of(tree, pattern, 1, 1), pools=pools, allows=keyed if with_keys else None)
    return truth(tree, pattern, bound)


@pytest.mark.parametrize(
    ("seconds_to_ship", "with_keys", "expected"),
    [
        (50_000, False, Truth.TRUE),
        (None, False, Truth.POSSIBLE),
        (None, True, Truth.POSSIBLE),
        (49_999, False, Truth.POSSIBLE),
        (49_999, True, Truth.NEVER),
    ],
)
def test_example_13_p3_order_monitor(
    seconds_to_ship: float | None, with_keys: bool, expected: Truth
) -> None:
    assert monitored(monitor(seconds_to_ship), ">=", with_keys) is expected


@pytest.mark.parametrize(("clock", "expected"), [(50_100, Truth.POSSIBLE), (50_101, Truth.NEVER)])
def test_example_13_p3_orders_in_time(clock: float, expected: Truth) -> None:
    assert monitored(monitor(None, clock), "<=", with_keys=True) is expected


# Truth --------------------------------------------------------------------------------------------


def test_a_truth_is_no_boolean() -> None:
    with pytest.raises(TypeError):
        bool(Truth.TRUE)


def test_truths_are_ordered_for_min_and_max() -> None:
    assert sorted(Truth, reverse=True) == [Truth.TRUE, Truth.POSSIBLE, Truth.NEVER]
    assert min(Truth.TRUE, Truth.NEVER) is Truth.NEVER
    assert Truth.POSSIBLE <= Truth.POSSIBLE < Truth.TRUE
    assert not Truth.POSSIBLE >= Truth.TRUE


# Declared facts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "query", "expected"),
    [
        ("?f", "match /r[a][b]", Truth.POSSIBLE),
        ("?f{most=2}", "match /r[a][b]", Truth.POSSIBLE),
        ("?f{most=1}", "match /r[a][b]", Truth.NEVER),
        ("?f{most=1}", "match /r[a or b]", Truth.POSSIBLE),
        ("?f{mode=one-shot}", "match /r[a][b]", Truth.POSSIBLE),
        ("?f{mode=one-shot}", "match /r[a#t][b#u] where t < u", Truth.NEVER),
        ("?f{mode=one-shot}", "match /r/a#t where t >= 5", Truth.POSSIBLE),
        ("?f", "match /r[a#t][b#u] where t < u", Truth.POSSIBLE),
        ("?f", "match /r/a/next-sibling::a", Truth.POSSIBLE),
        ("?f{deletes=only}", "match /r[a]", Truth.NEVER),
        ("c, ?f{deletes=only}", "match /r[not(c)]", Truth.POSSIBLE),
        ("c, ?f{deletes=yes}", "match /r[a][not(c)]", Truth.POSSIBLE),
        ("c, ?f", "match /r[a][not(c)]", Truth.NEVER),
        ("c, d, c, ?f{deletes=only}", "match /r[c][not(d)]", Truth.POSSIBLE),
        ("c, c, ?f{deletes=only}", "match /r[c][not(c/next-sibling::c)]", Truth.NEVER),
        ("c[d, ?f{deletes=yes}], ?g{deletes=yes}", "match /r[not(c)]", Truth.POSSIBLE),
    ],
)
def test_declared_facts_narrow_the_future(call: str, query: str, expected: Truth) -> None:
    assert truth_of(document(f"r[{call}]"), query, trees=2, nodes=1) is expected


def test_what_a_stream_has_brought_counts() -> None:
    tree = document("r[?f{most=2}]")
    feed(tree, "f", "c, c")
    assert truth_of(tree, "match /r[a]") is Truth.NEVER


def test_an_ended_stream_brings_nothing() -> None:
    tree = document("r[?f]")
    end(tree, "f")
    assert truth_of(tree, "match /r[a]") is Truth.NEVER


def test_deleting_a_subtree_closes_its_calls() -> None:
    tree = document("r[c[?f], ?g{deletes=yes}]")
    assert truth_of(tree, "match //a") is Truth.POSSIBLE
    delete_siblings(tree, "g", "c")
    assert set(tree.calls()) == {"g"}


def test_a_value_above_an_open_call_can_be_lost_and_come() -> None:
    tree = document('r[a["5", ?f]]')
    pattern = parse_pattern("match /r/a[. = 53]")
    bound = Bound(Alphabet(("b",), ("3",)), 1, 2, ordered=True)
    assert not is_monotone(tree, pattern, bound)
    assert truth(tree, pattern, bound) is Truth.POSSIBLE


def test_the_id_of_a_node_to_come_is_none() -> None:
    tree = document("r[a, ?f]")
    pattern = parse_pattern("match /r/a#x return x.id, x.label")
    found = satisfiable_rows(tree, pattern, bound_of(tree, pattern, 1, 1))
    assert {(None if id_ is None else str(id_), label) for id_, label in found} == {
        ("1.1", "a"),
        (None, "a"),
    }


def test_relevance_counts_rows_lost_and_values_changed() -> None:
    tree = document("r[a[?f], b[?g]]")
    assert relevant_streams(tree, "match /r[not(a/c)]", nodes=1) == {"f"}
    assert relevant_streams(tree, "match /r/a#x return x.cont", nodes=1) == {"f"}
    assert relevant_streams(tree, "match /r/a#x return x.id", nodes=1) == set()


def test_relevance_is_refused_where_streams_delete() -> None:
    with pytest.raises(UndecidedError) as caught:
        relevant_streams(document("r[?f{deletes=yes}]"), "match /r/a")
    assert caught.value.code == "AX503"


def test_relevance_of_an_unknown_stream_is_refused() -> None:
    tree = document("r[?f]")
    pattern = parse_pattern("match /r/a")
    with pytest.raises(UnknownStreamError):
        relevant(tree, pattern, "g", bound_of(tree, pattern, 1, 1))


def test_a_search_that_grows_too_large_is_refused() -> None:
    tree = document("r[?f, ?g]")
    pattern = parse_pattern("match /r[a][not(a)]")
    bound = replace(bound_of(tree, pattern, 2, 2), most_futures=100)
    with pytest.raises(UndecidedError) as caught:
        truth(tree, pattern, bound)
    assert caught.value.code == "AX502"


# Fragments and futures ----------------------------------------------------------------------------


def test_reduced_fragments_are_the_papers_reduced_trees() -> None:
    found = [str(fragment) for fragment in fragments(Alphabet(("a", "b")), 3)]
    assert len(found) == len(set(found)) == 2 + 4 + 8 + 2
    assert "a[a, b]" in found
    assert "a[b, a]" not in found
    assert "a[a, a]" not in found


def test_reduced_fragments_keep_texts_apart() -> None:
    found = {str(fragment) for fragment in fragments(Alphabet(("a",), ("1", "2")), 4)}
    assert 'a["1", a, "2"]' in found
    assert not any('"1", "2"' in each for each in found)


def test_ordered_fragments_are_all_sequences_without_adjacent_texts() -> None:
    found = [str(fragment) for fragment in fragments(Alphabet(("a",), ("1",)), 4, ordered=True)]
    # a tree of n nodes as a word: Catalan numbers of shapes, minus those with adjacent texts
    assert len(found) == len(set(found))
    assert {'a["1", a, "1"]', 'a[a, a, "1"]', "a[a, a, a]"} <= set(found)
    assert not any('"1", "1"' in each for each in found)


def test_fragments_with_attributes() -> None:
    found = {str(each) for each in fragments(Alphabet(("a",), ("1",), ("k", "l")), 3)}
    assert {'a[@k="1"]', 'a[@k="1", @l="1"]', 'a[@k="1", "1"]', 'a[a[@l="1"]]'} <= found


def test_a_fragment_arrives_as_it_is_written() -> None:
    fragment = element("a", attribute("k", "v"), text("1"), element("b", text("2")), text("3"))
    tree = document("r[?f]")
    bound = Bound(Alphabet(()), 1, 1, pools={"f": (fragment,)})
    grown = saturated(tree, bound).applied_to(tree)
    assert '<a k="v">1<b>2</b>3</a>' in serialise(grown)
    assert serialise(tree) == serialise(document("r[?f]"))
    assert as_element(fragment).getparent() is None


def test_futures_are_every_choice_for_every_call() -> None:
    tree = document("r[?f, b[?g{mode=one-shot}], ?h{most=1}, ?i{deletes=only}]")
    bound = Bound(Alphabet(("a", "b")), 2, 1, times=(-SECOND, 0, SECOND))
    # 4 timed trees: sets of up to 2; one-shot: nothing, or 3 forests at one of 2 times; up to 1
    assert sum(1 for _ in futures(tree, bound)) == (1 + 4 + 6) * (1 + 2 * 3) * (1 + 4)
    assert str(next(futures(tree, bound))) == "nothing"


def test_messages_come_in_the_order_of_time_and_stream() -> None:
    tree = document("r[?f, b[?g]]")
    bound = Bound(Alphabet(("a",)), 1, 1, times=(0, SECOND))
    said = {str(future) for future in futures(tree, bound)}
    assert "add(?g, a) at 0, add(?f, a) at 1000000" in said
    assert "add(?f, a) at 0, add(?g, a) at 0" in said
    grown = [serialise(each) for each in reachable(tree, bound)]
    assert len(grown) == 9


# One future for all -------------------------------------------------------------------------------

DOCUMENTS = st.sampled_from(
    [
        "r[?f]",
        "r[a[?f]]",
        "r[a[?f], b[?g]]",
        'r[a["1", ?f], ?g]',
        "a[b[c, ?f], ?g]",
        'a[@a="1", c[?f], b["1"]]',
        "r[a[b, ?f{mode=one-shot}], ?g{deletes=only}]",
    ]
)
MONOTONE = patterns(
    labels=("a", "b", "r"),
    max_nodes=3,
    negation=False,
    time=False,
    variables=("x",),
    outputs=(Kind.VARIABLE, Kind.LABEL),
)


@settings(max_examples=cases(12))
@given(DOCUMENTS, MONOTONE)
def test_differential_saturated_and_enumerated_rows(notation: str, pattern: Pattern) -> None:
    tree = document(notation)
    bound = Bound(Alphabet(("a", "b"), ("1",)), 2, 2)
    if not is_monotone(tree, pattern, bound):
        return
    at_once = satisfiable_rows(tree, pattern, bound)
    one_by_one = {
        answer.values
        for grown in reachable(tree, bound)
        for answer in rows(grown, pattern).values()
    }
    assert one_by_one <= at_once
    # at most two fragments a call were tried one by one; rows that need three nodes to come from
    # three trees may be missing there, and only those
    if sum(1 for _ in pattern.nodes()) <= 2:
        assert one_by_one == at_once


@settings(max_examples=cases(12))
@given(DOCUMENTS, MONOTONE)
def test_differential_relevance_with_and_without_the_short_way(
    notation: str, pattern: Pattern
) -> None:
    tree = document(notation)
    bound = Bound(Alphabet(("a", "b")), 2, 1)
    if not is_monotone(tree, pattern, bound) or sum(1 for _ in pattern.nodes()) > 2:
        return
    unrestricted = replace(bound, allows=lambda _: True)
    assert not is_monotone(tree, pattern, unrestricted)
    for stream in tree.calls():
        short = relevant(tree, pattern, stream, bound)
        assert short == relevant(tree, pattern, stream, unrestricted)


def test_every_pair_of_labels_can_come() -> None:
    tree = document("r[p[?f], q[?g]]")
    pattern = parse_pattern("match /r[p/$x]/q/$y return $x, $y")
    bound = Bound(Alphabet(("a", "b", "c")), 1, 1)
    assert satisfiable_rows(tree, pattern, bound) == set(product("abc", repeat=2))
