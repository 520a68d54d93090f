"""The removal of one block: its rows leave the joins by a route, without a delta.

A block is a subtree directly below a site, without one in it. A route carries rows from the place
of a call; here they are those of a subtree at this place, with negative counts. Law: the answers
are those of `CountingEngine.before` and `after` for a delta with this one removed subtree, if no
site above it compares its value.
"""

from __future__ import annotations

from axlog.evaluate.gathered import Bags
from axlog.evaluate.joins import Bag
from axlog.match.stream_plan import EVERYWHERE
from axlog.query.compile import Relation
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.routes import FoundBags, Route
from axlog.views.step_chain import negated


class BlockRemoval:
    """The removal of blocks at one place."""

    def __init__(self, engine: CountingEngine, route: Route) -> None:
        self.route = route
        self._engine = engine
        self._here: dict[Relation, int] = {r: n for n, r in enumerate(route.here)}
        self._everywhere = {r: n for n, r in enumerate(route.everywhere, EVERYWHERE)}

    def rows(self, block: int) -> FoundBags:
        """The rows of a block with negative counts, by the number of their relation.

        The work of the removal is counted from here on, until `end`.
        """
        engine = self._engine
        engine.build()
        interpreter = engine._interpreter
        engine._begin_work()
        rising = interpreter.evaluate(engine.tree, block)
        interpreter.meters = None
        found: dict[int, Bag] = {}
        _number(rising.here, self._here, found)
        if rising.everywhere:
            _number(rising.everywhere, self._everywhere, found)
        return found

    def is_block(self, node: int) -> bool:
        """Whether a node below the place is the root of a block."""
        return node not in self._engine._sites

    def end(self) -> None:
        """Set aside the views that exceeded a limit, once the rows were carried."""
        engine = self._engine
        if engine.meters.used or engine.noted:
            engine.close_update({})
        else:
            engine._end_work()


def _number(bags: Bags, numbers: dict[Relation, int], found: dict[int, Bag]) -> None:
    for relation, bag in bags.items():
        number = numbers.get(relation)
        if number is not None and bag:
            found[number] = negated(bag)
