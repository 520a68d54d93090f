"""How long an analysis may search: ways to come about that it puts together, at most.

Possible rows are joins of what is there with what may come, and their number can be exponential in
the pattern. An analysis that may get there runs inside `bounded`, which counts: beyond `LEAST` ways
and `WAYS` times the nodes that it is about the question is undecided (AX502), after a second or so
and not after a night. Ways are counted, not seconds: the verdict does not depend on the machine.
What is kept as data arrives is bounded in the same way by the nodes of each message.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from axlog.errors import UndecidedError

LEAST = 100_000
WAYS = 50


class Effort:
    """What is left of the ways that one analysis may look at."""

    __slots__ = ("left", "most")

    def __init__(self, most: int) -> None:
        self.most = self.left = most

    def spend(self, ways: int) -> None:
        """Count ways; raises when there are none left."""
        self.left -= ways
        if self.left < 0:
            raise UndecidedError(
                "AX502",
                f"rows can come about in too many ways: {self.most:,} were looked at",
                advice="ask a view with fewer branches, or one whose branches share variables",
            )


_effort: ContextVar[Effort | None] = ContextVar("effort", default=None)


@contextmanager
def bounded(nodes: int) -> Iterator[None]:
    """Count what is done inside for a document, or a message, of this size; an analysis inside
    another one is part of it."""
    if _effort.get() is not None:
        yield
        return
    token = _effort.set(Effort(max(LEAST, WAYS * nodes)))
    try:
        yield
    finally:
        _effort.reset(token)


def spend(ways: int) -> None:
    """Count ways of the analysis that runs, if one is bounded."""
    effort = _effort.get()
    if effort is not None:
        effort.spend(ways)
