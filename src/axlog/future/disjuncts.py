"""A positive pattern as a union of twigs: trees of conditions without `or`.

Conditions on one document node are merged here, so that each twig has a canonical document. A
`self` step is one node with its context. Branches at the document node share the root. Steps to one
attribute of one element share it, and steps below an attribute share its text. Labels and values
that must be equal form one class of terms. A contradiction (a label that is two strings, content in
a text, an invalid name) leaves no twig.

`or` and `descendant-or-self` are distributed. The number of twigs is exponential in them, so
`disjuncts` generates them lazily, and the caller stops at its limit.

Supported: child, descendant, attribute, self, descendant-or-self, equality with strings and
variables. `check_positive` rejects everything else (AX211).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from axlog.document.content_checks import check_name, check_text
from axlog.document.parser import DEFAULT_LIMITS
from axlog.document.tree import CALL_LABEL, NodeKind
from axlog.errors import AxlogError, UnsupportedError
from axlog.query.normalize import normalise
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Collect,
    Comparison,
    Kind,
    Literal,
    Name,
    Not,
    Or,
    PartialName,
    Pattern,
    PatternNode,
    TimeConstraint,
    ValueConstraint,
    Variable,
    Wildcard,
    branches_of,
    sees_markup,
)

ELEMENT, TEXT, ATTRIBUTE = NodeKind.ELEMENT, NodeKind.TEXT, NodeKind.ATTRIBUTE
_LABELLED = frozenset({ELEMENT, TEXT})

_SELF_TEXT = PatternNode(Axis.SELF, AnyText())
_SELF_ELEMENT = PatternNode(Axis.SELF, Wildcard())


# Coverage -----------------------------------------------------------------------------------------


def check_positive(pattern: Pattern, which: str, is_first: bool = False) -> None:
    """Reject features that positive tree patterns do not have.

    In the first query `node()` is rejected too: canonical documents have only elements and texts.
    """
    waiting: list[Branch] = list(pattern.branches)
    while waiting:
        branch = waiting.pop()
        if isinstance(branch, Not | Collect):
            word = "not(...)" if isinstance(branch, Not) else "collect(...)"
            raise _refused(which, f"has {word}")
        if isinstance(branch, PatternNode):
            if sees_markup(branch) and (is_first or not isinstance(branch.test, AnyNode)):
                bare = PatternNode(branch.axis, branch.test)
                raise _refused(which, f"has `{bare}`, which finds comments and instructions")
            test = branch.test
            if isinstance(test, PartialName) and (is_first or not (test.namespace or test.local)):
                # canonical documents have fresh names without a namespace
                raise _refused(which, f"has `{PatternNode(branch.axis, test)}`, a part of a name")
            if not branch.axis.is_downward:
                raise _refused(which, f"uses the axis {branch.axis.value}")
            for comparison in branch.comparisons:
                _check_equality(comparison, which)
        waiting += branches_of(branch)
    for constraint in pattern.where:
        if isinstance(constraint, TimeConstraint):
            raise _refused(which, f"has a constraint on times, {constraint}")
        if constraint.operator != "=" or not isinstance(constraint.right, str | Variable):
            raise _refused(which, f"has the comparison {constraint}")
    if any(output.kind is Kind.TIME for output in pattern.outputs):
        raise _refused(which, "returns a time")


def _check_equality(comparison: Comparison, which: str) -> None:
    if comparison.operator != "=" or not isinstance(comparison.operand, str | Variable):
        raise _refused(which, f"has the comparison {comparison}")


def _refused(which: str, what: str) -> UnsupportedError:
    return UnsupportedError(
        "AX211",
        f"{which} {what}, which containment does not cover",
        expected="downward steps, names, `*`, texts, variables, `or`, equality with strings",
    )


# Terms --------------------------------------------------------------------------------------------


class Unsatisfiable(Exception):
    """No document has a node that satisfies these conditions."""


class Terms:
    """Equality classes of labels and values. A term is `=text`, `$variable` or `?number`.

    `?@number` is the name of an attribute that may have any name.
    """

    def __init__(self) -> None:
        self._above: dict[str, str] = {}
        self._count = 0

    def fresh(self, mark: str = "") -> str:
        self._count += 1
        return f"?{mark}{self._count}"

    def find(self, term: str) -> str:
        """The term that represents a class: its constant if it has one."""
        while (above := self._above.get(term)) is not None:
            term = above
        return term

    def unify(self, one: str, other: str) -> None:
        one, other = self.find(one), self.find(other)
        if one == other:
            return
        if one[0] == "=" and other[0] == "=":
            raise Unsatisfiable
        if one[0] == "=":
            one, other = other, one
        self._above[one] = other


def constant_of(term: str) -> str | None:
    """The string that a class must be; None if any string is possible."""
    return term[1:] if term[0] == "=" else None


# Twigs --------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Twig:
    """A node of the document that the pattern requires."""

    label: str
    kinds: frozenset[NodeKind] = _LABELLED
    value: str | None = None
    children: list[Twig] = field(default_factory=list)
    descendants: list[Twig] = field(default_factory=list)
    attributes: dict[str, Twig] = field(default_factory=dict)
    any_attributes: list[Twig] = field(default_factory=list)

    @property
    def is_inner(self) -> bool:
        return bool(self.children or self.descendants or self.attributes or self.any_attributes)

    def below(self) -> list[Twig]:
        return [
            *self.attributes.values(), *self.any_attributes, *self.children, *self.descendants,
        ]  # fmt: skip


@dataclass(slots=True)
class Disjunct:
    """One twig of a pattern: its root element, its terms, and its outputs."""

    root: Twig
    terms: Terms
    outputs: list[str | Twig]
    """In the order of the pattern's outputs: a term for a string, a twig for a node."""


