"""A limit on the number of steps of an analysis.

Possible rows are joins of existing data with data that may arrive, and their number can be
exponential in the pattern. Such an analysis runs inside `bounded`, which counts the combinations
(ways) that it examines. Beyond `LEAST` ways, and `WAYS` times the nodes of the document, the
question is undecided (AX502), after about a second. Ways are counted rather than seconds, so that
verdicts do not depend on the machine. Scenarios that are maintained as data arrives are limited in
the same way, by the nodes of each message.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token

from axlog.errors import UndecidedError

LEAST = 100_000
WAYS = 50
FIRST = 20_000
"""As `LEAST`, where a search for one scenario follows (`scenario_search.py`)."""


class Effort:
    """The remaining budget of one analysis."""

    __slots__ = ("left", "most")

    def __init__(self, most: int) -> None:
        self.most = self.left = most

    def spend(self, ways: int) -> None:
        """Spend part of the budget; raises AX502 when it is exhausted."""
        self.left -= ways
        if self.left < 0:
            raise UndecidedError(
                "AX502",
                f"there are too many ways in which rows can appear: {self.most:,} were examined",
                advice="use a query with fewer branches, or with branches that share variables",
            )


_effort: ContextVar[Effort | None] = ContextVar("effort", default=None)


class bounded:
    """Limit the work inside the block, for a document or message with this many nodes.

    A nested analysis uses the budget of the outer one. A class: short questions enter it, too.
    """

    __slots__ = ("_most", "_token")

    def __init__(self, nodes: int, least: int = LEAST) -> None:
        self._most = max(least, WAYS * nodes)
        self._token: Token[Effort | None] | None = None

    def __enter__(self) -> None:
        if _effort.get() is None:
            self._token = _effort.set(Effort(self._most))

    def __exit__(self, *raised: object) -> None:
        if self._token is not None:
            _effort.reset(self._token)


@contextmanager
def within(effort: Effort) -> Iterator[None]:
    """Let all analyses inside the block share a budget, also with those of other blocks."""
    token = _effort.set(effort)
    try:
        yield
    finally:
        _effort.reset(token)


def spend(ways: int) -> None:
    """Spend part of the budget of the running analysis, if it has one."""
    effort = _effort.get()
    if effort is not None:
        effort.spend(ways)


def left() -> int:
    """The rest of the budget of the running analysis; 0 if it has none."""
    effort = _effort.get()
    return 0 if effort is None else effort.left
