"""What a stream may do to a document, and what it may not (DESIGN 3, P3 2.2).

Data arrives as siblings just before the call, in the order of arrival; a delete takes siblings of
the call, whoever brought them; an end takes the call.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from axlog.document.delta import Delta
from axlog.document.loader import load, read_forest
from axlog.document.operations import (
    Delete,
    Insert,
    ReplaceNode,
    Where,
    call_of,
    delete_at_call,
    end_call,
    insert_at_call,
    time_of_message,
)
from axlog.document.pending import apply
from axlog.document.serializer import serialise
from axlog.document.tree import NodeKind, Tree
from axlog.errors import (
    EndedStreamError,
    InputError,
    LateError,
    MalformedError,
    StreamError,
    UnknownStreamError,
    UpdateError,
)
from tests.document_invariants import invariants, snapshot
from tests.strategies.documents import Features, fragments

AX = 'xmlns:ax="urn:axlog"'


def with_call(attributes: str = "", before: str = "", after: str = "") -> Tree:
    return load(f'<a {AX}>{before}<ax:call stream="f" {attributes}/>{after}</a>')


def feed(tree: Tree, message: str, stream: str = "f", time: int | None = None) -> Delta:
    time = time_of_message(tree, stream, time)
    delta = apply(tree, insert_at_call(tree, stream, read_forest(message)), time)
    invariants(tree)
    return delta


def labels(tree: Tree) -> list[str]:
    return [tree.label(n) for n in tree.children(tree.root)]


CALL = "{urn:axlog}call"


# Inserting ----------------------------------------------------------------------------------------


def test_data_arrives_before_the_call_in_order():
    tree = with_call(before="<x/>", after="<y/>")
    for message in ("<b/>", "<c/><d/>", "<e>t</e>"):
        feed(tree, message)
    assert labels(tree) == ["x", "b", "c", "d", "e", CALL, "y"]
    assert tree.brought == {"f": 4}


@settings(max_examples=settings().max_examples // 4)
@given(st.lists(st.tuples(st.sampled_from("fg"), fragments(Features(calls=False, others=False)))))
def test_two_streams_side_by_side(messages):
    tree = load(f'<a {AX}><ax:call stream="f"/><ax:call stream="g"/></a>')
    for stream, content in messages:
        apply(tree, insert_at_call(tree, stream, [content]))
        invariants(tree)
    expected = [
        *(content.tag for stream, content in messages if stream == "f"), CALL,
        *(content.tag for stream, content in messages if stream == "g"), CALL,
    ]  # fmt: skip
    assert labels(tree) == expected
    ids = [tree.id(n).key for n in tree.children(tree.root)]
    assert ids == sorted(ids)


def test_a_message_has_the_time_of_its_update():
    tree = with_call()
    delta = feed(tree, "<b k='1'>t</b>", time=17)
    assert {tree.time(n) for n in tree.subtree(delta.added[0])} == {17}
    assert tree.clock == 17


def test_comments_and_calls_of_a_message_are_no_trees():
    tree = with_call('most="2" calls="yes"')
    feed(tree, f'<!--c--><b/><?p d?><ax:call {AX} stream="g"/>')
    assert tree.brought == {"f": 1}
    feed(tree, "<b/><!--c-->")
    with pytest.raises(StreamError):
        feed(tree, "<b/>")


def test_what_a_person_inserts_is_not_what_the_stream_brought():
    tree = with_call('most="1"')
    apply(tree, [Insert(Where.BEFORE, tree.calls()["f"], (etree.fromstring("<b/>"),))])
    assert tree.brought == {}
    feed(tree, "<c/>")
    assert labels(tree) == ["b", "c", CALL]


# What a call declares -----------------------------------------------------------------------------


def test_a_one_shot_call_ends_with_its_message():
    tree = with_call('mode="one-shot"')
    delta = feed(tree, "<b/><c/>")
    assert labels(tree) == ["b", "c"]
    assert (delta.closed, tree.calls(), tree.ended) == (["f"], {}, {"f"})
    with pytest.raises(EndedStreamError) as raised:
        feed(tree, "<d/>")
    assert raised.value.code == "AX402"


def test_most_is_checked_against_all_that_was_brought():
    tree = with_call('most="3"')
    feed(tree, "<b/><b/>")
    before = snapshot(tree)
    with pytest.raises(StreamError) as raised:
        feed(tree, "<b/><b/>")
    assert raised.value.code == "AX406"
    assert snapshot(tree) == before
    feed(tree, "<b/>")
    with pytest.raises(StreamError):
        feed(tree, "<b/>")
    with pytest.raises(StreamError):
        feed(tree, "<!--c-->")
    assert tree.brought == {"f": 3}


def test_most_zero_brings_nothing():
    with pytest.raises(StreamError) as raised:
        feed(with_call('most="0"'), "<b/>")
    assert raised.value.code == "AX406"


def delete(tree: Tree, label: str, stream: str = "f") -> Delta:
    matches = delete_at_call(tree, stream, lambda node: tree.label(node) == label)
    delta = apply(tree, matches)
    invariants(tree)
    return delta


def test_a_stream_deletes_only_if_it_says_so():
    tree = with_call(before="<b/>")
    with pytest.raises(StreamError) as raised:
        delete(tree, "b")
    assert raised.value.code == "AX405"
    assert labels(tree) == ["b", CALL]


@pytest.mark.parametrize("declared", ["yes", "only"])
def test_a_delete_removes_matching_siblings_of_any_origin(declared):
    tree = with_call(f'deletes="{declared}"', before="<b><c/></b><c/>t", after="<b/><d/>")
    delete(tree, "b")
    assert labels(tree) == ["c", "t", CALL, "d"]
    delete(tree, "t")
    assert labels(tree) == ["c", CALL, "d"]
    assert not delete(tree, "nothing")


def test_a_delete_sees_siblings_only():
    tree = with_call('deletes="yes"', before="<b><c/></b><!--c--><?c?>")
    seen: list[NodeKind] = []

    def note(node: int) -> bool:
        seen.append(tree.kind(node))
        return True

    apply(tree, delete_at_call(tree, "f", note))
    assert seen == [NodeKind.ELEMENT, NodeKind.COMMENT, NodeKind.INSTRUCTION]
    assert serialise(tree).startswith("<a")
    assert tree.calls().keys() == {"f"}


def test_texts_beside_a_deleted_sibling_are_merged():
    tree = with_call('deletes="yes"', before="t<b/>u")
    delete(tree, "b")
    assert labels(tree) == ["tu", CALL]


def test_a_stream_that_may_only_delete_brings_nothing():
    tree = with_call('deletes="only"')
    with pytest.raises(StreamError) as raised:
        feed(tree, "<b/>")
    assert raised.value.code == "AX408"


# Ends ---------------------------------------------------------------------------------------------


def test_an_end_takes_the_call():
    tree = with_call(before="<b/>", after="<c/>")
    feed(tree, "<d/>")
    delta = apply(tree, end_call(tree, "f"))
    invariants(tree)
    assert labels(tree) == ["b", "d", "c"]
    assert delta.closed == ["f"]
    assert delta
    for operation in (end_call, lambda t, s: insert_at_call(t, s, []), call_of):
        with pytest.raises(EndedStreamError) as raised:
            operation(tree, "f")
        assert raised.value.code == "AX402"


def test_texts_beside_a_call_that_ends_are_merged():
    tree = with_call(before="t", after="u")
    apply(tree, end_call(tree, "f"))
    invariants(tree)
    assert labels(tree) == ["tu"]


def test_a_stream_without_a_call():
    tree = with_call()
    with pytest.raises(UnknownStreamError) as raised:
        feed(tree, "<b/>", "g")
    assert raised.value.code == "AX401"
    assert isinstance(raised.value, LookupError)
    assert "f" in str(raised.value.expected)


def test_calls_below_deleted_nodes_are_closed():
    tree = load(f'<a {AX}><b><ax:call stream="f"/></b><c><ax:call stream="g"/></c></a>')
    b, c = tree.children(tree.root)
    assert apply(tree, [Delete(b)]).closed == ["f"]
    assert (set(tree.calls()), tree.ended) == ({"g"}, {"f"})
    delta = apply(tree, [ReplaceNode(c, (etree.fromstring("<d/>"),))])
    assert delta.closed == ["g"]
    assert (tree.calls(), tree.ended) == ({}, {"f", "g"})
    invariants(tree)


def test_a_stream_deletes_the_tree_with_its_own_call_inside():
    tree = load(
        f'<a {AX}><ax:call stream="f" deletes="yes"/><b><c><ax:call stream="g"/></c></b></a>'
    )
    delta = delete(tree, "b")
    assert delta.closed == ["g"]
    assert set(tree.calls()) == {"f"}


# New calls ----------------------------------------------------------------------------------------


def test_messages_bring_new_calls():
    tree = with_call('calls="yes"')
    delta = feed(tree, f'<b><ax:call {AX} stream="g" most="1"/></b>')
    assert delta.opened == ["g"]
    feed(tree, f'<c/><d><ax:call {AX} stream="h"/></d>', "f")
    feed(tree, "<e/>", "g")
    assert set(tree.calls()) == {"f", "g", "h"}
    assert serialise(tree).count("<ax:call") == 3
    b = next(tree.children(tree.root))
    assert [tree.label(n) for n in tree.children(b)] == ["e", CALL]
    with pytest.raises(StreamError):
        feed(tree, "<e/>", "g")


@pytest.mark.parametrize(
    ("declared", "code"),
    [("", "AX418"), ('calls="no"', "AX418"), ('calls="0"', "AX418"), ('calls="2"', None),
     ('calls="1"', "AX419"), ('calls="yes"', None)],
)  # fmt: skip
def test_a_stream_brings_the_calls_that_it_may_bring(declared, code):
    tree = with_call(declared)
    two = f'<b {AX}><ax:call stream="g"/><ax:call stream="h"/></b>'
    if code is None:
        feed(tree, two)
        assert tree.called == {"f": 2}
        assert tree.may_bring_calls("f") == (declared == 'calls="yes"')
        return
    before = snapshot(tree)
    with pytest.raises(StreamError) as raised:
        feed(tree, two)
    assert raised.value.code == code
    assert snapshot(tree) == before


def test_what_new_calls_may_bring_counts_too():
    """Else every call could bring as many as its stream, and each of these again."""
    tree = with_call('calls="10"')
    feed(tree, f'<b><ax:call {AX} stream="g" calls="3"/></b>')
    assert tree.called == {"f": 4}
    with pytest.raises(StreamError) as raised:
        feed(tree, f'<b><ax:call {AX} stream="h" calls="yes"/></b>')
    assert raised.value.code == "AX419"
    feed(tree, f'<b><ax:call {AX} stream="i"/></b>', "g")
    with pytest.raises(InputError):
        with_call('calls="some"')


def test_a_message_brings_a_call_beside_the_one_it_came_by():
    tree = with_call('calls="yes"')
    feed(tree, f'<b/><ax:call {AX} stream="g"/>')
    feed(tree, "<c/>", "g")
    feed(tree, "<d/>", "f")
    assert labels(tree) == ["b", "c", CALL, "d", CALL]


@pytest.mark.parametrize(
    "message",
    [
        f'<b><ax:call {AX} stream="f"/></b>',
        f'<b {AX}><ax:call stream="g"/><ax:call stream="g"/></b>',
        f'<b><ax:call {AX} stream="g"/></b><c><ax:call {AX} stream="g"/></c>',
    ],
)
def test_one_stream_has_one_call(message):
    tree = with_call('calls="yes"')
    before = snapshot(tree)
    with pytest.raises(StreamError) as raised:
        feed(tree, message)
    assert raised.value.code == "AX403"
    assert snapshot(tree) == before
    invariants(tree)


def test_a_bad_call_in_a_message_changes_nothing():
    tree = with_call('calls="yes"')
    before = snapshot(tree)
    with pytest.raises(InputError) as raised:
        feed(tree, f'<b><c/><ax:call {AX} stream="g" most="some"/></b>')
    assert raised.value.code == "AX105"
    assert snapshot(tree) == before
    invariants(tree)


def test_a_stream_that_ended_can_be_opened_again_by_a_new_call():
    tree = with_call('most="1"')
    feed(tree, "<b/>")
    apply(tree, end_call(tree, "f"))
    content = (etree.fromstring(f'<ax:call {AX} stream="f" most="1"/>'),)
    delta = apply(tree, [Insert(Where.LAST, tree.root, content)])
    assert delta.opened == ["f"]
    assert tree.ended == set()
    feed(tree, "<c/>")
    assert labels(tree) == ["b", "c", CALL]


def test_a_call_replaced_by_a_call_of_its_stream_starts_anew():
    tree = with_call('most="1"')
    feed(tree, "<b/>")
    content = (etree.fromstring(f'<ax:call {AX} stream="f" most="1"/>'),)
    delta = apply(tree, [ReplaceNode(tree.calls()["f"], content)])
    invariants(tree)
    assert (delta.closed, delta.opened) == (["f"], ["f"])
    feed(tree, "<c/>")
    assert labels(tree) == ["b", "c", CALL]


def test_a_call_takes_no_content_no_name_and_no_value():
    tree = with_call()
    call = tree.calls()["f"]
    for where in (Where.INTO, Where.FIRST, Where.LAST):
        with pytest.raises(UpdateError) as raised:
            apply(tree, [Insert(where, call, ("x",))])
        assert raised.value.code == "AX302"


# Time ---------------------------------------------------------------------------------------------


def test_late_is_refused_or_moved_to_the_clock():
    tree = load(f'<a {AX}><ax:call stream="f"/><ax:call stream="g" late="clock"/></a>')
    feed(tree, "<b/>", "f", 10)
    before = snapshot(tree)
    with pytest.raises(LateError) as raised:
        feed(tree, "<c/>", "f", 9)
    assert raised.value.code == "AX404"
    assert snapshot(tree) == before
    delta = feed(tree, "<c/>", "g", 9)
    assert tree.time(delta.added[0]) == 10
    delta = feed(tree, "<c/>", "f", 10)
    assert tree.time(delta.added[0]) == 10
    assert time_of_message(tree, "f", None) == 10


def test_the_error_of_a_late_message_shows_both_times_in_full():
    tree = with_call()
    feed(tree, "<b/>", time=1_234_567_000_001)
    with pytest.raises(LateError) as raised:
        feed(tree, "<b/>", time=1_234_567_000_000)
    assert "1234567 s" in raised.value.message
    assert "1234567.000001 s" in raised.value.message


def test_an_empty_message_is_refused():
    tree = with_call()
    for message in ("", "  "):
        with pytest.raises(MalformedError):
            feed(tree, message, time=5)
    assert (labels(tree), tree.clock) == ([CALL], 0)
