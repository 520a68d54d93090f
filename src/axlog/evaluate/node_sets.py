"""Patterns on many nodes at once: each pattern node is a set of handles, each edge a structural
join.

From a set of nodes (`contexts`) and a pattern node, `below` gives the nodes that match it: nodes
that pass its test, restricted to nodes below the contexts, then to nodes with the required values
and branches. A branch that only tests existence keeps the contexts from which it matches.

The nodes of a step are found in the cheapest of three ways:

- from the value index, if the step requires an indexed value
- by walking from the contexts (`node_tests`), if they are few and the axis is near
- by a scan of the label's partition and a structural join

Law: the sets equal those of the definition. There are no counts and no variables: sets suffice to
find nodes. (Algebraic semantics: paper 5, section 2.2.)
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice

import numpy as np

from axlog.document.tree import (
    ATTRIBUTE,
    COMMENT,
    DOCUMENT_NODE,
    ELEMENT,
    INSTRUCTION,
    NONE,
    TEXT,
    Tree,
)
from axlog.document.value_index import ValueIndex
from axlog.evaluate import node_tests
from axlog.evaluate.anchors import anchors_of
from axlog.evaluate.columns import FEW, NOTHING, Columns, Handles, Mask, handles
from axlog.evaluate.value_tests import comparison
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Collect,
    Comparison,
    Literal,
    Name,
    Not,
    Or,
    PartialName,
    PatternNode,
    Variable,
    Wildcard,
)

MOST_BYTES = 16
"""The first bytes of a value are compared for all texts at once, the rest text by text."""

_NEAR = frozenset({Axis.CHILD, Axis.ATTRIBUTE, Axis.SELF})
_ABOVE_ALL = frozenset({Axis.CHILD, Axis.DESCENDANT})


class NodeSets:
    """Evaluates branches on sets of nodes of one tree."""

    def __init__(self, columns: Columns, index: ValueIndex | None = None) -> None:
        self.columns = columns
        self.tree: Tree = columns.tree
        self.index = index

    # Matches of a pattern node ------------------------------------------------------------------

    def below(self, contexts: Handles, step: PatternNode) -> Handles:
        """The distinct nodes that match a pattern node from some context, in no order."""
        return self.qualified(self.reached(contexts, step), step)

    def attributes_below(self, contexts: Handles, step: PatternNode) -> Handles:
        """The attributes of the contexts and all elements below them that match a pattern node."""
        base = self._anchored(step)
        base = self.base(step) if base is None else base
        return self.qualified(self.columns.with_ancestor_in(base, contexts), step)

    def reached(self, contexts: Handles, step: PatternNode) -> Handles:
        """The distinct nodes at the end of an axis that pass the test, whatever their values."""
        if not len(contexts):
            return NOTHING
        if not step.axis.is_downward:
            return self._walked(contexts, step)
        base = self._anchored(step)
        if base is None:
            near = self._near(contexts, step)
            if near is not None:
                return near
            base = self.base(step)
        return self._under(contexts, step.axis, base)

    def _near(self, contexts: Handles, step: PatternNode) -> Handles | None:
        """The same by walking; None if scanning the label's partition costs less."""
        axis, test, tree = step.axis, step.test, self.tree
        if axis not in _NEAR or len(contexts) > FEW:
            return None
        number = -2
        if isinstance(test, Name) and axis is not Axis.ATTRIBUTE:
            number = tree.name_ids.get(test.label, -2)
        kinds, labels, worth = tree.kind_column, tree.label_column, self._steps_worth(step)
        found: dict[int, None] = {}
        for context in contexts.tolist():
            for node in node_tests.reached(tree, context, axis):
                worth -= 1
                if not worth:
                    return None
                if number >= 0:
                    if labels[node] == number and kinds[node] == ELEMENT:
                        found[node] = None
                elif node_tests.passes(tree, node, axis, test):
                    found[node] = None
        return handles(list(found))

    def _walked(self, contexts: Handles, step: PatternNode) -> Handles:
        """The same, by walking."""
        tree, axis, test = self.tree, step.axis, step.test
        found = {
            node
            for context in contexts.tolist()
            for node in node_tests.reached(tree, context, axis)
            if node_tests.passes(tree, node, axis, test)
        }
        return handles(list(found))

    def is_short(self, contexts: Handles, step: PatternNode) -> bool:
        """Whether walking from the contexts costs less than scanning the label's partition."""
        if step.axis not in _NEAR or len(contexts) > FEW:
            return False
        tree = self.tree
        walks = (node_tests.reached(tree, context, step.axis) for context in contexts.tolist())
        worth = self._steps_worth(step)
        return sum(1 for _ in islice(chain.from_iterable(walks), worth)) < worth

    def _steps_worth(self, step: PatternNode) -> int:
        """The number of steps of a walk that cost as much as scanning the label's partition."""
        if not isinstance(step.test, Name):
            return len(self.tree) >> 8 | 64
        label = f"@{step.test.label}" if step.axis is Axis.ATTRIBUTE else step.test.label
        return len(self.tree.partition(label)) >> 8 | 8

    def base(self, step: PatternNode) -> Handles:
        """Every node of the document that passes a test at the end of a downward axis."""
        columns, test = self.columns, step.test
        is_attribute = step.axis is Axis.ATTRIBUTE
        match test:
            case Name(label=label):
                return columns.partition(f"@{label}" if is_attribute else label)
            case PartialName():
                return columns.partitions(_labels(self.tree, test, is_attribute))
            case Wildcard():
                return columns.attributes() if is_attribute else columns.elements()
        if is_attribute:
            return NOTHING
        match test:
            case Literal(text=text):
                return self.texts_equal(columns.texts(), text)
            case AnyText():
                return columns.texts()
            case AnyComment():
                return columns.comments()
            case AnyInstruction(target=target):
                return columns.instructions(target)
            case AnyNode():
                return columns.nodes()
        return np.concatenate([columns.elements(), columns.texts()])

    def _under(self, contexts: Handles, axis: Axis, base: Handles) -> Handles:
        """The nodes of a base set that a downward axis reaches from some context."""
        columns = self.columns
        if axis is Axis.CHILD or axis is Axis.ATTRIBUTE:
            return columns.with_parent_in(base, contexts)
        if axis is Axis.SELF:
            return columns.common(base, contexts)
        if len(contexts) == 1 and contexts[0] == DOCUMENT_NODE:
            outside: Handles = base[columns.kind[columns.parent[base]] != ATTRIBUTE]
            return outside
        below = columns.with_ancestor_in(base, contexts)
        if axis is Axis.DESCENDANT:
            return below
        return np.union1d(below, columns.common(base, contexts))

    def _anchored(self, step: PatternNode) -> Handles | None:
        """Few nodes from the value index that include all matches of a pattern node; else None."""
        if self.index is None:
            return None
        for anchor in anchors_of(step):
            found = self.index.above(anchor.label, anchor.value, anchor.levels)
            if found is not None:
                tree, axis, test = self.tree, step.axis, step.test
                return handles([n for n in found if node_tests.passes(tree, n, axis, test)])
        return None

    # Conditions of a pattern node ---------------------------------------------------------------

    def qualified(self, nodes: Handles, step: PatternNode) -> Handles:
        """The nodes with the values and branches that a pattern node requires."""
        for branch in step.branches:
            nodes = self.where(nodes, branch)
        for asked in step.comparisons:
            nodes = self.with_value(nodes, asked)
        return nodes

    def where(self, nodes: Handles, branch: Branch) -> Handles:
        """The nodes at which a branch holds."""
        if not len(nodes):
            return NOTHING
        match branch:
            case PatternNode():
                return self._with_match(nodes, branch)
            case Or(alternatives=alternatives):
                return self._in_some(nodes, alternatives)
            case Not(branches=branches):
                return self.columns.without(nodes, self._in_all(nodes, branches))
            case Collect():
                return nodes

    def _in_all(self, nodes: Handles, branches: Iterable[Branch]) -> Handles:
        for branch in branches:
            nodes = self.where(nodes, branch)
        return nodes

    def _in_some(self, nodes: Handles, alternatives: Iterable[Iterable[Branch]]) -> Handles:
        kept: list[Handles] = []
        rest = nodes
        for alternative in alternatives:
            kept.append(self._in_all(rest, alternative))
            rest = self.columns.without(rest, kept[-1])
        return np.concatenate(kept)

    def _with_match(self, nodes: Handles, step: PatternNode) -> Handles:
        """The nodes from which a pattern node has a match."""
        axis = step.axis
        if axis in _ABOVE_ALL and len(nodes) == 1 and nodes[0] == DOCUMENT_NODE:
            return (
                nodes if len(self.below(nodes, step)) else NOTHING
            )  # a walk would visit all nodes
        if not axis.is_downward or self.is_short(nodes, step):
            tree = self.tree
            return handles([n for n in nodes.tolist() if node_tests.holds(tree, n, step)])
        found = self.below(nodes, step)
        columns = self.columns
        if axis is Axis.CHILD or axis is Axis.ATTRIBUTE:
            return columns.with_child_in(nodes, found)
        if axis is Axis.SELF:
            return columns.common(nodes, found)
        above = columns.with_descendant_in(nodes, found)
        if axis is Axis.DESCENDANT:
            return above
        return np.union1d(above, columns.common(nodes, found))

    # Values -------------------------------------------------------------------------------------

    def with_value(self, nodes: Handles, asked: Comparison) -> Handles:
        """The nodes whose string value satisfies a comparison."""
        if isinstance(asked.operand, Variable):
            return nodes  # it binds a variable that occurs nowhere else
        if asked.operator == "=" and isinstance(asked.operand, str):
            kinds = self.columns.kind[nodes]
            if len(nodes) > FEW and (kinds == TEXT).all():
                return self.texts_equal(nodes, asked.operand)
            if len(nodes) > FEW and (kinds == ATTRIBUTE).all():  # each has one text
                texts: Handles = np.frombuffer(self.tree.first_column, dtype=np.int32)[nodes]
                return self.columns.parent[self.texts_equal(texts, asked.operand)]
            nodes = self._maybe_equal(nodes, asked.operand)
        test, value = comparison(asked.operator, asked.operand), self.tree.string_value
        return handles([node for node in nodes.tolist() if test(value(node))])

    def _maybe_equal(self, nodes: Handles, value: str) -> Handles:
        """Drop attributes, and elements with a single text, whose text has another length."""
        tree = self.tree
        first: Handles = np.frombuffer(tree.first_column, dtype=np.int32)
        last: Handles = np.frombuffer(tree.last_column, dtype=np.int32)
        below = first[nodes]
        is_one = (below != NONE) & (below == last[nodes])
        texts = below[is_one]
        texts = texts[~self._has_length(texts, value)]
        return self.columns.without(nodes, self.columns.parent[texts])

    def texts_equal(self, texts: Handles, value: str) -> Handles:
        """The texts with this string."""
        texts = texts[self._has_length(texts, value)]
        if len(texts) > FEW:
            texts = self._with_bytes(texts, value.encode())
        own, text = self.tree.texts_by_node.get, self.tree.text
        return handles([n for n in texts.tolist() if (own(n) or text(n)) == value])

    def _with_bytes(self, texts: Handles, value: bytes) -> Handles:
        """Drop loaded texts, all of the value's length, that have other bytes."""
        span = self.columns.label[texts]
        loaded = np.flatnonzero(span >= 0)
        starts = np.frombuffer(self.tree.text_starts, dtype=np.int64)[span[loaded]]
        source = np.frombuffer(self.tree.text_bytes, dtype=np.uint8)
        is_equal = np.ones(len(texts), dtype=np.bool_)
        for at, byte in enumerate(value[:MOST_BYTES]):
            is_equal[loaded] = source[starts + at] == byte
            left = is_equal[loaded]
            loaded, starts = loaded[left], starts[left]
        return texts[is_equal]

    def _has_length(self, nodes: Handles, value: str) -> Mask:
        """A mask of the texts that may have this length; true for those not in the loaded bytes."""
        tree, columns = self.tree, self.columns
        spans = np.frombuffer(tree.text_starts, dtype=np.int64)
        span = columns.label[nodes]
        elsewhere: Mask = (span < 0) | (columns.kind[nodes] != TEXT)
        if elsewhere.all():
            return elsewhere
        at = np.where(elsewhere, 0, span)
        has_length: Mask = spans[at + 1] - spans[at] == len(value.encode())
        return elsewhere | has_length


