"""Anchors: the equalities of a pattern that the value index of a document can answer.

An anchor gives few nodes, from which the pattern's node is found by climbing. Law: the candidates
of a pattern node's anchor include all its matches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from axlog.query.pattern import Axis, Comparison, Name, PatternNode


@dataclass(frozen=True, slots=True)
class Anchor:
    """The label and value to look up, and the depth of the nodes found below a pattern node."""

    label: str
    value: str
    levels: int


def anchors_of(step: PatternNode, levels: int = 0) -> Iterator[Anchor]:
    """The equalities of a pattern node, of its attributes and of its children."""
    if not isinstance(step.test, Name):
        return
    label = f"@{step.test.label}" if step.axis is Axis.ATTRIBUTE else step.test.label
    for asked in step.comparisons:
        if is_equality(asked):
            yield Anchor(label, str(asked.operand), levels)
    for below in step.branches:
        if isinstance(below, PatternNode) and below.axis in (Axis.CHILD, Axis.ATTRIBUTE):
            yield from anchors_of(below, levels + 1)


def is_equality(asked: Comparison) -> bool:
    """Whether the index can answer a comparison."""
    return asked.operator == "=" and isinstance(asked.operand, str)
