"""Relations whose rows at a node are its own value beside the rows of one part, or alone.

Most relations are such products. They are evaluated here without a join plan. Law: the rows are
those of `Interpreter.at_node`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from axlog.document.tree import Tree
from axlog.evaluate.gathered import Bags
from axlog.evaluate.joins import FEW, Bag, JoinPlan, Row
from axlog.query.compile import Relation

_Product = tuple[Relation | None, str | None, Callable[[Row], Row] | None]
"""The relation of the one edge, the source of the one own column, and what picks the columns of a
row; each None if there is none, or if all are kept."""
_EMPTY: Bag = {}
_ONE: Bag = {(): 1}


class Products:
    """The products among some relations."""

    def __init__(self) -> None:
        self._known: dict[Relation, _Product | None] = {}

    def add(self, relation: Relation, plan: JoinPlan, has_comparisons: bool) -> None:
        """Add a relation, whether it is a product or not."""
        self._known[relation] = None
        if not plan.is_product or has_comparisons or len(relation.own) > 1:
            return
        inside = relation.edges[0].relation if relation.edges else None
        is_same = tuple(plan.layout) == tuple(relation.columns)
        source = relation.own[0][1] if relation.own else None
        self._known[relation] = inside, source, None if is_same else plan.finish.output

    def at_node(
        self, tree: Tree, node: int, relations: Iterable[Relation], below: Bags
    ) -> Bags | None:
        """The rows at a node, given those of its children; None: one is no product of few rows."""
        known, here = self._known, Bags()
        for relation in relations:
            product = known[relation]
            if product is None:
                return None
            inside, source, pick = product
            if inside is None:
                bag = _ONE
            else:
                bag = below.get(inside, _EMPTY)
                if not bag:
                    continue
                if len(bag) > FEW:
                    return None
            own = () if source is None else (own_value(tree, node, source, None),)
            if pick is None:
                here[relation] = {own + row: count for row, count in bag.items()}
                continue
            found: Bag = {}
            for row, count in bag.items():
                shown = pick(own + row)
                found[shown] = found.get(shown, 0) + count
            here[relation] = found
        return here


def own_value(tree: Tree, node: int, source: str, value: str | None) -> str | int:
    """The value of a column of the node itself; `value`: its string value, if it is known."""
    match source:
        case "label":
            return tree.label(node)
        case "value":
            return tree.string_value(node) if value is None else value
        case "time":
            return tree.time(node)
        case _:
            return node
