"""The records maintainer (P4): laws 1 and 2, lxml beside it, what an update touches."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from axlog.document.loader import read_forest
from axlog.document.operations import Delete, Insert, Rename, Where
from axlog.errors import AxlogError
from axlog.live.document import Document, parse
from axlog.live.internals import maintained, maintained_view
from axlog.live.view import View
from axlog.views.records.maintainer import Records
from axlog.views.view import MaintainedView
from lab.benchmarks.records import document_of, pattern_of
from lab.laws.fuzzing import run_case
from lab.laws.small_cases import operations
from lab.laws.xpath_law import positions_of_tree, selected_by_lxml
from tests.accepted_errors import accept, accepting
from tests.amounts import cases, chunks


def records(view: View) -> Records:
    kept = maintained_view(view).maintainer
    assert isinstance(kept, Records)
    return kept


@pytest.mark.parametrize("start", chunks(100, 100))
def test_differential_records_are_exact(start: int) -> None:
    failures = [f for seed in range(start, start + 100) if (f := run_case(seed, "records"))]
    assert not failures, "\n".join(map(str, failures))


def test_the_next_sibling_is_an_element_never_a_text() -> None:
    """Found by `python -m lab fuzz --law records`, seed 93667."""
    document = parse("<a><b/>text<b/></a>")
    second = maintained(document).tree.id(maintained(document).tree.partition("b")[1])
    for test, ids in (("text()", []), ('"text"', []), ("node()", [second]), ("b", [second])):
        pattern = f"match //b[next-sibling::{test}#t] return t.id"
        for name in ("records", "reevaluate"):
            rows = document.watch(pattern, maintainer=name).rows()
            assert [row["t.id"] for row in rows] == ids, (test, name)


# Against lxml -------------------------------------------------------------------------------------

QUERIES = (
    "//a/following-sibling::b",
    "//a[following-sibling::*[1][self::b]]",
    "//a/following-sibling::*[1]/b",
    "/a/b[not(preceding-sibling::b)]",
    "//b[preceding-sibling::a or parent::c]/following-sibling::c",
    "//c[ancestor::b][following-sibling::a[c]]",
    "//a[@k = '1']/following-sibling::b[. > 1]",
    "//a[following-sibling::b[following-sibling::c]][following-sibling::c]//b",
    "//b/parent::a | //c/following-sibling::text()",
    "//a[not(//c)]/following-sibling::b",
    "//b/ancestor::a[following-sibling::*]",
    "//*[following::c]/preceding-sibling::b",
)


NEWER_NUMBERS = ("+2", "1e1")
"""Numbers since XPath 2.0 that lxml, which has XPath 1.0, does not read as numbers."""


@settings(max_examples=cases(25), deadline=None)
@given(st.randoms(use_true_random=False))
def test_oracle_lxml_selects_the_same_nodes(random: Random) -> None:
    document = parse("<a><b>2</b><a k='1'/>x<b>1<c/></b><c><a><b/></a><c/></c></a>")
    views = {query: document.watch(query) for query in QUERIES}
    assert {maintained_view(view).chosen.name for view in views.values()} == {"records"}
    for _ in range(5):
        try:
            maintained(document).apply(operations(random, maintained(document).tree))
        except AxlogError as error:
            accept(error)
            continue
        root = etree.fromstring(document.xml())
        nodes = positions_of_tree(maintained(document).tree)
        positions = {
            maintained(document).tree.id(node): position for node, position in nodes.items()
        }
        has_newer = any(text in document.xml() for text in NEWER_NUMBERS)
        for query, view in views.items():
            if has_newer and ">" in query:
                continue
            found = [positions[row["node.id"]] for row in view.rows()]
            assert len(found) == len(set(found)), (query, document.xml())
            assert set(found) == selected_by_lxml(root, query), (query, document.xml())


# Which algorithm ----------------------------------------------------------------------------------

PLANS = (
    ("boolean(/a[.//b or not(./c)]/*//d)", "downward", "an update costs depth x pattern"),
    (
        "boolean(//a[following-sibling::b]/c[following-sibling::*[1][self::d]])",
        "forward",
        "matching triples",
    ),
    ("boolean(//a[not(following-sibling::b)])", "automaton", "it has or, or not"),
    ("boolean(//a[preceding-sibling::b])", "automaton", "it has reverse axes"),
    ("boolean(//a[following-sibling::text()])", "automaton", "a step beside others may be a text"),
    ("//a[following-sibling::b]", "automaton", "it selects nodes"),
)


@pytest.mark.parametrize(("query", "algorithm", "said"), PLANS)
def test_explain_says_which_algorithm_keeps_a_view(query: str, algorithm: str, said: str) -> None:
    view = parse("<a/>").watch(query, maintainer="records")
    assert records(view).plan.algorithm == algorithm
    assert said in str(records(view).plan)
    assert said in Records.reason(view.query.pattern)


def test_what_records_decline_is_said_with_its_reason() -> None:
    document = parse("<a/>")
    inside = "match //a[not(following-sibling::b[c/$x])]/d/$x return $x"
    refusal = str(Records.refusal(document.watch(inside).query.pattern))
    assert "records bind no variables, and a sibling axis is inside" in refusal
    many = "//a" + "".join(f"[following-sibling::b{n}][preceding-sibling::c]" for n in range(13))
    assert maintained_view(document.watch(many)).chosen.name == "records"  # whatever their number


def test_an_automaton_that_outgrows_its_bound_gives_way_and_stays_exact() -> None:
    document = parse("<r><a/><b/><c/></r>")
    query = document.watch("//a/following-sibling::b[not(preceding-sibling::c)]")
    small = Records(
        maintained(document).tree, query.query.pattern, maintained(document).engine, most_states=12
    )
    view = MaintainedView(
        "small",
        query.query,
        small,
        maintained_view(query).chosen,
        maintained(document).lock,
        maintained(document).around,
    )
    maintained(document).views["small"] = view
    random = Random(1)
    for _ in range(40):
        with accepting():
            maintained(document).apply(operations(random, maintained(document).tree))
        assert view.rows() == query.rows()
    assert small.declined == "its automaton has more than 12 states"
    assert records(query).declined is None


# Siblings and joins -------------------------------------------------------------------------------

PAIRS = """
    for $a in //item, $b in $a/following-sibling::*[1] where $a/k = $b/k
    return <same>{id($a)}{id($b)}</same>
