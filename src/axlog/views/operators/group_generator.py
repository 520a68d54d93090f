"""Generated groups: the application of one row as straight-line Python.

A stream's message changes one row, and its group is on the path of every message. The code has the
keys, the aggregates and the output row written out. `Group.apply` is the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, TypeAlias

from axlog.evaluate.joins import Row
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
    scope: dict[str, Any] = {"groups": groups, "new": measures.new}
    scope.update((f"read{at}", read) for at, read in enumerate(reads))
    exec(_compiled(_source(tuple(keys), len(reads), measures.shown, always)), scope)
    put: Put = scope["put"]
    return put


@lru_cache(maxsize=512)
def _compiled(source: str) -> CodeType:
    return compile(source, "<group>", "exec")


def _source(keys: tuple[int, ...], reads: int, shown: Sequence[int | None], always: bool) -> str:
    lines = [
        "def put(row, count):",
        f"key = {_tuple([f'row[{at}]' for at in keys])}",
        "member = groups.get(key)",
        "if member is None:",
        "    member = groups[key] = new()",
        "before = member.row",
        "total = member.count = member.count + count",
    ]
    if reads:
        lines.append(f"{_tuple([f'state{at}' for at in range(reads)])} = member.states")
    for at in range(reads):
        lines += [
            f"value = read{at}(row)",
            "if value is not None:",
            f"    state{at}.add(value, count)",
        ]
    if not always:
        lines += ["if not total:", "    del groups[key]", "    return before, None"]
    cells = [f"row[{at}]" for at in keys]
    cells += ["total" if at is None else f"state{at}.result()" for at in shown]
    lines += [
        f"after = {_tuple(cells)}",
        "if after == before:",
        "    return before, before",
        "member.row = after",
        "return before, after",
    ]
    return "\n    ".join(lines) + "\n"


def _tuple(cells: Sequence[str]) -> str:
    return f"({''.join(f'{cell}, ' for cell in cells)})"
