"""Atoms and rules of non-recursive datalog, immutable and printable.

    R_p4(n, x) <- label(b, n), child(n, n'), R_p5(n', x)

A body holds atoms, negated atoms (`not R(n, x)`) and conditions (`t2 - t1 >= 50000`). Terms are
variables, constants of `label` (a bare name for an element, a quoted string for a text, `*` for any
element) and `?`, a value that has not arrived yet. A fact of an `is_distinct` rule counts once,
however many derivations it has. `rules.py` lists the relations. (Notation: paper 3.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from axlog.query.pattern import (
    Comparison,
    Constraint,
    Literal,
    Name,
    TimeConstraint,
    Variable,
    Wildcard,
)


@dataclass(frozen=True, slots=True)
class Unknown:
    """`?`: a value that has not arrived yet (paper 1, section 4)."""

    def __str__(self) -> str:
        return "?"


Term: TypeAlias = Variable | Name | Literal | Wildcard | Unknown

NODE = Variable("n")
ANYTHING = Variable("_")
ANSWER = "q"


@dataclass(frozen=True, slots=True)
class Atom:
    """A relation of some terms; with `is_negated`, its negation."""

    relation: str
    terms: tuple[Term, ...]
    is_negated: bool = False

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(t for t in self.terms if isinstance(t, Variable) and t != ANYTHING)

    def __str__(self) -> str:
        text = f"{self.relation}({', '.join(map(_term_text, self.terms))})"
        return f"not {text}" if self.is_negated else text


@dataclass(frozen=True, slots=True)
class Condition:
    """A built-in atom: a constraint over variables, in the order of `Test.columns`."""

    constraint: Constraint
    variables: tuple[Variable, ...]

    def __str__(self) -> str:
        names = [variable.name for variable in self.variables]
        constraint = self.constraint
        if isinstance(constraint, TimeConstraint):
            coefficients = (coefficient for coefficient, _ in constraint.terms)
            return str(replace(constraint, terms=tuple(zip(coefficients, names, strict=True))))
        if isinstance(constraint.right, Variable):
            return f"{names[0]} {constraint.operator} {names[1]}"
        return f"{names[0]} {Comparison(constraint.operator, constraint.right)}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A head that holds wherever the body does."""

    head: Atom
    body: tuple[Atom | Condition, ...]
    is_distinct: bool = False

    def text(self, arrow: str = "<-") -> str:
        return f"{self.head} {arrow} {', '.join(map(str, self.body))}"

    def __str__(self) -> str:
        return self.text()

    def atoms(self) -> Iterator[Atom]:
        return (each for each in self.body if isinstance(each, Atom))


Rules: TypeAlias = tuple[Rule, ...]


def _term_text(term: Term) -> str:
    match term:
        case Variable(name=name):
            return name
        case Name(label=label):
            return f"Q{label}" if label.startswith("{") else label
        case Wildcard():
            return "*"
        case Literal(text=text):
            doubled = text.replace('"', '""')
            return f'"{doubled}"'
        case Unknown():
            return str(term)
