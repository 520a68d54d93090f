"""Streams that no future row needs, and subtrees that none uses: they can be dropped.

A stream is finished if no scenario requires its data, a subtree if no scenario uses a node of it. A
pattern with `or` is judged by each way through its alternatives. A node whose id, value or content
a row shows stays. Streams and nodes that a deletion can reach stay, and for a view that can lose
rows by a deletion everything that it can match stays: what no row needs now may be needed after it.
(Paper 1, section 5.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from axlog.document.tree import CALL, DOCUMENT_NODE, ELEMENT, NONE, TEXT, Tree
from axlog.future.capacity import fits
from axlog.future.deletions import can_match_at, deletion_places, is_inside, loses_by
from axlog.future.generalized_rows import Need, Values
from axlog.future.scenarios import Scenarios, with_join_variables
from axlog.query.normalize import bound_variables
from axlog.query.pattern import (
    AnyNode,
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
        ways = _conjunctions(pattern.branches)
        if ways is None:
            return f"`not` or a collected path: {pattern}"
        if len(ways) > MOST_WAYS:
            return f"`or` has more than {MOST_WAYS} ways: {pattern}"
    return None


def _conjunctions(branches: Iterable[Branch]) -> list[tuple[Branch, ...]] | None:
    """The branches without `or`, one tuple for each way; None with `not` or a collected path."""
    ways: list[tuple[Branch, ...]] = [()]
    for branch in branches:
        more: list[tuple[Branch, ...]] = []
        if isinstance(branch, PatternNode):
            below = _conjunctions(branch.branches)
            if below is None:
                return None
            more = [(replace(branch, branches=each),) for each in below]
        elif isinstance(branch, Or):
            for alternative in branch.alternatives:
                found = _conjunctions(alternative)
                if found is None:
                    return None
                more += found
        else:
            return None
        ways = [(*way, *each) for way in ways for each in more][: MOST_WAYS + 1]
    return ways


def _alternatives(pattern: Pattern) -> list[Pattern]:
    """The pattern for each way through its `or`s, without conditions on what a way lacks.

    Fewer conditions have more scenarios, so every node that a future row uses is used in one.
    """
    found = []
    for branches in _conjunctions(pattern.branches) or ():
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


def streams_asked(tree: Tree, pattern: Pattern) -> set[str]:
    """The streams from which some undominated scenario requires data.

    If the pattern can lose rows by deletions: all streams whose data it can match. Always: streams
    inside an element whose value or content rows may show, and those that a deletion can reach.
    """
    calls = tree.calls()
    kept = {*deletion_places(tree), *_nodes_named(tree, _read_nodes(pattern))}
    asked = {s for s, call in calls.items() if is_inside(tree, tree.parent(call), kept)}
    if loses_by(tree, pattern) is not None:
        parents = {stream: tree.parent(call) for stream, call in calls.items()}
        return asked | {s for s, parent in parents.items() if can_match_at(tree, pattern, parent)}
    scenarios = Scenarios(tree, with_join_variables(pattern))
    return asked | {stream for _, need in _possible(scenarios) for _, stream in need.brought}


def _possible(scenarios: Scenarios) -> Iterator[tuple[Values, Need]]:
    """The scenarios that are possible."""
    columns = scenarios.columns
    for values, needs in scenarios.rows.items():
        for need in needs:
            is_repeated = scenarios.is_repeated(columns, values, need)
            if not is_repeated and fits(scenarios.tree, columns, values, need, False):
                yield values, need


def finished_subtrees(
    tree: Tree, patterns: Sequence[Pattern], shown: Iterable[int] = ()
) -> list[int]:
    """The largest subtrees, off the paths to open calls, that no future row uses.

    `shown` are the nodes whose ids, values or contents rows show: they stay. Where rows show nodes,
    children of a call's parent stay too, because the ids of later messages depend on them. What a
    deletion can reach stays.
    """
    used = {node for pattern in patterns for node in nodes_used(tree, pattern)} | set(shown)
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


def nodes_used(tree: Tree, pattern: Pattern) -> set[int]:
    """The existing nodes that a scenario with needs uses.

    If the pattern can lose rows by deletions: all nodes with a label that it tests for.
    """
    if not tree.calls():
        return set()
    if loses_by(tree, pattern) is not None:
        return _nodes_named(tree, pattern.nodes())
    return {node for each in _alternatives(pattern) for node in _used_in(tree, each)}


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


def _used_in(tree: Tree, pattern: Pattern) -> set[int]:
    named = _named(pattern)
    shown = with_join_variables(named)
    found: set[int] = set()
    for each in named.nodes():
        assert each.name is not None
        column = f"{each.name}.node"
        output = Output(Kind.ID, each.name)
        is_shown = any((o.kind, o.of) == (output.kind, output.of) for o in shown.outputs)
        asked = shown if is_shown else replace(shown, outputs=(*shown.outputs, output))
        scenarios = Scenarios(tree, asked)
        at = scenarios.columns.index(column)
        for values, need in _possible(scenarios):
            node = values[at]
            if need.brought and node is not None:
                found.add(int(node))
    return found


def _named(pattern: Pattern) -> Pattern:
    """The pattern with a name for each of its nodes."""
    known = {node.name for node in pattern.nodes()}
    names = (name for n in range(1, 1 << 30) if (name := f"node{n}") not in known)

    def named(branch: Branch) -> Branch:
        assert isinstance(branch, PatternNode)  # see `refusal`
        below = tuple(named(each) for each in branch.branches)
        return replace(branch, name=branch.name or next(names), branches=below)

    return replace(pattern, branches=tuple(map(named, pattern.branches)))


def size(tree: Tree, top: int) -> int:
    """The number of nodes in a subtree, calls excluded."""
    return sum(1 for node in tree.subtree(top) if tree.kind_column[node] != CALL)
