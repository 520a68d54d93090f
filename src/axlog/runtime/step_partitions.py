"""How a view with steps is split over buckets, if no column of its own does it.

The rows of the pattern are split by a column that every relation fed by a stream has, or by message
if messages never meet. The steps are cut where rows of several buckets meet (`views/step_cut.py`).
A split that leaves whole groups in one bucket is best; messages are spread more evenly than values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from axlog.document.tree import Tree
from axlog.match.stream_plan import MessagePlan
from axlog.query.compile import Column
from axlog.query.pattern import Output
from axlog.views.counting.linearity import meetings_of
from axlog.views.counting.stepped import SteppedCounting
from axlog.views.step_cut import StepCut, cut_steps

ALL = -1
"""Used instead of a key's position: the relation goes to every bucket."""


@dataclass(frozen=True)
class Fed:
    """The relations that streams feed."""

    plans: Mapping[str, MessagePlan]
    noted: Mapping[str, list[Column]]
    """By stream, the columns whose declared keys its messages are also matched with, in order."""

    def positions(self, column: Column) -> dict[str, tuple[int, ...]] | None:
        """Return where each fed relation has a column, by stream.

        None if a relation with columns lacks it. Values of declared keys go to the bucket of their
        column's rows, or to all buckets.
        """
        found: dict[str, tuple[int, ...]] = {}
        for stream, plan in self.plans.items():
            positions = _positions(plan, self.noted[stream], column)
            if positions is None:
                return None
            found[stream] = positions
        is_somewhere = any(at != ALL for each in found.values() for at in each)
        return found if is_somewhere else None

    def columns(self) -> list[Column]:
        """Return the columns that all fed relations with columns have."""
        each = [r.columns for p in self.plans.values() for r in (*p.here, *p.everywhere)]
        named = dict.fromkeys(column for columns in each for column in columns)
        return [column for column in named if self.positions(column) is not None]


def _positions(plan: MessagePlan, noted: list[Column], column: Column) -> tuple[int, ...] | None:
    """Return where each relation of a plan has a column; None if one with columns lacks it."""
    own = len(plan.here) - len(noted)
    relations = (*plan.here[:own], *plan.everywhere)
    if any(r.columns and column not in r.columns for r in relations):
        return None
    at = [r.columns.index(column) if r.columns else ALL for r in relations]
    at[own:own] = [0 if of == column else ALL for of in noted]
    return tuple(at)


@dataclass(frozen=True)
class Partition:
    """A split with a cut; `key` is None if messages are spread."""

    cut: StepCut
    key: Column | None = None
    own: int | None = None  # the position of the key in rows of the pattern, if they have it
    positions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def by_steps(maintainer: SteppedCounting, tree: Tree, fed: Fed) -> Partition | None:
    """Return the best split of a view; None if there is none."""
    key = maintainer.stepping.key
    meetings = meetings_of(maintainer.engine, tree)
    shown = [column_of(output) for output in key.pattern.outputs]
    found: list[Partition] = []
    for column in fed.columns():
        if column not in maintainer.root.columns and not meetings.keep_apart(column):
            continue  # an `or` or a `not` meets rows that lack the column
        own = shown.index(column) if column in shown else None
        name = None if own is None else key.pattern.columns[own]
        cut = cut_steps(key.steps, name)
        if isinstance(cut, StepCut):
            found.append(Partition(cut, column, own, fed.positions(column) or {}))
    best = next((each for each in found if each.cut.has_local_group), None)
    if best is None and meetings.is_linear:
        cut = cut_steps(key.steps, None)
        best = Partition(cut) if isinstance(cut, StepCut) else None
    return best or next(iter(found), None)


def column_of(output: Output) -> Column:
    """Return the column of the program that an output shows."""
    kind = output.kind.value
    return f"${output.of}" if kind == "variable" else f"{output.of}.{kind}"
