"""What a view asks of the document that it belongs to. One object serves all its views."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from axlog.document.tree import Tree
from axlog.document.value_index import ValueIndex
from axlog.views.change import Current

if TYPE_CHECKING:
    from axlog.views.counting.join_prospects import AnyProspects
    from axlog.views.member_prospects import MemberProspects
    from axlog.views.view import MaintainedView


class Surroundings:
    """A document without streams and without other views."""

    def __init__(self, nodes: Callable[[], Tree]) -> None:
        """`nodes`: the document with all messages as nodes."""
        self.nodes = nodes
        self.current = Current()
        """The update that is being applied."""

    def nodes_left(self) -> Tree:
        """The document without the nodes that were garbage-collected."""
        return self.nodes()

    def value_index(self) -> ValueIndex | None:
        """The index of the values in the document."""
        return None

    def is_whole(self) -> bool:
        """Whether no node was garbage-collected."""
        return True

    def revisions(self) -> int:
        """The number of changes so far after which verdicts from before may be wrong."""
        return 0

    def is_over(self) -> bool:
        """Whether no stream can change the document any more."""
        return False

    def is_batched(self) -> bool:
        """Whether changes are held back until the end of a batch."""
        return False

    def prospects(self, view: MaintainedView) -> AnyProspects | MemberProspects | None:
        """The possible rows as the joins know them, if they do; avoids reading the document."""
        return None

    def may_come(self, view: MaintainedView) -> bool | None:
        """Whether a row may still come, by the scenarios that are kept; None: none are."""
        return None

    def how_never(self, view: MaintainedView) -> str:
        """How `never` changes are found, or why they are not."""
        return "not reported: no stream feeds the document"

    def shared(self, view: MaintainedView) -> str | None:
        """The plan that the view shares with others, for people; None: it shares none."""
        return None

    def apart(self, view: MaintainedView) -> str | None:
        """Why it shares none, although it differs from other views in constants only."""
        return None

    def shared_parts(self, view: MaintainedView) -> tuple[str, ...]:
        """The largest parts of the view that others have, too."""
        return ()
