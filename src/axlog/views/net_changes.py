"""Net changes: the net effect of a sequence of changes of one view (docs/meaning.md).

An insertion and a later deletion of a row cancel each other, and so do a deletion and a later
insertion of the same row. Consecutive updates of a row become one. A deletion and a later insertion
with the same key and other values are one update: a group that was empty in between. Rows are
distinguished by their key and their values: several rows may show the same values (the values of
two nodes).

Changes that the clock causes are never cancelled, and nothing is cancelled across them: a row that
the clock deletes and inserts again is emitted twice. `never` cancels nothing either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from axlog.views.change import CLOCK, Change, Row, Values, identity

Changes = dict[Values, list[Change]]


def net(changes: Iterable[Change]) -> list[Change]:
    """The changes of one view, without those that later changes cancel."""
    balance = _Balance()
    for change in changes:
        balance.take(change)
    return balance.changes()


@dataclass(slots=True)
class _Balance:
    """The net effect so far: changes by inserted or current row, and by deleted row."""

    gained: Changes = field(default_factory=dict)
    lost: Changes = field(default_factory=dict)
    moved: Changes = field(default_factory=dict)  # by current row; `before` is the first state
    others: list[Change] = field(default_factory=list)
    by_key: dict[Values, set[Values]] = field(default_factory=dict)  # identities of changed rows

    def take(self, change: Change) -> None:
        if change.op == "never":
            self.others.append(change)
        elif change.origin == CLOCK:
            self._seal(change)
        elif change.op == "insert":
            if _pop(self.lost, change.row) is None:
                self._put(self.gained, change)
        elif change.op == "delete":
            self._lose(change)
        elif change.before is not None:
            self._move(change, change.before)

    def _seal(self, change: Change) -> None:
        """Keep a change of the clock, and the changes of the rows with its key before it."""
        rows = {identity(row) for row in (change.row, change.before) if row is not None}
        if change.row.key_ is not None:
            self._pair(self.by_key.get(change.row.key_, ()))
            rows |= self.by_key.pop(change.row.key_, set())
        for row in rows:
            for by_row in (self.gained, self.lost, self.moved):
                self.others += by_row.pop(row, ())
        self.others.append(change)

    def _lose(self, change: Change) -> None:
        if _pop(self.gained, change.row) is not None:
            return
        moved = _pop(self.moved, change.row)
        if moved is not None and moved.before is not None:
            # Another row may have been inserted with the first values of this one.
            self._lose(replace(change, row=moved.before))
            return
        self._put(self.lost, change)

    def _move(self, change: Change, before: Row) -> None:
        if _pop(self.gained, before) is not None:
            self.take(replace(change, op="insert", before=None))
            return
        moved = _pop(self.moved, before)
        if moved is not None:
            change = replace(change, before=moved.before)
        if change.before is None or identity(change.row) != identity(change.before):
            self._put(self.moved, change)

    def _put(self, changes: Changes, change: Change) -> None:
        found = identity(change.row)
        changes.setdefault(found, []).append(change)
        if change.row.key_ is not None:
            self.by_key.setdefault(change.row.key_, set()).add(found)

    def _pair(self, rows: Iterable[Values]) -> None:
        """Turn a deletion and an insertion of some rows with the same key into an update."""
        rows = tuple(rows)
        gone = {
            change.row.key_: change
            for row in rows
            for change in self.lost.get(row, ())
            if change.row.key_ is not None
        }
        for row in rows if gone else ():
            for change in tuple(self.gained.get(row, ())):
                key = change.row.key_
                lost = None if key is None else gone.pop(key, None)
                if lost is not None and lost.position < change.position:
                    _pop(self.gained, change.row)
                    _pop(self.lost, lost.row)
                    self._put(self.moved, replace(change, op="update", before=lost.row))

    def changes(self) -> list[Change]:
        if self.lost and self.gained:
            self._pair(dict.fromkeys([*self.lost, *self.gained]))
        rows = (self.lost, self.moved, self.gained)
        kept = [change for by_row in rows for each in by_row.values() for change in each]
        return sorted([*kept, *self.others], key=lambda change: change.position)


def _pop(changes: Changes, row: Row) -> Change | None:
    found = identity(row)
    each = changes.get(found)
    if not each:
        return None
    last = each.pop()
    if not each:
        del changes[found]
    return last
