"""The nodes of a collected path at one node, found by walking, for paths of plain steps.

Most collected paths are a few names one below the other (`name/text()`, `description`). These need
no matching: children that pass are followed in document order. Other paths are left to the
definition (`definition.gather`), and a test compares the two.
"""

from __future__ import annotations

from functools import lru_cache

from axlog.document.tree import ATTRIBUTE, ELEMENT, NONE, TEXT, Tree
from axlog.evaluate.definition import gather as by_definition
from axlog.query.pattern import AnyText, Axis, Name, PartialName, PatternNode, Wildcard

Step = tuple[int, str | None]
"""The kind of node that a step accepts, and its required label."""


@lru_cache(maxsize=1024)
def steps_of(path: PatternNode) -> tuple[tuple[Step, ...], str] | None:
    """A path's steps and the name at its end; None unless all of them are plain."""
    found: list[Step] = []
    at = path
    while True:
        is_attribute = at.axis is Axis.ATTRIBUTE
        if at.comparisons or not (is_attribute or at.axis is Axis.CHILD):
            return None
        match at.test:
            case Name(label=label):
                found.append((ATTRIBUTE, f"@{label}") if is_attribute else (ELEMENT, label))
            case PartialName():
                return None
            case Wildcard():
                found.append((ATTRIBUTE if is_attribute else ELEMENT, None))
            case AnyText() if not is_attribute:
                found.append((TEXT, None))
            case _:
                return None
        if not at.branches:
            return None if at.name is None else (tuple(found), at.name)
        if is_attribute or at.name is not None or len(at.branches) > 1:
            return None
        (below,) = at.branches
        if not isinstance(below, PatternNode):
            return None
        at = below


def gather(tree: Tree, path: PatternNode, anchor: int) -> dict[str, tuple[int, ...]]:
    """The nodes of each name inside a collected path at an anchor, in document order."""
    plain = steps_of(path)
    if plain is None:
        return by_definition(tree, path, anchor)
    steps, name = plain
    kinds, labels, first, following = (
        tree.kind_column,
        tree.label_column,
        tree.first_column,
        tree.next_column,
    )
    at = [anchor]
    for kind, label in steps:
        number = None if label is None else tree.name_ids.get(label, NONE)
        reached: list[int] = []
        for node in at:
            below = first[node]
            while below != NONE:
                if kinds[below] == kind and (number is None or labels[below] == number):
                    reached.append(below)
                below = following[below]
        at = reached
    return {name: tuple(at)}
