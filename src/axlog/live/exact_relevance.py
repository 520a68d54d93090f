"""Exact relevance of streams, for streams that provenance cannot rule out.

A stream is not relevant if in no future its messages change the rows of a view. Two streams that
are each irrelevant may be relevant together: each may bring the same data as the other. They are
therefore decided one by one, and a stream found irrelevant counts as ended before the next is
examined. This is sound: the rows are those without the first stream, and these are the rows without
both.

The decision needs the whole document and a small one, and costs much more than provenance. It runs
only on request (`Document.tune(exact=True)`). (Paper 2, definition 7.)
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
"""Largest document, in nodes, for which futures are tried."""
LIMIT = 500
"""Scenario instances to try for one stream and view."""


def not_relevant(tree: Tree, patterns: Iterable[Pattern], streams: Iterable[str]) -> list[str]:
    """Return the streams that no pattern needs, now and together. Consumes the tree."""
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
            verdicts = relevance(tree, pattern, limit=LIMIT)
        except UndecidedError:
            return None
        candidates = [stream for stream in candidates if verdicts[stream].relevant is False]
        if not candidates:
            return None
    return candidates[0] if candidates else None
