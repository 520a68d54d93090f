"""A kept collection: the units of its source's tuples, and their entries by key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from axlog.errors import ValueProblem
from axlog.evaluate.clauses import order_key
from axlog.evaluate.comparisons import grouping_key
from axlog.evaluate.items import Items, Node
from axlog.query.plan import Collection
from axlog.query.syntax_tree import Path, Reference
from axlog.views.dataflow.groups import Entry, Group, concatenated, defined, tallied
from axlog.views.dataflow.indexes import (
    ALL,
    asked_keys,
    entry_keys,
    extreme_value,
)
from axlog.views.dataflow.ordered_entries import OrderedEntries
from axlog.views.dataflow.tally import Summary, unequal
from axlog.views.dataflow.units import Unit, UnitEvaluator

Aspect = tuple[int, str]


class KeptCollection:
    """The state of one collection of a plan.

    An update goes through the collections of a plan in their order. In each, the source brings and
    takes tuples, stale units are evaluated again, and the units of later collections that looked up
    a changed group become stale.
    """

    def __init__(self, plan: Collection, evaluator: UnitEvaluator, is_root: bool) -> None:
        self.plan = plan
        self.units: dict[Hashable, Unit] = {}
        self.groups: dict[Hashable, Group] = {}
        self.ordered: OrderedEntries | None = None
        if plan.index.kind == "order":
            self.ordered = OrderedEntries(plan.index, len(plan.outputs))
        self.changed: dict[Hashable, None] = {}  # the keys of groups that the update changed
        self.stale: set[Unit] = set()
        self.errors = 0  # tuples that had no value, because of their data
        self.problem: ValueProblem | None = None  # of the last one
        self.rejects = False  # whether such a tuple raises
        self.tree = evaluator.tree
        self._evaluator = evaluator
        self._is_root = is_root
        self._watchers: dict[Hashable, dict[Unit, dict[Aspect, Items | None]]] = {}
        self._reads_nodes = _reads_nodes(plan) or is_root
        self.replaced: Callable[[Unit, list[Entry]], None] = lambda unit, old: None
        """Called with a unit and its entries before; the root reports changes by it."""

    # Units ----------------------------------------------------------------------------------------

    def add(self, binding: Hashable, values: dict[str, Items], place: tuple[Any, ...]) -> None:
        """Add a tuple of the source."""
        unit = self.units[binding] = Unit(self, binding, values, place)
        self._evaluate(unit)

    def drop(self, binding: Hashable) -> None:
        """Remove a tuple of the source."""
        unit = self.units.pop(binding)
        self.stale.discard(unit)
        self._evaluator.release(unit)
        old, unit.entries = unit.entries, []
        self._remove(old)
        self.replaced(unit, old)

    def move(self, binding: Hashable, place: tuple[Any, ...]) -> None:
        """Give a tuple another place in the order."""
        unit = self.units[binding]
        if unit.place != place:
            unit.place = place
            self.stale.add(unit)

    def refresh(self) -> None:
        """Evaluate the stale units."""
        while self.stale:
            self._evaluate(self.stale.pop())

    def _evaluate(self, unit: Unit) -> None:
        old = unit.entries
        unit.entries = self._entries(unit)
        if self._same(old, unit.entries):
            unit.entries = old
            if self._is_root:
                self.replaced(unit, old)
            return
        self._remove(old)
        for entry in unit.entries:
            for key, label in zip(entry.keys, entry.labels, strict=True):
                self._file(key, label, entry)
        self.replaced(unit, old)

    def _entries(self, unit: Unit) -> list[Entry]:
        evaluator, plan = self._evaluator, self.plan
        outer = evaluator.unit
        scope = evaluator.start(unit)
        if self._reads_nodes:
            for items in unit.values.values():
                for item in items:
                    if isinstance(item, Node):
                        evaluator.depend(item)
        found: list[Entry] = []
        try:
            for number, inner in enumerate(evaluator.tuples(plan.clauses, scope)):
                order = order_key(evaluator, plan.order, inner) if plan.order else ()
                keys, labels = entry_keys(evaluator, plan.index, inner)
                outputs = [evaluator.value(output.value, inner) for output in plan.outputs]
                variables = {name: inner.items(name) for name in plan.exposed}
                sort = (order, unit.place, number)
                found.append(Entry(unit, sort, keys, labels, outputs, variables))
        except ValueProblem as problem:
            if self.rejects:
                raise
            self.errors += 1
            self.problem = problem
            found = []
            if self._is_root:
                nothing: Any = None  # the value of a tuple that has none
                found = [Entry(unit, ((), unit.place, 0), [ALL], [[]], [[nothing]], {})]
        finally:
            evaluator.unit = outer
        return found

    def _same(self, old: list[Entry], new: list[Entry]) -> bool:
        """Whether new entries are the old ones, so that nothing that uses them changes.

        The values of nodes are read anew in any case where they are used: units that use them
        depend on the nodes. Aggregates read them when an entry comes.
        """
        if len(old) != len(new) or self.plan.read:
            return False
        return all(
            one.sort == other.sort
            and one.keys == other.keys
            and one.variables == other.variables
            and not any(map(unequal, one.items, other.items))
            for one, other in zip(old, new, strict=True)
        )

    # Entries --------------------------------------------------------------------------------------

    def _file(self, key: Hashable, label: Items, entry: Entry) -> None:
        if self.ordered is not None:
            self.ordered.add(key, entry)
        else:
            group = self.groups.get(key)
            if group is None:
                group = self.groups[key] = Group(self._evaluator.tree, self.plan, label)
            group.add(entry)
        self.changed[key] = None

    def _remove(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            for key in entry.keys:
                self.changed[key] = None
                if self.ordered is not None:
                    self.ordered.remove(key, entry)
                    continue
                group = self.groups[key]
                group.remove(entry)
                if not group.entries:
                    del self.groups[key]

    # Look-ups -------------------------------------------------------------------------------------

    def look_up(self, unit: Unit | None, keys: list[Items], output: int, aspect: str) -> Items:
        """The value of a look-up; the unit becomes stale when it changes."""
        tree = self._evaluator.tree
        if self.ordered is not None:
            return self._in_order(unit, keys, output, aspect)
        asked = self._asked(keys)
        if len(asked) == 1:
            self._watch(unit, asked[0], (output, aspect))
            return self._of_group(asked[0], output, aspect)
        # Entries that several groups share count once: the values of groups do not tell.
        watched = aspect if aspect in _OF_ANY else "all"
        for key in asked:
            self._watch(unit, key, (output, watched))
        items = concatenated(tree, self.plan, output, self._union(asked))
        return items if aspect == "all" else defined(tree, aspect, items)

    def look_up_entries(self, unit: Unit | None, keys: list[Items]) -> list[Entry]:
        """The entries that a look-up finds, in order."""
        if self.ordered is not None:
            asked = self._compared(unit, keys, "tuples")
            return [] if asked is None else self._ranged(self.ordered, asked)
        found = self._asked(keys)
        for key in found:
            self._watch(unit, key, (0, "tuples"))
        return self._union(found)

    def _in_order(self, unit: Unit | None, keys: list[Items], output: int, aspect: str) -> Items:
        """A look-up by comparison; aggregates do not read the entries."""
        tree, ordered = self._evaluator.tree, self.ordered
        assert ordered is not None
        asked = self._compared(unit, keys, aspect)
        if asked is None:
            return [] if aspect == "all" else defined(tree, aspect, [])
        if aspect != "all" and ":" not in aspect and ordered.is_plain(output):
            total = Summary()
            if aspect in ("count", "exists", "empty"):
                total.count = ordered.number(asked)
            else:
                for part in ordered.parts(asked, lambda entries: self._summary(output, entries)):
                    total.merge(
                        part if isinstance(part, Summary) else self._summary(output, [part])
                    )
            found = tallied(total, aspect)
            if found is not None:
                return found
        items = concatenated(tree, self.plan, output, self._ranged(ordered, asked))
        return items if aspect == "all" else defined(tree, aspect, items)

    def _summary(self, output: int, entries: list[Entry]) -> Summary:
        return Summary.of(self.tree, (item for entry in entries for item in entry.items[output]))

    def _compared(self, unit: Unit | None, keys: list[Items], aspect: str) -> Any:
        """The value that a look-up compares with those of the entries; None: with none."""
        assert self.ordered is not None
        asked = extreme_value(self._evaluator.tree, self.plan.index, keys[0], is_inner=False)
        if asked is not None and unit is not None:
            self.ordered.watch(unit, asked, aspect)
            unit.lookups.add((self, asked))
        return asked

    @staticmethod
    def _ranged(ordered: OrderedEntries, asked: Any) -> list[Entry]:
        return sorted(ordered.found(asked), key=lambda entry: entry.sort)

    def _union(self, asked: list[Hashable]) -> list[Entry]:
        found = {e: None for key in asked if key in self.groups for e in self.groups[key].entries}
        return sorted(found, key=lambda entry: entry.sort) if len(asked) > 1 else list(found)

    def _asked(self, keys: list[Items]) -> list[Hashable]:
        tree, index = self._evaluator.tree, self.plan.index
        match index.kind:
            case "one":
                return [ALL]
            case "group":
                return [tuple(grouping_key(k[0]) if k else None for k in keys)]  # type: ignore[arg-type]
            case "node":
                return [item for item in keys[0] if isinstance(item, Node)]
        return asked_keys(tree, index, keys[0])

    def _of_group(self, key: Hashable, output: int, aspect: str) -> Items:
        group = self.groups.get(key)
        if group is None:
            group = Group(self._evaluator.tree, self.plan, [])
        return group.aspect(output, aspect)

    # Watching -------------------------------------------------------------------------------------

    def _watch(self, unit: Unit | None, key: Hashable, aspect: Aspect) -> None:
        if unit is None:
            return
        unit.lookups.add((self, key))
        of_unit = self._watchers.setdefault(key, {}).setdefault(unit, {})
        of_unit[aspect] = None if aspect[1] in _WHOLE else self._known(key, aspect)

    def _known(self, key: Hashable, aspect: Aspect) -> Items | None:
        """The value of a look-up; None if it has none, because of its data."""
        try:
            return self._of_group(key, *aspect)
        except ValueProblem:
            return None

    def unwatch(self, unit: Unit, key: Hashable) -> None:
        """Forget the look-ups of a unit under a key."""
        if self.ordered is not None:
            self.ordered.unwatch(unit, key)
            return
        watchers = self._watchers.get(key)
        if watchers is not None:
            watchers.pop(unit, None)
            if not watchers:
                del self._watchers[key]

    def begin(self) -> None:
        """Begin an update: the changes so far are known to all units."""
        self.changed.clear()
        if self.ordered is not None:
            self.ordered.begin()

    def notify(self) -> None:
        """Make the units stale that looked up a group that changed."""
        if self.ordered is not None:
            for unit in self.ordered.settled():
                unit.collection.stale.add(unit)
            return
        for key in self.changed:
            for unit, aspects in self._watchers.get(key, {}).items():
                if unit in unit.collection.stale:
                    continue
                for aspect, known in aspects.items():
                    value = None if known is None else self._known(key, aspect)
                    if known is None or value is None or unequal(known, value):
                        unit.collection.stale.add(unit)
                        break


_OF_ANY = ("exists", "empty")
"""Look-ups under several keys that change only if one under a single key does."""
_WHOLE = ("all", "tuples")
"""Look-ups of which every change of the group is a change."""


def _reads_nodes(plan: Collection) -> bool:
    """Whether the entries depend on what is below the nodes of the source."""
    if plan.clauses or plan.order:
        return True
    bare = [value for value in plan.index.values if not _is_bare(value)]
    if bare or (plan.index.values and plan.index.kind not in ("node", "parent")):
        return True
    return any(
        number in plan.read or not _is_bare(output.value)
        for number, output in enumerate(plan.outputs)
    )


def _is_bare(value: object) -> bool:
    return isinstance(value, Path) and isinstance(value.start, Reference) and not value.steps
