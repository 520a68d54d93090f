"""One door for all query texts: which language a text is in, and its pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from axlog.language.pattern import Pattern
from axlog.language.tree_syntax import parse_pattern


class Template(Protocol):
    """A constructor that shows a row as XML."""

    def render(self, row: Mapping[str, object]) -> str: ...


@dataclass(frozen=True, slots=True)
class Query:
    """A query text with what it means."""

    pattern: Pattern
    text: str
    language: str = "pattern"
    template: Template | None = None


def parse_query(
    text: str, namespaces: Mapping[str, str] | None = None, language: str | None = None
) -> Query:
    """The query that a text writes."""
    return Query(parse_pattern(text, namespaces), text)
