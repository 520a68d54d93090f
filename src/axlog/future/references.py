"""Declared references, such as `every shipping/order by oid refers orders/order by oid trusted`.

A reference states that a node at the first path arrives only after, or together with, a node at the
second path that has its value. Paths and values are those of keys (`keys.py`). `trusted` references
are assumed to hold. `enforced` ones are checked on arrival: a message with a value that refers to
nothing is rejected (`live/key_guard.py`). See docs/meaning.md.

A reference narrows the future: a row that needs a shipment of order 17 also needs order 17, no
later than the shipment. `referred` adds what the nodes of a pattern refer to, so that all analyses
of the pattern respect the reference. What is added only rules out futures.

    orders have ended without order 17: no view can get a shipment of it
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from axlog.document.tree import Tree
from axlog.errors import QueryError, UndecidedError
from axlog.future.keys import Key, parse_fact, parse_path, place_of, values_seen
from axlog.future.time_constraints import Inequality, TimeSystem, inequalities
from axlog.query.pattern import (
    Axis,
    Branch,
    Comparison,
    Kind,
    Literal,
    Name,
    Not,
    Pattern,
    PatternNode,
    TimeConstraint,
    Variable,
    branches_of,
)
from axlog.query.values import compare_numbers

_FACT = re.compile(r"every\s+(\S+)\s+by\s+(\S+)\s+refers\s+(\S+)\s+by\s+(\S+)\s+(trusted|enforced)")
_Value = Variable | str
_LONGEST_CHAIN = 8


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Nodes of `source` have values that nodes of `target` have."""

    source: Key
    target: Key
    is_enforced: bool = False

    def __str__(self) -> str:
        how = "enforced" if self.is_enforced else "trusted"
        ends = [
            f"{'/'.join(each.path)} by {'/'.join(each.by)}" for each in (self.source, self.target)
        ]
        return f"every {ends[0]} refers {ends[1]} {how}"


Fact = Key | ForeignKey


def parse_declared(text: str, namespaces: Mapping[str, str] | None = None) -> Fact:
    """Parse a declared fact: a key or a reference."""
    if text.split(maxsplit=1)[:1] != ["every"]:
        return parse_fact(text, namespaces)
    matched = _FACT.fullmatch(text.strip())
    if matched is None:
        raise QueryError(
            "AX201",
            f"{text!r} is not a declared fact",
            expected="`every PATH by PATH refers PATH by PATH trusted` or `... enforced`",
        )
    ends = [
        Key(parse_path(matched[at].strip("/"), namespaces), parse_path(matched[at + 1], namespaces))
        for at in (1, 3)
    ]
    return ForeignKey(ends[0], ends[1], matched[5] == "enforced")


def declare(tree: Tree, facts: Iterable[Fact]) -> None:
    """Set the declared facts of a document."""
    every = tuple(facts)
    tree.facts = tuple(each for each in every if isinstance(each, Key))
    tree.references = tuple(each for each in every if isinstance(each, ForeignKey))


def ends_of(references: Iterable[ForeignKey]) -> Iterator[Key]:
    """The sources and targets of references."""
    for each in references:
        yield each.source
        yield each.target


def refers_to_nothing(tree: Tree, reference: ForeignKey) -> bool:
    """Whether a value of a reference's source is not there among those of its target."""
    there = values_seen(tree, reference.target)
    return any(value not in there for value in values_seen(tree, reference.source))


# Patterns with what they refer to ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    """A value of a reference's source that a pattern asks for."""

    value: _Value
    is_child: bool  # `oid/$x`, not `oid = $x`
    name: str | None  # of the node that holds the value
    names: frozenset[str] = frozenset()  # of the nodes of its tree that lead to the value


def referred(tree: Tree, pattern: Pattern) -> Pattern:
    """The pattern with the nodes that its nodes refer to. AX503 where that is not exact."""
    if not tree.references:
        return pattern
    whole, is_longer = pattern, False
    done: set[tuple[ForeignKey, _Found]] = set()
    for _ in range(_LONGEST_CHAIN):  # what is added may refer to more
        if _is_timed(whole):
            for each in tree.references:
                whole = _with_names(whole, each.source)
        more = [(each, found) for each in tree.references for found in _sources(whole, each)
                if (each, found) not in done]  # fmt: skip
        if not more:
            return whole if is_longer else pattern
        _check(tree)
        for each, found in more:
            done.add((each, found))
            longer = _with_target(tree, whole, each, found)
            is_longer, whole = is_longer or longer != whole, longer
    raise UndecidedError("AX503", "the declared references refer to each other in a circle")


