"""The progress of a run: messages, kept messages, rows, lagging sources and sinks."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from axlog.errors import AxlogError
from axlog.live.internals import maintained
from axlog.runtime.instances import Instances
from axlog.views.change import Change

_SHARE = 50
"""At most one part in this many of the time is spent on counting possible rows."""


@dataclass(frozen=True, slots=True)
class Lagging:
    """An unreachable source or sink."""

    name: str
    error: str
    seconds: float  # since it was last reachable
    tries: int


@dataclass(slots=True)
class Progress:
    """The state of a run at one moment."""

    batch: int = 0
    messages: int = 0
    kept: int = 0  # messages that some view may need
    refused: int = 0
    rows: int = 0
    possible: int | None = None  # None if undecided, or too expensive to count
    never: int = 0
    changes: int = 0
    state: int = 0  # nodes of all documents
    documents: int = 0
    held: int = 0  # updates held back for a slower stream
    lives: str = "in this process"  # where the state is, and on Spark why
    lagging: list[Lagging] = field(default_factory=list)
    set_aside: dict[str, str] = field(default_factory=dict)  # views that exceeded a limit, and why
    seconds: float = 0.0

    def count(self, changes: Iterable[Change]) -> None:
        """Add the changes of a batch."""
        self.count_ops(Counter(change.op for change in changes))

    def count_ops(self, ops: Counter[str]) -> None:
        """Add the changes of a batch, of which the number by operation is known."""
        self.changes += ops.total()
        self.rows += ops["insert"] - ops["delete"]
        self.never += ops["never"]

    def plain(self) -> dict[str, Any]:
        """Return the progress for JSON."""
        return {**asdict(self), "seconds": round(self.seconds, 3)}


class Outlooks:
    """Counts possible rows, rarely enough to cost little."""

    def __init__(self) -> None:
        self._next = 0.0
        self._found: int | None = None

    def count(self, instances: Iterable[Instances]) -> int | None:
        """Return how many rows may still come, as of the last count."""
        started = time.monotonic()
        if started < self._next:
            return self._found
        self._found = _possible(instances)
        taken = time.monotonic() - started
        self._next = started + _SHARE * taken
        return self._found


def _possible(instances: Iterable[Instances]) -> int | None:
    total = 0
    for one in instances:
        if len(one.documents) > 100:
            return None
        for document in one.documents.values():
            for view in document.views.values():
                try:
                    total += len(view.possible())
                except AxlogError:  # undecided, or the needed data was not kept
                    return None
    return total


def kept(instances: Iterable[Instances]) -> int:
    """Return the number of accepted messages that some view may need."""
    return sum(
        status.kept
        for one in instances
        for document in one.documents.values()
        for status in document.streams().values()
    )


def state(instances: Iterable[Instances]) -> int:
    """Return the number of nodes of all documents; stored messages that are not parsed yet are
    excluded.
    """
    return sum(
        len(maintained(document).tree) for one in instances for document in one.documents.values()
    )
