"""Whether the rows of a pattern can be found in each record of a document alone.

A large document is cut at its records (`document/splitter.py`). A pattern usually begins with steps
that only lead somewhere: without a second branch, a comparison or a column. Each row lies below the
node that these steps reach, the top of the pattern. If no top contains a record, the rows of the
document are those of its records, each with the elements around it, and those of the rest.

    steps = steps_to_top(program)
    if steps is not None and not any(reaches(steps, labels) for labels in around_records): ...

Law: then the rows of the document, with their counts, are the sum of the rows of its records and of
the document without them. Records that the steps do not enter have no rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from axlog.query.compile import Program, Relation
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyText,
    Axis,
    Literal,
    Name,
    Test,
)

Step = tuple[Axis, Test]
_BELOW = (Axis.CHILD, Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)
_NO_ELEMENT = (AnyComment, AnyInstruction, AnyText, Literal)


def steps_to_top(program: Program) -> tuple[Step, ...] | None:
    """The steps from the document node to the top of a pattern; None if it begins at that node."""
    relation, steps = program.root, []
    if program.refusal is not None or any(each.anchor is None for each in program.gathers):
        return None
    while _only_leads(relation):
        edge = relation.edges[0]
        node = edge.relation.node
        if edge.axis not in _BELOW or node is None:
            return None
        steps.append((edge.axis, node.test))
        relation = edge.relation
    return tuple(steps) or None


def _only_leads(relation: Relation) -> bool:
    if relation.own or relation.tests or relation.choices or relation.absences:
        return False
    is_compared = relation.node is not None and bool(relation.node.comparisons)
    return len(relation.edges) == 1 and not is_compared


def reaches(steps: Sequence[Step], labels: Sequence[str]) -> bool:
    """Whether the steps may end at one of these elements, each of which contains the next one."""
    return len(steps) in _ended(steps, labels)[1]


def enters(steps: Sequence[Step], labels: Sequence[str]) -> bool:
    """Whether the steps may lead into the last of these elements."""
    here, anywhere = _ended(steps, labels)
    return any(
        number in (here if axis is Axis.CHILD else anywhere)
        for number, (axis, _) in enumerate(steps)
    )


def _ended(steps: Sequence[Step], labels: Sequence[str]) -> tuple[set[int], set[int]]:
    """How many steps may end at the last of these elements, and at any of them."""
    here: set[int] = {0}  # at the document node
    anywhere = here
    for label in labels:
        above, here = here, set()
        for number, (axis, test) in enumerate(steps):
            starts = above if axis is Axis.CHILD else anywhere
            if axis is Axis.DESCENDANT_OR_SELF:
                starts = starts | here
            if number in starts and _may_pass(test, label):
                here.add(number + 1)
        anywhere = anywhere | here
    return here, anywhere


def _may_pass(test: Test, label: str) -> bool:
    if isinstance(test, Name):
        return test.label == label
    return not isinstance(test, _NO_ELEMENT)
