"""Whether valid messages can make a pattern hold in a document under types, and which messages.

The search goes top-down. Where no call may delete, a branch that holds at a node now holds in every
future. The other branches are distributed over the children that open calls can still change, and
the trees that the node's own calls may deliver. These must be trees of the service's type, in
numbers that valid steps can reach. Types constrain the children of one node, so each node is
decided on its own, once for each set of branches.

Where a call of the node may delete, children can be removed to make room, except those that the
row needs. So all branches are distributed, over all children that are present and those to come.

Exact for patterns without negation and times. Rejected (AX503): comparing the value of an element
above an open call, because more data may falsify it. (Paper 2, section 4, and theorem 5.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from axlog.document.schema import UnorderedDTD, service_kind
from axlog.document.tree import DOCUMENT_NODE, NodeKind, Tree
from axlog.errors import UndecidedError
from axlog.evaluate.node_tests import passes, reached
from axlog.evaluate.value_tests import comparison
from axlog.future.requirements import Group, Slot, Subject, Wants, is_attribute, share_out
from axlog.future.type_messages import Message, Writer
from axlog.future.type_steps import Caller, Removable, Step, reach
from axlog.future.type_trees import Place, Trees
from axlog.query.pattern import (
    Axis,
    Branch,
    Collect,
    Comparison,
    Not,
    Or,
    PatternNode,
    Variable,
)
from axlog.query.values import compare

Part = tuple[list[Step], list[Group], dict[Removable, list[list[int]]]]
"""The deliveries at one node: steps, conditions on the trees, and the children to delete."""


def callers_of(tree: Tree, trees: Trees, parent: int, silent: Collection[str] = ()) -> list[Caller]:
    """The open calls of a node that may still deliver data; those of `silent` streams do not."""
    found = []
    for stream, node in sorted(tree.calls().items()):
        call = tree.call(node)
        if tree.parent(node) == parent:
            service = service_kind(tree, node)[1:]
            room = None if call.most is None else call.most - tree.brought.get(stream, 0)
            goes = call.mode == "one-shot"
            is_silent = stream in silent
            roots = () if is_silent or call.deletes == "only" else trees.roots(service)
            deletes = call.deletes != "no" and not is_silent
            found.append(Caller(stream, service, roots, (goes,), room, deletes=deletes))
    return found


def removable_at(
    tree: Tree, type_: UnorderedDTD, parent: int, kept: Collection[int]
) -> dict[Removable, list[list[int]]]:
    """The children of a node that its calls may delete, in groups that go together.

    A pattern cannot tell children apart that are equal in content and times.
    """
    if all(tree.call(c).deletes == "no" for c in tree.calls().values() if tree.parent(c) == parent):
        return {}
    alike: dict[object, list[int]] = {}
    texts = 0
    for node in tree.children(parent):
        kind = tree.kind(node)
        texts += kind is NodeKind.TEXT
        if kind in (NodeKind.ELEMENT, NodeKind.TEXT):
            alike.setdefault(_content(tree, node), []).append(node)
    if texts > 1:
        raise UndecidedError(
            "AX503", f"deletions in {tree.path(parent)} may merge texts, which its type may count"
        )
    found: dict[tuple[str, int], list[list[int]]] = {}
    for nodes in alike.values():
        kind_of = type_.kind_of(tree, nodes[0])
        if kind_of is not None and not set(nodes) & set(kept):
            found.setdefault((kind_of, len(nodes)), []).append(nodes)
    return {Removable(k, size, len(groups)): groups for (k, size), groups in found.items()}


def _content(tree: Tree, node: int) -> object:
    """A key, equal for nodes that no pattern distinguishes when each is a document of its own."""
    below = tuple(_content(tree, each) for each in tree.chain(node))
    return tree.kind(node), tree.label(node), tree.time(node), below


class TypedDocument:
    """A document and the data that can be delivered to it, for one set of bindings."""

    def __init__(self, tree: Tree, trees: Trees, silent: Collection[str] = ()) -> None:
        """`silent`: streams that are taken to deliver nothing more."""
        self.tree = tree
        self.trees = trees
        self._silent = silent
        self.matcher = trees.matcher
        self._callers: dict[int, list[Caller]] = {}
        self._growing = {
            above for call in tree.calls().values() for above in (call, *tree.ancestors(call))
        }
        self._deleting = {
            tree.parent(call) for call in tree.calls().values() if tree.call(call).deletes != "no"
        }
        self._holding: dict[tuple[int, Branch], bool] = {}
        self._plans: dict[tuple[int, Wants], list[Part] | None] = {}

    def messages(self, branches: tuple[Branch, ...]) -> list[Message] | None:
        """Messages after which the branches hold; None if no valid messages achieve that."""
        plan = self._plan(DOCUMENT_NODE, frozenset(branches))
        if plan is None:
            return None
        streams = {stream: stream for stream in self.tree.calls()}
        writer = Writer(self.trees, {*streams, *self.tree.ended})
        found: list[Message] = []
        for steps, groups, removable in plan:
            for message, later in writer.messages(steps, groups, streams, removable):
                found += [message, *later]
        return found

    def holds(self, branches: tuple[Branch, ...]) -> bool:
        """Whether the branches hold now."""
        return all(self._holds(DOCUMENT_NODE, branch) for branch in branches)

    # Future

    def _plan(self, node: int, wants: Wants) -> list[Part] | None:
        key = (node, wants)
        if key not in self._plans:
            self._plans[key] = self._make_plan(node, wants)
        return self._plans[key]

    def _make_plan(self, node: int, wants: Wants) -> list[Part] | None:
        for reading in self.matcher.readings(tuple(wants), lambda p: self._passes(node, p)):
            missing = [want for want in reading if not self._holds(node, want)]
            if missing and node in self._deleting:
                missing = [want for want in reading if not is_attribute(want) or want in missing]
            found = self._plan_missing(node, missing)
            if found is not None:
                return found
        return None

    def _plan_missing(self, node: int, wants: list[Branch]) -> list[Part] | None:
        if not wants:
            return []
        if any(map(is_attribute, wants)):
            return None
        slots = list(self._slots(node))
        for groups in share_out(wants, slots, self._conditions, self.matcher.count):
            found = self._deliveries(node, groups)
            if found is not None:
                return found
        return None

    def _deliveries(self, node: int, groups: list[Group]) -> list[Part] | None:
        """The deliveries that satisfy every group; None if there are none."""
        parts: list[Part] = []
        goal: Counter[tuple[str, str]] = Counter()
        for slot, wants in groups:
            if slot.node is not None:
                below = self._plan(slot.node, wants)
                if below is None:
                    return None
                parts += below
            else:
                assert slot.service is not None
                if not self.trees.can_fill(Place(slot.service, slot.subject.label, wants)):
                    return None
                goal[slot.service, slot.subject.label] += 1
        if goal:
            constraint = self.trees.constraint(self.tree.label(node))
            numbers = self.trees.schema.document.count(self.tree, node)
            kept = {slot.node for slot, _ in groups if slot.node is not None}
            type_ = self.trees.schema.document
            removable = removable_at(self.tree, type_, node, kept)
            steps = reach(constraint, numbers, self._callers_at(node), goal, tuple(removable))
            if steps is None:
                return None
            parts.append((steps, groups, removable))
        return parts

    def _slots(self, node: int) -> Iterator[Slot]:
        """The children that can change or must stay, and those that can arrive."""
        is_open = node in self._deleting
        for child in self.tree.children(node):
            kind = self.tree.kind(child)
            if kind is NodeKind.ELEMENT and (is_open or child in self._growing):
                yield Slot(Subject(kind, self.tree.label(child)), None, child)
            elif kind is NodeKind.TEXT and is_open:
                yield Slot(Subject(kind, self.tree.text(child)), None, child)
        callers = self._callers_at(node)
        for service in sorted({caller.service for caller in callers if caller.roots}):
            for label in self.trees.roots(service):
                yield Slot(Subject(NodeKind.ELEMENT, label), service)

    def _callers_at(self, node: int) -> list[Caller]:
        if node not in self._callers:
            is_parent = node in self._growing
            callers = callers_of(self.tree, self.trees, node, self._silent) if is_parent else []
            self._callers[node] = callers
        return self._callers[node]

    def _conditions(self, want: PatternNode, slot: Slot) -> Iterator[Wants]:
        if slot.node is None:
            yield from self.trees.ways(want, slot)
            return
        if self._passes(slot.node, want):
            yield frozenset(want.branches)
        if want.axis is Axis.DESCENDANT:
            yield frozenset({want})

    # Present

    def _passes(self, node: int, asked: PatternNode) -> bool:
        """Whether an existing node passes a test and its comparisons."""
        if not passes(self.tree, node, asked.axis, asked.test):
            return False
        if isinstance(asked.test, Variable):
            label = self.tree.label(node)
            if self.matcher.bindings.get(asked.test.name, label) != label:
                return False
        return all(self._compares(node, c) for c in asked.comparisons)

    def _compares(self, node: int, asked: Comparison) -> bool:
        if self.matcher.is_free(asked):
            return True
        if node in self._growing:
            raise UndecidedError(
                "AX503", f"{asked} compares the value of an element above an open call"
            )
        value, operand = self.tree.string_value(node), asked.operand
        if isinstance(operand, Variable):
            bound = self.matcher.bindings.get(operand.name)
            return bound is None or compare(value, asked.operator, bound)
        return comparison(asked.operator, operand)(value)

    def _holds(self, node: int, want: Branch) -> bool:
        """Whether a branch holds at a node now."""
        key = (node, want)
        if key not in self._holding:
            self._holding[key] = self._is_met(node, want)
        return self._holding[key]

    def _is_met(self, node: int, want: Branch) -> bool:
        match want:
            case Or(alternatives=alternatives):
                return any(all(self._holds(node, w) for w in ways) for ways in alternatives)
            case Collect():
                return True
            case Not():
                raise UndecidedError("AX503", "`not` is not decided under types")
        return any(
            self._passes(below, want) and all(self._holds(below, w) for w in want.branches)
            for below in reached(self.tree, node, want.axis)
        )
