"""Cases for law 4: a tiny document with open calls, the messages so far, and one pattern.

One case in 25 declares a key, one in 25 a type (`outlook_declared.py`). Of the others, half of the
calls declare a fact, half of the patterns have joins, many of them over attributes, and one in five
has `not`. Failing cases are reduced here too: less of the document, of the messages, or of the
pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from axlog.document.ids import Id
from axlog.document.operations import Delete
from axlog.document.pending import apply
from axlog.document.schema_parser import parse_schema
from axlog.document.serializer import serialise
from axlog.document.tree import NodeKind, Tree
from axlog.errors import AxlogError, QueryError
from axlog.evaluate.definition import every_branch
from axlog.future.keys import parse_fact
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.query.normalize import bound_variables
from axlog.query.normalize import check as check_pattern
from axlog.query.pattern import (
    OPERATORS,
    AnyText,
    Axis,
    Branch,
    Comparison,
    Constraint,
    Kind,
    Literal,
    Name,
    Not,
    Or,
    Output,
    Pattern,
    PatternNode,
    TimeConstraint,
    ValueConstraint,
    Variable,
    Wildcard,
)
from lab.laws import small_cases
from lab.laws.edits import Edit, carry_out
from lab.laws.fuzz_cases import Case, Step
from lab.laws.outlook_declared import make_keyed_case, make_typed_case
from lab.laws.small_cases import Features, fragment, linear_terms

_OUTPUTS = (Kind.VARIABLE, Kind.VARIABLE, Kind.LABEL, Kind.TIME, Kind.ID)
_FEATURES = Features(size=4, collects=False, outputs=_OUTPUTS)
_NEGATED = Features(size=4, collects=False, outputs=_OUTPUTS, times=False, values=False)
_FACTS = (
    "", "", "", ' mode="one-shot"', ' most="1"', ' most="2"', ' deletes="only"', ' deletes="yes"',
    ' deletes="yes"',
)  # fmt: skip


# Cases --------------------------------------------------------------------------------------------


def make_outlook_case(random: Random) -> Case:
    """A tiny document with calls, its messages, and a pattern; with `not` in one case of five."""
    declared = random.random()
    if declared < 0.08:
        return make_keyed_case(random) if declared < 0.04 else make_typed_case(random)
    wants_not = random.random() > 0.8
    streams = 1 if wants_not else random.choice((1, 1, 2, 2, 3))
    text = small_cases.document(random, random.randint(1, 6), streams)
    for number in range(streams):
        fact = random.choice(_FACTS) if random.random() < 0.5 else ""
        text = text.replace(f'stream="s{number}"', f'stream="s{number}"{fact}')
    while True:
        if not wants_not and random.random() < 0.5:
            pattern = _joining(random)
        else:
            pattern = small_cases.pattern(random, _NEGATED if wants_not else _FEATURES)
        has_not = any(isinstance(branch, Not) for branch in every_branch(pattern))
        if len(list(pattern.nodes())) <= 5 and has_not == wants_not and _may_meet(pattern):
            break
    if random.random() < 0.8:
        tree = maintained(Document(text)).tree  # the root element may follow comments
        pattern = _rooted(pattern, tree.label(tree.root))
    return Case(text, (pattern,), _steps(random, text))


def _joining(random: Random) -> Pattern:
    """Two or three short paths below the root, which often end in one variable."""
    branches: list[Branch] = []
    names: list[str] = []
    for number in range(random.choice((1, 2, 2, 3))):
        name = f"t{number}" if random.random() < 0.4 else None
        names += [name] if name else []
        if random.random() < 0.3:
            branch = _attribute(random, name)
        else:
            tests = (Variable("x"), Variable("x"), Variable("y"), Name("a"), Literal("1"))
            axis = random.choice((Axis.CHILD, Axis.CHILD, Axis.DESCENDANT))
            branch = PatternNode(axis, random.choice(tests), name)
        if random.random() < 0.5:
            branch = PatternNode(
                random.choice((Axis.CHILD, Axis.CHILD, Axis.DESCENDANT)),
                random.choice((Name("a"), Name("b"), Wildcard(), Variable("y"))),
                branches=(branch,),
            )
        branches.append(branch)
    root = PatternNode(Axis.CHILD, Wildcard(), branches=tuple(branches))
    bound = sorted(bound_variables((root,)))
    outputs = [Output(Kind.VARIABLE, name) for name in bound if random.random() < 0.5]
    outputs += [Output(Kind.TIME, name) for name in names if random.random() < 0.3]
    where: list[Constraint] = []
    if names and random.random() < 0.6:
        terms = linear_terms(random, names)
        bounds = (0, 1, 2, -1, 4) if len(terms) > 2 else (0, 1, 2, -1)
        where.append(TimeConstraint(terms, random.choice(OPERATORS), random.choice(bounds)))
    if bound and random.random() < 0.3:
        where.append(_pinning(random, bound))
    return Pattern((root,), tuple(where), tuple(outputs))


def _attribute(random: Random, name: str | None) -> PatternNode:
    """An attribute whose value is bound (`@k/$x`), tested or compared."""
    test = Name(random.choice(small_cases.KEYS)) if random.random() < 0.9 else Wildcard()
    pick = random.random()
    if pick < 0.7:
        value = Variable(random.choice("xxy")) if pick < 0.6 else Literal("1")
        return PatternNode(Axis.ATTRIBUTE, test, None, (), (PatternNode(Axis.CHILD, value, name),))
    operand = Variable("x") if pick < 0.85 else "1"
    operator = "=" if pick < 0.95 else "!="
    return PatternNode(Axis.ATTRIBUTE, test, name, (Comparison(operator, operand),))


def _pinning(random: Random, bound: list[str]) -> ValueConstraint:
    """A constraint between a variable and a string, or the other variable."""
    if len(bound) == 2 and random.random() < 0.6:
        return ValueConstraint(Variable("x"), random.choice(("!=", "=")), Variable("y"))
    operator = random.choice(("=", "=", "!="))
    return ValueConstraint(Variable(random.choice(bound)), operator, random.choice(("1", "a")))


def _rooted(pattern: Pattern, label: str) -> Pattern:
    """The pattern with the document's own label where it tests the root element."""
    branches = tuple(
        replace(branch, test=Name(label))
        if isinstance(branch, PatternNode)
        and branch.axis is Axis.CHILD
        and isinstance(branch.test, Name)
        else branch
        for branch in pattern.branches
    )
    return replace(pattern, branches=branches)


