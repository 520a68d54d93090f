"""The generalised rows that sub-patterns can have in future trees.

Nothing in a future tree is known except what the pattern itself states: a label that it tests for,
a value that it compares with `=`. A relation is split into conjunctions, one for each way through
its `or`s. A conjunction at one node is split into its conditions on an element, a text or an
attribute there. Conditions on the same node are combined: `self::` steps, attributes of one name,
and relations that must share one tree (`capacity.py`).

A node is never older than its parent where a message may hold calls, which deliver more later.
Where messages hold no calls (`together`), all nodes of a tree have the same time. Contradictory
conditions have no rows.

The result is exact. Rejected with AX503: `not`, tests for comments and processing instructions, and
a compared value that has further conditions inside. (Paper 2, section 3, step 2.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from axlog.errors import UndecidedError
from axlog.future.comments import refuse_markup_tests
from axlog.future.generalized_rows import NOTHING, Need, Rows, add_need, meet, project
from axlog.future.search_budget import spend
from axlog.future.time_constraints import Inequality, at_or_after
from axlog.future.unknowns import ValueNeeds, is_consistent
from axlog.query.compile import Edge, Relation
from axlog.query.pattern import (
    AnyNode,
    AnyText,
    Axis,
    Comparison,
    Literal,
    Name,
    PatternNode,
    Test,
    Variable,
    Wildcard,
)

ELEMENT, TEXT, ATTRIBUTE = "element", "text", "attribute"
Table = tuple[Rows, list[str]]
"""Rows and their columns."""


def bringable(
    relations: Sequence[Relation],
    is_root: bool,
    together: bool = False,
    same: Sequence[frozenset[Relation]] = (),
) -> Table:
    """The rows of relations at one future node, with all columns that they bind at any depth.

    `is_root`: the node is the root of its tree, an element. `together`: messages hold no calls.
    `same`: sets of relations below one node that must match the same node.
    """
    rows, layout = _ArrivalBuilder(same).at(relations, is_root, None)
    if not together:
        return rows, layout
    found: Rows = {}
    for values, needs in rows.items():
        for need in needs:
            one_time = same_times(need.unknown_times)
            add_need(found, values, replace(need, times=need.times.union(one_time)))
    return found, layout


def same_times(names: Iterable[str]) -> list[Inequality]:
    """Inequalities which state that all these unknown times are equal."""
    first, *others = sorted(names) or [""]
    pairs = [(at_or_after(first, other), at_or_after(other, first)) for other in others]
    return [inequality for pair in pairs for inequality in pair]


def deep_columns(relations: Iterable[Relation]) -> list[str]:
    """Every column that relations bind, at any depth."""
    found: dict[str, None] = {}
    for relation in relations:
        found.update((column, None) for column, _ in relation.own)
        found.update((column, None) for column in deep_columns(relation.below()))
    return list(found)


@dataclass(frozen=True, slots=True)
class _Way:
    """A conjunction at one node: the relations that hold there, and the edges below it."""

    members: tuple[Relation, ...] = ()
    edges: tuple[Edge, ...] = ()

    def with_member(self, relation: Relation) -> Iterator[_Way]:
        """The ways in which one more relation holds at the node."""
        if relation.absences:
            raise UndecidedError("AX503", "`not` in data that a stream may deliver is not covered")
        ways: Iterable[_Way] = [replace(self, members=(*self.members, relation))]
        for edge in relation.edges:
            ways = _bounded(longer for way in ways for longer in way.with_edge(edge))
        for choice in relation.choices:
            alternatives = choice.alternatives
            ways = _bounded(
                w for way in ways for each in alternatives for w in way.with_member(each)
            )
        yield from ways

    def with_edge(self, edge: Edge) -> Iterator[_Way]:
        if edge.axis in (Axis.SELF, Axis.DESCENDANT_OR_SELF):
            yield from self.with_member(edge.relation)
        if edge.axis is Axis.DESCENDANT_OR_SELF:
            edge = Edge(Axis.DESCENDANT, edge.relation)
        if edge.axis is not Axis.SELF:
            yield replace(self, edges=(*self.edges, edge))

    @property
    def nodes(self) -> list[PatternNode]:
        return [member.node for member in self.members if member.node is not None]

    @property
    def constants(self) -> list[Comparison]:
        compared = [c for node in self.nodes for c in node.comparisons]
        literals = [n.test.text for n in self.nodes if isinstance(n.test, Literal)]
        fixed = [Comparison("=", text) for text in literals]
        return fixed + [c for c in compared if not isinstance(c.operand, Variable)]

    def columns(self, *sources: str) -> list[str]:
        """The columns that show one of these sources of the node, without duplicates."""
        own = [pair for member in self.members for pair in member.own]
        return list(dict.fromkeys(column for column, source in own if source in sources))


class _ArrivalBuilder:
    """Builds the rows of relations in one future tree, from the top down."""

    def __init__(self, same: Sequence[frozenset[Relation]]) -> None:
        self._same = same

    def at(self, relations: Sequence[Relation], is_root: bool, above: str | None) -> Table:
        """The rows of relations at one node. `above` is the nearest named ancestor."""
        layout = deep_columns(relations)
        found: Rows = {}
        for way in _ways(relations):
            for kind in _kinds(way, is_root):
                _add_reordered(found, layout, self._of_kind(kind, way, above))
        return found, layout

    def _of_kind(self, kind: str, way: _Way, above: str | None) -> Table:
        if kind == TEXT:
            start = _text(way)
        elif kind == ATTRIBUTE:
            return self._attribute(way, above)
        else:
            start = _element(way)
        if start is None:
            return {}, []
        names = _names(way)
        nearest = names[0] if names else above
        parts = [self.at(group, False, nearest) for group in _groups(way.edges, self._same)]
        return self._join(way, start, above, parts)

    def _join(self, way: _Way, start: _Own, above: str | None, parts: list[Table]) -> Table:
        known, need = start
        names = _names(way)
        times = [*same_times(names), *(at_or_after(n, above) for n in names if above is not None)]
        for column in way.columns("node", "time"):
            known[column] = None
        need = replace(need, times=frozenset(times), unknown_times=frozenset(names))
        rows: Rows = {tuple(known.values()): [need]}
        layout = list(known)
        for part, columns in parts:
            rows, layout = meet(rows, layout, part, tuple(columns))
        tests = [test for member in way.members for test in member.tests]
        return project(rows, layout, tests, tuple(layout), add_need, pins=False), layout

    def _attribute(self, way: _Way, above: str | None) -> Table:
        """The rows of an attribute. Its value is the single text below it."""
        label = next((f"@{n.test.label}" for n in way.nodes if isinstance(n.test, Name)), None)
        labelled = way.columns("label")
        if label is None and labelled:
            raise UndecidedError(
                "AX503", f"{labelled[0]} is the name of an attribute that has not arrived"
            )
        names = _names(way)
        layout = deep_columns(way.members)
        found: Rows = {}
        for text in _ways([edge.relation for edge in way.edges]):
            start = _text(text, way) if TEXT in _kinds(text, False) else None
            if start is not None:
                part = self._join(text, start, names[0] if names else above, [])
                own: _Own = (dict.fromkeys(labelled, label), NOTHING)
                _add_reordered(found, layout, self._join(way, own, above, [part]))
        return found, layout


_Own = tuple[dict[str, str | None], Need]
"""Values that are read from a node itself, and the conditions on them."""


def _names(way: _Way) -> list[str]:
    return [node.name for node in way.nodes if node.name is not None]


def _add_reordered(found: Rows, layout: list[str], brought: Table) -> None:
    """Add rows with their columns reordered; a missing column is unknown."""
    rows, columns = brought
    order = [columns.index(c) if c in columns else None for c in layout]
    for values, needs in rows.items():
        for need in needs:
            add_need(found, tuple(None if i is None else values[i] for i in order), need)


def _ways(relations: Sequence[Relation]) -> list[_Way]:
    ways = [_Way()]
    for relation in relations:
        ways = _bounded(longer for way in ways for longer in way.with_member(relation))
    return ways


def _bounded(ways: Iterable[_Way]) -> list[_Way]:
    """The ways as a list, counted against the search budget: each `or` doubles them."""
    found: list[_Way] = []
    for way in ways:
        spend(1)
        found.append(way)
    return found


def _kinds(way: _Way, is_root: bool) -> list[str]:
    """The kinds of node that can pass all tests of a conjunction."""
    nodes = way.nodes
    refuse_markup_tests(nodes)
    if any(node.axis is Axis.ATTRIBUTE for node in nodes):
        same = {node.test for node in nodes if node.axis is Axis.ATTRIBUTE}
        others = [node for node in nodes if node.axis is not Axis.ATTRIBUTE]
        named = {test for test in same if isinstance(test, Name)}
        fits = len(named) <= 1 and all(isinstance(node.test, AnyNode) for node in others)
        return [ATTRIBUTE] if fits else []
    kinds = []
    if all(_may_be(ELEMENT, node.test) for node in nodes):
        labels = {node.test.label for node in nodes if isinstance(node.test, Name)}
        kinds += [ELEMENT] if len(labels) <= 1 else []
    if not is_root and not way.edges and all(_may_be(TEXT, node.test) for node in nodes):
        kinds.append(TEXT)
    return kinds


def _may_be(kind: str, test: Test) -> bool:
    if isinstance(test, Variable | AnyNode):
        return True
    if kind == ELEMENT:
        return isinstance(test, Name | Wildcard)
    return isinstance(test, Literal | AnyText)


def _element(way: _Way) -> _Own | None:
    """The columns of an element itself. Its label is a name, and differs from its value."""
    constants = way.constants
    valued = way.columns("value")
    if (constants or valued) and any(edge.axis is not Axis.ATTRIBUTE for edge in way.edges):
        raise UndecidedError(
            "AX503",
            f"{way.nodes[0]} compares a value that has not arrived and has conditions inside it",
        )
    if not is_consistent(constants):
        return None
    label = next((n.test.label for n in way.nodes if isinstance(n.test, Name)), None)
    labelled = way.columns("label")
    value = _fixed_string(constants)
    known: dict[str, str | None] = dict.fromkeys(labelled, label)
    for column in valued:
        if known.get(column) is not None and value is not None and known[column] != value:
            return None
        known[column] = value if known.get(column) is None else known[column]
    open_labels = [column for column in labelled if known[column] is None]
    open_values = [column for column in valued if known[column] is None]
    compared = frozenset((column, c) for column in open_values for c in constants)
    same = _pairs(open_labels) | _pairs(open_values)
    needs = ValueNeeds(compared, names=frozenset(open_labels), same=same)
    return known, replace(NOTHING, values=needs)


def _text(way: _Way, attribute: _Way | None = None) -> _Own | None:
    """The columns of a text itself. An attribute has the value of its text."""
    constants = way.constants + (attribute.constants if attribute else [])
    columns = way.columns("label", "value") + (attribute.columns("value") if attribute else [])
    columns = list(dict.fromkeys(columns))
    if attribute is None:
        constants.append(Comparison("!=", ""))
    if not is_consistent(constants):
        return None
    value = _fixed_string(constants)
    compared = frozenset((column, c) for column in columns for c in constants)
    needs = ValueNeeds(compared, same=_pairs(columns))
    need = NOTHING if value is not None else replace(NOTHING, values=needs)
    return dict.fromkeys(columns, value), need


def _fixed_string(constants: list[Comparison]) -> str | None:
    """The string that an `=` comparison fixes; None if there is none."""
    return next(
        (c.operand for c in constants if c.operator == "=" and isinstance(c.operand, str)), None
    )


def _pairs(columns: list[str]) -> frozenset[tuple[str, str]]:
    """Pairs which state that columns hold one string."""
    return frozenset((columns[0], other) for other in columns[1:])


def _groups(edges: Iterable[Edge], same: Sequence[frozenset[Relation]]) -> list[list[Relation]]:
    """The edges below an element, grouped by the node that they must match."""
    groups: list[list[Relation]] = []
    by_name: dict[object, list[Relation]] = {}
    for edge in edges:
        node = edge.relation.node
        assert node is not None
        key: object = next((each for each in same if edge.relation in each), None)
        if edge.axis is Axis.ATTRIBUTE and isinstance(node.test, Name):
            key = node.test.label
        known = by_name.get(key)
        if key is not None and known is not None:
            known.append(edge.relation)
            continue
        groups.append([edge.relation])
        by_name[key] = groups[-1]
    return groups
