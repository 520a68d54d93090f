"""Groups that several views have in common: their states are kept once.

Views with the same pattern and the same steps up to their first group ("orders by client, above
three", "the ten largest clients") aggregate the same rows. Their chains of operators then use one
group. The first of them that takes a delta applies it, the others get the same output. A view that
is alone with its group counts no single rows: it applies them itself. What follows the group
(`having`, an order, a limit), and the rows that are shown, are each view's own.

Law 9: every view has the rows and changes that it has alone. All views of a root relation take each
of its deltas once, so a counter of deltas is enough to know who is first.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from axlog.evaluate.joins import Bag, Row
from axlog.views.operators.group import Group
from axlog.views.operators.operator import Operator


class Arrangement:
    """One group, and the output of the last delta."""

    __slots__ = ("delta", "group", "moved", "users", "version")

    def __init__(self, group: Group) -> None:
        self.group = group
        self.version = 0  # the deltas that were applied
        self.moved: tuple[Row | None, Row | None] = (None, None)  # by the last, if it was one row
        self.delta: Bag = {}  # by the last, if it was several
        self.users: dict[object, GroupShare] = {}


class GroupShare(Group):
    """The group of one view that others use, too."""

    __slots__ = ("_arrangement", "_put", "_turn")

    def __init__(self, arrangement: Arrangement) -> None:
        group = arrangement.group
        for name in (
            "_always",
            "_groups",
            "_key",
            "_measures",
            "_positions",
            "below",
            "keys",
            "schema",
        ):
            setattr(self, name, getattr(group, name))
        self._arrangement = arrangement
        self._turn = arrangement.version
        self._put = self.put = group.put

    def count_deltas(self) -> None:
        """Apply a delta only if no other view has: the group has several from now on."""
        self.put = self._put_once

    @property
    def is_alone(self) -> bool:
        return self.put is self._put

    def _is_first(self) -> bool:
        """Count a delta; whether no other view has applied it."""
        arrangement = self._arrangement
        behind = arrangement.version - self._turn
        assert behind in (0, 1), "a view missed a delta of its group"
        self._turn += 1
        arrangement.version += not behind
        return not behind

    def _put_once(self, row: Row, count: int) -> tuple[Row | None, Row | None]:
        arrangement, turn = self._arrangement, self._turn
        if arrangement.version != turn:
            self._is_first()  # another view has applied it
            return arrangement.moved
        self._turn = arrangement.version = turn + 1
        moved = arrangement.moved = self._put(row, count)
        return moved

    def apply(self, port: int, delta: Bag) -> Bag:
        if len(delta) == 1:
            return super().apply(port, delta)
        arrangement = self._arrangement
        if self._is_first():
            arrangement.delta = arrangement.group.apply(port, delta)
        return dict(arrangement.delta)


Arrangements = dict[tuple[Any, ...], Arrangement]
"""The groups of an engine, by root relation and steps."""


def join_arrangement(
    known: Arrangements, key: tuple[Any, ...], own: Group, user: object
) -> GroupShare:
    """Return a group with the state of `own`: that of other views, if it is the same."""
    found = known.get(key)
    if found is None or not _is_equal(found.group, own):
        found = known[key] = Arrangement(own)
    share = found.users[user] = GroupShare(found)
    if len(found.users) > 1:
        for each in found.users.values():
            each.count_deltas()
    return share


def leave_arrangement(known: Arrangements, key: tuple[Any, ...], user: object) -> None:
    """Forget that a view uses a group."""
    found = known.get(key)
    if found is not None:
        found.users.pop(user, None)
        if not found.users:
            del known[key]


def users_of(known: Arrangements, key: tuple[Any, ...]) -> list[object]:
    """The views that use a group."""
    found = known.get(key)
    return [] if found is None else list(found.users)


def _is_equal(one: Operator, other: Operator) -> bool:
    (form, mine), (other_form, others) = one.snapshot(), other.snapshot()
    try:
        return form == other_form and list(map(Counter, mine)) == list(map(Counter, others))
    except TypeError:  # states that cannot be compared
        return False
