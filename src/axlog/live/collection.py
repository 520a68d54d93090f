"""What a collection dropped: streams, subtrees and rows, each with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from axlog.document.times import Shown, plain


@dataclass(frozen=True, slots=True)
class Dropped:
    """A stream, subtree or set of rows that collection dropped, with the reason."""

    kind: str  # stream, nodes or rows
    what: str  # the stream, the path of the subtree, or the pattern of the join
    count: int  # nodes or rows; 1 for a stream
    why: str
    clock: Shown

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values for JSON."""
        return {"kind": self.kind, "what": self.what, "count": self.count, "why": self.why,
                "clock": plain(self.clock)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Collection:
    """The result of one collection. `kept` is the reason if the document was not collected."""

    clock: Shown
    dropped: tuple[Dropped, ...] = ()
    kept: str | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that were closed."""
        return tuple(each.what for each in self.dropped if each.kind == "stream")

    @property
    def nodes(self) -> int:
        """The number of nodes dropped from the document."""
        return sum(each.count for each in self.dropped if each.kind == "nodes")

    @property
    def rows(self) -> int:
        """The number of rows dropped from the engine's state since the last collection."""
        return sum(each.count for each in self.dropped if each.kind == "rows")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values for JSON."""
        return {"clock": plain(self.clock), "streams": list(self.streams), "nodes": self.nodes,
                "rows": self.rows, "kept": self.kept,
                "dropped": [each.to_dict() for each in self.dropped]}  # fmt: skip
