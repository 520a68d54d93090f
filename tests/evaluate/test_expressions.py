"""Scalar operations of expressions: the cases that XPath leaves to the implementation."""

from decimal import Decimal

import pytest

from axlog.document.loader import load
from axlog.errors import QueryError
from axlog.evaluate.atoms import Untyped
from axlog.evaluate.functions import FUNCTIONS, OPERATORS
from axlog.evaluate.items import Items
from axlog.query import function_names

TREE = load("<r/>")


@pytest.mark.parametrize(
    ("left", "operator", "right", "value"),
    [
        ([1], "to", [3], [1, 2, 3]),
        ([3], "to", [1], []),
        ([], "to", [1], []),
        ([1.0], "div", [0.0], [float("inf")]),
        ([7], "idiv", [2], [3]),
        ([Untyped("7")], "mod", [4], [3.0]),
        (["a"], "||", [1], ["a1"]),
        ([Untyped("10")], "<", [9], [False]),
        ([], "+", [1], []),
        ([1], "+", [Decimal("0.1")], [Decimal("1.1")]),
        ([10], "div", [4], [Decimal("2.5")]),
    ],
)
def test_operators(left: Items, operator: str, right: Items, value: Items) -> None:
    found = OPERATORS[operator](TREE, left, right)
    assert found == value
    assert list(map(type, found)) == list(map(type, value))


@pytest.mark.parametrize(
    ("bound", "code"), [(Untyped("a"), "FORG0001"), (float("inf"), "XPTY0004"), ("1", "XPTY0004")]
)
def test_the_bounds_of_a_range_are_integers(bound: float | str, code: str) -> None:
    """Regression: a bound that is not a number ended in a Python error without a code."""
    with pytest.raises(QueryError) as caught:
        OPERATORS["to"](TREE, [1], [bound])
    assert caught.value.code == code


def test_calculations_need_single_values() -> None:
    with pytest.raises(QueryError) as caught:
        OPERATORS["+"](TREE, [1, 2], [1])
    assert caught.value.code == "XPTY0004"


def test_a_range_has_a_limit() -> None:
    with pytest.raises(QueryError) as caught:
        OPERATORS["to"](TREE, [1], [10**9])
    assert caught.value.code == "AX215"


def test_the_names_that_parsers_know_are_the_functions() -> None:
    names = {name for name in FUNCTIONS if not name.startswith(("xs:", "unary"))}
    casts = {name.removeprefix("xs:") for name in FUNCTIONS if name.startswith("xs:")}
    assert names == function_names.FUNCTIONS
    assert casts | {"QName"} == function_names.TYPES
