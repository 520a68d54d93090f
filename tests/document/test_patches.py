"""Patches of RFC 5261, read and written."""

from __future__ import annotations

from random import Random

import pytest
from lxml import etree

from axlog.document import pending
from axlog.document.aggregation import aggregate
from axlog.document.loader import load
from axlog.document.operations import Operation
from axlog.document.patch_writer import patch_of
from axlog.document.serializer import serialise
from axlog.document.tree import DOCUMENT_NODE, NONE, NodeKind, Tree
from axlog.document.update_lists import resolved
from axlog.errors import AxlogError, UpdateError
from axlog.evaluate.patches import read_patch
from lab.conformance import patching
from lab.conformance.cases import Outcome
from lab.laws import small_cases
from tests.accepted_errors import accept


def patched(xml: str, patch: str, keep_whitespace: bool = False) -> str:
    tree = load(xml, keep_whitespace=keep_whitespace)
    for one in read_patch(tree, patch, keep_whitespace=keep_whitespace):
        pending.apply(tree, resolved(tree, one), keep_whitespace=keep_whitespace)
    return serialise(tree)


@pytest.mark.parametrize(
    ("xml", "patch", "expected"),
    [
        ("<a/>", '<add sel="a"><b/>t</add>', "<a><b/>t</a>"),
        ("<a><c/></a>", '<add sel="a" pos="prepend"><b/></add>', "<a><b/><c/></a>"),
        ("<a><c/></a>", '<add sel="a/c" pos="before">x</add>', "<a>x<c/></a>"),
        ("<a/>", '<add sel="a" type="@k">v</add>', '<a k="v"/>'),
        ('<a k="1"/>', '<remove sel="*/@k"/>', "<a/>"),
        ("<a><b>x</b></a>", '<replace sel="a/b/text()">y</replace>', "<a><b>y</b></a>"),
        ("<a><b>x</b></a>", '<replace sel="a/b/text()"/>', "<a><b/></a>"),
        ("<a><b/><b/></a>", '<replace sel="a/b[2]"> <c/> </replace>', "<a><b/><c/></a>"),
        ("<a><b/><b/></a>", '<remove sel="a/b[1]"/><remove sel="a/b[1]"/>', "<a/>"),
        ("<a/>", '<add sel="a"><b/></add><add sel="a/b">t</add>', "<a><b>t</b></a>"),
    ],
)
def test_operations(xml: str, patch: str, expected: str) -> None:
    assert patched(xml, f"<diff>{patch}</diff>") == expected


def test_white_space_goes_with_what_is_removed() -> None:
    assert (
        patched("<a>\n  <b/>\n</a>", '<diff><remove sel="a/b" ws="both"/></diff>', True) == "<a/>"
    )
    with pytest.raises(UpdateError):
        patched("<a>x<b/></a>", '<diff><remove sel="a/b" ws="before"/></diff>', True)


def test_prefixes_are_the_patchs() -> None:
    xml = '<d xmlns="urn:u"><e/></d>'
    patch = '<p:diff xmlns:p="urn:d" xmlns:q="urn:u"><p:add sel="q:d/q:e">t</p:add></p:diff>'
    assert patched(xml, patch) == '<d xmlns="urn:u"><e>t</e></d>'


@pytest.mark.parametrize(
    ("patch", "what"),
    [
        ('<move sel="a"/>', "there is no operation move"),
        ("<remove/>", "there is no sel"),
        ('<remove sel="a/b"/>', "selects 2 nodes"),
        ('<remove sel="a/x"/>', "selects 0 nodes"),
        ('<remove sel="a/["/>', "unexpected `[`"),
        ('<add sel="a" pos="inside"/>', "there is no position inside"),
        ('<add sel="a" type="namespace::p">u</add>', "namespace::p"),
        ('<replace sel="a/b[1]">text</replace>', "not one node of the kind"),
        ('<remove sel="a"/>', "XUDY0021"),
    ],
)
def test_what_cannot_be_applied_is_refused_and_nothing_is_changed(patch: str, what: str) -> None:
    tree = load("<a><b/><b/></a>")
    with pytest.raises(UpdateError) as caught:
        read_patch(tree, f'<diff><add sel="a"><c/></add>{patch}</diff>')
    assert caught.value.code == "AX308"
    assert what in caught.value.message
    assert serialise(tree) == "<a><b/><b/></a>"


