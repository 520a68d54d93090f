"""Net changes: what a sequence of changes of one view comes to (DESIGN section 3, Rows).

A row that came and went says nothing, one that went and came back the same says nothing, updates in
a row become one. Rows are told apart by their values; `key` columns of updates keep theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from axlog.views.change import Change, Row


def net(changes: Iterable[Change]) -> list[Change]:
    """The changes of one view with nothing said that a later one takes back."""
    gained: dict[Row, list[Change]] = {}
    lost: dict[Row, list[Change]] = {}
    others: list[Change] = []
    moved: dict[Row, tuple[Row, Change]] = {}  # the row as it is now, to what it was before
    for change in changes:
        if change.op == "insert":
            if lost.get(change.row):
                lost[change.row].pop()
            else:
                gained.setdefault(change.row, []).append(change)
        elif change.op == "delete":
            _lose(change, gained, lost, moved)
        elif change.op == "update" and change.before is not None:
            _move(change, change.before, gained, moved)
        else:
            others.append(change)
    updates = [
        replace(change, row=row, before=before)
        for row, (before, change) in moved.items()
        if row != before
    ]
    kept = [c for rows in (lost, gained) for each in rows.values() for c in each]
    return sorted([*kept, *updates, *others], key=lambda change: change.sequence)


def _lose(
    change: Change,
    gained: dict[Row, list[Change]],
    lost: dict[Row, list[Change]],
    moved: dict[Row, tuple[Row, Change]],
) -> None:
    if gained.get(change.row):
        gained[change.row].pop()
    elif change.row in moved:
        before, _ = moved.pop(change.row)
        lost.setdefault(before, []).append(replace(change, row=before))
    else:
        lost.setdefault(change.row, []).append(change)


def _move(
    change: Change,
    before: Row,
    gained: dict[Row, list[Change]],
    moved: dict[Row, tuple[Row, Change]],
) -> None:
    if gained.get(before):
        gained[before].pop()
        gained.setdefault(change.row, []).append(replace(change, op="insert", before=None))
    elif before in moved:
        first, _ = moved.pop(before)
        moved[change.row] = (first, change)
    else:
        moved[change.row] = (before, change)
