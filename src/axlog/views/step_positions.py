"""The operators that choose nodes by their positions among their siblings."""

from __future__ import annotations

from axlog.evaluate.joins import Bag, Row, picker
from axlog.query.steps import Chosen
from axlog.views.operators.feed import Feed
from axlog.views.operators.map import Map
from axlog.views.operators.operator import Operator, Source
from axlog.views.operators.semi_join import SemiJoin
from axlog.views.operators.top import Top


def chosen_operators(chosen: Chosen, joined: SemiJoin) -> list[Operator]:
    """The operators from the ids of siblings to those at the chosen positions of their parents.

    The last one is the right side of the semi join that reads them.
    """
    last: Source = Feed(chosen.pattern.columns, _nothing)
    made: list[Operator] = [Map(last, ("parent", "id"), _with_parent, ())]
    for start, stop in chosen.slices:
        made.append(Top(made[-1], _document_order, start, stop, ("parent",), tie=_no_tie))
    return [*made, Map(made[-1], (chosen.column,), picker((1,)), ()), joined.right]


def _with_parent(row: Row) -> Row:
    return row[0].parent, row[0]  # type: ignore[union-attr]


def _document_order(row: Row) -> bytes:
    found: bytes = row[1].key  # type: ignore[union-attr]
    return found


def _no_tie(row: Row) -> tuple[()]:
    return ()


def _nothing(columns: tuple[str, ...], key: Row) -> Bag:
    return {}
