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
        self.sides = [make(each) for each in stepping.sides]
        self.name = self.inner.name
        self._stepping = stepping
        self.chain = stepping.chain(pattern.columns, tree.clock)
        self.kept = StepRows(stepping.key, self.chain.first())
        self.kept.take(self.chain.apply(*self._rows(is_counted=False)))

    def _rows(self, *, is_counted: bool) -> tuple[Bag, list[Bag]]:
        """The rows of the pattern, and of the patterns that block rows."""
        found: Bag = {}
        for row in self.inner.rows():
            add(found, row.values_, row.count if is_counted else 1)
        return found, [{row.values_: 1 for row in side.rows()} for side in self.sides]

    @property
    def _parts(self) -> tuple[Maintainer, ...]:
        return (self.inner, *self.sides)

    def rows(self) -> Iterable[Row]:
        if self._has_groups:
            return self.kept.rows()
        chain = self._stepping.chain(self.pattern.columns, self.chain.clock)
        return StepRows(self._stepping.key, chain.apply(*self._rows(is_counted=True))).rows()

    def size(self) -> int:
        return len(self.kept.counts)

    def before(self, delta: Delta) -> None:
        for part in self._parts:
            part.before(delta)

    def after(self, delta: Delta) -> list[Change]:
        return self._pass([part.after(delta) for part in self._parts])

    def later(self, delta: Delta) -> list[Change]:
        return self._pass([part.later(delta) for part in self._parts])

    def catch_up(self) -> list[Change]:
        return self._pass([part.catch_up() for part in self._parts])

    def _pass(self, each: Iterable[Iterable[Change]]) -> list[Change]:
        moved, *others = [_delta(changes) for changes in each]
        return self.kept.take(self.chain.apply(moved, others))

    def pass_time(self, clock: int) -> list[Change]:
        return self.kept.pass_time(self.chain, clock)

    def next_moment(self) -> int | None:
        return self.chain.next_moment()

    @property
    def is_behind(self) -> bool:
        return any(part.is_behind for part in self._parts)

    @property
    def broken(self) -> QueryError | None:
        return next((part.broken for part in self._parts if part.broken), None)

    def details(self) -> tuple[str, ...]:
        return self.inner.details()

    def operators(self) -> tuple[str, ...]:
        return (*self.inner.operators(), *self.chain.lines())

    def close(self) -> None:
        for part in self._parts:
            part.close()


def _delta(changes: Iterable[Change]) -> Bag:
    """Changes as a signed bag."""
    delta: Bag = {}
    for change in changes:
        if change.op == "delete":
            add(delta, change.row.values_, -1)
            continue
        if change.before is not None:
            add(delta, change.before.values_, -1)
        add(delta, change.row.values_, 1)
    return delta
