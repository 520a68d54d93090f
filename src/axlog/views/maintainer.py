"""The interface of a maintainer: an algorithm that keeps the rows of a view through updates.

A maintainer sees each delta twice, before and after it is applied. The law of every maintainer
(law 1 in docs/design.md):

    changes = maintainer.after(delta)   with   rows() == definition.rows(tree, pattern), counts
    included

`before` runs while removed subtrees are still in place. It must not fail because of the delta, and
must leave no trace if the update is abandoned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from axlog.document.delta import Delta
from axlog.document.tree import Tree
from axlog.errors import QueryError
from axlog.query.compile import Relation
from axlog.query.pattern import Pattern
from axlog.views.change import Change, Row


class Maintainer(ABC):
    """Keeps the rows of one pattern over one tree."""

    name: str
    """The name that users select it by."""
    is_ordered = False
    """Whether `rows` gives the rows in the order of the query."""
    has_items = False
    """Whether `items` gives the result of the query."""

    def __init__(self, tree: Tree, pattern: Pattern) -> None:
        self.tree = tree
        self.pattern = pattern

    @staticmethod
    def refusal(pattern: Pattern) -> str | None:
        """Why this algorithm cannot keep the pattern, or None if it can."""
        return None

    def load(self) -> None:  # noqa: B027  # most evaluate on first use
        """Evaluate the query now, so that its errors are raised now."""

    @abstractmethod
    def rows(self) -> Iterable[Row]:
        """The current rows, in no particular order. Each may be made when it is read."""

    def items(self) -> list[Any]:
        """The result of a query whose rows are items, in its order, as people read it."""
        raise NotImplementedError

    def size(self) -> int:
        """The number of rows."""
        return sum(1 for _ in self.rows())

    def before(self, delta: Delta) -> None:  # noqa: B027  # most need nothing before
        """Inspect a delta that is about to be applied."""

    @abstractmethod
    def after(self, delta: Delta) -> list[Change]:
        """Follow an applied delta; return the changes."""

    def later(self, delta: Delta) -> list[Change]:
        """Follow an applied delta as far as necessary now; `catch_up` does the rest."""
        return self.after(delta)

    def catch_up(self) -> list[Change]:
        """Do the work that `later` deferred; return the changes."""
        return []

    def pass_time(self, clock: int) -> list[Change]:
        """Follow the clock; return the changes that time alone causes, with their times.

        Called before the clock moves, and before the update that moves it.
        """
        return []

    def next_moment(self) -> int | None:
        """The first moment after the clock at which time alone may change rows; None: never."""
        return None

    @property
    def is_behind(self) -> bool:
        """Whether deferred work waits for `catch_up`."""
        return False

    @property
    def broken(self) -> QueryError | None:
        """The error for which it was set aside, such as too many rows; None if it works."""
        return None

    def details(self) -> tuple[str, ...]:
        """A report of the last update, as lines for `explain`."""
        return ()

    def operators(self) -> tuple[str, ...]:
        """The operators that keep rows for the view, as lines for `explain`."""
        return ()

    def relations(self) -> Iterable[Relation] | None:
        """The relations of the shared engine that it reads; None: not known."""
        return None

    def close(self) -> None:  # noqa: B027  # most share nothing
        """Release state that is shared with other views."""


class PutAside(Maintainer):
    """Replaces a maintainer that was set aside: holds the error and follows no updates."""

    name = "none"

    def __init__(self, tree: Tree, pattern: Pattern, error: QueryError) -> None:
        super().__init__(tree, pattern)
        self._error = error

    @property
    def broken(self) -> QueryError | None:
        return self._error

    def rows(self) -> Iterable[Row]:
        raise self._error

    def after(self, delta: Delta) -> list[Change]:
        return []
