"""`axlog.relevance`: which streams of a document can still matter to a query."""

from __future__ import annotations

from axlog.future.relevance import Relevance
from axlog.future.relevance import relevance as relevance_of
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.query.query import Query


def relevance(document: Document, query: str | Query, *, limit: int = 2000) -> dict[str, Relevance]:
    """Return, for each open stream, whether its messages can still matter to a query.

    Parameters:
        document: The document that the streams feed.
        query: A query, or its text.
        limit: Futures to try for one stream before its relevance is undecided.

    >>> import axlog
    >>> doc = axlog.Document(streams=["orders", "other"])
    >>> found = relevance(doc, "match /document/orders/order")
    >>> {stream: each.relevant for stream, each in found.items()}
    {'orders': True, 'other': False}
    """
    inside = maintained(document)
    with inside.lock:
        tree = inside.nodes().copied()
    return relevance_of(tree, inside.parse(query).only_pattern, limit=limit)
