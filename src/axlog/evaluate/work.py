"""Work budgets: the number of rows that one update may read, counted for each relation.

A join can cost far more than it yields: six branches with `!=` between each pair read the sixth
power of the rows kept. So every relation has a meter that counts the rows its joins read during one
update. The meter counts rows, not seconds: whether a view exceeds its budget does not depend on the
machine.

    allowed(relation) = the largest budget of the views that use it
                        + GROWTH rows for every node or row of the update itself

A relation that reads more raises AX216, and the engine sets aside the views that use it. A view
with a smaller budget than the others that share its relation is set aside alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from axlog.document.parser import DEFAULT_LIMITS
from axlog.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, ItemsView, Iterable, Sized

    from axlog.query.compile import Relation

MOST_WORK = DEFAULT_LIMITS.work
GROWTH = 20
"""Rows that an update may read for each row of its delta, whatever the budget."""


def too_much_work(allowed: int) -> QueryError:
    """The error of a view that exceeds its budget."""
    return QueryError(
        "AX216",
        f"an update made the view read more than {allowed:,} rows",
        advice="join the branches of the query by a variable, or raise the budget with"
        " watch(..., work=...) or limits=Limits(work=...)",
    )


class Meter:
    """The rows that one relation has read during the current update."""

    __slots__ = ("budget", "meters", "relation", "spent")

    def __init__(self, relation: Relation | None, budget: int, meters: Meters) -> None:
        """`relation`: None if all relations of a message are counted together."""
        self.relation = relation
        self.budget = budget
        self.meters = meters
        self.spent = 0

    def spend(self, rows: int) -> None:
        """Count rows; raises AX216 if the relation exceeds its budget."""
        if not self.spent:
            self.meters.used.append(self)
        self.spent += rows
        if self.spent > self.budget:
            meters = self.meters
            extra = meters.extra if self.budget >= meters.budget else 0
            if self.spent > self.budget + extra + meters.allowance():
                raise too_much_work(self.budget)

    def read(self, bucket: dict[Any, int]) -> ItemsView[Any, int]:
        """The rows of a bucket, counted."""
        self.spend(len(bucket))
        return bucket.items()


class Member(Protocol):
    """A view of a root relation, with its own budget."""

    @property
    def work(self) -> int | None:
        """Rows that the view may read during an update; None: the engine's budget."""

    def refuse(self, error: QueryError) -> None:
        """Set the view aside, because it exceeded its budget."""


class Meters(dict["Relation", Meter]):
    """The meters of an engine's relations, and those used by the current update."""

    def __init__(self, budget: int = MOST_WORK) -> None:
        super().__init__()
        self.budget = budget
        self.used: list[Meter] = []
        self._members: dict[Relation, list[Member]] = {}  # views with their own budgets, by root
        self.bags: Iterable[Sized] = ()
        """The bags of the current message, if it is processed as bindings."""
        self.size: Callable[[], int] = _nothing
        """Returns the number of nodes in the current update."""
        self.extra = (
            0  # rows beyond the budget while views are back-filled, unless theirs is smaller
        )

    def allowance(self) -> int:
        """Rows that the current update may read beyond the budget, by its own size."""
        return GROWTH * (self.size() + sum(map(len, self.bags)))

    def __missing__(self, relation: Relation) -> Meter:
        made = self[relation] = Meter(relation, self.budget, self)
        return made

    def enter(self, root: Relation, member: Member | None) -> None:
        """Register a view of a root, with its own budget or the engine's.

        A relation that several views use has the largest of their budgets.
        """
        own = None if member is None else member.work
        if member is not None and own is not None:
            self._members.setdefault(root, []).append(member)
        budget = self.budget if own is None else own
        for relation in root.walk():
            known = self.get(relation)
            if known is None:
                self[relation] = Meter(relation, budget, self)
            else:
                known.budget = max(budget, known.budget)

    def leave(self, root: Relation, member: Member | None) -> None:
        """Unregister a view of a root."""
        members = self._members.get(root, [])
        if member in members:
            members.remove(member)
        if not members:
            self._members.pop(root, None)

    def over_budget(self) -> list[tuple[Member, QueryError]]:
        """The views whose own budget is smaller than the work of their relations."""
        found: list[tuple[Member, QueryError]] = []
        if not self._members:
            return found
        allowance = self.allowance()
        spent = {meter.relation: meter for meter in self.used}
        for root, members in self._members.items():
            meters = [spent[relation] for relation in root.walk() if relation in spent]
            for member in members:
                work = member.work or 0
                if any(meter.spent > work + allowance for meter in meters):
                    found.append((member, too_much_work(work)))
        return found

    def keep_only(self, relations: Container[Relation]) -> None:
        """Drop the meters of relations that no view uses."""
        for relation in [relation for relation in self if relation not in relations]:
            del self[relation]
            self._members.pop(relation, None)

    def reset(self) -> None:
        """Reset the meters for the next update."""
        for meter in self.used:
            meter.spent = 0
        self.used.clear()


def _nothing() -> int:
    return 0


def message_meter(budget: int) -> Meter:
    """A meter for matching one message, for all its relations together."""
    return Meter(None, budget, Meters(budget))
