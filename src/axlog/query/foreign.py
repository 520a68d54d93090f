"""A query that another engine evaluates: it is more than axlog's own evaluator knows."""

from __future__ import annotations

from dataclasses import dataclass

from axlog.query.projection import Projection


@dataclass(frozen=True, slots=True)
class ForeignQuery:
    """The text of a query, why axlog does not evaluate it itself, and what it reads.

    `projection` is None if that is not known: then every update may change the result.
    """

    text: str
    language: str
    namespaces: tuple[tuple[str, str], ...]
    reason: str
    projection: Projection | None
