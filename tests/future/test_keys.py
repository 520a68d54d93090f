"""Declared keys: what they forbid of what may still come, exactly; random cases by brute force."""

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

import axlog
from axlog.document.tree import Tree
from axlog.errors import QueryError, StreamError, UpdateError
from axlog.future.keys import is_broken, parse_fact
from axlog.future.relevance import relevance
from axlog.future.truth import Outlook
from axlog.live.options import Keep, Share
from axlog.query.native import parse_pattern
from axlog.query.truth import Truth
from lab.laws.fuzz_cases import Case
from lab.laws.outlook_cases import document_of
from lab.laws.outlook_declared import check_declared, make_keyed_case, make_typed_case
from tests.papers import document, xml

KEY = "key a by b trusted"


def keyed(notation: str, *facts: str) -> Tree:
    tree = document(notation)
    tree.facts = tuple(parse_fact(fact) for fact in facts or (KEY,))
    return tree


@pytest.mark.parametrize(
    ("notation", "query", "status"),
    [
        ('r[a[b["1"]], ?f]', "match /r/a[b/$x]/c return $x", Truth.NEVER),
        ('r[a[b["2"]], ?f]', "match /r/a[b/$x]/c return $x", Truth.POSSIBLE),
        # the value arrives below a node that is there
        ('r[a[b["1"]], a[?f]]', "match /r/a[b/$x]/c return $x", Truth.NEVER),
        ('r[a[b["1"], ?f]]', "match /r/a[b/$x]/c return $x", Truth.POSSIBLE),
        ('r[a[b["1"], ?f]]', "match /r/a[b = $x] return $x", Truth.TRUE),
        # the query gives the value
        ('r[a[b["1"]], ?f]', 'match /r/a[b/"1"]/c', Truth.NEVER),
        ('r[a[b["1"]], ?f]', 'match /r/a[b = "1"]/c', Truth.NEVER),
        ('r[a[b["1"]], ?f]', 'match /r/a[b = $x]/c where $x = "1"', Truth.NEVER),
        ('r[a[b["1"]], ?f]', 'match /r/a[b/text() = "1"]/c', Truth.NEVER),
        ('r[a[b["2"]], ?f]', 'match /r/a[b/"1"]/c', Truth.POSSIBLE),
        ('r[a[b["2"]], ?f]', 'match /r/a[b = $x]/c where $x != "2"', Truth.POSSIBLE),
        ('r[a[b["1"], ?f]]', 'match /r/a[b/"1"]/c', Truth.POSSIBLE),
        ('r[a[b["1"]], a[?f]]', 'match /r/a[b/"1"]/c', Truth.NEVER),
        ("r[?f]", 'match /r[a#t[b/"1"]][a#u[b/"1"]] where t < u', Truth.NEVER),
        ("r[?f]", 'match /r[a#t[b/"1"]][a#u[b/$x]] where t < u return $x', Truth.NEVER),
        # two nodes to come with one value are one node
        ("r[?f]", "match /r[a[b/$x]/c][a[b/$x]/d] return $x", Truth.POSSIBLE),
        ("r[?f]", 'match /r[a[b/$x]/@k = "1"][a[b/$x]/@k = "2"] return $x', Truth.NEVER),
        ("r[?f]", "match /r[a#t[b/$x]][a#u[b/$x]] where t < u return $x", Truth.NEVER),
        ("r[?f, a[?g]]", "match /r[a#t[b/$x]][a#u[b/$x]] where t < u return $x", Truth.NEVER),
        ("r[?f]", "match /r[a#t[b/$y]][a#u[b/$x]] where t < u return $x", Truth.POSSIBLE),
        ("r[?f]", "match /r[a#t[b/$y]][a#u[b/$x]] where t < u, $x = $y return $x", Truth.NEVER),
    ],
)
def test_keys_narrow_exactly(notation: str, query: str, status: Truth) -> None:
    pattern = parse_pattern(query)
    outlook = Outlook(keyed(notation), pattern)
    assert (outlook.status({"x": "1"}) if pattern.outputs else outlook.truth) is status


def test_two_nodes_of_a_deeper_key_are_one_with_all_above_them() -> None:
    fact = "key o/a by b trusted"
    query = 'match /r[o[@k = "1"]/a/b/$x][o[@k = "{}"]/a/b/$x] return $x'
    tree = keyed("r[?f]", fact)
    assert Outlook(tree, parse_pattern(query.format("1"))).truth is Truth.POSSIBLE
    assert Outlook(tree, parse_pattern(query.format("2"))).truth is Truth.NEVER
    assert Outlook(document("r[?f]"), parse_pattern(query.format("2"))).truth is Truth.POSSIBLE


