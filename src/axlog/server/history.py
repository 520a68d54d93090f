"""The history of a run on the live page: recent changes, single rows, plots, sizes, rates.

Everything is bounded, whatever the length of the run. The curve of a size has a maximum number of
points; beyond it every second point is dropped, so that the curve always covers the whole run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from time import monotonic
from typing import Any

from axlog.connect.protocol import Refusal
from axlog.query.columns import Columns
from axlog.server.plots import ROWS, Plots, plotted
from axlog.server.row_history import Event, RowHistory, row_name
from axlog.views.change import Change, Row

CHANGES, NEVERS, LETTERS, POINTS = 200, 500, 50, 240
ORIGINS = 100_000
"""Maximum number of rejected messages that are distinguished."""
_OVER = 8.0
"""Seconds over which rates are computed."""


class History:
    """The newest changes, `never` rows and dead letters."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._started = monotonic()
        self._changes: deque[dict[str, Any]] = deque(maxlen=CHANGES)
        self._count = 0
        self._nevers: dict[tuple[str, str], deque[dict[str, Any]]] = {}
        self._never_counts: dict[tuple[str, str], int] = {}
        self._rows = RowHistory()
        self._plots = Plots()
        self._letters: deque[dict[str, str]] = deque(maxlen=LETTERS)
        self._refused = 0
        self._origins: set[str] = set()  # of the rejected messages
        self._curves: dict[str, Curve] = {}
        self._totals: dict[str, deque[tuple[float, int]]] = {}

    @property
    def seconds(self) -> float:
        """Seconds since the history began."""
        return monotonic() - self._started

    def record(
        self,
        document: str,
        change: Change,
        view: str | None = None,
        columns: Columns | None = None,
        key: Sequence[str] = (),
    ) -> None:
        """Add a change; its view may have another name within its document."""
        name = view or change.view or ""
        entry = {"document": document, **change.to_dict(), "view": name}
        entry["name"] = row_name(entry["row"], key)
        with self._lock:
            self._count += 1
            self._changes.append({"number": self._count, **entry})
            self._rows.record(document, name, key, change)
            if change.op == "never":
                at = (document, name)
                self._nevers.setdefault(at, deque(maxlen=NEVERS)).append(entry)
                self._never_counts[at] = self._never_counts.get(at, 0) + 1
            elif columns is not None and (numbers := plotted(columns, key)):
                time = change.microseconds / 1e6
                is_gone = change.op == "delete"
                self._plots.take(document, name, numbers, entry["row"], time, is_gone)

    def begin(
        self, document: str, view: str, columns: Columns, key: Sequence[str],
        rows: Callable[[int], Iterable[Row]], at: float,
    ) -> None:  # fmt: skip
        """Start the plots of a view with its current rows, if it has any numbers to plot."""
        numbers = plotted(columns, key)
        if numbers:
            known = rows(ROWS)  # not under the lock: the document has one, too
            with self._lock:
                for row in known:
                    self._plots.take(document, view, numbers, row.to_dict(), at)

    def see_possible(
        self, document: str, view: str, key: Sequence[str], rows: Iterable[Mapping[str, Any]],
        clock: Any,
    ) -> None:  # fmt: skip
        """Record when the page first listed rows as possible."""
        with self._lock:
            self._rows.see_possible(document, view, key, rows, clock)

    def events(self, document: str, view: str, name: Mapping[str, Any]) -> list[Event]:
        """Return the events of a row, oldest first."""
        with self._lock:
            return self._rows.of(document, view, name)

    def plot(self, document: str, view: str) -> dict[str, Any]:
        """Return the curves of a view."""
        with self._lock:
            return self._plots.curves(document, view)

    def refuse(self, refused: Refusal, code: str = "") -> None:
        """Add a rejected message. One that several documents read and reject counts once."""
        error = refused.error.strip()
        head = error.partition(" ")[0].strip("[]:")
        is_code = head.startswith("AX") and head[2:].isdigit()
        text = error.partition(" ")[2] if is_code else error
        with self._lock:
            if refused.origin in self._origins:
                for letter in self._letters:
                    if (
                        letter["origin"] == refused.origin
                        and refused.stream not in letter["stream"]
                    ):
                        letter["stream"] += f", {refused.stream}"
                return
            self._refused += 1
            if len(self._origins) < ORIGINS:
                self._origins.add(refused.origin)
            self._letters.append(
                {
                    "stream": refused.stream,
                    "origin": refused.origin,
                    "code": code or (head if is_code else "refused"),
                    "error": text.strip()[:1000],
                }
            )

    def changes(self) -> tuple[list[dict[str, Any]], int]:
        """Return the newest changes, newest first, and their total number."""
        with self._lock:
            return list(self._changes)[::-1], self._count

    def nevers(self, document: str, view: str) -> tuple[list[dict[str, Any]], int]:
        """Return the newest `never` rows, newest first, and their total number."""
        with self._lock:
            found = self._nevers.get((document, view), ())
            return list(found)[::-1], self._never_counts.get((document, view), 0)

    def letters(self) -> tuple[list[dict[str, str]], int]:
        """Return the newest dead letters, and their total number."""
        with self._lock:
            return list(self._letters)[::-1], self._refused

    def measure(self, name: str, size: int) -> None:
        """Record a current size."""
        with self._lock:
            self._curves.setdefault(name, Curve()).add(self.seconds, size)

    def sizes(self, name: str) -> list[tuple[float, int]]:
        """Return a size over time."""
        with self._lock:
            return list(self._curves[name].points) if name in self._curves else []

    def rate(self, name: str, total: int) -> float:
        """Return the growth of a total per second, given its current value."""
        now = monotonic()
        with self._lock:
            points = self._totals.setdefault(name, deque())
            if not points or now - points[-1][0] >= 0.5:
                points.append((now, total))
            while len(points) > 2 and now - points[0][0] > _OVER:
                points.popleft()
            then, before = points[0]
        passed = now - then
        return round((total - before) / passed, 1) if passed >= 0.5 else 0.0


class Curve:
    """A size over time in a bounded number of points."""

    def __init__(self, interval: float = 0.9) -> None:
        self.points: list[tuple[float, int]] = []
        self._interval = interval

    def add(self, at: float, size: int) -> None:
        """Add a point, or move the last one if it is too near."""
        points = self.points
        if len(points) > 1 and at - points[-2][0] < self._interval:
            points[-1] = (round(at, 1), size)
            return
        points.append((round(at, 1), size))
        if len(points) > POINTS:
            del points[1:-1:2]
            self._interval *= 2


def is_found(row: Mapping[str, Any], find: str) -> bool:
    """Whether some value of a row contains this text, ignoring case."""
    return not find or any(find in str(value).casefold() for value in row.values())