def _may_meet(pattern: Pattern) -> bool:
    """Whether the pattern can match: a pattern whose root tests a text never holds."""
    roots = [b for b in pattern.branches if isinstance(b, PatternNode) and b.axis is Axis.CHILD]
    return not any(isinstance(root.test, Literal | AnyText) for root in roots)


def _steps(random: Random, text: str) -> tuple[Step, ...]:
    doc = Document(text)
    steps: list[Step] = []
    for _ in range(random.choice((0, 0, 1, 2))):
        streams = sorted(maintained(doc).nodes().calls())
        if not streams:
            break
        edit: dict[str, Any] = {"stream": random.choice(streams)}
        edit |= {"end": True} if random.random() < 0.1 else {"insert": fragment(random, 2)}
        edit["at"] = (maintained(doc).tree.clock + random.choice((0, 1, 2))) / 1_000_000
        try:
            carry_out(doc, [edit])
        except AxlogError:
            continue
        steps.append((edit,))
    return tuple(steps)


def document_of(case: Case) -> Tree:
    """The document of a case after its messages."""
    doc = Document(case.document)
    for step in case.steps:
        try:
            carry_out(doc, list[Edit](step))
        except AxlogError:  # a reduced case may have lost the stream
            continue
    tree = maintained(doc).nodes()
    tree.facts = tuple(parse_fact(fact) for fact in case.facts)
    tree.types = None if case.types is None else parse_schema(case.types)
    return tree


# Reduction ----------------------------------------------------------------------------------------


def smaller_cases(case: Case) -> Iterator[Case]:
    """Cases with less of the document, the messages or the pattern."""
    for smaller in _cuts(case):
        try:
            check_pattern(smaller.patterns[0])
        except QueryError:
            continue
        yield smaller


def _cuts(case: Case) -> Iterator[Case]:
    for number in range(len(case.steps)):
        yield replace(case, steps=case.steps[:number] + case.steps[number + 1 :])
    (pattern,) = case.patterns
    for fewer in _fewer(pattern.branches):
        yield replace(case, patterns=(replace(pattern, branches=fewer),))
    for number in range(len(pattern.where)):
        where = pattern.where[:number] + pattern.where[number + 1 :]
        yield replace(case, patterns=(replace(pattern, where=where),))
    for number in range(len(pattern.outputs)):
        outputs = pattern.outputs[:number] + pattern.outputs[number + 1 :]
        yield replace(case, patterns=(replace(pattern, outputs=outputs),))
    tree = maintained(Document(case.document)).nodes()
    for node in list(tree.subtree(tree.root))[1:]:
        if tree.kind(node) is not NodeKind.ATTRIBUTE and tree.kind(tree.parent(node)) is not (
            NodeKind.ATTRIBUTE
        ):
            yield replace(case, document=_without(case.document, tree.id(node)))


def _without(text: str, identifier: Id) -> str:
    tree = maintained(Document(text)).nodes()
    apply(tree, [Delete(tree.find(identifier))])
    return serialise(tree)


def _fewer(branches: tuple[Branch, ...]) -> Iterator[tuple[Branch, ...]]:
    for number, branch in enumerate(branches):
        before, after = branches[:number], branches[number + 1 :]
        if before or after:
            yield before + after
        match branch:
            case PatternNode():
                if branch.name is not None:
                    yield (*before, replace(branch, name=None), *after)
                if branch.comparisons:
                    yield (*before, replace(branch, comparisons=()), *after)
                if branch.branches:
                    yield (*before, replace(branch, branches=()), *after)
                for inner in _fewer(branch.branches):
                    yield (*before, replace(branch, branches=inner), *after)
            case Or(alternatives=alternatives):
                for each in alternatives:
                    yield (*before, *each, *after)
            case Not():
                for inner in _fewer(branch.branches):
                    yield (*before, replace(branch, branches=inner), *after)