def test_oracle_what_is_written_makes_the_new_version() -> None:
    """Read one by one, and as one list."""
    for seed in range(250):
        random = Random(seed)
        old = small_cases.document(random, random.choice((1, 8, 25)))
        if random.random() < 0.3:
            old = f"<!--a-->{old}<?b c?>"
        tree = load(old)
        for _ in range(random.randrange(4)):
            try:
                pending.apply(tree, small_cases.operations(random, tree))
            except AxlogError as error:
                accept(error)
                continue
        wanted = load(serialise(tree))
        patch = patch_of(load(old), wanted)
        lists = read_patch(load(old), patch)
        for applied in (lists, aggregate(lists)):
            again = load(old)
            for one in applied:
                pending.apply(again, resolved(again, one))
            assert named(again) == named(wanted), seed


def named(tree: Tree) -> str:
    """The canonical text, whatever the prefixes are."""
    return str(etree.canonicalize(serialise(tree), rewrite_prefixes=True))


def indented(random: Random, depth: int = 3) -> str:
    """An element written as people write them: its children on lines of their own, some texts."""
    label = random.choice(small_cases.LABELS)
    space = "\n" + "  " * (4 - depth)
    inside = ""
    for _ in range(random.randint(2, 4) if depth else 0):
        pick = random.random()
        inside += space
        if pick < 0.7:
            inside += indented(random, depth - 1)
        elif pick < 0.85:
            inside += small_cases.markup(random)
        else:
            inside += "some words of text"
    words = "" if depth else random.choice(("", "one", "one two three"))
    return f"<{label}>{words}{inside}{space[:-2] if inside else ''}</{label}>"


def test_oracle_white_space_that_is_kept_makes_no_patch_longer() -> None:
    """After one random edit: the patch makes the new version and is no longer than the change."""
    made = 0
    for seed in range(150):
        random = Random(seed)
        old = indented(random)
        tree = load(old, keep_whitespace=True)
        (target, *_) = random.sample(
            [n for n in tree.subtree(DOCUMENT_NODE) if n not in (DOCUMENT_NODE, tree.root)], 1
        )
        size = changed_size(tree, target)
        try:
            operation = small_cases._operation(random, tree, target)
            assert operation is not None
            pending.apply(tree, [operation], keep_whitespace=True)
        except (AssertionError, AxlogError):
            continue
        made += 1
        wanted = serialise(tree)
        patch = patch_of(load(old, keep_whitespace=True), load(wanted, keep_whitespace=True))
        assert etree.canonicalize(patched(old, patch, True)) == etree.canonicalize(wanted), seed
        assert len(patch) <= 300 + 2 * (size + small_size(operation)), (seed, patch)
    assert made > 100


def changed_size(tree: Tree, target: int) -> int:
    """The characters of a node and of the texts beside it."""
    beside = [n for n in (tree.previous(target), tree.next(target)) if n != NONE]
    texts = [len(tree.text(n)) for n in beside if tree.kind(n) is NodeKind.TEXT]
    return len(serialise(tree, target)) + sum(texts)


def small_size(operation: Operation) -> int:
    """The characters that an operation brings."""
    content = getattr(operation, "content", ())
    return sum(len(etree.tostring(c)) for c in content if isinstance(c, etree._Element)) + 20


def test_a_word_changes_in_an_indented_document() -> None:
    old = "<a>\n  <b>one two</b>\n  <c/>\n</a>"
    trees = [load(one, keep_whitespace=True) for one in (old, old.replace("two", "three"))]
    assert patch_of(*trees) == (
        '<diff>\n<replace sel="a/b[1]/text()[1]">one three</replace>\n</diff>'
    )


def test_a_patch_names_no_more_than_what_changed() -> None:
    old = "<r>" + "".join(f'<p id="{i}"><n>{i}</n></p>' for i in range(20)) + "</r>"
    patch = patch_of(load(old), load(old.replace("<n>7</n>", "<n>seven</n>")))
    assert patch == '<diff>\n<replace sel="r/p[8]/n[1]/text()[1]">seven</replace>\n</diff>'


def test_conformance_of_patches(conformance) -> None:
    conformance(str(patching.FOLDER))
    results = list(patching.results(conformance(".")))
    failed = [(r.case.name, r.reason) for r in results if r.outcome is Outcome.FAILED]
    assert not failed
    outside = {r.reason for r in results if r.outcome is Outcome.OUTSIDE}
    assert all("namespace" in reason or "CDATA" in reason for reason in outside), outside
    assert sum(r.outcome is Outcome.PASSED for r in results) >= 32
