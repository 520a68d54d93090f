"""Steps over the rows of any maintainer.

The adapter turns the changes of another maintainer into a signed bag and passes it through the
chain of operators. Changes do not tell how counts move. So a query with groups is kept as a pattern
with an id for every node that it binds (`aggregate_patterns.counted_once`), whose rows count once
each. Without groups, only whether a row is there decides what the operators show, and the counts
are computed from those of the pattern when rows are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from axlog.document.delta import Delta
from axlog.document.tree import Tree
from axlog.errors import QueryError
from axlog.evaluate.joins import Bag, add
from axlog.query.aggregate_patterns import counted_once
from axlog.query.pattern import Pattern
from axlog.query.steps import has_groups
from axlog.views.change import Change, Row
from axlog.views.maintainer import Maintainer
from axlog.views.step_rows import Stepping, StepRows


class Stepped(Maintainer):
    """Keeps the rows of a query with steps over the rows that another maintainer keeps."""

    def __init__(
        self, tree: Tree, stepping: Stepping, make: Callable[[Pattern], Maintainer]
    ) -> None:
        """`make`: creates the maintainer of the pattern."""
        pattern = stepping.key.pattern
        self._has_groups = has_groups(stepping.key.steps)
        if self._has_groups:
            pattern = counted_once(pattern)
        super().__init__(tree, pattern)
        self.inner = make(pattern)
        self.name = self.inner.name
        self._stepping = stepping
        self.chain = stepping.chain(pattern.columns)
        self.kept = StepRows(stepping.key, self.chain.first())
        self.kept.take(self.chain.apply(self._rows(is_counted=False)))

    def _rows(self, *, is_counted: bool) -> Bag:
        found: Bag = {}
        for row in self.inner.rows():
            add(found, row.values_, row.count if is_counted else 1)
        return found

    def rows(self) -> Iterable[Row]:
        if self._has_groups:
            return self.kept.rows()
        chain = self._stepping.chain(self.pattern.columns)
        return StepRows(self._stepping.key, chain.apply(self._rows(is_counted=True))).rows()

    def size(self) -> int:
        return len(self.kept.counts)

    def before(self, delta: Delta) -> None:
        self.inner.before(delta)

    def after(self, delta: Delta) -> list[Change]:
        return self._pass(self.inner.after(delta))

    def later(self, delta: Delta) -> list[Change]:
        return self._pass(self.inner.later(delta))

    def catch_up(self) -> list[Change]:
        return self._pass(self.inner.catch_up())

    def _pass(self, changes: Iterable[Change]) -> list[Change]:
        delta: Bag = {}
        for change in changes:
            if change.op == "delete":
                add(delta, change.row.values_, -1)
                continue
            if change.before is not None:
                add(delta, change.before.values_, -1)
            add(delta, change.row.values_, 1)
        return self.kept.take(self.chain.apply(delta))

    @property
    def is_behind(self) -> bool:
        return self.inner.is_behind

    @property
    def broken(self) -> QueryError | None:
        return self.inner.broken

    def details(self) -> tuple[str, ...]:
        return self.inner.details()

    def operators(self) -> tuple[str, ...]:
        return (*self.inner.operators(), *self.chain.lines())

    def close(self) -> None:
        self.inner.close()
