"""Small random cases for the laws: documents, patterns and updates that often match.

They use few labels and values, so that joins, nots and deletions have an effect. Everything follows
from one seed; `fuzzing.py` and the tests run the same cases, by thousands or by millions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from random import Random

from axlog.document.loader import read_forest
from axlog.document.operations import (
    Attribute,
    Content,
    Delete,
    Insert,
    Operation,
    Rename,
    ReplaceNode,
    ReplaceValue,
    Where,
)
from axlog.document.tree import (
    ATTRIBUTE,
    CALL,
    COMMENT,
    DOCUMENT_NODE,
    ELEMENT,
    INSTRUCTION,
    TEXT,
    Tree,
)
from axlog.errors import QueryError
from axlog.query.native import parse_pattern
from axlog.query.normalize import check
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Collect,
    Comparison,
    Constant,
    Constraint,
    Kind,
    Literal,
    Moment,
    Name,
    Not,
    Number,
    Or,
    Output,
    PartialName,
    Pattern,
    PatternNode,
    Test,
    TimeConstraint,
    ValueConstraint,
    Variable,
    Wildcard,
    branches_of,
    nodes_of,
)
from axlog.query.values import READ, typed

LABELS = ("a", "b", "c")
VALUES = ("1", "2", "a")
KINDS = ("1.0", "01", "+2", "-1.50", ".5", "10", "9", " 2 ", "1e1", "0.1", "2024-05-01",
         "2024-05-01T02:00:00+02:00", "2024-04-30T23:30:00Z", "2024-05-01T00:00:00.5Z", "09:31:00Z",
         "11:30:00+02:00", "5 kg")  # fmt: skip
"""Values of all kinds, in several ways of writing them."""
KEYS = ("k", "m")
NAMESPACE = "urn:x"
TARGETS = ("p", "q")


@dataclass(frozen=True, slots=True)
class Features:
    """The features that random patterns may use."""

    siblings: bool = False
    reverse: bool = False
    connectives: bool = True
    absolute: bool = True  # `or`, `not` and `collect` at the document node too
    times: bool = True
    values: bool = True
    formulas: bool = True
    partial_names: bool = True
    collects: bool = True
    outputs: tuple[Kind, ...] = field(default=tuple(Kind))
    size: int = 7


DOWNWARD = Features()


# Documents ----------------------------------------------------------------------------------------


def fragment(random: Random, size: int) -> str:
    """One random element with about this many nodes."""
    label = random.choice(LABELS)
    attributes = "".join(f' {key}="{value(random)}"' for key in KEYS if random.random() < 0.15)
    if random.random() < 0.05:
        label = f"x:{label}"
        attributes += f' xmlns:x="{NAMESPACE}"'
        if random.random() < 0.3:
            attributes += f' x:{random.choice(KEYS)}="{value(random)}"'
    inside = []
    left = size - 1
    while left > 0:
        pick = random.random()
        if pick < 0.35:
            inside.append(value(random))
            left -= 1
        elif pick < 0.42:
            inside.append(markup(random))
            left -= 1
        else:
            part = random.randint(1, left)
            inside.append(fragment(random, part))
            left -= part
    return f"<{label}{attributes}>{''.join(inside)}</{label}>"


def markup(random: Random) -> str:
    """A random comment or processing instruction."""
    value = random.choice(VALUES)
    return f"<!--{value}-->" if random.random() < 0.6 else f"<?{random.choice(TARGETS)} {value}?>"


def document(random: Random, size: int = 14, streams: int = 0) -> str:
    """A random document, with open calls at random places if requested."""
    text = fragment(random, size)
    if random.random() < 0.1:
        text = f"{markup(random)}{text}{markup(random)}"
    for number in range(streams):
        ends = [i for i in range(len(text)) if text.startswith("</", i)]
        at = random.choice(ends)
        text = f'{text[:at]}<ax:call xmlns:ax="urn:axlog" stream="s{number}"/>{text[at:]}'
    return calling(text) if len(text) % 3 == 0 else text


def calling(text: str) -> str:
    """The document with streams that may insert calls, more than any case inserts."""
    return re.sub(r'(<ax:call xmlns:ax="urn:axlog" stream="[^"]*")', r'\1 calls="1000000"', text)


def value(random: Random) -> str:
    """A value: mostly one of a few, so that values match; else one of any kind."""
    return random.choice(VALUES if random.random() < 0.7 else KINDS)


FORMULAS = (
    'contains(., "1")', 'starts-with(., "a")', ". * 2 > 3", "string-length(.) < 2", ". + 1 = 2",
    'boolean(number(.) >= 1 or . = "a")', "(1 div (. - 1)) > 0", 'substring(., 1, 1) = "2"',
    '(. + 1d) > date "2024-05-01"', 'matches(., "^[0-9]+$")', 'normalize-space(.) = "2"',
    'if (. = "a") then true() else (. < 2)', "boolean(string-length(.) > 1 and contains(., '0'))",
)  # fmt: skip
"""Conditions on one value, with functions and calculations."""


def formula(random: Random) -> Comparison:
    """A comparison of a value by a formula."""
    return _formula(random.choice(FORMULAS))


@cache
def _formula(text: str) -> Comparison:
    (branch,) = parse_pattern(f"match //a[{text}]").branches
    assert isinstance(branch, PatternNode)
    return branch.comparisons[0]


def partial_name(random: Random, labels: Sequence[str]) -> PartialName:
    """A part of a name: `*:a`, `x:*`, or any name without a namespace."""
    if random.random() < 0.6:
        return PartialName(None, random.choice(labels))
    return PartialName(random.choice((NAMESPACE, "")), None)


def constant(random: Random) -> Constant:
    """The constant of a comparison."""
    pick = random.random()
    if pick < 0.6:
        return value(random)
    if pick < 0.75:
        return random.choice((1.0, 0.1, 2.0))
    if pick < 0.9:
        return Number(Decimal(random.choice(("1", "0.1", "9", "-1.5"))))
    return Moment(1_714_521_600_000_000, "2024-05-01")


def operator_for(random: Random, operand: Constant | Variable) -> str:
    """An operator, sometimes one that casts both sides to a type of XPath."""
    symbol = random.choice(("=", "=", "!=", "<", ">="))
    if isinstance(operand, str | Variable) and random.random() < 0.15:
        return typed(symbol, random.choice(tuple(READ)))
    return symbol


# Patterns -----------------------------------------------------------------------------------------


def pattern(random: Random, features: Features = DOWNWARD) -> Pattern:
    """A random valid pattern."""
    while True:
        made = _Maker(random, features).pattern()
        try:
            check(made)
        except QueryError:
            continue
        return made


class _Maker:
    def __init__(self, random: Random, features: Features) -> None:
        self.random = random
        self.features = features
        self.left = random.randint(1, features.size + 1)
        self.names = 0

    def pattern(self) -> Pattern:
        random = self.random
        branches = self.branches()
        nodes = [node for branch in branches for node in nodes_of(branch)]
        variables = sorted({n.test.name for n in nodes if isinstance(n.test, Variable)})
        named = [node.name for node in nodes if node.name is not None]
        outputs: list[Output] = []
        for name in _outputs(branches):
            kinds = [kind for kind in self.features.outputs if kind is not Kind.VARIABLE]
            if kinds and random.random() < 0.6:
                outputs.append(Output(random.choice(kinds), name))
        if Kind.VARIABLE in self.features.outputs:
            outputs += [Output(Kind.VARIABLE, v) for v in variables if random.random() < 0.5]
        return Pattern(branches, self.constraints(named, variables), tuple(outputs))

    def branches(self) -> tuple[Branch, ...]:
        """The branches of the document node; an absolute path in a predicate is one, as in XPath.

        One case in four has a connective there, beside a path or alone.
        """
        random, features = self.random, self.features
        made: list[Branch] = [self.node(top=True)]
        if random.random() < 0.1:
            made.append(self.node(top=True))
        if features.connectives and features.absolute and random.random() < 0.25:
            self.left = max(self.left, 3)
            made.insert(random.randrange(2), self.connective(random.random(), top=True))
            if random.random() < 0.1:
                made = [branch for branch in made if not isinstance(branch, PatternNode)]
        return tuple(made)

    def constraints(self, named: list[str], variables: list[str]) -> tuple[Constraint, ...]:
        random = self.random
        found: list[Constraint] = []
        if self.features.times and named and random.random() < 0.3:
            operator = random.choice(("<=", ">=", "<", ">", "=", "!="))
            terms = linear_terms(random, named)
            found.append(TimeConstraint(terms, operator, random.choice((0, 1, 2, -1))))
        if self.features.values and variables and random.random() < 0.2:
            left = Variable(random.choice(variables))
            right = random.choice((Variable(random.choice(variables)), constant(random)))
            found.append(ValueConstraint(left, operator_for(random, right), right))
        return tuple(found)

    def branch(self, top: bool = False) -> Branch:
        if self.features.connectives and self.left > 1 and (pick := self.random.random()) < 0.27:
            return self.connective(pick / 0.27, top)
        return self.node(top)

    def connective(self, pick: float, top: bool) -> Branch:
        """A `not`, an `or`, or rarely a `collect`."""
        self.left -= 1
        if pick < 0.45:
            return Not(self.conjunction(top))
        if pick < 0.9 or not self.features.collects:
            return Or((self.conjunction(top), self.conjunction(top)))
        return Collect(replace(self.node(top), name=self.name(), branches=()))

    def conjunction(self, top: bool) -> tuple[Branch, ...]:
        return tuple(self.branch(top) for _ in range(1 if self.random.random() < 0.8 else 2))

    def node(self, top: bool = False) -> PatternNode:
        random = self.random
        self.left -= 1
        axis = self.axis(top)
        test = self.test(axis)
        comparisons: tuple[Comparison, ...] = ()
        if self.features.values and random.random() < 0.15:
            operand = constant(random) if random.random() < 0.7 else Variable(random.choice("xy"))
            comparisons = (Comparison(operator_for(random, operand), operand),)
        if self.features.formulas and random.random() < 0.06:
            comparisons += (formula(random),)
        branches: list[Branch] = []
        below = not isinstance(test, Literal | AnyText | AnyComment | AnyInstruction)
        while below and self.left > 0 and random.random() < 0.6:
            branches.append(self.branch())
        name = self.name() if random.random() < 0.3 else None
        return PatternNode(axis, test, name, comparisons, tuple(branches))

    def axis(self, top: bool) -> Axis:
        random, features = self.random, self.features
        choices = [Axis.CHILD] * 5 + [Axis.DESCENDANT] * 3
        if not top:
            choices += [Axis.ATTRIBUTE, Axis.SELF, Axis.DESCENDANT_OR_SELF]
            if features.siblings:
                choices += [Axis.NEXT_SIBLING, Axis.FOLLOWING_SIBLING] * 2
            if features.reverse:
                choices += [
                    Axis.PARENT, Axis.ANCESTOR, Axis.ANCESTOR_OR_SELF,
                    Axis.PREVIOUS_SIBLING, Axis.PRECEDING_SIBLING,
                ]  # fmt: skip
        return random.choice(choices)

    def test(self, axis: Axis) -> Test:
        random = self.random
        if self.features.partial_names and random.random() < 0.04:
            return partial_name(random, KEYS if axis is Axis.ATTRIBUTE else LABELS)
        if axis is Axis.ATTRIBUTE:
            return Name(random.choice(KEYS)) if random.random() < 0.8 else Wildcard()
        pick = random.random()
        if pick < 0.6:
            return Name(random.choice(LABELS))
        if pick < 0.7:
            return Wildcard()
        if pick < 0.85:
            return Variable(random.choice("xy"))
        if pick < 0.95:
            return random.choice((Literal(random.choice(VALUES)), AnyText(), AnyNode()))
        target = random.choice((None, *TARGETS))
        return random.choice((AnyComment(), AnyInstruction(target), AnyNode()))

    def name(self) -> str:
        self.names += 1
        return f"t{self.names}"


def _outputs(branches: Iterable[Branch]) -> Iterator[str]:
    """The names that a row may show: those outside `or` and `not`."""
    for branch in branches:
        if isinstance(branch, PatternNode) and branch.name is not None:
            yield branch.name
        if isinstance(branch, PatternNode | Collect):
            yield from _outputs(branches_of(branch))


def linear_terms(random: Random, named: list[str]) -> tuple[tuple[int, str], ...]:
    """A time, the difference of two, or up to three times with other coefficients."""
    if random.random() < 0.3:
        chosen = random.sample(named, min(len(named), random.choice((1, 2, 3, 3))))
        return tuple((random.choice((-3, -2, -1, 1, 1, 2, 3)), name) for name in chosen)
    first, second = random.choice(named), random.choice(named)
    return ((1, first),) if first == second else ((1, first), (-1, second))


# Updates ------------------------------------------------------------------------------------------


def operations(random: Random, tree: Tree, most: int = 3) -> list[Operation]:
    """A random pending update list on a tree; it may be refused."""
    nodes = [n for n in tree.subtree(DOCUMENT_NODE) if n != DOCUMENT_NODE]
    return [
        operation
        for _ in range(random.randint(1, most))
        if (operation := _operation(random, tree, random.choice(nodes))) is not None
    ]


def _operation(random: Random, tree: Tree, node: int) -> Operation | None:
    kind = tree.kind_column[node]
    pick = random.random()
    if kind == ELEMENT and pick < 0.5:
        where = random.choice(list(Where)) if node != tree.root else Where.LAST
        return Insert(where, node, content(random))
    if kind in _NAMES and pick < 0.6:
        return Rename(node, random.choice(_NAMES[kind]))
    if kind != CALL and pick < 0.75 and not _holds_value(tree, node):
        return ReplaceValue(node, random.choice((*VALUES, "")))
    if node == tree.root or _holds_value(tree, node):
        return None
    if pick < 0.85 and kind in (ELEMENT, COMMENT, INSTRUCTION):
        return ReplaceNode(node, content(random, attributes=False))
    return Delete(node)


_NAMES = {ELEMENT: LABELS, ATTRIBUTE: KEYS, INSTRUCTION: TARGETS}


def _holds_value(tree: Tree, node: int) -> bool:
    """Whether the node is the text of an attribute, which is deleted only with the attribute."""
    return tree.kind_column[node] == TEXT and tree.kind_column[tree.parent(node)] == ATTRIBUTE


def content(random: Random, attributes: bool = True) -> Content:
    """Random content for an insertion."""
    pick = random.random()
    if pick < 0.15:
        return (random.choice(VALUES),)
    if attributes and pick < 0.25:
        return (Attribute(random.choice(KEYS), random.choice(VALUES)),)
    if pick < 0.35:
        return tuple(read_forest(markup(random)))
    forest = [fragment(random, random.randint(1, 5)) for _ in range(random.choice((1, 1, 2)))]
    return tuple(tree for text in forest for tree in read_forest(text))
