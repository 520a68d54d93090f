"""`--check`: compare the view with its definition after every update (law 1 of docs/design.md).

The rows and counts of the view must be those of re-evaluation, and the emitted changes must lead
from the rows before to the rows after. Every check re-evaluates the document, so it is slow.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.view import View
from axlog.views.change import Change, Row
from axlog.views.choose import recomputed
from axlog.views.reevaluate import Reevaluate

Rows = Counter[tuple[str, int]]


class Check:
    """Compares a view with re-evaluation, step by step."""

    def __init__(self, document: Document, view: View) -> None:
        self._document = document
        self._view = view
        self._emitted = self._shown(view.rows())
        self.steps = 0

    def holds(self, changes: Iterable[Change]) -> bool:
        """Whether the view is correct after an update that emitted these changes."""
        self.steps += 1
        for change in changes:
            if change.op in ("delete", "update"):
                self._emitted[_text(change.row if change.before is None else change.before)] -= 1
            if change.op in ("insert", "update"):
                self._emitted[_text(change.row)] += 1
        found, wanted = self._found(), self._wanted()
        return found == wanted and +self._emitted == self._shown(self._view.rows())

    def difference(self, place: str) -> str:
        """Describe where the two sides differ."""
        found, wanted = self._found(), self._wanted()
        lines = [f"check failed at {place}: the view differs from re-evaluation"]
        lines += _side("the view has", found - wanted)
        lines += _side("re-evaluation has", wanted - found)
        if found == wanted:
            shown = self._shown(self._view.rows())
            lines += _side("the changes lead to", self._emitted - shown)
            lines += _side("the view has", shown - self._emitted)
        return "\n".join(lines)

    def _found(self) -> Rows:
        return Counter((_text(row), row.count) for row in self._view.rows())

    def _wanted(self) -> Rows:
        tree = maintained(self._document).nodes()
        fresh = recomputed(tree, self._view.query, Reevaluate.name)
        return Counter((_text(row), row.count) for row in fresh)

    @staticmethod
    def _shown(rows: Iterable[Row]) -> Counter[str]:
        return Counter(_text(row) for row in rows)


def _text(row: Row) -> str:
    return json.dumps(row.to_dict(), ensure_ascii=False)


def _side(label: str, rows: Counter[tuple[str, int]] | Counter[str]) -> list[str]:
    lines = []
    for row in sorted(rows, key=str):
        text, count = row if isinstance(row, tuple) else (row, None)
        lines.append(f"  {label} {text}" + (f" with count {count}" if count is not None else ""))
    return lines
