"""How much a call may bring: at most m trees (P1 4, theorem 3; P2 5).

A scenario asks a stream for sub-patterns. Where the stream may bring fewer trees than that, some
must share one: those that stand at the root of a tree become conditions on one node (its label, its
attributes, its time), and with messages that hold no calls everything in a tree has one time. All
ways to put sub-patterns into trees are tried: deciding this is NP-hard (P1 theorem 3), so their
number is limited.

Declared keys ask for sharing too: two nodes of a key with one value are one node, so what asks for
them must be met in one tree, at one node of it.

Not decided: sub-patterns that share a tree with a compared value, which more content would change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.future.arrivals import bringable, same_times
from axlog.future.generalized_rows import Need, Rows, Values, add_need, meet, project
from axlog.future.keys import merged_relations, sharing
from axlog.future.scenarios import can_be_met
from axlog.future.time_constraints import Inequality, at_or_after
from axlog.query.compile import Relation
from axlog.query.pattern import AnyText, Axis, Literal, nodes_of

LIMIT = 5000
"""Ways to put sub-patterns into trees that are tried for one scenario."""

Group = list[Relation]


def fits(
    tree: Tree, columns: tuple[str, ...], values: Values, need: Need, together: bool = False
) -> bool:
    """Whether a scenario's needs can be met, each stream bringing no more trees than it may.

    `columns` are all that the scenario binds (`Scenarios` keeps them where calls are limited).
    `together`: no message holds calls; else those of streams that do not declare them.
    """
    asked: dict[str, list[Relation]] = {}
    for relation, stream in sorted(need.brought, key=lambda pair: (pair[1], pair[0].name)):
        asked.setdefault(stream, []).append(relation)
    same = _same_nodes(columns, values, need, asked)
    shared: list[Shares] = []
    for stream, relations in asked.items():
        left = trees_left(tree, stream)
        if left is not None and left <= 0:
            return False
        if left is not None and left < len(relations):
            ways = partitions(relations, left)
            is_whole = together or not tree.may_bring_calls(stream)
            shared.append((is_whole, [way for way in ways if _keeps_together(way, same)]))
        elif any(each.intersection(relations) for each in same):
            is_whole = together or not tree.may_bring_calls(stream)
            shared.append((is_whole, [_put_together(relations, same)]))
    if not shared:
        return can_be_met(tree.clock, columns, values, need)
    return _Sharing(tree, columns, same).some_way({values: [need]}, shared)


Shares = tuple[bool, list[list[Group]]]
"""The ways to put what one stream brings into trees, and whether each tree has one time."""
Same = list[frozenset[Relation]]
"""Relations that must be at one node: two nodes of a key with one value are one."""


def _same_nodes(
    columns: tuple[str, ...], values: Values, need: Need, asked: dict[str, list[Relation]]
) -> Same:
    if len(need.new) < 2:
        return []
    known = dict(zip(columns, values, strict=True))
    found: Same = []
    for group in sharing(need.new, known, need.values.same):
        where = group[0].where
        if isinstance(where, str):
            found += merged_relations(group, asked[where])
    return found


def _keeps_together(way: list[Group], same: Same) -> bool:
    """Whether what must be at one node is in one tree."""
    return all(sum(not each.isdisjoint(group) for group in way) <= 1 for each in same)


def _put_together(relations: list[Relation], same: Same) -> list[Group]:
    """Each relation in a tree of its own, but those that must share one."""
    groups: list[Group] = []
    for relation in relations:
        met = [g for g in groups if any(relation in s and not s.isdisjoint(g) for s in same)]
        groups = [g for g in groups if g not in met]
        groups.append([*(r for g in met for r in g), relation])
    return groups


def trees_left(tree: Tree, stream: str) -> int | None:
    """How many trees a stream may still bring; None: any number."""
    most = tree.call(tree.calls()[stream]).most
    return None if most is None else most - tree.brought.get(stream, 0)


def partitions(relations: Sequence[Relation], most: int) -> Iterator[list[Group]]:
    """Every way to put relations into at most so many groups."""
    if not relations:
        yield []
        return
    *others, last = relations
    for groups in partitions(others, most):
        for number in range(len(groups)):
            yield [[*g, last] if n == number else g for n, g in enumerate(groups)]
        if len(groups) < most:
            yield [*groups, [last]]


@dataclass(frozen=True, slots=True)
class _Sharing:
    """One scenario whose sub-patterns share trees."""

    tree: Tree
    columns: tuple[str, ...]
    same: Same

    def some_way(self, rows: Rows, shared: list[Shares]) -> bool:
        if not shared:
            return any(
                can_be_met(self.tree.clock, self.columns, values, need)
                for values, needs in rows.items()
                for need in needs
            )
        if sum(len(ways) for _, ways in shared) > LIMIT:
            raise UndecidedError("AX502", f"there are more than {LIMIT} ways to share trees")
        is_whole, ways = shared[0]
        for groups in ways:
            narrowed = rows
            for group in groups:
                if len(group) > 1 or self._is_merged(group[0]):
                    narrowed = self._sharing(narrowed, group, is_whole)
            if narrowed and self.some_way(narrowed, shared[1:]):
                return True
        return False

    def _is_merged(self, top: Relation) -> bool:
        return any(top in each for each in self.same)

    def _sharing(self, rows: Rows, group: Group, is_whole: bool) -> Rows:
        """The rows whose needs a group of relations meets in one tree."""
        _check_values(group)
        roots = [r for r in group if r.node is not None and r.node.axis is Axis.CHILD]
        if roots:
            part, layout = bringable(roots, True, is_whole, self.same)
            rows, longer = meet(rows, list(self.columns), part, tuple(layout))
            rows = project(rows, longer, (), self.columns, add_need)
        times = _times(group, roots, is_whole)
        return {
            values: [replace(need, times=need.times.union(times)) for need in needs]
            for values, needs in rows.items()
        }


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
