"""A scenario as evidence of a verdict: how long it stands, and which others it dominates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.future.capacity import fits, trees_left
from axlog.future.generalized_rows import Need, Values
from axlog.future.time_constraints import deadline


@dataclass(frozen=True, slots=True)
class Witness:
    """A possible scenario, as evidence that stays valid while streams only deliver data."""

    tree: Tree
    columns: tuple[str, ...]
    values: Values
    need: Need
    streams: frozenset[str]
    until: int | None  # its deadline
    is_fitted: bool  # whether `fits` must be checked again

    @staticmethod
    def of(tree: Tree, columns: tuple[str, ...], values: Values, need: Need) -> Witness:
        """The evidence that a scenario is, with its deadline."""
        until = deadline(need.times, need.unknown_times) if need.times else None
        streams = frozenset(stream for _, stream in need.brought)
        is_fitted = bool(need.new) or any(trees_left(tree, s) is not None for s in streams)
        return Witness(tree, columns, values, need, streams, until, is_fitted)

    def stands(self) -> bool:
        """Whether the scenario is still possible; costs the size of the scenario."""
        tree = self.tree
        if self.until is not None and self.until < tree.clock:
            return False
        if not self.streams <= tree.calls_by_stream.keys():
            return False
        if not self.is_fitted:
            return True
        try:
            return fits(tree, self.columns, self.values, self.need)
        except UndecidedError:  # sub-patterns must share trees by now
            return False


def dominates(other: Need, need: Need) -> bool:
    """Whether one scenario needs less than another and has no earlier deadline."""
    if not other.brought < need.brought:
        return False
    late, until = (deadline(each.times, each.unknown_times) for each in (other, need))
    return not other.brought or late is None or (until is not None and until <= late)


def pinned_values(
    columns: Iterable[str], values: Values, wanted: Iterable[str | int | None]
) -> Values | None:
    """The values of a scenario with the wanted ones filled in; None if they disagree."""
    pinned: list[str | int | None] = []
    for column, value, want in zip(columns, values, wanted, strict=True):
        if want is not None and value != want and (value is not None or column.endswith(".node")):
            return None  # an existing node never equals a future one
        pinned.append(want if value is None else value)
    return tuple(pinned)
