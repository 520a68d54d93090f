"""The derivations of a row, computed on request.

A derivation names the document node that each pattern node matched, with its id, path, time and
origin. No state is kept for derivations. A request evaluates the definition with the values of the
row fixed, at the cost of the definition on the parts that these values leave open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from axlog.document.ids import Id
from axlog.document.times import Shown, Times, microseconds, shown
from axlog.document.tree import ATTRIBUTE, ELEMENT, NONE, Tree
from axlog.document.value_index import ValueIndex
from axlog.evaluate.definition import Valuation, row_of, valuations
from axlog.evaluate.joins import Bag
from axlog.evaluate.steps_definition import position_test
from axlog.evaluate.text_search import labelled
from axlog.future.truth import Possible
from axlog.query.columns import Columns
from axlog.query.normalize import normalise
from axlog.query.pattern import (
    Axis,
    Branch,
    Kind,
    Name,
    Or,
    Output,
    Pattern,
    PatternNode,
    Variable,
    nodes_of,
)
from axlog.query.steps import Clock, Group, Order, Positions, clock_of
from axlog.views.change import Row
from axlog.views.step_chain import StepChain
from axlog.views.step_rows import Stepping
from axlog.views.value_codec import python_value

FEW = 100
"""Nodes below each node of a pattern up to which the document itself is read."""
_Goal: TypeAlias = tuple[str, str | None]
"""A variable, and the label of the element that its node is a child of, if it is known."""
DOWNWARD = (Axis.CHILD, Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF, Axis.SELF, Axis.ATTRIBUTE)


@dataclass(frozen=True, slots=True)
class Matched:
    """One pattern node with the document node that it matched."""

    pattern: str
    id: Id
    path: str
    time: Shown
    origin: str | None = None  # the stream and message that inserted it


@dataclass(frozen=True, slots=True)
class Derivation:
    """One way in which a row holds."""

    matched: tuple[Matched, ...]

    def __str__(self) -> str:
        return "\n".join(
            f"{m.pattern:<24} {m.path}  ({m.id})" + (f"  from {m.origin}" if m.origin else "")
            for m in self.matched
        )


def derivations(
    tree: Tree,
    pattern: Pattern,
    row: Mapping[str, Any],
    times: Times = "seconds",
    index: ValueIndex | None = None,
) -> list[Derivation]:
    """Every derivation of a row; none if the row does not hold. `index`: the tree's values.

    A column that is left out may have any value.
    """
    row = inward(pattern, row)
    asked = [(at, _text(row[c])) for at, c in enumerate(pattern.columns) if c in row]
    steps = [str(replace(node, branches=())) for node in pattern.nodes()]
    found = []
    given = {
        output.of: str(row[column])
        for output, column in zip(pattern.outputs, pattern.columns, strict=True)
        if output.kind is Kind.VARIABLE and column in row
    }
    for valuation in valuations(tree, pattern, given, places=_Paths(tree, given, index)):
        _, values = row_of(tree, pattern, valuation)
        if all(_text(values[at]) == value for at, value in asked):
            found.append(_derivation(tree, steps, valuation, times))
    return found


class _Paths:
    """The nodes above those that have a value of the row, for the pattern nodes above its variable.

    A pattern node with a variable of the row below it matches only on the way to a node with the
    variable's value. There are few of them, however many siblings they have. Texts inside elements
    of one name are found in the value index of the document, others by a search.
    """

    def __init__(self, tree: Tree, given: Mapping[str, str], index: ValueIndex | None) -> None:
        self._tree, self._given, self._index = tree, given, index
        self._children: dict[_Goal, dict[int, list[int]]] = {}  # by parent, its nodes on the way
        self._goals: dict[int, tuple[PatternNode, _Goal | None]] = {}

    def below(self, at: int, branch: PatternNode) -> list[int] | None:
        if branch.axis not in (Axis.CHILD, Axis.DESCENDANT) or not self._given:
            return None
        known = self._goals.get(id(branch))
        if known is None:
            known = self._goals[id(branch)] = branch, next(self._below(branch, None), None)
        goal = known[1]
        if goal is None:
            return None
        if branch.test == Variable(goal[0]) and branch.axis is Axis.CHILD:
            goal = goal[0], self._tree.label(at) if self._tree.kind_column[at] == ELEMENT else None
        children = self._ways(goal)
        found = children.get(at, [])
        if branch.axis is Axis.CHILD:
            return found
        every, waiting = [], found[::-1]
        while waiting:
            node = waiting.pop()
            every.append(node)
            waiting += children.get(node, [])[::-1]
        return every

    def _below(self, branch: PatternNode, above: str | None) -> Iterator[_Goal]:
        """The variables of the row that the node, or one on a way down from it, must have."""
        if isinstance(branch.test, Variable) and branch.test.name in self._given:
            yield branch.test.name, above if branch.axis is Axis.CHILD else None
        label = branch.test.label if isinstance(branch.test, Name) else None
        if label is not None and branch.axis is Axis.ATTRIBUTE:
            label = f"@{label}"
        for each in branch.branches:
            if isinstance(each, PatternNode) and each.axis in DOWNWARD:
                yield from self._below(each, label)

    def _having(self, goal: _Goal) -> Iterable[int]:
        """The nodes that have the value of a variable; all those inside elements of the label."""
        tree, (variable, label) = self._tree, goal
        value = self._given[variable]
        if self._index is not None and label is not None:
            found = self._index.find_text(label, value)
            if found is not None:
                texts = [t for node in found for t in tree.children(node) if tree.label(t) == value]
                return [*texts, *tree.partition(value)]
        return labelled(tree, value)

    def _ways(self, goal: _Goal) -> dict[int, list[int]]:
        """By parent, its children from which a node with the variable's value can be reached."""
        known = self._children.get(goal)
        if known is None:
            tree, parents = self._tree, self._tree.parent_column
            seen: set[int] = set()
            for node in self._having(goal):
                at = node
                while at not in seen and parents[at] != NONE:
                    seen.add(at)
                    at = parents[at]
            known = self._children[goal] = {}
            for node in sorted(seen, key=tree.id):
                if tree.kind_column[node] != ATTRIBUTE and tree.is_alive(node):
                    known.setdefault(parents[node], []).append(node)
        return known


