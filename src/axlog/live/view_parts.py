"""A view and its document: what the questions and changes of a view need to know of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from axlog.live.shared_parts import shared_parts
from axlog.live.update_changes import ViewChanges
from axlog.query.query import Query
from axlog.views.choose import Chosen
from axlog.views.family import FamilyCounting
from axlog.views.maintainer import Maintainer
from axlog.views.step_rows import Stepping
from axlog.views.view import MaintainedView

if TYPE_CHECKING:
    from axlog.live.maintained import MaintainedTree


def view_of(
    document: MaintainedTree,
    name: str,
    query: Query | Callable[[], Query],
    kept: Maintainer,
    chosen: Chosen,
    stepping: Stepping,
) -> MaintainedView:
    """Make a view of a document; the caller decides which updates it follows."""
    nodes, times = document.nodes, document.times
    view = MaintainedView(name, query, kept, chosen, document.lock, nodes, times, stepping)
    view.prospects = lambda: document.hooks.prospects(view)
    view.may_come = lambda: document.hooks.may_come(view)
    view.how_never = lambda: document.hooks.how_never(view)
    view.nodes_left, view.is_whole = document.nodes_left, lambda: not document.collected
    view.value_index = lambda: document.value_index
    view.current, view.revisions = document.current, lambda: document.revisions
    view.shared = lambda: document.families.summary_of(view)
    view.apart = lambda: document.families.reason_alone(view)
    view.shared_parts = lambda: shared_parts(document.views.values(), view)
    view.is_over = lambda: not document.tree.calls_by_stream
    view.is_batched = lambda: document.held is not None
    return view


def passed_of(view: MaintainedView, clock: int) -> ViewChanges:
    """The changes that time alone causes up to a clock, to a view or to those that share it."""
    kept = view.maintainer
    if isinstance(kept, FamilyCounting):
        return [] if kept.moments is None else kept.moments.passed(clock)
    changes = view.passed(clock)
    return [(view, changes)] if changes else []