"""


def test_siblings_with_joins_are_handed_to_counting() -> None:
    document = parse("<r><item><k>1</k></item>x<item><k>1</k></item><item><k>2</k></item></r>")
    view = document.watch(PAIRS)
    assert maintained_view(view).chosen.name == "records"
    assert "counting keeps the joins" in maintained_view(view).chosen.reason
    (row,) = view.rows()
    (gone,) = document.update("insert node <item/> before /r/item[2]")
    assert (gone.op, gone.row) == ("delete", row)
    (back,) = document.update("delete node /r/item[2]")
    assert (back.op, back.row) == ("insert", gone.row)
    (more,) = document.update("replace value of node /r/item[3]/k with '1'")
    assert more.op == "insert"


def test_what_is_joined_nowhere_else_is_not_joined_again() -> None:
    """An update beside a join that it does not touch moves nothing in the counting engine."""
    document = parse("<r><item><k>1</k></item><item><k>1</k></item><y/></r>")
    document.watch(PAIRS)
    before = maintained(document).engine.climbed
    assert document.update("insert node <z/> into /r/y") == []
    assert maintained(document).engine.climbed == before


# EXAMPLES 18, by records -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query", ["/a[.//b or not(./c)]/*//d", "boolean(/a[.//b or not(./c)]/*//d)"]
)
def test_figure_1_through_each_update(query: str) -> None:
    document = parse("<a><x><b/><y><d/></y></x></a>")
    view = document.watch(query, maintainer="records")
    x, b, y = (maintained(document).tree.partition(name)[0] for name in "xby")
    steps = (
        (Rename(b, "e"), True),  # by not(c)
        (Insert(Where.AFTER, x, tuple(read_forest("<c/>"))), False),
        (Insert(Where.FIRST, y, tuple(read_forest("<b/>"))), True),  # by the b
        (Delete(y), False),
    )
    assert view.holds()
    for operation, holds in steps:
        changes = maintained(document).apply([operation])
        assert view.holds() == holds, operation
        assert bool(changes) == (operation is not steps[0][0])


# What an update touches (F14) -------------------------------------------------------------------

BOOLEAN = "boolean(//a[following-sibling::b]/c)"
SELECTING = "//a[c]/following-sibling::b"
DOWNWARD = "boolean(//a[b]//c)"


def deep_and_wide(depth: int, width: int) -> Document:
    """A chain of this depth; every node of it has this many children more."""
    row = "<x/>" * width
    return parse(f"{f'<y>{row}' * depth}<a/>{'</y>' * depth}")


def cost(depth: int, width: int, query: str) -> float:
    document = deep_and_wide(depth, width)
    view = document.watch(query, maintainer="records")
    (at,) = maintained(document).tree.partition("a")
    kept = records(view)
    before = kept.steps
    for _ in range(40):
        maintained(document).apply([Insert(Where.LAST, at, tuple(read_forest("<c/>")))])
        maintained(document).apply([Delete(maintained(document).tree.partition("c")[0])])
    return (kept.steps - before) / 80


@pytest.mark.parametrize("query", [BOOLEAN, SELECTING, DOWNWARD])
def test_an_update_costs_depth_and_log_width_not_size(query: str) -> None:
    base, deeper, wider = (cost(*size, query) for size in ((5, 20), (20, 20), (5, 2000)))
    assert deeper <= 4.6 * base
    assert wider <= 3.2 * base  # log 2000 / log 20 is 2.5


def test_downward_records_do_not_know_the_width() -> None:
    assert cost(5, 2000, DOWNWARD) == cost(5, 20, DOWNWARD)


def test_a_new_subtree_is_one_bulk_step() -> None:
    document = deep_and_wide(30, 5)
    kept = records(document.watch(BOOLEAN, maintainer="records"))
    subtree = tuple(read_forest(f"<b>{'<x/>' * 3000}</b>"))
    before = kept.steps
    maintained(document).apply(
        [Insert(Where.LAST, maintained(document).tree.partition("a")[0], subtree)]
    )
    assert kept.steps - before < 2 * 3001 + 30 * 20  # its nodes and their tree, then one climb


def test_changes_cost_in_proportion_to_their_rows() -> None:
    """A row that nothing changes for is not looked at, however many there are."""
    many = "".join("<g><a><c/></a><b/><b/></g>" for _ in range(500))
    document = parse(f"<r>{many}</r>")
    view = document.watch(SELECTING)
    kept = records(view)
    assert len(view) == 1000
    before = kept.steps
    ids = {
        maintained(document).tree.id(node) for node in maintained(document).tree.partition("b")[:2]
    }
    changes = maintained(document).apply([Delete(maintained(document).tree.partition("c")[0])])
    assert {(change.op, change.row["node.id"]) for change in changes} == {
        ("delete", each) for each in ids
    }
    assert len(changes) == 2
    assert kept.steps - before < 150


@pytest.mark.parametrize("query", [BOOLEAN, SELECTING])
def test_what_no_step_notices_is_not_climbed_for(query: str) -> None:
    """Law 8: a subtree of other labels costs its own nodes and its place in one row."""
    document = deep_and_wide(60, 5)
    kept = records(document.watch(query, maintainer="records"))
    before = kept.steps
    forest = tuple(read_forest("<z><y/><y/></z>"))
    assert (
        maintained(document).apply(
            [Insert(Where.LAST, maintained(document).tree.partition("a")[0], forest)]
        )
        == []
    )
    assert maintained(document).apply([Delete(maintained(document).tree.partition("z")[0])]) == []
    assert kept.steps - before < 40


@pytest.mark.parametrize("nodes", [2, 5, 8])
def test_oracle_the_benchmark_asks_lxml_the_same(nodes: int) -> None:
    text, query = document_of(2, 12, 60), pattern_of(nodes)
    document = parse(text)
    view = document.watch(query, maintainer="records")
    root = etree.fromstring(text)
    held = set()
    for at, node in enumerate(list(maintained(document).tree.partition("x"))):
        maintained(document).apply([Rename(node, "a")])
        element = root.findall(".//x")[at]
        element.tag = "a"
        assert view.holds() == root.xpath(query)
        held.add(view.holds())
        element.tag = "x"
        maintained(document).apply([Rename(node, "x")])
    assert held == {True, False} or nodes == 2


@pytest.mark.parametrize("step", ["/following-sibling::a", "/parent::a"])
def test_a_path_of_too_many_steps_is_refused(step: str) -> None:
    with pytest.raises(AxlogError) as refused:
        parse("<a/>").watch("//a" + step * 900, maintainer="incremental")
    assert refused.value.code == "AX212"
