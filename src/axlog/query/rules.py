"""The datalog rules of a compiled pattern.

    q(x) <- R_p1(n, x)
    R_p1(n, x) <- root(n), label(a, n), child(n, n'), R_p2(n'), child(n, n''), R_p4(n'', x)

`rules_of` writes one rule for each relation of a program, and one for each alternative of an `or`.
An `or` that mentions variables bound only by other parts, and a `not` with constraints on nodes
outside it, get one more relation (R_whole, R_block; R_any). So the result is plain datalog with
negation.

Extensional relations: `document(n)`; `root(n)` the root element; `child`, `descendant`,
`attribute`, `descendant_or_self` (above, below); `text(n)`, `comment(n)`, `instruction(n)` and
`instruction("target", n)`; `node(n)` any node; `any(n)` an element, text, comment or instruction;
`function(n)` an open call; `time(t, n)`; `value(v, n)` the string value; `id(i, n)`; `name(l, n)`
the label of a node of any kind; and `label(l, n)`. In `label` a bare constant is the name of an
element (`@k` of an attribute, `*` of any element) and a quoted one is the string of a text, as in
the native text. A variable is bound to either.

Law: evaluated with integer counts (`lab/datalog`), a row of q has the count that the definition
gives it. A fact of an `is_distinct` rule counts once, however many derivations it has: an `or`
counts once for each binding of its variables.

Variables are printed without marks: `$x` as x, the time of `#t` as t, nodes as n, n', n''. A name
that would be ambiguous keeps its mark (`$n`, `t.time`). Not handled: patterns that `compile.py`
declines (`Program.refusal`), and the contents of `collect`, which no rule derives.
(Paper 3, section 3.1, programs 1 and 2, and definition 3; paper 2, algorithm 1.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from axlog.errors import UnsupportedError
from axlog.query.atoms import ANSWER, ANYTHING, NODE, Atom, Condition, Rule, Rules, Term
from axlog.query.compile import (
    Absence,
    Choice,
    Column,
    Edge,
    Program,
    Relation,
    Test,
    compile_pattern,
)
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Kind,
    Literal,
    Name,
    Pattern,
    PatternNode,
    ValueConstraint,
    Variable,
    Wildcard,
    sees_markup,
)

__all__ = [
    "AXES",
    "Atom",
    "Rule",
    "Rules",
    "explain_program",
    "is_auxiliary",
    "output_columns",
    "rules_of",
]

AXES = {
    Axis.CHILD: "child",
    Axis.DESCENDANT: "descendant",
    Axis.ATTRIBUTE: "attribute",
    Axis.DESCENDANT_OR_SELF: "descendant_or_self",
}
"""The binary relation of each axis; `self` needs none."""

_OWN = {"label": "name", "node": "id", "time": "time", "value": "value"}


def rules_of(program: Program) -> Rules:
    """The rules of a program, answers first, each relation before those that it uses.

    >>> from axlog.query.native import parse_pattern
    >>> for rule in rules_of(compile_pattern(parse_pattern("match /a/$x return $x"))):
    ...     print(rule)
    q(x) <- R_p1(n, x)
    R_p1(n, x) <- root(n), label(a, n), child(n, n'), R_p2(n', x)
    R_p2(n, x) <- label(x, n)
    """
    if program.refusal is not None:
        raise UnsupportedError("AX211", f"the query has no datalog program: {program.refusal}")
    return tuple(_Writer(program).rules())


def output_columns(program: Program) -> tuple[Column, ...]:
    """The columns of q: the outputs in their order, each once, then the anchors of collects."""
    collected = {gather.anchor for gather in program.gathers if gather.anchor is not None}
    written = [
        f"${out.of}" if out.kind is Kind.VARIABLE else f"{out.of}.{_source(out.kind)}"
        for out in program.pattern.outputs
    ]
    given = set(program.root.columns)
    return tuple(dict.fromkeys([*(c for c in written if c in given), *sorted(collected)]))


def is_auxiliary(relation: str) -> bool:
    """Whether a relation is not one of the pattern, but added for an `or` or a `not`."""
    return relation.rstrip("0123456789") in _AUXILIARY


def _source(kind: Kind) -> str:
    return kind.value if kind in (Kind.LABEL, Kind.TIME) else "node"


# Writing rules ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Part:
    """Atoms that bind columns at a node."""

    columns: frozenset[Column]
    atoms: tuple[Atom, ...]


@dataclass(slots=True)
class _Parts:
    """The parts that a relation joins at its node; `used` are the choices that need a rule."""

    at: Relation
    parts: list[_Part] = field(default_factory=list)
    plain: dict[Choice, _Part] = field(default_factory=dict)
    used: dict[Choice, None] = field(default_factory=dict)

    def binding(self, missing: Iterable[Column]) -> list[Atom]:
        """Atoms that bind these columns: own columns, edges, and columns of choices."""
        left = set(missing)
        found: list[Atom] = []
        for part in self.parts:
            if part.columns & left:
                found += part.atoms
                left -= part.columns
        for choice, part in self.plain.items():
            if part.columns & left:
                found += part.atoms
                left -= part.columns
                self.used[choice] = None
        assert not left, "a compiled relation binds all columns that its parts compare"
        return found


class _Writer:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._names = _printed_names(program)
        self._numbers: dict[str, int] = {}

    def rules(self) -> Iterator[Rule]:
        root = self._program.root
        is_plain = bool(root.edges) and not (root.choices or root.absences)
        if not (is_plain and all(map(_leads_to_root, root.edges))):
            yield from self._rules(root, ANSWER, output_columns(self._program))
            return
        nodes = _node_variables(NODE.name)
        atoms = [
            self._atom(_named(e.relation), next(nodes), e.relation.columns) for e in root.edges
        ]
        head = Atom(ANSWER, self._terms(output_columns(self._program)))
        yield Rule(head, (*atoms, *self._conditions(root.tests)))
        for edge in root.edges:
            yield from self._rules(
                edge.relation, _named(edge.relation), edge.relation.columns, True
            )

    def _rules(
        self,
        relation: Relation,
        head: str,
        columns: Sequence[Column],
        is_root: bool = False,
        is_distinct: bool = False,
    ) -> Iterator[Rule]:
        """The rule of a relation, then the rules of the relations that it joins."""
        parts = _Parts(relation, [*self._own(relation), *self._edges(relation)])
        for choice in relation.choices:
            first = _named(choice.alternatives[0])
            name = self._new("R_any") if choice.is_correlated else first
            atom = self._atom(name, NODE, choice.columns)
            parts.plain[choice] = _Part(frozenset(choice.columns), (atom,))
        behind: list[Rule] = []
        choices = [self._choice(choice, parts, behind) for choice in relation.choices]
        absences = [self._absence(absence, parts, behind) for absence in relation.absences]
        for choice in parts.used:
            behind += self._any(choice, parts.plain[choice])
        body = [
            *self._tests(relation, head == ANSWER, is_root),
            *(atom for part in parts.parts for atom in part.atoms),
            *choices,
            *self._conditions(relation.tests),
        ]
        # A conjunction of `not`s alone can hold at any node.
        body = [*(body or [Atom("node", (NODE,))]), *absences]
        terms = self._terms(columns)
        yield Rule(
            Atom(head, terms if head == ANSWER else (NODE, *terms)), tuple(body), is_distinct
        )
        for edge in relation.edges:
            yield from self._rules(edge.relation, _named(edge.relation), edge.relation.columns)
        yield from behind

    # the tests and columns of a node

    def _tests(
        self, relation: Relation, is_answer: bool, is_root: bool
    ) -> Iterator[Atom | Condition]:
        if is_answer:
            yield Atom("document", (NODE,))
        if is_root:
            yield Atom("root", (NODE,))
        if relation.node is None:
            return
        test = _test_atom(relation.node)
        if test is not None:
            yield test
        compared = [c for c in relation.node.comparisons if not isinstance(c.operand, Variable)]
        value = Variable("v")
        if compared:
            yield Atom("value", (value, NODE))
        for comparison in compared:
            constraint = ValueConstraint(value, comparison.operator, comparison.operand)
            yield Condition(constraint, (value,))

    def _own(self, relation: Relation) -> Iterator[_Part]:
        for column, source in relation.own:
            is_test = source == "label" and column.startswith("$")
            atom = Atom("label" if is_test else _OWN[source], (self._variable(column), NODE))
            yield _Part(frozenset((column,)), (atom,))

    def _edges(self, relation: Relation) -> Iterator[_Part]:
        nodes = _node_variables("n'")
        for edge in relation.edges:
            yield self._edge(edge, NODE if edge.axis is Axis.SELF else next(nodes))

    def _edge(self, edge: Edge, node: Variable) -> _Part:
        below = self._atom(_named(edge.relation), node, edge.relation.columns)
        step = () if node == NODE else (Atom(AXES[edge.axis], (NODE, node)),)
        return _Part(frozenset(edge.relation.columns), (*step, below))

    # or, not

    def _choice(self, choice: Choice, parts: _Parts, behind: list[Rule]) -> Atom:
        """The atom that an `or` adds to the body; its own rules are added to `behind`."""
        alternatives = choice.alternatives
        if not choice.is_correlated:
            (atom,) = parts.plain[choice].atoms
            for alternative in alternatives:
                behind += self._rules(alternative, atom.relation, choice.columns, is_distinct=True)
            return atom
        mentioned = sorted(set[Column]().union(*(a.columns for a in alternatives)))
        whole = self._atom(self._new("R_whole"), NODE, mentioned)
        for alternative in alternatives:
            missing = set(mentioned) - set(alternative.columns)
            held = self._atom(_named(alternative), NODE, alternative.columns)
            behind.append(Rule(whole, (*parts.binding(missing), held), is_distinct=True))
        for alternative in alternatives:
            behind += self._rules(alternative, _named(alternative), alternative.columns)
        return whole

    def _any(self, choice: Choice, plain: _Part) -> Iterator[Rule]:
        """The rules for the bindings of a correlated `or` that other relations need."""
        if choice.is_correlated:
            for alternative in choice.alternatives:
                held = self._atom(_named(alternative), NODE, alternative.columns)
                yield Rule(plain.atoms[0], (held,), is_distinct=True)

    def _absence(self, absence: Absence, parts: _Parts, behind: list[Rule]) -> Atom:
        """The negated atom of a `not`; its rules are added to `behind`."""
        body = absence.body
        held = self._atom(_named(body), NODE, body.columns)
        inside = list(self._rules(body, _named(body), body.columns))
        if not absence.tests:
            behind += inside
            return replace(held, is_negated=True)
        compared = {column for test in absence.tests for column in test.columns}
        shared = sorted((compared | set(body.columns)) & set(parts.at.bound))
        block = self._atom(self._new("R_block"), NODE, shared)
        outside = parts.binding(compared - set(body.columns))
        behind.append(Rule(block, (*outside, held, *self._conditions(absence.tests))))
        behind += inside
        return replace(block, is_negated=True)

    # names

    def _atom(self, name: str, node: Variable, columns: Sequence[Column]) -> Atom:
        return Atom(name, (node, *self._terms(columns)))

    def _terms(self, columns: Iterable[Column]) -> tuple[Term, ...]:
        return tuple(self._variable(column) for column in columns)

    def _variable(self, column: Column) -> Variable:
        return Variable(self._names[column])

    def _conditions(self, tests: Iterable[Test]) -> list[Condition]:
        return [
            Condition(test.constraint, tuple(self._variable(c) for c in test.columns))
            for test in tests
        ]

    def _new(self, kind: str) -> str:
        self._numbers[kind] = self._numbers.get(kind, 0) + 1
        return f"{kind}{self._numbers[kind]}"


def _leads_to_root(edge: Edge) -> bool:
    """Whether an edge of the document node can find only the root element."""
    node = edge.relation.node
    return edge.axis is Axis.CHILD and node is not None and not sees_markup(node)


def _named(relation: Relation) -> str:
    return f"R_{relation.name}"


def _node_variables(first: str) -> Iterator[Variable]:
    """n, n', n'', ..."""
    name = first
    while True:
        yield Variable(name)
        name += "'"


