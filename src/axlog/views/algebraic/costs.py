"""What it took to maintain a view, by kind of update, and to evaluate it anew: the less is done.

P5 6.5 compares the two afterwards; here every update that concerns the view is measured, and an
update of a kind that took longer to propagate than the whole view takes to evaluate is evaluated.
Updates are of one kind if they have the same labels at the same depths and the same order of size
(a power of two of nodes). The first of a kind is maintained, and where the two are near, one is
evaluated to know the other side better than from the first evaluation. Noise only ever adds to a
measurement, so the least of the last few counts; now and then a kind is maintained again, as
documents drift.

Results do not depend on it: both ways end in the same table of rows with signed counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import thread_time

from axlog.views.algebraic.deltas import DeltaTables
from axlog.views.algebraic.labels import Moved

LAST = 3
"""So many measurements count."""
MARGIN = 1.2
"""Evaluating is chosen where maintaining takes so many times as long."""
AGAIN = 16
"""After so many evaluations a kind of update is maintained again, to know whether it still costs
more."""
MOST = 1024
"""So many kinds of update are known at a time."""

FAR = 10
"""Where evaluating took so many times as long, the size of the relations is not asked."""

Kind = tuple[Moved, int]


def kind_of(tables: DeltaTables) -> Kind:
    """Which updates an update is like."""
    return tables.labels, tables.size.bit_length()


@dataclass(slots=True)
class Cost:
    """Of one kind of update: what maintaining took last, and how often it was evaluated since."""

    last: deque[float] = field(default_factory=lambda: deque(maxlen=LAST))
    evaluated: int = 0

    @property
    def least(self) -> float:
        return min(self.last)


class Measured:
    """The costs of one view, in seconds."""

    def __init__(self, clock: Callable[[], float] = thread_time) -> None:
        self.clock = clock
        self._kinds: dict[Kind, Cost] = {}
        self._evaluations: deque[tuple[float, int]] = deque(maxlen=LAST)

    def evaluated(self, seconds: float, size: int) -> None:
        """The view was evaluated, over relations of so many nodes."""
        self._evaluations.append((seconds, size))

    def maintained(self, kind: Kind, seconds: float) -> None:
        """An update was propagated by its terms."""
        cost = self._kinds.get(kind)
        if cost is None:
            if len(self._kinds) >= MOST:
                self._kinds.clear()
            cost = self._kinds[kind] = Cost()
        cost.last.append(seconds)
        cost.evaluated = 0

    def evaluation(self, size: int) -> float:
        """What evaluating takes over relations of so many nodes; it grows with them."""
        return min(
            (seconds * (size + 1) / (then + 1) for seconds, then in self._evaluations),
            default=float("inf"),
        )

    def advice(self, kind: Kind, size: Callable[[], int]) -> str:
        """Why an update should be evaluated; nothing where it should be maintained."""
        cost = self._kinds.get(kind)
        if cost is None or not self._evaluations:
            return ""
        if FAR * cost.least < self._evaluations[-1][0]:
            return ""
        evaluation = self.evaluation(size())
        if len(self._evaluations) < 2 and 2 * cost.least > evaluation:
            return f"measured once more: maintaining an update like this took {_said(cost.least)}"
        if cost.least <= MARGIN * evaluation:
            return ""
        cost.evaluated += 1
        if cost.evaluated > AGAIN:
            return ""
        return (
            f"maintaining an update like this takes {_said(cost.least)}, "
            f"evaluating the view {_said(evaluation)}"
        )

    def lines(self, kind: Kind | None, size: int) -> list[str]:
        """Both sides, for `explain`."""
        cost = None if kind is None else self._kinds.get(kind)
        if not self._evaluations or cost is None:
            return []
        chosen = "evaluated" if cost.evaluated else "maintained"
        return [
            f"measured: maintaining an update like the last {_said(cost.least)}, "
            f"evaluating the view {_said(self.evaluation(size))}; {chosen}"
        ]


def _said(seconds: float) -> str:
    return f"{1e3 * seconds:.3f} ms"