def test_a_stream_that_a_key_makes_useless_is_not_relevant() -> None:
    found = relevance(
        keyed('r[a[b["1"]], a[?f], z["1"]]'), parse_pattern("match /r[z/$x]/a[b/$x]/c")
    )
    assert (found["f"].axlog, found["f"].relevant) == (False, False)


def test_both_readings_of_a_value_are_values() -> None:
    assert is_broken(document('r[a[b["1"]], a[b[c["2"], "1"]]]'), parse_fact(KEY))
    assert not is_broken(document('r[a[b["1"], b["1"]], a[b["2"]]]'), parse_fact(KEY))


@pytest.mark.parametrize("how", ["enforced", "trusted"])
def test_a_path_that_names_the_root_is_refused(how: str) -> None:
    with pytest.raises(QueryError, match="AX201") as raised:
        axlog.parse(xml("r[?f]"), facts=[f"key r/a by k {how}"])
    assert f"declare `key a by k {how}`" in str(raised.value)
    axlog.parse(xml("r[r[?f]]"), facts=[f"key r/a by k {how}"])  # a child has the name
    axlog.parse(xml("r[?f]"), facts=[f"key r by k {how}"])  # messages <r>


def test_an_enforced_key_refuses_a_value_below_a_node_that_is_there() -> None:
    written = xml('r[a[b["1"]], a[?f], a[b["2"], ?g]]')
    doc = axlog.parse(written, facts=["key a by b enforced"])
    with pytest.raises(StreamError, match="AX413"):
        doc.feed("f", "<b>1</b>")
    doc.feed("g", "<b>2</b>")  # its own value
    doc.feed("f", "<b>3</b>")
    with pytest.raises(StreamError, match="AX413"):
        doc.feed("g", "<b>3</b>")


@pytest.mark.parametrize(("make", "number"), [(make_keyed_case, 40), (make_typed_case, 25)])
def test_differential_declared_facts(make: Callable[[Random], Case], number: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(number):
        case = make(Random(seed))
        check_declared(document_of(case), case.patterns[0], seen)
    assert seen["too large"] < number / 2
    assert sum(n for kind, n in seen.items() if "relevan" in kind) > number / 3


def test_a_key_speaks_of_nodes_at_its_own_path_only() -> None:
    """`a/item/k/$x` and `b/item/k/$x` have one relation for `item`, but each its own key."""
    call = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
    text = f"<shop><a>{call.format('a')}</a><b>{call.format('b')}</b></shop>"
    facts = ["key a/item by k trusted", "key b/item by k trusted"]
    query = "match /shop[a/item/k/$x][b/item/k/$x] return $x"
    doc = axlog.parse(text, views={"join": query}, facts=facts)
    doc.feed("a", "<item><k>1</k></item>", at=1)
    later = axlog.parse(doc.xml(), views={"join": query}, facts=facts)
    for each in (doc, later):  # one that heard of it, one that finds it in its document
        assert each.view("join").status({"x": "1"}) is Truth.POSSIBLE
        (change,) = each.feed("b", "<item><k>1</k></item>", at=2)
        assert (change.op, change.row["x"]) == ("insert", "1")


@pytest.mark.parametrize("keep", ["all", "needed"])
@pytest.mark.parametrize("share", ["auto", "always"])
def test_a_key_rules_out_what_the_query_gives_as_its_value(keep: Keep, share: Share) -> None:
    calls = "".join(f'<{s}><ax:call xmlns:ax="urn:axlog" stream="{s}"/></{s}>' for s in "pq")
    doc = axlog.Document(
        f"<r>{calls}</r>",
        facts=["key p/a by k trusted"],
        views={n: f'match /r[p/a[k/"{n}"]/x/$x][q/b/x/$x] return $x' for n in "123"},
        options=axlog.Options(keep=keep, share=share),
    )
    changes = doc.feed("p", "<a><k>2</k></a>")
    if keep == "needed":  # the joins do not follow the values of this key
        assert changes == []
        with pytest.raises(UpdateError, match="AX307"):
            _ = doc.view("2").truth
        return
    assert [(c.op, c.view, c.row["x"]) for c in changes] == [("never", "2", None)]
    assert [doc.view(n).truth for n in "123"] == [Truth.POSSIBLE, Truth.NEVER, Truth.POSSIBLE]
    doc.feed("p", "<a><k>1</k><x>5</x></a>")
    assert doc.view("1").status({"x": "6"}) is Truth.NEVER
    assert doc.view("1").status({"x": "5"}) is Truth.POSSIBLE