def _test_atom(node: PatternNode) -> Atom | None:
    """The atom for the test of a node; None for a variable, whose own column is the test."""
    match node.test:
        case Name(label=label) if node.axis is Axis.ATTRIBUTE:
            return Atom("label", (Name(f"@{label}"), NODE))
        case Wildcard() if node.axis is Axis.ATTRIBUTE:
            return Atom("label", (Name("@*"), NODE))
        case Name() | Literal() | Wildcard():
            return Atom("label", (node.test, NODE))
        case AnyText():
            return Atom("text", (NODE,))
        case AnyNode():
            return Atom("node" if node.axis is Axis.SELF else "any", (NODE,))
        case AnyComment():
            return Atom("comment", (NODE,))
        case AnyInstruction(target=target):
            terms = (NODE,) if target is None else (Literal(target), NODE)
            return Atom("instruction", terms)
        case Variable():
            return None


def _printed_names(program: Program) -> dict[Column, str]:
    """The printed name of each column: without its mark unless that would be ambiguous."""
    columns = {column for relation in program.relations for column in relation.bound}
    tests = [relation.node.test for relation in program.relations if relation.node is not None]
    taken = {NODE.name, ANYTHING.name, "v", *(t.label for t in tests if isinstance(t, Name))}
    printed: dict[Column, str] = {}
    for column in sorted(columns):
        short = column.removeprefix("$") if column[0] == "$" else column.removesuffix(".time")
        is_shared = column[0] != "$" and f"${short}" in columns
        printed[column] = column if short in taken or is_shared else short
    return printed


