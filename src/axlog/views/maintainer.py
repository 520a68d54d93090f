"""What an algorithm must do to keep a view: see a delta before and after it is applied.

    changes = maintainer.after(delta)   with   rows() == reference.rows(tree, pattern), counts
    included

is the law of every maintainer (DESIGN 8.1). `before` runs when removed subtrees still hang in
place; it must not fail for reasons of the delta, and must leave no trace if the update is
abandoned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from axlog.document.delta import Delta
from axlog.document.tree import Tree
from axlog.errors import QueryError
from axlog.query.pattern import Pattern
from axlog.views.change import Change, Row


class Maintainer(ABC):
    """Keeps the rows of one pattern over one tree."""

    name: str
    """What the user calls it by."""

    def __init__(self, tree: Tree, pattern: Pattern) -> None:
        self.tree = tree
        self.pattern = pattern

    @staticmethod
    def refusal(pattern: Pattern) -> str | None:
        """Why this algorithm cannot keep the pattern, or None if it can."""
        return None

    @abstractmethod
    def rows(self) -> Iterable[Row]:
        """The present rows, in no order."""

    def size(self) -> int:
        """How many rows there are."""
        return sum(1 for _ in self.rows())

    def before(self, delta: Delta) -> None:  # noqa: B027  # most have nothing to look at
        """Look at a delta that is about to be applied."""

    @abstractmethod
    def after(self, delta: Delta) -> list[Change]:
        """The changes that an applied delta makes."""

    def later(self, delta: Delta) -> list[Change]:
        """Take an applied delta in as far as must be now; the rest waits for `catch_up`."""
        return self.after(delta)

    def catch_up(self) -> list[Change]:
        """Do what `later` left: the changes that it makes."""
        return []

    @property
    def is_behind(self) -> bool:
        """Whether something waits for `catch_up`."""
        return False

    @property
    def broken(self) -> QueryError | None:
        """Why it answers no more: its rows became more than a view may have. None: it answers."""
        return None

    def told(self) -> tuple[str, ...]:
        """What it did for the last update, in lines for `explain`."""
        return ()

    def close(self) -> None:  # noqa: B027  # most share nothing
        """Let go of what is shared with other views."""


class PutAside(Maintainer):
    """In the place of one that answers no more: it says why, and follows nothing."""

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
