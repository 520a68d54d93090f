"""The inside of a `Document`, for the other packages of axlog. Not for users.

    maintained(document).tree       the tree, the engines, pending update lists
    streams_of(document).engine     message plans, saved state, deadlines
    maintained_view(view)           the maintainer of a view, its verdicts, its numbering

No other package reads a private attribute of `Document` or `View`.
"""

from __future__ import annotations

from axlog.live.document import Document
from axlog.live.maintained import MaintainedTree
from axlog.live.streams import Streams
from axlog.live.view import View
from axlog.views.view import MaintainedView


def maintained(document: Document) -> MaintainedTree:
    """The tree of a document and its views."""
    return document._maintained


def streams_of(document: Document) -> Streams:
    """Return the stream machinery of a document, made now if it did not exist."""
    return document._streams or document._start_streams()


def maintained_view(view: View) -> MaintainedView:
    """Return the inside of a view."""
    return view._maintained
