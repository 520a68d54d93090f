"""Pending update lists: operations that are applied together, in the order of the recommendation.

Snapshot semantics (docs/meaning.md; XQuery Update Facility 3.2.2): all targets are nodes of the
document before the update. Names and values change first, then come insertions, replacements and
deletions; then adjacent texts are merged. The list is first tried on a plan beside the columns.
All errors are raised there, so `commit` cannot fail half way and a list is applied whole or not at
all. New nodes are built before, without a parent. No id of a removed node is given again in the
same update.

    plan = planned(tree, operations, time)   # raises, or knows the delta
    watcher.before(plan.delta)               # removed subtrees still in place
    plan.commit()
    watcher.after(plan.delta)                # added subtrees in place

The recommendation leaves the order of several insertions at one place open. Here each is inserted
as near to its target as possible: of two insertions `after` a node the later one comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from axlog.document.bulk_columns import gathered, leave, release
from axlog.document.bulk_operations import plan_of
from axlog.document.content_checks import check_name, check_text, instruction_text
from axlog.document.delta import Changed, Delta, Planned, Watcher
from axlog.document.loader import graft
from axlog.document.message_insertion import insertion_of
from axlog.document.operations import (
    Attribute,
    Content,
    Delete,
    Insert,
    Operation,
    Rename,
    ReplaceNode,
    ReplaceValue,
    Where,
    checked_time,
)
from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.document.planned_links import Chains
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
from axlog.document.value_index import ValueIndex
from axlog.errors import StreamError, UpdateError

_INSIDE = (Where.INTO, Where.FIRST, Where.LAST)


def apply(
    tree: Tree,
    operations: Sequence[Operation],
    time: int | None = None,
    watchers: Iterable[Watcher] = (),
    *,
    limits: Limits = DEFAULT_LIMITS,
    keep_whitespace: bool = False,
) -> Delta:
    """Apply a pending update list and return its delta, or raise and leave the tree unchanged."""
    plan = planned(tree, operations, time, limits=limits, keep_whitespace=keep_whitespace)
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


def commit(plan: Planned, index: ValueIndex) -> None:
    """Commit a plan; the value index of its tree follows."""
    index.before(plan.delta)
    plan.commit()
    index.after(plan.delta)


def planned(
    tree: Tree,
    operations: Sequence[Operation],
    time: int | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    keep_whitespace: bool = False,
) -> Planned:
    """Plan a pending update list; in bulk if it does one thing at many places or is a message."""
    now = tree.clock if time is None else checked_time(tree, time)
    message = insertion_of(tree, operations, now, limits, keep_whitespace)
    if message is not None:
        return message
    alike = plan_of(tree, operations, now, limits, keep_whitespace)
    if alike is not None:
        return alike
    return Plan(tree, operations, time, limits=limits, keep_whitespace=keep_whitespace)


class Plan:
    """A pending update list, simulated beside the columns: its delta, and its commit."""

    def __init__(
        self,
        tree: Tree,
        operations: Sequence[Operation],
        time: int | None = None,
        *,
        limits: Limits = DEFAULT_LIMITS,
        keep_whitespace: bool = False,
    ) -> None:
        self.tree = tree
        self.time = tree.clock if time is None else checked_time(tree, time)
        self._limits = limits
        self._keep_whitespace = keep_whitespace
        self._chains = Chains(tree)
        self._new: list[int] = []  # roots built for this plan
        self._renamed: dict[int, str] = {}
        self._revalued: dict[int, str] = {}
        self._retargeted: set[int] = set()  # instructions that get a new name and keep their data
        self._emptied: list[int] = []  # texts that lose their last character
        self._brought: dict[str, int] = {}
        self._keyed: list[tuple[str, str, int]] = []  # stream, key, root of its message
        self._calls_before = len(tree.calls_by_node)
        self.delta = Delta(tree, self.time)
        try:
            self._check_targets(operations)
            self._simulate(operations)
            self._check_attributes()
            self._merge_texts()
            self._compute_delta()
            self._check_result()
        except BaseException:
            self.abandon()
            raise

    # Checks -------------------------------------------------------------------------------------

    def _check_targets(self, operations: Sequence[Operation]) -> None:
        codes = {Rename: "XUDY0015", ReplaceNode: "XUDY0016", ReplaceValue: "XUDY0017"}
        seen: set[tuple[type, int]] = set()
        for operation in operations:
            target = operation.target
            if not self.tree.is_alive(target):
                raise UpdateError("AX301", "the target of an update is not in the document")
            is_inside = isinstance(operation, Insert) and operation.where in _INSIDE
            if target == DOCUMENT_NODE and not is_inside:
                raise UpdateError("AX302", "the document itself only accepts content")
            kind = type(operation)
            if kind in codes:
                target = self._owner(operation)
                if (kind, target) in seen:
                    where = self.tree.path(target)
                    raise UpdateError(codes[kind], f"{where} is the target of two such updates")
                seen.add((kind, target))
            elif self._owner(operation) != target:
                raise self._refused(
                    target, "the value of an attribute cannot be removed without it"
                )

    def _owner(self, operation: Operation) -> int:
        """The target, or the attribute whose value it is."""
        target = operation.target
        parent = self.tree.parent_column[target]
        if parent == NONE or self.tree.kind_column[parent] != ATTRIBUTE:
            return target
        if not isinstance(operation, ReplaceValue):
            raise self._refused(target, "the value of an attribute cannot be removed without it")
        return parent

    def _refused(self, target: int, why: str) -> UpdateError:
        return UpdateError("AX302", f"{self.tree.path(target)}: {why}")

    def _simulate(self, operations: Sequence[Operation]) -> None:
        """The order of upd:applyUpdates: each step sees the result of the steps before it."""
        inserts = [op for op in operations if isinstance(op, Insert)]
        values = [op for op in operations if isinstance(op, ReplaceValue)]
        of_elements = [op for op in values if self.tree.kind_column[op.target] == ELEMENT]
        for insert in inserts:
            if insert.where is Where.INTO:
                self._insert(insert)
        for rename in (op for op in operations if isinstance(op, Rename)):
            self._rename(rename)
        for value in values:
            if self.tree.kind_column[value.target] != ELEMENT:
                self._replace_value(value)
        for insert in inserts:
            if insert.where is not Where.INTO:
                self._insert(insert)
        for replace in (op for op in operations if isinstance(op, ReplaceNode)):
            self._replace_node(replace)
        for value in of_elements:
            self._replace_content(value)
        deleted = [op.target for op in operations if isinstance(op, Delete)]
        for target in (*self._emptied, *deleted):
            self._chains.detach(target)

    # One operation each -------------------------------------------------------------------------

    def _insert(self, op: Insert) -> None:
        tree, target, chains = self.tree, op.target, self._chains
        kind = tree.kind_column[target]
        inside = op.where in _INSIDE
        if inside and kind not in (ELEMENT, NodeKind.DOCUMENT):
            raise self._refused(target, "it is not an element and cannot have content")
        if not inside and kind == ATTRIBUTE:
            raise self._refused(target, "nothing can be inserted before or after an attribute")
        parent = target if inside else tree.parent_column[target]
        attributes, nodes = self._build(op.content, parent)
        if attributes and parent == DOCUMENT_NODE:
            raise UpdateError("AX303", "an attribute cannot be beside the root element")
        for node in attributes:
            chains.link(parent, node, chains.last_attribute(parent))
        if op.where is Where.FIRST:
            after = chains.last_attribute(parent)
        elif inside:
            after = chains.previous(parent, NONE)
        else:
            after = target if op.where is Where.AFTER else chains.previous(parent, target)
        if op.replaced != NONE:
            (node,) = nodes
            chains.replace(op.replaced, node)
        else:
            for node in nodes:
                chains.link(parent, node, after)
                after = node
        if op.stream is not None and op.key is not None:
            self._keyed.append((op.stream, op.key, nodes[0]))
        if op.stream is not None:
            trees = sum(tree.kind_column[node] == ELEMENT for node in nodes)
            self._brought[op.stream] = self._brought.get(op.stream, 0) + trees

    def _rename(self, op: Rename) -> None:
        tree, target = self.tree, op.target
        kind = tree.kind_column[target]
        if kind not in (ELEMENT, ATTRIBUTE, NodeKind.INSTRUCTION):
            raise self._refused(target, "it has no name to change")
        if op.label == CALL_LABEL:
            raise self._refused(target, "it cannot be renamed to a call; insert the call")
        check_name(op.label, self._limits, kind == ATTRIBUTE)
        if kind == NodeKind.INSTRUCTION:
            if op.label.startswith("{") or op.label.lower() == "xml":
                raise UpdateError("AX303", f"{op.label!r} is not the name of an instruction")
            self._retargeted.add(target)
            self._revalued[target] = instruction_text(op.label, tree.string_value(target))
        else:
            self._renamed[target] = f"@{op.label}" if kind == ATTRIBUTE else op.label

    def _replace_value(self, op: ReplaceValue) -> None:
        tree = self.tree
        target = self._owner(op)
        kind = tree.kind_column[target]
        if kind == CALL:
            raise self._refused(target, "it is a call and has no value")
        check_text(op.value, self._limits, kind)
        if kind == TEXT and not op.value:
            self._emptied.append(target)
        elif kind == ATTRIBUTE:
            self._revalued[tree.first_column[target]] = op.value
        elif kind == NodeKind.INSTRUCTION:
            name = self._revalued.get(target, tree.text(target)).partition(" ")[0]
            self._revalued[target] = instruction_text(name, op.value)
            self._retargeted.discard(target)
        else:
            self._revalued[target] = op.value

    def _replace_node(self, op: ReplaceNode) -> None:
        tree, target = self.tree, op.target
        parent = tree.parent_column[target]
        attributes, nodes = self._build(op.content, parent)
        is_attribute = tree.kind_column[target] == ATTRIBUTE
        if (nodes and is_attribute) or (attributes and not is_attribute):
            raise UpdateError(
                "AX303",
                "only attributes can replace an attribute, and only other nodes the other nodes",
            )
        after = self._chains.previous(parent, target)
        for node in attributes or nodes:
            self._chains.link(parent, node, after)
            after = node
        self._chains.detach(target)

    def _replace_content(self, op: ReplaceValue) -> None:
        target, chains = op.target, self._chains
        old = [n for n in chains.planned(target) if self.tree.kind_column[n] != ATTRIBUTE]
        for node in self._build((op.value,), target)[1]:
            chains.link(target, node, chains.previous(target, NONE))
        for node in old:
            chains.detach(node)

    # New nodes ----------------------------------------------------------------------------------

    def _build(self, content: Content, parent: int) -> tuple[list[int], list[int]]:
        """Build the nodes of content, without a parent: attributes, and the others."""
        attributes, nodes = list[int](), list[int]()
        above = -1
        for item in content:
            if isinstance(item, Attribute):
                attributes.append(self._build_attribute(item))
            elif isinstance(item, str):
                check_text(item, self._limits)
                if item:
                    nodes.append(self.tree._new_text(TEXT, item, self.time))
                    self._new.append(nodes[-1])
            else:
                if above < 0:
                    above = sum(1 for _ in self.tree.ancestors(parent))
                built = graft(
                    self.tree, [item], self.time,
                    limits=self._limits, keep_whitespace=self._keep_whitespace, above=above,
                )  # fmt: skip
                nodes += built
                self._new += built
                self.delta.copies.setdefault(id(item), []).extend(built)
        return attributes, nodes

    def _build_attribute(self, item: Attribute) -> int:
        check_name(item.name, self._limits, True)
        check_text(item.value, self._limits)
        node = self.tree._new_named(ATTRIBUTE, f"@{item.name}", self.time)
        self.tree._append(node, self.tree._new_text(TEXT, item.value, self.time))
        self._new.append(node)
        return node

    # Afterwards ---------------------------------------------------------------------------------

    def _merge_texts(self) -> None:
        """Replace texts that the plan made adjacent by one new text."""
        chains, kinds = self._chains, self.tree.kind_column
        for parent in chains.parents():
            for node in chains.touched(parent):
                if kinds[node] != TEXT or node in chains.gone:
                    continue
                run = self._run_of_texts(parent, node)
                if len(run) > 1:
                    text = "".join(self._revalued.get(n) or self.tree.text(n) for n in run)
                    check_text(text, self._limits)
                    merged = self.tree._new_text(TEXT, text, self.time)
                    self._new.append(merged)
                    chains.link(parent, merged, chains.previous(parent, run[0]))
                    for old in run:
                        chains.detach(old)

    def _run_of_texts(self, parent: int, node: int) -> list[int]:
        kinds, chains = self.tree.kind_column, self._chains
        while (left := chains.previous(parent, node)) != NONE and kinds[left] == TEXT:
            node = left
        run = [node]
        while (right := chains.following(parent, run[-1])) != NONE and kinds[right] == TEXT:
            run.append(right)
        return run

    def _compute_delta(self) -> None:
        """Compute the delta; changes inside removed nodes do not count."""
        tree, delta, gone = self.tree, self.delta, self._chains.gone
        new = set(self._new)
        if gone:
            for parent in self._chains.parents():
                if self._is_removed(parent):
                    self._chains.forget(parent)
            lost = {
                node for node in new if node in gone or self._is_removed(tree.parent_column[node])
            }
            self._new = [node for node in self._new if node not in lost]
            for node in lost:
                tree._release(node)
            delta.removed = [
                node
                for node in sorted(gone - new)
                if not self._is_removed(tree.parent_column[node])
            ]
            delta.nodes_removed, delta.labels_removed = gathered(tree, delta.removed)
        delta.added = list(self._new)
        self._compute_changes()

    def _compute_changes(self) -> None:
        tree, delta, now = self.tree, self.delta, self.time
        for node, text in self._revalued.items():
            time = tree.time_column[node]
            new_time = time if node in self._retargeted else now  # the same text set again is newer
            if not self._is_removed(node) and (time != new_time or tree.text(node) != text):
                delta.changed.append(Changed(node, tree.text(node), text, time, new_time))
        for node, label in self._renamed.items():
            if not self._is_removed(node) and tree.label(node) != label:
                time = tree.time_column[node]
                delta.changed.append(Changed(node, tree.label(node), label, time, time))

    def _is_removed(self, node: int) -> bool:
        """Whether a node is removed, or is below a removed one."""
        gone, parent = self._chains.gone, self.tree.parent_column
        if not gone:
            return False
        while node != NONE:
            if node in gone:
                return True
            node = parent[node]
        return False

    # Checks of the result -----------------------------------------------------------------------

    def _check_result(self) -> None:
        self._check_root()
        self._check_calls()

    def _check_root(self) -> None:
        if not self._chains.changes(DOCUMENT_NODE):
            return
        kinds = [self.tree.kind_column[node] for node in self._chains.planned(DOCUMENT_NODE)]
        if kinds and (kinds.count(ELEMENT) != 1 or TEXT in kinds or CALL in kinds):
            raise UpdateError(
                "XUDY0021",
                "the document would not have one root element",
                advice="replace the root with one element, or change the nodes below it",
            )

    def _check_attributes(self) -> None:
        """Refuse two attributes of one name, also in removed elements (applyUpdates-023)."""
        tree = self.tree
        touched = {tree.parent_column[n] for n in self._new if tree.kind_column[n] == ATTRIBUTE}
        touched |= {
            tree.parent_column[n] for n in self._renamed if tree.kind_column[n] == ATTRIBUTE
        }
        for parent in touched:
            labels: set[str] = set()
            for node in self._chains.planned(parent):
                if tree.kind_column[node] != ATTRIBUTE:
                    break
                label = self._renamed.get(node, tree.label(node))
                if label in labels:
                    raise UpdateError(
                        "XUDY0021", f"{tree.path(parent)} would have two attributes {label[1:]}"
                    )
                labels.add(label)

    def _check_calls(self) -> None:
        tree, delta = self.tree, self.delta
        if tree.calls_by_stream:
            delta.closed = self._streams_below(delta.removed)
        if len(tree.calls_by_node) == self._calls_before:
            return  # the plan built no calls
        delta.opened = self._streams_below(delta.added)
        taken = set(tree.calls_by_stream) - set(delta.closed)
        for stream in delta.opened:
            if stream in taken:
                raise StreamError(
                    "AX403",
                    f"the stream {stream!r} already has a call",
                    advice="a stream has one call: give the new call another stream",
                )
            taken.add(stream)

    def _streams_below(self, roots: list[int]) -> list[str]:
        tree = self.tree
        return [
            tree.call(node).stream
            for root in roots
            for node in tree.subtree(root)
            if tree.kind_column[node] == CALL
        ]

    # Commit -------------------------------------------------------------------------------------

    def abandon(self) -> None:
        """Free the new nodes; the tree is unchanged."""
        for node in self._new:
            if self.tree.kind_column[node] != NodeKind.FREE:
                self.tree._release(node)

    def commit(self) -> None:
        """Write the plan into the columns. Everything was checked before: this cannot fail."""
        tree, delta = self.tree, self.delta
        release(tree, tree._dying)
        if delta.nodes_removed is not None:
            tree._size -= len(delta.nodes_removed)
            leave(tree, delta.nodes_removed, delta.labels_removed)
        else:
            for root in delta.removed:
                for node in tree.subtree(root):
                    tree._leave(node)
                    tree._size -= 1
        tree._close_streams(delta.closed)
        tree._forget_messages(delta.removed)
        for change in delta.changed:
            self._commit_change(change)
        self._chains.write()
        for root in delta.removed:
            tree.parent_column[root] = NONE
        called = 0
        for root in delta.added:
            tree._place_at(root, self._chains.components[root])
            for node in tree.subtree(root):
                tree._enter(node)
                tree._size += 1
                if tree.kind_column[node] == CALL:
                    call = tree.call(node)
                    tree.calls_by_stream[call.stream] = node
                    called += 1 + call.calls
        for stream, count in self._brought.items():
            if stream in tree.calls_by_stream:
                tree.brought[stream] = tree.brought.get(stream, 0) + count
            if called:
                tree.called[stream] = tree.called.get(stream, 0) + called
        for stream, key, root in self._keyed:
            if stream in tree.calls_by_stream:
                tree._record_message(stream, key, root)
        tree.ended -= set(delta.opened)
        tree.clock = self.time
        tree._dying = list(delta.removed)
        tree.version += 1

    def _commit_change(self, change: Changed) -> None:
        tree, node = self.tree, change.node
        if tree.kind_column[node] in (ELEMENT, ATTRIBUTE):
            tree._leave(node)
            tree.label_column[node] = tree._name(change.new)
            tree._enter(node)
        else:
            tree.label_column[node] = NONE
            tree.texts_by_node[node] = change.new
        tree.time_column[node] = change.new_time
