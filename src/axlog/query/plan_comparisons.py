"""Comparisons between a tuple and the tuples of another collection, as indexes of the collection.

`inner = outer` is a look-up by value. `inner < outer` and so on is a range in the order of values:
of two sequences, the greatest of one side is compared with the least of the other. `not` of such a
comparison is the rest of the order, with the tuples that have no value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from axlog.query.plan import Index
from axlog.query.plan_rewrites import is_absolute, references_in
from axlog.query.plan_sources import PlanBuilder
from axlog.query.syntax_tree import (
    Binary,
    Call,
    Clause,
    Expression,
    Flwor,
    For,
    Path,
    Reference,
    Where,
)
from axlog.query.value_kinds import is_double, kind_of_value

GENERAL = ("=", "<", "<=", ">", ">=")
"""Comparisons of sequences that an index decides."""
_MIRRORED = {
    "=": "=", "eq": "eq", "<": ">", "<=": ">=", ">": "<", ">=": "<=",
    "lt": "gt", "le": "ge", "gt": "lt", "ge": "le",
}  # fmt: skip
_OF_VALUES = {"eq": "=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_TEXTS = ("untyped", "string")


class ComparisonCompiler:
    """Finds indexes; `rewritten` puts look-ups into the expressions of a tuple."""

    def __init__(self, builder: PlanBuilder, rewritten: Callable[[Any], Any]) -> None:
        self._builder = builder
        self._rewritten = rewritten

    def index(self, clause: Clause, own: set[str]) -> tuple[Index, tuple[Expression, ...]] | None:
        """The index for a comparison of an inner value with an outer one, and the outer value."""
        match clause:
            case Where(condition=Binary() as condition):
                return self._of_comparison(condition, own, is_negated=False)
            case Where(condition=Call(name="not", arguments=(Binary() as condition,))):
                return self._of_comparison(condition, own, is_negated=True)
        return None

    def _of_comparison(
        self, condition: Binary, own: set[str], is_negated: bool
    ) -> tuple[Index, tuple[Expression, ...]] | None:
        if condition.operator not in (GENERAL if is_negated else _MIRRORED):
            return None
        given = self._builder.given
        for inner, outer, operator in (
            (condition.left, condition.right, _MIRRORED[condition.operator]),
            (condition.right, condition.left, condition.operator),
        ):
            is_inner = references_in(inner) - given <= own and references_in(inner) & own
            if is_inner and not references_in(outer) & own:
                return self._compared(inner, outer, operator, is_negated)
        return None

    def _compared(
        self, inner: Expression, outer: Expression, operator: str, is_negated: bool
    ) -> tuple[Index, tuple[Expression, ...]] | None:
        kinds = self._builder.kinds
        found = {kind_of_value(inner, kinds), kind_of_value(outer, kinds)}
        is_text = found <= set(_TEXTS)
        is_value = operator in _OF_VALUES
        is_number = (found == {"untyped", "number"} and not is_value) or (
            found == {"number"} and (is_double(inner, kinds) or is_double(outer, kinds))
        )
        general = _OF_VALUES.get(operator, operator)
        if not (is_text or is_number) or (is_negated and general == "="):
            return None
        values, keys = (self._rewritten(inner),), (self._rewritten(outer),)
        if general == "=":
            return Index("string" if is_text else "number", values), keys
        return Index("order", values, general, is_number, is_negated), keys

    def first(
        self, clauses: Sequence[Clause], own: set[str]
    ) -> tuple[int, tuple[Index, tuple[Expression, ...]] | None]:
        """The condition at the beginning of clauses that becomes an index: an equality first."""
        conditions = list(takewhile(lambda clause: isinstance(clause, Where), clauses))
        for at in sorted(range(len(conditions)), key=lambda at: not _is_equality(conditions[at])):
            joined = self.index(conditions[at], own)
            if joined is not None:
                return at, joined
        return 0, None

    def loop(self, value: Binary) -> Flwor | None:
        """`outer operator //path`: a query that finds the items of the path for which it holds."""
        for absolute, other, operator in (
            (value.left, value.right, value.operator),
            (value.right, value.left, _MIRRORED[value.operator]),
        ):
            is_alone = isinstance(absolute, Path | Flwor) and is_absolute(absolute)
            if is_alone and references_in(other) - self._builder.given and not is_absolute(other):
                name = self._builder.new_name("v")
                here = Path(Reference(name, value.at), (), value.at)
                held = replace(value, operator=operator, left=here, right=other)
                loop = For(name, absolute, value.at)
                return Flwor((loop, Where(held, value.at)), here, value.at)
        return None


def _is_equality(clause: Clause) -> bool:
    match clause:
        case Where(condition=Binary(operator="=" | "eq")):
            return True
    return False
