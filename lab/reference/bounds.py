"""Bounds on the futures that a pattern can distinguish: labels, sizes, times and monotonicity.

If a pattern without negation can come to hold, it holds after at most |q| insertions of trees of at
most |q| nodes. Their labels are those of the pattern and the document, one fresh label for each
variable, and one more for each text beside another, because adjacent texts are merged. `bound_of`
derives that bound.

The times are those at which a constraint can become tight: sums of bounds from the times present.
They are enough for coefficients -1, 0 and 1, because difference constraints have their corners
there. For other coefficients and three times in one constraint, they are all times up to one at
which a single such constraint has a solution if it has any.

Not handled: several such constraints, and strings compared by `<`. For these the choice is a
sample; pass your own times and texts.

(Paper 2, theorem 2.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

from axlog.document.tree import DOCUMENT_NODE, NodeKind, Tree
from axlog.evaluate.definition import constraints_of, every_branch
from axlog.evaluate.definition_axes import passes
from axlog.evaluate.value_tests import comparison
from axlog.future.formula_values import candidates
from axlog.query.formula import HOLDS, Formula
from axlog.query.pattern import (
    AnyText,
    Axis,
    Branch,
    Collect,
    Constant,
    Kind,
    Literal,
    Moment,
    Name,
    Not,
    Number,
    Or,
    Pattern,
    PatternNode,
    TimeConstraint,
    ValueConstraint,
    Variable,
)
from axlog.query.time_literals import date_text
from axlog.query.values import ValueKind, key_of
from lab.reference.fragments import Alphabet
from lab.reference.futures import Bound

FRESH = ("other", "another")
"""Labels that stand for all those that neither pattern nor document has."""

_SHOWN_TIMES = 3  # from the clock on: with more, coefficients make too many futures
_NAME = re.compile(r"(\{[^{}]+\})?[^\W\d][\w.-]*")  # with its namespace, if any
_SIBLING_AXES = (
    Axis.NEXT_SIBLING,
    Axis.FOLLOWING_SIBLING,
    Axis.PREVIOUS_SIBLING,
    Axis.PRECEDING_SIBLING,
)


def bound_of(
    tree: Tree,
    pattern: Pattern,
    trees_per_call: int | None = None,
    nodes_per_tree: int | None = None,
    alphabet: Alphabet | None = None,
) -> Bound:
    """The bound for this pattern (paper 2, theorem 2); arguments override its sizes and labels."""
    size = sum(1 + nodes_between(node.branches) for node in pattern.nodes())
    size += nodes_above_late_texts(tree, pattern)
    return Bound(
        alphabet or alphabet_of(tree, pattern),
        size if trees_per_call is None else trees_per_call,
        size if nodes_per_tree is None else nodes_per_tree,
        times=times_of(tree, pattern),
        ordered=sees_order(pattern),
        deletions=any(tree.call(node).deletes != "no" for node in tree.calls().values()),
    )


def nodes_between(branches: Iterable[Branch]) -> int:
    """The nodes that must separate the texts that these branches of one node require."""
    return max(0, sum(map(_can_be_text, branches)) - 1)


def nodes_above_late_texts(tree: Tree, pattern: Pattern) -> int:
    """The nodes that must arrive with texts that are later than one of their ancestors.

    A message has no text at its top: a call inside a tree inserts an element that holds the text.
    """
    if not any(map(tree.may_bring_calls, tree.calls())):
        return 0
    terms = [c.terms for c in constraints_of(pattern) if isinstance(c, TimeConstraint)]
    timed = {name for each in terms for _, name in each}
    timed |= {output.of for output in pattern.outputs if output.kind is Kind.TIME}
    return sum(
        below.name in timed and below.axis is not Axis.CHILD and _can_be_text(below)
        for node in pattern.nodes()
        for below in node.branches
        if isinstance(below, PatternNode)
    )


def _can_be_text(branch: Branch) -> bool:
    if isinstance(branch, Or):
        return any(_can_be_text(below) for each in branch.alternatives for below in each)
    return (
        isinstance(branch, PatternNode)
        and branch.axis in (Axis.CHILD, Axis.DESCENDANT)
        and isinstance(branch.test, Literal | AnyText | Variable)
    )


# Labels -------------------------------------------------------------------------------------------


def alphabet_of(tree: Tree, pattern: Pattern) -> Alphabet:
    """The labels that can matter: the pattern's, fresh ones, and for joins the document's."""
    nodes = list(pattern.nodes())
    elements = [n.test.label for n in nodes if isinstance(n.test, Name) and not _is_attribute(n)]
    attributes = [n.test.label for n in nodes if isinstance(n.test, Name) and _is_attribute(n)]
    if any(_is_attribute(node) and not isinstance(node.test, Name) for node in nodes):
        attributes += FRESH[:1]
    texts = [node.test.text for node in nodes if isinstance(node.test, Literal)]
    for constant in _constants(pattern):
        texts += _around(constant)
    pinned = [c.right for c in constraints_of(pattern) if isinstance(c, ValueConstraint)]
    elements += [each for each in pinned if isinstance(each, str) and _NAME.fullmatch(each)]
    used = _variable_uses(pattern)
    fresh = FRESH if len(set(used)) > 1 else FRESH[:1]
    if len(set(used)) < len(used):
        for label in _labels(tree):
            texts.append(label)
            if _NAME.fullmatch(label):
                elements.append(label)
    elements += fresh
    if attributes or used or _reads_texts(nodes):
        texts += fresh
    return Alphabet(*(tuple(dict.fromkeys(each)) for each in (elements, texts, attributes)))


def _is_attribute(node: PatternNode) -> bool:
    return node.axis is Axis.ATTRIBUTE


def _reads_texts(nodes: list[PatternNode]) -> bool:
    return any(node.comparisons or isinstance(node.test, AnyText | Literal) for node in nodes)


def _variable_uses(pattern: Pattern) -> list[str]:
    """Every occurrence of a variable; a variable that occurs twice is a join."""
    found = []
    for node in pattern.nodes():
        operands = (node.test, *(each.operand for each in node.comparisons))
        found += [each.name for each in operands if isinstance(each, Variable)]
    for constraint in constraints_of(pattern):
        if isinstance(constraint, ValueConstraint):
            sides = (constraint.left, constraint.right)
            found += [side.name for side in sides if isinstance(side, Variable)]
    return found


def _constants(pattern: Pattern) -> Iterator[Constant]:
    for node in pattern.nodes():
        for each in node.comparisons:
            if not isinstance(each.operand, Variable):
                yield each.operand
    for constraint in constraints_of(pattern):
        if isinstance(constraint, ValueConstraint) and not isinstance(constraint.right, Variable):
            yield constraint.right


def _around(constant: Constant) -> list[str]:
    """Values at, below and above a constant; some that pass a formula, and some that do not."""
    if isinstance(constant, Formula):
        holds = comparison(HOLDS, constant)
        every = [value for value in candidates(constant) if value.strip()]
        return [value for value in every if holds(value)][:3] + [
            value for value in every if not holds(value)
        ][:1]
    if isinstance(constant, Moment):
        return [date_text(constant.microseconds + step) for step in (-1, 0, 1)]
    if isinstance(constant, Number):
        return [str(Number(constant.value + step)) for step in (-1, 0, 1)]
    if isinstance(constant, str):
        texts = [value for value in (constant, "!", "~") if value.strip()]
        kind, value = key_of(constant)
        if kind is ValueKind.NUMBER:
            texts += [str(Number(value + step)) for step in (-1, 0, 1)]
        elif kind is ValueKind.MOMENT and isinstance(value, int):
            texts += [date_text(value + step) for step in (-1, 0, 1)]
        return texts
    assert isinstance(constant, float), "parts of names are not compared with values"
    return [format(Decimal(repr(constant + step)), "f") for step in (-1, 0, 1)]


def _labels(tree: Tree) -> list[str]:
    return [
        tree.label(node)
        for node in tree.subtree(DOCUMENT_NODE)
        if tree.kind(node) in (NodeKind.ELEMENT, NodeKind.TEXT)
    ]


# Times --------------------------------------------------------------------------------------------


def times_of(tree: Tree, pattern: Pattern) -> tuple[int, ...]:
    """The times that can make a constraint tight, from the clock on; empty without constraints."""
    constraints = [c for c in constraints_of(pattern) if isinstance(c, TimeConstraint)]
    if not constraints:
        return ()
    if _has_coefficients(constraints):
        return _every_time(tree, constraints)
    is_open = any(c.operator in ("<", ">", "!=") for c in constraints) or _has(pattern, Not)
    steps = {
        sign * constraint.bound + shift
        for constraint in constraints
        for sign in (-1, 1)
        for shift in ((-1, 0, 1) if is_open else (0,))
    }
    times = {tree.clock} | {tree.time(node) for node in tree.subtree(DOCUMENT_NODE)}
    for _ in {name for constraint in constraints for _, name in constraint.terms}:
        times |= {time + step for time in times for step in steps}
    return tuple(sorted(time for time in times if time >= tree.clock))


def shown_times_of(tree: Tree, pattern: Pattern) -> tuple[int, ...]:
    """Times to ask for in a row that shows a time; `times_of` has the times that go with them."""
    constraints = [c for c in constraints_of(pattern) if isinstance(c, TimeConstraint)]
    if _has_coefficients(constraints):
        return tuple(range(tree.clock, tree.clock + _SHOWN_TIMES))
    return times_of(tree, pattern)


def _has_coefficients(constraints: list[TimeConstraint]) -> bool:
    return any(len(c.terms) > 2 or any(abs(f) > 1 for f, _ in c.terms) for c in constraints)


def _every_time(tree: Tree, constraints: list[TimeConstraint]) -> tuple[int, ...]:
    """All times from the clock on that coefficients may reach from known or shown times."""
    last = max(abs(tree.time(node)) for node in tree.subtree(DOCUMENT_NODE))
    last = max(last, abs(tree.clock + _SHOWN_TIMES - 1))
    factors = max(sum(abs(factor) for factor, _ in c.terms) for c in constraints)
    bounds = max(abs(constraint.bound) for constraint in constraints)
    end = tree.clock + factors * max(last, abs(tree.clock)) + bounds + factors
    return tuple(range(tree.clock, end + 1))


# Parts of a document that a pattern sees ----------------------------------------------------------


def _has(pattern: Pattern, kind: type[Branch]) -> bool:
    return any(isinstance(branch, kind) for branch in every_branch(pattern))


def _sees_siblings(pattern: Pattern) -> bool:
    return any(node.axis in _SIBLING_AXES for node in pattern.nodes())


def shows_values(pattern: Pattern) -> bool:
    """Whether a row shows a value that data arriving elsewhere can change."""
    return _has(pattern, Collect) or any(
        output.kind in (Kind.VAL, Kind.CONT) for output in pattern.outputs
    )


def sees_order(pattern: Pattern) -> bool:
    """Whether the order or the number of equal siblings can change the pattern's rows."""
    return (
        _sees_siblings(pattern)
        or shows_values(pattern)
        or any(node.comparisons for node in pattern.nodes() if not _is_attribute(node))
    )


def is_monotone(tree: Tree, pattern: Pattern, bound: Bound) -> bool:
    """Whether a match survives all later data, and every call may insert everything.

    False for `not`, for sibling axes, and for a value test on a node that can be above an open call
    (docs/meaning.md). Also false where calls are limited, deletions count, or `allows` forbids
    documents.
    """
    calls = [tree.call(node) for node in tree.calls().values()]
    is_limited = any(call.most is not None for call in calls if call.deletes != "only")
    one_time = len(bound.times_from(tree.clock)) == 1
    return not (
        bound.allows is not None
        or (bound.deletions and any(call.deletes != "no" for call in calls))
        or is_limited
        or any(call.replace is not None for call in calls)
        or (not one_time and any(call.mode == "one-shot" for call in calls))
        or _has(pattern, Not)
        or _sees_siblings(pattern)
        or _tests_values_above_calls(tree, pattern)
    )


def _tests_values_above_calls(tree: Tree, pattern: Pattern) -> bool:
    above = {node for call in tree.calls().values() for node in tree.ancestors(call)}
    return any(
        passes(tree, node, pattern_node.axis, pattern_node.test)
        for pattern_node in pattern.nodes()
        if pattern_node.comparisons and not _is_attribute(pattern_node)
        for node in above
    )
