"""How the changes of a view are put in order and shown, as its key and its steps say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from axlog.evaluate.joins import picker
from axlog.query.pattern import Kind
from axlog.query.row_key import RowKey
from axlog.query.steps import clock_of, order_of
from axlog.views.change import splitter


class KeyForm:
    """What follows from the key of a view. Members of a family with the same key have one."""

    __slots__ = ("key", "order", "pick", "reads_clock", "shows_ids", "split", "splits")

    def __init__(self, key: RowKey) -> None:
        from axlog.views.step_chain import sort_order

        self.key = key
        self.reads_clock = clock_of(key.steps) is not None
        """Whether time changes rows."""
        order = order_of(key.steps)
        self.order: Callable[[Any], Any] | None = (
            None if order is None else sort_order(order, key.kept)
        )
        self.splits = not key.is_all
        """Whether rows need a separate key."""
        self.shows_ids = any(output.kind is Kind.ID for output in key.pattern.outputs)
        self.pick, self.split = picker(key.positions), splitter(key)
