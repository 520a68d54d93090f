"""Containment is correct: `contains` against all small documents, and on its witnesses.

    contained       no small document has a row of the first pattern that the second lacks
    not contained   the reference finds such a row on the witness

Patterns are positive; undecided pairs are skipped (values of elements, docs/meaning.md).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, partial
from random import Random

from axlog.document.loader import load
from axlog.document.tree import Tree
from axlog.errors import QueryError, UnsupportedError
from axlog.future.containment import Verdict, contains
from axlog.query.normalize import check
from axlog.query.pattern import (
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Comparison,
    Kind,
    Literal,
    Name,
    Or,
    Output,
    PartialName,
    Pattern,
    PatternNode,
    Test,
    Variable,
    Wildcard,
)
from lab.reference import Alphabet, fragments, rows
from lab.reference.fragments import as_element


@dataclass(frozen=True)
class Features:
    """The parts of random patterns, and the documents to try them on."""

    labels: tuple[str, ...] = ("a", "b")
    texts: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    selves: bool = False
    ors: bool = False
    values: bool = False
    outputs: bool = False
    parts: bool = False  # of names
    nodes: int = 4
    document: int = 4
    fresh: str = "c"

    def alphabet(self) -> Alphabet:
        texts = (*self.texts, self.fresh) if self.texts or self.variables or self.keys else ()
        return Alphabet((*self.labels, self.fresh), texts, self.keys)


class Maker:
    """Random patterns of a few nodes."""

    def __init__(self, random: Random, features: Features) -> None:
        self.random = random
        self.features = features
        self.left = 0

    def patterns(self, count: int) -> list[Pattern]:
        found: list[Pattern] = []
        while len(found) < count:
            self.left = self.random.randint(1, self.features.nodes)
            branches = tuple(self.branch(True) for _ in range(self.random.choice((1, 1, 1, 2))))
            made = self.with_output(Pattern(branches)) if self.features.outputs else None
            try:
                check(made or Pattern(branches))
            except QueryError:
                continue
            found.append(made or Pattern(branches))
        return found

    def branch(self, at_top: bool = False) -> Branch:
        if self.features.ors and self.left > 1 and self.random.random() < 0.15:
            return Or(((self.branch(at_top),), (self.branch(at_top),)))
        return self.node(at_top)

    def node(self, at_top: bool) -> PatternNode:
        self.left -= 1
        axis = self.axis(at_top)
        test = self.test(axis)
        comparisons = self.comparisons(axis)
        branches: list[Branch] = []
        while self.left > 0 and self.random.random() < 0.65:
            branches.append(self.branch())
        return PatternNode(axis, test, None, comparisons, tuple(branches))

    def axis(self, at_top: bool) -> Axis:
        axes = [Axis.CHILD] * 3 + [Axis.DESCENDANT] * 3
        axes += [Axis.ATTRIBUTE] if self.features.keys and not at_top else []
        axes += [Axis.SELF, Axis.DESCENDANT_OR_SELF] if self.features.selves else []
        return self.random.choice(axes)

    def test(self, axis: Axis) -> Test:
        features = self.features
        if axis is Axis.ATTRIBUTE:
            names: list[Test] = [*map(Name, features.keys), Wildcard()]
            names += map(partial(PartialName, None), features.keys if features.parts else ())
            return self.random.choice(names)
        tests: list[Test] = [*map(Name, features.labels), Wildcard()]
        tests += map(partial(PartialName, None), features.labels if features.parts else ())
        tests += map(Variable, features.variables)
        tests += [*map(Literal, features.texts), AnyText(), AnyNode()] if features.texts else []
        return self.random.choice(tests)

    def comparisons(self, axis: Axis) -> tuple[Comparison, ...]:
        chance = 0.6 if axis is Axis.ATTRIBUTE else 0.2 if self.features.values else 0
        operands: list[str | Variable] = [*self.features.texts]
        operands += map(Variable, self.features.variables)
        if not operands or self.random.random() > chance:
            return ()
        return (Comparison("=", self.random.choice(operands)),)

    def with_output(self, pattern: Pattern) -> Pattern | None:
        kind = self.random.choice((Kind.VARIABLE, Kind.ID, None))
        if kind is Kind.VARIABLE and self.features.variables:
            shown = Output(kind, self.random.choice(self.features.variables))
            return replace(pattern, outputs=(shown,))
        top = pattern.branches[0]
        if kind is not Kind.ID or not isinstance(top, PatternNode):
            return None
        branches = (self.named(top), *pattern.branches[1:])
        return Pattern(branches, (), (Output(kind, "t"),))

    def named(self, node: PatternNode) -> PatternNode:
        below = [i for i, b in enumerate(node.branches) if isinstance(b, PatternNode)]
        if not below or self.random.random() < 0.4:
            return replace(node, name="t")
        chosen = self.random.choice(below)
        inner = node.branches[chosen]
        assert isinstance(inner, PatternNode)
        changed = [*node.branches]
        changed[chosen] = self.named(inner)
        return replace(node, branches=tuple(changed))


@cache
def documents(alphabet: Alphabet, nodes: int) -> list[Tree]:
    return [load(as_element(fragment)) for fragment in fragments(alphabet, nodes)]


KINDS = {
    "paths": Features(),
    "deep": Features(labels=("a",), nodes=5, document=5),
    "or": Features(ors=True),
    "texts": Features(texts=("a",), document=3),
    "joins": Features(labels=("a",), variables=("x", "y"), nodes=5, document=4),
    "attributes": Features(texts=("a",), variables=("x",), keys=("k",), outputs=True, document=3),
    "everything": Features(
        texts=("a",), variables=("x", "y"), keys=("k",), selves=True, ors=True, outputs=True,
        document=3,
    ),
    "values": Features(texts=("a",), variables=("x",), values=True, outputs=True, document=3),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PairCase:
    """Two patterns, and the kind of documents to try them on."""

    first: Pattern
    second: Pattern
    kind: str


def make_pair(random: Random) -> PairCase:
    """Two random patterns with the same outputs; often one is a reduced form of the other."""
    kind = random.choice(tuple(KINDS))
    maker = Maker(random, KINDS[kind])
    (first,) = maker.patterns(1)
    maker.features = replace(KINDS[kind], parts=random.random() < 0.3)
    while True:
        (second,) = maker.patterns(1)
        if [o.kind for o in first.outputs] == [o.kind for o in second.outputs]:
            return PairCase(first, second, kind)


def check_pair(case: PairCase) -> Counter[Verdict]:
    """Check the verdict and return it."""
    try:
        found = contains(case.first, case.second)
    except UnsupportedError:  # the value of the document node is not supported
        return Counter()
    features = KINDS[case.kind]
    if found.verdict is Verdict.CONTAINED:
        for tree in documents(features.alphabet(), features.document):
            if not rows(tree, case.first).keys() <= rows(tree, case.second).keys():
                raise AssertionError(f"{case.first} is not in {case.second}")
    elif found.witness is not None:
        tree = load(found.witness.document, keep_whitespace=True)
        if rows(tree, case.first).keys() <= rows(tree, case.second).keys():
            raise AssertionError(f"{case.first} is in {case.second} on {found.witness.document}")
    return Counter([found.verdict])
