"""What the algebraic views of one document share: an update's delta tables, and snowcaps."""

from __future__ import annotations

from time import thread_time

from axlog.document.delta import Delta
from axlog.document.tree import Tree
from axlog.evaluate.columns import columns_of
from axlog.views.algebraic.deltas import DeltaTables, tables_of
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

    def before(self, delta: Delta) -> DeltaTables:
        """CD- and CD+; made for the first view that asks."""
        tables = self._tables
        if tables is None or tables.delta is not delta:
            start = thread_time()
            with columns_of(self.tree) as columns:
                tables = self._tables = tables_of(columns, delta)
                self._has_come = False
                self.walked += tables.size
                middle = thread_time()
                if self._version != self.tree.version:
                    self.lattice.forget()  # it was not shown every update
                self.lattice.before(columns, tables)
            self.times = {"delta tables": middle - start, "lattice": thread_time() - middle}
        return tables

    def after(self, delta: Delta) -> DeltaTables:
        """The same once the update is applied: snowcaps have followed."""
        tables = self._tables
        assert tables is not None
        assert tables.delta is delta
        if not self._has_come:
            self._has_come = True
            self._version = self.tree.version
            if len(self.lattice):
                start = thread_time()
                with columns_of(self.tree) as columns:
                    self.lattice.follow(columns, tables)
                self.times["lattice"] += thread_time() - start
        return tables
