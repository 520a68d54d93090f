"""The rows of a view with steps: the output of its chain of operators, and the changes to it.

A row whose count leaves or reaches zero is a change. A row that goes and one that comes with the
same key are one `update`: a moved aggregate, a changed value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from axlog.errors import QueryError
from axlog.evaluate.joins import Bag, picker
from axlog.evaluate.joins import Row as Cells
from axlog.query.columns import Columns
from axlog.query.pattern import Pattern
from axlog.query.row_key import RowKey
from axlog.query.steps import clock_of, side_patterns
from axlog.views.change import CLOCK, Change, Row

if TYPE_CHECKING:
    from axlog.views.operators.group import Group
    from axlog.views.step_chain import OnValueError, StepChain


@dataclass(frozen=True, slots=True)
class Stepping:
    """What maintainers need to keep a query with steps."""

    key: RowKey
    text: str = ""
    on_value_error: OnValueError = "null"

    @property
    def rejects(self) -> bool:
        """Whether an update with a value that the query cannot compute is refused."""
        return bool(self.key.steps) and self.on_value_error == "reject"

    def check(self) -> None:
        """Refuse to reject values that appear as the clock advances."""
        if self.rejects and clock_of(self.key.steps) is not None:
            raise QueryError(
                "AX211",
                'on_value_error="reject" with `now`: no update can be refused when time passes',
                expected='on_value_error="null"',
            )

    def chain(self, columns: Columns, clock: int) -> StepChain:
        """The operators of the steps, over rows of a pattern with these columns."""
        from axlog.views.step_chain import StepChain

        return StepChain(self.key.steps, columns, self.text, self.on_value_error, clock=clock)

    @property
    def sides(self) -> tuple[Pattern, ...]:
        """The patterns beside that of the query whose rows decide which rows it has."""
        return tuple(side_patterns(self.key.steps))


class StepRows:
    """The rows that a chain of operators gives, with counts."""

    def __init__(self, key: RowKey, first: Bag) -> None:
        self.columns = key.kept
        self._pick = picker(key.positions)
        self._is_all = key.is_all  # the key is the whole row: no row replaces another
        self.counts: Bag = dict(first)

    def __len__(self) -> int:
        return len(self.counts)

    def take(self, delta: Bag) -> list[Change]:
        """Add to the counts; return the changes."""
        counts, columns = self.counts, self.columns
        gone: list[tuple[Cells, int]] = []
        come: list[tuple[Cells, int]] = []
        for row, count in delta.items():
            old = counts.get(row, 0)
            new = old + count
            if new:
                counts[row] = new
            if not old:
                come.append((row, new))
            elif not new:
                del counts[row]
                gone.append((row, old))
        if not gone or not come or self._is_all:
            return [
                *(Change("delete", Row(columns, row, count)) for row, count in gone),
                *(Change("insert", Row(columns, row, count)) for row, count in come),
            ]
        return self._paired(gone, come)

    def pass_time(self, chain: StepChain, clock: int) -> list[Change]:
        """Advance the chain; return the changes of each moment with its time."""
        changes: list[Change] = []
        for moment, delta in chain.advance(clock):
            for change in self.take(delta):
                change.origin, change.microseconds = CLOCK, moment
                changes.append(change)
        return changes

    def _paired(self, gone: list[tuple[Cells, int]], come: list[tuple[Cells, int]]) -> list[Change]:
        columns, pick = self.columns, self._pick
        before = {pick(row): Row(columns, row, count) for row, count in gone}
        changes: list[Change] = []
        for row, count in come:
            old = before.pop(pick(row), None)
            now = Row(columns, row, count)
            changes.append(Change("insert", now) if old is None else Change("update", now, old))
        return [*(Change("delete", row) for row in before.values()), *changes]

    def rows(self) -> Iterable[Row]:
        """The current rows."""
        columns = self.columns
        return (Row(columns, row, count) for row, count in self.counts.items())


class GroupRows(StepRows):
    """The rows of a view that has one for each group (`StepChain.group_path`), by their keys.

    No row is looked up by its aggregates: the hash of a decimal takes longer than its addition.
    """

    def __init__(self, key: RowKey, first: Bag) -> None:
        self._rows: dict[Cells, Row] = {}
        self._columns = key.columns
        super().__init__(key, first)

    @property
    def counts(self) -> Bag:
        """The rows, each with the count 1."""
        return {row.values_: 1 for row in self._rows.values()}

    @counts.setter
    def counts(self, counts: Bag) -> None:
        self._rows = {self._pick(row): self._shown(row) for row in counts}

    def __len__(self) -> int:
        return len(self._rows)

    def _shown(self, row: Cells) -> Row:
        return Row(self._columns, row, 1, None if self._is_all else self._pick(row))

    def rows(self) -> Iterable[Row]:
        return iter(self._rows.values())

    def take(self, delta: Bag) -> list[Change]:
        pick, rows = self._pick, self._rows
        gone = {pick(row): row for row, count in delta.items() if count < 0}
        come = {pick(row): row for row, count in delta.items() if count > 0}
        before = {key: rows.pop(key) for key in gone}
        rows.update((key, self._shown(row)) for key, row in come.items())
        return [
            *(Change("delete", row) for key, row in before.items() if key not in come),
            *(
                Change("update", rows[key], before[key])
                if key in before
                else Change("insert", rows[key])
                for key in come
            ),
        ]

    def move(self, before: Cells | None, after: Cells | None) -> list[Change]:
        """Replace the row of a group by another; None: there is none."""
        rows = self._rows
        if after is None:
            return [] if before is None else [Change("delete", rows.pop(self._pick(before)))]
        key = self._pick(after)
        was = rows.get(key)
        now = rows[key] = Row(self._columns, after, 1, None if self._is_all else key)
        return [Change("insert", now) if was is None else Change("update", now, was)]


class ShownGroups(GroupRows):
    """The rows of a view that shows the rows of its group operator as they are.

    The operator has them: they are not kept a second time.
    """

    def __init__(self, key: RowKey, group: Group) -> None:
        self.group = group
        super().__init__(key, {})

    @property
    def counts(self) -> Bag:
        """The rows, each with the count 1."""
        return dict.fromkeys(self.group.rows(), 1)

    @counts.setter
    def counts(self, counts: Bag) -> None:
        """Nothing to set: the operator has the rows."""

    def __len__(self) -> int:
        return self.group.group_count

    def rows(self) -> Iterable[Row]:
        return map(self._shown, self.group.rows())

    def take(self, delta: Bag) -> list[Change]:
        pick, shown = self._pick, self._shown
        gone = {pick(row): shown(row) for row, count in delta.items() if count < 0}
        come = {pick(row): shown(row) for row, count in delta.items() if count > 0}
        return [
            *(Change("delete", row) for key, row in gone.items() if key not in come),
            *(
                Change("update", row, gone[key]) if key in gone else Change("insert", row)
                for key, row in come.items()
            ),
        ]

    def move(self, before: Cells | None, after: Cells | None) -> list[Change]:
        if after is None:
            return [] if before is None else [Change("delete", self._shown(before))]
        columns, key = self._columns, None if self._is_all else self._pick(after)
        now = Row(columns, after, 1, key)
        if before is None:
            return [Change("insert", now)]
        return [Change("update", now, Row(columns, before, 1, key))]


def checked_policy(given: str) -> OnValueError:
    """The option `on_value_error`; raises AX211 for an unknown value."""
    if given in ("null", "reject"):
        return "null" if given == "null" else "reject"
    raise QueryError("AX211", f"on_value_error={given!r}", expected="null or reject")
