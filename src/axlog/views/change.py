"""Rows of views, and the changes that views emit.

A row is a mapping from output names to values, with its derivation count. A change is one row that
was inserted into a view (`insert`), deleted (`delete`) or updated (`update`, with `before`), or a
possible row that can no longer come (`never`). A count that moves between two positive numbers is
not a change.

Internally, `Row.values_` and `Change.microseconds` hold times as integer microseconds: every `int`
among the values of a row is a time. Access by column, and `Change.time`, return times in the format
of the document (`document/times.py`): a `Row` returns seconds, a `DatedRow` returns dates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from axlog.document.ids import Id
from axlog.document.times import Shown, Times, plain, shown

Values = tuple[Any, ...]


class Row(Mapping[str, Any]):
    """One row: output names to values. Ids are `Id`s, times seconds or dates, the rest strings."""

    __slots__ = ("columns", "count", "values_")
    times: ClassVar[Times] = "seconds"

    def __init__(self, columns: tuple[str, ...], values: Values, count: int = 1) -> None:
        self.columns = columns
        self.values_ = values
        self.count = count

    def __getitem__(self, column: str) -> Any:
        try:
            value = self.values_[self.columns.index(column)]
        except ValueError:
            raise KeyError(column) from None
        return value if isinstance(value, str) else _shown(value, self.times)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __eq__(self, other: object) -> bool:
        return dict(self) == dict(other) if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.columns, self.values_))

    def __repr__(self) -> str:
        inside = ", ".join(f"{column}={value!r}" for column, value in self.items())
        return f"Row({inside})" if self.count == 1 else f"Row({inside}; count={self.count})"

    def to_dict(self) -> dict[str, Any]:
        """The row for JSON: ids as strings, times as seconds or ISO strings."""
        values = zip(self.columns, self.values_, strict=True)
        return {column: _plain(value, self.times) for column, value in values}


class DatedRow(Row):
    """A row of a document created with `times="dates"`."""

    __slots__ = ()
    times = "dates"


def timed_row(row: Row, times: Times) -> Row:
    """The row with its times in this format."""
    kind = DatedRow if times == "dates" else Row
    return row if type(row) is kind else kind(row.columns, row.values_, row.count)


def _shown(value: Any, times: Times) -> Any:
    if type(value) is int:
        return shown(value, times)
    return tuple(_shown(item, times) for item in value) if type(value) is tuple else value


def _plain(value: Any, times: Times) -> Any:
    if type(value) is int:
        return plain(shown(value, times))
    if isinstance(value, Id):
        return str(value)
    return [_plain(item, times) for item in value] if type(value) is tuple else value


@dataclass(slots=True, unsafe_hash=True)  # frozen dataclasses take much longer to create
class Change:
    """A row inserted, deleted or updated in a view, with its time and sequence number.

    Do not modify a change: all subscribers receive the same object.
    """

    op: str  # insert, delete, update, never
    row: Row
    before: Row | None = None
    view: str | None = None
    microseconds: int = 0
    sequence: int = 0

    @property
    def time(self) -> Shown:
        """The time of the update that caused it: seconds, or a date if the row has dates."""
        return shown(self.microseconds, self.row.times)

    def numbered(self, view: str, microseconds: int, sequence: int) -> Change:
        return Change(self.op, self.row, self.before, view, microseconds, sequence)

    def to_dict(self) -> dict[str, Any]:
        """The change for JSON: `op`, `row`, and `before` for an update."""
        said: dict[str, Any] = {"op": self.op, "row": self.row.to_dict()}
        if self.before is not None:
            said["before"] = self.before.to_dict()
        return said

    def __repr__(self) -> str:
        was = f", before={self.before!r}" if self.before is not None else ""
        return f"Change({self.op!r}, {self.row!r}{was})"


def timed_change(change: Change, times: Times) -> Change:
    """The change with its times in this format."""
    before = None if change.before is None else timed_row(change.before, times)
    return replace(change, row=timed_row(change.row, times), before=before)
