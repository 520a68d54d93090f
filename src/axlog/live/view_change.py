"""Another query for a running view: a new view, the end of the old one, one net difference.

    rows of the old query  ->  delete, update, insert  ->  rows of the new query

Law: the rows before, with the emitted changes merged by key, are the rows after. Positions go on,
and subscribers stay. A query that cannot be watched leaves the view as it is.
"""

from __future__ import annotations

from typing import Any

from axlog.live.maintained import MaintainedTree
from axlog.query.query import Query
from axlog.views.change import Change
from axlog.views.family import Member
from axlog.views.net_changes import net
from axlog.views.view import MaintainedView

_ASIDE = " (new)"
"""The end of the name of a view that is only watched to see whether it can be."""


def change_view(
    document: MaintainedTree, name: str, query: str | Query, **options: Any
) -> list[Change]:
    """Give a view another query; return the changes, which its subscribers get, too."""
    with document.lock:
        document.settle()
        old = _opened(document, name)
        deleted = [Change("delete", row) for row in old.whole_rows()]
        aside = name + _ASIDE
        document.watch(query, aside, **options)  # raises before anything is changed
        document.unwatch(name)
        document.watch(query, name, **options)
        document.unwatch(aside)
        new = _opened(document, name)
        inserted = [Change("insert", row) for row in new.whole_rows()]
        clock = document.tree.clock
        new.continue_from(old)
        if (new.columns, new.key) == (old.columns, old.key):
            changes = new.number(net([*deleted, *inserted]), clock, is_deferred=True)
        else:
            changes = old.number(deleted, clock, is_deferred=True)
            new.position = old.position
            changes += new.number(inserted, clock, is_deferred=True)
        document.revisions += 1
        return document.announce([(new, changes)])


def _opened(document: MaintainedTree, name: str) -> MaintainedView:
    found = document.families.watched(name)
    assert found is not None, "the caller has looked it up"
    return found.opened() if isinstance(found, Member) else found
