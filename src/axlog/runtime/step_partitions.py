"""How a view with steps is split over buckets, if no column of its own does it.

The rows of the pattern are split by a column that every relation fed by a stream has, by message if
messages never meet, or else in a grid of several columns (`grid.py`). The steps are cut where rows
of several buckets meet (`views/step_cut.py`). A split that leaves whole groups in one bucket is
best; messages are spread more evenly than values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from axlog.document.tree import Tree
from axlog.match.stream_plan import MessagePlan
from axlog.query.compile import Column, Relation
from axlog.query.pattern import Output
from axlog.query.row_key import RowKey
from axlog.runtime.grid import ALL, Dimension, Grid, parts_of
from axlog.views.counting.linearity import meetings_of
from axlog.views.counting.stepped import SteppedCounting
from axlog.views.step_cut import StepCut, cut_steps


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

    def places(self, column: Column) -> dict[str, tuple[int, ...]]:
        """Return where each fed relation has a column, by stream; `ALL` where it lacks it."""
        return {s: _places(plan, self.noted[s], column) for s, plan in self.plans.items()}

    def by_stream(self) -> dict[str, list[tuple[Column, ...]]]:
        """Return the columns of the relations that each stream feeds, of those with columns."""
        return {
            stream: [r.columns for r in _relations(plan, self.noted[stream]) if r.columns]
            for stream, plan in self.plans.items()
        }

    def relations(self) -> list[tuple[Column, ...]]:
        """Return the columns of all fed relations that have some."""
        return [columns for each in self.by_stream().values() for columns in each]

    def columns(self) -> list[Column]:
        """Return the columns that all fed relations with columns have."""
        each = [r.columns for p in self.plans.values() for r in (*p.here, *p.everywhere)]
        named = dict.fromkeys(column for columns in each for column in columns)
        return [column for column in named if self.positions(column) is not None]


def _positions(plan: MessagePlan, noted: list[Column], column: Column) -> tuple[int, ...] | None:
    """Return where each relation of a plan has a column; None if one with columns lacks it."""
    relations = _relations(plan, noted)
    if any(r.columns and column not in r.columns for r in relations):
        return None
    return _places(plan, noted, column)


def _places(plan: MessagePlan, noted: list[Column], column: Column) -> tuple[int, ...]:
    """Return where each relation of a plan has a column; `ALL` where it lacks it."""
    own = len(plan.here) - len(noted)
    relations = _relations(plan, noted)
    at = [r.columns.index(column) if column in r.columns else ALL for r in relations]
    at[own:own] = [0 if of == column else ALL for of in noted]
    return tuple(at)


def _relations(plan: MessagePlan, noted: list[Column]) -> tuple[Relation, ...]:
    """Return the relations of a plan, without those of declared keys."""
    return (*plan.here[: len(plan.here) - len(noted)], *plan.everywhere)


@dataclass(frozen=True)
class Partition:
    """A split with a cut; without a grid messages are spread."""

    cut: StepCut
    grid: Grid = ()


def by_steps(maintainer: SteppedCounting, tree: Tree, fed: Fed, count: int) -> Partition | None:
    """Return the best split of a view into at most so many buckets; None if there is none."""
    key = maintainer.stepping.key
    meetings = meetings_of(maintainer.engine, tree)
    shown = [column_of(output) for output in key.pattern.outputs]
    found: list[Partition] = []
    # otherwise an `or` or a `not` meets rows that lack the column
    apart = [
        column
        for column in dict.fromkeys(chain.from_iterable(fed.relations()))
        if column in maintainer.root.columns or meetings.keep_apart(column)
    ]
    for column in apart:
        places = fed.positions(column)
        if places is None:
            continue
        own = shown.index(column) if column in shown else None
        name = None if own is None else key.pattern.columns[own]
        cut = cut_steps(key.steps, name)
        if isinstance(cut, StepCut):
            found.append(Partition(cut, (Dimension(column, count, places, own=own),)))
    best = next((each for each in found if each.cut.has_local_group), None)
    if best is None and meetings.is_linear:
        cut = cut_steps(key.steps, None)
        best = Partition(cut) if isinstance(cut, StepCut) else None
    return best or next(iter(found), None) or _in_grid(key, fed, apart, count)


def _in_grid(key: RowKey, fed: Fed, columns: Sequence[Column], count: int) -> Partition | None:
    """Return the split of a view by several columns.

    If buckets hand over their first rows, the final step must know which rows of the document each
    of them has, so they show the columns.
    """
    cut, shown = cut_steps(key.steps, None), [column_of(output) for output in key.pattern.outputs]
    if not isinstance(cut, StepCut):
        return None
    if cut.what == "candidates":
        columns = [column for column in columns if column in shown]
    parts = parts_of(columns, fed.relations(), count)
    if not parts:
        return None
    grid = tuple(
        Dimension(c, number, fed.places(c), own=shown.index(c) if c in shown else None)
        for c, number in parts.items()
    )
    return Partition(cut, grid)


def column_of(output: Output) -> Column:
    """Return the column of the program that an output shows."""
    kind = output.kind.value
    return f"${output.of}" if kind == "variable" else f"{output.of}.{kind}"
