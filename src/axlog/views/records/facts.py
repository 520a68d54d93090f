"""The parts of a question that the counting engine keeps: comparisons and attributes.

Each part is a view `match //test#t[part] return t.id` of the document's engine. Its derivation
counts are the numbers of ways in which the part holds at a node. Law: after an update, `after`
returns every node at which a part starts or ceases to hold.
"""

from __future__ import annotations

from axlog.document.delta import Delta
from axlog.errors import QueryError
from axlog.evaluate.joins import Bag
from axlog.query.compile import Relation, compile_pattern
from axlog.query.pattern import Pattern
from axlog.views.counting.engine import CountingEngine


class Fact:
    """The nodes where one part holds, with the number of ways."""

    def __init__(self, step: int, pattern: Pattern, engine: CountingEngine) -> None:
        self.bit = 1 << step
        self.step = step
        self.counts: dict[int, int] = {}
        program = compile_pattern(pattern)
        self._at = program.root.columns.index("t.node")
        self.root: Relation = engine.add(program, self._load)

    def _load(self, rows: Bag) -> None:
        self.counts = {int(row[self._at]): count for row, count in rows.items()}

    def move(self, moved: Bag) -> list[int]:
        """Add a delta; return the nodes at which the part starts or ceases to hold."""
        turned = []
        for row, count in moved.items():
            node = int(row[self._at])
            old = self.counts.get(node, 0)
            if old + count:
                self.counts[node] = old + count
            else:
                del self.counts[node]
            if not old or not old + count:
                turned.append(node)
        return turned


class Facts:
    """All parts of one question."""

    def __init__(self, patterns: list[tuple[int, Pattern]], engine: CountingEngine) -> None:
        self._engine = engine
        self.each = [Fact(step, pattern, engine) for step, pattern in patterns]
        if self.each:
            engine.build()

    def bits(self, node: int) -> int:
        """The steps whose parts hold at a node."""
        found = 0
        for fact in self.each:
            if node in fact.counts:
                found |= fact.bit
        return found

    def before(self, delta: Delta) -> None:
        if self.each:
            self._engine.before(delta)

    def after(self, delta: Delta) -> set[int]:
        """The nodes at which some part starts or ceases to hold."""
        turned: set[int] = set()
        if self.each:
            moved = self._engine.after(delta)
            for fact in self.each:
                turned.update(fact.move(moved.get(fact.root, {})))
        return turned

    @property
    def broken(self) -> QueryError | None:
        """The error for which some part was set aside."""
        found = (self._engine.refusal(fact.root) for fact in self.each)
        return next((error for error in found if error is not None), None)

    def close(self) -> None:
        for fact in self.each:
            self._engine.drop(fact.root)