def _is_timed(pattern: Pattern) -> bool:
    return any(isinstance(c, TimeConstraint) for c in pattern.where) or any(
        output.kind is Kind.TIME for output in pattern.outputs
    )


def _check(tree: Tree) -> None:
    calls = [tree.call(node) for node in tree.calls().values()]
    if any(call.deletes != "no" or call.replace is not None for call in calls):
        raise UndecidedError(
            "AX503", "declared references beside streams that delete or replace are not covered"
        )
    if tree.types is not None:
        raise UndecidedError("AX503", "declared references beside types are not covered")


def _sources(pattern: Pattern, reference: ForeignKey) -> Iterator[_Found]:
    """The values of sources that every match of the pattern has."""
    key = reference.source
    for top in pattern.branches:
        if isinstance(top, PatternNode) and top.axis is Axis.CHILD:
            for node in _along(top, key.path, reference):
                yield from _values(node, key.by, reference)
        elif _mentions((top,), key):
            raise _refusal(reference)


def _along(
    node: PatternNode, path: tuple[str, ...], reference: ForeignKey
) -> Iterator[PatternNode]:
    if not path:
        yield node
        return
    for branch in node.branches:
        if not isinstance(branch, PatternNode):
            if _mentions((branch,), reference.source):
                raise _refusal(reference)
        elif branch.axis is Axis.CHILD:
            if isinstance(branch.test, Name):
                if branch.test.label == path[0]:
                    yield from _along(branch, path[1:], reference)
            elif branch.branches:  # any name: also that of the path
                raise _refusal(reference)


def _values(
    node: PatternNode,
    by: tuple[str, ...],
    reference: ForeignKey,
    above: frozenset[str] = frozenset(),
) -> Iterator[_Found]:
    axis = Axis.ATTRIBUTE if by[0].startswith("@") else Axis.CHILD
    above |= _name_of(node)
    for branch in node.branches:
        if not isinstance(branch, PatternNode):
            if _mentions((branch,), reference.source):
                raise _refusal(reference)
            continue
        if branch.axis is not axis or not isinstance(branch.test, Name):
            continue
        if branch.test.label != by[0].lstrip("@"):
            continue
        if len(by) > 1:
            yield from _values(branch, by[1:], reference, above)
            continue
        names = above | _name_of(branch)
        for each in branch.comparisons:
            if each.operator == "=" and isinstance(each.operand, Variable | str):
                yield _Found(each.operand, False, branch.name, names)
        for below in branch.branches:
            if isinstance(below, PatternNode) and below.axis is Axis.CHILD:
                inside = names | _name_of(below)
                if isinstance(below.test, Variable):
                    yield _Found(below.test, True, branch.name, inside)
                elif isinstance(below.test, Literal):
                    yield _Found(below.test.text, True, branch.name, inside)


def _name_of(node: PatternNode) -> frozenset[str]:
    return frozenset() if node.name is None else frozenset({node.name})


def _mentions(branches: Iterable[Branch], key: Key, is_positive: bool = True) -> bool:
    """Whether branches may need a node with the name of a source: not inside one `not`."""
    for branch in branches:
        if isinstance(branch, PatternNode):
            test = branch.test
            if is_positive and isinstance(test, Name) and test.label == key.path[-1]:
                return True
        inside = is_positive != isinstance(branch, Not)
        if _mentions(branches_of(branch), key, inside):
            return True
    return False


def _refusal(reference: ForeignKey) -> UndecidedError:
    path = "/".join(reference.source.path)
    return UndecidedError(
        "AX503", f"the query asks for {path} in an `or`, a `not` or by `*`, beside `{reference}`"
    )


def _with_target(tree: Tree, pattern: Pattern, reference: ForeignKey, found: _Found) -> Pattern:
    """The pattern with the node that a value refers to, no later than the value."""
    is_timed = _is_timed(pattern)
    target = reference.target
    there = list(_targets(pattern, target, found.value))
    if there and not is_timed:
        return pattern
    is_one = bool(there) and target_is_keyed(tree, target) and _come_whole(tree, reference)
    if is_one and _is_implied(pattern, there[0], found):
        return pattern
    own = next(_fresh(pattern)) if is_timed else None
    axis = Axis.ATTRIBUTE if target.by[-1].startswith("@") else Axis.CHILD
    last = PatternNode(axis, Name(target.by[-1].lstrip("@")), own)
    if found.is_child and axis is Axis.CHILD:
        test = found.value if isinstance(found.value, Variable) else Literal(found.value)
        last = replace(last, branches=(PatternNode(Axis.CHILD, test),))
    else:
        last = replace(last, comparisons=(Comparison("=", found.value),))
    node = last
    for step in reversed((*target.path, *target.by[:-1])):
        node = PatternNode(Axis.CHILD, Name(step), branches=(node,))
    where = pattern.where
    if own is not None:
        assert found.name is not None
        where = (*where, TimeConstraint(((1, own), (-1, found.name)), "<=", 0))
    branches = tuple(_beside(top, node) for top in pattern.branches)
    return replace(pattern, branches=branches, where=where)


