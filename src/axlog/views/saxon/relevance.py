"""Whether an update is outside everything that a query reads.

The label paths of a projection become one automaton, whose states are made as they are needed: a
node costs one look-up. A node that is added, removed or renamed counts if its path is touched, a
node whose value changes if it is in or below a deep one. Of a renamed element all nodes below have
new paths. An attribute in a namespace may declare the namespace for all below its element.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from axlog.document.delta import Changed, Delta
from axlog.document.tree import (
    ATTRIBUTE,
    COMMENT,
    ELEMENT,
    INSTRUCTION,
    NONE,
    TEXT,
    Tree,
)
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Name,
    PartialName,
    Test,
    Wildcard,
)
from axlog.query.projection import LabelPath, Projection

_Place = tuple[int, int]  # a path, and the number of its steps that have matched
_CHILDREN = frozenset({ELEMENT, TEXT, COMMENT, INSTRUCTION})


@dataclass(frozen=True, slots=True)
class _State:
    """Where the paths are at a node: matched up to it, and matched at a node above it."""

    here: frozenset[_Place]
    above: frozenset[_Place]  # these continue with a descendant step
    is_touched: bool  # the node is on a path that the query reads
    is_deep: bool  # the node is in what the query reads as a whole


class PathAutomaton:
    """The paths of a projection, over the nodes of a tree."""

    def __init__(self, tree: Tree, projection: Projection) -> None:
        self._tree = tree
        shared = projection.touched | projection.deep
        self._paths: list[LabelPath] = sorted(shared, key=repr)
        self._deep = frozenset(
            number for number, path in enumerate(self._paths) if path in projection.deep
        )
        start = frozenset((number, 0) for number in range(len(self._paths)))
        self._start = self._made(start, frozenset(), False)
        self._following: dict[tuple[_State, int, str], _State] = {}

    def removes(self, delta: Delta) -> bool:
        """Whether what an update takes away is read: asked before it is applied."""
        return self._concerns(delta.removed, delta.changed)

    def adds(self, delta: Delta) -> bool:
        """Whether what an update brings is read: asked after it is applied."""
        return self._concerns(delta.added, delta.changed)

    def _concerns(self, roots: Iterable[int], changed: Iterable[Changed]) -> bool:
        states: dict[int, _State] = {}
        kinds = self._tree.kind_column
        for root in roots:
            if self._is_read(root, states):
                return True
            if kinds[root] == ATTRIBUTE and self._tree.label(root).startswith("@{"):
                return True
        for change in changed:
            if change.old == change.new:
                continue  # only its time changed
            node = change.node
            if kinds[node] == ELEMENT or kinds[node] == ATTRIBUTE:
                if self._is_read(node, states) or "{" in change.old + change.new:
                    return True
            else:
                state = self._state(node, states)
                if state.is_touched or state.is_deep:
                    return True
        return False

    def _is_read(self, top: int, states: dict[int, _State]) -> bool:
        """Whether the existence of a node, or of one below it, matters."""
        for node in self._tree.subtree(top):
            state = self._state(node, states)
            if state.is_touched or state.is_deep:
                return True
        return False

    def _state(self, node: int, states: dict[int, _State]) -> _State:
        """The state at a node; those of the nodes above it are made on the way."""
        tree = self._tree
        waiting: list[int] = []
        while node not in states:
            parent = tree.parent(node)
            if parent == NONE:
                states[node] = self._start
                break
            waiting.append(node)
            node = parent
        state = states[node]
        for below in reversed(waiting):
            kind = tree.kind_column[below]
            label = tree.label(below) if kind == ELEMENT or kind == ATTRIBUTE else ""
            state = states[below] = self._next(state, kind, label)
        return state

    def _next(self, state: _State, kind: int, label: str) -> _State:
        key = (state, kind, label)
        found = self._following.get(key)
        if found is None:
            found = self._following[key] = self._moved(state, kind, label)
        return found

    def _moved(self, state: _State, kind: int, label: str) -> _State:
        here: set[_Place] = set()
        above = set(state.above)
        for number, count in state.here:
            path = self._paths[number]
            if count == len(path):
                continue
            axis, test = path[count]
            if axis == "descendant":
                above.add((number, count))
            elif (axis == "attribute") == (kind == ATTRIBUTE) and _passes(kind, label, test):
                here.add((number, count + 1))
        if kind != ATTRIBUTE:
            for number, count in above:
                if _passes(kind, label, self._paths[number][count][1]):
                    here.add((number, count + 1))
        return self._made(frozenset(here), frozenset(above), state.is_deep)

    def _made(
        self, here: frozenset[_Place], above: frozenset[_Place], is_below_deep: bool
    ) -> _State:
        ended = [number for number, count in here if count == len(self._paths[number])]
        is_deep = is_below_deep or any(number in self._deep for number in ended)
        return _State(here, above, bool(ended), is_deep)


def _passes(kind: int, label: str, test: Test) -> bool:
    """Whether a node of this kind and label may pass a test."""
    match test:
        case Name(label=wanted):
            return label.removeprefix("@") == wanted
        case PartialName():
            return test.matches(label)
        case Wildcard():
            return kind == ELEMENT or kind == ATTRIBUTE
        case AnyText():
            return kind == TEXT
        case AnyComment():
            return kind == COMMENT
        case AnyInstruction():
            return kind == INSTRUCTION
        case AnyNode():
            return kind in _CHILDREN or kind == ATTRIBUTE
    return True
