"""The sources of kept collections: they bring and take tuples as the document changes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Protocol

from axlog.errors import QueryError
from axlog.evaluate.expressions import Scope
from axlog.evaluate.items import Items, Node, is_true
from axlog.evaluate.joins import Bag
from axlog.query.compile import compile_pattern
from axlog.query.plan import ChosenOf, KeysOf, Leaf, UnionOf
from axlog.views.counting.engine import CountingEngine
from axlog.views.dataflow.collection import KeptCollection
from axlog.views.dataflow.groups import ends
from axlog.views.dataflow.units import UnitEvaluator


class Source(Protocol):
    """Changes the units of a collection."""

    def load(self) -> None:
        """Add the first tuples."""

    def update(self, moved: Bag) -> None:
        """Follow an update; `moved` is the delta of a pattern."""


class Single:
    """One tuple without variables."""

    def __init__(self, into: KeptCollection) -> None:
        self._into = into

    def load(self) -> None:
        self._into.add((), {}, ())

    def update(self, moved: Bag) -> None:
        """Nothing changes."""


class Tuples:
    """The tuples of nodes of a pattern, kept by the counting engine. It is a member of a plan."""

    def __init__(
        self,
        leaf: Leaf,
        into: KeptCollection,
        evaluator: UnitEvaluator,
        engine: CountingEngine,
        work: int | None,
    ) -> None:
        program = compile_pattern(leaf.pattern)
        columns = program.root.columns
        self.work = work
        self.refused: QueryError | None = None
        self._names = leaf.names
        self._at = [columns.index(f"{output.of}.node") for output in leaf.pattern.outputs]
        self._into = into
        self._evaluator = evaluator
        self._counts: dict[tuple[int, ...], int] = {}
        self._first: Bag = {}
        self.root = engine.add(program, self._keep, self)

    def _keep(self, first: Bag) -> None:
        self._first = first

    def refuse(self, error: QueryError) -> None:
        """Set the view aside: it exceeded its budget."""
        self.refused = error

    def load(self) -> None:
        first, self._first = self._first, {}
        self.update(first)

    def update(self, moved: Bag) -> None:
        counts, at = self._counts, self._at
        touched: dict[tuple[int, ...], bool] = {}
        for row, count in moved.items():
            binding = tuple([int(row[each]) for each in at])
            old = counts.get(binding, 0)
            touched.setdefault(binding, old > 0)
            if old + count:
                counts[binding] = old + count
            else:
                counts.pop(binding, None)
        into, tree = self._into, self._evaluator.tree
        for binding, was in touched.items():
            if was and binding not in counts:
                into.drop(binding)
        for binding, was in touched.items():
            if not was and binding in counts:
                values: dict[str, Items] = {
                    name: [Node(node)] for name, node in zip(self._names, binding, strict=True)
                }
                place = tuple(tree.id(node).key for node in binding)
                into.add(binding, values, place)


class Keys:
    """The keys of another collection's index."""

    def __init__(self, plan: KeysOf, of: KeptCollection, into: KeptCollection) -> None:
        self._names = plan.names
        self._of = of
        self._into = into

    def load(self) -> None:
        for key in self._of.groups:
            self._enter(key)

    def update(self, moved: Bag) -> None:
        units, groups = self._into.units, self._of.groups
        for key in self._of.changed:
            if key not in groups:
                if key in units:
                    self._into.drop(key)
            elif key in units:
                self._into.move(key, self._place(key))
            else:
                self._enter(key)

    def _enter(self, key: Hashable) -> None:
        label: list[Any] = self._of.groups[key].label
        values: dict[str, Items] = {
            name: [] if value is None else [value]
            for name, value in zip(self._names, label, strict=True)
        }
        self._into.add(key, values, self._place(key))

    def _place(self, key: Hashable) -> tuple[Any, ...]:
        """Keys are in the order of their first entries; nodes in document order."""
        if isinstance(key, Node):
            return (self._of.tree.id(key).key,)
        return self._of.groups[key].entries[0].sort


class Union:
    """The nodes that are keys of any of several collections, in document order."""

    def __init__(self, plan: UnionOf, of: Sequence[KeptCollection], into: KeptCollection) -> None:
        self._name = plan.name
        self._of = of
        self._into = into

    def load(self) -> None:
        for of in self._of:
            for key in of.groups:
                self._follow(key)

    def update(self, moved: Bag) -> None:
        for of in self._of:
            for key in of.changed:
                self._follow(key)

    def _follow(self, key: Hashable) -> None:
        is_there = any(key in of.groups for of in self._of)
        if is_there == (key in self._into.units):
            return
        if not is_there:
            self._into.drop(key)
            return
        assert isinstance(key, Node), "sets are of nodes"
        self._into.add(key, {self._name: [key]}, (self._into.tree.id(key).key,))


class Chosen:
    """The nodes of another collection at certain positions under each key."""

    def __init__(
        self, plan: ChosenOf, of: KeptCollection, into: KeptCollection, evaluator: UnitEvaluator
    ) -> None:
        self._plan = plan
        self._of = of
        self._into = into
        self._evaluator = evaluator
        self._chosen: dict[Hashable, list[Node]] = {}

    def load(self) -> None:
        for key in self._of.groups:
            self._choose(key)

    def update(self, moved: Bag) -> None:
        for key in list(self._of.changed):
            self._choose(key)

    def _choose(self, key: Hashable) -> None:
        old = self._chosen.pop(key, [])
        new = list(self._nodes(key))
        if new:
            self._chosen[key] = new
        kept = set(old).intersection(new)
        for node in old:
            if node not in kept:
                self._into.drop(node)
        tree = self._evaluator.tree
        for node in new:
            if node not in kept:
                self._into.add(node, {self._plan.name: [node]}, (tree.id(node).key,))

    def _nodes(self, key: Hashable) -> Iterator[Node]:
        group = self._of.groups.get(key)
        if group is None:
            return
        entries, bounds = group.entries, self._plan.bounds
        size = len(entries)
        low, high = (0, size) if bounds is None else ends(bounds, size)
        for position in range(low, min(high, size)):
            (node,) = entries[position].items[0]
            assert isinstance(node, Node), "positions are chosen among nodes"
            if bounds is not None or self._passes(node, position + 1, size):
                yield node

    def _passes(self, node: Node, position: int, size: int) -> bool:
        scope = Scope(self._evaluator.scope().variables, node, position, size)
        found = self._evaluator.value(self._plan.predicate, scope)
        if len(found) == 1 and type(found[0]) in (int, float) and not isinstance(found[0], bool):
            return bool(found[0] == position)
        return is_true(found)
