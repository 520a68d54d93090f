"""Every rule for lists of updates, one case each: what it makes of the list, and that the document
stays the same. The rules whose names are in P5 (figures 14 to 16) keep them.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from axlog.document import reduction
from axlog.document.aggregation import aggregate
from axlog.document.ids import Id
from axlog.document.integration import ConflictKind, conflicts
from axlog.document.loader import load
from axlog.document.operations import Attribute
from axlog.document.reduction import RULES, reduce
from axlog.document.update_lists import Edit, EditKind, Markup, Piece, UpdateList, record, resolved
from lab.laws.lists_law import after

XML = "<r><a k='1'><b/>x</a><c/></r>"
A, B, C, K = "1.1", "1.1.1", "1.2", "1.1.@1"


class Case(NamedTuple):
    """A rule, a list, and the list that the rule makes of it."""

    number: int
    rule: str  # a function of `reduction`
    given: tuple[Edit, ...]
    wanted: tuple[Edit, ...]


def edit(kind: str, target: str, *content: Piece, text: str = "") -> Edit:
    return Edit(EditKind(kind), Id.parse(target), content, text)


def trees(*xml: str) -> tuple[Piece, ...]:
    return tuple(Markup(one) for one in xml)


X, Y = Markup("<x/>"), Markup("<y/>")
CASES = (
    # O1: what is done to or in a removed node has no effect.
    Case(1, "override_same_target", (edit("delete", A), edit("delete", A)), (edit("delete", A),)),
    Case(2, "override_same_target", (edit("insert-last", A, X), edit("delete", A)),
         (edit("delete", A),)),
    Case(3, "override_same_target", (edit("rename", A, text="z"), edit("delete", A)),
         (edit("delete", A),)),
    Case(4, "override_same_target", (edit("replace-value", A, text="z"), edit("delete", A)),
         (edit("delete", A),)),
    Case(5, "override_same_target", (edit("insert-into", A, X), edit("replace-node", A, Y)),
         (edit("replace-node", A, Y),)),
    # O2: new content takes the place of insertions into the element.
    Case(6, "override_content", (edit("insert-first", A, X), edit("replace-value", A, text="z")),
         (edit("replace-value", A, text="z"),)),
    # O3: what is done below a removed node has no effect.
    Case(7, "override_below", (edit("insert-last", B, X), edit("delete", A)), (edit("delete", A),)),
    Case(8, "override_below", (edit("delete", B), edit("replace-node", A, Y)),
         (edit("replace-node", A, Y),)),
    # O4: what is done below an element with new content has no effect, except on attributes.
    Case(9, "override_below_content", (edit("delete", B), edit("replace-value", A, text="z")),
         (edit("replace-value", A, text="z"),)),
    Case(10, "override_below_content",
         (edit("rename", K, text="m"), edit("replace-value", A, text="z")),
         (edit("rename", K, text="m"), edit("replace-value", A, text="z"))),
    # I5: insertions of one kind at one place are one.
    Case(11, "join_insertions", (edit("insert-into", A, X), edit("insert-into", A, Y)),
         (edit("insert-into", A, X, Y),)),
    Case(12, "join_insertions", (edit("insert-last", A, X), edit("insert-last", A, Y)),
         (edit("insert-last", A, X, Y),)),
    Case(13, "join_insertions", (edit("insert-first", A, X), edit("insert-first", A, Y)),
         (edit("insert-first", A, Y, X),)),
    Case(14, "join_insertions", (edit("insert-before", A, X), edit("insert-before", A, Y)),
         (edit("insert-before", A, X, Y),)),
    Case(15, "join_insertions", (edit("insert-after", A, X), edit("insert-after", A, Y)),
         (edit("insert-after", A, Y, X),)),
    Case(16, "join_insertions",
         (edit("insert-last", A, Attribute("m", "1")), edit("insert-last", A, Attribute("n", "2"))),
         (edit("insert-last", A, Attribute("m", "1"), Attribute("n", "2")),)),
    # I6: `into` is at the end, before `last`.
    Case(17, "join_into_and_last", (edit("insert-last", A, Y), edit("insert-into", A, X)),
         (edit("insert-last", A, X, Y),)),
    # Insertions beside a node that goes take its place.
    Case(18, "join_beside_and_replaced", (edit("insert-before", A, X), edit("delete", A)),
         (edit("replace-node", A, X),)),
    Case(19, "join_beside_and_replaced", (edit("replace-node", A, X), edit("insert-after", A, Y)),
         (edit("replace-node", A, X, Y),)),
    # An operation without content: no insertion, and a replacement that is a deletion.
    Case(20, "without_idle", (edit("replace-node", A), edit("insert-last", C)),
         (edit("delete", A),)),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[f"{case.number}-{case.rule}" for case in CASES])
def test_reduction_rule(case: Case) -> None:
    rule = getattr(reduction, case.rule)
    assert rule in RULES
    assert rule(case.given) == case.wanted
    assert reduce(case.given).edits == case.wanted
    assert after(XML, UpdateList(case.wanted)) == after(XML, UpdateList(case.given))


def test_every_reduction_function_has_a_case() -> None:
    assert {rule.__name__ for rule in RULES} == {case.rule for case in CASES}
    assert [case.number for case in CASES] == list(range(1, 21))


@pytest.mark.parametrize(
    ("kind", "one", "two"),
    [
        (ConflictKind.INSERTION_ORDER, edit("insert-last", A, X), edit("insert-last", A, Y)),
        (ConflictKind.LOCAL_OVERRIDE, edit("delete", A), edit("insert-last", A, X)),
        (ConflictKind.NON_LOCAL_OVERRIDE, edit("delete", A), edit("insert-last", B, X)),
    ],
    ids=["IO", "LO", "NLO"],
)
def test_conflict_rule(kind: ConflictKind, one: Edit, two: Edit) -> None:
    (found,) = conflicts([UpdateList((one,)), UpdateList((two,))])
    assert (found.kind, found.first[1], found.second[1]) == (kind, one, two)


def test_aggregation_rules_a1_and_a2() -> None:
    """Insertions of two lists at one place are one, those of the first list first."""
    one, two = UpdateList((edit("insert-last", A, X),)), UpdateList((edit("insert-last", A, Y),))
    (merged,) = aggregate([one, two])
    assert merged.edits == (edit("insert-last", A, X, Y),)


def test_aggregation_rule_d6() -> None:
    """A change of a tree that the first list inserts is made in that tree."""
    tree = load(XML)
    _, first = record(tree, resolved(tree, [edit("insert-last", A, Markup("<x><z/></x>"))]))
    root = first.edits[0].roots[0]
    assert root is not None
    second = UpdateList((edit("insert-last", f"{root}.1", Y),))
    (merged,) = aggregate([first, second])
    assert merged.edits == (edit("insert-last", A, Markup("<x><z><y/></z></x>")),)
    assert after(XML, merged) == after(XML, first, second)
