"""What the algebraic views of one document share: an update's delta tables, and snowcaps."""

from __future__ import annotations

from time import thread_time

from axlog.document.delta import Delta
from axlog.document.tree import Tree
from axlog.evaluate.columns import Columns
from axlog.views.algebraic import deltas
from axlog.views.algebraic.deltas import DeltaTables
from axlog.views.algebraic.lattice import Lattice


class AlgebraicEngine:
    """One for a document."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._tables: DeltaTables | None = None
        self._has_come = False
        self.lattice = Lattice()
        self._version = tree.version
        self.times: dict[str, float] = {}  # of the last update, seconds by step
        self.walked = 0  # nodes that delta tables were made of since the start

    def before(self, columns: Columns, delta: Delta) -> DeltaTables:
        """CD-: the tables of what goes; made for the first view that asks."""
        if self._tables is None or self._tables.delta is not delta:
            start = thread_time()
            self._tables, self._has_come = deltas.before(columns, delta), False
            self.walked += self._tables.size
            middle = thread_time()
            if self._version != self.tree.version:
                self.lattice.forget()  # it was not shown every update
            self.lattice.before(columns, self._tables)
            self.times = {"delta tables": middle - start, "lattice": thread_time() - middle}
        return self._tables

    def after(self, columns: Columns, delta: Delta) -> DeltaTables:
        """CD+: with what has come."""
        tables = self._tables
        assert tables is not None
        assert tables.delta is delta
        if not self._has_come:
            start = thread_time()
            deltas.after(self.tree, tables)
            self._has_come = True
            self.walked += len(tables.added.nodes)
            middle = thread_time()
            self.lattice.follow(columns, tables)
            self.times["delta tables"] += middle - start
            self.times["lattice"] += thread_time() - middle
            self._version = self.tree.version
        return tables
