"""Streams that no future row needs, and subtrees that none uses: they can be dropped.

A stream is finished if no scenario requires its data, a subtree if no scenario uses a node of it. A
pattern with `or` is judged by each way through its alternatives. A node whose id, value or content
a row shows stays. Streams and nodes that a deletion can reach stay, and for a view that can lose
rows by a deletion everything that it can match stays: what no row needs now may be needed after it.

A pattern with `not` is judged by its positive and blocked patterns (`blocked_rows.py`): also data
that may still block a row, or be blocked, is needed. A match that is blocked now would seem to be a
row without the nodes of its `not`, so these stay while the match does. Where there are too many
scenarios, everything stays that the pattern can match. (Paper 1, section 5.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from axlog.document.tree import CALL, DOCUMENT_NODE, ELEMENT, NONE, TEXT, Tree
from axlog.errors import UndecidedError
from axlog.future.blocked_rows import (
    Blocked,
    PositiveParts,
    is_covered,
    positive_parts,
    with_names,
)
from axlog.future.capacity import fits
from axlog.future.deletions import can_match_at, deletion_places, is_inside, loses_by
from axlog.future.generalized_rows import Need, Rows, Values, add_need, project
from axlog.future.grounding import has_not
from axlog.future.scenarios import Scenarios, with_join_variables
from axlog.query.normalize import bound_variables, normalise
from axlog.query.pattern import (
    AnyNode,
    Axis,
    Branch,
    Kind,
    Name,
    Or,
    Output,
    Pattern,
    PatternNode,
    TimeConstraint,
    Variable,
    Wildcard,
    nodes_of,
)

MOST_WAYS = 64
"""Largest number of ways through the `or`s of a pattern that are judged one by one."""

_ONE_PARENT = (Axis.CHILD, Axis.ATTRIBUTE)
_OF_NODES = (Kind.ID, Kind.VAL, Kind.CONT)


def refusal(tree: Tree, patterns: Iterable[Pattern]) -> str | None:
    """Why nothing can be dropped from a document; None if something may be."""
    if tree.root == NONE:
        return "the document is empty"
    if tree.types is not None:
        return "the document has types, which count its nodes"
    if any(fact.is_enforced for fact in (*tree.facts, *tree.references)):
        return "a key is enforced: its values are looked up in the document"
    for pattern in patterns:
        if not is_covered(pattern):
            return f"a `not` inside a `not`, or a collected path: {pattern}"
        if len(_conjunctions(pattern.branches)) > MOST_WAYS:
            return f"`or` has more than {MOST_WAYS} ways: {pattern}"
        for part in _parts(pattern):
            if any(len(_conjunctions(one.pattern.branches)) > MOST_WAYS for one in part.blocked):
                return f"`or` has more than {MOST_WAYS} ways: {pattern}"
    return None


def _conjunctions(branches: Iterable[Branch]) -> list[tuple[Branch, ...]]:
    """The branches without `or`, one tuple for each way; an `or` in a `not` stays."""
    ways: list[tuple[Branch, ...]] = [()]
    for branch in branches:
        more: list[tuple[Branch, ...]] = []
        if isinstance(branch, PatternNode):
            below = _conjunctions(branch.branches)
            more = [(replace(branch, branches=each),) for each in below]
        elif isinstance(branch, Or):
            for alternative in branch.alternatives:
                more += _conjunctions(alternative)
        else:
            more = [(branch,)]
        ways = [(*way, *each) for way in ways for each in more][: MOST_WAYS + 1]
    return ways


def _alternatives(pattern: Pattern) -> list[Pattern]:
    """The pattern for each way through its `or`s, without conditions on what a way lacks.

    Fewer conditions have more scenarios, so every node that a future row uses is used in one.
    """
    found = []
    for branches in _conjunctions(pattern.branches):
        bound, names = bound_variables(branches), {n.name for b in branches for n in nodes_of(b)}
        where = tuple(
            each
            for each in pattern.where
            if (
                names.issuperset(name for _, name in each.terms)
                if isinstance(each, TimeConstraint)
                else {v.name for v in (each.left, each.right) if isinstance(v, Variable)} <= bound
            )
        )
        outputs = tuple(
            each
            for each in pattern.outputs
            if each.of in (bound if each.kind is Kind.VARIABLE else names)
        )
        found.append(replace(pattern, branches=branches, where=where, outputs=outputs))
    return found


class Uses(NamedTuple):
    """The streams and nodes that the rows to come of a pattern use."""

    streams: set[str]
    nodes: set[int]
    blocked: list[_Match]  # matches of `not`s that are there


def uses_of(tree: Tree, pattern: Pattern) -> Uses:
    """The streams and nodes of a document that rows of a pattern to come can use.

    Streams: those from which some undominated scenario requires data. Always: streams inside an
    element whose value or content rows may show, and those that a deletion can reach. Nodes: those
    that are there and that a scenario with needs uses.

    If the pattern can lose rows by deletions, or has a `not` and too many scenarios: all streams
    whose data it can match, and all nodes with a label that it tests for.
    """
    calls = tree.calls()
    kept = {*deletion_places(tree), *_nodes_named(tree, _read_nodes(pattern))}
    asked = {s for s, call in calls.items() if is_inside(tree, tree.parent(call), kept)}
    if not calls:
        return Uses(asked, set(), [])
    if loses_by(tree, pattern) is None:
        try:
            found = _scenarios_use(tree, pattern)
            return found._replace(streams=found.streams | asked)
        except UndecidedError as error:
            if not _is_too_many(error, pattern):
                raise
    parents = {stream: tree.parent(call) for stream, call in calls.items()}
    asked |= {s for s, parent in parents.items() if can_match_at(tree, pattern, parent)}
    return Uses(asked, _nodes_named(tree, pattern.nodes()), [])


def _scenarios_use(tree: Tree, pattern: Pattern) -> Uses:
    """The streams and nodes that the scenarios of a pattern use."""
    found, parts = Uses(set(), set(), []), _parts(pattern)
    for part in parts:
        streams, nodes = _used_in(tree, part.positive)
        found.streams.update(streams)
        found.nodes.update(nodes)
        for one in part.blocked:
            matches = _matches(tree, one)
            found.blocked.extend(match for match in matches if not match.streams)
            for match in _open_matches(matches):
                found.streams.update(match.streams)
                found.nodes.update(n for n in (*match.outside, *match.inside) if n is not None)
    if len(parts) == 1 or has_not(pattern):
        return found
    # a scenario of one way through an `or` may make those of another unnecessary
    return found._replace(streams=_streams(Scenarios(tree, with_join_variables(pattern))))


def _parts(pattern: Pattern) -> list[PositiveParts]:
    """The positive and the blocked patterns of each way through a pattern."""
    return [positive_parts(way) for way in _alternatives(with_names(normalise(pattern)))]


def _is_too_many(error: UndecidedError, pattern: Pattern) -> bool:
    """Whether a pattern with `not` has too many scenarios."""
    return error.code == "AX502" and has_not(pattern)


def _streams(
    scenarios: Scenarios, columns: tuple[str, ...] | None = None, rows: Rows | None = None
) -> set[str]:
    """The streams from which scenarios require data; see `_possible`."""
    found = _possible(scenarios, columns, rows)
    return {stream for _, need in found for _, stream in need.brought}


class _Match(NamedTuple):
    """A scenario of a blocked pattern: the nodes that are there, and the streams that it needs."""

    outside: tuple[int | None, ...]  # None: a future node
    inside: tuple[int | None, ...]  # in the `not`
    streams: frozenset[str]


def _matches(tree: Tree, one: Blocked) -> list[_Match]:
    """All scenarios of a blocked pattern, for every way through its `or`s.

    None dominates another: it shows that a row to come is blocked, where the other may not be.
    """
    found: list[_Match] = []
    for pattern in _alternatives(one.pattern):
        others = tuple(o for o in pattern.outputs if o.kind is not Kind.ID)
        nodes = [node.name or "" for node in pattern.nodes()]
        shown = tuple(Output(Kind.ID, name) for name in nodes)
        scenarios = Scenarios(tree, replace(pattern, outputs=(*others, *shown)), prune="none")
        columns = scenarios.columns
        inside = [columns.index(f"{name}.node") for name in nodes if name in one.inside]
        outside = [columns.index(f"{name}.node") for name in nodes if name not in one.inside]
        for values, need in _possible(scenarios):
            found.append(
                _Match(
                    _nodes_at(values, outside),
                    _nodes_at(values, inside),
                    frozenset(stream for _, stream in need.brought),
                )
            )
    return found


def _nodes_at(values: Values, positions: Iterable[int]) -> tuple[int | None, ...]:
    return tuple(None if (node := values[n]) is None else int(node) for n in positions)


def _open_matches(matches: Sequence[_Match]) -> list[_Match]:
    """Those that need data, and whose row is not blocked by what is there."""
    blocked = {match.outside for match in matches if not match.streams}
    return [match for match in matches if match.streams and match.outside not in blocked]


def _possible(
    scenarios: Scenarios, columns: tuple[str, ...] | None = None, rows: Rows | None = None
) -> Iterator[tuple[Values, Need]]:
    """The scenarios that are possible; `columns` and `rows` take the place of theirs."""
    columns = scenarios.columns if columns is None else columns
    for values, needs in (scenarios.rows if rows is None else rows).items():
        for need in needs:
            is_repeated = scenarios.is_repeated(columns, values, need)
            if not is_repeated and fits(scenarios.tree, columns, values, need, False):
                yield values, need


def finished_subtrees(
    tree: Tree, patterns: Sequence[Pattern], uses: Iterable[Uses], shown: Iterable[int] = ()
) -> list[int]:
    """The largest subtrees, off the paths to open calls, that no future row uses.

    `uses`: what each pattern uses. `shown` are the nodes whose ids, values or contents rows show:
    they stay. Where rows show nodes, children of a call's parent stay too, because the ids of later
    messages depend on them. What a deletion can reach stays.
    """
    used, blocked = set(shown), list[_Match]()
    for each in uses:
        used |= each.nodes
        blocked += each.blocked
    while True:
        tops = _unused(tree, patterns, used)
        dropped = {node for top in tops for node in tree.subtree(top)}
        more = {
            node
            for match in blocked
            if dropped.isdisjoint(match.outside) and not dropped.isdisjoint(match.inside)
            for node in match.inside
            if node is not None
        }
        if not more:
            return tops
        used |= more


def _unused(tree: Tree, patterns: Sequence[Pattern], used: set[int]) -> list[int]:
    """The largest subtrees, off the paths to open calls, without these nodes."""
    needed = set(used)
    for node in used:
        needed.update(tree.ancestors(node))
    paths = {tree.root}
    for call in tree.calls().values():
        paths.update(tree.ancestors(call))
    places = deletion_places(tree)
    shows = any(output.kind in _OF_NODES for each in patterns for output in each.outputs)
    kept = {tree.parent(call) for call in tree.calls().values()} if shows else set()
    read = {node for each in patterns for node in paths & _nodes_named(tree, _read_nodes(each))}
    return [
        node
        for parent in sorted(paths - {DOCUMENT_NODE} - kept)
        if not _has_texts(tree, parent)
        and not is_inside(tree, parent, places)
        and not is_inside(tree, parent, read)
        for node in tree.children(parent)
        if tree.kind_column[node] == ELEMENT and node not in paths and node not in needed
    ]


def _read_nodes(pattern: Pattern) -> list[PatternNode]:
    """The nodes of a pattern whose values or contents rows show: nothing inside may be dropped."""
    names = {o.of for o in pattern.outputs if o.kind in (Kind.VAL, Kind.CONT)}
    return [node for node in pattern.nodes() if node.name in names]


def _has_texts(tree: Tree, parent: int) -> bool:
    """Whether dropping a child could make two texts adjacent."""
    return any(tree.kind_column[child] == TEXT for child in tree.children(parent))


def _without(scenarios: Scenarios, others: Collection[str]) -> tuple[tuple[str, ...], Rows]:
    """The columns and rows of scenarios as if some columns were not shown.

    Of scenarios that differ in these columns only, some may dominate others.
    """
    columns = tuple(each for each in scenarios.columns if each not in others)
    return columns, project(scenarios.rows, list(scenarios.columns), (), columns, add_need)


def _brought_to(scenarios: Scenarios, column: str, others: Collection[str]) -> set[int]:
    """The present nodes in a column of scenarios that need data, as if others were not shown."""
    columns, rows = _without(scenarios, others)
    at = columns.index(column)
    return {
        int(node)
        for values, need in _possible(scenarios, columns, rows)
        if need.brought and (node := values[at]) is not None
    }


def _nodes_named(tree: Tree, nodes: Iterable[PatternNode]) -> set[int]:
    """The elements that pass the test of one of these nodes of a pattern."""
    tests = [node.test for node in nodes]
    if not tests:
        return set()
    labels = {test.label for test in tests if isinstance(test, Name)}
    is_any = any(isinstance(test, Wildcard | Variable | AnyNode) for test in tests)
    return {
        node
        for node in tree.subtree(DOCUMENT_NODE)
        if tree.kind_column[node] == ELEMENT and (is_any or tree.label(node) in labels)
    }


def _used_in(tree: Tree, pattern: Pattern) -> tuple[set[str], set[int]]:
    """The streams and nodes that the scenarios of a pattern without `not` and `or` use."""
    shown = with_join_variables(pattern)
    known = {output.of for output in shown.outputs if output.kind is Kind.ID}
    streams: set[str] = set()
    nodes: set[int] = set()
    for number, names in enumerate(_chains(pattern)):
        more = [name for name in names if name not in known]
        outputs = (*shown.outputs, *(Output(Kind.ID, name) for name in more))
        scenarios = Scenarios(tree, replace(shown, outputs=outputs))
        if not number:
            own = {output.of for output in shown.outputs if output.kind in _OF_NODES}
            columns, rows = _without(
                scenarios, {f"{name}.node" for name in more if name not in own}
            )
            streams = _streams(scenarios, columns, rows)
        for name in names:
            others = {f"{other}.node" for other in more if other != name}
            nodes |= _brought_to(scenarios, f"{name}.node", others)
    return streams, nodes


def _chains(pattern: Pattern) -> list[list[str]]:
    """The names of the nodes, those together of which each is a child of the one before.

    A node has one parent, so the ids of a chain make no more rows than those of its last node.
    """
    found: list[list[str]] = []

    def walk(branches: Iterable[Branch], above: list[str] | None) -> None:
        for branch in branches:
            assert isinstance(branch, PatternNode)
            if branch.name is None:  # the document: the query has a `not` alone
                continue
            chain = above if above is not None and branch.axis in _ONE_PARENT else None
            if chain is None:
                found.append(chain := [])
            chain.append(branch.name)
            above = None  # another branch begins another chain
            walk(branch.branches, chain)

    walk(pattern.branches, None)
    return found


def size(tree: Tree, top: int) -> int:
    """The number of nodes in a subtree, calls excluded."""
    return sum(1 for node in tree.subtree(top) if tree.kind_column[node] != CALL)
