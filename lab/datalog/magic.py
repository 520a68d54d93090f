"""MagicSet: rewrites a program so that it derives only facts that may matter for q.

For each relation R_p a top-down relation R^_p (the papers' R with a hat) holds the nodes at which
R_p is requested, and every rule of R_p is restricted to them:

    R^_p4(n) <- R^_p1(n'), child(n', n''), R_p2(n''), child(n', n), label(b, n)
    R_p4(n, x) <- R^_p4(n), child(n, n'), R_p5(n', x)

The branches of a node are ordered. The first (the benjamin, in paper 1) is requested wherever its
parent is. Each later one is requested only where the branch before it (its cadet) has matched, so
that a branch that fails stops the branches after it. Nots come last, after the branches that bind
their variables.

Law: q has the same facts with the same values. `folded` returns the shorter form of paper 3.

Not handled: arbitrary datalog programs. A relation is requested where it is first used; the
relations that `or` and `not` add use it again, but at the same nodes. This holds only for programs
that `rules_of` wrote (with or without function rules).

(Paper 3, program 3; paper 1, algorithm 2.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from axlog.errors import QueryError
from axlog.query.atoms import ANSWER, NODE, Atom, Condition, Rule, Rules
from axlog.query.pattern import Variable
from axlog.query.rules import AXES, is_auxiliary

_STEPS = frozenset(AXES.values())
_READ = frozenset({"time", "id", "name", "value"})
"""Relations with one fact for every node: alone they test nothing."""
_TO_PARENT = frozenset({"child", "attribute"})

_ONE, _TWO = Variable("n'"), Variable("n''")


def hat(relation: str) -> str:
    """The top-down relation of a relation: R^_p1 of R_p1."""
    return relation.replace("R_", "R^_", 1)


def magic(rules: Rules, order: Sequence[str] | None = None) -> Rules:
    """The rewritten program, in the order of evaluation except for q, which comes first.

    `order` lists relations (`R_p4`) that precede their siblings, first ones first. The others keep
    the order in which they are written.
    """
    return tuple(_Magic(rules, order or ()).rules())


@dataclass(frozen=True, slots=True)
class _Call:
    """A derived atom of a body, and the step down to its node if there is one."""

    atom: Atom
    step: Atom | None

    def atoms(self, renaming: Mapping[Variable, Variable]) -> Iterator[Atom]:
        for atom in (self.step, self.atom):
            if atom is not None:
                yield _renamed(atom, renaming)


class _Magic:
    def __init__(self, rules: Rules, order: Sequence[str]) -> None:
        self._defining: dict[str, list[Rule]] = {}
        for rule in rules:
            self._defining.setdefault(rule.head.relation, []).append(rule)
        for name in order:
            if name not in self._defining:
                raise QueryError(
                    "AX203",
                    f"the order names {name}, which is no relation of the program",
                    expected=f"some of {', '.join(self._defining)}",
                )
        self._rank = {name: rank for rank, name in enumerate(order)}
        self._asked: set[str] = set()

    def rules(self) -> Iterator[Rule]:
        answers = self._defining[ANSWER]
        yield from answers
        for rule in answers:
            yield from self._below(rule)

    def _below(self, rule: Rule) -> Iterator[Rule]:
        """The rules of the relations that a body uses, branch by branch."""
        cadet: _Call | None = None
        for call in self._ordered(rule):
            name = call.atom.relation
            if name not in self._asked:
                self._asked.add(name)
                yield from self._top_down(rule, cadet, call)
                for each in self._defining[name]:
                    yield from self._below(each)
                yield from self._bottom_up(name)
            if not call.atom.is_negated:
                cadet = call

    def _ordered(self, rule: Rule) -> list[_Call]:
        """The branches of a node, benjamin first; then relations that use them again; then nots.

        The rules of the relations that use branches again keep their order: their last atom need
        not hold where others use the atoms before it.
        """
        steps = {a.terms[1]: a for a in rule.atoms() if a.relation in _STEPS}
        calls = [
            _Call(atom, steps.get(atom.terms[0]))
            for atom in rule.atoms()
            if atom.relation in self._defining
        ]
        if is_auxiliary(rule.head.relation):
            return calls
        last = len(self._rank)

        def place(call: _Call) -> tuple[bool, bool, int]:
            name = call.atom.relation
            return call.atom.is_negated, is_auxiliary(name), self._rank.get(name, last)

        return sorted(calls, key=place)

    def _top_down(self, rule: Rule, cadet: _Call | None, call: _Call) -> Iterator[Rule]:
        """The nodes that request a branch: below its parent, once the cadet has matched."""
        is_below = call.step is not None or not _is_at_node(rule)
        parent = _ONE if is_below else NODE
        renaming = {NODE: parent}
        if cadet is not None and cadet.atom.terms[0] != NODE:
            renaming[_node(cadet.atom)] = _TWO if is_below else _ONE
        body: list[Atom | Condition] = [_renamed(atom, renaming) for atom in _guards(rule)]
        if cadet is not None:
            body += cadet.atoms(renaming)
        if call.step is not None:
            body.append(Atom(call.step.relation, (parent, NODE)))
        head = Atom(hat(call.atom.relation), (NODE,))
        tests = (_tests(each, self._defining) for each in self._defining[call.atom.relation])
        bodies = dict.fromkeys((*body, *test) for test in tests)
        yield from (Rule(head, each, is_distinct=True) for each in bodies)

    def _bottom_up(self, name: str) -> Iterator[Rule]:
        asked = Atom(hat(name), (NODE,))
        defining = self._defining[name]
        for rule in defining:
            is_tested = len(defining) == 1  # else the tests of the other rules admit nodes
            body = _untested(rule, self._defining) if is_tested else _unguarded(rule)
            yield replace(rule, body=(asked, *body))


def _is_at_node(rule: Rule) -> bool:
    """Whether a rule is about a node n: all are, except q where it is at the root element."""
    return rule.head.relation != ANSWER or rule.body[0] == Atom("document", (NODE,))


def _guards(rule: Rule) -> list[Atom]:
    """The atoms that hold of the parent when one of its branches is requested."""
    if rule.head.relation != ANSWER:
        return [Atom(hat(rule.head.relation), (NODE,))]
    return [Atom("document", (NODE,))] if _is_at_node(rule) else []


def _node(atom: Atom) -> Variable:
    node = atom.terms[0]
    assert isinstance(node, Variable), "a derived relation speaks of a node"
    return node


def _renamed(atom: Atom, renaming: Mapping[Variable, Variable]) -> Atom:
    terms = tuple(renaming.get(t, t) if isinstance(t, Variable) else t for t in atom.terms)
    return replace(atom, terms=terms)


def _own(rule: Rule, defined: Mapping[str, object]) -> list[Atom]:
    """The atoms of a rule about its own node, without the one that says it is a node."""
    known = {*_STEPS, "node", *defined}
    return [atom for atom in rule.atoms() if atom.relation not in known]


def _tests(rule: Rule, defined: Mapping[str, object]) -> list[Atom | Condition]:
    """The part of a body that can fail at the node itself."""
    own = _own(rule, defined)
    bound = {variable for atom in own for variable in atom.variables}
    conditions = [
        c for c in rule.body if isinstance(c, Condition) and bound.issuperset(c.variables)
    ]
    asked: list[Atom | Condition] = [*own, *conditions]
    uses = Counter(variable for each in asked for variable in each.variables)
    return [each for each in asked if not _is_read(each) or uses[each.variables[0]] > 1]


def _is_read(each: Atom | Condition) -> bool:
    return isinstance(each, Atom) and each.relation in _READ


def _untested(rule: Rule, defined: Mapping[str, object]) -> list[Atom | Condition]:
    """A body without the atoms that the top-down relation has tested; binding atoms stay."""
    own, tests = _own(rule, defined), _tests(rule, defined)
    rest = [
        each
        for each in _unguarded(rule)
        if not (each in own or (isinstance(each, Condition) and each in tests))
    ]
    used = {variable for each in (rule.head, *rest) for variable in each.variables} - {NODE}
    return [*(atom for atom in own if used.intersection(atom.variables)), *rest]


def _unguarded(rule: Rule) -> list[Atom | Condition]:
    guard = Atom("node", (NODE,))
    return [each for each in rule.body if each != guard]


# The form of paper 3 ------------------------------------------------------------------------------


def folded(rules: Rules) -> Rules:
    """The rewritten program without the atoms that the shape of trees implies, as in paper 3.

    A node has one parent. A leaf that is requested below a parent, without a cadet, therefore needs
    no top-down relation of its own. Where a branch on the axis child has matched, its parent was
    requested.
    """
    by_head: dict[str, list[Rule]] = {}
    for rule in rules:
        by_head.setdefault(rule.head.relation, []).append(rule)
    leaves = {name for name in by_head if _is_foldable(name, by_head)}
    for name in leaves:
        ((asked,), (leaf,)) = by_head.pop(hat(name)), by_head[name]
        by_head[name] = [replace(leaf, body=tuple(dict.fromkeys((*asked.body, *leaf.body[1:]))))]
    shorter = [
        _without_hat(rule, by_head) if name not in leaves else rule
        for name in dict.fromkeys(rule.head.relation for rule in rules)
        for rule in by_head.get(name, ())
    ]
    return tuple(shorter)


def _is_foldable(name: str, by_head: Mapping[str, list[Rule]]) -> bool:
    """Whether a relation is a leaf whose one top-down rule derives each node once."""
    asked, rules = by_head.get(hat(name), []), by_head[name]
    if name == hat(name) or len(asked) != 1 or len(rules) != 1:
        return False
    derived = [a for a in (*asked[0].atoms(), *rules[0].atoms()) if a.relation in by_head]
    steps = {a.relation for a in asked[0].atoms() if a.relation in _STEPS}
    return steps <= _TO_PARENT and all("^" in atom.relation for atom in derived)


def _without_hat(rule: Rule, by_head: Mapping[str, list[Rule]]) -> Rule:
    """A bottom-up rule without its top-down atom, where the facts of a child imply it."""
    asked = Atom(hat(rule.head.relation), (NODE,))
    if rule.body[0] != asked:
        return rule
    steps = {a.terms[1] for a in rule.atoms() if a.relation in _TO_PARENT}
    for atom in rule.atoms():
        if atom.is_negated or atom.relation not in by_head or atom.terms[0] not in steps:
            continue
        sources = by_head.get(hat(atom.relation)) or by_head[atom.relation]
        if all(_asks_as_child(source, asked.relation) for source in sources):
            return replace(rule, body=tuple(sorted(rule.body[1:], key=_stage)))
    return rule


def _stage(each: Atom | Condition) -> int:
    """The order of a body in which the branches find the node."""
    if isinstance(each, Condition) or each.is_negated:
        return 2
    return 1 if _is_read(each) else 0


def _asks_as_child(rule: Rule, parent: str) -> bool:
    first = rule.body[0]
    return isinstance(first, Atom) and first == Atom(parent, (_ONE,))
