"""Measured costs of maintaining a view and of evaluating it again; the cheaper way is chosen.

Updates that concern the view are measured: the first of each kind, then some. If updates of a kind
took longer to propagate than the whole view takes to evaluate, the view is evaluated. Updates are
of one kind if they have the same labels at the same depths and the same order of size (a power of
two of nodes). The first update of a kind is maintained. Where the two costs are close, one update
is evaluated, for a better measurement than that of the first evaluation. Noise only adds to a
measurement, so the least of the last few counts. A kind is maintained again from time to time,
because documents drift.

The results do not depend on the choice: both ways give the same table of rows with signed counts.
(Paper 5, section 6.5, compares the two ways in retrospect.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import thread_time

from axlog.views.algebraic.deltas import DeltaTables
from axlog.views.algebraic.labels import MovedLabels

LAST = 3
"""The number of recent measurements that count."""
MARGIN = 1.2
"""Evaluation is chosen if maintenance takes this many times as long."""
EVERY = 8
"""Of updates of a kind that was measured, one of this many is measured again: clocks take time."""
AGAIN = 16
"""A kind of update is maintained again after this many evaluations, to measure it again."""
MOST = 1024
"""The most kinds of update that are remembered."""

FAR = 10
"""If evaluation took this many times as long, the sizes of the relations are not read."""

Kind = tuple[MovedLabels, int]


def kind_of(tables: DeltaTables) -> Kind:
    """The kind of an update."""
    return tables.labels, tables.size.bit_length()


@dataclass(slots=True)
class Cost:
    """One kind of update: its last maintenance times, and the evaluations since then."""

    last: deque[float] = field(default_factory=lambda: deque(maxlen=LAST))
    evaluated: int = 0
    updates: int = 0  # since the first measurements

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
        """Record an evaluation of the view, over relations of `size` nodes."""
        self._evaluations.append((seconds, size))

    def is_due(self, kind: Kind) -> bool:
        """Whether an update of a kind is to be timed: the first few, then one of `EVERY`."""
        cost = self._kinds.get(kind)
        if cost is None or len(cost.last) < LAST or cost.evaluated:
            return True
        cost.updates += 1
        return cost.updates % EVERY == 0

    def maintained(self, kind: Kind, seconds: float) -> None:
        """Record an update that was propagated by its terms."""
        cost = self._kinds.get(kind)
        if cost is None:
            if len(self._kinds) >= MOST:
                self._kinds.clear()
            cost = self._kinds[kind] = Cost()
        cost.last.append(seconds)
        cost.evaluated = 0

    def evaluation(self, size: int) -> float:
        """The expected time of an evaluation over relations of `size` nodes."""
        return min(
            (seconds * (size + 1) / (then + 1) for seconds, then in self._evaluations),
            default=float("inf"),
        )

    def advice(self, kind: Kind, size: Callable[[], int]) -> str:
        """Why the view should be evaluated for an update; empty if it should be maintained."""
        cost = self._kinds.get(kind)
        if cost is None or not self._evaluations:
            return ""
        if FAR * cost.least < self._evaluations[-1][0]:
            return ""
        evaluation = self.evaluation(size())
        if len(self._evaluations) < 2 and 2 * cost.least > evaluation:
            return f"measured again: maintaining an update like this took {_in_ms(cost.least)}"
        if cost.least <= MARGIN * evaluation:
            return ""
        cost.evaluated += 1
        if cost.evaluated > AGAIN:
            return ""
        return (
            f"maintaining an update like this takes {_in_ms(cost.least)}, "
            f"evaluating the view {_in_ms(evaluation)}"
        )

    def lines(self, kind: Kind | None, size: int) -> list[str]:
        """Both costs, for `explain`."""
        cost = None if kind is None else self._kinds.get(kind)
        if not self._evaluations or cost is None:
            return []
        chosen = "evaluated" if cost.evaluated else "maintained"
        return [
            f"measured: maintaining an update like the last {_in_ms(cost.least)}, "
            f"evaluating the view {_in_ms(self.evaluation(size))}; {chosen}"
        ]


def _in_ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3f} ms"