def is_found_by_values(tree: Tree, pattern: Pattern) -> bool:
    """Whether the variables of a row lead to few nodes for every node of the pattern.

    Law: no row changes by it. It only decides between reading the document and copying it.
    """
    shown = {output.of for output in pattern.outputs if output.kind is Kind.VARIABLE}
    return bool(shown) and all(_leads_to(tree, branch, shown, 1) for branch in pattern.branches)


def _leads_to(tree: Tree, branch: Branch, shown: Set[str], above: int) -> bool:
    """Whether a branch has a variable below it, or few nodes for each of those `above` it."""
    if not isinstance(branch, PatternNode) or branch.axis not in DOWNWARD:
        return False
    if not isinstance(branch.test, Name):
        is_shown = isinstance(branch.test, Variable) and branch.test.name in shown
        return (is_shown or branch.axis is Axis.CHILD) and not branch.branches
    label = branch.test.label
    size = len(tree.partition(f"@{label}" if branch.axis is Axis.ATTRIBUTE else label))
    is_pinned = any(
        isinstance(node.test, Variable) and node.test.name in shown for node in nodes_of(branch)
    )
    if not is_pinned and (size > FEW * above or branch.axis is Axis.DESCENDANT):
        return False
    return all(_leads_to(tree, each, shown, max(size, 1)) for each in branch.branches)


def _derivation(tree: Tree, steps: Sequence[str], valuation: Valuation, times: Times) -> Derivation:
    return Derivation(
        tuple(
            matched(tree, steps[number], node, times)
            for number, node in sorted(valuation.nodes.items())
        )
    )


def present_parts(
    tree: Tree, pattern: Pattern, row: Mapping[str, Any], times: Times = "seconds"
) -> list[Matched]:
    """The nodes that already have a value of a row, where the pattern binds its variable.

    Each path of the pattern to a variable is matched alone, so this also says which parts are there
    of a row that does not hold.
    """
    given = {
        output.of: str(row[output.column])
        for output in pattern.outputs
        if output.kind is Kind.VARIABLE and row.get(output.column) is not None
    }
    found: dict[tuple[str, int], Matched] = {}
    for variable, branch in _paths_to(normalise(pattern).branches, given):
        path = Pattern((branch,), (), (Output(Kind.VARIABLE, variable),))
        text = str(replace(list(path.nodes())[-1], branches=()))
        for valuation in valuations(tree, path, {variable: given[variable]}):
            node = max(valuation.nodes.items())[1]
            found.setdefault((text, node), matched(tree, text, node, times))
    return list(found.values())


