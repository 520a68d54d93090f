"""Updates of a document: whole or not at all, as the recommendation says, every index exact.

`oracle_` tests compare with `update_model`, which does the same edits with lxml.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from axlog.document.delta import Delta
from axlog.document.loader import load
from axlog.document.operations import (
    Attribute,
    Delete,
    Insert,
    Operation,
    Rename,
    ReplaceNode,
    ReplaceValue,
    Where,
)
from axlog.document.parser import Limits
from axlog.document.pending import Plan, apply
from axlog.document.serializer import serialise
from axlog.document.tree import DOCUMENT_NODE, NONE, NodeKind, Tree
from axlog.errors import AxlogError, LateError, LimitError, StreamError, UpdateError
from tests.accepted_errors import CONFLICTS, accepting
from tests.document_invariants import invariants, snapshot
from tests.strategies.documents import Features, documents, nodes_of, resolve, updates
from tests.update_model import Model, read_back

WITH_CALLS = Features(calls=True)
REJECTED = (*CONFLICTS, "AX302", "AX303")
"""Codes of random lists: conflicts, and nodes of a kind that an operation does not accept."""


def at(tree: Tree, path: str) -> int:
    """The node at a path, as `Tree.path` writes it."""
    return next(n for n in nodes_of(tree) if tree.path(n) == path)


def element(xml: str) -> etree._Element:
    return etree.fromstring(xml)


def relations(tree: Tree) -> dict[str, set[tuple[int, str]]]:
    """Every label's relation: handles with their label, texts, comments and instructions with all
    that they say."""
    found: dict[str, set[tuple[int, str]]] = {}
    for label in tree.labels():
        read = tree.text if label.startswith("#") else tree.label
        found[label] = {(n, read(n)) for n in tree.partition(label)}
    return found


class Recorder:
    """A watcher that notes what a delta says, and the relations around it."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def before(self, delta: Delta) -> None:
        self.steps.append("before")
        tree = delta.tree
        self.relations = relations(tree)
        self.plus, self.minus = delta.plus(), delta.minus()
        for root in delta.removed:
            assert tree.is_alive(root)
        hanging = set(nodes_of(tree))
        for root in delta.added:
            assert root not in hanging
            assert tree.parent(root) in hanging

    def after(self, delta: Delta) -> None:
        self.steps.append("after")
        tree = delta.tree
        assert not any(tree.is_alive(root) for root in delta.removed)
        assert all(tree.is_alive(root) for root in delta.added)
        assert self.plus == delta.plus()
        assert self.minus == delta.minus()


# Against the model --------------------------------------------------------------------------------


def check_delta(tree: Tree, delta: Delta, watched: Recorder) -> None:
    """Δ+ and Δ- are the difference of the relations before and after."""
    before, after = watched.relations, relations(tree)
    same_text = {c.node for c in delta.changed if c.old == c.new}  # only its time is another
    for label in before.keys() | after.keys() | watched.plus.keys() | watched.minus.keys():
        old, new = before.get(label, set()), after.get(label, set())
        plus, minus = watched.plus.get(label, []), watched.minus.get(label, [])
        assert len(plus) == len(set(plus))
        assert len(minus) == len(set(minus))
        assert {n for n, _ in new - old} == set(plus) - same_text
        assert {n for n, _ in old - new} == set(minus) - same_text


def run(tree: Tree, model: Model, edits: list) -> bool:
    """Do one list on both; whether it was carried out."""
    before = snapshot(tree)
    operations = resolve(tree, edits)
    codes = model.apply(edits)
    if codes:
        with pytest.raises((UpdateError, StreamError)) as raised:
            apply(tree, operations, keep_whitespace=True)
        assert raised.value.code in codes
        assert snapshot(tree) == before
        invariants(tree)
        return False
    watched = Recorder()
    delta = apply(tree, operations, tree.clock + 1, [watched], keep_whitespace=True)
    assert watched.steps == ["before", "after"]
    check_delta(tree, delta, watched)
    return True


