"""Rows and changes: what a view shows and what it says when it changes.

A row is a mapping from output names to values with its derivation count. A change is one row that a
view gained (`insert`), lost (`delete`), had modified (`update`, with `before`), or that was under
way and can no longer come (`never`). A count moving between two positive numbers is no change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from axlog.document.ids import Id

Values = tuple[Any, ...]


class Row(Mapping[str, Any]):
    """One row: output names to values; ids are `Id`s, times integer microseconds, the rest text."""

    __slots__ = ("columns", "count", "values_")

    def __init__(self, columns: tuple[str, ...], values: Values, count: int = 1) -> None:
        self.columns = columns
        self.values_ = values
        self.count = count

    def __getitem__(self, column: str) -> Any:
        try:
            return self.values_[self.columns.index(column)]
        except ValueError:
            raise KeyError(column) from None

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

    def plain(self) -> dict[str, Any]:
        """The row for JSON: ids as their text."""
        return {column: _plain(value) for column, value in self.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Id):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


@dataclass(slots=True, unsafe_hash=True)  # frozen ones take many times as long to make
class Change:
    """One row that a view gained, lost or had modified, when, and as the view's how-manieth.

    It is not to be changed: listeners are given the same one.
    """

    op: str  # insert, delete, update, never
    row: Row
    before: Row | None = None
    view: str | None = None
    time: int = 0
    sequence: int = 0

    def numbered(self, view: str, time: int, sequence: int) -> Change:
        return Change(self.op, self.row, self.before, view, time, sequence)

    def plain(self) -> dict[str, Any]:
        """The change for JSON: `op`, `row`, and `before` where the row was modified."""
        said: dict[str, Any] = {"op": self.op, "row": self.row.plain()}
        if self.before is not None:
            said["before"] = self.before.plain()
        return said

    def __repr__(self) -> str:
        was = f", before={self.before!r}" if self.before is not None else ""
        return f"Change({self.op!r}, {self.row!r}{was})"
