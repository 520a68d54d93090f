"""The names of functions agree with their signatures."""

from axlog.evaluate.functions import FUNCTIONS as TABLE
from axlog.query.function_names import CASTS, FUNCTIONS, OF_ONE_ITEM

_CARDINALITIES = {"exactly-one", "zero-or-one"}
"""They take any sequence, and raise an error for two items."""


def test_functions_of_one_item_are_those_whose_parameters_take_one() -> None:
    single = {
        name
        for name in FUNCTIONS
        if name in _CARDINALITIES or not any(each.is_sequence for each in TABLE[name].parameters)
    }
    assert single | CASTS == OF_ONE_ITEM
