"""Paths of a pattern, walked by generated functions: from the document down, or from a value up.

On a small document, or near the root of a large one, a walk over a few hundred nodes takes less
time than the arrays of `node_sets` take to set up. The function is nested loops over the columns of
the tree, one for each step of the path; the branches beside the path are functions that loop over
the children of one node. Its source depends on the shape of the pattern alone, so statements of one
shape share the compiled code; names and constants are passed to it.

A step `//name` reads the nodes of the name instead of walking below the contexts. Left to the
arrays: a second `//`, `//` to anything but a name, and branches that go further than to children
and attributes. The walk gives up after `worth` nodes of the path, or in a branch after `LONGEST`
children of one node.

A climb starts with nodes of one step, found by an indexed value. It checks each of them and the
nodes above it, and walks down the steps after it.

Law: they find the nodes that the arrays find, a walk in document order, or give up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from axlog.document.tree import ATTRIBUTE, ELEMENT, NONE, TEXT, Tree
from axlog.evaluate import node_tests
from axlog.evaluate.columns import in_order
from axlog.evaluate.generated_code import function_of
from axlog.evaluate.value_tests import comparison
from axlog.query.path_patterns import HOLE
from axlog.query.pattern import (
    AnyText,
    Axis,
    Branch,
    Collect,
    Name,
    Not,
    Or,
    PartialName,
    PatternNode,
    Variable,
    Wildcard,
    branches_of,
)

LONGEST = 64
"""The most children of one node that a branch beside the path looks at."""
DEEPEST = 16
"""The most steps of a path: Python nests at most twenty loops."""

SEARCH = 8
"""The nodes of a path that cost as much as to look for one branch beside it."""

Step = tuple[PatternNode, tuple[Branch, ...]]
"""A node of the path, with the branches beside the path."""
Walker = Callable[[Tree, Mapping[str, str], int], "list[int] | None"]
"""The nodes of a tree for values of the holes; None if the walk gives up after so many nodes."""

Climber = Callable[[Tree, Mapping[str, str], Iterable[int]], "list[int] | None"]
"""The nodes at the end of a path, in no order, from nodes of a step that have a value."""


def walker_of(steps: Sequence[Step]) -> Walker | None:
    """The function that walks a path from the document; None if it cannot."""
    if len(steps) > DEEPEST or sum(step.axis is Axis.DESCENDANT for step, _ in steps) > 1:
        return None
    try:
        return _Writer(steps).walker()
    except _BeyondError:
        return None


def climber_of(steps: Sequence[Step], at: int) -> Climber | None:
    """The function that climbs from nodes of a step; None if it cannot.

    The step before which a descendant step stands may match any node above.
    """
    if len(steps) > DEEPEST or any(step.axis is not Axis.CHILD for step, _ in steps[1:]):
        return None
    try:
        return _Writer(steps).climber(at)
    except _BeyondError:
        return None


class _BeyondError(Exception):
    """The path has a part that is left to the arrays."""


class _FarError(Exception):
    """The walk is longer than arrays would take."""


def _searches(branches: Iterable[Branch]) -> Iterator[PatternNode]:
    """The nodes of a pattern that are looked for among children."""
    for branch in branches:
        if isinstance(branch, PatternNode):
            yield branch
        yield from _searches(branches_of(branch))


def _below(tree: Tree, label: str, above: int, worth: int, is_last: bool) -> list[int]:
    """The elements of a name below a node, in document order.

    Raises if they are many, or if steps follow and one of them is inside another: the children of
    nested elements are not found in document order.
    """
    nodes, parents = tree.partition(label), tree.parent_column
    if len(nodes) > worth:
        raise _FarError
    among = () if is_last else set(nodes)
    found = []
    for node in nodes:
        at, is_below = parents[node], False
        while at != NONE:
            is_below = is_below or at == above
            if at in among:
                raise _FarError
            at = parents[at]
        if is_below:
            found.append(node)
    return in_order(tree, found)


class _Writer:
    """Writes the function of one path."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._head: list[str] = []  # the names and tests of the function
        self._lines: list[str] = []
        self._constants: dict[str, object] = {
            "FAR": _FarError,
            "LIMIT": range(LONGEST),
            "comparison": comparison,
            "below": _below,
            "passes": node_tests.passes,
        }

    def walker(self) -> Walker:
        self._loop(0, 2)
        made: Walker = function_of("walk", self._source("walk", "worth"), self._constants)
        return made

    def climber(self, at: int) -> Climber:
        self._line(2, "worth = 1 << 60")
        self._line(2, f"for n{at} in nodes:")
        depth = 3
        for number in range(at, -1, -1):
            step, beside = self._steps[number]
            self._line(depth, f"if {self._matches(f'n{number}', step, beside)}:")
            depth += 1
            if number:
                self._line(depth, f"n{number - 1} = parents[n{number}]")
            elif step.axis is Axis.CHILD:
                self._line(depth, "if parents[n0] == 0:")
                depth += 1
        self._loop(at + 1, depth)
        made: Climber = function_of("climb", self._source("climb", "nodes"), self._constants)
        return made

    def _source(self, name: str, given: str) -> str:
        return "\n".join(
            (
                f"def {name}(tree, values, {given}):",
                " first, following = tree.first_column, tree.next_column",
                " kinds, labels, parents = tree.kind_column, tree.label_column, tree.parent_column",
                " string_value, number, found = tree.string_value, tree.name_ids.get, []",
                *self._head,
                " try:",
                *self._lines,
                " except FAR:",
                "  return None",
                " return found",
            )
        )

    def _line(self, depth: int, text: str) -> None:
        self._lines.append(" " * depth + text)

    def _constant(self, stem: str, thing: object) -> str:
        name = f"{stem}_{len(self._constants)}"
        self._constants[name] = thing
        return name

    def _loop(self, at: int, depth: int) -> None:
        """The loop of a step, and inside it those of the steps after it."""
        if at == len(self._steps):
            self._line(depth, f"found.append(n{at - 1})")
            return
        (step, beside), node = self._steps[at], f"n{at}"
        above = f"n{at - 1}" if at else "0"
        if step.axis is Axis.CHILD:
            self._line(depth, f"{node} = first[{above}]")
            self._line(depth, f"while {node} != {NONE}:")
        elif step.axis is Axis.DESCENDANT and isinstance(step.test, Name):
            name, is_last = self._constant("NAME", step.test.label), at == len(self._steps) - 1
            self._line(depth, f"for {node} in below(tree, {name}, {above}, worth, {is_last}):")
        else:
            raise _BeyondError
        self._line(depth + 1, "worth -= 1")
        self._line(depth + 1, "if worth < 0: return None")
        inner = depth + 2
        self._line(depth + 1, f"if {self._test(node, step)}:")
        if beside or step.comparisons:
            self._line(inner, f"worth -= {SEARCH * len(list(_searches(beside)))}")
            self._line(inner, f"if {self._meets(node, step, beside)}:")
            inner += 1
        self._loop(at + 1, inner)
        if step.axis is Axis.CHILD:
            self._line(depth + 1, f"{node} = following[{node}]")

    def _matches(self, node: str, step: PatternNode, branches: Sequence[Branch]) -> str:
        """The condition that a node passes the test of a step and meets its conditions."""
        return f"{self._test(node, step)} and {self._meets(node, step, branches)}"

    def _meets(self, node: str, step: PatternNode, branches: Sequence[Branch]) -> str:
        """The condition that a node has the branches and values that a step requires."""
        parts = ["True", *(self._holds(node, branch) for branch in branches)]
        for asked in step.comparisons:
            operand = asked.operand
            if isinstance(operand, Variable):
                continue  # it binds a variable that occurs nowhere else
            if isinstance(operand, str) and operand.startswith(HOLE):
                test, operator = f"t{len(self._head)}", self._constant("OPERATOR", asked.operator)
                value = f"values[{self._constant('HOLE', operand[1:])}]"
                self._head.append(f" {test} = comparison({operator}, {value})")
            else:
                test = self._constant("TEST", comparison(asked.operator, operand))
            parts.append(f"{test}(string_value({node}))")
        return " and ".join(parts)

    def _test(self, node: str, step: PatternNode) -> str:
        """The condition that a node at the end of an axis passes a test."""
        is_attribute = step.axis is Axis.ATTRIBUTE
        kind = ATTRIBUTE if is_attribute else ELEMENT
        test = step.test
        if isinstance(test, Name):
            name = self._constant("NAME", f"@{test.label}" if is_attribute else test.label)
            label = f"l{len(self._head)}"
            self._head.append(f" {label} = number({name}, -2)")
            return f"labels[{node}] == {label} and kinds[{node}] == {kind}"
        if isinstance(test, Wildcard) and not isinstance(test, PartialName):
            return f"kinds[{node}] == {kind}"
        if isinstance(test, AnyText):
            return f"kinds[{node}] == {TEXT}"
        axis, other = self._constant("AXIS", step.axis), self._constant("TEST", test)
        passes = f"passes(tree, {node}, {axis}, {other})"
        if is_attribute:
            return f"kinds[{node}] == {ATTRIBUTE} and {passes}"
        return passes if step.axis is Axis.SELF else f"kinds[{node}] != {ATTRIBUTE} and {passes}"

    def _holds(self, node: str, branch: Branch) -> str:
        """The condition that a branch holds at a node."""
        match branch:
            case PatternNode(axis=Axis.SELF):
                return f"({self._matches(node, branch, branch.branches)})"
            case PatternNode():
                return f"{self._search(branch)}({node})"
            case Or(alternatives=alternatives):
                return f"({' or '.join(self._all(node, each) for each in alternatives)})"
            case Not(branches=branches):
                return f"not {self._all(node, branches)}"
            case Collect():
                return "True"

    def _all(self, node: str, branches: Sequence[Branch]) -> str:
        return f"({' and '.join(self._holds(node, each) for each in branches) or 'True'})"

    def _search(self, step: PatternNode) -> str:
        """A function that tells whether a node has a child or attribute that matches a step."""
        if step.axis not in (Axis.CHILD, Axis.ATTRIBUTE):
            raise _BeyondError
        matches = self._matches("n", step, step.branches)
        name = f"b{len(self._head)}"
        self._head += [
            f" def {name}(n):",
            "  n = first[n]",
            "  for _ in LIMIT:",
            f"   if n == {NONE}: return False",
            f"   if {matches}: return True",
            "   n = following[n]",
            "  raise FAR",
        ]
        return name
