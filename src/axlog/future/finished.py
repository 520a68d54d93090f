"""Streams and subtrees of a document that no future row can use.

A stream can be closed if no undominated scenario of any view requires data from it: each row that
its data could complete appears without it, and no later.

A subtree can be dropped if it contains no open call, and no scenario that still needs data uses a
node of it. A row that uses the subtree then either exists already, and stays, or never appears. A
scenario counts for a node unless another with the same node, outputs and join variables needs less.
A scenario without needs is an existing row.

These are verdicts, which change nothing; `live/document_collector.py` applies them. Rejected, with
the reason: streams that may delete, `not`, `or`, collected paths, rows that show a node's id, value
or content (they read the document), types, enforced keys (their values are looked up in the
document). (Paper 1, section 5, example 6.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from axlog.document.tree import CALL, DOCUMENT_NODE, ELEMENT, NONE, TEXT, Tree
from axlog.future.capacity import fits
from axlog.future.generalized_rows import Need, Values
from axlog.future.scenarios import Scenarios, with_join_variables
from axlog.query.pattern import Branch, Kind, Output, Pattern, PatternNode

_OF_NODES = (Kind.ID, Kind.VAL, Kind.CONT)


def refusal(tree: Tree, patterns: Iterable[Pattern]) -> str | None:
    """Why nothing can be dropped from a document; None if something may be."""
    if tree.root == NONE:
        return "the document is empty"
    for stream, node in sorted(tree.calls().items()):
        if tree.call(node).deletes != "no":
            return f"the stream {stream!r} may delete"
    if tree.types is not None:
        return "the document has types, which count its nodes"
    if any(key.is_enforced for key in tree.facts):
        return "a key is enforced: its values are looked up in the document"
    for pattern in patterns:
        if any(output.kind in _OF_NODES for output in pattern.outputs):
            return f"rows show ids, values or contents of nodes: {pattern}"
        if not all(map(_is_plain, pattern.branches)):
            return f"`or`, `not` or a collected path: {pattern}"
    return None


def _is_plain(branch: Branch) -> bool:
    return isinstance(branch, PatternNode) and all(map(_is_plain, branch.branches))


# Streams ------------------------------------------------------------------------------------------


def streams_asked(tree: Tree, pattern: Pattern) -> set[str]:
    """The streams from which some undominated scenario requires data."""
    scenarios = Scenarios(tree, with_join_variables(pattern))
    return {stream for _, need in _possible(scenarios) for _, stream in need.brought}


def _possible(scenarios: Scenarios) -> Iterator[tuple[Values, Need]]:
    """The scenarios that are possible."""
    columns = scenarios.columns
    for values, needs in scenarios.rows.items():
        for need in needs:
            is_repeated = scenarios.is_repeated(columns, values, need)
            if not is_repeated and fits(scenarios.tree, columns, values, need, False):
                yield values, need


# Subtrees -----------------------------------------------------------------------------------------


def finished_subtrees(tree: Tree, patterns: Iterable[Pattern]) -> list[int]:
    """The largest subtrees, off the paths to open calls, that no future row uses."""
    used = {node for pattern in patterns for node in nodes_used(tree, pattern)}
    needed = set(used)
    for node in used:
        needed.update(tree.ancestors(node))
    paths = {tree.root}
    for call in tree.calls().values():
        paths.update(tree.ancestors(call))
    return [
        node
        for parent in sorted(paths - {DOCUMENT_NODE})
        if not _has_texts(tree, parent)
        for node in tree.children(parent)
        if tree.kind_column[node] == ELEMENT and node not in paths and node not in needed
    ]


def _has_texts(tree: Tree, parent: int) -> bool:
    """Whether dropping a child could make two texts adjacent."""
    return any(tree.kind_column[child] == TEXT for child in tree.children(parent))


def nodes_used(tree: Tree, pattern: Pattern) -> set[int]:
    """The existing nodes that a scenario with needs uses."""
    if not tree.calls():
        return set()
    named = _named(pattern)
    shown = with_join_variables(named)
    found: set[int] = set()
    for each in named.nodes():
        assert each.name is not None
        column = f"{each.name}.node"
        asked = replace(shown, outputs=(*shown.outputs, Output(Kind.ID, each.name)))
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
