"""Final steps on the driver: what the buckets of a view hand over becomes its rows.

A unit with a cut (`plan.py`) has buckets that emit no rows. Once a batch each hands over partial
aggregates, the candidates of a limit, or rows that other buckets may have too. The final step
merges them and emits the changes of the view: net, one `update` for a group that moved.
All changes of a view pass through the driver in any case; with partial aggregates and candidates it
gets at most as many rows as there are buckets for each change.

Its state is kept like that of a bucket (`bucket_state.Keeper`), in a durable state of the driver
(`batch_state.py`) with the batch as its version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from axlog.errors import QueryError
from axlog.live.internals import maintained, maintained_view
from axlog.runtime.batch_state import DurableState, Row
from axlog.runtime.bucket_state import Keeper, Live
from axlog.runtime.change_packets import plain_change
from axlog.runtime.definition import Definition
from axlog.runtime.extraction import ASIDE
from axlog.runtime.packets import pack, unpack
from axlog.runtime.plan import SparkPlan, Unit
from axlog.runtime.timers import Store
from axlog.views.change import CLOCK, Change, From
from axlog.views.counting.stepped import SteppedCounting

_AT = " final/0/0"


class FinalStep:
    """The final step of one view."""

    def __init__(self, definition: Definition, unit: Unit) -> None:
        assert unit.cut is not None
        (name,) = unit.views
        self._document = definition.make([name], "needed")
        self._view = maintained_view(self._document.view(name))
        maintainer = self._view.maintainer
        assert isinstance(maintainer, SteppedCounting)
        self._maintainer = maintainer
        parts = [_owns(unit, bucket) for bucket in range(unit.buckets)]
        self._steps = maintainer.run_final(unit.cut, parts)
        maintainer.size()  # computes the initial rows

    @property
    def rows(self) -> int:
        """The number of rows of the view."""
        return len(self._maintainer.kept)

    waiting = 0
    due: int | None = None
    is_together = False

    def begin(self) -> None:
        """The initial rows of the document are emitted elsewhere."""

    def batch(self, given: Sequence[Sequence[Any]]) -> list[Change]:
        """Merge what the buckets of a batch handed over; return the changes.

        Each report is the handover and the views that the bucket set aside. The time and the cause
        of the changes are those of the last message that moved anything.
        """
        for replies in (replies for _, broken in given for replies in broken.values()):
            if self._view.broken is None:  # a bucket exceeded a limit: the rows are unknown
                self._view.put_aside(QueryError(*replies))
        moved = [handover for handover, _ in given if handover is not None]
        if not moved or self._view.broken is not None:
            return []
        _, time, by = max(moved, key=lambda one: (one[1], str(one[2])))
        origin: From = CLOCK if by == CLOCK else (by, 0) if isinstance(by, str) else None
        maintained(self._document).current.origin = origin
        return self._view.number(self._steps.merge([one[0] for one in moved]), time)

    def state(self) -> dict[str, Any]:
        """Return everything needed to resume."""
        broken = self._view.broken
        return {
            "state": self._maintainer.state(),
            "position": self._view.position,
            "broken": None if broken is None else (broken.code, broken.message),
        }

    def may_restore(self, state: Mapping[str, Any]) -> bool:
        """Only a new instance can resume from a state."""
        return False

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from a state."""
        self._maintainer.restore(state["state"])
        self._view.resume(state["position"])
        if state["broken"] is not None:
            self._view.put_aside(QueryError(*state["broken"]))


def _owns(unit: Unit, bucket: int) -> Callable[[Sequence[Any]], bool]:
    return lambda row: unit.owner_of(row) == bucket


@dataclass
class FinalSteps:
    """The final steps of a plan."""

    definition: Definition
    plan: SparkPlan
    run: str  # of this process: live steps of another are not used
    live: Live

    @property
    def units(self) -> list[Unit]:
        """The units that have one."""
        return [unit for unit in self.plan.units if unit.cut is not None]

    def input(self, replies: Iterable[Row]) -> list[Row]:
        """Return what the reports of buckets hand over to final steps, by unit."""
        names = {unit.name for unit in self.units}
        found: list[Row] = []
        for key, body in sorted(replies):
            name = key.rsplit("/", 2)[0]
            if key.partition("/")[0] == ASIDE or name not in names:
                continue
            (one,) = unpack(body)["told"]
            found.append((name, pack((one["handover"], one["clock"], one["set_aside"]))))
        return found

    def apply(self, given: Iterable[Row], store: Callable[[str], Store]) -> list[Row]:
        """Run the final steps on the input of a batch; return their reports."""
        by_unit: dict[str, list[tuple[Any, ...]]] = {}
        for name, body in given:
            by_unit.setdefault(name, []).append(unpack(body))
        return [
            self._apply(self.plan.unit(name), each, store(f"{name}{_AT}"))
            for name, each in by_unit.items()
            if self.plan.has(name)
        ]

    def _apply(self, unit: Unit, each: Sequence[tuple[Any, ...]], store: Store) -> Row:
        key = f"{unit.name}{_AT}"
        keeper: Keeper[FinalStep] = Keeper(
            store,
            f"{self.run} {key}",
            lambda _: FinalStep(self.definition, unit),
            live=self.live,
            read=unpack,
        )
        given = [pack((one, broken)) for one, _, broken in each if one is not None or broken]
        changes, _ = keeper.batch("", given) if given else ([], None)
        report = {
            "claim": None,
            "handover": None,
            "changes": [plain_change(change) for change in changes],
            "refused": [],
            "void": [],
            "voided": [],
            "buckets": 1,
            "clock": max(clock for _, clock, _ in each),
            "set_aside": {},
        }
        return key, pack({"told": [report], **vars(keeper.total())})


class DurableFinalSteps:
    """Final steps over buckets on the executors, durable by batches."""

    def __init__(self, steps: FinalSteps, state: DurableState) -> None:
        self._steps = steps
        self._state = state

    def catch_up(self) -> None:
        """Resume after the last batch; its query repeats it if sinks may not have its changes."""
        found = self._state.unfinished()
        if found is not None:
            self._steps.apply(found[1], self._state.store)
            self._state.commit()

    def take(self, number: int, replies: Sequence[Row]) -> list[Row]:
        """Return the reports of the final steps on a batch."""
        given = self._steps.input(replies)
        self._state.begin(number, given)
        return self._steps.apply(given, self._state.store)

    def end(self) -> None:
        """Record that the batch is delivered."""
        self._state.commit()

    def close(self) -> None:
        """Close the log."""
        self._state.close()
