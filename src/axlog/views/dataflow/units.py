"""Units: the evaluation of a collection's expressions for one tuple of its source.

A unit remembers what it has read: nodes (a change at or below one makes it stale) and look-ups in
other collections (a change of the group that was looked up makes it stale). A stale unit is
evaluated again with the next pass over its collection; all others keep their entries.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from axlog.document.tree import Tree
from axlog.evaluate.expressions import Evaluator, Scope
from axlog.evaluate.items import Items, Node
from axlog.query.syntax_tree import Constant, ForKept, Kept, Statement
from axlog.views.dataflow.groups import Entry

if TYPE_CHECKING:
    from axlog.views.dataflow.collection import KeptCollection


class Unit:
    """One tuple of a source: its variables, its entries, and what these depend on."""

    __slots__ = ("binding", "collection", "entries", "lookups", "nodes", "place", "values")

    def __init__(
        self,
        collection: KeptCollection,
        binding: Hashable,
        values: dict[str, Items],
        place: tuple[Any, ...],
    ) -> None:
        self.collection = collection
        self.binding = binding
        self.values = values
        self.place = place  # in the order of the source
        self.entries: list[Entry] = []
        self.nodes: set[int] = set()
        self.lookups: set[tuple[KeptCollection, Hashable]] = set()


class UnitEvaluator(Evaluator):
    """Evaluates expressions of a plan, and registers what the current unit reads."""

    def __init__(
        self,
        tree: Tree,
        text: str,
        namespaces: tuple[tuple[str, str], ...],
        given: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(tree, Statement(Constant("", 0), text, namespaces), None, given)
        self.collections: list[KeptCollection] = []
        self.by_node: dict[int, set[Unit]] = {}
        self.unit: Unit | None = None
        self.evaluated = 0  # units, since the start

    def start(self, unit: Unit) -> Scope:
        """Begin to evaluate a unit: its earlier dependencies are dropped. Returns its scope."""
        self.release(unit)
        self.unit = unit
        self.evaluated += 1
        return Scope({**self.scope().variables, **unit.values})

    def release(self, unit: Unit) -> None:
        """Drop the dependencies of a unit."""
        for node in unit.nodes:
            readers = self.by_node.get(node)
            if readers is not None:
                readers.discard(unit)
                if not readers:
                    del self.by_node[node]
        unit.nodes.clear()
        for collection, key in unit.lookups:
            collection.unwatch(unit, key)
        unit.lookups.clear()

    def depend(self, node: int) -> None:
        unit = self.unit
        if unit is not None and node not in unit.nodes:
            unit.nodes.add(node)
            self.by_node.setdefault(node, set()).add(unit)

    def kept(self, given: Kept, scope: Scope) -> Items:
        collection = self.collections[given.collection]
        keys = [self.value(key, scope) for key in given.keys]
        found = collection.look_up(self.unit, keys, given.output, given.aspect)
        for item in found:
            if isinstance(item, Node):
                self.depend(item)
        return found

    def tuples_kept(self, given: ForKept, scope: Scope) -> Iterator[Scope]:
        collection = self.collections[given.found.collection]
        keys = [self.value(key, scope) for key in given.found.keys]
        for entry in collection.look_up_entries(self.unit, keys):
            for items in entry.variables.values():
                for item in items:
                    if isinstance(item, Node):
                        self.depend(item)
            yield scope.with_variables({**scope.variables, **entry.variables})