def _paths_to(
    branches: Sequence[Branch], wanted: Mapping[str, str]
) -> Iterator[tuple[str, PatternNode]]:
    """The paths from the document to each node that binds a wanted variable."""
    for branch in branches:
        if isinstance(branch, Or):
            for alternative in branch.alternatives:
                yield from _paths_to(alternative, wanted)
        if not isinstance(branch, PatternNode):
            continue
        compared = [c for c in branch.comparisons if isinstance(c.operand, Variable)]
        rest = tuple(c for c in branch.comparisons if not isinstance(c.operand, Variable))
        bound = {c.operand.name: c for c in compared
                 if c.operator == "=" and isinstance(c.operand, Variable)}  # fmt: skip
        for name in wanted:
            if branch.test == Variable(name):
                yield name, replace(branch, name=None, branches=(), comparisons=rest)
            elif name in bound:
                yield (
                    name,
                    replace(branch, name=None, branches=(), comparisons=(*rest, bound[name])),
                )
        above = replace(branch, name=None, comparisons=rest)
        if not isinstance(branch.test, Variable):
            for name, below in _paths_to(branch.branches, wanted):
                yield name, replace(above, branches=(below,))


def step_derivations(
    tree: Tree, stepping: Stepping, row: Mapping[str, Any], times: Times = "seconds"
) -> list[Derivation]:
    """The derivations of the rows of the pattern behind a row of a query with steps.

    Those of a group are the derivations of all rows that it was computed from. Of the row, only the
    values of its key count then.
    """
    key = stepping.key
    pattern, steps = key.pattern, key.steps
    clock = clock_of(steps)
    if clock is not None:  # matched as it was written, at the clock
        names = {node.name for node in clock.written.nodes()}
        outputs = (o for o in pattern.outputs if o.kind is Kind.VARIABLE or o.of in names)
        pattern = replace(clock.written, outputs=tuple(outputs))
        tests = tuple(test for test in clock.tests if test.value is not None)
        compared = Clock(clock.written, tests)
        steps = tuple(compared if step is clock else step for step in steps)
    is_there = position_test(tree, steps)
    steps = tuple(
        replace(s, chosen=(), absent=()) if isinstance(s, Positions) else s for s in steps
    )
    group = next((at for at, step in enumerate(steps) if isinstance(step, Group)), None)
    before = [step for step in steps[:group] if not isinstance(step, Order)]
    chain = StepChain(before, pattern.columns, clock=tree.clock)
    wanted = [
        (
            chain.schema.index(column),
            _inward(row[column]) if at in key.columns.times else row[column],
        )
        for at, (column, value) in enumerate((c, row[c]) for c in key.columns)
        if group is None or at in key.positions
    ]
    nodes = [str(replace(node, branches=())) for node in pattern.nodes()]
    found = []
    for valuation in filter(is_there, valuations(tree, pattern)):
        _, values = row_of(tree, pattern, valuation)
        passed: list[Any] = list(chain.apply(cast("Bag", {values: 1})))
        if any(all(_text(each[at]) == _text(value) for at, value in wanted) for each in passed):
            found.append(_derivation(tree, nodes, valuation, times))
    return found


def matched(tree: Tree, name: str, node: int, times: Times) -> Matched:
    """A node of a derivation, with the name of what it matched."""
    time = shown(tree.time(node), times)
    return Matched(name, tree.id(node), tree.path(node), time, _origin(tree, node))


def inward(pattern: Pattern, row: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a caller, with its times converted to microseconds."""
    timed = {output.column for output in pattern.outputs if output.kind is Kind.TIME}
    return {column: _inward(v) if column in timed else v for column, v in row.items()}


def shown_possible(one: Possible, pattern: Pattern, times: Times) -> Possible:
    """A possible row with its times converted to seconds or dates."""
    timed = {output.column for output in pattern.outputs if output.kind is Kind.TIME}
    row = {
        column: shown(value, times) if column in timed and value is not None else value
        for column, value in one.row.items()
    }
    until, since = (
        None if each is None else shown(int(each), times) for each in (one.deadline, one.since)
    )
    return Possible(row, one.needs, until, since)


def inward_by_type(columns: Columns, row: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a caller, with the times of its columns converted to microseconds."""
    timed = {columns[at] for at in columns.times}
    return {column: _inward(v) if column in timed else v for column, v in row.items()}


def agrees(wanted: Mapping[str, Any], row: Row) -> bool:
    """Whether a row has the requested values."""
    values = dict(zip(row.columns, row.values_, strict=True))
    return all(value is None or values[column] == value for column, value in wanted.items())


def has_values(row: Row, wanted: Mapping[str, Any]) -> bool:
    """Whether a row has the values of a caller, in the form that rows show them or as texts."""
    return all(row[name] == value or str(row[name]) == str(value) for name, value in wanted.items())


def _inward(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_inward(item) for item in value)
    return None if value is None else microseconds(value)


def _origin(tree: Tree, node: int) -> str | None:
    found = tree.origin(node)
    return None if found is None else named_message(found[1], found[0])


def named_message(number: int, stream: str) -> str:
    """The text that names a message of a stream as the origin of a node."""
    return f"message {number} of {stream!r}"


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, Id) else python_value(value)