@settings(max_examples=settings().max_examples)
@given(documents(WITH_CALLS), st.lists(updates(), min_size=1, max_size=3))
def test_oracle_updates_equal_the_same_edits_with_lxml(xml, lists):
    tree = load(xml, keep_whitespace=True)
    model = Model(xml)
    for edits in lists:
        done = run(tree, model, edits)
        invariants(tree)
        if not done:
            return
        assert read_back(serialise(tree)) == model.structure()
        assert len(tree) == len(model.nodes()) - 1


@settings(max_examples=settings().max_examples // 2)
@given(documents(WITH_CALLS), updates(most=8))
def test_oracle_long_lists(xml, edits):
    tree = load(xml, keep_whitespace=True)
    model = Model(xml)
    if run(tree, model, edits):
        assert read_back(serialise(tree)) == model.structure()
    invariants(tree)


@settings(max_examples=settings().max_examples // 2)
@given(documents(WITH_CALLS), st.lists(updates(), min_size=2, max_size=4))
def test_handles_are_used_again_and_nothing_is_lost(xml, lists):
    tree = load(xml)
    for time, edits in enumerate(lists):
        with accepting(REJECTED):
            apply(tree, resolve(tree, edits), time)
        invariants(tree)
    again = load(serialise(tree), keep_whitespace=True)
    assert [again.label(n) for n in nodes_of(again)] == [tree.label(n) for n in nodes_of(tree)]


# Whole or not at all ------------------------------------------------------------------------------


class Refusal(Exception):
    pass


class Refuser:
    def before(self, delta: Delta) -> None:
        raise Refusal

    def after(self, delta: Delta) -> None:
        pytest.fail("the update was refused")


@settings(max_examples=settings().max_examples // 3)
@given(documents(WITH_CALLS), updates(), updates())
def test_a_watcher_that_raises_before_leaves_the_document_alone(xml, first, second):
    tree = load(xml)
    with accepting(REJECTED):
        apply(tree, resolve(tree, first), 1)
    before = snapshot(tree)
    with pytest.raises((Refusal, AxlogError)):
        apply(tree, resolve(tree, second), 2, [Recorder(), Refuser()])
    assert snapshot(tree) == before
    invariants(tree)


def test_what_an_update_removed_can_be_read_until_the_next_is_carried_out():
    tree = load("<a><b>x</b><c/></a>")
    delta = apply(tree, [Delete(at(tree, "/a/b"))])
    (gone,) = delta.removed
    with pytest.raises(LateError):
        apply(tree, [Delete(at(tree, "/a/c"))], -1)
    with pytest.raises(UpdateError):
        apply(tree, [Insert(Where.AFTER, tree.root, ("text",))])
    assert tree.string_value(gone) == "x"
    assert delta.minus() == {"b": [gone], "#text": [tree.first_column[gone]]}
    assert len(tree) == 2
    apply(tree, [Delete(at(tree, "/a/c"))])
    assert tree.kind(gone) is NodeKind.FREE
    assert len(tree) == 1


def test_a_plan_changes_nothing_before_it_is_committed():
    tree = load("<a><b/>x</a>")
    before = snapshot(tree)
    plan = Plan(tree, [Delete(at(tree, "/a/b")), Rename(tree.root, "c")], 5)
    assert snapshot(tree) == before
    plan.commit()
    invariants(tree)
    assert serialise(tree) == "<c>x</c>"
    assert tree.clock == 5


REFUSED: dict[str, tuple[str, list]] = {
    "two renames": ("XUDY0015", [Rename(1, "c"), Rename(1, "d")]),
    "two replacements": ("XUDY0016", [ReplaceNode(2, ()), ReplaceNode(2, ("x",))]),
    "two values": ("XUDY0017", [ReplaceValue(2, "x"), ReplaceValue(2, "y")]),
    "an attribute's value twice": ("XUDY0017", [ReplaceValue(4, "x"), ReplaceValue(5, "y")]),
    "no root beside a comment": (
        "XUDY0021",
        [Insert(Where.BEFORE, 1, (etree.Comment("c"),)), Delete(1)],
    ),
    "two roots": ("XUDY0021", [ReplaceNode(1, (element("<x/>"), element("<y/>")))]),
    "a text for a root": ("XUDY0021", [ReplaceNode(1, ("x",))]),
    "a text beside the root": ("XUDY0021", [Insert(Where.AFTER, 1, ("x",))]),
    "a call beside the root": (
        "XUDY0021",
        [Insert(Where.AFTER, 1, (element('<c xmlns="urn:axlog"/>'),))],
    ),
    "two attributes": ("XUDY0021", [Insert(Where.INTO, 3, (Attribute("k", "2"),))]),
    "two attributes by renaming": ("XUDY0021", [Rename(4, "j")]),
    "an attribute beside the root": ("AX303", [Insert(Where.AFTER, 1, (Attribute("k", ""),))]),
    "an attribute for an element": ("AX303", [ReplaceNode(2, (Attribute("k", ""),))]),
    "an element for an attribute": ("AX303", [ReplaceNode(4, (element("<x/>"),))]),
    "into a text": ("AX302", [Insert(Where.INTO, 9, ("x",))]),
    "beside an attribute": ("AX302", [Insert(Where.BEFORE, 4, ("x",))]),
    "an attribute's value alone": ("AX302", [Delete(5)]),
    "beside an attribute's value": ("AX302", [Insert(Where.BEFORE, 5, ("x",))]),
    "the name of a text": ("AX302", [Rename(9, "x")]),
    "to a call": ("AX302", [Rename(2, "{urn:axlog}call")]),
    "the document": ("AX302", [Delete(0)]),
    "the document's value": ("AX302", [ReplaceValue(0, "x")]),
    "no node": ("AX301", [Delete(99)]),
    "a negative handle": ("AX301", [Delete(-1)]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_code_with_nothing_changed(case):
    code, operations = REFUSED[case]
    # handles: a 1, b 2, c 3, @k 4, its text 5, @j 6, its text 7, d 8, text 9
    tree = load('<a><b/><c k="1" j="2"/><d>t</d></a>')
    assert tree.kind(9) is NodeKind.TEXT
    before = snapshot(tree)
    good: list[Operation] = [Insert(Where.INTO, 8, (element("<new/>"), "x", Attribute("n", "1")))]
    for list_of in (operations, [*good, *operations], [*operations, *good]):
        with pytest.raises(UpdateError) as raised:
            apply(tree, list_of)
        assert raised.value.code == code
        assert snapshot(tree) == before
        invariants(tree)


NOT_XML: dict[str, list] = {
    "a control character": [Insert(Where.INTO, 1, ("\x01",))],
    "NUL": [ReplaceValue(1, "\0")],
    "a lone surrogate": [ReplaceValue(3, "\ud800")],
    "no character": [Insert(Where.INTO, 1, (Attribute("n", "\ufffe"),))],
    "an empty name": [Rename(1, "")],
    "a name with a space": [Rename(1, "a b")],
    "a name with a colon": [Rename(1, "p:a")],
    "a digit first": [Insert(Where.INTO, 1, (Attribute("1", ""),))],
    "no address": [Rename(1, "{}a")],
    "half an address": [Rename(1, "u}a")],
    "a declaration": [Insert(Where.INTO, 1, (Attribute("xmlns", "u"),))],
    "a declared prefix": [
        Insert(Where.INTO, 1, (Attribute("{http://www.w3.org/2000/xmlns/}p", "u"),))
    ],
    "an end of comment": [ReplaceValue(5, "a--b")],
    "a dash at the end of a comment": [ReplaceValue(5, "a-")],
    "a carriage return in a comment": [ReplaceValue(5, "a\rb")],
    "a space first in an instruction": [ReplaceValue(6, " a")],
    "an end of instruction": [ReplaceValue(6, "a?>b")],
    "an instruction named xml": [Rename(6, "XML")],
    "an instruction in a namespace": [Rename(6, "{u}a")],
}


@pytest.mark.parametrize("case", NOT_XML)
def test_what_could_not_be_written_as_xml_is_refused(case):
    # handles: a 1, @k 2, its text 3, b 4, comment 5, instruction 6
    tree = load('<a k="1"><b/><!--c--><?p d?></a>')
    before = snapshot(tree)
    with pytest.raises(UpdateError) as raised:
        apply(tree, NOT_XML[case])
    assert raised.value.code == "AX303"
    assert snapshot(tree) == before
    invariants(tree)


@pytest.mark.parametrize(
    ("code", "operation"),
    [
        ("AX121", Insert(Where.INTO, 2, (element("<x><y><z/></y></x>"),))),
        ("AX121", Insert(Where.AFTER, 2, (element("<x><y><z><u/></z></y></x>"),))),
        ("AX123", Insert(Where.INTO, 2, ("x" * 21,))),
        ("AX123", Insert(Where.AFTER, 3, ("x" * 15,))),
        ("AX123", ReplaceValue(2, "x" * 21)),
        ("AX123", Insert(Where.INTO, 2, (element(f"<x>{'x' * 21}</x>"),))),
        ("AX124", Insert(Where.INTO, 2, (element(f"<x k='{'x' * 21}'/>"),))),
        ("AX124", Insert(Where.INTO, 2, (element(f"<{'x' * 11}/>"),))),
        ("AX124", Rename(2, "x" * 11)),
    ],
)
def test_limits_hold_for_updates_too(code, operation):
    tree = load("<a><b/>0123456789</a>")
    before = snapshot(tree)
    with pytest.raises(LimitError) as raised:
        apply(tree, [operation], limits=Limits(depth=4, text=20, name=10))
    assert raised.value.code == code
    assert snapshot(tree) == before
    invariants(tree)
    apply(tree, [operation])


# One by one ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("xml", "operations", "expected"),
    [
        ("<a>x<b/>y</a>", [Delete(3)], "<a>xy</a>"),
        ("<a>x<b/>y</a>", [ReplaceNode(3, ("-",))], "<a>x-y</a>"),
        ("<a>x</a>", [Insert(Where.AFTER, 2, ("y", "z"))], "<a>xyz</a>"),
        ("<a>x<b/></a>", [ReplaceValue(2, ""), Insert(Where.BEFORE, 2, ("y",))], "<a>y<b/></a>"),
        ("<a><b/><c/></a>", [Insert(Where.INTO, 1, ("x",)), Delete(3)], "<a><b/>x</a>"),
        (
            "<a><b/></a>",
            [Insert(Where.LAST, 1, ("l",)), Insert(Where.INTO, 1, ("i",))],
            "<a><b/>il</a>",
        ),
        ("<a><b/></a>", [Insert(Where.AFTER, 2, ("1",)), Delete(2)], "<a>1</a>"),
        ("<a><b/></a>", [Insert(Where.INTO, 2, ("1",)), ReplaceValue(1, "v")], "<a>v</a>"),
        ("<a><b/></a>", [ReplaceNode(2, ("n",)), ReplaceValue(1, "v")], "<a>v</a>"),
        ("<a><b/></a>", [ReplaceNode(2, ("n",)), Delete(2)], "<a>n</a>"),
        ("<a><b><c/></b></a>", [Delete(2), ReplaceNode(3, ("n",)), Rename(3, "d")], "<a/>"),
        ("<a k='1' j='2'/>", [Rename(2, "j"), Rename(4, "k")], '<a j="1" k="2"/>'),
        ("<a k='1'/>", [ReplaceNode(2, (Attribute("k", "2"),))], '<a k="2"/>'),
        ("<a k='1'/>", [Delete(2), Insert(Where.INTO, 1, (Attribute("k", "2"),))], '<a k="2"/>'),
        ("<a k='1'/>", [ReplaceValue(2, "")], '<a k=""/>'),
        ("<a k='1'/>", [ReplaceValue(3, "")], '<a k=""/>'),
        ("<a><b/></a>", [Insert(Where.BEFORE, 2, (Attribute("k", "1"),))], '<a k="1"><b/></a>'),
        ("<a><?p d e?></a>", [Rename(2, "q"), ReplaceValue(2, "f  ")], "<a><?q f  ?></a>"),
        ("<a><?p d e?></a>", [Rename(2, "q")], "<a><?q d e?></a>"),
        ("<a><?p d?></a>", [ReplaceValue(2, "")], "<a><?p?></a>"),
        ("<a/>", [Insert(Where.FIRST, 0, (etree.Comment("c"),))], "<!--c--><a/>"),
        ("<a/>", [Insert(Where.AFTER, 1, (etree.PI("p"),))], "<a/><?p?>"),
        ("<a/>", [ReplaceNode(1, (element("<b/>"),))], "<b/>"),
        ("<a>x</a>", [ReplaceNode(2, ())], "<a/>"),
        ("<a/>", [], "<a/>"),
    ],
)
def test_small_lists(xml, operations, expected):
    tree = load(xml)
    apply(tree, operations)
    invariants(tree)
    assert serialise(tree) == expected


def test_merged_texts_are_new_and_the_old_ones_are_deleted():
    tree = load("<a>x<b/>y</a>", time=1)
    x, b, y = tree.children(tree.root)
    delta = apply(tree, [Delete(b)], 7)
    (merged,) = delta.added
    assert sorted(delta.removed) == sorted((x, b, y))
    assert (tree.text(merged), tree.time(merged)) == ("xy", 7)


def test_times():
    tree = load("<a k='1'>x<b/></a>")
    attribute, text, b = tree.chain(tree.root)
    delta = apply(tree, [Rename(b, "c"), ReplaceValue(attribute, "2"), ReplaceValue(text, "y")], 9)
    assert (tree.time(b), tree.time(attribute), tree.time(text)) == (0, 0, 9)
    assert tree.time(tree.first_column[attribute]) == 9
    assert {(c.old, c.new, c.old_time, c.new_time) for c in delta.changed} == {
        ("b", "c", 0, 0), ("1", "2", 0, 9), ("x", "y", 0, 9),
    }  # fmt: skip
    apply(tree, [Insert(Where.INTO, b, (element("<d j='1'>t</d>"),))], 12)
    assert {tree.time(n) for n in tree.subtree(tree.first_column[b])} == {12}


def test_the_same_text_again_takes_the_time_of_the_update():
    tree = load("<a>x</a>")
    text = tree.first_column[tree.root]
    delta = apply(tree, [ReplaceValue(text, "x")], 3)
    assert [(c.old, c.new, c.new_time) for c in delta.changed] == [("x", "x", 3)]
    assert tree.time(text) == 3
    assert not apply(tree, [ReplaceValue(text, "x"), Rename(tree.root, "a")], 3)


def test_the_clock_never_goes_back():
    tree = load("<a/>", time=5)
    for time, error, code in ((4, LateError, "AX404"), (1 << 63, StreamError, "AX409")):
        with pytest.raises(error) as raised:
            apply(tree, [Rename(tree.root, "b")], time)
        assert raised.value.code == code
        assert serialise(tree) == "<a/>"
        invariants(tree)
    apply(tree, [], 6)
    assert tree.clock == 6
    apply(tree, [])
    assert tree.clock == 6


def test_content_is_not_changed_by_being_inserted():
    holder = element("<h><x k='1'>t<y/>u</x>tail</h>")
    tree = load("<a/>")
    apply(tree, [Insert(Where.INTO, tree.root, (holder[0], holder[0]))])
    assert serialise(tree) == '<a><x k="1">t<y/>u</x><x k="1">t<y/>u</x></a>'
    assert etree.tostring(holder) == b'<h><x k="1">t<y/>u</x>tail</h>'


def test_many_operations_in_one_list():
    tree = load("<a>" + "<b/>" * 3000 + "</a>")
    children = list(tree.children(tree.root))
    operations: list[Operation] = [Insert(Where.AFTER, n, (element("<c/>"),)) for n in children]
    operations += [Delete(n) for n in children[::2]]
    operations += [ReplaceNode(n, (element("<d/>"),)) for n in children[1::4]]
    apply(tree, operations)
    invariants(tree)
    sizes = {label: len(tree.partition(label)) for label in tree.labels()}
    assert sizes == {"a": 1, "b": 750, "c": 3000, "d": 750}


def test_deep_trees_are_no_problem():
    limits = Limits(depth=2000)
    tree = load("<a>" * 1500 + "</a>" * 1500, limits=limits)
    bottom = list(tree.descendants(DOCUMENT_NODE))[-1]
    apply(tree, [Insert(Where.INTO, bottom, (element("<b/>"),))], limits=limits)
    assert tree.id(tree.first_column[bottom]).depth == 1501
    assert serialise(tree).count("<a>") == 1500
    apply(tree, [Delete(tree.first_column[tree.root])])
    assert serialise(tree) == "<a/>"
    assert tree.first_column[tree.root] == NONE
