"""Keys without which a deadline never makes a row impossible.

In `[orders/order/oid/$x#t1][shipped/order/oid/$x#t2] where t2 - t1 <= 2h`, order 17 has a deadline,
two hours after it came. But without a key on orders, order 17 may come again, later. It is then
never reported as `never` before its stream ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from axlog.future.keys import Key
from axlog.query.pattern import (
    Axis,
    Branch,
    Name,
    Pattern,
    PatternNode,
    TimeConstraint,
    Variable,
)

Way = tuple[PatternNode, ...]


def missing_keys(pattern: Pattern, keys: Iterable[Key]) -> list[Key]:
    """The keys to declare so that a pattern's deadlines make rows impossible; none if one is."""
    known = {(*key.path, *key.by) for key in keys}
    anchors = {name for each in pattern.where if isinstance(each, TimeConstraint)
               for name in _anchors(each)}  # fmt: skip
    ways = list(_ways(pattern.branches, ()))
    wanted: dict[Key, None] = {}
    for name in sorted(anchors):
        tops = {way[1] for way in ways if way[-1].name == name and len(way) > 1}
        found = [key for way in ways if len(way) > 1 and way[1] in tops
                 for key in _key_of(way, ways)]  # fmt: skip
        if any((*key.path, *key.by) in known for key in found):
            return []
        wanted.update(dict.fromkeys(found))
    return list(wanted)


def _anchors(constraint: TimeConstraint) -> Iterator[str]:
    """The names of a constraint from which another time has a deadline: t1 in `t2 - t1 <= 2h`."""
    sign = {"<=": 1, "<": 1, "=": 1, ">=": -1, ">": -1}.get(constraint.operator)
    if sign is None or sign * constraint.bound <= 0 or len(constraint.terms) < 2:
        return
    if all(sign * factor < 0 for factor, _ in constraint.terms):
        return
    yield from (name for factor, name in constraint.terms if sign * factor < 0)


def _ways(branches: Iterable[Branch], above: Way) -> Iterator[Way]:
    """The ways from the root to each node, over branches that every row needs."""
    for branch in branches:
        if isinstance(branch, PatternNode):
            yield (*above, branch)
            yield from _ways(branch.branches, (*above, branch))


def _key_of(way: Way, every: list[Way]) -> Iterator[Key]:
    """The key whose value a way reads into a variable that other branches share."""
    last = way[-1]
    is_child = isinstance(last.test, Variable) and last.axis is Axis.CHILD
    bound = [last.test] if is_child else [c.operand for c in last.comparisons if c.operator == "="]
    steps = way[1:-1] if is_child else way[1:]
    shared = [v for v in bound if isinstance(v, Variable) and _uses(v, every) > 1]
    if not shared or len(steps) < 2 or not all(isinstance(step.test, Name) for step in steps):
        return
    if any(step.axis not in (Axis.CHILD, Axis.ATTRIBUTE) for step in steps):
        return
    labels = [
        ("@" if step.axis is Axis.ATTRIBUTE else "") + step.test.label
        for step in steps
        if isinstance(step.test, Name)
    ]
    yield Key(tuple(labels[:-1]), (labels[-1],))


def _uses(variable: Variable, every: list[Way]) -> int:
    return sum(
        variable in (way[-1].test, *(c.operand for c in way[-1].comparisons)) for way in every
    )
