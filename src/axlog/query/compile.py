"""The compiler of patterns: a pattern to the program of relations that every engine runs.

Each pattern node p becomes a relation R_p over a node and the columns that a relation above p still
needs. A column is projected away as soon as no relation above needs it. The rows of a relation at a
document node n are the join, on shared columns, of n's own columns with one part for each branch:

    R_p(n, columns) <- label(..., n), child(n, n'), R_c(n', ...), ..., constraints, not N(n, ...)

Conjunctions inside `or` and `not` become relations at the same node. A constraint is tested at the
lowest relation that has all its columns. Before the compilation, the pattern goes through `PASSES`,
in order.

Columns: `$x` is the string of a variable; `t.node`, `t.time` and `t.label` belong to a named node.
(Paper 3, section 3.1; paper 2, algorithm 1; paper 1, section 4, for the projection.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from axlog.query.hoist import Token, hoist, own_mentions
from axlog.query.normalize import normalise
from axlog.query.pattern import (
    IS_NAMED,
    Axis,
    Branch,
    Collect,
    Constraint,
    Kind,
    Not,
    Or,
    PartialName,
    Pattern,
    PatternNode,
    TimeConstraint,
    ValueConstraint,
    Variable,
    branches_of,
    nodes_of,
)
from axlog.query.scopes import exported_variables

Column = str
SOURCES = ("node", "time", "label")
_OUTPUT_SOURCE = {
    Kind.ID: "node", Kind.VAL: "node", Kind.CONT: "node", Kind.LABEL: "label", Kind.TIME: "time",
}  # fmt: skip

PASSES: tuple[Callable[[Pattern], Pattern], ...] = (normalise, hoist)


@dataclass(frozen=True, slots=True)
class Test:
    """A constraint over columns: linear over times, or a comparison of two values."""

    constraint: Constraint
    columns: tuple[Column, ...]


Form: TypeAlias = tuple[object, ...]


@dataclass(eq=False, slots=True)
class Edge:
    """A positive part: the rows of a relation at the nodes that an axis reaches."""

    axis: Axis
    relation: Relation


@dataclass(eq=False, slots=True)
class Choice:
    """A part for `or`: the distinct rows of the alternatives, over the columns common to them.

    `is_correlated`: some alternative also mentions variables that only other parts bind. Then one
    alternative must also match all columns of a joined row.
    """

    alternatives: tuple[Relation, ...]
    columns: tuple[Column, ...]
    is_correlated: bool


@dataclass(eq=False, slots=True)
class Absence:
    """A part for `not`: a joined row is kept only if the body has no row that agrees with it."""

    body: Relation
    tests: tuple[Test, ...]  # the constraints of the `not`, over the columns of body and join


@dataclass(eq=False, slots=True)
class Relation:
    """R_p: its test at a node, the parts that it joins there, and the columns that it passes up."""

    name: str
    node: PatternNode | None  # None: a conjunction at the node of the relation that contains it
    own: tuple[tuple[Column, str], ...] = ()  # a column, and its source: value, label, node, time
    edges: tuple[Edge, ...] = ()
    choices: tuple[Choice, ...] = ()
    absences: tuple[Absence, ...] = ()
    tests: tuple[Test, ...] = ()
    columns: tuple[Column, ...] = ()  # those passed up
    bound: tuple[Column, ...] = ()  # those of the join before the projection

    def below(self) -> Iterator[Relation]:
        """The relations that this one joins."""
        for edge in self.edges:
            yield edge.relation
        for choice in self.choices:
            yield from choice.alternatives
        for absence in self.absences:
            yield absence.body

    def walk(self) -> Iterator[Relation]:
        """All relations below, then this one: the order of evaluation."""
        for relation in self.below():
            yield from relation.walk()
        yield self


def depends_on_value(relation: Relation) -> bool:
    """Whether a change below a node can change the columns or comparisons of the node itself."""
    node = relation.node
    return node is not None and (
        bool(node.comparisons) or any(source == "value" for _, source in relation.own)
    )


@dataclass(frozen=True, eq=False, slots=True)
class Gather:
    """A collected path: evaluated when a row is shown; it neither filters nor counts."""

    node: PatternNode
    anchor: Column | None  # None: the document node


@dataclass(frozen=True, eq=False, slots=True)
class Program:
    """The relations of a pattern; the root's rows at the document node are the answers."""

    pattern: Pattern  # as given
    root: Relation
    relations: tuple[Relation, ...]  # in evaluation order
    gathers: tuple[Gather, ...]
    refusal: str | None = None  # why a bottom-up engine cannot run it; None if it can


def compile_pattern(pattern: Pattern) -> Program:
    """The program of a pattern."""
    rewritten = pattern
    for rewrite in PASSES:
        rewritten = rewrite(rewritten)
    compiler = _Compiler(rewritten)
    root = compiler.root()
    return Program(pattern, root, tuple(root.walk()), tuple(compiler.gathers), compiler.refusal)


