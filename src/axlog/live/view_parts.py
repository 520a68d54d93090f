"""A view and its document: what the questions and changes of a view need to know of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from axlog.document.tree import Tree
from axlog.document.value_index import ValueIndex
from axlog.live.shared_parts import shared_parts
from axlog.live.update_changes import ViewChanges
from axlog.query.query import Query
from axlog.views.choose import Chosen
from axlog.views.family import FamilyCounting
from axlog.views.key_form import KeyForm
from axlog.views.maintainer import Maintainer
from axlog.views.step_rows import Stepping
from axlog.views.surroundings import Surroundings
from axlog.views.view import MaintainedView

if TYPE_CHECKING:
    from axlog.live.maintained import MaintainedTree
    from axlog.views.counting.join_prospects import AnyProspects
    from axlog.views.member_prospects import MemberProspects


class DocumentSurroundings(Surroundings):
    """A document that streams may feed, as its views see it."""

    def __init__(self, document: MaintainedTree) -> None:
        super().__init__(document.nodes)
        self.current = document.current
        self._document = document

    def nodes_left(self) -> Tree:
        return self._document.nodes_left()

    def value_index(self) -> ValueIndex | None:
        return self._document.value_index

    def is_whole(self) -> bool:
        return not self._document.collected

    def revisions(self) -> int:
        return self._document.revisions

    def is_over(self) -> bool:
        return not self._document.tree.calls_by_stream

    def is_batched(self) -> bool:
        return self._document.held is not None

    def prospects(self, view: MaintainedView) -> AnyProspects | MemberProspects | None:
        return self._document.hooks.prospects(view)

    def may_come(self, view: MaintainedView) -> bool | None:
        return self._document.hooks.may_come(view)

    def how_never(self, view: MaintainedView) -> str:
        return self._document.hooks.how_never(view)

    def shared(self, view: MaintainedView) -> str | None:
        return self._document.families.summary_of(view)

    def apart(self, view: MaintainedView) -> str | None:
        return self._document.families.reason_alone(view)

    def shared_parts(self, view: MaintainedView) -> tuple[str, ...]:
        return shared_parts(self._document.views.values(), view)


def view_of(
    document: MaintainedTree,
    name: str,
    query: Query | Callable[[], Query],
    kept: Maintainer,
    chosen: Chosen,
    stepping: Stepping,
    form: KeyForm | None = None,
) -> MaintainedView:
    """Make a view of a document; the caller decides which updates it follows.

    `form`: of the key of `stepping`; None: it is made.
    """
    around, times = document.around, document.times
    return MaintainedView(name, query, kept, chosen, document.lock, around, times, stepping, form)


def passed_of(view: MaintainedView, clock: int) -> ViewChanges:
    """The changes that time alone causes up to a clock, to a view or to those that share it."""
    kept = view.maintainer
    if isinstance(kept, FamilyCounting):
        return [] if kept.moments is None else kept.moments.passed(clock)
    changes = view.passed(clock)
    return [(view, changes)] if changes else []
