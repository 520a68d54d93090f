"""The order of the changes that one update makes to a view.

Changes of the clock come first, by their times. Then deletions come before updates, insertions and
`never` changes, each sorted by the values of its row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from axlog.evaluate.sort_keys import exact_row_key
from axlog.views.change import CLOCK, Change, Values

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


def paired(changes: list[Change], key: Callable[[Values], Values]) -> list[Change]:
    """The changes with one `update` in place of a deletion and an insertion with the same key.

    A message that replaces another takes over the ids of its nodes.
    """
    if not {"insert", "delete"} <= {change.op for change in changes}:
        return changes
    by_op: dict[str, dict[Values, Change]] = {"insert": {}, "delete": {}}
    for change in changes:
        if change.op in by_op and change.origin != CLOCK:
            by_op[change.op][key(change.row.values_)] = change
    come, gone = by_op["insert"], by_op["delete"]
    both = come.keys() & gone.keys()
    if not both:
        return changes
    left = {id(each[one]) for each in by_op.values() for one in both}
    kept = [change for change in changes if id(change) not in left]
    for one in both:
        row, before = come[one].row, gone[one].row
        if row.values_ != before.values_:
            kept.append(Change("update", row, before))
    return kept
