"""Candidate strings for the unknowns of a scenario: one for each case that comparisons distinguish.

If a pattern only tests strings for equality, a fresh string for each unknown is the most general
choice. Comparisons with constants divide strings (or numbers) into cells. Each unknown is tried in
every cell, with a string of its own there, and at each constant. If strings are compared with each
other, their equality matters too: unknowns are then also tried as strings of the document and as
each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product

from axlog.document.tree import DOCUMENT_NODE, ELEMENT, TEXT, Tree
from axlog.evaluate.value_tests import comparison
from axlog.future.formula_values import candidates
from axlog.future.generalized_rows import Need
from axlog.future.value_classes import samples_of
from axlog.query.formula import HOLDS, Formula
from axlog.query.normalize import normalise
from axlog.query.pattern import (
    Axis,
    Branch,
    Comparison,
    Constant,
    Literal,
    Name,
    Or,
    Pattern,
    PatternNode,
    ValueConstraint,
    Variable,
    nodes_of,
)
from axlog.query.scopes import scope_of
from axlog.query.values import compare

MOST_STRINGS = 12
"""Largest number of document strings to try for an unknown, where equality matters."""
MOST_TRIED = 20_000
MOST_FORMULA_VALUES = 6
"""Largest number of values that pass a formula to try for an unknown."""

Compared = tuple[str, Comparison]
"""A variable, and a comparison that its value must pass."""


def with_value_variables(node: PatternNode, compared: list[Compared]) -> PatternNode:
    """The pattern with a variable in place of each value that is compared by other than `=`."""
    comparisons = []
    text = _own_text(node)
    for each in node.comparisons:
        if each.operator == "=" and isinstance(each.operand, str | Variable):
            comparisons.append(each)
            continue
        if isinstance(text, str):
            comparisons.append(Comparison("=", text))
            continue
        variable = text if text is not None else Variable(f"compared.{len(compared)}")
        compared.append((variable.name, each))
        comparisons.append(Comparison("=", variable))
    branches = tuple(_branch_with_variables(branch, compared) for branch in node.branches)
    return replace(node, comparisons=tuple(comparisons), branches=branches)


def _own_text(node: PatternNode) -> Variable | str | None:
    """The text that the pattern requires below an attribute, which is the attribute's value."""
    for below in node.branches if node.axis is Axis.ATTRIBUTE else ():
        if isinstance(below, PatternNode) and below.axis is Axis.CHILD:
            if isinstance(below.test, Variable):
                return below.test
            if isinstance(below.test, Literal):
                return below.test.text
    return None


def _branch_with_variables(branch: Branch, compared: list[Compared]) -> Branch:
    if isinstance(branch, PatternNode):
        return with_value_variables(branch, compared)
    if isinstance(branch, Or):
        return Or(
            tuple(
                tuple(_branch_with_variables(b, compared) for b in way)
                for way in branch.alternatives
            )
        )
    return branch


