"""The order of the changes that one update makes to a view.

Changes of the clock come first, by their times. Then deletions come before updates, insertions and
`never` changes, each sorted by the values of its row.
"""

from __future__ import annotations

from typing import Any

from axlog.evaluate.sort_keys import exact_row_key
from axlog.views.change import CLOCK, Change

_OPS = {"delete": 0, "update": 1, "insert": 2, "never": 3}


def by_operation(change: Change) -> int:
    return _OPS[change.op]


def by_values(change: Change) -> tuple[int, int, int, tuple[Any, ...]]:
    values = change.row.values_
    if change.op == "never":  # unknown values sort first
        values = tuple((value is not None, value) for value in values)
    if change.origin == CLOCK:
        return 0, change.microseconds, _OPS[change.op], values
    return 1, 0, _OPS[change.op], values


def by_typed_values(change: Change) -> tuple[int, int, int, tuple[Any, ...]]:
    """The same, for values of several types."""
    values = exact_row_key(change.row.values_)
    if change.origin == CLOCK:
        return 0, change.microseconds, _OPS[change.op], values
    return 1, 0, _OPS[change.op], values
