"""The reference against two others: libxml2's XPath, and guessing every answer and checking it.

`differential_` tests: the nodes that a pattern selects are those that lxml selects for the same
path written in XPath; the counts are the numbers of guesses (nodes for all pattern nodes, values
for all variables) that a checker accepts. The checker knows the tree by its ids only, and finds
nothing itself: inside `or` and `not` it guesses again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lxml import etree

from axlog.document.ids import Id
from axlog.document.loader import load, read_forest
from axlog.document.operations import insert_at_call
from axlog.document.pending import apply
from axlog.document.tree import DOCUMENT_NODE, NodeKind, Tree
from axlog.evaluate.definition import constraints_of
from axlog.evaluate.value_tests import comparison
from axlog.query.native import parse_pattern
from axlog.query.normalize import bound_names, bound_variables, normalise, variables_of
from axlog.query.pattern import (
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Comparison,
    Constraint,
    Kind,
    Literal,
    Moment,
    Name,
    Not,
    Or,
    Output,
    Pattern,
    PatternNode,
    TimeConstraint,
    Variable,
    Wildcard,
    nodes_of,
)
from axlog.query.values import compare_numbers
from lab.reference import rows, valuations
from tests.amounts import cases
from tests.papers import SECOND
from tests.strategies.patterns import patterns

# Documents ----------------------------------------------------------------------------------------

ATTRIBUTES = st.sampled_from(("", "", ' a="1"', ' a="2" b="1"'))
TEXTS = st.sampled_from(("", "", "1", "2"))


@st.composite
def contents(draw: st.DrawFn, depth: int, width: int) -> str:
    """Texts and elements (and comments) side by side, no two texts adjacent."""
    parts = [draw(TEXTS)]
    for _ in range(draw(st.integers(0, width if depth else 0))):
        if draw(st.integers(0, 9)) == 9:
            parts.append("<!--1-->")
            continue
        label = draw(st.sampled_from("abc"))
        inside = draw(contents(depth - 1, width))
        parts += [f"<{label}{draw(ATTRIBUTES)}>{inside}</{label}>", draw(TEXTS)]
    return "".join(parts)


def documents(depth: int, width: int) -> st.SearchStrategy[str]:
    return contents(depth, width).map(lambda inside: f"<a>{inside}</a>")


# libxml2 ------------------------------------------------------------------------------------------


class NoXPath(Exception):
    """What XPath 1.0 does not say as we do."""


_AXES = {
    Axis.NEXT_SIBLING: "following-sibling::*[1]/self",
    Axis.PREVIOUS_SIBLING: "preceding-sibling::*[1]/self",
}


def path_to(branch: Branch, name: str) -> str | None:
    """The XPath of the node with this name, relative; None if it is not on a path here."""
    if not isinstance(branch, PatternNode):
        return None
    if branch.name == name:
        return step(branch, branch.branches)
    for below in branch.branches:
        rest = path_to(below, name)
        if rest is not None:
            others = tuple(each for each in branch.branches if each is not below)
            return f"{step(branch, others)}/{rest}"
    return None


def step(node: PatternNode, branches: tuple[Branch, ...]) -> str:
    """One step with its predicates."""
    axis = _AXES.get(node.axis, node.axis.value)
    conditions = [compared(each) for each in node.comparisons]
    conditions += [condition(branch, node.axis is Axis.ATTRIBUTE) for branch in branches]
    return f"{axis}::{node_test(node)}" + "".join(f"[{each}]" for each in conditions)


def node_test(node: PatternNode) -> str:
    match node.test:
        case Name(label=label):
            return label
        case Wildcard():
            return "*"
        case Literal(text=text):
            return f"text()[. = '{text}']"
        case AnyText():
            return "text()"
        case AnyNode():
            return "node()" if node.axis is Axis.SELF else "node()[self::* or self::text()]"
    raise NoXPath


def compared(comparison: Comparison) -> str:
    if isinstance(comparison.operand, str):
        if comparison.operator not in ("=", "!="):
            raise NoXPath  # XPath 1.0 compares by < as numbers
        return f"string() {comparison.operator} '{comparison.operand}'"
    if isinstance(comparison.operand, Moment | Variable):
        raise NoXPath
    return f"number() {comparison.operator} {comparison.operand}"


def condition(branch: Branch, on_attribute: bool) -> str:
    match branch:
        case PatternNode():
            if on_attribute and branch.axis.is_downward and branch.axis is not Axis.SELF:
                raise NoXPath  # XPath's attributes have no text below
            return step(branch, branch.branches)
        case Not(branches=branches):
            return f"not({conjunction(branches, on_attribute)})"
        case Or(alternatives=alternatives):
            return " or ".join(f"({conjunction(each, on_attribute)})" for each in alternatives)
    raise NoXPath


def conjunction(branches: tuple[Branch, ...], on_attribute: bool) -> str:
    return " and ".join(f"({condition(branch, on_attribute)})" for branch in branches)


def selected_by_lxml(xml: str, xpath: str) -> set[int]:
    """The ordinals of the selected elements."""
    root = etree.fromstring(xml)
    ordinals = {each: at for at, each in enumerate(root.iter("*"))}
    found = root.getroottree().xpath(xpath)
    assert isinstance(found, list)
    return {ordinals[each] for each in found if isinstance(each, etree._Element)}


def selected_by_reference(xml: str, pattern: Pattern) -> set[int]:
    tree = load(xml)
    elements = (n for n in tree.subtree(DOCUMENT_NODE) if tree.kind(n) is NodeKind.ELEMENT)
    ordinals = {tree.id(each): at for at, each in enumerate(elements)}
    return {ordinals[key[0]] for key in rows(tree, pattern) if isinstance(key[0], Id)}


XPATHS = patterns(
    variables=(),
    constants=st.sampled_from((0.0, 1.0, 2.0)),
    time=False,
    outputs=(Kind.ID,),
    selves=True,
    siblings=True,
    reverse=True,
)


@settings(max_examples=cases(60))
@given(documents(3, 3), XPATHS, st.data())
def test_differential_rows_equal_libxml2(xml: str, pattern: Pattern, data: st.DataObject) -> None:
    named = [node.name for node in pattern.nodes() if isinstance(node.test, Name | Wildcard)]
    names = sorted(name for name in named if name is not None)
    assume(names)
    name = data.draw(st.sampled_from(names))
    first, *others = pattern.branches
    try:
        path = path_to(first, name)
        assume(path is not None)
        around = "".join(f"[{condition(branch, False)}]" for branch in others)
    except NoXPath:
        assume(False)
    assume(all(n.axis is not Axis.ATTRIBUTE for n in pattern.nodes() if n.name == name))
    selecting = Pattern(pattern.branches, (), (Output(Kind.ID, name),))
    xpath = f"/self::node(){around}/{path}"
    assert selected_by_reference(xml, selecting) == selected_by_lxml(xml, xpath), xpath


@pytest.mark.parametrize(
    ("query", "xpath"),
    [
        ("match //a#t[b][//c] return t.id", "//a[b][.//c]"),
        ('match //a#t[not(b) or c = "1"] return t.id', "//a[not(b) or c = '1']"),
        ("match //b#t[@a != 1] return t.id", "//b[@a != 1]"),
        ("match //c#t[following-sibling::b] return t.id", "//c[following-sibling::b]"),
        ("match //c#t[next-sibling::b] return t.id", "//c[following-sibling::*[1][self::b]]"),
        ("match //a//@b/parent::*#t return t.id", "//a//@b/parent::*"),
    ],
)
def test_differential_fixed_paths_equal_libxml2(query: str, xpath: str) -> None:
    xml = (
        '<a><b a="1"/><c>1<b a="2" b="1"><a><c/></a></b><!--1--></c>2<b>2</b>'
        '<a b="1"><c>1</c><b a="x"/><d><c/></d></a><c/><b/></a>'
    )
    found = selected_by_reference(xml, parse_pattern(query))
    assert found
    assert found == selected_by_lxml(xml, xpath)


# Guess and check ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Guess:
    """Nodes for pattern nodes by number, values for variables, nodes for names."""

    nodes: Mapping[int, int] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, int] = field(default_factory=dict)


class Checker:
    """Accepts or refuses a guess. Nodes are told apart and related by their ids."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.all = [*tree.subtree(DOCUMENT_NODE)]
        self.id = {node: tree.id(node) for node in self.all}
        self.strings = sorted(
            {tree.label(n) for n in self.all if tree.kind(n) in (NodeKind.ELEMENT, NodeKind.TEXT)}
            | {tree.string_value(n) for n in self.all}
        )

    # one scope

    def guesses(self, branches: tuple[Branch, ...], number: int, around: Guess) -> Iterator[Guess]:
        """Every guess for the plain nodes and the variables of a scope."""
        plain = list(plain_nodes(branches, number))
        variables = sorted(
            {x for branch in branches for x in bound_variables((branch,))} - around.values.keys()
        )
        choices = [[n for n in self.all if self.passes(p, n)] for _, p in plain]
        for chosen in product(*choices):
            nodes = {at: node for (at, _), node in zip(plain, chosen, strict=True)}
            names = {p.name: node for (_, p), node in zip(plain, chosen, strict=True) if p.name}
            if any(around.names.get(name, node) != node for name, node in names.items()):
                continue
            for strings in product(self.strings, repeat=len(variables)):
                values = {**around.values, **dict(zip(variables, strings, strict=True))}
                yield Guess({**around.nodes, **nodes}, values, {**around.names, **names})

    def accepts_some(
        self,
        branches: tuple[Branch, ...],
        where: tuple[Constraint, ...],
        number: int,
        at: int,
        around: Guess,
    ) -> bool:
        return any(
            self.accepts(branches, number, at, guess) and self.fits(where, guess)
            for guess in self.guesses(branches, number, around)
        )

    def accepts(self, branches: tuple[Branch, ...], number: int, at: int, guess: Guess) -> bool:
        for branch in branches:
            if not self.accepts_branch(branch, number, at, guess):
                return False
            number += len(list(nodes_of(branch)))
        return True

    def accepts_branch(self, branch: Branch, number: int, at: int, guess: Guess) -> bool:
        match branch:
            case PatternNode():
                node = guess.nodes[number]
                return (
                    self.related(branch.axis, at, node)
                    and self.valued(branch, node, guess)
                    and self.accepts(branch.branches, number + 1, node, guess)
                )
            case Or(alternatives=alternatives):
                for alternative in alternatives:
                    if self.accepts_some(alternative, (), number, at, guess):
                        return True
                    number += sum(len(list(nodes_of(each))) for each in alternative)
                return False
            case Not(branches=branches, where=where):
                return not self.accepts_some(branches, where, number, at, guess)
        raise AssertionError(branch)

    # one node

    def passes(self, pattern_node: PatternNode, node: int) -> bool:
        kind, label = self.tree.kind(node), self.tree.label(node)
        if pattern_node.axis is Axis.ATTRIBUTE:
            wanted = pattern_node.test
            return kind is NodeKind.ATTRIBUTE and (
                not isinstance(wanted, Name) or label == "@" + wanted.label
            )
        match pattern_node.test:
            case AnyNode() if pattern_node.axis is Axis.SELF:
                return True
            case AnyNode():
                return kind in (
                    NodeKind.ELEMENT, NodeKind.TEXT, NodeKind.COMMENT, NodeKind.INSTRUCTION
                )  # fmt: skip
            case Variable():
                return kind in (NodeKind.ELEMENT, NodeKind.TEXT)
            case AnyText():
                return kind is NodeKind.TEXT
            case Literal(text=text):
                return kind is NodeKind.TEXT and label == text
            case Name(label=wanted_label):
                return kind is NodeKind.ELEMENT and label == wanted_label
        return kind is NodeKind.ELEMENT

    def valued(self, pattern_node: PatternNode, node: int, guess: Guess) -> bool:
        test = pattern_node.test
        if isinstance(test, Variable) and guess.values[test.name] != self.tree.label(node):
            return False
        value = self.tree.string_value(node)
        for asked in pattern_node.comparisons:
            operand = asked.operand
            against = guess.values[operand.name] if isinstance(operand, Variable) else operand
            if not comparison(asked.operator, against)(value):
                return False
        return True

    def fits(self, where: tuple[Constraint, ...], guess: Guess) -> bool:
        return all(self.fits_one(constraint, guess) for constraint in where)

    def fits_one(self, constraint: Constraint, guess: Guess) -> bool:
        if isinstance(constraint, TimeConstraint):
            total = sum(n * self.tree.time(guess.names[name]) for n, name in constraint.terms)
            return compare_numbers(total, constraint.operator, constraint.bound)
        right = constraint.right
        against = guess.values[right.name] if isinstance(right, Variable) else right
        return comparison(constraint.operator, against)(guess.values[constraint.left.name])

    # two nodes

    def related(self, axis: Axis, upper: int, lower: int) -> bool:
        here, there = self.id[upper], self.id[lower]
        match axis:
            case Axis.SELF:
                return here == there
            case Axis.ATTRIBUTE:
                return here.is_parent_of(there)
            case Axis.CHILD:
                return here.is_parent_of(there) and not self.is_attribute(lower)
            case Axis.DESCENDANT:
                return here.is_ancestor_of(there) and not self.enters_attribute(here, there)
            case Axis.DESCENDANT_OR_SELF:
                return here == there or self.related(Axis.DESCENDANT, upper, lower)
            case Axis.PARENT:
                return there.is_parent_of(here)
            case Axis.ANCESTOR:
                return there.is_ancestor_of(here)
            case Axis.ANCESTOR_OR_SELF:
                return here == there or there.is_ancestor_of(here)
        return self.beside(axis, upper, lower)

    def beside(self, axis: Axis, node: int, other: int) -> bool:
        here, there = self.id[node], self.id[other]
        if DOCUMENT_NODE in (node, other) or self.is_attribute(node) or self.is_attribute(other):
            return False
        is_before = axis in (Axis.PREVIOUS_SIBLING, Axis.PRECEDING_SIBLING)
        low, high = (there, here) if is_before else (here, there)
        if not (here.is_sibling_of(there) and low < high):
            return False
        if axis in (Axis.FOLLOWING_SIBLING, Axis.PRECEDING_SIBLING):
            return True
        return self.tree.kind(other) is NodeKind.ELEMENT and not any(
            self.tree.kind(each) is NodeKind.ELEMENT
            for each in self.all
            if self.id[each].parent == here.parent and low < self.id[each] < high
        )

    def is_attribute(self, node: int) -> bool:
        return self.tree.kind(node) is NodeKind.ATTRIBUTE

    def enters_attribute(self, upper: Id, lower: Id) -> bool:
        return any(
            self.is_attribute(node)
            for node in self.all
            if upper.is_ancestor_of(self.id[node])
            and (self.id[node] == lower or self.id[node].is_ancestor_of(lower))
        )


