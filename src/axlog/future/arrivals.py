"""What messages can bring: the generalised rows of relations in trees still to come (P2 3, step 2).

Everything in a tree to come is unknown except what the pattern itself says: a label that is tested
for, a value that is compared with `=`. A relation is taken apart into conjunctions (one for each
way through its ors), a conjunction at one node into what it asks of an element, a text or an
attribute there. All that must stand at one node is taken together: `self::` steps, attributes of
one name, the relations that must share one tree (`capacity.py`).

Times are at or after each other down the tree where a message may hold calls that bring more later;
all the same (`together`) where messages hold none. Conditions that contradict each other bring
nothing. Exact, or refused by name: `not`, tests for comments and processing instructions, and a
compared value that has further conditions inside.
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
Brought = tuple[Rows, list[str]]
"""Rows, and the columns that they have."""


def bringable(
    relations: Sequence[Relation],
    is_root: bool,
    together: bool = False,
    same: Sequence[frozenset[Relation]] = (),
) -> Brought:
    """The rows of relations at one node to come, with all columns that they bind at any depth.

    `is_root`: the node is the root of its tree, an element. `same`: relations that stand below one
    node and must be at one node there.
    """
    rows, layout = _Bringing(same).at(relations, is_root, None)
    if not together:
        return rows, layout
    found: Rows = {}
    for values, needs in rows.items():
        for need in needs:
            one_time = same_times(need.unknown_times)
            add_need(found, values, replace(need, times=need.times.union(one_time)))
    return found, layout


def same_times(names: Iterable[str]) -> list[Inequality]:
    """All these unknown times are one."""
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
    """A conjunction at one node: the relations that hold there, and what hangs below it."""

    members: tuple[Relation, ...] = ()
    edges: tuple[Edge, ...] = ()

    def with_member(self, relation: Relation) -> Iterator[_Way]:
        """The ways to hold one more relation at the node."""
        if relation.absences:
            raise UndecidedError("AX503", "`not` in what a stream may bring")
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
        """The columns that show one of these of the node, each once."""
        own = [pair for member in self.members for pair in member.own]
        return list(dict.fromkeys(column for column, source in own if source in sources))


class _Bringing:
    def __init__(self, same: Sequence[frozenset[Relation]]) -> None:
        self._same = same

    def at(self, relations: Sequence[Relation], is_root: bool, above: str | None) -> Brought:
        """The rows of relations at one node; `above` is the nearest named node over it."""
        layout = deep_columns(relations)
        found: Rows = {}
        for way in _ways(relations):
            for kind in _kinds(way, is_root):
                _add_shown(found, layout, self._as(kind, way, above))
        return found, layout

    def _as(self, kind: str, way: _Way, above: str | None) -> Brought:
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

    def _join(self, way: _Way, start: _Own, above: str | None, parts: list[Brought]) -> Brought:
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

    def _attribute(self, way: _Way, above: str | None) -> Brought:
        """An attribute: its value is the one text below it."""
        label = next((f"@{n.test.label}" for n in way.nodes if isinstance(n.test, Name)), None)
        labelled = way.columns("label")
        if label is None and labelled:
            raise UndecidedError("AX503", f"{labelled[0]} is the name of an attribute to come")
        names = _names(way)
        layout = deep_columns(way.members)
        found: Rows = {}
        for text in _ways([edge.relation for edge in way.edges]):
            start = _text(text, way) if TEXT in _kinds(text, False) else None
            if start is not None:
                part = self._join(text, start, names[0] if names else above, [])
                own: _Own = (dict.fromkeys(labelled, label), NOTHING)
                _add_shown(found, layout, self._join(way, own, above, [part]))
        return found, layout


_Own = tuple[dict[str, str | None], Need]
"""What a node itself shows, and what that needs."""


def _names(way: _Way) -> list[str]:
    return [node.name for node in way.nodes if node.name is not None]


def _add_shown(found: Rows, layout: list[str], brought: Brought) -> None:
    """Add rows in another order of columns; one that they lack is open."""
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
    """Ways in a list, unless they are too many: each `or` doubles them."""
    found: list[_Way] = []
    for way in ways:
        spend(1)
        found.append(way)
    return found


def _kinds(way: _Way, is_root: bool) -> list[str]:
    """What a node to come that passes all tests may be."""
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
    """An element's own columns: its label is a name, its value is apart from it."""
    constants = way.constants
    valued = way.columns("value")
    if (constants or valued) and any(edge.axis is not Axis.ATTRIBUTE for edge in way.edges):
        raise UndecidedError(
            "AX503", f"{way.nodes[0]} compares a value to come that has conditions inside it"
        )
    if not is_consistent(constants):
        return None
    label = next((n.test.label for n in way.nodes if isinstance(n.test, Name)), None)
    labelled = way.columns("label")
    value = _fixed(constants)
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
    """A text's own columns: its label is its value; that of an attribute too."""
    constants = way.constants + (attribute.constants if attribute else [])
    columns = way.columns("label", "value") + (attribute.columns("value") if attribute else [])
    columns = list(dict.fromkeys(columns))
    if attribute is None:
        constants.append(Comparison("!=", ""))
    if not is_consistent(constants):
        return None
    value = _fixed(constants)
    compared = frozenset((column, c) for column in columns for c in constants)
    needs = ValueNeeds(compared, same=_pairs(columns))
    need = NOTHING if value is not None else replace(NOTHING, values=needs)
    return dict.fromkeys(columns, value), need


def _fixed(constants: list[Comparison]) -> str | None:
    """The one string that comparisons leave."""
    return next(
        (c.operand for c in constants if c.operator == "=" and isinstance(c.operand, str)), None
    )


def _pairs(columns: list[str]) -> frozenset[tuple[str, str]]:
    """Columns that stand for one string."""
    return frozenset((columns[0], other) for other in columns[1:])


def _groups(edges: Iterable[Edge], same: Sequence[frozenset[Relation]]) -> list[list[Relation]]:
    """What hangs below an element: attributes of one name are one node, and what must be."""
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