# Explaining ---------------------------------------------------------------------------------------


def explain_program(pattern: Pattern) -> str:
    """The rules of a pattern, numbered, and the pattern node of each relation."""
    program = compile_pattern(pattern)
    if program.refusal is not None:
        return f"no datalog program: {program.refusal}"
    rules = rules_of(program)
    width = len(str(len(rules)))
    lines = [f"{number:>{width}}: {rule}" for number, rule in enumerate(rules, 1)]
    meanings = {ANSWER: "the answers", **dict(_meanings(program.root, ""))}
    once = {rule.head.relation for rule in rules if rule.is_distinct}
    lines.append("")
    for name in dict.fromkeys(rule.head.relation for rule in rules):
        meaning = meanings.get(name) or _AUXILIARY[name.rstrip("0123456789")]
        lines.append(f"{name} is {meaning}{'; counts once' if name in once else ''}")
    lines += [f"collected when a row is shown: {gather.node}" for gather in program.gathers]
    return "\n".join(lines)


_AUXILIARY = {
    "R_any": "what an `or` binds",
    "R_whole": "an `or` with one alternative matched whole",
    "R_block": "a `not` whose constraints hold of what is around it",
}


def _meanings(relation: Relation, path: str) -> Iterator[tuple[str, str]]:
    """For each relation, the path down to its node."""
    for edge in relation.edges:
        node = edge.relation.node
        assert node is not None, "an edge leads to a pattern node"
        yield _named(edge.relation), _extended(path, replace(node, branches=()))
        bare = replace(node, branches=(), comparisons=())
        yield from _meanings(edge.relation, _extended(path, bare))
    place = f"at {path}" if path else "at the document node"
    for choice in relation.choices:
        word = "one alternative" if choice.is_correlated else "the alternatives"
        for alternative in choice.alternatives:
            yield _named(alternative), f"{word} of an `or` {place}"
            yield from _meanings(alternative, path)
    for absence in relation.absences:
        yield _named(absence.body), f"the inside of a `not` {place}"
        yield from _meanings(absence.body, path)


def _extended(path: str, node: PatternNode) -> str:
    step = str(node)
    return f"{path}{step}" if step.startswith("/") else f"{path}/{step}"
