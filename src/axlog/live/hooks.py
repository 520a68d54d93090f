"""`StreamHooks`: what a maintained tree asks of the streams that feed it.

`MaintainedTree` knows nothing of streams. It has one slot, `hooks`: this class, whose methods do
nothing, until `Streams` (`streams.py`) puts itself there. A document that no stream feeds never
makes the stream machinery and pays only for these empty calls.
"""

from __future__ import annotations

from axlog.document.delta import Delta
from axlog.views.counting.prospects import Prospects
from axlog.views.view import View


class StreamHooks:
    """The hooks of a document that no stream feeds."""

    def settle(self) -> None:
        """Turn the messages that were set aside into nodes, before the nodes are read."""

    def untune(self) -> None:
        """Remove the streams' filters and restore what they dropped.

        Called before anything other than a stream changes the document, and before a view is added:
        a filter holds only for updates of streams and for the views that exist.
        """

    def brought(self, delta: Delta, stream: str | None, was_aside: bool) -> None:
        """Note the delta of an update and its stream, or None for a statement.

        `was_aside`: the views have processed it before, as a message that was set aside.
        """

    def may_come(self, view: View) -> bool | None:
        """Whether a row of the view may still come, by scenarios kept as data arrives.

        None if no scenarios are kept.
        """
        return None

    def how_never(self, view: View) -> str:
        """How the view reports rows that can never come, or why it does not."""
        return "not reported: no stream feeds the document"

    def prospects(self, view: View) -> Prospects | None:
        """What is known of the view's rows to come without reading the document; None: nothing."""
        return None


IDLE = StreamHooks()
"""The hooks of every document without streams."""