class Strings:
    """The candidate strings of unknowns, for one pattern and document."""

    def __init__(self, tree: Tree, pattern: Pattern) -> None:
        self.tree = tree
        self.reason = ""
        compared = [c for node in pattern.nodes() for c in node.comparisons]
        where = [c for c in pattern.where if isinstance(c, ValueConstraint)]
        pairs = [(c.operator, c.operand) for c in compared] + [(c.operator, c.right) for c in where]
        self.constants: list[Constant] = list(
            dict.fromkeys(operand for _, operand in pairs if not isinstance(operand, Variable))
        )
        self.has_orders = any(o != "=" or not isinstance(v, str | Variable) for o, v in pairs)
        self._are_related = any(isinstance(c.right, Variable) for c in where) or any(
            c.operator != "=" and isinstance(c.operand, Variable) for c in compared
        )
        self.has_formulas = any(isinstance(each, Formula) for each in self.constants)
        self._where = {c.left.name for c in where}
        self._where |= {c.right.name for c in where if isinstance(c.right, Variable)}
        self._shared = scope_of(normalise(pattern).branches).surely
        self.prefix = self._prefix(pattern)

    def _prefix(self, pattern: Pattern) -> str:
        known = {str(constant) for constant in self.constants} | set(self._present())
        known |= {str(node.test) for node in pattern.nodes()}
        prefix = "z"
        while any(string.lstrip("$\"'").startswith(prefix) for string in known):
            prefix += "z"
        return prefix

    def _present(self) -> Iterator[str]:
        tree = self.tree
        for node in tree.subtree(DOCUMENT_NODE):
            if tree.kind_column[node] in (ELEMENT, TEXT):
                yield tree.label(node)

    def assignments(
        self,
        trees: list[tuple[PatternNode, ...]],
        known: Mapping[str, str],
        compared: list[Compared],
        need: Need,
    ) -> Iterator[dict[str, str]]:
        """Values for the variables of future trees that satisfy all conditions on them.

        A variable that occurs in one tree and is not compared is left to that tree. So is a
        variable that is local to an alternative of an `or`: it is a different variable in each
        tree.
        """
        used = Counter(name for nodes in trees for name in set(_variables(nodes)))
        asked = {name for name, _ in compared}
        asked |= {c.operand.name for _, c in compared if isinstance(c.operand, Variable)}
        asked |= {column[1:] for column in _columns(need) if column.startswith("$")} | self._where
        unknown = sorted(name for name in {*used, *asked} if name not in known)
        unknown = [
            name for name in unknown if name in asked or (used[name] > 1 and name in self._shared)
        ]
        fixed = {c[1:]: str(v.operand) for c, v in need.values.compared if v.operator == "="}
        labels = sorted(_own_labels(node for nodes in trees for node in nodes))
        choices = [
            [fixed[name]] if name in fixed else [*self._choices(number, len(unknown)), *labels]
            for number, name in enumerate(unknown)
        ]
        for tried, chosen in enumerate(product(*choices)):
            if tried > MOST_TRIED:
                self.reason = f"undecided within {MOST_TRIED:,} choices of values"
                return
            assigned = {**known, **dict(zip(unknown, chosen, strict=True))}
            if _meets(assigned, compared, need):
                yield assigned

    def _choices(self, number: int, count: int) -> list[str]:
        if self.has_formulas:
            self.reason = "values that pass a formula are tried on samples"
        own = f"{self.prefix}-v{number}"
        found = [own]
        if self.has_orders:
            found += _around(self.constants, own, number, count)
        if self._are_related:
            present = list(islice(dict.fromkeys(self._present()), MOST_STRINGS + 1))
            if len(present) > MOST_STRINGS:
                self.reason = "the document has too many strings to try"
            found += [*present, *(f"{self.prefix}-v{other}" for other in range(number))]
        return list(dict.fromkeys(found))


def _variables(nodes: Iterable[PatternNode]) -> Iterator[str]:
    for node in nodes:
        for each in nodes_of(node):
            for operand in (each.test, *(c.operand for c in each.comparisons)):
                if isinstance(operand, Variable):
                    yield operand.name


def _own_labels(nodes: Iterable[PatternNode]) -> set[str]:
    """Labels beside `self` steps and of compared texts, which an unknown may have to equal."""
    inside = [each for node in nodes for each in nodes_of(node)]
    has_self = any(each.axis not in _DOWN for each in inside)
    every = [each for each in inside if has_self or each.comparisons]
    names = {each.test.label for each in every if isinstance(each.test, Name)}
    return names | {each.test.text for each in every if isinstance(each.test, Literal)}


_DOWN = (Axis.CHILD, Axis.DESCENDANT, Axis.ATTRIBUTE)


def _columns(need: Need) -> Iterator[str]:
    values = need.values
    yield from (column for column, _ in values.compared)
    yield from values.names
    for left, right in (*values.different, *values.same):
        yield from (left, right)


def _around(constants: Iterable[Constant], own: str, number: int, count: int) -> list[str]:
    """The constants, and one fresh string in every cell between them."""
    given = list(constants)
    found = [c for c in given if isinstance(c, str) and c]
    found += [value for c in given if isinstance(c, Formula) for value in _passing(c)]
    for string in sorted({c for c in given if isinstance(c, str)}):
        found += [f"{string}\t{own}", f"!{own}"]
        if string:
            found.append(f"{string[:-1]}{chr(max(33, ord(string[-1]) - 1))}{own}")
    share = Fraction((1 << 30) * (number + 1) // (count + 1), 1 << 30)  # a finite decimal
    return [*found, *samples_of(given, share)]


def _passing(formula: Formula) -> list[str]:
    """A few candidates that pass a formula, and a few that do not."""
    holds = comparison(HOLDS, formula)
    every = [value for value in candidates(formula) if value]
    passing = [value for value in every if holds(value)]
    others = [value for value in every if not holds(value)]
    return [*passing[:MOST_FORMULA_VALUES], *others[:2]]


def _meets(assigned: Mapping[str, str], compared: list[Compared], need: Need) -> bool:
    for variable, each in compared:
        value, operand = assigned[variable], each.operand
        if isinstance(operand, Variable):
            if not compare(value, each.operator, assigned[operand.name]):
                return False
        elif not comparison(each.operator, operand)(value):
            return False
    return need.values.is_empty or need.values.is_satisfiable(
        {f"${name}": value for name, value in assigned.items()}
    )
