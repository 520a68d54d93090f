"""The items of views that are kept as rows of a pattern: read from the document on request.

A row of a pattern is a set of derivations, and the result of a query is a sequence in which an item
may occur twice. So the items of a pattern view are those of the query's plan, evaluated when they
are asked for and cached until the document changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from axlog.document.tree import Tree
from axlog.query.query import Query
from axlog.views.counting.engine import CountingEngine
from axlog.views.dataflow.maintainer import Dataflow


class ItemReader:
    """The items of one query over a tree."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._version = -1
        self._items: list[Any] = []

    def items(self, tree: Tree, rejects: bool = False) -> list[Any]:
        """The items, in the order of the query; `rejects`: raise the error of one without value."""
        if self._version != tree.version:
            query = replace(self._query, plan=self._query.item_plan)
            self._items = Dataflow(tree, query, CountingEngine(tree), rejects=rejects).items()
            self._version = tree.version
        return list(self._items)
