"""What the deletions of streams can reach.

A stream that may delete removes siblings of its call, each with everything inside. The parent of
the call is a *place*. Nothing above or beside the subtrees at a place is lost, so a view loses
nothing if its pattern matches no node there, and reads no value of an element that contains them.
Streams whose calls are inside a place must keep all their messages: a deletion may test them.

Whether a pattern can match below a place follows from the labels on the path to it: relations are
followed from the root of the program, and tests of values are assumed to pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.query.compile import Edge, Relation, compile_pattern, depends_on_value
from axlog.query.pattern import AnyNode, Axis, Kind, Name, PartialName, Pattern, Variable, Wildcard


def deletion_places(tree: Tree) -> dict[int, str]:
    """The parents of the calls that may delete, each with one of their streams."""
    return {
        tree.parent(node): stream
        for stream, node in sorted(tree.calls().items(), reverse=True)
        if tree.call(node).deletes != "no"
    }


def is_inside(tree: Tree, node: int, places: Iterable[int]) -> bool:
    """Whether a node is at or below one of these places."""
    return not set(places).isdisjoint((node, *tree.ancestors(node)))


def reaching_stream(tree: Tree, stream: str) -> str | None:
    """The stream whose deletions can reach the messages of a stream; None: nothing can."""
    places = deletion_places(tree)
    if not places:
        return None
    parent = tree.parent(tree.calls()[stream])
    return next((places[n] for n in (parent, *tree.ancestors(parent)) if n in places), None)


def loses_by(tree: Tree, pattern: Pattern) -> str | None:
    """The stream whose deletions can change the rows of a pattern; None: nothing can."""
    places = deletion_places(tree)
    return next((s for place, s in places.items() if can_match_at(tree, pattern, place)), None)


def can_match_at(tree: Tree, pattern: Pattern, place: int) -> bool:
    """Whether a pattern can match a node below a place, or reads a value that changes there."""
    program = compile_pattern(pattern)
    if program.gathers or program.refusal is not None:
        return True
    return _is_seen(tree, program.root, place, _read_columns(pattern))


def _read_columns(pattern: Pattern) -> set[str]:
    """The columns of nodes whose values or contents rows show."""
    kinds = (Kind.VAL, Kind.CONT)
    return {f"{output.of}.node" for output in pattern.outputs if output.kind in kinds}


def _is_seen(tree: Tree, root: Relation, place: int, shown: set[str]) -> bool:
    """Whether a relation can match a node below a place, or reads a value that changes there."""
    path = [n for n in (*reversed(list(tree.ancestors(place))), place) if n != DOCUMENT_NODE]
    edges = list(_edges(root))
    anywhere: list[Relation] = []
    for node in path:
        here = [e.relation for e in edges if e.axis is Axis.CHILD]
        anywhere += [e.relation for e in edges if e.axis in _DEEP]
        if any(not e.axis.is_downward for e in edges):
            return True
        found = _matching(tree, node, [*here, *anywhere])
        for relation in found:
            own = {column for column, _ in relation.own}
            if depends_on_value(relation) or not shown.isdisjoint(own):
                return True
        edges = [edge for relation in found for edge in _edges(relation)]
    below = [e for e in edges if e.axis not in (Axis.ATTRIBUTE, Axis.SELF)]
    return bool(anywhere or below)


_DEEP = (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)


def _edges(relation: Relation) -> Iterator[Edge]:
    """The edges of a relation and of the conjunctions at its node."""
    yield from relation.edges
    for part in (
        *(each for choice in relation.choices for each in choice.alternatives),
        *(absence.body for absence in relation.absences),
    ):
        if part.node is None:
            yield from _edges(part)
        else:
            yield Edge(part.node.axis, part)


def _matching(tree: Tree, node: int, relations: Iterable[Relation]) -> list[Relation]:
    """The relations that the label of a node passes, and those at the node itself that they ask."""
    label = tree.label(node)
    found: dict[Relation, None] = {}
    waiting = list(relations)
    while waiting:
        relation = waiting.pop()
        if relation in found or not _passes(relation, label):
            continue
        found[relation] = None
        waiting += [
            e.relation for e in _edges(relation) if e.axis in (Axis.SELF, Axis.DESCENDANT_OR_SELF)
        ]
    return list(found)


def _passes(relation: Relation, label: str) -> bool:
    assert relation.node is not None
    match relation.node.test:
        case Name(label=wanted):
            return wanted == label
        case PartialName() as partial:
            return partial.matches(label)
        case Wildcard() | Variable() | AnyNode():
            return True
    return False  # a text, a comment, a processing instruction
