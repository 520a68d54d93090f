"""Changes in a list, for tests and programs."""

from __future__ import annotations

from collections.abc import Sequence

from axlog.connect.kinds import Options, Origin, SinkKind
from axlog.views.change import Change


class MemoryOptions(Options):
    """Options of the sink `memory`: none."""


class MemorySink:
    """Every batch that was written, by its number."""

    exactly_once = True

    def __init__(self, options: MemoryOptions | None = None, origin: Origin | None = None) -> None:
        self.batches: dict[int, list[Change]] = {}

    @property
    def changes(self) -> list[Change]:
        """Return all changes so far, in order."""
        return [change for batch in sorted(self.batches) for change in self.batches[batch]]

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Store a batch; a repeated batch changes nothing."""
        self.batches.setdefault(batch, list(changes))

    def close(self) -> None:
        """Nothing to close."""


MEMORY = SinkKind("memory", MemoryOptions, MemorySink, "Changes in a list of this process.")
