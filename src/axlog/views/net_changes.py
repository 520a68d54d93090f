"""Net changes: what a sequence of changes of one view comes to (DESIGN section 3, Rows).

A row that came and went says nothing, one that went and came back the same says nothing, updates in
a row become one. Rows are told apart by their values, and several rows may show the same ones (the
values of two nodes): whichever of them is meant, a reader's rows come out the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from axlog.views.change import Change, Row

Changes = dict[Row, list[Change]]


def net(changes: Iterable[Change]) -> list[Change]:
    """The changes of one view with nothing said that a later one takes back."""
    balance = _Balance()
    for change in changes:
        balance.take(change)
    return balance.changes()


@dataclass(slots=True)
class _Balance:
    """What is known so far: by the rows that came or are there now, and by those that went."""

    gained: Changes = field(default_factory=dict)
    lost: Changes = field(default_factory=dict)
    moved: Changes = field(default_factory=dict)  # by the row as it is now; `before` is the first
    others: list[Change] = field(default_factory=list)

    def take(self, change: Change) -> None:
        if change.op == "insert":
            if _pop(self.lost, change.row) is None:
                _put(self.gained, change)
        elif change.op == "delete":
            self._lose(change)
        elif change.before is not None:
            self._move(change, change.before)
        else:
            self.others.append(change)

    def _lose(self, change: Change) -> None:
        if _pop(self.gained, change.row) is not None:
            return
        moved = _pop(self.moved, change.row)
        if moved is not None and moved.before is not None:
            # Another row may have come that shows what this one showed at first.
            self._lose(replace(change, row=moved.before))
            return
        _put(self.lost, change)

    def _move(self, change: Change, before: Row) -> None:
        if _pop(self.gained, before) is not None:
            self.take(replace(change, op="insert", before=None))
            return
        moved = _pop(self.moved, before)
        if moved is not None:
            change = replace(change, before=moved.before)
        if change.row != change.before:
            _put(self.moved, change)

    def changes(self) -> list[Change]:
        rows = (self.lost, self.moved, self.gained)
        kept = [change for by_row in rows for each in by_row.values() for change in each]
        return sorted([*kept, *self.others], key=lambda change: change.sequence)


def _put(changes: Changes, change: Change) -> None:
    changes.setdefault(change.row, []).append(change)


def _pop(changes: Changes, row: Row) -> Change | None:
    each = changes.get(row)
    if not each:
        return None
    last = each.pop()
    if not each:
        del changes[row]
    return last
