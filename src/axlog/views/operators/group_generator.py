"""Generated groups: the application of one row as straight-line Python.

A stream's message changes one row, and its group is on the path of every message. The code has the
keys, the aggregates and the output row written out. `Group.apply` is the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, DecimalException
from typing import Any, TypeAlias

from axlog.evaluate.generated_code import function_of
from axlog.evaluate.joins import Row
from axlog.query.numbers import DECIMALS
from axlog.views.operators.exact_sum import EXACT
from axlog.views.operators.measures import Measures, Member

Put: TypeAlias = Callable[[Row, int], tuple[Row | None, Row | None]]
"""Applies one row; returns the output row of its group before and after it."""


def generate_put(
    groups: dict[Row, Member], measures: Measures, keys: Sequence[int], *, always: bool
) -> Put:
    """The function of one group operator.

    `keys`: the positions of the keys in a row; `always`: an empty group stays.
    """
    reads = measures.reads
    scope: dict[str, Any] = {
        "groups": groups, "Member": Member, "Decimal": Decimal, "plus": EXACT.add,
        "shown": DECIMALS.add, "DecimalException": DecimalException,
    }  # fmt: skip
    scope.update((f"read{at}", read) for at, read in enumerate(reads))
    scope.update((f"new{at}", make) for at, make in enumerate(measures.makers))
    source = _source(tuple(keys), measures.summed, measures.shown, always)
    put: Put = function_of("put", source, scope)
    return put


def _source(
    keys: tuple[int, ...],
    summed: Sequence[int | None],
    shown: Sequence[int | None],
    always: bool,
) -> str:
    new = ", ".join(f"new{at}()" for at in range(len(summed)))
    lines = [
        "def put(row, count):",
        f"key = {_tuple([f'row[{at}]' for at in keys])}",
        "member = groups.get(key)",
        "if member is None:",
        f"    member = groups[key] = Member([{new}])",
        "before = member.row",
        "total = member.count = member.count + count",
    ]
    if summed:
        lines.append(f"{_tuple([f'state{at}' for at in range(len(summed))])} = member.states")
    for at, column in enumerate(summed):
        lines += _add(at, column)
    if not always:
        lines += ["if not total:", "    del groups[key]", "    return before, None"]
    cells = [f"row[{at}]" for at in keys]
    for at in sorted({at for at in shown if at is not None}):
        lines += _show(at, summed[at])
    cells += ["total" if at is None else f"cell{at}" for at in shown]
    lines += [
        f"after = {_tuple(cells)}",
        f"if {'not count and ' if None in shown else ''}after == before:",
        "    return before, before",
        "member.row = after",
        "return before, after",
    ]
    return "\n    ".join(lines) + "\n"


def _add(at: int, column: int | None) -> list[str]:
    """The addition of a row to one state; one text of digits, as most sums get, without a call.

    A sum that can be shown is exact: so it is the next state, too.
    """
    general = [
        f"value = read{at}(row)",
        "if value is not None:",
        f"    state{at}.add(value, count)",
    ]
    if column is None:
        return general
    return [
        f"value = row[{column}]",
        "if count == 1 and type(value) is str and value.isascii()"
        " and value.replace('.', '', 1).isdigit():",
        f"    state{at}.decimals += 1",
        "    value = Decimal(value)",
        "    try:",
        f"        cell{at} = state{at}.decimal = shown(state{at}.decimal, value)",
        "    except DecimalException:",
        f"        state{at}.decimal = plus(state{at}.decimal, value)",
        f"        cell{at} = None",
        "else:",
        f"    cell{at} = None",
        *(f"    {line}" for line in general),
    ]


def _show(at: int, column: int | None) -> list[str]:
    """The value of one aggregate; that of a sum of decimals is known from its addition."""
    if column is None:
        return [f"cell{at} = state{at}.result()"]
    return [
        f"if cell{at} is None or state{at}.integer or not state{at}.decimals"
        f" or state{at}.others is not None:",
        f"    cell{at} = state{at}.result()",
    ]


def _tuple(cells: Sequence[str]) -> str:
    return f"({''.join(f'{cell}, ' for cell in cells)})"
