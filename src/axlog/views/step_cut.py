"""Steps over rows that are split into parts: those of a part, and the final ones over all parts.

    rows of a part -> local steps -> partial groups, candidates or rows -> final steps -> view

A pattern whose rows are computed in parts (the buckets of Spark) has rows that never meet before a
group, a limit or the view itself puts them together. `cut_steps` finds this place. Before it every
part runs the steps alone; there it hands over, once for a batch,

- groups: the partial aggregates of the rows that came and went (`Group.partial`);
- candidates: what moved among the first rows of the part. A row that is among the first of all is
  among the first of its part;
- rows: the rows that came and went, with their counts.

Law: the rows of `FinalSteps` are those of the whole chain over the rows of all parts together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from axlog.errors import StoreError
from axlog.evaluate.joins import Bag, add_all
from axlog.evaluate.joins import Row as Cells
from axlog.query.columns import Columns
from axlog.query.row_key import RowKey
from axlog.query.steps import (
    Clock,
    Compute,
    Distinct,
    Group,
    Order,
    Positions,
    Step,
    columns_after,
    is_hidden,
)
from axlog.query.syntax_tree import Reference
from axlog.views.change import Change
from axlog.views.operators.group import Group as GroupOperator
from axlog.views.step_chain import StepChain
from axlog.views.step_rows import StepRows
from axlog.views.value_codec import restored_row, saved_row

Owns = Callable[[Cells], bool]
"""Whether a row of the pattern belongs to a part."""
Handover = tuple[Any, ...]
"""What a part hands over, as plain data."""


@dataclass(frozen=True, slots=True)
class StepCut:
    """The steps that every part runs, those over all parts, and what passes between them."""

    local: tuple[Step, ...]
    final: tuple[Step, ...]
    what: Literal["groups", "candidates", "rows"]

    @property
    def has_local_group(self) -> bool:
        """Whether whole groups belong to one part."""
        return any(isinstance(step, Group) for step in self.local)

    def __str__(self) -> str:
        first = self.final[0] if self.final else None
        if isinstance(first, Group):
            by = f" by {', '.join(first.keys)}" if first.keys else ""
            return f"partial aggregates{by} are merged on the driver"
        if isinstance(first, Order):
            return f"the first {first.limit} rows of each bucket are merged on the driver"
        return "equal rows of buckets are merged on the driver"

    def local_chain(self, columns: Columns, text: str = "") -> StepChain:
        """The operators of a part, over rows of a pattern with these columns."""
        return StepChain(self.local, columns, text)

    def columns(self, columns: Columns) -> Columns:
        """The columns of what the final steps get."""
        found = columns_after(self.local, zip(columns, columns.types, strict=True))
        return Columns(found, list(found.values()))


def cut_steps(steps: Sequence[Step], column: str | None) -> StepCut | Literal["whole"] | None:
    """Cut steps whose input is split by the values of a column; None: in any way.

    `whole`: no step needs rows of several parts, and the rows show the column. None if the steps
    cannot be cut.
    """
    whole = tuple(steps)
    names = set() if column is None else {column}  # of the columns that have its values
    for at, step in enumerate(whole):
        if isinstance(step, Clock | Positions) or (isinstance(step, Distinct) and not names):
            return None  # moments are emitted one by one; siblings meet; equal rows count once
        if isinstance(step, Compute):
            names = {
                cell.name
                for cell in step.cells
                if isinstance(cell.expression, Reference) and cell.expression.name in names
            }
        elif isinstance(step, Group):
            names &= set(step.keys)
            if not names:
                return StepCut(whole[:at], whole[at:], "groups")
        elif isinstance(step, Order) and step.limit is not None:
            return StepCut(whole[: at + 1], whole[at:], "candidates")
    if not all(map(is_hidden, names)):
        return "whole"
    return StepCut(whole, (), "rows")


class LocalSteps(StepRows):
    """Collects what the local steps of a part give. It shows no rows and emits no changes."""

    def __init__(self, key: RowKey, cut: StepCut, text: str = "") -> None:
        super().__init__(key, {})
        self._moved: Bag = {}
        self._group = _group(cut, key.pattern.columns, text)
        self.stamp: Callable[[], tuple[int, Any]] = lambda: (0, None)
        """The time and the cause of what moves now."""
        self._last: tuple[int, Any] = (0, None)

    def take(self, delta: Bag) -> list[Change]:
        if delta:
            add_all(self._moved, delta)
            self._last = self.stamp()
        return []

    def hand_over(self) -> Handover | None:
        """What moved since the last time, with its time and cause; None: nothing."""
        moved, self._moved = self._moved, {}
        if not moved:
            return None
        return _packed(moved, self._group), *self._last


class FinalSteps:
    """The steps over all parts."""

    def __init__(self, key: RowKey, cut: StepCut, text: str = "") -> None:
        self._cut, self._key, self._text = cut, key, text
        self._group = _group(cut, key.pattern.columns, text)
        self.chain = StepChain(cut.final, cut.columns(key.pattern.columns), text)
        self.rows = StepRows(key, self.chain.first())

    def load(self, first: Bag, parts: Iterable[Owns]) -> None:
        """Start with the rows of the pattern that are there before any part hands over."""
        given: list[Any] = []
        for owns in parts:
            local = self._cut.local_chain(self._key.pattern.columns, self._text)
            mine = local.apply({row: count for row, count in first.items() if owns(row)})
            given.append(_packed(mine, self._group))
        self.merge(given)

    def merge(self, given: Sequence[Any]) -> list[Change]:
        """Apply what parts handed over; return the changes of the rows."""
        if not given:
            return []
        if self._group is None:
            delta: Bag = {}
            for rows in given:
                add_all(delta, dict(map(restored_row, rows)))
            return self.rows.take(self.chain.apply(delta))
        if any(form != self._group.FORMAT for form, _ in given):
            raise StoreError("AX872", "partial aggregates have another format")
        tables = [
            tuple(restored_row(row) for _, part in given for row in part[at])
            for at in range(self._group.table_count)
        ]
        first, *others = self.chain.operators
        assert isinstance(first, GroupOperator)
        delta = first.merge((first.FORMAT, tuple(tables)))
        for operator in others:
            delta = operator.apply(0, delta)
        return self.rows.take(delta)


def _group(cut: StepCut, columns: Columns, text: str) -> GroupOperator | None:
    """The group whose partial aggregates parts hand over."""
    if cut.what != "groups":
        return None
    group = StepChain(cut.final[:1], cut.columns(columns), text).operators[0]
    assert isinstance(group, GroupOperator)
    return group


def _packed(moved: Bag, group: GroupOperator | None) -> Any:
    if group is None:
        return tuple(map(saved_row, moved.items()))
    form, tables = group.partial(moved)
    return form, tuple(tuple(map(saved_row, table)) for table in tables)
