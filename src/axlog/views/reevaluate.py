"""Re-evaluation: the definition evaluated after each update, with the difference as changes.

It accepts every pattern and is the baseline of the other maintainers. The definition tries every
way to match a pattern, which may be exponential in the pattern. An evaluation beyond its limit,
which is proportional to the document, is refused. A view that reaches the limit by an update is set
aside and does not hold up the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter

from axlog.document.delta import Delta
from axlog.document.tree import Tree
from axlog.errors import QueryError
from axlog.evaluate import definition
from axlog.query.pattern import Pattern
from axlog.views.change import Change, Row
from axlog.views.maintainer import Maintainer
from axlog.views.measured_cost import MeasuredCost

WORK = 50
"""Attempts to match a pattern node that are allowed for each node of the document."""
LEAST = 50_000
"""Attempts that are allowed on any document."""


class Reevaluate(Maintainer):
    """Recomputes all rows and compares: accepts every pattern, at the cost of the document."""

    name = "reevaluate"

    def __init__(self, tree: Tree, pattern: Pattern, work: int | None = None) -> None:
        """`work`: the attempts that an update may make; None: in proportion to the document."""
        super().__init__(tree, pattern)
        self._work = work
        self._parts = sum(1 for _ in pattern.nodes())
        self._refused: QueryError | None = None
        self._cost = MeasuredCost()
        self._answers = self._evaluated()

    def _evaluated(self) -> dict[definition.Key, definition.Answer]:
        began = perf_counter()
        try:
            return self._defined()
        finally:
            self._cost.note(perf_counter() - began)

    def operators(self) -> tuple[str, ...]:
        """What evaluations have cost so far."""
        return (str(self._cost),)

    def _defined(self) -> dict[definition.Key, definition.Answer]:
        most = max(LEAST, WORK * self._parts * len(self.tree)) if self._work is None else self._work
        return definition.rows(self.tree, self.pattern, most)

    def rows(self) -> Iterable[Row]:
        if self._refused is not None:
            raise self._refused
        columns = self.pattern.columns
        return [Row(columns, answer.values, answer.count) for answer in self._answers.values()]

    @property
    def broken(self) -> QueryError | None:
        return self._refused

    def after(self, delta: Delta) -> list[Change]:
        if self._refused is not None:
            return []
        try:
            old, self._answers = self._answers, self._evaluated()
        except QueryError as error:
            self._refused = error.kept()
            return []
        columns = self.pattern.columns
        changes = [
            Change("delete", Row(columns, answer.values, answer.count))
            for key, answer in old.items()
            if key not in self._answers
        ]
        for key, answer in self._answers.items():
            row = Row(columns, answer.values, answer.count)
            if key not in old:
                changes.append(Change("insert", row))
            elif old[key].values != answer.values:
                changes.append(Change("update", row, Row(columns, old[key].values, old[key].count)))
        return changes
