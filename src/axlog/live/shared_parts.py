"""The parts of a view that other views of the document have, too: they are kept once."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from axlog.query.compile import Relation
from axlog.query.pattern import Name
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.stepped import SteppedCounting
from axlog.views.family import FamilyCounting
from axlog.views.view import MaintainedView

MOST_NAMES = 3
"""The most views that are named for one part."""


def shared_parts(views: Collection[MaintainedView], view: MaintainedView) -> tuple[str, ...]:
    """The largest parts of a view that others have, each with these."""
    users: dict[Relation, list[str]] = {}
    for other in views:
        if other is not view:
            for relation in dict.fromkeys(_relations(other)):
                users.setdefault(relation, []).append(_name(other))
    maintainer = view.maintainer
    if not users or not isinstance(maintainer, Counting):
        return ()
    found: dict[Relation, None] = {}
    waiting = list(maintainer.roots)
    while waiting:
        relation = waiting.pop(0)
        if relation in users and _is_part(relation):
            found[relation] = None
        else:
            waiting += relation.below()
    parts = [f"{_text(relation)}: with {_names(users[relation])}" for relation in found]
    return (*parts, *_groups(views, view))


def _groups(views: Collection[MaintainedView], view: MaintainedView) -> Iterator[str]:
    """The group of a view, if others use it."""
    kept = view.maintainer
    if isinstance(kept, SteppedCounting):
        users = kept.group_users()
        names = [_name(other) for other in views if other is not view and other.maintainer in users]
        if names:
            yield f"the group: with {_names(names)}"


def _name(view: MaintainedView) -> str:
    kept = view.maintainer
    if isinstance(kept, FamilyCounting):
        return f"{len(kept.members)} views of one plan"
    return view.name if view.name.isprintable() else ascii(view.name)


def _relations(view: MaintainedView) -> Iterator[Relation]:
    if isinstance(view.maintainer, Counting):
        for root in view.maintainer.roots:
            yield from root.walk()


def _is_part(relation: Relation) -> bool:
    """Whether a relation is worth a line: a name, a join of branches, or a whole pattern."""
    node = relation.node
    return (node is None and bool(relation.edges)) or (
        node is not None and isinstance(node.test, Name)
    )


def _text(relation: Relation) -> str:
    return "the whole pattern" if relation.node is None else str(relation.node)


def _names(names: list[str]) -> str:
    shown = ", ".join(names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
