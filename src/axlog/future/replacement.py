"""Which questions about the future are decided where streams replace their messages.

A stream declared with `replace` has at most one message for each key. In every future its messages
are a subset of those that it would have if it only inserted. So a row that can never come with
insertions alone can never come here. The converse needs care: a row may need two messages of the
stream with one key, which never exist together, or a message with two values at the path, which is
rejected. The analyses of `scenarios.py` do not know this. They decide a pattern exactly if

- every match uses at most one message of the stream, so that its key conflicts with no other, and
- the pattern does not ask for more than one value at the path of the key, nor for elements in it.

Both are read off the pattern and the place of the call. Other patterns are refused (AX503), and so
are `not`, types, keys, and comparisons of the value of an element that contains the call, wherever
messages of the stream matter. A stream that no part of the pattern can match does not matter.

Law: where `check_replacement` does not raise, truth, possible rows and statuses equal those by
brute force over all futures (`python -m lab fuzz --law replace-truth`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from axlog.document.message_key import KeyPath
from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.errors import UndecidedError
from axlog.future.grounding import has_not
from axlog.query.pattern import (
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Collect,
    Literal,
    Name,
    Not,
    Or,
    Pattern,
    PatternNode,
    Variable,
    Wildcard,
)

_ON_PATH = (Axis.SELF, Axis.DESCENDANT_OR_SELF)
_DESCENT = (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)


def check_replacement(tree: Tree, pattern: Pattern) -> None:
    """Raise AX503 if the future of a pattern is not decided, because a stream replaces."""
    for stream, node in sorted(tree.calls().items()):
        path = tree.call(node).replace
        if path is None:
            continue
        entering = _Entering(tree, tree.parent(node)).nodes(pattern)
        reason = _refusal(tree, pattern, path, entering)
        if reason is not None:
            raise UndecidedError("AX503", f"the stream {stream!r} replaces its messages: {reason}")


def may_matter(tree: Tree, pattern: Pattern, stream: str) -> bool:
    """Whether messages of a stream may be a part of a match, by the place of its call alone."""
    return bool(_Entering(tree, tree.parent(tree.calls()[stream])).nodes(pattern))


def _refusal(
    tree: Tree, pattern: Pattern, path: KeyPath, entering: list[PatternNode]
) -> str | None:
    if not entering:
        return None
    if has_not(pattern):
        return "`not` is not decided beside it"
    if tree.types is not None or tree.facts:
        return "types and keys are not decided beside it"
    if len(entering) > 1:
        return "a row may need two of them, which may have the same key"
    return _refused_message(entering[0], path)


class _Entering:
    """Finds the pattern nodes through which a match may enter the messages at a call."""

    def __init__(self, tree: Tree, place: int) -> None:
        above = [n for n in (place, *tree.ancestors(place)) if n != DOCUMENT_NODE][::-1]
        self._labels = [None, *(tree.label(node) for node in above)]  # the document node first
        self._found: list[PatternNode] = []

    def nodes(self, pattern: Pattern) -> list[PatternNode]:
        """The pattern nodes that may match in a message while those above them match outside."""
        self._branches(pattern.branches, {0})
        return self._found

    def _branches(self, branches: Iterable[Branch], places: set[int]) -> None:
        """Follow branches of a node that may match at some places of the path to the call."""
        for branch in branches:
            match branch:
                case PatternNode():
                    self._node(branch, places)
                case Or(alternatives=alternatives):
                    for each in alternatives:
                        self._branches(each, places)
                case Not(branches=inside):
                    self._branches(inside, places)
                case Collect(node=node):
                    self._node(node, places)

    def _node(self, node: PatternNode, places: set[int]) -> None:
        last = len(self._labels) - 1
        if not node.axis.is_downward:
            self._found += [node, node]  # it may lead anywhere
            return
        if node.axis in _DESCENT or (node.axis is Axis.CHILD and last in places):
            self._found.append(node)
        if node.axis is Axis.CHILD:
            reached = {place + 1 for place in places}
        elif node.axis is Axis.ATTRIBUTE:
            reached = set()
        else:
            lowest = min(places) + (node.axis is Axis.DESCENDANT)
            reached = places if node.axis is Axis.SELF else set(range(lowest, last + 1))
        reached = {place for place in reached if place <= last and self._passes(node, place)}
        if not reached:
            return
        if node.comparisons:
            self._found += [node, node]  # it compares a value that messages are a part of
        self._branches(node.branches, reached)

    def _passes(self, node: PatternNode, place: int) -> bool:
        label = self._labels[place]
        match node.test:
            case Name(label=wanted):
                return label == wanted
            case Wildcard() | Variable():
                return label is not None
            case AnyNode():
                return True
        return False


def _refused_message(root: PatternNode, path: KeyPath) -> str | None:
    """Why some message that a pattern node asks for may have no key; None if all can have one.

    A branch off the path of the key can match nodes that are not on it: messages may have any
    labels. So only branches that follow the names of the path can ask for a second value.
    """
    steps = [*path.steps, *([] if path.attribute is None else [f"@{path.attribute}"])]
    if not steps:
        return _refused_value(root)
    if root.axis in _DESCENT:  # it can match deeper in the message, off the path
        return None
    nodes = [root]
    for step in steps:
        below = [child for node in nodes for child in _pattern_nodes(node.branches)]
        if any(_may_be_named(child) and (child.branches or child.comparisons) for child in below):
            return "a variable may be the name of an element on the path of the key"
        if any(child.axis in _ON_PATH for child in below):
            return "the pattern tests one node of a message twice"
        nodes = [child for child in below if _follows(child, step)]
    if len(nodes) > 1:
        return "the pattern may ask for two values at the path of the key"
    if path.attribute is None and nodes:
        return _refused_value(nodes[0])
    return None


def _refused_value(node: PatternNode) -> str | None:
    """Why the element of the key may need more than one text; None if a text is enough."""
    texts = [child for child in _pattern_nodes(node.branches) if child.axis is not Axis.ATTRIBUTE]
    is_plain = all(
        child.axis is Axis.CHILD
        and isinstance(child.test, Literal | AnyText | Variable)
        and not child.branches
        and not child.comparisons
        for child in texts
    )
    if not is_plain or len(texts) + bool(node.comparisons) > 1:
        return "the pattern may ask for more than one text in the element of the key"
    return None


def _follows(node: PatternNode, step: str) -> bool:
    """Whether a pattern node can only match at a step of the path."""
    axis = Axis.ATTRIBUTE if step.startswith("@") else Axis.CHILD
    is_named = isinstance(node.test, Name) and node.test.label == step.removeprefix("@")
    return node.axis is axis and is_named


def _may_be_named(node: PatternNode) -> bool:
    """Whether a join, or the values of a row, may give the name of the node."""
    return isinstance(node.test, Variable) or (node.name is not None and node.test == Wildcard())


def _pattern_nodes(branches: Iterable[Branch]) -> Iterator[PatternNode]:
    """The pattern nodes right below a node, in all alternatives."""
    for branch in branches:
        match branch:
            case PatternNode():
                yield branch
            case Or(alternatives=alternatives):
                for each in alternatives:
                    yield from _pattern_nodes(each)
            case Not(branches=inside):
                yield from _pattern_nodes(inside)
            case Collect(node=node):
                yield node
