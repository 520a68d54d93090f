"""Bottom-up evaluation of rules over the relations of a document, under any annotation.

Each relation is evaluated once, after the relations that it uses. The body of a rule is joined from
left to right by hash indexes. A variable is projected away as soon as no later atom needs it. Any
semiring allows this (`annotations.py`), and it keeps the branches of a node from multiplying.

Law: value(head) = plus over the valuations of the body of the times of its atoms' values; a negated
atom has the complement of its fact's value, a condition is one or zero.

Every call rebuilds the relations that the rules name, over all nodes of the document. Use it for
analyses and to check the engines, not for maintenance.

Not handled: recursive rules, which raise an error.

(Paper 3, section 3.1; paper 1, theorem 2.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Generic, TypeAlias, cast

from axlog.document.tree import DOCUMENT_NODE, NONE, NodeKind, Tree
from axlog.errors import UnsupportedError
from axlog.evaluate.joins import Row, make_check
from axlog.query.atoms import ANSWER, ANYTHING, Atom, Condition, Rule, Term, Unknown
from axlog.query.compile import Test
from axlog.query.pattern import Literal, Name, Variable, Wildcard
from lab.datalog.annotations import Annotation, V

Value: TypeAlias = str | int | Unknown
Fact: TypeAlias = tuple[Value, ...]
Find: TypeAlias = Callable[[Fact], Iterable[tuple[Fact, V]]]

_LABELLED = (NodeKind.ELEMENT, NodeKind.TEXT)
_KINDS = {
    "text": (NodeKind.TEXT,),
    "comment": (NodeKind.COMMENT,),
    "any": (*_LABELLED, NodeKind.COMMENT, NodeKind.INSTRUCTION),
}


def evaluate(rules: Sequence[Rule], tree: Tree, annotation: Annotation[V]) -> dict[Fact, V]:
    """The facts of q and their values; nodes are handles of the tree.

    >>> from lab.datalog.annotations import INTEGERS
    >>> from axlog.query.compile import compile_pattern
    >>> from axlog.query.rules import rules_of
    >>> from axlog.document.loader import load
    >>> from axlog.query.native import parse_pattern
    >>> rules = rules_of(compile_pattern(parse_pattern("match /a/b/$x return $x")))
    >>> evaluate(rules, load("<a><b>1</b><b>1</b></a>"), INTEGERS)
    {('1',): 2}
    """
    return Evaluation(rules, tree, annotation).facts[ANSWER]


class Evaluation(Generic[V]):
    """The facts of every relation that a set of rules defines."""

    def __init__(self, rules: Sequence[Rule], tree: Tree, annotation: Annotation[V]) -> None:
        self._document = Document(tree)
        self._annotation = annotation
        self._indexes: dict[tuple[str, Term | None, tuple[int, ...]], Find[V]] = {}
        self.facts: dict[str, dict[Fact, V]] = {}
        defining: dict[str, list[Rule]] = {ANSWER: []}
        for rule in rules:
            defining.setdefault(rule.head.relation, []).append(rule)
        for relation in _evaluation_order(defining):
            self.facts[relation] = self._derive(defining[relation])

    def _derive(self, rules: Iterable[Rule]) -> dict[Fact, V]:
        plus, once = self._annotation.plus, self._annotation.once
        found: dict[Fact, V] = {}
        for rule in rules:
            for fact, value in self._heads(rule):
                found[fact] = plus(found[fact], value) if fact in found else value
        if any(rule.is_distinct for rule in rules):
            found = {fact: once(value) for fact, value in found.items()}
        zero = self._annotation.zero
        return {fact: value for fact, value in found.items() if value != zero}

    def _heads(self, rule: Rule) -> Iterator[tuple[Fact, V]]:
        layout: list[str] = []
        rows: dict[Fact, V] = {(): self._annotation.one}
        for position, each in enumerate(rule.body):
            if isinstance(each, Condition):
                rows = _filtered(rows, each, layout)
                continue
            if each.is_negated:
                rows = self._without(rows, each, layout)
                continue
            later = (
                variable for after in rule.body[position + 1 :] for variable in after.variables
            )
            needed = {variable.name for variable in (*rule.head.variables, *later)}
            rows, layout = self._joined(rows, each, layout, needed)
        shown = _reader(rule.head.terms, layout)
        return ((shown(row), value) for row, value in rows.items())

    def _joined(
        self, rows: dict[Fact, V], atom: Atom, layout: list[str], needed: set[str]
    ) -> tuple[dict[Fact, V], list[str]]:
        """The rows joined with the facts of an atom, and the layout of the columns needed later."""
        plus, times = self._annotation.plus, self._annotation.times
        find, key, added = self._meeting(atom, layout)
        whole = [*layout, *added]
        kept = [i for i, name in enumerate(whole) if name in needed]
        joined: dict[Fact, V] = {}
        for row, value in rows.items():
            for more, other in find(tuple(row[i] for i in key)):
                longer = row + more
                fact = tuple(longer[i] for i in kept)
                product = times(value, other)
                joined[fact] = plus(joined[fact], product) if fact in joined else product
        return joined, [whole[i] for i in kept]

    def _without(self, rows: dict[Fact, V], atom: Atom, layout: list[str]) -> dict[Fact, V]:
        """The rows times the complement of a negated atom, whose variables are all bound."""
        known = self.facts[atom.relation]
        read, annotation = _reader(atom.terms, layout), self._annotation
        zero = annotation.zero
        values = {
            row: annotation.times(value, annotation.complement(known.get(read(row), zero)))
            for row, value in rows.items()
        }
        return {row: value for row, value in values.items() if value != zero}

    def _meeting(self, atom: Atom, layout: list[str]) -> tuple[Find[V], list[int], list[str]]:
        """How to join rows with an atom: a lookup by key, the key's positions, added columns."""
        constant = None if isinstance(atom.terms[0], Variable) else atom.terms[0]
        variables = [term for term in atom.terms if isinstance(term, Variable)]
        positions: list[int] = []
        key: list[int] = []
        added: list[str] = []
        for position, variable in enumerate(variables):
            if variable != ANYTHING and variable.name in layout:
                positions.append(position)
                key.append(layout.index(variable.name))
            else:
                added.append(variable.name)
        return self._find(atom.relation, constant, tuple(positions)), key, added

    def _find(self, relation: str, constant: Term | None, positions: tuple[int, ...]) -> Find[V]:
        """A cached function from the values at some positions to the rest of the facts."""
        wanted = (relation, constant, positions)
        if wanted not in self._indexes:
            read = self._document.reader(relation)
            if read is not None and positions == (1,):
                self._indexes[wanted] = _computed(read, self._annotation.one)
            else:
                self._indexes[wanted] = _indexed(self._valued(relation, constant), positions)
        return self._indexes[wanted]

    def _valued(self, relation: str, constant: Term | None) -> dict[Fact, V]:
        if relation in self.facts:
            return self.facts[relation]
        value = self._annotation.call if relation == "function" else self._annotation.one
        if value == self._annotation.zero:
            return {}
        return dict.fromkeys(self._document.facts(relation, constant), value)