def disjunct_count(pattern: Pattern) -> int:
    """An upper bound of the number of twigs."""
    return _product_of(_count(branch, True) for branch in normalise(pattern).branches)


def _count(branch: Branch, at_top: bool) -> int:
    if isinstance(branch, Or):
        return sum(_product_of(_count(b, at_top) for b in inside) for inside in branch.alternatives)
    assert isinstance(branch, PatternNode)
    ways = 2 if branch.axis is Axis.DESCENDANT_OR_SELF or at_top else 1
    ways *= 2 if _is_either(branch) else 1
    return ways * _product_of(_count(below, False) for below in branch.branches)


def _product_of(numbers: Iterable[int]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def disjuncts(pattern: Pattern, values: Mapping[str, str] | None = None) -> Iterator[Disjunct]:
    """The twigs whose union is a positive pattern; none if no document has a row.

    `values` are assigned to variables, including those local to one alternative of an `or`, which a
    constraint of the pattern could not name.
    """
    normal = normalise(pattern)
    if values:
        given = (ValueConstraint(Variable(v), "=", s) for v, s in sorted(values.items()))
        normal = Pattern(normal.branches, (*normal.where, *given), normal.outputs)
    for branches in _conjunctions(normal.branches):
        for placed in _placements(branches):
            try:
                yield _TwigBuilder(normal).disjunct(placed)
            except Unsatisfiable:
                continue


# Distributing `or` --------------------------------------------------------------------------------


def _conjunctions(branches: tuple[Branch, ...]) -> Iterator[tuple[PatternNode, ...]]:
    """Every choice of `or` alternatives in a conjunction, with descendant-or-self resolved."""
    for chosen in product(*(list(_ways(branch)) for branch in branches)):
        yield tuple(node for part in chosen for node in part)


def _ways(branch: Branch) -> Iterator[tuple[PatternNode, ...]]:
    if isinstance(branch, Or):
        for alternative in branch.alternatives:
            yield from _conjunctions(alternative)
        return
    assert isinstance(branch, PatternNode)
    is_or_self = branch.axis is Axis.DESCENDANT_OR_SELF
    axes = (Axis.SELF, Axis.DESCENDANT) if is_or_self else (branch.axis,)
    for below in _conjunctions(branch.branches):
        for kinds in (_SELF_TEXT,), (_SELF_ELEMENT,), ():
            if bool(kinds) != _is_either(branch):
                continue
            for axis in axes:
                # `descendant-or-self::node()` passes fewer nodes than `self::node()`
                more = (*kinds, *_labelled(branch)) if is_or_self and axis is Axis.SELF else kinds
                yield (
                    PatternNode(
                        axis, branch.test, branch.name, branch.comparisons, (*more, *below)
                    ),
                )


def _is_either(node: PatternNode) -> bool:
    """Whether a comparison has different meanings for a text and an element."""
    return (
        bool(node.comparisons)
        and isinstance(node.test, Variable | AnyNode)
        and node.axis is not Axis.ATTRIBUTE
    )


def _labelled(node: PatternNode) -> tuple[PatternNode, ...]:
    return (PatternNode(Axis.DESCENDANT_OR_SELF, AnyNode()),) if node.test == AnyNode() else ()


def _placements(
    branches: tuple[PatternNode, ...],
) -> Iterator[tuple[tuple[PatternNode, bool], ...]]:
    """The branches of the document node, each at the root element (True) or below it."""
    at_top: list[PatternNode] = []
    for branch in branches:
        flattened = _document_branches(branch)
        if flattened is None:
            return
        at_top += flattened
    ways = [(True,) if b.axis is Axis.CHILD else (True, False) for b in at_top]
    for placed in product(*ways):
        yield tuple(zip(at_top, placed, strict=True))


def _document_branches(branch: PatternNode) -> list[PatternNode] | None:
    """The conditions of a branch on the document's children; None if the document node fails it."""
    if branch.axis in (Axis.CHILD, Axis.DESCENDANT):
        return [branch]
    if branch.axis is not Axis.SELF or branch.test != AnyNode():
        return None
    if branch.comparisons or branch.name is not None:
        raise UnsupportedError(
            "AX211", "the value of the document node cannot be compared in a containment test"
        )
    found: list[PatternNode] = []
    for below in branch.branches:
        assert isinstance(below, PatternNode)
        inner = _document_branches(below)
        if inner is None:
            return None
        found += inner
    return found


# Building -----------------------------------------------------------------------------------------


class _TwigBuilder:
    """One twig under construction."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.terms = Terms()
        self.names: dict[str, Twig] = {}

    def disjunct(self, placed: tuple[tuple[PatternNode, bool], ...]) -> Disjunct:
        for constraint in self.pattern.where:
            assert isinstance(constraint, ValueConstraint)
            self.terms.unify(f"${constraint.left.name}", _term(constraint.right))
        root = Twig(self.terms.fresh(), frozenset({ELEMENT}))
        for branch, at_root in placed:
            if at_root:
                self.require(root, branch)
            else:
                root.descendants.append(self.node(branch))
        self.settle(root)
        return Disjunct(root, self.terms, [self.output(o.kind, o.of) for o in self.pattern.outputs])

    def output(self, kind: Kind, of: str) -> str | Twig:
        if kind is Kind.VARIABLE:
            return f"${of}"
        return self.names[of].label if kind is Kind.LABEL else self.names[of]

    def node(self, branch: PatternNode) -> Twig:
        twig = Twig(self.terms.fresh())
        self.require(twig, branch)
        return twig

    def require(self, twig: Twig, node: PatternNode) -> None:
        """Add the conditions of a pattern node to a twig."""
        self.test(twig, node)
        if node.name is not None:
            self.names[node.name] = twig
        for comparison in node.comparisons:
            term = _term(comparison.operand)
            if twig.value is None:
                twig.value = term
            else:
                self.terms.unify(twig.value, term)
        for branch in node.branches:
            assert isinstance(branch, PatternNode)
            self.branch(twig, branch)

    def test(self, twig: Twig, node: PatternNode) -> None:
        if node.axis is Axis.ATTRIBUTE:
            return  # `attribute` selected the twig by name
        match node.test:
            case Name(label=label):
                self.restrict(twig, ELEMENT)
                self.terms.unify(twig.label, f"={label}")
            case Wildcard():
                self.restrict(twig, ELEMENT)
            case Literal(text=text):
                self.restrict(twig, TEXT)
                self.terms.unify(twig.label, f"={text}")
            case AnyText():
                self.restrict(twig, TEXT)
            case AnyComment() | AnyInstruction():
                raise Unsatisfiable  # see `check_positive`
            case AnyNode():
                if node.axis is not Axis.SELF:
                    self.restrict(twig, ELEMENT, TEXT)
            case Variable(name=name):
                self.restrict(twig, ELEMENT, TEXT)
                self.terms.unify(twig.label, f"${name}")

    def restrict(self, twig: Twig, *kinds: NodeKind) -> None:
        twig.kinds &= frozenset(kinds)
        if not twig.kinds:
            raise Unsatisfiable

    def branch(self, twig: Twig, branch: PatternNode) -> None:
        is_attribute = ATTRIBUTE in twig.kinds
        if branch.axis is Axis.SELF or branch.axis is Axis.DESCENDANT_OR_SELF:
            self.require(twig, branch)
        elif branch.axis is Axis.ATTRIBUTE:
            if is_attribute:
                raise Unsatisfiable
            self.require(self.attribute(twig, branch), branch)
        elif is_attribute:
            self.require(twig.children[0], branch)
        elif branch.axis is Axis.CHILD:
            twig.children.append(self.node(branch))
        else:
            twig.descendants.append(self.node(branch))

    def attribute(self, twig: Twig, branch: PatternNode) -> Twig:
        """The attribute that a step leads to: one for each name, with one text below."""
        name = branch.test.label if isinstance(branch.test, Name) else None
        if name is not None and name in twig.attributes:
            return twig.attributes[name]
        label = self.terms.fresh("@") if name is None else f"=@{name}"
        made = Twig(label, frozenset({ATTRIBUTE}))
        made.children.append(Twig(self.terms.fresh(), frozenset({TEXT})))
        if name is None:
            twig.any_attributes.append(made)
        else:
            twig.attributes[name] = made
        return made

    # Completion

    def settle(self, root: Twig) -> None:
        """Apply the conditions that depend on the whole twig, and check all strings."""
        twigs = [root]
        for twig in twigs:
            twigs += twig.below()
        for twig in twigs:
            if ATTRIBUTE in twig.kinds:
                if twig.value is not None:
                    self.terms.unify(twig.value, twig.children[0].label)
                continue
            if twig.is_inner:
                self.restrict(twig, ELEMENT)
            if twig.value is not None and twig.kinds == {TEXT}:
                self.terms.unify(twig.value, twig.label)
        for twig in twigs:
            self.check_strings(twig)

    def check_strings(self, twig: Twig) -> None:
        """Reject strings that are not valid as names or texts."""
        label = constant_of(self.terms.find(twig.label))
        value = None if twig.value is None else constant_of(self.terms.find(twig.value))
        if value is not None and not is_text(value):
            raise Unsatisfiable
        if ATTRIBUTE in twig.kinds:
            text = constant_of(self.terms.find(twig.children[0].label))
            if not (label is None or is_name(label[1:], True)) or not (
                text is None or is_text(text)
            ):
                raise Unsatisfiable
            return
        if label is not None:
            possible = {ELEMENT} if is_name(label, False) else set()
            # the text of an attribute may be empty, that of an element is not
            possible |= {TEXT} if is_text(label) else set()
            self.restrict(twig, *possible)
        for child in (*twig.children, *twig.descendants):
            if constant_of(self.terms.find(child.label)) == "":
                raise Unsatisfiable


def _term(operand: object) -> str:
    return f"${operand.name}" if isinstance(operand, Variable) else f"={operand}"


def is_name(label: str, is_attribute: bool = False) -> bool:
    """Whether a label is a valid element or attribute name."""
    try:
        check_name(label, DEFAULT_LIMITS, is_attribute)
    except AxlogError:
        return False
    return label != CALL_LABEL


def is_text(text: str) -> bool:
    """Whether XML can hold this text."""
    try:
        check_text(text, DEFAULT_LIMITS)
    except AxlogError:
        return False
    return True
