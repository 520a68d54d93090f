"""Back-off: the pause between two attempts doubles, up to a longest one.

Sources, sinks, webhooks and publishers retry by it. The caller decides what counts as a failure,
and after how many attempts it gives up.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses between attempts, in seconds.

    >>> [Backoff(0.2, 1.0).pause(failures) for failures in (1, 2, 3, 4)]
    [0.2, 0.4, 0.8, 1.0]
    """

    first: float = 0.2
    longest: float = 30.0

    def pause(self, failures: int) -> float:
        """How long to wait after this many failures in a row, at least one."""
        return min(self.first * 2.0 ** min(failures - 1, 60), self.longest)