class Document:
    """A tree as the extensional relations that `query/rules.py` lists."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._nodes = list(tree.subtree(DOCUMENT_NODE))

    def reader(self, relation: str) -> Callable[[int], Value] | None:
        """For a relation with one fact per node: a function from the node to the fact's value."""
        tree = self._tree
        readers: dict[str, Callable[[int], Value]] = {
            "time": tree.time,
            "value": tree.string_value,
            "name": tree.label,
            "id": lambda node: node,
        }
        return readers.get(relation)

    def facts(self, relation: str, constant: Term | None) -> Iterator[Fact]:
        """The facts of a relation; for `label` with a constant, without that constant."""
        tree = self._tree
        match relation:
            case "label":
                yield from self._labels(constant)
            case "document":
                yield (DOCUMENT_NODE,)
            case "root":
                if tree.root != NONE:
                    yield (tree.root,)
            case "node":
                yield from ((node,) for node in self._nodes)
            case "text" | "comment" | "any":
                yield from ((n,) for n in self._nodes if tree.kind(n) in _KINDS[relation])
            case "instruction":
                yield from self._instructions(constant)
            case "function":
                yield from ((n,) for n in tree.calls().values() if _may_bring(tree, n))
            case "child":
                yield from ((n, below) for n in self._nodes for below in tree.children(n))
            case "attribute":
                yield from ((n, below) for n in self._nodes for below in tree.attributes(n))
            case "descendant":
                yield from ((n, below) for n in self._nodes for below in tree.descendants(n))
            case "descendant_or_self":
                yield from ((n, n) for n in self._nodes)
                yield from self.facts("descendant", None)
            case _:
                read = self.reader(relation)
                if read is None:
                    raise UnsupportedError("AX211", f"no rule and no document defines {relation}")
                yield from ((read(node), node) for node in self._nodes)

    def _instructions(self, target: Term | None) -> Iterator[Fact]:
        tree = self._tree
        for node in self._nodes:
            if tree.kind(node) is NodeKind.INSTRUCTION and (
                target is None or target == Literal(tree.target(node))
            ):
                yield (node,)

    def _labels(self, constant: Term | None) -> Iterator[Fact]:
        tree = self._tree
        for node in self._nodes:
            kind = tree.kind(node)
            match constant:
                case None if kind in _LABELLED:
                    yield (tree.label(node), node)
                case Name(label="@*") if kind is NodeKind.ATTRIBUTE:
                    yield (node,)
                case Name(label=label) if kind in (NodeKind.ELEMENT, NodeKind.ATTRIBUTE):
                    if tree.label(node) == label:
                        yield (node,)
                case Wildcard() if kind is NodeKind.ELEMENT:
                    yield (node,)
                case Literal(text=text) if kind is NodeKind.TEXT and tree.text(node) == text:
                    yield (node,)


