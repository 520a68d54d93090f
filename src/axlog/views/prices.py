"""The prices of counting and of the algebra, by which `adaptive` chooses between them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of an algorithm in us: per update, per operation, and per node at setup."""

    update: float
    operation: float
    node: float

    def of(self, operations: int) -> float:
        return self.update + operations * self.operation


@dataclass(frozen=True, slots=True)
class Prices:
    """The costs of each algorithm: measured, or set by a test to force views to switch.

    Measured on auction documents of 1 and 10 MB, with one to a thousand insertions per statement.
    In views like Q1 one node identifies a row (`direct`); those with `or`, `not` or collected paths
    (`connected`: Q13, Q16, Q17) cost more. With the ids of two nodes the view needs tables.
    """

    counting: Costs = Costs(update=120.0, operation=170.0, node=0.6)
    algebraic: Costs = Costs(update=1000.0, operation=10.0, node=0.13)
    direct: Costs = Costs(update=200.0, operation=5.0, node=0.13)
    connected: Costs = Costs(update=600.0, operation=5.0, node=0.13)


MEASURED = Prices()
