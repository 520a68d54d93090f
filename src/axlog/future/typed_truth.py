"""Truth under types: what calls can deliver, and whether a pattern can come to hold.

Decided exactly for unordered DTDs and patterns without negation:

- `can_bring`: whether a call of a service may deliver a tree that matches a sub-pattern;
- `document_allows`, `most_trees`: how many trees the calls of a node may add by valid steps;
- `typed_future`: messages after which a pattern holds, each valid when it arrives, or None;
- `typed_truth`: TRUE now, POSSIBLE by such a future, or NEVER.

Joins are decided by trying values for the join variables: the strings of the document, the pattern
and the types, and one fresh string for each variable. One-shot calls and `most` are respected. The
end of a stream, which changes the number of calls at a node, is not part of a future here.

Streams that may delete make room for data that a type forbids now (`type_steps`).

The problem is NP-hard in the pattern: past the limit, AX502. Rejected with AX503: `not`, times,
comparisons other than equality of values that may still arrive or change. (Paper 2, section 4,
theorems 3 and 4; section 5, theorem 5.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeVar

from axlog.document.schema import Schema, validate
from axlog.document.tree import DOCUMENT_NODE, NodeKind, Tree
from axlog.errors import UndecidedError
from axlog.evaluate.value_tests import comparison
from axlog.future.comments import refuse_any_node
from axlog.future.requirements import NodeMatcher
from axlog.future.type_messages import Message, Writer
from axlog.future.type_steps import Goal, reach
from axlog.future.type_trees import Place, Trees, may_hold_calls
from axlog.future.typed_document import TypedDocument, callers_of, removable_at
from axlog.future.typed_values import samples
from axlog.future.value_classes import is_of_times, needs_types
from axlog.query.compile import Relation
from axlog.query.normalize import normalise
from axlog.query.pattern import (
    Axis,
    Branch,
    Constant,
    Constraint,
    Literal,
    Name,
    Not,
    Number,
    Pattern,
    PatternNode,
    TimeConstraint,
    ValueConstraint,
    Variable,
    branches_of,
    nodes_of,
)
from axlog.query.truth import Truth

LIMIT = 200_000
"""Distributions and numbers to try before giving up."""

T = TypeVar("T")


# Calls --------------------------------------------------------------------------------------------


def can_bring(
    schema: Schema,
    service: str,
    wanted: PatternNode | Relation,
    *,
    bindings: Mapping[str, str] | None = None,
    limit: int = LIMIT,
) -> bool:
    """Whether a call of a service may deliver a tree in which a sub-pattern matches.

    On the child axis the root must match, on the descendant axis any node. How many trees the
    call's parent may hold is a separate question (`document_allows`).
    """
    return example_tree(schema, service, wanted, bindings=bindings, limit=limit) is not None


def example_tree(
    schema: Schema,
    service: str,
    wanted: PatternNode | Relation,
    *,
    bindings: Mapping[str, str] | None = None,
    limit: int = LIMIT,
) -> list[Message] | None:
    """A tree that demonstrates `can_bring`, as a message, with the messages of its calls.

    >>> from axlog.document.schema_parser import parse_schema
    >>> from axlog.query.native import parse_pattern
    >>> text = "root: a  a -> |b| >= 0 & |w| >= 0  b -> |c| = 2  c ->  call w root: b"
    >>> schema = parse_schema(text)
    >>> (wanted,) = parse_pattern("match /b/c").branches
    >>> print(*example_tree(schema, "w", wanted))
    w: <b><c/><c/></b>
    """
    node = wanted if isinstance(wanted, PatternNode) else wanted.node
    if node is None or node.axis not in _AT_ROOT:
        return None
    at_root = PatternNode(
        _AT_ROOT[node.axis], node.test, node.name, node.comparisons, node.branches
    )
    _check(at_root)
    question = Question((at_root,), (), schema, dict(bindings or {}), limit)

    def ask(matcher: NodeMatcher) -> list[Message] | None:
        trees = Trees(schema, matcher)
        for label in schema.service(service).roots:
            place = Place(service, label, frozenset({at_root}))
            if trees.can_fill(place):
                made, later = Writer(trees, set()).tree(place)
                return [Message(service, [made]), *later]
        return None

    return question.answer(ask, {})


_AT_ROOT = {
    Axis.CHILD: Axis.SELF,
    Axis.SELF: Axis.SELF,
    Axis.DESCENDANT: Axis.DESCENDANT_OR_SELF,
    Axis.DESCENDANT_OR_SELF: Axis.DESCENDANT_OR_SELF,
}


def document_allows(tree: Tree, schema: Schema, parent: int, wanted: Goal) -> bool:
    """Whether the calls of a node can deliver these numbers of trees, by (service, root label)."""
    trees = _any_trees(tree, schema)
    numbers = schema.document.count(tree, parent)
    constraint = trees.constraint(tree.label(parent))
    removable = tuple(removable_at(tree, schema.document, parent, ()))
    callers = callers_of(tree, trees, parent)
    return reach(constraint, numbers, callers, wanted, removable) is not None


def most_trees(tree: Tree, schema: Schema, parent: int, service: str, label: str) -> int | None:
    """The most trees with this root that a service may deliver to a node; None: unlimited."""
    trees = _any_trees(tree, schema)
    callers = [c for c in callers_of(tree, trees, parent) if c.service == service]
    rooms = [caller.room for caller in callers]
    room = None if None in rooms else sum(r for r in rooms if r is not None)
    constraint = trees.constraint(tree.label(parent))
    numbers = schema.document.count(tree, parent)
    # beyond every number in the type and at the node, the type cannot distinguish one more
    enough = max([*constraint.constants, *numbers.values(), 0]) + len(numbers) + 1
    low, high = 0, enough if room is None else min(room, enough)
    if high and document_allows(tree, schema, parent, {(service, label): high}):
        return room
    while low < high - 1:
        middle = (low + high) // 2
        if document_allows(tree, schema, parent, {(service, label): middle}):
            low = middle
        else:
            high = middle
    return low


def _any_trees(tree: Tree, schema: Schema) -> Trees:
    return Trees(schema, NodeMatcher({}, ("fresh",), lambda: None), may_hold_calls(tree, schema))


# Truth --------------------------------------------------------------------------------------------


def typed_truth(tree: Tree, pattern: Pattern, schema: Schema, *, limit: int = LIMIT) -> Truth:
    """Whether some row exists, can appear by valid messages, or can never appear."""
    messages = typed_future(tree, pattern, schema, limit=limit)
    if messages is None:
        return Truth.NEVER
    return Truth.POSSIBLE if messages else Truth.TRUE


def typed_future(
    tree: Tree,
    pattern: Pattern,
    schema: Schema,
    *,
    bindings: Mapping[str, str] | None = None,
    limit: int = LIMIT,
    silent: Collection[str] = (),
) -> list[Message] | None:
    """Messages after which there is a row; None if no valid messages lead to one.

    The row has the values of `bindings`, if given. Every message is valid when it arrives. An empty
    list: the row exists now. `silent`: streams that deliver nothing.
    """
    validate(tree, schema)
    refuse_any_node(pattern, "under types")
    normal = normalise(pattern)
    for branch in normal.branches:
        _check(branch)
    question = Question(normal.branches, normal.where, schema, dict(bindings or {}), limit)
    holds_calls = may_hold_calls(tree, schema)

    def ask_now(matcher: NodeMatcher) -> list[Message] | None:
        holds = TypedDocument(tree, Trees(schema, matcher, holds_calls)).holds(normal.branches)
        return [] if holds else None

    def ask(matcher: NodeMatcher) -> list[Message] | None:
        trees = Trees(schema, matcher, holds_calls)
        return TypedDocument(tree, trees, silent).messages(normal.branches)

    present = dict.fromkeys(_strings_of(tree)) if question.joins else {}
    question.cost = 1 + len(tree) // 4
    now = question.answer(
        ask_now, present
    )  # checked first: with other values a row may need messages
    return question.answer(ask, present) if now is None else now


def _check(branch: Branch) -> None:
    """Reject features that are not decided under types."""
    waiting = [branch]
    while waiting:
        at = waiting.pop()
        if isinstance(at, Not):
            raise UndecidedError("AX503", "truth under types is not decided for `not`")
        if isinstance(at, PatternNode) and not at.axis.is_downward:
            raise UndecidedError(
                "AX503", f"truth under types is not decided for the axis {at.axis.value}"
            )
        waiting += branches_of(at)


class Question:
    """A pattern whose join variables are decided by trying values."""

    def __init__(
        self,
        branches: tuple[Branch, ...],
        where: tuple[Constraint, ...],
        schema: Schema,
        bindings: dict[str, str],
        limit: int,
    ) -> None:
        self.where = where
        self.bindings = bindings
        self.limit = limit
        self.tried = 0
        self.cost = 1
        """The cost of one more `ask`, which examines the document again."""
        nodes = [node for branch in branches for node in nodes_of(branch)]
        asked = (c.right for c in where if isinstance(c, ValueConstraint))
        given = [string for string in asked if isinstance(string, str)]
        asked_orders = [c.right for c in where if not isinstance(c, TimeConstraint)
                        if c.operator != "=" and not isinstance(c.right, Variable)]  # fmt: skip
        ordered = [*asked_orders, *_ordered_constants(nodes)]
        self.constants = list(dict.fromkeys([*_constants(nodes), *given, *samples(ordered)]))
        uses = Counter(_variables(nodes))
        compared = set(self._compared())
        self.joins = sorted(
            v for v, n in uses.items() if (n > 1 or v in compared) and v not in bindings
        )
        labels = {label for _, type_ in _types(schema) for label in type_}
        self.labels = sorted(labels)
        prefix = "z"
        known = {*labels, *self.constants, *bindings.values()}
        while any(string.startswith(prefix) for string in known):
            prefix += "z"
        self.fresh = [f"{prefix}{number}" for number in range(len(self.joins) + 1)]

    def _compared(self) -> Iterator[str]:
        for constraint in self.where:
            if isinstance(constraint, TimeConstraint):
                raise UndecidedError("AX503", "truth under types is not decided for times")
            operator, right = constraint.operator, constraint.right
            between = isinstance(right, Variable) and operator not in ("=", "!=")
            if between or needs_types(operator) or is_of_times(operator, right):
                raise UndecidedError("AX503", f"{constraint} compares values that have not arrived")
            yield constraint.left.name
            if isinstance(constraint.right, Variable):
                yield constraint.right.name

    def _count(self, number: int = 1) -> None:
        self.tried += number
        if self.tried > self.limit:
            raise UndecidedError(
                "AX502",
                f"more than {self.limit:,} combinations would have to be tried",
                advice="give a larger limit",
            )

    def answer(
        self, ask: Callable[[NodeMatcher], T | None], present: Mapping[str, None]
    ) -> T | None:
        """The first result of `ask` for some values of the join variables, or None."""
        values = list(dict.fromkeys([*present, *self.constants, *self.labels, *self.fresh[1:]]))
        values += [v for v in self.bindings.values() if v not in values]
        return self._bind(ask, self.joins, values, dict(self.bindings))

    def _bind(
        self,
        ask: Callable[[NodeMatcher], T | None],
        joins: list[str],
        values: list[str],
        bound: dict[str, str],
    ) -> T | None:
        if not self._is_possible(bound):
            return None
        strings = dict.fromkeys([*self.constants, *bound.values(), *self.fresh[:1]])
        found = ask(NodeMatcher(dict(bound), tuple(strings), self._count))
        if found is None or not joins:
            return found
        for value in values:
            self._count(self.cost)
            found = self._bind(ask, joins[1:], values, {**bound, joins[0]: value})
            if found is not None:
                return found
        return None

    def _is_possible(self, bound: Mapping[str, str]) -> bool:
        """Whether the constraints hold as far as their variables are bound."""
        for constraint in self.where:
            assert not isinstance(constraint, TimeConstraint)
            right = constraint.right
            other = bound.get(right.name) if isinstance(right, Variable) else right
            left = bound.get(constraint.left.name)
            if left is None or other is None:
                continue
            if not comparison(constraint.operator, other)(left):
                return False
        return True


def _types(schema: Schema) -> Iterator[tuple[str, Iterable[str]]]:
    yield "", schema.document.table
    for service, type_ in schema.services:
        yield service, type_.table


def _variables(nodes: Iterable[PatternNode]) -> Iterator[str]:
    for node in nodes:
        for operand in (node.test, *(c.operand for c in node.comparisons)):
            if isinstance(operand, Variable):
                yield operand.name


def _constants(nodes: Iterable[PatternNode]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node.test, Name) and node.axis is not Axis.ATTRIBUTE:
            yield node.test.label
        if isinstance(node.test, Literal):
            yield node.test.text
        for each in node.comparisons:
            if isinstance(each.operand, str):
                yield each.operand
            elif isinstance(each.operand, Number):
                yield str(each.operand)
            elif isinstance(each.operand, float):
                yield repr(each.operand).removesuffix(".0")


def _ordered_constants(nodes: Iterable[PatternNode]) -> Iterator[Constant]:
    for node in nodes:
        for each in node.comparisons:
            if each.operator != "=" and not isinstance(each.operand, Variable):
                yield each.operand


def _strings_of(tree: Tree) -> Iterator[str]:
    """Every label, text and value of a document."""
    for node in tree.subtree(DOCUMENT_NODE):
        kind = tree.kind(node)
        if kind in (NodeKind.ELEMENT, NodeKind.TEXT):
            yield tree.label(node)
        if kind is NodeKind.ELEMENT:
            yield tree.string_value(node)
