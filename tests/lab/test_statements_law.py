"""Statements, copies and, if it is installed, BaseX agree."""

from __future__ import annotations

from random import Random

import pytest

from lab.laws.statements_cases import StatementsCase, make_statements_case
from lab.laws.statements_law import agrees, as_copy, check_statements, structure, updated, viewed
from lab.reference import basex


def test_statements_and_copies_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(basex, "is_installed", lambda: False)
    for seed in range(20):
        check_statements(make_statements_case(Random(seed)))


@pytest.mark.skipif(not basex.is_installed(), reason=basex.MISSING)
def test_statements_agree_with_basex() -> None:
    for seed in range(8):
        check_statements(make_statements_case(Random(1000 + seed)))


FOUND = [
    ("<r k='1'/>", "for $k in $d//@k return replace value of node $k/text() with 'x'"),
    ("<r/>", "for $x in $d//a return insert node (copy $c := () modify () return $c) into $x"),
    ("<r>t<b/></r>", "typeswitch (($d//node())[2]) case element(a) return () default return"
     " delete node $d//b"),
    ("<r m='1'/>", "replace node $d//@m with text {''}"),
    ("<r m='1'/>", "replace node $d//@m with text {()}"),
    ("<r><a/></r>", "insert node (text {''}, attribute n {1}) into $d//a"),
    ("<r><?t v?></r>", "rename node $d//processing-instruction() as xs:QName('z')"),
    ("<r><?t v?></r>", "replace value of node $d//processing-instruction() with '  x'"),
    ("<r><a/></r>", "insert node attribute k {1} into $d//a/.."),
    ("<r><a/></r>", "insert node (copy $c := $d//a modify delete node $d//* return 1) into $d/r"),
]  # fmt: skip
"""Cases that the law found."""


@pytest.mark.parametrize(("document", "statement"), FOUND)
def test_cases_that_the_law_found(document: str, statement: str) -> None:
    check_statements(StatementsCase(document, (statement,)))
    assert viewed(document, statement) == as_copy(document, statement)


def test_the_law_sees_differences() -> None:
    found = updated("<r><a/></r>", "delete node $d//a")
    assert agrees(found, "R0|<r/>")
    assert not agrees(found, "R1|<r/>")
    assert not agrees(found, "R0|<r><a/></r>")
    assert not agrees(found, "EXUDY0027|")
    assert agrees(("error", "XUDY0027"), "EXUDY0027|")
    assert not agrees(("error", "XUDY0027"), "EXUTY0008|")
    assert agrees(("error", "XUDY0021"), "R1|<r/>text")
    assert structure("<a xmlns:p='u' p:k='1'>t<?p q?></a>") == structure(
        "<a xmlns:q='u' q:k='1'>t<?p q?></a>"
    )