def share(relation: Relation, known: dict[tuple[object, ...], Relation]) -> Relation:
    """The relation, or an equal known one: equal sub-patterns of several views are shared."""
    relation.edges = tuple(Edge(e.axis, share(e.relation, known)) for e in relation.edges)
    for choice in relation.choices:
        choice.alternatives = tuple(share(a, known) for a in choice.alternatives)
    for absence in relation.absences:
        absence.body = share(absence.body, known)
    return known.setdefault(_form(relation, lambda below: below), relation)


def form_of(relation: Relation) -> Form:
    """A value that equal relations of several programs have in common."""
    return _form(relation, form_of)


def _form(relation: Relation, of: Callable[[Relation], object]) -> Form:
    """The test, the parts and the columns of a relation; `of` gives those of the ones below it."""
    node = relation.node
    return (
        None if node is None else (node.test, node.comparisons, _ATTRIBUTES.get(node.axis)),
        relation.own,
        tuple((edge.axis, of(edge.relation)) for edge in relation.edges),
        tuple((tuple(map(of, each.alternatives)), each.columns) for each in relation.choices),
        tuple((of(absence.body), absence.tests) for absence in relation.absences),
        relation.tests,
        relation.columns,
    )


_ATTRIBUTES = {Axis.ATTRIBUTE: "attribute", Axis.SELF: "any"}
"""The axes that can reach attributes; relations of other axes are about elements."""


class _Scope:
    """The untested constraints, shared within a conjunction, and the columns needed outside."""

    def __init__(self, pending: list[Test], needed: frozenset[Column]) -> None:
        self.pending = pending
        self.needed = needed

    def inside(self, needed: frozenset[Column]) -> _Scope:
        return _Scope(self.pending, needed)

    def wanted(self) -> frozenset[Column]:
        return self.needed.union(*(test.columns for test in self.pending))

    def take(self, bound: set[Column]) -> tuple[Test, ...]:
        """Remove and return the constraints that can be tested with these columns."""
        taken = tuple(test for test in self.pending if set(test.columns) <= bound)
        self.pending[:] = [test for test in self.pending if test not in taken]
        return taken


