"""Streams that matter to no view by P2's definition 7: a closer look where provenance says yes.

A stream is not relevant if in no future leaving out what it brings changes the rows. Two such
streams need not be so together (each may bring what the other does), so they are taken one by one:
the first counts as ended before the next is looked at. That is sound: the rows are those without
the first, and those are the ones without both.

It needs the whole document, a small one, and costs much more than provenance does: by wish only.
"""

from __future__ import annotations

from collections.abc import Iterable

from axlog.document.operations import end_call
from axlog.document.pending import apply
from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.future.relevance import relevance
from axlog.query.pattern import Pattern

MOST_NODES = 2000
"""Nodes of a document up to which futures are tried on it."""
LIMIT = 500
"""Instances of scenarios that are tried for one stream and view."""


def not_relevant(tree: Tree, patterns: Iterable[Pattern], streams: Iterable[str]) -> list[str]:
    """The streams that none of the patterns needs, now and together; the tree is used up."""
    views = list(patterns)
    waiting = [stream for stream in streams if stream in tree.calls()]
    found: list[str] = []
    while waiting:
        useless = _first(tree, views, waiting)
        if useless is None:
            return found
        found.append(useless)
        waiting.remove(useless)
        apply(tree, end_call(tree, useless))
    return found


def _first(tree: Tree, views: list[Pattern], streams: list[str]) -> str | None:
    candidates = list(streams)
    for pattern in views:
        try:
            said = relevance(tree, pattern, limit=LIMIT)
        except UndecidedError:
            return None
        candidates = [stream for stream in candidates if said[stream].relevant is False]
        if not candidates:
            return None
    return candidates[0] if candidates else None
