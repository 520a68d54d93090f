"""Patches of RFC 5261, read and written."""

from __future__ import annotations

from random import Random

import pytest
from lxml import etree

from axlog.document import pending
from axlog.document.aggregation import aggregate
from axlog.document.lists import resolved
from axlog.document.patch_writing import patch_of
from axlog.document.writing import serialise
from axlog.document.xml import load
from axlog.errors import AxlogError, UpdateError
from axlog.evaluate.patches import read_patch
from axlog.workloads import small_cases
from axlog.workloads.conformance import patching
from axlog.workloads.conformance.cases import Outcome


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
        ('<remove sel="a/["/>', "cannot stand here"),
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
            except AxlogError:
                continue
        wanted = load(serialise(tree))
        patch = patch_of(load(old), wanted)
        lists = read_patch(load(old), patch)
        for applied in (lists, aggregate(lists)):
            again = load(old)
            for one in applied:
                pending.apply(again, resolved(again, one))
            assert etree.canonicalize(serialise(again)) == etree.canonicalize(serialise(wanted)), (
                seed
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
