"""Formulas as documents and queries: the reductions from 3SAT in the papers' hardness proofs.

A formula is a list of clauses, a clause a tuple of literals: v, or -v for a negated variable.

    at_most_one   paper 1, theorem 3 (and 4, with types): the query can hold iff the formula can
    usefulness    paper 1, theorem 5 (and paper 2, theorem 8): the call h is relevant iff it can
"""

from __future__ import annotations

from itertools import product
from random import Random

Clause = tuple[int, ...]
_CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"{}/>'


def random_formula(random: Random, variables: int, clauses: int) -> list[Clause]:
    """Clauses of three different variables, or of all where there are fewer."""
    size = min(3, variables)
    return [
        tuple(v * random.choice((1, -1)) for v in random.sample(range(1, variables + 1), size))
        for _ in range(clauses)
    ]


def holds(clauses: list[Clause], assignment: tuple[bool, ...]) -> bool:
    """Whether an assignment satisfies all clauses."""
    return all(any(assignment[abs(each) - 1] == (each > 0) for each in c) for c in clauses)


def is_satisfiable(variables: int, clauses: list[Clause]) -> bool:
    """Whether some assignment does, by trying all of them."""
    return any(holds(clauses, each) for each in product((False, True), repeat=variables))


def _where(clauses: list[Clause], literal: int) -> str:
    """The clauses that a literal occurs in, as elements."""
    return "".join(f"<c{number}/>" for number, clause in enumerate(clauses) if literal in clause)


def at_most_one(variables: int, clauses: list[Clause], facts: str = ' most="1"') -> tuple[str, str]:
    """A document and a query; a call brings 0 or 1, and `facts`, or a type, prevents both."""
    parts = "".join(
        f"<x{v}><x>{_where(clauses, v)}{_CALL.format(f'p{v}', facts)}</x>"
        f"<n>{_where(clauses, -v)}{_CALL.format(f'n{v}', facts)}</n></x{v}>"
        for v in range(1, variables + 1)
    )
    each = "".join(f"[x{v}[*/_0][*/_1]]" for v in range(1, variables + 1))
    every = "".join(f"[*/*[c{number}][_1]]" for number in range(len(clauses)))
    return f"<r>{parts}</r>", f"match /r{each}{every}"


def usefulness(variables: int, clauses: list[Clause]) -> tuple[str, str]:
    """A document with a call h, and a query."""
    parts = "".join(
        f"<a><a>{_where(clauses, -v)}<_0/><a>{_CALL.format(f'h{v}n', '')}</a></a>"
        f"<a>{_where(clauses, v)}<_1/><a>{_CALL.format(f'h{v}p', '')}</a></a></a>"
        for v in range(1, variables + 1)
    )
    last = f"<a><a><_1/><a><_1/></a></a><a><_0/><a>{_CALL.format('h', '')}</a></a></a>"
    each = "".join(f"[a/a[c{number}][a/_1]]" for number in range(len(clauses)))
    return f"<r>{parts}{last}</r>", f"match /r{each}[a[a[_1][a/_1]][a[_0][a/_1]]]"
