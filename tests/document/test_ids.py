"""Law 6: ids never change, and what two ids say of each other is what the tree says.

The definitions are on the tree (`position` in a walk, `ancestors`); the ids must agree after any
number of updates anywhere.
"""

import pickle
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from axlog.document.ids import Component, Id, between
from axlog.document.loader import load
from axlog.document.operations import Delete, Insert, Operation, Rename, ReplaceNode, Where
from axlog.document.pending import apply
from axlog.document.tree import DOCUMENT_NODE, NodeKind, Tree
from axlog.errors import UpdateError
from tests.amounts import cases
from tests.document_invariants import invariants
from tests.strategies.documents import documents, nodes_of, resolve, updates

INTEGERS = st.one_of(st.integers(-300, 300), st.integers(-(1 << 70), 1 << 70))
COMPONENTS = st.lists(INTEGERS, min_size=1, max_size=4).map(tuple)
PATHS = st.lists(st.tuples(COMPONENTS, st.booleans()), min_size=1, max_size=5)


def text_of(path: list[tuple[Component, bool]]) -> str:
    return ".".join(("@" if marked else "") + "^".join(map(str, part)) for part, marked in path)


def order_of(path: list[tuple[Component, bool]]) -> list[tuple[int, Component]]:
    """Document order from its definition: attributes before children, a parent before both."""
    return [(0 if marked else 1, part) for part, marked in path]


# A component between two --------------------------------------------------------------------------


@given(COMPONENTS, COMPONENTS)
def test_between_two_components(one, two):
    low, high = min(one, two), max(one, two)
    if low == high:
        high = (*low, 0)
    assert low < between(low, high) < high
    assert between(None, high) < high
    assert low < between(low, None)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=300))
def test_between_in_random_sequences(choices):
    placed: list[Component] = []
    for choice in choices:
        at = int(choice * len(placed))
        low = placed[at - 1] if at > 0 else None
        high = placed[at] if at < len(placed) else None
        placed.insert(at, between(low, high))
    assert all(one < two for one, two in pairwise(placed))


@pytest.mark.parametrize("side", ["low", "high"])
def test_insertions_at_one_spot_from_one_side_stay_short(side):
    low: Component = (5,)
    high: Component = (6,)
    for _ in range(10_000):
        middle = between(low, high)
        low, high = (middle, high) if side == "low" else (low, middle)
    assert len(Id.parse("^".join(map(str, low if side == "low" else high))).key) <= 8


# Bytes and texts ----------------------------------------------------------------------------------


@given(PATHS, PATHS)
def test_byte_form_sorts_in_document_order(one, two):
    first, second = Id.parse(text_of(one)), Id.parse(text_of(two))
    assert (first < second) == (order_of(one) < order_of(two))
    assert (first == second) == (one == two)
    assert (first <= second) == (order_of(one) <= order_of(two))


@given(PATHS)
def test_text_and_byte_forms_come_back(path):
    identifier = Id.parse(text_of(path))
    assert str(identifier) == text_of(path)
    assert identifier.components() == path
    assert Id.parse(str(identifier)) == Id(identifier.key) == identifier
    assert hash(Id(identifier.key)) == hash(identifier)
    assert pickle.loads(pickle.dumps(identifier)) == identifier


@given(PATHS, PATHS)
def test_ancestors_follow_from_two_ids(one, two):
    first, second = Id.parse(text_of(one)), Id.parse(text_of(two))
    is_above = len(one) < len(two) and two[: len(one)] == one
    assert first.is_ancestor_of(second) == is_above
    assert first.is_parent_of(second) == (is_above and len(two) == len(one) + 1)
    assert second.depth == len(two)


@pytest.mark.parametrize("text", ["x", "1.", ".1", "1..2", "1^", "^1", "1 2", "@", "1.@@2", "--1"])
def test_what_is_no_id_is_refused(text):
    with pytest.raises(UpdateError) as raised:
        Id.parse(text)
    assert raised.value.code == "AX301"


def test_ids_compare_with_ids_only():
    assert Id.parse("1") != "1"
    with pytest.raises(TypeError):
        _ = Id.parse("1") < "1"