def plain_nodes(branches: tuple[Branch, ...], number: int) -> Iterator[tuple[int, PatternNode]]:
    for branch in branches:
        if isinstance(branch, PatternNode):
            yield number, branch
            yield from plain_nodes(branch.branches, number + 1)
        number += len(list(nodes_of(branch)))


def count_by_guessing(tree: Tree, pattern: Pattern) -> int:
    """How many guesses are right: nodes outside ors, values, nodes for names that ors export."""
    normal = normalise(pattern)
    checker = Checker(tree)
    used = {
        name for c in constraints_of(normal) if isinstance(c, TimeConstraint) for _, name in c.terms
    }
    used |= {output.of for output in normal.outputs if output.kind is not Kind.VARIABLE}
    plain = {node.name for _, node in plain_nodes(normal.branches, 0)}
    exported = sorted((bound_names(normal.branches) & used) - plain)
    return sum(
        checker.accepts(normal.branches, 0, DOCUMENT_NODE, guess)
        and checker.fits(normal.where, guess)
        for chosen in product(checker.all, repeat=len(exported))
        for guess in checker.guesses(
            normal.branches, 0, Guess(names=dict(zip(exported, chosen, strict=True)))
        )
    )


TINY = patterns(
    labels=("a", "b"),
    variables=("x",),
    max_nodes=4,
    selves=True,
    siblings=True,
    reverse=True,
    outputs=(Kind.ID, Kind.VARIABLE),
)