def _fresh(pattern: Pattern) -> Iterator[str]:
    taken = {node.name for node in pattern.nodes()}
    return (name for number in count(1) if (name := f"referred~{number}") not in taken)


def _beside(top: Branch, node: PatternNode) -> Branch:
    if isinstance(top, PatternNode) and top.axis is Axis.CHILD:
        return replace(top, branches=(*top.branches, node))
    return top


def _targets(pattern: Pattern, target: Key, value: _Value) -> Iterator[_Found]:
    """The places of a pattern that ask for the target with this value."""
    quiet = ForeignKey(target, target)
    for top in pattern.branches:
        if isinstance(top, PatternNode) and top.axis is Axis.CHILD:
            for node in _along_names(top, target.path):
                yield from (each for each in _values_of_names(node, target.by, quiet)
                            if each.value == value)  # fmt: skip


def _along_names(node: PatternNode, path: tuple[str, ...]) -> Iterator[PatternNode]:
    if not path:
        yield node
        return
    for branch in node.branches:
        if not isinstance(branch, PatternNode) or branch.axis is not Axis.CHILD:
            continue
        if isinstance(branch.test, Name) and branch.test.label == path[0]:
            yield from _along_names(branch, path[1:])


def _values_of_names(
    node: PatternNode, by: tuple[str, ...], reference: ForeignKey
) -> Iterator[_Found]:
    plain = replace(
        node, branches=tuple(each for each in node.branches if isinstance(each, PatternNode))
    )
    yield from _values(plain, by, reference)


def target_is_keyed(tree: Tree, target: Key) -> bool:
    """Whether at most one node has each value of a reference's target."""
    return any((key.path, key.by) == (target.path, target.by) for key in tree.facts)


def _come_whole(tree: Tree, reference: ForeignKey) -> bool:
    """Whether the nodes of a reference arrive with their values, at one time."""
    if any(map(tree.may_bring_calls, tree.calls())):
        return False
    places = [place_of(tree, tree.parent(node)) for node in tree.calls().values()]
    ends = (reference.source.path, reference.target.path)
    return not any(place[: len(path)] == path for place in places for path in ends)


def _is_implied(pattern: Pattern, there: _Found, found: _Found) -> bool:
    """Whether the order of a node and of what it refers to cannot contradict the constraints.

    What is there already came in this order. If both are to come, they can.
    """
    times = [c for c in pattern.where if isinstance(c, TimeConstraint)]
    system: list[Inequality] = []
    for each in times:
        terms: Counter[str] = Counter()
        for factor, name in each.terms:
            if name not in there.names | found.names:
                return False
            terms["target" if name in there.names else "source"] += factor
        whole = tuple((factor, name) for name, factor in sorted(terms.items()) if factor)
        if whole:
            system += _open(replace(each, terms=whole))
        elif not compare_numbers(0, each.operator, each.bound):
            return False
    order = TimeConstraint(((1, "target"), (-1, "source")), "<=", 0)
    return TimeSystem([*system, *_open(order)]).is_satisfiable


def _open(constraint: TimeConstraint) -> list[Inequality]:
    """The inequalities of a constraint on unknown times; none for one that they do not express."""
    found = inequalities(constraint, {})
    return found if isinstance(found, list) else []


def _with_names(pattern: Pattern, source: Key) -> Pattern:
    """The pattern with a name for every node that may hold a value of a source."""
    fresh = _fresh(pattern)

    def visit(node: PatternNode, left: tuple[str, ...]) -> PatternNode:
        below: list[Branch] = []
        for branch in node.branches:
            if (
                isinstance(branch, PatternNode)
                and isinstance(branch.test, Name)
                and branch.test.label == left[0].lstrip("@")
            ):
                if len(left) > 1:
                    branch = visit(branch, left[1:])
                elif branch.name is None:
                    branch = replace(branch, name=next(fresh))
            below.append(branch)
        return replace(node, branches=tuple(below))

    whole = (*source.path, *source.by)
    tops = tuple(
        visit(top, whole) if isinstance(top, PatternNode) and top.axis is Axis.CHILD else top
        for top in pattern.branches
    )
    return replace(pattern, branches=tops)
