"""Percentiles of many durations in little memory: counts in buckets that grow by a twelfth.

A duration from a microsecond to an hour falls into one of some four hundred buckets. A percentile
is the upper bound of its bucket, so it is at most 6 % too high, and never above the longest.
"""

from __future__ import annotations

from math import ceil, log2

_STEPS = 12  # buckets for each doubling
_LEAST = 1e-6
PERCENTILES = (50.0, 95.0, 99.0, 99.9)


class Latencies:
    """Durations, counted.

    >>> some = Latencies()
    >>> for each in (0.001, 0.001, 0.002, 0.5):
    ...     some.note(each)
    >>> some.count, some.longest
    (4, 0.5)
    >>> round(some.percentile(50), 4)
    0.001
    """

    def __init__(self) -> None:
        self.count, self.longest = 0, 0.0
        self._buckets: dict[int, int] = {}

    def note(self, seconds: float) -> None:
        """Add a duration."""
        self.count += 1
        if seconds > self.longest:
            self.longest = seconds
        bucket = ceil(log2(seconds / _LEAST) * _STEPS) if seconds > _LEAST else 0
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1

    def add(self, others: Latencies) -> None:
        """Add all durations of another."""
        self.count += others.count
        self.longest = max(self.longest, others.longest)
        for bucket, number in others._buckets.items():
            self._buckets[bucket] = self._buckets.get(bucket, 0) + number

    def percentile(self, percent: float) -> float:
        """Return the duration that this percentage does not exceed; 0 if there are none."""
        left = self.count * percent / 100
        for bucket in sorted(self._buckets):
            left -= self._buckets[bucket]
            if left <= 1e-9:
                return min(_LEAST * 2 ** (bucket / _STEPS), self.longest)
        return self.longest

    def plain(self) -> dict[str, float]:
        """Return the percentiles in milliseconds, for JSON."""
        said = {f"p{each:g}": self.percentile(each) for each in PERCENTILES}
        return {
            name: round(1000 * each, 3) for name, each in (said | {"max": self.longest}).items()
        }
