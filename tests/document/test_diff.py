"""The difference of two versions: applied to the old one it gives the new one, by canonical XML."""

from __future__ import annotations

import tarfile
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from axlog.document import pending
from axlog.document.diff import MOST_CELLS, common, diff
from axlog.document.list_codec import read_lists, to_json, to_xml
from axlog.document.loader import load
from axlog.document.operations import Delete, Insert, ReplaceValue
from axlog.document.serializer import serialise
from axlog.document.tree import Tree
from axlog.document.update_lists import addressed, resolved
from axlog.errors import AxlogError
from lab.laws import small_cases
from tests.accepted_errors import accept


def canonical(tree: Tree) -> str:
    return str(etree.canonicalize(serialise(tree)))


def patched(old: str, new: str) -> tuple[Tree, Tree]:
    """The old version with the difference applied, and the new one."""
    tree, wanted = load(old), load(new)
    pending.apply(tree, diff(tree, wanted))
    return tree, wanted


def test_oracle_two_random_documents() -> None:
    for seed in range(300):
        random = Random(seed)
        old, new = (small_cases.document(random, random.choice((1, 6, 20))) for _ in range(2))
        tree, wanted = patched(old, new)
        assert canonical(tree) == canonical(wanted), seed


def test_oracle_a_document_and_what_updates_made_of_it() -> None:
    """The list also goes through both shipped forms."""
    for seed in range(300):
        random = Random(seed)
        old = small_cases.document(random, 30)
        tree = load(old)
        for _ in range(3):
            try:
                pending.apply(tree, small_cases.operations(random, tree))
            except AxlogError as error:
                accept(error)
                continue
        again = load(old)
        made = addressed(again, diff(again, load(serialise(tree))))
        for written in (to_json(made), to_xml(made)):
            (shipped,) = read_lists(written)
            copy = load(old)
            pending.apply(copy, resolved(copy, shipped))
            assert canonical(copy) == canonical(tree), seed


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_common_is_a_subsequence_of_both(one: str, two: str) -> None:
    pairs = common(one, two)
    assert all(one[i] == two[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))


def test_equal_documents_differ_in_nothing() -> None:
    xml = '<r k="1"><!--c--><a>x</a><?p q?>y</r>'
    assert diff(load(xml), load(xml)) == []


def test_one_inserted_child_is_one_operation() -> None:
    old = "<r>" + "".join(f'<p id="{i}"><n>{i % 3}</n></p>' for i in range(50)) + "</r>"
    new = old.replace('<p id="20">', '<p id="new"/><p id="20">')
    (only,) = diff(load(old), load(new))
    assert isinstance(only, Insert)


def test_a_change_below_an_element_with_an_id_stays_below_it() -> None:
    old = '<r><p id="1"><n>a</n></p><p id="2"><n>b</n></p></r>'
    new = '<r><p id="2"><n>c</n></p></r>'
    assert [type(one) for one in diff(load(old), load(new))] == [Delete, ReplaceValue]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<a/>", "<b/>"),
        ("<a><!--x--></a>", "<a><!--y--></a>"),
        ("<a><?p x?></a>", "<a><?p y?></a>"),
        ("<a><?p x?></a>", "<a><?q x?></a>"),
        ("<!--before--><a/>", "<a/><!--behind-->"),
        ('<a k="1" m="2"/>', '<a m="3" n="4"/>'),
        ("<a>x<b/>y</a>", "<a>xy</a>"),
        ("<a>xy</a>", "<a>x<b/>y</a>"),
        ('<a xmlns="u"><b/></a>', '<a xmlns="u"><b/><c/></a>'),
        ('<a xmlns:p="u"><p:b/></a>', '<a xmlns:p="u"><p:b p:k="1"/><p:c>t</p:c></a>'),
        ('<a><ax:call xmlns:ax="urn:axlog" stream="s"/></a>', "<a/>"),
        (
            '<a><ax:call xmlns:ax="urn:axlog" stream="s"/></a>',
            '<a><ax:call xmlns:ax="urn:axlog" stream="t"/></a>',
        ),
    ],
)
def test_versions(old: str, new: str) -> None:
    tree, wanted = patched(old, new)
    assert canonical(tree) == canonical(wanted)


def test_long_runs_without_anything_unique_are_not_compared_one_by_one() -> None:
    size = int(MOST_CELLS**0.5) * 3
    old = "<r>" + "<a/><b/>" * size + "</r>"
    new = "<r>" + "<b/><a/><c/>" * size + "</r>"
    tree, wanted = patched(old, new)
    assert canonical(tree) == canonical(wanted)


def test_oracle_versions_of_a_real_file(conformance) -> None:
    """Some of the consecutive versions of one file of the ACL Anthology."""
    archive = conformance("stream-large-doc/acl-anthology/P18.versions.tar.xz")
    with tarfile.open(archive) as packed:
        members = sorted((m for m in packed.getmembers() if m.isfile()), key=lambda m: m.name)
        chosen = [members[at] for at in range(0, len(members), max(1, len(members) // 5))]
        files = [packed.extractfile(member) for member in chosen]
        texts = [file.read() for file in files if file is not None]
    for old, new in pairwise(texts):
        tree, wanted = load(old), load(new)
        operations = diff(tree, wanted)
        assert len(operations) < len(wanted) / 5
        pending.apply(tree, operations)
        assert canonical(tree) == canonical(wanted)
