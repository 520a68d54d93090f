"""A view's rows as the page lists them: those that hold, may still come, and never come.

Each line has a truth, and a possible one its deadline and what it needs. Only so many lines are
made as are shown: what a person can look at, whatever the view has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from axlog.document.times import microseconds
from axlog.server.history import is_found

TRUTHS = ("possible", "true", "never")
MOST = 1000
"""Lines that a page can ask for."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a page has chosen to look at."""

    widget: str = ""
    view: str = ""
    truth: str = ""  # one of TRUTHS, or all
    find: str = ""
    show: int = 100

    @property
    def sought(self) -> str:
        return self.find.casefold().strip()


@dataclass(slots=True)
class Prospect:
    """What may still come of a view: truth, possible rows; or the reason why it is not said."""

    truth: str | None = None
    count: int = 0
    rows: Sequence[Mapping[str, Any]] = ()
    reason: str | None = None


def by_deadline(one: Mapping[str, Any]) -> tuple[Any, ...]:
    """What orders possible rows: of which nothing is known last, else by deadline and values."""
    row, deadline = one["row"].values(), one.get("deadline")
    is_open = all(value is None for value in row)
    until = 0 if deadline is None else microseconds(deadline)
    return (is_open, deadline is None, until, [(v is None, str(v)) for v in row])


@dataclass(slots=True)
class Listing:
    """A view's rows by truth, and how many there are of each."""

    true: Iterable[Mapping[str, Any]]
    counts: dict[str, int]
    prospect: Prospect = field(default_factory=Prospect)
    never: Sequence[Mapping[str, Any]] = ()

    def lines(self, asked: Asked) -> list[dict[str, Any]]:
        """The lines that are shown: an even share of each truth, and what is left over."""
        show = max(1, min(asked.show, MOST))
        found = {
            name: list(islice(self._of(name, asked.sought), show))
            for name in TRUTHS
            if asked.truth in ("", name)
        }
        share = show // max(1, len(found))
        spare = show - sum(min(share, len(lines)) for lines in found.values())
        shown: list[dict[str, Any]] = []
        for lines in found.values():
            more = max(0, min(spare, len(lines) - share))
            spare -= more
            shown += lines[: share + more]
        return shown

    def _of(self, truth: str, sought: str) -> Iterable[dict[str, Any]]:
        if truth == "true":
            return ({"truth": truth, "row": row} for row in self.true if is_found(row, sought))
        given = self.prospect.rows if truth == "possible" else self.never
        return ({"truth": truth, **one} for one in given if is_found(one["row"], sought))

    def plain(self, asked: Asked) -> dict[str, Any]:
        """For JSON."""
        prospect = self.prospect
        return {
            "counts": {**self.counts, "possible": prospect.count},
            "truth": prospect.truth,
            "reason": prospect.reason,
            "lines": self.lines(asked),
        }
