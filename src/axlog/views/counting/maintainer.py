"""The counting maintainer: the rows of a view, from the deltas of its root relation.

A binding (strings, times, node handles) identifies a row. Ids, values and contents are read from
the document when the row is shown. A reverse index from nodes to rows finds the rows that a change
below a node updates, so an `update` costs the ancestors of the changed nodes and the rows that show
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from math import gcd
from typing import Any

from axlog.document.delta import Delta, renames
from axlog.document.tree import DOCUMENT_NODE, NONE, Tree
from axlog.errors import QueryError
from axlog.evaluate.collected_paths import gather
from axlog.evaluate.joins import Bag, add_all, picker
from axlog.evaluate.joins import Row as Binding
from axlog.query.compile import Gather, Program, Relation, compile_pattern
from axlog.query.pattern import Kind, Output, Pattern, nodes_of
from axlog.views.change import Change, Row, Values
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.known_rows import begin_with
from axlog.views.maintainer import Maintainer
from axlog.views.operators.disk_table import counts_on
from axlog.views.outputs import shown_of

_READ = (Kind.VAL, Kind.CONT)
_OF_NODES = (Kind.ID, Kind.VAL, Kind.CONT)


@lru_cache(maxsize=1024)
def _refusal(pattern: Pattern) -> str | None:
    """Why the pattern cannot be counted; None: it can."""
    return compile_pattern(pattern).refusal


class Counting(Maintainer):
    """Keeps rows by derivation counts; the engine is shared by the views of one tree."""

    name = "counting"

    def __init__(
        self,
        tree: Tree,
        pattern: Pattern,
        engine: CountingEngine | None = None,
        work: int | None = None,
        known: Callable[[Sequence[str]], Bag | None] | None = None,
    ) -> None:
        """`work`: the rows that an update may make the view read; None: the engine's budget.

        `known` gives the rows by the columns of the root relation, if they are known.
        """
        super().__init__(tree, pattern)
        self.work = work
        self.version = 0  # increases when rows come or go
        self._refused: QueryError | None = None
        self.engine = engine if engine is not None else CountingEngine(tree)
        program = self.engine.compiled(pattern)
        self._show = self.engine.show or Showing(tree, program)
        self._names = self._show.columns
        shelf = self.engine.shelf
        self._counts: Bag = {}
        self._over = self._under = 1  # a count is the kept one times over / under
        self._values: dict[Binding, Values] = {}
        self._keeps_values = self._show.needs_nodes
        if not self._show.needs_nodes:
            self._values = ShownAgain(self._show)
            if shelf is not None:
                self._counts = counts_on(shelf)
        self._shown_by: dict[int, set[Binding]] = {}
        self._touched: set[int] = set()
        self._has_stale_ids = False  # after a rename: ids contain labels
        self.root = self.engine.add(program, self._load, self)
        rows = None if known is None else known(self.root.columns)
        self.is_begun = rows is not None and begin_with(self.engine, self.root, rows)
        """Whether the known rows were enough to set it up."""

    @property
    def can_scale(self) -> bool:
        """Whether the counts of all rows can be multiplied at once (`scale`)."""
        return type(self) is Counting and type(self._counts) is dict

    def scale(self, before: int, after: int) -> None:
        """Multiply the counts of all rows by `after` / `before`.

        A branch that binds nothing is a factor of every row. The counts are multiplied when they
        are read, so that a message for such a branch does not cost what the view has rows.
        """
        if not self._counts:
            return
        over, under = self._over * after, self._under * before
        most = gcd(over, under)
        self._over, self._under = over // most, under // most

    def _settle_scale(self) -> None:
        """Multiply the kept counts."""
        over, under = self._over, self._under
        if over != under:
            self._over = self._under = 1
            for binding, count in self._counts.items():
                self._counts[binding] = count * over // under

    def _load(self, first: Bag) -> None:
        self._settle_scale()
        self.version += 1
        for binding, count in first.items():
            self._counts[binding] = count
            self._enter(binding)

    def recount(self, whole: Bag) -> None:
        """Replace the counts by those of the whole document, after filters dropped rows.

        The rows must be the same.
        """
        if set(whole) != {binding for binding, _ in self._counts.items()}:
            raise AssertionError("filters have changed the rows of a view")  # law 5
        self._over = self._under = 1
        for binding, count in whole.items():
            self._counts[binding] = count

    @property
    def roots(self) -> tuple[Relation, ...]:
        """The root relations that feed the view; most have one."""
        return (self.root,)

    def relations(self) -> Iterable[Relation]:
        return (relation for root in self.roots for relation in root.walk())

    def reloads(self) -> list[tuple[Relation, Callable[[Bag], None]]]:
        """The functions that get the rows of the root relations after filters dropped rows."""
        return [(self.root, self.recount)]

    def expect_insertions(self) -> None:
        """Prepare for updates that only insert nodes: drop rows that cannot be shown any more."""

    @property
    def gathers(self) -> bool:
        """Whether rows show collected paths, which are read from the document."""
        return bool(self._show._gathers)

    def bindings(self) -> list[Binding]:
        """The bindings of the current rows."""
        self.engine.build(self.root)
        return [binding for binding, _ in self._counts.items()]

    @staticmethod
    def refusal(pattern: Pattern) -> str | None:
        return _refusal(pattern)

    def rows(self) -> Iterable[Row]:
        self.engine.build(self.root)
        self.relabel()
        self._settle_scale()
        columns = self.pattern.columns
        values = self._values
        return (Row(columns, values[b], count) for b, count in self._counts.items())

    def before(self, delta: Delta) -> None:
        self.relabel()
        self.engine.before(delta)
        self._touched = set(self._above(delta)) if self._show.reads else set()

    def after(self, delta: Delta) -> list[Change]:
        moved = self.engine.after(delta).get(self.root, {})
        self._has_stale_ids = self._show.has_ids and renames(delta)
        if self.broken is not None:  # just now
            return []
        changes = self.take(moved)
        if self._show.reads:
            changes += self.reread(self._touched.union(self._above(delta)), moved)
        return changes

    @property
    def broken(self) -> QueryError | None:
        return self._refused or self.engine.refusal(self.root)

    def refuse(self, error: QueryError) -> None:
        """Set the view aside: it exceeded its budget. Views that share its plan continue."""
        self._refused = error

    def operators(self) -> tuple[str, ...]:
        from axlog.views.counting.operator_lines import operator_lines

        return () if self.broken is not None else operator_lines(*self.engine.plan_of(self.root))

    def close(self) -> None:
        self.engine.drop(self.root, self)

    def take(self, moved: Bag) -> list[Change]:
        """Add to the counts; a row whose count leaves or reaches zero is a change."""
        changes: list[Change] = []
        columns, counts = self._names, self._counts
        if self._over != self._under:
            moved = self._unscaled(moved)
        over, under = self._over, self._under
        pick = self._show.pick if type(self) is Counting else None  # others follow rows that come
        for binding, count in moved.items():
            old = counts.get(binding, 0)
            new = old + count
            if new:
                counts[binding] = new
            if not old:
                shown = new if over == under else new * over // under
                values = pick(binding) if pick is not None else self._enter(binding)
                changes.append(Change("insert", Row(columns, values, shown)))
            elif not new:
                del counts[binding]
                values = self._leave(binding)
                shown = old if over == under else old * over // under
                changes.append(Change("delete", Row(columns, values, shown)))
        if changes:
            self.version += 1
        return changes

    def take_row(self, binding: Binding, count: int) -> Row | Change | None:
        """`take` for one row: the row if it comes, its change if it goes; None: neither."""
        if self._over != self._under:
            changes = self.take({binding: count})
            return changes[0] if changes else None
        counts = self._counts
        old = counts.get(binding)
        if old is None:
            counts[binding] = count
            self.version += 1
            return Row(self._names, self._enter(binding), count)
        new = old + count
        if new:
            counts[binding] = new
            return None
        self.version += 1
        del counts[binding]
        return Change("delete", Row(self._names, self._leave(binding), old))

    def _unscaled(self, moved: Bag) -> Bag:
        """A delta of counts as it is kept; multiplies the kept counts if it does not divide."""
        over, under = self._over, self._under
        found: Bag = {}
        for binding, count in moved.items():
            found[binding], rest = divmod(count * under, over)
            if rest:
                self._settle_scale()
                return moved
        return found

    def take_all(self, moved: Sequence[Bag]) -> list[Change]:
        """Do the same for the deltas of all root relations, in their order."""
        (only,) = moved
        return self.take(only)

    def let_go(self) -> None:
        """Drop all rows but one; they can neither leave nor return (`Prospects.settles`).

        The remaining row keeps the fact that the view has rows.
        """
        self.version += 1
        for binding in list(self._counts)[1:]:
            del self._counts[binding]
            self._leave(binding)

    def counts(self) -> Bag:
        """The bindings of the current rows, with their counts."""
        self.engine.build(self.root)
        self._settle_scale()
        return dict(self._counts.items())

    def state(self) -> tuple[Any, ...]:
        """The rows as plain tuples, for documents that keep no messages."""
        return tuple(self.counts().items())

    def restore(self, saved: Sequence[Any]) -> None:
        """Replace the rows by saved ones."""
        moved: Bag = dict(saved)
        add_all(moved, self.counts(), -1)
        self.take(moved)

    def has(self, binding: Binding) -> bool:
        """Whether the row of a binding exists."""
        return binding in self._counts

    @property
    def has_rows(self) -> bool:
        self.engine.build(self.root)
        return bool(self._counts)

    def relabel(self) -> None:
        """Recompute ids after a rename: they contain the labels of their path."""
        if self._has_stale_ids:
            self._has_stale_ids = False
            for binding in self._values:
                self._values[binding] = self._show.values(binding)

    def _enter(self, binding: Binding) -> Values:
        show = self._show
        values = self._values[binding] = show.values(binding)
        if show.reads:
            for node in show.nodes_read(binding):
                self._shown_by.setdefault(node, set()).add(binding)
        return values

    def _leave(self, binding: Binding) -> Values:
        for node in self._show.nodes_read(binding) if self._show.reads else ():
            rows = self._shown_by.get(node)
            if rows is not None:
                rows.discard(binding)
                if not rows:
                    del self._shown_by[node]
        return self._values.pop(binding)

    @property
    def shows_nodes(self) -> bool:
        """Whether rows show ids, values or contents of nodes."""
        return self._show.needs_nodes

    def shows_any(self, nodes: Iterable[int]) -> bool:
        """Whether a row shows the value or content of one of these nodes."""
        return not self._shown_by.keys().isdisjoint(nodes)

    def expect_new_ids(self) -> None:
        """Compute ids anew when the rows are next read, after a rename."""
        self._has_stale_ids = True

    def take_read(self, moved: Bag, touched: set[int]) -> list[Change]:
        """Take a delta of the bindings, and read again what shows a node with changes below it."""
        return self.take(moved) + self.reread(touched, moved)

    def reread(self, touched: Iterable[int], moved: Bag) -> list[Change]:
        """The updates of rows that show the value or content of a node with changes below it."""
        bindings = {b for node in touched for b in self._shown_by.get(node, ())}
        self._settle_scale()
        changes: list[Change] = []
        columns = self._names
        for binding in bindings:
            before, after = self._values[binding], self._show.values(binding)
            if before != after:
                self._values[binding] = after
                count = self._counts[binding]
                old = Row(columns, before, count - moved.get(binding, 0))
                changes.append(Change("update", Row(columns, after, count), old))
        return changes

    def _above(self, delta: Delta) -> Iterator[int]:
        """The nodes whose value or content the update may change."""
        tree = self.tree
        places = [tree.parent(root) for root in (*delta.removed, *delta.added)]
        places += [change.node for change in delta.changed]
        seen: set[int] = set()
        for node in places:
            while node != NONE and node not in seen:
                seen.add(node)
                yield node
                node = tree.parent(node)


class ShownAgain(dict[Binding, Values]):
    """The values of rows that follow from their bindings: computed on access, never stored."""

    def __init__(self, show: Showing) -> None:
        super().__init__()
        self._show = show

    def __missing__(self, binding: Binding) -> Values:
        return self._show.values(binding)

    def __setitem__(self, binding: Binding, values: Values) -> None:
        pass

    def pop(self, binding: Binding, *default: Any) -> Any:
        return self._show.values(binding)


class Showing:
    """Turns bindings into the values of rows: maps outputs to columns, and reads nodes."""

    def __init__(self, tree: Tree, program: Program) -> None:
        self.tree = tree
        self.columns = program.pattern.columns
        columns = program.root.columns
        self._gathers: list[tuple[Gather, int | None]] = [
            (gather, None if gather.anchor is None else columns.index(gather.anchor))
            for gather in program.gathers
        ]
        self._collected = {
            node.name: number
            for number, (gather, _) in enumerate(self._gathers)
            for node in nodes_of(gather.node)
            if node.name is not None
        }
        self._outputs: list[tuple[Output, int]] = []
        self._read_at: list[int] = []
        for output in program.pattern.outputs:
            at = -1 if output.of in self._collected else columns.index(column_of(output))
            self._outputs.append((output, at))
            if output.kind in _READ and at >= 0:
                self._read_at.append(at)
        self.reads = bool(self._read_at or self._gathers)
        self.has_ids = any(output.kind is Kind.ID for output, _ in self._outputs)
        self.needs_nodes = self.reads or any(o.kind in _OF_NODES for o, _ in self._outputs)
        positions = tuple([at for _, at in self._outputs])
        self.picked = None if self.needs_nodes else positions
        """The positions of a row's values in its binding, if it shows strings and times alone."""
        self.pick = None if self.picked is None else picker(self.picked)

    def nodes_read(self, binding: Binding) -> Iterator[int]:
        """The nodes whose value, content or collected paths the row shows."""
        for at in self._read_at:
            yield int(binding[at])
        for _, anchor in self._gathers:
            yield DOCUMENT_NODE if anchor is None else int(binding[anchor])

    def values(self, binding: Binding) -> Values:
        if self.pick is not None:
            return self.pick(binding)
        found = [
            gather(self.tree, each.node, DOCUMENT_NODE if at is None else int(binding[at]))
            for each, at in self._gathers
        ]
        shown: list[Any] = []
        for output, at in self._outputs:
            if at >= 0:
                shown.append(self._value(output.kind, binding[at]))
            else:
                nodes = found[self._collected[output.of]].get(output.of, ())
                shown.append(tuple(shown_of(self.tree, output.kind, node) for node in nodes))
        return tuple(shown)

    def _value(self, kind: Kind, value: str | int) -> Any:
        """The value of an output: strings and times from the binding, the rest from its node."""
        return shown_of(self.tree, kind, int(value)) if kind in _OF_NODES else value


def column_of(output: Output) -> str:
    """The column of a root relation that an output shows, or whose node it shows."""
    if output.kind is Kind.VARIABLE:
        return f"${output.of}"
    source = {Kind.LABEL: "label", Kind.TIME: "time"}.get(output.kind, "node")
    return f"{output.of}.{source}"
