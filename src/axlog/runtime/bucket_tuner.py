"""The tuner beside a query: what streams are still needed for reaches executors and sources.

From time to time each bucket computes from its engine which relations its streams are still needed
for, and reports it with its batch. A stream is needed for what any bucket of a unit needs. The
driver merges the reports into a small file beside the checkpoint, named by the batch that it
follows from. Tasks read the newest file older than their batch, so a batch that Spark repeats uses
the same filters. Nothing is restarted.

Law 5: rows and changes are the same with and without tuning. It holds because an unneeded relation
never becomes needed again: a report stays true, and reports of several batches can be merged. Views
added later are separate units, whose streams are needed in full.

Messages that are sent whole are filtered by their bucket, which reports the patterns for sources. A
stream that deletes thus restricts the filters of its own messages, and of the messages that its
deletions reach or that a view joins with them; the other streams are filtered.

Not handled: checkpoints that are not a local path (nothing is tuned there); one definition that is
maintained over many documents. (Paper 3, sections 3.4 to 3.6.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axlog.runtime.plan import SparkPlan

Wanted = Mapping[str, Sequence[int]]
"""By stream, the numbers of the relations that it is needed for."""
_KEPT = 3
"""Files that are kept: a repeated batch is at most one behind."""


@dataclass(frozen=True)
class Tuned:
    """What streams are needed for, of the units that have reported."""

    units: Mapping[str, Wanted] = field(default_factory=dict)
    patterns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By stream, the patterns for its source; only streams known for all units are included."""

    def plain(self) -> dict[str, Any]:
        return {"units": self.units, "patterns": self.patterns}


class Tuning:
    """Merges the reports of buckets, on the driver."""

    def __init__(self, plan: SparkPlan, place: str, before: Tuned | None = None) -> None:
        self._plan = plan
        self._place = place
        self._claims: dict[str, dict[int, Mapping[str, Any]]] = {}
        self.now = before or Tuned()

    def receive(self, batch: int, claims: Mapping[tuple[str, int], Mapping[str, Any]]) -> bool:
        """Add the reports of buckets (unit and number) of a batch; return whether anything is
        new.
        """
        for (unit, number), claim in claims.items():
            self._claims.setdefault(unit, {})[number] = claim
        found = self._together()
        if found.plain() == self.now.plain():
            return False
        self.now = found
        _write(self._place, batch, found)
        return True

    def _together(self) -> Tuned:
        """Return what is needed, for units whose buckets have all reported."""
        units = {name: {s: sorted(n) for s, n in w.items()} for name, w in self.now.units.items()}
        patterns: dict[str, set[str]] = {}
        reported = 0
        for unit in self._plan.units:
            claims = self._claims.get(unit.name, {})
            if len(claims) < unit.buckets:
                continue
            reported += 1
            wanted: dict[str, set[int]] = {stream: set() for stream in self._plan.streams}
            for claim in claims.values():
                for stream, (numbers, texts) in claim.items():
                    wanted[stream] |= set(numbers)
                    patterns.setdefault(stream, set()).update(texts)
            units[unit.name] = {stream: sorted(n) for stream, n in wanted.items()}
        is_whole = reported == len(self._plan.units)
        if not is_whole:
            return Tuned(units, self.now.patterns)
        return Tuned(units, {s: sorted(patterns.get(s, ())) for s in self._plan.streams})


def tuned_at(place: str, batch: int | None = None) -> Tuned:
    """Return what was known before a batch; without one, everything known."""
    found = [n for n in _batches(place) if batch is None or n < batch]
    if not found:
        return Tuned()
    saved = json.loads((_directory(place) / f"{max(found)}.json").read_text(encoding="utf-8"))
    return Tuned(saved["units"], saved["patterns"])


def _directory(place: str) -> Path:
    return Path(place) / "tuned"


def _batches(place: str) -> list[int]:
    if "://" in place:
        return []
    return sorted(int(path.stem) for path in _directory(place).glob("*.json"))


def _write(place: str, batch: int, found: Tuned) -> None:
    directory = _directory(place)
    directory.mkdir(parents=True, exist_ok=True)
    aside = directory / f"{batch}.part"
    aside.write_text(json.dumps(found.plain()), encoding="utf-8")
    aside.replace(directory / f"{batch}.json")
    for old in _batches(place)[:-_KEPT]:
        (directory / f"{old}.json").unlink(missing_ok=True)


def forget(place: str) -> None:
    """Remove all filters."""
    for batch in _batches(place):
        (_directory(place) / f"{batch}.json").unlink(missing_ok=True)
