"""The data that open calls may insert, as rules: `R_p(n, ?, ...) <- function(n)`.

A call may insert, as its siblings, trees that match any sub-pattern. Wherever a rule looks for R_p
at the end of an axis, an open call there satisfies it, with unknown values. `function(n)` has the
value `annotation.call`: under the three values such facts are possible, under counts there are
none.

Law: under `TRUTHS`, the greatest value of a row of q is the truth of the query. The preconditions
are checked here, and every other rule is refused with an error that names the reason:

- no `not`, no joins, no constraints: min and max do not see that two unknowns must agree;
- every sub-pattern alone matches some tree: so no value tests, no `self` steps with a test, nothing
  below the test of an attribute or a text.

A message holds elements, not texts: `child(n, n'), R_p(n')` with a test for texts gets no rule. The
number of trees that a call may insert (`most`) is not counted, except that a call that has inserted
all of them is closed.

(Paper 2, section 3; paper 1, algorithm 2 and theorem 1.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from axlog.errors import UndecidedError
from axlog.query.atoms import ANSWER, NODE, Atom, Condition, Rule, Rules, Unknown
from axlog.query.pattern import Literal, Name, Variable
from axlog.query.rules import AXES

_STEPS = frozenset(AXES.values())


def with_functions(rules: Rules) -> Rules:
    """The rules of a pattern, followed by one for each relation that a call may satisfy."""
    _check(rules)
    heads = {rule.head.relation: rule.head for rule in rules}
    texts = {rule.head.relation for rule in rules if _tests_text(rule)}
    added = {
        target: _function_rule(heads[target])
        for rule in rules
        for step, target in steps(rule)
        if step != "attribute" and not (step == "child" and target in texts)
    }
    return (*rules, *added.values())


def steps(rule: Rule) -> Iterator[tuple[str, str]]:
    """The axes of a body, each with the relation at its end."""
    ends = {atom.terms[1]: atom.relation for atom in rule.atoms() if atom.relation in _STEPS}
    for atom in rule.atoms():
        if atom.relation.startswith("R_") and atom.terms[0] in ends:
            yield ends[atom.terms[0]], atom.relation


def _function_rule(head: Atom) -> Rule:
    unknown = Atom(head.relation, (NODE, *(Unknown() for _ in head.terms[1:])))
    return Rule(unknown, (Atom("function", (NODE,)),))


def _tests_text(rule: Rule) -> bool:
    atoms = (atom for atom in rule.atoms() if atom.relation != "instruction")
    return any(a.relation == "text" or isinstance(a.terms[0], Literal) for a in atoms)


def _tests_markup(rule: Rule) -> bool:
    return any(atom.relation in ("comment", "instruction") for atom in rule.atoms())


def _tests_attribute(rule: Rule) -> bool:
    names = (atom.terms[0] for atom in rule.atoms() if atom.relation == "label")
    return any(isinstance(name, Name) and name.label.startswith("@") for name in names)


def _check(rules: Rules) -> None:
    tested = {
        rule.head.relation
        for rule in rules
        for a in rule.atoms()
        if a.relation in ("label", "text", "comment", "instruction", "any")
    }
    for rule in rules:
        reason = _obstacle(rule, tested)
        if reason is not None:
            raise UndecidedError(
                "AX503",
                f"three values do not decide a query with {reason}",
                expected="a pattern of labels and steps, without not, joins and constraints",
            )


def _obstacle(rule: Rule, tested: set[str]) -> str | None:
    """The reason why min and max would not be exact for a rule, or None."""
    atoms = list(rule.atoms())
    if any(atom.is_negated for atom in atoms):
        return "not(...)"
    if any(isinstance(each, Condition) for each in rule.body):
        return "constraints"
    if any(atom.relation == "value" for atom in atoms):
        return "tests of values"
    if _joins(rule):
        return "joins"
    if _tests_markup(rule):
        return "comments or processing instructions, which a call brings inside or beside elements"
    is_leaf = _tests_text(rule) or _tests_attribute(rule)
    if is_leaf and any(a.relation in _STEPS for a in atoms):
        return "a pattern below an attribute or a text"
    at_self = (a.relation for a in atoms if rule.head.relation != ANSWER and a.terms[0] == NODE)
    if any(relation in tested for relation in at_self):
        return "a test on the axis self"
    return None


def _joins(rule: Rule) -> bool:
    """Whether a variable for a value, rather than a node, occurs twice in the body."""
    seen: Counter[Variable] = Counter()
    for atom in rule.atoms():
        is_derived = atom.relation.startswith("R_")
        seen.update(atom.variables[1:] if is_derived else _values(atom))
    return any(count > 1 for count in seen.values())


def _values(atom: Atom) -> tuple[Variable, ...]:
    """The variables of an extensional atom that are values: all but nodes."""
    is_valued = atom.relation in ("label", "time", "value", "name", "id")
    return atom.variables[:1] if is_valued and len(atom.variables) == 2 else ()
