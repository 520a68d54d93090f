"""The counting maintainer of a query with steps: deltas of the root relation through operators.

    signed bag of bindings -> values of the pattern's outputs -> operators -> rows of the view

The rows of the pattern are not kept, unless they show ids, values or contents: a change below a
node must find the rows that show it, and a deleted node has no id any more. Messages that become no
nodes take the same path.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from axlog.document.delta import Delta
from axlog.document.tree import Tree
from axlog.errors import StoreError
from axlog.evaluate.joins import Bag, add
from axlog.views.change import Change, Row
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.maintainer import Counting
from axlog.views.step_cut import FinalSteps, LocalSteps, Owns, StepCut
from axlog.views.step_rows import Stepping, StepRows
from axlog.views.value_codec import restored_row, saved_row


class SteppedCounting(Counting):
    """Keeps the rows of a query with steps by derivation counts and operators."""

    def __init__(
        self,
        tree: Tree,
        stepping: Stepping,
        engine: CountingEngine | None = None,
        work: int | None = None,
    ) -> None:
        self.stepping = stepping
        self._owns: Owns | None = None
        self._final: FinalSteps | None = None
        self._parts: tuple[Owns, ...] = ()
        self._start()
        super().__init__(tree, stepping.key.pattern, engine, work)

    def _start(self) -> None:
        self.chain = self.stepping.chain(self.stepping.key.pattern.columns)
        self.kept = StepRows(self.stepping.key, self.chain.first())
        self._path = self.chain.group_path()

    def _load(self, first: Bag) -> None:
        values = self._values_of(first)
        if self._final is not None:
            self._final.load(values, self._parts)
        elif self._owns is not None:  # the final steps start with the rows of all parts
            self.chain.apply({row: count for row, count in values.items() if self._owns(row)})
        else:
            self.kept.take(self.chain.apply(values))

    # Parts ----------------------------------------------------------------------------------------

    def run_local(self, cut: StepCut, owns: Owns) -> LocalSteps:
        """Run the steps of one part only; `owns`: its rows of the initial document.

        To be called before the first rows are computed.
        """
        key, text = self.stepping.key, self.stepping.text
        local = LocalSteps(key, cut, text)
        self.chain, self.kept, self._path = cut.local_chain(key.pattern.columns, text), local, None
        self._owns = owns
        return local

    def run_final(self, cut: StepCut, parts: Iterable[Owns]) -> FinalSteps:
        """Run the steps over all parts only; what the parts give passes by `FinalSteps.merge`."""
        final = FinalSteps(self.stepping.key, cut, self.stepping.text)
        self.chain, self.kept, self._path = final.chain, final.rows, None
        self._final, self._parts = final, tuple(parts)
        return final

    def recount(self, whole: Bag) -> None:
        """Compute all rows again from the whole document. They must be the same."""
        before = self.kept.counts
        self._start()
        self._counts.clear()
        self._values.clear()
        self._shown_by.clear()
        self._load(whole)
        if self.kept.counts != before:
            raise AssertionError("filters have changed the rows of a view")  # law 5

    def rows(self) -> Iterable[Row]:
        self.engine.build(self.root)
        return self.kept.rows()

    def size(self) -> int:
        self.engine.build(self.root)
        return len(self.kept.counts)

    @property
    def has_rows(self) -> bool:
        return self.size() > 0

    def after(self, delta: Delta) -> list[Change]:
        moved = self.engine.after(delta).get(self.root, {})
        if self.broken is not None:  # just now
            return []
        values = self._values_of(moved)
        if self._show.reads:
            for node in self._touched.union(self._above(delta)):
                for binding in tuple(self._shown_by.get(node, ())):
                    self._read_again(binding, values)
        return self.kept.take(self.chain.apply(values))

    def take(self, moved: Bag) -> list[Change]:
        path = self._path
        if path is not None and len(moved) == 1 and not self._show.needs_nodes:
            ((binding, count),) = moved.items()
            row = path.before(self._show.values(binding))
            if row is None:
                return []
            old, new = path.put(row, count)
            if old is new:
                return []
            return self.kept.move(
                None if old is None else path.after(old), None if new is None else path.after(new)
            )
        return self.kept.take(self.chain.apply(self._values_of(moved)))

    def _values_of(self, moved: Bag) -> Bag:
        """A delta of bindings as a delta of the values that the pattern shows."""
        show, found = self._show.values, dict[Any, int]()
        if not self._show.needs_nodes:
            for binding, count in moved.items():
                add(found, show(binding), count)
            return found
        counts = self._counts
        for binding, count in moved.items():
            old = counts.get(binding, 0)
            if not old:
                self._enter(binding)
            add(found, self._values[binding], count)
            if old + count:
                counts[binding] = old + count
            else:
                del counts[binding]
                self._leave(binding)
        return found

    def _read_again(self, binding: Any, found: Bag) -> None:
        """Add the difference that a changed value of a node makes."""
        before, after = self._values[binding], self._show.values(binding)
        if before != after:
            self._values[binding] = after
            add(found, before, -self._counts[binding])
            add(found, after, self._counts[binding])

    def operators(self) -> tuple[str, ...]:
        return (*super().operators(), *self.chain.lines())

    # State without the document -------------------------------------------------------------------

    def state(self) -> tuple[Any, ...]:
        """The state of the operators and the rows, for documents that keep no messages."""
        self.engine.build(self.root)
        tables = tuple(
            (form, tuple(tuple(map(saved_row, table)) for table in each))
            for form, each in self.chain.snapshot()
        )
        return tables, tuple(map(saved_row, self.kept.counts.items()))

    def restore(self, saved: Sequence[Any]) -> None:
        """Replace the state of the operators and the rows."""
        self.engine.build(self.root)
        try:
            tables, rows = saved
            self.chain.restore(
                [
                    (form, tuple(tuple(map(restored_row, table)) for table in each))
                    for form, each in tables
                ]
            )
            self.kept.counts = dict(map(restored_row, rows))
        except ValueError:
            raise StoreError(
                "AX872",
                "the saved state is of another query",
                advice="run the version that wrote it, or start again without this state",
            ) from None
