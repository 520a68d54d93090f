"""Sibling axes with joins: the counting engine keeps the joins, this module the sibling order.

The records algorithms do not handle patterns that bind variables or compare times. Where the
sibling edges of such a pattern are not inside a connective, both ends are below one parent:

    p/x[following-sibling::y]   is   p[x][y]   where y comes after x

The counting engine keeps the joins of the widened pattern with the nodes of both ends. A joined row
counts if its nodes are in the order that the axes require. For `following` and `preceding`, the
order of two nodes never changes. Next and previous siblings are checked again when a node is
inserted or deleted beside them. Law: rows, counts and changes are those of re-evaluation.

An update costs the joined rows that change, whatever the order of their nodes: without a join
value, two sets of siblings give all their pairs.

Not handled: sibling edges inside `or`, `not` and `collect`, or below a node reached by an axis
other than child, descendant and the sibling axes; rows that show values or contents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from axlog.document.delta import Delta, renames
from axlog.document.tree import ATTRIBUTE, ELEMENT, NONE, Tree
from axlog.evaluate.joins import Bag
from axlog.evaluate.joins import Row as Binding
from axlog.query.compile import compile_pattern
from axlog.query.pattern import (
    AnyNode,
    Axis,
    Branch,
    Kind,
    Output,
    Pattern,
    PatternNode,
    nodes_of,
    sees_markup,
)
from axlog.views.change import Change, Row, Values
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.maintainer import Counting, Showing
from axlog.views.maintainer import Maintainer
from axlog.views.records.question import Declined

SIBLING = frozenset(
    {Axis.NEXT_SIBLING, Axis.FOLLOWING_SIBLING, Axis.PREVIOUS_SIBLING, Axis.PRECEDING_SIBLING}
)
MOST_LINKS = 4
"""The most sibling axes: joined rows multiply with every axis without a join value."""
_SHOWN = frozenset({Kind.VARIABLE, Kind.LABEL, Kind.ID, Kind.TIME})


@dataclass(frozen=True, slots=True)
class Link:
    """Two named nodes below one parent, and the axis from the first to the second."""

    one: str
    axis: Axis
    other: str


@dataclass(frozen=True, slots=True)
class Widened:
    """A pattern without sibling axes, and the required order of the nodes of its rows."""

    pattern: Pattern
    links: tuple[Link, ...]


def widened(pattern: Pattern) -> Widened:
    """The pattern for the counting engine; raises `Declined` if there is none."""
    if any(output.kind not in _SHOWN for output in pattern.outputs):
        raise Declined("its rows show values or contents")
    widening = _Widener({node.name for node in pattern.nodes() if node.name is not None})
    branches = tuple(new for branch in pattern.branches for new in widening.branch(branch, True))
    if not widening.links:
        raise Declined("all sibling axes are inside a connective")
    if len(widening.links) > MOST_LINKS:
        raise Declined(f"it has more than {MOST_LINKS} sibling axes")
    names = dict.fromkeys(name for link in widening.links for name in (link.one, link.other))
    shown = tuple(Output(Kind.ID, name, f"{name}~id") for name in names)
    wide = Pattern(branches, pattern.where, (*pattern.outputs, *shown))
    refusal = Counting.refusal(wide)
    if refusal is not None:
        raise Declined(refusal)
    return Widened(wide, tuple(widening.links))


class _Widener:
    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self.links: list[Link] = []

    def branch(self, branch: Branch, is_top: bool = False) -> Iterator[Branch]:
        """The branches that replace a branch below its parent; with siblings, several."""
        if not isinstance(branch, PatternNode):
            if any(node.axis in SIBLING for node in nodes_of(branch)):
                raise Declined("a sibling axis is inside a connective")
            yield branch
            return
        if branch.axis in SIBLING:
            raise Declined("a sibling axis starts at the document")
        group = self._group(branch)
        if len(group) == 1:
            yield group[0]
        elif branch.axis is Axis.CHILD:
            yield from group
        elif is_top and branch.axis is Axis.DESCENDANT and any(map(sees_markup, group)):
            raise Declined("comments beside the root element may be siblings")
        elif branch.axis is Axis.DESCENDANT:
            below = tuple(replace(node, axis=Axis.CHILD) for node in group)
            yield PatternNode(Axis.DESCENDANT_OR_SELF, AnyNode(), branches=below)
        else:
            raise Declined(f"a sibling axis is below {branch.axis.value}")

    def _group(self, node: PatternNode) -> list[PatternNode]:
        """A node without its sibling branches, followed by its siblings."""
        beside = [b for b in node.branches if isinstance(b, PatternNode) and b.axis in SIBLING]
        if beside and node.name is None:
            node = replace(node, name=self._name())
        group: list[PatternNode] = []
        for other in beside:
            name = other.name or self._name()
            assert node.name is not None, "a node with siblings has a name"
            self.links.append(Link(node.name, other.axis, name))
            group += self._group(replace(other, axis=Axis.CHILD, name=name))
        kept = tuple(new for b in node.branches if b not in beside for new in self.branch(b))
        return [replace(node, branches=kept), *group]

    def _name(self) -> str:
        number = len(self._taken)
        while f"sibling{number}" in self._taken:
            number += 1
        self._taken.add(f"sibling{number}")
        return f"sibling{number}"


class SiblingOrder(Maintainer):
    """Keeps a pattern with sibling axes and joins; all views of a document share the engine."""

    name = "records"

    def __init__(self, tree: Tree, pattern: Pattern, engine: CountingEngine) -> None:
        super().__init__(tree, pattern)
        wide = widened(pattern)
        program = compile_pattern(wide.pattern)
        columns = program.root.columns
        self._links = [
            (columns.index(f"{link.one}.node"), link.axis, columns.index(f"{link.other}.node"))
            for link in wide.links
        ]
        self._engine = engine
        self._show = Showing(tree, program)
        self._joined: Bag = {}
        self._values: dict[Binding, Values] = {}
        self._counted: dict[Binding, int] = {}  # joined rows in the required order
        self._at: dict[
            int, set[Binding]
        ] = {}  # from the first node of a next or previous link to its rows
        self._rows: dict[Values, int] = {}
        self._beside: set[int] = set()
        self._has_stale_ids = False  # after a rename: ids contain labels
        self._root = engine.add(program, self._load)
        engine.build()

    @staticmethod
    def refusal(pattern: Pattern) -> str | None:
        try:
            widened(pattern)
        except Declined as declined:
            return str(declined)
        return None

    def _load(self, rows: Bag) -> None:
        self._move(rows, set())

    def _relabel(self) -> None:
        """Recompute ids after a rename: they contain the labels of their path."""
        if self._has_stale_ids:
            self._has_stale_ids = False
            size = len(self.pattern.outputs)
            self._values = {b: self._show.values(b)[:size] for b in self._values}
            fresh = {values: values for values in self._values.values()}
            self._rows = {fresh[values]: count for values, count in self._rows.items()}

    def rows(self) -> Iterable[Row]:
        self._relabel()
        columns = self.pattern.columns
        return [Row(columns, values, count) for values, count in self._rows.items()]

    def size(self) -> int:
        return len(self._rows)

    # An update ------------------------------------------------------------------------------------

    def before(self, delta: Delta) -> None:
        self._relabel()
        self._engine.before(delta)
        self._beside = {near for root in delta.removed for near in self._near(root)}

    def after(self, delta: Delta) -> list[Change]:
        moved = self._engine.after(delta).get(self._root, {})
        self._has_stale_ids = renames(delta)
        beside = self._beside.union(*(self._near(root) for root in delta.added))
        looked = {binding for node in beside for binding in self._at.get(node, ())}
        old = self._move(moved, looked)
        columns = self.pattern.columns
        changes: list[Change] = []
        for values, count in old.items():
            now = self._rows.get(values, 0)
            if count and not now:
                changes.append(Change("delete", Row(columns, values, count)))
            elif now and not count:
                changes.append(Change("insert", Row(columns, values, now)))
        return changes

    def close(self) -> None:
        self._engine.drop(self._root)

    def _near(self, root: int) -> Iterator[int]:
        """The nodes whose next or previous sibling an inserted or deleted node can be."""
        tree = self.tree
        if tree.kind_column[root] == ATTRIBUTE:
            return
        yield root
        for step in (tree.previous, tree.next):
            at = step(root)
            while at != NONE and tree.kind_column[at] != ATTRIBUTE:
                yield at
                if tree.kind_column[at] == ELEMENT:
                    break
                at = step(at)

    def _move(self, moved: Bag, looked: set[Binding]) -> dict[Values, int]:
        """Apply a delta of joined rows; return the former counts of the rows that it touches."""
        old: dict[Values, int] = {}
        for binding, count in moved.items():
            if self._joined.get(binding, 0) + count:
                self._enter(binding)
        for binding in looked.union(moved):
            now = self._joined.get(binding, 0) + moved.get(binding, 0)
            if now and not self._is_ordered(binding):
                now = 0
            values = self._values[binding]
            had = self._counted.pop(binding, 0)
            if now:
                self._counted[binding] = now
            total = self._rows.get(values, 0)
            old.setdefault(values, total)
            total += now - had
            if total:
                self._rows[values] = total
            else:
                self._rows.pop(values, None)
        for binding, count in moved.items():
            self._set_count(binding, self._joined.get(binding, 0) + count)
        return old

    def _enter(self, binding: Binding) -> None:
        if binding not in self._values:
            shown = self._show.values(binding)
            self._values[binding] = shown[: len(self.pattern.outputs)]
            for node in self._watched(binding):
                self._at.setdefault(node, set()).add(binding)

    def _set_count(self, binding: Binding, count: int) -> None:
        """Set the count of a joined row; forget the row at zero."""
        if count:
            self._joined[binding] = count
            return
        self._joined.pop(binding, None)
        self._values.pop(binding, None)
        for node in self._watched(binding):
            rows = self._at.get(node)
            if rows is not None:
                rows.discard(binding)
                if not rows:
                    del self._at[node]

    def _watched(self, binding: Binding) -> Iterator[int]:
        """The nodes beside which an insertion or deletion can affect a joined row."""
        for one, axis, _ in self._links:
            if axis in (Axis.NEXT_SIBLING, Axis.PREVIOUS_SIBLING):
                yield int(binding[one])

    def _is_ordered(self, binding: Binding) -> bool:
        return all(
            self._is_in_order(int(binding[one]), axis, int(binding[other]))
            for one, axis, other in self._links
        )

    def _is_in_order(self, one: int, axis: Axis, other: int) -> bool:
        tree = self.tree
        match axis:
            case Axis.FOLLOWING_SIBLING:
                return tree.component(one) < tree.component(other)
            case Axis.PRECEDING_SIBLING:
                return tree.component(other) < tree.component(one)
        step = tree.next if axis is Axis.NEXT_SIBLING else tree.previous
        at = step(one)
        while at != NONE and tree.kind_column[at] != ELEMENT:
            if tree.kind_column[at] == ATTRIBUTE:
                return False
            at = step(at)
        return at == other
