"""Positions in predicates of the native text: `item[1]`, `item[last()]`, `item[position() < 3]`.

A position is that of XPath: the place of a node among the children of its parent that pass the test
of the step and the predicates before the position. The parser writes each position into the pattern
as a separate branch (`marker`). `split_positions` removes these branches. The pattern without them
is matched as usual, and a step (`steps.Positions`) keeps the rows whose nodes are at their
positions. A second pattern finds the siblings: the step with the predicates before the position,
below the steps above it.

A `not` with positions inside leaves the pattern too. Its inside, below the steps above it, is a
pattern with positions of its own, whose rows block those at the same node. An `or` with positions
inside is the `not` of its alternatives, each negated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from axlog.errors import QuerySyntaxError, UnsupportedError
from axlog.query.aggregate_patterns import ANCHOR, variables_bound
from axlog.query.formula import Formula
from axlog.query.native_text import expression_text
from axlog.query.pattern import (
    POSITION,
    AnyNode,
    Axis,
    Branch,
    Collect,
    Comparison,
    Kind,
    Not,
    Or,
    Output,
    Pattern,
    PatternNode,
    Variable,
    branches_of,
    is_position,
    nodes_of,
)
from axlog.query.plan_rewrites import position_bounds
from axlog.query.positions import place_at
from axlog.query.steps import Absent, Chosen, Positions, Scalar, Slice
from axlog.query.syntax_tree import Binary, Call, Constant

_SIBLING, _STANDS = "sibling", "stands~"
_FORMS = "[1], [last()], [position() < 3], [position() > last() - 2]"


def is_positional(expression: Scalar) -> bool:
    """Whether an expression is a condition on the position: a number, or one with position()."""
    match expression:
        case Constant(value=value):
            return not isinstance(value, str)
        case Call(name="position" | "last"):
            return True
        case Binary(operator=operator, left=left, right=right):
            if operator in ("+", "-"):
                return is_positional(left) and is_positional(right)
            return _names_position(left) or _names_position(right)
    return False


def _names_position(expression: Scalar) -> bool:
    match expression:
        case Call(name="position" | "last"):
            return True
        case Binary(left=left, right=right):
            return _names_position(left) or _names_position(right)
    return False


def marker(expression: Scalar, text: str) -> PatternNode:
    """A position as a branch; raises AX201 if it is no range of positions."""
    _slice(expression, text)
    formula = Formula(expression_text(expression), expression, text)
    return PatternNode(Axis.SELF, AnyNode(), comparisons=(Comparison(POSITION, formula),))


def _slice(expression: Scalar, text: str) -> Slice:
    """The positions that a condition selects, as a slice from 0."""
    bounds = position_bounds(expression)  # type: ignore[arg-type]
    if bounds is None:
        raise QuerySyntaxError(
            "AX201",
            "this is no range of positions",
            place=place_at(text, expression.at),
            expected=_FORMS,
        )
    first, last = bounds
    return first - 1 if first > 0 else first, None if last == -1 else last + (last < 0)


@dataclass(slots=True)
class _Splitter:
    text: str
    fresh: Iterator[str]
    chosen: list[Chosen] = field(default_factory=list)
    absent: list[Absent] = field(default_factory=list)

    def branch(self, branch: Branch, spine: tuple[PatternNode, ...]) -> Branch:
        if isinstance(branch, PatternNode):
            return self._node(branch, spine)
        for node in nodes_of(branch):
            if is_position(node):
                where = "a function" if spine else "an `or` or `not` of whole paths"
                raise self._refused(f"a position inside {where}", node)
        return branch

    def _node(self, node: PatternNode, spine: tuple[PatternNode, ...]) -> PatternNode:
        before: list[Branch] = []  # what the siblings must pass
        after: list[Branch] = []
        slices: list[Slice] = []
        apart: list[tuple[Not | Or, list[Branch]]] = []  # with positions inside; what is before
        for branch in node.branches:
            if isinstance(branch, Not | Or) and any(map(is_position, nodes_of(branch))):
                if slices and _is_about_itself(branch):
                    marked = next(filter(is_position, nodes_of(branch)))
                    raise self._refused("a second position behind another predicate", marked)
                apart.append((branch, list(before)))
                continue
            if not is_position(branch):
                (after if slices else before).append(branch)
                continue
            assert isinstance(branch, PatternNode)
            if apart:
                raise self._refused(
                    "a position behind an `or` or `not` with positions inside", branch
                )
            if after:
                raise self._refused("a second position behind another predicate", branch)
            if node.axis not in (Axis.CHILD, Axis.DESCENDANT):
                raise self._refused(f"a position on the axis {node.axis.value}", branch)
            slices.append(_slice(_expression(branch), self.text))
            if any(_binds(each) for part in before for each in _all(part)):
                raise self._refused(
                    "a position behind a predicate with variables or functions of a path", branch
                )
        if (slices or apart) and node.name is None:
            name = next(self.fresh)  # a node that binds keeps its place among those that do
            name = name.replace(ANCHOR, "at~") if variables_bound(node) else name
            node = replace(node, name=name)
        if slices:
            test = replace(node.test, name="sibling~") if isinstance(node.test, Variable) else None
            siblings = replace(
                node, name=_SIBLING, test=test or node.test, branches=tuple(map(_nameless, before))
            )
            whole = _below(spine, siblings)
            pattern = Pattern((whole,), outputs=(Output(Kind.ID, _SIBLING),))
            self.chosen.append(Chosen(pattern, f"{node.name}.id", tuple(slices)))
        self.absent += [self._absent(branch, node, ahead, spine) for branch, ahead in apart]
        inner = (*spine, node)
        return replace(node, branches=tuple(self.branch(b, inner) for b in (*before, *after)))

    def _absent(
        self,
        branch: Not | Or,
        node: PatternNode,
        before: list[Branch],
        spine: tuple[PatternNode, ...],
    ) -> Absent:
        """The rows that block those at a node, for a `not` or `or` that stands there.

        Its own position is that among the siblings that pass the predicates before.
        """
        inside: tuple[Branch, ...]
        if isinstance(branch, Or):
            inside = tuple(Not(alternative) for alternative in branch.alternatives)
        else:
            inside = branch.branches
        marked = next(filter(is_position, nodes_of(branch)))
        if any(_is_bound(each) for part in inside for each in _all(part)):
            raise self._refused(
                "a position beside variables, names and functions of a path inside `or` and `not`",
                marked,
            )
        if _is_about_itself(branch):
            inside = (*map(_nameless, before), *_apart(inside))
            if any(_binds(each) for part in before for each in _all(part)):
                raise self._refused(
                    "a position behind a predicate with variables or functions of a path", marked
                )
        test = Variable("above~stands") if isinstance(node.test, Variable) else node.test
        below = _below(spine, PatternNode(node.axis, test, _STANDS, branches=inside))
        rest, positions = split_positions((below,), self.text)
        assert positions is not None, "there are positions inside"
        names = [_STANDS, *(column.removesuffix(".id") for column in positions.columns)]
        outputs = tuple(Output(Kind.ID, name) for name in dict.fromkeys(names))
        return Absent(
            Pattern(rest, outputs=outputs), replace(positions, dropped=()), f"{node.name}.id"
        )

    def _refused(self, what: str, node: PatternNode) -> UnsupportedError:
        return UnsupportedError(
            "AX211",
            f"{what} is not supported",
            place=place_at(self.text, _expression(node).at),
            expected="a position first in its step: order/item[1][price > 5]",
            advice="XPath and XQuery take positions anywhere",
        )


def split_positions(
    branches: tuple[Branch, ...], text: str
) -> tuple[tuple[Branch, ...], Positions | None]:
    """The branches without positions, and the step that chooses by them."""
    names = {node.name for branch in branches for node in nodes_of(branch)}
    fresh = (name for number in count(1) if (name := f"{ANCHOR}p{number}") not in names)
    splitter = _Splitter(text, fresh)
    rest = tuple(splitter.branch(branch, ()) for branch in branches)
    chosen, absent = tuple(splitter.chosen), tuple(splitter.absent)
    if not chosen and not absent:
        return branches, None
    found = Positions(Pattern(branches), chosen, absent=absent)
    dropped = tuple(column for column in found.columns if column.startswith(ANCHOR))
    return rest, replace(found, dropped=dropped)


def _expression(node: PatternNode) -> Scalar:
    formula = node.comparisons[0].operand
    assert isinstance(formula, Formula)
    found: Scalar = formula.expression
    return found


def _below(spine: tuple[PatternNode, ...], node: PatternNode) -> PatternNode:
    """A node below the steps above it, without their predicates."""
    for number, above in enumerate(reversed(spine)):
        test = above.test
        if isinstance(test, Variable):
            test = Variable(f"above~{number}")
        node = PatternNode(above.axis, test, branches=(node,))
    return node


def _all(branch: Branch) -> Iterator[Branch]:
    waiting = [branch]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += branches_of(found)


def _binds(branch: Branch) -> bool:
    if not isinstance(branch, PatternNode):
        return isinstance(branch, Collect)
    operands = (comparison.operand for comparison in branch.comparisons)
    is_variable = isinstance(branch.test, Variable)
    return is_variable or is_position(branch) or any(isinstance(o, Variable) for o in operands)


def _is_about_itself(branch: Branch) -> bool:
    """Whether a condition has a position of the node that it stands at."""
    if isinstance(branch, PatternNode):
        return is_position(branch)
    return isinstance(branch, Not | Or) and any(map(_is_about_itself, branches_of(branch)))


def _apart(inside: tuple[Branch, ...]) -> Iterator[Branch]:
    """Conditions that hold together, none before a position: positions count them all."""
    if len(inside) == 1:
        yield from inside
        return
    for branch in inside:
        if is_position(branch):
            yield Not((Not((branch,)),))
        elif _is_about_itself(branch):
            yield branch
    yield from (branch for branch in inside if not _is_about_itself(branch))


def _is_bound(branch: Branch) -> bool:
    """Whether a branch binds, or is more than paths, `or` and `not`."""
    match branch:
        case PatternNode():
            return branch.name is not None or (not is_position(branch) and _binds(branch))
        case Not(where=where):
            return bool(where)
    return isinstance(branch, Collect)


def _nameless(branch: Branch) -> Branch:
    """A branch without the names of its nodes."""
    if not isinstance(branch, PatternNode):
        return branch  # names inside `or` and `not` are their own
    return replace(branch, name=None, branches=tuple(map(_nameless, branch.branches)))
