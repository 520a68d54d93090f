"""How much a call may bring: at most m trees (P1 4, theorem 3; P2 5).

A scenario asks a stream for sub-patterns. Where the stream may bring fewer trees than that, some
must share one: those that stand at the root of a tree become conditions on one node (its label, its
attributes, its time), and with messages that hold no calls everything in a tree has one time. All
ways to put sub-patterns into trees are tried: deciding this is NP-hard (P1 theorem 3), so their
number is limited.

Not decided: sub-patterns that share a tree with a compared value, which more content would change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from axlog.analysis.bringing import bringable, same_times
from axlog.analysis.constraints import Inequality, at_or_after
from axlog.analysis.generalised import Need, Rows, Values, add_need, meet, project
from axlog.analysis.scenarios import can_be_met
from axlog.datalog.compile import Relation
from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.language.pattern import AnyText, Axis, Literal, nodes_of

LIMIT = 5000
"""Ways to put sub-patterns into trees that are tried for one scenario."""

Group = list[Relation]


def fits(
    tree: Tree, columns: tuple[str, ...], values: Values, need: Need, together: bool = False
) -> bool:
    """Whether a scenario's needs can be met, each stream bringing no more trees than it may.

    `columns` are all that the scenario binds (`Scenarios` keeps them where calls are limited).
    """
    asked: dict[str, list[Relation]] = {}
    for relation, stream in sorted(need.brought, key=lambda pair: (pair[1], pair[0].name)):
        asked.setdefault(stream, []).append(relation)
    shared: list[list[list[Group]]] = []
    for stream, relations in asked.items():
        left = _trees_left(tree, stream)
        if left is None or left >= len(relations):
            continue
        if left <= 0:
            return False
        shared.append(list(_partitions(relations, left)))
    if not shared:
        return can_be_met(tree.clock, columns, values, need)
    return _some_way(tree, columns, {values: [need]}, shared, together)


def _trees_left(tree: Tree, stream: str) -> int | None:
    most = tree.call(tree.calls()[stream]).most
    return None if most is None else most - tree.brought.get(stream, 0)


def _partitions(relations: Sequence[Relation], most: int) -> Iterator[list[Group]]:
    """Every way to put relations into at most so many groups."""
    if not relations:
        yield []
        return
    *others, last = relations
    for groups in _partitions(others, most):
        for number in range(len(groups)):
            yield [[*g, last] if n == number else g for n, g in enumerate(groups)]
        if len(groups) < most:
            yield [*groups, [last]]


def _some_way(
    tree: Tree,
    columns: tuple[str, ...],
    rows: Rows,
    shared: list[list[list[Group]]],
    together: bool,
) -> bool:
    if not shared:
        return any(
            can_be_met(tree.clock, columns, values, need)
            for values, needs in rows.items()
            for need in needs
        )
    if sum(map(len, shared)) > LIMIT:
        raise UndecidedError("AX502", f"there are more than {LIMIT} ways to share trees")
    for groups in shared[0]:
        narrowed = rows
        for group in groups:
            if len(group) > 1:
                narrowed = _sharing(narrowed, columns, group, together)
        if narrowed and _some_way(tree, columns, narrowed, shared[1:], together):
            return True
    return False


def _sharing(rows: Rows, columns: tuple[str, ...], group: Group, together: bool) -> Rows:
    """The rows whose needs a group of relations meets in one tree."""
    _check_values(group)
    roots = [r for r in group if r.node is not None and r.node.axis is Axis.CHILD]
    if roots:
        part, layout = bringable(roots, True, together)
        rows, longer = meet(rows, list(columns), part, tuple(layout))
        rows = project(rows, longer, (), columns, add_need)
    times = _times(group, roots, together)
    return {v: [replace(n, times=n.times.union(times)) for n in needs] for v, needs in rows.items()}


def _times(group: Group, roots: Group, together: bool) -> list[Inequality]:
    """What sharing a tree says of times: one for all, or none before the root's."""
    every = [n.name for r in group if r.node is not None for n in nodes_of(r.node) if n.name]
    if together:
        return same_times(every)
    named = [r.node.name for r in roots if r.node is not None and r.node.name is not None]
    return [at_or_after(name, root) for root in named for name in every if name != root]


def _check_values(group: Group) -> None:
    nodes = [n for relation in group if relation.node is not None for n in nodes_of(relation.node)]
    for node in nodes:
        is_text = node.axis is Axis.ATTRIBUTE or isinstance(node.test, Literal | AnyText)
        if node.comparisons and not is_text:
            raise UndecidedError(
                "AX503",
                f"{node} compares a value in a tree that must hold other things too",
                advice="declare no `most`, or a larger one, on the call",
            )
