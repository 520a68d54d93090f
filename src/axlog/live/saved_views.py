"""The rows of views as plain data, for documents that keep no messages.

The rows of a member of a family are those of its general view: only its position is saved.
"""

from __future__ import annotations

from typing import TypeAlias

from axlog.errors import UpdateError
from axlog.evaluate.joins import Row
from axlog.live.maintained import MaintainedTree
from axlog.views.counting.maintainer import Counting
from axlog.views.view import MaintainedView

SavedViews: TypeAlias = tuple[tuple[str, int, tuple[tuple[Row, int], ...]], ...]
"""For each view its name, position and bindings."""


def saved_views(document: MaintainedTree) -> SavedViews:
    """Return the rows of every view that was not set aside."""
    views = tuple(
        (name, view.position, _counting(view).state())
        for name, view in document.views.items()
        if view.broken is None
    )
    members = document.families.opened()
    return (*views, *((view.name, view.position, ()) for view in members))


def check_saved(document: MaintainedTree, views: SavedViews) -> None:
    """Refuse the rows of views that shared other plans (AX872)."""
    document.families.check_saved([name for name, _, _ in views])


def restore_views(document: MaintainedTree, views: SavedViews) -> None:
    """Restore the rows, after the tables of the engine. Nothing is emitted."""
    for name, position, rows in views:
        member = document.families.members.get(name)
        if member is not None:
            member.opened().resume(position)
            continue
        view = document.views[name]
        _counting(view).restore(rows)
        view.resume(position)
    document.revisions += 1
    document.families.discard()


def _counting(view: MaintainedView) -> Counting:
    if not isinstance(view.maintainer, Counting):
        raise UpdateError("AX307", f"the rows of {view.name!r} are not kept as bindings")
    return view.maintainer
