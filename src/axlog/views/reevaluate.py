"""The first maintainer and the baseline: the reference before and after, the difference as
changes.
"""

from __future__ import annotations

from collections.abc import Iterable

from axlog import reference
from axlog.document.delta import Delta
from axlog.document.tree import Tree
from axlog.language.pattern import Pattern
from axlog.views.change import Change, Row
from axlog.views.maintainer import Maintainer


class Reevaluate(Maintainer):
    """Recompute and diff: right for every pattern, at the cost of the whole document."""

    name = "reevaluate"

    def __init__(self, tree: Tree, pattern: Pattern) -> None:
        super().__init__(tree, pattern)
        self._answers = reference.rows(tree, pattern)

    def rows(self) -> Iterable[Row]:
        columns = self.pattern.columns
        return [Row(columns, answer.values, answer.count) for answer in self._answers.values()]

    def after(self, delta: Delta) -> list[Change]:
        old, self._answers = self._answers, reference.rows(self.tree, self.pattern)
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