def passing(columns: Columns, nodes: Handles, step: PatternNode) -> Mask:
    """A mask of the nodes that pass a pattern node's test at the end of its axis."""
    kind = columns.kind[nodes]
    own = ATTRIBUTE if step.axis is Axis.ATTRIBUTE else ELEMENT
    match step.test:
        case Name(label=label):
            written = f"@{label}" if own == ATTRIBUTE else label
            number = columns.tree.name_ids.get(written, -2)
            is_named: Mask = (columns.label[nodes] == number) & (kind == own)
            return is_named
        case PartialName() as test:
            tree = columns.tree
            numbers = [tree.name_ids[name] for name in _labels(tree, test, own == ATTRIBUTE)]
            return np.asarray(np.isin(columns.label[nodes], numbers) & (kind == own))
        case Wildcard():
            return np.asarray(kind == own)
        case AnyText():
            return np.asarray(kind == TEXT)
        case Literal(text=text):
            return _texts_equal(columns, nodes, kind == TEXT, text)
        case AnyComment():
            return np.asarray(kind == COMMENT)
        case AnyInstruction(target=target):
            return _of_target(columns, nodes, kind == INSTRUCTION, target)
        case AnyNode() if step.axis is Axis.SELF:
            return np.ones(len(nodes), dtype=np.bool_)
        case AnyNode():
            return np.isin(kind, (ELEMENT, TEXT, COMMENT, INSTRUCTION))
    is_labelled: Mask = (kind == ELEMENT) | (kind == TEXT)
    return is_labelled


def _labels(tree: Tree, test: PartialName, is_attribute: bool) -> list[str]:
    """The names in the document that a partial name matches."""
    others = "#" if is_attribute else "@#"
    return [
        name
        for name in tree.name_ids
        if (name[0] == "@") == is_attribute and name[0] not in others and test.matches(name)
    ]


def _of_target(columns: Columns, nodes: Handles, is_one: Mask, target: str | None) -> Mask:
    if target is None:
        return np.asarray(is_one)
    found: Mask = is_one.copy()
    found[is_one] = [columns.tree.target(node) == target for node in nodes[is_one].tolist()]
    return found


def _texts_equal(columns: Columns, nodes: Handles, is_text: Mask, text: str) -> Mask:
    equal = NodeSets(columns).texts_equal(nodes[is_text], text)
    found: Mask = is_text.copy()
    found[is_text] = np.isin(nodes[is_text], equal)
    return found


ROOT: Handles = handles([DOCUMENT_NODE])
