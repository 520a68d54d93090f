"""Which scenarios the types of a document and its services allow.

A scenario requires sub-patterns from streams. Under types it is possible if the sub-patterns of
each stream fit into trees of its service's type, and the calls of each node can deliver those trees
by valid steps (`type_steps`). Types constrain the children of one node, so each node with calls is
decided on its own. The values that sub-patterns share connect the nodes; they are tried one by one
(`typed_truth.Question`).

A smaller need is never harder to meet, so dominated scenarios remain dominated. The result is
exact, with the limits of `typed_truth`. Calls that may delete make room: they remove children that
the scenario does not need (`Need.kept`).

Times and types together are decided if every order of arrival is valid. If some order is not, the
question is rejected (AX503). (Paper 2, section 4, theorems 3 to 5; theorem 6 covers times without
types.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product

from axlog.document.cardinality import Constraint
from axlog.document.schema import Schema
from axlog.document.tree import NodeKind, Tree
from axlog.errors import UndecidedError
from axlog.future.generalized_rows import Need, Values
from axlog.future.requirements import NodeMatcher, Slot, Subject, share_out
from axlog.future.type_steps import Caller, Removable, reach
from axlog.future.type_trees import Place, Trees, may_hold_calls
from axlog.future.typed_document import callers_of, removable_at
from axlog.future.typed_truth import LIMIT, Question
from axlog.future.typed_values import with_text_comparisons
from axlog.query.pattern import (
    Axis,
    Pattern,
    PatternNode,
    TimeConstraint,
    Variable,
    nodes_of,
)

Asked = Mapping[str, tuple[PatternNode, ...]]
"""Sub-patterns required from each stream, as branches of its call's parent."""

Numbers = Counter[str]
"""Numbers of trees, by root label."""


