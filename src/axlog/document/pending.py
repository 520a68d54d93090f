"""Pending update lists: operations carried out together, in the recommendation's order, or not at all.

Snapshot semantics (DESIGN section 3, XQuery Update Facility 3.2.2): all targets are nodes of the
document as it was; names and values first, then insertions, replacements, deletions; then adjacent
texts are merged. The list is first tried on a plan beside the columns; whatever is wrong is raised
from there, so `commit` cannot fail half way. Nodes to come are built before, hanging nowhere.

    plan = Plan(tree, operations, time)      # raises, or knows the delta
    watcher.before(plan.delta)               # removed subtrees still in place
    plan.commit()
    watcher.after(plan.delta)                # added subtrees in place
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from axlog.document import ids
from axlog.document.delta import Changed, Delta
from axlog.document.reading import DEFAULT_LIMITS, Limits
from axlog.document.tree import (
    ATTRIBUTE,
    CALL,
    CALL_LABEL,
    DOCUMENT_NODE,
    ELEMENT,
    NONE,
    TEXT,
    NodeKind,
    Tree,
)
from axlog.document.updates import (
    Attribute,
    Content,
    Delete,
    Insert,
    Operation,
    Rename,
    ReplaceNode,
    ReplaceValue,
    Where,
)
from axlog.document.xml import graft
from axlog.errors import LateError, StreamError, UpdateError


class Watcher(Protocol):
    """Something that follows a document: a maintainer, an index."""

    def before(self, delta: Delta) -> None: ...

    def after(self, delta: Delta) -> None: ...


def apply(
    tree: Tree,
    operations: Sequence[Operation],
    time: int | None = None,
    watchers: Iterable[Watcher] = (),
    *,
    limits: Limits = DEFAULT_LIMITS,
    keep_whitespace: bool = False,
) -> Delta:
    """Carry out a pending update list and return its delta, or raise and leave the tree alone."""
    plan = Plan(tree, operations, time, limits=limits, keep_whitespace=keep_whitespace)
    watchers = list(watchers)
    try:
        for watcher in watchers:
            watcher.before(plan.delta)
    except BaseException:
        plan.abandon()
        raise
    plan.commit()
    for watcher in watchers:
        watcher.after(plan.delta)
    return plan.delta


class _Chain:
    """Links of one parent's chain that the plan changes; the rest is in the columns."""

    __slots__ = ("first", "last", "next", "prev")

    def __init__(self, tree: Tree, parent: int) -> None:
        self.first = tree._first[parent]
        self.last = tree._last[parent]
        self.next: dict[int, int] = {}
        self.prev: dict[int, int] = {}


