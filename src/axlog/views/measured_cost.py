"""What the evaluations of a view have cost so far, for `explain`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class MeasuredCost:
    """The number of evaluations and their times.

    >>> cost = MeasuredCost()
    >>> cost.note(0.25)
    >>> str(cost)
    'evaluated 1 times, 250 ms on average, 250 ms last'
    """

    evaluations: int = 0
    seconds: float = 0.0
    last: float = 0.0

    def note(self, seconds: float) -> None:
        """Count one evaluation."""
        self.evaluations += 1
        self.seconds += seconds
        self.last = seconds

    def __str__(self) -> str:
        mean = self.seconds / max(1, self.evaluations)
        return (
            f"evaluated {self.evaluations} times, {1000 * mean:.3g} ms on average, "
            f"{1000 * self.last:.3g} ms last"
        )
