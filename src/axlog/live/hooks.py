"""`StreamHooks`: the calls that a maintained tree makes to the streams that feed it.

`MaintainedTree` knows nothing of streams. Its one slot, `hooks`, holds this class, whose methods do
nothing, until `Streams` (`streams.py`) installs itself there. A document without streams never
makes the stream machinery and pays only for these empty calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypeAlias

from axlog.document.delta import Delta
from axlog.live.update_changes import ViewChanges
from axlog.query.compile import Relation
from axlog.views.view import MaintainedView

if TYPE_CHECKING:
    from axlog.views.counting.join_prospects import AnyProspects
    from axlog.views.member_prospects import MemberProspects


How: TypeAlias = Literal["off", "join", "end"]
"""How the members of a family get `never` changes.

`off`: there are none. `join`: from those of the general view. `end`: by their own possible rows,
when a stream ends.
"""


class StreamHooks:
    """The hooks of a document that no stream feeds."""

    def settle(self) -> None:
        """Turn the messages that were set aside into nodes, before the nodes are read."""

    def untune(self) -> None:
        """Remove the streams' filters and restore the rows that they dropped.

        Called before an update that is not a stream's: a filter holds only for updates of streams
        and for the views that exist.
        """

    def before_view(self) -> None:
        """Do the same before a view is made, if filters or collection dropped anything."""

    def restore_rows(self, relations: Iterable[Relation] | None) -> None:
        """Do the same for a new view if joins of its relations dropped rows; None: of any."""

    def brought(self, delta: Delta, stream: str | None, was_aside: bool) -> None:
        """Record the delta of an update and its stream, or None for a statement.

        `was_aside`: the views have already processed it, as a message that was set aside.
        """

    def pass_time(self, emitted: ViewChanges, clock: int) -> ViewChanges:
        """Append the `never` changes of deadlines before a clock, before an update brings it."""
        return emitted

    def may_come(self, view: MaintainedView) -> bool | None:
        """Return whether the view may still gain a row, by the scenarios kept as data arrives.

        None if no scenarios are kept.
        """
        return None

    def how_never(self, view: MaintainedView) -> str:
        """Return how the view reports rows that can never come, or why it does not."""
        return "not reported: no stream feeds the document"

    def refresh(self) -> None:
        """Examine the views again, after they have changed."""

    def how_shared(self, general: MaintainedView, sample: MaintainedView) -> How | None:
        """Return how members of a family get `never` changes; None: they must be kept alone.

        `general` is the view that they share, `sample` one of them.
        """
        return "off"

    def prospects(self, view: MaintainedView) -> AnyProspects | MemberProspects | None:
        """Return the facts about the view's future rows that need no document.

        None: no such facts are known.
        """
        return None


IDLE = StreamHooks()
"""The hooks of every document without streams."""