class Plan:
    """A pending update list worked out on the side: its delta, and how to make it true."""

    def __init__(
        self,
        tree: Tree,
        operations: Sequence[Operation],
        time: int | None = None,
        *,
        limits: Limits = DEFAULT_LIMITS,
        keep_whitespace: bool = False,
    ) -> None:
        for dead in tree._dying:
            tree._release(dead)
        tree._dying = []
        self.tree = tree
        self.time = tree.clock if time is None else time
        if self.time < tree.clock:
            raise LateError(
                "AX404",
                f"time {self.time / 1e6:g} s lies before the document's clock {tree.clock / 1e6:g} s",
                advice="times never go back within a document",
            )
        self._limits = limits
        self._keep_whitespace = keep_whitespace
        self._chains: dict[int, _Chain] = {}
        self._new: list[int] = []  # roots built for this plan
        self._gone: set[int] = set()
        self._component: dict[int, ids.Component] = {}
        self._renamed: dict[int, str] = {}
        self._revalued: dict[int, str] = {}
        self._emptied: list[int] = []  # texts that lose their last character
        self._brought: dict[str, int] = {}
        self.delta = Delta(tree, self.time)
        try:
            self._check_targets(operations)
            self._simulate(operations)
            self._merge_texts()
            self._settle()
            self._check_result()
        except BaseException:
            self.abandon()
            raise

    # Before anything moves --------------------------------------------------------------------

    def _check_targets(self, operations: Sequence[Operation]) -> None:
        seen: set[tuple[type, int]] = set()
        codes = {Rename: "XUDY0015", ReplaceNode: "XUDY0016", ReplaceValue: "XUDY0017"}
        for operation in operations:
            target = operation.target
            if not self.tree.is_alive(target) or target == DOCUMENT_NODE:
                raise UpdateError("AX301", "the target of an update is not in the document")
            kind = type(operation)
            if kind in codes:
                if (kind, target) in seen:
                    where = self.tree.path(target)
                    raise UpdateError(codes[kind], f"{where} is the target of two such updates")
                seen.add((kind, target))

    def _simulate(self, operations: Sequence[Operation]) -> None:
        """The order of upd:applyUpdates: each step sees what the steps before it left."""
        inserts = [op for op in operations if isinstance(op, Insert)]
        for op in inserts:
            if op.where is Where.INTO:
                self._insert(op)
        for op in operations:
            if isinstance(op, Rename):
                self._rename(op)
            elif isinstance(op, ReplaceValue) and self.tree._kind[op.target] != ELEMENT:
                self._replace_value(op)
        for op in inserts:
            if op.where is not Where.INTO:
                self._insert(op)
        for op in operations:
            if isinstance(op, ReplaceNode):
                self._replace_node(op)
        for op in operations:
            if isinstance(op, ReplaceValue) and self.tree._kind[op.target] == ELEMENT:
                self._replace_content(op)
        for target in self._emptied:
            self._detach(target)
        for op in operations:
            if isinstance(op, Delete):
                self._detach(op.target)

    # One operation each -------------------------------------------------------------------------

    def _insert(self, op: Insert) -> None:
        tree, target = self.tree, op.target
        kind = tree._kind[target]
        inside = op.where in (Where.INTO, Where.FIRST, Where.LAST)
        if inside and kind != ELEMENT:
            raise UpdateError(
                "AX302", f"{tree.path(target)} is not an element and takes no content"
            )
        if not inside and kind == ATTRIBUTE:
            raise UpdateError("AX302", f"nothing goes before or after {tree.path(target)}")
        parent = target if inside else tree._parent[target]
        attributes, nodes = self._build(op.content)
        if attributes and parent == DOCUMENT_NODE:
            raise UpdateError("AX303", "an attribute cannot stand beside the root element")
        for node in attributes:
            self._link(parent, node, self._last_attribute(parent))
        if op.where is Where.FIRST:
            after = self._last_attribute(parent)
        elif inside:
            after = self._chain(parent).last
        else:
            after = target if op.where is Where.AFTER else self._previous(parent, target)
        for node in nodes:
            self._link(parent, node, after)
            after = node
        call = tree._call_at.get(target)
        if call is not None and op.where is Where.BEFORE:
            trees = sum(tree._kind[node] == ELEMENT for node in nodes)
            self._brought[call.stream] = self._brought.get(call.stream, 0) + trees

    def _rename(self, op: Rename) -> None:
        kind = self.tree._kind[op.target]
        if op.label == CALL_LABEL or kind not in (ELEMENT, ATTRIBUTE, NodeKind.INSTRUCTION):
            raise UpdateError("AX302", f"{self.tree.path(op.target)} cannot be renamed so")
        if kind == NodeKind.INSTRUCTION:
            _, _, data = self.tree.text(op.target).partition(" ")
            self._revalued[op.target] = f"{op.label} {data}".rstrip(" ")
        else:
            self._renamed[op.target] = f"@{op.label}" if kind == ATTRIBUTE else op.label

    def _replace_value(self, op: ReplaceValue) -> None:
        tree, target = self.tree, op.target
        kind = tree._kind[target]
        if kind == CALL:
            raise UpdateError("AX302", f"{tree.path(target)} is a call and has no value")
        if kind == TEXT and not op.value:
            self._emptied.append(target)
        elif kind == ATTRIBUTE:
            self._revalued[tree._first[target]] = op.value
        elif kind == NodeKind.INSTRUCTION:
            name = tree.text(target).partition(" ")[0]
            self._revalued[target] = f"{name} {op.value}".rstrip(" ")
        else:
            self._revalued[target] = op.value

    def _replace_node(self, op: ReplaceNode) -> None:
        tree, target = self.tree, op.target
        attributes, nodes = self._build(op.content)
        is_attribute = tree._kind[target] == ATTRIBUTE
        if (nodes and is_attribute) or (attributes and not is_attribute):
            raise UpdateError("AX303", "an attribute replaces attributes, other nodes the others")
        parent = tree._parent[target]
        after = self._previous(parent, target)
        for node in attributes or nodes:
            self._link(parent, node, after)
            after = node
        self._detach(target)

    def _replace_content(self, op: ReplaceValue) -> None:
        chain = self._chain(op.target)
        at = self._following(op.target, self._last_attribute(op.target))
        while at != NONE:
            following = chain.next.get(at, self.tree._next[at])
            self._detach(at)
            at = following
        if op.value:
            (node,) = self._build((op.value,))[1]
            self._link(op.target, node, self._last_attribute(op.target))

    # The plan's chains ----------------------------------------------------------------------------

    def _build(self, content: Content) -> tuple[list[int], list[int]]:
        """Nodes for content, hanging nowhere: attributes, and the rest."""
        attributes: list[int] = []
        nodes: list[int] = []
        for item in content:
            if isinstance(item, Attribute):
                attributes.append(self._build_attribute(item))
            elif isinstance(item, str):
                if item:
                    nodes.append(self.tree._new_text(TEXT, item, self.time))
                    self._new.append(nodes[-1])
            else:
                built = graft(
                    self.tree, [item], self.time,
                    limits=self._limits, keep_whitespace=self._keep_whitespace,
                )  # fmt: skip
                nodes += built
                self._new += built
        return attributes, nodes

    def _build_attribute(self, item: Attribute) -> int:
        node = self.tree._new_named(ATTRIBUTE, f"@{item.name}", self.time)
        self.tree._append(node, self.tree._new_text(TEXT, item.value, self.time))
        self._new.append(node)
        return node

    def _chain(self, parent: int) -> _Chain:
        chain = self._chains.get(parent)
        if chain is None:
            chain = self._chains[parent] = _Chain(self.tree, parent)
        return chain

    def _following(self, parent: int, node: int) -> int:
        """What follows a node in the plan; after NONE comes the first."""
        chain = self._chain(parent)
        return chain.first if node == NONE else chain.next.get(node, self.tree._next[node])

    def _previous(self, parent: int, node: int) -> int:
        return self._chain(parent).prev.get(node, self.tree._prev[node])

    def _last_attribute(self, parent: int) -> int:
        after, at = NONE, self._chain(parent).first
        while at != NONE and self.tree._kind[at] == ATTRIBUTE:
            after, at = at, self._following(parent, at)
        return after

    def _link(self, parent: int, node: int, after: int) -> None:
        """Hang a new node behind another (NONE: first), with a component of its own."""
        chain = self._chain(parent)
        following = self._following(parent, after)
        self.tree._parent[node] = parent
        self._component[node] = self._component_between(node, after, following)
        self._join(chain, after, node)
        self._join(chain, node, following)

    def _component_between(self, node: int, after: int, following: int) -> ids.Component:
        """Attributes and children have components of their own; a neighbour of the other sort is
        no neighbour."""
        is_attribute = self.tree._kind[node] == ATTRIBUTE
        low, high = (
            None
            if other == NONE or (self.tree._kind[other] == ATTRIBUTE) != is_attribute
            else self._component.get(other) or self.tree.component(other)
            for other in (after, following)
        )
        return ids.between(low, high)

    def _join(self, chain: _Chain, left: int, right: int) -> None:
        if left == NONE:
            chain.first = right
        else:
            chain.next[left] = right
        if right == NONE:
            chain.last = left
        else:
            chain.prev[right] = left

    def _detach(self, node: int) -> None:
        if node in self._gone:
            return
        self._gone.add(node)
        parent = self.tree._parent[node]
        chain = self._chain(parent)
        left, right = self._previous(parent, node), self._following(parent, node)
        self._join(chain, left, right)
        # What is linked beside a node that goes later still finds its place by it.
        chain.next.setdefault(node, right)
        chain.prev.setdefault(node, left)

    # Afterwards -----------------------------------------------------------------------------------

    def _merge_texts(self) -> None:
        """Where the plan brought texts together, one new text takes their place."""
        kinds = self.tree._kind
        for parent in list(self._chains):
            chain = self._chains[parent]
            for node in [chain.first, *chain.next]:
                if node == NONE or node in self._gone or kinds[node] != TEXT:
                    continue
                run = self._run_of_texts(parent, node)
                if len(run) > 1:
                    text = "".join(self._revalued.get(n) or self.tree.text(n) for n in run)
                    merged = self.tree._new_text(TEXT, text, self.time)
                    self._new.append(merged)
                    self._link(parent, merged, self._previous(parent, run[0]))
                    for old in run:
                        self._detach(old)

    def _run_of_texts(self, parent: int, node: int) -> list[int]:
        kinds = self.tree._kind
        run = [node]
        while (left := self._previous(parent, run[0])) != NONE and kinds[left] == TEXT:
            run.insert(0, left)
        while (right := self._following(parent, run[-1])) != NONE and kinds[right] == TEXT:
            run.append(right)
        return run

    def _settle(self) -> None:
        """What the plan comes to: what is inside something that goes does not count."""
        tree, delta, gone = self.tree, self.delta, self._gone
        new = set(self._new)
        for parent in list(self._chains):
            if self._is_lost(parent):
                del self._chains[parent]
        lost = [node for node in self._new if node in gone or self._is_lost(tree._parent[node])]
        delta.added = [node for node in self._new if node not in set(lost)] if lost else self._new
        delta.removed = [
            node for node in sorted(gone - new) if not self._is_lost(tree._parent[node])
        ]
        self._new = list(delta.added)
        for node in lost:
            tree._release(node)
        for node, new_text in self._revalued.items():
            if not self._is_lost(node) and tree.text(node) != new_text:
                delta.changed.append(
                    Changed(node, tree.text(node), new_text, tree._time[node], self.time)
                )
        for node, label in self._renamed.items():
            if not self._is_lost(node) and tree.label(node) != label:
                time = tree._time[node]
                delta.changed.append(Changed(node, tree.label(node), label, time, time))

    def _is_lost(self, node: int) -> bool:
        """Whether a node goes, or hangs below one that goes."""
        gone = self._gone
        if not gone:
            return False
        while node != NONE:
            if node in gone:
                return True
            node = self.tree._parent[node]
        return False

    def _check_result(self) -> None:
        self._check_root()
        self._check_attributes()
        self._check_calls()

    def _check_root(self) -> None:
        if DOCUMENT_NODE not in self._chains:
            return
        kinds = [self.tree._kind[node] for node in self._planned(DOCUMENT_NODE)]
        if kinds.count(ELEMENT) != 1 or TEXT in kinds or CALL in kinds:
            raise UpdateError(
                "XUDY0021",
                "the document would not have one root element",
                advice="replace the root by one element, or change what is below it",
            )

    def _planned(self, parent: int) -> list[int]:
        found = []
        at = self._following(parent, NONE)
        while at != NONE:
            found.append(at)
            at = self._following(parent, at)
        return found

    def _check_attributes(self) -> None:
        tree = self.tree
        touched = {tree._parent[n] for n in self._new if tree._kind[n] == ATTRIBUTE}
        touched |= {tree._parent[n] for n in self._renamed if tree._kind[n] == ATTRIBUTE}
        for parent in touched:
            if self._is_lost(parent):
                continue
            labels: set[str] = set()
            for node in self._planned(parent):
                if tree._kind[node] != ATTRIBUTE:
                    break
                label = self._renamed.get(node, tree.label(node))
                if label in labels:
                    raise UpdateError(
                        "XUDY0021", f"{tree.path(parent)} would have two attributes {label[1:]}"
                    )
                labels.add(label)

    def _check_calls(self) -> None:
        tree, delta = self.tree, self.delta
        if tree._call_at:
            delta.closed = [
                tree.call(node).stream
                for root in delta.removed
                for node in tree.subtree(root)
                if tree._kind[node] == CALL
            ]
        opened = [
            tree.call(node).stream
            for root in delta.added
            for node in tree.subtree(root)
            if tree._kind[node] == CALL
        ]
        taken = set(tree._calls) - set(delta.closed)
        for stream in opened:
            if stream in taken:
                raise StreamError("AX403", f"the stream {stream!r} already has a call")
            taken.add(stream)
        delta.opened = opened

    # Making it true -------------------------------------------------------------------------------

    def abandon(self) -> None:
        """Free what was built; the tree is as it was."""
        for node in self._new:
            if self.tree._kind[node] != NodeKind.FREE:
                self.tree._release(node)

    def commit(self) -> None:
        """Write the plan into the columns. Everything was checked: this cannot fail."""
        tree, delta = self.tree, self.delta
        for root in delta.removed:
            for node in tree.subtree(root):
                tree._leave(node)
        for stream in delta.closed:
            del tree._calls[stream]
            tree.brought.pop(stream, None)
            tree.ended.add(stream)
        for change in delta.changed:
            self._commit_change(change)
        for parent, chain in self._chains.items():
            self._commit_chain(parent, chain)
        for root in delta.removed:
            tree._parent[root] = NONE
        for root in delta.added:
            tree._place_at(root, self._component[root])
            for node in tree.subtree(root):
                tree._enter(node)
                if tree._kind[node] == CALL:
                    tree._calls[tree.call(node).stream] = node
        for stream, count in self._brought.items():
            if stream in tree._calls:
                tree.brought[stream] = tree.brought.get(stream, 0) + count
        tree.ended -= set(delta.opened)
        tree.clock = self.time
        tree._dying = list(delta.removed)

    def _commit_change(self, change: Changed) -> None:
        tree, node = self.tree, change.node
        if tree._kind[node] in (ELEMENT, ATTRIBUTE):
            tree._leave(node)
            tree._label[node] = tree._name(change.new)
            tree._enter(node)
        else:
            tree._label[node] = NONE
            tree._texts[node] = change.new
        tree._time[node] = change.new_time

    def _commit_chain(self, parent: int, chain: _Chain) -> None:
        tree, gone = self.tree, self._gone
        tree._first[parent], tree._last[parent] = chain.first, chain.last
        for node, following in chain.next.items():
            if node not in gone:
                tree._next[node] = following
        for node, previous in chain.prev.items():
            if node not in gone:
                tree._prev[node] = previous
