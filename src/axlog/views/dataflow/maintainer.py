"""The maintainer of plans: rows are the items of the last collection.

An update passes the collections of the plan in their order. Each takes the tuples that its source
brings and takes, and evaluates again the units that read something that has changed. The rows of
the units that were evaluated are compared with those before: their difference is the changes.

A row has the id of its item if that is a node, and its value: the string of a node, the XML of a
constructed node, else the value itself. It is known by the id of the node, or by the tuple and the
number of the item among those of the tuple.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from axlog.document.delta import Delta, renames
from axlog.document.ids import Id
from axlog.document.times import Times
from axlog.document.tree import NONE, Tree
from axlog.errors import QueryError, ValueProblem
from axlog.evaluate.items import Item, Items, Node
from axlog.query.plan import ChosenOf, KeysOf, Leaf, UnionOf
from axlog.query.query import Query
from axlog.views.change import Change, Row, Values
from axlog.views.counting.engine import CountingEngine
from axlog.views.dataflow.collection import KeptCollection
from axlog.views.dataflow.groups import Entry
from axlog.views.dataflow.results import item_text, item_value
from axlog.views.dataflow.sources import Chosen, Keys, Single, Source, Tuples, Union
from axlog.views.dataflow.units import Unit, UnitEvaluator
from axlog.views.maintainer import Maintainer
from axlog.views.measured_cost import MeasuredCost
from axlog.views.value_codec import python_value

if TYPE_CHECKING:
    from axlog.views.why import Derivation, Matched


_Key = tuple[Any, ...]


class Dataflow(Maintainer):
    """Keeps the items of a plan; the patterns at its leaves are kept by the shared engine."""

    name = "dataflow"
    is_ordered = True
    has_items = True

    def __init__(
        self,
        tree: Tree,
        query: Query,
        engine: CountingEngine,
        work: int | None = None,
        given: Mapping[str, Any] | None = None,
        rejects: bool = False,
    ) -> None:
        super().__init__(tree, query.pattern)
        assert query.plan is not None
        self._plan = query.plan
        self._columns = query.row_key.kept
        self._has_ids = query.plan.has_nodes
        self._engine = engine
        self._evaluator = UnitEvaluator(tree, query.plan.text, query.plan.namespaces, given)
        self.collections = self._evaluator.collections
        self._sources: list[Source] = []
        last = len(query.plan.collections) - 1
        for number, each in enumerate(query.plan.collections):
            into = KeptCollection(each, self._evaluator, number == last)
            into.rejects = rejects
            self._sources.append(self._source(each.source, into, work))
            self.collections.append(into)
        self._root = self.collections[-1]
        self._root.replaced = self._replace
        self._rows: dict[_Key, tuple[Values, int]] = {}
        self._shown: dict[Unit, list[_Key]] = {}
        self._before: dict[_Key, tuple[Values, int] | None] = {}
        self._places: dict[_Key, tuple[Any, ...]] = {}
        self._touched: set[int] = set()
        self._is_loaded = False
        self._cost = MeasuredCost()  # of updates, if they may evaluate the whole query
        self._refused: QueryError | None = None

    def _source(self, source: Any, into: KeptCollection, work: int | None) -> Source:
        match source:
            case Leaf():
                return Tuples(source, into, self._evaluator, self._engine, work)
            case KeysOf():
                return Keys(source, self.collections[source.collection], into)
            case UnionOf(collections=numbers):
                return Union(source, [self.collections[each] for each in numbers], into)
            case ChosenOf():
                of = self.collections[source.collection]
                return Chosen(source, of, into, self._evaluator)
        return Single(into)

    # Reading --------------------------------------------------------------------------------------

    def rows(self) -> Iterable[Row]:
        self.load()
        found: dict[_Key, None] = {}
        for key, _ in self._ordered():
            found[key] = None
        return [Row(self._columns, *self._rows[key]) for key in found]

    def size(self) -> int:
        self.load()
        return len(self._rows)

    def items(self) -> list[Any]:
        """The result as people read it, in its order."""
        return [python_value(item_text(self.tree, item)) for item in self.sequence()]

    def sequence(self) -> Items:
        """The items of the result, in its order."""
        self.load()
        return [item for _, item in self._ordered()]

    @property
    def problem(self) -> ValueProblem | None:
        """The error for which a tuple had no value last; None if all had one."""
        return next((each.problem for each in self.collections if each.problem), None)

    def _ordered(self) -> Iterator[tuple[_Key, Item]]:
        """The items of the result with the keys of their rows; a path gives each node once."""
        group = self._root.groups.get(())
        if group is not None and self._root.plan.outputs[0].is_path:
            nodes = group.aspect(0, "all")
            if all(isinstance(item, Node) for item in nodes):
                for item in nodes:
                    yield ("node", item), item
                return
        for entry in [] if group is None else group.entries:
            number = 0
            for other in entry.unit.entries:
                if other is entry:
                    break
                number += len(other.items[0])
            for at, item in enumerate(entry.items[0], number):
                yield self._key(entry.unit, at, item), item

    # Updates --------------------------------------------------------------------------------------

    def before(self, delta: Delta) -> None:
        self.load()
        self._engine.before(delta)
        self._touched = set(self._above(delta))

    def after(self, delta: Delta) -> list[Change]:
        began = perf_counter()
        answers = self._engine.after(delta)
        if self.broken is not None:
            return []
        self._touched.update(self._above(delta))
        by_node = self._evaluator.by_node
        for node in self._touched:
            for unit in by_node.get(node, ()):
                unit.collection.stale.add(unit)
        self._touched = set()
        self._before, self._places = {}, {}
        for collection, source in zip(self.collections, self._sources, strict=True):
            source.update(answers.get(source.root, {}) if isinstance(source, Tuples) else {})
            collection.refresh()
            collection.notify()
        for collection in self.collections:
            collection.begin()
        if renames(delta):
            self._relabel()
        if self._plan.reevaluated is not None:
            self._cost.note(perf_counter() - began)
        return list(self._changes())

    def _above(self, delta: Delta) -> Iterator[int]:
        """The nodes at or below which the update changes something."""
        tree = self.tree
        places = [tree.parent(root) for root in (*delta.removed, *delta.added)]
        places += [change.node for change in delta.changed]
        seen: set[int] = set()
        for node in places:
            while node != NONE and node not in seen:
                seen.add(node)
                yield node
                node = tree.parent(node)

    def load(self) -> None:
        """Evaluate the plan on the document, once."""
        if self._is_loaded:
            if self._refused is not None:
                raise self._refused
            return
        self._is_loaded = True
        for source in self._sources:
            if isinstance(source, Tuples):
                self._engine.build(source.root)
        for collection, source in zip(self.collections, self._sources, strict=True):
            source.load()
            collection.refresh()
        for collection in self.collections:
            collection.begin()
        self._before = {}

    @property
    def broken(self) -> QueryError | None:
        for source in self._sources:
            if isinstance(source, Tuples):
                error = source.refused or self._engine.refusal(source.root)
                if error is not None:
                    return error
        return self._refused

    def close(self) -> None:
        for source in self._sources:
            if isinstance(source, Tuples):
                self._engine.drop(source.root, source)

    # Rows -----------------------------------------------------------------------------------------

    def _key(self, unit: Unit, number: int, item: Item) -> _Key:
        return ("node", item) if isinstance(item, Node) else (unit.binding, number)

    def _replace(self, unit: Unit, old: list[Entry]) -> None:
        """Follow the entries of a unit of the last collection."""
        for number, key in enumerate(self._shown.pop(unit, ())):
            self._remember(key, unit, number)
            values, count = self._rows.pop(key)
            if count > 1:
                self._rows[key] = (values, count - 1)
        items: Items = [item for entry in unit.entries for item in entry.items[0]]
        keys: list[_Key] = []
        for number, item in enumerate(items):
            key = self._key(unit, number, item)
            self._remember(key, unit, number)
            count = self._rows[key][1] if key in self._rows else 0
            self._rows[key] = (self._values(unit, number, item), count + 1)
            keys.append(key)
        if keys:
            self._shown[unit] = keys

    def _remember(self, key: _Key, unit: Unit, number: int) -> None:
        if self._is_loaded and key not in self._before:
            self._before[key] = self._rows.get(key)
            self._places[key] = (unit.place, number)

    def _values(self, unit: Unit, number: int, item: Item) -> Values:
        value = item_value(self.tree, item)
        if isinstance(item, Node):
            identifier = self.tree.id(item)
            return identifier, value, identifier
        key = f"{self._name(unit)}#{number + 1}"
        return (None, value, key) if self._has_ids else (value, key)

    def _name(self, unit: Unit) -> str:
        """The tuple of a unit, as text: ids of nodes, or values."""
        tree = self.tree
        names = []
        for name in self._root.plan.names:
            for item in unit.values[name]:
                if isinstance(item, Node):
                    names.append(str(tree.id(item)))
                else:
                    names.append(item if isinstance(item, str) else f"={item}")
        return ",".join(names)

    def _relabel(self) -> None:
        """Recompute ids after a rename: they contain the labels of their path."""
        for key, (values, count) in self._rows.items():
            if key[0] == "node":
                identifier = self.tree.id(key[1])
                self._rows[key] = ((identifier, values[1], identifier), count)

    def _changes(self) -> Iterator[Change]:
        """The changes of rows: of nodes in document order, then of values by their tuples.

        The units of an update are evaluated in any order, and a store that is opened again must
        give every change its number.
        """
        columns = self._columns
        keys = sorted(self._before, key=self._place) if len(self._before) > 1 else self._before
        for key in keys:
            before, after = self._before[key], self._rows.get(key)
            if before is None and after is not None:
                yield Change("insert", Row(columns, *after))
            elif before is not None and after is None:
                yield Change("delete", Row(columns, *before))
            elif before is not None and after is not None and _differ(before[0][-2], after[0][-2]):
                yield Change("update", Row(columns, *after), Row(columns, *before))
        self._before, self._places = {}, {}

    def _place(self, key: _Key) -> tuple[Any, ...]:
        found = self._rows.get(key) or self._before[key]
        identifier = None if found is None else found[0][-1]
        if isinstance(identifier, Id):
            return 0, identifier.key
        return 1, *self._places[key]

    # Explanations ---------------------------------------------------------------------------------

    def why(self, row: Mapping[str, Any], times: Times) -> list[Derivation]:
        """The tuples behind a row: the nodes of their variables, groups included."""
        from axlog.views.why import Derivation

        self.load()
        wanted = row.key_[0] if isinstance(row, Row) and row.key_ is not None else None
        found = []
        for unit, keys in self._shown.items():
            shown = [self._rows[key][0] for key in keys]
            if any(_is_of(row, wanted, values) for values in shown):
                found += [Derivation(each) for each in self._derivations(unit, times)]
        return found

    def _derivations(self, unit: Unit, times: Times) -> Iterator[tuple[Matched, ...]]:
        """The nodes of a tuple; of a key, those of its entries."""
        from axlog.views.why import matched

        nodes = [
            (name, item)
            for name, items in unit.values.items()
            for item in items
            if isinstance(item, Node)
        ]
        source = unit.collection.plan.source
        if nodes or not isinstance(source, KeysOf):
            tree = self.tree
            yield tuple(matched(tree, f"${_plain(name)}", node, times) for name, node in nodes)
            return
        group = self.collections[source.collection].groups[unit.binding]
        for member in dict.fromkeys(entry.unit for entry in group.entries):
            yield from self._derivations(member, times)

    def operators(self) -> tuple[str, ...]:
        lines = []
        for number, collection in enumerate(self.collections):
            plan = collection.plan
            match plan.source:
                case Leaf(pattern=pattern):
                    source = str(pattern)
                case KeysOf(collection=of):
                    source = f"keys of collection {of + 1}"
                case UnionOf(collections=numbers):
                    source = f"keys of collections {', '.join(str(n + 1) for n in numbers)}"
                case ChosenOf(collection=of):
                    source = f"positions in collection {of + 1}"
                case _:
                    source = "one tuple"
            index = "" if plan.index.kind == "one" else f", by {plan.index.kind}"
            lines.append(
                f"collection {number + 1}: {source}{index}; {len(collection.units)} tuples"
            )
        if self._cost.evaluations:
            lines.append(str(self._cost))
        problem = self.problem
        if problem is not None:
            number = sum(each.errors for each in self.collections)
            said = f"{problem.code}: {problem.message}"
            lines.append(f"tuples without a value since the view began: {number}; last {said}")
        return tuple(lines)


def _plain(name: str) -> str:
    """A variable as the query has it; those of the compiler stand for steps of paths."""
    return name.partition("~")[0]


def _is_of(row: Mapping[str, Any], wanted: Any, values: Values) -> bool:
    if wanted is not None:
        return bool(values[-1] == wanted)
    named = dict(zip(("value", "id"), values[-2::-1], strict=False))
    return all(
        column in named and (value is None or str(value) == str(named[column]))
        for column, value in row.items()
    )


def _differ(one: Any, other: Any) -> bool:
    return type(one) is not type(other) or (one != other and not (one != one and other != other))
