"""Conditions of predicates on the value of one node: `[contains(., "pump")]`, `[. * 1.2 > 100]`.

A formula is an expression over the string value of a node, which `Reference(".")` stands for. As
the operand of a comparison with the operator `HOLDS` it is one more test of a value, beside
constants. `evaluate/value_tests.py` compiles it. Two formulas are equal if their texts are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

HOLDS = "holds native"
"""The operator of a comparison with a formula. Like a type, `native` names the rules of values."""
OWN_VALUE = "."
"""The name of the reference to the value of the node."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A condition on a value, as an expression of the native text."""

    text: str  # canonical, with `.` for the value
    expression: Any = field(compare=False, repr=False)  # of `syntax_tree`
    source: str = field(default="", compare=False, repr=False)  # the query, for places of errors

    def __str__(self) -> str:
        return self.text