class TypedScenarios:
    """The deliveries that a document's types allow, for the scenarios of one pattern."""

    def __init__(self, tree: Tree, pattern: Pattern, schema: Schema, *, limit: int = LIMIT) -> None:
        self.tree = tree
        self.schema = schema
        self._limit = limit
        self._where = tuple(c for c in pattern.where if not isinstance(c, TimeConstraint))
        self._is_timed = len(self._where) < len(pattern.where)
        self._may_hold_calls = may_hold_calls(tree, schema)
        self._known: dict[object, bool] = {}
        self._nodes: dict[PatternNode, PatternNode] = {}

    def allow(self, columns: Iterable[str], values: Values, need: Need) -> bool:
        """Whether some valid future delivers everything that a scenario needs."""
        if not need.brought:
            return True
        known = {
            c: str(v) for c, v in zip(columns, values, strict=True)
            if v is not None and not c.endswith((".node", ".time"))
        }  # fmt: skip
        asked: dict[str, list[PatternNode]] = {}
        for relation, stream in need.brought:
            assert relation.node is not None
            asked.setdefault(stream, []).append(self._below_call(relation.node))
        used = {v for nodes in asked.values() for node in nodes for v in _variables(node)}
        used |= {c.left.name for c in self._where}
        used |= {c.right.name for c in self._where if isinstance(c.right, Variable)}
        bindings = {v: known[_column(v)] for v in used if _column(v) in known}
        is_timed = self._is_timed or any(
            c.endswith(".time") and v is not None for c, v in zip(columns, values, strict=True)
        )
        if is_timed:
            self._check_times(asked)
        key = (need.brought, frozenset(bindings.items()), is_timed, need.kept)
        if key not in self._known:
            sorted_asked = {s: tuple(sorted(asked[s], key=str)) for s in sorted(asked)}
            self._known[key] = self._can_come(sorted_asked, bindings, is_timed, need.kept)
        return self._known[key]

    def _check_times(self, asked: Mapping[str, list[PatternNode]]) -> None:
        """Reject times that decide how trees are shared, or when inner calls deliver."""
        for stream, nodes in asked.items():
            call = self.tree.call(self.tree.calls()[stream])
            left = None if call.most is None else call.most - self.tree.brought.get(stream, 0)
            named = [sum(each.name is not None for each in nodes_of(node)) for node in nodes]
            if (left is not None and left < len(nodes)) or (
                self._may_hold_calls and max(named) > 1
            ):
                raise UndecidedError(
                    "AX503", f"times in data of the stream {stream!r} are not covered under types"
                )

    def _below_call(self, node: PatternNode) -> PatternNode:
        """A sub-pattern as a branch of the call's parent; labels of named nodes are variables."""
        if node not in self._nodes:
            axis = Axis.CHILD if node.axis is Axis.CHILD else Axis.DESCENDANT
            self._nodes[node] = _with_labels(
                with_text_comparisons(replace(node, axis=axis), self.schema, self.tree)
            )
        return self._nodes[node]

    def _can_come(
        self, asked: Asked, bindings: dict[str, str], is_timed: bool, kept: frozenset[int]
    ) -> bool:
        branches = tuple(node for nodes in asked.values() for node in nodes)
        question = Question(branches, self._where, self.schema, bindings, self._limit)

        def ask(matcher: NodeMatcher) -> bool | None:
            return self._can_deliver(matcher, asked, is_timed, kept) or None

        return question.answer(ask, {}) is not None

    def _can_deliver(
        self, matcher: NodeMatcher, asked: Asked, is_timed: bool, kept: frozenset[int]
    ) -> bool:
        """Whether the calls of every node can deliver what is required, with values bound."""
        trees = Trees(self.schema, matcher, self._may_hold_calls)
        by_parent: dict[int, list[str]] = {}
        calls = self.tree.calls()
        for stream in asked:
            by_parent.setdefault(self.tree.parent(calls[stream]), []).append(stream)
        for parent, streams in by_parent.items():
            ways = [list(self._distributions(trees, stream, asked[stream])) for stream in streams]
            callers = [
                replace(caller, source=caller.name)
                for caller in callers_of(self.tree, trees, parent)
            ]
            constraint = trees.constraint(self.tree.label(parent))
            numbers = self.schema.document.count(self.tree, parent)
            removable = tuple(removable_at(self.tree, self.schema.document, parent, kept))
            goals = [dict(zip(streams, chosen, strict=True)) for chosen in product(*ways)]
            if not any(
                self._can_reach(constraint, numbers, callers, goal, is_timed, removable)
                for goal in goals
            ):
                return False
        return True

    def _distributions(
        self, trees: Trees, stream: str, wants: tuple[PatternNode, ...]
    ) -> Iterator[Numbers]:
        """The numbers of trees with which a stream can meet all its requirements."""
        call = self.tree.call(self.tree.calls()[stream])
        service = call.service or call.stream
        roots = trees.roots(service)
        slots = [Slot(Subject(NodeKind.ELEMENT, label), service) for label in roots]
        seen: set[frozenset[tuple[str, int]]] = set()
        for groups in share_out(wants, slots, trees.ways, trees.matcher.count):
            numbers = Counter(slot.subject.label for slot, _ in groups)
            key = frozenset(numbers.items())
            if key not in seen and all(
                trees.can_fill(Place(service, slot.subject.label, wanted))
                for slot, wanted in groups
            ):
                seen.add(key)
                yield numbers

    def _can_reach(
        self,
        constraint: Constraint,
        start: Mapping[str, int],
        callers: list[Caller],
        goal: Mapping[str, Numbers],
        is_timed: bool,
        removable: tuple[Removable, ...],
    ) -> bool:
        """Whether the calls of one node can deliver these numbers of trees."""
        wanted = {(s, label): n for s, numbers in goal.items() for label, n in numbers.items()}
        if reach(constraint, start, callers, wanted, removable) is None:
            return False
        if is_timed and not self._in_any_order(constraint, start, callers, goal):
            raise UndecidedError(
                "AX503",
                "both the types and the time constraints require an order of arrival, which is not"
                " decided",
                advice="remove the time constraint or the types",
            )
        return True

    def _in_any_order(
        self,
        constraint: Constraint,
        start: Mapping[str, int],
        callers: list[Caller],
        goal: Mapping[str, Numbers],
    ) -> bool:
        """Whether every intermediate state is allowed, and no other delivery is needed."""
        modes = {caller.name: caller for caller in callers}
        choices: list[list[Numbers]] = []
        for stream, numbers in goal.items():
            if True in modes[stream].goes:  # one message, which closes the call
                gone = Counter({f"?{modes[stream].service}": -1})
                gone.update(numbers)
                choices.append([Counter(), gone])
                continue
            ranges = [range(n + 1) for n in numbers.values()]
            choices.append(
                [Counter(dict(zip(numbers, part, strict=True))) for part in product(*ranges)]
            )
        for chosen in product(*choices):
            total = Counter(start)
            for part in chosen:
                total.update(part)
            if not constraint.holds(total):
                return False
        return True


def _variables(node: PatternNode) -> Iterator[str]:
    for each in nodes_of(node):
        for operand in (each.test, *(c.operand for c in each.comparisons)):
            if isinstance(operand, Variable):
                yield operand.name


def _column(variable: str) -> str:
    """The column of a variable; a variable that stands for a label has the column's name."""
    return variable if variable.endswith(".label") else f"${variable}"


def _with_labels(node: PatternNode) -> PatternNode:
    """The node with a variable `t.label` at each node named t, so that a row can fix it."""
    branches = tuple(
        _with_labels(branch) if isinstance(branch, PatternNode) else branch
        for branch in node.branches
    )
    if node.name is not None and node.axis is not Axis.ATTRIBUTE:
        label = PatternNode(Axis.SELF, Variable(f"{node.name}.label"))
        branches = (*branches, label)
    return replace(node, branches=branches)


def typed_scenarios(tree: Tree, pattern: Pattern) -> TypedScenarios | None:
    """The type checker for a pattern's scenarios; None for a document without types."""
    if tree.types is None:
        return None
    return TypedScenarios(tree, pattern, tree.types)