def _may_bring(tree: Tree, node: int) -> bool:
    """Whether an open call can still insert a tree."""
    call = tree.call(node)
    is_full = call.most is not None and tree.brought.get(call.stream, 0) >= call.most
    return call.deletes != "only" and not is_full


def _evaluation_order(defining: dict[str, list[Rule]]) -> list[str]:
    uses = {
        relation: {a.relation for rule in rules for a in rule.atoms() if a.relation in defining}
        for relation, rules in defining.items()
    }
    try:
        return list(TopologicalSorter(uses).static_order())
    except CycleError as error:
        raise UnsupportedError(
            "AX211", f"the rules are recursive: {' uses '.join(error.args[1])}"
        ) from error


def _computed(read: Callable[[int], Value], one: V) -> Find[V]:
    def find(key: Fact) -> Iterable[tuple[Fact, V]]:
        (node,) = key
        assert isinstance(node, int), "only document nodes have a time, a value, a name"
        return [((read(node),), one)]

    return find


def _indexed(facts: dict[Fact, V], positions: tuple[int, ...]) -> Find[V]:
    index: dict[Fact, list[tuple[Fact, V]]] = {}
    for fact, value in facts.items():
        rest = tuple(each for i, each in enumerate(fact) if i not in positions)
        index.setdefault(tuple(fact[i] for i in positions), []).append((rest, value))
    return lambda key: index.get(key, ())


def _reader(terms: Sequence[Term], layout: list[str]) -> Callable[[Fact], Fact]:
    """A function from rows to the values of an atom's terms."""
    places: list[int | Unknown] = []
    for term in terms:
        if isinstance(term, Unknown):
            places.append(term)
        else:
            assert isinstance(term, Variable), "only variables and `?` stand in derived relations"
            places.append(layout.index(term.name))
    return lambda row: tuple(row[each] if isinstance(each, int) else each for each in places)


def _filtered(rows: dict[Fact, V], condition: Condition, layout: list[str]) -> dict[Fact, V]:
    names = tuple(variable.name for variable in condition.variables)
    holds = make_check(Test(condition.constraint, names), layout)
    # `with_functions` accepts no rules with conditions, so a checked row has no unknowns.
    return {row: value for row, value in rows.items() if holds(cast("Row", row))}
