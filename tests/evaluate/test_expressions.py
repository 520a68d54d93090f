"""Scalar operations of expressions: the cases that XPath leaves to the implementation."""

import pytest

from axlog.document.loader import load
from axlog.errors import QueryError
from axlog.evaluate.functions import OPERATORS
from axlog.evaluate.items import Items, Untyped

TREE = load("<r/>")


@pytest.mark.parametrize(
    ("left", "operator", "right", "value"),
    [
        ([1.0], "to", [3.0], [1.0, 2.0, 3.0]),
        ([3.0], "to", [1.0], []),
        ([], "to", [1.0], []),
        ([1.0], "div", [0.0], [float("inf")]),
        ([7.0], "idiv", [2.0], [3.0]),
        ([Untyped("7")], "mod", [4.0], [3.0]),
        (["a"], "||", [1.0], ["a1"]),
        ([Untyped("10")], "<", [9.0], [False]),
        ([], "+", [1.0], []),
    ],
)
def test_operators(left: Items, operator: str, right: Items, value: Items) -> None:
    assert OPERATORS[operator](TREE, left, right) == value


@pytest.mark.parametrize("bound", [Untyped("a"), float("inf")])
def test_the_bounds_of_a_range_are_numbers(bound: float | str) -> None:
    """Regression: a bound that is not a number ended in a Python error without a code."""
    with pytest.raises(QueryError) as caught:
        OPERATORS["to"](TREE, [1.0], [bound])
    assert caught.value.code == "XPTY0004"


def test_calculations_need_single_values() -> None:
    with pytest.raises(QueryError) as caught:
        OPERATORS["+"](TREE, [1.0, 2.0], [1.0])
    assert caught.value.code == "XPTY0004"


def test_a_range_has_a_limit() -> None:
    with pytest.raises(QueryError) as caught:
        OPERATORS["to"](TREE, [1.0], [1e9])
    assert caught.value.code == "AX215"
