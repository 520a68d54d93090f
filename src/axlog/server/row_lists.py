"""A view's rows as the page lists them: true, possible and never.

Each line has a truth value; a possible one also has its deadline and its needs. Only the shown
lines are created, however many rows the view has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from axlog.document.times import microseconds
from axlog.server.history import is_found

TRUTHS = ("possible", "true", "never")
MOST = 1000
"""Maximum number of lines of a request."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The selection of a page."""

    document: str = ""
    view: str = ""
    truth: str = ""  # one of TRUTHS, or all
    find: str = ""
    show: int = 100
    start: int = 0  # lines before the first shown one, if one truth is chosen

    @property
    def sought(self) -> str:
        return self.find.casefold().strip()

    @property
    def last(self) -> int:
        """The number of lines up to the last shown one."""
        return self.start + self.show


@dataclass(slots=True)
class Prospect:
    """The truth and possible rows of a view, or the reason why they are missing."""

    truth: str | None = None
    count: int = 0
    rows: Sequence[Mapping[str, Any]] = ()
    reason: str | None = None
    note: str = ""  # why there can be no row


def by_deadline(one: Mapping[str, Any]) -> tuple[Any, ...]:
    """The sort key of possible rows: by deadline and values, those without known values last."""
    row, deadline = one["row"].values(), one.get("deadline")
    is_open = all(value is None for value in row)
    until = 0 if deadline is None else microseconds(deadline)
    return (is_open, deadline is None, until, [(v is None, str(v)) for v in row])


@dataclass(slots=True)
class Listing:
    """A view's rows by truth, and their numbers."""

    true: Iterable[Mapping[str, Any]]
    counts: dict[str, int]
    prospect: Prospect = field(default_factory=Prospect)
    never: Sequence[Mapping[str, Any]] = ()

    def plain(self, asked: Asked) -> dict[str, Any]:
        """Return the list for JSON."""
        prospect = self.prospect
        lines, found = self._lines(asked)
        note = {"note": prospect.note} if prospect.note else {}
        return {
            "counts": {**self.counts, "possible": prospect.count},
            "found": found,
            "truth": prospect.truth,
            "reason": prospect.reason,
            **note,
            "lines": lines,
            "start": asked.start,
        }

    def _lines(self, asked: Asked) -> tuple[list[dict[str, Any]], dict[str, int] | None]:
        """Return the shown lines, and of a search the number of rows that it finds."""
        show = max(1, min(asked.show, MOST))
        start = asked.start if asked.truth else 0
        counted: dict[str, int] | None = {} if asked.sought else None
        kept: dict[str, list[dict[str, Any]]] = {}
        for name in TRUTHS:
            if counted is None and asked.truth not in ("", name):
                continue
            rest = self.each(name, asked.sought)
            taken = list(islice(rest, start, start + show))
            if counted is not None:
                counted[name] = (start if taken else 0) + len(taken) + sum(1 for _ in rest)
            if asked.truth in ("", name):
                kept[name] = taken
        return _shared(kept, show), counted

    def selected(self, asked: Asked) -> Iterator[dict[str, Any]]:
        """Yield all lines that a selection has, by truth value."""
        for truth in TRUTHS:
            if asked.truth in ("", truth):
                yield from self.each(truth, asked.sought)

    def each(self, truth: str, sought: str = "") -> Iterator[dict[str, Any]]:
        """Yield all lines of a truth value that a search finds."""
        if truth == "true":
            return ({"truth": truth, "row": row} for row in self.true if is_found(row, sought))
        given = self.prospect.rows if truth == "possible" else self.never
        return ({"truth": truth, **one} for one in given if is_found(one["row"], sought))


def _shared(found: Mapping[str, list[dict[str, Any]]], show: int) -> list[dict[str, Any]]:
    """Return an even share of each truth, then the rest."""
    share = show // max(1, len(found))
    spare = show - sum(min(share, len(lines)) for lines in found.values())
    shown: list[dict[str, Any]] = []
    for lines in found.values():
        more = max(0, min(spare, len(lines) - share))
        spare -= more
        shown += lines[: share + more]
    return shown
