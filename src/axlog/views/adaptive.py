"""The choice between counting and algebraic, made again for each update.

Both algorithms keep the same view, so the view may switch between them from one update to the next.
A switch must set up the state of the other algorithm. Counting has a cost for each operation. The
algebra mostly has a cost for each statement. It is cheapest where one node identifies a row
(`algebraic.direct`): by measurement (`lab bench choice`; the `Prices` below are of one machine, and
only their ratios matter) it is then cheaper for a single operation too. Where the algebra uses
tables, two or three operations cost the same with both algorithms, and a thousand operations cost a
hundredth. Counting takes longer to set up.

The choice is a rent-or-buy problem. The view starts with the algebra, which is quick to set up.
Where counting costs less for a single operation, and keeps nothing but the rows of the view, the
view starts with counting, which takes the rows from the algebra. Every update that the other
algorithm would have processed at a lower cost adds the difference to a regret. When the regret
reaches the setup cost of the other algorithm, the view switches. The total cost is at most about
twice the cost of the best choice in hindsight. An update that concerns no row costs both algorithms
the same, and so adds nothing; this is asked only where the view would switch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat

from axlog.document.delta import Delta
from axlog.document.tree import Tree
from axlog.errors import QueryError
from axlog.evaluate.joins import Bag
from axlog.query.pattern import Branch, Kind, Pattern, PatternNode
from axlog.views.algebraic.direct import identifying_node
from axlog.views.algebraic.engine import AlgebraicEngine
from axlog.views.algebraic.labels import may_concern, may_flip_guards
from axlog.views.algebraic.maintainer import Algebraic
from axlog.views.algebraic.shape import shape_of
from axlog.views.algebraic.tables import node_column
from axlog.views.change import Change, Row
from axlog.views.counting.maintainer import Counting, column_of
from axlog.views.maintainer import Maintainer
from axlog.views.prices import MEASURED, Costs, Prices


class Adaptive(Maintainer):
    """Keeps a view by the cheaper of two algorithms, depending on the updates."""

    name = "adaptive"

    def __init__(
        self,
        tree: Tree,
        pattern: Pattern,
        engine: AlgebraicEngine | None = None,
        prices: Prices = MEASURED,
    ) -> None:
        super().__init__(tree, pattern)
        self._engine = engine if engine is not None else AlgebraicEngine(tree)
        self.kept_by: Maintainer = Algebraic(tree, pattern, self._engine)
        self._counting = prices.counting
        self._shape = shape_of(pattern)
        is_direct = identifying_node(self._shape) is not None
        direct = prices.connected if _is_connected(pattern.branches) else prices.direct
        self._algebraic = direct if is_direct else prices.algebraic
        self.regret = 0.0
        self.changeovers = 0
        if self._counting.of(1) < self._algebraic.of(1):
            counting = self._other()
            if isinstance(counting, Counting) and counting.is_begun:
                self.kept_by.close()
                self.kept_by = counting

    @staticmethod
    def refusal(pattern: Pattern) -> str | None:
        return Algebraic.refusal(pattern) or Counting.refusal(pattern)

    def rows(self) -> Iterable[Row]:
        return self.kept_by.rows()

    def size(self) -> int:
        return self.kept_by.size()

    def before(self, delta: Delta) -> None:
        self._choose(delta)
        self.kept_by.before(delta)

    def after(self, delta: Delta) -> list[Change]:
        return self.kept_by.after(delta)

    def later(self, delta: Delta) -> list[Change]:
        return self.kept_by.later(delta)

    def catch_up(self) -> list[Change]:
        return self.kept_by.catch_up()

    @property
    def is_behind(self) -> bool:
        return self.kept_by.is_behind

    @property
    def broken(self) -> QueryError | None:
        return self.kept_by.broken

    def close(self) -> None:
        self.kept_by.close()

    def operators(self) -> tuple[str, ...]:
        return self.kept_by.operators()

    def details(self) -> tuple[str, ...]:
        costs = f"regret {self.regret:.0f} of {self._price():.0f} us to switch"
        return (f"kept by {self.kept_by.name} now; {costs}", *self.kept_by.details())

    def _choose(self, delta: Delta) -> None:
        operations = len(delta.removed) + len(delta.added) + len(delta.changed)
        present, other = self._costs()
        more = present.of(operations) - other.of(operations)
        price = self._price()
        if self.regret + more > price:
            labels = self._engine.before(delta).labels
            if not (may_concern(self._shape, labels) or may_flip_guards(self._shape, labels)):
                return
        self.regret = max(0.0, self.regret + more)
        if self.regret > price and not self.kept_by.is_behind:
            self.kept_by.close()
            self.kept_by = self._other()
            self.regret = 0.0
            self.changeovers += 1

    def _costs(self) -> tuple[Costs, Costs]:
        costs = (self._counting, self._algebraic)
        return costs if isinstance(self.kept_by, Counting) else costs[::-1]

    def _price(self) -> float:
        return self._costs()[1].node * len(self.tree)

    def _other(self) -> Maintainer:
        makers: dict[bool, Callable[[], Maintainer]] = {
            True: lambda: Algebraic(self.tree, self.pattern, self._engine),
            False: lambda: Counting(self.tree, self.pattern, known=self._bindings),
        }
        return makers[isinstance(self.kept_by, Counting)]()

    def _bindings(self, columns: Sequence[str]) -> Bag | None:
        """The rows of the algebra as counting has them; None if they do not give all columns."""
        kept = self.kept_by
        if not isinstance(kept, Algebraic):
            return None
        table, shape = kept.relation.table(), kept.shape
        outputs = {
            column_of(output): (number, output)
            for number, output in enumerate(self.pattern.outputs)
            if output.kind is Kind.VARIABLE or output.of not in shape.anchors
        }
        every: list[list[str | int]] = []
        for column in columns:
            if column in outputs:
                every.append(kept.keys_of(*outputs[column], table))
                continue
            name = column.removesuffix(".node")  # the anchor of a collected path
            nodes = table.columns.get(node_column(shape.named.get(name, -1)))
            if nodes is None:
                return None
            every.append(nodes.tolist())
        rows = zip(*every, strict=True) if every else repeat((), len(table))
        bag = dict(zip(rows, table.counts.tolist(), strict=True))
        return bag if len(bag) == len(table) else None


def _is_connected(branches: Iterable[Branch]) -> bool:
    """Whether a pattern has `or`, `not` or collected paths."""
    waiting = list(branches)
    while waiting:
        branch = waiting.pop()
        if not isinstance(branch, PatternNode):
            return True
        waiting += branch.branches
    return False
