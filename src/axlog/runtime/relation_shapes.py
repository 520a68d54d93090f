"""The form of relations: by it, a bucket finds the relations that a task numbered elsewhere."""

from __future__ import annotations

from typing import Any, TypeAlias

from axlog.live.document import Document
from axlog.live.internals import streams_of
from axlog.query.compile import Relation

Shape: TypeAlias = tuple[Any, ...]


def relation_shapes(doc: Document, stream: str) -> list[Shape]:
    """Return the identities of the relations matched with a stream's messages, in order."""
    plan = streams_of(doc).engine.plan(stream)
    if plan is None:
        return []
    relations = [(r, "here") for r in plan.here] + [(r, "below") for r in plan.everywhere]
    return [(where, _shape(relation)) for relation, where in relations]


def _shape(relation: Relation) -> Shape:
    """Return a relation's form: relations of one form have the same rows in any message."""
    node = relation.node
    return (
        None if node is None else (node.axis, node.test, node.comparisons),
        relation.own,
        relation.columns,
        relation.tests,
        tuple((edge.axis, _shape(edge.relation)) for edge in relation.edges),
        tuple((c.columns, *map(_shape, c.alternatives)) for c in relation.choices),
        tuple((a.tests, _shape(a.body)) for a in relation.absences),
    )
