"""The changes of one update: for each view a list, merged and emitted."""

from __future__ import annotations

from typing import TypeAlias

from axlog.views.change import Change
from axlog.views.view import MaintainedView

ViewChanges: TypeAlias = list[tuple[MaintainedView, list[Change]]]
"""Each view with the changes that one update made to it."""


def together(first: ViewChanges, then: ViewChanges) -> ViewChanges:
    """The changes of one update: those of the clock before the others, once for each view."""
    if not first:
        return then
    later = dict(then)
    found = [(view, [*changes, *later.pop(view, ())]) for view, changes in first]
    return [*found, *later.items()]


def emit(each: ViewChanges) -> None:
    """Call the subscribers of every view.

    The first exception of one is raised after all were called.
    """
    raised: list[Exception] = []
    for view, changes in each:
        if view.is_heard:
            raised += view.emit(changes)
    if raised:
        raise raised[0]
