"""The rows of a view by some of their values, for questions about rows that are not fully given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from axlog.document.times import microseconds
from axlog.evaluate.joins import picker
from axlog.future.truth import column_of
from axlog.query.columns import refuse_unknown_columns
from axlog.query.compile import Column
from axlog.query.pattern import Kind, Pattern
from axlog.query.truth import Truth
from axlog.views.change import Change
from axlog.views.counting.join_outlook import JoinOutlook
from axlog.views.counting.maintainer import Counting

Shown = tuple[Any, ...]
"""Values by output; None: unknown."""


class RowIndex:
    """Counts the rows of a view that agree with given values.

    An index is made for the columns of a question, and follows the changes that it is given. If a
    change passed it by, it is made again when it is next asked.
    """

    def __init__(self, maintainer: Counting) -> None:
        self._maintainer = maintainer
        columns = [column_of(output) for output in maintainer.pattern.outputs]
        # The order of a binding's values among the outputs.
        self._binding = picker([columns.index(column) for column in maintainer.root.columns])
        self._version = -1
        self._counts: dict[tuple[int, ...], dict[Shown, int]] = {}

    @property
    def is_used(self) -> bool:
        """Whether there is an index that should follow changes."""
        return bool(self._counts)

    def has(self, shown: Shown) -> bool:
        """Whether some row agrees with these values."""
        if None not in shown:
            return self._maintainer.has(self._binding(shown))
        at = tuple(i for i, value in enumerate(shown) if value is not None)
        if not at:
            return self._maintainer.has_rows
        if self._version != self._maintainer.version:
            self._counts = {}
            self._version = self._maintainer.version
        counts = self._counts.get(at)
        if counts is None:
            counts = self._counts[at] = {}
            for row in self._maintainer.rows():
                _count(counts, tuple(row.values_[i] for i in at), 1)
        return tuple(shown[i] for i in at) in counts

    def take(self, changes: Iterable[Change]) -> None:
        """Follow the changes of one update."""
        if self._version == self._maintainer.version - 1:
            self._version = self._maintainer.version
            for change in changes:
                if change.op in ("insert", "delete"):
                    sign = 1 if change.op == "insert" else -1
                    for at, counts in self._counts.items():
                        _count(counts, tuple(change.row.values_[i] for i in at), sign)


def _count(counts: dict[Shown, int], key: Shown, sign: int) -> None:
    total = counts.get(key, 0) + sign
    if total:
        counts[key] = total
    else:
        del counts[key]


class RowQuestion:
    """Reads the rows that callers ask about, by the outputs of a pattern."""

    def __init__(self, pattern: Pattern) -> None:
        outputs = pattern.outputs
        self.columns: list[Column] = [column_of(output) for output in outputs]
        self.names = pattern.columns
        self._allowed = frozenset(self.names)
        self._times = [n for n, output in zip(self.names, outputs, strict=True)
                       if output.kind is Kind.TIME]  # fmt: skip

    def shown(self, row: Mapping[str, Any]) -> Shown:
        """The values that are asked about, times in microseconds; None where any may be."""
        if not row.keys() <= self._allowed:
            refuse_unknown_columns(self.names, row)
        if self._times:
            row = {
                **row,
                **{n: microseconds(row[n]) for n in self._times if row.get(n) is not None},
            }
        return tuple([row.get(name) for name in self.names])

    def known(self, shown: Shown) -> dict[Column, Any]:
        """The columns with known values."""
        return {c: v for c, v in zip(self.columns, shown, strict=True) if v is not None}


def status_of(has: Callable[[Shown], bool], outlook: JoinOutlook, question: RowQuestion,
              row: Mapping[str, Any]) -> Truth:  # fmt: skip
    """The truth of a row of a view that a join makes.

    `has`: whether the view has a row that agrees with values. A value that is not given may be any.
    """
    shown = question.shown(row)
    if has(shown):
        return Truth.TRUE
    return Truth.POSSIBLE if outlook.may_come(question.known(shown)) else Truth.NEVER
