"""A query that another engine evaluates: it is more than axlog's own evaluator knows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from axlog.errors import AxlogError, UnsupportedError
from axlog.query.positions import place_at
from axlog.query.projection import Projection
from axlog.query.whole_xquery_parser import WholeXQueryParser


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


_CHANGING = re.compile(
    r"(?<![\w.\-])(current-date|current-dateTime|current-time|random-number-generator)"
    r"\s*(?:\(\s*\)|\(|#\s*\d)"
)
_HIDDEN = re.compile(r"\"[^\"]*\"|'[^']*'|\(:.*?:\)", re.DOTALL)
"""Strings and comments, in which a name calls nothing."""


def refuse_changing_functions(text: str, namespaces: Mapping[str, str], language: str) -> None:
    """Refuse a query that reads the clock or random numbers: its answer changes without an update.

    A view is evaluated when the document changes, so its rows would be those of an earlier time.
    """
    shown = _HIDDEN.sub(lambda found: " " * len(found[0]), text)
    found = _CHANGING.search(shown)
    if found is None or _is_read(text, namespaces, language):
        return
    name = found[1]
    is_clock = name.startswith("current")
    raise UnsupportedError(
        "AX211",
        f"{name}() does not depend on the document: the answer would change without an update",
        place=place_at(text, found.start(1)),
        advice="a tree pattern has the clock of the document as `now` (`where now - t >= 2h`);"
        " or declare an external variable for the time"
        if is_clock
        else "declare an external variable for the number",
    )


def _is_read(text: str, namespaces: Mapping[str, str], language: str) -> bool:
    """Whether the analysis reads the query; it refuses calls of such functions."""
    try:
        WholeXQueryParser(text, dict(namespaces), is_xpath=language == "xpath").parse_query()
    except (AxlogError, RecursionError):
        return False
    return True
