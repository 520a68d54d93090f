"""`union`, `intersect` and `except` of nodes, as collections.

The nodes of an operand are a collection by node. `A intersect B` and `A except B` are the nodes of
A that a look-up in B finds, or does not find. `A union B` has its own source: the keys of both.
"""

from __future__ import annotations

from collections.abc import Callable

from axlog.query.plan import Index, UnionOf
from axlog.query.plan_rewrites import has_positional_filter, is_absolute, references_in
from axlog.query.plan_sources import Block, PlanBuilder
from axlog.query.syntax_tree import (
    Binary,
    Call,
    Expression,
    Flwor,
    For,
    Kept,
    Path,
    Reference,
    Where,
    operands,
)

SETS = ("|", "intersect", "except")


class SetCompiler:
    """Compiles operators of node sets; `collected` makes a collection without keys and rest."""

    def __init__(self, builder: PlanBuilder, collected: Callable[[Expression], int | None]) -> None:
        self._builder = builder
        self._collected = collected

    def query(self, value: Binary) -> Flwor | None:
        """`intersect` or `except` as a query over its left operand, with a look-up in the right."""
        left, right = value.left, value.right
        if value.operator == "intersect" and not self._is_alone(right):
            left, right = right, left
        number = self._by_node(right)
        if number is None:
            return None
        name = self._builder.new_name()
        self._builder.kinds[name] = "untyped"
        here = Path(Reference(name, value.at), (), value.at)
        found = Kept(number, 0, "all", (here,), value.at)
        function = "exists" if value.operator == "intersect" else "empty"
        held = Where(Call(function, (found,), value.at), value.at)
        return Flwor((For(name, left, value.at), held), here, value.at)

    def union(self, value: Binary, variable: str) -> Block | None:
        """`union` as a source; its nodes are those of any operand."""
        numbers = []
        for operand in operands(value, "|"):
            number = self._by_node(operand)
            if number is None:
                return None
            numbers.append(number)
        self._builder.kinds[variable] = "untyped"
        return Block(UnionOf(tuple(numbers), variable), variable=variable)

    def _is_alone(self, value: Expression) -> bool:
        return is_absolute(value) and not references_in(value) - self._builder.given

    def _by_node(self, value: Expression) -> int | None:
        """A collection of the nodes of an operand, by node."""
        if not self._is_alone(value) or not _is_nodes(value):
            return None
        number = self._collected(value)
        if number is None:
            return None
        collection = self._builder.collections[number]
        if collection.index.kind != "one" or len(collection.outputs) != 1:
            return None
        collection.index = Index("node", (collection.outputs[0].value,))
        return number


def _is_nodes(value: Expression) -> bool:
    match value:
        case Path(steps=steps):
            return not any(isinstance(step, Call) for step in steps[-1:]) and not (
                has_positional_filter(steps)
            )
        case Binary(operator=operator):
            return operator in SETS
    return False
