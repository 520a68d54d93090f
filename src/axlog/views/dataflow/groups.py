"""The entries of a collection under one key, in order, with the aggregates of its outputs."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from axlog.document.tree import Tree
from axlog.evaluate.functions import FUNCTIONS
from axlog.evaluate.items import Items, Node
from axlog.query.plan import Collection, Leaf
from axlog.query.syntax_tree import Path, Reference
from axlog.views.dataflow.tally import Summary, Tally

if TYPE_CHECKING:
    from axlog.views.dataflow.units import Unit


class Entry:
    """One tuple of a collection: its place in the order, its keys, its items by output."""

    __slots__ = ("items", "keys", "labels", "sort", "unit", "variables")

    def __init__(
        self,
        unit: Unit,
        sort: tuple[Any, ...],
        keys: list[Any],
        labels: list[Items],
        items: list[Items],
        variables: dict[str, Items],
    ) -> None:
        self.unit = unit
        self.sort = sort
        self.keys = keys
        self.labels = labels  # the values of each key
        self.items = items
        self.variables = variables


def _sort(entry: Entry) -> tuple[Any, ...]:
    return entry.sort


class Group:
    """The entries under one key."""

    __slots__ = ("_plan", "_tallies", "_tree", "entries", "label")

    def __init__(self, tree: Tree, plan: Collection, label: Items) -> None:
        self._tree = tree
        self._plan = plan
        self.label = label
        self.entries: list[Entry] = []
        self._tallies: dict[int, Tally] = {}

    def add(self, entry: Entry) -> None:
        insort(self.entries, entry, key=_sort)
        for output, tally in self._tallies.items():
            tally.add(entry, entry.items[output])

    def remove(self, entry: Entry) -> None:
        at = bisect_left(self.entries, entry.sort, key=_sort)
        while self.entries[at] is not entry:
            at += 1
        del self.entries[at]
        for tally in self._tallies.values():
            tally.remove(entry)

    def aspect(self, output: int, aspect: str) -> Items:
        """The value of a look-up."""
        if aspect == "all":
            return concatenated(self._tree, self._plan, output, self.entries)
        if ":" in aspect:
            return self._slice(output, aspect)
        tally = self._tally(output)
        found = tallied(tally, aspect)
        if found is not None:
            return found
        return defined(self._tree, aspect, self.aspect(output, "all"))

    def _tally(self, output: int) -> Tally:
        tally = self._tallies.get(output)
        if tally is None:
            plan = self._plan
            tally = Tally(self._tree, plan.outputs[output].is_path, output in plan.read)
            self._tallies[output] = tally
            for entry in self.entries:
                tally.add(entry, entry.items[output])
        return tally

    def _slice(self, output: int, aspect: str) -> Items:
        """The items at a range of positions; entries with one item each need no count."""
        bounds = parse_bounds(aspect)
        entries = self.entries
        if self._is_single(output):
            low, high = ends(bounds, len(entries))
            return [entry.items[output][0] for entry in entries[low:high]]
        return defined(self._tree, aspect, self.aspect(output, "all"))

    def _is_single(self, output: int) -> bool:
        """Whether each entry has one item; of a path, another node each, in document order."""
        if not self._plan.outputs[output].is_path:
            return not self._tally(output).uneven
        return _has_own_nodes(self._plan, output)


def _has_own_nodes(plan: Collection, output: int) -> bool:
    """Whether an output is the only node of the tuples of a pattern: they are in its order."""
    if plan.clauses or plan.order or not isinstance(plan.source, Leaf):
        return False
    match plan.outputs[output].value:
        case Path(start=Reference(name=name), steps=()):
            return plan.source.names == (name,)
    return False


def tallied(tally: Summary, aspect: str) -> Items | None:
    """An aggregate of a tally; None if its items are no numbers."""
    match aspect:
        case "count":
            return [tally.count]
        case "exists":
            return [tally.count > 0]
        case "empty":
            return [not tally.count]
    if not tally.is_numeric:
        return None
    match aspect:
        case "sum":
            return [tally.sum()]
        case "avg":
            value = tally.avg()
        case _:
            value = tally.extreme(aspect == "max")
    return [] if value is None else [value]


def defined(tree: Tree, aspect: str, items: Items) -> Items:
    """An aggregate by the definition of its function, or the items at a range of positions."""
    if ":" in aspect:
        low, high = ends(parse_bounds(aspect), len(items))
        return items[low:high]
    return FUNCTIONS[aspect].value(tree, [items])


def concatenated(tree: Tree, plan: Collection, output: int, entries: Iterable[Entry]) -> Items:
    """The items of entries; of a path, distinct nodes in document order."""
    found = [item for entry in entries for item in entry.items[output]]
    if not plan.outputs[output].is_path or not all(isinstance(item, Node) for item in found):
        return found
    nodes = {item for item in found if isinstance(item, Node)}
    return [*sorted(nodes, key=lambda node: tree.id(node).key)] if len(nodes) > 1 else [*nodes]


def parse_bounds(aspect: str) -> tuple[int, int]:
    low, _, high = aspect.partition(":")
    return int(low), int(high)


def ends(bounds: tuple[int, int], size: int) -> tuple[int, int]:
    """The slice of a list of this size for bounds of positions; negative ones count from the end.

    >>> ends((1, 1), 5), ends((-1, -1), 5), ends((3, -1), 5), ends((-7, -7), 5), ends((1, 0), 5)
    ((0, 1), (4, 5), (2, 5), (0, 0), (0, 0))
    >>> ends((-7, -1), 5), ends((-7, -4), 5), ends((1, -7), 5), ends((7, -1), 5)
    ((0, 5), (0, 2), (0, 0), (6, 6))
    """
    low = bounds[0] - 1 if bounds[0] > 0 else size + bounds[0]
    high = bounds[1] if bounds[1] >= 0 else size + bounds[1] + 1
    if high <= 0:
        return 0, 0
    low = max(low, 0)
    return low, max(low, high)