class _Compiler:
    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.refusal: str | None = None
        shown = {output.of for output in pattern.outputs if output.kind is not Kind.VARIABLE}
        self.gathers = [
            gather
            for gather in _gathers(pattern.branches, None)
            if any(node.name in shown for node in nodes_of(gather.node))
        ]
        self._numbers: dict[str, int] = {}
        self._mentions: dict[int, frozenset[Column]] = {}

    def root(self) -> Relation:
        pattern = self.pattern
        collected = {n.name for gather in self.gathers for n in nodes_of(gather.node)}
        needed = {gather.anchor for gather in self.gathers if gather.anchor is not None}
        for output in pattern.outputs:
            if output.kind is Kind.VARIABLE:
                needed.add(f"${output.of}")
            elif output.of not in collected:
                needed.add(f"{output.of}.{_OUTPUT_SOURCE[output.kind]}")
        scope = _Scope([_test(constraint) for constraint in pattern.where], frozenset(needed))
        root = self._relation("q", None, pattern.branches, scope)
        if scope.pending:
            self._refuse("a constraint compares columns that no relation has together")
        return root

    def _mentioned(self, branch: Branch) -> frozenset[Column]:
        """The columns of all variables and names that a branch mentions."""
        known = self._mentions.get(id(branch))  # safe: the pattern keeps the branch alive
        if known is None:
            own = _columns(own_mentions(branch))
            known = own.union(*(self._mentioned(below) for below in branches_of(branch)))
            self._mentions[id(branch)] = known
        return known

    def _refuse(self, reason: str) -> None:
        self.refusal = self.refusal or reason

    def _name(self, kind: str) -> str:
        self._numbers[kind] = self._numbers.get(kind, 0) + 1
        return f"{kind}{self._numbers[kind]}"

    def _relation(
        self, name: str, node: PatternNode | None, branches: tuple[Branch, ...], scope: _Scope
    ) -> Relation:
        """The relation of the branches of one node, and of the node itself if it is given."""
        own: tuple[tuple[Column, str], ...] = ()
        if node is not None:
            own = self._own(node, scope)
        own_columns = frozenset(column for column, _ in own)
        relation = Relation(name, node, own)
        each = [self._mentioned(branch) for branch in branches]
        edges: list[Edge] = []
        choices: list[Choice] = []
        for branch, others in zip(branches, _all_but_one(each), strict=True):
            elsewhere = scope.needed.union(own_columns, *others)
            if isinstance(branch, Collect) and any(
                column.startswith("$") for column in self._mentioned(branch) & elsewhere
            ):
                self._refuse("a collected path mentions a variable of another branch")
            if isinstance(branch, PatternNode):
                edges.append(Edge(branch.axis, self._node(branch, scope.inside(elsewhere))))
            elif isinstance(branch, Or):
                choices.append(self._choice(branch, scope, elsewhere))
        relation.edges, relation.choices = tuple(edges), tuple(choices)
        bound = set(own_columns).union(
            *(edge.relation.columns for edge in edges), *(choice.columns for choice in choices)
        )
        for choice in choices:
            self._check_choice(choice, bound)
        relation.absences = tuple(
            self._absence(branch, bound, scope.needed.union(own_columns, *others))
            for branch, others in zip(branches, _all_but_one(each), strict=True)
            if isinstance(branch, Not)
        )
        relation.bound = tuple(sorted(bound))
        relation.tests = scope.take(bound)
        relation.columns = tuple(sorted(bound & scope.wanted()))
        return relation

    def _node(self, node: PatternNode, scope: _Scope) -> Relation:
        if not node.axis.is_downward:
            self._refuse(f"the axis {node.axis.value} does not go downward")
        return self._relation(self._name("p"), node, node.branches, scope)

    def _own(self, node: PatternNode, scope: _Scope) -> tuple[tuple[Column, str], ...]:
        """The columns that the node itself binds; comparisons with a variable become tests."""
        own: dict[tuple[Column, str], None] = {}
        if isinstance(node.test, Variable):
            own[(f"${node.test.name}", "label")] = None
        if isinstance(node.test, PartialName):
            label = Variable(self._name("name~"))
            own[(f"${label.name}", "label")] = None
            scope.pending.append(_test(ValueConstraint(label, IS_NAMED, node.test)))
        for comparison in node.comparisons:
            operand = comparison.operand
            if not isinstance(operand, Variable):
                continue
            if comparison.operator == "=":
                own[(f"${operand.name}", "value")] = None
            else:
                value = Variable(self._name("value~"))
                own[(f"${value.name}", "value")] = None
                scope.pending.append(_test(ValueConstraint(value, comparison.operator, operand)))
        if node.name is not None:
            wanted = scope.wanted()
            for source in SOURCES:
                if f"{node.name}.{source}" in wanted:
                    own[(f"{node.name}.{source}", source)] = None
        return tuple(own)

    def _choice(self, branch: Or, scope: _Scope, elsewhere: frozenset[Column]) -> Choice:
        """The part for an `or`.

        A constraint over columns of the alternatives is tested above them, on the choice. The
        columns that all alternatives bind are passed up even if no other part needs them: an `or`
        counts once for every distinct binding of them.
        """
        counted = frozenset(f"${name}" for name in exported_variables(branch))
        needed = elsewhere | scope.wanted() | counted
        alternatives = tuple(
            self._relation(self._name("or"), None, alternative, _Scope([], needed))
            for alternative in branch.alternatives
        )
        each = [frozenset(alternative.columns) for alternative in alternatives]
        common = frozenset.intersection(*each)
        return Choice(alternatives, tuple(sorted(common)), any(one != common for one in each))

    def _check_choice(self, choice: Choice, bound: set[Column]) -> None:
        for alternative in choice.alternatives:
            if not set(alternative.columns) <= bound:
                self._refuse("an `or` mentions a variable that is bound only outside its reach")

    def _absence(self, branch: Not, bound: set[Column], elsewhere: frozenset[Column]) -> Absence:
        inner = _Scope([_test(constraint) for constraint in branch.where], frozenset(bound))
        body = self._relation(self._name("not"), None, branch.branches, inner)
        shared = {c for c in self._mentioned(branch) & elsewhere if c.startswith("$")}
        compared = {column for test in inner.pending for column in test.columns}
        if not shared <= bound or not compared <= bound | set(body.columns):
            self._refuse("a `not` mentions a variable that is bound only outside its reach")
        return Absence(body, tuple(inner.pending))


def _all_but_one(each: list[frozenset[Column]]) -> Iterator[list[frozenset[Column]]]:
    """For each position of a list, the other items."""
    for position in range(len(each)):
        yield each[:position] + each[position + 1 :]


def _test(constraint: Constraint) -> Test:
    if isinstance(constraint, TimeConstraint):
        return Test(constraint, tuple(f"{name}.time" for _, name in constraint.terms))
    sides = (constraint.left, constraint.right)
    return Test(constraint, tuple(f"${side.name}" for side in sides if isinstance(side, Variable)))


def _columns(tokens: Iterable[Token]) -> frozenset[Column]:
    """The columns that variables and names can have."""
    found: set[Column] = set()
    for token in tokens:
        if token.startswith("$"):
            found.add(token)
        else:
            found |= {f"{token[1:]}.{source}" for source in SOURCES}
    return frozenset(found)


def _gathers(branches: Iterable[Branch], above: PatternNode | None) -> Iterator[Gather]:
    for branch in branches:
        if isinstance(branch, Collect):
            yield Gather(branch.node, None if above is None else f"{above.name}.node")
        elif isinstance(branch, PatternNode):
            yield from _gathers(branch.branches, branch)
