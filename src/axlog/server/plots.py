"""Computed numbers of views over time, for the plots of the live page.

A view with numbers outside its key, such as the totals of groups, has a curve for each row and
number. The time is the document's. The number of rows and of points is bounded; beyond it a curve
loses every second point, so that it always covers the whole run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from axlog.query.columns import Columns

ROWS, POINTS = 24, 240
"""Maximum number of rows of a view that are plotted, and of points of a curve."""
_NUMBERS = ("integer", "decimal", "double")


def plotted(columns: Columns, key: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a view that can be plotted: numbers that are not in its key."""
    typed = zip(columns, columns.types, strict=True)
    return tuple(name for name, kind in typed if kind in _NUMBERS and name not in key)


class Plots:
    """The curves of all views; its caller locks it."""

    def __init__(self) -> None:
        self._views: dict[tuple[str, str], dict[str, _Row]] = {}
        self._left_out: dict[tuple[str, str], set[str]] = {}

    def take(
        self, document: str, view: str, numbers: Sequence[str], row: Mapping[str, Any], at: float,
        is_gone: bool = False,
    ) -> None:  # fmt: skip
        """Add the numbers of a row at a time in seconds, or its end."""
        name = {key: value for key, value in row.items() if key not in numbers}
        text = json.dumps(name, ensure_ascii=False)
        rows = self._views.setdefault((document, view), {})
        found = rows.get(text)
        if found is None:
            if len(rows) >= ROWS:
                left = self._left_out.setdefault((document, view), set())
                if len(left) < 100_000:
                    left.add(text)
                return
            found = rows[text] = _Row(name, {number: Steps() for number in numbers})
        for number in numbers:
            value = None if is_gone else _number(row[number])
            found.curves[number].add(at, value)

    def curves(self, document: str, view: str) -> dict[str, Any]:
        """Return the curves of a view for JSON, and the number of rows without one."""
        rows = self._views.get((document, view), {})
        return {
            "rows": [
                {"name": row.name, "points": {n: list(c.points) for n, c in row.curves.items()}}
                for row in rows.values()
            ],
            "more": len(self._left_out.get((document, view), ())),
        }


class _Row:
    __slots__ = ("curves", "name")

    def __init__(self, name: dict[str, Any], curves: dict[str, Steps]) -> None:
        self.name = name
        self.curves = curves


class Steps:
    """A number that is constant between its changes, in a bounded number of points."""

    def __init__(self) -> None:
        self.points: list[tuple[float, float | None]] = []
        self._apart = 0.0  # the least time between two points

    def add(self, at: float, value: float | None) -> None:
        """Add a point; one that is too near replaces the one before."""
        points = self.points
        if len(points) > 1 and at - points[-2][0] < self._apart:
            points[-1] = (at, value)
            return
        points.append((at, value))
        if len(points) > POINTS:
            self._apart = max(2 * self._apart, 2 * (points[-1][0] - points[0][0]) / POINTS)
            del points[1:-1:2]


def _number(value: Any) -> float | None:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if found - found == 0 else None  # JSON has no infinities
