"""The state that the algebraic views of a document share: delta tables, snowcaps, contents.

Law: an update is walked once, however many views it concerns. An engine that missed an update
builds its snowcaps and contents again."""

from __future__ import annotations

from collections.abc import Callable

from axlog.document.delta import Delta
from axlog.document.tree import Tree
from axlog.evaluate.columns import NOTHING, columns_of
from axlog.views.algebraic.deltas import DeltaTables, tables_of
from axlog.views.algebraic.lattice import Lattice
from axlog.views.contents import Contents


def _unmeasured() -> float:
    return 0.0


class AlgebraicEngine:
    """The shared state; one per document."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._tables: DeltaTables | None = None
        self._is_applied = False
        self.lattice = Lattice()
        self.contents = Contents(tree)
        self._version = tree.version
        self.clock: Callable[[], float] = _unmeasured
        """The clock that measures steps; by default none, because reading a clock costs time."""
        self.times = {"delta tables": 0.0, "lattice": 0.0}  # of the last update, by step
        self.walked = 0  # nodes in delta tables since the start

    def before(self, delta: Delta) -> DeltaTables:
        """The delta tables of an update; built for the first view that needs them."""
        tables = self._tables
        if tables is None or tables.delta is not delta:
            clock = self.clock
            start = clock()
            tables = self._tables = tables_of(self.tree, delta)
            self._is_applied = False
            self.contents.settle()
            self.walked += tables.size
            middle = clock()
            self._set_up_snowcaps(tables)
            if clock is not _unmeasured:
                self.times = {"delta tables": middle - start, "lattice": clock() - middle}
        return tables

    def after(self, delta: Delta) -> DeltaTables:
        """The delta tables after the update is applied; the snowcaps have followed it."""
        tables = self._tables
        assert tables is not None
        assert tables.delta is delta
        if not self._is_applied:
            self._is_applied = True
            self._version = self.tree.version
            self._follow_contents(tables)
            if len(self.lattice):
                start = self.clock()
                with columns_of(self.tree) as columns:
                    self.lattice.follow(columns, tables)
                self.times["lattice"] += self.clock() - start
        return tables

    def _follow_contents(self, tables: DeltaTables) -> None:
        touched = NOTHING
        if self.contents:
            with columns_of(self.tree) as columns:
                touched = tables.touched(columns)
        self.contents.follow(
            touched, tables.removed.nodes, tables.added.copies, tables.delta.blocks
        )

    def _set_up_snowcaps(self, tables: DeltaTables) -> None:
        if self._version != self.tree.version:
            self.lattice.forget()  # it missed an update
        if len(self.lattice):
            with columns_of(self.tree) as columns:
                self.lattice.before(columns, tables)