# Ids of a tree ------------------------------------------------------------------------------------


def test_an_ordinary_document_has_plain_dewey_ids():
    tree = load('<a x="1" y="2"><b/><c z="3">t</c></a>')
    named = {tree.path(n): str(tree.id(n)) for n in nodes_of(tree) if n != DOCUMENT_NODE}
    assert named["/a"] == "1"
    assert (named["/a/@x"], named["/a/@y"]) == ("1.@1", "1.@2")
    assert (named["/a/b"], named["/a/c"], named["/a/c/text()"]) == ("1.1", "1.2", "1.2.1")


def test_a_loaded_and_an_inserted_tree_have_the_same_ids_below_their_root():
    xml = '<b x="1">t<c y="2"/>u<d/></b>'
    loaded, grown = load(f"<a>{xml}</a>"), load("<a/>")
    apply(grown, [Insert(Where.INTO, grown.root, (etree.fromstring(xml),))])
    assert [str(loaded.id(n)) for n in nodes_of(loaded)] == [
        str(grown.id(n)) for n in nodes_of(grown)
    ]


def test_the_document_node_is_above_everything():
    tree = load("<!--c--><a><b/></a>")
    top = tree.id(DOCUMENT_NODE)
    assert (str(top), top.depth, top.parent, top.labels) == ("", 0, None, ())
    for node in nodes_of(tree)[1:]:
        assert top < tree.id(node)
        assert top.is_ancestor_of(tree.id(node))
        assert not top.is_sibling_of(tree.id(node))
    assert tree.find(top) == DOCUMENT_NODE


def check_relations(tree: Tree, pairs: list[tuple[int, int]]) -> None:
    """What two ids say of each other is what the tree says."""
    position = {node: at for at, node in enumerate(nodes_of(tree))}
    for one, two in pairs:
        first, second = tree.id(one), tree.id(two)
        above = list(tree.ancestors(two))
        assert (first < second) == (position[one] < position[two])
        assert (first == second) == (one == two)
        assert first.is_ancestor_of(second) == (one in above)
        assert first.is_parent_of(second) == (above[:1] == [one])
        same_sort = (tree.kind(one) is NodeKind.ATTRIBUTE) == (tree.kind(two) is NodeKind.ATTRIBUTE)
        is_sibling = one != two and tree.parent(one) == tree.parent(two) and same_sort
        assert first.is_sibling_of(second) == is_sibling


def check_one(tree: Tree, node: int) -> None:
    """An id has its ancestors' ids and labels, and finds its node."""
    identifier = tree.id(node)
    above = [n for n in reversed(list(tree.ancestors(node))) if n != DOCUMENT_NODE]
    assert identifier.ancestors() == [tree.id(n) for n in above]
    assert [a.labels for a in identifier.ancestors()] == [tree.id(n).labels for n in above]
    assert identifier.labels is not None
    assert identifier.labels[:-1] == tuple(tree.label(n) for n in above)
    assert identifier.parent == (tree.id(above[-1]) if above else None)
    assert tree.find(identifier) == node