@st.composite
def timed_trees(draw: st.DrawFn) -> Tree:
    """A tiny document of which a stream has brought a part later."""
    brought = '<ax:call xmlns:ax="urn:axlog" stream="f"/>'
    tree = load(f"<a>{draw(contents(1, 1))}<b>{brought}</b></a>")
    seconds = draw(st.integers(0, 3))
    forest = draw(st.sampled_from(("", "<a/>", '<a a="1">1</a>', "<b>2</b><a/>")))
    if forest:
        apply(tree, insert_at_call(tree, "f", read_forest(forest)), seconds * SECOND)
    return tree


@settings(max_examples=cases(120))
@given(timed_trees(), TINY)
def test_differential_counts_equal_right_guesses(tree: Tree, pattern: Pattern) -> None:
    variables = {x for branch in normalise(pattern).branches for x in variables_of(branch)}
    assume(len(variables) < 3)
    assert sum(1 for _ in valuations(tree, pattern)) == count_by_guessing(tree, pattern)


@settings(max_examples=cases(50))
@given(timed_trees(), TINY)
def test_the_counts_of_the_rows_are_all_valuations(tree: Tree, pattern: Pattern) -> None:
    counts = [answer.count for answer in rows(tree, pattern).values()]
    assert sum(counts) == sum(1 for _ in valuations(tree, pattern))
    assert all(counts)
