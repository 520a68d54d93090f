"""Which scenarios the types of a document and its services allow (P2 4, theorems 3 and 4).

A scenario asks streams for sub-patterns. Under types it can be met if the sub-patterns that one
stream is asked for can be put into trees of its service's type, and the calls of each node can
bring those trees by valid steps (`type_steps`). Types ask about the children of one node, so each
node with calls is decided on its own; what ties nodes together are the values that sub-patterns
share, which are tried one by one (`typing.Question`).

Asking less is never harder, so scenarios that another dominates stay dominated. Exact, with the
limits of `typing`.

Times and types together are decided where no order of arrival breaks a type; where some order does,
whether times allow the others is refused: theorem 6 is about times without types.
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
from axlog.future.requirements import Asking, Slot, Subject, share_out
from axlog.future.type_steps import Caller, reach
from axlog.future.type_trees import Place, Trees, may_hold_calls
from axlog.future.typed_document import callers_of
from axlog.future.typed_truth import LIMIT, Question
from axlog.future.typed_values import spelled_out
from axlog.query.pattern import (
    Axis,
    Pattern,
    PatternNode,
    TimeConstraint,
    Variable,
    nodes_of,
)

Asked = Mapping[str, tuple[PatternNode, ...]]
"""What each stream must bring, as branches below its call's parent."""

Numbers = Counter[str]
"""How many trees with which root."""


class TypedScenarios:
    """What calls may bring to a document under its types, for the scenarios of one pattern."""

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
        """Whether some valid future brings everything that a scenario asks for."""
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
        key = (need.brought, frozenset(bindings.items()), is_timed)
        if key not in self._known:
            sorted_asked = {s: tuple(sorted(asked[s], key=str)) for s in sorted(asked)}
            self._known[key] = self._can_come(sorted_asked, bindings, is_timed)
        return self._known[key]

    def _check_times(self, asked: Mapping[str, list[PatternNode]]) -> None:
        """Refuse where times say how trees are shared out, or when calls inside them bring more."""
        for stream, nodes in asked.items():
            call = self.tree.call(self.tree.calls()[stream])
            left = None if call.most is None else call.most - self.tree.brought.get(stream, 0)
            named = [sum(each.name is not None for each in nodes_of(node)) for node in nodes]
            if (left is not None and left < len(nodes)) or (
                self._may_hold_calls and max(named) > 1
            ):
                raise UndecidedError(
                    "AX503", f"times in what {stream!r} may bring, under types: not covered"
                )

    def _below_call(self, node: PatternNode) -> PatternNode:
        """A sub-pattern as a branch of the call's parent, labels of named nodes as variables."""
        if node not in self._nodes:
            axis = Axis.CHILD if node.axis is Axis.CHILD else Axis.DESCENDANT
            self._nodes[node] = _with_labels(
                spelled_out(replace(node, axis=axis), self.schema, self.tree)
            )
        return self._nodes[node]

    def _can_come(self, asked: Asked, bindings: dict[str, str], is_timed: bool) -> bool:
        branches = tuple(node for nodes in asked.values() for node in nodes)
        question = Question(branches, self._where, self.schema, bindings, self._limit)

        def ask(asking: Asking) -> bool | None:
            return self._with(asking, asked, is_timed) or None

        return question.answer(ask, {}) is not None

    def _with(self, asking: Asking, asked: Asked, is_timed: bool) -> bool:
        """Whether every node's calls can bring what is asked of them, with values bound."""
        trees = Trees(self.schema, asking, self._may_hold_calls)
        by_parent: dict[int, list[str]] = {}
        calls = self.tree.calls()
        for stream in asked:
            by_parent.setdefault(self.tree.parent(calls[stream]), []).append(stream)
        for parent, streams in by_parent.items():
            ways = [list(self._ways(trees, stream, asked[stream])) for stream in streams]
            callers = [
                replace(caller, source=caller.name)
                for caller in callers_of(self.tree, trees, parent)
            ]
            constraint = trees.constraint(self.tree.label(parent))
            numbers = self.schema.document.count(self.tree, parent)
            goals = [dict(zip(streams, chosen, strict=True)) for chosen in product(*ways)]
            if not any(
                self._arrive(constraint, numbers, callers, goal, is_timed) for goal in goals
            ):
                return False
        return True

    def _ways(self, trees: Trees, stream: str, wants: tuple[PatternNode, ...]) -> Iterator[Numbers]:
        """The numbers of trees by which a stream can bring everything it is asked for."""
        call = self.tree.call(self.tree.calls()[stream])
        service = call.service or call.stream
        roots = trees.roots(service)
        slots = [Slot(Subject(NodeKind.ELEMENT, label), service) for label in roots]
        seen: set[frozenset[tuple[str, int]]] = set()
        for groups in share_out(wants, slots, trees.ways, trees.asking.count):
            numbers = Counter(slot.subject.label for slot, _ in groups)
            key = frozenset(numbers.items())
            if key not in seen and all(
                trees.can_fill(Place(service, slot.subject.label, wanted))
                for slot, wanted in groups
            ):
                seen.add(key)
                yield numbers

    def _arrive(
        self,
        constraint: Constraint,
        start: Mapping[str, int],
        callers: list[Caller],
        goal: Mapping[str, Numbers],
        is_timed: bool,
    ) -> bool:
        """Whether the calls of one node can bring so many trees."""
        wanted = {(s, label): n for s, numbers in goal.items() for label, n in numbers.items()}
        if reach(constraint, start, callers, wanted) is None:
            return False
        if is_timed and not self._in_any_order(constraint, start, callers, goal):
            raise UndecidedError(
                "AX503",
                "the types ask for an order of arrival, and so do the times: no theorem of P2"
                " decides both",
                advice="ask without the time constraint, or without the types",
            )
        return True

    def _in_any_order(
        self,
        constraint: Constraint,
        start: Mapping[str, int],
        callers: list[Caller],
        goal: Mapping[str, Numbers],
    ) -> bool:
        """Whether every part of what is to come is allowed on the way, and nothing else needed."""
        modes = {caller.name: caller for caller in callers}
        choices: list[list[Numbers]] = []
        for stream, numbers in goal.items():
            if True in modes[stream].goes:  # one message, and the call is gone with it
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
    """The column of a variable; those that stand for labels are called by theirs."""
    return variable if variable.endswith(".label") else f"${variable}"


def _with_labels(node: PatternNode) -> PatternNode:
    """The node with `t.label` as a variable at each node called t: a row may ask for it."""
    branches = tuple(
        _with_labels(branch) if isinstance(branch, PatternNode) else branch
        for branch in node.branches
    )
    if node.name is not None and node.axis is not Axis.ATTRIBUTE:
        label = PatternNode(Axis.SELF, Variable(f"{node.name}.label"))
        branches = (*branches, label)
    return replace(node, branches=branches)


def typed_scenarios(tree: Tree, pattern: Pattern) -> TypedScenarios | None:
    """What a document's types allow of a pattern's scenarios; None for one without types."""
    if tree.types is None:
        return None
    for stream, node in tree.calls().items():
        if tree.call(node).deletes == "yes":
            raise UndecidedError(
                "AX503",
                f"types where the stream {stream!r} may delete: deletions make room for what a type"
                " forbids now (P2 theorem 5), and that is not searched",
            )
    return TypedScenarios(tree, pattern, tree.types)
