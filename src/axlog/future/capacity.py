"""Whether a scenario fits into the number of trees that its streams may still deliver.

A scenario requires sub-patterns from a stream. If the stream may deliver fewer trees than that
(`most`), some sub-patterns must share a tree. Those at the root of a tree then become conditions on
one node (its label, attributes and time), and if messages hold no calls, everything in a tree has
one time. Sub-patterns are distributed over trees one by one, depth first, and only together with
those that one tree can meet. The problem is NP-hard, so the number of steps is limited (AX502).

Declared keys also force sharing: two nodes of a key with the same value are the same node, so the
sub-patterns that require them must be met in one tree, at one node of it.

Not decided (AX503): a sub-pattern that compares an element's value and must share a tree, because
more content would change the value. (Paper 1, section 4, theorem 3; paper 2, section 5.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.future.arrivals import bringable, same_times
from axlog.future.generalized_rows import Need, Rows, Values, add_need, meet, project
from axlog.future.keys import merged_relations, sharing
from axlog.future.scenarios import can_be_met
from axlog.future.time_constraints import Inequality, at_or_after
from axlog.query.compile import Relation
from axlog.query.pattern import AnyText, Axis, Literal, nodes_of

LIMIT = 20_000
"""Largest number of steps to distribute sub-patterns over trees, for one scenario."""

Group = list[Relation]


def fits(
    tree: Tree, columns: tuple[str, ...], values: Values, need: Need, together: bool = False
) -> bool:
    """Whether the needs of a scenario can be met with the trees that each stream may still deliver.

    `columns` are all columns that the scenario binds (`Scenarios` keeps them where streams are
    limited). `together`: no message holds calls. Otherwise that is true only of streams that do not
    declare `calls`.
    """
    asked: dict[str, list[Relation]] = {}
    for relation, stream in sorted(need.brought, key=lambda pair: (pair[1], pair[0].name)):
        asked.setdefault(stream, []).append(relation)
    same = _same_nodes(columns, values, need, asked)
    shared: list[_Share] = []
    for stream, relations in asked.items():
        left = trees_left(tree, stream)
        if left is not None and left <= 0:
            return False
        if left is not None and left < len(relations):
            is_whole = together or not tree.may_bring_calls(stream)
            shared.append(_Share(is_whole, relations, left))
        elif any(each.intersection(relations) for each in same):
            is_whole = together or not tree.may_bring_calls(stream)
            shared.append(_Share(is_whole, _merge_groups(relations, same)))
    if not shared:
        return can_be_met(tree.clock, columns, values, need)
    return _SharedTrees(tree, columns, same).is_satisfiable({values: [need]}, shared)


@dataclass(frozen=True, slots=True)
class _Share:
    """The sub-patterns of a stream that must share trees: at most so many, or in given groups."""

    is_whole: bool  # whether each tree has one time
    relations: list[Relation] | list[Group]
    most: int | None = None


Same = list[frozenset[Relation]]
"""Sets of relations that must match one node, because a key has one node for each value."""


def _same_nodes(
    columns: tuple[str, ...], values: Values, need: Need, asked: dict[str, list[Relation]]
) -> Same:
    if len(need.new) < 2:
        return []
    known = dict(zip(columns, values, strict=True))
    found: Same = []
    for group in sharing(need.new, known, need.values):
        where = group[0].where
        if isinstance(where, str):
            found += merged_relations(group, asked[where])
    return found


def _keeps_together(way: list[Group], same: Same) -> bool:
    """Whether relations that must match one node are in one tree."""
    return all(sum(not each.isdisjoint(group) for group in way) <= 1 for each in same)


def _merge_groups(relations: list[Relation], same: Same) -> list[Group]:
    """One tree for each relation, except for relations that must share one."""
    groups: list[Group] = []
    for relation in relations:
        met = [g for g in groups if any(relation in s and not s.isdisjoint(g) for s in same)]
        groups = [g for g in groups if g not in met]
        groups.append([*(r for g in met for r in g), relation])
    return groups


def trees_left(tree: Tree, stream: str) -> int | None:
    """The number of trees that a stream may still deliver; None: unlimited."""
    most = tree.call(tree.calls()[stream]).most
    return None if most is None else most - tree.brought.get(stream, 0)


def limits_of(tree: Tree, relations: int) -> list[tuple[str, int | None, bool]]:
    """What decides whether scenarios without keys and times `fit`, besides their needs.

    The trees that a stream may still deliver matter if they may be fewer than its sub-patterns, of
    which there are at most so many.
    """
    found: list[tuple[str, int | None, bool]] = []
    for stream in tree.calls_by_stream:
        left = trees_left(tree, stream)
        left = None if left is None else min(left, relations)
        found.append((stream, left, tree.may_bring_calls(stream)))
    return found


def partitions(relations: Sequence[Relation], most: int) -> Iterator[list[Group]]:
    """Every way to split relations into at most `most` groups."""
    if not relations:
        yield []
        return
    *others, last = relations
    for groups in partitions(others, most):
        for number in range(len(groups)):
            yield [[*g, last] if n == number else g for n, g in enumerate(groups)]
        if len(groups) < most:
            yield [*groups, [last]]


@dataclass(slots=True)
class _SharedTrees:
    """One scenario whose sub-patterns share trees."""

    tree: Tree
    columns: tuple[str, ...]
    same: Same
    steps: int = 0
    known: dict[frozenset[Relation], bool] = field(default_factory=dict)
    """Whether one tree can meet some sub-patterns, as far as these are known."""

    def is_satisfiable(self, rows: Rows, shared: Sequence[_Share]) -> bool:
        """Whether some choice of groups for each stream can be met."""
        if not shared:
            return any(
                can_be_met(self.tree.clock, self.columns, values, need)
                for values, needs in rows.items()
                for need in needs
            )
        first, others = shared[0], shared[1:]
        for groups in self._groupings(first):
            narrowed = rows
            for group in groups:
                if len(group) > 1 or self._must_merge(group[0]):
                    narrowed = self._in_one_tree(narrowed, group, first.is_whole)
            if narrowed and self.is_satisfiable(narrowed, others):
                return True
        return False

    def _groupings(self, share: _Share) -> Iterator[list[Group]]:
        if share.most is None:
            yield [group for group in share.relations if isinstance(group, list)]
            return
        relations = [each for each in share.relations if isinstance(each, Relation)]
        for groups in self._distributed([], relations, share):
            if _keeps_together(groups, self.same):
                yield groups

    def _distributed(
        self, groups: list[Group], rest: list[Relation], share: _Share
    ) -> Iterator[list[Group]]:
        """Every way to add sub-patterns to groups that one tree each can meet."""
        self.steps += 1
        if self.steps > LIMIT:
            raise UndecidedError(
                "AX502", f"sub-patterns were distributed over trees in {LIMIT:,} steps, in vain"
            )
        if not rest:
            yield groups
            return
        one, *others = rest
        assert share.most is not None
        if len(groups) < share.most:
            yield from self._distributed([*groups, [one]], others, share)
        for number, group in enumerate(groups):
            if self._can_share([*group, one], share.is_whole):
                larger = [[*g, one] if n == number else g for n, g in enumerate(groups)]
                yield from self._distributed(larger, others, share)

    def _can_share(self, group: Group, is_whole: bool) -> bool:
        """Whether the conditions on the root of one tree agree, whatever else there is."""
        key = frozenset(group)
        if key not in self.known:
            roots = _roots(group)
            self.known[key] = not roots or bool(bringable(roots, True, is_whole, self.same)[0])
        return self.known[key]

    def _must_merge(self, top: Relation) -> bool:
        return any(top in each for each in self.same)

    def _in_one_tree(self, rows: Rows, group: Group, is_whole: bool) -> Rows:
        """The rows whose needs a group of relations meets in one tree."""
        _check_values(group)
        roots = _roots(group)
        if roots:
            part, layout = bringable(roots, True, is_whole, self.same)
            rows, longer = meet(rows, list(self.columns), part, tuple(layout))
            rows = project(rows, longer, (), self.columns, add_need)
        times = _times(group, roots, is_whole)
        return {
            values: [replace(need, times=need.times.union(times)) for need in needs]
            for values, needs in rows.items()
        }


def _roots(group: Group) -> Group:
    """The sub-patterns that are about the root of a tree."""
    return [r for r in group if r.node is not None and r.node.axis is Axis.CHILD]


def _times(group: Group, roots: Group, together: bool) -> list[Inequality]:
    """The time constraints of a shared tree: one time for all nodes, or none before the root's."""
    every = [n.name for r in group if r.node is not None for n in nodes_of(r.node) if n.name]
    if together:
        return same_times(every)
    named = [r.node.name for r in roots if r.node is not None and r.node.name is not None]
    return [at_or_after(name, root) for root in named for name in every if name != root]


def _check_values(group: Group) -> None:
    """Reject comparisons of element values in a shared tree."""
    nodes = [n for relation in group if relation.node is not None for n in nodes_of(relation.node)]
    for node in nodes:
        is_text = node.axis is Axis.ATTRIBUTE or isinstance(node.test, Literal | AnyText)
        if node.comparisons and not is_text:
            raise UndecidedError(
                "AX503",
                f"{node} compares a value in a tree that must meet other conditions too",
                advice="remove `most` from the call, or declare a larger one",
            )
