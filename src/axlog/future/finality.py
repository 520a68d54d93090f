"""Whether a row that a message removes from a query with `not` can return.

Without deletions, data only adds matches. So a row disappears because something that must be absent
has come. If that does not depend on anything but the row's own values, and nothing removes it, the
row is gone for good: order 17 has shipped. A stream that deletes elsewhere, such as among the
orders, changes nothing about that.

    is_lasting    of the query: every `not` stands at the document or its root element, of which
                  there is one; its body has no `not`; what it shares with the rest is in the row
    may_return    of the document: a stream may delete what must be absent (`deletions.py`),
                  replace, or change a value that the query compares

Both are about rows that an insertion removes. A row whose own data is deleted may come again.

A row that is not lasting by this rule may still be gone for good: `View.status` decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from axlog.document.tree import Tree
from axlog.future.clock_outlook import lower_bounds, shown_outputs
from axlog.future.deletions import can_match_at, deletion_places
from axlog.query.hoist import mentioned_by, mentions
from axlog.query.normalize import normalise
from axlog.query.pattern import (
    AnyText,
    Axis,
    Branch,
    Kind,
    Literal,
    Name,
    Not,
    Pattern,
    PatternNode,
    branches_of,
)
from axlog.query.query import Query


def is_lasting_query(query: Query) -> bool:
    """Whether rows that data removes from a query cannot return, if nothing is deleted.

    Time takes no rows away where `now` is only bounded from below.
    """
    if query.is_pattern:
        return is_lasting(query.pattern)
    outputs = shown_outputs(query) if lower_bounds(query) is not None else None
    return outputs is not None and is_lasting(replace(query.pattern, outputs=outputs))


def is_lasting(pattern: Pattern) -> bool:
    """Whether rows that data removes from this query cannot return, if nothing is deleted."""
    whole = normalise(pattern)
    shown = {f"${o.of}" for o in whole.outputs if o.kind is Kind.VARIABLE}
    timed = {f"#{o.of}" for o in whole.outputs if o.kind is Kind.TIME}
    top: list[Not] = []
    others: list[Branch] = []
    for branch in whole.branches:
        if isinstance(branch, PatternNode) and branch.axis is Axis.CHILD:
            others.append(_bare(branch))
            top += [each for each in branch.branches if isinstance(each, Not)]
        elif isinstance(branch, Not):
            top.append(branch)
        else:
            others.append(branch)
    if not top or any(_has_not([each]) for each in others):
        return False
    outside = frozenset[str]().union(*(mentions(each) for each in others))
    for each in top:
        inside = mentions(each).union(*(mentioned_by(c) for c in each.where))
        if _has_not(each.branches) or not inside & outside <= shown | timed:
            return False
    return True


def _bare(node: PatternNode) -> PatternNode:
    """The node without the `not`s that stand directly at it."""
    left = tuple(each for each in node.branches if not isinstance(each, Not))
    return PatternNode(node.axis, node.test, node.name, node.comparisons, left)


def _has_not(branches: Iterable[Branch]) -> bool:
    return any(isinstance(b, Not) or _has_not(branches_of(b)) for b in branches)


def may_return(tree: Tree, pattern: Pattern) -> bool:
    """Whether an open stream may remove what must be absent, or change a compared value."""
    calls = tree.calls()
    declared = [tree.call(node) for node in calls.values()]
    if any(call.replace is not None for call in declared):
        return True
    if any(call.deletes != "no" for call in declared):
        absent = absent_part(pattern)
        if any(can_match_at(tree, absent, place) for place in deletion_places(tree)):
            return True
    compared = [n for n in pattern.nodes() if n.comparisons and _is_of_element(n)]
    if not compared:
        return False
    if any(map(tree.may_bring_calls, calls)):
        return True
    above = {tree.label(n) for call in calls.values() for n in tree.ancestors(call) if n}
    return any(not isinstance(n.test, Name) or n.test.label in above for n in compared)


@lru_cache(maxsize=256)
def absent_part(pattern: Pattern, only: Not | None = None) -> Pattern:
    """What the `not`s of a pattern exclude, or one of them, as a pattern.

    More documents match it than the query excludes.
    """
    return Pattern(_absent(normalise(pattern).branches, only), ())


def _absent(branches: Iterable[Branch], only: Not | None) -> tuple[Branch, ...]:
    found: list[Branch] = []
    for each in branches:
        if isinstance(each, Not):
            found += each.branches if only in (None, each) else ()
        elif isinstance(each, PatternNode) and (inside := _absent(each.branches, only)):
            found.append(replace(each, comparisons=(), branches=inside))
    return tuple(found)


def _is_of_element(node: PatternNode) -> bool:
    return node.axis is not Axis.ATTRIBUTE and not isinstance(node.test, Literal | AnyText)