@settings(max_examples=settings().max_examples // 3)
@given(documents(), st.lists(updates(), max_size=4))
def test_ids_agree_with_the_tree_after_updates(xml, lists):
    tree = load(xml, keep_whitespace=True)
    for edits in lists:
        known = {node: tree.id(node) for node in nodes_of(tree)}
        try:
            delta = apply(tree, resolve(tree, edits))
        except UpdateError:
            continue
        gone = {known[root] for root in delta.removed}
        assert gone.isdisjoint(tree.id(root) for root in delta.added), "an id came back at once"
        for node, identifier in known.items():
            assert not tree.is_alive(node) or tree.id(node) == identifier
    nodes = nodes_of(tree)[1:]
    check_relations(tree, [(one, two) for one in nodes for two in nodes])
    for node in nodes:
        check_one(tree, node)


def random_operation(chance: random.Random, tree: Tree, nodes: list[int]) -> Operation:
    node = chance.choice(nodes)
    kind = tree.kind(node)
    is_full = len(tree) > 250
    if kind is NodeKind.ELEMENT and node != tree.root:
        if chance.random() < (0.7 if is_full else 0.2):
            return Delete(node)
        if chance.random() < 0.1:
            return Rename(node, chance.choice("abc"))
        if chance.random() < 0.1:
            return ReplaceNode(node, (etree.fromstring("<r k='1'><s/></r>"),))
    content = (etree.fromstring(f"<n k='{chance.random()}'>t<m/></n>"),)
    inside = kind is NodeKind.ELEMENT and (node == tree.root or chance.random() < 0.5)
    if not inside and kind is NodeKind.ATTRIBUTE:
        return Rename(node, f"k{chance.random()}")
    if not inside and tree.kind(tree.parent(node)) is NodeKind.ATTRIBUTE:
        return Delete(tree.parent(node))
    places = [Where.INTO, Where.FIRST, Where.LAST] if inside else [Where.BEFORE, Where.AFTER]
    return Insert(chance.choice(places), node, content)


def test_ids_never_change_under_thousands_of_updates():
    chance = random.Random(6)
    tree = load("<a><b>t<c/></b><b k='1'/></a>")
    known = {node: tree.id(node) for node in nodes_of(tree)}
    for step in range(cases(1000)):
        apply(tree, [random_operation(chance, tree, nodes_of(tree)[1:])])
        nodes = nodes_of(tree)
        now = {node: tree.id(node) for node in nodes}
        for node in now.keys() & known.keys():
            assert now[node] == known[node]
        keys = [now[node].key for node in nodes]
        assert keys == sorted(keys)
        assert len(set(keys)) == len(keys)
        # A handle that is gone is forgotten here: it may be another node's from now on.
        known = {node: known.get(node, identifier) for node, identifier in now.items()}
        if step % 20 == 0:
            some = [(chance.choice(nodes), chance.choice(nodes)) for _ in range(100)]
            check_relations(tree, [(x, y) for x, y in some if DOCUMENT_NODE not in (x, y)])
            invariants(tree)
    for node in nodes_of(tree)[1:]:
        check_one(tree, node)
    assert tree.long_components, "no insertion needed more than one integer"


def test_rename_keeps_the_id_and_changes_its_label():
    tree = load("<a><b><c/></b></a>")
    b = next(tree.children(tree.root))
    c = next(tree.children(b))
    before_b, before_c = tree.id(b), tree.id(c)
    apply(tree, [Rename(b, "{urn:u}d")])
    assert (tree.id(b), tree.id(c)) == (before_b, before_c)
    assert tree.id(c).labels == ("a", "{urn:u}d", "c")
    assert before_c.labels == ("a", "b", "c")


def test_labels_tell_texts_from_comments_instructions_and_calls():
    tree = load('<a>t<!--c--><?p d?><ax:call xmlns:ax="urn:axlog" stream="f"/></a>')
    labels = [tree.id(n).labels or () for n in tree.children(tree.root)]
    assert [above for above, _ in labels] == ["a"] * 4
    assert [own for _, own in labels] == ["#text", "#comment", "#instruction", "{urn:axlog}call"]


def test_an_id_that_is_gone_is_refused():
    tree = load("<a><b/><c/></a>")
    b = next(tree.children(tree.root))
    identifier = tree.id(b)
    apply(tree, [Delete(b)])
    with pytest.raises(UpdateError) as raised:
        tree.find(identifier)
    assert raised.value.code == "AX301"


def test_data_that_arrives_at_a_call_gets_short_ids():
    tree = load('<a><ax:call xmlns:ax="urn:axlog" stream="f"/></a>')
    call = tree.calls()["f"]
    for _ in range(1000):
        apply(tree, [Insert(Where.BEFORE, call, (etree.fromstring("<b/>"),))])
    children = list(tree.children(tree.root))
    assert [str(tree.id(n)) for n in children[:3]] == ["1.1", "1.2", "1.3"]
    assert max(len(tree.id(n).key) for n in children) <= 5
    assert not tree.long_components
